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
    BrokenCheck "broken-check":
        "the check of a policy broke off on an error of this program",
        words("No policy should ever have it."),
        "Report it, with the policy: it is an error of kubectl-vap, and not of the policy.";
    CompilationFailed "compilation-failed":
        "the API server refuses the expression",
        expression("object.metadata.name.find('[') == ''", r"object.metadata.name.find('\\[') == ''"),
        "Read the message: the expression is well typed, and cannot be made ready to be evaluated.";
    CostNearLimit "cost-near-limit":
        "for an object of 64 KiB the expression may cost 80 % of a limit of the API server, or more",
        expression(
            "object.spec.template.spec.containers.all(c, \
             object.spec.template.spec.volumes.exists(v, v.name == 'data'))",
            "object.spec.template.spec.volumes.exists(v, v.name == 'data')",
        ),
        "Avoid loops over a list within loops over the same list or another one: iterate once, or use a map or a \
         function that needs no loop. For custom resources, give lists maxItems and strings maxLength in the \
         CustomResourceDefinition. An expression that exceeds its limit fails, whatever it would evaluate to.";
    DuplicateKey "duplicate-key":
        "a key is given twice; the last one counts",
        spec("failurePolicy: Fail\nfailurePolicy: Ignore", "failurePolicy: Fail"),
        "Remove one of the two.";
    DuplicateName "duplicate-name":
        "a probe is given twice, or a policy that a probe is about",
        words("Two files that `kubectl vap test` reads hold a PolicyProbe of the same name."),
        "Name the file once, or rename one of the two objects.";
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
        "Change the field that the message names.";
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
        "the policy is of a version that Kubernetes does not serve",
        file(
            "apiVersion: admissionregistration.k8s.io/v1alpha1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
             spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: 'true'",
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\n\
             spec:\n  matchConstraints:\n    resourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], \
             operations: [CREATE], resources: [deployments]}\n  validations:\n  - expression: 'true'",
        ),
        "Write admissionregistration.k8s.io/v1.";
    ParamKindNotFound "param-kind-not-found":
        "nothing serves the paramKind",
        spec(
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMaps",
            "paramKind:\n  apiVersion: v1\n  kind: ConfigMap",
        ),
        "Write apiVersion and kind of a resource that the cluster serves: while there is none, no request can be \
         judged.";
    Required "required":
        "something that the API server requires is missing",
        expression("", "true"),
        "Add it.";
    ResultType "result-type":
        "the expression gives a value of the wrong type",
        expression("object.metadata.name", "object.metadata.name != ''"),
        "Make a validation and a match condition a bool, a messageExpression a string, and a valueExpression a string \
         or null.";
    Syntax "syntax":
        "the expression is not CEL",
        expression("object.spec.replicas <=", "object.spec.replicas <= 50"),
        "Mend the expression at the place that is marked.";
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
            "variables:\n- name: names\n  expression: \"['a']\"\n- name: more\n  expression: variables.names + ['b']",
        ),
        "Change the expression before the policy is bound: evaluating it can end the API server's process.";
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
    WrongApiVersion "wrong-api-version":
        "no API has the kind under this apiVersion",
        file(
            "apiVersion: apps/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {name: p}\nspec: {}",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: p}",
        ),
        "Write admissionregistration.k8s.io/v1.";
}
