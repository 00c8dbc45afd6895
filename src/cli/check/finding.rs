//! Findings of the check, and their JSON format.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::changes::SuggestionReport;
use crate::cli::input::edit::Edit;
use crate::cli::input::{Place, SourceText};
use crate::policy::consequence::Consequence;
use crate::policy::rule::Rule;
use crate::policy::runtime_errors::Witness;

/// The mark of a type error if no request was found for which the expression fails.
pub(super) const UNPROVEN: &str = "(unproven: found no request for which the expression fails)";

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    /// The API server rejects the policy, or the policy cannot work.
    Error,
    /// Something may fail when the policy is evaluated.
    Warning,
    /// For information, such as something that could not be checked.
    Note,
}

impl Severity {
    /// Returns the name in messages and JSON.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A problem that the check reports.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    /// The severity, after levels are applied.
    pub severity: Severity,
    /// The id of the rule.
    #[schemars(schema_with = "rule_schema")]
    pub rule: Rule,
    /// The problem, in one line.
    pub message: String,
    /// The consequence of the problem, the remedy, or both, in one line.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The effect on the request if the expression fails; absent if the finding is not about such a failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub consequence: Option<ConsequenceReport>,
    /// The location in a file.
    #[serde(flatten)]
    pub location: Location,
    /// True if the problem makes the API server reject the object when it is created.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub rejected: bool,
    /// The object that has the problem.
    #[serde(flatten)]
    pub owner: Owner,
    /// The field of the object, such as `spec.validations[0].expression`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<String>,
    /// The kinds of the objects that cause the problem, such as `apps/v1 Deployment`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub kinds: Vec<String>,
    /// A request for which the expression fails.
    #[schemars(with = "Option<WitnessShape>")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Box<Witness>>,
    /// Changes of the expression, after which it does not fail. If there are several, the author chooses one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<SuggestionReport>,
    /// The fix, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Edit>,
    /// If there is no fix: the change with which the check continues. It reveals the findings that this finding hides.
    #[serde(skip)]
    pub(in crate::cli) assumption: Option<Assumption>,
    /// The reason why the only fix was withheld, as a sentence.
    #[serde(skip)]
    pub(in crate::cli) fix_objection: Option<&'static str>,
    /// The other places of the object with the same finding.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub also: Vec<OtherPlace>,
    /// 16 hexadecimal digits that identify the finding in its file, and do not change when lines move. Empty until the
    /// report is finished.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub fingerprint: String,
    /// The checked versions with this finding, oldest first; absent if all checked versions have it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub versions: Vec<String>,
    /// True if another mistake in the file hides this one: the check found it only with the fix of the other mistake,
    /// or an earlier mutation of the policy already fails for the request in `witness`.
    #[serde(rename = "hidden", skip_serializing_if = "std::ops::Not::not")]
    pub is_hidden: bool,
    /// True for a type error if no request was found for which the expression fails.
    #[serde(rename = "unproven", skip_serializing_if = "std::ops::Not::not")]
    pub is_unproven: bool,
}

impl Finding {
    /// Returns a finding without an owner, a hint or a fix.
    #[must_use]
    pub(in crate::cli) fn new(
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
            rejected: false,
            owner: Owner::None,
            field_ref: None,
            kinds: Vec::new(),
            witness: None,
            suggestions: Vec::new(),
            fix: None,
            assumption: None,
            fix_objection: None,
            also: Vec::new(),
            fingerprint: String::new(),
            versions: Vec::new(),
            is_hidden: false,
            is_unproven: false,
        }
    }

    /// Returns the fixes at all places.
    pub(in crate::cli) fn fixes(&self) -> impl Iterator<Item = &Edit> {
        let others = self.also.iter().filter_map(|other| other.fix.as_ref());
        self.fix.iter().chain(others)
    }

    /// Returns the help without the consequence at its end, and without the mark of unproven findings.
    pub(in crate::cli) fn remedy(&self) -> Option<&str> {
        let help = self.help.as_deref()?;
        let help = help.strip_suffix(UNPROVEN).map_or(help, str::trim_end);
        let consequence = self.consequence.as_ref().map(|it| it.message);
        let short = consequence.and_then(|it| help.strip_suffix(it));
        let short = short.map(|short| short.trim_end_matches([';', ' ']));
        Some(short.filter(|short| !short.is_empty()).unwrap_or(help))
    }

    /// Returns the number of places: the location of this finding, and the places of equal findings that were merged
    /// with it.
    pub(super) fn n_places(&self) -> usize {
        self.also.len().saturating_add(1)
    }

    /// Returns the remedies of the other places, except those equal to the remedy of the first place. Each has the
    /// lines of its places. If a place has several suggestions, its remedy is the first one.
    pub(in crate::cli) fn other_remedies(&self) -> Vec<(BTreeSet<usize>, String)> {
        let mut remedies: Vec<(BTreeSet<usize>, String)> = Vec::new();
        for other in &self.also {
            let Some(help) = &other.help else {
                continue;
            };
            let remedy = match &*other.suggestions {
                [first, _, ..] => format!("write `{}`", first.text),
                _ => help.clone(),
            };
            match remedies.iter_mut().find(|(_, known)| *known == remedy) {
                Some((lines, _)) => {
                    lines.insert(other.line);
                }
                None => remedies.push((BTreeSet::from([other.line]), remedy)),
            }
        }
        remedies
    }

    /// Returns true if `--fix` can apply a fix of the finding. In a file with YAML anchors, a fix that changes more
    /// than one value is not applied.
    pub(in crate::cli) fn is_fixable(&self) -> bool {
        let has_anchor = |edit: &Edit| {
            let bytes = edit.source.text().as_bytes();
            let mut pairs = bytes.windows(2);
            pairs.any(|pair| matches!(pair, [b'&', next] if next.is_ascii_alphanumeric()))
        };
        self.fixes()
            .any(|edit| !has_anchor(edit) || edit.changes_one_value())
    }

    /// Sets the consequence and appends it to the help.
    #[must_use]
    pub(super) fn with_consequence(mut self, consequence: impl Into<ConsequenceReport>) -> Self {
        let consequence = consequence.into();
        self.add_help(consequence.message);
        self.consequence = Some(consequence);
        self
    }

    pub(super) fn add_help(&mut self, text: &str) {
        self.help = Some(joined_help(self.help.take(), text));
    }
}

/// Appends `text` to a help text, after a semicolon unless the help already ends with `?` or `;`.
pub(super) fn joined_help(help: Option<String>, text: &str) -> String {
    match help {
        Some(help) if help.ends_with(['?', ';']) => format!("{help} {text}"),
        Some(help) => format!("{help}; {text}"),
        None => text.to_owned(),
    }
}

/// A change with which the check continues. It is not a fix, because only the author knows the intention.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Assumption {
    pub(super) edit: Edit,
    /// The end of a sentence that begins with `continuing as if`. If `None`, the sentence shows the replacement.
    pub(super) as_if: Option<&'static str>,
    /// The original match condition that the edit replaces with `true`. It may exclude the requests of some hidden
    /// findings.
    pub(super) condition: Option<String>,
    /// The original part of an expression that the edit replaces with a placeholder. It may exclude the requests of
    /// some hidden findings, and findings about the placeholder are not reported.
    pub(super) replaced: Option<String>,
}

impl Assumption {
    pub(super) fn new(edit: Edit) -> Self {
        Self {
            edit,
            as_if: None,
            condition: None,
            replaced: None,
        }
    }
}

/// Another place with the same finding.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OtherPlace {
    /// The line, from 1.
    pub line: usize,
    /// The column in code points, from 1.
    pub column: usize,
    /// The field of the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub field_ref: Option<String>,
    /// The remedy at this place; absent if it is the same as at the first place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
    /// The changes of the expression after which it does not fail.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub suggestions: Vec<SuggestionReport>,
    /// The fix, if there is exactly one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fix: Option<Edit>,
    /// The fingerprint of the finding at this place.
    pub fingerprint: String,
}

/// The name of the object that has a finding.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Owner {
    /// No object, or an object without a name.
    #[default]
    None,
    /// A policy.
    Policy(String),
    /// A binding.
    Binding(String),
    /// A configuration of webhooks, or one of its webhooks.
    Webhook {
        /// The name of the webhook.
        webhook: Option<String>,
        /// The name of the configuration.
        configuration: Option<String>,
    },
    /// A CustomResourceDefinition.
    Crd(String),
}

impl Owner {
    /// Returns the names of the owner, the most specific first. Each name has a noun before it, such as `policy`, for
    /// messages.
    pub(in crate::cli) fn names(&self) -> impl Iterator<Item = (&'static str, &str)> {
        let names = match self {
            Self::None => [None, None],
            Self::Policy(name) => [Some(("policy", name)), None],
            Self::Binding(name) => [Some(("binding", name)), None],
            Self::Webhook {
                webhook,
                configuration,
            } => [
                webhook.as_ref().map(|name| ("webhook", name)),
                configuration.as_ref().map(|name| ("configuration", name)),
            ],
            Self::Crd(name) => [Some(("CustomResourceDefinition", name)), None],
        };
        let names = names.into_iter().flatten();
        names.map(|(noun, name)| (noun, name.as_str()))
    }

    /// Sets the name of the webhook configuration, and keeps the name of the webhook.
    pub(in crate::cli) fn set_configuration(&mut self, name: Option<&str>) {
        let webhook = match std::mem::take(self) {
            Self::Webhook { webhook, .. } => webhook,
            _ => None,
        };
        *self = Self::Webhook {
            webhook,
            configuration: name.map(str::to_owned),
        };
    }

    /// Returns the owner for a CustomResourceDefinition with this name. Without a name, returns [`Owner::None`].
    pub(super) fn crd(name: Option<&str>) -> Self {
        name.map_or(Self::None, |name| Self::Crd(name.to_owned()))
    }

    /// Returns the most specific name.
    pub(in crate::cli) fn name(&self) -> Option<&str> {
        self.names().next().map(|(_, name)| name)
    }
}

/// The owner of a finding, in JSON.
#[derive(Default, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct OwnerShape<'a> {
    /// The name of the policy, if the finding is about a policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    policy: Option<&'a str>,
    /// The name of the binding, if the finding is about a binding.
    #[serde(skip_serializing_if = "Option::is_none")]
    binding: Option<&'a str>,
    /// The name of the webhook, if the finding is about a webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    webhook: Option<&'a str>,
    /// The name of the webhook configuration, if the finding is about a configuration or its webhook.
    #[serde(skip_serializing_if = "Option::is_none")]
    configuration: Option<&'a str>,
    /// The name of the CustomResourceDefinition, if the finding is about a CustomResourceDefinition.
    #[serde(skip_serializing_if = "Option::is_none")]
    crd: Option<&'a str>,
}

impl JsonSchema for Owner {
    fn schema_name() -> Cow<'static, str> {
        "Owner".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        OwnerShape::json_schema(generator)
    }
}

impl Serialize for Owner {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut shape = OwnerShape::default();
        match self {
            Self::None => {}
            Self::Policy(name) => shape.policy = Some(name),
            Self::Binding(name) => shape.binding = Some(name),
            Self::Webhook {
                webhook,
                configuration,
            } => {
                shape.webhook = webhook.as_deref();
                shape.configuration = configuration.as_deref();
            }
            Self::Crd(name) => shape.crd = Some(name),
        }
        shape.serialize(serializer)
    }
}

/// The effect of a failing expression on the request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ConsequenceReport {
    /// `denied`, `not-denied`, `let-through`, `no-annotation`, `other-message`, or, if the expression is never evaluated, `unread`.
    pub id: &'static str,
    /// The effect as a sentence, without an initial capital letter and a final period.
    pub message: &'static str,
}

impl ConsequenceReport {
    /// The effect of a failing expression if no binding of the policy has the action Deny.
    pub(super) const NOT_DENIED: Self = Self {
        id: "not-denied",
        message: "no binding of the policy has the action Deny, so a request for which the expression fails is not denied, and only gets a warning or an audit annotation",
    };

    /// The effect of a failing expression if an earlier validation is false for the same requests.
    pub(super) const DENIED_BEFORE: Self = Self {
        id: "denied",
        message: "that validation denies these requests anyway, with its own message",
    };

    /// The effect of a failing expression if a later validation is false for the same requests.
    pub(super) const DENIED_AFTER: Self = Self {
        id: "denied",
        message: "that validation denies these requests anyway, but this error replaces its message",
    };
}

impl From<Consequence> for ConsequenceReport {
    fn from(consequence: Consequence) -> Self {
        let message = match consequence {
            Consequence::Denied => {
                "with failurePolicy Fail, a request for which the expression fails is denied"
            }
            Consequence::LetThrough => {
                "if the expression fails, failurePolicy Ignore allows the request without this check"
            }
            Consequence::NoAnnotation => {
                "with failurePolicy Ignore, the audit annotation is omitted if the expression fails"
            }
            Consequence::OtherMessage => {
                "if the expression fails, a denial shows the field `message` or the expression instead of the \
                 messageExpression; no extra request is denied"
            }
            Consequence::Unread => "the variable is never read, and therefore never evaluated",
        };
        Self {
            id: consequence.id(),
            message,
        }
    }
}

/// A range within a line of a file, or a file as a whole.
#[derive(Clone, Debug)]
pub struct Location {
    /// The name of the file.
    pub file: String,
    /// The content of the file, if it was read.
    pub source: Option<Arc<SourceText>>,
    /// The start of the range. `None` for the file as a whole.
    pub place: Option<Place>,
    /// The length in code points, at least 1.
    pub length: usize,
}

impl Location {
    /// Returns the location of a file as a whole.
    pub(in crate::cli) fn from_file(file: impl Into<String>) -> Self {
        Self {
            file: file.into(),
            source: None,
            place: None,
            length: 1,
        }
    }

    /// Returns the location of one code point in a file.
    pub(super) fn from_place(source: &Arc<SourceText>, place: Place) -> Self {
        Self {
            file: source.name.clone(),
            source: Some(Arc::clone(source)),
            place: Some(place),
            length: 1,
        }
    }
}

/// The location of a finding, in JSON.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
struct LocationShape<'a> {
    /// The name of the file.
    file: &'a str,
    /// The line, from 1. This and the columns are null for the file as a whole.
    line: Option<usize>,
    /// The column in code points, from 1.
    column: Option<usize>,
    /// The column after the last code point.
    end_column: Option<usize>,
}

impl JsonSchema for Location {
    fn schema_name() -> Cow<'static, str> {
        "Location".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        LocationShape::json_schema(generator)
    }
}

/// A request for which an expression fails, in JSON.
#[derive(JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Witness")]
pub(in crate::cli) struct WitnessShape {
    /// The request: operation, kind, resource, name, namespace, userInfo, object, oldObject.
    request: Value,
    /// The params, if the policy has a paramKind; null if there are none.
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<Value>,
    /// The namespace of the request, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    namespace_object: Option<Value>,
    /// The error with which the expression fails.
    error: String,
}

pub(super) fn rule_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({"type": "string", "pattern": "^[a-z][a-z0-9-]*$"})
}

impl Serialize for Location {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        LocationShape {
            file: &self.file,
            line: self.place.map(|place| place.line),
            column: self.place.map(|place| place.column),
            end_column: self.place.map(|place| place.column + self.length),
        }
        .serialize(serializer)
    }
}
