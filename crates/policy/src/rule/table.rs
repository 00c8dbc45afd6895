//! The table of rules.

use super::{Entry, Example};

/// Declares the rules, and what is known of each.
macro_rules! rules {
    ($($name:ident $id:literal: $summary:literal, $example:expr, $mend:literal;)*) => {
        /// A rule.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $summary] $name,)*
        }

        impl Rule {
            /// All rules, sorted by id.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The row of the rule.
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
        "an index is beyond the end of a list that some request has",
        expression(
            "object.spec.template.spec.containers[1].image != ''",
            "size(object.spec.template.spec.containers) < 2 || object.spec.template.spec.containers[1].image != ''",
        ),
        "Ask for the length first, write `[?1]` and `orValue()`, or iterate with all() or exists(). A guard belongs \
         within the negation of what it guards: `!(size(l) > 1 && ...)`. The finding has a request for which the \
         expression fails.";
    AbsentField "absent-field":
        "an optional field is read that some valid request does not have",
        expression(
            "object.spec.template.spec.securityContext.runAsNonRoot == true",
            "object.spec.template.spec.securityContext.?runAsNonRoot.orValue(false) == true",
        ),
        "Test for the field with has() before it is read, or write `.?` and `orValue()`. Within a negation the guard \
         stands beside what it guards: `!(has(a.b) && ...)` holds for an object without the field, and \
         `has(a.b) && !(...)` does not. Another validation is no guard, since each is evaluated. The finding has a \
         request for which the expression fails.";
    AbsentKey "absent-key":
        "a key is read of a map that some valid request has without it",
        expression(
            "object.spec.template.metadata.labels['team'] != ''",
            "'team' in object.spec.template.metadata.labels && object.spec.template.metadata.labels['team'] != ''",
        ),
        "Test with `in` before the key is read, or write `[?'key']` and `orValue()`; the map itself may be absent too. \
         Within a negation the guard stands beside what it guards: `!('key' in m && ...)` holds for an object without \
         the key, and `'key' in m && !(...)` does not. The finding has a request for which the expression fails.";
    AbsentObject "absent-object":
        "`object`, `oldObject` or `namespaceObject` is read where it is null: on DELETE, on CREATE, or for what has no \
         namespace",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE, DELETE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name \
             != 'a'",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name != 'a'",
        ),
        "Leave the operation out of the rule, or ask for null first: `object == null || ...`, and within a negation \
         `!(object != null && ...)`. The finding has a request for which the expression fails.";
    AbsentParams "absent-params":
        "`params` is read under a binding that gives none",
        words("A policy with a paramKind reads `params.data`, and one of its bindings has no paramRef."),
        "Give the binding a paramRef, or ask for null first: `params == null || ...`, and within a negation \
         `!(params != null && ...)`.";
    BrokenCheck "broken-check":
        "the check of a policy took too long, or broke off on an error of this program",
        words("A megabyte of expressions under a rule that matches hundreds of kinds can take more than 60 s."),
        "Shorten or split the expression that the message names. If it names none, report the policy: it is an error of \
         kubectl-vap, and not of the policy.";
    CompilationFailed "compilation-failed":
        "the API server refuses the expression",
        expression("object.metadata.name.find('[') == ''", r"object.metadata.name.find('\\[') == ''"),
        "Read the message: the expression is well typed, and cannot be made ready to be evaluated.";
    ConstantCondition "constant-condition":
        "a condition is always true, or always false",
        expression("size(object.metadata.name) >= 0", "size(object.metadata.name) > 0"),
        "Read the condition again: no request decides it. `||` for `&&`, a bound that every size meets, and literals left over from a trial are the usual causes.";
    ContradictorySelector "contradictory-selector":
        "the requirements of a selector exclude each other, so that it selects nothing",
        spec(
            "matchConstraints:\n  objectSelector:\n    matchLabels: {team: a}\n    matchExpressions:\n    \
             - {key: team, operator: NotIn, values: [a]}\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name != 'a'",
            "matchConstraints:\n  objectSelector:\n    matchExpressions:\n    \
             - {key: team, operator: NotIn, values: [a]}\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]\nvalidations:\n- expression: object.metadata.name != 'a'",
        ),
        "Remove one of the requirements: an object is selected where it meets all of them.";
    CostLimit "cost-limit":
        "a rule of a CustomResourceDefinition may cost more than the API server allows",
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
        "Give the lists, maps and texts that the rule reads, and those around it, maxItems, maxProperties and maxLength, \
         or simplify the rule. The API server estimates what a rule costs for the largest object that fits into a request.";
    CostNearLimit "cost-near-limit":
        "for an object of 64 KiB the expression may cost 80 % of a limit of the API server, or more",
        expression(
            "!has(object.spec.template.spec.volumes) || object.spec.template.spec.containers.all(c, \
             object.spec.template.spec.volumes.exists(v, v.name == 'data'))",
            "!has(object.spec.template.spec.volumes) || \
             object.spec.template.spec.volumes.exists(v, v.name == 'data')",
        ),
        "Avoid loops over a list within loops over the same list or another one: iterate once, or use a map or a \
         function that needs no loop. For custom resources, give lists maxItems and strings maxLength in the \
         CustomResourceDefinition. An expression that exceeds its limit fails, whatever it would evaluate to.";
    DisjointRules "disjoint-rules":
        "no request matches the rules of a binding and those of its policy",
        words("A policy is about apps deployments, and the matchResources of its binding name pods."),
        "A binding narrows its policy, and adds nothing to it: name some of the resources and operations that the \
         policy's rules name.";
    DivisionByZero "division-by-zero":
        "a divisor is 0 in some valid request",
        expression(
            "100 / object.spec.replicas > 10",
            "object.spec.replicas == 0 || 100 / object.spec.replicas > 10",
        ),
        "Ask for 0 first, or multiply instead: `100 > 10 * x`. The finding has a request for which the expression fails.";
    DuplicateKey "duplicate-key":
        "a key is given twice",
        spec("failurePolicy: Fail\nfailurePolicy: Ignore", "failurePolicy: Fail"),
        "Remove one of the two. kubectl sends the last one without a word, since it makes JSON of the YAML first; the API \
         server refuses YAML that has a key twice. The same holds of a key beside a merge key (`<<`) that brings it.";
    DuplicateName "duplicate-name":
        "two objects of one kind have the same name",
        words("Two files of the input hold a ValidatingAdmissionPolicy of the same name."),
        "Name the file once, or rename one of the two objects.";
    DuplicateValue "duplicate-value":
        "a value is given twice where values must differ",
        spec(
            "matchConditions:\n- {name: a, expression: object.metadata.name != 'a'}\n\
             - {name: a, expression: object.metadata.name != 'b'}",
            "matchConditions:\n- {name: a, expression: object.metadata.name != 'a'}\n\
             - {name: b, expression: object.metadata.name != 'b'}",
        ),
        "Remove or rename one of the two.";
    DuplicateVariable "duplicate-variable":
        "two variables have the same name",
        spec(
            "variables:\n- {name: a, expression: object.spec.replicas}\n- {name: a, expression: object.metadata.name}\n\
             validations:\n- expression: variables.a != 'x'",
            "variables:\n- {name: a, expression: object.spec.replicas}\n- {name: b, expression: object.metadata.name}\n\
             validations:\n- expression: variables.a < 5 && variables.b != 'x'",
        ),
        "Give each variable a name of its own: the API server accepts both, and evaluates the last one wherever the \
         name is read.";
    EmptyInput "empty-input":
        "standard input holds no object",
        words("`helm template chart | kubectl vap check -`, where helm fails and prints nothing."),
        "Look at the command before the pipe.";
    ExemptResource "exempt-resource":
        "a rule matches a resource that no API server asks a policy about",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [authentication.k8s.io]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [tokenreviews]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [\"\"]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [serviceaccounts/token]",
        ),
        "Remove the resource from the rule, and restrict by RBAC who may write it: policies, their bindings and \
         reviews of authentication and authorization are exempt from all policies.";
    FailingCall "failing-call":
        "a call fails whenever it is evaluated",
        expression(
            "quantity(string(object.spec.replicas)).isLessThan(quantity('512MB'))",
            "quantity(string(object.spec.replicas)).isLessThan(quantity('512M'))",
        ),
        "Correct the literal: the message is that of the evaluation. With failurePolicy Fail, each request that comes \
         to the call is denied.";
    FailingConversion "failing-conversion":
        "a text that a user chooses is converted, and some valid request has one that cannot be",
        expression(
            "!('n' in object.spec.selector.matchLabels) || int(object.spec.selector.matchLabels['n']) > 0",
            "!('n' in object.spec.selector.matchLabels) || object.spec.selector.matchLabels['n'].matches('^[0-9]{1,9}$') && \
             int(object.spec.selector.matchLabels['n']) > 0",
        ),
        "Ask first whether it can be converted: isQuantity(), isIP(), isCIDR(), isURL(), isSemver(), or matches() for \
         numbers and times. Otherwise the user gets the error of the conversion and not the validation's message, and \
         with failurePolicy Ignore the request is let through. The finding has a request for which the expression fails.";
    FailingMutation "failing-mutation":
        "a mutation cannot be applied to a valid object, in the API server's words",
        words("An ApplyConfiguration `Object{spec: Object.spec{tolerations: [...]}}` under a rule for Pods, whose list of \
               tolerations is atomic; a JSONPatch adds `/metadata/labels/team` to an object without labels."),
        "Set by a JSONPatch what an ApplyConfiguration may not; give each field a value of its type; test with has() for \
         what a JSONPatch needs, and add what is absent first. The finding has a request for which the mutation fails.";
    IgnoredParams "ignored-params":
        "a binding refers to params of a policy that has no paramKind",
        words("A binding has `paramRef: {name: limits}`, and its policy has no paramKind."),
        "Give the policy a paramKind, or remove the paramRef: the API server ignores it.";
    ImpossibleGroup "impossible-group":
        "a rule names an API group that cannot be",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps/v1]\n    apiVersions: [v1]\n    operations: [CREATE]\n    resources: [deployments]", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE]\n    resources: [deployments]"),
        "Write the group without its version, and `\"\"` for the core group.";
    ImpossibleOperation "impossible-operation":
        "a rule names operations that no request for the resource has",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: ['']\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [pods/ephemeralcontainers]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: ['']\n    apiVersions: [v1]\n    \
             operations: [UPDATE]\n    resources: [pods/ephemeralcontainers]",
        ),
        "Name the operation that requests for the subresource have: CONNECT for exec, attach, portforward and proxy, \
         CREATE for binding, eviction and token, UPDATE for the others.";
    ImpossibleValue "impossible-value":
        "a field of the request is compared with a value that it never has",
        expression("request.operation == 'create'", "request.operation == 'CREATE'"),
        "Write the value as requests have it: operations in capitals, kinds as in a manifest, resources in the plural.";
    IneffectiveSelector "ineffective-selector":
        "a namespaceSelector stands beside rules for resources that have no namespace",
        spec(
            "matchConstraints:\n  namespaceSelector: {matchLabels: {team: a}}\n  resourceRules:\n  - apiGroups: ['']\n    \
             apiVersions: [v1]\n    operations: [CREATE]\n    resources: [persistentvolumes]",
            "matchConstraints:\n  objectSelector: {matchLabels: {team: a}}\n  resourceRules:\n  - apiGroups: ['']\n    \
             apiVersions: [v1]\n    operations: [CREATE]\n    resources: [persistentvolumes]",
        ),
        "Select by objectSelector or a match condition: an object without a namespace passes each namespaceSelector.";
    IntOrString "int-or-string":
        "a value that may be an integer or a string meets what takes one of them",
        expression(
            "!has(object.spec.strategy.rollingUpdate) || object.spec.strategy.rollingUpdate.maxUnavailable <= 1",
            "!has(object.spec.strategy.rollingUpdate) || type(object.spec.strategy.rollingUpdate.maxUnavailable) == int && \
             object.spec.strategy.rollingUpdate.maxUnavailable <= 1",
        ),
        "Ask for the type first: `type(x) == int && ...`. The default of Deployments is the string `25%`, and ports may \
         be names. The finding has a request for which the expression fails.";
    InvalidLiteral "invalid-literal":
        "a function refuses its literal argument",
        expression("object.metadata.name.matches('[')", r"object.metadata.name.matches('\\[')"),
        "Write what the function can read: a regular expression in Go's syntax, a duration such as '1h', a time by \
         RFC 3339.";
    InvalidMacroCall "invalid-macro-call":
        "a macro is called with arguments that it cannot take",
        expression(
            "object.spec.template.spec.containers.all(c.name, c.name != '')",
            "object.spec.template.spec.containers.all(c, c.name != '')",
        ),
        "Give the macro what its form asks for: has() a selection, all(), exists(), map() and filter() a plain name \
         first.";
    InvalidName "invalid-name":
        "a name, key or label that does not have the form that the API server asks for",
        spec(
            "matchConditions:\n- {name: is a pod, expression: 'true'}",
            "matchConditions:\n- {name: is-a-pod, expression: 'true'}",
        ),
        "Write it as the message says: names of objects have lower-case letters, digits, hyphens and points; keys and \
         values of labels capitals and underscores too, and 63 bytes at most.";
    InvalidObject "invalid-object":
        "the document does not have the shape of its kind",
        spec("validations:\n  expression: 'true'", "validations:\n- expression: 'true'"),
        "Give the field a value of the type that the API has: a list, a map, a text, a number or a boolean.";
    InvalidOptionalSelection "invalid-optional-selection":
        "an optional selection is malformed",
        words("A selection with `.?` is followed by something that is no name of a field."),
        "Write `.?` and the name of a field, or `[?key]` for a key.";
    InvalidProbe "invalid-probe":
        "the API server refuses the PolicyProbe",
        words("A case of a PolicyProbe expects a decision other than Allow and Deny."),
        "Change the field that the message names. `kubectl vap test` finds it; `check` passes probes over.";
    InvalidSuppression "invalid-suppression":
        "a comment that is to allow a rule, and cannot be followed",
        spec(
            "validations:\n# vap: allow unlike-types\n- expression: object.spec.replicas == '50'",
            "validations:\n# vap: allow unlike-types, shown in a talk\n- expression: object.spec.replicas == '50'",
        ),
        "Name one rule and, behind a comma, the reason why its finding is right as it is: `# vap: allow RULE, reason`.";
    InvalidValue "invalid-value":
        "the API server refuses the value",
        spec("failurePolicy: Never", "failurePolicy: Ignore"),
        "Use one of the values that the message names.";
    InvalidYaml "invalid-yaml":
        "the document is no YAML",
        file("spec: [", "spec: []"),
        "Mend the syntax at the place that is marked; a template has to be rendered first.";
    LimitExceeded "limit-exceeded":
        "the expression exceeds a limit of the API server",
        words("An expression has more than 100,000 characters, or nests deeper than 250."),
        "Split the expression into variables or validations.";
    LockOut "lock-out":
        "the policy denies requests that the cluster itself needs, or the one that installs the CRD of its own params",
        words("A policy with the rule `*/*` is bound with Deny, and asks every object for a label that leases and nodes do not have."),
        "Name the resources that are meant instead of `*`, or leave out what the cluster's own parts do: by a matchCondition \
         such as `!('system:nodes' in request.userInfo.groups)` or `!request.userInfo.username.startsWith('system:')`, or by a \
         namespaceSelector with `kubernetes.io/metadata.name` NotIn kube-system and kube-node-lease; that does not leave out \
         what has no namespace, such as nodes. The requests that are tried are those of kubelets, the scheduler and the \
         controllers, each with the decision of the policy's own expressions.";
    NewerFunction "newer-function":
        "a function or macro that the API server of --kubernetes-version does not have",
        words("`kubectl vap check policy.yaml --kubernetes-version 1.34`, where an expression calls sort() on a list."),
        "Do without the function, or wait for the cluster's upgrade: the message names the version that has it.";
    NoCrds "no-crds":
        "nothing that --crds names holds a CustomResourceDefinition",
        words("`kubectl vap check policies/ --crds policies/`, where no file has a CustomResourceDefinition."),
        "Name the files of CustomResourceDefinitions, or a directory with them.";
    NoFieldSelection "no-field-selection":
        "a field is selected from a type that has none",
        expression("object.spec.replicas.max <= 50", "object.spec.replicas <= 50"),
        "Select from an object or a map; a list is indexed, or iterated over with all(), exists() or map(). What is \
         null in every request, such as `oldObject` on CREATE, has no fields either.";
    NoMatchingOverload "no-matching-overload":
        "no overload takes arguments of these types",
        expression(
            "object.metadata.name + object.spec.replicas != ''",
            "object.metadata.name + string(object.spec.replicas) != ''",
        ),
        "Convert one side with int(), double() or string(), or call the function that the types have.";
    NotARange "not-a-range":
        "a macro iterates over a type that cannot be iterated over",
        expression("object.spec.replicas.all(r, r > 0)", "object.spec.replicas > 0"),
        "Iterate over a list, or over a map, whose keys are then given.";
    NotAType "not-a-type":
        "something that is no type stands where one is wanted",
        expression("object{name: 'a'}.name == 'a'", "{'name': 'a'}.name == 'a'"),
        "Write a map for a literal with fields.";
    NotAnObject "not-an-object":
        "the document is no Kubernetes object",
        file("- a\n- b", "apiVersion: v1\nkind: ConfigMap"),
        "Name only files of Kubernetes objects, each with apiVersion and kind.";
    NotChecked "not-checked":
        "types that could not be checked, and why",
        words("A rule matches a custom resource whose CustomResourceDefinition has no schema."),
        "Name the CustomResourceDefinition with --crds, or among the input; with --strict the note counts as a finding.";
    OldVersion "old-version":
        "an object is of a version that an API server does not serve by itself",
        file(
            "apiVersion: admissionregistration.k8s.io/v1alpha1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
             spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: 'true'",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
             spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: 'true'",
        ),
        "Write admissionregistration.k8s.io/v1, and apiextensions.k8s.io/v1 of a CustomResourceDefinition. Of policies and \
         bindings, older versions are served where --runtime-config switches them on, so that this is a warning.";
    ParamKindNotFound "param-kind-not-found":
        "nothing serves the paramKind",
        spec(
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMaps",
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMap",
        ),
        "Write apiVersion and kind of a resource that the cluster serves: while there is none, no request can be \
         judged.";
    ParamScope "param-scope":
        "the scope of the paramKind does not fit the paramRef of a binding, so that requests fail before anything is \
         evaluated",
        words("The paramKind is Namespace, which has no namespace itself, and paramRef.namespace names one."),
        "Leave paramRef.namespace out for a cluster-scoped paramKind; name it for a namespaced one where the rules match \
         cluster-scoped resources.";
    ParamsNotFound "params-not-found":
        "a binding of the cluster refers to params that do not exist",
        words("The binding has paramRef {name: limits, namespace: default, parameterNotFoundAction: Deny}, and that \
               namespace has no such object."),
        "Create the params, or correct the paramRef of the binding.";
    PassedOver "passed-over":
        "objects of kinds that are not checked",
        file(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: widgets.example.com}\n\
             spec:\n  group: example.com\n  names: {kind: Widget, plural: widgets}\n  versions: []",
        ),
        "Nothing, unless the kind is misspelt.";
    RemovableLabel "removable-label":
        "a match condition reads labels or annotations that the same UPDATE can take away",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [UPDATE]\n    resources: [deployments]\nmatchConditions:\n- name: frozen\n  expression: has(object.metadata.labels) && 'frozen' in object.metadata.labels\nvalidations:\n- expression: object.spec == oldObject.spec", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [UPDATE]\n    resources: [deployments]\nmatchConditions:\n- name: frozen\n  expression: has(oldObject.metadata.labels) && 'frozen' in oldObject.metadata.labels\nvalidations:\n- expression: object.spec == oldObject.spec"),
        "Read the labels of `oldObject`, by which it is decided whether the object is guarded, or use an objectSelector: it looks at both objects.";
    Required "required":
        "something that the API server requires is missing",
        expression("", "true"),
        "Add it.";
    ResultType "result-type":
        "the expression gives a value of the wrong type",
        expression("object.metadata.name", "object.metadata.name != ''"),
        "Make a validation and a match condition a bool, a messageExpression a string, and a valueExpression a string \
         or null.";
    ShadowedVariable "shadowed-variable":
        "the variable of a macro has the name of one that every expression has",
        expression(
            "object.spec.template.spec.containers.all(object, object.image != '')",
            "object.spec.template.spec.containers.all(c, c.image != '')",
        ),
        "Give the variable of the macro a name of its own: within the macro the request's cannot be read.";
    StaleBaseline "stale-baseline":
        "a finding of the baseline that there is no more",
        words("A policy has been mended since `--write-baseline`, and `--baseline` still lists its finding."),
        "Write the baseline again, so that the finding is reported if it comes back.";
    StaticManifest "static-manifest":
        "the directory of `--static` is not one that an API server loads when it starts",
        words("`kubectl vap check --static manifests/`, where a policy of the directory has a paramKind, or its name does not \
               end in `.static.k8s.io`."),
        "Policies and bindings that an API server loads from its `staticManifestsDir` have names that end in \
         `.static.k8s.io`, are of admissionregistration.k8s.io/v1, have no paramKind and no paramRef, and each binding has \
         its policy in the same directory. One that does not fit keeps the API server from loading any of them.";
    Syntax "syntax":
        "the expression is not CEL",
        expression("object.spec.replicas <=", "object.spec.replicas <= 50"),
        "Mend the expression at the place that is marked.";
    TextOrder "text-order":
        "quantities or versions are compared as texts",
        expression(
            "object.metadata.name >= '1.29.0'",
            "isSemver(object.metadata.name) && semver(object.metadata.name).compareTo(semver('1.29.0')) >= 0",
        ),
        "Texts are ordered character by character, so that `9Gi` comes after `10Gi`. Compare what they stand for, by \
         quantity() or semver().";
    TooLarge "too-large":
        "something is longer, larger or more than the API server takes",
        words("A policy has 21 audit annotations, or a valueExpression has more than 5,120 bytes."),
        "Split it: several policies, or variables for what expressions share.";
    TypeMismatch "type-mismatch":
        "a type other than the expected one",
        expression(
            "object.spec.replicas in [1, '2']",
            "object.spec.replicas in [1, 2]",
        ),
        "Make the types alike; where they are meant to differ, wrap one in dyn().";
    UnboundPolicy "unbound-policy":
        "no binding among the input names the policy",
        words("The input has bindings, and none has the policy's name as its policyName."),
        "Add a ValidatingAdmissionPolicyBinding: without one a policy never runs.";
    UncorrelatableRule "uncorrelatable-rule":
        "a rule of a CustomResourceDefinition names `oldSelf` where there is no telling what its value was",
        words("A rule of the items of a list without `x-kubernetes-list-type: map` compares self with oldSelf."),
        "Write the rule on the list itself, or give the list `x-kubernetes-list-type: map` with its keys.";
    UndeclaredReference "undeclared-reference":
        "a name or function that nothing declares",
        expression("objct.spec.replicas <= 50", "object.spec.replicas <= 50"),
        "Use object, oldObject, request, params, namespaceObject, variables, authorizer, or a variable of a macro. \
         `params` needs a paramKind; a matchCondition has no variables, and a messageExpression no authorizer.";
    UndefinedField "undefined-field":
        "a field that the schema does not have",
        expression("object.spec.replica <= 50", "object.spec.replicas <= 50"),
        "Write the name as the schema has it. Where the kinds that the policy matches differ, test `object.kind` or \
         `has()` before the selection.";
    UnknownField "unknown-field":
        "a field that the kind does not have",
        spec("failurepolicy: Fail", "failurePolicy: Fail"),
        "Write the name as the API has it: an unknown field is dropped, or the object refused.";
    UnknownKind "unknown-kind":
        "a kind that no API has",
        file(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmisionPolicy\nmetadata: {name: p}\nspec: {}",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}",
        ),
        "Write ValidatingAdmissionPolicy or ValidatingAdmissionPolicyBinding.";
    UnknownParamKind "unknown-param-kind":
        "nothing is known of the paramKind; name its CRD with --crds",
        spec(
            "paramKind:\n  apiVersion: rules.example.com/v1\n  kind: ReplicaLimit",
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMap",
        ),
        "Name the CustomResourceDefinition with --crds, or among the input; else `params` is not checked.";
    UnknownPolicy "unknown-policy":
        "a binding or probe names a policy that is not among the input",
        file(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {name: b}\nspec: {policyName: p, validationActions: [Deny]}",
            "",
        ),
        "Correct the policyName, or name the file of the policy too.";
    UnknownResource "unknown-resource":
        "nothing is known of the resource; name its CRD with --crds",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [example.com]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [widgets]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]",
        ),
        "Name the CustomResourceDefinition with --crds, or among the input.";
    UnlikeTypes "unlike-types":
        "values are compared whose types are never equal",
        expression("object.spec.replicas == '50'", "object.spec.replicas == 50"),
        "Compare with a value of the type that the field has: `==` and `in` are always false for others, `!=` always true.";
    UnreadCluster "unread-cluster":
        "something of the cluster that a policy needs cannot be read",
        words("`kubectl vap check --live`, by a user who may not list bindings, or while an aggregated API is down"),
        "Ask for the permission that is named, or wait until the API answers; what the finding names is not checked.";
    Unreadable "unreadable":
        "a file or directory cannot be read",
        words("`kubectl vap check no-such-file.yaml`"),
        "Correct the path, or the permissions of the file.";
    UnresolvedType "unresolved-type":
        "a type that is named but not declared",
        expression("authorizer.name == ''", "authorizer.path('/healthz').check('get').allowed()"),
        "Call the type's functions: it has no fields.";
    UnsafeExpression "unsafe-expression":
        "accepted by the API server, which cannot evaluate it safely",
        spec(
            "variables:\n- name: names\n  expression: \"['a']\"\n- name: names\n  expression: variables.names + ['b']",
            "variables:\n- name: names\n  expression: \"['a']\"\n- name: more\n  expression: variables.names + ['b']\n\
             validations:\n- expression: object.metadata.name in variables.more",
        ),
        "Change the expression before the policy is bound: evaluating it can end the API server's process, or the API server \
         panics on each request that comes to it.";
    UnservedResource "unserved-resource":
        "a rule names a resource that Kubernetes does not serve",
        spec(
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployment]",
            "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    \
             operations: [CREATE]\n    resources: [deployments]",
        ),
        "Write the plural, lower-case name as `kubectl api-resources` lists it, with its group and version.";
    UnsupportedExpression "unsupported-expression":
        "valid CEL that cannot be judged here",
        words("The trees of the expressions have more than 500,000 nodes together, as macros that copy can make them."),
        "Split the expression into variables.";
    UnusedSuppression "unused-suppression":
        "a comment allows a rule that finds nothing there",
        spec(
            "validations:\n# vap: allow undefined-field, added by a webhook\n- expression: object.spec.replicas < 5",
            "validations:\n- expression: object.spec.replicas < 5",
        ),
        "Remove the comment. It is about the line on which it stands, or about what follows it if it stands alone; \
         what the API server refuses no comment allows.";
    UnusedVariable "unused-variable":
        "nothing reads a variable",
        spec("variables:\n- {name: a, expression: object.spec.replicas}\nvalidations:\n- expression: object.spec.replicas < 5", "variables:\n- {name: a, expression: object.spec.replicas}\nvalidations:\n- expression: variables.a < 5"),
        "Remove the variable, or read it: one that nothing reads is never evaluated.";
    UnwatchedSubresource "unwatched-subresource":
        "a field that the policy reads is changed by a subresource that no rule matches",
        spec("matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE, UPDATE]\n    resources: [deployments]\nvalidations:\n- expression: object.spec.replicas < 5", "matchConstraints:\n  resourceRules:\n  - apiGroups: [apps]\n    apiVersions: [v1]\n    operations: [CREATE, UPDATE]\n    resources: [deployments, deployments/scale]\nvalidations:\n- expression: '!has(object.spec.replicas) || object.spec.replicas < 5'"),
        "Add the subresource to the rules. What a policy does not match it cannot deny: `kubectl scale` and `kubectl debug` do not send the resource itself. The object of a scale subresource is a Scale, which has no spec.replicas where it is 0: ask with has(), or write `object.spec.?replicas.orValue(0)`.";
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
        "Name the resources in the rules, ask for the kind or the field first, in a match condition or with has(), or \
         narrow the rules by the binding's matchResources. The finding has a request for which the expression fails. \
         It is a note, since bindings that are not among the input, or selectors, may leave these kinds out: \
         `--warn wildcard-kinds` makes it a warning.";
    WrongApiVersion "wrong-api-version":
        "no API has the kind under this apiVersion",
        file(
            "apiVersion: apps/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {}",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}",
        ),
        "Write admissionregistration.k8s.io/v1, and apiextensions.k8s.io/v1 of a CustomResourceDefinition. Of policies and \
         bindings, older versions are served where --runtime-config switches them on, so that this is a warning.";
}
