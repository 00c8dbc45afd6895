//! Completion: scripts for shells, and for kubectl the completions of words.
//!
//! kubectl runs `kubectl_complete-vap` with the words behind `kubectl vap`, and reads one completion a line, then a
//! line with a colon and a number that says what the shell adds.
//!
//! Source: kubectl `pkg/cmd/plugin/plugin_completion.go`; cobra `completions.go`, `ShellCompDirective`.

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Command, CommandFactory as _};
use clap_complete::Shell;

use super::args::{Args, CompletionShell};
use crate::policy::rule::Rule;

/// The program that the scripts of shells complete.
const PROGRAM: &str = "kubectl-vap";

/// The script that kubectl runs for completions.
const KUBECTL: &str = "\
#!/usr/bin/env sh
# Completions of `kubectl vap`: save this as kubectl_complete-vap in a directory of PATH, executable.
exec kubectl-vap __complete \"$@\"
";

/// `ShellCompDirectiveDefault`: the shell adds files.
const FILES: u8 = 0;

/// `ShellCompDirectiveNoFileComp`.
const NO_FILES: u8 = 4;

/// The script for a shell.
#[must_use]
pub fn script(shell: CompletionShell) -> String {
    let shell = match shell {
        CompletionShell::Bash => Shell::Bash,
        CompletionShell::Zsh => Shell::Zsh,
        CompletionShell::Fish => Shell::Fish,
        CompletionShell::Powershell => Shell::PowerShell,
        CompletionShell::Kubectl => return KUBECTL.to_owned(),
    };
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Args::command(), PROGRAM, &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// The completions of the last of `words`, which may be empty.
#[must_use]
pub fn complete(words: &[String]) -> String {
    let mut root = Args::command();
    root.build();
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let mut command = &root;
    let mut pending: Option<&Arg> = None;
    let mut n_values = 0;
    let mut is_open = true;
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        if word == "--" {
            is_open = false;
        } else if is_open && word.starts_with('-') && word != "-" {
            pending = flag(command, word).filter(|_| !word.contains('='));
        } else if let Some(next) = command.find_subcommand(word).filter(|_| n_values == 0) {
            command = next;
        } else {
            n_values += 1;
        }
    }
    let mut found = Completions::default();
    let inline = last
        .split_once('=')
        .filter(|_| is_open && last.starts_with("--"));
    if let Some(arg) = pending {
        found.values(arg, "");
    } else if let Some((name, _)) = inline {
        if let Some(arg) = flag(command, name) {
            found.values(arg, &format!("{name}="));
        }
    } else if is_open && last.starts_with('-') {
        found.flags(command);
    } else if command.has_subcommands() {
        found.subcommands(command);
    } else if command.get_name() == "explain" {
        found.rules();
    } else if let Some(arg) = command.get_positionals().next() {
        found.values(arg, "");
    }
    found.text(last)
}

/// The flag that a word names and that takes a value.
fn flag<'a>(command: &'a Command, word: &str) -> Option<&'a Arg> {
    let name = word.split('=').next().unwrap_or(word);
    let mut args = command.get_arguments();
    let arg = args.find(|arg| {
        let long = arg
            .get_long()
            .is_some_and(|long| name.strip_prefix("--") == Some(long));
        let short = arg
            .get_short()
            .is_some_and(|short| name == format!("-{short}"));
        long || short
    })?;
    matches!(arg.get_action(), ArgAction::Set | ArgAction::Append).then_some(arg)
}

/// Completions with their descriptions.
#[derive(Default)]
struct Completions {
    found: Vec<(String, String)>,
    takes_files: bool,
}

impl Completions {
    fn values(&mut self, arg: &Arg, before: &str) {
        let values = arg.get_possible_values();
        let values = values.iter().filter(|value| !value.is_hide_set());
        self.found.extend(values.map(|value| {
            let help = value.get_help().map(ToString::to_string);
            (
                format!("{before}{}", value.get_name()),
                help.unwrap_or_default(),
            )
        }));
        let names = arg.get_value_names().unwrap_or_default();
        self.takes_files |= names.iter().any(|name| {
            ["PATH", "FILE"]
                .iter()
                .any(|of_file| name.starts_with(of_file))
        });
    }

    fn flags(&mut self, command: &Command) {
        let args = command.get_arguments().filter(|arg| !arg.is_hide_set());
        self.found.extend(args.filter_map(|arg| {
            let help = arg.get_help().map(ToString::to_string);
            Some((format!("--{}", arg.get_long()?), help.unwrap_or_default()))
        }));
    }

    fn subcommands(&mut self, command: &Command) {
        let commands = command.get_subcommands().filter(|it| !it.is_hide_set());
        self.found.extend(commands.map(|it| {
            let about = it.get_about().map(ToString::to_string);
            (it.get_name().to_owned(), about.unwrap_or_default())
        }));
    }

    fn rules(&mut self) {
        let rules = Rule::ALL.iter();
        self.found
            .extend(rules.map(|rule| (rule.id().to_owned(), rule.summary().to_owned())));
    }

    /// Those that begin with `last`, as kubectl reads them.
    fn text(self, last: &str) -> String {
        let mut text = String::new();
        for (value, help) in self
            .found
            .iter()
            .filter(|(value, _)| value.starts_with(last))
        {
            let help = help.lines().next().unwrap_or_default();
            let _ = match help {
                "" => writeln!(text, "{value}"),
                help => writeln!(text, "{value}\t{help}"),
            };
        }
        let directive = if self.takes_files { FILES } else { NO_FILES };
        let _ = writeln!(text, ":{directive}");
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The completions of a line, without their descriptions.
    #[track_caller]
    fn check(line: &str, expect: &str) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let text = complete(&words);
        let values = text
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default());
        assert_eq!(values.collect::<Vec<_>>().join(" "), expect, "{line}");
    }

    #[test]
    fn words_are_completed() {
        check("st", "status :4");
        check("ex", "explain :4");
        check("__", ":4");
        check("status --no", "--no-headers --no-judge :4");
        check("status --output ", "wide json yaml :4");
        check("status -o j", "json :4");
        check("status --output=y", "--output=yaml :4");
        check("status --context ", ":4");
        check("check ", ":0");
        check("check --crds x", ":0");
        check("check a.yaml --live -o g", "github :4");
        check("check -- --l", ":0");
        check("check --live --li", "--live :4");
        check("explain undefined-f", "undefined-field :4");
        check("completion k", "kubectl :4");
        check("nonsense x", ":4");
    }

    #[test]
    fn each_shell_has_a_script() {
        for (shell, part) in [
            (CompletionShell::Bash, "complete -F _kubectl-vap"),
            (CompletionShell::Zsh, "#compdef kubectl-vap"),
            (CompletionShell::Fish, "complete -c kubectl-vap"),
            (CompletionShell::Powershell, "Register-ArgumentCompleter"),
            (
                CompletionShell::Kubectl,
                "exec kubectl-vap __complete \"$@\"",
            ),
        ] {
            let script = script(shell);
            assert!(script.contains(part), "{script}");
        }
    }
}
