use super::*;
use crate::policy::matching::ExemptResource;

fn exempt(resource: &str, by_wildcard: bool) -> ExemptResource {
    ExemptResource {
        resource: resource.into(),
        field_ref: "spec.matchConstraints.resourceRules[0]".into(),
        name: "*".into(),
        by_wildcard,
    }
}

#[test]
fn resources_matched_is_false_if_all_resources_are_exempt() {
    let facts = |modify: &dyn Fn(&mut Matches)| {
        Facts::sound().with(|facts| {
            facts.matches = Matches {
                exempt: vec![exempt("authentication.k8s.io tokenreviews", false)],
                ..Matches::default()
            };
            facts.types = TypeCheck::default();
            modify(&mut facts.matches);
        })
    };
    let text = "API servers never evaluate a policy for authentication.k8s.io tokenreviews; the policy \
                never runs";
    for type_ in [ConditionType::ResourcesMatched, ConditionType::Ready] {
        check(&facts(&|_| {}), type_, "False ExemptResources", text);
    }
    // Unserved resources may be served later, so the policy is not stalled.
    let unserved = facts(&|matches| {
        matches.unserved = vec![UnservedResource {
            field_ref: "spec.matchConstraints.resourceRules[0]".into(),
            index: 0,
            rule: "example.com/v1 widgets".into(),
            name: "widgets".into(),
            suggestion: None,
            is_misspelled: false,
            is_known: false,
        }];
    });
    check(
        &unserved,
        ConditionType::ResourcesMatched,
        "False NoServedResources",
        "not served: example.com/v1 widgets; API servers never evaluate a policy for \
         authentication.k8s.io tokenreviews; the policy never runs",
    );
    let undiscovered = facts(&|matches| {
        matches.incomplete = vec![("metrics.k8s.io/v1".into(), "503".into())];
    });
    check(
        &undiscovered,
        ConditionType::ResourcesMatched,
        "Unknown DiscoveryIncomplete",
        "cannot determine whether the rules match a resource; not discovered: metrics.k8s.io/v1 (503)",
    );
}

#[test]
fn resources_matched_message_shows_exempt_resources() {
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
        "the rules match resources by wildcards; API servers never evaluate a policy for \
         authentication.k8s.io selfsubjectreviews, authentication.k8s.io tokenreviews",
    );
    assert_eq!(
        get(&facts.compute(at(1)), ConditionType::Ready).status,
        "True"
    );
}
