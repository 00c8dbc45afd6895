//! Defines which failures make a policy `Stalled`: failures that only an edit of the policy can correct.
//!
//! Tools that apply manifests and wait (Flux, `helm --wait`, all tools that use kstatus) fail immediately if `Stalled`
//! is True, but only after their timeout if `Ready` is False. The next manifest that such a tool applies may be a CRD,
//! params, a binding or a probe. Therefore a policy is `Stalled` only if no other object can correct the failure. An
//! edit of the policy increments its generation, which makes the condition outdated.
//!
//! Source: `github.com/fluxcd/cli-utils` `pkg/kstatus/status/generic.go` (`checkGenericProperties`).

use super::condition::Reason;

/// The change that can correct a condition that is False.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Only an edit of the policy can correct the condition.
    Edit,
    /// An edit of the policy, or a change of a schema for which it was checked, can correct the condition.
    EditOrSchema,
    /// A change of another object can correct the condition, so waiting may help.
    Elsewhere,
}

impl Reason {
    /// Returns the remedy for a condition that is False for this reason.
    #[must_use]
    #[expect(
        clippy::match_same_arms,
        reason = "a table in which each entry has its own comment"
    )]
    pub const fn remedy(self) -> Remedy {
        match self {
            // The expression has an error that does not depend on the cluster.
            Self::CompilationFailed => Remedy::Edit,
            // The API server cannot evaluate the expression safely for any request.
            Self::UnsafeExpression => Remedy::Edit,
            // The list of exempt resources is fixed in the API server.
            Self::ExemptResources => Remedy::Edit,
            // The schemas of built-in kinds do not change, but the CRD of a custom kind may be applied later.
            Self::ExpressionWarnings => Remedy::EditOrSchema,
            // A new CRD or APIService may serve the resources.
            Self::NoServedResources => Remedy::Elsewhere,
            // The CRD of the paramKind may be applied later, even if its name looks misspelled.
            Self::ParamKindNotFound => Remedy::Elsewhere,
            // The CRD exists, and may soon be established or serve the version.
            Self::ParamKindNotServed => Remedy::Elsewhere,
            // Params are separate objects, and are usually applied after the policy.
            Self::ParamsNotFound => Remedy::Elsewhere,
            // Bindings are separate objects; their edits do not change the policy's generation.
            Self::NoBindings => Remedy::Elsewhere,
            // A binding is a separate object, and a later manifest may correct it.
            Self::BindingsInvalid => Remedy::Elsewhere,
            // The error may be in the probe, a binding or params instead of the policy.
            Self::ProbesFailed => Remedy::Elsewhere,
            // The policy of a probe may be created later.
            Self::PolicyNotFound => Remedy::Elsewhere,
            // No condition is False for these reasons: the status is True or Unknown.
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
