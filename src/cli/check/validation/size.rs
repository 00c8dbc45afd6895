//! Checks the size of an object against the limits of requests and of etcd.

use goyaml::{Data, Node};
use serde_json::Value;

use super::Violations;
use crate::policy::rule::Rule;

/// Maximum size of a request, in bytes.
///
/// Source: `k8s.io/apiserver` `pkg/server/config.go`, `NewConfig`, `MaxRequestBodyBytes`.
const MAX_REQUEST: usize = 3 * 1024 * 1024;

/// Maximum size of an object in etcd by default, in bytes.
///
/// Source: etcd `server/embed/config.go`, `DefaultMaxRequestBytes`.
const MAX_STORED: usize = 1536 * 1024;

/// Adds a violation if an object is too large to send or to store.
pub(super) fn check(root: &Node, violations: &mut Violations) {
    let n = sent(root);
    if n > MAX_REQUEST {
        let message =
            format!("a request must not exceed {MAX_REQUEST} bytes, but this object has {n}");
        add(violations, message);
        return;
    }
    let metadata = root.get("metadata").map_or(0, |metadata| {
        let entries = metadata.entries();
        // If an object is too large, the API server drops its managed fields.
        let kept = entries.filter(|(name, _)| *name != "managedFields");
        kept.map(|(_, entry)| stored(&entry.node)).sum()
    });
    let n = metadata + root.get("spec").map_or(0, stored);
    if n > MAX_STORED {
        let message = format!(
            "an object in etcd must not exceed {MAX_STORED} bytes, but this object has {n}"
        );
        add(violations, message);
    }
}

fn add(violations: &mut Violations, message: String) {
    let advice = "split it into several objects".to_owned();
    violations.add(Rule::TooLarge, "", message, Some(advice));
}

/// Returns the size of a value in JSON, in bytes.
fn sent(node: &Node) -> usize {
    match &node.data {
        Data::Scalar(Value::String(text), _) => text.len() + 2,
        Data::Scalar(value, _) => value.to_string().len(),
        Data::List(items) => items.iter().map(|item| sent(item) + 1).sum::<usize>() + 2,
        Data::Map(entries) => {
            let entries = entries.iter();
            let sizes = entries.map(|(name, entry)| name.len() + 4 + sent(&entry.node));
            sizes.sum::<usize>() + 2
        }
    }
}

/// Returns the size of a value in protocol buffers, in bytes: values have a tag and a length, but no field names.
fn stored(node: &Node) -> usize {
    let framed = |n: usize| 1 + n.checked_ilog2().map_or(1, |bits| bits as usize / 7 + 1) + n;
    match &node.data {
        Data::Scalar(Value::String(text), _) => framed(text.len()),
        Data::Scalar(..) => 2,
        Data::List(items) => items.iter().map(stored).sum(),
        Data::Map(entries) => framed(entries.iter().map(|(_, entry)| stored(&entry.node)).sum()),
    }
}
