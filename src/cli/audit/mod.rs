//! `kubectl vap audit`: evaluates policies for existing objects, in a cluster or in files.
//!
//! Objects are read page by page or one by one, evaluated on several threads, and dropped. Only counts and a few
//! examples are kept, so memory does not depend on the number of objects.

pub mod args;
mod assumptions;
mod decide;
mod files;
mod plan;
mod policy_report;
pub mod render;
pub mod report;
mod sarif;

pub(super) use decide::{Auditor, Item, ObjectResult, Operations, policy_result};
pub use decide::{Failure, ObjectId, PolicyResult, Violation};
pub(super) use files::read as read_files;
pub(super) use plan::Walk;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::PathBuf;

use serde_json::Value;

use super::error::CliError;
use super::eval::policy_set::{PolicySet, PreparedPolicy};
use super::eval::setup::{Setup, Sources};
use super::output::{json, write_open};
use super::text::with_escapes;
use super::{parallel, terminal};
use crate::policy::RequestPolicy;
use crate::policy::admission::Namespace;
use args::{AuditArgs, AuditOutput};
use assumptions::AuditContext;
use policy_report::ReportApi;
use report::{AuditReport, ObjectReport, PolicyAudit, Summary};

/// The start of a list of reports, which `kubectl apply` accepts.
const LIST_HEAD: &str = "{\"apiVersion\": \"v1\", \"kind\": \"List\", \"items\": [\n";

/// The number of objects per batch. A batch is evaluated on several threads.
const BATCH: usize = 512;

/// Audits the objects that the arguments select. Writes the output in all formats except text, which the caller renders
/// from the report.
///
/// # Errors
/// Returns an error if the arguments conflict, the cluster cannot be reached, or the output cannot be written.
pub(super) fn run(
    args: &AuditArgs,
    stdin: &mut dyn Read,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<AuditReport, CliError> {
    let sources = Sources {
        paths: &args.paths,
        crds: &args.crds,
        selector: args.selector.as_ref(),
        version: args.version.kubernetes_version,
        live: args.cluster.live,
        connection: &args.connection,
    };
    let is_stdin = |path: &PathBuf| path.as_os_str() == "-";
    let n_stdin = args
        .paths
        .iter()
        .chain(&args.files)
        .filter(|path| is_stdin(path))
        .count();
    let mut setup = Setup::read(&sources, &BTreeSet::new(), stdin)?;
    let is_live = setup.server.is_some();
    let shares_files = args.files.is_empty() && !is_live;
    if n_stdin > 1 || (shares_files && n_stdin > 0) {
        let message =
            "standard input can contain either policies or objects; pass the others as files";
        return Err(CliError::Usage(message.to_owned()));
    }
    let mut findings = std::mem::take(&mut setup.findings);
    let mut policy_set = PolicySet::new(
        &setup.input,
        &setup.known,
        setup.cluster_inputs.as_ref(),
        &mut findings,
    );
    policy_set.limit = args.timeout.limit();
    let paths = if shares_files {
        &args.paths
    } else {
        &args.files
    };
    let cluster_inputs = setup.cluster_inputs.as_ref();
    let has_namespaces =
        cluster_inputs.is_some_and(|cluster_inputs| !cluster_inputs.namespaces.is_empty());
    if !has_namespaces && !shares_files {
        add_namespaces(paths, &mut policy_set);
    }
    let context = AuditContext {
        user: args.user.name(),
        operation: args.operation,
        has_namespaces,
    };
    let report = AuditReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "AuditReport",
        kubernetes: setup.known.kubernetes().to_owned(),
        cluster: setup.server.clone(),
        summary: Summary::default(),
        findings,
        no_objects: false,
        resources: Vec::new(),
        policies: policy_audits(&policy_set, context),
        unread: Vec::new(),
    };
    let mut sink = Sink::new(args.output, report, out, err);
    let is_of_cluster = is_live && args.files.is_empty();
    let user = args.user.user_info();
    let operations = Operations::for_stored_objects(args.operation);
    let auditor = Auditor::new(&policy_set, operations, user, is_of_cluster);
    if is_of_cluster {
        let walk = Walk {
            connection: &args.connection,
            mapper: &setup.known.mapper,
            policies: accepted(&policy_set).collect(),
            chunk_size: args.pages.chunk_size,
        };
        let (resources, gaps) = walk.run(&mut |items, policies| {
            let results = parallel::map(&items, |item| auditor.evaluate(item, policies));
            sink.add(&results)
        })?;
        sink.report.resources = resources;
        sink.report.findings.extend(gaps);
    } else {
        let has_objects = audit_files(paths, stdin, &auditor, &mut sink, shares_files)?;
        sink.report.no_objects = !has_objects && sink.report.summary.matched == 0;
    }
    sink.finish()
}

/// Returns a report for each policy, with all counts at zero.
fn policy_audits(policy_set: &PolicySet<'_>, context: AuditContext<'_>) -> Vec<PolicyAudit> {
    let policy_audit = |policy: &PreparedPolicy<'_>| PolicyAudit {
        name: policy.name.to_owned(),
        kind: policy
            .mutating
            .is_some()
            .then_some("MutatingAdmissionPolicy"),
        file: policy.object.source.name.clone(),
        line: policy.object.place().line,
        is_binding_implied: policy.is_unbound,
        rejected: policy.rejection.clone(),
        not_audited: assumptions::not_audited(policy, context.operation),
        assumed: assumptions::for_policy(policy, policy_set, context),
        matched: 0,
        excluded: 0,
        violating: 0,
        denied: 0,
        failing: 0,
        undecided: 0,
        changed: 0,
        changes: Vec::new(),
        validations: Vec::new(),
        failures: Vec::new(),
    };
    policy_set.policies.iter().map(policy_audit).collect()
}

/// Audits the objects of files. If `shares_files` is true, the policies are in the same files, and unreadable files
/// have already been reported. Returns false if the files contain only inputs of policies.
fn audit_files(
    paths: &[PathBuf],
    stdin: &mut dyn Read,
    auditor: &Auditor<'_>,
    sink: &mut Sink<'_>,
    shares_files: bool,
) -> Result<bool, CliError> {
    let all: Vec<usize> = (0..sink.report.policies.len()).collect();
    let mut has_objects = false;
    let mut batch = Vec::new();
    let mut flush = |batch: &mut Vec<Item>| {
        let results = parallel::map(batch, |item| auditor.evaluate(item, &all));
        batch.clear();
        sink.add(&results)
    };
    let mut failed = None;
    read_files(paths, stdin, &mut |item| {
        if failed.is_some() || (shares_files && item.is_file) {
            return;
        }
        has_objects |= !auditor.is_input(&item);
        batch.push(item);
        if batch.len() >= BATCH {
            failed = flush(&mut batch).err();
        }
    });
    match failed {
        Some(error) => Err(error),
        None => flush(&mut batch).map(|()| has_objects),
    }
}

/// Returns the policies that the API server does not reject, with their indices.
fn accepted<'a>(policy_set: &'a PolicySet<'_>) -> impl Iterator<Item = (usize, &'a RequestPolicy)> {
    let policies = policy_set.policies.iter().enumerate();
    let policies = policies.filter(|(_, policy)| policy.rejection.is_none());
    policies.map(|(n, policy)| (n, &policy.object.value))
}

/// Adds the Namespace objects in `paths` to the policy set, if a policy depends on data of namespaces, such as their
/// labels.
pub(super) fn add_namespaces(paths: &[PathBuf], policy_set: &mut PolicySet<'_>) {
    let is_needed = policy_set.policies.iter().any(|policy| {
        policy.has_namespace_selector()
            || policy
                .reads
                .contains(&super::eval::facts::RequestFact::NamespaceObject)
    });
    let paths: Vec<PathBuf> = paths
        .iter()
        .filter(|path| path.as_os_str() != "-")
        .cloned()
        .collect();
    if !is_needed {
        return;
    }
    read_files(&paths, &mut std::io::empty(), &mut |item| {
        let text = |value: &Value, field| {
            let text = value.get(field).and_then(Value::as_str);
            text.unwrap_or_default().to_owned()
        };
        if let Ok(value) = &item.value
            && text(value, "kind") == "Namespace"
            && text(value, "apiVersion") == "v1"
        {
            let namespace = Namespace::new(value);
            policy_set
                .namespaces
                .insert(namespace.name().to_owned(), namespace);
        }
    });
}

/// Collects the counts, and writes the results while objects are read.
struct Sink<'a> {
    report: AuditReport,
    output: AuditOutput,
    out: &'a mut dyn Write,
    err: &'a mut dyn Write,
    is_open: bool,
    n_written: u64,
    sarif: sarif::Results,
    shows_progress: bool,
}

impl<'a> Sink<'a> {
    fn new(
        output: AuditOutput,
        report: AuditReport,
        out: &'a mut dyn Write,
        err: &'a mut dyn Write,
    ) -> Self {
        Self {
            report,
            output,
            out,
            err,
            is_open: true,
            n_written: 0,
            sarif: sarif::Results::default(),
            shows_progress: terminal::is_stderr_terminal(),
        }
    }

    fn add(&mut self, results: &[ObjectResult]) -> Result<(), CliError> {
        let mut text = String::new();
        for results in results {
            self.report.add(results);
            let line = match self.output {
                AuditOutput::Text => Ok(None),
                AuditOutput::Json | AuditOutput::Jsonl => ObjectReport::new(results)
                    .map(|object| serde_json::to_string(&object))
                    .transpose(),
                AuditOutput::Policyreport => policy_report(results, ReportApi::PolicyReport),
                AuditOutput::Openreports => policy_report(results, ReportApi::OpenReports),
                AuditOutput::Sarif => {
                    self.sarif.add(results);
                    Ok(None)
                }
            };
            let Some(line) = line.map_err(format_error)? else {
                continue;
            };
            match self.output {
                AuditOutput::Jsonl => {}
                _ if self.n_written > 0 => text.push_str(",\n"),
                AuditOutput::Json => text.push_str("{\"objects\": [\n"),
                _ => text.push_str(LIST_HEAD),
            }
            self.n_written += 1;
            text.push_str(&with_escapes(line));
            if self.output == AuditOutput::Jsonl {
                text.push('\n');
            }
        }
        self.write(&text)?;
        if self.shows_progress && !results.is_empty() {
            let n = self.report.summary.objects;
            // Errors while writing the progress are ignored.
            let _ = write!(self.err, "\r{n} objects read").and_then(|()| self.err.flush());
        }
        Ok(())
    }

    fn write(&mut self, text: &str) -> Result<(), CliError> {
        if self.is_open && !text.is_empty() {
            self.is_open = write_open(self.out, text)?;
        }
        Ok(())
    }

    /// Completes the output and returns the report, which contains the counts. With `-o json`, the report follows the
    /// objects. With `-o jsonl`, the report is the last line.
    fn finish(mut self) -> Result<AuditReport, CliError> {
        if self.shows_progress {
            let _ = write!(self.err, "\r\u{1b}[K").and_then(|()| self.err.flush());
        }
        self.report.finish();
        let text = match self.output {
            AuditOutput::Text => String::new(),
            AuditOutput::Json => {
                let head = if self.n_written == 0 {
                    "{\"objects\": [],"
                } else {
                    "\n],"
                };
                let rest = json(&self.report)?;
                format!("{head}{}", rest.strip_prefix('{').unwrap_or_default())
            }
            AuditOutput::Jsonl => {
                let line = serde_json::to_string(&self.report).map_err(format_error)?;
                with_escapes(line) + "\n"
            }
            AuditOutput::Policyreport | AuditOutput::Openreports => {
                let head = if self.n_written == 0 { LIST_HEAD } else { "\n" };
                format!("{head}]}}\n")
            }
            AuditOutput::Sarif => json(&std::mem::take(&mut self.sarif).document(&self.report))?,
        };
        self.write(&text)?;
        if !matches!(
            self.output,
            AuditOutput::Text | AuditOutput::Json | AuditOutput::Jsonl
        ) {
            // If standard error is not writable, only the exit status reports the problems.
            let _ = self
                .err
                .write_all(render::problems(&self.report).as_bytes());
        }
        Ok(self.report)
    }
}

/// Returns the line with the report of an object, if a policy matches it.
fn policy_report(
    results: &ObjectResult,
    api: ReportApi,
) -> Result<Option<String>, serde_json::Error> {
    let report = policy_report::report(results, api);
    report.map(|it| serde_json::to_string(&it)).transpose()
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn format_error(error: serde_json::Error) -> CliError {
    CliError::Format {
        format: "json",
        reason: error.to_string(),
    }
}
