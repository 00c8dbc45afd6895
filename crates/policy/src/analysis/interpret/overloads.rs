//! Resolves overloads by the possible run-time types of the arguments.
//!
//! As in the evaluator, the element types of a list or map are compared only if the signature specifies them.

use cel::ast::ExprId;
use cel::decls::{Function, Overload};
use cel::diagnostic::DiagnosticKind;
use cel::types::{Type, TypeParam};

use super::expression::Interpreter;
use super::value::{AbstractType, AbstractValue};

/// Maximum number of combinations of argument types. With more combinations, the result is unknown.
const MAX_COMBINATIONS: usize = 24;

/// One alternative of each argument's type. `None` if the type of the argument is unknown.
type Combination<'a> = Vec<Option<&'a AbstractType>>;

/// The values of the type parameters of a signature, by name.
type Bindings = Vec<(&'static str, AbstractValue)>;

impl Interpreter<'_> {
    /// Returns the result of `function` for the arguments `values`. If `is_member`, the first argument is the receiver.
    pub(super) fn apply(
        &mut self,
        id: ExprId,
        function: &Function,
        is_member: bool,
        values: &[AbstractValue],
    ) -> AbstractValue {
        if values.iter().any(AbstractValue::is_bottom) {
            return self.no_value(id);
        }
        let Some(combinations) = combinations(values) else {
            return AbstractValue::top();
        };
        let mut result = AbstractValue::bottom();
        let mut unfit: Option<&Combination<'_>> = None;
        let (mut fails, mut n_fit) = (false, 0);
        for (combination, is_weak) in &combinations {
            match result_of(function, is_member, combination) {
                Some(value) => {
                    n_fit += 1;
                    result = result.join(&value);
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
                .map(|shape| shape.map_or(Type::Dyn, AbstractType::to_type))
                .collect();
            self.report_overload(id, function.name, is_member, types);
        }
        if n_fit == 0 {
            AbstractValue::top()
        } else {
            result
        }
    }

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

/// Returns all combinations of the arguments' alternatives, each with a flag. The flag is true if the combination
/// contains a default, or contains null from an argument that has other alternatives. `None` if there are too many
/// combinations.
fn combinations(values: &[AbstractValue]) -> Option<Vec<(Combination<'_>, bool)>> {
    let mut combinations: Vec<(Combination<'_>, bool)> = vec![(Vec::new(), false)];
    for value in values {
        let alternatives = value.alternatives();
        let mut next = Vec::new();
        for (combination, is_weak) in combinations {
            if value.is_top() {
                let mut longer = combination.clone();
                longer.push(None);
                next.push((longer, is_weak));
            }
            for alternative in alternatives {
                let mut longer = combination.clone();
                longer.push(Some(&alternative.shape));
                let stands_in =
                    alternative.is_default || alternative.shape.is_null() && alternatives.len() > 1;
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

/// Returns the result of `function` for one combination of argument types. `None` if no overload accepts the
/// combination.
fn result_of(
    function: &Function,
    is_member: bool,
    combination: &Combination<'_>,
) -> Option<AbstractValue> {
    let mut result: Option<AbstractValue> = None;
    for overload in &function.overloads {
        let Some(value) = result_of_overload(overload, is_member, combination) else {
            continue;
        };
        match &result {
            None => result = Some(value),
            Some(first) if *first == value => {}
            Some(_) => return Some(AbstractValue::top()),
        }
    }
    result
}

fn result_of_overload(
    overload: &Overload,
    is_member: bool,
    combination: &Combination<'_>,
) -> Option<AbstractValue> {
    if overload.is_member() != is_member || overload.args.len() != combination.len() {
        return None;
    }
    let mut bindings = Bindings::new();
    let accepts = overload
        .args
        .iter()
        .zip(combination)
        .all(|(param, shape)| match shape {
            Some(shape) => accepts(param, shape, &mut bindings),
            None => {
                bind_unknown(param, &mut bindings);
                true
            }
        });
    accepts.then(|| instantiate(&overload.result, &bindings))
}

fn bind(bindings: &mut Bindings, name: &'static str, value: AbstractValue) {
    match bindings.iter_mut().find(|(known, _)| *known == name) {
        Some((_, known)) => *known = known.join(&value),
        None => bindings.push((name, value)),
    }
}

/// Binds the type parameters in `param` to unknown values.
fn bind_unknown(param: &Type, bindings: &mut Bindings) {
    match param {
        Type::Param(TypeParam::Declared(name)) => bind(bindings, name, AbstractValue::top()),
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

/// Returns true if a parameter of the type `param` accepts a value of the type `shape`. Binds the type parameters in
/// `param`.
fn accepts(param: &Type, shape: &AbstractType, bindings: &mut Bindings) -> bool {
    match (param, shape) {
        (Type::Param(TypeParam::Declared(name)), shape) => {
            bind(bindings, name, AbstractValue::new(shape.clone()));
            true
        }
        (Type::Dyn | Type::Any | Type::Param(_), _)
        | (Type::Type(_), AbstractType::Plain(Type::Type(_))) => true,
        (Type::List(elem), AbstractType::List(value, _)) => accepts_value(elem, value, bindings),
        (Type::Map(entry), AbstractType::Map(value, has_string_keys)) => {
            (!has_string_keys || accepts_strings(&entry.0, bindings))
                && accepts_value(&entry.1, value, bindings)
        }
        (Type::Map(entry), AbstractType::Record(entries)) => {
            accepts_strings(&entry.0, bindings)
                && entries
                    .iter()
                    .all(|(_, value)| accepts_value(&entry.1, value, bindings))
        }
        (Type::Map(entry), AbstractType::Object(_)) => {
            accepts_strings(&entry.0, bindings)
                && accepts_value(&entry.1, &AbstractValue::top(), bindings)
        }
        (Type::Wrapper(primitive), shape) => {
            shape.is_null() || *shape == AbstractType::Plain(primitive.unwrapped())
        }
        (Type::Opaque(wanted), AbstractType::Plain(Type::Opaque(given))) => {
            wanted.name == given.name
        }
        (param, AbstractType::Optional(value)) => param
            .optional_value()
            .is_some_and(|param| accepts_value(param, value, bindings)),
        (param, AbstractType::Plain(type_)) => param == type_,
        (Type::Struct(wanted), AbstractType::Object(object)) => *wanted == object.type_,
        _ => false,
    }
}

fn accepts_strings(key: &Type, bindings: &mut Bindings) -> bool {
    accepts(key, &AbstractType::Plain(Type::String), bindings)
}

/// Returns true if the element type `param` accepts all alternatives of `value` other than defaults and null.
fn accepts_value(param: &Type, value: &AbstractValue, bindings: &mut Bindings) -> bool {
    if let Type::Param(TypeParam::Declared(name)) = param {
        bind(bindings, name, value.clone());
        return true;
    }
    if value.is_top() || value.is_bottom() {
        return true;
    }
    let (mut n_taken, mut fails) = (0, false);
    for alternative in value.alternatives() {
        if accepts(param, &alternative.shape, bindings) {
            n_taken += 1;
        } else {
            fails |= !alternative.is_default && !alternative.shape.is_null();
        }
    }
    n_taken > 0 && !fails
}

/// Returns the abstract value for the declared result type `type_`.
fn instantiate(type_: &Type, bindings: &Bindings) -> AbstractValue {
    match type_ {
        Type::Param(TypeParam::Declared(name)) => bindings
            .iter()
            .find(|(known, _)| known == name)
            .map_or_else(AbstractValue::top, |(_, value)| value.clone()),
        Type::Dyn => AbstractValue::top(),
        Type::List(elem) => AbstractValue::list(instantiate(elem, bindings)),
        Type::Map(entry) => {
            let key = instantiate(&entry.0, bindings);
            let has_string_keys = matches!(key.alternatives(), [only] if only.shape == AbstractType::Plain(Type::String));
            AbstractValue::map(instantiate(&entry.1, bindings), has_string_keys)
        }
        _ => match type_.optional_value() {
            Some(value) => {
                AbstractValue::optional(instantiate(value, bindings).with_constant(None))
            }
            None => AbstractValue::from_type(type_),
        },
    }
}
