//! Objects of requests that are the same for all policies.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::Value as Json;

use super::path::{Path, Root};
use super::shape::Shape;
use kubernetes::defaulting::{Operation, Prepared};
use kubernetes::schema::Gvk;

/// The most kinds whose least objects are kept.
const MAX_LEAST: usize = 200;

/// The most requests whose objects are kept as policies see them.
const MAX_PREPARED: usize = 500;

/// Objects that were made for policies, of one set of schemas.
#[derive(Debug, Default)]
pub struct KeptObjects {
    least: Mutex<HashMap<Gvk, Option<Json>>>,
    /// By the digest of the objects that are sent.
    prepared: Mutex<HashMap<u64, Vec<Kept>>>,
}

/// The objects of a request, and what is made of them; `None` where that is not known.
type Kept = (Sent, Option<Prepared>);

/// The objects of a request as they are sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub(super) of: SentAs,
    pub(super) objects: [Option<Json>; 2],
}

/// The circumstances on which it depends what the API server makes of objects.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SentAs {
    pub(super) gvk: Gvk,
    pub(super) operation: Operation,
    pub(super) is_status: bool,
    /// The namespace of the request.
    pub(super) namespace: String,
}

impl KeptObjects {
    /// The least valid object of `gvk`, whose type is `shape`; `None` where none can be made.
    pub(super) fn least(&self, gvk: &Gvk, shape: &Shape<'_>) -> Option<Json> {
        if let Some(known) = lock(&self.least).get(gvk) {
            return known.clone();
        }
        let made = shape.minimal(&Path::of(Root::Object));
        let mut known = lock(&self.least);
        if known.len() < MAX_LEAST {
            known.insert(gvk.clone(), made.clone());
        }
        made
    }

    /// The `objects`, whose digest is `digest`, as policies see them, which `prepare` makes; `None` where that is not known.
    pub(super) fn prepared(
        &self,
        of: &SentAs,
        (digest, objects): (u64, &[Option<Json>; 2]),
        prepare: impl FnOnce() -> Option<Prepared>,
    ) -> Option<Prepared> {
        if let Some(known) = lock(&self.prepared).get(&digest) {
            let mut known = known.iter();
            let known = known.find(|(sent, _)| sent.of == *of && sent.objects == *objects);
            if let Some((_, prepared)) = known {
                return prepared.clone();
            }
        }
        let made = prepare();
        let mut known = lock(&self.prepared);
        if known.len() < MAX_PREPARED {
            let sent = Sent {
                of: of.clone(),
                objects: objects.clone(),
            };
            known.entry(digest).or_default().push((sent, made.clone()));
        }
        made
    }
}

/// The content of a mutex; whoever panicked while it was locked has left a whole map behind.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
