use super::super::settings::Settings;
use super::super::{Options, run, run_with};
use super::*;
use crate::cli::probe_check;

fn report(text: &str) -> CheckReport {
    let options = Options {
        paths: vec!["-".into()],
        ..Options::default()
    };
    run(&options, &mut text.as_bytes()).unwrap()
}

/// Returns the rule of each added finding, and the part of `text` at its location.
fn hidden(text: &str) -> Vec<(&'static str, String)> {
    let report = report(text);
    let hidden = report.findings.iter().filter(|finding| finding.is_hidden);
    let mut hidden: Vec<_> = hidden
        .filter(|finding| finding.severity != Severity::Note)
        .map(|finding| {
            let place = finding.location.place.unwrap();
            let line = text.lines().nth(place.line - 1).unwrap();
            let marked = line.chars().skip(place.column - 1);
            let marked: String = marked.take(finding.location.length).collect();
            (finding.rule.id(), marked.trim_matches('"').to_owned())
        })
        .collect();
    hidden.sort();
    hidden
}

const POLICY: &str = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraint:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployment]}
  validations:
  - expression: |
      object.metadata.name != 'Größe' and
      object.spec.replica > 1 and object.spec.paus == true
    message: a
";

#[test]
fn hidden_findings_have_locations_in_the_original_file() {
    let wanted = vec![
        ("undefined-field", ".paus".to_owned()),
        ("undefined-field", ".replica".to_owned()),
        ("unserved-resource", "deployment".to_owned()),
    ];
    let of_written = |text: &str| {
        let mut hidden = hidden(text);
        // The optional field `paused` may be absent, and the second `and` is reported only after the first one is
        // fixed.
        hidden.retain(|(rule, _)| !matches!(*rule, "absent-field" | "syntax"));
        hidden
    };
    assert_eq!(of_written(POLICY), wanted);
    assert_eq!(of_written(&POLICY.replace('\n', "\r\n")), wanted);
    let folded = POLICY.replace("expression: |", "expression: >-");
    assert_eq!(of_written(&folded), wanted);
    let json: serde_json::Value = goyaml::to_json(POLICY).unwrap();
    assert_eq!(of_written(&json.to_string()), wanted);
}

#[test]
fn invalid_match_condition_hides_no_absent_field_findings() {
    let policy = |condition: &str| {
        POLICY
            .replace("matchConstraint:", "matchConstraints:")
            .replace("[deployment]", "[deployments]")
            .replace(
                "  validations:",
                &format!(
                    "  matchConditions: [{{name: a, expression: \"{condition}\"}}]\n  validations:"
                ),
            )
            .replace("'Größe' and\n", "'Größe' &&\n")
            .replace("replica > 1 and object.spec.paus == true", "paused == true")
    };
    let absent = vec![("absent-field", ".paused".to_owned())];
    let invalid = "!object.metadata.name.matches('^(?!a)')";
    assert_eq!(hidden(&policy(invalid)), absent);
    assert!(report(&policy(invalid)).findings.iter().any(|finding| {
        let help = finding.help.as_deref().unwrap_or_default();
        help.ends_with("continuing as if the condition were true")
    }));
    // The condition may exclude objects without the field, or some kinds and operations.
    for guard in [
        "object.spec.paused == 1",
        "has(object.spec.paused) && !",
        "request.operation.matches('(?!a)')",
    ] {
        assert_eq!(hidden(&policy(guard)), [], "{guard}");
    }
}

#[test]
fn failing_match_condition_hides_no_absent_field_findings() {
    let text = POLICY
            .replace("matchConstraint:", "matchConstraints:")
            .replace("[deployment]", "[deployments]")
            .replace(
                "  validations:",
                "  matchConditions: [{name: a, expression: \"namespaceObject.metadata.labels.env == 'a'\"}]\n  validations:",
            )
            .replace("'Größe' and\n", "'Größe' &&\n")
            .replace("replica > 1 and object.spec.paus == true", "paused == true");
    assert_eq!(hidden(&text), [("absent-field", ".paused".to_owned())]);
}

#[test]
fn variable_used_before_its_definition_hides_no_absent_field_findings() {
    let text = POLICY
        .replace("matchConstraint:", "matchConstraints:")
        .replace("[deployment]", "[deployments]")
        .replace(
            "  validations:",
            "  variables:\n  - {name: a, expression: variables.b.paused}\n  \
                 - {name: b, expression: object.spec}\n  validations:",
        )
        .replace("'Größe' and\n", "'Größe' &&\n")
        .replace(
            "object.spec.replica > 1 and object.spec.paus == true",
            "variables.a == true",
        );
    assert_eq!(hidden(&text), [("absent-field", ".paused".to_owned())]);
    let helps = report(&text).findings.into_iter().filter_map(|it| it.help);
    assert!(
        helps
            .into_iter()
            .any(|help| help.ends_with("continuing as if it were declared first"))
    );
}

#[test]
fn rule_with_invalid_reason_or_path_hides_no_findings_about_other_rules() {
    let text = "apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boxes.example.com}
spec:
  group: example.com
  scope: Namespaced
  names: {kind: Box, plural: boxes}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        x-kubernetes-validations:
        - {rule: 'self.metadata.name != oldSelf.metadata.name', reason: Immutable}
        - {rule: has(self.metadata.size)}
";
    let expected = [("undefined-field", "(".to_owned())];
    assert_eq!(hidden(text), expected);
    let path = text
        .replace("reason: Immutable", "fieldPath: .nothing")
        .replace(
            "        x-kubernetes-validations",
            "        properties: {spec: {type: object}}\n        x-kubernetes-validations",
        );
    assert_eq!(hidden(&path), expected);
}

#[test]
fn wrong_scope_hides_no_findings() {
    let text = POLICY
        .replace("matchConstraint:", "matchConstraints:")
        .replace("[apps]", "['']")
        .replace("[deployment]", "[namespaces], scope: Namespaced")
        .replace(
            "object.metadata.name != 'Größe' and\n",
            "object.spec.finalizrs == [] &&\n",
        )
        .replace(
            "object.spec.replica > 1 and object.spec.paus == true",
            "true",
        );
    let wanted = vec![("undefined-field", ".finalizrs".to_owned())];
    assert_eq!(hidden(&text), wanted);
    let help = "did you mean `scope: Cluster`? the policy never runs; continuing as if `Cluster`";
    let written = report(&text);
    let mut helps = written.findings.iter().filter_map(|it| it.help.as_deref());
    assert!(helps.any(|it| it == help));
    let scope_fix = |text: &str| {
        let findings = report(text).findings;
        let finding = findings.iter().find(|it| it.rule == Rule::UnservedResource);
        finding.unwrap().fix.as_ref().map(|fix| fix.text.clone())
    };
    assert_eq!(scope_fix(&text).as_deref(), Some("Cluster"));
    // The resource may be the mistake: `clusterroles` is cluster-scoped.
    let roles = text
        .replace("['']", "[rbac.authorization.k8s.io]")
        .replace("[namespaces], scope: Namespaced", "[roles], scope: Cluster");
    assert_eq!(scope_fix(&roles), None);
    let two = text.replace("[namespaces]", "[namespaces, pods]");
    assert_eq!(scope_fix(&two), None);
}

fn policy(rule: &str, expression: &str) -> String {
    POLICY
        .replace("matchConstraint:", "matchConstraints:")
        .replace(
            "{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployment]}",
            rule,
        )
        .replace("object.metadata.name != 'Größe' and\n", "\n")
        .replace(
            "object.spec.replica > 1 and object.spec.paus == true",
            expression,
        )
}

/// Returns the rule and the help of each finding that is not a note.
fn findings(text: &str) -> Vec<(&'static str, String)> {
    let findings = report(text).findings.into_iter();
    let findings = findings.filter(|finding| finding.severity != Severity::Note);
    findings
        .map(|finding| (finding.rule.id(), finding.help.unwrap_or_default()))
        .collect()
}

#[test]
fn impossible_operation_hides_no_findings_and_has_no_consequences() {
    let rule =
        "{apiGroups: [''], apiVersions: [v1], operations: [DELETE], resources: [pods/eviction]}";
    let help = "write `operations: [CREATE]`; continuing as if `CREATE`".to_owned();
    let text = policy(rule, "object.metadata.nme != 'a'");
    let reported = findings(&text);
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported.contains(&("impossible-operation", help)),
        "{reported:?}"
    );
    assert_eq!(hidden(&text), [("undefined-field", ".nme".to_owned())]);
    let reported = findings(&policy(rule, "object.metadata.name != 'a'"));
    let help = "write `operations: [CREATE]`".to_owned();
    assert_eq!(reported, [("impossible-operation", help)]);
    // `pods` has DELETE requests, so the help suggests to add an operation instead of replacing one.
    let rule = rule.replace("pods/eviction", "pods, pods/eviction");
    let reported = findings(&policy(&rule, "oldObject.metadata.name != 'a'"));
    let help = "add `CREATE` to the operations".to_owned();
    assert_eq!(reported, [("impossible-operation", help)]);
}

#[test]
fn unserved_version_is_replaced_by_its_successor() {
    for (group, version, resource, expression, wanted) in [
        (
            "autoscaling",
            "v2beta2",
            "horizontalpodautoscalers",
            "object.spec.metrics != []",
            "autoscaling/v2 horizontalpodautoscalers",
        ),
        (
            "batch",
            "v1beta1",
            "cronjobs",
            "object.spec.schedule != ''",
            "batch/v1 cronjobs",
        ),
        (
            "flowcontrol.apiserver.k8s.io",
            "v1beta3",
            "flowschemas",
            "object.metadata.name != ''",
            "flowcontrol.apiserver.k8s.io/v1 flowschemas",
        ),
    ] {
        let rule = format!(
            "{{apiGroups: [{group}], apiVersions: [{version}], operations: [CREATE], resources: [{resource}]}}"
        );
        let reported = findings(&policy(&rule, expression));
        let help = format!("did you mean `{wanted}`? the policy never runs");
        let is_expected =
            |(rule, found): &(_, String)| *rule == "unserved-resource" && found.starts_with(&help);
        assert!(reported.iter().any(is_expected), "{reported:?}");
        let is_undefined = |(rule, _): &(_, String)| *rule == "undefined-field";
        assert!(!reported.iter().any(is_undefined), "{reported:?}");
    }
}

#[test]
fn map_size_written_as_field_selection_has_one_finding() {
    let rule =
        "{apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}";
    let help = "`object.data.size` is the value of a key: write `size(object.data)`";
    for (comparison, rule_id) in [
        ("== 0", "incomparable-types"),
        ("<= 3", "no-matching-overload"),
    ] {
        let expression = format!("has(object.data) && object.data.size {comparison}");
        let reported = findings(&policy(rule, &expression));
        let [(id, found_help)] = reported.as_slice() else {
            panic!("{reported:?}")
        };
        assert_eq!(*id, rule_id);
        assert!(found_help.starts_with(help), "{found_help}");
    }
    // The field `data` may be absent, but the help must not suggest a test of the key `size`.
    let reported = findings(&policy(rule, "object.data.size <= 3"));
    assert_eq!(reported.len(), 2, "{reported:?}");
    assert!(
        reported
            .iter()
            .all(|(_, help)| !help.contains("has(object.data.size)"))
    );
}

#[test]
fn errors_of_probe_remain_if_policy_is_corrected() {
    let probe = "---\napiVersion: vap-status.dev/v1alpha1\nkind: PolicyProbe\nmetadata: {name: p}
spec:
  policyName: a
  cases: [{name: c, request: {}, expect: {decision: Denied}}]\n";
    let text = format!("{POLICY}{probe}");
    let options = Options {
        paths: vec!["-".into()],
        ..Options::default()
    };
    let settings = Settings {
        probe_check: Some(probe_check::check),
        ..Settings::default()
    };
    let report = run_with(&options, &settings, &mut text.as_bytes()).unwrap();
    let mut rules = report.findings.iter().map(|finding| finding.rule);
    assert!(rules.any(|rule| rule == Rule::InvalidProbe));
}

#[test]
fn summary_counts_policies_that_fixes_make_readable() {
    let text = POLICY.replace("message: a", "message: 5");
    assert_eq!(report(&text).summary.policies, 1);
    assert_eq!(report(POLICY).summary.policies, 1);
    let unreadable = POLICY.replace("message: a", "message: [a]");
    assert_eq!(report(&unreadable).summary.policies, 0);
}

#[test]
fn invalid_match_condition_removes_no_findings() {
    let text = POLICY
        .replace("matchConstraint:", "matchConstraints:")
        .replace("[deployment]", "[deployments]")
        .replace(
            "  validations:",
            "  matchConditions: [{name: a, expression: variables.a}]\n  \
             variables: [{name: a, expression: object.spec.nothing}]\n  validations:",
        )
        .replace("'Größe' and\n", "'Größe' &&\n")
        .replace(
            "object.spec.replica > 1 and object.spec.paus == true",
            "variables.a",
        );
    let mut rules = report(&text).findings.into_iter().map(|it| it.rule);
    assert!(rules.any(|rule| rule == Rule::UndefinedField));
}

#[test]
fn notes_about_repaired_policy_are_reported() {
    let text = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [acme.io], apiVersions: [v1], operations: [CREATE], resources: [widgets]}
  validations:
  - expression: object.metadata.name == 'a' ? true : false
";
    let rules = |text: &str| -> Vec<&'static str> {
        let findings = report(text).findings;
        findings.iter().map(|it| it.rule.id()).collect()
    };
    assert_eq!(rules(text), ["unknown-resource", "invalid-yaml"]);
    let quoted = text.replace(
        "object.metadata.name == 'a' ? true : false",
        "\"object.metadata.name == 'a'\"",
    );
    assert_eq!(rules(&quoted), ["unknown-resource"]);
}

#[test]
fn null_object_of_a_deletion_hides_no_findings() {
    let text = "apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: a}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [''], apiVersions: [v1], operations: [CREATE, DELETE], resources: [namespaces]}
  validations:
  - expression: request.operation != 'DELETE' || has(object.metadata.labels) && object.metadata.labels['a'] != true
";
    let marked = hidden(text);
    assert!(
        marked.contains(&("incomparable-types", "!=".to_owned())),
        "{marked:?}"
    );
    assert!(
        marked.iter().all(|(rule, _)| *rule != "absent-object"),
        "{marked:?}"
    );
    let findings = report(text).findings;
    let help = findings.iter().filter(|it| it.rule.id() == "absent-object");
    let mut help = help.filter_map(|it| it.help.as_deref());
    assert!(help.any(|it| it.ends_with("continuing as if it were the deleted object")));
}

#[test]
fn fix_that_allows_requests_is_withheld_despite_invalid_validations() {
    let pulled = "object.spec.template.spec.containers.all(c, c.imagePullPolicy == 'always')";
    for other in [
        "object.spec.replicas > 1",
        "size(object.metadata.name",
        "object.metadata.nam == 'x'",
    ] {
        let text = format!(
            "{}  - expression: {other}\n",
            policy(
                "{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}",
                pulled
            )
        );
        let findings = report(&text).findings;
        let mut of_rule = findings
            .iter()
            .filter(|it| it.rule.id() == "impossible-value");
        let finding = of_rule.next().unwrap();
        assert!(finding.fix.is_none(), "{other}: {:?}", finding.fix);
    }
}
