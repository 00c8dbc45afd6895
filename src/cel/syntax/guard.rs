//! Limits that hold before a text reaches the parser: its length, and the depth of its nesting.
//!
//! The parser behind [`super::parse`] recurses where the text nests, so a text is scanned once, without
//! recursion, and refused where cel-go would refuse it. cel-go counts how often the grammar's `expr` is
//! active, and later how deep operators and selections nest; a chain of these nests to the left.
//!
//! Source: cel-go `parser/parser.go` (`recursionListener`, `expressionSizeCodePointLimit`),
//! `parser/gen/CEL.g4`.

/// The longest expression, in code points.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `expressionSizeCodePointLimit`.
pub const MAX_CODE_POINTS: u32 = 100_000;

/// How often a grammar rule may be active at once.
///
/// Source: cel-go `parser/parser.go`, `NewParser`, `maxRecursionDepth`.
pub const MAX_RECURSION_DEPTH: u32 = 250;

/// How often the recursive rules are active at a place of the text.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    expr: u32,
    relation: u32,
    calc: u32,
    member: u32,
}

/// The rules that one bracket level adds.
#[derive(Clone, Copy, Debug)]
struct Level {
    /// The rules that are active around this level.
    outer: Active,
    n_conditionals: u32,
    n_relations: u32,
    n_additive: u32,
    n_multiplicative: u32,
    n_members: u32,
}

impl Level {
    fn new(outer: Active) -> Self {
        Self {
            outer,
            n_conditionals: 0,
            n_relations: 0,
            n_additive: 0,
            n_multiplicative: 0,
            n_members: 0,
        }
    }

    fn active(&self) -> Active {
        // An operand on the right of an operator is a further activation of its rule.
        let relation_operand = u32::from(self.n_relations > 0);
        let calc_operand = u32::from(self.n_additive > 0 && self.n_multiplicative > 0)
            + u32::from(self.n_additive + self.n_multiplicative > 0);
        Active {
            expr: self.outer.expr + 1 + self.n_conditionals,
            relation: self.outer.relation + 1 + self.n_relations + relation_operand,
            calc: self.outer.calc + 1 + self.n_additive + self.n_multiplicative + calc_operand,
            member: self.outer.member + 1 + self.n_members,
        }
    }

    fn next_operand(&mut self) {
        self.n_members = 0;
    }

    fn next_relation(&mut self) {
        self.next_operand();
        self.n_additive = 0;
        self.n_multiplicative = 0;
    }

    fn next_condition(&mut self) {
        self.next_relation();
        self.n_relations = 0;
    }
}

/// How deep a text nests, at its deepest place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Nesting {
    /// How often `expr` is active: by brackets and conditionals.
    pub(super) brackets: u32,
    /// How often one of the rules of operators and selections is active.
    pub(super) chain: u32,
}

/// Chains longer than this are refused before they are parsed; the exact bound is kept by lowering.
pub(super) const MAX_CHAIN: u32 = MAX_RECURSION_DEPTH + 50;

/// How deep `text` nests; the scan ends where a limit is exceeded.
pub(super) fn nesting(text: &str) -> Nesting {
    let mut deepest = Nesting::default();
    let mut scanner = Scanner {
        bytes: text.as_bytes(),
        at: 0,
    };
    let mut levels: Vec<Level> = Vec::new();
    let mut level = Level::new(Active::default());
    // Whether the last token ends an operand, so that a `-`, `(` or `[` behind it is an operator.
    let mut after_operand = false;
    while let Some(token) = scanner.next_token() {
        match token {
            Token::Operand => after_operand = true,
            Token::Open(open) => {
                if after_operand && open == b'[' {
                    level.n_members += 1;
                }
                levels.push(level);
                level = Level::new(level.active());
                after_operand = false;
            }
            Token::Close => {
                if let Some(outer) = levels.pop() {
                    level = outer;
                }
                after_operand = true;
            }
            Token::Dot => {
                if after_operand {
                    level.n_members += 1;
                }
            }
            Token::Additive if after_operand => {
                level.next_operand();
                // What was multiplied on the left stays active, on the right of a sum it is done.
                if level.n_additive == 0 {
                    level.n_additive = level.n_multiplicative;
                }
                level.n_multiplicative = 0;
                level.n_additive += 1;
                after_operand = false;
            }
            Token::Multiplicative => {
                level.next_operand();
                level.n_multiplicative += 1;
                after_operand = false;
            }
            Token::Relation => {
                level.next_relation();
                level.n_relations += 1;
                after_operand = false;
            }
            Token::Logical | Token::Question => {
                level.next_condition();
                after_operand = false;
            }
            Token::Colon => {
                level.next_condition();
                level.n_conditionals += 1;
                after_operand = false;
            }
            Token::Comma => {
                level.next_condition();
                level.n_conditionals = 0;
                after_operand = false;
            }
            Token::Additive | Token::Other => after_operand = false,
        }
        let active = level.active();
        deepest.brackets = deepest.brackets.max(active.expr);
        deepest.chain = deepest
            .chain
            .max(active.relation.max(active.calc).max(active.member));
        if deepest.brackets > MAX_RECURSION_DEPTH || deepest.chain > MAX_CHAIN {
            break;
        }
    }
    deepest
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token {
    /// A name or literal.
    Operand,
    /// `(`, `[` or `{`.
    Open(u8),
    /// `)`, `]` or `}`.
    Close,
    /// `.`.
    Dot,
    /// `+` or `-`.
    Additive,
    /// `*`, `/` or `%`.
    Multiplicative,
    /// A comparison or `in`.
    Relation,
    /// `&&` or `||`.
    Logical,
    /// `?`.
    Question,
    /// `:`.
    Colon,
    /// `,`.
    Comma,
    /// Anything else, `!` among it.
    Other,
}

/// Splits a text into tokens, roughly: it is exact for texts that are expressions.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl Scanner<'_> {
    fn peek(&self, ahead: usize) -> u8 {
        self.bytes.get(self.at + ahead).copied().unwrap_or(0)
    }

    fn next_token(&mut self) -> Option<Token> {
        while self.at < self.bytes.len() {
            let byte = self.peek(0);
            if byte == b'/' && self.peek(1) == b'/' {
                while self.at < self.bytes.len() && self.peek(0) != b'\n' {
                    self.at += 1;
                }
            } else if byte.is_ascii_whitespace() {
                self.at += 1;
            } else {
                return Some(self.token(byte));
            }
        }
        None
    }

    fn token(&mut self, byte: u8) -> Token {
        if byte.is_ascii_alphabetic() || byte == b'_' {
            return self.word();
        }
        if byte.is_ascii_digit() || (byte == b'.' && self.peek(1).is_ascii_digit()) {
            return self.number();
        }
        if byte == b'"' || byte == b'\'' {
            self.string(false);
            return Token::Operand;
        }
        let two = (byte, self.peek(1));
        let (length, token) = match two {
            (b'&', b'&') | (b'|', b'|') => (2, Token::Logical),
            (b'=' | b'!' | b'<' | b'>', b'=') => (2, Token::Relation),
            (b'<' | b'>', _) => (1, Token::Relation),
            (b'(' | b'[' | b'{', _) => (1, Token::Open(byte)),
            (b')' | b']' | b'}', _) => (1, Token::Close),
            (b'.', b'?') => (2, Token::Dot),
            (b'.', _) => (1, Token::Dot),
            (b'+' | b'-', _) => (1, Token::Additive),
            (b'*' | b'/' | b'%', _) => (1, Token::Multiplicative),
            (b'?', _) => (1, Token::Question),
            (b':', _) => (1, Token::Colon),
            (b',', _) => (1, Token::Comma),
            (b'`', _) => {
                self.at += 1;
                while self.at < self.bytes.len() && self.peek(0) != b'`' {
                    self.at += 1;
                }
                (1, Token::Operand)
            }
            _ => (1, Token::Other),
        };
        self.at += length;
        token
    }

    fn word(&mut self) -> Token {
        let start = self.at;
        while self.peek(0).is_ascii_alphanumeric() || self.peek(0) == b'_' {
            self.at += 1;
        }
        let word = self.bytes.get(start..self.at).unwrap_or_default();
        if matches!(self.peek(0), b'"' | b'\'') && word.len() <= 2 {
            let is_prefix = word
                .iter()
                .all(|c| matches!(c.to_ascii_lowercase(), b'r' | b'b'));
            if is_prefix {
                self.string(word.iter().any(|c| c.eq_ignore_ascii_case(&b'r')));
                return Token::Operand;
            }
        }
        if word == b"in" {
            Token::Relation
        } else {
            Token::Operand
        }
    }

    fn number(&mut self) -> Token {
        loop {
            let byte = self.peek(0);
            let is_exponent_sign = matches!(byte, b'+' | b'-')
                && self.at > 0
                && self
                    .bytes
                    .get(self.at - 1)
                    .is_some_and(|c| c.eq_ignore_ascii_case(&b'e'));
            let is_fraction = byte == b'.' && self.peek(1).is_ascii_digit();
            if byte.is_ascii_alphanumeric() || is_fraction || is_exponent_sign {
                self.at += 1;
            } else {
                return Token::Operand;
            }
        }
    }

    fn string(&mut self, raw: bool) {
        let quote = self.peek(0);
        let triple = self.peek(1) == quote && self.peek(2) == quote;
        self.at += if triple { 3 } else { 1 };
        while self.at < self.bytes.len() {
            let byte = self.peek(0);
            if byte == b'\\' && !raw {
                self.at += 2;
            } else if byte == quote && (!triple || (self.peek(1) == quote && self.peek(2) == quote))
            {
                self.at += if triple { 3 } else { 1 };
                return;
            } else if byte == b'\n' && !triple {
                return;
            } else {
                self.at += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, too_deep: bool) {
        let nesting = nesting(text);
        let is_too_deep = nesting.brackets > MAX_RECURSION_DEPTH || nesting.chain > MAX_CHAIN;
        assert_eq!(is_too_deep, too_deep, "{nesting:?}");
    }

    #[test]
    fn brackets() {
        check(&format!("{}1{}", "(".repeat(249), ")".repeat(249)), false);
        check(&format!("{}1{}", "(".repeat(250), ")".repeat(250)), true);
        check(
            &format!("{}{}", "(".repeat(10_000), ")".repeat(10_000)),
            true,
        );
        check(&format!("'{}'", "(".repeat(10_000)), false);
    }

    #[test]
    fn chains() {
        check(&format!("a{}", ".b".repeat(250)), false);
        check(&format!("a{}", ".b".repeat(350)), true);
        check(&format!("true{}", " && true".repeat(5_000)), false);
        check(&format!("1{}", " + 1".repeat(5_000)), true);
        check(&format!("[{}]", "1 + 1, ".repeat(5_000)), false);
    }
}
