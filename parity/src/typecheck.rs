//! `parity typecheck`: type-checks policies and prints the results.
//!
//! Source: the oracle's `typecheck.go`.

use std::cmp::Reverse;

use serde::Serialize;
use vap_status_controller::policy::RequestPolicy;
use vap_status_controller::policy::analysis::differences;
use vap_status_controller::policy::analysis::{Profile, TypeCheck, type_check};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::schema::Gvk;
use vap_status_controller::status::warnings::warnings;

use crate::documents::PolicyDoc;
use crate::guard::{Panic, guard};
use crate::schemas::Schemas;
use crate::version;

/// The result for a policy, as a line of output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypecheckLine {
    /// The path of the file.
    pub file: String,
    /// The index of the document in its file.
    pub index: usize,
    /// The name of the policy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kinds for which the policy was checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<TypeRef>,
    /// The checked kinds that are also kinds of subresources. Always empty in upstream's output.
    #[serde(rename = "subresourceTypes", skip_serializing_if = "Vec::is_empty")]
    pub subresource_types: Vec<TypeRef>,
    /// The checked kinds that only wildcards match. Always empty in upstream's output.
    #[serde(rename = "wildcardTypes", skip_serializing_if = "Vec::is_empty")]
    pub wildcard_types: Vec<TypeRef>,
    /// The kind of the params.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<ParamsRef>,
    /// The warnings.
    pub warnings: Vec<WarningLine>,
    /// The error if the policy could not be checked. Empty if there is no such error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The panic, if the check panicked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<Panic>,
}

/// A kind, with its group and version.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TypeRef {
    group: String,
    version: String,
    kind: String,
}

impl From<&Gvk> for TypeRef {
    fn from(gvk: &Gvk) -> Self {
        Self {
            group: gvk.group.clone(),
            version: gvk.version.clone(),
            kind: gvk.kind.clone(),
        }
    }
}

/// The kind of the params. Also records whether this kind has a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParamsRef {
    #[serde(flatten)]
    type_ref: TypeRef,
    typed: bool,
}

/// A warning. Also contains the warning without the digits of type names, in the oracle's format.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningLine {
    field_ref: String,
    warning: String,
    warning_normalized: String,
}

/// Parses, compiles and type-checks a policy as the controller does.
#[must_use]
pub fn check(policy: impl Into<RequestPolicy>, schemas: &Schemas, profile: Profile) -> TypeCheck {
    type_check(
        &CompiledPolicy::from_parts(policy.into(), None, version::get()),
        &schemas.mapper,
        schemas,
        profile,
    )
}

/// Checks a policy document.
#[must_use]
pub fn line(doc: &PolicyDoc, schemas: &Schemas, profile: Profile) -> TypecheckLine {
    let mut line = TypecheckLine {
        file: doc.file.clone(),
        index: doc.index,
        ..TypecheckLine::default()
    };
    let policy = match &doc.policy {
        Ok(policy) => policy,
        Err(error) => {
            line.error = format!("{error:#}");
            return line;
        }
    };
    line.name = policy.metadata.name.clone().unwrap_or_default();
    match guard(|| check(policy, schemas, profile)) {
        Ok(outcome) => {
            let is_resource = |gvk: &&Gvk| !outcome.subresource_kinds.contains(gvk);
            let checked = || outcome.checked.iter();
            line.types = checked().filter(is_resource).map(TypeRef::from).collect();
            let of_subresources = outcome.subresource_kinds.iter();
            line.subresource_types = of_subresources.map(TypeRef::from).collect();
            let by_wildcard = outcome.by_wildcard.checked.iter();
            line.wildcard_types = by_wildcard.map(TypeRef::from).collect();
            line.params = outcome.params.map(|(gvk, typed)| ParamsRef {
                type_ref: TypeRef::from(&gvk),
                typed,
            });
            let types = line
                .types
                .iter()
                .chain(&line.subresource_types)
                .chain(&line.wildcard_types)
                .chain(line.params.iter().map(|params| &params.type_ref));
            let mut kinds: Vec<&str> = types.map(|type_ref| type_ref.kind.as_str()).collect();
            kinds.sort_by_key(|kind| Reverse(kind.len()));
            line.warnings = warnings(&outcome.findings)
                .into_iter()
                .map(|warning| WarningLine {
                    warning: warning.text(),
                    warning_normalized: normalize(&warning.text(), &kinds),
                    field_ref: warning.field_ref,
                })
                .collect();
        }
        Err(panic) => line.panic = Some(panic),
    }
    line
}

/// A warning of upstream that the truthful profile omits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DifferenceLine {
    /// The path of the file.
    pub file: String,
    /// The index of the document in its file.
    pub index: usize,
    /// The path of the field in the policy.
    #[serde(rename = "fieldRef")]
    pub field_ref: String,
    /// The kind for which the warning was issued.
    pub kind: String,
    /// Upstream's message.
    pub message: String,
    /// The rule that explains the omission. `None` if no rule does.
    pub rule: Option<&'static str>,
}

/// Returns the warnings of upstream's type checker that the truthful profile omits.
#[must_use]
pub fn differences(doc: &PolicyDoc, schemas: &Schemas) -> Vec<DifferenceLine> {
    let Ok(policy) = &doc.policy else {
        return Vec::new();
    };
    let compiled = CompiledPolicy::from_parts(policy.into(), None, version::get());
    differences::differences(&compiled, &schemas.mapper, schemas)
        .into_iter()
        .map(|difference| DifferenceLine {
            file: doc.file.clone(),
            index: doc.index,
            field_ref: difference.field_ref,
            kind: difference.gvk.to_string(),
            message: difference.message,
            rule: difference.rule,
        })
        .collect()
}

/// Replaces the digits after a kind by `#`, like the oracle. Our type names have no digits. But a warning may quote
/// source that looks like a type name with digits, and the oracle also replaces these.
fn normalize(warning: &str, kinds: &[&str]) -> String {
    kinds
        .iter()
        .fold(warning.to_owned(), |text, kind| normalize_kind(&text, kind))
}

fn normalize_kind(text: &str, kind: &str) -> String {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut normalized = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(kind).filter(|_| !kind.is_empty()) {
        let tail = after.trim_start_matches(|c: char| c.is_ascii_digit());
        let n_digits = after.len() - tail.len();
        let starts =
            !(before.ends_with(is_word) || before.is_empty() && normalized.ends_with(is_word));
        normalized.push_str(before);
        normalized.push_str(kind);
        if starts && (1..=9).contains(&n_digits) && !tail.starts_with(is_word) {
            normalized.push('#');
            rest = tail;
        } else {
            rest = after;
        }
    }
    normalized.push_str(rest);
    normalized
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_after_kind_names_are_normalized() {
        for (text, wanted) in [
            ("Pod12.spec", "Pod#.spec"),
            ("(Pod1, Pod22)", "(Pod#, Pod#)"),
            ("Pod1234567890", "Pod1234567890"),
            ("Pod1x Pod_1 aPod1 Pod", "Pod1x Pod_1 aPod1 Pod"),
            ("PodPod1", "PodPod1"),
            ("PodList3", "PodList#"),
        ] {
            assert_eq!(normalize(text, &["PodList", "Pod"]), wanted);
        }
    }
}
