//! Condition types, statuses and reasons of this controller, and functions that create and merge conditions.
//!
//! Condition types and reasons are part of the API: alerts and scripts match them. New types and reasons may be added.
//! Existing ones must not be renamed.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::message;
use crate::policy::subject::SubjectKind;

/// A condition type that this controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionType {
    /// True unless a condition that `--ready-requires` lists is False or not yet known.
    Ready,
    /// Every expression compiles.
    Compiled,
    /// A rule matches a resource that the cluster serves.
    ResourcesMatched,
    /// The paramKind is served.
    ParamsResolved,
    /// The expressions have no type errors for the schemas of matched kinds.
    TypeChecked,
    /// All probes of the policy pass.
    ProbesPassed,
    /// Bindings enforce the policy.
    Bound,
    /// `Ready` is False, and only an edit of the policy can change this. Otherwise the condition is absent. As kstatus
    /// requires, its unhealthy status is True (ADR 13).
    Stalled,
}

impl ConditionType {
    /// All types except `Stalled`. `Ready` has the reason of the first required type that is False.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
        Self::Bound,
    ];

    /// All types, in the order in which the status contains them.
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

    /// The types that `Ready` requires by default. `Bound` is not required, because policies are often created before
    /// their bindings.
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

    /// Returns true if subjects of this kind can have the condition.
    #[must_use]
    pub const fn exists_for(self, kind: SubjectKind) -> bool {
        match self {
            Self::Ready
            | Self::Compiled
            | Self::TypeChecked
            | Self::ProbesPassed
            | Self::Stalled => true,
            Self::ParamsResolved | Self::Bound => kind.row().bindings.is_some(),
            // The rules of a CustomResourceDefinition do not match resources. They validate its own objects.
            Self::ResourcesMatched => !matches!(kind, SubjectKind::CustomResourceDefinition),
        }
    }

    /// Returns the position of the type in tables and reports, from 0.
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

    /// Returns true if the condition can be computed from files, without a cluster.
    #[must_use]
    pub const fn needs_only_files(self) -> bool {
        match self {
            Self::Compiled | Self::ResourcesMatched | Self::ParamsResolved | Self::TypeChecked => {
                true
            }
            Self::Ready | Self::ProbesPassed | Self::Bound | Self::Stalled => false,
        }
    }

    /// Parses a type. Returns `None` for types of other controllers.
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
    /// The controller cannot determine the status.
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

    /// Parses the status of an API condition. Other values are `Unknown`.
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

/// Defines the enum [`Reason`]. The variant names are the values of the field `reason` in the API.
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

            /// Parses a reason. Returns `None` for reasons of other controllers.
            #[must_use]
            pub fn from_name(name: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|reason| reason.as_str() == name)
            }
        }
    };
}

reasons! {
    /// `Compiled` is True.
    AllExpressionsCompile,
    /// `Compiled` is False: the API server rejects an expression. `TypeChecked` is Unknown: no expression compiles.
    CompilationFailed,
    /// `Compiled` is False: the API server accepts an expression but cannot evaluate it safely.
    UnsafeExpression,
    /// `Compiled` is Unknown, and `TypeChecked` is Unknown for a CustomResourceDefinition: this controller does not
    /// support an expression that is valid CEL.
    UnsupportedExpression,
    /// A condition other than `Ready` and `Stalled` is Unknown: the policy or a binding has a field that this
    /// controller does not know, because the API server is newer than the supported versions.
    UnknownField,
    /// `Compiled`, `TypeChecked` or `ResourcesMatched` is Unknown: the check of this policy panicked.
    InternalError,
    /// `Compiled`, `TypeChecked` or `ResourcesMatched` is Unknown: the check of this policy exceeded its time limit.
    DeadlineExceeded,
    /// `TypeChecked` is True: all kinds were checked, without warnings.
    NoWarnings,
    /// `TypeChecked` is True: there are no warnings, but some kinds or expressions could not be checked.
    PartiallyChecked,
    /// `TypeChecked` is False: an expression has warnings.
    ExpressionWarnings,
    /// `TypeChecked` is Unknown: the rules match no kind that can be checked.
    NoTypesToCheck,
    /// `TypeChecked` is Unknown: no matched kind has a usable schema.
    SchemaUnavailable,
    /// `ResourcesMatched` is True: a rule matches a served resource.
    ResourcesServed,
    /// `ResourcesMatched` is False: no rule matches a served resource, so the policy is never evaluated. `Bound` is
    /// False: the rules of no binding match a served resource.
    NoServedResources,
    /// `ResourcesMatched` is False: the rules match only resources that are exempt from admission policies.
    ExemptResources,
    /// `ResourcesMatched` or `ParamsResolved` is Unknown: an API group could not be discovered.
    DiscoveryIncomplete,
    /// `ParamsResolved` is True: the policy has no paramKind.
    ParamsNotRequired,
    /// `ParamsResolved` is True: the paramKind is served. No binding refers to existing params, and no missing params
    /// deny requests.
    ParamKindServed,
    /// `ParamsResolved` is False: the paramKind is not served, and no CRD defines it.
    ParamKindNotFound,
    /// `ParamsResolved` is False: a CRD defines the paramKind, but the kind or its version is not served.
    ParamKindNotServed,
    /// `ParamsResolved` is True: a binding refers to existing params, and no missing params deny requests.
    ParamsFound,
    /// `ParamsResolved` is False: the params of a binding with parameterNotFoundAction Deny do not exist.
    ParamsNotFound,
    /// `ParamsResolved`, `Bound` or `ProbesPassed` is Unknown: the controller is not allowed to read the required
    /// objects.
    NotPermitted,
    /// `Bound` is True: bindings enforce the policy.
    BindingsFound,
    /// `Bound` is False: no binding refers to the policy.
    NoBindings,
    /// `Bound` is False: the API server cannot use a binding.
    BindingsInvalid,
    /// `ProbesPassed` is True: all probes pass.
    ProbesPassed,
    /// `ProbesPassed` is False: a case of a probe failed.
    ProbesFailed,
    /// `ProbesPassed` is Unknown: the policy has no probes.
    NoProbes,
    /// `ProbesPassed` is Unknown: a probe cannot be evaluated yet.
    ProbesPending,
    /// `Ready` is False in the status of a probe: the policy does not exist.
    PolicyNotFound,
    /// `Ready` is True: no problem was found.
    Ready,
    /// `Ready`, `Bound` or `ParamsResolved` is Unknown: the inputs of the condition are not available yet.
    Pending,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Creates a condition with the transition time `now`, truncated to seconds. The message is truncated to
/// `message::MAX_BYTES`.
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
/// A condition in `new` replaces the condition of the same type in `old`. If `status` is equal, the old
/// `lastTransitionTime` is kept. The other conditions of `old` stay unchanged and in their positions.
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

/// Returns the condition with the given type, if any.
#[must_use]
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}
