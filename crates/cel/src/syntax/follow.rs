//! Follow sets: the tokens that may follow a grammar rule. The parser uses them to recover from errors.
//!
//! Source: cel-go `parser/gen/CEL.g4`; `github.com/antlr4-go/antlr/v4` `ll1_analyzer.go`.

use super::token::Kind::{
    And, Bytes, CloseBrace, CloseBracket, CloseParen, Colon, Comma, Dot, End, Equals, EscapedIdent,
    Exclamation, False, Float, Greater, GreaterEquals, Ident, In, Int, Less, LessEquals, Minus,
    NotEquals, Null, OpenBrace, OpenBracket, OpenParen, Or, Percent, Plus, Question, Slash, Star,
    String, True, Uint,
};
use super::token::TokenSet;

/// Follow sets of an active grammar rule.
#[derive(Clone, Copy, Debug)]
pub(super) struct Follow {
    /// Tokens that may follow any of the active rules. If a rule fails, the parser skips tokens until it reaches one of
    /// these.
    pub(super) recover: TokenSet,
    /// Tokens that may directly follow the current rule.
    pub(super) expect: TokenSet,
}

/// The part of the calling rule after the call. It is nullable if it can match the empty input.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nullable,
    Required,
}

impl Follow {
    /// The follow sets of the start rule.
    pub(super) const START: Self = Self {
        recover: TokenSet::NONE,
        expect: TokenSet::NONE,
    };

    /// Returns the follow sets of a called rule. `self` contains the follow sets of the calling rule. `next` contains
    /// the tokens that may directly follow the call within the calling rule.
    pub(super) const fn then(self, next: TokenSet, rest: Rest) -> Self {
        let expect = match rest {
            Rest::Nullable => next.union(self.expect),
            Rest::Required => next,
        };
        Self {
            recover: self.recover.union(next),
            expect,
        }
    }
}

pub(super) const END: TokenSet = TokenSet::new(&[End]);
pub(super) const QUESTION: TokenSet = TokenSet::new(&[Question]);
pub(super) const COLON: TokenSet = TokenSet::new(&[Colon]);
pub(super) const COMMA: TokenSet = TokenSet::new(&[Comma]);
pub(super) const OR: TokenSet = TokenSet::new(&[Or]);
pub(super) const AND: TokenSet = TokenSet::new(&[And]);
pub(super) const CLOSE_PAREN: TokenSet = TokenSet::new(&[CloseParen]);
pub(super) const CLOSE_BRACKET: TokenSet = TokenSet::new(&[CloseBracket]);
pub(super) const COMMA_BRACKET: TokenSet = TokenSet::new(&[Comma, CloseBracket]);
pub(super) const COMMA_BRACE: TokenSet = TokenSet::new(&[Comma, CloseBrace]);
pub(super) const RELATIONS: TokenSet = TokenSet::new(&[
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
]);
pub(super) const ARITHMETIC: TokenSet = TokenSet::new(&[Star, Slash, Percent, Plus, Minus]);
pub(super) const MEMBER: TokenSet = TokenSet::new(&[Dot, OpenBracket]);
pub(super) const FIELD_NAME: TokenSet = TokenSet::new(&[Ident, EscapedIdent]);

/// First tokens of a member, the operand of a unary minus.
pub(super) const MEMBER_START: TokenSet = TokenSet::new(&[
    OpenBracket,
    OpenBrace,
    OpenParen,
    Dot,
    Minus,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Ident,
]);

/// First tokens of an expression.
pub(super) const EXPR_START: TokenSet = MEMBER_START.union(TokenSet::new(&[Exclamation]));
/// First tokens of an element or a key.
pub(super) const OPT_EXPR_START: TokenSet = EXPR_START.union(QUESTION);
/// First tokens of a field of a message literal.
pub(super) const FIELD_START: TokenSet = FIELD_NAME.union(QUESTION);
