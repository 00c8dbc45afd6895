//! The probes of the input: read by the rules of their CRD, and held against the policies there are.

use std::collections::HashSet;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::Value;

use crate::cli::check::finding::{Finding, Severity};
use crate::cli::check::policy::object_finding;
use crate::cli::input::{Object, Place};
use crate::policy::nearest::nearest;
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::probe::api::{PolicyProbeSpec, Target};
use crate::probe::validation::{Validator, Violation};

use super::expand::{self, Expanded, Origin};
use super::target;

/// A probe that can be run.
#[derive(Debug)]
pub(in crate::cli) struct Probe {
    /// As it is written.
    pub(in crate::cli) object: Arc<Object<Value>>,
    /// For each case where it is written.
    pub(in crate::cli) origins: Vec<Origin>,
    /// Spec of the probe; the policy is one that stands for the target, where it has one.
    pub(in crate::cli) spec: PolicyProbeSpec,
    /// The object that it is about, if that is no validating policy.
    pub(in crate::cli) target: Option<Target>,
}

impl Probe {
    /// The name.
    pub(in crate::cli) fn name(&self) -> &str {
        self.object.name().unwrap_or_default()
    }

    /// Returns the kind of the subject.
    pub(in crate::cli) fn kind(&self) -> SubjectKind {
        let of_target = self.target.as_ref().and_then(target::kind_of);
        of_target.unwrap_or_default()
    }

    /// Where the name of a case is written, or of its row where it is one of a table.
    pub(in crate::cli) fn place_of_case(&self, n: usize) -> Place {
        let field = origin_of(&self.origins, n).field();
        self.object.place_of_field(&format!("{field}.name"))
    }

    /// The field of a fault in the case at `n`, and where it is written.
    pub(in crate::cli) fn place_of_violation(&self, n: usize, field: &str) -> (String, Place) {
        if field.starts_with("spec.") {
            return (field.to_owned(), self.object.place_of_field(field));
        }
        written_field(&self.object, origin_of(&self.origins, n), field)
    }
}

/// The origin of a case of a probe that has `origins`.
fn origin_of(origins: &[Origin], n: usize) -> Origin {
    let itself = Origin { case: n, row: None };
    origins.get(n).copied().unwrap_or(itself)
}

/// The field as which `field` of a case is written, and its place: in a row of a table, or else in the case; the row
/// where neither has it.
fn written_field(object: &Object<Value>, origin: Origin, field: &str) -> (String, Place) {
    let of_case = format!("{}.{field}", origin.case_field());
    if origin.row.is_none() {
        let place = object.place_of_field(&of_case);
        return (of_case, place);
    }
    let row = origin.field();
    let of_row = match field.strip_prefix("request.object.") {
        Some(rest) => format!("{row}.patch.{rest}"),
        None => format!("{row}.{field}"),
    };
    let other = format!("{row}.{field}");
    let mut written = [&of_row, &other, &of_case].into_iter();
    let written = written.find(|field| has_field(&object.value, field));
    let place = object.place_of_field(written.unwrap_or(&row));
    (written.unwrap_or(&of_case).clone(), place)
}

/// Reports whether a value has a field, whose names have no dots.
fn has_field(value: &Value, field: &str) -> bool {
    let mut steps = field
        .split(['.', '['])
        .map(|step| step.trim_end_matches(']'));
    let found = steps.try_fold(value, |value, step| match value {
        Value::Array(items) => items.get(step.parse::<usize>().ok()?),
        value => value.get(step),
    });
    found.is_some()
}

/// The probes that can be run; what is wrong with the others goes to `findings`. Those of targets are left out where
/// `targets`, the keys of what is among the input, are not given.
///
/// # Errors
/// If the CRD of this build is broken.
pub(in crate::cli) fn read(
    objects: Vec<Object<Value>>,
    policies: &[String],
    targets: Option<&[String]>,
    findings: &mut Vec<Finding>,
) -> Result<Vec<Probe>, String> {
    if objects.is_empty() {
        return Ok(Vec::new());
    }
    let validator = Validator::new()?;
    let mut names = HashSet::new();
    let mut probes = Vec::new();
    for object in objects {
        let taken = target::take(&object.value);
        if matches!(taken, Ok(Some(_))) && targets.is_none() {
            continue;
        }
        let expanded = taken.and_then(|taken| {
            let (value, target) = taken.unzip();
            let value = value.as_ref().unwrap_or(&object.value);
            Ok((expand::expand(value, &object.source.name)?, target))
        });
        let (expanded, target) = match expanded {
            Ok(expanded) => expanded,
            Err(violations) => {
                findings.extend(violations.into_iter().map(|it| invalid(&object, &[], it)));
                continue;
            }
        };
        let mut read = Vec::new();
        for Expanded { probe, origins } in expanded {
            let checked = validator.read(&probe).and_then(|mut spec| {
                if let Some(target) = &target {
                    let unfit = target::disallowed_expectations(&spec, target);
                    if !unfit.is_empty() {
                        return Err(unfit);
                    }
                    spec.policy_name = target.key();
                }
                Ok(spec)
            });
            match checked {
                Ok(spec) => read.push((spec, origins)),
                Err(violations) => {
                    let found = violations.into_iter();
                    findings.extend(found.map(|it| invalid(&object, &origins, it)));
                    read.clear();
                    break;
                }
            }
        }
        if read.is_empty() {
            continue;
        }
        let object = Arc::new(object);
        let name = object.name().unwrap_or_default();
        if !names.insert(name.to_owned()) {
            let message = format!("the probe `{name}` is given twice");
            findings.push(error(
                &object,
                Rule::DuplicateName,
                &message,
                object.place(),
            ));
            continue;
        }
        for (spec, origins) in read {
            let unknown = match &target {
                None => unknown_policy(&object, &spec, (policies, targets.unwrap_or_default())),
                Some(target) => unknown_target(&object, target, targets.unwrap_or_default()),
            };
            if let Some(found) = unknown {
                findings.push(found);
                continue;
            }
            let object = Arc::clone(&object);
            let target = target.clone();
            probes.push(Probe {
                object,
                origins,
                spec,
                target,
            });
        }
    }
    Ok(probes)
}

/// The fault of a field, of a case as it is written.
fn invalid(object: &Object<Value>, origins: &[Origin], violation: Violation) -> Finding {
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
    let mut found = error(object, Rule::InvalidProbe, &message, place);
    found.help = object.advice_on_key(&field_ref);
    found.field_ref = Some(field_ref);
    found
}

/// Fault of a probe whose policy is not there.
fn unknown_policy(
    object: &Object<Value>,
    spec: &PolicyProbeSpec,
    (policies, targets): (&[String], &[String]),
) -> Option<Finding> {
    if !policies.contains(&spec.policy_name) {
        let message = format!("the policy `{}` is not among the input", spec.policy_name);
        let place = object.place_of_field("spec.policyName");
        let mut found = error(object, Rule::UnknownPolicy, &message, place);
        let meant = nearest(&spec.policy_name, policies.iter().map(String::as_str));
        let mut keys = targets.iter().filter_map(|key| key.split_once('/'));
        let target = keys.find(|(_, name)| *name == spec.policy_name);
        found.help = Some(match (target, meant) {
            (Some((kind, name)), _) => format!(
                "it is a {kind}: write `target: {{kind: {kind}, name: {name}}}` in the place of policyName"
            ),
            (None, Some(meant)) => format!("did you mean `{meant}`?"),
            (None, None) => "name the file that it is in as well".to_owned(),
        });
        found.field_ref = Some("spec.policyName".to_owned());
        return Some(found);
    }
    None
}

/// Fault of a probe whose target is not there.
fn unknown_target(object: &Object<Value>, target: &Target, targets: &[String]) -> Option<Finding> {
    let key = target.key();
    if targets.contains(&key) {
        return None;
    }
    let place = object.place_of_field("spec.target");
    let message = format!("the {target} is not among the input");
    let mut found = error(object, Rule::UnknownPolicy, &message, place);
    let meant = nearest(&key, targets.iter().map(String::as_str));
    found.help = Some(match meant {
        Some(meant) => format!("did you mean `{meant}`?"),
        None => "name the file that it is in as well".to_owned(),
    });
    found.field_ref = Some("spec.target".to_owned());
    Some(found)
}

/// Policies of one name, one of which a probe would have to be about; `key` makes of a name that of the policy in
/// probes.
pub(in crate::cli) fn duplicate_policies<'a>(
    probes: &[Probe],
    policies: impl Iterator<Item = &'a Object<ValidatingAdmissionPolicy>>,
    key: fn(&str) -> String,
    findings: &mut Vec<Finding>,
) {
    let probed: HashSet<&str> = probes
        .iter()
        .map(|probe| probe.spec.policy_name.as_str())
        .collect();
    let mut names = HashSet::new();
    for policy in policies {
        let name = policy.name().unwrap_or_default();
        if !names.insert(name) && probed.contains(key(name).as_str()) {
            let message = format!("the policy `{name}` is given twice, and a probe is about it");
            let mut found = error(policy, Rule::DuplicateName, &message, policy.place());
            found.help = Some("name the files of one of them".to_owned());
            findings.push(found);
        }
    }
}

fn error<T>(object: &Object<T>, rule: Rule, message: &str, place: Place) -> Finding {
    object_finding(object, Severity::Error, rule, message, place)
}
