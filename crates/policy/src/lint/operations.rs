//! Finds policies that match only the creation of objects, but validate fields that an update can change.

use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::validity::may_update;

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::matching::{self, Target};
use crate::reads::fields::{AccessKind, FieldRead, Sources, Step};
use crate::rule::Rule;

/// The groups whose objects are only created, and are not stored.
const VIRTUAL_GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Returns a lint if validations read a field of created objects that an update can change, and no rule matches UPDATE.
pub(super) fn find(policy: &CompiledPolicy, mapper: &RestMapper) -> Option<Lint> {
    if policy.is_mutating() {
        return None;
    }
    let reads = reads(policy);
    if reads.is_empty() {
        return None;
    }
    let targets = matching::targets(policy.policy(), mapper);
    let mut unmatched = targets.iter().filter(|target| is_unmatched(target));
    let (target, field) = unmatched.find_map(|target| {
        let kind = &target.resource.gvk;
        let is_changed = |read: &&FieldRead| {
            let names: Vec<&str> = names(&read.path).collect();
            may_update(
                &kind.group,
                &kind.kind,
                &names,
                read.access == AccessKind::Whole,
            )
        };
        Some((target, reads.iter().find(is_changed)?))
    })?;
    let resource = &target.resource.gvr.resource;
    let rules = matching::rules(policy.policy());
    let n = rules.iter().position(|rule| {
        let mut names = rule.resources.iter().flatten();
        names.any(|name| name == resource || name == "*")
    })?;
    Some(Lint {
        rule: Rule::UnwatchedOperation,
        field_ref: format!("spec.matchConstraints.resourceRules[{n}].operations"),
        location: None,
        message: format!(
            "an update of {resource} can change `{field}`, and no rule matches UPDATE"
        ),
        fix: Some("add UPDATE, unless the policy is only for new objects".to_owned()),
        is_harmless: true,
    })
}

/// Returns true if rules match the creation of objects of the resource, but no update.
fn is_unmatched(target: &Target<'_>) -> bool {
    let gvr = &target.resource.gvr;
    let has = |name: &str| target.operations.names().any(|operation| operation == name);
    has("CREATE")
        && !has("UPDATE")
        && !target.by_wildcard
        && !gvr.resource.contains('/')
        && !VIRTUAL_GROUPS.contains(&gvr.group.as_str())
        && (!gvr.group.is_empty() || gvr.resource != "bindings")
}

/// Returns the fields of `object` that the validations read, except for whole objects.
fn reads(policy: &CompiledPolicy) -> Vec<FieldRead> {
    let mut sources = Sources::default();
    for expression in policy.expressions() {
        match expression.role {
            Role::Variable => sources.add(expression.name.as_deref(), &expression.text),
            Role::Validation => sources.add(None, &expression.text),
            _ => {}
        }
    }
    let mut reads = sources.reads();
    reads.retain(|read| !read.is_old && !read.path.is_empty());
    reads
}

/// Returns the names of the fields, without the steps into lists and maps.
fn names(path: &[Step]) -> impl Iterator<Item = &str> {
    path.iter().filter_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Each => None,
    })
}
