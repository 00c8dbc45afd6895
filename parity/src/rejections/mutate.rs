//! Generates mutants from a seed. A mutant is a valid object with random changes.

use anyhow::{Context as _, Result};
use serde_json::Value;

use super::bases::bases;
use super::tree::Tree;
use super::values::value;
use crate::random::Random;

/// The kind of an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutantKind {
    /// A policy.
    Policy,
    /// A binding.
    Binding,
    /// A mutating policy.
    MutatingPolicy,
    /// A binding of a mutating policy.
    MutatingBinding,
    /// A configuration of validating webhooks.
    ValidatingWebhooks,
    /// A configuration of mutating webhooks.
    MutatingWebhooks,
}

impl MutantKind {
    /// Returns the variant for `kind`. Returns `None` if no variant has this kind.
    #[must_use]
    pub fn from_kind(kind: &str) -> Option<Self> {
        match kind {
            "ValidatingAdmissionPolicy" => Some(Self::Policy),
            "ValidatingAdmissionPolicyBinding" => Some(Self::Binding),
            "MutatingAdmissionPolicy" => Some(Self::MutatingPolicy),
            "MutatingAdmissionPolicyBinding" => Some(Self::MutatingBinding),
            "ValidatingWebhookConfiguration" => Some(Self::ValidatingWebhooks),
            "MutatingWebhookConfiguration" => Some(Self::MutatingWebhooks),
            _ => None,
        }
    }

    /// Returns the plural name of the resource, as in URL paths.
    #[must_use]
    pub fn resource(self) -> &'static str {
        match self {
            Self::Policy => "validatingadmissionpolicies",
            Self::Binding => "validatingadmissionpolicybindings",
            Self::MutatingPolicy => "mutatingadmissionpolicies",
            Self::MutatingBinding => "mutatingadmissionpolicybindings",
            Self::ValidatingWebhooks => "validatingwebhookconfigurations",
            Self::MutatingWebhooks => "mutatingwebhookconfigurations",
        }
    }
}

/// An object that may contain mistakes.
#[derive(Clone, Debug)]
pub struct Mutant {
    /// The kind of the object.
    pub kind: MutantKind,
    /// The source of the object. It is a string, because keys may be duplicated.
    pub text: String,
}

/// The names of allowed fields, by the name of the enclosing field. The first entry is for the document itself.
const FIELDS: [(&str, &[&str]); 19] = [
    ("", &["metadata", "spec", "webhooks", "status", "data"]),
    (
        "metadata",
        &[
            "name",
            "generateName",
            "namespace",
            "labels",
            "annotations",
            "finalizers",
            "ownerReferences",
            "resourceVersion",
            "uid",
            "generation",
            "creationTimestamp",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
            "managedFields",
            "Name",
            "unknown",
        ],
    ),
    (
        "spec",
        &[
            "failurePolicy",
            "paramKind",
            "matchConstraints",
            "matchConditions",
            "variables",
            "validations",
            "auditAnnotations",
            "policyName",
            "paramRef",
            "matchResources",
            "validationActions",
            "failurepolicy",
            "mutations",
            "reinvocationPolicy",
        ],
    ),
    ("paramKind", &["apiVersion", "kind", "name"]),
    (
        "paramRef",
        &[
            "name",
            "namespace",
            "selector",
            "parameterNotFoundAction",
            "kind",
        ],
    ),
    (
        "matchConstraints",
        &[
            "resourceRules",
            "excludeResourceRules",
            "matchPolicy",
            "namespaceSelector",
            "objectSelector",
            "rules",
        ],
    ),
    (
        "matchResources",
        &[
            "resourceRules",
            "excludeResourceRules",
            "matchPolicy",
            "namespaceSelector",
            "objectSelector",
        ],
    ),
    (
        "resourceRules",
        &[
            "apiGroups",
            "apiVersions",
            "operations",
            "resources",
            "resourceNames",
            "scope",
            "verbs",
        ],
    ),
    ("matchExpressions", &["key", "operator", "values", "value"]),
    (
        "validations",
        &[
            "expression",
            "message",
            "messageExpression",
            "reason",
            "mesage",
        ],
    ),
    (
        "mutations",
        &["patchType", "applyConfiguration", "jsonPatch", "expression"],
    ),
    ("applyConfiguration", &["expression", "value"]),
    ("jsonPatch", &["expression", "value"]),
    ("auditAnnotations", &["key", "valueExpression", "value"]),
    ("matchConditions", &["name", "expression", "Expression"]),
    (
        "webhooks",
        &[
            "name",
            "admissionReviewVersions",
            "sideEffects",
            "failurePolicy",
            "matchPolicy",
            "timeoutSeconds",
            "reinvocationPolicy",
            "clientConfig",
            "namespaceSelector",
            "objectSelector",
            "rules",
            "matchConditions",
            "Name",
        ],
    ),
    (
        "rules",
        &[
            "apiGroups",
            "apiVersions",
            "operations",
            "resources",
            "scope",
            "resourceNames",
        ],
    ),
    ("clientConfig", &["url", "service", "caBundle", "uri"]),
    (
        "service",
        &["namespace", "name", "path", "port", "targetPort"],
    ),
];

/// Generates `n` mutants. The same seed gives the same mutants.
///
/// # Errors
/// Returns an error if there are no valid objects to change.
pub fn mutants(seed: u64, n: u64) -> Result<Vec<Mutant>> {
    mutants_of(&bases()?, "refusals", seed, n, |_, _| false)
}

/// Generates `n` mutants of `bases`. The first change of a mutant may be made by `change_one`, which then returns true.
/// All other changes are random.
pub(super) fn mutants_of(
    bases: &[Value],
    key: &str,
    seed: u64,
    n: u64,
    change_one: impl Fn(&mut Value, &mut Random) -> bool,
) -> Result<Vec<Mutant>> {
    (0..n)
        .map(|n| {
            let mut random = Random::for_event(seed, key, n);
            let mut base = random.choose(bases).context("no bases")?.clone();
            let kind = base.get("kind").and_then(Value::as_str);
            let kind = kind.and_then(MutantKind::from_kind);
            let kind = kind.context("a base object has an unknown kind")?;
            // One in twenty objects is not changed. One in five is changed twice.
            let mut n_changes = match random.below(20) {
                0 => 0,
                1..=15 => 1,
                _ => 2,
            };
            if n_changes > 0 && change_one(&mut base, &mut random) {
                n_changes -= 1;
            }
            let mut tree = Tree::from(base);
            for _ in 0..n_changes {
                change(&mut tree, &mut random);
            }
            Ok(Mutant {
                kind,
                text: tree.to_string(),
            })
        })
        .collect()
}

/// Changes a random value in `tree`. Does not change `apiVersion` and `kind`.
fn change(tree: &mut Tree, random: &mut Random) {
    let is_of_kind = |name: &str| name == "apiVersion" || name == "kind";
    let at = usize::try_from(random.below(tree.count().try_into().unwrap_or(1))).unwrap_or(0);
    let is_top = match &*tree {
        // In depth-first order, the first field of the document has the index 1. The index of each further field
        // follows those of all values in the previous field.
        Tree::Map(fields) => {
            let mut start = 1;
            fields.iter().any(|(name, field)| {
                let is_here = start == at && is_of_kind(name);
                start += field.count();
                is_here
            })
        }
        _ => false,
    };
    let Some((name, node)) = tree.nth(at) else {
        return;
    };
    if is_top {
        return;
    }
    let name = name.to_owned();
    let is_document = at == 0;
    match node {
        Tree::Map(fields) => match random.below(10) {
            0 if !fields.is_empty() => {
                let n = index(fields.len(), random);
                if !(is_document && fields.get(n).is_some_and(|(name, _)| is_of_kind(name))) {
                    fields.remove(n);
                }
            }
            1 if !fields.is_empty() => {
                let n = index(fields.len(), random);
                if let Some(field) = fields.get(n).cloned() {
                    fields.push(field);
                }
            }
            2..=7 => {
                let entry = FIELDS
                    .iter()
                    .find(|(of, _)| *of == name || of.is_empty() && is_document);
                let names = entry.map_or(&["a"][..], |(_, names)| names);
                let field = random.choose(names).copied().unwrap_or("a");
                let value = value(field, random);
                node.set(field, value.into());
            }
            _ if !is_document => *node = value(&name, random).into(),
            _ => {}
        },
        Tree::List(items) => match random.below(6) {
            0 if !items.is_empty() => {
                let n = index(items.len(), random);
                items.remove(n);
            }
            1 if !items.is_empty() => {
                let n = index(items.len(), random);
                if let Some(item) = items.get(n).cloned() {
                    items.push(item);
                }
            }
            2 => items.push(value("", random).into()),
            _ => *node = value(&name, random).into(),
        },
        Tree::Scalar(_) => *node = value(&name, random).into(),
    }
}

fn index(len: usize, random: &mut Random) -> usize {
    let n = random.below(len.try_into().unwrap_or(1));
    usize::try_from(n).unwrap_or(0)
}
