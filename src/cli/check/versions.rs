//! The functions and macros of expressions that an older API server does not have.

use k8s_openapi::api::admissionregistration::v1::{Mutation, ValidatingAdmissionPolicy};

use super::finding::{Finding, Severity};
use super::policy::finding;
use crate::cel::decls::Version;
use crate::cli::input::Object;
use crate::library::version::{LATEST, OLDEST, usable_since};
use crate::policy::compile::{CompiledPolicy, NewerCall};
use crate::policy::rule::Rule;

/// The version that `text` names, `1.33` or `v1.33`.
///
/// # Errors
/// For a version that is unknown here.
pub fn parse(text: &str) -> Result<Version, String> {
    let number = |part: &str| part.parse::<u16>().ok();
    let parts = text.strip_prefix('v').unwrap_or(text).split_once('.');
    parts
        .and_then(|(major, minor)| Some(Version::new(number(major)?, number(minor)?)))
        .filter(|version| (OLDEST..=LATEST).contains(version))
        .ok_or_else(|| format!("known are {OLDEST} to {LATEST}"))
}

/// The faults for which an API server of `version` refuses a policy whose expressions a newer one takes.
#[must_use]
pub fn check(
    policy: &Object<ValidatingAdmissionPolicy>,
    mutations: Option<&[Mutation]>,
    version: Version,
) -> Vec<Finding> {
    let compiled = CompiledPolicy::of_parts(&policy.value, mutations);
    let found = compiled.too_new(version).into_iter();
    found
        .map(
            |NewerCall {
                 field_ref,
                 offset,
                 call,
             }| {
                let what = if call.is_macro { "macro" } else { "function" };
                let message = format!(
                    "Kubernetes {version} does not have the {what} `{}`",
                    call.name
                );
                let mut expressions = compiled.expressions().iter();
                let expression = expressions.find(|expression| expression.field_ref == field_ref);
                let text = expression.map_or("", |expression| &expression.text);
                let offset = usize::try_from(offset).unwrap_or_default();
                let (start, length) = name_place(text, offset, &call.name);
                let place = policy.places_in_field(&field_ref).of(start);
                let severity = Severity::Error;
                let mut found = finding(policy, severity, Rule::NewerFunction, &message, place);
                found.location.length = length;
                found.help = Some(format!(
                    "the API server refuses the policy; Kubernetes {} takes it",
                    usable_since(call.introduced)
                ));
                found.refused = true;
                found.field_ref = Some(field_ref);
                found
            },
        )
        .collect()
}

/// The place of the name of a call in `text`, and its length, in code points: a call on a receiver is at its
/// parenthesis.
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
    use crate::cli::input::{Input, Wanted};

    /// The messages, places and helps about a policy with the expression `text`.
    #[track_caller]
    fn check_expression(version: &str, text: &str, expect: &[(&str, usize, &str)]) {
        let manifest = format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
             metadata: {{name: a}}\nspec:\n  validations:\n  - expression: |-\n      {text}\n"
        );
        let input = Input::load(&["-".into()], Wanted::Policies, &mut manifest.as_bytes());
        let [policy] = &*input.policies else {
            panic!("{:?}", input.problems)
        };
        let found = check(policy, None, parse(version).unwrap());
        let found: Vec<_> = found
            .iter()
            .map(|it| {
                let column = it.location.place.map_or(0, |place| place.column);
                (&*it.message, column, it.help.as_deref().unwrap_or_default())
            })
            .collect();
        assert_eq!(found, expect, "{text}");
    }

    #[test]
    fn versions_are_known_or_not() {
        assert_eq!(parse("1.30"), Ok(Version::new(1, 30)));
        assert_eq!(parse("v1.36"), Ok(Version::new(1, 36)));
        for unknown in ["1.29", "1.37", "2.30", "1", "1.x", ""] {
            assert!(parse(unknown).is_err(), "{unknown}");
        }
    }

    #[test]
    fn a_function_is_taken_from_the_version_after_its_introduction() {
        let sort = "[3, 1].sort() == [1, 3]";
        let refused = [(
            "Kubernetes 1.34 does not have the function `sort`",
            14,
            "the API server refuses the policy; Kubernetes 1.35 takes it",
        )];
        check_expression("1.34", sort, &refused);
        check_expression("1.35", sort, &[]);
    }

    #[test]
    fn functions_with_dotted_names() {
        let refused = [(
            "Kubernetes 1.33 does not have the function `lists.range`",
            7,
            "the API server refuses the policy; Kubernetes 1.35 takes it",
        )];
        check_expression("1.33", "lists.range(2) == [0, 1]", &refused);
    }

    #[test]
    fn macros_are_named_and_what_they_expand_to_is_not() {
        let help = "the API server refuses the policy; Kubernetes 1.33 takes it";
        check_expression(
            "1.32",
            "[1].transformMap(i, v, v)[0] == 1 && [1].all(i, v, v > i) && [1].all(v, v > 0)",
            &[
                (
                    "Kubernetes 1.32 does not have the macro `transformMap`",
                    11,
                    help,
                ),
                ("Kubernetes 1.32 does not have the macro `all`", 48, help),
            ],
        );
    }

    #[test]
    fn an_overload_that_is_old_enough_counts() {
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
                    "Kubernetes 1.30 does not have the function `ip`",
                    7,
                    "the API server refuses the policy; Kubernetes 1.31 takes it",
                ),
                (
                    "Kubernetes 1.30 does not have the function `family`",
                    22,
                    "the API server refuses the policy; Kubernetes 1.31 takes it",
                ),
            ],
        );
    }
}
