//! Completion in expressions, and in the fields of policies, bindings and webhook configurations.

use std::collections::BTreeMap;

use gen_lsp_types::{
    CompletionItem, CompletionItemKind, CompletionItemTextEdit, CompletionList, CompletionParams,
    Documentation, InsertTextFormat, MarkupContent, MarkupKind, Range, TextEdit,
};

use super::cel::{self, Name, Scope};
use super::completion_in_yaml;
use super::context::Context;
use super::cursor::{self, Expression, Item};
use super::functions::{self, MACROS, Receiver};
use super::positions;
use super::typing::{self, ByKind, KindSite};
use super::workspace::File;
use crate::cel::decls::Overload;
use crate::cel::types::Type;
use crate::status::message;

/// The values and type names that each expression can use.
const WORDS: [&str; 3] = ["true", "false", "null"];

pub(super) fn completion(context: &Context<'_>, params: &CompletionParams) -> CompletionList {
    let at = &params.text_document_position_params;
    let items = context.file(&at.text_document.uri).and_then(|file| {
        let byte = positions::byte(&file.source, at.position, context.encoding);
        let file = cursor::readable(file, byte);
        let item = cursor::item_at(&file, byte)?;
        match cursor::expression_at(&file.source, &item, byte) {
            Some(expression) => in_expression(context, (&file, &item), &expression, byte),
            None => empty_expression(context, &file, &item, byte)
                .or_else(|| Some(completion_in_yaml::completion(context, &file, &item, byte))),
        }
    });
    CompletionList {
        is_incomplete: false,
        items: items.unwrap_or_default(),
        ..CompletionList::default()
    }
}

/// Returns the completions of an expression that has no value yet.
fn empty_expression(
    context: &Context<'_>,
    file: &File,
    item: &Item<'_>,
    byte: usize,
) -> Option<Vec<CompletionItem>> {
    let field = cursor::field_at(&file.source, item, byte);
    let is_empty = field.node.is_null() && !field.is_key && cursor::is_expression(&field.steps);
    let (before, after) = file
        .source
        .text()
        .split_at_checked(byte)
        .filter(|_| is_empty)?;
    let quoted = file.with_text(format!("{before}''{after}"));
    let item = cursor::item_at(&quoted, byte)?;
    let expression = cursor::expression_at(&quoted.source, &item, byte + 1)?;
    // The quotes only help to find the expression. The completions apply to the original document, so they use `byte`.
    in_expression(context, (file, &item), &expression, byte)
}

/// Collects completions that replace the same range.
struct Completions {
    range: Range,
    has_snippets: bool,
    items: Vec<CompletionItem>,
}

impl Completions {
    fn add(
        &mut self,
        label: &str,
        kind: CompletionItemKind,
        detail: String,
    ) -> &mut CompletionItem {
        let rank = match kind {
            CompletionItemKind::Variable | CompletionItemKind::Field => 0,
            CompletionItemKind::Keyword => 1,
            _ => 2,
        };
        self.items.push(CompletionItem {
            label: label.to_owned(),
            kind: Some(kind),
            detail: Some(detail),
            sort_text: Some(format!("{rank}{label}")),
            text_edit: Some(CompletionItemTextEdit::TextEdit(TextEdit {
                range: self.range,
                new_text: label.to_owned(),
            })),
            ..CompletionItem::default()
        });
        let last = self.items.len() - 1;
        #[expect(clippy::indexing_slicing, reason = "the item was just added")]
        &mut self.items[last]
    }

    /// Adds a function or macro, whose parentheses are inserted if the client supports it. `shown` is the part of the
    /// name to insert.
    fn add_call(&mut self, shown: &str, has_parentheses: bool, detail: String, summary: &str) {
        let (range, has_snippets) = (self.range, self.has_snippets);
        let item = self.add(shown, CompletionItemKind::Function, detail);
        if has_snippets && !has_parentheses {
            item.text_edit = Some(CompletionItemTextEdit::TextEdit(TextEdit {
                range,
                new_text: format!("{shown}($0)"),
            }));
            item.insert_text_format = Some(InsertTextFormat::Snippet);
        }
        if !summary.is_empty() {
            item.documentation = Some(Documentation::MarkupContent(MarkupContent {
                kind: MarkupKind::Markdown,
                value: summary.to_owned(),
            }));
        }
    }
}

fn in_expression(
    context: &Context<'_>,
    (file, item): (&File, &Item<'_>),
    expression: &Expression<'_>,
    byte: usize,
) -> Option<Vec<CompletionItem>> {
    let offset = expression.offset(byte);
    let name = cel::name_at(expression.text, offset)?;
    let bytes = expression.bytes(&name.range);
    // The range of an empty name may extend to the next line of the file, so it is not used.
    let replaced = if name.range.is_empty() {
        byte..byte
    } else {
        bytes
    };
    let mut completions = Completions {
        range: positions::range(&file.source, &replaced, context.encoding),
        has_snippets: context.has_snippets,
        items: Vec::new(),
    };
    let sites = typing::sites(context, item, expression, &name);
    if name.is_member {
        members(&sites, &name, &mut completions);
    } else {
        globals(&sites, &name, &mut completions);
    }
    Some(completions.items)
}

/// Formats the type of a name, or the types with their kinds if they differ.
fn types_by_kind(types: &ByKind<String>, n_sites: usize) -> String {
    let shown = types.iter().map(|(type_, kinds)| {
        let names: Vec<String> = kinds.iter().map(message::kind).collect();
        if types.len() == 1 && (kinds.len() == n_sites || kinds.is_empty()) {
            type_.clone()
        } else {
            format!("{type_} ({})", names.join(", "))
        }
    });
    shown.collect::<Vec<_>>().join("; ")
}

fn members(sites: &[KindSite], name: &Name, completions: &mut Completions) {
    let mut fields: BTreeMap<String, ByKind<String>> = BTreeMap::new();
    let mut calls: BTreeMap<String, String> = BTreeMap::new();
    for site in sites {
        let Scope::Member { receiver, path } = &site.scope else {
            continue;
        };
        // In `math.greatest`, `math` is a namespace of functions, not a variable.
        let namespace = path.as_ref().filter(|path| path.fields.is_empty());
        if let Some(namespace) = namespace.filter(|_| receiver.is_dyn_or_error())
            && site.env.is_namespace(&namespace.root)
        {
            add_qualified(site, &namespace.root, &mut calls);
            continue;
        }
        for (field, type_) in typing::fields(receiver) {
            let types = fields.entry(field).or_default();
            types
                .entry(typing::shown(&type_))
                .or_default()
                .extend(site.gvk.clone());
        }
        if receiver.is_error()
            || matches!(receiver, Type::Struct(object) if object.fields.is_some())
        {
            continue;
        }
        for (function, overloads) in functions::members(&site.env, receiver) {
            calls
                .entry(function.to_owned())
                .or_insert_with(|| labels(&overloads).join("\n"));
        }
    }
    for (field, types) in &fields {
        let detail = types_by_kind(types, sites.len());
        completions.add(field, CompletionItemKind::Field, detail);
    }
    for known in MACROS {
        let is_accepted = sites.iter().any(|site| match &site.scope {
            Scope::Member { receiver, .. } => known.accepts(receiver),
            Scope::Global(_) => false,
        });
        if is_accepted {
            completions.add_call(known.name, name.is_call, known.signature(), known.summary);
        }
    }
    for (function, signatures) in calls {
        let first = signatures.lines().next().unwrap_or_default().to_owned();
        let code = format!("```cel\n{signatures}\n```");
        completions.add_call(&function, name.is_call, first, &code);
    }
}

fn labels(overloads: &[&Overload]) -> Vec<String> {
    let labels = overloads.iter();
    labels
        .map(|overload| functions::signature(overload).label)
        .collect()
}

/// Adds the functions whose qualified names begin with the namespace.
fn add_qualified(site: &KindSite, namespace: &str, calls: &mut BTreeMap<String, String>) {
    for (function, overloads) in functions::globals(&site.env) {
        let rest = function.strip_prefix(namespace);
        if let Some(rest) = rest.and_then(|rest| rest.strip_prefix('.')) {
            calls
                .entry(rest.to_owned())
                .or_insert_with(|| labels(&overloads).join("\n"));
        }
    }
}

fn globals(sites: &[KindSite], name: &Name, completions: &mut Completions) {
    let mut variables: BTreeMap<String, ByKind<String>> = BTreeMap::new();
    for site in sites {
        let locals = match &site.scope {
            Scope::Global(locals) => locals.as_slice(),
            Scope::Member { .. } => &[],
        };
        let of_env = site.env.variables();
        let of_env = of_env.map(|variable| (&variable.name, &variable.type_));
        let of_env = of_env.filter(|(name, _)| !name.contains('.'));
        let locals = locals.iter().map(|(name, type_)| (name, type_));
        for (variable, type_) in of_env.chain(locals) {
            let types = variables.entry(variable.to_string()).or_default();
            types
                .entry(typing::shown(type_))
                .or_default()
                .extend(site.gvk.clone());
        }
    }
    for (variable, types) in &variables {
        let detail = types_by_kind(types, sites.len());
        completions.add(variable, CompletionItemKind::Variable, detail);
    }
    for word in WORDS {
        completions.add(word, CompletionItemKind::Keyword, word.to_owned());
    }
    for known in MACROS
        .iter()
        .filter(|known| known.receiver == Receiver::None)
    {
        completions.add_call(known.name, name.is_call, known.signature(), known.summary);
    }
    let Some(site) = sites.first() else { return };
    for (function, overloads) in functions::globals(&site.env) {
        let signatures = labels(&overloads);
        let first = signatures.first().cloned().unwrap_or_default();
        let code = format!("```cel\n{}\n```", signatures.join("\n"));
        completions.add_call(function, name.is_call, first, &code);
    }
}
