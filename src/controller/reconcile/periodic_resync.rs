//! Periodic work, every minute, for changes that no watch reports.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::controller::context::Context;
use crate::controller::probe_runner::stale::{run_task, tasks};

/// The interval at which the periodic work is repeated.
const INTERVAL: Duration = Duration::from_secs(60);

/// The minimum time between two tasks. If there are very many tasks, an iteration takes longer than a minute.
const MIN_PAUSE: Duration = Duration::from_millis(20);

/// Runs the periodic work. Never returns.
///
/// - Ends watches of params that no policy needs.
/// - Repeats checks that exceeded their deadline long ago.
/// - Queues probes that depend on namespaces or permissions, since these are not watched. This work is spread over the
///   interval.
pub(crate) async fn run(context: Arc<Context>) {
    let heartbeat = context
        .supervisor
        .heartbeat("periodic-resync", 5 * INTERVAL);
    let mut begin = Instant::now();
    loop {
        tokio::time::sleep_until(begin + INTERVAL).await;
        heartbeat.beat();
        begin = Instant::now();
        context
            .params
            .retain(&context.metrics, &context.store.param_kinds());
        context.lanes.retry(begin);
        let tasks = tasks(&context);
        let n_chores = u32::try_from(tasks.len()).unwrap_or(u32::MAX);
        let pause = (INTERVAL / n_chores.max(1)).max(MIN_PAUSE);
        let mut due = begin;
        for task in tasks {
            run_task(&context, task).await;
            heartbeat.beat();
            due += pause;
            tokio::time::sleep_until(due).await;
        }
    }
}
