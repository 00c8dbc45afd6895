//! Runs the test cases of cost estimates in Markdown files, `tests/cases/cost/<topic>.md`.
//!
//! The language of a code block determines its content:
//!
//! - `vars`: variables for the following blocks, `name: type`. `name: type {field: type, …}` declares an object type.
//! - `sizes`: maximum sizes of these variables, `path: size`. `type NAME: size` is for all values of a type.
//! - `schema`: the JSON schema of `self` and `oldSelf`, as for a rule of a CRD.
//! - `cel`: cases, separated by blank lines. A case is an expression and its expected results. Each result is a comment
//!   on its own line. Literals of different types may be mixed.
//!
//! | comment | expected result |
//! |---|---|
//! | `// cost: MIN..MAX` | the estimate of the API server's cost model, in which `has()` is free |
//! | `// cost if has() has one: MIN..MAX` | the estimate of cel-go's cost model, in which `has()` costs 1 |
//! | `// greatest cost: MAX` | the maximum of the API server's estimate |
//! | `// greatest cost above: MAX` | a lower limit of the maximum of the API server's estimate |
//! | `// given: {…}` | the values of the variables for the measured cost |
//! | `// measured: COST` | the actual cost without constant folding, which must not exceed the estimate |
//!
//! Measurements use an authorizer that allows everything, and `has()` costs 1.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Value as Json, json};
use vap_status_controller::cel::checker::{self, CheckedAst};
use vap_status_controller::cel::cost::{
    AstNode, CostEstimate, PathStep, SizeEstimate, SizeEstimator,
};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::estimate::{self, CostOptions};
use vap_status_controller::cel::eval::{Bindings, Limits, Program, Runtime};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::{FieldTypes, StructType, Type};
use vap_status_controller::cel::value::Value;
use vap_status_controller::library::authz::{
    AuthorizerAnswer, AuthorizerDecision, AuthorizerList, AuthorizerRule, AuthorizerValue, UserInfo,
};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::estimate::COST_OPTIONS;
use vap_status_controller::schema::{DeclType, DeclaredSizes, OpenApiDocument};
use vap_status_controller::version::KubernetesVersion;

#[test]
fn cost_cases_have_expected_results() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases/cost");
    let mut files: Vec<_> = std::fs::read_dir(&root)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let mut n_cases = 0;
    let mut failures = String::new();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut context = Context::empty();
        for (language, lines) in blocks(&text) {
            match language {
                "vars" => context = Context::from_variables(&lines),
                "sizes" => context.sizes = Sizes::hints(&lines),
                "schema" => context = Context::from_schema(&lines),
                "cel" => {
                    for case in lines.split(|line| line.trim().is_empty()) {
                        n_cases += 1;
                        if let Err(difference) = check_case(case, &context) {
                            let _ = writeln!(failures, "{}: {difference}", file.display());
                        }
                    }
                }
                other => panic!("{}: a block of language {other:?}", file.display()),
            }
        }
    }
    assert!(n_cases > 500, "only {n_cases} cases found");
    assert!(failures.is_empty(), "\n{failures}");
}

/// Returns the language and the lines of each code block in a Markdown page.
fn blocks(text: &str) -> Vec<(&str, Vec<&str>)> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, Vec<&str>)> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(language), None) => open = Some((language, Vec::new())),
            (None, Some((_, lines))) => lines.push(line),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn check_case(case: &[&str], context: &Context) -> Result<(), String> {
    let (expected, source): (Vec<&str>, Vec<&str>) =
        case.iter().partition(|line| is_expectation(line));
    assert!(!expected.is_empty(), "no expected result for {source:?}");
    let text = source.join("\n");
    let (ast, found) = syntax::parse(&text);
    let ast = ast.ok_or_else(|| found.render(&text))?;
    let (checked, found) = checker::check(&Arc::new(ast), &text, &context.env());
    if !found.is_empty() {
        return Err(found.render(&text));
    }
    check(&checked, context, &expected).map_err(|difference| format!("{text}\n  {difference}"))
}

/// Declarations of a block's cases.
struct Context {
    variables: Vec<Variable>,
    types: HashMap<String, Type>,
    sizes: Sizes,
}

impl Context {
    fn empty() -> Self {
        Self {
            variables: Vec::new(),
            types: HashMap::new(),
            sizes: Sizes::Hints(Vec::new()),
        }
    }

    fn from_variables(lines: &[&str]) -> Self {
        let mut context = Self::empty();
        for line in lines {
            let (name, type_) = line.split_once(": ").unwrap();
            if let Some(fields) = type_.strip_prefix("type ") {
                let fields = Fields::parse(fields, &context.types);
                let type_ = Type::Struct(StructType::new(name, Arc::new(fields)));
                context.types.insert(name.to_owned(), type_);
            } else {
                let type_ = parse_type(type_, &context.types);
                context.variables.push(Variable::new(name, type_));
            }
        }
        context
    }

    fn from_schema(lines: &[&str]) -> Self {
        let declared = self_type(lines);
        let type_ = declared.cel_type("Self");
        let mut context = Self::empty();
        context.variables = ["self", "oldSelf"]
            .map(|name| Variable::new(name, type_.clone()))
            .into();
        context.sizes = Sizes::OfRule(DeclaredSizes::for_rule(declared));
        context
    }

    fn env(&self) -> Env {
        let types = self.types.iter();
        base_env(KubernetesVersion::DEFAULT)
            .extend(self.variables.iter().cloned())
            .extend_types(types.map(|(name, type_)| (name.as_str().into(), type_.clone())))
    }
}

/// The API server's cost model without constant folding.
#[derive(Debug)]
struct Unfolded;

impl Runtime for Unfolded {
    fn folds_constants(&self) -> bool {
        false
    }
}

impl Context {
    /// Returns the actual cost of `checked`. `given` is a JSON object with the variables.
    fn measure(&self, checked: &CheckedAst, given: &str) -> Result<u64, String> {
        let given: BTreeMap<String, Json> = serde_json::from_str(given).unwrap();
        let mut bindings = Bindings::default();
        for (name, value) in given {
            let variable = self
                .variables
                .iter()
                .find(|variable| *variable.name == *name);
            let type_ = variable.map_or(&Type::Dyn, |variable| &variable.type_);
            bindings.bind(name, value_of(&value, type_));
        }
        let all = AuthorizerRule {
            answer: AuthorizerAnswer {
                decision: AuthorizerDecision::Allow,
                ..AuthorizerAnswer::default()
            },
            ..AuthorizerRule::default()
        };
        let authorizer =
            AuthorizerValue::new(UserInfo::default(), Arc::new(AuthorizerList(vec![all])));
        bindings.bind("authorizer", Value::opaque(authorizer));
        let program =
            Program::plan(checked, &self.env(), &Unfolded).map_err(|error| error.to_string())?;
        let evaluation = program.eval(&bindings, Limits::from_cost(u64::MAX));
        match evaluation.result {
            Ok(_) => Ok(evaluation.cost),
            Err(error) => Err(error.to_string()),
        }
    }
}

/// Converts `json` to a value of `type_`. JSON keys are strings, so they are converted to the key type of the map.
fn value_of(json: &Json, type_: &Type) -> Value {
    match (json, type_) {
        (Json::Array(elements), Type::List(of)) => {
            let elements = elements.iter().map(|element| value_of(element, of));
            Value::list(elements.collect::<Vec<_>>())
        }
        (Json::Object(fields), Type::Map(entry)) => {
            let key = |text: &str| match entry.0 {
                Type::Int => Value::Int(text.parse().unwrap()),
                _ => Value::from(text),
            };
            let entries = fields.iter();
            Value::map(entries.map(|(k, v)| (key(k), value_of(v, &entry.1)))).unwrap()
        }
        _ => Value::from(json),
    }
}

#[derive(Debug)]
struct Fields(Vec<(String, Type)>);

impl Fields {
    /// Parses `{name: type, …}`.
    fn parse(text: &str, types: &HashMap<String, Type>) -> Self {
        let inner = text
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'));
        let field = |field: &str| {
            let (name, type_) = field.split_once(": ").unwrap();
            (name.to_owned(), parse_type(type_, types))
        };
        Self(inner.unwrap().split(", ").map(field).collect())
    }
}

impl FieldTypes for Fields {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        let (_, type_) = self.0.iter().find(|(name, _)| name == field)?;
        Some(type_.clone())
    }

    fn field_names(&self) -> Vec<&str> {
        self.0.iter().map(|(name, _)| name.as_str()).collect()
    }
}

fn parse_type(text: &str, types: &HashMap<String, Type>) -> Type {
    let of = |name: &str| {
        let rest = text.strip_prefix(name)?.strip_prefix('(')?;
        rest.strip_suffix(')')
    };
    if let Some(elem) = of("list") {
        return Type::list(parse_type(elem, types));
    }
    if let Some((key, value)) = of("map").and_then(|inner| inner.split_once(", ")) {
        return Type::map(parse_type(key, types), parse_type(value, types));
    }
    match text {
        "dyn" => Type::Dyn,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "kubernetes.authorization.Authorizer" => Type::Struct(StructType::undeclared(text)),
        named => types
            .get(named)
            .unwrap_or_else(|| panic!("no type {named}"))
            .clone(),
    }
}

/// The source of the sizes of variables.
enum Sizes {
    /// A block of the language `sizes`.
    Hints(Vec<(String, u64)>),
    /// The type of `self`, from a block of the language `schema`.
    OfRule(DeclaredSizes),
}

impl Sizes {
    /// Parses lines of the form `PATH: SIZE` and `type NAME: SIZE`.
    fn hints(lines: &[&str]) -> Self {
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

/// Returns the type for the JSON schema in `lines`.
fn self_type(lines: &[&str]) -> Arc<DeclType> {
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

/// Prefixes of expected results.
const EXPECTATIONS: [&str; 6] = [
    "// cost: ",
    "// cost if has() has one: ",
    "// greatest cost: ",
    "// greatest cost above: ",
    "// given: ",
    "// measured: ",
];

fn is_expectation(line: &str) -> bool {
    EXPECTATIONS.iter().any(|start| line.starts_with(start))
}

/// Compares the cost estimates of `checked` with the expected results.
fn check(checked: &CheckedAst, context: &Context, expected: &[&str]) -> Result<(), String> {
    let sizes = &context.sizes;
    let given = expected
        .iter()
        .find_map(|line| line.strip_prefix("// given: "));
    let estimate = |options: CostOptions| estimate::estimate(checked, sizes, options);
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
            // The actual cost may be below the minimum, because the minimum of some functions is too high.
            "// measured" => {
                let cost = context.measure(checked, given.unwrap_or("{}"))?;
                if cost != number(value) {
                    let _ = write!(differences, "{line} (actually {cost}) ");
                }
                (number(value) <= with_has.max, with_has)
            }
            // These values are inputs of `// measured`.
            "// given" => continue,
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
