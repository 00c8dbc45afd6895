//! Checks `Object` literals against the schema of the mutated kind.
//!
//! Upstream does not check these literals when a policy is created. A wrong literal fails when it is applied to an
//! object.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/patch/smd.go` (`ApplyStructuredMergeDiff`);
//! `pkg/cel/mutation/dynamic/objects.go` (`CheckTypeNamesMatchFieldPathNames`); `sigs.k8s.io/structured-merge-diff`
//! `typed/validate.go` ("field not declared in schema").

use cel::ast::{Expr, ExprId, StructField};
use cel::diagnostic::{Code, DiagnosticKind, UndefinedField};
use cel::types::{StructType, Type};
use kubernetes::library::mutation::{OBJECT, is_object};

use super::expression::Interpreter;
use super::value::{AbstractType, AbstractValue};

/// A coarse type. The coarse types of a field's value and of its declaration must be equal.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ValueKind {
    Bool,
    Number,
    Text,
    List,
    Map,
}

impl Interpreter<'_> {
    /// Interprets the struct literal `id` of the type `name`.
    pub(super) fn eval_struct(
        &mut self,
        id: ExprId,
        name: &str,
        fields: &[StructField],
    ) -> AbstractValue {
        let name = name.strip_prefix('.').unwrap_or(name);
        let is_object = is_object(name);
        // If the literal has the wrong type name, nested literals are checked as if it had the required name.
        let required = self.required_names.iter().rposition(|(of, _)| *of == id);
        let required = required.map(|n| self.required_names.swap_remove(n).1);
        let name = required.as_deref().unwrap_or(name);
        let declared = self.facts.applied_to.as_ref();
        let declared = declared.and_then(|object| part_of(object, name));
        for field in fields {
            if is_object {
                self.check_place(field.value, name, &field.field);
            }
            let value = self.eval(field.value);
            if let Some(object) = &declared {
                self.check_field(field, object, &value);
            }
        }
        AbstractValue::top()
    }

    /// Reports object literals with the wrong type name. `id` is the value of `field` in a literal that must have the
    /// type `owner`. An object literal at `id`, or in the list at `id`, must therefore have the type `owner.field`.
    fn check_place(&mut self, id: ExprId, owner: &str, field: &str) {
        let ast = self.ast;
        let literals = match ast.expr(id) {
            Expr::List { elements, .. } => elements.clone(),
            _ => Box::from([id]),
        };
        for id in literals {
            let Expr::Struct { type_name, .. } = ast.expr(id) else {
                continue;
            };
            let name = type_name.strip_prefix('.').unwrap_or(type_name);
            let expected = format!("{owner}.{field}");
            if is_object(name) && *name != *expected {
                let message = format!(
                    "unexpected type name \"{name}\", expected \"{expected}\", which matches field name path from root \
                     Object type"
                );
                let kind = DiagnosticKind::Other {
                    code: Code::TypeMismatch,
                    message,
                    correction: Some(expected.clone()),
                };
                self.report(id, kind);
            }
            if is_object(name) {
                self.required_names.push((id, expected));
            }
        }
    }

    /// Reports a field that the schema does not declare, or whose value has the wrong type.
    fn check_field(&mut self, field: &StructField, object: &StructType, value: &AbstractValue) {
        let Some(fields) = &object.fields else { return };
        let name = &*field.field;
        if !fields.alternatives(name).is_empty() {
            return;
        }
        let Some(declared) = fields.field_type(&object.name, name) else {
            let undefined = UndefinedField::new(name, fields);
            self.report(field.id, DiagnosticKind::UndefinedField(undefined));
            return;
        };
        let Some(wanted) = kind_of_type(&declared) else {
            return;
        };
        let mut actual = None;
        let is_unfit = |value: &AbstractValue, actual: &mut Option<Type>| {
            !value.is_top()
                && !value.alternatives().is_empty()
                && value.alternatives().iter().all(|alternative| {
                    let kind = kind_of_abstract_type(&alternative.shape);
                    actual.get_or_insert_with(|| alternative.shape.to_type());
                    // A quantity is declared as a string, but its value may be a number.
                    let is_quantity = wanted == ValueKind::Text && kind == Some(ValueKind::Number);
                    kind.is_some_and(|kind| kind != wanted) && !is_quantity
                })
        };
        let is_wrong = if field.optional {
            let held = value
                .alternatives()
                .iter()
                .map(|alternative| match &alternative.shape {
                    AbstractType::Optional(held) => is_unfit(held, &mut actual),
                    _ => false,
                });
            let held: Vec<bool> = held.collect();
            !value.is_top() && !held.is_empty() && held.iter().all(|is_wrong| *is_wrong)
        } else {
            is_unfit(value, &mut actual)
        };
        if let (true, Some(actual)) = (is_wrong, actual) {
            let kind = DiagnosticKind::FieldTypeMismatch {
                field: name.into(),
                declared: shown(&declared),
                actual: shown(&actual),
            };
            self.report(field.id, kind);
        }
    }
}

/// Returns the object type at the path `name` in `object`. For a list on the path, the path continues in its elements.
/// `None` if the schema does not declare the path.
fn part_of(object: &Type, name: &str) -> Option<StructType> {
    let mut parts = name.split('.');
    if parts.next() != Some(OBJECT) {
        return None;
    }
    let mut type_ = object.clone();
    for part in parts {
        let Type::Struct(owner) = &type_ else {
            return None;
        };
        let fields = owner.fields.as_ref()?;
        if !fields.alternatives(part).is_empty() {
            return None;
        }
        let mut declared = fields.field_type(&owner.name, part)?;
        while let Type::List(elem) = &declared {
            declared = elem.as_ref().clone();
        }
        type_ = declared;
    }
    match type_ {
        Type::Struct(object) => Some(object),
        _ => None,
    }
}

/// Returns the name of the type for messages, without element types.
fn shown(type_: &Type) -> String {
    match type_ {
        Type::List(_) => "list".to_owned(),
        Type::Map(_) | Type::Struct(_) => "object".to_owned(),
        other => other.to_string(),
    }
}

fn kind_of_type(type_: &Type) -> Option<ValueKind> {
    Some(match type_ {
        Type::Bool => ValueKind::Bool,
        Type::Int | Type::Uint | Type::Double => ValueKind::Number,
        Type::String => ValueKind::Text,
        Type::List(_) => ValueKind::List,
        Type::Map(_) | Type::Struct(_) => ValueKind::Map,
        _ => return None,
    })
}

/// Returns the coarse type of a value. `None` if it is unknown or the value is null.
fn kind_of_abstract_type(shape: &AbstractType) -> Option<ValueKind> {
    match shape {
        AbstractType::Plain(Type::Struct(_)) | AbstractType::Optional(_) => None,
        AbstractType::Plain(type_) => kind_of_type(type_),
        AbstractType::List(..) => Some(ValueKind::List),
        AbstractType::Map(..) | AbstractType::Record(_) | AbstractType::Object(_) => {
            Some(ValueKind::Map)
        }
    }
}
