//! The API of `PolicyProbe`, `vap-status.dev/v1alpha1`.
//!
//! `crds/policyprobes.vap-status.dev.yaml` is generated from these types, and what their comments say
//! is what `kubectl explain policyprobe` shows.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBindingSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::crd;

/// The most cases of a probe.
pub const MAX_CASES: usize = 256;

/// Sample requests with what a ValidatingAdmissionPolicy must decide about them. They are evaluated
/// as the API server would, whenever the policy, its bindings, its params, a schema or the probe
/// changes; the outcome is in the status, and in the condition `ProbesPassed` of the policy.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "vap-status.dev",
    version = "v1alpha1",
    kind = "PolicyProbe",
    plural = "policyprobes",
    shortname = "vapprobe",
    category = "vap",
    status = "PolicyProbeStatus",
    derive = "PartialEq",
    selectable = ".spec.policyName",
    doc = "Sample requests with what a ValidatingAdmissionPolicy must decide about them.",
    printcolumn = r#"{"name":"Policy","type":"string","jsonPath":".spec.policyName"}"#,
    printcolumn = r#"{"name":"Passed","type":"string","jsonPath":".status.summary","description":"How many of the cases passed."}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = crd::spec_rules()))]
pub struct PolicyProbeSpec {
    /// The name of the ValidatingAdmissionPolicy; left out where `target` names something else.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub policy_name: String,

    /// The object that the probe is about, where it is no ValidatingAdmissionPolicy. `kubectl vap test` runs such a
    /// probe; the controller does not, and its cases are `Pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,

    /// Where params come from: `FromCluster` (the default), those that exist in the cluster, or, in
    /// files, the objects of paramKind among them; `Inline`, those of `inlineParams`. The controller uses
    /// params of the cluster only with `bindings: FromCluster`, through bindings that have the annotation
    /// `vap-status.dev/probe-inputs: FromCluster`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::source_schema")]
    pub params: Source,

    /// All params that exist, where `params` is `Inline`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crd::inline_params_schema")]
    pub inline_params: Vec<Value>,

    /// Which bindings the policy has: `FromCluster` (the default), those in the cluster, or in the
    /// files; `Inline`, those of `inlineBindings`; `Implied`, one that denies, is not limited to any
    /// resource, and, if the policy has a paramKind, takes all params and denies where there are none.
    /// `Implied` is for a policy that is not bound yet. `Inline` and `Implied` lead to no params of the cluster.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::binding_source_schema")]
    pub bindings: BindingSource,

    /// The specs of all bindings, where `bindings` is `Inline`. `policyName` may be left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crd::inline_bindings_schema")]
    pub inline_bindings: Vec<ValidatingAdmissionPolicyBindingSpec>,

    /// Who answers the checks of `authorizer`: `Inline` (the default), the list `authorizer` of each
    /// case, and what is not in it is not allowed; `FromCluster`, the API server by a
    /// `SubjectAccessReview` for the user of the case.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::authorizer_source_schema")]
    pub authorizer: AuthorizerSource,

    /// Kind of objects of the cases: `Whole` (the default), as a client sends them, with every field
    /// that their schema requires; `Partial`, cut down to what the policy reads. Unknown fields and values of
    /// the wrong type fail a case either way.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::samples_schema")]
    pub samples: Samples,

    /// The requests, each with its expected decision.
    #[schemars(length(min = 1, max = MAX_CASES))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub cases: Vec<Case>,
}

/// An object that a probe is about in the place of a ValidatingAdmissionPolicy.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
#[schemars(extend("x-kubernetes-validations" = crd::target_rules()))]
pub struct Target {
    /// `CustomResourceDefinition`, `MutatingAdmissionPolicy`, `ValidatingWebhookConfiguration` or
    /// `MutatingWebhookConfiguration`.
    #[schemars(schema_with = "crd::target_kind_schema")]
    pub kind: String,
    /// The name of the object.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The name of the webhook in a configuration.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub webhook: Option<String>,
}

impl Target {
    /// A name that no ValidatingAdmissionPolicy can have.
    #[must_use]
    pub fn key(&self) -> String {
        match &self.webhook {
            None => format!("{}/{}", self.kind, self.name),
            Some(webhook) => format!("{}/{}/{webhook}", self.kind, self.name),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.webhook {
            None => write!(f, "{} {}", self.kind, self.name),
            Some(webhook) => write!(f, "webhook {webhook} of {} {}", self.kind, self.name),
        }
    }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// Where params come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum Source {
    /// From the cluster, or from the files.
    #[default]
    FromCluster,
    /// From the probe.
    Inline,
}

/// Where bindings come from.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum BindingSource {
    /// From the cluster, or from the files.
    #[default]
    FromCluster,
    /// From the probe.
    Inline,
    /// One that denies, and takes all params.
    Implied,
}

/// Kinds of objects of cases.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum Samples {
    /// As a client sends them.
    #[default]
    Whole,
    /// Without fields that the schema requires.
    Partial,
}

/// Who answers the checks of `authorizer`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum AuthorizerSource {
    /// The case.
    #[default]
    Inline,
    /// The API server.
    FromCluster,
}

/// A request with its expected decision.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// Description of the case, in a few words.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The request.
    pub request: Request,
    /// Expected decision.
    pub expect: Expect,
}

/// An admission request.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = crd::request_rules()))]
pub struct Request {
    /// `CREATE` (the default), `UPDATE`, `DELETE` or `CONNECT`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::operation_schema")]
    pub operation: Option<String>,
    /// The resource of the request. By default that of the object's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    /// The subresource, such as `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_resource: Option<String>,
    /// The name of the object. By default the one in its metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace of the request. By default the one in the object's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The object; absent on DELETE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub object: Option<Value>,
    /// The object before the request; absent on CREATE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub old_object: Option<Value>,
    /// The options of the request, such as a `CreateOptions`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub options: Option<Value>,
    /// True for a dry run.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub dry_run: bool,
    /// The namespace as an object, for selectors and `namespaceObject`. By default the one in the
    /// cluster or the files, and else one with nothing but its name and the label
    /// `kubernetes.io/metadata.name`. The controller uses the one in the cluster only if all bindings of the
    /// policy have the annotation `vap-status.dev/probe-inputs: FromCluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub namespace_object: Option<Value>,
    /// Who makes the request. By default `system:anonymous` of the group `system:unauthenticated`. A user
    /// with a name is of the group `system:authenticated` too, and a service account of those of service
    /// accounts, as the API server has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_info: Option<UserInfo>,
    /// The answers to checks of `authorizer`, the first that fits. What none fits is not allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub authorizer: Vec<AuthorizerRule>,
}

/// A resource by its group and version.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The group; empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The version.
    pub version: String,
    /// The plural name, without subresource.
    pub resource: String,
}

/// Who makes a request.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// The name.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The uid.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// More that the authenticator says.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// An answer of `authorizer`. A field that is left out fits everything.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerRule {
    /// The verb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The API group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The subresource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_resource: Option<String>,
    /// The namespace.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the object.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path of a request that is not for a resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The answer.
    #[schemars(schema_with = "crd::authorizer_decision_schema")]
    pub decision: AuthorizerDecision,
    /// The reason that is given with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error that is given with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// An answer of an authorizer.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum AuthorizerDecision {
    /// It is allowed.
    Allow,
    /// It is forbidden.
    Deny,
    /// Nobody knows, which means that it is not allowed.
    #[default]
    NoOpinion,
}

/// Expected decision about a request. Fields that are left out are not compared, except that an error of
/// the policy that `error` does not expect fails the case, and so does a policy that does not apply, unless
/// `applies` is false.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = crd::expect_rules()))]
pub struct Expect {
    /// `Allow` or `Deny`. `Deny` is a validation that says no; a denial by an error is expected with
    /// `error`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::decision_schema")]
    pub decision: Option<Decision>,
    /// The error that an expression, the params or a selector must come to, whatever failurePolicy makes of
    /// it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpectedError>,
    /// The message of a failed validation that denies the request: one of them must be just this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A part of such a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_contains: Option<String>,
    /// A regular expression, RE2 as `matches` has it, that matches a part of such a message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message_pattern: Option<String>,
    /// Parts that no such message may have.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub forbidden_messages: Vec<String>,
    /// How many validations say no, whatever the bindings make of it. One that says no for several params
    /// counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::count_schema")]
    pub failing_validations: Option<u32>,
    /// The reason that the status carries, such as `Forbidden`; of a custom resource that of an error, such as
    /// `FieldValueInvalid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The field of an error about a custom resource, such as `spec.ports[0].name`: one error must be of this field,
    /// and have the message and the reason, where they are given too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub field: Option<String>,
    /// How many errors there are about a custom resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::count_schema")]
    pub errors: Option<u32>,
    /// Expected applicability: true if the match constraints, a binding and the match conditions
    /// select the request. An `Allow` may also come from a policy that passes the request over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies: Option<bool>,
    /// The warnings to the client, all of them, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub warnings: Option<Vec<String>>,
    /// Audit annotations that must be made, by their keys without the name of the policy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
    /// Fields that the object must have after the mutations of a MutatingAdmissionPolicy: maps may have more, lists
    /// have just these items, and a field that is null there must be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub object: Option<Value>,
    /// The JSON patch (RFC 6902) from the object that a MutatingAdmissionPolicy gets to the one after its mutations,
    /// defaults apart: nothing else may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::patch_schema")]
    pub patch: Option<Vec<Value>>,
    /// True if a MutatingAdmissionPolicy must leave the object as it is, false if it must change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<bool>,
}

/// An error in one of three ways, all of which it must meet.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(extend("x-kubernetes-validations" = crd::error_rules()))]
pub struct ExpectedError {
    /// The whole text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A part of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression, RE2 as `matches` has it, that matches a part of the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub pattern: Option<String>,
}

/// Decision about a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Decision {
    /// It is admitted.
    #[default]
    Allow,
    /// It is denied.
    Deny,
}

impl Decision {
    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
        }
    }
}

/// Results of the cases.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyProbeStatus {
    /// The generation of the probe that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The generation of the policy that it was evaluated against.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_generation: Option<i64>,
    /// How many cases passed, such as `3/4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// `Ready` is True where all cases passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crd::conditions_schema")]
    pub conditions: Vec<Condition>,
    /// Results of the cases, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub cases: Vec<CaseStatus>,
}

/// Result of a case.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseStatus {
    /// The name of the case.
    pub name: String,
    /// `Passed`, `Failed`, or `Pending` where it could not be evaluated.
    #[schemars(schema_with = "crd::outcome_schema")]
    pub outcome: CaseOutcome,
    /// Actual decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::decision_schema")]
    pub decision: Option<Decision>,
    /// The message of the decision. Absent if the decision depends on params, namespaces or permissions of the
    /// cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The cost of the evaluation, in units of CEL; the API server's limit is 10,000,000. Absent likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_used: Option<i64>,
    /// How that differs from what was expected, or why the case could not be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// Outcomes of a case.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum CaseOutcome {
    /// The decision is the expected one.
    Passed,
    /// It is not.
    Failed,
    /// The case could not be evaluated.
    #[default]
    Pending,
}

impl CaseOutcome {
    /// All outcomes.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Pending];

    /// The name in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Pending => "Pending",
        }
    }
}
