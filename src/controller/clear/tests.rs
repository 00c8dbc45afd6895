//! Tests of clearing.

use http::Method;
use serde_json::{Value, json};

use super::*;
use crate::controller::testing::{Log, Reply, Seen, client};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const PROBES: &str = "/apis/vap-status.dev/v1alpha1/policyprobes";

/// An object whose status has something of ours, or of another.
fn object(name: &str, manager: &str) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
           "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
                        "managedFields": [{"manager": manager, "subresource": "status"}]}})
}

fn list(objects: &[Value], continue_: &str) -> Reply {
    Reply::json(
        &json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                        "metadata": {"continue": continue_}, "items": objects}),
    )
}

/// Two pages of policies, and no kind of probes.
#[expect(
    clippy::unnecessary_wraps,
    reason = "the form that a server of a test has"
)]
fn answer(request: &Seen) -> Option<Reply> {
    let written = |kind: &str| Reply::json(&json!({"kind": kind, "metadata": {"name": "x"}}));
    Some(match (&request.method, request.path.as_str()) {
        (&Method::GET, path) if path.starts_with(PROBES) => Reply::failure(404, "no such resource"),
        (&Method::GET, path) if path.contains("continue=") => list(
            &[object("c", FIELD_MANAGER), object("d", FIELD_MANAGER)],
            "",
        ),
        (&Method::GET, path) if path.starts_with(POLICIES) => {
            list(&[object("a", FIELD_MANAGER), object("b", "others")], "more")
        }
        (_, path) if path.starts_with(&format!("{POLICIES}/c/")) => {
            Reply::failure(403, "user cannot patch")
        }
        (_, path) if path.starts_with(&format!("{POLICIES}/d/")) => Reply::failure(404, "gone"),
        _ => written("ValidatingAdmissionPolicy"),
    })
}

fn patches(log: &Log) -> Vec<Seen> {
    let log = log.lock().unwrap();
    let patches = log.iter().filter(|seen| seen.method == Method::PATCH);
    patches.cloned().collect()
}

#[tokio::test]
async fn what_is_ours_is_cleared_and_said() {
    let (client, log) = client(answer);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let summary = clear_all(&client, &mut out, &mut err).await;
    let expect = Summary {
        n_cleared: 1,
        n_untouched: 2,
        n_failed: 1,
    };
    assert_eq!(summary, expect);
    assert_eq!(
        String::from_utf8(out).unwrap(),
        "validatingadmissionpolicies.admissionregistration.k8s.io/a cleared\n\
         1 cleared, 2 had nothing of ours, 1 could not be cleared\n"
    );
    assert_eq!(
        String::from_utf8(err).unwrap(),
        "cannot clear validatingadmissionpolicies.admissionregistration.k8s.io/c: the API server \
         answered 403: user cannot patch; it takes the permission to patch \
         validatingadmissionpolicies.admissionregistration.k8s.io, status\n"
    );
    let patches = patches(&log);
    assert_eq!(patches.len(), 3);
    let expect = json!({"apiVersion": "admissionregistration.k8s.io/v1",
                        "kind": "ValidatingAdmissionPolicy",
                        "metadata": {"name": "a", "uid": "uid-a"}});
    assert_eq!(patches[0].body, expect);
    assert_eq!(
        patches[0].path,
        format!("{POLICIES}/a/status?&force=true&fieldManager=vap-status-controller")
    );
}

#[tokio::test(start_paused = true)]
async fn an_api_server_that_does_not_answer_is_not_waited_for() {
    let (client, _) = client(|_| None);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let summary = clear_all(&client, &mut out, &mut err).await;
    assert_eq!(summary.n_failed, 2);
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains("no answer within 10 s"), "{err}");
}
