//! The planner: converts a checked expression into a tree of steps.
//!
//! Source: cel-go `interpreter/planner.go`.

use std::cell::OnceCell;
use std::sync::Arc;

use regexp::EngineBudget;

use super::node::{
    Attribute, Call, ConditionalRoot, Fold, Kind, ListNode, Local, LoopVariable, Maker,
    MapEntryNode, MessageNode, Node, Qualifier, QualifierKey, Root, Target,
};
use super::{PlanError, Runtime, message, optimize};
use crate::ast::{Comprehension, Expr, ExprId, Literal};
use crate::checker::{CheckedAst, Reference};
use crate::cost::{CostScope, RuntimeCost};
use crate::decls::{Binding, Function, Operator, Overload, OverloadRow, Planning};
use crate::env::{Env, Ident, Library};
use crate::interrupt::checkpoint;
use crate::types::Type;
use crate::value::Value;

pub(super) struct Planner<'a> {
    checked: &'a CheckedAst,
    env: &'a Env,
    runtime: &'a dyn Runtime,
    /// Memory budget of the regex engines of constant patterns, created on first use.
    engines: OnceCell<Arc<EngineBudget>>,
    /// Variables of the enclosing comprehensions, innermost last.
    scopes: Vec<(Arc<str>, Local)>,
    n_folds: usize,
}

type Planned = Result<Node, PlanError>;

fn step_id(id: ExprId) -> u32 {
    u32::try_from(id.index()).unwrap_or(u32::MAX)
}

fn literal(literal: &Literal) -> Value {
    match literal {
        Literal::Null => Value::Null,
        Literal::Bool(value) => Value::Bool(*value),
        Literal::Int(value) => Value::Int(*value),
        Literal::Uint(value) => Value::Uint(*value),
        Literal::Double(value) => Value::Double(*value),
        Literal::String(text) => Value::String(Arc::clone(text)),
        Literal::Bytes(bytes) => Value::Bytes(Arc::clone(bytes)),
    }
}

/// Converts `args` to an array. Fails if there are not `N` arguments.
fn operands<const N: usize>(args: Vec<Node>) -> Result<Box<[Node; N]>, PlanError> {
    let args: [Node; N] = args
        .try_into()
        .map_err(|_| PlanError::new("wrong number of operands"))?;
    Ok(Box::new(args))
}

impl<'a> Planner<'a> {
    pub(super) fn new(checked: &'a CheckedAst, env: &'a Env, runtime: &'a dyn Runtime) -> Self {
        Self {
            checked,
            env,
            runtime,
            engines: OnceCell::new(),
            scopes: Vec::new(),
            n_folds: 0,
        }
    }

    /// Returns the plan and its number of comprehensions.
    pub(super) fn run(mut self) -> Result<(Node, usize), PlanError> {
        let root = self.plan(self.checked.ast().root())?;
        Ok((root, self.n_folds))
    }

    fn plan(&mut self, id: ExprId) -> Planned {
        checkpoint();
        self.plan_expr(id).map_err(|error| error.within(id))
    }

    fn plan_expr(&mut self, id: ExprId) -> Planned {
        let checked = self.checked;
        let step = step_id(id);
        match checked.ast().expr(id) {
            Expr::Unspecified => Err(PlanError::new("unsupported expr: ")),
            Expr::Literal(of) => Ok(Node::new(step, Kind::Constant(literal(of)))),
            Expr::Ident(name) => match checked.reference(id) {
                Some(Reference::Ident(full_name)) => self.plan_name(id, full_name),
                _ => self.plan_name(id, &name.trim_start_matches('.').into()),
            },
            Expr::Select {
                operand,
                field,
                test_only,
            } => match checked.reference(id) {
                Some(Reference::Ident(full_name)) => self.plan_name(id, full_name),
                _ => self.plan_select(id, *operand, field, *test_only),
            },
            Expr::Call {
                function,
                target,
                args,
            } => self.plan_call(id, function, *target, args),
            Expr::List {
                elements,
                optional_indices,
            } => {
                let mut optional = Vec::new();
                if !optional_indices.is_empty() {
                    optional.resize(elements.len(), false);
                    for index in optional_indices {
                        if let Some(slot) = optional.get_mut(*index as usize) {
                            *slot = true;
                        }
                    }
                }
                let list = ListNode {
                    elements: self.plan_all(elements)?.into(),
                    optional: optional.into(),
                };
                self.folded(Node::new(step, Kind::List(Box::new(list))), optimize::list)
            }
            Expr::Map(entries) => {
                let mut planned = Vec::with_capacity(entries.len());
                for entry in entries {
                    planned.push(MapEntryNode {
                        key: self.plan(entry.key)?,
                        value: self.plan(entry.value)?,
                        optional: entry.optional,
                    });
                }
                self.folded(Node::new(step, Kind::Map(planned.into())), optimize::map)
            }
            Expr::Struct { type_name, fields } => {
                let name = match checked.reference(id) {
                    Some(Reference::Ident(full_name)) => full_name,
                    _ => type_name,
                };
                let maker = match self.env.resolver_of(name) {
                    Some(resolver) => Maker::Resolver(resolver, Arc::clone(name)),
                    None if self.env.is_named_type(name) => Maker::Unknown(Arc::clone(name)),
                    None => message::Message::new(name)
                        .map(Maker::Message)
                        .ok_or_else(|| PlanError::new(format!("unknown type: {type_name}")))?,
                };
                let mut planned = Vec::with_capacity(fields.len());
                for field in fields {
                    let value = self.plan(field.value)?;
                    planned.push((Arc::clone(&field.field), value, field.optional));
                }
                let message = MessageNode {
                    maker,
                    fields: planned.into(),
                };
                Ok(Node::new(step, Kind::Message(Box::new(message))))
            }
            Expr::Comprehension(fold) => self.plan_fold(step, fold),
        }
    }

    /// Applies `fold` to `node` if constant folding is enabled.
    fn folded(&self, node: Node, fold: fn(Node) -> Planned) -> Planned {
        if self.runtime.folds_constants() {
            fold(node)
        } else {
            Ok(node)
        }
    }

    fn plan_all(&mut self, ids: &[ExprId]) -> Result<Vec<Node>, PlanError> {
        ids.iter().map(|id| self.plan(*id)).collect()
    }

    /// Source: cel-go `interpreter/planner.go`, `planCheckedIdent`.
    fn plan_name(&mut self, id: ExprId, name: &Arc<str>) -> Planned {
        let step = step_id(id);
        // The checker keeps the leading dot of a global variable that a variable of a comprehension hides.
        let (name, is_global) = match name.strip_prefix('.') {
            Some(global) => (&Arc::from(global), true),
            None => (name, false),
        };
        let mut scopes = self.scopes.iter().rev();
        let local = scopes.find(|(variable, _)| !is_global && *variable == *name);
        let local = local.map(|(_, local)| *local);
        if local.is_none()
            && let Some(value) = self.env.library().constant(name)
        {
            return Ok(Node::new(step, Kind::Constant(Value::Int(value))));
        }
        // As in upstream, a variable whose type is `type` is resolved as a type name.
        if matches!(self.checked.type_of(id), Type::Type(_)) {
            let type_ = self
                .type_named(name)
                .ok_or_else(|| PlanError::new(format!("reference to undefined type: {name}")))?;
            return Ok(Node::new(
                step,
                Kind::Constant(Value::Type(Arc::new(type_))),
            ));
        }
        let root = match local {
            Some(local) => Root::Local(step, local),
            None if is_global => Root::Hidden(step, Arc::clone(name)),
            None => Root::Variable(step, Arc::clone(name)),
        };
        Ok(attribute_node(Box::new(Attribute::new(root))))
    }

    /// Returns the type that `name` denotes at run time. `None` if `name` is undefined at run time. The names of types
    /// that only the checker knows are undefined at run time.
    ///
    /// Source: cel-go `common/types/provider.go`, `NewRegistry`, `Registry.FindIdent`; k8s.io/apiserver
    /// `pkg/cel/types.go`, `DeclTypeProvider.FindIdent`.
    fn type_named(&self, name: &str) -> Option<Type> {
        let is_well_known_message = self.env.library().message(name).is_some_and(|message| {
            !matches!(
                message.to_type(),
                Type::Struct(_) | Type::Duration | Type::Timestamp
            )
        });
        if is_well_known_message
            || self.env.resolver_of(name).is_some()
            || self.env.is_named_type(name)
        {
            return None;
        }
        match self.env.lookup_ident(name)? {
            Ident::TypeName(Type::List(_)) => Some(Type::list(Type::Dyn)),
            Ident::TypeName(Type::Map(_)) => Some(Type::map(Type::Dyn, Type::Dyn)),
            Ident::TypeName(of) => Some(of),
            Ident::Variable(_) => None,
        }
    }

    /// Converts `node` to an attribute, to which qualifiers can be appended. The `bool` is true if the node is a
    /// presence test.
    ///
    /// Source: cel-go `interpreter/planner.go`, `relativeAttr`.
    fn into_attribute(node: Node) -> (Box<Attribute>, bool) {
        match node.kind {
            Kind::Attribute(attribute) => (attribute, false),
            Kind::Presence(attribute) => (attribute, true),
            kind => {
                let root = Root::Relative(node.id, Node::new(node.id, kind));
                (Box::new(Attribute::new(root)), false)
            }
        }
    }

    fn plan_select(
        &mut self,
        id: ExprId,
        operand: ExprId,
        field: &Arc<str>,
        test_only: bool,
    ) -> Planned {
        let reads_native = self.reads_native(operand);
        let (mut attribute, is_test) = Self::into_attribute(self.plan(operand)?);
        let key = Value::String(Arc::clone(field));
        // A selection from a presence test is itself a presence test.
        let is_test = is_test || test_only;
        attribute.qualify(Qualifier {
            id: step_id(id),
            optional: false,
            key: if reads_native {
                QualifierKey::Field(Arc::clone(field), is_test)
            } else if is_test {
                QualifierKey::Presence(key)
            } else {
                QualifierKey::Constant(key)
            },
        });
        let node_id = if test_only {
            step_id(id)
        } else {
            attribute.id()
        };
        let kind = if is_test {
            Kind::Presence(attribute)
        } else {
            Kind::Attribute(attribute)
        };
        Ok(Node::new(node_id, kind))
    }

    /// Returns true if a selection from `operand` converts the value to a Go map and reads a field of the map.
    fn reads_native(&self, operand: ExprId) -> bool {
        match self.checked.type_at(operand) {
            Type::Struct(object) => {
                let resolver = self.env.resolver_of(&object.name);
                resolver.is_some_and(|resolver| resolver.reads_native(&object.name))
            }
            _ => false,
        }
    }

    fn plan_call(
        &mut self,
        id: ExprId,
        function: &Arc<str>,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> Planned {
        let (function, target, overloads): (Arc<str>, _, &[&OverloadRow]) =
            match self.checked.reference(id) {
                Some(Reference::Function {
                    name,
                    overloads,
                    namespaced,
                }) => ((*name).into(), target.filter(|_| !namespaced), overloads),
                _ => (Arc::clone(function), target, &[]),
            };
        let mut planned = Vec::with_capacity(args.len().saturating_add(1));
        for arg in target.iter().chain(args) {
            // If a variable of a comprehension hides the indexed variable, names in the index are resolved without the
            // variables of comprehensions.
            let is_index = matches!(&*function, "_[_]" | "_[?_]");
            let is_outside = is_index && planned.last().is_some_and(Node::has_hidden_root);
            let scopes = is_outside.then(|| std::mem::take(&mut self.scopes));
            planned.push(self.plan(*arg)?);
            if let Some(scopes) = scopes {
                self.scopes = scopes;
            }
        }
        let step = step_id(id);
        let declared = self.env.lookup_function(&function);
        let resolved = match overloads {
            [only] => Some(*only),
            _ => None,
        };
        let first = resolved.or_else(|| Some(declared?.overloads.first()?.row));
        if let Some(row) = first
            && let Binding::Operator(operator) = row.binding
        {
            let cost = self.env.library().runtime_cost(row);
            return plan_operator(step, operator, cost, planned);
        }
        self.plan_function(step, function, declared, resolved, planned)
    }

    fn plan_function(
        &self,
        step: u32,
        function: Arc<str>,
        declared: Option<&Function>,
        resolved: Option<&'static OverloadRow>,
        args: Vec<Node>,
    ) -> Planned {
        let (target, evaluates_all) = match declared {
            Some(declared) => target_of(declared, resolved, args.len()),
            None => (Target::Missing, true),
        };
        if args.is_empty() && matches!(target, Target::Missing) {
            return Err(PlanError::new(format!("no such overload: {function}()")));
        }
        let rows = || {
            let overloads = declared.into_iter().flat_map(|of| &of.overloads);
            overloads.map(|overload| overload.row)
        };
        let mut call = Call {
            function,
            args: args.into(),
            target,
            evaluates_all,
            cost: runtime_cost(self.env.library(), resolved, rows()),
            precharge_lengths: resolved.map_or(&[], |row| row.precharge_lengths),
        };
        let folds_constants = self.runtime.folds_constants();
        if let Some(row) = resolved
            && let Planning::Membership = row.planning
            && folds_constants
        {
            return optimize::membership(step, call);
        }
        if optimize::is_conversion(&call.function) {
            let node = Node::new(step, Kind::Call(Box::new(call)));
            return self.folded(node, optimize::conversion);
        }
        // Pattern compilation is a property of the function, independent of the overload.
        let pattern = rows().find_map(|row| match row.planning {
            Planning::Pattern(compile) => Some(compile),
            Planning::Plain | Planning::Membership => None,
        });
        if let Some(compile) = pattern
            && let Some(Value::String(text)) = call.args.get(1).and_then(Node::constant)
            && folds_constants
        {
            let engines = self.engines.get_or_init(|| self.runtime.engines());
            call.target = Target::Specialized(compile(text, engines)?);
            call.evaluates_all = false;
        }
        Ok(Node::new(step, Kind::Call(Box::new(call))))
    }

    /// Source: cel-go `interpreter/planner.go`, `planComprehension`.
    fn plan_fold(&mut self, step: u32, fold: &Comprehension) -> Planned {
        let slot = self.n_folds;
        self.n_folds = self.n_folds.saturating_add(1);
        let init = self.plan(fold.accu_init)?;
        let range = self.plan(fold.iter_range)?;
        let n_outer = self.scopes.len();
        let local = |variable| Local { slot, variable };
        if let Some(second) = &fold.iter_var2 {
            self.scopes
                .push((Arc::clone(second), local(LoopVariable::Second)));
        }
        self.scopes
            .push((Arc::clone(&fold.iter_var), local(LoopVariable::First)));
        self.scopes
            .push((Arc::clone(&fold.accu_var), local(LoopVariable::Accumulator)));
        let condition = self.plan(fold.loop_condition)?;
        let body = self.plan(fold.loop_step)?;
        self.scopes.truncate(n_outer);
        self.scopes
            .push((Arc::clone(&fold.accu_var), local(LoopVariable::Accumulator)));
        let result = self.plan(fold.result)?;
        self.scopes.truncate(n_outer);
        let fold = Fold {
            slot,
            has_two_vars: fold.iter_var2.is_some(),
            range,
            init,
            condition,
            step: body,
            result,
        };
        Ok(Node::new(step, Kind::Fold(Box::new(fold))))
    }
}

/// Returns the measured cost of a call. A call without a resolved overload has the cost of the first row with
/// [`CostScope::Function`]. If there is no such row, the cost is [`OPEN_CALL_COST`].
fn runtime_cost(
    library: &Library,
    resolved: Option<&OverloadRow>,
    rows: impl Iterator<Item = &'static OverloadRow>,
) -> RuntimeCost {
    if let Some(row) = resolved {
        return library.runtime_cost(row);
    }
    let mut of_function = rows.filter(|row| row.costs.scope == CostScope::Function);
    match of_function.next() {
        Some(row) => library.runtime_cost(row),
        None => RuntimeCost::Fixed(OPEN_CALL_COST),
    }
}

/// Cost of a call without a resolved overload, if the function has no row with [`CostScope::Function`].
///
/// Source: cel-go `interpreter/runtimecost.go`, `CostTracker.costCall`.
const OPEN_CALL_COST: u64 = 1;

fn plan_operator(step: u32, operator: Operator, cost: RuntimeCost, args: Vec<Node>) -> Planned {
    let kind = match operator {
        Operator::And => Kind::And(args.into()),
        Operator::Or => Kind::Or(args.into()),
        Operator::Conditional => return plan_conditional(step, args),
        Operator::Equal => Kind::Equal(operands(args)?, cost),
        Operator::NotEqual => Kind::NotEqual(operands(args)?, cost),
        Operator::Index => return plan_index(step, args, false),
        Operator::OptionalIndex => return plan_index(step, args, true),
        Operator::OptionalOr(receiver) => Kind::OptionalOr(operands(args)?, receiver),
        Operator::OptionalOrValue(receiver) => Kind::OptionalOrValue(operands(args)?, receiver),
        Operator::NotStrictlyFalse => {
            let [arg] = *operands::<1>(args)?;
            Kind::NotStrictlyFalse(Box::new(arg), cost)
        }
    };
    Ok(Node::new(step, kind))
}

fn attribute_node(attribute: Box<Attribute>) -> Node {
    Node::new(attribute.id(), Kind::Attribute(attribute))
}

/// Source: cel-go `interpreter/planner.go`, `planCallIndex`.
fn plan_index(step: u32, args: Vec<Node>, optional: bool) -> Planned {
    let [operand, index] = *operands::<2>(args)?;
    let (mut attribute, is_test) = Planner::into_attribute(operand);
    let key = match index.kind {
        Kind::Constant(value) => {
            if !matches!(
                value,
                Value::String(_)
                    | Value::Int(_)
                    | Value::Uint(_)
                    | Value::Bool(_)
                    | Value::Double(_)
            ) {
                return Err(PlanError::new(format!(
                    "invalid qualifier type: {}",
                    value.go_type()
                )));
            }
            if is_test {
                QualifierKey::Presence(value)
            } else {
                QualifierKey::Constant(value)
            }
        }
        Kind::Attribute(key) | Kind::Presence(key) => QualifierKey::Attribute(Arc::new(*key)),
        kind => QualifierKey::Node(Arc::new(Node::new(index.id, kind))),
    };
    attribute.qualify(Qualifier {
        id: step,
        optional,
        key,
    });
    Ok(if is_test {
        let node_id = attribute.id();
        Node::new(node_id, Kind::Presence(attribute))
    } else {
        attribute_node(attribute)
    })
}

/// Source: cel-go `interpreter/planner.go`, `planCallConditional`.
fn plan_conditional(step: u32, args: Vec<Node>) -> Planned {
    let [condition, truthy, falsy] = *operands::<3>(args)?;
    let (truthy, _) = Planner::into_attribute(truthy);
    let (falsy, _) = Planner::into_attribute(falsy);
    let conditional = ConditionalRoot {
        condition,
        truthy: *truthy,
        falsy: *falsy,
    };
    let root = Root::Conditional(step, Box::new(conditional));
    Ok(attribute_node(Box::new(Attribute::new(root))))
}

/// Returns the implementation that a call of `function` invokes. Also returns true if all arguments are evaluated
/// even if one of them fails.
///
/// Source: cel-go `interpreter/planner.go`, `planCall`; `common/decls/decls.go`, `FunctionDecl.Bindings`.
fn target_of(function: &Function, resolved: Option<&OverloadRow>, n_args: usize) -> (Target, bool) {
    let guard = |overload: &Overload| {
        let unguarded = overload.row.unguarded;
        (!unguarded).then(|| Arc::new(overload.clone()))
    };
    let mut bound = Vec::new();
    for candidate in &function.overloads {
        match candidate.row.binding {
            Binding::None | Binding::Operator(_) => {}
            Binding::Singleton(implementation, traits) => {
                return (Target::Singleton(implementation, traits), n_args == 2);
            }
            Binding::Overload(implementation) => {
                if Some(candidate.row) == resolved {
                    let evaluates_all = n_args == 2 && !candidate.row.in_order;
                    return (
                        Target::Overload(implementation, guard(candidate)),
                        evaluates_all,
                    );
                }
                bound.push((implementation, candidate));
            }
        }
    }
    match &*bound {
        [] => (Target::Missing, true),
        [(implementation, only)] => {
            let evaluates_all = n_args == 2 && !only.row.in_order;
            (
                Target::Overload(*implementation, guard(only)),
                evaluates_all,
            )
        }
        several => {
            let dispatched = several
                .iter()
                .map(|(implementation, candidate)| {
                    let overload = Arc::new((*candidate).clone());
                    (*implementation, overload, candidate.row.unguarded)
                })
                .collect();
            (Target::Dispatch(dispatched), false)
        }
    }
}
