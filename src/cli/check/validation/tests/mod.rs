//! Each row of the table is violated by a case, and each case gives the faults that are expected of it.

mod cases;

use std::path::PathBuf;

use serde_json::Value;

use self::cases::cases;
use super::table::{Ask, BINDING, MUTATING_BINDING, MUTATING_POLICY, POLICY, Row, WEBHOOKS};
use super::{Faults, walk};
use crate::cli::check::finding::Severity;
use crate::cli::input::{Input, Wanted};

/// The kinds of objects that there are rules of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Policy,
    Binding,
    MutatingPolicy,
    MutatingBinding,
    Webhooks,
}

impl Of {
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

/// Reads an object of JSON, and gives what `what` says of it.
fn read<T>(of: Of, object: &Value, what: impl FnOnce(&goyaml::Node) -> T) -> T {
    let text = object.to_string();
    let paths = [PathBuf::from("-")];
    let input = Input::load(&paths, Wanted::Policies, &mut text.as_bytes());
    let document = match of {
        Of::Policy => input.policies.first().map(|policy| &policy.document),
        Of::Binding => input.bindings.first().map(|binding| &binding.document),
        Of::MutatingPolicy => {
            let first = input.mutating_policies.first();
            first.map(|policy| &policy.shared.document)
        }
        Of::MutatingBinding => {
            let first = input.mutating_bindings.first();
            first.map(|binding| &binding.document)
        }
        Of::Webhooks => input.webhooks.first().map(|webhooks| &webhooks.document),
    };
    what(
        &document
            .unwrap_or_else(|| panic!("{text}: {:?}", input.invalid))
            .node,
    )
}

#[test]
fn faults_are_those_of_upstream() {
    for (of, object, expect) in cases() {
        let found = read(of, &object, |node| {
            let mut faults = Faults::default();
            walk::walk(node, of.rows(), &mut faults);
            faults.0
        });
        let found: Vec<_> = found
            .iter()
            .map(|fault| format!("{} {}", fault.rule.id(), fault.field_ref))
            .collect();
        assert_eq!(found, expect, "{object}");
    }
}

/// The rows that hold no others, with the whole path of their field.
fn leaves(rows: &[Row], path: &str) -> Vec<Row> {
    let mut found = Vec::new();
    for row in rows {
        assert!(!row.source.is_empty(), "{}", row.field);
        let parts = [path, row.field];
        let parts = parts.into_iter().filter(|part| !part.is_empty());
        let field = parts.collect::<Vec<_>>().join(".");
        match row.asks {
            Ask::Rows(rows) => found.extend(leaves(rows, &field)),
            _ => found.push(Row {
                field: Box::leak(field.into_boxed_str()),
                ..*row
            }),
        }
    }
    found
}

#[test]
fn each_row_is_violated_by_a_case() {
    let cases = cases();
    for kind in [
        Of::Policy,
        Of::Binding,
        Of::MutatingPolicy,
        Of::MutatingBinding,
        Of::Webhooks,
    ] {
        let mut leaves = leaves(kind.rows(), "");
        if kind == Of::Webhooks {
            // Rules and selectors have the rows of policies.
            let is_shared = |field: &str| field.contains("rules[].") || field.contains("Selector.");
            leaves.retain(|leaf| !is_shared(leaf.field));
        }
        let mut is_violated = vec![false; leaves.len()];
        for (_, object, _) in cases.iter().filter(|(of, ..)| *of == kind) {
            read(kind, object, |node| {
                for (leaf, is_violated) in leaves.iter().zip(&mut is_violated) {
                    let mut faults = Faults::default();
                    walk::walk(node, &[*leaf], &mut faults);
                    *is_violated |= !faults.0.is_empty();
                }
            });
        }
        let left = leaves.iter().zip(is_violated).filter(|(_, is)| !is);
        let left: Vec<_> = left.map(|(leaf, _)| leaf).collect();
        assert!(left.is_empty(), "{left:?}");
    }
}

/// The text that a finding marks is the value, the key, or where it might stand.
#[test]
fn faults_are_marked_where_they_are_written() {
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
    let input = Input::load(&paths, Wanted::Policies, &mut text.as_bytes());
    let found = super::policy(&input.policies[0]);
    let marked: Vec<_> = found
        .iter()
        .map(|found| {
            let place = found.location.place.unwrap();
            let line = found.location.source.as_ref().unwrap().line(place.line);
            let marked: String = line
                .chars()
                .skip(place.column - 1)
                .take(found.location.length)
                .collect();
            assert!(found.refused && found.help.is_some(), "{found:?}");
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

/// An object that was read from a cluster is refused when it is created, and that is no mistake.
#[test]
fn objects_of_a_cluster_are_told_apart() {
    for (uid, severity) in [("", Severity::Error), (", uid: u", Severity::Note)] {
        let text = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: \
             {{name: a, resourceVersion: '12'{uid}}}\nspec: {{policyName: a, validationActions: [Deny]}}"
        );
        let paths = [PathBuf::from("-")];
        let input = Input::load(&paths, Wanted::Policies, &mut text.as_bytes());
        let found = super::binding(&input.bindings[0]);
        let found: Vec<_> = found.iter().map(|it| (it.severity, it.refused)).collect();
        assert_eq!(found, [(severity, true)], "{text}");
    }
}
