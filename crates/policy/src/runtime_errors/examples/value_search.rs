//! Collects the inputs of a validation, and values to try for them.

use std::collections::BTreeSet;

use serde_json::{Value as Json, json};

use crate::admission::Operation;
use crate::runtime_errors::failure_sites::{self, FailureSite};
use crate::runtime_errors::requests::Budget;
use crate::runtime_errors::symbolic::{
    ComprehensionKind, ExprRef, Scope, SymbolicEvaluator, SymbolicValue, comprehension_kind,
    input_value,
};
use cel::ast::{Expr, ExprId, Literal};
use kubernetes::validity::{Constraint, FieldPath, InputConstraints, Root};

/// Maximum number of evaluations for one validation and kind.
const MAX_EVALUATIONS: u32 = 400;

/// Maximum total CEL cost of the evaluations for one validation and kind.
const MAX_COST: u64 = 2_000_000;

/// Maximum number of inputs with trial values.
const MAX_PATHS: usize = 24;

/// Maximum number of the policy's literals that are used as trial values.
const MAX_LITERALS: usize = 24;

/// Maximum nesting of expressions that are searched for inputs.
const MAX_DEPTH: usize = 60;

/// Trial strings. Many checks of names, images and quantities accept some of them and reject others.
const TEXTS: [&str; 16] = [
    "",
    "Not Valid!",
    "example.com/app:latest",
    "app",
    "app:1.0",
    "true",
    "false",
    "0",
    "1",
    "100",
    "1000Gi",
    "1m",
    "a/b",
    "-",
    "10.0.0.1",
    "a-very-long-name-that-goes-on-and-on-and-on-and-on-and-on-and-on-and-on",
];

/// Trial numbers. Many checks accept some of them and reject others.
const NUMBERS: [i64; 8] = [0, 1, -1, 2, 10, 100, 1_000, 70_000];
/// Returns constraints that typical objects satisfy although the schema does not require it. For example, a pod has a
/// container.
pub(crate) fn usual_constraints(evaluator: &SymbolicEvaluator<'_>) -> InputConstraints {
    const LISTS: [&[&str]; 4] = [
        &["spec", "containers"],
        &["spec", "template", "spec", "containers"],
        &[
            "spec",
            "jobTemplate",
            "spec",
            "template",
            "spec",
            "containers",
        ],
        &["spec", "rules"],
    ];
    const OF_RULES: [(&str, &str); 3] =
        [("apiGroups", ""), ("resources", "pods"), ("verbs", "get")];
    let mut constraints = InputConstraints::default();
    let mut add = |path: Option<FieldPath>, constraint: Constraint| {
        let path = path.filter(|path| {
            evaluator
                .input_type(path)
                .is_some_and(|input_type| !input_type.is_unknown())
        });
        let mut extended = constraints.clone();
        if path.is_some_and(|path| extended.add(&path, constraint).is_some()) {
            constraints = extended;
        }
    };
    let object_path = |names: &[&str]| {
        let root = FieldPath::new(Root::Object);
        names.iter().try_fold(root, |path, name| path.field(name))
    };
    for names in LISTS {
        let is_list = |path: &FieldPath| {
            evaluator
                .input_type(path)
                .is_some_and(|input_type| input_type.is_list())
        };
        add(object_path(names).filter(is_list), Constraint::MinLen(1));
    }
    let rule = object_path(&["rules"]).and_then(|rules| rules.element(0));
    for (name, value) in OF_RULES {
        add(
            rule.as_ref().and_then(|rule| rule.field(name)),
            Constraint::Holds(json!(value)),
        );
    }
    let ingress = object_path(&["spec", "rules"]).and_then(|rules| rules.element(0));
    let paths = ingress.and_then(|rule| rule.field("http")?.field("paths")?.element(0));
    add(
        paths.and_then(|path| path.field("path")),
        Constraint::Equals(json!("/")),
    );
    constraints
}

pub(crate) fn constrain_operation(
    constraints: &mut InputConstraints,
    operation: Operation,
) -> Option<()> {
    let path = FieldPath::new(Root::Request).field("operation")?;
    constraints.add(&path, Constraint::Equals(json!(operation.as_str())))
}

/// Returns constraints to try, one at a time, on the value at `path`. They do not depend on the type of the value.
fn trial_constraints(path: &FieldPath, literals: &[Json]) -> Vec<(FieldPath, Constraint)> {
    let mut constraints = vec![
        (path.clone(), Constraint::Absent),
        (path.clone(), Constraint::Present),
        (path.clone(), Constraint::MinLen(2)),
        (path.clone(), Constraint::MaxLen(0)),
    ];
    let equal = |value: Json| (path.clone(), Constraint::Equals(value));
    constraints.extend([json!(true), json!(false)].map(equal));
    for literal in literals {
        constraints.push((path.clone(), Constraint::Equals(literal.clone())));
        match literal {
            Json::String(text) => {
                constraints.push((path.clone(), Constraint::Equals(json!(format!("{text}x")))));
                constraints.push((path.clone(), Constraint::Holds(literal.clone())));
                if let Some(inner) = path.field(text) {
                    constraints.push((inner.clone(), Constraint::Present));
                    constraints.push((inner, Constraint::Absent));
                }
                // The literal may be the prefix or suffix of a label key, such as `example.com/`. A label key neither
                // starts nor ends with punctuation, so the literal is completed with letters.
                let is_mark = |letter: char| letter.is_ascii_punctuation();
                if text.starts_with(is_mark) || text.ends_with(is_mark) {
                    let prefix = if text.starts_with(is_mark) {
                        "example"
                    } else {
                        ""
                    };
                    let suffix = if text.ends_with(is_mark) {
                        "example"
                    } else {
                        ""
                    };
                    let inner = path.field(&format!("{prefix}{text}{suffix}"));
                    constraints.extend(inner.map(|inner| (inner, Constraint::Present)));
                }
            }
            Json::Number(number) => {
                let near = number.as_i64().into_iter();
                let near = near.flat_map(|n| [n.saturating_sub(1), n.saturating_add(1)]);
                constraints.extend(near.map(|n| (path.clone(), Constraint::Equals(json!(n)))));
            }
            _ => {}
        }
    }
    constraints.extend(TEXTS.map(|text| equal(json!(text))));
    constraints.extend(NUMBERS.map(|number| equal(json!(number))));
    constraints
}

pub(crate) struct ValueSearch<'r, 'a> {
    pub(crate) evaluator: &'r SymbolicEvaluator<'a>,
    pub(crate) sites: Vec<FailureSite>,
    pub(crate) budget: Budget,
}

impl<'r, 'a> ValueSearch<'r, 'a> {
    /// Returns a search that only collects trial values, and evaluates no request.
    pub(super) fn for_trials(evaluator: &'r SymbolicEvaluator<'a>) -> Self {
        Self {
            evaluator,
            sites: Vec::new(),
            budget: Budget {
                n_evaluations: 0,
                cost: 0,
            },
        }
    }

    /// Returns a search with all failure sites and the budget for one validation.
    pub(super) fn new(evaluator: &'r SymbolicEvaluator<'a>) -> Self {
        Self {
            evaluator,
            sites: failure_sites::find(evaluator),
            budget: Budget {
                n_evaluations: MAX_EVALUATIONS,
                cost: MAX_COST,
            },
        }
    }
}

impl ValueSearch<'_, '_> {
    /// Returns constraints to try, one at a time, on the values at `paths`. Constraints that no value of the input's
    /// type satisfies are left out. They are frequent in a policy for several kinds, because most inputs exist in only
    /// one kind.
    pub(crate) fn trials(
        &self,
        paths: &[FieldPath],
        literals: &[Json],
    ) -> Vec<(FieldPath, Constraint)> {
        let trials = paths.iter();
        let trials = trials.flat_map(|path| trial_constraints(path, literals));
        let is_satisfiable = |(path, constraint): &(FieldPath, Constraint)| match constraint {
            Constraint::Absent => true,
            Constraint::Equals(value) => {
                let input_type = self.evaluator.input_type(path);
                input_type.is_some_and(|input_type| input_type.allows(value))
            }
            _ => self.evaluator.input_type(path).is_some(),
        };
        trials.filter(is_satisfiable).collect()
    }

    /// Collects the literals of the expression at `index`, and the inputs that it reads directly or through variables.
    pub(crate) fn paths(&self, index: usize, paths: &mut Vec<FieldPath>, literals: &mut Vec<Json>) {
        let Some(ast) = self.evaluator.ast(index) else {
            return;
        };
        let node = ExprRef {
            index,
            id: ast.root(),
        };
        let mut seen = BTreeSet::new();
        self.collect_paths((node, &Scope::default()), &mut seen, (paths, literals), 0);
        paths.truncate(MAX_PATHS);
        literals.truncate(MAX_LITERALS);
    }

    fn collect_paths(
        &self,
        (node, scope): (ExprRef, &Scope),
        seen: &mut BTreeSet<usize>,
        (paths, literals): (&mut Vec<FieldPath>, &mut Vec<Json>),
        depth: usize,
    ) {
        if depth > MAX_DEPTH || !self.evaluator.take_step() {
            return;
        }
        let children: Vec<(ExprId, Scope)> = match self.evaluator.expr(node) {
            Expr::Literal(literal) => {
                let value = match literal {
                    Literal::Int(value) => json!(value),
                    Literal::Uint(value) => json!(value),
                    Literal::Double(value) => json!(value),
                    Literal::String(text) => json!(&**text),
                    _ => return,
                };
                if !literals.contains(&value) {
                    literals.push(value);
                }
                return;
            }
            Expr::Select { operand, .. } => {
                if let Some(n) = self.evaluator.read_variable(node) {
                    if seen.insert(n)
                        && let Some(ast) = self.evaluator.ast(n)
                    {
                        let root = ExprRef {
                            index: n,
                            id: ast.root(),
                        };
                        let scope = Scope::default();
                        self.collect_paths((root, &scope), seen, (paths, literals), depth + 1);
                    }
                    Vec::new()
                } else {
                    vec![(*operand, scope.clone())]
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => {
                // An arithmetic expression with a constant value, such as `24 * 60`, counts as a literal.
                if matches!(&**function, "_+_" | "_-_" | "_*_")
                    && let [SymbolicValue::Constant(value)] = &*self.evaluator.evaluate(node, scope)
                    && !literals.contains(value)
                {
                    literals.push(value.clone());
                }
                let parts = target.iter().chain(&**args);
                parts.map(|id| (*id, scope.clone())).collect()
            }
            Expr::List { elements, .. } => elements.iter().map(|id| (*id, scope.clone())).collect(),
            Expr::Map(entries) => {
                let parts = entries.iter().flat_map(|it| [it.key, it.value]);
                parts.map(|id| (id, scope.clone())).collect()
            }
            Expr::Struct { fields, .. } => {
                fields.iter().map(|it| (it.value, scope.clone())).collect()
            }
            Expr::Comprehension(fold) => {
                let mut children = vec![(fold.iter_range, scope.clone())];
                match comprehension_kind(self.evaluator, node.index, fold) {
                    ComprehensionKind::Bind => {
                        let init = node.with_id(fold.accu_init);
                        let bound = self.evaluator.evaluate(init, scope);
                        children.push((fold.accu_init, scope.clone()));
                        children.push((fold.result, scope.with(&fold.accu_var, bound)));
                    }
                    ComprehensionKind::All(test)
                    | ComprehensionKind::Exists(test)
                    | ComprehensionKind::ExistsOne(test) => {
                        let iterations = self.evaluator.iterations(node.index, fold, scope, 0);
                        // The elements of the list are unknown, but the predicate is visited once, because it may also
                        // read other inputs.
                        if iterations.is_empty() {
                            children.push((test, scope.clone()));
                        }
                        children.extend(iterations.into_iter().map(|(scope, _)| (test, scope)));
                    }
                    ComprehensionKind::FilterMap(filter, transform) => {
                        for (scope, _) in self.evaluator.iterations(node.index, fold, scope, 0) {
                            children.extend(filter.map(|id| (id, scope.clone())));
                            children.push((transform, scope));
                        }
                    }
                    ComprehensionKind::Other => {}
                }
                children
            }
            _ => Vec::new(),
        };
        for (id, scope) in children {
            let node = node.with_id(id);
            self.collect_paths(
                (node, &scope),
                seen,
                (&mut *paths, &mut *literals),
                depth + 1,
            );
        }
        self.add_paths((node, scope), paths);
    }

    /// Adds to `paths` the path of each input that `node` denotes.
    fn add_paths(&self, (node, scope): (ExprRef, &Scope), paths: &mut Vec<FieldPath>) {
        let alternatives = match self.evaluator.expr(node) {
            Expr::Select {
                operand,
                field,
                test_only: true,
            } => {
                let operand = node.with_id(*operand);
                let operands = self.evaluator.evaluate(operand, scope).into_iter();
                let tested = operands.filter_map(|symbolic| match symbolic {
                    SymbolicValue::Input { path, .. } => path.field(field).map(input_value),
                    _ => None,
                });
                tested.collect()
            }
            _ => self.evaluator.evaluate(node, scope),
        };
        for symbolic in alternatives {
            let (SymbolicValue::Input { path, .. }
            | SymbolicValue::MapKey(path)
            | SymbolicValue::Size(path)) = symbolic
            else {
                continue;
            };
            let is_of_interest = !path.segments.is_empty() || path.root == Root::OldObject;
            if is_of_interest && !paths.contains(&path) {
                paths.push(path);
            }
        }
    }
}
