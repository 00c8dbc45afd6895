//! The levels, fixes, objects and versions of rules. A test compares them with the findings of the examples.

use super::Rule;

/// A level of findings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleLevel {
    /// The API server rejects the object, or the input cannot be used.
    Error,
    /// A probable mistake.
    Warning,
    /// A remark that does not affect the exit status.
    Note,
}

impl RuleLevel {
    /// Returns the name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Error => "error",
            Self::Warning => "warning",
            Self::Note => "note",
        }
    }
}

/// A type of object that a rule applies to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleObject {
    /// ValidatingAdmissionPolicies and MutatingAdmissionPolicies.
    Policy,
    /// Bindings of policies.
    Binding,
    /// Webhook configurations.
    Webhook,
    /// CustomResourceDefinitions.
    Definition,
    /// PolicyProbes.
    Probe,
    /// Files and their comments.
    File,
}

impl RuleObject {
    /// Returns the name, in the plural.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Policy => "policies",
            Self::Binding => "bindings",
            Self::Webhook => "webhooks",
            Self::Definition => "CustomResourceDefinitions",
            Self::Probe => "probes",
            Self::File => "files",
        }
    }
}

/// The scope of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scope {
    /// The possible levels of the findings if no flag such as `--error` or `--warn` changes them. The usual level is
    /// first.
    pub levels: &'static [RuleLevel],
    /// True if `--fix` can fix some findings.
    pub is_fixable: bool,
    /// The types of objects that can have findings of the rule. Empty if the findings do not concern an object.
    pub objects: &'static [RuleObject],
    /// The versions of Kubernetes to which the rule applies. `None` for all versions.
    pub versions: Option<&'static str>,
}

const CEL: &[RuleObject] = &[
    RuleObject::Policy,
    RuleObject::Webhook,
    RuleObject::Definition,
];
const NAMED: &[RuleObject] = &[
    RuleObject::Policy,
    RuleObject::Binding,
    RuleObject::Webhook,
    RuleObject::Definition,
    RuleObject::Probe,
];
const ALL: &[RuleObject] = &[
    RuleObject::Policy,
    RuleObject::Binding,
    RuleObject::Webhook,
    RuleObject::Definition,
];
const REQUESTS: &[RuleObject] = &[RuleObject::Policy, RuleObject::Webhook];
const RULES: &[RuleObject] = &[RuleObject::Policy, RuleObject::Binding, RuleObject::Webhook];
const POLICY: &[RuleObject] = &[RuleObject::Policy];
const BINDING: &[RuleObject] = &[RuleObject::Binding];
const DEFINITION: &[RuleObject] = &[RuleObject::Definition];
const PROBE: &[RuleObject] = &[RuleObject::Probe];
const FILE: &[RuleObject] = &[RuleObject::File];

const POLICY_OR_BINDING: &[RuleObject] = &[RuleObject::Policy, RuleObject::Binding];
const ERROR: &[RuleLevel] = &[RuleLevel::Error];
const WARNING: &[RuleLevel] = &[RuleLevel::Warning];
const NOTE: &[RuleLevel] = &[RuleLevel::Note];
const ERROR_OR_WARNING: &[RuleLevel] = &[RuleLevel::Error, RuleLevel::Warning];
const WARNING_OR_ERROR: &[RuleLevel] = &[RuleLevel::Warning, RuleLevel::Error];
const WARNING_OR_NOTE: &[RuleLevel] = &[RuleLevel::Warning, RuleLevel::Note];
const NOTE_OR_WARNING: &[RuleLevel] = &[RuleLevel::Note, RuleLevel::Warning];
const ERROR_OR_NOTE: &[RuleLevel] = &[RuleLevel::Error, RuleLevel::Note];
const ANY: &[RuleLevel] = &[RuleLevel::Error, RuleLevel::Warning, RuleLevel::Note];
const USUALLY_NOTE: &[RuleLevel] = &[RuleLevel::Note, RuleLevel::Warning, RuleLevel::Error];
const USUALLY_WARNING: &[RuleLevel] = &[RuleLevel::Warning, RuleLevel::Note, RuleLevel::Error];

impl Rule {
    /// Returns the levels, fixes, objects and versions of the rule.
    #[must_use]
    pub const fn scope(self) -> Scope {
        let (levels, is_fixable, objects) = self.table();
        let versions = match self {
            Self::NotAType => Some("1.30 to 1.36"),
            Self::NewerFunction => Some("those before the version that introduced the function"),
            Self::OldVersion => {
                Some("depends on the API versions that each Kubernetes version serves")
            }
            Self::StaticManifest => Some("1.36 and later"),
            _ => None,
        };
        Scope {
            levels,
            is_fixable,
            objects,
            versions,
        }
    }

    /// Returns the levels, a flag that is true if `--fix` can fix some findings, and the types of objects.
    const fn table(self) -> (&'static [RuleLevel], bool, &'static [RuleObject]) {
        match self {
            Self::AbsentElement
            | Self::AbsentObject
            | Self::ConstantCondition
            | Self::DivisionByZero
            | Self::FailingCall
            | Self::FailingConversion
            | Self::IntOrString => (WARNING_OR_NOTE, false, REQUESTS),
            Self::AbsentField | Self::AbsentKey | Self::IncomparableTypes | Self::StringOrder => {
                (WARNING_OR_NOTE, true, REQUESTS)
            }
            Self::AbsentParams | Self::UnanchoredPattern => (WARNING_OR_NOTE, false, POLICY),
            Self::FailingMutation => (WARNING_OR_NOTE, true, POLICY),
            Self::CheckFailed
            | Self::CompilationFailed
            | Self::InvalidOptionalSelection
            | Self::LimitExceeded
            | Self::UnresolvedType
            | Self::UnsafeExpression => (ERROR, false, CEL),
            Self::ClusterReadFailed => (ERROR_OR_NOTE, false, &[]),
            Self::ContradictorySelector | Self::IneffectiveSelector => {
                (WARNING_OR_NOTE, false, RULES)
            }
            Self::CostLimit | Self::UncorrelatableRule => (ERROR, false, DEFINITION),
            Self::CostNearLimit | Self::LateGuard => (NOTE, false, REQUESTS),
            Self::DisjointRules | Self::IgnoredParams | Self::ParamScope => {
                (WARNING, false, BINDING)
            }
            Self::DuplicateKey | Self::DuplicateValue | Self::TooLarge => (ERROR, false, ALL),
            Self::DuplicateName => (USUALLY_WARNING, false, NAMED),
            Self::DuplicateVariable
            | Self::ContradictingMessage
            | Self::IgnoredContainers
            | Self::IgnoredMessage
            | Self::RepeatedOperand
            | Self::TemplateResidue => (WARNING, false, POLICY),
            Self::PartialName | Self::SwappedArguments | Self::WrongQuantifier => {
                (WARNING, false, REQUESTS)
            }
            Self::EmptyInput | Self::NotAnObject | Self::Unreadable => (ERROR, false, FILE),
            Self::ExemptResource => (ERROR_OR_WARNING, false, RULES),
            Self::NegatedExistsOne | Self::WrongDefault => (WARNING, true, POLICY),
            Self::ImpossibleGroup => (WARNING, true, RULES),
            Self::ImpossibleOperation => (WARNING, false, RULES),
            Self::ImagePrefix | Self::ImpossibleValue => (WARNING, true, REQUESTS),
            Self::InvalidLiteral | Self::TypeMismatch => (ERROR_OR_WARNING, true, CEL),
            Self::InvalidMacroCall
            | Self::NewerFunction
            | Self::ResultType
            | Self::Syntax
            | Self::UndeclaredReference => (ERROR, true, CEL),
            Self::InvalidObject => (ERROR_OR_NOTE, true, ALL),
            Self::InvalidProbe => (ERROR, false, PROBE),
            Self::InvalidSuppression | Self::UnusedSuppression => (WARNING, false, FILE),
            Self::InvalidValue | Self::Required => (ANY, true, ALL),
            Self::InvalidYaml => (ERROR_OR_NOTE, true, FILE),
            Self::Lockout | Self::RemovableLabel | Self::UnusedVariable => {
                (NOTE_OR_WARNING, false, POLICY)
            }
            Self::NoCrds | Self::SkippedObject | Self::StaleBaseline => (NOTE, false, FILE),
            Self::NoFieldSelection | Self::NoMatchingOverload | Self::UndefinedField => {
                (WARNING_OR_ERROR, true, CEL)
            }
            Self::NotARange => (WARNING_OR_ERROR, false, CEL),
            Self::NotAType => (ERROR_OR_WARNING, false, CEL),
            Self::NotChecked | Self::UnsupportedExpression => (NOTE, false, CEL),
            Self::InvalidName | Self::OldVersion | Self::UnknownField => {
                (ERROR_OR_WARNING, true, ALL)
            }
            Self::OrValueWithoutOptional => (ERROR_OR_WARNING, true, REQUESTS),
            Self::ParamKindNotFound => (ERROR, true, POLICY),
            Self::ParamsNotFound => (NOTE_OR_WARNING, false, BINDING),
            Self::ShadowedVariable => (NOTE_OR_WARNING, false, REQUESTS),
            Self::StaticManifest => (ERROR_OR_WARNING, false, POLICY_OR_BINDING),
            Self::UnboundPolicy
            | Self::UnescapedDot
            | Self::UnknownParamKind
            | Self::UnusedParams
            | Self::UnwatchedOperation
            | Self::UnwatchedSubresource
            | Self::WildcardKinds => (NOTE, false, POLICY),
            Self::UnknownKind => (ERROR, true, FILE),
            Self::UnknownPolicy => (
                USUALLY_NOTE,
                true,
                &[RuleObject::Binding, RuleObject::Probe],
            ),
            Self::UnknownResource => (NOTE, false, RULES),
            Self::UnservedResource => (ANY, true, RULES),
            Self::WrongApiVersion => (
                ERROR,
                true,
                &[
                    RuleObject::Policy,
                    RuleObject::Binding,
                    RuleObject::Definition,
                ],
            ),
        }
    }
}
