//! References between the schemas of a document.
//!
//! Upstream replaces each reference by its target, and truncates a reference nested within itself to an object without
//! fields. The conversion of a schema therefore depends on the path to it, but only on the part of the path within the
//! same cycle. [`References`] finds the cycles, so that everything else is converted once.
//!
//! Source: apiserver `pkg/cel/openapi/resolver/refs.go` (`PopulateRefs`).

use std::collections::HashMap;

use super::error::SchemaError;
use super::raw::Schema;

/// A schema by its name, or its parse error.
pub(super) type Entry<'a> = (&'a str, Result<&'a Schema, &'a SchemaError>);

/// The prefix of names in references. Names without it are looked up unchanged.
///
/// Source: apiserver `pkg/cel/openapi/resolver/discovery.go`, `refPrefix`.
pub(crate) const PREFIX: &str = "#/components/schemas/";

/// A reference by its text. Several texts may refer to one schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct RefId(u32);

impl RefId {
    fn idx(self) -> usize {
        self.0 as usize
    }
}

/// The references of a document.
#[derive(Debug, Default)]
pub(super) struct References<'a> {
    ids: HashMap<&'a str, RefId>,
    /// The text of each reference.
    texts: Vec<&'a str>,
    /// The index of the schema of each reference, or `None` if there is no such schema.
    targets: Vec<Option<usize>>,
    /// The cycle of each reference. References are in the same cycle if they reach each other.
    cycles: Vec<u32>,
    /// The references in topological order: targets come first, except within a cycle.
    order: Vec<RefId>,
}

impl<'a> References<'a> {
    /// Collects the references of `schemas`, which must be sorted by name.
    pub(super) fn new(schemas: &'a [Entry<'a>]) -> Self {
        let mut references = Self::default();
        let mut edges_of_schema = Vec::with_capacity(schemas.len());
        for (_, schema) in schemas {
            let mut edges = Vec::new();
            for part in schema.iter().copied().flat_map(Schema::parts) {
                references.collect(schemas, part, &mut edges);
            }
            // The reference of a schema as a whole is resolved if the schema is a root, which nested schemas may refer
            // to by its bare name.
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

    /// Collects the references in `schema`, without following them.
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

    /// Returns the text of the reference.
    pub(super) fn text(&self, id: RefId) -> &'a str {
        self.texts.get(id.idx()).copied().unwrap_or_default()
    }

    /// Returns the id of the reference `text`.
    pub(super) fn id(&self, text: &str) -> Option<RefId> {
        self.ids.get(text).copied()
    }

    /// Returns the index of the referenced schema.
    pub(super) fn target(&self, id: RefId) -> Option<usize> {
        self.targets.get(id.idx()).copied().flatten()
    }

    /// Returns the cycle of the reference, which may be its only member.
    pub(super) fn cycle(&self, id: RefId) -> Option<u32> {
        self.cycles.get(id.idx()).copied()
    }

    /// Returns true if the two references are in the same cycle.
    pub(super) fn in_one_cycle(&self, a: RefId, b: RefId) -> bool {
        self.cycle(a) == self.cycle(b)
    }

    /// Returns all references, targets first, except within a cycle.
    pub(super) fn in_order(&self) -> impl Iterator<Item = RefId> + use<> {
        self.order.clone().into_iter()
    }
}

/// Sorts the nodes `0..n` topologically, targets first except within a cycle, and numbers the cycles.
///
/// This is Tarjan's algorithm for strongly connected components. It has an explicit stack, because chains of references
/// may be as long as the document.
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

    /// Closes a cycle of the open nodes from `first` on.
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
