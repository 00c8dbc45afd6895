//! Computes the quality of service class of a Pod.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/core/helper/qos/qos.go`, `ComputePodQOS`.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::library::quantity::Quantity;

/// The resources that determine the class.
const RESOURCES: [&str; 2] = ["cpu", "memory"];

/// Sets `status.qosClass` of a Pod to `given`, the value from the client. If `given` is `None`, computes the class. The
/// Pod is in compact form.
pub(super) fn set(pod: &mut Value, given: Option<Value>) {
    let class = given.unwrap_or_else(|| class(pod).into());
    if let Some(status) = pod.get_mut("status").and_then(Value::as_object_mut) {
        status.insert("qosClass".to_owned(), class);
    }
}

fn is_positive(amount: &Value) -> bool {
    // Quantities in compact form are canonical, so zero is always written `0`.
    amount
        .as_str()
        .is_some_and(|text| !text.starts_with('-') && text != "0")
}

fn class(pod: &Value) -> &'static str {
    let lists = ["containers", "initContainers"];
    let containers = lists
        .iter()
        .filter_map(|list| pod.get("spec")?.get(list)?.as_array());
    let mut is_guaranteed = true;
    let mut has_any = false;
    let mut requests = Sums::new();
    let mut limits = Sums::new();
    for container in containers.flatten() {
        let amounts = |name: &str| {
            let amounts = container
                .get("resources")
                .and_then(|resources| resources.get(name));
            amounts
                .and_then(Value::as_object)
                .cloned()
                .unwrap_or_default()
        };
        let mut limited = 0;
        for (name, amount) in amounts("requests") {
            if RESOURCES.contains(&name.as_str()) && is_positive(&amount) {
                has_any = true;
                add(&mut requests, &name, &amount);
            }
        }
        for (name, amount) in amounts("limits") {
            if RESOURCES.contains(&name.as_str()) && is_positive(&amount) {
                has_any = true;
                limited += 1;
                add(&mut limits, &name, &amount);
            }
        }
        is_guaranteed &= limited == RESOURCES.len();
    }
    if !has_any {
        "BestEffort"
    } else if is_guaranteed && are_equal(&requests, &limits) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}

/// Sums of quantities by resource name.
type Sums = BTreeMap<String, Quantity>;

fn add(sums: &mut Sums, name: &str, amount: &Value) {
    let Some(Ok(amount)) = amount.as_str().map(Quantity::parse) else {
        return;
    };
    let sum = match sums.get(name) {
        Some(sum) => sum.plus(&amount).unwrap_or(amount),
        None => amount,
    };
    sums.insert(name.to_owned(), sum);
}

fn are_equal(a: &Sums, b: &Sums) -> bool {
    a.len() == b.len()
        && a.iter().all(|(name, sum)| {
            b.get(name)
                .is_some_and(|other| sum.is_equal(other) == Ok(true))
        })
}
