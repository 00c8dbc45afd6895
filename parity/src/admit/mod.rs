//! `parity admit`: evaluates admission policies for requests and prints the decisions.
//!
//! Source: the oracle's `admit.go`, `authorizer.go`, `fakes.go`.

mod objects;

use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, anyhow, bail};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use vap_status_controller::cli::input::decode;
use vap_status_controller::policy::admission::{
    Admission, AdmissionRequest, AuthorizerAnswer, AuthorizerDecision, AuthorizerList,
    AuthorizerRule, Binding, Equivalent, Evaluation, EvaluationResult, Namespace, Object,
    Operation, ParamList, ReviewContext, ReviewOutcome, StageCost, UserInfo,
};
use vap_status_controller::policy::compile::CompiledPolicy;
use vap_status_controller::schema::{Gvk, Gvr, RestMapper};

use crate::documents;
use crate::guard::{Panic, guard};
use crate::schemas::Schemas;
use crate::version;
use crate::write_line;
use objects::{KINDS_WITHOUT_METADATA, ObjectForm};

/// An admission request, its policy, and the inputs of the evaluation.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct AdmitCase {
    #[serde(default)]
    id: String,
    policy: Value,
    binding: Option<Value>,
    bindings: Option<Vec<Value>>,
    params: Option<Vec<Value>>,
    object: Option<Value>,
    old_object: Option<Value>,
    operation: Option<String>,
    gvk: Option<KindRef>,
    gvr: Option<ResourceRef>,
    name: Option<String>,
    namespace: Option<String>,
    options: Option<Value>,
    dry_run: Option<bool>,
    user_info: Option<User>,
    subresource: Option<String>,
    namespace_object: Option<Value>,
    equivalents: Option<Vec<EquivalentRef>>,
    authorizer: Option<Vec<Rule>>,
    cost_budget: Option<u64>,
    decode: Option<String>,
}

/// A group, version and kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct KindRef {
    group: String,
    version: String,
    kind: String,
}

/// A group, version and resource.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceRef {
    group: String,
    version: String,
    resource: String,
}

impl From<KindRef> for Gvk {
    fn from(kind: KindRef) -> Self {
        Self::new(kind.group, kind.version, kind.kind)
    }
}

impl From<ResourceRef> for Gvr {
    fn from(resource: ResourceRef) -> Self {
        Self::new(resource.group, resource.version, resource.resource)
    }
}

#[derive(Debug, Deserialize)]
struct EquivalentRef {
    gvr: ResourceRef,
    gvk: KindRef,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct User {
    username: Option<String>,
    uid: Option<String>,
    groups: Option<Vec<String>>,
    extra: Option<BTreeMap<String, Option<Vec<String>>>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Rule {
    user: Option<String>,
    verb: Option<String>,
    group: Option<String>,
    version: Option<String>,
    resource: Option<String>,
    subresource: Option<String>,
    namespace: Option<String>,
    name: Option<String>,
    path: Option<String>,
    decision: Option<String>,
    reason: Option<String>,
}

/// The result of a case, as a line of output.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AdmitLine {
    #[serde(skip_serializing_if = "String::is_empty")]
    id: String,
    line: usize,
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    definition: Option<MatchLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    bindings: Vec<MatchLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    evaluations: Vec<EvaluationLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    status: Option<StatusLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<String>,
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    audit_annotations: BTreeMap<String, String>,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    panic: Option<Panic>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct MatchLine {
    #[serde(skip_serializing_if = "String::is_empty")]
    name: String,
    matches: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource: Option<ResourceRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    kind: Option<KindRef>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct EvaluationLine {
    #[serde(skip_serializing_if = "String::is_empty")]
    params: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    match_conditions: Option<ConditionsLine>,
    decisions: Vec<DecisionLine>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    audit_annotations: Vec<AnnotationLine>,
    costs: CostsLine,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct ConditionsLine {
    matches: bool,
    #[serde(skip_serializing_if = "String::is_empty")]
    failed_condition: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct DecisionLine {
    action: &'static str,
    evaluation: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    message: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct AnnotationLine {
    key: String,
    action: &'static str,
    #[serde(skip_serializing_if = "String::is_empty")]
    value: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    error: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
struct CostsLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    match_conditions: Option<CostLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    validations: Option<CostLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    messages: Option<CostLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    audit_annotations: Option<CostLine>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct CostLine {
    budget: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
struct StatusLine {
    code: u16,
    reason: String,
    message: String,
}

/// Evaluates every case in the files and prints one JSON object per case.
///
/// # Errors
///
/// Returns an error if a file cannot be read or `out` cannot be written.
pub fn run(paths: &[PathBuf], schemas: &Schemas, out: &mut dyn Write) -> Result<()> {
    for path in paths {
        each_case(path, |line, text| {
            write_line(out, &answer(schemas, line, text))
        })?;
    }
    Ok(())
}

/// Evaluates all cases of the files.
///
/// # Errors
///
/// Returns an error if a file cannot be read.
pub(super) fn lines(paths: &[PathBuf], schemas: &Schemas) -> Result<Vec<AdmitLine>> {
    let mut lines = Vec::new();
    for path in paths {
        each_case(path, |line, text| {
            lines.push(answer(schemas, line, text));
            Ok(())
        })?;
    }
    Ok(lines)
}

/// Calls `f` with each nonblank line of a file. The number is the line number.
///
/// # Errors
///
/// Returns an error if the file cannot be read or `f` fails.
pub(crate) fn each_case(path: &Path, mut f: impl FnMut(usize, &str) -> Result<()>) -> Result<()> {
    let context = || path.display().to_string();
    let reader: Box<dyn BufRead> = if path.as_os_str() == "-" {
        Box::new(BufReader::new(std::io::stdin()))
    } else {
        Box::new(BufReader::new(File::open(path).with_context(context)?))
    };
    for (n, line) in reader.lines().enumerate() {
        let line = line.with_context(context)?;
        if !line.trim().is_empty() {
            f(n + 1, &line)?;
        }
    }
    Ok(())
}

/// Evaluates the case in a line. An invalid case gives a line with an error.
pub(crate) fn answer(schemas: &Schemas, line: usize, text: &str) -> AdmitLine {
    let mut answer = AdmitLine {
        line,
        ..AdmitLine::default()
    };
    let case: AdmitCase = match serde_json::from_str(text) {
        Ok(case) => case,
        Err(error) => {
            answer.error = error.to_string();
            return answer;
        }
    };
    answer.id.clone_from(&case.id);
    let outcome = guard(|| {
        let ready = ReadyCase::new(schemas, case)?;
        let mut answer = AdmitLine {
            name: ready.admission.name().to_owned(),
            ..AdmitLine::default()
        };
        if ready.bindings.is_empty() {
            answer.evaluations = ready.evaluate().into_iter().map(evaluation_line).collect();
        } else {
            answer.set_outcome(ready.review());
        }
        anyhow::Ok(answer)
    });
    match outcome {
        Ok(Ok(found)) => AdmitLine {
            id: answer.id,
            line,
            ..found
        },
        Ok(Err(error)) => {
            answer.error = format!("{error:#}");
            answer
        }
        Err(panic) => {
            answer.panic = Some(panic);
            answer
        }
    }
}

/// A case whose inputs are decoded and whose expressions are compiled.
#[derive(Debug)]
pub(super) struct ReadyCase {
    admission: Arc<Admission>,
    pub(super) n_expressions: usize,
    bindings: Vec<Binding>,
    params: Vec<Object>,
    has_param_kind: bool,
    param_source: Result<ParamList, String>,
    request: AdmissionRequest,
    namespace: Option<Namespace>,
    authorizer: Arc<AuthorizerList>,
    budget: Option<u64>,
}

/// Compiled policies, by the JSON of the policy.
pub(super) type CompiledPolicies = HashMap<String, Arc<Admission>>;

impl ReadyCase {
    /// Parses a case and compiles its policy.
    ///
    /// # Errors
    ///
    /// Returns an error if the line is not a valid case.
    pub(super) fn parse(schemas: &Schemas, text: &str) -> Result<Self> {
        Self::new(schemas, serde_json::from_str(text)?)
    }

    /// Parses a case. If `policies` contains its policy, uses the compiled policy. If not, compiles the policy and adds
    /// it. As in the API server, requests with the same policy share the compiled policy.
    ///
    /// # Errors
    ///
    /// Returns an error if the line is not a valid case.
    pub(super) fn parse_of(
        policies: &mut CompiledPolicies,
        schemas: &Schemas,
        text: &str,
    ) -> Result<Self> {
        let case: AdmitCase = serde_json::from_str(text)?;
        let policy = case.policy.to_string();
        let mut case = Self::new(schemas, case)?;
        let admission = policies
            .entry(policy)
            .or_insert_with(|| Arc::clone(&case.admission));
        case.admission = Arc::clone(admission);
        Ok(case)
    }

    fn new(schemas: &Schemas, case: AdmitCase) -> Result<Self> {
        let policy = documents::parse_policy(case.policy.clone())
            .context("policy")?
            .ok_or_else(|| anyhow!("policy: not a ValidatingAdmissionPolicy"))?;
        let bindings = case.bindings.iter().flatten().chain(&case.binding);
        let bindings = bindings.map(binding).collect::<Result<_>>()?;
        let form = ObjectForm::new(case.decode.as_deref())?;
        let params: Vec<Object> = case
            .params
            .iter()
            .flatten()
            .enumerate()
            .map(|(n, params)| form.object(params).with_context(|| format!("params[{n}]")))
            .collect::<Result<_>>()?;
        let spec = policy.spec.as_ref();
        let param_kind = spec.and_then(|spec| spec.param_kind.as_ref());
        let param_source = match param_kind {
            Some(kind) => {
                let api_version = kind.api_version.as_deref().unwrap_or_default();
                let kind = kind.kind.as_deref().unwrap_or_default();
                is_namespaced(api_version, kind, &params, &schemas.mapper)
            }
            None => Ok(false),
        }
        .map(|namespaced| ParamList::new(namespaced, params.clone()));
        let compiled = CompiledPolicy::from_parts((&policy).into(), None, version::get());
        Ok(Self {
            admission: Arc::new(Admission::from_compiled(&compiled)),
            n_expressions: compiled.n_expressions(),
            bindings,
            has_param_kind: param_kind.is_some(),
            params,
            param_source,
            request: request(&case, form, schemas)?,
            namespace: case.namespace_object.as_ref().map(Namespace::new),
            authorizer: Arc::new(authorizer(case.authorizer.unwrap_or_default())),
            budget: case.cost_budget,
        })
    }

    fn context(&self) -> ReviewContext<'_> {
        static NO_PARAMS: std::sync::LazyLock<ParamList> =
            std::sync::LazyLock::new(ParamList::default);
        let authorizer: Arc<AuthorizerList> = Arc::clone(&self.authorizer);
        let mut context = ReviewContext::new(&*NO_PARAMS, &self.namespace, authorizer);
        context.params = match &self.param_source {
            Ok(source) => Ok(source),
            Err(error) => Err(error.clone()),
        };
        if let Some(budget) = self.budget {
            context.budget = budget;
        }
        context
    }

    fn review(&self) -> ReviewOutcome {
        self.admission
            .review(&self.request, &self.bindings, &self.context())
    }

    /// Evaluates the policy once for each param object. The match constraints of the policy are ignored.
    pub(super) fn evaluate(&self) -> Vec<Evaluation> {
        let matched = (&self.request.gvr, &self.request.gvk);
        let context = self.context();
        let namespace = self.namespace.as_ref();
        let one = |params| {
            self.admission
                .evaluate(&self.request, matched, params, namespace, &context)
        };
        if self.params.is_empty() || !self.has_param_kind {
            vec![one(None)]
        } else {
            self.params.iter().map(|params| one(Some(params))).collect()
        }
    }
}

fn binding(value: &Value) -> Result<Binding> {
    let mut value = value.clone();
    // Go ignores `apiVersion` and `kind` of the binding when it decodes it.
    if let Value::Object(fields) = &mut value {
        fields.insert("kind".to_owned(), "ValidatingAdmissionPolicyBinding".into());
        fields
            .entry("metadata")
            .or_insert_with(|| Value::Object(serde_json::Map::new()));
    }
    Ok(Binding::new(&decode::binding(value)?))
}

/// Returns true if objects of a kind are namespaced. If the kind is not served, returns true if one of the objects in
/// `params` has a namespace.
fn is_namespaced(
    api_version: &str,
    kind: &str,
    params: &[Object],
    mapper: &RestMapper,
) -> Result<bool, String> {
    let (group, version) = match api_version.split_once('/') {
        Some((_, version)) if version.contains('/') => {
            return Err(format!(
                "failed to parse paramKind APIVersion: unexpected GroupVersion string: {api_version}"
            ));
        }
        Some(parts) => parts,
        None => ("", api_version),
    };
    let gvk = Gvk::new(group, version, kind);
    if let Some((_, namespaced)) = resource_of(&gvk, mapper) {
        return Ok(namespaced);
    }
    if params.is_empty() {
        return Err(format!(
            "failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'"
        ));
    }
    Ok(params.iter().any(|object| !object.namespace().is_empty()))
}

/// Returns the resource of a kind. The boolean is true if the resource is namespaced.
fn resource_of(gvk: &Gvk, mapper: &RestMapper) -> Option<(Gvr, bool)> {
    mapper
        .resources
        .iter()
        .find(|served| {
            let gvr = &served.gvr;
            served.gvk == *gvk
                && !gvr.is_subresource()
                && gvr.group == gvk.group
                && gvr.version == gvk.version
        })
        .map(|served| (served.gvr.clone(), served.namespaced))
}

/// Guesses the resource of a kind from the name of the kind.
///
/// Source: apimachinery `pkg/api/meta/restmapper.go`, `UnsafeGuessKindToResource`.
fn guess_resource(gvk: &Gvk) -> Gvr {
    let kind = gvk.kind.to_lowercase();
    let resource = if kind.is_empty() || kind.ends_with("endpoints") {
        kind
    } else if kind.ends_with('s') {
        format!("{kind}es")
    } else if let Some(stem) = kind.strip_suffix('y') {
        format!("{stem}ies")
    } else {
        format!("{kind}s")
    };
    Gvr::new(&*gvk.group, &*gvk.version, resource)
}

fn request(case: &AdmitCase, form: ObjectForm, schemas: &Schemas) -> Result<AdmissionRequest> {
    let object = |value: Option<&Value>| value.map(|value| form.object(value)).transpose();
    let new = object(case.object.as_ref()).context("object")?;
    let old = object(case.old_object.as_ref()).context("oldObject")?;
    let operation: Operation = match case.operation.as_deref().unwrap_or_default() {
        "" => Operation::Create,
        other => other.parse().map_err(anyhow::Error::msg)?,
    };
    let subject = new.as_ref().or(old.as_ref());
    if form == ObjectForm::Typed
        && let Some(gvk) = subject.map(Object::gvk)
        && gvk.group.is_empty()
        && KINDS_WITHOUT_METADATA.contains(&&*gvk.kind)
    {
        bail!("object does not implement the Object interfaces");
    }
    let gvk = match (&case.gvk, subject) {
        (Some(gvk), _) => gvk.clone().into(),
        (None, Some(subject)) => subject.gvk().clone(),
        (None, None) => Gvk::default(),
    };
    let gvr = match &case.gvr {
        Some(gvr) => gvr.clone().into(),
        None => resource_of(&gvk, &schemas.mapper)
            .map_or_else(|| guess_resource(&gvk), |(resource, _)| resource),
    };
    let given = |text: &Option<String>, of_subject: fn(&Object) -> &str| {
        let given = text.as_deref().filter(|text| !text.is_empty());
        given
            .or_else(|| subject.map(of_subject))
            .unwrap_or_default()
            .to_owned()
    };
    Ok(AdmissionRequest {
        operation,
        name: given(&case.name, Object::name),
        namespace: given(&case.namespace, Object::namespace),
        gvk,
        gvr,
        subresource: case.subresource.clone().unwrap_or_default(),
        object: new,
        old_object: old,
        options: case.options.as_ref().map(Object::new),
        dry_run: case.dry_run.unwrap_or_default(),
        user_info: user_info(case.user_info.as_ref()),
        equivalents: case.equivalents.iter().flatten().map(equivalent).collect(),
    })
}

fn equivalent(equivalent: &EquivalentRef) -> Equivalent {
    Equivalent {
        gvr: equivalent.gvr.clone().into(),
        gvk: equivalent.gvk.clone().into(),
    }
}

fn user_info(user: Option<&User>) -> UserInfo {
    let Some(user) = user else {
        return UserInfo::default();
    };
    UserInfo {
        username: user.username.clone().unwrap_or_default(),
        uid: user.uid.clone().unwrap_or_default(),
        groups: user.groups.clone().unwrap_or_default(),
        extra: user.extra.clone().unwrap_or_default(),
    }
}

fn authorizer(rules: Vec<Rule>) -> AuthorizerList {
    let rule = |rule: Rule| {
        let reason = rule.reason.unwrap_or_default();
        let answer = match rule.decision.as_deref().unwrap_or_default() {
            "error" => AuthorizerAnswer {
                error: Some(reason),
                ..AuthorizerAnswer::default()
            },
            decision => AuthorizerAnswer {
                decision: match decision {
                    "" | "allow" => AuthorizerDecision::Allow,
                    "deny" => AuthorizerDecision::Deny,
                    _ => AuthorizerDecision::NoOpinion,
                },
                reason,
                error: None,
            },
        };
        AuthorizerRule {
            user: rule.user,
            verb: rule.verb,
            group: rule.group,
            version: rule.version,
            resource: rule.resource,
            subresource: rule.subresource,
            namespace: rule.namespace,
            name: rule.name,
            path: rule.path,
            answer,
        }
    };
    AuthorizerList(rules.into_iter().map(rule).collect())
}

impl AdmitLine {
    fn set_outcome(&mut self, outcome: ReviewOutcome) {
        self.allowed = Some(outcome.is_allowed());
        self.definition = Some(MatchLine {
            matches: outcome.definition.matched.is_some(),
            resource: outcome
                .definition
                .matched
                .as_ref()
                .map(|(gvr, _)| ResourceRef {
                    group: gvr.group.clone(),
                    version: gvr.version.clone(),
                    resource: gvr.resource.clone(),
                }),
            kind: outcome.definition.matched.as_ref().map(|(_, gvk)| KindRef {
                group: gvk.group.clone(),
                version: gvk.version.clone(),
                kind: gvk.kind.clone(),
            }),
            error: outcome.definition.error,
            ..MatchLine::default()
        });
        self.bindings = outcome
            .bindings
            .into_iter()
            .map(|binding| MatchLine {
                name: binding.name,
                matches: binding.matches,
                error: binding.error,
                ..MatchLine::default()
            })
            .collect();
        self.evaluations = outcome
            .evaluations
            .into_iter()
            .map(evaluation_line)
            .collect();
        self.status = outcome.denial.map(|status| StatusLine {
            code: status.code,
            reason: status.reason,
            message: status.message,
        });
        self.warnings = outcome.warnings;
        self.audit_annotations = outcome.audit_annotations;
    }
}

/// Returns upstream's name for the result of a validation. Before 1.32, the name for a denial was empty.
///
/// Source: k8s.io/apiserver 0.31 `pkg/admission/plugin/policy/validating/validator.go`, `validator.Validate`.
fn evaluation_name(evaluation: EvaluationResult) -> &'static str {
    match evaluation {
        EvaluationResult::Deny if version::get().minor < 32 => "",
        other => other.as_str(),
    }
}

fn evaluation_line(evaluation: Evaluation) -> EvaluationLine {
    let decisions = evaluation.decisions.into_iter();
    let annotations = evaluation.audit_annotations.into_iter();
    EvaluationLine {
        params: evaluation.params.unwrap_or_default(),
        match_conditions: evaluation
            .match_conditions
            .map(|conditions| ConditionsLine {
                matches: conditions.matches,
                failed_condition: conditions.failed_condition.unwrap_or_default(),
                error: conditions.error.unwrap_or_default(),
            }),
        decisions: decisions
            .map(|decision| DecisionLine {
                action: decision.action.as_str(),
                evaluation: evaluation_name(decision.evaluation),
                message: decision.message,
                reason: decision.reason,
            })
            .collect(),
        audit_annotations: annotations
            .map(|annotation| AnnotationLine {
                key: annotation.key,
                action: annotation.action.as_str(),
                value: annotation.value,
                error: annotation.error,
            })
            .collect(),
        costs: CostsLine {
            match_conditions: evaluation.costs.match_conditions.map(cost_line),
            validations: evaluation.costs.validations.map(cost_line),
            messages: evaluation.costs.messages.map(cost_line),
            audit_annotations: evaluation.costs.audit_annotations.map(cost_line),
        },
    }
}

fn cost_line(cost: StageCost) -> CostLine {
    CostLine {
        budget: cost.budget,
        used: cost.used.as_ref().ok().copied(),
        error: cost.used.err(),
    }
}

#[cfg(test)]
mod tests;
