//! Abstract values: the types that a value may have, and the value itself if it is constant.
//!
//! An abstract value is a set of alternatives, because an expression may have values of different types. Examples are a
//! default, the two branches of a conditional, and the elements of concatenated lists. Abstract values are shared and
//! have a maximum size. Sharing and the maximum size limit the work for a policy.

use std::sync::Arc;

use cel::types::{Primitive, StructType, Type};

/// A value that is the same in every request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Const {
    Null,
    Bool(bool),
    Int(i64),
    Text(Arc<str>),
    List(Arc<[Const]>),
    /// A type, given by its run-time name.
    TypeName(&'static str),
}

impl Const {
    /// Returns true if all lists are short and nested at most `depth` levels. Lists are shared, so a few variables can
    /// build a list that takes exponential time to traverse.
    fn is_small(&self, depth: u32) -> bool {
        match self {
            Self::List(values) => {
                depth > 0
                    && values.len() <= MAX_CONST_LIST
                    && values.iter().all(|value| value.is_small(depth - 1))
            }
            _ => true,
        }
    }
}

/// An object with its declared fields.
#[derive(Clone, Debug)]
pub(crate) struct Object {
    pub(crate) type_: StructType,
    /// The fields with more precise values than declared. An example is `kind`, whose value is constant.
    pub(crate) known: Option<Arc<[(&'static str, AbstractValue)]>>,
}

#[derive(Clone, Debug)]
pub(crate) enum AbstractType {
    /// A scalar or an opaque type.
    Plain(Type),
    Object(Object),
    /// A list, with the join of its elements. A list literal also has the value of each element, because the elements
    /// may have different types.
    List(Arc<AbstractValue>, Option<Arc<[AbstractValue]>>),
    /// A map with unknown keys, with the join of its values. The flag is true if the keys are strings.
    Map(Arc<AbstractValue>, bool),
    /// A map with known string keys.
    Record(Arc<[(Arc<str>, AbstractValue)]>),
    /// An optional, with the value that it contains. The value is bottom for an empty optional. The value is a constant
    /// only if the optional is certainly non-empty.
    Optional(Arc<AbstractValue>),
}

impl PartialEq for AbstractType {
    fn eq(&self, other: &Self) -> bool {
        let same = |left: &Arc<AbstractValue>, right: &Arc<AbstractValue>| {
            Arc::ptr_eq(left, right) || left == right
        };
        match (self, other) {
            (Self::Plain(left), Self::Plain(right)) => left == right,
            (Self::Object(left), Self::Object(right)) => {
                left.type_ == right.type_ && left.known.is_some() == right.known.is_some()
            }
            (Self::List(left, left_items), Self::List(right, right_items)) => {
                same(left, right) && left_items == right_items
            }
            (Self::Optional(left), Self::Optional(right)) => same(left, right),
            (Self::Map(left, left_keys), Self::Map(right, right_keys)) => {
                left_keys == right_keys && same(left, right)
            }
            (Self::Record(left), Self::Record(right)) => Arc::ptr_eq(left, right) || left == right,
            _ => false,
        }
    }
}

impl AbstractType {
    /// Converts the type to a CEL type for messages and the type checker.
    pub(crate) fn to_type(&self) -> Type {
        match self {
            Self::Plain(type_) => type_.clone(),
            Self::Object(object) => Type::Struct(object.type_.clone()),
            Self::List(elem, _) => Type::list(elem.to_type()),
            Self::Map(value, has_string_keys) => {
                let key = if *has_string_keys {
                    Type::String
                } else {
                    Type::Dyn
                };
                Type::map(key, value.to_type())
            }
            Self::Record(entries) => {
                let values = entries
                    .iter()
                    .fold(AbstractValue::bottom(), |joined, (_, value)| {
                        joined.join(value)
                    });
                Type::map(Type::String, values.to_type())
            }
            Self::Optional(value) => Type::optional(value.to_type()),
        }
    }

    /// Returns the run-time name of the type. `None` if it is unknown.
    pub(crate) fn type_name(&self) -> Option<&'static str> {
        Some(match self {
            Self::Plain(Type::Bool) => "bool",
            Self::Plain(Type::Int) => "int",
            Self::Plain(Type::Uint) => "uint",
            Self::Plain(Type::Double) => "double",
            Self::Plain(Type::String) => "string",
            Self::Plain(Type::Bytes) => "bytes",
            Self::Plain(Type::Null) => "null_type",
            Self::List(..) => "list",
            Self::Map(..) | Self::Record(_) | Self::Object(_) => "map",
            Self::Plain(_) | Self::Optional(_) => return None,
        })
    }

    pub(crate) fn is_null(&self) -> bool {
        matches!(self, Self::Plain(Type::Null))
    }

    /// Returns true if the values of the type neither are nor contain optionals.
    fn is_json(&self) -> bool {
        match self {
            Self::Plain(_) | Self::Object(_) => true,
            Self::List(value, _) | Self::Map(value, _) => value.is_json(),
            Self::Record(entries) => entries.iter().all(|(_, value)| value.is_json()),
            Self::Optional(_) => false,
        }
    }

    fn size(&self) -> u32 {
        match self {
            Self::Plain(_) | Self::Object(_) => 1,
            Self::List(value, items) => {
                let items = items.iter().flat_map(|items| items.iter());
                let size = value.size.saturating_add(1);
                items.fold(size, |size, item| size.saturating_add(item.size))
            }
            Self::Map(value, _) | Self::Optional(value) => value.size.saturating_add(1),
            Self::Record(entries) => entries.iter().fold(1, |size: u32, (_, value)| {
                size.saturating_add(value.size).saturating_add(1)
            }),
        }
    }
}

/// One possible type of a value. `is_default` is true for a value that replaces an absent value: the argument of
/// `orValue`, or the branch of a conditional for an absent field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Alternative {
    pub(crate) shape: AbstractType,
    pub(crate) is_default: bool,
}

/// Maximum number of nodes of an abstract value. A larger value becomes unknown.
const MAX_SIZE: u32 = 300;

/// Maximum number of alternatives of an abstract value. With more alternatives, the value becomes unknown.
const MAX_ALTERNATIVES: usize = 6;

/// Maximum length of a constant list.
const MAX_CONST_LIST: usize = 64;

/// Maximum number of tracked elements of a list literal. In a longer literal, elements are not tracked individually.
const MAX_ITEMS: usize = 16;

/// Maximum nesting of constant lists.
const MAX_CONST_DEPTH: u32 = 2;

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AbstractValue {
    alternatives: Vec<Alternative>,
    is_top: bool,
    /// True for an unknown value that neither is nor contains an optional, such as a part of a request.
    is_json: bool,
    constant: Option<Const>,
    size: u32,
}

impl AbstractValue {
    /// Returns the unknown value: the top of the lattice.
    pub(crate) fn top() -> Self {
        Self {
            alternatives: Vec::new(),
            is_top: true,
            is_json: false,
            constant: None,
            size: 1,
        }
    }

    /// Returns the unknown value for data from requests and params. Such data contains no optionals.
    pub(crate) fn json() -> Self {
        Self {
            is_json: true,
            ..Self::top()
        }
    }

    /// Returns the impossible value: the bottom of the lattice. An example is the element of an empty list.
    pub(crate) fn bottom() -> Self {
        Self {
            alternatives: Vec::new(),
            is_top: false,
            is_json: false,
            constant: None,
            size: 1,
        }
    }

    pub(crate) fn new(shape: AbstractType) -> Self {
        let size = shape.size();
        if size > MAX_SIZE {
            return Self::top();
        }
        Self {
            alternatives: vec![Alternative {
                shape,
                is_default: false,
            }],
            is_top: false,
            is_json: false,
            constant: None,
            size,
        }
    }

    pub(crate) fn plain(type_: Type) -> Self {
        Self::new(AbstractType::Plain(type_))
    }

    /// Returns a value with one of `types`. An operation that fails for only some of them causes no warning.
    pub(crate) fn either(types: &[Type]) -> Self {
        let types = types.iter().cloned().map(Self::plain);
        types.fold(Self::bottom(), |joined, value| {
            joined.join(&value.into_default())
        })
    }

    pub(crate) fn list(elem: Self) -> Self {
        Self::new(AbstractType::List(Arc::new(elem), None))
    }

    /// Returns the value of a list literal with these elements.
    pub(crate) fn tuple(items: Vec<Self>) -> Self {
        let elem = items
            .iter()
            .fold(Self::bottom(), |joined, item| joined.join(item));
        if items.len() > MAX_ITEMS {
            return Self::list(elem);
        }
        let elem = Arc::new(elem);
        let shape = AbstractType::List(Arc::clone(&elem), Some(items.into()));
        if shape.size() > MAX_SIZE {
            return Self::new(AbstractType::List(elem, None));
        }
        Self::new(shape)
    }

    pub(crate) fn map(value: Self, has_string_keys: bool) -> Self {
        Self::new(AbstractType::Map(Arc::new(value), has_string_keys))
    }

    pub(crate) fn optional(value: Self) -> Self {
        Self::new(AbstractType::Optional(Arc::new(value)))
    }

    pub(crate) fn bool() -> Self {
        Self::plain(Type::Bool)
    }

    pub(crate) fn constant(constant: Const) -> Self {
        let mut value = match &constant {
            Const::Null => Self::plain(Type::Null),
            Const::Bool(_) => Self::bool(),
            Const::Int(_) => Self::plain(Type::Int),
            Const::Text(_) => Self::plain(Type::String),
            Const::TypeName(_) => Self::plain(Type::Type(None)),
            Const::List(values) => {
                let elem = values.iter().fold(Self::bottom(), |joined, value| {
                    joined.join(&Self::constant(value.clone()))
                });
                Self::list(elem)
            }
        };
        value.constant = Some(constant);
        value
    }

    /// Sets the constant. A constant that is too large is dropped.
    pub(crate) fn with_constant(mut self, constant: Option<Const>) -> Self {
        self.constant = constant.filter(|constant| constant.is_small(MAX_CONST_DEPTH));
        self
    }

    /// Returns the value of a declared type. A value of the type `dyn` is data from requests or params, which contain
    /// no optionals.
    pub(crate) fn from_type(type_: &Type) -> Self {
        match type_ {
            Type::Dyn => Self::json(),
            Type::Error | Type::Any | Type::Param(_) => Self::top(),
            Type::Null => Self::constant(Const::Null),
            Type::List(elem) => Self::list(Self::from_type(elem)),
            Type::Map(entry) => Self::map(Self::from_type(&entry.1), entry.0 == Type::String),
            Type::Struct(object) if object.fields.is_some() => {
                Self::new(AbstractType::Object(Object {
                    type_: object.clone(),
                    known: None,
                }))
            }
            Type::Wrapper(primitive) => {
                let primitive: Primitive = *primitive;
                Self::plain(primitive.unwrapped())
            }
            _ => match type_.optional_value() {
                Some(value) => Self::optional(Self::from_type(value)),
                None => Self::plain(type_.clone()),
            },
        }
    }

    /// Converts the type to a CEL type. The result is `dyn` if the value is unknown or has several alternatives.
    pub(crate) fn to_type(&self) -> Type {
        match &*self.alternatives {
            _ if self.is_top => Type::Dyn,
            [only] => only.shape.to_type(),
            _ => Type::Dyn,
        }
    }

    pub(crate) fn is_top(&self) -> bool {
        self.is_top
    }

    /// Returns true if the value neither is nor contains an optional.
    pub(crate) fn is_json(&self) -> bool {
        let mut alternatives = self.alternatives.iter();
        self.is_json || !self.is_top && alternatives.all(|it| it.shape.is_json())
    }

    /// Returns true if the value is an optional, and false if it is not. `None` if both are possible, or if the value
    /// is bottom.
    pub(crate) fn is_optional(&self) -> Option<bool> {
        let is_optional = |it: &Alternative| matches!(it.shape, AbstractType::Optional(_));
        match &*self.alternatives {
            [] => self.is_json.then_some(false),
            all if all.iter().all(is_optional) => Some(true),
            all => (!all.iter().any(is_optional)).then_some(false),
        }
    }

    pub(crate) fn is_bottom(&self) -> bool {
        !self.is_top && self.alternatives.is_empty()
    }

    pub(crate) fn alternatives(&self) -> &[Alternative] {
        &self.alternatives
    }

    pub(crate) fn as_const(&self) -> Option<&Const> {
        self.constant.as_ref()
    }

    pub(crate) fn as_bool(&self) -> Option<bool> {
        match self.constant {
            Some(Const::Bool(value)) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn is_null(&self) -> bool {
        self.constant == Some(Const::Null)
    }

    /// Returns the value without the alternatives that fail `keep`. `None` if this removes no alternative or all of
    /// them.
    pub(crate) fn refine(&self, keep: impl Fn(&AbstractType) -> bool) -> Option<Self> {
        let kept = self
            .alternatives
            .iter()
            .filter(|alternative| keep(&alternative.shape));
        let alternatives: Vec<Alternative> = kept.cloned().collect();
        let is_some = !alternatives.is_empty() && alternatives.len() < self.alternatives.len();
        is_some.then(|| Self {
            alternatives,
            is_top: self.is_top,
            is_json: self.is_json,
            constant: None,
            size: self.size,
        })
    }

    /// Marks all alternatives as defaults.
    pub(crate) fn into_default(mut self) -> Self {
        for alternative in &mut self.alternatives {
            alternative.is_default = true;
            if let AbstractType::List(elem, items) = &mut alternative.shape {
                *elem = Arc::new(elem.as_ref().clone().into_default());
                if let Some(items) = items {
                    *items = items
                        .iter()
                        .map(|item| item.clone().into_default())
                        .collect();
                }
            }
        }
        self
    }

    /// Records that an unknown value, or a list of unknown elements, neither is nor contains an optional.
    pub(crate) fn into_json(self) -> Self {
        match &*self.alternatives {
            [] if self.is_top => Self::json(),
            [only] if matches!(&only.shape, AbstractType::List(elem, None) if elem.is_top) => {
                Self::list(Self::json())
            }
            _ => self,
        }
    }

    pub(crate) fn join(&self, other: &Self) -> Self {
        if self.is_bottom() {
            return other.clone();
        }
        if other.is_bottom() {
            return self.clone();
        }
        let unknown = || {
            if self.is_json() && other.is_json() {
                Self::json()
            } else {
                Self::top()
            }
        };
        if self.is_top || other.is_top {
            return unknown();
        }
        let mut alternatives = self.alternatives.clone();
        for alternative in &other.alternatives {
            join_choice(&mut alternatives, alternative);
        }
        let size = alternatives.iter().fold(0u32, |size, alternative| {
            size.saturating_add(alternative.shape.size())
        });
        if alternatives.len() > MAX_ALTERNATIVES || size > MAX_SIZE {
            return unknown();
        }
        let constant = (self.constant == other.constant).then(|| self.constant.clone());
        Self {
            alternatives,
            is_top: false,
            is_json: false,
            constant: constant.flatten(),
            size,
        }
    }
}

/// Adds `new` to the alternatives. Two containers of the same type are joined element by element. Another type becomes
/// a new alternative.
fn join_choice(alternatives: &mut Vec<Alternative>, new: &Alternative) {
    for alternative in alternatives.iter_mut() {
        let joined = match (&alternative.shape, &new.shape) {
            (left, right) if left == right => left.clone(),
            (AbstractType::List(left, left_items), AbstractType::List(right, right_items)) => {
                let items = match (left_items, right_items) {
                    (Some(left), Some(right)) if left.len() == right.len() => {
                        let both = left.iter().zip(right.iter());
                        Some(both.map(|(left, right)| left.join(right)).collect())
                    }
                    _ => None,
                };
                AbstractType::List(Arc::new(left.join(right)), items)
            }
            (AbstractType::Optional(left), AbstractType::Optional(right)) => {
                let joined = left.join(right);
                let is_certain = left.constant.is_some() && right.constant.is_some();
                let constant = joined.constant.clone().filter(|_| is_certain);
                AbstractType::Optional(Arc::new(joined.with_constant(constant)))
            }
            (AbstractType::Map(left, left_keys), AbstractType::Map(right, right_keys)) => {
                AbstractType::Map(Arc::new(left.join(right)), *left_keys && *right_keys)
            }
            // An empty map literal can be joined with any map.
            (AbstractType::Record(entries), map @ AbstractType::Map(..))
            | (map @ AbstractType::Map(..), AbstractType::Record(entries))
                if entries.is_empty() =>
            {
                map.clone()
            }
            (AbstractType::Object(left), AbstractType::Object(right))
                if left.type_ == right.type_ =>
            {
                AbstractType::Object(Object {
                    type_: left.type_.clone(),
                    known: None,
                })
            }
            _ => continue,
        };
        alternative.shape = joined;
        alternative.is_default &= new.is_default;
        return;
    }
    alternatives.push(new.clone());
}
