//! The limits on the estimated costs of CRD rules, and the messages for exceeding a limit.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/validation.go` (`getCostErrorMessage`,
//! `multiplyWithOverflowGuard`), `cel_validation.go` (`TotalCost`).

use super::path::{Path, PathStep};

/// The maximum estimated cost of one expression for one object, in CEL cost units (`StaticEstimatedCostLimit`).
pub const STATIC_ESTIMATED_COST_LIMIT: u64 = 10_000_000;

/// The maximum total estimated cost of a schema's expressions for one object, in CEL cost units
/// (`StaticEstimatedCRDCostLimit`).
pub const STATIC_ESTIMATED_CRD_COST_LIMIT: u64 = 100_000_000;

/// The number of expressions to report if the total cost exceeds its limit. The most expensive expressions are
/// reported.
const N_NAMED: usize = 4;

pub(super) const CONTRIBUTED: &str =
    "contributed to estimated rule cost total exceeding cost limit for entire OpenAPIv3 schema";

pub(super) fn product(cost: u64, cardinality: u64) -> u64 {
    cost.saturating_mul(cardinality)
}

/// Returns the API server's message for an estimated cost that exceeds its limit.
pub(super) fn exceeded(what: &str, cost: u64, limit: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "as in upstream")]
    let factor = cost as f64 / limit as f64;
    let factor = if factor > 100.0 {
        "more than 100x".to_owned()
    } else if factor < 1.5 {
        format!("{factor:.6}x")
    } else {
        format!("{factor:.1}x")
    };
    format!(
        "{what} exceeds budget by factor of {factor} (try simplifying the rule, or adding maxItems, maxProperties, \
         and maxLength where arrays, maps, and strings are declared)"
    )
}

#[derive(Debug, Default)]
pub(super) struct Total {
    cost: u64,
    /// The most expensive expressions, sorted by descending cost: the cost, the path, and the formatted path.
    expensive: Vec<(u64, Vec<PathStep>, String)>,
}

impl Total {
    pub(super) fn add(&mut self, path: &Path<'_>, cost: u64) {
        self.cost = self.cost.saturating_add(cost);
        if cost < STATIC_ESTIMATED_CRD_COST_LIMIT / 100 {
            return;
        }
        self.expensive.push((cost, path.steps(), path.text()));
        self.expensive
            .sort_by_key(|(cost, ..)| std::cmp::Reverse(*cost));
        self.expensive.truncate(N_NAMED);
    }

    pub(super) fn exceeds_limit(&self) -> bool {
        self.cost > STATIC_ESTIMATED_CRD_COST_LIMIT
    }

    pub(super) fn most_expensive(&self) -> impl Iterator<Item = (&Vec<PathStep>, &str)> {
        let all = self.expensive.iter();
        all.map(|(_, place, field)| (place, field.as_str()))
    }

    pub(super) fn message(&self) -> String {
        let what = "x-kubernetes-validations estimated rule cost total for entire OpenAPIv3 schema";
        exceeded(what, self.cost, STATIC_ESTIMATED_CRD_COST_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factor_of_exceeded_cost_limit_agrees_with_go() {
        let factor = |cost| {
            let text = exceeded("estimated rule cost", cost, STATIC_ESTIMATED_COST_LIMIT);
            text.split("factor of ")
                .nth(1)
                .unwrap()
                .split(" (")
                .next()
                .unwrap()
                .to_owned()
        };
        assert_eq!(factor(10_485_760), "1.048576x");
        assert_eq!(factor(25_000_000), "2.5x");
        assert_eq!(factor(1_000_000_001), "more than 100x");
    }
}
