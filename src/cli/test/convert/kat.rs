//! Converts suites of kat. A suite is a directory with a policy and a subdirectory `tests`. `tests` contains a file for
//! each part of a test, named `POLICY.TEST.EXPECTATION.PART`.
//!
//! Source: kat `internal/loader/suite.go`, `internal/loader/request.go`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value as Json, json};

use super::source::{self, Source, text_field};
use super::{Bindings, Case, Suite};
use crate::cli::input::{Input, KindFilter};
use crate::policy;

/// The suffixes of the names of a test's files.
const PARTS: [&str; 9] = [
    ".object.yaml",
    ".oldObject.yaml",
    ".request.yaml",
    ".params.yaml",
    ".authorizer.yaml",
    ".annotations.yaml",
    ".message.txt",
    ".warnings.txt",
    ".gold.yaml",
];

/// The names, without extension, of files with policies and bindings. A prefix that ends with a dot may precede them.
const KINDS: [&str; 4] = ["policy", "policies", "binding", "bindings"];

/// The subdirectory with the tests.
pub(super) const TESTS: &str = "tests";

/// Reads a suite. `path` is the directory of the policy, or its subdirectory `tests`.
pub(super) fn read(path: &Path, suite: &mut Suite) -> Result<(), String> {
    let is_tests = path.file_name().is_some_and(|name| name == TESTS);
    let folder = if is_tests {
        path.parent().unwrap_or(path)
    } else {
        path
    };
    let tests = files(&folder.join(TESTS))?;
    suite.files = files(folder)?;
    suite.files.retain(|file| {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let kind = name.strip_suffix(".yaml").or(name.strip_suffix(".yml"));
        kind.is_some_and(|kind| {
            KINDS
                .iter()
                .any(|it| kind == *it || kind.ends_with(&format!(".{it}")))
        })
    });
    let input = Input::load(&suite.files, KindFilter::All, &mut std::io::empty());
    if let Some(problem) = input.problems.first() {
        return Err(format!("{}: {}", problem.file, problem.message));
    }
    let mut by_name: BTreeMap<String, BTreeMap<&str, PathBuf>> = BTreeMap::new();
    for file in tests {
        let name = file.file_name().unwrap_or_default().to_string_lossy();
        let part = PARTS.into_iter().find(|part| name.ends_with(part));
        match part {
            Some(part) => {
                let base = name.strip_suffix(part).unwrap_or_default().to_owned();
                by_name.entry(base).or_default().insert(part, file.clone());
            }
            None => suite.note(file.display().to_string(), "the file is not part of a test"),
        }
    }
    let policies: Vec<&str> = input.policies.iter().filter_map(|it| it.name()).collect();
    for (name, parts) in by_name {
        let place = parts.values().next().map(|it| it.display().to_string());
        let place = place.unwrap_or_default();
        let by_prefix = |policy: &&&str| {
            let rest = name.strip_prefix(**policy);
            rest.is_some_and(|rest| rest.starts_with('.'))
        };
        let policy = policies.iter().find(by_prefix).copied();
        let policy = policy.or(match policies.as_slice() {
            [only] => Some(only),
            _ => None,
        });
        let Some(policy) = policy else {
            let text = "the test has no ValidatingAdmissionPolicy";
            suite.missing(place, text);
            continue;
        };
        let object = input.policies.iter().find(|it| it.name() == Some(policy));
        let has_params = object.is_some_and(|it| policy::param_kind(&it.value).is_some());
        let test = Test {
            name: &name,
            parts: &parts,
            place: place.clone(),
        };
        match test.case(suite) {
            Ok(case) => {
                let bindings = input.bindings.iter().map(|it| &it.value.spec);
                let bindings: Vec<_> = bindings.filter(|it| it.policy_name == policy).collect();
                let param_ref = bindings.first().and_then(|it| it.param_ref.as_ref());
                let place_of_param = param_ref.and_then(|it| it.namespace.clone());
                let namespace = place_of_param.unwrap_or_else(|| namespace(&case.request));
                let bindings = if bindings.is_empty() {
                    Bindings::Implied
                } else {
                    Bindings::OfFiles
                };
                match test.params(&namespace) {
                    Ok(params) => {
                        let params = has_params.then_some(params);
                        suite.add(policy, bindings, params, case);
                    }
                    Err(why) => suite.missing(place, why),
                }
            }
            Err(why) => suite.missing(place, why),
        }
    }
    Ok(())
}

/// Returns the files of a directory, sorted.
fn files(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let shown = folder.display();
    let entries = fs::read_dir(folder).map_err(|error| format!("cannot read {shown}: {error}"))?;
    let mut files = Vec::new();
    for entry in entries {
        let entry = entry.map_err(|error| format!("cannot read {shown}: {error}"))?;
        let path = entry.path();
        if path.is_file() {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn namespace(request: &Map<String, Json>) -> String {
    let given = request.get("namespace").and_then(Json::as_str);
    let object = request.get("object").or_else(|| request.get("oldObject"));
    let object_namespace = object.and_then(|it| it.pointer("/metadata/namespace"));
    let object_namespace = object_namespace.and_then(Json::as_str);
    given.or(object_namespace).unwrap_or("default").to_owned()
}

struct Test<'a> {
    name: &'a str,
    parts: &'a BTreeMap<&'a str, PathBuf>,
    place: String,
}

impl Test<'_> {
    fn document(&self, part: &str) -> Result<Option<Json>, String> {
        let path = self.parts.get(part);
        let read = path.map(|path| Source::read(path));
        Ok(read.transpose()?.map(|source| source.json))
    }

    fn text(&self, part: &str) -> Result<Option<String>, String> {
        let path = self.parts.get(part);
        let read = path.map(|path| source::text(path)).transpose()?;
        Ok(read.map(|text| text.trim().to_owned()))
    }

    fn params(&self, namespace: &str) -> Result<Vec<Json>, String> {
        let mut params = self.document(".params.yaml")?;
        let metadata = params.as_mut().and_then(|it| it.get_mut("metadata"));
        if let Some(metadata) = metadata.and_then(Json::as_object_mut) {
            metadata
                .entry("namespace")
                .or_insert_with(|| json!(namespace));
        }
        Ok(params.into_iter().collect())
    }

    fn case(&self, suite: &mut Suite) -> Result<Case, String> {
        if self.parts.contains_key(".gold.yaml") {
            return Err("tests of mutations cannot be converted".to_owned());
        }
        let mut request = self.request(suite)?;
        let denies = self.name.split('.').skip(1).any(|part| part == "deny");
        let mut expect = json!({"decision": if denies { "Deny" } else { "Allow" }});
        let mut set = |field: &str, value: Json| {
            if let Some(fields) = expect.as_object_mut() {
                fields.insert(field.to_owned(), value);
            }
        };
        let message = self.text(".message.txt")?.filter(|text| !text.is_empty());
        if let Some(message) = message.filter(|_| denies) {
            let has_object = request.contains_key("object") || request.contains_key("oldObject");
            if has_object && !self.is_from_request() {
                set("message", json!(message));
            } else {
                let text = "the message is ignored, because kat reads messages only for tests with a file \
                    `.object.yaml` or `.oldObject.yaml`";
                suite.note(self.place.clone(), text);
            }
        }
        let warnings = self.text(".warnings.txt")?.unwrap_or_default();
        let warnings: Vec<&str> = warnings.lines().map(str::trim).collect();
        let warnings: Vec<&str> = warnings.into_iter().filter(|it| !it.is_empty()).collect();
        if !warnings.is_empty() {
            set("warnings", json!(warnings));
        }
        let annotations = self.document(".annotations.yaml")?;
        let acts = !warnings.is_empty() || annotations.is_some();
        if let Some(annotations) = annotations {
            set("auditAnnotations", to_strings(&annotations));
        }
        if let Some(answers) = self.document(".authorizer.yaml")? {
            request.insert("authorizer".to_owned(), authorizer(&answers)?);
        }
        Ok(Case {
            name: self.name.to_owned(),
            request,
            expect,
            may_not_apply: !denies && !acts,
            place: self.place.clone(),
        })
    }

    /// Returns true if the test has no files with objects. The objects are then in the request.
    fn is_from_request(&self) -> bool {
        !self.parts.contains_key(".object.yaml") && !self.parts.contains_key(".oldObject.yaml")
    }

    fn request(&self, suite: &mut Suite) -> Result<Map<String, Json>, String> {
        let given = self.document(".request.yaml")?.unwrap_or_default();
        let mut request = Map::new();
        for field in [
            "operation",
            "resource",
            "subResource",
            "name",
            "namespace",
            "namespaceObject",
            "userInfo",
            "object",
            "oldObject",
            "options",
            "dryRun",
        ] {
            if let Some(value) = given.get(field).filter(|value| !value.is_null()) {
                request.insert(field.to_owned(), value.clone());
            }
        }
        for (part, field) in [(".object.yaml", "object"), (".oldObject.yaml", "oldObject")] {
            if let Some(object) = self.document(part)? {
                request.insert(field.to_owned(), object);
            }
        }
        let inferred = match (request.get("object"), request.get("oldObject")) {
            (Some(_), None) => Some("CREATE"),
            (None, Some(_)) => Some("DELETE"),
            (Some(_), Some(_)) => Some("UPDATE"),
            (None, None) => None,
        };
        if let (Some(inferred), None) = (inferred, request.get("operation")) {
            request.insert("operation".to_owned(), json!(inferred));
        }
        let namespace = request.get("namespaceObject");
        let namespace = namespace.and_then(|it| it.pointer("/metadata/name"));
        if let Some(namespace) = namespace.cloned()
            && !request.contains_key("namespace")
        {
            // kat derives the namespace from namespaceObject.
            request.insert("namespace".to_owned(), namespace);
        }
        self.connect(&mut request, suite);
        Ok(request)
    }

    /// Sets the object of a CONNECT request as the API server does: the object contains the options of the subresource.
    fn connect(&self, request: &mut Map<String, Json>, suite: &mut Suite) {
        let is_connect = request.get("operation") == Some(&json!("CONNECT"));
        if !is_connect || request.contains_key("object") {
            return;
        }
        let subresource = request.get("subResource").and_then(Json::as_str);
        let kind = match subresource.unwrap_or_default() {
            "exec" => "PodExecOptions",
            "attach" => "PodAttachOptions",
            "portforward" => "PodPortForwardOptions",
            _ => return,
        };
        let mut object = request.remove("options").unwrap_or_else(|| json!({}));
        if let Some(fields) = object.as_object_mut() {
            fields.insert("apiVersion".to_owned(), json!("v1"));
            fields.insert("kind".to_owned(), json!(kind));
            let text = "the options of the CONNECT request are its object, as in the API server";
            suite.note(self.place.clone(), text);
        }
        request.insert("object".to_owned(), object);
        let pods = json!({"group": "", "version": "v1", "resource": "pods"});
        request.entry("resource").or_insert(pods);
    }
}

/// Converts the values of an object to strings, as kat does.
fn to_strings(values: &Json) -> Json {
    let fields = values.as_object().into_iter().flatten();
    let texts = fields.map(|(name, value)| {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        (name.clone(), json!(text))
    });
    Json::Object(texts.collect())
}

/// Converts the responses of an authorizer to the field `authorizer` of a case.
fn authorizer(answers: &Json) -> Result<Json, String> {
    let answers = answers.as_array().ok_or("the authorizer is not a list")?;
    let answer = |answer: &Json| {
        let mut rule = Map::new();
        for (from, into) in [
            ("verb", "verb"),
            ("group", "group"),
            ("resource", "resource"),
            ("subresource", "subResource"),
            ("namespace", "namespace"),
            ("name", "name"),
            ("path", "path"),
            ("reason", "reason"),
        ] {
            if let Some(value) = answer.get(from).filter(|value| !value.is_null()) {
                rule.insert(into.to_owned(), value.clone());
            }
        }
        let decision = match text_field(answer, "decision").to_lowercase().as_str() {
            "allow" => "Allow",
            "deny" => "Deny",
            _ => "NoOpinion",
        };
        rule.insert("decision".to_owned(), json!(decision));
        Json::Object(rule)
    };
    Ok(json!(answers.iter().map(answer).collect::<Vec<_>>()))
}
