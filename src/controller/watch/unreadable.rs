//! The objects of a kind that exist and cannot be parsed.
//!
//! Each affects only itself: its last parsed state remains, the watch continues, and their number is a metric.

use std::collections::BTreeSet;

use super::list_watch::Unreadable;
use crate::controller::context::Context;

/// The objects of one kind that cannot be read, by name.
#[derive(Debug)]
pub(crate) struct UnreadableObjects {
    /// The resource, as in `policyprobes.vap-status.dev`.
    resource: String,
    names: BTreeSet<String>,
    /// Unreadable objects of a list that is not complete yet.
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

    /// Notes that a list begins.
    pub(crate) fn begin_list(&mut self) {
        self.listed = Some(BTreeSet::new());
    }

    /// Records that a list is complete: objects that it does not have are deleted.
    pub(crate) fn end_list(&mut self) {
        if let Some(listed) = self.listed.take() {
            self.names = listed;
        }
    }

    /// Records an object that cannot be parsed, and logs it, once a minute for all of the kind. An object without a
    /// name is not counted, as its deletion would not be noticed.
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
                "an object cannot be read, so the statuses that depend on it are out of date; further \
                 unreadable objects are only counted, in vap_unreadable_objects"
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

    /// Notes that the object `name` was read, or is gone.
    pub(crate) fn forget(&mut self, name: &str) {
        self.names.remove(name);
    }

    /// Returns the number of unreadable objects.
    pub(crate) fn len(&self) -> usize {
        self.names.len()
    }
}
