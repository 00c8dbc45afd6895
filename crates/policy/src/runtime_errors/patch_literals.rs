//! Checks the literals of mutations: the operations, paths and values of JSON patches, and the keys of list items. The
//! checks need no request.

use std::sync::Arc;

use crate::advice::{Advice, Replacement};
use crate::expressions::Role;
use crate::lint::path;
use crate::nearest::nearest;
use cel::ast::{Ast, Expr, ExprId, Literal, StructField};
use kubernetes::library::mutation::{JSON_PATCH, OBJECT};
use kubernetes::schema::{DeclField, DeclKind, DeclType};

/// The operations of a JSON patch.
const OPERATIONS: [&str; 6] = ["add", "remove", "replace", "copy", "move", "test"];

/// The maximum number of names in a help message.
const MAX_NAMES: usize = 8;

/// A mistake in a literal of a mutation. It affects every request.
#[derive(Debug)]
pub(super) struct LiteralMistake {
    pub(super) node: ExprId,
    pub(super) message: String,
    pub(super) fix: Advice,
    /// True if the API server can apply the mutation, but rejects the resulting object.
    pub(super) is_of_object: bool,
}

/// The types of all matched kinds.
#[derive(Debug, Default)]
pub(super) struct MatchedTypes {
    /// The types. Empty if one of them is unknown.
    pub(super) all: Vec<Arc<DeclType>>,
    /// True if all kinds are built-in. Their schemas list the default `""` for required fields, but the API server does
    /// not set this default.
    pub(super) are_builtin: bool,
}

impl MatchedTypes {
    fn requires(&self, field: &DeclField) -> bool {
        field.required && (self.are_builtin || !field.has_default)
    }
}

pub(super) fn mistakes(ast: &Ast, role: Role, types: &MatchedTypes) -> Vec<LiteralMistake> {
    let mut mistakes = Vec::new();
    for (id, expr) in ast.iter() {
        let Expr::Struct { type_name, fields } = expr else {
            continue;
        };
        let name = type_name.strip_prefix('.').unwrap_or(type_name);
        if role == Role::JsonPatch && name == JSON_PATCH {
            mistakes.extend(patch_mistakes(ast, fields, types));
        } else if role == Role::ApplyConfiguration {
            mistakes.extend(keyless_item((id, name, fields), types));
        }
    }
    mistakes.sort_by_key(|mistake| ast.offset(mistake.node));
    mistakes
}

/// Returns the operation of a JSON patch that the author of the unknown operation `op` probably intended.
fn intended_operation(op: &str) -> Option<&'static str> {
    match op.to_lowercase().as_str() {
        "append" | "insert" | "create" | "set" | "push" => Some("add"),
        "delete" | "unset" => Some("remove"),
        "update" | "change" => Some("replace"),
        _ => nearest(op, OPERATIONS.into_iter()),
    }
}

fn patch_mistakes(ast: &Ast, fields: &[StructField], types: &MatchedTypes) -> Vec<LiteralMistake> {
    let field = |name: &str| fields.iter().find(|field| *field.field == *name);
    let text = |name: &str| Some((field(name)?.value, literal_text(ast, field(name)?.value)?));
    let mut mistakes = Vec::new();
    let mut add = |node, message: String, fix: Advice| {
        mistakes.push(LiteralMistake {
            node,
            message,
            fix,
            is_of_object: false,
        });
    };
    let op = text("op");
    if let Some((node, op)) = op
        && let Some((message, fix)) = operation_mistake(op, field("from").is_some())
    {
        add(node, message, fix);
    }
    for name in ["path", "from"] {
        let Some((node, path)) = text(name) else {
            continue;
        };
        if ["", "/"].contains(&path) {
            continue;
        }
        let Some(inner) = path.strip_prefix('/') else {
            let fix = rooted_path_help(path, types);
            add(
                node,
                format!("the path `{path}` does not start with `/`"),
                fix,
            );
            continue;
        };
        // The path of a `test` operation need not exist in the object: if a test fails, the API server ignores the
        // patch.
        if op.is_some_and(|(_, op)| op == "test") {
            continue;
        }
        if let Some(escaped) = with_escaped_key(inner) {
            let message = format!(
                "the path `{path}` goes too deep: the values of this map are strings, which have no fields"
            );
            let text = format!("in a key, `~1` stands for `/`: write `/{escaped}`");
            let replacement = Some(Replacement::Literal(format!("/{escaped}")));
            add(node, message, Advice { text, replacement });
            continue;
        }
        let reached: Vec<Reached<'_>> = types.all.iter().map(|type_| reach(type_, inner)).collect();
        match &*reached {
            [Reached::Undefined(undefined, parent), rest @ ..]
                if rest.iter().all(|it| matches!(it, Reached::Undefined(..))) =>
            {
                let message = format!("undefined field `{undefined}` in the path `{path}`");
                let moved = moved_path(inner, types);
                let moved = moved.map(|moved| Replacement::Literal(format!("/{moved}")));
                let moved = moved.map(Advice::did_you_mean);
                add(
                    node,
                    message,
                    moved.unwrap_or_else(|| names_help(undefined, parent)),
                );
            }
            [Reached::NoIndex(missing), rest @ ..]
                if rest
                    .iter()
                    .all(|it| matches!(it, Reached::NoIndex(it) if it == missing)) =>
            {
                let list = format!("/{}", missing.list);
                let message =
                    format!("`{list}` is a list, and `{path}` lacks the index of an item");
                add(node, message, missing.help().into());
            }
            [Reached::Value(first), ..] if name == "path" => {
                let is_set = op.is_some_and(|(_, op)| ["add", "replace"].contains(&op));
                let value = field("value").filter(|_| is_set);
                let mut all = reached.iter().map(|it| match it {
                    Reached::Value(type_) => Some(*type_),
                    Reached::Undefined(..) | Reached::NoIndex(_) | Reached::Unknown => None,
                });
                if let Some(value) = value
                    && let Some(mistake) = value_mistake(ast, value.value, (path, first), types)
                    && all.all(|type_| {
                        type_.is_some_and(|type_| {
                            value_mistake(ast, value.value, (path, type_), types).is_some()
                        })
                    })
                {
                    mistakes.push(mistake);
                    break;
                }
            }
            _ => {}
        }
    }
    mistakes
}

/// Returns the mistake of an operation, as a message and advice.
fn operation_mistake(op: &str, has_from: bool) -> Option<(String, Advice)> {
    if !OPERATIONS.contains(&op) {
        let fix = match intended_operation(op) {
            Some(near) => Advice::did_you_mean(Replacement::Literal(near.to_owned())),
            None => Advice {
                text: "the operations are `add`, `remove`, `replace`, `copy`, `move` and `test`"
                    .to_owned(),
                replacement: Some(Replacement::Assumed("add".to_owned())),
            },
        };
        return Some((format!("`{op}` is not an operation of a JSON patch"), fix));
    }
    let lacks_from = ["move", "copy"].contains(&op) && !has_from;
    lacks_from.then(|| {
        let message = format!("the operation `{op}` has no `from`");
        (message, "add `from` with the path of the value".into())
    })
}

/// Returns a hint about a path that lacks the leading `/`. Suggests the path with this `/` or with the prefix `/spec/`,
/// if all types declare the suggested path.
fn rooted_path_help(path: &str, types: &MatchedTypes) -> Advice {
    let slashes = if path.contains('/') {
        path.to_owned()
    } else {
        path.replace('.', "/")
    };
    let is_declared = |path: &String| {
        let mut all = types.all.iter();
        all.all(|type_| {
            let reached = reach(type_, path);
            !matches!(reached, Reached::Undefined(..) | Reached::NoIndex(_))
        })
    };
    let below_spec = format!("spec/{slashes}");
    match [slashes, below_spec].into_iter().find(is_declared) {
        Some(rooted) => Advice {
            text: format!("write `/{rooted}`"),
            replacement: Some(Replacement::Literal(format!("/{rooted}"))),
        },
        None => {
            "begin the path with `/` and a field of the object, as in `/metadata/labels`".into()
        }
    }
}

/// Escapes the `/` in the key of a label or annotation, such as `metadata/labels/a.b/c`. `None` for other paths.
fn with_escaped_key(path: &str) -> Option<String> {
    let maps = ["metadata/labels/", "metadata/annotations/"];
    let (start, map) = maps
        .into_iter()
        .find_map(|map| Some((path.find(map)?, map)))?;
    let is_whole = start == 0 || path.get(..start)?.ends_with('/');
    let (before, key) = path.split_at_checked(start + map.len())?;
    let is_key = key.matches('/').count() == 1 && !key.ends_with('/') && key.contains('.');
    (is_whole && is_key).then(|| format!("{before}{}", key.replace('/', "~1")))
}

/// The paths from the spec of a workload to the spec of its Pods.
const TEMPLATES: [&str; 2] = ["template/spec/", "jobTemplate/spec/template/spec/"];

/// Returns the corresponding path in a Pod or a different kind of workload, such as `spec/template/spec/a` for
/// `spec/a`. `None` if there is no path that exists in all matched kinds.
fn moved_path(path: &str, types: &MatchedTypes) -> Option<String> {
    let rest = path.strip_prefix("spec/")?;
    let mut removed = TEMPLATES.iter().filter_map(|it| rest.strip_prefix(it));
    let of_pod = removed.next().unwrap_or(rest);
    let templates = std::iter::once("").chain(TEMPLATES);
    let mut moved = templates.map(|template| format!("spec/{template}{of_pod}"));
    moved.find(|path| {
        let mut all = types.all.iter();
        all.all(|type_| matches!(reach(type_, path), Reached::Value(_)))
    })
}

/// The result of following a path in a type.
enum Reached<'t> {
    Value(&'t DeclType),
    /// The object type has no field with this name.
    Undefined(String, &'t DeclType),
    /// The path continues after a list with a segment that is not an index.
    NoIndex(MissingIndex),
    Unknown,
}

/// A path that lacks the index of a list.
#[derive(PartialEq)]
struct MissingIndex {
    /// The path of the list, without the first `/`.
    list: String,
    /// The rest of the path.
    rest: String,
    /// True if the items of the list have the field with which the rest starts.
    is_of_item: bool,
}

impl MissingIndex {
    fn help(&self) -> String {
        let Self { list, rest, .. } = self;
        if self.is_of_item {
            format!("add the index, as in `/{list}/0/{rest}` for the first item")
        } else {
            let segment = rest.split('/').next().unwrap_or(rest);
            format!("replace `{segment}` with the index of an item, or with `-` to append an item")
        }
    }
}

/// Returns the type that `path` denotes in `type_`. `path` is a JSON pointer without the first `/`.
fn reach<'t>(type_: &'t DeclType, path: &str) -> Reached<'t> {
    let mut current = type_;
    for (depth, segment) in path.split('/').enumerate() {
        let segment = segment.replace("~1", "/").replace("~0", "~");
        current = match &current.kind {
            DeclKind::List(elem) if segment == "-" || segment.parse::<i64>().is_ok() => elem,
            DeclKind::List(elem) => {
                let mut before = path.split('/');
                let list: Vec<&str> = before.by_ref().take(depth).collect();
                return Reached::NoIndex(MissingIndex {
                    list: list.join("/"),
                    rest: before.collect::<Vec<&str>>().join("/"),
                    is_of_item: elem.declared_field(&segment).is_some(),
                });
            }
            DeclKind::Map(value) => value,
            DeclKind::Object(object) => {
                let is_of_server = ["metadata", "apiVersion", "kind"].contains(&segment.as_str());
                let is_plain = segment.chars().all(|it| it.is_ascii_alphanumeric());
                match current.declared_field(&segment) {
                    Some(field) if depth > 0 || !is_of_server => &field.type_,
                    None if !object.is_open && is_plain && !(depth == 0 && is_of_server) => {
                        return Reached::Undefined(segment, current);
                    }
                    _ => return Reached::Unknown,
                }
            }
            _ => return Reached::Unknown,
        };
    }
    Reached::Value(current)
}

fn names_help(undefined: &str, type_: &DeclType) -> Advice {
    let names = || type_.declared_fields().iter().map(|field| &*field.name);
    if let Some(near) = nearest(undefined, names()) {
        return Advice::did_you_mean(Replacement::PathSegment {
            undefined: undefined.to_owned(),
            meant: near.to_owned(),
        });
    }
    let shown: Vec<&str> = names().take(MAX_NAMES).collect();
    let more = if names().count() > MAX_NAMES {
        ", ..."
    } else {
        ""
    };
    format!("the fields are {}{more}", shown.join(", ")).into()
}

/// Returns a mistake if the literal is not a value of `type_`, or lacks a required field.
fn value_mistake(
    ast: &Ast,
    value: ExprId,
    (path, type_): (&str, &DeclType),
    types: &MatchedTypes,
) -> Option<LiteralMistake> {
    let actual = match ast.expr(value) {
        Expr::Literal(Literal::String(_)) => "a string",
        Expr::Literal(Literal::Bool(_)) => "a boolean",
        Expr::Literal(Literal::Int(_) | Literal::Uint(_)) => "an integer",
        Expr::Literal(Literal::Double(_)) => "a double",
        Expr::List { .. } => "a list",
        Expr::Map(_) | Expr::Struct { .. } => "an object",
        _ => return None,
    };
    let expected = match &type_.kind {
        DeclKind::Bool => "a boolean",
        DeclKind::Int => "an integer",
        DeclKind::String | DeclKind::Bytes | DeclKind::Duration | DeclKind::Timestamp => "a string",
        DeclKind::List(_) => "a list",
        DeclKind::Map(_) | DeclKind::Object(_) => "an object",
        DeclKind::Double
        | DeclKind::IntOrString
        | DeclKind::Cel(_)
        | DeclKind::Quantity
        | DeclKind::Unknown => return None,
    };
    let mistake = |message, fix: String, is_of_object| {
        Some(LiteralMistake {
            node: value,
            message,
            fix: fix.into(),
            is_of_object,
        })
    };
    if actual != expected {
        let fix = match expected {
            "a list" => format!("write a list, or append an item with the path `{path}/-`"),
            "an object" => "write an object literal, or a longer path".to_owned(),
            _ => format!("write {expected}"),
        };
        return mistake(
            format!("`{path}` is {expected}, but the value is {actual}"),
            fix,
            false,
        );
    }
    let lacking = lacking_fields(ast, value, type_, types)?;
    mistake(
        format!(
            "the value of `{path}` lacks {}, so the API server rejects the object",
            quoted(&lacking)
        ),
        format!("add {}", quoted(&lacking)),
        true,
    )
}

fn quoted(names: &[&str]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    names.join(" and ")
}

/// Returns the required fields that an object literal lacks. `None` if it has all of them, or if its
/// keys are unknown.
fn lacking_fields<'t>(
    ast: &Ast,
    value: ExprId,
    type_: &'t DeclType,
    types: &MatchedTypes,
) -> Option<Vec<&'t str>> {
    let given = given_fields(ast, value)?;
    let required = type_.declared_fields().iter();
    let required = required.filter(|field| types.requires(field));
    let lacking = required.filter(|field| !given.contains(&&*field.name));
    let lacking: Vec<&str> = lacking.map(|field| &*field.name).collect();
    (!lacking.is_empty()).then_some(lacking)
}

/// Returns the names of the fields of an object literal. `None` if some of them are not literals.
fn given_fields(ast: &Ast, value: ExprId) -> Option<Vec<&str>> {
    match ast.expr(value) {
        Expr::Struct { fields, .. } => Some(fields.iter().map(|field| &*field.field).collect()),
        Expr::Map(entries) => {
            let keys = entries.iter();
            keys.map(|entry| literal_text(ast, entry.key)).collect()
        }
        _ => None,
    }
}

/// Returns a mistake if an item of a list in an `ApplyConfiguration` has none of the required fields. The API server
/// cannot merge such an item with an existing item, and rejects it as a new item.
fn keyless_item(
    (id, name, fields): (ExprId, &str, &[StructField]),
    types: &MatchedTypes,
) -> Option<LiteralMistake> {
    let path = name.strip_prefix(OBJECT)?.strip_prefix('.')?;
    let mut lacking: Option<Vec<&str>> = None;
    for type_ in &types.all {
        let elem = item_type(type_, path)?;
        let required: Vec<&str> = elem
            .declared_fields()
            .iter()
            .filter(|field| types.requires(field))
            .map(|field| &*field.name)
            .collect();
        let has_any = fields.iter().any(|field| required.contains(&&*field.field));
        if required.is_empty() || has_any {
            return None;
        }
        lacking.get_or_insert(required);
    }
    let lacking = quoted(&lacking?);
    Some(LiteralMistake {
        node: id,
        message: format!(
            "the item of `{path}` lacks {lacking}, so the API server rejects the object"
        ),
        fix: format!("add {lacking}").into(),
        is_of_object: true,
    })
}

/// Returns the type of the items of the list at a dotted path. `None` if the value is not a list.
fn item_type<'t>(type_: &'t DeclType, path: &str) -> Option<&'t DeclType> {
    let mut current = type_;
    let mut is_item = false;
    for name in path.split('.') {
        current = &current.declared_field(name)?.type_;
        is_item = false;
        if let DeclKind::List(elem) = &current.kind {
            current = elem;
            is_item = true;
        }
    }
    is_item.then_some(current)
}

pub(super) fn literal_text(ast: &Ast, id: ExprId) -> Option<&str> {
    path::string(ast.expr(id))
}
