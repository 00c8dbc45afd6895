//! Findings about policies, bindings and CustomResourceDefinitions whose `apiVersion` an API server does not serve.
//!
//! Source: `k8s.io/kubernetes` `pkg/controlplane/instance.go` (`DefaultAPIResourceConfigSource`: versions that are not
//! stable are disabled by default), `pkg/registry/admissionregistration/rest/storage_apiserver.go`;
//! `k8s.io/apiextensions-apiserver` `pkg/apiserver/apiserver.go`, which serves only `v1`.

use super::finding::{Finding, Owner, Severity};
use super::known::Known;
use super::policy::object_finding;
use crate::cli::input::edit::Edit;
use crate::cli::input::{Object, POLICY_VERSION};
use crate::policy::rule::Rule;
use crate::schema::rest_mapper::ApiResource;
use crate::schema::{Builtin, GroupVersion, Gvr};
use crate::version::KubernetesVersion;

/// The version of policies and bindings that API servers serve by default.
const STABLE_VERSION: &str = "v1";

const DEFINITION: &str = "CustomResourceDefinition";

const DEFINITION_VERSION: &str = "apiextensions.k8s.io/v1";

/// A hint about an incomplete CustomResourceDefinition, which is usually a patch of a complete definition.
pub(super) const PATCH_HELP: &str =
    "if this file is a kustomize patch, check the output of `kubectl kustomize` instead";

/// Returns the resource of a policy or binding. `None` if its `apiVersion` is invalid.
pub(in crate::cli) fn resource_of<T>(object: &Object<T>) -> Option<Gvr> {
    let GroupVersion { group, version } = GroupVersion::parse(object.api_version())?;
    let resource = match object.kind() {
        "MutatingAdmissionPolicy" => "mutatingadmissionpolicies",
        "MutatingAdmissionPolicyBinding" => "mutatingadmissionpolicybindings",
        "ValidatingAdmissionPolicyBinding" => "validatingadmissionpolicybindings",
        _ => "validatingadmissionpolicies",
    };
    Some(Gvr::new(group, version, resource))
}

/// Returns an error if the old Kubernetes version can serve the `apiVersion` of a policy or binding, but the new
/// version cannot.
pub(in crate::cli) fn removed<T>(object: &Object<T>, [old, new]: [&Known; 2]) -> Option<Finding> {
    let gvr = resource_of(object)?;
    let is_served = |known: &Known| known.mapper.resource(&gvr).is_some();
    if !is_served(old) || is_served(new) {
        return None;
    }
    let finding = policy_finding(object, new)?;
    Some(Finding {
        severity: Severity::Error,
        help: Some(format!("write `apiVersion: {POLICY_VERSION}`")),
        rejected: true,
        ..finding
    })
}

/// Returns a finding if the `apiVersion` of a policy or binding is not served, or not by default.
pub(in crate::cli) fn policy_finding<T>(object: &Object<T>, known: &Known) -> Option<Finding> {
    let api_version = object.api_version();
    let kind = object.kind();
    let gvr = resource_of(object)?;
    let resource = gvr.resource.clone();
    let is_served = known.mapper.resource(&gvr).is_some();
    let is_stable = gvr.version == STABLE_VERSION;
    if is_served && (is_stable || known.is_of_cluster()) {
        return None;
    }
    if !is_served && let Some(finding) = newer_api(object, known, &gvr) {
        return Some(finding);
    }
    let kubernetes = known.kubernetes();
    let message = if is_served {
        format!(
            "Kubernetes {kubernetes} serves {kind} as {api_version} only if that version is enabled"
        )
    } else {
        format!("Kubernetes {kubernetes} does not serve {kind} as {api_version}")
    };
    let is_rejected = !is_served && known.is_requested();
    let severity = if is_rejected {
        Severity::Error
    } else {
        Severity::Warning
    };
    let mut finding = version_finding(object, severity, &message);
    finding.rejected = is_rejected;
    let stable = Gvr::new(&*gvr.group, STABLE_VERSION, &*resource);
    finding.help = Some(if known.mapper.resource(&stable).is_some() {
        let serving = Builtin::versions_with_resource(&stable).unwrap_or_default();
        let first = serving.first().filter(|first| !first.is_oldest());
        // If neither the user nor the cluster specifies the version, the target API server may be older than the
        // default version. The advice is then conditional.
        let is_assumed = !known.is_requested() && !known.is_of_cluster();
        let since = match first.filter(|_| is_assumed) {
            Some(first) => format!(" if Kubernetes is {first} or later"),
            None => {
                finding.fix = changed_version(object, POLICY_VERSION);
                String::new()
            }
        };
        let version = &gvr.version;
        let effect = if is_served {
            format!("API servers accept {version} only if it is enabled")
        } else {
            format!("Kubernetes {kubernetes} rejects {version}")
        };
        format!(
            "use {POLICY_VERSION}{since}, because {effect}; the object was checked as {POLICY_VERSION}"
        )
    } else {
        format!(
            "Kubernetes {kubernetes} serves no version of {kind} by default; the object was checked as {POLICY_VERSION}"
        )
    });
    Some(finding)
}

/// Removes the finding about a missing parameterNotFoundAction if the version is v1alpha1, for which the API server
/// sets the default Deny. Other versions have no default.
///
/// Source: `k8s.io/kubernetes` `pkg/apis/admissionregistration/v1alpha1/defaults.go`, `SetDefaults_ParamRef`.
pub(super) fn apply_defaults<T>(object: &Object<T>, known: &Known, findings: &mut Vec<Finding>) {
    let gvr = resource_of(object).filter(|gvr| gvr.version == "v1alpha1");
    if gvr.is_some_and(|gvr| known.mapper.resource(&gvr).is_some()) {
        findings.retain(|finding| {
            finding.rule != Rule::Required
                || finding.field_ref.as_deref() != Some("spec.paramRef.parameterNotFoundAction")
        });
    }
}

/// Returns a finding if only newer API servers serve `gvr`, the resource of `object`.
fn newer_api<T>(object: &Object<T>, known: &Known, gvr: &Gvr) -> Option<Finding> {
    let serving = Builtin::versions_with_resource(gvr).ok()?;
    let is_newer = |version: &&KubernetesVersion| known.version().is_older_than(version);
    let first = serving.iter().find(is_newer)?;
    let range = match serving.last() {
        Some(last) if !last.is_newest() => format!("{first} to {last}"),
        _ => format!("{first} and later"),
    };
    let (kind, api_version) = (object.kind(), object.api_version());
    let message = format!(
        "Kubernetes {} does not serve {kind} as {api_version}",
        known.kubernetes()
    );
    let mut finding = version_finding(object, Severity::Error, &message);
    let condition = |is_default| if is_default { "" } else { " if enabled" };
    let mut help = format!(
        "the API server of this version rejects the object; Kubernetes {range} serve {api_version}{}",
        condition(gvr.version == STABLE_VERSION)
    );
    let is_other = |served: &&ApiResource| {
        served.gvr.group == gvr.group && served.gvr.resource == gvr.resource
    };
    let others = known.mapper.resources.iter().filter(is_other);
    let others: Vec<String> = others.map(|served| served.gvk.api_version()).collect();
    if !others.is_empty() {
        let (others, condition) = (others.join(" and "), condition(known.is_of_cluster()));
        help.extend([", and this version serves ", &others, condition]);
    }
    finding.help = Some(help);
    finding.rejected = true;
    Some(finding)
}

/// Returns true if a CustomResourceDefinition lacks the fields that every definition has. It is then a patch, or an
/// assertion of a test.
pub(super) fn is_patch<T>(object: &Object<T>) -> bool {
    let spec = object.document.node.get("spec");
    let lacks = |name: &&str| spec.and_then(|spec| spec.get(name)).is_none();
    object.kind() == DEFINITION && ["names", "group"].iter().all(lacks)
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
    // Other versions contain their schemas in different fields, so there is no fix that changes only the version.
    let mut finding = version_finding(object, Severity::Error, &message);
    finding.help = Some(format!(
        "write {DEFINITION_VERSION}, with a schema in each item of `spec.versions`; the API server rejects this version"
    ));
    finding.rejected = true;
    if is_patch(object) {
        finding.severity = Severity::Note;
        finding.help = Some(PATCH_HELP.to_owned());
        finding.rejected = false;
    }
    finding.owner = Owner::crd(object.name());
    Some(finding)
}

fn version_finding<T>(object: &Object<T>, severity: Severity, message: &str) -> Finding {
    let place = object.place_of_field("apiVersion");
    let mut finding = object_finding(object, severity, Rule::OldVersion, message, place);
    finding.field_ref = Some("apiVersion".to_owned());
    finding
}

fn changed_version<T>(object: &Object<T>, intended: &str) -> Option<Edit> {
    let document = &object.document;
    let node = document.node.get("apiVersion")?;
    document.edit_value(&object.source, node, intended)
}
