//! Converts objects of built-in kinds between the served versions of their kind.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/autoscaling/v1/conversion.go`, and the generated conversions of kinds whose
//! versions have the same fields.

use serde_json::{Map, Value, json};

use super::Error;
use crate::schema::Gvk;

/// Kinds whose served versions all have the same fields.
const ALIKE: [(&str, &str); 3] = [
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("storage.k8s.io", "VolumeAttributesClass"),
];

/// Converts an object of a built-in kind from one version to another.
///
/// # Errors
/// Returns an error if the conversion is not implemented here or would lose data.
pub fn convert(object: &Value, from: &Gvk, to: &Gvk) -> Result<Value, Error> {
    if from == to {
        return Ok(object.clone());
    }
    let unknown = || {
        Error::Conversion(format!(
            "{} {} to {}",
            from.api_version(),
            from.kind,
            to.api_version()
        ))
    };
    if from.kind != to.kind || from.group != to.group {
        return Err(unknown());
    }
    let converted = if ALIKE.contains(&(&*from.group, &*from.kind)) {
        object.clone()
    } else if from.group == "autoscaling" && from.kind == "HorizontalPodAutoscaler" {
        match (&*from.version, &*to.version) {
            ("v1", "v2") => v1_to_v2(object).ok_or_else(unknown)?,
            ("v2", "v1") => v2_to_v1(object).ok_or_else(unknown)?,
            _ => return Err(unknown()),
        }
    } else {
        return Err(unknown());
    };
    if super::has(to) {
        super::round_trip(to, &converted)
    } else {
        Err(unknown())
    }
}

/// The prefix of the annotations in which `autoscaling/v1` stores the fields that only `v2` has.
const HPA_ANNOTATIONS: &str = "autoscaling.alpha.kubernetes.io/";

fn has_hpa_annotations(object: &Value) -> bool {
    let annotations = object
        .get("metadata")
        .and_then(|metadata| metadata.get("annotations"));
    let annotations = annotations.and_then(Value::as_object);
    annotations
        .into_iter()
        .flatten()
        .any(|(key, _)| key.starts_with(HPA_ANNOTATIONS))
}

fn v1_to_v2(object: &Value) -> Option<Value> {
    let mut object = object.clone();
    let usage = "currentCPUUtilizationPercentage";
    if has_hpa_annotations(&object) || object.get("status").is_some_and(|s| s.get(usage).is_some())
    {
        return None;
    }
    let spec = fields(&mut object, "spec")?;
    if let Some(percent) = spec.remove("targetCPUUtilizationPercentage") {
        spec.insert("metrics".to_owned(), json!([cpu(&percent)]));
    }
    Some(object)
}

fn v2_to_v1(object: &Value) -> Option<Value> {
    let mut object = object.clone();
    let status = object.get("status");
    let has = |field: &str| {
        status
            .and_then(|status| status.get(field))
            .is_some_and(|value| !value.is_null())
    };
    if has("conditions") || has("currentMetrics") || has_hpa_annotations(&object) {
        return None;
    }
    let spec = fields(&mut object, "spec")?;
    if spec.contains_key("behavior") {
        return None;
    }
    if let Some(metrics) = spec.remove("metrics") {
        let [metric] = metrics.as_array()?.as_slice() else {
            return None;
        };
        let percent = metric
            .get("resource")?
            .get("target")?
            .get("averageUtilization")?
            .clone();
        if *metric != cpu(&percent) {
            return None;
        }
        spec.insert("targetCPUUtilizationPercentage".to_owned(), percent);
    }
    Some(object)
}

/// Returns the `autoscaling/v2` metric for a target CPU utilization of `percent`.
fn cpu(percent: &Value) -> Value {
    json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}})
}

fn fields<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field)?.as_object_mut()
}
