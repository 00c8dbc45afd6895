//! `parity compile`: compiles policies and prints the results.
//!
//! Source: the oracle's `compile.go`.

use serde::Serialize;
use vap_status_controller::cel::cost::{CostEstimate, UnknownSizes};
use vap_status_controller::policy::compile::{CompileMode, CompiledExpression, CompiledPolicy};

use crate::documents::{AnyPolicy, AnyPolicyDoc};
use crate::guard::{Panic, guard};
use crate::version;

/// The result for a policy and a mode, as a line of output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CompileLine {
    /// The path of the file.
    pub file: String,
    /// The index of the document in its file.
    pub index: usize,
    /// The name of the policy.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The mode. `new` compiles the policy as on its creation. `stored` compiles it like the admission plugin.
    pub mode: &'static str,
    /// True if all expressions compile.
    pub ok: bool,
    /// The result for each expression.
    pub expressions: Vec<ExpressionLine>,
    /// The error if the whole policy could not be compiled. Empty if there is no such error.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub error: String,
    /// The panic, if compiling the policy panicked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub panic: Option<Panic>,
}

/// The result of compiling an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionLine {
    field_ref: String,
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_type: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    output_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cost: Option<CostLine>,
}

/// The estimated minimum and maximum cost of an expression.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CostLine {
    /// The minimum cost.
    pub min: u64,
    /// The maximum cost.
    pub max: u64,
}

impl From<CostEstimate> for CostLine {
    fn from(cost: CostEstimate) -> Self {
        Self {
            min: cost.min,
            max: cost.max,
        }
    }
}

impl From<(CompiledExpression, Option<CostEstimate>)> for ExpressionLine {
    fn from((expression, cost): (CompiledExpression, Option<CostEstimate>)) -> Self {
        let line = Self {
            field_ref: expression.field_ref,
            cost: cost.map(CostLine::from),
            ..Self::default()
        };
        match expression.outcome {
            Ok(type_) => Self {
                ok: true,
                output_type: Some(type_.declared_string()),
                ..line
            },
            Err(error) => Self {
                error_type: Some(error.type_.name()),
                error: Some(error.message()),
                ..line
            },
        }
    }
}

/// Compiles a policy in a mode.
#[must_use]
pub fn line((file, index, policy): &AnyPolicyDoc, mode: CompileMode) -> CompileLine {
    let mut line = CompileLine {
        file: file.clone(),
        index: *index,
        mode: match mode {
            CompileMode::New => "new",
            CompileMode::Stored => "stored",
        },
        ..CompileLine::default()
    };
    let policy = match policy {
        Ok(policy) => policy,
        Err(error) => {
            line.error = format!("{error:#}");
            return line;
        }
    };
    let metadata = match policy {
        AnyPolicy::Validating(policy) => &policy.metadata,
        AnyPolicy::Mutating(policy) => &policy.metadata,
    };
    line.name = metadata.name.clone().unwrap_or_default();
    let compiled = || match policy {
        AnyPolicy::Validating(policy) => {
            CompiledPolicy::from_parts(policy.into(), None, version::get())
        }
        AnyPolicy::Mutating(policy) => CompiledPolicy::from_mutating(policy, version::get()),
    };
    match guard(|| compiled().compile_with_costs(mode, &UnknownSizes)) {
        Ok(expressions) => {
            line.expressions = expressions.into_iter().map(ExpressionLine::from).collect();
            line.ok = line.expressions.iter().all(|expression| expression.ok);
        }
        Err(panic) => line.panic = Some(panic),
    }
    line
}
