//! The table of rules.

use super::{Entry, Example};

/// Declares the enum of rules with an entry for each.
macro_rules! rules {
    ($($name:ident $id:literal: $summary:literal, $example:expr, $mend:literal;)*) => {
        /// A rule: a type of finding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $summary] $name,)*
        }

        impl Rule {
            /// All rules, sorted by id.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// Returns the entry of the rule in the table.
            #[must_use]
            pub const fn entry(self) -> Entry {
                match self {
                    $(Self::$name => Entry {
                        id: $id,
                        summary: $summary,
                        example: $example,
                        mend: $mend,
                    },)*
                }
            }
        }
    };
}

const fn expression(wrong: &'static str, right: &'static str) -> Example {
    Example::Expression { wrong, right }
}

const fn spec(wrong: &'static str, right: &'static str) -> Example {
    Example::Spec { wrong, right }
}

const fn file(wrong: &'static str, right: &'static str) -> Example {
    Example::File { wrong, right }
}

const fn words(text: &'static str) -> Example {
    Example::Words(text)
}

rules! {
    AbsentElement "absent-element":
        "an index exceeds the length of a list in some valid request",
        expression(
            "object.spec.template.spec.containers[1].image != ''",
            "size(object.spec.template.spec.containers) < 2 || object.spec.template.spec.containers[1].image != ''",
        ),
        "Check the length first, use `[?1]` with `orValue()`, or iterate with all() or exists(). `size(l) > 1 && ...` denies shorter lists, `size(l) < 2 || ...` allows them, and with `orValue()` the default decides. If the expression is negated, put the guard inside the negation: `!(size(l) > 1 && ...)`. The output of `-o json` contains a request for which the expression fails.";
    AbsentField "absent-field":
        "an optional field is read without a guard",
        expression(
            "object.spec.template.spec.securityContext.runAsNonRoot == true",
            "object.spec.template.spec.securityContext.?runAsNonRoot.orValue(false) == true",
        ),
        "Test the field with has() before you read it: `has(a.b) && ...` denies objects without the field, `!has(a.b) || ...` allows them. Or use `.?` with `orValue()` and the effective default of the field, such as `true` for allowPrivilegeEscalation. If the expression is negated, put the guard inside the negation: `!(has(a.b) && ...)` is true for an object without the field, and `has(a.b) && !(...)` is false. A guard in another validation has no effect, since all validations are evaluated. In a mutating policy, `metadata.name` is absent if the API server generates the name. The output of `-o json` contains a request for which the expression fails.";
    AbsentKey "absent-key":
        "a map key is read without a guard",
        expression(
            "object.spec.template.metadata.labels['team'] != ''",
            "'team' in object.spec.template.metadata.labels && object.spec.template.metadata.labels['team'] != ''",
        ),
        "Test the key with `in` before you read it: `'key' in m && ...` denies objects without the key, `!('key' in m) || ...` allows them. Or use `[?'key']` with `orValue()`. The map itself may also be absent. If the expression is negated, put the guard inside the negation: `!('key' in m && ...)` is true for an object without the key, and `'key' in m && !(...)` is false. The output of `-o json` contains a request for which the expression fails.";
    AbsentObject "absent-object":
        "`object`, `oldObject` or `namespaceObject` is read where it is null: on DELETE, on CREATE, or for cluster-scoped resources",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE, DELETE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name \
             != 'a'",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name != 'a'",
        ),
        "Test for null first: `object != null && ...` denies these requests, `object == null || ...` allows them. In a negated expression, `!(object != null && ...)` also allows them. If you remove the operation from the rule, the policy allows all requests with this operation. If the rules only match DELETE, use `oldObject`: `object` is always null. The output of `-o json` contains a request for which the expression fails.";
    AbsentParams "absent-params":
        "`params` is read, but a binding provides none",
        words("A policy with a paramKind reads `params.data`, and one of its bindings has no paramRef."),
        "Add a paramRef to the binding, or test for null first: `params != null && ...` denies requests without params, `params == null || ...` allows them. In a negated expression, `!(params != null && ...)` also allows them.";
    CheckFailed "check-failed":
        "the check of a policy took too long or failed with an internal error",
        words("A megabyte of expressions under a rule that matches hundreds of kinds can take more than 60 s."),
        "Shorten or split the expression that the message names. If it names no expression, this is a bug in kubectl-vap: report it with the policy.";
    ClusterReadFailed "cluster-read-failed":
        "the cluster data that a policy needs cannot be read",
        words("`kubectl vap check --live`, by a user who is not allowed to list bindings, or while an aggregated API is down"),
        "Request the permission in the message, or wait until the API responds. The finding lists what was not checked.";
    CompilationFailed "compilation-failed":
        "the API server rejects the expression",
        expression("object.metadata.name.find('[') == ''", r"object.metadata.name.find('\\[') == ''"),
        "Correct the part that the message names. The expression passes type checking, but the API server cannot compile it.";
    ConstantCondition "constant-condition":
        "a condition is always true, or always false, at least for some of the operations or kinds",
        expression("size(object.metadata.name) >= 0", "size(object.metadata.name) > 0"),
        "Review the condition: its value does not depend on the request. Common causes are `||` instead of `&&`, a \
         bound that every size satisfies, the size of a list after `map()`, and a literal left over from a test. \
        Another cause is `request.operation == 'DELETE' && ...`: this is false for all other operations, and should \
        be `request.operation != 'DELETE' || ...`.";
    ContradictingMessage "contradicting-message":
        "a validation contradicts its message",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE, UPDATE]\n    resources: [deployments]\nvalidations:\n- expression: \
             size(object.metadata.name) < 20\n  message: at most 20 characters",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE, UPDATE]\n    resources: [deployments]\nvalidations:\n- expression: \
             size(object.metadata.name) <= 20\n  message: at most 20 characters",
        ),
        "The expression of a validation must be true for the objects that the policy allows. If the expression is \
         false, users see the message. Correct the operator in the expression, or correct the number or phrase in the \
        message. The rule recognizes only a few phrases, such as `at most 5` and `is not allowed`, and only before or \
        after a literal of the expression.";
    ContradictorySelector "contradictory-selector":
        "the requirements of a selector contradict each other, so it selects nothing",
        spec(
            "matchConstraints:\n  objectSelector:\n    matchLabels: {team: a}\n    matchExpressions:\n    \
             - {key: team, operator: NotIn, values: [a]}\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name != 'a'",
            "matchConstraints:\n  objectSelector:\n    matchExpressions:\n    \
             - {key: team, operator: NotIn, values: [a]}\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name != 'a'",
        ),
        "Remove one of the requirements: a selector selects an object only if all requirements hold.";
    CostLimit "cost-limit":
        "a rule of a CustomResourceDefinition may exceed the API server's cost limit",
        file(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: boxes.example.com\nspec:\n  \
             group: example.com\n  scope: Namespaced\n  names: {kind: Box, plural: boxes}\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
             spec:\n            type: object\n            properties:\n              labels: {type: array, items: {type: string}}\n            \
             x-kubernetes-validations:\n            - rule: self.labels.all(a, self.labels.exists_one(b, a == b))",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata:\n  name: boxes.example.com\nspec:\n  \
             group: example.com\n  scope: Namespaced\n  names: {kind: Box, plural: boxes}\n  versions:\n  - name: v1\n    \
             served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        properties:\n          \
             spec:\n            type: object\n            properties:\n              labels: {type: array, maxItems: 10, items: {type: \
             string, maxLength: 20}}\n            \
             x-kubernetes-validations:\n            - rule: self.labels.all(a, self.labels.exists_one(b, a == b))",
        ),
        "Add maxItems, maxProperties and maxLength to the lists, maps and strings that the rule reads, and to those that contain them, or simplify the rule. The API server estimates the cost for the largest object that fits into a request.";
    CostNearLimit "cost-near-limit":
        "for an object of 64 KiB, the expression may reach 80% of the API server's cost limit",
        expression(
            "!has(object.spec.template.spec.volumes) || object.spec.template.spec.containers.all(c, \
             object.spec.template.spec.volumes.exists(v, v.name == 'data'))",
            "!has(object.spec.template.spec.volumes) || \
             object.spec.template.spec.volumes.exists(v, v.name == 'data')",
        ),
        "Avoid nested loops: iterate once, look up values in a map, or call a function that needs no loop. For custom resources, set maxItems and maxLength in the CustomResourceDefinition. An expression that exceeds its limit fails, regardless of its value.";
    DisjointRules "disjoint-rules":
        "no request matches both the rules of a binding and those of its policy",
        words("The rules of a policy match deployments, and the matchResources of its binding list pods."),
        "A binding can only narrow its policy: use resources and operations that the rules of the policy also match.";
    DivisionByZero "division-by-zero":
        "a divisor is 0 in some valid request",
        expression(
            "100 / object.spec.replicas > 10",
            "object.spec.replicas == 0 || 100 / object.spec.replicas > 10",
        ),
        "Test for 0 first, or multiply instead: `100 > 10 * x`. The output of `-o json` contains a request for which the expression fails.";
    DuplicateKey "duplicate-key":
        "a YAML map contains the same key twice",
        spec("failurePolicy: Fail\nfailurePolicy: Ignore", "failurePolicy: Fail"),
        "Remove one of the two keys. kubectl converts YAML to JSON and silently keeps the last value; the API server \
         rejects YAML with duplicate keys. If a merge key (`<<`) also provides the key, the finding is only a note: \
        kubectl sends the key once. Its value is that of the merge key if the merge key comes last.";
    DuplicateName "duplicate-name":
        "two objects of one kind have the same name",
        words("Two input files contain a ValidatingAdmissionPolicy with the same name."),
        "List the file once, or rename one of the objects.";
    DuplicateValue "duplicate-value":
        "a value occurs twice in a list whose values must be unique",
        spec(
            "matchConditions:\n- {name: a, expression: object.metadata.name != 'a'}\n\
             - {name: a, expression: object.metadata.name != 'b'}",
            "matchConditions:\n- {name: a, expression: object.metadata.name != 'a'}\n\
             - {name: b, expression: object.metadata.name != 'b'}",
        ),
        "Remove or change one of the two values.";
    DuplicateVariable "duplicate-variable":
        "two variables have the same name",
        spec(
            "variables:\n- {name: a, expression: object.spec.replicas}\n- {name: a, expression: object.metadata.name}\n\
             validations:\n- expression: variables.a != 'x'",
            "variables:\n- {name: a, expression: object.spec.replicas}\n- {name: b, expression: object.metadata.name}\n\
             validations:\n- expression: variables.a < 5 && variables.b != 'x'",
        ),
        "Give each variable a unique name: the API server accepts duplicates and evaluates the last one wherever the name is read.";
    EmptyInput "empty-input":
        "standard input contains no object",
        words("`helm template chart | kubectl vap check -`, where helm fails and prints nothing."),
        "Check the command before the pipe.";
    ExemptResource "exempt-resource":
        "a rule matches a resource that is exempt from policies",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [authentication.k8s.io]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [tokenreviews]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [\"\"]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [serviceaccounts/token]",
        ),
        "Remove the resource from the rule, and restrict write access with RBAC. Policies, their bindings, TokenReviews, SubjectAccessReviews and similar reviews are exempt from all policies.";
    FailingCall "failing-call":
        "a call fails whenever it is evaluated, or may exhaust the memory of the API server",
        expression(
            "quantity(string(object.spec.replicas)).isLessThan(quantity('512MB'))",
            "quantity(string(object.spec.replicas)).isLessThan(quantity('512M'))",
        ),
        "Correct the literal argument. The message contains the evaluator's error. With failurePolicy Fail, each request that reaches the call is denied. In Kubernetes 1.34 to 1.36, `lists.range(n)` creates all numbers before the cost limit applies: compare `n` with a maximum first.";
    FailingConversion "failing-conversion":
        "a string from the request, or a default, is converted without a check of its format",
        expression(
            "!('n' in object.spec.selector.matchLabels) || int(object.spec.selector.matchLabels['n']) > 0",
            "!('n' in object.spec.selector.matchLabels) || object.spec.selector.matchLabels['n'].matches('^[0-9]{1,9}$') && \
             int(object.spec.selector.matchLabels['n']) > 0",
        ),
        "Check first with isQuantity(), isIP(), isCIDR(), isURL(), isSemver(), or with matches() for numbers and times: `isIP(x) && ...` denies other strings, `!isIP(x) || ...` allows them. Otherwise the user gets the conversion error instead of the validation's message, and with failurePolicy Ignore the request is allowed. The output of `-o json` contains a request for which the expression fails.";
    FailingMutation "failing-mutation":
        "a mutation cannot be applied to a valid object",
        words("An ApplyConfiguration `Object{spec: Object.spec{tolerations: [...]}}` under a rule for Pods, whose list of \
               tolerations is atomic; or a JSONPatch that adds `/metadata/labels/team` to an object without labels."),
        "Use a JSONPatch for fields that an ApplyConfiguration cannot set. Give each field a value of its type. Check with has() that the paths of a JSONPatch exist, and add missing parents first. The output of `-o json` contains a request for which the mutation fails.";
    IgnoredContainers "ignored-containers":
        "a policy checks the containers of Pods, but not their init containers",
        expression(
            "object.spec.template.spec.containers.all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)",
            "(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).all(c, !has(c.securityContext) || !has(c.securityContext.privileged) || !c.securityContext.privileged)",
        ),
        "Check all lists of containers. An init container runs with the same rights as another container, and `kubectl debug` adds ephemeral containers to running Pods. The finding is not reported if another policy in the input matches the same resources and checks their init containers. If such a policy is not in the input, allow the finding with a comment.";
    IgnoredMessage "ignored-message":
        "the API server ignores the value of a messageExpression",
        words("A messageExpression such as `'denied\\n' + object.metadata.name`, whose value always has a line break."),
        "Write a message in one line. The API server ignores a message with a line break, and shows `message` or the expression of the validation in its place.";
    IgnoredParams "ignored-params":
        "a binding has a paramRef, but its policy has no paramKind",
        words("A binding has `paramRef: {name: limits}`, and its policy has no paramKind."),
        "Add a paramKind to the policy, or remove the paramRef, which the API server ignores.";
    ImagePrefix "image-prefix":
        "a test for the prefix of an image also accepts images of other registries",
        expression(
            "(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).all(c, c.image.startsWith('registry.example.com'))",
            "(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).all(c, c.image.startsWith('registry.example.com/'))",
        ),
        "End the prefix with `/`, or with `:` and the port. Without such an ending, \
         `registry.example.com.attacker.org/app` also starts with `registry.example.com`.";
    ImpossibleGroup "impossible-group":
        "a rule lists an API group that cannot exist",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps/v1]\n    apiVersions: [v1]\n    operations: [CREATE]\n    resources: [deployments]", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE]\n    resources: [deployments]"),
        "Write the group without its version, and `\"\"` for the core group.";
    ImpossibleOperation "impossible-operation":
        "a rule lists operations that requests for the resource never have",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: ['']\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [pods/ephemeralcontainers]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: ['']\n    apiVersions: [v1]\n    \
             operations: [UPDATE]\n    resources: [pods/ephemeralcontainers]",
        ),
        "Use the operation of requests for the subresource: CONNECT for exec, attach, portforward and proxy; \
         CREATE for binding, eviction and token; UPDATE for the other subresources.";
    ImpossibleValue "impossible-value":
        "a field is compared with, or set to, a value that it never has",
        expression("request.operation == 'create'", "request.operation == 'CREATE'"),
        "Write the value as it appears in requests: operations in uppercase, kinds as in a manifest, resources in the plural.";
    IncomparableTypes "incomparable-types":
        "two compared values are never equal because of their types",
        expression("object.spec.replicas == '50'", "object.spec.replicas == 50"),
        "Compare with a value of the field's type. For other types, `==` and `in` are always false, and `!=` is always true.";
    IneffectiveSelector "ineffective-selector":
        "a namespaceSelector has no effect on the cluster-scoped resources that the rules match",
        spec(
            "matchConstraints:\n  namespaceSelector: {matchLabels: {team: a}}\n  resourceRules:\n  - apiGroups: ['']\n    \
             apiVersions: [v1]\n    operations: [CREATE]\n    resources: [persistentvolumes]",
            "matchConstraints:\n  objectSelector: {matchLabels: {team: a}}\n  resourceRules:\n  - apiGroups: ['']\n    \
             apiVersions: [v1]\n    operations: [CREATE]\n    resources: [persistentvolumes]",
        ),
        "Use an objectSelector or a match condition: every namespaceSelector matches objects without a namespace. To select namespaces by name, use the label `kubernetes.io/metadata.name`, which the API server sets.";
    IntOrString "int-or-string":
        "a value that may be an integer or a string is used where only one of the two types is accepted",
        expression(
            "!has(object.spec.strategy.rollingUpdate) || object.spec.strategy.rollingUpdate.maxUnavailable <= 1",
            "!has(object.spec.strategy.rollingUpdate) || type(object.spec.strategy.rollingUpdate.maxUnavailable) == int && \
             object.spec.strategy.rollingUpdate.maxUnavailable <= 1",
        ),
        "Test the type first: `type(x) == int && ...` denies strings, `type(x) != int || ...` allows them. For example, `maxUnavailable` of a Deployment defaults to the string `25%`, and a port may be a name. The output of `-o json` contains a request for which the expression fails.";
    InvalidLiteral "invalid-literal":
        "a function rejects its literal argument",
        expression("object.metadata.name.matches('[')", r"object.metadata.name.matches('\\[')"),
        "Write a literal that the function can parse: a regular expression in Go's syntax, a duration such as '1h', or an RFC 3339 time.";
    InvalidMacroCall "invalid-macro-call":
        "a macro is called with arguments that it does not accept",
        expression(
            "object.spec.template.spec.containers.all(c.name, c.name != '')",
            "object.spec.template.spec.containers.all(c, c.name != '')",
        ),
        "Pass the arguments that the macro expects: has() takes a field selection; the first argument of all(), exists(), map() and filter() is the name of a variable.";
    InvalidName "invalid-name":
        "a name, key or label does not have the required format",
        spec(
            "matchConditions:\n- {name: is a pod, expression: 'true'}",
            "matchConditions:\n- {name: is-a-pod, expression: 'true'}",
        ),
        "Follow the format in the message. Names of objects consist of lowercase letters, digits, hyphens and dots. Keys and values of labels may also contain uppercase letters and underscores, and have at most 63 bytes.";
    InvalidObject "invalid-object":
        "the document does not have the structure of its kind",
        spec("validations:\n  expression: 'true'", "validations:\n- expression: 'true'"),
        "Give the field a value of its type: a list, a map, a string, a number or a boolean.";
    InvalidOptionalSelection "invalid-optional-selection":
        "an optional selection is malformed",
        words("The operator `.?` is not followed by the name of a field."),
        "Write `.?` followed by a field name, or `[?key]` for a key.";
    InvalidProbe "invalid-probe":
        "the API server rejects the PolicyProbe",
        words("A case of a PolicyProbe expects a decision other than Allow and Deny."),
        "Change the field that the message names. `kubectl vap test` still runs the other cases of the probe.";
    InvalidSuppression "invalid-suppression":
        "a suppression comment is invalid",
        spec(
            "validations:\n# vap: allow incomparable-types\n- expression: object.spec.replicas == '50'",
            "validations:\n# vap: allow incomparable-types, shown in a talk\n- expression: object.spec.replicas == '50'",
        ),
        "Write one rule id, a comma, and the reason for accepting the finding: `# vap: allow RULE, reason`.";
    InvalidValue "invalid-value":
        "the API server rejects the value",
        spec("failurePolicy: Never", "failurePolicy: Ignore"),
        "Use one of the values in the message.";
    InvalidYaml "invalid-yaml":
        "the document is not valid YAML",
        file("spec: [", "spec: []"),
        "Fix the syntax at the marked location. If the file is a template, render it first.";
    LateGuard "late-guard":
        "a field is tested with `has()` after it is read",
        expression(
            "object.spec.minReadySeconds != 0 && has(object.spec.minReadySeconds)",
            "has(object.spec.minReadySeconds) && object.spec.minReadySeconds != 0",
        ),
        "Write the test before the comparison: `has(f) && f != 'a'` denies objects without the field, and \
         `!has(f) || f != 'a'` allows them. The order does not change the result: `&&` is false if one operand is \
         false, and `||` is true if one operand is true, even if the other operand fails.";
    LimitExceeded "limit-exceeded":
        "the expression exceeds a limit of the API server",
        words("An expression has more than 100,000 characters, or nests deeper than 250."),
        "Split the expression into variables or validations.";
    Lockout "lockout":
        "the policy denies all requests, requests that the cluster itself needs, or the request that installs the CRD of its own params",
        words("A policy with the rule `*/*` is bound with Deny, and requires a label that leases and nodes do not have."),
        "Name the intended resources instead of `*`, or exclude the components of the cluster with a matchCondition such as `!('system:nodes' in request.userInfo.groups)` or `!request.userInfo.username.startsWith('system:')`. A namespaceSelector with `kubernetes.io/metadata.name` NotIn kube-system and kube-node-lease also helps, but does not exclude cluster-scoped objects such as nodes. The policy allows excluded requests. The check evaluates requests of kubelets, the scheduler and the controllers against the expressions of the policy. A validation that is false for every request that the rules match denies all of them: compare it with the resources and operations of the rules. Two validations also deny every request if no request passes both.";
    NegatedExistsOne "negated-exists-one":
        "the negation of `exists_one()` is also true if several elements match",
        expression(
            "!(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).exists_one(c, c.image.endsWith(':latest'))",
            "!(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).exists(c, c.image.endsWith(':latest'))",
        ),
        "`exists_one()` is false if no element matches, and also if two or more match. Write `exists()`.";
    NewerFunction "newer-function":
        "a function or macro is not available in the API server of --kubernetes-version",
        words(
            "An expression in policy.yaml calls sort() on a list, and the command is `kubectl vap check policy.yaml \
             --kubernetes-version 1.34`.",
        ),
        "Avoid the function, or upgrade the cluster first: the message names the version that adds the function.";
    NoCrds "no-crds":
        "the paths of --crds contain no CustomResourceDefinition",
        words("`kubectl vap check policies/ --crds policies/`, where no file has a CustomResourceDefinition."),
        "List files or directories that contain CustomResourceDefinitions.";
    NoFieldSelection "no-field-selection":
        "a field is selected from a type that has no fields",
        expression("object.spec.replicas.max <= 50", "object.spec.replicas <= 50"),
        "Select fields from objects or maps. Index a list, or iterate over it with all(), exists() or map(). A value that is null in every request, such as `oldObject` on CREATE, has no fields either.";
    NoMatchingOverload "no-matching-overload":
        "no overload accepts arguments of these types",
        expression(
            "object.metadata.name + object.spec.replicas != ''",
            "object.metadata.name + string(object.spec.replicas) != ''",
        ),
        "Convert one operand with int(), double() or string(), or call a function that accepts these types.";
    NotARange "not-a-range":
        "a macro iterates over a type that cannot be iterated over",
        expression("object.spec.replicas.all(r, r > 0)", "object.spec.replicas > 0"),
        "Iterate over a list or a map. For a map, the variable of the macro is a key.";
    NotAType "not-a-type":
        "a name that is not a type is used as a type, before Kubernetes 1.37",
        expression("object{name: 'a'}.name == 'a'", "{'name': 'a'}.name == 'a'"),
        "Use a map literal for a value with fields.";
    NotAnObject "not-an-object":
        "the document is not a Kubernetes object",
        file("- a\n- b", "apiVersion: v1\nkind: ConfigMap"),
        "List only files with Kubernetes objects, each with apiVersion and kind.";
    NotChecked "not-checked":
        "types that could not be checked, with the reason",
        words("A rule matches a custom resource whose CustomResourceDefinition has no schema."),
        "Add the CustomResourceDefinition to the input or with --crds. With --strict, this note counts as a finding.";
    OldVersion "old-version":
        "an object has a version that API servers do not serve by default",
        file(
            "apiVersion: admissionregistration.k8s.io/v1alpha1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
             spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: 'true'",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
             spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: 'true'",
        ),
        "Use admissionregistration.k8s.io/v1, and apiextensions.k8s.io/v1 for a CustomResourceDefinition. API servers \
         serve the alpha and beta versions of policies and bindings only if --runtime-config enables them, so the \
        finding is a warning. The finding is an error if the API server of --kubernetes-version does not serve the \
        object's `apiVersion`, or if only newer API servers than the checked version serve it.";
    OrValueWithoutOptional "or-value-without-optional":
        "`or()` or `orValue()` is called on a value that is not an optional",
        expression(
            "object.spec.template.spec.containers.all(c, c.name.orValue('') != '')",
            "object.spec.template.spec.containers.all(c, c.?name.orValue('') != '')",
        ),
        "Select the field with `.?`, or the key or element with `[?key]`. Without the `?`, the default is never used. \
         Up to Kubernetes 1.36, the call returns the value itself; in 1.37 and later, the call fails with `no such \
        overload`.";
    ParamKindNotFound "param-kind-not-found":
        "no API serves the paramKind",
        spec(
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMaps\nvalidations:\n- expression: params.metadata.name != object.metadata.name",
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMap\nvalidations:\n- expression: params.metadata.name != object.metadata.name",
        ),
        "Use the apiVersion and kind of a resource that the cluster serves. While the paramKind is not served, no request can be evaluated.";
    ParamScope "param-scope":
        "the scope of the paramKind does not fit the paramRef of a binding, so requests fail before any evaluation",
        words("The paramKind is Namespace, which is cluster-scoped, but paramRef.namespace is set."),
        "Remove paramRef.namespace for a cluster-scoped paramKind. Set paramRef.namespace for a namespaced paramKind \
         if the rules match cluster-scoped resources.";
    ParamsNotFound "params-not-found":
        "a binding refers to params that do not exist",
        words("The binding has paramRef {name: limits, namespace: default, parameterNotFoundAction: Deny}, and that \
               namespace has no such object."),
        "Create the params, or correct the paramRef of the binding.";
    PartialName "partial-name":
        "a prefix does not end with a separator, or a suffix does not start with one, so longer names also match",
        expression(
            "request.userInfo.username.startsWith('system:serviceaccount:ci')",
            "request.userInfo.username.startsWith('system:serviceaccount:ci:')",
        ),
        "End a prefix with the separator, and start a suffix with it: the user names of service accounts have `:` \
         after the namespace, signers have `/` after the domain, and subdomains have `.` before the domain. Without \
        the separator, `system:serviceaccount:ci-2:a` also starts with `system:serviceaccount:ci`, and \
        `otherexample.com` also ends with `example.com`.";
    RemovableLabel "removable-label":
        "a match condition reads labels or annotations that the same UPDATE can remove",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [UPDATE]\n    resources: [deployments]\nmatchConditions:\n- name: frozen\n  expression: has(object.metadata.labels) && 'frozen' in object.metadata.labels\nvalidations:\n- expression: object.spec == oldObject.spec", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [UPDATE]\n    resources: [deployments]\nmatchConditions:\n- name: frozen\n  expression: has(oldObject.metadata.labels) && 'frozen' in oldObject.metadata.labels\nvalidations:\n- expression: object.spec == oldObject.spec"),
        "Read the labels of `oldObject`, or use an objectSelector, which is evaluated for both objects.";
    RepeatedOperand "repeated-operand":
        "`&&` or `||` has the same operand twice",
        expression(
            "object.spec.template.spec.containers.all(c, has(c.livenessProbe) && has(c.livenessProbe))",
            "object.spec.template.spec.containers.all(c, has(c.livenessProbe) && has(c.readinessProbe))",
        ),
        "Correct one of the operands: the second operand has no effect. If the second operand is a copy of the first, \
         a field or value in it was probably meant to be changed.";
    Required "required":
        "a required field is missing",
        expression("", "true"),
        "Add the field.";
    ResultType "result-type":
        "the expression has a result of the wrong type",
        expression("object.metadata.name", "object.metadata.name != ''"),
        "A validation or match condition must return a bool. A messageExpression must return a string. A \
         valueExpression must return a string or null.";
    ShadowedVariable "shadowed-variable":
        "the variable of a macro shadows a predefined variable, such as `object`",
        expression(
            "object.spec.template.spec.containers.all(object, object.name != '')",
            "object.spec.template.spec.containers.all(c, c.name != '')",
        ),
        "Rename the macro's variable: inside the macro, it hides the predefined variable of the same name.";
    SkippedObject "skipped-object":
        "objects of kinds that are not checked",
        file(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
             spec:\n  group: example.com\n  names: {kind: Widget, plural: widgets}\n  versions: []",
        ),
        "No action is needed, unless the kind is misspelled.";
    StaleBaseline "stale-baseline":
        "a baseline entry without a finding",
        words("A policy was fixed after `--write-baseline`, and the baseline still contains its finding."),
        "Run `--write-baseline` again. Otherwise the finding is not reported if it occurs again.";
    StaticManifest "static-manifest":
        "an API server cannot load the directory of `--static`",
        words("`kubectl vap check --static manifests/`, where a policy in the directory has a paramKind, or a name that does not \
               end in `.static.k8s.io`."),
        "Policies and bindings in the `staticManifestsDir` of an API server have names that end in `.static.k8s.io`, use admissionregistration.k8s.io/v1, and have no paramKind or paramRef; each binding has its policy in the same directory. One invalid object prevents the API server from loading any of them.";
    StringOrder "string-order":
        "quantities, durations or versions are compared as strings",
        expression(
            "object.metadata.name >= '1.29.0'",
            "isSemver(object.metadata.name) && semver(object.metadata.name).compareTo(semver('1.29.0')) >= 0",
        ),
        "Strings are ordered character by character, so `9Gi` sorts after `10Gi`. Compare the values with quantity(), duration() or semver().";
    SwappedArguments "swapped-arguments":
        "the string and the pattern of `matches()` are swapped",
        expression(
            "matches('^team-', object.metadata.name)",
            "object.metadata.name.matches('^team-')",
        ),
        "Write `string.matches(pattern)`, or `matches(string, pattern)`. If they are swapped, the value from the \
         request is used as the pattern, and the literal as the string to search.";
    Syntax "syntax":
        "the expression is not valid CEL",
        expression("object.spec.replicas <=", "object.spec.replicas <= 50"),
        "Fix the expression at the marked location.";
    TemplateResidue "template-residue":
        "a string contains an expression of a template, such as `{{ .Values.name }}`",
        spec(
            "validations:\n- expression: object.metadata.name != 'a'\n  message: 'the name {{request.object.metadata.name}} is taken'",
            "validations:\n- expression: object.metadata.name != 'a'\n  messageExpression: \"'the name ' + object.metadata.name + ' is taken'\"",
        ),
        "Render the template before you apply the policy. The API server does not replace placeholders in strings. To show values of the request in a message, use a messageExpression.";
    TooLarge "too-large":
        "a value exceeds a size limit of the API server",
        words("A policy has 21 audit annotations, or a valueExpression has more than 5,120 bytes."),
        "Split the policy into several, or move shared parts of its expressions to variables.";
    TypeMismatch "type-mismatch":
        "an expression does not have the expected type",
        expression(
            "object.spec.replicas in [1, '2']",
            "object.spec.replicas in [1, 2]",
        ),
        "Use values of one type. If different types are intended, wrap one of the values in dyn().";
    UnanchoredPattern "unanchored-pattern":
        "a validation requires a pattern that also matches in the middle of a string",
        expression(
            "object.metadata.name.matches('eu-.*')",
            "object.metadata.name.matches('^eu-.*')",
        ),
        "matches() searches for the pattern anywhere in the string. Begin the pattern with `^`, and end it with `$` if nothing may follow. If there are alternatives, put them in a group: `^(a|b)$`. In `^a|b$`, each anchor belongs to one alternative only.";
    UnboundPolicy "unbound-policy":
        "no binding in the input refers to the policy",
        words("The input contains bindings, but none of them has the policy's name as policyName."),
        "Add a ValidatingAdmissionPolicyBinding: without one, a policy never runs.";
    UncorrelatableRule "uncorrelatable-rule":
        "a rule of a CustomResourceDefinition uses `oldSelf` where its value cannot be determined",
        words("A rule on the items of a list without `x-kubernetes-list-type: map` compares self with oldSelf."),
        "Move the rule to the list itself, or give the list `x-kubernetes-list-type: map` with its keys.";
    UndeclaredReference "undeclared-reference":
        "a name or function is not declared",
        expression("objct.spec.replicas <= 50", "object.spec.replicas <= 50"),
        "Use object, oldObject, request, params, namespaceObject, variables, authorizer, or a variable of a macro. `params` needs a paramKind; a matchCondition cannot read variables, and a messageExpression cannot use authorizer.";
    UndefinedField "undefined-field":
        "the schema does not have the field",
        expression("object.spec.replica <= 50", "object.spec.replicas <= 50"),
        "Use the name in the schema. If the matched kinds differ, test `object.kind` or `has()` first, or narrow the \
         rules. `has()` and `.?` never fail, but if no matched kind has the field, the field is always absent.";
    UnescapedDot "unescaped-dot":
        "a dot in the domain of a pattern matches any character",
        expression(
            "object.metadata.name.matches('^registry.example.com/')",
            "object.metadata.name.matches('^registry[.]example[.]com/')",
        ),
        r"Write `[.]` for a dot. In a string literal, the escape is `\.`: CEL reads `\` as one backslash.";
    UnknownField "unknown-field":
        "the kind does not have the field",
        spec("failurepolicy: Fail", "failurePolicy: Fail"),
        "Use the name in the API. The API server drops an unknown field, or rejects the object.";
    UnknownKind "unknown-kind":
        "no API has the kind",
        file(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmisionPolicy\nmetadata: {name: p}\nspec: {}",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}",
        ),
        "Correct the kind, such as ValidatingAdmissionPolicy or ValidatingAdmissionPolicyBinding.";
    UnknownParamKind "unknown-param-kind":
        "the CRD of the paramKind is not in the input; add it with --crds",
        spec(
            "paramKind:\n  apiVersion: rules.example.com/v1\n  kind: ReplicaLimit\nvalidations:\n- expression: params.metadata.name != object.metadata.name",
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMap\nvalidations:\n- expression: params.metadata.name != object.metadata.name",
        ),
        "Add the CustomResourceDefinition to the input or with --crds. Otherwise `params` is not checked.";
    UnknownPolicy "unknown-policy":
        "a binding or probe refers to a policy that is not in the input",
        file(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {name: b}\nspec: {policyName: p, validationActions: [Deny]}",
            "",
        ),
        "Correct the policyName, or add the file of the policy to the input.";
    UnknownResource "unknown-resource":
        "the CRD of the resource is not in the input; add it with --crds",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [example.com]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [widgets]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]",
        ),
        "Add the CustomResourceDefinition to the input or with --crds.";
    Unreadable "unreadable":
        "a file or directory cannot be read",
        words("`kubectl vap check no-such-file.yaml`"),
        "Correct the path, or the permissions of the file.";
    UnresolvedType "unresolved-type":
        "a type is used but not declared",
        expression("authorizer.name == ''", "authorizer.path('/healthz').check('get').allowed()"),
        "Call the functions of the type: it has no fields.";
    UnsafeExpression "unsafe-expression":
        "the API server accepts the expression but cannot evaluate it safely",
        spec(
            "variables:\n- name: names\n  expression: \"['a']\"\n- name: names\n  expression: variables.names + ['b']",
            "variables:\n- name: names\n  expression: \"['a']\"\n- name: more\n  expression: variables.names + ['b']\n\
             validations:\n- expression: object.metadata.name in variables.more",
        ),
        "Change the expression before you bind the policy: its evaluation can crash the API server, or cause a panic \
         for each request that reaches the expression.";
    UnservedResource "unserved-resource":
        "a rule lists a resource that no API serves",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployment]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]",
        ),
        "Use the plural, lowercase name from `kubectl api-resources`, with its group and version.";
    UnsupportedExpression "unsupported-expression":
        "valid CEL that this checker does not support",
        words("The syntax trees of the expressions have more than 500,000 nodes in total, for example due to nested macros."),
        "Split the expression into variables.";
    UnusedParams "unused-params":
        "no expression reads the params of the policy",
        spec(
            "paramKind: {apiVersion: v1, kind: ConfigMap}\nvalidations:\n- expression: object.metadata.name != 'a'",
            "validations:\n- expression: object.metadata.name != 'a'",
        ),
        "Remove the paramKind, or read `params`. A binding of a policy with a paramKind must have a paramRef, and a request is denied if the param object does not exist and parameterNotFoundAction is Deny.";
    UnusedSuppression "unused-suppression":
        "a suppression comment allows a rule that has no finding at this location",
        spec(
            "validations:\n# vap: allow undefined-field, added by a webhook\n- expression: object.spec.replicas < 5",
            "validations:\n- expression: object.spec.replicas < 5",
        ),
        "Remove the comment. A comment at the end of a line applies to that line. A comment on its own line applies to the next key or list item. Comments cannot suppress errors that the API server reports.";
    UnusedVariable "unused-variable":
        "no expression reads the variable",
        spec("variables:\n- {name: a, expression: object.spec.replicas}\nvalidations:\n- expression: object.spec.replicas < 5", "variables:\n- {name: a, expression: object.spec.replicas}\nvalidations:\n- expression: variables.a < 5"),
        "Remove the variable, or read it: the API server never evaluates a variable that no expression reads.";
    UnwatchedOperation "unwatched-operation":
        "no rule matches UPDATE requests, which can change a field that the policy reads",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: has(object.spec.strategy)", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE, UPDATE]\n    resources: [deployments]\nvalidations:\n- expression: has(object.spec.strategy)"),
        "Add UPDATE to the operations. Otherwise a user can create an object that the policy allows, and change it \
         afterwards. Fields that an update cannot change, such as most of the spec of a Pod, are not reported. If the \
        policy is meant for new objects only, allow the finding in a comment or in the configuration.";
    UnwatchedSubresource "unwatched-subresource":
        "a subresource that no rule matches can change a field that the policy reads",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE, UPDATE]\n    resources: [deployments]\nvalidations:\n- expression: object.spec.replicas < 5", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE, UPDATE]\n    resources: [deployments, deployments/scale]\nvalidations:\n- expression: '!has(object.spec.replicas) || object.spec.replicas < 5'"),
        "Add the subresource to the rules. A policy cannot deny requests that it does not match, and `kubectl scale` and `kubectl debug` do not send the resource itself. The object of a scale subresource is a Scale, which omits spec.replicas if it is 0: test the field with has(), or write `object.spec.?replicas.orValue(0)`.";
    WildcardKinds "wildcard-kinds":
        "an expression fails for some of the kinds that the rules match by wildcards",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE, UPDATE]\n    resources: ['*']\nvalidations:\n- expression: object.spec.replicas < 5",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE, UPDATE]\n    resources: ['*']\nmatchConditions:\n- name: scaled\n  \
             expression: object.kind in ['Deployment', 'ReplicaSet', 'StatefulSet']\nvalidations:\n\
             - expression: object.spec.replicas < 5",
        ),
        "Name the resources in the rules, test the kind in a match condition, test the field with has(), or narrow \
         the rules with the binding's matchResources. The policy allows requests for kinds that it no longer matches. \
        The output of `-o json` contains a request for which the expression fails. The finding is only a note, since \
        bindings outside the input, or selectors, may exclude these kinds: `--warn wildcard-kinds` makes it a warning.";
    WrongApiVersion "wrong-api-version":
        "no API has the kind in this apiVersion",
        file(
            "apiVersion: apps/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {}",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}",
        ),
        "Use admissionregistration.k8s.io/v1 for policies and bindings, and apiextensions.k8s.io/v1 for a CustomResourceDefinition.";
    WrongDefault "wrong-default":
        "a validation assumes a value other than the effective default for an absent field",
        expression(
            "!object.spec.template.spec.?automountServiceAccountToken.orValue(false)",
            "!object.spec.template.spec.?automountServiceAccountToken.orValue(true)",
        ),
        "Negate the argument of `orValue()`, `true` or `false`, so that it equals the effective default. The \
         effective default is the value that applies if the field is absent. If the policy requires the field to be \
        set, write `has(f) && f`, not `!has(f) || f`, which allows all objects without the field.";
    WrongQuantifier "wrong-quantifier":
        "`exists()` is probably used instead of `all()`, or `all()` instead of `exists()`",
        expression(
            "(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).exists(c, c.image != 'a')",
            "(object.spec.template.spec.containers + object.spec.template.spec.?initContainers.orValue([])).all(c, c.image != 'a')",
        ),
        "`exists()` is true if one element passes the test, and `!all()` if one element fails it. To require that all elements pass, write `all()`; to require that no element passes, write `!exists()`. For an empty list, `all()` is true and `exists()` is false.";
}
