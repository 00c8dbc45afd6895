//! Finds objects of the input that the API server would reject: policies, bindings, params and namespaces. They are
//! excluded from evaluation.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;

use crate::cli::check::finding::{Finding, Owner, Severity};
use crate::cli::check::known::Known;
use crate::cli::check::policy;
use crate::cli::check::{self, manifests, shape, validation, versions, webhook};
use crate::cli::input::{Input, Object};
use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::probe::api::Samples;
use crate::probe::custom_resource::Definition;
use crate::probe::sample;
use crate::schema::{Crd, Gvk};
use crate::version::KubernetesVersion;

use super::target::{TargetId, Webhook};

/// The reasons why the API server rejects policies and webhook configurations.
pub(in crate::cli) type Rejections = BTreeMap<TargetId, String>;

/// Returns the reasons why the API server rejects probed policies or their bindings. The errors are added to
/// `findings`.
pub(in crate::cli) fn check_policies(
    input: &Input,
    known: &Known,
    probed: &BTreeSet<TargetId>,
    findings: &mut Vec<Finding>,
) -> Rejections {
    let mut rejections = Rejections::new();
    for policy in &input.policies {
        let id = TargetId::policy(policy.name().unwrap_or_default());
        if !probed.contains(&id) {
            continue;
        }
        // Only errors for which the API server rejects the policy are retained, not expressions that may fail.
        let mut errors = policy::check(policy, &[], known, Profile::Upstream).findings;
        errors.extend(shape::check(policy));
        errors.extend(validation::policy(policy));
        retain_rejections(&mut errors);
        if let Some(first) = errors.first() {
            let why = with_place(first);
            rejections.entry(id).or_insert(why);
        }
        findings.extend(errors);
    }
    for binding in &input.bindings {
        let id = TargetId::policy(&binding.value.spec.policy_name);
        if !probed.contains(&id) {
            continue;
        }
        let mut errors = shape::check(binding);
        errors.extend(validation::binding(binding));
        retain_rejections(&mut errors);
        if let Some(first) = errors.first() {
            let name = binding.name().unwrap_or_default();
            let why = format!("its binding {name} is invalid: {}", first.message);
            rejections.entry(id).or_insert(why);
        }
        findings.extend(errors);
    }
    rejections
}

/// Checks probed mutating policies and their bindings like [`check_policies`]. Adds rejected policies to `rejections`.
pub(in crate::cli) fn check_mutating_policies(
    input: &Input,
    known: &Known,
    probed: &BTreeSet<TargetId>,
    findings: &mut Vec<Finding>,
    rejections: &mut Rejections,
) {
    for policy in &input.mutating_policies {
        let shared = &policy.shared;
        let name = shared.name().unwrap_or_default();
        let id = TargetId::new(SubjectKind::MutatingAdmissionPolicy, name);
        if !probed.contains(&id) {
            continue;
        }
        let mut errors = policy::check_mutating(policy, &[], known, Profile::Upstream).findings;
        errors.extend(shape::check(shared));
        errors.extend(validation::mutating_policy(shared));
        retain_rejections(&mut errors);
        if let Some(first) = errors.first() {
            let why = with_place(first);
            rejections.entry(id).or_insert(why);
        }
        findings.extend(errors);
    }
    for binding in &input.mutating_bindings {
        let policy_name = &binding.value.spec.policy_name;
        let id = TargetId::new(SubjectKind::MutatingAdmissionPolicy, policy_name);
        if !probed.contains(&id) {
            continue;
        }
        let mut errors = shape::check(binding);
        errors.extend(validation::mutating_binding(binding));
        retain_rejections(&mut errors);
        if let Some(first) = errors.first() {
            let name = binding.name().unwrap_or_default();
            let why = format!("its binding {name} is invalid: {}", first.message);
            rejections.entry(id).or_insert(why);
        }
        findings.extend(errors);
    }
}

/// Adds the errors that an API server reports only when a policy or binding is created: functions that new expressions
/// cannot use yet, and reserved names. `known` determines the version of the API server. `static_dir` contains static
/// manifests, which may have reserved names. `findings` contains the errors of [`check_policies`].
pub(in crate::cli) fn add_creation_errors(
    input: &Input,
    known: &Known,
    static_dir: Option<&Path>,
    findings: &mut Vec<Finding>,
) {
    let version = known.version();
    let validating = input.policies.iter().map(|policy| (policy, None));
    let mutating = input.mutating_policies.iter();
    let mutating = mutating.map(|policy| (&policy.shared, Some(policy.mutations.as_slice())));
    for (policy, mutations) in validating.chain(mutating) {
        let is_of_policy = |finding: &mut Finding| {
            matches!(&finding.owner, Owner::Policy(name) if Some(&**name) == policy.name())
                && *finding.location.file == *policy.source.name
        };
        let mut errors: Vec<Finding> = findings.extract_if(.., is_of_policy).collect();
        versions::check(policy, mutations, version, &mut errors);
        errors.extend(manifests::reserved_name(policy, static_dir, version));
        retain_rejections(&mut errors);
        findings.extend(errors);
    }
    let names = input.bindings.iter();
    let reserved_name = |binding| manifests::reserved_name(binding, static_dir, version);
    let names = names.filter_map(reserved_name);
    let mutating = input.mutating_bindings.iter();
    let mutating = mutating.filter_map(reserved_name);
    findings.extend(names.chain(mutating).filter(|finding| finding.rejected));
}

/// Checks the webhook configurations that probes target. Errors are added to `findings`, and the reasons of rejections
/// to `rejections`.
pub(super) fn check_webhooks(
    webhooks: &HashMap<TargetId, Webhook<'_>>,
    known: &Known,
    probed: &BTreeSet<TargetId>,
    findings: &mut Vec<Finding>,
    rejections: &mut Rejections,
) {
    let mut webhooks: Vec<_> = webhooks
        .iter()
        .filter(|(id, _)| probed.contains(*id))
        .collect();
    webhooks.sort_by_key(|(id, _)| *id);
    // An error in one webhook affects its whole configuration.
    let mut by_configuration: HashMap<_, Option<String>> = HashMap::new();
    for (id, webhook) in webhooks {
        let configuration = webhook.configuration;
        let why = by_configuration
            .entry(std::ptr::from_ref(configuration))
            .or_insert_with(|| {
                let mut errors = webhook::check(configuration, known, Profile::Upstream, true);
                errors.extend(validation::webhooks(configuration));
                retain_rejections(&mut errors);
                let why = errors.first().map(with_place);
                findings.extend(errors);
                why
            });
        if let Some(why) = why {
            rejections.insert(id.clone(), why.clone());
        }
    }
}

/// A CustomResourceDefinition that probes target.
pub(super) struct ProbedDefinition {
    /// The definition as it was read, with its location.
    pub(super) object: Object<Crd>,
    /// The definition that the sample objects are validated against.
    pub(super) definition: Definition,
}

/// Returns the CustomResourceDefinitions that probes target, each with the reason if the API server rejects it. Errors
/// in their rules are added to `findings`.
pub(super) fn check_definitions(
    crds: HashMap<TargetId, Object<Crd>>,
    probed: &BTreeSet<TargetId>,
    version: KubernetesVersion,
    findings: &mut Vec<Finding>,
) -> HashMap<TargetId, ProbedDefinition> {
    let mut probed: Vec<_> = crds
        .into_iter()
        .filter(|(id, _)| probed.contains(id))
        .collect();
    probed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut definitions = HashMap::new();
    for (id, crd) in probed {
        let mut errors = check::crd::check(std::slice::from_ref(&crd), version);
        retain_rejections(&mut errors);
        let definition = Definition {
            value: crd.document.node.to_json(),
            rejection: errors.first().map(with_place),
            version,
        };
        findings.extend(errors);
        definitions.insert(
            id,
            ProbedDefinition {
                object: crd,
                definition,
            },
        );
    }
    definitions
}

fn with_place(finding: &Finding) -> String {
    let place = finding.location.place;
    let line = place.map(|place| format!(":{}", place.line));
    let file = &finding.location.file;
    format!("{} ({file}{})", finding.message, line.unwrap_or_default())
}

/// Retains the errors for which the API server rejects an object, without duplicates of the same field and message.
fn retain_rejections(errors: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    errors.retain(|error| {
        error.severity == Severity::Error
            && error.rejected
            && seen.insert((error.field_ref.clone(), error.message.clone()))
    });
}

/// Adds findings for namespaces, and for params of probed policies, that the API server would reject.
pub(in crate::cli) fn check_objects(
    input: &Input,
    known: &Known,
    param_kinds: &BTreeSet<Gvk>,
    findings: &mut Vec<Finding>,
) {
    let namespace = Gvk::new("", "v1", "Namespace");
    let params = param_kinds.iter().filter(|gvk| **gvk != namespace);
    let params = params.flat_map(|gvk| input.objects_of_kind(gvk).map(move |object| (object, gvk)));
    let namespaces = input.namespaces.iter().map(|object| (object, &namespace));
    for (object, gvk) in namespaces.chain(params) {
        for violation in sample::violations(&object.value, gvk, known, Samples::Whole, "") {
            let field = violation.field_ref.trim_start_matches('.');
            findings.push(object_finding(object, field, &violation.message));
        }
    }
}

fn object_finding<T>(object: &Object<T>, field: &str, message: &str) -> Finding {
    let place = object.place_of_field(field);
    let message = format!("{field}: {message}");
    let mut error = policy::object_finding(
        object,
        Severity::Error,
        Rule::InvalidObject,
        &message,
        place,
    );
    error.field_ref = Some(field.to_owned());
    error.rejected = true;
    let advice = object.advice_on_key(field);
    error.help = Some(advice.unwrap_or_else(|| "the API server rejects the object".to_owned()));
    error
}
