//! Finds the object, the field and the expression at a byte of a file.
//!
//! While the user types, the document is often invalid. The search then continues in a copy of the file whose line at
//! the cursor is completed or blanked. Before the cursor, the copy equals the file.

use std::fmt::Write as _;
use std::sync::Arc;

use goyaml::{Data, Node};
use serde_json::Value;

use super::workspace::File;
use crate::cli::input::object::Document;
use crate::cli::input::place::locate;
use crate::cli::input::webhook::as_policy;
use crate::cli::input::{Input, Object, Place, SourceText, decode};
use crate::policy::RequestPolicy;
use crate::policy::compile::CompiledPolicy;
use crate::policy::mutations;
use crate::version::KubernetesVersion;

/// The names of the fields that contain expressions.
const EXPRESSIONS: [&str; 4] = ["expression", "messageExpression", "valueExpression", "rule"];

/// Maximum nesting depth of schemas that are searched for rules.
const MAX_DEPTH: usize = 100;

/// An object of a file.
#[derive(Clone, Copy)]
pub(super) struct Item<'a> {
    pub(super) document: &'a Document,
    pub(super) kind: Kind<'a>,
}

/// The kind of an object, with its decoded value.
#[derive(Clone, Copy)]
pub(super) enum Kind<'a> {
    Policy(&'a RequestPolicy),
    Mutating(&'a crate::cli::input::MutatingPolicy),
    Binding,
    Webhooks(&'a Object<Value>),
    Crd,
    Probe,
    /// A policy or binding that cannot be decoded.
    Invalid,
    Other,
}

impl<'a> Item<'a> {
    fn new<T>(object: &'a Object<T>, kind: Kind<'a>) -> Self {
        Self {
            document: &object.document,
            kind,
        }
    }

    pub(super) fn text(&self, field_ref: &str) -> Option<&'a str> {
        let node = field_ref
            .split('.')
            .try_fold(&self.document.node, |node, name| node.get(name));
        node?.as_str()
    }

    /// Returns the field `kind`, or an empty string.
    pub(super) fn kind_name(&self) -> &'a str {
        self.text("kind").unwrap_or_default()
    }

    pub(super) fn name(&self) -> Option<&'a str> {
        self.text("metadata.name")
    }

    /// Returns true for a validating or mutating policy, even if it cannot be decoded.
    pub(super) fn is_policy(&self) -> bool {
        matches!(
            self.kind_name(),
            "ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy"
        )
    }

    /// Returns true for the binding of a policy, even if it cannot be decoded.
    pub(super) fn is_binding(&self) -> bool {
        matches!(
            self.kind_name(),
            "ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding"
        )
    }

    /// Returns the fields with expressions, each with its path, in the order of the file.
    pub(super) fn expressions(&self) -> Vec<(String, &'a Node)> {
        let mut expressions = Vec::new();
        let root = &self.document.node;
        match self.kind {
            Kind::Crd => rules(root, "", MAX_DEPTH, &mut expressions),
            Kind::Webhooks(_) => {
                let webhooks = root.get("webhooks").map_or(&[][..], Node::items);
                for (n, webhook) in webhooks.iter().enumerate() {
                    let path = format!("webhooks[{n}].matchConditions");
                    add_expressions(webhook.get("matchConditions"), &path, &mut expressions);
                }
            }
            _ if self.is_policy() => {
                let spec = root.get("spec");
                for list in [
                    "matchConditions",
                    "variables",
                    "validations",
                    "auditAnnotations",
                    "mutations",
                ] {
                    let node = spec.and_then(|spec| spec.get(list));
                    add_expressions(node, &format!("spec.{list}"), &mut expressions);
                }
            }
            _ => {}
        }
        expressions.sort_by_key(|(_, node)| node.span.start);
        expressions
    }

    /// Compiles the policy or webhook that contains the expression, and returns it with the index of the expression.
    pub(super) fn compile(
        &self,
        field_ref: &str,
        version: KubernetesVersion,
    ) -> Option<(CompiledPolicy, usize)> {
        let (policy, mutations) = match self.kind {
            Kind::Policy(policy) => (policy.clone(), None),
            Kind::Mutating(policy) => (policy.shared.value.clone(), Some(policy.mutations.clone())),
            Kind::Webhooks(configuration) => {
                let (webhook, _) = field_ref.split_once(".matchConditions")?;
                let webhook = configuration.document.node.nearest(webhook);
                (as_policy(configuration, webhook).ok()?.value, None)
            }
            Kind::Invalid => self.decode_leniently()?,
            _ => return None,
        };
        let field_ref = match field_ref.find("matchConditions") {
            Some(at) => format!("spec.{}", field_ref.get(at..)?),
            None => field_ref.to_owned(),
        };
        let compiled = CompiledPolicy::from_parts(policy, mutations.as_deref(), version);
        let mut all = compiled.expressions().iter();
        let n = all.position(|expression| expression.field_ref == field_ref)?;
        Some((compiled, n))
    }

    /// Decodes a policy without its empty fields. A field is empty while its value is being typed.
    fn decode_leniently(
        &self,
    ) -> Option<(
        RequestPolicy,
        Option<Vec<k8s_openapi::api::admissionregistration::v1::Mutation>>,
    )> {
        let mut value = self.document.node.to_json();
        fill_empty(&mut value);
        if self.kind_name() == "MutatingAdmissionPolicy" {
            let policy = decode::mutating_policy(value).ok()?;
            let mutations = mutations::mutations(&policy).to_vec();
            return Some((RequestPolicy::from(&policy), Some(mutations)));
        }
        Some((decode::policy(value).ok()?.into(), None))
    }
}

/// Removes empty fields. Replaces empty expressions with empty strings, so that other expressions keep their indices.
fn fill_empty(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            for name in EXPRESSIONS {
                if let Some(field @ Value::Null) = fields.get_mut(name) {
                    *field = "".into();
                }
            }
            fields.retain(|_, value| !value.is_null());
            fields.values_mut().for_each(fill_empty);
            if !fields.contains_key("expression")
                && fields.len() == 1
                && fields.contains_key("name")
            {
                fields.insert("expression".to_owned(), "".into());
            }
        }
        Value::Array(items) => {
            for item in items {
                if item.is_null() {
                    *item = Value::Object(serde_json::Map::new());
                }
                fill_empty(item);
            }
        }
        _ => {}
    }
}

/// Adds the expressions in the items of a list.
fn add_expressions<'a>(
    list: Option<&'a Node>,
    path: &str,
    expressions: &mut Vec<(String, &'a Node)>,
) {
    for (n, item) in list.map_or(&[][..], Node::items).iter().enumerate() {
        let nested = ["jsonPatch", "applyConfiguration"];
        let nested = nested
            .iter()
            .filter_map(|name| Some((*name, item.get(name)?)));
        for (name, parent) in std::iter::once(("", item)).chain(nested) {
            for field in EXPRESSIONS {
                if let Some(node) = parent.get(field).filter(|node| node.as_str().is_some()) {
                    let dot = if name.is_empty() { "" } else { "." };
                    expressions.push((format!("{path}[{n}]{dot}{name}.{field}"), node));
                }
            }
        }
    }
}

/// Adds the validation rules of the schemas of a definition.
fn rules<'a>(node: &'a Node, path: &str, depth: usize, expressions: &mut Vec<(String, &'a Node)>) {
    let Some(depth) = depth.checked_sub(1) else {
        return;
    };
    for (n, item) in node.items().iter().enumerate() {
        rules(item, &format!("{path}[{n}]"), depth, expressions);
    }
    for (name, entry) in node.entries() {
        let dot = if path.is_empty() { "" } else { "." };
        let path = format!("{path}{dot}{name}");
        if name == "x-kubernetes-validations" {
            for (n, rule) in entry.node.items().iter().enumerate() {
                for field in ["rule", "messageExpression"] {
                    if let Some(node) = rule.get(field).filter(|node| node.as_str().is_some()) {
                        expressions.push((format!("{path}[{n}].{field}"), node));
                    }
                }
            }
        } else {
            rules(&entry.node, &path, depth, expressions);
        }
    }
}

/// Returns all objects of a file, in the order of the file.
pub(super) fn items(input: &Input) -> Vec<Item<'_>> {
    let mut items = Vec::new();
    let policies = input.policies.iter();
    items.extend(policies.map(|it| Item::new(it, Kind::Policy(&it.value))));
    let mutating = input.mutating_policies.iter();
    items.extend(mutating.map(|it| Item::new(&it.shared, Kind::Mutating(it))));
    let bindings = input.bindings.iter().chain(&input.mutating_bindings);
    items.extend(bindings.map(|it| Item::new(it, Kind::Binding)));
    items.extend(
        input
            .webhooks
            .iter()
            .map(|it| Item::new(it, Kind::Webhooks(it))),
    );
    items.extend(input.crds.iter().map(|it| Item::new(it, Kind::Crd)));
    items.extend(input.probes.iter().map(|it| Item::new(it, Kind::Probe)));
    let invalid = input.invalid.iter();
    items.extend(invalid.map(|it| match it.kind() {
        // An invalid definition is included too: its rules need only the schema.
        "CustomResourceDefinition" => Item::new(it, Kind::Crd),
        _ => Item::new(it, Kind::Invalid),
    }));
    let others = input.namespaces.iter().chain(&input.others);
    items.extend(others.map(|it| Item::new(it, Kind::Other)));
    items.sort_by_key(|item| item.document.bytes(&item.document.node.span).start);
    items
}

/// Returns the object at a byte of the file: the last one that begins before it in the same document.
pub(super) fn item_at(file: &File, byte: usize) -> Option<Item<'_>> {
    let all = items(file.objects());
    let mut before = all.into_iter().rev();
    let item = before.find(|item| item.document.bytes(&item.document.node.span).start <= byte)?;
    let end = item.document.bytes(&item.document.node.span).end;
    let between = file
        .source
        .text()
        .get(end.min(byte)..byte)
        .unwrap_or_default();
    (!between.contains("\n---")).then_some(item)
}

/// Returns a copy of the file in which the object at the byte can be read, or the file itself.
pub(super) fn readable(file: &Arc<File>, byte: usize) -> Arc<File> {
    if item_at(file, byte).is_some() {
        return Arc::clone(file);
    }
    let text = file.source.text();
    let Some((before, after)) = text.split_at_checked(byte) else {
        return Arc::clone(file);
    };
    let rest_of_line = after.find('\n').unwrap_or(after.len());
    let after = after.get(rest_of_line..).unwrap_or_default();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let (lines, line) = before.split_at_checked(line_start).unwrap_or_default();
    let blank = " ".repeat(line.len());
    let variants = [
        format!("{before}'{after}"),
        format!("{before}\"{after}"),
        format!("{before}:{after}"),
        format!("{before}]{after}"),
        format!("{lines}{blank}{after}"),
    ];
    let readable = variants.into_iter().map(|text| file.with_text(text));
    let mut readable = readable.filter(|file| item_at(file, byte).is_some());
    readable.next().unwrap_or_else(|| Arc::clone(file))
}

/// A step from a node to a child.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    Key(String),
    Index(usize),
}

/// Returns the path of steps in the notation of the API server.
pub(super) fn field_ref(steps: &[Step]) -> String {
    let mut path = String::new();
    for step in steps {
        match step {
            Step::Key(name) => {
                if !path.is_empty() {
                    path.push('.');
                }
                path.push_str(name);
            }
            Step::Index(n) => {
                let _ = write!(path, "[{n}]");
            }
        }
    }
    path
}

/// Returns true for the path of a field that contains an expression.
pub(super) fn is_expression(steps: &[Step]) -> bool {
    let name = match steps.last() {
        Some(Step::Key(name)) => name.as_str(),
        _ => return false,
    };
    EXPRESSIONS.contains(&name)
}

/// The field at a byte of an object.
pub(super) struct Field<'a> {
    pub(super) steps: Vec<Step>,
    pub(super) node: &'a Node,
    /// True if the byte is in the key of the last step.
    pub(super) is_key: bool,
}

/// Returns the innermost field at a byte of the file. On a blank line, this is the field to which text typed at the
/// byte would belong.
pub(super) fn field_at<'a>(source: &SourceText, item: &Item<'a>, byte: usize) -> Field<'a> {
    let column = |byte: usize| source.place(byte).column;
    let line = source.line(source.place(byte).line);
    // On a blank line, the cursor determines the indentation. On other lines, the leading spaces do.
    let indent = line.chars().take_while(|c| *c == ' ').count();
    let is_blank = line.trim().is_empty();
    let own_column = if is_blank { column(byte) } else { indent + 1 };
    let line_start = source.byte_at(Place {
        line: source.place(byte).line,
        column: 1,
    });
    let mut field = Field {
        steps: Vec::new(),
        node: &item.document.node,
        is_key: false,
    };
    loop {
        let next = match &field.node.data {
            Data::Map(_) => {
                let entries = field.node.entries().map(|(name, entry)| {
                    let key = item.document.bytes(&entry.key);
                    (key, Step::Key(name.to_owned()), &entry.node)
                });
                entries
                    .filter(|(key, ..)| key.start <= byte)
                    .max_by_key(|(key, ..)| key.start)
            }
            Data::List(items) => {
                let items = items.iter().enumerate().map(|(n, node)| {
                    let span = item.document.bytes(&node.span);
                    // An item begins at its dash, two bytes before its content.
                    let start = span.start.saturating_sub(2);
                    (start..span.start, Step::Index(n), node)
                });
                items
                    .filter(|(key, ..)| key.start <= byte)
                    .max_by_key(|(key, ..)| key.start)
            }
            Data::Scalar(..) => None,
        };
        let Some((key, step, node)) = next else {
            return field;
        };
        // A child that begins on an earlier line ends before the first line that is not indented more than the child.
        let is_within = item.document.bytes(&node.span).contains(&byte);
        let is_item = matches!(step, Step::Index(_));
        let begins_before = key.start < line_start;
        // The items of a list may have the same indentation as the key of the list.
        let is_dash = !is_item
            && line.trim_start().starts_with('-')
            && matches!(node.data, Data::List(_) | Data::Scalar(Value::Null, _));
        let may_align = is_dash || is_item && line.trim_start().starts_with('-');
        let child_column = column(key.start);
        let is_outside = own_column < child_column || own_column == child_column && !may_align;
        if begins_before && !is_within && is_outside {
            return field;
        }
        let is_key = !is_item && byte <= key.end;
        field.steps.push(step);
        field.node = node;
        if is_key {
            field.is_key = true;
            return field;
        }
    }
}

pub(super) struct Expression<'a> {
    pub(super) field_ref: String,
    pub(super) text: &'a str,
    /// The byte offset in the file of each character of the text, and of its end.
    places: Vec<usize>,
    source: &'a SourceText,
}

impl<'a> Expression<'a> {
    /// Returns the expression in a field. `None` if its characters cannot be located.
    pub(super) fn new(
        source: &'a SourceText,
        document: &Document,
        (field_ref, node): (String, &'a Node),
    ) -> Option<Self> {
        let Data::Scalar(Value::String(text), style) = &node.data else {
            return None;
        };
        let span = document.bytes(&node.span);
        let mut places = locate(source.text(), &span, *style, text);
        for place in &mut places {
            *place += span.start;
        }
        if places.is_empty() {
            let is_empty = text.is_empty();
            return is_empty.then_some(Self {
                field_ref,
                text,
                places: vec![span.end.saturating_sub(1).max(span.start)],
                source,
            });
        }
        Some(Self {
            field_ref,
            text,
            places,
            source,
        })
    }

    /// Returns the bytes of the file that contain the expression.
    pub(super) fn span(&self) -> std::ops::Range<usize> {
        let first = self.places.first().copied().unwrap_or_default();
        let last = self.places.last().copied().unwrap_or_default();
        first..last.max(first)
    }

    /// Converts a byte offset in the file to one in the expression.
    pub(super) fn offset(&self, byte: usize) -> usize {
        let n = self.places.partition_point(|place| *place < byte);
        let mut chars = self.text.char_indices();
        chars.nth(n).map_or(self.text.len(), |(at, _)| at)
    }

    /// Converts a byte offset in the expression to one in the file.
    pub(super) fn byte(&self, offset: usize) -> usize {
        let before = self.text.get(..offset).unwrap_or(self.text);
        let n = before.chars().count();
        let place = self.places.get(n).or(self.places.last());
        place.copied().unwrap_or_default()
    }

    /// Converts a byte range of the expression to one of the file.
    pub(super) fn bytes(&self, range: &std::ops::Range<usize>) -> std::ops::Range<usize> {
        let (start, end) = (self.byte(range.start), self.byte(range.end));
        let part = self.text.get(range.clone()).unwrap_or_default();
        let Some((last, character)) = part.char_indices().next_back() else {
            return start..end.max(start);
        };
        // Usually, the range in the file ends where the next character begins. If that character is on another line,
        // the range ends directly after its own last character instead.
        let last = self.byte(range.start + last);
        let between = self.source.text().get(last..end).unwrap_or_default();
        let end = if between.contains('\n') {
            last + character.len_utf8()
        } else {
            end
        };
        start..end.max(start)
    }
}

pub(super) fn expressions<'a>(source: &'a SourceText, item: &Item<'a>) -> Vec<Expression<'a>> {
    let fields = item.expressions().into_iter();
    fields
        .filter_map(|field| Expression::new(source, item.document, field))
        .collect()
}

pub(super) fn expression_at<'a>(
    source: &'a SourceText,
    item: &Item<'a>,
    byte: usize,
) -> Option<Expression<'a>> {
    let at_byte = |(_, node): &(String, &Node)| {
        let span = item.document.bytes(&node.span);
        // Spaces at the end of a line are not part of a plain scalar.
        let after = source.text().get(span.end..byte).unwrap_or_default();
        span.start <= byte && after.chars().all(|c| c == ' ')
    };
    let field = item.expressions().into_iter().rfind(at_byte)?;
    Expression::new(source, item.document, field)
}
