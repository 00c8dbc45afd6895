//! Checks the probes of `kubectl vap check`: validates them like `kubectl vap test`, without running their cases.

use super::check::finding::{Finding, Location, Severity};
use super::input::Input;
use super::live::ClusterData;
use super::test::probes::{self, Resemblance};
use super::test::targets;
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::probe::target::TargetId;

/// Returns the findings about the probes of the input. `crds` are the names of all CustomResourceDefinitions.
///
/// `has_others` is true if files outside the input may contain the policies that probes test.
pub(in crate::cli) fn check(
    input: &Input,
    crds: &[String],
    cluster: &ClusterData,
    has_others: bool,
) -> Vec<Finding> {
    let mut all_targets = targets(input);
    let kinds = [
        ("ValidatingAdmissionPolicy", &cluster.other_policies),
        ("MutatingAdmissionPolicy", &cluster.other_mutating),
    ];
    for (kind, others) in kinds {
        let invalid = input.invalid.iter().filter(|it| it.kind() == kind);
        let invalid = invalid.filter_map(|policy| policy.name());
        let names = others.iter().map(String::as_str).chain(invalid);
        let kind = SubjectKind::from_kind(kind);
        all_targets.extend(names.filter_map(|name| Some(TargetId::new(kind?, name))));
    }
    let definitions = crds.iter();
    all_targets
        .extend(definitions.map(|name| TargetId::new(SubjectKind::CustomResourceDefinition, name)));
    let mut findings = Vec::new();
    let unknown = &mut |_: &_, mut finding: Finding, resemblance| {
        // `kubectl vap test` requires that the input contains the target of a probe. For `check`, the target may be in
        // other files.
        finding.severity = match resemblance {
            Resemblance::SameName | Resemblance::Similar => Severity::Warning,
            Resemblance::None if has_others => return None,
            Resemblance::None => Severity::Note,
        };
        Some(finding)
    };
    let read = probes::read_with(input.probes.clone(), &all_targets, &mut findings, unknown);
    if let Err(error) = read {
        let file = input.probes.first().map(|probe| probe.source.name.clone());
        let location = Location::from_file(file.unwrap_or_default());
        let rule = Rule::InvalidProbe;
        findings.push(Finding::new(Severity::Error, rule, error, location));
    }
    findings
}
