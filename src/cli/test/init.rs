//! `kubectl vap test init`: writes probes for policies, with an allowed and a denied request for each validation.
//!
//! The search for examples generates the requests. Each request is run as a case of a probe before it is written.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Read;
use std::panic::{self, AssertUnwindSafe};

use serde::Serialize;
use serde_json::{Map, Value as Json, json};

use super::{Broken, Options};
use crate::cli::check::known::Known;
use crate::cli::check::render::count;
use crate::cli::exit::Exit;
use crate::cli::input::{Input, KindFilter, Object};
use crate::cli::text::{clean, cut};
use crate::cli::yaml_text;
use crate::policy;
use crate::policy::RequestPolicy;
use crate::policy::admission::{Admission, DeniedBy, EvaluationResult, Namespace, ParamList};
use crate::policy::compile::CompiledPolicy;
use crate::policy::runtime_errors::{self, Boundary, Context, Dependence, Examples, Witness};
use crate::policy::subject::SubjectKind;
use crate::probe::api::{CaseOutcome, PolicyProbeSpec};
use crate::probe::run::{self, CaseResult, RunContext};
use crate::probe::validation::API_VERSION;

/// The maximum length of a message in the name of a case.
const MAX_NAME: usize = 80;

/// The maximum number of param objects from the input for which requests are generated.
const MAX_PARAMS: usize = 3;

/// The maximum width of an expression in the reason for a case, in columns.
const MAX_EXPRESSION: usize = 100;

/// The generated probes.
#[derive(Clone, Debug, Default)]
pub struct InitReport {
    /// The probes, one for each policy and each value of its params.
    pub probes: Vec<Json>,
    /// The reason for each case, by probe.
    pub reasons: Vec<Vec<String>>,
    /// The results by policy.
    pub policies: Vec<PolicyExamples>,
    /// Errors of the input.
    pub problems: Vec<String>,
    /// The mutating policies, for which no requests are generated.
    pub mutating: Vec<String>,
}

/// A probe that is serialized with its fields in the usual order.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ProbeDocument {
    api_version: &'static str,
    kind: &'static str,
    metadata: Json,
    spec: PolicyProbeSpec,
}

/// The result for a policy.
#[derive(Clone, Debug)]
pub struct PolicyExamples {
    /// The name of the policy.
    pub name: String,
    /// The path of the policy's file.
    pub file: String,
    /// The validations, in order.
    pub validations: Vec<ValidationExamples>,
}

/// The result of the search for an allowed and a denied request of a validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValidationExamples {
    /// The input data on which the validation depends.
    pub dependence: Dependence,
    /// True if a request was found for which the validation is true.
    pub allowed: bool,
    /// True if a request was found for which the validation is false.
    pub denied: bool,
    /// The reason why there is no allowed request, if there is none.
    pub reason_not_allowed: String,
    /// The reason why there is no denied request, if there is none.
    pub reason_not_denied: String,
}

impl InitReport {
    /// Returns the probes as YAML documents.
    ///
    /// # Errors
    /// Returns an error if serialization fails, which no input should cause.
    pub fn yaml(&self) -> Result<String, serde_json::Error> {
        let mut out = String::new();
        for (probe, reasons) in self.probes.iter().zip(&self.reasons) {
            if !out.is_empty() {
                out.push_str("---\n");
            }
            let text = probes_yaml(std::slice::from_ref(probe))?;
            out.push_str(&with_reasons(&text, reasons));
        }
        Ok(out)
    }

    /// Returns the errors of the input, and the validations without a request, one per line.
    #[must_use]
    pub fn diagnostics(&self) -> Vec<String> {
        let problems = self.problems.iter().map(|text| format!("error: {text}"));
        let mut lines: Vec<String> = problems.collect();
        for policy in &self.policies {
            for (n, found) in policy.validations.iter().enumerate() {
                let lacks = match (found.dependence, found.denied, found.allowed) {
                    (Dependence::Broken, ..) => "the expression does not compile",
                    (_, true, true) => continue,
                    (Dependence::Nothing, ..) => "the expression is constant",
                    (_, false, true) => {
                        &format!("no denied request was found: {}", found.reason_not_denied)
                    }
                    (_, true, false) => {
                        &format!("no allowed request was found: {}", found.reason_not_allowed)
                    }
                    (_, false, false) if found.reason_not_allowed == found.reason_not_denied => {
                        &format!("no request was found: {}", found.reason_not_allowed)
                    }
                    (_, false, false) => &format!(
                        "no allowed request was found: {}; no denied request was found: {}",
                        found.reason_not_allowed, found.reason_not_denied
                    ),
                };
                let (name, lacks) = (clean(&policy.name), clean(lacks));
                lines.push(format!("warning: {name}: spec.validations[{n}]: {lacks}"));
            }
        }
        for name in &self.mutating {
            let name = clean(name);
            lines.push(format!(
                "warning: {name}: probes for MutatingAdmissionPolicies are not generated; write one with `target: {{kind: \
                 MutatingAdmissionPolicy, name: {name}}}`"
            ));
        }
        if self.policies.is_empty() && self.problems.is_empty() {
            lines.push("error: the input has no ValidatingAdmissionPolicy".to_owned());
        }
        lines
    }

    /// Returns 0 if each validation has an allowed and a denied request, 1 if such a request is missing, and 2 if the
    /// input is invalid or has no policy.
    #[must_use]
    pub fn exit(&self) -> Exit {
        if !self.problems.is_empty() || self.policies.is_empty() {
            return Exit::Failed;
        }
        let mut all = self.policies.iter().flat_map(|policy| &policy.validations);
        if self.mutating.is_empty() && all.all(|found| found.allowed && found.denied) {
            Exit::Clean
        } else {
            Exit::Findings
        }
    }
}

/// Inserts the reason for each case as a comment before the case. Returns the text unchanged if its cases are not found.
fn with_reasons(probe: &str, reasons: &[String]) -> String {
    const CASE: &str = "  - name: ";
    let cases = probe.lines().filter(|line| line.starts_with(CASE));
    if cases.count() != reasons.len() {
        return probe.to_owned();
    }
    let mut reasons = reasons.iter();
    let mut out = String::new();
    for line in probe.lines() {
        let reason = line.starts_with(CASE).then(|| reasons.next()).flatten();
        if let Some(reason) = reason {
            let _ = writeln!(out, "  # {}", clean(reason));
        }
        out.push_str(line);
        out.push('\n');
    }
    out
}

/// Writes probes as YAML documents, with the fields in the usual order.
pub(in crate::cli) fn probes_yaml(probes: &[Json]) -> Result<String, serde_json::Error> {
    let mut out = String::new();
    for probe in probes {
        if !out.is_empty() {
            out.push_str("---\n");
        }
        let spec = probe.get("spec").cloned().unwrap_or_default();
        let Ok(spec) = serde_json::from_value(spec) else {
            // An invalid probe is written too. `test` reports its errors.
            out.push_str(&yaml_text::to_string(probe)?);
            continue;
        };
        let document = ProbeDocument {
            api_version: API_VERSION,
            kind: "PolicyProbe",
            metadata: probe.get("metadata").cloned().unwrap_or_default(),
            spec,
        };
        out.push_str(&yaml_text::to_string(&document)?);
    }
    Ok(out)
}

/// Generates probes for all policies of the input.
///
/// # Errors
/// Returns an error if the data built into this program cannot be used.
pub fn run(options: &Options, stdin: &mut dyn Read) -> Result<InitReport, Broken> {
    let mut input = Input::load(&options.paths, KindFilter::All, stdin);
    let crds = Input::load(&options.crds, KindFilter::Crds, stdin);
    let own_crds = std::mem::take(&mut input.crds);
    let apis = Known::new(
        options.version,
        own_crds.into_iter().chain(crds.crds).map(|crd| crd.value),
        input.policies.iter().map(|policy| &policy.value),
    )
    .map_err(|error| Broken(error.to_string()))?;
    let problems = input.problems.iter().chain(&crds.problems);
    let problems = problems.map(|problem| clean(&problem.message));
    let invalid = input.invalid.iter().map(|object| clean(&object.value));
    let mut report = InitReport {
        problems: problems.chain(invalid).collect(),
        mutating: (input.mutating_policies.iter())
            .map(|policy| policy.shared.name().unwrap_or_default().to_owned())
            .collect(),
        ..InitReport::default()
    };
    let mut names = BTreeSet::new();
    for policy in &input.policies {
        let params = given_params(policy, &input);
        let search = AssertUnwindSafe(|| policy_probes(policy, &apis, &params));
        let result = panic::catch_unwind(search);
        let Ok((probes, validations)) = result else {
            let name = clean(policy.name().unwrap_or_default());
            report.problems.push(format!(
                "{name}: the search failed with an internal error; please report it"
            ));
            continue;
        };
        for (mut probe, reasons) in probes {
            report.reasons.push(reasons);
            let name = unique(policy.name().unwrap_or("probe"), &mut names);
            if let Some(metadata) = probe.get_mut("metadata") {
                *metadata = json!({"name": name});
            }
            report.probes.push(probe);
        }
        report.policies.push(PolicyExamples {
            name: policy.name().unwrap_or_default().to_owned(),
            file: policy.source.name.clone(),
            validations,
        });
    }
    Ok(report)
}

/// Returns `name`, with a number appended if it is already used.
pub(in crate::cli) fn unique(name: &str, names: &mut BTreeSet<String>) -> String {
    let numbered = (2..).map(|n: usize| format!("{name}-{n}"));
    let mut candidates = std::iter::once(name.to_owned()).chain(numbered);
    let free = candidates.find(|name| names.insert(name.clone()));
    free.unwrap_or_default()
}

/// A case with the reason for it.
type ReasonedCase = (Json, String);

/// A probe, and the reason for each of its cases.
type ReasonedProbe = (Json, Vec<String>);

/// Returns the params in the input that a binding of the policy selects by name, or all objects of the paramKind.
fn given_params(policy: &Object<RequestPolicy>, input: &Input) -> Vec<Json> {
    let Some(kind) = policy::param_kind(&policy.value) else {
        return Vec::new();
    };
    let name = policy.name().unwrap_or_default();
    let bindings = input.bindings.iter().map(|binding| &binding.value.spec);
    let bindings = bindings.filter(|spec| spec.policy_name == name);
    let references = bindings.filter_map(|spec| spec.param_ref.as_ref());
    let references: Vec<_> = references.filter(|it| it.name.is_some()).collect();
    let is_referenced = |object: &&Object<Json>| {
        references.iter().any(|it| {
            let namespace = it.namespace.as_deref();
            it.name.as_deref() == object.name()
                && (namespace.is_none() || namespace == object.namespace())
        })
    };
    let all = || input.objects_of_kind(&kind);
    let value = |object: &Object<Json>| object.value.clone();
    let named: Vec<Json> = all().filter(is_referenced).map(value).collect();
    if named.is_empty() {
        return all().take(MAX_PARAMS).map(value).collect();
    }
    named.into_iter().take(MAX_PARAMS).collect()
}

/// Returns the probes of a policy, one for each value of its params, and the results for its validations. Generates the
/// params if `given_params` is empty.
///
/// A request is allowed if all validations are true, so the probes need only one allowed request, in addition to the
/// requests at boundaries.
fn policy_probes(
    policy: &Object<RequestPolicy>,
    known: &Known,
    given_params: &[Json],
) -> (Vec<ReasonedProbe>, Vec<ValidationExamples>) {
    let compiled = CompiledPolicy::from_parts(policy.value.clone(), None, known.version());

    let context = Context {
        mapper: &known.mapper,
        schemas: known,
        written: known,
        type_findings: &[],
        without_params: None,
        never_has_params: false,
        match_resources: None,
        kinds: None,
        object_cache: &known.object_cache,
    };
    let runner = CaseRunner {
        policy: &policy.value,
        admission: Admission::from_compiled(&compiled),
        known,
        given_params,
    };
    let mut search = ProbeSearch {
        runner,
        by_params: BTreeMap::new(),
        results: Vec::new(),
    };
    let mut params: Vec<Option<&Json>> = given_params.iter().map(Some).collect();
    if params.is_empty() {
        params.push(None);
    }
    for params in params {
        let all = runtime_errors::examples(&compiled, &context, params);
        let dependence =
            |examples: &Examples| runtime_errors::dependence(&compiled, examples.index);
        search.add_all(&all, &dependence);
    }
    search.finish()
}

/// Params, and the cases that use them.
type CasesOfParams = (Option<Json>, Vec<ReasonedCase>);

/// Collects the cases of a policy by their params, and the results for its validations.
struct ProbeSearch<'a> {
    runner: CaseRunner<'a>,
    by_params: BTreeMap<String, CasesOfParams>,
    results: Vec<ValidationExamples>,
}

impl ProbeSearch<'_> {
    /// Adds cases for the examples of all validations. All examples use the same param object of the input, or
    /// generated params.
    fn add_all(&mut self, all: &[Examples], dependence: &dyn Fn(&Examples) -> Dependence) {
        let mut has_allowed = false;
        // Denied requests for which another expression fails, which is probably a mistake in the policy. Such a request
        // becomes a case only for a validation without another denied request.
        let mut by_errors = Vec::new();
        let is_broken = all.iter().any(|it| dependence(it) == Dependence::Broken);
        for examples in all {
            let n = examples.validation;
            let (mut allowed, mut denied) = (false, false);
            if let Some(witness) = &examples.allowed
                && let Some(case) = self.runner.case(n, witness, &Expected::Allowed(None))
            {
                allowed = true;
                if !std::mem::replace(&mut has_allowed, true) {
                    self.add_case(witness, case, "no validation is false".to_owned());
                }
            }
            if let Some(witness) = &examples.denied
                && let Some(case) = self.runner.case(n, witness, &Expected::Denied(None))
            {
                denied = true;
                if case.pointer("/expect/error").is_some() {
                    by_errors.push((n, witness, case));
                } else {
                    self.add_case(witness, case, self.false_reason(n));
                }
            }
            self.add_result(
                n,
                ValidationExamples {
                    dependence: dependence(examples),
                    allowed,
                    denied,
                    reason_not_allowed: reason_without_example(all, examples, is_broken, true),
                    reason_not_denied: reason_without_example(all, examples, is_broken, false),
                },
            );
        }
        for examples in all {
            for boundary in &examples.boundaries {
                self.add_boundary(examples.validation, boundary);
            }
        }
        for (n, witness, case) in by_errors {
            if !self.has_denial(n) {
                let reason = self.false_reason(n);
                let reason = format!(
                    "{reason}; another expression fails, and `kubectl vap check` reports it"
                );
                self.add_case(witness, case, reason);
            }
        }
    }

    /// Returns true if the probes contain a case that the validation `n` denies.
    fn has_denial(&self, n: usize) -> bool {
        let start = format!("validations[{n}] denies");
        let mut cases = self.by_params.values().flat_map(|(_, cases)| cases);
        cases.any(|(case, _)| {
            let name = case.get("name").and_then(Json::as_str);
            name.is_some_and(|name| name.starts_with(&start))
        })
    }

    /// Adds the result of the validation `n`. With several params, a request for any of them is enough.
    fn add_result(&mut self, n: usize, result: ValidationExamples) {
        let Some(earlier) = self.results.get_mut(n) else {
            self.results.push(result);
            return;
        };
        earlier.allowed |= result.allowed;
        earlier.denied |= result.denied;
    }

    fn add_boundary(&mut self, n: usize, boundary: &Boundary) {
        let Boundary {
            input, is_upper, ..
        } = boundary;
        let which = if *is_upper { "largest" } else { "smallest" };
        let value = |value: &Json| {
            value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned)
        };
        let (limit, beyond) = (value(&boundary.allowed), value(&boundary.denied));
        let name = Some(format!("{input} is {limit}"));
        let case = self
            .runner
            .case(n, &boundary.allowed_request, &Expected::Allowed(name));
        if let Some(case) = case {
            let reason = format!("the {which} allowed value of {input}");
            self.add_case(&boundary.allowed_request, case, reason);
        }
        let name = Some(format!("{input} {beyond}"));
        let case = self
            .runner
            .case(n, &boundary.denied_request, &Expected::Denied(name));
        if let Some(case) = case {
            self.add_case(&boundary.denied_request, case, self.false_reason(n));
        }
    }

    fn false_reason(&self, n: usize) -> String {
        let validation = self.runner.policy.validations.get(n);
        let expression = validation.map_or("", |validation| &validation.expression);
        let words: Vec<&str> = expression.split_whitespace().collect();
        let expression = cut(&words.join(" "), MAX_EXPRESSION);
        format!("validations[{n}] is false: {expression}")
    }

    /// Adds a case to the probe for its params, unless the probe already contains the same request or name.
    fn add_case(&mut self, witness: &Witness, case: Json, reason: String) {
        let key = witness.params.as_ref().map(Json::to_string);
        let group = self.by_params.entry(key.unwrap_or_default());
        let (_, cases) = group.or_insert_with(|| (witness.params.clone(), Vec::new()));
        let is_equal = |field: &str, other: &Json| other.get(field) == case.get(field);
        let is_known = cases
            .iter()
            .any(|(other, _)| is_equal("request", other) || is_equal("name", other));
        if !is_known {
            cases.push((case, reason));
        }
    }

    fn finish(self) -> (Vec<ReasonedProbe>, Vec<ValidationExamples>) {
        let groups = self.by_params.into_values();
        let probes = groups.map(|(params, cases)| {
            let (cases, reasons): (Vec<Json>, Vec<String>) = cases.into_iter().unzip();
            (self.runner.probe(params.as_ref(), &cases), reasons)
        });
        (probes.collect(), self.results)
    }
}

/// Returns the reason why the search found no example with the result `expected`. `is_broken` is true if a validation
/// does not compile.
fn reason_without_example(
    all: &[Examples],
    examples: &Examples,
    is_broken: bool,
    expected: bool,
) -> String {
    let attempts = &examples.attempts;
    let requests = |n: u32| count(n, "generated request");
    let (example, n_with_result) = if expected {
        (&examples.allowed, attempts.n_true)
    } else {
        (&examples.denied, attempts.n_false)
    };
    if example.is_some() {
        return "the result of the generated request cannot be reproduced in a case".to_owned();
    }
    if is_broken {
        return "another validation does not compile".to_owned();
    }
    if attempts.n_evaluated == 0 && attempts.n_excluded == 0 {
        return "no request can be generated, because no known kind matches the rules".to_owned();
    }
    if attempts.n_evaluated == 0 {
        let n = requests(attempts.n_excluded);
        return format!("the match conditions exclude all of the {n}");
    }
    let n = attempts.n_evaluated;
    if n_with_result == 0 {
        return match &attempts.error {
            Some(error) if attempts.n_true + attempts.n_false == 0 => {
                format!(
                    "the expression fails for all of the {}: {error}",
                    requests(n)
                )
            }
            _ => format!(
                "none of the {} makes the expression {expected}",
                requests(n)
            ),
        };
    }
    let blocking = all.iter().filter(|it| it.attempts.n_true == 0);
    let blocking: Vec<String> = blocking
        .map(|it| format!("validations[{}]", it.validation))
        .collect();
    if !expected {
        "the API server rejects the requests for which the expression is false".to_owned()
    } else if all.len() == 1 {
        "the API server rejects the requests for which the expression is true".to_owned()
    } else if blocking.is_empty() {
        let n = requests(n);
        format!(
            "each validation is true for some of the {n}, but no valid request satisfies all validations"
        )
    } else {
        format!("{} is not true for any request", blocking.join(" or "))
    }
}

/// The expected decision of a case, with a name that describes the tested value.
enum Expected {
    Allowed(Option<String>),
    Denied(Option<String>),
}

struct CaseRunner<'a> {
    policy: &'a RequestPolicy,
    admission: Admission,
    known: &'a Known,
    /// The params of the input.
    given_params: &'a [Json],
}

impl CaseRunner<'_> {
    fn probe(&self, params: Option<&Json>, cases: &[Json]) -> Json {
        let mut spec = json!({
            "policyName": self.policy.name,
            "bindings": "Implied",
            "cases": cases,
        });
        if let (Some(params), Some(fields)) = (params, spec.as_object_mut()) {
            fields.insert("params".to_owned(), json!("Inline"));
            if !params.is_null() {
                fields.insert("inlineParams".to_owned(), json!([params]));
            }
            // An implied binding selects params in the namespace of the request.
            let text = |pointer: &str| params.pointer(pointer).and_then(Json::as_str);
            if let Some(name) = text("/metadata/name")
                && self.given_params.contains(params)
            {
                let mut reference = json!({"name": name, "parameterNotFoundAction": "Deny"});
                if let Some(namespace) = text("/metadata/namespace")
                    && let Some(reference) = reference.as_object_mut()
                {
                    reference.insert("namespace".to_owned(), json!(namespace));
                }
                let binding = json!({
                    "policyName": self.policy.name,
                    "paramRef": reference,
                    "validationActions": ["Deny"],
                });
                fields.insert("bindings".to_owned(), json!("Inline"));
                fields.insert("inlineBindings".to_owned(), json!([binding]));
            }
        }
        json!({
            "apiVersion": API_VERSION,
            "kind": "PolicyProbe",
            "metadata": {"name": self.policy.name},
            "spec": spec,
        })
    }

    fn run(&self, params: Option<&Json>, case: &Json) -> Option<CaseResult> {
        let probe = self.probe(params, std::slice::from_ref(case));
        let spec: PolicyProbeSpec = serde_json::from_value(probe.get("spec")?.clone()).ok()?;
        let param_kind = policy::param_kind(self.policy);
        let none = ParamList::default();
        let namespaces: BTreeMap<String, Namespace> = BTreeMap::new();
        let run_context = RunContext {
            admission: &self.admission,
            param_kind: param_kind.as_ref(),
            bindings: Ok(&[]),
            params: Ok(&none),
            namespaces: &namespaces,
            authorizer: Err("authorization checks are not available without a cluster".to_owned()),
            mapper: &self.known.mapper,
            schemas: self.known,
            rejection: None,
            kind: SubjectKind::ValidatingAdmissionPolicy,
            mutating: None,
            records: None,
        };
        run::run(&spec, &run_context).pop()
    }

    /// Converts `witness` to a case for the validation at `n`, in the shortest form that the evaluator confirms.
    fn case(&self, n: usize, witness: &Witness, expected: &Expected) -> Option<Json> {
        let is_denied = matches!(expected, Expected::Denied(_));
        [true, false].into_iter().find_map(|is_short| {
            let request = request(witness, is_short)?;
            let mut case = json!({
                "name": "tried",
                "request": request,
                "expect": {"applies": true},
            });
            let params = witness.params.as_ref();
            let tried = self.run(params, &case)?;
            let outcome = tried.outcome?;
            let mut decisions = outcome.evaluations.iter().flat_map(|it| &it.decisions);
            let decision = decisions.nth(n);
            let expect = if is_denied {
                let decision = decision.filter(|it| it.evaluation == EvaluationResult::Deny)?;
                let mut expect = json!({"decision": "Deny", "message": decision.message});
                let denial = outcome.denial.as_ref()?;
                if denial.by != DeniedBy::Validation {
                    expect
                        .as_object_mut()?
                        .insert("error".to_owned(), json!({"text": denial.cause}));
                }
                expect
            } else {
                json!({"decision": "Allow"})
            };
            let message = expect.get("message").and_then(Json::as_str);
            let name = match message {
                Some(message) => {
                    let short: String = message.chars().take(MAX_NAME).collect();
                    let short = clean(&short);
                    match expected {
                        Expected::Denied(Some(value)) => {
                            format!("validations[{n}] denies {value}: {short}")
                        }
                        _ => format!("validations[{n}] denies: {short}"),
                    }
                }
                None => match expected {
                    Expected::Allowed(Some(value)) => format!("allowed: {value}"),
                    _ => "allowed".to_owned(),
                },
            };
            let fields = case.as_object_mut()?;
            fields.insert("name".to_owned(), json!(name));
            fields.insert("expect".to_owned(), expect);
            let confirmed = self.run(params, &case)?;
            (confirmed.status.outcome == CaseOutcome::Passed).then_some(case)
        })
    }
}

/// Removes the selector and the labels that the API server generates for a Job. The API server rejects them in requests
/// of clients.
///
/// Source: `k8s.io/kubernetes` `pkg/registry/batch/job/strategy.go` (`generateSelector`).
fn without_controller(object: &mut Json) {
    const GENERATED: [&str; 2] = [
        "batch.kubernetes.io/controller-uid",
        "batch.kubernetes.io/job-name",
    ];
    if object.get("kind").and_then(Json::as_str) != Some("Job") {
        return;
    }
    if let Some(spec) = object.get_mut("spec").and_then(Json::as_object_mut) {
        spec.remove("selector");
    }
    let metadata = object.pointer_mut("/spec/template/metadata");
    if let Some(metadata) = metadata.and_then(Json::as_object_mut) {
        if let Some(labels) = metadata.get_mut("labels").and_then(Json::as_object_mut) {
            labels.retain(|label, _| !GENERATED.contains(&label.as_str()));
        }
        metadata.retain(|_, value| value.as_object().is_none_or(|fields| !fields.is_empty()));
    }
}

/// Returns the request of a case. With `is_short`, omits fields that the API server sets, and fields with default
/// values.
pub(in crate::cli) fn request(witness: &Witness, is_short: bool) -> Option<Json> {
    const SERVER_FIELDS: [&str; 3] = ["uid", "creationTimestamp", "resourceVersion"];
    let given = witness.request.as_object()?;
    let mut request = Map::new();
    let operation = given.get("operation")?;
    if operation != "CREATE" {
        request.insert("operation".to_owned(), operation.clone());
    }
    let sub_resource = given.get("subResource");
    if let Some(sub_resource) = sub_resource {
        request.insert("resource".to_owned(), given.get("resource")?.clone());
        request.insert("subResource".to_owned(), sub_resource.clone());
        for name in ["name", "namespace"] {
            if let Some(value) = given.get(name) {
                request.insert(name.to_owned(), value.clone());
            }
        }
    }
    for name in ["object", "oldObject"] {
        let Some(object) = given.get(name).filter(|object| !object.is_null()) else {
            continue;
        };
        let mut object = object.clone();
        let metadata = object.get_mut("metadata").and_then(Json::as_object_mut);
        if let Some(metadata) = metadata.filter(|_| is_short) {
            metadata.retain(|field, _| !SERVER_FIELDS.contains(&field.as_str()));
        }
        if operation == "CREATE" && is_short {
            without_controller(&mut object);
        }
        request.insert(name.to_owned(), object);
    }
    if !is_short {
        for name in ["userInfo", "dryRun"] {
            if let Some(value) = given.get(name) {
                request.insert(name.to_owned(), value.clone());
            }
        }
        if let Some(namespace) = &witness.namespace_object {
            request.insert("namespaceObject".to_owned(), namespace.clone());
        }
    }
    Some(Json::Object(request))
}
