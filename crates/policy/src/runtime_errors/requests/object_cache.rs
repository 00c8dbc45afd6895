//! A cache of generated objects that do not depend on the policy.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use crate::runtime_errors::input_types::InputType;
use kubernetes::defaulting::{Operation, PreparedObjects};
use kubernetes::schema::Gvk;
use kubernetes::validity::{FieldPath, Root};

/// Maximum number of cached minimal objects.
const MAX_MINIMAL: usize = 200;

/// Maximum number of cached prepared objects.
const MAX_PREPARED: usize = 500;

/// Minimal and prepared objects. They are valid for one set of schemas.
#[derive(Debug, Default)]
pub struct ObjectCache {
    minimal: Mutex<HashMap<Gvk, Option<Json>>>,
    prepared: Mutex<HashMap<PreparedKey, PreparedEntry>>,
}

/// The inputs of the preparation. The second element is a hash of the sent objects.
type PreparedKey = (CacheKey, u64);

/// The sent objects and the prepared objects. The latter are `None` if the API server rejects the sent objects, or if
/// it is unknown whether it rejects them.
type PreparedEntry = ([Option<Json>; 2], Option<PreparedObjects>);

/// All inputs of the preparation except the objects.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub(crate) gvk: Gvk,
    pub(crate) operation: Operation,
    pub(crate) is_status: bool,
    pub(crate) namespace: String,
}

impl ObjectCache {
    /// Returns the minimal valid object of `gvk`. `None` if no valid object is found.
    pub(crate) fn minimal(&self, gvk: &Gvk, input_type: &InputType<'_>) -> Option<Json> {
        if let Some(cached) = lock(&self.minimal).get(gvk) {
            return cached.clone();
        }
        let object = input_type.minimal(&FieldPath::new(Root::Object));
        let mut cached = lock(&self.minimal);
        if cached.len() < MAX_MINIMAL {
            cached.insert(gvk.clone(), object.clone());
        }
        object
    }

    /// Returns the prepared objects, from the cache or from `prepare`. `None` if `prepare` returns `None`.
    pub(crate) fn prepared(
        &self,
        key: CacheKey,
        (digest, objects): (u64, &[Option<Json>; 2]),
        prepare: impl FnOnce(&CacheKey) -> Option<PreparedObjects>,
    ) -> Option<PreparedObjects> {
        let key = (key, digest);
        if let Some((cached, prepared)) = lock(&self.prepared).get(&key)
            && cached == objects
        {
            return prepared.clone();
        }
        let prepared = prepare(&key.0);
        let mut cached = lock(&self.prepared);
        if cached.len() < MAX_PREPARED {
            cached.insert(key, (objects.clone(), prepared.clone()));
        }
        prepared
    }
}

/// Locks a mutex. Poisoning is ignored, because a panicking thread leaves the map consistent.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
