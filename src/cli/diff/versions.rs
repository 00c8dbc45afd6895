//! Reads the two versions of the policies, and the objects of `--with`.

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;

use serde_json::Value;

use super::args::DiffArgs;
use crate::cli::check::finding::{Finding, Location, Severity};
use crate::cli::error::CliError;
use crate::cli::eval::setup::{Setup, Sources};
use crate::cli::input::combine::{Definitions, OverriddenObject};
use crate::cli::input::{Input, KindFilter, Object};
use crate::cli::live::Plan;
use crate::policy::rule::Rule;

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
    /// A note on the objects of `--with` that are not used, because OLD or NEW defines them.
    pub(super) note: Option<Finding>,
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
        let old = read(&args.old)?;
        let new = read(&args.new)?;
        let (old, ..) = setup(args, &args.old, old, &definitions, stdin)?;
        let (new, shared_probes, overridden) = setup(args, &args.new, new, &definitions, stdin)?;
        Ok(Self {
            old,
            new,
            shared_probes,
            note: overridden_note(args, &overridden),
        })
    }
}

/// The input of a version with the probes in its files, the probes of `--with`, and the objects of `--with` that are not
/// used.
type ReadVersion = (
    (Setup, Vec<Object<Value>>),
    Vec<Object<Value>>,
    Vec<OverriddenObject>,
);

/// Adds the objects of `--with` to a version, except those of `definitions`.
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
    let with: Vec<String> = args
        .with
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let location = Location::from_file(with.join(", "));
    let mut note = Finding::new(Severity::Note, Rule::DuplicateName, message, location);
    note.help = Some("the objects of OLD and NEW are compared".to_owned());
    Some(note)
}
