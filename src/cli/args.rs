//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};

use super::check::versions;
use crate::cel::decls::Version;
use crate::status::lease;

/// Meanings of the exit statuses, for `--help`.
const EXIT_HELP: &str = "\
Exit status:
  0  every policy listed is Ready (or --exit-zero)
  1  some policy is not: Ready is False or Unknown, its status is older than its
     spec, or vap-status-controller has written none
  2  wrong use, no such policy, or the cluster cannot be read

A policy marked Stale has been changed since its status was written. NoStatus means
that no condition Ready has ever been written: is vap-status-controller running?";

/// Examples and exit statuses of `check`.
const CHECK_HELP: &str = "\
Examples:
  kubectl vap check policies/
  kubectl vap check policy.yaml --crds crds/
  kustomize build . | kubectl vap check -
  kubectl get validatingadmissionpolicies -o yaml | kubectl vap check -
  kubectl vap check policies/ --kubernetes-version 1.33
  kubectl vap check policies/ -o sarif > vap.sarif

Exit status:
  0  no errors and no warnings (or --exit-zero); notes do not count without --strict
  1  errors or warnings
  2  wrong use, or something of the input could not be read";

/// Examples and exit statuses of `test`.
const TEST_HELP: &str = "\
Examples:
  kubectl vap test policies/ probes/
  kubectl vap test policy.yaml probe.yaml --crds crds/
  kustomize build . | kubectl vap test -
  kubectl vap test policies/ -o junit > vap.xml
  kubectl vap test policies/ --coverage --mutants
  kubectl vap test init policy.yaml > probe.yaml

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
    /// Without NAME: a table, with a line for each condition that is not True. With NAME: all
    /// conditions of one policy, and the warnings about its expressions.
    #[command(after_help = EXIT_HELP)]
    Status(StatusArgs),
    /// Check policies in files, without a cluster
    ///
    /// Policies are compiled and type-checked as vap-status-controller does it, against Kubernetes
    /// 1.36's own APIs and the CustomResourceDefinitions of the input.
    #[command(after_help = CHECK_HELP)]
    Check(CheckArgs),
    /// Run the cases of PolicyProbes in files, without a cluster
    ///
    /// Each request goes through the policy as through an API server: match constraints, bindings,
    /// params, match conditions, validations, messages and audit annotations. What exists is what the
    /// files hold: policies, bindings, params, namespaces and CustomResourceDefinitions.
    #[command(after_help = TEST_HELP)]
    Test(TestArgs),
    /// Say what a rule of `check` means, with an example and what to do about it
    ///
    /// Without RULE: all rules, one a line.
    #[command(after_help = EXPLAIN_HELP)]
    Explain(ExplainArgs),
}

/// `status`.
#[derive(Debug, clap::Args)]
pub struct StatusArgs {
    /// The policy to show in full
    #[arg(value_name = "NAME")]
    pub name: Option<String>,
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
    /// Files, directories (all .yaml, .yml and .json files below them), or - for standard input
    #[arg(required = true, value_name = "PATH")]
    pub paths: Vec<PathBuf>,
    /// A file or directory with CustomResourceDefinitions; may be given several times. Those among
    /// the input are used in any case
    #[arg(long, value_name = "PATH")]
    pub crds: Vec<PathBuf>,
    /// Whose answers: `truthful` warns of what may fail when evaluated; `upstream` gives the answers
    /// of kube-controller-manager, quirks included
    #[arg(long, value_enum, default_value = "truthful", value_name = "PROFILE")]
    pub profile: CheckProfile,
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
}

/// `test`.
#[derive(Debug, clap::Args)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct TestArgs {
    /// What to do instead of running probes.
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
}

/// What `test` does besides running probes.
#[derive(Debug, Subcommand)]
pub enum TestCommand {
    /// Write a probe for each policy, with an allowed and a denied request for each validation
    ///
    /// The requests are found by a search over the schemas of the kinds that the policy matches, and the
    /// evaluator has confirmed each of them. Validations for which none was found are named on standard
    /// error. The probes go to standard output.
    Init(InitArgs),
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

/// Which cluster to read, and as whom: the flags that kubectl itself has.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Connection {
    /// The kubeconfig [default: $KUBECONFIG, ~/.kube/config, or the pod's service account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// The context in the kubeconfig [default: its current one]
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Seconds to wait for the API server
    #[arg(long, value_name = "SECONDS", default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..))]
    pub request_timeout: u64,
}
