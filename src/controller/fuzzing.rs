//! Entry points of the fuzz targets. Not part of the API.

use crate::controller::subjects::event_source::EventSource;
use crate::controller::subjects::policy_index::Bindings;
use crate::controller::subjects::probe::Probe;
use crate::controller::watch::definitions::{ReadDefinition, WithRules};
use crate::controller::watch::list_watch::fuzzing as wire;
use crate::controller::watch::opt_in_wire::{
    WireBinding, WireMutatingPolicy, WireSubject, WireWebhooks,
};
use crate::controller::watch::wire::{WirePolicy, WireValidatingBinding};

pub use crate::controller::watch::list_watch::fuzzing::Counts;

/// Decodes a watch response of policies that arrives in chunks of `chunk` bytes.
#[must_use]
pub fn watch_policies(bytes: &[u8], chunk: usize) -> Counts {
    wire::read_watch::<WirePolicy>(bytes, chunk)
}

/// Decodes a watch response of probes that arrives in chunks of `chunk` bytes.
#[must_use]
pub fn watch_probes(bytes: &[u8], chunk: usize) -> Counts {
    wire::read_watch::<Probe>(bytes, chunk)
}

/// Decodes one page of a list of policies that arrives in chunks of `chunk` bytes.
#[must_use]
pub fn list_policies(bytes: &[u8], chunk: usize) -> Counts {
    wire::read_page::<WirePolicy>(bytes, chunk)
}

/// Decodes one page of a list of probes that arrives in chunks of `chunk` bytes.
#[must_use]
pub fn list_probes(bytes: &[u8], chunk: usize) -> Counts {
    wire::read_page::<Probe>(bytes, chunk)
}

/// Parses a probe. Returns true if its spec is valid. `None` if `text` is not the JSON of a probe.
#[must_use]
pub fn probe(text: &str) -> Option<bool> {
    let probe: Probe = serde_json::from_str(text).ok()?;
    Some(probe.problem.is_none())
}

/// Parses a policy. Returns true if it has a spec. `None` if `text` is not the JSON of a policy.
#[must_use]
pub fn policy(text: &str) -> Option<bool> {
    let WirePolicy { policy, .. } = serde_json::from_str(text).ok()?;
    Some(policy.spec.is_some())
}

/// Parses `text` as a binding, and stores the binding. Also parses `text` as an object of each kind that
/// `--follow` accepts.
pub fn other_kinds(text: &str) {
    if let Ok(WireValidatingBinding(binding)) = serde_json::from_str(text) {
        Bindings::default().put(binding, EventSource::Watched);
    }
    if let Ok(policy) = serde_json::from_str::<WireMutatingPolicy>(text) {
        drop(policy.parts());
    }
    if let Ok(webhooks) = serde_json::from_str::<WireWebhooks>(text) {
        drop(webhooks.parts());
    }
    if let Ok(definition) = serde_json::from_str::<WithRules>(text) {
        drop(definition.parts());
    }
    drop(serde_json::from_str::<WireBinding>(text));
}
