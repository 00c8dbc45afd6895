//! Witnesses: requests for which an expression fails, in the form that findings show.

use serde::Serialize;
use serde_json::Value as Json;

use super::{RequestBuilder, SyntheticRequest};
use crate::admission::AuthorizerRule;

/// A request for which an expression fails, with its params and its namespace. The request has the format of an
/// `AdmissionReview`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Witness {
    /// The request with the fields operation, kind, resource, name, namespace, userInfo, object and oldObject.
    pub request: Json,
    /// The params, or null if the request has none. `None` if the policy has no paramKind.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub params: Option<Json>,
    /// The Namespace of the request. `None` for a cluster-scoped object.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub namespace_object: Option<Json>,
    /// The results of authorization checks. For other checks, `allowed()` is false.
    #[serde(skip)]
    pub authorizer: Vec<AuthorizerRule>,
    /// The evaluator's error. Empty for an example without an error.
    pub error: String,
}

impl RequestBuilder<'_> {
    /// Converts `synthetic` to a witness. Its evaluation fails with `error`.
    pub(crate) fn witness(&self, synthetic: &SyntheticRequest, error: &str) -> Witness {
        let mut request = synthetic.request.clone();
        if let Some(fields) = request.as_object_mut() {
            for name in [
                "requestKind",
                "requestResource",
                "requestSubResource",
                "options",
            ] {
                fields.remove(name);
            }
            if fields.get("dryRun") == Some(&Json::Bool(false)) {
                fields.remove("dryRun");
            }
            let or_null = |object: &Option<Json>| object.clone().unwrap_or(Json::Null);
            let [object, old_object] = &synthetic.sent;
            fields.insert("object".to_owned(), or_null(object));
            fields.insert("oldObject".to_owned(), or_null(old_object));
        }
        let has_params = self.params.is_some();
        Witness {
            request,
            params: has_params.then(|| synthetic.params.clone().unwrap_or(Json::Null)),
            namespace_object: synthetic.namespace.clone(),
            authorizer: synthetic.authorizer.clone(),
            error: error.to_owned(),
        }
    }
}
