//! `parity mutations`: compares merges and patches of objects with upstream. Results and errors must be equal byte for
//! byte.
//!
//! Source: the oracle's `mutate.go`.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use vap_status_controller::go_json;
use vap_status_controller::json_patch::{self, Operation, PatchError};
use vap_status_controller::merge::{self, Applied, Types};
use vap_status_controller::schema::{Builtin, Crd, Gvk};
use vap_status_controller::version::KubernetesVersion;

use crate::cases::merges::{Purpose, ValueGenerator, definition, patch, schemas};
use crate::guard::guard;
use crate::mutate_requests;
use crate::random::Random;
use crate::rules::ask;
use crate::write_line;

/// The built-in kinds whose objects are merged: group, version and kind.
const KINDS: [(&str, &str, &str); 34] = [
    ("", "v1", "ConfigMap"),
    ("", "v1", "Endpoints"),
    ("", "v1", "LimitRange"),
    ("", "v1", "Namespace"),
    ("", "v1", "Node"),
    ("", "v1", "PersistentVolume"),
    ("", "v1", "PersistentVolumeClaim"),
    ("", "v1", "Pod"),
    ("", "v1", "PodTemplate"),
    ("", "v1", "ReplicationController"),
    ("", "v1", "ResourceQuota"),
    ("", "v1", "Secret"),
    ("", "v1", "Service"),
    ("", "v1", "ServiceAccount"),
    (
        "admissionregistration.k8s.io",
        "v1",
        "MutatingWebhookConfiguration",
    ),
    (
        "admissionregistration.k8s.io",
        "v1",
        "ValidatingAdmissionPolicy",
    ),
    ("apps", "v1", "DaemonSet"),
    ("apps", "v1", "Deployment"),
    ("apps", "v1", "ReplicaSet"),
    ("apps", "v1", "StatefulSet"),
    ("autoscaling", "v2", "HorizontalPodAutoscaler"),
    ("batch", "v1", "CronJob"),
    ("batch", "v1", "Job"),
    ("coordination.k8s.io", "v1", "Lease"),
    ("discovery.k8s.io", "v1", "EndpointSlice"),
    ("flowcontrol.apiserver.k8s.io", "v1", "FlowSchema"),
    ("networking.k8s.io", "v1", "Ingress"),
    ("networking.k8s.io", "v1", "NetworkPolicy"),
    ("policy", "v1", "PodDisruptionBudget"),
    ("rbac.authorization.k8s.io", "v1", "ClusterRole"),
    ("rbac.authorization.k8s.io", "v1", "RoleBinding"),
    ("resource.k8s.io", "v1", "ResourceClaim"),
    ("storage.k8s.io", "v1", "CSINode"),
    ("storage.k8s.io", "v1", "StorageClass"),
];

/// The settings of a comparison.
#[derive(Clone, Debug)]
pub struct MutationParity {
    /// The path of the oracle's binary.
    pub oracle: PathBuf,
    /// The directory of OpenAPI documents.
    pub openapi: PathBuf,
    /// The seed of the generated inputs.
    pub seed: u64,
    /// The number of merges.
    pub merges: u64,
    /// The number of patches.
    pub patches: u64,
    /// The number of requests for mutating policies.
    pub requests: u64,
    /// The number of differences to show.
    pub show: usize,
    /// The directory to which some of the cases are written, with upstream's results.
    pub record: Option<PathBuf>,
}

/// The counts of a comparison.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MutationLine {
    /// The number of merges.
    pub merges: usize,
    /// The number of merges of custom resources.
    pub custom: usize,
    /// The number of merges that are not compared, because an object cannot be decoded as an object of its kind.
    pub left_out: usize,
    /// The number of merges that upstream rejects.
    pub refused: usize,
    /// The number of merges without effect.
    pub unchanged: usize,
    /// The number of merges for which upstream's error depends on Go's map order.
    pub varying: usize,
    /// The number of merges for which our result equals upstream's.
    pub same_merges: usize,
    /// The number of patches.
    pub patches: usize,
    /// The number of patches that upstream rejects.
    pub refused_patches: usize,
    /// The number of distinct errors of rejected patches. Errors are distinguished by the second part of their message.
    pub refusals: usize,
    /// The number of patches on which upstream panics.
    pub panics: usize,
    /// The number of patches for which our result equals upstream's.
    pub same_patches: usize,
    /// The number of requests for mutating policies.
    pub requests: usize,
    /// The number of requests for mutating policies that upstream rejects.
    pub refused_requests: usize,
    /// The number of requests for mutating policies for which our result equals upstream's.
    pub same_requests: usize,
}

#[derive(Clone, Debug, Default, Deserialize, Serialize)]
struct Answer {
    #[serde(default)]
    live: Value,
    #[serde(default)]
    result: String,
    #[serde(default)]
    errors: Vec<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    panic: Option<Value>,
}

impl MutationParity {
    /// Compares merges, patches and requests, and prints the differences. Returns true if there are no differences.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read or written, or if the oracle fails.
    pub fn run(&self, out: &mut dyn Write) -> Result<bool> {
        let mut line = MutationLine::default();
        let mut left = self.show;
        self.merges(&mut line, &mut left, out)?;
        self.patches(&mut line, &mut left, out)?;
        self.requests(&mut line, &mut left, out)?;
        write_line(out, &line)?;
        let has_enough = line.left_out.saturating_mul(4) <= line.merges;
        Ok(has_enough
            && line.merges == line.same_merges
            && line.patches == line.same_patches
            && line.requests == line.same_requests)
    }

    fn merges(&self, line: &mut MutationLine, left: &mut usize, out: &mut dyn Write) -> Result<()> {
        let mut documents = Documents::new(&self.openapi);
        let mut cases = Vec::new();
        for n in 0..self.merges {
            cases.push(self.merge_case(n, &mut documents)?);
        }
        let openapi = self.openapi.display().to_string();
        let args = ["mutate", "merge", "--openapi", &openapi, "-"];
        let answers: Vec<Answer> = ask(&self.oracle, &args, cases.iter().cloned())?;
        if answers.len() != cases.len() {
            bail!(
                "the oracle has {} results for {} merges",
                answers.len(),
                cases.len()
            );
        }
        let builtin = Builtin::load(KubernetesVersion::DEFAULT)?;
        let mut recorder = Recorder::new(self.record.as_deref(), "merges.jsonl", 160);
        for (mut case, theirs) in cases.into_iter().zip(answers) {
            if theirs.error.is_some() {
                line.left_out += 1;
                continue;
            }
            if theirs.panic.is_some() {
                bail!("upstream panics: {theirs:?}");
            }
            line.merges += 1;
            line.custom += usize::from(case.get("crd").is_some());
            line.refused += usize::from(!theirs.errors.is_empty());
            line.varying += usize::from(theirs.errors.len() > 1);
            set(&mut case, "live", theirs.live.clone());
            line.unchanged += usize::from(go_json::to_text(&theirs.live) == theirs.result);
            let of_case = |types: &Types| guard(|| own_merge(types, &case));
            let mut ours = vec![of_case(documents.types(&case)?)];
            if case.get("crd").is_none() {
                ours.push(of_case(&Types::from_builtin(builtin, &gvk_of(&case)?)?));
            }
            let is_same = |ours: &Result<Result<String, String>, _>| match ours {
                Ok(Ok(result)) => theirs.errors.is_empty() && *result == theirs.result,
                Ok(Err(error)) => is_one_of(error, &theirs.errors),
                Err(_) => false,
            };
            if ours.iter().all(is_same) {
                line.same_merges += 1;
                recorder.add(&case, &theirs)?;
            } else if *left > 0 {
                *left -= 1;
                let ours = format!("{ours:?}");
                write_line(out, &json!({"theirs": theirs, "ours": ours, "case": case}))?;
            }
        }
        recorder.finish()
    }

    /// Generates a merge: an object, and an apply configuration.
    fn merge_case(&self, n: u64, documents: &mut Documents) -> Result<Value> {
        let mut random = Random::for_event(self.seed, "merge", n);
        let (gvk, crd, root) = if random.permille(500) {
            // Sixteen consecutive objects share a definition.
            let crd = definition(&mut Random::for_event(self.seed, "definition", n / 16));
            let root = crd.pointer("/spec/versions/0/schema/openAPIV3Schema");
            let root = root.cloned().unwrap_or_default();
            (["example.com", "v1", "Box"], Some(crd), root)
        } else {
            let (group, version, kind) = *random.choose(&KINDS).context("no kinds")?;
            ([group, version, kind], None, Value::Null)
        };
        let schemas = documents.schemas(&gvk)?;
        let root = match crd {
            Some(_) => root,
            None => root_schema(schemas, &gvk).context(format!("{gvk:?} has no schema"))?,
        };
        let mut live = ValueGenerator {
            random: random.clone(),
            schemas,
            purpose: Purpose::Live,
            density: 400,
        }
        .object(&root, 0);
        random.number();
        let mistakes = [0, 10, 60, 150].get(below(&mut random, 4)).copied();
        let atomics = [0, 20, 100, 500].get(below(&mut random, 4)).copied();
        let mut applied = ValueGenerator {
            random,
            schemas,
            purpose: Purpose::Applied {
                mistakes: mistakes.unwrap_or_default(),
                atomics: atomics.unwrap_or_default(),
            },
            density: 250,
        }
        .object(&root, 0);
        let [group, version, kind] = gvk;
        let api_version = Gvk::new(group, version, kind).api_version();
        set(&mut live, "apiVersion", json!(api_version));
        set(&mut live, "kind", json!(kind));
        if crd.is_some() {
            set(
                &mut live,
                "metadata",
                json!({"name": "a", "labels": {"a": "b"}, "finalizers": ["x"]}),
            );
            set(
                &mut applied,
                "metadata",
                json!({"labels": {"c": "d"}, "finalizers": ["x", "y"]}),
            );
        }
        let mut case = json!({"gvk": gvk, "live": live, "applied": applied});
        if let Some(crd) = crd {
            set(&mut case, "crd", crd);
        }
        Ok(case)
    }

    fn patches(
        &self,
        line: &mut MutationLine,
        left: &mut usize,
        out: &mut dyn Write,
    ) -> Result<()> {
        let cases: Vec<Value> = (0..self.patches)
            .map(|n| {
                let mut random = Random::for_event(self.seed, "patch", n);
                let object = patched_object(&mut random);
                let patch = patch(&mut random, &object);
                json!({"object": object, "patch": patch})
            })
            .collect();
        let args = ["mutate", "patch", "-"];
        let answers: Vec<Answer> = ask(&self.oracle, &args, cases.iter().cloned())?;
        if answers.len() != cases.len() {
            bail!(
                "the oracle has {} results for {} patches",
                answers.len(),
                cases.len()
            );
        }
        let mut recorder = Recorder::new(self.record.as_deref(), "patches.jsonl", 400);
        let mut refusals = BTreeMap::new();
        for (case, theirs) in cases.into_iter().zip(answers) {
            if let Some(error) = &theirs.error {
                bail!("the oracle cannot read {case}: {error}");
            }
            line.patches += 1;
            line.refused_patches += usize::from(!theirs.errors.is_empty());
            line.panics += usize::from(theirs.panic.is_some());
            for error in &theirs.errors {
                let words = error.split(": ").nth(1).unwrap_or(error);
                *refusals.entry(words.to_owned()).or_insert(0_u32) += 1;
            }
            let ours = guard(|| own_patch(&case));
            let is_same = match (&ours, &theirs.panic) {
                (Ok(Patched::Object(result)), None) => {
                    theirs.errors.is_empty() && *result == theirs.result
                }
                (Ok(Patched::Refused(error)), None) => theirs.errors == [error.clone()],
                (Ok(Patched::Panic(reason)), Some(panic)) => {
                    panic.get("value") == Some(&json!(reason))
                }
                _ => false,
            };
            if is_same {
                line.same_patches += 1;
                recorder.add(&case, &theirs)?;
            } else if *left > 0 {
                *left -= 1;
                let ours = format!("{ours:?}");
                write_line(out, &json!({"theirs": theirs, "ours": ours, "case": case}))?;
            }
        }
        line.refusals = refusals.len();
        recorder.finish()
    }
}

impl MutationParity {
    fn requests(
        &self,
        line: &mut MutationLine,
        left: &mut usize,
        out: &mut dyn Write,
    ) -> Result<()> {
        let cases: Vec<Value> = (0..self.requests)
            .map(|n| mutate_requests::case(self.seed, n))
            .collect();
        let args = ["mutate", "admit", "-"];
        let answers: Vec<Answer> = ask(&self.oracle, &args, cases.iter().cloned())?;
        if answers.len() != cases.len() {
            bail!(
                "the oracle has {} results for {} requests",
                answers.len(),
                cases.len()
            );
        }
        for (case, theirs) in cases.into_iter().zip(answers) {
            if let Some(error) = &theirs.error {
                bail!("the oracle cannot read {case}: {error}");
            }
            line.requests += 1;
            line.refused_requests += usize::from(!theirs.errors.is_empty());
            let ours = guard(|| mutate_requests::our_result(&case));
            let is_same = match &ours {
                Ok(Ok(Err(rejection))) if theirs.panic.is_some() => {
                    rejection.contains("caused apiserver to panic")
                }
                Ok(Ok(Ok(object))) => {
                    theirs.panic.is_none() && theirs.errors.is_empty() && *object == theirs.result
                }
                Ok(Ok(Err(rejection))) => theirs.errors.iter().any(|their| {
                    let read = |text: &str| serde_json::from_str::<Value>(text).ok();
                    read(their) == read(rejection)
                }),
                _ => false,
            };
            if is_same {
                line.same_requests += 1;
            } else if *left > 0 {
                *left -= 1;
                let ours = format!("{ours:?}");
                write_line(out, &json!({"theirs": theirs, "ours": ours, "case": case}))?;
            }
        }
        Ok(())
    }
}

fn below(random: &mut Random, n: u64) -> usize {
    usize::try_from(random.below(n)).unwrap_or_default()
}

fn set(value: &mut Value, key: &str, to: Value) {
    if let Some(fields) = value.as_object_mut() {
        fields.insert(key.to_owned(), to);
    }
}

/// Generates an object to patch. It contains values of all JSON types.
fn patched_object(random: &mut Random) -> Value {
    let mut object = json!({
        "apiVersion": "example.com/v1", "kind": "Box",
        "metadata": {"name": "a", "labels": {"a/b": "1", "c~d": "2"}},
        "spec": {"n": 1, "f": 1.5, "big": 1e21, "whole": 3.0, "none": null, "list": ["a", "b", {"c": [1, null]}, []],
            "map": {"x": {"y": true}, "": "empty"}, "text": "<é&>"},
    });
    for name in ["n", "f", "none", "list", "map", "text"] {
        if random.permille(150)
            && let Some(spec) = object.get_mut("spec").and_then(Value::as_object_mut)
        {
            spec.remove(name);
        }
    }
    object
}

struct Documents {
    openapi: PathBuf,
    schemas: BTreeMap<String, crate::cases::merges::Schemas>,
    types: BTreeMap<String, Types>,
}

impl Documents {
    fn new(openapi: &Path) -> Self {
        Self {
            openapi: openapi.to_owned(),
            schemas: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }

    fn path(&self, group: &str, version: &str) -> PathBuf {
        let name = if group.is_empty() {
            format!("api__{version}_openapi.json")
        } else {
            format!("apis__{group}__{version}_openapi.json")
        };
        self.openapi.join(name)
    }

    /// Returns the schemas in the OpenAPI document of a kind. For a custom kind, returns those in the core document.
    fn schemas(&mut self, gvk: &[&str; 3]) -> Result<&crate::cases::merges::Schemas> {
        let [group, version, _] = gvk;
        let group = if *group == "example.com" { "" } else { group };
        let path = self.path(group, version);
        let key = path.display().to_string();
        if !self.schemas.contains_key(&key) {
            let text = fs::read_to_string(&path).with_context(|| key.clone())?;
            let document: Value = serde_json::from_str(&text)?;
            self.schemas.insert(key.clone(), schemas(&document));
        }
        self.schemas.get(&key).context("no schemas")
    }

    fn types(&mut self, case: &Value) -> Result<&Types> {
        let gvk = gvk_of(case)?;
        let path = self.path(&gvk.group, &gvk.version);
        let crd = case.get("crd");
        let key = crd.map_or_else(|| path.display().to_string(), Value::to_string);
        if !self.types.contains_key(&key) {
            let types = match crd {
                Some(crd) => {
                    let crd = Crd::from_value(crd)?;
                    Types::from_crd(&crd, crd.versions.first().context("no version")?)?
                }
                None => Types::from_document(&fs::read(&path).with_context(|| key.clone())?)?,
            };
            self.types.insert(key.clone(), types);
        }
        self.types.get(&key).context("no types")
    }
}

fn root_schema(schemas: &crate::cases::merges::Schemas, gvk: &[&str; 3]) -> Option<Value> {
    let [group, version, kind] = gvk;
    let wanted = json!({"group": group, "version": version, "kind": kind});
    let mut schemas = schemas.values();
    let is_of = |schema: &&Value| {
        let kinds = schema.get("x-kubernetes-group-version-kind");
        let kinds = kinds.and_then(Value::as_array);
        kinds.is_some_and(|kinds| kinds.contains(&wanted))
    };
    schemas.find(is_of).cloned()
}

fn gvk_of(case: &Value) -> Result<Gvk> {
    let [group, version, kind]: [String; 3] =
        serde_json::from_value(case.get("gvk").cloned().unwrap_or_default())?;
    Ok(Gvk::new(group, version, kind))
}

fn own_merge(types: &Types, case: &Value) -> Result<String, String> {
    let gvk = gvk_of(case).map_err(|error| error.to_string())?;
    let part = |key: &str| case.get(key).unwrap_or(&Value::Null);
    let applied = Applied::from(part("applied"));
    merge::apply(types, &gvk, part("live"), &applied)
        .map(|merged| go_json::to_text(&merged))
        .map_err(|error| error.to_string())
}

#[derive(Debug)]
enum Patched {
    Object(String),
    Refused(String),
    Panic(&'static str),
}

fn own_patch(case: &Value) -> Patched {
    let part = |key: &str| case.get(key).unwrap_or(&Value::Null);
    let operations = part("patch").as_array().into_iter().flatten();
    let operations: Vec<Operation> = operations.map(operation).collect();
    let object = part("object");
    match json_patch::apply(object, &operations) {
        Ok(patched) => match json_patch::decoded(patched) {
            Ok(patched) => Patched::Object(go_json::to_text(&patched)),
            Err(error) => Patched::Refused(format!("Internal error occurred: {error}")),
        },
        Err(PatchError::TestFailed(_)) => Patched::Object(go_json::to_text(object)),
        Err(PatchError::Panic(reason)) => Patched::Panic(reason),
        Err(error) => Patched::Refused(format!("JSON Patch: {error}")),
    }
}

/// Parses an operation of a JSON patch.
#[must_use]
pub fn operation(written: &Value) -> Operation {
    let text = |key: &str| written.get(key).and_then(Value::as_str);
    Operation {
        op: text("op").unwrap_or_default().to_owned(),
        path: text("path").unwrap_or_default().to_owned(),
        from: text("from").map(str::to_owned),
        value: written.get("value").cloned(),
    }
}

/// Returns true if `error` equals one of upstream's errors. The order of the parts in the error may differ.
fn is_one_of(error: &str, theirs: &[String]) -> bool {
    let sorted = |text: &str| {
        let mut parts: Vec<String> = text
            .split('\n')
            .flat_map(|line| line.split(", "))
            .map(str::to_owned)
            .collect();
        if let Some(first) = parts.first_mut() {
            // The first part of the error is a heading, followed by the path of an atomic value.
            let (heading, path) = first.split_once("structs: ").unwrap_or((first, ""));
            let (heading, path) = (heading.to_owned(), path.to_owned());
            *first = heading;
            parts.push(path);
        }
        parts.sort();
        parts
    };
    let ours = sorted(error);
    theirs
        .iter()
        .any(|their| their == error || sorted(their) == ours)
}

/// Writes some of the cases to a file, with upstream's results.
struct Recorder {
    path: Option<PathBuf>,
    left: usize,
    text: String,
}

impl Recorder {
    fn new(directory: Option<&Path>, name: &str, cases: usize) -> Self {
        Self {
            path: directory.map(|directory| directory.join(name)),
            left: cases,
            text: String::new(),
        }
    }

    fn add(&mut self, case: &Value, theirs: &Answer) -> Result<()> {
        // Skips cases whose result is not deterministic. Also skips large cases, because they test no more than small
        // cases.
        let size = case.to_string().len();
        if self.path.is_none() || self.left == 0 || theirs.errors.len() > 1 || size > 6_000 {
            return Ok(());
        }
        self.left -= 1;
        let mut recorded = case.as_object().cloned().unwrap_or_else(Map::new);
        let answer = if let Some(panic) = &theirs.panic {
            ("panic", panic.get("value").cloned().unwrap_or_default())
        } else if let Some(error) = theirs.errors.first() {
            ("error", json!(error))
        } else {
            ("result", json!(theirs.result))
        };
        recorded.insert(answer.0.to_owned(), answer.1);
        self.text.push_str(&serde_json::to_string(&recorded)?);
        self.text.push('\n');
        Ok(())
    }

    fn finish(self) -> Result<()> {
        match self.path {
            Some(path) => fs::write(&path, self.text).with_context(|| path.display().to_string()),
            None => Ok(()),
        }
    }
}
