//! Reads the probes of the input: validates them against the CRD, and checks that their policies are in the input.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::Value;

use crate::cli::check::finding::{Finding, Severity};
use crate::cli::check::policy::object_finding;
use crate::cli::input::{Object, Place};
use crate::policy::RequestPolicy;
use crate::policy::nearest::nearest;
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::probe::api::{PolicyProbeSpec, Target};
use crate::probe::validation::{Validator, Violation};

use super::expand::{self, ExpandedProbe, Origin};
use super::target::{self, TargetId};

/// A valid probe.
#[derive(Debug)]
pub(in crate::cli) struct Probe {
    /// The probe as it was read, with its location.
    pub(in crate::cli) object: Arc<Object<Value>>,
    /// The origin of each case.
    pub(in crate::cli) origins: Vec<Origin>,
    pub(in crate::cli) spec: PolicyProbeSpec,
    /// The identity of the object that the probe tests.
    pub(in crate::cli) id: TargetId,
}

impl Probe {
    pub(in crate::cli) fn name(&self) -> &str {
        self.object.name().unwrap_or_default()
    }

    /// Removes the cases for which `is_kept` is false. Cases for which `is_kept` has no entry remain.
    pub(super) fn retain_cases(&mut self, is_kept: &[bool]) {
        // The origin of a case that was not expanded is its index.
        let n_missing = self.origins.len()..self.spec.cases.len();
        self.origins
            .extend(n_missing.map(|case| Origin { case, row: None }));
        retain(&mut self.spec.cases, is_kept);
        retain(&mut self.origins, is_kept);
    }

    pub(in crate::cli) const fn kind(&self) -> SubjectKind {
        self.id.kind()
    }

    /// Returns the location of a case's name. For a case from a table, this is the name of the row.
    pub(in crate::cli) fn place_of_case(&self, n: usize) -> Place {
        let field = case_origin(&self.origins, n).field();
        self.object.place_of_field(&format!("{field}.name"))
    }

    /// Returns the field of a violation in the case at `n`, and the location of the field.
    pub(in crate::cli) fn place_of_violation(&self, n: usize, field: &str) -> (String, Place) {
        if field.starts_with("spec.") {
            return (field.to_owned(), self.object.place_of_field(field));
        }
        written_field(&self.object, case_origin(&self.origins, n), field)
    }
}

/// Returns the origin of the case at `n`. A case that is not in `origins` was not expanded.
fn case_origin(origins: &[Origin], n: usize) -> Origin {
    let itself = Origin { case: n, row: None };
    origins.get(n).copied().unwrap_or(itself)
}

/// Finds `field` of an expanded case in the file. Returns its path and its location.
///
/// If the case comes from a row of a table, an entry in the row takes precedence over an entry in the case. If neither
/// exists, returns the path in the case and the location of the row.
fn written_field(object: &Object<Value>, origin: Origin, field: &str) -> (String, Place) {
    let case_field = format!("{}.{field}", origin.case_field());
    if origin.row.is_none() {
        let place = object.place_of_field(&case_field);
        return (case_field, place);
    }
    let row = origin.field();
    let row_field = match field.strip_prefix("request.object.") {
        Some(rest) => format!("{row}.patch.{rest}"),
        None => format!("{row}.{field}"),
    };
    let other = format!("{row}.{field}");
    let mut written = [&row_field, &other, &case_field].into_iter();
    let written = written.find(|field| has_field(&object.value, field));
    let place = object.place_of_field(written.unwrap_or(&row));
    (written.unwrap_or(&case_field).clone(), place)
}

/// Returns true if a value has the field. Field names must not contain dots.
fn has_field(value: &Value, field: &str) -> bool {
    let mut steps = field
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'));
    let finding = steps.try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    });
    finding.is_some()
}

/// The relation between the unknown target of a probe and the targets in the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum Resemblance {
    /// A target in the input has the name of the unknown target, but another kind.
    SameName,
    /// A target in the input has a name similar to that of the unknown target.
    Similar,
    /// No target has a similar name.
    None,
}

/// Returns the finding for a probe of an unknown target. Receives the probe, the error, and the relation to the known
/// targets.
pub(in crate::cli) type UnknownTarget<'a> =
    &'a mut dyn FnMut(&Object<Value>, Finding, Resemblance) -> Option<Finding>;

/// Returns the valid probes that test one of `targets`, which are the objects in the input. Errors in the other probes
/// are added to `findings`.
///
/// # Errors
/// Returns an error if the CRD built into this program cannot be used.
pub(in crate::cli) fn read(
    objects: Vec<Object<Value>>,
    targets: &[TargetId],
    findings: &mut Vec<Finding>,
) -> Result<Vec<Probe>, String> {
    read_with(objects, targets, findings, &mut |_, finding, _| {
        Some(finding)
    })
}

/// Reads probes like [`read`], but calls `unknown` for the finding about a probe of an unknown target.
///
/// # Errors
/// Returns an error if the CRD built into this program cannot be used.
pub(in crate::cli) fn read_with(
    objects: Vec<Object<Value>>,
    targets: &[TargetId],
    findings: &mut Vec<Finding>,
    unknown: UnknownTarget<'_>,
) -> Result<Vec<Probe>, String> {
    if objects.is_empty() {
        return Ok(Vec::new());
    }
    let validator = Validator::new()?;
    let mut names = HashSet::new();
    let mut probes = Vec::new();
    for object in objects {
        let expanded = target::parse(&object.value).map(|parsed| {
            let (value, target) = parsed.unzip();
            let value = value.as_ref().unwrap_or(&object.value);
            (expand::expand(value, &object.source.name), target)
        });
        let mut of_probe = Violations::default();
        let ((expanded, violations), target) = match expanded {
            Ok(expanded) => expanded,
            Err(violations) => ((Vec::new(), violations), None),
        };
        for violation in violations {
            of_probe.add(&object, &[], violation);
        }
        let mut read = Vec::new();
        for probe in expanded {
            read.extend(valid_cases(
                &object,
                probe,
                &validator,
                target.as_ref(),
                &mut of_probe,
            ));
        }
        findings.append(&mut of_probe.0);
        if read.is_empty() {
            continue;
        }
        let object = Arc::new(object);
        let name = object.name().unwrap_or_default();
        if !names.insert(name.to_owned()) {
            let message = format!("the probe `{name}` is defined twice");
            findings.push(error(
                &object,
                Rule::DuplicateName,
                &message,
                object.place(),
            ));
            continue;
        }
        for (spec, origins) in read {
            let id = TargetId::from_spec(&spec);
            if !targets.contains(&id) {
                let (finding, resemblance) = match &target {
                    None => unknown_policy(&object, &spec.policy_name, targets),
                    Some(target) => unknown_target(&object, target, &id, targets),
                };
                findings.extend(unknown(&object, finding, resemblance));
                continue;
            }
            let object = Arc::clone(&object);
            probes.push(Probe {
                object,
                origins,
                spec,
                id,
            });
        }
    }
    Ok(probes)
}

/// The findings about a probe. Each violation is listed once, even if the probe has several policies.
#[derive(Default)]
struct Violations(Vec<Finding>);

impl Violations {
    fn add(&mut self, object: &Object<Value>, origins: &[Origin], violation: Violation) {
        let finding = violation_finding(object, origins, violation);
        let is_known = |it: &Finding| it.message == finding.message;
        if !self.0.iter().any(is_known) {
            self.0.push(finding);
        }
    }
}

/// Returns the spec with the valid cases of a probe, and their origins. Returns `None` if there are none, or if the probe
/// as a whole is invalid.
fn valid_cases(
    object: &Object<Value>,
    mut expanded: ExpandedProbe,
    validator: &Validator,
    target: Option<&Target>,
    found: &mut Violations,
) -> Option<(PolicyProbeSpec, Vec<Origin>)> {
    let cases = expanded.probe.pointer("/spec/cases");
    let has_cases = cases
        .and_then(Value::as_array)
        .is_none_or(|cases| !cases.is_empty());
    // A probe without expandable cases is not validated further, because the cases already have findings.
    if !has_cases && !found.0.is_empty() {
        return None;
    }
    loop {
        let checked = validator.read(&expanded.probe).and_then(|spec| {
            let disallowed = target.map(|target| target::disallowed_expectations(&spec, target));
            match disallowed {
                Some(violations) if !violations.is_empty() => Err(violations),
                _ => Ok(spec),
            }
        });
        let violations = match checked {
            Ok(spec) => return Some((spec, expanded.origins)),
            Err(violations) => violations,
        };
        let invalid: Vec<Option<usize>> = violations
            .iter()
            .map(|it| case_index(&it.field_ref))
            .collect();
        for violation in violations {
            found.add(object, &expanded.origins, violation);
        }
        if invalid.contains(&None) {
            return None;
        }
        let cases = expanded.probe.pointer_mut("/spec/cases");
        let cases = cases.and_then(Value::as_array_mut)?;
        let n_cases = cases.len();
        let is_valid: Vec<bool> = (0..n_cases).map(|n| !invalid.contains(&Some(n))).collect();
        retain(cases, &is_valid);
        retain(&mut expanded.origins, &is_valid);
        if cases.is_empty() || cases.len() == n_cases {
            return None;
        }
    }
}

/// Removes the items for which `is_kept` is false. Items for which `is_kept` has no entry remain.
fn retain<T>(items: &mut Vec<T>, is_kept: &[bool]) {
    let mut is_kept = is_kept.iter();
    items.retain(|_| is_kept.next().copied().unwrap_or(true));
}

/// Returns the index of the case that contains a field. `None` for a field outside the cases.
fn case_index(field: &str) -> Option<usize> {
    let (n, _) = field.strip_prefix("spec.cases[")?.split_once(']')?;
    n.parse().ok()
}

fn violation_finding(object: &Object<Value>, origins: &[Origin], violation: Violation) -> Finding {
    let Violation { field_ref, message } = violation;
    let origin = || {
        let rest = field_ref.strip_prefix("spec.cases[")?;
        let (n, rest) = rest.split_once(']')?;
        let origin = *origins.get(n.parse::<usize>().ok()?)?;
        Some(match rest.strip_prefix('.') {
            Some(field) => written_field(object, origin, field),
            None => (origin.field(), object.place_of_field(&origin.field())),
        })
    };
    let (field_ref, place) = origin().unwrap_or_else(|| {
        let place = object.place_of_field(&field_ref);
        (field_ref.clone(), place)
    });
    let message = format!("{field_ref}: {message}");
    let mut finding = error(object, Rule::InvalidProbe, &message, place);
    finding.help = object.advice_on_key(&field_ref);
    finding.field_ref = Some(field_ref);
    finding
}

/// Returns the finding for a probe of the policy `name`, which is not one of the `targets` in the input.
fn unknown_policy(
    object: &Object<Value>,
    name: &str,
    targets: &[TargetId],
) -> (Finding, Resemblance) {
    let message = format!("the policy `{name}` is not in the input");
    let place = object.place_of_field("spec.policyName");
    let mut finding = error(object, Rule::UnknownPolicy, &message, place);
    let (policies, others): (Vec<&TargetId>, Vec<&TargetId>) = targets
        .iter()
        .filter(|id| id.webhook.is_none())
        .partition(|id| id.kind() == SubjectKind::ValidatingAdmissionPolicy);
    let namesake = others.iter().find(|id| &*id.subject.name == name);
    let suggestion = nearest(name, policies.iter().map(|id| &*id.subject.name));
    finding.field_ref = Some("spec.policyName".to_owned());
    if let Some(id) = namesake {
        let kind = id.kind();
        finding.help = Some(format!(
            "it is a {kind}: replace policyName with `target: {{kind: {kind}, name: {name}}}`"
        ));
        return (finding, Resemblance::SameName);
    }
    suggest(finding, suggestion)
}

/// Adds the help for an unknown target.
fn suggest(mut finding: Finding, suggestion: Option<&str>) -> (Finding, Resemblance) {
    let (help, resemblance) = match suggestion {
        Some(suggestion) => (
            format!("did you mean `{suggestion}`?"),
            Resemblance::Similar,
        ),
        None => (
            "add the file that contains it".to_owned(),
            Resemblance::None,
        ),
    };
    finding.help = Some(help);
    (finding, resemblance)
}

/// Returns the finding for a probe of `target`, which is not one of the `targets` in the input.
fn unknown_target(
    object: &Object<Value>,
    target: &Target,
    id: &TargetId,
    targets: &[TargetId],
) -> (Finding, Resemblance) {
    let place = object.place_of_field("spec.target");
    let message = format!("the {target} is not in the input");
    let mut finding = error(object, Rule::UnknownPolicy, &message, place);
    let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
    let suggestion = nearest(&id.to_string(), names.iter().map(String::as_str));
    finding.field_ref = Some("spec.target".to_owned());
    suggest(finding, suggestion)
}

/// Adds findings for policies of `kind` with duplicate names, if probes test them.
pub(in crate::cli) fn duplicate_policies<'a>(
    probes: &[Probe],
    kind: SubjectKind,
    policies: impl Iterator<Item = &'a Object<RequestPolicy>>,
    findings: &mut Vec<Finding>,
) {
    let probed: HashSet<&TargetId> = probes.iter().map(|probe| &probe.id).collect();
    let mut names = HashSet::new();
    for policy in policies {
        let name = policy.name().unwrap_or_default();
        if !names.insert(name) && probed.contains(&TargetId::new(kind, name)) {
            let message = format!("the policy `{name}`, which has a probe, is defined twice");
            let mut finding = error(policy, Rule::DuplicateName, &message, policy.place());
            finding.help = Some("remove one of the definitions from the input".to_owned());
            findings.push(finding);
        }
    }
}

fn error<T>(object: &Object<T>, rule: Rule, message: &str, place: Place) -> Finding {
    object_finding(object, Severity::Error, rule, message, place)
}
