//! The effect of a failing expression on the request.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/validator.go` (`Validate`,
//! `policyDecisionActionForError`, `auditAnnotationEvaluationForError`) and `dispatcher.go` (`Dispatch`: an
//! error of an audit annotation denies); `pkg/admission/plugin/webhook/matchconditions/matcher.go` (`Match`);
//! `pkg/admission/plugin/cel/composition.go` (`runInjector`: a variable is evaluated when it is read).

use std::collections::HashMap;

use super::expressions::{PolicyExpression, Role};
use super::reads::Reads;
use cel::interrupt::checkpoint;

/// The effect of a failing expression on the request, ordered from the weakest to the strongest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Consequence {
    /// No effect: the expression is a variable that no other expression reads. It is never evaluated.
    Unread,
    /// The request is denied anyway, with a different message.
    OtherMessage,
    /// With failurePolicy Ignore, the audit annotation is omitted. The request is not affected.
    NoAnnotation,
    /// With failurePolicy Ignore, the request is not denied by this expression.
    LetThrough,
    /// With failurePolicy Fail, the request is denied.
    Denied,
}

impl Consequence {
    /// All consequences, from the weakest to the strongest.
    pub const ALL: [Self; 5] = [
        Self::Unread,
        Self::OtherMessage,
        Self::NoAnnotation,
        Self::LetThrough,
        Self::Denied,
    ];

    /// Returns the stable id, such as `let-through`.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Unread => "unread",
            Self::OtherMessage => "other-message",
            Self::NoAnnotation => "no-annotation",
            Self::LetThrough => "let-through",
            Self::Denied => "denied",
        }
    }
}

pub(super) fn consequences(
    expressions: &[PolicyExpression],
    fails_closed: bool,
) -> Vec<Consequence> {
    let mut consequences: Vec<Consequence> = expressions
        .iter()
        .map(|expression| role_consequence(expression.role, fails_closed))
        .collect();
    // If several variables have the same name, expressions read the last one.
    let by_name: HashMap<&str, usize> = expressions
        .iter()
        .enumerate()
        .filter(|(_, expression)| expression.role == Role::Variable)
        .filter_map(|(n, variable)| Some((variable.name.as_deref()?, n)))
        .collect();
    // If a variable fails, each expression that reads it fails. The strongest consequence is propagated first, so that
    // each variable is updated at most once.
    let mut readers: Vec<usize> = (0..expressions.len()).collect();
    readers.sort_by_key(|n| consequences.get(*n).copied());
    let mut of_readers_of_all: Option<Consequence> = None;
    while let Some(reader) = readers.pop() {
        let (Some(expression), Some(worst)) =
            (expressions.get(reader), consequences.get(reader).copied())
        else {
            continue;
        };
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        let reads = Reads::new(ast).variables();
        let named = reads.names.iter();
        let named = named.filter_map(|name| by_name.get(name).copied());
        // An expression that uses `variables` as a whole may read any variable. A consequence is propagated to all
        // variables at most once, because a repetition has no effect.
        let reads_all = reads.may_read_all && of_readers_of_all < Some(worst);
        let all = reads_all.then(|| by_name.values().copied());
        if reads_all {
            of_readers_of_all = Some(worst);
        }
        for n in named.chain(all.into_iter().flatten()) {
            checkpoint();
            if let Some(known) = consequences.get_mut(n)
                && *known < worst
            {
                *known = worst;
                readers.push(n);
            }
        }
    }
    consequences
}

/// Returns the consequence for the role alone. For a variable, the expressions that read it also matter.
fn role_consequence(role: Role, fails_closed: bool) -> Consequence {
    match role {
        // An error of an audit annotation denies the request regardless of the binding's validationActions.
        Role::Validation
        | Role::MatchCondition
        | Role::AuditAnnotation
        | Role::ApplyConfiguration
        | Role::JsonPatch
            if fails_closed =>
        {
            Consequence::Denied
        }
        Role::Validation | Role::MatchCondition | Role::ApplyConfiguration | Role::JsonPatch => {
            Consequence::LetThrough
        }
        Role::AuditAnnotation => Consequence::NoAnnotation,
        Role::MessageExpression => Consequence::OtherMessage,
        Role::Variable => Consequence::Unread,
    }
}

#[cfg(test)]
mod tests {
    use cel::version::{Behavior, CelGo};

    use super::*;

    fn expression(role: Role, name: Option<&str>, text: &str) -> PolicyExpression {
        PolicyExpression::new(Behavior::new(CelGo::V0_26), String::new(), role, name, text)
    }

    #[track_caller]
    fn check(fails_closed: bool, expected: &[Consequence]) {
        let variable = |name, text| expression(Role::Variable, Some(name), text);
        let expressions = [
            expression(Role::MatchCondition, Some("c"), "true"),
            variable("base", "1"),
            variable("shown", "variables.base"),
            variable("noted", "2"),
            variable("tested", "3"),
            variable("idle", "variables.tested"),
            variable("same", "4"),
            variable("same", "5"),
            expression(
                Role::Validation,
                None,
                "variables.tested + variables.same > 1",
            ),
            expression(Role::MessageExpression, None, "string(variables.shown)"),
            expression(Role::AuditAnnotation, Some("k"), "string(variables.noted)"),
        ];
        assert_eq!(consequences(&expressions, fails_closed), expected);
    }

    #[test]
    fn dynamic_access_counts_as_read_of_all_variables() {
        use Consequence::{Denied, OtherMessage, Unread};
        let check = |validation, expected: [Consequence; 2]| {
            let expressions = [
                expression(Role::Variable, Some("a"), "1"),
                expression(Role::Variable, Some("b"), "2"),
                expression(Role::Validation, None, validation),
                expression(Role::MessageExpression, None, "string(variables.b)"),
            ];
            assert_eq!(
                consequences(&expressions, true)[..2],
                expected,
                "{validation}"
            );
        };
        check("true", [Unread, OtherMessage]);
        check("dyn(variables).a == 1", [Denied, OtherMessage]);
        check("dyn(variables)[object.key] == 1", [Denied, Denied]);
        check("dyn(variables).exists(name, name == 'a')", [Denied, Denied]);
    }

    #[test]
    fn variable_has_the_strongest_consequence_of_its_readers() {
        use Consequence::{Denied, LetThrough, NoAnnotation, OtherMessage, Unread};
        check(
            true,
            &[
                Denied,
                OtherMessage,
                OtherMessage,
                Denied,
                Denied,
                Unread,
                Unread,
                Denied,
                Denied,
                OtherMessage,
                Denied,
            ],
        );
        check(
            false,
            &[
                LetThrough,
                OtherMessage,
                OtherMessage,
                NoAnnotation,
                LetThrough,
                Unread,
                Unread,
                LetThrough,
                LetThrough,
                OtherMessage,
                NoAnnotation,
            ],
        );
    }
}
