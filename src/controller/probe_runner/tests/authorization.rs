//! Tests of permission checks of CEL's `authorizer`.

use super::*;
use crate::controller::tests::id;

/// Returns a context, and the log of the requests to its API server. The context contains a policy whose validation is
/// `expression`, and a probe with `authorizer: FromCluster`. The API server responds to permission checks with
/// `answers`.
fn asking(
    expression: &str,
    answers: impl Fn(&str) -> Option<Reply> + Send + Sync + 'static,
) -> (Arc<Context>, Log) {
    let stored = expression.to_owned();
    let (context, log) = context(expression, move |request| {
        if request.path.contains("subjectaccessreviews") {
            return answers(verb(request));
        }
        answer_of(&stored, request)
    });
    let mut asking = probe(1, 6, "Implied");
    asking.edit(|object| {
        object.spec.authorizer = crate::probe::api::AuthorizerSource::FromCluster;
        let mut second = object.spec.cases[0].clone();
        second.name = "again".to_owned();
        object.spec.cases.push(second);
    });
    context.probes.put(asking, EventSource::Watched);
    start(&context);
    (context, log)
}

fn verb(request: &ReceivedRequest) -> &str {
    let verb = &request.body["spec"]["resourceAttributes"]["verb"];
    verb.as_str().unwrap()
}

#[expect(clippy::unnecessary_wraps, reason = "the type of a test response")]
fn allowed(is_allowed: bool) -> Option<Reply> {
    Some(Reply::json(&json!({
        "apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview",
        "spec": {}, "status": {"allowed": is_allowed},
    })))
}

fn verbs(log: &Log) -> Vec<String> {
    let log = log.lock().unwrap();
    log.iter()
        .filter(|seen| seen.path.contains("subjectaccessreviews"))
        .map(|seen| verb(seen).to_owned())
        .collect()
}

fn last_difference(log: &Log) -> String {
    let log = log.lock().unwrap();
    let mut writes = log.iter().rev();
    let write = writes.find(|seen| seen.path.contains("/policyprobes/"));
    let difference = &write.unwrap().body["status"]["cases"][0]["difference"];
    difference.as_str().unwrap_or_default().to_owned()
}

#[tokio::test(start_paused = true)]
async fn each_access_review_is_sent_once_and_may_require_another() {
    let resource = "authorizer.group('apps').resource('deployments')";
    let chain = format!(
        "!({resource}.check('one').allowed() ? {resource}.check('two').allowed() : \
         {resource}.check('three').allowed())"
    );
    let (context, log) = asking(&chain, |_| allowed(true));
    reconciled(&context, &log, 1).await;
    assert_eq!(outcomes(&log), ["Passed"]);
    let mut verbs = verbs(&log);
    verbs.sort();
    verbs.dedup();
    assert_eq!(verbs.len(), self::verbs(&log).len(), "{verbs:?}");
    assert!(verbs.contains(&"two".to_owned()), "{verbs:?}");
}

#[tokio::test(start_paused = true)]
async fn failed_review_leaves_case_pending() {
    let check = "!authorizer.group('apps').resource('deployments').check('one').allowed()";
    let (context, log) = asking(check, |_| Some(Reply::failure(403, "no")));
    reconciled(&context, &log, 1).await;
    assert_eq!(outcomes(&log), ["Pending"]);
    let difference = last_difference(&log);
    assert!(
        difference.contains("grant create on subjectaccessreviews.authorization.k8s.io")
            && difference.contains("vap-status-controller-subject-access-reviews"),
        "{difference}"
    );
    // The error is permanent, so no second check is sent.
    assert_eq!(verbs(&log).len(), 1);

    let (context, log) = asking(check, |_| Some(Reply::failure(503, "down")));
    reconciled(&context, &log, 1).await;
    let difference = last_difference(&log);
    assert!(
        difference.contains("did not respond to a permission check of the variable `authorizer`"),
        "{difference}"
    );
    // The check is sent again after a backoff.
    until(|| verbs(&log).len() > 1).await;
}

#[tokio::test(start_paused = true)]
async fn case_that_needs_no_access_review_is_decided() {
    let check = "object.spec.replicas <= 5 && \
                 authorizer.group('apps').resource('deployments').check('one').allowed()";
    let (context, log) = asking(check, |_| Some(Reply::failure(403, "no")));
    reconciled(&context, &log, 1).await;
    assert_eq!(outcomes(&log), ["Passed"]);
    assert_eq!(verbs(&log), Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn hanging_review_does_not_block_evaluation() {
    let check = "!authorizer.group('apps').resource('deployments').check('one').allowed()";
    let (context, log) = asking(check, |_| None);
    reconcile(&context, &id("a")).await.unwrap();
    // The policy is reconciled although the results of its probes are unknown.
    let status = context.store.get(&id("a")).unwrap().status;
    let conditions = serde_json::to_value(status).unwrap()["conditions"].clone();
    assert!(
        conditions.to_string().contains("it is not evaluated yet"),
        "{conditions}"
    );
    until(|| !outcomes(&log).is_empty()).await;
    assert!(last_difference(&log).contains("no response within 10 s"));
}

#[tokio::test(start_paused = true)]
async fn checks_over_rate_limit_leave_cases_pending_and_are_sent_later() {
    let check =
        "!authorizer.group('apps').resource('deployments').check(object.metadata.name).allowed()";
    let (context, log) = asking(check, |_| allowed(true));
    let mut many = Probe::clone(&context.probes.for_policy(&id("a")).unwrap()[0]);
    many.edit(|object| {
        object.metadata.generation = Some(2);
        object.metadata.resource_version = Some("2".to_owned());
        let case = object.spec.cases[0].clone();
        object.spec.cases = (0..150)
            .map(|n| {
                let mut case = case.clone();
                case.name = format!("case {n}");
                case.request.object.as_mut().unwrap()["metadata"]["name"] = json!(format!("v{n}"));
                case
            })
            .collect();
    });
    context.probes.put(many, EventSource::Watched);
    reconciled(&context, &log, 1).await;
    let n_first = verbs(&log).len();
    assert!((100..110).contains(&n_first), "{n_first}");
    let text = log.lock().unwrap().iter().rev().find_map(|seen| {
        let is_probe = seen.path.contains("/policyprobes/");
        is_probe.then(|| seen.body["status"].to_string())
    });
    let text = text.unwrap();
    assert!(text.contains("too many checks of `authorizer`"), "{text}");
    assert!(
        text.contains("\"Passed\"") && text.contains("\"Pending\""),
        "{text}"
    );
    // Cached responses are used. The other checks are sent when the rate limit allows.
    until(|| {
        let log = log.lock().unwrap();
        let mut writes = log
            .iter()
            .rev()
            .filter(|seen| seen.path.contains("/policyprobes/"));
        writes
            .next()
            .is_some_and(|seen| seen.body["status"]["summary"] == "150/150")
    })
    .await;
    let mut asked = verbs(&log);
    asked.sort();
    asked.dedup();
    assert_eq!(asked.len(), 150);
    assert_eq!(
        verbs(&log).len(),
        150,
        "a response must be cached for a minute"
    );
}
