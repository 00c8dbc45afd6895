//! Tests of conditions that depend on fields that the controller does not know.

use super::*;

/// The conditions of a policy with probes and params, in the order of [`ConditionType::ALL`].
const TYPES: [ConditionType; 6] = [
    ConditionType::Compiled,
    ConditionType::ResourcesMatched,
    ConditionType::ParamsResolved,
    ConditionType::TypeChecked,
    ConditionType::ProbesPassed,
    ConditionType::Bound,
];

fn facts(version: KubernetesVersion, policy: &[&str], binding: &[&str]) -> Facts {
    let fields = |paths: &[&str]| paths.iter().map(ToString::to_string).collect::<Vec<_>>();
    Facts::sound().with(|facts| {
        facts.server.version = version;
        facts.probes = ProbesState::Known(vec![ProbeFacts {
            name: "probe".into(),
            n_cases: 1,
            ..ProbeFacts::default()
        }]);
        facts.unknown_fields.policy = fields(policy);
        if !binding.is_empty() {
            facts.unknown_fields.bindings = vec![("binding".into(), fields(binding))];
        }
    })
}

/// Returns the conditions that are Unknown because of a field.
fn unknown(facts: &Facts) -> Vec<ConditionType> {
    let desired = facts.compute(at(0));
    let is_unknown = |type_: &ConditionType| {
        let condition = condition::find(&desired.conditions, *type_).unwrap();
        let is_field = condition.reason == "UnknownField";
        assert_eq!(condition.status == "Unknown", is_field, "{condition:?}");
        is_field
    };
    TYPES.into_iter().filter(is_unknown).collect()
}

#[test]
fn unknown_field_makes_conditions_that_may_depend_on_it_unknown() {
    use ConditionType::{
        Bound, Compiled, ParamsResolved, ProbesPassed, ResourcesMatched, TypeChecked,
    };
    let newer = KubernetesVersion::new(99);
    let of_policy: [(&str, &[ConditionType]); 8] = [
        (
            "spec.newer",
            &[
                Compiled,
                ResourcesMatched,
                ParamsResolved,
                TypeChecked,
                ProbesPassed,
            ],
        ),
        (
            "webhooks[1].newer",
            &[
                Compiled,
                ResourcesMatched,
                ParamsResolved,
                TypeChecked,
                ProbesPassed,
            ],
        ),
        (
            "webhooks[1].rules[0].newer",
            &[ResourcesMatched, TypeChecked, ProbesPassed],
        ),
        (
            "spec.matchConstraints.newer",
            &[ResourcesMatched, TypeChecked, ProbesPassed],
        ),
        (
            "spec.paramKind.newer",
            &[ParamsResolved, TypeChecked, ProbesPassed],
        ),
        (
            "spec.validations[3].newer",
            &[Compiled, TypeChecked, ProbesPassed],
        ),
        (
            "spec.variables[0].newer",
            &[Compiled, TypeChecked, ProbesPassed],
        ),
        (
            "spec.mutations[0].jsonPatch.newer",
            &[Compiled, TypeChecked, ProbesPassed],
        ),
    ];
    for (path, expected) in of_policy {
        assert_eq!(unknown(&facts(newer, &[path], &[])), expected, "{path}");
    }
    let of_binding: [(&str, &[ConditionType]); 3] = [
        ("spec.newer", &[ParamsResolved, ProbesPassed, Bound]),
        (
            "spec.paramRef.newer",
            &[ParamsResolved, ProbesPassed, Bound],
        ),
        ("spec.matchResources.newer", &[ProbesPassed, Bound]),
    ];
    for (path, expected) in of_binding {
        assert_eq!(unknown(&facts(newer, &[], &[path])), expected, "{path}");
    }
}

#[test]
fn unknown_field_message_has_field_versions_and_remedy() {
    let newest = KubernetesVersion::NEWEST;
    let rest = format!(
        "is not known to vap-status-controller, which supports Kubernetes up to {newest}, but the API server runs \
         1.99; upgrade vap-status-controller"
    );
    let facts = facts(
        KubernetesVersion::new(99),
        &["spec.validations[0].newer", "spec.newer"],
        &["spec.newest"],
    );
    check(
        &facts,
        ConditionType::Compiled,
        "Unknown UnknownField",
        &format!("the field spec.validations[0].newer (and 1 more) {rest}"),
    );
    check(
        &facts,
        ConditionType::Bound,
        "Unknown UnknownField",
        &format!("the field spec.newest of the binding binding {rest}"),
    );
    check(
        &facts,
        ConditionType::Ready,
        "True Ready",
        "no problems found; unknown: Compiled (UnknownField), ResourcesMatched (UnknownField), ParamsResolved \
         (UnknownField), TypeChecked (UnknownField) and 1 more",
    );
}

/// An unknown field may change the result of a check, so False conditions become Unknown, and warnings are omitted.
#[test]
fn unknown_field_hides_errors() {
    let facts = facts(KubernetesVersion::new(99), &["spec.newer"], &[]).with(|facts| {
        facts.findings = vec![finding(CompileFindingKind::Failed, "undeclared reference")];
        facts.matches.resources.clear();
    });
    assert_eq!(
        unknown(&facts),
        [
            ConditionType::Compiled,
            ConditionType::ResourcesMatched,
            ConditionType::ParamsResolved,
            ConditionType::TypeChecked,
            ConditionType::ProbesPassed
        ]
    );
    assert_eq!(facts.compute(at(0)).expression_warnings, []);
}

#[test]
fn unknown_fields_do_not_affect_conditions_if_version_is_supported() {
    for version in KubernetesVersion::supported() {
        let with = facts(version, &["spec.newer"], &["spec.newer"]);
        let without = facts(version, &[], &[]);
        assert_eq!(with.compute(at(0)), without.compute(at(0)), "{version}");
    }
}
