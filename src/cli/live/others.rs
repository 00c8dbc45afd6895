//! Reads objects of a cluster: mutating policies and their bindings, webhook configurations, and
//! CustomResourceDefinitions with rules.
//!
//! If these objects cannot be read, the check reports a note and continues without them.

use std::collections::BTreeSet;

use serde_json::Value;

use super::objects::{self, list_resource};
use super::{Gap, Selection, add_named, one_line};
use crate::cli::connection::Connected;
use crate::cli::input::Input;
use crate::schema::RestMapper;
use crate::schema::rest_mapper::ApiResource;

const GROUP: &str = "admissionregistration.k8s.io";
const CRD_GROUP: &str = "apiextensions.k8s.io";

/// The versions that can be read, by preference.
const VERSIONS: [&str; 3] = ["v1", "v1beta1", "v1alpha1"];

/// Returns the plural of the kind of a resource, for messages.
fn plural_kind(plural: &str) -> &'static str {
    match plural {
        "mutatingadmissionpolicies" => "MutatingAdmissionPolicies",
        "mutatingadmissionpolicybindings" => "MutatingAdmissionPolicyBindings",
        "validatingwebhookconfigurations" => "ValidatingWebhookConfigurations",
        "mutatingwebhookconfigurations" => "MutatingWebhookConfigurations",
        _ => "CustomResourceDefinitions",
    }
}

/// The keyword of a schema's validation rules. CustomResourceDefinitions without it are not checked.
const RULES: &str = "x-kubernetes-validations";

/// Facts about the mutating policies of the cluster.
#[derive(Debug, Default)]
pub(super) struct Others {
    /// The names of the mutating policies of the cluster.
    pub(super) other_policies: BTreeSet<String>,
    /// True if all mutating policies of the cluster and all bindings of the input's mutating policies were read.
    pub(super) is_complete: bool,
}

/// Adds the objects of `selection` and the bindings of mutating policies to `input`.
///
/// Without a selection, adds only the bindings of the mutating policies in files.
pub(super) async fn read(
    connected: &Connected,
    selection: Option<&Selection>,
    input: &mut Input,
    mapper: &RestMapper,
    gaps: &mut Vec<Gap>,
) -> Others {
    let mut reader = Reader {
        connected,
        mapper,
        gaps,
    };
    // A selection with names selects only validating policies.
    let selection = selection.filter(|selection| selection.names.is_empty());
    let selector = selection.and_then(|selection| selection.selector.as_deref());
    let others = reader.mutating(selection, selector, input).await;
    if selection.is_some() {
        for sort in ["validating", "mutating"] {
            let plural = format!("{sort}webhookconfigurations");
            let listed = reader.list((GROUP, &plural), selector).await;
            let own = names(input.webhooks.iter().map(|it| (it.kind(), it.name())));
            for object in listed.into_iter().flatten() {
                let kind = object.get("kind").and_then(Value::as_str);
                let key = (kind.unwrap_or_default(), objects::name(&object));
                if !own.contains(&(key.0.to_owned(), key.1.to_owned())) {
                    add_named(input, &format!("{sort}webhookconfiguration"), object);
                }
            }
        }
        let resource = (CRD_GROUP, "customresourcedefinitions");
        let listed = reader.list(resource, selector).await;
        let own = names(input.crds.iter().map(|it| (it.kind(), it.name())));
        let own: BTreeSet<&String> = own.iter().map(|(_, name)| name).collect();
        for object in listed.into_iter().flatten() {
            let is_own = own.contains(&objects::name(&object).to_owned());
            if !is_own && object.to_string().contains(RULES) {
                add_named(input, "customresourcedefinition", object);
            }
        }
    }
    others
}

fn names<'a>(
    objects: impl Iterator<Item = (&'a str, Option<&'a str>)>,
) -> BTreeSet<(String, String)> {
    let named = objects.filter_map(|(kind, name)| Some((kind.to_owned(), name?.to_owned())));
    named.collect()
}

struct Reader<'a> {
    connected: &'a Connected,
    mapper: &'a RestMapper,
    gaps: &'a mut Vec<Gap>,
}

impl Reader<'_> {
    /// Adds the selected mutating policies, and bindings of mutating policies, to `input`.
    async fn mutating(
        &mut self,
        selection: Option<&Selection>,
        selector: Option<&str>,
        input: &mut Input,
    ) -> Others {
        let is_needed = !input.mutating_policies.is_empty() || !input.mutating_bindings.is_empty();
        if selection.is_none() && !is_needed {
            return Others::default();
        }
        // All policies are listed, because bindings may refer to policies that are not selected.
        let resource = (GROUP, "mutatingadmissionpolicies");
        let all = self.list(resource, None).await;
        let selected = match (selection, selector) {
            (None, _) => Some(Vec::new()),
            (Some(_), None) => all.clone(),
            (Some(_), Some(_)) if all.is_none() => None,
            (Some(_), Some(_)) => self.list(resource, selector).await,
        };
        let of_files = policies(input);
        for object in selected.into_iter().flatten() {
            if !of_files.contains(objects::name(&object)) {
                add_named(input, "mutatingadmissionpolicy", object);
            }
        }
        let policies = policies(input);
        let own = input.mutating_bindings.iter();
        let own: BTreeSet<String> = own.filter_map(|it| it.name().map(str::to_owned)).collect();
        let bindings = (GROUP, "mutatingadmissionpolicybindings");
        let bindings = self.list(bindings, None).await;
        let is_complete = all.is_some() && bindings.is_some();
        let is_all = selection.is_some_and(Selection::is_all);
        for binding in bindings.into_iter().flatten() {
            let policy = binding.pointer("/spec/policyName").and_then(Value::as_str);
            let is_of_input = policy.is_some_and(|name| policies.contains(name));
            // A binding in a file replaces the cluster's binding of the same name.
            if (is_all || is_of_input) && !own.contains(objects::name(&binding)) {
                add_named(input, "mutatingadmissionpolicybinding", binding);
            }
        }
        let all = all.iter().flatten().map(objects::name);
        Others {
            other_policies: all.map(str::to_owned).collect(),
            is_complete,
        }
    }

    /// Lists the objects of a resource in the preferred served version.
    ///
    /// The list is empty if the resource is not served. Returns `None` if the request fails.
    async fn list(
        &mut self,
        (group, plural): (&str, &str),
        selector: Option<&str>,
    ) -> Option<Vec<Value>> {
        let resources = self.mapper.resources.iter();
        let of_name = resources.filter(|it| it.gvr.group == group && it.gvr.resource == plural);
        let rank = |it: &&ApiResource| VERSIONS.iter().position(|of| *of == it.gvr.version);
        let supported = of_name.filter(|it| rank(it).is_some());
        let Some(resource) = supported.min_by_key(rank) else {
            return Some(Vec::new());
        };
        match list_resource(self.connected, resource, selector).await {
            Ok(listed) => Some(listed),
            Err(error) => {
                let kinds = plural_kind(plural);
                self.gaps.push(Gap {
                    message: format!(
                        "the {kinds} of the cluster cannot be read: {}",
                        one_line(&error)
                    ),
                    help: format!(
                        "this requires the permission `list` on {plural}.{group}; the objects are not checked"
                    ),
                    is_fatal: false,
                });
                None
            }
        }
    }
}

fn policies(input: &Input) -> BTreeSet<String> {
    let policies = input.mutating_policies.iter();
    let names = policies.filter_map(|policy| policy.shared.name().map(str::to_owned));
    names.collect()
}
