//! The interpreter: evaluates the nodes of a plan.
//!
//! Source: cel-go `interpreter/interpretable.go`; `cel/library.go` (`evalOptionalOr`).

use std::sync::Arc;

use super::cost::Tracker;
use super::fold::Frame;
use super::node::{
    Attribute, Call, Fold, Kind, ListNode, Maker, MapEntryNode, Member, MessageNode, Node, Root,
    Target,
};
use super::stack::Stack;
use super::{Activation, Limits, Program, Settings};
use crate::cost::RuntimeCost;
use crate::cost::factors::{LIST_CREATE_BASE_COST, MAP_CREATE_BASE_COST, STRUCT_CREATE_BASE_COST};
use crate::decls::Receiver;
use crate::stack::run_on_deep_stack;
use crate::value::{EvalBudget, EvalError, Key, Map, Value};

pub(super) struct Machine<'p> {
    pub(super) activation: &'p dyn Activation,
    pub(super) tracker: Tracker,
    /// Variables of comprehensions, by slot.
    pub(super) frames: Vec<Frame<'p>>,
    pub(super) limits: Limits<'p>,
    pub(super) n_iterations: u32,
    pub(super) settings: Settings,
    pub(super) budget: &'p EvalBudget,
    pub(super) stack: Stack,
}

impl<'p> Machine<'p> {
    pub(super) fn new(
        program: &'p Program,
        activation: &'p dyn Activation,
        limits: Limits<'p>,
        budget: &'p EvalBudget,
    ) -> Self {
        Self::with(
            activation,
            limits,
            budget,
            program.n_folds,
            program.settings,
        )
    }

    pub(super) fn with(
        activation: &'p dyn Activation,
        limits: Limits<'p>,
        budget: &'p EvalBudget,
        n_folds: usize,
        settings: Settings,
    ) -> Self {
        Self {
            activation,
            tracker: Tracker::new(limits.cost),
            frames: std::iter::repeat_with(Frame::default)
                .take(n_folds)
                .collect(),
            limits,
            n_iterations: 0,
            settings,
            budget,
            stack: Stack::here(),
        }
    }

    pub(super) fn cost(&self) -> u64 {
        self.tracker.cost()
    }

    /// Evaluates `node` and charges its cost.
    pub(super) fn eval(&mut self, node: &'p Node) -> Result<Value, EvalError> {
        if self.stack.is_used_up() {
            return self.on_deep_stack(|machine| machine.eval(node));
        }
        let before = self.cost();
        let result = self.eval_node(node);
        if let Some(observer) = self.limits.observer {
            let cost = self.cost().saturating_sub(before);
            let id = usize::try_from(node.id).unwrap_or(usize::MAX);
            observer.observe(id, &result, cost);
        }
        result
    }

    #[inline]
    fn eval_node(&mut self, node: &'p Node) -> Result<Value, EvalError> {
        match &node.kind {
            Kind::Constant(value) => {
                self.tracker.done(node.id)?;
                Ok(value.clone())
            }
            Kind::Failure(error) => {
                self.tracker.done(node.id)?;
                Err(error.clone())
            }
            Kind::Attribute(attribute) => self.eval_attribute(node, attribute, false),
            Kind::Presence(attribute) => self.eval_attribute(node, attribute, true),
            Kind::And(terms) => self.eval_logic(node, terms, false),
            Kind::Or(terms) => self.eval_logic(node, terms, true),
            Kind::Equal(args, cost) => {
                self.releasing(|machine| machine.eval_equality(node, args, *cost, false))
            }
            Kind::NotEqual(args, cost) => {
                self.releasing(|machine| machine.eval_equality(node, args, *cost, true))
            }
            Kind::NotStrictlyFalse(arg, cost) => self.eval_not_strictly_false(node, arg, *cost),
            Kind::Call(call) => self.releasing(|machine| machine.eval_call(node, call)),
            Kind::OptionalOr(args, receiver) => self.eval_optional_or(node, args, *receiver, false),
            Kind::OptionalOrValue(args, receiver) => {
                self.eval_optional_or(node, args, *receiver, true)
            }
            Kind::Member(member) => self.releasing(|machine| machine.eval_member(node, member)),
            Kind::List(list) => self.eval_list(node, list),
            Kind::Map(entries) => self.eval_map(node, entries),
            Kind::Message(message) => self.eval_message(node, message),
            Kind::Fold(fold) => self.releasing(|machine| machine.eval_fold(node, fold)),
        }
    }

    /// Runs `step`. If the result contains no other values, releases the memory that `step` allocated, except that of
    /// the result.
    #[inline]
    fn releasing(
        &mut self,
        step: impl FnOnce(&mut Self) -> Result<Value, EvalError>,
    ) -> Result<Value, EvalError> {
        let mark = self.budget.mark();
        let result = step(self);
        if self.budget.is_used_since(mark)
            && let Ok(value) = &result
            && let Some(n_bytes) = value.flat_size()
        {
            self.budget.release(mark, n_bytes);
        }
        result
    }

    fn eval_fold(&mut self, node: &'p Node, fold: &'p Fold) -> Result<Value, EvalError> {
        let result = fatal(self.fold(fold))?;
        self.tracker.drop_step(fold.range.id);
        self.tracker.done(node.id)?;
        result
    }

    #[cold]
    pub(super) fn on_deep_stack<T: Send>(&mut self, work: impl FnOnce(&mut Self) -> T + Send) -> T {
        let outer = self.stack;
        run_on_deep_stack(true, || {
            self.stack = Stack::deep();
            let result = self.stack.enter(|| work(self));
            self.stack = outer;
            result
        })
    }

    fn eval_member(&mut self, node: &'p Node, member: &'p Member) -> Result<Value, EvalError> {
        let value = fatal(self.eval(&member.arg))?;
        let result = match value {
            Ok(value) => Value::Bool(member.set.contains(&Key::new(&value)?)),
            Err(error) => {
                self.tracker.done(node.id)?;
                return Err(error);
            }
        };
        self.tracker.done(node.id)?;
        Ok(result)
    }

    pub(super) fn eval_steps(
        &mut self,
        node: &'p Node,
        attribute: &'p Attribute,
        is_test: bool,
    ) -> Result<Value, EvalError> {
        let resolved = fatal(self.resolve(attribute))?;
        match &attribute.root {
            Root::Conditional(_, conditional) => {
                self.tracker.drop_step(conditional.falsy.id());
                self.tracker.drop_step(conditional.truthy.id());
                self.tracker.drop_step(conditional.condition.id);
            }
            Root::Variable(..) | Root::Hidden(..) | Root::Local(..) | Root::Relative(..) => {
                self.tracker.drop_step(attribute.id());
                self.tracker.add_select();
            }
        }
        if is_test && !self.settings.presence_test_has_cost {
            self.tracker.subtract_select();
        }
        self.tracker.done(node.id)?;
        match resolved?.value {
            Value::Optional(optional) if is_test => Ok(Value::Bool(optional.get().is_some())),
            Value::Error(error) => Err(error),
            value => Ok(value),
        }
    }

    /// Evaluates `&&` or `||`. A term with the value `decisive` overrides the errors of earlier
    /// terms.
    fn eval_logic(
        &mut self,
        node: &'p Node,
        terms: &'p [Node],
        decisive: bool,
    ) -> Result<Value, EvalError> {
        let mut result = Ok(Value::Bool(!decisive));
        for term in terms {
            match self.eval(term) {
                Ok(Value::Bool(value)) if value == decisive => {
                    result = Ok(Value::Bool(decisive));
                    break;
                }
                Ok(Value::Bool(_)) => {}
                Ok(_) => {
                    if result.is_ok() {
                        result = Err(EvalError::no_such_overload().at_step(term.id));
                    }
                }
                Err(error) if error.ends_evaluation() => return Err(error),
                Err(error) => {
                    if result.is_ok() {
                        result = Err(error);
                    }
                }
            }
        }
        for term in terms {
            self.tracker.drop_step(term.id);
        }
        self.tracker.done(node.id)?;
        result
    }

    /// Charges the call if steps were recorded for all of its argument `nodes`. Then records the step of the call.
    fn account(
        &mut self,
        node: &Node,
        nodes: &[Node],
        args: &[Value],
        cost: RuntimeCost,
        result: &Result<Value, EvalError>,
    ) -> Result<(), EvalError> {
        if self.tracker.take_steps(nodes.iter().map(|arg| arg.id)) {
            self.tracker.add(cost.measure(args, result, self.budget)?);
        }
        self.tracker.done(node.id)
    }

    fn eval_equality(
        &mut self,
        node: &'p Node,
        nodes: &'p [Node; 2],
        cost: RuntimeCost,
        negated: bool,
    ) -> Result<Value, EvalError> {
        let [left, right] = nodes;
        let left = fatal(self.eval(left))?;
        let right = fatal(self.eval(right))?;
        let (args, result) = match (left, right) {
            (Ok(left), Ok(right)) => {
                let equal = fatal(left.equals_within(&right, self.budget))?;
                let result = match equal {
                    Ok(equal) => Ok(Value::Bool(equal != negated)),
                    // Values that cannot be compared are unequal.
                    Err(_) if negated => Ok(Value::Bool(true)),
                    Err(error) => Err(error),
                };
                ([left, right], result)
            }
            (left, right) => failed_pair(left, right),
        };
        self.account(node, nodes, &args, cost, &result)?;
        result
    }

    /// Evaluates `@not_strictly_false`: errors and all values except `false` yield true.
    fn eval_not_strictly_false(
        &mut self,
        node: &'p Node,
        arg: &'p Node,
        cost: RuntimeCost,
    ) -> Result<Value, EvalError> {
        let value = fatal(self.eval(arg))?;
        let result = match value {
            Ok(Value::Bool(value)) => Ok(Value::Bool(value)),
            Ok(_) | Err(_) => Ok(Value::Bool(true)),
        };
        if self.tracker.take_step(arg.id) {
            self.tracker.add(cost.measure(&[], &result, self.budget)?);
        }
        self.tracker.done(node.id)?;
        result
    }

    fn eval_call(&mut self, node: &'p Node, call: &'p Call) -> Result<Value, EvalError> {
        match &*call.args {
            [] => self.finish_call(node, call, &[]),
            [arg] => match self.eval(arg) {
                Ok(arg) => self.finish_call(node, call, &[arg]),
                Err(error) => self.fail_call(node, call, &[], error),
            },
            [left, right] => {
                let left = match self.eval(left) {
                    Ok(left) => left,
                    Err(error) => return self.fail_first(node, call, right, error),
                };
                match self.eval(right) {
                    Ok(right) => self.finish_call(node, call, &[left, right]),
                    Err(error) => self.fail_call(node, call, &[left], error),
                }
            }
            nodes => {
                let mut args = Vec::with_capacity(nodes.len());
                for arg in nodes {
                    match self.eval(arg) {
                        Ok(value) => args.push(value),
                        Err(error) => return self.fail_call(node, call, &args, error),
                    }
                }
                self.finish_call(node, call, &args)
            }
        }
    }

    fn finish_call(
        &mut self,
        node: &Node,
        call: &'p Call,
        args: &[Value],
    ) -> Result<Value, EvalError> {
        if self.is_beyond_limit(call, args) {
            let not_called = Err(EvalError::no_such_overload());
            self.account(node, &call.args, args, call.cost, &not_called)?;
            // The call exceeds the limit, but `account` returned no error. An argument was therefore not evaluated,
            // which makes the call free.
            return apply(self.budget, node, call, args);
        }
        let result = match apply(self.budget, node, call, args) {
            // A function that unwraps an optional returns the contained value, which may be an error.
            Ok(Value::Error(error)) => Err(error),
            Err(error) if error.ends_evaluation() => return Err(error),
            Err(error) => Err(error.at_step(node.id)),
            Ok(value) => {
                self.charge(&value)?;
                Ok(value)
            }
        };
        self.account(node, &call.args, args, call.cost, &result)?;
        result
    }

    /// Charges the memory of a newly created value.
    #[inline]
    fn charge(&self, value: &Value) -> Result<(), EvalError> {
        if value.is_inline() {
            return Ok(());
        }
        match value.own_size() {
            0 => Ok(()),
            n_bytes => self.budget.allocate(n_bytes),
        }
    }

    /// Returns [`Value::frozen`], and charges the memory of the copies.
    pub(super) fn freeze(&self, value: Value) -> Result<Value, EvalError> {
        match value.frozen_size() {
            0 => {}
            n_bytes => self.budget.allocate(n_bytes)?,
        }
        Ok(value.frozen())
    }

    /// Completes a call of two arguments whose first argument failed with `error`. Evaluates the second argument if
    /// upstream evaluates it.
    #[cold]
    fn fail_first(
        &mut self,
        node: &'p Node,
        call: &'p Call,
        right: &'p Node,
        error: EvalError,
    ) -> Result<Value, EvalError> {
        if error.ends_evaluation() {
            return Err(error);
        }
        let right = if call.evaluates_all {
            fatal(self.eval(right))?.unwrap_or_else(Value::Error)
        } else {
            Value::Null
        };
        let result = Err(error.clone());
        let args = [Value::Error(error), right];
        self.account(node, &call.args, &args, call.cost, &result)?;
        result
    }

    /// Charges the cost of a call whose next argument after `args` failed with `error`. Returns the error. Later
    /// arguments are not evaluated.
    #[cold]
    fn fail_call(
        &mut self,
        node: &Node,
        call: &'p Call,
        args: &[Value],
        error: EvalError,
    ) -> Result<Value, EvalError> {
        if error.ends_evaluation() {
            return Err(error);
        }
        let mut args = args.to_vec();
        args.push(Value::Error(error.clone()));
        let result = Err(error);
        self.account(node, &call.args, &args, call.cost, &result)?;
        result
    }

    /// Returns true if an argument exceeds its threshold in `precharge_lengths` and the cost of the call exceeds the
    /// limit.
    fn is_beyond_limit(&self, call: &Call, args: &[Value]) -> bool {
        let mut lengths = call.precharge_lengths.iter().zip(args);
        if !lengths.any(|(max, arg)| matches!(arg, Value::String(text) if text.len() > *max)) {
            return false;
        }
        let not_called = Err(EvalError::no_such_overload());
        let cost = call.cost.measure(args, &not_called, self.budget);
        cost.is_ok_and(|cost| self.tracker.exceeds(cost))
    }

    fn eval_optional_or(
        &mut self,
        node: &'p Node,
        [left, right]: &'p [Node; 2],
        receiver: Receiver,
        unwrap: bool,
    ) -> Result<Value, EvalError> {
        let result = match fatal(self.eval(left))? {
            Ok(Value::Optional(optional)) => match optional.get() {
                Some(Value::Error(error)) if unwrap => Err(error.clone()),
                Some(held) if unwrap => Ok(held.clone()),
                Some(_) => Ok(Value::Optional(optional)),
                None => fatal(self.eval(right))?,
            },
            Ok(_) if receiver == Receiver::Optional => Err(EvalError::no_such_overload()),
            other => other,
        };
        self.tracker.done(node.id)?;
        result
    }

    fn eval_list(&mut self, node: &'p Node, list: &'p ListNode) -> Result<Value, EvalError> {
        let result = fatal(self.list_of(list))?;
        self.tracker
            .take_steps(list.elements.iter().map(|element| element.id));
        self.tracker.add(LIST_CREATE_BASE_COST);
        self.tracker.done(node.id)?;
        result
    }

    fn list_of(&mut self, list: &'p ListNode) -> Result<Value, EvalError> {
        let mut elements = Vec::with_capacity(list.elements.len());
        for (n, element) in list.elements.iter().enumerate() {
            let value = self.eval(element)?;
            if list.optional.get(n).copied().unwrap_or(false) {
                let Value::Optional(optional) = &value else {
                    return Err(EvalError::new(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        value.to_go_string()
                    )));
                };
                elements.extend(optional.get().cloned());
            } else {
                elements.push(self.freeze(value)?);
            }
        }
        let list = Value::list(elements);
        self.charge(&list)?;
        Ok(list)
    }

    fn eval_map(
        &mut self,
        node: &'p Node,
        entries: &'p [MapEntryNode],
    ) -> Result<Value, EvalError> {
        let result = fatal(self.map_of(entries))?;
        let ids = entries
            .iter()
            .flat_map(|entry| [entry.key.id, entry.value.id]);
        self.tracker.take_steps(ids);
        self.tracker.add(MAP_CREATE_BASE_COST);
        self.tracker.done(node.id)?;
        result
    }

    fn map_of(&mut self, entries: &'p [MapEntryNode]) -> Result<Value, EvalError> {
        let mut map = Map::default();
        for entry in entries {
            let key = self.eval(&entry.key)?;
            let value = self.eval(&entry.value)?;
            if entry.optional {
                match optional_entry(&key.to_go_string(), &value)? {
                    Some(held) => map.insert(key, held.clone())?,
                    None => map.remove(&key)?,
                }
            } else {
                map.insert(self.freeze(key)?, self.freeze(value)?)?;
            }
        }
        let map = Value::Map(map);
        self.charge(&map)?;
        Ok(map)
    }

    fn eval_message(
        &mut self,
        node: &'p Node,
        message: &'p MessageNode,
    ) -> Result<Value, EvalError> {
        let result = fatal(self.message_of(message))?;
        self.tracker
            .take_steps(message.fields.iter().map(|(_, value, _)| value.id));
        self.tracker.add(STRUCT_CREATE_BASE_COST);
        self.tracker.done(node.id)?;
        result
    }

    fn message_of(&mut self, message: &'p MessageNode) -> Result<Value, EvalError> {
        let mut fields = Vec::with_capacity(message.fields.len());
        for (name, value, optional) in &message.fields {
            let value = self.eval(value)?;
            fields.retain(|(set, _): &(&Arc<str>, Value)| *set != name);
            if *optional {
                if let Some(held) = optional_entry(name, &value)? {
                    fields.push((name, held.clone()));
                }
            } else {
                fields.push((name, self.freeze(value)?));
            }
        }
        let value = match &message.maker {
            Maker::Message(message) => {
                let fields: Vec<_> = fields
                    .into_iter()
                    .map(|(name, value)| (&**name, value))
                    .collect();
                message.make(&fields, self.budget)?
            }
            Maker::Resolver(resolver, name) => {
                let fields = fields.into_iter();
                let fields = fields.map(|(name, value)| (Arc::clone(name), value));
                resolver.make(name, fields.collect())?
            }
            Maker::Unknown(name) => {
                return Err(EvalError::new(format!("unknown type '{name}'")));
            }
        };
        self.charge(&value)?;
        Ok(value)
    }
}

/// Returns the value of an optional entry (`?`).
fn optional_entry<'v>(name: &str, value: &'v Value) -> Result<Option<&'v Value>, EvalError> {
    match value {
        Value::Optional(optional) => Ok(optional.get()),
        _ => Err(EvalError::new(format!(
            "cannot initialize optional entry '{name}' from non-optional value {}",
            value.to_go_string()
        ))),
    }
}

/// Moves an error that ends the evaluation to the outer result. Other errors stay in the inner result.
pub(super) fn fatal<T>(result: Result<T, EvalError>) -> Result<Result<T, EvalError>, EvalError> {
    match result {
        Err(error) if error.ends_evaluation() => Err(error),
        other => Ok(other),
    }
}

/// Splits a result into a value and an error. If there is an error, the value is [`Value::Error`].
fn split(result: Result<Value, EvalError>) -> (Value, Option<EvalError>) {
    match result {
        Ok(value) => (value, None),
        Err(error) => (Value::Error(error.clone()), Some(error)),
    }
}

/// Returns the arguments as values, and the first error as the result of the call. At least one argument must have
/// failed.
fn failed_pair(
    left: Result<Value, EvalError>,
    right: Result<Value, EvalError>,
) -> ([Value; 2], Result<Value, EvalError>) {
    let (left, first) = split(left);
    let (right, second) = split(right);
    let error = first.or(second).unwrap_or_else(EvalError::no_such_overload);
    ([left, right], Err(error))
}

/// Length of an argument in bytes above which the memory of a call is checked before the call.
const LONG: usize = 64 << 10;

/// Upper bound of the temporary memory of a function, in bytes per byte of its arguments. Functions need it to
/// convert strings to upper case, to escape them, and to quote them in errors.
const WORKING_COPIES: usize = 4;

/// Checks that there is enough memory for a call with long arguments. A function that may need more memory performs
/// its own check.
#[inline]
fn reserve_for(budget: &EvalBudget, args: &[Value]) -> Result<(), EvalError> {
    let mut n_bytes = 0_usize;
    for arg in args {
        let len = match arg {
            Value::String(text) => text.len(),
            Value::Bytes(bytes) => bytes.len(),
            Value::Opaque(opaque) => opaque.heap_size(),
            _ => continue,
        };
        if len > LONG {
            n_bytes = n_bytes.saturating_add(len);
        }
    }
    match n_bytes {
        0 => Ok(()),
        n_bytes => budget.reserve(n_bytes.saturating_mul(WORKING_COPIES)),
    }
}

/// Invokes the implementation of a call.
///
/// Source: cel-go `interpreter/interpretable.go`, `evalUnary.Eval` and the like; `common/decls/decls.go`,
/// `FunctionDecl.Bindings`.
fn apply(
    budget: &EvalBudget,
    node: &Node,
    call: &Call,
    args: &[Value],
) -> Result<Value, EvalError> {
    reserve_for(budget, args)?;
    match &call.target {
        Target::Singleton(implementation, traits) => {
            let first = args.first().map(Value::traits).unwrap_or_default();
            if first.has(*traits) {
                implementation(budget, args)
            } else if first.has(crate::value::Traits::RECEIVER) {
                Err(EvalError::no_such_overload())
            } else {
                Err(missing(node, call, args))
            }
        }
        Target::Overload(implementation, guard) => match guard {
            Some(overload) if !matches_signature(args, &overload.args) => {
                Err(EvalError::no_such_overload_of(&call.function, args))
            }
            _ => implementation(budget, args),
        },
        Target::Dispatch(overloads) => {
            let overload = overloads.iter().find(|(_, overload, unguarded)| {
                args.len() == overload.args.len()
                    && (*unguarded || matches_signature(args, &overload.args))
            });
            match overload {
                Some((implementation, ..)) => implementation(budget, args),
                None => Err(EvalError::no_such_overload_of(&call.function, args)),
            }
        }
        Target::Specialized(specialized) => specialized(budget, args),
        Target::Missing => Err(missing(node, call, args)),
    }
}

fn matches_signature(args: &[Value], types: &[crate::types::Type]) -> bool {
    args.len() == types.len() && args.iter().zip(types).all(|(arg, type_)| arg.is_of(type_))
}

fn missing(node: &Node, call: &Call, args: &[Value]) -> EvalError {
    if args.len() > 2 {
        EvalError::new(format!("no such overload: {} {}", call.function, node.id))
    } else {
        EvalError::new(format!("no such overload: {}", call.function))
    }
}
