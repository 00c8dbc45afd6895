//! The authorizer library: authorization checks, optionally with selectors.

mod authorizer;
mod values;

pub use authorizer::{
    Authorizer, AuthorizerAnswer, AuthorizerAttributes, AuthorizerDecision, AuthorizerList,
    AuthorizerRule, UserInfo,
};
pub use values::{AuthorizerValue, Decision, GroupCheck, PathCheck, ResourceCheck};

use super::args::{Result, opaque, text};
use super::costs::{AUTHORIZER_CHECK, NOMINAL, SELECTOR};
use super::format::validation;
use crate::version::{V1_27, V1_31};
use Sig::{Bool, String};
use cel::decls::{OverloadRow, Sig, Source};
use cel::value::{EvalBudget, EvalError, Value};

use super::types::{AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK};

const SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/authz.go, authzLibraryDecls").since(V1_27);
const SELECTORS_SOURCE: Source =
    Source::new("k8s.io/apiserver pkg/cel/library/authz.go, authzSelectorsLibraryDecls")
        .since(V1_31);

/// The functions that build a check, perform it, and read the decision.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "path",
        "authorizer_path",
        &[AUTHORIZER, String],
        PATH_CHECK,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(path),
    OverloadRow::member(
        "group",
        "authorizer_group",
        &[AUTHORIZER, String],
        GROUP_CHECK,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(group),
    OverloadRow::member(
        "serviceAccount",
        "authorizer_serviceaccount",
        &[AUTHORIZER, String, String],
        AUTHORIZER,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(service_account),
    OverloadRow::member(
        "resource",
        "groupcheck_resource",
        &[GROUP_CHECK, String],
        RESOURCE_CHECK,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(resource),
    OverloadRow::member(
        "subresource",
        "resourcecheck_subresource",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(subresource),
    OverloadRow::member(
        "namespace",
        "resourcecheck_namespace",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(namespace),
    OverloadRow::member(
        "name",
        "resourcecheck_name",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(name),
    OverloadRow::member(
        "check",
        "pathcheck_check",
        &[PATH_CHECK, String],
        DECISION,
        AUTHORIZER_CHECK,
        SOURCE,
    )
    .evaluated_by(check_path),
    OverloadRow::member(
        "check",
        "resourcecheck_check",
        &[RESOURCE_CHECK, String],
        DECISION,
        AUTHORIZER_CHECK,
        SOURCE,
    )
    .evaluated_by(check_resource),
    OverloadRow::member(
        "errored",
        "decision_errored",
        &[DECISION],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(errored),
    OverloadRow::member(
        "error",
        "decision_error",
        &[DECISION],
        String,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(error),
    OverloadRow::member(
        "allowed",
        "decision_allowed",
        &[DECISION],
        Bool,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(allowed),
    OverloadRow::member(
        "reason",
        "decision_reason",
        &[DECISION],
        String,
        NOMINAL,
        SOURCE,
    )
    .evaluated_by(reason),
];

/// The functions that add a field or label selector to a check.
pub static SELECTORS: &[OverloadRow] = &[
    OverloadRow::member(
        "fieldSelector",
        "authorizer_fieldselector",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SELECTOR,
        SELECTORS_SOURCE,
    )
    .evaluated_by(field_selector),
    OverloadRow::member(
        "labelSelector",
        "authorizer_labelselector",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SELECTOR,
        SELECTORS_SOURCE,
    )
    .evaluated_by(label_selector),
];

fn path(_: &EvalBudget, args: &[Value]) -> Result {
    let authorizer: &AuthorizerValue = opaque(args, 0)?;
    let path = text(args, 1)?;
    if path.trim().is_empty() {
        return Err(EvalError::fixed("path must not be empty"));
    }
    Ok(Value::opaque(authorizer.path(path)))
}

fn group(_: &EvalBudget, args: &[Value]) -> Result {
    let authorizer: &AuthorizerValue = opaque(args, 0)?;
    Ok(Value::opaque(authorizer.group(text(args, 1)?)))
}

fn service_account(_: &EvalBudget, args: &[Value]) -> Result {
    let authorizer: &AuthorizerValue = opaque(args, 0)?;
    let (namespace, name) = (text(args, 1)?, text(args, 2)?);
    if !validation::dns1123_subdomain(name.as_bytes()).is_empty() {
        return Err(EvalError::fixed("Invalid service account name"));
    }
    if !validation::dns1123_label(namespace.as_bytes()).is_empty() {
        return Err(EvalError::fixed("Invalid service account namespace"));
    }
    Ok(Value::opaque(
        authorizer.for_service_account(namespace, name),
    ))
}

fn resource(_: &EvalBudget, args: &[Value]) -> Result {
    let group: &GroupCheck = opaque(args, 0)?;
    let resource = text(args, 1)?;
    if resource.trim().is_empty() {
        return Err(EvalError::fixed("resource must not be empty"));
    }
    Ok(Value::opaque(group.resource(resource)))
}

/// Returns a copy of the resource check in the first argument. In the copy, `field` is set to the second argument.
fn narrowed(args: &[Value], field: fn(&mut ResourceCheck) -> &mut std::string::String) -> Result {
    let mut check: ResourceCheck = opaque::<ResourceCheck>(args, 0)?.clone();
    text(args, 1)?.clone_into(field(&mut check));
    Ok(Value::opaque(check))
}

fn subresource(_: &EvalBudget, args: &[Value]) -> Result {
    narrowed(args, |check| &mut check.subresource)
}

fn namespace(_: &EvalBudget, args: &[Value]) -> Result {
    narrowed(args, |check| &mut check.namespace)
}

fn name(_: &EvalBudget, args: &[Value]) -> Result {
    narrowed(args, |check| &mut check.name)
}

fn field_selector(_: &EvalBudget, args: &[Value]) -> Result {
    narrowed(args, |check| &mut check.field_selector)
}

fn label_selector(_: &EvalBudget, args: &[Value]) -> Result {
    narrowed(args, |check| &mut check.label_selector)
}

fn check_path(_: &EvalBudget, args: &[Value]) -> Result {
    let check: &PathCheck = opaque(args, 0)?;
    Ok(Value::opaque(check.check(text(args, 1)?)))
}

fn check_resource(_: &EvalBudget, args: &[Value]) -> Result {
    let check: &ResourceCheck = opaque(args, 0)?;
    Ok(Value::opaque(check.check(text(args, 1)?)))
}

fn errored(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|decision: &Decision| decision.error().is_some().into())
}

fn error(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|decision: &Decision| decision.error().unwrap_or_default().into())
}

fn allowed(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|decision: &Decision| decision.is_allowed().into())
}

fn reason(_: &EvalBudget, args: &[Value]) -> Result {
    opaque(args, 0).map(|decision: &Decision| decision.reason().into())
}
