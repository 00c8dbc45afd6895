//! Runs the interpreter over all expressions of a policy for one kind, and collects the findings of the `truthful`
//! profile.
//!
//! If the policy distinguishes operations or resources, each expression is interpreted once for each operation and
//! resource of the kind. Otherwise it is interpreted once. An expression that the API server rejects fails for every
//! request, so its findings come from the type checker.

use std::collections::{BTreeMap, HashMap};

use super::interpret::presence::presence;
use super::interpret::value::{AbstractValue, Const};
use super::interpret::{self, Facts, Incomparable, Interpretation, Issue, Variable};
use super::requests::{self, RequestClass, RequestFeatures, roots};
use crate::compile::CompiledPolicy;
use crate::environment::{Declared, VariableTypes, policy_env};
use crate::expressions::{ExpressionCheck, OutputBudget, PolicyExpression, Role};
use crate::matching::Target;
use cel::ast::ExprId;
use cel::checker::CheckedAst;
use cel::decls::{Binding, Operator, Receiver};
use cel::diagnostic::{Code, DiagnosticKind, Diagnostics, UndefinedField};
use cel::env::Env;
use cel::eval::Program;
use cel::interrupt::working_on;
use cel::types::Type;
use kubernetes::library::runtime::KubernetesRuntime;
use kubernetes::schema::Gvk;

/// Maximum number of interpreter steps for all expressions and kinds of one policy.
const STEPS: u32 = 3_000_000;

/// The number of steps charged for each issue. It covers the work of storing, formatting and splitting findings.
const STEPS_OF_ISSUE: usize = 20;

/// For an expression that the API server rejects, one step is charged for this number of bytes of rendered findings.
const BYTES_OF_STEP: usize = 8;

/// Maximum number of issues reported for one expression and kind.
const MAX_ISSUES: usize = 200;

pub(super) struct Driver<'a> {
    policy: &'a CompiledPolicy,
    params: Option<&'a Type>,
    env: Env,
    features: RequestFeatures,
    budget: u32,
    text_left: OutputBudget,
    keeps_traces: bool,
}

/// The subexpressions that the interpreter reached in one expression, for one request class.
#[derive(Debug)]
pub(super) struct Trace {
    n: usize,
    visited: Vec<bool>,
    suppressed: Vec<ExprId>,
}

impl Trace {
    pub(super) fn is_visited(&self, id: ExprId) -> bool {
        self.visited.get(id.index()).copied().unwrap_or(false)
    }

    /// Returns true if `id` fails but its error is absorbed.
    pub(super) fn is_suppressed(&self, id: ExprId) -> bool {
        self.suppressed.contains(&id)
    }
}

#[derive(Debug, Default)]
pub(super) struct KindAnalysis {
    /// The findings by the index of the expression.
    pub(super) findings: BTreeMap<usize, Finding>,
    /// Presence tests for a field that objects of the kind cannot have: index of the expression, node and field.
    pub(super) absent: Vec<(usize, ExprId, UndefinedField)>,
    /// Presence tests for a field that objects of the kind may have: index of the expression and node.
    pub(super) present: Vec<(usize, ExprId)>,
    /// Comparisons whose operands are never equal because of their types: index of the expression, node and reason.
    pub(super) incomparable: Vec<(usize, ExprId, Incomparable)>,
    /// Comparisons whose operands may be equal: index of the expression and node.
    pub(super) comparable: Vec<(usize, ExprId)>,
    /// Calls of `or` and `orValue` whose receiver is not an optional: index of the expression and node.
    pub(super) non_optional: Vec<(usize, ExprId)>,
    /// Calls of `or` and `orValue` whose receiver may be an optional: index of the expression and node.
    pub(super) maybe_optional: Vec<(usize, ExprId)>,
    /// The evaluated match conditions and validations, by index. The flag is true if the expression is false in every
    /// request class.
    pub(super) is_false: BTreeMap<usize, bool>,
    /// The evaluated expressions, by index. Each entry contains the number of request classes that evaluate the
    /// expression, and one failing node for each class in which the expression selects a field of null.
    evaluated: BTreeMap<usize, (usize, Vec<ExprId>)>,
    /// The evaluated nodes, by the index of the expression.
    pub(super) visited: BTreeMap<usize, Vec<bool>>,
    /// The traces of the expressions. `None` unless [`Driver::with_traces`] requested them.
    traces: Option<Vec<Trace>>,
}

/// The errors of one expression for one kind.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// Subexpressions that fail for some request.
    Issues(Vec<Issue>),
    /// The API server rejects the expression.
    Rejected {
        /// The findings of the parser, the type checker or the planner.
        diagnostics: Diagnostics,
        /// The length in bytes of the rendered findings.
        n_bytes: usize,
    },
}

impl<'a> Driver<'a> {
    pub(super) fn new(policy: &'a CompiledPolicy, params: Option<&'a Type>) -> Self {
        let env = policy_env(&Declared {
            release: policy.version().release(),
            object: &Type::Dyn,
            params: params.map(|_| &Type::Dyn),
            authorizer: true,
            request_resource: true,
            mutation: policy.is_mutating(),
        });
        Self {
            policy,
            params,
            env,
            features: RequestFeatures::new(policy),
            budget: STEPS,
            text_left: OutputBudget::default(),
            keeps_traces: false,
        }
    }

    pub(super) fn with_traces(mut self) -> Self {
        self.keeps_traces = true;
        self
    }

    /// Returns true if `or` and `orValue` fail for a receiver that is not an optional. Returns false if they return
    /// such a receiver.
    pub(super) fn requires_optional(&self) -> bool {
        let function = self.env.lookup_function("orValue");
        let mut overloads = function.iter().flat_map(|function| &function.overloads);
        overloads.any(|overload| {
            let operator = Operator::OptionalOrValue(Receiver::Optional);
            matches!(overload.row.binding, Binding::Operator(it) if it == operator)
        })
    }

    pub(super) fn is_exhausted(&self) -> bool {
        self.budget == 0
    }

    pub(super) fn n_steps_left(&self) -> u32 {
        self.budget
    }

    /// Takes `n_steps` from the budget if it has more than `n_steps`. Returns true if the steps were taken.
    pub(super) fn try_take(&mut self, n_steps: u32) -> bool {
        let is_enough = n_steps < self.budget;
        if is_enough {
            self.budget -= n_steps;
        }
        is_enough
    }

    /// Analyzes all expressions for objects of `gvk` in the resources `targets`.
    pub(super) fn analyze(
        &mut self,
        gvk: &Gvk,
        object: &Type,
        targets: &[&Target<'_>],
    ) -> KindAnalysis {
        let mut analysis = KindAnalysis {
            traces: self.keeps_traces.then(Vec::new),
            ..KindAnalysis::default()
        };
        let mut types = BTreeMap::new();
        for class in requests::classes(self.features, targets) {
            self.interpret_class(gvk, object, class, &mut types, &mut analysis);
        }
        analysis.find_null();
        self.check_rejected(object, &types, &mut analysis);
        let n_steps = analysis.findings.values().map(Finding::n_steps).sum();
        self.take(n_steps);
        analysis
    }

    fn take(&mut self, n_steps: usize) {
        let n_steps = u32::try_from(n_steps).unwrap_or(u32::MAX);
        self.budget = self.budget.saturating_sub(n_steps);
    }

    /// Interprets all expressions for the requests of `class`. Stores the types of the variables in `types`.
    fn interpret_class(
        &mut self,
        gvk: &Gvk,
        object: &Type,
        class: RequestClass<'_>,
        types: &mut BTreeMap<usize, Type>,
        analysis: &mut KindAnalysis,
    ) {
        let env = self.env.clone();
        let mut facts = Facts {
            env: &env,
            roots: roots(gvk, object, self.params, class),
            variables: HashMap::new(),
            reads_go_values: self.policy.version().behavior().reads_go_values,
            applied_to: None,
        };
        let mut variables: HashMap<String, (usize, Option<Interpretation>)> = HashMap::new();
        for (n, variable) in expressions(self.policy, Role::Variable) {
            let name = variable.name.clone().unwrap_or_default();
            let outcome = self.interpret_expression(n, variable, &facts);
            // If the expression of a variable selects a field of null, the variable gets the unknown value.
            let value = outcome
                .as_ref()
                .filter(|outcome| outcome.null.is_empty())
                .map_or_else(AbstractValue::top, |outcome| outcome.value.clone());
            types.entry(n).or_insert_with(|| value.to_type());
            let parsed = variable.parsed().ok();
            let presence = parsed.and_then(|ast| presence(ast, ast.root(), &facts.variables));
            let variable = Variable { value, presence };
            // If several variables have the same name, expressions read the last one.
            facts.variables.insert(name.clone(), variable);
            variables.insert(name, (n, outcome));
        }
        let mut reached: Vec<(usize, Interpretation)> = Vec::new();
        // The API server evaluates match conditions without a namespace.
        //
        // Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/matchconditions/matcher.go`, `Match`.
        let namespace = facts.set_root("namespaceObject", AbstractValue::constant(Const::Null));
        let mut conditions = Vec::new();
        for (n, condition) in expressions(self.policy, Role::MatchCondition) {
            conditions.push((n, self.interpret_expression(n, condition, &facts)));
        }
        facts.set_root("namespaceObject", namespace);
        for (n, outcome) in conditions {
            let Some(outcome) = outcome else { continue };
            analysis.decide(n, &outcome);
            // If a match condition is false, the API server ignores the errors of other match conditions and evaluates
            // no validation.
            if outcome.value.as_bool() == Some(false) {
                let mut outcome = outcome;
                // Comparisons are recorded before the analysis ends, because a comparison of incomparable types may be
                // the reason why the condition is false.
                analysis.add_comparisons(n, &mut outcome);
                return;
            }
            reached.push((n, outcome));
        }
        let mut is_denied = true;
        for (n, expression) in self.policy.expressions().iter().enumerate() {
            match expression.role {
                Role::MessageExpression if !is_denied => continue,
                Role::Variable | Role::MatchCondition => continue,
                Role::MessageExpression
                | Role::Validation
                | Role::AuditAnnotation
                | Role::ApplyConfiguration
                | Role::JsonPatch => {}
            }
            facts.applied_to =
                (expression.role == Role::ApplyConfiguration).then(|| object.clone());
            let Some(outcome) = self.interpret_expression(n, expression, &facts) else {
                // A validation that does not compile denies no request, so its message is never evaluated.
                is_denied &= expression.role != Role::Validation;
                continue;
            };
            if expression.role == Role::Validation {
                analysis.decide(n, &outcome);
                // A validation that is always true denies no request, so its message is never evaluated.
                is_denied = outcome.value.as_bool() != Some(true);
            }
            reached.push((n, outcome));
        }
        // A variable is evaluated only if another evaluated expression reads it.
        let mut pending: Vec<String> = Vec::new();
        for (n, outcome) in reached {
            pending.extend(outcome.reads.iter().cloned());
            analysis.add(n, outcome);
        }
        while let Some(name) = pending.pop() {
            if let Some((n, outcome)) = variables.get_mut(&name)
                && let Some(outcome) = outcome.take()
            {
                pending.extend(outcome.reads.iter().cloned());
                analysis.add(*n, outcome);
            }
        }
    }

    /// Interprets an expression. `None` if the API server rejects the expression, or if no steps are left.
    fn interpret_expression(
        &mut self,
        n: usize,
        expression: &PolicyExpression,
        facts: &Facts<'_>,
    ) -> Option<Interpretation> {
        let ast = expression.parsed().ok()?;
        working_on(&expression.field_ref);
        (self.policy.compiles(n) && self.budget > 0)
            .then(|| interpret::interpret(ast, facts, &mut self.budget))
    }

    /// Adds the type checker's findings for the expressions that the API server rejects.
    fn check_rejected(
        &mut self,
        object: &Type,
        types: &BTreeMap<usize, Type>,
        analysis: &mut KindAnalysis,
    ) {
        let policy = self.policy;
        let all = policy.expressions().iter().enumerate();
        let rejected: Vec<_> = all.filter(|(n, _)| !policy.compiles(*n)).collect();
        if rejected.is_empty() {
            return;
        }
        let declared = |mutation| Declared {
            release: policy.version().release(),
            object,
            params: self.params,
            authorizer: true,
            request_resource: true,
            mutation,
        };
        let mut env = policy_env(&declared(false));
        let mut variables = VariableTypes::default();
        for (n, variable) in expressions(policy, Role::Variable) {
            let type_ = types.get(&n).cloned().unwrap_or(Type::Dyn);
            variables.add(variable.name.as_deref().unwrap_or_default(), type_);
        }
        env.set_variable("variables", variables.to_type());
        let mut mutation_env = policy_env(&declared(true));
        mutation_env.set_variable("variables", variables.to_type());
        for (n, expression) in rejected {
            self.take(expression.n_nodes());
            let is_mutation = expression.role.is_mutation();
            let env = if is_mutation { &mutation_env } else { &env };
            let mut diagnostics = match expression.check(env) {
                ExpressionCheck::Unparsed(diagnostics) => diagnostics.clone(),
                ExpressionCheck::Failed(_, diagnostics) => diagnostics,
                // A planning error of a mutation is reported once for the whole mutation.
                ExpressionCheck::Passed(_) if is_mutation => continue,
                ExpressionCheck::Passed(checked) => {
                    match unplanned(&checked, env, &expression.text) {
                        Some(diagnostics) => diagnostics,
                        None => continue,
                    }
                }
            };
            diagnostics.retain(|finding| finding.kind.code() != Code::TooComplex);
            if !diagnostics.is_empty() {
                let n_bytes = self.text_left.cut(&mut diagnostics, &expression.text);
                analysis.findings.insert(
                    n,
                    Finding::Rejected {
                        diagnostics,
                        n_bytes,
                    },
                );
            }
        }
    }
}

/// Returns the error of planning an expression that passes type checking. `None` if it can be planned. Without a plan,
/// the expression cannot be evaluated for any request.
fn unplanned(checked: &CheckedAst, env: &Env, text: &str) -> Option<Diagnostics> {
    let error = Program::plan(checked, env, &KubernetesRuntime).err()?;
    let issue = Issue {
        id: error.at().unwrap_or_else(|| checked.ast().root()),
        kind: DiagnosticKind::Other {
            code: Code::InvalidLiteral,
            message: error.to_string(),
            correction: None,
        },
        note: None,
    };
    Some(interpret::to_diagnostics([&issue], checked.ast(), text))
}

fn expressions(
    policy: &CompiledPolicy,
    role: Role,
) -> impl Iterator<Item = (usize, &PolicyExpression)> {
    let all = policy.expressions().iter().enumerate();
    all.filter(move |(_, e)| e.role == role)
}

impl KindAnalysis {
    /// Records for one request class whether the match condition or validation with the index `n` is false.
    fn decide(&mut self, n: usize, outcome: &Interpretation) {
        let is_false = outcome.value.as_bool() == Some(false) && !outcome.gave_up;
        *self.is_false.entry(n).or_insert(true) &= is_false;
    }

    fn add_comparisons(&mut self, n: usize, outcome: &mut Interpretation) {
        let incomparable = std::mem::take(&mut outcome.incomparable).into_iter();
        if !outcome.gave_up {
            self.incomparable
                .extend(incomparable.map(|(id, why)| (n, id, why)));
        }
        let comparable = std::mem::take(&mut outcome.comparable).into_iter();
        self.comparable.extend(comparable.map(|id| (n, id)));
    }

    fn add(&mut self, n: usize, mut outcome: Interpretation) {
        self.add_comparisons(n, &mut outcome);
        self.present
            .extend(outcome.present.into_iter().map(|id| (n, id)));
        if !outcome.gave_up {
            let non_optional = outcome.non_optional.into_iter();
            self.non_optional.extend(non_optional.map(|id| (n, id)));
        }
        let maybe_optional = outcome.maybe_optional.into_iter();
        self.maybe_optional.extend(maybe_optional.map(|id| (n, id)));
        let absent = outcome.absent.into_iter();
        self.absent.extend(absent.map(|(id, hint)| (n, id, hint)));
        for issue in outcome.issues {
            self.add_issue(n, issue);
        }
        let (n_evaluated, null) = self.evaluated.entry(n).or_default();
        if let Some(first) = outcome.null.first() {
            null.push(*first);
        }
        *n_evaluated += 1;
        add_visited(self.visited.entry(n).or_default(), &outcome.visited);
        if let Some(traces) = &mut self.traces {
            traces.push(Trace {
                n,
                visited: outcome.visited,
                suppressed: outcome.suppressed,
            });
        }
    }

    /// Returns the traces of the expression with the index `n`, one for each request class that evaluates it.
    pub(super) fn traces(&self, n: usize) -> impl Iterator<Item = &Trace> {
        self.traces
            .iter()
            .flatten()
            .filter(move |trace| trace.n == n)
    }

    /// Returns true if the analysis has none of these findings: failing subexpressions, tests for absent fields,
    /// comparisons of incomparable types.
    pub(super) fn has_no_findings(&self) -> bool {
        self.findings.is_empty() && self.absent.is_empty() && self.incomparable.is_empty()
    }

    pub(super) fn fails(&self, n: usize) -> bool {
        self.findings.contains_key(&n)
    }

    /// Returns true if the expression with the index `n` has a finding at the node `id`, or if the API server rejects
    /// it.
    pub(super) fn has_finding_at(&self, n: usize, id: Option<ExprId>) -> bool {
        self.findings.get(&n).is_some_and(|finding| match finding {
            Finding::Rejected { .. } => true,
            Finding::Issues(issues) => issues.iter().any(|issue| Some(issue.id) == id),
        })
    }

    /// Adds an issue for each expression that selects a field of null in all request classes that evaluate it.
    fn find_null(&mut self) {
        let evaluated = std::mem::take(&mut self.evaluated);
        for (n, (n_evaluated, null)) in evaluated {
            if let Some(id) = null.first()
                && null.len() == n_evaluated
            {
                let operand = Type::Null;
                let issue = Issue {
                    id: *id,
                    kind: DiagnosticKind::NoFieldSelection { operand },
                    note: Some(
                        "this value is null in every request for this kind, so the expression always fails",
                    ),
                };
                self.add_issue(n, issue);
            }
        }
    }

    /// Adds an issue to the expression with the index `n`. Issues beyond the maximum number are dropped.
    pub(super) fn add_issue(&mut self, n: usize, issue: Issue) {
        let entry = self.findings.entry(n);
        match entry.or_insert_with(|| Finding::Issues(Vec::new())) {
            Finding::Issues(issues) => {
                if issues.len() < MAX_ISSUES && !issues.contains(&issue) {
                    issues.push(issue);
                }
            }
            Finding::Rejected { .. } => {}
        }
    }
}

/// Adds the nodes in `visited` to `known`. Both have one flag per node.
pub(super) fn add_visited(known: &mut Vec<bool>, visited: &[bool]) {
    if known.is_empty() {
        known.extend(visited);
    } else {
        for (known, visited) in known.iter_mut().zip(visited) {
            *known |= visited;
        }
    }
}

impl Finding {
    fn n_steps(&self) -> usize {
        match self {
            Self::Issues(issues) => issues.len() * STEPS_OF_ISSUE,
            Self::Rejected { n_bytes, .. } => n_bytes / BYTES_OF_STEP,
        }
    }

    /// Converts the finding to diagnostics for `expression`. The diagnostics are cut to the length that `text_left`
    /// allows.
    pub(super) fn to_diagnostics(
        &self,
        expression: &PolicyExpression,
        text_left: &OutputBudget,
    ) -> Diagnostics {
        let mut diagnostics = match (self, expression.parsed()) {
            (Self::Rejected { diagnostics, .. }, _) => return diagnostics.clone(),
            (Self::Issues(issues), Ok(ast)) => {
                interpret::to_diagnostics(issues, ast, &expression.text)
            }
            (Self::Issues(_), Err(diagnostics)) => diagnostics.clone(),
        };
        text_left.cut(&mut diagnostics, &expression.text);
        diagnostics
    }
}
