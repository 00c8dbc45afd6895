//! Explains decisions: the expressions that determined them, with their locations and the values of their
//! subexpressions.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::cel::ast::Ast;
use crate::cel::syntax;
use crate::cli::check::crd::nearest;
use crate::cli::input::Object;
use crate::policy::RequestPolicy;
use crate::policy::admission::{
    Action, EvaluationResult, RecordedValue, Recording, ReviewOutcome, StageCost,
};
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::Role;
use crate::policy::subexpressions;
use crate::probe::api::CaseOutcome;
use crate::probe::run::{CaseResult, EvaluatedRule};
use crate::schema::Crd;
use crate::validation_rules::PathStep;

/// The maximum number of expressions that are listed for a case.
const MAX_EXPRESSIONS: usize = 4;

/// The path of the object itself in messages of the API server.
const ROOT: &str = "<nil>";

/// The maximum number of fields that are listed for expressions beyond [`MAX_EXPRESSIONS`].
const MAX_FIELDS: usize = 8;

/// The maximum number of subexpressions that are listed for an expression.
const MAX_PARTS: usize = 24;

/// An evaluated expression, with its subexpressions.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The field of the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The file of the policy.
    pub file: String,
    /// The line of the expression.
    pub line: usize,
    /// The column of the expression.
    pub column: usize,
    /// The field of the object that a rule of a CustomResourceDefinition validates; `<nil>` for the object itself, as
    /// in messages of the API server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_at: Option<String>,
    /// True if the expression determined the decision.
    pub decides: bool,
    /// The evaluated subexpressions, beginning with the whole expression. A long list is reduced to the subexpressions
    /// closest to the cause of the decision.
    pub subexpressions: Vec<TracePart>,
    /// The number of evaluated subexpressions that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_subexpressions: usize,
    /// The changes that would flip the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde requires"
)]
pub(super) const fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The expressions of a case.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Traces {
    /// The listed expressions, with their subexpressions.
    pub(in crate::cli) shown: Vec<Trace>,
    /// The fields of expressions that determined the decision and are not in `shown`. For a rule of a
    /// CustomResourceDefinition, the field is empty.
    pub(in crate::cli) left_out: Vec<String>,
}

/// Changes that would flip the result of an expression.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The result that the expression would have if one of the alternatives held.
    pub value: bool,
    /// The alternatives. All terms of an alternative must hold together.
    pub alternatives: Vec<Vec<String>>,
    /// The number of alternatives that are not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// A subexpression.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracePart {
    /// The source of the subexpression.
    pub text: String,
    /// The nesting depth in the expression.
    pub depth: usize,
    /// The first values. Inside a macro, a subexpression has a value for each element.
    pub values: Vec<String>,
    /// The number of evaluations.
    pub evaluations: u64,
    /// The cost, including that of nested subexpressions, in CEL cost units.
    pub cost: u64,
    /// The element that makes `all` false or `exists` true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
}

/// Returns the expressions that determined the decision of a case. Also returns the expressions of the audit
/// annotations with the keys `annotations`, because their values differ from the expected values. If there are no such
/// expressions, returns all validations and mutations.
pub(in crate::cli) fn case_traces(
    result: &CaseResult,
    annotations: &[&str],
    compiled: &CompiledPolicy,
    policy: &Object<RequestPolicy>,
) -> Traces {
    let Some(outcome) = &result.outcome else {
        return Traces::default();
    };
    let mut deciding = deciding(outcome, compiled, &result.recording);
    if deciding.is_empty() || !annotations.is_empty() {
        deciding.extend(annotations_with_keys(annotations, compiled));
    }
    let all = if deciding.is_empty() {
        let mut all = with_role(compiled, Role::Validation);
        all.extend(mutations(compiled));
        all
    } else {
        deciding.clone()
    };
    let mut traces = Traces::default();
    for index in all {
        let decides = deciding.contains(&index);
        if traces.shown.len() < MAX_EXPRESSIONS {
            let Some(mut trace) = expression_trace(result, compiled, policy, index) else {
                continue;
            };
            trace.decides = decides;
            if !decides && result.status.outcome != CaseOutcome::Failed {
                trace.changes = None;
            }
            traces.shown.push(trace);
        } else if decides && let Some(expression) = compiled.expressions().get(index) {
            traces.left_out.push(expression.field_ref.clone());
        }
    }
    traces
}

/// Returns the rules of a CustomResourceDefinition that determined the decision of a case, or the first rules if all
/// were true.
pub(in crate::cli) fn rule_traces(result: &CaseResult, definition: &Object<Crd>) -> Traces {
    let shown = result.rules.iter().filter_map(|rule| {
        let (ast, _) = syntax::parse(&rule.expression);
        let (shown, mut changes) = ast_trace(&ast?, 0, &rule.recording, &[])?;
        let decides = rule.error.is_some();
        if !decides && result.status.outcome != CaseOutcome::Failed {
            changes = None;
        }
        let (field_ref, steps) = place_of_rule(rule, definition);
        let node = nearest(&definition.document.node, &steps);
        let place = definition.places_in_node(node).start();
        Some(Trace {
            field_ref,
            file: definition.source.name.clone(),
            line: place.line,
            column: place.column,
            value_at: Some(match path_text(&rule.path) {
                path if path.is_empty() => ROOT.to_owned(),
                path => path,
            }),
            decides,
            subexpressions: shown.parts,
            more_subexpressions: shown.n_more,
            changes,
        })
    });
    let left_out = (0..result.n_more_rules).map(|_| String::new());
    Traces {
        shown: shown.collect(),
        left_out: left_out.collect(),
    }
}

/// Returns the field of a rule in its definition, as a string and as a path.
fn place_of_rule(rule: &EvaluatedRule, definition: &Object<Crd>) -> (String, Vec<PathStep>) {
    let field = |name: &str| PathStep::Field(name.to_owned());
    let root = &definition.document.node;
    let versions = nearest(root, &[field("spec"), field("versions")]).to_json();
    let is_version = |it: &Json| it.get("name").and_then(Json::as_str) == Some(&*rule.version);
    let version = versions
        .as_array()
        .into_iter()
        .flatten()
        .position(is_version);
    let mut steps = vec![
        field("spec"),
        field("versions"),
        PathStep::Index(version.unwrap_or_default()),
        field("schema"),
        field("openAPIV3Schema"),
    ];
    for step in &rule.path {
        match step {
            PathStep::Field(name) => {
                steps.push(field("properties"));
                steps.push(PathStep::Key(name.clone()));
            }
            PathStep::Key(_) => steps.push(field("additionalProperties")),
            PathStep::Index(_) => steps.push(field("items")),
        }
    }
    steps.push(field("x-kubernetes-validations"));
    steps.push(PathStep::Index(rule.rule_index));
    steps.push(field("rule"));
    (path_text(&steps), steps)
}

/// Formats a path as the API server does.
fn path_text(steps: &[PathStep]) -> String {
    let mut text = String::new();
    for step in steps {
        let _ = match step {
            PathStep::Field(name) if text.is_empty() => write!(text, "{name}"),
            PathStep::Field(name) => write!(text, ".{name}"),
            PathStep::Key(key) => write!(text, "[{key}]"),
            PathStep::Index(index) => write!(text, "[{index}]"),
        };
    }
    text
}

fn with_role(compiled: &CompiledPolicy, role: Role) -> Vec<usize> {
    let all = compiled.expressions().iter().enumerate();
    all.filter(|(_, expression)| expression.role == role)
        .map(|(n, _)| n)
        .collect()
}

fn annotations_with_keys(keys: &[&str], compiled: &CompiledPolicy) -> Vec<usize> {
    let mut all = with_role(compiled, Role::AuditAnnotation);
    all.retain(|index| {
        let expression = compiled.expressions().get(*index);
        let key = expression.and_then(|expression| expression.name.as_deref());
        key.is_some_and(|key| keys.contains(&key))
    });
    all
}

fn mutations(compiled: &CompiledPolicy) -> Vec<usize> {
    let roles = [Role::ApplyConfiguration, Role::JsonPatch];
    let mut all: Vec<usize> = (roles.iter())
        .flat_map(|role| with_role(compiled, *role))
        .collect();
    all.sort_unstable();
    all
}

/// Returns the indices of the expressions that determined the outcome.
fn deciding(
    outcome: &ReviewOutcome,
    compiled: &CompiledPolicy,
    recording: &Recording,
) -> Vec<usize> {
    let validations = with_role(compiled, Role::Validation);
    let mut actual = Vec::new();
    for evaluation in &outcome.evaluations {
        let costs = &evaluation.costs;
        let exceeds_budget =
            |cost: &Option<StageCost>| cost.as_ref().is_some_and(|it| it.used.is_err());
        // If a stage failed as a whole, `decisions` contains one entry for all expressions of the stage.
        if let Some(conditions) = evaluation.match_conditions.as_ref()
            && !conditions.matches
        {
            let conditions_of = with_role(compiled, Role::MatchCondition);
            if let Some(name) = &conditions.failed_condition {
                let is_it = |index: &usize| {
                    let expression = compiled.expressions().get(*index);
                    expression.and_then(|it| it.name.as_deref()) == Some(name.as_str())
                };
                actual.extend(conditions_of.into_iter().find(is_it));
            } else if exceeds_budget(&costs.match_conditions) {
                actual.extend(last_evaluated(&conditions_of, compiled, recording));
            } else {
                let whole = |index: &usize| whole(*index, compiled, recording);
                let fails = |index: &usize| whole(index).is_some_and(|it| it.is_error);
                actual.extend(conditions_of.into_iter().filter(fails));
            }
        } else if exceeds_budget(&costs.validations) {
            actual.extend(last_evaluated(&validations, compiled, recording));
        } else if exceeds_budget(&costs.audit_annotations) {
            let annotations = with_role(compiled, Role::AuditAnnotation);
            actual.extend(last_evaluated(&annotations, compiled, recording));
        } else {
            for (index, decision) in validations.iter().zip(&evaluation.decisions) {
                if decision.action == Action::Deny || decision.evaluation != EvaluationResult::Admit
                {
                    actual.push(*index);
                }
            }
            let annotations = with_role(compiled, Role::AuditAnnotation);
            for (index, annotation) in annotations.iter().zip(&evaluation.audit_annotations) {
                if !annotation.error.is_empty() {
                    actual.push(*index);
                }
            }
        }
    }
    if outcome.denial.is_some() || !outcome.errors.is_empty() {
        let fails =
            |index: &usize| whole(*index, compiled, recording).is_some_and(|it| it.is_error);
        actual.extend(mutations(compiled).into_iter().filter(fails));
    }
    let mut seen = std::collections::BTreeSet::new();
    actual.retain(|index| seen.insert(*index));
    actual
}

/// Returns the last evaluated expression of a stage. If the stage exceeded the cost budget, this expression caused the
/// excess.
fn last_evaluated(
    stage: &[usize],
    compiled: &CompiledPolicy,
    recording: &Recording,
) -> Option<usize> {
    let mut all = stage.iter().rev().copied();
    all.find(|index| whole(*index, compiled, recording).is_some())
}

/// Returns the recorded value of the whole expression at `index`.
fn whole<'a>(
    index: usize,
    compiled: &CompiledPolicy,
    recording: &'a Recording,
) -> Option<&'a RecordedValue> {
    let ast = compiled.expressions().get(index)?.parsed().ok()?;
    recording.get(&(index, ast.root().index()))
}

/// Returns the trace of an expression, or `None` if it was not evaluated.
pub(in crate::cli) fn expression_trace(
    result: &CaseResult,
    compiled: &CompiledPolicy,
    policy: &Object<RequestPolicy>,
    index: usize,
) -> Option<Trace> {
    let expression = compiled.expressions().get(index)?;
    let ast = expression.parsed().ok()?;
    let (shown, changes) = ast_trace(ast, index, &result.recording, &compiled.variables())?;
    let place = policy.places_in_field(&expression.field_ref).start();
    Some(Trace {
        field_ref: expression.field_ref.clone(),
        file: policy.source.name.clone(),
        line: place.line,
        column: place.column,
        value_at: None,
        decides: false,
        subexpressions: shown.parts,
        more_subexpressions: shown.n_more,
        changes,
    })
}

/// The listed subexpressions of an expression.
struct ShownParts {
    parts: Vec<TracePart>,
    n_more: usize,
}

/// Returns the subexpressions of the expression at `index`, and the changes that would flip its result. Returns `None`
/// if the expression was not evaluated.
fn ast_trace(
    ast: &Ast,
    index: usize,
    recording: &Recording,
    variables: &subexpressions::Variables<'_>,
) -> Option<(ShownParts, Option<Changes>)> {
    let mut all = subexpressions::subexpressions(ast);
    all.retain(|part| {
        let seen = recording.get(&(index, part.id.index()));
        seen.is_some_and(|seen| !seen.is_without_text())
    });
    let n_all = all.len();
    subexpressions::keep_nearest(&mut all, MAX_PARTS, ast, index, recording);
    let parts = all.into_iter().filter_map(|part| {
        let seen = recording.get(&(index, part.id.index()))?;
        Some(TracePart {
            text: part.text,
            depth: part.depth,
            values: seen.values.clone(),
            evaluations: seen.n,
            cost: seen.cost,
            element: subexpressions::deciding_element(ast, index, recording, part.id),
        })
    });
    let parts: Vec<TracePart> = parts.collect();
    if parts.is_empty() {
        return None;
    }
    let n_more = n_all.saturating_sub(parts.len());
    let whole = recording.get(&(index, ast.root().index()));
    let changes = whole.filter(|whole| whole.is_true != whole.is_false);
    let changes = changes.map(|whole| {
        let other_value = !whole.is_true;
        let ways = subexpressions::counterfactuals(ast, index, recording, variables, other_value);
        Changes {
            value: other_value,
            alternatives: ways.shown,
            more: ways.n_more,
        }
    });
    let shown = ShownParts { parts, n_more };
    Some((
        shown,
        changes.filter(|changes| !changes.alternatives.is_empty()),
    ))
}

impl Trace {
    /// Returns a line with the number of subexpressions that are not listed, or `None` if all are listed.
    pub(in crate::cli) fn more(&self) -> Option<String> {
        match self.more_subexpressions {
            0 => None,
            1 => Some("and 1 more subexpression".to_owned()),
            n => Some(format!("and {n} more subexpressions")),
        }
    }

    /// Returns a line with the field, its location, and its role in the decision.
    pub(in crate::cli) fn head(&self) -> String {
        let verb = if self.decides {
            "decided by"
        } else {
            "evaluated"
        };
        let field = match self.value_at.as_deref() {
            None => self.field_ref.clone(),
            Some(ROOT) => "a rule of the object".to_owned(),
            Some(path) => format!("a rule of {path}"),
        };
        let repetitions = match self.repetitions() {
            1 => String::new(),
            n => format!(", {n} times with the same values"),
        };
        format!(
            "{verb} {field}, {}:{}:{}{repetitions}",
            self.file, self.line, self.column
        )
    }

    /// Returns the number of evaluations of a variable if all of them have the same values. Otherwise, returns 1. A
    /// variable is evaluated again for each group of expressions that reads it.
    fn repetitions(&self) -> u64 {
        let whole = self.subexpressions.first();
        let n = whole.map_or(1, |whole| whole.evaluations);
        let repeats = |part: &TracePart| {
            let n_known = u64::try_from(part.values.len()).unwrap_or(u64::MAX);
            let n_block = part.evaluations.checked_div(n).unwrap_or(0);
            let n_block_known = usize::try_from(n_block).unwrap_or(usize::MAX);
            let is_whole = part.evaluations == n_block.saturating_mul(n);
            let mut blocks = part.values.chunks(n_block_known.max(1));
            let first = blocks.next().unwrap_or_default();
            is_whole && (n_block > n_known || blocks.all(|block| first.starts_with(block)))
        };
        let is_variable = self.field_ref.starts_with("spec.variables[");
        let is_known = whole.is_some_and(|whole| u64::try_from(whole.values.len()) == Ok(n));
        if is_variable && n > 1 && is_known && self.subexpressions.iter().all(repeats) {
            n
        } else {
            1
        }
    }

    /// Returns the subexpressions for text output. The repeated values of a variable are listed once.
    pub(in crate::cli) fn shown_parts(&self) -> Vec<TracePart> {
        let n = self.repetitions();
        let parts = self.subexpressions.iter().cloned();
        let once = |mut part: TracePart| {
            part.evaluations = part.evaluations.checked_div(n).unwrap_or(1);
            let n_block = usize::try_from(part.evaluations).unwrap_or(usize::MAX);
            part.values.truncate(n_block);
            part
        };
        parts.map(once).collect()
    }
}

/// Returns a line with the expressions that determined the decision but are not listed, or `None` if there are none.
pub(in crate::cli) fn not_shown_line(left_out: &[String]) -> Option<String> {
    let fields = left_out.iter().filter(|field| !field.is_empty());
    let fields: Vec<&str> = fields.take(MAX_FIELDS).map(String::as_str).collect();
    let n = left_out.len();
    let s = if n == 1 { "" } else { "s" };
    match (n, fields.is_empty()) {
        (0, _) => None,
        (_, true) => Some(format!("and by {n} more")),
        (_, false) => {
            let rest = if fields.len() < n { ", …" } else { "" };
            let fields = fields.join(", ");
            Some(format!("and by {n} more expression{s}: {fields}{rest}"))
        }
    }
}

impl Changes {
    /// Returns the changes as one line.
    pub(in crate::cli) fn shown(&self) -> String {
        let alternatives: Vec<String> = self
            .alternatives
            .iter()
            .map(|way| way.join(" and "))
            .collect();
        let ways = alternatives.join(", or with ");
        match self.more {
            0 => format!("would be {} with {ways}", self.value),
            1 => format!("would be {} with {ways}, or in 1 other way", self.value),
            n => format!("would be {} with {ways}, or in {n} other ways", self.value),
        }
    }
}

impl TracePart {
    /// Returns the values as one line.
    pub(in crate::cli) fn shown(&self) -> String {
        let values = self.values.join(", ");
        let n_known = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        let shown = if self.evaluations > n_known {
            format!("{values}, … ({} times)", self.evaluations)
        } else {
            values
        };
        match &self.element {
            Some(element) => format!("{shown}, because of the element {element}"),
            None => shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::policy::admission::{
        Admission, AdmissionRequest, AuthorizerList, Binding, Object, ParamList, Recorder,
        ReviewContext,
    };
    use crate::probe::run::implied_binding;
    use crate::schema::Gvr;

    /// Evaluates a policy, with the cost budget if it is set. Returns the fields of the expressions that determine the
    /// decision.
    fn decides(spec: &Value, budget: Option<u64>) -> Vec<String> {
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let compiled = CompiledPolicy::new(&policy);
        let object = Object::new(&json!({"apiVersion": "v1", "kind": "Pod", "a": [1, 2, 3]}));
        let request = AdmissionRequest::create(Gvr::new("", "v1", "pods"), object);
        let recorder = Arc::new(Recorder::default());
        let (params, namespaces) = (ParamList::default(), None);
        let authorizer = Arc::new(AuthorizerList::default());
        let mut context = ReviewContext::new(&params, &namespaces, authorizer);
        context.recorder = Some(Arc::clone(&recorder));
        context.budget = budget.unwrap_or(context.budget);
        let bindings: [Binding; 1] = [implied_binding("p", None)];
        let admission = Admission::from_compiled(&compiled);
        let outcome = admission.review(&request, &bindings, &context);
        let actual = deciding(&outcome, &compiled, &recorder.take());
        let fields = actual.iter().map(|n| &compiled.expressions()[*n].field_ref);
        fields.cloned().collect()
    }

    fn spec(failure_policy: &str, condition: &str, validations: &[&str]) -> Value {
        let validations = validations.iter().map(|it| json!({"expression": it}));
        json!({
            "failurePolicy": failure_policy,
            "matchConstraints": {"resourceRules": [{"apiGroups": [""], "apiVersions": ["v1"],
                "operations": ["CREATE"], "resources": ["pods"]}]},
            "matchConditions": [{"name": "first", "expression": "true"}, {"name": "a", "expression": condition}],
            "validations": validations.collect::<Vec<_>>(),
        })
    }

    #[test]
    fn failing_match_condition_is_the_only_deciding_expression() {
        let condition = ["spec.matchConditions[1].expression"];
        for validations in [&["object.a.size() == 3"][..], &["true", "false"]] {
            for failure_policy in ["Fail", "Ignore"] {
                let actual = decides(&spec(failure_policy, "object.b == 1", validations), None);
                assert_eq!(actual, condition, "{failure_policy} {validations:?}");
            }
        }
        let actual = decides(&spec("Fail", "false", &["false"]), None);
        assert_eq!(actual, condition);
    }

    #[test]
    fn validation_determines_decision_if_match_conditions_are_true() {
        let actual = decides(&spec("Fail", "true", &["object.b == 1"]), None);
        assert_eq!(actual, ["spec.validations[0].expression"]);
        let actual = decides(&spec("Fail", "true", &["true", "false"]), None);
        assert_eq!(actual, ["spec.validations[1].expression"]);
        assert!(decides(&spec("Fail", "true", &["true"]), None).is_empty());
    }

    #[test]
    fn expression_that_exceeds_budget_determines_decision() {
        let validations = ["true", "object.a.all(x, x > 0)", "true"];
        let actual = decides(&spec("Fail", "true", &validations), Some(4));
        assert_eq!(actual, ["spec.validations[1].expression"]);
        let mut annotated = spec("Fail", "true", &["true"]);
        annotated["auditAnnotations"] =
            json!([{"key": "a", "valueExpression": "object.a.map(x, string(x)).join()"}]);
        let actual = decides(&annotated, Some(4));
        assert_eq!(actual, ["spec.auditAnnotations[0].valueExpression"]);
    }
}
