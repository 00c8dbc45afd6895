//! Tests random expressions and expensive expressions: every parse ends quickly, and finds errors exactly where the
//! parser of the `cel` crate finds them. `tests/cases/check/syntax_errors.md` tests the messages.

mod messages;

use super::findings;
use super::parser::Parser;
use super::stream::Stream;
use cel::diagnostic::Diagnostics;
use cel::source::Location;
use cel::syntax::{MAX_CODE_POINTS, lexer, parse};
use cel::version::{Behavior, CelGo};

const PIECES: &[&str] = &[
    "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "&&", "||", "==", "<", " in ", "!", "-", "+",
    "*", "%", "'", "#", "=", "1", "2u", "1.5", "a", "b", " true ", " null ", "'s'", "b'x'",
    "`a-b`", ".?", "[?", " if ", "é", "\n", " ", " ", "A.b{", "f(", "has(", "a.b.c", "{k:", "-1",
    "// c\n",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn soup(&mut self, n_pieces: usize) -> String {
        (0..n_pieces)
            .map(|_| PIECES[self.below(PIECES.len())])
            .collect()
    }
}

/// The maximum number of lookups per token.
///
/// A nesting level takes about ten rules, each with one or two lookups.
const MAX_LOOKS: usize = 60;

#[track_caller]
fn check_ends_soon(text: &str) {
    let tokens = lexer::tokens(text);
    let mut parser = Parser::new(Stream::new(text, &tokens));
    parser.run();
    let n_tokens = tokens.all.len();
    let shown: String = text.chars().take(40).collect();
    assert!(
        parser.n_looks <= MAX_LOOKS * n_tokens + 1_000,
        "{} lookups for {n_tokens} tokens of {shown}",
        parser.n_looks
    );
    assert!(parser.outcome.errors.len() <= 102, "{shown}");
}

fn places(found: &Diagnostics) -> Vec<Location> {
    let mut places: Vec<_> = found.as_slice().iter().map(|d| d.location).collect();
    places.sort();
    places
}

#[test]
fn parsers_agree_on_locations_of_random_tokens() {
    let mut chance = Chance(0x5eed_cafe_f00d_0003);
    let mut n_whole = 0;
    for n in 0..4_000 {
        let n_pieces = 1 + chance.below(if n % 10 == 0 { 300 } else { 20 });
        let text = chance.soup(n_pieces);
        let (ast, ours) = parse(&text);
        let theirs = findings(&text, Behavior::new(CelGo::V0_26));
        assert_eq!(ast.is_some(), theirs.is_empty(), "{text}");
        // The locations are compared only if neither parser stopped at a limit. Parsers that stop at a limit may have
        // reported different numbers of lexical errors.
        let is_whole = !places(&theirs).contains(&Location::NONE) && theirs.n_found() < 100;
        if is_whole {
            n_whole += 1;
            assert_eq!(places(&ours), places(&theirs), "{text}");
        }
        check_ends_soon(&text);
    }
    assert!(n_whole > 3_000, "{n_whole}");
}

#[test]
fn long_expressions_are_parsed_in_linear_time() {
    let units = [
        "a.b",
        ".b",
        "-",
        "- ",
        "! ",
        "-1, ",
        "-1[",
        "(",
        "f(a.b.c, ",
        "[1, ",
        "{a: ",
        "a.b{",
        "a ? ",
        "a ? b : ",
        "a + ",
        "a b ",
        "@ ",
        "1 2 3, ",
        "a.b.c ",
        ") ",
        "(]",
        "[-1 ",
        "a.f(-",
        "?",
        "a.",
        "a..b",
        "{,",
        "'a",
        "`",
        "a < b ",
        "a[?",
        "\"\"\"",
    ];
    let limit = MAX_CODE_POINTS as usize / 5;
    for unit in units {
        for end in ["", " )", " x y", "{ )"] {
            let text = unit.repeat((limit - end.len()) / unit.len()) + end;
            check_ends_soon(&text);
        }
    }
}

#[test]
fn valid_expression_has_no_findings() {
    for text in ["a", "-1.0.f(-x)[?0].?b", "T{a: {?b: [c,],},} in .d.e(f)"] {
        assert_eq!(
            findings(text, Behavior::new(CelGo::V0_26)),
            Diagnostics::default(),
            "{text}"
        );
    }
}
