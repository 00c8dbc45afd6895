//! Validates custom resources against their CRD, as the API server does.
//!
//! - [`validate`]: validates a new or updated object against a CustomResourceDefinition. Use this function to test CRDs
//!   generated from Rust types, such as with the derive macro of `kube`.
//! - [`Validator`]: validates many objects of one version.
//!
//! Like in the API server, an object is decoded first: unknown fields and disallowed nulls are pruned, and defaults are
//! set. The object is then validated in this order:
//!
//! - metadata;
//! - values: types, limits, patterns, formats, and `allOf`, `anyOf`, `oneOf`, `not`;
//! - lists of type `set` and `map`;
//! - embedded resources;
//! - CEL rules (`x-kubernetes-validations`).
//!
//! If an update does not change a value, the errors of the value are ignored (ratcheting).
//!
//! Admission and storage are out of scope.
//!
//! Differs: the errors of an object are sorted by field name. Upstream's order is random.
//!
//! Source: apiextensions-apiserver `pkg/registry/customresource` (`strategy.go`, `validator.go`); apiserver
//! `pkg/registry/rest` (`create.go`, `update.go`).

mod defaults;
mod embedded;
mod format;
mod ignored_formats;
mod lists;
mod mail;
mod metadata;
mod number;
mod outcome;
mod read;
mod scale;
mod schema;
#[cfg(test)]
mod tests;
mod value;

use std::sync::Arc;

use serde_json::{Map, Value as Json, json};

pub use crate::validation_rules::{FieldError, FieldErrorKind, ObservedRule, RuleObserver};

pub use defaults::validate_definition;
pub use ignored_formats::{IgnoredFormat, ignored_formats};

use crate::defaulting::{NOW, UID};
use crate::schema::SchemaError;
use crate::schema::crd::{MAX_JSON_DEPTH, is_shallower};
use crate::typed_values::ValueSchema;
use crate::validation_rules as rules;
use crate::validation_rules::correlation::Correlated;
use crate::validation_rules::path::Path;
use crate::version::{Behavior, KubernetesVersion};
use cel::value::{Exceeded, go_quote};
use metadata::{Errors, Metadata};
use scale::Scale;
use schema::{Schema, any_below};
use value::{Place, Walk};

/// The message for an object whose rules were not evaluated, because the object has other errors.
pub const RULES_NOT_CHECKED: &str = "some validation rules were not checked because the object was invalid; \
                                     correct the existing errors to complete validation";

/// An error that prevents the validation of an object.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The CRD has no version with this name, or the version has no schema.
    #[error("the CustomResourceDefinition has no schema for version `{0}`")]
    NoVersion(String),
    /// The schema exceeds a limit of this crate.
    #[error(transparent)]
    Schema(#[from] SchemaError),
    /// The API server cannot decode the object. Contains the API server's message.
    #[error("{0}")]
    Undecodable(String),
    /// The evaluation of the rules exceeds a limit of this crate, so the errors of the object are unknown.
    #[error("{0}")]
    Exceeded(Exceeded),
}

/// The result of validating one object.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// The object with its defaults and the metadata that the API server sets. If there are no errors, the API server
    /// stores this object.
    pub object: Json,
    /// The reasons why the API server rejects the object. Empty if the object is valid.
    pub errors: Vec<FieldError>,
    /// The total cost of the evaluated rules, in CEL cost units.
    pub cost: u64,
}

/// Validates `object` against a CRD. Returns the errors that an API server of the version `kubernetes` reports, or an
/// empty list if the object is valid.
///
/// `definition` must be a CustomResourceDefinition of `apiextensions.k8s.io/v1`. The `apiVersion` of the object
/// determines the version. For an update, `before` is the old object.
///
/// Metadata that the API server or its client can infer is optional. The default namespace is `default`. In an update,
/// all identifying fields are optional.
///
/// # Errors
/// Returns an error if the version has no schema, if the schema is too deep or too large, if an object cannot be
/// decoded, or if the rules exceed their budget.
///
/// # Example
/// ```
/// use kubernetes::custom_resource::validate;
/// use kubernetes::version::KubernetesVersion;
/// use serde_json::json;
///
/// // With `kube`: `serde_json::to_value(MyResource::crd())`.
/// let crd = json!({"spec": {
///     "group": "example.com", "scope": "Namespaced", "names": {"kind": "Disk", "plural": "disks"},
///     "versions": [{"name": "v1", "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {
///         "type": "object",
///         "required": ["size"],
///         "properties": {
///             "size": {"type": "integer", "minimum": 1},
///             "class": {"type": "string", "enum": ["fast", "slow"], "default": "slow"},
///         },
///         "x-kubernetes-validations": [{"rule": "self.class == oldSelf.class", "message": "class is immutable"}],
///     }}}}}],
/// }});
/// let disk = |spec| json!({"apiVersion": "example.com/v1", "kind": "Disk", "metadata": {"name": "a"}, "spec": spec});
///
/// let kubernetes = KubernetesVersion::DEFAULT;
/// assert_eq!(validate(&crd, &disk(json!({"size": 1})), None, kubernetes)?, []);
/// let errors = validate(&crd, &disk(json!({"size": 0, "class": "huge"})), None, kubernetes)?;
/// let errors: Vec<_> = errors.iter().map(ToString::to_string).collect();
/// assert_eq!(errors, [
///     "spec.class: Unsupported value: \"huge\": supported values: \"fast\", \"slow\"",
///     "spec.size: Invalid value: 0: spec.size in body should be greater than or equal to 1",
///     "<nil>: Invalid value: null: some validation rules were not checked because the object was invalid; \
///      correct the existing errors to complete validation",
/// ]);
/// let before = disk(json!({"size": 1, "class": "fast"}));
/// let errors = validate(&crd, &disk(json!({"size": 2})), Some(&before), kubernetes)?;
/// assert_eq!(errors[0].to_string(), "spec: Invalid value: class is immutable");
/// # Ok::<(), kubernetes::custom_resource::Error>(())
/// ```
pub fn validate(
    definition: &Json,
    object: &Json,
    before: Option<&Json>,
    kubernetes: KubernetesVersion,
) -> Result<Vec<FieldError>, Error> {
    let api_version = object.get("apiVersion").and_then(Json::as_str);
    let version = api_version.unwrap_or_default().rsplit('/').next();
    let validator = Validator::new(definition, version.unwrap_or_default(), kubernetes)?;
    let verdict = validator.validate(object, before, "")?;
    Ok(verdict.errors)
}

/// The compiled schema and rules of one CRD version. A validator can validate many objects.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts about a definition")]
pub struct Validator {
    group: String,
    version: String,
    kind: String,
    is_namespaced: bool,
    has_status: bool,
    scale: Option<Scale>,
    behavior: Behavior,
    json: Json,
    schema: Schema,
    values: Arc<ValueSchema>,
    rules: rules::Validator,
    has_rules: bool,
    has_embedded: bool,
    /// True if the schema contains a list of type `set` or `map`.
    has_keyed_lists: bool,
}

impl Validator {
    /// Compiles the schema and the rules of the CRD version `version`, for an API server of the version `kubernetes`.
    ///
    /// # Errors
    /// Returns an error if the version has no schema, or if the schema is too deep or too large.
    pub fn new(
        definition: &Json,
        version: &str,
        kubernetes: KubernetesVersion,
    ) -> Result<Self, Error> {
        let versions = definition
            .pointer("/spec/versions")
            .and_then(Json::as_array);
        let (served, json) = versions
            .into_iter()
            .flatten()
            .filter(|known| known.get("name").and_then(Json::as_str) == Some(version))
            .find_map(|known| Some((known, known.pointer("/schema/openAPIV3Schema")?)))
            .filter(|(_, schema)| schema.is_object())
            .ok_or_else(|| Error::NoVersion(version.to_owned()))?;
        let rules = rules::Validator::new(json, kubernetes)?;
        let empty = Map::new();
        let schema = Schema::read(json.as_object().unwrap_or(&empty), kubernetes.behavior());
        let text = |pointer: &str| {
            let text = definition.pointer(pointer).and_then(Json::as_str);
            text.unwrap_or_default().to_owned()
        };
        Ok(Self {
            group: text("/spec/group"),
            version: version.to_owned(),
            kind: text("/spec/names/kind"),
            is_namespaced: text("/spec/scope") == "Namespaced",
            has_status: served
                .pointer("/subresources/status")
                .is_some_and(|status| !status.is_null()),
            scale: Scale::new(served),
            behavior: kubernetes.behavior(),
            values: ValueSchema::from_structural(json, false, kubernetes.behavior()),
            has_rules: rules.has_rules(),
            has_embedded: any_below(json, embedded::is_embedded),
            has_keyed_lists: any_below(json, lists::is_keyed),
            rules,
            json: json.clone(),
            schema,
        })
    }

    /// Validates `object` in a request to `namespace`. For an update, `before` is the old object. If `namespace` is
    /// empty, the object's own namespace is used, or `default` if it has none.
    ///
    /// # Errors
    /// Returns an error if an object cannot be decoded, or if the rules exceed their budget.
    pub fn validate(
        &self,
        object: &Json,
        before: Option<&Json>,
        namespace: &str,
    ) -> Result<Verdict, Error> {
        self.validate_observed(object, before, namespace, None)
    }

    /// Same as [`Self::validate`], but notifies `observer` of each evaluated rule.
    ///
    /// # Errors
    /// Same as [`Self::validate`].
    pub fn validate_observed(
        &self,
        object: &Json,
        before: Option<&Json>,
        namespace: &str,
        observer: Option<&dyn RuleObserver>,
    ) -> Result<Verdict, Error> {
        let object = self.read(object)?;
        let before = before
            .map(|before| self.stored(before, namespace))
            .transpose()?;
        let mut object = match &before {
            None => self.created(object),
            Some(before) => self.updated(object, before),
        };
        self.place(&mut object, namespace);
        let mut errors = Vec::new();
        let cost = self.errors(&object, before.as_ref(), &mut errors, observer)?;
        Ok(Verdict {
            object,
            errors,
            cost,
        })
    }

    /// Validates the output of a mutation as a new object. The object is not decoded again, so nulls and unknown fields
    /// are not pruned.
    ///
    /// # Errors
    /// Returns an error if the value is not an object, if it is too deep, or if the rules exceed their budget.
    pub fn validate_mutated(&self, object: &Json, namespace: &str) -> Result<Verdict, Error> {
        check_form(object)?;
        let mut object = self.created(object.clone());
        self.place(&mut object, namespace);
        let mut errors = Vec::new();
        let cost = self.errors(&object, None, &mut errors, None)?;
        Ok(Verdict {
            object,
            errors,
            cost,
        })
    }

    /// Decodes a request object: prunes unknown fields and sets defaults.
    fn read(&self, object: &Json) -> Result<Json, Error> {
        check_form(object)?;
        let mut object =
            read::read(object, &self.json, self.has_embedded).map_err(Error::Undecodable)?;
        if let Some(fields) = object.as_object_mut() {
            fields.entry("metadata").or_insert_with(|| json!({}));
        }
        Ok(object)
    }

    /// Decodes the old object of an update. Adds missing metadata that the API server sets when it creates an object.
    fn stored(&self, object: &Json, namespace: &str) -> Result<Json, Error> {
        let mut object = self.read(object)?;
        self.place(&mut object, namespace);
        let metadata = metadata_of(&mut object);
        for (name, value) in [
            ("uid", json!(UID)),
            ("creationTimestamp", json!(NOW)),
            ("resourceVersion", json!("1")),
            ("generation", json!(1)),
        ] {
            metadata.entry(name).or_insert(value);
        }
        Ok(object)
    }

    /// Source: apiserver `pkg/registry/rest/create.go`, `BeforeCreate`.
    fn created(&self, mut object: Json) -> Json {
        if self.has_status
            && let Some(fields) = object.as_object_mut()
        {
            fields.remove("status");
        }
        let metadata = metadata_of(&mut object);
        for name in [
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            metadata.remove(name);
        }
        for (name, value) in [
            ("uid", json!(UID)),
            ("creationTimestamp", json!(NOW)),
            ("generation", json!(1)),
        ] {
            metadata.insert(name.to_owned(), value);
        }
        let prefix = metadata.get("generateName").and_then(Json::as_str);
        if let (Some(prefix), None) = (prefix, metadata.get("name")) {
            let kept: String = prefix.chars().take(58).collect();
            metadata.insert("name".to_owned(), format!("{kept}x7x7x").into());
        }
        object
    }

    /// Source: apiserver `pkg/registry/rest/update.go`, `BeforeUpdate`.
    fn updated(&self, mut object: Json, before: &Json) -> Json {
        if self.has_status
            && let Some(fields) = object.as_object_mut()
        {
            match before.get("status") {
                Some(status) => fields.insert("status".to_owned(), status.clone()),
                None => fields.remove("status"),
            };
        }
        let old = Metadata::new(before);
        let has_changed = !are_equal_besides_metadata(&object, before);
        let generation = old.number("generation");
        let metadata = metadata_of(&mut object);
        match generation.saturating_add(i64::from(has_changed)) {
            // Go omits a zero generation when it serializes metadata.
            0 => metadata.remove("generation"),
            next => metadata.insert("generation".to_owned(), next.into()),
        };
        for name in [
            "name",
            "namespace",
            "uid",
            "resourceVersion",
            "deletionGracePeriodSeconds",
        ] {
            if let (None, Some(value)) = (metadata.get(name), old.0.and_then(|old| old.get(name))) {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
        // If no other field changes, upstream keeps the old `managedFields`. Otherwise, upstream updates the field.
        // This update is not reproduced, because a rule that compares whole objects finds the other change anyway.
        // Invalid `managedFields` are not copied, because an API server does not store them.
        if let Some(value) = old.valid_managed_fields(self.behavior) {
            metadata
                .entry("managedFields")
                .or_insert_with(|| value.clone());
        }
        for name in ["creationTimestamp", "deletionTimestamp"] {
            if let Some(value) = old.0.and_then(|old| old.get(name)) {
                metadata.insert(name.to_owned(), value.clone());
            }
        }
        object
    }

    /// Adds the missing namespace to a namespaced object, or removes the namespace from a cluster-scoped object.
    fn place(&self, object: &mut Json, namespace: &str) {
        let metadata = metadata_of(object);
        if !self.is_namespaced {
            metadata.remove("namespace");
        } else if !metadata.contains_key("namespace") {
            let namespace = if namespace.is_empty() {
                "default"
            } else {
                namespace
            };
            metadata.insert("namespace".to_owned(), namespace.into());
        }
    }

    /// Validates a decoded object and adds its errors to `errors`. Returns the cost of the rules.
    ///
    /// Source: apiextensions-apiserver `pkg/registry/customresource/strategy.go`, `Validate`, `ValidateUpdate`.
    fn errors(
        &self,
        object: &Json,
        before: Option<&Json>,
        errors: &mut Vec<FieldError>,
        observer: Option<&dyn RuleObserver>,
    ) -> Result<u64, Error> {
        let metadata = Metadata::new(object);
        let path = Path::ROOT.field("metadata");
        if let Some(before) = before {
            let mut errors = Errors::new(self.behavior, errors);
            errors.validate_object(metadata, self.is_namespaced, metadata::path_segment, &path);
            errors.validate_update(metadata, Metadata::new(before), &path);
        }
        let n_before = errors.len();
        self.type_errors(object, errors);
        if errors.len() == n_before {
            let mut metadata_errors = Errors::new(self.behavior, errors);
            match before {
                None => {
                    metadata_errors.validate_object(
                        metadata,
                        self.is_namespaced,
                        metadata::subdomain,
                        &path,
                    );
                }
                Some(before) => {
                    metadata_errors.validate_update(metadata, Metadata::new(before), &path);
                }
            }
            self.value_errors(object, before, errors);
            if let Some(scale) = &self.scale {
                scale.validate(object, errors);
            }
        }
        let of_strategy = errors.split_off(n_before);
        let mut own = of_strategy;
        if self.has_embedded {
            embedded::validate(&self.json, object, &Path::ROOT, self.behavior, &mut own);
        }
        if let Some(fields) = object.as_object().filter(|_| self.has_keyed_lists) {
            let mut of_before = Vec::new();
            if let Some(before) = before.and_then(Json::as_object) {
                lists::validate(&self.json, before, &Path::ROOT, &mut of_before);
            }
            if of_before.is_empty() {
                lists::validate(&self.json, fields, &Path::ROOT, &mut own);
            }
        }
        let cost = self.rule_errors(object, before, &mut own, observer)?;
        errors.append(&mut own);
        Ok(cost)
    }

    /// Source: apiextensions-apiserver `pkg/registry/customresource/validator.go`, `ValidateTypeMeta`.
    fn type_errors(&self, object: &Json, errors: &mut Vec<FieldError>) {
        let api_version = format!("{}/{}", self.group, self.version);
        for (name, expected) in [("kind", &self.kind), ("apiVersion", &api_version)] {
            let actual = object.get(name).and_then(Json::as_str).unwrap_or_default();
            if actual != expected {
                errors.push(FieldError {
                    kind: FieldErrorKind::Invalid,
                    field: name.to_owned(),
                    value: Some(go_quote(actual)),
                    detail: format!("must be {expected}"),
                });
            }
        }
    }

    fn value_errors(&self, object: &Json, before: Option<&Json>, errors: &mut Vec<FieldError>) {
        let mut walk = Walk::new();
        let outcome = match before {
            None => walk.value(&self.schema, object, &Place::Root, None),
            Some(before) => {
                let before = Correlated::new(object, before, &self.values);
                walk.ratcheted(&self.schema, object, &Place::Root, &before)
            }
        };
        errors.extend(outcome.faults.into_iter().map(|fault| fault.error));
        if walk.is_over {
            errors.push(FieldError {
                kind: FieldErrorKind::Internal,
                field: Path::ROOT.text(),
                value: None,
                detail: "the object is too large to be validated against its schema".to_owned(),
            });
        }
    }

    fn rule_errors(
        &self,
        object: &Json,
        before: Option<&Json>,
        errors: &mut Vec<FieldError>,
        observer: Option<&dyn RuleObserver>,
    ) -> Result<u64, Error> {
        if !self.has_rules {
            return Ok(0);
        }
        let is_blocking = |error: &FieldError| {
            matches!(
                error.kind,
                FieldErrorKind::NotSupported
                    | FieldErrorKind::Required
                    | FieldErrorKind::TooLong
                    | FieldErrorKind::TooMany
                    | FieldErrorKind::TypeInvalid
            )
        };
        if errors.iter().any(is_blocking) {
            errors.push(FieldError {
                kind: FieldErrorKind::Invalid,
                field: Path::ROOT.text(),
                value: Some("null".to_owned()),
                detail: RULES_NOT_CHECKED.to_owned(),
            });
            return Ok(0);
        }
        let mut result = (self.rules).validate_shallow(object, before, observer);
        if let Some(exceeded) = result.exceeded {
            return Err(Error::Exceeded(exceeded));
        }
        errors.append(&mut result.errors);
        Ok(result.cost)
    }
}

/// Returns an error if `object` is not a JSON object or is too deep.
fn check_form(object: &Json) -> Result<(), Error> {
    if !is_shallower(object, MAX_JSON_DEPTH) {
        return Err(Error::Undecodable(format!(
            "the object nests deeper than {MAX_JSON_DEPTH} levels"
        )));
    }
    if !object.is_object() {
        return Err(Error::Undecodable(
            "the object is not a JSON object".to_owned(),
        ));
    }
    Ok(())
}

/// Returns the metadata. Inserts empty metadata if the object has none.
fn metadata_of(object: &mut Json) -> &mut Map<String, Json> {
    if !object.get("metadata").is_some_and(Json::is_object) {
        *object = match std::mem::take(object) {
            Json::Object(mut fields) => {
                fields.insert("metadata".to_owned(), json!({}));
                Json::Object(fields)
            }
            _ => json!({"metadata": {}}),
        };
    }
    #[expect(clippy::expect_used, reason = "the code above inserts the metadata")]
    object
        .get_mut("metadata")
        .and_then(Json::as_object_mut)
        .expect("metadata is an object")
}

fn are_equal_besides_metadata(a: &Json, b: &Json) -> bool {
    let (Some(a), Some(b)) = (a.as_object(), b.as_object()) else {
        return a.is_object() == b.is_object();
    };
    let count = |fields: &Map<String, Json>| {
        let has_metadata = fields.contains_key("metadata");
        fields.len().saturating_sub(usize::from(has_metadata))
    };
    let mut fields = a.iter().filter(|(name, _)| *name != "metadata");
    count(a) == count(b) && fields.all(|(name, field)| b.get(name) == Some(field))
}
