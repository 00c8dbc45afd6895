//! Determines from the arguments which files and which policies of a cluster a command reads.

use std::path::PathBuf;

use crate::cli::args::CheckArgs;
use crate::cli::connection::Connection;
use crate::cli::error::CliError;
use crate::cli::names;

/// The requested policies.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Selection {
    /// The names of the policies; empty for all.
    pub(in crate::cli) names: Vec<String>,
    pub(in crate::cli) selector: Option<String>,
}

impl Selection {
    /// Validates the selection.
    ///
    /// # Errors
    /// Returns an error if there are both names and a selector.
    pub(in crate::cli) fn checked(self) -> Result<Self, CliError> {
        if self.selector.is_some() && !self.names.is_empty() {
            let message = "names and a selector cannot be combined";
            return Err(CliError::Usage(message.to_owned()));
        }
        Ok(self)
    }

    pub(in crate::cli) fn is_all(&self) -> bool {
        self.names.is_empty() && self.selector.is_none()
    }
}

/// The input of a command: files, and policies of a cluster.
#[derive(Clone, Debug, Default)]
pub(in crate::cli) struct Plan {
    pub(in crate::cli) paths: Vec<PathBuf>,
    /// True if a cluster is used.
    pub(in crate::cli) is_live: bool,
    /// The cluster's policies that are checked. `None` if no policies of a cluster are checked.
    pub(in crate::cli) selection: Option<Selection>,
}

impl Plan {
    /// Returns the input that the arguments select.
    ///
    /// # Errors
    /// Returns an error if the arguments select nothing or cannot be combined.
    pub(in crate::cli) fn from_args(args: &CheckArgs) -> Result<Self, CliError> {
        let given: Vec<PathBuf> = args.paths.iter().chain(&args.static_dir).cloned().collect();
        Self::new(
            &given,
            args.selector.as_ref(),
            args.cluster.live,
            &args.connection,
        )
    }

    /// Returns the input that the arguments select. `given` contains paths and names of policies.
    ///
    /// If the first of `given` is the name of a resource, such as `vap`, the others are names of policies.
    ///
    /// # Errors
    /// Returns an error if the arguments select nothing or cannot be combined.
    pub(in crate::cli) fn new(
        given: &[PathBuf],
        selector: Option<&String>,
        live: bool,
        connection: &Connection,
    ) -> Result<Self, CliError> {
        let is_file = |path: &PathBuf| path.as_os_str() == "-" || path.exists();
        let text = |path: &PathBuf| path.to_str().map(str::to_owned);
        let first = given.first().filter(|path| !is_file(path));
        let has_type = first
            .and_then(text)
            .is_some_and(|it| names::is_resource(&it));
        let is_name = |path: &PathBuf| {
            let text = text(path).filter(|_| !is_file(path));
            has_type || text.is_some_and(|it| names::policy_name(&it).is_some())
        };
        let (named, paths): (Vec<_>, Vec<_>) = given.iter().cloned().partition(is_name);
        let named: Vec<String> = named.iter().filter_map(text).collect();
        let selection = Selection {
            names: names::parse(&named).map_err(CliError::Usage)?,
            selector: selector.cloned(),
        };
        let is_live = live || connection.is_given() || selector.is_some() || !named.is_empty();
        if paths.is_empty() && !is_live {
            let message =
                "no input: pass files or directories, or --live for the policies of a cluster";
            return Err(CliError::Usage(message.to_owned()));
        }
        let reads_policies = paths.is_empty() || selector.is_some() || !named.is_empty();
        Ok(Self {
            paths,
            is_live,
            selection: reads_policies.then(|| selection.checked()).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;
    use crate::cli::args::{Args, Command};

    /// Checks the plan of a command line: files, `live` or `offline`, names of policies, and the selector.
    #[track_caller]
    fn check(arguments: &str, expect: &str) {
        let words = ["kubectl-vap", "check"]
            .into_iter()
            .chain(arguments.split_whitespace());
        let args = Args::try_parse_from(words).unwrap();
        let Command::Check(args) = &args.command else {
            panic!("{args:?}")
        };
        let actual = match Plan::from_args(args) {
            Err(error) => format!("error: {error}"),
            Ok(plan) => {
                let paths: Vec<_> = plan
                    .paths
                    .iter()
                    .map(|it| it.display().to_string())
                    .collect();
                let place = if plan.is_live { "live" } else { "offline" };
                let selection = plan.selection.map(|it| (it.names.join(" "), it.selector));
                format!("{} {place} {selection:?}", paths.join(" "))
            }
        };
        assert!(actual.starts_with(expect), "{arguments}: {actual}");
    }

    #[test]
    fn arguments_are_distinguished_as_files_or_policies() {
        check("src Cargo.toml", "src Cargo.toml offline None");
        check("", "error: no input: pass files");
        check("--live", r#" live Some(("", None))"#);
        check("--context x", r#" live Some(("", None))"#);
        check("--as ann", r#" live Some(("", None))"#);
        check("src --context x", "src live None");
        check("src --live", "src live None");
        check("vap/a vaps/b", r#" live Some(("a b", None))"#);
        check("src vap/a", r#"src live Some(("a", None))"#);
        check("vap a b", r#" live Some(("a b", None))"#);
        check("validatingadmissionpolicies", r#" live Some(("", None))"#);
        check("-l team=a", r#" live Some(("", Some("team=a")))"#);
        check("src -l team=a", r#"src live Some(("", Some("team=a")))"#);
        check("vap/a -l team=a", "error: names and a selector");
        check("vap/", "error: `vap/` has no valid name");
        check("-n default src", "src offline None");
        check("--request-timeout 3s src", "src offline None");
    }
}
