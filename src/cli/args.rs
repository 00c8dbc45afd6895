//! The command line of `kubectl vap`: subcommands, flags and help messages.

use std::fmt;
use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::audit::args as audit;
use super::check::settings::FindingArgs;
use super::connection::Connection;
use super::diff::args as diff;
use super::eval::args as eval;
use super::terminal::ColorChoice;
use super::test::case_filter::CaseFilter;
use super::time_limit::Timeout;
use super::upgrade::args as upgrade;
use crate::status::lease;
use crate::version::{KubernetesVersion, VersionRange};

/// Examples and exit statuses of `status`.
const EXIT_HELP: &str = "\
Examples:
  kubectl vap status
  kubectl vap status vap/replica-limit
  kubectl vap status -l team=platform -w
  kubectl vap status -o json

If vap-status-controller has written no status for a policy, or only for an older spec,
the plugin evaluates the policy against the cluster's schemas; the column BY shows the
source. With --no-check, such policies are listed as NoStatus or Stale.

Exit status:
  0  every policy listed is Ready (or --exit-zero)
  1  a policy is not Ready: Ready is False, Unknown or missing
  2  usage error, policy not found, or cluster read failed";

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

A comment above a key, a list item or a document, or at the end of a line, suppresses the
findings of the listed rules there. The reason is required:
  # vap: allow undefined-field, the CRD is not in this repository

The keys of .vap.yaml are `levels` (a map from RULE to error, warn, note or allow),
`exclude` (paths, as in .gitignore), and the defaults of flags: `crds`, `baseline`,
`kubernetesVersion`, `profile` and `strict`.

Exit status:
  0  no errors and no warnings (or --exit-zero); notes do not count without --strict
  1  errors or warnings
  2  usage error, or part of the input or of the cluster could not be read";

const TEST_HELP: &str = "\
Examples:
  kubectl vap test policies/ probes/
  kubectl vap test policy.yaml probe.yaml --crds crds/
  kustomize build . | kubectl vap test -
  kubectl vap test policies/ -o junit > vap.xml
  kubectl vap test policies/ --run '^replica-limit/' --failed-only
  kubectl vap test policies/ --coverage --mutants
  kubectl vap test init policy.yaml > probe.yaml
  kubectl vap test convert kyverno-test.yaml > probe.yaml

A probe with an implied binding:
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

Expectations are strict: Deny requires a validation that evaluates to false, `error` an
evaluation error, and `applies: false` a policy that does not match. A case fails if the
API server would reject its policy or one of its sample objects.

Exit status:
  0  every case passed
  1  a case failed, or could not be evaluated
  2  usage error: part of the input could not be read, a probe is invalid, its policy is
     not in the input, there is no probe, or no case matches --run";

const EXPLAIN_HELP: &str = "\
Examples:
  kubectl vap explain
  kubectl vap explain undefined-field
  kubectl vap explain absent
  kubectl vap explain policyprobe.spec.cases
  kubectl vap explain -o json

Exit status:
  0  the rule or field was explained, or rules were listed
  2  usage error, or no such rule or field";

const LSP_HELP: &str = "\
Configure your editor to run this command as the language server for YAML files. The
documentation has settings for VS Code, Neovim, Helix, Zed and JetBrains IDEs:
https://github.com/vap-status/vap-status-controller/blob/main/docs/editors.md

Exit status:
  0  the editor ended the session
  1  the input ended without a request to shut down";

const VERSION_HELP: &str = "\
Examples:
  kubectl vap version
  kubectl vap version --client
  kubectl vap version -o json

The controller writes its version to its Lease. If the minor versions of the plugin and the
controller differ, the results of `kubectl vap check` and the conditions in the cluster can
differ too.

Exit status:
  0  the versions were shown
  2  usage error, or the cluster or the Lease could not be read";

const COMPLETION_HELP: &str = "\
Examples:
  kubectl vap completion kubectl > ~/.local/bin/kubectl_complete-vap
  chmod +x ~/.local/bin/kubectl_complete-vap
  kubectl vap completion bash > /etc/bash_completion.d/kubectl-vap";

/// Checks, tests and explains admission policies, validating and mutating.
#[derive(Debug, Parser)]
#[command(name = "kubectl-vap", bin_name = "kubectl vap", version)]
pub struct Args {
    /// Use colors: `auto` (if the output is a terminal), `always` or `never` [default: auto]
    #[arg(
        long,
        value_enum,
        value_name = "WHEN",
        default_value = "auto",
        hide_default_value = true,
        hide_possible_values = true,
        global = true,
        help_heading = "Output"
    )]
    pub color: ColorChoice,
    /// Subcommand to run.
    #[command(subcommand)]
    pub command: Command,
}

/// The subcommands of `kubectl vap`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Show which policies work, which do not, and why
    ///
    /// Prints a table, with a line for each condition that is not True. With one name, prints all conditions of that
    /// policy and the warnings about its expressions.
    #[command(after_help = EXIT_HELP)]
    Status(StatusArgs),
    /// Check policies in files or in a cluster
    ///
    /// Compiles and type-checks policies as vap-status-controller does, against the APIs of Kubernetes 1.37 and the
    /// CustomResourceDefinitions of the input. A cluster is used if an argument is --live, -l, vap/NAME, or any flag
    /// that selects a cluster or user. The APIs, schemas, bindings and version are then those of the cluster. If a
    /// cluster is used, and the arguments contain no file, no -l and no vap/NAME, all policies of the cluster are
    /// checked.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Run the cases of PolicyProbes in files, without a cluster
    ///
    /// Evaluates each request as an API server does: match constraints, bindings, params, match conditions,
    /// validations, messages and audit annotations. The cluster consists of the objects in the files: policies,
    /// bindings, params, namespaces and CustomResourceDefinitions.
    #[command(after_help = TEST_HELP)]
    Test(TestArgs),
    /// Evaluate policies for one request, with an explanation
    ///
    /// The policies come from files, or from a cluster with its bindings, params and namespaces. A cluster is used if
    /// an argument is --live, -l, vap/NAME, or any flag that selects a cluster or user. Shows which policies match, the
    /// value of each expression, and the decision.
    #[command(after_help = eval::HELP)]
    Eval(eval::EvalArgs),
    /// Evaluate policies for existing objects, in a cluster or in files
    ///
    /// Treats each object as a CREATE request, or as an UPDATE without changes. The policies come from files, or from a
    /// cluster with its bindings, params and namespaces. The objects are those of -f, or all objects of the cluster
    /// that a policy matches, read page by page.
    #[command(after_help = audit::HELP)]
    Audit(audit::AuditArgs),
    /// Compare the decisions of two policy versions
    ///
    /// Evaluates both versions for the cases of probes, for objects in files, or for those of a cluster. Lists the
    /// decisions and messages that change, grouped by the validation, match condition or constraint that causes them.
    #[command(after_help = diff::HELP)]
    Diff(diff::DiffArgs),
    /// Show the effects of a Kubernetes upgrade on policies
    ///
    /// Evaluates each policy under two Kubernetes versions, for objects, probe cases and generated requests. Lists the
    /// requests whose decision changes, the policies that only one version accepts, and policies for which the effect
    /// is unknown. Each change has its cause, a request that shows it, and a fix if there is one.
    #[command(after_help = upgrade::HELP)]
    UpgradeCheck(upgrade::UpgradeArgs),
    /// Explain a rule of `check`, or a field of PolicyProbe
    ///
    /// Prints the levels, objects and versions of a rule, and shows an example and a remedy. Without RULE, lists all
    /// rules, one per line. For search words, lists the rules that contain them. For KIND.FIELD, describes a field of
    /// the kinds of vap-status.dev, such as PolicyProbe, as `kubectl explain` does, but without a cluster.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
    /// Start the language server for editors, on standard input and output
    ///
    /// An editor starts this command and sends messages of the Language Server Protocol. The server reports the
    /// findings of `kubectl vap check` while you type, and completes and explains the expressions in policies,
    /// bindings, webhook configurations, CustomResourceDefinitions and probes. It reads the manifests and the .vap.yaml
    /// of the workspace. A cluster is used if an argument is --live, or any flag that selects a cluster or user. The
    /// APIs, schemas and version are then those of the cluster, and its bindings and params also apply. The server
    /// reads them again when a file is saved.
    #[command(after_help = LSP_HELP)]
    Lsp(LspArgs),
    /// Show the versions of the plugin, the controller and the API server
    #[command(after_help = VERSION_HELP)]
    Version(VersionArgs),
    /// Write a completion script for a shell, or for kubectl
    ///
    /// With `kubectl`, writes the program that kubectl calls to complete the words of a plugin. Save it as the
    /// executable file `kubectl_complete-vap` in a directory of PATH: `kubectl vap <TAB>` then works in each shell with
    /// completion for kubectl. With the name of a shell, writes a script that completes the program `kubectl-vap`.
    #[command(after_help = COMPLETION_HELP)]
    Completion(CompletionArgs),
    /// Print completions of the last word, in the format that kubectl reads
    #[command(name = "__complete", hide = true, disable_help_flag = true)]
    Complete(CompleteArgs),
}

/// The arguments of `lsp`.
#[derive(Debug, clap::Args)]
pub struct LspArgs {
    /// The flag that selects whether a cluster is used.
    #[command(flatten)]
    pub cluster: eval::ClusterArgs,
    /// The cluster and the user.
    #[command(flatten)]
    pub connection: Connection,
}

/// The arguments of `status`.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The policies to show, as NAME, vap/NAME, or the resource followed by names. A single policy is shown with all
    /// details. map/NAME, vwc/NAME, mwc/NAME and crd/NAME show objects of the other kinds that the controller watches
    #[arg(value_name = "NAME|vap/NAME")]
    pub names: Vec<String>,
    /// Show the policies whose labels match the selector
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// The output format in place of a table that fits the terminal: `wide` (a table with all columns), `json` or
    /// `yaml` (both stable), or `name` (the resource and name of each policy)
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
    /// Print only the rows of the table, without headings, notes and summary
    #[arg(long)]
    pub no_headers: bool,
    /// Show only statuses that the controller has written; do not evaluate policies without a current status
    #[arg(long)]
    pub no_check: bool,
    /// Exit 0 even if a policy is not Ready
    #[arg(long)]
    pub exit_zero: bool,
    /// The controller's Lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// The flags for the connection to a cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The flags for the controller's Lease.
#[derive(Debug, clap::Args)]
pub struct LeaseArgs {
    /// The namespace of the controller's Lease. The Lease contains the time when the controller was last in sync
    #[arg(long, value_name = "NAMESPACE", default_value = lease::DEFAULT_NAMESPACE)]
    pub controller_namespace: String,
    /// The name of the controller's Lease
    #[arg(long, value_name = "NAME", default_value = lease::DEFAULT_NAME)]
    pub lease_name: String,
}

impl fmt::Display for LeaseArgs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.controller_namespace, self.lease_name)
    }
}

/// The arguments of `version`.
#[derive(Debug, clap::Args)]
pub struct VersionArgs {
    /// Show only the version of the plugin; do not contact a cluster
    #[arg(long)]
    pub client: bool,
    /// The output format.
    #[command(flatten)]
    pub output: eval::OutputArgs,
    /// The controller's Lease.
    #[command(flatten)]
    pub lease: LeaseArgs,
    /// The flags for the connection to a cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The arguments of `check`.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
#[derive(Debug, clap::Args)]
pub struct CheckArgs {
    /// Files, directories (all .yaml, .yml and .json files in them), or - for standard input; vap/NAME is a policy of a
    /// cluster, unless a file has that name
    #[arg(value_name = "PATH|vap/NAME")]
    pub paths: Vec<PathBuf>,
    /// The flag that selects whether a cluster is used.
    #[command(flatten)]
    pub cluster: eval::ClusterArgs,
    /// Check the policies of the cluster whose labels match the selector
    #[arg(short = 'l', long, value_name = "SELECTOR")]
    pub selector: Option<String>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// Check that an API server can use the directory as its `staticManifestsDir`: names, params and versions must be
    /// allowed, and each binding must have a policy
    #[arg(long = "static", value_name = "DIR")]
    pub static_dir: Option<PathBuf>,
    /// Checking semantics: `truthful` warns of expressions that may fail when evaluated; `upstream` reports exactly
    /// what kube-controller-manager reports [default: truthful]
    #[arg(long, value_enum, value_name = "PROFILE")]
    pub profile: Option<CheckProfile>,
    /// The version of the target API server, 1.30 to 1.37, such as 1.33 or 1.36.4. Expressions are checked as in this
    /// version: a function or macro that it lacks is an error. Its schemas are used if no cluster is read. With a range,
    /// such as 1.33-1.37, objects are checked for each version of the range [default: the version of the cluster or,
    /// without a cluster, 1.37]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<VersionRange>,
    /// The output format: `text` (with marked lines), `concise` (one line per finding), `json` (stable), `github`
    /// (annotations), `sarif`, `gitlab` (a code quality report), or `junit`
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: CheckOutput,
    /// Print only the number of findings for each rule, and how many of them --fix can fix
    #[arg(long)]
    pub statistics: bool,
    /// Print only a table with the estimated cost of each expression, and its share of the API server's limit
    #[arg(long, conflicts_with = "statistics")]
    pub costs: bool,
    /// Check again whenever a file changes, until interrupted. Requires files as input, and the format `text` or
    /// `concise`
    #[arg(short, long, conflicts_with_all = ["fix", "diff", "write_baseline", "live"])]
    pub watch: bool,
    /// Also exit 1 if there are notes about parts of the input that could not be checked
    #[arg(long)]
    pub strict: bool,
    /// Exit 0 even if there are findings
    #[arg(long)]
    pub exit_zero: bool,
    /// The flags for the levels, fixes and baseline of findings.
    #[command(flatten)]
    pub findings: FindingArgs,
    /// The flags for the connection to a cluster.
    #[command(flatten)]
    pub connection: Connection,
}

/// The arguments of `test`.
#[expect(clippy::struct_excessive_bools, reason = "each is a separate flag")]
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TestArgs {
    /// A command other than running probes.
    #[command(subcommand)]
    pub command: Option<TestCommand>,
    /// Files, directories (all .yaml, .yml and .json files in them), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// The version of the API server that evaluates the requests, 1.30 to 1.37, such as 1.33 or 1.36.4
    /// [default: `kubernetesVersion` of .vap.yaml, or 1.37]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<KubernetesVersion>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The output format: `text`, `json` (stable), `junit`, `github` (annotations), or `lcov` (only the coverage)
    #[arg(
        short,
        long,
        value_enum,
        value_name = "FORMAT",
        default_value = "text",
        hide_default_value = true
    )]
    pub output: TestOutput,
    /// Show the decision of each case, its reason and its cost, with the values of subexpressions
    #[arg(short, long)]
    pub verbose: bool,
    /// Run only the cases whose name PROBE/CASE matches the regular expression, in Go's syntax
    #[arg(long, value_name = "REGEX", value_parser = CaseFilter::parse, conflicts_with = "coverage_threshold")]
    pub run: Option<CaseFilter>,
    /// In the formats `text` and `json`, show only the cases that did not pass. The totals count all cases
    #[arg(long)]
    pub failed_only: bool,
    /// In the formats `text` and `json`, show the duration of each case. The format `junit` always shows durations
    #[arg(long)]
    pub durations: bool,
    /// Measure coverage, and list the parts of policies that no case covers: true and false results of validations and
    /// match conditions; operands of && and ||; conditions of ?:; predicates of macros; operations and resources of
    /// rules; and actions of bindings. A policy without a probe has no covered parts
    #[arg(long)]
    pub coverage: bool,
    /// Exit 1 if less than this percentage is covered
    #[arg(long, value_name = "PERCENT", requires = "coverage", value_parser = clap::value_parser!(u8).range(..=100))]
    pub coverage_threshold: Option<u8>,
    /// Mutation testing: make small changes to the policies, and list the changes that no case detects
    #[arg(long)]
    pub mutants: bool,
    /// The time limit of an evaluation.
    #[command(flatten)]
    pub timeout: Timeout,
}

const INIT_HELP: &str = "\
Exit status:
  0  each validation has an allowed and a denied request
  1  no allowed or no denied request was found for a validation, or the input has a
     MutatingAdmissionPolicy, for which no requests are generated
  2  usage error, invalid input, or no ValidatingAdmissionPolicy in the input";

const CONVERT_HELP: &str = "\
Exit status:
  0  the whole suite was converted
  1  a part of the suite cannot be converted
  2  usage error, or the suite cannot be read";

/// Commands of `test` other than running probes.
#[derive(Debug, Subcommand)]
pub enum TestCommand {
    /// Write a probe for each policy, with an allowed and a denied request for each validation
    ///
    /// Generates the requests from the schemas of the kinds that the policy matches, and confirms each request with the
    /// evaluator. For numbers and quantities, adds requests at the limits: the last allowed and the first denied value.
    /// Uses the params in the input, if there are any. Writes the probes to standard output. If no request was found for
    /// a validation, prints the validation and the reason to standard error.
    #[command(after_help = INIT_HELP)]
    Init(InitArgs),
    /// Convert a test suite of kaptest, kat, the Kyverno CLI or gator to probes
    ///
    /// SUITE is the suite file of kaptest, of the Kyverno CLI (kyverno-test.yaml) or of gator (kind Suite). For kat, it
    /// is the directory of the policy. Writes the probes to standard output. Lists on standard error the parts that
    /// cannot be converted, with their locations. A Gatekeeper template with the engine `K8sNativeValidation` becomes a
    /// policy.
    #[command(after_help = CONVERT_HELP)]
    Convert(ConvertArgs),
}

/// The arguments of `test convert`.
#[derive(Debug, clap::Args)]
pub struct ConvertArgs {
    /// The suite: a directory for kat, a file for the other tools
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// A file or directory with CustomResourceDefinitions (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// Also write the policies and bindings of the suite, so that the output is self-contained
    #[arg(long)]
    pub with_policies: bool,
    /// The version of the API server that evaluates the requests, 1.30 to 1.37, such as 1.33 or 1.36.4
    /// [default: `kubernetesVersion` of .vap.yaml, or 1.37]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<KubernetesVersion>,
}

/// The arguments of `test init`.
#[derive(Debug, clap::Args)]
pub struct InitArgs {
    /// Files or directories with policies, or - for standard input
    #[arg(required = true, value_name = "POLICY")]
    pub paths: Vec<PathBuf>,
    /// A file or directory with CustomResourceDefinitions, in addition to those in the input (repeatable)
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// The version of the API server that evaluates the requests, 1.30 to 1.37, such as 1.33 or 1.36.4
    /// [default: `kubernetesVersion` of .vap.yaml, or 1.37]
    #[arg(long, value_name = "VERSION")]
    pub kubernetes_version: Option<KubernetesVersion>,
}

/// The arguments of `completion`.
#[derive(Debug, clap::Args)]
pub struct CompletionArgs {
    /// The program that uses the script: a shell or kubectl
    #[arg(value_name = "SHELL")]
    pub shell: CompletionShell,
}

/// The arguments of `__complete`.
#[derive(Debug, clap::Args)]
pub struct CompleteArgs {
    /// The words after `kubectl vap`
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub words: Vec<String>,
}

/// The target of a completion script.
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
    /// The plugin mechanism of kubectl.
    Kubectl,
}

/// The arguments of `explain`.
#[derive(Debug, clap::Args)]
pub struct ExplainArgs {
    /// The rule to explain, as shown in the brackets of a finding; words to search in the rules; or a kind or field of
    /// vap-status.dev, such as policyprobe.spec.cases
    #[arg(value_name = "RULE|WORD|KIND.FIELD")]
    pub words: Vec<String>,
    /// The output format.
    #[command(flatten)]
    pub output: eval::OutputArgs,
}

/// The output format of `test`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TestOutput {
    /// Human-readable.
    Text,
    /// Machine-readable.
    Json,
    /// For CI systems.
    Junit,
    /// For GitHub Actions.
    Github,
    /// Coverage in the format of lcov, with --coverage.
    Lcov,
}

/// The checking semantics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckProfile {
    /// Reports errors that can occur in an evaluation.
    Truthful,
    /// Reports exactly what kube-controller-manager reports.
    Upstream,
}

/// The output format of `check`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CheckOutput {
    /// Human-readable.
    Text,
    /// Machine-readable.
    Json,
    /// For GitHub Actions.
    Github,
    /// For code scanning.
    Sarif,
    /// One line for each finding.
    Concise,
    /// For GitLab's code quality reports.
    Gitlab,
    /// For CI systems.
    Junit,
}

/// The output format of `status`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Output {
    /// Human-readable, as wide as the terminal.
    #[value(hide = true)]
    Table,
    /// Human-readable, with every column.
    Wide,
    /// Machine-readable.
    Json,
    /// Machine-readable.
    Yaml,
    /// Resource names, one per line.
    Name,
}
