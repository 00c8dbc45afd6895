use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kubernetes::schema::intern::Interner;
use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::rest_mapper::{ApiResource, RestMapper};
use kubernetes::schema::{Gvr, OpenApiDocument};
use serde_json::{Value, json};

use super::super::{RuleSource, TypeCheck, check_truthfully};
use super::*;

/// A mapper and schemas for kinds with the same metadata. Kinds with an even index have the same type of `spec`.
struct Kinds {
    mapper: RestMapper,
    types: HashMap<Gvk, Arc<DeclType>>,
}

const KINDS: [&str; 7] = ["A", "B", "C", "D", "Namespace", "Role", "Open"];

/// Kinds without a schema.
const UNSEEN: [&str; 3] = ["X", "Y", "Z"];

fn schema(n: usize, kind: &str) -> Value {
    let spec = if n.is_multiple_of(2) { "Even" } else { "Odd" };
    let reference = |name: &str| json!({"$ref": format!("#/components/schemas/{name}")});
    let mut schema = json!({
        "type": "object",
        "x-kubernetes-group-version-kind": [{"group": "", "kind": kind, "version": "v1"}],
        "properties": {
            "apiVersion": {"type": "string"},
            "kind": {"type": "string"},
            "metadata": reference("Meta"),
            "spec": reference(spec),
        },
    });
    if kind == "Open" {
        schema["x-kubernetes-preserve-unknown-fields"] = json!(true);
    }
    if kind == "D" {
        schema["properties"].as_object_mut().unwrap().remove("spec");
    }
    schema
}

impl Kinds {
    fn new() -> Self {
        let string = json!({"type": "string"});
        let labels = json!({"type": "object", "additionalProperties": string});
        let mut schemas = json!({
            "Meta": {"type": "object", "properties": {"name": string, "labels": labels}},
            "Even": {"type": "object", "properties": {"size": {"type": "integer"}}},
            "Odd": {"type": "object", "properties": {"size": {"type": "string"}}},
        });
        for (n, kind) in KINDS.iter().enumerate() {
            schemas[*kind] = schema(n, kind);
        }
        let document = json!({"components": {"schemas": schemas}});
        let document = OpenApiDocument::parse(document.to_string().as_bytes()).unwrap();
        let types = document.decl_types(&mut Interner::default()).into_iter();
        let types = types.map(|(gvk, type_)| (gvk, type_.unwrap())).collect();
        let resource = |kind: &&str| ApiResource {
            gvr: Gvr::new("", "v1", format!("{}s", kind.to_lowercase())),
            gvk: Gvk::new("", "v1", *kind),
            singular: String::new(),
            namespaced: *kind != "Namespace",
        };
        Self {
            mapper: RestMapper::new(KINDS.iter().chain(&UNSEEN).map(resource).collect()),
            types,
        }
    }
}

impl SchemaResolver for Kinds {
    fn resolve(&self, gvk: &Gvk) -> Resolution {
        let schema = self.types.get(gvk).cloned();
        schema.map_or(Resolution::NotFound, Resolution::Found)
    }
}

fn policy(expressions: &[&str]) -> CompiledPolicy {
    let validations: Vec<_> = expressions
        .iter()
        .map(|text| json!({"expression": text}))
        .collect();
    let policy: ValidatingAdmissionPolicy = serde_json::from_value(json!({
        "metadata": {"name": "a"},
        "spec": {
            "matchConstraints": {"resourceRules": [
                {"apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"]},
            ]},
            "variables": [{"name": "labels", "expression": "object.metadata.?labels.orValue({})"}],
            "validations": validations,
        },
    }))
    .unwrap();
    CompiledPolicy::new(&policy)
}

fn check(policy: &CompiledPolicy, memo: Memo<'_>) -> TypeCheck {
    let kinds = Kinds::new();
    let mut outcome = TypeCheck::default();
    check_truthfully(
        policy,
        None,
        RuleSource::Unmatched(&kinds.mapper),
        &kinds,
        memo,
        &mut outcome,
    );
    outcome
}

#[test]
fn memoization_does_not_change_findings() {
    let expressions = [
        "object.metadata.name != 'a'",
        "object.metadata.nmae != 'a'",
        "has(object.metadata.labels) && 'team' in object.metadata.labels",
        "has(object.spec) && object.spec.size > 3",
        "object.spec.size == 'a'",
        "!has(object.spec.size) || object.spec.size != 3",
        "object.kind == 'A' || object.spec.size > 3",
        "oldObject == null || oldObject.metadata.name == object.metadata.name",
        "oldObject != null",
        "object[\"spec\"].size > 3",
        "object.?spec.?size.hasValue()",
        "request.kind.kind == 'B' ? object.spec.size > 3 : true",
        "request.operation == 'DELETE' || object.metadata.name != ''",
        "request['resource'].resource == 'as' || object.spec.size > 3",
        "namespaceObject.metadata.name == object.metadata.name",
        "variables.labels.size() > 0",
        "[object].all(o, o.spec.size > 3)",
        "type(object.spec) == type(object.metadata)",
        "object.spec.nope > 1",
        "has(object.unknown)",
        "object.metadata.name ==",
    ];
    let mut n_same = 0;
    for first in expressions {
        for second in expressions {
            let policy = policy(&[first, second]);
            let memo = Memo::new(&policy, None);
            n_same += usize::from(memo.fields.is_some());
            let off = Memo {
                fields: None,
                ..Memo::new(&policy, None)
            };
            assert_eq!(
                check(&policy, memo),
                check(&policy, off),
                "{first} {second}"
            );
        }
    }
    assert!(n_same > 100, "{n_same}");
}

#[test]
fn equivalent_kinds_are_analyzed_once() {
    let kinds = Kinds::new();
    let n_analyzed = |expression: &str| {
        let policy = policy(&[expression]);
        let mut memo = Memo::new(&policy, None);
        let mut driver = Driver::new(&policy, None);
        for kind in KINDS {
            let gvk = Gvk::new("", "v1", kind);
            let schema = kinds.types.get(&gvk).unwrap();
            memo.analyze(&mut driver, &gvk, schema, &[]);
        }
        memo.steps.len()
    };
    // Namespace is analyzed separately from the other kinds, because its requests have a different namespace.
    assert_eq!(n_analyzed("object.metadata.name != 'a'"), 2);
    // One of the kinds lacks a field that the policy reads.
    assert_eq!(
        n_analyzed("object.spec.size > 3 || object.metadata.name != ''"),
        2
    );
    assert_eq!(n_analyzed("object.kind != ''"), 0);
}

#[test]
fn kinds_without_schema_are_analyzed_once() {
    let n_steps = |expression: &str, kinds: &[&str]| {
        let policy = policy(&[expression]);
        let mut memo = Memo::new(&policy, None);
        let mut driver = Driver::new(&policy, None);
        let before = driver.n_steps_left();
        for kind in kinds {
            let gvk = Gvk::new("", "v1", *kind);
            let object = super::super::requests::schemaless_type(None);
            memo.analyze_schemaless(&mut driver, &gvk, &object, &[]);
        }
        (memo.unseen.len(), before - driver.n_steps_left())
    };
    let one = n_steps("object.spec.size > 3", &UNSEEN[..1]).1;
    assert_eq!(n_steps("object.spec.size > 3", &UNSEEN), (1, 3 * one));
    assert_eq!(
        n_steps("object.spec.size > 3", &["X", "Namespace", "Y"]).0,
        2
    );
    assert_eq!(n_steps("object.kind != ''", &UNSEEN).0, 0);
}

#[test]
fn set_of_read_fields_is_unknown_if_any_field_may_be_read() {
    let table: [(&str, Option<&[&str]>); 12] = [
        (
            "object.metadata.name != oldObject.spec.name",
            Some(&["metadata", "spec"]),
        ),
        ("has(object.spec)", Some(&["metadata", "spec"])),
        ("object['data'].size() > 0", Some(&["data", "metadata"])),
        ("object[?'data'].hasValue()", Some(&["data", "metadata"])),
        ("object.?data.hasValue()", Some(&["data", "metadata"])),
        ("request.operation == 'CREATE'", Some(&["metadata"])),
        (
            "authorizer.path('/a').check('get').allowed()",
            Some(&["metadata"]),
        ),
        ("request.resource.resource == 'a'", None),
        ("object == oldObject", None),
        ("object.kind == 'A'", None),
        ("object[variables.labels['a']] == 1", None),
        ("string(type(object.metadata)) == ''", None),
    ];
    for (expression, expect) in table {
        let policy = policy(&[expression]);
        let expect = expect.map(|fields| fields.iter().copied().collect());
        assert_eq!(fields_read(&policy), expect, "{expression}");
    }
}
