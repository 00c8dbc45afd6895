//! Document symbols: the objects of a file with their variables, conditions, validations and cases.

use gen_lsp_types::{DocumentSymbol, DocumentSymbolParams, SymbolKind};
use goyaml::Node;

use super::context::Context;
use super::cursor::{self, Item};
use super::positions;
use super::workspace::File;

/// The lists of an object whose items are symbols: the path of the list, the field that contains the name of an item,
/// and the kind of the symbol.
const LISTS: &[(&[&str], &str, SymbolKind)] = &[
    (&["spec", "matchConditions"], "name", SymbolKind::Boolean),
    (&["spec", "variables"], "name", SymbolKind::Variable),
    (&["spec", "validations"], "expression", SymbolKind::Function),
    (&["spec", "auditAnnotations"], "key", SymbolKind::String),
    (&["spec", "mutations"], "patchType", SymbolKind::Function),
    (&["spec", "cases"], "name", SymbolKind::Method),
    (&["webhooks"], "name", SymbolKind::Interface),
];

/// Maximum length of the name of a symbol, in code points.
const MAX_NAME: usize = 80;

pub(super) fn symbols(
    context: &Context<'_>,
    params: &DocumentSymbolParams,
) -> Option<Vec<DocumentSymbol>> {
    let file = context.file(&params.text_document.uri)?;
    let items = cursor::items(file.objects());
    Some(
        items
            .iter()
            .map(|item| object_symbol(context, file, item))
            .collect(),
    )
}

fn object_symbol(context: &Context<'_>, file: &File, item: &Item<'_>) -> DocumentSymbol {
    let root = &item.document.node;
    let name = root
        .get("metadata")
        .and_then(|metadata| metadata.get("name"));
    let mut children = Vec::new();
    for (path, field, kind) in LISTS {
        let list = path.iter().try_fold(root, |node, name| node.get(name));
        for child in list.map_or(&[][..], Node::items) {
            let named = child.get(field).filter(|node| node.as_str().is_some());
            let text = named.and_then(Node::as_str).unwrap_or("(unnamed)");
            let symbol = symbol(context, file, item, (child, named), (text, *kind));
            children.push(symbol);
        }
    }
    let text = name.and_then(Node::as_str).unwrap_or("(unnamed)");
    let mut symbol = symbol(context, file, item, (root, name), (text, SymbolKind::Class));
    symbol.detail = Some(item.kind_name().to_owned());
    symbol.children = Some(children);
    symbol
}

/// Returns the symbol of a node. Its name is in the node `named`, a part of the node.
fn symbol(
    context: &Context<'_>,
    file: &File,
    item: &Item<'_>,
    (node, named): (&Node, Option<&Node>),
    (name, kind): (&str, SymbolKind),
) -> DocumentSymbol {
    let range = |node: &Node| {
        let bytes = item.document.bytes(&node.span);
        let written = file.source.text().get(bytes.clone()).unwrap_or_default();
        let bytes = bytes.start..bytes.start + written.trim_end().len();
        positions::range(&file.source, &bytes, context.encoding)
    };
    let whole = range(node);
    let selection = named.map_or(whole, range);
    let is_within = whole.start <= selection.start && selection.end <= whole.end;
    let one_line = name.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut shown: String = one_line.chars().take(MAX_NAME).collect();
    if shown.len() < one_line.len() {
        shown.push('…');
    }
    if shown.is_empty() {
        "(empty)".clone_into(&mut shown);
    }
    DocumentSymbol {
        name: shown,
        detail: None,
        kind,
        tags: None,
        #[expect(deprecated, reason = "the field has no default")]
        deprecated: None,
        range: whole,
        selection_range: if is_within { selection } else { whole },
        children: None,
    }
}
