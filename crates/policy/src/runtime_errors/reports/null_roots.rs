//! Finds the variables of an expression that may be null.

use super::messages::MessageWriter;
use crate::admission::Operation;
use crate::runtime_errors::examples::constrain_operation;
use crate::runtime_errors::failure_sites::{FailureCause, FailureSite, SitesByNode};
use crate::runtime_errors::path_conditions::solver;
use kubernetes::validity::{Constraint, InputConstraints, Root};

impl MessageWriter<'_, '_> {
    /// Returns the variables, such as `oldObject`, that the expression with the index `index` reads without a guard
    /// although they may be null. Optional selections on such a variable are not proposed, because they would hide this
    /// mistake.
    pub(super) fn null_roots(self, index: usize, sites_by_node: &SitesByNode<'_>) -> Vec<Root> {
        // The matched operations for which the root variable is null.
        let operations = |root| {
            let without: &[Operation] = match root {
                Root::Object => &[Operation::Delete],
                Root::OldObject => &[Operation::Create, Operation::Connect],
                _ => &[],
            };
            let without = without.iter().copied();
            without.filter(|operation| self.operations.contains(operation))
        };
        let sites = sites_by_node.values().flatten();
        let sites = sites.filter(|site| {
            site.node.index == index
                && site.cause == FailureCause::Absent
                && site.path.segments.is_empty()
        });
        let is_reached = |site: &FailureSite, operation: Operation| {
            let mut constraints = InputConstraints::default();
            constraints.add(&site.path, Constraint::Absent)?;
            constrain_operation(&mut constraints, operation)?;
            let conditions = site.path_condition.conditions(true);
            let solution = solver::solve(self.evaluator, conditions, constraints);
            (!solution.is_unsat).then_some(())
        };
        let unguarded = sites.filter(|site| {
            operations(site.path.root).any(|operation| is_reached(site, operation).is_some())
        });
        unguarded.map(|site| site.path.root).collect()
    }
}
