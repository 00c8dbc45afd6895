//! The webhooks of a configuration, each read as a policy that has its rules, selectors and match conditions, at their
//! places, and nothing else.

use goyaml::{Entry, Node};
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value, json};

use super::{Object, decode};
use crate::policy::webhooks::{CONSTRAINTS, SPEC};

/// The webhooks of a configuration as they are written.
pub(in crate::cli) fn webhooks(configuration: &Object<Value>) -> &[Node] {
    let webhooks = configuration.document.node.get("webhooks");
    webhooks.map_or(&[], Node::items)
}

/// A webhook that is read as a policy.
pub(in crate::cli) struct Webhook {
    /// The place among the webhooks of its configuration.
    pub(in crate::cli) n: usize,
    /// A policy with its rules, selectors and match conditions, and with its name.
    pub(in crate::cli) policy: Object<ValidatingAdmissionPolicy>,
}

/// The webhooks of a configuration that can be read.
pub(in crate::cli) fn as_policies(configuration: &Object<Value>) -> Vec<Webhook> {
    let webhooks = webhooks(configuration).iter().enumerate();
    let read = |(n, webhook)| {
        let policy = as_policy(configuration, webhook).ok()?;
        Some(Webhook { n, policy })
    };
    webhooks.filter_map(read).collect()
}

/// A policy with the rules, selectors and match conditions of a webhook, each at its place.
pub(in crate::cli) fn as_policy(
    configuration: &Object<Value>,
    webhook: &Node,
) -> Result<Object<ValidatingAdmissionPolicy>, serde_json::Error> {
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
    let value = decode::policy(value)?;
    let document = configuration.document.with(document);
    Ok(Object::new(document, &configuration.source, value))
}
