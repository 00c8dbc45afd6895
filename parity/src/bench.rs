//! `parity bench`: measures the speed of our engine in the same way as the oracle measures upstream's.
//!
//! Allocations are not counted, because counting needs a custom allocator, which is unsafe code.
//!
//! Source: the oracle's `bench.go`.

use std::fs;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde::{Deserialize, Serialize};
use vap_status_controller::policy::RequestPolicy;
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::compile::{CompileMode, compile as compile_policy};

use crate::documents;
use crate::schemas::Schemas;
use crate::version;
use crate::{admit, compile, eval, typecheck};

/// The operation that is measured. Each variant is a subcommand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Parses, compiles and type-checks each policy.
    Typecheck,
    /// Parses and compiles each policy as on creation (mode `new`).
    Compile,
    /// Evaluates the compiled policy of each case.
    Admit,
    /// Evaluates the planned expression of each case.
    Eval,
}

impl Stage {
    /// Returns the name of the subcommand for this operation.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Typecheck => "typecheck",
            Self::Compile => "compile",
            Self::Admit => "admit",
            Self::Eval => "eval",
        }
    }
}

/// The output of a measurement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchLine {
    /// The name of the benchmark.
    pub bench: String,
    /// The number of policies, or of admission cases, per iteration.
    pub policies: usize,
    /// The number of expressions in these policies.
    pub expressions: usize,
    /// The number of type checks: one for each pair of an expression and a kind.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checks: usize,
    /// The number of passes over all policies.
    pub iterations: usize,
    /// The mean time per policy or admission, in nanoseconds.
    #[serde(alias = "ns_per_admission")]
    pub ns_per_policy: f64,
    /// The mean time per expression, in nanoseconds.
    pub ns_per_expression: f64,
    /// The mean time per type check, in nanoseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ns_per_check: Option<f64>,
    /// The peak resident memory of the process, including the memory for loading the inputs.
    pub max_rss_kib: u64,
    /// The number of policies that were skipped because they are invalid.
    pub skipped: usize,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde requires a reference"
)]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

/// Measures for `seconds` after a warm-up of `warmup` seconds.
///
/// # Errors
///
/// Returns an error if files cannot be read or if there are no inputs.
pub fn run(
    stage: Stage,
    schemas: &Schemas,
    paths: &[PathBuf],
    seconds: f64,
    warmup: f64,
) -> Result<BenchLine> {
    let mut line = BenchLine {
        bench: stage.name().to_owned(),
        ..BenchLine::default()
    };
    match stage {
        Stage::Admit => return run_admit(line, schemas, paths, (seconds, warmup)),
        Stage::Eval => return run_eval(line, paths, (seconds, warmup)),
        Stage::Typecheck | Stage::Compile => {}
    }
    let mut work = Vec::new();
    for doc in documents::load_policies(paths)? {
        let (broken, expressions, checks) = match stage {
            Stage::Typecheck => {
                let first = typecheck::line(&doc, schemas, Profile::Upstream);
                let expressions = doc.policy.as_ref().map_or(0, checked_expressions);
                let broken = first.panic.is_some() || !first.error.is_empty();
                (broken, expressions, expressions * first.types.len())
            }
            Stage::Compile => {
                let first = compile::line(&doc.to_any(), CompileMode::New);
                let broken = first.panic.is_some() || !first.error.is_empty();
                (broken, first.expressions.len(), 0)
            }
            Stage::Admit | Stage::Eval => (true, 0, 0),
        };
        match doc.policy {
            Ok(policy) if !broken => {
                line.expressions += expressions;
                line.checks += checks;
                work.push(RequestPolicy::from(policy));
            }
            _ => line.skipped += 1,
        }
    }
    if work.is_empty() {
        bail!("nothing to measure");
    }
    line.policies = work.len();
    let once = |policy: &RequestPolicy| match stage {
        Stage::Typecheck => {
            black_box(typecheck::check(policy, schemas, Profile::Upstream));
        }
        Stage::Compile => {
            black_box(compile_policy(policy, CompileMode::New, version::get()));
        }
        Stage::Admit | Stage::Eval => {}
    };
    measure(&mut line, &work, once, (seconds, warmup));
    Ok(line)
}

/// Measures the evaluation of cases. As in the oracle, the dispatcher is not measured. The dispatcher selects policies
/// and bindings.
fn run_admit(
    mut line: BenchLine,
    schemas: &Schemas,
    paths: &[PathBuf],
    times: (f64, f64),
) -> Result<BenchLine> {
    let mut policies = admit::CompiledPolicies::new();
    let mut work = Vec::new();
    for path in paths {
        admit::each_case(path, |_, text| {
            let case = admit::ReadyCase::parse_of(&mut policies, schemas, text)?;
            line.expressions += case.n_expressions;
            work.push(case);
            Ok(())
        })?;
    }
    if work.is_empty() {
        bail!("nothing to measure");
    }
    line.policies = work.len();
    let once = |case: &admit::ReadyCase| {
        black_box(case.evaluate());
    };
    measure(&mut line, &work, once, times);
    Ok(line)
}

fn run_eval(mut line: BenchLine, paths: &[PathBuf], times: (f64, f64)) -> Result<BenchLine> {
    let mut work = Vec::new();
    for path in paths {
        admit::each_case(path, |_, text| {
            match eval::ReadyExpression::parse(text)? {
                Some(ready) => work.push(ready),
                None => line.skipped += 1,
            }
            Ok(())
        })?;
    }
    if work.is_empty() {
        bail!("nothing to measure");
    }
    line.policies = work.len();
    line.expressions = work.len();
    let once = |ready: &eval::ReadyExpression| {
        black_box(ready.evaluate());
    };
    measure(&mut line, &work, once, times);
    Ok(line)
}

/// Repeats the work for `seconds` after a warm-up of `warmup` seconds. Adds the times to `line`.
fn measure<T>(line: &mut BenchLine, work: &[T], once: impl Fn(&T), (seconds, warmup): (f64, f64)) {
    repeat(work, &once, warmup);
    let (iterations, elapsed) = repeat(work, &once, seconds);
    line.iterations = iterations;
    let per = |count: usize| nanoseconds(elapsed) / float(iterations) / float(count.max(1));
    line.ns_per_policy = per(line.policies);
    line.ns_per_expression = per(line.expressions);
    line.ns_per_check = (line.checks > 0).then(|| per(line.checks));
    line.max_rss_kib = max_rss_kib();
}

fn checked_expressions(policy: &ValidatingAdmissionPolicy) -> usize {
    let validations = policy
        .spec
        .iter()
        .flat_map(|spec| spec.validations.iter().flatten());
    validations
        .map(|v| 1 + usize::from(v.message_expression.as_ref().is_some_and(|m| !m.is_empty())))
        .sum()
}

/// Calls `once` for each item of `work`, repeatedly until `seconds` have passed. Returns the number of passes and the
/// duration.
fn repeat<T>(work: &[T], once: impl Fn(&T), seconds: f64) -> (usize, Duration) {
    let limit = Duration::try_from_secs_f64(seconds).unwrap_or_default();
    let start = Instant::now();
    let mut iterations = 0;
    while start.elapsed() < limit {
        work.iter().for_each(&once);
        iterations += 1;
    }
    (iterations, start.elapsed())
}

#[expect(clippy::cast_precision_loss, reason = "a measurement")]
fn nanoseconds(time: Duration) -> f64 {
    time.as_nanos() as f64
}

#[expect(clippy::cast_precision_loss, reason = "a count, far below 2^53")]
fn float(count: usize) -> f64 {
    count as f64
}

/// Returns the peak resident memory of this process. Returns 0 if the system does not report it.
fn max_rss_kib() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    peak.and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0)
}
