//! The single issues in the text of a warning or of a compilation error, which is upstream's.
//!
//! Source: cel-go `common/error.go` (`Error.ToDisplayString`); `crate::policy::typecheck` joins the
//! texts of several kinds with an empty line between them.

/// One issue of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The kind whose objects it is about, `apps/v1, Kind=Deployment`.
    pub kind: Option<String>,
    /// The line and the column of the expression, from 1 and from 0, where it has a place.
    pub at: Option<(usize, usize)>,
    /// What is wrong.
    pub message: String,
}

/// What stands before the place of an issue.
const START: &str = "ERROR: <input>:";

/// The issues of `text`, in order.
#[must_use]
pub fn issues(text: &str) -> Vec<Issue> {
    let mut found: Vec<Issue> = Vec::new();
    let mut kind: Option<String> = None;
    for line in text.lines() {
        let (before, issue) = match line.find(START) {
            Some(at) if !line.starts_with(" | ") => (line.get(..at), line.get(at..)),
            _ => (None, None),
        };
        if let (Some(before), Some(issue)) = (before, issue)
            && let Ok(named) = kind_before(before)
            && let Some((at, message)) = placed(issue)
        {
            kind = (!named.is_empty()).then(|| named.to_owned()).or(kind);
            found.push(Issue {
                kind: kind.clone(),
                at,
                message: message.to_owned(),
            });
        } else if let Some(last) = found.last_mut() {
            // The source and its caret, and what a message of several lines goes on with.
            if !line.starts_with(" | ") && !line.is_empty() {
                last.message.push(' ');
                last.message.push_str(line.trim());
            }
        } else {
            found.push(Issue {
                kind: None,
                at: None,
                message: line.to_owned(),
            });
        }
    }
    found
}

/// The kind that stands before an issue, empty where none does.
///
/// # Errors
/// Where something else stands there.
fn kind_before(before: &str) -> Result<&str, ()> {
    match before {
        "" | "compilation failed: " => Ok(""),
        kind => kind
            .strip_suffix(": ")
            .filter(|kind| kind.contains(", Kind="))
            .ok_or(()),
    }
}

/// The place of an issue, from 1 and from 0, and its message.
fn placed(issue: &str) -> Option<(Option<(usize, usize)>, &str)> {
    let mut parts = issue.strip_prefix(START)?.splitn(3, ':');
    let line: i64 = parts.next()?.parse().ok()?;
    let column: i64 = parts.next()?.parse().ok()?;
    let at = usize::try_from(line)
        .ok()
        .filter(|line| *line > 0)
        .zip(usize::try_from(column - 1).ok());
    Some((at, parts.next()?.trim()))
}

/// The rules that issues belong to, by what their messages begin or end with.
///
/// Source: cel-go `checker/errors.go`, `parser/errors.go`.
const RULES: [(&str, &str); 15] = [
    ("Syntax error", "syntax"),
    ("ERROR: ", "syntax"),
    ("undeclared reference to", "undeclared-reference"),
    ("undefined field", "undefined-field"),
    ("found no matching overload", "no-matching-overload"),
    ("expected type", "type-mismatch"),
    ("unexpected failed resolution", "unresolved-type"),
    ("expression of type", "not-a-range"),
    ("must evaluate to", "result-type"),
    (
        "unsupported optional field selection",
        "invalid-optional-selection",
    ),
    ("incorrect signature", "invalid-optional-selection"),
    ("invalid ", "invalid-literal"),
    ("expression code point size", "limit-exceeded"),
    ("expression is not specified", "required"),
    ("expression recursion limit", "limit-exceeded"),
];

/// The name of the rule that an issue belongs to; `other` where it is none of these.
#[must_use]
pub fn rule(message: &str, other: &'static str) -> &'static str {
    let message = message.trim_start_matches("compilation failed: ");
    if message.ends_with("does not support field selection") {
        return "no-field-selection";
    }
    RULES
        .iter()
        .find(|(start, _)| message.starts_with(start))
        .map_or(other, |(_, rule)| rule)
}

/// The offset in code points of a line, from 1, and column, from 0, of `text`.
#[must_use]
pub fn offset(text: &str, (line, column): (usize, usize)) -> usize {
    let before = text.split('\n').take(line.saturating_sub(1));
    let before: usize = before.map(|line| line.chars().count() + 1).sum();
    before + column
}

/// How many code points of `text`, from `offset` on, belong together: a name with the dot before it, an
/// operator, a bracket.
#[must_use]
pub fn token_length(text: &str, offset: usize) -> usize {
    let rest: Vec<char> = text.chars().skip(offset).take(256).collect();
    let is_name = |c: &&char| c.is_alphanumeric() || **c == '_';
    let name_from = |n: usize| rest.iter().skip(n).take_while(is_name).count();
    match rest.first() {
        Some('.') => {
            let mark = 1 + usize::from(rest.get(1) == Some(&'?'));
            mark + name_from(mark)
        }
        Some(c) if c.is_alphanumeric() || *c == '_' => name_from(0),
        Some('=' | '!' | '<' | '>' | '&' | '|') => match rest.get(1) {
            Some('=' | '&' | '|') => 2,
            _ => 1,
        },
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_of_several_kinds_are_taken_apart() {
        let text = "apps/v1, Kind=Deployment: ERROR: <input>:1:12: undefined field 'replica'\n \
                    | object.spec.replica == 'ERROR: <input>:1:1: x'\n | ...........^\nERROR: \
                    <input>:2:3: found no matching overload for '_+_' applied to '(int, string)'\n | \
                    1 + 'a'\n | ..^\n\n/v1, Kind=Pod: ERROR: <input>:-1:0: too: long\n";
        let issue = |kind: &str, at, message: &str| Issue {
            kind: Some(kind.to_owned()),
            at,
            message: message.to_owned(),
        };
        assert_eq!(
            issues(text),
            [
                issue(
                    "apps/v1, Kind=Deployment",
                    Some((1, 11)),
                    "undefined field 'replica'"
                ),
                issue(
                    "apps/v1, Kind=Deployment",
                    Some((2, 2)),
                    "found no matching overload for '_+_' applied to '(int, string)'"
                ),
                issue("/v1, Kind=Pod", None, "too: long"),
            ]
        );
    }

    #[test]
    fn compilation_errors_are_taken_apart() {
        let text = "compilation failed: ERROR: <input>:1:4: Syntax error: a\nb\n | 1 +\n | ...^";
        let [only] = &issues(text)[..] else {
            panic!("one issue")
        };
        assert_eq!(
            (only.at, &*only.message),
            (Some((1, 3)), "Syntax error: a b")
        );
        let [only] = &issues("must evaluate to bool but got int")[..] else {
            panic!("one issue")
        };
        assert_eq!((only.at, rule(&only.message, "x")), (None, "result-type"));
    }

    #[test]
    fn tokens_are_names_and_operators() {
        for (text, offset, length) in [
            ("a.b.c_1 == 2", 3, 4),
            ("a.?b", 1, 3),
            ("a <= 5", 2, 2),
            ("a < 5", 2, 1),
            ("foo(1)", 0, 3),
            ("foo(1)", 3, 1),
            ("1 +", 3, 1),
        ] {
            assert_eq!(token_length(text, offset), length, "{text} {offset}");
        }
        assert_eq!(offset("aé\nbc", (2, 1)), 4);
    }
}
