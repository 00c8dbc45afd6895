//! Compares the failures of a controller with the failures that a test allows.
//!
//! The inputs are the controller's log (JSON lines) and metrics (text format). The result consists of failures that
//! were not allowed, and required failures that did not occur.

use std::fmt;

use serde_json::{Map, Value};

/// Metrics that are zero if there are no failures.
const METRICS: [&str; 6] = [
    "vap_sync_errors_total",
    "vap_reconcile_errors_total",
    "vap_check_panics_total",
    "vap_check_threads_stuck",
    "vap_panics_total",
    "vap_unreadable_objects",
];

/// The error message for a kind whose storage the API server is still initializing.
const STORAGE_IS_SET_UP: &str = "storage is (re)initializing";

/// The severity of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// `WARN`.
    Warning,
    /// `ERROR`.
    Error,
}

/// A failure that a test allows. The failure need not occur, unless it is [`AllowedFailure::required`].
#[derive(Clone, Debug)]
pub struct AllowedFailure {
    kind: Kind,
    is_required: bool,
    at_most: Option<u64>,
}

#[derive(Clone, Debug)]
enum Kind {
    Line {
        level: Level,
        fragment: String,
    },
    FatalLine(String),
    Metric {
        name: String,
        labels: Vec<(String, String)>,
    },
}

impl AllowedFailure {
    /// Allows a warning in the log. One of its fields, such as `message`, must contain `fragment`.
    #[must_use]
    pub fn warning(fragment: &str) -> Self {
        Self::line(Level::Warning, fragment)
    }

    /// Allows an error in the log. One of its fields, such as `message`, must contain `fragment`.
    #[must_use]
    pub fn error(fragment: &str) -> Self {
        Self::line(Level::Error, fragment)
    }

    /// Allows a line that is not in the log format, such as the error message of a process before it exits.
    #[must_use]
    pub fn fatal_line(fragment: &str) -> Self {
        Self::new(Kind::FatalLine(fragment.to_owned()))
    }

    fn line(level: Level, fragment: &str) -> Self {
        let fragment = fragment.to_owned();
        Self::new(Kind::Line { level, fragment })
    }

    /// Allows a nonzero metric with at least these labels.
    #[must_use]
    pub fn metric(name: &str, labels: &[(&str, &str)]) -> Self {
        let labels = labels
            .iter()
            .map(|(label, value)| ((*label).to_owned(), (*value).to_owned()))
            .collect();
        let name = name.to_owned();
        Self::new(Kind::Metric { name, labels })
    }

    /// Allows a failed list or watch of `source` with this `reason` label.
    #[must_use]
    pub fn sync(source: &str, reason: &str) -> Self {
        Self::metric(
            "vap_sync_errors_total",
            &[("source", source), ("reason", reason)],
        )
    }

    /// Allows a failed list or watch of any source.
    #[must_use]
    pub fn any_sync(reason: &str) -> Self {
        Self::metric("vap_sync_errors_total", &[("reason", reason)])
    }

    /// Allows a failed reconciliation.
    #[must_use]
    pub fn reconcile(reason: &str) -> Self {
        Self::metric("vap_reconcile_errors_total", &[("reason", reason)])
    }

    /// Makes the failure required. If it does not occur, the test fails.
    #[must_use]
    pub fn required(mut self) -> Self {
        self.is_required = true;
        self
    }

    /// Limits the number of log lines, or the sum of the metric's samples.
    #[must_use]
    pub fn at_most(mut self, n: u64) -> Self {
        self.at_most = Some(n);
        self
    }

    fn new(kind: Kind) -> Self {
        Self {
            kind,
            is_required: false,
            at_most: None,
        }
    }

    fn matches(&self, found: &Occurrence) -> bool {
        match (&self.kind, found) {
            (Kind::Line { level, fragment }, Occurrence::Line { event, .. }) => {
                Some(*level) == event.level && event.has(fragment)
            }
            (Kind::FatalLine(fragment), Occurrence::Unreadable(text)) => text.contains(fragment),
            (Kind::Metric { name, labels }, Occurrence::Metric(sample)) => {
                *name == sample.name && labels.iter().all(|label| sample.labels.contains(label))
            }
            _ => false,
        }
    }
}

impl fmt::Display for AllowedFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.kind {
            Kind::Line { level, fragment } => write!(f, "{level:?} `{fragment}`"),
            Kind::FatalLine(fragment) => write!(f, "fatal line `{fragment}`"),
            Kind::Metric { name, labels } => write!(f, "{name} {labels:?}"),
        }
    }
}

/// Returns the failures to allow while an API server is down or starting: failed lists and watches, and the warnings
/// about them.
#[must_use]
pub fn outage() -> Vec<AllowedFailure> {
    let reasons = [
        "connection",
        "timeout",
        "server",
        "throttled",
        // A starting API server rejects all requests with the reason `Forbidden`.
        "forbidden",
    ];
    let mut failures = vec![
        AllowedFailure::warning("retrying; similar failures are not logged"),
        // A starting API server returns this message for each kind.
        AllowedFailure::warning(STORAGE_IS_SET_UP),
    ];
    failures.extend(reasons.map(AllowedFailure::any_sync));
    failures
}

/// Returns the failures to allow when a watch of the new kind `source` starts. An API server initializes the storage of
/// a kind on the first request. Until the storage is ready, the API server responds with status 429.
#[must_use]
pub fn new_kind(source: &str) -> [AllowedFailure; 2] {
    [
        AllowedFailure::warning(STORAGE_IS_SET_UP),
        AllowedFailure::sync(source, "throttled"),
    ]
}

/// A line of the log.
#[derive(Clone, Debug)]
pub struct Event {
    /// The severity. `None` if it is lower than a warning.
    pub level: Option<Level>,
    fields: Map<String, Value>,
}

impl Event {
    /// Parses a line of the log. Returns `None` if the line is not a JSON object with a level.
    #[must_use]
    pub fn read(line: &str) -> Option<Self> {
        let fields: Map<String, Value> = serde_json::from_str(line).ok()?;
        let level = match fields.get("level")?.as_str()? {
            "WARN" => Some(Level::Warning),
            "ERROR" => Some(Level::Error),
            _ => None,
        };
        Some(Self { level, fields })
    }

    /// Returns the string value of a field, such as `message`.
    #[must_use]
    pub fn field(&self, name: &str) -> Option<&str> {
        self.fields.get(name).and_then(Value::as_str)
    }

    /// Returns true if a field contains `fragment`.
    #[must_use]
    pub fn has(&self, fragment: &str) -> bool {
        let mut texts = self.fields.values().filter_map(Value::as_str);
        texts.any(|text| text.contains(fragment))
    }
}

/// A sample in the metrics output.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The name of the metric, such as `vap_sync_errors_total`.
    pub name: String,
    /// The labels of the sample, unescaped.
    pub labels: Vec<(String, String)>,
    /// The value of the sample.
    pub value: f64,
}

impl Sample {
    /// Returns the value of a label, if the sample has the label.
    #[must_use]
    pub fn label(&self, name: &str) -> Option<&str> {
        let pair = self.labels.iter().find(|(label, _)| label == name);
        pair.map(|(_, value)| value.as_str())
    }
}

/// Parses metrics in the text format. Comments and exemplars are skipped.
///
/// Source: `OpenMetrics` 1.0, section "ABNF".
#[must_use]
pub fn samples(text: &str) -> Vec<Sample> {
    text.lines().filter_map(sample).collect()
}

fn sample(line: &str) -> Option<Sample> {
    if line.starts_with('#') {
        return None;
    }
    let (name, mut labels, rest) = match line.split_once('{') {
        Some((name, rest)) if !name.contains(' ') => {
            let (labels, rest) = read_labels(rest)?;
            (name, labels, rest)
        }
        _ => {
            let (name, rest) = line.split_once(' ')?;
            (name, Vec::new(), rest)
        }
    };
    let value = rest.trim_start().split(' ').next()?.parse().ok()?;
    labels.sort();
    Some(Sample {
        name: name.to_owned(),
        labels,
        value,
    })
}

type Labels = Vec<(String, String)>;

/// Parses the labels after `{`. Returns the labels, and the text after `}`.
fn read_labels(mut text: &str) -> Option<(Labels, &str)> {
    let mut labels = Vec::new();
    loop {
        if let Some(rest) = text.strip_prefix('}') {
            return Some((labels, rest));
        }
        let (name, rest) = text.trim_start_matches(',').split_once("=\"")?;
        let mut value = String::new();
        let mut chars = rest.chars();
        loop {
            match chars.next()? {
                '"' => break,
                '\\' => value.push(match chars.next()? {
                    'n' => '\n',
                    other => other,
                }),
                other => value.push(other),
            }
        }
        labels.push((name.to_owned(), value));
        text = chars.as_str();
    }
}

enum Occurrence {
    Line { event: Event, text: String },
    Unreadable(String),
    Metric(Sample),
}

impl Occurrence {
    /// Returns 1 for a log line, and the value of the sample for a metric.
    fn count(&self) -> f64 {
        match self {
            Self::Line { .. } | Self::Unreadable(_) => 1.0,
            Self::Metric(sample) => sample.value,
        }
    }
}

impl fmt::Display for Occurrence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line { text, .. } => f.write_str(text),
            Self::Unreadable(text) => write!(f, "not a log line: {text}"),
            Self::Metric(sample) => {
                write!(f, "{} {:?} {}", sample.name, sample.labels, sample.value)
            }
        }
    }
}

/// Returns failures that were not allowed, required failures that did not occur, and failures that occurred too often.
#[must_use]
pub fn unexpected_failures(log: &str, metrics: &str, allowed: &[AllowedFailure]) -> Vec<String> {
    let lines = log.lines().filter_map(|line| match Event::read(line) {
        Some(event) if event.level.is_none() => None,
        Some(event) => Some(Occurrence::Line {
            event,
            text: line.to_owned(),
        }),
        None => Some(Occurrence::Unreadable(line.to_owned())),
    });
    let counted = samples(metrics)
        .into_iter()
        .filter(|sample| METRICS.contains(&sample.name.as_str()) && sample.value != 0.0)
        .map(Occurrence::Metric);
    let occurrences: Vec<Occurrence> = lines.chain(counted).collect();
    let is_allowed =
        |occurrence: &Occurrence| allowed.iter().any(|failure| failure.matches(occurrence));
    let mut failures: Vec<String> = occurrences
        .iter()
        .filter(|occurrence| !is_allowed(occurrence))
        .map(|occurrence| format!("not allowed: {occurrence}"))
        .collect();
    for failure in allowed {
        let n: f64 = occurrences
            .iter()
            .filter(|occurrence| failure.matches(occurrence))
            .map(Occurrence::count)
            .sum();
        if failure.is_required && n == 0.0 {
            failures.push(format!("required, but did not occur: {failure}"));
        }
        #[expect(clippy::cast_precision_loss, reason = "the limits of tests are small")]
        if let Some(limit) = failure.at_most.filter(|limit| n > *limit as f64) {
            failures.push(format!(
                "occurred {n} times, more than the limit of {limit}: {failure}"
            ));
        }
    }
    failures
}

#[cfg(test)]
mod tests {
    use super::*;

    const STARTED: &str = r#"{"timestamp":"t","level":"INFO","message":"started","target":"t"}"#;
    const WARNED: &str =
        r#"{"timestamp":"t","level":"WARN","message":"cannot watch crds","target":"t"}"#;
    const FAILED: &str = r#"{"timestamp":"t","level":"ERROR","message":"cannot write","policy":"a","error":"grant it","target":"t"}"#;
    const WELL: &str = "# HELP vap_sync_errors errors\nvap_reconcile_errors_total{reason=\"timeout\"} 0\n\
                        vap_reconciles_total{outcome=\"failed\"} 3\nvap_unreadable_objects{source=\"crds\"} 0\n";
    const COUNTED: &str = "vap_sync_errors_total{source=\"crds\",reason=\"server\"} 2\n";

    #[track_caller]
    fn check(log: &[&str], metrics: &str, allowed: &[AllowedFailure], expect: &[&str]) {
        let failures = unexpected_failures(&log.join("\n"), metrics, allowed);
        let is_as_expected = failures.len() == expect.len()
            && failures.iter().zip(expect).all(|(a, b)| a.contains(b));
        assert!(is_as_expected, "{failures:#?}\nexpected {expect:?}");
    }

    #[test]
    fn sound_run_has_no_unexpected_failures() {
        check(&[STARTED], WELL, &[], &[]);
    }

    #[test]
    fn log_lines_that_are_not_allowed_are_reported() {
        check(&[STARTED, WARNED], WELL, &[], &["not allowed: {"]);
        let other = [
            AllowedFailure::warning("policies"),
            AllowedFailure::error("crds"),
        ];
        check(&[WARNED], WELL, &other, &["cannot watch crds"]);
        check(
            &[WARNED],
            WELL,
            &[AllowedFailure::warning("watch crds")],
            &[],
        );
        check(&[FAILED], WELL, &[AllowedFailure::error("grant")], &[]);
        check(
            &["thread 'main' panicked at"],
            WELL,
            &[AllowedFailure::error("panicked")],
            &["not a log line: thread"],
        );
        check(
            &["no way"],
            WELL,
            &[AllowedFailure::fatal_line("no way")],
            &[],
        );
    }

    #[test]
    fn failure_counters_that_are_not_allowed_are_reported() {
        check(&[], COUNTED, &[], &["vap_sync_errors_total"]);
        let other = [
            AllowedFailure::sync("policies", "server"),
            AllowedFailure::reconcile("server"),
        ];
        check(&[], COUNTED, &other, &["vap_sync_errors_total"]);
        check(&[], COUNTED, &[AllowedFailure::any_sync("server")], &[]);
        check(&[], "vap_check_panics_total 1\n", &[], &["not allowed"]);
        check(
            &[],
            "vap_unreadable_objects{source=\"crds\"} 1\n",
            &[],
            &["crds"],
        );
    }

    #[test]
    fn required_and_limited_failures_are_checked() {
        let required = [AllowedFailure::sync("crds", "server").required()];
        check(&[], COUNTED, &required, &[]);
        check(&[], WELL, &required, &["did not occur"]);
        let limited = [AllowedFailure::sync("crds", "server").at_most(1)];
        check(
            &[],
            COUNTED,
            &limited,
            &["2 times, more than the limit of 1"],
        );
        let limited = [AllowedFailure::warning("crds").at_most(1)];
        check(&[WARNED], WELL, &limited, &[]);
        check(&[WARNED, WARNED], WELL, &limited, &["2 times"]);
    }

    #[test]
    fn metrics_samples_have_names_labels_and_values() {
        let text =
            "a_b 1.5\nc{x=\"1\\\"2,}\",a=\"\\\\\\n\"} 2 # {trace=\"t\"} 0.5\n# EOF\nnonsense\n";
        let parsed = samples(text);
        assert_eq!(parsed.len(), 2);
        assert_eq!((parsed[0].name.as_str(), parsed[0].value), ("a_b", 1.5));
        assert_eq!(parsed[1].label("x"), Some("1\"2,}"));
        assert_eq!(parsed[1].label("a"), Some("\\\n"));
        assert!((parsed[1].value - 2.0).abs() < f64::EPSILON);
    }
}
