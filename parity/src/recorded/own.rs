//! Results of our engine for the cases of the tables, in the oracle's format.

use anyhow::{Result, anyhow};
use serde_json::Value;
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::policy::compile::CompileMode;
use vap_status_controller::version::KubernetesVersion;

use super::hand;
use super::table_kind::{TableKind, oracle_input};
use crate::documents::{self, PolicyDoc};
use crate::schemas::Schemas;
use crate::{admit, compile, eval, mutate_requests, rules, typecheck};

/// Returns our results for cases in the current version.
///
/// # Errors
/// Returns an error if a case is not valid.
pub(super) fn lines(kind: TableKind, cases: &[&str]) -> Result<Vec<Value>> {
    let schemas = match kind {
        // All versions use the same schemas, as in `./dev parity`.
        TableKind::TypeChecks => {
            Schemas::builtin(KubernetesVersion::DEFAULT)?.with_crds(&hand::crds())?
        }
        _ => Schemas::load(None, None)?,
    };
    let line = |case: &&str| -> Result<Value> {
        Ok(match kind {
            TableKind::Expressions => {
                serde_json::to_value(eval::line(1, &oracle_input(kind, case)))?
            }
            TableKind::Admissions => serde_json::to_value(admit::answer(&schemas, 1, case))?,
            TableKind::Compilations => {
                let doc = policy(case)?.to_any();
                serde_json::to_value(compile::line(&doc, CompileMode::New))?
            }
            TableKind::TypeChecks => {
                let line = typecheck::line(&policy(case)?, &schemas, Profile::Upstream);
                serde_json::to_value(line)?
            }
            TableKind::Definitions => rules::definition_line(&serde_json::from_str(case)?),
            TableKind::CustomResources => rules::objects_line(&serde_json::from_str(case)?)?,
            TableKind::Mutations => mutate_requests::line(&serde_json::from_str(case)?)?,
        })
    };
    cases.iter().map(line).collect()
}

fn policy(case: &str) -> Result<PolicyDoc> {
    let policy = documents::parse_policy(serde_json::from_str(case)?)?;
    Ok(PolicyDoc {
        file: String::new(),
        index: 0,
        policy: policy.ok_or_else(|| anyhow!("not a ValidatingAdmissionPolicy: {case}")),
    })
}
