//! Completion in YAML: the keys of policies, bindings and webhook configurations, the values of rules, names of policies,
//! and enumerations.

use std::collections::BTreeSet;
use std::sync::Arc;

use gen_lsp_types::{CompletionItem, CompletionItemKind, CompletionItemTextEdit, TextEdit};
use goyaml::Node;

use super::context::Context;
use super::cursor::{self, Item, Step};
use super::positions;
use super::workspace::File;
use crate::cli::check::known::Known;
use crate::cli::input::Place;
use crate::schema::decl_type::{DeclKind, DeclType};
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{GroupVersion, Gvk};

/// The values of fields with enumerated values, by the name of the field.
///
/// Source: `k8s.io/api` `admissionregistration/v1/types.go`.
const ENUMERATIONS: &[(&str, &[&str])] = &[
    ("failurePolicy", &["Fail", "Ignore"]),
    ("matchPolicy", &["Equivalent", "Exact"]),
    ("validationActions", &["Deny", "Warn", "Audit"]),
    ("parameterNotFoundAction", &["Deny", "Allow"]),
    (
        "reason",
        &[
            "Invalid",
            "Forbidden",
            "Unauthorized",
            "RequestEntityTooLarge",
        ],
    ),
    (
        "operations",
        &["CREATE", "UPDATE", "DELETE", "CONNECT", "*"],
    ),
    ("scope", &["*", "Cluster", "Namespaced"]),
    ("reinvocationPolicy", &["Never", "IfNeeded"]),
    ("patchType", &["ApplyConfiguration", "JSONPatch"]),
    ("sideEffects", &["None", "NoneOnDryRun"]),
];

/// The value that matches all groups, versions or resources.
const ANY: &str = "*";

/// Returns the completions of the word at a byte of the file.
pub(super) fn completion(
    context: &Context<'_>,
    file: &Arc<File>,
    item: &Item<'_>,
    byte: usize,
) -> Vec<CompletionItem> {
    let source = &file.source;
    let line = source.line(source.place(byte).line);
    let start = source.byte_at(Place {
        column: 1,
        ..source.place(byte)
    });
    let before = line.get(..byte.saturating_sub(start)).unwrap_or(line);
    let is_word = |c: char| c.is_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | '*');
    let word = before.trim_end_matches(is_word).len();
    let field = cursor::field_at(source, item, byte);
    let is_item = before.trim_start().starts_with("- ") && !before.contains(": ");
    // An item of a list is completed as a value only if it is a string.
    let is_value = if is_item {
        is_string_item(context, item, &field.steps)
    } else {
        before.contains(": ") && !field.is_key
    };
    let (values, kind) = if is_value || is_in_flow(before) {
        let values = values(context, item, &field.steps);
        (values, CompletionItemKind::Value)
    } else {
        (keys(context, item, &field), CompletionItemKind::Property)
    };
    let bytes = start + word..byte;
    let range = positions::range(source, &bytes, context.encoding);
    let has_colon = line
        .get(byte.saturating_sub(start)..)
        .is_some_and(|rest| rest.trim_start().starts_with(':'));
    let items = values.into_iter().map(|(value, detail)| {
        let new_text = match kind {
            CompletionItemKind::Property if !has_colon => format!(
                "{value}:{}",
                if detail == "object" || detail.starts_with("list") {
                    ""
                } else {
                    " "
                }
            ),
            CompletionItemKind::Value => quoted(&value, before.get(..word).unwrap_or_default()),
            _ => value.clone(),
        };
        CompletionItem {
            label: if value.is_empty() {
                "\"\"".to_owned()
            } else {
                value
            },
            kind: Some(kind),
            detail: Some(detail),
            text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
                range,
                new_text,
            })),
            ..CompletionItem::default()
        }
    });
    items.collect()
}

/// Returns true if the field at `steps` is an item of a list of strings.
fn is_string_item(context: &Context<'_>, item: &Item<'_>, steps: &[Step]) -> bool {
    let type_ = schema(context, item).and_then(|type_| {
        let type_ = steps.iter().try_fold(&type_, descend)?;
        Some(Arc::clone(type_))
    });
    type_.is_some_and(|type_| match &type_.kind {
        DeclKind::Object(_) | DeclKind::Map(_) => false,
        DeclKind::List(item) => !matches!(item.kind, DeclKind::Object(_)),
        _ => true,
    })
}

fn schema(context: &Context<'_>, item: &Item<'_>) -> Option<Arc<DeclType>> {
    let (group, version) = GroupVersion::split(item.text("apiVersion").unwrap_or_default());
    let gvk = Gvk::new(group, version, item.kind_name());
    match context.workspace.known()?.resolve(&gvk) {
        Resolution::Found(type_) => Some(type_),
        Resolution::NotFound | Resolution::Unavailable(_) => None,
    }
}

/// Returns true within the brackets of a list on the same line.
fn is_in_flow(before: &str) -> bool {
    before.matches('[').count() > before.matches(']').count()
}

/// Adds the quotes that a value needs, unless the word is in quotes.
fn quoted(value: &str, before: &str) -> String {
    let is_quoted = before.ends_with(['"', '\'']);
    if !is_quoted && (value.is_empty() || value.contains(ANY)) {
        format!("\"{value}\"")
    } else {
        value.to_owned()
    }
}

/// Returns the values of a field, each with a description.
fn values(context: &Context<'_>, item: &Item<'_>, steps: &[Step]) -> Vec<(String, String)> {
    let mut names = steps.iter().rev().filter_map(|step| match step {
        Step::Key(name) => Some(name.as_str()),
        Step::Index(_) => None,
    });
    let Some(name) = names.next() else {
        return Vec::new();
    };
    let parent = names.next().unwrap_or_default();
    if name == "policyName" {
        return policies(context, item);
    }
    let is_rule = matches!(parent, "resourceRules" | "excludeResourceRules" | "rules");
    if is_rule && matches!(name, "apiGroups" | "apiVersions" | "resources") {
        let at = steps
            .iter()
            .rposition(|step| matches!(step, Step::Key(key) if key == name));
        let rule = steps.get(..at.unwrap_or_default()).unwrap_or_default();
        let rule = item.document.node.nearest(&cursor::field_ref(rule));
        let apis = context.workspace.known();
        return apis
            .map(|known| rule_values(known, rule, name))
            .unwrap_or_default();
    }
    let mut enumerations = ENUMERATIONS.iter();
    let enumeration = enumerations.find(|(field, _)| *field == name);
    let values = enumeration.map(|(_, values)| *values).unwrap_or_default();
    values
        .iter()
        .map(|value| ((*value).to_owned(), String::new()))
        .collect()
}

/// Returns the names of the policies in the workspace to which the object can refer.
fn policies(context: &Context<'_>, item: &Item<'_>) -> Vec<(String, String)> {
    let is_mutating = item.kind_name().starts_with("Mutating");
    let is_probe = item.kind_name() == "PolicyProbe";
    let mut names = BTreeSet::new();
    for file in context.workspace.files() {
        for other in cursor::items(file.objects()) {
            let kind_is_mutating = other.kind_name().starts_with("Mutating");
            if other.is_policy() && (is_probe || kind_is_mutating == is_mutating) {
                names.extend(other.name().map(str::to_owned));
            }
        }
    }
    names
        .into_iter()
        .map(|name| (name, "policy".to_owned()))
        .collect()
}

/// Returns the served groups, versions or resources that agree with the other fields of a rule.
fn rule_values(known: &Known, rule: &Node, name: &str) -> Vec<(String, String)> {
    let texts = |name: &str| -> Vec<&str> {
        let items = rule.get(name).map_or(&[][..], Node::items);
        items.iter().filter_map(Node::as_str).collect()
    };
    let (groups, versions) = (texts("apiGroups"), texts("apiVersions"));
    let resources = texts("resources");
    let has = |wanted: &[&str], value: &str| {
        wanted.is_empty() || wanted.contains(&ANY) || wanted.contains(&value)
    };
    let matches = |served: &&ApiResource| {
        let gvr = &served.gvr;
        (name == "apiGroups" || has(&groups, &gvr.group))
            && (name != "resources" || has(&versions, &gvr.version))
            && (name == "resources" || has(&resources, &gvr.resource))
    };
    let served = known.mapper.resources.iter().filter(matches);
    let mut values: BTreeSet<(String, String)> = served
        .map(|served| match name {
            "apiGroups" if served.gvr.group.is_empty() => {
                (String::new(), "the core group".to_owned())
            }
            "apiGroups" => (served.gvr.group.clone(), "API group".to_owned()),
            "apiVersions" => (served.gvr.version.clone(), "version".to_owned()),
            _ => (
                served.gvr.resource.clone(),
                crate::status::message::kind(&served.gvk),
            ),
        })
        .collect();
    values.insert((ANY.to_owned(), "all".to_owned()));
    values.into_iter().collect()
}

/// Returns the keys that the object at a field can have and lacks, each with the type of its value.
fn keys(
    context: &Context<'_>,
    item: &Item<'_>,
    field: &cursor::Field<'_>,
) -> Vec<(String, String)> {
    let is_checked =
        item.is_policy() || item.is_binding() || item.kind_name().ends_with("WebhookConfiguration");
    let Some(type_) = schema(context, item) else {
        return Vec::new();
    };
    if !is_checked {
        return Vec::new();
    }
    let steps = match field.steps.split_last() {
        Some((Step::Key(_), parent)) if field.is_key => parent,
        _ => field.steps.as_slice(),
    };
    let Some(type_) = steps.iter().try_fold(&type_, descend) else {
        return Vec::new();
    };
    // If the field is a list, the word is a key of one of its items.
    let type_ = match &type_.kind {
        DeclKind::List(item) => item,
        _ => type_,
    };
    let DeclKind::Object(object) = &type_.kind else {
        return Vec::new();
    };
    let present = item.document.node.nearest(&cursor::field_ref(steps));
    let fields = object.fields().iter();
    let missing = fields.filter(|field| present.get(&field.name).is_none());
    missing
        .map(|field| (field.name.to_string(), describe(&field.type_).to_owned()))
        .collect()
}

fn descend<'t>(type_: &'t Arc<DeclType>, step: &Step) -> Option<&'t Arc<DeclType>> {
    match (&type_.kind, step) {
        (DeclKind::Object(object), Step::Key(name)) => {
            let mut fields = object.fields().iter();
            fields
                .find(|field| *field.name == **name)
                .map(|field| &field.type_)
        }
        (DeclKind::List(item), Step::Index(_)) | (DeclKind::Map(item), Step::Key(_)) => Some(item),
        _ => None,
    }
}

fn describe(type_: &DeclType) -> &'static str {
    match &type_.kind {
        DeclKind::Bool => "bool",
        DeclKind::Int => "int",
        DeclKind::Double => "number",
        DeclKind::List(_) => "list",
        DeclKind::Map(_) | DeclKind::Object(_) => "object",
        _ => "string",
    }
}
