//! Conditions: the types, statuses and reasons that this controller writes, one constructor and one merge.
//!
//! Condition types and reasons are an API (alerts and scripts match on them): new ones may be added, none is renamed.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::message;
use crate::policy::subject::SubjectKind;

/// The condition types that this controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionType {
    /// None of the conditions that `--ready-requires` names is False.
    Ready,
    /// Every expression compiles.
    Compiled,
    /// A rule matches a resource that the cluster serves.
    ResourcesMatched,
    /// The paramKind is served.
    ParamsResolved,
    /// The expressions fit the schemas of the matched kinds.
    TypeChecked,
    /// All probes of the policy pass.
    ProbesPassed,
    /// Bindings enforce the policy.
    Bound,
    /// `Ready` is False, and only an edit of the policy can change that. Written only while it is True. It is the only
    /// condition whose healthy status is not True, as kstatus requires (ADR 13).
    Stalled,
}

impl ConditionType {
    /// The types that each policy has: `Ready`, then the others in the order in which `Ready` reports failures.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
        Self::Bound,
    ];

    /// All types, in the order of the written status.
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

    /// The types that `Ready` requires by default. `Bound` is not required: policies are staged unbound.
    pub const COUNTING: [Self; 5] = [
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
    ];

    /// Returns the name in the API.
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

    /// Returns true if a subject of this kind has a condition of the type.
    #[must_use]
    pub const fn exists_for(self, kind: SubjectKind) -> bool {
        match self {
            Self::Ready
            | Self::Compiled
            | Self::TypeChecked
            | Self::ProbesPassed
            | Self::Stalled => true,
            Self::ParamsResolved | Self::Bound => kind.row().bindings.is_some(),
            // Rules of definitions are about objects and match no requests.
            Self::ResourcesMatched => !matches!(kind, SubjectKind::CustomResourceDefinition),
        }
    }

    /// Parses the name of a type. Returns `None` for conditions of other controllers.
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

/// The status of a condition. `True` is healthy, except for `Stalled`.
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

    /// Returns the name in the API.
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

/// Declares [`Reason`] with the variant names as the names in the API.
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

            /// Returns the name in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// Parses the name of a reason. Returns `None` for reasons of other controllers.
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
    /// `ResourcesMatched` False: the policy never runs.
    NoServedResources,
    /// `ResourcesMatched` False: the rules match only resources that are exempt from admission policies.
    ExemptResources,
    /// `ResourcesMatched`, `ParamsResolved` Unknown: an API group could not be discovered.
    DiscoveryIncomplete,
    /// `ParamsResolved` True: the policy has no paramKind.
    ParamsNotRequired,
    /// `ParamsResolved` True: the paramKind is served, and no binding refers to existing params.
    ParamKindServed,
    /// `ParamsResolved` False: nothing defines the paramKind.
    ParamKindNotFound,
    /// `ParamsResolved` False: the paramKind is defined, but not served, or not in this version.
    ParamKindNotServed,
    /// `ParamsResolved` True: the params that bindings refer to exist.
    ParamsFound,
    /// `ParamsResolved` False: params that a binding refers to do not exist.
    ParamsNotFound,
    /// `ParamsResolved`, `Bound`, `ProbesPassed` Unknown: the controller is not allowed to read the objects.
    NotPermitted,
    /// `Bound` True.
    BindingsFound,
    /// `Bound` False: nothing enforces the policy.
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
    /// `Ready`, `Bound`, `ParamsResolved` Unknown: inputs are not available yet.
    Pending,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Creates a condition.
///
/// The message is truncated to `message::MAX_BYTES`, and `now` to seconds, the precision of the API.
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
/// Conditions of `old` whose type is not in `new` stay unchanged in their position. A condition that is in both is
/// replaced by that of `new`, but keeps its `lastTransitionTime` if `status` does not change.
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

/// Returns the condition of type `type_`.
#[must_use]
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}
