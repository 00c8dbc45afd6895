//! Finds regular expressions that match more strings than intended, or none.
//!
//! `matches()` searches for the pattern anywhere in the string. If a validation requires a pattern without an anchor,
//! it also accepts strings that contain a match in the middle.

use std::collections::HashSet;

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;
use regexp::{NodeId, NodeKind, Regex};

use super::Lint;
use super::path::path;
use super::positions::{Elements, conditions};
use crate::advice::Advice;
use crate::expressions::{PolicyExpression, Role};
use crate::rule::Rule;

/// Maximum length of a pattern in a message, in bytes. Longer patterns are not checked.
const MAX_SHOWN: usize = 80;

/// Top-level domains and suffixes that are used for internal domains. A name with two labels is treated as a domain
/// only if it ends in one of them.
const TOP_LEVEL_DOMAINS: [&str; 14] = [
    "app", "cloud", "co", "com", "corp", "dev", "eu", "internal", "io", "lan", "local", "net",
    "org", "ru",
];

pub(super) fn find(expression: &PolicyExpression, ast: &Ast) -> Vec<Lint> {
    let mut lints = Vec::new();
    let mut required = None;
    let mut elements = None;
    for (id, _) in ast.iter() {
        let Some((subject, argument)) = matches_call(ast, id) else {
            continue;
        };
        let lint_at = |at: ExprId, finding: Finding| Lint {
            rule: finding.rule,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(at))),
            message: finding.message,
            fix: finding.help.map(Advice::from),
            is_harmless: finding.is_harmless,
        };
        if let Some(finding) = swapped_arguments(ast, subject, argument) {
            lints.push(lint_at(subject, finding));
            continue;
        }
        let Expr::Literal(Literal::String(pattern)) = ast.expr(argument) else {
            continue;
        };
        if pattern.len() > MAX_SHOWN {
            continue;
        }
        let Ok(regex) = regexp::parse(pattern) else {
            continue;
        };
        if let Some(finding) = unmatchable(&regex, pattern) {
            lints.push(lint_at(argument, finding));
            continue;
        }
        // The other lints are only about conditions that a validation requires. A negated test denies more than
        // intended, which is harmless.
        let required = required.get_or_insert_with(|| required_conditions(expression, ast));
        if !required.contains(&id.index()) {
            continue;
        }
        let elements = elements.get_or_insert_with(|| Elements::new(ast));
        let is_image = elements.field(ast, subject) == Some("image");
        let unanchored = unanchored(&regex, pattern, is_image);
        lints.extend(unanchored.map(|it| lint_at(argument, it)));
        lints.extend(unescaped_dot(pattern).map(|it| lint_at(argument, it)));
    }
    lints
}

struct Finding {
    rule: Rule,
    message: String,
    help: Option<String>,
    is_harmless: bool,
}

/// Returns the string and the pattern of a call of `matches()`.
fn matches_call(ast: &Ast, id: ExprId) -> Option<(ExprId, ExprId)> {
    let Expr::Call {
        function,
        target,
        args,
    } = ast.expr(id)
    else {
        return None;
    };
    match (target, &**args) {
        _ if &**function != "matches" => None,
        (Some(subject), [pattern]) | (None, [subject, pattern]) => Some((*subject, *pattern)),
        _ => None,
    }
}

/// Returns the nodes of the conditions that a validation requires.
fn required_conditions(expression: &PolicyExpression, ast: &Ast) -> HashSet<usize> {
    if expression.role != Role::Validation {
        return HashSet::new();
    }
    let required = conditions(ast).into_iter().filter(|(_, sign)| *sign);
    required.map(|(id, _)| id.index()).collect()
}

/// Finds `matches('^a', x)`, which searches for the pattern `x` in the string `^a`.
fn swapped_arguments(ast: &Ast, subject: ExprId, argument: ExprId) -> Option<Finding> {
    let Expr::Literal(Literal::String(text)) = ast.expr(subject) else {
        return None;
    };
    let is_pattern = text.contains(['^', '$', '*', '+', '[', '(', '|', '\\', '?']);
    let is_literal = matches!(ast.expr(argument), Expr::Literal(_));
    if !is_pattern || is_literal || text.len() > MAX_SHOWN {
        return None;
    }
    let shown = path(ast, argument);
    let string = shown.as_deref().unwrap_or("x");
    Some(Finding {
        rule: Rule::SwappedArguments,
        message: format!(
            "this searches for the pattern `{string}` in the string `{text}`: the pattern is the second operand of \
             matches()"
        ),
        help: Some(format!("write `{string}.matches('{text}')`")),
        is_harmless: false,
    })
}

/// Finds `^` after other characters, and `$` before other characters. No string matches such a pattern.
fn unmatchable(regex: &Regex, pattern: &str) -> Option<Finding> {
    let parts = parts(regex, regex.root());
    let consumes = |id: &NodeId| min_length(regex, *id) > 0;
    let is_kind = |id: &NodeId, kind: &NodeKind| regex.node(*id).kind == *kind;
    let mut starts = parts.iter().enumerate();
    let is_late = starts
        .any(|(n, id)| is_kind(id, &NodeKind::BeginText) && parts.iter().take(n).any(consumes));
    let mut ends = parts.iter().enumerate();
    let is_early = ends.any(|(n, id)| {
        is_kind(id, &NodeKind::EndText) && parts.iter().skip(n.saturating_add(1)).any(consumes)
    });
    let why = match (is_late, is_early) {
        (true, _) => "`^` only matches at the start",
        (_, true) => "`$` only matches at the end",
        _ => return None,
    };
    // The pattern may be a JavaScript literal such as `/^a$/i`.
    let help = pattern.strip_prefix('/').and_then(|rest| {
        let (inner, flags) = rest.rsplit_once('/')?;
        match flags {
            "" => Some(format!("write `{inner}`, without slashes")),
            "i" => Some(format!("write `(?i){inner}`, without slashes")),
            _ => None,
        }
    });
    Some(Finding {
        rule: Rule::ConstantCondition,
        message: format!("no string matches `{pattern}`: {why}, so this is always false"),
        help,
        is_harmless: false,
    })
}

/// Returns the parts of a concatenation. A group that is the whole expression is replaced by its content.
fn parts(regex: &Regex, mut id: NodeId) -> Vec<NodeId> {
    loop {
        let node = regex.node(id);
        match (&node.kind, &*node.parts) {
            (NodeKind::Capture(_), [inner]) => id = *inner,
            (NodeKind::Concat, parts) => return parts.to_vec(),
            _ => return vec![id],
        }
    }
}

/// Returns a lower bound on the number of characters that the node matches.
fn min_length(regex: &Regex, id: NodeId) -> usize {
    let node = regex.node(id);
    match &node.kind {
        NodeKind::Literal(text) => text.len(),
        NodeKind::Class(_) | NodeKind::AnyChar | NodeKind::AnyCharNotNewline => 1,
        NodeKind::Capture(_) | NodeKind::Plus => {
            let first = node.parts.first();
            first.map_or(0, |inner| min_length(regex, *inner))
        }
        NodeKind::Repeat { min, .. } if *min > 0 => {
            let first = node.parts.first();
            first.map_or(0, |inner| min_length(regex, *inner))
        }
        NodeKind::Concat => {
            let lengths = node.parts.iter().map(|part| min_length(regex, *part));
            lengths.fold(0, usize::saturating_add)
        }
        NodeKind::Alternate => {
            let lengths = node.parts.iter().map(|part| min_length(regex, *part));
            lengths.min().unwrap_or(0)
        }
        _ => 0,
    }
}

/// The quantifier of a pattern part that consists of one character class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Quantifier {
    /// No quantifier.
    Fixed,
    /// `+`, `*`, or a range such as `{1,3}`.
    Varying,
    /// A fixed number of repetitions, such as `{3}`.
    Counted,
}

/// Returns the quantifier of a character class or a repeated character class. `None` for other nodes, and for `.`.
fn quantified_class(regex: &Regex, id: NodeId) -> Option<Quantifier> {
    let node = regex.node(id);
    let is_class = |id: NodeId| matches!(regex.node(id).kind, NodeKind::Class(_));
    let [inner] = &*node.parts else {
        return is_class(id).then_some(Quantifier::Fixed);
    };
    let quantifier = match node.kind {
        NodeKind::Capture(_) => return quantified_class(regex, *inner),
        NodeKind::Repeat { min, max } if max == Some(min) => Quantifier::Counted,
        NodeKind::Plus | NodeKind::Star | NodeKind::Repeat { .. } => Quantifier::Varying,
        _ => return None,
    };
    is_class(*inner).then_some(quantifier)
}

/// Returns two flags. The first flag is true if the alternative begins with a start anchor. The second flag is true if
/// the alternative ends with an end anchor.
fn anchors(regex: &Regex, id: NodeId) -> (bool, bool) {
    let parts = parts(regex, id);
    let is_start = |kind: &NodeKind| matches!(kind, NodeKind::BeginText | NodeKind::BeginLine);
    let is_end = |kind: &NodeKind| matches!(kind, NodeKind::EndText | NodeKind::EndLine);
    let first = parts.first().map(|id| &regex.node(*id).kind);
    let last = parts.last().map(|id| &regex.node(*id).kind);
    (first.is_some_and(is_start), last.is_some_and(is_end))
}

/// Returns the operands of `|` if the node is an alternation, or a group whose content is an alternation. Empty for
/// other nodes.
fn alternatives(regex: &Regex, mut id: NodeId) -> Vec<NodeId> {
    loop {
        let node = regex.node(id);
        match (&node.kind, &*node.parts) {
            (NodeKind::Capture(_), [inner]) => id = *inner,
            (NodeKind::Alternate, parts) => return parts.to_vec(),
            _ => return Vec::new(),
        }
    }
}

/// Finds a pattern that probably lacks `^` or `$`.
fn unanchored(regex: &Regex, pattern: &str, is_image: bool) -> Option<Finding> {
    let finding = |message: String, help: String, is_harmless: bool| {
        Some(Finding {
            rule: Rule::UnanchoredPattern,
            message,
            help: Some(help),
            is_harmless,
        })
    };
    let alternatives = alternatives(regex, regex.root());
    if !alternatives.is_empty() {
        return one_sided(regex, pattern, &alternatives).and_then(|whole| {
            let message =
                format!("in `{pattern}`, `^` and `$` each belong to only one of the alternatives");
            finding(message, format!("write `{whole}`"), false)
        });
    }
    let (has_start, has_end) = anchors(regex, regex.root());
    let mut parts = parts(regex, regex.root());
    parts.retain(|id| {
        !matches!(
            regex.node(*id).kind,
            NodeKind::BeginText | NodeKind::EndText
        )
    });
    let (first, last) = (*parts.first()?, *parts.last()?);
    let class_at = |id| quantified_class(regex, id);
    let is_plain = |c: u32| char::from_u32(c).is_some_and(|c| c.is_ascii_alphanumeric());
    let starts_plain = match &regex.node(first).kind {
        NodeKind::Literal(text) => text.first().copied().is_some_and(is_plain),
        _ => class_at(first).is_some(),
    };
    // A trailing `.*` has no effect, so its author probably believes that the pattern must match the whole string.
    if let Some(start) = pattern.strip_suffix(".*")
        && !has_start
        && starts_plain
        && parts.len() > 1
    {
        return finding(
            format!("`{pattern}` also matches strings that contain `{start}` in the middle"),
            format!("to match only at the start, write `^{pattern}`"),
            false,
        );
    }
    if is_image && !has_start && starts_plain && names_registry(pattern) {
        return finding(
            format!("`{pattern}` also matches within the paths of images from other registries"),
            format!("to match only at the start, write `^{pattern}`"),
            false,
        );
    }
    // Without an anchor next to it, a repetition has no effect. Its author probably believes that the pattern must
    // match the whole string.
    let is_simple = parts
        .iter()
        .all(|id| matches!(regex.node(*id).kind, NodeKind::Literal(_)) || class_at(*id).is_some());
    let (at_start, at_end) = (class_at(first)?, class_at(last)?);
    let is_repeated = |quantifier| quantifier != Quantifier::Fixed;
    let suspicious = match (has_start, has_end) {
        _ if !is_simple => false,
        (true, true) => false,
        (false, false) => is_repeated(at_end) && (parts.len() > 1 || is_repeated(at_start)),
        (true, false) => is_repeated(at_end),
        (false, true) => is_repeated(at_start),
    };
    if !suspicious {
        return None;
    }
    let start = if has_start { "" } else { "^" };
    let end = if has_end { "" } else { "$" };
    let others = match (has_start, has_end) {
        (true, _) => "with other characters after the match",
        (_, true) => "with other characters before the match",
        _ => "with other characters around the match",
    };
    finding(
        format!("`{pattern}` also matches a string {others}"),
        format!("to match the whole string, write `{start}{pattern}{end}`"),
        // Two kinds of patterns may be intended as they are. One kind requires a prefix of a fixed length, such as
        // `^[0-9]{3}`. The other kind is a single repeated class, such as `[a-z]+`: it only requires that the string
        // contains such a character.
        has_start && at_end == Quantifier::Counted
            || parts.len() == 1 && !has_start && !has_end && at_end == Quantifier::Varying,
    )
}

/// Returns the pattern with a group around its alternatives if only the first one has `^` and only the last one has
/// `$`. `None` for a pattern such as `^kube-|-system$`, in which the last alternative starts with a separator. Such a
/// pattern is probably intended to match the start or the end of a name.
fn one_sided(regex: &Regex, pattern: &str, alternatives: &[NodeId]) -> Option<String> {
    let all: Vec<(bool, bool)> = alternatives.iter().map(|id| anchors(regex, *id)).collect();
    let [(true, false), between @ .., (false, true)] = &*all else {
        return None;
    };
    let last = parts(regex, *alternatives.last()?);
    let is_separator = |c: u32| char::from_u32(c).is_some_and(|c| c.is_ascii_punctuation());
    let starts_with_separator = match &regex.node(*last.first()?).kind {
        NodeKind::Literal(text) => text.first().copied().is_some_and(is_separator),
        NodeKind::Class(_) => false,
        _ => true,
    };
    let is_suffix = between.is_empty() && starts_with_separator;
    let inner = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let is_plain = between.iter().all(|anchors| *anchors == (false, false));
    (is_plain && !is_suffix).then(|| format!("^({inner})$"))
}

/// Returns true if the pattern starts with the host name of a registry and a slash.
fn names_registry(pattern: &str) -> bool {
    let (host, _) = pattern.split_once('/').unwrap_or_default();
    let is_host = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '\\');
    host.contains('.') && host.chars().all(is_host)
}

/// Finds an unescaped domain, such as `registry.example.com`, in a pattern. Each dot in it matches any character.
fn unescaped_dot(pattern: &str) -> Option<Finding> {
    let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let is_name = |c: char| is_label(c) || c == '.';
    let mut rest = pattern;
    let mut is_class = false;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let n_name = rest.find(|c: char| !is_name(c)).unwrap_or(rest.len());
        let (name, after) = rest.split_at(n_name);
        // In `example.*`, the quantifier belongs to the dot, so the dot is not part of the domain.
        let domain = if after.starts_with(['*', '+', '?', '{']) {
            name.strip_suffix('.').unwrap_or_default()
        } else {
            name
        };
        let labels: Vec<&str> = domain.split('.').collect();
        let is_domain = labels
            .iter()
            .all(|label| label.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit()))
            && (labels.len() > 2
                || labels.len() == 2
                    && labels
                        .last()
                        .is_some_and(|last| TOP_LEVEL_DOMAINS.contains(last)));
        // The domain must end before a dot with a quantifier, at a separator, or at the end of the pattern.
        let is_complete = domain.len() < name.len()
            || after.is_empty()
            || after.starts_with(['/', ':', '$', ')', '|', '\\']);
        let is_number = labels
            .iter()
            .all(|label| label.bytes().all(|c| c.is_ascii_digit()));
        if is_domain && is_complete && !is_number && !is_class && before != '\\' {
            return Some(Finding {
                rule: Rule::UnescapedDot,
                message: format!(
                    "`.` matches any character: the pattern also matches `{}`",
                    domain.replacen('.', "x", 1)
                ),
                help: Some(format!("write `{}`", domain.replace('.', "[.]"))),
                is_harmless: true,
            });
        }
        if n_name > 0 {
            before = name.chars().last().unwrap_or(' ');
            rest = after;
            continue;
        }
        match c {
            '[' => is_class = true,
            ']' => is_class = false,
            _ => {}
        }
        before = c;
        rest = rest.get(c.len_utf8()..).unwrap_or_default();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn unanchored_help(pattern: &str) -> Option<(String, bool)> {
        let regex = regexp::parse(pattern).unwrap();
        let finding = unanchored(&regex, pattern, false)?;
        Some((finding.help.unwrap(), finding.is_harmless))
    }

    #[test]
    fn unanchored_patterns_have_help_with_the_missing_anchor() {
        for (pattern, help, is_harmless) in [
            ("eu-.*", "to match only at the start, write `^eu-.*`", false),
            (
                "[a-z]+.corp.example.com/.*",
                "to match only at the start, write `^[a-z]+.corp.example.com/.*`",
                false,
            ),
            (
                "[A-Z_]+",
                "to match the whole string, write `^[A-Z_]+$`",
                true,
            ),
            (r"\d+", r"to match the whole string, write `^\d+$`", true),
            (
                "[0-9]{4}",
                "to match the whole string, write `^[0-9]{4}$`",
                false,
            ),
            (
                "[a-z]+-[0-9]+",
                "to match the whole string, write `^[a-z]+-[0-9]+$`",
                false,
            ),
            (
                "[a-z]+$",
                "to match the whole string, write `^[a-z]+$`",
                false,
            ),
            (
                "^[a-z0-9]+",
                "to match the whole string, write `^[a-z0-9]+$`",
                false,
            ),
            (
                "^[0-9]{4}",
                "to match the whole string, write `^[0-9]{4}$`",
                true,
            ),
            (
                "^[a-z]{2,10}",
                "to match the whole string, write `^[a-z]{2,10}$`",
                false,
            ),
            (
                "^team-[0-9]|ops-[0-9]$",
                "write `^(team-[0-9]|ops-[0-9])$`",
                false,
            ),
            ("^a|b|-c$", "write `^(a|b|-c)$`", false),
        ] {
            let expected = Some((help.to_owned(), is_harmless));
            assert_eq!(unanchored_help(pattern), expected, "{pattern}");
        }
    }

    #[test]
    fn anchored_patterns_and_substrings_have_no_finding() {
        for pattern in [
            "^web-",
            "^team-[a-z]+",
            "-prod$",
            "-[0-9]+$",
            "[A-Z]",
            "^[a-z]",
            "^[a-z]-",
            "[0-9]$",
            "^[a-z]+$",
            "^[a-z].*",
            ".*-eu",
            ".*",
            ":latest.*",
            "@sha256:[a-f0-9]{64}$",
            "^kube-|-system$",
            "^latest$|^v[0-9]",
            "^(a|b)",
            "a|b",
            "v[0-9]?",
            "^(^a|^b)$",
            "[a-z]+(-[a-z]+)?",
        ] {
            assert_eq!(unanchored_help(pattern), None, "{pattern}");
        }
    }

    #[test]
    fn unescaped_dots_of_domains_are_found() {
        for (pattern, is_found) in [
            ("^registry.example.com/", true),
            ("^gcr.io/", true),
            ("^(docker.io|quay.io)/", true),
            (r"^registry\.example\.com/", false),
            ("^registry[.]example[.]com/", false),
            ("^v1.2.3$", true),
            ("^1.2.3$", false),
            ("^a.b$", false),
            ("^[a.com]$", false),
            ("^registry.example.com.*", true),
            ("^a.*b.com", true),
        ] {
            assert_eq!(unescaped_dot(pattern).is_some(), is_found, "{pattern}");
        }
    }

    #[test]
    fn patterns_with_misplaced_anchors_never_match() {
        for (pattern, is_found) in [
            ("/^abc/i", true),
            ("a^b", true),
            ("a$b", true),
            ("/abc$/", true),
            ("^abc$", false),
            ("(?m)a$\n^b", false),
            ("a*^b", false),
            ("$a*", false),
            ("(^|/)a(/|$)", false),
            (r"\^a\$b", false),
        ] {
            let regex = regexp::parse(pattern).unwrap();
            assert_eq!(
                unmatchable(&regex, pattern).is_some(),
                is_found,
                "{pattern}"
            );
        }
    }
}
