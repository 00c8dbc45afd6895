//! `parity typecheck`: what the type checker answers.
//!
//! Source: the oracle's `typecheck.go`.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde::Serialize;
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::policy::typecheck::{Profile, TypeCheck, type_check};
use vap_status_controller::schema::Gvk;

use super::documents::PolicyDoc;
use super::guard::{Panic, guard};
use super::schemas::Schemas;

/// What is printed for a policy.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct TypecheckLine {
    /// The file.
    pub file: String,
    /// The place of the document in its file.
    pub index: usize,
    /// The name of the policy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The kinds that were checked.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<TypeRef>,
    /// The kind of the params.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<ParamsRef>,
    /// The warnings.
    pub warnings: Vec<WarningLine>,
    /// Why there is no answer.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The panic that the check ended in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<Panic>,
}

/// A kind.
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

/// The kind of the params, and whether it has a schema.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ParamsRef {
    #[serde(flatten)]
    type_ref: TypeRef,
    typed: bool,
}

/// A warning; the names of our types do not change between runs, so that both texts are the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningLine {
    field_ref: String,
    warning: String,
    warning_normalized: String,
}

/// Checks a policy as the controller does: parsed, compiled and type-checked.
#[must_use]
pub fn check(policy: &ValidatingAdmissionPolicy, schemas: &Schemas, profile: Profile) -> TypeCheck {
    type_check(
        &CompiledPolicy::new(policy),
        &schemas.mapper,
        &schemas.types,
        profile,
    )
}

/// The line of a policy.
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
            line.types = outcome.checked.iter().map(TypeRef::from).collect();
            line.params = outcome.params.map(|(gvk, typed)| ParamsRef {
                type_ref: TypeRef::from(&gvk),
                typed,
            });
            line.warnings = outcome
                .warnings
                .into_iter()
                .map(|warning| WarningLine {
                    field_ref: warning.field_ref,
                    warning_normalized: warning.warning.clone(),
                    warning: warning.warning,
                })
                .collect();
        }
        Err(panic) => line.panic = Some(panic),
    }
    line
}
