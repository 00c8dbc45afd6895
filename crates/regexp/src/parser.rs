//! The parser reads a pattern and calls the operations of the [`Stack`].
//!
//! Source: Go `regexp/syntax/parse.go` (`parse`, `parsePerlFlags`, `parseRepeat`, `repeat`).

use super::class::Class;
use super::cursor::Cursor;
use super::error::{SyntaxError, SyntaxErrorCode};
use super::escape::{parse_class, parse_escape, parse_perl_class, parse_unicode_class};
use super::stack::{Limited, MAX_REPEAT, Stack};
use super::tree::{Capture, Flags, NodeKind, Regex};

#[derive(Debug)]
pub(super) struct Parser<'a> {
    pattern: &'a str,
    cursor: Cursor<'a>,
    stack: Stack,
    n_captures: u32,
    /// Start of the last repetition operator, if the cursor is directly after it.
    last_repeat: Option<Cursor<'a>>,
    /// False if the rest of the pattern contains no `:]`, and therefore no class `[:name:]`.
    has_posix: bool,
}

/// The counts of `{min,max}`. `None` if they are too large.
type Counts = Option<(u32, Option<u32>)>;

impl<'a> Parser<'a> {
    pub(super) fn new(pattern: &'a str) -> Self {
        Self {
            pattern,
            cursor: Cursor::new(pattern),
            stack: Stack::new(Flags::ONE_LINE),
            n_captures: 0,
            last_repeat: None,
            has_posix: true,
        }
    }

    pub(super) fn parse(mut self) -> Result<Regex, SyntaxError> {
        while let Some(byte) = self.cursor.byte(0) {
            let last_repeat = self.last_repeat.take();
            self.parse_next(byte, last_repeat)?;
        }
        let ended = self.stack.end_group();
        self.limited(ended)?;
        let Some((root, nodes)) = self.stack.finish() else {
            return Err(SyntaxError::new(
                SyntaxErrorCode::MissingParen,
                self.pattern,
            ));
        };
        Ok(Regex {
            nodes,
            root,
            n_captures: self.n_captures,
        })
    }

    fn error<T>(&self, code: SyntaxErrorCode, start: Cursor<'_>) -> Result<T, SyntaxError> {
        Err(SyntaxError::new(code, self.cursor.since(start)))
    }

    /// Converts an exceeded limit to an error about the whole pattern.
    fn limited<T>(&self, result: Limited<T>) -> Result<T, SyntaxError> {
        result.map_err(|code| SyntaxError::new(code, self.pattern))
    }

    fn parse_next(&mut self, byte: u8, last_repeat: Option<Cursor<'a>>) -> Result<(), SyntaxError> {
        match byte {
            b'(' if self.cursor.byte(1) == Some(b'?') => self.parse_perl_group(),
            b'(' => self.open_capture(1, None),
            b'|' => {
                self.cursor.take(1);
                let done = self.stack.vertical_bar();
                self.limited(done)
            }
            b')' => self.parse_right_paren(),
            b'^' if self.stack.flags.has(Flags::ONE_LINE) => self.op(1, NodeKind::BeginText),
            b'^' => self.op(1, NodeKind::BeginLine),
            b'$' => self.parse_dollar(),
            b'.' if self.stack.flags.has(Flags::DOT_NL) => self.op(1, NodeKind::AnyChar),
            b'.' => self.op(1, NodeKind::AnyCharNotNewline),
            b'[' => self.parse_bracket(),
            b'*' => self.repeat(1, NodeKind::Star, last_repeat),
            b'+' => self.repeat(1, NodeKind::Plus, last_repeat),
            b'?' => self.repeat(1, NodeKind::Quest, last_repeat),
            b'{' => self.parse_brace(last_repeat),
            b'\\' => self.parse_backslash(),
            _ => self.parse_literal(),
        }
    }

    /// Skips an operator of `n_bytes`, and pushes a node of `kind`.
    fn op(&mut self, n_bytes: usize, kind: NodeKind) -> Result<(), SyntaxError> {
        self.cursor.take(n_bytes);
        let pushed = self.stack.op(kind);
        self.limited(pushed)
    }

    fn literal(&mut self, rune: u32) -> Result<(), SyntaxError> {
        let pushed = self.stack.literal(rune);
        self.limited(pushed)
    }

    fn parse_literal(&mut self) -> Result<(), SyntaxError> {
        match self.cursor.next_char() {
            Some(c) => self.literal(u32::from(c)),
            None => Ok(()),
        }
    }

    fn parse_dollar(&mut self) -> Result<(), SyntaxError> {
        if !self.stack.flags.has(Flags::ONE_LINE) {
            return self.op(1, NodeKind::EndLine);
        }
        // Sets `WAS_DOLLAR` for this node only.
        let flags = self.stack.flags;
        self.stack.flags = flags.with(Flags::WAS_DOLLAR);
        let done = self.op(1, NodeKind::EndText);
        self.stack.flags = flags;
        done
    }

    fn open_capture(&mut self, n_bytes: usize, name: Option<&str>) -> Result<(), SyntaxError> {
        self.n_captures += 1;
        let capture = Capture {
            index: self.n_captures,
            name: name.map(Into::into),
        };
        self.op(n_bytes, NodeKind::LeftParen(Some(capture)))
    }

    fn parse_right_paren(&mut self) -> Result<(), SyntaxError> {
        self.cursor.take(1);
        let closed = self.stack.right_paren();
        if self.limited(closed)? {
            return Ok(());
        }
        Err(SyntaxError::new(
            SyntaxErrorCode::UnexpectedParen,
            self.pattern,
        ))
    }

    fn parse_bracket(&mut self) -> Result<(), SyntaxError> {
        let id = self.stack.alloc_class();
        let (items, negated) = parse_class(&mut self.cursor, &mut self.has_posix)?;
        let class = Class::new(items, negated, self.stack.flags.has(Flags::FOLD_CASE));
        let pushed = self.stack.push_class(id, class);
        self.limited(pushed)
    }

    fn parse_backslash(&mut self) -> Result<(), SyntaxError> {
        match self.cursor.byte(1) {
            Some(b'A') => return self.op(2, NodeKind::BeginText),
            Some(b'b') => return self.op(2, NodeKind::WordBoundary),
            Some(b'B') => return self.op(2, NodeKind::NoWordBoundary),
            Some(b'z') => return self.op(2, NodeKind::EndText),
            Some(b'C') => {
                let start = self.cursor;
                self.cursor.take(2);
                return self.error(SyntaxErrorCode::InvalidEscape, start);
            }
            Some(b'Q') => return self.parse_quoted(),
            _ => {}
        }
        let id = self.stack.alloc_class();
        let item = match parse_unicode_class(&mut self.cursor)? {
            Some(item) => Some(item),
            None => parse_perl_class(&mut self.cursor),
        };
        if let Some(item) = item {
            let class = Class::new(vec![item], false, self.stack.flags.has(Flags::FOLD_CASE));
            let pushed = self.stack.push_class(id, class);
            return self.limited(pushed);
        }
        self.stack.recycle(id);
        let rune = parse_escape(&mut self.cursor)?;
        self.literal(rune)
    }

    /// Parses `\Q` and the literals up to `\E` or to the end.
    fn parse_quoted(&mut self) -> Result<(), SyntaxError> {
        self.cursor.take(2);
        while !self.cursor.is_empty() && !self.cursor.eat(r"\E") {
            self.parse_literal()?;
        }
        Ok(())
    }
}

/// Groups with flags or names.
impl Parser<'_> {
    /// Parses a group or flags. The cursor is at `(?`.
    fn parse_perl_group(&mut self) -> Result<(), SyntaxError> {
        let rest = self.cursor.rest();
        let named = ["(?P<", "(?<"].into_iter().find(|open| {
            // Go parses the group as flags if the pattern ends here.
            rest.len() > open.len() && rest.starts_with(open)
        });
        match named {
            Some(open) => self.parse_named_capture(open),
            None => self.parse_flags(),
        }
    }

    fn parse_named_capture(&mut self, open: &str) -> Result<(), SyntaxError> {
        let start = self.cursor;
        self.cursor.take(open.len());
        let name = self.cursor.take_while(|c| c != '>');
        if !self.cursor.eat(">") {
            return self.error(SyntaxErrorCode::InvalidNamedCapture, start);
        }
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
        if name.is_empty() || !name.chars().all(is_word) {
            return self.error(SyntaxErrorCode::InvalidNamedCapture, start);
        }
        self.open_capture(0, Some(name))
    }

    /// Parses flags, and the `:` or `)` after them. A `:` opens a group.
    fn parse_flags(&mut self) -> Result<(), SyntaxError> {
        let start = self.cursor;
        self.cursor.take(2);
        let mut flags = self.stack.flags;
        let (mut negative, mut saw_flag) = (false, false);
        while let Some(c) = self.cursor.next_char() {
            let (flag, sets) = match c {
                'i' => (Flags::FOLD_CASE, !negative),
                'm' => (Flags::ONE_LINE, negative),
                's' => (Flags::DOT_NL, !negative),
                'U' => (Flags::NON_GREEDY, !negative),
                '-' if !negative => {
                    (negative, saw_flag) = (true, false);
                    continue;
                }
                ':' | ')' if !negative || saw_flag => {
                    if c == ':' {
                        self.op(0, NodeKind::LeftParen(None))?;
                    }
                    self.stack.flags = flags;
                    return Ok(());
                }
                _ => break,
            };
            flags = if sets {
                flags.with(flag)
            } else {
                flags.without(flag)
            };
            saw_flag = true;
        }
        self.error(SyntaxErrorCode::InvalidPerlOp, start)
    }
}

/// Repetitions.
impl<'a> Parser<'a> {
    /// Parses a repetition operator of `n_bytes`. The operator repeats the top of the stack.
    fn repeat(
        &mut self,
        n_bytes: usize,
        kind: NodeKind,
        last_repeat: Option<Cursor<'a>>,
    ) -> Result<(), SyntaxError> {
        let start = self.cursor;
        self.cursor.take(n_bytes);
        let mut flags = self.stack.flags;
        if self.cursor.eat("?") {
            flags = flags.toggled(Flags::NON_GREEDY);
        }
        if let Some(last_repeat) = last_repeat {
            return self.error(SyntaxErrorCode::InvalidRepeatOp, last_repeat);
        }
        let copies = match kind {
            NodeKind::Repeat { min, max } => min.max(max.unwrap_or(0)),
            _ => 0,
        };
        let repeated = self.stack.repeat(kind, flags);
        let Some(id) = self.limited(repeated)? else {
            return self.error(SyntaxErrorCode::MissingRepeatArgument, start);
        };
        if copies >= 2 && !self.stack.repeats_at_most(id, MAX_REPEAT) {
            return self.error(SyntaxErrorCode::InvalidRepeatSize, start);
        }
        self.last_repeat = Some(start);
        Ok(())
    }

    /// Parses `{min,max}`. Any other brace is a literal.
    fn parse_brace(&mut self, last_repeat: Option<Cursor<'a>>) -> Result<(), SyntaxError> {
        let start = self.cursor;
        let Some(counts) = parse_counts(&mut self.cursor) else {
            self.cursor = start;
            return self.parse_literal();
        };
        let Some((min, max)) = counts.filter(|(min, max)| {
            *min <= MAX_REPEAT && max.is_none_or(|max| *min <= max && max <= MAX_REPEAT)
        }) else {
            return self.error(SyntaxErrorCode::InvalidRepeatSize, start);
        };
        let n_bytes = self.cursor.since(start).len();
        self.cursor = start;
        self.repeat(n_bytes, NodeKind::Repeat { min, max }, last_repeat)
    }
}

/// Parses `{min}`, `{min,}` or `{min,max}`. Returns `None` for other input.
fn parse_counts(cursor: &mut Cursor<'_>) -> Option<Counts> {
    cursor.take(1);
    let min = parse_count(cursor)?;
    if cursor.eat("}") {
        return Some(min.map(|min| (min, Some(min))));
    }
    if !cursor.eat(",") {
        return None;
    }
    if cursor.eat("}") {
        return Some(min.map(|min| (min, None)));
    }
    let max = parse_count(cursor)?;
    if !cursor.eat("}") {
        return None;
    }
    Some(min.zip(max).map(|(min, max)| (min, Some(max))))
}

/// Parses a number without leading zeros. Returns `None` for other input, and `Some(None)` if the number is too large.
#[expect(
    clippy::option_option,
    reason = "distinguishes a missing number from one that is too large"
)]
fn parse_count(cursor: &mut Cursor<'_>) -> Option<Option<u32>> {
    let digits = cursor.take_while(|c| c.is_ascii_digit());
    if digits.is_empty() || (digits.len() > 1 && digits.starts_with('0')) {
        return None;
    }
    Some(digits.parse().ok())
}
