//! Tokens and sets of token kinds.
//!
//! Source: cel-go `parser/gen/CEL.g4` (lexer rules).

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// `==`.
    Equals,
    /// `!=`.
    NotEquals,
    /// `in`.
    In,
    /// `<`.
    Less,
    /// `<=`.
    LessEquals,
    /// `>=`.
    GreaterEquals,
    /// `>`.
    Greater,
    /// `&&`.
    And,
    /// `||`.
    Or,
    /// `[`.
    OpenBracket,
    /// `]`.
    CloseBracket,
    /// `{`.
    OpenBrace,
    /// `}`.
    CloseBrace,
    /// `(`.
    OpenParen,
    /// `)`.
    CloseParen,
    /// `.`.
    Dot,
    /// `,`.
    Comma,
    /// `-`.
    Minus,
    /// `!`.
    Exclamation,
    /// `?`.
    Question,
    /// `:`.
    Colon,
    /// `+`.
    Plus,
    /// `*`.
    Star,
    /// `/`.
    Slash,
    /// `%`.
    Percent,
    /// `true`.
    True,
    /// `false`.
    False,
    /// `null`.
    Null,
    /// A floating-point literal.
    Float,
    /// An integer literal.
    Int,
    /// An unsigned integer literal.
    Uint,
    /// A string literal.
    String,
    /// A bytes literal.
    Bytes,
    /// An identifier.
    Ident,
    /// An identifier in backticks.
    EscapedIdent,
    /// The end of the source.
    End,
}

impl Kind {
    /// Returns true for `(`, `[` and `{`.
    #[must_use]
    pub const fn opens_bracket(self) -> bool {
        matches!(self, Self::OpenParen | Self::OpenBracket | Self::OpenBrace)
    }

    /// Returns true for `)`, `]` and `}`.
    #[must_use]
    pub const fn closes_bracket(self) -> bool {
        matches!(
            self,
            Self::CloseParen | Self::CloseBracket | Self::CloseBrace
        )
    }

    /// Returns the operator function of a relational operator, such as `_<_`. `None` for other
    /// tokens.
    #[must_use]
    pub fn relation(self) -> Option<&'static str> {
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

    /// Returns the operator function and the precedence of an arithmetic operator. `None` for other
    /// tokens.
    #[must_use]
    pub fn arithmetic(self) -> Option<(&'static str, u8)> {
        Some(match self {
            Self::Star => ("_*_", 2),
            Self::Slash => ("_/_", 2),
            Self::Percent => ("_%_", 2),
            Self::Plus => ("_+_", 1),
            Self::Minus => ("_-_", 1),
            _ => return None,
        })
    }

    /// Returns the name of the token kind for messages.
    #[must_use]
    pub fn describe(self) -> &'static str {
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

/// A token and its location.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    /// The kind.
    pub kind: Kind,
    /// Index of the first byte.
    pub start: u32,
    /// Index after the last byte.
    pub end: u32,
    /// Offset of the first code point.
    pub offset: u32,
}

impl Token {
    /// Returns the characters of the token in `source`.
    #[must_use]
    pub fn text(self, source: &str) -> &str {
        source
            .get(self.start as usize..self.end as usize)
            .unwrap_or_default()
    }
}

/// A set of token kinds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TokenSet(u64);

impl TokenSet {
    /// The empty set.
    pub const NONE: Self = Self(0);

    /// Creates the set of `kinds`.
    #[must_use]
    pub const fn new(kinds: &[Kind]) -> Self {
        let mut bits = 0;
        let mut rest = kinds;
        while let [first, tail @ ..] = rest {
            bits |= 1 << *first as u8;
            rest = tail;
        }
        Self(bits)
    }

    /// Returns the union of two sets.
    #[must_use]
    pub const fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// Returns true if the sets intersect.
    #[must_use]
    pub const fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns true if the set contains `kind`.
    #[must_use]
    pub const fn contains(self, kind: Kind) -> bool {
        self.0 & (1 << kind as u8) != 0
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{
        And, Bytes, CloseBrace, CloseBracket, CloseParen, Colon, Comma, Dot, End, Equals,
        EscapedIdent, Exclamation, False, Float, Greater, GreaterEquals, Ident, In, Int, Less,
        LessEquals, Minus, NotEquals, Null, OpenBrace, OpenBracket, OpenParen, Or, Percent, Plus,
        Question, Slash, Star, String, True, Uint,
    };
    use super::*;

    #[test]
    fn operators_are_described_in_backticks() {
        for (kinds, described) in [
            (&[Equals, NotEquals, In][..], "`==` `!=` `in`"),
            (&[Less, LessEquals], "`<` `<=`"),
            (&[GreaterEquals, Greater], "`>=` `>`"),
            (&[And, Or], "`&&` `||`"),
            (&[OpenBracket, CloseBracket], "`[` `]`"),
            (&[OpenBrace, CloseBrace], "`{` `}`"),
            (&[OpenParen, CloseParen], "`(` `)`"),
            (&[Dot, Comma, Minus], "`.` `,` `-`"),
            (&[Exclamation, Question, Colon], "`!` `?` `:`"),
            (&[Plus, Star, Slash, Percent], "`+` `*` `/` `%`"),
            (&[True, False, Null], "`true` `false` `null`"),
            (&[Float, Int, Uint], "a number a number a number"),
            (&[String, Bytes], "a string a bytes literal"),
            (&[Ident, EscapedIdent], "a name a name in backticks"),
            (&[End], "the end of the expression"),
        ] {
            let all: Vec<_> = kinds.iter().map(|kind| kind.describe()).collect();
            assert_eq!(all.join(" "), described);
        }
    }

    #[test]
    fn token_sets_have_members_and_unions() {
        let (left, right) = (TokenSet::new(&[Int, End]), TokenSet::new(&[End, Equals]));
        assert!(left.contains(Int) && left.contains(End) && !left.contains(Equals));
        assert!(left.meets(right) && !left.meets(TokenSet::new(&[Equals, Dot])));
        let union = left.union(right);
        assert!([Int, End, Equals].iter().all(|kind| union.contains(*kind)));
        assert!(!union.contains(Dot) && !TokenSet::new(&[]).meets(union));
    }
}
