//! The state of the cluster: the resources that it serves, CustomResourceDefinitions, and the schemas of kinds.

pub(crate) mod crds;
pub(crate) mod definition;
pub(crate) mod discovery_lag;
pub(crate) mod match_cache;
pub(crate) mod schemas;
pub(crate) mod snapshot;
pub(crate) mod unknown_kinds;
