//! `kubectl vap upgrade-check`: shows the effects of a Kubernetes upgrade on policies.
//!
//! Each policy is evaluated under both versions for the same requests: generated requests (module `generated`), cases
//! of probes, and objects ([`crate::cli::diff`]). The table of changes ([`crate::policy::version_changes`]) finds the
//! expressions that an upgrade may affect, and explains differences. A changed result of a request is reported only if
//! the evaluations under both versions show it.

pub mod args;
mod effects;
mod generated;
mod others;
mod reasons;
mod rejections;
pub mod render;
pub mod report;

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use serde_json::{Value as Json, json};

use super::audit::Operations;
use super::check::costs::{CostIncrease, digits, increases};
use super::check::finding::{Finding, Location, Severity};
use super::check::policy as check_policy;
use super::check::render::count;
use super::diff::{self, BothResults, ComparedRequest, PolicyPair, Requests, Visitor};
use super::error::CliError;
use super::eval::policy_set::{PolicySet, PreparedPolicy};
use super::eval::run_case;
use super::eval::setup::{Setup, Sources};
use super::input::files::MAX_FILE_BYTES;
use super::input::{Input, MutatingPolicy};
use super::parallel;
use super::progress::Progress;
use super::test::init;
use crate::policy::analysis::Profile;
use crate::policy::rule::Rule;
use crate::policy::runtime_errors::Witness;
use crate::policy::version_changes::{self, AffectedNode};
use crate::probe::api::{Case, Expect, PolicyProbeSpec, Request};
use crate::probe::validation::API_VERSION;
use args::{UpgradeArgs, check_order};
use effects::{Effect, FieldResult, effects};
use generated::{BothVersions, Generated, generate, has_value};
use others::{Others, webhook_changes};
use rejections::{apply_creation_rules, rejections, unserved_versions};
use report::{Change, Class, Subject, Undecided, Unevaluated, UpgradeReport, UpgradeSummary};

/// The maximum number of subjects that a change lists, and of requests that are listed as not evaluated.
const MAX_LISTED: usize = 100;

/// The maximum number of input requests per policy that are searched for values of affected nodes.
const MAX_RECORDED: u64 = 1_000;

/// The changes of an upgrade, and probes with the generated requests that show them.
pub(super) struct Upgrade {
    pub(super) report: UpgradeReport,
    probes: Vec<Json>,
    /// The number of changes with a generated request, but without a probe.
    n_without_probe: usize,
}

impl Upgrade {
    /// Formats the number of probes, and the number of changes that cannot be expressed as a probe.
    pub(super) fn probes_summary(&self) -> String {
        let n_without = self.n_without_probe;
        let without = (n_without > 0).then(|| {
            let changes = count(n_without, "change");
            format!("; {changes} cannot be expressed as a probe")
        });
        format!(
            "{} written{}",
            count(self.probes.len(), "probe"),
            without.unwrap_or_default()
        )
    }

    /// Returns the probes as YAML documents. The cases of the probes pass in the old version.
    ///
    /// # Errors
    /// Returns an error if serialization fails, which no input should cause.
    pub(super) fn probes_yaml(&self) -> Result<String, CliError> {
        init::probes_yaml(&self.probes).map_err(|error| CliError::Format {
            format: "yaml",
            reason: error.to_string(),
        })
    }
}

/// Compares the policies of the input under both versions.
///
/// # Errors
/// Returns an error if the versions cannot be compared, or if the cluster cannot be reached.
pub(super) fn run(args: &UpgradeArgs, stdin: &mut dyn Read) -> Result<Upgrade, CliError> {
    let stdin = read_stdin(args, stdin)?;
    let paths: Vec<PathBuf> = args.paths.iter().chain(&args.static_dir).cloned().collect();
    let sources = Sources {
        paths: &paths,
        crds: &args.crds,
        selector: args.selector.as_ref(),
        version: args.from,
        live: args.cluster.live,
        connection: &args.connection,
    };
    if let (Some(from), Some(to)) = (args.from, args.to) {
        check_order(from, to)?;
    }
    let mut setup = Setup::read(&sources, &BTreeSet::new(), &mut stdin.as_slice())?;
    let from = setup.known.version();
    let to = args.new_version(from, setup.server.is_some())?;
    let new_known = setup.known.copy_for(to)?;
    let mut findings = std::mem::take(&mut setup.findings);
    let written = std::mem::take(&mut setup.input.probes);
    let cluster_inputs = setup.cluster_inputs.as_ref();
    let [mut old_errors, mut new_errors] = [Vec::new(), Vec::new()];
    let mut before = PolicySet::new(&setup.input, &setup.known, cluster_inputs, &mut old_errors);
    let mut after = PolicySet::new(&setup.input, &new_known, cluster_inputs, &mut new_errors);
    [before.limit, after.limit] = [args.timeout.limit(); 2];
    let errors = [&mut old_errors, &mut new_errors];
    let others = Others::read(&paths, &args.crds, &mut stdin.as_slice());
    let static_dir = args.static_dir.as_deref();
    let sets = [&mut before, &mut after];
    apply_creation_rules((&setup, &others), static_dir, sets, errors);
    findings.extend(unserved_versions(&setup, &new_known, &new_errors));
    let requests = Requests {
        inputs: paths,
        files: &args.files,
        user: &args.user,
        connection: &args.connection,
        chunk_size: args.pages.chunk_size,
        is_live: setup.server.is_some(),
        operations: Operations::for_stored_objects(None),
    };
    requests.add_namespaces([&mut before, &mut after]);
    let pairs = diff::pairs(&before, &after);
    let cases = requests.cases(written, &pairs, &mut findings)?;
    let mut check = UpgradeCheck {
        sets: [&before, &after],
        drafts: BTreeMap::new(),
        policies: Vec::new(),
        unread: Vec::new(),
        n_unread: 0,
        reports_unreadable: !args.files.is_empty(),
        unreadable: Vec::new(),
    };
    check.add_generated(&setup);
    let mut stdin = stdin.as_slice();
    let compared = requests.compare([&before, &after], &pairs, &cases, &mut stdin, &mut check)?;
    findings.extend(compared.gaps);
    let n_unreadable = u64::try_from(check.unreadable.len()).unwrap_or(u64::MAX);
    findings.append(&mut check.unreadable);
    let (mut changes, probes, n_without_probe) = check.changes(&setup, args.text);
    let (of_rejections, rejected) = rejections(
        &before,
        (&setup, &others),
        [&old_errors, &new_errors],
        (from, to),
    );
    changes.extend(of_rejections);
    changes.extend(check.costs(&setup));
    let both = [&setup.known, &new_known];
    let (uncalled, webhooks_not_compared) = webhook_changes(&setup.input, both, static_dir);
    changes.extend(uncalled);
    changes.retain(|change| args.text || change.class != Class::Text);
    changes.sort_by(|a, b| (a.class, &a.policy, &a.field).cmp(&(b.class, &b.policy, &b.field)));
    let undecided = check.undecided(&changes);
    let mut report = UpgradeReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "UpgradeReport",
        from: from.to_string(),
        to: to.to_string(),
        schemas: new_known.kubernetes().to_owned(),
        cluster: setup.server.clone(),
        summary: check.summary(&changes, &undecided),
        changes,
        undecided,
        rejected,
        not_compared: [others.not_compared(&setup.input), webhooks_not_compared].concat(),
        unread: std::mem::take(&mut check.unread),
        findings,
    };
    report.summary.cases = compared.cases;
    report.summary.objects = compared.objects.saturating_sub(n_unreadable);
    report.count_errors();
    Ok(Upgrade {
        report,
        probes,
        n_without_probe,
    })
}

/// Returns the content of standard input if a path is `-`, and nothing otherwise. The content is stored, because it
/// is read several times.
///
/// # Errors
/// Returns an error if several paths are `-`, or if standard input cannot be read.
fn read_stdin(args: &UpgradeArgs, stdin: &mut dyn Read) -> Result<Vec<u8>, CliError> {
    let all = args.paths.iter().chain(&args.files).chain(&args.crds);
    let n_stdin = all.filter(|path| path.as_os_str() == "-").count();
    let mut text = Vec::new();
    match n_stdin {
        0 => {}
        1 => {
            let read = stdin.take(MAX_FILE_BYTES + 1).read_to_end(&mut text);
            read.map_err(|error| {
                CliError::Usage(format!("standard input cannot be read: {error}"))
            })?;
        }
        _ => {
            let message = "standard input can only be used once: pass `-` for policies, objects or CustomResourceDefinitions";
            return Err(CliError::Usage(message.to_owned()));
        }
    }
    Ok(text)
}

/// Returns a change whose class, results and cause are not set yet. `policy` is `None` if `name` is the name of a
/// binding.
fn change(policy: Option<&PreparedPolicy<'_>>, name: String, field: Option<String>) -> Change {
    let failure_policy = policy.and_then(|it| it.object.value.failure_policy.clone());
    Change {
        index: None,
        class: Class::Text,
        policy: policy.map_or(name, |policy| policy.id().to_string()),
        place: policy.and_then(|policy| place(policy, field.as_deref())),
        binding: None,
        field,
        other_fields: Vec::new(),
        expression: None,
        old: String::new(),
        old_message: None,
        new: String::new(),
        new_message: None,
        failure_policy: failure_policy.unwrap_or_else(|| "Fail".to_owned()),
        reason: None,
        fix: None,
        fixable: false,
        requests: 0,
        subjects: Vec::new(),
        witness: None,
    }
}

/// Returns the file and line of a field of a policy, or of the policy as a whole. `None` for a policy of a cluster.
fn place(policy: &PreparedPolicy<'_>, field: Option<&str>) -> Option<String> {
    let object = policy.object;
    let place = field.map_or_else(|| object.place(), |field| object.place_of_field(field));
    (!policy.is_live).then(|| format!("{}:{}", object.source.name, place.line))
}

/// Returns the findings of `check` about a policy in the new version.
fn findings(both: BothVersions<'_>, setup: &Setup) -> Vec<Finding> {
    let (input, policy) = (&setup.input, both.policies[0]);
    let apis = both.sets[1].known;
    let checked = match mutating_policy(input, policy) {
        Some(policy) => {
            let bindings = &input.mutating_bindings;
            check_policy::check_mutating(policy, bindings, apis, Profile::Truthful)
        }
        None => check_policy::check(policy.object, &input.bindings, apis, Profile::Truthful),
    };
    checked.findings
}

/// Returns the mutating policy whose shared part is `policy`. `None` for a validating policy.
fn mutating_policy<'a>(
    input: &'a Input,
    policy: &PreparedPolicy<'_>,
) -> Option<&'a MutatingPolicy> {
    let mut policies = input.mutating_policies.iter();
    policies.find(|it| std::ptr::eq(&raw const it.shared, policy.object))
}

/// The part of a difference that does not depend on the request: the index of the policy, the class, the field, and the
/// results.
type DraftKey = (usize, Class, Option<String>, [FieldResult; 2]);

/// A change before its cause is known.
struct Draft {
    effect: Effect,
    /// The number of probe cases and objects with this change.
    requests: u64,
    subjects: Vec<Subject>,
    /// The spec of a probe for the first request with this change. `case` contains the request.
    spec: PolicyProbeSpec,
    case: Case,
    witness: Option<Witness>,
}

/// The state of comparing one policy.
#[derive(Default)]
struct PolicyState {
    nodes: Vec<AffectedNode>,
    generated: Generated,
    /// The reason why requests that the policy matches exist only in the old version.
    unserved: Option<String>,
    /// The number of probe cases and objects that were compared.
    n_requests: u64,
    /// The findings of `check` in the new version. Computed when they are first needed: for a change whose cause has a
    /// rule of `check`.
    findings: OnceLock<Vec<Finding>>,
}

fn probe_case(request: ComparedRequest<'_>) -> (PolicyProbeSpec, Case) {
    match request {
        ComparedRequest::Case(spec, case) => (spec.clone(), case.clone()),
        ComparedRequest::Object(item) => {
            let case = Case {
                name: "object".to_owned(),
                request: Request {
                    object: item.value.clone().ok(),
                    ..Request::default()
                },
                expect: Expect::default(),
            };
            (PolicyProbeSpec::default(), case)
        }
    }
}

struct UpgradeCheck<'a> {
    sets: [&'a PolicySet<'a>; 2],
    drafts: BTreeMap<DraftKey, Draft>,
    policies: Vec<PolicyState>,
    unread: Vec<Unevaluated>,
    n_unread: u64,
    /// True if an unreadable object in a file of `-f` is an error. Without `-f`, the objects are in the files of the
    /// policies, whose errors have already been reported.
    reports_unreadable: bool,
    /// The errors about files with objects.
    unreadable: Vec<Finding>,
}

impl Visitor for UpgradeCheck<'_> {
    fn compared(
        &mut self,
        pair: &PolicyPair,
        (name, place): (&str, Option<&str>),
        results: &[BothResults<'_>],
        request: ComparedRequest<'_>,
    ) {
        let [Some(index), _] = pair.sides else {
            return;
        };
        let old = self.sets[0].policies.get(index);
        let is_rejected = old.is_some_and(|policy| policy.rejection.is_some());
        if is_rejected || results.iter().flatten().all(Option::is_none) {
            return;
        }
        if let Some(state) = self.policies.get_mut(index) {
            state.n_requests += 1;
        }
        self.add_reached(index, request);
        for effect in results.iter().flat_map(|both| effects(*both)) {
            let draft = self.draft(index, effect, || probe_case(request));
            draft.requests += 1;
            if draft.subjects.len() < MAX_LISTED {
                draft.subjects.push(Subject {
                    name: name.to_owned(),
                    place: place.map(str::to_owned),
                });
            }
        }
    }

    fn unreadable(&mut self, name: String, place: Option<&(Arc<str>, usize)>, reason: &str) {
        let Some((file, line)) = place.filter(|_| self.reports_unreadable) else {
            return self.unread(name, reason);
        };
        let location = Location::from_file(format!("{file}:{line}"));
        let finding = Finding::new(Severity::Error, Rule::Unreadable, reason, location);
        self.unreadable.push(finding);
    }

    fn unread(&mut self, name: String, reason: &str) {
        self.n_unread += 1;
        if self.unread.len() < MAX_LISTED {
            self.unread.push(Unevaluated {
                name,
                reason: reason.to_owned(),
            });
        }
    }
}

impl<'a> UpgradeCheck<'a> {
    fn both(&self, index: usize) -> Option<BothVersions<'a>> {
        let [old, new] = self.sets;
        Some(BothVersions {
            policies: [old.policies.get(index)?, new.policies.get(index)?],
            sets: self.sets,
        })
    }

    /// Removes from `unreached` the affected nodes that a request of the input reaches in the old version.
    fn add_reached(&mut self, index: usize, request: ComparedRequest<'_>) {
        let old = self.sets[0];
        let (Some(policy), Some(state)) = (old.policies.get(index), self.policies.get_mut(index))
        else {
            return;
        };
        let unreached = &mut state.generated.unreached;
        if unreached.is_empty() || state.n_requests > MAX_RECORDED {
            return;
        }
        let (spec, case) = probe_case(request);
        let recording = run_case(policy, &spec, &case, old).recording;
        let nodes = &state.nodes;
        unreached.retain(|n| {
            let affected = nodes.get(*n);
            !affected.is_some_and(|affected| has_value(&recording, affected))
        });
    }

    /// Returns the draft for an effect, or creates it with the probe case that `request` returns.
    fn draft(
        &mut self,
        index: usize,
        effect: Effect,
        request: impl FnOnce() -> (PolicyProbeSpec, Case),
    ) -> &mut Draft {
        let key = (index, effect.class, effect.field.clone(), effect.results);
        self.drafts.entry(key).or_insert_with(|| {
            let (spec, case) = request();
            Draft {
                effect,
                requests: 0,
                subjects: Vec::new(),
                spec,
                case,
                witness: None,
            }
        })
    }

    /// Generates requests for each policy that both versions evaluate, and adds the requests for which the versions
    /// differ.
    fn add_generated(&mut self, setup: &Setup) {
        let [old, new] = self.sets.map(|set| set.known.version());
        let indices: Vec<usize> = (0..self.sets[0].policies.len()).collect();
        let this = &*self;
        let progress = Progress::new(indices.len(), "policies compared");
        let state = |index: usize| {
            let Some(both) = this.both(index) else {
                return PolicyState::default();
            };
            if both.policies[0].rejection.is_some() {
                return PolicyState::default();
            }
            let nodes = version_changes::affected_nodes(&both.policies[0].compiled, old, new);
            let bindings = match both.policies[0].mutating {
                None => &setup.input.bindings,
                Some(_) => &setup.input.mutating_bindings,
            };
            PolicyState {
                generated: generate(both, &nodes, bindings),
                unserved: both.unserved(),
                nodes,
                ..PolicyState::default()
            }
        };
        self.policies = parallel::map(&indices, |index| {
            let state = state(*index);
            progress.step();
            state
        });
        drop(progress);
        for index in indices {
            let differing = match self.policies.get_mut(index) {
                Some(state) => std::mem::take(&mut state.generated.differing),
                None => continue,
            };
            for it in differing {
                for effect in it.effects {
                    let request = || (it.spec.clone(), it.case.clone());
                    let draft = self.draft(index, effect, request);
                    draft.witness.get_or_insert_with(|| it.witness.clone());
                }
            }
        }
    }

    /// Returns the changes with their causes; probes for the generated requests that show the changes; and the number
    /// of changes whose generated request cannot be written as a probe.
    fn changes(&self, setup: &Setup, with_text: bool) -> (Vec<Change>, Vec<Json>, usize) {
        let decided: BTreeSet<(usize, &Option<String>)> = self
            .drafts
            .keys()
            .filter(|(_, class, ..)| matches!(class, Class::Denies | Class::Admits))
            .map(|(index, _, field, _)| (*index, field))
            .collect();
        // If a field has a change that affects a decision, the changes of this field that affect no decision are not
        // listed.
        let shown = self.drafts.iter().filter(|((index, class, field, _), _)| {
            let is_minor = matches!(class, Class::Errors | Class::Audit | Class::Text);
            (with_text || *class != Class::Text)
                && !(is_minor && decided.contains(&(*index, field)))
        });
        let shown: Vec<(&DraftKey, &Draft)> = shown.collect();
        let finished = parallel::map(&shown, |((index, ..), draft)| {
            self.finish(*index, draft, setup)
        });
        let mut probes = Vec::new();
        let mut n_without = 0;
        let mut names = BTreeSet::new();
        for ((index, ..), draft) in shown {
            let Some(both) = self.both(*index).filter(|_| draft.witness.is_some()) else {
                continue;
            };
            let name = init::unique(both.policies[0].name, &mut names);
            match probe(&name, draft, both) {
                Some(probe) => probes.push(probe),
                None => n_without += 1,
            }
        }
        (finished.into_iter().flatten().collect(), probes, n_without)
    }

    /// Completes a draft: finds the cause of the change and its fix.
    fn finish(&self, index: usize, draft: &Draft, setup: &Setup) -> Option<Change> {
        let both = self.both(index)?;
        let policy = both.policies[0];
        let state = self.policies.get(index)?;
        let effect = &draft.effect;
        let cause = reasons::find(both, &state.nodes, (&draft.spec, &draft.case), effect);
        let rule = cause.as_ref().and_then(|cause| cause.change?.rule);
        let node = cause.as_ref().and_then(|cause| cause.node.clone());
        let field = node
            .as_ref()
            .map_or(effect.field.as_ref(), |(field, _)| Some(field));
        let fix = rule.and_then(|rule| {
            let findings = state.findings.get_or_init(|| findings(both, setup));
            let mut findings = findings.iter();
            findings.find(|it| it.rule == rule && it.field_ref.as_ref() == field)
        });
        // Another finding about the field may have a fix that also corrects this one: for example, the fix for an
        // absent value also inserts a missing `?`.
        let is_fixable = fix.is_some_and(|fix| {
            let findings = state.findings.get().into_iter().flatten();
            let mut of_field = findings.filter(|it| it.field_ref.as_ref() == field);
            fix.fix.is_some() || of_field.any(|it| it.fix.is_some())
        });
        let text = |result: FieldResult, message: &str| match result {
            FieldResult::Good if effect.class == Class::Mutates => "unchanged".to_owned(),
            FieldResult::Good => "true".to_owned(),
            FieldResult::False => "false".to_owned(),
            FieldResult::Error => "error".to_owned(),
            FieldResult::NotMatched => "not matched".to_owned(),
            FieldResult::Other if message.is_empty() => "none".to_owned(),
            FieldResult::Other => "differs".to_owned(),
        };
        let [old_message, new_message] = &effect.messages;
        let optional = |message: &String| Some(message.clone()).filter(|it| !it.is_empty());
        let expression = node.as_ref().map(|(field, text)| {
            if effect.field.as_ref() == Some(field) || effect.class == Class::Mutates {
                text.clone()
            } else {
                format!("{field}: {text}")
            }
        });
        let reason = cause.map(|cause| cause.reason);
        Some(Change {
            class: effect.class,
            binding: state.generated.binding.clone(),
            expression,
            old: text(effect.results[0], old_message),
            old_message: optional(old_message),
            new: text(effect.results[1], new_message),
            new_message: optional(new_message),
            reason,
            fixable: is_fixable,
            fix: fix.and_then(|finding| Some(finding.remedy()?.to_owned())),
            requests: draft.requests,
            subjects: draft.subjects.clone(),
            witness: draft.witness.clone().map(Box::new),
            index: Some(index),
            ..change(Some(policy), String::new(), effect.field.clone())
        })
    }

    /// Returns the changes of estimated costs that bring an expression near a limit.
    fn costs(&self, setup: &Setup) -> Vec<Change> {
        let [old, new] = self.sets.map(|set| set.known.version());
        let Some(row) = version_changes::between(old, new).find(|it| it.id == "function-costs")
        else {
            return Vec::new();
        };
        let calls = |policy: &PreparedPolicy<'_>| {
            policy.compiled.expressions().iter().any(|expression| {
                ["startsWith", "endsWith", "matches"]
                    .iter()
                    .any(|name| expression.text.contains(name))
            })
        };
        let validating: Vec<(usize, &PreparedPolicy<'_>)> = self.sets[0]
            .policies
            .iter()
            .enumerate()
            .filter(|(_, policy)| policy.mutating.is_none() && policy.rejection.is_none())
            .filter(|(_, policy)| calls(policy))
            .collect();
        let changes = parallel::map(&validating, |(index, policy)| {
            let costs = self.sets.map(|set| {
                let bindings = &setup.input.bindings;
                check_policy::check(policy.object, bindings, set.known, Profile::Upstream).costs
            });
            let increases = increases([&costs[0], &costs[1]]);
            let change = |increase: CostIncrease| Change {
                class: Class::Costs,
                old: increase.costs[0].to_string(),
                new: increase.costs[1].to_string(),
                new_message: Some(format!(
                    "of {} ({}), estimated for an object of 64 KiB",
                    digits(increase.limit),
                    increase.limit_name
                )),
                reason: Some(reasons::reason(Some(row), (old, new))),
                index: Some(*index),
                ..self::change(Some(policy), String::new(), Some(increase.field_ref))
            };
            increases.into_iter().map(change).collect::<Vec<_>>()
        });
        changes.into_iter().flatten().collect()
    }

    /// Returns the policies that have no change and for which an effect of the upgrade is possible but unknown.
    fn undecided(&self, changes: &[Change]) -> Vec<Undecided> {
        let mut undecided = Vec::new();
        for (index, state) in self.policies.iter().enumerate() {
            let Some(both) = self.both(index) else {
                continue;
            };
            let policy = both.policies[0];
            if policy.rejection.is_some() {
                continue;
            }
            let mut reasons = state.generated.undecided.clone();
            if state.n_requests > 0 && state.generated.unreached.is_empty() {
                // Probe cases or objects were compared, and all affected nodes were reached, so a failed generation of
                // requests does not matter.
                reasons.clear();
            }
            let unreached = state.generated.unreached.iter();
            let mut unreached = unreached.filter_map(|n| state.nodes.get(*n));
            reasons.extend(
                unreached
                    .next()
                    .map(|affected| unreached_reason(policy, affected)),
            );
            reasons.splice(0..0, state.unserved.clone());
            let mut changes = changes.iter();
            let is_changed =
                changes.any(|change| change.index == Some(index) && change.class.matters());
            if let Some(reason) = reasons.into_iter().next().filter(|_| !is_changed) {
                undecided.push(Undecided {
                    index,
                    policy: policy.id().to_string(),
                    place: place(policy, None),
                    unserved: state.unserved.is_some(),
                    reason,
                });
            }
        }
        undecided
    }

    fn summary(&self, changes: &[Change], undecided: &[Undecided]) -> UpgradeSummary {
        // Changes of bindings and other objects have no index, so they are not counted.
        let of_policies = |matters: bool| -> BTreeSet<usize> {
            let changes = changes.iter().filter(|it| it.class.matters() == matters);
            changes.filter_map(|change| change.index).collect()
        };
        let (changed, informed) = (of_policies(true), of_policies(false));
        let is_undecided = |index: usize| undecided.iter().any(|it| it.index == index);
        let policies = self.policies.len();
        let rejected = self.sets[0].policies.iter().zip(&self.sets[1].policies);
        let rejected =
            rejected.filter(|(old, new)| old.rejection.is_some() && new.rejection.is_some());
        let rejected = rejected.count();
        let informed = informed.difference(&changed);
        let informed = informed.filter(|index| !is_undecided(**index)).count();
        let generated = self.policies.iter().map(|it| it.generated.n_requests);
        let generated = u64::try_from(generated.sum::<usize>()).unwrap_or(u64::MAX);
        let others: u64 = self.policies.iter().map(|it| it.n_requests).sum();
        UpgradeSummary {
            policies,
            changed: changed.len(),
            informed,
            unchanged: policies
                .saturating_sub(changed.len())
                .saturating_sub(informed)
                .saturating_sub(undecided.len())
                .saturating_sub(rejected),
            rejected,
            undecided: undecided.len(),
            comparisons: generated.saturating_add(others),
            generated,
            unread: self.n_unread,
            ..UpgradeSummary::default()
        }
    }
}

/// Returns the reason why the effect of a change on a node is unknown.
fn unreached_reason(policy: &PreparedPolicy<'_>, affected: &AffectedNode) -> String {
    let (field, text) = reasons::node_text(policy, affected).unwrap_or_default();
    format!(
        "{field}: no generated request evaluates `{text}`, whose behavior changes in {} [{}]",
        affected.change.since, affected.change.id
    )
}

/// Returns a probe whose only case is the generated request of a change. The case passes only in the old version.
/// Returns `None` if no expectation passes only in the old version.
fn probe(name: &str, draft: &Draft, both: BothVersions<'_>) -> Option<Json> {
    let effect = &draft.effect;
    let mut case = draft.case.clone();
    case.name = match &effect.field {
        Some(field) => format!("{}: {field}", effect.class.as_str()),
        None => effect.class.as_str().to_owned(),
    };
    let result = run_case(both.policies[0], &draft.spec, &case, both.sets[0]);
    let result = diff::case_result(both.policies[0], result).ok().flatten();
    let mut candidates = Vec::new();
    if let Some(result) = &result {
        if let Some(text) = result.errors.first().map(|it| &it.message) {
            candidates.push(json!({"error": {"text": text}}));
        }
        if let Some(violation) = result.violations.first() {
            candidates.push(json!({"decision": "Deny"}));
            candidates.push(json!({"decision": "Deny", "message": violation.message}));
        }
    }
    if both.policies[0].mutating.is_some() {
        let patch = result.as_ref().and_then(|result| result.patch.as_ref());
        let patch = patch.and_then(|patch| serde_json::to_value(patch).ok());
        candidates.push(json!({"applies": true}));
        candidates.push(match patch {
            Some(patch) => json!({"patch": patch}),
            None => json!({"unchanged": true}),
        });
    } else {
        candidates.push(json!({"decision": "Allow"}));
        candidates.push(json!({"applies": true}));
    }
    candidates.push(json!({"applies": false}));
    let mut expectations = candidates.into_iter().filter_map(|expect| {
        let expect: Expect = serde_json::from_value(expect).ok()?;
        let case = Case {
            expect: expect.clone(),
            ..case.clone()
        };
        both.passes_only_before(&draft.spec, &case)
            .then_some(expect)
    });
    case.expect = expectations.next()?;
    let spec = PolicyProbeSpec {
        cases: vec![case],
        ..draft.spec.clone()
    };
    Some(json!({
        "apiVersion": API_VERSION,
        "kind": "PolicyProbe",
        "metadata": {"name": name},
        "spec": spec,
    }))
}
