//! The report of `eval`: the decisions of policies for a request, and the documented format of `-o json`.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::policy_set::PreparedPolicy;
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::exit::Exit;
use crate::cli::test::trace::{self, Trace};
use crate::cli::unified;
use crate::policy::admission::{
    Action, AdmissionRequest, Evaluation, EvaluationResult, ReviewOutcome, Unmatched,
};
use crate::policy::expressions::Role;
use crate::probe;
use crate::probe::mutation::patch;
use crate::probe::run::CaseResult;

/// Output of `kubectl vap eval -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvalReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `EvalReport`.
    pub kind: &'static str,
    /// The Kubernetes version whose APIs are served, such as `1.36`.
    pub kubernetes: String,
    /// The address of the cluster, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The request; absent if it cannot be built from the input.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<RequestReport>,
    /// `Allow`, `Deny`, or `Unknown` if no policy denies and some data could not be read or evaluated.
    pub decision: &'static str,
    /// The number of policies by result.
    pub summary: Summary,
    /// Problems with the input, and data that could not be read.
    pub findings: Vec<Finding>,
    /// The policies: first mutating, then validating ones, each in the order of the input.
    pub policies: Vec<PolicyEval>,
    /// The object after all mutating policies, for which validating policies are evaluated; absent if it does not
    /// change.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutated: Option<MutatedObject>,
    /// The reason why the object after all mutating policies is unknown. In this case, validating policies are
    /// evaluated for the object of the request. Absent if the object is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_mutated: Option<String>,
}

/// A mutated object.
#[derive(Clone, Debug, Serialize)]
pub struct MutatedObject {
    /// The JSON patch from the object before the mutations.
    pub patch: Vec<Value>,
    /// The change as a unified diff of YAML.
    pub change: String,
    /// The object after the mutations.
    pub object: Value,
}

/// The evaluated request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestReport {
    /// `CREATE`, `UPDATE`, `DELETE` or `CONNECT`.
    pub operation: String,
    /// The group and version, such as `apps/v1`.
    pub api_version: String,
    /// The resource, such as `deployments`, or `deployments/scale` with a subresource.
    pub resource: String,
    /// The kind of the object.
    pub kind: String,
    /// The namespace; empty for cluster-scoped objects.
    pub namespace: String,
    /// The name. For an object with `generateName`, it is an example of a generated name.
    pub name: String,
    /// The name of the user.
    pub user: String,
}

/// The number of policies by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All policies.
    pub policies: usize,
    /// Policies that deny the request.
    pub denied: usize,
    /// Policies that match and allow the request.
    pub allowed: usize,
    /// Mutating policies that change the object.
    pub mutated: usize,
    /// Policies that do not apply because of their constraints, bindings or match conditions.
    pub passed_over: usize,
    /// Policies that could not be evaluated, or that the API server rejects.
    pub unknown: usize,
}

/// The result of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Verdict {
    /// A mutating policy changes the object.
    Mutated,
    /// A mutating policy matches, but does not change the object.
    Unchanged,
    /// The policy denies the request.
    Denied,
    /// The policy allows the request, possibly with warnings.
    Allowed,
    /// A match condition is false.
    Excluded,
    /// The match constraints do not match.
    NotMatched,
    /// No binding matches, or the cluster has no binding for the policy.
    NotBound,
    /// The policy could not be evaluated.
    Unknown,
    /// The API server rejects the policy itself.
    #[serde(rename = "Refused")]
    Rejected,
}

/// The decision of a policy for the request.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyEval {
    /// The name of the policy.
    pub name: String,
    /// `MutatingAdmissionPolicy`; absent for a validating one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The file, or `validatingadmissionpolicy/NAME` in a cluster.
    pub file: String,
    /// The line of the policy's name in that file.
    pub line: usize,
    /// The result of the policy.
    pub verdict: Verdict,
    /// The reason in one sentence: the message of a denial, the part that does not match, or the evaluation error.
    pub why: String,
    /// The reason in the status of a denial, such as `Invalid`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The HTTP code of that status.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<u16>,
    /// The complete message to the client.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// True if no binding of the policy is known. The policy is then evaluated with an implied binding that matches all
    /// requests.
    pub is_binding_implied: bool,
    /// The bindings, if the constraints of the policy match.
    pub bindings: Vec<BindingEval>,
    /// The evaluations: one for each matching binding and each of its params.
    pub evaluations: Vec<EvaluationReport>,
    /// The object after the mutations of this policy alone, if it changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutated: Option<MutatedObject>,
    /// The mutations that were evaluated, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub mutations: Vec<MutationReport>,
    /// The warnings to the client.
    pub warnings: Vec<String>,
    /// The audit annotations, by their full keys.
    pub audit_annotations: BTreeMap<String, String>,
    /// The errors, including those that failurePolicy `Ignore` ignores.
    pub errors: Vec<String>,
    /// The cost, in CEL cost units.
    pub cost_used: u64,
    /// All evaluated expressions, with the values of their subexpressions. `decides` marks those that determined the
    /// decision.
    pub trace: Vec<Trace>,
}

/// A binding of the policy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BindingEval {
    /// The name of the binding.
    pub name: String,
    /// True if the binding matches the request.
    pub matches: bool,
    /// The error if matching failed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// The actions of the binding: `Deny`, `Warn`, `Audit`.
    pub validation_actions: Vec<String>,
}

/// The evaluation of a policy for one binding and one of its params.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EvaluationReport {
    /// The name of the binding.
    pub binding: String,
    /// The params, `namespace/name`; absent if the policy has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// The match conditions, as far as they were evaluated.
    pub match_conditions: Vec<ExpressionReport>,
    /// The validations; empty if a match condition is false or fails.
    pub validations: Vec<ExpressionReport>,
    /// The cost, in CEL cost units.
    pub cost_used: u64,
}

/// A mutation that was evaluated.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MutationReport {
    /// The field, `spec.mutations[0]`.
    pub field_ref: String,
    /// The name of the binding.
    pub binding: String,
    /// The params, `namespace/name`; absent if the policy has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<String>,
    /// `changed`, `unchanged` or `error`.
    pub result: &'static str,
    /// The message of the error; empty if there is none.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// True if the policy was reinvoked.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub is_reinvocation: bool,
    /// The cost, in CEL cost units.
    pub cost_used: u64,
}

/// The result of an expression.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionReport {
    /// The field, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The name of the match condition; absent for a validation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `true`, `false` or `error`.
    pub result: &'static str,
    /// The message of a validation that is not true, or the error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// The reason of a validation that is not true.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub reason: String,
}

impl RequestReport {
    pub(super) fn new(request: &AdmissionRequest) -> Self {
        let sub = match request.subresource.as_str() {
            "" => String::new(),
            sub => format!("/{sub}"),
        };
        Self {
            operation: request.operation.to_string(),
            api_version: request.gvr.group_version().to_string(),
            resource: format!("{}{sub}", request.gvr.resource),
            kind: request.gvk.kind.clone(),
            namespace: request.namespace.clone(),
            name: request.name.clone(),
            user: request.user_info.username.clone(),
        }
    }
}

impl PolicyEval {
    /// Creates the result of a policy that was not evaluated.
    pub(super) fn without(policy: &PreparedPolicy<'_>, verdict: Verdict, why: String) -> Self {
        let place = policy.object.place();
        Self {
            name: policy.name.to_owned(),
            kind: policy
                .mutating
                .is_some()
                .then_some("MutatingAdmissionPolicy"),
            file: policy.object.source.name.clone(),
            line: place.line,
            verdict,
            why,
            reason: None,
            code: None,
            message: None,
            is_binding_implied: policy.is_unbound,
            bindings: Vec::new(),
            evaluations: Vec::new(),
            mutated: None,
            mutations: Vec::new(),
            warnings: Vec::new(),
            audit_annotations: BTreeMap::new(),
            errors: Vec::new(),
            cost_used: 0,
            trace: Vec::new(),
        }
    }

    pub(super) fn new(policy: &PreparedPolicy<'_>, result: &CaseResult) -> Self {
        let Some(outcome) = &result.outcome else {
            let why = result.status.difference.clone().unwrap_or_default();
            return Self::without(policy, Verdict::Unknown, why);
        };
        let (mut verdict, mut why) = verdict(outcome);
        let mutated = result.mutated.as_deref();
        let mut object = None;
        if let Some(mutated) = mutated
            && verdict == Verdict::Allowed
        {
            let errors = outcome.errors.first();
            (verdict, why) = match mutated.after.as_ref().filter(|_| mutated.is_changed()) {
                Some(after) => {
                    object = Some(MutatedObject {
                        patch: patch::between(&mutated.before, after),
                        change: unified::from_objects(("before", "after"), &mutated.before, after),
                        object: after.clone(),
                    });
                    (Verdict::Mutated, "the object changes".to_owned())
                }
                None if errors.is_some() => (Verdict::Unchanged, why),
                None => (Verdict::Unchanged, "the object does not change".to_owned()),
            };
        }
        let steps = mutated.map(|mutated| mutated.steps.as_slice());
        let mutations = steps.unwrap_or_default().iter().map(|step| MutationReport {
            field_ref: format!("spec.mutations[{}]", step.mutation),
            binding: step.binding.clone(),
            params: step.params.clone(),
            result: match step.changes {
                Ok(true) => "changed",
                Ok(false) => "unchanged",
                Err(_) => "error",
            },
            message: (step.changes.as_ref().err())
                .map_or_else(String::new, |error| error.message.clone()),
            is_reinvocation: step.is_again,
            cost_used: step.cost,
        });
        let denial = outcome.denial.as_ref();
        let deciding = trace::case_traces(result, &[], &policy.compiled, policy.object);
        let decides = |field: &str| {
            let shown = deciding.shown.iter();
            let mut shown = shown.filter(|it| it.decides);
            shown.any(|it| it.field_ref == field) || deciding.left_out.iter().any(|it| it == field)
        };
        let n_expressions = policy.compiled.expressions().len();
        let trace = (0..n_expressions).filter_map(|index| {
            let mut trace =
                trace::expression_trace(result, &policy.compiled, policy.object, index)?;
            trace.decides = decides(&trace.field_ref);
            Some(trace)
        });
        let bindings = outcome.bindings.iter().map(|binding| BindingEval {
            name: binding.name.clone(),
            matches: binding.matches,
            error: binding.error.clone(),
            validation_actions: policy.actions(Some(&binding.name)).to_vec(),
        });
        let evaluations = outcome.evaluations.iter();
        Self {
            reason: denial.map(|denial| denial.reason.clone()),
            code: denial.map(|denial| denial.code),
            message: denial.map(|denial| denial.message.clone()),
            bindings: bindings.collect(),
            evaluations: evaluations.map(|it| evaluation(policy, it)).collect(),
            mutated: object,
            mutations: mutations.collect(),
            warnings: outcome.warnings.clone(),
            audit_annotations: outcome.audit_annotations.clone(),
            errors: outcome.errors.clone(),
            cost_used: u64::try_from(result.status.cost_used.unwrap_or_default())
                .unwrap_or_default(),
            trace: trace.collect(),
            ..Self::without(policy, verdict, why)
        }
    }
}

fn verdict(outcome: &ReviewOutcome) -> (Verdict, String) {
    if let Some(why) = &outcome.not_evaluated_reason {
        return (Verdict::NotMatched, why.clone());
    }
    if let Some(denial) = &outcome.denial {
        return (Verdict::Denied, denial.cause.clone());
    }
    if let Some(error) = &outcome.definition.error {
        return (
            Verdict::Allowed,
            format!("failurePolicy Ignore ignores an error: {error}"),
        );
    }
    if outcome.definition.matched.is_none() {
        return (
            Verdict::NotMatched,
            (outcome.definition.unmatched)
                .map_or("its match constraints do not match", Unmatched::words)
                .to_owned(),
        );
    }
    if !outcome.bindings.iter().any(|binding| binding.matches) {
        let error = outcome
            .bindings
            .iter()
            .find_map(|binding| binding.error.as_ref());
        return match error {
            Some(error) => (
                Verdict::Allowed,
                format!("failurePolicy Ignore ignores an error: {error}"),
            ),
            None => (Verdict::NotBound, probe::unbound(outcome)),
        };
    }
    if let Some(error) = outcome.errors.first() {
        return (
            Verdict::Allowed,
            format!("an error that does not deny the request: {error}"),
        );
    }
    let condition = outcome.evaluations.iter().map(|evaluation| {
        let conditions = evaluation.match_conditions.as_ref()?;
        conditions.failed_condition.as_deref()
    });
    let conditions: Option<Vec<&str>> = condition.collect();
    match conditions.as_deref() {
        Some([]) => (
            Verdict::Allowed,
            "there are no params, and parameterNotFoundAction is Allow".to_owned(),
        ),
        Some([first, ..]) => (
            Verdict::Excluded,
            format!("the match condition `{first}` is false"),
        ),
        None if failed(outcome) => {
            let message = "a validation is false, but no matching binding has the action Deny";
            (Verdict::Allowed, message.to_owned())
        }
        None => (Verdict::Allowed, "all validations are true".to_owned()),
    }
}

/// Returns true if a validation denies the request.
fn failed(outcome: &ReviewOutcome) -> bool {
    let decisions = outcome.evaluations.iter().flat_map(|it| &it.decisions);
    decisions
        .into_iter()
        .any(|decision| decision.action == Action::Deny)
}

fn evaluation(policy: &PreparedPolicy<'_>, evaluation: &Evaluation) -> EvaluationReport {
    let with_role = |role| {
        let all = policy.compiled.expressions().iter();
        all.filter(move |expression| expression.role == role)
    };
    let report = |field_ref: &str, name: Option<&str>, result| ExpressionReport {
        field_ref: field_ref.to_owned(),
        name: name.map(str::to_owned),
        result,
        message: String::new(),
        reason: String::new(),
    };
    let mut match_conditions = Vec::new();
    if let Some(conditions) = &evaluation.match_conditions {
        let failed = conditions.failed_condition.as_deref();
        let error = conditions.error.as_ref().or(conditions.ignored.as_ref());
        for condition in with_role(Role::MatchCondition) {
            let name = condition.name.as_deref();
            if error.is_some() && failed.is_none() {
                continue;
            }
            let is_false = failed.is_some() && name == failed;
            let result = if is_false { "false" } else { "true" };
            match_conditions.push(report(&condition.field_ref, name, result));
            if is_false {
                break;
            }
        }
        if let Some(error) = error {
            let mut failure = report("spec.matchConditions", None, "error");
            failure.message.clone_from(error);
            match_conditions.push(failure);
        }
    }
    let validations: Vec<_> = with_role(Role::Validation).collect();
    let is_whole = evaluation.decisions.len() == validations.len();
    // If a match condition is false or fails, the validations were not evaluated.
    let conditions = evaluation.match_conditions.as_ref();
    let is_over = conditions.is_some_and(|it| !it.matches);
    let decisions = if is_over {
        &[][..]
    } else {
        &evaluation.decisions
    };
    let decisions = decisions.iter().enumerate().map(|(n, decision)| {
        let field = validations.get(n).filter(|_| is_whole);
        let field = field.map_or("spec", |validation| validation.field_ref.as_str());
        let result = match decision.evaluation {
            EvaluationResult::Admit => "true",
            EvaluationResult::Deny => "false",
            EvaluationResult::Error => "error",
        };
        ExpressionReport {
            message: decision.message.clone(),
            reason: decision.reason.clone(),
            ..report(field, None, result)
        }
    });
    EvaluationReport {
        binding: evaluation.binding.clone().unwrap_or_default(),
        params: evaluation.params.clone(),
        match_conditions,
        validations: decisions.collect(),
        cost_used: evaluation.costs.used(),
    }
}

impl EvalReport {
    /// Computes the summary and the decision.
    pub(super) fn finish(&mut self) {
        let count = |of: &[Verdict]| {
            let policies = self.policies.iter();
            policies
                .filter(|policy| of.contains(&policy.verdict))
                .count()
        };
        self.summary = Summary {
            policies: self.policies.len(),
            denied: count(&[Verdict::Denied]),
            allowed: count(&[Verdict::Allowed, Verdict::Unchanged]),
            mutated: count(&[Verdict::Mutated]),
            passed_over: count(&[Verdict::Excluded, Verdict::NotMatched, Verdict::NotBound]),
            unknown: count(&[Verdict::Unknown, Verdict::Rejected]),
        };
        self.decision = if self.summary.denied > 0 {
            "Deny"
        } else if self.is_incomplete() {
            "Unknown"
        } else {
            "Allow"
        };
    }

    fn is_incomplete(&self) -> bool {
        let is_error = |found: &Finding| found.severity == Severity::Error;
        self.summary.unknown > 0
            || (self.not_mutated.is_some() && self.summary.denied == 0)
            || self.policies.is_empty()
            || self.findings.iter().any(is_error)
    }

    /// Returns the exit status, which is 2 for an incomplete evaluation, even if a policy denies the request.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.is_incomplete() {
            Exit::Failed
        } else if self.summary.denied > 0 {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}
