//! Objects of requests that are the same for all policies.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use super::input_types::InputType;
use kubernetes::defaulting::{Operation, Prepared};
use kubernetes::schema::Gvk;
use kubernetes::validity::{FieldPath, Root};

/// The most kinds whose least objects are kept.
const MAX_LEAST: usize = 200;

/// The most requests whose objects are kept as policies see them.
const MAX_PREPARED: usize = 500;

/// Objects that were made for policies, of one set of schemas.
#[derive(Debug, Default)]
pub struct KeptObjects {
    least: Mutex<HashMap<Gvk, Option<Json>>>,
    prepared: Mutex<HashMap<Key, Kept>>,
}

/// How objects are sent, and the digest of the objects.
type Key = (SentAs, u64);

/// Objects as they are sent, and what is made of them; `None` where that is not known.
type Kept = ([Option<Json>; 2], Option<Prepared>);

/// The circumstances on which it depends what the API server makes of objects.
#[derive(Debug, PartialEq, Eq, Hash)]
pub(super) struct SentAs {
    pub(super) gvk: Gvk,
    pub(super) operation: Operation,
    pub(super) is_status: bool,
    /// The namespace of the request.
    pub(super) namespace: String,
}

impl KeptObjects {
    /// The least valid object of `gvk`, whose type is `shape`; `None` where none can be made.
    pub(super) fn least(&self, gvk: &Gvk, input_type: &InputType<'_>) -> Option<Json> {
        if let Some(known) = lock(&self.least).get(gvk) {
            return known.clone();
        }
        let made = input_type.minimal(&FieldPath::new(Root::Object));
        let mut known = lock(&self.least);
        if known.len() < MAX_LEAST {
            known.insert(gvk.clone(), made.clone());
        }
        made
    }

    /// The `objects`, whose digest is `digest`, as policies see them, which `prepare` makes; `None` where that is not known.
    pub(super) fn prepared(
        &self,
        of: SentAs,
        (digest, objects): (u64, &[Option<Json>; 2]),
        prepare: impl FnOnce(&SentAs) -> Option<Prepared>,
    ) -> Option<Prepared> {
        let key = (of, digest);
        if let Some((known, prepared)) = lock(&self.prepared).get(&key)
            && known == objects
        {
            return prepared.clone();
        }
        let made = prepare(&key.0);
        let mut known = lock(&self.prepared);
        if known.len() < MAX_PREPARED {
            known.insert(key, (objects.clone(), made.clone()));
        }
        made
    }
}

/// The content of a mutex; whoever panicked while it was locked has left a whole map behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
