//! Code that several fuzz targets use: the properties that hold for every expression, and the generation of expressions
//! from a fuzzer's bytes. `tests/properties.rs` checks the same properties.

use std::sync::LazyLock;

#[allow(dead_code, reason = "fuzz targets use a part")]
#[path = "../../e2e/src/hostile/mod.rs"]
mod hostile;
#[path = "../../tests/support/properties/mod.rs"]
mod properties;
#[allow(dead_code, reason = "fuzz targets use a part")]
#[path = "../../parity/src/random.rs"]
mod random;
pub mod retained;

use properties::Fixture;
use properties::choices::Choices;
use properties::generator::Generator;

/// The maximum cost of an evaluation. Instrumented code is slow, so this is a tenth of the API server's limit.
const COST_LIMIT: u64 = 100_000;

/// The maximum nesting of calls in generated expressions.
const MAX_DEPTH: u32 = 5;

static FIXTURE: LazyLock<Fixture> = LazyLock::new(|| {
    let mut fixture = Fixture::new();
    fixture.cost_limit = COST_LIMIT;
    fixture
});

/// Parses, checks, plans and evaluates `text`, and asserts the properties that hold for every expression.
///
/// # Panics
/// Panics if a property is violated.
pub fn evaluate(text: &str) {
    if let Err(why) = FIXTURE.check(text) {
        panic!("{text}\n{why}");
    }
}

/// Generates an expression from `bytes`, and calls [`evaluate`] with the expression.
///
/// # Panics
/// Panics if a property is violated.
pub fn evaluate_made(bytes: &[u8]) {
    let choices = Choices::Bytes(bytes);
    let text = Generator::new(&FIXTURE.material, choices, true).any(MAX_DEPTH);
    evaluate(&text);
}
