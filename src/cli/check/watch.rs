//! Waits for changes of the files of a check, for `check --watch`.
//!
//! The files are polled, because the notifications of operating systems do not cover network file systems and the
//! mounts of containers.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::command::Plan;
use crate::cli::args::{CheckArgs, CheckOutput};
use crate::cli::error::CliError;
use crate::cli::input::files::{self, CONFIG_NAME, FileStates};

/// The time between two reads of the states of the files.
const INTERVAL: Duration = Duration::from_millis(200);

/// The files of a check, and their states before the check.
pub(in crate::cli) struct FileWatch<'a> {
    plan: Option<&'a Plan>,
    roots: Vec<PathBuf>,
    states: FileStates,
}

impl<'a> FileWatch<'a> {
    /// Returns the watch of the files of a check: the input, CRDs, baseline and configuration. `plan` is `None` if the
    /// configuration or the baseline is invalid.
    pub(in crate::cli) fn new(args: &CheckArgs, paths: &[PathBuf], plan: Option<&'a Plan>) -> Self {
        let flags = &args.findings;
        let mut roots = paths.to_vec();
        roots.extend(args.crds.iter().cloned());
        roots.extend(flags.config.iter().chain(&flags.baseline).cloned());
        roots.extend(plan.iter().flat_map(|plan| plan.files()));
        // The user may create a configuration file during the watch, so the paths of possible files are included.
        let directories = paths.iter().map(|path| match path.parent() {
            Some(parent) if !path.is_dir() => parent,
            _ => path.as_path(),
        });
        roots.extend(directories.map(|directory| directory.join(CONFIG_NAME)));
        let mut watch = Self {
            plan,
            roots,
            states: FileStates::new(),
        };
        watch.states = watch.read();
        watch
    }

    fn read(&self) -> FileStates {
        let is_excluded = |path: &Path| match self.plan {
            Some(plan) => plan.settings.exclude.has(path),
            None => false,
        };
        files::states(&self.roots, &is_excluded)
    }

    /// Waits until files differ from their states before the check, and have not changed for one interval.
    pub(in crate::cli) async fn changed(&self) {
        let mut last = None;
        loop {
            tokio::time::sleep(INTERVAL).await;
            let states = self.read();
            if states != self.states && last.as_ref() == Some(&states) {
                return;
            }
            last = Some(states);
        }
    }
}

/// Returns an error if the arguments cannot be combined with `--watch`.
///
/// # Errors
/// Returns an error for standard input, for a cluster, and for formats that describe a single check.
pub(in crate::cli) fn validate(args: &CheckArgs, is_live: bool) -> Result<(), CliError> {
    let message = if is_live {
        "--watch checks files and cannot be combined with a cluster"
    } else if args.paths.iter().any(|path| path.as_os_str() == "-") {
        "--watch cannot be combined with standard input"
    } else if !matches!(args.output, CheckOutput::Text | CheckOutput::Concise) {
        "--watch is only available for the formats text and concise"
    } else {
        return Ok(());
    };
    Err(CliError::Usage(message.to_owned()))
}
