//! Expressions that compile but crash the API server when they are evaluated.

use std::collections::{HashMap, HashSet};

use super::finding::{Cause, CompileFindingKind};
use crate::expressions::{PolicyExpression, Role};
use crate::reads::without_dyn;
use crate::rule::Rule;
use cel::ast::{Expr, StructField};
use cel::checker::CheckedAst;
use cel::types::Type;
use kubernetes::library::mutation::{JSON_PATCH, is_object};

/// Returns a finding for a JSON patch that makes the API server panic. The panic occurs when the API server converts a
/// nested object of the type `name` to JSON.
pub(super) fn panics(field_ref: String, name: &str) -> (String, CompileFindingKind, Cause) {
    let message = format!(
        "`{name}` is nested in a list or map that is the `value` of a JSONPatch: the API server accepts the policy, but \
         panics on each request that reaches the expression; replace `{name}{{...}}` by map literals, write a separate \
         JSONPatch for each object, or upgrade to Kubernetes 1.35.10, 1.36.5 or 1.37"
    );
    let rule = Rule::UnsafeExpression;
    let cause = Cause::Whole { rule, message };
    (field_ref, CompileFindingKind::Unsafe, cause)
}

/// Returns the type name of an object within a list, map or optional in the `value` of a `JSONPatch`. `None` if there
/// is no such object.
///
/// Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/mutating/patch/json_patch.go` (`evaluatePatchExpression`
/// converts values to `structpb.Value`); cel-go `common/types/{list,map}.go` (`ConvertToNative`, which expects elements
/// that are protobuf messages); `pkg/cel/mutation/dynamic/objects.go` (`ObjectVal.ConvertToNative`).
pub(super) fn object_in_list(checked: &CheckedAst) -> Option<String> {
    let ast = checked.ast();
    let literals = ast.iter().filter_map(|(_, expr)| match expr {
        Expr::Struct { type_name, fields } if is_json_patch(type_name) => Some(fields),
        _ => None,
    });
    let values = literals.flatten().filter(|field| &*field.field == "value");
    let misplaced = |value: &StructField| {
        // At run time, the value has the type of the argument of `dyn()`.
        let id = without_dyn(ast, value.value);
        let type_ = checked.type_of(id);
        match &type_ {
            Type::Opaque(held) if value.optional => held.params.iter().find_map(object_below),
            _ => object_below(&type_),
        }
    };
    values.into_iter().find_map(misplaced)
}

fn is_json_patch(type_name: &str) -> bool {
    type_name.strip_prefix('.').unwrap_or(type_name) == JSON_PATCH
}

/// Returns the name of the first `Object` type within the container type `type_`.
fn object_below(type_: &Type) -> Option<String> {
    let of_held = |held: &Type| match held {
        Type::Struct(object) if is_object(&object.name) => Some(object.name.to_string()),
        _ => object_below(held),
    };
    match type_ {
        Type::List(elem) => of_held(elem),
        Type::Map(of) => of_held(&of.1),
        Type::Opaque(of) => of.params.iter().find_map(of_held),
        _ => None,
    }
}

/// Returns a finding for each variable that reads itself. Its evaluation recurses without end and crashes the API
/// server. There are two cases:
///
/// - The variable has the same name as an earlier variable, and reads this name.
/// - The variable reads itself through a later variable, with `dyn(variables)`. If a variable of the cycle does not
///   compile, the API server rejects the policy, so there is no finding.
///
/// `failed` contains the field paths of the expressions that do not compile.
pub(super) fn self_reading_variables(
    expressions: &[PolicyExpression],
    failed: &HashSet<&str>,
) -> Vec<(String, CompileFindingKind, Cause)> {
    let variables: Vec<_> = expressions
        .iter()
        .filter(|e| e.role == Role::Variable)
        .collect();
    let in_cycles = crate::reads::self_reading(&variables);
    let reads_itself = |variable: &&PolicyExpression| {
        in_cycles.contains(variable.name.as_deref().unwrap_or_default())
    };
    let mut of_cycles = variables.iter().copied().filter(reads_itself);
    let all_compile = of_cycles.all(|variable| !failed.contains(&*variable.field_ref));
    let mut by_name: HashMap<&str, usize> = HashMap::new();
    for variable in &variables {
        let name = variable.name.as_deref().unwrap_or_default();
        *by_name.entry(name).or_default() += 1;
    }
    let mut seen = HashSet::new();
    let mut findings = Vec::new();
    for variable in &variables {
        let name = variable.name.as_deref().unwrap_or_default();
        let is_second = !seen.insert(name);
        let is_alone = by_name.get(name) == Some(&1);
        if in_cycles.contains(name) && (is_second || is_alone && all_compile) {
            let message = if is_second {
                format!(
                    "variable `{name}` is declared twice and reads itself: the API server accepts the policy, but \
                     the evaluation of the variable never ends; rename one of the two variables"
                )
            } else {
                format!(
                    "variable `{name}` reads itself: the API server accepts the policy, but the evaluation of the variable \
                     never ends"
                )
            };
            let rule = Rule::UnsafeExpression;
            let cause = Cause::Whole { rule, message };
            findings.push((
                variable.field_ref.clone(),
                CompileFindingKind::Unsafe,
                cause,
            ));
        }
    }
    findings
}
