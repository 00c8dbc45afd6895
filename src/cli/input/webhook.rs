//! Converts the webhooks of a configuration to policies with their rules, selectors and match conditions. Their
//! locations in the file are preserved.

use goyaml::{Entry, Node};
use serde_json::{Value, json};

use super::{Object, decode};
use crate::policy::RequestPolicy;
use crate::policy::webhooks::{CONSTRAINTS, SPEC};

pub(in crate::cli) fn webhooks(configuration: &Object<Value>) -> &[Node] {
    let webhooks = configuration.document.node.get("webhooks");
    webhooks.map_or(&[], Node::items)
}

/// A webhook converted to a policy.
pub(in crate::cli) struct Webhook {
    /// The index in its configuration.
    pub(in crate::cli) n: usize,
    /// A policy with the name, rules, selectors and match conditions of the webhook.
    pub(in crate::cli) policy: Object<RequestPolicy>,
}

/// Converts each webhook of a configuration to a policy. Omits webhooks that cannot be decoded.
pub(in crate::cli) fn as_policies(configuration: &Object<Value>) -> Vec<Webhook> {
    let webhooks = webhooks(configuration).iter().enumerate();
    let read = |(n, webhook)| {
        let policy = as_policy(configuration, webhook).ok()?;
        Some(Webhook { n, policy })
    };
    webhooks.filter_map(read).collect()
}

/// Converts a webhook to a policy with the webhook's rules, selectors and match conditions, and their locations.
pub(in crate::cli) fn as_policy(
    configuration: &Object<Value>,
    webhook: &Node,
) -> Result<Object<RequestPolicy>, serde_json::Error> {
    let root = &configuration.document.node;
    let own = |node: &Node, name: &str| node.entry(name).cloned();
    let entry = |node| Entry::new(webhook.span.start..webhook.span.start, node);
    let constraints = CONSTRAINTS.iter();
    let constraints = constraints.filter_map(|(name, theirs)| Some((*name, own(webhook, theirs)?)));
    let constraints = entry(Node::from_entries(webhook.span.clone(), constraints));
    let spec = SPEC.iter();
    let spec = spec.filter_map(|name| Some((*name, own(webhook, name)?)));
    let spec = spec.chain([("matchConstraints", constraints)]);
    let spec = entry(Node::from_entries(webhook.span.clone(), spec));
    let entries = ["apiVersion", "kind"].into_iter();
    let entries = entries.filter_map(|name| Some((name, own(root, name)?)));
    let document = Node::from_entries(root.span.clone(), entries.chain([("spec", spec)]));
    let mut value = document.to_json();
    if let Value::Object(fields) = &mut value {
        let name = webhook.get("name").and_then(Node::as_str);
        fields.insert("kind".to_owned(), "ValidatingAdmissionPolicy".into());
        fields.insert("metadata".to_owned(), json!({ "name": name }));
    }
    let value = decode::policy(value)?.into();
    let document = configuration.document.with(document);
    Ok(Object::new(document, &configuration.source, value))
}
