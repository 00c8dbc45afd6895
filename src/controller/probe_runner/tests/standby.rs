//! Tests of probes on a standby, and of probes whose policy is missing.

use super::*;
use crate::controller::leadership::Leadership;
use crate::controller::tests::id;
use crate::telemetry::metrics::Skipped;

#[tokio::test(start_paused = true)]
async fn standby_evaluates_probes_without_writing_statuses() {
    let (mut context, log) = context(AT_MOST_FIVE, server(|| None));
    let leadership = Leadership::default();
    leadership.close().await;
    Arc::get_mut(&mut context).unwrap().leadership = leadership;
    start(&context);
    context
        .probes
        .put(probe(1, 6, "Implied"), EventSource::Watched);
    let observed = next_reconciliation(&context).await;
    assert_eq!(observed, ReconcileResult::Skipped(Skipped::NotLeader));
    let has_outcome = || {
        let runs = context.probe_runner.lock();
        runs.get(&id("a"))
            .is_some_and(|probe_run| probe_run.outcome.is_some())
    };
    until(has_outcome).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(outcomes(&log), Vec::<Value>::new());
}

#[tokio::test(start_paused = true)]
async fn probe_of_unwatched_kind_is_pending_with_hint() {
    let (context, log) = context(AT_MOST_FIVE, server(|| Some(404)));
    start(&context);
    let probe = serde_json::to_value(probe(1, 6, "Implied").object()).unwrap();
    let mut probe = probe;
    probe["spec"].as_object_mut().unwrap().remove("policyName");
    probe["spec"]["target"] = json!({"kind": "MutatingAdmissionPolicy", "name": "a"});
    probe["spec"]["cases"][0]["expect"] = json!({"applies": true});
    let probe: Probe = serde_json::from_value(probe).unwrap();
    for name in context.probes.put(probe, EventSource::Watched) {
        assert_eq!(name.to_string(), "mutatingadmissionpolicies/a");
        reconcile(&context, &name).await.unwrap();
    }
    until(|| outcomes(&log).len() == 1).await;
    assert_eq!(outcomes(&log), ["Pending"]);
    let difference = {
        let log = log.lock().unwrap();
        let written = log
            .iter()
            .rev()
            .find(|seen| seen.path.contains("/policyprobes/"));
        written.unwrap().body["status"]["cases"][0]["difference"].clone()
    };
    let difference = difference.as_str().unwrap();
    assert!(
        difference.contains("`--follow mutatingadmissionpolicies`"),
        "{difference}"
    );
    let text = context.metrics.encode().unwrap();
    assert!(!text.contains("vap_probe_policy_missing{"), "{text}");
}

#[tokio::test(start_paused = true)]
async fn missing_policy_named_by_probes_is_reported() {
    let (context, log) = context(AT_MOST_FIVE, server(|| Some(404)));
    start(&context);
    let of = |policy: &str, version: &str| {
        let mut probe = probe(1, 6, "Implied");
        probe.edit(|object| {
            object.spec.policy_name = policy.to_owned();
            object.metadata.resource_version = Some(version.to_owned());
        });
        probe
    };
    context.probes.put(of("gone", "1"), EventSource::Watched);
    // A new leader queues all subjects.
    context.touch_all();
    let mut names = [context.queue.next().await, context.queue.next().await];
    names.sort();
    assert_eq!(names, ["a", "gone"].map(id));
    let series = || {
        let text = context.metrics.encode().unwrap();
        let line = "vap_probe_policy_missing{kind=\"ValidatingAdmissionPolicy\",probe=\"p\",policy=\"gone\"} 1\n";
        text.contains(line)
    };
    reconcile(&context, &id("gone")).await.unwrap();
    until(|| outcomes(&log).len() == 1).await;
    assert_eq!(outcomes(&log), ["Pending"]);
    assert!(series(), "{}", context.metrics.encode().unwrap());

    // The probe now refers to a different policy.
    for name in context.probes.put(of("a", "1000"), EventSource::Watched) {
        reconcile(&context, &name).await.unwrap();
    }
    assert!(!series());
    // The policy is created.
    context.probes.put(of("gone", "1001"), EventSource::Watched);
    reconcile(&context, &id("gone")).await.unwrap();
    assert!(series());
    let mut came = policy(AT_MOST_FIVE);
    came.metadata.name = Some("gone".to_owned());
    put(&context, came);
    reconcile(&context, &id("gone")).await.unwrap();
    assert!(!series());
    // The policy is deleted, and then the probe.
    context.store.remove(&id("gone"));
    reconcile(&context, &id("gone")).await.unwrap();
    assert!(series());
    context.probes.remove("p");
    reconcile(&context, &id("gone")).await.unwrap();
    assert!(!series());
}
