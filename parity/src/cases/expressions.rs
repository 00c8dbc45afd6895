//! Building blocks of generated expressions: variables with their schemas, and the declarations of the environment.

use std::sync::Arc;

use anyhow::{Context as _, Result};
use serde_json::{Value, json};
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::env::Env;
use vap_status_controller::cel::types::{StructType, Type};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::schema::{DeclType, Gvk, OpenApiDocument};

use super::choices::Choices;
use super::generator::{Generator, Material};

pub(crate) fn authorizer_type() -> Type {
    Type::Struct(StructType::undeclared(
        "kubernetes.authorization.Authorizer",
    ))
}

pub(crate) fn material(variables: &[(&str, Type)]) -> Material {
    Material::new(&environment(variables), variables)
}

pub(crate) fn environment(variables: &[(&str, Type)]) -> Env {
    let declared = variables
        .iter()
        .map(|(name, type_)| Variable::new(*name, type_.clone()));
    base_env(crate::version::get()).extend(declared)
}

pub(crate) fn declared(schema: &Value) -> Result<Arc<DeclType>> {
    let document = json!({"openapi": "3.0.0", "components": {"schemas": {"made": {
        "type": "object",
        "properties": {"self": schema},
        "x-kubernetes-group-version-kind": [{"group": "g", "version": "v1", "kind": "Made"}],
    }}}});
    let document = OpenApiDocument::parse(document.to_string().as_bytes())?;
    let root = document.decl_type(&Gvk::new("g", "v1", "Made"));
    let root = root.ok().context("no type")?;
    let of_self = root.declared_field("self").context("no field")?;
    Ok(Arc::clone(&of_self.type_))
}

/// Generates an expression of `type_`. If `type_` is `None`, the type is random.
pub(crate) fn make(
    material: &Material,
    choices: &mut Choices<'static>,
    type_: Option<&Type>,
    depth: u32,
) -> String {
    let may_be_dyn = choices.chance(30);
    let seeded = Choices::Seeded(u64::try_from(choices.below(1 << 30)).unwrap_or_default());
    let mut generator = Generator::new(material, seeded, may_be_dyn);
    match type_ {
        Some(type_) => generator.expr(type_, depth),
        None => generator.any(depth),
    }
}

/// Returns true if the expression has a deterministic result and does not crash upstream.
pub(crate) fn is_steady(text: &str) -> bool {
    // Upstream allocates the whole list before it computes the cost. A large argument may therefore exhaust the memory.
    let ranges = text.split("lists.range(").skip(1);
    let are_short = ranges.into_iter().all(|rest| {
        let argument = rest.split([')', ',']).next().unwrap_or_default();
        argument.len() <= 3 && argument.bytes().all(|byte| byte.is_ascii_digit())
    });
    are_short && text.len() < 20_000
}
