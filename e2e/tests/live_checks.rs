//! Tests `kubectl vap check --live` on mutating policies, bindings and webhooks.

#![allow(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

use std::time::{Duration, Instant};

use serde_json::Value;

#[path = "support/plugin.rs"]
mod plugin;
use plugin::{Bench, TIMEOUT, rules};

/// Objects with mistakes. The mutating policy misspells a field in a condition and in an object. One binding refers to
/// a missing policy. The condition of a webhook misspells a field.
const ADMISSION: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: mutating, labels: {team: mutating}}
spec:
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [live.example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}
  matchConditions: [{name: a, expression: object.spec.sise > 1}]
  mutations:
  - patchType: ApplyConfiguration
    applyConfiguration: {expression: 'Object{spec: Object.spec{sise: 1}}'}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: mutating}
spec: {policyName: mutating}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: stray}
spec: {policyName: mutatin}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingWebhookConfiguration
metadata: {name: webhooks}
webhooks:
- name: widgets.example.com
  clientConfig: {service: {name: hook, namespace: default}}
  failurePolicy: Ignore
  rules:
  - {apiGroups: [live.example.com], apiVersions: [v1], operations: [CREATE], resources: [widgets]}
  matchConditions: [{name: a, expression: object.spec.sise > 1}]
  sideEffects: None
  admissionReviewVersions: [v1]
";

#[tokio::test(flavor = "multi_thread")]
async fn live_check_covers_mutating_policies_and_webhooks() {
    let bench = Bench::start().await;
    bench.install_crd();
    bench.apply(ADMISSION);
    let all: Value =
        serde_json::from_str(&bench.check(&["check", "--live", "-o", "json"], 1)).unwrap();
    let reported = rules(&all);
    let misspelt = |file: &str| {
        let wanted = format!("warning undefined-field {file}");
        reported
            .iter()
            .filter(|reported| **reported == wanted)
            .count()
    };
    // The two equal findings of the policy are merged.
    assert_eq!(misspelt("mutatingadmissionpolicy/mutating"), 1, "{all}");
    assert_eq!(
        misspelt("validatingwebhookconfiguration/webhooks"),
        1,
        "{all}"
    );
    let stray = "warning unknown-policy mutatingadmissionpolicybinding/stray";
    assert!(reported.iter().any(|reported| reported == stray), "{all}");
    // There are no other findings. The policy is bound, and fields that the API server sets are not reported as
    // mistakes.
    assert_eq!(reported.len(), 3, "{all}");
    assert_eq!(all["summary"]["webhooks"], 1, "{all}");
    let labelled = bench.check(&["check", "-l", "team=mutating", "-o", "json"], 1);
    let labelled: Value = serde_json::from_str(&labelled).unwrap();
    assert_eq!(rules(&labelled).len(), 1, "{labelled}");

    // A webhook in a file is checked with the schemas of the cluster.
    let webhook = ADMISSION.rsplit("---\n").next().unwrap();
    let webhook = bench.file("webhook.yaml", &webhook.replace("webhooks}", "others}"));
    bench.check(&["check", webhook.to_str().unwrap(), "--live"], 1);

    // Resources that the user is not allowed to read are reported. Other resources are checked.
    for command in [
        "create clusterrole policies --verb=get,list --resource=validatingadmissionpolicies,\
         validatingadmissionpolicybindings,validatingwebhookconfigurations",
        "create clusterrolebinding policies --clusterrole=policies --user=ann",
    ] {
        bench.kubectl(&command.split(' ').collect::<Vec<_>>());
    }
    let deadline = Instant::now() + TIMEOUT;
    let report = loop {
        let output = bench.output_for_ann(&["check", "--live", "-o", "json"]);
        if output.status.code() == Some(1) || Instant::now() > deadline {
            break output;
        }
        std::thread::sleep(Duration::from_millis(100));
    };
    assert_eq!(report.status.code(), Some(1), "{report:?}");
    let report: Value = serde_json::from_slice(&report.stdout).unwrap();
    let unread = format!("note cluster-read-failed {}", bench.control_plane.url());
    let n_unread = rules(&report).iter().filter(|it| **it == unread).count();
    assert_eq!(n_unread, 4, "{report}");
    for kind in [
        "MutatingAdmissionPolicies",
        "MutatingAdmissionPolicyBindings",
        "MutatingWebhookConfigurations",
        "CustomResourceDefinitions",
    ] {
        let said = format!("the {kind} of the cluster cannot be read");
        assert!(report.to_string().contains(&said), "{kind}: {report}");
    }
    assert_eq!(report["summary"]["webhooks"], 1, "{report}");
}
