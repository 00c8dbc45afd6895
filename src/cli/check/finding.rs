//! What the check finds, as data.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::cli::input::{Place, SourceText};

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The API server refuses the policy, or it cannot work.
    Error,
    /// Something may fail when the policy is evaluated.
    Warning,
    /// Worth knowing: what could not be checked.
    Note,
}

impl Severity {
    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The name of the rule, `undefined-field`; stable.
    pub rule: &'static str,
    /// What is wrong, in one line.
    pub message: String,
    /// What follows, or what to do; in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// Where.
    #[serde(flatten)]
    pub location: Location,
    /// The name of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The field of the policy, `spec.validations[0].expression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<String>,
    /// The kinds that it is about, `apps/v1 Deployment`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
}

/// A stretch of a line of a file.
#[derive(Clone, Debug)]
pub struct Location {
    /// The name of the file.
    pub file: String,
    /// Its text, where it was read.
    pub source: Option<Arc<SourceText>>,
    /// Where it begins; `None` where it is about the file as a whole.
    pub place: Option<Place>,
    /// How many code points it has, all on one line; at least 1.
    pub length: usize,
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            file: &'a str,
            line: Option<usize>,
            column: Option<usize>,
            end_column: Option<usize>,
        }
        Shape {
            file: &self.file,
            line: self.place.map(|place| place.line),
            column: self.place.map(|place| place.column),
            end_column: self.place.map(|place| place.column + self.length),
        }
        .serialize(serializer)
    }
}

/// A rule of the check: its name, and one sentence of what it finds.
pub type Rule = (&'static str, &'static str);

/// All rules, sorted by name.
pub static RULES: &[Rule] = &[
    (
        "broken-check",
        "the check of a policy broke off on an error of this program",
    ),
    (
        "compilation-failed",
        "the API server refuses the expression",
    ),
    ("duplicate-key", "a key is given twice; the last one counts"),
    (
        "duplicate-name",
        "a probe is given twice, or a policy that a probe is about",
    ),
    (
        "exempt-resource",
        "a rule matches a resource that no API server asks a policy about",
    ),
    (
        "expression-warning",
        "the expression may fail when it is evaluated",
    ),
    ("invalid-literal", "a function refuses its literal argument"),
    (
        "invalid-object",
        "the document does not have the shape of its kind",
    ),
    (
        "invalid-optional-selection",
        "an optional selection is malformed",
    ),
    ("invalid-probe", "the API server refuses the PolicyProbe"),
    ("invalid-value", "the API server refuses the value"),
    ("invalid-yaml", "the document is no YAML"),
    (
        "limit-exceeded",
        "the expression exceeds a limit of the API server",
    ),
    (
        "newer-function",
        "a function or macro that the API server of --kubernetes-version does not have",
    ),
    (
        "no-crds",
        "nothing that --crds names holds a CustomResourceDefinition",
    ),
    (
        "no-field-selection",
        "a field is selected from a type that has none",
    ),
    (
        "no-matching-overload",
        "no overload takes arguments of these types",
    ),
    (
        "not-a-range",
        "a macro iterates over a type that cannot be iterated over",
    ),
    ("not-an-object", "the document is no Kubernetes object"),
    ("not-checked", "types that could not be checked, and why"),
    (
        "old-version",
        "the policy is of a version that Kubernetes does not serve",
    ),
    ("param-kind-not-found", "nothing serves the paramKind"),
    (
        "required",
        "something that the API server requires is missing",
    ),
    (
        "result-type",
        "the expression gives a value of the wrong type",
    ),
    ("syntax", "the expression is not CEL"),
    ("type-mismatch", "a type other than the expected one"),
    (
        "unbound-policy",
        "no binding among the input names the policy",
    ),
    (
        "undeclared-reference",
        "a name or function that nothing declares",
    ),
    ("undefined-field", "a field that the schema does not have"),
    ("unknown-field", "a field that the kind does not have"),
    (
        "unknown-param-kind",
        "nothing is known of the paramKind; name its CRD with --crds",
    ),
    (
        "unknown-policy",
        "a binding or probe names a policy that is not among the input",
    ),
    (
        "unknown-resource",
        "nothing is known of the resource; name its CRD with --crds",
    ),
    ("unreadable", "a file or directory cannot be read"),
    ("unresolved-type", "a type that is named but not declared"),
    (
        "unsafe-expression",
        "accepted by the API server, which cannot evaluate it safely",
    ),
    (
        "unserved-resource",
        "a rule names a resource that Kubernetes does not serve",
    ),
    (
        "unsupported-expression",
        "valid CEL that cannot be judged here",
    ),
    (
        "wrong-api-version",
        "no API has the kind under this apiVersion",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_and_named_once() {
        assert!(RULES.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }
}
