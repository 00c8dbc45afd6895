//! The results of all cases, and the documented format of `-o json`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;

use super::case_filter::NotSelected;
use super::cluster::Run;
use super::coverage::Coverage;
use super::mutants::MutantReport;
use super::probes::Probe;
use super::trace::{self, Trace, Traces, not_shown_line};
use crate::cli::check::finding::{Finding, Severity};
use crate::cli::check::webhook::field_of_webhook;
use crate::cli::exit::Exit;
use crate::cli::input::Object;
use crate::cli::unified;
use crate::policy::RequestPolicy;
use crate::policy::compile::CompiledPolicy;
use crate::probe::api::{CaseOutcome, Decision, Target};
use crate::probe::crd::outcome_schema;
use crate::probe::failing_annotations;
use crate::probe::mutation::patch;
use crate::probe::run::{self, CaseResult};
use crate::probe::target::TargetId;
use crate::schema::Crd;

/// Output of `kubectl vap test -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TestReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `TestReport`.
    pub kind: &'static str,
    /// The Kubernetes version that is emulated, such as `1.36`.
    pub kubernetes: String,
    /// The numbers of cases (by outcome), files, probes and errors.
    pub summary: Summary,
    /// Problems with the input, sorted by file and location. A probe that is invalid or whose policy is missing is not
    /// part of `probes`.
    pub findings: Vec<Finding>,
    /// The probes, in the order of the input.
    pub probes: Vec<ProbeReport>,
    /// The coverage of each policy, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coverage: Option<Vec<Coverage>>,
    /// The results of mutation testing, if requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mutants: Option<MutantReport>,
    /// The targets of probes for which coverage and mutants are not measured. Empty if neither was requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_measured: Vec<String>,
    /// The name of the first case that `--run` does not select, `PROBE/CASE`.
    #[serde(skip)]
    pub first_not_selected: Option<String>,
}

/// The numbers of cases (by outcome), files, probes and errors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Files read.
    pub files: usize,
    /// Probes run.
    pub probes: usize,
    /// Cases run.
    pub cases: usize,
    /// Cases that passed.
    pub passed: usize,
    /// Cases whose result differs from the expected result.
    pub failed: usize,
    /// Cases that could not be evaluated.
    pub pending: usize,
    /// Cases that `--run` does not select. They are not part of `cases`.
    pub not_selected: usize,
    /// Findings that are errors.
    pub errors: usize,
}

/// The results of the cases of a probe.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ProbeReport {
    /// `metadata.name`.
    pub name: String,
    /// The identity of the object that the probe tests.
    #[serde(skip)]
    pub id: TargetId,
    /// The name of the policy; absent if the probe has a target.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// The target, if the probe tests something other than a validating policy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target: Option<Target>,
    /// The path of the probe's file.
    pub file: String,
    /// The line of the probe's name in that file.
    pub line: usize,
    /// The reason why the API server rejects the policy or target, so that all cases fail.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection: Option<String>,
    /// The sum of the durations of the cases, in seconds, with `--durations`.
    #[serde(rename = "durationSeconds", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The cases, in the order of the spec. With `--failed-only`, only those that did not pass.
    pub cases: Vec<CaseReport>,
}

/// The result of a case.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CaseReport {
    /// The name of the case.
    pub name: String,
    /// `Passed`, `Failed`, or `Pending` if the case could not be evaluated.
    #[schemars(schema_with = "outcome_schema")]
    pub outcome: CaseOutcome,
    /// The duration of the case in seconds, with `--durations`.
    #[serde(rename = "durationSeconds", skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
    /// The line of the case's name, or of the case's row in a table.
    pub line: usize,
    /// The column in that line.
    pub column: usize,
    /// `Allow` or `Deny`; absent if the case could not be evaluated. If `decision` is absent, the following fields
    /// except `difference` are also absent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub decision: Option<&'static str>,
    /// The reason for the decision: the message of the policy, or a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// The difference from the expected result, or the reason why the case could not be evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub difference: Option<String>,
    /// The reason of a denial, which `expect.reason` is compared with. For errors of a custom resource, the distinct
    /// reasons, separated by commas.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The warnings to the client.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// The audit annotations, by their full keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub audit_annotations: BTreeMap<String, String>,
    /// The cost of the evaluation, in CEL cost units; the API server's limit is 10,000,000.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_used: Option<i64>,
    /// The errors of the policy, including those that failurePolicy `Ignore` ignores.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<String>,
    /// The object after the mutations of a mutating policy; absent if the request is denied.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub object: Option<Value>,
    /// The JSON patch from the object that a mutating policy receives to the mutated object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub patch: Option<Vec<Value>>,
    /// The change as a unified diff of YAML.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub change: Option<String>,
    /// The unified diff from the expected object to the mutated object, if they differ.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub diff: Option<String>,
    /// The violations of sample objects, with their locations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub invalid: Vec<InvalidField>,
    /// The expressions that determined the decision, with the values of their subexpressions. If no
    /// single expression determined the decision, because all validations were true, this contains all validations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub trace: Vec<Trace>,
    /// The other expressions that determined the decision and are not part of `trace`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub not_traced: Vec<String>,
}

#[derive(Clone, Copy)]
pub(super) struct ProbeSubject<'a> {
    /// The policy, or the policy that represents a webhook.
    pub(super) policy: Option<(&'a Object<RequestPolicy>, &'a CompiledPolicy)>,
    /// The index of the webhook in its configuration.
    pub(super) webhook: Option<usize>,
    pub(super) definition: Option<&'a Object<Crd>>,
    /// The reason why the API server rejects the subject, or `None` if the subject is accepted.
    pub(super) rejection: Option<&'a str>,
}

/// A violation of a sample object.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InvalidField {
    /// The field, such as `spec.cases[0].request.object.spec`.
    pub field: String,
    /// The message of the violation.
    pub message: String,
    /// The line of the field in the probe's file.
    pub line: usize,
    /// The column of the field.
    pub column: usize,
}

impl CaseReport {
    fn new(result: &CaseResult, probe: &Probe, n: usize, subject: ProbeSubject<'_>) -> Self {
        let status = &result.status;
        let outcome = result.outcome.as_ref();
        let place = probe.place_of_case(n);
        let mutated = result.mutated.as_deref();
        let after = mutated.and_then(|mutated| Some((mutated, mutated.after.as_ref()?)));
        let traces = match (subject.policy, subject.definition) {
            (Some((object, compiled)), _) => {
                let expect = probe.spec.cases.get(n).map(|case| &case.expect);
                let policy = object.name().unwrap_or_default();
                let annotations = outcome
                    .zip(expect)
                    .map(|(outcome, expect)| failing_annotations(expect, policy, outcome));
                let annotations = annotations.unwrap_or_default();
                trace::case_traces(result, &annotations, compiled, object)
            }
            (None, Some(definition)) => trace::rule_traces(result, definition),
            (None, None) => Traces::default(),
        };
        Self {
            object: after.map(|(_, after)| after.clone()),
            patch: after.map(|(mutated, after)| patch::between(&mutated.before, after)),
            change: after
                .map(|(of, after)| unified::from_objects(("before", "after"), &of.before, after))
                .filter(|change| !change.is_empty()),
            diff: after.and_then(|(of, after)| {
                let expected = of.expected.as_ref()?;
                Some(unified::from_objects(
                    ("expected", "after"),
                    expected,
                    after,
                ))
            }),
            name: status.name.clone(),
            outcome: status.outcome,
            seconds: None,
            line: place.line,
            column: place.column,
            decision: status.decision.map(Decision::as_str),
            explanation: outcome.map(|outcome| run::explain(probe.kind(), outcome)),
            difference: status.difference.clone(),
            reason: outcome
                .filter(|_| !probe.kind().is_webhooks())
                .and_then(|outcome| outcome.denial.as_ref())
                .map(|denial| denial.reason.clone()),
            warnings: outcome
                .map(|outcome| outcome.warnings.clone())
                .unwrap_or_default(),
            audit_annotations: outcome
                .map(|outcome| outcome.audit_annotations.clone())
                .unwrap_or_default(),
            cost_used: status.cost_used,
            errors: outcome
                .map(|outcome| outcome.errors.clone())
                .unwrap_or_default(),
            trace: traces.shown,
            not_traced: traces.left_out,
            invalid: result
                .invalid
                .iter()
                .map(|violation| {
                    let (field, place) = probe.place_of_violation(n, &violation.field_ref);
                    let advice = probe.object.advice_on_key(&field);
                    InvalidField {
                        field,
                        message: match advice {
                            Some(advice) => format!("{}; {advice}", violation.message),
                            None => violation.message.clone(),
                        },
                        line: place.line,
                        column: place.column,
                    }
                })
                .collect(),
        }
    }
}

impl CaseReport {
    /// Renders the expressions that determined the decision, with the values of their subexpressions. A line break
    /// precedes each line.
    pub(super) fn decisive_traces(&self) -> String {
        let mut text = String::new();
        for trace in self.trace.iter().filter(|trace| trace.decides) {
            let _ = write!(text, "\n{}", trace.head());
            for part in &trace.subexpressions {
                let indent = "  ".repeat(part.depth + 1);
                let _ = write!(text, "\n{indent}{} = {}", part.text, part.shown());
            }
            if let Some(more) = trace.more() {
                let _ = write!(text, "\n  {more}");
            }
            if let Some(changes) = &trace.changes {
                let _ = write!(text, "\n{}", changes.shown());
            }
        }
        if let Some(more) = not_shown_line(&self.not_traced) {
            let _ = write!(text, "\n{more}");
        }
        text
    }
}

impl TestReport {
    pub(super) fn new(kubernetes: &str, n_files: usize, findings: Vec<Finding>) -> Self {
        Self {
            api_version: "cli.vap-status.dev/v1alpha1",
            kind: "TestReport",
            kubernetes: kubernetes.to_owned(),
            summary: Summary {
                files: n_files,
                ..Summary::default()
            },
            findings,
            probes: Vec::new(),
            coverage: None,
            mutants: None,
            not_measured: Vec::new(),
            first_not_selected: None,
        }
    }

    pub(super) fn add(&mut self, probe: &Probe, run: &Run, subject: ProbeSubject<'_>) {
        let cases = run.results.iter().enumerate().map(|(n, result)| {
            let mut case = CaseReport::new(result, probe, n, subject);
            case.seconds = run.durations.get(n).map(Duration::as_secs_f64);
            if let Some(webhook) = subject.webhook {
                for trace in &mut case.trace {
                    trace.field_ref = field_of_webhook(webhook, &trace.field_ref);
                }
            }
            case
        });
        self.probes.push(ProbeReport {
            name: probe.name().to_owned(),
            id: probe.id.clone(),
            policy: probe.spec.policy_name.clone(),
            target: probe.spec.target.clone(),
            file: probe.object.source.name.clone(),
            line: probe.object.place().line,
            rejection: subject.rejection.map(str::to_owned),
            seconds: (!run.durations.is_empty())
                .then(|| run.durations.iter().sum::<Duration>().as_secs_f64()),
            cases: cases.collect(),
        });
    }

    /// Sorts the findings, and computes the counts.
    pub(super) fn finish(&mut self, not_selected: NotSelected) {
        self.findings.sort_by(|a, b| {
            let key = |found: &Finding| (found.location.place, found.severity, found.rule);
            (&a.location.file, key(a), &a.message).cmp(&(&b.location.file, key(b), &b.message))
        });
        let cases = || self.probes.iter().flat_map(|probe| &probe.cases);
        let count = |outcome| cases().filter(|case| case.outcome == outcome).count();
        let is_error = |found: &&Finding| found.severity == Severity::Error;
        self.summary = Summary {
            files: self.summary.files,
            probes: self.probes.len(),
            cases: cases().count(),
            passed: count(CaseOutcome::Passed),
            failed: count(CaseOutcome::Failed),
            pending: count(CaseOutcome::Pending),
            not_selected: not_selected.n,
            errors: self.findings.iter().filter(is_error).count(),
        };
        self.first_not_selected = not_selected.first;
    }

    /// Removes the cases that passed, then the probes that have no cases left. The counts in the summary do not change.
    pub fn retain_failed(&mut self) {
        for probe in &mut self.probes {
            let is_failed = |case: &CaseReport| case.outcome != CaseOutcome::Passed;
            probe.cases.retain(is_failed);
        }
        self.probes.retain(|probe| !probe.cases.is_empty());
    }

    /// Returns the exit status of the report. A run without cases is a failure, so that it is not mistaken for a
    /// successful run.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.summary.errors > 0 || self.summary.cases == 0 {
            Exit::Failed
        } else if self.summary.passed < self.summary.cases {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}
