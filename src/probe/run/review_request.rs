//! The prepared request of a case, and its namespaces. Neither depends on the version of the policy.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::super::api::{AuthorizerDecision as RuleDecision, AuthorizerRule as Rule, Request};
use super::super::prepare::{self, PreparedRequest};
use super::super::unknown_defaults::UnknownDefaults;
use super::RunContext;
use crate::policy::admission::{
    Admission, AdmissionRequest, Authorizer, AuthorizerAnswer, AuthorizerDecision, AuthorizerList,
    AuthorizerRule, Binding, Namespace, NamespaceSource, ReviewContext, ReviewOutcome,
};
use crate::schema::resolver::SchemaResolver;
use crate::schema::{Gvk, RestMapper};

/// The prepared request of a case. It can be reused for several versions of a policy.
#[derive(Debug)]
pub(super) struct ReviewRequest {
    prepared: Request,
    /// The fields with unknown defaults, if any. A policy that reads one of them is not evaluated.
    unknown_defaults: Option<UnknownDefaults>,
    pub(super) request: AdmissionRequest,
    /// The `namespaceObject` of the case, if any.
    given: Option<Namespace>,
    /// The namespace of the request, with only its name and name label. Created at the first use.
    bare: Arc<OnceLock<Namespace>>,
    pub(super) authorizer: Arc<dyn Authorizer>,
    /// The target kind and the result of the first conversion. Conversions to further kinds are not cached.
    converted: OnceLock<(Gvk, Result<AdmissionRequest, String>)>,
    /// Copies of the request with other possible generated names.
    renamed: Vec<Self>,
}

impl ReviewRequest {
    /// Creates the request, and copies with other generated names. Returns an error if `prepared` cannot be converted.
    pub(super) fn new(prepared: PreparedRequest<'_>, mapper: &RestMapper) -> Result<Self, String> {
        let renamed = prepared.renamed().into_iter();
        let renamed = renamed.map(|prepared| Self::one(prepared, mapper));
        let renamed: Vec<Self> = renamed.collect::<Result<_, _>>()?;
        Ok(Self {
            renamed,
            ..Self::one(prepared, mapper)?
        })
    }

    fn one(prepared: PreparedRequest<'_>, mapper: &RestMapper) -> Result<Self, String> {
        let request = prepared.admission_request(mapper)?;
        let unknown_defaults = prepared.unknown_defaults;
        let prepared = prepared.request.into_owned();
        Ok(Self {
            unknown_defaults,
            given: prepared.namespace_object.as_ref().map(Namespace::new),
            bare: Arc::default(),
            authorizer: Arc::new(authorizer(&prepared)),
            converted: OnceLock::new(),
            renamed: Vec::new(),
            prepared,
            request,
        })
    }

    /// Checks that `outcome` does not depend on the generated name. Returns an error if it does.
    pub(super) fn check_generated_names(
        &self,
        run_context: &RunContext<'_>,
        (bindings, to): (&[Binding], Option<Gvk>),
        context: &ReviewContext<'_>,
        outcome: &ReviewOutcome,
    ) -> Result<(), String> {
        for other in &self.renamed {
            let request = other.as_kind(to.clone(), run_context.schemas)?;
            let other = run_context.admission.review(&request, bindings, context);
            if let Some(exceeded) = other.exceeded {
                return Err(exceeded.to_string());
            }
            if !is_equivalent(outcome, &other) {
                return Err(
                    "the decision depends on the suffix that the API server generates for `generateName`"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Returns an error if `policy` reads a field whose default is unknown. The policy must match the request.
    pub(super) fn check_readable_fields(&self, policy: &Admission) -> Result<(), String> {
        match &self.unknown_defaults {
            Some(unknown_defaults) => {
                unknown_defaults.check_readable_fields(policy, &self.prepared)
            }
            None => Ok(()),
        }
    }

    pub(super) fn object(&self) -> Option<&serde_json::Value> {
        self.prepared.object.as_ref()
    }

    pub(super) fn namespaces<'a>(&'a self, others: &'a dyn NamespaceSource) -> Namespaces<'a> {
        Namespaces {
            given: self.given.clone(),
            request_namespace: &self.request.namespace,
            bare: Arc::clone(&self.bare),
            others,
        }
    }

    /// Converts the objects of the request to the kind `to`. Returns an error if this conversion is not supported.
    pub(super) fn as_kind(
        &self,
        to: Option<Gvk>,
        schemas: &dyn SchemaResolver,
    ) -> Result<Cow<'_, AdmissionRequest>, String> {
        let Some(to) = to.filter(|to| *to != self.request.gvk) else {
            return Ok(Cow::Borrowed(&self.request));
        };
        let convert = || {
            let request = self.request.clone();
            prepare::convert(&self.prepared, request, Some(to.clone()), schemas)
        };
        let (cached, converted) = self.converted.get_or_init(|| (to.clone(), convert()));
        if *cached == to {
            return converted.as_ref().map(Cow::Borrowed).map_err(Clone::clone);
        }
        convert().map(Cow::Owned)
    }
}

/// The `namespaceObject` of a case, and the existing namespaces. The namespace of the request always exists here.
/// Without it, the API server would reject the request before it evaluates policies.
pub(crate) struct Namespaces<'a> {
    given: Option<Namespace>,
    request_namespace: &'a str,
    /// The namespace of the request, with only its name and name label. Used if neither `given` nor `others` contains
    /// the namespace.
    bare: Arc<OnceLock<Namespace>>,
    others: &'a dyn NamespaceSource,
}

/// Returns the namespaces for expressions and selectors in a case.
pub(crate) fn case_namespaces<'a>(
    case: &Request,
    request_namespace: &'a str,
    others: &'a dyn NamespaceSource,
) -> Namespaces<'a> {
    Namespaces {
        given: case.namespace_object.as_ref().map(Namespace::new),
        request_namespace,
        bare: Arc::default(),
        others,
    }
}

impl NamespaceSource for Namespaces<'_> {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        let given = self.given.namespace(name);
        given.or_else(|| self.others.namespace(name)).or_else(|| {
            let is_of_request = name == self.request_namespace;
            is_of_request.then(|| self.bare.get_or_init(|| bare_namespace(name)).clone())
        })
    }
}

fn bare_namespace(name: &str) -> Namespace {
    Namespace::new(&json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {"kubernetes.io/metadata.name": name}},
    }))
}

/// Returns true if two outcomes are equal except for messages.
fn is_equivalent(a: &ReviewOutcome, b: &ReviewOutcome) -> bool {
    let results = |outcome: &ReviewOutcome| {
        let failed = outcome.evaluations.iter().map(|evaluation| {
            let conditions = evaluation.match_conditions.as_ref();
            conditions.and_then(|conditions| conditions.failed_condition.clone())
        });
        failed.collect::<Vec<_>>()
    };
    a.is_allowed() == b.is_allowed()
        && a.definition.matched == b.definition.matched
        && a.bindings.len() == b.bindings.len()
        && (a.bindings.iter().zip(&b.bindings)).all(|(a, b)| a.matches == b.matches)
        && results(a) == results(b)
        && a.warnings.len() == b.warnings.len()
        && a.errors.len() == b.errors.len()
        && a.audit_annotations.keys().eq(b.audit_annotations.keys())
}

fn authorizer(request: &Request) -> AuthorizerList {
    let rule = |rule: &Rule| AuthorizerRule {
        user: None,
        verb: rule.verb.clone(),
        group: rule.group.clone(),
        version: None,
        resource: rule.resource.clone(),
        subresource: rule.sub_resource.clone(),
        namespace: rule.namespace.clone(),
        name: rule.name.clone(),
        path: rule.path.clone(),
        answer: AuthorizerAnswer {
            decision: match rule.decision {
                RuleDecision::Allow => AuthorizerDecision::Allow,
                RuleDecision::Deny => AuthorizerDecision::Deny,
                RuleDecision::NoOpinion => AuthorizerDecision::NoOpinion,
            },
            reason: rule.reason.clone().unwrap_or_default(),
            error: rule.error.clone(),
        },
    };
    AuthorizerList(request.authorizer.iter().map(rule).collect())
}
