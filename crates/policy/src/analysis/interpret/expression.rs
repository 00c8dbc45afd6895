//! The transfer functions of the abstract interpreter, one per type of expression.

use std::sync::Arc;

use cel::ast::{Ast, Expr, ExprId, Literal, MapEntry};
use cel::diagnostic::{Candidates, DiagnosticKind, UndefinedField};
use cel::env::Ident;
use cel::interrupt::{checkpoint, checkpoint_of};
use cel::types::Type;

use super::narrow::Refinement;
use super::value::{AbstractType, AbstractValue, Const};
use super::{Facts, Interpretation, Issue};
use crate::reads::{Input, is_input};

pub(super) struct Interpreter<'a> {
    pub(super) ast: &'a Ast,
    pub(super) facts: &'a Facts<'a>,
    /// The variables of the enclosing comprehensions. The innermost one is the last.
    pub(super) scopes: Vec<(Arc<str>, AbstractValue)>,
    steps_left: u32,
    /// The number of enclosing conditions. A subexpression within a condition is not evaluated for every request.
    pub(super) n_conditions: u32,
    /// The refinements of values by the enclosing conditions, outermost first.
    pub(super) refinements: Vec<Refinement>,
    /// The selections whose latest interpretation failed for all alternatives.
    failed: Vec<ExprId>,
    /// The object literals that are not interpreted yet, each with the type name that the enclosing literal requires
    /// for it.
    pub(super) required_names: Vec<(ExprId, String)>,
    pub(super) outcome: Interpretation,
}

/// Maximum number of tracked entries of a map literal. In a larger literal, entries are not tracked individually.
const MAX_ENTRIES: usize = 32;

/// Maximum number of recent reads that are searched for duplicates.
const MAX_SEARCHED: usize = 64;

enum Selected {
    Value(AbstractValue),
    /// The operand is null, which has no fields.
    Null,
    /// The type of the operand does not have the field.
    Unfit(DiagnosticKind),
}

/// A position in the lists of the outcome. Later entries can be discarded.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    issues: usize,
    reads: usize,
    null: usize,
}

impl<'a> Interpreter<'a> {
    pub(super) fn new(ast: &'a Ast, facts: &'a Facts<'a>, steps: u32) -> Self {
        Self {
            ast,
            facts,
            scopes: Vec::new(),
            steps_left: steps,
            n_conditions: 0,
            refinements: Vec::new(),
            failed: Vec::new(),
            required_names: Vec::new(),
            outcome: Interpretation {
                value: AbstractValue::top(),
                issues: Vec::new(),
                reads: Vec::new(),
                absent: Vec::new(),
                present: Vec::new(),
                null: Vec::new(),
                incomparable: Vec::new(),
                comparable: Vec::new(),
                non_optional: Vec::new(),
                maybe_optional: Vec::new(),
                visited: vec![false; ast.len()],
                suppressed: Vec::new(),
                gave_up: false,
            },
        }
    }

    /// Interprets the whole expression. Returns the outcome and the number of remaining steps.
    pub(super) fn run(mut self) -> (Interpretation, u32) {
        self.outcome.value = self.eval(self.ast.root());
        if self.outcome.gave_up {
            self.outcome.value = AbstractValue::top();
            self.outcome.issues.clear();
            self.outcome.null.clear();
        }
        (self.outcome, self.steps_left)
    }

    pub(super) fn mark(&self) -> Mark {
        Mark {
            issues: self.outcome.issues.len(),
            reads: self.outcome.reads.len(),
            null: self.outcome.null.len(),
        }
    }

    /// Discards the issues, reads and selections from null since `mark`, because their errors are absorbed.
    pub(super) fn discard_since(&mut self, mark: Mark) {
        let dropped = self
            .outcome
            .issues
            .drain(mark.issues.min(self.outcome.issues.len())..);
        self.outcome
            .suppressed
            .extend(dropped.map(|issue| issue.id));
        self.outcome.reads.truncate(mark.reads);
        self.outcome.null.truncate(mark.null);
    }

    /// Discards the issues, reads and selections from null between `start` and `end`, because their errors are
    /// absorbed.
    pub(super) fn take_back_between(&mut self, start: Mark, end: Mark) {
        let outcome = &mut self.outcome;
        let dropped = drop_range(&mut outcome.issues, start.issues, end.issues);
        outcome
            .suppressed
            .extend(dropped.iter().map(|issue| issue.id));
        drop_range(&mut outcome.reads, start.reads, end.reads);
        drop_range(&mut outcome.null, start.null, end.null);
    }

    pub(super) fn has_issues_between(&self, start: Mark, end: Mark) -> bool {
        let last = end.issues.min(self.outcome.issues.len());
        start.issues < last
    }

    /// Returns true if every value of the type has the key `field`, and false if no value has it. `None` if this is
    /// unknown.
    pub(super) fn holds(shape: &AbstractType, field: &str) -> Option<bool> {
        test_shape(shape, field).ok().flatten()
    }

    pub(super) fn report(&mut self, id: ExprId, kind: DiagnosticKind) {
        let issue = Issue {
            id,
            kind,
            note: None,
        };
        checkpoint_of(self.outcome.issues.len() / 16);
        if !self.outcome.issues.contains(&issue) {
            self.outcome.issues.push(issue);
        }
    }

    /// Returns bottom for `id`, which is not evaluated because an operand has no value.
    pub(super) fn no_value(&mut self, id: ExprId) -> AbstractValue {
        self.outcome.suppressed.push(id);
        AbstractValue::bottom()
    }

    /// Records a selection from null. Selections within a condition are not recorded.
    pub(super) fn report_null(&mut self, id: ExprId) {
        if self.n_conditions == 0 {
            self.outcome.null.push(id);
        }
    }

    /// Takes `steps` for additional work. If fewer steps are left, takes none and returns false.
    pub(super) fn pay(&mut self, steps: u32) -> bool {
        let left = self.steps_left.checked_sub(steps);
        self.steps_left = left.unwrap_or(self.steps_left);
        left.is_some()
    }

    pub(super) fn eval(&mut self, id: ExprId) -> AbstractValue {
        checkpoint();
        match self.steps_left.checked_sub(1) {
            Some(left) => self.steps_left = left,
            None => {
                self.outcome.gave_up = true;
                return AbstractValue::top();
            }
        }
        if let Some(visited) = self.outcome.visited.get_mut(id.index()) {
            *visited = true;
        }
        checkpoint_of(self.failed.len() / 64);
        self.failed.retain(|failed| *failed != id);
        match self.ast.expr(id) {
            Expr::Unspecified => AbstractValue::top(),
            Expr::Literal(literal) => literal_value(literal),
            Expr::Ident(name) => {
                let value = self.eval_ident(name);
                self.refined_value(id).unwrap_or(value)
            }
            Expr::Select {
                operand,
                field,
                test_only: true,
            } => self.eval_test(id, *operand, field),
            Expr::Select { operand, field, .. } => {
                let value = self.eval_select(id, *operand, field);
                self.refined_value(id).unwrap_or(value)
            }
            Expr::Call {
                function,
                target,
                args,
            } => self.eval_call(id, function, *target, args),
            Expr::List {
                elements,
                optional_indices,
            } => self.eval_list(elements, optional_indices),
            Expr::Map(entries) => self.eval_map(entries),
            Expr::Struct { type_name, fields } => self.eval_struct(id, type_name, fields),
            Expr::Comprehension(fold) => self.eval_fold(fold),
        }
    }

    fn global(&self, name: &str) -> Option<AbstractValue> {
        let (_, value) = self.facts.roots.iter().find(|(root, _)| *root == name)?;
        Some(value.clone())
    }

    fn eval_ident(&mut self, name: &str) -> AbstractValue {
        let absolute = name.strip_prefix('.');
        // With a leading dot, a name does not denote a macro variable.
        let may_be_local =
            absolute.is_none() || !self.facts.env.behavior().locals_hide_qualified_names;
        let name = absolute.unwrap_or(name);
        let scoped = self.scopes.iter().rev().find(|(known, _)| **known == *name);
        if let Some((_, value)) = scoped.filter(|_| may_be_local) {
            return value.clone();
        }
        if let Some(value) = self.global(name) {
            return value;
        }
        match self.facts.env.lookup_ident(name) {
            Some(Ident::TypeName(of)) => {
                let name = match &of {
                    Type::Map(_) => Some("map"),
                    Type::Null => Some("null_type"),
                    _ => AbstractValue::from_type(&of)
                        .alternatives()
                        .first()
                        .and_then(|alternative| alternative.shape.type_name()),
                };
                AbstractValue::plain(Type::type_of(of)).with_constant(name.map(Const::TypeName))
            }
            Some(Ident::Variable(_)) | None => AbstractValue::top(),
        }
    }

    pub(super) fn is_scoped(&self, name: &str) -> bool {
        self.scopes.iter().any(|(known, _)| **known == *name)
    }

    fn is_variables(&self, id: ExprId) -> bool {
        is_input(self.ast, id, Input::Variables)
            && matches!(self.ast.expr(id), Expr::Ident(name) if !self.is_scoped(name))
    }

    /// Returns the value of the policy variable `name`. `None` if `operand` is not the root variable `variables`.
    pub(super) fn read_variable(&mut self, operand: ExprId, name: &str) -> Option<AbstractValue> {
        if !self.is_variables(operand) {
            return None;
        }
        // Reads are stored in a list, because a list can be truncated to discard the latest reads. Only its latest
        // entries are searched, so the list may contain duplicates.
        let mut latest = self.outcome.reads.iter().rev().take(MAX_SEARCHED);
        if !latest.any(|known| known == name) {
            self.outcome.reads.push(name.to_owned());
        }
        let variable = self.facts.variables.get(name);
        Some(variable.map_or_else(AbstractValue::top, |variable| variable.value.clone()))
    }

    fn eval_select(&mut self, id: ExprId, operand: ExprId, field: &str) -> AbstractValue {
        if let Some(value) = self.read_variable(operand, field) {
            return value;
        }
        if let Some(name) = self.ast.qualified_name(id)
            && let name = name.strip_prefix('.').unwrap_or(&name)
            && !name
                .split('.')
                .next()
                .is_some_and(|root| self.is_scoped(root))
        {
            if let Some(value) = self.global(name) {
                return value;
            }
            if let Some(Ident::TypeName(_)) = self.facts.env.lookup_ident(name) {
                return self.eval_ident(name);
            }
        }
        let value = self.eval(operand);
        if self.has_failed(operand) {
            self.failed.push(id);
        }
        self.select(id, &value, field)
    }

    /// Returns true if the selection `id` fails in every request that reaches it. Expressions that depend on its value
    /// are not evaluated.
    pub(super) fn has_failed(&self, id: ExprId) -> bool {
        self.failed.contains(&id)
    }

    /// Interprets `value.field`.
    pub(super) fn select(
        &mut self,
        id: ExprId,
        value: &AbstractValue,
        field: &str,
    ) -> AbstractValue {
        if value.is_bottom() {
            return self.no_value(id);
        }
        if value.is_top() {
            return value.clone();
        }
        let mut result = AbstractValue::bottom();
        let (mut n_fit, mut n_null) = (0, 0);
        let mut unfit: Option<DiagnosticKind> = None;
        let mut fails = false;
        for alternative in value.alternatives() {
            match select_shape(&alternative.shape, field) {
                Selected::Value(selected) => {
                    n_fit += 1;
                    let selected = if alternative.is_default {
                        selected.into_default()
                    } else {
                        selected
                    };
                    result = result.join(&selected);
                }
                Selected::Null => n_null += 1,
                Selected::Unfit(error) => {
                    fails |= !alternative.is_default;
                    unfit.get_or_insert(error);
                }
            }
        }
        if let Some(kind) = unfit {
            if fails || n_fit == 0 {
                self.report(id, kind);
            } else {
                self.outcome.suppressed.push(id);
            }
        } else if n_fit == 0 && n_null > 0 {
            self.report_null(id);
        }
        if n_fit > 0 {
            return result;
        }
        self.failed.push(id);
        AbstractValue::top()
    }

    /// Interprets `value.?field`, and selections from an optional.
    pub(super) fn select_optional(
        &mut self,
        id: ExprId,
        value: &AbstractValue,
        field: &str,
    ) -> AbstractValue {
        if value.is_top() {
            self.outcome.present.push(id);
            return AbstractValue::optional(value.clone());
        }
        match undeclared(value, field) {
            Some(undefined) => self.outcome.absent.push((id, undefined)),
            None => self.outcome.present.push(id),
        }
        let mut result = AbstractValue::bottom();
        let mut is_there = true;
        for alternative in value.alternatives() {
            is_there &= !matches!(alternative.shape, AbstractType::Optional(_))
                && Self::holds(&alternative.shape, field) == Some(true);
            let (selected, problem) = match &alternative.shape {
                AbstractType::Optional(inner) => optional_field(inner, field),
                shape => optional_field(&AbstractValue::new(shape.clone()), field),
            };
            if let Some(problem) = problem
                && (!alternative.is_default || value.alternatives().len() == 1)
            {
                self.report(id, problem);
            }
            result = result.join(&selected);
        }
        // Only an optional that is certainly non-empty may contain a constant.
        AbstractValue::optional(if is_there {
            result
        } else {
            result.with_constant(None)
        })
    }

    /// Interprets `has(operand.field)`.
    fn eval_test(&mut self, id: ExprId, operand: ExprId, field: &str) -> AbstractValue {
        if self.read_variable(operand, field).is_some() {
            return AbstractValue::constant(Const::Bool(true));
        }
        let value = self.eval(operand);
        if value.is_top() || value.is_bottom() {
            self.outcome.present.push(id);
            return AbstractValue::bool();
        }
        let mut answers = Vec::new();
        for alternative in value.alternatives() {
            match test_shape(&alternative.shape, field) {
                Ok(answer) => answers.push(answer),
                Err(problem) => {
                    if !alternative.is_default || value.alternatives().len() == 1 {
                        self.report(id, problem);
                    }
                    answers.push(None);
                }
            }
        }
        let is_absent = answers.iter().all(|answer| *answer == Some(false));
        let declared =
            value
                .alternatives()
                .iter()
                .find_map(|alternative| match &alternative.shape {
                    AbstractType::Object(object) => Some(object.type_.fields.as_ref()),
                    _ => None,
                });
        if is_absent && let Some(fields) = declared {
            let name = field.into();
            let candidates = fields.map_or(Candidates::Elsewhere, Candidates::new);
            let undefined = UndefinedField { name, candidates };
            self.outcome.absent.push((id, undefined));
        } else {
            self.outcome.present.push(id);
        }
        match answers.split_first() {
            Some((Some(first), rest)) if rest.iter().all(|other| *other == Some(*first)) => {
                AbstractValue::constant(Const::Bool(*first))
            }
            _ => AbstractValue::bool(),
        }
    }

    fn eval_list(&mut self, elements: &[ExprId], optional_indices: &[u32]) -> AbstractValue {
        let mut items = Vec::new();
        let mut constants = Some(Vec::new());
        for (n, &element) in elements.iter().enumerate() {
            let mut value = self.eval(element);
            let is_optional = optional_indices.iter().any(|&index| index as usize == n);
            if is_optional {
                value = self.unwrap_optional(element, &value);
            }
            match (value.as_const(), &mut constants) {
                (Some(constant), Some(known)) if !is_optional => known.push(constant.clone()),
                _ => constants = None,
            }
            items.push(value);
        }
        let list = if optional_indices.is_empty() {
            AbstractValue::tuple(items)
        } else {
            AbstractValue::list(
                items
                    .iter()
                    .fold(AbstractValue::bottom(), |elem, item| elem.join(item)),
            )
        };
        list.with_constant(constants.map(|known| Const::List(known.into())))
    }

    fn eval_map(&mut self, entries: &[MapEntry]) -> AbstractValue {
        let mut record = Some(Vec::new());
        let mut values = AbstractValue::bottom();
        let mut has_string_keys = true;
        for entry in entries {
            let key = self.eval(entry.key);
            let mut value = self.eval(entry.value);
            if entry.optional {
                value = self.unwrap_optional(entry.value, &value);
            }
            values = values.join(&value);
            has_string_keys &= matches!(
                key.alternatives(),
                [only] if only.shape == AbstractType::Plain(Type::String)
            );
            match (key.as_const(), &mut record) {
                (Some(Const::Text(key)), Some(record)) if !entry.optional => {
                    record.push((Arc::clone(key), value));
                }
                _ => record = None,
            }
        }
        match record {
            Some(record) if record.len() <= MAX_ENTRIES => {
                AbstractValue::new(AbstractType::Record(record.into()))
            }
            _ => AbstractValue::map(values, has_string_keys),
        }
    }

    /// Interprets the value of an optional element (`[?x]`) or entry (`{?k: x}`). The value must be an optional.
    fn unwrap_optional(&mut self, id: ExprId, value: &AbstractValue) -> AbstractValue {
        let mut result = AbstractValue::bottom();
        for alternative in value.alternatives() {
            match &alternative.shape {
                AbstractType::Optional(inner) => result = result.join(inner),
                shape => {
                    let actual = shape.to_type();
                    let expected = Type::optional(actual.clone());
                    self.report(id, DiagnosticKind::TypeMismatch { expected, actual });
                    return AbstractValue::top();
                }
            }
        }
        if value.is_top() {
            AbstractValue::top()
        } else {
            result
        }
    }
}

/// Returns the constant that `field` has in all values of the type. `None` if there is no such constant.
pub(super) fn field_const(shape: &AbstractType, field: &str) -> Option<Const> {
    match select_shape(shape, field) {
        Selected::Value(value) => value.as_const().cloned(),
        Selected::Null | Selected::Unfit(_) => None,
    }
}

fn drop_range<T>(values: &mut Vec<T>, start: usize, end: usize) -> Vec<T> {
    let end = end.min(values.len());
    values.drain(start.min(end)..end).collect()
}

fn literal_value(literal: &Literal) -> AbstractValue {
    match literal {
        Literal::Null => AbstractValue::constant(Const::Null),
        Literal::Bool(value) => AbstractValue::constant(Const::Bool(*value)),
        Literal::Int(value) => AbstractValue::constant(Const::Int(*value)),
        Literal::Uint(_) => AbstractValue::plain(Type::Uint),
        Literal::Double(_) => AbstractValue::plain(Type::Double),
        Literal::String(value) => AbstractValue::constant(Const::Text(Arc::clone(value))),
        Literal::Bytes(_) => AbstractValue::plain(Type::Bytes),
    }
}

fn undefined(field: &str, candidates: Candidates) -> Selected {
    let name = field.into();
    let undefined = UndefinedField { name, candidates };
    Selected::Unfit(DiagnosticKind::UndefinedField(undefined))
}

/// Returns `field` if no possible value can have it. `None` if a possible value may have the field, or if no possible
/// value is an object or an optional object.
fn undeclared(value: &AbstractValue, field: &str) -> Option<UndefinedField> {
    let mut undefined = None;
    for alternative in value.alternatives() {
        match &alternative.shape {
            AbstractType::Object(object) => {
                let fields = object.type_.fields.as_ref()?;
                let is_declared = !fields.alternatives(field).is_empty()
                    || fields.field_type(&object.type_.name, field).is_some();
                (!is_declared && !fields.may_hold(field)).then_some(())?;
                undefined.get_or_insert_with(|| UndefinedField::new(field, fields));
            }
            AbstractType::Optional(inner) => {
                let of_inner = undeclared(inner, field).filter(|_| !inner.is_top())?;
                undefined.get_or_insert(of_inner);
            }
            AbstractType::Plain(Type::Null) => {}
            _ => return None,
        }
    }
    undefined
}

fn no_fields(shape: &AbstractType) -> DiagnosticKind {
    let operand = shape.to_type();
    DiagnosticKind::NoFieldSelection { operand }
}

fn select_shape(shape: &AbstractType, field: &str) -> Selected {
    match shape {
        AbstractType::Object(object) => {
            let known_fields = object.known.as_deref().unwrap_or_default();
            if let Some((_, value)) = known_fields.iter().find(|(name, _)| *name == field) {
                // The value of a field that is known to be absent is bottom, so expressions that depend on it are not
                // reached.
                return Selected::Value(value.clone());
            }
            let Some(fields) = &object.type_.fields else {
                return Selected::Value(AbstractValue::json());
            };
            let alternatives = fields.alternatives(field);
            if !alternatives.is_empty() {
                return Selected::Value(AbstractValue::either(alternatives));
            }
            match fields.field_type(&object.type_.name, field) {
                Some(type_) => Selected::Value(AbstractValue::from_type(&type_)),
                None if fields.may_hold(field) => Selected::Value(AbstractValue::json()),
                None => undefined(field, Candidates::new(fields)),
            }
        }
        AbstractType::Map(value, true) => Selected::Value(value.as_ref().clone()),
        AbstractType::Map(_, false) => Selected::Value(AbstractValue::top()),
        AbstractType::Record(entries) => {
            match entries.iter().rev().find(|(name, _)| **name == *field) {
                Some((_, value)) => Selected::Value(value.clone()),
                None => {
                    let keys = entries.iter().map(|(name, _)| Arc::clone(name));
                    undefined(field, Candidates::Keys(keys.collect()))
                }
            }
        }
        AbstractType::Optional(inner) => {
            Selected::Value(AbstractValue::optional(optional_field(inner, field).0))
        }
        AbstractType::Plain(Type::Null) => Selected::Null,
        AbstractType::Plain(Type::Struct(object)) => {
            Selected::Unfit(DiagnosticKind::UnresolvedType {
                name: (*object.name).into(),
            })
        }
        AbstractType::List(_, _) | AbstractType::Plain(_) => Selected::Unfit(no_fields(shape)),
    }
}

/// Returns the result of an optional selection of `field` from `value`, and the error if the selection fails. The
/// selection fails for lists. For other values without the field, the result is an empty optional.
fn optional_field(value: &AbstractValue, field: &str) -> (AbstractValue, Option<DiagnosticKind>) {
    if value.is_top() {
        return (value.clone(), None);
    }
    let mut result = AbstractValue::bottom();
    let mut wrong = None;
    for alternative in value.alternatives() {
        match (&alternative.shape, select_shape(&alternative.shape, field)) {
            (AbstractType::Optional(inner), _) => {
                result = result.join(&optional_field(inner, field).0);
            }
            (_, Selected::Value(selected)) => result = result.join(&selected),
            (AbstractType::List(_, _), Selected::Unfit(problem)) => wrong = Some(problem),
            (_, Selected::Unfit(_) | Selected::Null) => {}
        }
    }
    (result, wrong)
}

/// Returns true if every value of the type has `field`, and false if no value has it. `None` if this is unknown.
fn test_shape(shape: &AbstractType, field: &str) -> Result<Option<bool>, DiagnosticKind> {
    match shape {
        AbstractType::Object(object) => {
            let known_fields = object.known.as_deref().unwrap_or_default();
            if let Some((_, value)) = known_fields.iter().find(|(name, _)| *name == field) {
                return Ok(Some(!value.is_bottom()));
            }
            let Some(fields) = &object.type_.fields else {
                return Ok(None);
            };
            let is_declared = fields.field_type(&object.type_.name, field).is_some();
            if !is_declared && !fields.may_hold(field) {
                return Ok(Some(false));
            }
            Ok(fields.is_required(field).then_some(true))
        }
        AbstractType::Map(..) | AbstractType::Plain(Type::Struct(_)) => Ok(None),
        AbstractType::Record(entries) => Ok(Some(entries.iter().any(|(name, _)| **name == *field))),
        AbstractType::Optional(inner) => {
            let mut answer = Some(false);
            for alternative in inner.alternatives() {
                if test_shape(&alternative.shape, field)? != Some(false) {
                    answer = None;
                }
            }
            Ok(answer.filter(|_| !inner.is_top()))
        }
        AbstractType::List(_, _) => Err(no_fields(shape)),
        AbstractType::Plain(_) => Ok(Some(false)),
    }
}
