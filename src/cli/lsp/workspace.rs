//! The files of a workspace: manifests on disk, replaced by the documents that are open in the client.
//!
//! A snapshot is cheap to clone, so other threads can use it while the client changes documents.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gen_lsp_types::Uri;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicyBinding;
use serde_json::{Value, json};

use super::cluster::ClusterState;
use super::uri;

use crate::cli::check::command::{self, Overrides, Plan};
use crate::cli::check::known::Known;
use crate::cli::check::report::CheckReport;
use crate::cli::check::settings::FindingArgs;
use crate::cli::check::{Cancellation, CheckedContainers, OtherFiles, check_file};
use crate::cli::error::CliError;
use crate::cli::input::files::{self, CONFIG_NAME, ReadFile, ReadOptions};
use crate::cli::input::{Input, KindFilter, Object, SourceText};
use crate::cli::live::{ClusterData, FileCounts};
use crate::cli::probe_check;
use crate::schema::{Crd, SchemaError};
use crate::version::KubernetesVersion;

/// Maximum number of files and directories of a workspace that are visited.
const MAX_VISITED: usize = 50_000;

/// Maximum total size of the files that contain objects, in bytes.
const MAX_BYTES: usize = 128 * 1024 * 1024;

type Binding = Object<ValidatingAdmissionPolicyBinding>;

/// A file of the workspace. It is parsed on first use.
#[derive(Debug)]
pub(super) struct File {
    pub(super) path: PathBuf,
    /// The URI as the client writes it.
    pub(super) uri: Uri,
    pub(super) source: Arc<SourceText>,
    /// The version of the document. `None` if it is not open.
    pub(super) version: Option<i32>,
    objects: OnceLock<Input>,
    containers: OnceLock<Vec<CheckedContainers>>,
}

impl File {
    fn new(path: &Path, text: String, document: Option<(Uri, i32)>) -> Arc<Self> {
        let name = path.display().to_string();
        let version = document.as_ref().map(|(_, version)| *version);
        Arc::new(Self {
            path: path.to_owned(),
            uri: document.map_or_else(|| uri::from_path(path), |(uri, _)| uri),
            source: Arc::new(SourceText::new(name, text)),
            version,
            objects: OnceLock::new(),
            containers: OnceLock::new(),
        })
    }

    /// Returns a copy of the file with a different text.
    pub(super) fn with_text(&self, text: String) -> Arc<Self> {
        Self::new(&self.path, text, Some((self.uri.clone(), 0)))
    }

    pub(super) fn objects(&self) -> &Input {
        self.objects.get_or_init(|| self.read(KindFilter::All))
    }

    /// Returns true if the file has objects that are checked.
    pub(super) fn has_subjects(&self) -> bool {
        let objects = self.objects();
        let n_bindings = objects.bindings.len() + objects.mutating_bindings.len();
        let n_others = objects.webhooks.len() + objects.crds.len() + objects.invalid.len();
        objects.all_policies().next().is_some() || n_bindings + n_others > 0
    }

    /// Returns the container fields that the policies of the file check. The result is cached, so all calls must pass
    /// the same version.
    fn containers(&self, version: KubernetesVersion) -> &[CheckedContainers] {
        self.containers.get_or_init(|| {
            let policies = self.objects().policies.iter();
            let reads = policies.map(|policy| CheckedContainers::new(&policy.value, version));
            reads.collect()
        })
    }

    pub(super) fn read(&self, filter: KindFilter) -> Input {
        let mut input = Input::default();
        self.add_to(&mut input, filter);
        input
    }

    fn add_to(&self, input: &mut Input, filter: KindFilter) {
        let mark = if self.source.has_byte_order_mark() {
            "\u{feff}"
        } else {
            ""
        };
        let file = ReadFile {
            name: self.source.name.clone(),
            is_given: false,
            text: Ok(format!("{mark}{}", self.source.text())),
        };
        input.add_file(file, filter);
    }

    /// Returns the parts of the file that affect the findings about other files: names, bindings and definitions.
    fn interface(&self) -> Vec<Value> {
        let objects = self.objects();
        let names = objects.all_policies().map(|policy| json!(policy.name));
        let invalid = objects.invalid.iter();
        let invalid = invalid.map(|invalid| json!([invalid.kind(), invalid.name()]));
        let bindings = objects.bindings.iter().chain(&objects.mutating_bindings);
        let bindings = bindings.map(|binding| binding.document.node.to_json());
        let crds = objects.crds.iter().map(|crd| crd.document.node.to_json());
        names.chain(invalid).chain(bindings).chain(crds).collect()
    }
}

/// A snapshot of the workspace.
#[derive(Clone, Debug)]
pub(super) struct Workspace {
    folders: Vec<PathBuf>,
    pub(super) plan: Arc<Plan>,
    files: Arc<BTreeMap<PathBuf, Arc<File>>>,
    /// The definitions in the paths `crds` of the configuration, which are used but not checked.
    more_crds: Arc<Vec<Object<Crd>>>,
    known: Arc<OnceLock<Option<Known>>>,
    /// The data of the cluster, if one is used and was read.
    cluster: Option<Arc<ClusterState>>,
    /// True if all files of the folders were read.
    is_complete: bool,
}

/// The extent of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Effect {
    /// Only the findings about the changed file may differ.
    File,
    /// The findings about other files may differ, too.
    Others,
}

impl Workspace {
    /// Reads the configuration and the manifests of the folders. The error of an invalid configuration is returned with the
    /// workspace, which then has the default configuration.
    pub(super) fn open(folders: Vec<PathBuf>) -> (Self, Option<CliError>) {
        let (plan, error) = plan(&folders);
        let mut workspace = Self {
            folders,
            plan: Arc::new(plan),
            files: Arc::default(),
            more_crds: Arc::default(),
            known: Arc::default(),
            cluster: None,
            is_complete: true,
        };
        workspace.read_files();
        (workspace, error)
    }

    /// Reads the configuration and all files again. Open documents remain.
    pub(super) fn reload(&mut self) -> Option<CliError> {
        let (plan, error) = plan(&self.folders);
        self.plan = Arc::new(plan);
        let files = Arc::make_mut(&mut self.files);
        files.retain(|_, file| file.version.is_some());
        self.read_files();
        error
    }

    pub(super) fn change_folders(
        &mut self,
        added: Vec<PathBuf>,
        removed: &[PathBuf],
    ) -> Option<CliError> {
        self.folders.retain(|folder| !removed.contains(folder));
        for folder in added {
            if !self.folders.contains(&folder) {
                self.folders.push(folder);
            }
        }
        self.reload()
    }

    pub(super) fn set_cluster(&mut self, cluster: ClusterState) {
        self.cluster = Some(Arc::new(cluster));
        self.known = Arc::default();
    }

    /// Returns true if the data of a cluster are used.
    pub(super) fn has_cluster(&self) -> bool {
        self.cluster.is_some()
    }

    /// Returns true if the policies of a file need schemas of the cluster that were not read.
    pub(super) fn lacks_schemas(&self, file: &File) -> bool {
        let (Some(cluster), Some(known)) = (&self.cluster, self.known()) else {
            return false;
        };
        cluster.lacks_schemas(file.objects().all_policies(), known)
    }

    /// Returns the objects of all files, and the definitions in the paths `crds` of the configuration.
    pub(super) fn all_objects(&self) -> (Input, Input) {
        let mut input = Input::default();
        for file in self.files() {
            file.add_to(&mut input, KindFilter::Policies);
        }
        (input, self.configured_crds())
    }

    fn configured_crds(&self) -> Input {
        let paths = &self.plan.options.crds;
        Input::load(paths, KindFilter::Crds, &mut std::io::empty())
    }

    /// Reads the files of the folders, up to the limits.
    fn read_files(&mut self) {
        let exclude = &self.plan.settings.exclude;
        let (visited, bytes) = (Cell::new(0), Cell::new(0));
        let is_full = || visited.get() > MAX_VISITED || bytes.get() > MAX_BYTES;
        let options = ReadOptions {
            is_excluded: &|path| {
                visited.set(visited.get() + 1);
                is_full() || exclude.has(path)
            },
            ..ReadOptions::default()
        };
        let all = Arc::make_mut(&mut self.files);
        files::read_all(
            &self.folders,
            &mut std::io::empty(),
            &options,
            &mut |file| {
                let path = PathBuf::from(&file.name);
                if let Ok(text) = file.text
                    && has_objects(&text)
                {
                    bytes.set(bytes.get() + text.len());
                    let read = || File::new(&path, text, None);
                    all.entry(path.clone()).or_insert_with(read);
                }
            },
        );
        self.is_complete = !is_full();
        self.more_crds = Arc::new(self.configured_crds().crds);
        self.known = Arc::default();
    }

    /// Returns the reason if some files of the folders were not read.
    pub(super) fn incomplete(&self) -> Option<String> {
        let mib = MAX_BYTES / 1024 / 1024;
        (!self.is_complete).then(|| {
            format!(
                "the folders have more than {MAX_VISITED} manifests and directories, or {mib} MiB of objects; the others \
                 are not read. Open a smaller folder, or exclude directories in {CONFIG_NAME}"
            )
        })
    }

    pub(super) fn file(&self, path: &Path) -> Option<&Arc<File>> {
        self.files.get(path)
    }

    /// Returns all files, in the order of their paths.
    pub(super) fn files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.files.values()
    }

    pub(super) fn open_files(&self) -> impl Iterator<Item = &Arc<File>> {
        self.files().filter(|file| file.version.is_some())
    }

    /// Sets the text of an open document.
    pub(super) fn set_document(&mut self, uri: Uri, text: String, version: i32) -> Effect {
        let path = uri::path(&uri.0);
        let file = File::new(&path, text, Some((uri, version)));
        self.insert(&path, Some(&file))
    }

    /// Replaces a file with its content on disk, or removes it if there is none. An open document keeps its text unless
    /// `is_closed` is true.
    pub(super) fn read_from_disk(&mut self, path: &Path, is_closed: bool) -> Effect {
        let is_open = self.file(path).is_some_and(|file| file.version.is_some());
        if is_open && !is_closed {
            return Effect::File;
        }
        let is_inside = self.folders.iter().any(|folder| path.starts_with(folder))
            && files::is_manifest(path)
            && !self.is_excluded(path);
        let mut new = None;
        if is_inside && path.is_file() {
            let path = [path.to_owned()];
            let options = ReadOptions::default();
            files::read_all(&path, &mut std::io::empty(), &options, &mut |file| {
                let path = Path::new(&file.name);
                let text = file.text.ok().filter(|text| has_objects(text));
                new = text.map(|text| File::new(path, text, None));
            });
        }
        self.insert(path, new.as_ref())
    }

    fn insert(&mut self, path: &Path, new: Option<&Arc<File>>) -> Effect {
        let files = Arc::make_mut(&mut self.files);
        let old = match new {
            Some(new) => files.insert(path.to_owned(), Arc::clone(new)),
            None => files.remove(path),
        };
        if let (Some(old), Some(new)) = (&old, new)
            && old.source.text() == new.source.text()
        {
            return Effect::File;
        }
        let (old, new) = (old.as_deref(), new.map(|new| &**new));
        let has_crds = |file: &File| !file.objects().crds.is_empty();
        let interface = |file: Option<&File>| file.map(File::interface).unwrap_or_default();
        if interface(old) == interface(new) {
            return Effect::File;
        }
        if old.is_some_and(has_crds) || new.is_some_and(has_crds) {
            self.known = Arc::default();
        }
        Effect::Others
    }

    /// Returns true if the configuration excludes the path or one of its parents in the workspace.
    pub(super) fn is_excluded(&self, path: &Path) -> bool {
        let exclude = &self.plan.settings.exclude;
        let is_below = |path: &&Path| self.folders.iter().any(|folder| path.starts_with(folder));
        path.ancestors()
            .take_while(is_below)
            .any(|path| exclude.has(path))
    }

    /// Returns true if a change of the file at `path` changes the configuration.
    pub(super) fn is_configuration(&self, path: &Path) -> bool {
        let mut of_plan = self.plan.files();
        path.file_name().is_some_and(|name| name == CONFIG_NAME)
            || of_plan.any(|file| path.starts_with(&file))
    }

    /// Returns the APIs of Kubernetes or of the cluster, and of all definitions in the workspace. `None` if the built-in
    /// schemas cannot be read.
    pub(super) fn known(&self) -> Option<&Known> {
        let apis = self.known.get_or_init(|| {
            let of_files = self.files().flat_map(|file| &file.objects().crds);
            let crds = of_files.chain(self.more_crds.iter());
            let crds = crds.map(|crd| crd.value.clone());
            let version = self.plan.options.version;
            let apis: Result<_, SchemaError> = match &self.cluster {
                Some(cluster) => Known::with_cluster(version, crds, Arc::clone(&cluster.served)),
                None => Known::new(version, crds, std::iter::empty()),
            };
            apis.ok()
        });
        apis.as_ref()
    }

    /// Checks a file. `None` if the built-in schemas cannot be read.
    pub(super) fn check(&self, file: &File, cancellation: Cancellation) -> Option<CheckReport> {
        let (input, context) = self.input(file);
        let mut apis = self.known()?.for_policies(input.all_policies());
        apis.cancellation = cancellation;
        let version = apis.version();
        let others = || self.files().filter(|other| other.path != file.path);
        let container_reads = || {
            others()
                .flat_map(|other| other.containers(version))
                .collect()
        };
        let (before, after): (Vec<&Arc<File>>, Vec<&Arc<File>>) =
            others().partition(|other| other.path < file.path);
        let others = OtherFiles {
            before: before.into_iter().map(|file| file.objects()).collect(),
            after: after.into_iter().map(|file| file.objects()).collect(),
            container_reads: &container_reads,
        };
        let plan = &self.plan;
        check_file(
            &plan.options,
            &plan.settings,
            &apis,
            input,
            (&others, context),
        )
        .ok()
    }

    /// Returns the objects of a file, and the objects of other files that affect its findings.
    fn input(&self, file: &File) -> (Input, ClusterData) {
        let mut input = file.read(KindFilter::Policies);
        let mut context = ClusterData {
            file_counts: FileCounts::new(&input),
            ..ClusterData::default()
        };
        let names = |input: &Input| -> BTreeSet<String> {
            let names = input
                .all_policies()
                .filter_map(|policy| policy.name.clone());
            names.collect()
        };
        let own = names(&input);
        let is_bound = |binding: &&Binding| own.contains(&binding.value.spec.policy_name);
        let add_bindings = |input: &mut Input, validating: &[Binding], mutating: &[Binding]| {
            let bound = validating.iter().filter(is_bound).cloned();
            input.bindings.extend(bound);
            let bound = mutating.iter().filter(is_bound).cloned();
            input.mutating_bindings.extend(bound);
        };
        context.has_bindings = !input.bindings.is_empty();
        context.has_mutating_bindings = !input.mutating_bindings.is_empty();
        for other in self.files() {
            if other.path == file.path {
                continue;
            }
            let objects = other.objects();
            add_bindings(&mut input, &objects.bindings, &objects.mutating_bindings);
            context.has_bindings |= !objects.bindings.is_empty();
            context.has_mutating_bindings |= !objects.mutating_bindings.is_empty();
            let policies = objects.policies.iter().filter_map(Object::name);
            context.other_policies.extend(policies.map(str::to_owned));
            let policies = objects.mutating_policies.iter();
            let policies = policies.filter_map(|policy| policy.shared.name());
            context.other_mutating.extend(policies.map(str::to_owned));
            for invalid in &objects.invalid {
                let names = match invalid.kind() {
                    "ValidatingAdmissionPolicy" => &mut context.other_policies,
                    "MutatingAdmissionPolicy" => &mut context.other_mutating,
                    _ => continue,
                };
                names.extend(invalid.name().map(str::to_owned));
            }
            Self::add_other_files(&mut input, objects, &other.source);
        }
        if let Some(cluster) = self.cluster.as_deref() {
            add_bindings(&mut input, &cluster.bindings, &cluster.mutating_bindings);
            let data = &cluster.data;
            context.has_bindings |= data.has_bindings;
            context.has_mutating_bindings |= data.has_mutating_bindings;
            context.server.clone_from(&data.server);
            let names = data.other_policies.iter().cloned();
            context.other_policies.extend(names);
            let names = data.other_mutating.iter().cloned();
            context.other_mutating.extend(names);
        }
        (input, context)
    }

    /// Adds `source` to `other_files` of each policy of `input` that has the same name as a policy in `objects`.
    fn add_other_files(input: &mut Input, objects: &Input, source: &Arc<SourceText>) {
        let has = |name: Option<&str>| {
            let mut names = objects.all_policies().filter_map(|it| it.name.as_deref());
            name.is_some_and(|name| names.any(|other| other == name))
        };
        let mutating = input.mutating_policies.iter_mut();
        let mutating = mutating.map(|policy| &mut policy.shared);
        for policy in input.policies.iter_mut().chain(mutating) {
            if has(policy.name()) {
                let mut others = std::mem::take(&mut policy.other_files).into_vec();
                others.push(Arc::clone(source));
                policy.other_files = others.into();
            }
        }
    }
}

/// Returns false if the text of a file cannot contain a Kubernetes object.
fn has_objects(text: &str) -> bool {
    text.contains("apiVersion")
}

/// Returns the plan of a check of the folders. If the configuration is invalid, returns the default plan and the error.
fn plan(folders: &[PathBuf]) -> (Plan, Option<CliError>) {
    let overrides = Overrides::default();
    match command::plan_with(&FindingArgs::default(), overrides, folders) {
        Ok(mut plan) => {
            plan.settings.probe_check = Some(probe_check::check);
            (plan, None)
        }
        Err(error) => {
            let plan = Plan {
                options: crate::cli::check::Options::default(),
                settings: crate::cli::check::settings::Settings::default(),
                is_strict: false,
            };
            (plan, Some(error))
        }
    }
}
