//! Generates strings that match a regular expression.

use regexp::{MemoryLimit, Node, NodeId, NodeKind, Program, Regex};

/// Maximum length of a generated string, in bytes.
const MAX_TEXT: usize = 200;

/// Maximum nesting of a pattern.
const MAX_DEPTH: usize = 60;

/// Maximum number of repetitions in a generated string, unless the pattern requires more.
const MAX_REPETITIONS: u32 = 63;

/// Maximum number of generated strings for one pattern. Each string uses different alternatives of `|`.
const MAX_TEXTS: usize = 4;

/// Returns a match of `pattern`. `None` if no generated string matches.
pub(crate) fn matching(pattern: &str) -> Option<String> {
    all_matching(pattern).into_iter().next()
}

/// Returns matches of `pattern` that use different alternatives and repetitions.
pub(crate) fn all_matching(pattern: &str) -> Vec<String> {
    let regex = regexp::parse(pattern).ok();
    let program = Program::for_trials(pattern).ok();
    let Some((regex, program)) = regex.zip(program) else {
        return Vec::new();
    };
    let texts = (0..MAX_TEXTS).filter_map(|choice| {
        let mut out = String::new();
        write(&regex, regex.root(), choice, &mut out, 0).then_some(out)
    });
    let is_match = |text: &String| program.is_match(text, &MemoryLimit) == Ok(true);
    let texts = texts.filter(is_match);
    let mut unique: Vec<String> = Vec::new();
    for text in texts.map(|text| completed(text, is_match)) {
        if !unique.contains(&text) {
            unique.push(text);
        }
    }
    unique
}

/// Adds a letter before or after a match that does not begin or end with a letter or digit, such as `dev-`, if the
/// result still matches. Names and values of labels begin and end with a letter or digit.
fn completed(text: String, is_match: impl Fn(&String) -> bool) -> String {
    let is_incomplete = |end: Option<char>| end.is_some_and(|c| !c.is_ascii_alphanumeric());
    let start = if is_incomplete(text.chars().next()) {
        "a"
    } else {
        ""
    };
    let end = if is_incomplete(text.chars().last()) {
        "a"
    } else {
        ""
    };
    let ends = [(start, end), (start, ""), ("", end)].into_iter();
    let mut candidates = ends.map(|(start, end)| format!("{start}{text}{end}"));
    candidates.find(is_match).unwrap_or(text)
}

/// Appends a match of the node `id`. Returns false if the node has no match.
fn write(regex: &Regex, id: NodeId, choice: usize, out: &mut String, depth: usize) -> bool {
    if depth > MAX_DEPTH || out.len() > MAX_TEXT {
        return false;
    }
    let node: &Node = regex.node(id);
    let first = |out: &mut String| {
        let part = node.parts.first();
        part.is_some_and(|part| write(regex, *part, choice, out, depth + 1))
    };
    match &node.kind {
        NodeKind::Literal(runes) => {
            let text: Option<String> = runes.iter().map(|rune| char::from_u32(*rune)).collect();
            out.push_str(text.as_deref().unwrap_or_default());
            text.is_some()
        }
        NodeKind::Class(class) => {
            let ranges = class.class.ranges();
            let usual = ['a', '1', 'A', '-', '.', '/', ':', ' '].into_iter();
            let usual = usual.map(u32::from).find(|rune| ranges.contains(*rune));
            let any = ranges.as_slice().iter().map(|(low, _)| *low);
            let last = ranges.as_slice().last().map(|(_, high)| *high);
            let last = last.filter(|rune| choice > 0 && *rune < 0x7f);
            let mut all = last.into_iter().chain(usual).chain(any);
            let character = all.find_map(char::from_u32);
            out.extend(character);
            character.is_some()
        }
        NodeKind::AnyChar | NodeKind::AnyCharNotNewline => {
            out.push('a');
            true
        }
        NodeKind::Empty
        | NodeKind::BeginLine
        | NodeKind::EndLine
        | NodeKind::BeginText
        | NodeKind::EndText
        | NodeKind::WordBoundary
        | NodeKind::NoWordBoundary => true,
        NodeKind::Star | NodeKind::Quest => choice == 0 || first(out),
        NodeKind::Capture(_) | NodeKind::Plus => first(out),
        NodeKind::Repeat { min, max } => {
            let max = max.filter(|max| choice > 0 && *max <= MAX_REPETITIONS);
            (0..max.unwrap_or(*min)).all(|_| first(out))
        }
        NodeKind::Concat => {
            let parts = node.parts.iter();
            let mut written = parts.map(|part| write(regex, *part, choice, out, depth + 1));
            written.all(|is_written| is_written)
        }
        NodeKind::Alternate => {
            let n = choice.checked_rem(node.parts.len()).unwrap_or(0);
            let part = node.parts.get(n);
            part.is_some_and(|part| write(regex, *part, choice, out, depth + 1))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sample_string_matches_its_pattern() {
        for pattern in [
            r"\bjcmd\b",
            r"^[a-z]([-a-z0-9]*[a-z0-9])?$",
            r"^(?:v[0-9]+|latest)\.[0-9]{2,3}$",
            "(?i)NoNe",
            r"@sha256:[0-9a-f]{64}$",
        ] {
            let text = matching(pattern).unwrap();
            let program = Program::new(pattern).unwrap();
            assert_eq!(program.is_match(&text, &MemoryLimit), Ok(true), "{pattern}");
        }
        assert_eq!(all_matching("^[a-z]{2,9}$"), ["aa", "zzzzzzzzz"]);
        assert_eq!(all_matching("^(dev|test)-"), ["dev-a", "test-a"]);
        assert_eq!(all_matching("-prod$"), ["a-prod"]);
        assert_eq!(all_matching("^-$"), ["-"]);
        assert_eq!(matching("[^\\x00-\\x{10FFFF}]"), None);
        assert_eq!(matching("a("), None);
    }
}
