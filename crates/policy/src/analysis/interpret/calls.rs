//! Interprets operators, and the functions whose result types do not follow from their signatures.

use std::sync::Arc;

use cel::ast::{Expr, ExprId, Literal};
use cel::diagnostic::DiagnosticKind;
use cel::types::Type;

use super::expression::Interpreter;
use super::presence;
use super::value::{AbstractType, AbstractValue, Alternative, Const};
use super::{Incomparable, constants};

/// Maximum length of a concatenation of constants. Longer results are not tracked as constants.
const MAX_CONST_LEN: usize = 1024;

/// Returns true if a failure that occurs only for `alternative` is not reported. This is the case for a default, and
/// for null if the value has other alternatives.
fn is_weak(alternative: &Alternative, n_alternatives: usize) -> bool {
    alternative.is_default || alternative.shape.is_null() && n_alternatives > 1
}

/// Returns the type to report: the first one that does not satisfy `fits`. `None` if no type has to be reported.
fn misfit(value: &AbstractValue, fits: impl Fn(&AbstractType) -> bool) -> Option<&AbstractType> {
    let alternatives = value.alternatives();
    let misfit = alternatives
        .iter()
        .find(|alternative| !fits(&alternative.shape) && !is_weak(alternative, alternatives.len()));
    match misfit {
        Some(alternative) => Some(&alternative.shape),
        None if !alternatives.is_empty()
            && alternatives
                .iter()
                .all(|alternative| !fits(&alternative.shape)) =>
        {
            alternatives.first().map(|alternative| &alternative.shape)
        }
        None => None,
    }
}

fn is_bool(shape: &AbstractType) -> bool {
    *shape == AbstractType::Plain(Type::Bool)
}

impl Interpreter<'_> {
    pub(super) fn eval_call(
        &mut self,
        id: ExprId,
        function: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> AbstractValue {
        match (function, target, args) {
            ("_&&_", None, &[left, right]) => self.eval_logical(left, right, false),
            ("_||_", None, &[left, right]) => self.eval_logical(left, right, true),
            ("_?_:_", None, &[condition, then, otherwise]) => {
                self.eval_conditional(id, condition, then, otherwise)
            }
            ("!_", None, &[operand]) => {
                let value = self.eval(operand);
                if value.is_bottom() {
                    return self.no_value(id);
                }
                if let Some(shape) = misfit(&value, is_bool) {
                    let types = [shape.to_type()];
                    self.report_overload(id, function, false, types.into());
                }
                AbstractValue::bool()
                    .with_constant(value.as_bool().map(|value| Const::Bool(!value)))
            }
            ("@not_strictly_false", None, &[operand]) => {
                let before = self.mark();
                let value = self.eval(operand);
                self.discard_since(before);
                AbstractValue::bool().with_constant(value.as_bool().map(Const::Bool))
            }
            ("_==_" | "_!=_", None, &[left, right]) => {
                let sides = (self.eval(left), self.eval(right));
                if sides.0.is_bottom() || sides.1.is_bottom() {
                    return self.no_value(id);
                }
                let operator = if function == "_!=_" { "!=" } else { "==" };
                self.record_comparison(id, operator, &sides.0, &sides.1);
                let equal = equals(&sides.0, &sides.1);
                // If `==` may fail, its result is unknown. `!=` is true if the comparison fails.
                let equal =
                    equal.filter(|_| function == "_!=_" || !self.may_fail(&sides.0, &sides.1));
                let wanted = function == "_==_";
                let constant = equal.map(|equal| Const::Bool(equal == wanted));
                if constant.is_none() && !is_comparable(&sides.0, &sides.1) {
                    let types = [sides.0.to_type(), sides.1.to_type()];
                    self.report_overload(id, function, false, types.into());
                }
                let constant = constant.or_else(|| self.fold_closed(id));
                AbstractValue::bool().with_constant(constant)
            }
            ("@in", None, &[element, container]) => self.eval_in(id, element, container),
            ("_[_]", None, &[container, index]) => {
                let (container, index) = (self.eval(container), self.eval(index));
                self.eval_index(id, &container, &index)
            }
            ("_[?_]", None, &[container, index]) => {
                let (container, index) = (self.eval(container), self.eval(index));
                self.eval_optional_index(id, &container, &index)
            }
            ("_?._", None, &[operand, field]) => {
                let Expr::Literal(Literal::String(field)) = self.ast.expr(field) else {
                    return AbstractValue::optional(AbstractValue::top());
                };
                if let Some(value) = self.read_variable(operand, field) {
                    return AbstractValue::optional(value);
                }
                let value = self.eval(operand);
                self.select_optional(id, &value, field)
            }
            ("_+_", None, &[left, right]) => self.eval_sum(id, left, right),
            ("orValue" | "or", Some(receiver), &[default]) => {
                self.eval_default(id, (receiver, default), function == "or")
            }
            ("dyn", None, &[operand]) => self.eval(operand),
            ("type", None, &[operand]) => {
                let value = self.eval(operand);
                let name = match value.alternatives() {
                    [only] => only.shape.type_name(),
                    _ => None,
                };
                AbstractValue::plain(Type::Type(None)).with_constant(name.map(Const::TypeName))
            }
            _ => self.eval_function(id, function, target, args),
        }
    }

    /// Interprets `&&` or `||`. An operand with the value `absorbing` determines the result.
    fn eval_logical(
        &mut self,
        left_id: ExprId,
        right_id: ExprId,
        absorbing: bool,
    ) -> AbstractValue {
        let decided = AbstractValue::constant(Const::Bool(absorbing));
        self.n_conditions += 1;
        let before = self.mark();
        let left = self.eval(left_id);
        let between = self.mark();
        if left.as_bool() == Some(absorbing) && !self.has_issues_between(before, between) {
            self.n_conditions -= 1;
            return decided;
        }
        self.expect_bool(left_id, &left);
        let between = self.mark();
        // If the left operand is absorbing, the value of the right operand has no effect. The right operand is
        // therefore interpreted under the assumption that the left operand is not absorbing. This assumption may refine
        // values.
        let outer = self.assume(left_id, !absorbing);
        let right = self.eval(right_id);
        self.forget(outer);
        if right.as_bool() == Some(absorbing) {
            self.n_conditions -= 1;
            self.take_back_between(before, between);
            return decided;
        }
        if self.has_issues_between(before, between) {
            let outer = self.assume(right_id, !absorbing);
            if self.knows_more_than(outer) {
                self.take_back_between(before, between);
                self.eval(left_id);
            }
            self.forget(outer);
        }
        self.n_conditions -= 1;
        self.expect_bool(right_id, &right);
        let neutral = Some(!absorbing);
        let is_neutral = |value: &AbstractValue| value.as_bool() == neutral;
        match (left.is_bottom(), right.is_bottom()) {
            (false, false) if is_neutral(&left) && is_neutral(&right) => {
                AbstractValue::constant(Const::Bool(!absorbing))
            }
            (false, false) => AbstractValue::bool(),
            // If one operand fails, the result is an error unless the other operand absorbs it.
            (true, false) if !is_neutral(&right) => decided,
            (false, true) if !is_neutral(&left) => decided,
            _ => AbstractValue::bottom(),
        }
    }

    fn expect_bool(&mut self, id: ExprId, value: &AbstractValue) {
        if let Some(shape) = misfit(value, is_bool) {
            let (expected, actual) = (Type::Bool, shape.to_type());
            self.report(id, DiagnosticKind::TypeMismatch { expected, actual });
        }
    }

    fn eval_conditional(
        &mut self,
        id: ExprId,
        condition_id: ExprId,
        then_id: ExprId,
        otherwise_id: ExprId,
    ) -> AbstractValue {
        let condition = self.eval(condition_id);
        if condition.is_bottom() {
            return self.no_value(id);
        }
        if self.has_failed(condition_id) {
            return AbstractValue::top();
        }
        match condition.as_bool() {
            Some(true) => return self.eval(then_id),
            Some(false) => return self.eval(otherwise_id),
            None => {}
        }
        self.n_conditions += 1;
        let outer = self.assume(condition_id, true);
        let mut then = self.eval(then_id);
        self.forget(outer);
        let outer = self.assume(condition_id, false);
        let mut otherwise = self.eval(otherwise_id);
        self.forget(outer);
        self.n_conditions -= 1;
        if let Some(shape) = misfit(&condition, is_bool) {
            let types = [shape.to_type(), then.to_type(), otherwise.to_type()];
            self.report_overload(id, "_?_:_", false, types.into());
        }
        let is_literal = |id| presence::is_literal(self.ast, id);
        match presence::presence(self.ast, condition_id, &self.facts.variables) {
            Some(true) => otherwise = otherwise.into_default(),
            Some(false) => then = then.into_default(),
            None if is_literal(then_id) && !is_literal(otherwise_id) => then = then.into_default(),
            None if is_literal(otherwise_id) && !is_literal(then_id) => {
                otherwise = otherwise.into_default();
            }
            None => {}
        }
        then.join(&otherwise)
    }

    /// Records whether the operands of the comparison `id` can be equal, according to their types.
    fn record_comparison(
        &mut self,
        id: ExprId,
        operator: &str,
        left: &AbstractValue,
        right: &AbstractValue,
    ) {
        if operator != "in" && is_optional_and_null(left, right) {
            let is_not = operator == "!=";
            let message = format!("an optional is never equal to null: this is always {is_not}");
            let operands = [left, right].map(|it| category(it).unwrap_or("null"));
            let incomparable = Incomparable { message, operands };
            self.outcome.incomparable.push((id, incomparable));
            return;
        }
        let (Some(first), Some(second)) = (category(left), category(right)) else {
            self.outcome.comparable.push(id);
            return;
        };
        if first == second {
            self.outcome.comparable.push(id);
            return;
        }
        let [left_text, right_text] = [first, second].map(with_article);
        let message = match operator {
            "in" => format!("{left_text} is never in a list of {second}s: this is always false"),
            "!=" => format!("{left_text} is never equal to {right_text}: this is always true"),
            _ if self.may_fail(left, right) => {
                format!("{left_text} is never equal to {right_text}: this is never true")
            }
            _ => format!("{left_text} is never equal to {right_text}: this is always false"),
        };
        let operands = [first, second];
        let incomparable = Incomparable { message, operands };
        self.outcome.incomparable.push((id, incomparable));
    }

    /// Returns true if `left == right` may fail because `left` is a Go value and `right` has a different type.
    fn may_fail(&self, left: &AbstractValue, right: &AbstractValue) -> bool {
        self.facts.reads_go_values
            && matches!(category(left), Some("map" | "list"))
            && left.as_const().is_none()
            && are_incomparable(left, right)
    }

    fn eval_in(&mut self, id: ExprId, element: ExprId, container: ExprId) -> AbstractValue {
        let (element, container) = (self.eval(element), self.eval(container));
        if element.is_bottom() || container.is_bottom() {
            return self.no_value(id);
        }
        let fits = |shape: &AbstractType| {
            !matches!(shape, AbstractType::Plain(_) | AbstractType::Optional(_))
        };
        if let Some(shape) = misfit(&container, fits) {
            let types = [element.to_type(), shape.to_type()];
            self.report_overload(id, "@in", false, types.into());
            return AbstractValue::bool();
        }
        match container.alternatives() {
            [only] if !container.is_top() => match &only.shape {
                AbstractType::List(elem, _) if !elem.is_bottom() => {
                    self.record_comparison(id, "in", &element, elem);
                }
                _ => self.outcome.comparable.push(id),
            },
            _ => self.outcome.comparable.push(id),
        }
        let answer = match (
            element.as_const(),
            container.as_const(),
            container.alternatives(),
        ) {
            (Some(element), Some(Const::List(values)), _) => Some(values.contains(element)),
            (_, _, [only]) => match (&only.shape, element.as_const()) {
                (AbstractType::List(elem, _), _)
                    if elem.is_bottom() || are_incomparable(&element, elem) =>
                {
                    Some(false)
                }
                (AbstractType::Record(entries), Some(Const::Text(key))) => {
                    Some(entries.iter().any(|(name, _)| name == key))
                }
                (shape @ AbstractType::Object(_), Some(Const::Text(key))) => {
                    Self::holds(shape, key)
                }
                _ => None,
            },
            _ => None,
        };
        AbstractValue::bool().with_constant(answer.map(Const::Bool))
    }

    fn eval_index(
        &mut self,
        id: ExprId,
        container: &AbstractValue,
        index: &AbstractValue,
    ) -> AbstractValue {
        if container.is_top() || container.is_bottom() {
            return container.clone();
        }
        if let (Some(Const::List(values)), Some(Const::Int(n))) =
            (container.as_const(), index.as_const())
        {
            let value = usize::try_from(*n).ok().and_then(|n| values.get(n));
            return value.map_or_else(AbstractValue::top, |value| {
                AbstractValue::constant(value.clone())
            });
        }
        if let ([only], Some(Const::Int(n))) = (container.alternatives(), index.as_const())
            && let AbstractType::List(_, Some(items)) = &only.shape
            && let Some(item) = usize::try_from(*n).ok().and_then(|n| items.get(n))
        {
            let item = item.clone();
            return if only.is_default {
                item.into_default()
            } else {
                item
            };
        }
        // A negative index fails for every list. Expressions that depend on the result are not reached.
        if let (Some(Const::Int(..0)), [only]) = (index.as_const(), container.alternatives())
            && matches!(only.shape, AbstractType::List(_, _))
        {
            return AbstractValue::bottom();
        }
        if let Some(Const::Text(key)) = index.as_const()
            && container.alternatives().iter().all(|alternative| {
                matches!(
                    alternative.shape,
                    AbstractType::Object(_) | AbstractType::Record(_)
                )
            })
        {
            return self.select(id, container, key);
        }
        let fits = |shape: &AbstractType| is_indexable(shape, index) && !shape.is_null();
        if let Some(shape) = misfit(container, fits) {
            let types = [shape.to_type(), index.to_type()];
            self.report_overload(id, "_[_]", false, types.into());
            return AbstractValue::top();
        }
        if has_no_such_key(container, index) {
            return AbstractValue::optional(AbstractValue::bottom());
        }
        indexed(container)
    }

    fn eval_optional_index(
        &mut self,
        id: ExprId,
        container: &AbstractValue,
        index: &AbstractValue,
    ) -> AbstractValue {
        if container.is_top() {
            return AbstractValue::optional(container.clone());
        }
        if let Some(Const::Text(key)) = index.as_const() {
            return self.select_optional(id, container, key);
        }
        let fits = |shape: &AbstractType| {
            !matches!(shape, AbstractType::List(_, _)) || is_indexable(shape, index)
        };
        if let Some(shape) = misfit(container, fits) {
            let types = [shape.to_type(), index.to_type()];
            self.report_overload(id, "_[?_]", false, types.into());
        }
        if has_no_such_key(container, index) {
            return AbstractValue::optional(AbstractValue::bottom());
        }
        let value = indexed(container);
        match value.alternatives() {
            [only] if matches!(only.shape, AbstractType::Optional(_)) => value,
            _ => AbstractValue::optional(value.with_constant(None)),
        }
    }

    fn eval_sum(&mut self, id: ExprId, left: ExprId, right: ExprId) -> AbstractValue {
        let (left, right) = (self.eval(left), self.eval(right));
        let is_json = left.is_json() && right.is_json();
        let constant = match (left.as_const(), right.as_const()) {
            (Some(Const::Text(left)), Some(Const::Text(right)))
                if left.len() + right.len() <= MAX_CONST_LEN =>
            {
                Some(Const::Text(Arc::from(format!("{left}{right}"))))
            }
            (Some(Const::List(left)), Some(Const::List(right)))
                if left.len() + right.len() <= MAX_CONST_LEN =>
            {
                Some(Const::List(left.iter().chain(&**right).cloned().collect()))
            }
            _ => None,
        };
        let lists = |value: &AbstractValue| match value.alternatives() {
            [only] => match &only.shape {
                AbstractType::List(elem, _) => Some(elem.as_ref().clone()),
                _ => None,
            },
            _ => None,
        };
        let sum = match (lists(&left), lists(&right)) {
            (Some(left), Some(right)) => AbstractValue::list(left.join(&right)),
            _ => match self.facts.env.lookup_function("_+_") {
                Some(function) => self.apply(id, function, false, &[left, right]),
                None => AbstractValue::top(),
            },
        };
        let sum = if is_json { sum.into_json() } else { sum };
        match constant {
            Some(constant) => sum.with_constant(Some(constant)),
            None => sum,
        }
    }

    /// Interprets `receiver.orValue(default)` or `receiver.or(default)`. A receiver that is not an optional is returned
    /// unchanged.
    fn eval_default(
        &mut self,
        id: ExprId,
        (receiver, default_id): (ExprId, ExprId),
        is_optional: bool,
    ) -> AbstractValue {
        let value = self.eval(receiver);
        self.record_receiver(id, receiver, &value);
        self.n_conditions += 1;
        let before = self.mark();
        let default = self.eval(default_id);
        self.n_conditions -= 1;
        if value.is_top() {
            return value;
        }
        let mut result = AbstractValue::bottom();
        let mut needs_default = false;
        for alternative in value.alternatives() {
            let given = match &alternative.shape {
                AbstractType::Optional(inner) => {
                    needs_default |= inner.as_const().is_none();
                    if is_optional && !inner.is_bottom() {
                        AbstractValue::optional(inner.as_ref().clone())
                    } else {
                        inner.as_ref().clone()
                    }
                }
                shape => AbstractValue::new(shape.clone()),
            };
            result = result.join(&if alternative.is_default {
                given.into_default()
            } else {
                given
            });
        }
        if !needs_default {
            self.discard_since(before);
            return result;
        }
        if result.is_bottom() {
            default
        } else {
            result.join(&default.into_default())
        }
    }

    /// Records whether `receiver` is an optional. `id` is the call of `or` or `orValue`.
    fn record_receiver(&mut self, id: ExprId, receiver: ExprId, value: &AbstractValue) {
        let has_failed = self.has_failed(receiver);
        let outcome = &mut self.outcome;
        // If `a` in `a.or(b).orValue(c)` is not an optional, neither is `a.or(b)`. Only the first call is reported.
        let is_consequence = outcome.non_optional.contains(&receiver);
        if has_failed || value.is_bottom() || is_consequence {
            return;
        }
        let calls = match value.is_optional() {
            Some(false) => &mut outcome.non_optional,
            Some(true) | None => &mut outcome.maybe_optional,
        };
        if !calls.contains(&id) {
            calls.push(id);
        }
    }

    fn eval_function(
        &mut self,
        id: ExprId,
        name: &str,
        target: Option<ExprId>,
        args: &[ExprId],
    ) -> AbstractValue {
        let env = self.facts.env;
        let mut values: Vec<AbstractValue> = Vec::with_capacity(args.len() + 1);
        let namespaced = target.and_then(|target| {
            let prefix = self.ast.qualified_name(target)?;
            let prefix = prefix.strip_prefix('.').unwrap_or(&prefix);
            let first = prefix.split('.').next().unwrap_or_default();
            if self.is_scoped(first) {
                return None;
            }
            env.lookup_function(&format!("{prefix}.{name}"))
        });
        let (function, is_member) = match (namespaced, target) {
            (Some(function), _) => (Some(function), false),
            (None, Some(target)) => {
                let receiver = self.eval(target);
                values.push(receiver);
                (env.lookup_function(name), true)
            }
            (None, None) => (
                env.lookup_function(name.strip_prefix('.').unwrap_or(name)),
                false,
            ),
        };
        for &arg in args {
            let value = self.eval(arg);
            values.push(value);
        }
        let Some(function) = function else {
            return AbstractValue::top();
        };
        if let Some(result) = flattened(function.name, &values) {
            return result;
        }
        let result = self.apply(id, function, is_member, &values);
        let constant = match (function.name, &*values) {
            ("optional.none", []) => return AbstractValue::optional(AbstractValue::bottom()),
            ("optional.of", [value]) => return AbstractValue::optional(value.clone()),
            ("hasValue", [value]) => match value.alternatives() {
                [only] => match &only.shape {
                    AbstractType::Optional(inner) if inner.is_bottom() => Some(Const::Bool(false)),
                    AbstractType::Optional(inner) if inner.as_const().is_some() => {
                        Some(Const::Bool(true))
                    }
                    _ => None,
                },
                _ => None,
            },
            _ => self.fold_call(id, function.name, is_member, &values),
        };
        match constant {
            Some(constant) => result.with_constant(Some(constant)),
            None => result,
        }
    }

    fn fold_call(
        &mut self,
        id: ExprId,
        function: &str,
        is_member: bool,
        values: &[AbstractValue],
    ) -> Option<Const> {
        let Some(args) = values
            .iter()
            .map(AbstractValue::as_const)
            .collect::<Option<Vec<_>>>()
        else {
            return self.fold_closed(id);
        };
        if args.is_empty() || !self.pay(constants::STEPS) {
            return None;
        }
        constants::call(self.facts.env, function, is_member, &args)
    }

    /// Evaluates an expression that consists only of calls and literals, such as `isSemver('1.2.3')`.
    fn fold_closed(&mut self, id: ExprId) -> Option<Const> {
        let tree = constants::closed(self.ast, id)?;
        self.pay(constants::STEPS).then_some(())?;
        constants::evaluate(self.facts.env, tree)
    }
}

/// Returns the category of a value in comparisons. Values of different categories are never equal. All numbers have the
/// same category. `None` if the category is unknown.
fn category(value: &AbstractValue) -> Option<&'static str> {
    let [only] = value.alternatives() else {
        return None;
    };
    match &only.shape {
        _ if value.is_top() => None,
        AbstractType::Plain(Type::Int | Type::Uint | Type::Double) => Some("number"),
        AbstractType::Plain(Type::Timestamp) => Some("timestamp"),
        AbstractType::Plain(Type::Duration) => Some("duration"),
        AbstractType::Optional(_) => Some("optional"),
        shape => shape.type_name().filter(|name| *name != "null_type"),
    }
}

fn is_optional_and_null(left: &AbstractValue, right: &AbstractValue) -> bool {
    let name = |value: &AbstractValue| match value.alternatives() {
        [only] if !value.is_top() => only.shape.type_name(),
        _ => None,
    };
    let is_pair =
        |one, other| category(one) == Some("optional") && name(other) == Some("null_type");
    is_pair(left, right) || is_pair(right, left)
}

fn with_article(category: &str) -> String {
    let article = if category == "optional" { "an" } else { "a" };
    format!("{article} {category}")
}

/// Returns true if values of these types are never equal. A value with a declared type may also be null, but null is
/// not equal to the other value either.
fn are_incomparable(left: &AbstractValue, right: &AbstractValue) -> bool {
    matches!((category(left), category(right)), (Some(left), Some(right)) if left != right)
}

/// Types with a strict comparison: comparing one of their values with a value of a different type fails.
const STRICT: [&str; 5] = [
    "kubernetes.URL",
    "kubernetes.Quantity",
    "kubernetes.Semver",
    "net.IP",
    "net.CIDR",
];

/// Returns true if a comparison of `left` with `right` does not fail. It fails if `left` has a type in [`STRICT`] and
/// `right` has a different type.
///
/// Source: `k8s.io/apiserver` `pkg/cel/url.go`, `URL.Equal`, and the same method of the other types.
fn is_comparable(left: &AbstractValue, right: &AbstractValue) -> bool {
    let opaque = |value: &AbstractValue| match value.alternatives() {
        [only] if !value.is_top() => match &only.shape {
            AbstractType::Plain(Type::Opaque(type_)) => Some(Arc::clone(&type_.name)),
            AbstractType::Plain(Type::Struct(type_)) => Some(Arc::clone(&type_.name)),
            _ => None,
        },
        _ => None,
    };
    match opaque(left) {
        Some(name) if STRICT.contains(&&*name) => {
            right.is_top()
                || right.alternatives().len() != 1
                || opaque(right).is_some_and(|other| other == name)
        }
        _ => true,
    }
}

/// Returns the result of `flatten` for a list without nested lists, which is the list itself. The signature of
/// `flatten` does not allow such a list.
///
/// Source: cel-go `ext/lists.go`, `flatten`.
fn flattened(function: &str, values: &[AbstractValue]) -> Option<AbstractValue> {
    let [list, ..] = values else { return None };
    let [only] = list.alternatives() else {
        return None;
    };
    let AbstractType::List(elem, _) = &only.shape else {
        return None;
    };
    let is_flat = !elem
        .alternatives()
        .iter()
        .any(|alternative| matches!(alternative.shape, AbstractType::List(_, _)));
    (function == "flatten" && is_flat && !elem.is_top()).then(|| list.clone().with_constant(None))
}

/// Returns true if the map only has string keys and the index is not a string. The map then has no entry for the index.
fn has_no_such_key(container: &AbstractValue, index: &AbstractValue) -> bool {
    let is_keyed = |value: &AbstractValue| matches!(value.alternatives(), [only] if !value.is_top() && matches!(only.shape, AbstractType::Map(_, true)));
    let is_other = category(index).is_some_and(|category| category != "string");
    is_other
        && match container.alternatives() {
            [only] if !container.is_top() => match &only.shape {
                AbstractType::Optional(inner) => is_keyed(inner),
                _ => is_keyed(container),
            },
            _ => false,
        }
}

/// Returns true if the values are certainly equal, and false if they are certainly unequal. `None` if their equality is
/// unknown.
fn equals(left: &AbstractValue, right: &AbstractValue) -> Option<bool> {
    if let (Some(left), Some(right)) = (left.as_const(), right.as_const()) {
        return Some(left == right);
    }
    let contents = |value: &AbstractValue| match value.alternatives() {
        [only] if !value.is_top() => match &only.shape {
            AbstractType::Optional(inner) if inner.is_bottom() => Some(None),
            AbstractType::Optional(inner) => inner.as_const().cloned().map(Some),
            _ => None,
        },
        _ => None,
    };
    if let (Some(left), Some(right)) = (contents(left), contents(right)) {
        return Some(left == right);
    }
    if are_incomparable(left, right) {
        return Some(false);
    }
    let is_root = |value: &AbstractValue| matches!(value.alternatives(), [only] if matches!(&only.shape, AbstractType::Object(object) if object.known.is_some()));
    (left.is_null() && is_root(right) || right.is_null() && is_root(left)).then_some(false)
}

/// Returns true if a value of this type can be indexed with `index`.
fn is_indexable(shape: &AbstractType, index: &AbstractValue) -> bool {
    let number = |shape: &AbstractType| {
        matches!(
            shape,
            AbstractType::Plain(Type::Int | Type::Uint | Type::Double)
        )
    };
    let text = |shape: &AbstractType| *shape == AbstractType::Plain(Type::String);
    match shape {
        AbstractType::List(_, _) => misfit(index, number).is_none(),
        AbstractType::Object(_) | AbstractType::Record(_) | AbstractType::Map(_, true) => {
            misfit(index, text).is_none()
        }
        AbstractType::Map(_, false) => true,
        // An optional index into a map does not fail. If the map lacks the key, the result is an empty optional.
        AbstractType::Optional(inner) => inner.alternatives().iter().all(|alternative| {
            !matches!(alternative.shape, AbstractType::List(_, _))
                || is_indexable(&alternative.shape, index)
        }),
        AbstractType::Plain(_) => false,
    }
}

/// Returns the join of all values in the container.
fn indexed(container: &AbstractValue) -> AbstractValue {
    if container.is_top() {
        return container.clone();
    }
    let mut result = AbstractValue::bottom();
    for alternative in container.alternatives() {
        let value = match &alternative.shape {
            AbstractType::List(value, _) | AbstractType::Map(value, _) => value.as_ref().clone(),
            AbstractType::Record(entries) => entries
                .iter()
                .fold(AbstractValue::bottom(), |joined, (_, value)| {
                    joined.join(value)
                }),
            AbstractType::Optional(inner) => {
                AbstractValue::optional(indexed(inner).with_constant(None))
            }
            AbstractType::Object(_) => AbstractValue::json(),
            AbstractType::Plain(_) => continue,
        };
        result = result.join(&if alternative.is_default {
            value.into_default()
        } else {
            value
        });
    }
    result
}
