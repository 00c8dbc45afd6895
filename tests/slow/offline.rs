//! Compares the built-in schemas with their source, Kubernetes' OpenAPI documents. For policies in files, `kubectl vap
//! check` must return the same warnings as the type checker with these documents.
#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use crate::{checks, support};
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver as _};
use vap_status_controller::schema::{Builtin, DeclKind, DeclType, GroupVersion, Gvk};
use vap_status_controller::version::KubernetesVersion;

#[test]
fn warnings_match_the_type_checker() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Both directories define the kind ReplicaLimit, with different fields.
    checks::warnings_match_the_type_checker(
        &[root.join("config/samples")],
        &[root.join("config/samples")],
        7,
    );
    let policies = ["parity/policies", "parity/oracle/testdata/policies"];
    checks::warnings_match_the_type_checker(
        &policies.map(|path| root.join(path)),
        &[root.join("parity/oracle/testdata/crds")],
        62,
    );
}

#[test]
fn built_in_schemas_match_documents() {
    let directory = support::openapi_dir();
    let mut offline = Offline::default();
    for (name, bytes) in support::documents(&directory) {
        let own = GroupVersion::from_openapi_file_name(&name);
        offline.add_document(own.as_ref(), &bytes).unwrap();
    }
    let (schemas, mapper) = offline.finish();
    let builtin = Builtin::load(KubernetesVersion::DEFAULT).unwrap();

    assert_eq!(builtin.rest_mapper(), mapper);
    assert!(mapper.resources.len() >= 150, "{}", mapper.resources.len());

    let kinds: BTreeSet<&Gvk> = schemas.kinds().collect();
    assert_eq!(builtin.kinds().collect::<BTreeSet<_>>(), kinds);
    assert!(kinds.len() > 200, "{}", kinds.len());
    for gvk in kinds {
        match (schemas.resolve(gvk), builtin.resolve(gvk)) {
            (Resolution::Found(theirs), Resolution::Found(ours)) => {
                assert!(
                    is_same(&theirs, &ours, &mut BTreeSet::new()),
                    "{gvk} differs"
                );
            }
            (theirs, ours) => panic!("{gvk}: {theirs:?} and {ours:?}"),
        }
    }
}

type Pair = (*const DeclType, *const DeclType);

/// Returns true if two types are equal. `known` contains the pairs that were already compared.
fn is_same(a: &Arc<DeclType>, b: &Arc<DeclType>, known: &mut BTreeSet<Pair>) -> bool {
    let pair = (Arc::as_ptr(a), Arc::as_ptr(b));
    if known.contains(&pair) {
        return true;
    }
    let same_kind = match (&a.kind, &b.kind) {
        (DeclKind::List(a), DeclKind::List(b)) | (DeclKind::Map(a), DeclKind::Map(b)) => {
            is_same(a, b, known)
        }
        (DeclKind::Object(a), DeclKind::Object(b)) => {
            a.is_open == b.is_open
                && a.name == b.name
                && a.fields().len() == b.fields().len()
                && a.fields().iter().zip(b.fields()).all(|(a, b)| {
                    a.name == b.name
                        && a.required == b.required
                        && is_same(&a.type_, &b.type_, known)
                })
        }
        (a, b) => std::mem::discriminant(a) == std::mem::discriminant(b),
    };
    let same = same_kind
        && a.max_elements == b.max_elements
        && a.min_serialized_size == b.min_serialized_size
        && a.nullable == b.nullable
        && a.has_default == b.has_default
        && a.embedded_resource == b.embedded_resource
        && a.enum_values == b.enum_values;
    if same {
        known.insert(pair);
    }
    same
}
