//! Matches requests against match constraints.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/policy/matching/matching.go`,
//! `pkg/admission/plugin/policy/generic/policy_matcher.go`,
//! `pkg/admission/plugin/webhook/predicates/{rules/rules,namespace/matcher,object/matcher}.go`.

use k8s_openapi::api::admissionregistration::v1::{MatchResources, NamedRuleWithOperations};

use super::namespace::NamespaceSource;
use super::object::Labels;
use super::request::{AdmissionRequest, Operation};
use super::selector::{ConfigurationError, Selector};
use super::text::go_quote;
use kubernetes::schema::{Gvk, Gvr};

/// Match constraints with parsed selectors.
#[derive(Clone, Debug)]
pub(crate) struct Constraints {
    resources: MatchResources,
    namespace_selector: Result<Selector, ConfigurationError>,
    object_selector: Result<Selector, ConfigurationError>,
}

/// The part of the match constraints that excludes a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unmatched {
    /// The namespaceSelector does not select the labels of the namespace.
    NamespaceSelector,
    /// The objectSelector selects neither the labels of the object nor those of the old object.
    ObjectSelector,
    /// An excludeResourceRule matches.
    ExcludeResourceRules,
    /// No rule matches the resource.
    Resource,
    /// No rule for the resource matches the operation.
    Operation,
    /// No rule for the resource matches the version.
    Version,
    /// The rules that match the resource, operation and version do not match the scope.
    Scope,
    /// The rules that match the resource, operation, version and scope do not match the object's name.
    ResourceName,
}

impl Unmatched {
    /// Returns the reason as a clause, in which "its" refers to a policy or webhook.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::NamespaceSelector => "its namespaceSelector does not select the namespace",
            Self::ObjectSelector => "its objectSelector does not select the object",
            Self::ExcludeResourceRules => "its excludeResourceRules exclude the request",
            Self::Resource => "no rule matches the resource",
            Self::Version => "no rule for the resource has the version",
            Self::Operation => "no rule for the resource has the operation",
            Self::Scope => "no rule for the resource has the scope",
            Self::ResourceName => "no rule for the resource has the name of the object",
        }
    }
}

/// The resource and kind that a request is evaluated as. `None` if the constraints do not match.
pub(super) type Matched = Option<(Gvr, Gvk)>;

impl Constraints {
    /// Parses the selectors. An absent selector selects everything, which is the API server's default.
    pub(crate) fn new(resources: &MatchResources) -> Self {
        let read =
            |selector: Option<&_>| selector.map_or_else(|| Ok(Selector::default()), Selector::new);
        Self {
            namespace_selector: read(resources.namespace_selector.as_ref()),
            object_selector: read(resources.object_selector.as_ref()),
            resources: resources.clone(),
        }
    }

    /// Returns the resource and kind that `request` is evaluated as. `None` if the constraints do not match.
    ///
    /// # Errors
    ///
    /// If the rules match, returns an error for an invalid selector or a missing namespace. Also returns an error if
    /// the kind of an equivalent resource is unknown.
    pub(crate) fn matches(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Result<Matched, ConfigurationError> {
        let in_namespace = self.selects_namespace(request, namespaces);
        if in_namespace == Ok(false) {
            return Ok(None);
        }
        let object_selected = self.selects_object(request);
        if object_selected == Ok(false) {
            return Ok(None);
        }
        let is_exact =
            !matches!(self.resources.match_policy.as_deref(), Some(policy) if policy != "Exact");
        let excludes = self
            .resources
            .exclude_resource_rules
            .as_deref()
            .unwrap_or_default();
        if matching_resource(excludes, is_exact, request)?.is_some() {
            return Ok(None);
        }
        let rules = self.resources.resource_rules.as_deref().unwrap_or_default();
        let matched = if rules.is_empty() {
            Some((request.gvr.clone(), request.gvk.clone()))
        } else {
            matching_resource(rules, is_exact, request)?
        };
        // If the rules do not match, the policy does not apply, so a selector error has no effect.
        if matched.is_some() {
            in_namespace?;
            object_selected?;
        }
        Ok(matched)
    }

    /// Returns the part of the constraints that excludes `request`. `None` if the constraints match or cannot be
    /// evaluated.
    pub(super) fn unmatched(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Option<Unmatched> {
        if !matches!(self.matches(request, namespaces), Ok(None)) {
            return None;
        }
        if self.selects_namespace(request, namespaces) == Ok(false) {
            return Some(Unmatched::NamespaceSelector);
        }
        if self.selects_object(request) == Ok(false) {
            return Some(Unmatched::ObjectSelector);
        }
        // Relaxes the rules step by step until they match. The most specific field is relaxed first.
        let matches_without = |relax: &dyn Fn(&mut NamedRuleWithOperations)| {
            let mut relaxed = self.clone();
            for rule in relaxed.resources.resource_rules.iter_mut().flatten() {
                relax(rule);
            }
            relaxed.resources.exclude_resource_rules = None;
            matches!(relaxed.matches(request, namespaces), Ok(Some(_)))
        };
        let all = || Some(vec!["*".to_owned()]);
        if matches_without(&|_| {}) {
            Some(Unmatched::ExcludeResourceRules)
        } else if matches_without(&|rule| rule.resource_names = None) {
            Some(Unmatched::ResourceName)
        } else if matches_without(&|rule| {
            rule.resource_names = None;
            rule.scope = None;
        }) {
            Some(Unmatched::Scope)
        } else if matches_without(&|rule| {
            rule.resource_names = None;
            rule.scope = None;
            rule.operations = all();
        }) {
            Some(Unmatched::Operation)
        } else if matches_without(&|rule| {
            rule.resource_names = None;
            rule.scope = None;
            rule.operations = all();
            rule.api_versions = all();
        }) {
            Some(Unmatched::Version)
        } else {
            Some(Unmatched::Resource)
        }
    }

    fn selects_namespace(
        &self,
        request: &AdmissionRequest,
        namespaces: &dyn NamespaceSource,
    ) -> Result<bool, ConfigurationError> {
        let is_namespaces = request.gvr.resource == "namespaces";
        if request.namespace.is_empty() && !is_namespaces {
            return Ok(true);
        }
        let selector = self
            .namespace_selector
            .as_ref()
            .map_err(|error| error.clone().into_internal())?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_written = matches!(request.operation, Operation::Create | Operation::Update);
        if is_namespaces && request.subresource.is_empty() && is_written {
            // The Namespace in the request is newer than the cached one, and its labels may differ.
            let object = request.object.as_ref();
            return object
                .map(|object| selector.matches(object.labels()))
                .ok_or_else(|| {
                    ConfigurationError::from("object does not implement the Object interfaces")
                        .into_internal()
                });
        }
        let namespace = namespaces
            .namespace(&request.namespace)
            .ok_or_else(|| namespace_not_found(&request.namespace))?;
        Ok(selector.matches(namespace.labels()))
    }

    fn selects_object(&self, request: &AdmissionRequest) -> Result<bool, ConfigurationError> {
        let selector = self
            .object_selector
            .as_ref()
            .map_err(|error| error.clone().into_internal())?;
        let selects = |labels: &Labels| selector.matches(labels);
        Ok(selector.is_empty()
            || [&request.object, &request.old_object]
                .into_iter()
                .flatten()
                .any(|object| selects(object.labels())))
    }
}

/// Source: apimachinery `pkg/api/errors/errors.go`, `NewNotFound`.
pub(super) fn namespace_not_found(name: &str) -> String {
    format!("namespaces {} not found", go_quote(name))
}

/// Returns the resource and kind that one of `rules` matches. The request's own resource takes precedence over
/// equivalent resources.
///
/// Source: `matching.go`, `matchesResourceRules`.
fn matching_resource(
    rules: &[NamedRuleWithOperations],
    is_exact: bool,
    request: &AdmissionRequest,
) -> Result<Matched, String> {
    let is_named = |rule: &NamedRuleWithOperations| {
        let names = list(rule.resource_names.as_ref());
        names.is_empty() || names.contains(&request.name)
    };
    if rules
        .iter()
        .any(|rule| rule_matches(rule, request, &request.gvr) && is_named(rule))
    {
        return Ok(Some((request.gvr.clone(), request.gvk.clone())));
    }
    if is_exact {
        return Ok(None);
    }
    for rule in rules {
        for equivalent in &request.equivalents {
            if equivalent.gvr == request.gvr || !rule_matches(rule, request, &equivalent.gvr) {
                continue;
            }
            if equivalent.gvk == Gvk::default() {
                let Gvr {
                    group,
                    version,
                    resource,
                } = &equivalent.gvr;
                return Err(format!(
                    "unable to convert to {group}/{version}, Resource={resource}: unknown kind"
                ));
            }
            if is_named(rule) {
                return Ok(Some((equivalent.gvr.clone(), equivalent.gvk.clone())));
            }
        }
    }
    Ok(None)
}

/// Returns the values of a list in a rule. An absent list is empty.
fn list(values: Option<&Vec<String>>) -> &[String] {
    values.map(Vec::as_slice).unwrap_or_default()
}

/// Returns true if `rule` matches `request` with `resource` instead of the request's resource.
///
/// Source: `rules.go`, `Matcher.Matches`.
fn rule_matches(
    rule: &NamedRuleWithOperations,
    request: &AdmissionRequest,
    resource: &Gvr,
) -> bool {
    let has = |values: Option<&Vec<String>>, value: &str| {
        list(values).iter().any(|v| v == "*" || v == value)
    };
    let is_namespace =
        resource.group.is_empty() && resource.version == "v1" && resource.resource == "namespaces";
    let is_cluster_scoped = is_namespace || request.namespace.is_empty();
    let in_scope = match rule.scope.as_deref() {
        None | Some("*") => true,
        Some("Namespaced") => !is_cluster_scoped,
        Some("Cluster") => is_cluster_scoped,
        Some(_) => false,
    };
    in_scope
        && has(rule.operations.as_ref(), request.operation.as_str())
        && has(rule.api_groups.as_ref(), &resource.group)
        && has(rule.api_versions.as_ref(), &resource.version)
        && list(rule.resources.as_ref()).iter().any(|named| {
            let (name, sub) = named.split_once('/').unwrap_or((named, ""));
            (name == "*" || name == resource.resource) && (sub == "*" || sub == request.subresource)
        })
}
