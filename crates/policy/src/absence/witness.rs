//! Witnesses: requests that are made to fit needs, and what the evaluator says of them.

use std::cell::{OnceCell, RefCell};
use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::failures::{Failure, failures};
use super::least::LeastObjects;
use super::need::{Edit, Need, Needs};
use super::path::{Path, Root, Segment};
use super::roots::{namespace_shape, request_shape};
use super::shape::Shape;
use super::symbol::Reader;
use super::valid;
use crate::admission::trace::{Step, TRACED_CALL_LIMIT};
use crate::admission::{
    Admission, AdmissionRequest, AuthorizerList, Namespace, Object, Operation, ParamList,
    Surroundings, UserInfo,
};
use crate::compile::CompiledPolicy;
use cel::value::EvalError;
use kubernetes::library::estimate::AUTHORIZER_CHECK_COST;
use kubernetes::schema::rest_mapper::ApiResource;

/// A request for which an expression fails, as an `AdmissionReview` has it, with what is asked besides.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    /// The request: operation, kind, resource, name, namespace, userInfo, object, oldObject.
    pub request: Json,
    /// The params, where the policy has a paramKind; null without any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Json>,
    /// The namespace of the request, where it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_object: Option<Json>,
    /// The error of the expression.
    pub error: String,
}

/// The name, namespace and so on of what is made.
const NAME: &str = "example";
const NAMESPACE: &str = "default";
const UID: &str = "00000000-0000-4000-8000-000000000000";
const TIME: &str = "2026-01-01T00:00:00Z";

/// A request that was made.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Made {
    pub(super) operation: Operation,
    pub(super) object: Option<Json>,
    pub(super) old_object: Option<Json>,
    pub(super) params: Option<Json>,
    namespace: Option<Json>,
    /// The variable `request`, as far as it can be chosen.
    request: Json,
}

impl Made {
    /// The value at the root of paths.
    fn root(&self, root: Root) -> Option<&Json> {
        match root {
            Root::Object => self.object.as_ref(),
            Root::OldObject => self.old_object.as_ref(),
            Root::Params => self.params.as_ref(),
            Root::Namespace => self.namespace.as_ref(),
            Root::Request => Some(&self.request),
        }
    }

    /// The value at `path`.
    pub(super) fn at(&self, path: &Path) -> Option<&Json> {
        let mut value = self.root(path.root)?;
        for segment in &path.segments {
            value = behind(value, segment)?;
        }
        Some(value)
    }

    /// Reports whether nothing is at `path`, though what is around it is there.
    pub(super) fn lacks(&self, path: &Path) -> bool {
        let Some(mut value) = self.root(path.root) else {
            return path.segments.is_empty();
        };
        let Some((last, around)) = path.segments.split_last() else {
            return false;
        };
        for segment in around {
            match behind(value, segment) {
                Some(next) => value = next,
                None => return false,
            }
        }
        match (value, last) {
            (Json::Object(_), Segment::Field(_)) | (Json::Array(_), Segment::Index(_)) => {
                behind(value, last).is_none()
            }
            _ => false,
        }
    }
}

fn behind<'a>(value: &'a Json, segment: &Segment) -> Option<&'a Json> {
    match segment {
        Segment::Field(name) => value.get(&**name),
        Segment::Index(n) => value.get(*n),
    }
}

/// Makes requests of one kind, and evaluates them.
pub(super) struct Maker<'a> {
    pub(super) admission: &'a Admission,
    pub(super) policy: &'a CompiledPolicy,
    pub(super) resource: &'a ApiResource,
    pub(super) operations: Vec<Operation>,
    pub(super) object: Shape<'a>,
    /// The type of the params, where the policy has a paramKind.
    pub(super) params: Option<Params<'a>>,
    /// True of Kubernetes' own kinds.
    is_own: bool,
    /// The type of `request`.
    request: Shape<'static>,
    least: &'a LeastObjects,
    /// The least object, once something is made.
    minimal: OnceCell<Option<Json>>,
    /// The namespace of the last request.
    last_namespace: RefCell<Option<(Json, Namespace)>>,
    /// The needs that requests were made for.
    tried: Vec<Needs>,
    /// The requests that were evaluated.
    seen: HashSet<String>,
    authorizer: Arc<AuthorizerList>,
}

/// The params of a policy.
#[derive(Clone, Debug)]
pub(super) struct Params<'a> {
    pub(super) shape: Shape<'a>,
    pub(super) api_version: String,
    pub(super) kind: String,
    pub(super) is_namespaced: bool,
    /// True where a binding has none.
    pub(super) may_be_null: bool,
    /// True where no binding has any.
    pub(super) is_always_null: bool,
}

/// The cost that evaluations may still have.
#[derive(Clone, Copy, Debug)]
pub(super) struct Budget {
    pub(super) n_evaluations: u32,
    pub(super) cost: u64,
}

impl Budget {
    pub(super) fn is_used_up(self) -> bool {
        self.n_evaluations == 0 || self.cost == 0
    }
}

impl<'a> Maker<'a> {
    pub(super) fn new(
        admission: &'a Admission,
        policy: &'a CompiledPolicy,
        resource: &'a ApiResource,
        operations: Vec<Operation>,
        object: Shape<'a>,
        params: Option<Params<'a>>,
        least: &'a LeastObjects,
    ) -> Self {
        Self {
            admission,
            policy,
            resource,
            operations,
            is_own: object.is_own(),
            request: request_shape(resource),
            least,
            minimal: OnceCell::new(),
            object,
            params,
            last_namespace: RefCell::default(),
            tried: Vec::new(),
            seen: HashSet::new(),
            authorizer: Arc::new(AuthorizerList::default()),
        }
    }

    /// The types that paths begin with.
    pub(super) fn roots(&self) -> Vec<(Root, Shape<'a>)> {
        let mut roots = vec![
            (Root::Object, self.object.clone()),
            (Root::OldObject, self.object.clone()),
            (Root::Request, self.request.clone()),
        ];
        roots.push((Root::Namespace, namespace_shape()));
        roots.extend(
            self.params
                .as_ref()
                .map(|params| (Root::Params, params.shape.clone())),
        );
        roots
    }

    /// The values that are the same in all requests.
    pub(super) fn constants(&self) -> Vec<(Path, Json)> {
        let (resource, subresource) = self.resource_names();
        let (gvk, gvr) = (&self.resource.gvk, &self.resource.gvr);
        let mut found = Vec::new();
        for root in [Root::Object, Root::OldObject] {
            found.push((Path::of(root).field("kind"), json!(gvk.kind)));
            found.push((Path::of(root).field("apiVersion"), json!(gvk.api_version())));
        }
        let request = Path::of(Root::Request);
        for part in ["kind", "requestKind"] {
            let part = request.field(part);
            let field = |name| part.as_ref().and_then(|part| part.field(name));
            found.push((field("group"), json!(gvk.group)));
            found.push((field("version"), json!(gvk.version)));
            found.push((field("kind"), json!(gvk.kind)));
        }
        for part in ["resource", "requestResource"] {
            let part = request.field(part);
            let field = |name| part.as_ref().and_then(|part| part.field(name));
            found.push((field("group"), json!(gvr.group)));
            found.push((field("version"), json!(gvr.version)));
            found.push((field("resource"), json!(resource)));
        }
        if !subresource.is_empty() {
            found.push((request.field("subResource"), json!(subresource)));
            found.push((request.field("requestSubResource"), json!(subresource)));
        }
        found.push((request.field("dryRun"), json!(false)));
        if let [only] = &*self.operations {
            found.push((request.field("operation"), json!(only.as_str())));
        }
        found
            .into_iter()
            .filter_map(|(path, value)| Some((path?, value)))
            .collect()
    }

    /// The operation that `needs` ask for, the least unusual one.
    fn operation(&self, needs: &Needs) -> Option<Operation> {
        let wanted = Path::of(Root::Request).field("operation")?;
        let wanted = needs.at(&wanted);
        let fits = |operation: &&Operation| {
            let name = json!(operation.as_str());
            let is_named = wanted.is_none_or(|need| {
                need.equals.as_ref().is_none_or(|value| *value == name)
                    && !need.differs.contains(&name)
            });
            let (object, old_object) = (Path::of(Root::Object), Path::of(Root::OldObject));
            let (has_object, has_old) = match operation {
                Operation::Create | Operation::Connect => (true, false),
                Operation::Update => (true, true),
                Operation::Delete => (false, true),
            };
            is_named
                && !(has_object && needs.is_absent(&object))
                && (has_object || !needs.is_present(&object))
                && !(has_old && needs.is_absent(&old_object))
                && (has_old || !needs.is_present(&old_object))
        };
        self.operations.iter().find(fits).copied()
    }

    /// Forgets which requests were made and evaluated.
    pub(super) fn forget(&mut self) {
        self.tried.clear();
        self.seen.clear();
    }

    /// Reports whether no request was made for `needs` before.
    pub(super) fn is_new(&mut self, needs: &Needs) -> bool {
        let is_new = !self.tried.contains(needs);
        if is_new {
            self.tried.push(needs.clone());
        }
        is_new
    }

    /// A request that fits `needs`; `None` where there is none, as far as can be told.
    pub(super) fn make(&self, needs: &Needs) -> Option<Made> {
        let operation = self.operation(needs)?;
        let mut needs = needs.clone();
        self.add_selected(&mut needs, operation)?;
        let (has_object, has_old) = match operation {
            Operation::Create | Operation::Connect => (true, false),
            Operation::Update => (true, true),
            Operation::Delete => (false, true),
        };
        if self.is_own {
            let of_object = has_object.then_some(Root::Object);
            for root in of_object
                .into_iter()
                .chain(has_old.then_some(Root::OldObject))
            {
                valid::imply(&self.resource.gvk.kind, root, &mut needs)?;
            }
        }
        let object = if has_object {
            Some(self.make_object(&needs, Root::Object, operation)?)
        } else {
            None
        };
        let old_object = if has_old {
            Some(self.make_object(&needs, Root::OldObject, operation)?)
        } else {
            None
        };
        let params = match &self.params {
            Some(params) if params.is_always_null => None,
            Some(params) if !needs.is_absent(&Path::of(Root::Params)) => {
                Some(Self::make_params(params, &needs)?)
            }
            Some(params) if !params.may_be_null => return None,
            _ => None,
        };
        let is_namespaced = self.resource.namespaced;
        if needs.is_absent(&Path::of(Root::Namespace)) && is_namespaced {
            return None;
        }
        let namespace = if is_namespaced {
            Some(self.make_namespace(&needs)?)
        } else {
            None
        };
        let request =
            self.make_request(&needs, operation, object.as_ref().or(old_object.as_ref()))?;
        Some(Made {
            operation,
            object,
            old_object,
            params,
            namespace,
            request,
        })
    }

    fn make_object(&self, needs: &Needs, root: Root, operation: Operation) -> Option<Json> {
        let minimal = self
            .minimal
            .get_or_init(|| self.least.get(&self.resource.gvk, &self.object));
        let mut object = minimal.clone()?;
        let fields = object.as_object_mut()?;
        fields.insert(
            "apiVersion".to_owned(),
            json!(self.resource.gvk.api_version()),
        );
        fields.insert("kind".to_owned(), json!(self.resource.gvk.kind));
        let mut metadata = json!({"name": NAME, "uid": UID, "creationTimestamp": TIME});
        let known = fields
            .get("metadata")
            .and_then(|metadata| metadata.get("labels"));
        if let Some(labels) = known {
            metadata
                .as_object_mut()?
                .insert("labels".to_owned(), labels.clone());
        }
        if self.resource.namespaced {
            metadata
                .as_object_mut()?
                .insert("namespace".to_owned(), json!(NAMESPACE));
        }
        if operation != Operation::Create {
            metadata
                .as_object_mut()?
                .insert("resourceVersion".to_owned(), json!("1"));
        }
        fields.insert("metadata".to_owned(), metadata);
        // The name and the namespace of the request are those of the object.
        for name in ["name", "namespace"] {
            let of_request = Path::of(Root::Request).field(name)?;
            if let Some(need) = needs.at(&of_request)
                && need.is_present == Some(true)
            {
                let segments = [
                    Segment::Field("metadata".into()),
                    Segment::Field(name.into()),
                ];
                self.object
                    .meet(&mut object, &Path::of(root), &segments, need)?;
            }
        }
        meet_all(&self.object, &mut object, root, needs)?;
        if self.is_own {
            valid::complete(&self.resource.gvk.kind, &mut object)?;
        }
        Some(object)
    }

    fn make_params(params: &Params<'_>, needs: &Needs) -> Option<Json> {
        let mut object = params.shape.minimal(&Path::of(Root::Params))?;
        let fields = object.as_object_mut()?;
        fields.insert("apiVersion".to_owned(), json!(params.api_version));
        fields.insert("kind".to_owned(), json!(params.kind));
        let mut metadata =
            json!({"name": NAME, "uid": UID, "creationTimestamp": TIME, "resourceVersion": "1"});
        if params.is_namespaced {
            metadata
                .as_object_mut()?
                .insert("namespace".to_owned(), json!(NAMESPACE));
        }
        fields.insert("metadata".to_owned(), metadata);
        meet_all(&params.shape, &mut object, Root::Params, needs)?;
        Some(object)
    }

    fn make_namespace(&self, needs: &Needs) -> Option<Json> {
        let mut labels = json!({"kubernetes.io/metadata.name": NAMESPACE});
        let selector = constraints(self.policy.policy())
            .and_then(|constraints| constraints.namespace_selector.as_ref());
        if let Some(selector) = selector {
            let labels = labels.as_object_mut()?;
            for (key, edit) in selected(selector) {
                match edit {
                    Edit::Equals(value) => labels.insert(key, value),
                    Edit::Absent => labels.remove(&key),
                    _ => labels.insert(key, json!(NAME)),
                };
            }
        }
        let mut namespace = json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": {
                "name": NAMESPACE,
                "uid": UID,
                "resourceVersion": "1",
                "creationTimestamp": TIME,
                "labels": labels,
            },
            "spec": {"finalizers": ["kubernetes"]},
            "status": {"phase": "Active"},
        });
        meet_all(&namespace_shape(), &mut namespace, Root::Namespace, needs)?;
        Some(namespace)
    }

    fn make_request(
        &self,
        needs: &Needs,
        operation: Operation,
        object: Option<&Json>,
    ) -> Option<Json> {
        let (resource, subresource) = self.resource_names();
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
            let of = if name == "requestKind" {
                "kind"
            } else {
                "resource"
            };
            let value = fields.get(of)?.clone();
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
        meet_all(&self.request, &mut request, Root::Request, needs)?;
        // The user alone can be chosen.
        let is_fixed = |name: &str| before.get(name) == request.get(name);
        let fixed = [
            "operation",
            "kind",
            "resource",
            "requestKind",
            "requestResource",
            "subResource",
            "name",
            "namespace",
        ];
        fixed.into_iter().all(is_fixed).then_some(request)
    }

    fn resource_names(&self) -> (&'a str, &'a str) {
        let resource = &*self.resource.gvr.resource;
        resource.split_once('/').unwrap_or((resource, ""))
    }

    /// Adds what the selector of the policy asks of objects.
    fn add_selected(&self, needs: &mut Needs, operation: Operation) -> Option<()> {
        let Some(selector) = constraints(self.policy.policy())
            .and_then(|constraints| constraints.object_selector.as_ref())
        else {
            return Some(());
        };
        let root = if operation == Operation::Delete {
            Root::OldObject
        } else {
            Root::Object
        };
        let labels = Path::of(root).field("metadata")?.field("labels")?;
        for (key, edit) in selected(selector) {
            if edit == Edit::Absent {
                // Left out of what is made in any case, unless something asks for it.
                continue;
            }
            needs.add(&labels.field(&key)?, edit)?;
        }
        Some(())
    }

    /// The witness of what was made, for which `error` came up.
    pub(super) fn witness(&self, made: &Made, error: &str) -> Witness {
        let mut request = made.request.clone();
        if let Some(fields) = request.as_object_mut() {
            for name in [
                "requestKind",
                "requestResource",
                "requestSubResource",
                "options",
                "dryRun",
            ] {
                fields.remove(name);
            }
            let or_null = |object: &Option<Json>| object.clone().unwrap_or(Json::Null);
            fields.insert("object".to_owned(), or_null(&made.object));
            fields.insert("oldObject".to_owned(), or_null(&made.old_object));
        }
        let has_params = self.params.is_some();
        Witness {
            request,
            params: has_params.then(|| made.params.clone().unwrap_or(Json::Null)),
            namespace_object: made.namespace.clone(),
            error: error.to_owned(),
        }
    }

    /// The request that was made as the admission sees it, with its namespace and the namespaces that there are.
    pub(super) fn asked(
        &self,
        made: &Made,
    ) -> Option<(
        AdmissionRequest,
        Option<Namespace>,
        BTreeMap<String, Namespace>,
    )> {
        let (resource, subresource) = self.resource_names();
        let text = |name: &str| {
            let value = made.request.get(name).and_then(Json::as_str);
            value.unwrap_or_default().to_owned()
        };
        let mut gvr = self.resource.gvr.clone();
        resource.clone_into(&mut gvr.resource);
        let request = AdmissionRequest {
            operation: made.operation,
            gvk: self.resource.gvk.clone(),
            gvr,
            subresource: subresource.to_owned(),
            name: text("name"),
            namespace: text("namespace"),
            object: made.object.as_ref().map(Object::new),
            old_object: made.old_object.as_ref().map(Object::new),
            user_info: user_info(made.request.get("userInfo")),
            ..AdmissionRequest::default()
        };
        let namespace = made
            .namespace
            .as_ref()
            .map(|namespace| self.namespace(namespace));
        let mut namespaces = BTreeMap::new();
        if let Some(namespace) = &namespace {
            namespaces.insert(request.namespace.clone(), namespace.clone());
        } else if !request.namespace.is_empty() {
            let own = made.object.as_ref().or(made.old_object.as_ref())?;
            namespaces.insert(request.namespace.clone(), Namespace::new(own));
        }
        Some((request, namespace, namespaces))
    }

    /// The namespace, read once for all requests in it.
    fn namespace(&self, namespace: &Json) -> Namespace {
        let mut last = self.last_namespace.borrow_mut();
        match &*last {
            Some((known, read)) if known == namespace => read.clone(),
            _ => {
                let read = Namespace::new(namespace);
                *last = Some((namespace.clone(), read.clone()));
                read
            }
        }
    }

    /// Evaluates the policy for what was made; `None` where the rules do not match it or it has been evaluated
    /// before.
    pub(super) fn evaluate(
        &mut self,
        reader: &Reader<'_>,
        made: &Made,
        budget: &mut Budget,
    ) -> Option<Vec<Failure>> {
        let steps = self.traced(made, budget)?;
        Some(failures(reader, &steps))
    }

    /// The results of all expressions for what was made; `None` where [`Maker::evaluate`] has none.
    pub(super) fn traced(&mut self, made: &Made, budget: &mut Budget) -> Option<Vec<Step>> {
        if budget.is_used_up() {
            return None;
        }
        let text = serde_json::to_string(&(
            &made.request,
            &made.object,
            &made.old_object,
            &made.params,
            &made.namespace,
        ))
        .ok()?;
        if !self.seen.insert(text) {
            return None;
        }
        budget.n_evaluations -= 1;
        let (request, namespace, namespaces) = self.asked(made)?;
        if !self.admission.matches_exactly(&request, &namespaces) {
            return None;
        }
        let no_params = ParamList::default();
        let surroundings =
            Surroundings::new(&no_params, &namespaces, Arc::clone(&self.authorizer) as _);
        let params = made.params.as_ref().map(Object::new);
        let (evaluation, steps) =
            self.admission
                .trace(&request, params.as_ref(), namespace.as_ref(), &surroundings);
        // What ended early may have cost as much as a call may.
        let is_over = steps
            .iter()
            .any(|step| step.result.as_ref().is_err_and(EvalError::ends_evaluation));
        // A check asks nobody here.
        let cost = evaluation.costs.used() % AUTHORIZER_CHECK_COST;
        let cost = cost.saturating_add(100);
        let cost = if is_over {
            cost.saturating_add(TRACED_CALL_LIMIT)
        } else {
            cost
        };
        budget.cost = budget.cost.saturating_sub(cost);
        Some(steps)
    }
}

fn meet_all(shape: &Shape<'_>, value: &mut Json, root: Root, needs: &Needs) -> Option<()> {
    let of_root = needs
        .iter()
        .filter(|(path, _)| path.root == root && !path.segments.is_empty());
    let all: Vec<(&Path, &Need)> = of_root.collect();
    // What is taken away goes last, so that nothing brings it back.
    let (absent, present): (Vec<_>, Vec<_>) = all
        .into_iter()
        .partition(|(_, need)| need.is_present == Some(false));
    for (path, need) in present.into_iter().chain(absent) {
        shape.meet(value, &Path::of(root), &path.segments, need)?;
    }
    Some(())
}

fn constraints(
    policy: &ValidatingAdmissionPolicy,
) -> Option<&k8s_openapi::api::admissionregistration::v1::MatchResources> {
    policy.spec.as_ref()?.match_constraints.as_ref()
}

/// The labels that a selector asks for.
fn selected(selector: &LabelSelector) -> Vec<(String, Edit)> {
    let equal = selector.match_labels.iter().flatten();
    let mut found: Vec<_> = equal
        .map(|(key, value)| (key.clone(), Edit::Equals(json!(value))))
        .collect();
    for requirement in selector.match_expressions.iter().flatten() {
        let first = requirement.values.iter().flatten().next();
        let edit = match (&*requirement.operator, first) {
            ("In", Some(value)) => Edit::Equals(json!(value)),
            ("DoesNotExist", _) => Edit::Absent,
            ("NotIn", _) => continue,
            _ => Edit::Present,
        };
        found.push((requirement.key.clone(), edit));
    }
    found
}

fn user_info(value: Option<&Json>) -> UserInfo {
    let text = |name: &str| {
        let text = value.and_then(|value| value.get(name)?.as_str());
        text.unwrap_or_default().to_owned()
    };
    let texts = |value: &Json| {
        let items = value.as_array().into_iter().flatten();
        items
            .filter_map(|item| Some(item.as_str()?.to_owned()))
            .collect()
    };
    let extra = value.and_then(|value| value.get("extra")?.as_object());
    UserInfo {
        username: text("username"),
        uid: text("uid"),
        groups: value
            .and_then(|value| value.get("groups"))
            .map(texts)
            .unwrap_or_default(),
        extra: extra
            .into_iter()
            .flatten()
            .map(|(key, values)| (key.clone(), Some(texts(values))))
            .collect(),
    }
}

pub(super) fn is_namespace(resource: &ApiResource) -> bool {
    resource.gvk.group.is_empty() && resource.gvk.kind == "Namespace"
}
