//! Finds operands in the tokens of an expression. The expression may have syntax errors.

use std::ops::Range;

use crate::cel::syntax::lexer;
use crate::cel::syntax::token::{Kind, Token};

/// Precedence of a call of a member function, which binds more tightly than all operators.
pub(super) const MEMBER: u8 = 7;

/// Precedence of an operator that binds more tightly than all binary operators.
pub(super) const UNARY: u8 = 6;

/// Precedence of `||`.
pub(super) const OR: u8 = 1;

/// Precedence of `&&`.
pub(super) const AND: u8 = 2;

/// Precedence of `==`, `<`, `in` and the other relations.
pub(super) const RELATION: u8 = 3;

/// An expression and its tokens.
pub(super) struct TokenText<'a> {
    pub(super) text: &'a str,
    tokens: Vec<Token>,
}

impl<'a> TokenText<'a> {
    pub(super) fn new(text: &'a str) -> Self {
        let tokens = lexer::tokens(text).all;
        Self { text, tokens }
    }

    /// Returns the number of tokens, without the end of the source.
    pub(super) fn len(&self) -> usize {
        self.tokens.iter().filter(|it| it.kind != Kind::End).count()
    }

    pub(super) fn kind(&self, n: usize) -> Option<Kind> {
        let kind = self.tokens.get(n)?.kind;
        (kind != Kind::End).then_some(kind)
    }

    /// Returns the bytes of the tokens `tokens`, which must not be empty.
    pub(super) fn bytes(&self, tokens: &Range<usize>) -> Option<Range<usize>> {
        let first = self.tokens.get(tokens.start)?;
        let last = self.tokens.get(tokens.end.checked_sub(1)?)?;
        (first.start <= last.end).then_some(first.start as usize..last.end as usize)
    }

    pub(super) fn source(&self, tokens: &Range<usize>) -> Option<&'a str> {
        self.text.get(self.bytes(tokens)?)
    }

    pub(super) fn word(&self, n: usize) -> Option<&'a str> {
        self.source(&(n..n + 1))
    }

    /// Returns the index of the token at a byte.
    pub(super) fn at(&self, byte: usize) -> Option<usize> {
        let is_at = |token: &Token| token.start as usize <= byte && byte < token.end as usize;
        self.tokens.iter().position(is_at)
    }

    /// Returns true if the tokens `n` and `n + 1` are adjacent.
    pub(super) fn is_adjacent(&self, n: usize) -> bool {
        match (self.tokens.get(n), self.tokens.get(n + 1)) {
            (Some(first), Some(second)) => first.end == second.start,
            _ => false,
        }
    }

    /// Returns the index of the bracket that closes the one at `open`.
    pub(super) fn close(&self, open: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for n in open..self.tokens.len() {
            match self.kind(n)? {
                kind if kind.opens_bracket() => depth += 1,
                kind if kind.closes_bracket() => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(n);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the index of the bracket that opens the one at `close`.
    pub(super) fn open(&self, close: usize) -> Option<usize> {
        let mut depth = 0_usize;
        for n in (0..=close).rev() {
            match self.kind(n)? {
                kind if kind.closes_bracket() => depth += 1,
                kind if kind.opens_bracket() => {
                    depth = depth.checked_sub(1)?;
                    if depth == 0 {
                        return Some(n);
                    }
                }
                _ => {}
            }
        }
        None
    }

    /// Returns the precedence of the binary operator at `n`. `None` for other tokens.
    fn precedence(&self, n: usize) -> Option<u8> {
        let kind = self.kind(n)?;
        if kind == Kind::Minus
            && !n
                .checked_sub(1)
                .is_some_and(|before| self.ends_operand(before))
        {
            return None;
        }
        match kind {
            Kind::Ident => self.word_precedence(n),
            Kind::Or => Some(OR),
            Kind::And => Some(AND),
            kind if kind.relation().is_some() => Some(RELATION),
            kind => kind
                .arithmetic()
                .map(|(_, precedence)| RELATION + precedence),
        }
    }

    /// Returns the precedence of `and` or `or` of other languages if it is between two operands.
    fn word_precedence(&self, n: usize) -> Option<u8> {
        let before = n.checked_sub(1).filter(|it| self.ends_operand(*it));
        before.filter(|_| self.kind(n + 1).is_some())?;
        let word = self.word(n)?;
        match () {
            () if word.eq_ignore_ascii_case("and") => Some(AND),
            () if word.eq_ignore_ascii_case("or") => Some(OR),
            () => None,
        }
    }

    /// Returns true for an operator of other languages that is a word, such as `and`.
    pub(super) fn is_operator_word(&self, n: usize) -> bool {
        let word = self.word(n).unwrap_or_default();
        ["and", "or", "not", "in", "is", "return"]
            .iter()
            .any(|operator| word.eq_ignore_ascii_case(operator))
    }

    /// Returns the text between the tokens `n - 1` and `n`, which the lexer skips.
    pub(super) fn before(&self, n: usize) -> Option<&'a str> {
        let start = self.bytes(&(n.checked_sub(1)?..n))?.end;
        self.text.get(start..self.bytes(&(n..n + 1))?.start)
    }

    /// Returns true if the byte is in a string or a comment.
    pub(super) fn is_quoted(&self, byte: usize) -> bool {
        let is_in_string = |at: usize| {
            self.at(at)
                .is_some_and(|n| self.kind(n) == Some(Kind::String))
        };
        let before = self.text.get(..byte).unwrap_or_default();
        let line = before.rfind('\n').map_or(0, |at| at + 1);
        let rest = before.get(line..).unwrap_or_default();
        let mut comments = rest.match_indices("//");
        is_in_string(byte) || comments.any(|(at, _)| !is_in_string(line + at))
    }

    fn ends_operand(&self, n: usize) -> bool {
        let Some(kind) = self.kind(n) else {
            return false;
        };
        kind.closes_bracket() || is_operand(kind)
    }

    /// Returns true if the token at `n` separates operands: a comma, a colon or the `?` of a conditional.
    fn is_separator(&self, n: usize) -> bool {
        match self.kind(n) {
            Some(Kind::Comma | Kind::Colon) => true,
            Some(Kind::Question) => {
                let before = n.checked_sub(1).and_then(|before| self.kind(before));
                !matches!(before, Some(Kind::Dot | Kind::OpenBracket))
            }
            _ => false,
        }
    }

    /// Returns the tokens of the left operand of an operator at `n` with the precedence `precedence`.
    pub(super) fn left(&self, n: usize, precedence: u8) -> Option<Range<usize>> {
        let mut start = n;
        while let Some(before) = start.checked_sub(1) {
            let kind = self.kind(before)?;
            let weaker = self.precedence(before).is_some_and(|it| it < precedence);
            if kind.opens_bracket() || self.is_separator(before) || weaker {
                break;
            }
            start = if kind.closes_bracket() {
                self.open(before)?
            } else {
                before
            };
        }
        (start < n).then_some(start..n)
    }

    /// Returns the tokens of the right operand of an operator that ends before `n` and has the precedence
    /// `precedence`.
    pub(super) fn right(&self, n: usize, precedence: u8) -> Option<Range<usize>> {
        let mut end = n;
        while let Some(kind) = self.kind(end) {
            let stops = self.precedence(end).is_some_and(|it| it <= precedence);
            if kind.closes_bracket() || self.is_separator(end) || stops {
                break;
            }
            end = if kind.opens_bracket() {
                self.close(end)? + 1
            } else {
                end + 1
            };
        }
        (n < end).then_some(n..end)
    }

    /// Returns the tokens of the operands of the binary operator at `n`.
    pub(super) fn operands(&self, n: usize) -> Option<(Range<usize>, Range<usize>)> {
        let precedence = self.precedence(n)?;
        Some((self.left(n, precedence)?, self.right(n + 1, precedence)?))
    }

    /// Returns the tokens of the operand that ends before the dot or bracket at `n`, such as `a.b(c)`.
    pub(super) fn receiver(&self, n: usize) -> Option<Range<usize>> {
        let mut start = n.checked_sub(1)?;
        loop {
            let kind = self.kind(start)?;
            if kind.closes_bracket() {
                start = self.open(start)?;
                let before = start.checked_sub(1).filter(|it| self.ends_operand(*it));
                if let Some(before) = before {
                    start = before;
                    continue;
                }
            } else if !is_operand(kind) {
                return None;
            }
            let before = |n: usize| n.checked_sub(1).and_then(|n| Some((n, self.kind(n)?)));
            start = match before(start) {
                // In other languages, `?.` selects a field.
                Some((dot, Kind::Dot))
                    if dot >= 2
                        && self.kind(dot - 1) == Some(Kind::Question)
                        && self.is_adjacent(dot - 2) =>
                {
                    dot - 2
                }
                Some((dot, Kind::Dot)) => dot.checked_sub(1)?,
                Some((question, Kind::Question))
                    if matches!(before(question), Some((_, Kind::Dot))) =>
                {
                    question.checked_sub(2)?
                }
                _ => return Some(start..n),
            };
        }
    }

    /// Returns true if the tokens are one operand without binary operators, such as `a.b(c + d)`.
    pub(super) fn is_chain(&self, tokens: &Range<usize>) -> bool {
        self.receiver(tokens.end) == Some(tokens.clone())
    }

    /// Returns true if the tokens contain a comma, a colon or a conditional outside of brackets.
    pub(super) fn has_separator(&self, tokens: &Range<usize>) -> bool {
        self.weakest(tokens) == 0
    }

    /// Returns the precedence of the operator that binds least tightly, outside of brackets. Returns 0 if there is a
    /// separator.
    fn weakest(&self, tokens: &Range<usize>) -> u8 {
        let mut weakest = UNARY;
        let mut n = tokens.start;
        while n < tokens.end {
            if self.is_separator(n) {
                return 0;
            }
            weakest = weakest.min(self.precedence(n).unwrap_or(UNARY));
            n = match self.kind(n) {
                Some(kind) if kind.opens_bracket() => self.close(n).unwrap_or(n) + 1,
                _ => n + 1,
            };
        }
        weakest
    }

    /// Returns the tokens of each argument of the call whose parenthesis is at `open`.
    pub(super) fn arguments(&self, open: usize) -> Option<Vec<Range<usize>>> {
        let close = self.close(open)?;
        let (mut args, mut n) = (Vec::new(), open + 1);
        while n < close {
            let mut end = n;
            while end < close && self.kind(end)? != Kind::Comma {
                end = match self.kind(end)? {
                    kind if kind.opens_bracket() => self.close(end)? + 1,
                    _ => end + 1,
                };
            }
            (n < end).then_some(())?;
            args.push(n..end);
            n = end + 1;
        }
        Some(args)
    }

    /// Returns the end of the selections, indices and calls that continue the operand before `n`.
    pub(super) fn chain_end(&self, n: usize) -> Option<usize> {
        let mut end = n;
        loop {
            end = match self.kind(end) {
                Some(Kind::Dot) if self.kind(end + 1) == Some(Kind::Question) => end + 3,
                Some(Kind::Dot) => end + 2,
                Some(Kind::OpenBracket | Kind::OpenParen) => self.close(end)? + 1,
                _ => return Some(end),
            };
        }
    }

    /// Returns the source of the tokens, in parentheses unless all their operators bind more tightly than
    /// `precedence`.
    pub(super) fn operand_text(&self, tokens: &Range<usize>, precedence: u8) -> Option<String> {
        let text = self.source(tokens)?;
        Some(if self.weakest(tokens) > precedence {
            text.to_owned()
        } else {
            format!("({text})")
        })
    }

    /// Returns the source of a receiver of a call, in parentheses if it is not a single operand.
    pub(super) fn receiver_text(&self, tokens: &Range<usize>) -> Option<String> {
        let text = self.source(tokens)?;
        Some(if self.is_chain(tokens) {
            text.to_owned()
        } else {
            format!("({text})")
        })
    }

    /// Returns `text`, which will replace `tokens`, in parentheses if a neighboring operator binds at least as tightly.
    /// `precedence` is the precedence of the operators in `text`.
    pub(super) fn in_place_of(
        &self,
        tokens: &Range<usize>,
        text: String,
        precedence: u8,
    ) -> String {
        let before = tokens.start.checked_sub(1);
        let is_unary = |n: usize| {
            matches!(self.kind(n), Some(Kind::Exclamation | Kind::Minus))
                && self.precedence(n).is_none()
        };
        let binds = |n: usize| self.precedence(n).is_some_and(|it| it >= precedence);
        let is_selected = matches!(self.kind(tokens.end), Some(Kind::Dot | Kind::OpenBracket));
        let is_tight =
            before.is_some_and(|n| is_unary(n) || binds(n)) || binds(tokens.end) || is_selected;
        if is_tight && precedence < MEMBER {
            format!("({text})")
        } else {
            text
        }
    }
}

fn is_operand(kind: Kind) -> bool {
    matches!(
        kind,
        Kind::Ident
            | Kind::EscapedIdent
            | Kind::True
            | Kind::False
            | Kind::Null
            | Kind::Float
            | Kind::Int
            | Kind::Uint
            | Kind::String
            | Kind::Bytes
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operands_respect_precedence_and_brackets() {
        for (text, operator, left, right) in [
            ("a + b <= c && d", "<=", "a + b", "c"),
            (
                "x || a[0].b('<=') <= f(c, d) + 1",
                "<=",
                "a[0].b('<=')",
                "f(c, d) + 1",
            ),
            ("f(a, b + c, d)", "+", "b", "c"),
            ("a - b + c", "+", "a - b", "c"),
            (
                "x ? a.?b.orValue(1) == -1 : y",
                "==",
                "a.?b.orValue(1)",
                "-1",
            ),
        ] {
            let source = TokenText::new(text);
            let n = (0..source.len())
                .find(|n| source.word(*n) == Some(operator))
                .unwrap();
            let (l, r) = source.operands(n).unwrap();
            assert_eq!(
                (source.source(&l), source.source(&r)),
                (Some(left), Some(right)),
                "{text}"
            );
        }
    }

    #[test]
    fn receiver_of_call_is_the_whole_chain() {
        for (text, receiver) in [
            ("!a.b(c)[0].?d.contains(x)", "a.b(c)[0].?d"),
            ("1 + (a + b).contains(x)", "(a + b)"),
            ("x && ['a', 'b'].contains(x)", "['a', 'b']"),
        ] {
            let source = TokenText::new(text);
            let n = (0..source.len())
                .find(|n| source.word(*n) == Some("contains"))
                .unwrap();
            let tokens = source.receiver(n - 1).unwrap();
            assert_eq!(source.source(&tokens), Some(receiver), "{text}");
        }
    }
}
