use super::*;

fn mutating() -> Facts {
    Facts::sound().with(|facts| facts.subject = SubjectKind::MutatingAdmissionPolicy)
}

#[track_caller]
fn message(facts: &Facts, type_: ConditionType) -> String {
    let desired = facts.compute(at(1));
    let condition = condition::find(&desired.conditions, type_).unwrap();
    condition.message.clone()
}

#[test]
fn probes_passed_is_absent_without_probes() {
    let desired = mutating().compute(at(1));
    let find = |type_| condition::find(&desired.conditions, type_);
    assert!(find(ConditionType::ProbesPassed).is_none());
    assert_eq!(find(ConditionType::Ready).unwrap().status, "True");
}

#[test]
fn condition_bound_of_mutating_policy_shows_no_actions() {
    let bound = message(&mutating(), ConditionType::Bound);
    assert_eq!(bound, "bound by binding");
    let facts = mutating().with(|facts| facts.bindings = BindingsState::Known(Vec::new()));
    let unbound = message(&facts, ConditionType::Bound);
    assert_eq!(
        unbound,
        "no MutatingAdmissionPolicyBinding refers to the policy; the policy changes no request"
    );
    let facts = mutating().with(|facts| facts.bindings = BindingsState::NotPermitted);
    let unknown = message(&facts, ConditionType::Bound);
    assert!(
        unknown.contains(" mutatingadmissionpolicybindings"),
        "{unknown}"
    );
}

#[test]
fn message_about_missing_param_kind_states_that_no_request_is_changed() {
    let missing = ParamKindState::NotFound {
        gvk: Gvk::new("example.com", "v1", "Limit"),
        similar: Vec::new(),
    };
    let facts = mutating().ignoring();
    let facts = facts.with(|facts| facts.params = missing.clone());
    let text = message(&facts, ConditionType::ParamsResolved);
    assert!(text.contains("no request is changed"), "{text}");
    let facts = mutating().with(|facts| facts.params = missing);
    let text = message(&facts, ConditionType::ParamsResolved);
    assert!(
        text.contains("every request that the rules match is denied"),
        "{text}"
    );
}
