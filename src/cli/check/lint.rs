//! Findings of lints about suspicious expressions and fields, which probably do not do what their author intended.

use std::collections::HashMap;

use goyaml::Node;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;

use super::expressions::{finding_at, lint_proposal};
use super::finding::{Assumption, Finding, Severity};
use super::fixes::{Fixes, group_edit, mark_withheld, set_group_fix};
use super::known::Known;
use super::policy::{PolicyAnalysis, bindings_of, object_finding};
use crate::cel::source::SourceMap;
use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::policy::RequestPolicy;
use crate::policy::advice::Replacement;
use crate::policy::expressions::Role;
use crate::policy::lint::{self, Lint};
use crate::policy::matching;
use crate::policy::rule::Rule;

/// Maximum number of bindings to check per policy, since each is compared with all served resources.
const MAX_BINDINGS: usize = 100;

/// Adds findings about suspicious parts of `policy`, unless type checking has a finding at the same location.
pub(super) fn check(
    policy: &Object<RequestPolicy>,
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    let unlike = analysis.typed.incomparable.iter().map(|unlike| Lint {
        rule: Rule::IncomparableTypes,
        field_ref: unlike.field_ref.clone(),
        location: Some(unlike.location),
        message: unlike.message.clone(),
        fix: None,
        is_harmless: false,
    });
    let all = lint::find(
        analysis.compiled(),
        analysis.matched(),
        (&known.mapper, known),
    );
    let non_optional = &analysis.typed.non_optional;
    let optionals = lint::missing_optionals(analysis.compiled(), non_optional);
    let all = all.into_iter().chain(unlike).chain(optionals);
    let lints = all.filter(|lint| !analysis.has_type_finding(lint));
    let mut lints: Vec<Lint> = lints.collect();
    always_false(analysis, &mut lints);
    remove_resources_of_void_rules(policy, &lints, findings);
    let mut fixes = Fixes::new(policy, known, analysis);
    fixes.remove_unsafe_names(findings);
    for lint in &lints {
        // The finding about the absent value already shows the effects of possible defaults, so the lint adds no fix.
        let role = analysis.expression(&lint.field_ref).map(|it| it.role);
        let decides = !matches!(
            role,
            Some(Role::MessageExpression | Role::AuditAnnotation) | None
        );
        let has_own_finding = lint.rule == Rule::OrValueWithoutOptional
            && decides
            && findings.iter().any(|finding| {
                let is_absent = matches!(
                    finding.rule,
                    Rule::AbsentField | Rule::AbsentKey | Rule::AbsentElement | Rule::AbsentObject
                );
                is_absent && finding.field_ref.as_deref() == Some(&lint.field_ref)
            });
        let fix = if has_own_finding {
            fixes.is_unsafe = false;
            None
        } else {
            fixes.fix(lint)
        };
        let mut finding = lint_finding(policy, analysis, lint);
        if fixes.is_unsafe {
            mark_withheld(&mut finding);
        }
        finding.fix = fix;
        correct_rule(policy, known, lint, &mut finding);
        let proposal = lint
            .location
            .filter(|_| !fixes.is_unsafe)
            .and_then(|location| {
                let place = (lint.field_ref.as_str(), location);
                lint_proposal(policy, (analysis, known), place, lint.rule)
            });
        if let Some((help, edit)) = proposal {
            finding.fix = finding.fix.or(edit);
            finding.help = Some(match finding.help.take() {
                Some(more) => format!("{help}; {more}"),
                None => help,
            });
            if lint.rule == Rule::IncomparableTypes {
                fixes.withhold_unsafe_comparison(&mut finding);
            }
        }
        if lint.rule == Rule::UndefinedField && lint.location.is_some() {
            let place = finding.location.place;
            findings.retain(|it| it.rule != Rule::AbsentField || it.location.place != place);
        }
        findings.push(finding);
    }
}

/// Removes the findings about resources of a rule whose groups are all impossible. Only the groups are reported.
pub(super) fn remove_resources_of_void_rules(
    object: &Object<RequestPolicy>,
    lints: &[Lint],
    findings: &mut Vec<Finding>,
) {
    let mut n_groups: HashMap<&str, usize> = HashMap::new();
    for lint in lints {
        if lint.rule == Rule::ImpossibleGroup
            && let Some(rule) = lint.field_ref.split(".apiGroups").next()
        {
            *n_groups.entry(rule).or_default() += 1;
        }
    }
    let is_void = |rule: &str| {
        n_groups.get(rule).is_some_and(|n| {
            let node = object.document.node.nearest(rule);
            node.get("apiGroups")
                .map_or(0, |groups| groups.items().len())
                <= *n
        })
    };
    findings.retain(|finding| {
        !matches!(finding.rule, Rule::UnknownResource | Rule::UnservedResource)
            || !finding.field_ref.as_deref().is_some_and(is_void)
    });
}

/// Sets the help, fix or assumption of a finding about an API group or an operation in a rule.
pub(super) fn correct_rule(
    object: &Object<RequestPolicy>,
    known: &Known,
    lint: &Lint,
    finding: &mut Finding,
) {
    match lint.rule {
        Rule::ImpossibleGroup => {
            let edit = group_edit(object, &lint.field_ref, known);
            match listed_group(object, lint) {
                Some(help) => {
                    finding.help = Some(help);
                    finding.fix = edit;
                }
                None => set_group_fix(finding, edit),
            }
        }
        Rule::ImpossibleOperation => {
            finding.assumption = possible_operation(object, lint).map(Assumption::new);
        }
        _ => {}
    }
}

/// Returns the help about an impossible group if its rule already lists the intended group.
fn listed_group(policy: &Object<RequestPolicy>, lint: &Lint) -> Option<String> {
    let Some(Replacement::Literal(meant)) = lint.fix.as_ref()?.replacement.as_ref() else {
        return None;
    };
    let (rule, _) = lint.field_ref.split_once(".apiGroups[")?;
    let groups = policy.document.node.nearest(rule).get("apiGroups")?;
    let mut groups = groups.items().iter().filter_map(Node::as_str);
    groups
        .any(|group| group == meant)
        .then(|| format!("remove this group: the rule already lists `{meant}`"))
}

/// Replaces the first operation of a rule with the only operation of all its resources. This is an assumption, not a
/// fix, because the author may have intended a different resource.
fn possible_operation(policy: &Object<RequestPolicy>, lint: &Lint) -> Option<Edit> {
    let root = &policy.document.node;
    let rule = root.nearest(lint.field_ref.split(".resources[").next()?);
    let resource = root.nearest(&lint.field_ref).as_str()?;
    let operation = matching::only_operation(resource)?;
    let is_same =
        |other: &Node| other.as_str().and_then(matching::only_operation) == Some(operation);
    let all_same = rule.get("resources")?.items().iter().all(is_same);
    let first = rule.get("operations")?.items().first()?;
    all_same.then(|| policy.document.edit_value(&policy.source, first, operation))?
}

/// Adds findings about match conditions that are false for every request, unless the condition has another finding. The
/// module `lockout` reports validations that are always false.
fn always_false(analysis: &PolicyAnalysis, lints: &mut Vec<Lint>) {
    for n in &analysis.typed.always_false {
        let expression = analysis.compiled().expressions().get(*n);
        let Some(expression) = expression.filter(|it| it.role == Role::MatchCondition) else {
            continue;
        };
        let field_ref = &expression.field_ref;
        let mut typed = analysis.typed.findings.iter();
        let has_other = lints.iter().any(|it| it.field_ref == *field_ref);
        if has_other || typed.any(|finding| finding.index == *n) {
            continue;
        }
        let location = expression.parsed().ok().map(|ast| {
            let offset = ast.offset(ast.root());
            SourceMap::new(&expression.text).location(offset)
        });
        lints.push(Lint {
            rule: Rule::ConstantCondition,
            field_ref: field_ref.clone(),
            location,
            message:
                "this is false for every request that the rules match, so the policy does nothing"
                    .to_owned(),
            fix: Some(
                "compare the condition with the resources and operations of the rules".into(),
            ),
            // Other versions of Kubernetes may serve kinds for which the condition is true.
            is_harmless: true,
        });
    }
}

/// Adds findings about suspicious fields in the bindings of `policy`.
pub(super) fn check_bindings(
    policy: &Object<RequestPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) {
    for binding in bindings_of(policy, bindings).take(MAX_BINDINGS) {
        let lints = lint::find_in_binding(analysis.compiled(), &binding.value, &known.mapper);
        for lint in lints {
            let node = binding.document.node.nearest(&lint.field_ref);
            let place = binding.place_of(node);
            let severity = if lint.is_harmless {
                Severity::Note
            } else {
                Severity::Warning
            };
            let rule = lint.rule;
            let mut finding = object_finding(binding, severity, rule, &lint.message, place);
            finding.help = lint.fix.map(|advice| advice.text);
            finding.field_ref = Some(lint.field_ref);
            findings.push(finding);
        }
    }
}

/// Returns the finding of a lint about a field without an expression.
pub(super) fn field_finding<T>(object: &Object<T>, severity: Severity, lint: &Lint) -> Finding {
    let node = object.document.node.nearest(&lint.field_ref);
    let place = object.place_of(node);
    let mut finding = object_finding(object, severity, lint.rule, &lint.message, place);
    finding.location.length = node.span.len().max(1);
    finding.field_ref = Some(lint.field_ref.clone());
    finding.help = lint.fix.as_ref().map(ToString::to_string);
    finding
}

pub(super) fn lint_finding(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    lint: &Lint,
) -> Finding {
    let always_fails = lint.rule == Rule::OrValueWithoutOptional
        && analysis.typed.non_optional.iter().any(|call| call.fails);
    let severity = match lint.is_harmless {
        true => Severity::Note,
        false if always_fails => Severity::Error,
        false => Severity::Warning,
    };
    let (rule, message) = (lint.rule, &lint.message);
    let mut finding = match lint.location {
        Some(location) => {
            let place = (lint.field_ref.as_str(), location);
            finding_at(policy, analysis, place, (severity, rule), message)
        }
        None => field_finding(policy, severity, lint),
    };
    finding.help = lint.fix.as_ref().map(ToString::to_string);
    match analysis.consequence(&lint.field_ref) {
        Some(consequence) if rule == Rule::FailingCall || always_fails => {
            finding.with_consequence(consequence)
        }
        _ => finding,
    }
}
