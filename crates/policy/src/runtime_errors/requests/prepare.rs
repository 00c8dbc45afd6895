//! Prepares objects as the API server does before admission: sets defaults and metadata, and drops fields (ADR 21).

use serde_json::{Map, Value as Json};

use super::RequestBuilder;
use super::object_cache::CacheKey;
use super::synthetic_request::digest;
use crate::admission::Operation;
use kubernetes::defaulting::{self, Stage, SubresourceRequest};
use kubernetes::validity::{FieldPath, InputConstraints, Root, preserve_immutable};

/// The object and the old object of a request.
type Objects = [Option<Json>; 2];

/// The objects of a request before and after preparation.
pub(crate) struct PreparedObjects {
    /// The objects as the client sends them.
    pub(crate) sent: Objects,
    /// The objects as policies receive them.
    pub(crate) seen: Objects,
    pub(crate) digest: u64,
}

impl RequestBuilder<'_> {
    /// Prepares the objects for `operation`. `None` if the API server rejects the objects, or if it is unknown
    /// whether it rejects them.
    pub(crate) fn prepare(
        &self,
        constraints: &InputConstraints,
        operation: Operation,
        mut sent: Objects,
    ) -> Option<PreparedObjects> {
        let (_, subresource) = self.resource_and_subresource();
        let gvk = &self.resource.gvk;
        let first = sent.iter().flatten().next()?;
        let text = |name: &str| {
            let text = first
                .get("metadata")
                .and_then(|metadata| metadata.get(name));
            text.and_then(Json::as_str).unwrap_or_default().to_owned()
        };
        let (name, namespace) = (text("name"), text("namespace"));
        let Some(operation_on_stored) = stored_operation(operation) else {
            return Some(self.prepare_subresource((&name, &namespace), sent));
        };
        let is_status = subresource == "status";
        if let [Some(object), Some(old_object)] = &mut sent {
            if subresource.is_empty() || is_status {
                copy_unchangeable_fields(constraints, is_status, object, old_object);
            }
            if self.is_builtin {
                let kind = match subresource {
                    "" | "status" => gvk.kind.clone(),
                    subresource => format!("{}/{subresource}", gvk.kind),
                };
                preserve_immutable(&gvk.group, &kind, constraints, object, old_object);
            }
        }
        if !(subresource.is_empty() || is_status) {
            return Some(self.prepare_subresource((&name, &namespace), sent));
        }
        if self.custom.is_none() && !defaulting::has(gvk) {
            return Some(PreparedObjects::unchanged(sent));
        }
        let key = CacheKey {
            gvk: gvk.clone(),
            operation: operation_on_stored,
            is_status,
            namespace,
        };
        let digest = digest(&sent);
        let prepared = self.object_cache.prepared(key, (digest, &sent), |key| {
            let [object, old_object] = &sent;
            let prepared = defaulting::prepare(&defaulting::Request {
                operation: operation_on_stored,
                stage: Stage::Validation,
                gvk,
                custom: self.custom,
                namespace: &key.namespace,
                is_status,
                object: object.as_ref(),
                old_object: old_object.as_ref(),
            });
            prepared.ok()
        })?;
        Some(PreparedObjects {
            sent,
            seen: [prepared.object, prepared.old_object],
            digest,
        })
    }

    /// Prepares the objects of a subresource other than `status`, such as a Scale or the options of a CONNECT request.
    fn prepare_subresource(
        &self,
        (name, namespace): (&str, &str),
        sent: Objects,
    ) -> PreparedObjects {
        let [object, old_object] = &sent;
        let prepared = defaulting::subresource(&SubresourceRequest {
            gvk: &self.resource.gvk,
            name,
            namespace,
            dry_run: false,
            object: object.as_ref(),
            old_object: old_object.as_ref(),
        });
        let seen = match prepared {
            Some(prepared) => [prepared.object, prepared.old_object],
            None => sent.clone(),
        };
        PreparedObjects {
            digest: digest(&sent),
            sent,
            seen,
        }
    }
}

impl PreparedObjects {
    /// Creates prepared objects that policies receive exactly as the client sends them.
    fn unchanged(sent: Objects) -> Self {
        Self {
            digest: digest(&sent),
            seen: sent.clone(),
            sent,
        }
    }
}

/// Returns the operation on the stored object. `None` for CONNECT, which does not change an object.
pub(crate) fn stored_operation(operation: Operation) -> Option<defaulting::Operation> {
    Some(match operation {
        Operation::Create => defaulting::Operation::Create,
        Operation::Update => defaulting::Operation::Update,
        Operation::Delete => defaulting::Operation::Delete,
        Operation::Connect => return None,
    })
}

/// Copies unchangeable fields of the object to the old object. A status request cannot change any field except the
/// metadata and the status. Other requests cannot change the status. Fields of the old object that `constraints` refer
/// to are not replaced.
fn copy_unchangeable_fields(
    constraints: &InputConstraints,
    is_status: bool,
    object: &Json,
    old_object: &mut Json,
) {
    let (Some(fields), Some(old_fields)) = (object.as_object(), old_object.as_object_mut()) else {
        return;
    };
    let is_unchangeable = |name: &str| (name == "status") != is_status && name != "metadata";
    let is_constrained = |name: &str| {
        let path = FieldPath::new(Root::OldObject).field(name);
        path.is_some_and(|path| {
            constraints
                .iter()
                .any(|(constrained, _)| constrained.starts_with(&path))
        })
    };
    let is_copied = |name: &str| is_unchangeable(name) && !is_constrained(name);
    let kept: Map<String, Json> = old_fields
        .iter()
        .filter(|(name, _)| !is_copied(name))
        .chain(fields.iter().filter(|(name, _)| is_copied(name)))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    *old_fields = kept;
}
