//! Findings about the input as a whole: objects of one name, kinds that are passed over, nothing at all.

use std::collections::BTreeMap;

use super::finding::{Finding, Location, Severity};
use super::policy::finding;
use crate::cli::input::files::STDIN;
use crate::cli::input::passed_over::{ByKind, PassedOver};
use crate::cli::input::{Input, Object};
use crate::policy::rule::Rule;
use crate::schema::Crd;

/// The most kinds that a note names.
const MAX_KINDS: usize = 8;

/// The kinds that do what the checked ones do, and are not checked.
const MUTATING: [&str; 2] = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"];

/// Objects of one kind and name, of which a cluster can have one only.
pub(super) fn duplicates(input: &Input, crds: &[&Object<Crd>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let policies: Vec<_> = input.policies.iter().collect();
    let bindings: Vec<_> = input.bindings.iter().collect();
    let of_two =
        "`kubectl create` refuses the second, and with `kubectl apply` the last one counts";
    given_twice("policy", of_two, &policies, &mut findings);
    given_twice("binding", of_two, &bindings, &mut findings);
    let of_crds = "the schemas of the first are used";
    given_twice("CustomResourceDefinition", of_crds, crds, &mut findings);
    findings
}

/// Adds objects of the name of one before them, unless they are equal to it.
fn given_twice<T>(noun: &str, help: &str, objects: &[&Object<T>], findings: &mut Vec<Finding>) {
    let mut known: BTreeMap<&str, &Object<T>> = BTreeMap::new();
    for object in objects.iter().copied() {
        let Some(name) = object.name().filter(|name| !name.is_empty()) else {
            continue;
        };
        let Some(first) = known.get(name) else {
            known.insert(name, object);
            continue;
        };
        // A file that is given twice, or by a link, says nothing else.
        if first.document.node.to_json() == object.document.node.to_json() {
            continue;
        }
        let message = format!(
            "the {noun} `{name}` is given twice, first in {}, line {}",
            first.source.name,
            first.place().line
        );
        let mut found = finding(
            object,
            Severity::Warning,
            Rule::DuplicateName,
            &message,
            object.place(),
        );
        found.field_ref = Some("metadata.name".to_owned());
        let node = object.document.node.nearest("metadata.name");
        found.location.length = object.length_of(node);
        found.help = Some(help.to_owned());
        findings.push(found);
    }
}

/// Notes of the kinds that were passed over.
pub(super) fn passed_over(kinds: &ByKind) -> Vec<Finding> {
    let (mutating, others): (Vec<_>, Vec<_>) = kinds
        .iter()
        .partition(|((_, kind), _)| MUTATING.contains(&kind.as_str()));
    let mut findings = Vec::new();
    for (kinds, what, help) in [
        (
            mutating,
            "not checked",
            "kubectl vap checks policies that validate, and none that mutate",
        ),
        (
            others,
            "passed over",
            "policies, bindings, webhook configurations and CustomResourceDefinitions are checked",
        ),
    ] {
        let first = kinds.iter().map(|(_, of)| *of);
        let Some(first) = first.min_by_key(|of| (of.source.name.clone(), of.place)) else {
            continue;
        };
        let names = kinds.iter().take(MAX_KINDS);
        let names: Vec<String> = names
            .map(|((api_version, kind), of)| format!("{} {api_version} {kind}", of.n))
            .collect();
        let more = match kinds.len().saturating_sub(names.len()) {
            0 => String::new(),
            n => format!(" and {n} more kinds"),
        };
        let message = format!("{what}: {}{more}", names.join(", "));
        findings.push(note(first, message, help));
    }
    findings
}

fn note(first: &PassedOver, message: String, help: &str) -> Finding {
    let location = Location::of_place(&first.source, first.place);
    Finding {
        help: Some(help.to_owned()),
        ..Finding::new(Severity::Note, Rule::PassedOver, message, location)
    }
}

/// The error that nothing came from standard input.
pub(super) fn empty_input(input: &Input, reads_stdin: bool) -> Option<Finding> {
    let is_empty = reads_stdin && input.n_objects == 0 && input.problems.is_empty();
    is_empty.then(|| Finding {
        help: Some("most likely the command before the pipe has failed".to_owned()),
        ..Finding::new(
            Severity::Error,
            Rule::EmptyInput,
            "standard input holds no object",
            Location::of_file(STDIN),
        )
    })
}
