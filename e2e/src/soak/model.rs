//! Predicts the conditions of each policy from the existing objects.

use std::collections::BTreeMap;

use super::cluster_state::{
    ClusterState, Edition, Expectation, NotFound, Reference, Shape, Slot, Variant,
};

/// The conditions of a policy by type. A value has the form `True/Ready`.
pub type Conditions = BTreeMap<&'static str, &'static str>;

/// Returns the conditions of a policy. Returns `None` if the policy does not exist.
#[must_use]
pub fn expected_conditions(state: &ClusterState, slot: Slot) -> Option<Conditions> {
    let edition = *state.policies.get(&slot)?;
    // `Ready` has the reason of the first False condition in this list.
    let required = [
        ("Compiled", "True/AllExpressionsCompile"),
        ("ResourcesMatched", resources_matched(state, slot)),
        ("ParamsResolved", params_resolved(state, slot)),
        ("TypeChecked", type_checked(state, slot, edition)),
        ("ProbesPassed", probes_passed(state, slot, edition)),
    ];
    let required = required
        .into_iter()
        .filter(|(type_, _)| !slot.is_mutating || *type_ != "ProbesPassed");
    let mut conditions: Conditions = required.clone().collect();
    let failing = required
        .map(|(_, verdict)| verdict)
        .find(|verdict| verdict.starts_with("False/"));
    conditions.insert("Ready", failing.unwrap_or("True/Ready"));
    // Warnings about built-in kinds do not depend on CRDs and params.
    let has_builtin_kinds_only = matches!(slot.shape, Shape::Deployments | Shape::ConfigMaps);
    if has_builtin_kinds_only && conditions.get("TypeChecked") == Some(&"False/ExpressionWarnings")
    {
        conditions.insert("Stalled", "True/ExpressionWarnings");
    }
    let bound = match state.bindings.get(&slot) {
        Some(_) => "True/BindingsFound",
        None => "False/NoBindings",
    };
    conditions.insert("Bound", bound);
    Some(conditions)
}

fn resources_matched(state: &ClusterState, slot: Slot) -> &'static str {
    let is_served = match slot.shape {
        Shape::Deployments | Shape::ConfigMaps | Shape::Limits => true,
        Shape::Widgets | Shape::Wildcard => state.widgets.is_some(),
    };
    if is_served {
        "True/ResourcesServed"
    } else {
        "False/NoServedResources"
    }
}

fn params_resolved(state: &ClusterState, slot: Slot) -> &'static str {
    let params = match slot.shape {
        Shape::Deployments | Shape::Widgets | Shape::Wildcard => return "True/ParamsNotRequired",
        Shape::Limits if state.limits.is_none() => return "False/ParamKindNotFound",
        Shape::Limits => &state.limit_params,
        Shape::ConfigMaps => &state.config_map_params,
    };
    let (is_found, not_found) = match state.bindings.get(&slot) {
        None | Some(Reference::None) => return "True/ParamKindServed",
        Some(Reference::Named(n, not_found)) => (params.contains(n), not_found),
        Some(Reference::Selected(not_found)) => (!params.is_empty(), not_found),
    };
    match (is_found, not_found) {
        (true, _) => "True/ParamsFound",
        (false, NotFound::Allow) => "True/ParamKindServed",
        (false, NotFound::Deny) => "False/ParamsNotFound",
    }
}

fn type_checked(state: &ClusterState, slot: Slot, edition: Edition) -> &'static str {
    // The schema of the field that the expression reads.
    let schema = match slot.shape {
        Shape::Deployments | Shape::ConfigMaps => Some(Variant::Integer),
        Shape::Widgets | Shape::Wildcard => match state.widgets {
            None => return "Unknown/NoTypesToCheck",
            widgets => widgets,
        },
        Shape::Limits => state.limits,
    };
    match schema {
        _ if edition.is_misspelled => "False/ExpressionWarnings",
        Some(Variant::Integer) => "True/NoWarnings",
        Some(Variant::String) => "False/ExpressionWarnings",
        None => "True/PartiallyChecked",
    }
}

fn probes_passed(state: &ClusterState, slot: Slot, edition: Edition) -> &'static str {
    let Some(expectation) = state.probes.get(&slot) else {
        return "Unknown/NoProbes";
    };
    let passes = match slot.shape {
        // These policies do not match the probe's object, a Deployment. The Deployment is therefore allowed.
        Shape::Widgets | Shape::Wildcard => *expectation == Expectation::Allow,
        // Under this schema, the param in the probe is invalid.
        Shape::Limits if state.limits == Some(Variant::String) => false,
        // A misspelled field is an error, and no probe expects an error. The probe contains its params, so their kind
        // need not be served.
        Shape::Deployments | Shape::ConfigMaps | Shape::Limits => {
            !edition.is_misspelled && *expectation == Expectation::Deny
        }
    };
    if passes {
        "True/ProbesPassed"
    } else {
        "False/ProbesFailed"
    }
}

#[cfg(test)]
mod tests {
    use super::super::cluster_state::Change;
    use super::*;

    fn state(changes: &[Change]) -> ClusterState {
        let mut state = ClusterState::default();
        for change in changes {
            state.apply(*change);
        }
        state
    }

    fn sound(slot: usize) -> Change {
        let edition = Edition {
            is_misspelled: false,
            number: 0,
        };
        Change::Policy(Slot::ALL[slot], Some(edition))
    }

    #[track_caller]
    fn check(changes: &[Change], slot: usize, expect: &[(&str, &str)]) {
        let conditions = expected_conditions(&state(changes), Slot::ALL[slot]).unwrap();
        for (type_, verdict) in expect {
            assert_eq!(conditions[type_], *verdict, "{type_}");
        }
    }

    #[test]
    fn expected_conditions_follow_from_existing_objects() {
        assert_eq!(
            expected_conditions(&ClusterState::default(), Slot::ALL[0]),
            None
        );
        check(
            &[sound(0)],
            0,
            &[("Ready", "True/Ready"), ("Bound", "False/NoBindings")],
        );
        check(&[sound(2)], 2, &[("Ready", "False/NoServedResources")]);
        let widgets = Change::Widgets(Some(Variant::String));
        check(
            &[sound(2), widgets],
            2,
            &[("Ready", "False/ExpressionWarnings")],
        );
        check(&[sound(8)], 8, &[("Ready", "False/ParamKindNotFound")]);
        let named = Reference::Named(1, NotFound::Deny);
        let bound = Change::Binding(Slot::ALL[6], Some(named));
        check(&[sound(6), bound], 6, &[("Ready", "False/ParamsNotFound")]);
        let param = Change::ConfigMapParam(1, Some(0));
        check(&[sound(6), bound, param], 6, &[("Ready", "True/Ready")]);
        let probe = Change::Probe(Slot::ALL[1], Some(Expectation::Allow));
        check(&[sound(1), probe], 1, &[("Ready", "False/ProbesFailed")]);
    }
}
