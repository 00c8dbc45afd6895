//! The objects of admission cases.

use anyhow::{Result, bail};
use serde_json::Value;
use vap_status_controller::defaulting::{self, Decoding};
use vap_status_controller::policy::admission::Object;

use crate::version;

/// The form of a request's objects during the evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ObjectForm {
    /// Unchanged, as in the case.
    Raw,
    /// Decoded into the Go type of the kind, and encoded again.
    Typed,
}

/// The kinds of the group "" whose Go types have no metadata. The oracle cannot read the names of their objects.
///
/// Source: apimachinery `pkg/api/meta/meta.go`, `Accessor`.
pub(super) const KINDS_WITHOUT_METADATA: [&str; 7] = [
    "NodeProxyOptions",
    "PodAttachOptions",
    "PodExecOptions",
    "PodLogOptions",
    "PodPortForwardOptions",
    "PodProxyOptions",
    "ServiceProxyOptions",
];

impl ObjectForm {
    pub(super) fn new(text: Option<&str>) -> Result<Self> {
        match text {
            None | Some("" | "raw") => Ok(Self::Raw),
            Some("typed") => Ok(Self::Typed),
            Some(other) => bail!("unknown decode {other:?}"),
        }
    }

    pub(super) fn object(self, value: &Value) -> Result<Object> {
        let mut value = value.clone();
        go_numbers(&mut value);
        let object = Object::unstructured(&value);
        if object.gvk().kind.is_empty() {
            bail!("Object 'Kind' is missing");
        }
        if self == Self::Raw {
            return Ok(object);
        }
        if let Some(Err(error)) = defaulting::decode(object.gvk(), &value, Decoding::Json) {
            bail!(error);
        }
        match defaulting::round_trip(object.gvk(), &value, &version::get().behavior()) {
            Ok(value) => Ok(Object::new(&value)),
            // There is no Go type, because the kind is not a built-in one.
            Err(defaulting::Error::Kind(_)) => Ok(object),
            Err(error) => Err(error.into()),
        }
    }
}

/// Converts numbers like the oracle: all become doubles, and integral ones are formatted without a fraction.
///
/// Source: Go `encoding/json`, `floatEncoder`.
fn go_numbers(value: &mut Value) {
    match value {
        Value::Number(number) => {
            let double = number.as_f64().unwrap_or(f64::NAN);
            let is_written_whole = double.fract() == 0.0 && double.abs() < 1e21;
            let whole = is_written_whole.then(|| format!("{double:.0}").parse::<i64>().ok());
            let read = match whole.flatten() {
                Some(whole) => Some(serde_json::Number::from(whole)),
                None => serde_json::Number::from_f64(double),
            };
            if let Some(read) = read {
                *number = read;
            }
        }
        Value::Array(items) => items.iter_mut().for_each(go_numbers),
        Value::Object(fields) => fields.values_mut().for_each(go_numbers),
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}
