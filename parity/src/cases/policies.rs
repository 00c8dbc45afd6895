//! Provides policies: hand-written policies, policies that are generated from the fields of a kind, and mutants of
//! both.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use vap_status_controller::cel::types::Type;
use vap_status_controller::schema::offline::Offline;
use vap_status_controller::schema::resolver::{Resolution, SchemaResolver};
use vap_status_controller::schema::rest_mapper::ApiResource;
use vap_status_controller::schema::{Builtin, Crd};
use vap_status_controller::version::KubernetesVersion;

use super::choices::Choices;
use super::expressions::{authorizer_type, make, material};
use super::generator::Material;
use super::{choices, eval, mutate, pick, pieces, policy_changes};
use crate::documents::load_documents;

/// A kind for generated policies. The expressions of the policies read its fields.
pub(super) struct Subject {
    pub(super) resource: ApiResource,
    pub(super) material: Material,
    /// `apiVersion` and `kind` of the params.
    params: (String, String),
}

const RESOURCES: [(&str, &str, &str); 16] = [
    ("apps", "v1", "deployments"),
    ("", "v1", "pods"),
    ("", "v1", "services"),
    ("", "v1", "configmaps"),
    ("", "v1", "namespaces"),
    ("", "v1", "secrets"),
    ("", "v1", "persistentvolumeclaims"),
    ("apps", "v1", "statefulsets"),
    ("apps", "v1", "daemonsets"),
    ("batch", "v1", "cronjobs"),
    ("batch", "v1", "jobs"),
    ("networking.k8s.io", "v1", "ingresses"),
    ("networking.k8s.io", "v1", "networkpolicies"),
    ("rbac.authorization.k8s.io", "v1", "clusterroles"),
    ("autoscaling", "v2", "horizontalpodautoscalers"),
    ("policy", "v1", "poddisruptionbudgets"),
];

fn crate_directory() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns the files and directories of hand-written policies.
#[must_use]
pub fn written_by_hand() -> Vec<PathBuf> {
    ["policies", "../config/samples", "oracle/testdata/policies"]
        .map(|path| crate_directory().join(path))
        .to_vec()
}

/// Returns the hand-written CustomResourceDefinitions.
///
/// # Errors
/// Returns an error if a file cannot be read.
pub fn crds_written_by_hand() -> Result<Vec<Value>> {
    let paths =
        ["../config/samples", "oracle/testdata/crds"].map(|path| crate_directory().join(path));
    objects_of_kind(&paths, "CustomResourceDefinition")
}

fn objects_of_kind(paths: &[PathBuf], kind: &str) -> Result<Vec<Value>> {
    let mut objects = Vec::new();
    for document in load_documents(paths)? {
        let value = document.value.with_context(|| document.file.clone())?;
        if value["kind"] == kind {
            objects.push(value);
        }
    }
    Ok(objects)
}

/// Returns the hand-written policies and `n` generated ones.
///
/// # Errors
/// Returns an error if a file or a schema cannot be read.
pub fn policies(seed: u64, n: u64, crds: &[Value]) -> Result<Vec<Value>> {
    let mut policies = objects_of_kind(&written_by_hand(), "ValidatingAdmissionPolicy")?;
    let n_by_hand = policies.len();
    let subjects = subjects(crds)?;
    for at in 0..n {
        let mut choices = choices(seed, "policy", at);
        let mut policy = if at % 3 == 0 {
            let subject = pick(&mut choices, &subjects)?;
            generated(&mut choices, subject)
        } else {
            // 60% of the mutants derive from hand-written policies. The others derive from any earlier policy,
            // hand-written or generated.
            let of = if choices.chance(60) {
                n_by_hand
            } else {
                policies.len()
            };
            let mut policy = policies
                .get(choices.below(of.max(1)))
                .context("no policies")?
                .clone();
            for _ in 0..=choices.below(2) {
                change(&mut choices, &mut policy, &subjects)?;
            }
            policy
        };
        policy["metadata"] = json!({"name": format!("made-{seed}-{at}.example.com")});
        policies.push(policy);
    }
    Ok(policies)
}

/// Returns the kinds for generated policies: built-in kinds, and the kinds that `crds` define.
pub(super) fn subjects(crds: &[Value]) -> Result<Vec<Subject>> {
    let builtin = Builtin::load(KubernetesVersion::DEFAULT)?;
    let mut offline = Offline::default();
    for crd in crds {
        offline.add_crd(&Crd::from_value(crd)?);
    }
    let (schemas, mapper) = offline.finish();
    let config_map = Type::map(Type::String, Type::String);
    let mut subjects = Vec::new();
    let mut add = |resource: &ApiResource, resolver: &dyn SchemaResolver, params: (&str, &str)| {
        let type_ = match resolver.resolve(&resource.gvk) {
            Resolution::Found(type_) => type_.cel_type(&resource.gvk.kind),
            _ => Type::Dyn,
        };
        let mut variables = vec![
            ("object", type_.clone()),
            ("oldObject", type_),
            ("authorizer", authorizer_type()),
            ("request.name", Type::String),
            ("request.operation", Type::String),
            ("request.namespace", Type::String),
            ("request.userInfo.username", Type::String),
            ("request.userInfo.groups", Type::list(Type::String)),
            ("request.dryRun", Type::Bool),
            ("request.options", Type::Dyn),
            ("namespaceObject.metadata.name", Type::String),
            (
                "namespaceObject.metadata.labels",
                Type::map(Type::String, Type::String),
            ),
        ];
        if params.1 == "ConfigMap" {
            variables.push(("params.data", config_map.clone()));
        } else {
            variables.push(("params", Type::Dyn));
        }
        subjects.push(Subject {
            resource: resource.clone(),
            material: material(&variables),
            params: (params.0.to_owned(), params.1.to_owned()),
        });
    };
    for (group, version, name) in RESOURCES {
        let resource = builtin.resources().iter().find(|resource| {
            let gvr = &resource.gvr;
            (&*gvr.group, &*gvr.version, &*gvr.resource) == (group, version, name)
        });
        let resource = resource.with_context(|| format!("no resource {name}"))?;
        add(resource, builtin, ("v1", "ConfigMap"));
    }
    for resource in &mapper.resources {
        if !resource.gvr.is_subresource() {
            add(resource, &schemas, ("rules.example.com/v1", "ReplicaLimit"));
        }
    }
    Ok(subjects)
}

pub(super) fn rule_of(choices: &mut Choices<'_>, resource: &ApiResource) -> Value {
    let operations: &[&[&str]] = &[
        &["CREATE", "UPDATE"],
        &["CREATE"],
        &["UPDATE"],
        &["DELETE"],
        &["*"],
        &["CREATE", "UPDATE", "DELETE"],
    ];
    json!({
        "apiGroups": [resource.gvr.group],
        "apiVersions": [resource.gvr.version],
        "resources": [resource.gvr.resource],
        "operations": operations[choices.below(operations.len())],
    })
}

fn generated(choices: &mut Choices<'static>, subject: &Subject) -> Value {
    let with_params = choices.chance(25);
    let mut spec = json!({
        "matchConstraints": {"resourceRules": [rule_of(choices, &subject.resource)]},
        "validations": [],
    });
    if choices.chance(30) {
        spec["failurePolicy"] = json!(choices.pick(&["Fail", "Ignore"]));
    }
    if with_params {
        let (api_version, kind) = &subject.params;
        spec["paramKind"] = json!({"apiVersion": api_version, "kind": kind});
    }
    let mut names = Vec::new();
    if choices.chance(40) {
        let mut variables = Vec::new();
        for at in 0..=choices.below(3) {
            let name = format!("v{at}");
            let expression = if !names.is_empty() && choices.chance(30) {
                use_of(choices, &names)
            } else if choices.chance(30) {
                choices.pick(pieces::VARIABLES).to_owned()
            } else {
                let depth = 1 + u32::try_from(choices.below(2)).unwrap_or_default();
                make(&subject.material, choices, None, depth)
            };
            variables.push(json!({"name": name, "expression": expression}));
            names.push(name);
        }
        spec["variables"] = variables.into();
    }
    if choices.chance(30) {
        spec["matchConditions"] = (0..=choices.below(2))
            .map(|at| {
                let expression = condition(choices, subject, &names);
                json!({"name": format!("m{at}"), "expression": expression})
            })
            .collect();
    }
    spec["validations"] = (0..=choices.below(3))
        .map(|_| validation(choices, subject, &names))
        .collect();
    if choices.chance(20) {
        let expression = if choices.chance(50) {
            choices.pick(pieces::ANNOTATIONS).to_owned()
        } else {
            make(&subject.material, choices, Some(&Type::String), 1)
        };
        spec["auditAnnotations"] = json!([{"key": "note", "valueExpression": expression}]);
    }
    json!({
        "apiVersion": "admissionregistration.k8s.io/v1",
        "kind": "ValidatingAdmissionPolicy",
        "spec": spec,
    })
}

pub(super) fn use_of(choices: &mut Choices<'_>, names: &[String]) -> String {
    let name = names.get(choices.below(names.len().max(1)));
    let variable = format!("variables.{}", name.map_or("nosuch", String::as_str));
    choices.pick(pieces::VARIABLE_USES).replace('V', &variable)
}

pub(super) fn validation(
    choices: &mut Choices<'static>,
    subject: &Subject,
    names: &[String],
) -> Value {
    let mut validation = json!({"expression": condition(choices, subject, names)});
    if choices.chance(30) {
        validation["message"] = json!(choices.pick(pieces::TEXTS));
    }
    if choices.chance(30) {
        let expression = if choices.chance(70) {
            choices.pick(pieces::MESSAGES).to_owned()
        } else {
            make(&subject.material, choices, Some(&Type::String), 1)
        };
        validation["messageExpression"] = json!(expression);
    }
    if choices.chance(25) {
        validation["reason"] = json!(choices.pick(pieces::REASONS));
    }
    validation
}

/// Generates a condition. Most conditions are about the object.
pub(super) fn condition(
    choices: &mut Choices<'static>,
    subject: &Subject,
    names: &[String],
) -> String {
    if !names.is_empty() && choices.chance(30) {
        return use_of(choices, names);
    }
    match choices.below(12) {
        0 => choices.pick(pieces::REQUEST).to_owned(),
        1 => choices.pick(pieces::PARAMS).to_owned(),
        2 => choices.pick(pieces::BROKEN).to_owned(),
        3 => choices.pick(pieces::FAILING).to_owned(),
        4..=6 => {
            let depth = 1 + u32::try_from(choices.below(3)).unwrap_or_default();
            make(&subject.material, choices, Some(&Type::Bool), depth)
        }
        _ => about_object(choices, &subject.material),
    }
}

pub(super) fn about_object(choices: &mut Choices<'_>, material: &Material) -> String {
    let of_object: Vec<&(String, Type)> = material
        .places
        .iter()
        .filter(|(text, _)| text.starts_with("object") || text.starts_with("params"))
        .collect();
    let Some((place, type_)) = of_object.get(choices.below(of_object.len().max(1))) else {
        return "true".to_owned();
    };
    let expression = eval::about(choices, place, type_);
    if choices.chance(75) {
        // The comparison of the expression with itself makes the condition boolean. Most conditions of real policies
        // are comparisons.
        return format!("!has({place}) || ({expression}) == ({expression})");
    }
    expression
}

fn change(choices: &mut Choices<'static>, policy: &mut Value, subjects: &[Subject]) -> Result<()> {
    if choices.chance(35) {
        return policy_changes::change(choices, policy, subjects);
    }
    let mut expressions = Vec::new();
    collect(policy, &mut expressions);
    if expressions.is_empty() {
        return Ok(());
    }
    let pointer = pick(choices, &expressions)?;
    let expression = policy.pointer_mut(pointer).context("no such field")?;
    *expression = mutate::change(choices, expression.as_str().unwrap_or_default()).into();
    Ok(())
}

/// Collects JSON pointers to the policy's expressions.
fn collect(policy: &Value, found: &mut Vec<String>) {
    for list in [
        "validations",
        "variables",
        "matchConditions",
        "auditAnnotations",
    ] {
        let items = policy["spec"][list].as_array();
        for (at, item) in items.into_iter().flatten().enumerate() {
            for key in ["expression", "messageExpression", "valueExpression"] {
                if item[key].is_string() {
                    found.push(format!("/spec/{list}/{at}/{key}"));
                }
            }
        }
    }
}
