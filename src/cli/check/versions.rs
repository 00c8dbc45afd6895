//! Findings about functions and macros that the target API server does not have.

use k8s_openapi::api::admissionregistration::v1::Mutation;

use super::finding::{Finding, Severity};
use super::policy::object_finding;
use super::suggestion;
use crate::cli::input::Object;
use crate::library::environment::is_whole_in;
use crate::policy::RequestPolicy;
use crate::policy::compile::{CompiledPolicy, NewerCall};
use crate::policy::rule::Rule;
use crate::version::KubernetesVersion;

/// Adds findings about calls in a policy that an API server of `version` does not support, but a newer API server does.
/// They replace the findings about undeclared names in the same expressions.
pub fn check(
    policy: &Object<RequestPolicy>,
    mutations: Option<&[Mutation]>,
    version: KubernetesVersion,
    findings: &mut Vec<Finding>,
) {
    let is_undeclared = |finding: &Finding| finding.rule == Rule::UndeclaredReference;
    if is_whole_in(version) && !findings.iter().any(is_undeclared) {
        return;
    }
    // Compiles with the newest version, including the functions that it accepts only in stored policies, so that all
    // calls resolve.
    let newest = KubernetesVersion {
        min_compat: KubernetesVersion::NEWEST.minor,
        ..KubernetesVersion::NEWEST
    };
    let compiled = CompiledPolicy::from_parts(policy.value.clone(), mutations, newest);
    let newer: Vec<_> = compiled
        .too_new(version)
        .iter()
        .map(|call| newer_function(policy, &compiled, call, version))
        .collect();
    findings.retain(|finding| {
        let is_same_field = |other: &Finding| other.field_ref == finding.field_ref;
        !(is_undeclared(finding) && finding.rejected && newer.iter().any(is_same_field))
    });
    findings.extend(newer);
}

/// Returns the finding about `call`, which an API server of `version` does not support.
fn newer_function(
    policy: &Object<RequestPolicy>,
    compiled: &CompiledPolicy,
    NewerCall {
        field_ref,
        offset,
        call,
    }: &NewerCall,
    version: KubernetesVersion,
) -> Finding {
    let noun = if call.is_macro { "macro" } else { "function" };
    let name = &call.name;
    let message = if call.is_accepted_if_stored {
        format!("Kubernetes {version} accepts the {noun} `{name}` only in stored policies")
    } else {
        format!("Kubernetes {version} does not have the {noun} `{name}`")
    };
    let mut expressions = compiled.expressions().iter();
    let expression = expressions.find(|expression| expression.field_ref == *field_ref);
    let text = expression.map_or("", |expression| &expression.text);
    let offset = usize::try_from(*offset).unwrap_or_default();
    let (start, length) = name_place(text, offset, &call.name);
    let place = policy.places_in_field(field_ref).at(start);
    let mut finding = object_finding(
        policy,
        Severity::Error,
        Rule::NewerFunction,
        &message,
        place,
    );
    finding.location.length = length;
    finding.help = Some(format!(
        "the API server of this version rejects the policy; Kubernetes {} and later accept it",
        call.usable_since
    ));
    if let Some(older) = suggestion::only_function(name)
        && let Some(hint) = suggestion::reference(name, (true, false))
    {
        let help = finding.help.unwrap_or_default();
        finding.help = Some(format!("{hint}; {help}"));
        // A call on an index or on the result of another call gets no fix, because such a receiver is often a list,
        // which `older` does not accept.
        let receiver: String = text.chars().take(start).collect();
        let is_computed = receiver.trim_end_matches('.').ends_with([')', ']']);
        if !is_computed && text.chars().skip(start).take(length).eq(name.chars()) {
            finding.fix = policy.edit_text(field_ref, start..start + length, older);
        }
    }
    finding.rejected = true;
    finding.field_ref = Some(field_ref.clone());
    finding
}

/// Returns the start and the length, in code points, of the name of the call at `offset` in an expression. For a call
/// with a receiver, `offset` is the offset of the opening parenthesis.
fn name_place(text: &str, offset: usize, name: &str) -> (usize, usize) {
    let length = name.chars().count();
    let before: String = text.chars().take(offset).collect();
    let before = before.trim_end();
    if before.ends_with(name) {
        (before.chars().count().saturating_sub(length), length)
    } else {
        (offset, length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::input::{Input, KindFilter};

    /// Asserts the messages, columns and hints of the findings about a policy with the given expression.
    #[track_caller]
    fn check_expression(version: &str, text: &str, expect: &[(&str, usize, &str)]) {
        let manifest = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
             metadata: {{name: a}}\nspec:\n  validations:\n  - expression: |-\n      {text}\n"
        );
        let input = Input::load(
            &["-".into()],
            KindFilter::Policies,
            &mut manifest.as_bytes(),
        );
        let [policy] = &*input.policies else {
            panic!("{:?}", input.problems)
        };
        let mut findings = Vec::new();
        check(policy, None, version.parse().unwrap(), &mut findings);
        let findings: Vec<_> = findings
            .iter()
            .map(|it| {
                let column = it.location.place.map_or(0, |place| place.column);
                (&*it.message, column, it.help.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(findings, expect, "{text}");
    }

    #[test]
    fn function_is_accepted_one_version_after_introduction() {
        let sort = "[3, 1].sort() == [1, 3]";
        let refused = [(
            "Kubernetes 1.34 accepts the function `sort` only in stored policies",
            14,
            "the API server of this version rejects the policy; Kubernetes 1.35 and later accept it",
        )];
        check_expression("1.34", sort, &refused);
        check_expression("1.35", sort, &[]);
    }

    #[test]
    fn finding_about_dotted_function_is_at_its_last_name() {
        let refused = [(
            "Kubernetes 1.33 does not have the function `lists.range`",
            7,
            "the API server of this version rejects the policy; Kubernetes 1.35 and later accept it",
        )];
        check_expression("1.33", "lists.range(2) == [0, 1]", &refused);
    }

    #[test]
    fn newer_macro_is_reported_but_not_calls_in_its_expansion() {
        let help = "the API server of this version rejects the policy; Kubernetes 1.33 and later accept it";
        check_expression(
            "1.32",
            "[1].transformMap(i, v, v)[0] == 1 && [1].all(i, v, v > i) && [1].all(v, v > 0)",
            &[
                (
                    "Kubernetes 1.32 accepts the macro `transformMap` only in stored policies",
                    11,
                    help,
                ),
                (
                    "Kubernetes 1.32 accepts the macro `all` only in stored policies",
                    48,
                    help,
                ),
            ],
        );
    }

    /// The version of cel-go in the API server determines the functions of the optional library. New expressions can
    /// use all of them immediately.
    #[test]
    fn function_of_newer_cel_go_is_reported() {
        let help = "the API server of this version rejects the policy; Kubernetes 1.33 and later accept it";
        let message = "Kubernetes 1.32 does not have the function `first`";
        check_expression("1.32", "[1].first().value() == 1", &[(message, 11, help)]);
        check_expression("1.33", "[1].first().value() == 1", &[]);
        check_expression("1.37", "[1].first().value() == 1", &[]);
    }

    #[test]
    fn function_added_by_newest_version_is_reported() {
        let help = "write `contains()` for a substring, or `in` for an item of a list; the API server of this version rejects the policy; Kubernetes 1.38 and later accept it";
        let message = "Kubernetes 1.37 accepts the function `includes` only in stored policies";
        check_expression("1.37", "[1].includes(1)", &[(message, 11, help)]);
    }

    #[test]
    fn overload_that_old_version_has_is_accepted() {
        check_expression(
            "1.30",
            "dyn(quantity('1')).compareTo(quantity('2')) < 0",
            &[],
        );
        check_expression(
            "1.30",
            "ip('10.0.0.1').family() == 4",
            &[
                (
                    "Kubernetes 1.30 accepts the function `ip` only in stored policies",
                    7,
                    "the API server of this version rejects the policy; Kubernetes 1.31 and later accept it",
                ),
                (
                    "Kubernetes 1.30 accepts the function `family` only in stored policies",
                    22,
                    "the API server of this version rejects the policy; Kubernetes 1.31 and later accept it",
                ),
            ],
        );
    }
}
