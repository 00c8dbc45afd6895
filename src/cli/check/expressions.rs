//! Findings about the expressions of a policy, with their locations in the file.

use std::collections::{HashMap, HashSet};

use goyaml::{Data, Node, Style};

use super::advice;
use super::assumptions::with_variables;
use super::broken;
use super::finding::{Assumption, ConsequenceReport, Finding, Severity, UNPROVEN, joined_help};
use super::fixes;
use super::kinds;
use super::known::Known;
use super::other_languages;
use super::policy::{PolicyAnalysis, object_finding};
use super::rewrite::{self, Problem, Proposal};
use super::suggestion::{self, Suggestions};
use super::tokens::TokenText;
use crate::cel::diagnostic::{self, Candidates, DiagnosticKind, UndefinedField};
use crate::cel::source::{Location, SourceMap};
use crate::cel::syntax;
use crate::cel::syntax::token::Kind;
use crate::cel::types::Type;
use crate::cli::input::edit::Edit;
use crate::cli::input::{FieldPlaces, Object, TAG_HELP};
use crate::cli::text::is_identifier_part;
use crate::library::mutation::{JSON_PATCH, is_object};
use crate::policy::compile::{Cause, CompileFindingKind};
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::finding::{ExpressionFindings, KindFindings};
use crate::policy::reads::Reads;
use crate::policy::rule::Rule;
use crate::policy::runtime_errors::TypeErrorWitness;
use crate::policy::{RequestPolicy, param_kind};
use crate::schema::Gvk;
use crate::status::message;
use crate::status::warnings;

/// Adds findings about expressions that the API server rejects or cannot evaluate, or whose evaluation may crash it.
pub(super) fn errors(
    policy: &Object<RequestPolicy>,
    (analysis, known): (&PolicyAnalysis, &Known),
    findings: &mut Vec<Finding>,
) {
    let mut suggestions = Suggestions::default();
    let failed = failed_variables(analysis);
    for (n, (field_ref, kind, cause)) in analysis.errors.iter().enumerate() {
        let is_rejected = *kind == CompileFindingKind::Failed && n < analysis.n_at_create;
        let noun = analysis.subject.row().noun;
        let (severity, rule, help) = effect_of_error(*kind, is_rejected, noun);
        let expression = analysis.expression(field_ref);
        let text = expression.map(|expression| match cause {
            Cause::Diagnostics { text, .. } => Text::compiled(expression, text),
            Cause::ResultType { .. } | Cause::Whole { .. } => Text::whole(expression),
        });
        let places = policy.places_in_field(field_ref);
        // The parts of the expression that the fixes of earlier issues replace.
        let mut replaced: Vec<std::ops::Range<usize>> = Vec::new();
        let is_prose = expression.is_some_and(|it| other_languages::is_prose(it.role, &it.text));
        let mut has_syntax_error = false;
        for issue in cause.issues() {
            let rule = rule.unwrap_or(issue.rule);
            // A sentence in a natural language causes many syntax errors. Only the first one is reported.
            if rule == Rule::Syntax && std::mem::replace(&mut has_syntax_error, true) && is_prose {
                continue;
            }
            // If an expression reads a variable that does not compile, its result type is unknown and not reported.
            if rule == Rule::ResultType && expression.is_some_and(|it| reads(it, &failed)) {
                continue;
            }
            let byte = text.as_ref().and_then(|it| it.source.byte(issue.location));
            if byte.is_some_and(|byte| replaced.iter().any(|bytes| bytes.contains(&byte))) {
                continue;
            }
            let mut message = one_line(&issue.message);
            if cause.is_dynamic_result() {
                message.push_str(", a type that is only known at evaluation");
            }
            let mut finding = object_finding(policy, severity, rule, &message, places.start());
            if let Some(text) = &text {
                mark(&mut finding, text, issue.location, &places);
            }
            finding.field_ref = Some(field_ref.clone());
            finding.rejected = is_rejected;
            let node = policy.document.node.nearest(field_ref);
            let is_tagged = policy.document.tag_start(&policy.source, node).is_some();
            let proposal = expression
                .zip(text.as_ref())
                .filter(|_| !is_tagged)
                .and_then(|(expression, text)| {
                    let context = (&policy.value, expression);
                    let comment = || comment_proposal(node, expression, (rule, issue.location));
                    let problem = Problem::new(rule, &issue);
                    comment().or_else(|| {
                        text.proposal(context, (analysis, known), problem, issue.location)
                    })
                });
            let is_match_condition =
                expression.is_some_and(|expression| expression.role == Role::MatchCondition);
            // The unknown name and its correction, if there is exactly one correction.
            let mut only_meant = None;
            let hint = match issue.kind {
                _ if is_tagged => Some(TAG_HELP.to_owned()),
                _ if proposal.is_some() => proposal.as_ref().map(|it| it.help.clone()),
                Some(DiagnosticKind::UndeclaredReference { name }) if is_of_mutations(name) => {
                    Some(format!("`{name}` is only available in mutations"))
                }
                Some(DiagnosticKind::UndeclaredReference { name }) => {
                    let is_call = text.as_ref().is_some_and(|it| it.is_call(issue.location));
                    let meant = suggestion::only_meaning(name, is_call);
                    only_meant = meant.map(|meant| (&**name, meant.to_owned()));
                    let dashed = expression
                        .and_then(|it| advice::dashed_key_advice(&it.text, issue.location, name));
                    dashed.or_else(|| suggestion::reference(name, (is_call, is_match_condition)))
                }
                Some(DiagnosticKind::UndefinedField(undefined)) => {
                    let own_name = expression.and_then(|expression| expression.name.as_deref());
                    let advice = suggestions.advice(&policy.value, undefined, own_name);
                    let advice = advice.map(|(advice, meant)| {
                        only_meant = meant.map(|meant| (&*undefined.name, meant));
                        advice
                    });
                    advice.or_else(|| rewrite::fields_hint(&policy.value, issue.kind))
                }
                _ => expression.and_then(|expression| {
                    advice::advice(analysis.compiled(), expression, (rule, issue.location))
                }),
            };
            finding.fix = match (&proposal, &only_meant, &text) {
                _ if is_tagged => policy.document.edit_tag(&policy.source, node),
                (Some(proposal), _, Some(text)) => text.edit(policy, field_ref, proposal),
                (None, Some((name, meant)), Some(text)) => {
                    let marked = text.marked(issue.location);
                    fixes::replace_name(policy, field_ref, marked, (name, meant))
                }
                _ => expression
                    .filter(|_| rule == Rule::Syntax)
                    .and_then(|it| advice::operator_correction(&it.text, issue.location))
                    .and_then(|(part, operator)| policy.edit_text(field_ref, part, operator)),
            };
            if let Some(expression) = expression.filter(|_| rule == Rule::Syntax) {
                withhold_incomplete(&mut finding, expression, analysis);
            }
            replaced.extend(replaced_part(&mut finding, proposal.as_ref()));
            finding.help = Some(joined_help(hint, &help));
            findings.push(finding);
        }
    }
}

/// Removes the fix of a syntax error if the expression still has another syntax error that cannot be corrected.
fn withhold_incomplete(
    finding: &mut Finding,
    expression: &PolicyExpression,
    analysis: &PolicyAnalysis,
) {
    let behavior = analysis.compiled().version().behavior().language;
    let is_correctable =
        |text: &str| other_languages::is_correctable(expression.role, text, behavior);
    let fix = finding.fix.take();
    finding.fix = fix.filter(|edit| edit.value().is_none_or(is_correctable));
}

/// Returns the bytes of the expression that `proposal` replaces, if the finding has a fix. Also removes the parser's
/// own suggestion from the message.
fn replaced_part(
    finding: &mut Finding,
    proposal: Option<&Proposal>,
) -> Option<std::ops::Range<usize>> {
    let (bytes, _) = proposal?.edit.as_ref()?;
    finding.fix.as_ref()?;
    if let Some(n) = finding.message.find("; use `") {
        finding.message.truncate(n);
    }
    Some(bytes.clone())
}

/// Adds an assumption to each finding that hides others and has no fix.
pub(super) fn add_assumptions(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut [Finding],
) {
    broken::assume(policy, analysis, findings);
    assume_conditions(policy, analysis, findings);
    assume_order(policy, analysis, findings);
}

/// Adds an assumption to each error about a variable that is declared too late. The edit replaces the variable with its
/// expression, as if it were declared earlier.
fn assume_order(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut [Finding],
) {
    for (field_ref, _, cause) in &analysis.errors {
        for issue in cause.issues() {
            let Some(DiagnosticKind::UndefinedField(undefined)) = issue.kind else {
                continue;
            };
            let is_late = matches!(undefined.candidates, Candidates::Elsewhere);
            let name = Some(&*undefined.name).filter(|_| is_late);
            let variables = policy.value.variables.iter();
            let mut variables = variables.filter(|variable| Some(&*variable.name) == name);
            let Some((variable, expression)) = variables.next().zip(analysis.expression(field_ref))
            else {
                continue;
            };
            let reference = format!("variables.{}", variable.name);
            let n_before = SourceMap::new(&expression.text)
                .byte(issue.location)
                .and_then(|byte| expression.text.get(..byte))
                .map_or(0, |before| before.chars().count());
            let start = n_before.saturating_sub("variables".len());
            let part = start..start + reference.chars().count();
            let text: String = expression
                .text
                .chars()
                .skip(start)
                .take(part.len())
                .collect();
            let is_of_issue = |finding: &&mut Finding| {
                finding.field_ref.as_ref() == Some(field_ref)
                    && finding.rule == Rule::UndefinedField
                    && finding.fix.is_none()
                    && finding.message.contains(&format!("'{}'", variable.name))
            };
            if text != reference || expression.name.as_deref() == Some(&*variable.name) {
                continue;
            }
            let value = format!("({})", one_line(&variable.expression));
            let edit = policy.edit_text(field_ref, part, &value);
            if let Some((finding, edit)) = findings.iter_mut().find(is_of_issue).zip(edit) {
                finding.assumption = Some(Assumption {
                    as_if: Some("it were declared first"),
                    ..Assumption::new(edit)
                });
            }
        }
    }
}

/// Returns a hint if the YAML style of the field `node` joins the lines of the expression, so that a comment contains
/// the rest of the expression.
fn comment_proposal(
    node: &Node,
    expression: &PolicyExpression,
    (rule, location): (Rule, Location),
) -> Option<Proposal> {
    let is_folded = matches!(node.data, Data::Scalar(_, Style::Folded { .. }));
    let is_joined = is_folded && !expression.text.trim_end().contains('\n');
    (is_joined && rule == Rule::Syntax).then_some(())?;
    advice::comment_advice(&expression.text, location).map(Proposal::hint)
}

/// If no finding about a match condition has a fix, adds an assumption to its first error: the condition is true.
/// Without the assumption, the error hides the findings about absent values, because no request reaches the
/// validations.
fn assume_conditions(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut [Finding],
) {
    let fixable = findings.iter().filter(|finding| finding.fix.is_some());
    let fixable: Vec<Option<String>> = fixable.map(|finding| finding.field_ref.clone()).collect();
    let mut assumed = HashSet::new();
    for finding in findings {
        let Some(field_ref) = &finding.field_ref else {
            continue;
        };
        let expression = analysis.expression(field_ref);
        let Some(condition) = expression.filter(|it| {
            it.role == Role::MatchCondition
                && (finding.severity == Severity::Error || finding.rule == Rule::NoFieldSelection)
                && !fixable.contains(&finding.field_ref)
        }) else {
            continue;
        };
        let text = condition.text.trim_end();
        if assumed.insert(field_ref.clone()) && finding.assumption.is_none() {
            let edit = policy.edit_text(field_ref, 0..text.chars().count(), "true");
            finding.assumption = edit.map(|edit| Assumption {
                as_if: Some("the condition were true"),
                condition: Some(with_variables(&policy.value, text)),
                ..Assumption::new(edit)
            });
        }
    }
}

/// Returns the severity and the effect of an expression that does not compile. Also returns the rule if it differs from
/// the rule of the compiler's error.
fn effect_of_error(
    kind: CompileFindingKind,
    is_rejected: bool,
    noun: &str,
) -> (Severity, Option<Rule>, String) {
    match kind {
        CompileFindingKind::Failed if is_rejected => (
            Severity::Error,
            None,
            format!("the API server rejects the {noun}"),
        ),
        CompileFindingKind::Failed => (
            Severity::Error,
            None,
            format!("the API server accepts the {noun}, but cannot evaluate the expression"),
        ),
        CompileFindingKind::Unsafe => (
            Severity::Error,
            Some(Rule::UnsafeExpression),
            format!(
                "the API server accepts the {noun}, but may crash when it evaluates the expression"
            ),
        ),
        CompileFindingKind::Unsupported => (
            Severity::Note,
            Some(Rule::UnsupportedExpression),
            "cannot determine whether the expression works".to_owned(),
        ),
    }
}

/// Returns true if only expressions of mutations can use the name.
fn is_of_mutations(name: &str) -> bool {
    name == JSON_PATCH || name == "jsonpatch" || is_object(name)
}

fn failed_variables(analysis: &PolicyAnalysis) -> HashSet<&str> {
    let failed = analysis.errors.iter().filter_map(|(field_ref, ..)| {
        let expression = analysis.expression(field_ref)?;
        let name = expression.name.as_deref()?;
        (expression.role == Role::Variable).then_some(name)
    });
    failed.collect()
}

fn reads(expression: &PolicyExpression, variables: &HashSet<&str>) -> bool {
    let Ok(ast) = expression.parsed() else {
        return false;
    };
    let read = Reads::new(ast).variables();
    let mut names = read.names.iter();
    !variables.is_empty() && (read.may_read_all || names.any(|name| variables.contains(name)))
}

/// Adds findings about expressions that may fail when they are evaluated, or that probably do not work as intended.
pub(super) fn warnings(
    policy: &Object<RequestPolicy>,
    (analysis, known): (&PolicyAnalysis, &Known),
    proofs: Option<&[TypeErrorWitness]>,
    findings: &mut Vec<Finding>,
) {
    let mut errors_of: HashMap<&str, HashSet<Location>> = HashMap::new();
    for (field_ref, _, cause) in &analysis.errors {
        let locations = cause.issues().into_iter().map(|issue| issue.location);
        errors_of.entry(field_ref).or_default().extend(locations);
    }
    let no_errors = HashSet::new();
    let undeclared = fields_with_undeclared_names(findings);
    let mut suggestions = Suggestions::default();
    for typed in &analysis.typed.findings {
        let errors = errors_of
            .get(typed.field_ref.as_str())
            .unwrap_or(&no_errors);
        let notes = notes(typed);
        let text = analysis.expression(&typed.field_ref).map(Text::whole);
        let places = policy.places_in_field(&typed.field_ref);
        for group in grouped(typed, errors) {
            let Group {
                severity,
                diagnostic: first,
                ..
            } = group;
            if first.kind.follows_from_another() && undeclared.contains(&typed.field_ref) {
                continue;
            }
            let rule = first.kind.code().into();
            let message = one_line(&group.message);
            let start = places.start();
            let mut finding = object_finding(policy, Severity::Warning, rule, &message, start);
            if let Some(text) = &text {
                mark(&mut finding, text, first.location, &places);
            }
            finding.field_ref = Some(typed.field_ref.clone());
            finding.kinds = group.kinds;
            let undefined = match &first.kind {
                DiagnosticKind::UndefinedField(undefined) => Some(undefined),
                _ => None,
            };
            let versions =
                undefined.and_then(|it| suggestions.versions(known.builtin(), group.gvk, it));
            let expression = analysis.expression(&typed.field_ref);
            let proposal = expression
                .zip(text.as_ref())
                .and_then(|(expression, text)| {
                    let context = (&policy.value, expression);
                    let problem = Problem::Diagnostic(rule, &first.kind);
                    text.proposal(context, (analysis, known), problem, first.location)
                });
            let meant = match (versions, undefined) {
                (Some(versions), _) => Some((versions, None)),
                (None, Some(undefined)) => suggestions.advice(&policy.value, undefined, None),
                (None, None) => None,
            };
            let facts = (&policy.value, analysis, known);
            let other_kinds = undefined.zip(expression).and_then(|(_, expression)| {
                kinds::hint(facts, expression, first.location, &finding.kinds)
            });
            // A correction for one kind may be wrong for another kind that the expression also reads.
            let n_kinds = analysis.typed.checked.len() + analysis.typed.by_wildcard.checked.len();
            let is_for_all = other_kinds.is_none()
                && (finding.kinds.len() >= n_kinds || expression.is_some_and(tests_kind));
            if let (Some(proposal), Some(text)) = (&proposal, &text) {
                if is_for_all {
                    finding.fix = text.edit(policy, &typed.field_ref, proposal);
                }
            } else if let (Some((_, Some(meant))), Some(it), Some(text)) =
                (&meant, undefined, &text)
                && is_for_all
                && !text.compares_collection(first.location, it, meant)
            {
                let marked = text.marked(first.location);
                let names = (&*it.name, meant.as_str());
                finding.fix = fixes::replace_name(policy, &typed.field_ref, marked, names);
            }
            let advice = expression.and_then(|expression| {
                advice::advice(analysis.compiled(), expression, (rule, first.location))
            });
            let advice = advice.map(|advice| format!("{advice};"));
            let meant = meant.map(|(advice, _)| advice);
            let proposed = proposal.map(|proposal| format!("{};", proposal.help));
            let shorter = undefined.zip(text.as_ref());
            let shorter = shorter.and_then(|(it, text)| text.without_step(first.location, it));
            let fields = rewrite::fields_hint(&policy.value, Some(&first.kind));
            let fields = fields.map(|fields| format!("{fields};"));
            if let Some(params) = param_kind_at(&policy.value, expression, first.location) {
                finding.kinds = vec![params];
            }
            let hints = [proposed, other_kinds, meant, shorter, advice, fields];
            let mut helps: Vec<String> = hints.into_iter().flatten().take(1).collect();
            if severity == diagnostic::Severity::Error {
                // There are no witnesses for expressions of mutations, because the search for requests does not cover
                // them.
                let is_mutation = expression.is_some_and(|it| it.role.is_mutation());
                let proofs = proofs.filter(|_| !is_mutation);
                // An API server never evaluates a rejected policy, so the help does not mention a missing witness.
                let proofs = (proofs, analysis.errors.is_empty());
                helps.extend(add_effect(&mut finding, typed, proofs, first.location));
            }
            helps.extend(notes.iter().cloned());
            finding.help = joined_sentences(&helps);
            findings.push(finding);
        }
    }
}

/// Joins the parts of a help text. A part that is a hint ends with a semicolon. `None` if there are no parts.
fn joined_sentences(helps: &[String]) -> Option<String> {
    let help = helps.join(" ");
    let help = help.trim_end_matches(';').to_owned();
    (!help.is_empty()).then_some(help)
}

/// Returns the fields whose expressions are rejected because of an undeclared name.
fn fields_with_undeclared_names(findings: &[Finding]) -> HashSet<String> {
    let undeclared = findings
        .iter()
        .filter(|finding| finding.rule == Rule::UndeclaredReference && finding.rejected);
    undeclared
        .filter_map(|finding| finding.field_ref.clone())
        .collect()
}

/// Returns the kind of the params if a field of `params` is selected at `location`.
fn param_kind_at(
    policy: &RequestPolicy,
    expression: Option<&PolicyExpression>,
    location: Location,
) -> Option<String> {
    let params = param_kind(policy)?;
    kinds::is_of_params(expression?, location).then(|| message::kind(&params))
}

/// Adds the consequence and the witness of a type error at `location`. Returns the parts of the help about them.
fn add_effect(
    finding: &mut Finding,
    typed: &ExpressionFindings,
    (proofs, can_evaluate): (Option<&[TypeErrorWitness]>, bool),
    location: Location,
) -> Vec<String> {
    let consequence = ConsequenceReport::from(typed.consequence);
    finding.consequence = Some(consequence);
    let mut helps = vec![consequence.message.to_owned()];
    if let Some(proofs) = proofs {
        set_proof(finding, proofs, (typed.index, location));
    }
    // If there is a fix, the help does not mention the missing witness.
    if finding.is_unproven && finding.fix.is_none() && can_evaluate {
        helps.push(UNPROVEN.to_owned());
    }
    helps
}

/// Sets the witness of the type error at `location` in the expression with the index `index`.
fn set_proof(
    finding: &mut Finding,
    proofs: &[TypeErrorWitness],
    (index, location): (usize, Location),
) {
    let is_of = |proof: &&TypeErrorWitness| proof.index == index && proof.location == location;
    let proof = proofs.iter().find(is_of);
    finding.witness = proof.map(|proof| Box::new(proof.witness.clone()));
    finding.is_unproven = proof.is_none();
}

/// Returns true if the expression probably tests the kind, so that some of its parts are evaluated only for some kinds.
fn tests_kind(expression: &PolicyExpression) -> bool {
    let tests = [".kind", ".resource", ".requestKind", ".requestResource"];
    tests.into_iter().any(|test| expression.text.contains(test))
}

/// Returns the proposal for a lint at `location` of the expression in the field `field_ref`, and its edit.
pub(super) fn lint_proposal(
    policy: &Object<RequestPolicy>,
    (analysis, known): (&PolicyAnalysis, &Known),
    (field_ref, location): (&str, Location),
    rule: Rule,
) -> Option<(String, Option<Edit>)> {
    let expression = analysis.expression(field_ref)?;
    let mut comparisons = analysis.typed.incomparable.iter();
    let problem = comparisons
        .find(|it| it.field_ref == field_ref && it.location == location)
        .filter(|_| rule == Rule::IncomparableTypes)
        .map_or(Problem::Other(rule), |it| {
            Problem::IncomparableTypes(it.operands)
        });
    let text = Text::whole(expression);
    let (context, facts) = ((&policy.value, expression), (analysis, known));
    let proposal = text.proposal(context, facts, problem, location)?;
    let edit = text.edit(policy, field_ref, &proposal);
    Some((proposal.help, edit))
}

/// A finding that is the same for all `kinds`.
struct Group<'a> {
    /// The first kind with the finding.
    gvk: &'a Gvk,
    severity: diagnostic::Severity,
    diagnostic: &'a diagnostic::Diagnostic,
    message: String,
    kinds: Vec<String>,
}

/// Groups the findings of all kinds by location and message. Skips the locations in `errors`: these errors do not
/// depend on the kind, and are reported separately.
fn grouped<'a>(typed: &'a ExpressionFindings, errors: &HashSet<Location>) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut by_place: HashMap<(Location, String), usize> = HashMap::new();
    for (gvk, severity, diagnostic) in typed.iter() {
        // Syntax errors do not depend on the kind.
        let is_syntax = Rule::from(diagnostic.kind.code()) == Rule::Syntax;
        if errors.contains(&diagnostic.location) || is_syntax && !errors.is_empty() {
            continue;
        }
        let message = diagnostic.without_container();
        let n = *by_place
            .entry((diagnostic.location, message))
            .or_insert_with_key(|(_, message)| {
                groups.push(Group {
                    gvk,
                    severity,
                    diagnostic,
                    message: message.clone(),
                    kinds: Vec::new(),
                });
                groups.len() - 1
            });
        if let Some(group) = groups.get_mut(n) {
            group.kinds.push(message::kind(gvk));
        }
    }
    groups
}

/// Returns the notes on all findings of an expression, such as the number of omitted findings. Each note is in
/// parentheses.
fn notes(typed: &ExpressionFindings) -> Vec<String> {
    let lists = typed.kinds.iter().flat_map(KindFindings::by_severity);
    let left_out = lists.map(|(_, list)| list.n_left_out());
    let left_out = left_out.filter(|n| *n > 0).map(diagnostic::left_out);
    let notes = typed.notes.iter().map(|note| warnings::note(*note));
    left_out
        .chain(notes)
        .map(|note| format!("({note})"))
        .collect()
}

fn one_line(message: &str) -> String {
    message.lines().map(str::trim).collect::<Vec<_>>().join(" ")
}

/// Maps locations in the compiled source of an expression to code points of its field.
struct Text<'a> {
    compiled: &'a str,
    source: SourceMap,
    /// The number of code points in the field before the compiled source.
    n_before: usize,
    /// The start and the length of the expression without surrounding whitespace, in code points.
    solid: (usize, usize),
}

impl<'a> Text<'a> {
    /// Returns the mapping for the whole source of `expression`.
    fn whole(expression: &'a PolicyExpression) -> Self {
        Self::compiled(expression, &expression.text)
    }

    /// Returns the mapping for `text`, the compiled source of `expression`. The API server may have trimmed white space
    /// from it.
    fn compiled(expression: &'a PolicyExpression, text: &'a str) -> Self {
        let whole = &*expression.text;
        let blank = whole.len() - whole.trim_start().len();
        let n_blank = whole.get(..blank).unwrap_or_default().chars().count();
        Self {
            compiled: text,
            source: SourceMap::new(text),
            n_before: if text.len() == whole.len() {
                0
            } else {
                n_blank
            },
            solid: (n_blank, whole.trim().chars().count()),
        }
    }

    fn proposal(
        &self,
        (policy, expression): (&RequestPolicy, &PolicyExpression),
        facts: (&PolicyAnalysis, &Known),
        problem: Problem<'_>,
        location: Location,
    ) -> Option<Proposal> {
        let role = expression.role;
        let context = rewrite::Context {
            policy,
            role,
            text: self.compiled,
            is_collection: &|path| kinds::is_collection(policy, facts, path),
            is_declared: &|path| kinds::is_declared(policy, facts, path),
        };
        match problem.rule() {
            Rule::Syntax => other_languages::proposal_at(role, self.compiled, location),
            Rule::InvalidMacroCall => advice::has_proposal(self.compiled, location),
            _ => rewrite::proposal(context, problem, location),
        }
    }

    /// Returns true if the field at `location` is compared like a scalar, but the field `meant` is a list or map. A
    /// corrected name alone would then make the comparison constant.
    fn compares_collection(
        &self,
        location: Location,
        undefined: &UndefinedField,
        meant: &str,
    ) -> bool {
        let Candidates::Declared(fields) = &undefined.candidates else {
            return false;
        };
        let type_ = fields.field_type("", meant);
        let source = TokenText::new(self.compiled);
        let n = self.source.byte(location).and_then(|byte| source.at(byte));
        let is_comparison = |n: usize| {
            let operator = source.word(n + 2);
            operator.is_some_and(|it| matches!(it, "==" | "!=" | "<" | "<=" | ">" | ">="))
        };
        matches!(type_, Some(Type::List(_) | Type::Map(_))) && n.is_some_and(is_comparison)
    }

    /// Returns a hint about a path with one step too many, such as `object.spec.command` if the object itself has the
    /// field `command`.
    fn without_step(&self, location: Location, undefined: &UndefinedField) -> Option<String> {
        let source = TokenText::new(self.compiled);
        let n = source.at(self.source.byte(location)?)?;
        let next = source.word(n + 3)?;
        let is_declared = undefined.candidates.names().contains(&next);
        let is_step = source.word(n + 1)? == &*undefined.name && source.kind(n + 2)? == Kind::Dot;
        let receiver = source.source(&source.receiver(n)?)?;
        (is_step && is_declared).then(|| format!("did you mean `{receiver}.{next}`?"))
    }

    /// Converts the edit of a proposal to an edit of the file.
    fn edit(
        &self,
        policy: &Object<RequestPolicy>,
        field_ref: &str,
        proposal: &Proposal,
    ) -> Option<Edit> {
        let (bytes, text) = proposal.edit.as_ref()?;
        let offset = |byte: usize| {
            let before = self.compiled.get(..byte)?;
            Some(self.n_before + before.chars().count())
        };
        policy.edit_text(field_ref, offset(bytes.start)?..offset(bytes.end)?, text)
    }

    /// Returns true if `location` is the opening parenthesis of a call.
    fn is_call(&self, location: Location) -> bool {
        let at = self.source.byte(location);
        let rest = at.and_then(|at| self.compiled.get(at..));
        rest.is_some_and(|rest| rest.starts_with('('))
    }

    /// Returns the range of the field name before the colon at byte `at`. In an object literal, the location of a field
    /// is its colon.
    fn field_before(&self, at: usize) -> Option<std::ops::Range<usize>> {
        let (before, rest) = (self.compiled.get(..at)?, self.compiled.get(at..)?);
        let before = before.trim_end();
        let start = before.trim_end_matches(is_identifier_part).len();
        let is_field = rest.starts_with(':') && start < before.len();
        is_field.then_some(start..before.len())
    }

    /// Returns the range of the last selection in the argument of the `has()` whose parenthesis is at byte `at`. The location
    /// of a presence test is this parenthesis.
    fn tested_field(&self, at: usize) -> Option<std::ops::Range<usize>> {
        let (before, rest) = (self.compiled.get(..at)?, self.compiled.get(at..)?);
        (rest.starts_with('(') && before.trim_end().ends_with("has")).then_some(())?;
        let source = TokenText::new(self.compiled);
        let open = source.at(at)?;
        (source.word(open.checked_sub(1)?)? == "has").then_some(())?;
        let close = source.close(open)?;
        let name = close.checked_sub(1)?;
        let selection = name.checked_sub(1)?..close;
        let is_selection = source.kind(selection.start)? == Kind::Dot;
        (is_selection && source.kind(name)? == Kind::Ident).then(|| source.bytes(&selection))?
    }

    /// Returns the start and the length, in code points, of the part of the expression to mark for `location`.
    fn marked(&self, location: Location) -> (usize, usize) {
        let Some(start) = self.source.byte(location) else {
            // A location without a byte offset denotes the whole expression.
            return self.solid;
        };
        let span = self
            .field_before(start)
            .or_else(|| self.tested_field(start));
        let span = span.unwrap_or_else(|| syntax::span_at(self.compiled, start));
        let n_code_points = |text: Option<&str>| text.unwrap_or_default().chars().count();
        let before = self.n_before + n_code_points(self.compiled.get(..span.start));
        (before, n_code_points(self.compiled.get(span)).max(1))
    }
}

/// Returns a finding at `location` of the expression in the field `field_ref`.
pub(super) fn finding_at(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    (field_ref, location): (&str, Location),
    (severity, rule): (Severity, Rule),
    message: &str,
) -> Finding {
    match analysis.expression(field_ref) {
        Some(expression) => finding_in(policy, expression, location, (severity, rule), message),
        None => {
            let place = policy.place_of_field(field_ref);
            let mut finding = object_finding(policy, severity, rule, message, place);
            finding.field_ref = Some(field_ref.to_owned());
            finding
        }
    }
}

pub(super) fn finding_in(
    policy: &Object<RequestPolicy>,
    expression: &PolicyExpression,
    location: Location,
    (severity, rule): (Severity, Rule),
    message: &str,
) -> Finding {
    let places = policy.places_in_field(&expression.field_ref);
    let mut finding = object_finding(policy, severity, rule, message, places.start());
    mark(&mut finding, &Text::whole(expression), location, &places);
    finding.field_ref = Some(expression.field_ref.clone());
    finding
}

/// Sets the location of a finding to the token of an expression at `location`.
fn mark(finding: &mut Finding, text: &Text<'_>, location: Location, places: &FieldPlaces<'_>) {
    let (offset, length) = text.marked(location);
    let place = places.at(offset);
    let last = places.at(offset + length.saturating_sub(1));
    finding.location.place = Some(place);
    if last.line == place.line && last.column >= place.column {
        finding.location.length = last.column - place.column + 1;
    }
}
