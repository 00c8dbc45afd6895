//! Finds errors for which the API server rejects CustomResourceDefinitions in files, including errors in schemas and
//! validation rules.

use goyaml::{Data, Node};

use super::advice;
use super::api_version;
use super::finding::{Assumption, Finding, Owner, Severity};
use super::other_languages;
use super::policy::object_finding;
use super::rewrite::{self, Problem, Proposal};
use super::shape;
use super::suggestion::{self, Suggestions, nearest_only};
use super::time_limit::{Cancellation, within_time_limit};
use super::validation::help;
use crate::cel::diagnostic::{Diagnostic, DiagnosticKind};
use crate::cel::source::SourceMap;
use crate::cel::syntax;
use crate::cli::input::Object;
use crate::cli::input::edit::Edit;
use crate::cli::parallel;
use crate::custom_resource::{IgnoredFormat, ignored_formats, validate_definition};
use crate::policy::RequestPolicy;
use crate::policy::expressions::Role;
use crate::policy::nearest::nearest as nearest_name;
use crate::policy::rule::Rule;
use crate::schema::Crd;
use crate::validation_rules::{
    DefinitionCause, DefinitionError, ExpressionErrorKind, FieldErrorKind, KEYWORDS, PathStep,
    definition_errors, schema_errors,
};
use crate::version::KubernetesVersion;

/// Maximum number of findings per definition.
const MAX_FINDINGS: usize = 200;

/// Returns the errors for which an API server of `version` rejects the definitions.
#[must_use]
pub(in crate::cli) fn check(crds: &[Object<Crd>], version: KubernetesVersion) -> Vec<Finding> {
    let crds: Vec<_> = crds.iter().collect();
    let of_each = parallel::map(&crds, |crd| {
        let checked = within_time_limit(
            crd,
            "CustomResourceDefinition",
            &Cancellation::default(),
            || check_one(crd, version),
        );
        let mut findings = checked.unwrap_or_else(|error| vec![*error]);
        for finding in &mut findings {
            finding.owner = Owner::crd(crd.name());
        }
        findings
    });
    of_each.concat()
}

/// Returns the findings about definitions that are stored in a cluster.
///
/// The cluster has accepted the definitions, perhaps in an earlier version of Kubernetes. Therefore, errors are
/// reported as warnings.
#[must_use]
pub(in crate::cli) fn check_stored(
    crds: &[Object<Crd>],
    version: KubernetesVersion,
) -> Vec<Finding> {
    let mut findings = check(crds, version);
    for finding in &mut findings {
        if finding.rejected {
            finding.rejected = false;
            finding.severity = Severity::Warning;
            finding.help = Some(
                "the cluster accepted this definition, but the API server rejects new definitions that have this error"
                    .to_owned(),
            );
        }
    }
    findings
}

fn check_one(crd: &Object<Crd>, version: KubernetesVersion) -> Vec<Finding> {
    let definition = crd.value.definition();
    if let Some(finding) = api_version::definition_finding(crd) {
        return vec![finding];
    }
    let shape = shape::check(crd);
    let is_undecodable = shape
        .iter()
        .any(|finding| finding.rule == Rule::InvalidObject);
    let of_schemas = schema_errors(definition);
    let of_schemas = of_schemas.iter().map(|error| schema_finding(crd, error));
    // If a location has a decoding error and a schema error, only one is reported. For an undecodable value, this is
    // the decoding error. For an unknown keyword, this is the schema error.
    let is_reported = |finding: &Finding| {
        let of_shape = shape.iter().filter(|it| it.rule == Rule::InvalidObject);
        let mut places = of_shape.map(|it| it.location.place);
        places.any(|place| place == finding.location.place)
    };
    let mut findings: Vec<Finding> = of_schemas.filter(|finding| !is_reported(finding)).collect();
    let places: Vec<_> = findings
        .iter()
        .map(|finding| finding.location.place)
        .collect();
    let is_new = |finding: &Finding| !places.contains(&finding.location.place);
    findings.extend(shape.into_iter().filter(is_new));
    findings.extend(
        definition_errors(definition)
            .iter()
            .map(|error| definition_finding(crd, error)),
    );
    let of_formats = ignored_formats(definition);
    findings.extend(of_formats.iter().map(|format| format_finding(crd, format)));
    if is_undecodable {
        return findings;
    }
    let text = crd.source.text();
    if !text.contains("x-kubernetes-validations") && !text.contains("default") {
        return findings;
    }
    let verdict = validate_definition(definition, version);
    for error in &verdict.errors {
        if findings.len() >= MAX_FINDINGS {
            break;
        }
        findings.extend(rule_findings(crd, error));
    }
    merge_costs(&mut findings);
    if verdict.is_partial && findings.is_empty() {
        let place = crd.place();
        let message = "the validation rules were not compiled, because the schema has other errors";
        let mut finding = object_finding(crd, Severity::Note, Rule::NotChecked, message, place);
        finding.help = Some("the API server rejects a schema that is not structural".to_owned());
        findings.push(finding);
    }
    findings
}

/// Removes the findings about the total cost of all rules if a rule alone exceeds its limit.
fn merge_costs(findings: &mut Vec<Finding>) {
    const OF_RULE: &str = "estimated rule cost exceeds budget";
    const PART: &str = "contributed to estimated rule cost total";
    let is_cost = |finding: &Finding, message: &str| {
        finding.rule == Rule::CostLimit && finding.message.contains(message)
    };
    let own = findings.iter().filter(|finding| is_cost(finding, OF_RULE));
    let own: Vec<Option<String>> = own.map(|finding| finding.field_ref.clone()).collect();
    if own.is_empty() {
        return;
    }
    findings.retain(|it| !is_cost(it, PART) || !own.contains(&it.field_ref));
    if !findings.iter().any(|finding| is_cost(finding, PART)) {
        findings.retain(|it| !is_cost(it, "estimated rule cost total for entire OpenAPIv3 schema"));
    }
}

fn schema_finding(crd: &Object<Crd>, error: &DefinitionError) -> Finding {
    let root = &crd.document.node;
    let keyword = match error.place.last() {
        Some(PathStep::Field(name)) => name.as_str(),
        _ => "",
    };
    let is_unknown = matches!(error.cause, DefinitionCause::UnknownKeyword);
    let owner = error
        .place
        .split_last()
        .map(|(_, owner)| nearest(root, owner));
    let entry = owner.and_then(|owner| match &owner.data {
        Data::Map(entries) => entries.get(keyword),
        Data::Scalar(..) | Data::List(_) => None,
    });
    let (place, length) = match entry.filter(|_| is_unknown) {
        Some(entry) => (crd.place_of_bytes(&entry.key), keyword.chars().count()),
        None => {
            let node = nearest(root, &error.place);
            (crd.place_of(node), crd.length_of(node))
        }
    };
    let message = if is_unknown {
        format!("unknown field `{keyword}`: a schema has no such keyword")
    } else {
        format!("{keyword}: {}", error.error.body())
    };
    let mut finding = object_finding(crd, Severity::Error, rule_of(error), &message, place);
    finding.location.length = length;
    finding.field_ref = Some(error.error.field.clone());
    finding.rejected = true;
    let meant = nearest_name(keyword, KEYWORDS.into_iter()).filter(|_| is_unknown);
    finding.help =
        Some(meant.map_or_else(|| help(None), |meant| format!("did you mean `{meant}`?")));
    if let Some(entry) = entry.filter(|_| is_unknown)
        && let Some(meant) = nearest_only(keyword, KEYWORDS.into_iter())
    {
        finding.fix = crd.document.edit_key(&crd.source, &entry.key, meant);
    }
    correct_value(&mut finding, crd, error);
    if is_unknown && is_dropped(&error.place) {
        dropped(&mut finding, meant);
    }
    finding
}

/// Returns the finding about a format that the API server ignores. This is a warning if a supported format is similar,
/// and a note otherwise.
fn format_finding(crd: &Object<Crd>, format: &IgnoredFormat) -> Finding {
    let node = nearest(&crd.document.node, &format.place);
    let meant = nearest_only(&format.name, format.supported.iter().copied());
    let severity = meant.map_or(Severity::Note, |_| Severity::Warning);
    let message = format!(
        "format: the API server has no format `{}` for this type",
        format.name
    );
    let place = crd.place_of(node);
    let mut finding = object_finding(crd, severity, Rule::InvalidValue, &message, place);
    finding.location.length = crd.length_of(node);
    finding.field_ref = Some(format.field.clone());
    finding.help = Some(match meant {
        Some(meant) => format!("did you mean `{meant}`? The API server ignores other formats"),
        None => "the API server ignores the format".to_owned(),
    });
    finding
}

/// Returns true if the API server drops an unknown field at `place` of a definition instead of rejecting it.
///
/// Some fields accept a schema or a value of a different type. The decoders of these fields are not strict.
///
/// Source: k8s.io/apiextensions-apiserver `pkg/apis/apiextensions/v1/marshal.go` (`JSONSchemaPropsOrBool`,
/// `JSONSchemaPropsOrArray`); verified on an API server.
fn is_dropped(place: &[PathStep]) -> bool {
    let mut steps = place.iter();
    while let Some(step) = steps.next() {
        let PathStep::Field(name) = step else {
            continue;
        };
        match name.as_str() {
            "items" | "additionalProperties" | "additionalItems" => return true,
            // The next step is a user-defined name, not a keyword.
            "properties" | "patternProperties" | "definitions" | "dependencies" => {
                steps.next();
            }
            _ => {}
        }
    }
    false
}

/// Turns the finding about an unknown field into a warning about a dropped field. `meant` is a similar known name.
pub(super) fn dropped(finding: &mut Finding, meant: Option<&str>) {
    const HELP: &str =
        "the API server silently drops unknown fields below `items` and `additionalProperties`";
    finding.rejected = false;
    finding.severity = Severity::Warning;
    finding.help = Some(match meant {
        Some(meant) => format!("did you mean `{meant}`? {HELP}"),
        None => HELP.to_owned(),
    });
}

/// Returns the finding for an error in a part of the definition that is not a schema.
fn definition_finding(crd: &Object<Crd>, error: &DefinitionError) -> Finding {
    let node = nearest(&crd.document.node, &error.place);
    let field = &error.error.field;
    let name = field.rsplit('.').next().unwrap_or(field);
    let message = format!("{name}: {}", error.error.body());
    let place = crd.place_of(node);
    let mut finding = object_finding(crd, Severity::Error, rule_of(error), &message, place);
    finding.location.length = crd.length_of(node);
    finding.field_ref = Some(field.clone());
    finding.rejected = true;
    finding.help = Some(help(None));
    correct_value(&mut finding, crd, error);
    finding
}

/// Names of types in other languages, each with the type in a schema.
const TYPES: [(&str, &str); 11] = [
    ("int", "integer"),
    ("int32", "integer"),
    ("int64", "integer"),
    ("bool", "boolean"),
    ("str", "string"),
    ("text", "string"),
    ("float", "number"),
    ("double", "number"),
    ("list", "array"),
    ("map", "object"),
    ("dict", "object"),
];

/// Sets the hint and the fix of a finding about a value that is not one of the supported values.
fn correct_value(finding: &mut Finding, crd: &Object<Crd>, error: &DefinitionError) {
    if error.error.kind != FieldErrorKind::NotSupported {
        return;
    }
    let body = error.error.body();
    let supported = body
        .split_once("supported values: ")
        .map_or("", |(_, list)| list);
    let supported: Vec<&str> = supported
        .split(", ")
        .map(|it| it.trim_matches('"'))
        .collect();
    let node = nearest(&crd.document.node, &error.place);
    let text = node.as_str().unwrap_or_default();
    let mut aliases = TYPES
        .iter()
        .filter(|(alias, _)| alias.eq_ignore_ascii_case(text));
    let alias = aliases.next().map(|(_, type_)| *type_);
    let alias = alias.filter(|type_| supported.contains(type_));
    let first = supported.first().copied();
    let Some(meant) = alias.or_else(|| nearest_only(text, supported.into_iter())) else {
        // The check continues with the first supported value, so that the rules of the schema are checked too.
        let edit = first.and_then(|it| crd.document.edit_value(&crd.source, node, it));
        finding.assumption = edit.map(Assumption::new);
        return;
    };
    finding.help = Some(help(Some(&format!("did you mean `{meant}`?"))));
    finding.fix = crd.document.edit_value(&crd.source, node, meant);
}

/// Returns the assumption that the schema has no default if the error is about an invalid default, which hides the
/// errors in all rules.
fn without_default(crd: &Object<Crd>, error: &DefinitionError) -> Option<Assumption> {
    let (PathStep::Field(name), schema) = error.place.split_last()? else {
        return None;
    };
    let Data::Map(entries) = &nearest(&crd.document.node, schema).data else {
        return None;
    };
    let entry = entries.get(name)?;
    // `example` has no effect, so renaming the key to it removes the default.
    let edit = crd.document.edit_key(&crd.source, &entry.key, "example")?;
    Some(Assumption {
        as_if: Some("there were no default"),
        ..Assumption::new(edit)
    })
}

/// Returns the path of a property as an example of a valid fieldPath. `None` if the error is not about the fieldPath of
/// a rule, or if there is no property.
fn valid_field_path(crd: &Object<Crd>, error: &DefinitionError) -> Option<String> {
    let [
        schema @ ..,
        PathStep::Field(rules),
        _,
        PathStep::Field(name),
    ] = &*error.place
    else {
        return None;
    };
    let is_field_path = rules == "x-kubernetes-validations" && name == "fieldPath";
    let schema = is_field_path.then(|| nearest(&crd.document.node, schema))?;
    match &schema.get("properties")?.data {
        Data::Map(entries) => entries.iter().next().map(|(name, _)| format!(".{name}")),
        Data::Scalar(..) | Data::List(_) => None,
    }
}

/// Returns the findings for an error in a validation rule or a default. An expression that does not compile has one
/// finding per diagnostic. Any other error has one finding.
fn rule_findings(crd: &Object<Crd>, error: &DefinitionError) -> Vec<Finding> {
    let node = nearest(&crd.document.node, &error.place);
    let whole = |severity, rule, message: &str| {
        let mut finding = object_finding(crd, severity, rule, message, crd.place_of(node));
        finding.location.length = crd.length_of(node);
        finding.field_ref = Some(error.error.field.clone());
        finding
    };
    let refused = |finding: Finding| Finding {
        rejected: true,
        help: Some(help(None)),
        ..finding
    };
    let Some(expression) = error.expression() else {
        let is_of_default = error.place.last() == Some(&PathStep::Field("default".to_owned()));
        let message = match error.error.detail.as_str() {
            _ if is_of_default => format!("default: {}", error.error.body()),
            "" => error.error.body(),
            detail => detail.to_owned(),
        };
        let mut finding = refused(whole(Severity::Error, rule_of(error), &message));
        correct_value(&mut finding, crd, error);
        if is_of_default && message.contains("must be of type string") {
            let text = crd.document.scalar_text(&crd.source, node);
            let edit = |text| crd.document.edit_value(&crd.source, node, text);
            finding.fix = text.and_then(edit);
            if finding.fix.is_some() {
                finding.help = Some(help(Some("quote the value")));
            }
        }
        if is_of_default && finding.fix.is_none() {
            finding.assumption = without_default(crd, error);
        }
        if let Some(path) = valid_field_path(crd, error) {
            let edit = crd.document.edit_value(&crd.source, node, &path);
            finding.assumption = edit.map(Assumption::new);
        }
        return vec![finding];
    };
    let (severity, rule) = match expression.kind {
        ExpressionErrorKind::Rejected => (Severity::Error, None),
        ExpressionErrorKind::Unsafe => (Severity::Error, Some(Rule::UnsafeExpression)),
        ExpressionErrorKind::Unsupported => (Severity::Note, Some(Rule::UnsupportedExpression)),
    };
    let is_rejected = expression.kind == ExpressionErrorKind::Rejected;
    let issues = expression.found.as_slice();
    if issues.is_empty() {
        let rule = rule.unwrap_or(if expression.is_result_type {
            Rule::ResultType
        } else {
            Rule::CompilationFailed
        });
        let finding = whole(severity, rule, &expression.detail);
        return vec![if is_rejected {
            refused(finding)
        } else {
            finding
        }];
    }
    let text = node.as_str().unwrap_or_default();
    let issue = |issue: &Diagnostic| {
        let rule = rule.unwrap_or(issue.kind.code().into());
        let message = issue.to_string();
        let message: Vec<_> = message.lines().map(str::trim).collect();
        let mut finding = whole(severity, rule, &message.join(" "));
        mark(&mut finding, crd, node, text, issue);
        let mut finding = if is_rejected {
            refused(finding)
        } else {
            finding
        };
        let proposal = rule_proposal(text, issue);
        if let Some(proposal) = proposal {
            if let Some((bytes, replacement)) = &proposal.edit {
                finding.fix = edit_bytes(crd, node, text, bytes.clone(), replacement);
            }
            finding.help = Some(help(Some(&proposal.help)));
        } else if let Some((name, meant)) = meant(issue) {
            finding.fix = SourceMap::new(text).byte(issue.location).and_then(|start| {
                let span = syntax::span_at(text, start);
                let token = text.get(span.clone())?;
                token.ends_with(&name).then_some(())?;
                edit_bytes(crd, node, text, span.end - name.len()..span.end, &meant)
            });
            let help = finding.help.map(|help| format!(" {help}"));
            finding.help = Some(format!(
                "did you mean `{meant}`?{}",
                help.unwrap_or_default()
            ));
        }
        finding
    };
    issues.iter().map(issue).collect()
}

fn rule_proposal(text: &str, issue: &Diagnostic) -> Option<Proposal> {
    let context = rewrite::Context {
        // Validation rules of a CRD have no policy variables, so an empty policy is enough.
        policy: &RequestPolicy::default(),
        role: Role::Validation,
        text,
        is_collection: &|_| false,
        is_declared: &|_| false,
    };
    let rule = Rule::from(issue.kind.code());
    let proposal = match rule {
        Rule::Syntax => other_languages::proposal_at(Role::Validation, text, issue.location),
        Rule::InvalidMacroCall => advice::has_proposal(text, issue.location),
        _ => rewrite::proposal(
            context,
            Problem::Diagnostic(rule, &issue.kind),
            issue.location,
        ),
    };
    // A rule has no variables except `self` and `oldSelf`.
    let new = proposal.as_ref().map(|it| match &it.edit {
        Some((_, new)) => new.as_str(),
        None => &it.help,
    });
    let reads_variable = suggestion::NAMES.iter().any(|name| {
        let is_read = |text: &str| text.contains(&format!("{name}.")) || text == *name;
        !text.contains(name) && new.is_some_and(is_read)
    });
    proposal.filter(|_| !reads_variable)
}

/// Returns the edit that replaces bytes of the string `text` in `node`.
fn edit_bytes(
    crd: &Object<Crd>,
    node: &Node,
    text: &str,
    bytes: std::ops::Range<usize>,
    replacement: &str,
) -> Option<Edit> {
    let offset = |byte: usize| Some(text.get(..byte)?.chars().count());
    crd.edit_text_of(node, offset(bytes.start)?..offset(bytes.end)?, replacement)
}

/// Returns an undeclared name or field of `issue`, and the known name or field that resembles it.
fn meant(issue: &Diagnostic) -> Option<(String, String)> {
    let (name, meant) = match &issue.kind {
        DiagnosticKind::UndeclaredReference { name } => {
            let meant = match &**name {
                "this" | "object" | "value" => Some("self"),
                "oldObject" | "old" => Some("oldSelf"),
                name => nearest_name(name, ["self", "oldSelf"].into_iter()),
            };
            (name, meant.map(str::to_owned))
        }
        // Validation rules of a CRD have no policy variables, so an empty policy is enough.
        DiagnosticKind::UndefinedField(undefined) => {
            let policy = RequestPolicy::default();
            let meant = Suggestions::default().field(&policy, undefined);
            (&undefined.name, meant.map(|(meant, _)| meant))
        }
        _ => return None,
    };
    let meant = meant.filter(|meant| **name != **meant)?;
    Some((name.to_string(), meant))
}

/// Returns the rule for an error that has no diagnostic of an expression.
fn rule_of(error: &DefinitionError) -> Rule {
    match error.cause {
        DefinitionCause::CostLimit => return Rule::CostLimit,
        DefinitionCause::UnknownKeyword => return Rule::UnknownField,
        DefinitionCause::UncorrelatableRule => return Rule::UncorrelatableRule,
        DefinitionCause::Expression(_) | DefinitionCause::Other => {}
    }
    match error.error.kind {
        FieldErrorKind::Required => Rule::Required,
        FieldErrorKind::Internal => Rule::CompilationFailed,
        FieldErrorKind::Invalid
        | FieldErrorKind::Forbidden
        | FieldErrorKind::TypeInvalid
        | FieldErrorKind::Duplicate
        | FieldErrorKind::NotSupported
        | FieldErrorKind::TooLong
        | FieldErrorKind::TooMany => Rule::InvalidValue,
    }
}

/// Sets the location of a finding to the part of an expression to which the diagnostic `issue` refers.
fn mark(finding: &mut Finding, crd: &Object<Crd>, node: &Node, text: &str, issue: &Diagnostic) {
    let Some(start) = SourceMap::new(text).byte(issue.location) else {
        return;
    };
    let span = syntax::span_at(text, start);
    let n_code_points = |text: Option<&str>| text.unwrap_or_default().chars().count();
    let offset = n_code_points(text.get(..span.start));
    let length = n_code_points(text.get(span)).max(1);
    let places = crd.places_in_node(node);
    let place = places.at(offset);
    let last = places.at(offset.saturating_add(length).saturating_sub(1));
    finding.location.place = Some(place);
    finding.location.length = 1;
    if last.line == place.line && last.column >= place.column {
        finding.location.length = last.column.saturating_sub(place.column).saturating_add(1);
    }
}

/// Returns the node at `steps`, or its nearest existing ancestor.
pub(in crate::cli) fn nearest<'a>(root: &'a Node, steps: &[PathStep]) -> &'a Node {
    let mut node = root;
    for step in steps {
        let next = match step {
            PathStep::Field(name) | PathStep::Key(name) => node.get(name),
            PathStep::Index(index) => match &node.data {
                Data::List(items) => items.get(*index),
                Data::Scalar(..) | Data::Map(_) => None,
            },
        };
        match next {
            Some(next) => node = next,
            None => return node,
        }
    }
    node
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cli::input::{Input, KindFilter};

    /// Returns the definition of a kind whose schema has the fields `schema`.
    fn definition(schema: &str) -> Input {
        let text = format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
             metadata: {{name: boxes.example.com}}\nspec:\n  group: example.com\n  scope: Namespaced\n  \
             names: {{kind: Box, plural: boxes}}\n  versions:\n  - name: v1\n    served: true\n    \
             storage: true\n    schema:\n      openAPIV3Schema: {{type: object, {schema}}}\n"
        );
        let paths = [PathBuf::from("-")];
        Input::load(&paths, KindFilter::Crds, &mut text.as_bytes())
    }

    #[test]
    fn errors_in_stored_definitions_are_warnings() {
        let input = definition("x-kubernetes-validations: [{rule: self.nope}]");
        let version = KubernetesVersion::DEFAULT;
        let (new, stored) = (
            check(&input.crds, version),
            check_stored(&input.crds, version),
        );
        assert!(!new.is_empty() && new.len() == stored.len());
        assert!(
            new.iter()
                .all(|finding| finding.rejected && finding.severity == Severity::Error)
        );
        for finding in stored {
            assert!(!finding.rejected && finding.severity == Severity::Warning);
            assert!(
                finding
                    .help
                    .is_some_and(|help| help.contains("new definition"))
            );
        }
    }

    #[test]
    fn crd_rules_are_compiled_for_the_given_version() {
        let input = definition(
            "properties: {a: {type: object, additionalProperties: {type: string}}}, \
             x-kubernetes-validations: [{rule: \"self.a.`x/y` == 'z'\"}]",
        );
        let n_findings = |minor| check(&input.crds, KubernetesVersion::new(minor)).len();
        assert_eq!((n_findings(36), n_findings(37)), (1, 0));
    }
}
