//! The webhook configurations of a corpus, valid completions of these configurations, and mutants of the completions.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::load_files;
use super::mutate::{Mutant, mutants_of};
use crate::random::Random;

/// Returns each webhook configuration in the files below `folder` twice: unchanged, and completed so that it is valid.
/// Also returns `n` mutants of the completed configurations. The same seed gives the same mutants.
///
/// # Errors
/// Returns an error if there are no webhook configurations.
pub fn webhooks(folder: &Path, seed: u64, n: u64) -> Result<Vec<Mutant>> {
    let mut mutants = load_files(folder)?;
    let mut whole = Vec::new();
    for written in &mutants {
        let mut configuration: Value = serde_json::from_str(&written.text)?;
        complete(&mut configuration);
        whole.push(configuration);
    }
    let as_written = mutants.clone();
    for (written, configuration) in as_written.iter().zip(&whole) {
        mutants.push(Mutant {
            kind: written.kind,
            text: configuration.to_string(),
        });
    }
    mutants.extend(mutants_of(&whole, "refusals of webhooks", seed, n, change)?);
    Ok(mutants)
}

/// Adds the required fields that a configuration lacks. For example, configurations in tests are incomplete.
fn complete(configuration: &mut Value) {
    let set = |object: &mut Value, field: &str, value: Value| {
        if let Some(fields) = object.as_object_mut() {
            fields.entry(field).or_insert(value);
        }
    };
    set(configuration, "metadata", json!({}));
    if let Some(metadata) = configuration.get_mut("metadata") {
        set(metadata, "name", json!("of-the-corpus"));
    }
    let webhooks = configuration
        .get_mut("webhooks")
        .and_then(Value::as_array_mut);
    for (n, webhook) in webhooks.into_iter().flatten().enumerate() {
        set(webhook, "name", json!(format!("w{n}.example.com")));
        set(webhook, "admissionReviewVersions", json!(["v1"]));
        set(webhook, "sideEffects", json!("None"));
        let own = json!({"url": "https://example.com/a"});
        set(webhook, "clientConfig", own.clone());
        if let Some(config) = webhook.get_mut("clientConfig")
            && config.get("url").is_none()
            && config.pointer("/service/namespace").is_none()
        {
            *config = own;
        }
    }
}

/// With a probability of 60%, changes the expression of a match condition. Returns true if an expression was changed.
fn change(configuration: &mut Value, random: &mut Random) -> bool {
    let webhooks = configuration
        .get_mut("webhooks")
        .and_then(Value::as_array_mut);
    let mut expressions: Vec<&mut Value> = webhooks
        .into_iter()
        .flatten()
        .filter_map(|webhook| webhook.get_mut("matchConditions")?.as_array_mut())
        .flatten()
        .filter_map(|condition| condition.get_mut("expression"))
        .collect();
    let n = expressions.len().try_into().unwrap_or(0);
    if n == 0 || random.permille(400) {
        return false;
    }
    let at = usize::try_from(random.below(n)).unwrap_or(0);
    let seed = random.number();
    if let Some(expression) = expressions.get_mut(at)
        && let Some(text) = expression.as_str()
    {
        **expression = crate::cases::changed_expression(seed, text).into();
    }
    true
}
