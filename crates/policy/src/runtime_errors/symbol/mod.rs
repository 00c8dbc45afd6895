//! Symbols: the part of a request that an expression stands for, as far as that can be read off it.

mod form;
mod rounds;

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

use serde_json::{Value as Json, json};

use super::decided::decided;
use super::goals::Way;
use super::shape::{Shape, Step};
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::reads::{Input, variable};
use cel::ast::{Ast, Expr, ExprId, Literal};
pub(super) use form::{Form, form};
use kubernetes::validity::{FieldPath, Root, Segment};

/// The most parts that one expression may stand for.
const MAX_ALTERNATIVES: usize = 4;

/// The longest list that is read where it is written out.
const MAX_ELEMENTS: usize = 64;

/// How deep expressions are read, variables included.
const MAX_DEPTH: usize = 120;

/// The key that an entry of a map has that an expression iterates over.
pub(super) const ANY_KEY: &str = "example";

/// An expression of a policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Place {
    /// The index among the policy's expressions.
    pub(super) n: usize,
    pub(super) id: ExprId,
}

/// The part of a request that an expression stands for.
#[derive(Clone, Debug)]
pub(super) enum Symbol {
    /// The value at a path.
    At {
        path: FieldPath,
        /// True of an optional that holds it, if it is there.
        is_optional: bool,
        /// The value that stands in for it.
        or: Option<Json>,
    },
    /// A value.
    Value(Json),
    /// A list of these elements, or of some of them.
    Elements(Rc<Vec<Symbol>>),
    /// The sum of two, be they lists or not.
    Sum(Rc<(Vec<Symbol>, Vec<Symbol>)>),
    /// The list that a macro makes.
    Collected(Place, Scope),
    /// A key of the map at the path.
    Key(FieldPath),
    /// The number of elements or entries at the path.
    Size(FieldPath),
    /// The parts of the text at the path.
    Parts(FieldPath),
    Unknown,
}

/// The names that macros have bound, innermost first.
#[derive(Clone, Debug, Default)]
pub(super) struct Scope(Option<Rc<Binding>>);

#[derive(Debug)]
struct Binding {
    name: Arc<str>,
    symbols: Vec<Symbol>,
    outer: Scope,
}

impl Scope {
    pub(super) fn with(&self, name: &Arc<str>, symbols: Vec<Symbol>) -> Self {
        Self(Some(Rc::new(Binding {
            name: Arc::clone(name),
            symbols,
            outer: self.clone(),
        })))
    }

    /// Reports whether no macro has bound a name.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    fn find(&self, name: &str) -> Option<&[Symbol]> {
        let mut scope = self.0.as_deref();
        while let Some(binding) = scope {
            if *binding.name == *name {
                return Some(&binding.symbols);
            }
            scope = binding.outer.0.as_deref();
        }
        None
    }
}

/// A goal: something that has to be so for an evaluation to go on to a place.
#[derive(Clone, Debug)]
pub(super) enum Goal {
    /// The expression is `true`, or `false`.
    Is(Place, Scope, bool),
    /// The list or map at the path is not empty.
    NotEmpty(FieldPath),
}

/// The ways for an expression to be true or false.
type KnownWays = HashMap<(Place, bool), Rc<[Way]>>;

/// Types of the roots for one kind, and the expressions.
pub(super) struct Reader<'a> {
    pub(super) policy: &'a CompiledPolicy,
    pub(super) roots: Vec<(Root, Shape<'a>)>,
    /// The last variable of each name.
    variables: HashMap<&'a str, usize>,
    /// The values that are the same in all requests of the kind.
    constants: Vec<(FieldPath, Json)>,
    /// The symbols of expressions outside of macros, as far as they were asked for.
    known: RefCell<HashMap<Place, Vec<Symbol>>>,
    /// The ways for expressions outside of macros to be true or false, as far as they were asked for.
    pub(super) ways: RefCell<KnownWays>,
    /// The steps that may still be taken.
    left: Cell<u32>,
}

impl<'a> Reader<'a> {
    /// A reader of the expressions of `policy` for one kind, that may take `max_steps`.
    pub(super) fn new(
        policy: &'a CompiledPolicy,
        roots: Vec<(Root, Shape<'a>)>,
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
            known: RefCell::default(),
            ways: RefCell::default(),
            left: Cell::new(max_steps),
        }
    }

    /// Takes a step; `false` where none is left.
    pub(super) fn take(&self) -> bool {
        let left = self.left.get();
        self.left.set(left.saturating_sub(1));
        left > 0
    }

    /// Reports whether no step is left.
    pub(super) fn is_used_up(&self) -> bool {
        self.left.get() == 0
    }

    pub(super) fn ast(&self, n: usize) -> Option<&'a Ast> {
        let expression = self.policy.expressions().get(n)?;
        expression.parsed().ok().map(|ast| &**ast)
    }

    pub(super) fn expr(&self, place: Place) -> &'a Expr {
        static NOTHING: Expr = Expr::Unspecified;
        self.ast(place.n).map_or(&NOTHING, |ast| ast.expr(place.id))
    }

    /// The index of the last variable `name`.
    pub(super) fn variable(&self, name: &str) -> Option<usize> {
        self.variables.get(name).copied()
    }

    /// The type at `path`.
    pub(super) fn shape(&self, path: &FieldPath) -> Option<Shape<'a>> {
        let (_, root) = self.roots.iter().find(|(root, _)| *root == path.root)?;
        let mut shape = root.clone();
        for segment in &path.segments {
            shape = match shape.step(segment) {
                Step::Into(shape) => shape,
                Step::Open => Shape::open(),
                Step::Nothing => return None,
            };
        }
        Some(shape)
    }

    /// Reports whether nothing may be at `path` in a valid object that has what is around it.
    pub(super) fn may_be_absent(&self, path: &FieldPath) -> bool {
        let (Some(parent), Some(last)) = (path.parent(), path.segments.last()) else {
            return true;
        };
        // Each namespace has the label of its name, by the API server's defaults.
        if matches!(last, Segment::Field(key) if &**key == "kubernetes.io/metadata.name") {
            return false;
        }
        // Of params without a schema nothing is known.
        let root = self.shape(&FieldPath::new(path.root));
        if root.is_none_or(|root| root.is_unknown()) {
            return false;
        }
        let around = self.shape(&parent);
        around.is_some_and(|around| {
            !matches!(around.step(last), Step::Nothing) && !around.is_certain(&parent, last)
        })
    }

    fn is_map(&self, path: &FieldPath) -> bool {
        self.shape(path).is_some_and(|shape| shape.is_map())
    }

    /// The parts of a request that the expression at `place` stands for.
    pub(super) fn symbols(&self, place: Place, scope: &Scope) -> Vec<Symbol> {
        self.symbols_at(place, scope, 0)
    }

    fn symbols_at(&self, place: Place, scope: &Scope, depth: usize) -> Vec<Symbol> {
        if scope.0.is_some() {
            return self.read(place, scope, depth);
        }
        if let Some(known) = self.known.borrow().get(&place) {
            return known.clone();
        }
        let symbols = self.read(place, scope, depth);
        self.known.borrow_mut().insert(place, symbols.clone());
        symbols
    }

    fn read(&self, place: Place, scope: &Scope, depth: usize) -> Vec<Symbol> {
        if depth > MAX_DEPTH || !self.take() {
            return vec![Symbol::Unknown];
        }
        let below = |id| self.symbols_at(Place { n: place.n, id }, scope, depth.saturating_add(1));
        let mut found = match self.expr(place) {
            Expr::Literal(literal) => vec![value(literal)],
            Expr::Ident(name) => match scope.find(name) {
                Some(symbols) => symbols.to_vec(),
                None => {
                    vec![root_of(name).map_or(Symbol::Unknown, |root| at(FieldPath::new(root)))]
                }
            },
            Expr::Select {
                operand,
                field,
                test_only: false,
            } => {
                if let Some(n) = self.read_variable(place) {
                    let root = self.ast(n).map(Ast::root);
                    return root.map_or_else(Vec::new, |id| {
                        self.symbols_at(Place { n, id }, &Scope::default(), depth.saturating_add(1))
                    });
                }
                let operands = below(*operand);
                self.with_constants(selected(operands, |path| path.field(field)))
            }
            Expr::List { elements, .. } if elements.len() <= MAX_ELEMENTS => {
                let all = elements.iter().flat_map(|id| below(*id));
                vec![Symbol::Elements(Rc::new(all.collect()))]
            }
            Expr::Comprehension(fold) => {
                return match form(self, place.n, fold) {
                    Form::Bind => {
                        let bound = below(fold.accu_init);
                        let scope = scope.with(&fold.accu_var, bound);
                        let result = Place {
                            n: place.n,
                            id: fold.result,
                        };
                        self.symbols_at(result, &scope, depth.saturating_add(1))
                    }
                    Form::Collect(..) => vec![Symbol::Collected(place, scope.clone())],
                    _ => vec![Symbol::Unknown],
                };
            }
            Expr::Call {
                function,
                target: None,
                args,
            } if **function == *"_?_:_" => {
                let [condition, truthy, falsy] = &**args else {
                    return vec![Symbol::Unknown];
                };
                let condition = Place {
                    n: place.n,
                    id: *condition,
                };
                match decided(self, condition, scope) {
                    Some(true) => below(*truthy),
                    Some(false) => below(*falsy),
                    None => {
                        let mut found = below(*truthy);
                        found.extend(below(*falsy));
                        found
                    }
                }
            }
            Expr::Call {
                function,
                target,
                args,
            } => self.call(function, *target, args, &below),
            _ => vec![Symbol::Unknown],
        };
        found.truncate(MAX_ALTERNATIVES);
        found
    }

    fn call(
        &self,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
        below: &dyn Fn(ExprId) -> Vec<Symbol>,
    ) -> Vec<Symbol> {
        let optional = |symbols: Vec<Symbol>| {
            let made = symbols.into_iter().map(|symbol| match symbol {
                Symbol::At { path, or, .. } => Symbol::At {
                    path,
                    is_optional: true,
                    or,
                },
                other => other,
            });
            made.collect()
        };
        match (function, target, args) {
            ("_[_]", None, [operand, index]) => self.indexed(below(*operand), &below(*index)),
            ("_[?_]", None, [operand, index]) => {
                optional(self.indexed(below(*operand), &below(*index)))
            }
            ("_?._", None, [operand, field]) => match &*below(*field) {
                [Symbol::Value(Json::String(name))] => {
                    optional(selected(below(*operand), |path| path.field(name)))
                }
                _ => vec![Symbol::Unknown],
            },
            ("orValue", Some(target), [or]) => {
                let stand_in = below(*or);
                let stand_in = match &*stand_in {
                    [Symbol::Value(value)] => Some(value.clone()),
                    _ => None,
                };
                let made = below(target).into_iter().map(|symbol| match symbol {
                    Symbol::At { path, .. } => Symbol::At {
                        path,
                        is_optional: false,
                        or: stand_in.clone(),
                    },
                    other => other,
                });
                made.collect()
            }
            ("or", Some(target), [or]) => {
                let mut found = below(target);
                found.extend(below(*or));
                found
            }
            ("value", Some(target), []) => {
                let made = below(target).into_iter().map(|symbol| match symbol {
                    Symbol::At { path, .. } => at(path),
                    other => other,
                });
                made.collect()
            }
            ("_+_", None, [left, right]) => {
                vec![Symbol::Sum(Rc::new((below(*left), below(*right))))]
            }
            ("size", Some(of), []) | ("size", None, &[of]) => sized(below(of)),
            ("split", Some(text), [_]) => {
                let texts = below(text).into_iter().map(|symbol| match symbol {
                    Symbol::At { path, .. } => Symbol::Parts(path),
                    _ => Symbol::Unknown,
                });
                texts.collect()
            }
            ("dyn" | "string" | "int" | "double", None, &[of])
            | ("lowerAscii" | "trim" | "flatten" | "distinct" | "sort", Some(of), []) => below(of),
            _ => vec![Symbol::Unknown],
        }
    }

    /// `symbols`, with the values of what is the same in all requests.
    fn with_constants(&self, symbols: Vec<Symbol>) -> Vec<Symbol> {
        let known = |symbol| match symbol {
            Symbol::At { ref path, .. } => {
                let constant = self.constants.iter().find(|(known, _)| known == path);
                constant.map_or(symbol, |(_, value)| Symbol::Value(value.clone()))
            }
            other => other,
        };
        symbols.into_iter().map(known).collect()
    }

    fn indexed(&self, operands: Vec<Symbol>, index: &[Symbol]) -> Vec<Symbol> {
        let step = |path: &FieldPath| match index {
            [Symbol::Value(Json::String(key))] => path.field(key),
            [Symbol::Value(Json::Number(n))] => path.element(usize::try_from(n.as_u64()?).ok()?),
            [Symbol::Key(map)] if map == path => path.field(ANY_KEY),
            // A key that is not known before.
            _ if self.is_map(path) => path.field(ANY_KEY),
            _ => None,
        };
        selected(operands, step)
    }

    /// The variable that the selection at `place` reads.
    pub(super) fn read_variable(&self, place: Place) -> Option<usize> {
        let ast = self.ast(place.n)?;
        let is_read = matches!(
            ast.expr(place.id),
            Expr::Select {
                test_only: false,
                ..
            }
        );
        let name = variable(ast, place.id).filter(|_| is_read)?;
        self.variable(name)
    }
}

/// Returns the root that an identifier denotes. `None` if it holds no data of a request.
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

/// The value at `path`.
pub(super) fn at(path: FieldPath) -> Symbol {
    Symbol::At {
        path,
        is_optional: false,
        or: None,
    }
}

fn selected(operands: Vec<Symbol>, step: impl Fn(&FieldPath) -> Option<FieldPath>) -> Vec<Symbol> {
    let symbols = operands.into_iter().map(|operand| match operand {
        Symbol::At {
            path, is_optional, ..
        } => step(&path).map_or(Symbol::Unknown, |path| Symbol::At {
            path,
            is_optional,
            or: None,
        }),
        _ => Symbol::Unknown,
    });
    symbols.collect()
}

fn sized(of: Vec<Symbol>) -> Vec<Symbol> {
    let sizes = of.into_iter().map(|symbol| match symbol {
        Symbol::At { path, .. } => Symbol::Size(path),
        _ => Symbol::Unknown,
    });
    sizes.collect()
}

fn value(literal: &Literal) -> Symbol {
    Symbol::Value(match literal {
        Literal::Null => Json::Null,
        Literal::Bool(value) => json!(value),
        Literal::Int(value) => json!(value),
        Literal::Uint(value) => json!(value),
        Literal::Double(value) => json!(value),
        Literal::String(text) => json!(&**text),
        Literal::Bytes(_) => return Symbol::Unknown,
    })
}
