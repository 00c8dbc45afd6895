//! Checks one policy: converts the engine's results to findings with locations.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{self, AssertUnwindSafe};

use goyaml::Node;
use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{Mutation, ValidatingAdmissionPolicyBinding};

use super::finding::{Assumption, ConsequenceReport, Finding, Location, Owner, Severity};
use super::known::{self, Known};
use super::suggestion::nearest;
use super::time_limit::within_time_limit;
use super::{
    api_version, costs, expressions, lint, lockout, manifests, names, param_kind, rule_scope,
    runtime_errors,
};
use crate::cli::input::edit::Edit;
use crate::cli::input::{MutatingPolicy, Object, Place, SourceText, decode};
use crate::policy::RequestPolicy;
use crate::policy::analysis::{Profile, TypeCheck, type_check};
use crate::policy::compile::{Cause, CompileFindingKind, CompiledPolicy};
use crate::policy::consequence::Consequence;
use crate::policy::cost::PolicyCosts;
use crate::policy::expressions::PolicyExpression;
use crate::policy::lint::Lint;
use crate::policy::matching::{self, MatchedResource, Matches, UnservedResource};
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

/// Maximum number of groups of a rule that a finding lists.
const MAX_GROUPS: usize = 5;

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
    resources(policy, known, &analysis, &mut findings);
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
        // Webhooks get the conditions of policies.
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

/// Adds warnings about excludeResourceRules with a misspelled resource, which exclude nothing.
fn exclusions(policy: &Object<RequestPolicy>, known: &Known, findings: &mut Vec<Finding>) {
    for unserved in matching::unserved_exclusions(&policy.value, &known.mapper) {
        let Some(meant) = unserved.suggestion.as_ref().filter(|_| {
            // The CRD of any other resource might be missing from the input.
            unserved.is_misspelled || unserved.is_known
        }) else {
            continue;
        };
        let rule = policy.document.node.nearest(&unserved.field_ref);
        let mut names = rule.get("resources").map_or(&[][..], Node::items).iter();
        let item = names.find(|item| item.as_str() == Some(unserved.name.as_str()));
        let place = policy.place_of(item.unwrap_or(rule));
        let message = format!(
            "no served resource matches {}, so it excludes nothing",
            unserved.rule
        );
        let warning = Severity::Warning;
        let mut finding = object_finding(policy, warning, Rule::UnservedResource, &message, place);
        // There is no fix, because the policy would then allow more requests.
        finding.help = Some(format!(
            "did you mean `{meant}`? The policy then ignores requests for it"
        ));
        finding.location.length = item.map_or(1, |item| item.span.len().max(1));
        finding.field_ref = Some(unserved.field_ref);
        findings.push(finding);
    }
}

/// Adds findings about unserved and unknown resources in the rules of the policy.
fn resources(
    policy: &Object<RequestPolicy>,
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let matches = &analysis.matches;
    let condition = find(&analysis.status.conditions, ConditionType::ResourcesMatched);
    let is_false = |condition| ConditionStatus::from_condition(condition) == ConditionStatus::False;
    let never_runs = condition.is_some_and(is_false) && !analysis.has_reviews;
    let mut names: HashMap<(&str, &str), &Node> = HashMap::new();
    let mut rules: HashMap<&str, (&Node, Vec<&str>)> = HashMap::new();
    for unserved in &matches.unserved {
        let field_ref = unserved.field_ref.as_str();
        let (rule, open_groups) = rules.entry(field_ref).or_insert_with(|| {
            let rule = policy.document.node.nearest(field_ref);
            let resources = rule.get("resources").map_or(&[][..], Node::items);
            let named = resources.iter().rev();
            let named = named.filter_map(|item| Some(((field_ref, item.as_str()?), item)));
            names.extend(named);
            let groups = known::rule(&policy.value, unserved.index);
            let groups = groups.into_iter().flat_map(|rule| known.open_groups(rule));
            (rule, groups.take(MAX_GROUPS).collect())
        });
        let (place, length) = match names.get(&(field_ref, unserved.name.as_str())) {
            Some(item) => (policy.place_of(item), item.span.len().max(1)),
            None => (policy.place_of(rule), 1),
        };
        let unknown: &[&str] = if unserved.is_misspelled || unserved.is_known {
            &[]
        } else {
            open_groups
        };
        let mut finding = if unknown.is_empty() {
            let severity = match (&unserved.suggestion, never_runs) {
                (_, true) => Severity::Error,
                (Some(_), false) => Severity::Warning,
                // Rules may list resources that only older versions of Kubernetes serve.
                (None, false) => Severity::Note,
            };
            let message = format!("no served resource matches {}", unserved.rule);
            let mut finding =
                object_finding(policy, severity, Rule::UnservedResource, &message, place);
            let hint = unserved.suggestion.as_ref();
            let hint = hint.map(|suggestion| format!("did you mean `{suggestion}`?"));
            let consequence = never_runs.then(|| analysis.subject.row().never_runs.to_owned());
            let parts: Vec<String> = hint.into_iter().chain(consequence).collect();
            finding.help = (!parts.is_empty()).then(|| parts.join(" "));
            finding
        } else {
            let message = format!("unknown resource {}", unserved.rule);
            let note = Severity::Note;
            let mut finding = object_finding(policy, note, Rule::UnknownResource, &message, place);
            let groups = unknown.join(" and ");
            finding.help = Some(if known.is_of_cluster() {
                format!("the cluster does not list the resources of {groups}")
            } else {
                format!(
                    "to check resources of {groups}, pass the files of their CRDs with --crds or in the input"
                )
            });
            finding
        };
        if let (Some(meant), true) = (&unserved.suggestion, unserved.is_misspelled)
            && let Some(item) = names.get(&(field_ref, unserved.name.as_str()))
        {
            finding.fix = policy.document.edit_value(&policy.source, item, meant);
        }
        if finding.fix.is_none() && unknown.is_empty() {
            let edit = group_version_edit(policy, matches, unserved).unzip();
            let (edit, is_only) = (edit.0, edit.1 == Some(true));
            if is_only {
                finding.fix = edit;
            } else {
                let is_served = |name: &str| {
                    let mut resources = known.mapper.resources.iter();
                    resources.any(|it| it.gvr.resource == name)
                };
                let scope = || scope_edit(policy, rule, unserved);
                if rule_scope::is_only_mistake(&is_served, matches, (rule, unserved)) {
                    finding.fix = scope();
                }
                let edit = edit.filter(|_| never_runs);
                let is_assumed =
                    finding.fix.is_none() && rule_scope::is_wrong(matches, (rule, unserved));
                let of_scope = || scope().filter(|_| is_assumed);
                let item = names.get(&(field_ref, unserved.name.as_str()));
                let edit = edit.or_else(of_scope);
                let edit = edit.or_else(|| subresource_edit(policy, item?, unserved));
                finding.assumption = edit.map(Assumption::new);
            }
        }
        finding.field_ref = Some(unserved.field_ref.clone());
        finding.location.length = length;
        findings.push(finding);
    }
    exclusions(policy, known, findings);
    exempt_resources(policy, analysis, findings);
    if never_runs {
        no_served_resource(policy, analysis, findings);
    }
}

/// Adds a finding about rules that match no served resource, unless their resources have findings.
fn no_served_resource(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let matches = &analysis.matches;
    let has_rules = known::rule(&policy.value, 0).is_some();
    if has_rules && matches.unserved.is_empty() && matches.exempt.is_empty() {
        let field_ref = "spec.matchConstraints.resourceRules";
        let place = policy.place_of_field(field_ref);
        let message = "no rule matches a served resource";
        let mut finding = object_finding(
            policy,
            Severity::Error,
            Rule::UnservedResource,
            message,
            place,
        );
        finding.field_ref = Some(field_ref.to_owned());
        finding.help = Some(analysis.subject.row().never_runs.to_owned());
        findings.push(finding);
    }
}

/// Replaces the scope of a rule if only the scope excludes the rule's resources. The edit is an assumption instead of a
/// fix if the resource may be the mistake.
fn scope_edit(
    policy: &Object<RequestPolicy>,
    rule: &Node,
    unserved: &UnservedResource,
) -> Option<Edit> {
    let meant = unserved.suggestion.as_deref()?.strip_prefix("scope: ")?;
    let document = &policy.document;
    document.edit_value(&policy.source, rule.get("scope")?, meant)
}

/// Replaces the name of an unserved subresource with a similar name of a subresource of the same resource.
fn subresource_edit(
    policy: &Object<RequestPolicy>,
    item: &Node,
    unserved: &UnservedResource,
) -> Option<Edit> {
    let meant = unserved.suggestion.as_deref()?;
    let (main, sub) = unserved.name.split_once('/')?;
    let (_, known) = meant.split_once('/').filter(|(known, _)| *known == main)?;
    nearest(sub, std::iter::once(known))?;
    policy.document.edit_value(&policy.source, item, meant)
}

/// Corrects a group or a version of a rule that serves none of the rule's resources. Also returns true if the rule has no
/// other group or version, so that the correction is certain.
fn group_version_edit(
    policy: &Object<RequestPolicy>,
    matches: &Matches,
    unserved: &UnservedResource,
) -> Option<(Edit, bool)> {
    let (group_version, name) = unserved.suggestion.as_deref()?.split_once(' ')?;
    let (group, version) = group_version
        .rsplit_once('/')
        .unwrap_or(("", group_version));
    let rule = known::rule(&policy.value, unserved.index)?;
    let list = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    let of_rule = |other: &&UnservedResource| {
        let suggestion = other
            .suggestion
            .as_deref()
            .and_then(|it| it.split_once(' '));
        other.index == unserved.index && suggestion.is_some_and(|(of, _)| of == group_version)
    };
    let n = matches.unserved.iter().filter(of_rule).count();
    let (groups, versions) = (list(&rule.api_groups), list(&rule.api_versions));
    let is_only = groups.len() == 1 && versions.len() == 1;
    let has = |values: &[String], value: &str| values.iter().any(|it| it == value || it == "*");
    if list(&rule.resources).len() != n || group.contains(':') || name != unserved.name {
        return None;
    }
    let field_ref = &unserved.field_ref;
    let (field, value) = match (has(&groups, group), has(&versions, version)) {
        (true, false) => ("apiVersions", version),
        (false, true) => ("apiGroups", group),
        _ => return None,
    };
    let node = policy
        .document
        .node
        .nearest(&format!("{field_ref}.{field}[0]"));
    let edit = policy.document.edit_value(&policy.source, node, value);
    edit.map(|edit| (edit, is_only))
}

/// Adds findings about resources for which API servers never call policies. Resources that only a wildcard matches are
/// reported if the rules match nothing else.
fn exempt_resources(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let matches = &analysis.matches;
    // API servers call policies from static manifests for all resources.
    let name = policy.value.name.as_deref().unwrap_or_default();
    if name.ends_with(manifests::SUFFIX) {
        return;
    }
    let never_runs = matches.resources.is_empty() && !analysis.has_reviews;
    let reported = matches.exempt.iter();
    let reported = reported.filter(|exempt| never_runs || !exempt.by_wildcard);
    // Reports one finding per name in a rule, even if the name is a wildcard that matches several resources.
    let mut by_name: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for exempt in reported {
        let key = (exempt.field_ref.as_str(), exempt.name.as_str());
        by_name.entry(key).or_default().push(&exempt.resource);
    }
    for ((field_ref, name), resources) in by_name {
        let severity = if never_runs {
            Severity::Error
        } else {
            Severity::Warning
        };
        let rule = policy.document.node.nearest(field_ref);
        let names = rule.get("resources").map_or(&[][..], Node::items);
        let named = names.iter().find(|item| item.as_str() == Some(name));
        let (place, length) = match named {
            Some(item) => (policy.place_of(item), item.span.len().max(1)),
            None => (policy.place_of(rule), 1),
        };
        let message = format!(
            "API servers never call a {} for {}",
            analysis.subject.row().evaluated,
            message::list(&resources)
        );
        let mut finding = object_finding(policy, severity, Rule::ExemptResource, &message, place);
        let consequence = if never_runs {
            analysis.subject.row().never_runs
        } else {
            "the rule has no effect on such requests"
        };
        finding.help = Some(format!("{consequence}; restrict access with RBAC instead"));
        finding.field_ref = Some(field_ref.to_owned());
        finding.location.length = length;
        findings.push(finding);
    }
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
