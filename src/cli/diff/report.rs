//! Differences grouped by cause, and the documented format of `-o json`.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::compare::{Cause, CauseKind, Difference, Effect, Part};
use super::expressions::ChangedExpression;
use super::settings::Setting;
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::exit::Exit;
use crate::probe::target::TargetId;

/// The maximum number of subjects that a group lists.
const MAX_SUBJECTS: usize = 100;

/// The maximum number of subjects that are listed as not read or not evaluated.
const MAX_UNREAD: usize = 100;

/// Output of `kubectl vap diff -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `DiffReport`.
    pub kind: &'static str,
    /// The Kubernetes version whose APIs are served, such as `1.36`.
    pub kubernetes: String,
    /// The address of the API server, if a cluster was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The counts of policies, subjects and differences.
    pub summary: Summary,
    /// Problems with the input, and data of the cluster that could not be read.
    pub findings: Vec<Finding>,
    /// The policies that exist in only one version.
    pub one_sided: Vec<OneSided>,
    /// The policies that were not compared, because no request matches either version.
    pub unmatched: Vec<String>,
    /// The differences, by policy and cause.
    pub groups: Vec<Group>,
    /// The settings that differ, such as failurePolicy, even if no compared request shows an effect.
    pub settings: Vec<Setting>,
    /// The expressions that differ, with the same results for all compared requests. They do not change the exit status.
    pub expressions: Vec<ChangedExpression>,
    /// The first 100 subjects that could not be read or evaluated.
    pub unread: Vec<Unread>,
    /// The policies for which requests could not be generated or evaluated. They do not change the exit status.
    pub not_generated: Vec<Unread>,
}

/// The counts of policies, subjects and differences. A subject is an object, a case of a probe, or a generated request
/// whose difference no object and no case shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Policies that were compared; the two versions of a policy count once.
    pub policies: usize,
    /// Objects for which both versions were evaluated.
    pub objects: u64,
    /// Cases of probes.
    pub cases: u64,
    /// Generated requests for which both versions of a changed policy were evaluated.
    pub generated: u64,
    /// Subjects that a policy denies now and allowed before.
    pub denied: u64,
    /// Subjects that a policy allows now and denied before.
    pub allowed: u64,
    /// Subjects for which a policy's decision is unchanged, but its message, reason, warning, mutation or audit
    /// annotation differs.
    pub same: u64,
    /// Subjects that could not be read or evaluated.
    pub unread: u64,
    /// Findings that are errors.
    pub errors: usize,
}

/// A policy that exists in only one version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OneSided {
    /// The name of the policy.
    pub policy: String,
    /// `old` or `new`.
    pub version: &'static str,
}

/// The differences of a policy's decisions that have the same cause.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The name of the policy.
    pub policy: String,
    /// The cause, with the messages for the first subject.
    pub cause: Cause,
    /// The number of subjects that are denied now and were allowed before.
    pub denied: u64,
    /// The number of subjects that are allowed now and were denied before.
    pub allowed: u64,
    /// The number of subjects with the same decision.
    pub same: u64,
    /// The parts that differ for the subjects with the same decision.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub differs: BTreeSet<Part>,
    /// The first 100 subjects.
    pub subjects: Vec<Subject>,
}

/// A subject for which the decision or a message differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// An object such as `Deployment team/web`, or a case such as `probe replicas, case many`.
    pub name: String,
    /// The operation of the request for an object; absent for a case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operation: Option<&'static str>,
    /// The file and line, if known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The effect of the difference on the decision.
    pub effect: Effect,
    /// The generated request, in the format of a probe case. Absent if the subject is a case or an object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
    /// The values of the inputs that the expressions select, for a generated request.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<InputValue>,
}

/// An input of a generated request, such as `object.spec.replicas`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InputValue {
    /// The selected path, which begins with the name of the variable.
    pub path: String,
    /// The value; absent if the request does not have the field.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub value: Option<Value>,
}

/// A subject that could not be read or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// The name of the subject, with its file and line if known.
    pub name: String,
    /// The reason why the subject could not be read or evaluated.
    pub reason: String,
}

/// Collects groups by policy and cause.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<GroupKey, Group>);

type GroupKey = (TargetId, CauseKind, [String; 4]);

fn key(policy: &TargetId, cause: &Cause) -> GroupKey {
    let field = |field: &Option<String>| field.clone().unwrap_or_default();
    let [old, new] = key_values(cause);
    let values = [field(&cause.new_field), field(&cause.old_field), old, new];
    (policy.clone(), cause.kind, values)
}

/// Returns the old and new values that a cause contributes to the key by which causes are grouped.
fn key_values(cause: &Cause) -> [String; 2] {
    match (cause.kind, &cause.diff) {
        // Messages and annotation values can differ between objects, so they are not part of the key.
        (CauseKind::Message | CauseKind::Failure | CauseKind::AuditAnnotation, _) => {
            Default::default()
        }
        // Objects with the same changed lines are in one group.
        (CauseKind::Mutation, Some(diff)) => {
            let changed = diff
                .lines()
                .skip(2)
                .filter(|line| line.starts_with(['-', '+']));
            [changed.collect::<Vec<_>>().join("\n"), String::new()]
        }
        _ => [cause.old.clone(), cause.new.clone()],
    }
}

impl Groups {
    /// Adds a difference for a subject to the group of each of its causes.
    pub(super) fn add(
        &mut self,
        summary: &mut Summary,
        policy: &TargetId,
        subject: &Subject,
        difference: Difference,
    ) {
        let Difference {
            effect,
            parts,
            causes,
        } = difference;
        match effect {
            Effect::Denied => summary.denied += 1,
            Effect::Allowed => summary.allowed += 1,
            Effect::Same => summary.same += 1,
        }
        for cause in causes {
            let group = self.0.entry(key(policy, &cause));
            let group = group.or_insert_with(|| Group {
                policy: policy.to_string(),
                cause,
                denied: 0,
                allowed: 0,
                same: 0,
                differs: BTreeSet::new(),
                subjects: Vec::new(),
            });
            group.differs.extend(&parts);
            match effect {
                Effect::Denied => group.denied += 1,
                Effect::Allowed => group.allowed += 1,
                Effect::Same => group.same += 1,
            }
            if group.subjects.len() < MAX_SUBJECTS {
                group.subjects.push(subject.clone());
            }
        }
    }

    /// Returns true if a subject with this cause was added. All mutations of a policy count as one cause, because a
    /// mutation changes each object in another way.
    pub(super) fn contains_similar(&self, policy: &TargetId, cause: &Cause) -> bool {
        let is_mutation = |group: &Group| {
            group.cause.kind == CauseKind::Mutation && group.policy == policy.to_string()
        };
        self.0.contains_key(&key(policy, cause))
            || cause.kind == CauseKind::Mutation && self.0.values().any(is_mutation)
    }

    pub(super) fn into_vec(self) -> Vec<Group> {
        self.0.into_values().collect()
    }
}

impl DiffReport {
    /// Adds a subject that could not be read or evaluated.
    pub(super) fn unread(&mut self, name: String, reason: &str) {
        self.summary.unread += 1;
        if self.unread.len() < MAX_UNREAD {
            self.unread.push(Unread {
                name,
                reason: reason.to_owned(),
            });
        }
    }

    /// Adds the groups, and counts the errors.
    pub(super) fn finish(&mut self, groups: Groups) {
        self.groups = groups.into_vec();
        let is_error = |found: &&Finding| found.severity == Severity::Error;
        self.summary.errors = self.findings.iter().filter(is_error).count();
    }

    /// Returns the exit status, as in diff(1).
    #[must_use]
    pub fn exit(&self) -> Exit {
        let summary = &self.summary;
        let is_empty = self.unmatched.len() == summary.policies;
        let has_difference = !self.groups.is_empty() || !self.settings.is_empty();
        if summary.errors > 0 || summary.unread > 0 || (is_empty && !has_difference) {
            Exit::Failed
        } else if !has_difference {
            Exit::Clean
        } else {
            Exit::Findings
        }
    }
}
