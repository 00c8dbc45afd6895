//! The maximum sizes of values, bounded by the declared types of variables.
//!
//! Source: k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`, `sizeEstimator`.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::decl_type::{DeclKind, DeclType};
use super::sizes;
use cel::cost::{AstNode, PathStep, SizeEstimate, SizeEstimator};

/// Estimates the sizes of variables by their declared types.
///
/// A value without a bound in the schema is bounded by the size of the largest request, so estimates within declared
/// types are finite. As in upstream, map keys and objects have size 0, and a value selected from a map like a field has
/// no known size.
///
/// [`DeclaredSizes::in_objects`] assumes smaller objects than the largest request.
///
/// Differs: upstream has a single type, that of the rule's `self`, and applies it to every path, regardless of the
/// variable. [`DeclaredSizes::for_rule`] does the same. With [`DeclaredSizes::new`], each variable has its own type,
/// and sizes of other paths are unknown.
#[derive(Clone, Debug, Default)]
pub struct DeclaredSizes {
    variables: Arc<[(Arc<str>, Arc<DeclType>)]>,
    /// The type at the start of paths that begin with none of the variables.
    otherwise: Option<Arc<DeclType>>,
    /// The assumed objects, if not the largest that fit into a request.
    objects: Option<ObjectShape>,
    /// Set when the size of a nested list or map is requested.
    asks_within: Option<Arc<AtomicBool>>,
}

/// The assumed objects of an estimate: the total size and its distribution.
///
/// An object of limited size cannot have both many containers and many ports in each of them. With `filled_from` 0, it
/// has as many containers as fit, and the ports are distributed over them. With 1, it has one container with as many
/// ports as fit. One of these shapes has the maximum cost of nested loops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ObjectShape {
    /// The size of the object in JSON, in bytes.
    pub n_bytes: i64,
    /// The number of enclosing lists and maps that have only one element each.
    pub filled_from: usize,
}

impl ObjectShape {
    /// Returns the number of elements that fit, or of bytes for other types.
    fn fitting(self, type_: &DeclType) -> u64 {
        let n = match &type_.kind {
            DeclKind::List(elem) => sizes::items_within(self.n_bytes, elem.min_serialized_size),
            DeclKind::Map(value) => sizes::entries_within(self.n_bytes, value.min_serialized_size),
            _ => sizes::length_within(self.n_bytes),
        };
        n.max(0).cast_unsigned()
    }
}

impl DeclaredSizes {
    /// Creates the sizes of `variables`.
    pub fn new(variables: impl IntoIterator<Item = (Arc<str>, Arc<DeclType>)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            otherwise: None,
            objects: None,
            asks_within: None,
        }
    }

    /// Returns these sizes for objects of a shape.
    #[must_use]
    pub fn in_objects(mut self, shape: ObjectShape) -> Self {
        self.objects = Some(shape);
        self
    }

    /// Returns these sizes, and sets `flag` when the size of a nested list or map is requested. If it stays unset, a
    /// larger `filled_from` does not change estimates.
    #[must_use]
    pub fn with_nesting_flag(mut self, flag: &Arc<AtomicBool>) -> Self {
        self.asks_within = Some(Arc::clone(flag));
        self
    }

    /// Creates the sizes that the API server assumes for a validation rule of a CRD with values of `self_type`.
    #[must_use]
    pub fn for_rule(self_type: Arc<DeclType>) -> Self {
        Self {
            variables: Arc::default(),
            otherwise: Some(self_type),
            objects: None,
            asks_within: None,
        }
    }

    /// Sets the flag if `target` is a nested list or map.
    fn note_nesting(&self, enclosing: &Enclosing, target: &StepTarget<'_>) {
        if let (Some(flag), StepTarget::Type(type_)) = (&self.asks_within, target)
            && enclosing.depth > 0
            && matches!(type_.kind, DeclKind::List(_) | DeclKind::Map(_))
        {
            flag.store(true, Ordering::Relaxed);
        }
    }

    /// Returns the type at the start of a path with the first step `first`.
    fn beginning(&self, first: &PathStep) -> Option<&DeclType> {
        let variable = self
            .variables
            .iter()
            .find(|(name, _)| matches!(first, PathStep::Variable(first) if first == name));
        let type_ = variable.map(|(_, type_)| type_);
        type_.or(self.otherwise.as_ref()).map(|type_| &**type_)
    }
}

/// The target of a step.
enum StepTarget<'a> {
    Type(&'a DeclType),
    /// The key of a map. Schemas do not bound it.
    Key,
}

impl StepTarget<'_> {
    fn step(self, step: &PathStep) -> Option<Self> {
        let Self::Type(type_) = self else {
            return None;
        };
        match (step, &type_.kind) {
            (PathStep::Items | PathStep::Values, DeclKind::List(elem) | DeclKind::Map(elem)) => {
                Some(Self::Type(elem))
            }
            (PathStep::Keys, DeclKind::Map(_)) => Some(Self::Key),
            // Upstream does not find a field by a reserved word instead of its escaped name.
            (PathStep::Field(name), DeclKind::Object(_)) => {
                let field = type_.field(name).filter(|field| field.name == *name)?;
                Some(Self::Type(&field.type_))
            }
            _ => None,
        }
    }

    /// Returns true if values selected from it are parts of an object instead of computed. Manually declared types,
    /// such as that of the variables of a policy, have a name.
    fn is_part_of_object(&self) -> bool {
        match self {
            Self::Type(type_) => type_.as_object().is_none_or(|object| object.name.is_none()),
            Self::Key => false,
        }
    }

    fn max_size(&self) -> u64 {
        match self {
            // Without a bound it is -1, interpreted as 2^64-1.
            Self::Type(type_) => type_.max_elements.cast_unsigned(),
            Self::Key => 0,
        }
    }
}

impl SizeEstimator for DeclaredSizes {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        self.estimate_varying_size(node).0
    }

    /// Returns the estimate, and true if it depends on the assumed objects.
    fn estimate_varying_size(&self, node: &AstNode<'_>) -> (Option<SizeEstimate>, bool) {
        const UNKNOWN: (Option<SizeEstimate>, bool) = (None, false);
        let steps = node.path().steps();
        let Some((first, steps)) = steps.split_first() else {
            return UNKNOWN;
        };
        let Some(beginning) = self.beginning(first) else {
            return UNKNOWN;
        };
        let mut target = StepTarget::Type(beginning);
        let mut enclosing = Enclosing::default();
        for step in steps {
            if let Some(shape) = self.objects {
                self.note_nesting(&enclosing, &target);
                enclosing.step(step, &target, shape);
            }
            let is_part_of_object = target.is_part_of_object();
            target = match (target.step(step), self.objects) {
                (Some(next), _) => next,
                // The untyped parts of an object are together no larger than the object.
                (None, Some(shape)) if is_part_of_object => {
                    let within = sizes::length_within(shape.n_bytes).max(0).cast_unsigned();
                    let of_each = within.checked_div(enclosing.n_elements).unwrap_or(1).max(1);
                    return (Some(SizeEstimate::new(0, of_each)), true);
                }
                (None, _) => return UNKNOWN,
            };
        }
        self.note_nesting(&enclosing, &target);
        let bound = target.max_size();
        let max = match self.objects {
            None => bound,
            Some(shape) => enclosing.max_size(&target, shape),
        };
        // At least one fits in any object.
        (Some(SizeEstimate::new(0, max)), bound > 1)
    }
}

/// The enclosing lists and maps of a value in an object of some shape.
struct Enclosing {
    /// The number of enclosing lists and maps.
    depth: usize,
    /// The number of elements of the innermost one in the whole object.
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
    fn step(&mut self, step: &PathStep, from: &StepTarget<'_>, shape: ObjectShape) {
        if matches!(step, PathStep::Items | PathStep::Values | PathStep::Keys) {
            let elements = self.max_size(from, shape);
            self.n_elements = self.n_elements.saturating_mul(elements.max(1));
            self.depth = self.depth.saturating_add(1);
        }
    }

    /// Returns the maximum size of a value within these.
    fn max_size(&self, target: &StepTarget<'_>, shape: ObjectShape) -> u64 {
        let StepTarget::Type(type_) = target else {
            return target.max_size();
        };
        let is_outer = matches!(type_.kind, DeclKind::List(_) | DeclKind::Map(_))
            && self.depth < shape.filled_from;
        let fitting = if is_outer {
            Some(1)
        } else {
            shape.fitting(type_).checked_div(self.n_elements)
        };
        target.max_size().min(fitting.unwrap_or(1).max(1))
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

    /// Returns the estimate of `expression`. `a` has a list `l` of at most 3 strings of at most 20 bytes and a map `m`
    /// of at most 5 of at most 30. `b` is an unbounded list of strings of at most 100 bytes.
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
        estimate_of(expression, variables, |sizes| sizes)
    }

    /// Returns the checked `expression`, in the standard library with these variables.
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

    fn estimate_of<const N: usize>(
        expression: &str,
        variables: [(Arc<str>, Arc<DeclType>); N],
        supposing: impl Fn(DeclaredSizes) -> DeclaredSizes,
    ) -> CostEstimate {
        let checked = checked(expression, &variables);
        let sizes = supposing(DeclaredSizes::new(variables));
        estimate(&checked, &sizes, CostOptions::default())
    }

    #[track_caller]
    fn check(expression: &str, min: u64, max: u64) {
        assert_eq!(estimated(expression), CostEstimate::new(min, max));
    }

    #[test]
    fn a_list_is_bounded_and_so_are_its_items() {
        check("a.l.all(x, true)", 3, 12);
        check("a.l[0] == a.l[1]", 7, 8);
        check("a.l.exists(x, x == b[0])", 3, 30);
    }

    #[test]
    fn a_map_is_bounded_and_so_are_its_values() {
        check("a.m.all(k, true)", 3, 18);
        check("a.m['k'] == a.l[0]", 7, 8);
    }

    #[test]
    fn selection_from_map_has_unknown_size() {
        check("a.m.k == b[0]", 6, 15);
        check("a.m.k == a.m.j", 7, 1_844_674_407_370_955_270);
    }

    #[test]
    fn unbounded_list_has_unbounded_cost() {
        check("b.all(x, true)", 2, u64::MAX);
    }

    /// Returns the maximum cost of `expression` for objects `a` of a shape: a list `items` of objects, each with a
    /// `name`, a list `parts` of integers and a map `limits`, and a list of at most 3 strings.
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
        estimate_of(expression, variables, |sizes| sizes.in_objects(shape)).max
    }

    #[test]
    fn object_shape_limits_elements() {
        // 332 items of 2 bytes with a comma, 499 parts of 1 byte with a comma, or a string of 998 bytes.
        assert_eq!(most("a.items.all(x, true)", 1000, 0), 3 + 332 * 3);
        assert_eq!(most("a.items.all(x, true)", 100, 0), 3 + 32 * 3);
        assert_eq!(most("a.items[0].name.contains('a')", 1000, 1), 4 + 100);
        assert_eq!(most("a.items[0].parts.all(x, true)", 1000, 1), 5 + 499 * 3);
        assert_eq!(most("a.short.all(x, true)", 1000, 0), 3 + 3 * 3);
    }

    #[test]
    fn object_shape_distributes_elements_over_containers() {
        let nested = "a.items.all(x, x.parts.all(y, true))";
        let spread = most(nested, 1000, 0);
        let in_one = most(nested, 1000, 1);
        let twice = most("a.items.all(x, a.items.all(y, true))", 1000, 0);
        assert!(in_one < 2000 && spread < 4000, "{in_one} {spread}");
        assert!(twice > 332 * 332, "{twice}");
    }

    #[test]
    fn object_shape_distributes_untyped_values() {
        let by_field = most("a.items.all(x, x.limits.memory.contains('a'))", 65_536, 0);
        let by_key = most(
            "a.items.all(x, x.limits['memory'].contains('a'))",
            65_536,
            0,
        );
        // 21,844 items, with a few cost units for each.
        assert!(by_field < 200_000, "{by_field}");
        assert!(by_key < 200_000, "{by_key}");
        // One item may have all the bytes.
        let in_one = most("a.items.all(x, x.limits.memory.contains('a'))", 65_536, 1);
        assert!((6_000..20_000).contains(&in_one), "{in_one}");
    }

    /// Combined estimates for many sizes equal the individual estimates.
    #[test]
    fn estimate_each_equals_individual_estimates() {
        let item = DeclType::object(
            "Item",
            [
                DeclField::new("name", text(-1), true),
                DeclField::new("parts", Arc::new(DeclType::list(text(-1), -1)), true),
            ],
        );
        let fields = [
            DeclField::new("items", Arc::new(DeclType::list(item, -1)), true),
            DeclField::new("map", Arc::new(DeclType::map(text(-1), -1)), true),
            DeclField::new("short", Arc::new(DeclType::list(text(20), 3)), true),
        ];
        let type_ = DeclType::object("A", fields);
        let variables: [(Arc<str>, Arc<DeclType>); 1] = [("a".into(), type_)];
        for expression in [
            "a.items.all(x, x.parts.all(y, y.contains(x.name)))",
            "a.items.map(x, x.name).exists(n, n in ['a', 'b'] && n.matches('a+'))",
            "a.items.filter(x, x.name != '').map(x, x.parts).all(p, p.size() < 3)",
            "a.map.all(k, a.map[k].startsWith(k)) || ['a', 'b'].exists(x, x in a.map)",
            "[a.items[0].name, 'bc'].map(x, x + a.short[0]).all(x, x.matches('b'))",
            "(a.short + ['x']).all(x, a.items.exists(y, y.name == x)) ? 1 > 2 : a.short == []",
            "a.items.map(x, [x.name]).all(l, l.all(n, n.contains('a')))",
        ] {
            let checked = checked(expression, &variables);
            let mut sizes = Vec::new();
            for n_bytes in [1, 100, 5_000, 1 << 20] {
                for filled_from in 0..3 {
                    let shape = ObjectShape {
                        n_bytes,
                        filled_from,
                    };
                    sizes.push(DeclaredSizes::new(variables.clone()).in_objects(shape));
                }
            }
            let options = CostOptions::default();
            let each: Vec<_> = sizes
                .iter()
                .map(|sizes| estimate(&checked, sizes, options))
                .collect();
            let sizes: Vec<_> = sizes.iter().map(|sizes| sizes as _).collect();
            let together = cel::estimate::estimate_each(&checked, &sizes, options);
            assert_eq!(together, each, "{expression}");
            assert!(
                each.windows(2).any(|pair| pair[0] != pair[1]),
                "{expression}"
            );
        }
    }

    #[test]
    fn literal_elements_have_their_own_size() {
        check("['abcdefghijkl'].all(x, x == b[0])", 14, 19);
    }
}
