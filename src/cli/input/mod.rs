//! Manifests out of files, directories and standard input: policies, bindings, probes, params, CRDs
//! and namespaces, each with its place.
//!
//! Takes paths, gives API objects and a list of what could not be read. One bad document costs itself
//! alone. It knows nothing of what becomes of the objects.

pub mod comments;
pub mod decode;
pub mod edit;
pub mod files;
pub mod object;
pub mod passed_over;
pub mod place;
pub(in crate::cli) mod webhook;

use std::io::Read;
use std::path::PathBuf;
use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::{
    Mutation, ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use serde_json::Value;

use crate::policy::mutations;
use crate::schema::{Crd, GroupVersion, Gvk};

use comments::Comment;
use edit::Edit;
use files::{ReadFile, Reading};
use object::{Document, documents};
pub use object::{FieldPlaces, Object, values};
pub use place::{Place, SourceText};

/// The version that policies and bindings are read as.
pub const POLICY_VERSION: &str = "admissionregistration.k8s.io/v1";
/// The versions that policies and bindings have had.
const POLICY_VERSIONS: [&str; 3] = [
    POLICY_VERSION,
    "admissionregistration.k8s.io/v1beta1",
    "admissionregistration.k8s.io/v1alpha1",
];
/// The group of policies and bindings.
const POLICY_GROUP: &str = "admissionregistration.k8s.io";
/// The group of CustomResourceDefinitions.
const CRD_GROUP: &str = "apiextensions.k8s.io";
/// The group of probes.
const PROBE_GROUP: &str = "vap-status.dev";

/// The most documents, or items of lists, of one file: each takes 2 KiB or more.
const MAX_DOCUMENTS: usize = 100_000;

/// Which objects are of interest; others are dropped as they are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Policies, bindings and CRDs.
    Policies,
    /// CRDs alone.
    Crds,
    /// Everything, which is what tests need: any object may be a param.
    All,
}

/// Objects read from the input.
#[derive(Debug, Default)]
pub struct Input {
    /// The policies, of all versions as v1.
    pub policies: Vec<Object<ValidatingAdmissionPolicy>>,
    /// The bindings, of all versions as v1.
    pub bindings: Vec<Object<ValidatingAdmissionPolicyBinding>>,
    /// The mutating policies, of all versions as v1.
    pub mutating_policies: Vec<MutatingPolicy>,
    /// The bindings of mutating policies, of all versions as v1, as those of validating ones.
    pub mutating_bindings: Vec<Object<ValidatingAdmissionPolicyBinding>>,
    /// The configurations of webhooks, of either sort.
    pub webhooks: Vec<Object<Value>>,
    /// The CustomResourceDefinitions.
    pub crds: Vec<Object<Crd>>,
    /// The policies, bindings and CRDs that do not have the shape of their kind, with the reason.
    pub invalid: Vec<Object<String>>,
    /// The probes, `PolicyProbe` of `vap-status.dev`, as written.
    pub probes: Vec<Object<Value>>,
    /// The namespaces, as written.
    pub namespaces: Vec<Object<Value>>,
    /// All other objects, as written: params may be among them.
    pub others: Vec<Object<Value>>,
    /// The objects of other kinds that were dropped.
    pub dropped: passed_over::ByKind,
    /// Comments that are meant for a program.
    pub comments: Vec<Comment>,
    /// How many files and directories were left out.
    pub n_excluded: usize,
    /// The names of the files that were read.
    pub files: Vec<String>,
    /// Problems in the input, in order.
    pub problems: Vec<Problem>,
    /// How many files were read, standard input among them.
    pub n_files: usize,
    /// How many objects were in them, wanted or not.
    pub n_objects: usize,
    /// How many documents that are no Kubernetes objects were passed over below directories.
    pub n_passed_over: usize,
    /// How much aliases may still copy, in all files together.
    copies: goyaml::Copies,
}

/// A mutating policy.
#[derive(Debug)]
pub struct MutatingPolicy {
    /// The part that it shares with validating policies, with its own document.
    pub shared: Object<ValidatingAdmissionPolicy>,
    /// Its mutations.
    pub mutations: Vec<Mutation>,
    /// Its reinvocationPolicy.
    pub reinvocation: Option<String>,
}

/// Something that could not be read.
#[derive(Clone, Debug)]
pub struct Problem {
    /// Kind of the problem.
    pub kind: ProblemKind,
    /// The name of the file.
    pub file: String,
    /// Its text, where it has some.
    pub source: Option<Arc<SourceText>>,
    /// Where in the file.
    pub place: Option<Place>,
    /// Description of the problem.
    pub message: String,
    /// Advice.
    pub help: Option<String>,
    /// The one mend.
    pub fix: Option<Box<Edit>>,
}

/// Returns the problem of a file that cannot be read.
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

/// The kinds of trouble with input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProblemKind {
    /// A file or directory that cannot be read.
    Unreadable,
    /// A document that is no YAML.
    InvalidYaml,
    /// A document that may have nothing to do with policies, found below a directory, is no YAML.
    Doubtful,
    /// A document that is no Kubernetes object.
    NotAnObject,
    /// A policy or binding under the apiVersion of another API.
    WrongApiVersion,
    /// An object of the group of policies, of a kind that the group does not have.
    UnknownKind,
}

impl Input {
    /// Reads all of `paths`; `-` is `stdin`.
    #[must_use]
    pub fn load(paths: &[PathBuf], wanted: Wanted, stdin: &mut dyn Read) -> Self {
        Self::load_with(paths, wanted, stdin, &Reading::default())
    }

    /// Reads of `paths` what is not left out; `-` is `stdin`.
    #[must_use]
    pub fn load_with(
        paths: &[PathBuf],
        wanted: Wanted,
        stdin: &mut dyn Read,
        reading: &Reading<'_>,
    ) -> Self {
        let mut input = Self::default();
        let mut each = |file| input.add_file(file, wanted);
        input.n_excluded = files::read_all(paths, stdin, reading, &mut each);
        input
    }

    /// The policies of either sort; of mutating ones the part that they share with validating ones.
    pub fn all_policies(&self) -> impl Iterator<Item = &ValidatingAdmissionPolicy> + Clone {
        let mutating = self.mutating_policies.iter().map(|policy| &policy.shared);
        let all = self.policies.iter().chain(mutating);
        all.map(|policy| &policy.value)
    }

    /// The objects of a kind that is none of those with a list of their own: params, for one.
    ///
    /// Objects are there where [`Wanted::All`] was asked for; namespaces count too.
    pub fn objects_of_kind(&self, gvk: &Gvk) -> impl Iterator<Item = &Object<Value>> {
        let is_of_kind = |object: &&Object<Value>| {
            object.api_version() == gvk.api_version() && object.kind() == gvk.kind
        };
        self.others
            .iter()
            .chain(&self.namespaces)
            .filter(is_of_kind)
    }

    /// Adds an object of a cluster, which counts as no file.
    pub(in crate::cli) fn add_live(&mut self, file: ReadFile, wanted: Wanted) {
        let n_files = self.n_files;
        self.add_file(file, wanted);
        self.n_files = n_files;
    }

    /// Adds what is in a file.
    fn add_file(&mut self, file: ReadFile, wanted: Wanted) {
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
        let mut n_documents = 0;
        documents(&source, &mut copies, &mut |document| {
            n_documents += 1;
            match document {
                _ if n_documents > MAX_DOCUMENTS => {}
                Ok(document) => self.add_document(document, &source, file.is_given, wanted),
                Err(mut problem) => {
                    let mentions_policies = *mentions_policies
                        .get_or_insert_with(|| source.text().contains("AdmissionPolicy"));
                    if !file.is_given && !mentions_policies {
                        problem.kind = ProblemKind::Doubtful;
                    }
                    self.problems.push(problem);
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
        wanted: Wanted,
    ) {
        let text = |name| document.node.get(name).and_then(goyaml::Node::as_str);
        let (api_version, kind) = (text("apiVersion"), text("kind"));
        let (Some(api_version), Some(kind)) = (api_version, kind) else {
            let is_policy = kind.is_some_and(|kind| {
                ["ValidatingAdmissionPolicy", "MutatingAdmissionPolicy"].contains(&kind)
            });
            if !is_given && !is_policy {
                self.n_passed_over += 1;
                return;
            }
            let missing = match (api_version, kind) {
                (None, None) => "`apiVersion` and `kind`",
                (None, _) => "`apiVersion`",
                (_, _) => "`kind`",
            };
            self.problems.push(Problem {
                kind: ProblemKind::NotAnObject,
                file: source.name.clone(),
                place: Some(document.place(source, &document.node)),
                source: Some(Arc::clone(source)),
                message: format!("no Kubernetes object: {missing} missing"),
                help: Some(
                    "name only manifests, or a directory, below which others are passed over"
                        .to_owned(),
                ),
                fix: None,
            });
            return;
        };
        self.n_objects += 1;
        let (group, _) = GroupVersion::split(api_version);
        let all = wanted == Wanted::All;
        let is_policy_version = POLICY_VERSIONS.contains(&api_version);
        match (group, kind) {
            (_, "ValidatingAdmissionPolicy") if is_policy_version && wanted != Wanted::Crds => {
                self.decode(document, source, decode::policy, |input| {
                    &mut input.policies
                });
            }
            (_, "ValidatingAdmissionPolicyBinding")
                if is_policy_version && wanted != Wanted::Crds =>
            {
                self.decode(document, source, decode::binding, |input| {
                    &mut input.bindings
                });
            }
            (_, "MutatingAdmissionPolicy") if is_policy_version && wanted != Wanted::Crds => {
                self.decode_mutating(document, source);
            }
            (_, "MutatingAdmissionPolicyBinding")
                if is_policy_version && wanted != Wanted::Crds =>
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
                if wanted != Wanted::Crds =>
            {
                let node = document.node.get("apiVersion");
                let message = format!("no API has kind {kind} under apiVersion `{api_version}`");
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
                if api_version == POLICY_VERSION && wanted != Wanted::Crds =>
            {
                self.keep(document, source, |input| &mut input.webhooks);
            }
            (CRD_GROUP, "CustomResourceDefinition") => {
                let read = |value: Value| Crd::from_shared(Arc::new(value));
                self.decode(document, source, read, |input| &mut input.crds);
            }
            (PROBE_GROUP, "PolicyProbe") if all => {
                self.keep(document, source, |input| &mut input.probes);
            }
            ("", "Namespace") if all => {
                self.keep(document, source, |input| &mut input.namespaces);
            }
            _ if all => self.keep(document, source, |input| &mut input.others),
            _ if wanted == Wanted::Policies => {
                let kind = (api_version.to_owned(), kind.to_owned());
                self.pass_over(kind, &document, source);
            }
            _ => {}
        }
    }

    /// Counts an object of another kind, or tells that there is no such kind.
    fn pass_over(
        &mut self,
        (api_version, kind): (String, String),
        document: &Document,
        source: &Arc<SourceText>,
    ) {
        let node = document.node.nearest("kind");
        let place = document.place(source, node);
        if let passed_over::Kind::Unknown(meant) = passed_over::kind_of(&api_version, &kind) {
            let advice = meant.map(|meant| format!("did you mean `{meant}`? "));
            let fix = meant.and_then(|meant| document.edit_value(source, node, meant));
            self.problems.push(Problem {
                kind: ProblemKind::UnknownKind,
                file: source.name.clone(),
                place: Some(place),
                source: Some(Arc::clone(source)),
                message: format!("no API has kind `{kind}` under apiVersion `{api_version}`"),
                help: Some(format!(
                    "{}the API server refuses it",
                    advice.unwrap_or_default()
                )),
                fix: fix.map(Box::new),
            });
            return;
        }
        let of_kind = self.dropped.entry((api_version, kind));
        let of_kind = of_kind.or_insert_with(|| passed_over::PassedOver {
            n: 0,
            source: Arc::clone(source),
            place,
        });
        of_kind.n += 1;
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
                shared: Object::new(document, source, mutations::shared_part(&policy)),
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

    fn load(wanted: Wanted) -> Input {
        Input::load(&[PathBuf::from("-")], wanted, &mut MANIFESTS.as_bytes())
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
    fn objects_are_sorted_by_kind() {
        assert_eq!(counts(&load(Wanted::All)), [1, 1, 1, 1, 1, 1]);
        assert_eq!(counts(&load(Wanted::Policies)), [1, 1, 1, 0, 0, 0]);
        assert_eq!(counts(&load(Wanted::Crds)), [0, 0, 1, 0, 0, 0]);
        assert_eq!(load(Wanted::Crds).n_objects, 6);
    }

    #[test]
    fn params_are_found_by_their_kind() {
        let input = load(Wanted::All);
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
    fn a_probe_is_decoded_where_its_type_is_known() {
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
        let probe = load(Wanted::All).probes.remove(0);
        let probe = probe.decode::<Probe>().unwrap();
        assert_eq!(probe.value.spec.policy_name, "policy");
        let wrong = load(Wanted::All).others.remove(0).decode::<Probe>();
        assert!(wrong.unwrap_err().value.contains("spec"));
    }
}
