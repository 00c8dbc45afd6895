//! Compiles each expression of a policy as the API server does.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/validation/validation.go`,
//! `k8s.io/apiserver` `pkg/admission/plugin/cel/compile.go` (`CompileCELExpression`),
//! `pkg/admission/plugin/policy/validating/plugin.go` (`compilePolicy`).

mod crashes;
mod finding;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, LazyLock};

use k8s_openapi::api::admissionregistration::v1::{MutatingAdmissionPolicy, Mutation};

use super::consequence::{self, Consequence};
use super::environment::{Declared, VariableTypes, policy_env, variable_type_upstream};
use super::expressions::{
    ExpressionCheck, OutputBudget, PolicyExpression, Role, Words, parse_all, with_text,
};
use super::mutations;
use super::reads::{Input, Reads};
use super::request_policy::{RequestPolicy, fails_closed};
use super::rule::Rule;
use cel::checker::CheckedAst;
use cel::cost::{CostEstimate, SizeEstimator};
use cel::diagnostic::{Code, Diagnostics};
use cel::env::Env;
use cel::eval::Program;
use cel::stack::run_on_deep_stack;
use cel::types::Type;
use cel::version::Behavior;
use kubernetes::library::estimate;
use kubernetes::library::mutation::{json_patch_type, object_type};
use kubernetes::library::runtime::PolicyRuntime;
use kubernetes::library::too_new::{TooNew, too_new};
pub use kubernetes::version::CompileMode;
use kubernetes::version::{self, KubernetesVersion};

use crashes::{object_in_list, panics, self_reading_variables};
pub use finding::{
    Cause, CompileError, CompileErrorType, CompileFinding, CompileFindingKind, Issue,
};

/// The result of compiling one expression.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompiledExpression {
    /// The index of the expression in the policy.
    pub index: usize,
    /// The path of the field in the policy.
    pub field_ref: String,
    /// The type of the result, or the error.
    pub outcome: Result<Type, CompileError>,
}

/// A call of a function or macro that was introduced after a given Kubernetes version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewerCall {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The offset of the call in the expression, in code points.
    pub offset: u32,
    /// The function or macro, and the version that introduced it.
    pub call: TooNew,
}

/// An expression that compiles: its checked AST and its program.
#[derive(Debug)]
pub struct CheckedProgram {
    /// The AST with the types of its nodes.
    pub checked: CheckedAst,
    /// The program that evaluates the expression.
    pub program: Program,
}

/// A policy with its compiled expressions. It is compiled once per generation.
#[derive(Debug)]
pub struct CompiledPolicy {
    policy: RequestPolicy,
    version: KubernetesVersion,
    is_mutating: bool,
    expressions: Vec<PolicyExpression>,
    findings: Vec<CompileFinding>,
    failed: HashSet<String>,
    /// The effect on the request if the expression fails, by the index of the expression.
    consequences: Vec<Consequence>,
    /// The program of each expression. `None` for an expression that does not compile.
    programs: Vec<Option<Arc<Program>>>,
    /// For each expression, the type of a variable with this expression. `Type::Dyn` for an expression that does not
    /// compile.
    types: Vec<Type>,
}

/// A compiled policy without errors. Its results are reused for unchanged expressions.
#[derive(Clone, Copy)]
struct Reused<'a> {
    compiled: &'a CompiledPolicy,
    /// The index of the changed expression.
    changed: usize,
}

impl<'a> Reused<'a> {
    /// Returns the type and the program of an unchanged expression.
    fn unchanged(self, n: usize) -> Option<(&'a Type, &'a Arc<Program>)> {
        let type_ = self.compiled.types.get(n).filter(|_| n != self.changed)?;
        Some((type_, self.compiled.program(n)?))
    }
}

impl CompiledPolicy {
    /// Compiles each expression of `policy` like an API server of the default version.
    #[must_use]
    pub fn new(policy: impl Into<RequestPolicy>) -> Self {
        Self::from_parts(policy.into(), None, KubernetesVersion::DEFAULT)
    }

    /// Compiles each expression of a mutating policy, including its mutations, like an API server of `version`.
    #[must_use]
    pub fn from_mutating(policy: &MutatingAdmissionPolicy, version: KubernetesVersion) -> Self {
        Self::from_parts(policy.into(), Some(mutations::mutations(policy)), version)
    }

    /// Compiles each expression of a policy like an API server of `version`. `mutations` is `None` unless the policy is a
    /// mutating one.
    #[must_use]
    pub fn from_parts(
        policy: RequestPolicy,
        mutations: Option<&[Mutation]>,
        version: KubernetesVersion,
    ) -> Self {
        let expressions = parse_all(&policy, mutations.unwrap_or_default(), version);
        Self::from_expressions((policy, mutations.is_some(), version), expressions, None)
    }

    /// Compiles the parsed expressions of a policy. Takes the results of unchanged expressions from `reused`.
    fn from_expressions(
        (policy, is_mutating, version): (RequestPolicy, bool, KubernetesVersion),
        expressions: Vec<PolicyExpression>,
        reused: Option<Reused<'_>>,
    ) -> Self {
        let consequences = consequence::consequences(&expressions, fails_closed(&policy));
        let mut compiled = Self {
            policy,
            version,
            is_mutating,
            expressions,
            findings: Vec::new(),
            failed: HashSet::new(),
            consequences,
            programs: Vec::new(),
            types: Vec::new(),
        };
        let n_expressions = compiled.expressions.len();
        let mut types = vec![Type::Dyn; n_expressions];
        let mut programs = vec![None; n_expressions];
        for (n, (type_, program)) in types.iter_mut().zip(&mut programs).enumerate() {
            if let Some((known_type, known_program)) = reused.and_then(|it| it.unchanged(n)) {
                type_.clone_from(known_type);
                *program = Some(Arc::clone(known_program));
            }
        }
        let mut findings = Vec::new();
        let mut panicking = Vec::new();
        let converts_nested = version.behavior().patches_convert_nested_objects;
        let mode = (CompileMode::Stored, Words::Ours);
        compiled.compile_all(mode, reused, |expression, sound| {
            let misplaced = sound
                .as_ref()
                .filter(|_| !converts_nested)
                .and_then(|sound| object_in_list(&sound.checked));
            panicking.extend(misplaced.map(|type_| panics(expression.field_ref.clone(), &type_)));
            if let Some(planned) = programs.get_mut(expression.index) {
                *planned = sound.map(|sound| Arc::new(sound.program));
            }
            if let Some(type_) = types.get_mut(expression.index) {
                let outcome = expression.outcome.as_ref();
                *type_ = outcome.map_or(Type::Dyn, variable_type_upstream);
            }
            if let Err(error) = expression.outcome {
                findings.push((expression.field_ref, error.kind, error.cause));
            }
        });
        compiled.programs = programs;
        compiled.types = types;
        let failed = findings.iter().map(|(field_ref, ..)| field_ref.as_str());
        let failed: HashSet<&str> = failed.collect();
        let self_reading = self_reading_variables(&compiled.expressions, &failed);
        findings.extend(self_reading);
        findings.extend(panicking);
        let by_field: HashMap<&str, Consequence> = compiled
            .expressions
            .iter()
            .zip(&compiled.consequences)
            .map(|(expression, consequence)| (expression.field_ref.as_str(), *consequence))
            .collect();
        compiled.findings = findings
            .into_iter()
            .map(|(field_ref, kind, cause)| CompileFinding {
                consequence: by_field
                    .get(field_ref.as_str())
                    .copied()
                    .unwrap_or(Consequence::Unread),
                field_ref,
                kind,
                cause,
            })
            .collect();
        compiled.failed = compiled
            .findings
            .iter()
            .map(|finding| finding.field_ref.clone())
            .collect();
        compiled
    }

    /// Compiles the policy without its mutations, and with the expression `text` in the field `field_ref`, such as
    /// `spec.validations[0].expression`. `None` if the policy has no such expression.
    #[must_use]
    pub fn with_expression(&self, field_ref: &str, text: String) -> Option<Self> {
        if let Some(changed) = self.with_changed(field_ref, &text, false) {
            return Some(changed);
        }
        let mut policy = self.policy.clone();
        policy.set_expression(field_ref, text)?;
        Some(Self::from_parts(policy, None, self.version))
    }

    /// Like [`Self::with_expression`], but compiles only the changed expression. `None` if the policy has no expression
    /// in this field, if `text` is empty, or if the unchanged policy has findings.
    #[must_use]
    pub fn with_changed(&self, field_ref: &str, text: &str, has_mutations: bool) -> Option<Self> {
        let of_field = |expression: &PolicyExpression| expression.field_ref == field_ref;
        let changed = self.expressions.iter().position(of_field);
        let changed = changed.filter(|_| !text.is_empty() && self.findings.is_empty())?;
        let expressions = with_text(&self.expressions, changed, text, has_mutations)?;
        let mut policy = self.policy.clone();
        policy.set_expression(field_ref, text.to_owned())?;
        let reused = Reused {
            compiled: self,
            changed,
        };
        let parts = (policy, self.is_mutating && has_mutations, self.version);
        Some(Self::from_expressions(parts, expressions, Some(reused)))
    }

    /// Returns the number of expressions that do not compile. Expressions of mutations are not counted.
    #[must_use]
    pub fn n_invalid(&self) -> usize {
        let expressions = self.expressions.iter().zip(&self.programs);
        expressions
            .filter(|(expression, program)| !expression.role.is_mutation() && program.is_none())
            .count()
    }

    /// Returns the policy that was compiled.
    #[must_use]
    pub fn policy(&self) -> &RequestPolicy {
        &self.policy
    }

    /// Returns the version of the API server for which the policy was compiled.
    #[must_use]
    pub fn version(&self) -> KubernetesVersion {
        self.version
    }

    /// Returns true if the policy is a mutating one.
    #[must_use]
    pub fn is_mutating(&self) -> bool {
        self.is_mutating
    }

    /// Returns all expressions of the policy, in the order of its fields.
    #[must_use]
    pub fn expressions(&self) -> &[PolicyExpression] {
        &self.expressions
    }

    /// Returns the name and the AST of each variable that can be parsed.
    #[must_use]
    pub fn variables(&self) -> Vec<(String, &cel::ast::Ast)> {
        let variables = self.expressions.iter();
        let variables = variables.filter(|it| it.role == Role::Variable);
        variables
            .filter_map(|it| Some((it.name.clone()?, &**it.parsed().ok()?)))
            .collect()
    }

    /// Returns the findings of the compiler, in the order of the policy's fields.
    #[must_use]
    pub fn findings(&self) -> &[CompileFinding] {
        &self.findings
    }

    /// Returns true if the compiler, which does not use schemas, has no finding for the expression with the index `n`.
    #[must_use]
    pub fn compiles(&self, n: usize) -> bool {
        self.expressions
            .get(n)
            .is_some_and(|expression| !self.failed.contains(&expression.field_ref))
    }

    /// Returns the effect on the request if the expression with the index `n` fails.
    #[must_use]
    pub fn consequence(&self, n: usize) -> Consequence {
        let consequence = self.consequences.get(n).copied();
        consequence.unwrap_or(Consequence::Unread)
    }

    /// Returns the program of the expression with the index `n`, as the admission plugin plans it. `None` if the
    /// expression does not compile.
    #[must_use]
    pub fn program(&self, n: usize) -> Option<&Arc<Program>> {
        self.programs.get(n)?.as_ref()
    }

    /// Returns the API server's error for the expression with the index `n`. `None` if the expression compiles.
    #[must_use]
    pub(crate) fn compile_error_of(&self, n: usize) -> Option<String> {
        let expression = self.expressions.get(n)?;
        if let Err(diagnostics) = expression.parsed() {
            let mut diagnostics = expression.in_words(diagnostics, Words::Upstream).clone();
            OutputBudget::default().cut(&mut diagnostics, &expression.text);
            let text = Arc::clone(&expression.text);
            return Some(
                Cause::Diagnostics {
                    found: diagnostics,
                    text,
                }
                .message(),
            );
        }
        let of_field = |finding: &&CompileFinding| finding.field_ref == expression.field_ref;
        let finding = self.findings.iter().find(of_field)?;
        Some(finding.cause.message())
    }

    /// Returns the total number of AST nodes of all expressions. The time of a check is proportional to it.
    #[must_use]
    pub fn n_nodes(&self) -> usize {
        self.expressions.iter().map(PolicyExpression::n_nodes).sum()
    }

    /// Returns the number of expressions.
    #[must_use]
    pub fn n_expressions(&self) -> usize {
        self.expressions.len()
    }

    /// Compiles all expressions without schemas. The results are in the API server's order.
    #[must_use]
    pub fn compile(&self, mode: CompileMode) -> Vec<CompiledExpression> {
        let mut compiled = Vec::with_capacity(self.expressions.len());
        self.compile_each(mode, Words::Ours, |expression, _| compiled.push(expression));
        compiled
    }

    /// Returns the expressions that do not compile in a new policy, in the API server's order. The API server rejects a
    /// new policy with such an expression.
    #[must_use]
    pub fn refused(&self) -> Vec<CompiledExpression> {
        if self.compiles_when_new() {
            return Vec::new();
        }
        let mut compiled = self.compile(CompileMode::New);
        compiled.retain(|expression| expression.outcome.is_err());
        compiled
    }

    /// Returns true if the expressions of this stored policy certainly also compile in a new policy.
    ///
    /// The rules for a new policy are different. Some of its expressions are trimmed. Its match conditions cannot read
    /// `variables`. No expression can read `variables` if the policy declares none.
    fn compiles_when_new(&self) -> bool {
        let has_variables = self.expressions.iter().any(|e| e.role == Role::Variable);
        let is_sound = |(n, expression): (usize, &PolicyExpression)| {
            let sees_the_same = has_variables && expression.role != Role::MatchCondition;
            let names_variables = || {
                let ast = expression.parsed().ok();
                ast.is_none_or(|ast| Reads::new(ast).has(&[Input::Variables]))
            };
            self.program(n).is_some() && (sees_the_same || !names_variables())
        };
        self.expressions.iter().enumerate().all(is_sound)
    }

    /// Like [`CompiledPolicy::compile`], but with the API server's error messages and with a cost estimate for each
    /// expression that compiles.
    ///
    /// The API server does not estimate costs when it accepts a policy. At run time, it stops an expression that
    /// exceeds [`PER_CALL_LIMIT`](kubernetes::library::limits::PER_CALL_LIMIT). Without known sizes of objects, the
    /// estimate is unbounded for an expression that iterates over a part of an object.
    #[must_use]
    pub fn compile_with_costs(
        &self,
        mode: CompileMode,
        sizes: &(dyn SizeEstimator + Sync),
    ) -> Vec<(CompiledExpression, Option<CostEstimate>)> {
        let mut compiled = Vec::with_capacity(self.expressions.len());
        self.compile_each(mode, Words::Upstream, |expression, sound| {
            let cost = sound.map(|sound| estimate::estimate(&sound.checked, sizes));
            compiled.push((expression, cost));
        });
        compiled
    }

    /// Returns the calls of functions and macros that new expressions cannot use in `version`. An API server of
    /// `version` rejects a new policy with such a call. Expressions that do not compile are skipped.
    #[must_use]
    pub fn too_new(&self, version: KubernetesVersion) -> Vec<NewerCall> {
        let mut calls = Vec::new();
        self.compile_each(CompileMode::New, Words::Ours, |expression, sound| {
            let Some(sound) = sound else { return };
            let ast = sound.checked.ast();
            for call in too_new(&sound.checked, version) {
                calls.push(NewerCall {
                    field_ref: expression.field_ref.clone(),
                    offset: ast.offset(call.at),
                    call,
                });
            }
        });
        calls
    }

    /// Compiles all expressions without schemas, in the API server's order. Calls `visit` with each result, and with
    /// the checked AST and the program if the expression compiles.
    pub fn compile_each(
        &self,
        mode: CompileMode,
        words: Words,
        visit: impl FnMut(CompiledExpression, Option<CheckedProgram>) + Send,
    ) {
        self.compile_all((mode, words), None, visit);
    }

    /// Like [`CompiledPolicy::compile_each`], but skips the expressions whose results are in `reused`.
    fn compile_all(
        &self,
        mode: (CompileMode, Words),
        reused: Option<Reused<'_>>,
        visit: impl FnMut(CompiledExpression, Option<CheckedProgram>) + Send,
    ) {
        let policy = (&self.policy, self.is_mutating, self.version);
        compile_all(policy, &self.expressions, mode, reused, visit);
    }
}

/// Compiles all expressions of a validating policy as the API server does in `mode`.
#[must_use]
pub fn compile(
    policy: &RequestPolicy,
    mode: CompileMode,
    version: KubernetesVersion,
) -> Vec<CompiledExpression> {
    let expressions = parse_all(policy, &[], version);
    let mut compiled = Vec::with_capacity(expressions.len());
    compile_all(
        (policy, false, version),
        &expressions,
        (mode, Words::Ours),
        None,
        |expression, _| {
            compiled.push(expression);
        },
    );
    compiled
}

fn compile_all(
    policy: (&RequestPolicy, bool, KubernetesVersion),
    expressions: &[PolicyExpression],
    mode: (CompileMode, Words),
    reused: Option<Reused<'_>>,
    mut visit: impl FnMut(CompiledExpression, Option<CheckedProgram>) + Send,
) {
    run_on_deep_stack(expressions.iter().any(PolicyExpression::is_deep), || {
        compile_in_order(policy, expressions, mode, reused, &mut visit);
    });
}

fn compile_in_order(
    (policy, is_mutating, version): (&RequestPolicy, bool, KubernetesVersion),
    expressions: &[PolicyExpression],
    (mode, words): (CompileMode, Words),
    reused: Option<Reused<'_>>,
    visit: &mut impl FnMut(CompiledExpression, Option<CheckedProgram>),
) {
    let dyn_type = Type::Dyn;
    let has_params = policy.param_kind.is_some();
    let mut behavior = version.behavior();
    behavior.language = version.language_in(mode);
    let release = version.release_in(mode);
    let declared = Declared {
        release,
        object: &dyn_type,
        params: has_params.then_some(&dyn_type),
        authorizer: true,
        request_resource: true,
        mutation: false,
    };
    let plain = policy_env(&declared);
    let mut variables = VariableTypes::default();
    let mut env = plain.clone();
    let has_variables = expressions.iter().any(|e| e.role == Role::Variable);
    // For a mutating policy, upstream always declares `variables`, even if the policy has none.
    let declares_variables = mode == CompileMode::Stored || has_variables || is_mutating;

    let mut compiler = Compiler {
        mode: (mode, words, behavior),
        text_left: OutputBudget::default(),
        runtime: PolicyRuntime::default(),
        reused,
        visit,
    };
    let mut compile =
        |expression: (usize, &PolicyExpression), env: &Env| compiler.compile(expression, env);
    let all = || expressions.iter().enumerate();
    let of_role = |role| all().filter(move |(_, e)| e.role == role);
    if mode == CompileMode::New {
        for condition in of_role(Role::MatchCondition) {
            compile(condition, &plain);
        }
    }
    for variable in of_role(Role::Variable) {
        env.set_variable("variables", variables.to_type());
        let type_ = compile(variable, &env);
        // Releases the environment's reference to the variables, so that `add` does not copy them.
        env.set_variable("variables", Type::Dyn);
        let (_, PolicyExpression { name, .. }) = variable;
        variables.add(name.as_deref().unwrap_or_default(), type_);
    }
    if declares_variables {
        env.set_variable("variables", variables.to_type());
    } else {
        env = plain;
    }
    if mode == CompileMode::Stored {
        for condition in of_role(Role::MatchCondition) {
            compile(condition, &env);
        }
    }
    let extended = |declared: Declared<'_>| {
        let mut env = policy_env(&declared);
        if declares_variables {
            env.set_variable("variables", variables.to_type());
        }
        env
    };
    let mut message_env = None;
    let mut mutation_env = None;
    for (n, expression) in all() {
        match expression.role {
            Role::Validation | Role::AuditAnnotation => {
                compile((n, expression), &env);
            }
            Role::MessageExpression => {
                let env = message_env.get_or_insert_with(|| {
                    extended(Declared {
                        authorizer: false,
                        ..declared
                    })
                });
                compile((n, expression), env);
            }
            Role::ApplyConfiguration | Role::JsonPatch => {
                let env = mutation_env.get_or_insert_with(|| {
                    extended(Declared {
                        mutation: true,
                        ..declared
                    })
                });
                compile((n, expression), env);
            }
            Role::MatchCondition | Role::Variable => {}
        }
    }
}

/// Compiles the expressions of a policy one after another.
struct Compiler<'a, V> {
    mode: (CompileMode, Words, version::Behavior),
    text_left: OutputBudget,
    runtime: PolicyRuntime,
    reused: Option<Reused<'a>>,
    visit: &'a mut V,
}

impl<V: FnMut(CompiledExpression, Option<CheckedProgram>)> Compiler<'_, V> {
    /// Compiles an expression and passes the result to `visit`, unless the result is reused. Returns the type that a
    /// variable with this expression has.
    fn compile(&mut self, (index, expression): (usize, &PolicyExpression), env: &Env) -> Type {
        if let Some((type_, _)) = self.reused.and_then(|reused| reused.unchanged(index)) {
            return type_.clone();
        }
        let (mode, words, behavior) = &self.mode;
        let (outcome, sound) = outcome(
            expression,
            env,
            (*mode, *words, behavior),
            (&self.text_left, &self.runtime),
        );
        let type_ = outcome.as_ref().map_or(Type::Dyn, variable_type_upstream);
        // If the type of a variable changes, the results of other expressions are no longer reused.
        let is_type_kept = |of: &Reused<'_>| of.compiled.types.get(index) == Some(&type_);
        if expression.role == Role::Variable {
            self.reused = self.reused.filter(is_type_kept);
        }
        let field_ref = expression.field_ref.clone();
        let compiled = CompiledExpression {
            index,
            field_ref,
            outcome,
        };
        (self.visit)(compiled, sound);
        type_
    }
}

/// Compiles one expression. Returns the result type or the error, and the program if there is no error.
fn outcome(
    expression: &PolicyExpression,
    env: &Env,
    (mode, words, behavior): (CompileMode, Words, &version::Behavior),
    (text_left, runtime): (&OutputBudget, &PolicyRuntime),
) -> (Result<Type, CompileError>, Option<CheckedProgram>) {
    if mode == CompileMode::New
        && expression.role != Role::Variable
        && expression.text.trim().is_empty()
    {
        let error = CompileError {
            type_: CompileErrorType::Required,
            kind: CompileFindingKind::Failed,
            cause: Cause::Whole {
                rule: Rule::Required,
                message: "expression is not specified".into(),
            },
        };
        return (Err(error), None);
    }
    let reparsed = reparsed(expression, mode, behavior.language);
    let expression = reparsed.as_ref().unwrap_or(expression);
    match expression.check(env) {
        ExpressionCheck::Unparsed(diagnostics) => {
            let diagnostics = expression.in_words(diagnostics, words).clone();
            let error = compile_error(diagnostics, &expression.text, text_left, behavior);
            (Err(error), None)
        }
        ExpressionCheck::Failed(_, diagnostics) => {
            let error = compile_error(diagnostics, &expression.text, text_left, behavior);
            (Err(error), None)
        }
        ExpressionCheck::Passed(checked) => {
            let sound = check_result_type(expression.role, &checked, behavior)
                .and_then(|type_| Ok((type_, plan(checked, env, runtime)?)));
            match sound {
                Ok((type_, sound)) => (Ok(type_), Some(sound)),
                Err(error) => (Err(error), None),
            }
        }
    }
}

/// Plans a checked expression. For a stored policy, a planning error makes each request fail.
fn plan(
    checked: CheckedAst,
    env: &Env,
    runtime: &PolicyRuntime,
) -> Result<CheckedProgram, CompileError> {
    if checked.has_unspecified() {
        return Err(CompileError {
            type_: CompileErrorType::Internal,
            kind: CompileFindingKind::Failed,
            cause: Cause::Whole {
                rule: Rule::CompilationFailed,
                message: "unexpected compilation error: missing type conversion to proto: ".into(),
            },
        });
    }
    match Program::plan(&checked, env, runtime) {
        Ok(program) => Ok(CheckedProgram { checked, program }),
        Err(error) => {
            let (kind, rule) = if error.is_unsafe() {
                (CompileFindingKind::Unsafe, Rule::UnsafeExpression)
            } else {
                (CompileFindingKind::Failed, Rule::CompilationFailed)
            };
            let message = error.to_string();
            Err(CompileError {
                type_: CompileErrorType::Internal,
                kind,
                cause: Cause::Whole { rule, message },
            })
        }
    }
}

/// Returns the expression as the API server parses it in `mode`: without surrounding white space, and without macros
/// that new expressions cannot use. `None` if this is the same as `expression`.
fn reparsed(
    expression: &PolicyExpression,
    mode: CompileMode,
    language: Behavior,
) -> Option<PolicyExpression> {
    let trims = matches!(
        expression.role,
        Role::MatchCondition | Role::AuditAnnotation | Role::ApplyConfiguration | Role::JsonPatch
    );
    let trimmed = expression.text.trim();
    let is_trimmed = mode == CompileMode::New && trims && trimmed.len() != expression.text.len();
    let has_macros = || {
        expression
            .parsed()
            .is_ok_and(|ast| !ast.macros().is_empty())
    };
    let is_other_language = language != expression.behavior() && has_macros();
    (is_trimmed || is_other_language).then(|| {
        PolicyExpression::new(
            language,
            expression.field_ref.clone(),
            expression.role,
            expression.name.as_deref(),
            if is_trimmed {
                trimmed
            } else {
                &expression.text
            },
        )
    })
}

fn compile_error(
    mut found: Diagnostics,
    text: &Arc<str>,
    text_left: &OutputBudget,
    behavior: &version::Behavior,
) -> CompileError {
    text_left.cut(&mut found, text);
    let unsupported = found
        .as_slice()
        .iter()
        .any(|d| d.kind.code() == Code::TooComplex);
    let kind = if unsupported || behavior.is_incomplete {
        CompileFindingKind::Unsupported
    } else {
        CompileFindingKind::Failed
    };
    CompileError {
        type_: CompileErrorType::Invalid,
        kind,
        cause: Cause::Diagnostics {
            found,
            text: Arc::clone(text),
        },
    }
}

/// Returns the accepted result types of expressions with this role. `None` if any type is accepted.
///
/// Source: `k8s.io/apiserver` `plugin/policy/validating/validator.go` and `accessor.go` (`ReturnTypes` of
/// `ValidationCondition`, `MessageExpressionCondition`, `AuditAnnotationCondition`, `Variable`),
/// `plugin/webhook/matchconditions/matcher.go` (`MatchCondition`), `plugin/policy/mutating/patch/{smd,json_patch}.go`
/// (`ApplyConfigurationCondition`, `JSONPatchCondition`).
fn accepted_types(role: Role) -> Option<&'static [Type]> {
    static OBJECT: LazyLock<[Type; 1]> = LazyLock::new(|| [object_type()]);
    static PATCH: LazyLock<[Type; 1]> = LazyLock::new(|| [Type::list(json_patch_type())]);
    match role {
        Role::Validation | Role::MatchCondition => Some(&[Type::Bool]),
        Role::MessageExpression => Some(&[Type::String]),
        Role::AuditAnnotation => Some(&[Type::String, Type::Null]),
        Role::ApplyConfiguration => Some(&*OBJECT),
        Role::JsonPatch => Some(&*PATCH),
        Role::Variable => None,
    }
}

fn check_result_type(
    role: Role,
    checked: &CheckedAst,
    behavior: &version::Behavior,
) -> Result<Type, CompileError> {
    let type_ = checked.output_type();
    let Some(accepted) = accepted_types(role) else {
        return Ok(type_);
    };
    if accepted.contains(&type_) {
        return Ok(type_);
    }
    Err(CompileError {
        type_: CompileErrorType::Invalid,
        kind: CompileFindingKind::Failed,
        cause: Cause::ResultType {
            accepted,
            actual: type_,
            names_actual: behavior.names_result_types,
        },
    })
}

#[cfg(test)]
mod tests;
