//! CustomResourceDefinitions in the place of policies: custom resources held against all that their definition says, and
//! what the API server says of them against what must be.
//!
//! Source: `k8s.io/apiextensions-apiserver` `pkg/registry/customresource/strategy.go`; `k8s.io/apimachinery`
//! `pkg/api/errors/errors.go` (`NewInvalid`).

use std::cell::RefCell;

use serde_json::Value;

use super::api::{Case, CaseOutcome, CaseStatus, Decision, Expect, PolicyProbeSpec, Request};
use super::contradiction::contradictions;
use super::run::{CaseResult, EvaluatedRule, failed, invalid, objects, pending};
use super::sample;
use super::validation::Violation;
use crate::cel::eval::Observer;
use crate::custom_resource::{
    Error, FieldError, RULES_NOT_CHECKED, RuleWatcher, Validator, Verdict, WatchedRule,
};
use crate::policy::admission::{DeniedBy, Recorder, Recording, ReviewOutcome, Status};
use crate::schema::GroupVersion;
use crate::schema::crd::Crd;
use crate::schema::intern::Interner;
use crate::schema::resolver::SchemaSet;
use regexp::{MemoryLimit, Program};

/// The most rules that are kept of a case.
const MAX_RULES: usize = 4;

/// A CustomResourceDefinition that probes are about.
#[derive(Clone, Debug)]
pub struct Definition {
    /// As it is written.
    pub value: Value,
    /// Why the API server refuses it, if it does: then no case can pass.
    pub refusal: Option<String>,
}

/// Runs all cases of a probe, in order.
#[must_use]
pub fn run(probe: &PolicyProbeSpec, definition: &Definition) -> Vec<CaseResult> {
    let mut runner = Runner::new(definition);
    let cases = probe.cases.iter();
    cases.map(|case| runner.run(case)).collect()
}

/// A definition that is ready to run cases.
#[derive(Debug)]
pub struct Runner<'a> {
    definition: &'a Definition,
    schemas: SchemaSet,
    versions: Vec<Version>,
}

impl<'a> Runner<'a> {
    /// A runner of cases about `definition`.
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

    /// Runs a case.
    pub fn run(&mut self, case: &Case) -> CaseResult {
        of_case(case, self.definition, &self.schemas, &mut self.versions)
    }
}

/// The fields of the objects of `request` that the definition does not have: that they are dropped is hardly meant.
fn unknown_fields(request: &Request, schemas: &SchemaSet) -> Vec<Violation> {
    let unknown = objects(request)
        .map(|(object, gvk, path)| sample::unknown_fields(object, &gvk, schemas, path));
    unknown.flatten().collect()
}

/// A version of the definition that cases have asked for.
type Version = (String, Result<Validator, Error>);

fn of_case(
    case: &Case,
    definition: &Definition,
    schemas: &SchemaSet,
    versions: &mut Vec<Version>,
) -> CaseResult {
    if let Some(why) = &definition.refusal {
        return failed(
            case,
            &format!("the API server refuses the CustomResourceDefinition: {why}"),
        );
    }
    let request = &case.request;
    let operation = request.operation.as_deref().unwrap_or("CREATE");
    let subresource = request.sub_resource.as_deref().unwrap_or_default();
    if !matches!(operation, "CREATE" | "UPDATE") || !subresource.is_empty() {
        let why = "the API server holds an object against its definition on CREATE and UPDATE alone, and what it does \
                   with a subresource is not known here";
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
    let mut faults = contradictions(request);
    faults.extend(unknown_fields(request, schemas));
    if !faults.is_empty() {
        return invalid(case, faults);
    }
    let kind = object.get("kind").and_then(Value::as_str);
    let expects_kind = case.expect.field.as_deref() == Some("kind");
    if kind != text("/spec/names/kind") && !expects_kind {
        let why = format!(
            "the definition is of {}, and the object is a `{}`; where that is what the case is about, expect an error \
             of the field `kind`",
            text("/spec/names/kind").unwrap_or("another kind"),
            kind.unwrap_or_default()
        );
        return failed(case, &why);
    }
    let at = match versions.iter().position(|(known, _)| known == version) {
        Some(at) => at,
        None => {
            versions.push((
                version.to_owned(),
                Validator::new(&definition.value, version),
            ));
            versions.len().saturating_sub(1)
        }
    };
    let validator = match versions.get(at) {
        Some((_, Ok(validator))) => validator,
        Some((_, Err(error))) => return pending(case, &error.to_string()),
        None => return pending(case, "the version is not known"),
    };
    let namespace = request.namespace.as_deref().unwrap_or_default();
    let watcher = Watcher::default();
    let before = request.old_object.as_ref();
    match validator.validate_watched(object, before, namespace, Some(&watcher)) {
        Ok(verdict) => {
            let mut result = of_verdict(case, definition, &verdict);
            (result.rules, result.n_more_rules) = watcher.take(version, &verdict);
            result
        }
        Err(Error::Unread(why)) => judged(case, &[Found::unread(why)], 0, 400, None),
        Err(error) => pending(case, &error.to_string()),
    }
}

fn is_served(definition: &Value, version: &str) -> bool {
    let versions = definition
        .pointer("/spec/versions")
        .and_then(Value::as_array);
    versions.into_iter().flatten().any(|known| {
        known.get("name").and_then(Value::as_str) == Some(version)
            && known.get("served") != Some(&Value::Bool(false))
    })
}

/// The rules of an object, as they are evaluated.
#[derive(Default)]
struct Watcher {
    /// The parts of the rule that is being evaluated.
    recorder: Recorder,
    rules: RefCell<Rules>,
}

#[derive(Default)]
struct Rules {
    deciding: Vec<EvaluatedRule>,
    n_more: usize,
    holding: Vec<EvaluatedRule>,
}

impl Watcher {
    /// The rules that decided, or of a valid object the first that were true, and how many more decided.
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

impl RuleWatcher for Watcher {
    fn begin(&self) -> &dyn Observer {
        &self.recorder
    }

    fn end(&self, rule: WatchedRule<'_>) {
        let recording = self.recorder.take();
        let mut rules = self.rules.borrow_mut();
        let decides = rule.error.is_some();
        let kept = if decides {
            &mut rules.deciding
        } else {
            &mut rules.holding
        };
        if kept.len() < MAX_RULES {
            kept.push(EvaluatedRule {
                version: String::new(),
                place: rule.place.to_vec(),
                n: rule.n,
                expression: rule.rule.rule.clone(),
                error: rule.error.map(ToString::to_string),
                recording,
            });
        } else if decides {
            rules.n_more = rules.n_more.saturating_add(1);
        }
    }
}

/// An error, as expectations ask for it.
struct Found {
    field: String,
    reason: &'static str,
    detail: String,
    body: String,
    text: String,
    /// True if it is a fault of the object: the API server adds an entry that only says what was not looked at.
    counts: bool,
}

impl Found {
    fn of(error: &FieldError) -> Self {
        Self {
            field: error.field.clone(),
            reason: error.kind.name(),
            detail: error.detail.clone(),
            body: error.body(),
            text: error.to_string(),
            counts: error.detail != RULES_NOT_CHECKED,
        }
    }

    /// The answer about an object that is not even read.
    fn unread(why: String) -> Self {
        Self {
            field: String::new(),
            reason: "BadRequest",
            detail: why.clone(),
            body: why.clone(),
            text: why,
            counts: true,
        }
    }

    /// Reports whether `message` is the error's: with the field, without, or without the sort of error.
    fn is(&self, message: &str) -> bool {
        [&self.text, &self.body, &self.detail]
            .into_iter()
            .any(|text| text == message)
    }
}

fn of_verdict(case: &Case, definition: &Definition, verdict: &Verdict) -> CaseResult {
    let found: Vec<Found> = verdict.errors.iter().map(Found::of).collect();
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
    judged(case, &found, verdict.cost, 422, Some(&subject))
}

fn judged(case: &Case, found: &[Found], cost: u64, code: u16, subject: Option<&str>) -> CaseResult {
    let mut texts: Vec<String> = Vec::new();
    for error in found {
        if !texts.contains(&error.text) {
            texts.push(error.text.clone());
        }
    }
    let cause = texts.join("; ");
    let denial = (!found.is_empty()).then(|| Status {
        code,
        reason: reasons(found),
        message: match (subject, texts.as_slice()) {
            (None, _) => cause.clone(),
            (Some(subject), [text]) => format!("{subject}: {text}"),
            (Some(subject), texts) => format!("{subject}: [{}]", texts.join(", ")),
        },
        cause: cause.clone(),
        binding: None,
        by: DeniedBy::Error,
    });
    let difference = difference(&case.expect, found);
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
            message: (!found.is_empty()).then_some(cause),
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

/// The reasons of the errors, each once: what `reason` is held against. That of the status, which says `Invalid` of
/// all of them, tells nothing apart.
fn reasons(found: &[Found]) -> String {
    let mut reasons: Vec<&str> = Vec::new();
    for error in found.iter().filter(|error| error.counts) {
        if !reasons.contains(&error.reason) {
            reasons.push(error.reason);
        }
    }
    reasons.join(", ")
}

/// How the errors differ from what is expected; `None` where they do not.
fn difference(expect: &Expect, found: &[Found]) -> Option<String> {
    let all = || list(found);
    match (expect.decision, found.is_empty()) {
        (Some(Decision::Allow), false) => {
            return Some(format!("expected Allow, got Deny:{}", all()));
        }
        (Some(Decision::Deny), true) => {
            return Some("expected Deny, got Allow: the object is valid".to_owned());
        }
        _ => {}
    }
    let mut wanted = Vec::new();
    let mut kept: Vec<&Found> = found.iter().collect();
    let mut keep = |what: String, is_wanted: &dyn Fn(&Found) -> bool| {
        kept.retain(|error| is_wanted(error));
        wanted.push(what);
        kept.is_empty()
            .then(|| format!("expected an error {}, got:{}", wanted.join(" "), all()))
    };
    if let Some(field) = &expect.field
        && let Some(difference) = keep(format!("of `{field}`"), &|error| error.field == *field)
    {
        return Some(difference);
    }
    if let Some(reason) = &expect.reason
        && let Some(difference) = keep(format!("with the reason {reason}"), &|error| {
            error.reason == *reason
        })
    {
        return Some(difference);
    }
    if let Some(message) = &expect.message
        && let Some(difference) = keep(format!("that says {message:?}"), &|error| error.is(message))
    {
        return Some(difference);
    }
    if let Some(part) = &expect.message_contains
        && let Some(difference) = keep(format!("that contains {part:?}"), &|error| {
            error.text.contains(part)
        })
    {
        return Some(difference);
    }
    if let Some(pattern) = &expect.message_pattern {
        let program = match Program::cached(pattern) {
            Ok(program) => program,
            Err(error) => return Some(format!("messagePattern is no regular expression: {error}")),
        };
        let what = format!("that matches {pattern:?}");
        if let Some(difference) = keep(what, &|error| {
            program.is_match(&error.text, &MemoryLimit) == Ok(true)
        }) {
            return Some(difference);
        }
    }
    for part in &expect.forbidden_messages {
        if let Some(error) = found.iter().find(|error| error.text.contains(part)) {
            return Some(format!(
                "expected no error that contains {part:?}, got: {}",
                error.text
            ));
        }
    }
    let n = found.iter().filter(|error| error.counts).count();
    let n = u32::try_from(n).unwrap_or(u32::MAX);
    match expect.errors {
        Some(expected) if expected != n => {
            let s = if expected == 1 { "" } else { "s" };
            Some(format!("expected {expected} error{s}, got {n}:{}", all()))
        }
        _ => None,
    }
}

/// The errors one a line; one alone in the line of what is said before it.
fn list(found: &[Found]) -> String {
    if let [error] = found {
        return format!(" {}", error.text);
    }
    let lines = found.iter().map(|error| {
        let note = if error.counts { "" } else { " (not counted)" };
        format!("\n- {}{note}", error.text)
    });
    lines.collect()
}
