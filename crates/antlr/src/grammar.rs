//! cel-go's CEL grammar as data. The rules are those of `CEL.g4`, from which ANTLR generates cel-go's parser.
//!
//! A left-recursive rule has two parts: its non-recursive start, and a loop over its continuations. Each continuation
//! has a precedence.
//!
//! Source: cel-go `parser/gen/CEL.g4`.

use self::Part::{AtLeastOnce, Call, CallAt, Either, Loop, Maybe, OneOf, Repeat, Token};
use cel::syntax::token::Kind;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Rule {
    Start,
    Expr,
    ConditionalOr,
    ConditionalAnd,
    Relation,
    Calc,
    Unary,
    Member,
    Primary,
    ExprList,
    ListInit,
    FieldInitializerList,
    OptField,
    MapInitializerList,
    EscapeIdent,
    OptExpr,
    Literal,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Part {
    Token(Kind),
    OneOf(&'static [Kind]),
    /// A reference to a rule.
    Call(Rule),
    /// A reference to a rule. The loop of the rule accepts only operators of at least this precedence.
    CallAt(Rule, u8),
    Maybe(&'static [Part]),
    /// Zero or more repetitions.
    Repeat(&'static [Part]),
    /// One or more repetitions.
    AtLeastOnce(&'static [Part]),
    Either(&'static [&'static [Part]]),
    /// Zero or more repetitions of any of the alternatives. Each alternative has a precedence.
    Loop(&'static [(u8, &'static [Part])]),
}

pub(super) const N_RULES: usize = RULES.len();

const ARGUMENTS: Part = Maybe(&[Call(Rule::ExprList)]);
const LEADING_DOT: Part = Maybe(&[Token(Kind::Dot)]);
const TRAILING_COMMA: Part = Maybe(&[Token(Kind::Comma)]);

/// The rules and their parts, in the order of [`Rule`].
pub(super) const RULES: [(Rule, &[Part]); 17] = [
    (Rule::Start, &[Call(Rule::Expr), Token(Kind::End)]),
    (
        Rule::Expr,
        &[
            Call(Rule::ConditionalOr),
            Maybe(&[
                Token(Kind::Question),
                Call(Rule::ConditionalOr),
                Token(Kind::Colon),
                Call(Rule::Expr),
            ]),
        ],
    ),
    (
        Rule::ConditionalOr,
        &[
            Call(Rule::ConditionalAnd),
            Repeat(&[Token(Kind::Or), Call(Rule::ConditionalAnd)]),
        ],
    ),
    (
        Rule::ConditionalAnd,
        &[
            Call(Rule::Relation),
            Repeat(&[Token(Kind::And), Call(Rule::Relation)]),
        ],
    ),
    (
        Rule::Relation,
        &[
            Call(Rule::Calc),
            Loop(&[(
                1,
                &[
                    OneOf(&[
                        Kind::Less,
                        Kind::LessEquals,
                        Kind::GreaterEquals,
                        Kind::Greater,
                        Kind::Equals,
                        Kind::NotEquals,
                        Kind::In,
                    ]),
                    CallAt(Rule::Relation, 2),
                ],
            )]),
        ],
    ),
    (
        Rule::Calc,
        &[
            Call(Rule::Unary),
            Loop(&[
                (
                    2,
                    &[
                        OneOf(&[Kind::Star, Kind::Slash, Kind::Percent]),
                        CallAt(Rule::Calc, 3),
                    ],
                ),
                (
                    1,
                    &[OneOf(&[Kind::Plus, Kind::Minus]), CallAt(Rule::Calc, 2)],
                ),
            ]),
        ],
    ),
    (
        Rule::Unary,
        &[Either(&[
            &[Call(Rule::Member)],
            &[AtLeastOnce(&[Token(Kind::Exclamation)]), Call(Rule::Member)],
            &[AtLeastOnce(&[Token(Kind::Minus)]), Call(Rule::Member)],
        ])],
    ),
    (
        Rule::Member,
        &[
            Call(Rule::Primary),
            Loop(&[
                (
                    3,
                    &[
                        Token(Kind::Dot),
                        Maybe(&[Token(Kind::Question)]),
                        Call(Rule::EscapeIdent),
                    ],
                ),
                (
                    2,
                    &[
                        Token(Kind::Dot),
                        Token(Kind::Ident),
                        Token(Kind::OpenParen),
                        ARGUMENTS,
                        Token(Kind::CloseParen),
                    ],
                ),
                (
                    1,
                    &[
                        Token(Kind::OpenBracket),
                        Maybe(&[Token(Kind::Question)]),
                        Call(Rule::Expr),
                        Token(Kind::CloseBracket),
                    ],
                ),
            ]),
        ],
    ),
    (
        Rule::Primary,
        &[Either(&[
            &[LEADING_DOT, Token(Kind::Ident)],
            &[
                LEADING_DOT,
                Token(Kind::Ident),
                Token(Kind::OpenParen),
                ARGUMENTS,
                Token(Kind::CloseParen),
            ],
            &[
                Token(Kind::OpenParen),
                Call(Rule::Expr),
                Token(Kind::CloseParen),
            ],
            &[
                Token(Kind::OpenBracket),
                Maybe(&[Call(Rule::ListInit)]),
                TRAILING_COMMA,
                Token(Kind::CloseBracket),
            ],
            &[
                Token(Kind::OpenBrace),
                Maybe(&[Call(Rule::MapInitializerList)]),
                TRAILING_COMMA,
                Token(Kind::CloseBrace),
            ],
            &[
                LEADING_DOT,
                Token(Kind::Ident),
                Repeat(&[Token(Kind::Dot), Token(Kind::Ident)]),
                Token(Kind::OpenBrace),
                Maybe(&[Call(Rule::FieldInitializerList)]),
                TRAILING_COMMA,
                Token(Kind::CloseBrace),
            ],
            &[Call(Rule::Literal)],
        ])],
    ),
    (
        Rule::ExprList,
        &[
            Call(Rule::Expr),
            Repeat(&[Token(Kind::Comma), Call(Rule::Expr)]),
        ],
    ),
    (
        Rule::ListInit,
        &[
            Call(Rule::OptExpr),
            Repeat(&[Token(Kind::Comma), Call(Rule::OptExpr)]),
        ],
    ),
    (
        Rule::FieldInitializerList,
        &[
            Call(Rule::OptField),
            Token(Kind::Colon),
            Call(Rule::Expr),
            Repeat(&[
                Token(Kind::Comma),
                Call(Rule::OptField),
                Token(Kind::Colon),
                Call(Rule::Expr),
            ]),
        ],
    ),
    (
        Rule::OptField,
        &[Maybe(&[Token(Kind::Question)]), Call(Rule::EscapeIdent)],
    ),
    (
        Rule::MapInitializerList,
        &[
            Call(Rule::OptExpr),
            Token(Kind::Colon),
            Call(Rule::Expr),
            Repeat(&[
                Token(Kind::Comma),
                Call(Rule::OptExpr),
                Token(Kind::Colon),
                Call(Rule::Expr),
            ]),
        ],
    ),
    (
        Rule::EscapeIdent,
        &[Either(&[
            &[Token(Kind::Ident)],
            &[Token(Kind::EscapedIdent)],
        ])],
    ),
    (
        Rule::OptExpr,
        &[Maybe(&[Token(Kind::Question)]), Call(Rule::Expr)],
    ),
    (
        Rule::Literal,
        &[Either(&[
            &[Maybe(&[Token(Kind::Minus)]), Token(Kind::Int)],
            &[Token(Kind::Uint)],
            &[Maybe(&[Token(Kind::Minus)]), Token(Kind::Float)],
            &[Token(Kind::String)],
            &[Token(Kind::Bytes)],
            &[Token(Kind::True)],
            &[Token(Kind::False)],
            &[Token(Kind::Null)],
        ])],
    ),
];
