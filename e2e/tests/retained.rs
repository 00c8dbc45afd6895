//! Measures the memory that checks of hostile policies use and retain, without a cluster.
//!
//! The limits equal those in `fuzz/src/retained.rs`. `VAP_HOSTILE_SEED` sets the seed of the hostile objects, and
//! `VAP_HOSTILE_FILES` the number of their groups.

#![allow(
    clippy::indexing_slicing,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

use e2e::hostile::{ROUND, hostile};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use parity::random::from_environment;
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::schema::Builtin;
use vap_status_controller::version::KubernetesVersion;

const MIB: i64 = 1 << 20;

/// The maximum heap usage of one check, in bytes. It is half of the controller's memory limit.
const MAX_PEAK: u64 = 128 << 20;

/// The maximum heap usage after all checks, including caches, in bytes.
const MAX_RETAINED: i64 = 48 * MIB;

#[test]
fn checks_of_hostile_policies_use_bounded_memory() {
    let seed = from_environment("VAP_HOSTILE_SEED", 1).unwrap();
    let n_groups = from_environment("VAP_HOSTILE_FILES", 3 * ROUND as u64).unwrap();
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let mapper = builtin.rest_mapper();
    let (mut retained, mut peak, mut n_policies) = (0, 0, 0);
    for n in 0..usize::try_from(n_groups).unwrap() {
        let group = hostile(seed, n);
        let is_policy = |kind: &serde_json::Value| kind == "ValidatingAdmissionPolicy";
        for object in group
            .objects
            .iter()
            .filter(|object| is_policy(&object["kind"]))
        {
            let allocated = allocation_counter::measure(|| {
                let policy: ValidatingAdmissionPolicy =
                    serde_json::from_value(object.clone()).unwrap();
                let compiled = CompiledPolicy::new(&policy);
                let _ = type_check(&compiled, &mapper, builtin, Profile::Truthful);
            });
            n_policies += 1;
            peak = peak.max(allocated.bytes_max);
            retained += allocated.bytes_current;
            assert!(
                allocated.bytes_max < MAX_PEAK,
                "{} {:?}: a check took {} MiB",
                group.name,
                group.family,
                allocated.bytes_max >> 20
            );
            assert!(
                retained < MAX_RETAINED,
                "{} {:?}: checks retained {} MiB",
                group.name,
                group.family,
                retained / MIB
            );
        }
    }
    println!(
        "{n_policies} policies: peak {} MiB, retained {} KiB",
        peak >> 20,
        retained / 1024
    );
    assert!(n_policies > 10, "{n_policies}");
}
