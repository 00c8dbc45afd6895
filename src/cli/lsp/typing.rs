//! The types at a name of an expression, for each kind that the policy matches.

use std::collections::BTreeMap;

use super::cel::{self, FieldPath, Name, Scope};
use super::context::Context;
use super::cursor::{Expression, Item, Kind};
use crate::cel::env::Env;
use crate::cel::types::Type;
use crate::policy::scope::{KindScope, scopes};
use crate::schema::Gvk;
use crate::validation_rules::rule_env;
use crate::version::KubernetesVersion;

/// A name of an expression with its scope for one kind.
pub(super) struct KindSite {
    pub(super) gvk: Option<Gvk>,
    pub(super) env: Env,
    pub(super) scope: Scope,
}

/// Returns the scopes of a name, one for each matched kind with a schema. Empty if the source before the name is invalid, or
/// if the field is not an expression of a policy or webhook.
pub(super) fn sites(
    context: &Context<'_>,
    item: &Item<'_>,
    expression: &Expression<'_>,
    name: &Name,
) -> Vec<KindSite> {
    let Some(known) = context.workspace.known() else {
        return Vec::new();
    };
    let version = known.version();
    let all = match item.kind {
        Kind::Crd => rule_scope(item, &expression.field_ref, version)
            .into_iter()
            .collect(),
        _ => match item.compile(&expression.field_ref, version) {
            Some((compiled, n)) => scopes(&compiled, n, &known.mapper, known),
            None => Vec::new(),
        },
    };
    let site = |KindScope { gvk, env }: KindScope| {
        let scope = cel::scope(expression.text, name, &env)?;
        Some(KindSite { gvk, env, scope })
    };
    all.into_iter().filter_map(site).collect()
}

/// Returns the scope of a rule in a definition.
fn rule_scope(item: &Item<'_>, field_ref: &str, version: KubernetesVersion) -> Option<KindScope> {
    let (schema, rule) = field_ref.rsplit_once(".x-kubernetes-validations")?;
    let is_resource = schema.ends_with(".openAPIV3Schema");
    let node = item.document.node.nearest(schema);
    let rule = rule.rsplit_once('.').map_or("", |(rule, _)| rule);
    let rule = item
        .document
        .node
        .nearest(&format!("{schema}.x-kubernetes-validations{rule}"));
    let optional = rule.get("optionalOldSelf").map(goyaml::Node::to_json);
    let is_optional = optional.and_then(|value| value.as_bool()) == Some(true);
    let env = rule_env(&node.to_json(), is_resource, is_optional, version)?;
    Some(KindScope { gvk: None, env })
}

/// Returns the fields of a type with their types, sorted. An optional has the fields of its value.
pub(super) fn fields(type_: &Type) -> Vec<(String, Type)> {
    match type_ {
        Type::Struct(object) => {
            let Some(table) = &object.fields else {
                return Vec::new();
            };
            let names = table.field_names().into_iter();
            let field = |name: &str| Some((name.to_owned(), table.field_type(&object.name, name)?));
            names.filter_map(field).collect()
        }
        _ => type_.optional_value().map(fields).unwrap_or_default(),
    }
}

/// Returns the type of a field. The field of an optional is an optional.
pub(super) fn field_type(type_: &Type, name: &str) -> Option<Type> {
    match type_ {
        Type::Struct(object) => object.fields.as_ref()?.field_type(&object.name, name),
        Type::Map(entry) => Some(entry.1.clone()),
        _ => Some(Type::optional(field_type(type_.optional_value()?, name)?)),
    }
}

/// Returns true for the generated name of an object type from a schema.
fn is_of_schema(name: &str) -> bool {
    name.contains('#') || name.starts_with("selfType")
}

/// Formats a type. The types of objects from schemas have no useful name.
pub(super) fn shown(type_: &Type) -> String {
    match type_ {
        Type::Struct(object) if is_of_schema(&object.name) => "object".to_owned(),
        Type::List(elem) => format!("list({})", shown(elem)),
        Type::Map(entry) => format!("map({}, {})", shown(&entry.0), shown(&entry.1)),
        _ => match type_.optional_value() {
            Some(value) => format!("optional_type({})", shown(value)),
            None => type_.to_string(),
        },
    }
}

/// The values of a property, each with the kinds for which the property has this value.
pub(super) type ByKind<T> = BTreeMap<T, Vec<Gvk>>;

/// Groups the kinds by a property.
pub(super) fn by_kind<T: Ord>(
    sites: &[KindSite],
    property: impl Fn(&KindSite) -> Option<T>,
) -> ByKind<T> {
    let mut groups: ByKind<T> = BTreeMap::new();
    for site in sites {
        if let Some(value) = property(site) {
            groups.entry(value).or_default().extend(site.gvk.clone());
        }
    }
    groups
}

/// Returns the path of the field `name` at a site, if its receiver is a part of an input.
pub(super) fn path_of(site: &KindSite, name: &str) -> Option<FieldPath> {
    match &site.scope {
        Scope::Member { path, .. } => {
            let mut path = path.clone()?;
            path.fields.push(Some(name.to_owned()));
            Some(path)
        }
        Scope::Global(_) => None,
    }
}
