//! Shell completion: scripts for shells, and completions of words for kubectl.
//!
//! kubectl runs `kubectl_complete-vap` with the words after `kubectl vap`. From its output, kubectl reads one
//! completion per line, and then a line with a colon and a directive for the shell. The module `cluster` reads names
//! from the cluster and the kubeconfig within a short time limit.
//!
//! Source: kubectl `pkg/cmd/plugin/plugin_completion.go`; cobra `completions.go`, `ShellCompDirective`.

pub(super) mod cluster;

use std::fmt::Write as _;

use clap::{Arg, ArgAction, Args as _, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::Shell;

use super::args::{Args, CompletionShell};
use super::connection::Connection;
use super::field_reference;
use super::names;
use crate::policy::rule::Rule;
use crate::version::KubernetesVersion;

/// The program that shell scripts complete.
const PROGRAM: &str = "kubectl-vap";

/// The script that kubectl runs for completions.
const KUBECTL: &str = "\
#!/usr/bin/env sh
# Completions of `kubectl vap`: save this as kubectl_complete-vap in a directory of PATH, and make it executable.
exec kubectl-vap __complete \"$@\"
";

/// `ShellCompDirectiveDefault`: the shell also completes file names.
const FILES: u8 = 0;

/// `ShellCompDirectiveNoFileComp`: the shell does not complete file names.
const NO_FILES: u8 = 4;

/// Returns the script for a shell.
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

/// Kinds of names that are read from a cluster or a kubeconfig for completions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Names {
    /// Names of policies in the cluster.
    Policies,
    /// Names of contexts in the kubeconfig.
    Contexts,
    /// Names of clusters in the kubeconfig.
    Clusters,
    /// Names of users in the kubeconfig.
    Users,
}

/// A function that reads names with the connection flags of the command line. The result is empty if the names cannot
/// be read.
pub type Lookup<'a> = &'a dyn Fn(Names, &Connection) -> Vec<String>;

/// Returns the completions of the last word, which may be empty.
#[must_use]
pub fn complete(words: &[String], lookup: Lookup<'_>) -> String {
    let mut root = Args::command();
    root.build();
    let (last, before) = match words.split_last() {
        Some((last, before)) => (last.as_str(), before),
        None => ("", &[][..]),
    };
    let mut command = &root;
    let mut pending: Option<&Arg> = None;
    let mut positionals: Vec<&str> = Vec::new();
    let mut is_open = true;
    for word in before {
        if pending.take().is_some() {
            continue;
        }
        if word == "--" {
            is_open = false;
        } else if is_open && word.starts_with('-') && word != "-" {
            pending = flag(command, word).filter(|arg| takes_next(arg, word));
        } else if let Some(next) = command
            .find_subcommand(word)
            .filter(|_| positionals.is_empty())
        {
            command = next;
        } else {
            positionals.push(word);
        }
    }
    let ask = |names: Names| lookup(names, &connection(before));
    let mut completions = Completions::default();
    let inline = last
        .split_once('=')
        .filter(|_| is_open && last.starts_with("--"));
    if let Some(arg) = pending {
        completions.values(arg, "", last, &ask);
    } else if let Some((name, value)) = inline {
        if let Some(arg) = flag(command, name) {
            completions.values(arg, &format!("{name}="), value, &ask);
        }
    } else if is_open && last.starts_with('-') {
        completions.flags(command);
    } else if command.has_subcommands() && positionals.is_empty() && command.get_name() != "test" {
        completions.subcommands(command);
    } else {
        match command.get_name() {
            "explain" if positionals.is_empty() => completions.topics(),
            "status" => completions.policies(last, &positionals, &ask),
            "check" => {
                // Only a word with a slash, such as `vap/NAME`, can be a policy. Other words are paths.
                if last.contains('/') {
                    completions.policies(last, &positionals, &ask);
                }
                completions.takes_files = true;
            }
            _ => {
                // Commands are suggested only after the first letter is typed, because file names are suggested too.
                if positionals.is_empty() && !last.is_empty() {
                    completions.subcommands(command);
                }
                if let Some(arg) = command.get_positionals().next() {
                    completions.values(arg, "", last, &ask);
                }
            }
        }
    }
    completions.text(last)
}

/// Returns the flag that a word names. `None` if there is no such flag, or if it takes no value.
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

/// Returns true if the word after `word` is the value of the flag `arg`.
fn takes_next(arg: &Arg, word: &str) -> bool {
    !word.contains('=') && !arg.is_require_equals_set()
}

fn connection(words: &[String]) -> Connection {
    let command = Connection::augment_args(Command::new(PROGRAM).no_binary_name(true));
    let mut kept: Vec<&str> = Vec::new();
    let mut words = words.iter();
    while let Some(word) = words.next().filter(|word| *word != "--") {
        let Some(arg) = flag(&command, word).filter(|_| word.starts_with('-')) else {
            continue;
        };
        kept.push(word);
        if takes_next(arg, word) {
            kept.extend(words.next().map(String::as_str));
        }
    }
    let matches = command.ignore_errors(true).try_get_matches_from(kept);
    let parsed = matches.and_then(|matches| Connection::from_arg_matches(&matches));
    parsed.unwrap_or_default()
}

#[derive(Default)]
struct Completions {
    found: Vec<(String, String)>,
    takes_files: bool,
}

impl Completions {
    /// Adds completions for the value of a flag or an argument, each with the prefix `before`. `value` is the part
    /// that has been typed.
    fn values(&mut self, arg: &Arg, before: &str, value: &str, ask: &dyn Fn(Names) -> Vec<String>) {
        let values = arg.get_possible_values();
        let values = values.iter().filter(|value| !value.is_hide_set());
        self.found.extend(values.map(|value| {
            let help = value.get_help().map(ToString::to_string);
            (
                format!("{before}{}", value.get_name()),
                help.unwrap_or_default(),
            )
        }));
        let names = match arg.get_id().as_str() {
            "context" => Some(Names::Contexts),
            "cluster" => Some(Names::Clusters),
            "user" => Some(Names::Users),
            _ => None,
        };
        if let Some(names) = names {
            let names = ask(names).into_iter();
            self.found
                .extend(names.map(|name| (format!("{before}{name}"), String::new())));
        }
        for name in arg.get_value_names().unwrap_or_default() {
            match name.as_str() {
                "RULE" => {
                    // Completes the last of several rules that are separated by commas.
                    let done = value.rsplit_once(',').map(|(done, _)| format!("{done},"));
                    self.rules(&format!("{before}{}", done.unwrap_or_default()));
                }
                "VERSION" => {
                    let versions = KubernetesVersion::supported().rev();
                    self.found.extend(
                        versions.map(|version| (format!("{before}{version}"), String::new())),
                    );
                }
                name => {
                    let mut path_names = ["PATH", "FILE", "DIR", "POLICY"].iter();
                    self.takes_files |= path_names.any(|path_name| name.starts_with(path_name));
                }
            }
        }
    }

    /// Adds the policies of the cluster that are not among `typed`, with the resource prefix of `last`, such as `vap/`.
    fn policies(&mut self, last: &str, typed: &[&str], ask: &dyn Fn(Names) -> Vec<String>) {
        let before = match last.split_once('/') {
            Some((resource, _)) if names::is_resource(resource) => format!("{resource}/"),
            Some(_) => return,
            None => String::new(),
        };
        let typed_names: Vec<&str> = typed
            .iter()
            .map(|word| names::policy_name(word).unwrap_or(word))
            .collect();
        let policies = ask(Names::Policies).into_iter();
        let policies = policies.filter(|name| !typed_names.contains(&name.as_str()));
        self.found
            .extend(policies.map(|name| (format!("{before}{name}"), String::new())));
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

    /// Adds the arguments of `explain`: the rules, and the kinds whose fields it describes.
    fn topics(&mut self) {
        self.rules("");
        let kinds = field_reference::kind_names().into_iter();
        self.found
            .extend(kinds.map(|(kind, about)| (kind.to_lowercase(), about)));
    }

    fn rules(&mut self, before: &str) {
        let rules = Rule::ALL.iter();
        self.found.extend(rules.map(|rule| {
            let value = format!("{before}{}", rule.id());
            (value, rule.summary().to_owned())
        }));
    }

    /// Returns the completions that begin with `last`, in the format that kubectl reads.
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

    /// Checks the completions of a line, without descriptions.
    #[track_caller]
    fn check(line: &str, expect: &str) {
        let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        let lookup = |names, flags: &Connection| {
            let names = match (names, flags.context.as_deref()) {
                (Names::Policies, Some("other")) => "c",
                (Names::Policies, _) => "a ab b",
                (Names::Contexts, _) => "here other",
                (Names::Clusters | Names::Users, _) if flags.kubeconfig.is_some() => "own",
                (Names::Clusters | Names::Users, _) => "default",
            };
            names.split(' ').map(str::to_owned).collect()
        };
        let text = complete(&words, &lookup);
        let values = text
            .lines()
            .map(|line| line.split('\t').next().unwrap_or_default());
        assert_eq!(values.collect::<Vec<_>>().join(" "), expect, "{line}");
    }

    #[test]
    fn completion_has_values_and_directive() {
        check("st", "status :4");
        check("ex", "explain :4");
        check("__", ":4");
        check("status --no", "--no-headers --no-check :4");
        check("status --output ", "wide json yaml name :4");
        check("status -o j", "json :4");
        check("status --output=y", "--output=yaml :4");
        check("status --context ", "here other :4");
        check("status --context=o", "--context=other :4");
        check("status --kubeconfig ", ":0");
        check("status --kubeconfig k --user ", "own :4");
        check("check --cluster ", "default :4");
        check("status ", "a ab b :4");
        check("status a", "a ab :4");
        check("status a b ", "ab :4");
        check("status vap/a vap/", "vap/ab vap/b :4");
        check("status deployments/", ":4");
        check("status vap a", "a ab :4");
        check("status --context other ", "c :4");
        check("status --insecure-skip-tls-verify --context=other ", "c :4");
        check("check vap/a", "vap/a vap/ab :0");
        check("check a", ":0");
        check(
            "check --allow unsched,undefined-f",
            "unsched,undefined-field :4",
        );
        check("check --error=undefined-fi", "--error=undefined-field :4");
        check(
            "check --kubernetes-version 1.3",
            "1.37 1.36 1.35 1.34 1.33 1.32 1.31 1.30 :4",
        );
        check("check --static ", ":0");
        check("test ", ":0");
        check("test i", "init :0");
        check("test init ", ":0");
        check("check ", ":0");
        check("check --crds x", ":0");
        check("check a.yaml --live -o g", "github gitlab :4");
        check("check -- --l", ":0");
        check("check --live --li", "--live :4");
        check("explain undefined-f", "undefined-field :4");
        check("explain policyp", "policyprobe :4");
        check("completion k", "kubectl :4");
        check("nonsense x", ":4");
    }

    #[test]
    fn script_registers_completion_for_each_shell() {
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
