//! Compares the defaults in our table with those that upstream's functions set on decoding and on creation.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use serde_json::Value;
use vap_status_controller::defaulting::{Error, NOW, TypedObject};
use vap_status_controller::schema::Gvk;

/// The executable of the Go program `parity/defaults`, which calls upstream's functions.
#[derive(Clone, Debug)]
pub struct Upstream {
    program: PathBuf,
}

impl Upstream {
    /// Builds the Go program in `folder`.
    ///
    /// Blocks the thread. If Go's cache contains the control plane's packages, the build takes half a minute.
    ///
    /// # Errors
    /// Returns an error with Go's messages if Go is missing or the build fails.
    pub fn build(folder: &Path) -> Result<Self> {
        let program = folder.join("defaults");
        // The flags are those of the control plane's build, so that Go reuses its cached packages.
        let output = Command::new("go")
            .args(["build", "-trimpath", "-ldflags", "-s -w", "-o"])
            .arg(&program)
            .arg(".")
            .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("defaults"))
            .env("CGO_ENABLED", "0")
            .env("GOWORK", "off")
            .output()
            .context("run Go, which builds upstream's functions")?;
        ensure!(
            output.status.success(),
            "`go build` in parity/defaults failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(Self { program })
    }

    /// Generates `count` random objects of each kind. Returns one line per object, with upstream's result.
    ///
    /// # Errors
    /// Returns an error if the program fails.
    pub fn cases(&self, seed: u64, count: usize) -> Result<String> {
        let output = Command::new(&self.program)
            .args([
                "cases",
                "--seed",
                &seed.to_string(),
                "--count",
                &count.to_string(),
            ])
            .output()
            .with_context(|| self.program.display().to_string())?;
        ensure!(
            output.status.success(),
            "{}",
            String::from_utf8_lossy(&output.stderr)
        );
        Ok(String::from_utf8(output.stdout)?)
    }
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Example {
    api_version: String,
    kind: String,
    object: Value,
    defaulted: Value,
    created: Value,
}

/// The results of a comparison.
#[derive(Debug, Default)]
pub struct Report {
    /// The number of objects that are equal to upstream's, by kind.
    pub equal: BTreeMap<String, usize>,
    /// The number of objects for which we report an unknown default, by reason.
    pub unknown: BTreeMap<String, usize>,
    /// Descriptions of the differing objects.
    pub differences: Vec<String>,
}

/// Compares all examples. Each line is an example.
///
/// # Errors
/// Returns an error if a line cannot be parsed.
pub fn compare(lines: &str) -> Result<Report> {
    let mut report = Report::default();
    for (n, line) in lines.lines().enumerate() {
        let example: Example =
            serde_json::from_str(line).with_context(|| format!("line {}", n + 1))?;
        let (group, version) = example
            .api_version
            .split_once('/')
            .unwrap_or(("", &example.api_version));
        let gvk = Gvk::new(group, version, example.kind.as_str());
        let name = format!("{} {}", example.api_version, example.kind);
        match ours(&gvk, &example.object) {
            Ok((defaulted, created)) => {
                let differences = difference("", &example.defaulted, &defaulted)
                    .map(|place| format!("read: {place}"))
                    .or_else(|| {
                        difference("", &example.created, &created)
                            .map(|place| format!("created: {place}"))
                    });
                match differences {
                    None => *report.equal.entry(name).or_default() += 1,
                    Some(place) => report
                        .differences
                        .push(format!("line {}, {name}: {place}", n + 1)),
                }
            }
            Err(error) => {
                *report
                    .unknown
                    .entry(format!("{name}: {error}"))
                    .or_default() += 1;
            }
        }
    }
    Ok(report)
}

fn ours(gvk: &Gvk, object: &Value) -> Result<(Value, Value), Error> {
    let mut typed = TypedObject::read(gvk, object)?;
    let defaulted = typed.write()?;
    typed.create()?;
    Ok((defaulted, typed.write()?))
}

/// Describes the first difference between two values. Returns `None` if they are equal.
fn difference(path: &str, theirs: &Value, ours: &Value) -> Option<String> {
    match (theirs, ours) {
        (Value::Object(theirs), Value::Object(ours)) => {
            let names: std::collections::BTreeSet<&String> =
                theirs.keys().chain(ours.keys()).collect();
            names.into_iter().find_map(|name| {
                let path = format!("{path}.{name}");
                match (theirs.get(name), ours.get(name)) {
                    (Some(theirs), Some(ours)) => difference(&path, theirs, ours),
                    (Some(theirs), None) => {
                        Some(format!("{path}: upstream sets {theirs}, we set nothing"))
                    }
                    (None, ours) => Some(format!("{path}: upstream sets nothing, we set {ours:?}")),
                }
            })
        }
        (Value::Array(theirs), Value::Array(ours)) if theirs.len() == ours.len() => theirs
            .iter()
            .zip(ours)
            .enumerate()
            .find_map(|(n, (theirs, ours))| difference(&format!("{path}[{n}]"), theirs, ours)),
        // Upstream sets the current time, and we set `NOW`.
        (Value::String(_), Value::String(ours)) if ours == NOW => None,
        (Value::Number(theirs), Value::Number(ours)) if theirs.as_f64() == ours.as_f64() => None,
        (theirs, ours) if theirs == ours => None,
        (theirs, ours) => Some(format!("{path}: upstream sets {theirs}, we set {ours}")),
    }
}
