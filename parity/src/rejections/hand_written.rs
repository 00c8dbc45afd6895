//! Hand-written manifests with mistakes that no mutation produces: other versions, features of YAML, and sizes.

use super::mutate::{Mutant, MutantKind};

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: written}
spec:
  matchConstraints:
    resourceRules:
    - &rule {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - expression: 'true'
";

const BINDING: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: written}
spec:
  policyName: no-such-policy
  validationActions: [Deny]
";

/// Returns the manifests.
#[must_use]
pub fn hand_written() -> Vec<Mutant> {
    let mut texts = Vec::new();
    let mut policy = |text: String| texts.push((MutantKind::Policy, text));
    // This list omits the older versions of the API: a cluster might not serve them, and they have their own endpoints.
    for version in ["v2", "V1", "v1/x"] {
        policy(POLICY.replace("k8s.io/v1", &format!("k8s.io/{version}")));
    }
    policy(POLICY.replace("admissionregistration.k8s.io/v1", "v1"));
    // Merge keys of YAML. A manifest is invalid if it also sets a merged key explicitly.
    for rule in [
        "    - <<: *rule",
        "    - {<<: *rule, scope: Namespaced}",
        "    - {<<: *rule, resources: [pods]}",
        "    - {resources: [pods], <<: *rule}",
        "    - {<<: [*rule, {scope: '*'}]}",
        "    - {<<: [*rule, {resources: [pods]}]}",
        "    - {<<: [{resources: [pods]}, *rule]}",
        "    - {<<: [*rule, *rule]}",
        "    - {<<: *rule, <<: {scope: '*'}}",
        "    - *rule",
    ] {
        policy(POLICY.replace("  validations:", &format!("{rule}\n  validations:")));
    }
    // Unquoted scalars and keys, whose types YAML determines.
    for metadata in [
        "{name: 1}",
        "{name: 1e3}",
        "{name: yes}",
        "{name: 'yes'}",
        "{name: ~}",
        "{name: ~, generateName: a-}",
        "{name: 2024-01-02}",
        "{name: !!str 1}",
        "{name: a, labels: {1: a, true: b}}",
        "{name: a, labels: {a: 1}}",
        "{name: a, labels: {a: 2024-01-02}}",
        "{name: a, labels: {a: !!str 1}}",
        "{name: a, creationTimestamp: 2024-01-02T03:04:05Z}",
        "{name: a, creationTimestamp: 2024-01-02}",
        "{name: a, generation: 1.0}",
        "{name: a, generation: 0x10}",
        "{name: a, generation: 1e3}",
        "{name: a, generation: 9.3e18}",
        "{name: a, name: b}",
        "{name: a, \"name\": b}",
        "{name: a, labels: {a: b, a: b}}",
        "{name: a, labels: {a: b, 'a': c}}",
        "{name: a, managedFields: [{fieldsV1: {a: {}, a: {}}}]}",
        "{name: a, unknown: {a: 1, a: 2}}",
        "[]",
        "~",
        "{}",
        "{name: a}\nmetadata: {name: b}",
        "{name: a}\nstatus: {unknown: 1}",
        "{name: a}\nextra: 1",
        "{name: a}\n? b\n: c",
    ] {
        policy(POLICY.replace("{name: written}", metadata));
    }
    for (from, to) in [
        ("'true'", "true"),
        ("'true'", "1 == 1"),
        ("'true'", "|\n      true\n"),
        ("- expression", "expression"),
        ("- expression: 'true'", "- 'true'"),
        ("[CREATE]", "CREATE"),
        ("[v1]", "[1]"),
        ("spec:", "spec: {}\nspec:"),
        (
            "  validations:",
            "  variables: [{name: a, expression: 'object'}, {name: a, expression: 'variables.a'}]\n  validations:",
        ),
    ] {
        policy(POLICY.replace(from, to));
    }
    // Limits of sizes: an expression may have 100,000 code points. Requests and objects in etcd have limits in bytes.
    for n in [99_998, 99_999, 100_000] {
        policy(POLICY.replace("'true'", &format!("\"'{}' == ''\"", "x".repeat(n - 6))));
    }
    for n in [14, 18, 40] {
        let group = "g".repeat(100_000);
        let groups = vec![group; n].join(", ");
        policy(POLICY.replace("[apps]", &format!("[{groups}]")));
    }
    let mut binding = |text: String| texts.push((MutantKind::Binding, text));
    binding(BINDING.to_owned());
    binding(BINDING.replace("k8s.io/v1", "k8s.io/v2"));
    binding(BINDING.to_owned() + "  paramRef: {name: a}\n");
    binding(BINDING.replace("no-such-policy", "1.0"));
    binding(BINDING.replace("[Deny]", "Deny"));
    binding(BINDING.replace("[Deny]", "[Deny, Warn]"));
    let texts = texts.into_iter();
    texts.map(|(kind, text)| Mutant { kind, text }).collect()
}
