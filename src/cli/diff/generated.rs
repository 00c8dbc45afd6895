//! Compares the two versions of a policy for generated requests.
//!
//! The requests are for changed policies. They show the effect of a change for which no probe or object was given.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use kubernetes::validity::{FieldPath, Root};
use serde_json::{Value, json};

use super::compare::{Difference, Effect, compare};
use super::report::InputValue;
use super::{PolicyPair, both_versions};
use crate::cli::audit::PolicyResult;
use crate::cli::eval::policy_set::{PolicySet, PreparedPolicy};
use crate::cli::eval::run_case;
use crate::cli::generated_requests;
use crate::policy::admission::Binding;
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::reads::{Input, Reads};
use crate::policy::runtime_errors::{self, Context, Witness};
use crate::probe::api::{BindingSource, Case, PolicyProbeSpec, Source};
use crate::schema::escape::unescape;

/// The generated requests for a policy.
#[derive(Default)]
pub(super) struct Generated {
    /// The number of requests for which both versions were evaluated.
    pub(super) n_requests: usize,
    /// The requests for which the versions differ. Requests with different decisions are first.
    pub(super) differing: Vec<DifferingRequest>,
    /// The reason why requests could not be generated or evaluated.
    pub(super) error: Option<String>,
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

/// Returns true if the versions differ in more than the settings of bindings and the reinvocationPolicy.
fn is_changed([old, new]: [&PreparedPolicy<'_>; 2]) -> bool {
    fn expressions<'p>(policy: &'p PreparedPolicy<'_>) -> Vec<(Role, &'p str)> {
        let expressions = policy.compiled.expressions().iter();
        let key = |it: &'p PolicyExpression| (it.role, &*it.text);
        expressions.map(key).collect()
    }
    old.object.value != new.object.value || expressions(old) != expressions(new)
}

/// Generates requests for the versions of a changed policy.
pub(super) fn generate(pair: &PolicyPair, sets: [&PolicySet<'_>; 2]) -> Generated {
    let Some(policies) = both_versions(pair, sets).filter(|policies| is_changed(*policies)) else {
        return Generated::default();
    };
    let compiled = policies.map(|policy| &policy.compiled);
    let bindings = policies[0].bindings.iter();
    let mut bindings = bindings.filter(|_| !policies[0].is_unbound);
    let match_resources = bindings.next().map(Binding::spec);
    let match_resources = match_resources.and_then(|spec| spec.match_resources.as_ref());
    let compare = |context: &Context<'_>, is_cancelled: &Arc<AtomicBool>| {
        runtime_errors::compare_policies(compiled, context, match_resources, is_cancelled)
    };
    let comparison = match generated_requests::search(sets[0], sets[0].limit, compare) {
        Ok(comparison) => comparison,
        Err(error) => {
            return Generated {
                error: Some(error),
                ..Generated::default()
            };
        }
    };
    let mut generated = Generated {
        n_requests: comparison.n_requests,
        ..Generated::default()
    };
    let differences = comparison.differences.into_iter().map(|it| it.witness);
    let n_differences = differences.len();
    let witnesses = differences.chain(comparison.samples);
    let confirmed = sets[0].limit.run(|is_cancelled| {
        for (n, witness) in witnesses.enumerate() {
            if is_cancelled.load(Ordering::Relaxed) {
                break;
            }
            match confirm(pair, policies, sets, &witness) {
                Ok(differing) => {
                    generated.differing.extend(differing);
                    // The search did not evaluate the samples.
                    generated.n_requests += usize::from(n >= n_differences);
                }
                Err(why) => generated.error = Some(why),
            }
        }
    });
    if let Err(why) = confirmed {
        generated.error = Some(why);
    }
    if !generated.differing.is_empty() {
        generated.error = None;
    }
    generated.differing.sort_by_key(|it| it.difference.effect);
    generated
}

/// Evaluates both versions for a generated request, with the params of the input and with generated params. `None` if the
/// versions do not differ. Prefers the shortest form of the request for which the decisions differ.
///
/// # Errors
/// Returns the reason why a version could not be evaluated.
fn confirm(
    pair: &PolicyPair,
    policies: [&PreparedPolicy<'_>; 2],
    sets: [&PolicySet<'_>; 2],
    witness: &Witness,
) -> Result<Option<DifferingRequest>, String> {
    let mut error = None;
    let mut best: Option<DifferingRequest> = None;
    let has_params = policies.iter().any(|policy| policy.param_kind.is_some());
    for with_params in [false, true] {
        for is_short in [true, false] {
            let Some((spec, case)) = case(policies[0], witness, is_short, with_params) else {
                continue;
            };
            let evaluate = |policy: &PreparedPolicy<'_>, set: &PolicySet<'_>| {
                super::case_result(policy, run_case(policy, &spec, &case, set))
            };
            let ([old, new], [old_set, new_set]) = (policies, sets);
            let (old, new) = match (evaluate(old, old_set), evaluate(new, new_set)) {
                (Ok(old), Ok(new)) => (old, new),
                (old, new) => {
                    error = Some(super::error_of_sides(
                        old.as_ref().err(),
                        new.as_ref().err(),
                    ));
                    continue;
                }
            };
            let [old_side, new_side] = pair.decisions([old.as_ref(), new.as_ref()]);
            let difference = compare(old_side, new_side, &pair.pairs, pair.failure_policies);
            let Some(difference) = difference else {
                continue;
            };
            let is_better = |best: &DifferingRequest| difference.effect < best.difference.effect;
            if best.as_ref().is_none_or(is_better) {
                best = Some(DifferingRequest {
                    name: name(witness),
                    request: serde_json::to_value(&case.request).unwrap_or_default(),
                    inputs: inputs(policies, witness, with_params),
                    results: [old, new],
                    difference,
                });
            }
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

/// Returns the case of a generated request. Its bindings and params are generated if `with_params` is true, and those of
/// the input otherwise.
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
        // Without params, the policy would not be evaluated. A binding without a namespace for params uses those in the
        // namespace of the request.
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

/// Returns the values of the inputs that the expressions of both versions select, by path. The values of params are
/// included if `with_params` is true.
fn inputs(
    policies: [&PreparedPolicy<'_>; 2],
    witness: &Witness,
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
    let paths = paths.iter().filter(|path| {
        // The name of the subject has the operation.
        let is_operation = path.root == Root::Request && path.fields() == ["operation"];
        let is_used = with_params || path.root != Root::Params;
        is_used && !path.fields().is_empty() && !is_operation && !is_read_in_part(path)
    });
    let values = paths.map(|path| InputValue {
        path: format!("{}.{path}", path.root.name()),
        value: value(witness, path).filter(|it| !it.is_null()).cloned(),
    });
    values.collect()
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
    };
    let mut fields = path.fields().into_iter();
    fields.try_fold(root?, |value, field| value.get(field))
}
