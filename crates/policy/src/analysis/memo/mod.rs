//! Reuses analyses between kinds. For example, a policy that only reads metadata has the same analysis for most of the
//! hundreds of kinds that a wildcard matches.
//!
//! An analysis depends on the fields of `object` and `oldObject` that the expressions select. Two kinds have the same
//! analysis and use the same number of steps if these fields have identical types and the request variants are equal. A
//! kind is analyzed separately if it has findings, or if expressions read its name, its resource or the whole object.

use std::collections::{BTreeSet, HashMap};
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use cel::ast::{Ast, Expr};
use cel::types::Type;
use kubernetes::schema::Gvk;
use kubernetes::schema::decl_type::DeclType;

use super::driver::{Driver, KindAnalysis};
use super::requests::{RequestFeatures, RequestVariant, is_written_in_full, variants};
use super::{Profile, object_type};
use crate::compile::CompiledPolicy;
use crate::matching::Target;
use crate::reads::{Input, Reads};

/// Fields of `request` whose values do not depend on the kind.
const OF_ANY_KIND: [&str; 7] = [
    "dryRun",
    "name",
    "namespace",
    "operation",
    "options",
    "uid",
    "userInfo",
];

/// Fields of objects whose values are different for each kind.
const OF_THE_KIND: [&str; 2] = ["apiVersion", "kind"];

#[derive(Debug)]
pub(super) struct Memo<'a> {
    /// The top-level fields of objects that the policy reads. `None` if the analysis may depend on other properties of
    /// the kind.
    fields: Option<BTreeSet<&'a str>>,
    features: RequestFeatures,
    /// The type name of the params. A kind with the same type name is analyzed separately.
    params: Option<Arc<str>>,
    /// The number of interpreter steps of each analysis without findings.
    steps: HashMap<Key, u32>,
    /// The number of interpreter steps of each analysis of kinds without a schema.
    unseen: HashMap<Vec<RequestVariant>, u32>,
}

/// The properties of a kind that determine its analysis.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Key {
    variants: Vec<RequestVariant>,
    fields: Vec<Field>,
}

/// The declaration of a field.
#[derive(Debug, PartialEq, Eq, Hash)]
enum Field {
    /// The field has this type. `is_given` is true if every object has the field.
    Declared { type_: TypeIdentity, is_given: bool },
    /// The field is not declared. `is_open` is true if objects may have undeclared fields.
    Undeclared { is_open: bool },
}

/// A type, compared by the address of its allocation. Equal types in schemas usually share one allocation.
#[derive(Debug)]
struct TypeIdentity(Arc<DeclType>);

impl PartialEq for TypeIdentity {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for TypeIdentity {}

impl Hash for TypeIdentity {
    fn hash<H: Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.0).hash(state);
    }
}

impl<'a> Memo<'a> {
    pub(super) fn new(policy: &'a CompiledPolicy, params: Option<&Type>) -> Self {
        let params = match params {
            Some(Type::Struct(params)) => Some(Arc::clone(&params.name)),
            _ => None,
        };
        Self {
            fields: fields_read(policy),
            features: RequestFeatures::new(policy),
            params,
            steps: HashMap::new(),
            unseen: HashMap::new(),
        }
    }

    /// Clears the cache of kinds with a schema. Must be called before the first kind matched by a wildcard, because
    /// findings for kinds matched by name are reported differently.
    pub(super) fn forget(&mut self) {
        self.steps.clear();
    }

    /// Analyzes objects of `gvk` in the resources `targets`. Returns an empty analysis if an earlier kind with the same
    /// analysis had no findings.
    pub(super) fn analyze(
        &mut self,
        driver: &mut Driver<'_>,
        gvk: &Gvk,
        schema: &Arc<DeclType>,
        targets: &[&Target<'_>],
    ) -> KindAnalysis {
        let key = self.key(gvk, schema, targets);
        let cached_steps = key.as_ref().and_then(|key| self.steps.get(key));
        if let Some(n_steps) = cached_steps
            && driver.try_take(*n_steps)
        {
            return KindAnalysis::default();
        }
        let before = driver.n_steps_left();
        let object = object_type(schema, gvk, Profile::Truthful);
        let analysis = driver.analyze(gvk, &object, targets);
        if let Some(key) = key
            && analysis.has_no_findings()
            && !driver.is_exhausted()
        {
            self.steps.insert(key, before - driver.n_steps_left());
        }
        analysis
    }

    /// Analyzes objects of `gvk`, a kind without a schema, in the resources `targets`. All such kinds have the type
    /// `object`. Returns an empty analysis if an earlier kind had the same analysis.
    pub(super) fn analyze_schemaless(
        &mut self,
        driver: &mut Driver<'_>,
        gvk: &Gvk,
        object: &Type,
        targets: &[&Target<'_>],
    ) -> KindAnalysis {
        let is_reusable = self.fields.is_some() && !self.depends_on_name(gvk);
        let key = is_reusable.then(|| variants(self.features, gvk, targets));
        let cached_steps = key.as_ref().and_then(|key| self.unseen.get(key));
        if let Some(n_steps) = cached_steps
            && driver.try_take(*n_steps)
        {
            return KindAnalysis::default();
        }
        let before = driver.n_steps_left();
        let analysis = driver.analyze(gvk, object, targets);
        if let Some(key) = key
            && !driver.is_exhausted()
        {
            self.unseen.insert(key, before - driver.n_steps_left());
        }
        analysis
    }

    /// Returns true if the analysis may depend on the name of the kind.
    fn depends_on_name(&self, gvk: &Gvk) -> bool {
        let is_of_params = |name: &Arc<str>| **name == *gvk.type_name();
        is_written_in_full(gvk) || self.params.as_ref().is_some_and(is_of_params)
    }

    fn key(&self, gvk: &Gvk, schema: &DeclType, targets: &[&Target<'_>]) -> Option<Key> {
        let fields = self.fields.as_ref()?;
        let object = schema.as_object()?;
        if self.depends_on_name(gvk) {
            return None;
        }
        let fields = fields.iter().map(|name| match schema.property(name) {
            Some(field) => Field::Declared {
                type_: TypeIdentity(Arc::clone(&field.type_)),
                is_given: field.required || field.has_default,
            },
            None => Field::Undeclared {
                is_open: object.is_open,
            },
        });
        Some(Key {
            variants: variants(self.features, gvk, targets),
            fields: fields.collect(),
        })
    }
}

/// Returns the top-level fields of `object` and `oldObject` that the policy's expressions read. `None` if they may read
/// other properties of the kind.
fn fields_read(policy: &CompiledPolicy) -> Option<BTreeSet<&str>> {
    let mut fields = BTreeSet::new();
    for (n, expression) in policy.expressions().iter().enumerate() {
        if !policy.compiles(n) || expression.role.is_mutation() {
            return None;
        }
        fields.extend(object_fields(expression.parsed().ok()?)?);
    }
    let is_of_the_kind = OF_THE_KIND.iter().any(|field| fields.contains(field));
    (!is_of_the_kind).then_some(fields)
}

/// Returns the top-level fields of `object` and `oldObject` that `ast` reads. `None` if it may read other properties of
/// the kind.
fn object_fields(ast: &Ast) -> Option<Vec<&str>> {
    let names_type =
        |expr: &Expr| matches!(expr, Expr::Call { function, .. } if &**function == "type");
    let reads = Reads::new(ast);
    let object = reads.fields(&[Input::Object, Input::OldObject]);
    let request = reads.fields(&[Input::Request]);
    let is_of_any_kind = |field: &&str| OF_ANY_KIND.contains(field);
    let reads_kind = object.may_read_all
        || request.may_read_all
        || !request.names.iter().all(is_of_any_kind)
        || ast.iter().any(|(_, expr)| names_type(expr));
    (!reads_kind).then_some(object.names)
}

#[cfg(test)]
mod tests;
