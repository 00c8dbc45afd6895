//! Defines the condition types, statuses and reasons that this controller writes, and how conditions are created and
//! merged.
//!
//! Condition types and reasons are an API, because alerts and scripts match on them. New types and reasons may be
//! added, but existing ones must not be renamed.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::message;
use crate::policy::subject::SubjectKind;

/// A condition type that this controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionType {
    /// True unless a condition that `--ready-requires` lists is False or not known yet.
    Ready,
    /// Every expression compiles.
    Compiled,
    /// A rule matches a resource that the cluster serves.
    ResourcesMatched,
    /// The paramKind is served.
    ParamsResolved,
    /// The expressions have no type errors for the schemas of the matched kinds.
    TypeChecked,
    /// All probes of the policy pass.
    ProbesPassed,
    /// Bindings enforce the policy.
    Bound,
    /// `Ready` is False, and only an edit of the policy can change that. The condition is absent otherwise. It is the
    /// only condition whose healthy status is not True, because kstatus requires it (ADR 13).
    Stalled,
}

impl ConditionType {
    /// The types that each policy has: `Ready`, then the other types in the order in which `Ready` reports their
    /// failures.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
        Self::Bound,
    ];

    /// All types, in the order in which they are written to the status.
    pub const WRITTEN: [Self; 8] = [
        Self::Ready,
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
        Self::Bound,
        Self::Stalled,
    ];

    /// The types that `Ready` requires by default. `Bound` is not among them, because policies are often created before
    /// they are bound.
    pub const COUNTING: [Self; 5] = [
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
    ];

    /// Returns the value of the field `type` in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Ready => "Ready",
            Self::Compiled => "Compiled",
            Self::ResourcesMatched => "ResourcesMatched",
            Self::ParamsResolved => "ParamsResolved",
            Self::TypeChecked => "TypeChecked",
            Self::ProbesPassed => "ProbesPassed",
            Self::Bound => "Bound",
            Self::Stalled => "Stalled",
        }
    }

    /// Returns true if subjects of the kind `kind` have conditions of this type.
    #[must_use]
    pub const fn exists_for(self, kind: SubjectKind) -> bool {
        match self {
            Self::Ready
            | Self::Compiled
            | Self::TypeChecked
            | Self::ProbesPassed
            | Self::Stalled => true,
            Self::ParamsResolved | Self::Bound => kind.row().bindings.is_some(),
            // The rules of a CustomResourceDefinition validate its objects. They match no other resources.
            Self::ResourcesMatched => !matches!(kind, SubjectKind::CustomResourceDefinition),
        }
    }

    /// Returns the position of the type in tables and reports.
    #[must_use]
    pub const fn display_position(self) -> usize {
        match self {
            Self::Ready => 0,
            Self::Compiled => 1,
            Self::TypeChecked => 2,
            Self::ResourcesMatched => 3,
            Self::ParamsResolved => 4,
            Self::Bound => 5,
            Self::ProbesPassed => 6,
            Self::Stalled => 7,
        }
    }

    /// Returns true if conditions of this type can be computed from the files of a policy, without a cluster.
    #[must_use]
    pub const fn needs_only_files(self) -> bool {
        match self {
            Self::Compiled | Self::ResourcesMatched | Self::ParamsResolved | Self::TypeChecked => {
                true
            }
            Self::Ready | Self::ProbesPassed | Self::Bound | Self::Stalled => false,
        }
    }

    /// Parses the name of a type. Returns `None` if only other controllers write conditions of this type.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::WRITTEN
            .into_iter()
            .find(|type_| type_.as_str() == name)
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The status of a condition. `True` is healthy for all types except `Stalled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionStatus {
    /// The condition holds.
    True,
    /// The condition does not hold.
    False,
    /// The controller cannot determine whether the condition holds.
    Unknown,
}

impl ConditionStatus {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// Returns the value of the field `status` in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// Parses the status of an API condition. All values except `True` and `False` are `Unknown`.
    #[must_use]
    pub fn from_condition(condition: &Condition) -> Self {
        match condition.status.as_str() {
            "True" => Self::True,
            "False" => Self::False,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for ConditionStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Defines the enum [`Reason`]. The names of its variants are the values of the field `reason` in the API.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// The reason of a condition.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Returns the value of the field `reason` in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Parses the name of a reason. Returns `None` if only other controllers write this reason.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
            }
        }
    };
}

reasons! {
    /// `Compiled` True.
    AllExpressionsCompile,
    /// `Compiled` False: the API server rejects an expression. `TypeChecked` Unknown: no expression compiles.
    CompilationFailed,
    /// `Compiled` False: the API server accepts an expression that it cannot evaluate safely.
    UnsafeExpression,
    /// `Compiled`, and `TypeChecked` of a CustomResourceDefinition, Unknown: valid CEL that this controller does not
    /// support.
    UnsupportedExpression,
    /// `Compiled`, `TypeChecked`, `ResourcesMatched` Unknown: the check of this policy panicked.
    InternalError,
    /// `Compiled`, `TypeChecked`, `ResourcesMatched` Unknown: the check of this policy exceeded its time limit.
    DeadlineExceeded,
    /// `TypeChecked` True: all kinds were checked.
    NoWarnings,
    /// `TypeChecked` True: no warnings, but not everything could be checked.
    PartiallyChecked,
    /// `TypeChecked` False.
    ExpressionWarnings,
    /// `TypeChecked` Unknown: the rules match no kind that can be checked.
    NoTypesToCheck,
    /// `TypeChecked` Unknown: no matched kind has a usable schema.
    SchemaUnavailable,
    /// `ResourcesMatched` True.
    ResourcesServed,
    /// `ResourcesMatched` False: no rule matches a served resource, so the policy is never evaluated.
    NoServedResources,
    /// `ResourcesMatched` False: the rules match only resources for which API servers never evaluate admission
    /// policies.
    ExemptResources,
    /// `ResourcesMatched`, `ParamsResolved` Unknown: an API group could not be discovered.
    DiscoveryIncomplete,
    /// `ParamsResolved` True: the policy has no paramKind.
    ParamsNotRequired,
    /// `ParamsResolved` True: the paramKind is served, and no binding refers to existing params.
    ParamKindServed,
    /// `ParamsResolved` False: the paramKind is not served, and no CRD defines it.
    ParamKindNotFound,
    /// `ParamsResolved` False: a CRD defines the paramKind, but it is not served, or not in this version.
    ParamKindNotServed,
    /// `ParamsResolved` True: the params that bindings refer to exist.
    ParamsFound,
    /// `ParamsResolved` False: params that a binding refers to do not exist.
    ParamsNotFound,
    /// `ParamsResolved`, `Bound`, `ProbesPassed` Unknown: the controller is not permitted to read the required objects.
    NotPermitted,
    /// `Bound` True.
    BindingsFound,
    /// `Bound` False: no binding refers to the policy.
    NoBindings,
    /// `Bound` False: the API server cannot use a binding.
    BindingsInvalid,
    /// `ProbesPassed` True.
    ProbesPassed,
    /// `ProbesPassed` False.
    ProbesFailed,
    /// `ProbesPassed` Unknown: the policy has no probes.
    NoProbes,
    /// `ProbesPassed` Unknown: a probe cannot be evaluated yet.
    ProbesPending,
    /// `Ready` of a probe, False: the policy does not exist.
    PolicyNotFound,
    /// `Ready` True.
    Ready,
    /// `Ready`, `Bound` or `ParamsResolved` Unknown: the inputs of the condition are not available yet.
    Pending,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Creates a condition with the transition time `now`, which is truncated to seconds, the precision of the API.
///
/// The message is truncated to `message::MAX_BYTES`.
#[must_use]
pub fn condition(
    type_: ConditionType,
    status: ConditionStatus,
    reason: Reason,
    message: &str,
    observed_generation: i64,
    now: Timestamp,
) -> Condition {
    Condition {
        type_: type_.as_str().to_owned(),
        status: status.as_str().to_owned(),
        reason: reason.as_str().to_owned(),
        message: message::cut(message, message::MAX_BYTES),
        observed_generation: Some(observed_generation),
        last_transition_time: Time(Timestamp::from_second(now.as_second()).unwrap_or(now)),
    }
}

/// Merges the conditions `new` into `old`.
///
/// Conditions of `old` whose type is not in `new` remain unchanged, in their position. Other conditions of `old` are
/// replaced by the condition of the same type in `new`, which keeps the old `lastTransitionTime` if `status` does not
/// change.
///
/// Source: apimachinery `pkg/api/meta/conditions.go`, `SetStatusCondition`; gateway-api
/// `apis/v1/shared_types.go` on conditions of others.
#[must_use]
pub fn merge(old: &[Condition], new: Vec<Condition>) -> Vec<Condition> {
    let mut merged = old.to_vec();
    for mut condition in new {
        match merged
            .iter_mut()
            .find(|existing| existing.type_ == condition.type_)
        {
            Some(existing) => {
                if existing.status == condition.status {
                    condition.last_transition_time = existing.last_transition_time.clone();
                }
                *existing = condition;
            }
            None => merged.push(condition),
        }
    }
    merged
}

/// Returns the condition of the type `type_`. Returns `None` if there is none.
#[must_use]
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}
