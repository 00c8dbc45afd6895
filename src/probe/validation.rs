//! Validates probes in files against the CRD of `PolicyProbe`. `kubectl vap test` thus rejects the same probes as the
//! API server.
//!
//! Source: `k8s.io/apiextensions-apiserver` `pkg/apiserver/validation`, `pkg/apiserver/schema/objectmeta/
//! validation.go` (`validateEmbeddedResource`), `pkg/apiserver/schema/defaulting/prune.go`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::{Map, Value as Json};

use super::api::PolicyProbeSpec;
use super::crd::crd;
use crate::cel::checker;
use crate::cel::decls::Variable;
use crate::cel::eval::{Activation, Limits, Part, Program};
use crate::cel::syntax;
use crate::cel::types::Type;
use crate::cel::value::Value;
use crate::library::environment::base_env;
use crate::library::limits::PER_CALL_LIMIT;
use crate::library::runtime::KubernetesRuntime;
use crate::policy::nearest::nearest;
use crate::version::KubernetesVersion;

/// The apiVersion of probes.
pub const API_VERSION: &str = "vap-status.dev/v1alpha1";

const MAX_VIOLATIONS: usize = 20;

/// Top-level fields of a probe. `metadata` and `status` are set by the API server and the controller.
const ROOT_FIELDS: [&str; 5] = ["apiVersion", "kind", "metadata", "spec", "status"];

/// Fields that are allowed only in files. `kubectl vap test` replaces them before validation. They are listed here as
/// suggestions for misspelled fields.
const FILE_FIELDS: [&str; 8] = [
    "policyNames",
    "objectFrom",
    "oldObjectFrom",
    "admissionReview",
    "admissionReviewFrom",
    "patch",
    "oldPatch",
    "rows",
];

/// An error in a probe. The API server rejects a probe with such an error.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The path of the field, such as `spec.cases[0].request`.
    pub field_ref: String,
    /// The description of the violation.
    pub message: String,
}

/// The schema of the CRD, and its compiled validation rules.
pub struct Validator {
    schema: Json,
    rules: BTreeMap<String, Program>,
}

impl fmt::Debug for Validator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Validator")
            .field("rules", &self.rules.keys())
            .finish_non_exhaustive()
    }
}

impl Validator {
    /// Compiles the validation rules of the CRD.
    ///
    /// # Errors
    /// Returns an error if a rule does not compile. Tests check that all rules compile.
    pub fn new() -> Result<Self, String> {
        let version = crd().spec.versions.into_iter().next();
        let schema = version.and_then(|version| version.schema?.open_api_v3_schema);
        let schema = serde_json::to_value(schema).map_err(|error| error.to_string())?;
        let schema = schema.pointer("/properties/spec").cloned();
        let schema = schema.ok_or("the CRD has no schema for `spec`")?;
        let mut rules = BTreeMap::new();
        plan_rules(&schema, &mut rules)?;
        Ok(Self { schema, rules })
    }

    /// Validates a probe and parses its spec.
    ///
    /// # Errors
    /// Returns the violations in the order of the schema.
    pub fn read(&self, probe: &Json) -> Result<PolicyProbeSpec, Vec<Violation>> {
        let mut violations = Violations::default();
        let version = probe.get("apiVersion").and_then(Json::as_str);
        if version != Some(API_VERSION) {
            violations.add("apiVersion", format!("must be `{API_VERSION}`"));
        }
        let name = probe.pointer("/metadata/name").and_then(Json::as_str);
        if name.is_none_or(str::is_empty) {
            violations.add("metadata.name", "is required".to_owned());
        }
        for field in probe.as_object().into_iter().flat_map(Map::keys) {
            if !ROOT_FIELDS.contains(&field.as_str()) {
                violations.add(field, unknown(field, ROOT_FIELDS.into_iter()));
            }
        }
        let mut spec = match probe.get("spec") {
            None | Some(Json::Null) => {
                violations.add("spec", "is required".to_owned());
                return Err(violations.0);
            }
            Some(spec) => spec.clone(),
        };
        prune_nulls(&mut spec, &self.schema);
        self.walk(&spec, &self.schema, "spec", &mut violations);
        if !violations.0.is_empty() {
            return Err(violations.0);
        }
        // Parsing detects errors that the schema does not detect, for example in the specs of inline bindings.
        serde_json::from_value(spec).map_err(|error| {
            vec![Violation {
                field_ref: "spec".to_owned(),
                message: format!("cannot be parsed: {error}"),
            }]
        })
    }

    /// Validates `value` against its schema. The schema of the CRD is finite, which bounds the recursion.
    fn walk(&self, value: &Json, schema: &Json, path: &str, found: &mut Violations) {
        let n_before = found.0.len();
        if value.is_null() && flag(schema, "nullable") {
            return;
        }
        if let Some(expected) = schema.get("type").and_then(Json::as_str)
            && !is_of_type(value, expected)
        {
            let message = format!("must be of type {expected}, but is {}", type_name(value));
            found.add(path, message);
            return;
        }
        match value {
            Json::String(text) => string(text, schema, path, found),
            Json::Array(items) => {
                list(items, schema, path, found);
                if let Some(schema) = schema.get("items") {
                    for (n, item) in items.iter().enumerate() {
                        self.walk(item, schema, &format!("{path}[{n}]"), found);
                    }
                }
            }
            Json::Object(fields) => self.object(fields, schema, path, found),
            Json::Null | Json::Bool(_) | Json::Number(_) => {}
        }
        if found.0.len() == n_before {
            self.rules(value, schema, path, found);
        }
    }

    fn object(
        &self,
        fields: &Map<String, Json>,
        schema: &Json,
        path: &str,
        found: &mut Violations,
    ) {
        if flag(schema, "x-kubernetes-embedded-resource") {
            embedded(fields, path, found);
        }
        let required = schema.get("required").and_then(Json::as_array);
        for name in required.into_iter().flatten().filter_map(Json::as_str) {
            if !fields.contains_key(name) {
                found.add(&joined(path, name), "is required".to_owned());
            }
        }
        let properties = schema.get("properties").and_then(Json::as_object);
        let additional = schema
            .get("additionalProperties")
            .filter(|of| of.is_object());
        let preserves_unknown = flag(schema, "x-kubernetes-preserve-unknown-fields");
        for (name, field) in fields {
            let path = joined(path, name);
            let declared = properties.and_then(|properties| properties.get(name));
            match declared.or(additional) {
                Some(schema) => self.walk(field, schema, &path, found),
                None if preserves_unknown => {}
                None => {
                    let names = properties.into_iter().flat_map(Map::keys);
                    let names = names.map(String::as_str).chain(FILE_FIELDS);
                    found.add(&path, unknown(name, names));
                }
            }
        }
    }

    /// Evaluates the validation rules of a schema. The other keywords of the schema must already be validated.
    fn rules(&self, value: &Json, schema: &Json, path: &str, found: &mut Violations) {
        let self_ = SelfVariable {
            json: value,
            whole: OnceLock::new(),
        };
        for rule in rules_of(schema) {
            let text = rule.get("rule").and_then(Json::as_str).unwrap_or_default();
            let Some(program) = self.rules.get(text) else {
                continue;
            };
            let evaluation = program.eval(&self_, Limits::from_cost(PER_CALL_LIMIT));
            match evaluation.result {
                Ok(Value::Bool(true)) => {}
                Ok(_) => {
                    let message = rule.get("message").and_then(Json::as_str);
                    found.add(path, message.unwrap_or(text).to_owned());
                }
                Err(error) => found.add(path, error.message().to_owned()),
            }
        }
    }
}

/// Returns the message about the unknown field `name`. The suggestion is one of `names`.
#[must_use]
pub fn unknown<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> String {
    match nearest(name, names) {
        Some(similar) => format!("unknown field, did you mean `{similar}`?"),
        None => "unknown field".to_owned(),
    }
}

/// The variable `self`. Cases contain large objects, and most rules only test the presence of a field. Therefore only
/// the fields that a rule reads are converted to CEL values.
struct SelfVariable<'a> {
    json: &'a Json,
    whole: OnceLock<Value>,
}

impl Activation for SelfVariable<'_> {
    fn resolve(&self, name: &str) -> Option<Cow<'_, Value>> {
        let whole = || self.whole.get_or_init(|| Value::from(self.json));
        (name == "self").then(|| Cow::Borrowed(whole()))
    }

    fn resolve_part(&self, name: &str, keys: &[Arc<str>], is_test: bool) -> Option<Part<'_>> {
        if name != "self" {
            return None;
        }
        let mut json = self.json;
        for (n, key) in keys.iter().enumerate() {
            match json.as_object()?.get(&**key) {
                Some(field) => json = field,
                None => return Some(Part::Absent(n)),
            }
        }
        match json {
            _ if is_test => Some(Part::Value(keys.len(), Cow::Owned(Value::Bool(true)))),
            // Lists and maps come from `whole`, which is converted only once.
            Json::Array(_) | Json::Object(_) => None,
            scalar => Some(Part::Value(keys.len(), Cow::Owned(Value::from(scalar)))),
        }
    }
}

/// Ignores violations beyond `MAX_VIOLATIONS`.
#[derive(Default)]
struct Violations(Vec<Violation>);

impl Violations {
    fn add(&mut self, field_ref: &str, message: String) {
        if self.0.len() < MAX_VIOLATIONS {
            self.0.push(Violation {
                field_ref: field_ref.to_owned(),
                message,
            });
        }
    }
}

/// Compiles the validation rules of a schema, recursively.
fn plan_rules(schema: &Json, rules: &mut BTreeMap<String, Program>) -> Result<(), String> {
    for rule in rules_of(schema) {
        let text = rule.get("rule").and_then(Json::as_str).unwrap_or_default();
        rules.insert(text.to_owned(), plan(text)?);
    }
    let properties = schema.get("properties").and_then(Json::as_object);
    let below = properties
        .into_iter()
        .flat_map(Map::values)
        .chain(schema.get("items"));
    for schema in below {
        plan_rules(schema, rules)?;
    }
    Ok(())
}

fn plan(text: &str) -> Result<Program, String> {
    let variable = Variable::new("self", Type::Dyn);
    let env = base_env(KubernetesVersion::DEFAULT).extend([variable]);
    let (ast, diagnostics) = syntax::parse(text);
    let ast = ast.ok_or_else(|| diagnostics.render(text))?;
    let (checked, diagnostics) = checker::check(&Arc::new(ast), text, &env);
    if !diagnostics.is_empty() {
        return Err(diagnostics.render(text));
    }
    Program::plan(&checked, &env, &KubernetesRuntime).map_err(|error| error.to_string())
}

fn rules_of(schema: &Json) -> impl Iterator<Item = &Json> {
    let rules = schema
        .get("x-kubernetes-validations")
        .and_then(Json::as_array);
    rules.into_iter().flatten()
}

fn flag(schema: &Json, name: &str) -> bool {
    schema.get(name).and_then(Json::as_bool).unwrap_or_default()
}

fn bound(schema: &Json, name: &str) -> Option<usize> {
    let bound = schema.get(name).and_then(Json::as_u64)?;
    usize::try_from(bound).ok()
}

fn joined(path: &str, name: &str) -> String {
    format!("{path}.{name}")
}

/// Removes null fields that are not nullable, as the API server does.
fn prune_nulls(value: &mut Json, schema: &Json) {
    match value {
        Json::Object(fields) => {
            let properties = schema.get("properties").and_then(Json::as_object);
            let additional = schema
                .get("additionalProperties")
                .filter(|of| of.is_object());
            let schema_of = |name: &str| properties.and_then(|of| of.get(name)).or(additional);
            fields.retain(|name, field| {
                !field.is_null() || schema_of(name).is_none_or(|schema| flag(schema, "nullable"))
            });
            for (name, field) in fields {
                if let Some(schema) = schema_of(name) {
                    prune_nulls(field, schema);
                }
            }
        }
        Json::Array(items) => {
            if let Some(schema) = schema.get("items") {
                for item in items {
                    prune_nulls(item, schema);
                }
            }
        }
        Json::Null | Json::Bool(_) | Json::Number(_) | Json::String(_) => {}
    }
}

/// Returns the OpenAPI type of a value.
pub(super) fn type_name(value: &Json) -> &'static str {
    match value {
        Json::Null => "null",
        Json::Bool(_) => "boolean",
        Json::Number(number) if number.is_f64() => "number",
        Json::Number(_) => "integer",
        Json::String(_) => "string",
        Json::Array(_) => "array",
        Json::Object(_) => "object",
    }
}

fn is_of_type(value: &Json, expected: &str) -> bool {
    let actual = type_name(value);
    actual == expected || (actual == "integer" && expected == "number")
}

fn string(text: &str, schema: &Json, path: &str, found: &mut Violations) {
    let length = text.chars().count();
    if bound(schema, "minLength").is_some_and(|least| length < least) {
        found.add(path, "must not be empty".to_owned());
    }
    if let Some(most) = bound(schema, "maxLength").filter(|most| length > *most) {
        let message = format!("has {length} characters, but the limit is {most}");
        found.add(path, message);
    }
    let allowed = schema.get("enum").and_then(Json::as_array);
    if let Some(allowed) = allowed
        && !allowed.iter().any(|value| value == text)
    {
        let texts = allowed.iter().filter_map(Json::as_str);
        let texts: Vec<String> = texts.map(|text| format!("`{text}`")).collect();
        let names = || allowed.iter().filter_map(Json::as_str);
        // Another form of an allowed word, such as `Denied` for `Deny`, begins with the first three letters of this
        // word.
        let start = text.get(..3);
        let related = || names().find(|name| start.is_some() && name.get(..3) == start);
        let similar = nearest(text, names()).or_else(related);
        let hint = similar.map(|similar| format!("; did you mean `{similar}`?"));
        found.add(
            path,
            format!(
                "is `{text}`, but must be one of {}{}",
                texts.join(", "),
                hint.unwrap_or_default()
            ),
        );
    }
}

fn list(items: &[Json], schema: &Json, path: &str, found: &mut Violations) {
    let n = items.len();
    if bound(schema, "minItems").is_some_and(|least| n < least) {
        found.add(path, "must not be empty".to_owned());
    }
    if let Some(most) = bound(schema, "maxItems").filter(|most| n > *most) {
        found.add(path, format!("has {n} items, but the limit is {most}"));
    }
    let keys = schema
        .get("x-kubernetes-list-map-keys")
        .and_then(Json::as_array);
    let keys: Vec<&str> = keys
        .into_iter()
        .flatten()
        .filter_map(Json::as_str)
        .collect();
    let is_set = schema.get("x-kubernetes-list-type").and_then(Json::as_str) == Some("set");
    if keys.is_empty() && !is_set {
        return;
    }
    let mut seen = BTreeSet::new();
    for (n, item) in items.iter().enumerate() {
        let key = if is_set {
            item.to_string()
        } else {
            let parts = keys.iter().map(|key| item.get(*key));
            let parts: Vec<String> = parts
                .map(|part| part.map(Json::to_string).unwrap_or_default())
                .collect();
            parts.join(", ")
        };
        if !seen.insert(key.clone()) {
            found.add(&format!("{path}[{n}]"), format!("duplicate: {key}"));
        }
    }
}

/// Checks the required fields of an embedded object: `apiVersion`, `kind` and `metadata`.
fn embedded(fields: &Map<String, Json>, path: &str, found: &mut Violations) {
    for name in ["apiVersion", "kind"] {
        let path = joined(path, name);
        match fields.get(name) {
            None => found.add(&path, "is required".to_owned()),
            Some(Json::String(text)) if text.is_empty() => {
                found.add(&path, "must not be empty".to_owned());
            }
            Some(Json::String(text)) if name == "apiVersion" && text.matches('/').count() > 1 => {
                found.add(&path, format!("unexpected GroupVersion string: {text}"));
            }
            Some(Json::String(_)) => {}
            Some(_) => found.add(&path, "must be a string".to_owned()),
        }
    }
    if fields.get("metadata").is_some_and(|of| !of.is_object()) {
        found.add(&joined(path, "metadata"), "must be an object".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn probe(spec: &Json) -> Json {
        json!({
            "apiVersion": API_VERSION,
            "kind": "PolicyProbe",
            "metadata": {"name": "probe"},
            "spec": spec,
        })
    }

    fn case(request: &Json, expect: &Json) -> Json {
        json!({
            "policyName": "policy",
            "cases": [{"name": "case", "request": request, "expect": expect}],
        })
    }

    #[track_caller]
    fn check(spec: &Json, violations: &[(&str, &str)]) {
        let read = Validator::new().unwrap().read(&probe(spec));
        let actual = read.err().unwrap_or_default();
        let actual: Vec<(&str, &str)> = actual
            .iter()
            .map(|violation| (violation.field_ref.as_str(), violation.message.as_str()))
            .collect();
        assert_eq!(actual, violations);
    }

    #[test]
    fn validator_evaluates_rules_of_crd() {
        let pod = json!({"apiVersion": "v1", "kind": "Pod"});
        let allow = json!({"decision": "Allow"});
        check(&case(&json!({"object": pod}), &allow), &[]);
        check(
            &case(&json!({"operation": "DELETE", "oldObject": pod}), &allow),
            &[],
        );
        let request = "spec.cases[0].request";
        check(
            &case(
                &json!({"operation": "UPDATE", "object": pod, "oldObject": null}),
                &allow,
            ),
            &[(request, "an UPDATE requires an `oldObject`")],
        );
        check(
            &case(&json!({"operation": "DELETE", "object": pod}), &allow),
            &[(
                request,
                "a DELETE must not have an `object`; the deleted object is the `oldObject`",
            )],
        );
        check(
            &case(
                &json!({"object": pod}),
                &json!({"decision": "Allow", "reason": "Invalid"}),
            ),
            &[(
                "spec.cases[0].expect",
                "`message`, `messageContains`, `messagePattern`, `reason`, `field` and `errors` require `decision: Deny`",
            )],
        );
        let mut spec = case(&json!({"object": pod}), &allow);
        spec["bindings"] = "Inline".into();
        check(
            &spec,
            &[(
                "spec",
                "`inlineBindings` must be set if and only if `bindings` is `Inline`",
            )],
        );
    }

    #[test]
    fn validator_checks_schema_of_crd() {
        let pod = json!({"object": {"any": [null, {"thing": 1}]}});
        let mut spec = case(&pod, &json!({"decision": "allow"}));
        spec["policyName"] = "".into();
        spec["mode"] = "x".into();
        spec["paramz"] = "x".into();
        spec["params"] = "Inline".into();
        spec["inlineParams"] = json!([{"kind": 1}, 2]);
        spec["inlineBindings"] = json!([{"validationActions": ["Deny", "Deny"]}]);
        let copy = spec["cases"][0].clone();
        spec["cases"].as_array_mut().unwrap().push(copy);
        spec["cases"].as_array_mut().unwrap()[1]["expect"] = json!({"decision": "Denied"});
        check(
            &spec,
            &[
                ("spec.cases[1]", "duplicate: \"case\""),
                (
                    "spec.cases[0].expect.decision",
                    "is `allow`, but must be one of `Allow`, `Deny`; did you mean `Allow`?",
                ),
                (
                    "spec.cases[1].expect.decision",
                    "is `Denied`, but must be one of `Allow`, `Deny`; did you mean `Deny`?",
                ),
                (
                    "spec.inlineBindings[0].validationActions[1]",
                    "duplicate: \"Deny\"",
                ),
                ("spec.inlineParams[0].apiVersion", "is required"),
                ("spec.inlineParams[0].kind", "must be a string"),
                (
                    "spec.inlineParams[1]",
                    "must be of type object, but is integer",
                ),
                ("spec.mode", "unknown field"),
                ("spec.paramz", "unknown field, did you mean `params`?"),
                ("spec.policyName", "must not be empty"),
            ],
        );
        check(
            &json!({"policyName": "p", "cases": []}),
            &[("spec.cases", "must not be empty")],
        );
        let missing = Validator::new().unwrap().read(&json!({"spec": {}}));
        let fields = missing
            .unwrap_err()
            .into_iter()
            .map(|found| found.field_ref);
        let fields: Vec<String> = fields.collect();
        assert_eq!(fields, ["apiVersion", "metadata.name", "spec.cases"]);
        let case = json!({"name": "c", "request": {"object": {}}, "expect": {"applies": true}});
        let target = json!({"kind": "MutatingAdmissionPolicy", "name": "m"});
        let either = "exactly one of `policyName` (for a ValidatingAdmissionPolicy) and `target` (for other kinds) is \
            required";
        check(&json!({"cases": [case]}), &[("spec", either)]);
        let both = json!({"policyName": "p", "target": target, "cases": [case]});
        check(&both, &[("spec", either)]);
        let mutated =
            json!({"name": "c", "request": {"object": {}}, "expect": {"unchanged": true}});
        check(&json!({"target": target, "cases": [mutated]}), &[]);
        check(
            &json!({"policyName": "p", "cases": [mutated]}),
            &[(
                "spec",
                "`object`, `patch` and `unchanged` require a target of kind MutatingAdmissionPolicy",
            )],
        );
    }

    /// `kubectl vap test` must not accept probes that the API server rejects. Therefore the validator must support
    /// every keyword.
    #[test]
    fn validator_supports_every_keyword_of_crd() {
        // For other keywords, the validator assumes the default.
        const SUPPORTED: [&str; 19] = [
            "default",
            "additionalProperties",
            "description",
            "enum",
            "items",
            "maxItems",
            "maxLength",
            "minItems",
            "minLength",
            "nullable",
            "properties",
            "required",
            "type",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-list-map-keys",
            "x-kubernetes-list-type",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-validations",
            "title",
        ];
        fn check_keywords(schema: &Json) {
            for (name, value) in schema.as_object().unwrap() {
                assert!(
                    SUPPORTED.contains(&name.as_str()),
                    "{name} is not supported"
                );
                match name.as_str() {
                    "properties" => value.as_object().unwrap().values().for_each(check_keywords),
                    "items" | "additionalProperties" => check_keywords(value),
                    _ => {}
                }
            }
        }
        check_keywords(&Validator::new().unwrap().schema);
    }
}
