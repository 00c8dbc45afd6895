//! The JSON Schema of the configuration file, for editors.
//!
//! The schema is generated from the tables of the parser, and stored as `docs/vap.schema.json`.

use serde_json::{Map, Value, json};

use super::levels::Level;
use crate::policy::rule::Rule;
use crate::version::KubernetesVersion;

/// Returns the schema in the format JSON Schema draft 7, which editors support.
#[must_use]
pub fn schema() -> Value {
    let levels = Level::ALL.map(Level::name);
    let mut rules: Map<String, Value> = Rule::ALL
        .iter()
        .map(|rule| {
            let about = json!({"description": rule.summary(), "enum": levels});
            (rule.id().to_owned(), about)
        })
        .collect();
    let about = json!({
        "description": "the level of all rules without a level of their own", "enum": levels,
    });
    rules.insert("all".to_owned(), about);
    // YAML parses an unquoted version as a number, so the schema also permits numbers such as 1.3 for 1.30.
    let versions = KubernetesVersion::supported();
    let versions: Vec<String> = versions.map(|version| version.to_string()).collect();
    let numbers = versions.iter().filter_map(|text| text.parse::<f64>().ok());
    let numbers: Vec<f64> = numbers.collect();
    let texts = |about: &str| {
        json!({
            "description": about, "type": "array", "items": {"type": "string", "minLength": 1},
        })
    };
    json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of kubectl vap check",
        "type": ["object", "null"],
        "additionalProperties": false,
        "properties": {
            "levels": {
                "description": "the level of each rule",
                "type": "object",
                "additionalProperties": false,
                "properties": rules,
            },
            "exclude": texts("patterns in the format of .gitignore, relative to the directory of this file; matching \
             paths are not checked"),
            "crds": texts("files and directories of CustomResourceDefinitions, relative to the directory of this file"),
            "kubernetesVersion": {
                "description": "the version of the target API server, or a range such as 1.33-1.37",
                "anyOf": [
                    {"enum": versions},
                    {"enum": numbers},
                    {"type": "string", "pattern": "^v?[0-9]+\\.[0-9]+(\\.[0-9]+)?(-v?[0-9]+\\.[0-9]+(\\.[0-9]+)?)?$"},
                ],
            },
            "profile": {
                "description": "how expressions are checked: `truthful` warns about expressions that may fail when evaluated, `upstream` reports the same warnings as kube-controller-manager",
                "enum": ["truthful", "upstream"],
            },
            "strict": {
                "description": "true if notes about parts of the input that could not be checked affect the exit status",
                "type": "boolean",
            },
            "baseline": {
                "description": "the baseline: a file of recorded findings, which are not reported",
                "type": "string",
                "minLength": 1,
            },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::super::config::KEYS;
    use super::*;

    #[test]
    fn configuration_schema_has_all_keys_of_parser() {
        let schema = schema();
        let keys = schema["properties"].as_object().unwrap().keys();
        assert_eq!(keys.collect::<Vec<_>>(), KEYS);
        let levels = &schema["properties"]["levels"]["properties"];
        assert_eq!(levels.as_object().unwrap().len(), Rule::ALL.len() + 1);
    }
}
