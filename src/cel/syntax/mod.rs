//! From text to [`Ast`]: limits, the parser, macros.
//!
//! The grammar is read by the `cel` crate's parser, of which nothing is seen outside of this folder; its
//! tree is lowered at once. The parser is asked for no macros: these are expanded in lowering, after
//! cel-go, so that places and accumulators are those of the API server.
//!
//! Source: cel-go `parser/parser.go`; DESIGN.md section 5 has the measurements behind the choice.

mod guard;
mod lower;
mod macros;

pub use guard::{MAX_CODE_POINTS, MAX_RECURSION_DEPTH};

use super::ast::Ast;
use super::diagnostic::{Code, Diagnostics};
use super::source::{Location, SourceMap};

/// The stack of the thread on which deeply nested texts are parsed and checked, in bytes.
const DEEP_STACK_BYTES: usize = 256 * 1024 * 1024;

/// Texts whose brackets nest deeper than this are parsed on a thread of their own; the parser takes many
/// kilobytes of the stack for each level.
const SHALLOW_BRACKETS: u32 = 6;

/// Texts whose chains of operators and selections are longer than this are parsed on a thread of their
/// own.
const SHALLOW_CHAIN: u32 = 40;

/// Parses `text`.
///
/// Never fails: the tree is `None` where there are findings.
#[must_use]
pub fn parse(text: &str) -> (Option<Ast>, Diagnostics) {
    let mut found = Diagnostics::default();
    let source = SourceMap::new(text);
    if source.n_code_points() > MAX_CODE_POINTS {
        found.report(
            Code::LimitExceeded,
            Location::NONE,
            format!(
                "expression code point size exceeds limit: size: {}, limit {MAX_CODE_POINTS}",
                source.n_code_points()
            ),
        );
        return (None, found);
    }
    let nesting = guard::nesting(text);
    if nesting.brackets > MAX_RECURSION_DEPTH {
        let message = format!("expression recursion limit exceeded: {MAX_RECURSION_DEPTH}");
        found.report(Code::LimitExceeded, Location::NONE, message);
        return (None, found);
    }
    if nesting.chain > guard::MAX_CHAIN {
        found.report(Code::LimitExceeded, Location::NONE, lower::TOO_DEEP);
        return (None, found);
    }
    let may_be_deep = nesting.brackets > SHALLOW_BRACKETS || nesting.chain > SHALLOW_CHAIN;
    run_on_deep_stack(may_be_deep, || lower::parse(text, &source))
}

/// Runs `work`, on a thread with a large stack if `deep`.
///
/// Nesting is bounded by [`MAX_RECURSION_DEPTH`], but a level may take kilobytes of the stack. Where no
/// thread can be had, the work is done in place.
pub(crate) fn run_on_deep_stack<T: Send>(deep: bool, work: impl Fn() -> T + Send + Sync) -> T {
    if deep {
        let outcome = std::thread::scope(|scope| {
            std::thread::Builder::new()
                .name("deep".into())
                .stack_size(DEEP_STACK_BYTES)
                .spawn_scoped(scope, &work)
                .ok()
                .map(std::thread::ScopedJoinHandle::join)
        });
        match outcome {
            Some(Ok(value)) => return value,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
            None => {}
        }
    }
    work()
}
