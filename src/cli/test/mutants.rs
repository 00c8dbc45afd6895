//! Mutation testing: makes small changes to policies, and checks that a test case detects them.
//!
//! A change of an expression replaces a part of its source. A changed policy that does not compile is discarded. A
//! change that is provably equivalent is excluded (see `equivalence`).
//!
//! Each changed policy is compiled when its cases are evaluated, and dropped afterwards. All changed policies together
//! would need memory that is quadratic in the length of the policy.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Serialize;

use super::equivalence::{self, EquivalenceChecker};
use super::trace::is_zero;
use crate::cel::ast::{Expr, Literal};
use crate::cli::text::clean;
use crate::policy::admission::Admission;
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::{RequestPolicy, matching};

/// The maximum number of changes of one policy.
const MAX_CHANGES: usize = 300;

/// The number of changes that are always tested, even for a long policy.
const MIN_CHANGES: usize = 20;

/// The maximum total size, in bytes, of the expressions that are compiled for the changes of one policy. Each change
/// compiles the whole policy.
const MAX_COMPILED_BYTES: usize = 8 << 20;

#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) field_ref: String,
    /// The offset in the source of the field, in code points.
    pub(super) offset: usize,
    /// The change, in words.
    pub(super) description: String,
    edit: Edit,
}

#[derive(Clone, Debug)]
enum Edit {
    /// Replaces the expression of a validation with `true`. The indices of the other validations do not change.
    RemoveValidation(usize),
    /// Replaces the expression of a match condition with `true`.
    RemoveCondition(usize),
    RemoveOperation {
        rule: usize,
        operation: usize,
    },
    /// Replaces `len` code points at the offset of the change with another string.
    Replace {
        len: usize,
        text: String,
    },
}

#[derive(Debug)]
pub(super) struct Changes {
    pub(super) tried: Vec<Change>,
    /// The number of changes that are not tested because there are too many.
    pub(super) n_untried: usize,
}

/// The result of compiling a changed policy.
pub(super) enum MutantOutcome<T> {
    /// The changed policy does not compile.
    Invalid,
    /// The change is provably equivalent.
    Equivalent,
    /// The changed policy is a mutant: its decisions may differ.
    Mutant(T),
}

/// The results of mutation testing.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MutantReport {
    /// The number of mutants, without equivalent changes.
    pub total: usize,
    /// The number of equivalent changes, which are excluded.
    pub equivalent: usize,
    /// The number of mutants that a case detects.
    pub killed: usize,
    /// The number of evaluated cases.
    pub evaluations: usize,
    /// The number of untested changes. A policy may have too many possible changes, or expressions that are too long.
    #[serde(skip_serializing_if = "is_zero")]
    pub untried: usize,
    /// The mutants that no case detects.
    pub survived: Vec<SurvivingMutant>,
    /// The policies that were skipped because one of their cases does not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

/// A mutant that no case detects.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SurvivingMutant {
    /// The name of the policy.
    pub policy: String,
    /// The path of the policy's file.
    pub file: String,
    /// The line of the change in that file.
    pub line: usize,
    /// The column of the change.
    pub column: usize,
    /// The changed field.
    pub field_ref: String,
    /// The change, in words.
    pub change: String,
}

impl Changes {
    /// Returns the changes of a policy. If there are too many, selects changes that are spread evenly over the policy.
    pub(super) fn new(compiled: &CompiledPolicy) -> Self {
        let mut all = Vec::new();
        add_removals(compiled.policy(), &mut all);
        let mut n_bytes = 0_usize;
        for (n, expression) in compiled.expressions().iter().enumerate() {
            n_bytes = n_bytes.saturating_add(expression.text.len());
            let is_decisive = matches!(
                expression.role,
                Role::Validation | Role::MatchCondition | Role::Variable
            );
            if is_decisive && compiled.program(n).is_some() {
                add_replacements(expression, &mut all);
            }
        }
        let max = (MAX_COMPILED_BYTES / n_bytes.max(1)).clamp(MIN_CHANGES, MAX_CHANGES);
        let n_all = all.len();
        // Selects `max` evenly spread changes, or all changes if there are fewer.
        let is_tried = |n: usize| n * max / n_all != (n + 1) * max / n_all;
        let all = all.into_iter().enumerate();
        let tried: Vec<Change> = all
            .filter_map(|(n, change)| is_tried(n).then_some(change))
            .collect();
        Self {
            n_untried: n_all - tried.len(),
            tried,
        }
    }
}

pub(super) struct MutantCompiler<'a> {
    compiled: &'a CompiledPolicy,
    equivalence: EquivalenceChecker<'a>,
    /// The number of expressions that do not compile in the unchanged policy.
    n_invalid: usize,
}

impl<'a> MutantCompiler<'a> {
    pub(super) fn new(compiled: &'a CompiledPolicy) -> Self {
        Self {
            compiled,
            equivalence: EquivalenceChecker::new(compiled),
            n_invalid: compiled.n_invalid(),
        }
    }

    pub(super) fn compile(&self, change: &Change) -> MutantOutcome<Admission> {
        let policy = self.compiled.policy();
        let Some(changed) = change.apply(policy) else {
            return MutantOutcome::Invalid;
        };
        let changed = CompiledPolicy::from_parts(changed, None, self.compiled.version());
        if changed.n_invalid() > self.n_invalid {
            return MutantOutcome::Invalid;
        }
        let is_equivalent = match change.edit {
            Edit::RemoveOperation { rule, operation } => {
                equivalence::is_operation_redundant(policy, rule, operation)
            }
            Edit::RemoveValidation(_) | Edit::RemoveCondition(_) | Edit::Replace { .. } => self
                .equivalence
                .is_expression_equivalent(&changed, &change.field_ref),
        };
        if is_equivalent {
            return MutantOutcome::Equivalent;
        }
        MutantOutcome::Mutant(Admission::from_compiled(&changed))
    }
}

impl Change {
    /// Returns the changed policy, or `None` if the policy does not have the field to change.
    fn apply(&self, policy: &RequestPolicy) -> Option<RequestPolicy> {
        let mut policy = policy.clone();
        match &self.edit {
            Edit::RemoveValidation(n) => {
                let validation = policy.validations.get_mut(*n)?;
                "true".clone_into(&mut validation.expression);
                validation.message_expression = None;
            }
            Edit::RemoveCondition(n) => {
                let condition = policy.match_conditions.get_mut(*n)?;
                "true".clone_into(&mut condition.expression);
            }
            Edit::RemoveOperation { rule, operation } => {
                let rules = policy.match_constraints.as_mut()?.resource_rules.as_mut()?;
                let operations = rules.get_mut(*rule)?.operations.as_mut()?;
                if *operation >= operations.len() {
                    return None;
                }
                operations.remove(*operation);
            }
            Edit::Replace { len, text } => {
                let expression = expression_mut(&mut policy, &self.field_ref)?;
                let before = expression.chars().take(self.offset);
                let after = expression.chars().skip(self.offset + len);
                *expression = before.chain(text.chars()).chain(after).collect();
            }
        }
        Some(policy)
    }
}

/// Returns the expression of a field such as `spec.variables[0].expression`.
fn expression_mut<'a>(policy: &'a mut RequestPolicy, field_ref: &str) -> Option<&'a mut String> {
    let (list, rest) = field_ref.strip_prefix("spec.")?.split_once('[')?;
    let (n, _) = rest.split_once(']')?;
    let n: usize = n.parse().ok()?;
    Some(match list {
        "validations" => &mut policy.validations.get_mut(n)?.expression,
        "matchConditions" => &mut policy.match_conditions.get_mut(n)?.expression,
        "variables" => &mut policy.variables.get_mut(n)?.expression,
        _ => return None,
    })
}

/// Adds the changes that remove a validation, a match condition or an operation.
fn add_removals(policy: &RequestPolicy, found: &mut Vec<Change>) {
    let mut add = |field_ref: String, description: String, edit| {
        found.push(Change {
            field_ref,
            offset: 0,
            description,
            edit,
        });
    };
    for n in 0..policy.validations.len() {
        let field_ref = format!("spec.validations[{n}].expression");
        let description = "the validation is removed".to_owned();
        add(field_ref, description, Edit::RemoveValidation(n));
    }
    for n in 0..policy.match_conditions.len() {
        let field_ref = format!("spec.matchConditions[{n}].expression");
        let description = "the match condition is removed".to_owned();
        add(field_ref, description, Edit::RemoveCondition(n));
    }
    for (rule, of_rule) in matching::rules(policy).iter().enumerate() {
        let operations = of_rule.operations.as_deref().unwrap_or_default();
        for (operation, name) in operations.iter().enumerate() {
            let field_ref =
                format!("spec.matchConstraints.resourceRules[{rule}].operations[{operation}]");
            let description = format!("the operation {name} is removed");
            add(
                field_ref,
                description,
                Edit::RemoveOperation { rule, operation },
            );
        }
    }
}

fn add_replacements(expression: &PolicyExpression, found: &mut Vec<Change>) {
    let Ok(ast) = expression.parsed() else { return };
    let text: Vec<char> = expression.text.chars().collect();
    for (id, expr) in ast.iter() {
        let offset = usize::try_from(ast.offset(id)).unwrap_or(usize::MAX);
        for (from, to) in changes(expr) {
            let chars: Vec<char> = from.chars().collect();
            let is_match = text
                .get(offset..)
                .is_some_and(|rest| rest.starts_with(&chars));
            if is_match {
                found.push(Change {
                    field_ref: expression.field_ref.clone(),
                    offset,
                    description: if to.is_empty() {
                        format!("`{from}` is removed")
                    } else {
                        format!("`{from}` is replaced with `{to}`")
                    },
                    edit: Edit::Replace {
                        len: chars.len(),
                        text: to,
                    },
                });
            }
        }
    }
}

/// Returns the changes of a node: the source at its location, and the replacement.
fn changes(expr: &Expr) -> Vec<(String, String)> {
    let replace_with = |from: &str, to: &[&str]| {
        let pairs = to.iter().map(|to| (from.to_owned(), (*to).to_owned()));
        pairs.collect::<Vec<_>>()
    };
    match expr {
        Expr::Call { function, args, .. } => match (&**function, args.len()) {
            ("_==_", 2) => replace_with("==", &["!="]),
            ("_!=_", 2) => replace_with("!=", &["=="]),
            ("_<_", 2) => replace_with("<", &["<=", ">="]),
            ("_<=_", 2) => replace_with("<=", &["<", ">"]),
            ("_>_", 2) => replace_with(">", &[">=", "<="]),
            ("_>=_", 2) => replace_with(">=", &[">", "<"]),
            ("_&&_", _) => replace_with("&&", &["||"]),
            ("_||_", _) => replace_with("||", &["&&"]),
            ("!_", 1) => replace_with("!", &[""]),
            _ => Vec::new(),
        },
        Expr::Literal(Literal::Int(value)) if *value >= 0 => {
            let text = value.to_string();
            let next = value.saturating_add(1).to_string();
            vec![(text, next)]
        }
        Expr::Literal(Literal::Bool(value)) => {
            replace_with(&value.to_string(), &[if *value { "false" } else { "true" }])
        }
        _ => Vec::new(),
    }
}

/// Renders the surviving mutants and the counts as lines.
#[must_use]
pub fn text(report: &MutantReport) -> String {
    let mut out = String::new();
    for survived in &report.survived {
        let _ = writeln!(
            out,
            "not detected: {} ({}, {}:{}:{})",
            clean(&survived.change),
            survived.field_ref,
            clean(&survived.file),
            survived.line,
            survived.column
        );
    }
    for name in &report.skipped {
        let name = clean(name);
        let _ = writeln!(
            out,
            "skipped: {name}, because one of its cases does not pass"
        );
    }
    let left_out = match report.equivalent {
        0 => String::new(),
        n => format!(", {n} equivalent changes excluded"),
    };
    let untried = match report.untried {
        0 => String::new(),
        n => format!(", {n} changes not tested (too many, or policies too long)"),
    };
    let _ = writeln!(
        out,
        "mutants: {} of {} detected{left_out}{untried}",
        report.killed, report.total
    );
    out
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// Returns the descriptions of the mutants of a policy, and the number of equivalent changes.
    fn changes_of(spec: &serde_json::Value) -> (BTreeSet<String>, usize) {
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let compiled = CompiledPolicy::new(&policy);
        let compiler = MutantCompiler::new(&compiled);
        let (mut description, mut n_equivalent) = (BTreeSet::new(), 0);
        for change in Changes::new(&compiled).tried {
            match compiler.compile(&change) {
                MutantOutcome::Invalid => {}
                MutantOutcome::Equivalent => n_equivalent += 1,
                MutantOutcome::Mutant(_) => {
                    description.insert(format!("{} {}", change.field_ref, change.description));
                }
            }
        }
        (description, n_equivalent)
    }

    #[test]
    fn changes_without_effect_on_result_are_not_mutants() {
        let (found, n_equivalent) = changes_of(&json!({
            "validations": [
                // The results never depend on `object.a == 3` and `object.b == 1`, so changes of these operands are
                // equivalent. A change that keeps `1 < 2` true is also equivalent.
                {"expression": "1 < 2 || object.a == 3"},
                {"expression": "false ? object.b == 1 : object.c == 2"},
            ],
        }));
        let expected = [
            "spec.validations[0].expression `1` is replaced with `2`",
            "spec.validations[0].expression `<` is replaced with `>=`",
            "spec.validations[0].expression `||` is replaced with `&&`",
            "spec.validations[1].expression `2` is replaced with `3`",
            "spec.validations[1].expression `==` is replaced with `!=`",
            "spec.validations[1].expression `false` is replaced with `true`",
            "spec.validations[1].expression the validation is removed",
        ];
        assert_eq!(found, expected.map(str::to_owned).into());
        assert_eq!(n_equivalent, 7);
    }

    #[test]
    fn changes_of_unused_variable_are_equivalent_mutants() {
        let changes = |validation: &str| {
            changes_of(&json!({
                "variables": [
                    {"name": "a", "expression": "object.x > 1"},
                    {"name": "b", "expression": "variables.a && object.y"},
                ],
                "validations": [{"expression": validation}],
            }))
        };
        let (found, n_equivalent) = changes("object.z == 'q'");
        assert_eq!((found.len(), n_equivalent), (2, 4), "{found:?}");
        let (found, n_equivalent) = changes("variables.b");
        assert_eq!((found.len(), n_equivalent), (5, 0), "{found:?}");
    }

    #[test]
    fn changes_of_used_variable_are_not_equivalent_mutants() {
        for read in [
            "variables.limit",
            ".variables.limit",
            "dyn(variables).limit",
            "dyn(.variables).limit",
            "dyn(dyn(variables))['limit']",
            "dyn(variables)[?'limit'].orValue(3)",
            "dyn(variables)[object.key]",
            "has(.variables.limit) ? 1 : 2",
        ] {
            let (found, n_equivalent) = changes_of(&json!({
                "variables": [{"name": "limit", "expression": "object.x ? 7 : 8"}],
                "validations": [{"expression": format!("object.z < ({read})")}],
            }));
            let is_of_variable =
                |description: &&String| description.starts_with("spec.variables[0]");
            assert_eq!(
                found.iter().filter(is_of_variable).count(),
                2,
                "{read}: {found:?}"
            );
            assert_eq!(n_equivalent, 0, "{read}");
        }
    }

    #[test]
    fn changes_beyond_limit_are_sampled_evenly_and_counted() {
        let changes_of_copies = |n: usize, expression: &str| {
            let validations = vec![json!({"expression": expression}); n];
            let policy = json!({"metadata": {"name": "p"}, "spec": {"validations": validations}});
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
            Changes::new(&CompiledPolicy::new(&policy))
        };
        let changes = changes_of_copies(150, "object.a == 'q'");
        assert_eq!((changes.tried.len(), changes.n_untried), (300, 0));
        let changes = changes_of_copies(600, "object.a == 'q'");
        assert_eq!((changes.tried.len(), changes.n_untried), (300, 900));
        let is_of = |n: usize| {
            let field_ref = format!("spec.validations[{n}].expression");
            changes
                .tried
                .iter()
                .any(move |change| change.field_ref == field_ref)
        };
        assert!((0..600).step_by(8).all(|n| (n..n + 8).any(is_of)));
        let long = format!("object.a == '{}'", "q".repeat(10_000));
        let changes = changes_of_copies(90, &long);
        assert_eq!((changes.tried.len(), changes.n_untried), (MIN_CHANGES, 160));
    }

    #[test]
    fn removal_of_redundant_operation_is_equivalent_mutant() {
        let rule = |operations: &[&str], resources: &[&str]| {
            json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": operations,
                "resources": resources})
        };
        let changes = |rules: &[serde_json::Value]| {
            let (found, n_equivalent) = changes_of(&json!({
                "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "object.a == 'q'"}],
            }));
            (found.len() - 2, n_equivalent)
        };
        assert_eq!(changes(&[rule(&["CREATE", "UPDATE"], &["pods"])]), (2, 0));
        assert_eq!(changes(&[rule(&["CREATE", "*"], &["pods"])]), (1, 1));
        assert_eq!(changes(&[rule(&["CREATE", "CONNECT"], &["pods"])]), (1, 1));
        assert_eq!(
            changes(&[rule(&["CREATE", "CONNECT"], &["pods/exec"])]),
            (2, 0)
        );
        let both = [
            rule(&["CREATE", "UPDATE"], &["pods"]),
            rule(&["*"], &["pods"]),
        ];
        assert_eq!(changes(&both), (1, 2));
    }
}
