//! Checks static manifests: policies and bindings that an API server loads from a directory when it starts.
//!
//! The API server rejects the whole directory if one manifest is invalid.
//!
//! Source: `k8s.io/apiserver` `pkg/admission/plugin/manifest/{loader,validation}.go` (`LoadFiles`,
//! `ValidateManifestName`), `pkg/admission/plugin/policy/manifest/loader/loader.go` (`acceptFileObject`,
//! `validatePolicyManifestConstraints`, `validateBindingReferences`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use super::finding::{Finding, Location, Severity};
use super::policy::object_finding;
use super::validation;
use crate::cli::input::{Input, Object, POLICY_VERSION, SourceText};
pub(super) use crate::policy::exempt::STATIC_SUFFIX as SUFFIX;
use crate::policy::rule::Rule;
use crate::version::{KubernetesVersion, StaticNames};

/// The consequence of an invalid manifest.
const CONSEQUENCE: &str = "the API server rejects the whole directory";

/// Maximum number of findings about static manifests.
const MAX_FINDINGS: usize = 200;

/// Returns the findings about the objects of `input` that are in files of `dir`.
pub(super) fn check(dir: &Path, input: &Input) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut policies = BTreeMap::new();
    let names: BTreeSet<&str> = input
        .policies
        .iter()
        .filter(|policy| is_in(dir, &policy.source))
        .filter_map(Object::name)
        .collect();
    for policy in &input.policies {
        if !is_loaded(dir, policy, &mut findings) {
            continue;
        }
        check_common(policy, "policy", &mut policies, &mut findings);
        if policy.value.param_kind.is_some() {
            let message = "a static policy must not have a paramKind";
            add(
                policy,
                "spec.paramKind",
                message,
                "write the values into the expressions",
                &mut findings,
            );
        }
    }
    let mut bindings = BTreeMap::new();
    for binding in &input.bindings {
        if !is_loaded(dir, binding, &mut findings) {
            continue;
        }
        check_common(binding, "binding", &mut bindings, &mut findings);
        let spec = &binding.value.spec;
        if spec.param_ref.is_some() {
            add(
                binding,
                "spec.paramRef",
                "a static binding must not have a paramRef",
                "remove it",
                &mut findings,
            );
        }
        let policy = spec.policy_name.as_str();
        if !policy.ends_with(SUFFIX) {
            let message = format!(
                "a static binding must bind a static policy, whose name ends in `{SUFFIX}`"
            );
            add(
                binding,
                "spec.policyName",
                &message,
                "correct the policyName",
                &mut findings,
            );
        } else if !names.contains(policy) {
            let message = format!("the policy `{policy}` is not in the directory");
            add(
                binding,
                "spec.policyName",
                &message,
                "add its file",
                &mut findings,
            );
        }
    }
    for crd in input.crds.iter().filter(|crd| is_in(dir, &crd.source)) {
        let message = "a CustomResourceDefinition is not a static manifest";
        add(
            crd,
            "kind",
            message,
            "move the file to another directory, and pass that directory with --crds",
            &mut findings,
        );
    }
    check_other_kinds(dir, input, &mut findings);
    findings.truncate(MAX_FINDINGS);
    findings
}

/// Adds findings for objects of `dir` that are neither validating policies nor their bindings.
fn check_other_kinds(dir: &Path, input: &Input, findings: &mut Vec<Finding>) {
    let mutating = input.mutating_policies.iter();
    let mutating = mutating.map(|policy| (&policy.shared.source, policy.shared.kind()));
    let bindings = input.mutating_bindings.iter();
    let bindings = bindings.map(|binding| (&binding.source, binding.kind()));
    for (source, kind) in mutating.chain(bindings) {
        if is_in(dir, source) {
            let message = format!("{kind} is not allowed in a directory of validating policies");
            let location = Location::from_file(source.name.as_str());
            findings.push(Finding {
                help: Some(format!(
                    "move the object to a separate directory; {CONSEQUENCE}"
                )),
                ..Finding::new(Severity::Error, Rule::StaticManifest, message, location)
            });
        }
    }
    for ((api_version, kind), of) in &input.dropped {
        if is_in(dir, &of.source) {
            let location = Location::from_place(&of.source, of.place);
            let message = format!(
                "{api_version} {kind} is neither a policy nor a binding of {POLICY_VERSION}"
            );
            findings.push(Finding {
                help: Some(format!("move the file to another directory; {CONSEQUENCE}")),
                ..Finding::new(Severity::Error, Rule::StaticManifest, message, location)
            });
        }
    }
}

/// Returns the finding about a policy, binding or webhook configuration with a name that is reserved for static
/// manifests. `dir` contains the static manifests.
///
/// Source: kubernetes `pkg/apis/admissionregistration/validation/static_suffix.go` (`ValidateStaticSuffix`,
/// `WarningsForStaticSuffix`).
pub(in crate::cli) fn reserved_name<T>(
    object: &Object<T>,
    dir: Option<&Path>,
    version: KubernetesVersion,
) -> Option<Finding> {
    if !object.name().is_some_and(|name| name.ends_with(SUFFIX))
        || dir.is_some_and(|dir| is_in(dir, &object.source))
    {
        return None;
    }
    let (severity, is_rejected) = match version.behavior().static_names {
        StaticNames::Accepted => return None,
        StaticNames::Warned => (Severity::Warning, false),
        StaticNames::Rejected => (Severity::Error, true),
    };
    let message =
        format!("`metadata.name` ends with `{SUFFIX}`, which is reserved for static manifests");
    let field = "metadata.name";
    let node = object.document.node.nearest(field);
    let place = object.place_of(node);
    let mut finding = object_finding(object, severity, Rule::InvalidName, &message, place);
    finding.location.length = object.length_of(node);
    finding.field_ref = Some(field.to_owned());
    finding.rejected = is_rejected;
    finding.help = Some(if is_rejected {
        validation::help(Some(
            "rename the object, or check the directory of static manifests with --static",
        ))
    } else {
        "rename the object, or check the directory of static manifests with --static; API servers of 1.37 and newer reject \
         the name"
            .to_owned()
    });
    Some(finding)
}

/// Returns true if the file is in the directory itself. Files in subdirectories are not loaded.
fn is_in(dir: &Path, source: &SourceText) -> bool {
    Path::new(&source.name).parent() == Some(dir)
}

/// Returns true if the API server loads the file of the object. Adds a finding for a file in a subdirectory, which the
/// API server does not load.
fn is_loaded<T>(dir: &Path, object: &Object<T>, findings: &mut Vec<Finding>) -> bool {
    if is_in(dir, &object.source) {
        return true;
    }
    if Path::new(&object.source.name).starts_with(dir) {
        let message = "the file is in a subdirectory, which the API server does not load";
        let mut note = object_finding(
            object,
            Severity::Warning,
            Rule::StaticManifest,
            message,
            object.place(),
        );
        note.help = Some("move the file into the directory itself".to_owned());
        findings.push(note);
    }
    false
}

/// Adds the findings that apply to both policies and bindings.
fn check_common<'a, T>(
    object: &'a Object<T>,
    noun: &str,
    known: &mut BTreeMap<&'a str, &'a str>,
    findings: &mut Vec<Finding>,
) {
    let name = object.name().unwrap_or_default();
    if !name.ends_with(SUFFIX) {
        let message = format!("the name of a static {noun} must end in `{SUFFIX}`");
        let advice = format!("write `{name}{SUFFIX}`");
        add(object, "metadata.name", &message, &advice, findings);
    } else if let Some(first) = known.insert(name, &object.source.name) {
        let message = format!("the name `{name}` is also used in {first}");
        add(
            object,
            "metadata.name",
            &message,
            "choose a unique name",
            findings,
        );
    }
    if object.api_version() != POLICY_VERSION {
        let message = format!("static manifests must be {POLICY_VERSION}");
        add(
            object,
            "apiVersion",
            &message,
            &format!("write {POLICY_VERSION}"),
            findings,
        );
    }
}

fn add<T>(
    object: &Object<T>,
    field_ref: &str,
    message: &str,
    advice: &str,
    findings: &mut Vec<Finding>,
) {
    let node = object.document.node.nearest(field_ref);
    let place = object.place_of(node);
    let mut error = object_finding(
        object,
        Severity::Error,
        Rule::StaticManifest,
        message,
        place,
    );
    error.location.length = object.length_of(node);
    error.field_ref = Some(field_ref.to_owned());
    error.help = Some(format!("{advice}; {CONSEQUENCE}"));
    findings.push(error);
}
