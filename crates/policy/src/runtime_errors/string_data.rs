//! Reads of the field `stringData` of Secrets, which is never present when policies are evaluated.
//!
//! Source: `k8s.io/kubernetes` `pkg/apis/core/v1/conversion.go` (`Convert_v1_Secret_To_core_Secret`).

use super::Context;
use crate::compile::CompiledPolicy;
use crate::lint::Lint;
use crate::matching;
use crate::reads::{Input, Reads};
use crate::rule::Rule;
use cel::source::SourceMap;
use kubernetes::schema::Gvk;
use kubernetes::validity::{FieldPath, Root};

const FIELD: &str = "stringData";

/// The advice for a read of `stringData`.
pub(super) const NO_STRING_DATA: &str = "the API server moves the entries of `stringData` to `data` before it evaluates \
     policies: read `data`, whose values are encoded in base64";

/// Returns true if the path is `stringData` of a Secret, or a path in it.
pub(super) fn is_string_data(gvk: &Gvk, path: &FieldPath) -> bool {
    let is_object = matches!(path.root, Root::Object | Root::OldObject);
    is_object && is_secret(gvk) && path.fields().first() == Some(&FIELD)
}

fn is_secret(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && &*gvk.kind == "Secret"
}

/// If the policy matches only Secrets, returns a lint for each presence test and optional selection of `stringData`.
/// Other reads of the field fail, and are reported as runtime errors.
#[must_use]
pub fn optional_string_data(policy: &CompiledPolicy, context: &Context<'_>) -> Vec<Lint> {
    let mut expressions = policy.expressions().iter();
    if !expressions.any(|it| it.text.contains(FIELD)) {
        return Vec::new();
    }
    let targets = matching::targets(policy.policy(), context.mapper);
    if targets.is_empty() || !targets.iter().all(|it| is_secret(&it.resource.gvk)) {
        return Vec::new();
    }
    let mut lints = Vec::new();
    for expression in policy.expressions() {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        let reads = Reads::new(ast);
        let mut attributes = reads.attributes();
        let optional = attributes.find(|(input, attribute)| {
            let is_object = matches!(input, Input::Object | Input::OldObject);
            let first = attribute.qualifiers.first();
            let is_optional = first
                .is_some_and(|it| it.key.name() == Some(FIELD) && (it.is_optional || it.is_test));
            is_object && is_optional
        });
        lints.extend(optional.map(|(_, attribute)| Lint {
            rule: Rule::ConstantCondition,
            field_ref: expression.field_ref.clone(),
            location: Some(
                SourceMap::new(&expression.text).location(ast.offset(attribute.operand)),
            ),
            message: format!("`{FIELD}` of a Secret is never present"),
            fix: Some(NO_STRING_DATA.into()),
            is_harmless: false,
        }));
    }
    lints
}
