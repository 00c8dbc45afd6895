//! How a decision came about: the expressions that decided, each at its place in the policy, with the values of its
//! parts.

use std::fmt::Write as _;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value as Json;

use crate::cel::ast::Ast;
use crate::cel::syntax;
use crate::cli::check::crd::nearest;
use crate::cli::input::Object;
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

/// The most expressions that are shown of one case.
const MAX_EXPRESSIONS: usize = 4;

/// The path to an object as a whole.
const ROOT: &str = "<nil>";

/// The most others that are named.
const MAX_FIELDS: usize = 8;

/// The most parts that are shown of one expression.
const MAX_PARTS: usize = 24;

/// An expression that was evaluated, with its parts.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Trace {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The file of the policy.
    pub file: String,
    /// The line of the expression.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The value that a rule of a CustomResourceDefinition is about, by its field in the object; `<nil>` for the object
    /// as a whole, as the API server writes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value_at: Option<String>,
    /// True if the decision is due to it.
    pub decides: bool,
    /// The parts that were evaluated, the whole first; of many those nearest to what decided.
    pub parts: Vec<TracePart>,
    /// How many more parts were evaluated.
    #[serde(skip_serializing_if = "is_zero")]
    pub more_parts: usize,
    /// The changes that would give it the other value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub changes: Option<Changes>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
pub(super) const fn is_zero(n: &usize) -> bool {
    *n == 0
}

/// The expressions of a case that are shown.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Traces {
    /// With their parts.
    pub(in crate::cli) shown: Vec<Trace>,
    /// The fields of the others that decided.
    pub(in crate::cli) left_out: Vec<String>,
}

/// Changes that would give an expression the other value.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Changes {
    /// The other value.
    pub value: bool,
    /// The ways to it, of which each is terms that must hold together.
    pub ways: Vec<Vec<String>>,
    /// How many more ways there are.
    #[serde(skip_serializing_if = "is_zero")]
    pub more: usize,
}

/// A part of an expression.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TracePart {
    /// The text.
    pub text: String,
    /// How deep it is in the expression.
    pub depth: usize,
    /// The first of its values: within a macro it has one for each element.
    pub values: Vec<String>,
    /// How often it was evaluated.
    pub times: u64,
    /// The cost of it and its parts, in cost units.
    pub cost: u64,
    /// The element because of which `all` is false or `exists` true.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub element: Option<String>,
}

/// The expressions that decided on a case, or else those of the audit annotations that are not as the case expects;
/// where there are none, the validations that were true.
pub(in crate::cli) fn of_case(
    result: &CaseResult,
    annotations: &[&str],
    compiled: &CompiledPolicy,
    policy: &Object<ValidatingAdmissionPolicy>,
) -> Traces {
    let Some(outcome) = &result.outcome else {
        return Traces::default();
    };
    let mut deciding = deciding(outcome, compiled, &result.recording);
    if deciding.is_empty() || !annotations.is_empty() {
        deciding.extend(of_annotations(annotations, compiled));
    }
    let all = if deciding.is_empty() {
        let mut all = of_role(compiled, Role::Validation);
        all.extend(mutations(compiled));
        all
    } else {
        deciding.clone()
    };
    let mut traces = Traces::default();
    for index in all {
        let decides = deciding.contains(&index);
        if traces.shown.len() < MAX_EXPRESSIONS {
            let Some(mut trace) = of_expression(result, compiled, policy, index) else {
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

/// The rules of a CustomResourceDefinition that decided on a case; where none did, the first that were true.
pub(in crate::cli) fn of_rules(result: &CaseResult, definition: &Object<Crd>) -> Traces {
    let shown = result.rules.iter().filter_map(|rule| {
        let (ast, _) = syntax::parse(&rule.expression);
        let (shown, mut changes) = of_ast(&ast?, 0, &rule.recording, &[])?;
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
            value_at: Some(match written(&rule.place) {
                path if path.is_empty() => ROOT.to_owned(),
                path => path,
            }),
            decides,
            parts: shown.parts,
            more_parts: shown.n_more,
            changes,
        })
    });
    let left_out = (0..result.n_more_rules).map(|_| String::new());
    Traces {
        shown: shown.collect(),
        left_out: left_out.collect(),
    }
}

/// The field of a rule of a definition, and the steps to it.
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
    for step in &rule.place {
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
    steps.push(PathStep::Index(rule.n));
    steps.push(field("rule"));
    (written(&steps), steps)
}

/// A path as the API server writes it.
fn written(steps: &[PathStep]) -> String {
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

/// The indices of the expressions of a role.
fn of_role(compiled: &CompiledPolicy, role: Role) -> Vec<usize> {
    let all = compiled.expressions().iter().enumerate();
    all.filter(|(_, expression)| expression.role == role)
        .map(|(n, _)| n)
        .collect()
}

/// The indices of the audit annotations with these keys.
fn of_annotations(keys: &[&str], compiled: &CompiledPolicy) -> Vec<usize> {
    let mut all = of_role(compiled, Role::AuditAnnotation);
    all.retain(|index| {
        let expression = compiled.expressions().get(*index);
        let key = expression.and_then(|expression| expression.name.as_deref());
        key.is_some_and(|key| keys.contains(&key))
    });
    all
}

/// The indices of the mutations.
fn mutations(compiled: &CompiledPolicy) -> Vec<usize> {
    let roles = [Role::ApplyConfiguration, Role::JsonPatch];
    let mut all: Vec<usize> = (roles.iter())
        .flat_map(|role| of_role(compiled, *role))
        .collect();
    all.sort_unstable();
    all
}

/// The expressions that the outcome is due to.
fn deciding(
    outcome: &ReviewOutcome,
    compiled: &CompiledPolicy,
    recording: &Recording,
) -> Vec<usize> {
    let validations = of_role(compiled, Role::Validation);
    let mut found = Vec::new();
    for evaluation in &outcome.evaluations {
        let costs = &evaluation.costs;
        let is_over = |cost: &Option<StageCost>| cost.as_ref().is_some_and(|it| it.used.is_err());
        // Where a stage failed as a whole, there is one decision for all.
        if let Some(conditions) = evaluation.match_conditions.as_ref()
            && !conditions.matches
        {
            let conditions_of = of_role(compiled, Role::MatchCondition);
            if let Some(name) = &conditions.failed_condition {
                let is_it = |index: &usize| {
                    let expression = compiled.expressions().get(*index);
                    expression.and_then(|it| it.name.as_deref()) == Some(name.as_str())
                };
                found.extend(conditions_of.into_iter().find(is_it));
            } else if is_over(&costs.match_conditions) {
                found.extend(last_evaluated(&conditions_of, compiled, recording));
            } else {
                let whole = |index: &usize| whole(*index, compiled, recording);
                let fails = |index: &usize| whole(index).is_some_and(|it| it.is_error);
                found.extend(conditions_of.into_iter().filter(fails));
            }
        } else if is_over(&costs.validations) {
            found.extend(last_evaluated(&validations, compiled, recording));
        } else if is_over(&costs.audit_annotations) {
            let annotations = of_role(compiled, Role::AuditAnnotation);
            found.extend(last_evaluated(&annotations, compiled, recording));
        } else {
            for (index, decision) in validations.iter().zip(&evaluation.decisions) {
                if decision.action == Action::Deny || decision.evaluation != EvaluationResult::Admit
                {
                    found.push(*index);
                }
            }
            let annotations = of_role(compiled, Role::AuditAnnotation);
            for (index, annotation) in annotations.iter().zip(&evaluation.audit_annotations) {
                if !annotation.error.is_empty() {
                    found.push(*index);
                }
            }
        }
    }
    if outcome.denial.is_some() || !outcome.errors.is_empty() {
        let fails =
            |index: &usize| whole(*index, compiled, recording).is_some_and(|it| it.is_error);
        found.extend(mutations(compiled).into_iter().filter(fails));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|index| seen.insert(*index));
    found
}

/// The last expression of a stage that was evaluated: with that the stage ran out of its budget.
fn last_evaluated(
    stage: &[usize],
    compiled: &CompiledPolicy,
    recording: &Recording,
) -> Option<usize> {
    let mut all = stage.iter().rev().copied();
    all.find(|index| whole(*index, compiled, recording).is_some())
}

/// The record of an expression as a whole.
fn whole<'a>(
    index: usize,
    compiled: &CompiledPolicy,
    recording: &'a Recording,
) -> Option<&'a RecordedValue> {
    let ast = compiled.expressions().get(index)?.parsed().ok()?;
    recording.get(&(index, ast.root().index()))
}

/// One expression with its parts, where it was evaluated.
pub(in crate::cli) fn of_expression(
    result: &CaseResult,
    compiled: &CompiledPolicy,
    policy: &Object<ValidatingAdmissionPolicy>,
    index: usize,
) -> Option<Trace> {
    let expression = compiled.expressions().get(index)?;
    let ast = expression.parsed().ok()?;
    let (shown, changes) = of_ast(ast, index, &result.recording, &compiled.variables())?;
    let place = policy.places_in_field(&expression.field_ref).start();
    Some(Trace {
        field_ref: expression.field_ref.clone(),
        file: policy.source.name.clone(),
        line: place.line,
        column: place.column,
        value_at: None,
        decides: false,
        parts: shown.parts,
        more_parts: shown.n_more,
        changes,
    })
}

/// The parts of an expression that are shown.
struct ShownParts {
    parts: Vec<TracePart>,
    n_more: usize,
}

/// The parts of the expression with the index `index`, and the changes that would give it the other value; `None` where
/// it was not evaluated.
fn of_ast(
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
            times: seen.n,
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
        let wanted = !whole.is_true;
        let found = subexpressions::counterfactuals(ast, index, recording, variables, wanted);
        Changes {
            value: wanted,
            ways: found.shown,
            more: found.n_more,
        }
    });
    let shown = ShownParts { parts, n_more };
    Some((shown, changes.filter(|changes| !changes.ways.is_empty())))
}

impl Trace {
    /// How many parts are not shown, in one line; `None` where all are.
    pub(in crate::cli) fn more(&self) -> Option<String> {
        match self.more_parts {
            0 => None,
            1 => Some("and 1 more part, which is not shown".to_owned()),
            n => Some(format!("and {n} more parts, which are not shown")),
        }
    }

    /// The place and the reason why it is shown, in one line.
    pub(in crate::cli) fn head(&self) -> String {
        let what = if self.decides {
            "decided by"
        } else {
            "evaluated"
        };
        let field = match self.value_at.as_deref() {
            None => self.field_ref.clone(),
            Some(ROOT) => "a rule of the object".to_owned(),
            Some(path) => format!("a rule of {path}"),
        };
        format!(
            "{what} {field}, {}:{}:{}",
            self.file, self.line, self.column
        )
    }
}

/// The expressions that decided and are not shown, in one line; `None` where there are none.
pub(in crate::cli) fn and_more(left_out: &[String]) -> Option<String> {
    let fields = left_out.iter().filter(|field| !field.is_empty());
    let fields: Vec<&str> = fields.take(MAX_FIELDS).map(String::as_str).collect();
    let n = left_out.len();
    let s = if n == 1 { "" } else { "s" };
    match (n, fields.is_empty()) {
        (0, _) => None,
        (_, true) => Some(format!("and by {n} more, which are not shown")),
        (_, false) => {
            let rest = if fields.len() < n { ", …" } else { "" };
            let fields = fields.join(", ");
            Some(format!("and by {n} more expression{s}: {fields}{rest}"))
        }
    }
}

impl Changes {
    /// The changes in one line.
    pub(in crate::cli) fn shown(&self) -> String {
        let ways: Vec<String> = self.ways.iter().map(|way| way.join(" and ")).collect();
        let ways = ways.join(", or with ");
        match self.more {
            0 => format!("would be {} with {ways}", self.value),
            1 => format!("would be {} with {ways}, and in 1 more way", self.value),
            n => format!("would be {} with {ways}, and in {n} more ways", self.value),
        }
    }
}

impl TracePart {
    /// The values in one line.
    pub(in crate::cli) fn shown(&self) -> String {
        let values = self.values.join(", ");
        let n_known = u64::try_from(self.values.len()).unwrap_or(u64::MAX);
        let shown = if self.times > n_known {
            format!("{values}, … ({} times)", self.times)
        } else {
            values
        };
        match &self.element {
            Some(element) => format!("{shown}, because of {element}"),
            None => shown,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::{Value, json};

    use super::*;
    use crate::policy::admission::{
        Admission, AdmissionRequest, AuthorizerList, Binding, Object, ParamList, Recorder,
        ReviewContext,
    };
    use crate::probe::run::implied_binding;
    use crate::schema::Gvr;

    /// The fields of the expressions that a decision is due to, where the evaluations have a budget.
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
        let found = deciding(&outcome, &compiled, &recorder.take());
        let fields = found.iter().map(|n| &compiled.expressions()[*n].field_ref);
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
    fn a_match_condition_that_fails_decides_alone() {
        let condition = ["spec.matchConditions[1].expression"];
        for validations in [&["object.a.size() == 3"][..], &["true", "false"]] {
            for failure_policy in ["Fail", "Ignore"] {
                let found = decides(&spec(failure_policy, "object.b == 1", validations), None);
                assert_eq!(found, condition, "{failure_policy} {validations:?}");
            }
        }
        let found = decides(&spec("Fail", "false", &["false"]), None);
        assert_eq!(found, condition);
    }

    #[test]
    fn a_validation_decides_where_the_match_conditions_are_met() {
        let found = decides(&spec("Fail", "true", &["object.b == 1"]), None);
        assert_eq!(found, ["spec.validations[0].expression"]);
        let found = decides(&spec("Fail", "true", &["true", "false"]), None);
        assert_eq!(found, ["spec.validations[1].expression"]);
        assert!(decides(&spec("Fail", "true", &["true"]), None).is_empty());
    }

    #[test]
    fn the_expression_that_exceeds_the_budget_decides() {
        let of_three = ["true", "object.a.all(x, x > 0)", "true"];
        let found = decides(&spec("Fail", "true", &of_three), Some(4));
        assert_eq!(found, ["spec.validations[1].expression"]);
        let mut annotated = spec("Fail", "true", &["true"]);
        annotated["auditAnnotations"] =
            json!([{"key": "a", "valueExpression": "object.a.map(x, string(x)).join()"}]);
        let found = decides(&annotated, Some(4));
        assert_eq!(found, ["spec.auditAnnotations[0].valueExpression"]);
    }
}
