//! The objects of a case as the API server has them when it asks policies: with defaults, with what the server
//! sets, and converted where the policy matches another version of their kind.
//!
//! What cannot be known here is a reason why the case is `Pending`; it is never passed over.

use std::borrow::Cow;

use serde_json::Value;

use super::api::Request;
use super::run::admission_request;
use crate::defaulting;
use crate::policy::admission::{AdmissionRequest, Object, Operation};
use crate::schema::resolver::SchemaResolver;
use crate::schema::{Gvk, RestMapper};

/// The request with prepared objects.
///
/// # Errors
/// Why the API server's doing is not known.
pub(crate) fn objects<'a>(
    request: &'a Request,
    mapper: &RestMapper,
    schemas: &dyn SchemaResolver,
) -> Result<Cow<'a, Request>, String> {
    let raw = admission_request(request, mapper)?;
    let operation = match raw.operation {
        Operation::Create => defaulting::Operation::Create,
        Operation::Update => defaulting::Operation::Update,
        Operation::Delete => defaulting::Operation::Delete,
        Operation::Connect => return Ok(Cow::Borrowed(request)),
    };
    let is_status = raw.subresource == "status";
    // The objects of other subresources are what they are sent as.
    if raw.is_exempt() || !(raw.subresource.is_empty() || is_status) {
        return Ok(Cow::Borrowed(request));
    }
    let custom = schemas.custom(&raw.gvk);
    if custom.is_none() && !defaulting::has(&raw.gvk) && !is_kubernetes(&raw.gvk) {
        // In a cluster nothing more is known of the kind than its types.
        return Ok(Cow::Borrowed(request));
    }
    let prepared = defaulting::prepare(&defaulting::Request {
        operation,
        gvk: &raw.gvk,
        custom: custom.map(|(_, version)| defaulting::Custom {
            schema: version.schema.as_ref(),
            has_status: version.has_status,
        }),
        namespace: &raw.namespace,
        is_status,
        object: request.object.as_ref(),
        old_object: request.old_object.as_ref(),
    });
    let prepared = prepared.map_err(|error| error.to_string())?;
    let mut result = request.clone();
    result.object = prepared.object;
    result.old_object = prepared.old_object;
    // A name that the server makes is not the one of the request.
    result.name = Some(raw.name);
    result.namespace = Some(raw.namespace);
    Ok(Cow::Owned(result))
}

/// Reports whether the kind is one of Kubernetes' own, by its group.
fn is_kubernetes(gvk: &Gvk) -> bool {
    !gvk.group.contains('.') || gvk.group.ends_with(".k8s.io")
}

/// The request with its objects of the kind `to`, as which the policy matches it, if it does.
///
/// # Errors
/// Why they cannot be converted here.
pub(crate) fn convert(
    case: &Request,
    mut request: AdmissionRequest,
    to: Option<Gvk>,
    schemas: &dyn SchemaResolver,
) -> Result<AdmissionRequest, String> {
    let Some(to) = to else {
        return Ok(request);
    };
    if to == request.gvk {
        return Ok(request);
    }
    if let Some((crd, _)) = schemas.custom(&request.gvk) {
        if crd.has_webhook {
            return Err(format!(
                "the policy matches {} as {}, and only a webhook of the cluster converts it",
                request.gvk.kind,
                to.api_version()
            ));
        }
        return Ok(request);
    }
    if !defaulting::has(&request.gvk) || !request.subresource.is_empty() {
        return Ok(request);
    }
    let from = request.gvk.clone();
    let converted = |object: Option<&Value>| {
        let converted = object.map(|object| defaulting::convert(object, &from, &to));
        let converted = converted.transpose().map_err(|error| error.to_string())?;
        Ok::<_, String>(converted.as_ref().map(Object::new))
    };
    request.object = converted(case.object.as_ref())?;
    request.old_object = converted(case.old_object.as_ref())?;
    Ok(request)
}
