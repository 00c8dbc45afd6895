//! Go to definition, find references and rename. Each of the three works for variables, names of policies, and kinds of
//! params.

use std::collections::HashMap;
use std::ops::Range as Bytes;
use std::sync::Arc;

use gen_lsp_types::{
    DefinitionParams, Location, PrepareRenamePlaceholder, PrepareRenameResult, ReferenceParams,
    RenameParams, TextDocumentPositionParams, TextEdit, Uri, WorkspaceEdit,
};
use goyaml::Node;

use super::context::Context;
use super::cursor::{self, Expression, Item};
use super::outbox::Failure;
use super::positions;
use super::workspace::File;
use crate::cel::syntax::lexer;
use crate::cel::syntax::token::Kind;
use crate::cli::input::edit::Edit;
use crate::schema::{GroupVersion, Gvk};

/// The input whose fields are the variables of a policy.
const VARIABLES: &str = "variables";

/// A name with a definition and references.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Symbol {
    /// A variable of the object that begins at this byte of the file.
    Variable { object: usize, name: String },
    /// A policy.
    Policy { is_mutating: bool, name: String },
    /// The kind of a policy's params.
    Kind(Gvk),
}

/// An occurrence of a symbol.
struct Occurrence {
    symbol: Symbol,
    bytes: Bytes<usize>,
    is_definition: bool,
    /// The node of a scalar in YAML, or `None` for a name in an expression.
    node: Option<Node>,
}

fn start_of(item: &Item<'_>) -> usize {
    item.document.bytes(&item.document.node.span).start
}

/// Returns the occurrences of names in an object.
fn occurrences(file: &File, item: &Item<'_>) -> Vec<Occurrence> {
    let mut all = Vec::new();
    let mut add = |symbol: Symbol, node: Option<&Node>, is_definition: bool| {
        if let Some(node) = node {
            all.push(Occurrence {
                symbol,
                bytes: value_bytes(file, &item.document.bytes(&node.span)),
                is_definition,
                node: Some(node.clone()),
            });
        }
    };
    let root = &item.document.node;
    let node = |path: &[&str]| path.iter().try_fold(root, |node, name| node.get(name));
    let is_mutating = item.kind_name().starts_with("Mutating");
    let policy = |name: &str| Symbol::Policy {
        is_mutating,
        name: name.to_owned(),
    };
    if item.is_policy() {
        if let Some(name) = item.name() {
            add(policy(name), node(&["metadata", "name"]), true);
        }
        let kind = (
            item.text("spec.paramKind.apiVersion"),
            item.text("spec.paramKind.kind"),
        );
        if let (Some(api_version), Some(kind)) = kind {
            let (group, version) = GroupVersion::split(api_version);
            let symbol = Symbol::Kind(Gvk::new(group, version, kind));
            add(symbol.clone(), node(&["spec", "paramKind", "kind"]), false);
            add(symbol, node(&["spec", "paramKind", "apiVersion"]), false);
        }
        let variables = node(&["spec", VARIABLES]).map_or(&[][..], Node::items);
        for variable in variables {
            let name = variable.get("name");
            if let Some(text) = name.and_then(Node::as_str) {
                let symbol = Symbol::Variable {
                    object: start_of(item),
                    name: text.to_owned(),
                };
                add(symbol, name, true);
            }
        }
    }
    if let Some(name) = item.text("spec.policyName").filter(|_| item.is_binding()) {
        add(policy(name), node(&["spec", "policyName"]), false);
    }
    if item.kind_name() == "PolicyProbe" {
        let target = node(&["spec", "target"]);
        let is_mutating = target
            .and_then(|target| target.get("kind")?.as_str())
            .is_some_and(|kind| kind == "MutatingAdmissionPolicy");
        for field in [
            node(&["spec", "policyName"]),
            target.and_then(|it| it.get("name")),
        ] {
            if let Some(name) = field.and_then(Node::as_str) {
                let name = name.to_owned();
                add(Symbol::Policy { is_mutating, name }, field, false);
            }
        }
    }
    if item.kind_name() == "CustomResourceDefinition" {
        let names = (item.text("spec.group"), item.text("spec.names.kind"));
        let versions = node(&["spec", "versions"]).map_or(&[][..], Node::items);
        if let (Some(group), Some(kind)) = names {
            for version in versions {
                let version = version
                    .get("name")
                    .and_then(Node::as_str)
                    .unwrap_or_default();
                let symbol = Symbol::Kind(Gvk::new(group, version, kind));
                add(symbol, node(&["spec", "names", "kind"]), true);
            }
        }
    }
    if item.is_policy() {
        for expression in cursor::expressions(&file.source, item) {
            add_variables(item, &expression, &mut all);
        }
    }
    all
}

/// Returns the bytes of a scalar without its quotes.
fn value_bytes(file: &File, bytes: &Bytes<usize>) -> Bytes<usize> {
    let written = file.source.text().get(bytes.clone()).unwrap_or_default();
    let is_quoted = written.len() >= 2 && written.starts_with(['"', '\'']);
    if is_quoted {
        bytes.start + 1..bytes.end - 1
    } else {
        bytes.clone()
    }
}

/// Adds the variables that an expression selects.
fn add_variables(item: &Item<'_>, expression: &Expression<'_>, all: &mut Vec<Occurrence>) {
    let tokens = lexer::tokens(expression.text).all;
    let mut previous = Kind::End;
    let mut was_variables = false;
    for token in tokens {
        let text = token.text(expression.text);
        match token.kind {
            Kind::Ident if was_variables && previous != Kind::Ident => {
                let start = usize::try_from(token.start).unwrap_or_default();
                all.push(Occurrence {
                    symbol: Symbol::Variable {
                        object: start_of(item),
                        name: text.to_owned(),
                    },
                    bytes: expression.bytes(&(start..start + text.len())),
                    is_definition: false,
                    node: None,
                });
                was_variables = false;
            }
            Kind::Ident => was_variables = text == VARIABLES && previous != Kind::Dot,
            Kind::Dot => was_variables = was_variables && previous == Kind::Ident,
            Kind::Question => was_variables = was_variables && previous == Kind::Dot,
            _ => was_variables = false,
        }
        previous = token.kind;
    }
}

/// Returns the symbol at a position, with the bytes of its occurrence.
fn symbol_at(
    context: &Context<'_>,
    at: &TextDocumentPositionParams,
) -> Option<(Arc<File>, Symbol, Bytes<usize>)> {
    let file = context.file(&at.text_document.uri)?;
    let byte = positions::byte(&file.source, at.position, context.encoding);
    let item = cursor::item_at(file, byte)?;
    let all = occurrences(file, &item).into_iter();
    let mut here = all.filter(|it| it.bytes.start <= byte && byte <= it.bytes.end);
    let matches = here.next()?;
    Some((Arc::clone(file), matches.symbol, matches.bytes))
}

/// Returns the occurrences of a symbol in the workspace, with their files.
fn all_of(
    context: &Context<'_>,
    file: &Arc<File>,
    symbol: &Symbol,
) -> Vec<(Arc<File>, Occurrence)> {
    let is_local = matches!(symbol, Symbol::Variable { .. });
    let files = context.workspace.files();
    let files = files.filter(|other| !is_local || other.path == file.path);
    let mut matches = Vec::new();
    for file in files {
        for item in cursor::items(file.objects()) {
            let all = occurrences(file, &item).into_iter();
            let same = all.filter(|occurrence| occurrence.symbol == *symbol);
            matches.extend(same.map(|occurrence| (Arc::clone(file), occurrence)));
        }
    }
    matches
}

fn location(context: &Context<'_>, file: &File, bytes: &Bytes<usize>) -> Location {
    Location {
        uri: file.uri.clone(),
        range: positions::range(&file.source, bytes, context.encoding),
    }
}

pub(super) fn definition(context: &Context<'_>, params: &DefinitionParams) -> Vec<Location> {
    let at = &params.text_document_position_params;
    let Some((file, symbol, _)) = symbol_at(context, at) else {
        return Vec::new();
    };
    let all = all_of(context, &file, &symbol).into_iter();
    let definitions = all.filter(|(_, occurrence)| occurrence.is_definition);
    definitions
        .map(|(file, occurrence)| location(context, &file, &occurrence.bytes))
        .collect()
}

pub(super) fn references(context: &Context<'_>, params: &ReferenceParams) -> Vec<Location> {
    let at = &params.text_document_position_params;
    let Some((file, symbol, _)) = symbol_at(context, at) else {
        return Vec::new();
    };
    let includes_definition = params.context.include_declaration;
    let all = all_of(context, &file, &symbol).into_iter();
    let shown = all.filter(|(_, it)| includes_definition || !it.is_definition);
    shown
        .map(|(file, occurrence)| location(context, &file, &occurrence.bytes))
        .collect()
}

/// Returns the name that can be renamed at a position.
pub(super) fn prepare_rename(
    context: &Context<'_>,
    at: &TextDocumentPositionParams,
) -> Option<PrepareRenameResult> {
    let (file, symbol, bytes) = symbol_at(context, at)?;
    let placeholder = match symbol {
        Symbol::Variable { name, .. } | Symbol::Policy { name, .. } => name,
        Symbol::Kind(_) => return None,
    };
    let range = positions::range(&file.source, &bytes, context.encoding);
    Some(PrepareRenameResult::PrepareRenamePlaceholder(
        PrepareRenamePlaceholder { range, placeholder },
    ))
}

/// Renames the name at a position.
///
/// # Errors
/// Returns an error if the name cannot be renamed or the new name is invalid.
pub(super) fn rename(
    context: &Context<'_>,
    params: &RenameParams,
) -> Result<WorkspaceEdit, Failure> {
    let at = &params.text_document_position_params;
    let (file, symbol, _) = symbol_at(context, at)
        .ok_or_else(|| Failure::new("there is no variable or policy at this position"))?;
    let new = params.new_name.as_str();
    match &symbol {
        Symbol::Variable { .. } if !is_identifier(new) => {
            let message = format!("`{new}` is not an identifier, so it cannot name a variable");
            return Err(Failure::new(&message));
        }
        Symbol::Policy { .. } if new.is_empty() || new.contains(char::is_whitespace) => {
            return Err(Failure::new(&format!(
                "`{new}` is not a valid name for a policy"
            )));
        }
        Symbol::Kind(_) => {
            return Err(Failure::new("the kind of a definition cannot be renamed"));
        }
        Symbol::Variable { .. } | Symbol::Policy { .. } => {}
    }
    let all = all_of(context, &file, &symbol);
    let is_taken = matches!(&symbol, Symbol::Variable { object, name } if name != new && {
        let other = Symbol::Variable { object: *object, name: new.to_owned() };
        all_of(context, &file, &other).iter().any(|(_, it)| it.is_definition)
    });
    if is_taken {
        return Err(Failure::new(&format!(
            "the policy already has a variable `{new}`"
        )));
    }
    let mut changes: HashMap<Uri, Vec<TextEdit>> = HashMap::new();
    for (file, occurrence) in all {
        let edit = match &occurrence.node {
            Some(node) => {
                let items = cursor::items(file.objects());
                let mut items = items.iter();
                let item = items.find(|item| {
                    item.document
                        .bytes(&item.document.node.span)
                        .contains(&occurrence.bytes.start)
                });
                item.and_then(|item| item.document.edit_value(&file.source, node, new))
                    .map(|Edit { bytes, text, .. }| (bytes, text))
            }
            None => Some((occurrence.bytes, new.to_owned())),
        };
        let Some((bytes, new_text)) = edit else {
            return Err(Failure::new(
                "the style of a YAML value does not permit the new name",
            ));
        };
        changes.entry(file.uri.clone()).or_default().push(TextEdit {
            range: positions::range(&file.source, &bytes, context.encoding),
            new_text,
        });
    }
    Ok(WorkspaceEdit {
        changes: Some(changes),
        ..WorkspaceEdit::default()
    })
}

/// Returns true if the name is a CEL identifier.
fn is_identifier(name: &str) -> bool {
    let tokens = lexer::tokens(name);
    let is_name = tokens
        .all
        .first()
        .is_some_and(|first| first.kind == Kind::Ident && first.text(name) == name);
    is_name && tokens.errors.is_empty()
}
