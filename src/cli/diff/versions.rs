//! Reads the two versions of the policies, and the objects of `--with`.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;

use super::args::DiffArgs;
use crate::cli::check::finding::{Finding, Location, Severity};
use crate::cli::check::policy::object_finding;
use crate::cli::error::CliError;
use crate::cli::eval::setup::{Setup, Sources};
use crate::cli::input::combine::{Definitions, OverriddenObject};
use crate::cli::input::{Input, KindFilter, Object};
use crate::cli::live::Plan;
use crate::policy::rule::Rule;
use crate::schema::Crd;

/// The maximum number of objects that a note lists.
const MAX_LISTED: usize = 5;

/// Both versions of the policies.
pub(super) struct Versions {
    /// The input of the old version, and the probes in the files of OLD.
    pub(super) old: (Setup, Vec<Object<Value>>),
    /// The input of the new version, and the probes in the files of NEW.
    pub(super) new: (Setup, Vec<Object<Value>>),
    /// The probes of `--with`.
    pub(super) shared_probes: Vec<Object<Value>>,
    /// Notes about unused objects of `--with`, which OLD or NEW defines, and notes about definitions that only one
    /// version has.
    pub(super) notes: Vec<Finding>,
}

impl Versions {
    /// Reads both versions. An object of `--with` is added to both if neither OLD nor NEW defines it.
    ///
    /// # Errors
    /// Returns an error if the arguments cannot be combined, or if the cluster cannot be reached.
    pub(super) fn read(args: &DiffArgs, stdin: &mut dyn Read) -> Result<Self, CliError> {
        let mut definitions = Definitions::default();
        let mut read = |path: &PathBuf| {
            let paths = std::slice::from_ref(path);
            let plan = Plan::new(paths, None, args.cluster.live, &args.connection)?;
            let input = Input::load(&plan.paths, KindFilter::All, stdin);
            definitions.add(&input);
            for name in plan.selection.iter().flat_map(|selection| &selection.names) {
                definitions.add_policy(name);
            }
            Ok::<_, CliError>((plan, input))
        };
        let mut old = read(&args.old)?;
        let mut new = read(&args.new)?;
        let shared = Input::load(&args.with, KindFilter::Crds, stdin);
        let crds = Input::load(&args.crds, KindFilter::Crds, stdin);
        let shared: BTreeSet<String> = names(shared.crds.iter().chain(&crds.crds));
        let copied = [
            copy_definitions(&new.1, &mut old, &shared),
            copy_definitions(&old.1, &mut new, &shared),
        ];
        let sides = [("NEW", "OLD"), ("OLD", "NEW")].into_iter().zip(copied);
        let notes = sides.filter_map(|((from, to), copied)| copied_note(from, to, &copied));
        let mut notes: Vec<Finding> = notes.collect();
        let (old, ..) = setup(args, &args.old, old, &definitions, stdin)?;
        let (new, shared_probes, overridden) = setup(args, &args.new, new, &definitions, stdin)?;
        notes.extend(overridden_note(args, &overridden));
        Ok(Self {
            old,
            new,
            shared_probes,
            notes,
        })
    }
}

/// The input of a version and the probes in its files; the probes of `--with`; and the objects of `--with` that are not
/// used.
type ReadVersion = (
    (Setup, Vec<Object<Value>>),
    Vec<Object<Value>>,
    Vec<OverriddenObject>,
);

/// Reads a version together with the objects of `--with`, except those that `definitions` contains.
fn setup(
    args: &DiffArgs,
    path: &PathBuf,
    (plan, mut input): (Plan, Input),
    definitions: &Definitions,
    stdin: &mut dyn Read,
) -> Result<ReadVersion, CliError> {
    let mut shared = Input::load(&args.with, KindFilter::All, stdin);
    let overridden = shared.remove(definitions);
    let own_probes = std::mem::take(&mut input.probes);
    let shared_probes = std::mem::take(&mut shared.probes);
    input.append(shared);
    let sources = Sources {
        paths: std::slice::from_ref(path),
        crds: &args.crds,
        selector: None,
        version: args.version.kubernetes_version,
        live: args.cluster.live,
        connection: &args.connection,
    };
    let setup = Setup::with_input(&sources, &plan, input, &BTreeSet::new(), stdin)?;
    Ok(((setup, own_probes), shared_probes, overridden))
}

fn names<'a>(crds: impl Iterator<Item = &'a Object<Crd>>) -> BTreeSet<String> {
    crds.filter_map(|crd| crd.name().map(str::to_owned))
        .collect()
}

/// Copies the CustomResourceDefinitions that only the version `from` has to the version `to`. Returns the copies. A
/// version in a cluster gets no copies, because it has the definitions of the cluster.
fn copy_definitions(
    from: &Input,
    (plan, to): &mut (Plan, Input),
    shared: &BTreeSet<String>,
) -> Vec<Object<Crd>> {
    if plan.is_live {
        return Vec::new();
    }
    let own = names(to.crds.iter());
    let is_missing = |crd: &&Object<Crd>| {
        crd.name()
            .is_some_and(|name| !own.contains(name) && !shared.contains(name))
    };
    let missing: Vec<Object<Crd>> = from.crds.iter().filter(is_missing).cloned().collect();
    to.crds.extend(missing.iter().cloned());
    missing
}

/// Returns a note on the CustomResourceDefinitions that only one version has, if there are any.
fn copied_note(from: &str, to: &str, copied: &[Object<Crd>]) -> Option<Finding> {
    let first = copied.first()?;
    let listed = copied.iter().take(MAX_LISTED);
    let mut listed: Vec<String> = listed
        .map(|crd| format!("`{}`", crd.name().unwrap_or_default()))
        .collect();
    if let Some(more @ 1..) = copied.len().checked_sub(MAX_LISTED) {
        listed.push(format!("and {more} more"));
    }
    let is = match copied.len() {
        1 => "a CustomResourceDefinition is only in",
        _ => "CustomResourceDefinitions are only in",
    };
    let message = format!("{is} {from}, but also used for {to}: {}", listed.join(", "));
    let (severity, rule) = (Severity::Note, Rule::UnknownResource);
    Some(object_finding(
        first,
        severity,
        rule,
        &message,
        first.place(),
    ))
}

/// Returns a note on the probes of `--with` that test other policies, if there are any.
pub(super) fn skipped_note(args: &DiffArgs, n_skipped: usize) -> Option<Finding> {
    let message = match n_skipped {
        0 => return None,
        1 => "1 probe of another policy is skipped".to_owned(),
        n => format!("{n} probes of other policies are skipped"),
    };
    let location = with_location(args);
    Some(Finding::new(
        Severity::Note,
        Rule::UnknownPolicy,
        message,
        location,
    ))
}

/// Returns the paths of `--with` as the location of a finding.
fn with_location(args: &DiffArgs) -> Location {
    let with = args.with.iter().map(|path| path.display().to_string());
    let with: Vec<String> = with.collect();
    Location::from_file(with.join(", "))
}

/// Returns a note on the objects of `--with` that are not used, if there are any.
fn overridden_note(args: &DiffArgs, overridden: &[OverriddenObject]) -> Option<Finding> {
    let listed = overridden.iter().take(MAX_LISTED).map(|object| {
        let key = &object.key;
        let (file, line) = (&object.file, object.place.line);
        format!("{} `{}` ({file}:{line})", key.kind, key.name)
    });
    let mut listed: Vec<String> = listed.collect();
    if let Some(more @ 1..) = overridden.len().checked_sub(MAX_LISTED) {
        listed.push(format!("and {more} more"));
    }
    let (is, them) = match overridden.len() {
        0 => return None,
        1 => ("an object of --with is ignored", "it"),
        _ => ("objects of --with are ignored", "them"),
    };
    let message = format!(
        "{is}, because OLD or NEW defines {them}: {}",
        listed.join(", ")
    );
    let location = with_location(args);
    let mut note = Finding::new(Severity::Note, Rule::DuplicateName, message, location);
    note.help = Some("the objects of OLD and NEW are compared".to_owned());
    Some(note)
}
