//! The existing policies and other subjects (webhook configurations, CRDs), with all stored data about them.

pub(crate) mod admission_cache;
pub(crate) mod binding_annotations;
pub(crate) mod check_result;
pub(crate) mod dependencies;
pub(crate) mod event_source;
pub(crate) mod exclude;
pub(crate) mod generation;
pub(crate) mod lanes;
pub(crate) mod managed_fields;
pub(crate) mod opt_in;
pub(crate) mod packed;
pub(crate) mod params;
pub(crate) mod pending_events;
pub(crate) mod policy_index;
pub(crate) mod probe;
pub(crate) mod rules;
pub(crate) mod stale_conditions;
pub(crate) mod store;
pub(crate) mod subject;
pub(crate) mod write_limiter;
