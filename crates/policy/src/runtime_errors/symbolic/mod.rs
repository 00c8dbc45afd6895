//! Symbolic evaluation: determines the input or the constant that each expression of a policy denotes.
//!
//! If the branches of an expression denote different values, the result has one alternative for each of them. The
//! result of an expression that cannot be interpreted is [`SymbolicValue::Unknown`].

mod authorizer_checks;
mod branch_conditions;
mod comprehensions;
pub(crate) mod constant_conditions;
pub(crate) mod free_values;
mod iterations;
mod values;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;

use serde_json::{Value as Json, json};

use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::reads::{Input, variable};
use crate::runtime_errors::input_types::{ChildType, InputType};
pub(crate) use authorizer_checks::authorizer_rules;
pub(crate) use branch_conditions::{BranchCondition, Disjunct};
use cel::ast::{Ast, Expr, ExprId, Literal};
pub(crate) use comprehensions::{ComprehensionKind, comprehension_kind};
use constant_conditions::constant_truth;
use kubernetes::validity::{FieldPath, Root, Segment};
pub(crate) use values::{ANY_KEY, ExprRef, Scope, SymbolicValue, input_value};
use values::{literal_value, select, sizes_of};

/// Maximum number of alternatives of a value. Further alternatives are dropped.
const MAX_ALTERNATIVES: usize = 4;

/// Maximum length of an evaluated list literal. A longer literal is unknown.
const MAX_ELEMENTS: usize = 64;

/// Maximum nesting of evaluations. The evaluation of a variable is nested in that of the expression that reads it.
const MAX_DEPTH: usize = 120;

/// The disjuncts of boolean expressions, by node and expected result.
type DisjunctCache = HashMap<(ExprRef, bool), Rc<[Disjunct]>>;

/// Evaluates the expressions of a policy symbolically for one kind.
pub(crate) struct SymbolicEvaluator<'a> {
    pub(crate) policy: &'a CompiledPolicy,
    pub(crate) roots: Vec<(Root, InputType<'a>)>,
    /// The index of each variable by name. If several variables have the same name, this is the index of the last one.
    variables: HashMap<&'a str, usize>,
    /// The inputs that have the same value in all requests for the kind, such as `object.kind`.
    constants: Vec<(FieldPath, Json)>,
    /// The values of nodes outside of comprehensions.
    cache: RefCell<HashMap<ExprRef, Vec<SymbolicValue>>>,
    /// The disjuncts of nodes outside of comprehensions.
    pub(crate) disjuncts: RefCell<DisjunctCache>,
    steps_left: Cell<u32>,
    /// The number of elements that comprehensions visit if the list is an input.
    n_elements: usize,
}

impl<'a> SymbolicEvaluator<'a> {
    /// Creates an evaluator for one kind. `roots` contains the types of the root variables.
    pub(crate) fn new(
        policy: &'a CompiledPolicy,
        roots: Vec<(Root, InputType<'a>)>,
        constants: Vec<(FieldPath, Json)>,
        max_steps: u32,
    ) -> Self {
        let expressions = policy.expressions().iter().enumerate();
        let variables = expressions
            .filter(|(_, expression)| expression.role == Role::Variable)
            .filter_map(|(n, expression)| Some((expression.name.as_deref()?, n)));
        Self {
            policy,
            roots,
            variables: variables.collect(),
            constants,
            cache: RefCell::default(),
            disjuncts: RefCell::default(),
            steps_left: Cell::new(max_steps),
            n_elements: 1,
        }
    }

    /// Sets the number of elements that comprehensions visit if the list is an input.
    pub(crate) fn with_elements(mut self, n_elements: usize) -> Self {
        self.n_elements = n_elements;
        self
    }

    /// Returns true if comprehensions visit more than one element of a list.
    pub(crate) fn has_several_elements(&self) -> bool {
        self.n_elements > 1
    }

    /// Takes an evaluation step. Returns false if none is left.
    pub(crate) fn take_step(&self) -> bool {
        let left = self.steps_left.get();
        self.steps_left.set(left.saturating_sub(1));
        left > 0
    }

    /// Calls `run`, and then restores the number of remaining steps. `None` if `run` uses all remaining steps.
    pub(crate) fn with_refund<T>(&self, run: impl FnOnce() -> T) -> Option<T> {
        let n_left = self.steps_left.get();
        let result = run();
        let is_complete = !self.is_exhausted();
        self.steps_left.set(n_left);
        is_complete.then_some(result)
    }

    pub(crate) fn is_exhausted(&self) -> bool {
        self.steps_left.get() == 0
    }

    pub(crate) fn ast(&self, n: usize) -> Option<&'a Ast> {
        let expression = self.policy.expressions().get(n)?;
        expression.parsed().ok().map(|ast| &**ast)
    }

    pub(crate) fn expr(&self, node: ExprRef) -> &'a Expr {
        static NOTHING: Expr = Expr::Unspecified;
        self.ast(node.index)
            .map_or(&NOTHING, |ast| ast.expr(node.id))
    }

    pub(crate) fn node(&self, n: usize, id: usize) -> Option<ExprRef> {
        let id = self.ast(n)?.id(id)?;
        Some(ExprRef { index: n, id })
    }

    /// Returns the index of the variable `name`. If several variables have this name, returns the index of the last
    /// one.
    pub(crate) fn variable(&self, name: &str) -> Option<usize> {
        self.variables.get(name).copied()
    }

    /// Returns the type of the value at `path`. `None` if no object can have a value there.
    pub(crate) fn input_type(&self, path: &FieldPath) -> Option<InputType<'a>> {
        let (_, root) = self.roots.iter().find(|(root, _)| *root == path.root)?;
        let mut input_type = root.clone();
        for segment in &path.segments {
            input_type = match input_type.child(segment) {
                ChildType::Known(input_type) => input_type,
                ChildType::Any => InputType::any(),
                ChildType::Never => return None,
            };
        }
        Some(input_type)
    }

    /// Returns true if the value at `path` can be absent in a valid object in which its parent is present.
    pub(crate) fn may_be_absent(&self, path: &FieldPath) -> bool {
        let (Some(parent), Some(last)) = (path.parent(), path.segments.last()) else {
            return true;
        };
        // The API server sets this label on each namespace.
        if matches!(last, Segment::Field(key) if &**key == "kubernetes.io/metadata.name") {
            return false;
        }
        // Absent fields of params without a schema are not reported.
        let root = self.input_type(&FieldPath::new(path.root));
        if root.is_none_or(|root| root.is_unknown()) {
            return false;
        }
        let parent_type = self.input_type(&parent);
        parent_type.is_some_and(|parent_type| {
            !matches!(parent_type.child(last), ChildType::Never)
                && !parent_type.is_always_present(&parent, last)
        })
    }

    /// Returns the innermost ancestor of `path` that can be absent although its own parent is present. `None` if there
    /// is no such ancestor, or if the value at `path` itself can be absent although its parent is present.
    pub(crate) fn absent_ancestor(&self, path: &FieldPath) -> Option<FieldPath> {
        self.input_type(path)?;
        let mut ancestor = path.parent().filter(|_| !self.may_be_absent(path))?;
        while !ancestor.segments.is_empty() {
            if self.may_be_absent(&ancestor) {
                return Some(ancestor);
            }
            ancestor = ancestor.parent()?;
        }
        None
    }

    fn is_map(&self, path: &FieldPath) -> bool {
        self.input_type(path)
            .is_some_and(|input_type| input_type.is_map())
    }

    /// Returns the alternatives of the value of `node`.
    pub(crate) fn evaluate(&self, node: ExprRef, scope: &Scope) -> Vec<SymbolicValue> {
        self.evaluate_at(node, scope, 0)
    }

    fn evaluate_at(&self, node: ExprRef, scope: &Scope, depth: usize) -> Vec<SymbolicValue> {
        if !scope.is_empty() {
            return self.evaluate_uncached(node, scope, depth);
        }
        if let Some(cached) = self.cache.borrow().get(&node) {
            return cached.clone();
        }
        let alternatives = self.evaluate_uncached(node, scope, depth);
        self.cache.borrow_mut().insert(node, alternatives.clone());
        alternatives
    }

    fn evaluate_uncached(&self, node: ExprRef, scope: &Scope, depth: usize) -> Vec<SymbolicValue> {
        if depth > MAX_DEPTH || !self.take_step() {
            return vec![SymbolicValue::Unknown];
        }
        let operand_values =
            |id| self.evaluate_at(node.with_id(id), scope, depth.saturating_add(1));
        let mut alternatives = match self.expr(node) {
            Expr::Literal(literal) => vec![literal_value(literal)],
            Expr::Ident(name) => match scope.find(name) {
                Some(alternatives) => alternatives.to_vec(),
                None => {
                    vec![root_of(name).map_or(SymbolicValue::Unknown, |root| {
                        input_value(FieldPath::new(root))
                    })]
                }
            },
            Expr::Select {
                operand,
                field,
                test_only: false,
            } => {
                if let Some(n) = self.read_variable(node) {
                    let root = self.ast(n).map(Ast::root);
                    return root.map_or_else(Vec::new, |id| {
                        self.evaluate_at(
                            ExprRef { index: n, id },
                            &Scope::default(),
                            depth.saturating_add(1),
                        )
                    });
                }
                let operands = operand_values(*operand);
                self.with_constants(select(operands, |path| path.field(field)))
            }
            Expr::List { elements, .. } if elements.len() <= MAX_ELEMENTS => {
                let all = elements.iter().flat_map(|id| operand_values(*id));
                vec![SymbolicValue::List(Rc::new(all.collect()))]
            }
            Expr::Comprehension(fold) => {
                return match comprehension_kind(self, node.index, fold) {
                    ComprehensionKind::Bind => {
                        let bound = operand_values(fold.accu_init);
                        let scope = scope.with(&fold.accu_var, bound);
                        let result = node.with_id(fold.result);
                        self.evaluate_at(result, &scope, depth.saturating_add(1))
                    }
                    ComprehensionKind::FilterMap(..) => {
                        vec![SymbolicValue::Comprehension(node, scope.clone())]
                    }
                    _ => vec![SymbolicValue::Unknown],
                };
            }
            Expr::Call {
                function,
                target: None,
                args,
            } if **function == *"_?_:_" => {
                let [condition, truthy, falsy] = &**args else {
                    return vec![SymbolicValue::Unknown];
                };
                let condition = node.with_id(*condition);
                match constant_truth(self, condition, scope) {
                    Some(true) => operand_values(*truthy),
                    Some(false) => operand_values(*falsy),
                    None => {
                        let mut alternatives = operand_values(*truthy);
                        alternatives.extend(operand_values(*falsy));
                        alternatives
                    }
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => {
                let call = (&**function, *target, &**args);
                if let Some(value) = self.authorizer_call(node, call, &operand_values) {
                    return vec![value];
                }
                self.evaluate_call(node, call, &operand_values)
            }
            _ => vec![SymbolicValue::Unknown],
        };
        alternatives.truncate(MAX_ALTERNATIVES);
        alternatives
    }

    fn evaluate_call(
        &self,
        node: ExprRef,
        (function, target, args): (&str, Option<ExprId>, &[ExprId]),
        operand_values: &dyn Fn(ExprId) -> Vec<SymbolicValue>,
    ) -> Vec<SymbolicValue> {
        let optional = |alternatives: Vec<SymbolicValue>| {
            let results = alternatives.into_iter().map(|symbolic| match symbolic {
                SymbolicValue::Input { path, default, .. } => SymbolicValue::Input {
                    path,
                    is_optional: true,
                    default,
                },
                other => other,
            });
            results.collect()
        };
        match (function, target, args) {
            ("_[_]", None, [operand, index]) => {
                self.index_into(operand_values(*operand), &operand_values(*index))
            }
            ("_[?_]", None, [operand, index]) => {
                optional(self.index_into(operand_values(*operand), &operand_values(*index)))
            }
            ("_?._", None, [operand, field]) => match &*operand_values(*field) {
                [SymbolicValue::Constant(Json::String(name))] => {
                    optional(select(operand_values(*operand), |path| path.field(name)))
                }
                _ => vec![SymbolicValue::Unknown],
            },
            ("orValue", Some(target), [default]) => {
                let default_value = match (
                    &*operand_values(*default),
                    self.expr(node.with_id(*default)),
                ) {
                    ([SymbolicValue::Constant(value)], _) => Some(value.clone()),
                    (_, Expr::Map(entries)) if entries.is_empty() => Some(json!({})),
                    _ => None,
                };
                let results = operand_values(target)
                    .into_iter()
                    .map(|symbolic| match symbolic {
                        SymbolicValue::Input { path, .. } => SymbolicValue::Input {
                            path,
                            is_optional: false,
                            default: default_value.clone(),
                        },
                        other => other,
                    });
                results.collect()
            }
            ("or", Some(target), [default]) => {
                let mut alternatives = operand_values(target);
                alternatives.extend(operand_values(*default));
                alternatives
            }
            ("value", Some(target), []) => {
                let results = operand_values(target)
                    .into_iter()
                    .map(|symbolic| match symbolic {
                        SymbolicValue::Input { path, .. } => input_value(path),
                        other => other,
                    });
                results.collect()
            }
            ("_+_" | "_-_" | "_*_", None, [left, right]) => {
                let (left, right) = (operand_values(*left), operand_values(*right));
                match folded(function, &left, &right) {
                    Some(value) => vec![SymbolicValue::Constant(value)],
                    None if function == "_+_" => {
                        vec![SymbolicValue::Concat(Rc::new((left, right)))]
                    }
                    None => vec![SymbolicValue::Unknown],
                }
            }
            ("size", Some(of), []) | ("size", None, &[of]) => sizes_of(operand_values(of)),
            ("split", Some(text), [_]) => {
                let texts = operand_values(text)
                    .into_iter()
                    .map(|symbolic| match symbolic {
                        SymbolicValue::Input { path, .. } => SymbolicValue::SplitParts(path),
                        _ => SymbolicValue::Unknown,
                    });
                texts.collect()
            }
            ("dyn" | "string" | "int" | "double", None, &[of])
            | ("lowerAscii" | "trim" | "flatten" | "distinct" | "sort", Some(of), []) => {
                operand_values(of)
            }
            _ => vec![SymbolicValue::Unknown],
        }
    }

    /// Replaces each input with its value if this value is the same in all requests for the kind.
    fn with_constants(&self, alternatives: Vec<SymbolicValue>) -> Vec<SymbolicValue> {
        let constant_or_input = |symbolic| match symbolic {
            SymbolicValue::Input { ref path, .. } => {
                let constant = self.constants.iter().find(|(known, _)| known == path);
                constant.map_or(symbolic, |(_, value)| {
                    SymbolicValue::Constant(value.clone())
                })
            }
            other => other,
        };
        alternatives.into_iter().map(constant_or_input).collect()
    }

    fn index_into(
        &self,
        operands: Vec<SymbolicValue>,
        index: &[SymbolicValue],
    ) -> Vec<SymbolicValue> {
        let step = |path: &FieldPath| match index {
            [SymbolicValue::Constant(Json::String(key))] => path.field(key),
            [SymbolicValue::Constant(Json::Number(n))] => {
                path.element(usize::try_from(n.as_u64()?).ok()?)
            }
            [SymbolicValue::MapKey(map)] if map == path => path.field(ANY_KEY),
            // One entry represents all unknown keys of a map.
            _ if self.is_map(path) => path.field(ANY_KEY),
            _ => None,
        };
        select(operands, step)
    }

    /// Returns the expression of the variable that `node` reads. `None` for other nodes.
    pub(crate) fn variable_root(&self, node: ExprRef) -> Option<ExprRef> {
        let index = self.read_variable(node)?;
        let id = self.ast(index)?.root();
        Some(ExprRef { index, id })
    }

    /// Returns the index of the variable that `node` reads. `None` if `node` is not a selection from `variables`.
    pub(crate) fn read_variable(&self, node: ExprRef) -> Option<usize> {
        let ast = self.ast(node.index)?;
        let is_read = matches!(
            ast.expr(node.id),
            Expr::Select {
                test_only: false,
                ..
            }
        );
        let name = variable(ast, node.id).filter(|_| is_read)?;
        self.variable(name)
    }

    /// Returns the index of the variable that `node` reads or tests. If the evaluation of the variable fails, the node
    /// fails too.
    pub(crate) fn evaluated_variable(&self, node: ExprRef) -> Option<usize> {
        let read = self.read_variable(node);
        read.or_else(|| self.tested_variable(node))
    }

    /// Returns the index of the variable that `node` tests, as in `has(variables.x)` and `variables.?x`. The test
    /// evaluates the variable, so it fails if the variable fails. If the variable does not fail, the test is true.
    ///
    /// Source: apiserver `pkg/cel/lazy/lazy.go`, `MapValue.Find`; cel-go `interpreter/attributes.go`, `refQualify`.
    pub(crate) fn tested_variable(&self, node: ExprRef) -> Option<usize> {
        let ast = self.ast(node.index)?;
        match ast.expr(node.id) {
            Expr::Select {
                test_only: true, ..
            } => self.variable(variable(ast, node.id)?),
            Expr::Call { function, args, .. } if &**function == "_?._" => match &**args {
                [operand, name] => match (ast.expr(*operand), ast.expr(*name)) {
                    (Expr::Ident(root), Expr::Literal(Literal::String(name)))
                        if &**root == "variables" =>
                    {
                        self.variable(name)
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => None,
        }
    }
}

/// Returns the root variable that an identifier denotes. `None` for `variables`, `authorizer` and identifiers that are
/// not inputs.
fn root_of(name: &str) -> Option<Root> {
    Some(match Input::from_name(name)? {
        Input::Object => Root::Object,
        Input::OldObject => Root::OldObject,
        Input::Params => Root::Params,
        Input::Request => Root::Request,
        Input::NamespaceObject => Root::Namespace,
        Input::Authorizer | Input::Variables => return None,
    })
}

/// Returns the result of an arithmetic operation on two constant integers.
fn folded(function: &str, left: &[SymbolicValue], right: &[SymbolicValue]) -> Option<Json> {
    let number = |values: &[SymbolicValue]| match values {
        [SymbolicValue::Constant(value)] => value.as_i64(),
        _ => None,
    };
    let (left, right) = (number(left)?, number(right)?);
    let result = match function {
        "_+_" => left.checked_add(right),
        "_-_" => left.checked_sub(right),
        "_*_" => left.checked_mul(right),
        _ => None,
    };
    result.map(Json::from)
}
