//! Checks one policy: converts the engine's results to findings with locations.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::panic::{self, AssertUnwindSafe};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{Mutation, ValidatingAdmissionPolicyBinding};

use super::finding::{ConsequenceReport, Finding, Location, Owner, Severity};
use super::known::Known;
use super::resources::ResourceRules;
use super::time_limit::within_time_limit;
use super::{
    api_version, costs, expressions, lint, lockout, names, param_kind, resources, runtime_errors,
};
use crate::cli::input::{MutatingPolicy, Object, Place, SourceText, decode};
use crate::policy::RequestPolicy;
use crate::policy::analysis::{Profile, TypeCheck, type_check};
use crate::policy::compile::{Cause, CompileFindingKind, CompiledPolicy};
use crate::policy::consequence::Consequence;
use crate::policy::cost::PolicyCosts;
use crate::policy::expressions::PolicyExpression;
use crate::policy::lint::Lint;
use crate::policy::matching::{self, MatchedResource, Matches};
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::schema::Gvk;
use crate::status::bindings::BindingsState;
use crate::status::compute::{
    self, CompileSummary, DesiredStatus, Observations, ParamKindState, StepOutcome,
    TypeObservations,
};
use crate::status::condition::{ConditionStatus, ConditionType, find};
use crate::status::message;
use crate::status::probes::ProbesState;
use crate::status::staleness::Staleness;
use crate::status::unknown_fields::UnknownFields;

/// The result of the check of one policy.
#[derive(Debug)]
pub struct PolicyCheck {
    /// The status that the controller would compute in a cluster with the known APIs.
    pub status: DesiredStatus,
    /// The result of type checking.
    pub typed: TypeCheck,
    /// The estimated costs of the expressions and of the budgets that they share.
    pub costs: PolicyCosts,
    /// The findings to report about the policy.
    pub findings: Vec<Finding>,
}

/// The engine's results for a policy.
pub(super) struct PolicyAnalysis {
    /// The kind of object that contains the expressions.
    pub(super) subject: SubjectKind,
    compiled: CompiledPolicy,
    /// For each field with an expression, the index of that expression in `compiled`.
    by_field: HashMap<String, usize>,
    /// Fields that do not compile, with the kind and the cause of the error.
    pub(super) errors: Vec<(String, CompileFindingKind, Cause)>,
    /// The number of leading `errors` that the API server reports when the policy is created.
    pub(super) n_at_create: usize,
    pub(super) matches: Matches,
    /// True if the rules of a webhook match reviews such as `TokenReview`. `matches` does not contain them.
    has_reviews: bool,
    pub(super) typed: TypeCheck,
    costs: PolicyCosts,
    pub(super) params: ParamKindState,
    status: DesiredStatus,
}

impl PolicyAnalysis {
    pub(super) fn compiled(&self) -> &CompiledPolicy {
        &self.compiled
    }

    pub(super) fn matched(&self) -> &[MatchedResource] {
        &self.matches.resources
    }

    /// Returns the effect on the request if the expression in the field `field_ref` fails.
    pub(super) fn consequence(&self, field_ref: &str) -> Option<Consequence> {
        let n = self.by_field.get(field_ref)?;
        Some(self.compiled.consequence(*n))
    }

    /// Returns true if type checking has a finding at the location of `lint`.
    pub(super) fn has_type_finding(&self, lint: &Lint) -> bool {
        let Some(location) = lint.location else {
            return false;
        };
        let of_field = self.typed.findings.iter();
        let mut of_field = of_field.filter(|of| of.field_ref == lint.field_ref);
        of_field.any(|of| of.iter().any(|(_, _, issue)| issue.location == location))
    }

    pub(super) fn expression(&self, field_ref: &str) -> Option<&PolicyExpression> {
        let n = self.by_field.get(field_ref)?;
        self.compiled.expressions().get(*n)
    }
}

/// Checks a validating policy. An internal error becomes a finding about this policy.
#[must_use]
pub fn check(
    policy: &Object<RequestPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    known: &Known,
    profile: Profile,
) -> PolicyCheck {
    check_as(
        SubjectKind::ValidatingAdmissionPolicy,
        policy,
        (None, bindings),
        known,
        profile,
    )
}

/// Checks a mutating policy. An internal error becomes a finding about this policy.
#[must_use]
pub fn check_mutating(
    policy: &MutatingPolicy,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    known: &Known,
    profile: Profile,
) -> PolicyCheck {
    let mutations = Some(policy.mutations.as_slice());
    check_as(
        SubjectKind::MutatingAdmissionPolicy,
        &policy.shared,
        (mutations, bindings),
        known,
        profile,
    )
}

/// Checks a policy, or a webhook that was converted to a policy, within the time limit.
pub(super) fn check_as(
    subject: SubjectKind,
    policy: &Object<RequestPolicy>,
    (mutations, bindings): (
        Option<&[Mutation]>,
        &[Object<ValidatingAdmissionPolicyBinding>],
    ),
    known: &Known,
    profile: Profile,
) -> PolicyCheck {
    let work = || check_whole(subject, policy, (mutations, bindings), known, profile);
    within_time_limit(policy, subject.row().noun, &known.cancellation, work).unwrap_or_else(
        |error| {
            let status = DesiredStatus {
                observed_generation: 0,
                expression_warnings: Vec::new(),
                n_type_warnings: 0,
                conditions: Vec::new(),
                has_retained: false,
            };
            PolicyCheck {
                status,
                typed: TypeCheck::default(),
                costs: PolicyCosts::default(),
                findings: vec![*error],
            }
        },
    )
}

/// Checks a policy like [`check_as`], but without a time limit.
fn check_whole(
    subject: SubjectKind,
    policy: &Object<RequestPolicy>,
    (mutations, bindings): (
        Option<&[Mutation]>,
        &[Object<ValidatingAdmissionPolicyBinding>],
    ),
    known: &Known,
    profile: Profile,
) -> PolicyCheck {
    let analysis = analyze(subject, (policy, mutations), known, profile);
    let mut absent = Vec::new();
    let mut proofs = None;
    if profile == Profile::Truthful {
        proofs = Some(runtime_errors::check(
            policy,
            bindings,
            known,
            &analysis,
            &mut absent,
        ));
        if subject == SubjectKind::ValidatingAdmissionPolicy {
            lockout::check(policy, bindings, known, &analysis, &mut absent);
        }
    }
    let mut findings = Vec::new();
    if !subject.is_webhooks() {
        findings.extend(api_version::policy_finding(policy, known));
    }
    expressions::errors(policy, (&analysis, known), &mut findings);
    expressions::warnings(policy, (&analysis, known), proofs.as_deref(), &mut findings);
    expressions::add_assumptions(policy, &analysis, &mut findings);
    findings.extend(absent);
    check_resources(policy, known, &analysis, &mut findings);
    param_kind::add(policy, known, &analysis, &mut findings);
    lint::check(policy, known, &analysis, &mut findings);
    if subject == SubjectKind::ValidatingAdmissionPolicy {
        lockout::add_always_false(policy, bindings, &analysis, &mut findings);
    }
    if subject == SubjectKind::ValidatingAdmissionPolicy {
        apply_actions(policy, bindings, &mut findings);
    }
    lint::check_bindings(policy, bindings, known, &analysis, &mut findings);
    runtime_errors::omit_wrong_operands(policy, &analysis, &mut findings);
    coverage(policy, known, &analysis, &mut findings);
    costs::notes(policy, &analysis.compiled, &analysis.costs, &mut findings);
    PolicyCheck {
        status: analysis.status,
        typed: analysis.typed,
        costs: analysis.costs,
        findings,
    }
}

/// Changes the consequence of failing expressions if no binding of the policy has the action Deny: requests are then
/// not denied. Audit annotations are an exception: their errors deny requests regardless of the actions.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/validating/dispatcher.go`, `Dispatch`.
fn apply_actions(
    policy: &Object<RequestPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    findings: &mut [Finding],
) {
    let mut of_policy = bindings_of(policy, bindings).peekable();
    let has_bindings = of_policy.peek().is_some();
    let denies = |binding: &Object<ValidatingAdmissionPolicyBinding>| {
        let actions = &binding.value.spec.validation_actions;
        // The API server rejects a binding without actions, so its effect is unknown. It also rejects `deny`, which is
        // checked as if it were `Deny`.
        actions.is_empty()
            || actions
                .iter()
                .any(|action| action.eq_ignore_ascii_case("Deny"))
    };
    if !has_bindings || of_policy.any(denies) {
        return;
    }
    let denials = [
        Consequence::Denied.into(),
        ConsequenceReport::DENIED_BEFORE,
        ConsequenceReport::DENIED_AFTER,
    ];
    for finding in findings {
        let is_annotation = finding
            .field_ref
            .as_deref()
            .is_some_and(|field| field.starts_with("spec.auditAnnotations"));
        if let Some(denied) = finding.consequence.filter(|it| denials.contains(it))
            && !is_annotation
        {
            finding.consequence = Some(ConsequenceReport::NOT_DENIED);
            let message = ConsequenceReport::NOT_DENIED.message;
            if let Some(help) = &mut finding.help {
                *help = help.replace(denied.message, message);
            }
        }
    }
}

/// Returns the findings about the compilation and the types of the expressions of a validating policy. Does not search for
/// requests for which expressions fail.
#[must_use]
pub(in crate::cli) fn expression_findings(
    policy: &Object<RequestPolicy>,
    known: &Known,
) -> Vec<Finding> {
    let subject = SubjectKind::ValidatingAdmissionPolicy;
    let work = || {
        let analysis = analyze(subject, (policy, None), known, Profile::Truthful);
        let mut findings = Vec::new();
        expressions::errors(policy, (&analysis, known), &mut findings);
        expressions::warnings(policy, (&analysis, known), None, &mut findings);
        expressions::add_assumptions(policy, &analysis, &mut findings);
        findings
    };
    within_time_limit(policy, subject.row().noun, &known.cancellation, work)
        .unwrap_or_else(|error| vec![*error])
}

/// Returns the status that the controller would compute for a policy. `None` after an internal error.
#[must_use]
pub(in crate::cli) fn status(
    policy: &Object<RequestPolicy>,
    known: &Known,
) -> Option<DesiredStatus> {
    let analysis = AssertUnwindSafe(|| {
        let subject = SubjectKind::ValidatingAdmissionPolicy;
        analyze(subject, (policy, None), known, Profile::Truthful)
    });
    panic::catch_unwind(analysis)
        .ok()
        .map(|analysis| analysis.status)
}

fn analyze(
    subject: SubjectKind,
    (object, mutations): (&Object<RequestPolicy>, Option<&[Mutation]>),
    known: &Known,
    profile: Profile,
) -> PolicyAnalysis {
    let policy = &object.value;
    let compiled = CompiledPolicy::from_parts(policy.clone(), mutations, known.version());
    let matches = matching::resolve(policy, &known.mapper);
    let (matches, has_reviews) = if subject.is_webhooks() {
        matching::webhook_matches(policy, matches, known.version().behavior())
    } else {
        (matches, false)
    };
    let typed = type_check(&compiled, &known.mapper, known, profile);
    let kinds = typed.checked.iter().chain(&typed.by_wildcard.checked);
    let costs = PolicyCosts::new(&compiled, &kinds.collect::<Vec<_>>(), known);
    let params = known.param_kind_state(policy);
    let bindings = if subject == SubjectKind::MutatingAdmissionPolicy {
        BindingsState::Unread
    } else {
        known.bindings_state(policy)
    };

    // Errors for which the API server rejects the policy come first. Errors that occur at evaluation follow.
    let refused = compiled.refused().into_iter();
    let mut errors: Vec<_> = refused
        .filter_map(|expression| {
            let error = expression.outcome.err()?;
            Some((expression.field_ref, error.kind, error.cause))
        })
        .collect();
    let n_at_create = errors.len();
    let at_create: HashSet<_> = errors
        .iter()
        .map(|(field_ref, kind, _)| (field_ref.clone(), *kind))
        .collect();
    for finding in compiled.findings() {
        if !at_create.contains(&(finding.field_ref.clone(), finding.kind)) {
            errors.push((
                finding.field_ref.clone(),
                finding.kind,
                finding.cause.clone(),
            ));
        }
    }
    let expressions = compiled.expressions().iter().enumerate();
    let by_field = expressions.map(|(n, expression)| (expression.field_ref.clone(), n));
    let by_field = by_field.collect();

    let matched = (&matches).into();
    let outcome = typed.clone().into();
    // In a check, only conditions that need no cluster determine `Ready`.
    let ready_requires = ConditionType::WRITTEN.into_iter();
    let ready_requires: BTreeSet<_> = ready_requires
        .filter(|type_| type_.needs_only_files())
        .collect();
    let (generation, status) = decode::generation_and_status(&object.document.node);
    let observed = Observations {
        policy: Some(policy),
        generation,
        server: compiled.version().into(),
        unknown_fields: UnknownFields::default(),
        status: status.as_ref(),
        // The conditions of a webhook are computed as for a validating policy.
        subject: if subject.is_webhooks() {
            SubjectKind::ValidatingAdmissionPolicy
        } else {
            subject
        },
        compiled: StepOutcome::Done(CompileSummary {
            findings: compiled.findings(),
            n_expressions: compiled.n_expressions(),
        }),
        matches: StepOutcome::Done(&matched),
        types: StepOutcome::Done(TypeObservations {
            outcome: &outcome,
            waiting: &[],
        }),
        params: params.clone(),
        bindings: bindings.clone(),
        // The check does not read the probes of a cluster.
        probes: ProbesState::Unread,
        ready_requires: &ready_requires,
        staleness: Staleness::default(),
    };
    let mut status = compute::compute(&observed, Timestamp::UNIX_EPOCH);
    let is_computed = |type_: &str| {
        ConditionType::from_name(type_).is_some_and(|type_| match type_ {
            ConditionType::Ready => true,
            ConditionType::Bound => bindings != BindingsState::Unread,
            type_ => type_.needs_only_files(),
        })
    };
    status
        .conditions
        .retain(|condition| is_computed(&condition.type_));
    PolicyAnalysis {
        subject,
        compiled,
        by_field,
        errors,
        n_at_create,
        matches,
        has_reviews,
        typed,
        costs,
        params,
        status,
    }
}

/// Adds findings about the resource rules of a policy, such as unserved resources, or resources for which API servers
/// never call policies.
fn check_resources(
    policy: &Object<RequestPolicy>,
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let condition = find(&analysis.status.conditions, ConditionType::ResourcesMatched);
    let is_false = |condition| ConditionStatus::from_condition(condition) == ConditionStatus::False;
    let never_runs = condition.is_some_and(is_false) && !analysis.has_reviews;
    let rules = ResourceRules {
        object: policy,
        matches: &analysis.matches,
        never_runs: never_runs.then_some(analysis.subject.row().never_runs),
    };
    resources::unserved(&rules, known, findings);
    let excluded = matching::unserved_exclusions(&policy.value, &known.mapper);
    resources::exclusions(policy, excluded, findings);
    let matches = (&analysis.matches, analysis.has_reviews);
    resources::exempt(policy, matches, analysis.subject, findings);
    resources::none_served(&rules, findings);
}

/// Adds a note about the kinds that type checking did not cover.
fn coverage(
    policy: &Object<RequestPolicy>,
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let typed = &analysis.typed;
    let unchecked = typed.unchecked.iter().chain(&typed.by_wildcard.unchecked);
    let mut gaps = message::unchecked(unchecked);
    let seen = typed.by_wildcard.unchecked.iter();
    let checked: BTreeSet<&Gvk> = typed
        .checked
        .iter()
        .chain(&typed.by_wildcard.checked)
        .chain(seen.map(|unchecked| &unchecked.gvk))
        .collect();
    // A resource does not count as unchecked if it has no requests with the operations of the rules.
    let kinds = matching::kinds(&policy.value, &known.mapper);
    let n_by_wildcard = analysis
        .matches
        .resources
        .iter()
        .filter(|resource| resource.by_wildcard && !checked.contains(&resource.gvk))
        .filter(|resource| kinds.binary_search(&resource.gvk).is_ok())
        .count();
    if n_by_wildcard > 0 {
        gaps.push(format!("{n_by_wildcard} resources matched by wildcards"));
    }
    if gaps.is_empty() {
        return;
    }
    let n_checked = typed.checked.len() + typed.by_wildcard.checked.len();
    let n_kinds = n_checked + typed.unchecked.len() + typed.by_wildcard.unchecked.len();
    let checked = match (n_checked, n_kinds) {
        (0, _) => "types were not checked for any kind".to_owned(),
        (n, all) if n == all => format!("types were checked for {}", message::count(n, "kind")),
        (n, all) => format!(
            "types were checked for {n} of {}",
            message::count(all, "kind")
        ),
    };
    let field_ref = "spec.matchConstraints";
    let place = policy.place_of_field("spec.matchConstraints.resourceRules");
    let message = format!("{checked}; not checked: {}", gaps.join(", "));
    let mut finding = object_finding(policy, Severity::Note, Rule::NotChecked, &message, place);
    finding.field_ref = Some(field_ref.to_owned());
    findings.push(finding);
}

/// Returns the bindings of `policy`. If several files define a policy with this name, for example as alternatives, a
/// binding belongs to the policy in the nearest directory.
pub(super) fn bindings_of<'a>(
    policy: &'a Object<RequestPolicy>,
    bindings: &'a [Object<ValidatingAdmissionPolicyBinding>],
) -> impl Iterator<Item = &'a Object<ValidatingAdmissionPolicyBinding>> {
    let name = policy.value.name.as_deref().unwrap_or_default();
    let is_nearest = |binding: &Object<_>| {
        let distance = |file: &SourceText| names::distance(&binding.source.name, &file.name);
        let own = distance(&policy.source);
        policy
            .other_files
            .iter()
            .all(|other| own <= distance(other))
    };
    bindings.iter().filter(move |binding| {
        !name.is_empty() && binding.value.spec.policy_name == name && is_nearest(binding)
    })
}

/// Returns a finding about a policy, a binding or another object.
pub(in crate::cli) fn object_finding<T>(
    object: &Object<T>,
    severity: Severity,
    rule: Rule,
    message: &str,
    place: Place,
) -> Finding {
    let text = |field_ref| {
        let node = object.document.node.nearest(field_ref);
        node.as_str().filter(|text| !text.is_empty())
    };
    let owner = match (text("kind"), text("metadata.name").map(str::to_owned)) {
        (Some("ValidatingAdmissionPolicy" | "MutatingAdmissionPolicy"), Some(name)) => {
            Owner::Policy(name)
        }
        (
            Some("ValidatingAdmissionPolicyBinding" | "MutatingAdmissionPolicyBinding"),
            Some(name),
        ) => Owner::Binding(name),
        _ => Owner::None,
    };
    let location = Location::from_place(&object.source, place);
    Finding {
        owner,
        ..Finding::new(severity, rule, message, location)
    }
}
