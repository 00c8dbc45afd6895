//! Finds comparisons whose result is constant because of the schemas. Examples are a comparison of an enumeration with
//! a value that the enumeration lacks, and a comparison of null with a field that is never null.
//!
//! Also finds object literals of mutations that set a field to a value that its enumeration lacks. Also finds calls of
//! `orValue()`, and operands `!has()` of `||`, that treat an absent field as the opposite of its effective default.

mod absence;

use std::collections::{BTreeMap, HashSet};

use serde_json::Value as Json;

use super::Context;
use super::input_types::InputType;
use super::input_types::roots::{request_input_type, roots};
use super::requests::builders::{object_type, params_type};
use super::requests::kinds::{one_per_kind, operations};
use super::search::MAX_SYMBOLIC_STEPS;
use super::symbolic::{
    ComprehensionKind, ExprRef, Scope, SymbolicEvaluator, SymbolicValue, comprehension_kind,
};
use crate::advice::{Advice, Replacement};
use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::lint::Lint;
use crate::matching;
use crate::nearest::nearest_joined;
use crate::rule::Rule;
use cel::ast::{Expr, ExprId, Literal};
use cel::source::SourceMap;
use cel::stack::run_on_deep_stack;
use kubernetes::schema::Gvk;
use kubernetes::validity::{FieldPath, Root, Segment, enum_values};

/// Maximum number of matched kinds. A policy for more kinds is not checked.
const MAX_KINDS: usize = 20;

/// Maximum nesting of expressions. A policy with deeper expressions is not checked.
const MAX_DEPTH: usize = 150;

/// Maximum number of findings for one policy.
const MAX_FOUND: usize = 50;

/// Maximum number of enumeration values in a message.
const MAX_NAMED: usize = 12;

/// Maximum length of a quoted string in a message, in bytes. Comparisons with a longer string are not reported.
const MAX_SHOWN: usize = 60;

/// Returns a lint for each comparison of `policy` whose result is constant because of the schemas of the matched kinds.
#[must_use]
pub fn constant_comparisons(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<Lint> {
    let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
    run_on_deep_stack(is_deep, || find(policy, context))
}

fn find(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<Lint> {
    if !has_literal_comparison(policy) {
        return Vec::new();
    }
    let targets = matching::targets(policy.policy(), context.mapper);
    let all: Vec<_> = targets.iter().collect();
    let mut kinds = one_per_kind(&all, MAX_KINDS + 1);
    if kinds.len() > MAX_KINDS {
        return Vec::new();
    }
    // There are no requests for a kind without operations.
    kinds.retain(|target| !operations(target).is_empty());
    let params = params_type(policy, context);
    let mut expressions = policy.expressions().iter();
    let converts_to_string = expressions.any(|expression| {
        expression.parsed().is_ok_and(|ast| {
            let mut nodes = ast.iter();
            nodes.any(
                |(_, expr)| matches!(expr, Expr::Call { function, .. } if &**function == "string"),
            )
        })
    });
    let mut outcomes: BTreeMap<(usize, usize), ComparisonOutcome> = BTreeMap::new();
    for target in kinds {
        let resource = target.resource;
        let Some(object) = object_type(context, &resource.gvk, resource.namespaced) else {
            return Vec::new();
        };
        let roots = roots(
            &object,
            &request_input_type(resource, false),
            params.as_ref(),
        );
        let evaluator = SymbolicEvaluator::new(policy, roots, Vec::new(), MAX_SYMBOLIC_STEPS);
        let mut checker = ComparisonChecker {
            evaluator: &evaluator,
            kind: &resource.gvk,
            outcomes: BTreeMap::new(),
            converts_to_string,
            is_complete: true,
        };
        for (n, expression) in policy.expressions().iter().enumerate() {
            if let Ok(ast) = expression.parsed()
                && policy.compiles(n)
            {
                let node = ExprRef {
                    index: n,
                    id: ast.root(),
                };
                checker.visit(node, &Scope::default(), 0);
                if expression.role == Role::Validation {
                    checker.visit_required(node, &Scope::default());
                }
            }
        }
        if !checker.is_complete || evaluator.is_exhausted() {
            return Vec::new();
        }
        for (node, of_kind) in checker.outcomes {
            let previous = outcomes.remove(&node);
            outcomes.insert(node, of_kind.merge(previous));
        }
    }
    let findings = outcomes
        .into_iter()
        .filter_map(|((n, id), outcome)| match outcome {
            ComparisonOutcome::Constant(finding) => to_lint(policy, n, id, finding),
            ComparisonOutcome::Varying | ComparisonOutcome::NoField => None,
        });
    findings.take(MAX_FOUND).collect()
}

/// Returns true if the policy contains something to check: a comparison, an operator `||`, a call of `orValue()`, or
/// the expression of an apply configuration. Returns false if an expression changes the case of strings, because
/// symbolic evaluation ignores such functions.
fn has_literal_comparison(policy: &CompiledPolicy) -> bool {
    let mut has_any = false;
    for expression in policy.expressions() {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        for (_, expr) in ast.iter() {
            let Expr::Call { function, .. } = expr else {
                continue;
            };
            match &**function {
                "lowerAscii" | "upperAscii" => return false,
                "_==_" | "_!=_" | "@in" | "orValue" | "_||_" | "_<_" | "_<=_" | "_>_" | "_>=_" => {
                    has_any = true;
                }
                _ => {}
            }
        }
        has_any |= expression.role == Role::ApplyConfiguration;
    }
    has_any
}

fn to_lint(
    policy: &CompiledPolicy,
    n: usize,
    id: usize,
    finding: ConstantComparison,
) -> Option<Lint> {
    let expression = policy.expressions().get(n)?;
    let ast = expression.parsed().ok()?;
    let offset = ast.offset(ast.id(id)?);
    Some(Lint {
        rule: finding.rule,
        field_ref: expression.field_ref.clone(),
        location: Some(SourceMap::new(&expression.text).location(offset)),
        message: finding.message,
        fix: finding.fix,
        is_harmless: finding.is_harmless,
    })
}

#[derive(Clone, Debug)]
struct ConstantComparison {
    rule: Rule,
    message: String,
    fix: Option<Advice>,
    is_harmless: bool,
}

#[derive(Clone, Debug)]
enum ComparisonOutcome {
    /// The result is the same for all objects.
    Constant(ConstantComparison),
    /// The result differs between objects.
    Varying,
    /// There is no result, because the kind lacks the compared field.
    NoField,
}

impl ComparisonOutcome {
    fn merge(self, other: Option<Self>) -> Self {
        match (self, other) {
            (Self::Varying, _) | (_, Some(Self::Varying)) => Self::Varying,
            (Self::Constant(finding), _) | (_, Some(Self::Constant(finding))) => {
                Self::Constant(finding)
            }
            _ => Self::NoField,
        }
    }
}

struct ComparisonChecker<'r, 'a> {
    evaluator: &'r SymbolicEvaluator<'a>,
    /// The kind of the objects.
    kind: &'r Gvk,
    outcomes: BTreeMap<(usize, usize), ComparisonOutcome>,
    /// True if an expression calls `string()`. The symbolic result of this call is the input at the path of the
    /// argument, although its type is different.
    converts_to_string: bool,
    /// False if the step limit or the nesting limit was exceeded.
    is_complete: bool,
}

impl ComparisonChecker<'_, '_> {
    /// Merges `outcome` with the outcomes of earlier evaluations of `node`.
    fn add(&mut self, node: ExprRef, outcome: ComparisonOutcome) {
        let key = (node.index, node.id.index());
        let merged = match self.outcomes.remove(&key) {
            Some(first) => first.merge(Some(outcome)),
            None => outcome,
        };
        self.outcomes.insert(key, merged);
    }

    fn visit(&mut self, node: ExprRef, scope: &Scope, depth: usize) {
        if depth > MAX_DEPTH || !self.evaluator.take_step() {
            self.is_complete = false;
            return;
        }
        let depth = depth.saturating_add(1);
        let node_at = |id| node.with_id(id);
        match self.evaluator.expr(node) {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => self.visit(node_at(*operand), scope, depth),
            Expr::Call {
                function,
                target,
                args,
            } => {
                for id in target.iter().chain(args) {
                    self.visit(node_at(*id), scope, depth);
                }
                let outcome = match (&**function, &**args) {
                    ("_==_" | "_!=_" | "@in" | "_<_" | "_<=_" | "_>_" | "_>=_", [left, right]) => {
                        let (left, right) = (node_at(*left), node_at(*right));
                        let is_equality = matches!(&**function, "_==_" | "_!=_" | "@in");
                        let other = || self.outcome(function, left, right, scope);
                        self.fraction_outcome(function, left, right, scope)
                            .or_else(|| other().filter(|_| is_equality))
                    }
                    ("orValue", [argument]) => self.default_outcome(node, *argument, scope),
                    _ => None,
                };
                if let Some(outcome) = outcome {
                    self.add(node, outcome);
                }
            }
            Expr::List { elements, .. } => {
                for id in elements {
                    self.visit(node_at(*id), scope, depth);
                }
            }
            Expr::Map(entries) => {
                for entry in entries {
                    self.visit(node_at(entry.key), scope, depth);
                    self.visit(node_at(entry.value), scope, depth);
                }
            }
            Expr::Struct { type_name, fields } => {
                for field in fields {
                    self.visit(node_at(field.value), scope, depth);
                    let value = node_at(field.value);
                    if let Some(outcome) = self.assigned(type_name, &field.field, value) {
                        self.add(value, outcome);
                    }
                }
            }
            Expr::Comprehension(fold) => {
                if let ComprehensionKind::Bind =
                    comprehension_kind(self.evaluator, node.index, fold)
                {
                    self.visit(node_at(fold.accu_init), scope, depth);
                    let bound = self.evaluator.evaluate(node_at(fold.accu_init), scope);
                    let scope = scope.with(&fold.accu_var, bound);
                    self.visit(node_at(fold.result), &scope, depth);
                    return;
                }
                self.visit(node_at(fold.iter_range), scope, depth);
                for (iteration, _) in self.evaluator.iterations(node.index, fold, scope, 0) {
                    self.visit(node_at(fold.loop_step), &iteration, depth);
                }
            }
        }
    }

    /// Returns the outcome for a field of an object literal of the type `name`, such as `Object.spec`. `None` if the
    /// value is not a string literal.
    fn assigned(&self, name: &str, field: &str, value: ExprRef) -> Option<ComparisonOutcome> {
        let Expr::Literal(Literal::String(text)) = self.evaluator.expr(value) else {
            return None;
        };
        let mut names = name.trim_start_matches('.').split('.');
        if names.next() != Some("Object") {
            return None;
        }
        let mut path = FieldPath::new(Root::Object);
        for name in names.chain([field]) {
            if self
                .evaluator
                .input_type(&path)
                .is_some_and(|it| it.is_list())
            {
                path = path.element(0)?;
            }
            path = path.field(name)?;
        }
        let Some(input_type) = self.evaluator.input_type(&path) else {
            return Some(ComparisonOutcome::NoField);
        };
        let impossible = Self::impossible_value(&path, &input_type, text);
        let Some((allowed, intended)) = impossible else {
            return Some(ComparisonOutcome::Varying);
        };
        Some(ComparisonOutcome::Constant(ConstantComparison {
            rule: Rule::ImpossibleValue,
            message: format!(
                "`{field}` is one of {allowed}, so the API server rejects the mutated object"
            ),
            fix: intended.map(|it| Advice::did_you_mean(Replacement::Literal(it))),
            is_harmless: false,
        }))
    }

    /// Returns the values of the enumeration at `path` as a list for a message, and the probably intended value. `None`
    /// if `text` is one of the values, or if `path` is not an enumeration.
    fn impossible_value(
        path: &FieldPath,
        input_type: &InputType<'_>,
        text: &str,
    ) -> Option<(String, Option<String>)> {
        let declared = input_type.enum_strings();
        let of_kind = |kind| enum_values(kind, path).map(|values| values.iter().copied().collect());
        let allowed: HashSet<&str> = declared.or_else(|| of_kind(input_type.builtin_kind()?))?;
        if allowed.contains(text) || text.is_empty() || text.len() > MAX_SHOWN {
            return None;
        }
        let intended = nearest_joined(text, allowed.iter().copied());
        let named = allowed.iter().copied().filter(|name| !name.is_empty());
        let mut names: Vec<&str> = named.collect();
        names.sort_unstable();
        let suffix = if names.len() > MAX_NAMED {
            " and others"
        } else {
            ""
        };
        names.truncate(MAX_NAMED);
        Some((format!("{}{suffix}", names.join(", ")), intended))
    }

    /// Returns the outcome of a call of `orValue()`. The outcome is constant if the effective default of the field is
    /// the opposite of the argument. `None` if the argument is not a boolean literal.
    fn default_outcome(
        &self,
        call: ExprRef,
        argument: ExprId,
        scope: &Scope,
    ) -> Option<ComparisonOutcome> {
        let Expr::Literal(Literal::Bool(given)) = self.evaluator.expr(call.with_id(argument))
        else {
            return None;
        };
        let alternatives = self.evaluator.evaluate(call, scope);
        let outcome = |symbolic: &SymbolicValue| {
            let SymbolicValue::Input { path, default, .. } = symbolic else {
                return ComparisonOutcome::Varying;
            };
            let Some(usually) = self.counts_as(path, !given) else {
                return ComparisonOutcome::Varying;
            };
            if *default != Some(Json::Bool(*given)) {
                return ComparisonOutcome::Varying;
            }
            let root = path.root.name();
            ComparisonOutcome::Constant(ConstantComparison {
                rule: Rule::WrongDefault,
                message: format!(
                    "an absent `{root}.{path}` {usually}counts as `{}`, not as `{given}`",
                    !given
                ),
                fix: Some(format!("write `orValue({})`", !given).into()),
                is_harmless: false,
            })
        };
        let each = alternatives.iter().map(outcome);
        each.reduce(|all, next| next.merge(Some(all)))
    }

    /// Returns the outcome of a comparison. `None` if neither operand consists of literals.
    fn outcome(
        &self,
        function: &str,
        left: ExprRef,
        right: ExprRef,
        scope: &Scope,
    ) -> Option<ComparisonOutcome> {
        let literals = |node| self.literals(node);
        let (side, values) = match (literals(left), literals(right)) {
            (None, Some(values)) => (left, values),
            (Some(values), None) if function != "@in" => (right, values),
            (Some(values), None) => return self.outcome_in_list(&values, right, scope),
            _ => return None,
        };
        let alternatives = self.evaluator.evaluate(side, scope);
        let each = alternatives.iter();
        each.map(|symbolic| self.outcome_for(function, symbolic, &values))
            .reduce(|all, next| next.merge(Some(all)))
    }

    /// Returns the outcome of a comparison between an input and a fraction such as `0.8`. The outcome is constant if the
    /// input is an integer. `None` for other operands.
    fn fraction_outcome(
        &self,
        function: &str,
        left: ExprRef,
        right: ExprRef,
        scope: &Scope,
    ) -> Option<ComparisonOutcome> {
        let fraction = |node: ExprRef| match self.evaluator.expr(node) {
            Expr::Literal(Literal::Double(value)) if value.fract() != 0.0 => Some(*value),
            _ => None,
        };
        let (side, fraction) = match (fraction(left), fraction(right)) {
            (None, Some(value)) => (left, value),
            (Some(value), None) => (right, value),
            _ => return None,
        };
        let is_equality = matches!(function, "_==_" | "_!=_");
        let is_below_one = fraction > 0.0 && fraction < 1.0;
        let outcome = |symbolic: &SymbolicValue| {
            let SymbolicValue::Input { path, .. } = symbolic else {
                return ComparisonOutcome::Varying;
            };
            let input_type = self.evaluator.input_type(path);
            if !input_type.is_some_and(|it| it.is_number() && !it.is_double()) {
                return ComparisonOutcome::Varying;
            }
            let name = path.segments.last().and_then(Segment::name);
            let name = name.unwrap_or_default().to_lowercase();
            let is_percentage =
                (name.contains("percent") || name.contains("utilization")) && is_below_one;
            ComparisonOutcome::Constant(ConstantComparison {
                rule: Rule::ImpossibleValue,
                message: format!(
                    "`{}.{path}` is an integer, so {}",
                    path.root.name(),
                    match function {
                        "_==_" => "this is always false".to_owned(),
                        "_!=_" => "this is always true".to_owned(),
                        _ if is_below_one => {
                            "this only distinguishes values above 0 from other values".to_owned()
                        }
                        _ => format!("`{fraction}` has the same effect as an integer"),
                    }
                ),
                fix: Some(if is_percentage {
                    format!("for a percentage, write `{:.0}`", fraction * 100.0).into()
                } else if is_below_one {
                    "compare with an integer".into()
                } else {
                    format!(
                        "compare with `{}` or `{}`",
                        fraction.floor(),
                        fraction.ceil()
                    )
                    .into()
                }),
                is_harmless: !is_equality && !is_below_one,
            })
        };
        let alternatives = self.evaluator.evaluate(side, scope);
        let each = alternatives.iter().map(outcome);
        each.reduce(|all, next| next.merge(Some(all)))
    }

    /// Returns the outcome of `element in list` if `list` is an input, and its elements are strings of an enumeration.
    fn outcome_in_list(
        &self,
        element: &[Json],
        list: ExprRef,
        scope: &Scope,
    ) -> Option<ComparisonOutcome> {
        let [Json::String(text)] = element else {
            return None;
        };
        let outcome = |symbolic: &SymbolicValue| {
            let SymbolicValue::Input { path, .. } = symbolic else {
                return ComparisonOutcome::Varying;
            };
            let is_typed = matches!(path.root, Root::Object | Root::OldObject | Root::Params);
            let list_type = self.evaluator.input_type(path);
            let list_type = list_type.filter(|it| it.is_list() && is_typed);
            let elements = list_type.zip(path.element(0));
            let elements = elements.and_then(|(_, path)| self.evaluator.input_type(&path));
            let impossible = elements.and_then(|it| Self::impossible_value(path, &it, text));
            let Some((allowed, intended)) = impossible else {
                return ComparisonOutcome::Varying;
            };
            let shown = format!("{}.{path}", path.root.name());
            ComparisonOutcome::Constant(ConstantComparison {
                rule: Rule::ImpossibleValue,
                message: format!(
                    "an element of `{shown}` is one of {allowed}, so this is always false"
                ),
                fix: intended.map(|it| Advice::did_you_mean(Replacement::ComparedLiteral(it))),
                is_harmless: false,
            })
        };
        let alternatives = self.evaluator.evaluate(list, scope);
        let each = alternatives.iter().map(outcome);
        each.reduce(|all, next| next.merge(Some(all)))
    }

    /// Returns the string and null literals of an operand: a literal, or the elements of a list of literals. `None` for
    /// other operands.
    fn literals(&self, node: ExprRef) -> Option<Vec<Json>> {
        let value = |id: ExprId| match self.evaluator.expr(node.with_id(id)) {
            Expr::Literal(Literal::String(text)) => Some(Json::from(&**text)),
            Expr::Literal(Literal::Null) => Some(Json::Null),
            _ => None,
        };
        match self.evaluator.expr(node) {
            Expr::List { elements, .. } => elements.iter().map(|id| value(*id)).collect(),
            Expr::Literal(_) => Some(vec![value(node.id)?]),
            _ => None,
        }
    }

    fn outcome_for(
        &self,
        function: &str,
        symbolic: &SymbolicValue,
        values: &[Json],
    ) -> ComparisonOutcome {
        let SymbolicValue::Input {
            path,
            is_optional: false,
            default,
        } = symbolic
        else {
            return ComparisonOutcome::Varying;
        };
        let is_typed = matches!(path.root, Root::Object | Root::OldObject | Root::Params);
        if path.segments.is_empty() || !is_typed {
            return ComparisonOutcome::Varying;
        }
        let Some(input_type) = self.evaluator.input_type(path) else {
            return ComparisonOutcome::NoField;
        };
        let shown = format!("{}.{path}", path.root.name());
        let is_not = function == "_!=_";
        if let [Json::Null] = values {
            // A selected map entry is never null, because the selection fails if the key is absent.
            let is_key = path.parent().is_some_and(|parent| {
                let parent = self.evaluator.input_type(&parent);
                parent.is_some_and(|input_type| input_type.is_map())
            });
            let is_there = is_key || !self.evaluator.may_be_absent(path);
            let is_there = is_there && default.is_none();
            if function == "@in" || !is_there || !input_type.is_never_null() {
                return ComparisonOutcome::Varying;
            }
            return ComparisonOutcome::Constant(ConstantComparison {
                rule: Rule::ConstantCondition,
                message: format!("`{shown}` is never null, so this is always {is_not}"),
                fix: Some(if is_key {
                    "test the key with `in`".into()
                } else {
                    "remove the comparison".into()
                }),
                is_harmless: true,
            });
        }
        for value in values {
            let Some(text) = value.as_str() else {
                return ComparisonOutcome::Varying;
            };
            if default.as_ref() == Some(value) {
                continue;
            }
            let outcome = match values {
                [_] => format!("so this is always {is_not}"),
                _ => format!("so `{text}` never matches"),
            };
            let is_string_of_integer = input_type.is_int_or_string() && is_integer(text);
            if is_string_of_integer && input_type.is_builtin() && !self.converts_to_string {
                return ComparisonOutcome::Constant(ConstantComparison {
                    rule: Rule::ImpossibleValue,
                    message: format!("a string in `{shown}` is a name or a percentage, {outcome}"),
                    fix: Some(format!("write `{text}` without quotes for the integer").into()),
                    is_harmless: false,
                });
            }
            let impossible = Self::impossible_value(path, &input_type, text);
            let Some((allowed, intended)) = impossible else {
                continue;
            };
            return ComparisonOutcome::Constant(ConstantComparison {
                rule: Rule::ImpossibleValue,
                message: format!("`{shown}` is one of {allowed}, {outcome}"),
                fix: intended.map(|it| Advice::did_you_mean(Replacement::ComparedLiteral(it))),
                is_harmless: false,
            });
        }
        ComparisonOutcome::Varying
    }
}

/// Returns true if `text` consists of digits only. In a built-in int-or-string field, such a string is never valid: a
/// percentage contains `%`, and the name of a port contains a letter.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/apps/validation/validation.go`, `ValidatePositiveIntOrPercent`;
/// `k8s.io/apimachinery` `pkg/util/validation/validation.go`, `IsValidPortName`.
fn is_integer(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|c| c.is_ascii_digit())
}
