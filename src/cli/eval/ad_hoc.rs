//! Evaluates the expressions of `--expression` for a request.
//!
//! Each expression becomes a variable of a policy that matches only the request. It therefore has the inputs of a
//! validation. If the input contains one validating policy, the expression also has the `variables` and `params` of that
//! policy.

use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use super::policy_set::{PolicySet, PreparedPolicy};
use super::report::RequestReport;
use super::setup::Setup;
use crate::cel::ast::Ast;
use crate::cli::check::finding::{Finding, Location, Owner, Severity};
use crate::cli::check::policy::expression_findings;
use crate::cli::error::CliError;
use crate::cli::exit::Exit;
use crate::cli::input::{Input, KindFilter, Object, Place, SourceText};
use crate::cli::test::trace::{Trace, expression_trace};
use crate::cli::text::{is_word, names_hint};
use crate::policy::RequestPolicy;
use crate::policy::admission::{AdmissionRequest, Recording};
use crate::policy::compile::CompiledPolicy;
use crate::policy::subexpressions;
use crate::probe::api::Request;
use crate::probe::run::{self, CaseResult};

/// The name that the locations in expressions show instead of a file name.
const SOURCE: &str = "--expression";

/// The help of a finding about an expression that does not compile.
const REJECTED: &str = "the API server rejects the policy";

/// The indentation of an expression in the document of its policy.
const INDENT: &str = "      ";

/// The maximum length of a subexpression's value, in characters.
const MAX_PART: usize = 80;

/// Output of `kubectl vap eval --expression -o json`.
///
/// The format is stable: fields may be added, but no field is removed or changes its meaning while `apiVersion` stays
/// the same.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionReport {
    /// Always `cli.vap-status.dev/v1alpha1`.
    pub api_version: &'static str,
    /// Always `ExpressionReport`.
    pub kind: &'static str,
    /// The Kubernetes version whose APIs are served, such as `1.36`.
    pub kubernetes: String,
    /// The address of the cluster, if it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The policy whose `variables` and `params` the expressions can read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The request.
    pub request: RequestReport,
    /// Problems with the input, and data that could not be read.
    pub findings: Vec<Finding>,
    /// The expressions, in the order of the arguments.
    pub expressions: Vec<ExpressionEval>,
}

/// The result of an expression.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpressionEval {
    /// The expression.
    pub expression: String,
    /// Errors of the compiler, and warnings about fields and types.
    pub findings: Vec<Finding>,
    /// The value in CEL syntax, for each evaluation; there are several if the binding selects several params. Absent if
    /// the expression has no value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub values: Vec<String>,
    /// The error of the evaluation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<EvaluationError>,
    /// The reason why the expression was not evaluated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub not_evaluated: Option<String>,
    /// The cost, in CEL cost units.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost: Option<u64>,
    /// The values of the subexpressions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace: Option<Trace>,
}

/// An error of an evaluation, with the location of the subexpression that failed.
#[derive(Clone, Debug, Serialize)]
pub struct EvaluationError {
    /// The message.
    pub message: String,
    /// The line and columns in the expression.
    #[serde(flatten)]
    pub location: Location,
}

impl ExpressionReport {
    /// Returns 0 if each expression has a value, 1 if an evaluation failed, and 2 if an expression was not evaluated.
    #[must_use]
    pub fn exit(&self) -> Exit {
        let is_error = |finding: &Finding| finding.severity == Severity::Error;
        let is_missing = |it: &ExpressionEval| it.values.is_empty() && it.error.is_none();
        if self.findings.iter().any(is_error) || self.expressions.iter().any(is_missing) {
            Exit::Failed
        } else if self.expressions.iter().any(|it| it.error.is_some()) {
            Exit::Findings
        } else {
            Exit::Clean
        }
    }
}

pub(super) struct Inputs<'a> {
    pub(super) setup: &'a Setup,
    pub(super) policy_set: &'a PolicySet<'a>,
    pub(super) request: &'a Request,
    /// The request as the API server passes it to policies.
    pub(super) prepared: &'a AdmissionRequest,
}

impl Inputs<'_> {
    /// Returns the validating policy of the input, or `None` unless there is exactly one.
    pub(super) fn policy(&self) -> Option<&PreparedPolicy<'_>> {
        let mut policies = self
            .policy_set
            .policies
            .iter()
            .filter(|it| it.mutating.is_none());
        policies.next().filter(|_| policies.next().is_none())
    }

    /// If the hint lists all variables, removes the variable that was generated for the expression. If no other
    /// variable exists, the hint becomes the reason for this.
    fn explain_variables(&self, finding: &mut Finding, document: &Document) {
        let policy = self.policy();
        let variables = policy.map(|policy| &policy.object.value.variables);
        let names = variables.into_iter().flatten();
        let mut names: Vec<&str> = names.map(|variable| variable.name.as_str()).collect();
        let mut all = names.clone();
        all.push(&document.name);
        if finding.help.is_none() || finding.help != names_hint("variable", &mut all) {
            return;
        }
        let validating = self.policy_set.policies.iter();
        let n_policies = validating.filter(|it| it.mutating.is_none()).count();
        finding.help = names_hint("variable", &mut names).or_else(|| {
            Some(match (policy, n_policies) {
                (Some(policy), _) => format!("the policy `{}` has no variables", policy.name),
                (None, 0) => "the input has no ValidatingAdmissionPolicy, so there are no variables".to_owned(),
                (None, n) => format!(
                    "the input has {n} policies, so no variables are available; pass only the policy with the variables"
                ),
            })
        });
    }

    /// Evaluates an expression.
    ///
    /// # Errors
    /// Returns an error if the expression is empty, or has characters that YAML forbids.
    pub(super) fn evaluate(&self, expression: &str) -> Result<ExpressionEval, CliError> {
        let expression = expression.trim();
        let policy = self.policy();
        let document = Document::new(expression, policy, self.prepared);
        let object = document.read()?;
        let apis = &self.setup.known;
        let source = Arc::new(SourceText::new(SOURCE.to_owned(), expression.to_owned()));
        let mut findings = expression_findings(&object, apis);
        findings.retain(|it| it.field_ref.as_deref() == Some(&*document.field_ref));
        for finding in &mut findings {
            document.relocate(finding, &source);
            self.explain_variables(finding, &document);
        }
        let mut eval = ExpressionEval {
            expression: expression.to_owned(),
            findings,
            values: Vec::new(),
            error: None,
            not_evaluated: None,
            cost: None,
            trace: None,
        };
        let compiled = CompiledPolicy::from_parts(object.value.clone(), None, apis.version());
        let expressions = compiled.expressions().iter();
        let index = expressions
            .clone()
            .position(|it| it.field_ref == document.field_ref);
        let Some(index) = index.filter(|index| compiled.compiles(*index)) else {
            return Ok(eval);
        };
        let prepared = PreparedPolicy::new(
            &object,
            &self.setup.input.bindings,
            compiled,
            &self.setup.input,
            apis,
            self.setup.cluster_inputs.as_ref(),
        );
        let result = super::evaluate(&prepared, self.request, self.policy_set);
        let ast = prepared.compiled.expressions().get(index);
        let ast = ast.and_then(|expression| expression.parsed().ok());
        let recorded = ast.and_then(|ast| result.recording.get(&(index, ast.root().index())));
        let (Some(ast), Some(recorded)) = (ast, recorded) else {
            eval.not_evaluated = Some(reason(&prepared, &result));
            return Ok(eval);
        };
        eval.cost = Some(recorded.cost);
        match recorded
            .values
            .iter()
            .find_map(|value| value.strip_prefix("error: "))
        {
            Some(message) => {
                eval.error = Some(EvaluationError {
                    message: message.to_owned(),
                    location: failing_part(ast, index, &result.recording, &source),
                });
            }
            None => eval.values.clone_from(&recorded.values),
        }
        let trace = expression_trace(&result, &prepared.compiled, &object, index);
        eval.trace = trace.map(|mut trace| {
            (trace.field_ref, trace.file) = ("expression".to_owned(), SOURCE.to_owned());
            (trace.line, trace.column, trace.changes) = (1, 1, None);
            for part in &mut trace.subexpressions {
                for value in &mut part.values {
                    if let Some((end, _)) = value.char_indices().nth(MAX_PART) {
                        value.truncate(end);
                        value.push('…');
                    }
                }
            }
            trace
        });
        Ok(eval)
    }
}

/// Returns the reason why no expression of the policy was evaluated.
fn reason(policy: &PreparedPolicy<'_>, result: &CaseResult) -> String {
    let explained = result.outcome.as_ref();
    let explained = explained.map(|outcome| run::explain(policy.kind(), outcome));
    let difference = || result.status.difference.clone();
    let invalid = result.invalid.first();
    let invalid = invalid.map(|it| format!("{}: {}", it.field_ref, it.message));
    invalid
        .or(explained)
        .or_else(difference)
        .unwrap_or_default()
}

/// Returns the location of the innermost subexpression that failed.
fn failing_part(
    ast: &Ast,
    index: usize,
    recording: &Recording,
    source: &Arc<SourceText>,
) -> Location {
    let parts = subexpressions::subexpressions(ast).into_iter();
    let failed = parts.filter(|part| {
        let seen = recording.get(&(index, part.id.index()));
        seen.is_some_and(|seen| seen.is_error)
    });
    let innermost = failed.max_by_key(|part| part.depth);
    let offset = innermost.and_then(|part| usize::try_from(ast.offset(part.id)).ok());
    let text = source.text();
    let start = offset.unwrap_or_default();
    // The offset of a selection is the offset of its dot, which precedes the name.
    let n_dots = usize::from(text.chars().nth(start) == Some('.'));
    let name = text
        .chars()
        .skip(start + n_dots)
        .take_while(|c| is_word(*c));
    let length = (n_dots + name.count()).max(1);
    let before: String = text.chars().take(start).collect();
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    let column = before.get(line_start..).unwrap_or_default().chars().count() + 1;
    let line = before.matches('\n').count() + 1;
    Location {
        file: SOURCE.to_owned(),
        source: Some(Arc::clone(source)),
        place: Some(Place { line, column }),
        length,
    }
}

/// The document of a policy with an expression as its last variable.
struct Document {
    text: String,
    /// The number of lines before the expression.
    n_lines: usize,
    field_ref: String,
    /// The name of the variable with the expression.
    name: String,
}

impl Document {
    fn new(
        expression: &str,
        policy: Option<&PreparedPolicy<'_>>,
        request: &AdmissionRequest,
    ) -> Self {
        let spec = policy.map(|policy| &policy.object.value);
        let variables = spec
            .map(|spec| spec.variables.as_slice())
            .unwrap_or_default();
        let mut name = "expression".to_owned();
        while variables.iter().any(|variable| variable.name == name) {
            name.push('_');
        }
        let gvr = &request.gvr;
        let resource = match request.subresource.as_str() {
            "" => gvr.resource.clone(),
            subresource => format!("{}/{subresource}", gvr.resource),
        };
        let rule = json!({
            "apiGroups": [&*gvr.group], "apiVersions": [&*gvr.version], "resources": [resource],
            "operations": [request.operation.as_str()],
        });
        let mut lines = vec![
            "apiVersion: admissionregistration.k8s.io/v1".to_owned(),
            "kind: ValidatingAdmissionPolicy".to_owned(),
            format!(
                "metadata: {{name: {}}}",
                json!(policy.map_or(name.as_str(), |it| it.name))
            ),
            "spec:".to_owned(),
            format!("  matchConstraints: {}", json!({"resourceRules": [rule]})),
            // The comparison makes the validation evaluate the variable. The result of the comparison is not used.
            format!(
                "  validations: {}",
                json!([{"expression": format!("dyn(variables.{name}) == null")}])
            ),
        ];
        if let Some(kind) = spec.and_then(|spec| spec.param_kind.as_ref()) {
            lines.push(format!("  paramKind: {}", json!(kind)));
        }
        lines.push("  variables:".to_owned());
        lines.extend(
            variables
                .iter()
                .map(|variable| format!("  - {}", json!(variable))),
        );
        lines.push(format!("  - name: {name}"));
        lines.push("    expression: |-".to_owned());
        let n_lines = lines.len();
        lines.extend(expression.split('\n').map(|line| format!("{INDENT}{line}")));
        Self {
            text: lines.join("\n") + "\n",
            n_lines,
            field_ref: format!("spec.variables[{}].expression", variables.len()),
            name,
        }
    }

    fn read(&self) -> Result<Object<RequestPolicy>, CliError> {
        let paths = [PathBuf::from("-")];
        let mut input = Input::load(&paths, KindFilter::All, &mut self.text.as_bytes());
        let problem = input
            .problems
            .first()
            .map(|problem| problem.message.clone());
        let invalid = input.invalid.first().map(|invalid| invalid.value.clone());
        input.policies.pop().ok_or_else(|| {
            let why = problem.or(invalid).unwrap_or_default();
            CliError::Usage(format!("{SOURCE} cannot be used: {why}"))
        })
    }

    /// Converts the location of a finding in the document to its location in the expression.
    fn relocate(&self, finding: &mut Finding, source: &Arc<SourceText>) {
        let place = finding.location.place.map(|place| Place {
            line: place.line.saturating_sub(self.n_lines).max(1),
            column: place.column.saturating_sub(INDENT.len()).max(1),
        });
        finding.location = Location {
            file: SOURCE.to_owned(),
            source: Some(Arc::clone(source)),
            place,
            length: finding.location.length,
        };
        let consequence = finding.consequence.take().map(|it| it.message);
        let effect = consequence.or(finding.rejected.then_some(REJECTED));
        if let (Some(help), Some(effect)) = (&mut finding.help, effect) {
            // Removes the effect on requests from the help, since the expression is not part of a policy.
            let rest = help.strip_suffix(effect).unwrap_or(help);
            *help = rest.trim_end_matches([';', ' ']).to_owned();
        }
        finding.help = finding.help.take().filter(|help| !help.is_empty());
        finding.rejected = false;
        finding.owner = Owner::None;
        finding.field_ref = None;
        // The edits would apply to the generated document, not to the expression that the user passed.
        finding.fix = None;
        finding.suggestions = Vec::new();
        finding.also = Vec::new();
    }
}
