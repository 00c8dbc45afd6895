//! The abstract syntax tree: an arena of expressions.
//!
//! One tree serves all passes; what a pass learns is kept in side tables indexed by [`ExprId`]. Macros
//! are expanded already, so that the tree holds cel-go's comprehensions.
//!
//! Source: cel-go `common/ast/expr.go`, `common/ast/ast.go`.

use std::sync::Arc;

use super::interrupt::checkpoint;

/// The expressions that are added in the time of one checkpoint.
const NODES_OF_CHECKPOINT: usize = 16;

/// The index of an expression in its [`Ast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

impl ExprId {
    /// The index into a side table.
    #[must_use]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

/// A literal value.
#[derive(Clone, Debug, PartialEq)]
pub enum Literal {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// An `int`.
    Int(i64),
    /// A `uint`.
    Uint(u64),
    /// A `double`.
    Double(f64),
    /// A `string`.
    String(Arc<str>),
    /// A `bytes`.
    Bytes(Arc<[u8]>),
}

/// An expression.
#[derive(Clone, Debug, PartialEq)]
pub enum Expr {
    /// Nothing: a place in the arena that is a map entry or a struct field, or an expression that
    /// could not be parsed.
    Unspecified,
    /// A literal.
    Literal(Literal),
    /// A name; with a leading dot it is absolute.
    Ident(Arc<str>),
    /// A field selection, or a test whether the field is there.
    Select {
        /// Expression that the field is selected from.
        operand: ExprId,
        /// The name of the field, as written.
        field: Arc<str>,
        /// True for `has(operand.field)`.
        test_only: bool,
    },
    /// A call; operators are calls of functions such as `_+_`.
    Call {
        /// The name of the function.
        function: Arc<str>,
        /// The receiver.
        target: Option<ExprId>,
        /// The arguments.
        args: Box<[ExprId]>,
    },
    /// A list literal.
    List {
        /// The elements.
        elements: Box<[ExprId]>,
        /// The indices of the elements written with `?`.
        optional_indices: Box<[u32]>,
    },
    /// A map literal.
    Map(Box<[MapEntry]>),
    /// An object literal.
    Struct {
        /// The name of the type, as written.
        type_name: Arc<str>,
        /// The fields.
        fields: Box<[StructField]>,
    },
    /// A fold over a list or map.
    Comprehension(Box<Comprehension>),
}

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The entry itself, for its place.
    pub id: ExprId,
    /// The key.
    pub key: ExprId,
    /// The value.
    pub value: ExprId,
    /// True if it is written with `?`.
    pub optional: bool,
}

/// A field of an object literal.
#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    /// The field itself, for its place.
    pub id: ExprId,
    /// The name of the field.
    pub field: Arc<str>,
    /// The value.
    pub value: ExprId,
    /// True if it is written with `?`.
    pub optional: bool,
}

/// A fold over a list or map, which is what the macros make.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// List or map that is iterated over.
    pub iter_range: ExprId,
    /// The variable of the element, key or index.
    pub iter_var: Arc<str>,
    /// The variable of the element or value, in two-variable comprehensions.
    pub iter_var2: Option<Arc<str>>,
    /// The variable of the accumulator.
    pub accu_var: Arc<str>,
    /// The accumulator before the first step.
    pub accu_init: ExprId,
    /// Condition to continue with the next element.
    pub loop_condition: ExprId,
    /// The accumulator after a step.
    pub loop_step: ExprId,
    /// The result.
    pub result: ExprId,
}

/// Reports whether the element `n` is one of those written with `?`, whose indices are sorted.
#[must_use]
pub fn is_optional(optional_indices: &[u32], n: usize) -> bool {
    u32::try_from(n).is_ok_and(|n| optional_indices.binary_search(&n).is_ok())
}

static UNSPECIFIED: Expr = Expr::Unspecified;

/// A call of a macro that was expanded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroCall {
    /// The name of the macro.
    pub function: Arc<str>,
    /// The number of arguments, without the receiver.
    pub n_args: usize,
    /// The expression that it was expanded to.
    pub at: ExprId,
}

/// An expression tree with the place of each node.
#[derive(Clone, Debug)]
pub struct Ast {
    exprs: Vec<Expr>,
    offsets: Vec<u32>,
    macros: Vec<MacroCall>,
    root: ExprId,
    depth: u32,
}

/// Trees are equal if their nodes are; two macros may expand to the same.
impl PartialEq for Ast {
    fn eq(&self, other: &Self) -> bool {
        let Self {
            exprs,
            offsets,
            macros: _,
            root,
            depth,
        } = self;
        (exprs, offsets, root, depth) == (&other.exprs, &other.offsets, &other.root, &other.depth)
    }
}

impl Ast {
    /// The macros that were expanded, in the order of their ends.
    #[must_use]
    pub fn macros(&self) -> &[MacroCall] {
        &self.macros
    }

    /// The root of the tree.
    #[must_use]
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// The expression `id`.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.index()).unwrap_or(&UNSPECIFIED)
    }

    /// The function and the arguments of `id` where it is a call without a target, as those of operators are.
    #[must_use]
    pub fn global_call(&self, id: ExprId) -> Option<(&str, &[ExprId])> {
        match self.expr(id) {
            Expr::Call {
                function,
                target: None,
                args,
            } => Some((function, args)),
            _ => None,
        }
    }

    /// The place of `id`: an offset in code points.
    #[must_use]
    pub fn offset(&self, id: ExprId) -> u32 {
        self.offsets.get(id.index()).copied().unwrap_or(0)
    }

    /// The length of a side table that is indexed by [`ExprId`].
    #[must_use]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Reports whether the tree has no nodes, which a parsed one never is.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// The greatest number of nodes from the root to a leaf.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// All nodes with their ids, in the order in which they were made.
    pub fn iter(&self) -> impl Iterator<Item = (ExprId, &Expr)> {
        self.exprs
            .iter()
            .enumerate()
            .map(|(n, expr)| (ExprId(to_u32(n)), expr))
    }

    /// The expression with the index `n`.
    #[must_use]
    pub fn id(&self, n: usize) -> Option<ExprId> {
        (n < self.exprs.len()).then(|| ExprId(to_u32(n)))
    }

    /// The dotted name that `id` spells, if it is made of names and selections only.
    ///
    /// Source: cel-go `common/containers/container.go`, `ToQualifiedName`.
    #[must_use]
    pub fn qualified_name(&self, id: ExprId) -> Option<String> {
        match self.expr(id) {
            Expr::Ident(name) => Some(name.to_string()),
            Expr::Select {
                operand,
                field,
                test_only: false,
            } => {
                let mut name = self.qualified_name(*operand)?;
                name.push('.');
                name.push_str(field);
                Some(name)
            }
            _ => None,
        }
    }

    /// The direct parts of an expression, in the order of evaluation.
    pub fn for_each_child(&self, id: ExprId, mut visit: impl FnMut(ExprId)) {
        match self.expr(id) {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => {}
            Expr::Select { operand, .. } => visit(*operand),
            Expr::Call { target, args, .. } => {
                target.iter().chain(args).copied().for_each(visit);
            }
            Expr::List { elements, .. } => elements.iter().copied().for_each(visit),
            Expr::Map(entries) => {
                for entry in entries {
                    visit(entry.key);
                    visit(entry.value);
                }
            }
            Expr::Struct { fields, .. } => fields.iter().map(|f| f.value).for_each(visit),
            Expr::Comprehension(fold) => {
                for part in [
                    fold.iter_range,
                    fold.accu_init,
                    fold.loop_condition,
                    fold.loop_step,
                    fold.result,
                ] {
                    visit(part);
                }
            }
        }
    }

    /// All expressions below `id` and itself, parents before their parts.
    #[must_use]
    pub fn descendants(&self, id: ExprId) -> Vec<ExprId> {
        let mut found = Vec::new();
        let mut pending = vec![id];
        while let Some(next) = pending.pop() {
            found.push(next);
            let n_before = pending.len();
            self.for_each_child(next, |child| pending.push(child));
            if let Some(added) = pending.get_mut(n_before..) {
                added.reverse();
            }
        }
        found
    }
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Builds an [`Ast`] from its leaves up.
#[derive(Debug, Default)]
pub struct AstBuilder {
    exprs: Vec<Expr>,
    offsets: Vec<u32>,
    depths: Vec<u32>,
    macros: Vec<MacroCall>,
}

impl AstBuilder {
    /// A builder with room for `n` nodes.
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        Self {
            exprs: Vec::with_capacity(n),
            offsets: Vec::with_capacity(n),
            depths: Vec::with_capacity(n),
            macros: Vec::new(),
        }
    }

    /// Adds `expr` at the place `offset`. Its parts must have been added before.
    pub fn add(&mut self, offset: u32, expr: Expr) -> ExprId {
        if self.exprs.len().is_multiple_of(NODES_OF_CHECKPOINT) {
            checkpoint();
        }
        let id = ExprId(to_u32(self.exprs.len()));
        let depth = self.depth_of(&expr);
        self.exprs.push(expr);
        self.offsets.push(offset);
        self.depths.push(depth);
        id
    }

    /// Records that a macro was expanded.
    pub fn add_macro(&mut self, call: MacroCall) {
        self.macros.push(call);
    }

    /// The expression `id`.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.index()).unwrap_or(&UNSPECIFIED)
    }

    /// The place of `id`.
    #[must_use]
    pub fn offset(&self, id: ExprId) -> u32 {
        self.offsets.get(id.index()).copied().unwrap_or(0)
    }

    /// How many nodes there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Reports whether there are no nodes yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// The tree with the root `root`.
    #[must_use]
    pub fn build(self, root: ExprId) -> Ast {
        let depth = self.depths.get(root.index()).copied().unwrap_or(0);
        Ast {
            exprs: self.exprs,
            offsets: self.offsets,
            macros: self.macros,
            root,
            depth,
        }
    }

    fn depth_of(&self, expr: &Expr) -> u32 {
        let depth = |id: &ExprId| self.depths.get(id.index()).copied().unwrap_or(0);
        let deepest = match expr {
            Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => 0,
            Expr::Select { operand, .. } => depth(operand),
            Expr::Call { target, args, .. } => {
                target.iter().chain(args).map(depth).max().unwrap_or(0)
            }
            Expr::List { elements, .. } => elements.iter().map(depth).max().unwrap_or(0),
            Expr::Map(entries) => entries
                .iter()
                .map(|e| depth(&e.key).max(depth(&e.value)))
                .max()
                .unwrap_or(0),
            Expr::Struct { fields, .. } => {
                fields.iter().map(|f| depth(&f.value)).max().unwrap_or(0)
            }
            Expr::Comprehension(fold) => [
                fold.iter_range,
                fold.accu_init,
                fold.loop_condition,
                fold.loop_step,
                fold.result,
            ]
            .iter()
            .map(depth)
            .max()
            .unwrap_or(0),
        };
        deepest.saturating_add(1)
    }
}
