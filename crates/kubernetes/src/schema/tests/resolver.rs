//! Tests of [`SchemaSet`]: precedence of documents, and unavailable documents.

use super::*;
use crate::schema::GroupVersion;
use crate::schema::crd::Crd;
use crate::schema::resolver::{Resolution, SchemaResolver, SchemaSet};

fn document_with(group: &str, type_: &str) -> OpenApiDocument {
    let gvk = json!([{"group": group, "version": "v1", "kind": "T"}]);
    let schema = json!({"type": type_, "x-kubernetes-group-version-kind": gvk});
    let text = json!({"components": {"schemas": {"t": schema}}});
    OpenApiDocument::parse(text.to_string().as_bytes()).unwrap()
}

#[track_caller]
fn check_found(set: &SchemaSet, group: &str, expected: &str) {
    let result = match set.resolve(&Gvk::new(group, "v1", "T")) {
        Resolution::Found(type_) => type_.cel_type("T#").to_string(),
        Resolution::NotFound => "not found".into(),
        Resolution::Unavailable(reason) => reason,
    };
    assert_eq!(result, expected);
}

#[test]
fn document_of_own_group_version_takes_precedence() {
    let mut interner = Interner::default();
    let mut set = SchemaSet::default();
    let mut add = |own: Option<&str>, group, type_| {
        let own = own.map(|group| GroupVersion::new(group, "v1"));
        set.add_document(own.as_ref(), &document_with(group, type_), &mut interner);
    };
    add(Some("other"), "a", "string");
    add(Some("a"), "a", "integer");
    add(Some("a"), "a", "boolean");
    add(Some("other"), "b", "string");
    add(None, "b", "integer");
    check_found(&set, "a", "int");
    check_found(&set, "b", "string");
    check_found(&set, "c", "not found");
}

#[test]
fn kind_in_unavailable_document_is_unavailable_with_reason() {
    let mut set = SchemaSet::default();
    set.add_unavailable(GroupVersion::new("a", "v1"), "the server does not answer");
    check_found(&set, "a", "the server does not answer");
    check_found(&set, "b", "not found");
    let broken = json!({"properties": {"x": {"$ref": "gone"}}});
    set.add_document(None, &document(broken, &[]), &mut Interner::default());
    let Resolution::Unavailable(reason) = set.resolve(&Gvk::new("example.com", "v1", "Test"))
    else {
        panic!("found");
    };
    assert_eq!(
        reason,
        "the schema refers to `gone`, which the document does not contain"
    );
}

#[test]
fn added_crd_defines_its_kind_its_list_and_scale() {
    let crd = json!({"spec": {
        "group": "a", "scope": "Namespaced", "names": {"kind": "T", "plural": "ts"},
        "versions": [{"name": "v1", "served": true, "subresources": {"scale": {}}}],
    }});
    let mut set = SchemaSet::default();
    set.add_crd(&Crd::from_value(&crd).unwrap(), &mut Interner::default());
    check_found(&set, "a", "T#");
    let mut kinds: Vec<_> = set.kinds().map(ToString::to_string).collect();
    kinds.sort();
    assert_eq!(
        kinds,
        [
            "a/v1, Kind=T",
            "a/v1, Kind=TList",
            "autoscaling/v1, Kind=Scale"
        ]
    );
}
