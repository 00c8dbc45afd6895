//! Assumptions with which the check continues after an error that only the author can correct.

use goyaml::{Data, Node};

use super::finding::{Assumption, Finding};
use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::cli::text::is_word;
use crate::library::mutation::JSON_PATCH;
use crate::policy::RequestPolicy;
use crate::policy::rule::Rule;

/// The patch types, each with the field that contains its expression.
const PATCH_TYPES: [(&str, &str); 2] = [
    ("ApplyConfiguration", "applyConfiguration"),
    ("JSONPatch", "jsonPatch"),
];

/// Returns the assumption that treats a map of names to expressions as a list of variables.
pub(super) fn list_of_variables<T>(object: &Object<T>, map: &Node) -> Option<Assumption> {
    let fields = ("name", "expression");
    let edit = object
        .document
        .edit_into_objects(&object.source, map, fields)?;
    Some(Assumption {
        as_if: Some("it were such a list"),
        ..Assumption::new(edit)
    })
}

/// Adds an assumption to each finding about a mutation whose expression is in the field of the other patch type. The
/// assumption moves the expression or changes the patch type, whichever fits the expression.
pub(super) fn assume_patch_type(policy: &Object<RequestPolicy>, findings: &mut [Finding]) {
    for finding in findings {
        if finding.rule == Rule::Required
            && finding.rejected
            && let Some(edit) = finding
                .field_ref
                .as_deref()
                .and_then(|field_ref| patch_edit(policy, field_ref))
        {
            finding.assumption = Some(Assumption::new(edit));
        }
    }
}

/// Maximum length of a condition in which variables are replaced with their expressions, in bytes.
const MAX_BYTES: usize = 10_000;

/// Replaces the variables in the match condition `text` with their expressions. The result shows which inputs the
/// condition tests. Undeclared variables remain.
pub(super) fn with_variables(policy: &RequestPolicy, text: &str) -> String {
    let mut text = text.to_owned();
    // A variable can only read the variables before it.
    for variable in policy.variables.iter().rev() {
        let read = format!("variables.{}", variable.name);
        if !text.contains(&read) {
            continue;
        }
        let mut parts = text.split(&read);
        let mut replaced = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let continues = part.starts_with(is_word);
            if continues {
                replaced.push_str(&read);
            } else {
                replaced.push('(');
                replaced.push_str(&variable.expression);
                replaced.push(')');
            }
            replaced.push_str(part);
        }
        if replaced.len() > MAX_BYTES {
            break;
        }
        text = replaced;
    }
    text
}

/// Returns the edit that makes the patch type and the field of a mutation agree. `field_ref` is the missing field.
fn patch_edit(policy: &Object<RequestPolicy>, field_ref: &str) -> Option<Edit> {
    let (mutation, missing) = field_ref.rsplit_once('.')?;
    mutation.strip_prefix("spec.mutations[")?;
    let (_, own) = PATCH_TYPES.iter().find(|(_, field)| *field == missing)?;
    let (_, other) = PATCH_TYPES.iter().find(|(_, field)| field != own)?;
    let document = &policy.document;
    let node = document.node.nearest(mutation);
    let expression = node.get(other)?.get("expression")?.as_str()?.trim_start();
    let is_patch = expression.starts_with('[') || expression.contains(JSON_PATCH);
    let (meant_type, meant) = PATCH_TYPES
        .iter()
        .find(|(name, _)| (*name == JSON_PATCH) == is_patch)?;
    if meant == own {
        let Data::Map(entries) = &node.data else {
            return None;
        };
        let (_, entry) = entries.iter().find(|(name, _)| name == other)?;
        document.edit_key(&policy.source, &entry.key, own)
    } else {
        document.edit_value(&policy.source, node.get("patchType")?, meant_type)
    }
}
