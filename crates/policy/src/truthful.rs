//! The `truthful` profile: what cannot be evaluated for one kind.
//!
//! Each expression is followed once for all requests that are alike: for each operation and each resource
//! of the kind, where the policy asks for these. What the API server refuses is trouble whatever is
//! evaluated, and is the checker's.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::compile::CompiledPolicy;
use super::environment::{Declared, VariableTypes, authorizer_types, evaluated_types, policy_env};
use super::expressions::{Checked, PolicyExpression, Role, TextLeft};
use super::flow::presence::presence;
use super::flow::value::{Const, Object, Shape, Value};
use super::flow::{self, Facts, Issue, Outcome, Variable};
use super::matching::{Operations, Target};
use cel::ast::{Expr, ExprId, Literal};
use cel::checker::CheckedAst;
use cel::diagnostic::{Code, Diagnostics};
use cel::env::Env;
use cel::eval::Program;
use cel::types::{FieldTypes, StructType, Type};
use kubernetes::library::runtime::KubernetesRuntime;
use kubernetes::schema::Gvk;

/// The steps that the expressions of a policy may take for all kinds together.
const STEPS: u32 = 3_000_000;

/// How many steps what was found stands for, since it is kept, put into words and taken apart: each issue, and
/// a text by its bytes.
const STEPS_OF_ISSUE: usize = 20;
const BYTES_OF_STEP: usize = 8;

/// The most issues that are told of one expression for one kind.
const MAX_ISSUES: usize = 200;

/// The most resources of one kind that are told apart.
const MAX_RESOURCES: usize = 8;

/// The profile at work on one policy.
pub(super) struct Judge<'a> {
    policy: &'a CompiledPolicy,
    params: Option<&'a Type>,
    env: Env,
    needs: Needs,
    budget: u32,
    text_left: TextLeft,
    keeps_traces: bool,
}

/// What an expression came by.
#[derive(Debug)]
pub(super) struct Trace {
    n: usize,
    visited: Vec<bool>,
    excused: Vec<ExprId>,
}

impl Trace {
    /// Whether `id` is evaluated.
    pub(super) fn is_visited(&self, id: ExprId) -> bool {
        self.visited.get(id.index()).copied().unwrap_or(false)
    }

    /// Whether `id` cannot be evaluated, to no effect.
    pub(super) fn is_excused(&self, id: ExprId) -> bool {
        self.excused.contains(&id)
    }
}

/// What was found for one kind.
#[derive(Debug, Default)]
pub(super) struct Judged {
    /// By the index of the expression.
    pub(super) found: BTreeMap<usize, Finding>,
    /// Tests for a field that objects of the kind cannot have: the expression, the test and the field.
    pub(super) absent: Vec<(usize, ExprId, String)>,
    /// The other tests for a field.
    pub(super) present: Vec<(usize, ExprId)>,
    /// How many sorts of requests evaluate each expression, and in how many of them it selects from null.
    evaluated: BTreeMap<usize, (usize, Vec<ExprId>)>,
    /// What is evaluated of each expression, by its index.
    pub(super) visited: BTreeMap<usize, Vec<bool>>,
    /// What the expressions came by, where that was asked for.
    traces: Option<Vec<Trace>>,
}

/// What is wrong with an expression for one kind.
#[derive(Clone, Debug)]
pub(super) enum Finding {
    /// What cannot be evaluated.
    Issues(Vec<Issue>),
    /// What the API server refuses.
    Refused(String),
}

/// What the expressions of a policy ask for.
#[derive(Clone, Copy, Debug, Default)]
struct Needs {
    operations: bool,
    resources: bool,
}

impl Needs {
    fn of(policy: &CompiledPolicy) -> Self {
        let mut needs = Self::default();
        for ast in policy.expressions().iter().filter_map(|e| e.parsed().ok()) {
            for (_, expr) in ast.iter() {
                match expr {
                    Expr::Ident(name) => needs.operations |= &**name == "oldObject",
                    Expr::Literal(Literal::Null) => needs.operations = true,
                    Expr::Select { field, .. } => needs.add_field(field),
                    Expr::Literal(Literal::String(text)) => needs.add_field(text),
                    _ => {}
                }
            }
        }
        needs
    }

    fn add_field(&mut self, field: &str) {
        self.operations |= field == "operation";
        self.resources |= matches!(
            field,
            "resource" | "subResource" | "requestResource" | "requestSubResource"
        );
    }
}

/// The type of objects of a kind without a schema: they have metadata, as all objects have, and may have
/// anything else. `metadata` is its type, where a schema of another kind tells it.
pub(super) fn unseen_type(metadata: Option<Type>) -> Type {
    Type::Struct(StructType::new(
        "object",
        Arc::new(Unseen {
            metadata: metadata.unwrap_or(Type::Dyn),
        }),
    ))
}

/// The type of the metadata of objects of the type `object`.
pub(super) fn metadata_type(object: &Type) -> Option<Type> {
    match object {
        Type::Struct(object) => {
            let fields = object.fields.as_ref()?;
            fields.field_type(&object.name, "metadata")
        }
        _ => None,
    }
}

/// The fields of an object without a schema.
#[derive(Debug)]
struct Unseen {
    metadata: Type,
}

impl FieldTypes for Unseen {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        Some(match field {
            "metadata" => self.metadata.clone(),
            _ => Type::Dyn,
        })
    }

    fn field_names(&self) -> Vec<&str> {
        vec!["metadata"]
    }

    fn may_hold(&self, _field: &str) -> bool {
        true
    }
}

/// Requests that are alike.
#[derive(Clone, Copy, Debug)]
struct Context<'a> {
    /// The operation; `None` where it does not matter.
    operation: Option<&'static str>,
    /// The resource; `None` where there are several and it does not matter.
    target: Option<&'a Target<'a>>,
}

impl<'a> Judge<'a> {
    pub(super) fn new(policy: &'a CompiledPolicy, params: Option<&'a Type>) -> Self {
        let env = policy_env(&Declared {
            object: &Type::Dyn,
            params: params.map(|_| &Type::Dyn),
            authorizer: true,
            request_resource: true,
        });
        Self {
            policy,
            params,
            env,
            needs: Needs::of(policy),
            budget: STEPS,
            text_left: TextLeft::default(),
            keeps_traces: false,
        }
    }

    /// This one, keeping what the expressions came by.
    pub(super) fn with_traces(mut self) -> Self {
        self.keeps_traces = true;
        self
    }

    /// Whether there are no steps left.
    pub(super) fn is_exhausted(&self) -> bool {
        self.budget == 0
    }

    /// What is wrong for objects of `gvk`, which `targets` hold.
    pub(super) fn judge(&mut self, gvk: &Gvk, object: &Type, targets: &[&Target<'_>]) -> Judged {
        let mut judged = Judged {
            traces: self.keeps_traces.then(Vec::new),
            ..Judged::default()
        };
        let mut types = BTreeMap::new();
        for context in self.contexts(targets) {
            self.judge_context(gvk, object, context, &mut types, &mut judged);
        }
        judged.find_null();
        self.judge_refused(object, &types, &mut judged);
        let found = judged.found.values().map(Finding::n_steps).sum();
        self.take(found);
        judged
    }

    /// Takes steps from the budget.
    fn take(&mut self, n_steps: usize) {
        let n_steps = u32::try_from(n_steps).unwrap_or(u32::MAX);
        self.budget = self.budget.saturating_sub(n_steps);
    }

    fn contexts<'t>(&self, targets: &'t [&'t Target<'t>]) -> Vec<Context<'t>> {
        let mut contexts = Vec::new();
        let split: Vec<&[&Target<'_>]> = if self.needs.resources && targets.len() <= MAX_RESOURCES {
            targets.chunks(1).collect()
        } else {
            vec![targets]
        };
        for part in split {
            let target = match part {
                [only] => Some(*only),
                _ => None,
            };
            let operations = Operations::NAMES.into_iter().filter(|name| {
                let has = |target: &&Target<'_>| target.operations.names().any(|n| n == *name);
                part.iter().any(has)
            });
            let operations: Vec<_> = operations.collect();
            if self.needs.operations || *operations == ["DELETE"] {
                contexts.extend(operations.into_iter().map(|operation| Context {
                    operation: Some(operation),
                    target,
                }));
            } else {
                contexts.push(Context {
                    operation: None,
                    target,
                });
            }
        }
        contexts
    }

    /// Follows all expressions for the requests of `context`; keeps the types of the variables.
    fn judge_context(
        &mut self,
        gvk: &Gvk,
        object: &Type,
        context: Context<'_>,
        types: &mut BTreeMap<usize, Type>,
        judged: &mut Judged,
    ) {
        let env = self.env.clone();
        let mut facts = Facts {
            env: &env,
            roots: roots(gvk, object, self.params, context),
            variables: HashMap::new(),
        };
        let mut variables: HashMap<String, (usize, Option<Outcome>)> = HashMap::new();
        for (n, variable) in expressions(self.policy, Role::Variable) {
            let name = variable.name.clone().unwrap_or_default();
            let outcome = self.follow(n, variable, &facts);
            // A variable that selects from null has no value that anything could be said of.
            let value = outcome
                .as_ref()
                .filter(|outcome| outcome.null.is_empty())
                .map_or_else(Value::unknown, |outcome| outcome.value.clone());
            types.entry(n).or_insert_with(|| value.to_type());
            let parsed = variable.parsed().ok();
            let presence = parsed.and_then(|ast| presence(ast, ast.root(), &facts.variables));
            let variable = Variable { value, presence };
            // The last variable of a name counts.
            facts.variables.insert(name.clone(), variable);
            variables.insert(name, (n, outcome));
        }
        let mut reached: Vec<(usize, Outcome)> = Vec::new();
        // The API server gives match conditions no namespace.
        //
        // Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/matchconditions/matcher.go`, `Match`.
        let namespace = facts.set_root("namespaceObject", Value::constant(Const::Null));
        let mut conditions = Vec::new();
        for (n, condition) in expressions(self.policy, Role::MatchCondition) {
            conditions.push((n, self.follow(n, condition, &facts)));
        }
        facts.set_root("namespaceObject", namespace);
        for (n, outcome) in conditions {
            let Some(outcome) = outcome else { continue };
            // A match condition that is false hides all else, the errors of others too.
            if outcome.value.as_bool() == Some(false) {
                return;
            }
            reached.push((n, outcome));
        }
        let mut is_denied = true;
        for (n, expression) in self.policy.expressions().iter().enumerate() {
            match expression.role {
                Role::MessageExpression if !is_denied => continue,
                Role::Variable | Role::MatchCondition => continue,
                Role::MessageExpression | Role::Validation | Role::AuditAnnotation => {}
            }
            let Some(outcome) = self.follow(n, expression, &facts) else {
                // A validation that does not compile denies nothing.
                is_denied &= expression.role != Role::Validation;
                continue;
            };
            if expression.role == Role::Validation {
                // The message of a validation that always holds is of no use to anyone.
                is_denied = outcome.value.as_bool() != Some(true);
            }
            reached.push((n, outcome));
        }
        // Variables are evaluated when something that is reached reads them.
        let mut pending: Vec<String> = Vec::new();
        for (n, outcome) in reached {
            pending.extend(outcome.reads.iter().cloned());
            judged.add(n, outcome);
        }
        while let Some(name) = pending.pop() {
            if let Some((n, outcome)) = variables.get_mut(&name)
                && let Some(outcome) = outcome.take()
            {
                pending.extend(outcome.reads.iter().cloned());
                judged.add(*n, outcome);
            }
        }
    }

    /// Follows an expression that the API server accepts.
    fn follow(
        &mut self,
        n: usize,
        expression: &PolicyExpression,
        facts: &Facts<'_>,
    ) -> Option<Outcome> {
        let ast = expression.parsed().ok()?;
        (self.policy.compiles(n) && self.budget > 0)
            .then(|| flow::follow(ast, facts, &mut self.budget))
    }

    /// The checker's findings about expressions that the API server refuses.
    fn judge_refused(&mut self, object: &Type, types: &BTreeMap<usize, Type>, judged: &mut Judged) {
        let policy = self.policy;
        let all = policy.expressions().iter().enumerate();
        let refused: Vec<_> = all.filter(|(n, _)| !policy.compiles(*n)).collect();
        if refused.is_empty() {
            return;
        }
        let mut env = policy_env(&Declared {
            object,
            params: self.params,
            authorizer: true,
            request_resource: true,
        });
        let mut variables = VariableTypes::default();
        for (n, variable) in expressions(policy, Role::Variable) {
            let type_ = types.get(&n).cloned().unwrap_or(Type::Dyn);
            variables.add(variable.name.as_deref().unwrap_or_default(), type_);
        }
        env.set_variable("variables", variables.to_type());
        for (n, expression) in refused {
            self.take(expression.n_nodes());
            let mut found = match expression.check(&env) {
                Checked::Unparsed(found) => found.clone(),
                Checked::Failed(_, found) => found,
                Checked::Passed(checked) => match unplanned(&checked, &env, &expression.text) {
                    Some(found) => found,
                    None => continue,
                },
            };
            found.retain(|finding| finding.code != Code::TooComplex);
            if !found.is_empty() {
                let text = self.text_left.render(&found, &expression.text);
                judged.found.insert(n, Finding::Refused(text));
            }
        }
    }
}

/// Why the API server cannot plan an expression that passes the check, if it cannot: then no request can
/// be evaluated, whichever of its branches it takes.
fn unplanned(checked: &CheckedAst, env: &Env, text: &str) -> Option<Diagnostics> {
    let error = Program::plan(checked, env, &KubernetesRuntime).err()?;
    let issue = Issue {
        id: error.at().unwrap_or_else(|| checked.ast().root()),
        code: Code::InvalidLiteral,
        message: error.to_string(),
    };
    Some(flow::to_diagnostics([&issue], checked.ast(), text))
}

/// The expressions of one role, with their indices.
fn expressions(
    policy: &CompiledPolicy,
    role: Role,
) -> impl Iterator<Item = (usize, &PolicyExpression)> {
    let all = policy.expressions().iter().enumerate();
    all.filter(move |(_, e)| e.role == role)
}

impl Judged {
    fn add(&mut self, n: usize, outcome: Outcome) {
        self.present
            .extend(outcome.present.into_iter().map(|id| (n, id)));
        let absent = outcome.absent.into_iter();
        self.absent.extend(absent.map(|(id, field)| (n, id, field)));
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
                excused: outcome.excused,
            });
        }
    }

    /// What the expression of the index `n` came by, for each sort of request.
    pub(super) fn traces(&self, n: usize) -> impl Iterator<Item = &Trace> {
        self.traces
            .iter()
            .flatten()
            .filter(move |trace| trace.n == n)
    }

    /// Whether something is wrong with the expression of the index `n`.
    pub(super) fn fails(&self, n: usize) -> bool {
        self.found.contains_key(&n)
    }

    /// Whether something at `id` in the expression of the index `n` is told.
    pub(super) fn tells(&self, n: usize, id: Option<ExprId>) -> bool {
        self.found.get(&n).is_some_and(|finding| match finding {
            Finding::Refused(_) => true,
            Finding::Issues(issues) => issues.iter().any(|issue| Some(issue.id) == id),
        })
    }

    /// Finds the expressions that select from null in every request.
    fn find_null(&mut self) {
        let evaluated = std::mem::take(&mut self.evaluated);
        for (n, (n_evaluated, null)) in evaluated {
            if let Some(id) = null.first()
                && null.len() == n_evaluated
            {
                let message = "type 'null' does not support field selection: this is null in every request that \
                               the rules match, so that the expression always fails";
                let issue = Issue {
                    id: *id,
                    code: Code::NoFieldSelection,
                    message: message.to_owned(),
                };
                self.add_issue(n, issue);
            }
        }
    }

    /// Adds something that cannot be evaluated in the expression of the index `n`.
    pub(super) fn add_issue(&mut self, n: usize, issue: Issue) {
        let found = self.found.entry(n);
        match found.or_insert_with(|| Finding::Issues(Vec::new())) {
            Finding::Issues(issues) => {
                if issues.len() < MAX_ISSUES && !issues.contains(&issue) {
                    issues.push(issue);
                }
            }
            Finding::Refused(_) => {}
        }
    }
}

/// Adds to what was evaluated of an expression, by the ids of its nodes, what `visited` says.
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
    /// How many steps it stands for.
    fn n_steps(&self) -> usize {
        match self {
            Self::Issues(issues) => issues.len() * STEPS_OF_ISSUE,
            Self::Refused(text) => text.len() / BYTES_OF_STEP,
        }
    }

    /// The text of the finding about `expression`.
    pub(super) fn render(&self, expression: &PolicyExpression, text_left: &TextLeft) -> String {
        match self {
            Self::Refused(text) => text.clone(),
            Self::Issues(issues) => match expression.parsed() {
                Ok(ast) => {
                    let found = flow::to_diagnostics(issues, ast, &expression.text);
                    text_left.render(&found, &expression.text)
                }
                Err(found) => text_left.render(found, &expression.text),
            },
        }
    }
}

/// The optional fields of objects that the API server always writes, if only as null: group, kind and field.
/// That an object has them is certain, so that `has(object.rules)` does not tell a role from its binding.
///
/// Source: `k8s.io/api` `rbac/v1/types.go`, `discovery/v1/types.go`, `scheduling/v1/types.go`,
/// `core/v1/types.go` (no `omitempty`).
const ALWAYS_WRITTEN: [(&str, &str, &str); 7] = [
    ("rbac.authorization.k8s.io", "ClusterRole", "rules"),
    ("rbac.authorization.k8s.io", "Role", "rules"),
    ("discovery.k8s.io", "EndpointSlice", "endpoints"),
    ("discovery.k8s.io", "EndpointSlice", "ports"),
    ("scheduling.k8s.io", "PriorityClass", "value"),
    ("", "Event", "reportingComponent"),
    ("", "Event", "reportingInstance"),
];

/// The values that expressions begin with, as far as they are known of requests that are alike.
fn roots(
    gvk: &Gvk,
    object: &Type,
    params: Option<&Type>,
    context: Context<'_>,
) -> Vec<(&'static str, Value)> {
    let text = |text: &str| Value::constant(Const::Text(Arc::from(text)));
    let mut known = vec![
        ("kind", text(&gvk.kind)),
        ("apiVersion", text(&gvk.api_version())),
    ];
    if let Type::Struct(object) = object
        && let Some(fields) = &object.fields
    {
        let written = ALWAYS_WRITTEN
            .iter()
            .filter(|(group, kind, _)| (*group, *kind) == (&*gvk.group, &*gvk.kind));
        known.extend(written.filter_map(|(.., field)| {
            let type_ = fields.field_type(&object.name, field)?;
            Some((*field, Value::from_type(&type_)))
        }));
    }
    let subject = with_known(object, known);
    let null = || Value::constant(Const::Null);
    let (new, old) = match context.operation {
        Some("CREATE" | "CONNECT") => (subject, null()),
        Some("DELETE") => (null(), subject),
        _ => (subject.clone(), subject),
    };
    let (request, namespace) = evaluated_types();
    let is_namespaced = context.target.map(|target| target.resource.namespaced);
    // Requests for namespaces are themselves in a namespace, that of their name.
    let namespace = match is_namespaced {
        Some(false) if gvk.group.is_empty() && gvk.kind == "Namespace" => Value::unknown(),
        Some(false) => null(),
        Some(true) => with_known(&namespace, Vec::new()),
        None => Value::from_type(&namespace),
    };
    let (authorizer, resource_check) = authorizer_types();
    let mut roots = vec![
        ("object", new),
        ("oldObject", old),
        ("namespaceObject", namespace),
        ("request", request_value(&request, gvk, context)),
        ("authorizer", Value::plain(authorizer)),
        ("authorizer.requestResource", Value::plain(resource_check)),
    ];
    roots.extend(params.map(|params| ("params", Value::from_type(params))));
    roots
}

fn request_value(request: &Type, gvk: &Gvk, context: Context<'_>) -> Value {
    let text = |text: &str| Value::constant(Const::Text(Arc::from(text)));
    let field = |name: &str| match request {
        Type::Struct(object) => object
            .fields
            .as_ref()
            .and_then(|fields| fields.field_type(&object.name, name))
            .unwrap_or(Type::Dyn),
        _ => Type::Dyn,
    };
    let group_version_kind = vec![
        ("group", text(&gvk.group)),
        ("version", text(&gvk.version)),
        ("kind", text(&gvk.kind)),
    ];
    let mut known = vec![
        ("kind", with_known(&field("kind"), group_version_kind)),
        (
            "requestKind",
            with_known(&field("requestKind"), vec![("kind", text(&gvk.kind))]),
        ),
    ];
    if let Some(operation) = context.operation {
        known.push(("operation", text(operation)));
    }
    if let Some(target) = context.target {
        let gvr = &target.resource.gvr;
        let (resource, subresource) = gvr.resource.split_once('/').unwrap_or((&gvr.resource, ""));
        let resources = vec![
            ("group", text(&gvr.group)),
            ("version", text(&gvr.version)),
            ("resource", text(resource)),
        ];
        known.push(("resource", with_known(&field("resource"), resources)));
        known.push((
            "requestResource",
            with_known(
                &field("requestResource"),
                vec![("resource", text(resource))],
            ),
        ));
        // It is left out where it is empty.
        let subresource = if subresource.is_empty() {
            Value::never()
        } else {
            text(subresource)
        };
        known.push(("subResource", subresource.clone()));
        known.push(("requestSubResource", subresource));
    }
    with_known(request, known)
}

/// An object of which some fields are known.
fn with_known(type_: &Type, known: Vec<(&'static str, Value)>) -> Value {
    match type_ {
        Type::Struct(object) if object.fields.is_some() => Value::of(Shape::Object(Object {
            type_: object.clone(),
            known: Some(known.into()),
        })),
        _ => Value::from_type(type_),
    }
}
