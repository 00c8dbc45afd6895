//! Adapts findings about files that are probably not manifests for a cluster: assertions of tests, and templates.

use std::path::Path;

use super::finding::{Finding, Severity};
use crate::cli::input::Object;
use crate::cli::input::object::TEMPLATE_HELP;
use crate::policy::rule::Rule;

/// The help of a finding about an assertion.
const ASSERTION: &str = "the API server rejects this object; ignore this finding if the file is a test assertion, \
    because assertions are never applied";

/// Returns true if the file probably has assertions, which are compared with a part of an object.
///
/// Source: the conventions of Chainsaw (`kyverno/chainsaw`) and Kyverno.
fn is_of_assertions(file: &str) -> bool {
    let path = Path::new(file);
    let mut directories = path.parent().into_iter().flat_map(Path::components);
    let name = path.file_name().and_then(|name| name.to_str());
    name.is_some_and(|name| name.contains("assert"))
        || directories.any(|it| it.as_os_str() == ".chainsaw-test")
}

/// Adapts the findings about an object that is probably an assertion or a template.
pub(super) fn adapt<T>(object: &Object<T>, findings: &mut [Finding]) {
    soften(object, findings);
    advise_rendering(object, findings);
}

/// Reports the missing fields of an assertion as notes.
fn soften<T>(object: &Object<T>, findings: &mut [Finding]) {
    if !is_of_assertions(&object.source.name) {
        return;
    }
    for finding in findings.iter_mut().filter(|it| it.rule == Rule::Required) {
        finding.severity = Severity::Note;
        finding.rejected = false;
        finding.help = Some(ASSERTION.to_owned());
    }
}

/// Returns true if `text` contains an action of a Go template.
fn has_template_action(text: &str) -> bool {
    let rest = text.split_once("{{");
    rest.is_some_and(|(_, rest)| rest.contains("}}"))
}

/// Advises to render the template if an invalid name or expression contains an action of a template.
fn advise_rendering<T>(object: &Object<T>, findings: &mut [Finding]) {
    for finding in findings {
        if !matches!(finding.rule, Rule::Syntax | Rule::InvalidName) {
            continue;
        }
        let field_ref = finding.field_ref.as_deref().unwrap_or_default();
        let node = object.document.node.nearest(field_ref);
        if node.as_str().is_some_and(has_template_action) {
            finding.help = Some(TEMPLATE_HELP.to_owned());
            finding.fix = None;
            finding.suggestions.clear();
        }
    }
}
