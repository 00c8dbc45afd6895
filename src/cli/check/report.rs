//! The report of a check, which is also the documented JSON format of `-o json`.

use std::collections::{BTreeSet, HashMap};
use std::path::Path;
use std::path::PathBuf;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use schemars::JsonSchema;
use serde::Serialize;

use super::costs::{self, CostReport};
use super::finding::{Finding, Location, OtherPlace, Owner, Severity};
use super::fix::FixReport;
use super::policy::{PolicyCheck, object_finding};
use super::settings::Settings;
use super::suggestion::{nearest_joined, nearest_only};
use super::suppression;
use super::webhook;
use crate::cli::exit::Exit;
use crate::cli::input::{Input, Object, Problem, ProblemKind};
use crate::cli::live::ClusterData;
use crate::policy::RequestPolicy;
use crate::policy::analysis::Profile;
use crate::policy::nearest::is_near;
use crate::policy::rule::Rule;
use crate::status::message;
use crate::status::warnings::{Warning, warnings};

/// The output of `kubectl vap check -o json`.
///
/// The format is stable: fields may be added, but are not removed and do not change their meaning without a new
/// `apiVersion`.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CheckReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `CheckReport`.
    pub kind: &'static str,
    /// The version of Kubernetes whose APIs the policies were checked against, such as `1.36`.
    pub kubernetes: String,
    /// The address of the API server whose APIs are used; absent for the built-in APIs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The version of Kubernetes whose functions and macros expressions may use, if a version was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub expressions: Option<String>,
    /// The older versions of a requested range, for which the objects were checked too, newest first.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub other_versions: Vec<String>,
    /// `truthful` or `upstream`.
    pub profile: &'static str,
    /// The configuration file, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub configuration: Option<String>,
    /// The counts of checked objects and of findings.
    pub summary: Summary,
    /// The findings, sorted by file and location.
    pub findings: Vec<Finding>,
    /// The findings that are not reported, each with the mechanism that suppresses it.
    pub suppressed: Vec<Suppressed>,
    /// The files with fixed or fixable findings; only if fixes were requested.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fixes: Vec<FixReport>,
    /// The policies, in the order of the input.
    pub policies: Vec<PolicyReport>,
    /// The number of policies that can only be read with the fixes of findings. They have findings, but no status.
    #[serde(skip)]
    pub n_corrected_policies: usize,
}

/// The counts of checked objects and of findings.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Files read.
    pub files: usize,
    /// Files and directories that the configuration excludes.
    pub excluded: usize,
    /// Policies checked.
    pub policies: usize,
    /// Webhooks checked.
    pub webhooks: usize,
    /// `CustomResourceDefinitions` of the input that were checked.
    pub crds: usize,
    /// Probes checked.
    pub probes: usize,
    /// Findings that are errors.
    pub errors: usize,
    /// Findings that are warnings.
    pub warnings: usize,
    /// Findings that are notes.
    pub notes: usize,
    /// Findings that are not reported and not counted above.
    pub suppressed: usize,
    /// Files and documents that could not be read; they are also counted as errors.
    pub unreadable: usize,
}

/// A finding that is not reported.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Suppressed {
    /// The mechanism that suppresses the finding.
    pub by: SuppressedBy,
    /// The reason in the comment that suppresses the finding; absent for other mechanisms.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The suppressed finding.
    pub finding: Finding,
}

/// The mechanism that suppresses a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, JsonSchema, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SuppressedBy {
    /// A comment in the file.
    Comment,
    /// The baseline.
    Baseline,
    /// The level of its rule.
    Level,
}

impl SuppressedBy {
    /// Formats the number of suppressed findings with the mechanism, such as `2 by comments`.
    #[must_use]
    pub fn count(self, n: usize) -> String {
        match self {
            Self::Comment => format!("{n} by comments"),
            Self::Baseline => format!("{n} by the baseline"),
            Self::Level => format!("{n} by the level of the rule"),
        }
    }
}

/// A policy, with the status that the controller would compute in a cluster with the known APIs.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyReport {
    /// The kind, unless it is ValidatingAdmissionPolicy.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    /// `metadata.name`.
    pub name: String,
    /// The name of the file.
    pub file: String,
    /// The index of the object in its file, from 0.
    pub index: usize,
    /// The line of the policy's name.
    pub line: usize,
    /// The conditions, `Ready` first.
    pub conditions: Vec<ConditionReport>,
    /// `status.typeChecking.expressionWarnings`, in upstream's format.
    pub expression_warnings: Vec<WarningReport>,
    /// The kinds that were checked, such as `apps/v1 Deployment`.
    pub checked_kinds: Vec<String>,
    /// The kinds that were not checked, each with the reason.
    pub unchecked_kinds: Vec<UncheckedReport>,
    /// The estimated costs of the expressions and of their shared budgets.
    pub costs: Vec<CostReport>,
}

/// A condition.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct ConditionReport {
    /// `Ready`, `Compiled` and so on.
    #[serde(rename = "type")]
    pub type_: String,
    /// `True`, `False` or `Unknown`.
    pub status: String,
    /// The reason in CamelCase.
    pub reason: String,
    /// The human-readable message.
    pub message: String,
}

/// A warning about an expression.
#[derive(Clone, Debug, JsonSchema, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WarningReport {
    /// The field of the expression, such as `spec.validations[0].expression`.
    pub field_ref: String,
    /// The problem, with the marked source lines.
    pub warning: String,
}

/// A kind that was not checked.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct UncheckedReport {
    /// The kind, such as `apps/v1 Deployment`.
    pub kind: String,
    /// The reason why the kind was not checked.
    pub reason: String,
}

impl CheckReport {
    /// Returns a report that contains only the problems with reading the input, before any policy is added.
    #[must_use]
    pub fn new(kubernetes: &str, profile: Profile, input: &Input) -> Self {
        Self {
            api_version: "cli.vap-status.dev/v1alpha1",
            kind: "CheckReport",
            kubernetes: kubernetes.to_owned(),
            cluster: None,
            expressions: None,
            other_versions: Vec::new(),
            profile: match profile {
                Profile::Truthful => "truthful",
                Profile::Upstream => "upstream",
            },
            configuration: None,
            summary: Summary {
                excluded: input.n_excluded,
                files: input.n_files,
                webhooks: input.webhooks.iter().map(webhook::count).sum(),
                unreadable: input.problems.iter().filter(|it| is_fatal(it.kind)).count(),
                ..Summary::default()
            },
            findings: input.problems.iter().map(unread).collect(),
            suppressed: Vec::new(),
            fixes: Vec::new(),
            policies: Vec::new(),
            n_corrected_policies: 0,
        }
    }

    /// Adds a mutating policy, which has no status and no conditions.
    pub fn add_mutating(&mut self, policy: &Object<RequestPolicy>, mut check: PolicyCheck) {
        check.status.conditions.clear();
        self.add(policy, check);
        if let Some(added) = self.policies.last_mut() {
            added.kind = Some("MutatingAdmissionPolicy");
            added.expression_warnings.clear();
        }
    }

    /// Adds a policy.
    pub fn add(&mut self, policy: &Object<RequestPolicy>, check: PolicyCheck) {
        self.findings.extend(check.findings);
        let conditions = check.status.conditions.into_iter();
        let warning = |warning: Warning| WarningReport {
            warning: warning.text(),
            field_ref: warning.field_ref,
        };
        let warnings = warnings(&check.typed.findings);
        self.policies.push(PolicyReport {
            kind: None,
            name: policy.value.name.clone().unwrap_or_default(),
            file: policy.source.name.clone(),
            index: policy.document.index,
            line: policy.place().line,
            conditions: conditions
                .map(|condition| ConditionReport {
                    type_: condition.type_,
                    status: condition.status,
                    reason: condition.reason,
                    message: condition.message,
                })
                .collect(),
            expression_warnings: warnings.into_iter().map(warning).collect(),
            checked_kinds: check.typed.checked.iter().map(message::kind).collect(),
            unchecked_kinds: check
                .typed
                .unchecked
                .iter()
                .map(|unchecked| UncheckedReport {
                    kind: message::kind(&unchecked.gvk),
                    reason: unchecked.reason.clone(),
                })
                .collect(),
            costs: costs::report(&check.costs),
        });
    }

    /// Adds findings about the data that could not be read from a cluster.
    pub(in crate::cli) fn add_cluster(&mut self, cluster: ClusterData) {
        let Some(server) = cluster.server else { return };
        for gap in cluster.gaps {
            let severity = if gap.is_fatal {
                self.summary.unreadable += 1;
                Severity::Error
            } else {
                Severity::Note
            };
            let location = Location::from_file(server.as_str());
            self.findings.push(Finding {
                help: Some(gap.help),
                ..Finding::new(severity, Rule::ClusterReadFailed, gap.message, location)
            });
        }
        self.cluster = Some(server);
    }

    /// Adds findings about policies without a binding, and about bindings without a policy. Policies are only reported
    /// if the input has bindings, or if the bindings of a cluster were read.
    pub(in crate::cli) fn add_bindings(&mut self, input: &Input, cluster: &ClusterData) {
        let is_live = cluster.server.is_some();
        let validating: Vec<_> = input.policies.iter().collect();
        let invalid = |kind: &str| {
            let of_kind = input.invalid.iter().filter(|it| it.kind() == kind);
            of_kind.filter_map(Object::name).collect()
        };
        let mutating = input.mutating_policies.iter();
        let mutating: Vec<_> = mutating.map(|policy| &policy.shared).collect();
        let [of_validating, of_mutating] = [&validating, &mutating].map(|policies| {
            let names = policies.iter().filter_map(|it| it.value.name.clone());
            names.collect::<BTreeSet<String>>()
        });
        let facts = BindingFacts {
            is_live,
            invalid: invalid("ValidatingAdmissionPolicy"),
            invalid_bindings: invalid_bindings(input, "ValidatingAdmissionPolicyBinding"),
            other_policies: &cluster.other_policies,
            name_affixes: &input.name_affixes,
            other_kind: [&of_mutating, &cluster.other_mutating],
            has_bindings: cluster.has_bindings,
        };
        self.add_bindings_of(&validating, &input.bindings, &facts);
        if !is_live || cluster.has_mutating_bindings {
            let facts = BindingFacts {
                is_live,
                invalid: invalid("MutatingAdmissionPolicy"),
                invalid_bindings: invalid_bindings(input, "MutatingAdmissionPolicyBinding"),
                other_policies: &cluster.other_mutating,
                name_affixes: &input.name_affixes,
                other_kind: [&of_validating, &cluster.other_policies],
                has_bindings: cluster.has_mutating_bindings,
            };
            self.add_bindings_of(&mutating, &input.mutating_bindings, &facts);
        }
    }

    fn add_bindings_of(
        &mut self,
        all_policies: &[&Object<RequestPolicy>],
        bindings: &[Object<ValidatingAdmissionPolicyBinding>],
        facts: &BindingFacts<'_>,
    ) {
        let is_live = facts.is_live;
        let names = |policy: &&Object<RequestPolicy>| policy.value.name.clone();
        let mut policies: BTreeSet<String> = all_policies.iter().filter_map(names).collect();
        if !is_live {
            policies.extend(facts.other_policies.iter().cloned());
        }
        // Removes the prefix and suffix that a Kustomization adds. `None` if the result is not the name of a policy, or
        // if the whole name is already the name of a policy.
        let without_affixes = |name: &'_ str| {
            let mut names = facts.name_affixes.iter().filter_map(|(prefix, suffix)| {
                name.strip_prefix(prefix.as_str())?
                    .strip_suffix(suffix.as_str())
            });
            let plain = names.find(|plain| policies.contains(*plain));
            plain
                .filter(|_| !policies.contains(name))
                .map(str::to_owned)
        };
        let bound: BTreeSet<String> = bindings
            .iter()
            .map(|binding| binding.value.spec.policy_name.as_str())
            .map(|name| without_affixes(name).unwrap_or_else(|| name.to_owned()))
            .collect();
        // The policies whose names are misspelled in bindings.
        let mut meant_names: BTreeSet<String> = BTreeSet::new();
        for binding in bindings {
            let name = binding.value.spec.policy_name.as_str();
            if without_affixes(name).is_some() {
                continue;
            }
            let is_there = policies.contains(name)
                || facts.other_policies.contains(name)
                || facts.invalid.contains(name);
            let is_of_other_kind = facts.other_kind.iter().any(|names| names.contains(name));
            if !is_there && is_of_other_kind {
                self.findings.push(wrong_binding_kind(binding, name));
            } else if !name.is_empty() && !is_there {
                let message = absent_policy(name, is_live);
                let place = binding.place_of_field("spec.policyName");
                // If the input has policies, the name is probably misspelled. Otherwise, the policy may be in a
                // cluster.
                let severity = if policies.is_empty() && !is_live {
                    Severity::Note
                } else {
                    Severity::Warning
                };
                let rule = Rule::UnknownPolicy;
                let mut finding = object_finding(binding, severity, rule, &message, place);
                finding.field_ref = Some("spec.policyName".to_owned());
                let node = binding.document.node.nearest("spec.policyName");
                finding.location.length = binding.length_of(node);
                let unbound = all_policies.iter().filter_map(|policy| {
                    let name = policy.value.name.as_deref()?;
                    let is_near = policy.source.name == binding.source.name;
                    (!bound.contains(name)).then_some((name, is_near))
                });
                let meant = intended_policy(name, &policies, &unbound.collect::<Vec<_>>());
                if is_corrected(meant.as_deref(), name) {
                    meant_names.extend(meant);
                    continue;
                }
                // The policy may be in the part of the file that could not be read.
                let is_of_file = |finding: &Finding| {
                    matches!(finding.rule, Rule::InvalidYaml | Rule::UnknownKind)
                        && finding.location.file == binding.source.name
                };
                if meant.is_none() && self.findings.iter().any(is_of_file) {
                    continue;
                }
                // If the binding has the name of the unknown policy, the policy is probably missing from the input, so
                // there is no fix.
                let only = nearest_only(name, policies.iter().map(String::as_str))
                    .filter(|only| is_misspelled(name, only) && binding.name() != Some(name))
                    .filter(|only| meant.as_deref() == Some(*only));
                finding.fix =
                    only.and_then(|only| binding.document.edit_value(&binding.source, node, only));
                let single = meant.as_deref().filter(|it| policies.contains(*it));
                meant_names.extend(single.map(str::to_owned));
                let meant = meant.map(|meant| format!("did you mean `{meant}`? "));
                finding.help = Some(format!(
                    "{}the binding has no effect without its policy",
                    meant.unwrap_or_default()
                ));
                self.findings.push(finding);
            }
        }
        for policy in all_policies.iter().copied() {
            let name = policy.value.name.as_deref().unwrap_or_default();
            let has_all = !bound.is_empty() && !is_live || facts.has_bindings;
            // A binding without a policyName probably belongs to a policy in the same directory.
            let is_near = |file: &str| directory(file) == directory(&policy.source.name);
            let mut invalid = facts.invalid_bindings.iter();
            let may_be_bound = meant_names.contains(name)
                || bindings
                    .iter()
                    .any(|it| it.value.spec.policy_name.is_empty() && is_near(&it.source.name))
                || invalid.any(|(file, of)| of.map_or_else(|| is_near(file), |of| of == name));
            if has_all && !bound.contains(name) && !may_be_bound {
                let place = if is_live { "cluster" } else { "input" };
                let message = format!("no binding in the {place} refers to the policy `{name}`");
                let place = policy.place();
                let mut finding =
                    object_finding(policy, Severity::Note, Rule::UnboundPolicy, &message, place);
                finding.help = Some("without a binding a policy never runs".to_owned());
                self.findings.push(finding);
            }
        }
    }

    /// Sorts the findings, applies suppressions and levels, and counts them.
    pub fn finish(&mut self, settings: &Settings, input: &Input) {
        self.configuration.clone_from(&settings.config);
        self.sort();
        suppression::apply(self, settings, input);
        self.sort();
        merge_places(&mut self.findings);
        self.count();
    }

    pub(super) fn count(&mut self) {
        let count = |severity| {
            let all = self.findings.iter();
            all.filter(|finding| finding.severity == severity).count()
        };
        self.summary.policies = self.policies.len() + self.n_corrected_policies;
        self.summary.errors = count(Severity::Error);
        self.summary.warnings = count(Severity::Warning);
        self.summary.notes = count(Severity::Note);
        let suppressed = self.suppressed.iter().map(|it| it.finding.n_places());
        self.summary.suppressed = suppressed.sum();
    }

    fn sort(&mut self) {
        self.findings.sort_by(|a, b| {
            let key = |finding: &Finding| (finding.location.place, finding.severity, finding.rule);
            (&a.location.file, key(a), &a.message).cmp(&(&b.location.file, key(b), &b.message))
        });
        self.findings.dedup_by(|later, kept| {
            let place = |finding: &Finding| (finding.location.file.clone(), finding.location.place);
            // Decoding and validation may both report the same missing field. Several policies with the same name
            // cause the same finding about their binding.
            let may_repeat = later.rule == Rule::Required || later.rule == Rule::IgnoredParams;
            may_repeat
                && later.rule == kept.rule
                && later.field_ref == kept.field_ref
                && place(later) == place(kept)
        });
    }

    /// Returns the exit status. With `is_strict`, notes about parts that were not checked count as findings.
    #[must_use]
    pub fn exit(&self, is_strict: bool) -> Exit {
        let counts = |finding: &Finding| {
            finding.severity < Severity::Note || is_strict && NOT_CHECKED.contains(&finding.rule)
        };
        let is_empty = |finding: &Finding| finding.rule == Rule::EmptyInput;
        if self.summary.unreadable > 0 || self.findings.iter().any(is_empty) {
            Exit::Failed
        } else if self.findings.iter().any(counts) {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}

/// Merges the findings of an object that differ only in their location. Such findings share one cause.
fn merge_places(findings: &mut Vec<Finding>) {
    let mut firsts: HashMap<_, usize> = HashMap::new();
    let mut merged: Vec<Finding> = Vec::with_capacity(findings.len());
    for finding in std::mem::take(findings) {
        let key = (
            finding.location.file.clone(),
            finding.owner.clone(),
            (finding.severity, finding.rule, finding.is_hidden),
            finding.message.clone(),
            finding.kinds.clone(),
            finding.consequence.map(|consequence| consequence.id),
        );
        // Findings without an owner or a field may be about different objects, so they are not merged.
        let is_mergeable = finding.owner != Owner::None && finding.field_ref.is_some();
        let first = firsts.get(&key).and_then(|n| merged.get_mut(*n));
        match (first, finding.location.place) {
            (Some(first), Some(place)) if is_mergeable => {
                let help = finding
                    .remedy()
                    .filter(|help| first.remedy() != Some(*help));
                let help = help.map(str::to_owned);
                first.also.push(OtherPlace {
                    line: place.line,
                    column: place.column,
                    field_ref: finding.field_ref,
                    help,
                    suggestions: finding.suggestions,
                    fix: finding.fix,
                    fingerprint: finding.fingerprint,
                });
            }
            _ => {
                firsts.insert(key, merged.len());
                merged.push(finding);
            }
        }
    }
    *findings = merged;
}

/// The facts that determine which policies have no binding, and which bindings have no policy.
#[derive(Clone)]
struct BindingFacts<'a> {
    /// True if a cluster was read.
    is_live: bool,
    /// The names of policies of the input that could not be decoded. Other findings report these policies.
    invalid: BTreeSet<&'a str>,
    /// The bindings of the input that could not be decoded: the file, and the name of the policy.
    invalid_bindings: Vec<(&'a str, Option<&'a str>)>,
    /// The names of policies of the cluster that are not in the input.
    other_policies: &'a BTreeSet<String>,
    /// The prefixes and suffixes that Kustomizations add to the names of policies.
    name_affixes: &'a [(String, String)],
    /// The names of policies of the other kind (validating or mutating), in the input and in the cluster. The bindings
    /// cannot refer to them.
    other_kind: [&'a BTreeSet<String>; 2],
    /// True if the input includes all bindings of the cluster.
    has_bindings: bool,
}

/// The rules with notes about parts that were not checked.
pub const NOT_CHECKED: [Rule; 5] = [
    Rule::NotChecked,
    Rule::UnknownParamKind,
    Rule::UnknownResource,
    Rule::ClusterReadFailed,
    Rule::UnsupportedExpression,
];

/// Returns true if the problem makes the check incomplete.
fn is_fatal(kind: ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::Unreadable | ProblemKind::InvalidYaml | ProblemKind::NotAnObject
    )
}

/// Returns a note if the paths of `--crds` contain no CustomResourceDefinition. The paths are then probably wrong.
pub(in crate::cli) fn no_crds(paths: &[PathBuf], crds: &Input) -> Option<Finding> {
    let first = paths.first()?;
    let has_some = !(crds.crds.is_empty() && crds.invalid.is_empty() && crds.problems.is_empty());
    (!has_some).then(|| Finding {
        help: Some("pass the files of CustomResourceDefinitions, or their directory".to_owned()),
        ..Finding::new(
            Severity::Note,
            Rule::NoCrds,
            "the paths of --crds contain no CustomResourceDefinition",
            Location::from_file(first.display().to_string()),
        )
    })
}

/// Returns the finding about a problem with reading the input.
pub(in crate::cli) fn unread(problem: &Problem) -> Finding {
    let (severity, rule) = match problem.kind {
        ProblemKind::Unreadable => (Severity::Error, Rule::Unreadable),
        ProblemKind::InvalidYaml => (Severity::Error, Rule::InvalidYaml),
        ProblemKind::Doubtful => (Severity::Note, Rule::InvalidYaml),
        ProblemKind::NotAnObject => (Severity::Error, Rule::NotAnObject),
        ProblemKind::WrongApiVersion => (Severity::Error, Rule::WrongApiVersion),
        ProblemKind::UnknownKind => (Severity::Error, Rule::UnknownKind),
        ProblemKind::Patch => (Severity::Note, Rule::InvalidObject),
    };
    let location = Location {
        source: problem.source.clone(),
        place: problem.place,
        ..Location::from_file(problem.file.as_str())
    };
    Finding {
        help: problem.help.clone(),
        fix: problem.fix.as_deref().cloned(),
        rejected: is_rejected(problem.kind),
        ..Finding::new(severity, rule, problem.message.as_str(), location)
    }
}

/// Returns true if `name` is very likely a misspelling of `meant`: the names differ by one edit within a segment
/// between dashes, and the edit does not change a number.
fn is_misspelled(name: &str, meant: &str) -> bool {
    let segments = |name: &str| name.split('-').map(str::to_owned).collect::<Vec<_>>();
    let (left, right) = (segments(name), segments(meant));
    let mut differing = left.iter().zip(&right).filter(|(a, b)| a != b);
    let digits = |text: &str| {
        text.chars()
            .filter(char::is_ascii_digit)
            .collect::<String>()
    };
    let singular = |text: &str| match text.strip_suffix("ies") {
        Some(stem) => format!("{stem}y"),
        None => text.to_owned(),
    };
    let is_one_edit = |(a, b): (&String, &String)| {
        let is_edited = is_near(a, b) || singular(a) == singular(b);
        is_edited && a.len().min(b.len()) > 2 && digits(a) == digits(b)
    };
    left.len() == right.len()
        && differing.next().is_some_and(is_one_edit)
        && differing.next().is_none()
}

/// Returns true if the API server rejects an object with the problem.
fn is_rejected(kind: ProblemKind) -> bool {
    matches!(
        kind,
        ProblemKind::InvalidYaml
            | ProblemKind::NotAnObject
            | ProblemKind::WrongApiVersion
            | ProblemKind::UnknownKind
    )
}

/// Returns the file and the policyName of each binding of `kind` that could not be decoded.
fn invalid_bindings<'a>(input: &'a Input, kind: &str) -> Vec<(&'a str, Option<&'a str>)> {
    let invalid = input.invalid.iter().filter(|it| it.kind() == kind);
    let bindings = invalid.map(|it| {
        let spec = it.document.node.get("spec");
        let name = spec.and_then(|spec| spec.get("policyName")?.as_str());
        (it.source.name.as_str(), name)
    });
    bindings.collect()
}

fn directory(file: &str) -> Option<&Path> {
    Path::new(file).parent()
}

/// Returns a finding about a binding that refers to a policy of the other kind, validating or mutating.
fn wrong_binding_kind(binding: &Object<ValidatingAdmissionPolicyBinding>, name: &str) -> Finding {
    let kind = binding.kind();
    let (policy_kind, change) = if kind.starts_with("Mutating") {
        ("ValidatingAdmissionPolicy", "add")
    } else {
        ("MutatingAdmissionPolicy", "remove")
    };
    let message = format!("the policy `{name}` is a {policy_kind}, which a {kind} cannot bind");
    let node = binding.document.node.nearest("kind");
    let place = binding.place_of(node);
    let mut finding = object_finding(
        binding,
        Severity::Warning,
        Rule::UnknownPolicy,
        &message,
        place,
    );
    finding.location.length = binding.length_of(node);
    finding.field_ref = Some("kind".to_owned());
    finding.help = Some(format!(
        "change the kind to `{policy_kind}Binding`, and {change} `validationActions`: the binding has no effect \
         without its policy"
    ));
    finding
}

/// Returns the policies that a binding of the unknown policy `name` probably refers to, in backquotes, as a part of a
/// hint.
///
/// `unbound` contains the names of policies without a binding, each with a flag that is true if the policy is in the
/// same file as the binding. These policies take precedence over others, unless `name` is certainly a misspelling.
fn intended_policy(
    name: &str,
    policies: &BTreeSet<String>,
    unbound: &[(&str, bool)],
) -> Option<String> {
    fn first_word(name: &str) -> Option<&str> {
        name.split(['.', '-']).next()
    }
    /// Returns true if at least half of the words of `name` occur in `other`.
    fn shares_words(name: &str, other: &str) -> bool {
        let words = |name: &'_ str| -> BTreeSet<String> {
            let words = name.split(['.', '-']).map(str::to_owned);
            words.collect()
        };
        let (name, other) = (words(name), words(other));
        name.intersection(&other).count() * 2 >= name.len()
    }
    fn only<'n>(mut names: impl Iterator<Item = &'n str>) -> Option<String> {
        let first = names.next().filter(|_| names.next().is_none());
        first.map(str::to_owned)
    }
    let all = || policies.iter().map(String::as_str);
    let in_file = || unbound.iter().filter(|it| it.1).map(|it| it.0);
    nearest_joined(name, in_file())
        .or_else(|| {
            let related = in_file()
                .filter(|other| first_word(other) == first_word(name) && shares_words(name, other));
            only(related)
        })
        .or_else(|| nearest_joined(name, all().filter(|other| is_misspelled(name, other))))
        .or_else(|| only(in_file()).filter(|other| shares_words(name, other)))
        .or_else(|| nearest_joined(name, unbound.iter().map(|it| it.0)))
        .or_else(|| nearest_joined(name, all()))
        .or_else(|| related_policy(name, policies).map(str::to_owned))
}

/// Returns the message about a binding that refers to a policy that does not exist.
fn absent_policy(name: &str, is_live: bool) -> String {
    let place = if is_live {
        "neither in the input nor in the cluster"
    } else {
        "not in the input"
    };
    format!("the policy `{name}` is {place}")
}

/// Returns true if the policy `meant` has an invalid name, whose correction is `name`.
fn is_corrected(meant: Option<&str>, name: &str) -> bool {
    let corrected = meant.and_then(super::validation::valid_name);
    corrected.as_deref() == Some(name)
}

/// Returns the only policy whose name is `name` with or without a suffix, such as `replicas` for `replicas.acme.io`.
fn related_policy<'a>(name: &str, policies: &'a BTreeSet<String>) -> Option<&'a str> {
    let extends = |long: &str, short: &str| {
        let suffix = long.strip_prefix(short);
        suffix.is_some_and(|suffix| suffix.starts_with(['.', '-']))
    };
    let mut related = policies
        .iter()
        .filter(|policy| !policy.is_empty() && (extends(name, policy) || extends(policy, name)));
    let only = related.next().filter(|_| related.next().is_none())?;
    Some(only)
}
