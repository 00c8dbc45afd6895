//! Compares our parser with the parser of the `cel` crate, an independent implementation of the same grammar. Either
//! both must accept an expression, or both must reject it.
//!
//! The expressions result from random changes of valid expressions, so most of them are nearly valid. The seed is
//! fixed.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use vap_status_controller::cel::diagnostic::Code;
use vap_status_controller::cel::syntax::parse;

const EXPRESSIONS: &[&str] = &[
    "object.spec.replicas <= params.maxReplicas",
    "!has(object.spec.paused) || object.spec.paused == false",
    "object.spec.containers.all(c, c.image.startsWith('registry.example.com/') && c.name != \"\")",
    "variables.a > 1 ? 'x' + string(variables.a) : r'\\y'",
    "object.metadata.?labels[?'app'].orValue('none') in ['a', 'b',]",
    "{'a': 1, ?'b': optional.of(2), 'c': [1u, 0x1Fu, .5, 1e-3, -7]}.c[0] == 1u",
    "google.protobuf.Struct{fields: {'a': google.protobuf.Value{number_value: 1.0}}} != null",
    "-object.x * (3 % 2 - 1) / 4 >= --5 && !!true || b'\\x00' == b\"\"\"\"\"\"",
    "object.a.b.c(d, e[f]).g == .h.i('''j\n'k'l''', true, false, null) // m",
    "[1, 2].map(x, x > 1, {'y': x}).exists_one(z, z.y == 2)",
];

const PIECES: &[&str] = &[
    "(", ")", "[", "]", "{", "}", ".", ",", "?", ":", "&&", "||", "==", "!=", "<", " in ", "!",
    "-", "+", "*", "/", "%", "\"", "'", "#", "&", "|", "=", "1", "1u", "1.5", "0x", "a", "true",
    "null", ".?", "[?", "\\", " if ", "é", "\n", " ", "b\"", "r'", "\"\"\"", "1.", ".5", "{?",
    "A{", "//",
];

struct Chance(u64);

impl Chance {
    fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % limit as u64).unwrap()
    }

    fn place(&mut self, text: &str) -> usize {
        let mut place = self.below(text.len() + 1);
        while !text.is_char_boundary(place) {
            place -= 1;
        }
        place
    }

    fn change(&mut self, text: &str) -> String {
        let (a, b) = (self.place(text), self.place(text));
        let piece = PIECES[self.below(PIECES.len())];
        match self.below(4) {
            0 => text[..a].to_owned(),
            1 if a < b && b - a < 9 => format!("{}{}", &text[..a], &text[b..]),
            _ => format!("{}{piece}{}", &text[..a], &text[a..]),
        }
    }
}

/// Returns true if both parsers accept the expression, or both reject it. Also returns true if our parser rejects it
/// because of a macro or a limit.
fn agree(text: &str) -> bool {
    let (_, found) = parse(text);
    let is_beyond = |code| {
        matches!(
            code,
            Code::InvalidMacroCall | Code::LimitExceeded | Code::TooComplex
        )
    };
    let peer = cel_rust::Env::default()
        .with_optional_support(true)
        .parser();
    found.as_slice().iter().any(|d| is_beyond(d.kind.code()))
        || found.is_empty() == peer.parse_with_source_info(text).is_ok()
}

#[test]
fn parser_of_cel_crate_accepts_same_expressions() {
    let mut chance = Chance(0x2545_f491_4f6c_dd1d);
    let mut differing = Vec::new();
    let (mut n_accepted, mut n_refused) = (0, 0);
    for text in EXPRESSIONS {
        assert!(parse(text).0.is_some(), "{text}");
        assert!(agree(text), "{text}");
        for _ in 0..400 {
            let mut changed = chance.change(text);
            if chance.below(3) == 0 {
                changed = chance.change(&changed);
            }
            if parse(&changed).0.is_some() {
                n_accepted += 1;
            } else {
                n_refused += 1;
            }
            if !agree(&changed) {
                differing.push(changed);
            }
        }
    }
    assert!(differing.is_empty(), "{differing:#?}");
    assert!(
        n_accepted > 400 && n_refused > 400,
        "{n_accepted} {n_refused}"
    );
}
