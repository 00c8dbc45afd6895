//! References between the schemas of a document, and their cycles.
//!
//! Upstream replaces each reference with its target schema. Inside its own target, a reference is replaced by an object
//! without fields. The type of a schema in a cycle therefore depends on the references on the path. The types of other
//! schemas do not depend on the path, so these schemas are converted only once.
//!
//! Source: apiserver `pkg/cel/openapi/resolver/refs.go` (`PopulateRefs`).

use std::collections::HashMap;

use super::error::SchemaError;
use super::raw::Schema;

/// The name of a schema, and the parsed schema or the parse error.
pub(super) type Entry<'a> = (&'a str, Result<&'a Schema, &'a SchemaError>);

/// The prefix of references within a document. If a reference does not have this prefix, the whole reference is the
/// schema's name.
///
/// Source: apiserver `pkg/cel/openapi/resolver/discovery.go`, `refPrefix`.
pub(crate) const PREFIX: &str = "#/components/schemas/";

/// Identifies a `$ref` value. Different `$ref` values may point to the same schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RefId(u32);

impl RefId {
    fn idx(self) -> usize {
        self.0 as usize
    }
}

#[derive(Debug, Default)]
pub(super) struct References<'a> {
    ids: HashMap<&'a str, RefId>,
    /// The `$ref` value of each reference, by id.
    texts: Vec<&'a str>,
    /// The index of each reference's target schema. `None` if the document lacks this schema.
    targets: Vec<Option<usize>>,
    /// The cycle number of each reference. Two references have the same number if each can be reached from the other.
    cycles: Vec<u32>,
    /// The references in topological order: except in cycles, a reference comes after all references in its target
    /// schema.
    order: Vec<RefId>,
}

impl<'a> References<'a> {
    pub(super) fn new(schemas: &'a [Entry<'a>]) -> Self {
        let mut references = Self::default();
        let mut edges_of_schema = Vec::with_capacity(schemas.len());
        for (_, schema) in schemas {
            let mut edges = Vec::new();
            for part in schema.iter().copied().flat_map(Schema::parts) {
                references.collect(schemas, part, &mut edges);
            }
            // A schema may itself be a reference. Only the reference of a root is resolved. It can be part of a cycle,
            // because nested schemas may refer to the root.
            if let Some(name) = schema.ok().and_then(Schema::reference) {
                edges.push(references.id_or_insert(schemas, name));
            }
            edges.sort_unstable();
            edges.dedup();
            edges_of_schema.push(edges);
        }
        let edges = |id: RefId| -> &[RefId] {
            let target = references.targets.get(id.idx()).copied().flatten();
            target
                .and_then(|idx| edges_of_schema.get(idx))
                .map_or(&[], Vec::as_slice)
        };
        let (order, cycles) = cycles(references.targets.len(), edges);
        references.order = order;
        references.cycles = cycles;
        references
    }

    /// Adds the references in `schema` to `edges`. Does not visit the target schemas of these references.
    fn collect(&mut self, schemas: &'a [Entry<'a>], schema: &'a Schema, edges: &mut Vec<RefId>) {
        if let Some(name) = schema.reference() {
            edges.push(self.id_or_insert(schemas, name));
            return;
        }
        for part in schema.parts() {
            self.collect(schemas, part, edges);
        }
    }

    fn id_or_insert(&mut self, schemas: &[Entry<'_>], text: &'a str) -> RefId {
        if let Some(id) = self.ids.get(text) {
            return *id;
        }
        let id = RefId(u32::try_from(self.targets.len()).unwrap_or(u32::MAX));
        let name = text.strip_prefix(PREFIX).unwrap_or(text);
        self.targets.push(
            schemas
                .binary_search_by(|(known, _)| (*known).cmp(name))
                .ok(),
        );
        self.texts.push(text);
        self.ids.insert(text, id);
        id
    }

    pub(super) fn text(&self, id: RefId) -> &'a str {
        self.texts.get(id.idx()).copied().unwrap_or_default()
    }

    /// Returns the id of the `$ref` value `text`. Returns `None` if the document does not contain this reference.
    pub(super) fn id(&self, text: &str) -> Option<RefId> {
        self.ids.get(text).copied()
    }

    /// Returns the index of the target schema. Returns `None` if the document lacks this schema.
    pub(super) fn target(&self, id: RefId) -> Option<usize> {
        self.targets.get(id.idx()).copied().flatten()
    }

    /// Returns the cycle number of the reference. Outside of cycles, every reference has its own number.
    pub(super) fn cycle(&self, id: RefId) -> Option<u32> {
        self.cycles.get(id.idx()).copied()
    }

    pub(super) fn in_one_cycle(&self, a: RefId, b: RefId) -> bool {
        self.cycle(a) == self.cycle(b)
    }

    /// Returns all references in topological order. Except in cycles, a reference comes after all references in its
    /// target schema.
    pub(super) fn in_order(&self) -> impl Iterator<Item = RefId> + use<> {
        self.order.clone().into_iter()
    }
}

/// Sorts the nodes `0..n` topologically: a node comes after the targets of its edges, except within a cycle. Returns
/// the order and the cycle number of each node.
///
/// This is Tarjan's algorithm for strongly connected components. The stack is explicit because reference chains may be
/// too long for recursion.
fn cycles<'e>(n: usize, edges: impl Fn(RefId) -> &'e [RefId]) -> (Vec<RefId>, Vec<u32>) {
    const UNSEEN: u32 = u32::MAX;
    let mut state = Tarjan {
        index: vec![UNSEEN; n],
        low: vec![0; n],
        cycle: vec![UNSEEN; n],
        next_index: 0,
        next_circle: 0,
        open: Vec::new(),
        order: Vec::with_capacity(n),
    };
    for start in (0..u32::try_from(n).unwrap_or(u32::MAX)).map(RefId) {
        if state.index.get(start.idx()) != Some(&UNSEEN) {
            continue;
        }
        state.enter(start);
        let mut path = vec![(start, 0)];
        while let Some((node, next)) = path.last_mut() {
            let node = *node;
            if let Some(&to) = edges(node).get(*next) {
                *next += 1;
                if state.index.get(to.idx()) == Some(&UNSEEN) {
                    state.enter(to);
                    path.push((to, 0));
                } else if state.cycle.get(to.idx()) == Some(&UNSEEN) {
                    let index = state.index.get(to.idx()).copied().unwrap_or_default();
                    state.lower(node, index);
                }
                continue;
            }
            path.pop();
            let low = state.low.get(node.idx()).copied().unwrap_or_default();
            if let Some((parent, _)) = path.last() {
                state.lower(*parent, low);
            }
            if state.index.get(node.idx()) == Some(&low) {
                state.close(node);
            }
        }
    }
    (state.order, state.cycle)
}

struct Tarjan {
    index: Vec<u32>,
    low: Vec<u32>,
    cycle: Vec<u32>,
    next_index: u32,
    next_circle: u32,
    open: Vec<RefId>,
    order: Vec<RefId>,
}

impl Tarjan {
    fn enter(&mut self, node: RefId) {
        for of_nodes in [&mut self.index, &mut self.low] {
            if let Some(value) = of_nodes.get_mut(node.idx()) {
                *value = self.next_index;
            }
        }
        self.next_index += 1;
        self.open.push(node);
    }

    fn lower(&mut self, node: RefId, to: u32) {
        if let Some(low) = self.low.get_mut(node.idx()) {
            *low = (*low).min(to);
        }
    }

    /// Assigns the next cycle number to `first` and to all nodes after `first` on the stack `open`.
    fn close(&mut self, first: RefId) {
        while let Some(node) = self.open.pop() {
            if let Some(cycle) = self.cycle.get_mut(node.idx()) {
                *cycle = self.next_circle;
            }
            self.order.push(node);
            if node == first {
                break;
            }
        }
        self.next_circle += 1;
    }
}
