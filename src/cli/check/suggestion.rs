//! Suggests declared names that are similar to an unknown name.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::sync::Arc;

use super::field_versions;
use crate::cel::decls::Overload;
use crate::cel::diagnostic::{Candidates, UndefinedField};
use crate::cel::types::{FieldTypes, Type};
use crate::cli::text::is_identifier_part;
use crate::library::environment::base_env;
use crate::policy::RequestPolicy;
use crate::policy::nearest::nearest_of;
use crate::policy::nearest::{is_near, negated};
pub(super) use crate::policy::nearest::{nearest, nearest_joined, nearest_only};
use crate::schema::escape::unescape;
use crate::schema::{Builtin, Gvk};
use crate::version::KubernetesVersion;

/// Maximum number of undeclared fields of a policy for which similar names are suggested.
const MAX_FIELDS: u32 = 200;

/// Searches for names that are similar to undeclared fields. Contains the number of searches that are still allowed.
#[derive(Debug)]
pub(super) struct Suggestions(u32);

impl Default for Suggestions {
    fn default() -> Self {
        Self(MAX_FIELDS)
    }
}

impl Suggestions {
    /// Returns a hint about an undeclared field. Also returns the most similar declared field, unless several fields
    /// are equally similar.
    ///
    /// `variable` is the name of the variable whose expression reads the field, if there is one. Returns `None` if
    /// there is no hint, or after too many calls.
    pub(super) fn advice(
        &mut self,
        policy: &RequestPolicy,
        undefined: &UndefinedField,
        variable: Option<&str>,
    ) -> Option<(String, Option<String>)> {
        match self.field(policy, undefined) {
            // The policy declares a variable of this name, but not before the expression that reads it.
            Some((meant, _))
                if *meant == *undefined.name
                    && matches!(undefined.candidates, Candidates::Elsewhere) =>
            {
                let advice = if variable == Some(&meant) {
                    "a variable cannot read itself".to_owned()
                } else {
                    format!(
                        "`{meant}` is declared too late: move it above the expressions that read it"
                    )
                };
                Some((advice, None))
            }
            Some((meant, is_only)) => {
                let Some(real) = unescape(&meant).filter(|real| *real != *meant) else {
                    let advice = format!("did you mean `{meant}`?");
                    return Some((advice, is_only.then_some(meant)));
                };
                if is_name(&real) {
                    let mut advice = format!("did you mean `{real}`?");
                    // Field names are escaped only in rules of CustomResourceDefinitions, not in policies.
                    if undefined.name.contains("__") || is_misescaped(&undefined.name, &meant) {
                        advice.push_str(" names are not escaped in policies;");
                    }
                    return Some((advice, is_only.then(|| real.into_owned())));
                }
                let advice = format!("write `['{real}']` instead of `.{}`:", undefined.name);
                Some((format!("{advice} names are not escaped in policies;"), None))
            }
            None if self.0 > 0 => {
                negated_variable(policy, undefined).or_else(|| elsewhere(undefined))
            }
            None => None,
        }
    }

    /// Returns a hint about the versions in which the kind `gvk` has the undeclared field. `None` if there are none, or
    /// after too many calls.
    pub(super) fn versions(
        &mut self,
        builtin: &Builtin,
        gvk: &Gvk,
        undefined: &UndefinedField,
    ) -> Option<String> {
        self.0 = self.0.checked_sub(1)?;
        field_versions::hint(builtin, gvk, undefined)
    }

    /// Returns the declared field that is most similar to an undeclared field. Also returns true if no other field is
    /// equally similar.
    ///
    /// Returns `None` if no declared field is similar, or after too many calls.
    pub(super) fn field(
        &mut self,
        policy: &RequestPolicy,
        undefined: &UndefinedField,
    ) -> Option<(String, bool)> {
        self.0 = self.0.checked_sub(1)?;
        let UndefinedField { name, candidates } = undefined;
        match candidates {
            Candidates::Declared(_) | Candidates::Keys(_) => {
                let names = candidates.names();
                let misescaped = names
                    .iter()
                    .copied()
                    .find(|known| is_misescaped(name, known));
                // Reserved words such as `namespace` are declared in escaped form, so names are compared without escape
                // sequences.
                let similar = || {
                    let reals: Vec<_> = names.iter().copied().map(unescaped).collect();
                    let (meant, is_only) = nearest_of(name, reals.iter().map(|it| &**it))?;
                    let declared = names.iter().find(|declared| unescaped(declared) == meant)?;
                    Some((*declared, is_only))
                };
                let near = misescaped.map(|meant| (meant, true)).or_else(similar);
                let near = near.or_else(|| nearest_of(name, names.iter().copied()));
                near.map(|(meant, is_only)| (meant.to_owned(), is_only))
            }
            // The candidates for an undeclared variable are the variables of the policy.
            Candidates::Elsewhere => {
                let variables = policy.variables.iter();
                let names = variables.map(|variable| variable.name.as_str());
                nearest_of(name, names).map(|(meant, is_only)| (meant.to_owned(), is_only))
            }
        }
    }
}

/// Returns the name of a declared field without escape sequences.
fn unescaped(declared: &str) -> Cow<'_, str> {
    unescape(declared).unwrap_or(declared.into())
}

/// Suggests the negation of a variable for an undeclared variable such as `variables.notPrivileged`.
fn negated_variable(
    policy: &RequestPolicy,
    undefined: &UndefinedField,
) -> Option<(String, Option<String>)> {
    matches!(undefined.candidates, Candidates::Elsewhere).then_some(())?;
    let variables = policy.variables.iter();
    let meant = negated(&undefined.name, variables.map(|it| it.name.as_str()))?;
    Some((format!("did you mean `!variables.{meant}`?"), None))
}

/// Minimum length of a name that is completed, in bytes.
const MIN_COMPLETED: usize = 4;

/// Returns the only name that begins with `start` and has at most `n` other bytes, such as `parameterNotFoundAction` for
/// `parameterNotFound`.
pub(super) fn completed<'a>(
    start: &str,
    n: usize,
    names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let mut names = names.filter(|name| {
        let (head, tail) = name.split_at_checked(start.len()).unwrap_or_default();
        head.eq_ignore_ascii_case(start) && tail.len() <= n
    });
    let only = names.next().filter(|_| start.len() >= MIN_COMPLETED)?;
    names.next().is_none().then_some(only)
}

/// The predefined variables of CEL expressions.
pub(super) const NAMES: [&str; 7] = [
    "object",
    "oldObject",
    "request",
    "params",
    "namespaceObject",
    "variables",
    "authorizer",
];

/// Returns the predefined variable that is similar to an undeclared name. `None` if no variable is similar, or several
/// are.
pub(super) fn only_reference(name: &str) -> Option<&'static str> {
    // `newObject` is similar to `oldObject`, but has the opposite meaning.
    if NAMES.contains(&name) || name.starts_with("new") {
        return None;
    }
    nearest_only(name, NAMES.into_iter())
}

/// Returns the only likely meaning of an undeclared function (with `is_call`) or an undeclared variable.
pub(super) fn only_meaning(name: &str, is_call: bool) -> Option<&'static str> {
    if is_call {
        only_function(name)
    } else {
        literal_of_other_languages(name).or_else(|| only_reference(name))
    }
}

/// Returns the function that an undeclared function name probably denotes: the equivalent of a function of another
/// language, if both have the same arguments, or the only function with a similar name.
pub(super) fn only_function(name: &str) -> Option<&'static str> {
    let equivalent = equivalent_function(name);
    equivalent.or_else(|| {
        if function_of_other_languages(name).is_some() {
            return None;
        }
        let names: BTreeSet<&str> = functions().collect();
        let meant = nearest_only(name, names.into_iter()).filter(|meant| *meant != name);
        // Searches for a misspelled name of another language, such as `lenght`.
        let similar = || {
            let names = EQUIVALENTS
                .iter()
                .flat_map(|(names, _)| names.iter().copied());
            let near = nearest_only(name, names.filter(|it| it.len() >= MIN_FUNCTION_NAME))?;
            is_near(&name.to_lowercase(), &near.to_lowercase())
                .then(|| equivalent_function(near))?
        };
        // A short name may be similar to a function name by accident.
        let meant = meant.filter(|meant| {
            name.eq_ignore_ascii_case(meant)
                || name.len() >= MIN_FUNCTION_NAME
                    && is_near(&name.to_lowercase(), &meant.to_lowercase())
                || name.len() >= MIN_LONG_NAME
                || meant
                    .strip_prefix("is")
                    .is_some_and(|rest| rest.eq_ignore_ascii_case(name))
        });
        meant.or_else(|| similar().filter(|_| name.len() >= MIN_FUNCTION_NAME))
    })
}

/// Functions of other languages, by the CEL function that has the same arguments.
const EQUIVALENTS: [(&[&str], &str); 14] = [
    (&["len", "length", "count", "strlen", "charLength"], "size"),
    (
        &[
            "toLower",
            "toLowerCase",
            "lower",
            "lowercase",
            "lcase",
            "downcase",
        ],
        "lowerAscii",
    ),
    (
        &[
            "toUpper",
            "toUpperCase",
            "upper",
            "uppercase",
            "ucase",
            "upcase",
        ],
        "upperAscii",
    ),
    (&["hasPrefix", "startswith", "beginsWith"], "startsWith"),
    (&["hasSuffix", "endswith"], "endsWith"),
    (
        &[
            "match",
            "regex",
            "regexMatch",
            "reMatch",
            "regexpLike",
            "regexpMatches",
        ],
        "matches",
    ),
    (&["includes"], "contains"),
    (&["allow", "isAllowed"], "allowed"),
    (&["strip", "trimSpace"], "trim"),
    (&["any", "some"], "exists"),
    (&["every", "forAll", "forall"], "all"),
    (&["replaceAll"], "replace"),
    (&["compare", "Cmp"], "compareTo"),
    (&["joinToString", "implode"], "join"),
];

/// Returns true for a field that other languages have for the size of a collection.
pub(super) fn is_length(field: &str) -> bool {
    matches!(field, "length" | "len" | "size" | "count" | "Length")
}

/// Returns the CEL function that is equivalent to a function of another language.
fn equivalent_function(name: &str) -> Option<&'static str> {
    let own = normalized(name);
    let mut rows = EQUIVALENTS.iter();
    rows.find(|(names, _)| names.iter().any(|it| normalized(it) == own))
        .map(|(_, meant)| *meant)
}

/// Returns a name of another language in lower case and without `_`.
pub(super) fn normalized(name: &str) -> String {
    name.replace('_', "").to_lowercase()
}

/// Returns true if the function `name` has overloads with `n` arguments, and all of them are member functions. The
/// receiver counts as an argument.
pub(super) fn is_only_member(name: &str, n: usize) -> bool {
    let mut functions = base_env(KubernetesVersion::NEWEST).library().functions();
    let function = functions.find(|function| function.name == name);
    function.is_some_and(|function| {
        let mut overloads = function
            .overloads
            .iter()
            .filter(|it| it.args.len() == n)
            .peekable();
        overloads.peek().is_some() && overloads.all(Overload::is_member)
    })
}

/// Minimum length, in bytes, of a function name that is corrected to the only similar name.
const MIN_FUNCTION_NAME: usize = 5;

/// Minimum length, in bytes, of a function name that is corrected to a name that differs by more than one edit.
const MIN_LONG_NAME: usize = 9;

/// Returns the function that an undeclared function negates, such as `contains` for `notContains`.
pub(super) fn negated_function(name: &str) -> Option<&'static str> {
    negated(name, functions())
}

/// Returns the literal that a name of another language denotes.
pub(super) fn literal_of_other_languages(name: &str) -> Option<&'static str> {
    Some(match name {
        "True" | "TRUE" => "true",
        "False" | "FALSE" => "false",
        "nil" | "Nil" | "None" | "none" | "NULL" | "Null" | "undefined" | "undef" => "null",
        _ => return None,
    })
}

/// Returns the names of all functions and macros.
fn functions() -> impl Iterator<Item = &'static str> {
    let functions = base_env(KubernetesVersion::DEFAULT).library().functions();
    let functions = functions.map(|function| function.name);
    functions
        .filter(|name| name.starts_with(char::is_alphabetic))
        .chain(MACROS)
}

/// Returns a hint about an undeclared function (with `is_call`) or an undeclared variable.
pub(super) fn reference(name: &str, (is_call, is_match_condition): (bool, bool)) -> Option<String> {
    if is_call {
        let advice = function_of_other_languages(name).map(str::to_owned);
        let only = || only_function(name).map(|meant| format!("did you mean `{meant}`?"));
        return advice.or_else(only).or_else(|| {
            // The first of several equally similar names is suggested.
            let names: BTreeSet<&str> = functions().collect();
            let names = names.into_iter().filter(|known| *known != name);
            nearest_joined(name, names).map(|meant| format!("did you mean `{meant}`?"))
        });
    }
    match name {
        "params" => Some("`params` requires a paramKind in the spec".to_owned()),
        "variables" if is_match_condition => {
            Some("matchConditions are evaluated before variables, and cannot read them".to_owned())
        }
        "variables" => Some("the spec declares no variables".to_owned()),
        "authorizer" => Some("a messageExpression cannot use `authorizer`".to_owned()),
        _ if literal_of_other_languages(name).is_some() => {
            literal_of_other_languages(name).map(|literal| format!("write `{literal}`"))
        }
        _ => nearest(name, NAMES.into_iter())
            .filter(|meant| *meant != name)
            .map(|meant| format!("did you mean `{meant}`?")),
    }
}

/// The names of macros, which are not among the declared functions.
const MACROS: [&str; 9] = [
    "all",
    "exists",
    "exists_one",
    "filter",
    "has",
    "map",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// The hints about functions with an equivalent in CEL.
const WRITE_FUNCTION: [(&str, &str); 13] = [
    ("compareTo", "write `compareTo()`"),
    ("size", "write `size()`"),
    ("lowerAscii", "write `lowerAscii()`"),
    ("upperAscii", "write `upperAscii()`"),
    ("startsWith", "write `startsWith()`"),
    ("endsWith", "write `endsWith()`"),
    ("matches", "write `matches()`"),
    ("allowed", "write `allowed()`"),
    ("trim", "write `trim()`"),
    ("exists", "write `exists()`"),
    ("all", "write `all()`"),
    ("replace", "write `replace()`"),
    ("join", "write `join()`"),
];

/// Returns a hint with the CEL equivalent of another language's function.
fn function_of_other_languages(name: &str) -> Option<&'static str> {
    let plain = || {
        let meant = equivalent_function(name).filter(|_| name != "includes")?;
        let mut hints = WRITE_FUNCTION.iter();
        hints
            .find(|(function, _)| *function == meant)
            .map(|(_, hint)| *hint)
    };
    if let Some(hint) = plain() {
        return Some(hint);
    }
    Some(match name {
        "substr" | "slice" => "write `substring()`, with the start and the end",
        "keys" => "a macro such as `all()` or `map()` iterates over the keys of a map",
        "unique" | "distinct" | "set" | "toset" | "Set" => {
            "compare each item, as in `a.all(x, a.exists_one(y, y == x))`"
        }
        "contains_all" | "containsAll" => "write `b.all(x, x in a)`",
        "includes" => "write `contains()` for a substring, or `in` for an item of a list",
        "values" | "items" | "entries" => {
            "a macro such as `all(k, m[k] ...)` iterates over the keys of a map"
        }
        "next" | "find" | "findIndex" | "findLast" => {
            "write `exists()` for a test, or `filter()` for the items"
        }
        "isEmpty" | "empty" => "write `size() == 0`",
        "isNotEmpty" | "notEmpty" | "nonEmpty" => "write `size() > 0`",
        "isNull" | "isNil" | "isNone" => "write `a == null`, or `!has(a.b)` for an absent field",
        "isNotNull" | "notNull" | "isNotNil" => "write `a != null`, or `has(a.b)` for a field",
        "get" => "write `a[?'key'].orValue('')`, with the value to use for an absent key",
        "equalsIgnoreCase" | "equals_ignore_case" | "casefold" => {
            "write `a.lowerAscii() == b.lowerAscii()`"
        }
        "between" => "write `a <= x && x <= b`",
        "reduce" | "fold" | "aggregate" => "write `list.map(x, x.a).sum()` for a sum",
        "forEach" | "foreach" => "write `list.all(x, ...)` to test each item",
        "at" | "pop" | "element" => {
            "write `l[0]` for the first item, or `l[size(l) - 1]` for the last"
        }
        "search" => "write `matches()` for a pattern, or `contains()` for a substring",
        "ANY" | "oneOf" | "one_of" | "anyOf" | "AnyIn" => "write `a in [b, c]`",
        "trimPrefix" | "trimprefix" | "trim_prefix" | "TrimPrefix" | "removeprefix" => {
            "write `a.substring(size(b))` after a test with startsWith()"
        }
        "trimSuffix" | "trimsuffix" | "trim_suffix" | "TrimSuffix" | "removesuffix" => {
            "write `a.substring(0, size(a) - size(b))` after a test with endsWith()"
        }
        "LEFT" | "left" => "write `a.substring(0, n)`",
        "range" => "write `a <= x && x < b`",
        "setintersection" | "intersection" => "write `a.exists(x, x in b)`",
        "now" => "expressions cannot read the current time",
        "base64Decode" | "base64decode" | "b64decode" | "atob" | "base64Encode"
        | "base64encode" | "b64encode" | "btoa" => "expressions cannot encode or decode base64",
        _ => return None,
    })
}

/// Returns true if `name` is an incorrectly escaped form of the field `declared`. For example, `x_dash` is an incorrect
/// form of the field `x-dash`. The correct form is `x__dash__dash`.
fn is_misescaped(name: &str, declared: &str) -> bool {
    let plain = |text: &str| {
        let letters = text.chars().filter(|c| c.is_alphanumeric());
        letters.collect::<String>().to_lowercase()
    };
    unescape(declared).is_some_and(|real| real != declared && plain(&real) == plain(name))
}

/// Returns true if a field of this name can be selected with a dot.
fn is_name(text: &str) -> bool {
    text.chars().all(is_identifier_part)
}

/// Common fields of objects. The search for an undeclared field descends into them.
const PARTS: [&str; 4] = ["spec", "template", "jobTemplate", "metadata"];

/// The top-level fields of most objects.
const ROOT_FIELDS: [&str; 3] = ["metadata", "spec", "status"];

/// Maximum depth of the search for a field.
const MAX_DEPTH: usize = 4;

/// Suggests the path of a nested field with the undeclared name, or the removal of `template.spec` from a path into a
/// Pod. Also returns the path if it is the only one.
fn elsewhere(undefined: &UndefinedField) -> Option<(String, Option<String>)> {
    let UndefinedField {
        name,
        candidates: Candidates::Declared(fields),
    } = undefined
    else {
        return None;
    };
    if fields.field_type("", "containers").is_some()
        && matches!(&**name, "template" | "jobTemplate")
    {
        let advice = "this object itself has the field `containers`: remove `template.spec`";
        return Some((advice.to_owned(), None));
    }
    if &**name == "namespace" && fields.field_type("", "metadata").is_some() {
        let advice = "write `object.metadata.namespace` for the name of the namespace, or `namespaceObject` for its \
                      Namespace";
        return Some((advice.to_owned(), None));
    }
    if let Some(path) = field_of_object(&**fields, name) {
        return Some((format!("did you mean `{path}`?"), Some(path)));
    }
    if let Some(owner) = security_context_with(&**fields, name) {
        let advice = format!("`{name}` is a field of the securityContext of {owner}");
        return Some((advice, None));
    }
    let paths = below(fields, name, MAX_DEPTH);
    let path = paths.first()?;
    // The path may lack a step, or it may have an additional step.
    if ROOT_FIELDS.contains(&&**name) {
        let advice = format!("did you mean `{path}`, or `object.{name}`?");
        return Some((advice, None));
    }
    let only = (paths.len() == 1).then(|| path.clone());
    Some((format!("did you mean `{path}`?"), only))
}

/// Returns the path of a nested field whose object and field name form `name`, such as `service.name` for
/// `serviceName`. `None` if the nested field is an object.
fn field_of_object(fields: &dyn FieldTypes, name: &str) -> Option<String> {
    let names = fields.field_names();
    let mut objects = names.into_iter().filter(|object| {
        let rest = name.strip_prefix(object);
        rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_uppercase()))
    });
    let object = objects.next().filter(|_| objects.next().is_none())?;
    let (first, rest) = name.strip_prefix(object)?.split_at_checked(1)?;
    let field = first.to_ascii_lowercase() + rest;
    let Some(Type::Struct(type_)) = fields.field_type("", object) else {
        return None;
    };
    let nested = type_.fields?.field_type(&type_.name, &field)?;
    (!matches!(nested, Type::Struct(_))).then(|| format!("{object}.{field}"))
}

/// Returns the owner whose securityContext has the field `name`: the Pod or each container. `None` unless `fields` are
/// those of the other owner's securityContext.
///
/// Source: `k8s.io/api` `core/v1/types.go`, `PodSecurityContext`, `SecurityContext`.
fn security_context_with(fields: &dyn FieldTypes, name: &str) -> Option<&'static str> {
    const OF_CONTAINER: [&str; 5] = [
        "allowPrivilegeEscalation",
        "capabilities",
        "privileged",
        "procMount",
        "readOnlyRootFilesystem",
    ];
    const OF_POD: [&str; 6] = [
        "fsGroup",
        "fsGroupChangePolicy",
        "seLinuxChangePolicy",
        "supplementalGroups",
        "supplementalGroupsPolicy",
        "sysctls",
    ];
    let has = |field: &str| fields.field_type("", field).is_some();
    if has("fsGroup") && OF_CONTAINER.contains(&name) {
        return Some("each container");
    }
    (has("privileged") && OF_POD.contains(&name)).then_some("the Pod")
}

/// Returns the least nested paths of the field `name`.
fn below(fields: &Arc<dyn FieldTypes>, name: &str, depth: usize) -> Vec<String> {
    let Some(depth) = depth.checked_sub(1) else {
        return Vec::new();
    };
    let parts = || {
        PARTS
            .iter()
            .filter_map(|part| match fields.field_type("", part)? {
                Type::Struct(type_) => Some((*part, type_.fields?)),
                _ => None,
            })
    };
    // Only declared names count, because the type of `metadata` may allow any field.
    let here = parts().filter(|(_, fields)| fields.field_names().contains(&name));
    let here: Vec<String> = here.map(|(part, _)| format!("{part}.{name}")).collect();
    if !here.is_empty() {
        return here;
    }
    let deeper = parts().flat_map(|(part, fields)| {
        let paths = below(&fields, name, depth).into_iter();
        paths.map(move |path| format!("{part}.{path}"))
    });
    deeper.collect()
}
