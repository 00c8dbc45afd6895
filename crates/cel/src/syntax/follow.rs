//! Which tokens may stand where: the sets by which the parser finds its way again after an error.
//!
//! Source: cel-go `parser/gen/CEL.g4`; `github.com/antlr4-go/antlr/v4` `ll1_analyzer.go`.

use super::token::Kind::{
    And, Bytes, CloseBrace, CloseBracket, CloseParen, Colon, Comma, Dot, End, Equals, EscapedIdent,
    Exclamation, False, Float, Greater, GreaterEquals, Ident, In, Int, Less, LessEquals, Minus,
    NotEquals, Null, OpenBrace, OpenBracket, OpenParen, Or, Percent, Plus, Question, Slash, Star,
    String, True, Uint,
};
use super::token::TokenSet;

/// What may follow a rule's activation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Follow {
    /// What may follow within any of the active rules: where a rule gives up, text is passed over up to
    /// one of these.
    pub(super) recover: TokenSet,
    /// What may follow here.
    pub(super) expect: TokenSet,
}

/// Whether what follows within the calling rule may be nothing.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Rest {
    Nullable,
    Required,
}

impl Follow {
    /// Of the rule that everything begins with.
    pub(super) const START: Self = Self {
        recover: TokenSet::NONE,
        expect: TokenSet::NONE,
    };

    /// Of a rule that is called where `self` may follow the caller, and `next` the rule in the caller.
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

pub(super) const END: TokenSet = TokenSet::of(&[End]);
pub(super) const QUESTION: TokenSet = TokenSet::of(&[Question]);
pub(super) const COLON: TokenSet = TokenSet::of(&[Colon]);
pub(super) const COMMA: TokenSet = TokenSet::of(&[Comma]);
pub(super) const OR: TokenSet = TokenSet::of(&[Or]);
pub(super) const AND: TokenSet = TokenSet::of(&[And]);
pub(super) const CLOSE_PAREN: TokenSet = TokenSet::of(&[CloseParen]);
pub(super) const CLOSE_BRACKET: TokenSet = TokenSet::of(&[CloseBracket]);
pub(super) const COMMA_BRACKET: TokenSet = TokenSet::of(&[Comma, CloseBracket]);
pub(super) const COMMA_BRACE: TokenSet = TokenSet::of(&[Comma, CloseBrace]);
pub(super) const RELATIONS: TokenSet = TokenSet::of(&[
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
]);
pub(super) const ARITHMETIC: TokenSet = TokenSet::of(&[Star, Slash, Percent, Plus, Minus]);
pub(super) const MEMBER: TokenSet = TokenSet::of(&[Dot, OpenBracket]);
pub(super) const FIELD_NAME: TokenSet = TokenSet::of(&[Ident, EscapedIdent]);

/// What a member, the operand of a sign, begins with.
pub(super) const MEMBER_START: TokenSet = TokenSet::of(&[
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

/// What an expression begins with.
pub(super) const EXPR_START: TokenSet = MEMBER_START.union(TokenSet::of(&[Exclamation]));
/// What an element or a key begins with.
pub(super) const OPT_EXPR_START: TokenSet = EXPR_START.union(QUESTION);
/// What a field of a message literal begins with.
pub(super) const FIELD_START: TokenSet = FIELD_NAME.union(QUESTION);
