//! Findings about the params of the input: objects that do not fit the schema of their kind, and keys that a policy
//! reads but the `ConfigMap` of its binding does not have.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use goyaml::Node;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use serde_json::{Value, json};

use super::expressions::finding_in;
use super::finding::{Finding, Severity};
use super::known::Known;
use super::policy::{bindings_of, object_finding};
use super::suggestion::{completed, nearest};
use super::{partial, validation};
use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::cel::source::SourceMap;
use crate::cli::input::skipped::SkippedKind;
use crate::cli::input::{Input, Object};
use crate::custom_resource::{RULES_NOT_CHECKED, Validator};
use crate::policy::compile::CompiledPolicy;
use crate::policy::reads::{self, Attribute};
use crate::policy::rule::Rule;
use crate::policy::{RequestPolicy, declared_param_kind};
use crate::probe::api::Samples;
use crate::probe::sample::{self, REQUIRED, UNKNOWN};
use crate::schema::Gvk;
use crate::status::message;

/// The fields of a `ConfigMap` whose keys the author chooses.
const FIELDS: [&str; 2] = ["data", "binaryData"];

/// Returns the findings about the params of the policies of the input.
pub(super) fn check(input: &Input, known: &Known) -> Vec<Finding> {
    let mutating = input.mutating_policies.iter();
    let mutating = mutating.map(|it| {
        let bindings = &input.mutating_bindings;
        (&it.shared, Some(it.mutations.as_slice()), bindings)
    });
    let policies = input.policies.iter();
    let policies = policies.map(|policy| (policy, None, &input.bindings));
    let mut findings = Vec::new();
    let mut kinds = BTreeMap::new();
    for (policy, mutations, bindings) in policies.chain(mutating) {
        let Some(gvk) = declared_param_kind(&policy.value) else {
            continue;
        };
        let Some(objects) = input.dropped.get(&(gvk.api_version(), gvk.kind.clone())) else {
            continue;
        };
        if (gvk.group.as_str(), gvk.kind.as_str()) == ("", "ConfigMap") {
            let read =
                || CompiledPolicy::from_parts(policy.value.clone(), mutations, known.version());
            missing_keys(policy, (bindings, objects), read, &mut findings);
        }
        kinds.insert(gvk, objects);
    }
    for (gvk, objects) in kinds {
        for object in &objects.objects {
            let mut of_object = unfit(object, &gvk, known);
            partial::adapt(&**object, &mut of_object);
            findings.extend(of_object);
        }
    }
    findings
}

/// Returns the findings about an object that does not fit the schema of its kind.
fn unfit(object: &Arc<Object<()>>, gvk: &Gvk, known: &Known) -> Vec<Finding> {
    let value = object.document.node.to_json();
    let mut problems: Vec<(String, String)> = Vec::new();
    for violation in sample::violations(&value, gvk, known, Samples::Whole, "") {
        let field = violation.field_ref.trim_start_matches('.').to_owned();
        problems.push((field, violation.message));
    }
    problems.extend(rejections(&value, gvk, known));
    let mut fields = BTreeSet::new();
    // A required field with a misspelled name is reported only as an unknown field.
    let unknown: Vec<(String, String)> = problems
        .iter()
        .filter(|(_, problem)| problem.starts_with(UNKNOWN))
        .cloned()
        .collect();
    let is_misspelled = |field: &str| {
        let (parent, name) = field.rsplit_once('.').unwrap_or_default();
        let meant = format!("`{name}`");
        let mut unknown = unknown.iter();
        unknown.any(|(other, problem)| {
            problem.contains(&meant) && other.rsplit_once('.').unwrap_or_default().0 == parent
        })
    };
    problems.retain(|(field, problem)| {
        fields.insert(field.clone()) && (problem.starts_with(UNKNOWN) || !is_misspelled(field))
    });
    let findings = problems.into_iter().map(|(field, problem)| {
        let node = object.document.node.nearest(&field);
        let (rule, length) = match &*problem {
            it if it.starts_with(UNKNOWN) => (Rule::UnknownField, object.length_of(node)),
            REQUIRED => (Rule::Required, 1),
            _ => (Rule::InvalidValue, object.length_of(node)),
        };
        let message = format!(
            "params of a policy: `{field}` {}",
            match rule {
                Rule::UnknownField => format!("is an {problem}"),
                Rule::Required => problem,
                _ => format!("is invalid: {problem}"),
            }
        );
        let place = object.place_of(node);
        let mut finding = object_finding(&**object, Severity::Warning, rule, &message, place);
        finding.location.length = length;
        finding.field_ref = Some(field);
        finding.help = Some(match rule {
            Rule::UnknownField => {
                "the API server drops the field, and kubectl rejects the object".to_owned()
            }
            _ => validation::help(None),
        });
        finding
    });
    findings.collect()
}

/// Returns the fields and messages of the errors for which the API server rejects a custom resource.
fn rejections(value: &Value, gvk: &Gvk, known: &Known) -> Vec<(String, String)> {
    let schema = known.written_schema(gvk).filter(|_| !known.is_of_cluster());
    let Some(schema) = schema else {
        return Vec::new();
    };
    let is_namespaced = value.pointer("/metadata/namespace").is_some();
    let definition = json!({"spec": {
        "group": gvk.group,
        "scope": if is_namespaced { "Namespaced" } else { "Cluster" },
        "names": {"kind": gvk.kind},
        "versions": [{"name": gvk.version, "schema": {"openAPIV3Schema": schema}}],
    }});
    let validator = Validator::new(&definition, &gvk.version, known.version());
    let verdict = validator.and_then(|validator| validator.validate(value, None, ""));
    let errors = verdict.map(|verdict| verdict.errors).unwrap_or_default();
    let errors = errors
        .into_iter()
        .filter(|error| error.detail != RULES_NOT_CHECKED);
    errors
        .map(|error| (error.field.clone(), error.body()))
        .collect()
}

/// Adds a finding for each key that the policy reads from a `ConfigMap` that has only a similar key.
fn missing_keys(
    policy: &Object<RequestPolicy>,
    (bindings, objects): (&[Object<ValidatingAdmissionPolicyBinding>], &SkippedKind),
    compiled: impl Fn() -> CompiledPolicy,
    findings: &mut Vec<Finding>,
) {
    let mut params: Vec<&Arc<Object<()>>> = Vec::new();
    for binding in bindings_of(policy, bindings) {
        let Some(param_ref) = &binding.value.spec.param_ref else {
            continue;
        };
        let namespace = param_ref.namespace.as_deref();
        let is_own = |object: &&Arc<Object<()>>| {
            let is_in_namespace = object.namespace().is_none()
                || namespace.is_none()
                || object.namespace() == namespace;
            is_in_namespace && object.name() == param_ref.name.as_deref()
        };
        if param_ref.name.is_some() {
            params.extend(objects.objects.iter().filter(is_own));
        }
    }
    if params.is_empty() {
        return;
    }
    let compiled = compiled();
    let mut read: Vec<(usize, ExprId, &str, &str)> = Vec::new();
    for (n, expression) in compiled.expressions().iter().enumerate() {
        if let Ok(ast) = expression.parsed() {
            let keys = ast.iter().filter_map(|(id, _)| key_read(ast, id));
            read.extend(keys.map(|(id, field, key)| (n, id, field, key)));
        }
    }
    let all_read: BTreeSet<&str> = read.iter().map(|(.., key)| *key).collect();
    for object in params {
        for (n, id, field, key) in &read {
            let data = object.document.node.get(field).map(Node::to_json);
            let Some(Value::Object(data)) = data else {
                continue;
            };
            let names = || {
                data.keys()
                    .map(String::as_str)
                    .filter(|name| !all_read.contains(name))
            };
            let meant = nearest(key, names()).or_else(|| completed(key, 2 * key.len(), names()));
            let (Some(meant), Some(expression)) = (meant, compiled.expressions().get(*n)) else {
                continue;
            };
            let Some(ast) = expression
                .parsed()
                .ok()
                .filter(|_| !data.contains_key(*key))
            else {
                continue;
            };
            let location = SourceMap::new(&expression.text).location(ast.offset(*id));
            let name = object.name().unwrap_or_default();
            let message =
                format!("the ConfigMap `{name}`, which a binding refers to, has no key `{key}`");
            let level_and_rule = (Severity::Warning, Rule::AbsentKey);
            let mut finding = finding_in(policy, expression, location, level_and_rule, &message);
            finding.help = Some(format!("did you mean `{meant}`?"));
            finding.kinds = vec![message::kind(&Gvk::new("", "v1", "ConfigMap"))];
            findings.push(finding);
        }
    }
}

/// Returns the node, the field and the key if the expression `id` reads or tests a key of the params.
fn key_read(ast: &Ast, id: ExprId) -> Option<(ExprId, &str, &str)> {
    let (map, key) = match ast.global_call(id) {
        Some(("@in", [key, map])) => (Attribute::new(ast, *map), Some(string(ast, *key)?)),
        _ => (Attribute::new(ast, id), None),
    };
    if !reads::is_input(ast, map.operand, reads::Input::Params) {
        return None;
    }
    let names: Option<Vec<&str>> = map.qualifiers.iter().map(|it| it.key.name()).collect();
    let (field, key) = match (&*names?, key) {
        ([field], Some(key)) => (*field, key),
        ([field, key], None) => (*field, *key),
        _ => return None,
    };
    FIELDS.contains(&field).then_some((id, field, key))
}

fn string(ast: &Ast, id: ExprId) -> Option<&str> {
    match ast.expr(id) {
        Expr::Literal(Literal::String(text)) => Some(text),
        _ => None,
    }
}
