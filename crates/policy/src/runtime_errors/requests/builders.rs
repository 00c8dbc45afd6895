//! Creates request builders for the kinds that a policy matches.

use super::RequestBuilder;
use crate::admission::{Admission, Operation};
use crate::compile::CompiledPolicy;
use crate::param_kind;
use crate::runtime_errors::Context;
use crate::runtime_errors::input_types::InputType;
use crate::runtime_errors::input_types::roots::ParamsType;
use kubernetes::defaulting::Custom;
use kubernetes::schema::Gvk;
use kubernetes::schema::resolver::Resolution;
use kubernetes::schema::rest_mapper::ApiResource;

pub(crate) struct RequestBuilders<'c, 'a> {
    policy: &'a CompiledPolicy,
    context: &'c Context<'a>,
    admission: Admission,
    params: Option<ParamsType<'a>>,
}

impl<'c, 'a> RequestBuilders<'c, 'a> {
    /// Creates builders whose requests have params if the policy has a paramKind.
    pub(crate) fn new(policy: &'a CompiledPolicy, context: &'c Context<'a>) -> Self {
        Self {
            params: params_type(policy, context),
            ..Self::without_params(policy, context)
        }
    }

    /// Creates builders whose requests have no params.
    pub(crate) fn without_params(policy: &'a CompiledPolicy, context: &'c Context<'a>) -> Self {
        Self {
            policy,
            context,
            admission: Admission::from_compiled(policy),
            params: None,
        }
    }

    /// Returns the compiled policy that evaluates the requests.
    pub(crate) fn admission(&self) -> &Admission {
        &self.admission
    }

    /// Returns the builder of requests for `resource`. `None` if its kind has no schema.
    pub(crate) fn for_resource<'m>(
        &'m self,
        resource: &'m ApiResource,
        operations: Vec<Operation>,
    ) -> Option<RequestBuilder<'m>> {
        let object = object_type(self.context, &resource.gvk, resource.namespaced)?;
        Some(self.with(resource, operations, object))
    }

    /// Returns the builder of requests for `resource`. If its kind has no schema, any object is valid.
    pub(crate) fn for_untyped<'m>(
        &'m self,
        resource: &'m ApiResource,
        operations: Vec<Operation>,
    ) -> RequestBuilder<'m> {
        let object = object_type(self.context, &resource.gvk, resource.namespaced);
        self.with(resource, operations, object.unwrap_or_else(InputType::any))
    }

    fn with<'m>(
        &'m self,
        resource: &'m ApiResource,
        operations: Vec<Operation>,
        object: InputType<'m>,
    ) -> RequestBuilder<'m> {
        let mut expressions = self.policy.expressions().iter();
        let is_mutating = expressions.any(|expression| expression.role.is_mutation());
        let is_created = operations.contains(&Operation::Create);
        let object = if is_mutating && is_created && !resource.gvr.is_subresource() {
            object.with_generated_name()
        } else {
            object
        };
        RequestBuilder::new(
            &self.admission,
            self.policy,
            resource,
            operations,
            object,
            self.params.clone(),
            self.context.object_cache,
        )
        .with_match_resources(self.context.match_resources)
        .with_definition(custom(self.context, &resource.gvk))
        .with_crd(
            self.context
                .schemas
                .custom(&resource.gvk)
                .map(|(crd, _)| crd),
        )
    }
}

/// Returns the schema and subresources of a custom resource. `None` for a built-in kind.
fn custom<'a>(context: &Context<'a>, gvk: &Gvk) -> Option<Custom<'a>> {
    if let Some((_, version)) = context.schemas.custom(gvk) {
        return Some(Custom {
            schema: version.schema.as_deref(),
            has_status: version.has_status,
        });
    }
    // The OpenAPI document of a cluster does not list subresources, so a status subresource is assumed.
    (!context.written.is_builtin_kind(gvk)).then(|| Custom {
        schema: context.written.written(gvk),
        has_status: true,
    })
}

/// Returns the type of the objects of `gvk`. `None` if the kind has no schema.
pub(crate) fn object_type<'a>(
    context: &Context<'a>,
    gvk: &Gvk,
    is_namespaced: bool,
) -> Option<InputType<'a>> {
    let Resolution::Found(type_) = context.schemas.resolve(gvk) else {
        return None;
    };
    Some(if context.written.is_builtin_kind(gvk) {
        InputType::builtin(type_, gvk.clone(), is_namespaced)
    } else {
        InputType::custom(type_, context.written.written(gvk), is_namespaced)
    })
}

/// Returns the type of the params of `policy`. `None` if the policy has no paramKind.
pub(crate) fn params_type<'a>(
    policy: &CompiledPolicy,
    context: &Context<'a>,
) -> Option<ParamsType<'a>> {
    let gvk = param_kind(policy.policy())?;
    let resource = context.mapper.resources_of_kind(&gvk).next();
    let is_namespaced = resource.is_none_or(|resource| resource.namespaced);
    Some(ParamsType {
        input_type: object_type(context, &gvk, is_namespaced).unwrap_or_else(InputType::any),
        api_version: gvk.api_version(),
        kind: gvk.kind,
        is_namespaced,
        may_be_null: context.without_params.is_some(),
        is_always_null: context.never_has_params,
        given: None,
    })
}
