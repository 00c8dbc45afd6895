//! Cases of the language as Markdown: `tests/cases/<pass>/<topic>.md`.
//!
//! A block of language `vars` declares variables (`name: type`) for the blocks below it. A type may be an
//! object, `{name: type, …}`; `name: type {…}` declares the type of that name. A block of language `cel`
//! holds cases parted by blank lines: an expression, then what must be said of it, each as a comment of its
//! own line: `// type: T` for the type of a sound expression, `// error: LINE:COLUMN: TEXT` for each
//! finding, in the order of their places.
//!
//! Or what it costs, by the types alone, whatever literals are mixed: `// cost: MIN..MAX` in the API server,
//! where `has()` is free, `// cost if has() has one: MIN..MAX`, `// greatest cost: MAX`, `// greatest cost
//! above: MAX`. A block of language `sizes` bounds the sizes of the variables above it (`path: size`, or
//! `type NAME: size` for all values of a type); one of language `schema` is the schema of `self` and `oldSelf`,
//! in JSON, as in a rule of a CRD. `// measured: COST` is what an evaluation without constant folding costs, with the
//! variables of `// given: {…}`.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

#[path = "support/costs.rs"]
mod costs;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vap_status_controller::cel::ast_validators;
use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::diagnostic::Diagnostics;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::{FieldTypes, StructType, Type};
use vap_status_controller::library::environment::{KubernetesVersion, base_env};
use vap_status_controller::schema::DeclaredSizes;

use costs::Sizes;

/// What the blocks above a case declare.
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

    fn of_variables(lines: &[&str]) -> Self {
        let mut context = Self::empty();
        for line in lines {
            let (name, type_) = line.split_once(": ").unwrap();
            match type_.strip_prefix("type ") {
                Some(fields) => {
                    let fields = Fields::parse(fields, &context.types).unwrap();
                    let type_ = Type::Struct(StructType::new(name, Arc::new(fields)));
                    context.types.insert(name.to_owned(), type_);
                }
                None => {
                    let type_ = parse_type(type_.trim(), &context.types);
                    context.variables.push(Variable::new(name, type_));
                }
            }
        }
        context
    }

    fn of_schema(lines: &[&str]) -> Self {
        let declared = costs::self_type(lines);
        let mut context = Self::empty();
        let type_ = declared.cel_type("Self");
        context.variables = ["self", "oldSelf"]
            .map(|name| Variable::new(name, type_.clone()))
            .into();
        context.sizes = Sizes::OfRule(DeclaredSizes::of_rule(declared));
        context
    }

    fn env(&self) -> Env {
        let types = self.types.iter();
        base_env(KubernetesVersion::LATEST)
            .extend(self.variables.iter().cloned())
            .extend_types(types.map(|(name, type_)| (name.as_str().into(), type_.clone())))
    }
}

#[test]
fn cases() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cases");
    let mut n_cases = 0;
    let mut failures = String::new();
    for file in markdown_files(&root) {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut context = Context::empty();
        for block in blocks(&text) {
            match block.language {
                "vars" => context = Context::of_variables(&block.lines),
                "sizes" => context.sizes = Sizes::hints(&block.lines),
                "schema" => context = Context::of_schema(&block.lines),
                "cel" => {
                    for case in block.lines.split(|line| line.trim().is_empty()) {
                        if case.is_empty() {
                            continue;
                        }
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
    assert!(n_cases > 100, "only {n_cases} cases found");
    assert!(failures.is_empty(), "\n{failures}");
}

fn markdown_files(root: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut pending = vec![root.to_owned()];
    while let Some(folder) = pending.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path);
            } else if path.extension().is_some_and(|extension| extension == "md") {
                files.push(path);
            }
        }
    }
    files.sort();
    files
}

struct Block<'a> {
    language: &'a str,
    lines: Vec<&'a str>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks = Vec::new();
    let mut open: Option<Block<'_>> = None;
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => {
                blocks.extend(open.take());
            }
            (Some(language), None) => {
                open = Some(Block {
                    language,
                    lines: Vec::new(),
                });
            }
            (None, Some(block)) => block.lines.push(line),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "a block is not closed");
    blocks
}

fn check_case(case: &[&str], context: &Context) -> Result<(), String> {
    let (expected, rest): (Vec<&str>, Vec<&str>) = case
        .iter()
        .partition(|line| line.starts_with("// type: ") || line.starts_with("// error: "));
    let (costs, source): (Vec<&str>, Vec<&str>) =
        rest.iter().partition(|line| costs::is_expectation(line));
    let text = source.join("\n");
    if !costs.is_empty() {
        check_costs(&text, context, &costs)?;
        if expected.is_empty() {
            return Ok(());
        }
    }
    assert!(!expected.is_empty(), "nothing is expected of {source:?}");
    let actual = describe(&text, context);
    if actual == expected {
        return Ok(());
    }
    Err(format!(
        "{text}\n  expected {}\n  actual   {}",
        expected.join(" | "),
        actual.join(" | ")
    ))
}

fn check_costs(text: &str, context: &Context, expected: &[&str]) -> Result<(), String> {
    let (ast, found) = syntax::parse(text);
    let ast = ast.ok_or_else(|| errors(&found).join(" | "))?;
    let (checked, found) = checker::check(&Arc::new(ast), text, &context.env());
    if !found.is_empty() {
        return Err(format!("{text}\n  {}", errors(&found).join(" | ")));
    }
    costs::check(&checked, &context.sizes, expected)
        .map_err(|difference| format!("{text}\n  {difference}"))
}

fn describe(text: &str, context: &Context) -> Vec<String> {
    let env = context.env();
    let (ast, found) = syntax::parse(text);
    let Some(ast) = ast else {
        return errors(&found);
    };
    let (checked, mut found) = checker::check(&Arc::new(ast), text, &env);
    if found.is_empty() {
        ast_validators::validate(&checked, text, &mut found);
    }
    if found.is_empty() {
        vec![format!(
            "// type: {}",
            checked.output_type().declared_string()
        )]
    } else {
        errors(&found)
    }
}

fn errors(found: &Diagnostics) -> Vec<String> {
    let mut sorted: Vec<_> = found.as_slice().iter().collect();
    sorted.sort_by_key(|diagnostic| diagnostic.location);
    sorted
        .iter()
        .map(|d| {
            format!(
                "// error: {}:{}: {}",
                d.location.line,
                d.location.column + 1,
                d.message
            )
        })
        .collect()
}

/// The fields of an object type.
#[derive(Debug)]
struct Fields(Vec<(String, Type)>);

impl Fields {
    /// Reads `{name: type, …}`.
    fn parse(text: &str, types: &HashMap<String, Type>) -> Option<Self> {
        let inner = text.strip_prefix('{')?.strip_suffix('}')?;
        let field = |field: &str| {
            let (name, type_) = field.split_once(": ").unwrap();
            (name.to_owned(), parse_type(type_, types))
        };
        Some(Self(inner.split(", ").map(field).collect()))
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
    if let Some(type_) = types.get(text) {
        return type_.clone();
    }
    if let Some(inner) = text
        .strip_prefix("list(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return Type::list(parse_type(inner, types));
    }
    if let Some(inner) = text
        .strip_prefix("map(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        let (key, value) = inner.split_once(", ").unwrap();
        return Type::map(parse_type(key, types), parse_type(value, types));
    }
    if let Some(inner) = text
        .strip_prefix("optional_type(")
        .and_then(|rest| rest.strip_suffix(')'))
    {
        return Type::optional(parse_type(inner, types));
    }
    if let Some(fields) = Fields::parse(text, types) {
        return Type::Struct(StructType::new(text, Arc::new(fields)));
    }
    match text {
        "dyn" => Type::Dyn,
        "null" => Type::Null,
        "bool" => Type::Bool,
        "int" => Type::Int,
        "uint" => Type::Uint,
        "double" => Type::Double,
        "string" => Type::String,
        "bytes" => Type::Bytes,
        "duration" => Type::Duration,
        "timestamp" => Type::Timestamp,
        "kubernetes.authorization.Authorizer" => Type::Struct(StructType::undeclared(text)),
        opaque => Type::opaque(opaque, Vec::new()),
    }
}
