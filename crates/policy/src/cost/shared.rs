//! Shares costs between kinds. An expression has the same cost for two kinds if the fields that it reads have the same
//! types. Examples are metadata, and the pod templates of workloads.

use std::collections::HashMap;
use std::sync::Arc;

use super::Costs;
use crate::reads::{Input, Reads};
use cel::ast::Ast;
use kubernetes::schema::DeclType;
use kubernetes::schema::escape::escape;

/// An input of an expression: a part of an object, or a variable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// A part of `object` or `oldObject`: its type and its depth. The type also determines the types of all nested
    /// values.
    Object(TypeId, usize),
    /// A variable, by its number. Variables with the same number have the same value. `None` if the variable does not
    /// exist.
    Variable(Option<usize>),
}

/// A type, compared by the address of its allocation.
#[derive(Clone, Debug)]
struct TypeId(Arc<DeclType>);

impl PartialEq for TypeId {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TypeId {}

impl std::hash::Hash for TypeId {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

/// The inputs of an expression, in source order. If they are equal for two kinds, all nodes of the expression have the
/// same types, except for the names of object types. The costs are then equal.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Parts(Vec<Part>);

/// The costs of an expression, and the number of nodes that the estimate visited.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpressionEstimate {
    /// `None` if the expression does not compile.
    pub(super) costs: Option<Costs>,
    pub(super) n_visits: usize,
}

/// The costs for earlier kinds, by the index of the expression and its inputs.
#[derive(Debug, Default)]
pub(super) struct SharedCosts {
    estimates: HashMap<(usize, Parts), ExpressionEstimate>,
    /// The numbers of variables, by the index of the variable's expression and its inputs.
    variables: HashMap<(usize, Parts), usize>,
    n_variables: usize,
}

impl SharedCosts {
    pub(super) fn get(&self, n: usize, parts: Option<&Parts>) -> Option<ExpressionEstimate> {
        self.estimates.get(&(n, parts?.clone())).copied()
    }

    pub(super) fn add(&mut self, n: usize, parts: Option<Parts>, estimated: ExpressionEstimate) {
        if let Some(parts) = parts {
            self.estimates.insert((n, parts), estimated);
        }
    }

    /// Returns the number of the variable with the index `n` and the inputs `parts`. If the inputs are unknown, the
    /// number is a new one.
    pub(super) fn variable(&mut self, n: usize, parts: Option<&Parts>) -> usize {
        let next = self.n_variables;
        let number = match parts {
            Some(parts) => *self.variables.entry((n, parts.clone())).or_insert(next),
            None => next,
        };
        if number == next {
            self.n_variables += 1;
        }
        number
    }
}

/// Returns the inputs of `ast`: parts of objects of the type `object`, and variables. `variables` contains the numbers
/// of the variables. `None` if the expression may have other inputs.
pub(super) fn parts(
    ast: &Ast,
    object: &Arc<DeclType>,
    variables: &HashMap<&str, usize>,
) -> Option<Parts> {
    let reads = Reads::new(ast);
    let parts = reads.attributes().filter_map(|(input, attribute)| {
        let mut fields = attribute.fields();
        match input {
            Input::Object | Input::OldObject => {
                let mut type_ = object;
                let mut n_fields = 0;
                while let Some(next) = fields.next().and_then(|name| part(type_, name)) {
                    type_ = next;
                    n_fields += 1;
                }
                Some(Some(Part::Object(TypeId(Arc::clone(type_)), n_fields)))
            }
            // Without a selection from `variables`, the expression may read all variables.
            Input::Variables => Some(
                fields
                    .next()
                    .map(|name| Part::Variable(variables.get(name).copied())),
            ),
            _ => None,
        }
    });
    parts.collect::<Option<Vec<Part>>>().map(Parts)
}

/// Returns the type of the field `name`. `None` if there is no such field, or if CEL escapes its name.
fn part<'a>(type_: &'a DeclType, name: &str) -> Option<&'a Arc<DeclType>> {
    let is_plain = escape(name).is_some_and(|escaped| escaped == name);
    let field = type_.field(name).filter(|field| *field.name == *name)?;
    is_plain.then_some(&field.type_)
}
