//! Determines the inputs, variables and fields that an expression reads.
//!
//! All callers share these rules:
//!
//! - An identifier, with or without a leading dot, denotes an input. It denotes a macro variable instead if a macro
//!   declares this name.
//! - `.a`, `.?a`, `['a']` and `[?'a']` all select the field `a`.
//! - `dyn(x)` reads the same as `x`.
//!
//! An [`Attribute`] is one chain of selections. [`Reads`] collects the attributes of one expression. [`fields`]
//! collects the fields that all expressions of a policy read, including reads through variables and macros.

mod cycles;
pub mod fields;

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::interrupt::checkpoint_of;

pub(crate) use cycles::self_reading;

/// A root variable that the API server declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Input {
    /// `object`.
    Object,
    /// `oldObject`.
    OldObject,
    /// `request`.
    Request,
    /// `params`.
    Params,
    /// `namespaceObject`.
    NamespaceObject,
    /// `authorizer` and `authorizer.requestResource`.
    Authorizer,
    /// `variables`.
    Variables,
}

impl Input {
    /// Returns the input that the identifier `name` denotes.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Some(match name.trim_start_matches('.') {
            "object" => Self::Object,
            "oldObject" => Self::OldObject,
            "request" => Self::Request,
            "params" => Self::Params,
            "namespaceObject" => Self::NamespaceObject,
            "authorizer" | "authorizer.requestResource" => Self::Authorizer,
            "variables" => Self::Variables,
            _ => return None,
        })
    }

    fn bit(self) -> u8 {
        1 << self as u8
    }
}

/// Returns true if `id` is an identifier that denotes `input`.
#[must_use]
pub fn is_input(ast: &Ast, id: ExprId, input: Input) -> bool {
    matches!(ast.expr(id), Expr::Ident(name) if Input::from_name(name) == Some(input))
}

/// The key of a selection or index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key<'a> {
    /// `.name` or `.?name`, as in the source.
    Field(&'a str),
    /// `['key']` or `[?'key']`.
    Literal(&'a str),
    /// `[0]` or `[?0]`.
    Index(i64),
    /// Any other index.
    Computed(ExprId),
}

impl<'a> Key<'a> {
    /// Returns the selected name. `None` for an index that is a number or is computed.
    #[must_use]
    pub fn name(self) -> Option<&'a str> {
        match self {
            Self::Field(name) | Self::Literal(name) => Some(name),
            Self::Index(_) | Self::Computed(_) => None,
        }
    }
}

/// One selection in a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qualifier<'a> {
    /// The selected key.
    pub key: Key<'a>,
    /// True for `.?a` and `[?a]`.
    pub is_optional: bool,
    /// True for the field in `has()`.
    pub is_test: bool,
}

/// A chain of selections from an operand, such as `object.spec['a']`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attribute<'a> {
    /// The innermost operand. It is not a selection.
    pub operand: ExprId,
    /// The selections, innermost first.
    pub qualifiers: Vec<Qualifier<'a>>,
    /// True if `dyn()` is applied to the operand or to one of the selected values.
    pub is_dynamic: bool,
}

impl<'a> Attribute<'a> {
    /// Returns the attribute that ends at the expression `id`. If `id` is not a selection, it is the operand of an
    /// attribute without selections.
    #[must_use]
    pub fn new(ast: &'a Ast, id: ExprId) -> Self {
        let mut attribute = Self {
            operand: id,
            qualifiers: Vec::new(),
            is_dynamic: false,
        };
        loop {
            match selection(ast, attribute.operand) {
                Some((operand, qualifier)) => {
                    attribute.operand = operand;
                    attribute.qualifiers.push(qualifier);
                }
                None => match ast.global_call(attribute.operand) {
                    Some(("dyn", [inner])) => {
                        attribute.operand = *inner;
                        attribute.is_dynamic = true;
                    }
                    _ => break,
                },
            }
        }
        attribute.qualifiers.reverse();
        attribute
    }

    /// Returns the names of the selected fields. Stops at the first index that is not a name.
    pub fn fields(&self) -> impl Iterator<Item = &'a str> {
        self.qualifiers.iter().map_while(|it| it.key.name())
    }
}

/// Returns the operand and the qualifier if `id` is a selection. `None` for other expressions.
fn selection(ast: &Ast, id: ExprId) -> Option<(ExprId, Qualifier<'_>)> {
    if let Expr::Select {
        operand,
        field,
        test_only,
    } = ast.expr(id)
    {
        let qualifier = Qualifier {
            key: Key::Field(field),
            is_optional: false,
            is_test: *test_only,
        };
        return Some((*operand, qualifier));
    }
    let (function @ ("_[_]" | "_[?_]" | "_?._"), [operand, index]) = ast.global_call(id)? else {
        return None;
    };
    let key = match ast.expr(*index) {
        Expr::Literal(Literal::String(name)) if function == "_?._" => Key::Field(name),
        Expr::Literal(Literal::String(key)) => Key::Literal(key),
        Expr::Literal(Literal::Int(index)) => Key::Index(*index),
        _ => Key::Computed(*index),
    };
    let qualifier = Qualifier {
        key,
        is_optional: function != "_[_]",
        is_test: false,
    };
    Some((*operand, qualifier))
}

/// Returns the name of the policy variable if `id` selects it from `variables`. `None` for other expressions.
#[must_use]
pub fn variable(ast: &Ast, id: ExprId) -> Option<&str> {
    let (operand, qualifier) = selection(ast, id)?;
    let operand = without_dyn(ast, operand);
    is_input(ast, operand, Input::Variables).then_some(qualifier.key.name()?)
}

/// Returns the argument `x` of `dyn(x)` or `dyn(dyn(x))`. Returns `id` if it is not a call of `dyn()`.
#[must_use]
pub fn without_dyn(ast: &Ast, mut id: ExprId) -> ExprId {
    while let Some(("dyn", [inner])) = ast.global_call(id) {
        id = *inner;
    }
    id
}

/// Returns true if a macro variable of the expression has the name of an input, as in `list.all(object, ...)`.
#[must_use]
pub fn hides_inputs(ast: &Ast) -> bool {
    ast.iter().any(|(_, expr)| match expr {
        Expr::Comprehension(fold) => {
            let mut names = [Some(&fold.iter_var), fold.iter_var2.as_ref()]
                .into_iter()
                .flatten();
            names.any(|name| Input::from_name(name).is_some())
        }
        _ => false,
    })
}

/// The inputs of an expression, with the attributes that read them.
#[derive(Clone, Debug, Default)]
pub struct Reads<'a>(Vec<(Input, Attribute<'a>)>);

/// The fields that an expression selects from inputs.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FieldNames<'a> {
    /// The names of the selected fields.
    pub names: Vec<&'a str>,
    /// True if an input is used as a whole, as in `dyn(variables) == {}`. The expression may then read any of its
    /// fields.
    pub may_read_all: bool,
}

impl<'a> Reads<'a> {
    /// Collects the reads of an expression, in source order.
    #[must_use]
    pub fn new(ast: &'a Ast) -> Self {
        checkpoint_of(ast.len() / 16);
        let mut reads = Vec::new();
        let mut is_seen = vec![false; ast.len()];
        // The expressions to visit, each with the inputs that macro variables hide there.
        let mut pending = vec![(ast.root(), 0_u8)];
        while let Some((id, hidden)) = pending.pop() {
            let is_known = is_seen.get_mut(id.index());
            if is_known.is_none_or(|is_known| std::mem::replace(is_known, true)) {
                continue;
            }
            let n_pending = pending.len();
            let attribute = Attribute::new(ast, id);
            match ast.expr(attribute.operand) {
                Expr::Comprehension(fold) => {
                    let names = [Some(&fold.iter_var), fold.iter_var2.as_ref()];
                    let inputs = names.into_iter().flatten();
                    let inputs = inputs.filter_map(|name| Input::from_name(name));
                    let inner = inputs.fold(hidden, |hidden, input| hidden | input.bit());
                    pending.extend([
                        (fold.iter_range, hidden),
                        (fold.accu_init, hidden),
                        (fold.loop_condition, inner),
                        (fold.loop_step, inner),
                        (fold.result, hidden),
                    ]);
                }
                _ => ast.for_each_child(attribute.operand, |child| pending.push((child, hidden))),
            }
            let keys = attribute.qualifiers.iter().map(|qualifier| qualifier.key);
            pending.extend(keys.filter_map(|key| match key {
                Key::Computed(index) => Some((index, hidden)),
                _ => None,
            }));
            if let Some(added) = pending.get_mut(n_pending..) {
                added.reverse();
            }
            if let Expr::Ident(name) = ast.expr(attribute.operand)
                && let Some(input) = Input::from_name(name)
                && (name.starts_with('.') || hidden & input.bit() == 0)
            {
                reads.push((input, attribute));
            }
        }
        Self(reads)
    }

    /// Returns the inputs of the expression, with the attributes that read them.
    pub fn attributes(&self) -> impl Iterator<Item = (Input, &Attribute<'a>)> {
        self.0.iter().map(|(input, attribute)| (*input, attribute))
    }

    /// Returns true if the expression reads one of `inputs`.
    #[must_use]
    pub fn has(&self, inputs: &[Input]) -> bool {
        self.0.iter().any(|(input, _)| inputs.contains(input))
    }

    /// Returns the fields that the expression selects from `inputs`.
    #[must_use]
    pub fn fields(&self, inputs: &[Input]) -> FieldNames<'a> {
        let mut fields = FieldNames::default();
        for (_, attribute) in self.0.iter().filter(|(input, _)| inputs.contains(input)) {
            match attribute.fields().next() {
                Some(name) => fields.names.push(name),
                None => fields.may_read_all = true,
            }
        }
        fields
    }

    /// Returns the policy variables that the expression selects.
    #[must_use]
    pub fn variables(&self) -> FieldNames<'a> {
        self.fields(&[Input::Variables])
    }
}

impl FieldNames<'_> {
    /// Returns true if the expression may read the field `name`.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.may_read_all || self.names.contains(&name)
    }
}

#[cfg(test)]
mod tests;
