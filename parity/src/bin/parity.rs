//! Compares our engine with upstream's code. The subcommands and file formats are those of the oracle, which runs
//! upstream's code. `parity/oracle/README.md` documents the formats.

use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;

use anyhow::{Context, Result, anyhow};
use clap::{Args, Parser, Subcommand, ValueEnum};
use parity::cases;
use parity::coverage::{Coverage, Inputs};
use parity::documents;
use parity::schemas::Schemas;
use parity::{
    admit, bench, compile, custom_resources, decided, decl, eval, five_kinds, mutate, pair,
    recorded, rules, share, typecheck, witnesses, write_line, yaml,
};
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::compile::CompileMode;
use vap_status_controller::version::KubernetesVersion;

/// Run our engine with the subcommands of the oracle, and compare the results of both.
#[derive(Parser)]
#[command(name = "parity")]
struct Cli {
    /// The version of the API server to reproduce.
    #[arg(long, global = true, value_name = "VERSION", default_value = "1.36.3")]
    kubernetes_version: KubernetesVersion,
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Type-check policies, one JSON object per line.
    Typecheck {
        #[command(flatten)]
        schemas: SchemaArgs,
        /// Checking semantics: upstream's (with its quirks), or those of the controller.
        #[arg(long, value_enum, default_value_t = ProfileArg::Upstream)]
        profile: ProfileArg,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// List upstream's warnings that the truthful profile omits, and the rule that explains each omission. Fail if an
    /// omission has no rule.
    Differences {
        #[command(flatten)]
        schemas: SchemaArgs,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Compile policies, one JSON object per line.
    Compile {
        /// Compile as on creation (`new`), as in the admission plugin (`stored`), or in both modes.
        #[arg(long, value_enum, default_value_t = ModeArg::New)]
        mode: ModeArg,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Evaluate admission cases, one JSON object per line.
    Admit {
        #[command(flatten)]
        schemas: SchemaArgs,
        /// Files of cases, one JSON object per line, or - for standard input.
        #[arg(required = true, value_name = "CASES")]
        paths: Vec<PathBuf>,
    },
    /// Evaluate the cases of a corpus whose decisions are known.
    Decided {
        /// The directory of the corpus: policies, and cases/*.jsonl.
        #[arg(long, value_name = "DIR")]
        corpus: PathBuf,
        /// Only print the cases, in the format that `admit` and `bench admit` read.
        #[arg(long)]
        print: bool,
    },
    /// Print policies whose rules match five kinds each, for `bench typecheck`.
    FiveKinds {
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Evaluate single expressions, one JSON object per line.
    Eval {
        /// Files of cases, one JSON object per line.
        #[arg(required = true, value_name = "CASES")]
        cases: Vec<PathBuf>,
    },
    /// Measure our engine.
    Bench {
        stage: StageArg,
        #[command(flatten)]
        schemas: SchemaArgs,
        #[command(flatten)]
        time: TimeArgs,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Measure the oracle and our engine in alternating runs.
    BenchPair {
        stage: StageArg,
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        #[command(flatten)]
        schemas: SchemaArgs,
        #[command(flatten)]
        time: TimeArgs,
        /// Number of runs of each program.
        #[arg(long, default_value_t = 3)]
        rounds: usize,
        /// Fail if our engine is not at least this many times faster.
        #[arg(long, value_name = "RATIO")]
        at_least: Option<f64>,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Summarize the declared types of the kinds that CustomResourceDefinitions define, in the format of `oracle decl
    /// --summary`.
    Decl {
        /// Directory of CustomResourceDefinition files.
        #[arg(long, value_name = "DIR")]
        crds: PathBuf,
    },
    /// Generate policies, CustomResourceDefinitions and cases from a seed.
    Generate {
        #[arg(long, default_value_t = 42)]
        seed: u64,
        /// Output directory.
        out: PathBuf,
    },
    /// Write the tables of upstream's results in all versions.
    RecordVersions {
        /// The oracle of a version, oldest first.
        #[arg(long = "oracle", required = true, value_name = "VERSION=PATH")]
        oracles: Vec<recorded::record::Oracle>,
        /// Name of the only table to write, such as `admissions`. Repeatable.
        #[arg(long = "table", value_name = "TABLE")]
        tables: Vec<recorded::TableKind>,
        /// Directory of OpenAPI v3 documents (*_openapi.json).
        #[arg(long, value_name = "DIR")]
        openapi: PathBuf,
        #[arg(long, default_value_t = 42)]
        seed: u64,
    },
    /// Print the items that the inputs cover, one per line.
    Coverage {
        /// Fail unless the inputs cover all required overloads, macros, syntax and features.
        #[arg(long)]
        complete: bool,
        /// Files of cases of single expressions.
        #[arg(long, value_name = "CASES")]
        eval: Vec<PathBuf>,
        /// Files of admission cases.
        #[arg(long, value_name = "CASES")]
        admit: Vec<PathBuf>,
        /// Files or directories of policies.
        #[arg(long, value_name = "PATH")]
        policies: Vec<PathBuf>,
        /// Files or directories of CustomResourceDefinitions.
        #[arg(long, value_name = "PATH")]
        crds: Vec<PathBuf>,
    },
    /// Compare how kubectl and our parser parse YAML. Fail if a difference has no known reason.
    Yaml {
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        #[arg(long, default_value_t = 42)]
        seed: u64,
        /// Number of streams.
        #[arg(long, value_name = "N", default_value_t = 100_000)]
        cases: u64,
        /// Number of differences to show.
        #[arg(long, default_value_t = 5)]
        show: usize,
        /// Files, or directories of files, from which streams are generated.
        #[arg(required = true, value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Compare the validation of CustomResourceDefinitions' rules, and of objects by these rules. The definitions come
    /// from files, are generated, or are mutated. Fail if a result differs.
    Rules {
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        #[arg(long, default_value_t = 42)]
        seed: u64,
        /// Number of definitions to generate.
        #[arg(long, value_name = "N", default_value_t = 60)]
        made: u64,
        /// Number of mutated copies of definitions.
        #[arg(long, value_name = "N", default_value_t = 500)]
        mutants: u64,
        /// Number of objects.
        #[arg(long, value_name = "N", default_value_t = 2_000)]
        objects: u64,
        /// Number of times that each object is validated to measure the time.
        #[arg(long, value_name = "N", default_value_t = 0)]
        repeat: u32,
        /// Fail if our engine is not at least this many times faster than upstream at validating objects.
        #[arg(long, value_name = "RATIO", requires = "repeat")]
        at_least: Option<f64>,
        /// File of validations that were recorded from upstream's tests, with upstream's results.
        #[arg(long, value_name = "FILE")]
        recorded: Option<PathBuf>,
        /// Number of differences to show.
        #[arg(long, default_value_t = 5)]
        show: usize,
        /// Files of CustomResourceDefinitions, or directories of them.
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Compare requests for custom resources. The definitions come from files or are generated. The causes of
    /// rejections, their order, and the stored objects must be equal. Fail if a result differs.
    CustomResources {
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        #[arg(long, default_value_t = 42)]
        seed: u64,
        /// Number of definitions to generate.
        #[arg(long, value_name = "N", default_value_t = 100)]
        made: u64,
        /// Number of requests.
        #[arg(long, value_name = "N", default_value_t = 2_000)]
        objects: u64,
        /// File to which the requests are written, with upstream's results.
        #[arg(long, value_name = "FILE")]
        record: Option<PathBuf>,
        /// Number of times that each request is sent to measure the time.
        #[arg(long, value_name = "N", default_value_t = 0)]
        repeat: u32,
        /// Number of differences to show.
        #[arg(long, default_value_t = 5)]
        show: usize,
        /// Files of CustomResourceDefinitions, or directories of them.
        #[arg(value_name = "PATH")]
        paths: Vec<PathBuf>,
    },
    /// Compare merges and patches of objects. The cases are generated from a seed. Fail if a result differs.
    Mutations {
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        /// Directory of OpenAPI v3 documents (*_openapi.json).
        #[arg(long, value_name = "DIR")]
        openapi: PathBuf,
        #[arg(long, default_value_t = 42)]
        seed: u64,
        /// Number of merges.
        #[arg(long, value_name = "N", default_value_t = 4_000)]
        merges: u64,
        /// Number of patches.
        #[arg(long, value_name = "N", default_value_t = 20_000)]
        patches: u64,
        /// Number of requests for mutating policies.
        #[arg(long, value_name = "N", default_value_t = 1_000)]
        requests: u64,
        /// Number of differences to show.
        #[arg(long, default_value_t = 5)]
        show: usize,
        /// Directory to which some of the cases are written, with upstream's results.
        #[arg(long, value_name = "DIR")]
        record: Option<PathBuf>,
    },
    /// Check that upstream's evaluator also fails on the requests that `kubectl vap check` shows as witnesses.
    Witnesses {
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        #[command(flatten)]
        schemas: SchemaArgs,
        /// Directory to which the requests are written.
        #[arg(long)]
        folder: PathBuf,
        /// Fail if 1% or more of the sound policies have an unproven warning.
        #[arg(long)]
        quiet: bool,
        #[command(flatten)]
        policies: PolicyArgs,
    },
    /// Compare the output of the oracle with that of our engine.
    Share {
        /// Subcommand whose output is compared.
        #[arg(long, value_enum, default_value_t = StageArg::Typecheck)]
        kind: StageArg,
        /// The oracle's binary.
        #[arg(long)]
        oracle: PathBuf,
        #[command(flatten)]
        schemas: SchemaArgs,
        /// Number of differences to show.
        #[arg(long, default_value_t = 5)]
        show: usize,
        /// Fail if a smaller percentage of the policies has the same result.
        #[arg(long, value_name = "PERCENT", default_value_t = 100.0)]
        at_least: f64,
        /// Fail if a smaller percentage of the policies has identical output.
        #[arg(long, value_name = "PERCENT", default_value_t = 0.0)]
        identical_at_least: f64,
        #[command(flatten)]
        policies: PolicyArgs,
    },
}

#[derive(Args)]
struct SchemaArgs {
    /// Directory of OpenAPI v3 documents (*_openapi.json).
    #[arg(long, value_name = "DIR")]
    openapi: Option<PathBuf>,
    /// Directory of CustomResourceDefinition files.
    #[arg(long, value_name = "DIR")]
    crds: Option<PathBuf>,
}

impl SchemaArgs {
    fn load(&self) -> Result<Schemas> {
        Schemas::load(self.openapi.as_deref(), self.crds.as_deref())
    }
}

#[derive(Args)]
struct TimeArgs {
    /// Seconds to measure.
    #[arg(long, value_name = "N", default_value_t = 5.0)]
    seconds: f64,
    /// Seconds to run before measuring.
    #[arg(long, value_name = "N", default_value_t = 1.0)]
    warmup: f64,
}

#[derive(Args)]
struct PolicyArgs {
    /// Files of YAML or JSON documents, directories of them, or - for standard input.
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
}

#[derive(Clone, Copy, ValueEnum)]
enum ProfileArg {
    Upstream,
    Truthful,
}

#[derive(Clone, Copy, ValueEnum)]
enum ModeArg {
    New,
    Stored,
    Both,
}

#[derive(Clone, Copy, ValueEnum)]
enum StageArg {
    Typecheck,
    Compile,
    Admit,
    Eval,
}

impl From<StageArg> for bench::Stage {
    fn from(stage: StageArg) -> Self {
        match stage {
            StageArg::Typecheck => Self::Typecheck,
            StageArg::Compile => Self::Compile,
            StageArg::Admit => Self::Admit,
            StageArg::Eval => Self::Eval,
        }
    }
}

fn main() -> ExitCode {
    let cli = Cli::parse();
    parity::version::set(cli.kubernetes_version);
    // The work runs on a thread with the same stack size as the controller's threads.
    let outcome = thread::Builder::new()
        .stack_size(2 * 1024 * 1024)
        .spawn(move || run(cli.command, &mut BufWriter::new(std::io::stdout())))
        .context("cannot start a thread")
        .and_then(|thread| {
            thread
                .join()
                .map_err(|_| anyhow!("panic outside of the processing of a policy"))?
        });
    match outcome {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            // Ignores an error, because standard error may be closed.
            let _ = writeln!(std::io::stderr(), "parity: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Runs a subcommand. Returns false if a comparison fails or a minimum is not reached.
#[expect(
    clippy::too_many_lines,
    reason = "one match arm per subcommand is easy to read"
)]
fn run(command: Command, out: &mut dyn Write) -> Result<bool> {
    let reached = match command {
        Command::Typecheck {
            schemas,
            profile,
            policies,
        } => {
            let schemas = schemas.load()?;
            let profile = match profile {
                ProfileArg::Upstream => Profile::Upstream,
                ProfileArg::Truthful => Profile::Truthful,
            };
            for doc in documents::load_policies(&policies.paths)? {
                write_line(out, &typecheck::line(&doc, &schemas, profile))?;
            }
            true
        }
        Command::Rules {
            oracle,
            seed,
            made,
            mutants,
            objects,
            repeat,
            at_least,
            recorded,
            show,
            paths,
        } => rules::RuleParity {
            oracle,
            seed,
            made,
            mutants,
            objects,
            repeat,
            at_least,
            recorded,
            show,
            paths,
        }
        .run(out)?,
        Command::CustomResources {
            oracle,
            seed,
            made,
            objects,
            record,
            repeat,
            show,
            paths,
        } => custom_resources::CustomResourceParity {
            oracle,
            seed,
            made,
            objects,
            record,
            repeat,
            show,
            paths,
        }
        .run(out)?,
        Command::Mutations {
            oracle,
            openapi,
            seed,
            merges,
            patches,
            requests,
            show,
            record,
        } => mutate::MutationParity {
            oracle,
            openapi,
            seed,
            merges,
            patches,
            requests,
            show,
            record,
        }
        .run(out)?,
        Command::Differences { schemas, policies } => {
            let schemas = schemas.load()?;
            let mut all_explained = true;
            for doc in documents::load_policies(&policies.paths)? {
                for line in typecheck::differences(&doc, &schemas) {
                    all_explained &= line.rule.is_some();
                    write_line(out, &line)?;
                }
            }
            all_explained
        }
        Command::Compile { mode, policies } => {
            let modes: &[_] = match mode {
                ModeArg::New => &[CompileMode::New],
                ModeArg::Stored => &[CompileMode::Stored],
                ModeArg::Both => &[CompileMode::New, CompileMode::Stored],
            };
            for doc in documents::load_any_policies(&policies.paths)? {
                for mode in modes {
                    write_line(out, &compile::line(&doc, *mode))?;
                }
            }
            true
        }
        Command::Admit { schemas, paths } => {
            admit::run(&paths, &schemas.load()?, out)?;
            true
        }
        Command::FiveKinds { policies } => {
            five_kinds::print(&policies.paths, out)?;
            true
        }
        Command::Decided {
            corpus,
            print: true,
        } => {
            decided::print_cases(&corpus, out)?;
            true
        }
        Command::Decided {
            corpus,
            print: false,
        } => {
            let tally = decided::run(&corpus, out)?;
            tally.expected == tally.of
        }
        Command::Eval { cases } => {
            eval::run(&cases, out)?;
            true
        }
        Command::Bench {
            stage,
            schemas,
            time,
            policies,
        } => {
            let loaded = schemas.load()?;
            let TimeArgs { seconds, warmup } = time;
            let line = bench::run(stage.into(), &loaded, &policies.paths, seconds, warmup)?;
            write_line(out, &line)?;
            true
        }
        Command::BenchPair {
            stage,
            oracle,
            schemas,
            time,
            rounds,
            at_least,
            policies,
        } => {
            let pair = pair::Pair {
                stage: stage.into(),
                oracle,
                openapi: schemas.openapi,
                crds: schemas.crds,
                seconds: time.seconds,
                warmup: time.warmup,
                rounds,
                paths: policies.paths,
            };
            let line = pair::run(&pair, out)?;
            at_least.is_none_or(|ratio| line.ratio >= ratio)
        }
        Command::Decl { crds } => {
            decl::run(&crds, out)?;
            true
        }
        Command::Generate { seed, out: to } => {
            cases::write(&to, seed, cases::Counts::default())?;
            true
        }
        Command::RecordVersions {
            oracles,
            tables,
            openapi,
            seed,
        } => {
            let recording = recorded::record::Recording {
                oracles,
                tables,
                openapi,
                seed,
            };
            recording.run(out)?;
            true
        }
        Command::Coverage {
            complete,
            eval,
            admit,
            policies,
            crds,
        } => {
            let coverage = Coverage::measure(&Inputs {
                eval,
                admit,
                policies,
                crds,
            })?;
            if complete {
                for (category, n) in coverage.counts() {
                    writeln!(out, "covered: {n:4} of category {category}")?;
                }
                for item in coverage.missing() {
                    writeln!(out, "not covered: {item}")?;
                }
                coverage.missing().is_empty()
            } else {
                for item in coverage.items() {
                    writeln!(out, "{item}")?;
                }
                true
            }
        }
        Command::Yaml {
            oracle,
            seed,
            cases,
            show,
            paths,
        } => {
            let parity = yaml::YamlParity {
                oracle,
                seed,
                cases,
                show,
                paths,
            };
            yaml::run(&parity, out)?.different == 0
        }
        Command::Witnesses {
            oracle,
            schemas,
            folder,
            quiet,
            policies,
        } => {
            let witnesses = witnesses::Witnesses {
                oracle,
                openapi: schemas.openapi,
                crds: schemas.crds,
                folder,
                paths: policies.paths,
            };
            let line = witnesses::run(&witnesses, out)?;
            line.different == 0 && (line.is_quiet() || !quiet)
        }
        Command::Share {
            kind,
            oracle,
            schemas,
            show,
            at_least,
            identical_at_least,
            policies,
        } => {
            let share = share::Share {
                stage: kind.into(),
                oracle,
                openapi: schemas.openapi,
                crds: schemas.crds,
                show,
                paths: policies.paths,
            };
            let shares = share::run(&share, out)?;
            shares.verdict.percent() >= at_least && shares.identical.percent() >= identical_at_least
        }
    };
    out.flush()?;
    Ok(reached)
}
