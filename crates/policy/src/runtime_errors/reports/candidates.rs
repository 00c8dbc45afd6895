//! Proposes changes of an expression that fails. [`super::trial`] evaluates each proposal before it is suggested.

use std::collections::{BTreeMap, HashSet};
use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value as Json;

use super::guard::{self, OptionalChain};
use super::intent;
use super::messages::{MessageWriter, is_generated_name};
use super::rewrites::{
    at_all_places, combined, guards, guards_of_whole, is_alternative, literal, or_value, renamed,
    with_default,
};
use crate::admission::Operation;
use crate::expressions::Role;
use crate::matching;
use crate::runtime_errors::failure_sites::{FailureCause, FailureSite, SitesByNode};
use crate::runtime_errors::string_data::{NO_STRING_DATA, is_string_data};
use crate::runtime_errors::symbolic::ExprRef;
use crate::subexpressions;
use crate::subexpressions::conditions::{self, Condition, condition_around};
use crate::suggestion::Effect;
use cel::ast::{Ast, Expr, ExprId, Literal};
use kubernetes::schema::Gvk;
use kubernetes::validity::{
    EffectiveDefault, FieldPath, Root, Segment, effective_default, is_union_member,
};

/// A proposed change of the expression that contains the failing node.
#[derive(Clone, Debug)]
pub(crate) struct Candidate {
    /// The new code, for the message.
    pub(crate) shown: String,
    /// The replaced bytes of the expression.
    pub(crate) bytes: Range<usize>,
    pub(crate) replacement: String,
    /// The effective default of the absent field if the replacement contains it. `None` otherwise.
    pub(crate) default: Option<KnownDefault>,
    /// True if the replacement and the original code have the same value for all requests for which the expression does
    /// not fail.
    pub(crate) is_exact: bool,
    /// The effect of a replacement that keeps the intent of the replaced code. Such a replacement may have different
    /// results for the requests for which the expression fails. `None` for other replacements.
    pub(crate) intent: Option<Effect>,
}

/// The effective default of a field.
#[derive(Clone, Debug)]
pub(crate) struct KnownDefault {
    /// The CEL source of the default.
    pub(crate) literal: String,
    /// The field. `None` if the default does not depend on the kind of the object.
    pub(crate) path: Option<FieldPath>,
    pub(crate) effective: EffectiveDefault,
    /// True if the author may intend to deny absent values even if the condition is true for the default. An indication
    /// is a message such as `must be set`.
    pub(crate) may_require_value: bool,
}

impl KnownDefault {
    /// Returns true if the field also has this default in objects of `gvk`.
    pub(crate) fn is_of(&self, gvk: &Gvk) -> bool {
        self.path
            .as_ref()
            .is_none_or(|path| effective_default(gvk, path).as_ref() == Some(&self.effective))
    }
}

/// The proposed changes, and advice that is not a change of the expression.
#[derive(Clone, Debug, Default)]
pub(crate) struct Proposal {
    pub(crate) candidates: Vec<Candidate>,
    /// A replacement for a variable that is null in every request that the rules match. Without it, the expression
    /// always fails.
    pub(crate) rename: Option<Candidate>,
    /// Advice that follows the suggestions. It is the only advice if no suggestion passes its trial.
    pub(crate) advice: Option<String>,
    /// Advice that precedes the suggestions.
    pub(crate) first_advice: Option<String>,
    /// A change that replaces `object` with `oldObject`. It is not suggested. The changed expression is only checked
    /// for further errors.
    pub(crate) assumed: Option<Candidate>,
    /// Advice for the case that no suggestion passes its trial and there is no other advice.
    pub(crate) fallback: Option<String>,
}

impl Proposal {
    fn only_advice(advice: impl Into<String>) -> Self {
        Self {
            advice: Some(advice.into()),
            ..Self::default()
        }
    }
}

/// The expression with the failing node.
pub(super) struct Origin<'a> {
    pub(super) ast: &'a Ast,
    pub(super) text: &'a str,
    pub(super) role: Role,
}

impl MessageWriter<'_, '_> {
    /// Proposes changes after which the expression does not fail at `site`.
    pub(crate) fn proposal(self, sites_by_node: &SitesByNode<'_>, site: &FailureSite) -> Proposal {
        let n = site.node.index;
        let Some(origin) = self.origin(n) else {
            return Proposal::default();
        };
        match site.cause {
            FailureCause::Absent if site.path.segments.is_empty() => {
                self.without_root(&origin, site)
            }
            FailureCause::Absent => self.without_value(&origin, sites_by_node, site),
            FailureCause::FailingDefault => self.with_failing_default(&origin, site),
            FailureCause::Null => {
                let operand = self.operand_at(site).unwrap_or(site.node.id);
                let operand = guard::source_text(self.evaluator, n, operand).or_else(|| {
                    let path = &site.path;
                    let has_fields_alone = path.fields().len() == path.segments.len();
                    has_fields_alone.then(|| format!("{}.{path}", path.root.name()))
                });
                guarded(
                    &origin,
                    site,
                    operand.map(|text| exact(format!("{text} != null"))),
                )
            }
            FailureCause::NumberType => {
                let operand = self.operand_at(site);
                let number = operand.and_then(|id| guard::source_text(self.evaluator, n, id));
                let number = number.unwrap_or_else(|| "x".to_owned());
                Proposal::only_advice(format!(
                    "convert the value with `double({number})` if the other operand is a double such as `1.0`"
                ))
            }
            FailureCause::InvalidString if self.is_converted_quantity(site) => {
                let operand = match self.evaluator.expr(site.node) {
                    Expr::Call { args, .. } => args.first().copied(),
                    _ => None,
                };
                let text = operand.and_then(|id| self.source_text(n, id));
                let text = text.unwrap_or_else(|| "x".to_owned());
                let (operator, number) = intent::compared_number(origin.ast, site.node.id)
                    .unwrap_or(("<=", "2".to_owned()));
                Proposal::only_advice(format!(
                    "compare quantities: `quantity({text}).compareTo(quantity('{number}')) {operator} 0`"
                ))
            }
            FailureCause::InvalidString => guarded(&origin, site, self.conversion_test(site)),
            FailureCause::IntOrString => guarded(&origin, site, self.type_test(site).map(exact)),
            FailureCause::ShortSplit(index) | FailureCause::ShortList(index) => {
                let list = list_of_index(&origin, site);
                let proposal = guarded(
                    &origin,
                    site,
                    list.map(|list| exact(format!("size({list}) > {index}"))),
                );
                Proposal {
                    advice: Some(format!(
                        "check the size of the list first: `size(...) > {index} && ...` is false for a shorter list, `size(...) <= {index} || ...` is true"
                    )),
                    ..proposal
                }
            }
            FailureCause::ZeroDivisor => {
                let divisor = match self.evaluator.expr(site.node) {
                    Expr::Call { args, .. } => args.last().copied(),
                    _ => None,
                };
                let divisor = divisor.and_then(|id| self.source_text(n, id));
                guarded(
                    &origin,
                    site,
                    divisor.map(|text| exact(format!("{text} != 0"))),
                )
            }
        }
    }

    /// Proposes guards for a call that fails for the default of an absent value.
    fn with_failing_default(self, origin: &Origin<'_>, site: &FailureSite) -> Proposal {
        let Some((optional, default)) = self.default_at(site) else {
            return Proposal::default();
        };
        if self.has_default_of_other_type(site) {
            let (is, wanted) = match default {
                Json::String(_) => ("a string", "a number"),
                _ => ("a number", "a string"),
            };
            let shown = literal(&default).unwrap_or_default();
            return Proposal::only_advice(format!("the default `{shown}` is {is}; write {wanted}"));
        }
        let text = subexpressions::text(origin.ast, optional);
        let test = (!text.ends_with('…')).then(|| exact(format!("{text}.hasValue()")));
        guarded(origin, site, test)
    }

    fn origin(&self, n: usize) -> Option<Origin<'_>> {
        let expression = self.evaluator.policy.expressions().get(n)?;
        Some(Origin {
            ast: self.evaluator.ast(n)?,
            text: &expression.text,
            role: expression.role,
        })
    }

    /// Proposes changes for a value that may be absent.
    fn without_value(
        self,
        origin: &Origin<'_>,
        sites_by_node: &SitesByNode<'_>,
        site: &FailureSite,
    ) -> Proposal {
        let n = site.node.index;
        let of_chain = sites_by_node
            .values()
            .flatten()
            .filter(|other| other.node.index == n && other.chain == site.chain)
            .filter(|other| other.cause == FailureCause::Absent && !other.path.segments.is_empty());
        let optional: HashSet<ExprId> = of_chain.map(|other| other.node.id).collect();
        let Some(chain) = guard::optional_chain(self.evaluator, n, site.chain, &optional) else {
            return Proposal::default();
        };
        if let Some(test) = self.test_of_variable(n) {
            let path = &site.path;
            let has_fields_alone = path.fields().len() == path.segments.len();
            let is_replaceable = has_fields_alone && test.starts_with("has(");
            let field = is_replaceable.then(|| format!("has({}.{path})", path.root.name()));
            let instead = field.map_or_else(
                || "test the field instead of the variable".to_owned(),
                |field| format!("write `{field}` in its place"),
            );
            return Proposal::only_advice(format!(
                "`{test}` is never false, because it fails if the variable fails: {instead}"
            ));
        }
        if let Some(advice) = intent::inverted_guard(origin.ast, site.node.id, &chain) {
            return Proposal::only_advice(advice);
        }
        let advice = intent::optional_entry(origin.ast, site.chain, &chain);
        if let Some(advice) = advice.or_else(|| self.advice_about_namespace(site)) {
            return Proposal::only_advice(advice);
        }
        if is_string_data(&self.resource.gvk, &site.path) {
            return Proposal::only_advice(NO_STRING_DATA);
        }
        let condition = condition_around(origin.ast, origin.text, site.node.id);
        let condition = condition.filter(|condition| is_boolean(origin, condition.id));
        let path = self.path_of_chain(site);
        let path = path.filter(|_| !chain.may_lack_element);
        let default = self.default_of_chain(origin, site, path.as_ref());
        let may_require_value =
            matches!(&default, Some(ProposedDefault::Known(default)) if default.may_require_value);
        let mut candidates: Vec<Candidate> = Vec::new();
        let sides = intent::with_optional_sides(origin.ast, origin.text, site.chain, &chain);
        let null_roots = self.null_roots(n, sites_by_node);
        let may_be_null = path.as_ref().is_some_and(|path| {
            let input_type = self.evaluator.input_type(path);
            input_type.is_none_or(|it| it.may_be_null(path))
        });
        let presence = intent::presence_test(origin.ast, origin.text, site.chain, &chain);
        candidates.extend(presence.filter(|_| null_roots.is_empty() && !may_be_null));
        // If `object` or `oldObject` may be null, optional selections on both sides are not proposed. A default for
        // only one side is not proposed either, because an absent value on this side would then differ from an absent
        // value on the other side.
        let is_one_side = sides.is_some() && !null_roots.is_empty();
        candidates.extend(sides.filter(|_| null_roots.is_empty()));
        let has_root = !null_roots.contains(&site.path.root) && !is_one_side;
        if has_root && !guard::is_compared_with_null(origin.ast, site.chain) {
            // Only the first of `defaults` that passes its trial is suggested.
            let places = (&chain, site.chain);
            let defaults = with_defaults(origin, places, condition.as_ref(), default);
            // The request may also lack the values of other chains, so a candidate with defaults for all chains is
            // proposed too.
            let combined = defaults
                .last()
                .and_then(|one| self.at_all_chains(origin, sites_by_node, (site, one)));
            candidates.extend(defaults);
            candidates.extend(combined.filter(|_| null_roots.is_empty()));
        }
        // If the effect of the default is uncertain, the author must choose, so guards are proposed too. They are not
        // proposed for a chain with `orValue()` but without a `?`, because they do not fix the missing `?`.
        let has_or_value = or_value(origin, site.chain).is_some();
        if let Some(condition) = condition.as_ref().filter(|_| !has_or_value) {
            candidates.extend(guards(origin, condition, &chain.tests));
        }
        if let Some(path) = path.as_ref().filter(|_| has_root) {
            let default = self.default_of_alternative(origin, site, path);
            let places = (&chain, site.chain);
            candidates.extend(with_defaults(origin, places, condition.as_ref(), default));
        }
        if let Some(condition) = condition.as_ref().filter(|_| !has_or_value) {
            let place = (site, &chain);
            candidates.extend(guards_of_whole(origin, sites_by_node, place, condition));
        }
        if let Some(advice) = self.advice_for_author(origin, site, &chain, path.as_ref()) {
            return Proposal {
                candidates,
                advice: Some(advice),
                ..Proposal::default()
            };
        }
        let advice = (origin.role == Role::Variable).then(|| {
            let text = intent::optional_variable(origin.ast, origin.text, site.chain, &chain);
            format!(
                "write `{text}`, and handle the absent value in the expressions that read the variable"
            )
        });
        Proposal {
            advice: advice.filter(|_| candidates.is_empty() || may_require_value),
            fallback: intent::nested_test(origin.ast, site.chain, &chain),
            candidates,
            ..Proposal::default()
        }
    }

    /// Returns the default to propose for an absent field at the end of the chain of `site`, whose path is `path`.
    fn default_of_chain(
        self,
        origin: &Origin<'_>,
        site: &FailureSite,
        path: Option<&FieldPath>,
    ) -> Option<ProposedDefault> {
        // If a member of a union is absent, its fields have no defaults.
        let default = path.filter(|path| **path == site.path || !is_union_member(&site.path));
        let mut default = default.and_then(|path| self.default_of(origin, path));
        if let (Some(ProposedDefault::Known(default)), Some(path)) = (&mut default, path) {
            let field = path.names().last().copied();
            let policy = self.evaluator.policy;
            let n = site.node.index;
            let variable = policy.expressions().get(n);
            let variable = variable.filter(|it| it.role == Role::Variable);
            let variable = variable.and_then(|it| it.name.as_deref());
            default.may_require_value = intent::asks_for_value(policy, n)
                || intent::is_required(origin.ast, site.chain, field)
                || variable.is_some_and(|name| intent::is_variable_required(policy, name, field))
                || origin.role == Role::MatchCondition
                    && intent::is_negated_all(origin.ast, site.chain);
        }
        default
    }

    /// Combines `one`, the candidate for `site`, with defaults for all other chains of the expression whose values may
    /// be absent. `None` if there are no other chains, or if one of them has no certain default.
    fn at_all_chains(
        self,
        origin: &Origin<'_>,
        sites_by_node: &SitesByNode<'_>,
        (site, one): (&FailureSite, &Candidate),
    ) -> Option<Candidate> {
        one.default
            .as_ref()
            .filter(|default| !default.may_require_value)?;
        let n = site.node.index;
        let sites = sites_by_node.values().flatten();
        let others = sites.filter(|other| {
            other.node.index == n
                && other.cause == FailureCause::Absent
                && !other.path.segments.is_empty()
                && other.chain != site.chain
        });
        let mut chains: BTreeMap<ExprId, (&FailureSite, HashSet<ExprId>)> = BTreeMap::new();
        for other in others {
            let chain = chains.entry(other.chain).or_insert((other, HashSet::new()));
            chain.1.insert(other.node.id);
        }
        if !(1..MAX_CHAINS).contains(&chains.len()) {
            return None;
        }
        let mut changes = vec![one.clone()];
        for (id, (other, optional)) in chains {
            let chain = guard::optional_chain(self.evaluator, n, id, &optional)?;
            let path = self.path_of_chain(other)?;
            let default = self.default_of(origin, &path)?;
            let is_required = intent::is_required(origin.ast, id, path.names().last().copied());
            if is_required || chain.may_lack_element {
                return None;
            }
            let change = with_default(origin, (&chain, id), None, Some(default))?;
            change
                .default
                .as_ref()
                .filter(|it| it.effective.is_certain)?;
            changes.push(change);
        }
        combined(origin, one, changes)
    }

    /// Returns the source text of a presence test for the variable with the index `n`, such as `has(variables.x)`.
    fn test_of_variable(self, n: usize) -> Option<String> {
        let all = self.evaluator.policy.expressions();
        (0..all.len()).find_map(|index| {
            let ast = self.evaluator.ast(index)?;
            ast.iter().find_map(|(id, _)| {
                let tested = self.evaluator.tested_variable(ExprRef { index, id });
                (tested == Some(n)).then(|| subexpressions::text(ast, id))
            })
        })
    }

    /// Returns advice about an existing `orValue()` that has no effect, because the chain has no optional selection.
    fn advice_for_author(
        self,
        origin: &Origin<'_>,
        site: &FailureSite,
        chain: &OptionalChain,
        path: Option<&FieldPath>,
    ) -> Option<String> {
        let (_, argument) = or_value(origin, site.chain)?;
        let text = &chain.optional_text;
        Some(match path.and_then(|path| self.default_of(origin, path)) {
            Some(ProposedDefault::Known(default)) if default.literal != argument => format!(
                "an absent value counts as `{0}`, not as `{argument}`: write `{text}.orValue({0})`",
                default.literal
            ),
            _ => format!(
                "with `{text}.orValue({argument})`, the value `{argument}` decides whether such requests are allowed"
            ),
        })
    }

    /// Returns the path of the site's whole chain: the path of the failing node, extended by the selections after it.
    /// `None` if the failing node selects from the default of an absent value.
    fn path_of_chain(self, site: &FailureSite) -> Option<FieldPath> {
        if let Expr::Select { field, .. } = self.evaluator.expr(site.node)
            && !matches!(site.path.segments.last(), Some(Segment::Field(name)) if name == field)
        {
            return None;
        }
        let names = guard::selections_after(self.evaluator, site.node, site.chain)?;
        let mut path = site.path.clone();
        for segment in names {
            path = path.then(segment)?;
        }
        Some(path)
    }

    /// Returns advice if the expression reads the namespace of a cluster-scoped object, and no rule has a wildcard.
    /// Such an object never has a namespace, so a default is pointless.
    fn advice_about_namespace(self, site: &FailureSite) -> Option<String> {
        let root = site.path.root;
        let is_read = matches!(root, Root::Object | Root::OldObject)
            && site.path.fields() == ["metadata", "namespace"];
        if !is_read || self.resource.namespaced {
            return None;
        }
        let mut rules = matching::rules(self.evaluator.policy.policy()).iter();
        let is_wildcard = |name: &String| name.contains('*');
        let is_named = rules.all(|rule| !rule.resources.iter().flatten().any(is_wildcard));
        let (kind, root) = (&self.resource.gvk.kind, root.name());
        is_named.then(|| {
            format!(
                "{kind} is cluster-scoped, so its objects have no `metadata.namespace`: test another field, such as \
                 `{root}.metadata.name`"
            )
        })
    }

    /// Returns the value to propose for an absent field: its effective default if known, or else an empty list or map.
    /// For a scalar without a known default, returns its zero value if the expression does not affect the decision.
    fn default_of(self, origin: &Origin<'_>, path: &FieldPath) -> Option<ProposedDefault> {
        let names = path.names();
        // A default makes no sense, because the API server later generates the absent name.
        if is_generated_name(path) {
            return None;
        }
        let is_metadata = names.first() == Some(&"metadata");
        let is_object = matches!(path.root, Root::Object | Root::OldObject);
        let effective = match path.root {
            // Go omits the field `replicas` of a Scale if the value is 0.
            Root::Object | Root::OldObject
                if &*self.resource.gvk.kind == "Scale" && path.fields() == ["spec", "replicas"] =>
            {
                Some(certain(Json::from(0)))
            }
            Root::Object | Root::OldObject if self.is_builtin(path) => {
                effective_default(&self.resource.gvk, path)
            }
            // All kinds have the same metadata as a Namespace.
            Root::Object | Root::OldObject | Root::Params if is_metadata => {
                effective_default(&namespace(), path)
            }
            Root::Namespace => effective_default(&namespace(), path),
            Root::Request => self.default_of_request(path),
            _ => None,
        };
        if let Some(effective) = effective {
            let literal = literal(&effective.value)?;
            let literal = match &effective.inherited_from {
                Some(names) => inherited(path.root, names, &literal),
                None => literal,
            };
            return Some(ProposedDefault::Known(KnownDefault {
                literal,
                path: (is_object && !is_metadata).then(|| path.clone()),
                effective,
                may_require_value: false,
            }));
        }
        let input_type = self.evaluator.input_type(path)?;
        let literal = match () {
            () if input_type.is_list() => "[]",
            () if input_type.is_map() => "{}",
            // The values of these expressions do not affect the decision about the request.
            () if matches!(origin.role, Role::MessageExpression | Role::AuditAnnotation) => {
                input_type.default_literal()?
            }
            () => return None,
        };
        Some(ProposedDefault::Any(literal.to_owned()))
    }

    /// Returns the default `''` for an absent string that an operand of `||` reads in a match condition. A guard of
    /// this operand alone does not help if another operand reads the same string.
    fn default_of_alternative(
        self,
        origin: &Origin<'_>,
        site: &FailureSite,
        path: &FieldPath,
    ) -> Option<ProposedDefault> {
        let is_condition = origin.role == Role::MatchCondition;
        if !is_condition || !is_alternative(origin, site.node.id) || is_generated_name(path) {
            return None;
        }
        let literal = self.evaluator.input_type(path)?.default_literal()?;
        (literal == "''").then(|| ProposedDefault::Any(literal.to_owned()))
    }

    /// Returns the effective default of a field of `request`. The fields of Go's `AdmissionRequest` are not pointers,
    /// so the effective default is the zero value. Fields of `request.options` may be pointers, so they have no known
    /// default.
    fn default_of_request(self, path: &FieldPath) -> Option<EffectiveDefault> {
        let names = path.names();
        if names.len() > 2 || matches!(*names, [] | ["options", ..]) {
            return None;
        }
        let input_type = self.evaluator.input_type(path)?;
        let value = match input_type.default_literal()? {
            "''" => Json::from(""),
            "0" => Json::from(0),
            "false" => Json::from(false),
            "[]" => Json::Array(Vec::new()),
            "{}" => Json::Object(serde_json::Map::new()),
            _ => return None,
        };
        Some(certain(value))
    }

    /// Proposes changes for a variable such as `object` that may be null.
    fn without_root(self, origin: &Origin<'_>, site: &FailureSite) -> Proposal {
        let root = site.path.root;
        let has_old =
            |operation: &Operation| matches!(operation, Operation::Update | Operation::Delete);
        let advice = match root {
            Root::Object if self.operations.iter().all(has_old) => {
                "or read `oldObject`, which UPDATE and DELETE requests have, or remove DELETE from the rule's operations: \
                 then the policy allows all deletions"
            }
            Root::Namespace if origin.role == Role::MatchCondition => {
                return Proposal::only_advice(
                    "match conditions are evaluated without a namespaceObject; test it in a validation, or use a \
                     namespaceSelector in matchConstraints or in the binding",
                );
            }
            Root::Namespace if &*self.resource.gvk.kind == "Namespace" => {
                let is_deletion = |operation: &Operation| *operation == Operation::Delete;
                return Proposal::only_advice(if self.operations.iter().all(is_deletion) {
                    "a request for a Namespace has no namespaceObject: read `oldObject`, which is the deleted Namespace"
                } else {
                    "a request for a Namespace has no namespaceObject: read `object`, which is the Namespace"
                });
            }
            Root::Namespace | Root::Request => {
                "or exclude cluster-scoped objects with `scope: Namespaced` in the rule: then the policy allows them"
            }
            Root::Object => {
                "or remove DELETE from the rule's operations: then the policy allows all deletions"
            }
            Root::OldObject => {
                "or remove CREATE from the rule's operations: then the policy allows all creations"
            }
            Root::Params | Root::Authorizer => "or add a paramRef to the binding",
        };
        let is_always = |null_for: &[Operation]| {
            let mut operations = self.operations.iter();
            operations.all(|operation| null_for.contains(operation))
        };
        let other = match root {
            Root::Object if is_always(&[Operation::Delete]) => Some("oldObject"),
            Root::OldObject if is_always(&[Operation::Create, Operation::Connect]) => {
                Some("object")
            }
            _ => None,
        };
        if let Some(other) = other {
            let rename = renamed(origin, (root.name(), other));
            let name = root.name();
            let advice = match rename {
                Some(_) => {
                    format!("`{name}` is null in each request that the rules match: use `{other}`")
                }
                None => format!(
                    "`{name}` is null in each request that the rules match: only UPDATE requests have both `object` and \
                     `oldObject`"
                ),
            };
            return Proposal {
                advice: Some(advice),
                rename,
                ..Proposal::default()
            };
        }
        let instead = "`(object == null ? oldObject : object)` instead of `object` to test the deleted object";
        // An expression that tests for deletions is about the deleted object, so a guard would change its meaning.
        let is_about_deletions = root == Root::Object && tests_for_deletions(origin.ast);
        let assumed = renamed(origin, ("object", "oldObject")).filter(|_| is_about_deletions);
        if assumed.is_some() {
            return Proposal {
                assumed,
                ..Proposal::only_advice(format!("write {instead}"))
            };
        }
        let condition = conditions::whole(origin.ast, origin.text)
            .filter(|condition| is_boolean(origin, condition.id));
        let test = format!("{} != null", root.name());
        let Some(condition) = condition else {
            return Proposal::only_advice(format!(
                "test `{test}` in the expressions that read the variable, {advice}"
            ));
        };
        // A match condition usually selects objects by their content. A DELETE request has the content of the object
        // only in `oldObject`.
        let is_of_deletions = root == Root::Object && origin.role == Role::MatchCondition;
        let has_old = is_of_deletions && renamed(origin, ("object", "oldObject")).is_some();
        let first_advice = has_old.then(|| instead.to_owned());
        Proposal {
            candidates: guards(origin, &condition, &[test]),
            advice: Some(advice.to_owned()),
            first_advice,
            ..Proposal::default()
        }
    }
}

/// Returns up to two candidates that add a default to the chain. The first candidate adds it to all occurrences of the
/// chain. The second candidate adds it only at `id`.
fn with_defaults(
    origin: &Origin<'_>,
    (chain, id): (&OptionalChain, ExprId),
    condition: Option<&Condition>,
    default: Option<ProposedDefault>,
) -> Vec<Candidate> {
    let one = with_default(origin, (chain, id), condition, default);
    let all = one
        .as_ref()
        .and_then(|one| at_all_places(origin, chain, one));
    all.into_iter().chain(one).collect()
}

/// Returns true if the condition `id` has a boolean value. Conditions within an expression are always boolean. A whole
/// expression is boolean in a validation or match condition, or if it is a boolean operation.
pub(super) fn is_boolean(origin: &Origin<'_>, id: ExprId) -> bool {
    let ast = origin.ast;
    if id == ast.root() {
        let is_condition = matches!(origin.role, Role::Validation | Role::MatchCondition);
        return is_condition || is_boolean_operation(ast, id);
    }
    true
}

/// Returns the source of the list if the failing node selects one of its elements.
fn list_of_index(origin: &Origin<'_>, site: &FailureSite) -> Option<String> {
    let (function, args) = origin.ast.global_call(site.node.id)?;
    let list = *args.first().filter(|_| function == "_[_]")?;
    let start = first_offset(origin.ast, list);
    let index = origin.ast.offset(site.node.id);
    let text: String = origin
        .text
        .chars()
        .take(usize::try_from(index).ok()?)
        .skip(usize::try_from(start).ok()?)
        .collect();
    let text = text.trim();
    (!text.is_empty() && text.len() <= MAX_LIST && guard::is_balanced(text))
        .then(|| text.to_owned())
}

/// Returns true if the expression compares `request.operation` with `DELETE`.
fn tests_for_deletions(ast: &Ast) -> bool {
    ast.iter().any(|(id, _)| {
        let Some(("_==_" | "_!=_", [left, right])) = ast.global_call(id) else {
            return false;
        };
        let is_operation = |id: &ExprId| {
            ast.qualified_name(*id).is_some_and(|name| name == "request.operation")
        };
        let is_delete = |id: &ExprId| {
            matches!(ast.expr(*id), Expr::Literal(Literal::String(text)) if **text == *"DELETE")
        };
        is_operation(left) && is_delete(right) || is_operation(right) && is_delete(left)
    })
}

/// Proposes two guards. With the first guard, the condition is false for a failing value. With the second guard, it is
/// true.
fn guarded(origin: &Origin<'_>, site: &FailureSite, test: Option<(String, bool)>) -> Proposal {
    let Some((test, is_exact)) = test else {
        return Proposal::default();
    };
    let condition = condition_around(origin.ast, origin.text, site.node.id);
    let condition = condition.filter(|condition| is_boolean(origin, condition.id));
    let Some(condition) = condition else {
        return Proposal::only_advice(format!(
            "test `{test}` in the expressions that read the variable"
        ));
    };
    let mut candidates = guards(origin, &condition, &[test]);
    for candidate in &mut candidates {
        candidate.is_exact = is_exact;
    }
    Proposal {
        candidates,
        ..Proposal::default()
    }
}

/// The value that a replacement uses for an absent field.
#[derive(Clone, Debug)]
pub(super) enum ProposedDefault {
    Known(KnownDefault),
    /// A literal that is not the effective default of the field.
    Any(String),
}

fn certain(value: Json) -> EffectiveDefault {
    EffectiveDefault {
        value,
        is_certain: true,
        inherited_from: None,
    }
}

/// Returns `test` with the flag true: the test is true for each value for which the expression does not fail.
fn exact(test: String) -> (String, bool) {
    (test, true)
}

/// Returns the CEL source of the field from which another field inherits its value. If that field is absent too, the
/// source evaluates to `literal`.
fn inherited(root: Root, names: &[(String, bool)], literal: &str) -> String {
    let mut text = root.name().to_owned();
    let mut is_optional = false;
    for (name, may_be_absent) in names {
        is_optional |= may_be_absent;
        let sign = if is_optional { "?" } else { "" };
        let _ = write!(text, ".{sign}{name}");
    }
    format!("{text}.orValue({literal})")
}

fn namespace() -> Gvk {
    Gvk::new("", "v1", "Namespace")
}

/// Maximum number of chains of one expression that a candidate changes.
const MAX_CHAINS: usize = 8;

/// Maximum length of the source of a list in a guard, in bytes.
const MAX_LIST: usize = 100;

fn first_offset(ast: &Ast, id: ExprId) -> u32 {
    let offsets = ast.descendants(id).into_iter().map(|id| ast.offset(id));
    offsets.min().unwrap_or_default()
}

/// Returns true for a comparison, a logical operation or a test.
fn is_boolean_operation(ast: &Ast, id: ExprId) -> bool {
    match ast.expr(id) {
        Expr::Select { test_only, .. } => *test_only,
        Expr::Call { function, args, .. } => match &**function {
            "_&&_" | "_||_" | "!_" | "_==_" | "_!=_" | "_<_" | "_<=_" | "_>_" | "_>=_" | "@in"
            | "startsWith" | "endsWith" | "contains" | "matches" => true,
            "_?_:_" => args
                .iter()
                .skip(1)
                .any(|branch| is_boolean_operation(ast, *branch)),
            _ => false,
        },
        Expr::Comprehension(fold) => {
            matches!(ast.expr(fold.accu_init), Expr::Literal(Literal::Bool(_)))
        }
        Expr::Literal(literal) => matches!(literal, Literal::Bool(_)),
        _ => false,
    }
}
