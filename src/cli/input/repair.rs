//! Repairs of documents that are not valid YAML, mostly because a CEL expression is not quoted.
//!
//! Each round reads the document, and repairs the line with the error or a line above it. A repair is kept only if the
//! next error, if any, is further down. All errors of a document become problems. Their edits are kept only if they make
//! the whole document readable.

use std::borrow::Cow;
use std::ops::Range;

use goyaml::{Copies, YamlError};

use crate::cel::syntax;
use crate::version::KubernetesVersion;

/// Maximum number of errors that are repaired in a document.
const MAX_ERRORS: usize = 30;

/// Maximum number of lines above an error that may be its cause.
const MAX_LINES: usize = 100;

/// Maximum number of repairs that are tried for an error.
const MAX_TRIES: usize = 8;

/// Maximum size of a document that is repaired, in bytes.
pub(super) const MAX_BYTES: usize = 256 << 10;

/// Maximum number of syntax nodes of an expression.
const MAX_NODES: usize = 10_000;

/// Maximum length of a value in a help text, in characters.
const MAX_SHOWN: usize = 100;

/// The fields with CEL expressions.
const EXPRESSIONS: [&str; 4] = ["expression", "messageExpression", "valueExpression", "rule"];

/// The other fields whose values are always strings.
const STRINGS: [&str; 2] = ["message", "description"];

pub(super) const QUOTE_HELP: &str =
    "quote the whole value, or write it on the next lines after `|-`";

/// A repair of one line, or of one value of several lines.
pub(super) struct Repair {
    /// The replaced bytes.
    pub(super) bytes: Range<usize>,
    pub(super) text: String,
    /// The byte offset of the mistake.
    pub(super) at: usize,
    pub(super) message: String,
    pub(super) help: String,
}

/// Returns true if a line contains the key of an expression.
pub(super) fn is_of_expression(line: &str) -> bool {
    let mut words = line.split([' ', '{', ',', '-']);
    words.any(|word| EXPRESSIONS.contains(&word.trim_end_matches(':')) && word.ends_with(':'))
}

/// Returns the repairs of a document, in the order of the errors, and the byte offset and message of the first error
/// that cannot be repaired. All byte offsets refer to the original document.
pub(super) fn repairs(written: &str) -> (Vec<Repair>, Option<(usize, String)>) {
    let mut repairs: Vec<Repair> = Vec::new();
    let mut text = written.to_owned();
    let mut copies = Copies::default();
    loop {
        let Err(error) = goyaml::read(&text, &mut copies) else {
            return (repairs, None);
        };
        let next = (repairs.len() < MAX_ERRORS)
            .then(|| repair(&text, &error, &mut copies))
            .flatten()
            .and_then(|(repair, repaired)| Some((as_written(&repairs, repair)?, repaired)));
        let Some((repair, repaired)) = next else {
            let at = byte_of(&text, &error);
            let at = written_byte(&repairs, at).unwrap_or_default();
            return (repairs, Some((at, error.message)));
        };
        repairs.push(repair);
        text = repaired;
    }
}

/// Converts the byte offsets of a repair to offsets in the original document. Returns `None` if the repair overlaps
/// another repair.
fn as_written(repairs: &[Repair], repair: Repair) -> Option<Repair> {
    let bytes =
        written_byte(repairs, repair.bytes.start)?..written_byte(repairs, repair.bytes.end)?;
    let overlaps = |other: &Repair| bytes.start < other.bytes.end && other.bytes.start < bytes.end;
    (!repairs.iter().any(overlaps)).then_some(())?;
    Some(Repair {
        at: written_byte(repairs, repair.at)?,
        bytes,
        ..repair
    })
}

/// Converts a byte offset in the repaired document to an offset in the original document. Returns `None` for a byte
/// within a repair.
fn written_byte(repairs: &[Repair], byte: usize) -> Option<usize> {
    let mut sorted: Vec<&Repair> = repairs.iter().collect();
    sorted.sort_by_key(|repair| repair.bytes.start);
    let mut at = byte;
    for repair in sorted {
        if at <= repair.bytes.start {
            break;
        }
        let end = repair.bytes.start + repair.text.len();
        if at < end {
            return None;
        }
        at = at - repair.text.len() + repair.bytes.len();
    }
    Some(at)
}

fn byte_of(text: &str, error: &YamlError) -> usize {
    let start = lines(text)
        .get(error.line - 1)
        .map_or(text.len(), |it| it.start);
    let rest = text.get(start..).unwrap_or_default();
    let column = rest.char_indices().nth(error.column.saturating_sub(1));
    start + column.map_or(rest.len(), |(at, _)| at)
}

/// Returns the byte range of each line, without its line break.
fn lines(text: &str) -> Vec<Range<usize>> {
    let mut start = 0;
    let parts = text.split('\n').map(|line| {
        let bytes = start..start + line.trim_end_matches('\r').len();
        start += line.len() + 1;
        bytes
    });
    parts.collect()
}

/// Repairs the cause of `error`. Returns the repair and the repaired document.
fn repair(text: &str, error: &YamlError, copies: &mut Copies) -> Option<(Repair, String)> {
    // An error about aliases is not a syntax error, so no repair is possible.
    if error.message.contains("aliases") {
        return None;
    }
    let lines = lines(text);
    let last = error.line.checked_sub(1)?.min(lines.len().checked_sub(1)?);
    let mut n_tries = 0;
    for n in (last.saturating_sub(MAX_LINES)..=last).rev() {
        let repairs = [
            spaces_for_tabs(text, &lines, n, "  "),
            spaces_for_tabs(text, &lines, n, "    "),
            missing_space(text, &lines, n),
            quoted_value(text, &lines, n),
        ];
        for repair in repairs.into_iter().flatten() {
            n_tries += 1;
            if n_tries > MAX_TRIES {
                return None;
            }
            let (before, after) = (
                text.get(..repair.bytes.start)?,
                text.get(repair.bytes.end..)?,
            );
            let repaired = format!("{before}{}{after}", repair.text);
            let n_added = repair.text.matches('\n').count();
            let n_removed = text.get(repair.bytes.clone())?.matches('\n').count();
            let is_further = match goyaml::read(&repaired, copies) {
                Ok(_) => true,
                Err(next) => {
                    let line = (next.line + n_removed).saturating_sub(n_added);
                    line > error.line || line == error.line && n < last && next != *error
                }
            };
            if is_further {
                return Some((repair, repaired));
            }
        }
    }
    None
}

/// Replaces each tab with `spaces` in the indentation of the line `n` and of adjacent lines with tabs.
fn spaces_for_tabs(text: &str, lines: &[Range<usize>], n: usize, spaces: &str) -> Option<Repair> {
    let indentation = |n: usize| {
        let line = text.get(lines.get(n)?.clone())?;
        line.get(..line.len() - line.trim_start_matches([' ', '\t']).len())
    };
    let has_tab = |n: usize| indentation(n).is_some_and(|it| it.contains('\t'));
    has_tab(n).then_some(())?;
    let first = (0..=n).rev().take_while(|n| has_tab(*n)).last()?;
    let last = (n..lines.len()).take_while(|n| has_tab(*n)).last()?;
    let bytes = lines.get(first)?.start..lines.get(last)?.start + indentation(last)?.len();
    let mut replacement = String::new();
    for n in first..=last {
        let indentation = indentation(n)?;
        replacement.push_str(&indentation.replace('\t', spaces));
        if n < last {
            let start = lines.get(n)?.start + indentation.len();
            replacement.push_str(text.get(start..lines.get(n + 1)?.start)?);
        }
    }
    Some(Repair {
        at: bytes.start + indentation(first)?.find('\t')?,
        bytes,
        text: replacement,
        message: "tabs are not allowed as indentation".to_owned(),
        help: format!("write {} spaces instead of each tab", spaces.len()),
    })
}

/// Inserts the space that is missing after `-` or after the `:` of a key.
fn missing_space(text: &str, lines: &[Range<usize>], n: usize) -> Option<Repair> {
    let bytes = lines.get(n)?.clone();
    let line = text.get(bytes.clone())?;
    let content = line.trim_start();
    let start = bytes.end - content.len();
    let is_name = |c: char| c.is_ascii_alphanumeric();
    let after_dash = content.strip_prefix('-');
    let (at, mark) = match after_dash {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_alphabetic()) => (start + 1, '-'),
        _ => {
            let key = content.trim_start_matches("- ");
            let key_start = bytes.end - key.len();
            let n_key = key.find(|c| !is_name(c)).filter(|n| *n > 0)?;
            let rest = key.get(n_key..)?.strip_prefix(':')?;
            let is_joined = rest.starts_with(|c: char| !c.is_whitespace() && c != ':' && c != '/');
            is_joined.then_some((key_start + n_key + 1, ':'))?
        }
    };
    let before = text.get(start..at)?.trim_start_matches("- ");
    let after = text.get(at..bytes.end)?;
    let word = after
        .find(|c| !is_name(c))
        .map_or(after, |n| after.get(..n).unwrap_or(after));
    Some(Repair {
        bytes: at..at,
        text: " ".to_owned(),
        at: at - 1,
        message: format!("a space is missing after `{mark}`"),
        help: format!("write `{before} {word}`"),
    })
}

/// A scalar that begins on the line of its key or item.
struct Value<'t> {
    key: Option<&'t str>,
    bytes: Range<usize>,
    text: &'t str,
    /// The comment after the value, with its `#`.
    comment: Option<&'t str>,
}

/// Returns the value that begins on the line `n`, with its continuation lines but without a comment.
fn value<'t>(text: &'t str, lines: &[Range<usize>], n: usize) -> Option<Value<'t>> {
    let bytes = lines.get(n)?.clone();
    let line = text.get(bytes.clone())?;
    let indent_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
    let mut rest = line.trim_start();
    let mut dash = None;
    while let Some(item) = rest.strip_prefix("- ") {
        dash = Some(line.len() - rest.len());
        rest = item.trim_start();
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '/');
    let n_key = rest.find(|c| !is_name(c)).unwrap_or(rest.len());
    let (name, after) = rest.split_at_checked(n_key)?;
    let (key, indent, content) = match after.strip_prefix(": ") {
        Some(content) if !name.is_empty() => (Some(name), line.len() - rest.len(), content),
        _ => (None, dash?, rest),
    };
    let content = content.trim_start();
    if content.is_empty() || content.starts_with(['#', '|', '>']) {
        return None;
    }
    let start = bytes.end - content.len();
    let mut end = bytes.end;
    for next in lines.get(n + 1..)? {
        let line = text.get(next.clone())?;
        if line.trim().is_empty() {
            continue;
        }
        if indent_of(line) <= indent || line.trim_start().starts_with('#') {
            break;
        }
        end = next.end;
    }
    let whole = text.get(start..end)?;
    let end = comment_start(whole).map_or(end, |at| start + at);
    let value = text.get(start..end)?.trim_end();
    // If lines of the value follow a comment, a repair would lose these lines.
    let is_whole = !text.get(end..start + whole.len())?.contains('\n');
    is_whole.then_some(Value {
        key,
        bytes: start..start + value.len(),
        text: value,
        comment: text
            .get(end..start + whole.len())
            .filter(|it| !it.is_empty()),
    })
}

/// Returns the byte offset of the first comment outside of quotes.
fn comment_start(text: &str) -> Option<usize> {
    let (mut quote, mut previous) = (None, ' ');
    for (at, c) in text.char_indices() {
        match quote {
            None if c == '#' && previous.is_whitespace() => return Some(at),
            None if matches!(c, '\'' | '"') => quote = Some(c),
            Some(open) if open == c && previous != '\\' => quote = None,
            _ => {}
        }
        previous = c;
    }
    None
}

/// Quotes the value that begins on the line `n`, if it is not valid YAML.
fn quoted_value(text: &str, lines: &[Range<usize>], n: usize) -> Option<Repair> {
    let value = value(text, lines, n)?;
    let alone = format!("a: {}", value.text);
    goyaml::read(&alone, &mut Copies::default()).err()?;
    let key = value.key.unwrap_or_default();
    let is_expression = EXPRESSIONS.contains(&key);
    if let Some(repair) = quoted_stars(&value).filter(|_| !is_expression) {
        return Some(repair);
    }
    let first = value.text.chars().next()?;
    let is_string = is_expression || STRINGS.contains(&key);
    let (offset, message) = cause(value.text, first)?;
    // Unlike an expression or a message, another value may be a list or an object, or begin with a tag, an anchor or an
    // alias.
    let second = value.text.chars().nth(1);
    let has_name = second.is_some_and(|c| c.is_ascii_alphanumeric());
    let is_text =
        matches!(first, '\'' | '"' | '%' | '@' | '`') || matches!(first, '&' | '*') && !has_name;
    if !is_string && !is_text {
        return None;
    }
    let content = content(value.text, is_expression)?;
    let mut bytes = value.bytes.clone();
    let (replacement, help) = if content.contains('\n') {
        let further = content
            .split('\n')
            .skip(1)
            .filter(|line| !line.trim().is_empty());
        let indents = further.map(|line| line.len() - line.trim_start_matches(' ').len());
        let indent = " ".repeat(indents.min()?);
        let style = if is_expression { "|-" } else { ">-" };
        // In a block scalar, a comment is only possible on the first line.
        let comment = value
            .comment
            .map(|comment| format!(" {comment}"))
            .unwrap_or_default();
        if !comment.is_empty() {
            let rest = text.get(bytes.end..)?;
            bytes.end += rest.find('\n').unwrap_or(rest.len());
        }
        (
            format!("{style}{comment}\n{indent}{content}"),
            format!("write `{key}: {style}`, and the whole value on the next lines"),
        )
    } else {
        let quoted = quoted(&content)?;
        let is_shown = quoted.chars().count() <= MAX_SHOWN && !quoted.contains('`');
        let help = if !is_shown {
            QUOTE_HELP.to_owned()
        } else if content.len() == value.text.len() {
            format!("quote the whole value: write `{quoted}`")
        } else {
            format!("write `{quoted}`")
        };
        (quoted, help)
    };
    Some(Repair {
        at: value.bytes.start + offset,
        bytes,
        text: replacement,
        message,
        help,
    })
}

/// Quotes the items of a list that begin with `*`, such as `[*]`.
fn quoted_stars(value: &Value<'_>) -> Option<Repair> {
    let items = value.text.strip_prefix('[')?.strip_suffix(']')?;
    (!items.contains(['[', '{', '\'', '"', '\n'])).then_some(())?;
    let items = items.split(',').map(|item| {
        let name = item.trim();
        let rest = name.strip_prefix('*');
        let is_star = rest.is_some_and(|it| !it.starts_with(|c: char| c.is_ascii_alphanumeric()));
        if is_star {
            item.replace(name, &format!("\"{name}\""))
        } else {
            item.to_owned()
        }
    });
    let text = format!("[{}]", items.collect::<Vec<_>>().join(","));
    (text != value.text).then_some(())?;
    Some(Repair {
        at: value.bytes.start + value.text.find('*')?,
        bytes: value.bytes.clone(),
        help: format!("write `{text}`"),
        text,
        message: "`*` begins an alias".to_owned(),
    })
}

/// Returns the byte offset and the description of the mistake in a value that begins with `first`.
fn cause(value: &str, first: char) -> Option<(usize, String)> {
    let at_start = |message: &str| Some((0, message.to_owned()));
    match first {
        '\'' | '"' => match closing_quote(value, first) {
            None => Some((0, format!("missing closing `{first}`"))),
            Some(at) => {
                let rest = value.get(at + 1..)?;
                let at = value.len() - rest.trim_start().len();
                Some((at, "text after the closing quote of a value".to_owned()))
            }
        },
        '!' => at_start("`!` begins a tag"),
        '&' => at_start("`&` begins an anchor"),
        '*' => at_start("`*` begins an alias"),
        '[' | '{' => at_start(&format!(
            "a value that begins with `{first}` is a list or an object"
        )),
        '%' | '@' | '`' => Some((0, format!("a value cannot begin with {first:?}"))),
        '-' | '?' => Some((0, format!("a value cannot begin with `{first} `"))),
        _ => {
            let at = value.find(": ").or_else(|| value.find(":\n"));
            let at = at.or_else(|| value.ends_with(':').then(|| value.len() - 1))?;
            Some((
                at,
                "`:` and a space within a value without quotes".to_owned(),
            ))
        }
    }
}

/// Returns the byte offset of the quote that closes a value.
fn closing_quote(value: &str, quote: char) -> Option<usize> {
    let mut chars = value.char_indices().skip(1).peekable();
    while let Some((at, c)) = chars.next() {
        if c == '\\' && quote == '"' {
            chars.next();
        } else if c == quote {
            if quote == '\'' && chars.next_if(|(_, next)| *next == quote).is_some() {
                continue;
            }
            return Some(at);
        }
    }
    None
}

/// Returns the intended string of a value. An initial quote may belong to YAML or to the expression. Returns `None` if
/// escapes make the intention unclear.
fn content(value: &str, is_expression: bool) -> Option<Cow<'_, str>> {
    let Some(quote) = value.chars().next().filter(|c| matches!(c, '\'' | '"')) else {
        return Some(value.into());
    };
    if is_expression && parses(value) {
        return Some(value.into());
    }
    let inner = value.get(1..)?;
    let is_open = !inner.contains(quote);
    let inner = inner.strip_suffix(quote).or(is_open.then_some(inner));
    let Some(inner) = inner else {
        return Some(value.into());
    };
    if is_expression {
        let has_escape = quote == '"' && inner.contains('\\');
        return (!has_escape).then_some(if parses(inner) { inner } else { value }.into());
    }
    let has_escape = inner.contains(if quote == '"' { "\\" } else { "''" });
    (!has_escape).then_some(inner.into())
}

/// Returns a string as a quoted scalar, if possible without escape sequences. `None` if it has control characters.
fn quoted(value: &str) -> Option<String> {
    (!value.contains(char::is_control)).then_some(())?;
    let has_other = value.contains(['"', '\\']);
    Some(if has_other && !value.contains('\'') {
        format!("'{value}'")
    } else {
        format!("\"{}\"", value.replace('\\', "\\\\").replace('"', "\\\""))
    })
}

/// Returns true if `text` is a CEL expression without syntax errors.
fn parses(text: &str) -> bool {
    let behavior = KubernetesVersion::NEWEST.behavior().language;
    syntax::parses(text, behavior, MAX_NODES)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::input::values;

    /// Returns the expression in the repaired document. `None` if the document cannot be repaired.
    fn repaired_expression(value: &str) -> Option<String> {
        let text = format!("kind: P\nspec:\n  - expression: {value}\n    message: m\n");
        let (repairs, error) = repairs(&text);
        error.is_none().then_some(())?;
        let [repair] = &repairs[..] else {
            panic!("{value}: {} repairs", repairs.len())
        };
        let mut fixed = text.clone();
        fixed.replace_range(repair.bytes.clone(), &repair.text);
        let values = values(&fixed);
        let [Ok(document)] = &values[..] else {
            panic!("{values:?}")
        };
        assert_eq!(document["spec"][0]["message"], "m");
        Some(document["spec"][0]["expression"].as_str()?.to_owned())
    }

    #[test]
    fn repaired_value_has_the_intended_content() {
        for (value, expected) in [
            ("'a' in object.x", Some("'a' in object.x")),
            ("'a' == \"b\" # c", Some("'a' == \"b\"")),
            (
                "!has(a) || b.matches('\\d')",
                Some("!has(a) || b.matches('\\d')"),
            ),
            ("object.x == 'a: #b'", Some("object.x == 'a: #b'")),
            ("'object.x == 'a''", Some("object.x == 'a'")),
            ("\"object.x == \"a\"\"", Some("object.x == \"a\"")),
            ("'object.x == 1", Some("object.x == 1")),
            ("[1].all(x, x == 1)", Some("[1].all(x, x == 1)")),
            ("has(a) ?\n      'b' : 'c' # d", Some("has(a) ?\n'b' : 'c'")),
            // The rest of the value after the comment would be lost.
            ("'a' in x && # note\n      y", None),
            // The backslashes may be those of YAML or those of CEL.
            ("\"a.matches(\"\\\\d\")\"", None),
            ("\"a.matches(\"\\d\")\"", None),
        ] {
            assert_eq!(repaired_expression(value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn lists_and_objects_are_not_quoted() {
        for text in [
            "labels: app: web\n",
            "a: &b c: d\n",
            "a: *b\n",
            "a: !b c: d\n",
            "spec: {a: b} c\n",
            "- {expression: 'a' in x, b: c}\n",
            "a: [b\n",
        ] {
            let (repairs, error) = repairs(text);
            assert!(repairs.is_empty() && error.is_some(), "{text}");
        }
    }

    #[test]
    fn repairing_long_document_stops_at_limit() {
        let text = "- 'a' b: c\n  x: [\n".repeat(2_000);
        let (repairs, error) = repairs(&text);
        assert!(repairs.len() <= MAX_ERRORS && error.is_some());
    }
}
