//! Findings about runtime errors of expressions, each with a request for which the expression fails.

use std::collections::BTreeSet;

use k8s_openapi::api::admissionregistration::v1::{
    MatchResources, ValidatingAdmissionPolicyBinding,
};
use kubernetes::validity::Root;
use serde_json::Value as Json;

use super::changes::SuggestionReport;
use super::expressions::finding_at;
use super::finding::{Assumption, ConsequenceReport, Finding, Severity};
use super::fixes::{Fixes, literal_edit, mark_withheld};
use super::known::Known;
use super::lint;
use super::policy::{PolicyAnalysis, bindings_of, object_finding};
use super::rewrite::presence::optional_text;
use super::tokens::TokenText;
use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::cel::source::{Location as CelLocation, SourceMap};
use crate::cel::syntax::token::Kind;
use crate::cli::input::{Object, Place};
use crate::policy::RequestPolicy;
use crate::policy::admission::Selector;
use crate::policy::admission::mutation::Kinds;
use crate::policy::advice::Replacement;
use crate::policy::consequence::Consequence;
use crate::policy::expressions::Role;
use crate::policy::lint::find_in_binding;
use crate::policy::matching;
use crate::policy::rule::Rule;
use crate::policy::runtime_errors::{
    self, Context, FailingMutation, FailureCause, TypeErrorWitness, Uncovered, WrittenSchemas,
};
use crate::policy::subject::SubjectKind;
use crate::schema::Gvk;
use crate::status::message;

/// Maximum length of source that a hint quotes, in bytes.
const MAX_SHOWN: usize = 100;

/// Adds findings about the runtime errors of `policy`, given the bindings of the input. Returns requests for which
/// expressions with type errors fail.
pub(super) fn check(
    policy: &Object<RequestPolicy>,
    bindings: &[Object<ValidatingAdmissionPolicyBinding>],
    known: &Known,
    analysis: &PolicyAnalysis,
    findings: &mut Vec<Finding>,
) -> Vec<TypeErrorWitness> {
    let (with, without): (Vec<&Object<_>>, Vec<&Object<_>>) =
        bindings_of(policy, bindings).partition(|binding| binding.value.spec.param_ref.is_some());
    let mut names = without.iter();
    let without_params = names.find_map(|binding| binding.value.metadata.name.as_deref());
    let kinds = known.kinds();
    let context = Context {
        match_resources: match_resources_of_only(analysis, known, (&with, &without)),
        without_params,
        kinds: (analysis.subject == SubjectKind::MutatingAdmissionPolicy).then_some(&kinds as _),
        never_has_params: with.is_empty() && without_params.is_some(),
        ..context(known, analysis)
    };
    constant_values(policy, known, analysis, &context, findings);
    let (errors, not_covered) = runtime_errors::find_runtime_errors(analysis.compiled(), &context);
    for error in errors {
        // Authors write params together with the policy, so they notice missing values early.
        let is_minor = error.is_of_params || error.is_rare || error.denied_by.is_some();
        let severity = match severity(error.consequence) {
            Severity::Warning if is_minor => Severity::Note,
            severity => severity,
        };
        let place = (error.field_ref.as_str(), error.location);
        let sort = (severity, error.rule);
        let mut finding = finding_at(policy, analysis, place, sort, &error.message);
        finding.kinds = vec![message::kind(&error.gvk)];
        let others = match error.n_others {
            0 => None,
            1 => Some("one other expression fails for the same reason".to_owned()),
            n => Some(format!("{n} other expressions fail for the same reason")),
        };
        let (required, consequence) = match (&error.denied_by, error.consequence) {
            (Some(other), Consequence::Denied) => {
                let value = if other.is_of_absence {
                    "without the value"
                } else {
                    "for this value"
                };
                let required = format!("`{}` is false {value}", other.field_ref);
                let consequence = if other.is_message_shown {
                    ConsequenceReport::DENIED_BEFORE
                } else {
                    ConsequenceReport::DENIED_AFTER
                };
                (Some(required), consequence)
            }
            (_, consequence) => (None, consequence.into()),
        };
        let has_fix = error.fix.is_some() || is_of_mutation(analysis, error.index);
        let default = (!has_fix)
            .then(|| default_help(analysis, place, (error.rule, error.cause)))
            .flatten();
        let help = error.fix.into_iter().chain(default);
        let help = help.chain(others).chain(required);
        let help: Vec<String> = help.collect();
        finding.help = (!help.is_empty()).then(|| help.join("; "));
        finding.witness = Some(Box::new(error.witness));
        let suggestions = error.suggestions.iter();
        let suggestions = suggestions.map(|it| SuggestionReport::new(policy, it));
        finding.suggestions = suggestions.collect();
        if let [only] = &*finding.suggestions {
            finding.fix = only.fix().cloned();
        }
        if let Some(kinds) = context.kinds
            && let Some(fails) = moved_failure(analysis, &context, kinds, &finding)
        {
            finding.fix = None;
            finding.add_help(&fails);
        }
        if let Some(rename) = &error.rename {
            let rename = SuggestionReport::new(policy, rename);
            finding.fix = rename.only_edit().cloned();
        }
        if let Some(assumed) = &error.assumed {
            let assumed = SuggestionReport::new(policy, assumed);
            let edit = assumed.only_edit().cloned();
            finding.assumption = edit.map(|edit| Assumption {
                as_if: Some("it were the deleted object"),
                ..Assumption::new(edit)
            });
        }
        // A default such as an empty string is rarely the value that a mutation should set.
        if is_of_mutation(analysis, error.index) {
            finding.fix = None;
            let help = mutation_help(finding.rule, error.root);
            finding.help.get_or_insert(help);
        }
        findings.push(finding.with_consequence(consequence));
    }
    mutations(policy, analysis, (&context, &kinds), findings);
    for binding in with {
        findings.extend(param_scope(analysis, binding, &context));
    }
    partial(policy, analysis, &context, findings);
    findings.extend(uncovered(policy, not_covered));
    runtime_errors::type_error_witnesses(analysis.compiled(), &context)
}

/// Returns the finding about a binding whose `paramRef` has a namespace although the params are cluster-scoped, or
/// lacks a namespace although they are namespaced.
fn param_scope(
    analysis: &PolicyAnalysis,
    binding: &Object<ValidatingAdmissionPolicyBinding>,
    context: &Context<'_>,
) -> Option<Finding> {
    let compiled = analysis.compiled();
    let mismatch = runtime_errors::scope_mismatch(compiled, &binding.value, context)?;
    let node = binding.document.node.nearest("spec.paramRef");
    let namespace = node.get("namespace").filter(|it| !it.is_null());
    let field_ref = match namespace {
        Some(_) => "spec.paramRef.namespace",
        None => "spec.paramRef",
    };
    let place = binding.place_of_field(field_ref);
    let severity = severity(mismatch.consequence);
    let rule = Rule::ParamScope;
    let mut finding = object_finding(binding, severity, rule, &mismatch.message, place);
    finding.field_ref = Some(field_ref.to_owned());
    finding.kinds = vec![message::kind(&mismatch.gvk)];
    let effect = match mismatch.consequence {
        Consequence::Denied => "with failurePolicy Fail, such a request is denied",
        _ => "with failurePolicy Ignore, such a request is allowed unchecked",
    };
    finding.help = Some(match namespace {
        Some(namespace) => {
            finding.location.length = binding.length_of(namespace);
            format!("remove `namespace`; {effect}")
        }
        None => effect.to_owned(),
    });
    finding.witness = Some(Box::new(mismatch.witness));
    Some(finding)
}

/// Returns a hint for an expression that does not decide about a request by itself, such as the expression of a
/// variable. The hint suggests a default for an absent field, or a test of the length of a string.
fn default_help(
    analysis: &PolicyAnalysis,
    (field_ref, location): (&str, CelLocation),
    (rule, cause): (Rule, FailureCause),
) -> Option<String> {
    let expression = analysis.expression(field_ref)?;
    let text = &*expression.text;
    let source = TokenText::new(text);
    let n = source.at(SourceMap::new(text).byte(location)?)?;
    if cause == FailureCause::InvalidString {
        let length = required_length(expression.parsed().ok()?, source.bytes(&(n..n + 1))?.start)?;
        return Some(format!(
            "test the length of the string first, as in `size(a) >= {length} && ...`, or write startsWith()"
        ));
    }
    let noun = match rule {
        Rule::AbsentField => "field",
        Rule::AbsentKey => "key",
        _ => return None,
    };
    let is_selection = match source.kind(n)? {
        Kind::Dot => source.kind(n + 1)? == Kind::Ident,
        Kind::OpenBracket => source.kind(n + 1)? == Kind::String,
        _ => false,
    };
    let is_absent = matches!(cause, FailureCause::Absent | FailureCause::FailingDefault);
    (is_selection && is_absent).then_some(())?;
    let receiver = source.receiver(n)?;
    let optional = if source.kind(n)? == Kind::Dot {
        optional_text(source.source(&(receiver.start..n + 2))?)?
    } else {
        let key = source.source(&(n + 1..n + 2))?;
        format!("{}[?{key}]", source.source(&receiver)?)
    };
    let shown = optional.len() <= MAX_SHOWN;
    shown.then(|| {
        format!("write `{optional}.orValue(...)` with the value to use for an absent {noun}")
    })
}

/// Returns the minimum length of a string for which the call at `byte` of the expression does not fail. The call reads
/// characters at literal indices.
fn required_length(ast: &Ast, byte: usize) -> Option<i64> {
    let calls = ast
        .iter()
        .filter(|(id, _)| ast.offset(*id) as usize == byte);
    let mut indices = calls.flat_map(|(_, expr)| match expr {
        Expr::Call { function, args, .. } if matches!(&**function, "substring" | "charAt") => {
            &**args
        }
        _ => &[],
    });
    let index = |id: &ExprId| match ast.expr(*id) {
        Expr::Literal(Literal::Int(index)) => Some(*index),
        _ => None,
    };
    let first = index(indices.next()?)?;
    indices.try_fold(first, |length, id| Some(length.max(index(id)?)))
}

/// Adds findings about conditions and values that do not depend on the request.
fn constant_values(
    policy: &Object<RequestPolicy>,
    known: &Known,
    analysis: &PolicyAnalysis,
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
) {
    let compiled = analysis.compiled();
    let null_roots = runtime_errors::null_root_comparisons(compiled, context);
    let comparisons = runtime_errors::constant_comparisons(compiled, context);
    let string_data = runtime_errors::optional_string_data(compiled, context);
    let lints = null_roots.into_iter().chain(comparisons).chain(string_data);
    let mut fixes = Fixes::new(policy, known, analysis);
    for lint in lints {
        if !analysis.has_type_finding(&lint) {
            let fix = fixes.fix(&lint);
            let mut finding = lint::lint_finding(policy, analysis, &lint);
            if fixes.is_unsafe {
                mark_withheld(&mut finding);
            }
            findings.push(Finding { fix, ..finding });
        }
    }
}

/// Returns true for an expression of a mutation or a variable of a mutating policy.
fn is_of_mutation(analysis: &PolicyAnalysis, index: usize) -> bool {
    let expression = analysis.compiled().expressions().get(index);
    analysis.subject == SubjectKind::MutatingAdmissionPolicy
        && expression.is_some_and(|expression| expression.role != Role::MatchCondition)
}

/// Returns the context of a search that does not depend on bindings.
pub(super) fn context<'a>(known: &'a Known, analysis: &'a PolicyAnalysis) -> Context<'a> {
    Context::new(
        &known.mapper,
        known,
        &analysis.typed.findings,
        &known.object_cache,
    )
}

/// Returns the matchResources of the only binding. `None` for a binding that matches no request because of a mistake,
/// such as disjoint rules or a placeholder in a selector. Such a binding would hide all failures.
fn match_resources_of_only<'a>(
    analysis: &PolicyAnalysis,
    known: &Known,
    (with, without): (
        &[&'a Object<ValidatingAdmissionPolicyBinding>],
        &[&'a Object<ValidatingAdmissionPolicyBinding>],
    ),
) -> Option<&'a MatchResources> {
    let (([only], []) | ([], [only])) = (with, without) else {
        return None;
    };
    let resources = only.value.spec.match_resources.as_ref()?;
    let selectors = [&resources.namespace_selector, &resources.object_selector];
    let is_selector = |selector| Selector::new(selector).is_ok();
    if !selectors.into_iter().flatten().all(is_selector)
        || matching::match_nothing(resources, &known.mapper)
    {
        return None;
    }
    let lints = find_in_binding(analysis.compiled(), &only.value, &known.mapper);
    let is_disjoint = lints.iter().any(|lint| lint.rule == Rule::DisjointRules);
    (!is_disjoint).then_some(resources)
}

/// Returns the advice for a value that a mutation or its variables read.
fn mutation_help(rule: Rule, root: Root) -> String {
    // Match conditions cannot read `namespaceObject`, so they cannot test its fields.
    let place = if root == Root::Namespace {
        ""
    } else {
        "in a match condition or "
    };
    let test = match rule {
        Rule::AbsentKey => "`in`",
        Rule::AbsentElement => "size()",
        Rule::FailingConversion => "matches()",
        _ => "has()",
    };
    format!("first test the value, for example with {test} {place}in `... ? ... : ...`")
}

/// Returns a sentence about a mutation that fails after the fix of a match condition, because the fixed condition is
/// true for more requests.
fn moved_failure(
    analysis: &PolicyAnalysis,
    context: &Context<'_>,
    kinds: &(dyn Kinds + Sync),
    finding: &Finding,
) -> Option<String> {
    let field_ref = finding.field_ref.as_deref()?;
    let text = finding.fix.as_ref()?.value()?;
    let role = analysis.expression(field_ref)?.role;
    let compiled = (role == Role::MatchCondition).then(|| analysis.compiled())?;
    let changed = compiled.with_changed(field_ref, text, true)?;
    let before = runtime_errors::failing_mutations(compiled, context, kinds);
    let after = runtime_errors::failing_mutations(&changed, context, kinds);
    let is_new = |failing: &&FailingMutation| before.iter().all(|it| it.index != failing.index);
    let failing = after.iter().find(is_new)?;
    let mutation = failing.field_ref.trim_start_matches("spec.");
    Some(format!(
        "with this fix, `{mutation}` fails for the requests that the condition additionally matches, so change both \
         expressions"
    ))
}

/// Adds findings about mutations that fail for some request, or whose result the API server rejects.
fn mutations(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    (context, kinds): (&Context<'_>, &(dyn Kinds + Sync)),
    findings: &mut Vec<Finding>,
) {
    if analysis.subject != SubjectKind::MutatingAdmissionPolicy {
        return;
    }
    for failing in runtime_errors::failing_mutations(analysis.compiled(), context, kinds) {
        let place = (failing.field_ref.as_str(), failing.location);
        let severity = failing.consequence.map_or(Severity::Warning, severity);
        let sort = (severity, failing.rule);
        let mut finding = finding_at(policy, analysis, place, sort, &failing.message);
        finding.kinds = failing.gvk.iter().map(message::kind).collect();
        let replacement = failing
            .fix
            .as_ref()
            .and_then(|fix| fix.replacement.as_ref());
        let edit = replacement.and_then(|it| literal_edit(policy, analysis, place, it));
        match replacement {
            Some(Replacement::Assumed(_)) => finding.assumption = edit.map(Assumption::new),
            _ => finding.fix = edit,
        }
        finding.help = failing.fix.map(|advice| advice.text);
        finding.witness = failing.witness.map(Box::new);
        finding.is_hidden = failing.is_hidden;
        findings.push(match failing.consequence {
            Some(consequence) => finding.with_consequence(consequence),
            None => finding,
        });
    }
}

/// Returns true for a finding about a comparison that is certainly a mistake.
fn is_of_comparison(finding: &Finding) -> bool {
    matches!(
        finding.rule,
        Rule::StringOrder
            | Rule::ImpossibleValue
            | Rule::IncomparableTypes
            | Rule::NoMatchingOverload
    )
}

/// Replaces comparisons in the help of findings about absent values with `...` if another finding reports the
/// comparison as a mistake. Otherwise, a suggested guard such as `has(a.b) && a.b <= '2Gi'` would repeat the mistake.
pub(super) fn omit_wrong_operands(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    findings: &mut [Finding],
) {
    let is_absent = |finding: &Finding| {
        is_absent_rule(finding.rule) && finding.help.as_ref().is_some_and(|it| it.contains("has("))
    };
    let fields: BTreeSet<String> = findings
        .iter()
        .filter(|finding| is_absent(finding))
        .filter_map(|finding| finding.field_ref.clone())
        .collect();
    for field_ref in fields {
        let is_of_field = |finding: &Finding| finding.field_ref.as_ref() == Some(&field_ref);
        let reported: BTreeSet<Place> = findings
            .iter()
            .filter(|finding| is_of_field(finding) && is_of_comparison(finding))
            .filter_map(|finding| finding.location.place)
            .collect();
        if reported.is_empty() {
            continue;
        }
        let Some(expression) = analysis.expression(&field_ref) else {
            continue;
        };
        let place = (&*field_ref, &*expression.text);
        let comparisons = comparisons(policy, place, &reported);
        for finding in findings.iter_mut().filter(|it| is_of_field(it)) {
            let help = finding
                .help
                .as_mut()
                .filter(|_| is_absent_rule(finding.rule));
            if let Some(help) = help {
                for text in &comparisons {
                    *help = help.replace(text, "...");
                }
            }
        }
    }
}

fn is_absent_rule(rule: Rule) -> bool {
    matches!(rule, Rule::AbsentField | Rule::AbsentKey)
}

/// Returns the source of the comparisons whose operator or right operand is at one of `places`.
fn comparisons(
    policy: &Object<RequestPolicy>,
    (field_ref, text): (&str, &str),
    places: &BTreeSet<Place>,
) -> Vec<String> {
    let source = TokenText::new(text);
    let field = policy.places_in_field(field_ref);
    let is_reported = |n: usize| {
        let start = source.bytes(&(n..n + 1)).map(|bytes| bytes.start);
        let before = start.and_then(|start| text.get(..start));
        before.is_some_and(|before| places.contains(&field.at(before.chars().count())))
    };
    let relations = (0..source.len()).filter_map(|n| {
        source.kind(n)?.relation()?;
        let (left, right) = source.operands(n)?;
        (is_reported(n) || is_reported(right.start)).then_some(())?;
        source.source(&(left.start..right.end)).map(str::to_owned)
    });
    relations.collect()
}

/// Adds notes about expressions that fail for some of the kinds that a wildcard matches. Each note requires a request
/// that confirms the failure. Expressions with other findings of type checking are skipped.
///
/// The findings are only notes, because selectors, or bindings outside the input, may exclude these kinds.
fn partial(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    context: &Context<'_>,
    findings: &mut Vec<Finding>,
) {
    let partial = &analysis.typed.partial;
    for proof in runtime_errors::partial_failure_witnesses(analysis.compiled(), context, partial) {
        let Some(partial) = partial.iter().find(|it| it.index == proof.index) else {
            continue;
        };
        let mut typed = analysis.typed.findings.iter();
        if typed.any(|finding| finding.index == partial.index) {
            continue;
        }
        let message = format!(
            "{}: the expression fails for {} of the {} kinds that the rules match by wildcards",
            partial.message, partial.n_failing, partial.n_all
        );
        let place = (partial.field_ref.as_str(), partial.location);
        let sort = (Severity::Note, Rule::WildcardKinds);
        let mut finding = finding_at(policy, analysis, place, sort, &message);
        finding.kinds = partial.kinds.iter().map(message::kind).collect();
        finding.help = Some(
            "test `object.kind` or the field first, or list resources instead of a wildcard; the policy then \
             allows requests for all other kinds"
                .to_owned(),
        );
        finding.witness = Some(Box::new(proof.witness));
        if let Some(consequence) = analysis.consequence(&partial.field_ref) {
            finding = finding.with_consequence(consequence);
        }
        findings.push(finding);
    }
}

/// Returns notes about kinds and requests that the search for runtime errors does not cover.
fn uncovered(policy: &Object<RequestPolicy>, uncovered: Uncovered) -> Vec<Finding> {
    let left = (uncovered.n_kinds_left > 0).then(|| {
        let n_searched = uncovered.n_kinds.saturating_sub(uncovered.n_kinds_left);
        format!(
            "the search for failing expressions covers only {n_searched} of the {} kinds that the rules match by name",
            uncovered.n_kinds
        )
    });
    let none = uncovered.has_no_request.then(|| {
        "no valid request that the rules and selectors match could be generated; expressions were only checked for type errors"
            .to_owned()
    });
    let finding = |message: String| {
        let place = policy.place_of_field("spec.matchConstraints.resourceRules");
        let mut finding = object_finding(policy, Severity::Note, Rule::NotChecked, &message, place);
        finding.field_ref = Some("spec.matchConstraints".to_owned());
        finding
    };
    left.into_iter().chain(none).map(finding).collect()
}

fn severity(consequence: Consequence) -> Severity {
    match consequence {
        Consequence::Denied => Severity::Warning,
        Consequence::LetThrough
        | Consequence::NoAnnotation
        | Consequence::OtherMessage
        | Consequence::Unread => Severity::Note,
    }
}

impl WrittenSchemas for Known {
    fn written(&self, gvk: &Gvk) -> Option<&Json> {
        self.written_schema(gvk)
    }

    fn is_builtin_kind(&self, gvk: &Gvk) -> bool {
        self.is_builtin(gvk)
    }
}
