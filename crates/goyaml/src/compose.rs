//! Composes nodes into values: resolves scalars, expands aliases, applies merge keys, and converts keys to
//! JSON names.
//!
//! Source: `go.yaml.in/yaml/v2` `decode.go` (`decoder.unmarshal`, `decoder.scalar`, `decoder.mapping`,
//! `decoder.merge`) and `sigs.k8s.io/yaml` `yaml.go` (`convertToJSONableObject`).

use std::collections::{BTreeMap, HashSet};
use std::ops::Range;

use serde_json::Value;

use super::parse::{Content, NodeId, Nodes, too_deep};
use super::scalar::{self, CORE, Scalar};
use super::{Copies, Data, Entry, MAX_DEPTH, MAX_NODES, Node, ScanError, Style};

pub(super) fn compose(nodes: Nodes, root: NodeId, copies: &mut Copies) -> Result<Node, ScanError> {
    let has_aliases = nodes
        .iter()
        .any(|node| matches!(node.content, Content::Alias(_)));
    let mut composer = Composer {
        nodes,
        has_aliases,
        open_aliases: HashSet::new(),
        alias_at: 0,
        n_decoded: 1,
        n_of_aliases: 0,
        copies,
        without_json: Vec::new(),
    };
    let node = composer.node(root, 0)?;
    // A key or value that JSON cannot represent is an error only if it is part of the result. A later entry with the
    // same name may have replaced it.
    let spans: Vec<_> = composer.without_json.iter().map(|(span, _)| span).collect();
    let first = if spans.is_empty() {
        None
    } else {
        first_of(&node, &spans)
    };
    match first.and_then(|idx| composer.without_json.into_iter().nth(idx)) {
        Some((span, message)) => Err(ScanError::new(span.start, message)),
        None => Ok(node),
    }
}

/// Returns the index in `spans` of the key or scalar that comes first in `node`.
fn first_of(node: &Node, spans: &[&Range<usize>]) -> Option<usize> {
    let find = |key: &Range<usize>| spans.iter().position(|span| *span == key);
    match &node.data {
        Data::Scalar(..) => find(&node.span),
        Data::List(items) => items.iter().find_map(|item| first_of(item, spans)),
        Data::Map(entries) => entries
            .iter()
            .find_map(|(_, entry)| find(&entry.key).or_else(|| first_of(&entry.node, spans))),
    }
}

struct Composer<'a> {
    nodes: Nodes,
    has_aliases: bool,
    /// Ids of the aliases that are being expanded.
    open_aliases: HashSet<NodeId>,
    /// Byte index of the outermost alias that is being expanded.
    alias_at: usize,
    /// Number of decoded nodes, including the document.
    n_decoded: usize,
    /// Number of nodes that were decoded through an alias.
    n_of_aliases: usize,
    copies: &'a mut Copies,
    /// Spans of the values and keys that JSON cannot represent, with the reasons. Each of these keys gets a unique
    /// name.
    without_json: Vec<(Range<usize>, String)>,
}

/// Returns the maximum fraction of the decoded nodes that may come from aliases, for a document of `n_decoded` nodes.
///
/// Source: `go.yaml.in/yaml/v2` `decode.go` (`allowedAliasRatio`).
fn allowed_alias_ratio(n_decoded: usize) -> f64 {
    const LOW: f64 = 400_000.0;
    const HIGH: f64 = 4_000_000.0;
    #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
    let n_decoded = n_decoded as f64;
    if n_decoded <= LOW {
        0.99
    } else if n_decoded >= HIGH {
        0.10
    } else {
        0.99 - 0.89 * ((n_decoded - LOW) / (HIGH - LOW))
    }
}

impl Composer<'_> {
    fn node(&mut self, id: NodeId, depth: usize) -> Result<Node, ScanError> {
        let (span, part) = self.open(id, depth)?;
        let data = match part {
            Part::Scalar(value, style) => Data::Scalar(value, style),
            Part::List(items) => {
                let items = items.into_iter().map(|item| self.node(item, depth + 1));
                Data::List(items.collect::<Result<_, _>>()?)
            }
            Part::Map(entries) => {
                let mut into = BTreeMap::new();
                self.entries(&entries, depth, false, &mut into)?;
                Data::Map(into.into())
            }
            Part::Alias(target) => {
                let node = self.node(target, depth)?;
                self.open_aliases.remove(&id);
                return Ok(node);
            }
        };
        Ok(Node { span, data })
    }

    /// Returns the span and content of the node `id`, and counts the node against the limits.
    fn open(&mut self, id: NodeId, depth: usize) -> Result<(Range<usize>, Part), ScanError> {
        let can_take = !self.has_aliases;
        let Some(node) = self.nodes.get(id) else {
            return Err(ScanError::new(0, "a node is missing"));
        };
        let span = node.span.clone();
        let error = |message: String| ScanError::new(span.start, message);
        let n_bytes = node.content.n_bytes();
        let is_scalar = matches!(node.content, Content::Scalar { .. });
        let is_copy = !self.open_aliases.is_empty();
        let offset = if is_copy { self.alias_at } else { span.start };
        self.count(n_bytes, is_copy)
            .map_err(|message| ScanError::new(offset, message))?;
        if depth >= MAX_DEPTH && !is_scalar {
            return Err(error(too_deep()));
        }
        let Some(node) = self.nodes.get_mut(id) else {
            return Err(ScanError::new(0, "a node is missing"));
        };
        let part = match &mut node.content {
            Content::Scalar {
                text,
                style,
                tag,
                is_implicit,
            } => {
                let text = if can_take {
                    std::mem::take(text)
                } else {
                    text.clone()
                };
                let value = if tag.is_none() && !*is_implicit {
                    Value::String(text)
                } else {
                    let scalar = scalar::resolve_tagged(tag.as_deref(), text).map_err(error)?;
                    json(scalar).unwrap_or_else(|message| {
                        self.without_json.push((span.clone(), message));
                        Value::Null
                    })
                };
                Part::Scalar(value, *style)
            }
            Content::List(items) => Part::List(items.clone()),
            Content::Map(entries) => Part::Map(entries.clone()),
            Content::Alias(target) => {
                let target = *target;
                if self.open_aliases.is_empty() {
                    self.alias_at = span.start;
                }
                if !self.open_aliases.insert(id) {
                    return Err(error("an anchor's value contains itself".to_owned()));
                }
                Part::Alias(target)
            }
        };
        Ok((span, part))
    }

    /// Counts a node with `n_bytes` of scalar content against the limits. `is_copy` is true within an alias.
    fn count(&mut self, n_bytes: usize, is_copy: bool) -> Result<(), String> {
        self.n_decoded += 1;
        if is_copy {
            self.n_of_aliases += 1;
            self.copies.count(n_bytes)?;
        }
        #[expect(clippy::cast_precision_loss, reason = "far below 2^52")]
        let share = self.n_of_aliases as f64 / self.n_decoded as f64;
        if self.n_of_aliases > 100
            && self.n_decoded > 1000
            && share > allowed_alias_ratio(self.n_decoded)
        {
            return Err(
                "nearly all of the document consists of copies by aliases; write out their content"
                    .to_owned(),
            );
        }
        if self.n_decoded > MAX_NODES {
            return Err(format!(
                "more than {MAX_NODES} nodes after aliases are resolved; split the file"
            ));
        }
        Ok(())
    }

    /// Adds the entries of a map. `is_merged` is true for a map from a merge key (`<<`).
    fn entries(
        &mut self,
        entries: &[(NodeId, NodeId)],
        depth: usize,
        is_merged: bool,
        into: &mut BTreeMap<String, Entry>,
    ) -> Result<(), ScanError> {
        for (key, value) in entries {
            if self.is_merge(*key) {
                self.merge(*value, depth, into)?;
                continue;
            }
            let (name, bytes) = self.key(*key)?;
            let node = self.node(*value, depth + 1)?;
            insert(into, name, bytes, node, is_merged);
        }
        Ok(())
    }

    /// Returns the JSON name and the span of a key.
    fn key(&mut self, id: NodeId) -> Result<(String, Range<usize>), ScanError> {
        let missing = || ScanError::new(0, "a node is missing");
        let node = self.nodes.get(id).ok_or_else(missing)?;
        let error = |message: String| ScanError::new(node.span.start, message);
        let mut is_copy = !self.open_aliases.is_empty();
        let (node, n_nodes) = match node.content {
            Content::Alias(target) => (self.nodes.get(target).ok_or_else(missing)?, 2),
            _ => (node, 1),
        };
        let span = node.span.clone();
        let Content::Scalar {
            text,
            tag,
            is_implicit,
            ..
        } = &node.content
        else {
            return Err(error("a list or an object cannot be a key".to_owned()));
        };
        let name = if tag.is_some() || *is_implicit {
            let scalar = scalar::resolve_tagged(tag.as_deref(), text.clone()).map_err(error)?;
            key_name(scalar).unwrap_or_else(|message| {
                self.without_json.push((span.clone(), message));
                format!("\0{}", span.start)
            })
        } else {
            text.clone()
        };
        for _ in 0..n_nodes {
            let counted = self.count(name.len(), is_copy);
            counted.map_err(|message| ScanError::new(span.start, message))?;
            is_copy = true;
        }
        Ok((name, span))
    }

    fn is_merge(&self, id: NodeId) -> bool {
        match self.nodes.get(id).map(|node| &node.content) {
            Some(Content::Scalar {
                text,
                tag,
                is_implicit,
                ..
            }) if text == "<<" => {
                let tag = tag.as_deref();
                *is_implicit || tag.and_then(|tag| tag.strip_prefix(CORE)) == Some("merge")
            }
            _ => false,
        }
    }

    fn is_map(&self, id: NodeId) -> bool {
        let content = |id: NodeId| self.nodes.get(id).map(|node| &node.content);
        match content(id) {
            Some(Content::Map(_)) => true,
            Some(Content::Alias(target)) => matches!(content(*target), Some(Content::Map(_))),
            _ => false,
        }
    }

    /// Adds the entries of a merge key's value. They override entries before the merge key. Entries after the merge key
    /// override them.
    fn merge(
        &mut self,
        value: NodeId,
        depth: usize,
        into: &mut BTreeMap<String, Entry>,
    ) -> Result<(), ScanError> {
        let items = match self.nodes.get(value).map(|node| &node.content) {
            Some(Content::List(items)) => items.iter().rev().copied().collect(),
            _ => vec![value],
        };
        for item in items {
            if !self.is_map(item) {
                let offset = self.nodes.get(item).map_or(0, |node| node.span.start);
                return Err(ScanError::new(
                    offset,
                    "`<<` can only merge an object or a list of objects",
                ));
            }
            self.merge_map(item, depth, into)?;
        }
        Ok(())
    }

    fn merge_map(
        &mut self,
        id: NodeId,
        depth: usize,
        into: &mut BTreeMap<String, Entry>,
    ) -> Result<(), ScanError> {
        // An alias does not increase the depth, but the map to which it refers does.
        match self.open(id, depth)? {
            (_, Part::Map(entries)) => self.entries(&entries, depth + 1, true, into),
            (_, Part::Alias(target)) => {
                self.merge_map(target, depth, into)?;
                self.open_aliases.remove(&id);
                Ok(())
            }
            (span, _) => Err(ScanError::new(span.start, "expected an object")),
        }
    }
}

enum Part {
    Scalar(Value, Style),
    List(Vec<NodeId>),
    Map(Vec<(NodeId, NodeId)>),
    Alias(NodeId),
}

/// Sets an entry. If a name occurs several times, its last entry wins. An entry from a merge key does not count as a
/// repeated key.
pub(super) fn insert(
    entries: &mut BTreeMap<String, Entry>,
    name: String,
    key: Range<usize>,
    node: Node,
    is_merged: bool,
) {
    let mut entry = Entry::new(key, node);
    entry.is_merged = is_merged;
    match entries.get_mut(&name) {
        Some(before) => {
            entry.merged = std::mem::take(&mut before.merged);
            if is_merged || before.is_merged {
                entry.merged.push(before.key.clone());
            }
            if !is_merged {
                entry.repeats = std::mem::take(&mut before.repeats);
                if !before.is_merged {
                    entry.repeats.push(before.key.clone());
                }
            }
            *before = entry;
        }
        None => {
            entries.insert(name, entry);
        }
    }
}

/// Converts a scalar to JSON, as kubectl does. An integer above `i64::MAX` becomes a float.
fn json(scalar: Scalar) -> Result<Value, String> {
    Ok(match scalar {
        Scalar::Null => Value::Null,
        Scalar::Bool(flag) => Value::Bool(flag),
        Scalar::Int(number) => Value::from(number),
        #[expect(clippy::cast_precision_loss, reason = "as the API server reads it")]
        Scalar::Uint(number) => Value::from(number as f64),
        Scalar::Float(number) => scalar::json_float(number).ok_or_else(|| {
            "JSON has no infinite numbers; quote the value if it is a string".to_owned()
        })?,
        Scalar::Text(text) => Value::String(text),
    })
}

fn key_name(key: Scalar) -> Result<String, String> {
    match key {
        Scalar::Text(name) => Ok(name),
        Scalar::Bool(flag) => Ok(flag.to_string()),
        Scalar::Int(number) => Ok(number.to_string()),
        Scalar::Float(number) => Ok(scalar::go_float_key(number)),
        Scalar::Null => Err("null cannot be a key; quote it if it is a string".to_owned()),
        Scalar::Uint(number) => Err(format!("{number} is too large for a key; quote the key")),
    }
}
