//! Findings of the check, as data.

use std::sync::Arc;

use serde::{Serialize, Serializer};

use crate::cli::input::edit::Edit;
use crate::cli::input::{Place, SourceText};
use crate::policy::absence::Witness;
use crate::policy::consequence::Consequence;
use crate::policy::rule::Rule;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The API server refuses the policy, or it cannot work.
    Error,
    /// Something may fail when the policy is evaluated.
    Warning,
    /// Worth knowing: what could not be checked.
    Note,
}

impl Severity {
    /// The name.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A finding.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// How bad it is.
    pub severity: Severity,
    /// The rule that it belongs to, by its id.
    pub rule: Rule,
    /// The fault, in one line.
    pub message: String,
    /// The consequence, or the remedy; in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The fate of a request for which the expression fails; only where it can fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<ConsequenceReport>,
    /// Where.
    #[serde(flatten)]
    pub location: Location,
    /// True if the API server refuses the object because of it when it is created.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub refused: bool,
    /// The name of the policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The name of the binding, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub binding: Option<String>,
    /// The name of the webhook, where it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook: Option<String>,
    /// The field of the object, `spec.validations[0].expression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<String>,
    /// The kinds that it is about, `apps/v1 Deployment`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// A request for which the expression fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Box<Witness>>,
    /// The one mend, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Edit>,
    /// 16 hexadecimal digits that stay the same when lines move, and that no other finding of the file has; empty
    /// until all findings are known.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// True of a type that does not fit where no request was found for which the expression fails.
    #[serde(rename = "unproven", skip_serializing_if = "std::ops::Not::not")]
    pub is_unproven: bool,
}

impl Finding {
    /// A finding about no object in particular, without help.
    #[must_use]
    pub(super) fn new(
        severity: Severity,
        rule: Rule,
        message: impl Into<String>,
        location: Location,
    ) -> Self {
        Self {
            severity,
            rule,
            message: message.into(),
            help: None,
            consequence: None,
            location,
            refused: false,
            policy: None,
            binding: None,
            webhook: None,
            field_ref: None,
            kinds: Vec::new(),
            witness: None,
            fix: None,
            fingerprint: String::new(),
            is_unproven: false,
        }
    }

    /// The name of the policy, binding or webhook that it is about.
    #[must_use]
    pub(super) fn owner(&self) -> Option<&str> {
        let names = [&self.policy, &self.binding, &self.webhook];
        names.into_iter().find_map(Option::as_deref)
    }

    /// The finding with the consequence, also as a part of its help.
    #[must_use]
    pub(super) fn with_consequence(mut self, consequence: Consequence) -> Self {
        let consequence = ConsequenceReport::from(consequence);
        let help = self.help.take();
        self.help = Some(match help {
            Some(help) => format!("{help}; {}", consequence.message),
            None => consequence.message.to_owned(),
        });
        self.consequence = Some(consequence);
        self
    }
}

/// The fate of a request for which an expression fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ConsequenceReport {
    /// One of a closed set: `denied`, `let-through`, `no-annotation`, `other-message`, and `unread`, which no
    /// finding has that is about an evaluation.
    pub id: &'static str,
    /// The same as a sentence, without capital and full stop.
    pub message: &'static str,
}

impl From<Consequence> for ConsequenceReport {
    fn from(consequence: Consequence) -> Self {
        let message = match consequence {
            Consequence::Denied => {
                "with failurePolicy Fail, a request for which it fails is denied"
            }
            Consequence::LetThrough => {
                "with failurePolicy Ignore, a request for which it fails is let through unchecked"
            }
            Consequence::NoAnnotation => {
                "with failurePolicy Ignore, the audit annotation is left out where it fails"
            }
            Consequence::OtherMessage => {
                "where it fails, a denial shows the validation's message or expression instead; no request is \
                 denied because of it"
            }
            Consequence::Unread => "nothing reads the variable, so that it is never evaluated",
        };
        Self {
            id: consequence.id(),
            message,
        }
    }
}

/// A stretch of a line of a file.
#[derive(Clone, Debug)]
pub struct Location {
    /// The name of the file.
    pub file: String,
    /// Its text, where it was read.
    pub source: Option<Arc<SourceText>>,
    /// Where it begins; `None` where it is about the file as a whole.
    pub place: Option<Place>,
    /// How many code points it has, all on one line; at least 1.
    pub length: usize,
}

impl Location {
    /// The file of this name as a whole.
    pub(super) fn of_file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            source: None,
            place: None,
            length: 1,
        }
    }

    /// The place in a text that was read.
    pub(super) fn of_place(source: &Arc<SourceText>, place: Place) -> Self {
        Self {
            file: source.name.clone(),
            source: Some(Arc::clone(source)),
            place: Some(place),
            length: 1,
        }
    }
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Shape<'a> {
            file: &'a str,
            line: Option<usize>,
            column: Option<usize>,
            end_column: Option<usize>,
        }
        Shape {
            file: &self.file,
            line: self.place.map(|place| place.line),
            column: self.place.map(|place| place.column),
            end_column: self.place.map(|place| place.column + self.length),
        }
        .serialize(serializer)
    }
}
