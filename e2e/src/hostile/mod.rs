//! Generates hostile objects from a seed: policies, bindings, probes, params and namespaces that exhaust a naive
//! checker.
//!
//! An API server accepts most of these objects. A [`Hostile`] is a group of related objects.

pub mod growth;
pub mod objects;
pub mod patterns;
pub mod policies;
pub mod slow;

use serde_json::{Map, Value, json};

use crate::random::Random;

/// The label of generated objects. Tests delete the objects with a label selector.
pub const LABEL: &str = "hostile.example.com/corpus";

/// The number of consecutive groups that include every [`Family`].
pub const ROUND: usize = 16;

/// The technique by which a group of objects tries to exhaust a checker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Family {
    /// Expressions whose values grow.
    Growth,
    /// Regular expressions that are expensive to compile, store or match.
    Patterns,
    /// Slow or long expressions.
    Slow,
    /// Policies with many variables, conditions or validations.
    Parts,
    /// Policies that match every kind.
    Wildcards,
    /// Large objects in probes.
    Objects,
    /// Many probes, or many cases.
    Probes,
    /// Large params, or many params.
    Params,
    /// Many bindings.
    Bindings,
    /// Large namespaces.
    Namespaces,
}

/// The families of the groups in a round. A family with many variants occurs several times.
const ORDER: [Family; ROUND] = [
    Family::Growth,
    Family::Patterns,
    Family::Objects,
    Family::Slow,
    Family::Params,
    Family::Growth,
    Family::Patterns,
    Family::Parts,
    Family::Objects,
    Family::Probes,
    Family::Growth,
    Family::Slow,
    Family::Wildcards,
    Family::Bindings,
    Family::Params,
    Family::Namespaces,
];

/// A group of related hostile objects.
#[derive(Clone, Debug)]
pub struct Hostile {
    /// The name of the group, which is the prefix of the objects' names.
    pub name: String,
    /// The technique by which the group tries to exhaust a checker.
    pub family: Family,
    /// The objects, in the order of their creation.
    pub objects: Vec<Value>,
}

/// Returns the `n`th group for `seed`. The group does not depend on other groups.
#[must_use]
pub fn hostile(seed: u64, n: usize) -> Hostile {
    let order = ORDER.iter().cycle().nth(n % ROUND).copied();
    let family = order.unwrap_or(Family::Growth);
    let mut random = Random::for_event(seed, "hostile", n.try_into().unwrap_or_default());
    let name = format!("hostile-{n}");
    let mut objects = members(&mut random, family, &name);
    for object in &mut objects {
        let labels = object
            .get_mut("metadata")
            .and_then(Value::as_object_mut)
            .map(|metadata| metadata.entry("labels").or_insert_with(|| json!({})));
        if let Some(Value::Object(labels)) = labels {
            labels.insert(LABEL.to_owned(), json!("true"));
        }
    }
    Hostile {
        name,
        family,
        objects,
    }
}

fn members(random: &mut Random, family: Family, name: &str) -> Vec<Value> {
    let deployment = objects::deployment("d", 0);
    let with_probe = |spec: &Value| {
        vec![
            policies::policy(name, spec),
            policies::probe(name, name, std::slice::from_ref(&deployment)),
        ]
    };
    match family {
        Family::Growth => with_probe(&policies::growing(random)),
        Family::Patterns => {
            let mut members = with_probe(&policies::matching(random));
            // Half of these groups have no probe, so their policies are compiled but not evaluated.
            members.truncate(usize::try_from(random.below(2) + 1).unwrap_or(1));
            members
        }
        Family::Slow => with_probe(&policies::slow(random)),
        Family::Parts => with_probe(&policies::many_parts(random)),
        Family::Wildcards => vec![policies::policy(name, &policies::wildcards(random))],
        Family::Objects => {
            let content = large(random);
            let object = objects::custom_resource("d", &content);
            let spec = json!({"validations": [{"expression": "true"}]});
            if random.permille(500) {
                // The policy of this probe does not exist.
                vec![policies::probe(name, &format!("{name}-missing"), &[object])]
            } else {
                vec![
                    policies::policy(name, &spec),
                    policies::probe(name, name, &[object]),
                ]
            }
        }
        Family::Probes => probes(random, name),
        Family::Params => params(random, name),
        Family::Bindings => bindings(random, name),
        Family::Namespaces => namespaces(random, name),
    }
}

fn large(random: &mut Random) -> Value {
    let form = usize::try_from(random.below(objects::FORMS.len() as u64)).unwrap_or_default();
    // Form 0 is a list of small maps. It needs more memory than any other form of this size, so it is generated most
    // often.
    let form = if random.permille(400) { 0 } else { form };
    objects::content(random, form, objects::LARGE)
}

fn probes(random: &mut Random, name: &str) -> Vec<Value> {
    let mut members = vec![policies::policy(name, &policies::growing(random))];
    if random.permille(500) {
        members.push(policies::probe_of_many_cases(random, name, name));
    } else {
        let object = objects::deployment("d", 0);
        members.extend(
            (0..30).map(|i| {
                policies::probe(&format!("{name}-{i}"), name, std::slice::from_ref(&object))
            }),
        );
    }
    members
}

fn params(random: &mut Random, name: &str) -> Vec<Value> {
    let is_custom = random.permille(600);
    let kind = if is_custom {
        json!({"apiVersion": "hostile.example.com/v1", "kind": "Hoard"})
    } else {
        json!({"apiVersion": "v1", "kind": "ConfigMap"})
    };
    let spec = json!({
        "paramKind": kind,
        "validations": [{"expression": "params == null || dyn(params) == dyn(params)",
            "messageExpression": "'%s'.format([dyn(params)])"}],
    });
    let mut members = vec![policies::policy(name, &spec)];
    if is_custom {
        members.extend(
            (0..=random.below(3))
                .map(|i| objects::custom_resource(&format!("{name}-{i}"), &large(random))),
        );
    } else {
        let n = random.choose(&[2_u64, 100]).copied().unwrap_or(2);
        let bytes = usize::try_from(1_500_000 / n).unwrap_or(1_000).min(900_000);
        members.extend((0..n).map(|i| config_map(&format!("{name}-{i}"), bytes)));
    }
    members.push(policies::probe(name, name, &[objects::deployment("d", 0)]));
    members
}

fn config_map(name: &str, n_bytes: usize) -> Value {
    let data: Map<String, Value> = (0..n_bytes / 20)
        .map(|i| (format!("k{i}"), json!("v")))
        .collect();
    json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": name, "namespace": "default"}, "data": data})
}

fn bindings(random: &mut Random, name: &str) -> Vec<Value> {
    let spec = json!({
        "paramKind": {"apiVersion": "v1", "kind": "ConfigMap"},
        "validations": [{"expression": "has(params.data)"}],
    });
    let mut members = vec![policies::policy(name, &spec)];
    let n_values = random.below(1_000) + 100;
    members.extend((0..40).map(|i| {
        let values: Vec<String> = (0..n_values).map(|i| format!("value-{i}")).collect();
        let fields = json!({
            "paramRef": {"selector": {"matchLabels": {LABEL: "true"}}, "parameterNotFoundAction": "Allow"},
            "matchResources": {"namespaceSelector": {"matchExpressions": [
                {"key": "team", "operator": "In", "values": values}]}},
        });
        policies::binding(&format!("{name}-{i}"), name, &fields)
    }));
    let mut probe = policies::probe(name, name, &[objects::deployment("d", 0)]);
    if let Some(spec) = probe.get_mut("spec").and_then(Value::as_object_mut) {
        spec.remove("bindings");
    }
    members.push(probe);
    members
}

fn namespaces(random: &mut Random, name: &str) -> Vec<Value> {
    let n_labels = usize::try_from(random.below(10_000)).unwrap_or_default();
    let labels: Map<String, Value> = (0..n_labels)
        .map(|i| (format!("label-{i}"), json!("value")))
        .collect();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {
        "name": name, "labels": labels, "annotations": {"note": "a".repeat(250_000)}}});
    let mut object = objects::deployment("d", 0);
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.insert("namespace".to_owned(), json!(name));
    }
    let spec = json!({"validations": [{
        "expression": "namespaceObject.metadata.labels.all(k, k + k + namespaceObject.metadata.labels[k] != '')",
        "messageExpression": "namespaceObject.metadata.labels.map(k, k).join(',')"}]});
    vec![
        namespace,
        policies::policy(name, &spec),
        policies::probe(name, name, &[object]),
    ]
}

/// Returns the URL path of all objects of the same kind. Returns `None` for kinds that are not generated.
#[must_use]
pub fn collection(object: &Value) -> Option<&'static str> {
    Some(match object.get("kind")?.as_str()? {
        "ValidatingAdmissionPolicy" => {
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies"
        }
        "ValidatingAdmissionPolicyBinding" => {
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings"
        }
        "PolicyProbe" => "/apis/vap-status.dev/v1alpha1/policyprobes",
        "Hoard" => "/apis/hostile.example.com/v1/namespaces/default/hoards",
        "ConfigMap" => "/api/v1/namespaces/default/configmaps",
        "Namespace" => "/api/v1/namespaces",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn hostile_objects_of_same_seed_are_equal() {
        let text = |seed, n| serde_json::to_string(&hostile(seed, n).objects).unwrap();
        for n in 0..ROUND {
            assert_eq!(text(1, n), text(1, n), "{n}");
        }
        assert_ne!(text(1, 0), text(2, 0));
        assert_ne!(text(1, 0), text(1, ROUND));
    }

    #[test]
    fn hostile_round_has_every_family_and_only_known_kinds() {
        let groups: Vec<Hostile> = (0..ROUND).map(|n| hostile(7, n)).collect();
        let families: BTreeSet<Family> = groups.iter().map(|group| group.family).collect();
        assert_eq!(families.len(), 10);
        for object in groups.iter().flat_map(|group| &group.objects) {
            assert!(collection(object).is_some(), "{}", object["kind"]);
            assert_eq!(object["metadata"]["labels"][LABEL], "true");
        }
    }

    #[test]
    fn hostile_objects_fit_into_a_request() {
        /// The maximum size of a request to an API server, in bytes.
        const MAX_BYTES: usize = 1_500_000;
        for n in 0..ROUND {
            for object in hostile(3, n).objects {
                let bytes = serde_json::to_string(&object).unwrap().len();
                assert!(
                    bytes < MAX_BYTES,
                    "{n}: {} has {bytes} bytes",
                    object["kind"]
                );
            }
        }
    }
}
