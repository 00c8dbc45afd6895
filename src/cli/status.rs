//! `kubectl vap status`: shows the statuses that the controller has written, and evaluates policies that have no
//! current status.
//!
//! The cluster is read by `live` and `watch`, and the reports are shown by [`super::render`].

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::Value;

use super::args::{LeaseArgs, Output, StatusArgs};
use super::connection::{self, Connected, innermost, one_line};
use super::controller::{ControllerReport, LeaseFacts, LeaseState};
use super::error::CliError;
use super::exit::Exit;
use super::live::objects::{self, Listed};
use super::live::{self, Gap, Selection};
use super::names;
use super::opt_in::{self, ListError, ObjectFilter};
use super::plugin_status;
use super::render::{self, Parts};
use super::report::{PolicyReport, StatusReport};
use super::terminal::Terminal;
use super::watch::{Change, Watch, interrupted};
use crate::cluster::version;
use crate::policy::subject::SubjectKind;
use crate::status::exclusion::Exclusion;
use crate::status::lease;

/// The maximum time to wait for the Lease, which is optional information.
const MAX_LEASE_WAIT: Duration = Duration::from_secs(5);

/// Runs `kubectl vap status`.
///
/// # Errors
/// Returns an error if the arguments or the kubeconfig are invalid, the cluster cannot be read, or a policy does not
/// exist.
pub(super) fn run(
    args: &StatusArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let mut names = args.names.clone();
    let asked = SubjectKind::opt_in();
    let asked = asked
        .map(|kind| names::take_kind(&mut names, kind))
        .collect::<Result<Vec<_>, _>>()
        .map_err(CliError::Usage)?;
    let selection = Selection {
        names: names::parse(&names).map_err(CliError::Usage)?,
        selector: args.selector.clone(),
    };
    let selection = selection.checked()?;
    let scope = Scope::new(args, &selection, asked)?;
    let exit = connection::block_on(async {
        let connected = args.connection.connect().await?;
        let (report, exclusion, listed) =
            read_report(&connected, args, &selection, &scope, err).await?;
        let writer = ReportWriter { args, terminal };
        let mut is_open = writer.first(&report, scope.is_one(&selection), out, err)?;
        print_gaps(&report.gaps, err);
        if !args.watch {
            return Ok(report.exit());
        }
        let mut gaps = report.gaps;
        let policies = report.policies.into_iter();
        let mut shown: BTreeMap<String, PolicyReport> = policies
            .map(|policy| (policy.shown_name(), policy))
            .collect();
        let mut watch = Watch::new(&connected, &selection, &listed);
        let mut stop = std::pin::pin!(interrupted());
        while is_open {
            let changes = tokio::select! {
                changes = watch.next(err) => changes?,
                () = &mut stop => break,
            };
            let (updated, deleted) = split(changes);
            let mut report = report_on(&connected, args, updated, &exclusion).await?;
            print_gaps(&report.gaps, err);
            report
                .policies
                .retain(|policy| shown.get(&policy.shown_name()) != Some(policy));
            for policy in &report.policies {
                shown.insert(policy.shown_name(), policy.clone());
            }
            gaps = std::mem::take(&mut report.gaps);
            report.deleted = deleted;
            report.deleted.retain(|name| shown.remove(name).is_some());
            is_open = writer.change(&report, &shown, out)?;
        }
        let mut last = StatusReport::new(shown.into_values().collect());
        last.gaps = gaps;
        Ok(last.exit())
    })?;
    Ok(if args.exit_zero && exit == Exit::Findings {
        Exit::Clean
    } else {
        exit
    })
}

/// The requested kinds of policies.
#[derive(Debug)]
struct Scope {
    has_validating: bool,
    /// For each opt-in kind, the requested names: `None` if the kind is not requested, an empty list if all its objects
    /// are requested.
    asked: Vec<Option<Vec<String>>>,
    /// True to also show the objects of all opt-in kinds that the controller watches.
    includes_opt_in: bool,
}

impl Scope {
    fn new(
        args: &StatusArgs,
        selection: &Selection,
        asked: Vec<Option<Vec<String>>>,
    ) -> Result<Self, CliError> {
        let mut kinds = SubjectKind::opt_in().zip(&asked);
        let watched = kinds.find_map(|(kind, names)| names.as_ref().map(|_| kind));
        if let (Some(kind), true) = (watched, args.watch) {
            return Err(CliError::Usage(format!(
                "--watch is only available for ValidatingAdmissionPolicies; use `kubectl get {} --watch` for the others",
                opt_in::statuses(kind)
            )));
        }
        let has_names = asked.iter().flatten().any(|names| !names.is_empty());
        if has_names && selection.selector.is_some() {
            let message = "names and a selector cannot be combined";
            return Err(CliError::Usage(message.to_owned()));
        }
        Ok(Self {
            has_validating: watched.is_none() || !selection.names.is_empty(),
            includes_opt_in: watched.is_none() && selection.names.is_empty() && !args.watch,
            asked,
        })
    }

    fn filter<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> impl Iterator<Item = (SubjectKind, ObjectFilter<'a>)> {
        let selector = selection.selector.as_deref();
        let kinds = SubjectKind::opt_in().zip(&self.asked);
        kinds.filter_map(move |(kind, asked)| {
            let filter = match asked.as_deref() {
                Some([]) => ObjectFilter::All(selector),
                Some(names) => ObjectFilter::Named(names),
                None if self.includes_opt_in => ObjectFilter::OptedIn(selector),
                None => return None,
            };
            Some((kind, filter))
        })
    }

    /// Returns true if exactly one policy is requested.
    fn is_one(&self, selection: &Selection) -> bool {
        selection.names.len() + self.asked.iter().flatten().map(Vec::len).sum::<usize>() == 1
    }
}

/// Reads the requested policies. Returns the report on these policies, the policies that the controller excludes, and
/// the list from which a watch continues.
async fn read_report(
    connected: &Connected,
    args: &StatusArgs,
    selection: &Selection,
    scope: &Scope,
    err: &mut dyn Write,
) -> Result<(StatusReport, Exclusion, Listed), CliError> {
    let mut gaps = Vec::new();
    let policies = async {
        if scope.has_validating {
            live::policies(connected, selection, &mut gaps).await
        } else {
            Ok(Listed::default())
        }
    };
    let version = connected.within(version::read(&connected.client));
    let (policies, lease, version) = tokio::join!(policies, lease(connected, &args.lease), version);
    let policies = policies?;
    let controller = ControllerReport::new(&args.lease.to_string(), &lease, now());
    let exclusion = lease.exclusion();
    let mut report = report_on(connected, args, policies.items.clone(), &exclusion).await?;
    for (kind, filter) in scope.filter(selection) {
        match opt_in::policies(connected, kind, filter).await {
            Ok(found) => {
                report = report.with_opt_in_kind(kind, &found.policies, &exclusion);
                for name in found.missing {
                    let short = kind.row().aliases.first().copied().unwrap_or_default();
                    report.gaps.push(format!(
                        "the cluster has no {} `{name}`; `kubectl vap status {short}` lists all objects",
                        kind.as_str()
                    ));
                }
                if !found.has_statuses && !matches!(filter, ObjectFilter::OptedIn(_)) {
                    let statuses = opt_in::statuses(kind);
                    let _ = writeln!(
                        err,
                        "warning: the cluster does not serve {statuses}: without this CRD, the controller cannot write conditions"
                    );
                }
            }
            Err(ListError::Fatal(error)) => return Err(error),
            Err(ListError::Note(text)) => drop(writeln!(err, "warning: {text}")),
        }
    }
    report.controller = Some(controller);
    match version {
        Ok(info) => report.kubernetes_version = Some(info.git_version),
        Err(error) => {
            let _ = writeln!(
                err,
                "warning: the version of the cluster cannot be read: {error}"
            );
        }
    }
    report
        .gaps
        .splice(0..0, gaps.into_iter().map(|gap| gap_line(&gap)));
    Ok((report, exclusion, policies))
}

/// Returns the report on `policies`. The plugin evaluates policies without a current status, unless `--no-check` is
/// set.
async fn report_on(
    connected: &Connected,
    args: &StatusArgs,
    policies: Vec<Value>,
    exclusion: &Exclusion,
) -> Result<StatusReport, CliError> {
    let decoded: Vec<_> = policies
        .iter()
        .cloned()
        .map(decoded)
        .collect::<Result<_, _>>()?;
    let mut report = StatusReport::with_exclusion(&decoded, exclusion);
    let without_status: Vec<String> = report.without_current_status().map(str::to_owned).collect();
    if args.no_check || without_status.is_empty() {
        return Ok(report);
    }
    let mut policies = policies;
    policies.retain(|policy| {
        without_status
            .iter()
            .any(|name| name == objects::name(policy))
    });
    match plugin_status::compute(connected, policies.into_iter()).await {
        Ok((statuses, gaps)) => {
            let mut report = report.with_plugin_statuses(&statuses);
            let fatal = gaps.iter().filter(|gap| gap.is_fatal);
            report.gaps = fatal.map(gap_line).collect();
            Ok(report)
        }
        Err(error) => {
            report.gaps.push(format!(
                "policies without a status cannot be evaluated: {error}"
            ));
            Ok(report)
        }
    }
}

/// Formats a gap as one line: its message and its help.
fn gap_line(gap: &Gap) -> String {
    format!("{}; {}", gap.message, gap.help)
}

/// Prints each gap as an error. A gap is data that could not be read.
fn print_gaps(gaps: &[String], err: &mut dyn Write) {
    for gap in gaps {
        // If standard error is not writable, only the exit status reports the error.
        let _ = writeln!(err, "error: {gap}");
    }
}

/// Returns the updated policies, and the names of deleted policies.
fn split(changes: Vec<Change>) -> (Vec<Value>, Vec<String>) {
    let (mut updated, mut deleted) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::Updated(policy) => updated.push(policy),
            Change::Deleted(name) => deleted.push(name),
        }
    }
    (updated, deleted)
}

struct ReportWriter<'a> {
    args: &'a StatusArgs,
    terminal: Terminal,
}

impl ReportWriter<'_> {
    /// Writes the first report. Returns false if the pipe is closed.
    fn first(
        &self,
        report: &StatusReport,
        is_one: bool,
        out: &mut dyn Write,
        err: &mut dyn Write,
    ) -> Result<bool, CliError> {
        let is_wide = self.args.output == Output::Wide;
        let terminal = self.terminal;
        let is_one = is_one && !self.args.watch && !self.args.no_headers;
        let text = match (self.args.output, report.policies.as_slice()) {
            (Output::Json, _) => report.to_json()?,
            (Output::Yaml, _) => report.to_yaml()?,
            (Output::Name, _) => names_of(&report.policies),
            (Output::Table | Output::Wide, []) => {
                let _ = writeln!(err, "no ValidatingAdmissionPolicies found");
                return Ok(true);
            }
            (Output::Table | Output::Wide, [policy]) if is_one => {
                render::controller(report, terminal, is_wide)
                    + &render::details(policy, now(), terminal)
            }
            (Output::Table | Output::Wide, _) if self.args.no_headers => {
                render::parts(report, now(), terminal, is_wide, &Parts::Rows)
            }
            (Output::Table | Output::Wide, _) => {
                render::controller(report, terminal, is_wide)
                    + &render::table(report, now(), terminal, is_wide)
            }
        };
        super::output::write_open(out, &text)
    }

    /// Writes the changed policies of `report`. The columns are wide enough for all `known` policies. Returns false if
    /// the pipe is closed.
    fn change(
        &self,
        report: &StatusReport,
        known: &BTreeMap<String, PolicyReport>,
        out: &mut dyn Write,
    ) -> Result<bool, CliError> {
        if report.policies.is_empty() && report.deleted.is_empty() {
            return Ok(true);
        }
        let is_wide = self.args.output == Output::Wide;
        let text = match self.args.output {
            Output::Json => report.to_json()?,
            Output::Yaml => format!("---\n{}", report.to_yaml()?),
            Output::Name => names_of(&report.policies),
            Output::Table | Output::Wide => {
                let names = report.policies.iter().map(PolicyReport::shown_name);
                let names = names.collect();
                let parts = if self.args.no_headers {
                    Parts::ChangedRows(&names)
                } else {
                    Parts::Changes(&names)
                };
                let all = StatusReport::new(known.values().cloned().collect());
                let changed = render::parts(&all, now(), self.terminal, is_wide, &parts);
                changed + &render::deleted(&report.deleted)
            }
        };
        super::output::write_open(out, &text)
    }
}

/// Returns the names of policies as `RESOURCE.GROUP/NAME`, one per line, as `kubectl get -o name` does.
fn names_of(policies: &[PolicyReport]) -> String {
    let line = |policy: &PolicyReport| {
        let resource = policy.kind.to_ascii_lowercase();
        let kind = SubjectKind::from_kind(policy.kind);
        let group = kind.map_or("admissionregistration.k8s.io", |kind| kind.row().group);
        format!("{resource}.{group}/{}\n", policy.name)
    };
    policies.iter().map(line).collect()
}

/// Returns the current time, from which ages are computed.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

fn decoded(policy: Value) -> Result<ValidatingAdmissionPolicy, CliError> {
    let name = objects::name(&policy).to_owned();
    serde_json::from_value(policy).map_err(|error| CliError::Undecodable {
        name,
        reason: error.to_string(),
    })
}

/// Reads the controller's Lease. An error does not prevent the output of policies.
pub(super) async fn lease(connected: &Connected, args: &LeaseArgs) -> LeaseState {
    let leases: Api<Lease> = Api::namespaced(connected.client.clone(), &args.controller_namespace);
    let limit = MAX_LEASE_WAIT.min(connected.timeout);
    match tokio::time::timeout(limit, leases.get_opt(&args.lease_name)).await {
        Ok(Ok(Some(lease))) => {
            let annotations = lease.metadata.annotations.unwrap_or_default();
            let in_sync_at = annotations.get(lease::IN_SYNC_AT);
            let spec = lease.spec.unwrap_or_default();
            LeaseState::Lease(LeaseFacts {
                in_sync_at: in_sync_at.and_then(|text| text.parse().ok()),
                renewed_at: spec.renew_time.map(|time| time.0),
                is_held: spec
                    .holder_identity
                    .is_some_and(|holder| !holder.is_empty()),
                holds_for: i64::from(
                    spec.lease_duration_seconds
                        .unwrap_or(lease::DEFAULT_DURATION_SECONDS),
                ),
                exclusion: Exclusion::from_annotations(&annotations),
                version: annotations.get(lease::VERSION).cloned(),
            })
        }
        Ok(Ok(None)) => LeaseState::Missing,
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => LeaseState::Missing,
        Ok(Err(kube::Error::Api(status))) => LeaseState::Unreadable(one_line(&status.message)),
        Ok(Err(error)) => LeaseState::Unreadable(innermost(&error)),
        Err(_) => LeaseState::Unreadable(format!("no response within {} s", limit.as_secs())),
    }
}
