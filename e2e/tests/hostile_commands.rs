//! Runs the commands of the plugin on hostile files. Each process exits by itself within memory and time limits, with a
//! documented exit status and a message.
//!
//! `VAP_HOSTILE_FILES` sets the number of groups of hostile objects, and `VAP_HOSTILE_SEED` their seed.

#![allow(
    clippy::cast_precision_loss,
    clippy::indexing_slicing,
    clippy::panic,
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "a test fails by a panic, and prints its figures"
)]

#[path = "support/limit.rs"]
mod limit;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use e2e::controller::binary;
use e2e::hostile::{Family, Hostile, ROUND, hostile, objects};
use limit::{memory_kib, mib};
use parity::random::from_environment;
use serde_json::Value;

/// The number of groups. One round contains every family.
const N_GROUPS: u64 = ROUND as u64;

/// The time limit of a command. Debug builds on a busy machine are slow.
const SOON: Duration = Duration::from_secs(60);

/// The memory limit of a command, in KiB. When the plugin reads a file, it stores the position of each value. For
/// 150,000 small maps, it needs almost this much memory.
const LIMIT_KIB: u64 = 640 << 10;

/// The number of concurrent processes.
const N_WORKERS: usize = 2;

/// The commands and their arguments. [`write`] creates the files.
const COMMANDS: [(&str, &[&str]); 5] = [
    ("check", &["new.yaml"]),
    ("test", &["new.yaml"]),
    ("eval", &["new.yaml", "--object", "object.yaml"]),
    ("audit", &["new.yaml", "-f", "object.yaml"]),
    ("diff", &["old.yaml", "new.yaml", "-f", "object.yaml"]),
];

/// Messages of internal errors of the plugin. (`internal error: interface conversion` is a normal error message of
/// cel-go.)
const INTERNAL: [&str; 4] = [
    "panicked at",
    "an internal error",
    "RUST_BACKTRACE",
    "memory allocation of",
];

struct Outcome {
    exit: Option<i32>,
    peak_kib: u64,
    time: Duration,
    problem: Option<String>,
}

/// Runs a command. Kills the process if it exceeds the memory limit or the time limit.
fn run(directory: &Path, command: &str, arguments: &[&str], limit_kib: u64) -> Outcome {
    let [out, err] = ["stdout", "stderr"].map(|name| directory.join(name));
    let started = Instant::now();
    let mut child = Command::new(binary("kubectl-vap").unwrap())
        .arg(command)
        .args(arguments)
        .current_dir(directory)
        .env_remove("KUBECONFIG")
        .env_remove("COLUMNS")
        .stdin(Stdio::null())
        .stdout(File::create(&out).unwrap())
        .stderr(File::create(&err).unwrap())
        .spawn()
        .unwrap();
    let mut peak_kib = 0;
    let mut problem = None;
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        peak_kib = peak_kib.max(memory_kib(child.id(), "VmHWM:").unwrap_or_default());
        if peak_kib > limit_kib {
            problem = Some(format!("uses {}", mib(peak_kib)));
        } else if started.elapsed() > SOON {
            problem = Some(format!("still running after {SOON:?}"));
        }
        if problem.is_some() {
            child.kill().unwrap();
            break child.wait().unwrap();
        }
        std::thread::sleep(Duration::from_millis(3));
    };
    let time = started.elapsed();
    let [out, err] =
        [out, err].map(|path| String::from_utf8_lossy(&fs::read(path).unwrap()).into_owned());
    let problem = problem.or_else(|| ending(status.code(), &out, &err));
    Outcome {
        exit: status.code(),
        peak_kib,
        time,
        problem,
    }
}

/// Returns the problem of a process, if any.
fn ending(exit: Option<i32>, out: &str, err: &str) -> Option<String> {
    let is_internal = INTERNAL
        .iter()
        .any(|text| out.contains(text) || err.contains(text));
    let tail: String = err.chars().take(300).collect();
    match exit {
        _ if is_internal => Some(format!("internal error: {tail}")),
        None => Some(format!("ended by a signal: {tail}")),
        Some(exit @ 1..=2) if out.trim().is_empty() && err.trim().is_empty() => {
            Some(format!("exit {exit} without a message"))
        }
        Some(0..=2) => None,
        Some(other) => Some(format!("exit {other}: {tail}")),
    }
}

/// Writes the files for a group: its objects, objects of another seed, and the object of a request.
fn write(directory: &Path, new: &Hostile, old: &Hostile) {
    for (name, group) in [("new.yaml", new), ("old.yaml", old)] {
        // YAML includes JSON.
        let texts: Vec<String> = group.objects.iter().map(Value::to_string).collect();
        fs::write(directory.join(name), texts.join("\n---\n")).unwrap();
    }
    let mut objects = new.objects.iter();
    let object = objects.find_map(|object| object.pointer("/spec/cases/0/request/object").cloned());
    let object = object.unwrap_or_else(|| objects::deployment("d", 0));
    fs::write(directory.join("object.yaml"), object.to_string()).unwrap();
}

/// The results of a command for all objects of a family.
#[derive(Default)]
struct Row {
    /// The numbers of runs with exit status 0, 1 and 2.
    exits: [usize; 3],
    n_problems: usize,
    peak_kib: u64,
    longest: Duration,
}

impl Row {
    fn add(&mut self, outcome: &Outcome) {
        match (outcome.exit, &outcome.problem) {
            (Some(exit @ 0..=2), None) => self.exits[usize::try_from(exit).unwrap()] += 1,
            _ => self.n_problems += 1,
        }
        self.peak_kib = self.peak_kib.max(outcome.peak_kib);
        self.longest = self.longest.max(outcome.time);
    }
}

type Table = BTreeMap<(Family, &'static str), Row>;

fn print(table: &Table) {
    println!(
        "{:12} {:8} {:>6} {:>6} {:>6} {:>8} {:>12} {:>9}",
        "family", "command", "exit 0", "exit 1", "exit 2", "problems", "peak", "longest"
    );
    for ((family, command), row) in table {
        let [clean, findings, errors] = row.exits;
        println!(
            "{:12} {command:8} {clean:6} {findings:6} {errors:6} {:8} {:>12} {:>8.1}s",
            format!("{family:?}"),
            row.n_problems,
            mib(row.peak_kib),
            row.longest.as_secs_f64()
        );
    }
}

#[derive(Default)]
struct Found {
    table: Table,
    problems: Vec<String>,
    n_objects: usize,
    n_processes: usize,
}

fn run_group(seed: u64, n: usize, limit_kib: u64, problems: &Mutex<Found>) {
    let directory = tempfile::tempdir().unwrap();
    let group = hostile(seed, n);
    write(directory.path(), &group, &hostile(seed.wrapping_add(1), n));
    problems.lock().unwrap().n_objects += group.objects.len();
    for (command, arguments) in COMMANDS {
        let outcome = run(directory.path(), command, arguments, limit_kib);
        let mut problems = problems.lock().unwrap();
        problems.n_processes += 1;
        let row = problems.table.entry((group.family, command)).or_default();
        row.add(&outcome);
        if let Some(problem) = outcome.problem {
            let problem = format!("{} {:?} {command}: {problem}", group.name, group.family);
            println!("{problem}");
            problems.problems.push(problem);
        }
    }
}

#[test]
fn every_command_on_hostile_files_ends_within_limits() {
    let seed = from_environment("VAP_HOSTILE_SEED", 1).unwrap();
    let n_groups = from_environment("VAP_HOSTILE_FILES", N_GROUPS).unwrap();
    println!("VAP_HOSTILE_FILES={n_groups} VAP_HOSTILE_SEED={seed}");
    let limit_kib = LIMIT_KIB;
    let next = AtomicUsize::new(0);
    let n_groups = usize::try_from(n_groups).unwrap();
    let results = Mutex::new(Found::default());
    std::thread::scope(|scope| {
        for _ in 0..N_WORKERS {
            scope.spawn(|| {
                loop {
                    let n = next.fetch_add(1, Ordering::Relaxed);
                    if n >= n_groups {
                        return;
                    }
                    run_group(seed, n, limit_kib, &results);
                }
            });
        }
    });
    let Found {
        table,
        problems,
        n_objects,
        n_processes,
    } = results.into_inner().unwrap();
    print(&table);
    println!(
        "{n_objects} objects, {n_processes} processes, {} problems, limit {}",
        problems.len(),
        mib(limit_kib)
    );
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn unknown_exit_status_and_failure_without_message_are_problems() {
    assert_eq!(ending(Some(0), "", ""), None);
    assert_eq!(ending(Some(1), "a finding", ""), None);
    assert_eq!(ending(Some(2), "", "error: too large"), None);
    assert_eq!(ending(Some(2), "a.yaml: too large", ""), None);
    for (exit, out, err) in [
        (Some(1), "", " "),
        (Some(2), "", "\n"),
        (Some(101), "", "thread 'main'"),
        (None, "", "killed"),
        (Some(2), "", "thread 'main' panicked at a.rs"),
    ] {
        assert!(ending(exit, out, err).is_some(), "{exit:?} {out} {err}");
    }
}
