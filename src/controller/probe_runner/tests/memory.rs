//! Tests of memory limits. An object that needs much memory must not affect other objects, and the total memory is
//! bounded.

use std::fmt::Write as _;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use serde_json::{Value, json};

use super::*;
use crate::controller::probe_runner::stale::{MaintenanceTask, run_task, tasks};
use crate::controller::process::memory::{MAX_OBJECT, MAX_PROBES, MAX_RESULTS};
use crate::controller::tests::id;

const MIB: usize = 1 << 20;

/// Returns 1.2 MB of JSON that needs more than 100 MiB after parsing.
fn many_maps() -> String {
    let mut object =
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"a":["#.to_owned();
    object.push_str(&r#"{"b":0},"#.repeat(150_000));
    object.push_str("{}]}");
    object
}

fn named_probe(name: &str, policy: &str, created_at: u64, object: &str) -> String {
    format!(
        r#"{{"metadata":{{"name":"{name}","uid":"{name}","generation":1,"resourceVersion":"{}",
            "creationTimestamp":"2026-01-01T00:00:{:02}Z"}},
            "spec":{{"policyName":"{policy}","samples":"Partial","bindings":"Implied","cases":[{{"name":"many",
            "request":{{"object":{object},"namespaceObject":{{"metadata":{{"name":"default"}}}}}},
            "expect":{{"decision":"Deny"}}}}]}}}}"#,
        created_at + 1,
        created_at % 60,
    )
}

fn sound(name: &str, policy: &str, created_at: u64) -> String {
    let object = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":6}}"#;
    named_probe(name, policy, created_at, object)
}

/// Stores a probe as the watch does. Returns the allocated bytes afterwards, and their maximum.
fn receive(context: &Context, text: &str) -> (usize, usize) {
    let measured = allocation_counter::measure(|| {
        if let Ok(probe) = serde_json::from_str::<Probe>(text) {
            context.probes.put(probe, EventSource::Watched);
        }
    });
    let current = usize::try_from(measured.bytes_current).unwrap_or_default();
    (current, usize::try_from(measured.bytes_max).unwrap())
}

#[tokio::test(start_paused = true)]
async fn large_probe_affects_only_itself() {
    let (context, log) = context(AT_MOST_FIVE, server(|| None));
    start(&context);
    receive(&context, &sound("p", "a", 0));
    let large = named_probe("large", "a", 1, &many_maps());
    let (stored, peak) = receive(&context, &large);
    assert!(stored < 8 << 10, "{stored}");
    assert!(peak < 6 * MIB, "{peak}");
    let of_policy = context.probes.for_policy(&id("a")).unwrap();
    let problem = of_policy[0].problem.as_deref().unwrap();
    assert!(problem.starts_with("the probe needs 1"), "{problem}");
    assert!(
        problem.ends_with("the limit is 16 MiB: split it or use smaller objects"),
        "{problem}"
    );

    // The other probe of the policy is evaluated, and both probes have a status.
    reconciled(&context, &log, 2).await;
    let status_of = |name: &str| -> Value {
        let log = log.lock().unwrap();
        let path = format!("/policyprobes/{name}/status");
        let write = log.iter().rev().find(|seen| seen.path.contains(&path));
        write.map_or(Value::Null, |seen| seen.body["status"].clone())
    };
    assert_eq!(status_of("p")["cases"][0]["outcome"], "Passed");
    let ready = status_of("large")["conditions"][0].clone();
    assert_eq!(
        (&ready["status"], &ready["reason"]),
        (&json!("Unknown"), &json!("ProbesPending"))
    );
    assert!(
        ready["message"].as_str().unwrap().contains("of memory"),
        "{ready}"
    );

    // The large probe is evaluated after it becomes smaller.
    receive(&context, &sound("large", "a", 30));
    let n_writes = outcomes(&log).len();
    reconciled(&context, &log, n_writes + 1).await;
    until(|| status_of("large")["cases"][0]["outcome"] == "Passed").await;
}

#[tokio::test(start_paused = true)]
async fn probe_within_limit_is_stored_as_json() {
    let (context, _) = context(AT_MOST_FIVE, server(|| None));
    let mut object =
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"a":["#.to_owned();
    object.push_str(&r#"{"b":0},"#.repeat(10_000));
    object.push_str("{}]}");
    let text = named_probe("p", "a", 1, &object);
    let (stored, peak) = receive(&context, &text);
    assert!(stored < text.len() + (8 << 10), "{stored}");
    assert!(peak < MAX_OBJECT + 3 * text.len(), "{peak}");
    assert!(
        context.probes.for_policy(&id("a")).unwrap()[0]
            .problem
            .is_none()
    );
    assert!(context.probes.n_bytes() >= text.len() - 1024);
}

#[tokio::test(start_paused = true)]
async fn oldest_probes_are_stored_first_within_memory_limit() {
    let listed = Arc::new(Mutex::new(Value::Null));
    let list = Arc::clone(&listed);
    let other = server(|| None);
    let (context, _) = context(AT_MOST_FIVE, move |request| {
        if request.method == Method::GET && request.path.contains("/policyprobes?") {
            let items = json!({"metadata": {}, "items": [list.lock().unwrap().clone()]});
            return Some(Reply::json(&items));
        }
        other(request)
    });
    start(&context);
    let n_bytes = {
        receive(&context, &sound("p1", "a", 1));
        context.probes.n_bytes()
    };
    context
        .probes
        .set_limits(20 * n_bytes, 3 * n_bytes + n_bytes / 2);
    for age in [5, 4, 2, 3] {
        receive(
            &context,
            &sound(&format!("p{age}"), &format!("b{age}"), age),
        );
    }
    let problems = || -> Vec<Option<String>> {
        let of = |policy: &str| {
            context.probes.for_policy(&id(policy)).unwrap()[0]
                .problem
                .clone()
        };
        ["a", "b2", "b3", "b4", "b5"].map(of).to_vec()
    };
    let is_rejected = || problems().iter().map(Option::is_some).collect::<Vec<_>>();
    assert_eq!(is_rejected(), [false, false, false, true, true]);
    let text = problems()[3].clone().unwrap();
    assert!(text.starts_with("there is no room for the probe"), "{text}");
    // Until memory becomes free, no rejected probe is read again.
    assert!(
        !tasks(&context)
            .iter()
            .any(|task| matches!(task, MaintenanceTask::Readmit(_)))
    );

    context.probes.remove("p2");
    let due: Vec<_> = tasks(&context)
        .into_iter()
        .filter(|task| matches!(task, MaintenanceTask::Readmit(_)))
        .collect();
    assert_eq!(due, [MaintenanceTask::Readmit("p4".to_owned())]);
    *listed.lock().unwrap() = serde_json::from_str(&sound("p4", "b4", 4)).unwrap();
    run_task(&context, due[0].clone()).await;
    let of = |policy: &str| {
        context.probes.for_policy(&id(policy)).unwrap()[0]
            .problem
            .clone()
    };
    assert_eq!(of("b4"), None);
    assert!(of("b5").is_some());

    // The probes of one policy have a separate limit.
    context
        .probes
        .set_limits(2 * n_bytes + n_bytes / 2, 20 * n_bytes);
    for age in [12, 11, 10] {
        receive(&context, &sound(&format!("q{age}"), "c", age));
    }
    let of_policy = context.probes.for_policy(&id("c")).unwrap();
    let rejected: Vec<bool> = of_policy
        .iter()
        .map(|probe| probe.problem.is_some())
        .collect();
    assert_eq!(rejected, [false, false, true]);
}

#[tokio::test(start_paused = true)]
async fn large_params_are_not_parsed() {
    let text =
        Arc::new(many_maps().replace("\"name\":\"d\"", "\"name\":\"d\",\"resourceVersion\":\"1\""));
    let body = Arc::clone(&text);
    let other = server(|| None);
    let (context, log) = context(AT_MOST_FIVE, move |request| {
        if request.path.starts_with("/apis/apps/v1/namespaces/") {
            let mut reply = Reply::json(&Value::Null);
            reply.body = body.to_string();
            return Some(reply);
        }
        if request.path.starts_with("/apis/apps/v1/deployments?watch") {
            return Some(Reply::watch(&[]));
        }
        if request.path.starts_with("/apis/apps/v1/deployments?") {
            let item = |n: usize| {
                json!({"metadata": {"name": format!("d{n}"), "namespace": "n",
                "resourceVersion": "1"}})
            };
            let list =
                json!({"metadata": {"resourceVersion": "1"}, "items": [item(0), item(1), item(2)]});
            return Some(Reply::json(&list));
        }
        other(request)
    });
    start(&context);
    let mut with_params = policy(AT_MOST_FIVE);
    let spec = with_params.spec.as_mut().unwrap();
    spec.param_kind =
        serde_json::from_value(json!({"apiVersion": "apps/v1", "kind": "Deployment"})).unwrap();
    with_params.metadata.resource_version = Some("20".to_owned());
    put(&context, with_params);
    let bound: ValidatingAdmissionPolicyBinding = serde_json::from_value(json!({
        "metadata": {"name": "b", "uid": "b", "resourceVersion": "1",
                     "annotations": {"vap-status.dev/probe-inputs": "FromCluster"}},
        "spec": {"policyName": "a", "validationActions": ["Deny"],
                 "paramRef": {"selector": {}, "parameterNotFoundAction": "Deny"}},
    }))
    .unwrap();
    context.bindings.put(bound, EventSource::Watched);
    receive(
        &context,
        &sound("p", "a", 0).replace("Implied", "FromCluster"),
    );
    let difference = || -> Option<String> {
        let log = log.lock().unwrap();
        let mut writes = log
            .iter()
            .filter(|seen| seen.path.contains("/policyprobes/p/status"));
        let difference = |seen: &ReceivedRequest| {
            seen.body["status"]["cases"][0]["difference"]
                .as_str()
                .map(str::to_owned)
        };
        writes.rfind(|_| true).and_then(difference)
    };
    let is_told =
        || difference().is_some_and(|text| text.contains("of memory, but the limit is 16 MiB"));
    for _ in 0..200 {
        reconcile(&context, &id("a")).await.unwrap();
        if is_told() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(is_told(), "{:?}", difference());
}

/// Returns a random object that needs much memory.
fn hostile(random: &mut impl FnMut(usize) -> usize) -> String {
    let n = 1 + random(120_000);
    let item = [
        "{}",
        "[]",
        "[[[[]]]]",
        r#"{"b":{"c":{}}}"#,
        r#""""#,
        "0",
        r#"{"a":1,"b":2,"c":3}"#,
    ][random(7)];
    let mut object =
        r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"a":"#.to_owned();
    match random(5) {
        0 => write!(object, "[{}0]", format!("{item},").repeat(n)).unwrap(),
        1 => {
            object.push('{');
            for idx in 0..n / 4 {
                write!(object, r#""k{idx}":{item},"#).unwrap();
            }
            object.push_str(r#""z":0}"#);
        }
        2 => write!(object, "\"{}\"", "x".repeat(n * 10)).unwrap(),
        3 => write!(object, "{}0{}", "[".repeat(n / 10), "]".repeat(n / 10)).unwrap(),
        _ => write!(
            object,
            "[{}0]",
            format!("\"{}\",", "\\u0001".repeat(random(40))).repeat(n / 40)
        )
        .unwrap(),
    }
    object.push('}');
    object
}

#[tokio::test(start_paused = true)]
async fn hostile_probes_do_not_prevent_evaluation_of_valid_probe() {
    let (context, log) = context(AT_MOST_FIVE, server(|| None));
    start(&context);
    receive(&context, &sound("p", "a", 0));
    let mut seed = 41_u64;
    let mut random = move |n: usize| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        usize::try_from(seed >> 33).unwrap() % n
    };
    let mut highest = 0;
    for idx in 0..200_u64 {
        let object = hostile(&mut random);
        let policy = ["a", "b", "c", "gone"][random(4)];
        let text = named_probe(&format!("h{idx}"), policy, 1 + idx % 50, &object);
        let (_, peak) = receive(&context, &text);
        highest = highest.max(peak.saturating_sub(3 * text.len()));
        assert!(context.probes.n_bytes() <= MAX_PROBES);
    }
    // The limit covers one parsed object. The additional 2 MiB are for its JSON and the nodes of the indexes.
    assert!(highest <= MAX_OBJECT + 2 * MIB, "{highest}");
    assert!(context.probes.n_bytes() > MIB);
    reconcile(&context, &id("a")).await.unwrap();
    let passed = || {
        let log = log.lock().unwrap();
        let mut writes = log
            .iter()
            .filter(|seen| seen.path.contains("/policyprobes/p/status"));
        writes.any(|seen| seen.body["status"]["cases"][0]["outcome"] == "Passed")
    };
    until(passed).await;
    assert!(context.probe_runner.results.in_use() <= MAX_RESULTS);
}

#[test]
fn deeply_nested_probe_has_problem() {
    let deep = format!("{}1{}", r#"{"a":"#.repeat(5_000), "}".repeat(5_000));
    let probe: Probe = serde_json::from_str(&named_probe("p", "a", 0, &deep)).unwrap();
    assert!(probe.problem.is_some());
    assert_eq!(probe.spec.policy_name, "a");
}
