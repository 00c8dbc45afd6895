//! The functions and macros of an environment, with their signatures.

use crate::cel::checker::accepts_receiver;
use crate::cel::decls::{Function, Overload};
use crate::cel::env::Env;
use crate::cel::types::Type;

/// A macro.
pub(super) struct Macro {
    pub(super) name: &'static str,
    pub(super) receiver: Receiver,
    pub(super) params: &'static [&'static str],
    pub(super) result: &'static str,
    pub(super) summary: &'static str,
}

/// The values on which a macro can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Receiver {
    None,
    /// A list or a map.
    Collection,
    List,
    Optional,
}

const fn collection_macro(
    name: &'static str,
    params: &'static [&'static str],
    result: &'static str,
    summary: &'static str,
) -> Macro {
    Macro {
        name,
        receiver: Receiver::Collection,
        params,
        result,
        summary,
    }
}

/// The macros of the API server.
///
/// Source: cel-go `parser/macro.go`, `cel/library.go`, `ext/comprehensions.go`, `ext/lists.go`.
pub(super) const MACROS: &[Macro] = &[
    Macro {
        name: "has",
        receiver: Receiver::None,
        params: &["field"],
        result: "bool",
        summary: "True if the object has the field, as in `has(object.spec.replicas)`.",
    },
    collection_macro(
        "all",
        &["x", "condition"],
        "bool",
        "True if the condition is true for all elements of the list or keys of the map.",
    ),
    collection_macro(
        "exists",
        &["x", "condition"],
        "bool",
        "True if the condition is true for at least one element of the list or key of the map.",
    ),
    collection_macro(
        "exists_one",
        &["x", "condition"],
        "bool",
        "True if the condition is true for exactly one element of the list or key of the map.",
    ),
    collection_macro(
        "filter",
        &["x", "condition"],
        "list",
        "The elements of the list or keys of the map for which the condition is true.",
    ),
    collection_macro(
        "map",
        &["x", "value"],
        "list",
        "A list with one value for each element of the list, or for each key of the map.",
    ),
    collection_macro(
        "transformList",
        &["k", "v", "value"],
        "list",
        "A list with the value for each element of the list or entry of the map; `k` is the index or key.",
    ),
    collection_macro(
        "transformMap",
        &["k", "v", "value"],
        "map",
        "A map with a value for each element of the list or entry of the map. The key of the value is the index of \
         the element or the key of the entry.",
    ),
    collection_macro(
        "transformMapEntry",
        &["k", "v", "entry"],
        "map",
        "A map with a new entry for each element of the list or entry of the map, such as `{v: k}`.",
    ),
    Macro {
        name: "sortBy",
        receiver: Receiver::List,
        params: &["x", "key"],
        result: "list",
        summary: "The list, sorted by the key of each element.",
    },
    Macro {
        name: "optMap",
        receiver: Receiver::Optional,
        params: &["x", "value"],
        result: "optional_type",
        summary: "If the optional has content `x`, an optional with the value of the second argument; otherwise an empty optional.",
    },
    Macro {
        name: "optFlatMap",
        receiver: Receiver::Optional,
        params: &["x", "optional"],
        result: "optional_type",
        summary: "If the optional has content `x`, the optional that the second argument returns; otherwise an empty optional.",
    },
];

impl Macro {
    /// Returns true if a value of the type can be the receiver.
    pub(super) fn accepts(&self, receiver: &Type) -> bool {
        let is_dyn = receiver.is_dyn();
        match self.receiver {
            Receiver::None => false,
            Receiver::Collection => is_dyn || matches!(receiver, Type::List(_) | Type::Map(_)),
            Receiver::List => is_dyn || matches!(receiver, Type::List(_)),
            Receiver::Optional => is_dyn || receiver.optional_value().is_some(),
        }
    }

    /// Returns the signature, such as `list.all(x, condition) -> bool`.
    pub(super) fn signature(&self) -> String {
        let receiver = match self.receiver {
            Receiver::None => "",
            Receiver::Collection => "collection.",
            Receiver::List => "list.",
            Receiver::Optional => "optional.",
        };
        let params = self.params.join(", ");
        format!("{receiver}{}({params}) -> {}", self.name, self.result)
    }
}

/// A signature, and the ranges of its parameters in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Signature {
    pub(super) label: String,
    pub(super) params: Vec<std::ops::Range<usize>>,
}

/// Returns the signature of an overload, such as `string.startsWith(string) -> bool`.
pub(super) fn signature(overload: &Overload) -> Signature {
    let mut args = overload.args.iter();
    let mut label = String::new();
    if overload.is_member()
        && let Some(receiver) = args.next()
    {
        label.extend([&receiver.to_string(), "."]);
    }
    label.push_str(overload.row.function);
    label.push('(');
    let mut params = Vec::new();
    for arg in args {
        if !params.is_empty() {
            label.push_str(", ");
        }
        let start = label.len();
        label.push_str(&arg.to_string());
        params.push(start..label.len());
    }
    label.extend([") -> ", &overload.result.to_string()]);
    Signature { label, params }
}

/// Returns true for a function that is called by its name, unlike an operator.
fn is_named(function: &Function) -> bool {
    function.name.starts_with(|c: char| c.is_ascii_alphabetic())
}

/// Returns the functions with a receiver of this type, sorted by name, with the overloads that accept it.
pub(super) fn members<'a>(env: &'a Env, receiver: &Type) -> Vec<(&'a str, Vec<&'a Overload>)> {
    let functions = env
        .library()
        .functions()
        .filter(|function| is_named(function));
    let of_receiver = functions.filter_map(|function| {
        let overloads = function.overloads.iter();
        let overloads = overloads
            .filter(|overload| overload.is_member() && accepts_receiver(overload, receiver));
        let overloads: Vec<_> = overloads.collect();
        (!overloads.is_empty()).then_some((function.name, overloads))
    });
    sorted(of_receiver.collect())
}

/// Returns the functions without a receiver, sorted by name.
pub(super) fn globals(env: &Env) -> Vec<(&str, Vec<&Overload>)> {
    let functions = env
        .library()
        .functions()
        .filter(|function| is_named(function));
    let globals = functions.filter_map(|function| {
        let overloads = function.overloads.iter();
        let overloads: Vec<_> = overloads.filter(|overload| !overload.is_member()).collect();
        (!overloads.is_empty()).then_some((function.name, overloads))
    });
    sorted(globals.collect())
}

fn sorted<'a>(
    mut functions: Vec<(&'a str, Vec<&'a Overload>)>,
) -> Vec<(&'a str, Vec<&'a Overload>)> {
    functions.sort_by_key(|(name, _)| *name);
    functions
}
