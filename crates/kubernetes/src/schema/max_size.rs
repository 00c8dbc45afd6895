//! The greatest sizes of values, as the declared types of variables bound them.
//!
//! Source: k8s.io/apiextensions-apiserver `pkg/apiserver/schema/cel/compilation.go`, `sizeEstimator`.

use std::sync::Arc;

use super::decl_type::{DeclKind, DeclType};
use cel::cost::{AstNode, PathStep, SizeEstimate, SizeEstimator};

/// Knows the sizes of variables by their declared types.
///
/// What a schema does not bound is bounded by the size of the largest request, so that no estimate of a
/// value within one is endless. As upstream has it, a key of a map has the size 0, and so has an object;
/// what is selected from a map like a field has no known size.
///
/// Differs: upstream knows one type, that of the rule's `self`, and begins there whatever the path begins
/// with: so it does for [`DeclaredSizes::of_rule`]. With [`DeclaredSizes::new`] each variable has a type
/// of its own, and nothing is said of what no variable leads to.
#[derive(Clone, Debug, Default)]
pub struct DeclaredSizes {
    variables: Vec<(Arc<str>, Arc<DeclType>)>,
    /// Where paths begin that no variable of these is the beginning of.
    otherwise: Option<Arc<DeclType>>,
}

impl DeclaredSizes {
    /// The sizes of `variables`.
    pub fn new(variables: impl IntoIterator<Item = (Arc<str>, Arc<DeclType>)>) -> Self {
        Self {
            variables: variables.into_iter().collect(),
            otherwise: None,
        }
    }

    /// The sizes that the API server supposes in a validation rule of a CRD, for values of `self_type`.
    #[must_use]
    pub fn of_rule(self_type: Arc<DeclType>) -> Self {
        Self {
            variables: Vec::new(),
            otherwise: Some(self_type),
        }
    }

    /// Where a path begins whose first step is `first`.
    fn beginning(&self, first: &PathStep) -> Option<&DeclType> {
        let variable = self
            .variables
            .iter()
            .find(|(name, _)| matches!(first, PathStep::Variable(first) if first == name));
        let type_ = variable.map(|(_, type_)| type_);
        type_.or(self.otherwise.as_ref()).map(|type_| &**type_)
    }
}

/// What a step leads to.
enum Reached<'a> {
    Type(&'a DeclType),
    /// The key of a map, which no schema bounds.
    Key,
}

impl Reached<'_> {
    fn step(self, step: &PathStep) -> Option<Self> {
        let Self::Type(type_) = self else {
            return None;
        };
        match (step, &type_.kind) {
            (PathStep::Items | PathStep::Values, DeclKind::List(elem) | DeclKind::Map(elem)) => {
                Some(Self::Type(elem))
            }
            (PathStep::Keys, DeclKind::Map(_)) => Some(Self::Key),
            // Upstream does not find a field by a reserved word that stands for its escaped name.
            (PathStep::Field(name), DeclKind::Object(_)) => {
                let field = type_.field(name).filter(|field| field.name == *name)?;
                Some(Self::Type(&field.type_))
            }
            _ => None,
        }
    }

    fn max_size(&self) -> u64 {
        match self {
            // Without a bound it is -1, which stands for 2^64-1 here.
            Self::Type(type_) => type_.max_elements.cast_unsigned(),
            Self::Key => 0,
        }
    }
}

impl SizeEstimator for DeclaredSizes {
    fn estimate_size(&self, node: &AstNode<'_>) -> Option<SizeEstimate> {
        let steps = node.path().steps();
        let (first, steps) = steps.split_first()?;
        let mut reached = Reached::Type(self.beginning(first)?);
        for step in steps {
            reached = reached.step(step)?;
        }
        Some(SizeEstimate::new(0, reached.max_size()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::DeclField;
    use cel::checker;
    use cel::cost::CostEstimate;
    use cel::cost::{CostOptions, estimate};
    use cel::decls::Variable;
    use cel::env::{Env, Library};
    use cel::{stdlib, syntax};

    fn text(max_elements: i64) -> Arc<DeclType> {
        let mut type_ = DeclType::scalar(DeclKind::String);
        type_.max_elements = max_elements;
        Arc::new(type_)
    }

    /// The estimate of `expression` where `a` has a list `l` of at most 3 texts of at most 20 bytes, a map
    /// `m` of at most 5 of at most 30, and `b` is a list without bound of texts of at most 100.
    fn estimated(expression: &str) -> CostEstimate {
        let list = Arc::new(DeclType::list(text(20), 3));
        let map = Arc::new(DeclType::map(text(30), 5));
        let fields = [
            DeclField::new("l", list, true),
            DeclField::new("m", map, true),
        ];
        let variables: [(Arc<str>, _); 2] = [
            ("a".into(), DeclType::object("A", fields)),
            ("b".into(), Arc::new(DeclType::list(text(100), -1))),
        ];
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
        let sizes = DeclaredSizes::new(variables);
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
    fn what_is_selected_from_a_map_has_no_known_size() {
        check("a.m.k == b[0]", 6, 15);
        check("a.m.k == a.m.j", 7, 1_844_674_407_370_955_270);
    }

    #[test]
    fn a_list_without_bound_is_endless() {
        check("b.all(x, true)", 2, u64::MAX);
    }

    #[test]
    fn what_no_variable_leads_to_has_the_size_of_its_literal() {
        check("['abcdefghijkl'].all(x, x == b[0])", 14, 19);
    }
}
