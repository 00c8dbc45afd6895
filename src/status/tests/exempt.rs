//! Resources that no policy is asked about.

use super::*;
use crate::policy::matching::ExemptResource;

/// What is exempt, as rules match it.
fn exempt(resource: &str, by_wildcard: bool) -> ExemptResource {
    ExemptResource {
        resource: resource.into(),
        field_ref: "spec.matchConstraints.resourceRules[0]".into(),
        name: "*".into(),
        by_wildcard,
    }
}

#[test]
fn a_policy_about_exempt_resources_only_never_runs() {
    let facts = |spoil: &dyn Fn(&mut Matches)| {
        Facts::sound().with(|facts| {
            facts.matches = Matches {
                exempt: vec![exempt("authentication.k8s.io tokenreviews", false)],
                ..Matches::default()
            };
            facts.types = TypeCheck::default();
            spoil(&mut facts.matches);
        })
    };
    let text = "no API server asks a policy about authentication.k8s.io tokenreviews; the policy \
                never runs";
    for type_ in [ConditionType::ResourcesMatched, ConditionType::Ready] {
        check(&facts(&|_| {}), type_, "False ExemptResources", text);
    }
    // What is not served may be served one day, so that waiting is not in vain.
    let unserved = facts(&|matches| {
        matches.unserved = vec![UnservedResource {
            field_ref: "spec.matchConstraints.resourceRules[0]".into(),
            index: 0,
            rule: "example.com/v1 widgets".into(),
            name: "widgets".into(),
            suggestion: None,
            is_misspelt: false,
        }];
    });
    check(
        &unserved,
        ConditionType::ResourcesMatched,
        "False NoServedResources",
        "nothing serves example.com/v1 widgets; no API server asks a policy about \
         authentication.k8s.io tokenreviews; the policy never runs",
    );
    let undiscovered = facts(&|matches| {
        matches.incomplete = vec![("metrics.k8s.io/v1".into(), "503".into())];
    });
    check(
        &undiscovered,
        ConditionType::ResourcesMatched,
        "Unknown DiscoveryIncomplete",
        "whether the rules match anything cannot be told, not discovered: metrics.k8s.io/v1 (503)",
    );
}

#[test]
fn exempt_resources_beside_others_are_named() {
    let facts = Facts::sound().with(|facts| {
        facts.matches.resources[0].by_wildcard = true;
        facts.matches.exempt = vec![
            exempt("authentication.k8s.io selfsubjectreviews", true),
            exempt("authentication.k8s.io tokenreviews", true),
        ];
    });
    check(
        &facts,
        ConditionType::ResourcesMatched,
        "True ResourcesServed",
        "the rules match resources by wildcards; no API server asks a policy about \
         authentication.k8s.io selfsubjectreviews, authentication.k8s.io tokenreviews",
    );
    assert_eq!(
        get(&facts.compute(at(1)), ConditionType::Ready).status,
        "True"
    );
}
