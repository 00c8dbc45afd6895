//! Finds policies that match only the creation of objects, but validate fields that an update can change. Also finds
//! policies for CONNECT that read `object.metadata`. In a CONNECT request, `object` contains options without metadata.

use kubernetes::schema::resolver::{Resolution, SchemaResolver};
use kubernetes::schema::rest_mapper::RestMapper;
use kubernetes::schema::{DeclKind, DeclType};
use kubernetes::validity::may_update;

use super::Lint;
use crate::compile::CompiledPolicy;
use crate::expressions::Role;
use crate::matching::{self, Target};
use crate::nearest::nearest;
use crate::reads::fields::{AccessKind, FieldRead, Sources, Step};
use crate::reads::{Attribute, Input, Qualifier, hides_inputs, is_input};
use crate::rule::Rule;
use cel::source::SourceMap;

/// The groups whose objects are not stored. Such objects can be created, but not updated.
const VIRTUAL_GROUPS: [&str; 2] = ["authentication.k8s.io", "authorization.k8s.io"];

/// Returns a lint if the rules match CREATE but not UPDATE, and validations read a field that an update can change.
pub(super) fn find(
    policy: &CompiledPolicy,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
) -> Option<Lint> {
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
        let type_ = match schemas.resolve(kind) {
            Resolution::Found(type_) => Some(type_),
            Resolution::NotFound | Resolution::Unavailable(_) => None,
        };
        let is_changed = |read: &&FieldRead| {
            let names: Vec<&str> = names(&read.path).collect();
            let is_declared = type_.as_ref().is_none_or(|it| may_have(it, &read.path));
            let is_whole = read.access == AccessKind::Whole;
            is_declared && may_update(&kind.group, &kind.kind, &names, is_whole)
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
        fix: Some("add UPDATE, unless the policy is only for new objects".into()),
        is_harmless: true,
    })
}

/// Returns a lint for each expression that reads `object.metadata`, if all requests that the rules match are CONNECT.
///
/// Source: `k8s.io/api` `core/v1/types.go` (`PodExecOptions`, `PodAttachOptions`, `PodPortForwardOptions`,
/// `PodProxyOptions`, `NodeProxyOptions`, `ServiceProxyOptions`: they have no `ObjectMeta`).
pub(super) fn absent_metadata(policy: &CompiledPolicy, mapper: &RestMapper) -> Vec<Lint> {
    let targets = matching::targets(policy.policy(), mapper);
    let is_connect = |target: &Target<'_>| target.operations.names().eq(["CONNECT"]);
    let Some(first) = targets.first().filter(|_| targets.iter().all(is_connect)) else {
        return Vec::new();
    };
    let resource = &first.resource.gvr.resource;
    let expressions = policy.expressions().iter().enumerate();
    let lints = expressions.filter_map(|(n, expression)| {
        let ast = expression.parsed().ok().filter(|_| policy.compiles(n))?;
        let reads = ast.iter().filter_map(|(id, _)| {
            let attribute = Attribute::new(ast, id);
            let [qualifier] = &*attribute.qualifiers else {
                return None;
            };
            let is_metadata = is_input(ast, attribute.operand, Input::Object)
                && qualifier.key.name() == Some("metadata");
            is_metadata.then_some((id, qualifier.is_test || qualifier.is_optional))
        });
        let reads: Vec<_> = reads.collect();
        let is_guarded = reads.iter().any(|(_, is_safe)| *is_safe);
        let (id, _) = reads.first().filter(|_| !is_guarded)?;
        Some(Lint {
            rule: Rule::UndefinedField,
            field_ref: expression.field_ref.clone(),
            location: Some(SourceMap::new(&expression.text).location(ast.offset(*id))),
            message: format!(
                "`object` contains the options of a request for {resource}; options have no metadata, so this always \
                 fails with `no such key: metadata`"
            ),
            fix: Some("read `request.namespace` and `request.name`".into()),
            is_harmless: false,
        })
    });
    lints.collect()
}

/// The fields of the options of requests that create, update, patch or delete objects.
///
/// Source: `k8s.io/apimachinery` `pkg/apis/meta/v1/types.go` (`CreateOptions`, `UpdateOptions`, `PatchOptions`,
/// `DeleteOptions`).
const OPTIONS: [&str; 11] = [
    "apiVersion",
    "dryRun",
    "fieldManager",
    "fieldValidation",
    "force",
    "gracePeriodSeconds",
    "ignoreStoreReadErrorWithClusterBreakingPotential",
    "kind",
    "orphanDependents",
    "preconditions",
    "propagationPolicy",
];

/// Returns a lint for each misspelled field of `request.options`, whose type is `dyn`. A name without a similar field is
/// not reported, because newer versions may have it.
pub(super) fn misspelled_options(policy: &CompiledPolicy) -> Vec<Lint> {
    let mut lints = Vec::new();
    for expression in policy.expressions() {
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        if hides_inputs(ast) {
            continue;
        }
        // The expansion of `has()` leaves its argument in the tree, so only nodes below the root are visited.
        for id in ast.descendants(ast.root()) {
            let attribute = Attribute::new(ast, id);
            let [options, field] = &*attribute.qualifiers else {
                continue;
            };
            let is_option = is_input(ast, attribute.operand, Input::Request)
                && options.key.name() == Some("options");
            let name = field.key.name().filter(|it| !OPTIONS.contains(it));
            let Some(name) = name.filter(|_| is_option) else {
                continue;
            };
            let Some(meant) = nearest(name, OPTIONS.into_iter()) else {
                continue;
            };
            let is_tested = |it: &Qualifier<'_>| it.is_test || it.is_optional;
            let effect = if attribute.qualifiers.iter().any(is_tested) {
                "so it is always absent"
            } else {
                "so this always fails"
            };
            lints.push(Lint {
                rule: Rule::UndefinedField,
                field_ref: expression.field_ref.clone(),
                location: Some(SourceMap::new(&expression.text).location(ast.offset(id))),
                message: format!("`request.options` has no field `{name}`, {effect}"),
                fix: Some(format!("did you mean `{meant}`?").into()),
                is_harmless: false,
            });
        }
    }
    lints
}

/// Returns true if rules name the resource and match its creation, but no update.
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

/// Returns the fields of `object` that the validations read. Reads of the whole object are not included.
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

/// Returns false if no object of the type has a value at the path, because its schema does not declare the field.
fn may_have(type_: &DeclType, path: &[Step]) -> bool {
    if matches!(path.first(), Some(Step::Field(name)) if name == "metadata") {
        return true;
    }
    let mut current = type_;
    for step in path {
        current = match (&current.kind, step) {
            (DeclKind::Object(object), Step::Field(name)) => match current.declared_field(name) {
                Some(field) => &field.type_,
                None => return object.is_open || matches!(&**name, "apiVersion" | "kind"),
            },
            (DeclKind::List(item) | DeclKind::Map(item), Step::Each)
            | (DeclKind::Map(item), Step::Field(_)) => item,
            _ => return true,
        };
    }
    true
}

/// Returns the names of the fields on the path. Steps into elements of lists and maps are left out.
fn names(path: &[Step]) -> impl Iterator<Item = &str> {
    path.iter().filter_map(|step| match step {
        Step::Field(name) => Some(name.as_str()),
        Step::Each => None,
    })
}
