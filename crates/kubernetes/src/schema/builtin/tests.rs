use super::store::Store;
use super::*;
use crate::schema::DeclKind;
use crate::schema::escape::unescape;

/// The maximum size of the file, in bytes.
const MAX_FILE_BYTES: usize = 64 * 1024;

/// Fields, each with the first and last minor version that has the field.
const FIELDS: [(&str, &str, &str, u16, u16); 17] = [
    ("", "Pod", "spec.containers.image", 30, 37),
    ("", "Pod", "spec.resourceClaims.source", 30, 30),
    ("", "Pod", "spec.volumes.image", 31, 37),
    ("", "Pod", "spec.resources", 32, 37),
    ("", "Pod", "status.observedGeneration", 33, 37),
    ("", "Pod", "spec.hostnameOverride", 34, 37),
    ("", "Pod", "spec.workloadRef", 35, 35),
    ("", "Pod", "status.allocatedResources", 35, 37),
    ("", "Pod", "spec.schedulingGroup", 36, 37),
    ("", "Pod", "spec.evictionResponders", 37, 37),
    (
        "apps",
        "Deployment",
        "spec.template.spec.volumes.image",
        31,
        37,
    ),
    ("apps", "Deployment", "status.terminatingReplicas", 33, 37),
    (
        "apps",
        "Deployment",
        "spec.template.spec.evictionResponders",
        37,
        37,
    ),
    ("batch", "Job", "spec.scheduling", 37, 37),
    ("coordination.k8s.io", "Lease", "spec.strategy", 31, 37),
    (
        "storage.k8s.io",
        "CSIDriver",
        "spec.serviceAccountTokenInSecrets",
        35,
        37,
    ),
    ("storage.k8s.io", "CSINode", "status", 37, 37),
];

/// Resources, each with the first and last minor version that serves the resource.
const RESOURCES: [(&str, &str, &str, u16, u16); 9] = [
    (
        "admissionregistration.k8s.io",
        "v1",
        "validatingadmissionpolicies",
        30,
        37,
    ),
    (
        "admissionregistration.k8s.io",
        "v1beta1",
        "validatingadmissionpolicies",
        30,
        33,
    ),
    (
        "admissionregistration.k8s.io",
        "v1alpha1",
        "validatingadmissionpolicies",
        30,
        31,
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "mutatingadmissionpolicies",
        36,
        37,
    ),
    (
        "admissionregistration.k8s.io",
        "v1beta1",
        "mutatingadmissionpolicies",
        34,
        37,
    ),
    (
        "admissionregistration.k8s.io",
        "v1alpha1",
        "mutatingadmissionpolicies",
        32,
        37,
    ),
    ("resource.k8s.io", "v1", "deviceclasses", 34, 37),
    ("resource.k8s.io", "v1alpha2", "resourceclaims", 30, 30),
    ("scheduling.k8s.io", "v1beta1", "podgroups", 37, 37),
];

fn builtin(minor: u16) -> &'static Builtin {
    Builtin::load(KubernetesVersion::new(minor)).unwrap()
}

/// Returns true if the type has a field at the path. The path contains only field names. List items and map values have
/// the path of their list or map.
fn has_field(type_: &DeclType, path: &str) -> bool {
    let (first, rest) = path.split_once('.').unwrap_or((path, ""));
    match &type_.kind {
        DeclKind::List(inner) | DeclKind::Map(inner) => has_field(inner, path),
        DeclKind::Object(_) => {
            let field = type_
                .declared_fields()
                .iter()
                .find(|field| &*field.name == first);
            field.is_some_and(|field| rest.is_empty() || has_field(&field.type_, rest))
        }
        _ => false,
    }
}

#[test]
fn fields_exist_only_in_their_versions() {
    for (group, kind, path, first, last) in FIELDS {
        for version in KubernetesVersion::supported() {
            let gvk = Gvk::new(group, "v1", kind);
            let Resolution::Found(type_) = builtin(version.minor).resolve(&gvk) else {
                panic!("{version}: {gvk}");
            };
            let expected = (first..=last).contains(&version.minor);
            assert_eq!(
                has_field(&type_, path),
                expected,
                "{version}: {kind} {path}"
            );
        }
        let name = path.rsplit('.').next().unwrap();
        let lacks = |version: &KubernetesVersion| !(first..=last).contains(&version.minor);
        for version in KubernetesVersion::supported().filter(lacks) {
            let versions = builtin(version.minor).versions_that_add_property(name);
            assert!(versions.unwrap().contains(&KubernetesVersion::new(first)));
        }
    }
    assert_eq!(
        builtin(36).versions_that_add_property("evictionResponder"),
        Ok(Vec::new())
    );
}

/// Calls `visit` for each field in `other` that the type at the same path in `own` does not have.
fn for_each_added_field(
    (own, other): (&Arc<DeclType>, &Arc<DeclType>),
    compared: &mut HashSet<(*const DeclType, *const DeclType)>,
    visit: &mut dyn FnMut(&str),
) {
    if !compared.insert((Arc::as_ptr(own), Arc::as_ptr(other))) {
        return;
    }
    match (&own.kind, &other.kind) {
        (DeclKind::List(own), DeclKind::List(other))
        | (DeclKind::Map(own), DeclKind::Map(other)) => {
            for_each_added_field((own, other), compared, visit);
        }
        (DeclKind::Object(_), DeclKind::Object(_)) => {
            for field in other.declared_fields() {
                let mut own = own.declared_fields().iter();
                match own.find(|own| own.name == field.name) {
                    Some(own) => {
                        for_each_added_field((&own.type_, &field.type_), compared, visit);
                    }
                    None => visit(&field.name),
                }
            }
        }
        _ => {}
    }
}

#[test]
fn versions_of_added_fields_are_found() {
    let versions: Vec<_> = KubernetesVersion::supported().collect();
    let pairs = versions
        .iter()
        .flat_map(|a| versions.iter().map(move |b| (*a, *b)));
    for (version, other) in pairs {
        let (own, added) = (builtin(version.minor), builtin(other.minor));
        let (mut compared, mut names) = (HashSet::new(), BTreeSet::new());
        for (_, row) in own.store.kinds() {
            let gvk = Gvk::new(row.group, row.version, row.kind);
            if let (Resolution::Found(own), Resolution::Found(added)) =
                (own.resolve(&gvk), added.resolve(&gvk))
            {
                for_each_added_field((&own, &added), &mut compared, &mut |name| {
                    names.insert(unescape(name).unwrap().into_owned());
                });
            }
        }
        for name in names {
            let with_name = own.versions_that_add_property(&name).unwrap();
            assert!(with_name.contains(&other), "{version} {other} {name}");
        }
    }
}

#[test]
fn resources_are_served_in_their_versions() {
    for (group, version, resource, first, last) in RESOURCES {
        let gvr = Gvr::new(group, version, resource);
        let expected: Vec<_> = (first..=last).map(KubernetesVersion::new).collect();
        assert_eq!(Builtin::versions_with_resource(&gvr), Ok(expected), "{gvr}");
        for version in KubernetesVersion::supported() {
            let resources = builtin(version.minor).resources();
            let is_served = resources.iter().any(|served| served.gvr == gvr);
            assert_eq!(
                is_served,
                (first..=last).contains(&version.minor),
                "{version}: {gvr}"
            );
        }
    }
}

/// A patch release has the schemas of its minor version, and an unsupported version has those of the closest supported
/// version.
#[test]
fn builtin_schemas_come_from_closest_minor_version() {
    let minor = |version: KubernetesVersion| {
        let kubernetes = Builtin::load(version).unwrap().kubernetes();
        kubernetes.rsplit_once('.').unwrap().0.to_owned()
    };
    for version in KubernetesVersion::supported() {
        assert_eq!(minor(version), version.to_string());
        assert_eq!(minor(version.with_patch(99)), version.to_string());
    }
    assert_eq!(minor(KubernetesVersion::new(29)), "1.30");
    assert_eq!(minor(KubernetesVersion::new(40)), "1.37");
}

#[test]
fn file_of_builtin_schemas_is_within_size_limit() {
    assert!(FILE.len() <= MAX_FILE_BYTES, "{}", FILE.len());
}

#[test]
fn builtin_documents_are_unpacked_on_demand() {
    let store: &'static Store = Box::leak(Box::new(Store::from_bytes(FILE).unwrap()));
    let builtin = Builtin::from_store(store, 36).unwrap();
    let n_converted = || {
        let documents = builtin.documents.iter();
        documents
            .filter(|document| document.types.get().is_some())
            .count()
    };
    assert!(!store.is_unpacked());
    let unknown = Gvk::new("apps", "v1", "Deploymint");
    assert!(matches!(builtin.resolve(&unknown), Resolution::NotFound));
    assert!(!store.is_unpacked());
    let deployment = Gvk::new("apps", "v1", "Deployment");
    assert!(matches!(builtin.resolve(&deployment), Resolution::Found(_)));
    assert!(store.is_unpacked());
    assert_eq!(n_converted(), 1);
}

#[test]
fn truncated_builtin_schemas_are_an_error() {
    for length in [0, 3, 7, 8, 100, FILE.len() - 1] {
        assert!(Store::from_bytes(&FILE[..length]).is_err(), "{length}");
    }
}
