//! Costs that kinds share: an expression costs the same for all kinds whose objects have the same types where it
//! reads them, as the workloads have with their templates of pods and all kinds with their metadata.
//!
//! Takes an expression and the type of a kind; knows nothing of how costs are estimated.

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
    /// A part of `object` or `oldObject`: its type, behind so many fields. What is behind that follows from the type.
    Object(TypeId, usize),
    /// A variable: those of one number have equal values; `None` where there is none.
    Variable(Option<usize>),
}

/// A type, told apart from others by its identity.
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

/// All that an expression reads of a kind, in the order of its parts. Of kinds for which this is equal the expression
/// has the same types, but for the names of objects, and the same costs.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Parts(Vec<Part>);

/// The costs of an expression, and how many visits of nodes the estimates for objects of several sizes took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Estimated {
    /// Nothing where the expression does not check.
    pub(super) costs: Option<Costs>,
    pub(super) n_visits: usize,
}

/// The costs of the expressions of a policy for the kinds so far, by their indices.
#[derive(Debug, Default)]
pub(super) struct SharedCosts {
    known: HashMap<(usize, Parts), Estimated>,
    /// The numbers of the variables, by their indices.
    variables: HashMap<(usize, Parts), usize>,
    n_variables: usize,
}

impl SharedCosts {
    pub(super) fn get(&self, n: usize, parts: Option<&Parts>) -> Option<Estimated> {
        self.known.get(&(n, parts?.clone())).copied()
    }

    pub(super) fn add(&mut self, n: usize, parts: Option<Parts>, estimated: Estimated) {
        if let Some(parts) = parts {
            self.known.insert((n, parts), estimated);
        }
    }

    /// The number of the variable at `n`, which reads `parts`; one of its own where these are not known.
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

/// The parts that `ast` reads of objects of the type `object` and of `variables`, by their numbers; nothing where that
/// cannot be told.
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
            // As a whole it has all variables.
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

/// The type of the field `name`, where all that look for it find the same.
fn part<'a>(type_: &'a DeclType, name: &str) -> Option<&'a Arc<DeclType>> {
    let is_plain = escape(name).is_some_and(|escaped| escaped == name);
    let field = type_.field(name).filter(|field| *field.name == *name)?;
    is_plain.then_some(&field.type_)
}
