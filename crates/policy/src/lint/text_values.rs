//! Finds comparisons of strings with literals that never match. Also finds prefixes and suffixes that match more names
//! than intended.

use std::collections::HashMap;

use cel::ast::{Ast, Expr, ExprId};
use cel::source::SourceMap;

use super::Lint;
use super::path;
use super::positions::{Elements, StringTest, StringTestKind, conditions, string_test};
use super::users::is_widened;
use crate::expressions::PolicyExpression;
use crate::rule::Rule;

/// Maximum length of a literal in a message, in bytes.
const MAX_SHOWN: usize = 80;

/// The fields whose strings are images or names of objects. Such a string never contains a `*`.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/core/validation/validation.go` (`ValidateServiceAccountName`,
/// `ValidateClassName`, `ValidatePriorityClassName`, `ValidateNodeName`); the grammar of images is in
/// `distribution/reference` `reference.go`.
const NAME_FIELDS: [&str; 7] = [
    "image",
    "ingressClassName",
    "nodeName",
    "priorityClassName",
    "runtimeClassName",
    "serviceAccountName",
    "storageClassName",
];

/// The paths of names of namespaces, which are DNS labels.
const NAMESPACES: [&str; 4] = [
    "namespaceObject.metadata.name",
    "object.metadata.namespace",
    "oldObject.metadata.namespace",
    "request.namespace",
];

/// Fields that are maps of quantities.
///
/// Source: `k8s.io/api` `core/v1/types.go` (`ResourceList`).
const QUANTITY_MAPS: [&str; 6] = [
    "allocatable",
    "capacity",
    "defaultRequest",
    "hard",
    "limits",
    "requests",
];

/// The fields whose strings are host names.
const HOST_FIELDS: [&str; 9] = [
    "commonName",
    "dnsNames",
    "domain",
    "domains",
    "externalName",
    "host",
    "hostname",
    "hostnames",
    "hosts",
];

pub(super) fn find(expression: &PolicyExpression, ast: &Ast) -> Vec<Lint> {
    let mut lints = Vec::new();
    let mut context = None;
    for (id, _) in ast.iter() {
        let Some(test) = string_test(ast, id) else {
            continue;
        };
        let (elements, signs) = context.get_or_insert_with(|| {
            let signs = conditions(ast).into_iter();
            let signs: HashMap<usize, bool> = signs.map(|(id, sign)| (id.index(), sign)).collect();
            (Elements::new(ast), signs)
        });
        let field = elements.field(ast, test.subject);
        let is_weaker = is_widened(expression.role, signs.get(&id.index()).copied());
        for (at, text) in &test.literals {
            if text.is_empty() || text.len() > MAX_SHOWN {
                continue;
            }
            let finding = other_case(ast, &test, text)
                .or_else(|| wildcard(ast, &test, field?, text))
                .or_else(|| impossible_end(&test, field?, text))
                .or_else(|| partial_name(&test, field?, text).filter(|_| is_weaker));
            lints.extend(finding.map(|(rule, message, help)| Lint {
                rule,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(*at))),
                message,
                fix: Some(help.into()),
                is_harmless: false,
            }));
        }
    }
    lints
}

/// The rule, the message and the help text of a finding.
type Finding = (Rule, String, String);

/// Finds a comparison of the result of `lowerAscii()` with a literal that contains uppercase letters. Also finds a
/// comparison of the result of `upperAscii()` with a literal that contains lowercase letters.
fn other_case(ast: &Ast, test: &StringTest<'_>, text: &str) -> Option<Finding> {
    let Expr::Call {
        function,
        target: Some(_),
        ..
    } = ast.expr(test.subject)
    else {
        return None;
    };
    let (cased, noun) = match &**function {
        "lowerAscii" => (text.to_ascii_lowercase(), "uppercase letters"),
        "upperAscii" => (text.to_ascii_uppercase(), "lowercase letters"),
        _ => return None,
    };
    (cased != text).then(|| {
        let message = format!(
            "the result of `{function}()` has no {noun}, so {}",
            test.result_of_mismatch(text)
        );
        (Rule::ImpossibleValue, message, format!("write `'{cased}'`"))
    })
}

/// Finds a literal with a wildcard such as `*:latest`, which other policy engines interpret as a pattern.
fn wildcard(ast: &Ast, test: &StringTest<'_>, field: &str, text: &str) -> Option<Finding> {
    // In a custom resource, `*` may denote all images.
    let is_all = text == "*" && NAME_FIELDS.contains(&field);
    if !text.contains('*') || is_all {
        return None;
    }
    let noun = if field == "image" {
        "an image"
    } else if NAME_FIELDS.contains(&field) {
        "a name"
    } else if path::path(ast, test.subject).is_some_and(|it| NAMESPACES.contains(&&*it)) {
        "a namespace"
    } else if is_quantity(ast, test.subject) {
        "a quantity"
    } else {
        return None;
    };
    let result = test.result_of_mismatch(text);
    let message =
        format!("`{text}` is compared literally, and {noun} never contains `*`, so {result}");
    let inner = text.trim_matches(['*', '?']);
    let has_one = !inner.is_empty() && !inner.contains(['*', '?']);
    let help = if has_one && text.ends_with('*') && !text.starts_with(['*', '?']) {
        format!("to test the start, write `startsWith('{inner}')`")
    } else if has_one && text.starts_with('*') && !text.ends_with(['*', '?']) {
        format!("to test the end, write `endsWith('{inner}')`")
    } else if noun == "a quantity" {
        "to require the value, test the key with `in`".to_owned()
    } else {
        "for a pattern, use `matches()`".to_owned()
    };
    Some((Rule::ImpossibleValue, message, help))
}

/// Returns true for an item of a map of quantities.
fn is_quantity(ast: &Ast, mut id: ExprId) -> bool {
    if let Expr::Call {
        function,
        target: Some(target),
        ..
    } = ast.expr(id)
        && &**function == "orValue"
    {
        id = *target;
    }
    let attribute = crate::reads::Attribute::new(ast, id);
    let mut keys = attribute.qualifiers.iter().rev().skip(1);
    let map = keys.next().and_then(|map| map.key.name());
    map.is_some_and(|map| QUANTITY_MAPS.contains(&map))
}

/// Finds a start or an end that the strings of the field never have, such as a host name that starts with a dot.
///
/// Source: `k8s.io/apimachinery` `pkg/util/validation/validation.go`, `IsDNS1123Subdomain`; `distribution/reference`
/// `reference.go`.
fn impossible_end(test: &StringTest<'_>, field: &str, text: &str) -> Option<Finding> {
    let is_host = HOST_FIELDS.contains(&field);
    let noun = match field {
        "image" => "an image",
        _ if is_host => "a host name",
        _ if NAME_FIELDS.contains(&field) || field == "namespace" => "a name",
        _ => return None,
    };
    let (c, verb, other) = match test.kind {
        StringTestKind::StartsWith => (text.chars().next()?, "starts", "endsWith"),
        StringTestKind::EndsWith => (text.chars().last()?, "ends", "startsWith"),
        _ => return None,
    };
    // A host name may end with a dot, but not start with one.
    let is_impossible = match noun {
        "an image" => matches!(c, ':' | '@' | '/' | '.' | '-'),
        "a host name" => c == '-' || c == '.' && test.kind == StringTestKind::StartsWith,
        _ => matches!(c, '-' | '.'),
    };
    is_impossible.then(|| {
        let message = format!("{noun} never {verb} with `{c}`, so this is always false");
        let help = format!("did you mean `{other}('{text}')`?");
        (Rule::ImpossibleValue, message, help)
    })
}

/// Finds a prefix or suffix that also matches names of other domains, because it does not end at a separator.
fn partial_name(test: &StringTest<'_>, field: &str, text: &str) -> Option<Finding> {
    let is_label = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_domain = text.contains('.')
        && text.split('.').all(|label| {
            !label.is_empty() && label.chars().all(is_label) && !label.starts_with('-')
        });
    if !is_domain {
        return None;
    }
    match test.kind {
        StringTestKind::EndsWith if HOST_FIELDS.contains(&field) => Some((
            Rule::PartialName,
            format!("host names of other domains, such as `other{text}`, also end with `{text}`"),
            format!("write `.{text}`, and compare with `'{text}'` to allow the domain itself"),
        )),
        StringTestKind::StartsWith if field == "signerName" => Some((
            Rule::PartialName,
            format!(
                "signers of other domains, such as `{text}.example.org`, also start with `{text}`"
            ),
            format!("write `{text}/`"),
        )),
        _ => None,
    }
}
