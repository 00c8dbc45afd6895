//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::audit::args as audit;
use super::check::settings::FindingArgs;
use super::check::versions;
use super::connection::Connection;
use super::diff::args as diff;
use super::eval::args as eval;
use super::time_limit::Timeout;
use crate::cel::decls::Version;
use crate::status::lease;

/// Meanings of the exit statuses, for `--help`.
const EXIT_HELP: &str = "\
Examples:
  kubectl vap status
  kubectl vap status vap/replica-limit
  kubectl vap status -l team=platform -w
  kubectl vap status -o json

A policy of which vap-status-controller has written no status, or one that is older
than its spec, is judged by the plugin against the cluster's schemas; the column BY
says who has judged. With --no-judge such policies are NoStatus and Stale.

Exit status:
  0  every policy listed is Ready (or --exit-zero)
  1  some policy is not: Ready is False or Unknown, or nobody has judged it
  2  wrong use, no such policy, or something of the cluster cannot be read";

/// Examples and exit statuses of `check`.
const CHECK_HELP: &str = "\
Examples:
  kubectl vap check policies/
  kubectl vap check policy.yaml --crds crds/
  kustomize build . | kubectl vap check -
  kubectl vap check policies/ --context staging
  kubectl vap check --live
  kubectl vap check vap/replica-limit vap/image-registry
  kubectl vap check -l team=platform
  kubectl vap check policies/ --kubernetes-version 1.33
  kubectl vap check policies/ -o sarif > vap.sarif
  kubectl vap check policies/ --allow unbound-policy --error absent-field
  kubectl vap check policies/ --write-baseline vap-baseline.json
  kubectl vap check policies/ --baseline vap-baseline.json

Exit status:
  0  no errors and no warnings (or --exit-zero); notes do not count without --strict
  1  errors or warnings
  2  wrong use, or something of the input or of the cluster could not be read";

/// Examples and exit statuses of `test`.
const TEST_HELP: &str = "\
Examples:
  kubectl vap test policies/ probes/
  kubectl vap test policy.yaml probe.yaml --crds crds/
  kustomize build . | kubectl vap test -
  kubectl vap test policies/ -o junit > vap.xml
  kubectl vap test policies/ --coverage --mutants
  kubectl vap test init policy.yaml > probe.yaml
  kubectl vap test convert kyverno-test.yaml > probe.yaml

A probe, with params and a binding of its own:
  apiVersion: vap-status.dev/v1alpha1
  kind: PolicyProbe
  metadata: {name: replica-limit}
  spec:
    policyName: replica-limit.example.com
    bindings: Implied
    cases:
    - name: 51 replicas are denied
      request:
        object:
          apiVersion: apps/v1
          kind: Deployment
          metadata: {name: web, namespace: default}
          spec:
            replicas: 51
            selector: {matchLabels: {app: web}}
            template:
              metadata: {labels: {app: web}}
              spec: {containers: [{name: web, image: web}]}
      expect: {decision: Deny, messageContains: at most 50 replicas}

What passes proves something: Deny is a validation that says no, an error is expected
with `error`, and a policy that does not apply with `applies: false`. A policy that the
API server refuses fails its probes, as do sample objects that it refuses.

Exit status:
  0  every case passed
  1  a case failed, or could not be evaluated
  2  wrong use: something of the input could not be read, a probe is not valid or its
     policy is not among the input, or there is no probe at all";

/// Examples and exit statuses of `explain`.
const EXPLAIN_HELP: &str = "\
Examples:
  kubectl vap explain
  kubectl vap explain undefined-field
  kubectl vap explain -o json

Exit status:
  0  the rule is explained, or all are listed
  2  wrong use, or no such rule";

/// Examples of `completion`.
const COMPLETION_HELP: &str = "\
Examples:
  kubectl vap completion kubectl > ~/.local/bin/kubectl_complete-vap
  chmod +x ~/.local/bin/kubectl_complete-vap
  kubectl vap completion bash > /etc/bash_completion.d/kubectl-vap";

/// Reads and explains ValidatingAdmissionPolicies and their status.
#[derive(Debug, Parser)]
#[command(name = "kubectl-vap", bin_name = "kubectl vap", version)]
pub struct Args {
    /// Subcommand to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which policies work, which do not, and why
    ///
    /// A table, with a line for each condition that is not True. With one name: all conditions of that
    /// policy, and the warnings about its expressions.
    #[command(after_help = EXIT_HELP)]
    Status(StatusArgs),
    /// Check policies in files, without a cluster or against the schemas of one, or those of a cluster
    ///
    /// Policies are compiled and type-checked as vap-status-controller does it, against Kubernetes
    /// 1.36's own APIs and the CustomResourceDefinitions of the input. With --live, -l, a flag that names a cluster or
    /// user, or a policy as vap/NAME, the APIs, schemas, bindings and version are those of a cluster. Without files,
    /// all its policies are checked.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Run the cases of PolicyProbes in files, without a cluster
    ///
    /// Each request goes through the policy as through an API server: match constraints, bindings,
    /// params, match conditions, validations, messages and audit annotations. What exists is what the
    /// files hold: policies, bindings, params, namespaces and CustomResourceDefinitions.
    #[command(after_help = TEST_HELP)]
    Test(TestArgs),
    /// Say what policies decide about one request, and why
    ///
    /// The policies of files, or with --live, -l, a flag that names a cluster or user, or a policy as vap/NAME, those
    /// of a cluster with its bindings, params and namespaces: which are asked, what each of their expressions comes
    /// to, and what is decided of it.
    #[command(after_help = eval::HELP)]
    Eval(eval::EvalArgs),
    /// Say what policies decide about objects that exist, in a cluster or in files
    ///
    /// Each object is taken for one that is created as it is, or changed into itself. The policies are those of files,
    /// or of a cluster with its bindings, params and namespaces; the objects those of -f, or all of the cluster that
    /// a policy matches, page by page.
    #[command(after_help = audit::HELP)]
    Audit(audit::AuditArgs),
    /// Say what two versions of policies decide otherwise
    ///
    /// Over the cases of probes, objects of files, or those of a cluster: the decisions and messages that change,
    /// grouped by the validation, match condition or constraint that they come from.
    #[command(after_help = diff::HELP)]
    Diff(diff::DiffArgs),
    /// Say what a rule of `check` means, with an example and what to do about it
    ///
    /// Without RULE: all rules, one a line.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Write a completion script for a shell, or for kubectl
    ///
    /// With `kubectl` it is what kubectl asks for completions of a plugin: save it as `kubectl_complete-vap` in a
    /// directory of PATH, executable, and `kubectl vap <TAB>` works in each shell that completes kubectl. The others
    /// complete the program `kubectl-vap` itself.
    #[command(after_help = COMPLETION_HELP)]
    Completion(CompletionArgs),
    /// Completions of the last of these words, in the form that kubectl reads
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete(CompleteArgs),
}

/// `status`.
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of its own")]
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The policies to show, in full if it is one: NAME, vap/NAME, or the resource with names behind it; map/NAME,
    /// vwc/NAME, mwc/NAME and crd/NAME name what else the controller follows
    #[arg(value_name = "NAME|vap/NAME")]
    pub names: Vec<String>,
    /// Show the policies whose labels the selector selects
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// The form of the output: `wide` is the table with all its columns, whatever the width; `json`
    /// and `yaml` are stable
    #[arg(
        short,
        long,
        value_name = "FORMAT",
        default_value = "table",
        hide_default_value = true
    )]
    pub output: Output,
    /// After the list, show each policy whose status changes, until Ctrl-C
    #[arg(short, long)]
    pub watch: bool,
    /// Print rows alone: no headings, no notes, no summary
    #[arg(long)]
    pub no_headers: bool,
    /// Show what the controller has written, and judge nothing
    #[arg(long)]
    pub no_judge: bool,
    /// End with 0 also when some policy is not Ready
    #[arg(long)]
    pub exit_zero: bool,
    /// The namespace of the controller's Lease, which tells when it was last in step
    #[arg(long, value_name = "NAMESPACE", default_value = lease::DEFAULT_NAMESPACE)]
    pub controller_namespace: String,
    /// The name of the controller's Lease
    #[arg(long, value_name = "NAME", default_value = lease::DEFAULT_NAME)]
    pub lease_name: String,
    /// Which cluster to read.
    #[command(flatten)]
    pub connection: Connection,
}

impl StatusArgs {
    /// The controller's Lease, `<namespace>/<name>`.
    #[must_use]
    pub(crate) fn lease(&self) -> String {
        format!("{}/{}", self.controller_namespace, self.lease_name)
    }
}

/// `check`.
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Files, directories (all .yaml, .yml and .json files below them), or - for standard input; vap/NAME is a policy
    /// of a cluster, unless there is a file of that name
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// Ask the cluster of the kubeconfig's current context; implied by the flags that name a cluster or user
    #[arg(long)]
    pub live: bool,
    /// Check the policies of the cluster whose labels the selector selects
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions; may be given several times. Those among
    /// the input are used in any case
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// Check the manifests in the directory as an API server loads them by `staticManifestsDir`: names,
    /// params, versions, and that the set is whole
    #[arg(long = "static", value_name = "DIR")]
    pub static_dir: Option<PathBuf>,
    /// Whose answers: `truthful` warns of what may fail when evaluated; `upstream` gives the answers
    /// of kube-controller-manager, quirks included [default: truthful]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<CheckProfile>,
    /// The version of the API server that is to take the policies, 1.30 to 1.36: a function or macro
    /// that it does not have is an error
    #[arg(long, value_name = "VERSION", value_parser = versions::parse)]
    pub kubernetes_version: Option<Version>,
    /// The form of the output: text with marked lines, stable `json`, `github` annotations, or
    /// `sarif`
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: CheckOutput,
    /// Count whatever could not be checked as a finding
    #[arg(long)]
    pub strict: bool,
    /// End with 0 also when there are findings
    #[arg(long)]
    pub exit_zero: bool,
    /// The flags about findings.
    #[command(flatten)]
    pub findings: FindingArgs,
    /// Which cluster to ask.
    #[command(flatten)]
    pub connection: Connection,
}

/// `test`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TestArgs {
    /// Command in place of running probes.
    #[command(subcommand)]
    pub command: Option<TestCommand>,
    /// Files, directories (all .yaml, .yml and .json files below them), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// A file or directory with CustomResourceDefinitions; may be given several times. Those among
    /// the input are used in any case
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The form of the output: text, stable `json`, JUnit's XML, `github` annotations, or the coverage as `lcov`
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: TestOutput,
    /// Say of each case what was decided, why, and what that cost, with the values of the parts of the
    /// expressions
    #[arg(short, long)]
    pub verbose: bool,
    /// Say which parts of the policies no case evaluates: validations and match conditions both ways, terms of && and
    /// ||, conditions of ?:, tests of macros, operations and resources of rules, actions of bindings
    #[arg(long)]
    pub coverage: bool,
    /// End with 1 where less than so many percent are covered
    #[arg(long, value_name = "PERCENT", requires = "coverage", value_parser = clap::value_parser!(u8).range(..=100))]
    pub coverage_threshold: Option<u8>,
    /// Change the policies in small ways, and name the changes that no case notices
    #[arg(long)]
    pub mutants: bool,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
}

/// Commands of `test` besides running probes.
#[derive(Debug, Subcommand)]
pub enum TestCommand {
    /// Write a probe for each policy, with an allowed and a denied request for each validation
    ///
    /// The requests are found by a search over the schemas of the kinds that the policy matches, and the
    /// evaluator has confirmed each of them. Validations for which none was found are named on standard
    /// error. The probes go to standard output.
    Init(InitArgs),
    /// Write probes for a suite of kaptest, kat, the Kyverno CLI or gator
    ///
    /// The suite is the file of kaptest, Kyverno (kyverno-test.yaml) or gator (kind Suite), and for kat the directory
    /// of the policy. The probes go to standard output; what they cannot say is named on standard error with its
    /// place. A template of Gatekeeper with the engine `K8sNativeValidation` becomes a policy.
    Convert(ConvertArgs),
}

/// `test convert`.
#[derive(Debug, clap::Args)]
pub struct ConvertArgs {
    /// The suite
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// A file or directory with CustomResourceDefinitions; may be given several times
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// Write the files of the suite's policies and bindings too, so that the output can be tested by itself
    #[arg(long)]
    pub with_policies: bool,
}

/// `test init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Files or directories with policies, or - for standard input
    #[arg(required = true, value_name = "POLICY")]
    pub paths: Vec<PathBuf>,
    /// A file or directory with CustomResourceDefinitions; may be given several times. Those among
    /// the input are used in any case
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
}

/// `completion`.
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// The shell, or kubectl
    #[arg(value_name = "SHELL")]
    pub shell: CompletionShell,
}

/// `__complete`.
#[derive(Debug, clap::Args)]
pub struct CompleteArgs {
    /// Words behind `kubectl vap`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// The reader of a completion script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CompletionShell {
    /// Bash.
    Bash,
    /// Zsh.
    Zsh,
    /// Fish.
    Fish,
    /// PowerShell.
    Powershell,
    /// Kubectl, which completes its plugins by programs of their own.
    Kubectl,
}

/// `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The rule to explain, as it stands in the brackets of a finding
    #[arg(value_name = "RULE")]
    pub rule: Option<String>,
    /// The form of the output: text, or stable `json`
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: ExplainOutput,
}

/// The form of the output of `explain`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ExplainOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
}

/// The form of the output of `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For CI systems.
    Junit,
    /// For GitHub Actions.
    Github,
    /// Coverage for tools that show it, with --coverage.
    Lcov,
}

/// Whose answers `check` gives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckProfile {
    /// Errors that can occur in an evaluation.
    Truthful,
    /// Those of kube-controller-manager.
    Upstream,
}

/// The form of the output of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckOutput {
    /// For people.
    Text,
    /// For programs.
    Json,
    /// For GitHub Actions.
    Github,
    /// For code scanning.
    Sarif,
}

/// The form of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// For people, as wide as the terminal.
    #[value(hide = true)]
    Table,
    /// For people, with every column.
    Wide,
    /// For programs.
    Json,
    /// For programs.
    Yaml,
}
