//! The settings of a check out of its flags and its configuration file.

use std::io::Read;
use std::path::PathBuf;

use super::baseline::{Baseline, write_baseline};
use super::config::{self, Config};
use super::fix::{self, FixReport};
use super::render::count;
use super::report::CheckReport;
use super::settings::Settings;
use super::{Options, run_beside};
use crate::cli::args::{CheckArgs, CheckProfile};
use crate::cli::error::CliError;
use crate::cli::input::Input;
use crate::cli::live::{Asked, Served};
use crate::cli::text::clean;
use crate::policy::analysis::Profile;

/// A check that is to be made.
#[derive(Debug)]
pub(in crate::cli) struct Plan {
    pub(in crate::cli) options: Options,
    pub(in crate::cli) settings: Settings,
    /// True if whatever could not be checked counts as a finding.
    pub(in crate::cli) is_strict: bool,
}

/// The check of `paths` that the flags ask for, with what the configuration file says where they say nothing.
///
/// # Errors
/// The configuration or the baseline cannot be read, or a level cannot be set.
pub(in crate::cli) fn plan(args: &CheckArgs, paths: &[PathBuf]) -> Result<Plan, CliError> {
    let flags = &args.findings;
    let config = match &flags.config {
        Some(path) => Some(config::read(path)?),
        None if flags.no_config => None,
        None => config::find(paths)?,
    };
    let name = config.as_ref().map(|config| config::shown(&config.path));
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
    let profile = match args.profile {
        Some(CheckProfile::Truthful) => Profile::Truthful,
        Some(CheckProfile::Upstream) => Profile::Upstream,
        None => profile.unwrap_or(Profile::Truthful),
    };
    Ok(Plan {
        options: Options {
            paths: paths.to_vec(),
            crds: args.crds.iter().cloned().chain(more_crds).collect(),
            profile,
            version: args.kubernetes_version.or(kubernetes_version),
        },
        settings: Settings {
            levels: vec![flags.levels()?, levels],
            exclude,
            baseline,
            config: name,
            static_dir: args.static_dir.clone(),
            ..Settings::default()
        },
        is_strict: args.strict || strict,
    })
}

/// Makes the check of a plan, beside a cluster where `ask` has one, with the mends and the baseline that the flags ask
/// for; returns the report, and what is to be said besides.
///
/// # Errors
/// Standard input is to be mended, the cluster cannot be asked, the baseline cannot be written, or the build is broken.
pub(in crate::cli) fn run(
    args: &CheckArgs,
    plan: &Plan,
    stdin: &mut dyn Read,
    ask: impl FnOnce(&mut Input, &Input) -> Result<Option<(Asked, Served)>, CliError>,
) -> Result<(CheckReport, Vec<String>), CliError> {
    let flags = &args.findings;
    let is_fixing = flags.fix || flags.diff;
    if is_fixing && args.paths.iter().any(|path| path.as_os_str() == "-") {
        return Err(CliError::FixOfStdin);
    }
    let mut report = run_beside(&plan.options, &plan.settings, stdin, ask)?;
    let mut told = Vec::new();
    if is_fixing {
        if report.cluster.is_some() {
            let what =
                "--fix and --diff check files by the built-in schemas: leave the cluster out";
            return Err(CliError::Usage(what.to_owned()));
        }
        report = fix::fix(&plan.options, &plan.settings, report, flags.diff)?;
        told = report.fixes.iter().map(|of| said(of, flags.diff)).collect();
        if told.is_empty() {
            told.push("no finding has a mend that --fix can make".to_owned());
        }
    }
    if let Some(path) = &flags.write_baseline {
        let n = write_baseline(path, &mut report)?;
        told.push(format!(
            "{}: {} written",
            path.display(),
            count(n, "finding")
        ));
    }
    Ok((report, told))
}

/// The words for the mends of a file, and why there are not more.
fn said(of: &FixReport, is_dry: bool) -> String {
    let verb = if is_dry { "can be made" } else { "made" };
    let left = of.left.as_deref().map(clean);
    match (of.fixed, left) {
        (n, None) => format!("{}: {} {verb}", clean(&of.file), count(n, "mend")),
        (0, Some(reason)) => format!("{}: left as it is: {reason}", clean(&of.file)),
        (n, Some(reason)) => {
            let mends = count(n, "mend");
            format!("{}: {mends} {verb}, and not all: {reason}", clean(&of.file))
        }
    }
}

/// The diffs of a report.
pub(in crate::cli) fn diffs(report: &CheckReport) -> String {
    let diffs = report.fixes.iter().filter_map(|fix| fix.diff.as_deref());
    diffs.collect()
}
