//! Objects of requests that are the same for all policies.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use crate::runtime_errors::input_types::InputType;
use kubernetes::defaulting::{Operation, Prepared};
use kubernetes::schema::Gvk;
use kubernetes::validity::{FieldPath, Root};

/// The most kinds whose least objects are kept.
const MAX_MINIMAL: usize = 200;

/// The most requests whose objects are kept as policies see them.
const MAX_PREPARED: usize = 500;

/// Objects that were made for policies, of one set of schemas.
#[derive(Debug, Default)]
pub struct ObjectCache {
    minimal: Mutex<HashMap<Gvk, Option<Json>>>,
    prepared: Mutex<HashMap<PreparedKey, PreparedEntry>>,
}

/// How objects are sent, and the digest of the objects.
type PreparedKey = (CacheKey, u64);

/// Objects as they are sent, and what is made of them; `None` where that is not known.
type PreparedEntry = ([Option<Json>; 2], Option<Prepared>);

/// The circumstances on which it depends what the API server makes of objects.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    pub(crate) gvk: Gvk,
    pub(crate) operation: Operation,
    pub(crate) is_status: bool,
    /// The namespace of the request.
    pub(crate) namespace: String,
}

impl ObjectCache {
    /// The least valid object of `gvk`, whose type is `shape`; `None` where none can be made.
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

    /// The `objects`, whose digest is `digest`, as policies see them, which `prepare` makes; `None` where that is not known.
    pub(crate) fn prepared(
        &self,
        key: CacheKey,
        (digest, objects): (u64, &[Option<Json>; 2]),
        prepare: impl FnOnce(&CacheKey) -> Option<Prepared>,
    ) -> Option<Prepared> {
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

/// The content of a mutex; whoever panicked while it was locked has left a whole map behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
