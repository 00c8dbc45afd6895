//! The sizes of the inputs of expressions: objects, `request`, `namespaceObject` and the policy's variables.

use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use super::shapes;
use cel::bounds::{
    self, Bound, BoundOptions, BoundPaths, BoundVariables, ExpressionBounds, VariablePart,
};
use cel::checker::CheckedAst;
use cel::cost::Path;
use kubernetes::schema::{DeclField, DeclKind, DeclType, DeclaredSizes, ObjectShape};

/// Maximum number of AST nodes of a variable's expression. The value of a larger expression has an unknown size.
const MAX_COMPUTED_NODES: usize = 5_000;

/// The assumed maximum number of groups of a user, and of labels and annotations of a namespace.
const MAX_ENTRIES: i64 = 1000;

/// The assumed maximum length of the name of a user or group.
const MAX_GROUP_LENGTH: i64 = 256;

/// The maximum length of a name.
///
/// Source: k8s.io/apimachinery `pkg/util/validation/validation.go`, `DNS1123SubdomainMaxLength`.
const MAX_NAME_LENGTH: i64 = 253;

/// The maximum length of a label's value and of the name of a namespace.
///
/// Source: k8s.io/apimachinery `pkg/util/validation/validation.go`, `LabelValueMaxLength`, `DNS1123LabelMaxLength`.
const MAX_LABEL_LENGTH: i64 = 63;

/// The maximum size of all annotations of an object, in bytes.
///
/// Source: k8s.io/apimachinery `pkg/api/validation/objectmeta.go`, `TotalAnnotationSizeLimitB`.
const MAX_ANNOTATIONS_SIZE: i64 = 256 * 1024;

/// Computes the bounds of a policy's expressions from the sizes of their inputs.
pub(super) struct Inputs {
    options: BoundOptions,
    paths: BoundPaths,
    sizes: DeclaredSizes,
    /// All [`shapes`], followed by `None` for the largest request.
    shapes: Vec<Option<ObjectShape>>,
    variables: HashMap<Arc<str>, Variable>,
    /// The variables whose `in_shapes` is not computed yet, in the order of the policy. The bounds are computed on
    /// demand, because most expressions are estimated only for the largest request.
    pending: Vec<(Arc<str>, Rc<CheckedAst>)>,
}

struct Variable {
    /// The bound of the variable's value in the largest request. `None` if it is unknown.
    in_largest: Option<Bound>,
    /// The bounds of the variable's value in objects of each shape. Empty if they are unknown or not yet computed.
    in_shapes: Vec<Bound>,
}

impl Inputs {
    /// Creates an instance for the types of `object` and `params`. The type of `params` may be unknown.
    pub(super) fn new(
        object: &Arc<DeclType>,
        params: Option<&Arc<DeclType>>,
        options: BoundOptions,
    ) -> Self {
        let objects = ["object", "oldObject"].map(|name| (Arc::from(name), Arc::clone(object)));
        let unknown = || Arc::new(DeclType::scalar(DeclKind::Unknown));
        let params = [("params".into(), params.map_or_else(unknown, Arc::clone))];
        let others = [("request", request()), ("namespaceObject", namespace())];
        let others = others.map(|(name, type_)| (Arc::from(name), type_));
        Self {
            options,
            paths: BoundPaths::default(),
            sizes: DeclaredSizes::new(objects.into_iter().chain(params).chain(others)),
            shapes: shapes().map(Some).chain([None]).collect(),
            variables: HashMap::new(),
            pending: Vec::new(),
        }
    }

    /// Returns the bounds of `checked` in objects of the shape with the index `n`, or in the largest request if `n` is
    /// `None`.
    pub(super) fn bound(&mut self, checked: &CheckedAst, n: Option<usize>) -> ExpressionBounds {
        if n.is_some() {
            self.complete_variables();
        }
        self.bound_of(checked, n.unwrap_or(self.largest()))
    }

    /// Returns the index of the largest request in `shapes`.
    fn largest(&self) -> usize {
        self.shapes.len().saturating_sub(1)
    }

    fn bound_of(&mut self, checked: &CheckedAst, n: usize) -> ExpressionBounds {
        let inputs = InputsInShape {
            sizes: &self.sizes,
            shapes: &self.shapes,
            variables: &self.variables,
            n,
        };
        bounds::bound(checked, &inputs, self.options, &mut self.paths)
    }

    /// Adds the variable `name`. An existing variable of this name is replaced. If `checked` is `None`, the value has
    /// an unknown size.
    pub(super) fn add_variable(&mut self, name: &str, checked: Option<&Rc<CheckedAst>>) {
        if self.variables.contains_key(name) {
            // Pending variables may read the existing variable, so their bounds are computed before it is replaced.
            self.complete_variables();
        }
        let checked = checked.filter(|checked| checked.ast().len() <= MAX_COMPUTED_NODES);
        let name: Arc<str> = name.into();
        let of_type = checked.and_then(|checked| bounds::bound_of_type(&checked.output_type()));
        let variable = match of_type {
            Some(value) => Variable {
                in_shapes: vec![value.clone(); self.largest()],
                in_largest: Some(value),
            },
            None => {
                let pending = checked.map(|checked| (Arc::clone(&name), Rc::clone(checked)));
                self.pending.extend(pending);
                Variable {
                    in_largest: checked.map(|checked| self.bound_of(checked, self.largest()).value),
                    in_shapes: Vec::new(),
                }
            }
        };
        self.variables.insert(name, variable);
    }

    /// Computes the bounds of the pending variables in objects of each shape.
    fn complete_variables(&mut self) {
        for (name, checked) in std::mem::take(&mut self.pending) {
            let mut values: Vec<Bound> = Vec::new();
            let mut reads_nested_lists = false;
            for (n, shape) in shapes().enumerate() {
                // If the expression reads no nested lists, the bounds for the previous shape of this size are reused.
                let same = values
                    .last()
                    .filter(|_| shape.filled_from > 1 && !reads_nested_lists);
                let value = match same.cloned() {
                    Some(same) => same,
                    None => {
                        let bounds = self.bound_of(&checked, n);
                        reads_nested_lists |= bounds.reads_nested_lists;
                        bounds.value
                    }
                };
                values.push(value);
            }
            if let Some(variable) = self.variables.get_mut(&name) {
                variable.in_shapes = values;
            }
        }
    }
}

/// The inputs in objects of one shape.
struct InputsInShape<'a> {
    sizes: &'a DeclaredSizes,
    shapes: &'a [Option<ObjectShape>],
    variables: &'a HashMap<Arc<str>, Variable>,
    /// The index of the shape.
    n: usize,
}

impl InputsInShape<'_> {
    /// Returns the shape. `None` for the largest request.
    fn object_shape(&self) -> Option<ObjectShape> {
        self.shapes.get(self.n).copied().flatten()
    }
}

impl BoundVariables for InputsInShape<'_> {
    fn part(&self, path: Path<'_>) -> VariablePart {
        self.sizes.part(path, self.shapes)
    }

    fn shape(&self) -> usize {
        self.n
    }

    fn field(&self, root: &str, field: &str) -> Option<Option<Bound>> {
        (root == "variables").then(|| {
            let variable = self.variables.get(field)?;
            match self.object_shape() {
                Some(_) => variable.in_shapes.get(self.n).cloned(),
                None => variable.in_largest.clone(),
            }
        })
    }

    fn has_single_parts(&self) -> bool {
        self.object_shape()
            .is_some_and(|shape| shape.filled_from > 0)
    }
}

/// Returns the type of `request`, with the fields whose size matters.
fn request() -> Arc<DeclType> {
    let groups = DeclType::list(text(MAX_GROUP_LENGTH), MAX_ENTRIES);
    let user = [
        DeclField::new("username", text(MAX_GROUP_LENGTH), true),
        DeclField::new("groups", Arc::new(groups), true),
    ];
    let fields = [
        DeclField::new("name", text(MAX_NAME_LENGTH), true),
        DeclField::new("namespace", text(MAX_LABEL_LENGTH), true),
        DeclField::new("userInfo", DeclType::object("UserInfo", user), true),
    ];
    DeclType::object("AdmissionRequest", fields)
}

/// Returns the type of `namespaceObject`, with the fields whose size matters.
fn namespace() -> Arc<DeclType> {
    let map = |value| Arc::new(DeclType::map(value, MAX_ENTRIES));
    let metadata = [
        DeclField::new("name", text(MAX_LABEL_LENGTH), true),
        DeclField::new("labels", map(text(MAX_LABEL_LENGTH)), true),
        DeclField::new("annotations", map(text(MAX_ANNOTATIONS_SIZE)), true),
    ];
    let metadata = DeclType::object("ObjectMeta", metadata);
    DeclType::object("Namespace", [DeclField::new("metadata", metadata, true)])
}

/// Returns the type of a string with at most `max_length` code points.
pub(super) fn text(max_length: i64) -> Arc<DeclType> {
    let mut text = DeclType::scalar(DeclKind::String);
    text.max_elements = max_length;
    Arc::new(text)
}
