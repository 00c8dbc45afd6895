//! Builds requests that satisfy constraints.

use std::rc::Rc;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde_json::{Value as Json, json};

use super::synthetic_request::digest;
use super::{RequestBuilder, SyntheticRequest};
use crate::admission::Operation;
use crate::runtime_errors::input_types::InputType;
use crate::runtime_errors::input_types::roots::{ParamsType, is_namespace, namespace_input_type};
use crate::runtime_errors::symbolic::authorizer_rules;
use kubernetes::defaulting::{NOW, UID, has_generation};
use kubernetes::schema::connect_options;
use kubernetes::validity::{
    self, Constraint, FieldPath, InputConstraints, Root, Segment, ValueConstraints,
};

/// The name of generated objects and users, and the default namespace.
const NAME: &str = "example";
const NAMESPACE: &str = "default";

/// The prefix of generated names.
const GENERATE_NAME: &str = "example-";

/// The API server sets this label on each namespace. Its value is the name of the namespace.
const NAME_LABEL: &str = "kubernetes.io/metadata.name";

impl RequestBuilder<'_> {
    /// Returns the first operation of the builder for which a request can satisfy `constraints`.
    fn operation(&self, constraints: &InputConstraints) -> Option<Operation> {
        let path = FieldPath::new(Root::Request).field("operation")?;
        let required = constraints.at(&path);
        let fails_creation =
            self.is_builtin && validity::fails_creation(&self.resource.gvk.kind, constraints);
        let fits = |operation: &&Operation| {
            let name = json!(operation.as_str());
            let is_named = required.is_none_or(|required| {
                required.equals.as_ref().is_none_or(|value| *value == name)
                    && !required.differs.contains(&name)
            });
            let (object, old_object) = (
                FieldPath::new(Root::Object),
                FieldPath::new(Root::OldObject),
            );
            let (has_object, has_old) = match operation {
                Operation::Create | Operation::Connect => (true, false),
                Operation::Update => (true, true),
                Operation::Delete => (false, true),
            };
            is_named
                && (*operation == &Operation::Create || !lacks_name(constraints))
                && !(*operation == &Operation::Create && fails_creation)
                && !(has_object && constraints.is_absent(&object))
                && (has_object || !constraints.is_present(&object))
                && !(has_old && constraints.is_absent(&old_object))
                && (has_old || !constraints.is_present(&old_object))
        };
        self.operations.iter().find(fits).copied()
    }

    /// Builds a request that satisfies `constraints`. `None` if no valid request is found.
    pub(crate) fn build(&self, constraints: &InputConstraints) -> Option<Rc<SyntheticRequest>> {
        let operation = self.operation(constraints)?;
        let mut constraints = constraints.clone();
        let is_name_generated = lacks_name(&constraints);
        if is_name_generated {
            let name = FieldPath::new(Root::Object)
                .field("metadata")?
                .field("name")?;
            constraints.add(&name, Constraint::Absent)?;
        }
        self.add_selector_constraints(&mut constraints, operation)?;
        let (has_object, has_old) = match operation {
            Operation::Create | Operation::Connect => (true, false),
            Operation::Update => (true, true),
            Operation::Delete => (false, true),
        };
        if self.is_builtin {
            let of_object = has_object.then_some(Root::Object);
            for root in of_object
                .into_iter()
                .chain(has_old.then_some(Root::OldObject))
            {
                validity::add_implied_constraints(&self.resource.gvk.kind, root, &mut constraints)?;
            }
        }
        let sent = if has_object {
            Some(self.build_object(&constraints, Root::Object, operation)?)
        } else {
            None
        };
        let old_sent = if has_old {
            Some(self.build_object(&constraints, Root::OldObject, operation)?)
        } else {
            None
        };
        let prepared = self.prepare(&constraints, operation, [sent, old_sent])?;
        let [mut object, old_object] = prepared.seen;
        if is_name_generated {
            // Mutating policies receive the object before the API server generates its name.
            let metadata = object.as_mut()?.get_mut("metadata")?.as_object_mut()?;
            metadata.remove("name");
        }
        let params = match &self.params {
            Some(params) if params.is_always_null => None,
            Some(params) if !constraints.is_absent(&FieldPath::new(Root::Params)) => {
                Some(Self::build_params(params, &constraints)?)
            }
            Some(params) if !params.may_be_null => return None,
            _ => None,
        };
        let is_namespaced = self.resource.namespaced;
        if constraints.is_absent(&FieldPath::new(Root::Namespace)) && is_namespaced {
            return None;
        }
        let namespace = if is_namespaced {
            let object = object.as_ref().or(old_object.as_ref())?;
            let name = object.get("metadata")?.get("namespace")?.as_str()?;
            Some(self.build_namespace(&constraints, name)?)
        } else {
            None
        };
        let request = self.build_request_variable(
            &constraints,
            operation,
            object.as_ref().or(old_object.as_ref()),
        )?;
        let mut sent = prepared.sent;
        if operation == Operation::Connect && connect_options::has(&self.resource.gvk) {
            // The API server reads the options of a CONNECT request from the URL, so they have no metadata.
            for options in [&mut object, &mut sent[0]] {
                options.as_mut()?.as_object_mut()?.remove("metadata");
            }
        }
        let authorizer = authorizer_rules(&constraints);
        let parts = (&params, &namespace, &request, &authorizer);
        Some(Rc::new(SyntheticRequest {
            digest: digest(&(prepared.digest, operation, parts)),
            operation,
            object,
            old_object,
            sent,
            params,
            namespace,
            request,
            authorizer,
        }))
    }

    fn build_object(
        &self,
        constraints: &InputConstraints,
        root: Root,
        operation: Operation,
    ) -> Option<Json> {
        let minimal = self
            .minimal
            .get_or_init(|| self.object_cache.minimal(&self.resource.gvk, &self.object));
        let mut object = minimal.clone()?;
        let fields = object.as_object_mut()?;
        fields.insert(
            "apiVersion".to_owned(),
            json!(self.resource.gvk.api_version()),
        );
        fields.insert("kind".to_owned(), json!(self.resource.gvk.kind));
        let name = self.object_name();
        let mut metadata = json!({"name": name, "uid": UID, "creationTimestamp": NOW});
        let labels = fields
            .get("metadata")
            .and_then(|metadata| metadata.get("labels"));
        if let Some(labels) = labels {
            metadata
                .as_object_mut()?
                .insert("labels".to_owned(), labels.clone());
        }
        if self.resource.namespaced {
            metadata
                .as_object_mut()?
                .insert("namespace".to_owned(), json!(self.namespace_name()));
        }
        if operation != Operation::Create {
            metadata
                .as_object_mut()?
                .insert("resourceVersion".to_owned(), json!("1"));
        }
        // The API server sets `metadata.generation` before admission. The field is added only if an expression reads
        // it.
        let has_generation_field = !self.is_builtin || has_generation(&self.resource.gvk);
        if self.reads_generation && has_generation_field {
            metadata
                .as_object_mut()?
                .insert("generation".to_owned(), json!(1));
        }
        fields.insert("metadata".to_owned(), metadata);
        // A name or namespace that the constraints require in the request is also set in its object.
        for name in ["name", "namespace"] {
            let of_request = FieldPath::new(Root::Request).field(name)?;
            if let Some(required) = constraints.at(&of_request)
                && required.is_present == Some(true)
            {
                let has_one = self.resource.namespaced || is_namespace(self.resource);
                if name == "namespace" && !has_one {
                    return None;
                }
                let segments = [
                    Segment::Field("metadata".into()),
                    Segment::Field(name.into()),
                ];
                self.object
                    .satisfy(&mut object, &FieldPath::new(root), &segments, required)?;
            }
        }
        satisfy_all(&self.object, &mut object, root, constraints)?;
        let metadata = object.get_mut("metadata")?.as_object_mut()?;
        if !metadata.contains_key("name") {
            let prefix = json!(GENERATE_NAME);
            metadata.entry("generateName").or_insert(prefix);
        }
        if self.is_builtin {
            let kind = &self.resource.gvk.kind;
            validity::complete(kind, root, constraints, &mut object)?;
        }
        Some(object)
    }

    fn build_params(params: &ParamsType<'_>, constraints: &InputConstraints) -> Option<Json> {
        if let Some(given) = &params.given {
            return Some((**given).clone());
        }
        let mut object = params.input_type.minimal(&FieldPath::new(Root::Params))?;
        let fields = object.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), json!(params.api_version));
        fields.insert("kind".to_owned(), json!(params.kind));
        let mut metadata =
            json!({"name": NAME, "uid": UID, "creationTimestamp": NOW, "resourceVersion": "1"});
        if params.is_namespaced {
            metadata
                .as_object_mut()?
                .insert("namespace".to_owned(), json!(NAMESPACE));
        }
        fields.insert("metadata".to_owned(), metadata);
        satisfy_all(&params.input_type, &mut object, Root::Params, constraints)?;
        Some(object)
    }

    fn build_namespace(&self, constraints: &InputConstraints, name: &str) -> Option<Json> {
        let mut labels = json!({NAME_LABEL: name});
        let label_fields = labels.as_object_mut()?;
        for (key, constraint) in self.namespace_selectors().flat_map(selector_constraints) {
            match constraint {
                // The API server sets this label to the name of the namespace.
                _ if key == NAME_LABEL => {}
                Constraint::Equals(value) => drop(label_fields.insert(key, value)),
                Constraint::Absent => drop(label_fields.remove(&key)),
                _ => drop(label_fields.insert(key, json!(NAME))),
            }
        }
        let mut namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": name,
                "uid": UID,
                "resourceVersion": "1",
                "creationTimestamp": NOW,
                "labels": labels,
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        satisfy_all(
            &namespace_input_type(),
            &mut namespace,
            Root::Namespace,
            constraints,
        )?;
        Some(namespace)
    }

    fn build_request_variable(
        &self,
        constraints: &InputConstraints,
        operation: Operation,
        object: Option<&Json>,
    ) -> Option<Json> {
        let (resource, subresource) = self.resource_and_subresource();
        let metadata = |name| {
            object
                .and_then(|object| object.get("metadata")?.get(name))
                .cloned()
        };
        let gvk = &self.resource.gvk;
        let gvr = &self.resource.gvr;
        let mut request = json!({
            "operation": operation.as_str(),
            "kind": {"group": gvk.group, "version": gvk.version, "kind": gvk.kind},
            "resource": {"group": gvr.group, "version": gvr.version, "resource": resource},
            "userInfo": {"username": NAME, "groups": ["system:authenticated"]},
            "dryRun": false,
        });
        let fields = request.as_object_mut()?;
        for name in ["requestKind", "requestResource"] {
            let source = if name == "requestKind" {
                "kind"
            } else {
                "resource"
            };
            let value = fields.get(source)?.clone();
            fields.insert(name.to_owned(), value);
        }
        fields.insert("options".to_owned(), json!({}));
        if !subresource.is_empty() {
            fields.insert("subResource".to_owned(), json!(subresource));
            fields.insert("requestSubResource".to_owned(), json!(subresource));
        }
        let name = metadata("name");
        fields.extend(name.clone().map(|name| ("name".to_owned(), name)));
        let namespace = if is_namespace(self.resource) {
            name
        } else {
            metadata("namespace")
        };
        fields.extend(namespace.map(|namespace| ("namespace".to_owned(), namespace)));
        let before = request.clone();
        satisfy_all(&self.request, &mut request, Root::Request, constraints)?;
        // The rules and the object determine the fields in `request_fields`. If the constraints changed one of them, no
        // such request can exist.
        let is_unchanged = |name: &str| before.get(name) == request.get(name);
        let request_fields = [
            "operation",
            "kind",
            "resource",
            "requestKind",
            "requestResource",
            "subResource",
            "name",
            "namespace",
        ];
        request_fields
            .into_iter()
            .all(is_unchanged)
            .then_some(request)
    }

    /// Returns a name that the resourceNames of a rule for the resource permit. If all names are permitted and the
    /// resource is Namespace, returns a name that the namespaceSelectors select.
    fn object_name(&self) -> String {
        let (resource, _) = self.resource_and_subresource();
        let is_of_resource = |name: &String| {
            let (named, _) = name.split_once('/').unwrap_or((name, ""));
            named == resource || named == "*"
        };
        // The rules of the binding are tried first, because they restrict the names further than those of the policy.
        for resources in self.match_resources.iter().rev() {
            let rules = resources.resource_rules.iter().flatten();
            let rules = rules.filter(|rule| rule.resources.iter().flatten().any(is_of_resource));
            let names = rules.map(|rule| rule.resource_names.as_deref().unwrap_or_default());
            // A rule without names permits all names.
            let shortest = names.min_by_key(|names| names.len());
            if let Some(name) = shortest.and_then(<[String]>::first) {
                return name.clone();
            }
        }
        let selected = self.selected_namespace();
        let selected = selected.filter(|_| is_namespace(self.resource));
        selected.unwrap_or_else(|| NAME.to_owned())
    }

    fn namespace_selectors(&self) -> impl Iterator<Item = &LabelSelector> {
        let all = self.match_resources.iter();
        all.filter_map(|resources| resources.namespace_selector.as_ref())
    }

    /// Returns the name of a namespace that the namespaceSelectors select by name.
    fn selected_namespace(&self) -> Option<String> {
        // The selectors of the binding come first: a name that the binding requires is usually also one that the policy
        // permits.
        let selectors = self.match_resources.iter().rev();
        let selectors = selectors.filter_map(|resources| resources.namespace_selector.as_ref());
        let name_constraints = selectors.flat_map(selector_constraints);
        let mut name_constraints = name_constraints.filter(|(key, _)| key == NAME_LABEL);
        name_constraints.find_map(|(_, constraint)| match constraint {
            Constraint::Equals(Json::String(name)) => Some(name),
            _ => None,
        })
    }

    /// Returns the name of a namespace that the namespaceSelectors select.
    fn namespace_name(&self) -> String {
        let named = self.selected_namespace();
        let excluded = self.namespace_selectors();
        let excluded = excluded.flat_map(|selector| selector.match_expressions.iter().flatten());
        let mut excluded = excluded.filter(|it| it.key == NAME_LABEL && it.operator == "NotIn");
        let is_excluded = excluded.any(|it| {
            let mut values = it.values.iter().flatten();
            values.any(|value| value == NAMESPACE)
        });
        named.unwrap_or_else(|| if is_excluded { NAME } else { NAMESPACE }.to_owned())
    }

    /// Adds constraints on labels, so that the objectSelectors select the object. If the object is a Namespace, the
    /// namespaceSelectors apply to its own labels, so these labels are constrained too.
    ///
    /// Source: `k8s.io/apiserver` `pkg/admission/plugin/webhook/predicates/namespace/matcher.go`, `GetNamespaceLabels`.
    fn add_selector_constraints(
        &self,
        constraints: &mut InputConstraints,
        operation: Operation,
    ) -> Option<()> {
        let root = if operation == Operation::Delete {
            Root::OldObject
        } else {
            Root::Object
        };
        let labels = FieldPath::new(root).field("metadata")?.field("labels")?;
        // The selectors of the binding come first: a value that the binding requires is usually also one that the
        // policy permits.
        let mut decided: Vec<String> = Vec::new();
        for resources in self.match_resources.iter().rev() {
            let of_objects = resources.object_selector.iter();
            let of_namespaces = resources.namespace_selector.iter();
            let of_namespaces = of_namespaces.filter(|_| is_namespace(self.resource));
            let of_namespaces = of_namespaces.flat_map(selector_constraints);
            // The API server sets this label to the name of the namespace.
            let of_namespaces = of_namespaces.filter(|(key, _)| key != NAME_LABEL);
            let of_objects = of_objects.flat_map(selector_constraints);
            let required: Vec<_> = of_objects.chain(of_namespaces).collect();
            for (key, constraint) in &required {
                // A label that must be absent needs no constraint, because generated objects have no labels by default.
                if *constraint != Constraint::Absent && !decided.contains(key) {
                    constraints.add(&labels.field(key)?, constraint.clone())?;
                }
            }
            let is_decisive =
                |it: &Constraint| matches!(it, Constraint::Absent | Constraint::Equals(_));
            let required = required.into_iter();
            decided.extend(
                required
                    .filter(|(_, constraint)| is_decisive(constraint))
                    .map(|(key, _)| key),
            );
        }
        Some(())
    }
}

/// Returns true if `constraints` require that the request or its object has no name.
fn lacks_name(constraints: &InputConstraints) -> bool {
    let of_request = FieldPath::new(Root::Request).field("name");
    let metadata = FieldPath::new(Root::Object).field("metadata");
    let of_object = metadata.and_then(|metadata| metadata.field("name"));
    let mut names = of_request.into_iter().chain(of_object);
    names.any(|name| constraints.is_absent(&name))
}

fn satisfy_all(
    input_type: &InputType<'_>,
    value: &mut Json,
    root: Root,
    constraints: &InputConstraints,
) -> Option<()> {
    let of_root = constraints
        .iter()
        .filter(|(path, _)| path.root == root && !path.segments.is_empty());
    let all: Vec<(&FieldPath, &ValueConstraints)> = of_root.collect();
    // Values are removed last, so that no other change adds them again.
    let (absent, present): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, required)| required.is_present == Some(false));
    for (path, required) in present.into_iter().chain(absent) {
        input_type.satisfy(value, &FieldPath::new(root), &path.segments, required)?;
    }
    Some(())
}

/// Returns the constraints on labels that `selector` requires.
fn selector_constraints(selector: &LabelSelector) -> Vec<(String, Constraint)> {
    let equal = selector.match_labels.iter().flatten();
    let mut constraints: Vec<_> = equal
        .map(|(key, value)| (key.clone(), Constraint::Equals(json!(value))))
        .collect();
    for requirement in selector.match_expressions.iter().flatten() {
        let first = requirement.values.iter().flatten().next();
        let constraint = match (&*requirement.operator, first) {
            ("In", Some(value)) => Constraint::Equals(json!(value)),
            ("DoesNotExist", _) => Constraint::Absent,
            ("NotIn", _) => continue,
            _ => Constraint::Present,
        };
        constraints.push((requirement.key.clone(), constraint));
    }
    constraints
}
