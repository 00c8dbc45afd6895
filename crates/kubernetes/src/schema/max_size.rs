//! Estimates the maximum sizes of values from the declared types of variables.
//!
//! Source: k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`, `sizeEstimator`.

use std::sync::Arc;

use super::decl_type::{DeclKind, DeclType};
use super::sizes;
use cel::bounds::{PartSizes, VariablePart};
use cel::cost::{AstNode, Path, PathStep, SizeEstimate, SizeEstimator};

/// Estimates the sizes of values from the declared types of variables.
///
/// If a schema sets no bound, the maximum request size is the bound. Estimates for values with declared types are
/// therefore finite. As in upstream, map keys and objects have size 0. The size of a map entry is unknown if it is
/// selected like a field (`map.key`).
///
/// As a [`SizeEstimator`], it assumes that objects may be as large as the largest request. [`DeclaredSizes::part`]
/// returns the sizes in smaller objects.
///
/// Differs: upstream uses the type of `self` for the paths of all variables, as [`DeclaredSizes::for_rule`] does here.
/// With [`DeclaredSizes::new`], each given variable has its own type, and all other variables have unknown sizes.
#[derive(Clone, Debug, Default)]
pub struct DeclaredSizes {
    variables: Arc<[(Arc<str>, Arc<DeclType>)]>,
    /// The type of all variables that are not in `variables`.
    otherwise: Option<Arc<DeclType>>,
}

/// The assumed shape of objects in an estimate: their size, and how elements are distributed over nested lists.
///
/// An object of limited size cannot have many containers and also many ports in each container. With `filled_from` 0,
/// the object has as many containers as possible, and the ports are distributed over the containers. With `filled_from`
/// 1, the object has one container with as many ports as possible. One of these shapes causes the maximum cost of a
/// nested loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectShape {
    /// The JSON size of the object when expressions are evaluated, in bytes.
    pub n_bytes: i64,
    /// The number of levels at which lists and maps have exactly one element, starting with the outermost level.
    pub filled_from: usize,
}

impl ObjectShape {
    /// Returns the maximum size of a value with the type `type_` in an object of this shape. The size is a number of
    /// list elements, map entries, or bytes.
    fn fitting(self, type_: &DeclType) -> u64 {
        let n = match &type_.kind {
            DeclKind::List(elem) => sizes::items_within(self.n_bytes, elem.min_evaluated_size()),
            DeclKind::Map(value) => sizes::entries_within(self.n_bytes, value.min_evaluated_size()),
            _ => sizes::length_within(self.n_bytes),
        };
        n.max(0).cast_unsigned()
    }
}

impl DeclaredSizes {
    /// Creates an estimator for variables with these names and types.
    pub fn new(variables: impl IntoIterator<Item = (Arc<str>, Arc<DeclType>)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            otherwise: None,
        }
    }

    /// Creates the API server's estimator for a CRD rule. `self_type` is the type of `self`.
    #[must_use]
    pub fn for_rule(self_type: Arc<DeclType>) -> Self {
        Self {
            variables: Arc::default(),
            otherwise: Some(self_type),
        }
    }

    /// Describes the part of a variable at `path`. The result contains one size for each shape in `shapes`. `None`
    /// denotes an object as large as the largest request.
    #[must_use]
    pub fn part(&self, path: Path<'_>, shapes: &[Option<ObjectShape>]) -> VariablePart {
        let Some(target) = self.target(path) else {
            return VariablePart::default();
        };
        let sizes = shapes.iter().map(|shape| target.sizes(*shape));
        VariablePart {
            is_list: target.is_list(),
            is_nested: target.is_nested,
            sizes: sizes.collect(),
        }
    }

    /// Returns the value at `path`, or `None` if the path does not start with one of the variables.
    fn target(&self, path: Path<'_>) -> Option<PathTarget<'_>> {
        let steps = path.steps();
        let (first, steps) = steps.split_first()?;
        let mut target = PathTarget {
            last: StepTarget::Type(self.beginning(first)?),
            end: PathEnd::Declared,
            enclosing: Vec::new(),
            is_nested: false,
            is_part_of_object: true,
        };
        for step in steps {
            let last = target.last;
            target.is_part_of_object &= last.is_part_of_object();
            if matches!(step, PathStep::Items | PathStep::Values | PathStep::Keys) {
                target.enclosing.push(last);
            }
            let Some(next) = last.step(step) else {
                let is_missing = self.otherwise.is_none() && last.lacks(step);
                target.end = if is_missing {
                    PathEnd::Missing
                } else {
                    PathEnd::Untyped
                };
                break;
            };
            target.last = next;
            target.is_nested |= !target.enclosing.is_empty() && next.is_list().is_some();
        }
        Some(target)
    }

    /// Returns the type of the variable at the start of a path. `first` is the path's first step.
    fn beginning(&self, first: &PathStep) -> Option<&DeclType> {
        let variable = self
            .variables
            .iter()
            .find(|(name, _)| matches!(first, PathStep::Variable(first) if first == name));
        let type_ = variable.map(|(_, type_)| type_);
        type_.or(self.otherwise.as_ref()).map(|type_| &**type_)
    }
}

/// The value reached after some steps of a path.
#[derive(Clone, Copy)]
enum StepTarget<'a> {
    Type(&'a DeclType),
    /// A map key. Schemas do not limit the length of map keys.
    Key,
}

impl StepTarget<'_> {
    /// Returns true for a list, false for a map, and `None` for other values.
    fn is_list(self) -> Option<bool> {
        match self {
            Self::Type(type_) => match type_.kind {
                DeclKind::List(_) => Some(true),
                DeclKind::Map(_) => Some(false),
                _ => None,
            },
            Self::Key => None,
        }
    }

    fn step(self, step: &PathStep) -> Option<Self> {
        let Self::Type(type_) = self else {
            return None;
        };
        match (step, &type_.kind) {
            (
                PathStep::Items | PathStep::Values | PathStep::Element,
                DeclKind::List(elem) | DeclKind::Map(elem),
            ) => Some(Self::Type(elem)),
            (PathStep::Keys | PathStep::Key, DeclKind::Map(_)) => Some(Self::Key),
            // Unlike the type checker, upstream's estimator does not look up the escaped form of reserved words.
            (PathStep::Field(name), DeclKind::Object(_)) => {
                let field = type_.field(name).filter(|field| field.name == *name)?;
                Some(Self::Type(&field.type_))
            }
            _ => None,
        }
    }

    /// Returns true if `step` selects a field that the type does not have. For objects of this type, such a step fails
    /// or is not evaluated, so the value of the field is never used.
    fn lacks(self, step: &PathStep) -> bool {
        match (self, step) {
            (Self::Type(type_), PathStep::Field(name)) => {
                type_.as_object().is_some_and(|object| !object.is_open)
                    && self.is_part_of_object()
                    && type_.field(name).is_none()
            }
            _ => false,
        }
    }

    /// Returns true if the fields of this value are part of an object in the request. A type with a name is declared in
    /// Rust code, such as the type of a policy's `variables`, and its fields are computed.
    fn is_part_of_object(self) -> bool {
        match self {
            Self::Type(type_) => type_.as_object().is_none_or(|object| object.name.is_none()),
            Self::Key => false,
        }
    }

    /// Returns the maximum size. If `is_upstream` is true, map keys and objects have size 0, as in upstream's
    /// estimates.
    fn max_size(self, is_upstream: bool) -> u64 {
        let max = match self {
            Self::Key if is_upstream => 0,
            Self::Key => sizes::max_string_length(),
            Self::Type(type_) => match type_.as_object() {
                Some(object) if object.is_open && !is_upstream => -1,
                Some(object) if !is_upstream => {
                    i64::try_from(object.fields().len()).unwrap_or(-1).max(1)
                }
                // A value of one of these types may be a string, whose size has no declared limit.
                _ if type_.max_elements == 0
                    && !is_upstream
                    && matches!(
                        type_.kind,
                        DeclKind::IntOrString | DeclKind::Quantity | DeclKind::Unknown
                    ) =>
                {
                    sizes::max_string_length()
                }
                _ => type_.max_elements,
            },
        };
        // -1 means unbounded. The cast converts it to 2^64-1.
        max.cast_unsigned()
    }
}

impl SizeEstimator for DeclaredSizes {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        let target = self.target(node.path())?;
        target.size_in_largest(self.otherwise.is_some())
    }
}

/// The value at a path.
struct PathTarget<'a> {
    /// The last value on the path that has a declared type.
    last: StepTarget<'a>,
    end: PathEnd,
    enclosing: Vec<StepTarget<'a>>,
    /// True if the path contains a list or map that is nested in another list or map.
    is_nested: bool,
    /// True if all steps of the path select parts of an object.
    is_part_of_object: bool,
}

/// The relation between the value at a path and the last value on the path that has a declared type.
#[derive(Clone, Copy)]
enum PathEnd {
    /// The value at the path is the last value with a declared type.
    Declared,
    /// The value at the path is a field that the type of that last value lacks.
    Missing,
    /// The value at the path is a part of that last value, but has no declared type.
    Untyped,
}

impl PathTarget<'_> {
    /// Returns the size in the largest request, or `None` if the size is unknown. `is_upstream` is true for upstream's
    /// estimates.
    fn size_in_largest(&self, is_upstream: bool) -> Option<SizeEstimate> {
        match self.end {
            PathEnd::Declared => Some(SizeEstimate::new(0, self.last.max_size(is_upstream))),
            PathEnd::Missing => Some(SizeEstimate::fixed(0)),
            PathEnd::Untyped => None,
        }
    }

    /// Returns the sizes in objects of the shape `shape`. `None` denotes an object as large as the largest request.
    fn sizes(&self, shape: Option<ObjectShape>) -> PartSizes {
        let is_declared = self.is_declared_part();
        let Some(shape) = shape else {
            let size = self.size_in_largest(false);
            return PartSizes {
                size: size.unwrap_or(SizeEstimate::UNKNOWN),
                shared: None,
                json: is_declared.then_some(sizes::MAX_REQUEST_SIZE_BYTES.cast_unsigned()),
            };
        };
        let mut enclosing = Enclosing::default();
        for container in &self.enclosing {
            enclosing.enter(*container, shape);
        }
        let size = match self.end {
            PathEnd::Declared => SizeEstimate::new(0, enclosing.max_size(self.last, shape)),
            PathEnd::Missing => SizeEstimate::fixed(0),
            // Together, all untyped values of an object are at most as large as the object.
            PathEnd::Untyped if self.last.is_part_of_object() => {
                let within = sizes::length_within(shape.n_bytes).max(0).cast_unsigned();
                let of_each = within.checked_div(enclosing.n_elements).unwrap_or(1).max(1);
                SizeEstimate::new(0, of_each)
            }
            PathEnd::Untyped => SizeEstimate::UNKNOWN,
        };
        let n_bytes = shape.n_bytes.max(0).cast_unsigned();
        PartSizes {
            size,
            shared: is_declared.then(|| enclosing.fitting(self.last, shape)),
            json: is_declared.then(|| n_bytes.div_ceil(enclosing.n_elements.max(1))),
        }
    }

    /// Returns true if the value has a declared type and is part of an object in the request.
    fn is_declared_part(&self) -> bool {
        matches!(self.end, PathEnd::Declared) && self.is_part_of_object
    }

    /// Returns [`VariablePart::is_list`].
    fn is_list(&self) -> Option<bool> {
        match self.end {
            PathEnd::Declared => self.last.is_list(),
            PathEnd::Missing | PathEnd::Untyped => None,
        }
    }
}

/// The lists and maps that enclose a value.
struct Enclosing {
    depth: usize,
    /// The assumed number of elements at the innermost level in the whole object.
    n_elements: u64,
}

impl Default for Enclosing {
    fn default() -> Self {
        Self {
            depth: 0,
            n_elements: 1,
        }
    }
}

impl Enclosing {
    fn enter(&mut self, container: StepTarget<'_>, shape: ObjectShape) {
        let elements = self.max_size(container, shape);
        self.n_elements = self.n_elements.saturating_mul(elements.max(1));
        self.depth = self.depth.saturating_add(1);
    }

    /// Returns the maximum size of `target`, a value nested in these lists and maps.
    fn max_size(&self, target: StepTarget<'_>, shape: ObjectShape) -> u64 {
        let declared = target.max_size(false);
        match target {
            StepTarget::Type(type_) if type_.as_object().is_some_and(|object| !object.is_open) => {
                declared
            }
            _ => declared.min(self.fitting(target, shape)),
        }
    }

    /// Returns the maximum size at which `target` fits into an object of this shape.
    fn fitting(&self, target: StepTarget<'_>, shape: ObjectShape) -> u64 {
        let fitting = match target {
            StepTarget::Type(type_)
                if matches!(type_.kind, DeclKind::List(_) | DeclKind::Map(_))
                    && self.depth < shape.filled_from =>
            {
                1
            }
            StepTarget::Type(type_) => shape.fitting(type_),
            StepTarget::Key => sizes::length_within(shape.n_bytes).max(0).cast_unsigned(),
        };
        fitting.checked_div(self.n_elements).unwrap_or(1).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::DeclField;
    use cel::checker::{self, CheckedAst};
    use cel::cost::CostEstimate;
    use cel::decls::Variable;
    use cel::env::{Env, Library};
    use cel::estimate::{CostOptions, estimate};
    use cel::{stdlib, syntax};

    fn text(max_elements: i64) -> Arc<DeclType> {
        let mut type_ = DeclType::scalar(DeclKind::String);
        type_.max_elements = max_elements;
        Arc::new(type_)
    }

    /// Estimates the cost of `expression`. `a.l` is a list of at most 3 strings of at most 20 bytes. `a.m` is a map
    /// with at most 5 strings of at most 30 bytes. `b` is an unbounded list of strings of at most 100 bytes.
    fn estimated(expression: &str) -> CostEstimate {
        let list = Arc::new(DeclType::list(text(20), 3));
        let map = Arc::new(DeclType::map(text(30), 5));
        let fields = [
            DeclField::new("l", list, true),
            DeclField::new("m", map, true),
        ];
        let variables = [
            ("a".into(), DeclType::object("A", fields)),
            ("b".into(), Arc::new(DeclType::list(text(100), -1))),
        ];
        let checked = checked(expression, &variables);
        let sizes = DeclaredSizes::new(variables);
        estimate(&checked, &sizes, CostOptions::default())
    }

    fn checked(expression: &str, variables: &[(Arc<str>, Arc<DeclType>)]) -> CheckedAst {
        let mut library = Library::default();
        for rows in stdlib::TABLES {
            library.add_overloads(rows);
        }
        let declared = variables.iter();
        let env = Env::new(Arc::new(library)).extend(
            declared.map(|(name, type_)| Variable::new(Arc::clone(name), type_.cel_type(name))),
        );
        let ast = Arc::new(syntax::parse(expression).0.unwrap());
        let (checked, found) = checker::check(&ast, expression, &env);
        assert!(found.is_empty(), "{}", found.render(expression));
        checked
    }

    /// An estimator of the sizes of values in objects of one shape.
    struct InShape(DeclaredSizes, ObjectShape);

    impl SizeEstimator for InShape {
        fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
            let part = self.0.part(node.path(), &[Some(self.1)]);
            part.sizes.first().map(|sizes| sizes.size)
        }
    }

    #[track_caller]
    fn check(expression: &str, min: u64, max: u64) {
        assert_eq!(estimated(expression), CostEstimate::new(min, max));
    }

    #[test]
    fn list_and_its_items_are_bounded() {
        check("a.l.all(x, true)", 3, 12);
        check("a.l[0] == a.l[1]", 7, 8);
        check("a.l.exists(x, x == b[0])", 3, 30);
    }

    #[test]
    fn map_and_its_values_are_bounded() {
        check("a.m.all(k, true)", 3, 18);
        check("a.m['k'] == a.l[0]", 7, 8);
    }

    #[test]
    fn value_selected_from_map_has_unknown_size() {
        check("a.m.k == b[0]", 6, 15);
        check("a.m.k == a.m.j", 7, 1_844_674_407_370_955_270);
    }

    #[test]
    fn unbounded_list_has_unbounded_cost() {
        check("b.all(x, true)", 2, u64::MAX);
    }

    /// Returns the maximum cost of `expression` for an object `a` of this shape. `a.items` is a list of objects with a
    /// string `name`, an integer list `parts` and a map `limits`. `a.short` is a list of at most 3 strings.
    fn most(expression: &str, n_bytes: i64, filled_from: usize) -> u64 {
        let number = Arc::new(DeclType::scalar(DeclKind::Int));
        let part = Arc::new(DeclType::list(number, -1));
        let item = DeclType::object(
            "Item",
            [
                DeclField::new("name", text(-1), true),
                DeclField::new("parts", part, true),
                DeclField::new("limits", Arc::new(DeclType::map(text(-1), -1)), false),
            ],
        );
        let fields = [
            DeclField::new("items", Arc::new(DeclType::list(item, -1)), true),
            DeclField::new("short", Arc::new(DeclType::list(text(20), 3)), true),
        ];
        let variables = [("a".into(), DeclType::object("A", fields))];
        let shape = ObjectShape {
            n_bytes,
            filled_from,
        };
        let checked = checked(expression, &variables);
        let sizes = InShape(DeclaredSizes::new(variables), shape);
        estimate(&checked, &sizes, CostOptions::default()).max
    }

    #[test]
    fn size_of_object_limits_number_of_elements() {
        // An object of 1000 bytes can contain 332 items (2 bytes and a comma each), 499 parts (1 byte and a comma
        // each), or one string of 998 bytes.
        assert_eq!(most("a.items.all(x, true)", 1000, 0), 3 + 332 * 3);
        assert_eq!(most("a.items.all(x, true)", 100, 0), 3 + 32 * 3);
        assert_eq!(most("a.items[0].name.contains('a')", 1000, 1), 4 + 100);
        assert_eq!(most("a.items[0].parts.all(x, true)", 1000, 1), 5 + 499 * 3);
        assert_eq!(most("a.short.all(x, true)", 1000, 0), 3 + 3 * 3);
    }

    #[test]
    fn nested_lists_share_the_elements_that_fit_into_the_object() {
        let nested = "a.items.all(x, x.parts.all(y, true))";
        let spread = most(nested, 1000, 0);
        let in_one = most(nested, 1000, 1);
        let twice = most("a.items.all(x, a.items.all(y, true))", 1000, 0);
        assert!(in_one < 2000 && spread < 4000, "{in_one} {spread}");
        assert!(twice > 332 * 332, "{twice}");
    }

    #[test]
    fn map_values_of_all_items_share_the_object_size() {
        let by_field = most("a.items.all(x, x.limits.memory.contains('a'))", 65_536, 0);
        let by_key = most(
            "a.items.all(x, x.limits['memory'].contains('a'))",
            65_536,
            0,
        );
        // There are 21,844 items, and each costs a few units.
        assert!(by_field < 200_000, "{by_field}");
        assert!(by_key < 200_000, "{by_key}");
        // A single item can contain all bytes of the object.
        let in_one = most("a.items.all(x, x.limits.memory.contains('a'))", 65_536, 1);
        assert!((6_000..20_000).contains(&in_one), "{in_one}");
    }

    #[test]
    fn elements_of_literal_lists_have_their_own_size() {
        check("['abcdefghijkl'].all(x, x == b[0])", 14, 19);
    }
}
