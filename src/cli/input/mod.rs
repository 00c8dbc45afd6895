//! Reads manifests from files, directories and standard input: policies, bindings, probes, params, CRDs and
//! namespaces, each with its location.
//!
//! A document that cannot be read becomes a problem, and does not affect the others.

pub(in crate::cli) mod combine;
pub mod comments;
pub mod decode;
pub mod edit;
pub mod files;
pub mod object;
pub mod place;
mod repair;
pub mod skipped;
pub(in crate::cli) mod webhook;

use std::collections::BTreeSet;
use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{Mutation, ValidatingAdmissionPolicyBinding};
use serde_json::Value;

use crate::policy::RequestPolicy;
use crate::policy::mutations;
use crate::schema::{Crd, GroupVersion, Gvk};

use comments::Comment;
use edit::Edit;
use files::{ReadFile, ReadOptions};
use object::{Document, documents, yaml_documents};
pub use object::{FieldPlaces, Object, TAG_HELP, values};
pub use place::{Place, SourceText};

/// The version to which policies and bindings are converted.
pub const POLICY_VERSION: &str = "admissionregistration.k8s.io/v1";
const POLICY_VERSIONS: [&str; 3] = [
    POLICY_VERSION,
    "admissionregistration.k8s.io/v1beta1",
    "admissionregistration.k8s.io/v1alpha1",
];
const POLICY_GROUP: &str = "admissionregistration.k8s.io";
const CRD_GROUP: &str = "apiextensions.k8s.io";
pub(in crate::cli) const PROBE_GROUP: &str = "vap-status.dev";

/// Maximum number of documents and list items per file: each uses at least 2 KiB of memory.
const MAX_DOCUMENTS: usize = 100_000;

/// Maximum number of invalid documents per file that the parser tries to repair.
const MAX_REPAIRED: usize = 50;

/// The kinds of objects to read; others are dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindFilter {
    /// Policies, bindings and CRDs.
    Policies,
    /// Only CRDs.
    Crds,
    /// All objects, because any object may be a param.
    All,
}

/// Objects read from the input.
#[derive(Debug, Default)]
pub struct Input {
    /// The policies, converted to v1.
    pub policies: Vec<Object<RequestPolicy>>,
    /// The bindings, converted to v1.
    pub bindings: Vec<Object<ValidatingAdmissionPolicyBinding>>,
    /// The mutating policies, converted to v1.
    pub mutating_policies: Vec<MutatingPolicy>,
    /// The bindings of mutating policies, converted to bindings of validating policies.
    pub mutating_bindings: Vec<Object<ValidatingAdmissionPolicyBinding>>,
    /// The validating and mutating webhook configurations.
    pub webhooks: Vec<Object<Value>>,
    /// The CustomResourceDefinitions.
    pub crds: Vec<Object<Crd>>,
    /// The policies, bindings and CRDs that cannot be decoded, with the reason.
    pub invalid: Vec<Object<String>>,
    /// The probes (`PolicyProbe` of `vap-status.dev`), not yet decoded.
    pub probes: Vec<Object<Value>>,
    /// The namespaces, not yet decoded.
    pub namespaces: Vec<Object<Value>>,
    /// All other objects, including params, not yet decoded.
    pub others: Vec<Object<Value>>,
    /// The objects of other kinds that were dropped.
    pub dropped: skipped::ByKind,
    /// The prefixes and suffixes that the Kustomizations of the input add to names.
    pub name_affixes: Vec<(String, String)>,
    /// The directive comments.
    pub comments: Vec<Comment>,
    /// The number of excluded files and directories.
    pub n_excluded: usize,
    /// The names of the files that were read.
    pub files: Vec<String>,
    /// Problems in the input, in order.
    pub problems: Vec<Problem>,
    /// The number of files that were read, including standard input.
    pub n_files: usize,
    /// The number of objects in the files, including dropped ones.
    pub n_objects: usize,
    /// The number of documents in directories that were skipped, since they are not Kubernetes objects.
    pub n_skipped: usize,
    /// The remaining budget for values that YAML aliases copy, for all files together.
    copies: goyaml::Copies,
}

/// A mutating policy.
#[derive(Debug)]
pub struct MutatingPolicy {
    /// The fields that mutating and validating policies share, with the document of the mutating policy.
    pub shared: Object<RequestPolicy>,
    /// The mutations.
    pub mutations: Vec<Mutation>,
    /// The reinvocationPolicy.
    pub reinvocation: Option<String>,
}

/// A problem that was found while reading the input.
#[derive(Clone, Debug)]
pub struct Problem {
    /// The kind of the problem.
    pub kind: ProblemKind,
    /// The name of the file.
    pub file: String,
    /// The content of the file, if it was read.
    pub source: Option<Arc<SourceText>>,
    /// The location in the file.
    pub place: Option<Place>,
    /// The message, without the location.
    pub message: String,
    /// A hint on how to resolve the problem.
    pub help: Option<String>,
    /// The fix, if there is exactly one.
    pub fix: Option<Box<Edit>>,
}

fn unreadable(file: String, reason: &str) -> Problem {
    Problem {
        kind: ProblemKind::Unreadable,
        message: format!("cannot read {file}: {reason}"),
        file,
        source: None,
        place: None,
        help: None,
        fix: None,
    }
}

/// Returns all YAML errors of the document that contains `problem`. If the whole document can be repaired, each error
/// has an edit.
fn repaired(source: &Arc<SourceText>, problem: Problem) -> Vec<Problem> {
    let Some(place) = problem.place else {
        return vec![problem];
    };
    let byte = source.byte_at(place);
    let document = yaml_documents(source)
        .into_iter()
        .find(|bytes| bytes.contains(&byte) || bytes.end == byte);
    let written = document.and_then(|bytes| Some((bytes.start, source.text().get(bytes)?)));
    let Some((base, written)) = written.filter(|(_, text)| text.len() <= repair::MAX_BYTES) else {
        return vec![problem];
    };
    // A template is not repaired, because it becomes valid YAML only when it is rendered.
    if written.contains("{{") {
        return vec![problem];
    }
    let (repairs, error) = repair::repairs(written);
    if repairs.is_empty() && error.is_none() {
        // The document itself is valid. The problem is a limit for the whole file.
        return vec![problem];
    }
    let mut problems: Vec<Problem> = Vec::new();
    for repair in repairs {
        let edit = Edit::repair(
            source,
            base + repair.bytes.start..base + repair.bytes.end,
            repair.text,
        );
        problems.push(Problem {
            place: Some(source.place(base + repair.at)),
            message: format!("invalid YAML: {}", repair.message),
            help: Some(repair.help),
            fix: error.is_none().then(|| Box::new(edit)),
            ..problem.clone()
        });
    }
    if let Some((at, message)) = error {
        let place = source.place(base + at);
        let help = (problem.help.clone()).filter(|_| problems.is_empty());
        let has_expression = || repair::is_of_expression(source.line(place.line));
        problems.push(Problem {
            place: Some(place),
            message: format!("invalid YAML: {message}"),
            help: help.or_else(|| has_expression().then(|| repair::QUOTE_HELP.to_owned())),
            ..problem
        });
    }
    problems
}

/// The kinds of problems with the input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A file or directory that cannot be read.
    Unreadable,
    /// A document that is not valid YAML.
    InvalidYaml,
    /// A document that is not valid YAML, from a file in a directory. It is probably unrelated to policies.
    Doubtful,
    /// A document that is not a Kubernetes object.
    NotAnObject,
    /// A policy or binding with the apiVersion of a different API.
    WrongApiVersion,
    /// An object in the API group of policies, with an unknown kind.
    UnknownKind,
    /// A kustomize patch of a policy, binding, webhook configuration or CustomResourceDefinition.
    Patch,
}

impl Input {
    /// Reads `paths`; `-` is `stdin`.
    #[must_use]
    pub fn load(paths: &[PathBuf], filter: KindFilter, stdin: &mut dyn Read) -> Self {
        Self::load_with(paths, filter, stdin, &ReadOptions::default())
    }

    /// Reads `paths` with options; `-` is `stdin`.
    #[must_use]
    pub fn load_with(
        paths: &[PathBuf],
        filter: KindFilter,
        stdin: &mut dyn Read,
        options: &ReadOptions<'_>,
    ) -> Self {
        let mut input = Self::default();
        let mut each = |file| input.add_file(file, filter);
        input.n_excluded = files::read_all(paths, stdin, options, &mut each);
        input
    }

    /// Returns the validating policies and the shared parts of the mutating policies.
    pub fn all_policies(&self) -> impl Iterator<Item = &RequestPolicy> + Clone {
        let mutating = self.mutating_policies.iter().map(|policy| &policy.shared);
        let all = self.policies.iter().chain(mutating);
        all.map(|policy| &policy.value)
    }

    /// Returns the namespaces or other objects of a kind, such as params.
    ///
    /// The input must have been loaded with [`KindFilter::All`].
    pub fn objects_of_kind(&self, gvk: &Gvk) -> impl Iterator<Item = &Object<Value>> {
        let is_of_kind = |object: &&Object<Value>| {
            object.api_version() == gvk.api_version() && object.kind() == gvk.kind
        };
        self.others
            .iter()
            .chain(&self.namespaces)
            .filter(is_of_kind)
    }

    /// Adds an object of a cluster. It does not count as a file.
    pub(in crate::cli) fn add_live(&mut self, file: ReadFile, filter: KindFilter) {
        let n_files = self.n_files;
        self.add_file(file, filter);
        self.n_files = n_files;
    }

    pub(in crate::cli) fn add_file(&mut self, file: ReadFile, filter: KindFilter) {
        let text = match file.text {
            Ok(text) => text,
            Err(reason) => {
                self.problems.push(unreadable(file.name, &reason));
                return;
            }
        };
        self.n_files += 1;
        let source = Arc::new(SourceText::new(file.name, text));
        self.files.push(source.name.clone());
        self.comments.extend(comments::comments(&source));
        let mut mentions_policies = None;
        let mut copies = std::mem::take(&mut self.copies);
        let (mut n_documents, mut n_repaired) = (0, 0);
        documents(&source, &mut copies, &mut |document| {
            n_documents += 1;
            match document {
                _ if n_documents > MAX_DOCUMENTS => {}
                Ok(document) => self.add_document(document, &source, file.is_given, filter),
                Err(mut problem) => {
                    let mentions_policies = *mentions_policies
                        .get_or_insert_with(|| source.text().contains("AdmissionPolicy"));
                    if !file.is_given && !mentions_policies {
                        problem.kind = ProblemKind::Doubtful;
                        self.problems.push(problem);
                    } else if n_repaired < MAX_REPAIRED {
                        n_repaired += 1;
                        self.problems.extend(repaired(&source, problem));
                    } else {
                        self.problems.push(problem);
                    }
                }
            }
        });
        if n_documents > MAX_DOCUMENTS {
            let reason = format!("more than {MAX_DOCUMENTS} documents; split the file");
            self.problems.push(unreadable(source.name.clone(), &reason));
        }
        self.copies = copies;
    }

    fn add_document(
        &mut self,
        document: Document,
        source: &Arc<SourceText>,
        is_given: bool,
        filter: KindFilter,
    ) {
        let text = |name| document.node.get(name).and_then(goyaml::Node::as_str);
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (Some(api_version), Some(kind)) = (api_version, kind) else {
            let is_of_interest = is_given || skipped::is_policy(&document);
            if is_of_interest {
                self.problems
                    .push(skipped::missing_fields(&document, source));
            } else {
                self.n_skipped += 1;
            }
            return;
        };
        self.n_objects += 1;
        let (group, _) = GroupVersion::split(api_version);
        let is_checked = group == CRD_GROUP || group == POLICY_GROUP && filter != KindFilter::Crds;
        let is_patch = document.node.get(skipped::PATCH_DIRECTIVE).is_some()
            || skipped::is_webhook_patch(kind, &document);
        if is_checked && is_patch {
            self.problems.push(skipped::patch(kind, &document, source));
            return;
        }
        if kind == "Kustomization" {
            let affix = |name| text(name).unwrap_or_default().to_owned();
            let affixes = (affix("namePrefix"), affix("nameSuffix"));
            if !affixes.0.is_empty() || !affixes.1.is_empty() {
                self.name_affixes.push(affixes);
            }
        }
        let all = filter == KindFilter::All;
        let is_policy_version = POLICY_VERSIONS.contains(&api_version);
        match (group, kind) {
            (_, "ValidatingAdmissionPolicy") if is_policy_version && filter != KindFilter::Crds => {
                let read = |value| decode::policy(value).map(RequestPolicy::from);
                self.decode(document, source, read, |input| &mut input.policies);
            }
            (_, "ValidatingAdmissionPolicyBinding")
                if is_policy_version && filter != KindFilter::Crds =>
            {
                self.decode(document, source, decode::binding, |input| {
                    &mut input.bindings
                });
            }
            (_, "MutatingAdmissionPolicy") if is_policy_version && filter != KindFilter::Crds => {
                self.decode_mutating(document, source);
            }
            (_, "MutatingAdmissionPolicyBinding")
                if is_policy_version && filter != KindFilter::Crds =>
            {
                let read = |value| {
                    let binding = decode::mutating_binding(value)?;
                    let shared = mutations::shared_part_of_binding(&binding);
                    Ok::<_, serde_json::Error>(shared)
                };
                self.decode(document, source, read, |input| &mut input.mutating_bindings);
            }
            (_, "ValidatingAdmissionPolicy" | "ValidatingAdmissionPolicyBinding")
            | (POLICY_GROUP, "MutatingAdmissionPolicy" | "MutatingAdmissionPolicyBinding")
                if filter != KindFilter::Crds =>
            {
                let node = document.node.get("apiVersion");
                let message = format!("no API has kind {kind} with apiVersion `{api_version}`");
                self.problems.push(Problem {
                    kind: ProblemKind::WrongApiVersion,
                    file: source.name.clone(),
                    place: node.map(|node| document.place(source, node)),
                    source: Some(Arc::clone(source)),
                    message,
                    help: Some(format!("write `apiVersion: {POLICY_VERSION}`")),
                    fix: node
                        .and_then(|node| document.edit_value(source, node, POLICY_VERSION))
                        .map(Box::new),
                });
            }
            (_, "ValidatingWebhookConfiguration" | "MutatingWebhookConfiguration")
                if api_version == POLICY_VERSION && filter != KindFilter::Crds =>
            {
                self.keep(document, source, |input| &mut input.webhooks);
            }
            (CRD_GROUP, "CustomResourceDefinition") => {
                let read = |value: Value| Crd::from_shared(Arc::new(value));
                self.decode(document, source, read, |input| &mut input.crds);
            }
            (PROBE_GROUP, "PolicyProbe") if filter != KindFilter::Crds => {
                self.keep(document, source, |input| &mut input.probes);
            }
            ("", "Namespace") if all => {
                self.keep(document, source, |input| &mut input.namespaces);
            }
            _ if all => self.keep(document, source, |input| &mut input.others),
            _ if filter == KindFilter::Policies => {
                let kind = (api_version.to_owned(), kind.to_owned());
                self.skip_object(kind, document, source);
            }
            _ => {}
        }
    }

    /// Counts an object whose kind is not checked, or adds a problem if no API has the kind.
    fn skip_object(
        &mut self,
        (api_version, kind): (String, String),
        document: Document,
        source: &Arc<SourceText>,
    ) {
        let node = document.node.nearest("kind");
        let place = document.place(source, node);
        if let skipped::Kind::Unknown(meant) = skipped::kind_of(&api_version, &kind) {
            let advice = meant.map(|meant| format!("did you mean `{meant}`? "));
            let fix = meant.and_then(|meant| document.edit_value(source, node, meant));
            self.problems.push(Problem {
                kind: ProblemKind::UnknownKind,
                file: source.name.clone(),
                place: Some(place),
                source: Some(Arc::clone(source)),
                message: format!("no API has kind `{kind}` with apiVersion `{api_version}`"),
                help: Some(format!(
                    "{}the API server rejects the object",
                    advice.unwrap_or_default()
                )),
                fix: fix.map(Box::new),
            });
            return;
        }
        let of_kind = self.dropped.entry((api_version, kind));
        let of_kind = of_kind.or_insert_with(|| skipped::SkippedKind {
            n: 0,
            source: Arc::clone(source),
            place,
            names: BTreeSet::new(),
            objects: Vec::new(),
        });
        of_kind.add(document, source);
    }

    fn keep(
        &mut self,
        document: Document,
        source: &Arc<SourceText>,
        of: impl Fn(&mut Self) -> &mut Vec<Object<Value>>,
    ) {
        let value = document.node.to_json();
        of(self).push(Object::new(document, source, value));
    }

    fn decode_mutating(&mut self, document: Document, source: &Arc<SourceText>) {
        match decode::mutating_policy(document.node.to_json()) {
            Ok(policy) => self.mutating_policies.push(MutatingPolicy {
                shared: Object::new(document, source, RequestPolicy::from(&policy)),
                mutations: mutations::mutations(&policy).to_vec(),
                reinvocation: policy.spec.and_then(|spec| spec.reinvocation_policy),
            }),
            Err(error) => {
                let invalid = Object::new(document, source, error.to_string());
                self.invalid.push(invalid);
            }
        }
    }

    fn decode<T, E: std::fmt::Display>(
        &mut self,
        document: Document,
        source: &Arc<SourceText>,
        read: impl Fn(Value) -> Result<T, E>,
        of: impl Fn(&mut Self) -> &mut Vec<Object<T>>,
    ) {
        match read(document.node.to_json()) {
            Ok(value) => of(self).push(Object::new(document, source, value)),
            Err(error) => {
                let invalid = Object::new(document, source, error.to_string());
                self.invalid.push(invalid);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MANIFESTS: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: policy}
---
apiVersion: v1
kind: List
items:
- {apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {name: b}}
- {apiVersion: v1, kind: Namespace, metadata: {name: team}}
- {apiVersion: v1, kind: ConfigMap, metadata: {name: params, namespace: team}, data: {a: b}}
---
apiVersion: vap-status.dev/v1alpha1
kind: PolicyProbe
metadata: {name: probe}
spec: {policyName: policy}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
spec:
  group: example.com
  names: {kind: Widget, plural: widgets}
  versions: [{name: v1, served: true}]
";

    fn load(filter: KindFilter) -> Input {
        Input::load(&[PathBuf::from("-")], filter, &mut MANIFESTS.as_bytes())
    }

    fn counts(input: &Input) -> [usize; 6] {
        [
            input.policies.len(),
            input.bindings.len(),
            input.crds.len(),
            input.probes.len(),
            input.namespaces.len(),
            input.others.len(),
        ]
    }

    #[test]
    fn filter_selects_loaded_objects_by_kind() {
        assert_eq!(counts(&load(KindFilter::All)), [1, 1, 1, 1, 1, 1]);
        assert_eq!(counts(&load(KindFilter::Policies)), [1, 1, 1, 1, 0, 0]);
        assert_eq!(counts(&load(KindFilter::Crds)), [0, 0, 1, 0, 0, 0]);
        assert_eq!(load(KindFilter::Crds).n_objects, 6);
    }

    #[test]
    fn params_are_found_by_kind() {
        let input = load(KindFilter::All);
        let config_map = Gvk::new("", "v1", "ConfigMap");
        let params: Vec<_> = input.objects_of_kind(&config_map).collect();
        let [only] = &params[..] else {
            panic!("{params:?}")
        };
        assert_eq!(
            (only.name(), only.namespace()),
            (Some("params"), Some("team"))
        );
        assert_eq!(only.value["data"]["a"], "b");
        assert_eq!(
            only.place(),
            Place {
                line: 10,
                column: 54
            }
        );
        let none = Gvk::new("example.com", "v1", "ConfigMap");
        assert_eq!(input.objects_of_kind(&none).count(), 0);
    }

    #[test]
    fn probe_is_decoded_into_typed_object() {
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Probe {
            spec: Spec,
        }
        #[derive(Debug, serde::Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Spec {
            policy_name: String,
        }
        let probe = load(KindFilter::All).probes.remove(0);
        let probe = probe.decode::<Probe>().unwrap();
        assert_eq!(probe.value.spec.policy_name, "policy");
        let wrong = load(KindFilter::All).others.remove(0).decode::<Probe>();
        assert!(wrong.unwrap_err().value.contains("spec"));
    }
}
