//! Findings about the input as a whole: duplicate names, skipped kinds, empty input.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::finding::{Finding, Location, Severity};
use super::policy::object_finding;
use crate::cli::input::files::STDIN;
use crate::cli::input::skipped::{ByKind, SkippedKind};
use crate::cli::input::{Input, Object, PROBE_GROUP, SourceText};
use crate::policy::RequestPolicy;
use crate::policy::rule::Rule;
use crate::schema::{Crd, GroupVersion};

/// Maximum number of kinds that a note lists.
const MAX_KINDS: usize = 8;

/// Maximum number of other files with the same policy name that are recorded for a policy.
const MAX_OTHER_FILES: usize = 100;

/// Returns findings about objects of the inputs with the same kind and name. A cluster can contain only one of them.
pub(super) fn duplicates(inputs: &[&Input], crds: &[&Object<Crd>]) -> Vec<Finding> {
    let mut findings = Vec::new();
    let inputs = || inputs.iter().copied();
    let policies: Vec<_> = inputs().flat_map(|input| &input.policies).collect();
    let bindings: Vec<_> = inputs().flat_map(|input| &input.bindings).collect();
    let of_two =
        "`kubectl create` rejects the second object, and `kubectl apply` keeps the last one";
    duplicate_names("policy", of_two, &policies, &mut findings);
    duplicate_names("binding", of_two, &bindings, &mut findings);
    let policies = inputs().flat_map(|input| &input.mutating_policies);
    let policies: Vec<_> = policies.map(|policy| &policy.shared).collect();
    let bindings: Vec<_> = inputs()
        .flat_map(|input| &input.mutating_bindings)
        .collect();
    duplicate_names("mutating policy", of_two, &policies, &mut findings);
    duplicate_names("mutating binding", of_two, &bindings, &mut findings);
    let of_crds = "the schemas of the first definition are used";
    duplicate_names("CustomResourceDefinition", of_crds, crds, &mut findings);
    findings
}

/// Adds a finding for each object that has the name of an earlier object. Equal objects, and objects in different
/// directories, are not reported.
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
        // The same file may be passed twice, or through a link. Equal objects are therefore not duplicates.
        if first.document.node.to_json() == object.document.node.to_json() {
            continue;
        }
        let message = format!(
            "the {noun} `{name}` is defined twice, first in {}, line {}",
            first.source.name,
            first.place().line
        );
        // Files in different directories are often test data or alternatives, so their duplicates are not reported.
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

/// Sets [`Object::other_files`] of all policies.
pub(super) fn set_other_files(input: &mut Input) {
    set_other_files_of(&mut input.policies.iter_mut().collect::<Vec<_>>());
    let mutating = input.mutating_policies.iter_mut();
    set_other_files_of(
        &mut mutating
            .map(|policy| &mut policy.shared)
            .collect::<Vec<_>>(),
    );
}

fn set_other_files_of<T>(policies: &mut [&mut Object<T>]) {
    let mut files: BTreeMap<String, Vec<Arc<SourceText>>> = BTreeMap::new();
    for policy in &*policies {
        if let Some(name) = policy.name() {
            let source = Arc::clone(&policy.source);
            files.entry(name.to_owned()).or_default().push(source);
        }
    }
    for policy in policies {
        let files = policy.name().and_then(|name| files.get(name));
        let others = files.into_iter().flatten();
        let others = others.filter(|file| file.name != policy.source.name);
        policy.other_files = others.take(MAX_OTHER_FILES).cloned().collect();
    }
}

/// Copies [`Object::other_files`] from each policy of `input` to the policy with the same file and name in `corrected`.
pub(super) fn copy_other_files(input: &Input, corrected: &mut Input) {
    fn all(input: &Input) -> impl Iterator<Item = &Object<RequestPolicy>> {
        let mutating = input.mutating_policies.iter();
        let mutating = mutating.map(|policy| &policy.shared);
        input.policies.iter().chain(mutating)
    }
    let with_others = all(input).filter(|policy| !policy.other_files.is_empty());
    let files: BTreeMap<_, _> = with_others
        .map(|policy| ((&*policy.source.name, policy.name()), &policy.other_files))
        .collect();
    let mutating = corrected.mutating_policies.iter_mut();
    let mutating = mutating.map(|policy| &mut policy.shared);
    for policy in corrected.policies.iter_mut().chain(mutating) {
        if let Some(others) = files.get(&(&*policy.source.name, policy.name())) {
            policy.other_files.clone_from(others);
        }
    }
}

/// Returns the distance between two files: 0 for the same file, 1 for files of the same directory. Each step between
/// their directories adds 1.
pub(super) fn distance(file: &str, other: &str) -> usize {
    if file == other {
        return 0;
    }
    let directory = |file| {
        Path::new(file)
            .parent()
            .into_iter()
            .flat_map(Path::components)
    };
    let n_shared = directory(file)
        .zip(directory(other))
        .take_while(|(a, b)| a == b)
        .count();
    let n_steps = |file| directory(file).count().saturating_sub(n_shared);
    n_steps(file)
        .saturating_add(n_steps(other))
        .saturating_add(1)
}

/// Returns a note that lists the kinds of skipped objects. `None` if no object was skipped.
pub(super) fn skipped_kinds(kinds: &ByKind) -> Option<Finding> {
    // Kinds of this tool, such as probes and baselines, are not listed.
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
    let help = "only policies, bindings, webhook configurations, CustomResourceDefinitions and probes are checked";
    Some(note(first, message, help))
}

/// Returns true if this tool defines the kinds of the API version.
fn is_own(api_version: &str) -> bool {
    let group = GroupVersion::split(api_version).0;
    let prefix = group.strip_suffix(PROBE_GROUP);
    prefix.is_some_and(|prefix| prefix.is_empty() || prefix.ends_with('.'))
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
