//! Mutants: policies that are changed in small ways, to see whether a case notices.
//!
//! A change of an expression replaces a part of its text. A changed policy that does not compile is no mutant, and one that
//! provably decides alike (`alike`) is left out. Each changed policy is compiled when its cases are evaluated, and dropped
//! afterwards: all of them together need memory in the square of the policy's length.

use std::fmt::Write as _;

use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicySpec,
};
use schemars::JsonSchema;
use serde::Serialize;

use super::alike::{self, Alike};
use super::trace::is_zero;
use crate::cel::ast::{Expr, Literal};
use crate::cli::text::clean;
use crate::policy::admission::Admission;
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::{PolicyExpression, Role};

/// The most changes of one policy that are tried.
const MAX_CHANGES: usize = 300;

/// The fewest changes that are tried, however long the policy is.
const MIN_CHANGES: usize = 20;

/// Bytes of expressions that are compiled for the changes of one policy: each change compiles the whole policy.
const MAX_COMPILED_BYTES: usize = 8 << 20;

/// A change of a policy.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The field that is changed.
    pub(super) field_ref: String,
    /// Where in the text of the field, in code points.
    pub(super) offset: usize,
    /// The change, in words.
    pub(super) words: String,
    edit: Edit,
}

/// An edit of a policy.
#[derive(Clone, Debug)]
enum Edit {
    /// A validation without effect. The others keep their places.
    RemoveValidation(usize),
    /// A match condition without effect.
    RemoveCondition(usize),
    /// A rule without one of its operations.
    RemoveOperation { rule: usize, operation: usize },
    /// Another text in place of the `len` code points at the offset of the change.
    Replace { len: usize, text: String },
}

/// The changes of a policy that are tried.
#[derive(Debug)]
pub(super) struct Changes {
    pub(super) tried: Vec<Change>,
    /// The number of changes that are not tried, since there are too many.
    pub(super) n_untried: usize,
}

/// The result of a change.
pub(super) enum Judged<T> {
    /// The changed policy does not compile.
    Broken,
    /// The changed policy provably decides alike.
    Alike,
    /// The changed policy may decide otherwise.
    Mutant(T),
}

/// Outcome of the mutants of a run.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MutantReport {
    /// How many there were, without those that provably decide alike.
    pub total: usize,
    /// How many were left out, since they provably decide alike.
    pub alike: usize,
    /// How many a case noticed.
    pub caught: usize,
    /// How many cases were evaluated for that.
    pub evaluations: usize,
    /// The number of changes that were not tried, since the policies have too many or are too long.
    #[serde(skip_serializing_if = "is_zero")]
    pub untried: usize,
    /// Those that no case noticed.
    pub missed: Vec<Missed>,
    /// The policies that were left out, since one of their cases does not pass.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub skipped: Vec<String>,
}

/// A mutant that no case noticed.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Missed {
    /// The name of the policy.
    pub policy: String,
    /// The file.
    pub file: String,
    /// The line.
    pub line: usize,
    /// The column.
    pub column: usize,
    /// The field that is changed.
    pub field_ref: String,
    /// The change, in words.
    pub change: String,
}

impl Changes {
    /// Returns the changes of a policy. If there are too many, those that are tried are spread evenly over the policy.
    pub(super) fn new(compiled: &CompiledPolicy) -> Self {
        let mut all = Vec::new();
        removals(compiled.policy(), &mut all);
        let mut n_bytes = 0_usize;
        for (n, expression) in compiled.expressions().iter().enumerate() {
            n_bytes = n_bytes.saturating_add(expression.text.len());
            let is_decisive = matches!(
                expression.role,
                Role::Validation | Role::MatchCondition | Role::Variable
            );
            if is_decisive && compiled.program(n).is_some() {
                replacements(expression, &mut all);
            }
        }
        let max = (MAX_COMPILED_BYTES / n_bytes.max(1)).clamp(MIN_CHANGES, MAX_CHANGES);
        let n_all = all.len();
        // All changes, if there are at most `max`.
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

/// Decides on the changes of one policy.
pub(super) struct Judge<'a> {
    compiled: &'a CompiledPolicy,
    known: Alike<'a>,
    /// The number of expressions that do not compile before a change.
    n_broken: usize,
}

impl<'a> Judge<'a> {
    pub(super) fn new(compiled: &'a CompiledPolicy) -> Self {
        Self {
            compiled,
            known: Alike::new(compiled),
            n_broken: n_broken(compiled),
        }
    }

    /// Compiles the changed policy.
    pub(super) fn judge(&self, change: &Change) -> Judged<Admission> {
        let policy = self.compiled.policy();
        let Some(changed) = change.apply(policy) else {
            return Judged::Broken;
        };
        let changed = CompiledPolicy::new(&changed);
        if n_broken(&changed) > self.n_broken {
            return Judged::Broken;
        }
        let is_alike = match change.edit {
            Edit::RemoveOperation { rule, operation } => alike::operation(policy, rule, operation),
            Edit::RemoveValidation(_) | Edit::RemoveCondition(_) | Edit::Replace { .. } => {
                self.known.expression(&changed, &change.field_ref)
            }
        };
        if is_alike {
            return Judged::Alike;
        }
        Judged::Mutant(Admission::from_compiled(&changed))
    }
}

/// How many expressions do not compile.
fn n_broken(compiled: &CompiledPolicy) -> usize {
    let all = 0..compiled.expressions().len();
    all.filter(|n| compiled.program(*n).is_none()).count()
}

impl Change {
    /// Returns the changed policy, or `None` if it has no such field.
    fn apply(&self, policy: &ValidatingAdmissionPolicy) -> Option<ValidatingAdmissionPolicy> {
        let mut policy = policy.clone();
        let spec = policy.spec.as_mut()?;
        match &self.edit {
            Edit::RemoveValidation(n) => {
                let validation = spec.validations.as_mut()?.get_mut(*n)?;
                "true".clone_into(&mut validation.expression);
                validation.message_expression = None;
            }
            Edit::RemoveCondition(n) => {
                let condition = spec.match_conditions.as_mut()?.get_mut(*n)?;
                "true".clone_into(&mut condition.expression);
            }
            Edit::RemoveOperation { rule, operation } => {
                let rules = spec.match_constraints.as_mut()?.resource_rules.as_mut()?;
                let operations = rules.get_mut(*rule)?.operations.as_mut()?;
                if *operation >= operations.len() {
                    return None;
                }
                operations.remove(*operation);
            }
            Edit::Replace { len, text } => {
                let expression = expression_mut(spec, &self.field_ref)?;
                let before = expression.chars().take(self.offset);
                let after = expression.chars().skip(self.offset + len);
                *expression = before.chain(text.chars()).chain(after).collect();
            }
        }
        Some(policy)
    }
}

/// Returns the expression of a field such as `spec.variables[0].expression`.
fn expression_mut<'a>(
    spec: &'a mut ValidatingAdmissionPolicySpec,
    field_ref: &str,
) -> Option<&'a mut String> {
    let (list, rest) = field_ref.strip_prefix("spec.")?.split_once('[')?;
    let (n, _) = rest.split_once(']')?;
    let n: usize = n.parse().ok()?;
    Some(match list {
        "validations" => &mut spec.validations.as_mut()?.get_mut(n)?.expression,
        "matchConditions" => &mut spec.match_conditions.as_mut()?.get_mut(n)?.expression,
        "variables" => &mut spec.variables.as_mut()?.get_mut(n)?.expression,
        _ => return None,
    })
}

/// Changes that remove a validation, a match condition or an operation.
fn removals(policy: &ValidatingAdmissionPolicy, found: &mut Vec<Change>) {
    let Some(spec) = &policy.spec else { return };
    let mut add = |field_ref: String, words: String, edit| {
        found.push(Change {
            field_ref,
            offset: 0,
            words,
            edit,
        });
    };
    for n in 0..spec.validations.as_deref().unwrap_or_default().len() {
        let field_ref = format!("spec.validations[{n}].expression");
        let words = "the validation is left out".to_owned();
        add(field_ref, words, Edit::RemoveValidation(n));
    }
    for n in 0..spec.match_conditions.as_deref().unwrap_or_default().len() {
        let field_ref = format!("spec.matchConditions[{n}].expression");
        let words = "the match condition is left out".to_owned();
        add(field_ref, words, Edit::RemoveCondition(n));
    }
    let constraints = spec.match_constraints.as_ref();
    let rules = constraints.and_then(|constraints| constraints.resource_rules.as_deref());
    for (rule, of_rule) in rules.unwrap_or_default().iter().enumerate() {
        let operations = of_rule.operations.as_deref().unwrap_or_default();
        for (operation, name) in operations.iter().enumerate() {
            let field_ref =
                format!("spec.matchConstraints.resourceRules[{rule}].operations[{operation}]");
            let words = format!("the operation {name} is left out");
            add(field_ref, words, Edit::RemoveOperation { rule, operation });
        }
    }
}

/// Changes of the text of one expression.
fn replacements(expression: &PolicyExpression, found: &mut Vec<Change>) {
    let Ok(ast) = expression.parsed() else { return };
    let text: Vec<char> = expression.text.chars().collect();
    for (id, expr) in ast.iter() {
        let offset = usize::try_from(ast.offset(id)).unwrap_or(usize::MAX);
        for (from, to) in changes(expr) {
            let chars: Vec<char> = from.chars().collect();
            let is_there = text
                .get(offset..)
                .is_some_and(|rest| rest.starts_with(&chars));
            if is_there {
                found.push(Change {
                    field_ref: expression.field_ref.clone(),
                    offset,
                    words: format!("`{from}` is `{to}`"),
                    edit: Edit::Replace {
                        len: chars.len(),
                        text: to,
                    },
                });
            }
        }
    }
}

/// The changes of a part: the text at its place, and what stands there instead.
fn changes(expr: &Expr) -> Vec<(String, String)> {
    let of = |from: &str, to: &[&str]| {
        let pairs = to.iter().map(|to| (from.to_owned(), (*to).to_owned()));
        pairs.collect::<Vec<_>>()
    };
    match expr {
        Expr::Call { function, args, .. } => match (&**function, args.len()) {
            ("_==_", 2) => of("==", &["!="]),
            ("_!=_", 2) => of("!=", &["=="]),
            ("_<_", 2) => of("<", &["<=", ">="]),
            ("_<=_", 2) => of("<=", &["<", ">"]),
            ("_>_", 2) => of(">", &[">=", "<="]),
            ("_>=_", 2) => of(">=", &[">", "<"]),
            ("_&&_", _) => of("&&", &["||"]),
            ("_||_", _) => of("||", &["&&"]),
            ("!_", 1) => of("!", &[""]),
            _ => Vec::new(),
        },
        Expr::Literal(Literal::Int(value)) if *value >= 0 => {
            let text = value.to_string();
            let next = value.saturating_add(1).to_string();
            vec![(text, next)]
        }
        Expr::Literal(Literal::Bool(value)) => {
            of(&value.to_string(), &[if *value { "false" } else { "true" }])
        }
        _ => Vec::new(),
    }
}

/// The mutants as text: how many are noticed, and those that are not.
#[must_use]
pub fn text(report: &MutantReport) -> String {
    let mut out = String::new();
    for missed in &report.missed {
        let _ = writeln!(
            out,
            "not noticed: {} ({}, {}:{}:{})",
            clean(&missed.change),
            missed.field_ref,
            clean(&missed.file),
            missed.line,
            missed.column
        );
    }
    for name in &report.skipped {
        let name = clean(name);
        let _ = writeln!(out, "not changed: {name}, of whose cases one does not pass");
    }
    let left_out = match report.alike {
        0 => String::new(),
        n => format!(", {n} left out that decide alike"),
    };
    let untried = match report.untried {
        0 => String::new(),
        n => format!(", {n} not tried (too many, or policies too long)"),
    };
    let _ = writeln!(
        out,
        "mutants: {} of {} noticed{left_out}{untried}",
        report.caught, report.total
    );
    out
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::json;

    use super::*;

    /// The changes of a policy in words, and how many were left out.
    fn changes_of(spec: &serde_json::Value) -> (BTreeSet<String>, usize) {
        let policy = json!({"metadata": {"name": "p"}, "spec": spec});
        let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
        let compiled = CompiledPolicy::new(&policy);
        let judge = Judge::new(&compiled);
        let (mut words, mut n_alike) = (BTreeSet::new(), 0);
        for change in Changes::new(&compiled).tried {
            match judge.judge(&change) {
                Judged::Broken => {}
                Judged::Alike => n_alike += 1,
                Judged::Mutant(_) => {
                    words.insert(format!("{} {}", change.field_ref, change.words));
                }
            }
        }
        (words, n_alike)
    }

    #[test]
    fn what_provably_decides_alike_is_left_out() {
        let (found, n_alike) = changes_of(&json!({
            "validations": [
                // Each of the changes within the dead operand, and of the constants, decides alike.
                {"expression": "1 < 2 || object.a == 3"},
                {"expression": "false ? object.b == 1 : object.c == 2"},
            ],
        }));
        let expected = [
            "spec.validations[0].expression `1` is `2`",
            "spec.validations[0].expression `<` is `>=`",
            "spec.validations[0].expression `||` is `&&`",
            "spec.validations[1].expression `2` is `3`",
            "spec.validations[1].expression `==` is `!=`",
            "spec.validations[1].expression `false` is `true`",
            "spec.validations[1].expression the validation is left out",
        ];
        assert_eq!(found, expected.map(str::to_owned).into());
        assert_eq!(n_alike, 7);
    }

    #[test]
    fn a_variable_that_nothing_reads_is_not_changed() {
        let of = |validation: &str| {
            changes_of(&json!({
                "variables": [
                    {"name": "a", "expression": "object.x > 1"},
                    {"name": "b", "expression": "variables.a && object.y"},
                ],
                "validations": [{"expression": validation}],
            }))
        };
        let (found, n_alike) = of("object.z == 'q'");
        assert_eq!((found.len(), n_alike), (2, 4), "{found:?}");
        let (found, n_alike) = of("variables.b");
        assert_eq!((found.len(), n_alike), (5, 0), "{found:?}");
    }

    #[test]
    fn mutants_of_read_variable_are_kept() {
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
            let (found, n_alike) = changes_of(&json!({
                "variables": [{"name": "limit", "expression": "object.x ? 7 : 8"}],
                "validations": [{"expression": format!("object.z < ({read})")}],
            }));
            let is_of_variable = |words: &&String| words.starts_with("spec.variables[0]");
            assert_eq!(
                found.iter().filter(is_of_variable).count(),
                2,
                "{read}: {found:?}"
            );
            assert_eq!(n_alike, 0, "{read}");
        }
    }

    #[test]
    fn changes_beyond_limit_are_spread_and_counted() {
        let of = |n: usize, expression: &str| {
            let validations = vec![json!({"expression": expression}); n];
            let policy = json!({"metadata": {"name": "p"}, "spec": {"validations": validations}});
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
            Changes::new(&CompiledPolicy::new(&policy))
        };
        let changes = of(150, "object.a == 'q'");
        assert_eq!((changes.tried.len(), changes.n_untried), (300, 0));
        let changes = of(600, "object.a == 'q'");
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
        let changes = of(90, &long);
        assert_eq!((changes.tried.len(), changes.n_untried), (MIN_CHANGES, 160));
    }

    #[test]
    fn an_operation_that_is_there_twice_is_not_left_out() {
        let rule = |operations: &[&str], resources: &[&str]| {
            json!({"apiGroups": [""], "apiVersions": ["v1"], "operations": operations,
                "resources": resources})
        };
        let of = |rules: &[serde_json::Value]| {
            let (found, n_alike) = changes_of(&json!({
                "matchConstraints": {"resourceRules": rules}, "validations": [{"expression": "object.a == 'q'"}],
            }));
            (found.len() - 2, n_alike)
        };
        assert_eq!(of(&[rule(&["CREATE", "UPDATE"], &["pods"])]), (2, 0));
        assert_eq!(of(&[rule(&["CREATE", "*"], &["pods"])]), (1, 1));
        assert_eq!(of(&[rule(&["CREATE", "CONNECT"], &["pods"])]), (1, 1));
        assert_eq!(of(&[rule(&["CREATE", "CONNECT"], &["pods/exec"])]), (2, 0));
        let both = [
            rule(&["CREATE", "UPDATE"], &["pods"]),
            rule(&["*"], &["pods"]),
        ];
        assert_eq!(of(&both), (1, 2));
    }
}
