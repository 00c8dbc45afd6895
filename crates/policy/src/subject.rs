//! Subjects: the objects that are checked. Defines the table of their kinds, and the identity of a subject.
//!
//! Each kind is a variant of [`SubjectKind`]. Its [`Row`] contains its names, resources and versions.

use std::fmt;
use std::sync::Arc;

/// A kind of object with expressions and rules to check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SubjectKind {
    /// A policy that validates requests.
    #[default]
    ValidatingAdmissionPolicy,
    /// A policy that changes the objects of requests.
    MutatingAdmissionPolicy,
    /// A configuration of validating webhooks. Each webhook is checked like a policy.
    ValidatingWebhookConfiguration,
    /// A configuration of mutating webhooks. Each webhook is checked like a policy.
    MutatingWebhookConfiguration,
    /// A CRD. Its validation rules apply to objects instead of requests.
    CustomResourceDefinition,
}

/// The properties of a subject kind.
#[derive(Debug)]
pub struct Row {
    /// The name of the kind.
    pub kind: &'static str,
    /// The plural name of the resource.
    pub plural: &'static str,
    /// The API group.
    pub group: &'static str,
    /// The served versions. The preferred version is first.
    pub versions: &'static [&'static str],
    /// The plural name of the resource of bindings. `None` if the kind has no bindings.
    pub bindings: Option<&'static str>,
    /// The kind of the objects that store the conditions. `None` if the subject has them in its own status.
    pub status_object: Option<StatusObjectKind>,
    /// Other names for the resource on the command line.
    pub aliases: &'static [&'static str],
    /// The noun that messages use for a subject of this kind.
    pub noun: &'static str,
    /// The noun for the part of a subject that an API server evaluates for a request, as used in messages.
    pub evaluated: &'static str,
    /// The clause in messages about a subject that matches no request.
    pub never_runs: &'static str,
}

/// A kind of objects that store the conditions of subjects. The subjects have no status for conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct StatusObjectKind {
    /// The name of the kind.
    pub kind: &'static str,
    /// The plural name of the resource.
    pub plural: &'static str,
}

const ADMISSION: &str = "admissionregistration.k8s.io";

const VALIDATING_POLICIES: Row = Row {
    kind: "ValidatingAdmissionPolicy",
    plural: "validatingadmissionpolicies",
    group: ADMISSION,
    versions: &["v1"],
    bindings: Some("validatingadmissionpolicybindings"),
    status_object: None,
    aliases: &["vap", "vaps", "validatingadmissionpolicy"],
    noun: "policy",
    evaluated: "policy",
    never_runs: "the policy never runs",
};

const MUTATING_POLICIES: Row = Row {
    kind: "MutatingAdmissionPolicy",
    plural: "mutatingadmissionpolicies",
    group: ADMISSION,
    versions: &["v1", "v1beta1", "v1alpha1"],
    bindings: Some("mutatingadmissionpolicybindings"),
    status_object: Some(StatusObjectKind {
        kind: "MutatingAdmissionPolicyStatus",
        plural: "mutatingadmissionpolicystatuses",
    }),
    aliases: &["map", "maps", "mutatingadmissionpolicy"],
    noun: "policy",
    evaluated: "policy",
    never_runs: "the policy never runs",
};

const VALIDATING_WEBHOOKS: Row = Row {
    kind: "ValidatingWebhookConfiguration",
    plural: "validatingwebhookconfigurations",
    group: ADMISSION,
    versions: &["v1"],
    bindings: None,
    status_object: Some(StatusObjectKind {
        kind: "ValidatingWebhookConfigurationStatus",
        plural: "validatingwebhookconfigurationstatuses",
    }),
    aliases: &["vwc", "validatingwebhookconfiguration"],
    noun: "webhook configuration",
    evaluated: "webhook",
    never_runs: "the webhook is never called",
};

const MUTATING_WEBHOOKS: Row = Row {
    kind: "MutatingWebhookConfiguration",
    plural: "mutatingwebhookconfigurations",
    group: ADMISSION,
    versions: &["v1"],
    bindings: None,
    status_object: Some(StatusObjectKind {
        kind: "MutatingWebhookConfigurationStatus",
        plural: "mutatingwebhookconfigurationstatuses",
    }),
    aliases: &["mwc", "mutatingwebhookconfiguration"],
    noun: "webhook configuration",
    evaluated: "webhook",
    never_runs: "the webhook is never called",
};

const DEFINITIONS: Row = Row {
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    group: "apiextensions.k8s.io",
    versions: &["v1"],
    bindings: None,
    status_object: Some(StatusObjectKind {
        kind: "CustomResourceDefinitionStatus",
        plural: "customresourcedefinitionstatuses",
    }),
    aliases: &["crd", "crds", "customresourcedefinition"],
    noun: "definition",
    evaluated: "definition",
    never_runs: "the rules never run",
};

impl Row {
    /// Returns true if the command-line argument `resource` names the kind.
    #[must_use]
    pub fn is_named(&self, resource: &str) -> bool {
        resource == self.plural || self.aliases.contains(&resource)
    }
}

impl SubjectKind {
    /// All kinds.
    pub const ALL: [Self; 5] = [
        Self::ValidatingAdmissionPolicy,
        Self::MutatingAdmissionPolicy,
        Self::ValidatingWebhookConfiguration,
        Self::MutatingWebhookConfiguration,
        Self::CustomResourceDefinition,
    ];

    /// Returns the properties of the kind.
    #[must_use]
    pub const fn row(self) -> &'static Row {
        match self {
            Self::ValidatingAdmissionPolicy => &VALIDATING_POLICIES,
            Self::MutatingAdmissionPolicy => &MUTATING_POLICIES,
            Self::ValidatingWebhookConfiguration => &VALIDATING_WEBHOOKS,
            Self::MutatingWebhookConfiguration => &MUTATING_WEBHOOKS,
            Self::CustomResourceDefinition => &DEFINITIONS,
        }
    }

    /// Returns the name of the kind.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.row().kind
    }

    /// Returns the plural name of the resource.
    #[must_use]
    pub const fn plural(self) -> &'static str {
        self.row().plural
    }

    /// Returns true for a configuration of webhooks.
    #[must_use]
    pub const fn is_webhooks(self) -> bool {
        matches!(
            self,
            Self::ValidatingWebhookConfiguration | Self::MutatingWebhookConfiguration
        )
    }

    /// Returns the kind with the name `kind`. `None` if there is no such kind.
    #[must_use]
    pub fn from_kind(kind: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.as_str() == kind)
    }

    /// Returns the kind whose resource has the plural name `plural`. `None` if there is no such kind.
    #[must_use]
    pub fn from_plural(plural: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.plural() == plural)
    }

    /// Returns the kinds whose conditions are stored in separate objects. The controller watches such a kind only if a
    /// flag enables it.
    pub fn opt_in() -> impl Iterator<Item = Self> {
        let all = Self::ALL.into_iter();
        all.filter(|kind| kind.row().status_object.is_some())
    }
}

impl fmt::Display for SubjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The identity of a subject: its kind and name. All subjects are cluster-scoped.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SubjectId {
    /// The kind of the subject.
    pub kind: SubjectKind,
    /// The name. It is unique among the subjects of the kind.
    pub name: Arc<str>,
}

impl SubjectId {
    /// Returns the identity of the object with this kind and name.
    pub fn new(kind: SubjectKind, name: impl Into<Arc<str>>) -> Self {
        Self {
            kind,
            name: name.into(),
        }
    }

    /// Returns the identity of the `ValidatingAdmissionPolicy` with this name.
    pub fn policy(name: impl Into<Arc<str>>) -> Self {
        Self::new(SubjectKind::ValidatingAdmissionPolicy, name)
    }
}

/// Writes the resource and the name. For a `ValidatingAdmissionPolicy`, writes only the name.
impl fmt::Display for SubjectId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            SubjectKind::ValidatingAdmissionPolicy => f.write_str(&self.name),
            kind => write!(f, "{}/{}", kind.plural(), self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn subject_kind_names_are_distinct_and_consistent() {
        for kind in SubjectKind::ALL {
            let row = kind.row();
            assert_eq!(SubjectKind::from_kind(row.kind), Some(kind));
            assert_eq!(SubjectKind::from_plural(row.plural), Some(kind));
            assert!(row.aliases.contains(&&*row.kind.to_lowercase()));
            if let Some(object) = &row.status_object {
                assert_eq!(object.kind, format!("{}Status", row.kind));
                assert_eq!(object.plural, format!("{}es", object.kind.to_lowercase()));
            }
        }
        assert_eq!(SubjectKind::from_kind("ConfigMap"), None);
    }

    #[test]
    fn displayed_id_has_resource_except_for_validating_policies() {
        assert_eq!(SubjectId::policy("a").to_string(), "a");
        let crd = SubjectId::new(SubjectKind::CustomResourceDefinition, "a");
        assert_eq!(crd.to_string(), "customresourcedefinitions/a");
    }
}
