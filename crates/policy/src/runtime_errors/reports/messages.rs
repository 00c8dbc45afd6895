//! Selects the rule of a finding, and writes its message and the tests of its guards.

use serde_json::Value as Json;

use super::guard;
use crate::admission::Operation;
use crate::expressions::Role;
use crate::rule::Rule;
use crate::runtime_errors::failure_sites::{FailureCause, FailureSite};
use crate::runtime_errors::failures::Failure;
use crate::runtime_errors::requests::SyntheticRequest;
use crate::runtime_errors::symbolic::{ExprRef, Scope, SymbolicEvaluator, SymbolicValue};
use crate::subexpressions;
use cel::ast::{Expr, ExprId, Literal};
use kubernetes::schema::rest_mapper::ApiResource;
use kubernetes::validity::{FieldPath, Root, Segment, is_identifier};

/// Maximum length of a quoted string in a message, in bytes.
const MAX_SHOWN: usize = 60;

/// Writes the messages and fixes of findings for one kind.
#[derive(Clone, Copy)]
pub(crate) struct MessageWriter<'w, 'a> {
    pub(crate) evaluator: &'w SymbolicEvaluator<'a>,
    pub(crate) resource: &'w ApiResource,
    /// The operations of the requests for the kind.
    pub(crate) operations: &'w [Operation],
    /// The name of a binding without a paramRef. `None` if all bindings have one.
    pub(crate) without_params: Option<&'w str>,
}

impl MessageWriter<'_, '_> {
    pub(crate) fn rule(self, site: &FailureSite) -> Rule {
        let path = &site.path;
        match site.cause {
            FailureCause::Absent => {}
            FailureCause::Null => return Rule::AbsentField,
            FailureCause::FailingDefault if self.has_default_of_other_type(site) => {
                return Rule::NoMatchingOverload;
            }
            FailureCause::NumberType => return Rule::NoMatchingOverload,
            FailureCause::FailingDefault | FailureCause::InvalidString => {
                return Rule::FailingConversion;
            }
            FailureCause::ShortSplit(_) | FailureCause::ShortList(_) => return Rule::AbsentElement,
            FailureCause::ZeroDivisor => return Rule::DivisionByZero,
            FailureCause::IntOrString => return Rule::IntOrString,
        }
        match (path.root, path.segments.last()) {
            (Root::Params, None) => Rule::AbsentParams,
            (_, None) => Rule::AbsentObject,
            (_, Some(Segment::Index(_))) => Rule::AbsentElement,
            (_, Some(Segment::Field(_))) => {
                let parent = path
                    .parent()
                    .and_then(|parent| self.evaluator.input_type(&parent));
                if parent.is_some_and(|input_type| input_type.is_map()) {
                    Rule::AbsentKey
                } else {
                    Rule::AbsentField
                }
            }
        }
    }

    /// Returns a sentence with the cause, the request and the error.
    pub(crate) fn message(
        self,
        synthetic: &SyntheticRequest,
        failure: &Failure,
        site: &FailureSite,
    ) -> String {
        let message = self.cause_and_error(synthetic, failure, site);
        // The API server ignores the error of a match condition if another match condition is false.
        let conditions = self.evaluator.policy.expressions().iter().enumerate();
        let conditions = conditions.filter(|(_, it)| it.role == Role::MatchCondition);
        let (own, others): (Vec<_>, Vec<_>) =
            conditions.partition(|(index, _)| *index == failure.index);
        match (own.len(), others.len()) {
            (0, _) | (_, 0) => message,
            (_, 1) => format!("{message}, unless the other match condition is false"),
            _ => format!("{message}, unless another match condition is false"),
        }
    }

    fn cause_and_error(
        self,
        synthetic: &SyntheticRequest,
        failure: &Failure,
        site: &FailureSite,
    ) -> String {
        let kind = &self.resource.gvk.kind;
        let article = if kind.starts_with(['A', 'E', 'I', 'O', 'U']) {
            "an"
        } else {
            "a"
        };
        let operation = synthetic.operation;
        let error = &failure.message;
        let subject = match self.resource.gvr.resource.split_once('/') {
            Some(_) => format!("{operation} of {}", self.resource.gvr.resource),
            None => format!("{operation} of {article} {kind}"),
        };
        let path = &site.path;
        let name = path.root.name();
        if path.segments.is_empty() {
            let why = match path.root {
                Root::Params => match self.without_params {
                    Some(binding) => {
                        format!("under the binding `{binding}`, which has no paramRef")
                    }
                    None => "without params".to_owned(),
                },
                Root::Namespace if self.resource.namespaced => "in match conditions".to_owned(),
                Root::Namespace => "for cluster-scoped objects".to_owned(),
                _ => format!("on {operation}"),
            };
            return format!("`{name}` is null {why}: {subject} fails with `{error}`");
        }
        let shown = match path.segments.first() {
            Some(Segment::Field(field)) if is_identifier(field) => format!("{name}.{path}"),
            _ => format!("{name}{path}"),
        };
        let short = match path.root {
            Root::Object => path.to_string(),
            _ => shown.clone(),
        };
        let with = match synthetic.value_at(path) {
            Some(Json::String(text)) if text.len() <= MAX_SHOWN => {
                format!("with {text:?} as {short}")
            }
            Some(Json::Number(number)) => format!("with {number} as {short}"),
            Some(Json::Null) if self.is_builtin(path) => format!("without {short}"),
            Some(Json::Null) => format!("with null as {short}"),
            Some(_) => format!("with this value of {short}"),
            None => format!("without {short}"),
        };
        match site.cause {
            FailureCause::Absent if is_generated_name(path) => {
                format!(
                    "`{shown}` may be absent: {subject} with generateName in place of a name fails with `{error}`"
                )
            }
            FailureCause::Absent | FailureCause::FailingDefault => {
                format!("`{shown}` may be absent: {subject} without {short} fails with `{error}`")
            }
            FailureCause::Null => {
                format!("`{shown}` may be null: {subject} {with} fails with `{error}`")
            }
            FailureCause::NumberType => {
                let sort = match synthetic.value_at(path).and_then(Json::as_i64) {
                    Some(_) => "a whole number, which is an int",
                    None => "a fraction, which is a double",
                };
                format!("`{shown}` may be {sort}: {subject} {with} fails with `{error}`")
            }
            FailureCause::InvalidString if self.is_quantity(path) => {
                format!("`{shown}` may be any quantity: {subject} {with} fails with `{error}`")
            }
            FailureCause::InvalidString => {
                format!("`{shown}` may be any string: {subject} {with} fails with `{error}`")
            }
            FailureCause::ShortSplit(index) => {
                let parts = if index == 1 {
                    "only one part"
                } else {
                    "too few parts"
                };
                format!("`{shown}` may split into {parts}: {subject} {with} fails with `{error}`")
            }
            FailureCause::ShortList(_) => format!(
                "the list may be too short, depending on `{shown}`: {subject} fails with `{error}`"
            ),
            FailureCause::ZeroDivisor if self.is_collection(path) => {
                format!("`{shown}` may be empty: {subject} fails with `{error}`")
            }
            FailureCause::ZeroDivisor => {
                format!("`{shown}` may be 0: {subject} {with} fails with `{error}`")
            }
            FailureCause::IntOrString => {
                format!(
                    "`{shown}` may be an integer or a string: {subject} {with} fails with `{error}`"
                )
            }
        }
    }

    /// Returns true if the default at `site` is a string where a number is expected, or a number where a string is
    /// expected.
    pub(super) fn has_default_of_other_type(self, site: &FailureSite) -> bool {
        let default = self.default_at(site).map(|(_, default)| default);
        default.is_some_and(|default| self.evaluator.has_other_type(&site.path, &default))
    }

    /// Returns the receiver and the argument of `orValue()`, if this call is the operand whose default makes the call
    /// at `site` fail.
    pub(super) fn default_at(self, site: &FailureSite) -> Option<(ExprId, Json)> {
        let operand = self.operand_at(site)?;
        let Expr::Call {
            function,
            target: Some(optional),
            args,
        } = self.evaluator.expr(site.node.with_id(operand))
        else {
            return None;
        };
        let default = site
            .node
            .with_id(*args.first().filter(|_| **function == *"orValue")?);
        match self.evaluator.evaluate(default, &Scope::default()).pop()? {
            SymbolicValue::Constant(default) => Some((*optional, default)),
            _ => None,
        }
    }

    /// Returns a test for the type of an int-or-string operand of a call that accepts only one of the two types.
    pub(super) fn type_test(self, site: &FailureSite) -> Option<String> {
        let Expr::Call {
            function,
            target,
            args,
        } = self.evaluator.expr(site.node)
        else {
            return None;
        };
        let node_at = |id| site.node.with_id(id);
        let is_text = |id: &ExprId| {
            matches!(
                self.evaluator.expr(node_at(*id)),
                Expr::Literal(Literal::String(_))
            )
        };
        let takes_text = target.is_some()
            || args.iter().any(is_text)
            || !function.starts_with('_')
                && !["int", "uint", "double", "-_"].contains(&&**function);
        let type_ = if takes_text { "string" } else { "int" };
        let operand = self.operand_at(site)?;
        let n = site.node.index;
        let text = self.source_text(n, operand);
        let text = text.or_else(|| Some(subexpressions::text(self.evaluator.ast(n)?, operand)))?;
        (!text.ends_with('…')).then(|| format!("type({text}) == {type_}"))
    }

    /// Returns true for the conversion of a quantity to a number.
    pub(super) fn is_converted_quantity(self, site: &FailureSite) -> bool {
        let is_conversion = matches!(
            self.evaluator.expr(site.node),
            Expr::Call { function, .. } if matches!(&**function, "int" | "uint" | "double")
        );
        is_conversion && self.is_quantity(&site.path)
    }

    fn is_quantity(self, path: &FieldPath) -> bool {
        let input_type = self.evaluator.input_type(path);
        input_type.is_some_and(|input_type| input_type.is_quantity())
    }

    fn is_collection(self, path: &FieldPath) -> bool {
        let input_type = self.evaluator.input_type(path);
        input_type.is_some_and(|input_type| input_type.is_list() || input_type.is_map())
    }

    pub(super) fn is_builtin(self, path: &FieldPath) -> bool {
        let input_type = self.evaluator.input_type(path);
        input_type.is_some_and(|input_type| input_type.is_builtin())
    }

    /// Returns the node that denotes the input of the site: an operand of the site's node, or the node itself.
    pub(super) fn operand_at(self, site: &FailureSite) -> Option<ExprId> {
        let (n, id) = (site.node.index, site.node.id);
        let operands = match self.evaluator.expr(site.node) {
            Expr::Select { operand, .. } => vec![*operand],
            Expr::Call { target, args, .. } => target.iter().chain(&**args).copied().collect(),
            _ => Vec::new(),
        };
        let denotes_path = |id: &ExprId| {
            let alternatives = self
                .evaluator
                .evaluate(ExprRef { index: n, id: *id }, &Scope::default());
            alternatives
                .iter()
                .any(|symbolic| matches!(symbolic, SymbolicValue::Input { path, .. } if *path == site.path))
        };
        // The path cannot be matched if the value is a macro variable. The operand is then the only one that is not a
        // literal.
        let is_literal = |id: &&ExprId| {
            matches!(
                self.evaluator.expr(site.node.with_id(**id)),
                Expr::Literal(_)
            )
        };
        let mut others = operands.iter().filter(|id| !is_literal(id));
        let only = others.next().copied().filter(|_| others.next().is_none());
        // If the site is the range of a macro, the node itself denotes the input.
        let mut nodes = std::iter::once(id).chain(operands.iter().copied());
        nodes.find(denotes_path).or(only)
    }

    /// Returns a test for a call that parses a string, and true if it accepts all strings that the call parses.
    pub(super) fn conversion_test(self, site: &FailureSite) -> Option<(String, bool)> {
        let Expr::Call {
            function,
            target,
            args,
        } = self.evaluator.expr(site.node)
        else {
            return None;
        };
        if &**function == "asInteger" {
            let Expr::Call { args, .. } = self.evaluator.expr(site.node.with_id((*target)?)) else {
                return None;
            };
            let text = self.source_text(site.node.index, *args.first()?)?;
            return Some((format!("quantity({text}).isInteger()"), true));
        }
        let mut arguments = target.iter().chain(&**args);
        let text = self.source_text(site.node.index, *arguments.next()?)?;
        let rest = arguments.map(|id| match self.evaluator.expr(site.node.with_id(*id)) {
            Expr::Literal(Literal::Bool(value)) => Some(value.to_string()),
            _ => None,
        });
        let rest: Vec<String> = rest.collect::<Option<_>>()?;
        let matches = |pattern: &str| (format!("{text}.matches('{pattern}')"), false);
        Some(match (&**function, &*rest) {
            ("int", []) => matches("^[-+]?[0-9]{1,18}$"),
            ("uint", []) => matches("^[0-9]{1,18}$"),
            ("double", []) => matches("^[-+]?[0-9]{1,200}([.][0-9]*)?$"),
            ("bool", []) => {
                let words = "['1', 't', 'T', 'true', 'TRUE', 'True', '0', 'f', 'F', 'false', 'FALSE', 'False']";
                (format!("{text} in {words}"), true)
            }
            // The number of digits and parts is limited, because a duration must be shorter than 292 years.
            ("duration", []) => {
                matches("^[-+]?(([0-9]{1,5}([.][0-9]{0,9})?(h|m|s|ms|us|ns)){1,6}|[0-9]{1,9}s|0)$")
            }
            ("timestamp", []) => matches(
                "^[12][0-9]{3}-((0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])|(0[13-9]|1[0-2])-(29|30)|(0[13578]|1[02])-31)\
                 T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]([.][0-9]{1,9})?(Z|[-+]([01][0-9]|2[0-3]):[0-5][0-9])$",
            ),
            ("quantity", []) => exact("isQuantity", &text, &rest),
            ("ip", []) => exact("isIP", &text, &rest),
            ("cidr", []) => exact("isCIDR", &text, &rest),
            ("url", []) => exact("isURL", &text, &rest),
            ("semver", [] | [_]) => exact("isSemver", &text, &rest),
            _ => return None,
        })
    }

    /// Returns the source of a chain of selections, or of its `size()`.
    pub(super) fn source_text(self, n: usize, id: ExprId) -> Option<String> {
        match self.evaluator.expr(ExprRef { index: n, id }) {
            Expr::Call {
                function,
                target: None,
                args,
            } if &**function == "size" => {
                Some(format!("size({})", self.source_text(n, *args.first()?)?))
            }
            Expr::Call {
                function,
                target: Some(of),
                args,
            } if &**function == "size" && args.is_empty() => {
                Some(format!("{}.size()", self.source_text(n, *of)?))
            }
            _ => guard::source_text(self.evaluator, n, id),
        }
    }
}

/// Returns true for the name of a new object or its request. The API server may generate it after mutating admission.
pub(crate) fn is_generated_name(path: &FieldPath) -> bool {
    matches!(
        (path.root, &*path.names()),
        (Root::Object, ["metadata", "name"]) | (Root::Request, ["name"])
    )
}

fn exact(function: &str, text: &str, rest: &[String]) -> (String, bool) {
    let rest = rest.iter().map(|argument| format!(", {argument}"));
    (
        format!("{function}({text}{})", rest.collect::<String>()),
        true,
    )
}
