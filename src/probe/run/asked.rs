//! The requests of cases: what of one is the same for all versions of a policy, and the namespaces that it sees.

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};

use serde_json::json;

use super::super::api::{AuthorizerDecision as Answer, AuthorizerRule as Rule, Request};
use super::super::prepare::{self, Prepared};
use super::super::undefaulted::Undefaulted;
use super::Setting;
use crate::policy::admission::{
    Admission, AdmissionRequest, Authorizer, AuthorizerAnswer, AuthorizerDecision, AuthorizerList,
    AuthorizerRule, Binding, Namespace, NamespaceSource, ReviewContext, ReviewOutcome,
};
use crate::schema::resolver::SchemaResolver;
use crate::schema::{Gvk, RestMapper};

/// A request with all that is the same for all versions of a policy.
#[derive(Debug)]
pub(super) struct Asked {
    /// The request of the case with complete objects.
    prepared: Request,
    /// Which policies can be decided, where the objects are not complete.
    undefaulted: Option<Undefaulted>,
    /// The request as the API server would see it.
    pub(super) request: AdmissionRequest,
    /// The namespace that the case brings.
    given: Option<Namespace>,
    /// The namespace of the request where nothing but its name is known, once it is asked for.
    bare: Arc<OnceLock<Namespace>>,
    /// The answers that the case gives.
    pub(super) authorizer: Arc<dyn Authorizer>,
    /// The request as one for another kind, the first that a policy matched it as.
    converted: OnceLock<(Gvk, Result<AdmissionRequest, String>)>,
    /// The same with other names that the API server could have made.
    renamed: Vec<Self>,
}

impl Asked {
    /// Makes a request ready to be asked about.
    ///
    /// # Errors
    /// The reason why there is no such request.
    pub(super) fn new(prepared: Prepared<'_>, mapper: &RestMapper) -> Result<Self, String> {
        let renamed = prepared.renamed().into_iter();
        let renamed = renamed.map(|prepared| Self::one(prepared, mapper));
        let renamed: Vec<Self> = renamed.collect::<Result<_, _>>()?;
        Ok(Self {
            renamed,
            ..Self::one(prepared, mapper)?
        })
    }

    fn one(prepared: Prepared<'_>, mapper: &RestMapper) -> Result<Self, String> {
        let request = prepared.admission_request(mapper)?;
        let undefaulted = prepared.undefaulted;
        let prepared = prepared.request.into_owned();
        Ok(Self {
            undefaulted,
            given: prepared.namespace_object.as_ref().map(Namespace::new),
            bare: Arc::default(),
            authorizer: Arc::new(authorizer(&prepared)),
            converted: OnceLock::new(),
            renamed: Vec::new(),
            prepared,
            request,
        })
    }

    /// Checks that `outcome` is the same for other names that the API server could have made.
    ///
    /// # Errors
    /// That it is not.
    pub(super) fn is_settled(
        &self,
        setting: &Setting<'_>,
        (bindings, to): (&[Binding], Option<Gvk>),
        context: &ReviewContext<'_>,
        outcome: &ReviewOutcome,
    ) -> Result<(), String> {
        for other in &self.renamed {
            let request = other.as_kind(to.clone(), setting.schemas)?;
            let other = setting.admission.review(&request, bindings, context);
            if let Some(exceeded) = other.exceeded {
                return Err(exceeded.to_string());
            }
            if !is_alike(outcome, &other) {
                return Err(
                    "the decision depends on the end of the name that the API server makes of `generateName`"
                        .to_owned(),
                );
            }
        }
        Ok(())
    }

    /// Reports whether a policy that matches the request can be decided.
    ///
    /// # Errors
    /// The reason why it cannot.
    pub(super) fn decides(&self, policy: &Admission) -> Result<(), String> {
        match &self.undefaulted {
            Some(undefaulted) => undefaulted.decides(policy, &self.prepared),
            None => Ok(()),
        }
    }

    /// The object of the request, as it is evaluated.
    pub(super) fn object(&self) -> Option<&serde_json::Value> {
        self.prepared.object.as_ref()
    }

    pub(super) fn namespaces<'a>(&'a self, others: &'a dyn NamespaceSource) -> Namespaces<'a> {
        Namespaces {
            given: self.given.clone(),
            of_request: &self.request.namespace,
            bare: Arc::clone(&self.bare),
            others,
        }
    }

    /// The request with its objects of the kind `to`, as which a policy matches it, if it does.
    ///
    /// # Errors
    /// The reason why they cannot be converted here.
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
        let (known, converted) = self.converted.get_or_init(|| (to.clone(), convert()));
        if *known == to {
            return converted.as_ref().map(Cow::Borrowed).map_err(Clone::clone);
        }
        convert().map(Cow::Owned)
    }
}

/// The namespace of a case, if it brings one, and those that exist; the namespace of the request exists
/// in any case, as the API server would not have let the request come so far otherwise.
pub(crate) struct Namespaces<'a> {
    given: Option<Namespace>,
    of_request: &'a str,
    /// That of the request, where neither the case nor what exists has it; once it is asked for.
    bare: Arc<OnceLock<Namespace>>,
    others: &'a dyn NamespaceSource,
}

/// The namespaces of a case.
pub(crate) fn case_namespaces<'a>(
    case: &Request,
    of_request: &'a str,
    others: &'a dyn NamespaceSource,
) -> Namespaces<'a> {
    Namespaces {
        given: case.namespace_object.as_ref().map(Namespace::new),
        of_request,
        bare: Arc::default(),
        others,
    }
}

impl NamespaceSource for Namespaces<'_> {
    fn namespace(&self, name: &str) -> Option<Namespace> {
        let given = self.given.namespace(name);
        given.or_else(|| self.others.namespace(name)).or_else(|| {
            let is_it = name == self.of_request;
            is_it.then(|| self.bare.get_or_init(|| bare_namespace(name)).clone())
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

/// Reports whether two outcomes differ in texts alone.
fn is_alike(a: &ReviewOutcome, b: &ReviewOutcome) -> bool {
    let results = |outcome: &ReviewOutcome| {
        let of = outcome.evaluations.iter().map(|evaluation| {
            let conditions = evaluation.match_conditions.as_ref();
            conditions.and_then(|conditions| conditions.failed_condition.clone())
        });
        of.collect::<Vec<_>>()
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

/// The answers that a case gives.
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
                Answer::Allow => AuthorizerDecision::Allow,
                Answer::Deny => AuthorizerDecision::Deny,
                Answer::NoOpinion => AuthorizerDecision::NoOpinion,
            },
            reason: rule.reason.clone().unwrap_or_default(),
            error: rule.error.clone(),
        },
    };
    AuthorizerList(request.authorizer.iter().map(rule).collect())
}
