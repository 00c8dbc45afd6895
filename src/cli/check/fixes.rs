//! Computes fixes of findings, as edits of the file. A finding with several possible fixes gets no edit.

use std::collections::HashMap;

use goyaml::Node;

use super::finding::{Assumption, Finding, joined_help};
use super::known::{self, Known};
use super::policy::PolicyAnalysis;
use super::rewrite::string_content;
use super::runtime_errors;
use super::suggestion::nearest_only;
use super::tokens::TokenText;
use crate::cel::ast::{Ast, Expr, ExprId, Literal};
use crate::cel::source::{Location, SourceMap};
use crate::cel::syntax;
use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::policy::RequestPolicy;
use crate::policy::advice::Replacement;
use crate::policy::compile::CompiledPolicy;
use crate::policy::expressions::Role;
use crate::policy::lint::{Lint, intended_groups, missing_question_mark};
use crate::policy::reads::{Attribute, Input, Qualifier, hides_inputs};
use crate::policy::rule::Rule;
use crate::policy::runtime_errors::{DenialReasons, allows_denied_requests};

/// Maximum number of fixes of one policy that are compiled.
const MAX_COMPILATIONS: u32 = 20;

/// Maximum number of other validations that the trial of a fix replaces.
const MAX_OTHERS: usize = 20;

/// Maximum number of syntax nodes of a fixed expression.
const MAX_NODES: usize = 100_000;

pub(super) const OPERATIONS: [&str; 4] = ["CREATE", "UPDATE", "DELETE", "CONNECT"];

/// Returns the edit that replaces `name` with `meant`. `marked` is a part of the field that ends with `name`: its start
/// and its length, in code points.
pub(super) fn replace_name<T>(
    object: &Object<T>,
    field_ref: &str,
    marked: (usize, usize),
    (name, meant): (&str, &str),
) -> Option<Edit> {
    let text = object.document.node.nearest(field_ref).as_str()?;
    let (offset, length) = marked;
    let token: String = text.chars().skip(offset).take(length).collect();
    let n = name.chars().count();
    // The location of a call is its parenthesis, which follows the name.
    if token == "(" && n > 0 {
        let start = offset.checked_sub(n)?;
        let before: String = text.chars().skip(start).take(n).collect();
        return (before == name).then(|| object.edit_text(field_ref, start..offset, meant))?;
    }
    // A backquoted name gets no fix. Its token ends with the backquote.
    (n > 0 && token.ends_with(name)).then_some(())?;
    let end = offset + token.chars().count();
    object.edit_text(field_ref, end - n..end, meant)
}

/// Returns the edit of the string literal at `location`, such as a value of an enumeration or a path of a JSON patch.
/// Without the edit, the API server rejects the patch or the mutated object, so the edit cannot weaken the policy.
pub(super) fn literal_edit(
    policy: &Object<RequestPolicy>,
    analysis: &PolicyAnalysis,
    (field_ref, location): (&str, Location),
    replacement: &Replacement,
) -> Option<Edit> {
    let text = &*analysis.expression(field_ref)?.text;
    let source = TokenText::new(text);
    let n = source.at(SourceMap::new(text).byte(location)?)?;
    let content = string_content(&source, &(n..n + 1))?;
    let path;
    let meant = match replacement {
        Replacement::Literal(meant)
        | Replacement::ComparedLiteral(meant)
        | Replacement::Assumed(meant) => meant,
        Replacement::PathSegment { undefined, meant } => {
            let mut segments: Vec<&str> = content.split('/').collect();
            let mut places = segments.iter_mut().filter(|it| **it == undefined.as_str());
            let only = places.next()?;
            *only = meant;
            places.next().is_none().then_some(())?;
            path = segments.join("/");
            &path
        }
    };
    let bytes = source.bytes(&(n..n + 1))?;
    let offset = |byte: usize| Some(text.get(..byte)?.chars().count());
    let part = offset(bytes.start + 1)?..offset(bytes.end - 1)?;
    let is_plain = !meant.contains(['`', '\'', '"', '\\']);
    is_plain.then(|| policy.edit_text(field_ref, part, meant))?
}

/// Computes the fixes of a policy's lints.
pub(super) struct Fixes<'a> {
    policy: &'a Object<RequestPolicy>,
    known: &'a Known,
    analysis: &'a PolicyAnalysis,
    /// The number of fixes that can still be compiled.
    compilations_left: u32,
    /// True if the last call returned no fix because the fixed policy might allow requests that are denied now.
    pub(super) is_unsafe: bool,
}

impl<'a> Fixes<'a> {
    pub(super) fn new(
        policy: &'a Object<RequestPolicy>,
        known: &'a Known,
        analysis: &'a PolicyAnalysis,
    ) -> Self {
        Self {
            policy,
            known,
            analysis,
            compilations_left: MAX_COMPILATIONS,
            is_unsafe: false,
        }
    }

    /// Returns the fix of a suspicious expression or field. `None` if there is no fix, or more than one.
    pub(super) fn fix(&mut self, lint: &Lint) -> Option<Edit> {
        let field_ref = lint.field_ref.as_str();
        self.is_unsafe = false;
        match lint.rule {
            // A comparison in a mutation has no fix, because the effect of its result on the mutated object is unknown.
            Rule::ImpossibleValue if self.is_of_mutation(field_ref) => {
                let replacement = lint.fix.as_ref()?.replacement.as_ref()?;
                let is_assigned = matches!(replacement, Replacement::Literal(_));
                let place = (field_ref, lint.location?);
                is_assigned.then(|| literal_edit(self.policy, self.analysis, place, replacement))?
            }
            Rule::ImpossibleValue => {
                let edit = value(self.policy, self.analysis, lint)?;
                let reasons = DenialReasons::FalseOrError;
                self.is_unsafe = self.is_alternative(lint)
                    || self.allows_denied_requests(field_ref, edit.value()?, reasons);
                (!self.is_unsafe).then_some(edit)
            }
            Rule::NegatedExistsOne => {
                let edit = self.exists(lint)?;
                let reasons = DenialReasons::False;
                self.is_unsafe = self.allows_denied_requests(field_ref, edit.value()?, reasons);
                (!self.is_unsafe).then_some(edit)
            }
            Rule::OrValueWithoutOptional => self.question_mark(field_ref, lint.location?),
            _ => None,
        }
    }

    /// Replaces `exists_one` with `exists`.
    fn exists(&self, lint: &Lint) -> Option<Edit> {
        let expression = self.analysis.expression(&lint.field_ref)?;
        let source = SourceMap::new(&expression.text);
        let byte = source.byte(lint.location?)?;
        let before = expression.text.get(..byte)?;
        let offset = before.chars().count();
        let mut names = ["exists_one", "existsOne"].into_iter();
        let name = names.find(|name| before.ends_with(name))?;
        replace_name(self.policy, &lint.field_ref, (offset, 1), (name, "exists"))
    }

    fn is_of_mutation(&self, field_ref: &str) -> bool {
        let expression = self.analysis.expression(field_ref);
        expression.is_some_and(|expression| expression.role.is_mutation())
    }

    /// Returns true if the comparison at the lint is an operand of `||` in a validation, as in `request.operation ==
    /// 'delete' || ...`. Such a comparison is never true. A corrected comparison would allow more requests, including
    /// those for which the rest of the expression fails now.
    fn is_alternative(&self, lint: &Lint) -> bool {
        let find = || {
            let expression = self.analysis.expression(&lint.field_ref)?;
            (expression.role == Role::Validation).then_some(())?;
            let ast = expression.parsed().ok()?;
            let source = SourceMap::new(&expression.text);
            let is_of_lint = |id: ExprId| Some(source.location(ast.offset(id))) == lint.location;
            Some(has_alternative(ast, ast.root(), false, &is_of_lint))
        };
        find().unwrap_or(false)
    }

    /// Inserts the `?` that makes the selection at `location` optional. `None` if the new expression does not compile,
    /// for example because the type of a condition is then unknown.
    fn question_mark(&mut self, field_ref: &str, location: Location) -> Option<Edit> {
        let expression = self.analysis.expression(field_ref)?;
        let ast = expression.parsed().ok()?;
        let source = SourceMap::new(&expression.text);
        let calls = self.analysis.typed.non_optional.iter();
        let mut offsets = calls
            .filter(|call| call.field_ref == field_ref)
            .filter_map(|call| missing_question_mark(ast, call.call));
        let offset = offsets.find(|offset| source.location(*offset) == location)?;
        let byte = source.byte(location)?;
        let rest = expression.text.get(byte..)?;
        let operator = rest.get(..1).filter(|it| matches!(*it, "." | "["))?;
        let optional = format!("{operator}?");
        let fixed = expression.text.get(..byte)?.to_owned() + &optional + rest.get(1..)?;
        self.compilations_left = self.compilations_left.checked_sub(1)?;
        self.compiles(field_ref, fixed).then_some(())?;
        let offset = usize::try_from(offset).ok()?;
        self.policy
            .edit_text(field_ref, offset..offset + 1, &optional)
    }

    /// Removes the fix of a comparison with operands that are never equal, if the fixed policy would allow requests
    /// that it denies now. A fix that inserts `size()`, a number, `true` or `false` remains, because it is certainly
    /// what the author intended.
    pub(super) fn withhold_unsafe_comparison(&self, finding: &mut Finding) {
        let (Some(edit), Some(field_ref)) = (&finding.fix, &finding.field_ref) else {
            return;
        };
        let new = edit.text.as_str();
        let is_number = || new.parse::<i64>().is_ok();
        let is_certain = new.starts_with("size(") || matches!(new, "true" | "false") || is_number();
        let Some(text) = edit.value().filter(|_| !is_certain) else {
            return;
        };
        if self.allows_denied_requests(field_ref, text, DenialReasons::False) {
            withhold_fix(finding);
        }
    }

    /// Removes the fix of a misspelled field name, for example in `!has()`, if the fixed policy would allow requests
    /// that it denies now.
    pub(super) fn remove_unsafe_names(&self, findings: &mut [Finding]) {
        let mut n_left = MAX_COMPILATIONS;
        // Findings about several kinds can have the same fix. Each fix is compared with the policy only once.
        let mut compared: HashMap<(String, String), bool> = HashMap::new();
        for finding in findings {
            let is_name = finding.rule == Rule::UndefinedField && !finding.rejected;
            let (Some(edit), Some(field_ref)) = (&finding.fix, &finding.field_ref) else {
                continue;
            };
            let Some(text) = edit.value().filter(|_| is_name) else {
                continue;
            };
            if self.always_fails(field_ref, text) {
                continue;
            }
            let is_compared = n_left > 0;
            n_left = n_left.saturating_sub(1);
            let mut is_unsafe = || {
                let key = (field_ref.clone(), text.to_owned());
                let reasons = DenialReasons::False;
                let compare = || self.allows_denied_requests(field_ref, text, reasons);
                *compared.entry(key).or_insert_with(compare)
            };
            if !is_compared || is_unsafe() {
                withhold_fix(finding);
            }
        }
    }

    /// Returns true if the misspelled field that `text` corrects is selected without `has()` and `?` from an input other
    /// than a variable. Such a selection fails whenever it is evaluated, so a correct name does not change a validation
    /// from false to true.
    fn always_fails(&self, field_ref: &str, text: &str) -> bool {
        let Some(expression) = self.analysis.expression(field_ref) else {
            return false;
        };
        let same = expression.text.chars().zip(text.chars());
        let n_same = same.take_while(|(old, new)| old == new).count();
        let Ok(ast) = expression.parsed() else {
            return false;
        };
        // The offset of a selection is that of its period. The tree also contains the arguments of `has()`, which are
        // not below the root.
        let nodes = ast.descendants(ast.root()).into_iter();
        let selections = nodes.filter_map(|id| match ast.expr(id) {
            Expr::Select { field, .. } => {
                let start = usize::try_from(ast.offset(id)).ok()?;
                let end = start + 1 + field.chars().count();
                (start < n_same && n_same <= end).then_some((start, id))
            }
            _ => None,
        });
        let Some((_, selection)) = selections.max() else {
            return false;
        };
        let attribute = Attribute::new(ast, selection);
        let is_plain = |it: &Qualifier<'_>| !it.is_test && !it.is_optional;
        let of_input = matches!(
            ast.expr(attribute.operand),
            Expr::Ident(name) if Input::from_name(name).is_some_and(|it| it != Input::Variables)
        );
        of_input && !hides_inputs(ast) && attribute.qualifiers.iter().all(is_plain)
    }

    /// Returns true if the policy, with the expression `text` in `field_ref`, allows requests that it denies now.
    /// `reasons` selects the denials that count.
    fn allows_denied_requests(&self, field_ref: &str, text: &str, reasons: DenialReasons) -> bool {
        let compiled = self.analysis.compiled();
        let without_others = without_others(compiled, field_ref);
        let compiled = without_others.as_ref().unwrap_or(compiled);
        let Some(changed) = compiled.with_expression(field_ref, text.to_owned()) else {
            return false;
        };
        let context = runtime_errors::context(self.known, self.analysis);
        allows_denied_requests([compiled, &changed], field_ref, reasons, &context)
    }

    /// Returns true if the policy has no additional errors with the expression `text` in the field `field_ref`.
    fn compiles(&self, field_ref: &str, text: String) -> bool {
        let compiled = self.analysis.compiled();
        let language = compiled.version().behavior().language;
        // `compiled` does not contain the expressions of mutations. They can have any type, so a parser test is enough.
        if field_ref.starts_with("spec.mutations") {
            return syntax::parses(&text, language, MAX_NODES);
        }
        compiled
            .with_expression(field_ref, text)
            .is_some_and(|fixed| {
                fixed.refused().len() <= compiled.refused().len()
                    && fixed.findings().len() <= compiled.findings().len()
            })
    }
}

/// Replaces the other validations with `true` if `field_ref` is a validation. They may deny all requests only because of
/// mistakes that are corrected later. `None` if there are no others.
fn without_others(compiled: &CompiledPolicy, field_ref: &str) -> Option<CompiledPolicy> {
    let validations = compiled.expressions().iter();
    let validations = validations.filter(|it| it.role == Role::Validation);
    let (changed, others): (Vec<_>, Vec<_>) = validations.partition(|it| it.field_ref == field_ref);
    changed.first()?;
    let mut replaced: Option<CompiledPolicy> = None;
    for expression in others.into_iter().take(MAX_OTHERS) {
        let policy = replaced.as_ref().unwrap_or(compiled);
        replaced = Some(policy.with_expression(&expression.field_ref, "true".to_owned())?);
    }
    replaced
}

/// Changes the fix of a finding to an assumption with which the check continues, and adds the reason to the help.
fn withhold_fix(finding: &mut Finding) {
    finding.assumption = finding.fix.take().map(Assumption::new);
    mark_withheld(finding);
}

/// The reason for a withheld fix, in a help text.
const MAY_ALLOW: &str = "the policy may then allow requests that it denies now";

/// Sets the reason why a finding has no fix, and adds it to the help: the fixed policy might allow denied requests.
pub(super) fn mark_withheld(finding: &mut Finding) {
    finding.fix_objection = Some(MAY_ALLOW);
    finding.help = Some(joined_help(finding.help.take(), MAY_ALLOW));
}

/// The consequence of correcting an excludeResourceRule that excludes nothing now.
const MAY_IGNORE: &str = "the policy then ignores requests that it evaluates now";

/// Sets the reason why a mistake in an excludeResourceRule has no fix, and adds it to the help.
pub(super) fn mark_exclusion(finding: &mut Finding) {
    finding.fix_objection = Some(MAY_IGNORE);
    finding.help = Some(joined_help(finding.help.take(), MAY_IGNORE));
}

/// Sets the fix of an impossible API group. A group in an excludeResourceRule gets no fix, because the policy would
/// then allow more requests.
pub(super) fn set_group_fix(finding: &mut Finding, edit: Option<Edit>) {
    let field_ref = finding.field_ref.as_deref().unwrap_or_default();
    if field_ref.contains(".excludeResourceRules[") {
        finding.assumption = edit.map(Assumption::new);
        if finding.help.is_some() {
            mark_exclusion(finding);
        }
    } else {
        finding.fix = edit;
    }
}

/// Returns the correction of an impossible API group in a rule of a policy, a webhook or a binding.
pub(super) fn group_edit(
    policy: &Object<RequestPolicy>,
    field_ref: &str,
    known: &Known,
) -> Option<Edit> {
    group(policy, field_ref).or_else(|| intended_group(policy, field_ref, known))
}

/// Replaces an impossible group if only one served group fits the rest of its rule.
fn intended_group(policy: &Object<RequestPolicy>, field_ref: &str, known: &Known) -> Option<Edit> {
    let node = policy.document.node.nearest(field_ref);
    let (_, n) = field_ref.split_once(".resourceRules[")?;
    let n = n.split(']').next()?.parse().ok()?;
    let rule = known::rule(&policy.value, n)?;
    // In `group/version`, the version may be the mistake instead of the group.
    let group = node.as_str().filter(|group| !group.contains('/'))?;
    let groups = intended_groups(rule, group, &known.mapper);
    let mut listed = rule.api_groups.iter().flatten();
    if listed.any(|listed| groups.contains(listed.as_str())) {
        return None;
    }
    let mut groups = groups.into_iter();
    let only = groups.next().filter(|_| groups.next().is_none())?;
    policy.document.edit_value(&policy.source, node, only)
}

/// Corrects an item of `apiGroups`: replaces `apps/v1` with `apps`, and `core`, `core/v1` and `v1` with the empty
/// string. A version is only removed if the rule has it in `apiVersions`.
fn group(policy: &Object<RequestPolicy>, field_ref: &str) -> Option<Edit> {
    let root = &policy.document.node;
    let node = root.nearest(field_ref);
    let rule = root.nearest(field_ref.split(".apiGroups").next()?);
    let versions = rule.get("apiVersions").map_or(&[][..], Node::items);
    let has_version = |version: &str| {
        let mut versions = versions.iter().filter_map(Node::as_str);
        versions.any(|known| known == version || known == "*")
    };
    let is_version = |text: &str| {
        let digits = text.strip_prefix('v').unwrap_or_default();
        digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_alphanumeric())
    };
    let text = node.as_str()?;
    let meant = match text.split_once('/') {
        Some(("core", version)) if has_version(version) => "",
        Some((group, version)) if is_version(version) && has_version(version) => group,
        None if text == "core" || is_version(text) && has_version(text) => "",
        _ => return None,
    };
    policy.document.edit_value(&policy.source, node, meant)
}

/// Corrects the literal of the comparison at `location`, if exactly one of its literals is invalid.
fn value(policy: &Object<RequestPolicy>, analysis: &PolicyAnalysis, lint: &Lint) -> Option<Edit> {
    let (field_ref, location) = (lint.field_ref.as_str(), lint.location?);
    let replacement = lint.fix.as_ref().and_then(|fix| fix.replacement.as_ref());
    let suggested = replacement.map(Replacement::value);
    let expression = analysis.expression(field_ref)?;
    let text = &*expression.text;
    let ast = expression.parsed().ok()?;
    let source = SourceMap::new(text);
    let matched = analysis.matched().iter();
    let mut correction = None;
    for (id, expr) in ast.iter() {
        if source.location(ast.offset(id)) != location {
            continue;
        }
        let Expr::Call {
            function,
            target: None,
            args,
        } = expr
        else {
            continue;
        };
        if !matches!(&**function, "_==_" | "_!=_" | "@in") {
            continue;
        }
        let field = args.iter().find_map(|id| last_field(ast, *id))?;
        // A field `kind` may belong to a part of the object, such as a subject, instead of the object itself.
        let is_of_part = suggested.is_some_and(|name| {
            let mut matched = matched.clone();
            field == "kind" && !matched.any(|it| &*it.gvk.kind == name)
        });
        let names: Vec<&str> = match field {
            _ if is_of_part => vec![suggested?],
            "operation" => OPERATIONS.to_vec(),
            "kind" => matched.clone().map(|matched| &*matched.gvk.kind).collect(),
            "resource" => {
                let resources = matched.clone();
                let names = resources.map(|matched| matched.gvr.resource.split('/').next());
                names.map(Option::unwrap_or_default).collect()
            }
            _ => vec![suggested?],
        };
        for id in literals(ast, args) {
            let Expr::Literal(Literal::String(literal)) = ast.expr(id) else {
                continue;
            };
            let is_wrong = !names.contains(&&**literal);
            let is_suggested = names.len() == 1 && suggested == names.first().copied();
            match meant(&names, literal, field == "operation") {
                _ if !is_wrong => {}
                None if is_suggested => {
                    // Other literals of a list count as valid, unless they are also similar to the suggested value.
                    if let Some(near) = nearest_only(literal, names.iter().copied()) {
                        if correction.is_some() {
                            return None;
                        }
                        correction = Some((ast.offset(id), literal.to_string(), near));
                    }
                }
                Some(meant) if correction.is_none() => {
                    correction = Some((ast.offset(id), literal.to_string(), meant));
                }
                _ => return None,
            }
        }
    }
    let (offset, literal, meant) = correction?;
    let byte = source.byte(source.location(offset))?;
    let token = text.get(syntax::span_at(text, byte))?;
    // The edit needs the literal in the source. A literal with escape sequences differs from its source, so it gets no
    // fix.
    let (before, after) = token.split_once(&literal)?;
    (!after.contains(&literal)).then_some(())?;
    let start = text.get(..byte)?.chars().count() + before.chars().count();
    let part = start..start + literal.chars().count();
    policy.edit_text(field_ref, part, meant)
}

/// Returns true if `is_found` holds for a comparison with `==` or `in` that is an operand of `||`. Searches the
/// operands of `&&` and `||` below `id`.
fn has_alternative(
    ast: &Ast,
    id: ExprId,
    is_alternative: bool,
    is_found: &dyn Fn(ExprId) -> bool,
) -> bool {
    let Expr::Call {
        function,
        target: None,
        args,
    } = ast.expr(id)
    else {
        return false;
    };
    let is_alternative = match &**function {
        "_==_" | "@in" => return is_alternative && is_found(id),
        "_||_" => true,
        "_&&_" => is_alternative,
        _ => return false,
    };
    let mut args = args.iter();
    args.any(|arg| has_alternative(ast, *arg, is_alternative, is_found))
}

/// Returns the selected field, such as `operation` for `request.operation`. `None` if `id` is not a selection.
fn last_field(ast: &Ast, id: ExprId) -> Option<&str> {
    match ast.expr(id) {
        Expr::Select {
            field,
            test_only: false,
            ..
        } => Some(field),
        _ => None,
    }
}

/// Returns the arguments, with lists replaced by their elements.
fn literals(ast: &Ast, args: &[ExprId]) -> Vec<ExprId> {
    let mut literals = Vec::new();
    for id in args {
        match ast.expr(*id) {
            Expr::List { elements, .. } => literals.extend(elements.iter().copied()),
            _ => literals.push(*id),
        }
    }
    literals
}

/// Returns the only name that equals `text` if case is ignored. Unless `is_exact`, a plural `s` is also ignored.
///
/// Returns `None` if there is no such name, or more than one.
fn meant<'a>(names: &[&'a str], text: &str, is_exact: bool) -> Option<&'a str> {
    let plain = |name: &str| {
        let lower = name.to_lowercase();
        if is_exact {
            lower
        } else {
            lower.trim_end_matches('s').to_owned()
        }
    };
    let wanted = plain(text);
    if let Some(exact) = names.iter().find(|name| name.eq_ignore_ascii_case(text)) {
        return Some(exact);
    }
    let mut near = names.iter().filter(|name| plain(name) == wanted);
    let first = near.next()?;
    near.all(|other| other == first).then_some(*first)
}
