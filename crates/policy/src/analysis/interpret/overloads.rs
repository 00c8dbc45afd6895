//! Calls of functions: which overloads take the shapes that the arguments may have at run time.
//!
//! The evaluator looks at the arguments themselves: what is in a list or map is looked at where a signature
//! names the type of the elements, and not where it leaves it open.

use cel::ast::ExprId;
use cel::decls::{Function, Overload};
use cel::diagnostic::DiagnosticKind;
use cel::types::{Type, TypeParam};

use super::expression::Interpreter;
use super::value::{Shape, Value};

/// The most combinations of the shapes of arguments that are tried.
const MAX_COMBINATIONS: usize = 24;

/// One shape for each argument; `None` is one that nothing is known of.
type Combination<'a> = Vec<Option<&'a Shape>>;

/// The values that the type parameters of a signature stand for.
type Bindings = Vec<(&'static str, Value)>;

impl Interpreter<'_> {
    /// The result of `function` for the receiver, if any, and the arguments `values`.
    pub(super) fn apply(
        &mut self,
        id: ExprId,
        function: &Function,
        is_member: bool,
        values: &[Value],
    ) -> Value {
        if values.iter().any(Value::is_never) {
            return self.no_value(id);
        }
        let Some(combinations) = combinations(values) else {
            return Value::unknown();
        };
        let mut result = Value::never();
        let mut unfit: Option<&Combination<'_>> = None;
        let (mut fails, mut n_fit) = (false, 0);
        for (combination, is_weak) in &combinations {
            match result_of(function, is_member, combination) {
                Some(value) => {
                    n_fit += 1;
                    result = result.or(&value);
                }
                None if !is_weak => {
                    if !fails {
                        unfit = Some(combination);
                    }
                    fails = true;
                }
                None => {
                    unfit.get_or_insert(combination);
                }
            }
        }
        if unfit.is_some() && !fails && n_fit > 0 {
            self.outcome.suppressed.push(id);
        } else if let Some(combination) = unfit {
            let types: Vec<Type> = combination
                .iter()
                .map(|shape| shape.map_or(Type::Dyn, Shape::to_type))
                .collect();
            self.report_overload(id, function.name, is_member, types);
        }
        if n_fit == 0 { Value::unknown() } else { result }
    }

    /// Reports that no overload takes arguments of `types`.
    pub(super) fn report_overload(
        &mut self,
        id: ExprId,
        function: &str,
        is_member: bool,
        types: Vec<Type>,
    ) {
        let kind = DiagnosticKind::NoMatchingOverload {
            function: function.into(),
            is_member,
            args: types.into(),
        };
        self.report(id, kind);
    }
}

/// All ways to choose a shape for each value, and whether one of them only stands in for an absent value;
/// `None` if there are too many.
fn combinations(values: &[Value]) -> Option<Vec<(Combination<'_>, bool)>> {
    let mut combinations: Vec<(Combination<'_>, bool)> = vec![(Vec::new(), false)];
    for value in values {
        let choices = value.choices();
        let mut next = Vec::new();
        for (combination, is_weak) in combinations {
            if value.is_unknown() {
                let mut longer = combination.clone();
                longer.push(None);
                next.push((longer, is_weak));
            }
            for choice in choices {
                let mut longer = combination.clone();
                longer.push(Some(&choice.shape));
                let stands_in = choice.is_default || choice.shape.is_null() && choices.len() > 1;
                next.push((longer, is_weak || stands_in));
            }
        }
        if next.len() > MAX_COMBINATIONS {
            return None;
        }
        combinations = next;
    }
    Some(combinations)
}

/// The result for one combination, or `None` if no overload takes it.
fn result_of(function: &Function, is_member: bool, combination: &Combination<'_>) -> Option<Value> {
    let mut result: Option<Value> = None;
    for overload in &function.overloads {
        let Some(value) = result_of_overload(overload, is_member, combination) else {
            continue;
        };
        match &result {
            None => result = Some(value),
            Some(first) if *first == value => {}
            Some(_) => return Some(Value::unknown()),
        }
    }
    result
}

fn result_of_overload(
    overload: &Overload,
    is_member: bool,
    combination: &Combination<'_>,
) -> Option<Value> {
    if overload.is_member() != is_member || overload.args.len() != combination.len() {
        return None;
    }
    let mut bindings = Bindings::new();
    let takes = overload
        .args
        .iter()
        .zip(combination)
        .all(|(param, shape)| match shape {
            Some(shape) => takes(param, shape, &mut bindings),
            None => {
                bind_unknown(param, &mut bindings);
                true
            }
        });
    takes.then(|| instantiate(&overload.result, &bindings))
}

fn bind(bindings: &mut Bindings, name: &'static str, value: Value) {
    match bindings.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = known.or(&value),
        None => bindings.push((name, value)),
    }
}

/// Notes that nothing is known of what the type parameters in `param` stand for.
fn bind_unknown(param: &Type, bindings: &mut Bindings) {
    match param {
        Type::Param(TypeParam::Declared(name)) => bind(bindings, name, Value::unknown()),
        Type::List(elem) => bind_unknown(elem, bindings),
        Type::Map(entry) => {
            bind_unknown(&entry.0, bindings);
            bind_unknown(&entry.1, bindings);
        }
        _ => {
            if let Some(value) = param.optional_value() {
                bind_unknown(value, bindings);
            }
        }
    }
}

/// Reports whether a parameter of type `param` takes a value of the shape.
fn takes(param: &Type, shape: &Shape, bindings: &mut Bindings) -> bool {
    match (param, shape) {
        (Type::Param(TypeParam::Declared(name)), shape) => {
            bind(bindings, name, Value::of(shape.clone()));
            true
        }
        (Type::Dyn | Type::Any | Type::Param(_), _)
        | (Type::Type(_), Shape::Plain(Type::Type(_))) => true,
        (Type::List(elem), Shape::List(value, _)) => takes_value(elem, value, bindings),
        (Type::Map(entry), Shape::Map(value, has_string_keys)) => {
            (!has_string_keys || takes_strings(&entry.0, bindings))
                && takes_value(&entry.1, value, bindings)
        }
        (Type::Map(entry), Shape::Record(entries)) => {
            takes_strings(&entry.0, bindings)
                && entries
                    .iter()
                    .all(|(_, value)| takes_value(&entry.1, value, bindings))
        }
        (Type::Map(entry), Shape::Object(_)) => {
            takes_strings(&entry.0, bindings) && takes_value(&entry.1, &Value::unknown(), bindings)
        }
        (Type::Wrapper(primitive), shape) => {
            shape.is_null() || *shape == Shape::Plain(primitive.unwrapped())
        }
        (Type::Opaque(wanted), Shape::Plain(Type::Opaque(given))) => wanted.name == given.name,
        (param, Shape::Optional(value)) => param
            .optional_value()
            .is_some_and(|param| takes_value(param, value, bindings)),
        (param, Shape::Plain(type_)) => param == type_,
        (Type::Struct(wanted), Shape::Object(object)) => *wanted == object.type_,
        _ => false,
    }
}

fn takes_strings(key: &Type, bindings: &mut Bindings) -> bool {
    takes(key, &Shape::Plain(Type::String), bindings)
}

/// Reports whether a part of type `param` takes all that a value may be.
fn takes_value(param: &Type, value: &Value, bindings: &mut Bindings) -> bool {
    if let Type::Param(TypeParam::Declared(name)) = param {
        bind(bindings, name, value.clone());
        return true;
    }
    if value.is_unknown() || value.is_never() {
        return true;
    }
    let (mut n_taken, mut fails) = (0, false);
    for choice in value.choices() {
        if takes(param, &choice.shape, bindings) {
            n_taken += 1;
        } else {
            fails |= !choice.is_default && !choice.shape.is_null();
        }
    }
    n_taken > 0 && !fails
}

/// The value that a result of type `type_` is.
fn instantiate(type_: &Type, bindings: &Bindings) -> Value {
    match type_ {
        Type::Param(TypeParam::Declared(name)) => bindings
            .iter()
            .find(|(known, _)| known == name)
            .map_or_else(Value::unknown, |(_, value)| value.clone()),
        Type::List(elem) => Value::list(instantiate(elem, bindings)),
        Type::Map(entry) => {
            let key = instantiate(&entry.0, bindings);
            let has_string_keys =
                matches!(key.choices(), [only] if only.shape == Shape::Plain(Type::String));
            Value::map(instantiate(&entry.1, bindings), has_string_keys)
        }
        _ => match type_.optional_value() {
            Some(value) => Value::optional(instantiate(value, bindings).with_constant(None)),
            None => Value::from_type(type_),
        },
    }
}
