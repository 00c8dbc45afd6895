//! Tests of mapping resources to kinds, and of finding resources for requests.

use super::json;
use crate::schema::crd::Crd;
use crate::schema::offline::{Offline, served_resources};
use crate::schema::rest_mapper::{ApiResource, RestMapper, rule_matches};
use crate::schema::{Gvk, Gvr};

fn served(group: &str, version: &str, resource: &str, kind: &str, singular: &str) -> ApiResource {
    ApiResource {
        gvr: Gvr::new(group, version, resource),
        gvk: Gvk::new(group, version, kind),
        singular: singular.into(),
        namespaced: true,
    }
}

fn mapper() -> RestMapper {
    let mut scale = served("apps", "v1", "deployments/scale", "Scale", "");
    scale.gvk = Gvk::new("autoscaling", "v1", "Scale");
    RestMapper::new(vec![
        served("events.k8s.io", "v1", "events", "Event", "event"),
        served("apps", "v1", "deployments", "Deployment", "deployment"),
        served("apps", "v1", "deployments/status", "Deployment", ""),
        scale,
        served("", "v1", "events", "Event", "event"),
        served("", "v1", "pods", "Pod", "pod"),
        served("apps", "v1beta1", "deployments", "Deployment", ""),
        served(
            "storage.k8s.io",
            "v1",
            "storageclasses",
            "StorageClass",
            "storageclass",
        ),
    ])
}

#[track_caller]
fn check(gvr: (&str, &str, &str), expected: &[&str]) {
    let kinds = mapper().kinds_for(gvr.0, gvr.1, gvr.2);
    let kinds: Vec<_> = kinds.iter().map(ToString::to_string).collect();
    assert_eq!(kinds, expected, "{gvr:?}");
}

#[test]
fn kinds_are_found_by_singular_and_list_names_in_any_case() {
    for name in ["deployments", "deployment", "DEPLOYMENTS", "Deployment"] {
        check(("apps", "v1", name), &["apps/v1, Kind=Deployment"]);
    }
    // Discovery returns no singular name for this version, so the kind in lower case is used instead.
    check(
        ("apps", "v1beta1", "deployment"),
        &["apps/v1beta1, Kind=Deployment"],
    );
    check(
        ("apps", "v1", "deploymentlist"),
        &["apps/v1, Kind=DeploymentList"],
    );
    check(
        ("apps", "v1", "deploymentlists"),
        &["apps/v1, Kind=DeploymentList"],
    );
    check(("apps", "v1", "lists"), &["apps/v1, Kind=List"]);
}

#[test]
fn unknown_resource_has_no_kinds() {
    for resource in ["", "deploy", "deployments/scale", "deployments/", "*"] {
        check(("apps", "v1", resource), &[]);
    }
    check(("Apps", "v1", "deployments"), &[]);
    check(("apps", "v2", "deployments"), &[]);
    check(("app", "v1", "deployments"), &[]);
}

#[test]
fn core_group_matches_resources_of_any_group() {
    check(
        ("", "v1", "events"),
        &["/v1, Kind=Event", "events.k8s.io/v1, Kind=Event"],
    );
    check(("", "v1", "deployments"), &["apps/v1, Kind=Deployment"]);
    check(("", "v1beta1", "events"), &[]);
}

#[test]
fn empty_version_matches_any_version() {
    let both = ["apps/v1, Kind=Deployment", "apps/v1beta1, Kind=Deployment"];
    check(("apps", "", "deployments"), &both);
    check(("apps", "__internal", "deployments"), &both);
    check(
        ("storage", "", "storageclass"),
        &["storage.k8s.io/v1, Kind=StorageClass"],
    );
    check(("storage", "v1", "storageclass"), &[]);
    check(("", "", "pod"), &["/v1, Kind=Pod"]);
}

#[test]
fn resource_is_found_only_by_exact_name() {
    let mapper = mapper();
    let scale = mapper
        .resource(&Gvr::new("apps", "v1", "deployments/scale"))
        .unwrap();
    assert_eq!(scale.gvk.to_string(), "autoscaling/v1, Kind=Scale");
    assert_eq!(mapper.resource(&Gvr::new("apps", "v1", "deployment")), None);
    assert_eq!(mapper.resource(&Gvr::new("", "v1", "deployments")), None);
    let gvk = Gvk::new("apps", "v1", "Deployment");
    let of_kind: Vec<_> = mapper
        .resources_of_kind(&gvk)
        .map(|r| &*r.gvr.resource)
        .collect();
    assert_eq!(of_kind, ["deployments"]);
}

#[track_caller]
fn check_rule(groups: &[&str], versions: &[&str], resources: &[&str], expected: &[&str]) {
    let strings = |texts: &[&str]| texts.iter().map(ToString::to_string).collect::<Vec<_>>();
    let (groups, versions, resources) = (strings(groups), strings(versions), strings(resources));
    let mapper = mapper();
    let matching = mapper.matching(&groups, &versions, &resources);
    let matching: Vec<_> = matching
        .map(|r| format!("{}/{}", r.gvr.group, r.gvr.resource))
        .collect();
    assert_eq!(matching, expected);
}

#[test]
fn rule_matching_supports_wildcards_and_subresources() {
    check_rule(&["apps"], &["v1"], &["deployments"], &["apps/deployments"]);
    check_rule(
        &["apps"],
        &["*"],
        &["*"],
        &["apps/deployments", "apps/deployments"],
    );
    let with_subresources = [
        "apps/deployments",
        "apps/deployments/scale",
        "apps/deployments/status",
    ];
    check_rule(&["apps"], &["v1"], &["deployments/*"], &with_subresources);
    check_rule(&["apps"], &["v1"], &["*/*"], &with_subresources);
    check_rule(&["*"], &["*"], &["*/scale"], &["apps/deployments/scale"]);
    check_rule(
        &[""],
        &["v1"],
        &["events", "pods", "pod"],
        &["/events", "/pods"],
    );
    check_rule(&["", "apps"], &["v2"], &["*"], &[]);
    assert!(rule_matches("pods/*", "pods"));
    assert!(!rule_matches("pods", "pods/log"));
    assert!(!rule_matches("*", "pods/log"));
}

#[test]
fn served_resources_are_parsed_from_document_paths() {
    let kind = |group: &str, kind: &str| {
        let gvk = json!({"group": group, "version": "v1", "kind": kind});
        json!({"x-kubernetes-group-version-kind": gvk})
    };
    let of_pod = json!({"get": kind("", "Pod"), "parameters": [{}]});
    let namespaced = "/api/v1/namespaces/{namespace}/pods";
    let document = json!({"paths": {
        "/api/v1/": {"get": {}},
        "/api/v1/pods": of_pod,
        namespaced: of_pod,
        (format!("{namespaced}/{{name}}")): of_pod,
        (format!("{namespaced}/{{name}}/eviction")): {"post": kind("policy", "Eviction")},
        (format!("{namespaced}/{{name}}/proxy/{{path}}")): {"post": kind("", "PodProxyOptions")},
        "/api/v1/watch/pods": of_pod,
        "/api/v1/namespaces/{name}": {"get": kind("", "Namespace")},
        "/api/v1/namespaces/{name}/finalize": {"put": kind("", "Namespace")},
        "/apis/apps/v1/deployments": {"post": 5, "get": kind("apps", "Deployment")},
        "/apis/apps/v1/odd": [],
        "/apis/apps/v1/unnamed": {"get": {}},
        "/openid/v1/jwks": {"get": kind("", "Nothing")},
    }});
    let mapper = RestMapper::new(served_resources(document.to_string().as_bytes()).unwrap());
    let lines = mapper.resources.iter().map(|r| {
        format!(
            "{}/{} {} {} {}",
            r.gvr.group, r.gvr.resource, r.gvk, r.singular, r.namespaced
        )
    });
    let lines: Vec<_> = lines.collect();
    assert_eq!(
        lines,
        [
            "/namespaces /v1, Kind=Namespace namespace false",
            "/namespaces/finalize /v1, Kind=Namespace  false",
            "/pods /v1, Kind=Pod pod true",
            "/pods/eviction policy/v1, Kind=Eviction  true",
            "apps/deployments apps/v1, Kind=Deployment deployment false",
        ]
    );
    assert!(served_resources(br#"{"paths": null}"#).unwrap().is_empty());
    assert!(served_resources(b"[").is_err());
}

#[test]
fn added_crd_defines_resources_of_served_versions() {
    let crd = json!({"spec": {
        "group": "example.com", "scope": "Cluster",
        "names": {"kind": "Widget", "plural": "widgets", "singular": "wid"},
        "versions": [
            {"name": "v1", "served": true, "subresources": {"status": {}, "scale": {}}},
            {"name": "v2", "served": false},
        ],
    }});
    let mut offline = Offline::default();
    offline.add_crd(&Crd::from_value(&crd).unwrap());
    let (_, mapper) = offline.finish();
    let names: Vec<_> = mapper.resources.iter().map(|r| r.gvr.to_string()).collect();
    assert_eq!(
        names,
        [
            "example.com/v1, Resource=widgets",
            "example.com/v1, Resource=widgets/scale",
            "example.com/v1, Resource=widgets/status",
        ]
    );
    assert_eq!(mapper.kinds_for("example.com", "v1", "wid").len(), 1);
    assert_eq!(mapper.kinds_for("example.com", "v1", "widget").len(), 0);
}
