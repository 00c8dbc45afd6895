//! Counts of an audit, and the documented shapes of `-o json` and `-o jsonl`.
//!
//! Nothing here grows with the number of objects: of each thing counts are kept, and a few examples.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::decide::{Judged, ObjectId, PolicyResult};
use super::unknown::Unknown;
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::exit::Exit;

/// The objects that are named for each validation.
const MAX_EXAMPLES: usize = 5;

/// The objects that are named of those that cannot be read.
const MAX_UNREAD: usize = 100;

/// The most failures of a policy that are told apart.
const MAX_FAILURES: usize = 20;

/// The summary of an audit: what `-o json` holds beside `objects`, and the last line of `-o jsonl`.
///
/// The shape is stable: fields may be added, none is removed or changes its meaning while
/// `apiVersion` stays.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `AuditReport`.
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
    /// The resources of a cluster that were listed, with the objects there were.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub resources: Vec<ResourceReport>,
    /// The policies, in the order of the input.
    pub policies: Vec<PolicyAudit>,
    /// The first of the objects that could not be read or evaluated, with the reason.
    pub unread: Vec<Unread>,
}

/// The counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Objects that there were.
    pub objects: u64,
    /// Those that were audited: all but `unread`.
    pub audited: u64,
    /// Objects that some policy was asked about.
    pub matched: u64,
    /// Evaluations: a policy and an object that it matches.
    pub evaluations: u64,
    /// Objects of which a validation is not true.
    pub violating: u64,
    /// Objects that the API server would refuse, by a validation or an error.
    pub denied: u64,
    /// Objects for which the evaluation of a policy fails.
    pub failing: u64,
    /// Objects that a mutating policy would change.
    #[serde(skip_serializing_if = "is_zero")]
    pub changed: u64,
    /// Objects that could not be read, or not be evaluated by every policy that matches them.
    pub unread: u64,
    /// Findings that are errors.
    pub errors: usize,
}

/// A resource of a cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceReport {
    /// The group and version, `apps/v1`.
    pub api_version: String,
    /// The resource, `deployments`.
    pub resource: String,
    /// How many objects were read of it.
    pub objects: u64,
}

/// Counts of a policy.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyAudit {
    /// The name.
    pub name: String,
    /// `MutatingAdmissionPolicy`; absent for a validating one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// The file, or `validatingadmissionpolicy/NAME` in a cluster.
    pub file: String,
    /// The line of its name.
    pub line: usize,
    /// True if no binding is known and one that denies and matches all stands in its place.
    pub is_binding_implied: bool,
    /// Why the API server refuses the policy, if it does: then it is not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub refused: Option<String>,
    /// Facts that admission would know and that are assumed here.
    pub assumed: Vec<Unknown>,
    /// Objects that it is asked about.
    pub matched: u64,
    /// Those of them that a match condition leaves out.
    pub excluded: u64,
    /// Those of which a validation is not true.
    pub violating: u64,
    /// Those that the API server would refuse because of it.
    pub denied: u64,
    /// Those for which its evaluation fails.
    pub failing: u64,
    /// Objects that it matches and of which it is not known what it decides; they are in no other count.
    #[serde(skip_serializing_if = "is_zero")]
    pub undecided: u64,
    /// Those that a mutating policy would change.
    #[serde(skip_serializing_if = "is_zero")]
    pub changed: u64,
    /// The first of them, with the change.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub changes: Vec<Change>,
    /// The validations that are not true for some object, by their fields.
    pub validations: Vec<Tally>,
    /// The evaluations that fail, by field.
    pub failures: Vec<Tally>,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// The change of an object by a mutating policy.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Change {
    /// The object.
    #[serde(flatten)]
    pub id: ObjectId,
    /// The change as a unified diff of YAML.
    pub change: String,
}

/// How often something is the case, with examples.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tally {
    /// The field, `spec.validations[0].expression`.
    pub field_ref: String,
    /// Objects.
    pub objects: u64,
    /// The message of the first.
    pub message: String,
    /// The actions of the bindings under which it is so.
    #[serde(skip_serializing_if = "BTreeSet::is_empty")]
    pub validation_actions: BTreeSet<String>,
    /// The first objects.
    pub examples: Vec<ObjectId>,
}

/// An object that could not be read or evaluated.
#[derive(Clone, Debug, Serialize)]
pub struct Unread {
    /// Which one, as far as that is known.
    #[serde(flatten)]
    pub id: ObjectId,
    /// The reason.
    pub reason: String,
}

/// An object of which something is to be said: an element of `objects`.
#[derive(Debug, Serialize)]
pub(in crate::cli) struct ObjectReport<'a> {
    #[serde(flatten)]
    id: &'a ObjectId,
    /// Why it could not be read or evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    unread: Option<&'a str>,
    /// Results of the policies that do not allow it without a word.
    results: Vec<&'a PolicyResult>,
}

impl<'a> ObjectReport<'a> {
    /// The report on an object; nothing where all is well.
    pub(in crate::cli) fn new(judged: &'a Judged) -> Option<Self> {
        let (unread, results) = match &judged.results {
            Err(why) => (Some(why.as_str()), Vec::new()),
            Ok(results) => {
                let is_told = |it: &&PolicyResult| {
                    !it.violations.is_empty()
                        || !it.errors.is_empty()
                        || it.patch.is_some()
                        || it.undecided.is_some()
                };
                (None, results.iter().filter(is_told).collect())
            }
        };
        (unread.is_some() || !results.is_empty()).then_some(Self {
            id: &judged.id,
            unread,
            results,
        })
    }
}

impl Summary {
    /// Reports whether policies say something of the objects.
    fn is_of_note(&self) -> bool {
        self.violating > 0 || self.denied > 0 || self.failing > 0 || self.changed > 0
    }
}

impl AuditReport {
    /// Notes an object that could not be read or evaluated.
    fn add_unread(&mut self, id: &ObjectId, reason: String) {
        self.summary.unread += 1;
        if self.unread.len() < MAX_UNREAD {
            let id = id.clone();
            self.unread.push(Unread { id, reason });
        }
    }

    /// Counts an object.
    pub(in crate::cli) fn add(&mut self, judged: &Judged) {
        let summary = &mut self.summary;
        summary.objects += 1;
        let results = match &judged.results {
            Ok(results) => results,
            Err(reason) => {
                self.add_unread(&judged.id, reason.clone());
                return;
            }
        };
        let count = |is: bool| u64::from(is);
        let mut reasons = Vec::new();
        for result in results {
            if let Some(why) = &result.undecided {
                reasons.push(format!("not by {}: {why}", result.policy));
                if let Some(policy) = self.policies.get_mut(result.index) {
                    policy.undecided += 1;
                }
            }
        }
        let summary = &mut self.summary;
        if reasons.is_empty() {
            summary.audited += 1;
        } else {
            self.add_unread(&judged.id, reasons.join("; "));
        }
        let decided = |result: &&PolicyResult| result.undecided.is_none();
        let results: Vec<&PolicyResult> = results.iter().filter(decided).collect();
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
                        id: judged.id.clone(),
                        change: change.clone(),
                    });
                }
            }
            // A validation that is false for several params is so for one object.
            let mut seen: BTreeMap<&str, (&str, BTreeSet<&String>)> = BTreeMap::new();
            for violation in &result.violations {
                let entry = seen.entry(&violation.field_ref);
                let (_, actions) = entry.or_insert((&violation.message, BTreeSet::new()));
                actions.extend(&violation.validation_actions);
            }
            for (field, (message, actions)) in seen {
                let tally = tally(&mut policy.validations, field, message, &judged.id);
                tally
                    .validation_actions
                    .extend(actions.into_iter().cloned());
            }
            let mut fields = BTreeSet::new();
            for failure in &result.errors {
                let is_known = policy
                    .failures
                    .iter()
                    .any(|it| it.field_ref == failure.field_ref);
                let has_room = is_known || policy.failures.len() < MAX_FAILURES;
                if has_room && fields.insert(&failure.field_ref) {
                    tally(
                        &mut policy.failures,
                        &failure.field_ref,
                        &failure.message,
                        &judged.id,
                    );
                }
            }
        }
    }

    /// Sorts, and counts what is left.
    pub(in crate::cli) fn finish(&mut self) {
        let is_error = |found: &&Finding| found.severity == Severity::Error;
        self.summary.errors = self.findings.iter().filter(is_error).count();
        for policy in &mut self.policies {
            policy
                .validations
                .sort_by_cached_key(|it| (index_of(&it.field_ref), it.field_ref.clone()));
            policy
                .failures
                .sort_by_cached_key(|it| (index_of(&it.field_ref), it.field_ref.clone()));
        }
    }

    /// The exit status: what is not whole is wrong use, whatever else was found.
    #[must_use]
    pub fn exit(&self, is_zero: bool) -> Exit {
        let is_refused = self.policies.iter().any(|policy| policy.refused.is_some());
        let summary = &self.summary;
        if summary.errors > 0 || summary.unread > 0 || is_refused || self.policies.is_empty() {
            Exit::WrongUse
        } else if !is_zero && summary.is_of_note() {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}

/// The first number of a field, by which fields are sorted.
fn index_of(field: &str) -> usize {
    let digits = field.split(['[', ']']).nth(1);
    digits
        .and_then(|digits| digits.parse().ok())
        .unwrap_or_default()
}

/// Counts an object for a field.
fn tally<'a>(
    tallies: &'a mut Vec<Tally>,
    field: &str,
    message: &str,
    id: &ObjectId,
) -> &'a mut Tally {
    let n = tallies.iter().position(|tally| tally.field_ref == field);
    let n = n.unwrap_or_else(|| {
        tallies.push(Tally {
            field_ref: field.to_owned(),
            objects: 0,
            message: message.to_owned(),
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
    if tally.examples.len() < MAX_EXAMPLES {
        tally.examples.push(id.clone());
    }
    tally
}
