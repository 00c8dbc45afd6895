//! Costs that the expressions of a policy may have, and how far they stay below the API server's limits.
//!
//! The API server estimates the rules of CRDs only. It takes a policy whatever its expressions may cost, measures
//! them for each request, and stops one that exceeds [`PER_CALL_LIMIT`], and all of them where together they
//! exceed the budget of their [`Stage`]. An estimate as for CRDs supposes the largest request, of 3 MiB, for
//! which most loops over a list without `maxItems` exceed the limit. So there are estimates for smaller objects
//! too, and a cost deserves a note where an object of [`USUAL_OBJECT_BYTES`] can reach a limit.
//!
//! Source: k8s.io/apiserver `pkg/apis/cel/config.go`; `pkg/admission/plugin/cel/condition.go` (`ForInput`) and
//! `pkg/admission/plugin/policy/validating/validator.go` (`Validate`) for who shares a budget. That nothing
//! is estimated when a policy is created: k8s.io/kubernetes
//! `pkg/apis/admissionregistration/validation/validation.go`, `validateValidatingAdmissionPolicySpec`.

mod kind;
mod shared;

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
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use shared::SharedCosts;

/// The size of a large object that does occur, in bytes of JSON.
pub const USUAL_OBJECT_BYTES: i64 = 64 * 1024;

/// The part of a limit from which on a cost is near it, in percent.
pub const NEAR_PERCENT: u64 = 80;

/// A cost from which on an estimate says nothing where the smallest objects have it too: a size that nothing bounds went
/// into it.
const UNBOUNDED: u64 = 1 << 53;

/// The greatest cost that is told, as of nested loops over long lists; a greater one is given as this.
pub const GREATEST_COST: u64 = UNBOUNDED - 1;

/// The most visits of nodes for all estimates of a policy; what is beyond has no estimate.
const MAX_VISITS: usize = 10_000_000;

/// The smallest size of objects that costs are estimated for, in bytes; each next one is twice as large.
const MIN_OBJECT_BYTES: i64 = 1024;

/// How many sizes of objects costs are estimated for, up to 2 MiB.
const N_SIZES: usize = 12;

/// The costs of all expressions of a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyCosts {
    /// Those of each expression, in the order of the policy's fields.
    pub expressions: Vec<ExpressionCost>,
    /// Those of what shares a budget; only stages that have expressions.
    pub stages: Vec<StageCost>,
}

/// The costs of one expression, which [`PER_CALL_LIMIT`] limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExpressionCost {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// The worst case of all kinds; none where the expression checks for no kind.
    pub worst: Option<WorstCase>,
}

impl ExpressionCost {
    /// The most that it may cost.
    pub const LIMIT: u64 = PER_CALL_LIMIT;

    /// The limit by its upstream name.
    pub const LIMIT_NAME: &'static str = "PerCallLimit";
}

/// The costs of the expressions of a stage, with those of the variables that they read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StageCost {
    /// The stage.
    pub stage: Stage,
    /// The worst case of all kinds; none where an expression has no estimate.
    pub worst: Option<WorstCase>,
}

/// Expressions that share a budget, for each request, binding and param.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stage {
    /// The match conditions.
    MatchConditions,
    /// The validations, and after them the message expressions.
    Validations,
    /// The audit annotations.
    AuditAnnotations,
}

impl Stage {
    /// All stages, in the order in which they are evaluated.
    pub const ALL: [Self; 3] = [
        Self::MatchConditions,
        Self::Validations,
        Self::AuditAnnotations,
    ];

    /// The field of the policy with the expressions, which is also the name of the stage.
    #[must_use]
    pub fn field(self) -> &'static str {
        match self {
            Self::MatchConditions => "matchConditions",
            Self::Validations => "validations",
            Self::AuditAnnotations => "auditAnnotations",
        }
    }

    /// The most that its expressions may cost together.
    #[must_use]
    pub fn limit(self) -> u64 {
        match self {
            Self::MatchConditions => RUNTIME_CEL_COST_BUDGET_MATCH_CONDITIONS,
            Self::Validations | Self::AuditAnnotations => RUNTIME_CEL_COST_BUDGET,
        }
    }

    /// The limit by its upstream name.
    #[must_use]
    pub fn limit_name(self) -> &'static str {
        match self {
            Self::MatchConditions => "RuntimeCELCostBudgetMatchConditions",
            Self::Validations | Self::AuditAnnotations => "RuntimeCELCostBudget",
        }
    }

    /// The parts of the stage that evaluate variables anew.
    fn roles(self) -> &'static [Role] {
        match self {
            Self::MatchConditions => &[Role::MatchCondition],
            Self::Validations => &[Role::Validation, Role::MessageExpression],
            Self::AuditAnnotations => &[Role::AuditAnnotation],
        }
    }
}

/// The greatest costs for objects of any of the kinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstCase {
    /// The kind with the greatest cost for a usual object.
    pub gvk: Gvk,
    estimate: CostEstimate,
    /// The greatest cost for objects of each size.
    by_size: [u64; N_SIZES],
}

impl WorstCase {
    /// The least cost.
    #[must_use]
    pub fn min(&self) -> u64 {
        self.estimate.min
    }

    /// The greatest cost for the largest request; none if it has no bound.
    #[must_use]
    pub fn max(&self) -> Option<u64> {
        self.bounded(self.estimate.max)
    }

    /// The greatest cost for an object of [`USUAL_OBJECT_BYTES`]; none if it has no bound.
    #[must_use]
    pub fn usual_object_cost(&self) -> Option<u64> {
        let (cost, _) = self.by_size().find(|(_, n)| *n == USUAL_OBJECT_BYTES)?;
        self.bounded(cost)
    }

    /// The cost as it is told; none if it has no bound, which the smallest objects show.
    fn bounded(&self, cost: u64) -> Option<u64> {
        let of_smallest = self.by_size.first()?;
        (*of_smallest < UNBOUNDED).then_some(cost.min(GREATEST_COST))
    }

    /// The size of the largest objects that cannot reach `limit`, in bytes, as far as it was looked at; none if
    /// the smallest can, or if the cost has no bound.
    #[must_use]
    pub fn bytes_within(&self, limit: u64) -> Option<i64> {
        let below = self.by_size().take_while(|(cost, _)| *cost < limit);
        below.last().map(|(_, n_bytes)| n_bytes)
    }

    /// Reports whether an object of a usual size can come near `limit`.
    #[must_use]
    pub fn is_near(&self, limit: u64) -> bool {
        self.usual_object_cost()
            .is_some_and(|cost| cost.saturating_mul(100) >= limit.saturating_mul(NEAR_PERCENT))
    }

    fn by_size(&self) -> impl Iterator<Item = (u64, i64)> {
        self.by_size.iter().copied().zip(object_sizes())
    }

    /// The worse of the two in each respect.
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

/// The sizes of objects that costs are estimated for, in bytes.
fn object_sizes() -> impl Iterator<Item = i64> {
    std::iter::successors(Some(MIN_OBJECT_BYTES), |n| n.checked_mul(2)).take(N_SIZES)
}

/// The costs of one expression or more for the objects of one kind.
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
    /// The costs of `policy` for objects of `kinds`; a kind without a schema is left out.
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
        let mut visits_left = MAX_VISITS;
        for gvk in kinds {
            let Some(object) = resolved(gvk) else {
                continue;
            };
            let types = KindTypes {
                object: (gvk, &object),
                params: params.as_ref().map(|(gvk, type_)| (*gvk, type_)),
            };
            let costs = kind_costs(policy, &types, shared.as_mut(), &mut visits_left);
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

/// The stages that have expressions, with all that they evaluate: their expressions and, once for each role, the
/// variables that these read.
fn evaluated_in(expressions: &[PolicyExpression]) -> Vec<(Stage, Vec<usize>)> {
    // Of several variables of a name the last one is read.
    let by_name: HashMap<&str, usize> = expressions
        .iter()
        .enumerate()
        .filter(|(_, expression)| expression.role == Role::Variable)
        .filter_map(|(n, variable)| Some((variable.name.as_deref()?, n)))
        .collect();
    let of_role = |role: Role| {
        let all = expressions.iter().enumerate();
        let own = all.filter(|(_, expression)| expression.role == role);
        let mut found: Vec<usize> = own.map(|(n, _)| n).collect();
        let mut is_known = vec![false; expressions.len()];
        let mut are_all_known = false;
        let mut next = 0;
        while let Some(n) = found.get(next).copied() {
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
                    found.push(*read);
                }
            }
        }
        found
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

    /// Objects with a list `list` of at most `max_items` booleans.
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

    /// Kinds that have the type of `shared` in common, and each a list `own` of another bound.
    struct Several {
        shared: Arc<DeclType>,
    }

    impl SchemaResolver for Several {
        fn resolve(&self, gvk: &Gvk) -> Resolution {
            let bound = match &*gvk.kind {
                "A" => 3,
                "B" => 70,
                _ => 5_000,
            };
            let text = Arc::new(DeclType::scalar(DeclKind::String));
            let own = Arc::new(DeclType::list(text, bound));
            // `shared` of the last kind is of another type.
            let shared = if bound > 100 { &own } else { &self.shared };
            let fields = [
                DeclField::new("own", Arc::clone(&own), true),
                DeclField::new("shared", Arc::clone(shared), true),
            ];
            Resolution::Found(DeclType::object("Test", fields))
        }
    }

    /// The costs for several kinds together are the worst of those for each by itself, whatever they share.
    #[test]
    fn kinds_that_share_types_have_their_own_costs() {
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
            let schemas = Several { shared };
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
            let known = together.expressions.iter().filter(|it| it.worst.is_some());
            assert!(known.count() > 7, "{together:?}");
        }
    }

    fn max(worst: Option<&WorstCase>) -> Option<u64> {
        worst.and_then(WorstCase::max)
    }

    #[test]
    fn a_stage_pays_for_the_variables_that_it_reads() {
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
        let of = |field_ref: &str| {
            let all = &costs.expressions;
            let cost = all.iter().find(|cost| cost.field_ref == field_ref);
            max(cost.unwrap().worst.as_ref()).unwrap()
        };
        let variable = |n| of(&format!("spec.variables[{n}].expression"));
        let stages: Vec<_> = costs.stages.iter().map(|cost| cost.stage).collect();
        assert_eq!(stages, Stage::ALL);
        let stage = |n: usize| max(costs.stages[n].worst.as_ref()).unwrap();
        assert_eq!(stage(0), of("spec.matchConditions[0].expression"));
        let validations = of("spec.validations[0].expression")
            + of("spec.validations[0].messageExpression")
            + of("spec.validations[1].expression")
            + of("spec.validations[1].messageExpression");
        // The messages evaluate the variable anew.
        assert_eq!(
            stage(1),
            validations + variable(0) + variable(1) + variable(0)
        );
        let annotation = of("spec.auditAnnotations[0].valueExpression");
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
    fn a_bound_of_the_schema_keeps_a_loop_within_a_loop_below_the_limit() {
        let spec = json!({"validations": [{"expression": "object.list.all(x, object.list.all(y, x == y))"}]});
        let worst = |max_items| costs(&spec, max_items).expressions.remove(0).worst.unwrap();
        let few = worst(100);
        assert!(
            few.max() < Some(100_000) && !few.is_near(PER_CALL_LIMIT),
            "{few:?}"
        );
        assert_eq!(few.bytes_within(PER_CALL_LIMIT), Some(2 << 20));
        // 2 KiB have 409 items of `true` with a comma, and 4 KiB have 818.
        let many = worst(-1);
        // For the largest request it is more than can be told, and not without a bound.
        assert_eq!(many.max(), Some(GREATEST_COST));
        assert!(many.is_near(PER_CALL_LIMIT), "{many:?}");
        assert_eq!(many.bytes_within(PER_CALL_LIMIT), Some(2048));
        let beyond_any_json = worst(i64::MAX);
        assert_eq!(beyond_any_json.bytes_within(PER_CALL_LIMIT), Some(2048));
    }

    #[test]
    fn a_size_that_nothing_bounds_has_no_worst_case() {
        let spec = json!({
            "variables": [{"name": "v", "expression": "object.list.map(x, x)"}],
            "validations": [{"expression": "variables.v.all(x, x)"}],
        });
        let costs = costs(&spec, 4);
        let worst = costs.expressions[1].worst.as_ref().unwrap();
        assert_eq!((worst.max(), worst.usual_object_cost()), (None, None));
        assert!(!worst.is_near(PER_CALL_LIMIT));
    }
}
