//! Whether the API server's discovery and OpenAPI index have caught up with its CRDs.
//!
//! A CRD is a change at once; what the API server serves on account of it follows some time later, in
//! several steps (discovery, then the OpenAPI document). A verdict from the middle of it would be
//! overthrown a moment later. So a picture is held back while it contradicts the CRDs, for a limited
//! time: an API server that does not catch up is a fact as well.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::time::Instant;

use super::crds::{Crd, Crds};
use super::openapi::Index;
use crate::schema::rest_mapper::RestMapper;
use crate::schema::{GroupVersion, Gvr};

/// How long a picture may contradict the CRDs before it is taken for the truth.
pub(crate) const LIMIT: Duration = Duration::from_secs(10);

/// How long a document that must change holds a picture back. It is shorter, as the change may have
/// been seen before the CRD that caused it.
const DOCUMENT_LIMIT: Duration = Duration::from_secs(3);

/// How long a document is expected to change after the CRD did, without holding anything up.
const MAY_CHANGE: Duration = Duration::from_secs(5);

/// What must, and what may, still show.
#[derive(Debug, Default)]
pub(crate) struct Settling {
    /// What is not there although it should be, and since when.
    missing: BTreeMap<Missing, Instant>,
    /// Resources that were of a CRD and must not be listed any more, and until when.
    leaving: BTreeMap<Gvr, Instant>,
    /// Documents that must change, with their address before and until when.
    changing: BTreeMap<GroupVersion, (Option<String>, Instant)>,
    /// Documents that may change, with their address before and until when.
    may_change: BTreeMap<GroupVersion, (Option<String>, Instant)>,
}

/// What should be there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Missing {
    /// A resource whose CRD is established.
    Resource(Gvr),
    /// The document of a group version of an established CRD, or of one that had a document before and
    /// is served still: an API server that starts publishes its documents one after the other.
    Document(GroupVersion),
}

/// How far the API server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// The picture contradicts the CRDs: hold it back.
    Contradiction,
    /// The picture is consistent, and more is expected to show soon.
    Expecting,
    /// Nothing more is expected.
    Settled,
}

impl Settling {
    /// Notes that a CRD changed from `old` to `new`, at a time when the index was `index`; an empty one
    /// where that is not known, so that a document need only exist.
    pub(crate) fn note(
        &mut self,
        old: Option<&Crd>,
        new: Option<&Crd>,
        index: &Index,
        now: Instant,
    ) {
        let resources = |crd: Option<&Crd>| -> BTreeSet<Gvr> {
            crd.into_iter().flat_map(Crd::resources).collect()
        };
        let (before, after) = (resources(old), resources(new));
        let mut changing: BTreeSet<GroupVersion> = BTreeSet::new();
        for gvr in before.difference(&after) {
            self.leaving.insert(gvr.clone(), now + LIMIT);
            changing.insert(gvr.group_version());
        }
        for gvr in after.difference(&before) {
            self.leaving.remove(gvr);
            changing.insert(gvr.group_version());
        }
        for gv in changing {
            let address = index.get(&gv).cloned();
            self.changing
                .entry(gv)
                .or_insert((address, now + DOCUMENT_LIMIT));
        }
        let revision = |crd: Option<&Crd>| crd.map(|crd| crd.revision.clone());
        if revision(old) != revision(new) {
            for gv in new.into_iter().flat_map(Crd::group_versions) {
                let address = index.get(&gv).cloned();
                self.may_change.insert(gv, (address, now + MAY_CHANGE));
            }
        }
    }

    /// Notes that something changed that may show in the documents of `gv`.
    pub(crate) fn note_possible(&mut self, gv: GroupVersion, index: &Index, now: Instant) {
        let address = index.get(&gv).cloned();
        self.may_change.insert(gv, (address, now + MAY_CHANGE));
    }

    /// Compares a picture with the CRDs and with the documents that were published before, and forgets
    /// what has shown or is waited for no longer.
    pub(crate) fn progress(
        &mut self,
        crds: &Crds,
        mapper: &RestMapper,
        index: &Index,
        published: &Index,
        now: Instant,
    ) -> Progress {
        let established: BTreeSet<Gvr> = crds.values().flat_map(Crd::resources).collect();
        let is_served = |gv: &&GroupVersion| {
            mapper
                .resources
                .iter()
                .any(|resource| resource.gvr.group_version() == **gv)
        };
        let lost = published
            .keys()
            .filter(|gv| !index.contains_key(gv))
            .filter(is_served)
            .cloned();
        let described = established.iter().map(Gvr::group_version);
        let undescribed = described.filter(|gv| !index.contains_key(gv));
        let unlisted = established
            .iter()
            .filter(|gvr| mapper.resource(gvr).is_none());
        let missing = unlisted
            .map(|gvr| Missing::Resource(gvr.clone()))
            .chain(lost.chain(undescribed).map(Missing::Document));
        let since = |what: &Missing| self.missing.get(what).copied().unwrap_or(now);
        self.missing = missing.map(|what| (what.clone(), since(&what))).collect();
        self.leaving.retain(|gvr, until| {
            now < *until && !established.contains(gvr) && mapper.resource(gvr).is_some()
        });
        let is_unchanged =
            |gv: &GroupVersion, before: &Option<String>| index.get(gv) == before.as_ref();
        self.changing
            .retain(|gv, (before, until)| now < *until && is_unchanged(gv, before));
        self.may_change
            .retain(|gv, (before, until)| now < *until && is_unchanged(gv, before));

        let is_missing = self.missing.values().any(|since| now < *since + LIMIT);
        if is_missing || !self.leaving.is_empty() || !self.changing.is_empty() {
            Progress::Contradiction
        } else if self.may_change.is_empty() {
            Progress::Settled
        } else {
            Progress::Expecting
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::crds::tests::crd;
    use crate::controller::world::tests::{gv, world};

    const WIDGETS: &str = "widgets.example.com";

    fn crds(crd: &Crd) -> Crds {
        [(WIDGETS.to_owned(), crd.clone())].into()
    }

    /// The picture with or without the resource, and with this address of the document.
    fn progress(
        settling: &mut Settling,
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
        let world = world(resources, &documents);
        settling.progress(crds, &world.mapper, &world.index, &Index::new(), now)
    }

    fn index(address: &str) -> Index {
        [(gv("example.com/v1"), address.to_owned())].into()
    }

    #[test]
    fn a_new_crd_must_be_listed_and_described() {
        let now = Instant::now();
        let mut settling = Settling::default();
        let widget = crd("example.com", "Widget", &["v1"]);
        settling.note(None, Some(&widget), &Index::new(), now);
        let crds = crds(&widget);
        let mut check = |is_listed, address, expect| {
            assert_eq!(
                progress(&mut settling, &crds, is_listed, address, now),
                expect
            );
        };
        check(false, None, Progress::Contradiction);
        check(true, None, Progress::Contradiction);
        check(true, Some("1"), Progress::Settled);
    }

    #[test]
    fn a_crd_beside_others_changes_the_document() {
        let now = Instant::now();
        let mut settling = Settling::default();
        let widget = crd("example.com", "Widget", &["v1"]);
        settling.note(None, Some(&widget), &index("1"), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut settling, &crds, true, Some("1"), now),
            Progress::Contradiction
        );
        assert_eq!(
            progress(&mut settling, &crds, true, Some("2"), now),
            Progress::Settled
        );
    }

    #[test]
    fn what_does_not_show_in_time_is_a_fact() {
        let now = Instant::now();
        let mut settling = Settling::default();
        let widget = crd("example.com", "Widget", &["v1"]);
        settling.note(None, Some(&widget), &Index::new(), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut settling, &crds, false, None, now),
            Progress::Contradiction
        );
        let late = now + LIMIT;
        assert_eq!(
            progress(&mut settling, &crds, false, None, late),
            Progress::Settled
        );
        assert_eq!(
            progress(&mut settling, &crds, false, None, late + LIMIT),
            Progress::Settled
        );
    }

    #[test]
    fn a_lagging_answer_of_another_api_server_is_held_back() {
        let now = Instant::now();
        let mut settling = Settling::default();
        let crds = crds(&crd("example.com", "Widget", &["v1"]));
        assert_eq!(
            progress(&mut settling, &crds, true, Some("1"), now),
            Progress::Settled
        );
        assert_eq!(
            progress(&mut settling, &crds, false, Some("1"), now),
            Progress::Contradiction
        );
        assert_eq!(
            progress(&mut settling, &crds, true, Some("1"), now),
            Progress::Settled
        );
    }

    #[test]
    fn a_document_that_gets_lost_is_waited_for() {
        let now = Instant::now();
        let mut settling = Settling::default();
        let served = [("apps/v1", "deployments", "Deployment")];
        let before = world(&served, &[("apps/v1", "1"), ("gone/v1", "1")]);
        let starting = world(&served, &[]);
        let mut check = |now, expect| {
            let crds = Crds::new();
            let (mapper, index) = (&starting.mapper, &starting.index);
            let progress = settling.progress(&crds, mapper, index, &before.index, now);
            assert_eq!(progress, expect);
        };
        check(now, Progress::Contradiction);
        check(now + LIMIT, Progress::Settled);
    }

    #[test]
    fn a_crd_that_is_not_established_is_not_waited_for() {
        let mut widget = crd("example.com", "Widget", &["v1"]);
        widget.is_established = false;
        let now = Instant::now();
        let mut settling = Settling::default();
        settling.note(None, Some(&widget), &Index::new(), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut settling, &crds, false, None, now),
            Progress::Settled
        );
    }

    #[test]
    fn a_deleted_crd_must_leave() {
        let now = Instant::now();
        let widget = crd("example.com", "Widget", &["v1"]);
        let mut settling = Settling::default();
        settling.note(Some(&widget), None, &index("1"), now);
        let none = Crds::new();
        let mut check = |is_listed, address, now, expect| {
            assert_eq!(
                progress(&mut settling, &none, is_listed, address, now),
                expect
            );
        };
        check(true, Some("1"), now, Progress::Contradiction);
        check(false, Some("1"), now, Progress::Contradiction);
        check(false, None, now, Progress::Settled);
        settling.note(Some(&widget), None, &index("1"), now);
        let late = now + LIMIT;
        assert_eq!(
            progress(&mut settling, &none, true, Some("1"), late),
            Progress::Settled
        );
    }

    #[test]
    fn a_crd_that_comes_back_is_not_waited_to_leave() {
        let now = Instant::now();
        let widget = crd("example.com", "Widget", &["v1"]);
        let mut settling = Settling::default();
        settling.note(Some(&widget), None, &index("1"), now);
        settling.note(None, Some(&widget), &index("1"), now);
        let crds = crds(&widget);
        assert_eq!(
            progress(&mut settling, &crds, true, Some("2"), now),
            Progress::Settled
        );
    }

    #[test]
    fn a_changed_schema_holds_nothing_up() {
        let now = Instant::now();
        let before = crd("example.com", "Widget", &["v1"]);
        let after = Crd {
            revision: ("uid".into(), 2),
            ..before.clone()
        };
        let mut settling = Settling::default();
        settling.note(Some(&before), Some(&after), &index("1"), now);
        let crds = crds(&after);
        assert_eq!(
            progress(&mut settling, &crds, true, Some("1"), now),
            Progress::Expecting
        );
        assert_eq!(
            progress(&mut settling, &crds, true, Some("2"), now),
            Progress::Settled
        );
        settling.note(Some(&before), Some(&after), &index("1"), now);
        let late = now + MAY_CHANGE;
        assert_eq!(
            progress(&mut settling, &crds, true, Some("1"), late),
            Progress::Settled
        );
    }
}
