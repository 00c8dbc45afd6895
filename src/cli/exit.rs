//! Exit statuses, by meaning.

use std::process::ExitCode;

/// With what the plugin ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// 0: nothing to complain of.
    Clean,
    /// 1: the command worked, and found something that somebody must look at.
    Findings,
    /// 2: the command could not do its work: wrong use, no such policy, cluster out of reach.
    WrongUse,
}

impl Exit {
    /// The number that the shell sees.
    #[must_use]
    pub fn code(self) -> u8 {
        match self {
            Self::Clean => 0,
            Self::Findings => 1,
            Self::WrongUse => 2,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.code())
    }
}
