//! Supervises the controller's tasks: checks that they run and make progress.
//!
//! If a task panics or ends unexpectedly, the process exits with the reason. A restarted process has all tasks, but a
//! process that lacks a watch would silently write wrong statuses.
//!
//! A task may also hang. So each task has a heartbeat ([`Heartbeat`]), and `/livez` fails with the name of a task
//! without a recent heartbeat. A failed request also counts as a heartbeat, since an unreachable API server must not
//! cause a restart.

use std::any::Any;
use std::fmt;
use std::panic::AssertUnwindSafe;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use futures::FutureExt;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::telemetry::Metrics;
use crate::telemetry::logging::panic_message;

/// The maximum time between two heartbeats of a watch. A watch request lasts at most two minutes. Lists and backoffs
/// are shorter.
pub(crate) const WATCH_LIMIT: Duration = Duration::from_secs(300);

/// The maximum time of one poll of discovery and the wait before it. A longer configured interval extends this time.
pub(crate) const REFRESH_LIMIT: Duration = Duration::from_secs(300);

/// How long subjects may wait while the workers finish no subject.
pub(crate) const WORK_LIMIT: Duration = Duration::from_secs(300);

/// The heartbeat of one task, shared by its clones. Supervision ends when the last clone is dropped.
#[derive(Clone, Debug)]
pub(crate) struct Heartbeat(Arc<Pulse>);

#[derive(Debug)]
struct Pulse {
    name: String,
    limit: Duration,
    last: Mutex<Instant>,
}

impl Pulse {
    fn last(&self) -> MutexGuard<'_, Instant> {
        self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Heartbeat {
    pub(crate) fn beat(&self) {
        *self.0.last() = Instant::now();
    }
}

/// The exit of a task that must not end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TaskExit {
    pub(crate) task: &'static str,
    /// The message of the panic. `None` if the task ended without a panic.
    pub(crate) panic: Option<String>,
}

impl fmt::Display for TaskExit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.panic {
            Some(message) => write!(f, "the task {} panicked: {message}", self.task),
            None => write!(f, "the task {} ended unexpectedly", self.task),
        }
    }
}

/// State of all tasks. Clones share the state.
#[derive(Clone, Debug)]
pub struct Supervisor {
    metrics: Arc<Metrics>,
    pulses: Arc<Mutex<Vec<Weak<Pulse>>>>,
    lost: watch::Sender<Option<TaskExit>>,
}

impl Supervisor {
    /// Creates a supervisor that counts panics in `metrics`.
    pub(crate) fn new(metrics: Arc<Metrics>) -> Self {
        Self {
            metrics,
            pulses: Arc::default(),
            lost: watch::Sender::default(),
        }
    }

    /// Registers the task `name`. The task must send a heartbeat at least every `limit`, until the returned value is
    /// dropped.
    pub(crate) fn heartbeat(&self, name: impl Into<String>, limit: Duration) -> Heartbeat {
        let pulse = Arc::new(Pulse {
            name: name.into(),
            limit,
            last: Mutex::new(Instant::now()),
        });
        let mut pulses = self.pulses();
        pulses.retain(|pulse| pulse.strong_count() > 0);
        pulses.push(Arc::downgrade(&pulse));
        Heartbeat(pulse)
    }

    /// Returns the name of each registered task, and a problem if the task has no recent heartbeat.
    #[must_use]
    pub fn checks(&self) -> Vec<(String, Option<String>)> {
        let pulses: Vec<_> = self.pulses().iter().filter_map(Weak::upgrade).collect();
        let check = |pulse: &Arc<Pulse>| {
            let silence = pulse.last().elapsed();
            let problem = (silence > pulse.limit).then(|| {
                format!(
                    "no progress for {} s; the limit is {} s",
                    silence.as_secs(),
                    pulse.limit.as_secs()
                )
            });
            (pulse.name.clone(), problem)
        };
        pulses.iter().map(check).collect()
    }

    /// Runs `work`, which must not end. If `work` ends or panics, [`Self::lost`] returns.
    pub(crate) async fn supervised(&self, task: &'static str, work: impl Future<Output = ()>) {
        self.metrics.supervised(task);
        let outcome = AssertUnwindSafe(work).catch_unwind().await;
        let panic = outcome.err().map(|payload| message(payload.as_ref()));
        self.note(TaskExit { task, panic });
    }

    /// Runs `work`, which may end but must not panic. If `work` panics, returns `None`, and [`Self::lost`] returns.
    pub(crate) async fn contained<T>(
        &self,
        task: &'static str,
        work: impl Future<Output = T>,
    ) -> Option<T> {
        self.metrics.supervised(task);
        match AssertUnwindSafe(work).catch_unwind().await {
            Ok(outcome) => Some(outcome),
            Err(payload) => {
                let panic = Some(message(payload.as_ref()));
                self.note(TaskExit { task, panic });
                None
            }
        }
    }

    /// Waits until a supervised task exits. Returns the first exit.
    pub(crate) async fn lost(&self) -> TaskExit {
        let mut lost = self.lost.subscribe();
        loop {
            if let Some(lost) = lost.borrow_and_update().as_ref() {
                return lost.clone();
            }
            // The wait cannot fail, since `self` owns the sender.
            drop(lost.changed().await);
        }
    }

    fn note(&self, lost: TaskExit) {
        if lost.panic.is_some() {
            self.metrics.panicked(lost.task);
        }
        self.lost.send_if_modified(|first| {
            let is_first = first.is_none();
            if is_first {
                *first = Some(lost);
            }
            is_first
        });
    }

    fn pulses(&self) -> MutexGuard<'_, Vec<Weak<Pulse>>> {
        self.pulses.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the message of a panic, in one line.
fn message(payload: &(dyn Any + Send)) -> String {
    let text = panic_message(payload);
    text.lines().collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMIT: Duration = Duration::from_secs(60);

    fn supervisor() -> (Supervisor, Arc<Metrics>) {
        let metrics = Arc::new(Metrics::new());
        (Supervisor::new(Arc::clone(&metrics)), metrics)
    }

    fn problems(supervisor: &Supervisor) -> Vec<String> {
        let checks = supervisor.checks().into_iter();
        checks
            .filter_map(|(name, problem)| Some(format!("{name}: {}", problem?)))
            .collect()
    }

    #[tokio::test(start_paused = true)]
    async fn task_without_heartbeat_is_a_problem() {
        let (supervisor, _) = supervisor();
        let hung = supervisor.heartbeat("watch of crds", LIMIT);
        let alive = supervisor.heartbeat("watch of policies", LIMIT);
        tokio::time::advance(LIMIT).await;
        assert_eq!(problems(&supervisor), Vec::<String>::new());
        alive.beat();
        tokio::time::advance(Duration::from_secs(1)).await;
        assert_eq!(
            problems(&supervisor),
            ["watch of crds: no progress for 61 s; the limit is 60 s"]
        );
        hung.beat();
        assert_eq!(problems(&supervisor), Vec::<String>::new());
    }

    #[tokio::test(start_paused = true)]
    async fn task_with_dropped_heartbeat_is_not_listed() {
        let (supervisor, _) = supervisor();
        let heartbeat = supervisor.heartbeat("watch of params", LIMIT);
        let same = heartbeat.clone();
        drop(heartbeat);
        assert_eq!(supervisor.checks().len(), 1);
        drop(same);
        tokio::time::advance(LIMIT * 2).await;
        assert_eq!(supervisor.checks(), []);
    }

    #[tokio::test]
    async fn supervised_panic_is_reported_and_counted() {
        let (supervisor, metrics) = supervisor();
        let task = {
            let supervisor = supervisor.clone();
            async move {
                let work = async { panic!("hostile\nobject") };
                supervisor.supervised("watch-crds", work).await;
            }
        };
        tokio::spawn(task).await.unwrap();
        let lost = supervisor.lost().await;
        assert_eq!(
            lost.to_string(),
            "the task watch-crds panicked: hostile object"
        );
        let text = metrics.encode().unwrap();
        let line = "vap_panics_total{task=\"watch-crds\"} 1\n";
        assert!(text.contains(line), "{text}");
    }

    #[tokio::test]
    async fn supervisor_returns_first_task_exit() {
        let (supervisor, metrics) = supervisor();
        supervisor.supervised("periodic-resync", async {}).await;
        supervisor.supervised("refresher", async {}).await;
        assert_eq!(
            supervisor.lost().await.to_string(),
            "the task periodic-resync ended unexpectedly"
        );
        let text = metrics.encode().unwrap();
        assert!(
            text.contains("vap_panics_total{task=\"periodic-resync\"} 0\n"),
            "{text}"
        );
    }

    #[tokio::test(start_paused = true)]
    async fn contained_work_reports_exit_only_after_panic() {
        let (supervisor, _) = supervisor();
        assert_eq!(supervisor.contained("workers", async { 1 }).await, Some(1));
        let lost = tokio::time::timeout(LIMIT, supervisor.lost()).await;
        assert!(lost.is_err());
        let work = async { panic!("{}", 2) };
        let outcome: Option<()> = supervisor.contained("workers", work).await;
        assert_eq!(outcome, None);
        assert_eq!(supervisor.lost().await.panic.as_deref(), Some("2"));
    }
}
