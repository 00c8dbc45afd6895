//! `parity bench-pair`: measures the oracle and our engine in alternating runs, so that a change in the machine's load
//! affects both equally.

use std::env;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Serialize;

use crate::bench::{BenchLine, Stage};
use crate::write_line;

/// The settings of a paired measurement.
#[derive(Clone, Debug)]
pub struct Pair {
    /// The subcommand that is measured.
    pub stage: Stage,
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The directory of OpenAPI documents.
    pub openapi: Option<PathBuf>,
    /// The directory of CustomResourceDefinitions.
    pub crds: Option<PathBuf>,
    /// The duration of a run's measurement, in seconds.
    pub seconds: f64,
    /// The duration of a run's warm-up, in seconds.
    pub warmup: f64,
    /// The number of runs of each program.
    pub rounds: usize,
    /// The policies.
    pub paths: Vec<PathBuf>,
}

/// The result of a paired measurement. A round is a run of both programs. Times are medians over the rounds.
#[derive(Clone, Debug, Serialize)]
pub struct PairLine {
    /// The name of the benchmark.
    pub bench: &'static str,
    /// The number of runs of each program.
    pub rounds: usize,
    /// The number of policies. Both programs measure the same policies.
    pub policies: usize,
    /// Upstream's time per policy, in nanoseconds.
    pub oracle_ns_per_policy: f64,
    /// Our time per policy, in nanoseconds.
    pub ours_ns_per_policy: f64,
    /// Upstream's time divided by ours.
    pub ratio: f64,
    /// The minimum of the rounds' ratios.
    pub least_ratio: f64,
    /// Upstream's peak resident memory, in KiB.
    pub oracle_max_rss_kib: u64,
    /// Our peak resident memory, in KiB.
    pub ours_max_rss_kib: u64,
}

/// Runs the two programs alternately. Prints the result of every run and the final result.
///
/// # Errors
///
/// Returns an error if a program cannot be run, or if the programs measured different numbers of policies.
pub fn run(pair: &Pair, out: &mut dyn Write) -> Result<PairLine> {
    let own = env::current_exe().context("cannot find this program")?;
    let (mut oracle, mut ours) = (Vec::new(), Vec::new());
    for _ in 0..pair.rounds.max(1) {
        for (program, runs) in [(&pair.oracle, &mut oracle), (&own, &mut ours)] {
            let line = pair.measure(program)?;
            writeln!(
                out,
                "{}: {:.0} ns per policy, {} policies, {} skipped, {} iterations, {} KiB",
                program.file_name().unwrap_or_default().display(),
                line.ns_per_policy,
                line.policies,
                line.skipped,
                line.iterations,
                line.max_rss_kib,
            )?;
            out.flush()?;
            runs.push(line);
        }
    }
    let policies = oracle.first().map_or(0, |line| line.policies);
    if oracle
        .iter()
        .chain(&ours)
        .any(|line| line.policies != policies)
    {
        bail!("the oracle and our engine did not use the same number of policies");
    }
    let ratios = oracle
        .iter()
        .zip(&ours)
        .map(|(a, b)| a.ns_per_policy / b.ns_per_policy);
    let oracle_ns = median(oracle.iter().map(|line| line.ns_per_policy).collect());
    let ours_ns = median(ours.iter().map(|line| line.ns_per_policy).collect());
    let greatest = |lines: &[BenchLine]| lines.iter().map(|line| line.max_rss_kib).max();
    let line = PairLine {
        bench: pair.stage.name(),
        rounds: oracle.len(),
        policies,
        oracle_ns_per_policy: oracle_ns,
        ours_ns_per_policy: ours_ns,
        ratio: oracle_ns / ours_ns,
        least_ratio: ratios.fold(f64::INFINITY, f64::min),
        oracle_max_rss_kib: greatest(&oracle).unwrap_or(0),
        ours_max_rss_kib: greatest(&ours).unwrap_or(0),
    };
    write_line(out, &line)?;
    Ok(line)
}

impl Pair {
    fn measure(&self, program: &Path) -> Result<BenchLine> {
        let mut command = Command::new(program);
        command.arg("bench").arg(self.stage.name());
        command.arg(format!("--seconds={}", self.seconds));
        command.arg(format!("--warmup={}", self.warmup));
        if self.stage != Stage::Eval {
            schema_arguments(&mut command, self.openapi.as_deref(), self.crds.as_deref());
        }
        let stdout = output(command.args(&self.paths))?;
        serde_json::from_slice(&stdout)
            .with_context(|| format!("cannot read the output of {}", program.display()))
    }
}

/// Adds the options for the directories of schemas.
pub(super) fn schema_arguments(command: &mut Command, openapi: Option<&Path>, crds: Option<&Path>) {
    for (name, directory) in [("--openapi", openapi), ("--crds", crds)] {
        if let Some(directory) = directory {
            command.arg(name).arg(directory);
        }
    }
}

pub(super) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let program = command.get_program().display().to_string();
    let output = command
        .stderr(std::process::Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run {program}"))?;
    if !output.status.success() {
        bail!("{program} failed: {}", output.status);
    }
    Ok(output.stdout)
}

/// Returns the median of the numbers. For an even count, this is the mean of the two middle numbers.
fn median(mut numbers: Vec<f64>) -> f64 {
    numbers.sort_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let at = |n: usize| numbers.get(n).copied().unwrap_or(f64::NAN);
    if numbers.len() % 2 == 1 {
        at(middle)
    } else {
        f64::midpoint(at(middle.wrapping_sub(1)), at(middle))
    }
}
