//! Catches panics while a case is processed. A panic becomes the result of the case, so that the run continues.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

use serde::Serialize;

/// A panic of the code under test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Panic {
    /// The panic message.
    pub value: String,
    /// The file and line of the panic.
    #[serde(rename = "where")]
    pub location: String,
}

thread_local! {
    /// True while this thread runs a function of [`guard`]. Panics outside of such functions are printed as usual.
    static IS_GUARDED: Cell<bool> = const { Cell::new(false) };
}

static LAST: Mutex<Option<Panic>> = Mutex::new(None);

fn last() -> MutexGuard<'static, Option<Panic>> {
    LAST.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Calls `f` and catches panics.
///
/// # Errors
///
/// Returns the panic if `f` panics.
pub fn guard<T>(f: impl FnOnce() -> T) -> Result<T, Panic> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let previous = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            if !IS_GUARDED.get() {
                previous(info);
                return;
            }
            let payload = info.payload();
            let value = payload
                .downcast_ref::<&str>()
                .map(|text| (*text).to_owned())
                .or_else(|| payload.downcast_ref::<String>().cloned())
                .unwrap_or_else(|| "a panic without a message".to_owned());
            let location = info.location().map(ToString::to_string).unwrap_or_default();
            *last() = Some(Panic { value, location });
        }));
    });
    let was_guarded = IS_GUARDED.replace(true);
    let outcome = panic::catch_unwind(AssertUnwindSafe(f));
    IS_GUARDED.set(was_guarded);
    outcome.map_err(|_| {
        let unknown = || Panic {
            value: "unknown".to_owned(),
            location: String::new(),
        };
        last().take().unwrap_or_else(unknown)
    })
}
