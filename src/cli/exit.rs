//! Exit statuses.

use std::process::ExitCode;

/// The exit status of the plugin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: success without findings.
    Clean,
    /// 1: the command found problems.
    Findings,
    /// 2: the command failed: usage error, policy not found, unreadable input, unreachable cluster, or incomplete report.
    Failed,
}

impl Exit {
    /// Returns the exit code.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::Failed => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
