//! Differences grouped by what they come from, and the documented shape of `-o json`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::compare::{Cause, CauseKind, Effect};
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::exit::Exit;

/// The subjects that are named of a group.
const MAX_SUBJECTS: usize = 100;

/// The subjects that are named of those that could not be asked about.
const MAX_UNREAD: usize = 100;

/// Output of `kubectl vap diff -o json`.
///
/// The shape is stable: fields may be added, none is removed or changes its meaning while
/// `apiVersion` stays.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DiffReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `DiffReport`.
    pub kind: &'static str,
    /// The version of Kubernetes whose APIs are served, `1.36`.
    pub kubernetes: String,
    /// The address of the cluster, where one was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The counts.
    pub summary: Summary,
    /// Problems with the input, and what could not be read of a cluster.
    pub findings: Vec<Finding>,
    /// The policies that one version alone has.
    pub one_sided: Vec<OneSided>,
    /// The differences, by policy and cause.
    pub groups: Vec<Group>,
    /// The first of what could not be read or evaluated.
    pub unread: Vec<Unread>,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Policies, by name.
    pub policies: usize,
    /// Objects that both versions were asked about.
    pub objects: u64,
    /// Cases of probes.
    pub cases: u64,
    /// Subjects that a policy denies and did not.
    pub denied: u64,
    /// Subjects that a policy allows and did not.
    pub allowed: u64,
    /// Subjects with the same decision for other reasons or with other words.
    pub same: u64,
    /// Subjects that could not be read or evaluated.
    pub unread: u64,
    /// Findings that are errors.
    pub errors: usize,
}

/// A policy that one version alone has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OneSided {
    /// The name.
    pub policy: String,
    /// `old` or `new`.
    pub version: &'static str,
}

/// Differences of one cause.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Group {
    /// The policy.
    pub policy: String,
    /// Where the differences come from; of messages, those of the first subject.
    pub cause: Cause,
    /// How many subjects are denied that were not.
    pub denied: u64,
    /// How many are allowed that were not.
    pub allowed: u64,
    /// How many have the same decision.
    pub same: u64,
    /// The first of the subjects.
    pub subjects: Vec<Subject>,
}

/// Subject of a decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Subject {
    /// An object, `Deployment team/web`, or a case, `probe replicas, case many`.
    pub name: String,
    /// The file and line, where there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    /// The effect.
    pub effect: Effect,
}

/// Something that could not be read or evaluated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unread {
    /// Its name, with its place.
    pub name: String,
    /// The reason.
    pub reason: String,
}

/// Groups by policy and cause, while they are filled.
#[derive(Debug, Default)]
pub(super) struct Groups(BTreeMap<(String, CauseKind, [String; 4]), Group>);

impl Groups {
    /// Adds a difference.
    pub(super) fn add(
        &mut self,
        summary: &mut Summary,
        policy: &str,
        subject: (&str, Option<&str>),
        (effect, causes): (Effect, Vec<Cause>),
    ) {
        match effect {
            Effect::Denied => summary.denied += 1,
            Effect::Allowed => summary.allowed += 1,
            Effect::Same => summary.same += 1,
        }
        for cause in causes {
            let field = |field: &Option<String>| field.clone().unwrap_or_default();
            // Messages are as many as there are objects.
            let (old, new) = match cause.kind {
                CauseKind::Message | CauseKind::Failure => Default::default(),
                _ => (cause.old.clone(), cause.new.clone()),
            };
            let key = [field(&cause.new_field), field(&cause.old_field), old, new];
            let group = self.0.entry((policy.to_owned(), cause.kind, key));
            let group = group.or_insert_with(|| Group {
                policy: policy.to_owned(),
                cause,
                denied: 0,
                allowed: 0,
                same: 0,
                subjects: Vec::new(),
            });
            match effect {
                Effect::Denied => group.denied += 1,
                Effect::Allowed => group.allowed += 1,
                Effect::Same => group.same += 1,
            }
            if group.subjects.len() < MAX_SUBJECTS {
                group.subjects.push(Subject {
                    name: subject.0.to_owned(),
                    place: subject.1.map(str::to_owned),
                    effect,
                });
            }
        }
    }

    pub(super) fn into_vec(self) -> Vec<Group> {
        self.0.into_values().collect()
    }
}

impl DiffReport {
    /// Notes what could not be read or evaluated.
    pub(super) fn unread(&mut self, name: String, reason: &str) {
        self.summary.unread += 1;
        if self.unread.len() < MAX_UNREAD {
            self.unread.push(Unread {
                name,
                reason: reason.to_owned(),
            });
        }
    }

    /// Counts what is left.
    pub(super) fn finish(&mut self, groups: Groups) {
        self.groups = groups.into_vec();
        let is_error = |found: &&Finding| found.severity == Severity::Error;
        self.summary.errors = self.findings.iter().filter(is_error).count();
    }

    /// The exit status, as of diff(1).
    #[must_use]
    pub fn exit(&self) -> Exit {
        let summary = &self.summary;
        let is_empty = summary.policies == 0 || summary.objects + summary.cases == 0;
        if summary.errors > 0 || summary.unread > 0 || is_empty {
            Exit::WrongUse
        } else if self.groups.is_empty() {
            Exit::Clean
        } else {
            Exit::Findings
        }
    }
}
