//! Tests of strings: `a == 'b'`, `a.startsWith('b')`, `a.endsWith('b')`, `a.contains('b')`, and their negations.

use super::path::{self, Operator};
use cel::ast::{Ast, Expr, ExprId, Literal};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestKind {
    Equals,
    StartsWith,
    EndsWith,
    Contains,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct TextTest<'a> {
    kind: TestKind,
    text: &'a str,
}

/// A test of a string, and its result.
pub(super) type TestResult<'a> = (TextTest<'a>, bool);

/// Returns the path that `id` tests, the test, and false if the test is negated. `None` for other expressions.
pub(super) fn text_test(ast: &Ast, id: ExprId) -> Option<(String, TestResult<'_>)> {
    if let Some(("!_", [operand])) = ast.global_call(id) {
        let (path, (test, result)) = text_test(ast, *operand)?;
        return Some((path, (test, !result)));
    }
    if let Expr::Call {
        function,
        target: Some(target),
        args,
    } = ast.expr(id)
    {
        let kind = match &**function {
            "startsWith" => TestKind::StartsWith,
            "endsWith" => TestKind::EndsWith,
            "contains" => TestKind::Contains,
            _ => return None,
        };
        let [arg] = &**args else { return None };
        let Expr::Literal(Literal::String(text)) = ast.expr(*arg) else {
            return None;
        };
        // A test with an empty literal is always true, so it is ignored.
        let test = TextTest { kind, text };
        return (!text.is_empty()).then_some((path::path(ast, *target)?, (test, true)));
    }
    let comparison = path::comparison(ast, id)?;
    let Literal::String(text) = comparison.literal else {
        return None;
    };
    let is_equal = match comparison.operator {
        Operator::Equal => true,
        Operator::NotEqual => false,
        _ => return None,
    };
    let kind = TestKind::Equals;
    Some((comparison.path, (TextTest { kind, text }, is_equal)))
}

impl TextTest<'_> {
    /// Returns true if each string that passes this test also passes `other`.
    fn implies(self, other: Self) -> bool {
        let (own, text) = (self.text, other.text);
        match (self.kind, other.kind) {
            (TestKind::Equals, TestKind::Equals) => own == text,
            (TestKind::Equals | TestKind::StartsWith, TestKind::StartsWith) => {
                own.starts_with(text)
            }
            (TestKind::Equals | TestKind::EndsWith, TestKind::EndsWith) => own.ends_with(text),
            (_, TestKind::Contains) => own.contains(text),
            _ => false,
        }
    }

    /// Returns true if no string passes both tests.
    fn excludes(self, other: Self) -> bool {
        match (self.kind, other.kind) {
            (TestKind::Equals, TestKind::Equals) => self.text != other.text,
            (TestKind::Equals, _) => !self.implies(other),
            (_, TestKind::Equals) => !other.implies(self),
            (TestKind::StartsWith, TestKind::StartsWith)
            | (TestKind::EndsWith, TestKind::EndsWith) => {
                !self.implies(other) && !other.implies(self)
            }
            _ => false,
        }
    }
}

/// The reason why two test results for the same string contradict each other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Contradiction {
    /// No string passes both tests.
    Exclusive,
    /// The test that is true implies the test that is false.
    Implied,
}

/// Returns the contradiction between two results. `None` if a string can have both.
pub(super) fn contradiction(
    (one, is_true): TestResult<'_>,
    (other, other_is_true): TestResult<'_>,
) -> Option<Contradiction> {
    match (is_true, other_is_true) {
        (true, true) => one.excludes(other).then_some(Contradiction::Exclusive),
        (true, false) => one.implies(other).then_some(Contradiction::Implied),
        (false, true) => other.implies(one).then_some(Contradiction::Implied),
        (false, false) => None,
    }
}
