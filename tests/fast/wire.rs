//! Tests the parsing of damaged lists and watch streams. A damaged object must not affect other objects. The boundaries
//! of chunks must not change the result.

use serde_json::{Value, json};
use vap_status_controller::controller::fuzzing::{
    Counts, list_policies, list_probes, other_kinds, policy, probe, watch_policies, watch_probes,
};

use crate::random::Random;

const N_DAMAGED: usize = 2_000;

fn policy_object() -> Value {
    json!({"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingAdmissionPolicy",
        "metadata": {"name": "a", "uid": "u", "generation": 2, "resourceVersion": "7",
            "labels": {"a": "b"}, "managedFields": [{"manager": "m", "fieldsV1": {"f:spec": {}}}]},
        "spec": {"validations": [{"expression": "true"}]}, "status": {"observedGeneration": 1}})
}

fn probe_object() -> Value {
    json!({"apiVersion": "vap-status.dev/v1alpha1", "kind": "PolicyProbe",
        "metadata": {"name": "p", "generation": 1, "resourceVersion": "8"},
        "spec": {"policyName": "a", "cases": [{"name": "c", "request": {"object": {"a": [{}, null]}},
            "expect": {"decision": "Allow"}}]}})
}

fn line(type_: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": type_, "object": object}))
}

fn watch(object: &Value) -> String {
    let bookmark = json!({"metadata": {"resourceVersion": "9",
        "annotations": {"k8s.io/initial-events-end": "true"}}});
    let status = json!({"kind": "Status", "code": 410, "message": "too old"});
    [
        line("ADDED", object),
        line("MODIFIED", &json!({"metadata": {"name": 7}})),
        line("DELETED", object),
        line("BOOKMARK", &bookmark),
        line("ERROR", &status),
        "not JSON\n".to_owned(),
    ]
    .concat()
}

fn page(object: &Value) -> String {
    json!({"metadata": {"resourceVersion": "9", "continue": "c"}, "items": [object, 7, object]})
        .to_string()
}

fn damaged(text: &str, random: &mut Random) -> Vec<u8> {
    let mut bytes = text.as_bytes().to_vec();
    for _ in 0..=random.below(4) {
        let at = random.below(bytes.len());
        match random.below(4) {
            0 => bytes.truncate(at.max(1)),
            1 => bytes.splice(at..at, b"{\"a\":[".repeat(200)).for_each(drop),
            2 => drop(bytes.remove(at.min(bytes.len() - 1))),
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = u8::try_from(random.below(256)).unwrap();
                }
            }
        }
        if bytes.is_empty() {
            bytes.push(b'{');
        }
    }
    bytes
}

#[test]
fn parsed_and_unreadable_items_are_counted() {
    let expected = Counts {
        objects: 2,
        unreadable: 1,
        others: 2,
        rejected: 1,
    };
    assert_eq!(
        watch_policies(watch(&policy_object()).as_bytes(), 7),
        expected
    );
    assert_eq!(watch_probes(watch(&probe_object()).as_bytes(), 7), expected);
    let listed = Counts {
        objects: 2,
        unreadable: 1,
        ..Counts::default()
    };
    assert_eq!(list_policies(page(&policy_object()).as_bytes(), 7), listed);
    assert_eq!(list_probes(page(&probe_object()).as_bytes(), 7), listed);
    assert_eq!(policy(&policy_object().to_string()), Some(true));
    assert_eq!(probe(&probe_object().to_string()), Some(true));
    assert_eq!(probe("7"), None);
}

/// Go's decoder returns the nearest double. The default of `serde_json` can differ in the last digit.
#[test]
fn numbers_are_parsed_as_nearest_doubles() {
    let number: Value = serde_json::from_str("1234422795224458.2").unwrap();
    assert_eq!(number, json!(1_234_422_795_224_458.2));
}

#[test]
fn chunk_size_does_not_change_result_for_damaged_bytes() {
    let mut random = Random(1);
    let texts = [watch(&policy_object()), watch(&probe_object())];
    let mut n_objects = 0;
    for n in 0..N_DAMAGED {
        let is_probe = n % 2 == 1;
        let bytes = damaged(&texts[usize::from(is_probe)], &mut random);
        let read = if is_probe {
            watch_probes
        } else {
            watch_policies
        };
        let whole = read(&bytes, bytes.len());
        n_objects += whole.objects;
        for chunk in [1, 3, 1 + random.below(100)] {
            assert_eq!(
                read(&bytes, chunk),
                whole,
                "{}",
                String::from_utf8_lossy(&bytes)
            );
        }
    }
    assert!(n_objects > 500, "{n_objects}");
}

#[test]
fn damaged_pages_and_objects_are_read_or_rejected() {
    let mut random = Random(2);
    let (mut n_read, mut n_rejected) = (0, 0);
    for n in 0..N_DAMAGED {
        let object = if n % 2 == 0 {
            policy_object()
        } else {
            probe_object()
        };
        let bytes = damaged(&page(&object), &mut random);
        for counts in [list_policies(&bytes, 7), list_probes(&bytes, 7)] {
            n_read += counts.objects + counts.unreadable;
            n_rejected += counts.rejected;
        }
        let text = damaged(&object.to_string(), &mut random);
        let text = String::from_utf8_lossy(&text);
        let _ = (policy(&text), probe(&text));
        other_kinds(&text);
    }
    assert!(n_read > 100 && n_rejected > 100, "{n_read} {n_rejected}");
}
