//! The context for compiling the rules of a schema. It consists of the type of `self` and the maximum number of
//! evaluations per object.
//!
//! Source: apiextensions-apiserver `pkg/apis/apiextensions/validation/cel_validation.go` (`CELSchemaContext`).

use std::cell::{OnceCell, RefCell};
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use super::{cost, keywords};
use crate::schema::escape::escape;
use crate::schema::rule_type::rule_type;
use crate::schema::{DeclKind, DeclType, Interner};
use crate::version::Behavior;

/// The position of a schema within the enclosing schema.
#[derive(Clone, Copy)]
pub(super) enum Step<'a> {
    Property(&'a str),
    Items,
    Values,
}

/// The context for compiling the rules of a schema and of its nested schemas.
pub(super) struct Context<'a> {
    around: Option<(&'a Context<'a>, Step<'a>)>,
    schema: &'a Map<String, Json>,
    pub(super) behavior: Behavior,
    /// True if the schema or an enclosing schema has rules.
    is_in_scope: bool,
    /// The type of the schema's values, computed on first use. `None` if rules cannot access values of the schema.
    type_: OnceCell<Result<Option<Arc<DeclType>>, String>>,
    /// The maximum number of values of this schema in one object. `None` if there is no maximum.
    pub(super) max_cardinality: Option<u64>,
}

fn has_rules(schema: &Map<String, Json>) -> bool {
    let rules = schema.get("x-kubernetes-validations");
    rules
        .and_then(Json::as_array)
        .is_some_and(|rules| !rules.is_empty())
}

impl<'a> Context<'a> {
    pub(super) fn root(schema: &'a Map<String, Json>, behavior: Behavior) -> Self {
        Self {
            around: None,
            schema,
            behavior,
            is_in_scope: has_rules(schema),
            type_: OnceCell::new(),
            max_cardinality: Some(1),
        }
    }

    pub(super) fn below(&'a self, schema: &'a Map<String, Json>, step: Step<'a>) -> Self {
        let factor = keywords::max_elements(self.schema);
        let max_cardinality = self
            .max_cardinality
            .zip(factor)
            .map(|(around, factor)| cost::product(around, factor));
        Self {
            around: Some((self, step)),
            schema,
            behavior: self.behavior,
            is_in_scope: self.is_in_scope || has_rules(schema),
            type_: OnceCell::new(),
            max_cardinality,
        }
    }

    /// Returns the type of the schema's values. If an enclosing schema has rules, the type is looked up in the type of
    /// the directly enclosing schema, as in upstream.
    pub(super) fn type_(
        &self,
        interner: &RefCell<Interner>,
    ) -> Result<Option<Arc<DeclType>>, String> {
        let type_ = self.type_.get_or_init(|| {
            if let Some((around, step)) = self.around
                && around.is_in_scope
                && let Some(type_) = around.type_(interner)?
                && let Part::Found(part) = part(&type_, step)
            {
                return Ok(part);
            }
            let is_resource = self.around.is_none()
                || self.schema.get("x-kubernetes-embedded-resource") == Some(&Json::Bool(true));
            match rule_type(
                self.schema,
                is_resource,
                self.behavior,
                &mut interner.borrow_mut(),
            ) {
                Ok(Some(type_)) => Ok(Some(type_)),
                Ok(None) => Err("unable to convert structural schema to CEL declarations".into()),
                Err(error) => Err(error.to_string()),
            }
        });
        type_.clone()
    }
}

/// The result of looking up the type of a nested schema in the type of the enclosing schema.
enum Part {
    /// The type of the nested schema. `None` if rules cannot access its values.
    Found(Option<Arc<DeclType>>),
    /// The enclosing type does not contain the nested schema.
    Missing,
}

fn part(type_: &DeclType, step: Step<'_>) -> Part {
    let exposed = |type_: &Arc<DeclType>| type_.is_exposed().then(|| Arc::clone(type_));
    match (step, &type_.kind) {
        (Step::Property(name), _) => {
            let fields = type_.declared_fields();
            let field = escape(name).and_then(|escaped| {
                let index = fields.binary_search_by(|field| (*field.name).cmp(&escaped));
                fields.get(index.ok()?)
            });
            match field.and_then(|field| exposed(&field.type_)) {
                Some(type_) => Part::Found(Some(type_)),
                None => Part::Missing,
            }
        }
        (_, DeclKind::List(elem) | DeclKind::Map(elem)) => Part::Found(exposed(elem)),
        _ => Part::Found(None),
    }
}
