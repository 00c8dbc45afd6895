//! Kinds and API versions of admission policies that the controller does not know.
//!
//! Only an API server that is newer than the supported versions serves them.

use std::collections::BTreeSet;

use crate::policy::subject::SubjectKind;
use crate::schema::Gvr;
use crate::schema::rest_mapper::RestMapper;

/// The API versions of policies that the controller knows, including those that it does not watch.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Returns the served resources for admission that the controller does not know, such as
/// `admissionregistration.k8s.io/v2 validatingadmissionpolicies`.
pub(crate) fn unknown_kinds(mapper: &RestMapper) -> BTreeSet<String> {
    let group = SubjectKind::ValidatingAdmissionPolicy.row().group;
    let rows = SubjectKind::ALL.into_iter().map(SubjectKind::row);
    let rows = rows.filter(|row| row.group == group);
    let names: BTreeSet<&str> = rows
        .flat_map(|row| std::iter::once(row.plural).chain(row.bindings))
        .collect();
    let served = mapper.resources.iter().map(|served| &served.gvr);
    let served = served.filter(|gvr| gvr.group == group && !Gvr::is_subresource(gvr));
    let unknown =
        served.filter(|gvr| !VERSIONS.contains(&&*gvr.version) || !names.contains(&&*gvr.resource));
    unknown
        .map(|gvr| format!("{group}/{} {}", gvr.version, gvr.resource))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controller::cluster::snapshot::tests::resource;
    use crate::schema::Builtin;
    use crate::version::KubernetesVersion;

    #[test]
    fn new_kinds_and_versions_are_unknown() {
        let mapper = RestMapper::new(vec![
            resource(
                "admissionregistration.k8s.io/v1",
                "auditpolicies",
                "AuditPolicy",
            ),
            resource(
                "admissionregistration.k8s.io/v2",
                "validatingadmissionpolicies",
                "ValidatingAdmissionPolicy",
            ),
            resource(
                "admissionregistration.k8s.io/v2",
                "validatingadmissionpolicies/status",
                "ValidatingAdmissionPolicy",
            ),
            resource("example.com/v2", "auditpolicies", "AuditPolicy"),
        ]);
        let unknown: Vec<String> = unknown_kinds(&mapper).into_iter().collect();
        assert_eq!(
            unknown,
            [
                "admissionregistration.k8s.io/v1 auditpolicies",
                "admissionregistration.k8s.io/v2 validatingadmissionpolicies"
            ]
        );
    }

    #[test]
    fn kinds_of_supported_versions_are_known() {
        for version in KubernetesVersion::supported() {
            let builtin = Builtin::load(version).unwrap();
            let mapper = builtin.rest_mapper();
            assert!(mapper.resources.len() > 100, "{version}");
            assert_eq!(unknown_kinds(&mapper), BTreeSet::new(), "{version}");
        }
    }
}
