//! Tests of probes that are slow, or are deleted or changed during their evaluation.

use std::sync::OnceLock;

use super::*;
use crate::controller::probes::{EvaluationSlot, EvaluationSlots};
use crate::controller::process::memory::{MAX_EVALUATION, MAX_QUICK_EVALUATION};
use crate::controller::tests::id;

/// Returns a policy with nine validations that each use most of the cost budget.
fn long_policy(name: &str) -> ValidatingAdmissionPolicy {
    let list = "[0,1,2,3,4,5,6,7,8,9]";
    let walk = format!(
        "{list}.all(a, {list}.all(b, {list}.all(c, {list}.all(d, {list}.all(e, a + b + c + d + e >= 0)))))"
    );
    let mut policy = policy("true");
    policy.metadata.name = Some(name.to_owned());
    policy.metadata.uid = Some(name.to_owned());
    let spec = policy.spec.as_mut().unwrap();
    let validation = serde_json::from_value(json!({"expression": walk})).unwrap();
    spec.validations = Some(vec![validation; 9]);
    policy
}

fn probe_of(policy: &str, name: &str, n_cases: usize) -> Probe {
    let case = |n: usize| {
        json!({
            "name": format!("case {n}"),
            "request": {
                "object": {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
                           "spec": {"replicas": 6}},
            },
            "expect": {"decision": "Deny"},
        })
    };
    let cases: Vec<Value> = (0..n_cases).map(case).collect();
    serde_json::from_value(json!({
        "metadata": {"name": name, "uid": name, "generation": 1, "resourceVersion": "1"},
        "spec": {"policyName": policy, "samples": "Partial", "bindings": "Implied", "cases": cases},
    }))
    .unwrap()
}

/// Returns the status that was last written to `probe`.
fn last_written(log: &Log, probe: &str) -> Option<Value> {
    let log = log.lock().unwrap();
    let path = format!("/policyprobes/{probe}/status");
    let mut writes = log.iter().rev().filter(|seen| seen.path.contains(&path));
    writes.next().map(|seen| seen.body["status"].clone())
}

fn echo(request: &ReceivedRequest) -> Option<Reply> {
    if request.method == Method::PATCH && request.path.contains("/policyprobes/") {
        let mut probe = request.body.clone();
        probe["spec"] = json!({"policyName": "x", "cases": []});
        probe["metadata"]["resourceVersion"] = json!("1");
        return Some(Reply::json(&probe));
    }
    answer(request)
}

#[tokio::test(flavor = "multi_thread")]
async fn slow_probes_time_out_without_delaying_others() {
    let (mut context, log) = context(AT_MOST_FIVE, echo);
    let limit = Duration::from_millis(600);
    Arc::get_mut(&mut context).unwrap().probe_runner.slots = EvaluationSlots {
        quick: EvaluationSlot::new(Duration::from_millis(60), MAX_QUICK_EVALUATION),
        slow: EvaluationSlot::new(limit, MAX_EVALUATION),
    };
    start(&context);
    for n in 0..4 {
        let name = format!("slow{n}");
        put(&context, long_policy(&name));
        context
            .probes
            .put(probe_of(&name, &name, 256), EventSource::Watched);
        context.probe_runner.add(&id(&name));
    }
    // The four slow policies are being evaluated or wait for a thread.
    context
        .probes
        .put(probe_of("a", "p", 1), EventSource::Watched);
    context.probe_runner.add(&id("a"));
    let begin = std::time::Instant::now();
    until(|| last_written(&log, "p").is_some()).await;
    assert_eq!(last_written(&log, "p").unwrap()["summary"], "1/1");
    assert!(begin.elapsed() < limit * 3, "{:?}", begin.elapsed());
    // A policy can be reconciled at the same time.
    let checked = async {
        // On a busy machine, a reconciliation may end before the schemas are loaded.
        while context.store.get(&id("slow3")).unwrap().result.is_none() {
            reconcile(&context, &id("slow3")).await.unwrap();
        }
    };
    let checked = tokio::time::timeout(Duration::from_secs(60), checked);
    checked.await.unwrap();

    until(|| (0..4).all(|n| last_written(&log, &format!("slow{n}")).is_some())).await;
    let status = last_written(&log, "slow0").unwrap();
    let message = status["conditions"][0]["message"].as_str().unwrap();
    assert!(
        message.contains("the probes of the policy take longer than"),
        "{message}"
    );
    assert_eq!(status["conditions"][0]["reason"], "ProbesPending");
    assert!(context.probe_runner.is_slow(&id("slow0")) && !context.probe_runner.is_slow(&id("a")));
}

/// Returns a context whose API server calls `meddle` when it receives a `SubjectAccessReview`.
fn meddled(meddle: impl Fn(&Context) + Send + Sync + 'static) -> (Arc<Context>, Log) {
    let late_context = Arc::new(OnceLock::<Arc<Context>>::new());
    let of_server = Arc::clone(&late_context);
    let asks = "authorizer.group('apps').resource('deployments').check('scale').allowed()";
    let (context, log) = context(asks, move |request| {
        if request.path.contains("subjectaccessreviews") {
            meddle(of_server.get().unwrap());
            let mut review = request.body.clone();
            review["status"] = json!({"allowed": true});
            return Some(Reply::json(&review));
        }
        echo(request)
    });
    late_context.set(Arc::clone(&context)).unwrap();
    let mut asking = probe_of("a", "p", 1);
    asking.edit(|object| {
        object.spec.authorizer = crate::probe::api::AuthorizerSource::FromCluster;
    });
    context.probes.put(asking, EventSource::Watched);
    start(&context);
    (context, log)
}

/// Waits until the probes of `a` are evaluated. Asserts that their statuses are not written.
async fn evaluated_and_not_written(context: &Context, log: &Log) {
    until(|| {
        let probe_runner = context.probe_runner.lock();
        probe_runner
            .get(&id("a"))
            .is_some_and(|known| known.outcome.is_some())
    })
    .await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(last_written(log, "p"), None);
}

#[tokio::test(start_paused = true)]
async fn recreated_policy_does_not_get_old_results() {
    let (context, log) = meddled(|context| {
        let mut other = policy("false");
        other.metadata.uid = Some("other".to_owned());
        other.metadata.generation = Some(1);
        other.metadata.resource_version = Some("50".to_owned());
        context.store.put(other, EventSource::Watched);
    });
    context.probe_runner.add(&id("a"));
    evaluated_and_not_written(&context, &log).await;
    // In a running controller, the watch would queue the new policy.
    reconcile(&context, &id("a")).await.unwrap();
    until(|| last_written(&log, "p").is_some()).await;
    let status = last_written(&log, "p").unwrap();
    assert_eq!(status["policyGeneration"], 1);
    assert_eq!(status["cases"][0]["outcome"], "Passed");
}

#[tokio::test(start_paused = true)]
async fn status_of_deleted_or_changed_probe_is_not_written() {
    let (context, log) = meddled(|context| drop(context.probes.remove("p")));
    context.probe_runner.add(&id("a"));
    evaluated_and_not_written(&context, &log).await;
    assert!(context.probes.for_policy(&id("a")).unwrap().is_empty());

    let (context, log) = meddled(|context| {
        let mut other = probe_of("a", "p", 2);
        other.edit(|object| {
            object.metadata.uid = Some("other".to_owned());
            object.metadata.resource_version = Some("2".to_owned());
        });
        context.probes.put(other, EventSource::Watched);
    });
    context.probe_runner.add(&id("a"));
    evaluated_and_not_written(&context, &log).await;
    reconcile(&context, &id("a")).await.unwrap();
    until(|| last_written(&log, "p").is_some()).await;
    assert_eq!(last_written(&log, "p").unwrap()["summary"], "2/2");
}
