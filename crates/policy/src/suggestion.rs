//! Suggestions: changes of an expression, each with its effect on the requests for which the expression fails.

use std::fmt::Write as _;
use std::ops::Range;

/// A change of one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Suggestion {
    /// The new code. It may contain `...` for the unchanged condition.
    pub text: String,
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The replaced part of the expression, in code points.
    pub range: Range<usize>,
    /// The replacement.
    pub replacement: String,
    /// The effect on the requests for which the expression fails now.
    pub effect: Effect,
    /// The effective default of the absent field, as a CEL expression. With such a default, the suggestion needs no
    /// decision by the author. `None` if the author has to choose, or if the effect is [`Effect::Compared`] or
    /// [`Effect::Tested`].
    pub default: Option<String>,
}

/// The effect of a suggestion on the requests for which the expression fails now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Effect {
    /// The validation is false.
    Denied,
    /// The validation is true.
    Passed,
    /// The match condition is true.
    Matched,
    /// The match condition is false.
    NotMatched,
    /// The expression has a value. The expression does not affect the decision about the request.
    Evaluated,
    /// A comparison treats an absent value as different from every present value.
    Compared,
    /// The expression tests for presence instead of comparing with null.
    Tested,
}

impl Effect {
    /// The effects that keep the intent of the replaced code, so the suggestion needs no decision by the author.
    pub const INTENDED: [Self; 2] = [Self::Compared, Self::Tested];

    /// Returns the name of the effect in JSON.
    #[must_use]
    pub fn id(self) -> &'static str {
        match self {
            Self::Denied => "denied",
            Self::Passed => "passed",
            Self::Matched => "matched",
            Self::NotMatched => "not-matched",
            Self::Evaluated => "evaluated",
            Self::Compared => "compared",
            Self::Tested => "tested",
        }
    }

    /// Returns the effect as a verb phrase for help messages, such as `deny such requests`. `requests` is the object of
    /// the verb.
    fn purpose(self, requests: &str) -> String {
        match self {
            Self::Denied => format!("deny {requests}"),
            Self::Passed => format!("allow {requests}"),
            Self::Matched => format!("apply the policy to {requests}"),
            Self::NotMatched => format!("skip {requests}"),
            Self::Evaluated => format!("evaluate the expression for {requests}"),
            Self::Compared => "compare absent values too".to_owned(),
            Self::Tested => "test for an absent value, which is not null".to_owned(),
        }
    }

    /// Returns the effect as a sentence, without an initial capital letter or a final period.
    #[must_use]
    pub fn message(self) -> &'static str {
        match self {
            Self::Denied => "the validation denies the requests for which the expression fails now",
            Self::Passed => "the validation allows the requests for which the expression fails now",
            Self::Matched => {
                "the policy applies to the requests for which the expression fails now"
            }
            Self::NotMatched => {
                "the policy does not apply to the requests for which the expression fails now"
            }
            Self::Evaluated => "the expression no longer fails",
            Self::Compared => "an absent value is equal only to another absent value",
            Self::Tested => "the expression tests for presence instead of comparing with null",
        }
    }

    /// Returns true if the changed expression allows the requests for which it fails now: the validation is true, or
    /// the match condition is false. Under failurePolicy Fail, these requests are denied now.
    #[must_use]
    pub fn may_allow(self) -> bool {
        matches!(self, Self::Passed | Self::NotMatched)
    }
}

/// Returns the suggestions as one line of help. `None` if there are none.
#[must_use]
pub fn help(suggestions: &[Suggestion]) -> Option<String> {
    match suggestions {
        [] => None,
        [only] => Some(match &only.default {
            Some(default) => {
                let value = if default.contains("orValue(") {
                    "an absent value is inherited from the Pod".to_owned()
                } else {
                    format!("an absent value counts as `{default}`")
                };
                let purpose = match only.effect {
                    Effect::Evaluated => String::new(),
                    effect => format!(" to {}", effect.purpose("such requests")),
                };
                format!("write `{}`{purpose}: {value}", only.text)
            }
            None if only.effect == Effect::Evaluated => format!("write `{}`", only.text),
            None => format!(
                "write `{}` to {}",
                only.text,
                only.effect.purpose("such requests")
            ),
        }),
        [first, others @ ..] => {
            let mut help = format!(
                "write `{}` to {}",
                first.text,
                first.effect.purpose("such requests")
            );
            for other in others {
                let _ = write!(
                    help,
                    ", or `{}` to {}",
                    other.text,
                    other.effect.purpose("them")
                );
            }
            Some(help)
        }
    }
}

/// Returns `first`, the suggestions and `advice` as one line. If there is something before `advice`, `advice` is left
/// out unless it begins with `or`.
pub(crate) fn with_advice(
    suggestions: &[Suggestion],
    first: Option<String>,
    advice: Option<String>,
) -> Option<String> {
    let help = help(suggestions);
    let help = match (first, help) {
        (Some(first), Some(help)) => {
            let rest = help.strip_prefix("write ").unwrap_or(&help);
            Some(format!("write {first}, or {rest}"))
        }
        (Some(first), None) => Some(format!("write {first}")),
        (None, help) => help,
    };
    match (help, advice) {
        (Some(help), Some(advice)) if advice.starts_with("or ") => {
            Some(format!("{help}, {advice}"))
        }
        (Some(help), _) => Some(help),
        (None, advice) => advice.map(|text| match text.strip_prefix("or ") {
            Some(rest) => rest.to_owned(),
            None => text,
        }),
    }
}
