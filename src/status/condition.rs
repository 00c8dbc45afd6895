//! Conditions: the types, statuses and reasons we write, one constructor and one merge.
//!
//! Condition types and reasons are a promise to users (alerts and scripts match on them): one may be
//! added, none renamed.

use std::fmt;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use k8s_openapi::jiff::Timestamp;

use super::message;
use crate::policy::subject::SubjectKind;

/// The condition types that this controller writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionType {
    /// The policy works, as far as the conditions that `--ready-requires` names can tell.
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
    /// `Ready` is False, and nothing but an edit of the policy mends that. Written only while it is True: the
    /// one condition whose True is not the healthy side, as kstatus has it (ADR 13).
    Stalled,
}

impl ConditionType {
    /// The types that each policy has, `Ready` first, then those it is made of, in the order in which a failing one is
    /// reported.
    pub const ALL: [Self; 7] = [
        Self::Ready,
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
        Self::Bound,
    ];

    /// All types, in the order in which they are written.
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

    /// The types that count for `Ready` where nothing else is asked for. `Bound` does not: policies are
    /// staged unbound.
    pub const COUNTING: [Self; 5] = [
        Self::Compiled,
        Self::ResourcesMatched,
        Self::ParamsResolved,
        Self::TypeChecked,
        Self::ProbesPassed,
    ];

    /// The name in the API.
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

    /// The type of that name, if it is one of ours.
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

/// The status of a condition; `True` is the healthy side, but of `Stalled`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ConditionStatus {
    /// Holds.
    True,
    /// Does not hold.
    False,
    /// Cannot be told.
    Unknown,
}

impl ConditionStatus {
    /// All statuses.
    pub const ALL: [Self; 3] = [Self::True, Self::False, Self::Unknown];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::True => "True",
            Self::False => "False",
            Self::Unknown => "Unknown",
        }
    }

    /// The status that a condition of the API carries; what is neither true nor false is unknown.
    #[must_use]
    pub fn of(condition: &Condition) -> Self {
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

/// Declares [`Reason`], so that the name in the API and the variant cannot drift apart.
macro_rules! reasons {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Why a condition has its status.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum Reason {
            $($(#[$doc])* $name,)*
        }

        impl Reason {
            /// All reasons.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// The name in the API.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => stringify!($name),)*
                }
            }

            /// The reason of that name, if it is one of ours.
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
    /// `Compiled` False: the API server refuses an expression. `TypeChecked` Unknown: it refuses all of them.
    CompilationFailed,
    /// `Compiled` False: the API server accepts an expression that it cannot evaluate safely.
    UnsafeExpression,
    /// `Compiled` Unknown: valid CEL beyond what is implemented here. `TypeChecked` of a definition Unknown: likewise.
    UnsupportedExpression,
    /// `Compiled`, `TypeChecked`, `ResourcesMatched` Unknown: the check of this policy broke off.
    InternalError,
    /// `Compiled`, `TypeChecked`, `ResourcesMatched` Unknown: the check of this policy took too long.
    DeadlineExceeded,
    /// `TypeChecked` True: all kinds were checked.
    NoWarnings,
    /// `TypeChecked` True: no warnings, but not everything could be checked.
    PartiallyChecked,
    /// `TypeChecked` False.
    ExpressionWarnings,
    /// `TypeChecked` Unknown: the rules name no kind whose objects could be checked.
    NoTypesToCheck,
    /// `TypeChecked` Unknown: no schema of any matched kind could be had.
    SchemaUnavailable,
    /// `ResourcesMatched` True.
    ResourcesServed,
    /// `ResourcesMatched` False: the policy never runs.
    NoServedResources,
    /// `ResourcesMatched` False: the rules match only resources that no API server asks a policy about.
    ExemptResources,
    /// `ResourcesMatched`, `ParamsResolved` Unknown: an API group could not be discovered.
    DiscoveryIncomplete,
    /// `ParamsResolved` True: the policy has no paramKind.
    ParamsNotRequired,
    /// `ParamsResolved` True: the paramKind is served. Whether the params that bindings refer to
    /// exist was not examined.
    ParamKindServed,
    /// `ParamsResolved` False: nothing defines the paramKind.
    ParamKindNotFound,
    /// `ParamsResolved` False: the paramKind is defined and not served, or not in this version.
    ParamKindNotServed,
    /// `ParamsResolved` True: the params that bindings refer to exist.
    ParamsFound,
    /// `ParamsResolved` False: params that a binding refers to do not exist.
    ParamsNotFound,
    /// `ParamsResolved`, `Bound`, `ProbesPassed` Unknown: we lack the permission to look.
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
    /// `ProbesPassed` Unknown: nobody wrote a probe of the policy.
    NoProbes,
    /// `ProbesPassed` Unknown: a probe cannot be evaluated yet.
    ProbesPending,
    /// `Ready` of a probe, False: there is no such policy.
    PolicyNotFound,
    /// `Ready` True.
    Ready,
    /// `Ready`, `Bound` Unknown: what counts cannot be told yet.
    Pending,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Builds a condition; the only place that does.
///
/// The message is cut to `message::MAX_BYTES`. `now` loses its fractions of a second, which the API
/// does not keep.
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

/// The conditions `old` with those of `new` put in.
///
/// A condition of `old` whose type is not in `new` stays as it is, where it is. One that is in both
/// takes everything from `new`, except that `lastTransitionTime` stays where `status` does not change.
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

/// The condition of type `type_` among `conditions`.
#[must_use]
pub fn find(conditions: &[Condition], type_: ConditionType) -> Option<&Condition> {
    conditions
        .iter()
        .find(|condition| condition.type_ == type_.as_str())
}
