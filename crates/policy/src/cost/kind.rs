//! Estimates the costs of a policy's expressions for objects of one kind, from the size limits in its schema.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::inputs::Inputs;
use super::shared::{ExpressionEstimate, Parts, SharedCosts, parts};
use super::untyped::{UntypedChecks, cost_env};
use super::{Costs, MAX_FILLED_FROM, N_SIZES, shapes};
use crate::compile::CompiledPolicy;
use crate::environment::VariableTypes;
use crate::expressions::{ExpressionCheck, PolicyExpression, Role};
use cel::checker::CheckedAst;
use cel::diagnostic::Code;
use cel::env::Env;
use cel::types::Type;
use kubernetes::library::estimate::policy_options;
use kubernetes::schema::{DeclType, Gvk};

/// An expression that costs less than this for the largest request is not estimated for smaller requests.
const MIN_COST: u64 = 10_000;

#[derive(Clone, Copy, Debug)]
pub(super) struct KindTypes<'a> {
    /// The kind and type of `object` and `oldObject`.
    pub(super) object: (&'a Gvk, &'a Arc<DeclType>),
    /// The kind and type of `params`. `None` if the policy has no paramKind, or if the schema is unknown.
    pub(super) params: Option<(&'a Gvk, &'a Arc<DeclType>)>,
}

/// Estimates the cost of each expression of `policy` for objects of one kind, in the order of the policy's fields.
/// `None` for an expression that does not compile, and for all expressions after the limit of visited nodes is
/// exceeded.
///
/// The cost of evaluating a variable is counted only for the variable itself, not for the expressions that read it.
/// `shared` contains the costs of earlier kinds, and `untyped` the checks without types.
pub(super) fn kind_costs(
    policy: &CompiledPolicy,
    types: &KindTypes<'_>,
    mut shared: Option<&mut SharedCosts>,
    untyped: &mut UntypedChecks,
    visits_left: &mut usize,
) -> Vec<Option<Costs>> {
    let mut parts = match &mut shared {
        Some(shared) => all_parts(policy, types, shared),
        None => vec![None; policy.n_expressions()],
    };
    let cached: Vec<_> = parts
        .iter()
        .enumerate()
        .map(|(n, parts)| shared.as_ref()?.get(n, parts.as_ref()))
        .collect();
    // An expression without a cached estimate must be type-checked, which needs the types of the variables.
    let mut checker =
        (cached.iter().any(Option::is_none)).then(|| ExpressionChecker::new(policy, types));
    let mut costs = vec![None; policy.n_expressions()];
    for (expression, n) in in_order(policy) {
        let Some(left) = visits_left.checked_sub(expression.n_nodes()) else {
            *visits_left = 0;
            break;
        };
        *visits_left = left;
        let cached_estimate = cached.get(n).copied().flatten();
        let mut checked = None;
        if let Some(checker) = &mut checker
            && (cached_estimate.is_none() || expression.role == Role::Variable)
        {
            checked = checker.check((expression, n), untyped);
        }
        let estimated = cached_estimate.or_else(|| {
            let checker = checker.as_mut()?;
            let estimated = match &checked {
                Some(checked) => estimated(checked, &mut checker.inputs, *visits_left)?,
                None => ExpressionEstimate {
                    costs: None,
                    n_visits: 0,
                },
            };
            if let Some(shared) = &mut shared {
                shared.add(n, parts.get_mut(n).and_then(Option::take), estimated);
            }
            Some(estimated)
        });
        if let Some(estimated) = estimated
            && let Some(left) = visits_left.checked_sub(estimated.n_visits)
            && let Some(slot) = costs.get_mut(n)
        {
            *visits_left = left;
            *slot = estimated.costs;
        }
        if let Some(checker) = &mut checker
            && expression.role == Role::Variable
        {
            checker.add_variable(expression, checked.as_ref());
        }
    }
    costs
}

/// Returns the expressions with their indices. Variables come first.
fn in_order(policy: &CompiledPolicy) -> impl Iterator<Item = (&PolicyExpression, usize)> {
    let is_variable = |role| role == Role::Variable;
    let expressions = || policy.expressions().iter().zip(0..);
    expressions()
        .filter(move |(expression, _)| is_variable(expression.role))
        .chain(expressions().filter(move |(expression, _)| !is_variable(expression.role)))
}

/// Returns the inputs that each expression reads. `None` if they are unknown.
fn all_parts(
    policy: &CompiledPolicy,
    types: &KindTypes<'_>,
    shared: &mut SharedCosts,
) -> Vec<Option<Parts>> {
    let (_, object) = types.object;
    let mut variables = HashMap::new();
    let mut all = vec![None; policy.n_expressions()];
    for (expression, n) in in_order(policy) {
        let ast = expression.parsed().ok();
        let parts = ast.and_then(|ast| parts(ast, object, &variables));
        if expression.role == Role::Variable {
            let name = expression.name.as_deref().unwrap_or_default();
            variables.insert(name, shared.variable(n, parts.as_ref()));
        }
        if let Some(slot) = all.get_mut::<usize>(n) {
            *slot = parts;
        }
    }
    all
}

struct ExpressionChecker {
    env: Env,
    variables: VariableTypes,
    inputs: Inputs,
}

impl ExpressionChecker {
    fn new(policy: &CompiledPolicy, types: &KindTypes<'_>) -> Self {
        let object = evaluated(types.object);
        let params = types.params.map_or(Type::Dyn, evaluated);
        let mut env = cost_env(policy, &object, &params);
        let variables = VariableTypes::default();
        env.set_variable("variables", variables.to_type());
        Self {
            env,
            variables,
            inputs: Inputs::new(
                types.object.1,
                types.params.map(|(_, type_)| type_),
                policy_options(policy.version().release()),
            ),
        }
    }

    /// Checks the expression with the types of the kind. If it reads an undefined field, for example in a branch for
    /// another kind, it is checked again without types. It is also checked again if operands have different types, for
    /// example if containers are concatenated with ephemeral containers.
    fn check(
        &self,
        (expression, n): (&PolicyExpression, usize),
        untyped: &mut UntypedChecks,
    ) -> Option<Rc<CheckedAst>> {
        let errors = match expression.check(&self.env) {
            ExpressionCheck::Passed(checked) => return Some(Rc::new(checked)),
            ExpressionCheck::Unparsed(_) => return None,
            ExpressionCheck::Failed(_, errors) => errors,
        };
        let mut codes = errors.as_slice().iter().map(|error| error.kind.code());
        let is_checked_untyped = |code| match code {
            Code::NoMatchingOverload => true,
            Code::UndefinedField => untyped.accepts_undefined_fields,
            _ => false,
        };
        if !codes.all(is_checked_untyped) {
            return None;
        }
        untyped.check((expression, n))
    }

    /// Adds a variable. If `checked` is `None`, the type of the variable is unknown.
    fn add_variable(&mut self, variable: &PolicyExpression, checked: Option<&Rc<CheckedAst>>) {
        let name = variable.name.as_deref().unwrap_or_default();
        let type_ = checked.map(|checked| checked.output_type());
        self.inputs.add_variable(name, checked);
        self.variables.add(name, type_.unwrap_or(Type::Dyn));
        self.env.set_variable("variables", self.variables.to_type());
    }
}

/// Returns the costs of a checked expression, for the largest request and for each estimated object size. `None` if the
/// limit of visited nodes is exceeded.
fn estimated(
    checked: &CheckedAst,
    inputs: &mut Inputs,
    visits_left: usize,
) -> Option<ExpressionEstimate> {
    let estimate = inputs.bound(checked, None).cost;
    let mut costs = Costs::NONE;
    costs.estimate = estimate;
    costs.by_size.fill(estimate.max);
    if estimate.max < MIN_COST {
        return Some(ExpressionEstimate {
            costs: Some(costs),
            n_visits: 0,
        });
    }
    let n_estimates = costs.by_size.len().saturating_mul(MAX_FILLED_FROM + 1);
    let n_visits = checked.ast().len().saturating_mul(n_estimates);
    if n_visits > visits_left {
        return None;
    }
    let mut by_size = [0; N_SIZES];
    let mut reads_nested_lists = false;
    for (n, shape) in shapes().enumerate() {
        // Shapes with full nested lists matter only if the expression reads nested lists.
        if shape.filled_from > 1 && !reads_nested_lists {
            continue;
        }
        let bounds = inputs.bound(checked, Some(n));
        reads_nested_lists |= bounds.reads_nested_lists;
        if let Some(worst) = by_size.get_mut(n / (MAX_FILLED_FROM + 1)) {
            *worst = bounds.cost.max.max(*worst);
        }
    }
    costs.by_size = by_size;
    let largest = by_size.last().copied().unwrap_or_default();
    costs.estimate.max = estimate.max.max(largest);
    Some(ExpressionEstimate {
        costs: Some(costs),
        n_visits,
    })
}

fn evaluated((gvk, type_): (&Gvk, &Arc<DeclType>)) -> Type {
    type_.evaluated_type(&gvk.type_name())
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::json;

    use super::super::inputs::text;
    use super::*;
    use cel::cost::CostEstimate;
    use kubernetes::schema::{DeclField, OpenApiDocument};

    fn alone(policy: &CompiledPolicy, types: &KindTypes<'_>) -> Vec<Option<Costs>> {
        let mut untyped = UntypedChecks::new(policy, 1);
        kind_costs(policy, types, None, &mut untyped, &mut 1_000_000)
    }

    /// Compares the minimum and maximum cost of `validation` in a policy with `variables`. Objects have at most 4
    /// containers, whose names have at most 63 code points.
    #[track_caller]
    fn check(variables: &[(&str, &str)], validation: &str, expected: (u64, u64)) {
        let schema = json!({
            "type": "object",
            "properties": {"spec": {"type": "object", "properties": {
                "paused": {"type": "boolean"},
                "containers": {"type": "array", "maxItems": 4, "items": {
                    "type": "object",
                    "properties": {"name": {"type": "string", "maxLength": 63}},
                }},
            }}},
            "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Test"}],
        });
        let document = json!({"openapi": "3.0.0", "components": {"schemas": {"test": schema}}});
        let document = OpenApiDocument::parse(document.to_string().as_bytes()).unwrap();
        let gvk = Gvk::new("g", "v1", "Test");
        let object = document.decl_type(&gvk).unwrap();
        let variables: Vec<_> = variables
            .iter()
            .map(|(name, expression)| json!({"name": name, "expression": expression}))
            .collect();
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
            "metadata": {"name": "test"},
            "spec": {"variables": variables, "validations": [{"expression": validation}]},
        }))
        .unwrap();
        let types = KindTypes {
            object: (&gvk, &object),
            params: None,
        };
        let costs = alone(&CompiledPolicy::new(&policy), &types);
        let (min, max) = expected;
        let last = costs.last().copied().flatten();
        let last = last.map(|costs| costs.estimate);
        assert_eq!(last, Some(CostEstimate::new(min, max)));
        assert_eq!(costs.len(), variables.len() + 1);
    }

    #[test]
    fn max_items_limits_cost_of_loop() {
        check(
            &[],
            "object.spec.containers.all(c, c.name.matches('ab'))",
            (4, 128),
        );
    }

    #[test]
    fn loop_over_variable_with_object_field_has_bounded_cost() {
        check(
            &[("containers", "object.spec.containers")],
            "variables.containers.all(c, c.name.matches('ab'))",
            (3, 127),
        );
        check(
            &[
                ("spec", "object.spec"),
                (
                    "containers",
                    "has(variables.spec.containers) ? variables.spec.containers : []",
                ),
            ],
            "variables.containers.all(c, c.name.matches('ab'))",
            (3, 127),
        );
    }

    #[test]
    fn loop_over_variable_with_combined_fields_has_bounded_cost() {
        let cost = |variable, max| {
            check(
                &[("containers", variable)],
                "variables.containers.all(c, c.name.matches('ab'))",
                (3, max),
            );
        };
        cost("object.?spec.containers.orValue([])", 127);
        cost("object.?spec.?containers.orValue([])", 127);
        cost("object.spec.containers.filter(c, has(c.name))", 127);
        cost("object.spec.containers.filter(c, c.name in ['a'])", 127);
        cost("object.spec.containers + object.spec.containers", 251);
        cost("object.spec.?containers.orValue([]).filter(c, true)", 127);
    }

    #[test]
    fn loop_over_computed_list_is_bounded_by_its_source() {
        let check = |variable, max| {
            check(
                &[("names", variable)],
                "variables.names.all(n, n != null)",
                (3, max),
            );
        };
        check("object.spec.containers.map(c, c.name)", 23);
        // A list in the variable may have as many elements as fit into the largest request.
        check("object.spec.containers.map(c, [c.name])", 23);
        check("object.spec.containers.map(c, {c.name: c})", 23);
    }

    #[test]
    fn branch_for_another_kind_has_no_cost() {
        check(
            &[(
                "containers",
                "object.kind == 'Test' ? object.spec.containers : object.spec.template.containers",
            )],
            "variables.containers.all(c, c.name.matches('ab'))",
            (3, 127),
        );
        check(
            &[],
            "object.spec.template.containers.all(c, c.name.matches('ab'))",
            (5, 5),
        );
    }

    #[test]
    fn computed_string_has_estimated_size() {
        let max_cost = |variable, max| {
            let validation = "variables.text.matches('ab')";
            check(&[("text", variable)], validation, (3, max));
        };
        // A name has at most 63 code points, which are at most 252 bytes.
        max_cost("object.spec.containers[0].name", 28);
        max_cost("object.spec.containers[0].name.lowerAscii()", 28);
        max_cost("object.spec.containers[0].name.split('-')[0]", 28);
        max_cost("namespaceObject.metadata.labels['a']", 9);
        // Four names and three separators have at most 1,011 bytes.
        max_cost("object.spec.containers.map(c, c.name).join(',')", 104);
        max_cost(
            "object.spec.containers.map(c, [c.name].join(',')).join(',')",
            104,
        );
    }

    /// The value of a variable may be larger than the object. The parts of a split string together are only as large as
    /// the string.
    #[test]
    fn variable_may_be_larger_than_the_object() {
        let usual = |variable: &str, validation: &str| {
            let gvk = Gvk::new("g", "v1", "Test");
            let long = text(kubernetes::schema::sizes::max_string_length());
            let object = DeclType::object("Test", [DeclField::new("text", long, true)]);
            let variables = json!([{"name": "v", "expression": variable}]);
            let spec = json!({"variables": variables, "validations": [{"expression": validation}]});
            let policy = json!({"metadata": {"name": "test"}, "spec": spec});
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
            let types = KindTypes {
                object: (&gvk, &object),
                params: None,
            };
            let costs = alone(&CompiledPolicy::new(&policy), &types);
            let costs = costs.last().copied().flatten().unwrap();
            let at = crate::cost::object_sizes()
                .position(|n| n == 64 * 1024)
                .unwrap();
            costs.by_size[at]
        };
        let contains = "variables.v.contains('ab')";
        let plain = usual("object.text.lowerAscii()", contains);
        assert!((6_554..6_600).contains(&plain), "{plain}");
        assert!(usual("object.text.replace('a', 'bbbbbbbbbb')", contains) >= 10 * 6_553);
        assert!(usual("object.text + object.text", contains) >= 2 * 6_553);
        assert!(usual("object.text.split('').join('1234')", contains) >= 5 * 6_500);
        for same in [
            "(has(object.text) ? object.text + object.text : '')",
            "optional.of(object.text + object.text).orValue('')",
            "{'a': object.text + object.text}.a",
            "'%s'.format([object.text])",
            "[object.text, object.text].join('')",
            "[[object.text], [object.text]].flatten().join('')",
        ] {
            let cost = usual(same, contains);
            assert!((2 * 6_553..2 * 6_600).contains(&cost), "{same}: {cost}");
        }
        let words = "object.text.split(',')";
        let four = format!("{words} + {words} + {words} + {words}");
        let all = "variables.v.all(w, w != 'zz')";
        assert!(usual(&four, all) >= 4 * usual(words, all) - 20);
        let parts = "object.text.split(',')";
        assert!(usual(parts, "variables.v[0].contains('ab')") >= 6_553);
        let each = usual(parts, "variables.v.all(p, p.contains('ab'))");
        assert!((65_536..1_000_000).contains(&each), "{each}");
    }

    #[test]
    fn elements_of_computed_list_have_estimated_size() {
        let max_cost = |variable, max| {
            let validation = "variables.names.all(n, n.matches('ab'))";
            check(&[("names", variable)], validation, (3, max));
        };
        max_cost("object.spec.containers.map(c, c.name)", 123);
        max_cost("object.spec.containers.map(c, c.name.lowerAscii())", 123);
        max_cost(
            "object.spec.containers.map(c, c.name + ':latest-and-greatest')",
            131,
        );
    }

    /// The estimated size of an element includes its required fields. A required field counts even if it has a default,
    /// although a request may then omit it. An element `{"name":""}` and a comma are estimated as 13 bytes, so an
    /// object of 1 KiB has at most 78 elements.
    #[test]
    fn required_fields_of_elements_limit_their_number() {
        let by_size = |required: &[&str]| {
            let name = json!({"type": "string", "default": ""});
            let item =
                json!({"type": "object", "required": required, "properties": {"name": name}});
            let schema = json!({
                "type": "object",
                "properties": {"list": {"type": "array", "items": item}},
                "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Test"}],
            });
            let document = json!({"openapi": "3.0.0", "components": {"schemas": {"test": schema}}});
            let document = OpenApiDocument::parse(document.to_string().as_bytes()).unwrap();
            let gvk = Gvk::new("g", "v1", "Test");
            let object = document.decl_type(&gvk).unwrap();
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
                "metadata": {"name": "test"},
                "spec": {"validations": [{"expression": "object.list.all(x, object.list.all(y, true))"}]},
            }))
            .unwrap();
            let types = KindTypes {
                object: (&gvk, &object),
                params: None,
            };
            let costs = alone(&CompiledPolicy::new(&policy), &types);
            let costs = costs.first().copied().flatten().unwrap();
            (costs.estimate.max, costs.by_size[0])
        };
        let (most, of_required) = by_size(&["name"]);
        let (most_optional, of_optional) = by_size(&[]);
        // The API server's own estimate does not depend on required fields.
        assert_eq!(most, most_optional);
        assert!(of_required < 80 * 80 * 4, "{of_required}");
        assert!(of_optional > 300 * 300 * 2, "{of_optional}");
    }

    #[test]
    fn expression_with_compile_error_has_no_estimate() {
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
            "metadata": {"name": "test"},
            "spec": {"validations": [{"expression": "nothing"}, {"expression": "1 +"}]},
        }))
        .unwrap();
        let gvk = Gvk::new("g", "v1", "Test");
        let object = DeclType::object("Test", []);
        let types = KindTypes {
            object: (&gvk, &object),
            params: None,
        };
        let costs = alone(&CompiledPolicy::new(&policy), &types);
        assert!(costs.iter().all(Option::is_none), "{costs:?}");
    }
}
