//! Settings of a check beside what is checked: the levels of rules, and what is not reported.

use std::collections::HashMap;
use std::path::PathBuf;

use clap::Args;

use super::baseline::Baseline;
use super::config::Exclude;
use super::levels::{Level, LevelError, Levels};

/// Flags of `check` about its findings.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Findings")]
#[expect(clippy::struct_excessive_bools, reason = "one for each flag")]
pub struct FindingArgs {
    /// Report findings of RULE as errors; `all` stands for all rules that have no level of their own. May be given
    /// several times, as may those that follow
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub error: Vec<String>,
    /// Report findings of RULE as warnings
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub warn: Vec<String>,
    /// Report findings of RULE as notes, which do not count for the exit status
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub note: Vec<String>,
    /// Do not report findings of RULE. What the API server refuses is reported all the same, and as an error
    #[arg(long, value_name = "RULE", value_delimiter = ',')]
    pub allow: Vec<String>,
    /// The configuration file [default: .vap.yaml in the directory of the paths, or above it within the repository]
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Read no configuration file
    #[arg(long, conflicts_with = "config")]
    pub no_config: bool,
    /// Do not report the findings in FILE; those of them that are gone are noted
    #[arg(long, value_name = "FILE")]
    pub baseline: Option<PathBuf>,
    /// Write the findings to FILE as a baseline, instead of reporting them; but for those of what the API server
    /// refuses
    #[arg(long, value_name = "FILE", conflicts_with = "baseline")]
    pub write_baseline: Option<PathBuf>,
    /// Mend the findings that have one mend, in the files. A file is written only if it has none of them then, and
    /// no new errors or warnings
    #[arg(long)]
    pub fix: bool,
    /// Print what --fix would do, as a diff, and write nothing
    #[arg(long, conflicts_with = "fix")]
    pub diff: bool,
    /// Explain each rule that is reported beneath the findings, as `kubectl vap explain` does
    #[arg(long)]
    pub explain: bool,
}

impl FindingArgs {
    /// The levels that the flags set.
    ///
    /// # Errors
    /// A flag names no rule, or two give a rule different levels.
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

/// Settings of a check beside what is checked.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The levels of rules, those that count more first.
    pub levels: Vec<Levels>,
    /// The paths that are not checked.
    pub exclude: Exclude,
    /// The findings that are not reported.
    pub baseline: Option<Baseline>,
    /// The name of the configuration file, if there is one.
    pub config: Option<String>,
    /// The directory whose manifests an API server is to load when it starts.
    pub static_dir: Option<PathBuf>,
    /// Texts that count instead of those of files, by their paths without links.
    pub texts: HashMap<PathBuf, String>,
}
