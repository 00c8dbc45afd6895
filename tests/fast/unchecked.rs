//! Tests that `check` does not silently skip policies, kinds or objects.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};
use vap_status_controller::cli::exit::Exit;

use crate::check_management;
use crate::manifest;
use crate::runtime_errors::policy;

/// Returns the rule and the message of each finding about `manifest`.
fn findings(manifest: &str) -> Vec<(String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let findings = manifest::findings(manifest, &[]);
    let findings = findings.iter();
    findings
        .map(|finding| (text(finding, "rule"), text(finding, "message")))
        .collect()
}

fn findings_of(manifest: &str, rules: &[&str]) -> Vec<(String, String)> {
    let mut findings = findings(manifest);
    findings.retain(|(rule, _)| rules.contains(&&**rule));
    findings
}

fn validation(expression: &str) -> String {
    format!("  validations:\n  - expression: {}\n", json!(expression))
}

#[test]
fn failures_of_all_named_kinds_are_found() {
    let kinds = "deployments', 'replicasets', 'daemonsets', 'statefulsets";
    let rule =
        "    - {apiGroups: [batch], apiVersions: [v1], operations: [CREATE], resources: [jobs]}\n";
    let expression =
        "object.kind != 'Job' || object.spec.template.spec.volumes.all(v, !has(v.hostPath))";
    let spec = format!("{rule}{}", validation(expression));
    let actual = findings_of(
        &policy(("apps", "v1", kinds), "CREATE", &spec),
        &["absent-field"],
    );
    let [(_, message)] = &actual[..] else {
        panic!("{actual:#?}")
    };
    assert!(message.contains("CREATE of a Job without"), "{message}");
}

#[test]
fn options_of_connect_requests_have_types() {
    let rules = [
        "not-checked",
        "undefined-field",
        "absent-field",
        "type-mismatch",
        "no-overload",
    ];
    for (resource, expression, expected) in [
        (
            "pods/exec",
            "object.comand.all(c, c != 'sh')",
            "undefined field 'comand'",
        ),
        (
            "pods/exec",
            "!object.tty",
            "CONNECT of pods/exec without tty fails with `no such key: tty`",
        ),
        (
            "pods/exec",
            "object.command == null || object.command.all(c, c != 'sh')",
            "",
        ),
        (
            "pods/exec",
            "object.command[0] != 'sh'",
            "CONNECT of pods/exec without command fails with `no such key: 0`",
        ),
        ("pods/attach", "object.?container.orValue('') != 'main'", ""),
        (
            "pods/portforward",
            "object.port > 1024",
            "undefined field 'port'",
        ),
        (
            "services/proxy",
            "object.url == ''",
            "undefined field 'url'",
        ),
    ] {
        let spec = validation(expression);
        let actual = findings_of(&policy(("", "v1", resource), "CONNECT", &spec), &rules);
        let messages: Vec<_> = actual.iter().map(|(_, message)| &**message).collect();
        assert_eq!(
            messages.is_empty(),
            expected.is_empty(),
            "{expression}: {messages:?}"
        );
        assert!(
            messages.join("\n").contains(expected),
            "{expression}: {messages:?}"
        );
    }
}

#[test]
fn kinds_beyond_limit_are_reported() {
    let resources = [
        "configmaps",
        "endpoints",
        "events",
        "limitranges",
        "namespaces",
        "nodes",
        "persistentvolumeclaims",
        "persistentvolumes",
        "pods",
        "podtemplates",
        "replicationcontrollers",
        "resourcequotas",
        "secrets",
        "serviceaccounts",
        "services",
        "bindings",
    ];
    let spec = validation("object.metadata.name != 'a'");
    let rule = "    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}\n";
    let checked = policy(("", "v1", &resources.join("', '")), "CREATE", &spec);
    assert_eq!(findings_of(&checked, &["not-checked"]), []);
    let spec = format!("{rule}{spec}");
    let actual = findings_of(
        &policy(("", "v1", &resources.join("', '")), "CREATE", &spec),
        &["not-checked"],
    );
    let [(_, message)] = &actual[..] else {
        panic!("{actual:#?}")
    };
    assert_eq!(
        message,
        "the search for failing expressions covers only 16 of the 17 kinds that the rules match by name"
    );
}

#[test]
fn namespaces_satisfy_namespace_selector_by_their_own_labels() {
    let rules = ["absent-object", "absent-key", "absent-field", "not-checked"];
    let spec = |selector: &str| {
        let first = validation("namespaceObject.metadata.name == 'y'");
        format!("    {selector}\n{first}  - expression: \"object.metadata.labels['x'] == 'y'\"\n")
    };
    for selector in [
        "namespaceSelector: {matchLabels: {env: prod}}",
        "namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [prod]}]}",
        "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: prod}}",
        "objectSelector: {matchLabels: {env: prod}}",
        "matchPolicy: Equivalent",
    ] {
        let manifest = policy(("", "v1", "namespaces"), "CREATE, UPDATE", &spec(selector));
        let actual = findings_of(&manifest, &rules);
        let rules: Vec<&str> = actual.iter().map(|(rule, _)| &**rule).collect();
        assert_eq!(
            rules,
            ["absent-object", "absent-key"],
            "{selector}: {actual:#?}"
        );
    }
}

#[test]
fn single_binding_restricts_requests() {
    let binding = |name: &str, selector: &str| {
        format!(
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {{name: {name}}}\nspec:\n  policyName: p\n  validationActions: [Deny]\n  \
             matchResources: {{{selector}}}\n"
        )
    };
    let spec = validation("namespaceObject.metadata.labels['env'] == object.metadata.name");
    let policy = policy(("", "v1", "pods"), "CREATE", &spec);
    let name = policy.split("name: ").nth(1).unwrap();
    let name = name.split(['}', '\n']).next().unwrap();
    let keys = |bindings: &[String]| {
        let manifest = format!("{policy}\n{}", bindings.concat())
            .replace("policyName: p\n", &format!("policyName: {name}\n"));
        findings_of(&manifest, &["absent-key", "not-checked"]).len()
    };
    let requires =
        "namespaceSelector: {matchExpressions: [{key: env, operator: In, values: [dev, prod]}]}";
    assert_eq!(keys(&[]), 1);
    assert_eq!(keys(&[binding("a", requires)]), 0);
    assert_eq!(
        keys(&[binding(
            "a",
            "namespaceSelector: {matchLabels: {env: prod}}"
        )]),
        0
    );
    assert_eq!(
        keys(&[binding("a", "namespaceSelector: {matchLabels: {team: a}}")]),
        1
    );
    let excludes = "namespaceSelector: {matchExpressions: [{key: env, operator: DoesNotExist}]}";
    assert_eq!(keys(&[binding("a", excludes)]), 1);
    // The other binding also selects namespaces without the label.
    assert_eq!(keys(&[binding("a", requires), binding("b", "")]), 1);
    // No namespace has this label before the placeholder is replaced.
    assert_eq!(
        keys(&[binding(
            "a",
            "namespaceSelector: {matchLabels: {team: <TEAM>}}"
        )]),
        1
    );
}

#[test]
fn policy_without_generated_request_is_reported() {
    let selector = "    objectSelector: {matchLabels: {a: b}, matchExpressions: [{key: a, operator: NotIn, values: [b]}]}\n";
    let spec = format!(
        "{selector}{}",
        validation("object.metadata.labels['x'] == 'y'")
    );
    let actual = findings_of(
        &policy(("", "v1", "pods"), "CREATE", &spec),
        &["not-checked"],
    );
    let [(_, message)] = &actual[..] else {
        panic!("{actual:#?}")
    };
    assert!(message.starts_with("no valid request"), "{message}");
}

#[test]
fn resource_is_unserved_in_version_or_group_that_its_crd_lacks() {
    let crd = "---\napiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boxes.example.com}\n\
               spec:\n  group: example.com\n  scope: Namespaced\n  names: {plural: boxes, singular: box, kind: Box, listKind: BoxList}\n  \
               versions:\n  - name: v1alpha1\n    served: true\n    storage: true\n    subresources: {status: {}}\n    schema:\n      \
               openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}\n";
    let spec = validation("!has(object.spec) || !has(object.spec.sise)");
    let of = |resource: (&str, &str, &str)| {
        let findings =
            manifest::findings(&format!("{}{crd}", policy(resource, "UPDATE", &spec)), &[]);
        let text =
            |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
        let shown = findings.iter().filter(|it| {
            ["unserved-resource", "unknown-resource", "undefined-field"]
                .contains(&it["rule"].as_str().unwrap())
        });
        let lines = shown.map(|it| {
            format!(
                "{} {}: {}",
                text(it, "severity"),
                text(it, "rule"),
                text(it, "help")
            )
        });
        lines.collect::<Vec<_>>()
    };
    for (resource, suggested) in [
        (("example.com", "v1", "boxes"), "example.com/v1alpha1 boxes"),
        (
            ("examples.com", "v1alpha1", "boxes"),
            "example.com/v1alpha1 boxes",
        ),
        (("example.com", "v1alpha1", "box"), "boxes"),
        // Only the domains of the groups differ.
        (
            ("example.org", "v1alpha1", "boxes"),
            "example.com/v1alpha1 boxes",
        ),
    ] {
        let actual = of(resource);
        let [first, second] = &actual[..] else {
            panic!("{resource:?}: {actual:#?}")
        };
        let expected = format!("error unserved-resource: did you mean `{suggested}`?");
        assert!(first.starts_with(&expected), "{first}");
        assert!(first.contains("continuing as if"), "{first}");
        assert!(second.starts_with("warning undefined-field"), "{second}");
    }
    let actual = of(("other.example.com", "v1", "crates"));
    assert!(
        actual[0].starts_with("note unknown-resource"),
        "{actual:#?}"
    );
}

#[test]
fn resource_is_unserved_if_built_in_group_name_has_missing_or_extra_part() {
    let spec = validation("object.metadata.name != ''");
    for (group, resource, suggested) in [
        (
            "rbac.authorization.k8s",
            "roles",
            "rbac.authorization.k8s.io/v1 roles",
        ),
        (
            "networking.k8s",
            "ingresses",
            "networking.k8s.io/v1 ingresses",
        ),
        ("apps.k8s.io", "deployments", "apps/v1 deployments"),
        ("apps.k8s", "deployments", "apps/v1 deployments"),
        ("core.k8s.io", "pods", "v1 pods"),
    ] {
        let policy = policy((group, "v1", resource), "CREATE", &spec);
        let findings = manifest::findings(&policy, &[]);
        let help = findings
            .iter()
            .filter(|it| it["rule"] == "unserved-resource");
        let help: Vec<_> = help.map(|it| it["help"].as_str().unwrap()).collect();
        assert_eq!(help.len(), 1, "{findings:#?}");
        assert!(
            help[0].starts_with(&format!("did you mean `{suggested}`?")),
            "{help:?}"
        );
    }
}

/// Returns the severity, the rule, and the help of the findings about the files of a directory.
fn directory_findings(test: &str, files: &[(&str, &str)], args: &[&str]) -> Vec<String> {
    let (report, _) = check_management::json(&check_management::directory(test, files), args);
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    findings
        .map(|it| {
            format!(
                "{} {}: {}",
                text(it, "severity"),
                text(it, "rule"),
                text(it, "help")
            )
        })
        .collect()
}

fn box_crd(fields: &str) -> String {
    format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: boxes.example.com}}\n\
         spec:\n  group: example.com\n  scope: Namespaced\n  names: {{plural: boxes, singular: box, kind: Box, listKind: BoxList}}\n  \
         versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      \
         openAPIV3Schema: {{type: object, properties: {{spec: {{type: object, properties: {{{fields}}}}}}}}}\n"
    )
}

#[test]
fn misspelled_resource_of_crd_is_unserved() {
    let crd = box_crd("size: {type: integer}").replace("box", "crate");
    let crd = crd.replace("Box", "Crate").replace("cratees", "crates");
    let spec = validation("!has(object.spec) || !has(object.spec.sise)");
    let of = |test: &str, resources: &str| {
        let policy = policy(("example.com", "v1", resources), "UPDATE", &spec);
        let files = [("crd.yaml", &*crd), ("p.yaml", &*policy)];
        let mut findings = directory_findings(test, &files, &[]);
        findings.retain(|it| !it.contains("unbound"));
        findings
    };
    for name in ["cratess", "cartes", "crats"] {
        let actual = of(&format!("misspelled-{name}"), name);
        let is_sure = name.len() > 5;
        let expected = if is_sure {
            "error unserved-resource: did you mean `crates`? the policy never runs; continuing as if `crates`"
        } else {
            "note unknown-resource"
        };
        assert!(actual[0].starts_with(expected), "{name}: {actual:#?}");
        let second = actual.get(1);
        let is_undefined = second.is_some_and(|it| it.starts_with("warning undefined-field"));
        assert_eq!(is_undefined, is_sure, "{name}: {actual:#?}");
    }
    // These names are not necessarily misspelled, because another CRD of the group may define them.
    for (test, resources) in [
        ("both", "crates', 'cratess"),
        ("digit", "crates1"),
        ("other", "crates2', 'barrels"),
    ] {
        let actual = of(&format!("similar-{test}"), resources);
        assert!(
            actual
                .iter()
                .any(|it| it.starts_with("note unknown-resource")),
            "{actual:#?}"
        );
        assert!(
            !actual
                .iter()
                .any(|it| it.contains("continuing as if `crates`")),
            "{actual:#?}"
        );
    }
}

#[test]
fn field_of_another_copy_of_a_crd_is_not_undefined() {
    let (old, new) = (
        box_crd("size: {type: integer}"),
        box_crd("size: {type: integer}, color: {type: string}"),
    );
    let of = |field: &str| {
        let spec = validation(&format!("!has(object.spec) || !has(object.spec.{field})"));
        policy(("example.com", "v1", "boxes"), "CREATE, UPDATE", &spec)
    };
    let undefined = |test: &str, files: &[(&str, &str)]| {
        let mut findings = directory_findings(test, files, &[]);
        findings.retain(|finding| finding.contains("undefined-field"));
        findings
    };
    let policy = of("color");
    // The first copy lacks the field, and both copies are equally near to the policy.
    let actual = undefined(
        "copies",
        &[
            ("a/crd.yaml", &old),
            ("b/crd.yaml", &new),
            ("p.yaml", &policy),
        ],
    );
    let [only] = &actual[..] else {
        panic!("{actual:#?}")
    };
    assert!(only.starts_with("note"), "{only}");
    assert!(
        only.contains("another copy") && only.contains("b/crd.yaml"),
        "{only}"
    );
    // The copy in the directory of the policy contains the field.
    let actual = undefined(
        "near-copy",
        &[
            ("a/crd.yaml", &old),
            ("b/crd.yaml", &new),
            ("b/p.yaml", &policy),
        ],
    );
    assert_eq!(actual, [""; 0]);
    // No copy contains the field.
    let policy = of("colour");
    let actual = undefined(
        "no-copy",
        &[
            ("a/crd.yaml", &old),
            ("b/crd.yaml", &new),
            ("p.yaml", &policy),
        ],
    );
    assert!(actual[0].starts_with("warning"), "{actual:#?}");
}

#[test]
fn invalid_values_do_not_hide_other_findings() {
    let spec = |selector: &str| {
        format!(
            "    {selector}\n{}",
            validation("object.spec.externalIPs.size() == 0")
        )
    };
    for selector in [
        "namespaceSelector: {matchLabels: {env: 'prod-*'}}",
        "objectSelector: {matchLabels: {'a b': c}}",
        "namespaceSelector: {matchExpressions: [{key: a, operator: In}]}",
        "objectSelector: {matchExpressions: [{key: a, operator: Exists, values: [b]}]}",
    ] {
        let manifest = policy(("", "v1", "services"), "CREATE, DELETE", &spec(selector));
        let actual = manifest::findings(&manifest, &[]);
        let rules: Vec<&str> = actual
            .iter()
            .map(|it| it["rule"].as_str().unwrap())
            .collect();
        assert!(rules.contains(&"absent-field"), "{selector}: {actual:#?}");
        assert!(rules.contains(&"absent-object"), "{selector}: {actual:#?}");
        let rejected = actual.iter().find(|it| it["rejected"] == true).unwrap();
        let help = rejected["help"].as_str().unwrap();
        assert!(
            help.ends_with("continuing without it") || help.contains("continuing as if"),
            "{help}"
        );
    }
    let manifest = policy(
        ("", "v1", "service"),
        "CREATE, PATCH",
        &spec("matchPolicy: Equivalent"),
    );
    let actual = findings_of(
        &manifest,
        &["invalid-value", "unserved-resource", "absent-field"],
    );
    assert_eq!(actual.len(), 3, "{actual:#?}");
}

#[test]
fn misspelled_params_of_a_binding_are_reported() {
    let params = |namespace: &str, name: &str| {
        format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {namespace}}}\n---\n"
        )
    };
    let binding = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {name: b}\n\
                   spec: {policyName: p, validationActions: [Deny], paramRef: {name: limits, namespace: defualt, parameterNotFoundAction: Allow}}\n";
    let spec = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations: [{expression: \"params.metadata.name != ''\"}]\n";
    let policy = policy(("", "v1", "pods"), "CREATE, UPDATE", spec);
    for (params, meant, n) in [
        (params("default", "limits"), Some("default"), 1),
        (params("defualt", "limit"), Some("limit"), 1),
        (params("defualt", "limits"), None, 0),
        // The findings for these params are notes without a suggestion.
        (params("other", "limits"), None, 1),
        (params("default", "other"), None, 1),
    ] {
        let actual = findings_of(&format!("{params}{policy}{binding}"), &["params-not-found"]);
        assert_eq!(actual.len(), n, "{params}: {actual:#?}");
        let manifest = format!("{params}{policy}{binding}");
        let all = manifest::findings(&manifest, &[]);
        let help = all.iter().find(|it| it["rule"] == "params-not-found");
        if let Some(meant) = meant {
            let help = help.unwrap()["help"].as_str().unwrap();
            assert!(
                help.starts_with(&format!("did you mean `{meant}`?")),
                "{help}"
            );
        }
    }
}

#[test]
fn findings_in_test_assertions_and_patches_are_notes() {
    let policy = "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n";
    let with_spec = format!("{policy}spec: {{failurePolicy: Fail}}\n");
    let patch = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: boxes.example.com}\n";
    for (name, text, severity) in [
        (".chainsaw-test/policy.yaml", with_spec.as_str(), "note"),
        ("test/chainsaw-assert-policy.yaml", &with_spec, "note"),
        ("policy.yaml", policy, "error"),
        ("policy.yaml", &with_spec, "error"),
        ("patch.yaml", patch, "note"),
    ] {
        let mut actual = directory_findings("partial", &[(name, text)], &[]);
        actual
            .retain(|finding| finding.contains(" required:") || finding.contains("invalid-object"));
        assert!(!actual.is_empty(), "{name}");
        assert!(
            actual.iter().all(|finding| finding.starts_with(severity)),
            "{name}: {actual:#?}"
        );
    }
}

#[test]
fn template_in_valid_yaml_gets_advice_to_render_it() {
    let spec = validation("request.userInfo.username != \"{{ include \"x\" . }}\"");
    let policy = policy(("", "v1", "pods"), "CREATE", &spec)
        .replace("name: p", "name: 'p-{{ .Release.Name }}'");
    let actual = directory_findings("template", &[("p.yaml", &policy)], &[]);
    for rule in ["error invalid-name:", "error syntax:"] {
        let finding = actual.iter().find(|it| it.starts_with(rule)).unwrap();
        assert!(finding.contains("this looks like a template"), "{finding}");
    }
}

#[test]
fn parameter_not_found_action_has_a_default_in_v1alpha1() {
    let binding = |version: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/{version}\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\n\
             spec: {{policyName: p, validationActions: [Deny], paramRef: {{name: x, namespace: default}}}}\n"
        )
    };
    for (api, kubernetes, is_required) in [
        ("v1alpha1", "1.30", false),
        ("v1alpha1", "1.37", true),
        ("v1beta1", "1.30", true),
        ("v1", "1.30", true),
    ] {
        let args = ["--kubernetes-version", kubernetes];
        let actual = directory_findings("params-default", &[("b.yaml", &binding(api))], &args);
        let has = actual.iter().any(|it| it.starts_with("error required"));
        assert_eq!(has, is_required, "{api} {kubernetes}: {actual:#?}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn policies_that_were_not_evaluated_are_reported_by_eval_and_audit() {
    let spec = validation("object.spec.replicas < 5");
    let policy = policy(
        ("apps", "v1", "deployments', 'deployments/scale"),
        "CREATE, UPDATE",
        &spec,
    );
    let rejected = policy.replace("< 5", "<");
    let object = |kind: &str, version: &str, spec: &str| {
        format!(
            "apiVersion: {version}\nkind: {kind}\nmetadata: {{name: a, namespace: default}}\nspec: {{{spec}replicas: 1}}\n"
        )
    };
    let pod = "selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: a, image: a}]}}, ";
    let deployment = object("Deployment", "apps/v1", pod);
    let scale = object("Scale", "autoscaling/v1", "");
    let files = [
        ("p.yaml", policy.as_str()),
        ("rejected.yaml", &rejected),
        ("deployment.yaml", &deployment),
        ("scale.yaml", &scale),
        (
            "cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: default}\n",
        ),
    ];
    let root = check_management::directory("not-evaluated", &files);
    let run = |command: &str, policy: &str, object: &str, args: &[&str]| {
        let [policy, object] =
            [policy, object].map(|name| root.join(name).to_str().unwrap().to_owned());
        let (out, error, exit) =
            check_management::command(&[&[command, &policy, "-f", &object], args].concat());
        (format!("{out}{error}"), exit)
    };
    let scale = ["--resource", "deployments", "--subresource", "scale"];
    let on_create = [&scale[..], &["--operation", "CREATE"]].concat();
    for (command, policy, object, args, expected, is_failure) in [
        (
            "eval",
            "p.yaml",
            "cm.yaml",
            &[][..],
            "no policy applies to the request",
            false,
        ),
        (
            "eval",
            "p.yaml",
            "deployment.yaml",
            &scale,
            "is a Scale of autoscaling/v1, not a Deployment",
            true,
        ),
        (
            "eval",
            "p.yaml",
            "scale.yaml",
            &on_create,
            "have the operation UPDATE, not CREATE",
            true,
        ),
        (
            "eval",
            "p.yaml",
            "scale.yaml",
            &scale,
            "UPDATE apps/v1 deployments/scale",
            false,
        ),
        (
            "audit",
            "rejected.yaml",
            "deployment.yaml",
            &[],
            "0 policies (1 not evaluated)",
            true,
        ),
        (
            "audit",
            "rejected.yaml",
            "deployment.yaml",
            &[],
            "nothing was evaluated",
            true,
        ),
        (
            "audit",
            "p.yaml",
            "deployment.yaml",
            &[],
            "none with violations",
            false,
        ),
    ] {
        let (text, exit) = run(command, policy, object, args);
        assert!(
            text.contains(expected),
            "{command} {policy} {object}: {text}"
        );
        assert_eq!(
            exit == Exit::Failed,
            is_failure,
            "{command} {policy} {object}: {text}"
        );
    }
}

#[test]
fn misspelled_excluded_resource_is_reported_without_fix() {
    let spec = validation("object.metadata.name != 'a'");
    for (resource, expected) in [
        (
            "pod",
            Some("did you mean `pods`? the policy then ignores requests that it evaluates now"),
        ),
        ("pods/status", None),
        ("crates", None),
    ] {
        let excluded = format!(
            "    excludeResourceRules:\n    - {{apiGroups: [''], apiVersions: [v1], operations: ['*'], resources: \
             ['{resource}']}}\n  validations:"
        );
        let text = policy(("", "v1", "pods"), "CREATE", &spec).replace("  validations:", &excluded);
        let mut findings = manifest::findings(&text, &[]);
        findings.retain(|it| it["rule"] == "unserved-resource");
        let help = findings.first().map(|it| it["help"].as_str().unwrap());
        assert_eq!(help, expected, "{resource}");
        assert!(findings.iter().all(|it| it["fix"].is_null()));
    }
}
