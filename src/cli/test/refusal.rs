//! Refusals of the input by the API server before any request is asked about: policies, bindings, params and
//! namespaces that cannot exist decide nothing.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use crate::cli::check::finding::{Finding, Severity};
use crate::cli::check::known::Known;
use crate::cli::check::policy::{self, object_finding};
use crate::cli::check::{self, shape, validation, webhook};
use crate::cli::input::{Input, Object};
use crate::library::version::LATEST;
use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;
use crate::probe::api::Samples;
use crate::probe::custom_resource::Definition;
use crate::probe::sample;
use crate::schema::{Crd, Gvk};

use super::cluster::mutating_key;
use super::target::Webhook;

/// Why the API server refuses policies, by their names.
pub(in crate::cli) type Refusals = BTreeMap<String, String>;

/// The policies that probes are about and that the API server refuses; what is wrong with them goes to `findings`,
/// as does what is wrong with their bindings.
pub(in crate::cli) fn of_policies(
    input: &Input,
    known: &Known,
    probed: &BTreeSet<&str>,
    findings: &mut Vec<Finding>,
) -> Refusals {
    let mut refusals = Refusals::new();
    for policy in &input.policies {
        let name = policy.name().unwrap_or_default();
        if !probed.contains(name) {
            continue;
        }
        // What may fail is not asked here, but what is refused.
        let mut found = policy::check(policy, &[], known, Profile::Upstream).findings;
        found.extend(shape::check(policy));
        found.extend(validation::policy(policy));
        keep_refusals(&mut found);
        if let Some(first) = found.first() {
            let why = with_place(first);
            refusals.entry(name.to_owned()).or_insert(why);
        }
        findings.extend(found);
    }
    for binding in &input.bindings {
        let policy_name = binding.value.spec.policy_name.as_str();
        if !probed.contains(policy_name) {
            continue;
        }
        let mut found = shape::check(binding);
        found.extend(validation::binding(binding));
        keep_refusals(&mut found);
        if let Some(first) = found.first() {
            let name = binding.name().unwrap_or_default();
            let why = format!("its binding {name} is none: {}", first.message);
            refusals.entry(policy_name.to_owned()).or_insert(why);
        }
        findings.extend(found);
    }
    refusals
}

/// [`of_policies`] for mutating policies, by the names that probes have for them.
pub(in crate::cli) fn of_mutating_policies(
    input: &Input,
    known: &Known,
    probed: &BTreeSet<&str>,
    findings: &mut Vec<Finding>,
    refusals: &mut Refusals,
) {
    for policy in &input.mutating_policies {
        let shared = &policy.shared;
        let key = mutating_key(shared.name().unwrap_or_default());
        if !probed.contains(key.as_str()) {
            continue;
        }
        let mut found = policy::check_mutating(policy, &[], known, Profile::Upstream).findings;
        found.extend(shape::check(shared));
        found.extend(validation::mutating_policy(shared));
        keep_refusals(&mut found);
        if let Some(first) = found.first() {
            let why = with_place(first);
            refusals.entry(key).or_insert(why);
        }
        findings.extend(found);
    }
    for binding in &input.mutating_bindings {
        let key = mutating_key(&binding.value.spec.policy_name);
        if !probed.contains(key.as_str()) {
            continue;
        }
        let mut found = shape::check(binding);
        found.extend(validation::mutating_binding(binding));
        keep_refusals(&mut found);
        if let Some(first) = found.first() {
            let name = binding.name().unwrap_or_default();
            let why = format!("its binding {name} is none: {}", first.message);
            refusals.entry(key).or_insert(why);
        }
        findings.extend(found);
    }
}

/// The configurations of probed webhooks that the API server refuses; what is wrong with them goes to `findings`, and
/// why to `refusals`.
pub(super) fn of_webhooks(
    webhooks: &HashMap<String, Webhook<'_>>,
    known: &Known,
    probed: &BTreeSet<&str>,
    findings: &mut Vec<Finding>,
    refusals: &mut Refusals,
) {
    let mut of_probes: Vec<_> = webhooks
        .iter()
        .filter(|(name, _)| probed.contains(name.as_str()))
        .collect();
    of_probes.sort_by_key(|(name, _)| *name);
    // A fault of one webhook costs all of its configuration.
    let mut of_configurations: HashMap<_, Option<String>> = HashMap::new();
    for (name, webhook) in of_probes {
        let configuration = webhook.configuration;
        let why = of_configurations
            .entry(std::ptr::from_ref(configuration))
            .or_insert_with(|| {
                let mut found =
                    webhook::check(configuration, known, (Profile::Upstream, LATEST), true);
                found.extend(validation::webhooks(configuration));
                keep_refusals(&mut found);
                let why = found.first().map(with_place);
                findings.extend(found);
                why
            });
        if let Some(why) = why {
            refusals.insert(name.clone(), why.clone());
        }
    }
}

/// A CustomResourceDefinition that probes are about.
pub(super) struct ProbedDefinition {
    /// As it is written.
    pub(super) object: Object<Crd>,
    /// The definition that its probes are held against.
    pub(super) definition: Definition,
}

/// The CustomResourceDefinitions that probes are about, with why the API server refuses them, if it does; what is wrong
/// with their rules goes to `findings`.
pub(super) fn of_definitions(
    crds: HashMap<String, Object<Crd>>,
    probed: &BTreeSet<&str>,
    findings: &mut Vec<Finding>,
) -> HashMap<String, ProbedDefinition> {
    let mut probed: Vec<_> = crds
        .into_iter()
        .filter(|(key, _)| probed.contains(key.as_str()))
        .collect();
    probed.sort_by(|(a, _), (b, _)| a.cmp(b));
    let mut definitions = HashMap::new();
    for (key, crd) in probed {
        let mut found = check::crd::check(std::slice::from_ref(&crd));
        keep_refusals(&mut found);
        let definition = Definition {
            value: crd.document.node.to_json(),
            refusal: found.first().map(with_place),
        };
        findings.extend(found);
        definitions.insert(
            key,
            ProbedDefinition {
                object: crd,
                definition,
            },
        );
    }
    definitions
}

/// The message of a finding with its file and line.
fn with_place(found: &Finding) -> String {
    let place = found.location.place;
    let line = place.map(|place| format!(":{}", place.line));
    let file = &found.location.file;
    format!("{} ({file}{})", found.message, line.unwrap_or_default())
}

/// Keeps the refusals, one of each field and message.
fn keep_refusals(found: &mut Vec<Finding>) {
    let mut seen = HashSet::new();
    found.retain(|found| {
        found.severity == Severity::Error
            && found.refused
            && seen.insert((found.field_ref.clone(), found.message.clone()))
    });
}

/// The faults of the namespaces, and of the objects that are params of a probed policy.
pub(in crate::cli) fn of_objects(
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
            findings.push(fault(object, field, &violation.message));
        }
    }
}

fn fault<T>(object: &Object<T>, field: &str, message: &str) -> Finding {
    let place = object.place_of_field(field);
    let message = format!("{field}: {message}");
    let mut found = object_finding(
        object,
        Severity::Error,
        Rule::InvalidObject,
        &message,
        place,
    );
    found.field_ref = Some(field.to_owned());
    found.refused = true;
    let advice = object.advice_on_key(field);
    found.help = Some(advice.unwrap_or_else(|| "the API server refuses it".to_owned()));
    found
}
