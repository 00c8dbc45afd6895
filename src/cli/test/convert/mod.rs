//! `kubectl vap test convert`: converts suites of kaptest, kat, the Kyverno CLI and gator to probes (ADR 26).
//!
//! A conversion consists of:
//!
//! - the probes;
//! - the policies that a suite defines in another format, such as Gatekeeper's templates;
//! - notes on the parts that probes cannot express, with their locations.
//!
//! Each format has a module. Probes need `applies` and `samples`, which suites do not define. Their values are
//! determined by running the cases.

mod gator;
mod kaptest;
mod kat;
mod kyverno;
mod source;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::init::{probes_yaml, unique};
use super::report::{CaseReport, TestReport};
use super::{Broken, Options};
use crate::cli::check::known::Known;
use crate::cli::exit::Exit;
use crate::cli::input::{Input, KindFilter, values};
use crate::cli::text::{clean, is_unsafe, with_escapes};
use crate::cli::yaml_text;
use crate::policy::admission::kind_of;
use crate::probe::api::CaseOutcome;
use crate::probe::sample::REQUIRED;
use crate::probe::validation::API_VERSION;
use crate::version::KubernetesVersion;
use source::Source;

/// Options of a conversion.
#[derive(Clone, Debug, Default)]
pub struct ConvertOptions {
    /// The suite: a directory for kat, a file for the other tools.
    pub suite: PathBuf,
    /// The version of the API server. `None` for the default version.
    pub version: Option<KubernetesVersion>,
    /// Files and directories of CRDs.
    pub crds: Vec<PathBuf>,
    /// True to write the policies and bindings too.
    pub with_policies: bool,
}

/// A converted suite.
#[derive(Clone, Debug, Default)]
pub struct Conversion {
    /// The probes.
    pub probes: Vec<Json>,
    /// The policies that the suite defines in a different format, such as Gatekeeper's templates.
    pub policies: Vec<Json>,
    /// The contents of the files with the policies and bindings of the suite, if requested.
    pub texts: Vec<String>,
    /// The files with the policies and bindings of the suite.
    pub files: Vec<PathBuf>,
    /// Notes on the parts that probes cannot express, with their locations.
    pub left_out: Vec<Note>,
    /// The reason why the suite cannot be read.
    pub problem: Option<String>,
}

/// A note on a part of a suite that the probes do not express.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Note {
    /// The file, with the line if known.
    pub place: String,
    /// The description.
    pub text: String,
    /// True if a case of the suite was not converted. False if it was converted to a stricter or looser case.
    pub is_missing: bool,
}

impl Conversion {
    /// Returns the policies and probes as YAML documents.
    ///
    /// # Errors
    /// Returns an error if serialization fails, which no input should cause.
    pub fn yaml(&self) -> Result<String, serde_json::Error> {
        let mut documents = Vec::new();
        for text in &self.texts {
            documents.push(printable(text)?);
        }
        for policy in &self.policies {
            documents.push(yaml_text::to_string(policy)?);
        }
        if !self.probes.is_empty() {
            documents.push(probes_yaml(&self.probes)?);
        }
        Ok(documents.join("---\n"))
    }

    /// Returns the error if the suite cannot be read, and the notes, one per line.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<String> {
        let notes = self.left_out.iter().map(|note| {
            let level = if note.is_missing { "warning" } else { "note" };
            format!("{level}: {}: {}", clean(&note.place), clean(&note.text))
        });
        let problem = self.problem.iter();
        let problem = problem.map(|text| format!("error: {}", clean(text)));
        problem.chain(notes).collect()
    }

    /// Returns 0 if all cases of the suite were converted, 1 if a case is missing, and 2 if the suite cannot be read.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if self.problem.is_some() {
            Exit::Failed
        } else if self.left_out.iter().any(|note| note.is_missing) || self.probes.is_empty() {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}

/// A suite that has been read.
#[derive(Debug, Default)]
struct Suite {
    drafts: Vec<Draft>,
    policies: Vec<Json>,
    files: Vec<PathBuf>,
    notes: Vec<Note>,
}

/// A draft of a probe.
#[derive(Clone, Debug, Default)]
struct Draft {
    policy: String,
    bindings: Bindings,
    /// The params that the suite defines. `None` if it defines none.
    params: Option<Vec<Json>>,
    cases: Vec<Case>,
    is_partial: bool,
}

#[derive(Clone, Debug, Default, PartialEq)]
enum Bindings {
    /// The bindings in the files of the suite.
    #[default]
    OfFiles,
    /// A binding that matches everything, with the action Deny.
    Implied,
    /// The specs of bindings.
    Inline(Vec<Json>),
}

/// A draft of a case.
#[derive(Clone, Debug)]
struct Case {
    name: String,
    request: Map<String, Json>,
    expect: Json,
    /// True if the suite also accepts that the policy does not apply to the request.
    may_not_apply: bool,
    place: String,
}

impl Suite {
    fn missing(&mut self, place: String, text: impl Into<String>) {
        self.notes.push(Note {
            place,
            text: text.into(),
            is_missing: true,
        });
    }

    fn note(&mut self, place: String, text: impl Into<String>) {
        self.notes.push(Note {
            place,
            text: text.into(),
            is_missing: false,
        });
    }

    /// Adds a case to the draft for `policy`, `bindings` and `params`. Creates the draft if it does not exist.
    fn add(&mut self, policy: &str, bindings: Bindings, params: Option<Vec<Json>>, case: Case) {
        let fits = |draft: &&mut Draft| {
            draft.policy == policy && draft.bindings == bindings && draft.params == params
        };
        if let Some(draft) = self.drafts.iter_mut().find(fits) {
            draft.cases.push(case);
            return;
        }
        self.drafts.push(Draft {
            policy: policy.to_owned(),
            bindings,
            params,
            cases: vec![case],
            is_partial: false,
        });
    }

    fn probes(&self, adjust: impl Fn(&Case) -> Json) -> Vec<Json> {
        let mut names = BTreeSet::new();
        let draft_probe = |draft: &Draft| {
            let mut names_of_cases = BTreeSet::new();
            let cases = draft.cases.iter().map(|case| {
                let short: String = case.name.chars().take(200).collect();
                let name = unique(&short, &mut names_of_cases);
                json!({"name": name, "request": case.request, "expect": adjust(case)})
            });
            let mut spec = json!({"policyName": draft.policy, "cases": cases.collect::<Vec<_>>()});
            if let Some(fields) = spec.as_object_mut() {
                match &draft.bindings {
                    Bindings::OfFiles => {}
                    Bindings::Implied => {
                        fields.insert("bindings".to_owned(), json!("Implied"));
                    }
                    Bindings::Inline(specs) => {
                        fields.insert("bindings".to_owned(), json!("Inline"));
                        fields.insert("inlineBindings".to_owned(), json!(specs));
                    }
                }
                if let Some(params) = &draft.params {
                    fields.insert("params".to_owned(), json!("Inline"));
                    if !params.is_empty() {
                        fields.insert("inlineParams".to_owned(), json!(params));
                    }
                }
                if draft.is_partial {
                    fields.insert("samples".to_owned(), json!("Partial"));
                }
            }
            json!({
                "apiVersion": API_VERSION,
                "kind": "PolicyProbe",
                "metadata": {"name": unique(&draft.policy, &mut names)},
                "spec": spec,
            })
        };
        self.drafts.iter().map(draft_probe).collect()
    }
}

/// Returns the content of a file. If the file has characters that a terminal would interpret, its documents are
/// serialized again, without comments and with escapes.
fn printable(text: &str) -> Result<String, serde_json::Error> {
    if !text.contains(is_unsafe) {
        return Ok(text.to_owned());
    }
    let mut documents = Vec::new();
    for value in values(text) {
        match value {
            Ok(value) => documents.push(yaml_text::to_string(&value)?),
            Err(_) => return Ok(with_escapes(text.to_owned())),
        }
    }
    Ok(documents.join("---\n"))
}

/// Converts a suite.
///
/// # Errors
/// Returns an error if the data built into this program cannot be used.
pub fn run(options: &ConvertOptions) -> Result<Conversion, Broken> {
    let mut suite = match read(&options.suite) {
        Ok(suite) => suite,
        Err(problem) => {
            return Ok(Conversion {
                problem: Some(problem),
                ..Conversion::default()
            });
        }
    };
    guess_resources(&mut suite, options)?;
    complete(&mut suite, options)?;
    let mut texts = Vec::new();
    if options.with_policies {
        for file in &suite.files {
            let mut text = source::text(file).map_err(Broken)?;
            if !text.ends_with('\n') {
                text.push('\n');
            }
            texts.push(text);
        }
    }
    suite.notes.sort();
    suite.notes.dedup();
    Ok(Conversion {
        probes: suite.probes(|case| case.expect.clone()),
        policies: suite.policies,
        texts,
        files: suite.files,
        left_out: suite.notes,
        problem: None,
    })
}

/// Detects the format of a suite, and reads it.
fn read(path: &Path) -> Result<Suite, String> {
    let mut suite = Suite::default();
    if path.is_dir() {
        if let Some(problem) = not_of_kat(path) {
            return Err(problem);
        }
        kat::read(path, &mut suite)?;
        return Ok(suite);
    }
    let source = Source::read(path)?;
    match format(&source.json) {
        Some(Format::Gator) => gator::read(&source, &mut suite)?,
        Some(Format::Kyverno) => kyverno::read(&source, &mut suite)?,
        Some(Format::Kaptest) => kaptest::read(&source, &mut suite)?,
        None => {
            return Err(format!(
                "{} is not a suite of kaptest, kat (pass its directory), the Kyverno CLI or gator",
                path.display()
            ));
        }
    }
    Ok(suite)
}

/// The format of a suite that is one file.
#[derive(Clone, Copy)]
enum Format {
    Gator,
    Kyverno,
    Kaptest,
}

fn format(document: &Json) -> Option<Format> {
    let text = |name: &str| document.get(name).and_then(Json::as_str);
    let api_version = text("apiVersion").unwrap_or_default();
    let group = api_version.split_once('/').map(|(group, _)| group);
    match text("kind") {
        Some("Suite") if group == Some("test.gatekeeper.sh") => Some(Format::Gator),
        // The Kyverno CLI ignores the API group. Its own suites use both groups.
        Some("Test") if matches!(group, Some("cli.kyverno.io" | "kyverno.io")) => {
            Some(Format::Kyverno)
        }
        None if kaptest::is_suite(document) => Some(Format::Kaptest),
        None if document.get("results").is_some() && document.get("policies").is_some() => {
            Some(Format::Kyverno)
        }
        _ => None,
    }
}

/// Returns an error if a directory contains no suite of kat. The error lists the suites of other tools in the
/// directory.
fn not_of_kat(path: &Path) -> Option<String> {
    let is_tests = path.file_name().is_some_and(|name| name == kat::TESTS);
    if is_tests || path.join(kat::TESTS).is_dir() {
        return None;
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let files = entries.map(|entry| entry.path()).filter(|file| {
        let extension = file.extension().and_then(|it| it.to_str());
        matches!(extension, Some("yaml" | "yml"))
    });
    let is_suite = |file: &PathBuf| {
        let source = Source::read(file);
        source.is_ok_and(|source| format(&source.json).is_some())
    };
    let suites = files
        .filter(is_suite)
        .map(|file| file.display().to_string());
    let mut suites: Vec<String> = suites.collect();
    suites.sort();
    let help = match suites.as_slice() {
        [] => "pass the file of a suite of another tool".to_owned(),
        suites => format!("pass {}", suites.join(" or ")),
    };
    Some(format!(
        "{} is not a policy directory of kat: it lacks the subdirectory `{}`; {help}",
        path.display(),
        kat::TESTS
    ))
}

/// Sets the resource in requests for objects of an unknown kind. The resource is guessed from the kind, as upstream
/// does.
fn guess_resources(suite: &mut Suite, options: &ConvertOptions) -> Result<(), Broken> {
    let mut input = Input::load(&suite.files, KindFilter::Policies, &mut std::io::empty());
    let given = Input::load(&options.crds, KindFilter::Crds, &mut std::io::empty());
    let crds = std::mem::take(&mut input.crds).into_iter();
    let crds = crds.chain(given.crds).map(|crd| crd.value);
    let policies = input.policies.iter().map(|policy| &policy.value);
    let version = options.version;
    let apis = Known::new(version, crds, policies).map_err(|error| Broken(error.to_string()))?;
    let mut notes = Vec::new();
    for case in suite.drafts.iter_mut().flat_map(|draft| &mut draft.cases) {
        let object = [case.request.get("object"), case.request.get("oldObject")];
        let Some(object) = object.into_iter().flatten().next() else {
            continue;
        };
        let text = |name: &str| object.get(name).and_then(Json::as_str).unwrap_or_default();
        let kind = text("kind");
        let gvk = kind_of(object);
        if case.request.contains_key("resource")
            || kind.is_empty()
            || apis.mapper.resources_of_kind(&gvk).next().is_some()
        {
            continue;
        }
        let resource = plural(kind);
        notes.push(Note {
            place: case.place.clone(),
            text: format!(
                "{} {kind} is unknown, and its resource is assumed to be {resource}; \
                 pass its CustomResourceDefinition with --crds",
                text("apiVersion")
            ),
            is_missing: false,
        });
        let resource = json!({"group": gvk.group, "version": gvk.version, "resource": resource});
        case.request.insert("resource".to_owned(), resource);
    }
    suite.notes.extend(notes);
    Ok(())
}

/// Returns the resource that upstream guesses for a kind.
///
/// Source: `k8s.io/apimachinery` `pkg/api/meta/restmapper.go`, `UnsafeGuessKindToResource`.
fn plural(kind: &str) -> String {
    let singular = kind.to_lowercase();
    if singular.ends_with('s') {
        return format!("{singular}es");
    }
    match singular.strip_suffix('y') {
        Some(stem) => format!("{stem}ies"),
        None => format!("{singular}s"),
    }
}

/// Sets the fields of probes that suites do not define: `samples: Partial` if sample objects lack required fields, and
/// `applies: false` if the policy does not apply to a request that it must allow.
fn complete(suite: &mut Suite, options: &ConvertOptions) -> Result<(), Broken> {
    let report = run_probes(suite, options, |case| case.expect.clone())?;
    let results_by_probe = by_probe(&report);
    let names = names(suite);
    for (draft, name) in suite.drafts.iter_mut().zip(&names) {
        let cases = results_by_probe
            .get(name.as_str())
            .copied()
            .unwrap_or_default();
        let faults = || cases.iter().flat_map(|case| &case.invalid);
        draft.is_partial =
            faults().next().is_some() && faults().any(|fault| fault.message == REQUIRED);
    }
    let does_not_apply = json!({"applies": false});
    let report = run_probes(suite, options, |case| {
        if case.may_not_apply {
            does_not_apply.clone()
        } else {
            case.expect.clone()
        }
    })?;
    let results_by_probe = by_probe(&report);
    let mut notes = Vec::new();
    for (draft, name) in suite.drafts.iter_mut().zip(&names) {
        let results = results_by_probe
            .get(name.as_str())
            .copied()
            .unwrap_or_default();
        for (case, result) in draft.cases.iter_mut().zip(results) {
            if case.may_not_apply
                && result.outcome == CaseOutcome::Passed
                && let Some(fields) = case.expect.as_object_mut()
            {
                fields.insert("applies".to_owned(), json!(false));
                let why = result.explanation.as_deref().unwrap_or_default();
                notes.push(Note {
                    place: case.place.clone(),
                    text: format!("allowed because the policy does not apply: {why}"),
                    is_missing: false,
                });
            }
        }
    }
    suite.notes.extend(notes);
    Ok(())
}

fn names(suite: &Suite) -> Vec<String> {
    let mut names = BTreeSet::new();
    let drafts = suite.drafts.iter();
    drafts
        .map(|draft| unique(&draft.policy, &mut names))
        .collect()
}

fn by_probe(report: &TestReport) -> BTreeMap<&str, &[CaseReport]> {
    let probes = report.probes.iter();
    probes
        .map(|probe| (probe.name.as_str(), probe.cases.as_slice()))
        .collect()
}

/// Runs the probes of a suite with the expectations that `adjust` returns.
fn run_probes(
    suite: &Suite,
    convert: &ConvertOptions,
    adjust: impl Fn(&Case) -> Json,
) -> Result<TestReport, Broken> {
    let documents = suite.policies.iter().cloned().chain(suite.probes(adjust));
    let documents: Vec<String> = documents.map(|document| document.to_string()).collect();
    let mut paths = suite.files.clone();
    paths.push(PathBuf::from("-"));
    let options = Options {
        paths,
        crds: convert.crds.clone(),
        version: convert.version,
        ..Options::default()
    };
    super::run(&options, &mut documents.join("\n---\n").as_bytes())
}
