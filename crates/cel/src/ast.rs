//! The abstract syntax tree, an arena of expressions.
//!
//! The passes share one tree. They store their results in side tables, which are indexed by [`ExprId`]. Macro calls
//! are already expanded, as in cel-go: `l.all(x, p)` is a comprehension.
//!
//! Source: cel-go `common/ast/expr.go`, `common/ast/ast.go`.

use std::sync::Arc;

use super::interrupt::checkpoint;

/// Number of nodes between two calls of [`checkpoint`].
const NODES_OF_CHECKPOINT: usize = 16;

/// Index of an expression in its [`Ast`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(u32);

impl ExprId {
    /// Returns the index of the expression in side tables.
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
    /// A placeholder without content. It reserves the id of a map entry or a field, or replaces an expression that
    /// could not be parsed.
    Unspecified,
    /// A literal.
    Literal(Literal),
    /// An identifier. A leading dot makes the name absolute.
    Ident(Arc<str>),
    /// A field selection, or a presence test of a field.
    Select {
        /// The expression from which the field is selected.
        operand: ExprId,
        /// The field name, as it appears in the source.
        field: Arc<str>,
        /// True for `has(operand.field)`.
        test_only: bool,
    },
    /// A call. Operators are calls of functions such as `_+_`.
    Call {
        /// The function name.
        function: Arc<str>,
        /// The receiver. `None` for a global call.
        target: Option<ExprId>,
        /// The arguments.
        args: Box<[ExprId]>,
    },
    /// A list literal.
    List {
        /// The elements.
        elements: Box<[ExprId]>,
        /// Indices of the optional elements (`?`).
        optional_indices: Box<[u32]>,
    },
    /// A map literal.
    Map(Box<[MapEntry]>),
    /// An object literal.
    Struct {
        /// The type name, as it appears in the source.
        type_name: Arc<str>,
        /// The fields.
        fields: Box<[StructField]>,
    },
    /// A comprehension over a list or map.
    Comprehension(Box<Comprehension>),
}

/// An entry of a map literal.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The id of the entry itself, under which its location is stored.
    pub id: ExprId,
    /// The key.
    pub key: ExprId,
    /// The value.
    pub value: ExprId,
    /// True if the entry is optional (`?`).
    pub optional: bool,
}

/// A field of an object literal.
#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    /// The id of the field itself, under which its location is stored.
    pub id: ExprId,
    /// The field name.
    pub field: Arc<str>,
    /// The value.
    pub value: ExprId,
    /// True if the field is optional (`?`).
    pub optional: bool,
}

/// A comprehension: a fold over a list or map. Macros such as `all` and `map` expand to
/// comprehensions.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map to iterate over.
    pub iter_range: ExprId,
    /// The first iteration variable. In a one-variable comprehension, its values are list elements or map keys. In a
    /// two-variable comprehension, its values are list indices or map keys.
    pub iter_var: Arc<str>,
    /// The second iteration variable, whose values are the list elements or map values. `None` in a one-variable
    /// comprehension.
    pub iter_var2: Option<Arc<str>>,
    /// The accumulator variable.
    pub accu_var: Arc<str>,
    /// The initial value of the accumulator.
    pub accu_init: ExprId,
    /// The condition for continuing with the next element.
    pub loop_condition: ExprId,
    /// The next value of the accumulator.
    pub loop_step: ExprId,
    /// The result of the comprehension.
    pub result: ExprId,
}

/// Returns true if `optional_indices`, which must be sorted, contains `n`.
#[must_use]
pub fn is_optional(optional_indices: &[u32], n: usize) -> bool {
    u32::try_from(n).is_ok_and(|n| optional_indices.binary_search(&n).is_ok())
}

static UNSPECIFIED: Expr = Expr::Unspecified;

/// An expanded macro call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MacroCall {
    /// The macro name.
    pub function: Arc<str>,
    /// The number of arguments, without the receiver.
    pub n_args: usize,
    /// The expression that replaced the call.
    pub at: ExprId,
}

/// An expression tree with the location of each node.
#[derive(Clone, Debug)]
pub struct Ast {
    exprs: Vec<Expr>,
    offsets: Vec<u32>,
    macros: Vec<MacroCall>,
    root: ExprId,
    depth: u32,
}

/// Compares expressions and locations, but not the expanded macro calls.
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
    /// Returns the expanded macro calls, ordered by the positions where the calls end in the source.
    #[must_use]
    pub fn macros(&self) -> &[MacroCall] {
        &self.macros
    }

    /// Returns the root of the tree.
    #[must_use]
    pub fn root(&self) -> ExprId {
        self.root
    }

    /// Returns the expression `id`.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.index()).unwrap_or(&UNSPECIFIED)
    }

    /// Returns true if the comprehension only binds a name, such as the expansion of `optMap`.
    pub(crate) fn is_bind(&self, fold: &Comprehension) -> bool {
        matches!(self.expr(fold.iter_range), Expr::List { elements, .. } if elements.is_empty())
            && *self.expr(fold.loop_condition) == Expr::Literal(Literal::Bool(false))
    }

    /// Returns the function and the arguments of `id` if it is a call without a receiver, such as an operator. `None`
    /// otherwise.
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

    /// Returns the location of `id` as an offset in code points.
    #[must_use]
    pub fn offset(&self, id: ExprId) -> u32 {
        self.offsets.get(id.index()).copied().unwrap_or(0)
    }

    /// Returns the number of nodes, which is the length of a side table.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Returns true if the tree has no nodes. A parsed tree always has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// Returns the maximum number of nodes on a path from the root to a leaf.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.depth
    }

    /// Returns the depth of nested loops, that is, of comprehensions that iterate over a list or map. Returns 0 if
    /// there are no loops.
    #[must_use]
    pub fn loop_depth(&self) -> u32 {
        let mut depths = vec![0_u32; self.exprs.len()];
        for (id, expr) in self.iter() {
            let of = |id: ExprId| depths.get(id.index()).copied().unwrap_or(0);
            let mut depth = greatest_of_children(expr, of);
            // Macros such as `optMap` iterate over an empty list to bind a variable.
            if let Expr::Comprehension(fold) = expr
                && !matches!(self.expr(fold.iter_range), Expr::List { elements, .. } if elements.is_empty())
            {
                let inner = of(fold.loop_condition).max(of(fold.loop_step));
                depth = depth.max(inner.saturating_add(1));
            }
            if let Some(slot) = depths.get_mut(id.index()) {
                *slot = depth;
            }
        }
        depths.get(self.root.index()).copied().unwrap_or(0)
    }

    /// Iterates over all nodes with their ids, in order of creation.
    pub fn iter(&self) -> impl Iterator<Item = (ExprId, &Expr)> {
        self.exprs
            .iter()
            .enumerate()
            .map(|(n, expr)| (ExprId(to_u32(n)), expr))
    }

    /// Returns the id with the index `n`. `None` if it is out of range.
    #[must_use]
    pub fn id(&self, n: usize) -> Option<ExprId> {
        (n < self.exprs.len()).then(|| ExprId(to_u32(n)))
    }

    /// Returns the qualified name, such as `a.b.c`, if `id` consists of an identifier and selections only. `None`
    /// otherwise.
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

    /// Calls `visit` with each direct subexpression, in order of evaluation.
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

    /// Returns `id` and all its descendants, parents before their children.
    #[must_use]
    pub fn descendants(&self, id: ExprId) -> Vec<ExprId> {
        let mut descendants = Vec::new();
        let mut pending = vec![id];
        while let Some(next) = pending.pop() {
            descendants.push(next);
            let n_before = pending.len();
            self.for_each_child(next, |child| pending.push(child));
            if let Some(added) = pending.get_mut(n_before..) {
                added.reverse();
            }
        }
        descendants
    }
}

fn to_u32(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

/// Builds an [`Ast`] bottom-up.
#[derive(Debug, Default)]
pub struct AstBuilder {
    exprs: Vec<Expr>,
    offsets: Vec<u32>,
    depths: Vec<u32>,
    macros: Vec<MacroCall>,
}

impl AstBuilder {
    /// Creates a builder with capacity for `n` nodes.
    #[must_use]
    pub fn with_capacity(n: usize) -> Self {
        Self {
            exprs: Vec::with_capacity(n),
            offsets: Vec::with_capacity(n),
            depths: Vec::with_capacity(n),
            macros: Vec::new(),
        }
    }

    /// Adds `expr` at the location `offset`. Its subexpressions must already be present.
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

    /// Records an expanded macro call.
    pub fn add_macro(&mut self, call: MacroCall) {
        self.macros.push(call);
    }

    /// Returns the expression `id`.
    #[must_use]
    pub fn expr(&self, id: ExprId) -> &Expr {
        self.exprs.get(id.index()).unwrap_or(&UNSPECIFIED)
    }

    /// Returns the location of `id` as an offset in code points.
    #[must_use]
    pub fn offset(&self, id: ExprId) -> u32 {
        self.offsets.get(id.index()).copied().unwrap_or(0)
    }

    /// Returns the number of nodes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.exprs.len()
    }

    /// Returns true if there are no nodes yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.exprs.is_empty()
    }

    /// Completes the tree with the given root.
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
        let deepest =
            greatest_of_children(expr, |id| self.depths.get(id.index()).copied().unwrap_or(0));
        deepest.saturating_add(1)
    }
}

fn greatest_of_children(expr: &Expr, of: impl Fn(ExprId) -> u32) -> u32 {
    let of = |id: &ExprId| of(*id);
    let greatest = match expr {
        Expr::Unspecified | Expr::Literal(_) | Expr::Ident(_) => None,
        Expr::Select { operand, .. } => Some(of(operand)),
        Expr::Call { target, args, .. } => target.iter().chain(args).map(of).max(),
        Expr::List { elements, .. } => elements.iter().map(of).max(),
        Expr::Map(entries) => {
            let entries = entries.iter();
            entries
                .map(|entry| of(&entry.key).max(of(&entry.value)))
                .max()
        }
        Expr::Struct { fields, .. } => fields.iter().map(|field| of(&field.value)).max(),
        Expr::Comprehension(fold) => [
            fold.iter_range,
            fold.accu_init,
            fold.loop_condition,
            fold.loop_step,
            fold.result,
        ]
        .iter()
        .map(of)
        .max(),
    };
    greatest.unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::syntax::parse;

    #[test]
    fn loop_depth_counts_nested_loops() {
        let depth = |text: &str| parse(text).0.unwrap().loop_depth();
        assert_eq!(depth("a == 1"), 0);
        assert_eq!(depth("a.all(x, x) && b.exists(y, y)"), 1);
        assert_eq!(depth("a.filter(x, x).all(y, y)"), 1);
        assert_eq!(depth("a.all(x, x.all(y, b.exists(z, z == y)))"), 3);
    }

    #[test]
    fn trees_with_equal_nodes_and_offsets_are_equal() {
        let ast = |text: &str| parse(text).0.unwrap();
        assert_eq!(ast("a + b"), ast("a + b"));
        assert_eq!(ast("[1].map(x, x)"), ast("[1].map(x, x)"));
        for other in ["a + c", "a  + b", "a - b", "(a + b)", "a + b + c", "a"] {
            assert_ne!(ast("a + b"), ast(other), "{other}");
        }
        assert!(!ast("a").is_empty());
    }
}
