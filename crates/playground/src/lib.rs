//! The functions of the documentation's playground, compiled to WebAssembly. Arguments and results are JSON.
//!
//! The page is in `web`. It calls these functions in a worker, and terminates the worker after a timeout.

use serde::{Deserialize, Serialize};
use serde_json::json;
use vap_status_controller::cli::in_memory::{self, RequestTexts, Text};
use vap_status_controller::version::KubernetesVersion;
use wasm_bindgen::prelude::wasm_bindgen;

/// The argument of [`check`] and [`decide`].
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Input {
    /// The policies, with their bindings, params, namespaces and definitions.
    texts: Vec<Text>,
    /// The version of the API server, such as `1.36`; empty for the plugin's default.
    version: String,
    /// The request, for [`decide`].
    request: RequestTexts,
}

impl Input {
    fn parse(json: &str) -> Result<(Self, Option<KubernetesVersion>), String> {
        let input: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        let version = match input.version.as_str() {
            "" => None,
            version => Some(version.parse().map_err(|error| format!("{error}"))?),
        };
        Ok((input, version))
    }
}

/// Returns the report of `kubectl vap check -o json` for the texts, or an object with an `error`.
#[wasm_bindgen]
#[must_use]
pub fn check(input: &str) -> String {
    response(
        Input::parse(input).and_then(|(input, version)| in_memory::check(&input.texts, version)),
    )
}

/// Returns the report of `kubectl vap eval -o json` for the texts and the request, or an object with an `error`.
#[wasm_bindgen]
#[must_use]
pub fn decide(input: &str) -> String {
    response(
        Input::parse(input)
            .and_then(|(input, version)| in_memory::eval(&input.texts, &input.request, version)),
    )
}

/// Converts a JSON value to YAML. Returns an object with `yaml`, or with `error` if the conversion fails.
#[wasm_bindgen]
#[must_use]
pub fn yaml(value: &str) -> String {
    let value = serde_json::from_str(value).map_err(|error| error.to_string());
    response(
        value
            .and_then(|value| in_memory::yaml(&value))
            .map(|yaml| json!({"yaml": yaml})),
    )
}

/// Returns the supported Kubernetes versions, newest first.
#[wasm_bindgen]
#[must_use]
pub fn versions() -> String {
    let all: Vec<String> = KubernetesVersion::supported()
        .rev()
        .map(|it| it.to_string())
        .collect();
    json!({"versions": all}).to_string()
}

fn response(report: Result<impl Serialize, String>) -> String {
    let json =
        report.and_then(|report| serde_json::to_string(&report).map_err(|error| error.to_string()));
    json.unwrap_or_else(|error| json!({"error": error}).to_string())
}
