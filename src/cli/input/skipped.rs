//! Classifies the kinds of objects that a check skips, and detects misspelled kinds.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goyaml::{Data, Entry, Node};

use super::object::{Document, Object};
use super::{Place, Problem, ProblemKind, SourceText};
use crate::policy::nearest::nearest;
use crate::schema::GroupVersion;

const GROUP: &str = "admissionregistration.k8s.io";

/// The field of a kustomize patch that deletes, replaces or merges the object. No API object has it.
pub(super) const PATCH_DIRECTIVE: &str = "$patch";

/// Maximum number of names that are recorded for a kind.
const MAX_NAMES: usize = 1_000;

/// Maximum number of objects that are retained for a kind.
const MAX_OBJECTS: usize = 20;

/// Maximum length of a retained object, in bytes.
const MAX_OBJECT_LEN: usize = 16 << 10;

/// The kinds that are checked.
const CHECKED: [&str; 4] = [
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
    "MutatingAdmissionPolicy",
    "MutatingAdmissionPolicyBinding",
];

/// The kinds of the policies' group that are not checked.
///
/// Source: `k8s.io/api` `admissionregistration/v1/register.go`.
const OTHERS: [&str; 2] = [
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
];

/// A skipped kind: the number of its objects, and the location of the first object.
#[derive(Clone, Debug)]
pub struct SkippedKind {
    /// The number of objects.
    pub n: usize,
    /// The file of the first object.
    pub source: Arc<SourceText>,
    /// The location of the first object in its file.
    pub place: Place,
    /// The namespaces and names of the first objects. A namespace that is not set is empty.
    pub names: BTreeSet<(String, String)>,
    /// The first objects that are shorter than `MAX_OBJECT_LEN`.
    pub objects: Vec<Arc<Object<()>>>,
}

impl SkippedKind {
    /// Returns true if `names` is complete.
    #[must_use]
    pub fn has_all_names(&self) -> bool {
        self.names.len() < MAX_NAMES
    }

    pub(super) fn add(&mut self, document: Document, source: &Arc<SourceText>) {
        self.n += 1;
        let metadata = document.node.get("metadata");
        let text = |name| metadata.and_then(|it| it.get(name)?.as_str());
        let (namespace, name) = (text("namespace").unwrap_or_default(), text("name"));
        if let Some(name) = name
            && self.names.len() < MAX_NAMES
        {
            self.names.insert((namespace.to_owned(), name.to_owned()));
        }
        if self.objects.len() < MAX_OBJECTS && document.node.span.len() < MAX_OBJECT_LEN {
            let object = Object::new(document, source, ());
            self.objects.push(Arc::new(object));
        }
    }
}

/// The skipped objects, by `apiVersion` and `kind`.
pub type ByKind = BTreeMap<(String, String), SkippedKind>;

/// A classification of kinds that are not checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A kind of a different group, or a kind of the policies' group that is not checked.
    Other,
    /// A kind that no API has, with the most similar known kind, if there is one.
    Unknown(Option<&'static str>),
}

/// Returns the entry of a document with the key `name` or, if there is none, with a similar key.
fn key<'d>(document: &'d Document, name: &str) -> Option<(&'d str, &'d Entry)> {
    let Data::Map(entries) = &document.node.data else {
        return None;
    };
    let is_near = |key: &str| key.len() > 3 && nearest(key, std::iter::once(name)).is_some();
    let exact = entries.iter().find(|(key, _)| *key == name);
    exact.or_else(|| entries.iter().find(|(key, _)| is_near(key)))
}

/// Returns true if a document without `apiVersion` or `kind` has the kind of a policy or a binding. The key `kind` may
/// be misspelled.
pub(super) fn is_policy(document: &Document) -> bool {
    let kind = key(document, "kind").and_then(|(_, entry)| entry.node.as_str());
    kind.is_some_and(|kind| CHECKED.contains(&kind))
}

/// Returns true if `document` is a webhook configuration whose webhooks only have names and selectors. Such a document
/// is usually a kustomize patch for a complete configuration.
///
/// Source: `k8s.io/api` `admissionregistration/v1/types.go`, `ValidatingWebhook`.
pub(super) fn is_webhook_patch(kind: &str, document: &Document) -> bool {
    const PATCHED: [&str; 3] = ["name", "namespaceSelector", "objectSelector"];
    let webhooks = document.node.get("webhooks").map_or(&[][..], Node::items);
    let is_partial = |webhook: &Node| match &webhook.data {
        Data::Map(entries) => {
            entries.iter().count() > 1 && entries.iter().all(|(key, _)| PATCHED.contains(&key))
        }
        _ => false,
    };
    OTHERS.contains(&kind) && !webhooks.is_empty() && webhooks.iter().all(is_partial)
}

/// Returns the problem for a kustomize patch that changes an object of `kind`.
pub(super) fn patch(kind: &str, document: &Document, source: &Arc<SourceText>) -> Problem {
    let key = key(document, PATCH_DIRECTIVE).map(|(_, entry)| document.bytes(&entry.key).start);
    Problem {
        kind: ProblemKind::Patch,
        file: source.name.clone(),
        place: key.map(|byte| source.place(byte)),
        source: Some(Arc::clone(source)),
        message: format!("this is a kustomize patch of a {kind}, which is not checked"),
        help: Some("check the output of `kubectl kustomize` instead".to_owned()),
        fix: None,
    }
}

/// Returns the problem of a document without `apiVersion` or `kind`.
pub(super) fn missing_fields(document: &Document, source: &Arc<SourceText>) -> Problem {
    let is_missing = |name: &&str| document.node.get(name).and_then(Node::as_str).is_none();
    let missing: Vec<&str> = ["apiVersion", "kind"]
        .into_iter()
        .filter(is_missing)
        .collect();
    let misspelled = missing.iter().find_map(|name| {
        let (_, entry) = key(document, name).filter(|(key, _)| key != name)?;
        Some((*name, entry))
    });
    let (help, fix) = match misspelled {
        Some((name, entry)) => (
            format!("did you mean `{name}`?"),
            document
                .edit_key(source, &entry.key, name)
                .filter(|_| is_policy(document))
                .map(Box::new),
        ),
        None if missing == ["apiVersion"] && is_policy(document) => {
            (format!("write `apiVersion: {GROUP}/v1`"), None)
        }
        None => {
            let help = "pass only manifests, or a directory, in which other files are skipped";
            (help.to_owned(), None)
        }
    };
    let missing = missing.join("` and `");
    Problem {
        kind: ProblemKind::NotAnObject,
        file: source.name.clone(),
        place: Some(document.place(source, &document.node)),
        source: Some(Arc::clone(source)),
        message: format!("not a Kubernetes object: `{missing}` missing"),
        help: Some(help),
        fix,
    }
}

pub(super) fn kind_of(api_version: &str, kind: &str) -> Kind {
    let (group, _) = GroupVersion::split(api_version);
    let item = kind.strip_suffix("List").unwrap_or(kind);
    if CHECKED.contains(&item) || group == GROUP && OTHERS.contains(&item) {
        return Kind::Other;
    }
    let meant = nearest(kind, CHECKED.into_iter().chain(OTHERS));
    let is_binding = kind.to_lowercase().contains("binding");
    // `ValidatingAdmissionBinding` lacks `Policy`. Therefore, it is more similar to the name of a policy than to the
    // name of a binding.
    let meant = meant.map(|meant| match meant {
        "ValidatingAdmissionPolicy" if is_binding => "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy" if is_binding => "MutatingAdmissionPolicyBinding",
        other => other,
    });
    if group == GROUP {
        return Kind::Unknown(meant);
    }
    // Other groups have their own kinds with similar names. A policy was intended only if the group is also misspelled.
    let is_near = group.is_empty() || nearest(group, std::iter::once(GROUP)).is_some();
    let meant = meant.filter(|meant| CHECKED.contains(meant) && is_near);
    match meant {
        Some(_) => Kind::Unknown(meant),
        None => Kind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelled_kind_is_unknown_with_suggestion() {
        let v1 = "admissionregistration.k8s.io/v1";
        let policy = Kind::Unknown(Some("ValidatingAdmissionPolicy"));
        assert_eq!(kind_of(v1, "ValidatingAdmisionPolicy"), policy);
        assert_eq!(kind_of(v1, "validatingadmissionpolicy"), policy);
        assert_eq!(kind_of("v1", "ValidatingAdmissionPolicies"), policy);
        assert_eq!(
            kind_of("admissionregistraton.k8s.io/v1", "ValidatingAdmisionPolicy"),
            policy
        );
        assert_eq!(kind_of(v1, "Policy"), Kind::Unknown(None));
        let binding = Kind::Unknown(Some("ValidatingAdmissionPolicyBinding"));
        assert_eq!(kind_of(v1, "ValidatingAdmissionBinding"), binding);
        assert_eq!(kind_of(v1, "ValidatingAdmissionPolicyBindings"), binding);
        for (api_version, kind) in [
            (v1, "MutatingAdmissionPolicy"),
            (v1, "ValidatingWebhookConfigurationList"),
            ("policies.kyverno.io/v1", "ValidatingAdmissionPolici"),
            ("policies.kyverno.io/v1", "ValidatingPolicy"),
            ("apps/v1", "Deployment"),
            ("v1", "Pod"),
        ] {
            assert_eq!(kind_of(api_version, kind), Kind::Other, "{kind}");
        }
    }
}
