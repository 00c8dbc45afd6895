//! A cache of engines by pattern. Programs use it if they have no budget, or if their budget is exhausted. The total
//! number of bytes is limited. The least recently used engines are evicted first.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::budget::{MAX_CACHE_BYTES, Reservation};
use super::engine::Engine;

#[derive(Debug, Default)]
struct Cache {
    engines: HashMap<Arc<str>, (Arc<Engine>, u64)>,
    by_use: BTreeMap<u64, Arc<str>>,
    n_uses: u64,
}

static CACHE: LazyLock<Mutex<Cache>> = LazyLock::new(Mutex::default);

fn lock() -> MutexGuard<'static, Cache> {
    CACHE.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Cache {
    fn next_use(&mut self) -> u64 {
        self.n_uses = self.n_uses.wrapping_add(1);
        self.n_uses
    }

    fn pop_oldest(&mut self) -> Option<Arc<Engine>> {
        let (_, pattern) = self.by_use.pop_first()?;
        self.engines.remove(&pattern).map(|(engine, _)| engine)
    }
}

pub(super) fn get(pattern: &str) -> Option<Arc<Engine>> {
    let mut cache = lock();
    let now = cache.next_use();
    let Cache {
        engines, by_use, ..
    } = &mut *cache;
    let (engine, used) = engines.get_mut(pattern)?;
    if let Some(pattern) = by_use.remove(used) {
        by_use.insert(now, pattern);
    }
    *used = now;
    Some(Arc::clone(engine))
}

/// Reserves `n_bytes` for a new engine. If necessary, evicts the least recently used engines. Returns `None` if the
/// engine is too large, or if running searches still hold the evicted engines.
pub(super) fn reserve(n_bytes: usize) -> Option<Reservation> {
    if n_bytes > MAX_CACHE_BYTES {
        return None;
    }
    if let Some(reservation) = Reservation::cached(n_bytes) {
        return Some(reservation);
    }
    // Evicts more engines than necessary, to leave room for the memory of searches.
    let n_wanted = n_bytes
        .saturating_add(MAX_CACHE_BYTES / 4)
        .min(MAX_CACHE_BYTES);
    let mut cache = lock();
    while let Some(oldest) = cache.pop_oldest() {
        drop(oldest);
        if let Some(reservation) = Reservation::cached(n_wanted) {
            reservation.shrink(n_wanted - n_bytes);
            return Some(reservation);
        }
    }
    drop(cache);
    Reservation::cached(n_bytes)
}

/// Inserts `engine` and returns it. The caller must have reserved its bytes. If the pattern is already cached, returns
/// the existing engine instead.
pub(super) fn insert(pattern: &str, engine: Engine) -> Arc<Engine> {
    let mut cache = lock();
    let now = cache.next_use();
    if let Some((engine, _)) = cache.engines.get(pattern) {
        return Arc::clone(engine);
    }
    let (pattern, engine): (Arc<str>, _) = (pattern.into(), Arc::new(engine));
    cache.by_use.insert(now, Arc::clone(&pattern));
    cache.engines.insert(pattern, (Arc::clone(&engine), now));
    engine
}
