//! Settings of a check beside what is checked: the levels of rules, and what is not reported.

use clap::Args;

use super::levels::{Level, LevelError, Levels};

/// Flags of `check` about its findings.
#[derive(Clone, Debug, Default, Args)]
#[command(next_help_heading = "Findings")]
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
}
