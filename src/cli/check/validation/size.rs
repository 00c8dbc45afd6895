//! The size of an object as the API server receives and stores it.

use goyaml::{Data, Node};
use serde_json::Value;

use super::Faults;
use crate::policy::rule::Rule;

/// The most bytes of a request.
///
/// Source: `k8s.io/apiserver` `pkg/server/config.go`, `NewConfig`, `MaxRequestBodyBytes`.
const MAX_REQUEST: usize = 3 * 1024 * 1024;

/// The most bytes that etcd takes, unless it is told otherwise.
///
/// Source: etcd `server/embed/config.go`, `DefaultMaxRequestBytes`.
const MAX_STORED: usize = 1536 * 1024;

/// Adds a fault where an object is too large to be sent, or to be stored.
pub(super) fn check(root: &Node, faults: &mut Faults) {
    let n = sent(root);
    if n > MAX_REQUEST {
        let message =
            format!("a request has at most {MAX_REQUEST} bytes, and this object takes {n}");
        add(faults, message);
        return;
    }
    let metadata = root.get("metadata").map_or(0, |metadata| {
        let entries = metadata.entries();
        // The API server stores an object without them where it is too large with them.
        let kept = entries.filter(|(name, _)| *name != "managedFields");
        kept.map(|(_, entry)| stored(&entry.node)).sum()
    });
    let n = metadata + root.get("spec").map_or(0, stored);
    if n > MAX_STORED {
        let message = format!("etcd takes at most {MAX_STORED} bytes, and this object has {n}");
        add(faults, message);
    }
}

fn add(faults: &mut Faults, message: String) {
    let advice = "split it into several objects".to_owned();
    faults.add(Rule::TooLarge, "", message, Some(advice));
}

/// How many bytes of JSON a value is.
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

/// How many bytes of protocol buffers a value is: a tag and a length before each, no names of fields.
fn stored(node: &Node) -> usize {
    let framed = |n: usize| 1 + n.checked_ilog2().map_or(1, |bits| bits as usize / 7 + 1) + n;
    match &node.data {
        Data::Scalar(Value::String(text), _) => framed(text.len()),
        Data::Scalar(..) => 2,
        Data::List(items) => items.iter().map(stored).sum(),
        Data::Map(entries) => framed(entries.iter().map(|(_, entry)| stored(&entry.node)).sum()),
    }
}
