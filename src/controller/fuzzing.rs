//! Parsers of the controller for fuzz targets. They must neither panic nor need memory beyond the limits of `memory`.

use kube::Resource;

use super::by_policy::Bindings;
use super::event_source::EventSource;
use super::followed::fuzzing as followed;
use super::list_watch::fuzzing as wire;
use super::memory;
use super::probe::Probe;
use super::received::ReceivedPolicy;
use super::store::Store;

/// Reads a line of a watch of each kind of object.
pub fn watch_line(line: &[u8]) {
    wire::line::<Probe>(line, usize::MAX);
    wire::line::<ReceivedPolicy>(line, memory::MAX_TYPED_OBJECT);
    wire::skim(line);
}

/// Reads a page of a list that arrives in pieces of `piece` bytes, with items of at most `max_item` bytes. Returns the
/// number of items.
#[must_use]
pub fn list_page(page: &[u8], piece: usize, max_item: usize) -> usize {
    wire::page::<Probe>(page, piece.max(1), max_item)
}

/// Reads a probe, and unpacks and stores it.
pub fn probe(text: &[u8]) {
    let Ok(probe) = serde_json::from_slice::<Probe>(text) else {
        return;
    };
    let spec = probe.spec.unpack();
    assert_eq!(spec.cases.len(), probe.spec.n_cases);
    assert_eq!(spec.cases.len(), probe.spec.case_names().len());
    let probes = super::by_policy::Probes::default();
    probes.put(probe, EventSource::Watched);
}

/// Reads a policy, a mutating policy, a configuration of webhooks, a CustomResourceDefinition and a binding, and stores the
/// policy and the binding.
pub fn received(text: &[u8]) {
    if let Ok(ReceivedPolicy(policy)) = serde_json::from_slice(text) {
        let store = Store::default();
        let name = policy.meta().name.clone().unwrap_or_default();
        store.put(policy, EventSource::Watched);
        store.get(&name);
    }
    if let Ok(binding) = serde_json::from_slice(text) {
        Bindings::default().put(binding, EventSource::Watched);
    }
    followed::received(text);
}

/// Returns the estimate of the memory that a text needs when it is parsed, in bytes.
#[must_use]
pub fn unpacked_bytes(text: &str) -> usize {
    memory::unpacked_bytes(text)
}
