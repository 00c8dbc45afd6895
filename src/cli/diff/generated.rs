//! Compares the two versions of a policy for generated requests.
//!
//! Requests are generated for changed policies. They show the effect of a change that no given probe or object shows.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, ValidatingAdmissionPolicyBindingSpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use kubernetes::validity::{FieldPath, Root, Segment};
use serde_json::{Value, json};

use super::compare::{Difference, Effect, compare};
use super::param_objects::ParamObjects;
use super::report::InputValue;
use super::settings::bindings;
use super::{PolicyPair, both_versions};
use crate::cli::audit::PolicyResult;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::eval::run_case;
use crate::cli::generated_requests;
use crate::policy::admission::{AuthorizerDecision, AuthorizerRule, Binding};
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::reads::{Input, Reads};
use crate::policy::runtime_errors::{self, Context, Examples, Witness};
use crate::probe::api::{BindingSource, Case, PolicyProbeSpec, Source};
use crate::schema::escape::unescape;

/// Maximum number of bindings per version for which requests are generated, and maximum number of param objects.
const MAX_EXAMPLES: usize = 2;

/// Maximum number of changed param values for which requests are generated.
const MAX_VALUES: usize = 24;

/// The generated requests for a policy.
#[derive(Default)]
pub(super) struct Generated {
    /// The number of requests for which both versions were evaluated.
    pub(super) n_requests: usize,
    /// The requests for which the versions differ. Requests for which the two versions have different decisions come
    /// first.
    pub(super) differing: Vec<DifferingRequest>,
    /// The reason why requests could not be generated or evaluated.
    pub(super) error: Option<String>,
    /// The reason why the schemas of a version do not permit the object of a request.
    rejection: Option<String>,
}

/// A generated request for which the two versions differ.
pub(super) struct DifferingRequest {
    /// The operation and the kind of the object, such as `a generated CREATE of a Deployment`.
    pub(super) name: String,
    /// The request in the format of a probe's case.
    pub(super) request: Value,
    pub(super) inputs: Vec<InputValue>,
    pub(super) results: [Option<PolicyResult>; 2],
    pub(super) difference: Difference,
}

/// Returns true if the expressions or settings of the versions differ.
fn is_changed([old, new]: [&PreparedPolicy<'_>; 2]) -> bool {
    fn expressions<'p>(policy: &'p PreparedPolicy<'_>) -> Vec<(Role, &'p str)> {
        let expressions = policy.compiled.expressions().iter();
        let key = |it: &'p PolicyExpression| (it.role, &*it.text);
        expressions.map(key).collect()
    }
    old.object.value != new.object.value || expressions(old) != expressions(new)
}

/// Returns true if the bindings of the versions differ.
fn are_bindings_changed([old, new]: [&PreparedPolicy<'_>; 2]) -> bool {
    let [old, new] = [old, new].map(bindings);
    let specs = |bindings: &BTreeMap<&str, &Binding>| -> Vec<Value> {
        let specs = bindings.values().map(|it| serde_json::to_value(it.spec()));
        specs.map(Result::unwrap_or_default).collect()
    };
    !old.keys().eq(new.keys()) || specs(&old) != specs(&new)
}

/// Generates requests for the versions of a policy if the policy, its bindings or its params changed.
pub(super) fn generate(
    pair: &PolicyPair,
    sets: [&PolicySet<'_>; 2],
    params: &ParamObjects<'_>,
) -> Generated {
    let Some(policies) = both_versions(pair, sets) else {
        return Generated::default();
    };
    let are_inputs_changed = are_bindings_changed(policies) || !params.changed().is_empty();
    // For a mutating policy, the search for changed expressions also returns sample requests. These requests can show
    // the effect of changed bindings and params.
    let is_mutating = policies.iter().any(|it| it.mutating.is_some());
    let [old, new] = policies.map(|it| it.mutating.as_ref().is_some_and(|it| it.reinvokes));
    let is_changed = is_changed(policies) || (is_mutating && are_inputs_changed) || old != new;
    let mut generated = Generated::default();
    for set in sets {
        let search = Search {
            pair,
            policies,
            sets,
            set,
        };
        if is_changed {
            generated.add_changes(&search);
        }
        if are_inputs_changed && !is_mutating {
            generated.add_examples(&search, params);
        }
        if is_changed || are_inputs_changed {
            generated.add_matches(&search);
        }
        // If the schemas of the new version do not permit an object, the schemas differ. Objects are then also built
        // from the new schemas.
        if generated.rejection.is_none() {
            break;
        }
    }
    if !generated.differing.is_empty() {
        generated.error = None;
    } else if generated.n_requests == 0 {
        generated.error = generated.error.or(generated.rejection.take());
    }
    generated.differing.sort_by_key(|it| it.difference.effect);
    generated
}

/// The versions of a policy for which requests are generated.
struct Search<'s, 'p> {
    pair: &'s PolicyPair,
    policies: [&'s PreparedPolicy<'p>; 2],
    sets: [&'s PolicySet<'p>; 2],
    /// The set with the schemas from which the requests are built.
    set: &'s PolicySet<'p>,
}

impl Search<'_, '_> {
    /// Runs a search for requests.
    ///
    /// # Errors
    /// Returns the reason why the search failed.
    fn run<T: Send>(
        &self,
        run: impl Fn(&Context<'_>, &Arc<AtomicBool>) -> T + Send + Sync,
    ) -> Result<T, String> {
        generated_requests::search(self.set, self.sets[0].limit, run)
    }
}

/// The reason why a version could not be evaluated for a request.
struct Unconfirmed {
    why: String,
    /// True if the schemas of a version do not permit the object.
    is_rejection: bool,
}

/// Returns the matchResources of the bindings of a policy. `None` is a binding without matchResources.
fn match_resources<'p>(policy: &'p PreparedPolicy<'_>) -> Vec<Option<&'p MatchResources>> {
    let bindings = bindings(policy).into_values();
    let mut all: Vec<_> = bindings
        .map(|it| it.spec().match_resources.as_ref())
        .collect();
    all.dedup();
    all
}

impl Generated {
    /// Adds the differences that changed expressions cause.
    fn add_changes(&mut self, search: &Search<'_, '_>) {
        let policies = search.policies;
        let compiled = policies.map(|policy| &policy.compiled);
        let match_resources = match_resources(policies[0]).into_iter().next().flatten();
        let compare = |context: &Context<'_>, is_cancelled: &Arc<AtomicBool>| {
            runtime_errors::compare_policies(compiled, context, match_resources, is_cancelled)
        };
        let comparison = match search.run(compare) {
            Ok(comparison) => comparison,
            Err(error) => {
                self.error = Some(error);
                return;
            }
        };
        self.n_requests += comparison.n_requests;
        let differences = comparison.differences.into_iter();
        let differences = differences.map(|it| (it.witness, it.inputs));
        self.confirm_all(search, &differences.collect::<Vec<_>>());
        // `comparison.n_requests` does not include the samples, because the search does not evaluate them.
        let samples = comparison.samples.into_iter();
        let samples: Vec<_> = samples.map(|witness| (witness, Vec::new())).collect();
        self.n_requests += self.confirm_all(search, &samples);
    }

    /// Adds the differences that changed bindings and params cause. Some requests are generated from changed param
    /// values. The others match a binding of one version, and a validation allows or denies them with that version's
    /// params.
    fn add_examples(&mut self, search: &Search<'_, '_>, params: &ParamObjects<'_>) {
        let policies = search.policies;
        let changed = params.changed();
        let values = changed_values(&changed);
        if !values.is_empty() {
            let [old, _] = policies;
            let near = |context: &Context<'_>, _: &Arc<AtomicBool>| {
                runtime_errors::requests_near(&old.compiled, context, &values)
            };
            match search.run(near) {
                Ok(witnesses) => {
                    let witnesses = witnesses.into_iter().map(|it| (it, Vec::new()));
                    let witnesses: Vec<_> = witnesses.collect();
                    self.n_requests += self.confirm_all(search, &witnesses);
                }
                Err(error) => self.error = Some(error),
            }
        }
        for (n, policy) in policies.into_iter().enumerate() {
            let objects = changed
                .iter()
                .filter_map(|(_, sides)| sides.get(n)?.as_ref());
            let mut objects: Vec<Option<&Value>> = objects.map(Some).collect();
            objects.truncate(MAX_EXAMPLES);
            if objects.is_empty() {
                objects.push(None);
            }
            for resources in match_resources(policy).into_iter().take(MAX_EXAMPLES) {
                for params in &objects {
                    let examples = |context: &Context<'_>, _: &Arc<AtomicBool>| {
                        let context = Context {
                            match_resources: resources,
                            ..*context
                        };
                        runtime_errors::examples(&policy.compiled, &context, *params)
                    };
                    match search.run(examples) {
                        Ok(examples) => {
                            let witnesses = witnesses(examples, &selected_labels(resources));
                            self.n_requests += self.confirm_all(search, &witnesses);
                        }
                        Err(error) => self.error = Some(error),
                    }
                }
            }
        }
    }

    /// Adds the differences that changed match constraints and bindings cause: requests that only one version matches,
    /// or for which the matching bindings of the two versions differ.
    fn add_matches(&mut self, search: &Search<'_, '_>) {
        let policies = search.policies;
        let [old, new] = policies.map(|policy| {
            let bindings = bindings(policy).into_values();
            bindings.map(Binding::spec).collect::<Vec<_>>()
        });
        let implied = ValidatingAdmissionPolicyBindingSpec {
            validation_actions: vec!["Deny".to_owned()],
            ..ValidatingAdmissionPolicyBindingSpec::default()
        };
        let implied = [&implied];
        let bindings: [&[_]; 2] = if old.is_empty() && new.is_empty() {
            [&implied, &implied]
        } else {
            [&old, &new]
        };
        let compiled = policies.map(|policy| &policy.compiled);
        let differing = |context: &Context<'_>, is_cancelled: &Arc<AtomicBool>| {
            let matches = runtime_errors::differing_matches(compiled, bindings, context.mapper);
            let mut witnesses = Vec::new();
            for resources in &matches {
                let decisive = selected_labels(Some(resources));
                let context = Context {
                    match_resources: Some(resources),
                    ..*context
                };
                if compiled[0].is_mutating() {
                    let comparison =
                        runtime_errors::compare_policies(compiled, &context, None, is_cancelled);
                    let samples = comparison.samples.into_iter();
                    witnesses.extend(samples.map(|it| (it, decisive.clone())));
                    continue;
                }
                for policy in compiled {
                    let examples = runtime_errors::examples(policy, &context, None);
                    witnesses.extend(self::witnesses(examples, &decisive));
                }
            }
            witnesses
        };
        match search.run(differing) {
            Ok(witnesses) => {
                self.n_requests += self.confirm_all(search, &witnesses);
            }
            Err(error) => self.error = Some(error),
        }
    }

    /// Evaluates both versions for requests, and adds the requests for which they differ. Returns the number of
    /// evaluated requests.
    fn confirm_all(
        &mut self,
        search: &Search<'_, '_>,
        witnesses: &[(Witness, Vec<FieldPath>)],
    ) -> usize {
        let mut n_evaluated = 0;
        let confirmed = search.sets[0].limit.run(|is_cancelled| {
            for (witness, inputs) in witnesses {
                if is_cancelled.load(Ordering::Relaxed) {
                    break;
                }
                match confirm(search, (witness, inputs)) {
                    Ok(differing) => {
                        self.differing.extend(differing);
                        n_evaluated += 1;
                    }
                    Err(error) if error.is_rejection => self.rejection = Some(error.why),
                    Err(error) => self.error = Some(error.why),
                }
            }
        });
        if let Err(why) = confirmed {
            self.error = Some(why);
        }
        n_evaluated
    }
}

/// Returns the values that occur in the params of only one version. For each string, also returns a longer string that
/// starts with it.
fn changed_values(changed: &[(String, [Option<Value>; 2])]) -> Vec<Value> {
    let mut all: Vec<Value> = Vec::new();
    for (_, sides) in changed {
        let sides = sides.each_ref().map(Option::as_ref);
        let [old, new] = sides.map(|it| it.map_or_else(Vec::new, runtime_errors::param_values));
        let of_old = old.iter().filter(|it| !new.contains(it));
        let of_new = new.iter().filter(|it| !old.contains(it));
        for value in of_old.chain(of_new) {
            all.push(value.clone());
            all.extend(value.as_str().map(|text| json!(format!("{text}/x"))));
        }
    }
    all.truncate(MAX_VALUES);
    all
}

/// Returns the paths of the labels on which the selectors of a binding depend.
fn selected_labels(resources: Option<&MatchResources>) -> Vec<FieldPath> {
    let selectors = [
        (
            Root::Namespace,
            resources.and_then(|it| it.namespace_selector.as_ref()),
        ),
        (
            Root::Object,
            resources.and_then(|it| it.object_selector.as_ref()),
        ),
    ];
    let is_empty = |selector: &LabelSelector| *selector == LabelSelector::default();
    let roots = selectors.into_iter().filter_map(|(root, selector)| {
        let selector = selector.filter(|it| !is_empty(it));
        selector.map(|_| root)
    });
    let labels = roots.filter_map(|root| FieldPath::new(root).field("metadata")?.field("labels"));
    labels.collect()
}

/// Returns the requests of `examples`, each with the inputs in `decisive`. Denied requests are first, because changed
/// bindings affect them.
fn witnesses(examples: Vec<Examples>, decisive: &[FieldPath]) -> Vec<(Witness, Vec<FieldPath>)> {
    let (mut denied, mut allowed) = (Vec::new(), Vec::new());
    for example in examples {
        denied.extend(example.denied);
        allowed.extend(example.allowed);
        for boundary in example.boundaries {
            denied.push(boundary.denied_request);
            allowed.push(boundary.allowed_request);
        }
    }
    let witnesses = denied.into_iter().chain(allowed);
    let witnesses = witnesses.map(|witness| (witness, decisive.to_vec()));
    witnesses.collect()
}

/// Evaluates both versions for a generated request, with the params of the input and with generated params. `None` if the
/// versions do not differ. Prefers the short form of the request if it has the same difference.
///
/// # Errors
/// Returns the reason why a version could not be evaluated.
fn confirm(
    search: &Search<'_, '_>,
    (witness, decisive): (&Witness, &[FieldPath]),
) -> Result<Option<DifferingRequest>, Unconfirmed> {
    let mut error = None;
    let mut best: Option<DifferingRequest> = None;
    let has_params = search
        .policies
        .iter()
        .any(|policy| policy.param_kind.is_some());
    for with_params in [false, true] {
        let mut evaluate = |is_short: bool| {
            let form = Form {
                is_short,
                with_params,
            };
            let differing = confirm_form(search, (witness, decisive), form);
            differing.unwrap_or_else(|why| {
                error = Some(why);
                None
            })
        };
        // The short form has another user than the long form, and no namespace labels. So the two forms might have
        // different differences.
        let differing = match (evaluate(false), evaluate(true)) {
            (Some(long), Some(short)) if short.difference != long.difference => Some(long),
            (long, short) => short.or(long),
        };
        let is_better = |it: &DifferingRequest| {
            let effect = it.difference.effect;
            best.as_ref()
                .is_none_or(|best| effect < best.difference.effect)
        };
        if let Some(differing) = differing.filter(is_better) {
            best = Some(differing);
        }
        let is_decided = |best: &DifferingRequest| best.difference.effect != Effect::Same;
        if !has_params || best.as_ref().is_some_and(is_decided) {
            break;
        }
    }
    match (best, error) {
        (None, Some(error)) => Err(error),
        (best, _) => Ok(best),
    }
}

/// The form in which a generated request is evaluated.
#[derive(Clone, Copy)]
struct Form {
    /// True to omit the user, the namespace, and the fields that the API server sets.
    is_short: bool,
    /// True if the bindings and params are generated, false if they are those of the input.
    with_params: bool,
}

/// Evaluates both versions for a generated request in one form. `None` if the versions do not differ.
///
/// # Errors
/// Returns the reason why a version could not be evaluated.
fn confirm_form(
    search: &Search<'_, '_>,
    (witness, decisive): (&Witness, &[FieldPath]),
    form: Form,
) -> Result<Option<DifferingRequest>, Unconfirmed> {
    let Search { pair, policies, .. } = *search;
    let Some((spec, case)) = case(policies[0], witness, form.is_short, form.with_params) else {
        return Ok(None);
    };
    let mut is_rejection = false;
    let mut evaluate = |policy: &PreparedPolicy<'_>, set: &PolicySet<'_>| {
        let result = run_case(policy, &spec, &case, set);
        is_rejection |= !result.invalid.is_empty();
        super::case_result(policy, result)
    };
    let ([old, new], [old_set, new_set]) = (policies, search.sets);
    let (old, new) = match (evaluate(old, old_set), evaluate(new, new_set)) {
        (Ok(old), Ok(new)) => (old, new),
        (old, new) => {
            let why = super::error_of_sides(old.as_ref().err(), new.as_ref().err());
            return Err(Unconfirmed { why, is_rejection });
        }
    };
    let [old_side, new_side] = pair.decisions([old.as_ref(), new.as_ref()]);
    let difference = compare(old_side, new_side, &pair.pairs, pair.failure_policies);
    let Some(difference) = difference else {
        return Ok(None);
    };
    let shown = if form.is_short {
        &short(witness)
    } else {
        witness
    };
    Ok(Some(DifferingRequest {
        name: name(witness),
        request: serde_json::to_value(&case.request).unwrap_or_default(),
        inputs: inputs(policies, (shown, decisive), form.with_params),
        results: [old, new],
        difference,
    }))
}

/// Returns the witness with the user and the namespace that a probe uses by default.
fn short(witness: &Witness) -> Witness {
    let mut short = witness.clone();
    if let Some(request) = short.request.as_object_mut() {
        let user = json!({
            "username": "system:anonymous",
            "groups": ["system:unauthenticated"],
        });
        request.insert("userInfo".to_owned(), user);
        request.remove("dryRun");
    }
    if let Some(namespace) = &mut short.namespace_object {
        let name = namespace.pointer("/metadata/name").cloned();
        let labels = json!({"kubernetes.io/metadata.name": name});
        *namespace = json!({"metadata": {"name": name, "labels": labels}});
    }
    short
}

/// Returns the case of a generated request. `with_params` selects generated bindings and params instead of those of the
/// input.
fn case(
    policy: &PreparedPolicy<'_>,
    witness: &Witness,
    is_short: bool,
    with_params: bool,
) -> Option<(PolicyProbeSpec, Case)> {
    let (mut spec, case) = generated_requests::case(policy, None, witness, is_short)?;
    if !with_params {
        spec.bindings = BindingSource::FromCluster;
        spec.params = Source::FromCluster;
        spec.inline_params.clear();
    } else if let Some(kind) = policy.param_kind.as_ref()
        && spec.inline_params.is_empty()
    {
        // A policy is not evaluated without params, so the case gets an empty param object. A binding without a
        // namespace for params uses the namespace of the request.
        let namespace = witness.request.get("namespace").and_then(Value::as_str);
        spec.params = Source::Inline;
        spec.inline_params.push(json!({
            "apiVersion": kind.api_version(),
            "kind": kind.kind,
            "metadata": {"name": "example", "namespace": namespace.unwrap_or("default")},
        }));
    }
    Some((spec, case))
}

fn name(witness: &Witness) -> String {
    let text = |pointer: &str| {
        let value = witness.request.pointer(pointer).and_then(Value::as_str);
        value.unwrap_or_default()
    };
    let sub_resource = text("/subResource");
    let slash = if sub_resource.is_empty() { "" } else { "/" };
    format!(
        "a generated {} of {}{slash}{sub_resource}",
        text("/operation"),
        text("/kind/kind"),
    )
}

/// Returns the inputs that the expressions of both versions select, with their values. The inputs in `decisive` come
/// first, the others are in the order of their paths. Values of params are included if `with_params` is true.
fn inputs(
    policies: [&PreparedPolicy<'_>; 2],
    (witness, decisive): (&Witness, &[FieldPath]),
    with_params: bool,
) -> Vec<InputValue> {
    let expressions = policies
        .into_iter()
        .flat_map(|it| it.compiled.expressions());
    let mut paths: BTreeSet<FieldPath> = BTreeSet::new();
    for ast in expressions.filter_map(|it| it.parsed().ok()) {
        let reads = Reads::new(ast);
        let selected = reads.attributes().filter_map(|(input, attribute)| {
            let root = FieldPath::new(root(input)?);
            let mut fields = attribute.fields().filter_map(unescape);
            fields.try_fold(root, |path, field| path.field(&field))
        });
        paths.extend(selected);
    }
    let is_read_in_part = |path: &FieldPath| {
        let mut others = paths.iter().filter(|it| *it != path);
        others.any(|it| it.starts_with(path))
    };
    let decisive = decisive.iter().filter(|path| {
        // An absent element has no value to show.
        let mut elements = path.segments.iter().enumerate();
        let element = elements.find(|(_, segment)| matches!(segment, Segment::Index(1..)));
        element.is_none_or(|(n, _)| {
            let mut element = (*path).clone();
            element.segments.truncate(n.saturating_add(1));
            value(witness, &element).is_some()
        })
    });
    let decisive: Vec<&FieldPath> = decisive.collect();
    let paths = paths.iter().filter(|path| !decisive.contains(path));
    let paths = decisive.iter().copied().chain(paths).filter(|path| {
        // The name of the request already shows the operation.
        let is_operation = path.root == Root::Request && path.fields() == ["operation"];
        let is_used = (with_params || path.root != Root::Params) && path.root != Root::Authorizer;
        is_used && !path.fields().is_empty() && !is_operation && !is_read_in_part(path)
    });
    let values = paths.map(|path| InputValue {
        path: format!("{}.{path}", path.root.name()),
        value: value(witness, path).filter(|it| !it.is_null()).cloned(),
    });
    let mut inputs: Vec<InputValue> = witness.authorizer.iter().map(assumption).collect();
    inputs.extend(values);
    inputs
}

/// Returns the assumed decision of an authorization check.
fn assumption(rule: &AuthorizerRule) -> InputValue {
    let mut path = Root::Authorizer.name().to_owned();
    let attributes = [
        ("path", &rule.path),
        ("group", &rule.group),
        ("resource", &rule.resource),
        ("subresource", &rule.subresource),
        ("namespace", &rule.namespace),
        ("name", &rule.name),
        ("check", &rule.verb),
    ];
    for (function, value) in attributes {
        if let Some(value) = value {
            let _ = write!(path, ".{function}('{value}')");
        }
    }
    let decision = match rule.answer.decision {
        AuthorizerDecision::Allow => "allowed",
        AuthorizerDecision::Deny => "denied",
        AuthorizerDecision::NoOpinion => "not allowed",
    };
    InputValue {
        path,
        value: Some(json!(decision)),
    }
}

fn root(input: Input) -> Option<Root> {
    Some(match input {
        Input::Object => Root::Object,
        Input::OldObject => Root::OldObject,
        Input::Request => Root::Request,
        Input::Params => Root::Params,
        Input::NamespaceObject => Root::Namespace,
        Input::Authorizer | Input::Variables => return None,
    })
}

/// Returns the value at a path. `None` if the request does not have it.
fn value<'w>(witness: &'w Witness, path: &FieldPath) -> Option<&'w Value> {
    let request = &witness.request;
    let root = match path.root {
        Root::Object => request.get("object"),
        Root::OldObject => request.get("oldObject"),
        Root::Request => Some(request),
        Root::Params => witness.params.as_ref(),
        Root::Namespace => witness.namespace_object.as_ref(),
        Root::Authorizer => None,
    };
    let mut segments = path.segments.iter();
    segments.try_fold(root?, |value, segment| match segment {
        Segment::Field(name) => value.get(&**name),
        Segment::Index(n) => value.get(n),
    })
}
