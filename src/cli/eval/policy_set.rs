//! Prepares policies of files or of a cluster for evaluation, with their bindings, params and namespaces.
//!
//! This module reads no files and sends no requests: callers pass the input and the known APIs.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use serde_json::Value;

use super::facts::{self, RequestFact};
use crate::cli::check::finding::Finding;
use crate::cli::check::known::Known;
use crate::cli::input::{Input, Object};
use crate::cli::test::cluster;
use crate::cli::test::rejection;
use crate::cli::time_limit::TimeLimit;
use crate::policy;
use crate::policy::RequestPolicy;
use crate::policy::admission::mutation::{KindsOf, MutatingAdmission};
use crate::policy::admission::{self, Admission, Binding, Namespace, ParamList, TextLimits};
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::Role;
use crate::policy::subject::SubjectKind;
use crate::probe::mutation::MutationInputs;
use crate::probe::run;
use crate::probe::target::TargetId;
use crate::schema::Gvk;

/// Data of a cluster other than policies and bindings.
#[derive(Debug, Default)]
pub(in crate::cli) struct ClusterInputs {
    /// The param objects by kind, or the reason why they cannot be read.
    pub(in crate::cli) params: BTreeMap<Gvk, Result<Vec<Value>, String>>,
    /// All namespaces of the cluster; empty if they cannot be read.
    pub(in crate::cli) namespaces: Vec<Value>,
    /// The number of validating policies from files. In the input, these policies precede those of the cluster.
    pub(in crate::cli) n_own_policies: usize,
    /// The number of mutating policies from files. In the input, these policies precede those of the cluster.
    pub(in crate::cli) n_own_mutating: usize,
    /// True if all bindings of the cluster were read.
    pub(in crate::cli) has_bindings: bool,
}

/// The policies of an input, prepared for evaluation.
pub(in crate::cli) struct PolicySet<'a> {
    /// The served APIs and their schemas.
    pub(in crate::cli) known: &'a Known,
    /// The validating policies in the order of the input, followed by the mutating policies.
    pub(in crate::cli) policies: Vec<PreparedPolicy<'a>>,
    /// The schemas and defaults of kinds, which mutations need.
    pub(in crate::cli) kinds: KindsOf<'a, Known>,
    /// The namespaces of the cluster and of the files, by name.
    pub(in crate::cli) namespaces: BTreeMap<String, Namespace>,
    pub(in crate::cli) limit: TimeLimit,
    /// The limits for recording values as text.
    pub(in crate::cli) text_limits: TextLimits,
}

pub(in crate::cli) struct PreparedPolicy<'a> {
    /// The policy as it was read, with its location.
    pub(in crate::cli) object: &'a Object<RequestPolicy>,
    pub(in crate::cli) name: &'a str,
    pub(in crate::cli) compiled: CompiledPolicy,
    pub(in crate::cli) admission: Admission,
    pub(in crate::cli) param_kind: Option<Gvk>,
    /// The bindings. A policy without bindings gets an implied binding.
    pub(in crate::cli) bindings: Vec<Binding>,
    /// True if the only binding is implied, because the policy has no binding.
    pub(in crate::cli) is_unbound: bool,
    /// The params, or the reason why they are unknown.
    pub(in crate::cli) params: Result<ParamList, String>,
    /// The number of param objects of the paramKind.
    pub(in crate::cli) n_params: usize,
    /// The reason why the API server rejects the policy, or `None` if the policy is accepted.
    pub(in crate::cli) rejection: Option<String>,
    /// The request data that the expressions of the policy read.
    pub(in crate::cli) reads: BTreeSet<RequestFact>,
    /// The fields of the validations, such as `spec.validations[0].expression`.
    pub(in crate::cli) validations: Vec<String>,
    /// The mutations of a mutating policy. `None` for a validating policy.
    pub(in crate::cli) mutating: Option<MutatingAdmission>,
    /// True if the policy is from a cluster, false if it is from a file.
    pub(in crate::cli) is_live: bool,
}

impl<'a> PolicySet<'a> {
    /// Prepares the policies of `input`. Errors in policies from files are added to `findings`, and these policies are
    /// not evaluated.
    pub(in crate::cli) fn new(
        input: &'a Input,
        known: &'a Known,
        cluster_inputs: Option<&ClusterInputs>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let n_own =
            cluster_inputs.map_or(usize::MAX, |cluster_inputs| cluster_inputs.n_own_policies);
        let own = input.policies.iter().take(n_own);
        let own: BTreeSet<TargetId> = own
            .map(|policy| TargetId::policy(policy.name().unwrap_or_default()))
            .collect();
        let mut rejections = rejection::check_policies(input, known, &own, findings);
        let policies = input.policies.iter().enumerate();
        let policies = policies.map(|(n, object)| {
            let compiled = CompiledPolicy::from_parts(object.value.clone(), None, known.version());
            let mut prepared = PreparedPolicy::new(
                object,
                &input.bindings,
                compiled,
                input,
                known,
                cluster_inputs,
            );
            prepared.is_live = n >= n_own;
            prepared
        });
        let mut policies: Vec<PreparedPolicy<'_>> = policies.collect();
        let n_mutating =
            cluster_inputs.map_or(usize::MAX, |cluster_inputs| cluster_inputs.n_own_mutating);
        let own = input.mutating_policies.iter().take(n_mutating);
        let own: BTreeSet<TargetId> = own
            .map(|policy| {
                let name = policy.shared.name().unwrap_or_default();
                TargetId::new(SubjectKind::MutatingAdmissionPolicy, name)
            })
            .collect();
        rejection::check_mutating_policies(input, known, &own, findings, &mut rejections);
        for (n, policy) in input.mutating_policies.iter().enumerate() {
            let (compiled, mutating) = cluster::prepare_mutating(policy, known.version());
            let bindings = &input.mutating_bindings;
            let mut prepared = PreparedPolicy::new(
                &policy.shared,
                bindings,
                compiled,
                input,
                known,
                cluster_inputs,
            );
            prepared.is_live = n >= n_mutating;
            prepared.mutating = Some(mutating);
            policies.push(prepared);
        }
        for prepared in policies.iter_mut().filter(|prepared| !prepared.is_live) {
            prepared.rejection = rejections.get(&prepared.id()).cloned();
        }
        let mut namespaces = BTreeMap::new();
        let cluster_namespaces = cluster_inputs
            .into_iter()
            .flat_map(|cluster_inputs| &cluster_inputs.namespaces);
        let file_namespaces = input.namespaces.iter().map(|object| &object.value);
        for namespace in cluster_namespaces.chain(file_namespaces) {
            let namespace = Namespace::new(namespace);
            namespaces.insert(namespace.name().to_owned(), namespace);
        }
        Self {
            known,
            policies,
            kinds: KindsOf::new(known.builtin(), known),
            namespaces,
            limit: TimeLimit::default(),
            text_limits: TextLimits::default(),
        }
    }
}

impl<'a> PreparedPolicy<'a> {
    /// Returns true if the policy or one of its bindings selects namespaces by labels.
    pub(in crate::cli) fn has_namespace_selector(&self) -> bool {
        let constraints = self.object.value.match_constraints.as_ref();
        let selector = constraints.and_then(|it| it.namespace_selector.as_ref());
        let is_set = selector.is_some_and(|selector| {
            selector
                .match_labels
                .as_ref()
                .is_some_and(|labels| !labels.is_empty())
                || selector
                    .match_expressions
                    .as_ref()
                    .is_some_and(|of| !of.is_empty())
        });
        is_set || self.bindings.iter().any(Binding::has_namespace_selector)
    }

    pub(super) fn new(
        object: &'a Object<RequestPolicy>,
        bindings: &[Object<ValidatingAdmissionPolicyBinding>],
        compiled: CompiledPolicy,
        input: &'a Input,
        known: &Known,
        cluster_inputs: Option<&ClusterInputs>,
    ) -> Self {
        let name = object.name().unwrap_or_default();
        let param_kind = policy::param_kind(&object.value);
        let policy_bindings = bindings
            .iter()
            .filter(|it| it.value.spec.policy_name == name);
        // If several bindings have the same name, the last binding is used, as with `kubectl apply`.
        let named =
            policy_bindings.map(|it| (it.name().unwrap_or_default(), Binding::new(&it.value)));
        let named: BTreeMap<&str, Binding> = named.collect();
        let mut bindings: Vec<Binding> = named.into_values().collect();
        let is_unbound = bindings.is_empty();
        if is_unbound {
            bindings.push(run::implied_binding(name, param_kind.as_ref()));
        }
        let (params, n_params) = params(input, known, param_kind.as_ref(), cluster_inputs);
        Self {
            object,
            name,
            admission: Admission::from_compiled(&compiled),
            reads: facts::from_policy(&compiled),
            validations: validations(&compiled),
            compiled,
            param_kind,
            bindings,
            is_unbound,
            params,
            n_params,
            rejection: None,
            mutating: None,
            is_live: false,
        }
    }

    pub(in crate::cli) fn id(&self) -> TargetId {
        TargetId::new(self.kind(), self.name)
    }

    pub(in crate::cli) const fn kind(&self) -> SubjectKind {
        match self.mutating {
            None => SubjectKind::ValidatingAdmissionPolicy,
            Some(_) => SubjectKind::MutatingAdmissionPolicy,
        }
    }

    /// Returns the inputs for evaluating the mutations, or `None` for a validating policy.
    pub(in crate::cli) fn mutating<'b>(
        &'b self,
        policy_set: &'b PolicySet<'_>,
    ) -> Option<MutationInputs<'b>> {
        self.mutating.as_ref().map(|policy| MutationInputs {
            policy,
            kinds: &policy_set.kinds,
            schemas: policy_set.known,
        })
    }

    pub(in crate::cli) fn actions(&self, binding: Option<&str>) -> &[String] {
        let named = self.bindings.iter().find(|it| Some(it.name()) == binding);
        named.map(Binding::validation_actions).unwrap_or_default()
    }
}

fn validations(compiled: &CompiledPolicy) -> Vec<String> {
    let all = compiled.expressions().iter();
    let all = all.filter(|expression| expression.role == Role::Validation);
    all.map(|expression| expression.field_ref.clone()).collect()
}

/// Returns the param objects of a kind, and their number. Includes the objects of the cluster, if it was read.
fn params(
    input: &Input,
    known: &Known,
    kind: Option<&Gvk>,
    cluster_inputs: Option<&ClusterInputs>,
) -> (Result<ParamList, String>, usize) {
    let Some(kind) = kind else {
        return (Ok(ParamList::default()), 0);
    };
    let n_file_params = input.objects_of_kind(kind).count();
    match cluster_inputs.and_then(|cluster_inputs| cluster_inputs.params.get(kind)) {
        // An object in a file replaces the cluster's object of the same name.
        Some(Ok(values)) => {
            let key = |object: &Value| {
                let object = admission::Object::new(object);
                (object.namespace().to_owned(), object.name().to_owned())
            };
            let files = input.objects_of_kind(kind).map(|object| &object.value);
            let by_name = values.iter().chain(files);
            let by_name: BTreeMap<_, _> = by_name.map(|value| (key(value), value)).collect();
            let served = known.mapper.resources_of_kind(kind).next();
            let objects: Vec<_> = by_name.into_values().map(admission::Object::new).collect();
            let n = objects.len();
            let is_namespaced = served.is_some_and(|served| served.namespaced);
            (Ok(ParamList::new(is_namespaced, objects)), n)
        }
        Some(Err(why)) => (Err(why.clone()), 0),
        None => (cluster::params(input, known, Some(kind)), n_file_params),
    }
}
