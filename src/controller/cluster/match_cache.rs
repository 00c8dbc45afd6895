//! A cache of the resources that broad rules match, such as rules with `*`. Matching a broad rule visits thousands of
//! resources. Policies with equal rules share an entry, since most policies of a cluster use one of a few broad rules.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::policy::RequestPolicy;
use crate::policy::matching::RuleMatches;
use crate::schema::rest_mapper::RestMapper;

/// The maximum number of entries. An entry may use hundreds of kilobytes.
const MAX: usize = 16;

/// The minimum number of matched resources for an entry. Computing fewer matches is as fast as a lookup.
const BROAD: usize = 64;

/// The last matches of broad rules, newest first.
#[derive(Debug, Default)]
pub(crate) struct MatchCache {
    latest: Mutex<VecDeque<Arc<RuleMatches>>>,
}

impl MatchCache {
    /// Returns the resources of `mapper` that the rules of `policy` match.
    pub(crate) fn get(&self, policy: &RequestPolicy, mapper: &Arc<RestMapper>) -> Arc<RuleMatches> {
        let is_it = |matches: &&Arc<RuleMatches>| matches.are_of(policy, mapper);
        if let Some(known) = self.lock().iter().find(is_it) {
            return Arc::clone(known);
        }
        let matches = Arc::new(RuleMatches::new(policy, Arc::clone(mapper)));
        if matches.matches().resources.len() >= BROAD {
            let mut latest = self.lock();
            latest.push_front(Arc::clone(&matches));
            latest.truncate(MAX);
        }
        matches
    }

    /// Removes all entries. Called when the served resources change.
    pub(crate) fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<RuleMatches>>> {
        self.latest.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::controller::cluster::snapshot::tests::resource;

    fn policy(name: &str, resources: &[&str]) -> RequestPolicy {
        serde_json::from_value(json!({
            "name": name,
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": resources},
            ]},
        }))
        .unwrap()
    }

    fn mapper() -> Arc<RestMapper> {
        let names: Vec<String> = (0..BROAD).map(|n| format!("things{n}")).collect();
        let served = names
            .iter()
            .map(|name| resource("example.com/v1", name, "Thing"));
        Arc::new(RestMapper::new(served.collect()))
    }

    #[test]
    fn matches_of_broad_rules_are_cached_per_mapper() {
        let (cache, mapper) = (MatchCache::default(), mapper());
        let first = cache.get(&policy("a", &["*"]), &mapper);
        assert_eq!(first.matches().resources.len(), BROAD);
        let again = cache.get(&policy("b", &["*"]), &mapper);
        assert!(Arc::ptr_eq(&first, &again));
        let other = cache.get(&policy("b", &["*", "*/*"]), &mapper);
        assert!(!Arc::ptr_eq(&first, &other));
        let later = RestMapper::new(mapper.resources.clone());
        assert!(!Arc::ptr_eq(
            &first,
            &cache.get(&policy("a", &["*"]), &Arc::new(later))
        ));
        let narrow = cache.get(&policy("c", &["things1"]), &mapper);
        assert_eq!(narrow.matches().resources.len(), 1);
        assert!(!Arc::ptr_eq(
            &narrow,
            &cache.get(&policy("c", &["things1"]), &mapper)
        ));
    }

    #[test]
    fn match_cache_is_bounded() {
        let (cache, mapper) = (MatchCache::default(), mapper());
        for n in 0..2 * MAX {
            cache.get(&policy("a", &["*", &format!("thing{n}")]), &mapper);
        }
        assert_eq!(cache.lock().len(), MAX);
        cache.clear();
        assert!(cache.lock().is_empty());
    }
}
