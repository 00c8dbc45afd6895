//! The API of `PolicyProbe`, `vap-status.dev/v1alpha1`.
//!
//! `crds/policyprobes.vap-status.dev.yaml` is generated from these types. `kubectl explain policyprobe` shows their
//! comments.

use std::collections::BTreeMap;
use std::fmt;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBindingSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::crd;

/// The maximum number of cases of a probe.
pub const MAX_CASES: usize = 256;

/// Sample requests with the expected decisions of a ValidatingAdmissionPolicy. The controller evaluates the requests as
/// an API server would, whenever the policy, its bindings, its params, a schema or the probe changes. The results are
/// in the status of the probe, and in the condition `ProbesPassed` of the policy.
#[derive(Clone, CustomResource, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[kube(
    group = "vap-status.dev",
    version = "v1alpha1",
    kind = "PolicyProbe",
    plural = "policyprobes",
    shortname = "vapprobe",
    category = "vap-status",
    status = "PolicyProbeStatus",
    derive = "PartialEq",
    selectable = ".spec.policyName",
    doc = "Sample requests with the expected decisions of a ValidatingAdmissionPolicy.",
    printcolumn = r#"{"name":"Policy","type":"string","jsonPath":".spec.policyName"}"#,
    printcolumn = r#"{"name":"Passed","type":"string","jsonPath":".status.summary","description":"The number of cases that passed."}"#,
    printcolumn = r#"{"name":"Ready","type":"string","jsonPath":".status.conditions[?(@.type=='Ready')].status"}"#,
    printcolumn = r#"{"name":"Reason","type":"string","priority":1,"jsonPath":".status.conditions[?(@.type=='Ready')].reason"}"#,
    printcolumn = r#"{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}"#
)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = crd::spec_rules()))]
pub struct PolicyProbeSpec {
    /// The name of the ValidatingAdmissionPolicy. Omitted if the probe has a `target`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    #[schemars(length(min = 1, max = 253))]
    pub policy_name: String,

    /// The object that the probe tests, if it is not a ValidatingAdmissionPolicy. `kubectl vap test` runs such a probe.
    /// The controller runs it if it watches the kind of the target; otherwise its cases are `Pending`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,

    /// The source of params. `FromCluster` (the default): the param objects in the cluster (for `kubectl vap test`, in
    /// the files). `Inline`: the objects in `inlineParams`. The controller uses params of the cluster only with
    /// `bindings: FromCluster`, and only for bindings with the annotation `vap-status.dev/probe-inputs: FromCluster`.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::source_schema")]
    pub params: Source,

    /// The param objects for `params: Inline`. Params of the cluster are then not used.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crd::inline_params_schema")]
    pub inline_params: Vec<Value>,

    /// The source of bindings. `FromCluster` (the default): the bindings in the cluster (for `kubectl vap test`, in the
    /// files). `Inline`: the bindings in `inlineBindings`. `Implied`: one generated binding, for a policy that is not
    /// bound yet. It has the action Deny and matches all resources. If the policy has a paramKind, it uses all params,
    /// and denies the request if there are none. `Inline` and `Implied` bindings do not use params of the cluster.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::binding_source_schema")]
    pub bindings: BindingSource,

    /// The specs of the bindings for `bindings: Inline`. `policyName` is optional in each spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crd::inline_bindings_schema")]
    pub inline_bindings: Vec<ValidatingAdmissionPolicyBindingSpec>,

    /// The source of the authorizer's decisions, for policies that use the CEL variable `authorizer`. `Inline` (the
    /// default): the list `authorizer` of each case. A check that no entry of the list matches is not allowed.
    /// `FromCluster`: the API server, by a `SubjectAccessReview` for the user of the case.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::authorizer_source_schema")]
    pub authorizer: AuthorizerSource,

    /// The completeness of the objects in cases. `Whole` (the default): each object has every field that the schema
    /// requires, as a client would send it. `Partial`: an object may have only the fields that the policy reads. With
    /// both values, a case with an unknown field or a value of the wrong type fails.
    #[serde(default, skip_serializing_if = "is_default")]
    #[schemars(schema_with = "crd::samples_schema")]
    pub samples: Samples,

    /// The requests, each with its expected decision.
    #[schemars(length(min = 1, max = MAX_CASES))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub cases: Vec<Case>,
}

/// An object that a probe tests instead of a ValidatingAdmissionPolicy.
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

impl Target {}

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

/// The source of params.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum Source {
    /// From the cluster, or from the files.
    #[default]
    FromCluster,
    /// From `inlineParams` of the probe.
    Inline,
}

/// The source of bindings.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum BindingSource {
    /// From the cluster, or from the files.
    #[default]
    FromCluster,
    /// From `inlineBindings` of the probe.
    Inline,
    /// One generated binding that has the action Deny, matches all resources and uses all params.
    Implied,
}

/// The completeness of the objects in cases.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum Samples {
    /// Objects as a client sends them.
    #[default]
    Whole,
    /// Objects that may lack fields that the schema requires.
    Partial,
}

/// The source of decisions for checks of `authorizer`.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq, Serialize)]
pub enum AuthorizerSource {
    /// The list `authorizer` of the case.
    #[default]
    Inline,
    /// The API server, by a `SubjectAccessReview`.
    FromCluster,
}

/// A request with its expected decision.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Case {
    /// A short description of the case.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// The admission request to evaluate.
    pub request: Request,
    /// The expected decision.
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
    /// The resource of the request. By default, the resource of the object's kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<Resource>,
    /// The subresource, such as `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_resource: Option<String>,
    /// The name in the request. By default, the name in the object's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The namespace of the request. By default, the namespace in the object's metadata.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The new object. Absent on DELETE.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub object: Option<Value>,
    /// The object before the request. Absent on CREATE.
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
    /// The namespace object, for namespace selectors and for the CEL variable `namespaceObject`. By default, the
    /// namespace in the cluster (for `kubectl vap test`, in the files). If it does not exist there, a namespace with
    /// only its name and the label `kubernetes.io/metadata.name` is used. The controller uses the namespace in the
    /// cluster only if all bindings of the policy have the annotation `vap-status.dev/probe-inputs: FromCluster`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub namespace_object: Option<Value>,
    /// The user who sends the request. By default, `system:anonymous` in the group `system:unauthenticated`. As in the
    /// API server, a user with a name is also in the group `system:authenticated`, and a service account is also in its
    /// `system:serviceaccounts` groups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user_info: Option<UserInfo>,
    /// The results of authorization checks, for policies that use the CEL variable `authorizer`. The first entry that
    /// matches a check applies. A check that no entry matches is not allowed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub authorizer: Vec<AuthorizerRule>,
}

/// A resource, identified by its group, version and plural name.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// The API group. Empty for the core group.
    #[serde(default)]
    pub group: String,
    /// The API version, such as `v1`.
    pub version: String,
    /// The plural name without the subresource, such as `pods`.
    pub resource: String,
}

/// The user who sends a request.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct UserInfo {
    /// The name of the user, such as `system:serviceaccount:shop:web`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub username: String,
    /// The unique ID of the user.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// The groups of the user.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub groups: Vec<String>,
    /// Additional attributes that the authenticator provides.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub extra: BTreeMap<String, Vec<String>>,
}

/// The result of the authorization checks that match all fields of the entry. An absent field matches every value.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthorizerRule {
    /// The verb of the check, such as `get`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<String>,
    /// The API group of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// The plural name of the resource, such as `pods`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    /// The subresource, such as `scale`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sub_resource: Option<String>,
    /// The namespace of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// The name of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The path of a non-resource request, such as `/healthz`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// The decision about matching checks.
    #[schemars(schema_with = "crd::authorizer_decision_schema")]
    pub decision: AuthorizerDecision,
    /// The reason that the authorizer returns with the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The error that the authorizer returns with the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
}

/// A decision of an authorizer.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum AuthorizerDecision {
    /// The action is allowed.
    Allow,
    /// The action is forbidden.
    Deny,
    /// The authorizer has no opinion. The action is then not allowed.
    #[default]
    NoOpinion,
}

/// The expected decision about a request. Absent fields are not compared, with two exceptions: the case fails if the
/// policy has an error and `error` is absent, or if the policy does not apply and `applies` is not false.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
#[schemars(extend("x-kubernetes-validations" = crd::expect_rules()))]
pub struct Expect {
    /// The expected decision: `Allow` or `Deny`. `Deny` requires that a validation evaluates to false. Use `error` for
    /// a request that is denied because of an error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::decision_schema")]
    pub decision: Option<Decision>,
    /// The expected error of an expression, of the params or of a selector. The error is expected with failurePolicy
    /// Fail and with Ignore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ExpectedError>,
    /// The expected message of a failed validation that denies the request. If several validations deny the request,
    /// one of them must have this message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// A substring of the message of a failed validation that denies the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message_contains: Option<String>,
    /// A regular expression (RE2, as in the CEL function `matches`) that must match a substring of the message of a
    /// failed validation that denies the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub message_pattern: Option<String>,
    /// Substrings that must not occur in the message of any failed validation that denies the request.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 64))]
    pub forbidden_messages: Vec<String>,
    /// The expected number of validations that evaluate to false, regardless of the actions of bindings. A validation
    /// that is false for several params counts once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::count_schema")]
    pub failing_validations: Option<u32>,
    /// The expected reason of the denial, such as `Forbidden`. For a custom resource, the reason of an error, such as
    /// `FieldValueInvalid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The field of an expected validation error of a custom resource, such as `spec.ports[0].name`. One error must
    /// have this field, and also the expected message and reason, if these are set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 4096))]
    pub field: Option<String>,
    /// The expected number of validation errors of a custom resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::count_schema")]
    pub errors: Option<u32>,
    /// True if the policy must apply to the request, false if it must not. A policy applies if its match constraints, a
    /// binding and its match conditions match the request. A policy that does not apply allows the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub applies: Option<bool>,
    /// The expected warnings to the client: exactly these, in any order.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub warnings: Option<Vec<String>>,
    /// Audit annotations that must be present. The keys are without the name of the policy.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
    /// Fields that the object must have after the mutations of a MutatingAdmissionPolicy. The object may have
    /// additional fields. Lists must have exactly these items. A field with the value null must be absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::any_object_schema")]
    pub object: Option<Value>,
    /// The expected JSON patch (RFC 6902), from the object before the mutations of a MutatingAdmissionPolicy to the
    /// object after the mutations. Except for defaults, no other field may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::patch_schema")]
    pub patch: Option<Vec<Value>>,
    /// True if a MutatingAdmissionPolicy must not change the object, false if it must change it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unchanged: Option<bool>,
}

/// The expected error. The text of the actual error must match every field that is set.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[schemars(extend("x-kubernetes-validations" = crd::error_rules()))]
pub struct ExpectedError {
    /// The complete text of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// A substring of the text of the error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contains: Option<String>,
    /// A regular expression (RE2, as in the CEL function `matches`) that must match a substring of the text of the
    /// error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 1024))]
    pub pattern: Option<String>,
}

/// A decision about a request.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum Decision {
    /// The request is admitted.
    #[default]
    Allow,
    /// The request is denied.
    Deny,
}

impl Decision {
    /// Returns the value of the field `decision` in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "Allow",
            Self::Deny => "Deny",
        }
    }
}

/// The results of a probe.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyProbeStatus {
    /// The generation of the probe that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// The generation of the policy that was evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy_generation: Option<i64>,
    /// The number of cases that passed and the number of all cases, such as `3/4`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The conditions. `Ready` is True if all cases passed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(schema_with = "crd::conditions_schema")]
    pub conditions: Vec<Condition>,
    /// The results of the cases, in the order of the spec.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub cases: Vec<CaseStatus>,
}

/// The result of a case.
#[derive(Clone, Debug, Default, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseStatus {
    /// The name of the case.
    pub name: String,
    /// `Passed`, `Failed`, or `Pending` if the case could not be evaluated.
    #[schemars(schema_with = "crd::outcome_schema")]
    pub outcome: CaseOutcome,
    /// The actual decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "crd::decision_schema")]
    pub decision: Option<Decision>,
    /// The message of the decision. Absent if the decision depends on params, namespaces or permissions in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// The cost of the evaluation, in CEL cost units. The API server's limit is 10,000,000. Absent if the decision
    /// depends on params, namespaces or permissions in the cluster.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_used: Option<i64>,
    /// The difference from the expected decision, or the reason why the case could not be evaluated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
}

/// The outcome of a case.
#[derive(Clone, Copy, Debug, Default, Deserialize, Eq, PartialEq, Serialize)]
pub enum CaseOutcome {
    /// The actual decision equals the expected one.
    Passed,
    /// The actual decision differs from the expected one.
    Failed,
    /// The case could not be evaluated.
    #[default]
    Pending,
}

impl CaseOutcome {
    /// All outcomes.
    pub const ALL: [Self; 3] = [Self::Passed, Self::Failed, Self::Pending];

    /// Returns the value of the field `outcome` in the API.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Passed => "Passed",
            Self::Failed => "Failed",
            Self::Pending => "Pending",
        }
    }
}
