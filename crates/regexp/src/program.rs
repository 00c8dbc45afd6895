//! Matching: a pattern made ready, and what it finds.
//!
//! Go's tree is translated for the engines of `regex-automata`, which take time linear in the text. What
//! would be too large or too deep for them runs on a machine of our own ([`super::machine`]), which takes
//! the memory that Go's takes. Both prefer what Go prefers: the leftmost match, and of several the one that
//! a backtracking search finds first.
//!
//! Source: Go `regexp/regexp.go` (`MatchString`, `FindString`, `FindAllString`).

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use regex_automata::nfa::thompson::WhichCaptures;
use regex_automata::{Input, meta};

use super::machine::Machine;
use super::{SyntaxError, SyntaxErrorCode, hir};

/// The greatest number of bytes that the engines of `regex-automata` may use for a pattern.
const ENGINE_SIZE: usize = 4 << 20;

/// The greatest number of bytes that a search may use to remember states.
const ENGINE_CACHE: usize = 2 << 20;

/// A regular expression, ready to match.
#[derive(Debug)]
pub struct Program(Engine);

#[derive(Debug)]
enum Engine {
    Automata(meta::Regex),
    Machine(Machine),
}

/// The length of the longest pattern that is tried on the engines of `regex-automata`, in bytes. They would
/// turn most longer ones down, but only after much memory was spent on them.
const MAX_ENGINE_PATTERN: usize = 50_000;

/// The length of the longest pattern, in bytes; a longer one is an error of our own, with Go's text.
///
/// Go has no such limit, and takes hundreds of megabytes for what an object of the greatest size can hold.
/// Expressions are shorter by far.
const MAX_PATTERN: usize = 1_000_000;

impl Program {
    /// Makes `pattern` ready.
    ///
    /// # Errors
    ///
    /// The error that Go's `regexp.Compile` gives for the pattern, with its text. A pattern of more than a
    /// million bytes is too large.
    pub fn new(pattern: &str) -> Result<Self, SyntaxError> {
        if pattern.len() > MAX_PATTERN {
            let shown: String = pattern.chars().take(100).collect();
            return Err(SyntaxError::new(SyntaxErrorCode::Large, &shown));
        }
        let regex = super::parse(pattern)?;
        let config = meta::Config::new()
            .which_captures(WhichCaptures::Implicit)
            .nfa_size_limit(Some(ENGINE_SIZE))
            .onepass_size_limit(Some(ENGINE_SIZE))
            .hybrid_cache_capacity(ENGINE_CACHE);
        let is_short = pattern.len() <= MAX_ENGINE_PATTERN;
        let hir = is_short.then(|| hir::translate(&regex)).flatten();
        let automata = hir.and_then(|hir| {
            let mut builder = meta::Builder::new();
            builder.configure(config).build_from_hir(&hir).ok()
        });
        Ok(Self(automata.map_or_else(
            || Engine::Machine(Machine::new(&regex)),
            Engine::Automata,
        )))
    }

    /// As [`Self::new`], but on our own machine, for those who compare the two.
    ///
    /// # Errors
    ///
    /// As for [`Self::new`].
    pub fn on_machine(pattern: &str) -> Result<Self, SyntaxError> {
        let regex = super::parse(pattern)?;
        Ok(Self(Engine::Machine(Machine::new(&regex))))
    }

    /// Whether some part of `text` matches.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        match &self.0 {
            Engine::Automata(regex) => regex.is_match(text),
            Engine::Machine(machine) => machine.find(text, 0).is_some(),
        }
    }

    /// The first match at or behind `start`; what is before it is still seen by `^` and `\b`.
    fn find_at(&self, text: &str, start: usize) -> Option<Range<usize>> {
        match &self.0 {
            Engine::Automata(regex) => regex
                .find(Input::new(text).range(start..))
                .map(|found| found.range()),
            Engine::Machine(machine) => machine.find(text, start),
        }
    }

    /// The part of `text` that matches first.
    #[must_use]
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        text.get(self.find_at(text, 0)?)
    }

    /// The parts of `text` that match, one after the other; not more than `limit`, if there is one.
    ///
    /// An empty match right behind another does not count.
    ///
    /// Source: Go `regexp/regexp.go`, `Regexp.allMatches`.
    #[must_use]
    pub fn find_all<'t>(&self, text: &'t str, limit: Option<usize>) -> Vec<&'t str> {
        let limit = limit.unwrap_or(usize::MAX);
        let mut found = Vec::new();
        let mut start = 0;
        let mut previous_end = None;
        while found.len() < limit && start <= text.len() {
            let Some(range) = self.find_at(text, start) else {
                break;
            };
            let accepted = range.end != start || previous_end != Some(range.start);
            start = if range.end == start {
                start + width_at(text, start)
            } else {
                range.end
            };
            previous_end = Some(range.end);
            if accepted {
                found.extend(text.get(range));
            }
        }
        found
    }
}

/// The number of bytes of the character at `index`, or one at the end.
fn width_at(text: &str, index: usize) -> usize {
    text.get(index..)
        .and_then(|rest| rest.chars().next())
        .map_or(1, char::len_utf8)
}

/// The greatest number of patterns that are kept.
const MAX_KEPT: usize = 1_000;

/// The length of the longest pattern that is kept, in bytes.
const MAX_KEPT_LEN: usize = 1_000;

/// Patterns that were used lately, for those that are not known before an evaluation.
static KEPT: LazyLock<RwLock<HashMap<Box<str>, Arc<Program>>>> = LazyLock::new(RwLock::default);

/// `pattern` made ready, now or before.
///
/// # Errors
///
/// The error that Go's `regexp.Compile` gives for the pattern, with its text.
pub fn compiled(pattern: &str) -> Result<Arc<Program>, SyntaxError> {
    let kept = KEPT
        .read()
        .unwrap_or_else(PoisonError::into_inner)
        .get(pattern)
        .cloned();
    if let Some(program) = kept {
        return Ok(program);
    }
    let program = Arc::new(Program::new(pattern)?);
    if pattern.len() <= MAX_KEPT_LEN {
        let mut kept = KEPT.write().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= MAX_KEPT {
            kept.clear();
        }
        kept.insert(pattern.into(), Arc::clone(&program));
    }
    Ok(program)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both engines find `expected`, which is what Go finds.
    #[track_caller]
    fn check(pattern: &str, text: &str, expected: &[&str]) {
        let engines = [Program::new(pattern), Program::on_machine(pattern)];
        for program in engines.map(Result::unwrap) {
            assert_eq!(program.find_all(text, None), expected, "{program:?}");
            assert_eq!(program.find(text), expected.first().copied());
            assert_eq!(program.is_match(text), !expected.is_empty());
        }
    }

    #[test]
    fn leftmost_first() {
        check("a|ab", "abab", &["a", "a"]);
        check("ab|a", "abab", &["ab", "ab"]);
        check("a+?", "aaa", &["a", "a", "a"]);
        check("(a|b)*c", "abcab", &["abc"]);
        check("x{2,3}", "xxxxx", &["xxx", "xx"]);
        check("(?U)x{2,3}", "xxxxx", &["xx", "xx"]);
        check("(|a)*", "aa", &["", "", ""]);
        check("(|a)+", "aa", &["", "", ""]);
        check("(a?b??){2,}?", "ab", &["a", ""]);
    }

    #[test]
    fn empty_matches() {
        check("a*", "baac", &["", "aa", ""]);
        check("", "\u{e9}\u{1f600}", &["", "", ""]);
        check(
            "(\u{e9}{0,1}){2,}",
            "\u{e9}x\u{e9}a\u{e9}",
            &["\u{e9}", "\u{e9}", "\u{e9}"],
        );
        check("b*|a", "aab", &["", "", "b"]);
        check("[^\\x00-\\x{10FFFF}]", "a", &[]);
    }

    #[test]
    fn conditions() {
        check("(?m:^.*$)", "ab\n\nc", &["ab", "", "c"]);
        check("^.*$", "ab\nc", &[]);
        check("\\ba", "a a\u{e9}a", &["a", "a", "a"]);
        check("\\Ba", "aa a", &["a"]);
        check("a\\z", "aa", &["a"]);
    }

    #[test]
    fn classes() {
        check("(?i)k", "Kk\u{212a}", &["K", "k", "\u{212a}"]);
        check("(?i)[s]+", "sS\u{17f}", &["sS\u{17f}"]);
        check("\\w+", "a_1\u{e9}b", &["a_1", "b"]);
        check("\\pL+", "a1\u{e9}\u{4e00}", &["a", "\u{e9}\u{4e00}"]);
        check("(?s).", "\n", &["\n"]);
        check(".", "\n", &[]);
    }

    #[test]
    fn limits() {
        let program = Program::new("[ab]").unwrap();
        assert_eq!(program.find_all("abab", Some(3)), ["a", "b", "a"]);
        assert_eq!(program.find_all("abab", Some(0)), [""; 0]);
    }

    #[test]
    fn large_and_deep_patterns_match_too() {
        let large = Program::new(r"^(\pL{500}|\PL)\d?$").unwrap();
        assert!(matches!(large.0, Engine::Machine(_)));
        assert!(large.is_match(&"\u{e9}".repeat(500)));
        assert!(!large.is_match(&"\u{e9}".repeat(499)));
        let deep = format!("{}x{}", "(?:a|".repeat(400), ")b".repeat(400));
        let deep = Program::new(&deep).unwrap();
        assert!(deep.is_match(&format!("x{}", "b".repeat(400))));
    }

    #[test]
    fn what_is_used_again_is_not_made_again() {
        let (first, second) = (compiled("kept+").unwrap(), compiled("kept+").unwrap());
        assert!(Arc::ptr_eq(&first, &second));
        assert!(compiled("(").is_err());
    }
}
