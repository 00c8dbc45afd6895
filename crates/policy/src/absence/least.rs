//! The least objects of kinds, which are the same for all policies.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use serde_json::Value as Json;

use super::path::{Path, Root};
use super::shape::Shape;
use kubernetes::schema::Gvk;

/// The most kinds whose objects are kept.
const MAX_KEPT: usize = 200;

/// The least object of each kind that was asked for, of one set of schemas.
#[derive(Debug, Default)]
pub struct LeastObjects(Mutex<HashMap<Gvk, Option<Json>>>);

impl LeastObjects {
    /// The least valid object of `gvk`, whose type is `shape`; `None` where none can be made.
    pub(super) fn get(&self, gvk: &Gvk, shape: &Shape<'_>) -> Option<Json> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = known.get(gvk) {
            return known.clone();
        }
        drop(known);
        let made = shape.minimal(&Path::of(Root::Object));
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() < MAX_KEPT {
            known.insert(gvk.clone(), made.clone());
        }
        made
    }
}
