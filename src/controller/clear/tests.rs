//! Tests of the command `clear`.

use std::sync::atomic::{AtomicUsize, Ordering};

use http::Method;
use serde_json::{Value, json};

use super::super::FIELD_MANAGER;
use super::*;
use crate::cluster::testing::{Log, ReceivedRequest, Reply, client};

const POLICIES: &str = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies";
const PROBES: &str = "/apis/vap-status.dev/v1alpha1/policyprobes";
const OBJECTS: &str = "/apis/vap-status.dev/v1alpha1/mutatingadmissionpolicystatuses";

/// Returns the metadata of an object whose status is owned by `manager`.
fn object(name: &str, manager: &str) -> Value {
    json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata",
           "metadata": {"name": name, "uid": format!("uid-{name}"), "resourceVersion": "1",
                        "managedFields": [{"manager": manager, "subresource": "status", "fieldsType": "FieldsV1",
                                           "fieldsV1": {"f:status": {}}}]}})
}

fn list(objects: &[Value], continue_: &str) -> Reply {
    Reply::json(
        &json!({"apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadataList",
                        "metadata": {"continue": continue_}, "items": objects}),
    )
}

/// Serves two pages of policies and no probes.
#[expect(clippy::unnecessary_wraps, reason = "the signature of a test server")]
fn answer(request: &ReceivedRequest) -> Option<Reply> {
    let written = |kind: &str| Reply::json(&json!({"kind": kind, "metadata": {"name": "x"}}));
    Some(match (&request.method, request.path.as_str()) {
        (&Method::GET, path) if path.starts_with(PROBES) || path.contains("statuses") => {
            Reply::failure(404, "no such resource")
        }
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

fn patches(log: &Log) -> Vec<ReceivedRequest> {
    let log = log.lock().unwrap();
    let patches = log.iter().filter(|seen| seen.method == Method::PATCH);
    patches.cloned().collect()
}

#[tokio::test]
async fn clear_command_removes_owned_fields() {
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
         1 cleared, 2 had no fields of the controller, 1 could not be cleared\n"
    );
    assert_eq!(
        String::from_utf8(err).unwrap(),
        "cannot clear validatingadmissionpolicies.admissionregistration.k8s.io/c: the API server \
         returned 403: user cannot patch; grant the permission to patch \
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
        format!(
            "{POLICIES}/a/status?&force=true&fieldManager=vap-status-controller&fieldValidation=Ignore"
        )
    );
}

#[tokio::test]
async fn clear_command_deletes_status_objects() {
    let (client, log) = client(|request| {
        Some(match (&request.method, request.path.as_str()) {
            (&Method::GET, path) if path.contains("continue=") => list(&[object("b", "x")], ""),
            (&Method::GET, path) if path.starts_with(OBJECTS) => list(&[object("a", "x")], "more"),
            (&Method::GET, _) => Reply::failure(404, "no such resource"),
            (&Method::DELETE, path) if path.starts_with(&format!("{OBJECTS}/a")) => {
                Reply::failure(403, "no")
            }
            _ => Reply::json(&json!({"kind": "Status", "status": "Success"})),
        })
    });
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let summary = clear_all(&client, &mut out, &mut err).await;
    assert_eq!((summary.n_cleared, summary.n_failed), (1, 1));
    let out = String::from_utf8(out).unwrap();
    assert!(
        out.starts_with("mutatingadmissionpolicystatuses.vap-status.dev/b deleted\n"),
        "{out}"
    );
    let err = String::from_utf8(err).unwrap();
    assert!(
        err.contains(
            "grant the permission to delete mutatingadmissionpolicystatuses.vap-status.dev"
        ),
        "{err}"
    );
    let log = log.lock().unwrap();
    let deletions = log.iter().filter(|seen| seen.method == Method::DELETE);
    assert_eq!(deletions.count(), 2);
}

#[tokio::test(start_paused = true)]
async fn clear_command_times_out_without_response() {
    let (client, _) = client(|_| None);
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let summary = clear_all(&client, &mut out, &mut err).await;
    // Two lists fail, of policies and of probes, and one list for each kind of status objects.
    assert_eq!(summary.n_failed, 2 + SubjectKind::opt_in().count());
    let err = String::from_utf8(err).unwrap();
    assert!(err.contains("no response within 10 s"), "{err}");
}

const LEASE: &str = "/apis/coordination.k8s.io/v1/namespaces/vap/leases/lease";

/// Runs `clear` in a cluster with a Lease. `looks(n)` is the response to a read of the Lease after `n` earlier reads.
/// Returns whether everything was cleared, the number of writes, and the error output.
async fn clear_with_lease(
    is_forced: bool,
    looks: impl Fn(usize) -> Reply + Send + Sync + 'static,
) -> (bool, usize, String) {
    let n_looks = AtomicUsize::new(0);
    let (client, log) = client(move |request| match request.path.as_str() {
        LEASE => Some(looks(n_looks.fetch_add(1, Ordering::Relaxed))),
        path if path.starts_with(POLICIES) && request.method == Method::GET => {
            Some(list(&[object("a", FIELD_MANAGER)], ""))
        }
        _ => answer(request),
    });
    let options = Options {
        lease_namespace: "vap".to_owned(),
        lease_name: "lease".to_owned(),
        is_forced,
    };
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let is_clear = clear_unless_led(&client, options, &mut out, &mut err).await;
    let complaints = String::from_utf8(err).unwrap();
    (is_clear, patches(&log).len(), complaints)
}

/// Returns a Lease that was renewed `n_renewals` times.
fn lease(holder: &str, n_renewals: usize) -> Reply {
    Reply::json(&json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease"},
        "spec": {"holderIdentity": holder, "leaseDurationSeconds": 15,
                 "renewTime": format!("2026-01-01T00:00:{:02}.000000Z", n_renewals % 60)},
    }))
}

#[tokio::test(start_paused = true)]
async fn clear_command_fails_while_controller_runs() {
    // The controller's clock is months late, but it renews the Lease every two seconds.
    let (is_clear, n_writes, complaints) =
        clear_with_lease(false, |n_looks| lease("pod-a", n_looks / 4)).await;
    assert_eq!((is_clear, n_writes), (false, 0));
    assert!(
        complaints.ends_with(
            "nothing was cleared: the controller pod-a is running, renews the Lease vap/lease and would write the \
             statuses again; stop it first, for example with `kubectl -n vap scale deployment \
             -l app.kubernetes.io/name=vap-status-controller --replicas=0`, or set --force\n"
        ),
        "{complaints}"
    );
    let forced = clear_with_lease(true, |n_looks| lease("pod-a", n_looks / 4)).await;
    assert_eq!(forced, (true, 1, String::new()));
}

#[tokio::test(start_paused = true)]
async fn clear_command_succeeds_after_controller_stopped_or_was_killed() {
    let released = clear_with_lease(false, |_| lease("", 0)).await;
    assert_eq!(released, (true, 1, String::new()));

    let start = tokio::time::Instant::now();
    let (is_clear, n_writes, complaints) = clear_with_lease(false, |_| lease("pod-a", 0)).await;
    assert_eq!((is_clear, n_writes), (true, 1), "{complaints}");
    assert!((15..17).contains(&start.elapsed().as_secs()));
    assert_eq!(
        complaints,
        "pod-a holds the Lease vap/lease: waiting up to 15 s to see whether it is renewed\n"
    );

    let (is_clear, n_writes, complaints) =
        clear_with_lease(false, |_| Reply::failure(404, "no such lease")).await;
    assert_eq!((is_clear, n_writes), (true, 1));
    assert!(complaints.starts_with("there is no Lease vap/lease: "));
}

#[tokio::test(start_paused = true)]
async fn clear_command_fails_with_unknown_or_new_leader() {
    let (is_clear, n_writes, complaints) =
        clear_with_lease(false, |_| Reply::failure(403, "user cannot get")).await;
    assert_eq!((is_clear, n_writes), (false, 0));
    assert!(
        complaints.contains("user cannot get; grant the permission to get leases"),
        "{complaints}"
    );

    let (is_clear, n_writes, complaints) = clear_with_lease(false, |n_looks| {
        lease(if n_looks < 2 { "" } else { "pod-b" }, 0)
    })
    .await;
    assert_eq!((is_clear, n_writes), (false, 1));
    assert!(
        complaints.starts_with("pod-b acquired the Lease vap/lease in the meantime"),
        "{complaints}"
    );

    // The duration in the Lease is a year. The command waits only for `MAX_WATCH`.
    let (is_clear, n_writes, complaints) = clear_with_lease(false, |_| {
        Reply::json(&json!({
            "apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "lease"},
            "spec": {"holderIdentity": "pod-a", "leaseDurationSeconds": 31_536_000},
        }))
    })
    .await;
    assert_eq!((is_clear, n_writes), (false, 0));
    assert!(
        complaints.contains("longer than this command waits"),
        "{complaints}"
    );
}
