//! Tests findings of `kubectl vap check` about runtime errors: the failing expressions and their witnesses. A witness
//! is a sample request for which the expression fails.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeMap;
use std::io::Cursor;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::cli::input::{Input, KindFilter};
use vap_status_controller::policy::admission::{
    Admission, AdmissionRequest, AuditAnnotationAction, AuthorizerList, Evaluation,
    EvaluationResult, Namespace, Object, ParamList, ReviewContext, UserInfo,
};
use vap_status_controller::schema::{Gvk, Gvr};

use crate::manifest;
use vap_status_controller::version::KubernetesVersion;

/// Returns the findings about runtime errors in `manifest`. `crds` are files of CustomResourceDefinitions.
pub(crate) fn runtime_errors(manifest: &str, crds: &[PathBuf]) -> Vec<Value> {
    let findings = manifest::findings(manifest, crds);
    assert!(
        findings
            .iter()
            .all(|finding| finding["severity"] != "error"),
        "{findings:#?}"
    );
    let is_runtime_error = |finding: &Value| {
        let rule = finding["rule"].as_str().unwrap();
        let others = [
            "param-scope",
            "failing-conversion",
            "division-by-zero",
            "int-or-string",
        ];
        finding["witness"].is_object() && (rule.starts_with("absent-") || others.contains(&rule))
    };
    findings.into_iter().filter(is_runtime_error).collect()
}

/// Returns a policy for `operations` on the resource. `spec` contains the other spec fields.
pub(crate) fn policy(
    (group, version, resource): (&str, &str, &str),
    operations: &str,
    spec: &str,
) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
         matchConstraints:\n    resourceRules:\n    - apiGroups: ['{group}']\n      apiVersions: ['{version}']\n      \
         operations: [{operations}]\n      resources: ['{resource}']\n{spec}"
    )
}

pub(crate) const POD: (&str, &str, &str) = ("", "v1", "pods");
pub(crate) const DEPLOYMENT: (&str, &str, &str) = ("apps", "v1", "deployments");

/// Returns the rule and the marked path of each finding for the validation `expression`.
pub(crate) fn validation_findings(
    resource: (&str, &str, &str),
    operations: &str,
    expression: &str,
) -> Vec<String> {
    let spec = format!("  validations:\n  - expression: {}\n", json!(expression));
    shown(&runtime_errors(&policy(resource, operations, &spec), &[]))
}

pub(crate) fn shown(findings: &[Value]) -> Vec<String> {
    let text = |finding: &Value| {
        let message = finding["message"].as_str().unwrap();
        let subject = message.split('`').nth(1).unwrap();
        format!("{} {subject}", finding["rule"].as_str().unwrap())
    };
    findings.iter().map(text).collect()
}

#[track_caller]
pub(crate) fn fails(
    resource: (&str, &str, &str),
    operations: &str,
    expression: &str,
    expected: &[&str],
) {
    let findings = validation_findings(resource, operations, expression);
    assert_eq!(findings, expected, "{expression}");
}

#[track_caller]
pub(crate) fn holds(resource: (&str, &str, &str), operations: &str, expression: &str) {
    fails(resource, operations, expression, &[]);
}

#[test]
fn unguarded_reads_are_reported() {
    let create = "CREATE, UPDATE";
    fails(
        POD,
        create,
        "object.metadata.labels['team'] != ''",
        &["absent-field object.metadata.labels"],
    );
    fails(
        DEPLOYMENT,
        create,
        "object.spec.template.metadata.labels['team'] != ''",
        &["absent-key object.spec.template.metadata.labels.team"],
    );
    fails(
        POD,
        create,
        "object.spec.securityContext.runAsNonRoot == true",
        &["absent-field object.spec.securityContext.runAsNonRoot"],
    );
    fails(
        POD,
        create,
        "object.spec.containers.all(c, c.securityContext.privileged == false)",
        &["absent-field object.spec.containers[0].securityContext"],
    );
    fails(
        POD,
        create,
        "object.spec.containers[1].image != ''",
        &["absent-element object.spec.containers[1]"],
    );
    fails(
        POD,
        create,
        "'a' in request.userInfo.extra['b']",
        &["absent-field request.userInfo.extra"],
    );
    fails(
        DEPLOYMENT,
        create,
        "object.spec.strategy.rollingUpdate.maxSurge == 1",
        &["absent-field object.spec.strategy.rollingUpdate"],
    );
    fails(
        POD,
        create,
        "object.?spec.nodeName.value() == 'a'",
        &["absent-field object.spec.nodeName"],
    );
}

#[test]
fn reads_with_misplaced_guards_are_reported() {
    fails(
        POD,
        "CREATE",
        "!has(object.metadata.annotations) || object.metadata.annotations['a/b'] == 'x'",
        &["absent-key object.metadata.annotations[\"a/b\"]"],
    );
    fails(
        POD,
        "CREATE",
        "object.spec.nodeName == 'a' && has(object.spec.nodeName) || object.spec.nodeName != 'b'",
        &["absent-field object.spec.nodeName"],
    );
    // A check in one validation does not guard the other validation.
    let spec = "  validations:\n  - expression: has(object.metadata.labels)\n  - expression: \"'a' in object.metadata.labels\"\n";
    let findings = runtime_errors(&policy(POD, "CREATE", spec), &[]);
    assert_eq!(shown(&findings), ["absent-field object.metadata.labels"]);
}

#[test]
fn guarded_reads_are_not_reported() {
    for expression in [
        "has(object.metadata.labels) && 'a' in object.metadata.labels && object.metadata.labels['a'] == 'b'",
        "!has(object.metadata.labels) || !('a' in object.metadata.labels) || object.metadata.labels.a == 'b'",
        "has(object.spec.nodeName) ? object.spec.nodeName == 'a' : true",
        "object.?metadata.labels[?'a'].orValue('') == 'b'",
        "object.spec.?initContainers.orValue([]).all(c, c.image != '')",
        "object.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || \
         !c.securityContext.privileged)",
        "object.spec.containers.filter(c, has(c.env)).all(c, c.env.all(e, e.name != ''))",
        "!(has(object.spec.hostNetwork) && object.spec.hostNetwork)",
        "object.spec.containers.all(c, c.image != '' && c.imagePullPolicy != 'Never')",
        "object.spec.restartPolicy == 'Always' && object.spec.dnsPolicy != 'None'",
        "object.metadata.name != '' && object.metadata.namespace != '' && object.metadata.uid != ''",
        "size(object.spec.containers) < 2 || object.spec.containers[1].image != ''",
        "request.userInfo.username != '' && request.userInfo.groups.size() > 0 && request.name != ''",
    ] {
        holds(POD, "CREATE, UPDATE", expression);
    }
    holds(
        DEPLOYMENT,
        "CREATE, UPDATE",
        "object.spec.replicas < 5 && (object.spec.strategy.type != 'RollingUpdate' || object.spec.strategy.rollingUpdate.maxSurge \
         == 1)",
    );
    let spec = "  matchConditions:\n  - {name: m, expression: has(object.metadata.labels)}\n  variables:\n  - {name: v, \
                expression: \"'a' in object.metadata.labels\"}\n  - {name: w, expression: \"variables.v ? \
                object.metadata.labels.a : ''\"}\n  validations:\n  - expression: variables.w != 'b' && (!variables.v || \
                object.metadata.labels.a != '')\n";
    assert_eq!(
        shown(&runtime_errors(&policy(POD, "CREATE", spec), &[])),
        [""; 0]
    );
}

#[test]
fn object_that_is_null_for_an_operation_is_reported() {
    fails(
        POD,
        "CREATE, DELETE",
        "object.metadata.name != 'a'",
        &["absent-object object"],
    );
    fails(
        DEPLOYMENT,
        "CREATE, UPDATE",
        "object.spec.replicas >= oldObject.spec.replicas",
        &["absent-object oldObject"],
    );
    fails(
        POD,
        "CREATE, DELETE",
        "object.metadata.labels.a != 'b'",
        &[
            "absent-object object",
            "absent-field object.metadata.labels",
        ],
    );
    for expression in [
        "request.operation == 'DELETE' || object.metadata.name != 'a'",
        "object == null || object.metadata.name != 'a'",
        "request.operation != 'UPDATE' || oldObject.metadata.name == object.metadata.name",
        "(request.operation == 'DELETE' ? oldObject : object).metadata.name != 'a'",
        "has(object.metadata) || oldObject.metadata.name != 'a' || true",
    ] {
        holds(POD, "CREATE, UPDATE, DELETE", expression);
    }
}

#[test]
fn same_cause_in_several_expressions_is_reported_once() {
    let spec = "  validations:\n  - expression: object.metadata.name != 'a'\n  - expression: object.metadata.name != 'b'\n  \
                - expression: object.metadata.name != 'c'\n";
    let findings = runtime_errors(&policy(POD, "CREATE, DELETE", spec), &[]);
    let [only] = &findings[..] else {
        panic!("{findings:#?}")
    };
    let help = only["help"].as_str().unwrap();
    assert!(
        help.contains("2 other expressions fail for the same reason"),
        "{help}"
    );
}

#[test]
fn severity_follows_failure_policy() {
    let severity = |spec: &str| {
        let findings = runtime_errors(&policy(POD, "CREATE", spec), &[]);
        let severity = |finding: &Value| finding["severity"].as_str().unwrap().to_owned();
        findings.iter().map(severity).collect::<Vec<_>>()
    };
    let validation = "  validations:\n  - expression: object.spec.nodeName != 'a'\n";
    assert_eq!(severity(validation), ["warning"]);
    assert_eq!(
        severity(&format!("  failurePolicy: Ignore\n{validation}")),
        ["note"]
    );
    let message = "  validations:\n  - expression: object.metadata.name != 'a'\n    messageExpression: \
                   string(object.spec.nodeName)\n";
    assert_eq!(severity(message), ["note"]);
    // The validation is always true, so its messageExpression is never evaluated.
    let never = "  validations:\n  - expression: 'true'\n    messageExpression: string(object.spec.nodeName)\n";
    assert_eq!(severity(never), [""; 0]);
}

#[test]
fn absent_params_are_reported() {
    let spec = "  paramKind: {apiVersion: v1, kind: ConfigMap}\n  validations:\n  - expression: has(params.data)\n";
    let binding = |reference: &str| {
        format!(
            "{}---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: \
             b}}\nspec:\n  policyName: p\n  validationActions: [Deny]\n{reference}",
            policy(POD, "CREATE", spec)
        )
    };
    let findings = runtime_errors(&binding(""), &[]);
    assert_eq!(shown(&findings), [""; 0], "has() of null is false");
    let spec_read = binding("").replace("has(params.data)", "params.metadata.name != ''");
    assert_eq!(
        shown(&runtime_errors(&spec_read, &[])),
        ["absent-params params"]
    );
    let named = "  paramRef: {name: a, namespace: default, parameterNotFoundAction: Allow}\n";
    assert_eq!(shown(&runtime_errors(&binding(named), &[])), [""; 0]);
    let cluster = binding(named).replace("kind: ConfigMap", "kind: Namespace");
    let cluster = cluster.replace("has(params.data)", "has(params.metadata)");
    let findings = runtime_errors(&cluster, &[]);
    assert_eq!(findings.len(), 1, "{findings:#?}");
    assert_eq!(findings[0]["rule"], "param-scope");
    assert_eq!(
        findings[0]["witness"]["error"],
        "paramRef.namespace must not be provided for a cluster-scoped `paramKind`"
    );
}

#[test]
fn witness_matches_selectors() {
    let kind =
        "  paramKind: {apiVersion: v1, kind: Namespace}\n  validations:\n  - expression: 'true'\n";
    for (selector, name) in [
        ("namespaceSelector: {matchLabels: {team: a}}", "default"),
        (
            "namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: shop}}",
            "shop",
        ),
        (
            "namespaceSelector: {matchExpressions: [{key: kubernetes.io/metadata.name, operator: NotIn, values: [default]}]}",
            "example",
        ),
        ("objectSelector: {matchLabels: {team: a}}", "default"),
    ] {
        // Here, the selector is in the policy. Below, it is in the binding.
        let spec = "  validations:\n  - expression: object.metadata.annotations.a == ''\n";
        let manifest = policy(DEPLOYMENT, "CREATE", spec);
        let manifest = manifest.replace(
            "  matchConstraints:\n",
            &format!("  matchConstraints:\n    {selector}\n"),
        );
        let findings = runtime_errors(&manifest, &[]);
        let namespace = &findings[0]["witness"]["namespaceObject"]["metadata"];
        assert_eq!(namespace["name"], name, "{selector}: {findings:#?}");
        assert_eq!(namespace["labels"]["kubernetes.io/metadata.name"], name);
        assert_eq!(findings[0]["witness"]["request"]["namespace"], name);
        let binding = format!(
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\n\
             spec:\n  policyName: p\n  validationActions: [Deny]\n  matchResources: {{{selector}}}\n  paramRef: \
             {{name: a, namespace: a, parameterNotFoundAction: Allow}}\n"
        );
        let manifest = format!("{}{binding}", policy(DEPLOYMENT, "CREATE", kind));
        let findings = runtime_errors(&manifest, &[]);
        assert_eq!(findings.len(), 1, "{selector}: {findings:#?}");
        assert_eq!(findings[0]["rule"], "param-scope");
        let namespace = &findings[0]["witness"]["namespaceObject"]["metadata"];
        assert_eq!(namespace["name"], name, "{findings:#?}");
    }
}

#[test]
fn report_has_witness_and_guard() {
    let spec = "  validations:\n  - expression: object.metadata.labels.team != ''\n";
    let findings = runtime_errors(&policy(POD, "CREATE", spec), &[]);
    let witness = &findings[0]["witness"];
    assert_eq!(witness["error"], "no such key: labels");
    assert_eq!(witness["request"]["operation"], "CREATE");
    assert_eq!(witness["request"]["oldObject"], Value::Null);
    assert_eq!(
        witness["request"]["object"]["spec"]["restartPolicy"],
        "Always"
    );
    assert_eq!(witness["namespaceObject"]["metadata"]["name"], "default");
    assert_eq!(
        findings[0]["message"],
        "`object.metadata.labels` may be absent: CREATE of a Pod without metadata.labels fails with `no such key: labels`"
    );
    let help = findings[0]["help"].as_str().unwrap();
    assert!(
        help.contains("`has(object.metadata.labels) && has(object.metadata.labels.team) && ...`"),
        "{help}"
    );
    let suggestions = findings[0]["suggestions"].as_array().unwrap();
    let effects: Vec<_> = suggestions.iter().map(|it| &it["effect"]["id"]).collect();
    assert_eq!(effects, ["denied", "passed"]);
    assert!(
        suggestions
            .iter()
            .all(|it| !it["edits"].as_array().unwrap().is_empty()),
        "{suggestions:#?}"
    );
}

/// The search for witnesses must end within its time limit for every policy.
#[test]
fn witness_search_stays_within_budget() {
    let numbers = (0..200)
        .map(|n| n.to_string())
        .collect::<Vec<_>>()
        .join(",");
    let nested = format!(
        "[{numbers}].all(a, [{numbers}].all(b, [{numbers}].all(c, a + b + c >= 0))) && object.spec.nodeName == ''"
    );
    assert_eq!(validation_findings(POD, "CREATE", &nested), [""; 0]);
    let many = vec!["(has(object.spec.nodeName) || object.spec.hostname == 'a')"; 200].join(" && ");
    assert!(validation_findings(POD, "CREATE", &many).len() <= 1);
    let doubled: Vec<_> = (1..60)
        .map(|n| {
            format!(
                "  - {{name: v{n}, expression: 'variables.v{0} && variables.v{0}'}}\n",
                n - 1
            )
        })
        .collect();
    let doubled = doubled.concat();
    let spec = format!(
        "  variables:\n  - {{name: v0, expression: object.spec.hostNetwork}}\n{doubled}  validations:\n  - expression: \
         variables.v59\n"
    );
    let findings = runtime_errors(&policy(POD, "CREATE", &spec), &[]);
    assert_eq!(shown(&findings), ["absent-field object.spec.hostNetwork"]);
}

fn has_error(evaluation: &Evaluation) -> bool {
    let decisions = evaluation.decisions.iter();
    let annotations = evaluation.audit_annotations.iter();
    let condition = evaluation.match_conditions.as_ref();
    decisions
        .into_iter()
        .any(|d| d.evaluation == EvaluationResult::Error)
        || annotations
            .into_iter()
            .any(|a| a.action == AuditAnnotationAction::Error)
        || condition.is_some_and(|condition| condition.error.is_some())
}

#[test]
fn evaluation_fails_for_witnesses_of_parity_policies() {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    let paths = vec![root.join("parity/policies")];
    let input = Input::load(&paths, KindFilter::Policies, &mut Cursor::new(b""));
    let options = Options {
        paths,
        ..Options::default()
    };
    let report = check::run(&options, &mut Cursor::new(b"")).unwrap();
    let report = serde_json::to_value(report).unwrap();
    let mut n_tried = 0;
    for found in report["findings"].as_array().unwrap() {
        let witness = &found["witness"];
        if !witness.is_object() || found["severity"] != "warning" || found["rule"] == "param-scope"
        {
            continue;
        }
        let policies = input.policies.iter();
        let named = |name: &Option<String>| name.as_deref() == found["policy"].as_str();
        let mut policies = policies.filter(|policy| named(&policy.value.name));
        let policy = policies.next().unwrap();
        let request = &witness["request"];
        let text = |value: &Value, name: &str| value[name].as_str().unwrap_or_default().to_owned();
        let (kind, resource) = (&request["kind"], &request["resource"]);
        let gvk = Gvk::new(
            text(kind, "group"),
            text(kind, "version"),
            text(kind, "kind"),
        );
        let gvr = Gvr::new(
            text(resource, "group"),
            text(resource, "version"),
            text(resource, "resource"),
        );
        let object = |value: &Value| value.is_object().then(|| Object::new(value));
        let groups = request["userInfo"]["groups"]
            .as_array()
            .into_iter()
            .flatten();
        let asked = AdmissionRequest {
            operation: text(request, "operation").parse().unwrap(),
            gvk: gvk.clone(),
            gvr: gvr.clone(),
            subresource: text(request, "subResource"),
            name: text(request, "name"),
            namespace: text(request, "namespace"),
            object: object(&request["object"]),
            old_object: object(&request["oldObject"]),
            user_info: UserInfo {
                username: text(&request["userInfo"], "username"),
                groups: groups
                    .map(|group| group.as_str().unwrap().to_owned())
                    .collect(),
                ..UserInfo::default()
            },
            ..AdmissionRequest::default()
        };
        let namespace = &witness["namespaceObject"];
        let namespace = namespace.is_object().then(|| Namespace::new(namespace));
        let params = object(&witness["params"]);
        let (no_params, namespaces) = (ParamList::default(), BTreeMap::new());
        let context =
            ReviewContext::new(&no_params, &namespaces, Arc::new(AuthorizerList::default()));
        let evaluation = Admission::new(&policy.value, KubernetesVersion::DEFAULT).evaluate(
            &asked,
            (&gvr, &gvk),
            params.as_ref(),
            namespace.as_ref(),
            &context,
        );
        assert!(has_error(&evaluation), "{found:#}\n{evaluation:#?}");
        n_tried += 1;
    }
    assert!(n_tried > 10, "{n_tried}");
}

/// Returns the error in the witness of the first finding of `rule`. The boolean is true if the finding is marked as
/// unproven.
#[track_caller]
fn proof(rule: &str, expression: &str) -> (Value, bool) {
    let spec = format!("  validations:\n  - expression: {}\n", json!(expression));
    let findings = manifest::findings(&policy(DEPLOYMENT, "CREATE", &spec), &[]);
    let mut of_rule = findings
        .iter()
        .filter(|finding| finding["rule"] == json!(rule));
    let actual = of_rule.next().unwrap_or_else(|| panic!("{findings:#?}"));
    (
        actual["witness"]["error"].clone(),
        actual["unproven"] == json!(true),
    )
}

#[test]
fn type_error_has_witness() {
    let rule = "no-matching-overload";
    let overload = (json!("no such overload"), false);
    assert_eq!(proof(rule, "object.spec.replicas <= '5'"), overload);
    // The API server sets `metadata.generation`, so the field exists and the comparison fails.
    assert_eq!(proof(rule, "object.metadata.generation <= '5'"), overload);
    // `strategy` has only optional fields, so its size may be 0.
    let compared = (json!("no such overload: _<_"), false);
    let sized = "size(object.spec.strategy) == 0 || object.spec.strategy < b'x'";
    assert_eq!(proof(rule, sized), compared);
    let resources = "object.spec.template.spec.containers[0].resources";
    let keys = format!("{resources}.all(name, name > 0)");
    assert_eq!(proof(rule, &keys), overload);
    let sized = format!("size({resources}) != 0 && {resources} < b'x'");
    assert_eq!(proof(rule, &sized), compared);
    let guarded = "!has(object.spec.paused) || object.spec.replicas < '5'";
    assert_eq!(proof(rule, guarded), overload);
    let within = "object.spec.template.spec.containers.all(c, !has(c.ports) || c.ports.all(p, p.containerPort < '1'))";
    assert_eq!(proof(rule, within), overload);
    let absent = (json!("no such key: replica"), false);
    assert_eq!(proof("undefined-field", "object.spec.replica < 5"), absent);
    // The value with the wrong type is the condition of a macro, an operand, or the range of a macro.
    let counted = "object.metadata.?annotations.orValue({}).existsOne(k, v, v)";
    assert_eq!(proof(rule, counted), overload);
    let operand = "object.spec.replicas == 1 || object.spec.template.spec.containers[0].name";
    assert_eq!(proof("type-mismatch", operand), overload);
    let range = (json!("got 'types.Int', expected iterable type"), false);
    assert_eq!(
        proof("not-a-range", "object.spec.replicas.all(r, r > 1)"),
        range
    );
    // Only one of the kinds evaluates the failing expression.
    let by_kind = "['Pod', 'Job', 'CronJob', 'DaemonSet', 'ReplicaSet'].exists(k, k == object.kind) ? \
                   object.spec.containers.all(c, c.name != '') : (object.kind == 'Pod' ? object.spec.containers : \
                   object.kind == 'CronJob' ? object.spec.jobTemplate.spec.template.spec.containers : object.kind in \
                   ['Job', 'Deployment'] ? object.spec.template.spec.containers : []).all(c, has(c.env) && c.env.all(e, \
                   e.name > 1))";
    assert_eq!(proof(rule, by_kind), overload);
}

#[test]
fn type_error_without_witness_is_marked_as_unproven() {
    let guarded = "object.metadata.name.charAt(3) + object.metadata.name.charAt(1) != 'zq' || object.spec.replicas < '5'";
    assert_eq!(proof("no-matching-overload", guarded), (Value::Null, true));
}

/// Returns the help of the first finding for the match condition `expression`.
fn help_on(expression: &str) -> String {
    let spec = format!(
        "  matchConditions:\n  - name: a\n    expression: {}\n  validations:\n  - expression: 'true'\n",
        json!(expression)
    );
    let findings = runtime_errors(&policy(POD, "CREATE", &spec), &[]);
    findings[0]["help"].as_str().unwrap().to_owned()
}

#[test]
fn guard_for_negation_is_inside_the_negation() {
    let has = "has(object.metadata.labels) && has(object.metadata.labels.app)";
    for negated in [
        "!(object.metadata.labels.app == 'x')",
        "object.metadata.name != 'a' && !(object.metadata.labels.app == 'x')",
        "!object.metadata.labels.app.startsWith('x')",
        "!(!(object.metadata.labels.app == 'x'))",
    ] {
        let help = help_on(negated);
        // The guard precedes the negation. If the negation is only a part of the expression, the help also contains the
        // negation.
        assert!(
            help.contains(&format!("`{has} && ...`"))
                || help.contains(&format!("`{has} && !(object.metadata.labels.app == 'x')`")),
            "{negated}: {help}"
        );
    }
    for plain in [
        "object.metadata.labels.app == 'x'",
        "object.metadata.labels.app != ''",
        "!(object.metadata.labels.app == '')",
    ] {
        let help = help_on(plain);
        assert!(help.contains(&format!("{has} && ...")), "{plain}: {help}");
    }
    for (expression, guard) in [
        (
            "object.metadata.labels.app != 'x'",
            "`!has(object.metadata.labels) || !has(object.metadata.labels.app) || ...`",
        ),
        (
            "!('k' in object.metadata.labels)",
            "`object.metadata.?labels.orValue({})`",
        ),
        (
            "!object.spec.containers.exists(c, c.securityContext.privileged)",
            "`c.?securityContext.?privileged.orValue(false)",
        ),
        (
            "object.spec.containers.all(c, !c.securityContext.privileged)",
            "`c.?securityContext.?privileged.orValue(false)",
        ),
        // The guard is true for an absent list. `orValue([])` has the same effect, because `all` is true for an empty
        // list.
        (
            "object.spec.volumes.all(v, !has(v.hostPath))",
            "write `object.spec.?volumes.orValue([])`",
        ),
        (
            "!object.spec.volumes.filter(v, has(v.hostPath)).all(v, v.name == 'a')",
            "write `object.spec.?volumes.orValue([])`",
        ),
        (
            "object.spec.volumes.exists(v, has(v.hostPath))",
            "write `object.spec.?volumes.orValue([])`",
        ),
        (
            "object.spec.containers.all(c, c.ports.all(p, p.containerPort > 0))",
            "write `c.?ports.orValue([])`",
        ),
    ] {
        let help = help_on(expression);
        assert!(help.contains(guard), "{expression}: {help}");
    }
}

/// Returns the messages of the `wildcard-kinds` findings for a validation of `resources` in the group apps. Each
/// message is preceded by the kind in the finding's witness.
fn wildcard_findings(resources: &str, spec: &str, expression: &str) -> Vec<String> {
    let spec = format!(
        "{spec}  validations:\n  - expression: {}\n",
        json!(expression)
    );
    let findings = manifest::findings(&policy(("apps", "v1", resources), "CREATE", &spec), &[]);
    let partial = findings
        .iter()
        .filter(|finding| finding["rule"] == "wildcard-kinds");
    let shown = partial.map(|finding| {
        assert_eq!(finding["severity"], "note", "{finding}");
        let kind = &finding["witness"]["request"]["kind"]["kind"];
        format!(
            "{}: {}",
            kind.as_str().unwrap(),
            finding["message"].as_str().unwrap()
        )
    });
    shown.collect()
}

#[test]
fn wildcard_failure_for_some_kinds_is_reported_with_count() {
    let findings = wildcard_findings("*", "", "object.spec.replicas > 1");
    let said = "the expression fails for 2 of the 5 kinds that the rules match by wildcards";
    assert_eq!(findings.len(), 1, "{findings:?}");
    assert!(findings[0].ends_with(said), "{findings:?}");
    assert!(
        findings[0].starts_with("ControllerRevision: ") || findings[0].starts_with("DaemonSet: "),
        "{findings:?}"
    );
    for sound in [
        "!has(object.spec) || !has(object.spec.replicas) || object.spec.replicas > 1",
        "object.kind in ['ControllerRevision', 'DaemonSet'] || object.spec.replicas > 1",
        "object.metadata.name != 'a'",
    ] {
        assert!(wildcard_findings("*", "", sound).is_empty(), "{sound}");
    }
    let narrowed =
        "  matchConditions:\n  - {name: a, expression: 'object.kind == \"Deployment\"'}\n";
    assert!(wildcard_findings("*", narrowed, "object.spec.replicas > 1").is_empty());
    // There are no such findings if the rule lists the resource by name, or if the expression fails for all kinds. A
    // failure for all kinds is a finding of a different rule.
    assert!(wildcard_findings("deployments", "", "object.spec.replicas > 1").is_empty());
    assert!(wildcard_findings("*", "", "object.spec.replica > 1").is_empty());
}

#[test]
fn dns_option_name_reads_are_not_reported() {
    holds(
        POD,
        "CREATE",
        "!has(object.spec.dnsConfig) || !has(object.spec.dnsConfig.options) || \
         object.spec.dnsConfig.options.all(o, o.name != 'ndots')",
    );
}

#[test]
fn fields_that_validation_requires_are_not_reported() {
    const TERMS: &str = "object.spec.?affinity.?nodeAffinity.?requiredDuringSchedulingIgnoredDuringExecution\
                         .?nodeSelectorTerms.orValue([]).all(t, t.?matchExpressions.orValue([]).all(e, ";
    const TOLERATIONS: &str = "object.spec.?tolerations.orValue([]).all(t, ";
    for (condition, is_reported) in [
        (format!("{TERMS}e.operator != 'In' || !('a' in e.values)))"), false),
        (format!("{TERMS}!('a' in e.values)))"), true),
        (
            format!("{TOLERATIONS}t.?operator.orValue('') != 'Equal' || t.key != 'a')"),
            false,
        ),
        (format!("{TOLERATIONS}t.key != 'a')"), true),
        (format!("{TOLERATIONS}t.operator != 'Equal')"), true),
        (
            "object.spec.containers.all(c, !has(c.resources.limits) || c.resources.limits.memory != '1Gi')"
                .to_owned(),
            true,
        ),
    ] {
        let spec = format!("  validations:\n  - expression: {}\n", json!(condition));
        let findings = manifest::findings(&policy(POD, "CREATE", &spec), &[]);
        let is_absent = |finding: &Value| {
            let rule = finding["rule"].as_str().unwrap_or_default();
            rule.starts_with("absent-")
        };
        let is_found = findings.iter().any(is_absent);
        assert_eq!(is_found, is_reported, "{condition}: {findings:#?}");
    }
}

#[test]
fn ephemeral_containers_are_assumed_only_in_existing_pods() {
    let reads = |spec: &str| {
        format!(
            "!has({spec}.ephemeralContainers) || {spec}.ephemeralContainers.all(c, c.securityContext.privileged != true)"
        )
    };
    for (resource, spec) in [
        (DEPLOYMENT, "object.spec.template.spec"),
        (("batch", "v1", "jobs"), "object.spec.template.spec"),
        (
            ("batch", "v1", "cronjobs"),
            "object.spec.jobTemplate.spec.template.spec",
        ),
        (("", "v1", "podtemplates"), "object.template.spec"),
    ] {
        holds(resource, "CREATE, UPDATE", &reads(spec));
    }
    holds(POD, "CREATE", &reads("object.spec"));
    fails(
        POD,
        "CREATE, UPDATE",
        &reads("object.spec"),
        &["absent-field object.spec.ephemeralContainers[0].securityContext"],
    );
}
