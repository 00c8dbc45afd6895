//! Flags and settings of a check: the levels of rules, exclusions, the baseline.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;

use super::baseline::Baseline;
use super::config::Exclude;
use super::finding::Finding;
use super::levels::{Level, LevelError, Levels};
use crate::cli::input::Input;
use crate::cli::live::ClusterData;

/// A function that returns the findings about the probes of an input. The arguments are the names of all
/// CustomResourceDefinitions, the data of the cluster, and true if files that are not in the input may contain the
/// targets of probes.
pub(in crate::cli) type ProbeCheck = fn(&Input, &[String], &ClusterData, bool) -> Vec<Finding>;

/// Flags of `check` about its findings.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Findings")]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub struct FindingArgs {
    /// Report findings of RULE as errors; `all` means all rules without their own level. Repeatable, like --warn, --note
    /// and --allow
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub error: Vec<String>,
    /// Report findings of RULE as warnings
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub warn: Vec<String>,
    /// Report findings of RULE as notes, which do not affect the exit status
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub note: Vec<String>,
    /// Do not report findings of RULE. Errors that make the API server reject an object are always reported
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// The configuration file [default: .vap.yaml in the directory of the paths or a parent within the repository]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Do not read a configuration file
    #[arg(long, conflicts_with = "config")]
    pub no_config: bool,
    /// Do not report the findings listed in FILE; entries without a finding are reported as notes
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write the findings to FILE as a baseline instead of reporting them. Errors that make the API server reject an
    /// object are still reported
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub write_baseline: Option<PathBuf>,
    /// Apply unambiguous fixes to the files, and list them. A fix is only applied if its finding disappears and no
    /// expression becomes invalid
    #[arg(long)]
    pub fix: bool,
    /// Print the changes of --fix as a diff instead of writing the files, even if --fix is set
    #[arg(long)]
    pub diff: bool,
    /// Explain each reported rule after the findings, as `kubectl vap explain` does
    #[arg(long)]
    pub explain: bool,
}

impl FindingArgs {
    /// Returns the levels that the flags set.
    ///
    /// # Errors
    /// Returns an error if a flag names an unknown rule, or if flags set different levels for one rule.
    pub fn levels(&self) -> Result<Levels, LevelError> {
        let mut levels = Levels::default();
        let flags = [
            (&self.error, Level::Error),
            (&self.warn, Level::Warn),
            (&self.note, Level::Note),
            (&self.allow, Level::Allow),
        ];
        for (ids, level) in flags {
            for id in ids {
                levels.set(id, level)?;
            }
        }
        Ok(levels)
    }
}

/// Settings that decide which findings of a check are reported, and at which severity.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The levels of rules, by descending precedence.
    pub levels: Vec<Levels>,
    /// The paths that are not checked.
    pub exclude: Exclude,
    /// The recorded findings, which are not reported.
    pub baseline: Option<Baseline>,
    /// The name of the configuration file, if there is one.
    pub config: Option<String>,
    /// The directory of static manifests, which an API server loads when it starts.
    pub static_dir: Option<PathBuf>,
    /// Replacements for the contents of files, by canonical path. The check of fixes uses the fixed contents.
    pub replaced_contents: HashMap<PathBuf, String>,
    /// The check of probes. `None` if probes are skipped.
    pub(in crate::cli) probe_check: Option<ProbeCheck>,
}
