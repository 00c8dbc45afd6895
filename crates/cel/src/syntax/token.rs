//! Tokens, and sets of their kinds.
//!
//! Source: cel-go `parser/gen/CEL.g4` (lexer rules).

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub(super) enum Kind {
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    And,
    Or,
    OpenBracket,
    CloseBracket,
    OpenBrace,
    CloseBrace,
    OpenParen,
    CloseParen,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
    EscapedIdent,
    End,
}

impl Kind {
    /// The binary operator that the token is between two operands, by the function that it calls.
    pub(super) fn relation(self) -> Option<&'static str> {
        Some(match self {
            Self::Equals => "_==_",
            Self::NotEquals => "_!=_",
            Self::In => "@in",
            Self::Less => "_<_",
            Self::LessEquals => "_<=_",
            Self::GreaterEquals => "_>=_",
            Self::Greater => "_>_",
            _ => return None,
        })
    }

    /// As [`Self::relation`], with the precedence, for operators of arithmetic.
    pub(super) fn arithmetic(self) -> Option<(&'static str, u8)> {
        Some(match self {
            Self::Star => ("_*_", 2),
            Self::Slash => ("_/_", 2),
            Self::Percent => ("_%_", 2),
            Self::Plus => ("_+_", 1),
            Self::Minus => ("_-_", 1),
            _ => return None,
        })
    }

    /// How a message calls tokens of the kind.
    pub(super) fn describe(self) -> &'static str {
        match self {
            Self::Equals => "`==`",
            Self::NotEquals => "`!=`",
            Self::In => "`in`",
            Self::Less => "`<`",
            Self::LessEquals => "`<=`",
            Self::GreaterEquals => "`>=`",
            Self::Greater => "`>`",
            Self::And => "`&&`",
            Self::Or => "`||`",
            Self::OpenBracket => "`[`",
            Self::CloseBracket => "`]`",
            Self::OpenBrace => "`{`",
            Self::CloseBrace => "`}`",
            Self::OpenParen => "`(`",
            Self::CloseParen => "`)`",
            Self::Dot => "`.`",
            Self::Comma => "`,`",
            Self::Minus => "`-`",
            Self::Exclamation => "`!`",
            Self::Question => "`?`",
            Self::Colon => "`:`",
            Self::Plus => "`+`",
            Self::Star => "`*`",
            Self::Slash => "`/`",
            Self::Percent => "`%`",
            Self::True => "`true`",
            Self::False => "`false`",
            Self::Null => "`null`",
            Self::Float | Self::Int | Self::Uint => "a number",
            Self::String => "a string",
            Self::Bytes => "a bytes literal",
            Self::Ident => "a name",
            Self::EscapedIdent => "a name in backticks",
            Self::End => "the end of the expression",
        }
    }
}

/// A token: what it is and where.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Token {
    pub(super) kind: Kind,
    /// The first byte.
    pub(super) start: u32,
    /// The byte behind the last.
    pub(super) end: u32,
    /// The first code point.
    pub(super) offset: u32,
}

impl Token {
    pub(super) fn text(self, source: &str) -> &str {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// A set of kinds of tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct TokenSet(u64);

impl TokenSet {
    pub(super) const NONE: Self = Self(0);

    pub(super) const fn of(kinds: &[Kind]) -> Self {
        let mut bits = 0;
        let mut rest = kinds;
        while let [first, tail @ ..] = rest {
            bits |= 1 << *first as u8;
            rest = tail;
        }
        Self(bits)
    }

    pub(super) const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Whether the two have a kind in common.
    pub(super) const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    pub(super) const fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}
