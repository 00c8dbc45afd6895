//! `kubectl vap status`: what the controller has written of policies, and for the others what the plugin finds.
//!
//! Takes the arguments; asks the cluster by `live` and `watch`, and hands plain structs to [`super::render`].

use std::collections::BTreeMap;
use std::io::Write;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::Api;
use serde_json::Value;

use super::args::{Output, StatusArgs};
use super::changes::{Change, Watch, interrupted};
use super::connection::{self, Connected, innermost, one_line};
use super::controller::{ControllerReport, LeaseFacts, Seen};
use super::error::CliError;
use super::exit::Exit;
use super::judge;
use super::live::objects::{self, Listed};
use super::live::{self, Gap, Selection};
use super::mutating::{self, Trouble, Wanted};
use super::names;
use super::render::{self, Parts};
use super::report::{PolicyReport, StatusReport};
use super::terminal::Terminal;
use crate::policy::subject::SubjectKind;
use crate::status::exclusion::Exclusion;
use crate::status::lease;

/// The longest wait for the Lease, which is the lesser thing to know.
const MAX_LEASE_WAIT: Duration = Duration::from_secs(5);

/// Runs the command.
///
/// # Errors
/// Wrong use, no usable kubeconfig, no answer in time, an answer that refuses, or no such policy.
pub(super) fn run(
    args: &StatusArgs,
    terminal: Terminal,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> Result<Exit, CliError> {
    let mut names = args.names.clone();
    let asked = SubjectKind::opt_in();
    let asked = asked
        .map(|kind| names::take(&mut names, kind))
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
        let (report, exclusion, listed) = first(&connected, args, &selection, &scope, err).await?;
        let shown = Shown { args, terminal };
        let mut is_open = shown.first(&report, scope.is_one(&selection), out, err)?;
        tell(&report.gaps, err);
        if !args.watch {
            return Ok(report.exit());
        }
        let mut gaps = report.gaps;
        let policies = report.policies.into_iter();
        let mut known: BTreeMap<String, PolicyReport> = policies
            .map(|policy| (policy.shown_name(), policy))
            .collect();
        let mut watch = Watch::new(&connected, &selection, &listed);
        let mut stop = std::pin::pin!(interrupted());
        while is_open {
            let changes = tokio::select! {
                changes = watch.next(err) => changes?,
                () = &mut stop => break,
            };
            let (put, deleted) = split(changes);
            let mut report = judged(&connected, args, put, &exclusion).await?;
            tell(&report.gaps, err);
            report
                .policies
                .retain(|policy| known.get(&policy.shown_name()) != Some(policy));
            for policy in &report.policies {
                known.insert(policy.shown_name(), policy.clone());
            }
            gaps = std::mem::take(&mut report.gaps);
            report.deleted = deleted;
            report.deleted.retain(|name| known.remove(name).is_some());
            is_open = shown.change(&report, &known, out)?;
        }
        let mut last = StatusReport::new(known.into_values().collect());
        last.gaps = gaps;
        Ok(last.exit())
    })?;
    Ok(if args.exit_zero && exit == Exit::Findings {
        Exit::Clean
    } else {
        exit
    })
}

/// Which kinds of policies are asked for.
#[derive(Debug)]
struct Scope {
    has_validating: bool,
    /// The names of objects of each of the other kinds, or their type alone.
    asked: Vec<Option<Vec<String>>>,
    /// True if these are shown where the controller follows them.
    has_followed: bool,
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
                "--watch shows changes of ValidatingAdmissionPolicies; `kubectl get {} --watch` those of the others",
                mutating::statuses(kind)
            )));
        }
        let has_names = asked.iter().flatten().any(|names| !names.is_empty());
        if has_names && selection.selector.is_some() {
            let what = "names and a selector do not go together";
            return Err(CliError::Usage(what.to_owned()));
        }
        Ok(Self {
            has_validating: watched.is_none() || !selection.names.is_empty(),
            has_followed: watched.is_none() && selection.names.is_empty() && !args.watch,
            asked,
        })
    }

    fn wanted<'a>(
        &'a self,
        selection: &'a Selection,
    ) -> impl Iterator<Item = (SubjectKind, Wanted<'a>)> {
        let selector = selection.selector.as_deref();
        let kinds = SubjectKind::opt_in().zip(&self.asked);
        kinds.filter_map(move |(kind, asked)| {
            let wanted = match asked.as_deref() {
                Some([]) => Wanted::All(selector),
                Some(names) => Wanted::Named(names),
                None if self.has_followed => Wanted::Followed(selector),
                None => return None,
            };
            Some((kind, wanted))
        })
    }

    /// Reports whether one policy is asked for, and no more.
    fn is_one(&self, selection: &Selection) -> bool {
        selection.names.len() + self.asked.iter().flatten().map(Vec::len).sum::<usize>() == 1
    }
}

/// The policies that are asked for as they are now, which the controller leaves alone, and where a watch begins.
async fn first(
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
    let (policies, lease) = tokio::join!(policies, lease(connected, args));
    let policies = policies?;
    let controller = ControllerReport::of(&args.lease(), &lease, now());
    let exclusion = lease.exclusion();
    let mut report = judged(connected, args, policies.items.clone(), &exclusion).await?;
    for (kind, wanted) in scope.wanted(selection) {
        match mutating::policies(connected, kind, wanted).await {
            Ok(found) => {
                report = report.with_mutating(kind, &found.policies, &exclusion);
                for name in found.missing {
                    let short = kind.row().aliases.first().copied().unwrap_or_default();
                    report.gaps.push(format!(
                        "the cluster has no {} `{name}`; `kubectl vap status {short}` lists all",
                        kind.as_str()
                    ));
                }
                if !found.has_statuses && !matches!(wanted, Wanted::Followed(_)) {
                    let statuses = mutating::statuses(kind);
                    let _ = writeln!(
                        err,
                        "warning: the cluster has no {statuses}: without their CRD the controller writes no conditions"
                    );
                }
            }
            Err(Trouble::Fatal(error)) => return Err(error),
            Err(Trouble::Note(text)) => drop(writeln!(err, "warning: {text}")),
        }
    }
    report.controller = Some(controller);
    report
        .gaps
        .splice(0..0, gaps.into_iter().map(|gap| said(&gap)));
    Ok((report, exclusion, policies))
}

/// The report about `policies`; those that the controller has not judged are judged here, unless the arguments say
/// otherwise.
async fn judged(
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
    let mut report = StatusReport::beside(&decoded, exclusion);
    let unjudged: Vec<String> = report.unjudged().map(str::to_owned).collect();
    if args.no_check || unjudged.is_empty() {
        return Ok(report);
    }
    let mut policies = policies;
    policies.retain(|policy| unjudged.iter().any(|name| name == objects::name(policy)));
    match judge::judge(connected, policies.into_iter()).await {
        Ok((judged, gaps)) => {
            let mut report = report.judged(&judged);
            let fatal = gaps.iter().filter(|gap| gap.is_fatal);
            report.gaps = fatal.map(said).collect();
            Ok(report)
        }
        Err(error) => {
            report.gaps.push(format!(
                "policies without a status cannot be judged: {error}"
            ));
            Ok(report)
        }
    }
}

/// A gap in one line.
fn said(gap: &Gap) -> String {
    format!("{}; {}", gap.message, gap.help)
}

/// Complains of what could not be read.
fn tell(gaps: &[String], err: &mut dyn Write) {
    for gap in gaps {
        // With standard error gone as well, the exit status alone must tell.
        let _ = writeln!(err, "error: {gap}");
    }
}

/// The changed policies, and the names of those that are gone.
fn split(changes: Vec<Change>) -> (Vec<Value>, Vec<String>) {
    let (mut put, mut gone) = (Vec::new(), Vec::new());
    for change in changes {
        match change {
            Change::Put(policy) => put.push(policy),
            Change::Gone(name) => gone.push(name),
        }
    }
    (put, gone)
}

/// The way that reports are shown.
struct Shown<'a> {
    args: &'a StatusArgs,
    terminal: Terminal,
}

impl Shown<'_> {
    /// Writes the first report; the answer is false where nobody reads any more.
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
        super::write_open(out, &text)
    }

    /// Writes what has changed, in the columns of all that is `known`; the answer is false where nobody reads any
    /// more.
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
        super::write_open(out, &text)
    }
}

/// The present moment, against which ages are told.
#[must_use]
pub fn now() -> Timestamp {
    Timestamp::now()
}

/// A policy out of JSON.
fn decoded(policy: Value) -> Result<ValidatingAdmissionPolicy, CliError> {
    let name = objects::name(&policy).to_owned();
    serde_json::from_value(policy).map_err(|error| CliError::Undecodable {
        name,
        reason: error.to_string(),
    })
}

/// Reads the controller's Lease. A failure here is no reason not to show the policies.
async fn lease(connected: &Connected, args: &StatusArgs) -> Seen {
    let leases: Api<Lease> = Api::namespaced(connected.client.clone(), &args.controller_namespace);
    let limit = MAX_LEASE_WAIT.min(connected.timeout);
    match tokio::time::timeout(limit, leases.get_opt(&args.lease_name)).await {
        Ok(Ok(Some(lease))) => {
            let annotations = lease.metadata.annotations.unwrap_or_default();
            let in_sync_at = annotations.get(lease::IN_SYNC_AT);
            let spec = lease.spec.unwrap_or_default();
            Seen::Lease(LeaseFacts {
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
            })
        }
        Ok(Ok(None)) => Seen::Missing,
        Ok(Err(kube::Error::Api(status))) if status.code == 404 => Seen::Missing,
        Ok(Err(kube::Error::Api(status))) => Seen::Unreadable(one_line(&status.message)),
        Ok(Err(error)) => Seen::Unreadable(innermost(&error)),
        Err(_) => Seen::Unreadable(format!("no answer within {} s", limit.as_secs())),
    }
}
