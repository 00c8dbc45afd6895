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
    /// Whether the expression can be evaluated all the same: it stands under `WARNING`, not `ERROR`.
    pub is_harmless: bool,
}

/// What a text says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Issues {
    /// The issues, in order.
    pub issues: Vec<Issue>,
    /// What is said of all of them: how many are left out, or of the kinds as a whole.
    pub notes: Vec<String>,
}

/// What stands before the place of an issue, and whether the expression can be evaluated all the same.
const STARTS: [(&str, bool); 2] = [("ERROR: <input>:", false), ("WARNING: <input>:", true)];

/// Takes `text` apart.
#[must_use]
pub fn parse(text: &str) -> Issues {
    let mut found = Issues::default();
    let mut kind: Option<String> = None;
    // A message may go on in further lines, up to the source below it.
    let mut is_open = true;
    for line in text.lines() {
        if line.starts_with(" | ") || line.is_empty() {
            is_open = false;
        } else if let Some((of, issue)) = start(line) {
            kind = (!of.is_empty()).then(|| of.to_owned()).or(kind);
            found.issues.push(Issue {
                kind: kind.clone(),
                ..issue
            });
            is_open = true;
        } else {
            match found.issues.last_mut() {
                Some(last) if is_open => {
                    last.message.push(' ');
                    last.message.push_str(line.trim());
                }
                Some(_) => found.notes.push(line.trim().to_owned()),
                None => found.issues.push(Issue {
                    kind: None,
                    at: None,
                    message: line.to_owned(),
                    is_harmless: false,
                }),
            }
        }
    }
    found
}

/// The issue that `line` begins, with the kind that stands before it, empty where none does.
fn start(line: &str) -> Option<(&str, Issue)> {
    STARTS.iter().find_map(|(start, is_harmless)| {
        let (before, issue) = line.split_once(start)?;
        let kind = match before {
            "" | "compilation failed: " => "",
            kind => kind
                .strip_suffix(": ")
                .filter(|kind| kind.contains(", Kind="))?,
        };
        let mut parts = issue.splitn(3, ':');
        let line: i64 = parts.next()?.parse().ok()?;
        let column: i64 = parts.next()?.parse().ok()?;
        let line = usize::try_from(line).ok().filter(|line| *line > 0);
        let issue = Issue {
            kind: None,
            at: line.zip(usize::try_from(column - 1).ok()),
            message: parts.next()?.trim().to_owned(),
            is_harmless: *is_harmless,
        };
        Some((kind, issue))
    })
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
                    1 + 'a'\n | ..^\nWARNING: <input>:1:2: never\n | has(a.b)\n | .^\n\n/v1, \
                    Kind=Pod: ERROR: <input>:-1:0: too: long\n\nnone of the 2 kinds\n";
        let issue = |kind: &str, at, message: &str, is_harmless| Issue {
            kind: Some(kind.to_owned()),
            at,
            message: message.to_owned(),
            is_harmless,
        };
        let found = parse(text);
        let deployment = "apps/v1, Kind=Deployment";
        assert_eq!(
            found.issues,
            [
                issue(
                    deployment,
                    Some((1, 11)),
                    "undefined field 'replica'",
                    false
                ),
                issue(
                    deployment,
                    Some((2, 2)),
                    "found no matching overload for '_+_' applied to '(int, string)'",
                    false
                ),
                issue(deployment, Some((1, 1)), "never", true),
                issue("/v1, Kind=Pod", None, "too: long", false),
            ]
        );
        assert_eq!(found.notes, ["none of the 2 kinds"]);
    }

    #[test]
    fn compilation_errors_are_taken_apart() {
        let text = "compilation failed: ERROR: <input>:1:4: Syntax error: a\nb\n | 1 +\n | ...^\n2 \
                    more errors were truncated";
        let found = parse(text);
        let [only] = &found.issues[..] else {
            panic!("one issue")
        };
        assert_eq!(
            (only.at, &*only.message),
            (Some((1, 3)), "Syntax error: a b")
        );
        assert_eq!(found.notes, ["2 more errors were truncated"]);
        let found = parse("must evaluate to bool but got int");
        let [only] = &found.issues[..] else {
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
