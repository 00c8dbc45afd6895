//! Measures the coverage of inputs: overloads, syntax, schema features, policy features, and admission results. The
//! inputs are a directory that [`crate::cases::write`] has filled, or single paths.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use anyhow::{Context as _, Result};
use serde_json::Value;
use vap_status_controller::cel::ast::{Expr, Literal};
use vap_status_controller::cel::checker::{CheckedAst, Reference};
use vap_status_controller::cel::syntax;

use crate::cases::expressions::material;
use crate::documents::load_documents;
use crate::schemas::Schemas;
use crate::{admit, eval};

const MACROS: [&str; 13] = [
    "all",
    "exists",
    "exists_one",
    "existsOne",
    "filter",
    "has",
    "map",
    "optFlatMap",
    "optMap",
    "sortBy",
    "transformList",
    "transformMap",
    "transformMapEntry",
];

/// The inputs to analyze.
#[derive(Clone, Debug, Default)]
pub struct Inputs {
    /// Files of single expressions.
    pub eval: Vec<PathBuf>,
    /// Files of admission cases.
    pub admit: Vec<PathBuf>,
    /// Files or directories of policies.
    pub policies: Vec<PathBuf>,
    /// Files or directories of CustomResourceDefinitions.
    pub crds: Vec<PathBuf>,
}

/// The covered items by category.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage(BTreeMap<&'static str, BTreeSet<String>>);

impl Coverage {
    /// Computes the coverage of `inputs`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read.
    pub fn measure(inputs: &Inputs) -> Result<Self> {
        let mut coverage = Self::default();
        for path in &inputs.eval {
            admit::each_case(path, |_, text| {
                let (expression, checked) = eval::checked(text)?;
                if let Some(checked) = checked {
                    coverage.add_overloads(&checked);
                }
                coverage.add_syntax(&expression);
                Ok(())
            })?;
        }
        for document in load_documents(&inputs.policies)? {
            match document.value {
                Ok(value) if value["kind"] == "ValidatingAdmissionPolicy" => {
                    coverage.add_policy("", &value["spec"]);
                }
                _ => {}
            }
        }
        for document in load_documents(&inputs.crds)? {
            let value = document.value.with_context(|| document.file.clone())?;
            if value["kind"] == "CustomResourceDefinition" {
                for version in value["spec"]["versions"].as_array().into_iter().flatten() {
                    coverage.add_schema(&version["schema"]["openAPIV3Schema"]);
                }
            }
        }
        if !inputs.admit.is_empty() {
            let mut answers = Vec::new();
            admit::run(&inputs.admit, &Schemas::load(None, None)?, &mut answers)?;
            for line in answers.split(|byte| *byte == b'\n') {
                if !line.is_empty() {
                    coverage.add_admission(&serde_json::from_slice(line)?);
                }
            }
        }
        Ok(coverage)
    }

    /// Returns the items that must be covered but are not: overloads of the environment, macros, and items in
    /// [`REQUIRED`].
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let material = material(&[]);
        let overloads = material.overload_ids().map(|id| ("overload", id));
        let macros = MACROS.iter().map(|name| ("macro", *name));
        let wanted = overloads.chain(macros).chain(REQUIRED.iter().copied());
        wanted
            .filter(|(category, item)| {
                !self
                    .0
                    .get(category)
                    .is_some_and(|found| found.contains(*item))
            })
            .map(|(category, item)| format!("{category} {item}"))
            .collect()
    }

    /// Returns the covered items. Each consists of its category and name.
    pub fn items(&self) -> impl Iterator<Item = String> {
        self.0.iter().flat_map(|(category, found)| {
            found.iter().map(move |item| format!("{category} {item}"))
        })
    }

    /// Returns the number of covered items per category.
    pub fn counts(&self) -> impl Iterator<Item = (&'static str, usize)> {
        self.0
            .iter()
            .map(|(category, found)| (*category, found.len()))
    }

    fn add(&mut self, category: &'static str, item: impl Into<String>) {
        self.0.entry(category).or_default().insert(item.into());
    }

    /// Adds the overloads of calls. Ignores a call if several overloads are possible.
    fn add_overloads(&mut self, checked: &CheckedAst) {
        for (id, _) in checked.ast().iter() {
            if let Some(Reference::Function { overloads, .. }) = checked.reference(id)
                && let [overload] = &overloads[..]
            {
                self.add("overload", overload.id);
            }
        }
    }

    fn add_syntax(&mut self, expression: &str) {
        let Some(ast) = syntax::parse(expression).0 else {
            self.add("syntax", "error");
            return;
        };
        for name in MACROS {
            if expression.contains(&format!("{name}(")) {
                self.add("macro", name);
            }
        }
        for (_, expr) in ast.iter() {
            let kind = match expr {
                Expr::Unspecified => continue,
                Expr::Literal(literal) => match literal {
                    Literal::Null => "null",
                    Literal::Bool(_) => "bool",
                    Literal::Int(_) => "int",
                    Literal::Uint(_) => "uint",
                    Literal::Double(_) => "double",
                    Literal::String(_) => "string",
                    Literal::Bytes(_) => "bytes",
                },
                Expr::Ident(_) => "name",
                Expr::Select {
                    test_only: true, ..
                } => "presence test",
                Expr::Select { .. } => "selection",
                Expr::Call { target, .. } if target.is_some() => "call of a member",
                Expr::Call { .. } => "call",
                Expr::List {
                    optional_indices, ..
                } if !optional_indices.is_empty() => "list with optional elements",
                Expr::List { .. } => "list",
                Expr::Map(entries) if entries.iter().any(|entry| entry.optional) => {
                    "map with optional entries"
                }
                Expr::Map(_) => "map",
                Expr::Struct { .. } => "message",
                Expr::Comprehension(comprehension) if comprehension.iter_var2.is_some() => {
                    "comprehension of two variables"
                }
                Expr::Comprehension(_) => "comprehension",
            };
            self.add("syntax", kind);
            if let Expr::Call { function, .. } = expr {
                self.add("function", &**function);
            }
        }
    }

    /// Adds the fields of a policy and the syntax of its expressions. `at` is the path of the field, and `value` is its
    /// value.
    fn add_policy(&mut self, at: &str, value: &Value) {
        match value {
            Value::Object(fields) => {
                for (key, inner) in fields {
                    let place = format!("{at}.{key}");
                    if !inner.is_null() && at.matches('.').count() < 4 {
                        self.add("policy", &place);
                    }
                    if key == "expression" || key == "messageExpression" || key == "valueExpression"
                    {
                        self.add_syntax(inner.as_str().unwrap_or_default());
                    }
                    self.add_policy(&place, inner);
                }
            }
            Value::Array(items) => {
                for item in items {
                    if let Some(text) = item.as_str()
                        && let Some(category) = category_of_name(at, text)
                    {
                        self.add("rule", category);
                    }
                    self.add_policy(at, item);
                }
            }
            _ => {}
        }
    }

    /// Adds the keywords of a schema. For some keywords, also adds the values.
    fn add_schema(&mut self, schema: &Value) {
        let Some(keywords) = schema.as_object() else {
            return;
        };
        for (keyword, value) in keywords {
            match (keyword.as_str(), value) {
                ("type" | "format" | "x-kubernetes-list-type" | "x-kubernetes-map-type", value) => {
                    self.add(
                        "schema",
                        format!("{keyword}={}", value.as_str().unwrap_or_default()),
                    );
                }
                ("properties", Value::Object(properties)) => {
                    self.add("schema", keyword);
                    properties.values().for_each(|inner| self.add_schema(inner));
                }
                ("additionalProperties" | "items", Value::Object(_)) => {
                    self.add("schema", keyword);
                    self.add_schema(value);
                }
                ("additionalProperties", Value::Bool(allowed)) => {
                    self.add("schema", format!("{keyword}={allowed}"));
                }
                ("allOf" | "anyOf" | "oneOf", Value::Array(all)) => {
                    self.add("schema", keyword);
                    for inner in all {
                        self.add_schema(inner);
                    }
                }
                ("description" | "title" | "example", _) => {}
                _ => self.add("schema", keyword),
            }
        }
    }

    fn add_admission(&mut self, answer: &Value) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let mut add = |item: String| self.add("admission", item);
        if let Some(allowed) = answer["allowed"].as_bool() {
            add(format!("allowed={allowed}"));
        }
        if let Some(status) = answer.get("status") {
            add(format!(
                "code={} {}",
                status["code"],
                text(&status["reason"])
            ));
        }
        for (field, name) in [("warnings", "warnings"), ("auditAnnotations", "audit")] {
            if answer.get(field).is_some() {
                add(name.to_owned());
            }
        }
        let matches = |matched: &Value| match (&matched["error"], &matched["matches"]) {
            (Value::String(_), _) => "error".to_owned(),
            (_, matches) => matches.to_string(),
        };
        if let Some(definition) = answer.get("definition") {
            add(format!("definition={}", matches(definition)));
        }
        for binding in answer["bindings"].as_array().into_iter().flatten() {
            add(format!("binding={}", matches(binding)));
        }
        for evaluation in answer["evaluations"].as_array().into_iter().flatten() {
            if let Some(conditions) = evaluation.get("matchConditions") {
                add(format!("matchConditions={}", matches(conditions)));
            }
            if evaluation.get("params").is_some() {
                add("params".to_owned());
            }
            for decision in evaluation["decisions"].as_array().into_iter().flatten() {
                let (action, of) = (text(&decision["action"]), text(&decision["evaluation"]));
                add(format!("decision={action} by {of}"));
            }
            let annotations = evaluation["auditAnnotations"].as_array();
            for annotation in annotations.into_iter().flatten() {
                add(format!("annotation={}", text(&annotation["action"])));
            }
            for (stage, cost) in evaluation["costs"].as_object().into_iter().flatten() {
                add(match cost.get("error") {
                    Some(_) => format!("{stage} over budget"),
                    None => format!("{stage} within budget"),
                });
            }
        }
    }
}

/// Returns the category of a name in a rule: group, version, resource or operation. Returns `None` if the field path
/// alone determines the category.
fn category_of_name(at: &str, text: &str) -> Option<&'static str> {
    let list = at.rsplit('.').next()?;
    Some(match (list, text) {
        ("apiGroups", "*") => "any group",
        ("apiVersions", "*") => "any version",
        ("operations", "*") => "any operation",
        ("resources", "*") => "any resource",
        ("resources", "*/*") => "any resource and subresource",
        ("resources", text) if text.starts_with("*/") => "a subresource of any resource",
        ("resources", text) if text.ends_with("/*") => "any subresource",
        ("resources", text) if text.contains('/') => "a subresource",
        ("resources", _) => "a resource",
        _ => return None,
    })
}

/// Items that generated inputs must cover, in addition to all overloads and macros.
pub const REQUIRED: &[(&str, &str)] = &[
    ("syntax", "error"),
    ("syntax", "null"),
    ("syntax", "bool"),
    ("syntax", "int"),
    ("syntax", "uint"),
    ("syntax", "double"),
    ("syntax", "string"),
    ("syntax", "bytes"),
    ("syntax", "name"),
    ("syntax", "presence test"),
    ("syntax", "selection"),
    ("syntax", "call"),
    ("syntax", "call of a member"),
    ("syntax", "list"),
    ("syntax", "list with optional elements"),
    ("syntax", "map"),
    ("syntax", "map with optional entries"),
    ("syntax", "message"),
    ("syntax", "comprehension"),
    ("syntax", "comprehension of two variables"),
    ("schema", "type=string"),
    ("schema", "type=integer"),
    ("schema", "type=number"),
    ("schema", "type=boolean"),
    ("schema", "type=array"),
    ("schema", "type=object"),
    ("schema", "format=date"),
    ("schema", "format=date-time"),
    ("schema", "format=datetime"),
    ("schema", "format=duration"),
    ("schema", "format=byte"),
    ("schema", "format=binary"),
    ("schema", "format=int-or-string"),
    ("schema", "properties"),
    ("schema", "items"),
    ("schema", "additionalProperties"),
    ("schema", "additionalProperties=true"),
    ("schema", "additionalProperties=false"),
    ("schema", "enum"),
    ("schema", "nullable"),
    ("schema", "default"),
    ("schema", "required"),
    ("schema", "maxLength"),
    ("schema", "maxItems"),
    ("schema", "maxProperties"),
    ("schema", "x-kubernetes-int-or-string"),
    ("schema", "x-kubernetes-embedded-resource"),
    ("schema", "x-kubernetes-preserve-unknown-fields"),
    ("schema", "x-kubernetes-list-type=map"),
    ("schema", "x-kubernetes-list-type=set"),
    ("schema", "x-kubernetes-list-type=atomic"),
    ("rule", "any group"),
    ("rule", "any version"),
    ("rule", "any operation"),
    ("rule", "any resource"),
    ("rule", "any resource and subresource"),
    ("rule", "a subresource of any resource"),
    ("rule", "any subresource"),
    ("rule", "a subresource"),
    ("policy", ".failurePolicy"),
    ("policy", ".paramKind"),
    ("policy", ".matchConditions"),
    ("policy", ".variables"),
    ("policy", ".auditAnnotations"),
    ("policy", ".validations.messageExpression"),
    ("policy", ".validations.reason"),
    ("policy", ".matchConstraints.matchPolicy"),
    ("policy", ".matchConstraints.excludeResourceRules"),
    ("policy", ".matchConstraints.namespaceSelector"),
    ("policy", ".matchConstraints.resourceRules.resourceNames"),
    ("policy", ".matchConstraints.resourceRules.scope"),
    ("admission", "allowed=true"),
    ("admission", "allowed=false"),
    ("admission", "code=401 Unauthorized"),
    ("admission", "code=403 Forbidden"),
    ("admission", "code=404 NotFound"),
    ("admission", "code=413 RequestEntityTooLarge"),
    ("admission", "code=422 Invalid"),
    ("admission", "warnings"),
    ("admission", "audit"),
    ("admission", "params"),
    ("admission", "definition=true"),
    ("admission", "definition=false"),
    ("admission", "definition=error"),
    ("admission", "binding=true"),
    ("admission", "binding=false"),
    ("admission", "binding=error"),
    ("admission", "matchConditions=true"),
    ("admission", "matchConditions=false"),
    ("admission", "matchConditions=error"),
    ("admission", "decision=admit by admit"),
    ("admission", "decision=admit by error"),
    ("admission", "decision=deny by deny"),
    ("admission", "decision=deny by error"),
    ("admission", "annotation=publish"),
    ("admission", "annotation=exclude"),
    ("admission", "annotation=error"),
    ("admission", "matchConditions over budget"),
    ("admission", "validations over budget"),
    ("admission", "messages over budget"),
    ("admission", "auditAnnotations over budget"),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cases::{Counts, write};

    /// The seed of `./dev parity`.
    const SEED: u64 = 42;

    #[test]
    fn generated_inputs_leave_no_gap_in_coverage() {
        let directory = tempfile::tempdir().unwrap();
        write(directory.path(), SEED, Counts::default()).unwrap();
        let path = |name| vec![directory.path().join(name)];
        let coverage = Coverage::measure(&Inputs {
            eval: path("eval.jsonl"),
            admit: path("admit.jsonl"),
            policies: path("policies"),
            crds: path("crds"),
        })
        .unwrap();
        let missing = coverage.missing();
        assert!(missing.is_empty(), "not covered: {missing:#?}");
    }

    #[test]
    fn generated_files_of_same_seed_are_equal() {
        let counts = Counts {
            crds: 15,
            policies: 40,
            mutating: 10,
            eval: 0,
            admit: 20,
        };
        let of = |seed| {
            let directory = tempfile::tempdir().unwrap();
            write(directory.path(), seed, counts).unwrap();
            let files = [
                "crds/generated.yaml",
                "policies/generated.yaml",
                "eval.jsonl",
                "admit.jsonl",
            ];
            files.map(|file| std::fs::read(directory.path().join(file)).unwrap())
        };
        assert!(of(1) == of(1));
        assert!(of(1) != of(2));
    }
}
