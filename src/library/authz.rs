//! Authorization checks, with selectors.

use crate::cel::decls::{OverloadRow, Sig};
use Sig::{Bool, String};

use super::types::{AUTHORIZER, DECISION, GROUP_CHECK, PATH_CHECK, RESOURCE_CHECK};

const SOURCE: &str = "k8s.io/apiserver pkg/cel/library/authz.go, authzLibraryDecls";
const SELECTORS_SOURCE: &str =
    "k8s.io/apiserver pkg/cel/library/authz.go, authzSelectorsLibraryDecls";

/// From the authorizer to a decision.
pub static ROWS: &[OverloadRow] = &[
    OverloadRow::member(
        "path",
        "authorizer_path",
        &[AUTHORIZER, String],
        PATH_CHECK,
        SOURCE,
    ),
    OverloadRow::member(
        "group",
        "authorizer_group",
        &[AUTHORIZER, String],
        GROUP_CHECK,
        SOURCE,
    ),
    OverloadRow::member(
        "serviceAccount",
        "authorizer_serviceaccount",
        &[AUTHORIZER, String, String],
        AUTHORIZER,
        SOURCE,
    ),
    OverloadRow::member(
        "resource",
        "groupcheck_resource",
        &[GROUP_CHECK, String],
        RESOURCE_CHECK,
        SOURCE,
    ),
    OverloadRow::member(
        "subresource",
        "resourcecheck_subresource",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SOURCE,
    ),
    OverloadRow::member(
        "namespace",
        "resourcecheck_namespace",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SOURCE,
    ),
    OverloadRow::member(
        "name",
        "resourcecheck_name",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SOURCE,
    ),
    OverloadRow::member(
        "check",
        "pathcheck_check",
        &[PATH_CHECK, String],
        DECISION,
        SOURCE,
    ),
    OverloadRow::member(
        "check",
        "resourcecheck_check",
        &[RESOURCE_CHECK, String],
        DECISION,
        SOURCE,
    ),
    OverloadRow::member("errored", "decision_errored", &[DECISION], Bool, SOURCE),
    OverloadRow::member("error", "decision_error", &[DECISION], String, SOURCE),
    OverloadRow::member("allowed", "decision_allowed", &[DECISION], Bool, SOURCE),
    OverloadRow::member("reason", "decision_reason", &[DECISION], String, SOURCE),
];

/// Checks narrowed by selectors.
pub static SELECTORS: &[OverloadRow] = &[
    OverloadRow::member(
        "fieldSelector",
        "authorizer_fieldselector",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SELECTORS_SOURCE,
    ),
    OverloadRow::member(
        "labelSelector",
        "authorizer_labelselector",
        &[RESOURCE_CHECK, String],
        RESOURCE_CHECK,
        SELECTORS_SOURCE,
    ),
];
