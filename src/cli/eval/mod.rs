//! `kubectl vap eval`: evaluates policies for one request, and explains the decisions.
//!
//! The policies are from files or a cluster. Probes use the same evaluator. `audit` and `diff` also use the submodules.

#[cfg(not(target_family = "wasm"))]
pub mod ad_hoc;
#[cfg(not(target_family = "wasm"))]
pub mod args;
#[cfg(not(target_family = "wasm"))]
pub(super) mod cluster;
pub(super) mod facts;
mod mutations;
pub(super) mod policy_set;
#[cfg(not(target_family = "wasm"))]
pub mod render;
pub mod report;
pub(super) mod request;
pub(super) mod setup;

use std::collections::BTreeSet;
use std::io::Read;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use super::check;
use super::check::finding::{Finding, Severity};
use super::check::known::Known;
use super::check::policy::object_finding;
use super::error::CliError;
use super::input::Input;
#[cfg(not(target_family = "wasm"))]
use super::live::Plan;
use super::time_limit::TimeLimit;
use crate::defaulting::Stage;
use crate::policy::admission::{Admission, AdmissionRequest, Object, ParamSource, TextLimits};
use crate::policy::analysis::Profile;
use crate::policy::nearest::nearest;
use crate::policy::rule::Rule;
use crate::probe::api::{Case, Expect, PolicyProbeSpec, Request, Samples};
use crate::probe::prepare;
use crate::probe::run::{self, CaseResult, RunContext, Runner};
#[cfg(not(target_family = "wasm"))]
use ad_hoc::ExpressionReport;
#[cfg(not(target_family = "wasm"))]
use args::EvalArgs;
use facts::RequestFact;
use policy_set::{PolicySet, PreparedPolicy};
use report::{EvalReport, PolicyEval, RequestReport, Summary, Verdict};
use setup::Setup;
#[cfg(not(target_family = "wasm"))]
use setup::Sources;

/// Evaluates the policies that the arguments select, for the request that the arguments describe.
///
/// # Errors
/// Returns an error if the request cannot be read, or if the cluster cannot be reached.
#[cfg(not(target_family = "wasm"))]
pub(super) fn run(args: &EvalArgs, stdin: &mut dyn Read) -> Result<EvalReport, CliError> {
    let (request, setup) = read(args, stdin)?;
    Ok(evaluate_policies(&request, setup, args.timeout.limit()))
}

pub(super) fn evaluate_policies(
    request: &Request,
    mut setup: Setup,
    limit: TimeLimit,
) -> EvalReport {
    let mut findings = std::mem::take(&mut setup.findings);

    let mut policy_set = PolicySet::new(
        &setup.input,
        &setup.known,
        setup.cluster_inputs.as_ref(),
        &mut findings,
    );
    policy_set.limit = limit;
    let policy_set = policy_set;
    // The request that the policies receive, if it can be determined.
    let prepared = prepared(request, &setup.known);
    let has_bindings = setup
        .cluster_inputs
        .as_ref()
        .is_some_and(|cluster_inputs| cluster_inputs.has_bindings);
    let policy_eval = |policy: &PreparedPolicy<'_>, request: &Request| {
        if let Some(why) = &policy.rejection {
            return PolicyEval::without(policy, Verdict::Rejected, why.clone());
        }
        if policy.is_live && policy.is_unbound && has_bindings {
            let why = "it has no binding, so it is not evaluated".to_owned();
            return PolicyEval::without(policy, Verdict::NotBound, why);
        }
        let result = evaluate(policy, request, &policy_set);
        PolicyEval::new(policy, &result)
    };
    let is_mutating = |policy: &&PreparedPolicy<'_>| policy.mutating.is_some();
    let mutating: Vec<&PreparedPolicy<'_>> =
        policy_set.policies.iter().filter(is_mutating).collect();
    let evals = mutating.iter().map(|policy| policy_eval(policy, request));
    let evals: Vec<PolicyEval> = evals.collect();
    // Validating policies are evaluated for the mutated object.
    let mutated = mutations::mutated_object(&mutating, &evals, request, &policy_set);
    let (after, mutation) = match mutated {
        Ok(after) => (after, None),
        Err(why) => (None, Some(why)),
    };
    let changed = after.as_ref().map(|after| Request {
        object: Some(after.object.clone()),
        ..request.clone()
    });
    let request = changed.as_ref().unwrap_or(request);
    let validating = policy_set
        .policies
        .iter()
        .filter(|policy| policy.mutating.is_none());
    let policies = validating.map(|policy| policy_eval(policy, request));
    let policies: Vec<PolicyEval> = policies.collect();
    findings.extend(hints(&setup, &policy_set, evals.iter().chain(&policies)));
    if setup.cluster_inputs.is_none() {
        findings.extend(assumed_namespace(request, prepared.as_ref(), &policy_set));
    }
    let mut report = EvalReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "EvalReport",
        kubernetes: setup.known.kubernetes().to_owned(),
        cluster: setup.server.clone(),
        request: prepared.as_ref().map(RequestReport::new),
        decision: "Unknown",
        summary: Summary::default(),
        findings,
        policies: evals.into_iter().chain(policies).collect(),
        mutated: after,
        not_mutated: mutation,
    };
    report.finish();
    report
}

/// Evaluates the expressions of the arguments, for the request that the arguments describe.
///
/// # Errors
/// Returns an error if the request or an expression cannot be read, or if the cluster cannot be reached.
#[cfg(not(target_family = "wasm"))]
pub(super) fn run_expressions(
    args: &EvalArgs,
    stdin: &mut dyn Read,
) -> Result<ExpressionReport, CliError> {
    let (request, mut setup) = read(args, stdin)?;
    let mut findings = std::mem::take(&mut setup.findings);
    let cluster_inputs = setup.cluster_inputs.as_ref();
    let mut policy_set = PolicySet::new(&setup.input, &setup.known, cluster_inputs, &mut findings);
    policy_set.limit = args.timeout.limit();
    policy_set.text_limits = TextLimits::LONG;
    let prepared = prepared(&request, &setup.known).ok_or_else(|| {
        let message = "the resource of the request is not served; for a custom resource, pass its \
                       CustomResourceDefinition with --crds";
        CliError::Usage(message.to_owned())
    })?;
    let inputs = ad_hoc::Inputs {
        setup: &setup,
        policy_set: &policy_set,
        request: &request,
        prepared: &prepared,
    };
    let expressions = args.expressions.iter();
    let expressions: Result<Vec<_>, _> = expressions.map(|it| inputs.evaluate(it)).collect();
    Ok(ExpressionReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "ExpressionReport",
        kubernetes: setup.known.kubernetes().to_owned(),
        cluster: setup.server.clone(),
        policy: inputs.policy().map(|policy| policy.name.to_owned()),
        request: RequestReport::new(&prepared),
        expressions: expressions?,
        findings,
    })
}

#[cfg(not(target_family = "wasm"))]
fn read(args: &EvalArgs, stdin: &mut dyn Read) -> Result<(Request, Setup), CliError> {
    let mut request = request::read(args, stdin)?;
    let objects = [&request.object, &request.old_object];
    let objects = objects.into_iter().flatten();
    let kinds = objects.map(|object| Object::new(object).gvk().clone());
    let kinds = kinds.collect::<BTreeSet<_>>();
    let sources = Sources {
        paths: &args.paths,
        crds: &args.crds,
        selector: args.selector.as_ref(),
        version: args.version.kubernetes_version,
        live: args.cluster.live,
        connection: &args.connection,
    };
    let is_live = args.cluster.live || args.selector.is_some() || args.connection.is_given();
    let setup = if args.paths.is_empty() && !args.expressions.is_empty() && !is_live {
        // Expressions can be evaluated without policies.
        Setup::with_input(&sources, &Plan::default(), Input::default(), &kinds, stdin)?
    } else {
        Setup::read(&sources, &kinds, stdin)?
    };
    if let Some(name) = &args.resource {
        request.resource = Some(request::resource(name, &setup.known.mapper.resources)?);
    }
    Ok((request, setup))
}

/// Returns findings that explain why policies or bindings of files do not match the request: rules for unserved
/// resources, and bindings without a policy.
fn hints<'a>(
    setup: &Setup,
    policy_set: &PolicySet<'_>,
    evals: impl Iterator<Item = &'a PolicyEval>,
) -> Vec<Finding> {
    let unmatched: BTreeSet<&str> = evals
        .filter(|eval| eval.kind.is_none() && eval.verdict == Verdict::NotMatched)
        .map(|eval| eval.name.as_str())
        .collect();
    let from_files = policy_set.policies.iter().filter(|policy| !policy.is_live);
    let from_files = from_files
        .filter(|policy| policy.mutating.is_none() && unmatched.contains(policy.name))
        .flat_map(|policy| {
            check::policy::check(policy.object, &[], &setup.known, Profile::Upstream).findings
        });
    let mut findings: Vec<Finding> = from_files
        .filter(|finding| matches!(finding.rule, Rule::UnservedResource | Rule::UnknownResource))
        .map(|finding| Finding {
            severity: Severity::Warning,
            ..finding
        })
        .collect();
    if setup.cluster_inputs.is_some() {
        return findings;
    }
    let policies_of_kind = |is_mutating: bool| {
        let policies = policy_set.policies.iter();
        let policies = policies.filter(move |policy| policy.mutating.is_some() == is_mutating);
        policies
            .map(|policy| policy.name)
            .collect::<BTreeSet<&str>>()
    };
    let bindings = [
        (&setup.input.bindings, policies_of_kind(false)),
        (&setup.input.mutating_bindings, policies_of_kind(true)),
    ];
    for (bindings, policies) in bindings {
        for binding in bindings {
            let name = binding.value.spec.policy_name.as_str();
            if name.is_empty() || policies.contains(name) {
                continue;
            }
            let place = binding.place_of_field("spec.policyName");
            let message = format!("the policy `{name}` is not in the input");
            let rule = Rule::UnknownPolicy;
            let mut unknown_policy =
                object_finding(binding, Severity::Warning, rule, &message, place);
            let suggestion = nearest(name, policies.iter().copied());
            unknown_policy.help = Some(match suggestion {
                Some(suggestion) => format!("did you mean `{suggestion}`?"),
                None => {
                    "a binding has no effect without its policy; add the policy's file".to_owned()
                }
            });
            unknown_policy.field_ref = Some("spec.policyName".to_owned());
            findings.push(unknown_policy);
        }
    }
    findings
}

/// Returns a warning if a policy depends on the Namespace of the request, and the input does not contain this Namespace.
fn assumed_namespace(
    request: &Request,
    prepared: Option<&AdmissionRequest>,
    policy_set: &PolicySet<'_>,
) -> Option<Finding> {
    let name = &prepared?.namespace;
    if name.is_empty()
        || request.namespace_object.is_some()
        || policy_set.namespaces.contains_key(name)
    {
        return None;
    }
    let mut policies = policy_set.policies.iter();
    let policy = policies.find(|policy| {
        policy.has_namespace_selector() || policy.reads.contains(&RequestFact::NamespaceObject)
    })?;
    let place = policy.object.place_of_field("metadata.name");
    let message = format!(
        "the Namespace `{name}` is not in the input: evaluated as if its only label were `kubernetes.io/metadata.name`"
    );
    let (severity, rule) = (Severity::Warning, Rule::NotChecked);
    let mut warning = object_finding(policy.object, severity, rule, &message, place);
    let help = "add the Namespace to the files, or pass it as `namespaceObject`";
    warning.help = Some(help.to_owned());
    Some(warning)
}

/// Returns the request as the API server passes it to policies.
fn prepared(request: &Request, known: &Known) -> Option<AdmissionRequest> {
    let prepared = prepare::objects(
        request,
        known.version(),
        (Samples::Whole, Stage::Validation),
        &known.mapper,
        known,
    );
    match prepared {
        Ok(prepared) => prepared.admission_request(&known.mapper).ok(),
        Err(_) => run::admission_request(request, &known.mapper).ok(),
    }
}

/// Evaluates one policy. A panic affects only the result of this policy.
fn evaluate(
    policy: &PreparedPolicy<'_>,
    request: &Request,
    policy_set: &PolicySet<'_>,
) -> CaseResult {
    let case = Case {
        name: String::new(),
        request: request.clone(),
        expect: Expect::default(),
    };
    let probe = PolicyProbeSpec {
        policy_name: policy.name.to_owned(),
        ..PolicyProbeSpec::default()
    };
    run_case(policy, &probe, &case, policy_set)
}

/// Runs a case of a probe. The case is pending if the evaluation exceeds the time limit or panics.
pub(super) fn run_case(
    policy: &PreparedPolicy<'_>,
    probe: &PolicyProbeSpec,
    case: &Case,
    policy_set: &PolicySet<'_>,
) -> CaseResult {
    run_case_with(&policy.admission, policy, probe, case, policy_set)
}

/// Runs a case like [`run_case`], but with `admission`, which is the policy compiled for a different version.
pub(super) fn run_case_with(
    admission: &Admission,
    policy: &PreparedPolicy<'_>,
    probe: &PolicyProbeSpec,
    case: &Case,
    policy_set: &PolicySet<'_>,
) -> CaseResult {
    let run_context = RunContext {
        admission,
        param_kind: policy.param_kind.as_ref(),
        bindings: Ok(&policy.bindings),
        params: match &policy.params {
            Ok(list) => Ok(list as &dyn ParamSource),
            Err(why) => Err(why.clone()),
        },
        namespaces: &policy_set.namespaces,
        authorizer: Err("authorization checks are not available without a cluster".to_owned()),
        mapper: &policy_set.known.mapper,
        schemas: policy_set.known,
        rejection: policy.rejection.as_deref(),
        kind: policy.kind(),
        mutating: policy.mutating(policy_set),
        records: Some(policy_set.text_limits),
    };
    let run = || {
        let evaluate = |is_cancelled: &Arc<AtomicBool>| {
            Runner::new(probe, &run_context, Some(Arc::clone(is_cancelled))).run(case)
        };
        let result = policy_set.limit.run(evaluate);
        result.unwrap_or_else(|why| run::pending(case, &why))
    };
    panic::catch_unwind(AssertUnwindSafe(run)).unwrap_or_else(|_| {
        run::pending(
            case,
            "the evaluation failed with an internal error in kubectl-vap; please report it",
        )
    })
}
