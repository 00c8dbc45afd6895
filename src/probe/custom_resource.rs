//! Runs the cases of probes about a CustomResourceDefinition. A case validates a custom resource and compares the
//! errors with the expected errors.
//!
//! Source: `k8s.io/apiextensions-apiserver` `pkg/registry/customresource/strategy.go`; `k8s.io/apimachinery`
//! `pkg/api/errors/errors.go` (`NewInvalid`).

use std::cell::RefCell;

use serde_json::Value;

use super::api::{Case, CaseOutcome, CaseStatus, Decision, Expect, Request};
use super::contradiction::contradictions;
use super::run::{CaseResult, EvaluatedRule, failed, invalid, objects, pending};
use super::sample;
use super::validation::Violation;
use crate::cel::eval::Observer;
use crate::custom_resource::{
    Error, FieldError, ObservedRule, RULES_NOT_CHECKED, RuleObserver, Validator, Verdict,
};
use crate::policy::admission::{DeniedBy, Recorder, Recording, ReviewOutcome, Status};
use crate::schema::GroupVersion;
use crate::schema::crd::Crd;
use crate::schema::intern::Interner;
use crate::schema::resolver::SchemaSet;
use crate::version::KubernetesVersion;
use regexp::{MemoryLimit, Program};

/// The maximum number of recorded rules per case.
const MAX_RULES: usize = 4;

/// A CustomResourceDefinition that probes test.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The manifest, without defaults.
    pub value: Value,
    /// The reason why the API server rejects the definition, if any. All cases then fail.
    pub rejection: Option<String>,
    /// The version of the API server.
    pub version: KubernetesVersion,
}

/// Runs cases about one definition.
#[derive(Debug)]
pub struct Runner<'a> {
    definition: &'a Definition,
    schemas: SchemaSet,
    versions: Vec<Version>,
}

impl<'a> Runner<'a> {
    /// Creates a runner of cases about `definition`.
    #[must_use]
    pub fn new(definition: &'a Definition) -> Self {
        let mut schemas = SchemaSet::default();
        if let Ok(crd) = Crd::from_value(&definition.value) {
            schemas.add_crd(&crd, &mut Interner::default());
        }
        Self {
            definition,
            schemas,
            versions: Vec::new(),
        }
    }

    /// Runs one case.
    pub fn run(&mut self, case: &Case) -> CaseResult {
        run_case(case, self.definition, &self.schemas, &mut self.versions)
    }
}

/// Returns fields of the request's objects that the definition does not declare. The API server would prune them
/// silently, so they are probably mistakes in the case.
fn unknown_fields(request: &Request, schemas: &SchemaSet) -> Vec<Violation> {
    let unknown = objects(request)
        .map(|(object, gvk, path)| sample::unknown_fields(object, &gvk, schemas, path));
    unknown.flatten().collect()
}

/// The name of a version, and its validator. The first case of a version creates the validator.
type Version = (String, Result<Validator, Error>);

fn run_case(
    case: &Case,
    definition: &Definition,
    schemas: &SchemaSet,
    versions: &mut Vec<Version>,
) -> CaseResult {
    if let Some(why) = &definition.rejection {
        return failed(
            case,
            &format!("the API server rejects the CustomResourceDefinition: {why}"),
        );
    }
    let request = &case.request;
    let operation = request.operation.as_deref().unwrap_or("CREATE");
    let subresource = request.sub_resource.as_deref().unwrap_or_default();
    if !matches!(operation, "CREATE" | "UPDATE") || !subresource.is_empty() {
        let why = "a case of a CustomResourceDefinition must be a CREATE or UPDATE without a subresource: the API server \
                   does not validate objects on other operations, and subresources are not supported";
        return pending(case, why);
    }
    let Some(object) = &request.object else {
        return pending(case, "the request has no object");
    };
    let api_version = object.get("apiVersion").and_then(Value::as_str);
    let (group, version) = api_version.map(GroupVersion::split).unwrap_or_default();
    let text = |pointer: &str| definition.value.pointer(pointer).and_then(Value::as_str);
    let served = text("/spec/group").unwrap_or_default();
    if group != served || !is_served(&definition.value, version) {
        let why = format!(
            "the definition does not serve {} (apiVersion `{}`)",
            text("/spec/names/kind").unwrap_or("the kind"),
            api_version.unwrap_or_default()
        );
        return failed(case, &why);
    }
    let mut violations = contradictions(request);
    violations.extend(unknown_fields(request, schemas));
    if !violations.is_empty() {
        return invalid(case, violations);
    }
    let kind = object.get("kind").and_then(Value::as_str);
    let expects_kind = case.expect.field.as_deref() == Some("kind");
    if kind != text("/spec/names/kind") && !expects_kind {
        let why = format!(
            "the definition is for {}, but the object is a `{}`; if this is intended, set `expect.field` of the case to `kind`",
            text("/spec/names/kind").unwrap_or("another kind"),
            kind.unwrap_or_default()
        );
        return failed(case, &why);
    }
    let index = match versions.iter().position(|(name, _)| name == version) {
        Some(index) => index,
        None => {
            versions.push((
                version.to_owned(),
                Validator::new(&definition.value, version, definition.version),
            ));
            versions.len().saturating_sub(1)
        }
    };
    let validator = match versions.get(index) {
        Some((_, Ok(validator))) => validator,
        Some((_, Err(error))) => return pending(case, &error.to_string()),
        None => return pending(case, "the version is unknown"),
    };
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let recorder = RuleRecorder::default();
    let before = request.old_object.as_ref();
    match validator.validate_observed(object, before, namespace, Some(&recorder)) {
        Ok(verdict) => {
            let mut result = verdict_result(case, definition, &verdict);
            (result.rules, result.n_more_rules) = recorder.take(version, &verdict);
            result
        }
        Err(Error::Undecodable(why)) => {
            case_result(case, &[ObjectError::unreadable(why)], 0, 400, None)
        }
        Err(error) => pending(case, &error.to_string()),
    }
}

fn is_served(definition: &Value, version: &str) -> bool {
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    versions.into_iter().flatten().any(|other| {
        other.get("name").and_then(Value::as_str) == Some(version)
            && other.get("served") != Some(&Value::Bool(false))
    })
}

#[derive(Default)]
struct RuleRecorder {
    /// Records the values of subexpressions of the current rule.
    recorder: Recorder,
    rules: RefCell<Rules>,
}

#[derive(Default)]
struct Rules {
    deciding: Vec<EvaluatedRule>,
    n_more: usize,
    holding: Vec<EvaluatedRule>,
}

impl RuleRecorder {
    /// Returns at most `MAX_RULES` failing rules, and the number of other failing rules. If the object is valid,
    /// returns at most `MAX_RULES` rules that were true.
    fn take(self, version: &str, verdict: &Verdict) -> (Vec<EvaluatedRule>, usize) {
        let rules = self.rules.into_inner();
        let mut shown = if rules.deciding.is_empty() && verdict.errors.is_empty() {
            rules.holding
        } else {
            rules.deciding
        };
        for rule in &mut shown {
            version.clone_into(&mut rule.version);
        }
        (shown, rules.n_more)
    }
}

impl RuleObserver for RuleRecorder {
    fn begin(&self) -> &dyn Observer {
        &self.recorder
    }

    fn end(&self, rule: ObservedRule<'_>) {
        let recording = self.recorder.take();
        let mut rules = self.rules.borrow_mut();
        let decides = rule.error.is_some();
        let recorded = if decides {
            &mut rules.deciding
        } else {
            &mut rules.holding
        };
        if recorded.len() < MAX_RULES {
            recorded.push(EvaluatedRule {
                version: String::new(),
                path: rule.place.to_vec(),
                rule_index: rule.n,
                expression: rule.rule.rule.clone(),
                error: rule.error.map(ToString::to_string),
                recording,
            });
        } else if decides {
            rules.n_more = rules.n_more.saturating_add(1);
        }
    }
}

struct ObjectError {
    field: String,
    reason: &'static str,
    detail: String,
    body: String,
    text: String,
    /// False for the message that the rules were not checked. The API server lists this message among the errors, but
    /// it is not an error of the object.
    counts: bool,
}

impl ObjectError {
    fn new(error: &FieldError) -> Self {
        Self {
            field: error.field.clone(),
            reason: error.kind.name(),
            detail: error.detail.clone(),
            body: error.body(),
            text: error.to_string(),
            counts: error.detail != RULES_NOT_CHECKED,
        }
    }

    fn unreadable(why: String) -> Self {
        Self {
            field: String::new(),
            reason: "BadRequest",
            detail: why.clone(),
            body: why.clone(),
            text: why,
            counts: true,
        }
    }

    /// Returns true if `message` equals the message of the error. `message` may omit the field, or the field and the
    /// error type.
    fn has_message(&self, message: &str) -> bool {
        [&self.text, &self.body, &self.detail]
            .into_iter()
            .any(|text| text == message)
    }
}

fn verdict_result(case: &Case, definition: &Definition, verdict: &Verdict) -> CaseResult {
    let errors: Vec<ObjectError> = verdict.errors.iter().map(ObjectError::new).collect();
    let text = |value: &Value, pointer: &str| {
        let text = value.pointer(pointer).and_then(Value::as_str);
        text.unwrap_or_default().to_owned()
    };
    let subject = format!(
        "{}.{} {:?} is invalid",
        text(&definition.value, "/spec/names/kind"),
        text(&definition.value, "/spec/group"),
        text(&verdict.object, "/metadata/name"),
    );
    case_result(case, &errors, verdict.cost, 422, Some(&subject))
}

fn case_result(
    case: &Case,
    errors: &[ObjectError],
    cost: u64,
    code: u16,
    subject: Option<&str>,
) -> CaseResult {
    let mut texts: Vec<String> = Vec::new();
    for error in errors {
        if !texts.contains(&error.text) {
            texts.push(error.text.clone());
        }
    }
    let cause = texts.join("; ");
    let denial = (!errors.is_empty()).then(|| Status {
        code,
        reason: reasons(errors),
        message: match (subject, texts.as_slice()) {
            (None, _) => cause.clone(),
            (Some(subject), [text]) => format!("{subject}: {text}"),
            (Some(subject), texts) => format!("{subject}: [{}]", texts.join(", ")),
        },
        cause: cause.clone(),
        binding: None,
        by: DeniedBy::Error,
    });
    let difference = difference(&case.expect, errors);
    CaseResult {
        status: CaseStatus {
            name: case.name.clone(),
            outcome: match difference {
                None => CaseOutcome::Passed,
                Some(_) => CaseOutcome::Failed,
            },
            decision: Some(match denial {
                None => Decision::Allow,
                Some(_) => Decision::Deny,
            }),
            message: (!errors.is_empty()).then_some(cause),
            cost_used: Some(i64::try_from(cost).unwrap_or(i64::MAX)),
            difference,
        },
        outcome: Some(ReviewOutcome {
            denial,
            errors: texts,
            ..ReviewOutcome::default()
        }),
        mutated: None,
        invalid: Vec::new(),
        recording: Recording::new(),
        rules: Vec::new(),
        n_more_rules: 0,
    }
}

/// Returns the distinct reasons of the errors. (The API server's response itself has the reason `Invalid`.)
fn reasons(errors: &[ObjectError]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for error in errors.iter().filter(|error| error.counts) {
        if !reasons.contains(&error.reason) {
            reasons.push(error.reason);
        }
    }
    reasons.join(", ")
}

/// Describes how the errors differ from the expectation, if they differ.
fn difference(expect: &Expect, errors: &[ObjectError]) -> Option<String> {
    let all = || list(errors);
    match (expect.decision, errors.is_empty()) {
        (Some(Decision::Allow), false) => {
            return Some(format!("expected Allow, got Deny:{}", all()));
        }
        (Some(Decision::Deny), true) => {
            return Some("expected Deny, got Allow: the object is valid".to_owned());
        }
        _ => {}
    }
    let mut requirements = Vec::new();
    let mut matching: Vec<&ObjectError> = errors.iter().collect();
    let mut require = |requirement: String, is_match: &dyn Fn(&ObjectError) -> bool| {
        matching.retain(|error| is_match(error));
        requirements.push(requirement);
        matching.is_empty().then(|| {
            format!(
                "expected an error {}, got:{}",
                requirements.join(" "),
                all()
            )
        })
    };
    if let Some(field) = &expect.field
        && let Some(difference) = require(format!("of `{field}`"), &|error| error.field == *field)
    {
        return Some(difference);
    }
    if let Some(reason) = &expect.reason
        && let Some(difference) = require(format!("with the reason {reason}"), &|error| {
            error.reason == *reason
        })
    {
        return Some(difference);
    }
    if let Some(message) = &expect.message
        && let Some(difference) = require(format!("with the message {message:?}"), &|error| {
            error.has_message(message)
        })
    {
        return Some(difference);
    }
    if let Some(part) = &expect.message_contains
        && let Some(difference) = require(format!("that contains {part:?}"), &|error| {
            error.text.contains(part)
        })
    {
        return Some(difference);
    }
    if let Some(pattern) = &expect.message_pattern {
        let program = match Program::cached(pattern) {
            Ok(program) => program,
            Err(error) => {
                return Some(format!(
                    "messagePattern is not a valid regular expression: {error}"
                ));
            }
        };
        let requirement = format!("that matches {pattern:?}");
        if let Some(difference) = require(requirement, &|error| {
            program.is_match(&error.text, &MemoryLimit) == Ok(true)
        }) {
            return Some(difference);
        }
    }
    for part in &expect.forbidden_messages {
        if let Some(error) = errors.iter().find(|error| error.text.contains(part)) {
            return Some(format!(
                "expected no error that contains {part:?}, got: {}",
                error.text
            ));
        }
    }
    let n = errors.iter().filter(|error| error.counts).count();
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    match expect.errors {
        Some(expected) if expected != n => {
            let s = if expected == 1 { "" } else { "s" };
            Some(format!("expected {expected} error{s}, got {n}:{}", all()))
        }
        _ => None,
    }
}

/// Formats one error per line. A single error has no line break.
fn list(errors: &[ObjectError]) -> String {
    if let [error] = errors {
        return format!(" {}", error.text);
    }
    let lines = errors.iter().map(|error| {
        let note = if error.counts { "" } else { " (not counted)" };
        format!("\n- {}{note}", error.text)
    });
    lines.collect()
}
