//! The types of the objects in CONNECT requests, such as `PodExecOptions`. The API server decodes these objects from
//! URL parameters, so OpenAPI documents do not contain their types.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use super::decl_type::DeclType;
use super::error::SchemaError;
use super::intern::Interner;
use super::openapi::OpenApiDocument;
use super::resolver::Resolution;
use super::{Gvk, extensions};
use serde_json::{Value, json};

/// The names and the types of fields.
type Fields = &'static [(&'static str, &'static str)];

/// The kinds, all in the group version `v1`. Each kind has the fields in all of its lists.
///
/// Source: `k8s.io/api` `core/v1/types.go`.
const KINDS: [(&str, &[Fields]); 6] = [
    ("NodeProxyOptions", &[PATH]),
    ("PodAttachOptions", &[STREAMS]),
    ("PodExecOptions", &[STREAMS, &[("command", "strings")]]),
    ("PodPortForwardOptions", &[&[("ports", "integers")]]),
    ("PodProxyOptions", &[PATH]),
    ("ServiceProxyOptions", &[PATH]),
];

const PATH: Fields = &[("path", "string")];

const STREAMS: Fields = &[
    ("stdin", "boolean"),
    ("stdout", "boolean"),
    ("stderr", "boolean"),
    ("tty", "boolean"),
    ("container", "string"),
];

/// Returns the type of the options of a CONNECT request.
#[must_use]
pub fn resolve(gvk: &Gvk) -> Resolution {
    if !has(gvk) {
        return Resolution::NotFound;
    }
    match types() {
        Ok(types) => match types.get(&*gvk.kind) {
            Some(type_) => Resolution::Found(Arc::clone(type_)),
            None => Resolution::NotFound,
        },
        Err(error) => Resolution::Unavailable(error.to_string()),
    }
}

/// Returns true for the kinds of CONNECT requests.
#[must_use]
pub fn has(gvk: &Gvk) -> bool {
    gvk.group.is_empty() && gvk.version == "v1" && KINDS.iter().any(|(kind, _)| *kind == gvk.kind)
}

/// Returns true if the API server passes an unset field to policies as null. Such a field has no `omitempty`.
#[must_use]
pub fn is_null_unset<'a>(gvk: &Gvk, path: impl IntoIterator<Item = Option<&'a str>>) -> bool {
    let is_command = path.into_iter().eq([Some("command")]);
    has(gvk) && gvk.kind == "PodExecOptions" && is_command
}

type Types = HashMap<String, Arc<DeclType>>;

fn types() -> Result<&'static Types, SchemaError> {
    static TYPES: OnceLock<Result<Types, SchemaError>> = OnceLock::new();
    let types = TYPES.get_or_init(|| {
        let document = OpenApiDocument::parse(document().to_string().as_bytes())?;
        let types = document.decl_types(&mut Interner::default()).into_iter();
        types.map(|(gvk, type_)| Ok((gvk.kind, type_?))).collect()
    });
    types.as_ref().map_err(SchemaError::clone)
}

/// Returns an OpenAPI document with the schemas of the kinds.
fn document() -> Value {
    let field = |type_: &str| match type_.strip_suffix('s') {
        Some(element) => {
            json!({"type": "array", "items": {"type": element}, "x-kubernetes-list-type": "atomic"})
        }
        None => json!({"type": type_}),
    };
    let schema = |kind: &str, fields: &[Fields]| {
        let common = [("apiVersion", "string"), ("kind", "string")];
        let all = common.iter().chain(fields.iter().copied().flatten());
        let properties = all.map(|(name, type_)| ((*name).to_owned(), field(type_)));
        json!({
            "type": "object",
            "properties": properties.collect::<serde_json::Map<_, _>>(),
            extensions::GROUP_VERSION_KIND: [{"group": "", "version": "v1", "kind": kind}],
        })
    };
    let schemas = KINDS.iter().map(|(kind, fields)| {
        let name = format!("io.k8s.api.core.v1.{kind}");
        (name, schema(kind, fields))
    });
    let schemas: serde_json::Map<_, _> = schemas.collect();
    json!({"components": {"schemas": schemas}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connect_options_have_the_fields_of_their_kind() {
        let fields = |kind: &str| match resolve(&Gvk::new("", "v1", kind)) {
            Resolution::Found(type_) => {
                let fields = type_.declared_fields().iter();
                fields.map(|field| field.name.to_string()).collect()
            }
            other => vec![format!("{other:?}")],
        };
        let mut exec = fields("PodExecOptions");
        exec.retain(|name| !matches!(&**name, "apiVersion" | "kind" | "metadata"));
        exec.sort();
        let all = ["command", "container", "stderr", "stdin", "stdout", "tty"];
        assert_eq!(exec, all);
        assert!(fields("PodPortForwardOptions").contains(&"ports".to_owned()));
        assert_eq!(fields("Pod"), ["NotFound"]);
    }
}
