//! The rules that findings belong to, each with its stable id.

use cel::diagnostic::Code;

/// Declares the rules: the name in code, the id and one sentence of what the rule finds.
macro_rules! rules {
    ($($name:ident $id:literal $summary:literal)*) => {
        /// A rule. The ids are for good once released.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $summary] $name,)*
        }

        impl Rule {
            /// All rules, sorted by id.
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// The id, `undefined-field`.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self {
                    $(Self::$name => $id,)*
                }
            }

            /// One sentence of what it finds.
            #[must_use]
            pub const fn summary(self) -> &'static str {
                match self {
                    $(Self::$name => $summary,)*
                }
            }
        }
    };
}

rules! {
    BrokenCheck "broken-check" "the check of a policy broke off on an error of this program"
    CompilationFailed "compilation-failed" "the API server refuses the expression"
    DuplicateKey "duplicate-key" "a key is given twice; the last one counts"
    DuplicateName "duplicate-name" "a probe is given twice, or a policy that a probe is about"
    ExemptResource "exempt-resource" "a rule matches a resource that no API server asks a policy about"
    InvalidLiteral "invalid-literal" "a function refuses its literal argument"
    InvalidMacroCall "invalid-macro-call" "a macro is called with arguments that it cannot take"
    InvalidObject "invalid-object" "the document does not have the shape of its kind"
    InvalidOptionalSelection "invalid-optional-selection" "an optional selection is malformed"
    InvalidProbe "invalid-probe" "the API server refuses the PolicyProbe"
    InvalidValue "invalid-value" "the API server refuses the value"
    InvalidYaml "invalid-yaml" "the document is no YAML"
    LimitExceeded "limit-exceeded" "the expression exceeds a limit of the API server"
    NoCrds "no-crds" "nothing that --crds names holds a CustomResourceDefinition"
    NoFieldSelection "no-field-selection" "a field is selected from a type that has none"
    NoMatchingOverload "no-matching-overload" "no overload takes arguments of these types"
    NotARange "not-a-range" "a macro iterates over a type that cannot be iterated over"
    NotAType "not-a-type" "something that is no type stands where one is wanted"
    NotAnObject "not-an-object" "the document is no Kubernetes object"
    NotChecked "not-checked" "types that could not be checked, and why"
    OldVersion "old-version" "the policy is of a version that Kubernetes does not serve"
    ParamKindNotFound "param-kind-not-found" "nothing serves the paramKind"
    Required "required" "something that the API server requires is missing"
    ResultType "result-type" "the expression gives a value of the wrong type"
    Syntax "syntax" "the expression is not CEL"
    TypeMismatch "type-mismatch" "a type other than the expected one"
    UnboundPolicy "unbound-policy" "no binding among the input names the policy"
    UndeclaredReference "undeclared-reference" "a name or function that nothing declares"
    UndefinedField "undefined-field" "a field that the schema does not have"
    UnknownField "unknown-field" "a field that the kind does not have"
    UnknownParamKind "unknown-param-kind" "nothing is known of the paramKind; name its CRD with --crds"
    UnknownPolicy "unknown-policy" "a binding or probe names a policy that is not among the input"
    UnknownResource "unknown-resource" "nothing is known of the resource; name its CRD with --crds"
    Unreadable "unreadable" "a file or directory cannot be read"
    UnresolvedType "unresolved-type" "a type that is named but not declared"
    UnsafeExpression "unsafe-expression" "accepted by the API server, which cannot evaluate it safely"
    UnservedResource "unserved-resource" "a rule names a resource that Kubernetes does not serve"
    UnsupportedExpression "unsupported-expression" "valid CEL that cannot be judged here"
    WrongApiVersion "wrong-api-version" "no API has the kind under this apiVersion"
}

impl From<Code> for Rule {
    fn from(code: Code) -> Self {
        match code {
            Code::Syntax => Self::Syntax,
            Code::LimitExceeded => Self::LimitExceeded,
            Code::InvalidMacroCall => Self::InvalidMacroCall,
            Code::UndeclaredReference => Self::UndeclaredReference,
            Code::UndefinedField => Self::UndefinedField,
            Code::NoMatchingOverload => Self::NoMatchingOverload,
            Code::NoFieldSelection => Self::NoFieldSelection,
            Code::NotARange => Self::NotARange,
            Code::TypeMismatch | Code::MixedLiteral => Self::TypeMismatch,
            Code::UnresolvedType => Self::UnresolvedType,
            Code::NotAType => Self::NotAType,
            Code::InvalidOptionalSelection => Self::InvalidOptionalSelection,
            Code::InvalidLiteral => Self::InvalidLiteral,
            Code::TooComplex => Self::UnsupportedExpression,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_sorted_by_id() {
        assert!(Rule::ALL.windows(2).all(|pair| pair[0].id() < pair[1].id()));
    }
}
