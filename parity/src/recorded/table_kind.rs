//! The tables and their cases.

use std::str::FromStr;

use anyhow::{Context as _, Result};
use serde_json::Value;
use vap_status_controller::version::KubernetesVersion;

use crate::bench::Stage;

/// A table of recorded results. The cases of a table are in the format of one of the oracle's commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TableKind {
    /// Evaluations of expressions.
    Expressions,
    /// Admission requests with ValidatingAdmissionPolicies.
    Admissions,
    /// Compilations of new policies.
    Compilations,
    /// Warnings of the type checker.
    TypeChecks,
    /// New CustomResourceDefinitions with validation rules.
    Definitions,
    /// Custom resources that validation rules apply to.
    CustomResources,
    /// Admission requests with MutatingAdmissionPolicies.
    Mutations,
}

impl TableKind {
    /// All tables.
    pub const ALL: [Self; 7] = [
        Self::Expressions,
        Self::Admissions,
        Self::Compilations,
        Self::TypeChecks,
        Self::Definitions,
        Self::CustomResources,
        Self::Mutations,
    ];

    /// Returns the name of the table's file, without its extension.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Expressions => "expressions",
            Self::Admissions => "admissions",
            Self::Compilations => "compilations",
            Self::TypeChecks => "type_checks",
            Self::Definitions => "definitions",
            Self::CustomResources => "custom_resources",
            Self::Mutations => "mutations",
        }
    }

    /// Returns true if the oracle of a version supports the command for the table.
    #[must_use]
    pub fn includes(self, version: KubernetesVersion) -> bool {
        // The oracle's code for mutating policies requires the interfaces of 1.36.
        self != Self::Mutations || version.has_minor(36)
    }

    /// Returns the operation whose cases are generated. Returns `None` if all cases are written by hand.
    pub(super) const fn stage(self) -> Option<Stage> {
        match self {
            Self::Expressions => Some(Stage::Eval),
            Self::Admissions => Some(Stage::Admit),
            Self::Compilations => Some(Stage::Compile),
            Self::TypeChecks => Some(Stage::Typecheck),
            Self::Definitions | Self::CustomResources | Self::Mutations => None,
        }
    }
}

impl FromStr for TableKind {
    type Err = anyhow::Error;

    fn from_str(name: &str) -> Result<Self> {
        let mut kinds = Self::ALL.into_iter();
        let kind = kinds.find(|kind| kind.name() == name);
        kind.with_context(|| format!("no table {name}"))
    }
}

/// Returns the case in the oracle's format.
pub(super) fn oracle_input(kind: TableKind, case: &str) -> String {
    if kind == TableKind::Expressions && is_expression(case) {
        serde_json::json!({ "expr": case }).to_string()
    } else {
        case.to_owned()
    }
}

/// Returns true if the case is an expression without variables, and not JSON.
pub(super) fn is_expression(case: &str) -> bool {
    let parsed: Result<Value, _> = serde_json::from_str(case);
    !parsed.is_ok_and(|case| case.is_object())
}
