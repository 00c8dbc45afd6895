//! A consistent snapshot of the resources, schemas and CRDs of the cluster, and the changes between two snapshots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::crds::{Crd, Crds};
use crate::cluster::openapi::Index;
use crate::schema::GroupVersion;
use crate::schema::rest_mapper::{ApiResource, RestMapper};
use crate::version::ClusterVersion;

/// The resources, schemas and CRDs of the cluster at one time.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClusterSnapshot {
    pub(crate) mapper: Arc<RestMapper>,
    /// The version that the API servers reported last. Before the first response, the default version.
    pub(crate) server: ClusterVersion,
    /// Incremented when the version or the resources change.
    pub(crate) revision: u64,
    /// The URL of each group version's OpenAPI document.
    pub(crate) index: Arc<Index>,
    pub(crate) crds: Arc<Crds>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Change {
    /// Group versions whose resources or discovery errors changed.
    pub(crate) resources: BTreeSet<GroupVersion>,
    /// Group versions whose schemas changed.
    pub(crate) schemas: BTreeSet<GroupVersion>,
    /// The group and kind of each changed CRD. CRDs of which only the schema changed are omitted.
    pub(crate) crds: BTreeSet<(String, String)>,
}

impl Change {
    pub(crate) fn is_empty(&self) -> bool {
        self.resources.is_empty() && self.schemas.is_empty() && self.crds.is_empty()
    }

    pub(crate) fn between(old: &ClusterSnapshot, new: &ClusterSnapshot) -> Self {
        let mut change = Self::default();
        if old.mapper != new.mapper {
            change.resources = changed_resources(&old.mapper, &new.mapper);
        }
        if old.index != new.index {
            change.schemas = changed_keys(&old.index, &new.index, PartialEq::eq)
                .cloned()
                .collect();
        }
        if old.crds != new.crds {
            change.crds = changed_keys(&old.crds, &new.crds, Crd::is_served_as)
                .flat_map(|name| [old.crds.get(name), new.crds.get(name)])
                .flatten()
                .map(|crd| (crd.group.clone(), crd.kind.clone()))
                .collect();
        }
        change
    }
}

/// Returns the keys whose values differ, and the keys that exist in only one map.
fn changed_keys<'a, K: Ord, V>(
    old: &'a BTreeMap<K, V>,
    new: &'a BTreeMap<K, V>,
    is_same: impl Fn(&V, &V) -> bool + 'a,
) -> impl Iterator<Item = &'a K> {
    let changed = old.iter().filter(move |(key, old)| match new.get(key) {
        Some(new) => !is_same(old, new),
        None => true,
    });
    let added = new.iter().filter(|(key, _)| !old.contains_key(key));
    changed.chain(added).map(|(key, _)| key)
}

fn changed_resources(old: &RestMapper, new: &RestMapper) -> BTreeSet<GroupVersion> {
    let (old_by_version, new_by_version) = (by_version(old), by_version(new));
    let resources = changed_keys(&old_by_version, &new_by_version, PartialEq::eq).cloned();
    let incomplete = |mapper: &RestMapper| -> BTreeMap<String, String> {
        mapper.incomplete.iter().cloned().collect()
    };
    let (old_incomplete, new_incomplete) = (incomplete(old), incomplete(new));
    let incomplete = changed_keys(&old_incomplete, &new_incomplete, PartialEq::eq)
        .filter_map(|gv| GroupVersion::parse(gv));
    let undiscovered =
        |mapper: &RestMapper| -> BTreeSet<String> { mapper.undiscovered.iter().cloned().collect() };
    let (old_undiscovered, new_undiscovered) = (undiscovered(old), undiscovered(new));
    let undiscovered = old_undiscovered.symmetric_difference(&new_undiscovered);
    let undiscovered = undiscovered.filter_map(|gv| GroupVersion::parse(gv));
    resources.chain(incomplete).chain(undiscovered).collect()
}

fn by_version(mapper: &RestMapper) -> BTreeMap<GroupVersion, &[ApiResource]> {
    let is_same = |a: &ApiResource, b: &ApiResource| {
        a.gvr.group == b.gvr.group && a.gvr.version == b.gvr.version
    };
    let chunks = mapper.resources.chunk_by(is_same);
    chunks
        .filter_map(|chunk| Some((chunk.first()?.gvr.group_version(), chunk)))
        .collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::controller::cluster::crds::tests::crd;
    use crate::schema::{Gvk, Gvr};

    pub(crate) fn gv(text: &str) -> GroupVersion {
        GroupVersion::parse(text).unwrap()
    }

    /// Returns a namespaced resource.
    pub(crate) fn resource(api_version: &str, plural: &str, kind: &str) -> ApiResource {
        let GroupVersion { group, version } = gv(api_version);
        ApiResource {
            gvr: Gvr::new(&*group, &*version, plural),
            gvk: Gvk::new(group, version, kind),
            singular: String::new(),
            namespaced: true,
        }
    }

    /// Returns a snapshot with `resources`, and with documents at the URLs of `index`.
    pub(crate) fn snapshot(
        resources: &[(&str, &str, &str)],
        index: &[(&str, &str)],
    ) -> ClusterSnapshot {
        let resources = resources
            .iter()
            .map(|(gv, plural, kind)| resource(gv, plural, kind));
        ClusterSnapshot {
            mapper: Arc::new(RestMapper::new(resources.collect())),
            index: Arc::new(
                index
                    .iter()
                    .map(|(name, at)| (gv(name), (*at).into()))
                    .collect(),
            ),
            ..ClusterSnapshot::default()
        }
    }

    #[test]
    fn change_of_snapshot_lists_resources_schemas_and_crds() {
        let old = snapshot(
            &[
                ("apps/v1", "deployments", "Deployment"),
                ("a/v1", "as", "A"),
                ("v1", "pods", "Pod"),
            ],
            &[("apps/v1", "1"), ("a/v1", "1"), ("v1", "1")],
        );
        assert!(Change::between(&old, &old.clone()).is_empty());
        let mut new = snapshot(
            &[
                ("apps/v1", "deployments", "Deployment"),
                ("apps/v1", "statefulsets", "StatefulSet"),
                ("b/v1", "bs", "B"),
                ("v1", "pods", "Pod"),
            ],
            &[("apps/v1", "1"), ("a/v1", "2"), ("b/v1", "1")],
        );
        Arc::make_mut(&mut new.mapper).incomplete = vec![("c/v1".into(), "503".into())];
        let mut old = old;
        old.crds = Arc::new([("as.a".to_owned(), crd("a", "A", &["v1"]))].into());
        new.crds = Arc::new([("bs.b".to_owned(), crd("b", "B", &["v1"]))].into());
        let expect = Change {
            resources: ["apps/v1", "a/v1", "b/v1", "c/v1"].map(gv).into(),
            schemas: ["a/v1", "b/v1", "v1"].map(gv).into(),
            crds: [("a", "A"), ("b", "B")]
                .map(|(g, k)| (g.to_owned(), k.to_owned()))
                .into(),
        };
        assert_eq!(Change::between(&old, &new), expect);
    }

    #[test]
    fn change_of_crd_schema_alone_is_ignored() {
        let mut old = ClusterSnapshot::default();
        let mut new = ClusterSnapshot::default();
        let before = crd("a", "A", &["v1"]);
        let after = super::super::crds::Crd {
            revision: ("uid".into(), 2),
            ..before.clone()
        };
        old.crds = Arc::new([("as.a".to_owned(), before)].into());
        new.crds = Arc::new([("as.a".to_owned(), after)].into());
        assert!(Change::between(&old, &new).is_empty());
    }
}
