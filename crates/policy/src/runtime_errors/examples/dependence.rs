//! Determines the inputs on which the result of a validation depends.

use std::collections::{BTreeSet, HashMap};

use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::reads::{Input, Reads};

/// The inputs that come from the request.
const REQUEST: [Input; 4] = [
    Input::Object,
    Input::OldObject,
    Input::Request,
    Input::NamespaceObject,
];

/// The inputs on which the result of a validation depends. This includes reads in the variables that the validation
/// uses, and reads of the params or the authorizer in match conditions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dependence {
    /// Unknown: a required expression does not compile.
    Broken,
    /// The params or the authorizer, and possibly the request.
    More,
    /// No input. The result is the same for all requests.
    Nothing,
    /// Only the request.
    Request,
}

/// Returns the inputs on which the validation at `index` depends.
#[must_use]
pub fn dependence(policy: &CompiledPolicy, index: usize) -> Dependence {
    let expressions = policy.expressions();
    let by_name: HashMap<&str, usize> = expressions
        .iter()
        .enumerate()
        .filter(|(_, expression)| expression.role == Role::Variable)
        .filter_map(|(n, expression)| Some((expression.name.as_deref()?, n)))
        .collect();
    let conditions = expressions.iter().enumerate();
    let conditions = conditions
        .filter(|(_, expression)| expression.role == Role::MatchCondition)
        .map(|(n, _)| (n, false));
    let mut worklist = vec![(index, true)];
    worklist.extend(conditions);
    let mut seen = BTreeSet::new();
    let (mut has_more, mut has_request) = (false, false);
    while let Some((n, is_of_validation)) = worklist.pop() {
        if !seen.insert(n) {
            continue;
        }
        let ast = expressions
            .get(n)
            .and_then(|expression| expression.parsed().ok());
        let (Some(ast), Some(_)) = (ast, policy.program(n)) else {
            return Dependence::Broken;
        };
        let read = Reads::new(ast);
        has_more |= read.has(&[Input::Params, Input::Authorizer]);
        has_request |= is_of_validation && read.has(&REQUEST);
        let variables = read.variables();
        if variables.may_read_all {
            worklist.extend(
                by_name
                    .values()
                    .map(|variable| (*variable, is_of_validation)),
            );
        }
        let named = variables.names.iter().filter_map(|name| by_name.get(name));
        worklist.extend(named.map(|variable| (*variable, is_of_validation)));
    }
    match (has_more, has_request) {
        (true, _) => Dependence::More,
        (false, true) => Dependence::Request,
        (false, false) => Dependence::Nothing,
    }
}
