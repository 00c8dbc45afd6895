//! Measures the memory that checks of policies allocate and retain.

use std::sync::LazyLock;
use std::sync::atomic::{AtomicI64, Ordering};

use serde_json::{Value, json};
use vap_status_controller::policy::RequestPolicy;
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::schema::Builtin;
use vap_status_controller::version::KubernetesVersion;
use vap_status_controller::schema::rest_mapper::RestMapper;

use crate::hostile;

/// The maximum length of a seed in bytes. Longer inputs are policies.
const MAX_SEED_BYTES: usize = 16;

/// The maximum heap size of a check in bytes. It is half of the controller's memory limit.
const MAX_PEAK_BYTES: u64 = 128 << 20;

/// The maximum memory in bytes that all checks together retain. Caches are included.
const MAX_RETAINED_BYTES: i64 = 48 << 20;

static BUILTIN: LazyLock<(&Builtin, RestMapper)> = LazyLock::new(|| {
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).expect("built-in schemas are readable");
    let mapper = RestMapper::new(builtin.resources().to_vec());
    (builtin, mapper)
});

/// The number of bytes that the checks in this process have allocated and not freed.
static RETAINED: AtomicI64 = AtomicI64::new(0);

/// Checks and drops the policies that `bytes` describe.
///
/// # Panics
/// Panics if a check uses too much memory, or if all checks together retain too much memory.
pub fn check(bytes: &[u8]) {
    LazyLock::force(&BUILTIN);
    for policy in policies(bytes) {
        let allocated = allocation_counter::measure(|| check_policy(&policy));
        assert!(
            allocated.bytes_max < MAX_PEAK_BYTES,
            "a check took {} bytes",
            allocated.bytes_max
        );
        let before = RETAINED.fetch_add(allocated.bytes_current, Ordering::Relaxed);
        let retained = before + allocated.bytes_current;
        assert!(
            retained < MAX_RETAINED_BYTES,
            "checks retain {retained} bytes, the last check {}",
            allocated.bytes_current
        );
    }
}

fn check_policy(policy: &Value) {
    let Ok(policy) = serde_json::from_value::<RequestPolicy>(policy["spec"].clone()) else {
        return;
    };
    let (builtin, mapper) = (BUILTIN.0, &BUILTIN.1);
    let compiled = CompiledPolicy::new(policy);
    let _ = type_check(&compiled, mapper, builtin, Profile::Truthful);
}

fn policies(bytes: &[u8]) -> Vec<Value> {
    if bytes.len() <= MAX_SEED_BYTES {
        let seed = bytes
            .iter()
            .fold(0_u64, |seed, byte| seed.wrapping_mul(257) ^ u64::from(*byte));
        let n = usize::from(bytes.first().copied().unwrap_or_default());
        let objects = hostile::hostile(seed, n).objects;
        let is_policy = |object: &Value| object["kind"] == "ValidatingAdmissionPolicy";
        return objects.into_iter().filter(is_policy).collect();
    }
    match serde_json::from_slice(bytes) {
        Ok(policy) => vec![policy],
        Err(_) => {
            let expression = String::from_utf8_lossy(bytes);
            let spec = json!({"validations": [{"expression": expression}]});
            vec![hostile::policies::policy("fuzz", &spec)]
        }
    }
}
