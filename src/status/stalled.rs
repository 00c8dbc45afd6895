//! `Stalled`: whether waiting for a policy to become Ready is in vain.
//!
//! Tools that apply manifests and wait (Flux, `helm --wait`, everything on kstatus) give up at once where it
//! is True, and until their timeout where only `Ready` is False. They may still be applying: what is applied
//! next can be a CRD, params, a binding or a probe. So a failure lasts only where nothing but an edit of the
//! policy itself mends it, which raises its generation and thereby tells that the verdict is of the past.
//!
//! Source: `github.com/fluxcd/cli-utils` `pkg/kstatus/status/generic.go` (`checkGenericProperties`).

use super::condition::Reason;

/// Remedies for a condition that is False.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Nothing but an edit of the policy.
    Edit,
    /// An edit of the policy, unless a schema that it was checked against changes.
    EditOrSchema,
    /// Something beside the policy, for which it may pay to wait.
    Elsewhere,
}

impl Reason {
    /// Returns the remedy for a condition that is False for this reason.
    #[must_use]
    #[expect(
        clippy::match_same_arms,
        reason = "a table: each line has its sentence"
    )]
    pub const fn remedy(self) -> Remedy {
        match self {
            // The text of an expression is wrong, whatever the cluster holds.
            Self::CompilationFailed => Remedy::Edit,
            // The same: the API server cannot evaluate the text, whatever the request is.
            Self::UnsafeExpression => Remedy::Edit,
            // Which resources are exempt is fixed in the API server.
            Self::ExemptResources => Remedy::Edit,
            // The schemas of Kubernetes itself stay; that of a CRD may be the next thing to be applied.
            Self::ExpressionWarnings => Remedy::EditOrSchema,
            // A CRD or an API service may come that serves what the rules name.
            Self::NoServedResources => Remedy::Elsewhere,
            // The CRD of the paramKind may come, however unlikely its name.
            Self::ParamKindNotFound => Remedy::Elsewhere,
            // Its CRD is there and may be established, or serve the version, in a moment.
            Self::ParamKindNotServed => Remedy::Elsewhere,
            // Params are objects of their own, and mostly applied after the policy.
            Self::ParamsNotFound => Remedy::Elsewhere,
            // Bindings are objects of their own; the policy's generation does not tell of their edits.
            Self::NoBindings => Remedy::Elsewhere,
            // The same: the next binding to be applied may be the mended one.
            Self::BindingsInvalid => Remedy::Elsewhere,
            // The probe, a binding or params may be wrong as well as the policy.
            Self::ProbesFailed => Remedy::Elsewhere,
            // Of a probe: the policy may come.
            Self::PolicyNotFound => Remedy::Elsewhere,
            // No condition is False for these: they say that all is well, or that it cannot be told yet.
            Self::AllExpressionsCompile
            | Self::UnsupportedExpression
            | Self::InternalError
            | Self::DeadlineExceeded
            | Self::NoWarnings
            | Self::PartiallyChecked
            | Self::NoTypesToCheck
            | Self::SchemaUnavailable
            | Self::ResourcesServed
            | Self::DiscoveryIncomplete
            | Self::ParamsNotRequired
            | Self::ParamKindServed
            | Self::ParamsFound
            | Self::NotPermitted
            | Self::BindingsFound
            | Self::ProbesPassed
            | Self::NoProbes
            | Self::ProbesPending
            | Self::Ready
            | Self::Pending => Remedy::Elsewhere,
        }
    }
}

/// The groups that Kubernetes itself serves and whose names have a dot, which those of CRDs have as well.
///
/// Source: `k8s.io/kubernetes` `pkg/controlplane/instance.go`, `pkg/master/reconcilers`, and the groups of
/// `k8s.io/api`, of apiextensions-apiserver and of kube-aggregator.
const OWN_GROUPS: [&str; 18] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "flowcontrol.apiserver.k8s.io",
    "internal.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "rbac.authorization.k8s.io",
    "resource.k8s.io",
    "scheduling.k8s.io",
    "storage.k8s.io",
    "storagemigration.k8s.io",
];

/// Reports whether the schemas of a group change with the version of Kubernetes only.
#[must_use]
pub(super) fn is_own_group(group: &str) -> bool {
    // The group of a CRD has a dot.
    !group.contains('.') || OWN_GROUPS.contains(&group)
}
