//! Tracks existing objects of a kind that cannot be parsed.
//!
//! An object that cannot be parsed affects only itself: its last parsed state remains, and the watch continues. The
//! number of these objects is a metric.

use std::collections::BTreeSet;

use super::list_watch::Unreadable;
use crate::controller::context::Context;

/// The names of the objects of one kind that cannot be parsed.
#[derive(Debug)]
pub(crate) struct UnreadableObjects {
    /// The resource and its group, such as `policyprobes.vap-status.dev`.
    resource: String,
    names: BTreeSet<String>,
    /// Names of unreadable objects in the list that is being received. `None` if no list is being received.
    listed: Option<BTreeSet<String>>,
}

impl UnreadableObjects {
    pub(crate) fn new(resource: String) -> Self {
        Self {
            resource,
            names: BTreeSet::new(),
            listed: None,
        }
    }

    pub(crate) fn begin_list(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// Records the end of a list. Objects that are not in the list were deleted.
    pub(crate) fn end_list(&mut self) {
        if let Some(listed) = self.listed.take() {
            self.names = listed;
        }
    }

    /// Records and logs an object that cannot be parsed. Logs at most one object of the kind per minute.
    ///
    /// An object without a name is not counted, since its deletion could not be detected.
    pub(crate) fn note(&mut self, context: &Context, object: Unreadable) {
        let Unreadable { name, problem } = object;
        let resource = &self.resource;
        if context
            .log_throttle
            .is_due(&format!("unreadable {resource}"))
        {
            tracing::warn!(
                resource,
                name,
                problem,
                "an object cannot be read, so the statuses that depend on it are out of date; at most one such object \
                 of a kind is logged per minute, and vap_unreadable_objects counts all of them"
            );
        }
        if name.is_empty() {
            return;
        }
        self.names.insert(name.clone());
        if let Some(listed) = &mut self.listed {
            listed.insert(name);
        }
    }

    /// Records that the object `name` was parsed or deleted.
    pub(crate) fn forget(&mut self, name: &str) {
        self.names.remove(name);
    }

    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
