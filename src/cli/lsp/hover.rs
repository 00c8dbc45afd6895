//! Hover in expressions: the type, the description and the kinds of a field, the signatures of a function, and the cost of
//! the expression.

use std::fmt::Write as _;

use gen_lsp_types::{Contents, Hover, HoverParams, MarkupContent, MarkupKind};
use serde_json::Value;

use super::cel::{self, FieldPath, Name, Scope};
use super::context::Context;
use super::cursor::{self, Expression, Item};
use super::functions::{self, MACROS};
use super::positions;
use super::typing::{self, ByKind, KindSite};
use super::workspace::File;
use crate::cli::check::costs::CostReport;
use crate::cli::check::known::Known;
use crate::schema::Gvk;
use crate::schema::decl_type::{DeclKind, DeclType};
use crate::schema::resolver::{Resolution, SchemaResolver};
use crate::status::message;

/// Maximum number of kinds that a hover lists.
const MAX_KINDS: usize = 5;

/// Maximum number of enumerated values that a hover lists.
const MAX_VALUES: usize = 12;

pub(super) fn hover(context: &Context<'_>, params: &HoverParams) -> Option<Hover> {
    let at = &params.text_document_position_params;
    let file = context.file(&at.text_document.uri)?;
    let byte = positions::byte(&file.source, at.position, context.encoding);
    let item = cursor::item_at(file, byte)?;
    let expression = cursor::expression_at(&file.source, &item, byte)?;
    let offset = expression.offset(byte);
    let name = cel::name_at(expression.text, offset).filter(|name| !name.range.is_empty());
    let about_name = name.as_ref().and_then(|name| {
        let sites = typing::sites(context, &item, &expression, name);
        describe_name(context, &expression, name, &sites)
    });
    let cost = cost(context, file, &item, &expression);
    let range = match (&about_name, &name) {
        (Some(_), Some(name)) => expression.bytes(&name.range),
        _ => expression.span(),
    };
    let parts: Vec<String> = about_name.into_iter().chain(cost).collect();
    (!parts.is_empty()).then(|| Hover {
        contents: Contents::MarkupContent(MarkupContent {
            kind: MarkupKind::Markdown,
            value: parts.join("\n\n---\n\n"),
        }),
        range: Some(positions::range(&file.source, &range, context.encoding)),
    })
}

fn kinds(kinds: &[Gvk]) -> String {
    let names: Vec<String> = kinds.iter().take(MAX_KINDS).map(message::kind).collect();
    let more = kinds.len().saturating_sub(names.len());
    let more = if more > 0 {
        format!(" and {more} more")
    } else {
        String::new()
    };
    format!("{}{more}", names.join(", "))
}

/// Describes a name, or returns `None` if it is unknown.
fn describe_name(
    context: &Context<'_>,
    expression: &Expression<'_>,
    name: &Name,
    sites: &[KindSite],
) -> Option<String> {
    let text = name.text(expression.text);
    if name.is_call
        && let Some(function) = describe_function(text, name, sites)
    {
        return Some(function);
    }
    let types = typing::by_kind(sites, |site| type_of(site, text));
    if types.is_empty() {
        return None;
    }
    let path = sites.iter().find_map(|site| typing::path_of(site, text));
    let shown = path.as_ref().map_or_else(|| text.to_owned(), shown_path);
    let mut out = String::new();
    for (type_, of_kinds) in &types {
        let _ = writeln!(out, "```cel\n{shown}: {type_}\n```");
        if !of_kinds.is_empty() {
            let _ = writeln!(out, "for {}", kinds(of_kinds));
        }
    }
    let apis = context.workspace.known();
    let described = path
        .zip(apis)
        .map(|(path, known)| description(&path, &types, known));
    if let Some(described) = described.filter(|text| !text.is_empty()) {
        let _ = write!(out, "\n{described}");
    }
    Some(out.trim_end().to_owned())
}

fn type_of(site: &KindSite, name: &str) -> Option<String> {
    let type_ = match &site.scope {
        Scope::Member { receiver, .. } => typing::field_type(receiver, name)?,
        Scope::Global(locals) => {
            let local = locals.iter().rev().find(|(local, _)| **local == *name);
            let of_env = || {
                let mut variables = site.env.variables();
                let variable = variables.find(|variable| *variable.name == *name)?;
                Some(variable.type_.clone())
            };
            local.map(|(_, type_)| type_.clone()).or_else(of_env)?
        }
    };
    Some(typing::shown(&type_))
}

fn shown_path(path: &FieldPath) -> String {
    let fields = path.fields.iter().map(|field| match field {
        Some(name) => format!(".{name}"),
        None => "[]".to_owned(),
    });
    format!("{}{}", path.root, fields.collect::<String>())
}

/// Describes a function or macro by its signatures.
fn describe_function(text: &str, name: &Name, sites: &[KindSite]) -> Option<String> {
    let same_name = MACROS.iter().find(|known| {
        known.name == text && (known.receiver == functions::Receiver::None) != name.is_member
    });
    if let Some(known) = same_name {
        return Some(format!(
            "```cel\n{}\n```\n{}",
            known.signature(),
            known.summary
        ));
    }
    let signatures = signatures(text, name, sites.first()?);
    (!signatures.is_empty()).then(|| {
        let labels: Vec<_> = signatures.into_iter().map(|it| it.label).collect();
        format!("```cel\n{}\n```", labels.join("\n"))
    })
}

/// Returns the signatures of a function that accept the receiver at a site. If none does, returns all signatures.
pub(super) fn signatures(text: &str, name: &Name, site: &KindSite) -> Vec<functions::Signature> {
    let (function, receiver) = match &site.scope {
        Scope::Member { receiver, path } => {
            let qualified = path
                .as_ref()
                .map(|path| format!("{}.{text}", shown_path(path)));
            let qualified = qualified.and_then(|name| site.env.lookup_function(&name));
            match qualified {
                Some(function) => (Some(function), None),
                None => (site.env.lookup_function(text), Some(receiver)),
            }
        }
        Scope::Global(_) => (site.env.lookup_function(text), None),
    };
    let Some(function) = function else {
        return Vec::new();
    };
    let all = function.overloads.iter();
    let of_style = all.filter(|overload| {
        overload.is_member() == receiver.is_some() && (name.is_member || receiver.is_none())
    });
    let (accepting, others): (Vec<_>, Vec<_>) = of_style.partition(|overload| {
        receiver.is_none_or(|receiver| crate::cel::checker::accepts_receiver(overload, receiver))
    });
    let shown = if accepting.is_empty() {
        others
    } else {
        accepting
    };
    shown.into_iter().map(functions::signature).collect()
}

/// Describes a field by the schemas of the kinds: its description, its properties and its values.
fn description(path: &FieldPath, types: &ByKind<String>, known: &Known) -> String {
    if !matches!(path.root.as_str(), "object" | "oldObject") {
        return String::new();
    }
    let Some(gvk) = types.values().flatten().next() else {
        return String::new();
    };
    let mut parts = Vec::new();
    if let Some(text) = known
        .written_schema(gvk)
        .and_then(|schema| described(schema, path))
    {
        parts.push(text);
    }
    if let Resolution::Found(type_) = known.resolve(gvk) {
        let mut facts: Vec<String> = Vec::new();
        let mut type_: &DeclType = &type_;
        for field in &path.fields {
            let next = match (&type_.kind, field) {
                (DeclKind::Object(object), Some(name)) => {
                    let field = object.fields().iter().find(|field| *field.name == **name);
                    facts.clear();
                    if field.is_some_and(|field| field.required) {
                        facts.push("required".to_owned());
                    }
                    if field.is_some_and(|field| field.has_default) {
                        facts.push("has a default".to_owned());
                    }
                    field.map(|field| &field.type_)
                }
                (DeclKind::List(item) | DeclKind::Map(item), _) => {
                    facts.clear();
                    Some(item)
                }
                _ => None,
            };
            let Some(next) = next else {
                return parts.join("\n\n");
            };
            type_ = next;
        }
        if let Some(values) = &type_.enum_values {
            let values = values.iter().take(MAX_VALUES).map(ToString::to_string);
            facts.push(format!("one of {}", values.collect::<Vec<_>>().join(", ")));
        }
        if !facts.is_empty() {
            parts.push(facts.join("; "));
        }
    }
    parts.join("\n\n")
}

/// Returns the description of a field in an OpenAPI schema.
fn described(schema: &Value, path: &FieldPath) -> Option<String> {
    let mut schema = schema;
    for field in &path.fields {
        let property = field
            .as_ref()
            .and_then(|name| schema.get("properties")?.get(name));
        schema = property
            .or_else(|| schema.get("items"))
            .or_else(|| schema.get("additionalProperties"))?;
    }
    Some(schema.get("description")?.as_str()?.to_owned())
}

/// Describes the cost of the expression and its share of the limit.
fn cost(
    context: &Context<'_>,
    file: &std::sync::Arc<File>,
    item: &Item<'_>,
    expression: &Expression<'_>,
) -> Option<String> {
    let report = context.report(file)?;
    let mut policies = report.policies.iter();
    let policy = policies
        .find(|policy| policy.index == item.document.index && policy.file == file.source.name)?;
    let mut costs = policy.costs.iter();
    let cost = costs.find(|cost| cost.field_ref == expression.field_ref && !cost.is_sum())?;
    Some(shown_cost(cost))
}

fn shown_cost(cost: &CostReport) -> String {
    let Some(min) = cost.min else {
        return "Cost: unknown, because the expression has errors".to_owned();
    };
    let limit = cost.limit;
    let at_most = match cost.max_for_usual_object {
        Some(max) => {
            let tenths = max.saturating_mul(1000) / limit.max(1);
            format!(
                "at most {max} for an object of 64 KiB, {}.{}% of the limit of {limit}",
                tenths / 10,
                tenths % 10
            )
        }
        None => format!("unbounded; the limit is {limit}"),
    };
    format!(
        "Cost of the expression: at least {min}, {at_most} (`{}`)",
        cost.limit_name
    )
}
