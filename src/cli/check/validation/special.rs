//! Constraints that involve several fields, or that need a function of their own
//! ([`super::table::Constraint::Special`]).

use std::collections::BTreeSet;

use goyaml::{Data, Node};

use super::syntax::{Form, split_group_version};
use super::walk::{Spot, advice_on_form, form, present, quoted, text, violation_message};
use super::{Violation, Violations};
use crate::cli::check::finding::Severity;
use crate::library::format::validation::without_trailing_dash;
use crate::policy::rule::Rule;

/// Maximum total size of the keys and values of annotations, in bytes.
///
/// Source: `objectmeta.go`, `TotalAnnotationSizeLimitB`.
const MAX_ANNOTATIONS: usize = 256 * 1024;

/// Maximum length of the prefix from `generateName`, in bytes.
///
/// Source: `k8s.io/apiserver` `pkg/storage/names/generate.go`, `MaxGeneratedNameLength`.
const MAX_GENERATED: usize = 58;

/// Requires a name or `generateName`.
///
/// Source: `ValidateObjectMetaAccessor`.
pub(super) fn name(spot: &Spot<'_>, violations: &mut Violations) {
    let metadata = spot.root.get("metadata");
    let is_generated = !text(metadata.and_then(|metadata| metadata.get("generateName"))).is_empty();
    let is_empty = spot.node.is_none_or(|node| node.as_str() == Some(""));
    if is_empty && !is_generated {
        let message = "`metadata.name` is required".to_owned();
        let advice = "set a name, or `generateName` for a generated one".to_owned();
        violations.add(Rule::Required, spot.field_ref, message, Some(advice));
    }
}

/// Validates `generateName` without a trailing hyphen. If the object has no name, also validates a generated name.
///
/// Source: `ValidateObjectMetaAccessor`, `maskTrailingDash`; `names/generate.go`, `GenerateName`.
pub(super) fn generate_name(spot: &Spot<'_>, violations: &mut Violations) {
    let base = spot.text();
    if base.is_empty() {
        return;
    }
    let masked = without_trailing_dash(base.as_bytes());
    let masked = String::from_utf8_lossy(&masked);
    let metadata = spot.root.get("metadata");
    let has_name = !text(metadata.and_then(|metadata| metadata.get("name"))).is_empty();
    let mut generated = base.to_owned();
    while generated.len() > MAX_GENERATED {
        generated.pop();
    }
    generated.push_str("xxxxx");
    let requirement = Form::Subdomain.violated(&masked);
    let requirement =
        requirement.or_else(|| Form::Subdomain.violated(&generated).filter(|_| !has_name));
    if let Some(requirement) = requirement {
        let message = violation_message(spot.field_ref, base, &requirement);
        let meant = Form::Subdomain.meant(base);
        let advice = meant.map(|meant| format!("did you mean `{meant}-`?"));
        violations.add(Rule::InvalidName, spot.field_ref, message, advice);
    }
}

/// Rejects a resource version, which an object must not have when it is created.
///
/// Source: `k8s.io/apiserver` `pkg/storage/etcd3/store.go`, `store.Create`.
pub(super) fn resource_version(spot: &Spot<'_>, violations: &mut Violations) {
    let version = spot.text();
    let is_number = !version.is_empty() && version.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && version.parse::<u64>().is_ok_and(|version| version != 0) {
        let message = format!(
            "`{}` must not be set when an object is created",
            spot.field_ref
        );
        // An object with a uid was read from a cluster and is usually not created again, so the violation is only a
        // note.
        let metadata = spot.root.get("metadata");
        let is_read = !text(metadata.and_then(|metadata| metadata.get("uid"))).is_empty();
        violations.push(Violation {
            severity: if is_read {
                Severity::Note
            } else {
                Severity::Error
            },
            rule: Rule::InvalidValue,
            field_ref: spot.field_ref.to_owned(),
            key: None,
            message,
            advice: Some(
                "to create the object, remove the fields that a cluster has set".to_owned(),
            ),
            meant: Vec::new(),
            removed: None,
        });
    }
}

/// Returns the entries of a map of strings: the key, the value, and the byte range of the key.
fn entries<'a>(
    spot: &Spot<'a>,
) -> impl Iterator<Item = (&'a str, &'a Node, std::ops::Range<usize>)> {
    let entries = spot.node.into_iter().flat_map(Node::entries);
    entries.map(|(name, entry)| (name, &entry.node, entry.key.clone()))
}

fn keys(spot: &Spot<'_>, form: Form, noun: &str, violations: &mut Violations) {
    for (name, _, key) in entries(spot) {
        if let Some(requirement) = form.violated(name) {
            let meant = form.meant(name);
            violations.push(Violation {
                severity: Severity::Error,
                rule: Rule::InvalidName,
                field_ref: spot.field_ref.to_owned(),
                key: Some(key),
                message: format!("the key {} of {noun} must {requirement}", quoted(name)),
                advice: advice_on_form(name, meant.as_deref(), "the key"),
                meant: Vec::new(),
                removed: None,
            });
        }
    }
}

/// Validates the keys and values of labels.
///
/// Source: `ValidateLabels`.
pub(super) fn labels(spot: &Spot<'_>, violations: &mut Violations) {
    keys(spot, Form::LabelKey, "a label", violations);
    for (name, node, _) in entries(spot) {
        let field_ref = format!("{}.{name}", spot.field_ref);
        let value = Spot {
            field_ref: &field_ref,
            node: present(Some(node)),
            root: spot.root,
        };
        form(&value, Form::LabelValue, violations);
    }
}

/// Validates the keys and the total size of annotations.
///
/// Source: `ValidateAnnotations`, `ValidateAnnotationsSize`.
pub(super) fn annotations(spot: &Spot<'_>, violations: &mut Violations) {
    keys(spot, Form::AnnotationKey, "an annotation", violations);
    let n = entries(spot).map(|(name, node, _)| name.len() + text(Some(node)).len());
    let n: usize = n.sum();
    if n > MAX_ANNOTATIONS {
        let message =
            format!("annotations must not exceed {MAX_ANNOTATIONS} bytes in total, but have {n}");
        violations.add(Rule::TooLarge, spot.field_ref, message, None);
    }
}

/// Requires complete owner references, and at most one controller. Equal references to a controller count once.
///
/// Source: `ValidateOwnerReferences`, `validateOwnerReference`, `BannedOwners`; `k8s.io/apiserver`
/// `pkg/endpoints/handlers/rest.go`, `dedupOwnerReferences`.
pub(super) fn owner_references(spot: &Spot<'_>, violations: &mut Violations) {
    let mut controllers = BTreeSet::new();
    for (n, owner) in spot.items().iter().enumerate() {
        let owner_ref = format!("{}[{n}]", spot.field_ref);
        let field = |name: &str| text(owner.get(name));
        for name in ["kind", "name", "uid"] {
            let is_other = present(owner.get(name)).is_some_and(|node| node.as_str().is_none());
            if field(name).is_empty() && !is_other {
                let field_ref = format!("{owner_ref}.{name}");
                let message = format!("`{field_ref}` is required");
                violations.add(Rule::Required, &field_ref, message, None);
            }
        }
        let api_version = field("apiVersion");
        let is_versioned =
            split_group_version(api_version).is_some_and(|(_, version)| !version.is_empty());
        if !is_versioned {
            let field_ref = format!("{owner_ref}.apiVersion");
            let message = format!("`{field_ref}` must have a version");
            violations.add(Rule::Required, &field_ref, message, None);
        }
        let group_version = split_group_version(api_version);
        if group_version == Some(("", "v1")) && field("kind") == "Event" {
            let message = "an Event must not be an owner".to_owned();
            violations.add(Rule::InvalidValue, &owner_ref, message, None);
        }
        let flag = |name: &str| match owner.get(name).map(|node| &node.data) {
            Some(Data::Scalar(value, _)) => value.as_bool(),
            _ => None,
        };
        if flag("controller") == Some(true) {
            let blocks = flag("blockOwnerDeletion");
            controllers.insert((
                field("uid"),
                field("kind"),
                field("name"),
                api_version,
                blocks,
            ));
        }
    }
    if controllers.len() > 1 {
        let message = format!(
            "only one of `{}` may have `controller: true`",
            spot.field_ref
        );
        violations.add(Rule::InvalidValue, spot.field_ref, message, None);
    }
}

/// Rejects mutually exclusive finalizers.
///
/// Source: `ValidateFinalizers`.
pub(super) fn finalizers(spot: &Spot<'_>, violations: &mut Violations) {
    let has = |name: &str| spot.items().iter().any(|item| item.as_str() == Some(name));
    if has("orphan") && has("foregroundDeletion") {
        let message = "`orphan` and `foregroundDeletion` are mutually exclusive".to_owned();
        violations.add(Rule::InvalidValue, spot.field_ref, message, None);
    }
}

/// Requires a variable to have a name that is a CEL identifier.
///
/// Source: `validateVariable`.
pub(super) fn variable_name(spot: &Spot<'_>, violations: &mut Violations) {
    if spot.node.is_some_and(|node| node.as_str().is_none()) {
        return;
    }
    if spot.text().trim().is_empty() {
        let message = format!("`{}` is required", spot.field_ref);
        let advice = "set the name by which expressions read the variable".to_owned();
        violations.add(Rule::Required, spot.field_ref, message, Some(advice));
    } else {
        form(spot, Form::Identifier, violations);
    }
}

/// Requires a variable to have an expression.
///
/// Source: `validateVariable`.
pub(super) fn not_only_blank(spot: &Spot<'_>, violations: &mut Violations) {
    let is_other = spot.node.is_some_and(|node| node.as_str().is_none());
    if !is_other && spot.text().trim().is_empty() {
        let message = format!("`{}` is required", spot.field_ref);
        let advice = "write an expression, or remove the variable".to_owned();
        violations.add(Rule::Required, spot.field_ref, message, Some(advice));
    }
}

/// Requires at least one validation or audit annotation.
///
/// Source: `validateValidatingAdmissionPolicySpec`.
pub(super) fn validations_or_annotations(spot: &Spot<'_>, violations: &mut Violations) {
    let is_empty = |name: &str| match spot.get(name).map(|node| &node.data) {
        None => true,
        Some(Data::List(items)) => items.is_empty(),
        Some(_) => false,
    };
    if is_empty("validations") && is_empty("auditAnnotations") {
        let field_ref = format!("{}.validations", spot.field_ref);
        let message = "validations or auditAnnotations must contain at least one item".to_owned();
        let advice = "add `validations` with an expression that is true for allowed objects";
        violations.add(Rule::Required, &field_ref, message, Some(advice.to_owned()));
    }
}

/// Requires exactly one of `name` and `selector`.
///
/// Source: `validateParamRef`.
pub(super) fn param_ref(spot: &Spot<'_>, violations: &mut Violations) {
    let Some(node) = spot.node else { return };
    let has_name = present(node.get("name")).is_some_and(|name| name.as_str() != Some(""));
    let has_selector = present(node.get("selector")).is_some();
    match (has_name, has_selector) {
        (true, true) => {
            let field_ref = format!("{}.name", spot.field_ref);
            let message = format!(
                "`name` and `selector` of `{}` are mutually exclusive",
                spot.field_ref
            );
            let advice = "remove one of the two".to_owned();
            violations.add(Rule::InvalidValue, &field_ref, message, Some(advice));
        }
        (false, false) => {
            let message = "one of `name` and `selector` must be specified".to_owned();
            let advice =
                "set the name of the params, or a label selector (`selector: {}` selects all)";
            let advice = Some(advice.to_owned());
            violations.add(Rule::Required, spot.field_ref, message, advice);
        }
        (true, false) | (false, true) => {}
    }
}

/// Rejects Deny together with Warn.
///
/// Source: `validateValidationActions`.
pub(super) fn deny_and_warn(spot: &Spot<'_>, violations: &mut Violations) {
    let has = |name: &str| spot.items().iter().any(|item| item.as_str() == Some(name));
    if has("Deny") && has("Warn") {
        let message = format!("`{}` must not contain both Deny and Warn", spot.field_ref);
        let advice = "remove Warn: a denial already shows the message".to_owned();
        violations.add(Rule::InvalidValue, spot.field_ref, message, Some(advice));
        let mut items = spot.items().iter();
        if let Some(n) = items.position(|item| item.as_str() == Some("Warn")) {
            violations.set_removed(spot.field_ref, (spot.field_ref, n));
        }
    }
}

/// Requires or rejects the values of a selector, depending on the operator.
///
/// Source: `ValidateLabelSelectorRequirement`.
pub(super) fn requirement(spot: &Spot<'_>, violations: &mut Violations) {
    let n_values = spot.get("values").map_or(0, |values| values.items().len());
    let field_ref = format!("{}.values", spot.field_ref);
    match text(spot.get("operator")) {
        operator @ ("In" | "NotIn") if n_values == 0 => {
            let message = format!("`{field_ref}` is required with the operator {operator}");
            let advice = "add values, or use the operator Exists or DoesNotExist".to_owned();
            violations.add(Rule::Required, &field_ref, message, Some(advice));
        }
        operator @ ("Exists" | "DoesNotExist") if n_values > 0 => {
            let message = format!("`{field_ref}` must not be set with the operator {operator}");
            let advice = "remove the values, or use the operator In or NotIn".to_owned();
            violations.add(Rule::InvalidValue, &field_ref, message, Some(advice));
        }
        _ => {}
    }
}

/// Rejects resources that a wildcard in the same list includes.
///
/// Source: `validateResources`.
pub(super) fn resources(spot: &Spot<'_>, violations: &mut Violations) {
    let names: Vec<&str> = spot.items().iter().map(|item| text(Some(item))).collect();
    let has = |wanted: &str| names.contains(&wanted);
    if names.len() > 1 && has("*/*") {
        let message = format!(
            "`{}` contains `*/*`, so it must not contain other items",
            spot.field_ref
        );
        let advice = "remove `*/*`, or all other items".to_owned();
        violations.add(Rule::InvalidValue, spot.field_ref, message, Some(advice));
    }
    // Upstream checks only the last resource without a subresource.
    let last = names
        .iter()
        .rfind(|name| !name.is_empty() && !name.contains('/'));
    if has("*") && last.is_some_and(|last| *last != "*") {
        let message = format!(
            "`{}` contains `*`, so it must not contain other resources (subresources are allowed)",
            spot.field_ref
        );
        let advice = "remove `*`, or the resources that it includes".to_owned();
        violations.add(Rule::InvalidValue, spot.field_ref, message, Some(advice));
    }
    let mut all_of_resource = BTreeSet::new();
    let mut of_all_resources = BTreeSet::new();
    for (n, name) in names.iter().enumerate() {
        let Some((resource, subresource)) = name.split_once('/') else {
            continue;
        };
        let wildcard = if all_of_resource.contains(resource) {
            Some(format!("{resource}/*"))
        } else if of_all_resources.contains(subresource) {
            Some(format!("*/{subresource}"))
        } else {
            None
        };
        // `*/*` is reported above.
        if let Some(by) = wildcard.filter(|by| by != "*/*") {
            let item = format!("{}[{n}]", spot.field_ref);
            let message = format!("`{by}` already includes `{name}`");
            let advice = "remove one of the two".to_owned();
            violations.add(Rule::InvalidValue, &item, message, Some(advice));
        }
        if subresource == "*" {
            all_of_resource.insert(resource);
        }
        if resource == "*" {
            of_all_resources.insert(subresource);
        }
    }
}

/// Requires the field for the mutation's patch type, and rejects the field for the other patch type.
///
/// Source: `validateMutation`.
pub(super) fn mutation(spot: &Spot<'_>, violations: &mut Violations) {
    let (own, other) = match text(spot.get("patchType")) {
        of @ "ApplyConfiguration" => ((of, "applyConfiguration"), "jsonPatch"),
        of @ "JSONPatch" => ((of, "jsonPatch"), "applyConfiguration"),
        _ => return,
    };
    let (of, own) = own;
    if spot.get(own).is_none() {
        let field_ref = format!("{}.{own}", spot.field_ref);
        let message = format!("`{field_ref}` is required if the patchType is {of}");
        let advice = format!("move the expression to `{own}`, or correct the patchType");
        violations.add(Rule::Required, &field_ref, message, Some(advice));
    }
    if spot.get(other).is_some() {
        let field_ref = format!("{}.{other}", spot.field_ref);
        let message = format!("`{field_ref}` must not be set if the patchType is {of}");
        let advice = format!("remove `{other}`, or correct the patchType");
        violations.add(Rule::InvalidValue, &field_ref, message, Some(advice));
    }
}
