//! Costs in the cases of `tests/cases.rs`: sizes of variables, schemas of rules, and what is expected.

use std::fmt::Write as _;
use std::sync::Arc;

use serde_json::json;
use vap_status_controller::cel::checker::CheckedAst;
use vap_status_controller::cel::cost::{
    self, AstNode, CostEstimate, CostOptions, PathStep, SizeEstimate, SizeEstimator,
};
use vap_status_controller::library::cost::{COST_OPTIONS, KubernetesCosts};
use vap_status_controller::schema::{DeclType, DeclaredSizes, OpenApiDocument};

/// Who knows the sizes of the variables of a case.
pub(crate) enum Sizes {
    /// Sizes written in a block of language `sizes`.
    Hints(Vec<(String, u64)>),
    /// Those of the type of `self`, by a block of language `schema`.
    OfRule(DeclaredSizes),
}

impl Sizes {
    /// The sizes of the lines `PATH: SIZE` and `type NAME: SIZE`.
    pub(crate) fn hints(lines: &[&str]) -> Self {
        let hint = |line: &&str| {
            let (path, size) = line.rsplit_once(": ").unwrap();
            (path.to_owned(), size.parse().unwrap())
        };
        Self::Hints(lines.iter().map(hint).collect())
    }
}

impl SizeEstimator for Sizes {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        let hints = match self {
            Self::Hints(hints) => hints,
            Self::OfRule(sizes) => return sizes.estimate_size(node),
        };
        let steps = node.path().steps();
        let path: Vec<_> = steps.into_iter().map(PathStep::as_str).collect();
        let path = path.join(".");
        let of_type = format!("type {}", node.type_());
        let of = |key: &str| hints.iter().find(|(name, _)| name == key);
        let (_, max) = of(&path).or_else(|| of(&of_type))?;
        Some(SizeEstimate::new(0, *max))
    }
}

/// The type of values whose schema the lines are.
pub(crate) fn self_type(lines: &[&str]) -> Arc<DeclType> {
    let schema: serde_json::Value = serde_json::from_str(&lines.join("\n")).unwrap();
    let document = json!({"openapi": "3.0.0", "components": {"schemas": {"test": {
        "type": "object",
        "properties": {"self": schema},
        "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Test"}],
    }}}});
    let document = OpenApiDocument::parse(document.to_string().as_bytes()).unwrap();
    let gvk = document.kinds().next().unwrap().clone();
    let root = document.decl_type(&gvk).unwrap();
    Arc::clone(&root.field("self").unwrap().type_)
}

/// What a case says of costs.
const EXPECTATIONS: [&str; 6] = [
    "// cost: ",
    "// cost if has() has one: ",
    "// greatest cost: ",
    "// greatest cost above: ",
    "// given: ",
    "// measured: ",
];

/// Whether the line is an expectation on costs.
pub(crate) fn is_expectation(line: &str) -> bool {
    EXPECTATIONS.iter().any(|start| line.starts_with(start))
}

/// Compares the estimates of `checked` with the lines `expected`.
pub(crate) fn check(checked: &CheckedAst, sizes: &Sizes, expected: &[&str]) -> Result<(), String> {
    let estimate =
        |options: CostOptions| cost::estimate(checked, &KubernetesCosts { sizes }, options);
    let ours = estimate(COST_OPTIONS);
    let with_has = estimate(CostOptions::default());
    let mut differences = String::new();
    for line in expected {
        let (what, value) = line.split_once(": ").unwrap();
        let (holds, actual) = match what {
            "// cost" => (ours == range(value), ours),
            "// cost if has() has one" => (with_has == range(value), with_has),
            "// greatest cost" => (ours.max == number(value), ours),
            "// greatest cost above" => (ours.max >= number(value), ours),
            // Some functions are estimated too high, even at least.
            "// measured" => (number(value) <= with_has.max, with_has),
            // The values of variables, with which that is measured.
            "// given" => (
                serde_json::from_str::<serde_json::Map<_, _>>(value).is_ok(),
                ours,
            ),
            other => panic!("an expectation {other:?}"),
        };
        if !holds {
            let _ = write!(differences, "{line} (actually {actual}) ");
        }
    }
    if differences.is_empty() {
        Ok(())
    } else {
        Err(differences)
    }
}

fn range(text: &str) -> CostEstimate {
    let (min, max) = text.split_once("..").unwrap();
    CostEstimate::new(number(min), number(max))
}

fn number(text: &str) -> u64 {
    text.parse().unwrap()
}
