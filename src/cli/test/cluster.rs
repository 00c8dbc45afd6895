//! The cluster state for probes: the objects of the files.

use std::collections::{BTreeMap, HashMap};
use std::panic::{self, AssertUnwindSafe};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use crate::cli::check::known::Known;
use crate::cli::input::{Input, MutatingPolicy, Object};
use crate::cli::time_limit::TimeLimit;
use crate::policy;
use crate::policy::RequestPolicy;
use crate::policy::admission::{
    self, Admission, Binding, Namespace, ParamList, ParamSource, TextLimits,
};
use crate::policy::compile::CompiledPolicy;
use crate::policy::subject::SubjectKind;
use crate::probe::api::{Case, CaseOutcome, PolicyProbeSpec};
use crate::probe::custom_resource;
use crate::probe::mutation::MutationInputs;
use crate::probe::prepare;
use crate::probe::run::{self, CaseRequest, CaseResult, RunContext};

use super::rejection::{ProbedDefinition, Rejections};
use super::target::{TargetId, Webhook};
use crate::policy::admission::mutation::{KindsOf, MutatingAdmission};
use crate::schema::{Crd, Gvk};
use crate::version::KubernetesVersion;

/// The namespace that `kubectl apply` uses for objects without a namespace.
const DEFAULT_NAMESPACE: &str = "default";

/// The cluster state that the files define.
pub(super) struct FileCluster<'a> {
    known: &'a Known,
    kinds: KindsOf<'a, Known>,
    policies: HashMap<TargetId, Policy<'a>>,
    definitions: &'a HashMap<TargetId, ProbedDefinition>,
    namespaces: BTreeMap<String, Namespace>,
    pub(super) limit: TimeLimit,
    pub(super) measures_durations: bool,
}

pub(super) struct Run {
    pub(super) results: Vec<CaseResult>,
    /// The requests of the cases, for [`FileCluster::n_passed_before_failure`]; empty if the cases were not run.
    pub(super) requests: Vec<CaseRequest>,
    /// The durations of the cases; empty if they are not measured.
    pub(super) durations: Vec<Duration>,
}

impl Run {
    pub(super) fn passes(&self) -> bool {
        let mut outcomes = self.results.iter().map(|result| result.status.outcome);
        outcomes.all(|outcome| outcome == CaseOutcome::Passed)
    }
}

/// The subject of probes: a policy or webhook, with its bindings and params.
struct Policy<'a> {
    object: &'a Object<RequestPolicy>,
    version: KubernetesVersion,
    param_kind: Option<Gvk>,
    bindings: Result<Vec<Binding>, String>,
    params: Result<ParamList, String>,
    /// The reason why the API server rejects the policy, or `None` if the policy is accepted.
    rejection: Option<String>,
    id: TargetId,
    /// The mutating policy whose shared part is `object`. `None` for other subjects.
    mutating: Option<&'a MutatingPolicy>,
    /// The compiled policy, initialized when it is first needed.
    compiled: OnceLock<(CompiledPolicy, PreparedAdmission)>,
}

/// A policy that is prepared for evaluation.
enum PreparedAdmission {
    Validating(Admission),
    Mutating(MutatingAdmission),
}

impl PreparedAdmission {
    fn admission(&self) -> &Admission {
        match self {
            Self::Validating(admission) => admission,
            Self::Mutating(policy) => policy.admission(),
        }
    }
}

impl<'a> FileCluster<'a> {
    pub(super) fn new(
        input: &'a Input,
        webhooks: &'a HashMap<TargetId, Webhook<'_>>,
        definitions: &'a HashMap<TargetId, ProbedDefinition>,
        known: &'a Known,
        rejections: &Rejections,
    ) -> Self {
        let namespaces = input.namespaces.iter().map(|object| {
            let name = object.name().unwrap_or_default().to_owned();
            (name, Namespace::new(&object.value))
        });
        let policies = input.policies.iter().map(|object| {
            let name = object.name().unwrap_or_default();
            let id = TargetId::policy(name);
            let param_kind = policy::param_kind(&object.value);
            Policy {
                object,
                version: known.version(),
                bindings: bindings(&input.bindings, name),
                params: params(input, known, param_kind.as_ref()),
                param_kind,
                rejection: rejections.get(&id).cloned(),
                id,
                mutating: None,
                compiled: OnceLock::new(),
            }
        });
        let mutating = input.mutating_policies.iter().map(|policy| {
            let name = policy.shared.name().unwrap_or_default();
            let id = TargetId::new(SubjectKind::MutatingAdmissionPolicy, name);
            let param_kind = policy::param_kind(&policy.shared.value);
            Policy {
                object: &policy.shared,
                version: known.version(),
                bindings: bindings(&input.mutating_bindings, name),
                params: params(input, known, param_kind.as_ref()),
                param_kind,
                rejection: rejections.get(&id).cloned(),
                id,
                mutating: Some(policy),
                compiled: OnceLock::new(),
            }
        });
        let webhook_policies = webhooks.iter().map(|(id, webhook)| Policy {
            object: &webhook.policy,
            version: known.version(),
            bindings: Ok(Vec::new()),
            params: Ok(ParamList::default()),
            param_kind: None,
            rejection: rejections.get(id).cloned(),
            id: id.clone(),
            mutating: None,
            compiled: OnceLock::new(),
        });
        let policies = policies.chain(mutating).chain(webhook_policies);
        Self {
            known,
            kinds: KindsOf::new(known.builtin(), known),
            policies: policies.map(|policy| (policy.id.clone(), policy)).collect(),
            definitions,
            namespaces: namespaces.collect(),
            limit: TimeLimit::default(),
            measures_durations: false,
        }
    }

    /// Runs the cases of a probe that tests `id`. A panic affects only this probe.
    pub(super) fn run(&self, id: &TargetId, probe: &PolicyProbeSpec) -> Run {
        let pending = |why: &str| {
            let cases = probe.cases.iter();
            Run {
                results: cases.map(|case| run::pending(case, why)).collect(),
                requests: Vec::new(),
                durations: Vec::new(),
            }
        };
        let run = AssertUnwindSafe(|| {
            if let Some(definition) = self.definitions.get(id) {
                let mut runner = custom_resource::Runner::new(&definition.definition);
                let cases = probe.cases.iter();
                let ran = cases.map(|case| self.measured(|| runner.run(case)));
                let (results, durations): (_, Vec<_>) = ran.unzip();
                return Some(Run {
                    results,
                    requests: Vec::new(),
                    durations: durations.into_iter().flatten().collect(),
                });
            }
            let policy = self.policies.get(id)?;
            Some(self.run_for(policy, probe))
        });
        let ran = panic::catch_unwind(run);
        let ran = ran.map(|ran| ran.unwrap_or_else(|| pending("the policy is not in the input")));
        ran.unwrap_or_else(|_| {
            pending("the evaluation failed with an internal error in kubectl-vap; please report it")
        })
    }

    /// Returns a policy of the input and its compiled form.
    pub(super) fn policy(
        &self,
        id: &TargetId,
    ) -> Option<(&Object<RequestPolicy>, &CompiledPolicy)> {
        let policy = self.policies.get(id)?;
        Some((policy.object, &policy.compiled().0))
    }

    /// Returns the CustomResourceDefinition `id`, or `None` if no probe targets it.
    pub(super) fn definition(&self, id: &TargetId) -> Option<&Object<Crd>> {
        Some(&self.definitions.get(id)?.object)
    }

    /// Returns the reason why the API server rejects a target, or `None` if the target is accepted.
    pub(super) fn rejection(&self, id: &TargetId) -> Option<&str> {
        match self.definitions.get(id) {
            Some(definition) => definition.definition.rejection.as_deref(),
            None => self
                .policies
                .get(id)
                .and_then(|policy| policy.rejection.as_deref()),
        }
    }

    /// Runs the cases of a probe with `admission` in place of the policy. Returns the number of cases before the first
    /// case that does not pass.
    pub(super) fn n_passed_before_failure(
        &self,
        id: &TargetId,
        probe: &PolicyProbeSpec,
        requests: &[CaseRequest],
        admission: &Admission,
    ) -> usize {
        let Some(policy) = self.policies.get(id) else {
            return 0;
        };
        let context = self.context(policy, admission, None, false);
        let runner = run::Runner::new(probe, &context, None);
        let cases = probe.cases.iter().zip(requests);
        let passes = |(case, request): &(&Case, &CaseRequest)| {
            let result = self.run_in_time(&runner, case, request);
            result.status.outcome == CaseOutcome::Passed
        };
        cases.take_while(passes).count()
    }

    /// Runs a case. The result is pending if the case exceeds the time limit.
    fn run_in_time(
        &self,
        runner: &run::Runner<'_>,
        case: &Case,
        request: &CaseRequest,
    ) -> CaseResult {
        let run = |is_cancelled: &_| runner.run_until(case, request, is_cancelled);
        let result = self.limit.run(run);
        result.unwrap_or_else(|why| run::pending(case, &why))
    }

    fn run_for(&self, policy: &Policy<'_>, probe: &PolicyProbeSpec) -> Run {
        let (_, prepared) = policy.compiled();
        let mutating = match prepared {
            PreparedAdmission::Mutating(policy) => Some(MutationInputs {
                policy,
                kinds: &self.kinds,
                schemas: self.known,
            }),
            PreparedAdmission::Validating(_) => None,
        };
        let context = self.context(policy, prepared.admission(), mutating, true);
        let runner = run::Runner::new(probe, &context, None);
        let mut ran = Run {
            results: Vec::new(),
            requests: Vec::new(),
            durations: Vec::new(),
        };
        for case in &probe.cases {
            let ((result, request), duration) = self.measured(|| {
                let request = runner.request(case);
                (self.run_in_time(&runner, case, &request), request)
            });
            ran.results.push(result);
            ran.requests.push(request);
            ran.durations.extend(duration);
        }
        ran
    }

    /// Runs a case. Also returns its duration, if durations are measured.
    fn measured<T>(&self, run: impl FnOnce() -> T) -> (T, Option<Duration>) {
        let start = self.measures_durations.then(Instant::now);
        let result = run();
        (result, start.map(|start| start.elapsed()))
    }

    fn context<'b>(
        &'b self,
        policy: &'b Policy<'_>,
        admission: &'b Admission,
        mutating: Option<MutationInputs<'b>>,
        records: bool,
    ) -> RunContext<'b> {
        RunContext {
            admission,
            param_kind: policy.param_kind.as_ref(),
            bindings: policy.bindings.as_deref().map_err(Clone::clone),
            params: match &policy.params {
                Ok(list) => Ok(list as &dyn ParamSource),
                Err(why) => Err(why.clone()),
            },
            namespaces: &self.namespaces,
            authorizer: Err(
                "`authorizer: FromCluster` requires a cluster; remove it, and list the responses in \
                 `request.authorizer`"
                    .to_owned(),
            ),
            mapper: &self.known.mapper,
            schemas: self.known,
            rejection: policy.rejection.as_deref(),
            kind: policy.id.kind(),
            mutating,
            records: records.then_some(TextLimits::SHORT),
        }
    }
}

impl Policy<'_> {
    fn compiled(&self) -> &(CompiledPolicy, PreparedAdmission) {
        self.compiled.get_or_init(|| {
            let Some(policy) = self.mutating else {
                let compiled =
                    CompiledPolicy::from_parts(self.object.value.clone(), None, self.version);
                let admission = Admission::from_compiled(&compiled);
                return (compiled, PreparedAdmission::Validating(admission));
            };
            let (compiled, admission) = prepare_mutating(policy, self.version);
            (compiled, PreparedAdmission::Mutating(admission))
        })
    }
}

/// Compiles a mutating policy for an API server of `version`, and prepares it for evaluation.
pub(in crate::cli) fn prepare_mutating(
    policy: &MutatingPolicy,
    version: KubernetesVersion,
) -> (CompiledPolicy, MutatingAdmission) {
    let mutations = policy.mutations.as_slice();
    let compiled =
        CompiledPolicy::from_parts(policy.shared.value.clone(), Some(mutations), version);
    let reinvocation = policy.reinvocation.as_deref();
    let admission = MutatingAdmission::from_compiled(&compiled, mutations.len(), reinvocation);
    (compiled, admission)
}

/// Returns the bindings of a policy. If several bindings have the same name, the last binding is used, as with `kubectl
/// apply`.
fn bindings(
    given: &[Object<ValidatingAdmissionPolicyBinding>],
    policy: &str,
) -> Result<Vec<Binding>, String> {
    let is_of_policy =
        |binding: &&ValidatingAdmissionPolicyBinding| binding.spec.policy_name == policy;
    let named = given
        .iter()
        .map(|object| &object.value)
        .filter(is_of_policy)
        .map(|binding| (binding.metadata.name.as_deref(), Binding::new(binding)));
    let named: BTreeMap<_, _> = named.collect();
    if named.is_empty() {
        return Err(format!(
            "the input has no binding of the policy `{policy}`; add its file, or write \
             `bindings: Implied` for a binding that matches everything"
        ));
    }
    Ok(named.into_values().collect())
}

/// Returns the params of a kind. If several params have the same namespace and name, the last object is used.
pub(in crate::cli) fn params(
    input: &Input,
    known: &Known,
    kind: Option<&Gvk>,
) -> Result<ParamList, String> {
    let Some(kind) = kind else {
        return Ok(ParamList::default());
    };
    let Some(served) = known.mapper.resources_of_kind(kind).next() else {
        return Err(format!(
            "paramKind {} {} is unknown; pass its CustomResourceDefinition with --crds",
            kind.api_version(),
            kind.kind
        ));
    };
    let named = input.objects_of_kind(kind).map(|object| {
        let mut value = object.value.clone();
        let metadata = value.get_mut("metadata");
        if served.namespaced
            && object.namespace().is_none_or(str::is_empty)
            && let Some(metadata) = metadata.and_then(serde_json::Value::as_object_mut)
        {
            metadata.insert("namespace".to_owned(), DEFAULT_NAMESPACE.into());
        }
        prepare::store(&mut value);
        let param = admission::Object::new(&value);
        (
            (param.namespace().to_owned(), param.name().to_owned()),
            param,
        )
    });
    let named: BTreeMap<_, _> = named.collect();
    Ok(ParamList::new(
        served.namespaced,
        named.into_values().collect(),
    ))
}
