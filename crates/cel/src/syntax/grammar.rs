//! The grammar. Each rule of cel-go's grammar has one function, which parses the rule and builds its part of the AST.
//!
//! Nodes have the same locations as in cel-go. The location of a call is its opening parenthesis, that of an operator
//! is its token, and that of a selection is the dot. The location of an index is its opening bracket, and that of an
//! entry is the colon.
//!
//! The numbers passed to `set_state` are those of cel-go's generated parser. They determine whether an error counts
//! as a repetition of the previous error.
//!
//! Source: cel-go `parser/gen/CEL.g4`, `parser/gen/cel_parser.go`, `parser/parser.go` (`Visit*`),
//! `parser/helper.go` (`balancedTree`).

use super::follow::{self, Follow, Rest};
use super::literal;
use super::macros::{self, MacroError};
use super::parser::{Counted, Expected, Parsed, Parser, Rule};
use super::token::{Kind, Token, TokenSet};
use crate::ast::{Expr, ExprId, Literal, MacroCall, MapEntry, StructField};
use crate::diagnostic::Code;
use crate::names::shared;

use Rest::{Nullable, Required};

/// Reserved words, which the grammar accepts as identifiers.
///
/// Source: cel-go `parser/parser.go`, `reservedIds`.
const RESERVED: &[&str] = &[
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
];

/// The error for an identifier in backticks, before cel-go 0.28.
const ESCAPED_IDENT: &str = "unsupported syntax: '`'";

fn deepest(parts: &[Parsed]) -> u32 {
    parts.iter().map(|part| part.depth).max().unwrap_or(0)
}

fn ids(parts: &[Parsed]) -> Box<[ExprId]> {
    parts.iter().map(|part| part.id).collect()
}

impl Parser<'_> {
    /// Parses the start rule: an expression up to the end of the input.
    pub(super) fn start(&mut self) -> Rule {
        let follow = Follow::START;
        let root = self.expr(follow.then(follow::END, Required))?;
        self.set_state(35);
        self.expect(Kind::End, follow.expect, Expected::Token(Kind::End), follow)?;
        Ok(root)
    }

    fn add(&mut self, offset: u32, expr: Expr, depth: u32) -> Parsed {
        Parsed {
            id: self.builder.add(offset, expr),
            depth,
        }
    }

    fn operator(
        &mut self,
        token: Token,
        function: &'static str,
        args: &[ExprId],
        depth: u32,
    ) -> Parsed {
        let call = Expr::Call {
            function: shared(function),
            target: None,
            args: args.into(),
        };
        self.add(token.offset, call, depth)
    }

    /// Creates a call, or expands it if it is a macro.
    fn call(
        &mut self,
        offset: u32,
        function: &str,
        target: Option<Parsed>,
        args: &[Parsed],
    ) -> Rule {
        let of_args = deepest(args);
        let depth = target.map_or(of_args, |target| target.depth.max(of_args) + 1);
        let arg_ids = ids(args);
        let target = target.map(|target| target.id);
        let id = match macros::expand(
            &mut self.builder,
            self.max_nodes,
            offset,
            function,
            target,
            &arg_ids,
            self.behavior,
        ) {
            None => self.builder.add(
                offset,
                Expr::Call {
                    function: shared(function),
                    target,
                    args: arg_ids,
                },
            ),
            Some(Ok(expanded)) => {
                self.builder.add_macro(MacroCall {
                    function: shared(function),
                    n_args: args.len(),
                    at: expanded,
                });
                expanded
            }
            Some(Err(MacroError::TooLarge)) => {
                return Err(self.too_large());
            }
            Some(Err(MacroError::Invalid(offset, message))) => {
                let offset = self.builder.offset(offset);
                self.report_semantic(offset, Code::InvalidMacroCall, message);
                self.builder.add(offset, Expr::Unspecified)
            }
        };
        Ok(Parsed { id, depth })
    }

    fn expr(&mut self, follow: Follow) -> Rule {
        self.enter(Counted::Expr)?;
        let from = self.mark();
        let mut parsed = self.conditional_or(follow.then(follow::QUESTION, Nullable))?;
        if self.current() == Kind::Question {
            let token = self.take();
            let yes = self.conditional_or(follow.then(follow::COLON, Required))?;
            self.set_state(40);
            let colon = self.expect(
                Kind::Colon,
                follow::EXPR_START,
                Expected::Token(Kind::Colon),
                follow,
            )?;
            let no = match colon {
                Some(_) => self.expr(follow.then(TokenSet::NONE, Nullable))?,
                None => self.missing(),
            };
            let depth = deepest(&[parsed, yes, no]) + 1;
            parsed = self.operator(token, "_?_:_", &[parsed.id, yes.id, no.id], depth);
            self.nests(from);
        }
        self.exit(Counted::Expr);
        Ok(parsed)
    }

    fn conditional_or(&mut self, follow: Follow) -> Rule {
        let operand_follow = follow.then(follow::OR, Nullable);
        let first = self.conditional_and(operand_follow)?;
        if self.current() != Kind::Or {
            return Ok(first);
        }
        let (mut terms, mut operators) = (vec![first], Vec::new());
        while self.current() == Kind::Or {
            operators.push(self.take());
            terms.push(self.conditional_and(operand_follow)?);
        }
        Ok(self.balanced("_||_", &terms, &operators))
    }

    fn conditional_and(&mut self, follow: Follow) -> Rule {
        let operand_follow = follow.then(follow::AND, Nullable);
        let first = self.relation(operand_follow)?;
        if self.current() != Kind::And {
            return Ok(first);
        }
        let (mut terms, mut operators) = (vec![first], Vec::new());
        while self.current() == Kind::And {
            operators.push(self.take());
            terms.push(self.relation(operand_follow)?);
        }
        Ok(self.balanced("_&&_", &terms, &operators))
    }

    /// Creates a balanced tree of calls of the same operator.
    fn balanced(
        &mut self,
        function: &'static str,
        terms: &[Parsed],
        operators: &[Token],
    ) -> Parsed {
        let middle = operators.len() / 2;
        let (Some(&token), Some((left, right))) =
            (operators.get(middle), terms.split_at_checked(middle + 1))
        else {
            return match terms.first() {
                Some(only) => *only,
                None => self.missing(),
            };
        };
        let left_operators = operators.get(..middle).unwrap_or_default();
        let right_operators = operators.get(middle + 1..).unwrap_or_default();
        let left = self.balanced(function, left, left_operators);
        let right = self.balanced(function, right, right_operators);
        let depth = left.depth.max(right.depth);
        self.operator(token, function, &[left.id, right.id], depth)
    }

    fn relation(&mut self, follow: Follow) -> Rule {
        self.enter(Counted::Relation)?;
        let from = self.mark();
        let operand_follow = follow.then(follow::RELATIONS, Nullable);
        let mut left = self.calc(0, operand_follow)?;
        while let Some(function) = self.current().relation() {
            let token = self.take();
            self.enter(Counted::Relation)?;
            let right = self.calc(0, operand_follow.then(follow::RELATIONS, Nullable))?;
            self.exit(Counted::Relation);
            let depth = left.depth.max(right.depth) + 1;
            left = self.operator(token, function, &[left.id, right.id], depth);
            self.nests(from);
        }
        self.exit(Counted::Relation);
        Ok(left)
    }

    fn calc(&mut self, precedence: u8, follow: Follow) -> Rule {
        self.enter(Counted::Calc)?;
        let from = self.mark();
        let operand_follow = follow.then(follow::ARITHMETIC, Nullable);
        let mut left = self.unary(operand_follow)?;
        while let Some((function, binds)) = self.current().arithmetic()
            && binds >= precedence
        {
            let token = self.take();
            let right = self.calc(binds + 1, operand_follow)?;
            let depth = left.depth.max(right.depth) + 1;
            left = self.operator(token, function, &[left.id, right.id], depth);
            self.nests(from);
        }
        self.exit(Counted::Calc);
        Ok(left)
    }

    /// Returns the placeholder for a missing operand.
    fn no_operand(&mut self, token: Token) -> Parsed {
        let literal = Literal::String("<<error>>".into());
        self.add(token.offset, Expr::Literal(literal), 0)
    }

    fn unary(&mut self, follow: Follow) -> Rule {
        let start = self.peek_token(0);
        self.set_state(99);
        if !self.sync(follow::EXPR_START, Expected::Operand, follow)? {
            return Ok(self.no_operand(start));
        }
        match self.current() {
            Kind::Minus => match self.peek(1) {
                Kind::Int | Kind::Float => self.member(follow),
                next if follow::MEMBER_START.contains(next) => self.negation(follow),
                _ => {
                    self.fail(1, Expected::Operand, follow)?;
                    Ok(self.no_operand(start))
                }
            },
            Kind::Exclamation => self.not(follow),
            kind if follow::MEMBER_START.contains(kind) => self.member(follow),
            _ => {
                self.fail(0, Expected::Operand, follow)?;
                Ok(self.no_operand(start))
            }
        }
    }

    fn signed(
        &mut self,
        token: Token,
        function: &'static str,
        n: usize,
        operand: Parsed,
    ) -> Parsed {
        if n.is_multiple_of(2) {
            return operand;
        }
        self.operator(token, function, &[operand.id], operand.depth)
    }

    fn not(&mut self, follow: Follow) -> Rule {
        let token = self.take();
        let mut n = 1;
        loop {
            self.set_state(90);
            self.sync_loop(follow::EXPR_START, Expected::Operand, follow)?;
            if self.current() != Kind::Exclamation {
                break;
            }
            self.take();
            n += 1;
        }
        let operand = self.member(follow)?;
        Ok(self.signed(token, "!_", n, operand))
    }

    fn negation(&mut self, follow: Follow) -> Rule {
        let token = self.take();
        let mut n = 1;
        loop {
            self.set_state(96);
            self.sync_loop(follow::MEMBER_START, Expected::Operand, follow)?;
            let unfit = if self.current() == Kind::Minus {
                (!follow::MEMBER_START.contains(self.peek(1))).then_some(1)
            } else {
                (!follow::MEMBER_START.contains(self.current())).then_some(0)
            };
            if let Some(ahead) = unfit {
                self.fail(ahead, Expected::Operand, follow)?;
                let operand = self.missing();
                return Ok(self.signed(token, "-_", n, operand));
            }
            if self.current() != Kind::Minus {
                break;
            }
            self.take();
            n += 1;
        }
        let operand = self.member(follow)?;
        Ok(self.signed(token, "-_", n, operand))
    }

    fn member(&mut self, follow: Follow) -> Rule {
        let from = self.mark();
        let mut parsed = self.primary(follow.then(follow::MEMBER, Nullable))?;
        loop {
            let (next, ended) = match (self.current(), self.peek(1), self.peek(2)) {
                (Kind::Dot, Kind::Ident, Kind::OpenParen) => self.member_call(parsed, follow)?,
                (Kind::Dot, Kind::Ident | Kind::EscapedIdent | Kind::Question, _) => {
                    self.select(parsed, follow)?
                }
                (Kind::Dot, ..) => {
                    self.set_state(126);
                    self.fail(1, Expected::Name, follow)?;
                    return Ok(parsed);
                }
                (Kind::OpenBracket, ..) => self.index(parsed, follow)?,
                _ => return Ok(parsed),
            };
            parsed = next;
            self.nests(from);
            if ended {
                return Ok(parsed);
            }
        }
    }

    /// Parses the dot and the field name of a selection from `operand`. Returns the selection, and false, because the
    /// enclosing rule does not end.
    fn select(&mut self, operand: Parsed, follow: Follow) -> Rule<(Parsed, bool)> {
        let token = self.take();
        let depth = operand.depth + 1;
        self.set_state(107);
        let optional = self.current() == Kind::Question;
        if optional {
            self.take();
        }
        let start = self.peek_token(0);
        let name = self.escape_ident(follow.then(follow::MEMBER, Nullable))?;
        let field = match name {
            Ok(name) => shared(self.field_name(name)),
            Err(message) => {
                self.report_semantic(start.offset, Code::Syntax, message);
                shared("")
            }
        };
        let operand = operand.id;
        let parsed = if optional {
            let name = self.add(start.offset, Expr::Literal(Literal::String(field)), 0);
            self.operator(token, "_?._", &[operand, name.id], depth)
        } else {
            let select = Expr::Select {
                operand,
                field,
                test_only: false,
            };
            self.add(token.offset, select, depth)
        };
        Ok((parsed, false))
    }

    /// Returns the field name of `token`, without backticks.
    ///
    /// Source: cel-go `parser/parser.go`, `normalizeIdent`.
    fn field_name(&self, token: Token) -> &str {
        token.text(self.text).trim_matches('`')
    }

    /// Parses a field name. Returns an error message if the name is invalid.
    fn escape_ident(&mut self, follow: Follow) -> Rule<Result<Token, &'static str>> {
        self.set_state(235);
        if !self.sync(follow::FIELD_NAME, Expected::FieldName, follow)? {
            return Ok(Err("unsupported ident kind"));
        }
        match self.current() {
            Kind::Ident => Ok(Ok(self.take())),
            Kind::EscapedIdent if self.behavior.escaped_field_names => Ok(Ok(self.take())),
            Kind::EscapedIdent => {
                self.take();
                Ok(Err(ESCAPED_IDENT))
            }
            _ => {
                self.fail(0, Expected::FieldName, follow)?;
                Ok(Err("unsupported ident kind"))
            }
        }
    }

    fn member_call(&mut self, target: Parsed, follow: Follow) -> Rule<(Parsed, bool)> {
        self.take();
        let name = self.take();
        let open = self.take();
        let after = follow::MEMBER.union(follow.expect);
        let (args, closed) = self.arguments(open, [115, 117], after, follow)?;
        let call = self.call(open.offset, name.text(self.text), Some(target), &args)?;
        Ok((call, !closed))
    }

    /// Parses the arguments after an opening parenthesis. Returns them, and true if the closing parenthesis was found.
    fn arguments(
        &mut self,
        open: Token,
        [first, last]: [u16; 2],
        after: TokenSet,
        follow: Follow,
    ) -> Rule<(Vec<Parsed>, bool)> {
        let mut args = Vec::new();
        let expected = Expected::Close(Kind::CloseParen, open);
        self.set_state(first);
        let start = follow::EXPR_START.union(follow::CLOSE_PAREN);
        if !self.sync(start, expected, follow)? {
            return Ok((args, false));
        }
        if follow::EXPR_START.contains(self.current()) {
            let list_follow = follow.then(follow::CLOSE_PAREN, Required);
            let arg_follow = list_follow.then(follow::COMMA, Nullable);
            args.push(self.expr(arg_follow)?);
            while self.current() == Kind::Comma {
                self.take();
                args.push(self.expr(arg_follow)?);
            }
        }
        self.set_state(last);
        let closed = self.expect(Kind::CloseParen, after, expected, follow)?;
        Ok((args, closed.is_some()))
    }

    fn index(&mut self, operand: Parsed, follow: Follow) -> Rule<(Parsed, bool)> {
        let open = self.take();
        self.set_state(121);
        let expected = Expected::Close(Kind::CloseBracket, open);
        let (mut function, mut closed) = ("_[_]", false);
        let index = if self.sync(follow::OPT_EXPR_START, Expected::Operand, follow)? {
            if self.current() == Kind::Question {
                self.take();
                function = "_[?_]";
            }
            let index = self.expr(follow.then(follow::CLOSE_BRACKET, Required))?;
            self.set_state(124);
            let after = follow::MEMBER.union(follow.expect);
            closed = self
                .expect(Kind::CloseBracket, after, expected, follow)?
                .is_some();
            index
        } else {
            self.missing()
        };
        let depth = operand.depth.max(index.depth) + 1;
        let parsed = self.operator(open, function, &[operand.id, index.id], depth);
        Ok((parsed, !closed))
    }

    fn primary(&mut self, follow: Follow) -> Rule {
        self.set_state(184);
        if !self.sync(follow::MEMBER_START, Expected::Operand, follow)? {
            return Ok(self.missing());
        }
        match self.current() {
            Kind::Dot | Kind::Ident => self.name(follow),
            Kind::OpenParen => {
                let open = self.take();
                let nested = self.expr(follow.then(follow::CLOSE_PAREN, Required))?;
                self.set_state(146);
                let expected = Expected::Close(Kind::CloseParen, open);
                self.expect(Kind::CloseParen, follow.expect, expected, follow)?;
                Ok(nested)
            }
            Kind::OpenBracket => self.list(follow),
            Kind::OpenBrace => self.map(follow),
            Kind::Minus if !matches!(self.peek(1), Kind::Int | Kind::Float) => {
                self.fail(1, Expected::Operand, follow)?;
                Ok(self.missing())
            }
            kind if follow::MEMBER_START.contains(kind) => Ok(self.literal()),
            _ => {
                self.fail(0, Expected::Operand, follow)?;
                Ok(self.missing())
            }
        }
    }

    /// Returns true if the qualified name at this point is followed by the body of a message literal.
    fn is_message(&self, first: usize) -> bool {
        let mut ahead = first + 1;
        while self.peek(ahead) == Kind::Dot && self.peek(ahead + 1) == Kind::Ident {
            ahead += 2;
        }
        self.peek(ahead) == Kind::OpenBrace
    }

    fn name(&mut self, follow: Follow) -> Rule {
        let start = self.peek_token(0);
        let first = usize::from(start.kind == Kind::Dot);
        if self.peek(first) != Kind::Ident {
            self.fail(first, Expected::Name, follow)?;
            return Ok(self.missing());
        }
        if self.is_message(first) {
            return self.message(follow);
        }
        if first > 0 {
            self.take();
        }
        let token = self.take();
        let word = token.text(self.text);
        let absolute = if first > 0 {
            Some(format!(".{word}"))
        } else {
            None
        };
        let name = absolute.as_deref().unwrap_or(word);
        let is_reserved = RESERVED.contains(&word);
        if self.current() == Kind::OpenParen {
            let open = self.take();
            let from = self.mark();
            let (args, _) = self.arguments(open, [141, 143], follow.expect, follow)?;
            if is_reserved {
                // The function name is invalid. Upstream does not validate the arguments in this case, so their
                // errors are discarded.
                self.forget(from);
                return Ok(self.reserved(start, word));
            }
            return self.call(open.offset, name, None, &args);
        }
        if is_reserved {
            return Ok(self.reserved(start, word));
        }
        Ok(self.add(token.offset, Expr::Ident(shared(name)), 0))
    }

    fn reserved(&mut self, token: Token, word: &str) -> Parsed {
        let message = format!("reserved identifier: {word}");
        self.report_semantic(token.offset, Code::Syntax, message);
        self.add(token.offset, Expr::Unspecified, 0)
    }

    fn message(&mut self, follow: Follow) -> Rule {
        let mut type_name = String::new();
        while self.current() != Kind::OpenBrace {
            let part = self.take();
            type_name.push_str(part.text(self.text));
        }
        let open = self.take();
        let expected = Expected::Close(Kind::CloseBrace, open);
        let (mut fields, mut depth) = (Vec::new(), 0);
        self.set_state(177);
        let start = follow::FIELD_START.union(follow::COMMA_BRACE);
        if self.sync(start, expected, follow)? {
            if follow::FIELD_START.contains(self.current()) {
                (fields, depth) = self.fields(follow.then(follow::COMMA_BRACE, Required))?;
            }
            self.close(Kind::CloseBrace, [180, 182], open, follow)?;
        }
        let object = Expr::Struct {
            type_name: type_name.into(),
            fields: fields.into(),
        };
        Ok(self.add(open.offset, object, depth))
    }

    /// Parses the end of a list, map or message: an optional trailing comma and the closing token.
    fn close(
        &mut self,
        kind: Kind,
        [comma, last]: [u16; 2],
        open: Token,
        follow: Follow,
    ) -> Rule<()> {
        self.set_state(comma);
        let next = if kind == Kind::CloseBracket {
            follow::COMMA_BRACKET
        } else {
            follow::COMMA_BRACE
        };
        if !self.sync(next, Expected::Close(kind, open), follow)? {
            return Ok(());
        }
        if self.current() == Kind::Comma {
            self.take();
        }
        self.set_state(last);
        self.expect(kind, follow.expect, Expected::Close(kind, open), follow)?;
        Ok(())
    }

    fn fields(&mut self, follow: Follow) -> Rule<(Vec<StructField>, u32)> {
        let start = self.peek_token(0);
        let (mut fields, mut depth, mut state) = (Vec::new(), 0, 203);
        loop {
            let (name, optional) = self.opt_field(follow.then(follow::COLON, Required))?;
            self.set_state(state);
            state = 207;
            let expected = Expected::Token(Kind::Colon);
            let Some(colon) = self.expect(Kind::Colon, follow::EXPR_START, expected, follow)?
            else {
                return Ok((Vec::new(), depth));
            };
            let from = self.mark();
            let value = self.expr(follow.then(follow::COMMA, Nullable))?;
            match name {
                Ok(name) => {
                    depth = depth.max(value.depth);
                    let field = shared(self.field_name(name));
                    let id = self.builder.add(colon.offset, Expr::Unspecified);
                    let value = value.id;
                    fields.push(StructField {
                        id,
                        field,
                        value,
                        optional,
                    });
                }
                Err(message) => {
                    self.forget(from);
                    self.report_semantic(start.offset, Code::Syntax, message);
                }
            }
            if self.current() != Kind::Comma || !follow::FIELD_START.contains(self.peek(1)) {
                return Ok((fields, depth));
            }
            self.take();
        }
    }

    fn opt_field(&mut self, follow: Follow) -> Rule<(Result<Token, &'static str>, bool)> {
        self.set_state(216);
        if !self.sync(follow::FIELD_START, Expected::FieldOrOptional, follow)? {
            return Ok((Err("unsupported ident kind"), false));
        }
        let optional = self.current() == Kind::Question;
        if optional {
            self.take();
        }
        let name = self.escape_ident(follow)?;
        Ok((name, optional))
    }

    fn opt_expr(&mut self, follow: Follow) -> Rule<(Parsed, bool)> {
        self.set_state(238);
        if !self.sync(follow::OPT_EXPR_START, Expected::Operand, follow)? {
            return Ok((self.missing(), false));
        }
        let optional = self.current() == Kind::Question;
        if optional {
            self.take();
        }
        Ok((self.expr(follow)?, optional))
    }

    fn list(&mut self, follow: Follow) -> Rule {
        let open = self.take();
        let (mut elements, mut optional_indices) = (Vec::new(), Vec::new());
        self.set_state(150);
        let start = follow::OPT_EXPR_START.union(follow::COMMA_BRACKET);
        let expected = Expected::Close(Kind::CloseBracket, open);
        if self.sync(start, expected, follow)? {
            if follow::OPT_EXPR_START.contains(self.current()) {
                let list_follow = follow.then(follow::COMMA_BRACKET, Required);
                let element_follow = list_follow.then(follow::COMMA, Nullable);
                loop {
                    let (element, optional) = self.opt_expr(element_follow)?;
                    if optional {
                        optional_indices.push(u32::try_from(elements.len()).unwrap_or(u32::MAX));
                    }
                    elements.push(element);
                    if self.current() != Kind::Comma
                        || !follow::OPT_EXPR_START.contains(self.peek(1))
                    {
                        break;
                    }
                    self.take();
                }
            }
            self.close(Kind::CloseBracket, [153, 155], open, follow)?;
        }
        let list = Expr::List {
            elements: ids(&elements),
            optional_indices: optional_indices.into(),
        };
        Ok(self.add(open.offset, list, deepest(&elements)))
    }

    fn map(&mut self, follow: Follow) -> Rule {
        let open = self.take();
        let (mut entries, mut depth) = (Vec::new(), 0);
        self.set_state(158);
        let start = follow::OPT_EXPR_START.union(follow::COMMA_BRACE);
        let expected = Expected::Close(Kind::CloseBrace, open);
        if self.sync(start, expected, follow)? {
            if follow::OPT_EXPR_START.contains(self.current()) {
                (entries, depth) = self.entries(follow.then(follow::COMMA_BRACE, Required))?;
            }
            self.close(Kind::CloseBrace, [161, 163], open, follow)?;
        }
        Ok(self.add(open.offset, Expr::Map(entries.into()), depth))
    }

    fn entries(&mut self, follow: Follow) -> Rule<(Vec<MapEntry>, u32)> {
        let (mut entries, mut depth, mut state) = (Vec::new(), 0, 221);
        loop {
            let from = self.mark();
            let (key, optional) = self.opt_expr(follow.then(follow::COLON, Required))?;
            self.set_state(state);
            state = 225;
            let expected = Expected::Token(Kind::Colon);
            let Some(colon) = self.expect(Kind::Colon, follow::EXPR_START, expected, follow)?
            else {
                // The value is missing. Upstream does not validate the key in this case, so its errors are discarded.
                self.forget(from);
                return Ok((entries, depth));
            };
            let value = self.expr(follow.then(follow::COMMA, Nullable))?;
            depth = depth.max(key.depth).max(value.depth);
            let id = self.builder.add(colon.offset, Expr::Unspecified);
            let (key, value) = (key.id, value.id);
            entries.push(MapEntry {
                id,
                key,
                value,
                optional,
            });
            if self.current() != Kind::Comma || !follow::OPT_EXPR_START.contains(self.peek(1)) {
                return Ok((entries, depth));
            }
            self.take();
        }
    }

    fn literal(&mut self) -> Parsed {
        let start = self.take();
        let negative = start.kind == Kind::Minus;
        let token = if negative { self.take() } else { start };
        let text = token.text(self.text);
        let value = match token.kind {
            Kind::Int => literal::int(text, negative)
                .map(Literal::Int)
                .ok_or("invalid int literal"),
            Kind::Uint => literal::uint(text)
                .map(Literal::Uint)
                .ok_or("invalid uint literal"),
            Kind::Float => literal::double(text, negative)
                .map(Literal::Double)
                .ok_or("invalid double literal"),
            Kind::String => literal::string(text).map(|value| Literal::String(value.into())),
            Kind::Bytes => literal::bytes(text.get(1..).unwrap_or_default())
                .map(|value| Literal::Bytes(value.into())),
            Kind::True => Ok(Literal::Bool(true)),
            Kind::False => Ok(Literal::Bool(false)),
            _ => Ok(Literal::Null),
        };
        match value {
            Ok(value) => self.add(start.offset, Expr::Literal(value), 0),
            Err(message) => {
                self.report_semantic(start.offset, Code::Syntax, message);
                self.add(start.offset, Expr::Unspecified, 0)
            }
        }
    }
}
