//! Programs: patterns, and the engines that search for them.
//!
//! The engines of `regex-automata` search with a translation of Go's tree, in time that is linear in the length of
//! the input. If a pattern is too large or too deep for these engines, it runs on the built-in machine
//! ([`super::machine`]).
//!
//! Both kinds of engine find the match that Go finds: the leftmost match. If several matches start there, both find the
//! match that a backtracking search would find first.
//!
//! A pattern is parsed when its program is created. The first search builds the engine within the limits of the
//! [`EngineBudget`]. If the engine exceeds the budget, it is stored in a shared cache, or used for one search only.
//!
//! Source: Go `regexp/regexp.go` (`MatchString`, `FindString`, `FindAllString`).

use std::ops::Deref;
use std::sync::{Arc, OnceLock};

use super::budget::{EngineBudget, Reservation};
use super::engine::{Built, Engine, Search};
use super::limits::Limits;
use super::{SyntaxError, SyntaxErrorCode, cache, size};

pub use super::engine::MAX_TRIAL_INSTRUCTIONS;

/// Maximum length of a pattern in bytes. The error for a longer pattern is Go's error for large patterns.
///
/// Go has no such limit. It needs hundreds of megabytes for the largest pattern that fits into an object. Patterns in
/// expressions are much shorter.
const MAX_PATTERN: usize = 1_000_000;

/// A regular expression. The first search builds its engine.
#[derive(Debug)]
pub struct Program {
    pattern: Box<str>,
    /// The budget of the engine. A program without a budget uses the shared cache.
    budget: Option<Arc<EngineBudget>>,
    engine: OnceLock<Arc<Engine>>,
    /// True if all searches must run on the built-in machine.
    on_machine: bool,
}

enum Handle<'a> {
    Kept(&'a Engine),
    Shared(Arc<Engine>),
    Transient(Box<Engine>),
}

impl Deref for Handle<'_> {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        match self {
            Self::Kept(engine) => engine,
            Self::Shared(engine) => engine,
            Self::Transient(engine) => engine,
        }
    }
}

impl Program {
    /// Parses `pattern`. The engine of the program will be stored in the shared cache.
    ///
    /// # Errors
    ///
    /// Returns the error of Go's `regexp.Compile`, with Go's message, if the pattern is invalid or too large. A pattern
    /// of more than a million bytes is too large.
    pub fn new(pattern: &str) -> Result<Self, SyntaxError> {
        if pattern.len() > MAX_PATTERN {
            let shown: String = pattern.chars().take(100).collect();
            return Err(SyntaxError::new(SyntaxErrorCode::Large, &shown));
        }
        super::parse(pattern)?;
        Ok(Self {
            pattern: pattern.into(),
            budget: None,
            engine: OnceLock::new(),
            on_machine: false,
        })
    }

    /// Like [`Self::new`], but does not parse `pattern` if the shared cache contains its engine. Used for patterns that
    /// an evaluation computes.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn cached(pattern: &str) -> Result<Self, SyntaxError> {
        match cache::get(pattern) {
            Some(engine) => Ok(Self {
                pattern: pattern.into(),
                budget: None,
                engine: engine.into(),
                on_machine: false,
            }),
            None => Self::new(pattern),
        }
    }

    /// Like [`Self::new`], but for a few searches of short strings during an analysis. See
    /// [`EngineBudget::for_trials`].
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn for_trials(pattern: &str) -> Result<Self, SyntaxError> {
        Self::within(pattern, &Arc::new(EngineBudget::for_trials()))
    }

    /// Like [`Self::new`], but the program retains the engine within `budget`.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn within(pattern: &str, budget: &Arc<EngineBudget>) -> Result<Self, SyntaxError> {
        let budget = Some(Arc::clone(budget));
        Ok(Self {
            budget,
            ..Self::new(pattern)?
        })
    }

    /// Like [`Self::new`], but all searches run on the built-in machine. Used by tests that compare the engines.
    ///
    /// # Errors
    ///
    /// See [`Self::new`].
    pub fn on_machine(pattern: &str) -> Result<Self, SyntaxError> {
        Ok(Self {
            on_machine: true,
            ..Self::new(pattern)?
        })
    }

    /// Returns the engine. Builds it if necessary.
    fn engine<L: Limits>(&self, limits: &L) -> Result<Handle<'_>, L::Error> {
        if let Some(engine) = self.engine.get() {
            return Ok(Handle::Kept(engine));
        }
        self.new_engine(limits)
    }

    #[cold]
    fn new_engine<L: Limits>(&self, limits: &L) -> Result<Handle<'_>, L::Error> {
        if self.on_machine {
            return self.machine(limits);
        }
        let budget = self.budget.as_ref();
        if budget.is_some_and(|budget| budget.is_trial()) {
            return self.trial(limits);
        }
        if let Some(engine) = cache::get(&self.pattern) {
            return Ok(Handle::Shared(engine));
        }
        let regex = self.parsed(limits)?;
        let (engine, n_bytes) = match Engine::build((&self.pattern, &regex), limits)? {
            Built::New(engine, n_bytes) => (engine, n_bytes),
            Built::Transient(engine) => return Ok(Handle::Transient(Box::new(engine))),
        };
        if let Some(reservation) = budget.and_then(|owner| Reservation::kept(owner, n_bytes)) {
            let engine = engine.reserved(reservation);
            return Ok(Handle::Kept(self.engine.get_or_init(|| Arc::new(engine))));
        }
        if let Some(reservation) = cache::reserve(n_bytes) {
            let engine = engine.reserved(reservation);
            return Ok(Handle::Shared(cache::insert(&self.pattern, engine)));
        }
        limits.allocate(n_bytes)?;
        Ok(Handle::Transient(Box::new(engine)))
    }

    /// Parses the pattern a second time, because the program does not retain the tree.
    fn parsed<L: Limits>(&self, limits: &L) -> Result<super::Regex, L::Error> {
        limits.work(self.pattern.len().saturating_mul(16))?;
        // The pattern was parsed before, so this cannot fail.
        super::parse(&self.pattern).map_err(|_| limits.exceeded())
    }

    fn machine<L: Limits>(&self, limits: &L) -> Result<Handle<'_>, L::Error> {
        let regex = self.parsed(limits)?;
        let size = size::estimate(&regex);
        let engine = Engine::transient_machine(&regex, size, limits)?;
        Ok(Handle::Transient(Box::new(engine)))
    }

    /// Builds a small machine for one search of an analysis.
    fn trial<L: Limits>(&self, limits: &L) -> Result<Handle<'_>, L::Error> {
        let regex = self.parsed(limits)?;
        let engine = Engine::for_trial(&regex).ok_or_else(|| limits.exceeded())?;
        Ok(Handle::Transient(Box::new(engine)))
    }

    /// Calls `search` with an engine that is able to search the input.
    fn search<L: Limits, T>(
        &self,
        text: &str,
        limits: &L,
        search: impl FnOnce(&mut Search<'_>) -> Result<T, L::Error>,
    ) -> Result<T, L::Error> {
        let mut engine = self.engine(limits)?;
        if engine.exceeds_automaton_limit(text) {
            engine = self.machine(limits)?;
        }
        engine.search(search)
    }

    /// Returns true if a substring of the input matches.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub fn is_match<L: Limits>(&self, text: &str, limits: &L) -> Result<bool, L::Error> {
        self.search(text, limits, |search| search.is_match(text, limits))
    }

    /// Returns the first match in the input. Returns `None` if there is no match.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    pub fn find<'t, L: Limits>(
        &self,
        text: &'t str,
        limits: &L,
    ) -> Result<Option<&'t str>, L::Error> {
        let range = self.search(text, limits, |search| search.find_at(text, 0, limits))?;
        Ok(range.and_then(|range| text.get(range)))
    }

    /// Returns the successive matches in the input. If `n_max` is set, returns at most `n_max` matches. An empty match
    /// directly after another match is ignored.
    ///
    /// # Errors
    ///
    /// Returns the error of `limits` if they are exceeded or the search is interrupted.
    ///
    /// Source: Go `regexp/regexp.go`, `Regexp.allMatches`.
    pub fn find_all<'t, L: Limits>(
        &self,
        text: &'t str,
        n_max: Option<usize>,
        limits: &L,
    ) -> Result<Vec<&'t str>, L::Error> {
        let n_max = n_max.unwrap_or(usize::MAX);
        self.search(text, limits, |search| {
            let mut matches = Vec::new();
            let mut start = 0;
            let mut previous_end = None;
            while matches.len() < n_max && start <= text.len() {
                let Some(range) = search.find_at(text, start, limits)? else {
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
                    matches.extend(text.get(range));
                }
            }
            Ok(matches)
        })
    }
}

/// Returns the length in bytes of the character at `index`. Returns 1 at the end.
fn width_at(text: &str, index: usize) -> usize {
    text.get(index..)
        .and_then(|rest| rest.chars().next())
        .map_or(1, char::len_utf8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::limits::MemoryLimit;

    /// Asserts that both kinds of engine find `expected`, the matches that Go finds.
    #[track_caller]
    fn check(pattern: &str, text: &str, expected: &[&str]) {
        let engines = [Program::new(pattern), Program::on_machine(pattern)];
        for program in engines.map(Result::unwrap) {
            let matches = program.find_all(text, None, &MemoryLimit).unwrap();
            assert_eq!(matches, expected, "{program:?}");
            let first = program.find(text, &MemoryLimit);
            assert_eq!(first, Ok(expected.first().copied()));
            let is_match = program.is_match(text, &MemoryLimit);
            assert_eq!(is_match, Ok(!expected.is_empty()));
        }
    }

    #[test]
    fn leftmost_match_and_first_alternative_are_preferred() {
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
    fn empty_match_directly_after_match_is_skipped() {
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
    fn assertions_match_as_in_go() {
        check("(?m:^.*$)", "ab\n\nc", &["ab", "", "c"]);
        check("^.*$", "ab\nc", &[]);
        check("\\ba", "a a\u{e9}a", &["a", "a", "a"]);
        check("\\Ba", "aa a", &["a"]);
        check("a\\z", "aa", &["a"]);
    }

    #[test]
    fn classes_match_as_in_go() {
        check("(?i)k", "Kk\u{212a}", &["K", "k", "\u{212a}"]);
        check("(?i)[s]+", "sS\u{17f}", &["sS\u{17f}"]);
        check("\\w+", "a_1\u{e9}b", &["a_1", "b"]);
        check("\\pL+", "a1\u{e9}\u{4e00}", &["a", "\u{e9}\u{4e00}"]);
        check("(?s).", "\n", &["\n"]);
        check(".", "\n", &[]);
    }

    #[test]
    fn search_stops_at_maximum_number_of_matches() {
        let program = Program::new("[ab]").unwrap();
        let find_all = |n_max| program.find_all("abab", Some(n_max), &MemoryLimit).unwrap();
        assert_eq!(find_all(3), ["a", "b", "a"]);
        assert_eq!(find_all(0), [""; 0]);
    }

    #[track_caller]
    fn is_match(program: &Program, text: &str) -> bool {
        program.is_match(text, &MemoryLimit).unwrap()
    }

    #[test]
    fn large_or_deep_pattern_runs_on_machine() {
        let large = Program::new(r"^(\pL{500}|\PL)\d?$").unwrap();
        assert!(large.engine(&MemoryLimit).unwrap().is_machine());
        assert!(is_match(&large, &"\u{e9}".repeat(500)));
        assert!(!is_match(&large, &"\u{e9}".repeat(499)));
        let deep = format!("{}x{}", "(?:a|".repeat(400), ")b".repeat(400));
        let deep = Program::new(&deep).unwrap();
        assert!(is_match(&deep, &format!("x{}", "b".repeat(400))));
    }

    #[test]
    fn engine_of_common_pattern_is_automaton() {
        for pattern in [
            "^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$",
            r"^\pL+$",
            r"(?i)^\w+@\w+\.(com|org)$",
            "^.{0,253}$",
            r"^(\d{1,3}\.){3}\d{1,3}$",
        ] {
            let program = Program::new(pattern).unwrap();
            let engine = program.engine(&MemoryLimit).unwrap();
            assert!(!engine.is_machine(), "{pattern}");
        }
    }

    #[test]
    fn new_program_has_no_engine_until_first_use() {
        let program = Program::within("new_builds_no_engine", &Arc::default()).unwrap();
        assert!(program.engine.get().is_none());
        assert!(is_match(&program, "new_builds_no_engine"));
        assert!(program.engine.get().is_some());
    }

    #[test]
    fn shared_engine_is_built_once() {
        let program = || Program::new("shared_engine_is_built_once+").unwrap();
        let (first, second) = (program(), program());
        let engine = |program: &Program| match program.engine(&MemoryLimit).unwrap() {
            Handle::Shared(engine) => engine,
            _ => panic!("an engine that is not shared"),
        };
        assert!(Arc::ptr_eq(&engine(&first), &engine(&second)));
    }

    #[test]
    fn trial_program_retains_no_engine_and_rejects_large_patterns() {
        let budget = Arc::new(EngineBudget::for_trials());
        let small = Program::within("^a{3}$", &budget).unwrap();
        assert!(is_match(&small, "aaa") && small.engine.get().is_none());
        let large =
            Program::within("(a{9}b{9}){100}(c{9}d{9}){100}(e{9}f{9}){100}", &budget).unwrap();
        assert!(large.is_match("a", &MemoryLimit).is_err());
    }

    #[test]
    fn machine_beyond_memory_limit_fails() {
        let huge = r"\pL{1000}".repeat(300);
        let program = Program::new(&huge).unwrap();
        let message = program.is_match("a", &MemoryLimit).unwrap_err().to_string();
        assert_eq!(
            message,
            "the regular expression needs more than 8 MiB of memory"
        );
    }

    /// Counts the steps of searches. Interrupts a search at the limit.
    struct WorkLimit(std::cell::Cell<usize>);

    impl Limits for WorkLimit {
        type Error = ();

        fn work(&self, n_steps: usize) -> Result<(), ()> {
            let left = self.0.get().checked_sub(n_steps).ok_or(())?;
            self.0.set(left);
            Ok(())
        }

        fn allocate(&self, _: usize) -> Result<(), ()> {
            Ok(())
        }

        fn exceeded(&self) {}
    }

    #[test]
    fn input_that_is_read_again_is_charged_again() {
        let program = Program::new("(x|xx|xxx)*y|x").unwrap();
        let text = "x".repeat(2_000);
        let limits = WorkLimit(1_000_000.into());
        assert_eq!(program.find_all(&text, None, &limits), Err(()));
        let limits = WorkLimit(10_000_000.into());
        let matches = program.find_all(&text, None, &limits).unwrap();
        assert_eq!(matches.len(), 2_000);
    }
    #[test]
    fn pattern_beyond_length_limit_is_too_large() {
        assert!(Program::new(&"a".repeat(MAX_PATTERN)).is_ok());
        let error = Program::new(&"a".repeat(MAX_PATTERN + 1)).unwrap_err();
        assert_eq!(error.code, SyntaxErrorCode::Large);
        assert_eq!(error.expr, "a".repeat(100));
    }

    #[test]
    fn cached_program_has_engine_of_cache() {
        let pattern = "cached_program_has_engine_of_cache+";
        let before = Program::cached(pattern).unwrap();
        assert!(before.engine.get().is_none());
        assert!(is_match(&before, pattern));
        let after = Program::cached(pattern).unwrap();
        assert!(after.engine.get().is_some());
        assert!(is_match(&after, pattern) && !is_match(&after, "x"));
        assert!(Program::cached("(").is_err());
    }

    #[test]
    fn engines_are_counted() {
        use crate::budget::{engine_bytes, n_engines_built};
        let n_before = n_engines_built();
        let budget = Arc::new(EngineBudget::default());
        let program = Program::within("engines_are_counted+", &budget).unwrap();
        assert_eq!((budget.used(), program.on_machine), (0, false));
        assert!(is_match(&program, "engines_are_counted"));
        assert!(n_engines_built() > n_before);
        let n_bytes = budget.used();
        assert!(n_bytes > 1_000 && engine_bytes().kept >= n_bytes);
        drop(program);
        assert_eq!(budget.used(), 0);
    }

    #[test]
    fn trial_and_machine_programs_retain_no_engine() {
        let trial = Program::for_trials("^a+$").unwrap();
        assert!(is_match(&trial, "aa") && !is_match(&trial, "b"));
        assert!(trial.engine.get().is_none());
        assert!(trial.engine(&MemoryLimit).unwrap().is_machine());
        let machine = Program::on_machine("^a+$").unwrap();
        assert!(is_match(&machine, "aa") && machine.engine.get().is_none());
        assert!(machine.engine(&MemoryLimit).unwrap().is_machine());
    }

    #[test]
    fn trial_pattern_beyond_instruction_limit_fails() {
        // Each repeated character is one instruction, and the end of the pattern is one more instruction.
        let program = |n: usize| {
            let pattern = format!("(?:a{{1000}}){}b{{{n}}}", "a".repeat(3_000));
            Program::for_trials(&pattern).unwrap()
        };
        let n_rest = MAX_TRIAL_INSTRUCTIONS - 4_000 - 1;
        assert!(program(n_rest).is_match("", &MemoryLimit).is_ok());
        assert!(program(n_rest + 1).is_match("", &MemoryLimit).is_err());
    }

    #[test]
    fn automaton_limit_applies_to_product_of_states_and_text() {
        // The pattern has 100 states.
        let pattern = "a".repeat(99);
        let program = Program::new(&pattern).unwrap();
        let engine = program.engine(&MemoryLimit).unwrap();
        let n_bytes = 1_000_000;
        assert!(!engine.exceeds_automaton_limit(&"x".repeat(n_bytes)));
        assert!(engine.exceeds_automaton_limit(&"x".repeat(n_bytes + 1)));
        let machine = Program::on_machine("a").unwrap();
        let engine = machine.engine(&MemoryLimit).unwrap();
        assert!(!engine.exceeds_automaton_limit(&"x".repeat(n_bytes + 1)));
        assert!(is_match(&program, &("x".repeat(n_bytes) + &pattern)));
    }

    #[test]
    fn match_cost_includes_parsing_and_building_and_text() {
        let pattern = "is_match_charges_";
        let n_states = pattern.len() + 1;
        for text in ["", "text"] {
            let n_steps = 16 * pattern.len() + 16 * n_states + text.len();
            let search = |n_steps: usize| {
                let budget = Arc::new(EngineBudget::default());
                let limits = WorkLimit(n_steps.into());
                let program = Program::within(pattern, &budget).unwrap();
                program.is_match(text, &limits)
            };
            assert_eq!(search(n_steps), Ok(false));
            assert_eq!(search(n_steps - 1), Err(()));
        }
    }

    #[test]
    fn memory_of_search_is_reserved_for_owner() {
        let budget = Arc::new(EngineBudget::default());
        let deep = format!("{}x{}", "(?:a|".repeat(300), ")b".repeat(300));
        let text = format!("x{}", "b".repeat(300));
        let program = Program::within(&deep, &budget).unwrap();
        assert!(program.engine(&MemoryLimit).unwrap().is_machine());
        let n_before = budget.used();
        assert!(n_before > 0);
        assert!(is_match(&program, &text));
        let n_after = budget.used();
        assert!(n_after > n_before);
        assert!(is_match(&program, &text));
        assert_eq!(budget.used(), n_after);
        drop(program);
        assert_eq!(budget.used(), 0);
    }
}
