//! Tests the help of findings of `kubectl vap check`: the advice must fit the mistake, and advised expressions must
//! compile.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use serde_json::{Value, json};

use crate::manifest;
use crate::runtime_errors::{DEPLOYMENT, POD, policy};

/// Returns the rule, the message and the help of each finding for `manifest`. Omits notes, and findings of rules that
/// have their own tests.
fn findings(manifest: &str) -> Vec<(String, String, String)> {
    let text = |finding: &Value, name: &str| finding[name].as_str().unwrap_or_default().to_owned();
    let actual = manifest::findings(manifest, &[]);
    actual
        .iter()
        .filter(|finding| {
            let rule = finding["rule"].as_str().unwrap_or_default();
            let is_other = ["or-value-without-optional", "ignored-containers"].contains(&rule);
            finding["severity"] != "note" && finding["hidden"] != true && !is_other
        })
        .map(|finding| {
            (
                text(finding, "rule"),
                text(finding, "message"),
                text(finding, "help"),
            )
        })
        .collect()
}

fn validation_findings(
    resource: (&str, &str, &str),
    expression: &str,
) -> Vec<(String, String, String)> {
    let spec = format!("  validations:\n  - expression: {}\n", json!(expression));
    findings(&policy(resource, "CREATE", &spec))
}

/// Asserts that `expression` has one finding of `rule`. Its help must contain `advice`. Findings about absent values
/// are ignored unless `rule` is about absent values.
#[track_caller]
fn advises(resource: (&str, &str, &str), expression: &str, (rule, advice): (&str, &str)) {
    let findings = validation_findings(resource, expression);
    let is_hidden = |of: &str| of.starts_with("absent-") && !rule.starts_with("absent-");
    let mut own = findings.iter().filter(|(of, ..)| !is_hidden(of));
    let (Some((of, _, help)), None) = (own.next(), own.next()) else {
        panic!("{expression}: {findings:#?}")
    };
    assert_eq!(of, rule, "{expression}");
    assert!(help.contains(advice), "{expression}: {help}");
}

/// Returns the code in backticks after `before` in `help`.
fn advised<'a>(help: &'a str, before: &str) -> &'a str {
    let (_, rest) = help.split_once(before).unwrap();
    rest.split('`').nth(1).unwrap()
}

#[test]
fn boolean_field_as_condition_gets_advice_to_compare_it() {
    let plain = "object.spec.template.spec.securityContext.?runAsNonRoot.orValue(false)";
    let whole = format!("write `{plain} == true`");
    advises(DEPLOYMENT, plain, ("result-type", &whole));
    let misplaced = "object.spec.template.spec.securityContext.runAsNonRoot.orValue(false)";
    advises(DEPLOYMENT, misplaced, ("absent-field", &whole));
    assert_eq!(
        validation_findings(DEPLOYMENT, &format!("{plain} == true")),
        []
    );
    advises(
        DEPLOYMENT,
        "object.spec.template.spec.containers.all(c, !(c.?securityContext.?privileged))",
        ("no-matching-overload", ".orValue(false)"),
    );
}

/// For each chain of selections without a guard, the guarded expression in the help must compile and have no finding.
#[test]
fn advised_guarded_expression_compiles() {
    for (chain, rest) in [
        (
            "object.spec.template.spec.securityContext.runAsNonRoot",
            ".orValue(false)",
        ),
        (
            "object.spec.template.spec.securityContext.runAsNonRoot",
            " == true",
        ),
        ("object.metadata.labels['app']", " != ''"),
        ("object.metadata.labels['app']", ".orValue('') != ''"),
        (
            "object.spec.template.spec.initContainers",
            ".all(c, c.name != '')",
        ),
        ("object.metadata.annotations.a", ".startsWith('b')"),
        ("request.userInfo.extra['a'][0]", " == 'b'"),
        ("object.spec.selector.matchExpressions", ".size() == 0"),
    ] {
        let findings = validation_findings(DEPLOYMENT, &format!("{chain}{rest}"));
        let [(rule, _, help)] = &findings[..] else {
            panic!("{chain}{rest}: {findings:#?}")
        };
        assert!(rule.starts_with("absent-"), "{rule}");
        let rest = rest.strip_prefix(".orValue(false)").unwrap_or(rest);
        let rest = rest.strip_prefix(".orValue('')").unwrap_or(rest);
        let changed = advised(help, "write ");
        let better = match changed.strip_suffix("...") {
            Some(guard) => format!("{guard}{chain}{rest}"),
            None => format!("{changed}{rest}"),
        };
        assert_eq!(validation_findings(DEPLOYMENT, &better), [], "{better}");
    }
}

#[test]
fn presence_test_without_field_selection_gets_advice() {
    let macro_call = "invalid-macro-call";
    for (expression, advice) in [
        (
            "has(object.metadata.labels['app'])",
            "write `'app' in object.metadata.labels`",
        ),
        (
            "object.spec.replicas > 1 && has(object.metadata.labels['a(b)'])",
            "write `'a(b)' in object.metadata.labels`",
        ),
        (
            "has(object.spec.template.spec.containers[1])",
            "write `size(object.spec.template.spec.containers) > 1`",
        ),
        (
            "has('app' in object.metadata.labels)",
            "remove has(): `'app' in object.metadata.labels` is already a test",
        ),
        ("has(oldObject)", "write `oldObject != null`"),
        ("has(object.?spec)", "write `object.?spec.hasValue()`"),
    ] {
        advises(DEPLOYMENT, expression, (macro_call, advice));
    }
}

#[test]
fn operators_on_quantities_get_advice() {
    let rule = "no-matching-overload";
    advises(
        DEPLOYMENT,
        "quantity('1Gi') <= quantity('2Gi')",
        (
            rule,
            "write `quantity('1Gi').compareTo(quantity('2Gi')) <= 0`",
        ),
    );
    let spec = "  variables:\n  - {name: v, expression: \"semver('1.2.3')\"}\n  validations:\n  - expression: variables.v > \
                variables.v\n";
    let findings = findings(&policy(POD, "CREATE", spec));
    assert!(
        findings[0].2.contains("semver(a).compareTo(semver(b)) > 0"),
        "{findings:#?}"
    );
    advises(
        DEPLOYMENT,
        "(quantity('1Gi') + quantity('2Gi')).isInteger()",
        (rule, "write `quantity(a).add(quantity(b))`"),
    );
    advises(
        DEPLOYMENT,
        "(quantity('1Gi') * 2).isInteger()",
        (rule, "convert each with `asApproximateFloat()`"),
    );
}

#[test]
fn optional_compared_with_value_gets_advice() {
    const INCOMPARABLE: &str = "incomparable-types";
    for (expression, advice) in [
        (
            "object.?metadata.?labels.orValue({})[?'a'] == 'b'",
            "write `object.?metadata.?labels.orValue({})[?'a'].orValue(...)`",
        ),
        (
            "'b' != dyn(object.metadata.?labels[?'a'])",
            "write `dyn(object.metadata.?labels[?'a']).orValue(...)`",
        ),
    ] {
        advises(POD, expression, (INCOMPARABLE, advice));
    }
}

#[test]
fn misplaced_field_gets_hint_with_correct_path() {
    advises(
        DEPLOYMENT,
        "object.spec.containers.all(c, c.image == 'x')",
        (
            "undefined-field",
            "did you mean `template.spec.containers`?",
        ),
    );
    advises(
        ("batch", "v1", "cronjobs"),
        "object.spec.containers.all(c, c.image == 'x')",
        (
            "undefined-field",
            "did you mean `jobTemplate.spec.template.spec.containers`?",
        ),
    );
    advises(
        DEPLOYMENT,
        "object.replicas > 1",
        ("undefined-field", "did you mean `spec.replicas`?"),
    );
    advises(
        POD,
        "object.spec.template.spec.containers.all(c, c.image == 'x')",
        ("undefined-field", "remove `template.spec`"),
    );
}

#[test]
fn path_with_one_step_too_many_gets_hint_with_shorter_path() {
    let exec = policy(
        ("", "v1", "pods/exec"),
        "CONNECT",
        "  validations:\n  - expression: object.spec.command == ['ls']\n",
    );
    let findings = findings(&exec);
    let (rule, _, help) = &findings[0];
    assert_eq!(rule, "undefined-field");
    assert!(help.starts_with("did you mean `object.command`?"), "{help}");
}

#[test]
fn field_of_another_version_of_the_kind_gets_hint_with_versions() {
    let autoscalers = ("autoscaling", "*", "horizontalpodautoscalers");
    let spec = "  validations:\n  - expression: object.spec.metrics.size() > 0\n";
    let equivalent = policy(autoscalers, "CREATE", spec);
    let exact = equivalent.replace("  validations:", "    matchPolicy: Exact\n  validations:");
    for (manifest, advice) in [
        (
            equivalent,
            "only HorizontalPodAutoscaler in `v2` has the field: write `apiVersions: [v2]`, so that",
        ),
        (
            exact,
            "only HorizontalPodAutoscaler in `v2` has the field: test `object.apiVersion` first",
        ),
    ] {
        let findings = findings(&manifest);
        let (rule, _, help) = &findings[0];
        assert_eq!(rule, "undefined-field", "{findings:#?}");
        assert!(help.starts_with(advice), "{help}");
    }
}

#[test]
fn field_name_that_is_no_identifier_gets_advice_to_use_index() {
    let crd =
        manifest::crd(&json!({"x-dash": {"type": "string"}, "namespace": {"type": "string"}}));
    for (expression, advice) in [
        (
            "object.spec.x_dash == 'c'",
            "write `['x-dash']` instead of `.x_dash`",
        ),
        (
            "object.spec.x__dash__dash == 'c'",
            "write `['x-dash']` instead of `.x__dash__dash`",
        ),
        ("object.spec.namespce == 'c'", "did you mean `namespace`?"),
        ("object.spec.namespace == 'c'", ""),
    ] {
        let spec = format!("  validations:\n  - expression: {expression}\n");
        let manifest = format!(
            "{}---\n{crd}\n",
            policy(("ex.io", "v1", "lims"), "CREATE", &spec)
        );
        let findings = findings(&manifest);
        let helps: Vec<&str> = findings.iter().map(|finding| finding.2.as_str()).collect();
        assert!(helps.iter().all(|help| help.contains(advice)), "{helps:?}");
        assert_eq!(helps.is_empty(), advice.is_empty(), "{helps:?}");
    }
}

#[test]
fn similar_resource_names_are_suggested() {
    let spec = "  validations:\n  - expression: object.spec.replicas > 1\n";
    for (resource, meant) in [
        ("deployments/scales", "did you mean `deployments/scale`?"),
        ("deploymnets", "did you mean `deployments`?"),
        ("deployments/stattus", "did you mean `deployments/status`?"),
    ] {
        let findings = findings(&policy(("apps", "v1", resource), "UPDATE", spec));
        let helps: Vec<&str> = findings.iter().map(|finding| finding.2.as_str()).collect();
        assert!(
            helps.iter().any(|help| help.contains(meant)),
            "{findings:#?}"
        );
    }
}

#[test]
fn unquoted_negation_gets_advice_to_add_quotes() {
    for (text, expected) in [
        ("!has(object.x)", "required"),
        ("!object.metadata.name in ['a', 'b']", "syntax"),
        ("!(object.metadata.name == 'a')", "syntax"),
        ("!(object.metadata.name > 'a')", "invalid-yaml"),
        ("!has(object.x) || object.x", "invalid-yaml"),
        ("!has(object.x) && object.x", "invalid-yaml"),
        ("!has(object.x) ? true : object.x", "invalid-yaml"),
    ] {
        let spec = format!("  validations:\n  - expression: {text}\n");
        let manifest = policy(POD, "CREATE", &spec);
        let findings = findings(&manifest);
        let (rule, message, help) = &findings[0];
        assert_eq!(rule, expected, "{text}: {findings:#?}");
        let has_cause = [message, help]
            .iter()
            .any(|it| it.contains("`!` begins a tag"));
        assert!(has_cause, "{text}: {findings:#?}");
        let all = manifest::findings(&manifest, &[]);
        let finding = all.iter().find(|it| it["rule"] == expected).unwrap();
        let quoted = format!("\"{text}\"");
        assert_eq!(finding["fix"]["text"], quoted, "{text}: {finding:#}");
    }
    let spec = "  validations:\n  - expression: !!str has(object.x) &&\n";
    let findings = findings(&policy(POD, "CREATE", spec));
    assert!(!findings[0].2.contains("begins a tag"), "{findings:#?}");
}

#[test]
fn mistake_gives_only_one_finding() {
    let rules = |spec: &str| -> Vec<String> {
        let actual = findings(&policy(DEPLOYMENT, "CREATE", spec)).into_iter();
        actual.map(|finding| finding.0).collect()
    };
    // The validation reads variable a. Variable a reads variable b, which is declared later.
    let later = "  variables:\n  - {name: a, expression: variables.b}\n  - {name: b, expression: 'true'}\n  validations:\n  - \
                 expression: variables.a\n";
    assert_eq!(rules(later), ["undefined-field"]);
    let own = "  variables:\n  - {name: a, expression: variables.a && true}\n  validations:\n  - expression: variables.a\n";
    let actual = findings(&policy(DEPLOYMENT, "CREATE", own));
    assert_eq!(actual.len(), 1, "{actual:#?}");
    assert!(
        actual[0].2.contains("a variable cannot read itself"),
        "{actual:#?}"
    );
    // The expression has the same error for each type of `object`, so there is only one finding.
    let validation = |text: &str| format!("  validations:\n  - expression: {}\n", json!(text));
    assert_eq!(
        rules(&validation("object.metadata.name in 'abc'")),
        ["no-matching-overload"]
    );
    // The field is undefined, so the advice contains no guard for an absent field.
    assert_eq!(
        rules(&validation(
            "object.spec.template.spec.affinity.nodeAfinity.x == 'a'"
        )),
        ["undefined-field"]
    );
}

#[test]
fn list_element_of_impossible_type_gets_advice() {
    let findings = validation_findings(DEPLOYMENT, "'app' in object.spec.template.spec.containers");
    assert_eq!(
        findings[0].1,
        "a string is never in a list of maps: this is always false"
    );
    let findings = validation_findings(DEPLOYMENT, "object.spec.replicas in ['1', '2']");
    assert_eq!(
        findings[0].1,
        "a number is never in a list of strings: this is always false"
    );
}

#[test]
fn functions_and_names_of_other_languages_are_suggested() {
    for (expression, advice) in [
        (
            "object.metadata.name.startWith('x')",
            "did you mean `startsWith`?",
        ),
        (
            "object.metadata.name.matchs('x')",
            "did you mean `matches`?",
        ),
        (
            "object.metadata.name.lowerASCII() == 'x'",
            "did you mean `lowerAscii`?",
        ),
        ("quantiy('1') == quantity('1')", "did you mean `quantity`?"),
        (
            "object.spec.template.spec.containers.exist(c, true)",
            "did you mean `exists`?",
        ),
        ("len(object.metadata.name) == 1", "write `size()`"),
        (
            "object.metadata.name.toLowerCase() == 'x'",
            "write `lowerAscii()`",
        ),
        ("object.spec.paused == True", "write `true`"),
        (
            "object?.metadata?.labels['a'] == 'b'",
            "write `object.?metadata.?labels[?'a'].orValue(...)`",
        ),
        (
            "'a' in object.namespace.metadata.labels",
            "`namespaceObject` for its Namespace",
        ),
    ] {
        let findings = validation_findings(DEPLOYMENT, expression);
        assert!(
            findings.iter().any(|(_, _, help)| help.contains(advice)),
            "{expression}: {findings:#?}"
        );
    }
    // There is no suggestion. A function is not suggested in place of a variable, and a name is not suggested in place
    // of itself.
    for expression in ["names == 'a'", "resourcee == 'a'", "name('a') == 'a'"] {
        let findings = validation_findings(DEPLOYMENT, expression);
        assert!(!findings.is_empty());
        assert!(
            findings
                .iter()
                .all(|(_, _, help)| !help.contains("did you mean")),
            "{expression}: {findings:#?}"
        );
    }
}

#[test]
fn operand_types_and_pattern_syntax_are_shown() {
    let overload = "no-matching-overload";
    for (expression, rule, advice) in [
        (
            "object.spec.replicas + 'a' == 'b'",
            overload,
            "write `string(object.spec.replicas)`",
        ),
        (
            "'a' in object.metadata.name",
            overload,
            "write `object.metadata.name.contains('a')`",
        ),
        (
            "object.metadata.name[0] == 'a'",
            overload,
            "`charAt()` or `substring()`",
        ),
        (
            "object.metadata.name.matches('(?=a)b')",
            "invalid-literal",
            "invalid or unsupported Perl syntax: `(?=`",
        ),
        (
            "object.metadata.name.matches('*.example.com')",
            "invalid-literal",
            "to match this glob, write `^.*[.]example[.]com$`",
        ),
        (
            "object.metadata.name",
            "result-type",
            "a condition must be a bool",
        ),
    ] {
        advises(DEPLOYMENT, expression, (rule, advice));
    }
}

#[test]
fn wrong_scope_is_reported_as_unserved_resource() {
    let text = policy(
        POD,
        "CREATE",
        "  validations:\n  - expression: object.metadata.name != 'x'\n",
    );
    let text = text.replacen(
        "    - apiGroups",
        "    - scope: Cluster\n      apiGroups",
        1,
    );
    assert!(text.contains("scope: Cluster"), "{text}");
    let any_version = text.replacen("apiVersions: ['v1']", "apiVersions: ['*']", 1);
    assert_ne!(any_version, text);
    for text in [text, any_version] {
        let findings = findings(&text);
        let [(rule, _, help)] = &findings[..] else {
            panic!("{findings:#?}")
        };
        assert_eq!(rule, "unserved-resource");
        assert!(help.contains("did you mean `scope: Namespaced`?"), "{help}");
    }
}

#[test]
fn guards_that_replace_operands_of_conjunctions_are_parenthesized() {
    let text = "object.metadata.namespace != 'a' && object.spec.template.spec.priorityClassName.startsWith('low')";
    let guard = "or `(!has(object.spec.template.spec.priorityClassName) || \
                 object.spec.template.spec.priorityClassName.startsWith('low'))` to allow them";
    advises(DEPLOYMENT, text, ("absent-field", guard));
}

#[test]
fn inverted_guards_are_explained() {
    for (text, advice) in [
        (
            "has(object.spec.hostPID) || object.spec.hostPID == false",
            "the test is inverted: `has(object.spec.hostPID) || ...` evaluates the rest only if the value is absent; \
             write `has(object.spec.hostPID) && ...` to deny such requests, or `!has(object.spec.hostPID) || ...` to \
             allow them",
        ),
        (
            "!has(object.spec.hostPID) && object.spec.hostPID == false",
            "the test is inverted: `!has(object.spec.hostPID) && ...` evaluates the rest only if the value is absent",
        ),
    ] {
        advises(POD, text, ("absent-field", advice));
    }
}

#[test]
fn advice_for_converted_quantity_keeps_operator_and_number() {
    for (comparison, expected) in [
        ("int(@) < 4", "< 0"),
        ("4 >= int(@)", "<= 0"),
        ("int(@) == 4", "== 0"),
    ] {
        let quantity = "c.resources.limits['cpu']";
        let text = format!(
            "object.spec.containers.all(c, !has(c.resources) || !has(c.resources.limits) || \
             !('cpu' in c.resources.limits) || {})",
            comparison.replace('@', quantity)
        );
        let advice = format!("`quantity({quantity}).compareTo(quantity('4')) {expected}`");
        advises(POD, &text, ("failing-conversion", &advice));
    }
}

/// Returns the severity, the rule and the help of each finding for `manifest`.
fn all_findings(manifest: &str) -> Vec<String> {
    let actual = manifest::findings(manifest, &[]);
    let text = |finding: &Value| {
        let text = |name: &str| finding[name].as_str().unwrap_or_default();
        format!("{} {}: {}", text("severity"), text("rule"), text("help"))
    };
    actual.iter().map(text).collect()
}

#[test]
fn kustomize_patches_have_only_notes() {
    let patch = |kind: &str| {
        format!(
            "$patch: delete\napiVersion: admissionregistration.k8s.io/v1\nkind: {kind}\nmetadata: {{name: p}}\n"
        )
    };
    for kind in [
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
        "MutatingAdmissionPolicy",
        "ValidatingWebhookConfiguration",
    ] {
        let expected = "note invalid-object: check the output of `kubectl kustomize` instead";
        assert_eq!(all_findings(&patch(kind)), [expected], "{kind}");
    }
    let definition = |version: &str, spec: &str| {
        let of_definition = all_findings(&format!(
            "apiVersion: apiextensions.k8s.io/{version}\nkind: CustomResourceDefinition\n\
             metadata: {{name: things.example.com}}\n{spec}"
        ));
        let [only] = <[String; 1]>::try_from(of_definition).unwrap();
        only
    };
    let help = "if this file is a kustomize patch, check the output of `kubectl kustomize` instead";
    assert_eq!(
        definition("v1beta1", ""),
        format!("note old-version: {help}")
    );
    assert_eq!(definition("v1", ""), format!("note invalid-object: {help}"));
    let whole = definition("v1beta1", "spec: {group: example.com}\n");
    assert!(whole.starts_with("error old-version: write "), "{whole}");
}

#[test]
fn key_that_merge_key_also_sets_has_a_note() {
    let merged = |second: &str| {
        all_findings(&format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: foos.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  \
             names: {{kind: Foo, plural: foos, singular: foo, listKind: FooList}}\n  versions:\n  \
             - {{name: v1, served: true, storage: true, schema: {{openAPIV3Schema: {{type: object, properties: \
             {{a: &a {{type: string, description: first}}, b: {second}}}}}}}}}\n"
        ))
    };
    let note = merged("{<<: *a, description: second}");
    assert!(
        matches!(&note[..], [only] if only.starts_with("note duplicate-key: clients that convert YAML to JSON")),
        "{note:?}"
    );
    let error = merged("{type: string, description: first, description: second}");
    assert!(
        matches!(&error[..], [only] if only.starts_with("error duplicate-key: remove one")),
        "{error:?}"
    );
}

#[test]
fn unbound_policy_is_suggested_for_unknown_policy() {
    let policy_named = |name: &str| {
        let validation = "  validations: [{expression: \"object.metadata.name != 'x'\"}]\n";
        policy(POD, "CREATE", validation).replace("{name: p}", &format!("{{name: {name}}}"))
    };
    let binding = |policy: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {{name: b-{policy}}}\nspec: {{policyName: {policy}, validationActions: [Deny]}}\n"
        )
    };
    for (bound, unbound, referenced, expected) in [
        ("c1.pods", "m1.metadata", "m1.pods", "m1.metadata"),
        ("c1.pods", "p1.names", "c2.pods", "c1.pods"),
        ("c1.pods", "c1.podz", "c1.podx", "c1.podz"),
        // The binding misspells the name of the bound policy.
        ("replicas", "labels", "replicass", "replicas"),
    ] {
        let documents = [
            policy_named(bound),
            binding(bound),
            policy_named(unbound),
            binding(referenced),
        ];
        let findings = all_findings(&documents.join("---\n"));
        let help = findings
            .iter()
            .find(|it| it.starts_with("warning unknown-policy"));
        let help = help.unwrap_or_else(|| panic!("{findings:?}"));
        let advised = advised(help, "did you mean ");
        assert_eq!(advised, expected, "{referenced}");
    }
}

#[test]
fn unquoted_text_has_hint_to_add_quotes() {
    let help_on = |field: &str| {
        let spec = format!(
            "  validations: [{{expression: \"object.metadata.name != 'x'\"}}]\n  auditAnnotations: [{{key: a, \
             valueExpression: {}}}]\n",
            json!(field)
        );
        let findings = findings(&policy(POD, "CREATE", &spec));
        let [(rule, _, help)] = <[_; 1]>::try_from(findings).unwrap();
        format!("{rule}: {help}")
    };
    let advice = "syntax: a valueExpression is a CEL expression, whose strings have quotes";
    for (text, quoted) in [
        ("Image is required", "'Image is required'"),
        (
            "images and tags must not be empty",
            "'images and tags must not be empty'",
        ),
        ("The name isn't valid", "\"The name isn't valid\""),
        ("if the Pod is new", "'if the Pod is new'"),
    ] {
        assert_eq!(
            help_on(text),
            format!("{advice}: write `{quoted}`; the API server rejects the policy")
        );
    }
    let with_both = help_on("The name isn't \"valid\"");
    assert_eq!(
        with_both,
        format!("{advice}; the API server rejects the policy")
    );
    let expression = help_on("'a' if object.metadata.name == 'b' else 'c'");
    assert!(expression.contains("? 'a' : 'c'"), "{expression}");
}

#[test]
fn placeholder_in_a_name_is_not_corrected() {
    let policies = policy(
        POD,
        "CREATE",
        "  validations: [{expression: \"!has(object.spec.nodeSelector)\"}]\n",
    );
    let binding = |name: &str, selector: &str| {
        format!(
            "{policies}---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {{name: {name}}}\nspec: {{policyName: p, validationActions: [Deny], matchResources: \
             {{namespaceSelector: {{matchLabels: {selector}}}}}}}\n"
        )
    };
    for (name, selector, advice) in [
        (
            "b",
            "{kubernetes.io/metadata.name: <NAME>}",
            "this is a placeholder: set the name of a namespace",
        ),
        (
            "b",
            "{env: '${ENV}'}",
            "this is a placeholder: set the value",
        ),
        ("<NAME>", "{env: a}", "this is a placeholder: set the name"),
        ("b", "{'<KEY>': a}", "this is a placeholder: set the key"),
    ] {
        let findings = all_findings(&binding(name, selector));
        let of_binding = findings
            .iter()
            .filter(|it| !it.starts_with("note unwatched"));
        let expected = format!("error invalid-name: {advice}; the API server rejects the object");
        // The API server rejects the binding, so there is no finding about a lock-out.
        assert_eq!(
            of_binding.collect::<Vec<_>>(),
            [&expected],
            "{name} {selector}"
        );
    }
    let sound = all_findings(&binding("b", "{kubernetes.io/metadata.name: kube-system}"));
    let is_lockout = |finding: &String| finding.contains(" lockout: ");
    assert!(sound.iter().any(is_lockout), "{sound:?}");
}

#[test]
fn match_condition_with_alternatives_gets_advice_to_skip_requests() {
    let help_on = |condition: &str| {
        let spec = format!(
            "  matchConditions: [{{name: c, expression: {}}}]\n  validations: [{{expression: \"false\"}}]\n",
            json!(condition)
        );
        let findings = findings(&policy(POD, "CREATE", &spec));
        let of_condition = findings
            .into_iter()
            .find(|(rule, ..)| rule == "absent-field");
        of_condition.map(|(.., help)| help).unwrap_or_default()
    };
    let both =
        help_on("object.metadata.labels['app'] == 'a' || object.metadata.labels['app'] == 'b'");
    let default = "or `object.metadata.?labels[?'app'].orValue('')` to skip them";
    assert!(
        both.starts_with("write `!has(object.metadata.labels) || "),
        "{both}"
    );
    assert!(both.contains(default), "{both}");
    let other = help_on("object.metadata.name == 'x' || object.metadata.labels['app'] == 'b'");
    let guard = "write `has(object.metadata.labels) && 'app' in object.metadata.labels && ";
    assert!(!other.contains("orValue"), "{other}");
    assert!(
        other.contains(guard.trim_start_matches("write ")),
        "{other}"
    );
}

#[test]
fn match_condition_on_deletions_gets_advice_to_read_old_object() {
    let help_on = |field: &str, condition: &str| {
        let spec = match field {
            "matchConditions" => format!(
                "  matchConditions: [{{name: c, expression: {}}}]\n  validations: [{{expression: \"request.userInfo.username \
                 == 'a'\"}}]\n",
                json!(condition)
            ),
            _ => format!("  validations: [{{expression: {}}}]\n", json!(condition)),
        };
        let findings = findings(&policy(POD, "UPDATE, DELETE", &spec));
        let of_root = findings
            .into_iter()
            .find(|(rule, ..)| rule == "absent-object");
        of_root.map(|(.., help)| help).unwrap()
    };
    let first = "write `(object == null ? oldObject : object)` instead of `object` to test the deleted object, or \
                 `object == null || ...` to apply the policy to such requests, or `object != null && ...` to skip them";
    let condition = "object.metadata.name.startsWith('x')";
    let help = help_on("matchConditions", condition);
    assert!(help.starts_with(first), "{help}");
    for (field, expression) in [
        ("validations", condition),
        (
            "matchConditions",
            "object.metadata.name != oldObject.metadata.name",
        ),
    ] {
        let help = help_on(field, expression);
        assert!(!help.contains("? oldObject"), "{help}");
    }
}
