//! Selects the rule of a finding, and writes its message and fix.

use std::collections::HashSet;

use serde_json::Value as Json;

use super::guard::{self, Polarity};
use crate::expressions::Role;
use crate::rule::Rule;
use crate::runtime_errors::failure_sites::{FailureCause, FailureSite, SitesByNode};
use crate::runtime_errors::failures::Failure;
use crate::runtime_errors::requests::SyntheticRequest;
use crate::runtime_errors::symbolic::{ExprRef, Scope, SymbolicEvaluator, SymbolicValue};
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
    /// The name of a binding without a paramRef. `None` if all bindings have one.
    pub(crate) without_params: Option<&'w str>,
}

impl MessageWriter<'_, '_> {
    pub(crate) fn rule(self, site: &FailureSite) -> Rule {
        let path = &site.path;
        match site.cause {
            FailureCause::Absent => {}
            FailureCause::Null => return Rule::AbsentField,
            FailureCause::NumberType => return Rule::NoMatchingOverload,
            FailureCause::InvalidString => return Rule::FailingConversion,
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
            FailureCause::Absent => {
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

    pub(crate) fn fix(self, sites_by_node: &SitesByNode<'_>, site: &FailureSite) -> Option<String> {
        match site.cause {
            FailureCause::Absent => self.absence_guard(sites_by_node, site),
            FailureCause::Null => Some(self.null_guard(site)),
            FailureCause::NumberType => {
                let n = site.node.index;
                let operand = self.operand_at(site);
                let number = operand.and_then(|id| guard::source_text(self.evaluator, n, id));
                let number = number.unwrap_or_else(|| "x".to_owned());
                Some(format!(
                    "convert the value with `double({number})` if the other operand is a double such as `1.0`"
                ))
            }
            FailureCause::InvalidString => self.conversion_guard(site),
            FailureCause::IntOrString => self.type_guard(site),
            FailureCause::ShortSplit(index) | FailureCause::ShortList(index) => Some(format!(
                "check the size of the list first: `size(...) > {index} && ...`, or write `[?{index}]` and `orValue()`"
            )),
            FailureCause::ZeroDivisor => {
                let Expr::Call { args, .. } = self.evaluator.expr(site.node) else {
                    return None;
                };
                let divisor = self.source_text(site.node.index, *args.last()?)?;
                let polarity = Polarity::at(self.evaluator, site.node.index, site.node.id);
                Some(polarity.guard(&[format!("{divisor} != 0")]))
            }
        }
    }

    /// Returns a guard for a call that only accepts integers or only accepts strings.
    fn type_guard(self, site: &FailureSite) -> Option<String> {
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
        let operand = self.operand_at(site);
        let operand = operand.and_then(|id| self.source_text(site.node.index, id));
        let operand = operand.unwrap_or_else(|| "x".to_owned());
        let polarity = Polarity::at(self.evaluator, site.node.index, site.node.id);
        Some(polarity.guard(&[format!("type({operand}) == {type_}")]))
    }

    fn is_builtin(self, path: &FieldPath) -> bool {
        let input_type = self.evaluator.input_type(path);
        input_type.is_some_and(|input_type| input_type.is_builtin())
    }

    /// Returns a guard for a value that may be null. The guard is a comparison with null, because `has()` is true for
    /// null.
    fn null_guard(self, site: &FailureSite) -> String {
        let (n, id) = (site.node.index, site.node.id);
        let operand = self.operand_at(site).unwrap_or(id);
        let polarity = Polarity::at(self.evaluator, n, operand);
        let chain_text = guard::source_text(self.evaluator, n, operand).or_else(|| {
            let path = &site.path;
            let has_fields_alone = path.fields().len() == path.segments.len();
            has_fields_alone.then(|| format!("{}.{path}", path.root.name()))
        });
        let chain_text = chain_text.unwrap_or_else(|| "x".to_owned());
        polarity.guard(&[format!("{chain_text} != null")])
    }

    /// Returns the node that denotes the path of the site: an operand of the site's node, or the node itself.
    fn operand_at(self, site: &FailureSite) -> Option<ExprId> {
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
        // If the site is the range of a macro, the node itself denotes the path.
        std::iter::once(id).chain(operands).find(denotes_path)
    }

    /// Returns a guard for a call that parses a string.
    fn conversion_guard(self, site: &FailureSite) -> Option<String> {
        let Expr::Call {
            function,
            target,
            args,
        } = self.evaluator.expr(site.node)
        else {
            return None;
        };
        let text = target.or_else(|| args.first().copied())?;
        let text = self
            .source_text(site.node.index, text)
            .unwrap_or_else(|| "x".to_owned());
        let test = match &**function {
            "int" => format!("{text}.matches('^-?[0-9]{{1,18}}$')"),
            "uint" => format!("{text}.matches('^[0-9]{{1,18}}$')"),
            "double" => format!("{text}.matches('^-?[0-9]+([.][0-9]+)?$')"),
            "bool" => format!("{text} in ['true', 'false']"),
            "duration" => format!("{text}.matches('^[0-9]{{1,6}}(s|m|h)$')"),
            "timestamp" => {
                format!(
                    "{text}.matches('^[0-9]{{4}}-(0[1-9]|1[0-2])-(0[1-9]|1[0-9]|2[0-8])T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9]Z$')"
                )
            }
            "quantity" => format!("isQuantity({text})"),
            "ip" => format!("isIP({text})"),
            "cidr" => format!("isCIDR({text})"),
            "url" => format!("isURL({text})"),
            "semver" => format!("isSemver({text})"),
            _ => format!("size({text}) > ..."),
        };
        let polarity = Polarity::at(self.evaluator, site.node.index, site.node.id);
        Some(polarity.guard(&[test]))
    }

    /// Returns the source of a chain of selections, or of its `size()`.
    fn source_text(self, n: usize, id: ExprId) -> Option<String> {
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

    fn absence_guard(self, sites_by_node: &SitesByNode<'_>, site: &FailureSite) -> Option<String> {
        let absent = &site.path;
        if absent.segments.is_empty() {
            return Some(match absent.root {
                Root::Object => {
                    "add a guard: `object == null || ...`, or remove DELETE from the rule's operations"
                        .to_owned()
                }
                Root::OldObject => {
                    "add a guard: `oldObject == null || ...`, or remove CREATE from the rule's operations"
                        .to_owned()
                }
                Root::Params => {
                    "add a paramRef to the binding, or add a guard: `params == null || ...`".to_owned()
                }
                Root::Namespace | Root::Request => {
                    "add a guard: `namespaceObject == null || ...`".to_owned()
                }
            });
        }
        let n = site.node.index;
        let of_chain = sites_by_node
            .values()
            .flatten()
            .filter(|other| other.node.index == n && other.chain == site.chain)
            .filter(|other| other.cause == FailureCause::Absent && !other.path.segments.is_empty());
        let mut optional = HashSet::new();
        for other in of_chain {
            optional.insert(other.node.id);
        }
        let chain_path = self.chain_path(site);
        let default =
            chain_path.and_then(|path| self.evaluator.input_type(&path)?.default_literal());
        // An existing `orValue()` keeps its argument. The call has an effect once the chain is optional.
        let (default, is_whole_expression) = match self.or_value_argument(n, site.chain) {
            Some((known, is_whole_expression)) => (Some(known), is_whole_expression),
            None => (default.map(str::to_owned), false),
        };
        let sort = self.role(n);
        let is_condition = matches!(sort, Some(Role::Validation | Role::MatchCondition));
        // A condition must be boolean, but object fields have the type `dyn` when the policy is created. A comparison
        // makes the condition boolean.
        let default = default.map(|value| {
            let compared = if is_whole_expression && is_condition {
                " == true"
            } else {
                ""
            };
            format!("{value}){compared}")
        });
        guard::fix(
            self.evaluator,
            n,
            site.chain,
            &optional,
            default.as_deref(),
            // Go omits the field `replicas` of a Scale if the value is 0.
            &*self.resource.gvk.kind == "Scale" && absent.fields() == ["spec", "replicas"],
        )
    }

    fn role(self, n: usize) -> Option<Role> {
        let expression = self.evaluator.policy.expressions().get(n)?;
        Some(expression.role)
    }

    /// Returns the argument of the `orValue()` call on `chain`, and true if the call is the whole expression.
    fn or_value_argument(self, n: usize, chain: ExprId) -> Option<(String, bool)> {
        let ast = self.evaluator.ast(n)?;
        let (id, argument) = ast.iter().find_map(|(id, expr)| match expr {
            Expr::Call {
                function,
                target: Some(target),
                args,
            } if &**function == "orValue" && *target == chain => Some((id, *args.first()?)),
            _ => None,
        })?;
        let value = match ast.expr(argument) {
            Expr::Literal(Literal::Bool(value)) => value.to_string(),
            Expr::Literal(Literal::Int(value)) => value.to_string(),
            Expr::Literal(Literal::String(text)) => guard::quote(text)?,
            _ => "...".to_owned(),
        };
        Some((value, id == ast.root()))
    }

    /// Returns the path of the site's whole chain. `None` if the chain does not start at a root variable.
    fn chain_path(self, site: &FailureSite) -> Option<FieldPath> {
        let node = site.node.with_id(site.chain);
        let alternatives = self.evaluator.evaluate(node, &Scope::default());
        alternatives
            .into_iter()
            .find_map(|symbolic| match symbolic {
                SymbolicValue::Input { path, .. } => Some(path),
                _ => None,
            })
    }
}
