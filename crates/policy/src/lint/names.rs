//! Finds comparisons of namespaces and label values with strings that are never valid for them, and list indices that
//! are never valid, such as negative indices.

use cel::ast::{Ast, Expr, ExprId, Literal};
use cel::source::SourceMap;

use super::path::{Operator, operands, path};
use super::{Lint, guards, patterns, quantifiers, text_values, users};
use crate::advice::Advice;
use crate::compile::CompiledPolicy;
use crate::expressions::PolicyExpression;
use crate::rule::Rule;
use kubernetes::library::format::validation;

/// Maximum length of a namespace and of a label value.
///
/// Source: `k8s.io/apimachinery` `pkg/api/validate/content`, `DNS1123LabelMaxLength`, `LabelValueMaxLength`.
const MAX_LENGTH: usize = 63;

/// Maximum length of a string in a message, in bytes.
const MAX_SHOWN: usize = 80;

/// The paths whose values are names of namespaces.
const NAMESPACES: [&str; 4] = [
    "request.namespace",
    "object.metadata.namespace",
    "oldObject.metadata.namespace",
    "namespaceObject.metadata.name",
];

pub(super) fn find(policy: &CompiledPolicy) -> Vec<Lint> {
    let mut lints = Vec::new();
    for (n, expression) in policy.expressions().iter().enumerate() {
        if let Ok(ast) = expression.parsed()
            && policy.compiles(n)
        {
            for (id, _) in ast.iter() {
                lints.extend(comparison(expression, ast, id));
                lints.extend(negative_index(expression, ast, id));
            }
            lints.extend(guards::find(expression, ast));
            lints.extend(patterns::find(expression, ast));
            lints.extend(quantifiers::find(expression, ast));
            lints.extend(text_values::find(expression, ast));
            lints.extend(users::find(expression, ast));
        }
    }
    lints
}

/// Returns a lint if the node compares a namespace or a label value with an invalid string.
fn comparison(expression: &PolicyExpression, ast: &Ast, id: ExprId) -> Option<Lint> {
    let (is_not, field, literals) = match (operands(ast, id), ast.global_call(id)) {
        (Some((operator @ (Operator::Equal | Operator::NotEqual), left, right)), _) => {
            let (field, literal) = match (path(ast, left), path(ast, right)) {
                (Some(field), _) => (field, right),
                (_, Some(field)) => (field, left),
                _ => return None,
            };
            (operator == Operator::NotEqual, field, vec![literal])
        }
        (_, Some(("@in", [left, right]))) => {
            let Expr::List { elements, .. } = ast.expr(*right) else {
                return None;
            };
            (false, path(ast, *left)?, elements.to_vec())
        }
        _ => return None,
    };
    let is_namespace = NAMESPACES.contains(&field.as_str());
    let is_label = ["object", "oldObject", "namespaceObject"]
        .iter()
        .any(|root| field.starts_with(&format!("{root}.metadata.labels")))
        && field.matches(['.', '[']).count() > 2;
    if !is_namespace && !is_label {
        return None;
    }
    let n_literals = literals.len();
    literals.into_iter().find_map(|literal| {
        let Expr::Literal(Literal::String(text)) = ast.expr(literal) else {
            return None;
        };
        if text.is_empty() || is_valid(text, is_label) || text.len() > MAX_SHOWN {
            return None;
        }
        let noun = if is_namespace {
            "a namespace"
        } else {
            "a label value"
        };
        let why = if text.chars().count() > MAX_LENGTH {
            format!("has at most {MAX_LENGTH} characters")
        } else if is_namespace {
            "has only lowercase letters, digits and `-`, and starts and ends with a letter or digit"
                .to_owned()
        } else {
            "has only letters, digits, `-`, `_` and `.`, and starts and ends with a letter or digit"
                .to_owned()
        };
        let outcome = if n_literals == 1 {
            format!("this is always {is_not}")
        } else {
            format!("`{text}` never matches")
        };
        let lower = text.to_lowercase();
        let meant = (lower != **text && is_valid(&lower, is_label)).then_some(lower);
        Some(Lint {
            rule: Rule::ImpossibleValue,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
            message: format!("{noun} {why}, so {outcome}"),
            fix: meant
                .map(|meant| format!("did you mean `{meant}`?"))
                .map(Advice::from),
            is_harmless: false,
        })
    })
}

/// Returns a lint if the node selects an element of a list by a negative index.
fn negative_index(expression: &PolicyExpression, ast: &Ast, id: ExprId) -> Option<Lint> {
    let (function, [_, index]) = ast.global_call(id)? else {
        return None;
    };
    let Expr::Literal(Literal::Int(index)) = ast.expr(*index) else {
        return None;
    };
    (function == "_[_]" && *index < 0).then(|| Lint {
        rule: Rule::FailingCall,
        field_ref: expression.field_ref.clone(),
        location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
        message: format!("this always fails with `index out of bounds: {index}`"),
        fix: Some("to read the last element, test the size, and write `l[size(l) - 1]`".into()),
        is_harmless: false,
    })
}

/// Returns true if `text` is valid: as a label value if `is_label` is true, as a namespace otherwise.
fn is_valid(text: &str, is_label: bool) -> bool {
    let errors = if is_label {
        validation::label_value(text.as_bytes())
    } else {
        validation::dns1123_label(text.as_bytes())
    };
    errors.is_empty()
}
