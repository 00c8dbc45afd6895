//! `kubectl vap upgrade-check`: compares the decisions of policies under two Kubernetes versions, and the policies that
//! both versions accept.

pub mod args;
pub mod render;
pub mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;

use super::check::finding::Finding;
use super::diff::report::Group;
use super::diff::{self, CauseKind, Requests};
use super::error::CliError;
use super::eval::policy_set::PolicySet;
use super::eval::setup::{Setup, Sources};
use args::UpgradeArgs;
use report::{Change, Class, UpgradeReport};

/// Compares the policies of the input under both versions.
///
/// # Errors
/// Returns an error if `--from` is missing without a cluster, or if the cluster cannot be reached.
pub(super) fn run(args: &UpgradeArgs, stdin: &mut dyn Read) -> Result<UpgradeReport, CliError> {
    if args.paths.iter().any(|path| path.as_os_str() == "-") {
        let message =
            "standard input can only be used for objects, with `-f -`; pass policies as files";
        return Err(CliError::Usage(message.to_owned()));
    }
    let mut sources = Sources {
        paths: &args.paths,
        crds: &args.crds,
        selector: None,
        version: args.from,
        live: args.live,
        connection: &args.connection,
    };
    let old = Setup::read(&sources, &BTreeSet::new(), stdin)?;
    if args.from.is_none() && old.server.is_none() {
        let message =
            "the version before the upgrade is unknown: pass --from VERSION, or use a cluster";
        return Err(CliError::Usage(message.to_owned()));
    }
    sources.version = Some(args.to);
    let new = Setup::read(&sources, &BTreeSet::new(), stdin)?;
    let (from, to) = (old.known.version(), new.known.version());
    let mut changes = accepted_changes(&old, &new);
    let requests = Requests {
        inputs: args.paths.clone(),
        files: &args.files,
        user: &args.user,
        limit: args.timeout.limit(),
        connection: &args.connection,
        chunk_size: args.chunk_size,
        evaluates_stored: true,
    };
    let diff = diff::compare_setups(old, new, &requests, stdin)?;
    let groups = diff.groups.into_iter();
    // Policies that one API server rejects are in `changes`.
    let groups = groups.filter(|group| group.cause.kind != CauseKind::Policy);
    changes.extend(groups.map(change));
    changes.retain(|change| args.text || change.class != Class::Text);
    changes.sort_by(|a, b| {
        let key = |it: &Change| (it.class, it.policy.clone(), it.field.clone());
        key(a).cmp(&key(b))
    });
    Ok(UpgradeReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "UpgradeReport",
        from: from.to_string(),
        to: to.to_string(),
        schemas: diff.kubernetes,
        policies: diff.summary.policies,
        requests: diff.summary.objects + diff.summary.cases,
        changes,
        unread: diff.unread,
        findings: diff.findings,
    })
}

/// The errors for which an API server rejects policies, by policy and field.
type Rejections = BTreeMap<(String, String), String>;

fn rejections(setup: &Setup) -> Rejections {
    let mut findings: Vec<Finding> = Vec::new();
    PolicySet::new(
        &setup.input,
        &setup.known,
        setup.cluster_inputs.as_ref(),
        &mut findings,
    );
    let rejected = findings.into_iter().filter(|finding| finding.rejected);
    let by_field = rejected.map(|finding| {
        let policy = finding.owner.name().unwrap_or_default().to_owned();
        (
            (policy, finding.field_ref.unwrap_or_default()),
            finding.message,
        )
    });
    by_field.collect()
}

/// Returns the errors for which only one of the two API servers rejects a policy.
fn accepted_changes(old: &Setup, new: &Setup) -> Vec<Change> {
    let (old, new) = (rejections(old), rejections(new));
    let only = |these: &Rejections, others: &Rejections, class: Class| -> Vec<Change> {
        let (from, to) = match class {
            Class::Refused => ("accepted", "rejected"),
            _ => ("rejected", "accepted"),
        };
        let these = these.iter().filter(|(key, _)| !others.contains_key(*key));
        let changes = these.map(|((policy, field), message)| Change {
            class,
            policy: policy.clone(),
            field: Some(field.clone()).filter(|field| !field.is_empty()),
            from: from.to_owned(),
            to: to.to_owned(),
            reason: Some(message.clone()),
            source: "check",
            subjects: Vec::new(),
        });
        changes.collect()
    };
    let mut changes = only(&new, &old, Class::Refused);
    changes.extend(only(&old, &new, Class::Taken));
    changes
}

fn change(group: Group) -> Change {
    let cause = group.cause;
    let class = if group.denied > 0 {
        Class::Denies
    } else if group.allowed > 0 {
        Class::Admits
    } else if cause.kind == CauseKind::Message {
        Class::Text
    } else if cause.new == "error" || cause.kind == CauseKind::Failure && cause.old == "none" {
        Class::Errors
    } else {
        Class::Result
    };
    Change {
        class,
        policy: group.policy,
        field: cause.new_field.or(cause.old_field),
        from: cause.old,
        to: cause.new,
        reason: None,
        source: "evaluation",
        subjects: group.subjects,
    }
}
