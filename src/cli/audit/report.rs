//! The counts of an audit, and the documented formats of `-o json` and `-o jsonl`.
//!
//! The size of a report does not depend on the number of objects: it contains only counts and a few examples.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::assumptions::Assumption;
use super::decide::{ObjectId, ObjectResult, PolicyResult};
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::exit::Exit;

/// The maximum number of examples for each validation.
const MAX_EXAMPLES: usize = 5;

/// The maximum number of messages that are listed for each validation.
const MAX_MESSAGES: usize = 5;

/// The maximum number of unread objects that are listed.
const MAX_UNREAD: usize = 100;

/// The maximum number of failures that are listed for a policy.
const MAX_FAILURES: usize = 20;

/// The summary of an audit: the content of `-o json` without `objects`, and the last line of `-o jsonl`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `AuditReport`.
    pub kind: &'static str,
    /// The Kubernetes version whose APIs are served, such as `1.36`.
    pub kubernetes: String,
    /// The address of the cluster, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The number of objects by result, and of evaluations.
    pub summary: Summary,
    /// Problems with the input, and data of the cluster that could not be read.
    pub findings: Vec<Finding>,
    /// True if the files contain no objects to audit: only policies, bindings, probes, CustomResourceDefinitions, params
    /// and namespaces, and no policy matches one of them.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub no_objects: bool,
    /// The listed resources of a cluster, with the number of objects.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceReport>,
    /// The policies, in the order of the input.
    pub policies: Vec<PolicyAudit>,
    /// The first objects that could not be read or evaluated, each with the reason.
    pub unread: Vec<Unread>,
}

/// The number of objects by result, and of evaluations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// All objects, including those that could not be read.
    pub objects: u64,
    /// Audited objects: all except `unread`.
    pub audited: u64,
    /// Objects that a policy matches.
    pub matched: u64,
    /// Evaluations: pairs of a policy and an object that it matches.
    pub evaluations: u64,
    /// Objects for which a validation is not true.
    pub violating: u64,
    /// Objects that the API server would deny because of a validation or an error.
    pub denied: u64,
    /// Objects for which the evaluation of a policy fails.
    pub failing: u64,
    /// Objects that a mutating policy would change.
    #[serde(skip_serializing_if = "is_zero")]
    pub changed: u64,
    /// Objects that could not be read, or not evaluated by all policies that match them.
    pub unread: u64,
    /// Findings that are errors.
    pub errors: usize,
}

/// A resource of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReport {
    /// The group and version, such as `apps/v1`.
    pub api_version: String,
    /// The resource, such as `deployments`.
    pub resource: String,
    /// The number of objects that were listed.
    pub objects: u64,
}

/// The results of a policy: counts, and the first objects with violations.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAudit {
    /// The name of the policy.
    pub name: String,
    /// `MutatingAdmissionPolicy`; absent for a validating one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The file, or `validatingadmissionpolicy/NAME` in a cluster.
    pub file: String,
    /// The line of the policy's name in that file.
    pub line: usize,
    /// True if no binding of the policy is known. The policy is then evaluated with an implied binding that matches all
    /// requests.
    pub is_binding_implied: bool,
    /// The reason why the API server rejects the policy, which is then not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejected: Option<String>,
    /// The reason why the policy is evaluated for no object: its rules match only other operations, or only subresources.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_audited: Option<String>,
    /// The assumed values of request data that stored objects lack.
    pub assumed: Vec<Assumption>,
    /// Objects that the policy matches.
    pub matched: u64,
    /// Objects that a match condition excludes. They are also counted in `matched`.
    pub excluded: u64,
    /// Objects for which a validation is not true.
    pub violating: u64,
    /// Objects that the API server would deny because of this policy.
    pub denied: u64,
    /// Objects for which the evaluation fails.
    pub failing: u64,
    /// Objects that the policy matches, but for which its decision is unknown. The other counts do not include them.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided: u64,
    /// Objects that a mutating policy would change.
    #[serde(skip_serializing_if = "is_zero")]
    pub changed: u64,
    /// The first objects that would change, with the changes.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The validations that are not true for some object, one entry for each field.
    pub validations: Vec<Tally>,
    /// The evaluations that fail, one entry for each field.
    pub failures: Vec<Tally>,
}

impl PolicyAudit {
    /// Counts the violations and errors of an object. A validation that is false for several params counts once.
    fn add_tallies(&mut self, result: &PolicyResult, id: &ObjectId) {
        let mut violated: BTreeMap<&str, (Vec<&str>, BTreeSet<&String>)> = BTreeMap::new();
        for violation in &result.violations {
            let (messages, actions) = violated.entry(&violation.field_ref).or_default();
            messages.push(&violation.message);
            actions.extend(&violation.validation_actions);
        }
        for (field, (messages, actions)) in violated {
            let tally = tally(&mut self.validations, field, &messages, id);
            tally
                .validation_actions
                .extend(actions.into_iter().cloned());
        }
        let mut failed: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        for failure in &result.errors {
            let messages = failed.entry(&failure.field_ref).or_default();
            messages.push(&failure.message);
        }
        for (field, messages) in failed {
            let is_known = self.failures.iter().any(|it| it.field_ref == field);
            if is_known || self.failures.len() < MAX_FAILURES {
                tally(&mut self.failures, field, &messages, id);
            }
        }
    }

    /// Returns true if the policy is evaluated for the objects that it matches.
    pub(super) fn is_evaluated(&self) -> bool {
        self.rejected.is_none() && self.not_audited.is_none()
    }
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde requires"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The change of an object by a mutating policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The changed object.
    #[serde(flatten)]
    pub id: ObjectId,
    /// The change as a unified diff of YAML.
    pub change: String,
}

/// The number of objects with the same violation or failure, with examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// The field, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The number of objects with the violation or failure.
    pub objects: u64,
    /// The message for the first object.
    pub message: String,
    /// The first distinct messages.
    pub messages: Vec<MessageTally>,
    /// The number of objects with a message that is not listed.
    #[serde(skip_serializing_if = "is_zero")]
    pub other_messages: u64,
    /// The actions of the violated bindings.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub validation_actions: BTreeSet<String>,
    /// The first of these objects.
    pub examples: Vec<ObjectId>,
}

/// The number of objects with the same message.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MessageTally {
    /// The message.
    pub message: String,
    /// The number of objects with the message.
    pub objects: u64,
    /// The first of these objects.
    pub example: ObjectId,
}

impl Tally {
    /// Counts the distinct messages of an object.
    fn add_messages(&mut self, messages: &BTreeSet<&str>, id: &ObjectId) {
        let mut has_other = false;
        for &message in messages {
            if let Some(known) = self.messages.iter_mut().find(|it| it.message == message) {
                known.objects += 1;
            } else if self.messages.len() < MAX_MESSAGES {
                self.messages.push(MessageTally {
                    message: message.to_owned(),
                    objects: 1,
                    example: id.clone(),
                });
            } else {
                has_other = true;
            }
        }
        self.other_messages += u64::from(has_other);
    }
}

/// An object that could not be read or evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct Unread {
    /// The object, as far as it is known.
    #[serde(flatten)]
    pub id: ObjectId,
    /// The reason why the object could not be read or evaluated.
    pub reason: String,
}

/// An object with a result: an element of `objects`.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ObjectReport<'a> {
    #[serde(flatten)]
    id: &'a ObjectId,
    /// The reason why the object could not be read or evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<&'a str>,
    /// The results with violations, errors, changes, or an unknown decision.
    results: Vec<&'a PolicyResult>,
}

impl<'a> ObjectReport<'a> {
    /// Creates the report of an object, or returns `None` if there is nothing to report.
    pub(in crate::cli) fn new(object: &'a ObjectResult) -> Option<Self> {
        let (unread, results) = match &object.results {
            Err(why) => (Some(why.as_str()), Vec::new()),
            Ok(results) => {
                let has_result = |it: &&PolicyResult| {
                    !it.violations.is_empty()
                        || !it.errors.is_empty()
                        || it.patch.is_some()
                        || it.undecided.is_some()
                };
                (None, results.iter().filter(has_result).collect())
            }
        };
        (unread.is_some() || !results.is_empty()).then_some(Self {
            id: &object.id,
            unread,
            results,
        })
    }
}

impl Summary {
    /// Returns true if a policy denies, changes, or fails for an object.
    fn has_results(&self) -> bool {
        self.violating > 0 || self.denied > 0 || self.failing > 0 || self.changed > 0
    }
}

impl AuditReport {
    fn add_unread(&mut self, id: &ObjectId, reason: String) {
        self.summary.unread += 1;
        if self.unread.len() < MAX_UNREAD {
            let id = id.clone();
            self.unread.push(Unread { id, reason });
        }
    }

    pub(in crate::cli) fn add(&mut self, object: &ObjectResult) {
        let summary = &mut self.summary;
        summary.objects += 1;
        let results = match &object.results {
            Ok(results) => results,
            Err(reason) => {
                self.add_unread(&object.id, reason.clone());
                return;
            }
        };
        let count = |is: bool| u64::from(is);
        let mut reasons = Vec::new();
        for result in results {
            if let Some(why) = &result.undecided {
                reasons.push(format!("not evaluated by {}: {why}", result.policy));
                if let Some(policy) = self.policies.get_mut(result.index) {
                    policy.undecided += 1;
                }
            }
        }
        let summary = &mut self.summary;
        if reasons.is_empty() {
            summary.audited += 1;
        } else {
            self.add_unread(&object.id, reasons.join("; "));
        }
        let is_decided = |result: &&PolicyResult| result.undecided.is_none();
        let results: Vec<&PolicyResult> = results.iter().filter(is_decided).collect();
        let summary = &mut self.summary;
        let n = u64::try_from(results.len()).unwrap_or(u64::MAX);
        summary.evaluations = summary.evaluations.saturating_add(n);
        summary.matched += count(!results.is_empty());
        summary.violating += count(results.iter().any(|it| !it.violations.is_empty()));
        summary.denied += count(results.iter().any(|it| it.denied));
        summary.failing += count(results.iter().any(|it| !it.errors.is_empty()));
        summary.changed += count(results.iter().any(|it| it.patch.is_some()));
        for result in results {
            let Some(policy) = self.policies.get_mut(result.index) else {
                continue;
            };
            policy.matched += 1;
            policy.excluded += count(result.excluded_by.is_some());
            policy.violating += count(!result.violations.is_empty());
            policy.denied += count(result.denied);
            policy.failing += count(!result.errors.is_empty());
            if let Some(change) = &result.change {
                policy.changed += 1;
                if policy.changes.len() < MAX_EXAMPLES {
                    policy.changes.push(Change {
                        id: object.id.clone(),
                        change: change.clone(),
                    });
                }
            }
            policy.add_tallies(result, &object.id);
        }
    }

    /// Sorts the tallies, and counts the errors.
    pub(in crate::cli) fn finish(&mut self) {
        let is_error = |found: &&Finding| found.severity == Severity::Error;
        self.summary.errors = self.findings.iter().filter(is_error).count();
        for policy in &mut self.policies {
            policy
                .validations
                .sort_by_cached_key(|it| (first_index(&it.field_ref), it.field_ref.clone()));
            policy
                .failures
                .sort_by_cached_key(|it| (first_index(&it.field_ref), it.field_ref.clone()));
        }
    }

    /// Returns the exit status: 2 for an incomplete audit, even if there are violations. If `is_zero` is true,
    /// violations do not change the exit status.
    #[must_use]
    pub fn exit(&self, is_zero: bool) -> Exit {
        let is_rejected = self.policies.iter().any(|policy| policy.rejected.is_some());
        let is_empty = self.policies.iter().all(|policy| !policy.is_evaluated());
        let summary = &self.summary;
        let is_empty = is_empty || self.no_objects;
        if summary.errors > 0 || summary.unread > 0 || is_rejected || is_empty {
            Exit::Failed
        } else if !is_zero && summary.has_results() {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}

/// Returns the first index in a field such as `spec.validations[0].expression`, for sorting.
fn first_index(field: &str) -> usize {
    let digits = field.split(['[', ']']).nth(1);
    digits
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}

/// Adds an object with its messages to the tally of a field, and returns the tally.
fn tally<'a>(
    tallies: &'a mut Vec<Tally>,
    field: &str,
    messages: &[&str],
    id: &ObjectId,
) -> &'a mut Tally {
    let n = tallies.iter().position(|tally| tally.field_ref == field);
    let n = n.unwrap_or_else(|| {
        tallies.push(Tally {
            field_ref: field.to_owned(),
            objects: 0,
            message: messages.first().copied().unwrap_or_default().to_owned(),
            messages: Vec::new(),
            other_messages: 0,
            validation_actions: BTreeSet::new(),
            examples: Vec::new(),
        });
        tallies.len() - 1
    });
    #[expect(
        clippy::indexing_slicing,
        reason = "the index of an element that was found or added"
    )]
    let tally = &mut tallies[n];
    tally.objects += 1;
    tally.add_messages(&messages.iter().copied().collect(), id);
    if tally.examples.len() < MAX_EXAMPLES {
        tally.examples.push(id.clone());
    }
    tally
}
