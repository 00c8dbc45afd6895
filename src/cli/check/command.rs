//! Combines the flags of `check` with the configuration file, and runs the check.

use std::io::Read;
use std::path::PathBuf;

use super::baseline::{Baseline, write_baseline};
use super::config::{self, Config};
use super::finding::Finding;
use super::fix::{self, AppliedFix, FixReport};
use super::render::count;
use super::report::CheckReport;
use super::settings::{FindingArgs, Settings};
use super::{Options, run_with_cluster};
use crate::cli::args::{CheckArgs, CheckProfile};
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::live::{ClusterData, Served};
use crate::cli::text::{clean, cut};
use crate::policy::analysis::Profile;
use crate::version::VersionRange;

/// Maximum width, in columns, of the old code and of the new code in a message about a fix.
const MAX_WORDS: usize = 60;

/// The options and settings of a check, combined from the flags and the configuration file.
#[derive(Clone, Debug)]
pub(in crate::cli) struct Plan {
    pub(in crate::cli) options: Options,
    pub(in crate::cli) settings: Settings,
    /// True if notes about parts of the input that could not be checked affect the exit status.
    pub(in crate::cli) is_strict: bool,
}

impl Plan {
    /// Returns the files that the configuration file names, and the configuration file itself.
    pub(in crate::cli) fn files(&self) -> impl Iterator<Item = PathBuf> + '_ {
        let baseline = self.settings.baseline.as_ref();
        let baseline = baseline.map(|baseline| baseline.path().to_owned());
        let config = self.settings.config.as_ref().map(PathBuf::from);
        self.options
            .crds
            .iter()
            .cloned()
            .chain(baseline)
            .chain(config)
    }
}

/// Returns the plan for a check of `paths`. The configuration file provides defaults for the flags.
///
/// # Errors
/// Returns an error if the configuration or the baseline cannot be read. Also returns an error if the flags set the
/// level of an unknown rule, or different levels for one rule.
pub(in crate::cli) fn plan(args: &CheckArgs, paths: &[PathBuf]) -> Result<Plan, CliError> {
    let overrides = Overrides {
        crds: &args.crds,
        profile: args.profile,
        kubernetes_version: args.kubernetes_version,
        static_dir: args.static_dir.as_ref(),
        is_strict: args.strict,
    };
    plan_with(&args.findings, overrides, paths)
}

/// Flags of a check that override the configuration file.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::cli) struct Overrides<'a> {
    pub(in crate::cli) crds: &'a [PathBuf],
    pub(in crate::cli) profile: Option<CheckProfile>,
    pub(in crate::cli) kubernetes_version: Option<VersionRange>,
    pub(in crate::cli) static_dir: Option<&'a PathBuf>,
    pub(in crate::cli) is_strict: bool,
}

/// Like [`plan`], for callers without the arguments of `check`.
///
/// # Errors
/// Returns the errors of [`plan`].
pub(in crate::cli) fn plan_with(
    flags: &FindingArgs,
    overrides: Overrides<'_>,
    paths: &[PathBuf],
) -> Result<Plan, CliError> {
    let config = match &flags.config {
        Some(path) => Some(config::read(path)?),
        None if flags.no_config => None,
        None => config::find(paths)?,
    };
    let name = config
        .as_ref()
        .map(|config| config::display_path(&config.path));
    let config = config.unwrap_or_default();
    let baseline = match &flags.write_baseline {
        Some(_) => None,
        None => flags.baseline.as_ref().or(config.baseline.as_ref()),
    };
    let baseline = baseline.map(|path| Baseline::read(path)).transpose()?;
    let Config {
        levels,
        exclude,
        crds: more_crds,
        kubernetes_version,
        profile,
        strict,
        ..
    } = config;
    let profile = match overrides.profile {
        Some(CheckProfile::Truthful) => Profile::Truthful,
        Some(CheckProfile::Upstream) => Profile::Upstream,
        None => profile.unwrap_or(Profile::Truthful),
    };
    let versions = overrides.kubernetes_version.or(kubernetes_version);
    Ok(Plan {
        options: Options {
            paths: paths.to_vec(),
            crds: overrides.crds.iter().cloned().chain(more_crds).collect(),
            profile,
            version: versions.map(|range| range.last),
            other_versions: versions.map(|range| range.older()).unwrap_or_default(),
        },
        settings: Settings {
            levels: vec![flags.levels()?, levels],
            exclude,
            baseline,
            config: name,
            static_dir: overrides.static_dir.cloned(),
            ..Settings::default()
        },
        is_strict: overrides.is_strict || strict,
    })
}

/// Runs the check of a plan. Returns the report, and messages about the fixes and the baseline.
///
/// `ask` reads the data of a cluster, or returns `None` if no cluster is used. Applies fixes and writes a baseline if
/// flags request this.
///
/// # Errors
/// Returns an error if fixes are requested for standard input or for a cluster. Also returns an error if the
/// cluster or the built-in schemas cannot be read, or the baseline cannot be written.
pub(in crate::cli) fn run(
    args: &CheckArgs,
    plan: &Plan,
    stdin: &mut dyn Read,
    ask: impl FnOnce(&mut Input, &Input) -> Result<Option<(ClusterData, Served)>, CliError>,
) -> Result<(CheckReport, Vec<String>), CliError> {
    let flags = &args.findings;
    let is_fixing = flags.fix || flags.diff;
    if is_fixing && args.paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(CliError::FixOfStdin);
    }
    let mut report = run_with_cluster(&plan.options, &plan.settings, stdin, ask)?;
    let mut messages = Vec::new();
    if is_fixing {
        if report.cluster.is_some() {
            let message = "--fix and --diff cannot be combined with a cluster: they check files with the built-in schemas";
            return Err(CliError::Usage(message.to_owned()));
        }
        report = fix::fix(&plan.options, &plan.settings, report, flags.diff)?;
        messages = fix_messages(&report.fixes, flags.diff);
        messages.extend(report.findings.iter().filter_map(withheld_message));
    }
    if let Some(path) = &flags.write_baseline {
        let n = write_baseline(path, &mut report)?;
        messages.push(format!(
            "{}: {} written",
            path.display(),
            count(n, "finding")
        ));
    }
    Ok((report, messages))
}

/// Returns the messages about the fixes of all files. With `is_dry`, the messages do not list each fix, because the
/// diff shows them.
fn fix_messages(fixes: &[FixReport], is_dry: bool) -> Vec<String> {
    if fixes.is_empty() {
        return vec!["no finding has a fix that --fix can apply".to_owned()];
    }
    let mut messages = Vec::new();
    for fix in fixes {
        messages.push(fix_message(fix, is_dry));
        let applied = fix.applied.iter().filter(|_| !is_dry);
        messages.extend(applied.map(applied_message));
    }
    let applied = || fixes.iter().flat_map(|fix| &fix.applied);
    let n_rounds = applied().map(|fix| fix.round).max().unwrap_or_default();
    let n_changed = fixes.iter().filter(|fix| fix.fixed > 0).count();
    if n_rounds > 1 || n_changed > 1 {
        let n_later = applied().filter(|fix| fix.round > 1).count();
        let later = match n_later {
            0 => String::new(),
            n => format!(
                " in {n_rounds} rounds, including {} for findings that other fixes uncovered",
                fix_count(n)
            ),
        };
        messages.push(format!(
            "{} of {} {}{later}",
            fix_count(applied().count()),
            count(n_changed, "file"),
            applied_verb(is_dry),
        ));
    }
    messages
}

fn withheld_message(finding: &Finding) -> Option<String> {
    let (place, reason) = finding.location.place.zip(finding.fix_objection)?;
    let (file, rule) = (clean(&finding.location.file), finding.rule.id());
    Some(format!(
        "{file}:{}:{} {rule}: not fixed: {reason}",
        place.line, place.column
    ))
}

fn applied_message(fix: &AppliedFix) -> String {
    let quoted = |text: &str| {
        let words: Vec<&str> = text.split_whitespace().collect();
        match cut(&clean(&words.join(" ")), MAX_WORDS) {
            text if text.is_empty() => "(nothing)".to_owned(),
            text => format!("`{text}`"),
        }
    };
    let (before, after) = (quoted(&fix.before), quoted(&fix.after));
    let (line, column, rule) = (fix.line, fix.column, fix.rule.id());
    format!("  {line}:{column} {rule}: {before} -> {after}")
}

const fn applied_verb(is_dry: bool) -> &'static str {
    if is_dry { "can be applied" } else { "applied" }
}

fn fix_count(n: usize) -> String {
    match n {
        1 => "1 fix".to_owned(),
        n => format!("{n} fixes"),
    }
}

/// Returns the message about the fixes of a file, with the reason if some were not applied.
fn fix_message(fix: &FixReport, is_dry: bool) -> String {
    let verb = applied_verb(is_dry);
    let file = clean(&fix.file);
    let fixes = fix_count(fix.fixed);
    match (fix.fixed, fix.not_fixed.as_deref().map(clean)) {
        (_, None) => format!("{file}: {fixes} {verb}"),
        (0, Some(reason)) => format!("{file}: unchanged: {reason}"),
        (_, Some(reason)) => format!("{file}: {fixes} {verb}, others skipped: {reason}"),
    }
}

/// Returns the unified diffs of a report's fixes, one after another.
pub(in crate::cli) fn diffs(report: &CheckReport) -> String {
    let diffs = report.fixes.iter().filter_map(|fix| fix.diff.as_deref());
    diffs.collect()
}
