//! Mutants: policies that are changed in small ways, to see whether a case notices.
//!
//! Takes a policy, gives changed ones. A change of an expression is one of its text at a place, so that it can be shown;
//! what does not compile is no mutant, and what provably decides alike (`alike`) is left out.

use std::fmt::Write as _;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use schemars::JsonSchema;
use serde::Serialize;

use super::alike::{self, Alike};
use crate::cel::ast::{Expr, Literal};
use crate::cli::parallel;
use crate::cli::text::clean;
use crate::policy::admission::Admission;
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::{PolicyExpression, Role};

/// The most mutants of one policy.
const MAX_MUTANTS: usize = 300;

/// A changed policy that may decide otherwise.
#[derive(Debug)]
pub(super) struct Mutant {
    /// The policy, ready to decide.
    pub(super) admission: Admission,
    /// The change.
    pub(super) change: Change,
}

/// A change of a policy.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// The changed policy.
    policy: ValidatingAdmissionPolicy,
    /// The field that is changed.
    pub(super) field_ref: String,
    /// Where in the text of the field, in code points.
    pub(super) offset: usize,
    /// The change, in words.
    pub(super) words: String,
    /// The rule and the operation that is left out of it, where that is the change.
    operation: Option<(usize, usize)>,
}

/// The fate of a change.
enum Judged {
    /// It does not compile.
    Broken,
    /// It provably decides alike.
    Alike,
    /// It may decide otherwise.
    Mutant(Box<Admission>),
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

/// The mutants of a policy, and how many changes were left out since they provably decide alike.
pub(super) fn of_policy(compiled: &CompiledPolicy) -> (Vec<Mutant>, usize) {
    let policy = compiled.policy();
    let mut found = Vec::new();
    dropped(policy, &mut found);
    for (n, expression) in compiled.expressions().iter().enumerate() {
        let is_decisive = matches!(
            expression.role,
            Role::Validation | Role::MatchCondition | Role::Variable
        );
        if !is_decisive || compiled.program(n).is_none() {
            continue;
        }
        of_expression(policy, expression, &mut found);
    }
    let known = Alike::new(compiled);
    let n_broken = n_broken(compiled);
    let judged = parallel::map(&found, |change| judged(&known, n_broken, policy, change));
    let mut n_alike = 0;
    let mut mutants = Vec::new();
    for (change, judged) in found.into_iter().zip(judged) {
        match judged {
            Judged::Broken => {}
            Judged::Alike => n_alike += 1,
            Judged::Mutant(admission) => mutants.push(Mutant {
                admission: *admission,
                change,
            }),
        }
    }
    mutants.truncate(MAX_MUTANTS);
    (mutants, n_alike)
}

/// How many expressions do not compile.
fn n_broken(compiled: &CompiledPolicy) -> usize {
    let all = 0..compiled.expressions().len();
    all.filter(|n| compiled.program(*n).is_none()).count()
}

/// The fate of a change of `policy`, of whose expressions `n_broken_before` do not compile.
fn judged(
    known: &Alike<'_>,
    n_broken_before: usize,
    policy: &ValidatingAdmissionPolicy,
    change: &Change,
) -> Judged {
    let changed = CompiledPolicy::new(&change.policy);
    if n_broken(&changed) > n_broken_before {
        return Judged::Broken;
    }
    let is_alike = match change.operation {
        Some((n, m)) => alike::operation(policy, n, m),
        None => known.expression(&changed, &change.field_ref),
    };
    if is_alike {
        return Judged::Alike;
    }
    Judged::Mutant(Box::new(Admission::from_compiled(&changed)))
}

/// Policies without one validation, match condition, or operation.
fn dropped(policy: &ValidatingAdmissionPolicy, found: &mut Vec<Change>) {
    let Some(spec) = &policy.spec else { return };
    let validations = spec.validations.as_deref().unwrap_or_default();
    for n in 0..validations.len() {
        let mut changed = policy.clone();
        let of_it = changed
            .spec
            .as_mut()
            .and_then(|spec| spec.validations.as_mut());
        if let Some(validation) = of_it.and_then(|all| all.get_mut(n)) {
            // The others keep their places.
            "true".clone_into(&mut validation.expression);
            validation.message_expression = None;
        }
        found.push(Change {
            policy: changed,
            field_ref: format!("spec.validations[{n}].expression"),
            offset: 0,
            words: "the validation is left out".to_owned(),
            operation: None,
        });
    }
    let conditions = spec.match_conditions.as_deref().unwrap_or_default();
    for n in 0..conditions.len() {
        let mut changed = policy.clone();
        let of_it = changed
            .spec
            .as_mut()
            .and_then(|spec| spec.match_conditions.as_mut());
        if let Some(condition) = of_it.and_then(|all| all.get_mut(n)) {
            "true".clone_into(&mut condition.expression);
        }
        found.push(Change {
            policy: changed,
            field_ref: format!("spec.matchConditions[{n}].expression"),
            offset: 0,
            words: "the match condition is left out".to_owned(),
            operation: None,
        });
    }
    let constraints = spec.match_constraints.as_ref();
    let rules = constraints.and_then(|constraints| constraints.resource_rules.as_deref());
    for (n, rule) in rules.unwrap_or_default().iter().enumerate() {
        let operations = rule.operations.as_deref().unwrap_or_default();
        for (m, operation) in operations.iter().enumerate() {
            let mut changed = policy.clone();
            let of_it = changed
                .spec
                .as_mut()
                .and_then(|spec| spec.match_constraints.as_mut())
                .and_then(|constraints| constraints.resource_rules.as_mut())
                .and_then(|rules| rules.get_mut(n))
                .and_then(|rule| rule.operations.as_mut());
            if let Some(operations) = of_it.filter(|operations| m < operations.len()) {
                operations.remove(m);
            }
            found.push(Change {
                policy: changed,
                field_ref: format!("spec.matchConstraints.resourceRules[{n}].operations[{m}]"),
                offset: 0,
                words: format!("the operation {operation} is left out"),
                operation: Some((n, m)),
            });
        }
    }
}

/// Changes of the text of one expression.
fn of_expression(
    policy: &ValidatingAdmissionPolicy,
    expression: &PolicyExpression,
    found: &mut Vec<Change>,
) {
    let Ok(ast) = expression.parsed() else { return };
    let text: Vec<char> = expression.text.chars().collect();
    for (id, expr) in ast.iter() {
        let offset = usize::try_from(ast.offset(id)).unwrap_or(usize::MAX);
        for (from, to) in changes(expr) {
            let from: Vec<char> = from.chars().collect();
            let is_there = text
                .get(offset..)
                .is_some_and(|rest| rest.starts_with(&from));
            if !is_there {
                continue;
            }
            let before = text.iter().take(offset);
            let after = text.iter().skip(offset + from.len());
            let changed: String = before
                .copied()
                .chain(to.chars())
                .chain(after.copied())
                .collect();
            let Some(changed) = with_text(policy, &expression.field_ref, changed) else {
                continue;
            };
            let from: String = from.into_iter().collect();
            found.push(Change {
                policy: changed,
                field_ref: expression.field_ref.clone(),
                offset,
                words: format!("`{from}` is `{to}`"),
                operation: None,
            });
            if found.len() >= MAX_MUTANTS * 2 {
                return;
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

/// `policy` with another text in the field of an expression.
fn with_text(
    policy: &ValidatingAdmissionPolicy,
    field_ref: &str,
    text: String,
) -> Option<ValidatingAdmissionPolicy> {
    let mut policy = policy.clone();
    let spec = policy.spec.as_mut()?;
    let (list, rest) = field_ref.strip_prefix("spec.")?.split_once('[')?;
    let (n, _) = rest.split_once(']')?;
    let n: usize = n.parse().ok()?;
    let expression = match list {
        "validations" => &mut spec.validations.as_mut()?.get_mut(n)?.expression,
        "matchConditions" => &mut spec.match_conditions.as_mut()?.get_mut(n)?.expression,
        "variables" => &mut spec.variables.as_mut()?.get_mut(n)?.expression,
        _ => return None,
    };
    *expression = text;
    Some(policy)
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
    let _ = writeln!(
        out,
        "mutants: {} of {} noticed{left_out}",
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
        let (found, n_alike) = of_policy(&CompiledPolicy::new(&policy));
        let found = found.into_iter();
        let words =
            found.map(|mutant| format!("{} {}", mutant.change.field_ref, mutant.change.words));
        (words.collect(), n_alike)
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
