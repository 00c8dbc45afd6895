//! Creates the contents of the cluster: CRDs, params, policies and bindings.

use std::time::{Duration, Instant};

use anyhow::Result;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use k8s_openapi::api::core::v1::ConfigMap;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::{Api, DeleteParams, PostParams};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::wait::await_documents;

/// The maximum number of concurrent requests. The controller has the same limit for status writes.
pub(crate) const CONCURRENCY: usize = 32;

/// The maximum number of CRDs that are created concurrently. For each new CRD, the API server updates all published
/// documents.
const CRDS_AT_ONCE: usize = 8;

const KINDS_PER_GROUP: usize = 10;

const N_DEPENDANTS: usize = 100;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Size {
    pub(crate) policies: usize,
    pub(crate) crds: usize,
    pub(crate) params: usize,
    pub(crate) wildcards: usize,
}

pub(crate) fn parsed<T: DeserializeOwned>(value: Value) -> Result<T> {
    Ok(serde_json::from_value(value)?)
}

/// Creates `n` objects. `make` returns the object with a given number. At most `at_once` requests are concurrent.
pub(crate) async fn create_all<K>(
    api: &Api<K>,
    n: usize,
    at_once: usize,
    make: impl Fn(usize) -> Value,
) -> Result<Duration>
where
    K: Clone + DeserializeOwned + serde::Serialize + std::fmt::Debug,
{
    let started = Instant::now();
    let make = &make;
    stream::iter(0..n)
        .map(|n| async move {
            api.create(&PostParams::default(), &parsed(make(n))?)
                .await?;
            Ok::<_, anyhow::Error>(())
        })
        .buffer_unordered(at_once)
        .try_collect::<()>()
        .await?;
    Ok(started.elapsed())
}

pub(crate) async fn fill(client: &Client, size: Size) -> Result<()> {
    let crds: Api<CustomResourceDefinition> = Api::all(client.clone());
    let took = create_all(&crds, size.crds + 1, CRDS_AT_ONCE, |n| crd(n, "integer")).await?;
    eprintln!("  CRDs created in {:.1} s", took.as_secs_f64());
    await_documents(client, size.crds / KINDS_PER_GROUP).await?;
    let params: Api<ConfigMap> = Api::namespaced(client.clone(), "default");
    create_all(
        &params,
        size.params,
        CONCURRENCY,
        |n| json!({"metadata": {"name": param_name(n)}, "data": {"max": n.to_string()}}),
    )
    .await?;
    Ok(())
}

pub(crate) async fn create_policies(client: &Client, size: Size) -> Result<()> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let took = create_all(&policies, size.policies, CONCURRENCY, |n| policy(n, size)).await?;
    eprintln!("  policies created in {:.1} s", took.as_secs_f64());
    Ok(())
}

pub(crate) async fn delete_policies(client: &Client, size: Size) -> Result<()> {
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    let policies = &policies;
    let started = Instant::now();
    stream::iter(0..size.policies)
        .map(|n| async move { policies.delete(&name(n), &DeleteParams::default()).await })
        .buffer_unordered(CONCURRENCY)
        .try_for_each(|_| async { Ok(()) })
        .await?;
    eprintln!(
        "  policies deleted in {:.1} s",
        started.elapsed().as_secs_f64()
    );
    Ok(())
}

pub(crate) fn param_name(n: usize) -> String {
    format!("param-{n}")
}

pub(crate) fn name(n: usize) -> String {
    format!("bench-{n}.example.com")
}

pub(crate) fn group(n: usize) -> String {
    format!("g{}.bench.example.com", n / KINDS_PER_GROUP)
}

/// Returns the `n`th CRD. `type_` is the type of the field that dependent policies read.
pub(crate) fn crd(n: usize, type_: &str) -> Value {
    let (group, plural, kind) = (group(n), format!("thing{n}s"), format!("Thing{n}"));
    let text = json!({"type": "string", "description": "A text of this very CRD."});
    let fields = (0..20).map(|field| (format!("field{field}"), text.clone()));
    let mut fields: serde_json::Map<String, Value> = fields.collect();
    fields.insert("size".to_owned(), json!({"type": type_}));
    json!({
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced",
            "names": {"kind": kind, "plural": plural, "singular": format!("thing{n}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {
                "type": "object",
                "properties": {"spec": {"type": "object", "properties": fields}},
            }}}],
        },
    })
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Wildcard,
    /// The policy reads the CRD field whose type the benchmark changes.
    Dependant,
    WithParams,
    Plain,
}

impl Role {
    pub(crate) fn new(n: usize, size: Size) -> Self {
        let distance = (size.policies / N_DEPENDANTS).max(1);
        if n < size.wildcards {
            Self::Wildcard
        } else if n % distance == distance / 2 {
            Self::Dependant
        } else if size.params > 0 && n % 10 == 3 {
            Self::WithParams
        } else {
            Self::Plain
        }
    }
}

pub(crate) fn policy(n: usize, size: Size) -> Value {
    let role = Role::new(n, size);
    let (first_group, apps, all) = (group(0), "apps".to_owned(), "*".to_owned());
    let (group, version, resources, own) = match role {
        Role::Wildcard => (
            all,
            "*",
            vec!["*/*"],
            format!("object.metadata.name != 'x{n}'"),
        ),
        Role::Dependant => (
            first_group,
            "v1",
            vec!["thing0s"],
            format!("object.spec.size <= {n}"),
        ),
        Role::WithParams => (
            apps,
            "v1",
            vec!["deployments"],
            "object.spec.replicas <= int(params.data.max)".to_owned(),
        ),
        Role::Plain => (
            apps,
            "v1",
            vec!["deployments", "statefulsets"],
            format!("object.spec.replicas <= {n}"),
        ),
    };
    let param_kind =
        (role == Role::WithParams).then(|| json!({"apiVersion": "v1", "kind": "ConfigMap"}));
    let role = format!("{role:?}").to_lowercase();
    json!({
        "metadata": {"name": name(n), "labels": {"role": role}},
        "spec": {
            "paramKind": param_kind,
            "matchConstraints": {"resourceRules": [{
                "apiGroups": [group], "apiVersions": [version], "operations": ["CREATE", "UPDATE"],
                "resources": resources,
            }]},
            "validations": [
                {"expression": own},
                {"expression": "!has(object.metadata.labels) || object.metadata.labels.all(key, key.size() < 100)"},
                {"expression": "has(object.metadata.labels) && 'team' in object.metadata.labels"},
            ],
        },
    })
}

pub(crate) async fn bind_all(client: &Client, size: Size) -> Result<Duration> {
    let api: Api<ValidatingAdmissionPolicyBinding> = Api::all(client.clone());
    create_all(&api, size.policies, CONCURRENCY, |n| {
        let with_params = Role::new(n, size) == Role::WithParams;
        let reference = json!({"name": param_name(n % size.params.max(1)), "namespace": "default",
                               "parameterNotFoundAction": "Deny"});
        json!({
            "metadata": {"name": name(n)},
            // With the action Audit, no request is denied.
            "spec": {"policyName": name(n), "validationActions": ["Audit"],
                     "matchResources": {"namespaceSelector": {"matchLabels": {"no-such": "label"}}},
                     "paramRef": with_params.then_some(reference)},
        })
    })
    .await
}
