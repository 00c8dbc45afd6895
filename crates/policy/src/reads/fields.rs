//! Determines the fields of objects that the expressions of a policy read.
//!
//! `Sources::reads` returns paths that start at `object` and `oldObject`, each with the kind of access. It follows
//! reads through policy variables and macro variables. The result contains all fields that an evaluation reads, and
//! possibly others.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashMap};

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::syntax;
use kubernetes::schema::escape::unescape;

use super::{Attribute, Input, Key, is_input};

/// Maximum nesting of expressions. A deeper expression counts as a read of the whole `object` and the whole
/// `oldObject`.
const MAX_DEPTH: usize = 200;

/// Maximum number of reads. With more reads, the whole `object` and the whole `oldObject` count as read.
const MAX_READS: usize = 2_000;

/// Maximum number of visited nodes. A variable's expression is visited once for each read of the variable.
const MAX_VISITS: usize = 50_000;

/// An element of a path.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// A field, or a key of a map.
    Field(String),
    /// Every element of a list, or every value of a map.
    Each,
}

/// The part of a value that is accessed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AccessKind {
    /// Only the presence of the value.
    Presence,
    /// Only the number of elements or the keys.
    Elements,
    /// The whole value.
    Whole,
}

/// A path that an expression reads. An empty path is the object itself.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FieldRead {
    /// True for a path from `oldObject`, false for a path from `object`.
    pub is_old: bool,
    /// The path from the object to the value.
    pub path: Vec<Step>,
    /// The part of the value that is accessed.
    pub access: AccessKind,
}

impl std::fmt::Display for FieldRead {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(if self.is_old { "oldObject" } else { "object" })?;
        for step in &self.path {
            match step {
                Step::Field(name) => write!(f, ".{name}")?,
                Step::Each => f.write_str("[*]")?,
            }
        }
        Ok(())
    }
}

#[derive(Debug, Default)]
pub(crate) struct Sources {
    variables: Vec<(String, Ast)>,
    others: Vec<Ast>,
}

impl Sources {
    /// Adds an expression. `variable` is the name of the variable that it defines, if any. An expression that cannot be
    /// parsed is ignored.
    pub(crate) fn add(&mut self, variable: Option<&str>, text: &str) {
        let (Some(ast), _) = syntax::parse(text) else {
            return;
        };
        match variable {
            Some(name) => self.variables.push((name.to_owned(), ast)),
            None => self.others.push(ast),
        }
    }

    /// Returns the fields that the expressions read, sorted. The expression of a variable is included only if another
    /// expression reads the variable.
    pub(crate) fn reads(&self) -> Vec<FieldRead> {
        let variables = self.variables.iter();
        let mut walk = Walk {
            variables: variables.map(|(name, ast)| (name.as_str(), ast)).collect(),
            reads: BTreeSet::new(),
            n_visits: 0,
        };
        for ast in &self.others {
            walk.use_of(ast, ast.root(), &mut Vec::new(), 0);
        }
        walk.reads.into_iter().collect()
    }
}

/// The known path of a value.
#[derive(Clone, Debug)]
struct Path {
    is_old: bool,
    steps: Vec<Step>,
}

/// The macro variables in scope, with the paths of their possible values.
type Bound = Vec<(String, Vec<Path>)>;

struct Walk<'a> {
    variables: HashMap<&'a str, &'a Ast>,
    reads: BTreeSet<FieldRead>,
    n_visits: usize,
}

impl Walk<'_> {
    fn note(&mut self, paths: &[Path], access: AccessKind) {
        for path in paths {
            self.reads.insert(FieldRead {
                is_old: path.is_old,
                path: path.steps.clone(),
                access,
            });
        }
        if self.reads.len() > MAX_READS {
            self.reads.clear();
            self.note_all();
        }
    }

    fn note_all(&mut self) {
        for is_old in [false, true] {
            let path = Vec::new();
            self.reads.insert(FieldRead {
                is_old,
                path,
                access: AccessKind::Whole,
            });
        }
    }

    /// Records reads of the whole values that `id` may denote.
    fn use_of(&mut self, ast: &Ast, id: ExprId, bound: &mut Bound, depth: usize) {
        let paths = self.paths(ast, id, bound, depth);
        self.note(&paths, AccessKind::Whole);
    }

    /// Returns the paths of the possible values of `id`. Also records all other reads of the expression, such as those
    /// in a condition.
    fn paths(&mut self, ast: &Ast, id: ExprId, bound: &mut Bound, depth: usize) -> Vec<Path> {
        self.n_visits += 1;
        if depth > MAX_DEPTH || self.n_visits > MAX_VISITS {
            self.note_all();
            return Vec::new();
        }
        let depth = depth + 1;
        let attribute = Attribute::new(ast, id);
        if attribute.operand != id {
            return self.attribute(ast, &attribute, bound, depth);
        }
        match ast.expr(id) {
            Expr::Literal(_) | Expr::Unspecified | Expr::Select { .. } => Vec::new(),
            Expr::Ident(name) => self.named(name, bound),
            Expr::Call {
                function,
                target,
                args,
            } => self.call(ast, (function, *target, args), bound, depth),
            Expr::Comprehension(fold) => {
                let range = self.paths(ast, fold.iter_range, bound, depth);
                self.note(&range, AccessKind::Elements);
                let mut elements = range;
                for path in &mut elements {
                    path.steps.push(Step::Each);
                }
                let init = self.paths(ast, fold.accu_init, bound, depth);
                let n_bound = bound.len();
                bound.push((fold.accu_var.to_string(), init));
                match &fold.iter_var2 {
                    Some(second) => {
                        bound.push((fold.iter_var.to_string(), Vec::new()));
                        bound.push((second.to_string(), elements));
                    }
                    None => bound.push((fold.iter_var.to_string(), elements)),
                }
                self.use_of(ast, fold.loop_condition, bound, depth);
                self.use_of(ast, fold.loop_step, bound, depth);
                let result = self.paths(ast, fold.result, bound, depth);
                bound.truncate(n_bound);
                result
            }
            Expr::List { .. } | Expr::Map(_) | Expr::Struct { .. } => {
                let mut children = Vec::new();
                ast.for_each_child(id, |child| children.push(child));
                for child in children {
                    self.use_of(ast, child, bound, depth);
                }
                Vec::new()
            }
        }
    }

    fn attribute(
        &mut self,
        ast: &Ast,
        attribute: &Attribute<'_>,
        bound: &mut Bound,
        depth: usize,
    ) -> Vec<Path> {
        let mut qualifiers = attribute.qualifiers.iter();
        for qualifier in qualifiers.clone() {
            if let Key::Computed(index) = qualifier.key {
                self.use_of(ast, index, bound, depth);
            }
        }
        let first = attribute.fields().next();
        let first = first.filter(|_| is_input(ast, attribute.operand, Input::Variables));
        let mut paths = match first {
            Some(variable) => {
                qualifiers.next();
                self.variable(variable, depth)
            }
            None => self.paths(ast, attribute.operand, bound, depth),
        };
        for qualifier in qualifiers {
            let step = match qualifier.key {
                Key::Field(name) => {
                    Step::Field(unescape(name).map_or_else(|| name.to_owned(), Cow::into_owned))
                }
                Key::Literal(key) => Step::Field(key.to_owned()),
                Key::Index(_) | Key::Computed(_) => Step::Each,
            };
            for path in &mut paths {
                path.steps.push(step.clone());
            }
        }
        if attribute.qualifiers.last().is_some_and(|it| it.is_test) {
            self.note(&paths, AccessKind::Presence);
            paths.clear();
        }
        paths
    }

    fn named(&mut self, name: &str, bound: &Bound) -> Vec<Path> {
        if let Some((_, paths)) = bound.iter().rev().find(|(known, _)| known == name) {
            return paths.clone();
        }
        let root = |is_old| {
            vec![Path {
                is_old,
                steps: Vec::new(),
            }]
        };
        match Input::from_name(name) {
            Some(Input::Object) => root(false),
            Some(Input::OldObject) => root(true),
            Some(Input::Variables) => {
                self.note_all();
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    fn variable(&mut self, name: &str, depth: usize) -> Vec<Path> {
        match self.variables.get(name).copied() {
            Some(ast) => self.paths(ast, ast.root(), &mut Vec::new(), depth),
            None => Vec::new(),
        }
    }

    fn call(
        &mut self,
        ast: &Ast,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
        bound: &mut Bound,
        depth: usize,
    ) -> Vec<Path> {
        let is_null = |id: &ExprId| matches!(ast.expr(*id), Expr::Literal(Literal::Null));
        match (function, target.as_ref(), args) {
            ("value", Some(same), []) => return self.paths(ast, *same, bound, depth),
            ("_?_:_", None, [condition, truthy, falsy]) => {
                self.use_of(ast, *condition, bound, depth);
                let mut paths = self.paths(ast, *truthy, bound, depth);
                paths.extend(self.paths(ast, *falsy, bound, depth));
                return paths;
            }
            ("orValue" | "or", Some(optional), [other]) => {
                let mut paths = self.paths(ast, *optional, bound, depth);
                paths.extend(self.paths(ast, *other, bound, depth));
                return paths;
            }
            ("_==_" | "_!=_", None, [one, other]) if is_null(one) || is_null(other) => {
                for side in [one, other] {
                    let paths = self.paths(ast, *side, bound, depth);
                    self.note(&paths, AccessKind::Presence);
                }
                return Vec::new();
            }
            ("hasValue", Some(optional), []) => {
                let paths = self.paths(ast, *optional, bound, depth);
                self.note(&paths, AccessKind::Presence);
                return Vec::new();
            }
            ("size", Some(of), []) | ("size", None, [of]) => {
                let paths = self.paths(ast, *of, bound, depth);
                self.note(&paths, AccessKind::Elements);
                return Vec::new();
            }
            _ => {}
        }
        for child in target.iter().chain(args) {
            self.use_of(ast, *child, bound, depth);
        }
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(expression: &str, expected: &[&str]) {
        let mut sources = Sources::default();
        sources.add(Some("spec"), "object.spec");
        sources.add(Some("all"), "variables.spec.list");
        sources.add(None, expression);
        let reads = sources.reads();
        let shown = reads.iter().map(|read| format!("{read} {:?}", read.access));
        assert_eq!(shown.collect::<Vec<_>>(), expected, "{expression}");
    }

    #[test]
    fn field_reads_have_path_and_kind_of_access() {
        check(
            "object.spec.group == 'a' || oldObject == null",
            &["object.spec.group Whole", "oldObject Presence"],
        );
        check("has(object.spec.a.b)", &["object.spec.a.b Presence"]);
        check(
            "object.spec.list.all(x, x.name != '')",
            &[
                "object.spec.list Elements",
                "object.spec.list[*].name Whole",
            ],
        );
        check(
            "variables.all.size() > 0 && variables.spec.x__dash__y",
            &["object.spec.list Elements", "object.spec.x-y Whole"],
        );
        check(
            "object.?spec.?a.orValue(oldObject.spec.b) == 1",
            &["object.spec.a Whole", "oldObject.spec.b Whole"],
        );
        check(
            "(has(object.spec.a) ? object.spec : oldObject.spec).b == dyn(object)['c'][request.name]",
            &[
                "object.c[*] Whole",
                "object.spec.a Presence",
                "object.spec.b Whole",
                "oldObject.spec.b Whole",
            ],
        );
        check("object == oldObject", &["object Whole", "oldObject Whole"]);
        check(
            "dyn(variables)['spec'].?x__dash__y.hasValue()",
            &["object.spec.x-y Presence"],
        );
        check(
            "dyn(object.list)[0]['a__dash__b']",
            &["object.list[*].a__dash__b Whole"],
        );
        check(
            "[object.spec.a].exists(x, x == object.spec.b)",
            &["object.spec.a Whole", "object.spec.b Whole"],
        );
        check(
            "object.metadata.labels.all(k, v, v != '')",
            &[
                "object.metadata.labels Elements",
                "object.metadata.labels[*] Whole",
            ],
        );
        check("request.object == params.object", &[]);
        check(
            "dyn(variables) == null",
            &["object Whole", "oldObject Whole"],
        );
    }
}
