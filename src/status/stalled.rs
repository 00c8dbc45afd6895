//! Determines which failures make a policy `Stalled`: failures that only an edit of the policy can correct.
//!
//! Some tools apply manifests and then wait (Flux, `helm --wait`, all tools with kstatus). If `Stalled` is True, they
//! fail immediately. If only `Ready` is False, they wait until their timeout. The next manifest may be a CRD, params, a
//! binding or a probe. Therefore a policy is not `Stalled` if another object can correct the failure.
//!
//! An edit of the policy increments its generation, which makes the condition obsolete.
//!
//! Source: `github.com/fluxcd/cli-utils` `pkg/kstatus/status/generic.go` (`checkGenericProperties`).

use super::condition::Reason;

/// The change that can correct a False condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Remedy {
    /// Only an edit of the policy can help.
    Edit,
    /// An edit of the policy, or a change of a checked schema, can help.
    EditOrSchema,
    /// A change of another object can help, so waiting is useful.
    Elsewhere,
}

impl Reason {
    /// Returns the change that can correct a False condition with this reason.
    #[must_use]
    #[expect(
        clippy::match_same_arms,
        reason = "a table in which each entry has its own comment"
    )]
    pub const fn remedy(self) -> Remedy {
        match self {
            // The expression itself has an error.
            Self::CompilationFailed => Remedy::Edit,
            // No change of the cluster makes the expression safe.
            Self::UnsafeExpression => Remedy::Edit,
            // The exempt resources are constant in the API server.
            Self::ExemptResources => Remedy::Edit,
            // Schemas of built-in kinds are constant, but the CRD of a custom kind may change.
            Self::ExpressionWarnings => Remedy::EditOrSchema,
            // A new CRD or APIService may serve the resources.
            Self::NoServedResources => Remedy::Elsewhere,
            // The CRD of the paramKind may be applied later.
            Self::ParamKindNotFound => Remedy::Elsewhere,
            // The CRD may be established or serve the version later.
            Self::ParamKindNotServed => Remedy::Elsewhere,
            // Params are usually applied after the policy.
            Self::ParamsNotFound => Remedy::Elsewhere,
            // Bindings may be applied later.
            Self::NoBindings => Remedy::Elsewhere,
            // The binding may be corrected later.
            Self::BindingsInvalid => Remedy::Elsewhere,
            // The error may be in a probe, a binding or params.
            Self::ProbesFailed => Remedy::Elsewhere,
            // The policy of the probe may be created later.
            Self::PolicyNotFound => Remedy::Elsewhere,
            // Conditions with these reasons are never False.
            Self::AllExpressionsCompile
            | Self::UnsupportedExpression
            | Self::UnknownField
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
