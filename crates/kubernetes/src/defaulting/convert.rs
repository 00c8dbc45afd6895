//! Converts objects of built-in kinds between versions.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/autoscaling/v1/conversion.go`, and the generated conversions of kinds whose
//! versions have the same fields.

use serde_json::{Map, Value, json};

use super::Error;
use crate::schema::Gvk;
use crate::version::KubernetesVersion;

/// Kinds whose versions all have the same fields.
const ALIKE: [(&str, &str); 3] = [
    ("networking.k8s.io", "IPAddress"),
    ("networking.k8s.io", "ServiceCIDR"),
    ("storage.k8s.io", "VolumeAttributesClass"),
];

/// Converts an object from one version to another.
///
/// # Errors
/// Returns an error if this crate does not implement the conversion, or if the conversion would lose data.
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
        // The convertible kinds contain no nested metadata. Their encoding is therefore the same in all Kubernetes
        // versions.
        super::round_trip(to, &converted, &KubernetesVersion::NEWEST.behavior())
    } else {
        Err(unknown())
    }
}

/// The prefix of the annotations in which `autoscaling/v1` stores fields of `v2`.
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

/// Returns the `autoscaling/v2` metric for a target CPU utilization.
fn cpu(percent: &Value) -> Value {
    json!({"type": "Resource", "resource": {
        "name": "cpu", "target": {"type": "Utilization", "averageUtilization": percent}}})
}

fn fields<'a>(object: &'a mut Value, field: &str) -> Option<&'a mut Map<String, Value>> {
    object.get_mut(field)?.as_object_mut()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gvk(version: &str) -> Gvk {
        Gvk::new("autoscaling", version, "HorizontalPodAutoscaler")
    }

    fn object(version: &str, spec: &Value) -> Value {
        let mut whole = json!({"maxReplicas": 3, "minReplicas": 1,
            "scaleTargetRef": {"kind": "Deployment", "name": "a"}});
        for (name, value) in spec.as_object().unwrap() {
            whole[name] = value.clone();
        }
        json!({"apiVersion": format!("autoscaling/{version}"), "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "a"}, "spec": whole})
    }

    #[test]
    fn conversion_moves_cpu_target_of_autoscaler() {
        let spec = |object: &Value, from: &str, to: &str| {
            convert(object, &gvk(from), &gvk(to)).map(|converted| converted["spec"].clone())
        };
        let old = object("v1", &json!({"targetCPUUtilizationPercentage": 80}));
        let new = object("v2", &json!({"metrics": [cpu(&json!(80))]}));
        assert_eq!(convert(&old, &gvk("v1"), &gvk("v1")), Ok(old.clone()));
        let converted = spec(&old, "v1", "v2").unwrap();
        assert_eq!(converted["metrics"], new["spec"]["metrics"]);
        assert_eq!(converted.get("targetCPUUtilizationPercentage"), None);
        let converted = spec(&new, "v2", "v1").unwrap();
        assert_eq!(converted["targetCPUUtilizationPercentage"], json!(80));
        assert_eq!(converted.get("metrics"), None);
        let plain = spec(&object("v2", &json!({})), "v2", "v1").unwrap();
        assert_eq!(plain.get("targetCPUUtilizationPercentage"), None);
    }

    #[test]
    fn conversion_with_data_loss_is_an_error() {
        let message = "autoscaling/v2 HorizontalPodAutoscaler to autoscaling/v1";
        let check = |object: &Value| {
            let error = convert(object, &gvk("v2"), &gvk("v1")).unwrap_err();
            assert_eq!(error, Error::Conversion(message.to_owned()), "{object}");
        };
        check(&object("v2", &json!({"behavior": {}})));
        check(&object("v2", &json!({"metrics": []})));
        check(&object(
            "v2",
            &json!({"metrics": [cpu(&json!(1)), cpu(&json!(2))]}),
        ));
        check(&object("v2", &json!({"metrics": [{"type": "Pods"}]})));
        let mut memory = cpu(&json!(1));
        memory["resource"]["name"] = json!("memory");
        check(&object("v2", &json!({"metrics": [memory]})));
        let plain = object("v2", &json!({}));
        for field in ["conditions", "currentMetrics"] {
            let mut with_status = plain.clone();
            with_status["status"] = json!({field: [{}]});
            check(&with_status);
            with_status["status"] = json!({field: null});
            assert!(convert(&with_status, &gvk("v2"), &gvk("v1")).is_ok());
        }
        let annotations = json!({"autoscaling.alpha.kubernetes.io/metrics": "[]"});
        let mut annotated = plain.clone();
        annotated["metadata"]["annotations"] = annotations.clone();
        check(&annotated);
        let mut old = object("v1", &json!({}));
        assert!(convert(&old, &gvk("v1"), &gvk("v2")).is_ok());
        old["status"] = json!({"currentCPUUtilizationPercentage": 5});
        assert!(convert(&old, &gvk("v1"), &gvk("v2")).is_err());
        let mut old = object("v1", &json!({}));
        old["metadata"]["annotations"] = annotations;
        assert!(convert(&old, &gvk("v1"), &gvk("v2")).is_err());
        old["metadata"]["annotations"] = json!({"a": "b"});
        assert!(convert(&old, &gvk("v1"), &gvk("v2")).is_ok());
        assert!(convert(&plain, &gvk("v2"), &gvk("v3")).is_err());
        let deployment = |group: &str, version: &str| Gvk::new(group, version, "Deployment");
        for (from, to) in [
            (deployment("apps", "v1"), deployment("apps", "v1beta1")),
            (deployment("apps", "v1"), deployment("extensions", "v1")),
            (gvk("v1"), Gvk::new("autoscaling", "v2", "Scale")),
        ] {
            assert!(convert(&plain, &from, &to).is_err());
        }
    }

    #[test]
    fn conversion_between_versions_with_same_fields_keeps_object() {
        let object = json!({"apiVersion": "networking.k8s.io/v1beta1", "kind": "ServiceCIDR",
            "metadata": {"name": "a"}, "spec": {"cidrs": ["10.0.0.0/8"]}});
        let of = |version: &str| Gvk::new("networking.k8s.io", version, "ServiceCIDR");
        let converted = convert(&object, &of("v1beta1"), &of("v1")).unwrap();
        assert_eq!(converted["spec"], object["spec"]);
        assert!(convert(&object, &of("v1"), &of("v9")).is_err());
    }
}
