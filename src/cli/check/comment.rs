//! Applies comments `# vap: allow RULE, reason`, which suppress findings, and reports invalid and unused comments.

use std::collections::{BTreeSet, HashMap};

use super::finding::{Finding, Location, Severity};
use super::levels::{self, ALL, is_unsuppressible};
use super::report::{Suppressed, SuppressedBy};
use super::suggestion::nearest;
use crate::cli::input::comments::{Comment, MAX_COMMENTS};
use crate::policy::rule::Rule;

/// A hint with the syntax of a comment.
const FORM: &str = "write `# vap: allow RULE, reason`";

/// The word after `vap:` that suppresses the findings of a rule.
const ALLOW: &str = "allow";

/// Keywords with the meaning of `allow` in other linters. A comment with such a keyword is reported as invalid.
const LIKE_ALLOW: [&str; 9] = [
    "disable", "expect", "exclude", "ignore", "noqa", "off", "skip", "suppress", "nolint",
];

/// Rules about suppressions, which cannot be suppressed themselves.
const ABOUT_SUPPRESSIONS: [Rule; 3] = [
    Rule::InvalidSuppression,
    Rule::StaleBaseline,
    Rule::UnusedSuppression,
];

/// The meaning of a comment that begins with `# vap:`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Directive {
    /// The rules whose findings are suppressed, and the reason.
    Allow(Vec<Rule>, String),
    /// An invalid comment: the message and a hint.
    Invalid(String, String),
    /// Any other comment, such as `# vap: validates names`.
    Other,
}

fn directive(words: &str) -> Directive {
    let invalid = |message: String, help: &str| Directive::Invalid(message, help.to_owned());
    let (verb, rest) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
    if verb != ALLOW {
        let is_meant = LIKE_ALLOW.contains(&verb.to_lowercase().trim_end_matches(':'))
            || nearest(verb, std::iter::once(ALLOW)).is_some();
        return if is_meant {
            invalid(format!("unknown word `{verb}` after `# vap:`"), FORM)
        } else {
            Directive::Other
        };
    }
    let (id, mut reason) = match rest.split_once(',') {
        Some((id, reason)) => (id.trim(), reason.trim()),
        None => (rest.trim(), ""),
    };
    // Further rules precede the reason.
    let mut others = Vec::new();
    while let Some((other, rest)) = reason.split_once(',') {
        let Some(rule) = Rule::from_id(other.trim()) else {
            break;
        };
        others.push((other.trim(), rule));
        reason = rest.trim();
    }
    if Rule::from_id(reason).is_some() {
        let message = format!("a reason is missing after `{reason}`");
        return invalid(message, FORM);
    }
    if id.is_empty() {
        return invalid("the comment contains no rule id".to_owned(), FORM);
    }
    if id == ALL {
        let message = "a comment cannot allow all rules".to_owned();
        return invalid(message, "specify the rule that is shown in the finding");
    }
    let first = id.split_whitespace().next().unwrap_or_default();
    let rule = match levels::rule(first) {
        Ok(rule) => rule,
        Err(error) => {
            let error = error.to_string();
            let (message, help) = error.split_once("; ").unwrap_or((&error, FORM));
            return invalid(message.to_owned(), help);
        }
    };
    others.insert(0, (first, rule));
    let mut about = others
        .iter()
        .filter(|(_, rule)| ABOUT_SUPPRESSIONS.contains(rule));
    if let Some((id, _)) = about.next() {
        let message = format!("`{id}` findings cannot be suppressed by comments");
        return invalid(
            message,
            "remove the cause of the finding, or set the level of the rule",
        );
    }
    if let Some(second) = id.split_whitespace().nth(1)
        && Rule::from_id(second).is_some()
    {
        let message = format!("a comma is missing between `{first}` and `{second}`");
        return invalid(message, "write `# vap: allow RULE, RULE, reason`");
    }
    if reason.is_empty() || first != id {
        let message = format!("a reason is missing after `{first}`");
        return invalid(message, FORM);
    }
    let rules = others.into_iter().map(|(_, rule)| rule).collect();
    Directive::Allow(rules, reason.to_owned())
}

/// Moves each finding that a comment suppresses from `findings` to `suppressed`. Adds a finding for each invalid or
/// unused comment.
pub(super) fn apply(
    comments: &[Comment],
    findings: &mut Vec<Finding>,
    suppressed: &mut Vec<Suppressed>,
) {
    if comments.is_empty() {
        return;
    }
    let mut of_file: HashMap<&str, Vec<usize>> = HashMap::new();
    for (n, finding) in findings.iter().enumerate() {
        let of_file = of_file.entry(&finding.location.file).or_default();
        of_file.push(n);
    }
    let mut reasons: HashMap<usize, String> = HashMap::new();
    let mut about_comments = Vec::new();
    let mut n_of_file: HashMap<&str, usize> = HashMap::new();
    let mut seen = BTreeSet::new();
    for comment in comments {
        let file = comment.source.name.as_str();
        // The same file may be passed twice. Each comment is applied only once.
        if !seen.insert((file, comment.place)) {
            continue;
        }
        let n_before = n_of_file.entry(file).or_default();
        *n_before += 1;
        if *n_before > MAX_COMMENTS {
            let message = format!("more than {MAX_COMMENTS} comments: the rest are ignored");
            let help = "set the levels of rules by flags or in the configuration file";
            about_comments.push(comment_finding(
                comment,
                Rule::InvalidSuppression,
                message,
                help,
            ));
            continue;
        }
        let (rules, reason) = match directive(&comment.words) {
            Directive::Allow(rules, reason) => (rules, reason),
            Directive::Invalid(message, help) => {
                about_comments.push(comment_finding(
                    comment,
                    Rule::InvalidSuppression,
                    message,
                    &help,
                ));
                continue;
            }
            Directive::Other => continue,
        };
        for rule in rules {
            let (mut is_used, mut is_rejected) = (false, false);
            for n in of_file.get(file).into_iter().flatten().copied() {
                let Some(finding) = findings.get(n) else {
                    continue;
                };
                let line = finding.location.place.map(|place| place.line);
                let is_there = line.is_some_and(|line| comment.lines.contains(&line));
                if finding.rule != rule || !is_there {
                    continue;
                }
                if is_unsuppressible(finding) {
                    is_rejected = true;
                    continue;
                }
                is_used = true;
                reasons.entry(n).or_insert_with(|| reason.clone());
            }
            if !is_used {
                let (message, help) = if is_rejected {
                    (
                        format!("this `{}` finding cannot be suppressed", rule.id()),
                        "the API server rejects the object: fix it, and remove the comment",
                    )
                } else {
                    (
                        format!("`{}` has no findings here", rule.id()),
                        "remove the comment, or move it to the line of the finding, or above it",
                    )
                };
                about_comments.push(comment_finding(
                    comment,
                    Rule::UnusedSuppression,
                    message,
                    help,
                ));
            }
        }
    }
    let mut reported = Vec::new();
    for (n, finding) in std::mem::take(findings).into_iter().enumerate() {
        match reasons.remove(&n) {
            Some(reason) => suppressed.push(Suppressed {
                by: SuppressedBy::Comment,
                reason: Some(reason),
                finding,
            }),
            None => reported.push(finding),
        }
    }
    reported.extend(about_comments);
    *findings = reported;
}

fn comment_finding(comment: &Comment, rule: Rule, message: String, help: &str) -> Finding {
    let mut location = Location::from_place(&comment.source, comment.place);
    location.length = comment.length;
    Finding {
        help: Some(help.to_owned()),
        ..Finding::new(Severity::Warning, rule, message, location)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comment_directive_without_rule_or_reason_is_an_error() {
        let allows = Directive::Allow(vec![Rule::UndefinedField], "a, b".to_owned());
        assert_eq!(directive("allow undefined-field, a, b"), allows);
        assert_eq!(directive("allow   undefined-field ,  a, b"), allows);
        let both = vec![Rule::UndefinedField, Rule::AbsentField];
        assert_eq!(
            directive("allow undefined-field, absent-field, a, b"),
            Directive::Allow(both, "a, b".to_owned())
        );
        for (words, wanted) in [
            (
                "allow undefined-field, absent-field",
                "a reason is missing after `absent-field`",
            ),
            (
                "allow absent-field, unused-suppression, why",
                "`unused-suppression` findings cannot be suppressed by comments",
            ),
            ("allow", "the comment contains no rule id"),
            ("allow , why", "the comment contains no rule id"),
            ("allow all, why", "a comment cannot allow all rules"),
            ("allow undefined-feild, why", "no rule `undefined-feild`"),
            (
                "allow undefined-field",
                "a reason is missing after `undefined-field`",
            ),
            (
                "allow undefined-field,",
                "a reason is missing after `undefined-field`",
            ),
            (
                "allow undefined-field for a reason",
                "a reason is missing after `undefined-field`",
            ),
            (
                "allow undefined-field absent-field, why",
                "a comma is missing between `undefined-field` and `absent-field`",
            ),
            (
                "allow unused-suppression, why",
                "`unused-suppression` findings cannot be suppressed by comments",
            ),
            (
                "ignore undefined-field",
                "unknown word `ignore` after `# vap:`",
            ),
            ("alow undefined-field", "unknown word `alow` after `# vap:`"),
        ] {
            let Directive::Invalid(message, _) = directive(words) else {
                panic!("{words}")
            };
            assert_eq!(message, wanted);
        }
        assert_eq!(directive("validates names"), Directive::Other);
        assert_eq!(directive(""), Directive::Other);
    }
}
