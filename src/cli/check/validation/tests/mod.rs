//! Tests that each case has the expected violations, and that some case violates each constraint of `table`.

mod cases;

use std::path::PathBuf;

use serde_json::Value;

use self::cases::cases;
use super::table::{BINDING, Constraint, MUTATING_BINDING, MUTATING_POLICY, POLICY, Row, WEBHOOKS};
use super::{Violations, walk};
use crate::cli::check::finding::Severity;
use crate::cli::input::{Input, KindFilter};

/// The kinds of objects with constraints.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    Policy,
    Binding,
    MutatingPolicy,
    MutatingBinding,
    Webhooks,
}

impl Subject {
    fn rows(self) -> &'static [Row] {
        match self {
            Self::Policy => POLICY,
            Self::Binding => BINDING,
            Self::MutatingPolicy => MUTATING_POLICY,
            Self::MutatingBinding => MUTATING_BINDING,
            Self::Webhooks => WEBHOOKS,
        }
    }
}

/// Reads a JSON object and calls `check` with its node.
fn read<T>(subject: Subject, object: &Value, check: impl FnOnce(&goyaml::Node) -> T) -> T {
    let text = object.to_string();
    let paths = [PathBuf::from("-")];
    let input = Input::load(&paths, KindFilter::Policies, &mut text.as_bytes());
    let document = match subject {
        Subject::Policy => input.policies.first().map(|policy| &policy.document),
        Subject::Binding => input.bindings.first().map(|binding| &binding.document),
        Subject::MutatingPolicy => {
            let first = input.mutating_policies.first();
            first.map(|policy| &policy.shared.document)
        }
        Subject::MutatingBinding => {
            let first = input.mutating_bindings.first();
            first.map(|binding| &binding.document)
        }
        Subject::Webhooks => input.webhooks.first().map(|webhooks| &webhooks.document),
    };
    check(
        &document
            .unwrap_or_else(|| panic!("{text}: {:?}", input.invalid))
            .node,
    )
}

#[test]
fn invalid_object_has_same_violations_as_upstream() {
    for (subject, object, expect) in cases() {
        let violations = read(subject, &object, |node| {
            let mut violations = Violations::default();
            walk::walk(node, subject.rows(), &mut violations);
            violations.0
        });
        let violations: Vec<_> = violations
            .iter()
            .map(|violation| format!("{} {}", violation.rule.id(), violation.field_ref))
            .collect();
        assert_eq!(violations, expect, "{object}");
    }
}

/// Returns the rows that have no nested rows, each with the full path of its field.
fn leaves(rows: &[Row], path: &str) -> Vec<Row> {
    let mut all = Vec::new();
    for row in rows {
        assert!(!row.source.is_empty(), "{}", row.field);
        let parts = [path, row.field];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let field = parts.collect::<Vec<_>>().join(".");
        match row.constraint {
            Constraint::Rows(rows) => all.extend(leaves(rows, &field)),
            _ => all.push(Row {
                field: Box::leak(field.into_boxed_str()),
                ..*row
            }),
        }
    }
    all
}

#[test]
fn each_constraint_is_violated_by_a_case() {
    let cases = cases();
    for kind in [
        Subject::Policy,
        Subject::Binding,
        Subject::MutatingPolicy,
        Subject::MutatingBinding,
        Subject::Webhooks,
    ] {
        let mut leaves = leaves(kind.rows(), "");
        if kind == Subject::Webhooks {
            // Webhooks and policies share the rows for rules and selectors. The cases of policies already test these
            // rows.
            let is_shared = |field: &str| field.contains("rules[].") || field.contains("Selector.");
            leaves.retain(|leaf| !is_shared(leaf.field));
        }
        let mut is_violated = vec![false; leaves.len()];
        for (_, object, _) in cases.iter().filter(|(subject, ..)| *subject == kind) {
            read(kind, object, |node| {
                for (leaf, is_violated) in leaves.iter().zip(&mut is_violated) {
                    let mut violations = Violations::default();
                    walk::walk(node, &[*leaf], &mut violations);
                    *is_violated |= !violations.0.is_empty();
                }
            });
        }
        let left = leaves.iter().zip(is_violated).filter(|(_, is)| !is);
        let left: Vec<_> = left.map(|(leaf, _)| leaf).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// Checks that a finding marks the invalid value or key, or the nearest ancestor of a missing field.
#[test]
fn findings_are_located_at_invalid_values() {
    let text = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: \"My Policy\", labels: {'a b': c, d: 'e f'}}
spec:
  failurePolicy: 'ignore'
  matchConstraints:
    resourceRules:
    - apiGroups: [apps]
      apiVersions: [\"*\", v1]
      operations: [\"create\"]
      resources: [deployments]
    objectSelector:
      matchExpressions: [{key: a, operator: \"in\"}]
  validations:
  - expression: 'true'
    reason: >-
      NotFound
    message: |
      a
      b
";
    let paths = [PathBuf::from("-")];
    let input = Input::load(&paths, KindFilter::Policies, &mut text.as_bytes());
    let findings = super::policy(&input.policies[0]);
    let marked: Vec<_> = findings
        .iter()
        .map(|finding| {
            let place = finding.location.place.unwrap();
            let line = finding.location.source.as_ref().unwrap().line(place.line);
            let marked: String = line
                .chars()
                .skip(place.column - 1)
                .take(finding.location.length)
                .collect();
            assert!(finding.rejected && finding.help.is_some(), "{finding:?}");
            marked
        })
        .collect();
    assert_eq!(
        marked,
        [
            "\"My Policy\"",
            "'a b'",
            "'e f'",
            "'ignore'",
            "\"in\"",
            "\"create\"",
            "[\"*\", v1]",
            "a",
            "NotFound",
        ]
    );
}

/// Checks that the resource version of an object with a uid is only a note, because a cluster has set both fields.
#[test]
fn binding_with_uid_and_resource_version_has_note() {
    for (uid, severity) in [("", Severity::Error), (", uid: u", Severity::Note)] {
        let text = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: \
             {{name: a, resourceVersion: '12'{uid}}}\nspec: {{policyName: a, validationActions: [Deny]}}"
        );
        let paths = [PathBuf::from("-")];
        let input = Input::load(&paths, KindFilter::Policies, &mut text.as_bytes());
        let findings = super::binding(&input.bindings[0]);
        let findings: Vec<_> = findings
            .iter()
            .map(|it| (it.severity, it.rejected))
            .collect();
        assert_eq!(findings, [(severity, true)], "{text}");
    }
}
