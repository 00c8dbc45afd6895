//! What the cluster serves: discovery, CustomResourceDefinitions and the schemas of kinds.

pub(crate) mod crds;
pub(crate) mod definition;
pub(crate) mod discovery_lag;
pub(crate) mod match_cache;
pub(crate) mod schemas;
pub(crate) mod snapshot;
