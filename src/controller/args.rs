//! The command line of the controller. Each option can also be set by an environment variable.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::time::Duration;

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};

use super::clear;
use super::context::Settings;
use super::election::Election;
use crate::cluster::duration;
use crate::controller::leadership::lease::Timing;
use crate::policy::analysis::Profile;
use crate::policy::subject::SubjectKind;
use crate::server::http_probe::Target;
use crate::status::condition::ConditionType;
use crate::status::exclusion::{Exclusion, LabelPattern, NamePattern};
use crate::status::lease;
use crate::telemetry::logging::{DEFAULT_FILTER, LogFormat};

/// Checks every ValidatingAdmissionPolicy of a cluster and writes the result to its status
///
/// If a flag with one value is repeated, the last one wins.
#[derive(Debug, Parser)]
#[command(
    name = "vap-status-controller",
    version,
    max_term_width = 100,
    args_override_self = true
)]
pub struct Arguments {
    /// Subcommand to run.
    #[command(subcommand)]
    pub command: Command,
}

/// Subcommands of the program.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Watch policies and keep their statuses up to date
    Run(Box<RunArguments>),
    /// Remove the controller's fields from the statuses of all policies and probes, before uninstalling
    ///
    /// Stop the controller first: otherwise it would write the fields again. While the Lease shows a running
    /// controller, nothing is removed. Fields that another manager also owns remain, for example if kube-controller-manager
    /// has set the same value. The exit status is 1 if a status could not be cleared.
    Clear(ClearArguments),
    /// Request a URL until the response is a success, for `helm test` and health checks of containers
    ///
    /// Prints the response. The exit status is 1 if there is no response with a status of 200 to 299 within the timeout.
    Probe(ProbeArguments),
}

/// Options of `probe`.
#[derive(Args, Clone, Debug)]
pub struct ProbeArguments {
    /// The URL, such as `http://localhost:8080/readyz`
    #[arg(value_name = "URL")]
    pub url: Target,

    /// How long to repeat the request; each request takes at most 5 s
    #[arg(long, value_parser = duration::parse, default_value = "30s", value_name = "DURATION")]
    pub timeout: Duration,
}

/// Options of `clear`.
#[derive(Args, Clone, Debug)]
pub struct ClearArguments {
    /// Remove the fields even if a controller may be running
    #[arg(long)]
    pub force: bool,

    /// The Lease of the controller
    #[command(flatten)]
    pub lease: LeaseArguments,
}

/// Options of the Lease.
#[derive(Args, Clone, Debug)]
pub struct LeaseArguments {
    /// Name of the Lease
    #[arg(
        long,
        env = "VAP_LEASE_NAME",
        default_value = lease::DEFAULT_NAME,
        value_name = "NAME"
    )]
    pub lease_name: String,

    /// Namespace of the Lease; the default is the namespace of the pod (`POD_NAMESPACE`), or else vap-status-system
    #[arg(long, env = "VAP_LEASE_NAMESPACE", value_name = "NAMESPACE")]
    pub lease_namespace: Option<String>,
}

impl LeaseArguments {
    fn namespace(&self) -> String {
        let of_pod = || {
            std::env::var("POD_NAMESPACE")
                .ok()
                .filter(|name| !name.is_empty())
        };
        let namespace = self.lease_namespace.clone().or_else(of_pod);
        namespace.unwrap_or_else(|| lease::DEFAULT_NAMESPACE.to_owned())
    }
}

impl ClearArguments {
    /// Returns the settings of `clear`.
    #[must_use]
    pub fn options(&self) -> clear::Options {
        clear::Options {
            lease_namespace: self.lease.namespace(),
            lease_name: self.lease.lease_name.clone(),
            is_forced: self.force,
        }
    }
}

/// Options of `run`.
#[derive(Args, Clone, Debug)]
pub struct RunArguments {
    /// Address of /livez, /readyz and /metrics; `[::]` accepts IPv6 and IPv4, and is 0.0.0.0 on machines without IPv6
    #[arg(
        long,
        env = "VAP_LISTEN",
        default_value = "[::]:8080",
        value_name = "ADDRESS"
    )]
    pub listen: SocketAddr,

    /// Separate address of /metrics, which is then not served at --listen
    #[arg(long, env = "VAP_METRICS_LISTEN", value_name = "ADDRESS")]
    pub metrics_listen: Option<SocketAddr>,

    /// Conditions that make Ready False if they are False, separated by commas
    #[arg(
        long,
        env = "VAP_READY_REQUIRES",
        value_name = "CONDITIONS",
        value_delimiter = ',',
        value_parser = required_condition,
        default_value = "Compiled,ResourcesMatched,ParamsResolved,TypeChecked,ProbesPassed"
    )]
    pub ready_requires: Vec<ConditionType>,

    /// Semantics of the type checker: those of this controller, or those of kube-controller-manager including its
    /// quirks
    #[arg(long, env = "VAP_PROFILE", value_enum, default_value_t)]
    pub profile: ProfileArgument,

    /// Interval at which discovery is polled; CRD changes are detected immediately
    #[arg(long, env = "VAP_REFRESH_INTERVAL", value_parser = duration::parse, default_value = "10s",
          value_name = "DURATION")]
    pub refresh_interval: Duration,

    /// How long a watch request lasts before it is renewed; the renewal detects dead connections
    #[arg(long, env = "VAP_WATCH_TIMEOUT", value_parser = duration::parse, default_value = "60s",
          value_name = "DURATION")]
    pub watch_timeout: Duration,

    /// Policies to exclude, by name, separated by commas; `*` matches any characters
    #[arg(
        long,
        env = "VAP_EXCLUDE_NAMES",
        value_name = "NAMES",
        value_delimiter = ','
    )]
    pub exclude_names: Vec<NamePattern>,

    /// Policies to exclude, by a label selector such as `vendor in (a,b)`
    #[arg(long, env = "VAP_EXCLUDE_SELECTOR", value_name = "SELECTOR")]
    pub exclude_selector: Option<LabelPattern>,

    /// Resources to watch in addition to ValidatingAdmissionPolicies, separated by commas; each requires the
    /// `ClusterRole` vap-status-controller-RESOURCE
    #[arg(
        long,
        env = "VAP_FOLLOW",
        value_parser = opt_in_kinds(),
        value_name = "RESOURCES",
        value_delimiter = ','
    )]
    pub follow: Vec<SubjectKind>,

    /// How many statuses to write concurrently
    #[arg(long, env = "VAP_CONCURRENCY", default_value_t = 32, value_name = "N",
          value_parser = clap::value_parser!(u16).range(1..=256))]
    pub concurrency: u16,

    /// How long to wait at startup for an API server that does not respond
    #[arg(long, env = "VAP_STARTUP_TIMEOUT", value_parser = duration::parse, default_value = "60s",
          value_name = "DURATION")]
    pub startup_timeout: Duration,

    /// Write only while holding a Lease, so that several replicas can run
    #[arg(long, env = "VAP_LEADER_ELECT")]
    pub leader_elect: bool,

    /// The Lease
    #[command(flatten)]
    pub lease: LeaseArguments,

    /// How long other replicas wait after the last renewal before they acquire the Lease
    #[arg(long, env = "VAP_LEASE_DURATION", value_parser = duration::parse, default_value = "15s",
          value_name = "DURATION")]
    pub lease_duration: Duration,

    /// How long the leader tries to renew the Lease before it exits
    #[arg(long, env = "VAP_RENEW_DEADLINE", value_parser = duration::parse, default_value = "10s",
          value_name = "DURATION")]
    pub renew_deadline: Duration,

    /// Interval at which the leader renews the Lease
    #[arg(long, env = "VAP_RETRY_PERIOD", value_parser = duration::parse, default_value = "2s",
          value_name = "DURATION")]
    pub retry_period: Duration,

    /// Format of log lines
    #[arg(long, env = "VAP_LOG_FORMAT", value_enum, default_value_t)]
    pub log_format: LogFormat,

    /// Log filter, as in `info,vap_status_controller=debug`
    #[arg(long, env = "RUST_LOG", default_value = DEFAULT_FILTER, value_name = "FILTER",
          hide_default_value = true)]
    pub log_filter: String,
}

/// Profiles of the type checker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum ProfileArgument {
    /// Checks every expression and every kind; does not warn about expressions that never fail at runtime
    #[default]
    Truthful,
    /// Reports the same warnings as kube-controller-manager
    Upstream,
}

impl RunArguments {
    /// Returns the settings of the controller.
    #[must_use]
    pub fn settings(&self) -> Settings {
        Settings {
            profile: match self.profile {
                ProfileArgument::Truthful => Profile::Truthful,
                ProfileArgument::Upstream => Profile::Upstream,
            },
            ready_requires: self.ready_requires.iter().copied().collect::<BTreeSet<_>>(),
            refresh_interval: self.refresh_interval,
            exclusion: Exclusion::new(&self.exclude_names, self.exclude_selector.as_ref()),
            followed: self.follow.iter().copied().collect(),
            concurrency: usize::from(self.concurrency),
            watch_timeout: self.watch_timeout,
        }
    }
}

impl RunArguments {
    /// Returns the leader election of the instance `identity`. `None` without `--leader-elect`.
    ///
    /// # Errors
    /// Returns an error message if the durations would allow two leaders at once.
    pub fn election(&self, identity: String) -> Result<Option<Election>, String> {
        let timing = Timing {
            lease_duration: self.lease_duration,
            renew_deadline: self.renew_deadline,
            retry_period: self.retry_period,
        };
        timing.check()?;
        Ok(self.leader_elect.then(|| Election {
            namespace: self.lease.namespace(),
            name: self.lease.lease_name.clone(),
            identity,
            timing,
        }))
    }
}

fn opt_in_kinds() -> impl TypedValueParser<Value = SubjectKind> {
    let values =
        SubjectKind::opt_in().map(|kind| PossibleValue::new(kind.plural()).help(help(kind)));
    PossibleValuesParser::new(values)
        .try_map(|plural| SubjectKind::from_plural(&plural).ok_or("is not a known resource"))
}

/// Returns the help text for a value of `--follow`. The text of ValidatingAdmissionPolicies is empty, since they are
/// always watched.
const fn help(kind: SubjectKind) -> &'static str {
    match kind {
        SubjectKind::ValidatingAdmissionPolicy => "",
        SubjectKind::MutatingAdmissionPolicy => {
            "`MutatingAdmissionPolicies`, if the cluster serves them"
        }
        SubjectKind::ValidatingWebhookConfiguration => {
            "`ValidatingWebhookConfigurations`: the match conditions and rules of webhooks"
        }
        SubjectKind::MutatingWebhookConfiguration => {
            "`MutatingWebhookConfigurations`: the match conditions and rules of webhooks"
        }
        SubjectKind::CustomResourceDefinition => {
            "`CustomResourceDefinitions`: their validation rules"
        }
    }
}

/// Parses a value of `--ready-requires`: any condition except `Ready`.
fn required_condition(name: &str) -> Result<ConditionType, String> {
    let may_count = || {
        ConditionType::ALL
            .into_iter()
            .filter(|type_| *type_ != ConditionType::Ready)
    };
    may_count()
        .find(|type_| type_.as_str() == name)
        .ok_or_else(|| {
            let names: Vec<&str> = may_count().map(ConditionType::as_str).collect();
            format!("expected one of {}", names.join(", "))
        })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    fn run(options: &[&str]) -> Result<RunArguments, String> {
        let arguments = ["vap-status-controller", "run"].iter().chain(options);
        match Arguments::try_parse_from(arguments) {
            Ok(Arguments {
                command: Command::Run(run),
            }) => Ok(*run),
            Ok(other) => panic!("{other:?}"),
            Err(error) => Err(error.to_string()),
        }
    }

    #[test]
    fn arguments_pass_assertions_of_clap() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn arguments_without_options_have_defaults() {
        let settings = run(&[]).unwrap().settings();
        assert_eq!(settings.profile, Profile::Truthful);
        assert_eq!(settings.refresh_interval, Duration::from_secs(10));
        assert_eq!(settings.ready_requires, ConditionType::COUNTING.into());
    }

    #[test]
    fn list_of_conditions_is_accepted_by_option_ready_requires() {
        let run = run(&[
            "--ready-requires",
            "Compiled,ParamsResolved",
            "--profile=upstream",
        ])
        .unwrap();
        assert_eq!(
            run.ready_requires,
            [ConditionType::Compiled, ConditionType::ParamsResolved]
        );
        assert_eq!(run.settings().profile, Profile::Upstream);
    }

    #[test]
    fn invalid_option_values_are_rejected() {
        for (options, text) in [
            (
                ["--ready-requires", "Ready"],
                "expected one of Compiled, ResourcesMatched, ParamsResolved, TypeChecked, \
                 ProbesPassed, Bound",
            ),
            (
                ["--ready-requires", "compiled"],
                "expected one of Compiled,",
            ),
            (
                ["--refresh-interval", "10"],
                "`10` needs one of the units ms, s and m, as in `10s`",
            ),
            (
                ["--refresh-interval", "s"],
                "`s` is not a duration such as `10s` or `2m`",
            ),
            (
                ["--refresh-interval", "1ms"],
                "`1ms` is too short; the minimum is 100ms",
            ),
            (["--listen", "8080"], "invalid socket address"),
            (["--concurrency", "0"], "0 is not in 1..=256"),
        ] {
            let error = run(&options).unwrap_err();
            assert!(error.contains(text), "{error}");
        }
    }

    #[test]
    fn last_of_repeated_flags_wins() {
        let repeated = run(&[
            "--listen=0.0.0.0:1",
            "--listen=[::]:2",
            "--leader-elect",
            "--leader-elect",
            "--log-format=text",
            "--log-format=json",
            "--follow=mutatingadmissionpolicies",
            "--follow=customresourcedefinitions",
        ])
        .unwrap();
        assert_eq!(repeated.listen, "[::]:2".parse().unwrap());
        assert_eq!(repeated.log_format, LogFormat::Json);
        assert!(repeated.leader_elect);
        // The values of a repeated list flag are combined.
        assert_eq!(repeated.follow.len(), 2);
        let command = ["vap-status-controller", "clear", "--lease-name=a"];
        let command = command.iter().chain(&["--lease-name=b"]);
        let parsed = Arguments::try_parse_from(command).unwrap().command;
        assert!(matches!(parsed, Command::Clear(clear) if clear.lease.lease_name == "b"));
    }

    #[test]
    fn probe_command_has_url_and_timeout() {
        let command = ["vap-status-controller", "probe", "http://[::1]:8080/readyz"];
        let command = command.iter().chain(&["--timeout=2m"]);
        let parsed = Arguments::try_parse_from(command).unwrap().command;
        let Command::Probe(probe) = parsed else {
            panic!("{parsed:?}")
        };
        assert_eq!(probe.url.to_string(), "http://[::1]:8080/readyz");
        assert_eq!(probe.timeout, Duration::from_secs(120));
        Arguments::try_parse_from(["vap-status-controller", "probe"]).unwrap_err();
    }

    #[test]
    fn durations_must_have_a_unit_and_be_in_range() {
        for (text, millis) in [("500ms", 500), ("10s", 10_000), ("2m", 120_000)] {
            assert_eq!(duration::parse(text), Ok(Duration::from_millis(millis)));
        }
        assert!(duration::parse("99999999999s").is_err());
        assert!(duration::parse("1é").is_err());
    }

    #[test]
    fn options_of_run_are_passed_to_settings() {
        let run = run(&[
            "--exclude-names=a*,b",
            "--exclude-selector=team=x",
            "--follow=mutatingadmissionpolicies,customresourcedefinitions",
            "--concurrency=256",
            "--watch-timeout=7s",
            "--refresh-interval=8s",
        ])
        .unwrap();
        let settings = run.settings();
        assert_eq!(settings.concurrency, 256);
        assert_eq!(settings.watch_timeout, Duration::from_secs(7));
        assert_eq!(settings.refresh_interval, Duration::from_secs(8));
        let followed = [
            SubjectKind::MutatingAdmissionPolicy,
            SubjectKind::CustomResourceDefinition,
        ];
        assert_eq!(settings.followed, followed.into());
        let expected = Exclusion::new(&run.exclude_names, run.exclude_selector.as_ref());
        assert_eq!(format!("{:?}", settings.exclusion), format!("{expected:?}"));
        assert_ne!(
            format!("{:?}", settings.exclusion),
            format!("{:?}", Exclusion::default())
        );
    }

    #[test]
    fn follow_option_accepts_only_opt_in_kinds() {
        for kind in SubjectKind::opt_in() {
            let option = format!("--follow={}", kind.plural());
            assert_eq!(run(&[&option]).unwrap().follow, [kind]);
            let help = help(kind).to_lowercase();
            assert!(help.contains(kind.plural()), "{help}");
        }
        run(&["--follow=validatingadmissionpolicies"]).unwrap_err();
        assert_eq!(help(SubjectKind::ValidatingAdmissionPolicy), "");
    }

    #[test]
    fn leader_election_requires_option_and_safe_timing() {
        let election = |options: &[&str]| run(options).unwrap().election("me".to_owned());
        assert!(election(&[]).unwrap().is_none());
        let options = [
            "--leader-elect",
            "--lease-namespace=there",
            "--lease-name=it",
            "--lease-duration=30s",
            "--renew-deadline=20s",
            "--retry-period=5s",
        ];
        let elected = election(&options).unwrap().unwrap();
        assert_eq!(
            (&*elected.namespace, &*elected.name, &*elected.identity),
            ("there", "it", "me")
        );
        assert_eq!(elected.timing.lease_duration, Duration::from_secs(30));
        assert_eq!(elected.timing.renew_deadline, Duration::from_secs(20));
        assert_eq!(elected.timing.retry_period, Duration::from_secs(5));
        // The durations are checked even without `--leader-elect`.
        for (option, error) in [
            (
                "--lease-duration=15500ms",
                "--lease-duration must be a whole number of seconds",
            ),
            (
                "--lease-duration=10s",
                "--lease-duration must be longer than --renew-deadline",
            ),
            (
                "--retry-period=9s",
                "--renew-deadline must be longer than 1.2 times --retry-period",
            ),
        ] {
            assert_eq!(election(&[option]).unwrap_err(), error);
        }
        election(&["--lease-duration=11s", "--retry-period=8s"]).unwrap();
    }

    #[test]
    fn options_of_clear_command_are_force_and_name_of_lease() {
        for (arguments, is_forced) in [(&["--force"][..], true), (&[], false)] {
            let command = ["vap-status-controller", "clear", "--lease-name=it"];
            let command = command.iter().chain(&["--lease-namespace=there"]);
            let parsed = Arguments::try_parse_from(command.chain(arguments)).unwrap();
            let Command::Clear(clear) = parsed.command else {
                panic!("{parsed:?}")
            };
            let options = clear.options();
            assert_eq!(options.is_forced, is_forced);
            assert_eq!(options.lease_name, "it");
            assert_eq!(options.lease_namespace, "there");
        }
    }
}
