//! The field reference of the kinds of `vap-status.dev`, from the schemas in their CustomResourceDefinitions.
//!
//! Source of the format: `k8s.io/kubectl` `pkg/explain/v2/templates/plaintext.tmpl`.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use serde::Serialize;
use serde_json::Value;

use crate::cli::check::render::{BOLD, painted};
use crate::cli::error::CliError;
use crate::cli::input::values;
use crate::cli::terminal::Terminal;
use crate::cli::text::wrap;
use crate::policy::nearest::nearest;

/// The CustomResourceDefinitions. Tests compare them with the Rust types.
const DEFINITIONS: [&str; 5] = [
    include_str!("../../crds/policyprobes.vap-status.dev.yaml"),
    include_str!("../../crds/mutatingadmissionpolicystatuses.vap-status.dev.yaml"),
    include_str!("../../crds/validatingwebhookconfigurationstatuses.vap-status.dev.yaml"),
    include_str!("../../crds/mutatingwebhookconfigurationstatuses.vap-status.dev.yaml"),
    include_str!("../../crds/customresourcedefinitionstatuses.vap-status.dev.yaml"),
];

/// The output of `kubectl vap explain KIND.FIELD -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FieldReference {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `FieldReference`.
    pub kind: &'static str,
    /// The group and version of the kind, such as `vap-status.dev/v1alpha1`.
    pub api_version_of_kind: String,
    /// The kind, such as `PolicyProbe`.
    pub kind_name: String,
    /// The path of the field, such as `spec.cases`; empty for the kind itself.
    pub path: String,
    /// The field.
    #[serde(flatten)]
    pub field: Field,
    /// The fields of the object, or of the items of the list.
    pub fields: Vec<Field>,
}

/// A field.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Field {
    /// The name.
    pub name: String,
    /// The type, such as `[]Object` or `map[string]string`.
    #[serde(rename = "type")]
    pub type_: String,
    /// True if the object must have the field.
    pub required: bool,
    /// The description; empty if there is none.
    pub description: String,
    /// The allowed values, if the schema lists them; otherwise empty.
    #[serde(rename = "enum", skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The value of an absent field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub default: Option<Value>,
    /// The messages of the validation rules, or the rules without a message.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rules: Vec<String>,
}

impl Field {
    fn new(name: &str, schema: &Value, required: bool) -> Self {
        let text = |value: &Value| match value {
            Value::String(text) => text.clone(),
            value => value.to_string(),
        };
        let described = [schema, element(schema)];
        let description = described
            .iter()
            .find_map(|it| it.get("description")?.as_str());
        let values = element(schema).get("enum").and_then(Value::as_array);
        let rules = described
            .iter()
            .filter_map(|it| it.get("x-kubernetes-validations"));
        let rules = rules.flat_map(|rules| rules.as_array().into_iter().flatten());
        let rules = rules.filter_map(|rule| rule.get("message").or(rule.get("rule"))?.as_str());
        let mut seen = BTreeSet::new();
        let rules: Vec<String> = rules
            .filter(|rule| seen.insert(*rule))
            .map(str::to_owned)
            .collect();
        Self {
            name: name.to_owned(),
            type_: type_name(schema),
            required,
            description: description.unwrap_or_default().trim().to_owned(),
            values: values.into_iter().flatten().map(text).collect(),
            default: schema.get("default").cloned(),
            rules,
        }
    }
}

/// Returns the schema of the items of a list or the values of a map, through all nested lists and maps. Returns any
/// other schema unchanged.
fn element(schema: &Value) -> &Value {
    let nested = schema.get("items").or(schema.get("additionalProperties"));
    nested
        .filter(|nested| nested.is_object())
        .map_or(schema, element)
}

/// Returns the name of a type, in the notation of `kubectl explain`.
fn type_name(schema: &Value) -> String {
    let is_set = |name: &str| schema.get(name).and_then(Value::as_bool) == Some(true);
    if is_set("x-kubernetes-int-or-string") {
        return "IntOrString".to_owned();
    }
    if let Some(items) = schema.get("items") {
        return format!("[]{}", type_name(items));
    }
    let values = schema.get("additionalProperties");
    if let Some(values) = values.filter(|values| values.is_object()) {
        return format!("map[string]{}", type_name(values));
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("object") => "Object".to_owned(),
        Some(name) => name.to_owned(),
        None => "any".to_owned(),
    }
}

/// A kind with the schema of its objects.
struct Kind {
    api_version: String,
    name: String,
    /// The names that select the kind, in lower case.
    names: Vec<String>,
    schema: Value,
}

fn kinds() -> Vec<Kind> {
    let definitions = DEFINITIONS.iter().flat_map(|text| values(text));
    let kinds = definitions.filter_map(|definition| {
        let definition = definition.ok()?;
        let spec = definition.get("spec")?;
        let version = spec.pointer("/versions/0")?;
        let names = spec.get("names")?;
        let one = ["kind", "plural", "singular"].into_iter();
        let one = one.filter_map(|name| names.get(name)?.as_str());
        let short = names.get("shortNames").and_then(Value::as_array);
        let short = short.into_iter().flatten().filter_map(Value::as_str);
        Some(Kind {
            api_version: format!(
                "{}/{}",
                spec.get("group")?.as_str()?,
                version.get("name")?.as_str()?
            ),
            name: names.get("kind")?.as_str()?.to_owned(),
            names: one.chain(short).map(str::to_lowercase).collect(),
            schema: version.pointer("/schema/openAPIV3Schema")?.clone(),
        })
    });
    kinds.collect()
}

/// Returns the kinds with the first sentence of their descriptions.
#[must_use]
pub fn kind_names() -> Vec<(String, String)> {
    let kinds = kinds().into_iter().map(|kind| {
        let field = Field::new("", &kind.schema, false);
        let (first, _) = field
            .description
            .split_once(". ")
            .unwrap_or((&field.description, ""));
        (kind.name, first.trim_end_matches('.').to_owned())
    });
    kinds.collect()
}

/// Returns the page of the documentation with all fields of all kinds.
#[must_use]
pub fn markdown() -> String {
    let mut out = String::from(
        "# API reference\n\n\
         The kinds of the CustomResourceDefinitions in `crds`. `kubectl vap explain KIND.FIELD` shows the same reference, and \
         `kubectl explain` shows it in a cluster. This page is generated from the schemas.\n",
    );
    for kind in kinds() {
        let field = Field::new(&kind.name, &kind.schema, false);
        let _ = write!(
            out,
            "\n## {}\n\n`apiVersion: {}`\n\n{}\n\n\
             | field | type | description |\n|---|---|---|\n",
            kind.name,
            kind.api_version,
            cell(&field.description)
        );
        rows(&kind.schema, "", &mut out);
    }
    out
}

/// Appends a row for each field of `schema` at `path`, and for the fields of nested objects.
fn rows(schema: &Value, path: &str, out: &mut String) {
    for field in fields(element(schema)) {
        // These fields are the same for all kinds, so the page omits them.
        let is_common =
            path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&&*field.name);
        if is_common {
            continue;
        }
        let path = match path {
            "" => field.name.clone(),
            path => format!("{path}.{}", field.name),
        };
        let mut facts = vec![cell(&field.description)];
        if field.required {
            facts.push("Required.".to_owned());
        }
        if !field.values.is_empty() {
            facts.push(format!("One of `{}`.", field.values.join("`, `")));
        }
        if let Some(default) = &field.default {
            facts.push(format!("Default: `{default}`."));
        }
        facts.extend(
            field
                .rules
                .iter()
                .map(|rule| format!("Rule: {}.", cell(rule))),
        );
        facts.retain(|fact| !fact.is_empty());
        let type_ = cell(&field.type_);
        let _ = writeln!(out, "| `{path}` | `{type_}` | {} |", facts.join(" "));
        let nested = element(schema)
            .get("properties")
            .and_then(|fields| fields.get(&field.name));
        if let Some(nested) = nested {
            rows(nested, &path, out);
        }
    }
}

/// Escapes text for a cell of a Markdown table, and joins its lines.
fn cell(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ").replace('|', "\\|").replace('<', "&lt;")
}

/// Returns the reference of `path`, such as `policyprobe.spec.cases`. `None` if it does not begin with the name of a
/// kind.
///
/// # Errors
/// Returns an error with a suggestion if the kind has no such field.
pub(super) fn reference(path: &str) -> Option<Result<FieldReference, CliError>> {
    let mut steps = path.trim_end_matches('.').split('.');
    let name = steps.next().unwrap_or_default().to_lowercase();
    let kind = kinds()
        .into_iter()
        .find(|kind| kind.names.contains(&name))?;
    let mut schema = &kind.schema;
    let mut field = Field::new(&kind.name, schema, false);
    let mut walked: Vec<&str> = Vec::new();
    for step in steps {
        // As in the paths of findings, an index selects an item of a list.
        let (step, _) = step.split_once('[').unwrap_or((step, ""));
        let object = element(schema);
        let nested = object.get("properties").and_then(|fields| fields.get(step));
        let Some(nested) = nested else {
            let fields = fields(object);
            let names: Vec<&str> = fields.iter().map(|field| field.name.as_str()).collect();
            let parent = std::iter::once(kind.name.as_str())
                .chain(walked)
                .collect::<Vec<_>>();
            let hint = match nearest(step, names.iter().copied()) {
                Some(meant) => format!("did you mean `{meant}`?"),
                None if names.is_empty() => "it has no fields".to_owned(),
                None => format!("its fields are {}", names.join(", ")),
            };
            let message = format!("`{}` has no field `{step}`; {hint}", parent.join("."));
            return Some(Err(CliError::Usage(message)));
        };
        field = Field::new(step, nested, is_required(object, step));
        schema = nested;
        walked.push(step);
    }
    Some(Ok(FieldReference {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "FieldReference",
        path: walked.join("."),
        field,
        fields: fields(element(schema)),
        api_version_of_kind: kind.api_version,
        kind_name: kind.name,
    }))
}

fn is_required(schema: &Value, name: &str) -> bool {
    let required = schema.get("required").and_then(Value::as_array);
    required.is_some_and(|required| required.iter().any(|it| it == name))
}

/// Returns the fields of an object, sorted by name.
fn fields(schema: &Value) -> Vec<Field> {
    let properties = schema.get("properties").and_then(Value::as_object);
    let fields = properties.into_iter().flatten();
    let fields = fields.map(|(name, nested)| Field::new(name, nested, is_required(schema, name)));
    let mut fields: Vec<Field> = fields.collect();
    fields.sort_by(|a, b| a.name.cmp(&b.name));
    fields
}

/// Renders the reference of a field in the format of `kubectl explain`.
#[must_use]
pub fn text(reference: &FieldReference, terminal: Terminal) -> String {
    let (group, version) = reference
        .api_version_of_kind
        .split_once('/')
        .unwrap_or_default();
    let mut out = format!(
        "GROUP:      {group}\nKIND:       {}\nVERSION:    {version}\n\n",
        reference.kind_name
    );
    let field = &reference.field;
    if !reference.path.is_empty() {
        let _ = writeln!(out, "FIELD: {}\n", head(field, terminal));
    }
    let mut section = |heading: &str, lines: &[String]| {
        if !lines.is_empty() {
            let _ = writeln!(out, "{heading}:");
            for line in lines {
                let _ = writeln!(out, "    {line}");
            }
            out.push('\n');
        }
    };
    section("DESCRIPTION", &paragraph(&field.description, terminal));
    section("ENUM", &field.values);
    section(
        "DEFAULT",
        &field
            .default
            .iter()
            .map(ToString::to_string)
            .collect::<Vec<_>>(),
    );
    let rules: Vec<String> = field
        .rules
        .iter()
        .flat_map(|it| paragraph(it, terminal))
        .collect();
    section("RULES", &rules);
    if !reference.fields.is_empty() {
        out.push_str("FIELDS:\n");
    }
    for field in &reference.fields {
        let _ = writeln!(out, "  {}", head(field, terminal));
        for line in paragraph(&field.description, terminal) {
            let _ = writeln!(out, "    {line}");
        }
        if !field.values.is_empty() {
            let values = format!("One of: {}", field.values.join(", "));
            for line in paragraph(&values, terminal) {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
    out
}

fn head(field: &Field, terminal: Terminal) -> String {
    let required = if field.required { " -required-" } else { "" };
    format!(
        "{} <{}>{required}",
        painted(&field.name, BOLD, terminal),
        field.type_
    )
}

fn paragraph(text: &str, terminal: Terminal) -> Vec<String> {
    if text.is_empty() {
        return Vec::new();
    }
    let max = terminal
        .width
        .unwrap_or(usize::MAX)
        .saturating_sub(4)
        .max(20);
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .flat_map(|line| wrap(line, max, usize::MAX, ""))
        .collect()
}
