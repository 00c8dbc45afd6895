//! What is done every minute, as nothing tells when it is due.

use std::sync::Arc;
use std::time::Duration;

use super::context::Context;
use super::probing::asks_cluster;

/// How often.
const INTERVAL: Duration = Duration::from_secs(60);

/// Ends watches of params that no policy needs any more, and runs probes again that depend on namespaces
/// or permissions, whose changes nobody tells us.
pub(crate) async fn upkeep(context: Arc<Context>) {
    let heartbeat = context.supervisor.heartbeat("upkeep", 5 * INTERVAL);
    loop {
        tokio::time::sleep(INTERVAL).await;
        heartbeat.beat();
        context.params.retain(&context.store.param_kinds());
        for policy in context.probes.policies() {
            let probes = context.probes.of(&policy).unwrap_or_default();
            if probes.iter().any(|probe| asks_cluster(probe)) {
                context.queue.add(&policy);
            }
        }
    }
}
