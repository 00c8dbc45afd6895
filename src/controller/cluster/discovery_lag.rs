//! Detects that discovery or the OpenAPI index of the API server does not reflect the current CRDs yet.
//!
//! After a CRD changes, the API server updates discovery and then the OpenAPI document with a delay. A status that is
//! computed during this delay would be replaced a moment later. So a resource or document that contradicts its CRD is
//! pinned: the snapshot contains its previous state. All other changes are used immediately, since an operator may be
//! installing hundreds of CRDs.
//!
//! Pins expire, because an API server may never update its discovery. They do not expire while polls fail, since a
//! failed poll does not show whether discovery was updated.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::crds::{Crd, Crds};
use crate::cluster::openapi::Index;
use crate::controller::cluster::snapshot::ClusterSnapshot;
use crate::schema::rest_mapper::{ApiResource, RestMapper};
use crate::schema::{GroupVersion, Gvr};

/// How long a snapshot may contradict a CRD before the contradiction is accepted.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// How long a CRD is pinned because its document has not changed.
///
/// This limit is shorter than [`LIMIT`], since the document may have changed before the watch reported the CRD. In that
/// case, no further change follows.
const DOCUMENT_LIMIT: Duration = Duration::from_secs(3);

/// How long a CRD is pinned in total, even if the CRD keeps changing.
const TOTAL_LIMIT: Duration = Duration::from_secs(15);

/// How long a document may still change after a change of its CRD that neither adds nor removes resources. The CRD is
/// not pinned during this time.
const MAY_CHANGE: Duration = Duration::from_secs(5);

/// Tracks the changes of discovery and OpenAPI documents that must follow changes of CRDs.
#[derive(Debug, Default)]
pub(crate) struct DiscoveryLag {
    /// Resources and documents that should exist but are missing, with the time since which they are missing.
    missing: BTreeMap<Missing, Instant>,
    /// Resources that must disappear, since their CRD was deleted or changed. The values are the name of the CRD and a
    /// deadline.
    leaving: BTreeMap<Gvr, (String, Instant)>,
    /// Documents that must change because the named CRD changed.
    changing: BTreeMap<(GroupVersion, String), ExpectedChange>,
    /// Documents that may change, with their previous URL and a deadline.
    may_change: BTreeMap<GroupVersion, (Option<String>, Instant)>,
    /// The pinned CRDs, with the time at which each was pinned.
    held: BTreeMap<String, Instant>,
}

#[derive(Debug)]
struct ExpectedChange {
    /// The URL of the document before the change.
    address: Option<String>,
    /// The resources that the change adds or removes.
    resources: BTreeSet<Gvr>,
    until: Instant,
}

/// A resource or document that should exist but is missing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    /// A resource whose CRD is established.
    Resource(Gvr),
    /// The document of a group version that has an established CRD, or that is served and had a document before. The
    /// latter happens when an API server starts, since it publishes its documents one after the other.
    Document(GroupVersion),
}

/// How far discovery and the OpenAPI index reflect the current CRDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The snapshot contradicts the CRDs, so parts of it are pinned.
    Inconsistent,
    /// The snapshot is consistent, and more changes are expected soon.
    Pending,
    /// No further change is expected.
    Converged,
}

/// The parts of a snapshot that keep their previous state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Pinned {
    crds: BTreeSet<String>,
    resources: BTreeSet<Gvr>,
    documents: BTreeSet<GroupVersion>,
}

impl Pinned {
    fn is_empty(&self) -> bool {
        self.crds.is_empty() && self.resources.is_empty() && self.documents.is_empty()
    }

    /// Returns `now`, but with each pinned CRD in its state from `before`.
    pub(crate) fn crds(&self, before: &Crds, now: &Crds) -> Crds {
        let mut crds = now.clone();
        for name in &self.crds {
            match before.get(name) {
                Some(crd) => drop(crds.insert(name.clone(), crd.clone())),
                None => drop(crds.remove(name)),
            }
        }
        crds
    }

    /// Returns `now`, but with each pinned resource in its state from `before`. `None` if no resource is pinned.
    pub(crate) fn mapper(&self, before: &RestMapper, now: &RestMapper) -> Option<RestMapper> {
        if self.resources.is_empty() {
            return None;
        }
        let group_versions: BTreeSet<GroupVersion> =
            self.resources.iter().map(Gvr::group_version).collect();
        let is_held = |served: &&ApiResource| {
            let gvr = &served.gvr;
            let main = gvr.resource.split('/').next().unwrap_or_default();
            group_versions.contains(&gvr.group_version())
                && self
                    .resources
                    .contains(&Gvr::new(&*gvr.group, &*gvr.version, main))
        };
        let new = now.resources.iter().filter(|served| !is_held(served));
        let old = before.resources.iter().filter(is_held);
        let mut mapper = RestMapper::new(new.chain(old).cloned().collect());
        mapper.incomplete.clone_from(&now.incomplete);
        mapper.undiscovered.clone_from(&now.undiscovered);
        Some(mapper)
    }

    /// Returns `now`, but with each pinned document in its state from `before`. `None` if no document is pinned.
    pub(crate) fn index(&self, before: &Index, now: &Index) -> Option<Index> {
        if self.documents.is_empty() {
            return None;
        }
        let mut index = now.clone();
        let old = self.documents.iter();
        let old = old.filter_map(|gv| Some((gv.clone(), before.get(gv)?.clone())));
        index.extend(old);
        Some(index)
    }
}

impl DiscoveryLag {
    /// Records that the CRD `name` changed from `old` to `new`. `index` is the OpenAPI index before the change. With an
    /// empty index, each document counts as changed as soon as it exists.
    pub(crate) fn note(
        &mut self,
        name: &str,
        (old, new): (Option<&Crd>, Option<&Crd>),
        index: &Index,
        now: Instant,
    ) {
        let resources = |crd: Option<&Crd>| -> BTreeSet<Gvr> {
            crd.into_iter().flat_map(Crd::resources).collect()
        };
        let (before, after) = (resources(old), resources(new));
        let mut changing: BTreeMap<GroupVersion, BTreeSet<Gvr>> = BTreeMap::new();
        for gvr in before.difference(&after) {
            self.leaving
                .insert(gvr.clone(), (name.to_owned(), now + LIMIT));
            let of_version = changing.entry(gvr.group_version());
            of_version.or_default().insert(gvr.clone());
        }
        for gvr in after.difference(&before) {
            self.leaving.remove(gvr);
            let of_version = changing.entry(gvr.group_version());
            of_version.or_default().insert(gvr.clone());
        }
        for (gv, resources) in changing {
            let address = index.get(&gv).cloned();
            let changing = ExpectedChange {
                address,
                resources: BTreeSet::new(),
                until: now + DOCUMENT_LIMIT,
            };
            let entry = self.changing.entry((gv, name.to_owned()));
            entry.or_insert(changing).resources.extend(resources);
        }
        let revision = |crd: Option<&Crd>| crd.map(|crd| crd.revision.clone());
        if revision(old) != revision(new) {
            for gv in new.into_iter().flat_map(Crd::group_versions) {
                let address = index.get(&gv).cloned();
                self.may_change.insert(gv, (address, now + MAY_CHANGE));
            }
        }
    }

    pub(crate) fn note_possible(&mut self, gv: GroupVersion, index: &Index, now: Instant) {
        let address = index.get(&gv).cloned();
        self.may_change.insert(gv, (address, now + MAY_CHANGE));
    }

    /// Returns the group versions whose documents may still change.
    pub(crate) fn expected(&self) -> impl Iterator<Item = &GroupVersion> {
        self.may_change.keys()
    }

    /// Compares the polled `mapper` and `index` with the CRDs and with the `published` snapshot. Returns the progress
    /// and the parts to pin.
    ///
    /// Removes expected changes that have appeared or whose deadline has passed.
    pub(crate) fn progress(
        &mut self,
        crds: &Crds,
        mapper: &RestMapper,
        index: &Index,
        published: &ClusterSnapshot,
        now: Instant,
    ) -> (Progress, Pinned) {
        let established: BTreeMap<Gvr, &String> = crds
            .iter()
            .flat_map(|(name, crd)| crd.resources().map(move |gvr| (gvr, name)))
            .collect();
        let is_served = |gv: &&GroupVersion| {
            mapper
                .resources
                .iter()
                .any(|resource| resource.gvr.group_version() == **gv)
        };
        let lost = published
            .index
            .keys()
            .filter(|gv| !index.contains_key(gv))
            .filter(is_served)
            .cloned();
        let described = established.keys().map(Gvr::group_version);
        let undescribed = described.filter(|gv| !index.contains_key(gv));
        let unlisted = established
            .keys()
            .filter(|gvr| mapper.resource(gvr).is_none());
        let missing = unlisted
            .map(|gvr| Missing::Resource(gvr.clone()))
            .chain(lost.chain(undescribed).map(Missing::Document));
        let since = |what: &Missing| self.missing.get(what).copied().unwrap_or(now);
        self.missing = missing.map(|what| (what.clone(), since(&what))).collect();
        self.leaving.retain(|gvr, (_, until)| {
            now < *until && !established.contains_key(gvr) && mapper.resource(gvr).is_some()
        });
        let is_unchanged =
            |gv: &GroupVersion, before: &Option<String>| index.get(gv) == before.as_ref();
        self.changing.retain(|(gv, _), changing| {
            now < changing.until && is_unchanged(gv, &changing.address)
        });
        self.may_change
            .retain(|gv, (before, until)| now < *until && is_unchanged(gv, before));

        let held = self.hold(&established, published, now);
        let progress = if !held.is_empty() {
            Progress::Inconsistent
        } else if self.may_change.is_empty() {
            Progress::Converged
        } else {
            Progress::Pending
        };
        (progress, held)
    }

    /// Returns the parts to pin: those whose expected changes have not appeared yet.
    fn hold(
        &mut self,
        established: &BTreeMap<Gvr, &String>,
        published: &ClusterSnapshot,
        now: Instant,
    ) -> Pinned {
        let mut by_crd: BTreeMap<&String, BTreeSet<&Gvr>> = BTreeMap::new();
        let mut documents = BTreeSet::new();
        let missing = self.missing.iter();
        for (missing, _) in missing.filter(|(_, since)| now < **since + LIMIT) {
            match missing {
                Missing::Resource(gvr) => {
                    if let Some(name) = established.get(gvr) {
                        by_crd.entry(name).or_default().insert(gvr);
                    }
                }
                Missing::Document(gv) if published.index.contains_key(gv) => {
                    documents.insert(gv.clone());
                }
                Missing::Document(gv) => {
                    let described = established.iter();
                    for (gvr, name) in described.filter(|(gvr, _)| gvr.group_version() == *gv) {
                        by_crd.entry(name).or_default().insert(gvr);
                    }
                }
            }
        }
        for (gvr, (name, _)) in &self.leaving {
            by_crd.entry(name).or_default().insert(gvr);
        }
        for ((_, name), changing) in &self.changing {
            by_crd.entry(name).or_default().extend(&changing.resources);
        }
        let since = |name: &String| self.held.get(name).copied().unwrap_or(now);
        let held: BTreeMap<String, Instant> = by_crd
            .keys()
            .map(|name| ((*name).clone(), since(name)))
            .collect();
        let is_held = |name: &String| {
            held.get(name)
                .is_some_and(|since| now < *since + TOTAL_LIMIT)
        };
        by_crd.retain(|name, _| is_held(name));
        let held_now = Pinned {
            crds: by_crd.keys().map(|name| (*name).clone()).collect(),
            resources: by_crd.into_values().flatten().cloned().collect(),
            documents,
        };
        self.held = held;
        held_now
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::cluster::crds::tests::crd;
    use crate::controller::cluster::snapshot::tests::{gv, snapshot};

    const WIDGETS: &str = "widgets.example.com";

    fn crds(crd: &Crd) -> Crds {
        [(WIDGETS.to_owned(), crd.clone())].into()
    }

    /// Returns the progress for a polled state. Discovery lists widgets if `is_listed`. The URL of their document is
    /// `address`, or `None` if the index lists no document.
    fn progress(
        lag: &mut DiscoveryLag,
        crds: &Crds,
        is_listed: bool,
        address: Option<&str>,
        now: Instant,
    ) -> Progress {
        let listed = [("example.com/v1", "widgets", "Widget")];
        let resources = if is_listed { listed.as_slice() } else { &[] };
        let documents: Vec<(&str, &str)> = address
            .iter()
            .map(|address| ("example.com/v1", *address))
            .collect();
        let snapshot = snapshot(resources, &documents);
        let nothing = ClusterSnapshot::default();
        let (progress, _) = lag.progress(crds, &snapshot.mapper, &snapshot.index, &nothing, now);
        progress
    }

    fn index(address: &str) -> Index {
        [(gv("example.com/v1"), address.to_owned())].into()
    }

    #[test]
    fn new_crd_is_pinned_until_it_is_served_with_document() {
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        let widget = crd("example.com", "Widget", &["v1"]);
        lag.note(WIDGETS, (None, Some(&widget)), &Index::new(), now);
        let crds = crds(&widget);
        let mut check = |is_listed, address, expect| {
            assert_eq!(progress(&mut lag, &crds, is_listed, address, now), expect);
        };
        check(false, None, Progress::Inconsistent);
        check(true, None, Progress::Inconsistent);
        check(true, Some("1"), Progress::Converged);
    }

    #[test]
    fn new_crd_is_pinned_until_document_of_group_changes() {
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        let widget = crd("example.com", "Widget", &["v1"]);
        lag.note(WIDGETS, (None, Some(&widget)), &index("1"), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut lag, &crds, true, Some("1"), now),
            Progress::Inconsistent
        );
        assert_eq!(
            progress(&mut lag, &crds, true, Some("2"), now),
            Progress::Converged
        );
    }

    #[test]
    fn unserved_resource_of_new_crd_is_accepted_after_time_limit() {
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        let widget = crd("example.com", "Widget", &["v1"]);
        lag.note(WIDGETS, (None, Some(&widget)), &Index::new(), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut lag, &crds, false, None, now),
            Progress::Inconsistent
        );
        let late = now + LIMIT;
        assert_eq!(
            progress(&mut lag, &crds, false, None, late),
            Progress::Converged
        );
        assert_eq!(
            progress(&mut lag, &crds, false, None, late + LIMIT),
            Progress::Converged
        );
    }

    #[test]
    fn missing_resource_of_lagging_api_server_is_pinned() {
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        let crds = crds(&crd("example.com", "Widget", &["v1"]));
        assert_eq!(
            progress(&mut lag, &crds, true, Some("1"), now),
            Progress::Converged
        );
        assert_eq!(
            progress(&mut lag, &crds, false, Some("1"), now),
            Progress::Inconsistent
        );
        assert_eq!(
            progress(&mut lag, &crds, true, Some("1"), now),
            Progress::Converged
        );
    }

    #[test]
    fn removed_document_of_served_group_is_pinned() {
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        let served = [("apps/v1", "deployments", "Deployment")];
        let before = snapshot(&served, &[("apps/v1", "1"), ("gone/v1", "1")]);
        let starting = snapshot(&served, &[]);
        let mut check = |now, expect| {
            let crds = Crds::new();
            let (mapper, index) = (&starting.mapper, &starting.index);
            let (progress, held) = lag.progress(&crds, mapper, index, &before, now);
            assert_eq!(progress, expect);
            let kept = held.index(&before.index, index);
            assert_eq!(kept.is_some(), expect == Progress::Inconsistent);
            assert!(kept.is_none_or(|kept| kept.keys().eq([&gv("apps/v1")])));
        };
        check(now, Progress::Inconsistent);
        check(now + LIMIT, Progress::Converged);
    }

    #[test]
    fn crd_that_is_not_established_is_not_pinned() {
        let mut widget = crd("example.com", "Widget", &["v1"]);
        widget.is_established = false;
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        lag.note(WIDGETS, (None, Some(&widget)), &Index::new(), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut lag, &crds, false, None, now),
            Progress::Converged
        );
    }

    #[test]
    fn deleted_crd_is_pinned_until_no_longer_served() {
        let now = Instant::now();
        let widget = crd("example.com", "Widget", &["v1"]);
        let mut lag = DiscoveryLag::default();
        lag.note(WIDGETS, (Some(&widget), None), &index("1"), now);
        let none = Crds::new();
        let mut check = |is_listed, address, now, expect| {
            assert_eq!(progress(&mut lag, &none, is_listed, address, now), expect);
        };
        check(true, Some("1"), now, Progress::Inconsistent);
        check(false, Some("1"), now, Progress::Inconsistent);
        check(false, None, now, Progress::Converged);
        lag.note(WIDGETS, (Some(&widget), None), &index("1"), now);
        let late = now + LIMIT;
        assert_eq!(
            progress(&mut lag, &none, true, Some("1"), late),
            Progress::Converged
        );
    }

    #[test]
    fn recreated_crd_is_not_pinned_by_deletion() {
        let now = Instant::now();
        let widget = crd("example.com", "Widget", &["v1"]);
        let mut lag = DiscoveryLag::default();
        lag.note(WIDGETS, (Some(&widget), None), &index("1"), now);
        lag.note(WIDGETS, (None, Some(&widget)), &index("1"), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut lag, &crds, true, Some("2"), now),
            Progress::Converged
        );
    }

    #[test]
    fn changed_schema_is_not_pinned() {
        let now = Instant::now();
        let before = crd("example.com", "Widget", &["v1"]);
        let after = Crd {
            revision: ("uid".into(), 2),
            ..before.clone()
        };
        let mut lag = DiscoveryLag::default();
        lag.note(WIDGETS, (Some(&before), Some(&after)), &index("1"), now);
        let crds = crds(&after);
        assert_eq!(
            progress(&mut lag, &crds, true, Some("1"), now),
            Progress::Pending
        );
        assert_eq!(
            progress(&mut lag, &crds, true, Some("2"), now),
            Progress::Converged
        );
        lag.note(WIDGETS, (Some(&before), Some(&after)), &index("1"), now);
        let late = now + MAY_CHANGE;
        assert_eq!(
            progress(&mut lag, &crds, true, Some("1"), late),
            Progress::Converged
        );
    }

    #[test]
    fn resources_of_pinned_crds_keep_previous_state() {
        let now = Instant::now();
        let mut lag = DiscoveryLag::default();
        let early = crd("example.com", "Early", &["v1"]);
        let late = crd("example.com", "Late", &["v1"]);
        let name = |crd: &Crd| format!("{}.example.com", crd.plural);
        let crds: Crds = [&early, &late].map(|crd| (name(crd), crd.clone())).into();
        for crd in [&early, &late] {
            lag.note(&name(crd), (None, Some(crd)), &Index::new(), now);
        }
        let published = ClusterSnapshot::default();
        // The CRD `early` is served with a document. The CRD `late` is not listed yet.
        let seen = snapshot(
            &[
                ("example.com/v1", "earlys", "Early"),
                ("apps/v1", "deployments", "Deployment"),
            ],
            &[("example.com/v1", "1")],
        );
        let (progress, held) = lag.progress(&crds, &seen.mapper, &seen.index, &published, now);
        assert_eq!(progress, Progress::Inconsistent);
        let crds_now = held.crds(&published.crds, &crds);
        assert_eq!(crds_now.keys().collect::<Vec<_>>(), ["earlys.example.com"]);
        let mapper = held.mapper(&published.mapper, &seen.mapper).unwrap();
        assert_eq!(mapper, *seen.mapper);
        // Both CRDs are listed, but there is no document.
        let mut lag = DiscoveryLag::default();
        let seen = snapshot(
            &[
                ("apps/v1", "deployments", "Deployment"),
                ("example.com/v1", "earlys", "Early"),
                ("example.com/v1", "earlys/status", "Early"),
                ("example.com/v1", "lates", "Late"),
            ],
            &[],
        );
        let (_, held) = lag.progress(&crds, &seen.mapper, &seen.index, &published, now);
        let mapper = held.mapper(&published.mapper, &seen.mapper).unwrap();
        let names: Vec<&str> = mapper
            .resources
            .iter()
            .map(|served| &*served.gvr.resource)
            .collect();
        assert_eq!(names, ["deployments"]);
        assert_eq!(held.crds(&published.crds, &crds), Crds::new());
    }

    #[test]
    fn changing_crd_is_pinned_for_limited_time() {
        let start = Instant::now();
        let widget = crd("example.com", "Widget", &["v1"]);
        let mut lag = DiscoveryLag::default();
        let mut is_held = |n: u32| {
            let now = start + Duration::from_secs(1) * n;
            // The CRD is deleted and recreated. Discovery always lists its resource.
            lag.note(WIDGETS, (Some(&widget), None), &index("1"), now);
            let progress = progress(&mut lag, &Crds::new(), true, Some("1"), now);
            lag.note(WIDGETS, (None, Some(&widget)), &index("1"), now);
            progress == Progress::Inconsistent
        };
        let held: Vec<u32> = (0..30).filter(|n| is_held(*n)).collect();
        assert_eq!(held, (0..15).collect::<Vec<_>>());
    }
}
