//! `kubectl vap diff`: compares the decisions of two versions of a policy. The requests come from probe cases, from
//! objects in files, or from objects in a cluster. For changed policies, further requests are generated.
//!
//! Both versions are evaluated for the same requests. The objects of `--with`, such as bindings and params, belong to
//! both versions.

pub mod args;
mod compare;
mod expressions;
mod generated;
mod pairs;
mod param_objects;
pub mod render;
pub mod report;
mod settings;
mod versions;

pub(super) use compare::mutation_summary;
pub use compare::{Cause, CauseKind, Effect, Part};
pub use expressions::ChangedExpression;
use pairs::both_versions;
pub(super) use pairs::{PolicyPair, pairs};
pub use settings::{Setting, SettingField};

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use serde_json::Value;

use super::audit::{self, Auditor, Item, ObjectId, ObjectResult, Operations, PolicyResult, Walk};
use super::check::finding::{Finding, Severity};
use super::connection::Connection;
use super::error::CliError;
use super::eval::args::UserArgs;
use super::eval::policy_set::{PolicySet, PreparedPolicy};
use super::eval::run_case;
use super::input::Object;
use super::parallel;
use super::test::probes::{self, Probe, Resemblance};
use crate::policy::RequestPolicy;
use crate::policy::admission::Operation;
use crate::probe::api::{Case, PolicyProbeSpec};
use crate::probe::run::CaseResult;
use crate::probe::target::TargetId;
use args::DiffArgs;
use compare::compare;
use generated::Generated;
use param_objects::ParamObjects;
use report::{DiffReport, Groups, OneSided, Subject, Summary, Unread};
use settings::Results;
use versions::Versions;

/// The number of objects per batch. A batch is evaluated on several threads.
const BATCH: usize = 512;

/// The request for which two versions of a policy were evaluated.
#[derive(Clone, Copy)]
pub(super) enum ComparedRequest<'a> {
    /// A case of a probe.
    Case(&'a PolicyProbeSpec, &'a Case),
    /// An object of a file or of a cluster.
    Object(&'a Item),
}

/// The results of both versions for one request. A result is `None` if the version does not match the request.
pub(super) type BothResults<'a> = [Option<&'a PolicyResult>; 2];

/// Receives the results of both versions for each probe case and object.
pub(super) trait Visitor {
    /// `subject` is the name of the case or object, and its location if it is from a file. `results` has one
    /// element for each operation that at least one version matches.
    fn compared(
        &mut self,
        pair: &PolicyPair,
        subject: (&str, Option<&str>),
        results: &[BothResults<'_>],
        request: ComparedRequest<'_>,
    );

    /// Receives the reason why a request could not be read or evaluated.
    fn unread(&mut self, name: String, reason: &str);

    /// Receives the reason why an object of a file could not be read. `place` is its file and line.
    fn unreadable(&mut self, name: String, _place: Option<&(Arc<str>, usize)>, reason: &str) {
        self.unread(name, reason);
    }
}

/// The numbers of compared objects and cases, and findings about cluster data that could not be read.
#[derive(Default)]
pub(super) struct Compared {
    pub(super) objects: u64,
    pub(super) cases: u64,
    pub(super) gaps: Vec<Finding>,
}

/// Collects the differences of a [`DiffReport`].
struct GroupVisitor<'a> {
    groups: Groups,
    report: &'a mut DiffReport,
    /// The results of each policy that matches a request in at least one version.
    matched: BTreeMap<TargetId, Results>,
}

impl Visitor for GroupVisitor<'_> {
    fn compared(
        &mut self,
        pair: &PolicyPair,
        (name, place): (&str, Option<&str>),
        results: &[BothResults<'_>],
        request: ComparedRequest<'_>,
    ) {
        // A difference that several operations share is added once.
        let mut differences = Vec::new();
        for both in results {
            for result in both.iter().flatten() {
                let results = self.matched.entry(pair.id.clone()).or_default();
                results.add(result);
            }
            let [old, new] = pair.decisions(*both);
            let Some(difference) = compare(old, new, &pair.pairs, pair.failure_policies) else {
                continue;
            };
            if differences.contains(&difference) {
                continue;
            }
            let operation = both.iter().flatten().map(|it| it.operation).next();
            let operation = operation.filter(|_| matches!(request, ComparedRequest::Object(_)));
            let subject = Subject {
                name: name.to_owned(),
                operation,
                place: place.map(str::to_owned),
                effect: difference.effect,
                request: None,
                inputs: Vec::new(),
            };
            self.groups.add(
                &mut self.report.summary,
                &pair.id,
                &subject,
                difference.clone(),
            );
            differences.push(difference);
        }
    }

    fn unread(&mut self, name: String, reason: &str) {
        self.report.unread(name, reason);
    }
}

impl GroupVisitor<'_> {
    /// Adds the differences for generated requests.
    fn generate(
        &mut self,
        pairs: &[PolicyPair],
        sets: [&PolicySet<'_>; 2],
        params: &[ParamObjects<'_>],
    ) {
        let inputs: Vec<_> = pairs.iter().zip(params).collect();
        let generated = parallel::map(&inputs, |(pair, params)| {
            generated::generate(pair, sets, params)
        });
        for (pair, generated) in pairs.iter().zip(generated) {
            self.add_generated(pair, generated);
        }
    }

    /// Adds the differences for generated requests. Omits causes that an earlier subject already shows.
    fn add_generated(&mut self, pair: &PolicyPair, generated: Generated) {
        if let Some(reason) = generated.error {
            self.report.not_generated.push(Unread {
                name: pair.id.to_string(),
                reason,
            });
        }
        if generated.n_requests == 0 {
            return;
        }
        let n_requests = u64::try_from(generated.n_requests).unwrap_or(u64::MAX);
        self.report.summary.generated += n_requests;
        self.matched.entry(pair.id.clone()).or_default();
        for differing in generated.differing {
            let mut difference = differing.difference;
            let is_new = |cause: &Cause| !self.groups.contains_similar(&pair.id, cause);
            difference.causes.retain(is_new);
            if difference.causes.is_empty() {
                continue;
            }
            for result in differing.results.iter().flatten() {
                let results = self.matched.entry(pair.id.clone()).or_default();
                results.add(result);
            }
            let subject = Subject {
                name: differing.name,
                operation: None,
                place: None,
                effect: difference.effect,
                request: Some(differing.request),
                inputs: differing.inputs,
            };
            let summary = &mut self.report.summary;
            self.groups.add(summary, &pair.id, &subject, difference);
        }
    }
}

/// Compares the decisions of the two versions.
///
/// # Errors
/// Returns an error if standard input is used for inputs other than objects, or if the cluster cannot be reached.
pub(super) fn run(args: &DiffArgs, stdin: &mut dyn Read) -> Result<DiffReport, CliError> {
    let is_stdin = |path: &&PathBuf| path.as_os_str() == "-";
    let all = [&args.old, &args.new].into_iter().chain(&args.with);
    if all.filter(is_stdin).count() > 0 {
        let message = "standard input can only be used for objects, with `-f -`; pass policies and other inputs as files";
        return Err(CliError::Usage(message.to_owned()));
    }
    let Versions {
        old: (mut old, own_old_probes),
        new: (mut new, mut written),
        shared_probes,
        notes,
    } = Versions::read(args, stdin)?;
    let mut findings = std::mem::take(&mut old.findings);
    add_findings(&mut findings, std::mem::take(&mut new.findings));
    findings.extend(notes);
    written.extend(own_old_probes);
    if !args.files.is_empty() {
        written.clear();
    }
    let shared: BTreeSet<DocumentId> = shared_probes.iter().map(document_id).collect();
    written.extend(shared_probes);
    let mut before = PolicySet::new(
        &old.input,
        &old.known,
        old.cluster_inputs.as_ref(),
        &mut findings,
    );
    let mut after = PolicySet::new(
        &new.input,
        &new.known,
        new.cluster_inputs.as_ref(),
        &mut findings,
    );
    let limit = args.timeout.limit();
    (before.limit, after.limit) = (limit, limit);
    let inputs = [&args.old, &args.new].into_iter().chain(&args.with);
    let requests = Requests {
        inputs: inputs.cloned().collect(),
        files: &args.files,
        user: &args.user,
        connection: &args.connection,
        chunk_size: args.pages.chunk_size,
        is_live: old.server.is_some() || new.server.is_some(),
        operations: Operations::each(),
    };
    requests.add_namespaces([&mut before, &mut after]);
    let pairs = pairs(&before, &after);
    let (cases, n_skipped) = cases(written, &shared, &pairs, &mut findings)?;
    findings.extend(versions::skipped_note(args, n_skipped));
    let mut report = DiffReport {
        api_version: "cli.vap-status.dev/v1alpha1",
        kind: "DiffReport",
        kubernetes: new.known.kubernetes().to_owned(),
        cluster: new.server.clone().or_else(|| old.server.clone()),
        summary: Summary {
            policies: pairs.len(),
            ..Summary::default()
        },
        findings,
        one_sided: one_sided(&pairs),
        unmatched: Vec::new(),
        groups: Vec::new(),
        settings: Vec::new(),
        expressions: Vec::new(),
        unread: Vec::new(),
        not_generated: Vec::new(),
    };
    let mut visitor = GroupVisitor {
        groups: Groups::default(),
        report: &mut report,
        matched: BTreeMap::new(),
    };
    let compared = requests.compare([&before, &after], &pairs, &cases, stdin, &mut visitor)?;
    let sets = [&before, &after];
    let params = pairs
        .iter()
        .map(|pair| ParamObjects::new(pair, sets, [&old, &new]));
    let params: Vec<ParamObjects<'_>> = params.collect();
    if !args.no_generated {
        visitor.generate(&pairs, sets, &params);
    }
    let GroupVisitor {
        groups, matched, ..
    } = visitor;
    let ids = pairs.iter().map(|pair| &pair.id);
    let unmatched = ids.filter(|id| !matched.contains_key(*id));
    report.unmatched = unmatched.map(ToString::to_string).collect();
    report.summary.objects = compared.objects;
    report.summary.cases = compared.cases;
    report.findings.extend(compared.gaps);
    report.finish(groups);
    report.add_changes(pairs.iter().zip(&params), sets, &matched);
    Ok(report)
}

impl DiffReport {
    /// Adds the changed settings of each policy, and the changed expressions without an effect on a compared request.
    /// `matched` contains the policies with at least one version that matches a request.
    fn add_changes<'p>(
        &mut self,
        pairs: impl Iterator<Item = (&'p PolicyPair, &'p ParamObjects<'p>)>,
        sets: [&PolicySet<'_>; 2],
        matched: &BTreeMap<TargetId, Results>,
    ) {
        for (pair, params) in pairs {
            let results = matched.get(&pair.id).copied();
            let settings = settings::between(
                pair,
                sets,
                params,
                results.unwrap_or_default(),
                &self.groups,
            );
            self.settings.extend(settings);
            if results.is_some() {
                let expressions = expressions::without_effect(pair, sets, &self.groups);
                self.expressions.extend(expressions);
            }
        }
    }
}

/// The requests for which two versions are compared.
pub(super) struct Requests<'a> {
    /// The files of the policies and of `--with`. If neither a cluster nor `files` is given, the objects in these files
    /// are compared.
    pub(super) inputs: Vec<PathBuf>,
    /// The files of `-f`.
    pub(super) files: &'a [PathBuf],
    pub(super) user: &'a UserArgs,
    pub(super) connection: &'a Connection,
    pub(super) chunk_size: u32,
    /// True if a cluster was read.
    pub(super) is_live: bool,
    /// The operations of the requests that are generated for each object.
    pub(super) operations: Operations,
}

impl Requests<'_> {
    /// Returns true if the files of the policies also contain the objects.
    const fn shares_files(&self) -> bool {
        self.files.is_empty() && !self.is_live
    }

    /// Adds the namespaces in the files of `-f` to the policy sets, unless a cluster was read.
    pub(super) fn add_namespaces(&self, policy_sets: [&mut PolicySet<'_>; 2]) {
        if self.shares_files() || self.is_live {
            return;
        }
        for policy_set in policy_sets {
            audit::add_namespaces(self.files, policy_set);
        }
    }

    /// Like [`cases`], but empty if the objects are from `-f`.
    ///
    /// # Errors
    /// Returns an error if the CRD built into this program cannot be used.
    pub(super) fn cases(
        &self,
        written: Vec<Object<Value>>,
        pairs: &[PolicyPair],
        findings: &mut Vec<Finding>,
    ) -> Result<Vec<Probe>, CliError> {
        if self.files.is_empty() {
            Ok(cases(written, &BTreeSet::new(), pairs, findings)?.0)
        } else {
            Ok(Vec::new())
        }
    }

    /// Evaluates the policies of both sets for the cases of `probes`, and for the objects of files or of the cluster.
    ///
    /// # Errors
    /// Returns an error if the cluster cannot be reached.
    pub(super) fn compare(
        &self,
        [before, after]: [&PolicySet<'_>; 2],
        pairs: &[PolicyPair],
        probes: &[Probe],
        stdin: &mut dyn Read,
        visitor: &mut dyn Visitor,
    ) -> Result<Compared, CliError> {
        let mut compared = Compared::default();
        for probe in probes {
            compared.cases += compare_probe(probe, pairs, (before, after), visitor);
        }
        let is_of_cluster = self.is_live && self.files.is_empty();
        let mut differ = Differ {
            auditors: [before, after].map(|policy_set| {
                let user = self.user.user_info();
                Auditor::new(policy_set, self.operations.clone(), user, is_of_cluster)
            }),
            pairs,
            objects: 0,
            visitor,
        };
        if is_of_cluster {
            let walk = Walk {
                connection: self.connection,
                mapper: &after.known.mapper,
                policies: policies_of_both(pairs, before, after),
                chunk_size: self.chunk_size,
            };
            let (_, gaps) = walk.run(&mut |items, policies| {
                differ.evaluate(&items, policies);
                Ok(())
            })?;
            compared.gaps = gaps;
        } else {
            let paths = if self.shares_files() {
                &self.inputs
            } else {
                self.files
            };
            differ.compare_files(paths, stdin, self.shares_files());
        }
        compared.objects = differ.objects;
        Ok(compared)
    }
}

/// The file of an object, and the index of its document in the file.
type DocumentId = (String, usize);

fn document_id(object: &Object<Value>) -> DocumentId {
    (object.source.name.clone(), object.document.index)
}

/// Returns the valid probes for policies of `pairs`, and the number of skipped probes. Errors in probes are added to
/// `findings`.
///
/// A `shared` probe is skipped if `pairs` does not contain its policy. A similar name in `pairs` causes a warning.
///
/// # Errors
/// Returns an error if the CRD built into this program cannot be used.
fn cases(
    mut written: Vec<Object<Value>>,
    shared: &BTreeSet<DocumentId>,
    pairs: &[PolicyPair],
    findings: &mut Vec<Finding>,
) -> Result<(Vec<Probe>, usize), CliError> {
    let ids: Vec<TargetId> = pairs.iter().map(|pair| pair.id.clone()).collect();
    let mut seen = BTreeSet::new();
    written.retain(|probe| {
        // A probe without a target tests a ValidatingAdmissionPolicy. No target other than a MutatingAdmissionPolicy is
        // a policy.
        let target = probe.value.pointer("/spec/target/kind");
        target.is_none_or(|kind| kind == "MutatingAdmissionPolicy")
            && seen.insert(document_id(probe))
    });
    let mut skipped = BTreeSet::new();
    let mut unknown = |probe: &Object<Value>, mut finding: Finding, resemblance: Resemblance| {
        let id = document_id(probe);
        if !shared.contains(&id) {
            return Some(finding);
        }
        match resemblance {
            Resemblance::SameName => Some(finding),
            Resemblance::Similar => {
                finding.severity = Severity::Warning;
                Some(finding)
            }
            Resemblance::None => {
                skipped.insert(id);
                None
            }
        }
    };
    let probes = probes::read_with(written, &ids, findings, &mut unknown);
    let probes = probes.map_err(CliError::Broken)?;
    // A probe with `policyNames` is not skipped if one of its policies is in `pairs`.
    for probe in &probes {
        skipped.remove(&document_id(&probe.object));
    }
    Ok((probes, skipped.len()))
}

/// Adds the findings of `more`. Skips a finding whose message already exists for the same file.
fn add_findings(findings: &mut Vec<Finding>, more: Vec<Finding>) {
    for finding in more {
        let is_duplicate = |it: &Finding| {
            it.message == finding.message && it.location.file == finding.location.file
        };
        if !findings.iter().any(is_duplicate) {
            findings.push(finding);
        }
    }
}

/// Returns the policies that exist in only one version.
fn one_sided(pairs: &[PolicyPair]) -> Vec<OneSided> {
    let one_sided = |pair: &PolicyPair| {
        let version = match pair.sides {
            [Some(_), None] => "old",
            [None, Some(_)] => "new",
            _ => return None,
        };
        Some(OneSided {
            policy: pair.id.to_string(),
            version,
        })
    };
    pairs.iter().filter_map(one_sided).collect()
}

/// Returns the policies of both versions, each with the index of its pair.
fn policies_of_both<'a>(
    pairs: &[PolicyPair],
    before: &'a PolicySet<'_>,
    after: &'a PolicySet<'_>,
) -> Vec<(usize, &'a RequestPolicy)> {
    let mut policies = Vec::new();
    for (n, pair) in pairs.iter().enumerate() {
        for (index, policy_set) in pair.sides.into_iter().zip([before, after]) {
            let policy = index.and_then(|index| policy_set.policies.get(index));
            policies.extend(policy.map(|policy| (n, &policy.object.value)));
        }
    }
    policies
}

/// Compares the decisions for the cases of a probe. Returns the number of cases.
fn compare_probe(
    probe: &Probe,
    pairs: &[PolicyPair],
    (before, after): (&PolicySet<'_>, &PolicySet<'_>),
    visitor: &mut dyn Visitor,
) -> u64 {
    let Some(pair) = pairs.iter().find(|pair| pair.id == probe.id) else {
        return 0;
    };
    let mut n_cases = 0;
    for (n, case) in probe.spec.cases.iter().enumerate() {
        let place = probe.place_of_case(n);
        let place = format!("{}:{}", probe.object.source.name, place.line);
        let name = format!("probe {}, case {}", probe.name(), case.name);
        n_cases += 1;
        let decided = |policy_set: &PolicySet<'_>, n: Option<usize>| {
            let policy = n.and_then(|n| policy_set.policies.get(n));
            let policy = policy.filter(|policy| policy.rejection.is_none());
            policy.map_or(Ok(None), |policy| {
                let result = run_case(policy, &probe.spec, case, policy_set);
                case_result(policy, result)
            })
        };
        let [old_index, new_index] = pair.sides;
        match (decided(before, old_index), decided(after, new_index)) {
            (Ok(old), Ok(new)) => {
                let results = [old.as_ref(), new.as_ref()];
                let subject = (name.as_str(), Some(place.as_str()));
                let request = ComparedRequest::Case(&probe.spec, case);
                visitor.compared(pair, subject, &[results], request);
            }
            (old, new) => {
                let why = error_of_sides(old.as_ref().err(), new.as_ref().err());
                visitor.unread(format!("{name} ({place})"), &why);
            }
        }
    }
    n_cases
}

/// Returns the result of the policy for a case. `None` if the policy does not match the request.
///
/// # Errors
/// Returns the reason why the case was not evaluated.
pub(super) fn case_result(
    policy: &PreparedPolicy<'_>,
    result: CaseResult,
) -> Result<Option<PolicyResult>, String> {
    let Some(outcome) = &result.outcome else {
        return Err(result.status.difference.unwrap_or_default());
    };
    let mut policy_result = audit::policy_result(0, policy, Operation::default(), outcome);
    if let Some(mutated) = &result.mutated {
        policy_result.mutate(mutated);
    }
    let is_matched = outcome.not_evaluated_reason.is_none()
        && (outcome.denial.is_some()
            || !outcome.evaluations.is_empty()
            || !outcome.errors.is_empty());
    Ok(is_matched.then_some(policy_result))
}

struct Differ<'a> {
    auditors: [Auditor<'a>; 2],
    pairs: &'a [PolicyPair],
    /// The number of compared objects.
    objects: u64,
    visitor: &'a mut dyn Visitor,
}

impl Differ<'_> {
    /// Compares the decisions for the objects of files. With `shares_files`, the files also contain the policies of
    /// both versions.
    fn compare_files(&mut self, paths: &[PathBuf], stdin: &mut dyn Read, shares_files: bool) {
        let all: Vec<usize> = (0..self.pairs.len()).collect();
        let mut batch = Vec::new();
        // A file that both versions share is read once.
        let mut seen = BTreeSet::new();
        audit::read_files(paths, stdin, &mut |item| {
            let place = item.place.as_ref();
            let is_new = place.is_none_or(|place| !shares_files || seen.insert(place.clone()));
            if is_new && !(shares_files && item.is_policy_input()) {
                batch.push(item);
            }
            if batch.len() >= BATCH {
                self.evaluate(&batch, &all);
                batch.clear();
            }
        });
        self.evaluate(&batch, &all);
    }

    fn evaluate(&mut self, items: &[Item], of_pairs: &[usize]) {
        let pairs: Vec<&PolicyPair> = of_pairs.iter().filter_map(|n| self.pairs.get(*n)).collect();
        let (old, new): (Vec<_>, Vec<_>) = pairs.iter().map(|pair| pair.sides.into()).unzip();
        let [old, new]: [Vec<usize>; 2] =
            [old, new].map(|side: Vec<Option<usize>>| side.into_iter().flatten().collect());
        let [old_auditor, new_auditor] = &self.auditors;
        let results = parallel::map(items, |item| {
            (
                old_auditor.evaluate(item, &old),
                new_auditor.evaluate(item, &new),
            )
        });
        for (item, (old, new)) in items.iter().zip(results) {
            self.add(&pairs, item, [&old, &new]);
        }
    }

    fn add(&mut self, pairs: &[&PolicyPair], item: &Item, [old, new]: [&ObjectResult; 2]) {
        self.objects += 1;
        let (name, place) = describe(&new.id);
        let named = || match &place {
            Some(place) => format!("{name} ({place})"),
            None => name.clone(),
        };
        let (old_results, new_results) = match (&old.results, &new.results) {
            (Ok(old_results), Ok(new_results)) => (old_results, new_results),
            (Err(why), Err(_)) if item.value.is_err() => {
                self.visitor.unreadable(named(), item.place.as_ref(), why);
                return;
            }
            (old, new) => {
                let why = error_of_sides(old.as_ref().err(), new.as_ref().err());
                self.visitor.unread(named(), &why);
                return;
            }
        };
        for pair in pairs {
            let [n_old, n_new] = pair.sides;
            let results = by_operation([(old_results, n_old), (new_results, n_new)]);
            let undecided = |side: usize| {
                let mut results = results.iter().filter_map(|both| *both.get(side)?);
                results.find_map(|it| it.undecided.as_ref())
            };
            let (old, new) = (undecided(0), undecided(1));
            if old.or(new).is_some() {
                let why = error_of_sides(old, new);
                let reason = format!("not evaluated by {}: {why}", pair.id);
                self.visitor.unread(named(), &reason);
                continue;
            }
            let subject = (name.as_str(), place.as_deref());
            let request = ComparedRequest::Object(item);
            self.visitor.compared(pair, subject, &results, request);
        }
    }
}

/// Returns the reason why the result of a version is unknown. The reason names the version, unless both versions have
/// the same reason.
fn error_of_sides(old: Option<&String>, new: Option<&String>) -> String {
    let sides = [("old", old), ("new", new)];
    match (old, new) {
        (Some(old), Some(new)) if old == new => old.clone(),
        _ => {
            let errors = sides.into_iter();
            let errors =
                errors.filter_map(|(side, why)| Some(format!("in the {side} version: {}", why?)));
            errors.collect::<Vec<_>>().join("; ")
        }
    }
}

/// Returns the results of both versions for each operation that one of them matches. Each element of `versions`
/// contains the results of a version and the index of its policy.
fn by_operation<'a>(versions: [(&'a [PolicyResult], Option<usize>); 2]) -> Vec<BothResults<'a>> {
    let results = |(results, n): (&'a [PolicyResult], Option<usize>)| {
        results.iter().filter(move |it| Some(it.index) == n)
    };
    let [old, new] = versions;
    let find = |version, operation: &str| results(version).find(|it| it.operation == operation);
    let mut operations: Vec<&'static str> = Vec::new();
    for result in results(old).chain(results(new)) {
        if !operations.contains(&result.operation) {
            operations.push(result.operation);
        }
    }
    let both = |operation: &str| [find(old, operation), find(new, operation)];
    operations.into_iter().map(both).collect()
}

/// Returns the kind and name of an object, and its location if it is from a file.
fn describe(id: &ObjectId) -> (String, Option<String>) {
    let name = match id.namespace.as_str() {
        "" => id.name.clone(),
        namespace => format!("{namespace}/{}", id.name),
    };
    let place = id
        .file
        .as_ref()
        .map(|file| format!("{file}:{}", id.line.unwrap_or(1)));
    match id.kind.as_str() {
        "" => ("an object".to_owned(), place),
        kind => (format!("{kind} {name}"), place),
    }
}
