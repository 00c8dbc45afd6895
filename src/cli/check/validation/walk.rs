//! Checks a document against the constraints in [`super::table`]. As in Go, a null field counts as absent, and a null
//! item of a list as the empty value of its type.

use std::collections::BTreeSet;

use goyaml::Node;

use super::Violations;
use super::syntax::{Form, is_placeholder, is_template};
use super::table::{Constraint, Row};
use crate::cli::check::suggestion::{completed, nearest, nearest_only};
use crate::policy::rule::Rule;

/// The fields that are structs in Go, and are therefore present even if a document omits them.
const ALWAYS: [&str; 2] = ["metadata", "spec"];

/// Maximum length of a value in a message, in characters.
const MAX_SHOWN: usize = 80;

/// A field of a document.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot<'a> {
    /// The path of the field, such as `spec.validations[0].message`.
    pub(super) field_ref: &'a str,
    /// The value. `None` if it is absent.
    pub(super) node: Option<&'a Node>,
    pub(super) root: &'a Node,
}

impl<'a> Spot<'a> {
    pub(super) fn get(&self, name: &str) -> Option<&'a Node> {
        present(self.node?.get(name))
    }

    pub(super) fn items(&self) -> &'a [Node] {
        self.node.map_or(&[], Node::items)
    }

    /// Returns the path of the list and the index of the item if the field is an item of a list.
    fn position(&self) -> Option<(&'a str, usize)> {
        let (list, n) = self.field_ref.strip_suffix(']')?.rsplit_once('[')?;
        Some((list, n.parse().ok()?))
    }

    /// Returns the string value, or the empty string.
    pub(super) fn text(&self) -> &'a str {
        text(self.node)
    }
}

/// Returns the value unless it is null.
pub(super) fn present(node: Option<&Node>) -> Option<&Node> {
    node.filter(|node| !node.is_null())
}

/// Returns the string of a value, or the empty string.
pub(super) fn text(node: Option<&Node>) -> &str {
    node.and_then(Node::as_str).unwrap_or_default()
}

/// Quotes and shortens a value for a message.
pub(super) fn quoted(text: &str) -> String {
    let mut chars = text.chars();
    let shown: String = chars.by_ref().take(MAX_SHOWN).collect();
    let rest = if chars.next().is_some() { "…" } else { "" };
    let lines: Vec<&str> = shown.lines().collect();
    format!("`{}{rest}`", lines.join(" "))
}

/// Adds a violation for each constraint in `rows` that a document does not satisfy.
pub(super) fn walk(root: &Node, rows: &[Row], violations: &mut Violations) {
    self::rows(root, Some(root), "", rows, violations);
}

fn rows(root: &Node, node: Option<&Node>, path: &str, rows: &[Row], violations: &mut Violations) {
    for row in rows {
        each(root, node, path, row.field, &mut |spot| {
            check(&spot, row.constraint, violations);
        });
    }
}

/// Calls `visit` for each field at the path `rest` below `node`.
fn each<'a>(
    root: &'a Node,
    node: Option<&'a Node>,
    path: &str,
    rest: &str,
    visit: &mut dyn FnMut(Spot<'_>),
) {
    if rest.is_empty() {
        visit(Spot {
            field_ref: path,
            node,
            root,
        });
        return;
    }
    let (name, rest) = rest.split_once('.').unwrap_or((rest, ""));
    let (name, is_list) = match name.strip_suffix("[]") {
        Some(name) => (name, true),
        None => (name, false),
    };
    let child = present(node.and_then(|node| node.get(name)));
    let path = if path.is_empty() {
        name.to_owned()
    } else {
        format!("{path}.{name}")
    };
    if is_list {
        for (n, item) in child.map_or(&[][..], Node::items).iter().enumerate() {
            let item = present(Some(item));
            each(root, item, &format!("{path}[{n}]"), rest, visit);
        }
    } else if child.is_some() || rest.is_empty() || ALWAYS.contains(&path.as_str()) {
        each(root, child, &path, rest, visit);
    }
}

fn check(spot: &Spot<'_>, constraint: Constraint, violations: &mut Violations) {
    match constraint {
        Constraint::Required(advice) => {
            if is_empty(spot.node) {
                let message = format!("`{}` is required", spot.field_ref);
                let advice = Some(advice.to_owned());
                violations.add(Rule::Required, spot.field_ref, message, advice);
            }
        }
        Constraint::NotBlank => {
            let text = spot.text();
            if !text.is_empty() && text.trim().is_empty() {
                let message = format!("`{}` must not be blank", spot.field_ref);
                let advice = Some("set a value, or remove the field".to_owned());
                violations.add(Rule::InvalidValue, spot.field_ref, message, advice);
            }
        }
        Constraint::OneLine => {
            if spot.text().trim().contains(['\n', '\r']) {
                let message = format!("`{}` must not contain line breaks", spot.field_ref);
                let advice =
                    Some("write the value on one line, or as a YAML block with `>-`".to_owned());
                violations.add(Rule::InvalidValue, spot.field_ref, message, advice);
            }
        }
        Constraint::OneOf(allowed) => one_of(spot, allowed, violations),
        Constraint::Form(of) => {
            if !spot.text().is_empty() {
                form(spot, of, violations);
            }
        }
        Constraint::NonEmptyForm(of) => form(spot, of, violations),
        Constraint::AtMost(max) => {
            let n = spot.items().len();
            if n > max {
                let message = format!(
                    "`{}` must have at most {max} items, but has {n}",
                    spot.field_ref
                );
                violations.add(Rule::TooLarge, spot.field_ref, message, None);
            }
        }
        Constraint::AtMostBytes(max) => {
            let n = spot.text().trim().len();
            if n > max {
                let message = format!(
                    "`{}` must have at most {max} bytes, but has {n}",
                    spot.field_ref
                );
                let advice = Some("move a part of the expression to `spec.variables`".to_owned());
                violations.add(Rule::TooLarge, spot.field_ref, message, advice);
            }
        }
        Constraint::Distinct => distinct(spot, None, violations),
        Constraint::DistinctBy(field) => distinct(spot, Some(field), violations),
        Constraint::Alone(wildcard) => {
            let items = spot.items();
            if items.len() > 1 && items.iter().any(|item| item.as_str() == Some(wildcard)) {
                let message = format!(
                    "`{}` contains `{wildcard}`, so it must not contain other items",
                    spot.field_ref
                );
                let advice = Some(format!("remove `{wildcard}`, or all other items"));
                violations.add(Rule::InvalidValue, spot.field_ref, message, advice);
            }
        }
        Constraint::Rows(rows) => {
            let is_there = spot.node.is_some()
                || ALWAYS.contains(&spot.field_ref)
                || spot.field_ref.ends_with(']');
            if is_there {
                self::rows(spot.root, spot.node, spot.field_ref, rows, violations);
            }
        }
        Constraint::Special(test) => test(spot, violations),
    }
}

/// Returns true if a required field is absent or empty.
fn is_empty(node: Option<&Node>) -> bool {
    use goyaml::Data;
    match node.map(|node| &node.data) {
        None => true,
        Some(Data::Scalar(value, _)) => value.as_str().is_some_and(str::is_empty),
        Some(Data::List(items)) => items.is_empty(),
        Some(Data::Map(_)) => false,
    }
}

/// Values of other policy engines, each with the value of Kubernetes.
const SYNONYMS: [(&str, &str); 29] = [
    ("ALL", "*"),
    ("ANY", "*"),
    ("PATCH", "UPDATE"),
    ("MODIFY", "UPDATE"),
    ("INSERT", "CREATE"),
    ("ADD", "CREATE"),
    ("POST", "CREATE"),
    ("REMOVE", "DELETE"),
    ("Always", "IfNeeded"),
    ("Apply", "ApplyConfiguration"),
    ("ServerSideApply", "ApplyConfiguration"),
    ("Enforce", "Deny"),
    ("Enforce", "Fail"),
    ("Block", "Deny"),
    ("Block", "Fail"),
    ("Deny", "Fail"),
    ("Reject", "Deny"),
    ("DryRun", "Audit"),
    ("=", "In"),
    ("==", "In"),
    ("Equals", "In"),
    ("!=", "NotIn"),
    ("NotEquals", "NotIn"),
    ("NotExists", "DoesNotExist"),
    ("Denied", "Forbidden"),
    ("Deny", "Forbidden"),
    ("NotAllowed", "Forbidden"),
    ("BadRequest", "Invalid"),
    ("TooLarge", "RequestEntityTooLarge"),
];

/// Adds a violation unless the string is one of `allowed`. A null item counts as an empty string, which is not allowed.
fn one_of(spot: &Spot<'_>, allowed: &[&str], violations: &mut Violations) {
    let is_item = spot.field_ref.ends_with(']');
    let text = match spot.node {
        None if !is_item => return,
        node => text(node),
    };
    // An empty required field already has a violation. A value that is not a string has a finding from decoding.
    let is_other = spot.node.is_some_and(|node| node.as_str().is_none());
    if allowed.contains(&text) || is_other || violations.has(spot.field_ref) {
        return;
    }
    let message = format!(
        "`{}` is {}, but must be one of {}",
        spot.field_ref,
        if text.is_empty() {
            "empty".to_owned()
        } else {
            quoted(text)
        },
        allowed.join(", ")
    );
    let parts: Vec<&str> = text.split([',', ' ']).filter(|it| !it.is_empty()).collect();
    if is_item
        && parts.len() > 1
        && parts
            .iter()
            .all(|part| *part != "*" && allowed.contains(part))
    {
        let items = parts.join("`, `");
        let advice = format!("write each value as an item of the list: `{items}`");
        violations.add(Rule::InvalidValue, spot.field_ref, message, Some(advice));
        violations.set_meant(spot.field_ref, &parts);
        return;
    }
    let synonyms = SYNONYMS.iter().filter(|(_, meant)| allowed.contains(meant));
    let mut synonyms = synonyms.filter(|(synonym, _)| synonym.eq_ignore_ascii_case(text));
    let synonym = synonyms.next().map(|(_, meant)| *meant);
    let synonym = synonym.or_else(|| completed(text, 2 * text.len(), allowed.iter().copied()));
    let meant = nearest(text, allowed.iter().copied()).or(synonym);
    if let Some((list, n)) = spot.position()
        && let Some(meant) = meant
        && spot
            .root
            .nearest(list)
            .items()
            .iter()
            .any(|item| item.as_str() == Some(meant))
    {
        let advice = format!("remove it: the list has `{meant}` too");
        violations.add(Rule::InvalidValue, spot.field_ref, message, Some(advice));
        violations.set_removed(spot.field_ref, (list, n));
        return;
    }
    let advice = meant.map(|meant| format!("did you mean `{meant}`?"));
    violations.add(Rule::InvalidValue, spot.field_ref, message, advice);
    let meant = nearest_only(text, allowed.iter().copied()).or(synonym);
    violations.set_meant(spot.field_ref, meant.as_slice());
}

/// Adds a violation if the string does not match the format.
pub(super) fn form(spot: &Spot<'_>, form: Form, violations: &mut Violations) {
    if spot.node.is_some_and(|node| node.as_str().is_none()) {
        return;
    }
    let text = spot.text();
    if let Some(requirement) = form.violated(text) {
        let message = violation_message(spot.field_ref, text, &requirement);
        let selected = label_requirement(spot.field_ref, text);
        let meant = form.meant(text).filter(|_| selected.is_none());
        let noun = match spot.field_ref.rsplit('.').next() {
            Some("name") if spot.field_ref.contains("kubernetes.io/metadata.name") => {
                "the name of a namespace"
            }
            Some("name" | "policyName") => "the name",
            _ => "the value",
        };
        let advice = selected.or_else(|| advice_on_form(text, meant.as_deref(), noun));
        let is_short = || form == Form::Domain && Form::Subdomain.violated(text).is_none();
        let advice = advice.or_else(|| {
            is_short().then(|| format!("add a domain that you own, as in `{text}.example.com`"))
        });
        violations.add(Rule::InvalidName, spot.field_ref, message, advice);
        // The name of an object gets no fix, because other objects may refer to it. The name of a part gets one.
        if spot.field_ref.contains("].") {
            violations.set_meant(spot.field_ref, meant.as_deref().as_slice());
        }
    }
}

/// Returns the advice to write an item of matchExpressions if a value in `matchLabels` excludes a value, such as `!a`,
/// or lists several values, such as `a,b`. `None` for other values.
fn label_requirement(field_ref: &str, text: &str) -> Option<String> {
    let (_, key) = field_ref.split_once(".matchLabels.")?;
    let (operator, text) = match text.strip_prefix('!') {
        Some(excluded) => ("NotIn", excluded),
        None => ("In", text),
    };
    let values: Vec<&str> = text.split(',').map(str::trim).collect();
    let are_valid = || {
        values
            .iter()
            .all(|value| !value.is_empty() && Form::LabelValue.violated(value).is_none())
    };
    ((operator == "NotIn" || values.len() > 1) && are_valid()).then(|| {
        let values = values.join(", ");
        format!(
            "write an item of matchExpressions: `{{key: {key}, operator: {operator}, values: [{values}]}}`"
        )
    })
}

/// Returns the hint about a string that does not match its format. `meant` is a similar string with the format.
pub(super) fn advice_on_form(text: &str, meant: Option<&str>, noun: &str) -> Option<String> {
    if is_placeholder(text) {
        return Some(format!("this is a placeholder: set {noun}"));
    }
    if is_template(text) {
        return Some("this looks like a template: render it, as with `helm template`".to_owned());
    }
    meant.map(|meant| format!("did you mean `{meant}`?"))
}

/// Returns the message for a string that does not match its format.
pub(super) fn violation_message(what: &str, text: &str, requirement: &str) -> String {
    if text.is_empty() {
        format!("`{what}` is empty, but must {requirement}")
    } else {
        format!("`{what}` is {}, but must {requirement}", quoted(text))
    }
}

fn distinct(spot: &Spot<'_>, field: Option<&str>, violations: &mut Violations) {
    let mut seen = BTreeSet::new();
    for (n, item) in spot.items().iter().enumerate() {
        let value = match field {
            Some(field) => item.get(field),
            None => Some(item),
        };
        let value = text(value);
        // Empty values of `field` violate another constraint, and are not reported as duplicates.
        let counts = field.is_none() || !value.is_empty();
        if counts && !seen.insert(value) {
            let field_ref = match field {
                Some(field) => format!("{}[{n}].{field}", spot.field_ref),
                None => format!("{}[{n}]", spot.field_ref),
            };
            let message = format!("duplicate {} in `{}`", quoted(value), spot.field_ref);
            let advice = Some(match field {
                Some(_) => "rename one of them".to_owned(),
                None => "remove one of them".to_owned(),
            });
            violations.add(Rule::DuplicateValue, &field_ref, message, advice);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn invalid_value_in_match_labels_is_rewritten_as_requirement() {
        let of = |text: &str| label_requirement("spec.namespaceSelector.matchLabels.a.b/c", text);
        for (text, expected) in [
            ("!prod", "`{key: a.b/c, operator: NotIn, values: [prod]}`"),
            ("a,b", "`{key: a.b/c, operator: In, values: [a, b]}`"),
            ("!a, b", "`{key: a.b/c, operator: NotIn, values: [a, b]}`"),
        ] {
            let requirement = of(text).unwrap();
            assert!(requirement.ends_with(expected), "{requirement}");
        }
        for text in ["a b", "a,", "!", "!a b", "a!"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(label_requirement("metadata.name", "!a"), None);
    }
}
