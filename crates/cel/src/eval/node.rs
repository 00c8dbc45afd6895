//! Nodes of a plan.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use super::message;
use crate::cost::RuntimeCost;
use crate::decls::{Implementation, Overload, Receiver, Specialized};
use crate::message::TypeResolver;
use crate::value::{EvalError, Key, Traits, Value};

/// A step of the plan.
///
/// `id` is the id of the expression, and identifies the step in the cost tracker. The id of an attribute is the id of
/// its last qualifier.
#[derive(Debug)]
pub(super) struct Node {
    pub(super) id: u32,
    pub(super) kind: Kind,
}

#[derive(Debug)]
pub(super) enum Kind {
    Constant(Value),
    /// A constant expression that fails. The error occurs when the evaluation reaches the step.
    Failure(EvalError),
    Attribute(Box<Attribute>),
    /// `has()` of an attribute whose last qualifier is a presence test.
    Presence(Box<Attribute>),
    And(Box<[Node]>),
    Or(Box<[Node]>),
    Equal(Box<[Node; 2]>, RuntimeCost),
    NotEqual(Box<[Node; 2]>, RuntimeCost),
    NotStrictlyFalse(Box<Node>, RuntimeCost),
    Call(Box<Call>),
    OptionalOr(Box<[Node; 2]>, Receiver),
    OptionalOrValue(Box<[Node; 2]>, Receiver),
    /// `in` with a list of constants.
    Member(Box<Member>),
    List(Box<ListNode>),
    Map(Box<[MapEntryNode]>),
    Message(Box<MessageNode>),
    Fold(Box<Fold>),
}

impl Node {
    /// Returns true for an attribute whose root variable is hidden by a variable of a comprehension.
    pub(super) fn has_hidden_root(&self) -> bool {
        match &self.kind {
            Kind::Attribute(attribute) => matches!(attribute.root, Root::Hidden(..)),
            _ => false,
        }
    }

    pub(super) fn new(id: u32, kind: Kind) -> Self {
        Self { id, kind }
    }

    pub(super) fn empty() -> Self {
        Self::new(0, Kind::Constant(Value::Null))
    }

    pub(super) fn constant(&self) -> Option<&Value> {
        match &self.kind {
            Kind::Constant(value) => Some(value),
            _ => None,
        }
    }
}

/// Membership of a value in a set of constants.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) arg: Node,
    pub(super) set: HashSet<Key>,
}

pub(super) struct Call {
    pub(super) function: Arc<str>,
    pub(super) args: Box<[Node]>,
    pub(super) target: Target,
    /// True if all arguments are evaluated even if one of them fails.
    pub(super) evaluates_all: bool,
    pub(super) cost: RuntimeCost,
    /// See `OverloadRow::precharge_lengths`.
    pub(super) precharge_lengths: &'static [usize],
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({:?})", self.function, self.args)
    }
}

/// The implementation that a call invokes.
pub(super) enum Target {
    Missing,
    /// One function for all overloads. The first argument must have these traits.
    Singleton(Implementation, Traits),
    /// A single overload: the one that the checker resolved, or the only one with an implementation. The signature is
    /// `None` if argument types are not checked.
    Overload(Implementation, Option<Arc<Overload>>),
    /// Several overloads. The first one with a matching signature is called. If the flag is true, argument types are
    /// not checked.
    Dispatch(Box<[(Implementation, Arc<Overload>, bool)]>),
    /// An implementation that was specialized during planning.
    Specialized(Specialized),
}

#[derive(Debug)]
pub(super) struct ListNode {
    pub(super) elements: Box<[Node]>,
    /// True for each optional element (`?`). Empty if there are none.
    pub(super) optional: Box<[bool]>,
}

#[derive(Debug)]
pub(super) struct MapEntryNode {
    pub(super) key: Node,
    pub(super) value: Node,
    pub(super) optional: bool,
}

#[derive(Debug)]
pub(super) struct MessageNode {
    pub(super) maker: Maker,
    pub(super) fields: Box<[(Arc<str>, Node, bool)]>,
}

/// Constructor of an object literal.
#[derive(Debug)]
pub(super) enum Maker {
    /// A well-known message.
    Message(message::Message),
    /// The resolver that declares the type, and the type name.
    Resolver(&'static dyn TypeResolver, Arc<str>),
    /// The name of a type that only the checker knows. The evaluation fails.
    Unknown(Arc<str>),
}

#[derive(Debug)]
pub(super) struct Fold {
    /// Index of the frame that holds the variables of the comprehension.
    pub(super) slot: usize,
    pub(super) has_two_vars: bool,
    pub(super) range: Node,
    pub(super) init: Node,
    pub(super) condition: Node,
    pub(super) step: Node,
    pub(super) result: Node,
}

/// A variable or the result of an expression, followed by qualifiers.
#[derive(Debug)]
pub(super) struct Attribute {
    pub(super) root: Root,
    pub(super) qualifiers: Vec<Qualifier>,
    /// Keys of the leading qualifiers, before the first key that is not a constant string. The key of a presence test
    /// is included.
    pub(super) names: Vec<Arc<str>>,
    pub(super) shape: Shape,
}

/// Resolution strategy of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    /// A path from a variable along constant keys.
    Path,
    /// A path that ends in a presence test.
    Test,
    /// Step-by-step evaluation.
    Other,
}

/// Base of an attribute.
#[derive(Debug)]
pub(super) enum Root {
    Variable(u32, Arc<str>),
    /// A variable that a comprehension variable of the same name hides.
    Hidden(u32, Arc<str>),
    Local(u32, Local),
    Relative(u32, Node),
    Conditional(u32, Box<ConditionalRoot>),
}

/// `condition ? truthy : falsy`.
#[derive(Debug)]
pub(super) struct ConditionalRoot {
    pub(super) condition: Node,
    pub(super) truthy: Attribute,
    pub(super) falsy: Attribute,
}

/// Reference to a variable of a comprehension.
#[derive(Clone, Copy, Debug)]
pub(super) struct Local {
    pub(super) slot: usize,
    pub(super) variable: LoopVariable,
}

/// Role of a comprehension variable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LoopVariable {
    First,
    Second,
    Accumulator,
}

impl Attribute {
    pub(super) fn new(root: Root) -> Self {
        let shape = match root {
            Root::Variable(..) | Root::Local(..) => Shape::Path,
            Root::Hidden(..) | Root::Relative(..) | Root::Conditional(..) => Shape::Other,
        };
        Self {
            root,
            qualifiers: Vec::new(),
            names: Vec::new(),
            shape,
        }
    }

    /// Returns the id that identifies the attribute in the cost tracker.
    ///
    /// Source: cel-go `interpreter/attributes.go`, `Attribute.ID`.
    pub(super) fn id(&self) -> u32 {
        match &self.root {
            Root::Conditional(id, conditional) => {
                let (truthy, falsy) = (conditional.truthy.id(), conditional.falsy.id());
                if truthy == falsy { truthy } else { *id }
            }
            Root::Variable(id, _)
            | Root::Hidden(id, _)
            | Root::Local(id, _)
            | Root::Relative(id, _) => self.qualifiers.last().map_or(*id, |last| last.id),
        }
    }

    /// Appends a qualifier. For a conditional, appends the qualifier to both branches.
    pub(super) fn qualify(&mut self, qualifier: Qualifier) {
        match &mut self.root {
            Root::Conditional(_, conditional) => {
                conditional.truthy.qualify(qualifier.clone());
                conditional.falsy.qualify(qualifier);
            }
            Root::Variable(..) | Root::Hidden(..) | Root::Local(..) | Root::Relative(..) => {
                self.shape = match (self.shape, &qualifier.key) {
                    (Shape::Path, QualifierKey::Constant(_)) if !qualifier.optional => Shape::Path,
                    (Shape::Path, QualifierKey::Presence(_)) if !qualifier.optional => Shape::Test,
                    _ => Shape::Other,
                };
                if let QualifierKey::Constant(Value::String(name))
                | QualifierKey::Presence(Value::String(name)) = &qualifier.key
                    && self.names.len() == self.qualifiers.len()
                {
                    self.names.push(Arc::clone(name));
                }
                self.qualifiers.push(qualifier);
            }
        }
    }
}

/// A selection, an index, or a presence test.
#[derive(Clone, Debug)]
pub(super) struct Qualifier {
    pub(super) id: u32,
    pub(super) optional: bool,
    pub(super) key: QualifierKey,
}

/// Key of a qualifier.
#[derive(Clone, Debug)]
pub(super) enum QualifierKey {
    Constant(Value),
    /// The name of a field. The value is first converted to a Go map, and the field is selected from this map. If the
    /// flag is true, only the presence of the field is tested.
    Field(Arc<str>, bool),
    /// A test for the presence of a key.
    Presence(Value),
    /// The value of an attribute.
    Attribute(Arc<Attribute>),
    /// The value of any other expression.
    Node(Arc<Node>),
}
