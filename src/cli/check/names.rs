//! Findings about the input as a whole: duplicate names, skipped kinds, empty input.

use std::collections::BTreeMap;
use std::path::Path;

use super::finding::{Finding, Location, Severity};
use super::policy::object_finding;
use crate::cli::input::files::STDIN;
use crate::cli::input::skipped::{ByKind, SkippedKind};
use crate::cli::input::{Input, Object, PROBE_GROUP};
use crate::policy::rule::Rule;
use crate::schema::{Crd, GroupVersion};

/// Maximum number of kinds that a note lists.
const MAX_KINDS: usize = 8;

/// Returns findings about several objects with the same kind and name. A cluster can have only one of them.
pub(super) fn duplicates(input: &Input, crds: &[&Object<Crd>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let policies: Vec<_> = input.policies.iter().collect();
    let bindings: Vec<_> = input.bindings.iter().collect();
    let of_two = "`kubectl create` rejects the second, and `kubectl apply` keeps the last";
    duplicate_names("policy", of_two, &policies, &mut findings);
    duplicate_names("binding", of_two, &bindings, &mut findings);
    let policies = input.mutating_policies.iter();
    let policies: Vec<_> = policies.map(|policy| &policy.shared).collect();
    let bindings: Vec<_> = input.mutating_bindings.iter().collect();
    duplicate_names("mutating policy", of_two, &policies, &mut findings);
    duplicate_names("mutating binding", of_two, &bindings, &mut findings);
    let of_crds = "the schemas of the first definition are used";
    duplicate_names("CustomResourceDefinition", of_crds, crds, &mut findings);
    findings
}

/// Adds findings about objects with the name of an earlier object, unless the two objects are equal.
fn duplicate_names<T>(noun: &str, help: &str, objects: &[&Object<T>], findings: &mut Vec<Finding>) {
    let mut by_name: BTreeMap<&str, &Object<T>> = BTreeMap::new();
    for object in objects.iter().copied() {
        let Some(name) = object.name().filter(|name| !name.is_empty()) else {
            continue;
        };
        let Some(first) = by_name.get(name) else {
            by_name.insert(name, object);
            continue;
        };
        // The same file may be passed twice, or through a link.
        if first.document.node.to_json() == object.document.node.to_json() {
            continue;
        }
        let message = format!(
            "the {noun} `{name}` is defined twice, first in {}, line {}",
            first.source.name,
            first.place().line
        );
        // Different directories often have test data or alternatives.
        let directory =
            |object: &Object<T>| Path::new(&object.source.name).parent().map(Path::to_owned);
        let severity = match () {
            () if first.source.name == object.source.name => Severity::Warning,
            () if directory(first) == directory(object) => Severity::Note,
            () => continue,
        };
        let mut finding = object_finding(
            object,
            severity,
            Rule::DuplicateName,
            &message,
            object.place(),
        );
        finding.field_ref = Some("metadata.name".to_owned());
        let node = object.document.node.nearest("metadata.name");
        finding.location.length = object.length_of(node);
        finding.help = Some(help.to_owned());
        findings.push(finding);
    }
}

/// Returns a note that lists the kinds of skipped objects. `None` if no object was skipped.
pub(super) fn skipped_kinds(kinds: &ByKind) -> Option<Finding> {
    // Probes and baselines are files of this tool.
    let others = || kinds.iter().filter(|((version, _), _)| !is_own(version));
    let first = others()
        .map(|(_, of)| of)
        .min_by_key(|of| (of.source.name.clone(), of.place))?;
    let names = others().take(MAX_KINDS);
    let names: Vec<String> = names
        .map(|((api_version, kind), of)| format!("{} {api_version} {kind}", of.n))
        .collect();
    let more = match others().count().saturating_sub(names.len()) {
        0 => String::new(),
        n => format!(" and {n} more kinds"),
    };
    let message = format!("skipped: {}{more}", names.join(", "));
    let help =
        "only policies, bindings, webhook configurations and CustomResourceDefinitions are checked";
    Some(note(first, message, help))
}

/// Returns true if this tool defines the kinds of the API version.
fn is_own(api_version: &str) -> bool {
    GroupVersion::split(api_version).0 == PROBE_GROUP
}

fn note(first: &SkippedKind, message: String, help: &str) -> Finding {
    let location = Location::from_place(&first.source, first.place);
    Finding {
        help: Some(help.to_owned()),
        ..Finding::new(Severity::Note, Rule::SkippedObject, message, location)
    }
}

/// Returns an error if standard input was empty.
pub(super) fn empty_input(input: &Input, reads_stdin: bool) -> Option<Finding> {
    let is_empty = reads_stdin && input.n_objects == 0 && input.problems.is_empty();
    is_empty.then(|| Finding {
        help: Some("the command before the pipe probably failed".to_owned()),
        ..Finding::new(
            Severity::Error,
            Rule::EmptyInput,
            "standard input contains no object",
            Location::from_file(STDIN),
        )
    })
}
