//! Compares the warnings of the `upstream` profile with statuses of kube-controller-manager.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::{Duration, Instant};

use e2e::control_plane::ControlPlane;
use e2e::live;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{Api, PostParams};
use parity::corpus;
use vap_status_controller::policy::analysis::{Profile, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::status::warnings::warnings;

/// The maximum number of policies to create.
const N_POLICIES: usize = 60;

/// The minimum number of policies to compare.
const N_WANTED: usize = 25;

/// Creates policies from `folder`, and compares the warnings of kube-controller-manager and of the `upstream` profile.
pub(crate) async fn upstream_profile_equals_kcm(folder: &Path) {
    let control_plane = ControlPlane::builder()
        .status_controller()
        .start()
        .await
        .unwrap();
    let client = control_plane.client().await.unwrap();
    let (schemas, mapper) = live::schemas(&client).await.unwrap();
    let api: Api<ValidatingAdmissionPolicy> = Api::all(client);

    // Policies with warnings come first, because their comparison is most useful.
    let mut candidates: Vec<_> = corpus::policies(folder)
        .unwrap()
        .into_iter()
        .map(|policy| {
            let compiled = CompiledPolicy::new(&policy);
            let expected = type_check(&compiled, &mapper, &schemas, Profile::Upstream);
            (policy, expected)
        })
        .collect();
    candidates.sort_by_key(|(_, expected)| expected.findings.is_empty());

    let mut created = BTreeMap::new();
    for (n, (mut policy, expected)) in candidates.into_iter().enumerate() {
        if created.len() == N_POLICIES {
            break;
        }
        policy.metadata = kube::api::ObjectMeta::default();
        policy.metadata.name = Some(format!("policy-{n}.example.com"));
        policy.status = None;
        // A policy that the API server rejects has no status.
        if api.create(&PostParams::default(), &policy).await.is_ok() {
            created.insert(format!("policy-{n}.example.com"), expected);
        }
    }
    assert!(
        created.len() >= N_WANTED,
        "only {} policies were accepted",
        created.len()
    );

    let mut n_warned = 0;
    for (name, expected) in &created {
        let status = wait_for_status(&api, name).await;
        let actual: Vec<_> = status
            .type_checking
            .and_then(|checking| checking.expression_warnings)
            .unwrap_or_default()
            .into_iter()
            .map(|warning| (warning.field_ref, normalize(&warning.warning, expected)))
            .collect();
        let wanted: Vec<_> = warnings(&expected.findings)
            .into_iter()
            .map(|warning| (warning.field_ref.clone(), warning.text()))
            .collect();
        n_warned += usize::from(!wanted.is_empty());
        assert_eq!(actual, wanted, "{name}");
    }
    assert!(n_warned >= 10, "only {n_warned} policies have warnings");
    println!(
        "{} policies equal, {n_warned} of them with warnings",
        created.len()
    );
}

type Status = k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyStatus;

async fn wait_for_status(api: &Api<ValidatingAdmissionPolicy>, name: &str) -> Status {
    let deadline = Instant::now() + Duration::from_secs(120);
    loop {
        let status = api
            .get_status(name)
            .await
            .unwrap()
            .status
            .unwrap_or_default();
        if status.observed_generation.is_some() {
            return status;
        }
        assert!(Instant::now() < deadline, "{name} has no status");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// Replaces timestamps in type names by `#`, as `parity/oracle` does.
fn normalize(
    warning: &str,
    expected: &vap_status_controller::policy::analysis::TypeCheck,
) -> String {
    let kinds = expected
        .checked
        .iter()
        .chain(expected.params.iter().map(|(gvk, _)| gvk));
    let mut kinds: Vec<_> = kinds.map(|gvk| gvk.kind.as_str()).collect();
    kinds.sort_by_key(|kind| std::cmp::Reverse(kind.len()));
    kinds.dedup();
    kinds
        .into_iter()
        .fold(warning.to_owned(), |text, kind| normalize_kind(&text, kind))
}

fn normalize_kind(text: &str, kind: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(kind) {
        let (before, found) = rest.split_at(at);
        out.push_str(before);
        let behind = &found[kind.len()..];
        let n_digits = behind.bytes().take_while(u8::is_ascii_digit).count();
        let starts_word = !out.chars().next_back().is_some_and(is_word);
        let ends_word = !behind[n_digits..].chars().next().is_some_and(is_word);
        out.push_str(kind);
        rest = if starts_word && ends_word && (1..=9).contains(&n_digits) {
            out.push('#');
            &behind[n_digits..]
        } else {
            behind
        };
    }
    out.push_str(rest);
    out
}
