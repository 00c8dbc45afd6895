//! Tests of `check` for policies and bindings in several files: bindings of policies with equal names, and containers that
//! other policies check.

use serde_json::Value;

use crate::check_management::{directory, json};

fn policy(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: {name}}}\nspec:\n\
         \x20 matchConstraints: {{resourceRules: [{{apiGroups: [''], apiVersions: [v1], operations: [CREATE, UPDATE], \
         resources: [pods, pods/ephemeralcontainers]}}]}}\n{spec}"
    )
}

fn binding(spec: &str) -> String {
    format!(
        "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\n\
         spec: {{policyName: p, validationActions: [Deny]{spec}}}\n"
    )
}

fn rules(report: &Value) -> Vec<&str> {
    let findings = report["findings"].as_array().unwrap().iter();
    let problems = findings.filter(|finding| finding["severity"] != "note");
    problems
        .map(|finding| finding["rule"].as_str().unwrap())
        .collect()
}

const PLAIN: &str = "  validations: [{expression: \"object.metadata.name != 'a'\"}]\n";
const WITH_PARAMS: &str = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  \
                           validations: [{expression: \"params.metadata.name != ''\"}]\n";
const PARAM_REF: &str = ", paramRef: {name: x, namespace: default, parameterNotFoundAction: Deny}";

#[test]
fn binding_belongs_to_the_policy_of_its_directory() {
    let alternatives = [
        ("a/p.yaml", policy("p", PLAIN)),
        ("a/b.yaml", binding("")),
        ("b/policies/p.yaml", policy("p", WITH_PARAMS)),
        ("b/bindings/b.yaml", binding(PARAM_REF)),
    ];
    let files: Vec<_> = alternatives
        .iter()
        .map(|(name, text)| (*name, &**text))
        .collect();
    let (report, _) = json(&directory("alternatives", &files), &[]);
    assert_eq!(rules(&report), [""; 0]);
    // There is only one policy of this name, so the binding in the other directory belongs to it.
    let (report, _) = json(&directory("one-policy", &files[1..3]), &[]);
    assert_eq!(rules(&report), ["absent-params"]);
}

#[test]
fn binding_without_policy_name_binds_only_policies_of_its_directory() {
    let nameless = binding("").replace("policyName: p, ", "");
    let (bound, other) = (policy("p", PLAIN), policy("q", PLAIN));
    let files = [
        ("a/p.yaml", &*bound),
        ("a/b.yaml", &binding("")),
        ("b/q.yaml", &*other),
        ("b/b.yaml", &*nameless),
        ("c/q.yaml", &*other),
    ];
    let (report, _) = json(&directory("nameless-binding", &files), &[]);
    let findings = report["findings"].as_array().unwrap().iter();
    let unbound = findings.filter(|finding| finding["rule"] == "unbound-policy");
    let unbound: Vec<_> = unbound.map(|it| it["file"].as_str().unwrap()).collect();
    assert!(
        matches!(&*unbound, [only] if only.ends_with("c/q.yaml")),
        "{unbound:?}"
    );
}

#[test]
fn ignored_containers_are_not_reported_if_another_policy_checks_them() {
    let check = |list: &str| {
        format!(
            "  validations: [{{expression: 'object.spec.{list}.all(c, \
             !c.?securityContext.?privileged.orValue(false))'}}]\n"
        )
    };
    let own = policy("own", &check("containers"));
    let init = policy("init", &check("?initContainers.orValue([])"));
    let (report, _) = json(&directory("only-containers", &[("a.yaml", &own)]), &[]);
    assert_eq!(rules(&report), ["ignored-containers"]);
    let both = [("a.yaml", &*own), ("b.yaml", &*init)];
    let (report, _) = json(&directory("init-containers", &both), &[]);
    assert_eq!(rules(&report), [""; 0]);
    // A policy for other resources does not check these containers.
    let other = init.replace("pods, pods/ephemeralcontainers", "podtemplates");
    let (report, _) = json(
        &directory("other-containers", &[("a.yaml", &own), ("b.yaml", &other)]),
        &[],
    );
    assert!(rules(&report).contains(&"ignored-containers"), "{report}");
}
