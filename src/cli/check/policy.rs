//! One policy: the engine's answers about it as findings with places.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::panic::{self, AssertUnwindSafe};

use jiff::Timestamp;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;

use super::finding::{Finding, Location, Severity};
use super::issues::{self, Issue};
use super::known::{self, Known};
use super::suggestion::{self, Suggestions};
use crate::cli::input::yaml::Node;
use crate::cli::input::{FieldPlaces, Object, POLICY_VERSION, Place};
use crate::policy::compile::{CompileFindingKind, CompileMode, CompiledPolicy};
use crate::policy::expressions::{PolicyExpression, Role};
use crate::policy::matching::{self, Matches};
use crate::policy::typecheck::{Profile, TypeCheck, type_check};
use crate::schema::{GroupVersion, Gvk, Gvr};
use crate::status::bindings::BindingsState;
use crate::status::compute::{
    self, Checked, Compiled, DesiredStatus, Observed, ParamKindState, Types,
};
use crate::status::condition::{ConditionStatus, ConditionType, find};
use crate::status::message;
use crate::status::probes::ProbesState;

/// The conditions that files can tell, and that `Ready` is made of here.
const TOLD: [ConditionType; 4] = [
    ConditionType::Compiled,
    ConditionType::ResourcesMatched,
    ConditionType::ParamsResolved,
    ConditionType::TypeChecked,
];

/// The most groups of a rule that are named in what is said of it.
const MAX_GROUPS: usize = 5;

/// What was found out about one policy.
#[derive(Debug)]
pub struct Outcome {
    /// The status that the controller would give it in a cluster that serves what is known here.
    pub status: DesiredStatus,
    /// What type checking found.
    pub typed: TypeCheck,
    /// What is to be said about it.
    pub findings: Vec<Finding>,
}

/// The engine's answers about a policy.
struct Answers {
    compiled: CompiledPolicy,
    /// Where in `compiled` the expression of a field is.
    by_field: HashMap<String, usize>,
    /// Fields that do not compile, with what kind of trouble it is and the API server's text.
    errors: Vec<(String, CompileFindingKind, String)>,
    matches: Matches,
    typed: TypeCheck,
    params: ParamKindState,
    status: DesiredStatus,
}

impl Answers {
    /// The expression that `field_ref` holds.
    fn expression(&self, field_ref: &str) -> Option<&PolicyExpression> {
        let n = self.by_field.get(field_ref)?;
        self.compiled.expressions().get(*n)
    }
}

/// Checks a policy. An error of this program costs this policy, and is told.
#[must_use]
pub fn check(
    policy: &Object<ValidatingAdmissionPolicy>,
    known: &Known,
    profile: Profile,
) -> Outcome {
    let answers = panic::catch_unwind(AssertUnwindSafe(|| answers(&policy.value, known, profile)));
    let Ok(answers) = answers else {
        let status = DesiredStatus {
            observed_generation: 0,
            expression_warnings: Vec::new(),
            n_type_warnings: 0,
            conditions: Vec::new(),
        };
        return Outcome {
            status,
            typed: TypeCheck::default(),
            findings: vec![finding(
                policy,
                Severity::Error,
                "broken-check",
                "the check of this policy broke off on an error of kubectl-vap; please report it",
                policy.place(),
            )],
        };
    };
    let mut findings = Vec::new();
    version(policy, known, &mut findings);
    expression_errors(policy, known, &answers, &mut findings);
    expression_warnings(policy, known, &answers, &mut findings);
    resources(policy, known, &answers, &mut findings);
    params(policy, &answers, &mut findings);
    coverage(policy, known, &answers, &mut findings);
    Outcome {
        status: answers.status,
        typed: answers.typed,
        findings,
    }
}

fn answers(policy: &ValidatingAdmissionPolicy, known: &Known, profile: Profile) -> Answers {
    let compiled = CompiledPolicy::new(policy);
    let matches = matching::resolve(policy, &known.mapper);
    let typed = type_check(&compiled, &known.mapper, known, profile);
    let params = known.param_kind_state(policy);

    // What the API server refuses when the policy is created, and after that what it cannot use.
    let refused = compiled.compile(CompileMode::New).into_iter();
    let mut errors: Vec<_> = refused
        .filter_map(|expression| {
            let error = expression.outcome.err()?;
            Some((expression.field_ref, error.kind, error.message))
        })
        .collect();
    let known_errors: HashSet<_> = errors
        .iter()
        .map(|(field_ref, kind, _)| (field_ref.clone(), *kind))
        .collect();
    for found in compiled.findings() {
        if !known_errors.contains(&(found.field_ref.clone(), found.kind)) {
            errors.push((found.field_ref.clone(), found.kind, found.message.clone()));
        }
    }
    let expressions = compiled.expressions().iter().enumerate();
    let by_field = expressions.map(|(n, expression)| (expression.field_ref.clone(), n));
    let by_field = by_field.collect();

    let matched = matches.clone().into();
    let outcome = typed.clone().into();
    let ready_requires: BTreeSet<_> = TOLD.into_iter().collect();
    let observed = Observed {
        policy,
        compiled: Checked::Done(Compiled {
            findings: compiled.findings(),
            n_expressions: compiled.n_expressions(),
        }),
        matches: Checked::Done(&matched),
        types: Checked::Done(Types {
            outcome: &outcome,
            waiting: &[],
        }),
        params: params.clone(),
        // Files say nothing of the bindings and probes that a cluster has.
        bindings: BindingsState::Unread,
        probes: ProbesState::Unread,
        ready_requires: &ready_requires,
    };
    let mut status = compute::compute(&observed, Timestamp::UNIX_EPOCH);
    let is_told = |type_: &str| {
        ConditionType::from_name(type_)
            .is_some_and(|type_| type_ == ConditionType::Ready || TOLD.contains(&type_))
    };
    status
        .conditions
        .retain(|condition| is_told(&condition.type_));
    Answers {
        compiled,
        by_field,
        errors,
        matches,
        typed,
        params,
        status,
    }
}

/// The version of the document, where Kubernetes does not serve it any more.
fn version(policy: &Object<ValidatingAdmissionPolicy>, known: &Known, findings: &mut Vec<Finding>) {
    let api_version = policy.api_version();
    let Some(GroupVersion { group, version }) = GroupVersion::parse(api_version) else {
        return;
    };
    let gvr = Gvr::new(group, version, "validatingadmissionpolicies");
    if known.mapper.resource(&gvr).is_none() {
        let message = format!(
            "Kubernetes {} does not serve ValidatingAdmissionPolicy as {api_version}",
            known.kubernetes()
        );
        let place = policy.place_of_field("apiVersion");
        let mut found = finding(policy, Severity::Note, "old-version", &message, place);
        found.help = Some(format!("it was read as {POLICY_VERSION}: write that"));
        found.field_ref = Some("apiVersion".to_owned());
        findings.push(found);
    }
}

/// What the API server refuses, or cannot evaluate safely.
fn expression_errors(
    policy: &Object<ValidatingAdmissionPolicy>,
    known: &Known,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    let mut suggestions = Suggestions::default();
    for (field_ref, kind, message) in &answers.errors {
        let (severity, other, help) = match kind {
            CompileFindingKind::Failed => (
                Severity::Error,
                "compilation-failed",
                "the API server refuses the policy",
            ),
            CompileFindingKind::Unsafe => (
                Severity::Error,
                "unsafe-expression",
                "the API server accepts the policy, and may end when it evaluates it",
            ),
            CompileFindingKind::Unsupported => (
                Severity::Note,
                "unsupported-expression",
                "whether the expression works cannot be told",
            ),
        };
        let expression = answers.expression(field_ref).map(Of::new);
        let expression = expression.as_ref();
        let places = policy.places_in_field(field_ref);
        for issue in issues::parse(message).issues {
            let rule = match kind {
                CompileFindingKind::Failed => issues::rule(&issue.message, other),
                CompileFindingKind::Unsafe | CompileFindingKind::Unsupported => other,
            };
            let mut found = in_expression(policy, (severity, rule), &issue, expression, &places);
            found.field_ref = Some(field_ref.clone());
            let is_match_condition =
                expression.is_some_and(|of| of.expression.role == Role::MatchCondition);
            let hint = match (rule, expression.zip(issue.at)) {
                ("undeclared-reference", _) => {
                    suggestion::reference(&issue.message, is_match_condition)
                }
                ("undefined-field", Some((expression, at))) => {
                    let text = &expression.expression.text;
                    suggestions
                        .field(&policy.value, known, &[], text, at)
                        .map(|meant| format!("did you mean `{meant}`?"))
                }
                _ => None,
            };
            found.help = Some(match hint {
                Some(hint) => format!("{hint}; {help}"),
                None => help.to_owned(),
            });
            findings.push(found);
        }
    }
}

/// What may fail when it is evaluated.
fn expression_warnings(
    policy: &Object<ValidatingAdmissionPolicy>,
    known: &Known,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    let help = if crate::policy::fails_closed(&policy.value) {
        "with failurePolicy Fail, a request for which it fails is denied"
    } else {
        "with failurePolicy Ignore, a request for which it fails is let through unchecked"
    };
    let mut errors_of: HashMap<&str, HashSet<_>> = HashMap::new();
    for (field_ref, _, message) in &answers.errors {
        let issues = issues::parse(message).issues.into_iter();
        let issues = issues.map(|issue| (issue.at, issue.message));
        errors_of.entry(field_ref).or_default().extend(issues);
    }
    let no_errors = HashSet::new();
    let mut suggestions = Suggestions::default();
    for warning in &answers.typed.warnings {
        let field_ref = &warning.field_ref;
        let expression = answers.expression(field_ref).map(Of::new);
        let expression = expression.as_ref();
        let places = policy.places_in_field(field_ref);
        let errors = errors_of.get(field_ref.as_str()).unwrap_or(&no_errors);
        let mut grouped: Vec<(Issue, Vec<String>)> = Vec::new();
        let said = issues::parse(&warning.warning);
        for issue in said.issues {
            // Said of the expression itself already, without regard to a kind.
            let is_syntax = issues::rule(&issue.message, "expression-warning") == "syntax";
            if errors.contains(&(issue.at, issue.message.clone()))
                || is_syntax && !errors.is_empty()
            {
                continue;
            }
            let kind = issue.kind.as_deref().map(display_kind);
            let same = grouped
                .iter_mut()
                .find(|(known, _)| known.at == issue.at && known.message == issue.message);
            match same {
                Some((_, kinds)) => kinds.extend(kind),
                None => grouped.push((issue, kind.into_iter().collect())),
            }
        }
        for (issue, kinds) in grouped {
            let rule = issues::rule(&issue.message, "expression-warning");
            let severity = Severity::Warning;
            let mut found = in_expression(policy, (severity, rule), &issue, expression, &places);
            found.field_ref = Some(field_ref.clone());
            let meant = expression
                .zip(issue.at)
                .filter(|_| rule == "undefined-field")
                .and_then(|(expression, at)| {
                    let text = &expression.expression.text;
                    suggestions.field(&policy.value, known, &kinds, text, at)
                });
            found.kinds = kinds;
            let mut helps: Vec<String> = meant
                .map(|meant| format!("did you mean `{meant}`?"))
                .into_iter()
                .collect();
            if !issue.is_harmless {
                helps.push(help.to_owned());
            }
            helps.extend(said.notes.iter().map(|note| format!("({note})")));
            found.help = (!helps.is_empty()).then(|| helps.join(" "));
            findings.push(found);
        }
    }
}

/// `apps/v1, Kind=Deployment` as `apps/v1 Deployment`.
fn display_kind(kind: &str) -> String {
    kind.trim_start_matches('/').replacen(", Kind=", " ", 1)
}

/// An expression that things are said of.
struct Of<'a> {
    expression: &'a PolicyExpression,
    /// How many code points of white space there are before it.
    n_blank: usize,
    /// Where in its text each line begins, in code points.
    line_starts: Vec<usize>,
    /// How many code points there are from the first to the last that is not blank.
    n_solid: usize,
}

impl<'a> Of<'a> {
    fn new(expression: &'a PolicyExpression) -> Self {
        let text = expression.text.as_str();
        let n_blank = text.chars().count() - text.trim_start().chars().count();
        let mut at = 0;
        let lines = text.split('\n').map(|line| {
            let start = at;
            at += line.chars().count() + 1;
            start
        });
        Self {
            expression,
            n_blank,
            line_starts: lines.collect(),
            n_solid: text.trim().chars().count(),
        }
    }

    /// Which code points of the text an issue is about: from, and how many.
    fn marked(&self, severity: Severity, issue: &Issue) -> (usize, usize) {
        let Some((line, column)) = issue.at else {
            // The expression as a whole.
            return (self.n_blank, self.n_solid);
        };
        // The API server trims some expressions before it compiles them.
        let is_trimmed = severity == Severity::Error
            && matches!(
                self.expression.role,
                Role::MatchCondition | Role::AuditAnnotation
            );
        let start = |line: usize| self.line_starts.get(line).or(self.line_starts.last());
        let start = |line: usize| start(line).copied().unwrap_or_default();
        let offset = if is_trimmed {
            let first = self.line_starts.partition_point(|at| *at <= self.n_blank);
            let n_lines_before = first.saturating_sub(1);
            match line.saturating_sub(1) {
                0 => self.n_blank + column,
                line => start(n_lines_before + line) + column,
            }
        } else {
            start(line.saturating_sub(1)) + column
        };
        let length = issues::token_length(&self.expression.text, offset);
        (offset, length)
    }
}

/// A finding about an expression, at the place of the issue in the file.
fn in_expression(
    policy: &Object<ValidatingAdmissionPolicy>,
    (severity, rule): (Severity, &'static str),
    issue: &Issue,
    expression: Option<&Of<'_>>,
    places: &FieldPlaces<'_>,
) -> Finding {
    let mut found = finding(policy, severity, rule, &issue.message, places.start());
    let Some(expression) = expression else {
        return found;
    };
    let (offset, length) = expression.marked(severity, issue);
    let place = places.of(offset);
    let last = places.of(offset + length.saturating_sub(1));
    found.location.place = Some(place);
    if last.line == place.line && last.column >= place.column {
        found.location.length = last.column - place.column + 1;
    }
    found
}

/// Rules that name what is not served, or what nothing is known of.
fn resources(
    policy: &Object<ValidatingAdmissionPolicy>,
    known: &Known,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    let matches = &answers.matches;
    let condition = find(&answers.status.conditions, ConditionType::ResourcesMatched);
    let never_runs =
        condition.is_some_and(|condition| ConditionStatus::of(condition) == ConditionStatus::False);
    let mut names: HashMap<(&str, &str), &Node> = HashMap::new();
    let mut rules: HashMap<&str, (&Node, Vec<&str>)> = HashMap::new();
    for unserved in &matches.unserved {
        let field_ref = unserved.field_ref.as_str();
        let (rule, open_groups) = rules.entry(field_ref).or_insert_with(|| {
            let rule = policy.document.node.nearest(field_ref);
            let resources = rule.get("resources").map_or(&[][..], Node::items);
            let named = resources.iter().rev();
            let named = named.filter_map(|item| Some(((field_ref, item.as_str()?), item)));
            names.extend(named);
            let groups = known::rule(&policy.value, field_ref);
            let groups = groups.into_iter().flat_map(|rule| known.open_groups(rule));
            (rule, groups.take(MAX_GROUPS).collect())
        });
        let name = unserved.rule.rsplit(' ').next().unwrap_or_default();
        let (place, length) = match names.get(&(field_ref, name)) {
            Some(item) => (policy.place_of(item), item.span.len().max(1)),
            None => (policy.place_of(rule), 1),
        };
        let unknown: &[&str] = if Known::is_misspelt(unserved) {
            &[]
        } else {
            open_groups
        };
        let mut found = if unknown.is_empty() {
            let severity = match (&unserved.suggestion, never_runs) {
                (_, true) => Severity::Error,
                (Some(_), false) => Severity::Warning,
                // A resource of the past beside those of today does no harm.
                (None, false) => Severity::Note,
            };
            let message = format!("nothing serves {}", unserved.rule);
            let mut found = finding(policy, severity, "unserved-resource", &message, place);
            let hint = unserved.suggestion.as_ref();
            let hint = hint.map(|suggestion| format!("did you mean `{suggestion}`?"));
            let consequence = never_runs.then(|| "the policy never runs".to_owned());
            let parts: Vec<String> = hint.into_iter().chain(consequence).collect();
            found.help = (!parts.is_empty()).then(|| parts.join(" "));
            found
        } else {
            let message = format!("nothing is known of {}", unserved.rule);
            let note = Severity::Note;
            let mut found = finding(policy, note, "unknown-resource", &message, place);
            found.help = Some(format!(
                "for CRDs of {} name their files with --crds, or among the input",
                unknown.join(" and ")
            ));
            found
        };
        found.field_ref = Some(unserved.field_ref.clone());
        found.location.length = length;
        findings.push(found);
    }
    exempt_resources(policy, answers, findings);
    let has_rules = known::rule(&policy.value, "spec.matchConstraints.resourceRules[0]").is_some();
    if never_runs && has_rules && matches.unserved.is_empty() && matches.exempt.is_empty() {
        let field_ref = "spec.matchConstraints.resourceRules";
        let place = policy.place_of_field(field_ref);
        let message = "no rule matches a served resource";
        let mut found = finding(policy, Severity::Error, "unserved-resource", message, place);
        found.field_ref = Some(field_ref.to_owned());
        found.help = Some("the policy never runs".to_owned());
        findings.push(found);
    }
}

/// Resources that rules name in vain, or by wildcards in rules that match nothing else.
fn exempt_resources(
    policy: &Object<ValidatingAdmissionPolicy>,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    let matches = &answers.matches;
    let never_runs = matches.resources.is_empty();
    let told = matches.exempt.iter();
    let told = told.filter(|exempt| never_runs || !exempt.by_wildcard);
    // One finding for each name in a rule, however many resources a wildcard stands for.
    let mut by_name: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for exempt in told {
        let key = (exempt.field_ref.as_str(), exempt.name.as_str());
        by_name.entry(key).or_default().push(&exempt.resource);
    }
    for ((field_ref, name), resources) in by_name {
        let severity = if never_runs {
            Severity::Error
        } else {
            Severity::Warning
        };
        let rule = policy.document.node.nearest(field_ref);
        let names = rule.get("resources").map_or(&[][..], Node::items);
        let named = names.iter().find(|item| item.as_str() == Some(name));
        let (place, length) = match named {
            Some(item) => (policy.place_of(item), item.span.len().max(1)),
            None => (policy.place_of(rule), 1),
        };
        let message = format!(
            "no API server asks a policy about {}",
            message::list(&resources)
        );
        let mut found = finding(policy, severity, "exempt-resource", &message, place);
        let consequence = if never_runs {
            "the policy never runs"
        } else {
            "the rule is in vain for it"
        };
        found.help = Some(format!(
            "{consequence}; who may write it is a matter of RBAC"
        ));
        found.field_ref = Some(field_ref.to_owned());
        found.location.length = length;
        findings.push(found);
    }
}

/// The paramKind.
fn params(
    policy: &Object<ValidatingAdmissionPolicy>,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    let field_ref = "spec.paramKind";
    let place = policy.place_of_field("spec.paramKind.kind");
    let condition = find(&answers.status.conditions, ConditionType::ParamsResolved);
    let found = match &answers.params {
        ParamKindState::NotRequired | ParamKindState::Served(..) => return,
        ParamKindState::Undiscovered { gvk, .. } => {
            let message = format!("nothing is known of paramKind {}", message::kind(gvk));
            let note = Severity::Note;
            let mut found = finding(policy, note, "unknown-param-kind", &message, place);
            found.help = Some(
                "name the file of its CRD with --crds, or among the input; `params` is not checked"
                    .to_owned(),
            );
            found
        }
        ParamKindState::NotFound { .. } | ParamKindState::NotServed { .. } => {
            let text = condition.map(|condition| condition.message.as_str());
            let text = text.unwrap_or("nothing serves the paramKind");
            let (message, help) = text.split_once("; ").unwrap_or((text, ""));
            let error = Severity::Error;
            let mut found = finding(policy, error, "param-kind-not-found", message, place);
            found.help = (!help.is_empty()).then(|| help.to_owned());
            found
        }
    };
    findings.push(Finding {
        field_ref: Some(field_ref.to_owned()),
        ..found
    });
}

/// What type checking did not see.
fn coverage(
    policy: &Object<ValidatingAdmissionPolicy>,
    known: &Known,
    answers: &Answers,
    findings: &mut Vec<Finding>,
) {
    let typed = &answers.typed;
    let unchecked = typed.unchecked.iter().chain(&typed.by_wildcard.unchecked);
    let mut gaps = message::unchecked(unchecked);
    let seen = typed.by_wildcard.unchecked.iter();
    let checked: BTreeSet<&Gvk> = typed
        .checked
        .iter()
        .chain(&typed.by_wildcard.checked)
        .chain(seen.map(|unchecked| &unchecked.gvk))
        .collect();
    // Of some resources there is no request of the operations that the rules name: nothing is left out.
    let kinds = matching::kinds(&policy.value, &known.mapper);
    let n_by_wildcard = answers
        .matches
        .resources
        .iter()
        .filter(|resource| resource.by_wildcard && !checked.contains(&resource.gvk))
        .filter(|resource| kinds.binary_search(&resource.gvk).is_ok())
        .count();
    if n_by_wildcard > 0 {
        gaps.push(format!("{n_by_wildcard} resources matched by wildcards"));
    }
    if gaps.is_empty() {
        return;
    }
    let n_checked = typed.checked.len() + typed.by_wildcard.checked.len();
    let n_kinds = n_checked + typed.unchecked.len() + typed.by_wildcard.unchecked.len();
    let checked = match (n_checked, n_kinds) {
        (0, _) => "no types checked".to_owned(),
        (n, all) if n == all => format!("the types of {} checked", message::count(n, "kind")),
        (n, all) => format!(
            "the types of {n} of {} checked",
            message::count(all, "kind")
        ),
    };
    let field_ref = "spec.matchConstraints";
    let place = policy.place_of_field("spec.matchConstraints.resourceRules");
    let message = format!("{checked}; not checked: {}", gaps.join(", "));
    let mut found = finding(policy, Severity::Note, "not-checked", &message, place);
    found.field_ref = Some(field_ref.to_owned());
    findings.push(found);
}

/// A finding about a policy, or about a binding of one.
pub(in crate::cli) fn finding<T>(
    object: &Object<T>,
    severity: Severity,
    rule: &'static str,
    message: &str,
    place: Place,
) -> Finding {
    let text = |field_ref| {
        let node = object.document.node.nearest(field_ref);
        node.as_str().filter(|text| !text.is_empty())
    };
    let policy = match text("kind") {
        Some("ValidatingAdmissionPolicy") => text("metadata.name"),
        Some("ValidatingAdmissionPolicyBinding") => text("spec.policyName"),
        _ => None,
    };
    Finding {
        severity,
        rule,
        message: message.to_owned(),
        help: None,
        location: Location {
            file: object.source.name.clone(),
            source: Some(std::sync::Arc::clone(&object.source)),
            place: Some(place),
            length: 1,
        },
        policy: policy.map(str::to_owned),
        field_ref: None,
        kinds: Vec::new(),
    }
}
