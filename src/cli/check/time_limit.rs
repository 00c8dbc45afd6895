//! Limits the time of one check, so that an expensive policy does not prevent the check of others.

use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use super::finding::{Finding, Severity};
use super::policy::object_finding;
use crate::cel::interrupt::Interrupt;
use crate::cli::input::Object;
use crate::policy::rule::Rule;

/// Time limit for the check of one policy or CustomResourceDefinition.
const TIME_LIMIT: Duration = Duration::from_secs(60);

/// The time after which a check can be cancelled. Shorter checks always complete, so frequent changes cannot cancel
/// every check.
const MIN_TIME: Duration = Duration::from_millis(500);

/// A flag that cancels checks whose results are no longer needed.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Cancellation {
    is_cancelled: Arc<AtomicBool>,
    min_time: Duration,
}

impl Default for Cancellation {
    fn default() -> Self {
        Self::after(MIN_TIME)
    }
}

impl Cancellation {
    /// Creates a flag that cancels checks as soon as it is set.
    pub(in crate::cli) fn immediate() -> Self {
        Self::after(Duration::ZERO)
    }

    fn after(min_time: Duration) -> Self {
        let is_cancelled = Arc::default();
        Self {
            is_cancelled,
            min_time,
        }
    }

    /// Cancels the running checks. Each check still runs for at least the minimum time.
    pub(in crate::cli) fn cancel(&self) {
        self.is_cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the check that began at `start` was cancelled and has taken the minimum time.
    pub(in crate::cli) fn is_cancelled(&self, start: Instant) -> bool {
        self.is_cancelled.load(Ordering::Relaxed) && start.elapsed() >= self.min_time
    }
}

/// Runs `work`, the check of `object`, within [`TIME_LIMIT`]. Messages use `noun` for the object.
///
/// # Errors
/// Returns a finding if the check exceeds the time limit, is cancelled or panics.
pub(super) fn within_time_limit<T, U>(
    object: &Object<U>,
    noun: &str,
    cancellation: &Cancellation,
    work: impl FnOnce() -> T,
) -> Result<T, Box<Finding>> {
    // WebAssembly has no clock, and an interruption cannot unwind the stack, so there is no time limit. The web page
    // terminates its worker instead.
    if cfg!(target_family = "wasm") {
        return Ok(work());
    }
    let start = Instant::now();
    let cancellation = cancellation.clone();
    let interrupt =
        Interrupt::new(move || start.elapsed() >= TIME_LIMIT || cancellation.is_cancelled(start));
    run(object, noun, &interrupt, work)
}

fn run<T, U>(
    object: &Object<U>,
    noun: &str,
    interrupt: &Interrupt,
    work: impl FnOnce() -> T,
) -> Result<T, Box<Finding>> {
    let work = AssertUnwindSafe(|| interrupt.run(work));
    let (place, message) = match panic::catch_unwind(work) {
        Ok(Ok(outcome)) => return Ok(outcome),
        Ok(Err(interrupted)) => {
            let field = interrupted.field;
            let place = field
                .as_deref()
                .map_or_else(|| object.place(), |field| object.place_of_field(field));
            let at = field.map_or_else(String::new, |field| format!(" at {field}"));
            let message = format!(
                "the check of this {noun} exceeded the time limit of {} s{at}, so its other findings are unknown; \
                 shorten or split its expressions",
                TIME_LIMIT.as_secs()
            );
            (place, message)
        }
        Err(_) => {
            let message = format!(
                "the check of this {noun} failed with an internal error in kubectl-vap; please report it"
            );
            (object.place(), message)
        }
    };
    let error = object_finding(object, Severity::Error, Rule::CheckFailed, &message, place);
    Err(Box::new(error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::interrupt::{checkpoint, working_on};
    use crate::cli::input::{Input, KindFilter};

    fn object() -> Object<crate::policy::RequestPolicy> {
        let text = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
                    spec:\n  validations:\n  - expression: 'true'\n";
        let path = [std::path::PathBuf::from("-")];
        let mut input = Input::load(&path, KindFilter::Policies, &mut text.as_bytes());
        input.policies.remove(0)
    }

    #[test]
    fn check_exceeding_time_limit_reports_expression() {
        let endless = || -> u32 {
            working_on("spec.validations[0].expression");
            loop {
                checkpoint();
            }
        };
        let object = object();
        let error = run(&object, "policy", &Interrupt::new(|| true), endless).unwrap_err();
        assert_eq!(
            error.message,
            "the check of this policy exceeded the time limit of 60 s at spec.validations[0].expression, so its other \
             findings are unknown; shorten or split its expressions"
        );
        assert_eq!(
            (error.severity, error.rule),
            (Severity::Error, Rule::CheckFailed)
        );
        assert_eq!(error.location.place.unwrap().line, 6);
    }

    #[test]
    fn cancelled_check_ends() {
        let cancellation = Cancellation::default();
        cancellation.cancel();
        let start = Instant::now();
        let endless = || -> u32 {
            loop {
                checkpoint();
            }
        };
        assert!(within_time_limit(&object(), "policy", &cancellation, endless).is_err());
        assert!(start.elapsed() >= MIN_TIME && start.elapsed() < TIME_LIMIT);
        let short = within_time_limit(&object(), "policy", &cancellation, || 7);
        assert_eq!(short.unwrap(), 7);
    }

    #[test]
    fn panicking_check_reports_internal_error() {
        let object = object();
        let interrupt = Interrupt::new(|| false);
        let error = run(&object, "policy", &interrupt, || -> u32 { panic!("a bug") }).unwrap_err();
        assert_eq!(
            error.message,
            "the check of this policy failed with an internal error in kubectl-vap; please report it"
        );
        assert_eq!(run(&object, "policy", &interrupt, || 7).unwrap(), 7);
    }
}
