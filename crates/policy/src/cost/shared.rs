//! Costs shared by several kinds: an expression has the same cost for all kinds with the same types in the fields that
//! it reads. Examples are the pod templates of workloads, and the metadata of all kinds.

use std::collections::HashMap;
use std::sync::Arc;

use super::Costs;
use crate::reads::{Input, Reads};
use cel::ast::Ast;
use kubernetes::schema::DeclType;
use kubernetes::schema::escape::escape;

/// A part of a kind's objects, or a variable, that an expression reads.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Part {
    /// A part of `object` or `oldObject`: its type, and its depth. The types below it follow from that type.
    Object(TypeId, usize),
    /// A variable. Variables with the same number have equal values. `None` if there is no such variable.
    Variable(Option<usize>),
}

/// A type compared by identity.
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

/// The parts of a kind that an expression reads, in source order. If they are equal for two kinds, the types in the
/// expression are equal, except for the names of objects, and so are the costs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Parts(Vec<Part>);

/// The costs of an expression, and the number of nodes visited to estimate them.
#[derive(Clone, Copy, Debug)]
pub(super) struct ExpressionEstimate {
    /// `None` if the expression does not compile.
    pub(super) costs: Option<Costs>,
    pub(super) n_visits: usize,
}

/// The costs of the expressions of a policy for the kinds so far, by the index of the expression.
#[derive(Debug, Default)]
pub(super) struct SharedCosts {
    estimates: HashMap<(usize, Parts), ExpressionEstimate>,
    /// The numbers of the variables, by index.
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

    /// Returns the number of the variable at `n`, which reads `parts`. A new number if the parts are unknown.
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

/// Returns the parts that `ast` reads of objects of the type `object`, and of `variables`, by number. `None` if they
/// are unknown.
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
            // Without a selection, all variables are read.
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

/// Returns the type of the field `name` if its escaped and unescaped names are equal.
fn part<'a>(type_: &'a DeclType, name: &str) -> Option<&'a Arc<DeclType>> {
    let is_plain = escape(name).is_some_and(|escaped| escaped == name);
    let field = type_.field(name).filter(|field| *field.name == *name)?;
    is_plain.then_some(&field.type_)
}
