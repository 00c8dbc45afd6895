//! Findings about policies that deny requests of the cluster's own components, or all requests.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::expressions::finding_at;
use super::finding::{Finding, Severity};
use super::known::Known;
use super::policy::{PolicyAnalysis, bindings_of, object_finding};
use super::validation;
use crate::cel::source::SourceMap;
use crate::cli::input::Object;
use crate::cli::text::cut;
use crate::policy::RequestPolicy;
use crate::policy::expressions::Role;
use crate::policy::lockout::{self, ParamKind};
use crate::policy::param_kind;
use crate::policy::rule::Rule;

/// Maximum width of a quoted denial message, in columns.
const MAX_SHOWN: usize = 120;

/// Adds findings about validations that are false for every request that the rules match, if a binding of the input has
/// the action Deny. If the expression has another finding, adds the effect to the help of that finding.
pub(super) fn add_always_false(
    policy: &Object<RequestPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let mut denying = bindings_of(policy, bindings).filter(|binding| {
        let mut actions = binding.value.spec.validation_actions.iter();
        actions.any(|action| action.eq_ignore_ascii_case("Deny"))
    });
    let Some(binding) = denying.next().and_then(Object::name) else {
        return;
    };
    for n in &analysis.typed.always_false {
        let expression = analysis.compiled().expressions().get(*n);
        let Some(expression) = expression.filter(|it| it.role == Role::Validation) else {
            continue;
        };
        let field_ref = &expression.field_ref;
        let conditions = match policy.value.match_conditions.as_slice() {
            [] => "",
            _ => " and for which all match conditions are true",
        };
        let effect = format!(
            "the binding `{binding}` denies every request that the rules match{conditions}"
        );
        let mut of_field = findings.iter_mut().filter(|finding| {
            finding.field_ref.as_ref() == Some(field_ref) && finding.severity < Severity::Note
        });
        if let Some(other) = of_field.next() {
            other.add_help(&effect);
            continue;
        }
        let Ok(ast) = expression.parsed() else {
            continue;
        };
        let location = SourceMap::new(&expression.text).location(ast.offset(ast.root()));
        let message = "this is false for every request that the rules match";
        let sort = (Severity::Warning, Rule::Lockout);
        let place = (field_ref.as_str(), location);
        let mut finding = finding_at(policy, analysis, place, sort, message);
        finding.help = Some(format!(
            "{effect}: check that the expression fits the resources and operations of the rules"
        ));
        findings.push(finding);
    }
}

/// Adds a finding if `policy` denies requests of the cluster's components. `bindings` are the bindings in the input.
pub(super) fn check(
    policy: &Object<RequestPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    // If an expression does not compile, only the compile error is reported.
    if !analysis.errors.is_empty() {
        return;
    }
    // A binding that the API server rejects has no effect.
    let is_rejected = |binding: &&Object<ValidatingAdmissionPolicyBinding>| {
        let mut violations = validation::binding(binding).into_iter();
        violations.any(|it| it.rejected && it.severity == Severity::Error)
    };
    let of_policy: Vec<_> = bindings_of(policy, bindings)
        .filter(|binding| !is_rejected(binding))
        .map(|binding| &binding.value)
        .collect();
    let params = param_kind(&policy.value).map(|gvk| {
        let mut resources = known.mapper.resources_of_kind(&gvk);
        match resources.next().filter(|_| known.is_builtin(&gvk)) {
            Some(resource) => ParamKind::Own {
                is_namespaced: resource.namespaced,
            },
            None => ParamKind::Late,
        }
    });
    let Some(lock_out) = lockout::find(analysis.compiled(), &of_policy, params) else {
        return;
    };
    let Some((first, others)) = lock_out.denied.split_first() else {
        return;
    };
    let words = first.message.split_whitespace().collect::<Vec<_>>();
    let denial = cut(&words.join(" "), MAX_SHOWN);
    let others = match others.len() {
        0 => String::new(),
        1 => ", and one other essential request".to_owned(),
        n => format!(", and {n} other essential requests"),
    };
    let under = match first.binding.as_str() {
        "" => String::new(),
        binding => format!(", binding `{binding}`"),
    };
    let message = format!(
        "the policy denies {} (user {}{under}) with the message `{denial}`{others}",
        first.request, first.user
    );
    // After its start, an API server serves the kind of a CRD with a delay. Denials that end with this delay are
    // temporary.
    let is_permanent = params != Some(ParamKind::Late);
    let severity = if lock_out.is_vital && is_permanent && !first.is_for_params {
        Severity::Warning
    } else {
        Severity::Note
    };
    let field_ref = "spec.matchConstraints.resourceRules";
    let node = policy.document.node.nearest(field_ref);
    let mut finding = object_finding(
        policy,
        severity,
        Rule::Lockout,
        &message,
        policy.place_of(node),
    );
    finding.field_ref = Some(field_ref.to_owned());
    finding.help = Some(if first.is_for_params {
        "paramRef has no namespace, so every namespace needs params, including the namespaces of cluster components: create \
         params there, list only the intended resources, or exclude such requests with a namespaceSelector on \
         `kubernetes.io/metadata.name`"
            .to_owned()
    } else if is_permanent {
        "list only the intended resources, or exclude such requests with matchConditions on request.userInfo or a \
         namespaceSelector on `kubernetes.io/metadata.name`"
            .to_owned()
    } else {
        "while the kind of the params is not served, for example during a start of the API server, every request that the \
         rules match is denied, even if a match condition is false: list only the intended resources"
            .to_owned()
    });
    findings.push(finding);
}
