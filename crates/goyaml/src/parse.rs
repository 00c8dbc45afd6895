//! The YAML parser: builds nodes from tokens and resolves aliases. Scalars keep their source form.
//!
//! As in go-yaml, only the first document of a YAML stream is parsed.
//!
//! Source: `go.yaml.in/yaml/v2` `parserc.go` and `decode.go` (`parser.parse`).

use std::collections::HashMap;
use std::ops::Range;

use super::scan::Scanner;
use super::token::{Spanned, Token};
use super::{MAX_DEPTH, MAX_NODES, ScanError, Style};

/// Index of a node in its document.
pub(super) type NodeId = usize;

/// A node whose scalars are in source form.
#[derive(Debug)]
pub(super) struct RawNode {
    pub(super) span: Range<usize>,
    pub(super) content: Content,
}

/// Content of a [`RawNode`].
#[derive(Debug)]
pub(super) enum Content {
    Scalar {
        text: String,
        style: Style,
        /// The full URI of the tag.
        tag: Option<String>,
        /// True for a plain scalar without a tag, and for a scalar with the tag `!`. The content determines the type of
        /// such a scalar.
        is_implicit: bool,
    },
    List(Vec<NodeId>),
    /// Pairs of keys and values.
    Map(Vec<(NodeId, NodeId)>),
    Alias(NodeId),
}

impl Content {
    /// Returns the number of bytes of a scalar. Returns 0 for other nodes.
    pub(super) fn n_bytes(&self) -> usize {
        match self {
            Self::Scalar { text, .. } => text.len(),
            _ => 0,
        }
    }
}

/// The nodes of a document, by [`NodeId`].
pub(super) type Nodes = Vec<RawNode>;

/// Parses the first document from the byte `start`. Returns the nodes and the root of the document, or `None` if there
/// is no document. Also returns the byte index up to which the source was read.
pub(super) fn document(
    text: &str,
    start: usize,
) -> Result<(Option<(Nodes, NodeId)>, usize), ScanError> {
    let mut parser = Parser::new(text, start);
    let root = parser.document()?;
    let end = parser.scanner.offset();
    Ok((root.map(|root| (parser.nodes, root)), end))
}

/// The nodes and root of a document, and the spans of the comments. The first element is `None` if there is no
/// document.
type WithComments = (Option<(Nodes, NodeId)>, Vec<Range<usize>>);

/// Parses the first document from the byte `start`. Also returns the comments that begin with `mark`, including those
/// before and after the document.
pub(super) fn document_with_comments(
    text: &str,
    start: usize,
    mark: &str,
) -> Result<WithComments, ScanError> {
    let mut parser = Parser::new(text, start);
    parser.scanner.keep_comments(mark);
    let root = parser.document()?;
    let comments = parser.scanner.take_comments();
    Ok((root.map(|root| (parser.nodes, root)), comments))
}

struct Parser<'a> {
    scanner: Scanner<'a>,
    nodes: Nodes,
    anchors: HashMap<&'a str, NodeId>,
    /// Tag handles and their prefixes.
    handles: Vec<(String, String)>,
    /// End of the last token. The end tokens of blocks and of the source are ignored.
    last_end: usize,
}

/// Position of a node. It determines which kinds of nodes are allowed.
#[derive(Clone, Copy, PartialEq)]
enum Position {
    /// In a flow collection.
    Flow,
    /// In a block list, or at the top level.
    Block,
    /// The key or value of a map. A list in this position needs no additional indentation.
    BlockMap,
}

impl<'a> Parser<'a> {
    fn new(text: &'a str, start: usize) -> Self {
        Self {
            scanner: Scanner::new(text, start),
            nodes: Vec::new(),
            anchors: HashMap::new(),
            handles: Vec::new(),
            last_end: start,
        }
    }

    fn next(&mut self) -> Result<&Token<'a>, ScanError> {
        Ok(&self.scanner.peek()?.token)
    }

    fn offset(&mut self) -> Result<usize, ScanError> {
        Ok(self.scanner.peek()?.start)
    }

    fn take(&mut self) -> Result<Spanned<'a>, ScanError> {
        let token = self.scanner.take()?;
        if !matches!(token.token, Token::BlockEnd | Token::End) {
            self.last_end = token.end.max(self.last_end);
        }
        Ok(token)
    }

    fn document(&mut self) -> Result<Option<NodeId>, ScanError> {
        let root = match self.next()? {
            Token::End => return Ok(None),
            Token::Version(..) | Token::TagDirective { .. } | Token::DocumentStart => {
                let offset = self.offset()?;
                self.directives()?;
                if *self.next()? != Token::DocumentStart {
                    return Err(ScanError::new(
                        offset,
                        "kubectl splits a file at `---` and rejects a directive without a `---` after it; remove \
                         the directive",
                    ));
                }
                self.take()?;
                if matches!(
                    self.next()?,
                    Token::Version(..)
                        | Token::TagDirective { .. }
                        | Token::DocumentStart
                        | Token::DocumentEnd
                        | Token::End
                ) {
                    let offset = self.offset()?;
                    self.empty(offset)?
                } else {
                    self.node(Position::Block, 0)?
                }
            }
            _ => {
                self.default_handles();
                self.node(Position::Block, 0)?
            }
        };
        // As in go-yaml, an invalid token after the document is an error.
        self.next()?;
        Ok(Some(root))
    }

    fn directives(&mut self) -> Result<(), ScanError> {
        let mut has_version = false;
        loop {
            let offset = self.offset()?;
            match self.next()?.clone() {
                Token::Version(..) if has_version => {
                    return Err(ScanError::new(offset, "`%YAML` is repeated"));
                }
                Token::Version(1, 1) => has_version = true,
                Token::Version(..) => {
                    return Err(ScanError::new(
                        offset,
                        "kubectl reads YAML 1.1 and rejects any other version",
                    ));
                }
                Token::TagDirective { handle, prefix } => {
                    if self.handles.iter().any(|(known, _)| *known == handle) {
                        return Err(ScanError::new(
                            offset,
                            format!("`%TAG {handle}` is repeated"),
                        ));
                    }
                    self.handles.push((handle, prefix));
                }
                _ => break,
            }
            self.take()?;
        }
        self.default_handles();
        Ok(())
    }

    fn default_handles(&mut self) {
        for (handle, prefix) in [("!", "!"), ("!!", "tag:yaml.org,2002:")] {
            if !self.handles.iter().any(|(known, _)| known == handle) {
                self.handles.push((handle.to_owned(), prefix.to_owned()));
            }
        }
    }

    fn add(&mut self, span: Range<usize>, content: Content) -> Result<NodeId, ScanError> {
        let id = self.nodes.len();
        if id >= MAX_NODES {
            return Err(ScanError::new(
                span.start,
                format!("more than {MAX_NODES} nodes; split the file"),
            ));
        }
        self.nodes.push(RawNode { span, content });
        Ok(id)
    }

    fn add_collection(
        &mut self,
        offset: usize,
        content: Content,
        depth: usize,
    ) -> Result<NodeId, ScanError> {
        if depth >= MAX_DEPTH {
            return Err(ScanError::new(offset, too_deep()));
        }
        self.add(offset..offset, content)
    }

    /// Adds an empty node for omitted content.
    fn empty(&mut self, offset: usize) -> Result<NodeId, ScanError> {
        self.add(
            offset..offset,
            Content::Scalar {
                text: String::new(),
                style: Style::Plain,
                tag: None,
                is_implicit: true,
            },
        )
    }

    fn node(&mut self, position: Position, depth: usize) -> Result<NodeId, ScanError> {
        if let Token::Alias(name) = *self.next()? {
            let token = self.take()?;
            let target = self.anchors.get(name).copied().ok_or_else(|| {
                ScanError::new(
                    token.start,
                    format!("anchor `&{name}` is not defined before this alias"),
                )
            })?;
            return self.add(token.start..token.end, Content::Alias(target));
        }
        let start = self.offset()?;
        let (anchor, tag) = self.properties()?;
        let offset = self.offset()?;
        let is_tagged = tag.is_some();
        let content = match self.next()? {
            Token::BlockEntry if position == Position::BlockMap => Content::List(Vec::new()),
            Token::Scalar(..) => {
                let token = self.take()?;
                let Token::Scalar(text, style) = token.token else {
                    return Err(ScanError::new(offset, "expected a scalar"));
                };
                let is_implicit = match &tag {
                    None => style == Style::Plain,
                    Some(tag) => tag == "!",
                };
                let content = Content::Scalar {
                    text,
                    style,
                    tag,
                    is_implicit,
                };
                let id = self.add(token.start..token.end, content)?;
                self.anchor(anchor, id);
                return Ok(id);
            }
            Token::FlowListStart => Content::List(Vec::new()),
            Token::FlowMapStart => Content::Map(Vec::new()),
            Token::BlockListStart if position != Position::Flow => Content::List(Vec::new()),
            Token::BlockMapStart if position != Position::Flow => Content::Map(Vec::new()),
            _ if anchor.is_some() || is_tagged => {
                let content = Content::Scalar {
                    text: String::new(),
                    style: Style::Plain,
                    is_implicit: !is_tagged,
                    tag,
                };
                let end = self.last_end;
                let id = self.add(start..end, content)?;
                self.anchor(anchor, id);
                return Ok(id);
            }
            _ => {
                let message = self.why_no_node()?;
                return Err(ScanError::new(offset, message));
            }
        };
        // Registers the anchor before the items are parsed: an alias within the collection may refer to the collection.
        let id = self.add_collection(offset, content, depth)?;
        self.anchor(anchor, id);
        let content = self.collection(depth + 1)?;
        let end = self.last_end;
        if let Some(node) = self.nodes.get_mut(id) {
            node.span = offset..end.max(offset);
            node.content = content;
        }
        Ok(id)
    }

    fn anchor(&mut self, anchor: Option<&'a str>, id: NodeId) {
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, id);
        }
    }

    /// Parses an anchor and a tag, in either order. Both are optional.
    fn properties(&mut self) -> Result<(Option<&'a str>, Option<String>), ScanError> {
        let mut anchor = None;
        let mut tag = None;
        for _ in 0..2 {
            let offset = self.offset()?;
            match self.next()?.clone() {
                Token::Anchor(name) if anchor.is_none() => anchor = Some(name),
                Token::Tag { handle, suffix } if tag.is_none() => {
                    let full = self.full_tag(&handle, &suffix);
                    let full = full.ok_or_else(|| {
                        ScanError::new(
                            offset,
                            format!("the handle of this tag has no `%TAG {handle}` directive"),
                        )
                    });
                    tag = Some(full);
                }
                _ => break,
            }
            self.take()?;
        }
        Ok((anchor, tag.transpose()?))
    }

    fn full_tag(&self, handle: &str, suffix: &str) -> Option<String> {
        if handle.is_empty() {
            return Some(suffix.to_owned()).filter(|tag| !tag.is_empty());
        }
        let (_, prefix) = self.handles.iter().find(|(name, _)| name == handle)?;
        Some(format!("{prefix}{suffix}")).filter(|tag| !tag.is_empty())
    }

    /// Returns the error message for a token that cannot start a node.
    fn why_no_node(&mut self) -> Result<&'static str, ScanError> {
        Ok(match self.next()? {
            Token::End => "expected a value, but the document ends here",
            Token::DocumentEnd | Token::DocumentStart => {
                "expected a value, but the document ends here; quote `...` or `---` if it is a string"
            }
            Token::FlowListEnd => "`]` without a `[` before it",
            Token::FlowMapEnd => "`}` without a `{` before it",
            Token::FlowEntry => "expected a value before `,`",
            Token::BlockEntry => {
                "a list with `-` is not allowed within `[]` or `{}`, or on the line of its key"
            }
            Token::Key | Token::Value => "a key is not allowed here",
            _ => "expected a value",
        })
    }

    fn collection(&mut self, depth: usize) -> Result<Content, ScanError> {
        match self.next()? {
            Token::BlockListStart => self.block_list(depth),
            Token::BlockEntry => self.level_list(depth),
            Token::BlockMapStart => self.block_map(depth),
            Token::FlowListStart => self.flow_list(depth),
            _ => self.flow_map(depth),
        }
    }

    fn block_list(&mut self, depth: usize) -> Result<Content, ScanError> {
        self.take()?;
        let mut items = Vec::new();
        loop {
            match self.next()? {
                Token::BlockEntry => {
                    let end = self.take()?.end;
                    items.push(match self.next()? {
                        Token::BlockEntry | Token::BlockEnd => self.empty(end)?,
                        _ => self.node(Position::Block, depth)?,
                    });
                }
                Token::BlockEnd => {
                    self.take()?;
                    return Ok(Content::List(items));
                }
                _ => {
                    let offset = self.offset()?;
                    return Err(ScanError::new(
                        offset,
                        "expected `-`: a line indented like the items of a list must be an item",
                    ));
                }
            }
        }
    }

    /// Parses a list that is indented like the keys of the enclosing map.
    fn level_list(&mut self, depth: usize) -> Result<Content, ScanError> {
        let mut items = Vec::new();
        while *self.next()? == Token::BlockEntry {
            let end = self.take()?.end;
            items.push(match self.next()? {
                Token::BlockEntry | Token::Key | Token::Value | Token::BlockEnd => {
                    self.empty(end)?
                }
                _ => self.node(Position::Block, depth)?,
            });
        }
        Ok(Content::List(items))
    }

    fn block_map(&mut self, depth: usize) -> Result<Content, ScanError> {
        self.take()?;
        let mut entries = Vec::new();
        loop {
            match self.next()? {
                Token::Key => {
                    let end = self.take()?.end;
                    let key = self.block_map_part(end, depth)?;
                    let value = if *self.next()? == Token::Value {
                        let end = self.take()?.end;
                        self.block_map_part(end, depth)?
                    } else {
                        let offset = self.offset()?;
                        self.empty(offset)?
                    };
                    entries.push((key, value));
                }
                Token::BlockEnd => {
                    self.take()?;
                    return Ok(Content::Map(entries));
                }
                _ => {
                    let message = match self.next()? {
                        Token::BlockEntry => {
                            "a `-` among the keys of an object; indent the list, or move it \
                             below its key"
                        }
                        _ => "expected a key at this indentation",
                    };
                    let offset = self.offset()?;
                    return Err(ScanError::new(offset, message));
                }
            }
        }
    }

    fn block_map_part(&mut self, end: usize, depth: usize) -> Result<NodeId, ScanError> {
        match self.next()? {
            Token::Key | Token::Value | Token::BlockEnd => self.empty(end),
            _ => self.node(Position::BlockMap, depth),
        }
    }

    fn flow_list(&mut self, depth: usize) -> Result<Content, ScanError> {
        let opened = self.take()?.start;
        let mut items = Vec::new();
        let mut is_first = true;
        while *self.next()? != Token::FlowListEnd {
            if !is_first {
                self.flow_entry(opened, "`,` or `]`")?;
            }
            is_first = false;
            match self.next()? {
                Token::End => return Err(not_closed(opened, "`]`")),
                Token::FlowListEnd => break,
                Token::Key => {
                    let pair = self.flow_pair(depth)?;
                    items.push(pair);
                }
                _ => items.push(self.node(Position::Flow, depth)?),
            }
        }
        self.take()?;
        Ok(Content::List(items))
    }

    /// Parses the `,` after an item of a flow collection.
    fn flow_entry(&mut self, opened: usize, expected: &str) -> Result<(), ScanError> {
        match self.next()? {
            Token::FlowEntry => {
                self.take()?;
                Ok(())
            }
            Token::End => Err(not_closed(opened, expected)),
            _ => {
                let offset = self.offset()?;
                Err(ScanError::new(offset, format!("expected {expected}")))
            }
        }
    }

    /// Parses a list item that is a map with a single entry, such as `a: 1` in `[a: 1]`.
    fn flow_pair(&mut self, depth: usize) -> Result<NodeId, ScanError> {
        let start = self.take()?.start;
        let id = self.add_collection(start, Content::Map(Vec::new()), depth)?;
        let key = match self.next()? {
            // If the key is omitted, skips one of these tokens, like go-yaml.
            Token::Value | Token::FlowEntry | Token::FlowListEnd => {
                let end = self.take()?.end;
                self.empty(end)?
            }
            _ => self.node(Position::Flow, depth + 1)?,
        };
        let value = self.flow_value(depth + 1)?;
        let end = self.last_end;
        if let Some(node) = self.nodes.get_mut(id) {
            node.span = start..end.max(start);
            node.content = Content::Map(vec![(key, value)]);
        }
        Ok(id)
    }

    fn flow_value(&mut self, depth: usize) -> Result<NodeId, ScanError> {
        if *self.next()? == Token::Value {
            self.take()?;
            if !matches!(
                self.next()?,
                Token::FlowEntry | Token::FlowListEnd | Token::FlowMapEnd
            ) {
                return self.node(Position::Flow, depth);
            }
        }
        let offset = self.offset()?;
        self.empty(offset)
    }

    fn flow_map(&mut self, depth: usize) -> Result<Content, ScanError> {
        let opened = self.take()?.start;
        let mut entries = Vec::new();
        let mut is_first = true;
        while *self.next()? != Token::FlowMapEnd {
            if !is_first {
                self.flow_entry(opened, "`,` or `}`")?;
            }
            is_first = false;
            match self.next()? {
                Token::End => return Err(not_closed(opened, "`}`")),
                Token::FlowMapEnd => break,
                Token::Key => {
                    self.take()?;
                    let key = match self.next()? {
                        Token::Value | Token::FlowEntry | Token::FlowMapEnd => {
                            let offset = self.offset()?;
                            self.empty(offset)?
                        }
                        _ => self.node(Position::Flow, depth)?,
                    };
                    let value = self.flow_value(depth)?;
                    entries.push((key, value));
                }
                _ => {
                    let key = self.node(Position::Flow, depth)?;
                    let offset = self.offset()?;
                    let value = self.empty(offset)?;
                    entries.push((key, value));
                }
            }
        }
        self.take()?;
        Ok(Content::Map(entries))
    }
}

fn not_closed(opened: usize, expected: &str) -> ScanError {
    ScanError::new(
        opened,
        format!("missing {expected} before the end of the document"),
    )
}

pub(super) fn too_deep() -> String {
    format!("lists and objects nest more than {MAX_DEPTH} deep")
}
