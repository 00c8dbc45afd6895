//! Findings about policies, bindings and CustomResourceDefinitions whose `apiVersion` an API server does not serve.
//!
//! Source: `k8s.io/kubernetes` `pkg/controlplane/instance.go` (`DefaultAPIResourceConfigSource`: versions that are not
//! stable are disabled by default), `pkg/registry/admissionregistration/rest/storage_apiserver.go`;
//! `k8s.io/apiextensions-apiserver` `pkg/apiserver/apiserver.go`, which serves only `v1`.

use super::finding::{Finding, Owner, Severity};
use super::known::Known;
use super::policy::object_finding;
use crate::cli::input::{Object, POLICY_VERSION};
use crate::policy::rule::Rule;
use crate::schema::{GroupVersion, Gvr};

const DEFINITION: &str = "CustomResourceDefinition";

const DEFINITION_VERSION: &str = "apiextensions.k8s.io/v1";

/// Returns a finding if the `apiVersion` of a policy or binding is not served, or not by default.
pub(super) fn policy_finding<T>(object: &Object<T>, known: &Known) -> Option<Finding> {
    let api_version = object.api_version();
    let GroupVersion { group, version } = GroupVersion::parse(api_version)?;
    let kind = object.kind();
    let (resource, optional): (_, &[&str]) = match kind {
        "MutatingAdmissionPolicy" => ("mutatingadmissionpolicies", &["v1beta1", "v1alpha1"]),
        "MutatingAdmissionPolicyBinding" => {
            ("mutatingadmissionpolicybindings", &["v1beta1", "v1alpha1"])
        }
        "ValidatingAdmissionPolicyBinding" => ("validatingadmissionpolicybindings", &["v1beta1"]),
        _ => ("validatingadmissionpolicies", &["v1beta1"]),
    };
    let is_served = if known.is_of_cluster() {
        let gvr = Gvr::new(group, version.clone(), resource);
        known.mapper.resource(&gvr).is_some()
    } else {
        version == "v1"
    };
    if is_served {
        return None;
    }
    let kubernetes = known.kubernetes();
    let message = if !known.is_of_cluster() && optional.contains(&version.as_str()) {
        format!(
            "Kubernetes {kubernetes} serves {kind} as {api_version} only if that version is enabled"
        )
    } else {
        format!("Kubernetes {kubernetes} does not serve {kind} as {api_version}")
    };
    let mut finding = version_finding(object, Severity::Warning, &message, POLICY_VERSION);
    finding.help = Some(format!(
        "checked as {POLICY_VERSION}: use that version, because API servers may reject this one"
    ));
    Some(finding)
}

/// Returns a finding if no API server serves the `apiVersion` of a CustomResourceDefinition.
pub(super) fn definition_finding<T>(object: &Object<T>) -> Option<Finding> {
    let api_version = object.api_version();
    if object.kind() != DEFINITION || api_version == DEFINITION_VERSION {
        return None;
    }
    let since = match api_version {
        "apiextensions.k8s.io/v1beta1" => " since 1.22",
        _ => "",
    };
    let message = format!("no version of Kubernetes{since} serves {DEFINITION} as {api_version}");
    let mut finding = version_finding(object, Severity::Error, &message, DEFINITION_VERSION);
    // Other versions have their schemas in other fields, so changing only the version is not enough.
    finding.fix = None;
    finding.help = Some(format!(
        "write {DEFINITION_VERSION}, with a schema in each item of `spec.versions`; the API server rejects this version"
    ));
    finding.rejected = true;
    finding.owner = Owner::crd(object.name());
    Some(finding)
}

fn version_finding<T>(
    object: &Object<T>,
    severity: Severity,
    message: &str,
    meant: &str,
) -> Finding {
    let place = object.place_of_field("apiVersion");
    let mut finding = object_finding(object, severity, Rule::OldVersion, message, place);
    let document = &object.document;
    let node = document.node.get("apiVersion");
    finding.fix = node.and_then(|node| document.edit_value(&object.source, node, meant));
    finding.field_ref = Some("apiVersion".to_owned());
    finding
}
