//! Findings about unserved, unknown and exempt resources in the rules of policies, webhooks and bindings.

use std::collections::{BTreeMap, HashMap};

use goyaml::Node;

use super::finding::{Assumption, Finding, Severity};
use super::fixes::mark_exclusion;
use super::known::{self, Known};
use super::policy::object_finding;
use super::suggestion::nearest;
use super::{manifests, rule_scope};
use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::policy::RequestPolicy;
use crate::policy::matching::{Matches, UnservedResource};
use crate::policy::rule::Rule;
use crate::policy::subject::SubjectKind;
use crate::status::message;

/// Maximum number of groups of a rule that a finding lists.
const MAX_GROUPS: usize = 5;

/// Adds warnings about excludeResourceRules that exclude nothing, because a resource is misspelled. `unserved` contains
/// the unserved resources of these rules.
pub(super) fn exclusions(
    object: &Object<RequestPolicy>,
    unserved: Vec<UnservedResource>,
    findings: &mut Vec<Finding>,
) {
    for unserved in unserved {
        let Some(meant) = unserved.suggestion.as_ref().filter(|_| {
            // Any other resource is skipped, because its CRD might be missing from the input.
            unserved.is_misspelled || unserved.is_known
        }) else {
            continue;
        };
        let rule = object.document.node.nearest(&unserved.field_ref);
        let mut names = rule.get("resources").map_or(&[][..], Node::items).iter();
        let item = names.find(|item| item.as_str() == Some(unserved.name.as_str()));
        let place = object.place_of(item.unwrap_or(rule));
        let message = format!(
            "no served resource matches {}, so the rule excludes nothing",
            unserved.rule
        );
        let warning = Severity::Warning;
        let mut finding = object_finding(object, warning, Rule::UnservedResource, &message, place);
        finding.help = Some(format!("did you mean `{meant}`?"));
        mark_exclusion(&mut finding);
        finding.location.length = item.map_or(1, |item| item.span.len().max(1));
        finding.field_ref = Some(unserved.field_ref);
        findings.push(finding);
    }
}

/// The resource rules of a policy, a webhook or a binding.
pub(super) struct ResourceRules<'a> {
    /// The object with the rules. A binding is converted to a policy with the same rules.
    pub(super) object: &'a Object<RequestPolicy>,
    pub(super) matches: &'a Matches,
    /// The effect of rules that match no served resource. `None` if they match a served resource.
    pub(super) never_runs: Option<&'static str>,
}

/// Adds findings about unserved and unknown resources in the rules of an object.
pub(super) fn unserved(rules: &ResourceRules<'_>, known: &Known, findings: &mut Vec<Finding>) {
    let (policy, matches) = (rules.object, rules.matches);
    let never_runs = rules.never_runs.is_some();
    let mut names: HashMap<(&str, &str), &Node> = HashMap::new();
    let mut nodes: HashMap<&str, (&Node, Vec<&str>)> = HashMap::new();
    for unserved in &matches.unserved {
        let field_ref = unserved.field_ref.as_str();
        let (rule, open_groups) = nodes.entry(field_ref).or_insert_with(|| {
            let rule = policy.document.node.nearest(field_ref);
            let resources = rule.get("resources").map_or(&[][..], Node::items);
            let named = resources.iter().rev();
            let named = named.filter_map(|item| Some(((field_ref, item.as_str()?), item)));
            names.extend(named);
            let groups = known::rule(&policy.value, unserved.index);
            let groups = groups.into_iter().flat_map(|rule| known.open_groups(rule));
            (rule, groups.take(MAX_GROUPS).collect())
        });
        let (place, length) = match names.get(&(field_ref, unserved.name.as_str())) {
            Some(item) => (policy.place_of(item), item.span.len().max(1)),
            None => (policy.place_of(rule), 1),
        };
        let unknown: &[&str] = if unserved.is_misspelled || unserved.is_known {
            &[]
        } else {
            open_groups
        };
        let mut finding = if unknown.is_empty() {
            let severity = match (&unserved.suggestion, never_runs) {
                (_, true) => Severity::Error,
                (Some(_), false) => Severity::Warning,
                // Perhaps only older versions of Kubernetes serve the resource, so this is a note.
                (None, false) => Severity::Note,
            };
            let message = format!("no served resource matches {}", unserved.rule);
            let mut finding =
                object_finding(policy, severity, Rule::UnservedResource, &message, place);
            let hint = unserved.suggestion.as_ref();
            let hint = hint.map(|suggestion| format!("did you mean `{suggestion}`?"));
            let consequence = rules.never_runs.map(str::to_owned);
            let parts: Vec<String> = hint.into_iter().chain(consequence).collect();
            finding.help = (!parts.is_empty()).then(|| parts.join(" "));
            finding
        } else {
            let message = format!("unknown resource {}", unserved.rule);
            let note = Severity::Note;
            let mut finding = object_finding(policy, note, Rule::UnknownResource, &message, place);
            let groups = unknown.join(" and ");
            finding.help = Some(if known.is_of_cluster() {
                format!("the cluster does not list the resources of {groups}")
            } else {
                format!(
                    "to check resources of {groups}, pass the files of their CRDs with --crds or in the input"
                )
            });
            finding
        };
        if let (Some(meant), true) = (&unserved.suggestion, unserved.is_misspelled)
            && let Some(item) = names.get(&(field_ref, unserved.name.as_str()))
        {
            finding.fix = policy.document.edit_value(&policy.source, item, meant);
        }
        if finding.fix.is_none() && unknown.is_empty() {
            let edit = group_version_edit(policy, matches, unserved).unzip();
            let (edit, is_only) = (edit.0, edit.1 == Some(true));
            if is_only {
                finding.fix = edit;
            } else {
                let is_served = |name: &str| {
                    let mut resources = known.mapper.resources.iter();
                    resources.any(|it| it.gvr.resource == name)
                };
                let scope = || scope_edit(policy, rule, unserved);
                if rule_scope::is_only_mistake(&is_served, matches, (rule, unserved)) {
                    finding.fix = scope();
                }
                let edit = edit.filter(|_| never_runs);
                let is_assumed =
                    finding.fix.is_none() && rule_scope::is_wrong(matches, (rule, unserved));
                let of_scope = || scope().filter(|_| is_assumed);
                let item = names.get(&(field_ref, unserved.name.as_str()));
                let edit = edit.or_else(of_scope);
                let edit = edit.or_else(|| subresource_edit(policy, item?, unserved));
                finding.assumption = edit.map(Assumption::new);
            }
        }
        finding.field_ref = Some(unserved.field_ref.clone());
        finding.location.length = length;
        findings.push(finding);
    }
}

/// Adds a finding about rules that match no served resource, unless their resources have findings.
pub(super) fn none_served(rules: &ResourceRules<'_>, findings: &mut Vec<Finding>) {
    let (policy, matches) = (rules.object, rules.matches);
    let Some(never_runs) = rules.never_runs else {
        return;
    };
    let has_rules = known::rule(&policy.value, 0).is_some();
    if has_rules && matches.unserved.is_empty() && matches.exempt.is_empty() {
        let field_ref = "spec.matchConstraints.resourceRules";
        let place = policy.place_of_field(field_ref);
        let message = "no rule matches a served resource";
        let mut finding = object_finding(
            policy,
            Severity::Error,
            Rule::UnservedResource,
            message,
            place,
        );
        finding.field_ref = Some(field_ref.to_owned());
        finding.help = Some(never_runs.to_owned());
        findings.push(finding);
    }
}

/// Returns an edit that changes the scope of a rule to the scope that `unserved` suggests. `None` if it suggests no
/// scope.
fn scope_edit(
    policy: &Object<RequestPolicy>,
    rule: &Node,
    unserved: &UnservedResource,
) -> Option<Edit> {
    let meant = unserved.suggestion.as_deref()?.strip_prefix("scope: ")?;
    let document = &policy.document;
    document.edit_value(&policy.source, rule.get("scope")?, meant)
}

/// Replaces the name of an unserved subresource with a similar name of a subresource of the same resource.
fn subresource_edit(
    policy: &Object<RequestPolicy>,
    item: &Node,
    unserved: &UnservedResource,
) -> Option<Edit> {
    let meant = unserved.suggestion.as_deref()?;
    let (main, sub) = unserved.name.split_once('/')?;
    let (_, known) = meant.split_once('/').filter(|(known, _)| *known == main)?;
    nearest(sub, std::iter::once(known))?;
    policy.document.edit_value(&policy.source, item, meant)
}

/// Corrects the group or the version of a rule if another group or version serves all resources of the rule. Also
/// returns true if the rule has only one group and one version, because the correction is then unambiguous.
fn group_version_edit(
    policy: &Object<RequestPolicy>,
    matches: &Matches,
    unserved: &UnservedResource,
) -> Option<(Edit, bool)> {
    let (group_version, name) = unserved.suggestion.as_deref()?.split_once(' ')?;
    let (group, version) = group_version
        .rsplit_once('/')
        .unwrap_or(("", group_version));
    let rule = known::rule(&policy.value, unserved.index)?;
    let list = |values: &Option<Vec<String>>| values.clone().unwrap_or_default();
    let of_rule = |other: &&UnservedResource| {
        let suggestion = other
            .suggestion
            .as_deref()
            .and_then(|it| it.split_once(' '));
        other.index == unserved.index && suggestion.is_some_and(|(of, _)| of == group_version)
    };
    let n = matches.unserved.iter().filter(of_rule).count();
    let (groups, versions) = (list(&rule.api_groups), list(&rule.api_versions));
    let is_only = groups.len() == 1 && versions.len() == 1;
    let has = |values: &[String], value: &str| values.iter().any(|it| it == value || it == "*");
    if list(&rule.resources).len() != n || group.contains(':') || name != unserved.name {
        return None;
    }
    let field_ref = &unserved.field_ref;
    let (field, value) = match (has(&groups, group), has(&versions, version)) {
        (true, false) => ("apiVersions", version),
        (false, true) => ("apiGroups", group),
        _ => return None,
    };
    let node = policy
        .document
        .node
        .nearest(&format!("{field_ref}.{field}[0]"));
    let edit = policy.document.edit_value(&policy.source, node, value);
    edit.map(|edit| (edit, is_only))
}

/// Adds findings about resources for which API servers never call policies. Resources that only a wildcard matches are
/// reported if the rules match nothing else.
pub(super) fn exempt(
    policy: &Object<RequestPolicy>,
    (matches, has_reviews): (&Matches, bool),
    subject: SubjectKind,
    findings: &mut Vec<Finding>,
) {
    // API servers call policies from static manifests for all resources.
    let name = policy.value.name.as_deref().unwrap_or_default();
    if name.ends_with(manifests::SUFFIX) {
        return;
    }
    let never_runs = matches.resources.is_empty() && !has_reviews;
    let reported = matches.exempt.iter();
    let reported = reported.filter(|exempt| never_runs || !exempt.by_wildcard);
    // Reports one finding per name in a rule, even if the name is a wildcard that matches several resources.
    let mut by_name: BTreeMap<(&str, &str), Vec<&str>> = BTreeMap::new();
    for exempt in reported {
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
            "API servers never call a {} for {}",
            subject.row().evaluated,
            message::list(&resources)
        );
        let mut finding = object_finding(policy, severity, Rule::ExemptResource, &message, place);
        let consequence = if never_runs {
            subject.row().never_runs
        } else {
            "the rule has no effect on such requests"
        };
        finding.help = Some(format!("{consequence}; restrict access with RBAC instead"));
        finding.field_ref = Some(field_ref.to_owned());
        finding.location.length = length;
        findings.push(finding);
    }
}
