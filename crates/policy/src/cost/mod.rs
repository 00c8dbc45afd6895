//! Estimates the costs of a policy's expressions, and compares the estimates with the API server's limits.
//!
//! The API server estimates costs only for the rules of CRDs. It accepts a policy regardless of its costs. At run time,
//! it stops an expression that exceeds [`PER_CALL_LIMIT`], and a [`Stage`] whose expressions together exceed its
//! budget.
//!
//! The estimate for CRDs assumes the largest request, of 3 MiB. For this size, most loops over a list without
//! `maxItems` exceed the limit. Costs are therefore also estimated for smaller objects. A cost is reported if an object
//! of [`USUAL_OBJECT_BYTES`] can reach a limit.
//!
//! Source: k8s.io/apiserver `pkg/apis/cel/config.go`; `pkg/admission/plugin/cel/condition.go` (`ForInput`) and
//! `pkg/admission/plugin/policy/validating/validator.go` (`Validate`; shared budgets); k8s.io/kubernetes
//! `pkg/apis/admissionregistration/validation/validation.go`, `validateValidatingAdmissionPolicySpec` (no estimates on
//! creation).

mod inputs;
mod kind;
#[cfg(test)]
mod measured_tests;
mod shared;
mod untyped;

use std::collections::HashMap;

use crate::compile::CompiledPolicy;
use crate::expressions::{PolicyExpression, Role};
use crate::param_kind;
use crate::reads::Reads;
use cel::cost::CostEstimate;
use cel::stack::run_on_deep_stack;
use kind::{KindTypes, kind_costs};
use kubernetes::library::limits::{
    PER_CALL_LIMIT, RUNTIME_CEL_COST_BUDGET, RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS,
};
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::{Gvk, ObjectShape};
use shared::SharedCosts;
use untyped::UntypedChecks;

/// The size of a large but realistic object, in bytes of JSON.
pub const USUAL_OBJECT_BYTES: i64 = 64 * 1024;

/// A cost is reported if it reaches this percentage of a limit.
pub const NEAR_PERCENT: u64 = 80;

/// A cost is unbounded if the estimate for the smallest objects reaches this value. Such a cost depends on a size that
/// has no limit.
const UNBOUNDED: u64 = 1 << 53;

/// The greatest reported cost. Greater bounded costs, such as those of nested loops over long lists, are reported as
/// this value.
pub const GREATEST_COST: u64 = UNBOUNDED - 1;

/// Maximum number of AST nodes that the estimates of a policy visit. Expressions beyond it have no estimate.
const MAX_VISITS: usize = 10_000_000;

/// The smallest object size of an estimate, in bytes. Each following size is twice as large.
const MIN_OBJECT_BYTES: i64 = 1024;

/// The number of object sizes with an estimate. The largest size is 2 MiB.
const N_SIZES: usize = 12;

/// Maximum value of [`ObjectShape::filled_from`]. Values above 1 are only tried for expressions that read nested lists.
const MAX_FILLED_FROM: usize = 2;

/// The estimated costs of all expressions of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyCosts {
    /// The costs of each expression, in the order of the policy's fields.
    pub expressions: Vec<ExpressionCost>,
    /// The costs of each stage that has expressions.
    pub stages: Vec<StageCost>,
}

/// The cost of one expression. Its limit is [`PER_CALL_LIMIT`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionCost {
    /// The path of the field in the policy, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The worst case among all kinds. `None` if the expression compiles for no kind.
    pub worst: Option<WorstCase>,
    /// The depth of nested loops.
    pub loops: u32,
}

impl ExpressionCost {
    /// The limit on the cost of one expression.
    pub const LIMIT: u64 = PER_CALL_LIMIT;

    /// The name of the limit in upstream's source.
    pub const LIMIT_NAME: &'static str = "PerCallLimit";
}

/// The total cost of the expressions of a stage and of the variables that they read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// The stage.
    pub stage: Stage,
    /// The worst case among all kinds. `None` if one of the expressions has no estimate.
    pub worst: Option<WorstCase>,
}

/// A group of expressions with a common cost budget. The budget applies to one evaluation of the policy: one request,
/// binding and params object.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The match conditions.
    MatchConditions,
    /// The validations, followed by the message expressions.
    Validations,
    /// The audit annotations.
    AuditAnnotations,
}

impl Stage {
    /// All stages, in the order of evaluation.
    pub const ALL: [Self; 3] = [
        Self::MatchConditions,
        Self::Validations,
        Self::AuditAnnotations,
    ];

    /// Returns the name of the stage, which is also the name of its field in the policy.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::MatchConditions => "matchConditions",
            Self::Validations => "validations",
            Self::AuditAnnotations => "auditAnnotations",
        }
    }

    /// Returns the limit on the total cost of the stage's expressions.
    #[must_use]
    pub fn limit(self) -> u64 {
        match self {
            Self::MatchConditions => RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS,
            Self::Validations | Self::AuditAnnotations => RUNTIME_CEL_COST_BUDGET,
        }
    }

    /// Returns the name of the limit in upstream's source.
    #[must_use]
    pub fn limit_name(self) -> &'static str {
        match self {
            Self::MatchConditions => "RuntimeCELCostBudgetMatchConditions",
            Self::Validations | Self::AuditAnnotations => "RuntimeCELCostBudget",
        }
    }

    /// Returns the roles of the stage's expressions. The API server evaluates the variables again for each role.
    fn roles(self) -> &'static [Role] {
        match self {
            Self::MatchConditions => &[Role::MatchCondition],
            Self::Validations => &[Role::Validation, Role::MessageExpression],
            Self::AuditAnnotations => &[Role::AuditAnnotation],
        }
    }
}

/// The greatest costs for objects of any matched kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// The kind with the greatest cost for an object of [`USUAL_OBJECT_BYTES`].
    pub gvk: Gvk,
    estimate: CostEstimate,
    /// The greatest cost for each estimated object size.
    by_size: [u64; N_SIZES],
}

impl WorstCase {
    /// Returns the smallest possible cost.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.estimate.min
    }

    /// Returns the greatest possible cost for the largest request. `None` if it is unbounded.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.bounded(self.estimate.max)
    }

    /// Returns the greatest possible cost for an object of [`USUAL_OBJECT_BYTES`]. `None` if it is unbounded.
    #[must_use]
    pub fn usual_object_cost(&self) -> Option<u64> {
        let (cost, _) = self.by_size().find(|(_, n)| *n == USUAL_OBJECT_BYTES)?;
        self.bounded(cost)
    }

    /// Returns `cost` or [`GREATEST_COST`], whichever is smaller. `None` if the cost is unbounded.
    fn bounded(&self, cost: u64) -> Option<u64> {
        let of_smallest = self.by_size.first()?;
        (*of_smallest < UNBOUNDED).then_some(cost.min(GREATEST_COST))
    }

    /// Returns the largest object size, in bytes, for which the estimated cost is below `limit`. `None` if even the
    /// smallest objects can reach `limit`, or if the cost is unbounded.
    #[must_use]
    pub fn bytes_within(&self, limit: u64) -> Option<i64> {
        let below = self.by_size().take_while(|(cost, _)| *cost < limit);
        below.last().map(|(_, n_bytes)| n_bytes)
    }

    /// Returns true if an object of [`USUAL_OBJECT_BYTES`] can reach [`NEAR_PERCENT`] of `limit`.
    #[must_use]
    pub fn is_near(&self, limit: u64) -> bool {
        self.usual_object_cost()
            .is_some_and(|cost| cost.saturating_mul(100) >= limit.saturating_mul(NEAR_PERCENT))
    }

    fn by_size(&self) -> impl Iterator<Item = (u64, i64)> {
        self.by_size.iter().copied().zip(object_sizes())
    }

    /// Combines two worst cases: the smaller minimum, the greater maxima, and the kind with the greater cost for an
    /// object of [`USUAL_OBJECT_BYTES`].
    fn or_worse(self, other: Self) -> Self {
        let usual = |worst: &Self| worst.usual_object_cost().unwrap_or(u64::MAX);
        let gvk = if usual(&other) > usual(&self) {
            other.gvk
        } else {
            self.gvk
        };
        let min = self.estimate.min.min(other.estimate.min);
        let max = self.estimate.max.max(other.estimate.max);
        let mut by_size = self.by_size;
        for (known, other) in by_size.iter_mut().zip(other.by_size) {
            *known = other.max(*known);
        }
        Self {
            gvk,
            estimate: CostEstimate::new(min, max),
            by_size,
        }
    }
}

/// Returns the object sizes for the estimates, in bytes.
fn object_sizes() -> impl Iterator<Item = i64> {
    std::iter::successors(Some(MIN_OBJECT_BYTES), |n| n.checked_mul(2)).take(N_SIZES)
}

/// Returns the shapes of objects for the estimates: for each size, a shape with each value of
/// [`ObjectShape::filled_from`].
fn shapes() -> impl Iterator<Item = ObjectShape> {
    object_sizes().flat_map(|n_bytes| {
        (0..=MAX_FILLED_FROM).map(move |filled_from| ObjectShape {
            n_bytes,
            filled_from,
        })
    })
}

/// The costs of one or more expressions for objects of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Costs {
    estimate: CostEstimate,
    by_size: [u64; N_SIZES],
}

impl Costs {
    const NONE: Self = Self {
        estimate: CostEstimate::fixed(0),
        by_size: [0; N_SIZES],
    };

    fn plus(mut self, other: Self) -> Self {
        let min = self.estimate.min.saturating_add(other.estimate.min);
        let max = self.estimate.max.saturating_add(other.estimate.max);
        self.estimate = CostEstimate::new(min, max);
        for (sum, cost) in self.by_size.iter_mut().zip(other.by_size) {
            *sum = sum.saturating_add(cost);
        }
        self
    }

    fn for_kind(self, gvk: &Gvk) -> WorstCase {
        WorstCase {
            gvk: gvk.clone(),
            estimate: self.estimate,
            by_size: self.by_size,
        }
    }
}

impl PolicyCosts {
    /// Estimates the costs of `policy` for objects of `kinds`. Kinds without a schema are ignored.
    #[must_use]
    pub fn new(policy: &CompiledPolicy, kinds: &[&Gvk], schemas: &dyn SchemaResolver) -> Self {
        let is_deep = policy.expressions().iter().any(PolicyExpression::is_deep);
        run_on_deep_stack(is_deep, || Self::new_here(policy, kinds, schemas))
    }

    fn new_here(policy: &CompiledPolicy, kinds: &[&Gvk], schemas: &dyn SchemaResolver) -> Self {
        let resolved = |gvk: &Gvk| match schemas.resolve(gvk) {
            Resolution::Found(type_) => Some(type_),
            Resolution::NotFound | Resolution::Unavailable(_) => None,
        };
        let params_kind = param_kind(policy.policy());
        let params = params_kind
            .as_ref()
            .and_then(|gvk| Some((gvk, resolved(gvk)?)));
        let evaluated = evaluated_in(policy.expressions());
        let mut worst = vec![None; policy.n_expressions()];
        let mut stages: Vec<(Stage, Option<WorstCase>)> = Vec::new();
        let mut shared = (kinds.len() > 1).then(SharedCosts::default);
        let mut untyped = UntypedChecks::new(policy, kinds.len());
        let mut visits_left = MAX_VISITS;
        for gvk in kinds {
            let Some(object) = resolved(gvk) else {
                continue;
            };
            let types = KindTypes {
                object: (gvk, &object),
                params: params.as_ref().map(|(gvk, type_)| (*gvk, type_)),
            };
            let costs = kind_costs(
                policy,
                &types,
                shared.as_mut(),
                &mut untyped,
                &mut visits_left,
            );
            for (known, costs) in worst.iter_mut().zip(&costs) {
                add(known, costs.map(|costs| costs.for_kind(gvk)));
            }
            for (stage, indices) in &evaluated {
                let of_stage = indices.iter().try_fold(Costs::NONE, |sum, n| {
                    let costs = costs.get(*n).copied().flatten()?;
                    Some(sum.plus(costs))
                });
                let of_stage = of_stage.map(|costs| costs.for_kind(gvk));
                match stages.iter_mut().find(|(known, _)| known == stage) {
                    Some((_, known)) => add(known, of_stage),
                    None => stages.push((*stage, of_stage)),
                }
            }
        }
        let expressions = policy.expressions().iter().zip(worst);
        let stages = stages.into_iter();
        Self {
            expressions: expressions
                .map(|(expression, worst)| ExpressionCost {
                    field_ref: expression.field_ref.clone(),
                    worst,
                    loops: expression.parsed().map_or(0, |ast| ast.loop_depth()),
                })
                .collect(),
            stages: stages
                .map(|(stage, worst)| StageCost { stage, worst })
                .collect(),
        }
    }
}

fn add(known: &mut Option<WorstCase>, worst: Option<WorstCase>) {
    *known = match (known.take(), worst) {
        (Some(known), Some(worst)) => Some(known.or_worse(worst)),
        (known, worst) => known.or(worst),
    };
}

/// Returns the stages that have expressions, with the indices of the evaluated expressions. The evaluated expressions
/// are the stage's own expressions and the variables that they read. If expressions of several roles in a stage read
/// the same variable, the variable is listed once for each of these roles.
fn evaluated_in(expressions: &[PolicyExpression]) -> Vec<(Stage, Vec<usize>)> {
    // If several variables have the same name, expressions read the last one.
    let by_name: HashMap<&str, usize> = expressions
        .iter()
        .enumerate()
        .filter(|(_, expression)| expression.role == Role::Variable)
        .filter_map(|(n, variable)| Some((variable.name.as_deref()?, n)))
        .collect();
    let of_role = |role: Role| {
        let all = expressions.iter().enumerate();
        let own = all.filter(|(_, expression)| expression.role == role);
        let mut indices: Vec<usize> = own.map(|(n, _)| n).collect();
        let mut is_known = vec![false; expressions.len()];
        let mut are_all_known = false;
        let mut next = 0;
        while let Some(n) = indices.get(next).copied() {
            next += 1;
            let Some(Ok(ast)) = expressions.get(n).map(PolicyExpression::parsed) else {
                continue;
            };
            let reads = Reads::new(ast).variables();
            let named = reads.names.iter().filter_map(|name| by_name.get(name));
            let reads_all = reads.may_read_all && !are_all_known;
            are_all_known |= reads_all;
            let all = by_name.values().filter(|_| reads_all);
            for read in named.chain(all) {
                if let Some(is_known) = is_known.get_mut(*read)
                    && !std::mem::replace(is_known, true)
                {
                    indices.push(*read);
                }
            }
        }
        indices
    };
    let stages = Stage::ALL.into_iter();
    let stages = stages.map(|stage| {
        let roles = stage.roles().iter();
        (stage, roles.flat_map(|role| of_role(*role)).collect())
    });
    stages
        .filter(|(_, all): &(_, Vec<usize>)| !all.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use serde_json::{Value, json};

    use super::*;
    use kubernetes::schema::decl_type::DeclKind;
    use kubernetes::schema::{DeclField, DeclType};

    /// Resolves each kind to an object type with a list `list` of booleans. The number is the list's maximum length.
    struct Lists(i64);

    impl SchemaResolver for Lists {
        fn resolve(&self, _: &Gvk) -> Resolution {
            let elem = Arc::new(DeclType::scalar(DeclKind::Bool));
            let list = Arc::new(DeclType::list(elem, self.0));
            let object = DeclType::object("Test", [DeclField::new("list", list, true)]);
            Resolution::Found(object)
        }
    }

    fn costs(spec: &Value, max_items: i64) -> PolicyCosts {
        let policy = json!({"metadata": {"name": "test"}, "spec": spec});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let gvk = Gvk::new("g", "v1", "Test");
        PolicyCosts::new(&CompiledPolicy::new(&policy), &[&gvk], &Lists(max_items))
    }

    /// Source: k8s.io/apiserver 0.32 `pkg/features/kube_features.go`, `StrictCostEnforcementForVAP`.
    #[test]
    fn authorization_checks_are_cheap_before_1_32() {
        let check = "authorizer.group('').resource('a').check('get').allowed()";
        let spec = json!({"validations": [{"expression": check}]});
        let policy = json!({"metadata": {"name": "test"}, "spec": spec});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let gvk = Gvk::new("g", "v1", "Test");
        let max = |version: &str| {
            let policy = (&policy).into();
            let policy = CompiledPolicy::from_parts(policy, None, version.parse().unwrap());
            let costs = PolicyCosts::new(&policy, &[&gvk], &Lists(1));
            costs.expressions[0].worst.as_ref().unwrap().max()
        };
        assert_eq!(max("1.31"), Some(5));
        assert_eq!(max("1.32"), Some(350_004));
    }

    /// Resolves kinds to object types with the fields `shared` and `own`. The type of `shared` is the same for all
    /// kinds. `own` is a list with a different length for each kind.
    struct KindsWithSharedType {
        shared: Arc<DeclType>,
    }

    impl SchemaResolver for KindsWithSharedType {
        fn resolve(&self, gvk: &Gvk) -> Resolution {
            let bound = match &*gvk.kind {
                "A" => 3,
                "B" => 70,
                _ => 5_000,
            };
            let text = Arc::new(DeclType::scalar(DeclKind::String));
            let own = Arc::new(DeclType::list(text, bound));
            // In the last kind, the field `shared` has a different type.
            let shared = if bound > 100 { &own } else { &self.shared };
            let fields = [
                DeclField::new("own", Arc::clone(&own), true),
                DeclField::new("shared", Arc::clone(shared), true),
            ];
            Resolution::Found(DeclType::object("Test", fields))
        }
    }

    /// The costs for several kinds are the maximum of the costs for each kind, even if the kinds share types.
    #[test]
    fn cost_for_several_kinds_is_the_maximum_of_all_kinds() {
        let text = Arc::new(DeclType::scalar(DeclKind::String));
        let list = Arc::new(DeclType::list(text, -1));
        let nested = Arc::new(DeclType::list(Arc::clone(&list), -1));
        for shared in [list, nested] {
            let policy = json!({"metadata": {"name": "test"}, "spec": {
                "variables": [
                    {"name": "shared", "expression": "object.shared"},
                    {"name": "own", "expression": "object.own"},
                    {"name": "own", "expression": "variables.own + object.own"},
                ],
                "validations": [
                    {"expression": "variables.shared.all(x, x.size() < 3 || object.shared.size() > 5)"},
                    {"expression": "variables.own.all(x, x.matches('a+') || object.?own.hasValue())"},
                    {"expression": "object.shared.all(x, object.own.exists(y, y == x))"},
                    {"expression": "has(object.shared) && oldObject == null"},
                    {"expression": "object.shared.all(x, x.contains('a'))"},
                    {"expression": "object.shared.all(object, object.size() > 2)"},
                    {"expression": "object == oldObject || dyn(variables) == {}"},
                ],
            }});
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
            let compiled = CompiledPolicy::new(&policy);
            let kinds = ["A", "B", "C"].map(|kind| Gvk::new("g", "v1", kind));
            let schemas = KindsWithSharedType { shared };
            let together = PolicyCosts::new(&compiled, &kinds.each_ref()[..], &schemas);
            let mut expected: Option<PolicyCosts> = None;
            for gvk in &kinds {
                let alone = PolicyCosts::new(&compiled, &[gvk], &schemas);
                let Some(known) = &mut expected else {
                    expected = Some(alone);
                    continue;
                };
                for (known, alone) in known.expressions.iter_mut().zip(alone.expressions) {
                    add(&mut known.worst, alone.worst);
                }
                for (known, alone) in known.stages.iter_mut().zip(alone.stages) {
                    add(&mut known.worst, alone.worst);
                }
            }
            assert_eq!(Some(&together), expected.as_ref());
            let with_cost = together.expressions.iter().filter(|it| it.worst.is_some());
            assert!(with_cost.count() > 7, "{together:?}");
        }
    }

    fn max(worst: Option<&WorstCase>) -> Option<u64> {
        worst.and_then(WorstCase::max)
    }

    #[test]
    fn stage_cost_includes_variables_that_its_expressions_read() {
        let spec = json!({
            "variables": [
                {"name": "base", "expression": "object.list"},
                {"name": "shown", "expression": "variables.base"},
                {"name": "idle", "expression": "object.list.all(x, x)"},
            ],
            "matchConditions": [{"name": "c", "expression": "true"}],
            "validations": [
                {"expression": "variables.shown == []", "messageExpression": "'a'"},
                {"expression": "variables.base == []", "messageExpression": "string(variables.base == [])"},
            ],
            "auditAnnotations": [{"key": "k", "valueExpression": "string(dyn(variables) == {})"}],
        });
        let costs = costs(&spec, 4);
        let max_cost = |field_ref: &str| {
            let all = &costs.expressions;
            let cost = all.iter().find(|cost| cost.field_ref == field_ref);
            max(cost.unwrap().worst.as_ref()).unwrap()
        };
        let variable = |n| max_cost(&format!("spec.variables[{n}].expression"));
        let stages: Vec<_> = costs.stages.iter().map(|cost| cost.stage).collect();
        assert_eq!(stages, Stage::ALL);
        let stage = |n: usize| max(costs.stages[n].worst.as_ref()).unwrap();
        assert_eq!(stage(0), max_cost("spec.matchConditions[0].expression"));
        let validations = max_cost("spec.validations[0].expression")
            + max_cost("spec.validations[0].messageExpression")
            + max_cost("spec.validations[1].expression")
            + max_cost("spec.validations[1].messageExpression");
        // The message expressions evaluate the variable a second time.
        assert_eq!(
            stage(1),
            validations + variable(0) + variable(1) + variable(0)
        );
        let annotation = max_cost("spec.auditAnnotations[0].valueExpression");
        assert_eq!(
            stage(2),
            annotation + variable(0) + variable(1) + variable(2)
        );
    }

    #[test]
    fn expression_with_compile_error_leaves_stage_without_estimate() {
        let costs = costs(
            &json!({"validations": [{"expression": "true"}, {"expression": "1 +"}]}),
            4,
        );
        assert_eq!(max(costs.expressions[0].worst.as_ref()), Some(0));
        assert_eq!(costs.expressions[1].worst, None);
        assert_eq!(costs.stages[0].worst, None);
    }

    #[test]
    fn max_items_keeps_nested_loop_below_limit() {
        let spec = json!({"validations": [{"expression": "object.list.all(x, object.list.all(y, x == y))"}]});
        let worst = |max_items| costs(&spec, max_items).expressions.remove(0).worst.unwrap();
        let few = worst(100);
        assert!(
            few.max() < Some(100_000) && !few.is_near(PER_CALL_LIMIT),
            "{few:?}"
        );
        assert_eq!(few.bytes_within(PER_CALL_LIMIT), Some(2 << 20));
        // Each item takes 5 bytes (`true` and a comma). Objects of 1 KiB have 204 items, and objects of 2 KiB have 409.
        let many = worst(-1);
        // The cost of the largest request is bounded, but greater than the greatest reported cost.
        assert_eq!(many.max(), Some(GREATEST_COST));
        assert!(many.is_near(PER_CALL_LIMIT), "{many:?}");
        assert_eq!(many.bytes_within(PER_CALL_LIMIT), Some(1024));
        let beyond_any_json = worst(i64::MAX);
        assert_eq!(beyond_any_json.bytes_within(PER_CALL_LIMIT), Some(1024));
    }

    #[test]
    fn loop_over_unbounded_list_has_no_maximum_cost() {
        let spec = json!({
            "variables": [{"name": "v", "expression": "object.list"}],
            "validations": [{"expression": "request.userInfo.extra['a'].all(x, x == 'b')"}],
        });
        let costs = costs(&spec, 4);
        let worst = costs.expressions[1].worst.as_ref().unwrap();
        assert_eq!((worst.max(), worst.usual_object_cost()), (None, None));
        assert!(!worst.is_near(PER_CALL_LIMIT));
    }
}
