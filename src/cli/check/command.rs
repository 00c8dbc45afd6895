//! The settings of a check out of its flags and its configuration file.

use std::path::PathBuf;

use super::baseline::Baseline;
use super::config::{self, Config};
use super::settings::Settings;
use super::{Options, write_baseline};
use crate::cli::args::{CheckArgs, CheckProfile};
use crate::cli::error::CliError;
use crate::policy::analysis::Profile;

use super::report::CheckReport;

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
        },
        is_strict: args.strict || strict,
    })
}

/// Writes the baseline, if one is asked for; says so.
///
/// # Errors
/// It cannot be written.
pub(in crate::cli) fn finish(
    args: &CheckArgs,
    report: &mut CheckReport,
) -> Result<Option<String>, CliError> {
    let Some(path) = &args.findings.write_baseline else {
        return Ok(None);
    };
    let n = write_baseline(path, report)?;
    let findings = super::render::count(n, "finding");
    Ok(Some(format!("{}: {findings} written", path.display())))
}
