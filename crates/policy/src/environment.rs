//! Declares the inputs of a policy's expressions and their types.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/compile.go` (`BuildRequestType`, `BuildNamespaceType`,
//! `createEnvForOpts`), `plugin/policy/validating/typechecking.go` (`buildEnvSet`),
//! `pkg/admission/plugin/cel/composition.go`.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use cel::decls::Variable;
use cel::env::Env;
use cel::types::{FieldTypes, StructType, Type};
use cel::version::Release;
use kubernetes::library::environment::{base_env, declared_scalars};
use kubernetes::library::mutation::mutation_env;
use kubernetes::library::types::{AUTHORIZER, RESOURCE_CHECK};

#[derive(Debug)]
struct FixedFields(Vec<(&'static str, Type)>);

impl FieldTypes for FixedFields {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        self.0
            .iter()
            .find(|(name, _)| *name == field)
            .map(|(_, type_)| type_.clone())
    }

    fn field_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.0.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        names
    }
}

fn object(name: &'static str, fields: Vec<(&'static str, Type)>) -> Type {
    Type::Struct(StructType::new(name, Arc::new(FixedFields(fields))))
}

/// The named types in every environment: those of `request` and `namespaceObject`.
static NAMED_TYPES: LazyLock<NamedTypes> = LazyLock::new(NamedTypes::new);

struct NamedTypes {
    request: Type,
    namespace: Type,
    all: Vec<(Arc<str>, Type)>,
}

impl NamedTypes {
    fn new() -> Self {
        let strings = || Type::list(Type::String);
        let strings_of = |names: [&'static str; 3]| names.map(|name| (name, Type::String)).to_vec();
        let gvk = object(
            "kubernetes.GroupVersionKind",
            strings_of(["group", "version", "kind"]),
        );
        let gvr = object(
            "kubernetes.GroupVersionResource",
            strings_of(["group", "version", "resource"]),
        );
        let user_info = object(
            "kubernetes.UserInfo",
            vec![
                ("username", Type::String),
                ("uid", Type::String),
                ("groups", strings()),
                ("extra", Type::map(Type::String, strings())),
            ],
        );
        let request = object(
            "kubernetes.AdmissionRequest",
            vec![
                ("kind", gvk.clone()),
                ("resource", gvr.clone()),
                ("subResource", Type::String),
                ("requestKind", gvk.clone()),
                ("requestResource", gvr.clone()),
                ("requestSubResource", Type::String),
                ("name", Type::String),
                ("namespace", Type::String),
                ("operation", Type::String),
                ("userInfo", user_info.clone()),
                ("dryRun", Type::Bool),
                ("options", Type::Dyn),
            ],
        );
        let condition = object(
            "kubernetes.NamespaceCondition",
            vec![
                ("status", Type::String),
                ("type", Type::String),
                ("lastTransitionTime", Type::Timestamp),
                ("message", Type::String),
                ("reason", Type::String),
            ],
        );
        let spec = object("kubernetes.NamespaceSpec", vec![("finalizers", strings())]);
        let status = object(
            "kubernetes.NamespaceStatus",
            vec![
                ("conditions", Type::list(condition.clone())),
                ("phase", Type::String),
            ],
        );
        let metadata = object(
            "kubernetes.NamespaceMetadata",
            vec![
                ("name", Type::String),
                ("generateName", Type::String),
                ("namespace", Type::String),
                ("labels", Type::map(Type::String, Type::String)),
                ("annotations", Type::map(Type::String, Type::String)),
                ("UID", Type::String),
                ("creationTimestamp", Type::Timestamp),
                ("deletionGracePeriodSeconds", Type::Int),
                ("deletionTimestamp", Type::Timestamp),
                ("generation", Type::Int),
                ("resourceVersion", Type::String),
                ("finalizers", strings()),
            ],
        );
        let namespace = object(
            "kubernetes.Namespace",
            vec![
                ("metadata", metadata.clone()),
                ("spec", spec.clone()),
                ("status", status.clone()),
            ],
        );
        let all = [
            &gvk, &gvr, &user_info, &request, &condition, &spec, &status, &metadata, &namespace,
        ]
        .into_iter()
        .map(|type_| (Arc::from(type_.type_name()), type_.clone()))
        .chain(declared_scalars())
        .chain([(
            shared_name(),
            Type::Struct(StructType::undeclared(VARIABLES)),
        )])
        .collect();
        Self {
            request,
            namespace,
            all,
        }
    }
}

/// The fields of an object type, with the CEL types of their JSON values. For example, timestamps are strings.
#[derive(Debug)]
struct JsonFields(Arc<dyn FieldTypes>);

impl FieldTypes for JsonFields {
    fn field_type(&self, owner: &str, field: &str) -> Option<Type> {
        // The type declares the field `UID`, but the value has the field `uid` instead.
        let declared = self.0.field_type(owner, field).filter(|_| field != "UID")?;
        Some(in_json(&declared))
    }

    fn field_names(&self) -> Vec<&str> {
        let mut names = self.0.field_names();
        names.retain(|name| *name != "UID");
        names
    }
}

fn in_json(type_: &Type) -> Type {
    match type_ {
        Type::Timestamp => Type::String,
        Type::List(elem) => Type::list(in_json(elem)),
        Type::Struct(object) => Type::Struct(StructType {
            name: Arc::clone(&object.name),
            fields: object
                .fields
                .as_ref()
                .map(|fields| Arc::new(JsonFields(Arc::clone(fields))) as Arc<dyn FieldTypes>),
        }),
        _ => type_.clone(),
    }
}

/// Returns the types of the values of `request` and `namespaceObject` at run time.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/condition.go` (`CreateAdmissionRequest`,
/// `CreateNamespaceObject`).
pub(super) fn evaluated_types() -> (Type, Type) {
    let named = &*NAMED_TYPES;
    (in_json(&named.request), in_json(&named.namespace))
}

/// Returns the types of `authorizer` and `authorizer.requestResource`.
pub(super) fn authorizer_types() -> (Type, Type) {
    (AUTHORIZER.to_type(), RESOURCE_CHECK.to_type())
}

/// The declarations that differ between expressions.
#[derive(Clone, Debug)]
pub(super) struct Declared<'a> {
    /// The versions that determine the declared functions.
    pub(super) release: Release,
    /// The type of `object` and `oldObject`.
    pub(super) object: &'a Type,
    /// The type of `params`. `None` if the policy has no paramKind.
    pub(super) params: Option<&'a Type>,
    pub(super) authorizer: bool,
    /// True if `authorizer.requestResource` is declared. Upstream's type checker does not declare it.
    pub(super) request_resource: bool,
    /// True for the expressions of mutations. They can construct objects and patches.
    pub(super) mutation: bool,
}

/// Returns the environment of a policy's expressions. It does not declare `variables`.
pub(super) fn policy_env(declared: &Declared<'_>) -> Env {
    let named = &*NAMED_TYPES;
    let mut variables = vec![
        Variable::new("object", declared.object.clone()),
        Variable::new("oldObject", declared.object.clone()),
        Variable::new("namespaceObject", named.namespace.clone()),
        Variable::new("request", named.request.clone()),
    ];
    if let Some(params) = declared.params {
        variables.push(Variable::new("params", params.clone()));
    }
    if declared.authorizer {
        let type_ = AUTHORIZER.to_type();
        variables.push(Variable::new("authorizer", type_));
    }
    if declared.authorizer && declared.request_resource {
        let type_ = RESOURCE_CHECK.to_type();
        variables.push(Variable::new("authorizer.requestResource", type_));
    }
    let base = if declared.mutation {
        mutation_env(declared.release)
    } else {
        base_env(declared.release)
    };
    base.extend_types(named.all.iter().cloned())
        .extend(variables)
}

/// The type name of `variables`.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/composition.go`, `variablesTypeName`.
const VARIABLES: &str = "kubernetes.variables";

/// The types of the policy variables that are already compiled.
#[derive(Clone, Debug, Default)]
pub(super) struct VariableTypes(Arc<VariableFields>);

#[derive(Clone, Debug, Default)]
struct VariableFields {
    types: Vec<(Arc<str>, Type)>,
    places: HashMap<Arc<str>, usize>,
}

impl VariableTypes {
    /// Adds the variable `name`, or replaces the type of an existing variable.
    ///
    /// Copies the existing variables if a type from [`VariableTypes::to_type`] is still in use.
    pub(super) fn add(&mut self, name: &str, type_: Type) {
        let fields = Arc::make_mut(&mut self.0);
        let existing = fields
            .places
            .get(name)
            .and_then(|&place| fields.types.get_mut(place));
        if let Some((_, existing)) = existing {
            *existing = type_;
            return;
        }
        let name: Arc<str> = name.into();
        fields.places.insert(Arc::clone(&name), fields.types.len());
        fields.types.push((name, type_));
    }

    /// Returns the type of the CEL variable `variables`.
    pub(super) fn to_type(&self) -> Type {
        let fields: Arc<dyn FieldTypes> = Arc::<VariableFields>::clone(&self.0);
        Type::Struct(StructType::new(shared_name(), fields))
    }
}

fn shared_name() -> Arc<str> {
    static NAME: LazyLock<Arc<str>> = LazyLock::new(|| VARIABLES.into());
    Arc::clone(&NAME)
}

impl FieldTypes for VariableFields {
    fn field_type(&self, _owner: &str, field: &str) -> Option<Type> {
        let place = *self.places.get(field)?;
        self.types.get(place).map(|(_, type_)| type_.clone())
    }

    fn field_names(&self) -> Vec<&str> {
        let mut names: Vec<_> = self.types.iter().map(|(name, _)| &**name).collect();
        names.sort_unstable();
        names
    }

    fn is_mutable(&self) -> bool {
        true
    }
}

/// Returns the type of a variable in the expressions that read it. Objects and abstract types become `dyn`.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/cel/composition.go`, `convertCelTypeToDeclType`.
pub(super) fn variable_type_upstream(type_: &Type) -> Type {
    match type_ {
        Type::Any
        | Type::Bool
        | Type::Bytes
        | Type::Double
        | Type::Duration
        | Type::Int
        | Type::Null
        | Type::String
        | Type::Timestamp
        | Type::Uint => type_.clone(),
        Type::List(elem) => Type::list(variable_type_upstream(elem)),
        Type::Map(entry) => Type::map(
            variable_type_upstream(&entry.0),
            variable_type_upstream(&entry.1),
        ),
        Type::Error
        | Type::Dyn
        | Type::Wrapper(_)
        | Type::Struct(_)
        | Type::Opaque(_)
        | Type::Type(_)
        | Type::Param(_) => Type::Dyn,
    }
}
