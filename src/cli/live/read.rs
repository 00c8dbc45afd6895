//! Reads policies, bindings and the APIs that they need.

use std::collections::BTreeSet;

use futures::StreamExt as _;
use k8s_openapi::api::admissionregistration::v1::NamedRuleWithOperations;
use serde_json::Value;

use super::objects::{self, Kind, Listed};
use super::{ClusterData, FileCounts, Gap, Selection, Served, others, params, schemas};
use crate::cli::connection::{Connected, Requested};
use crate::cli::error::CliError;
use crate::cli::input::files::ReadFile;
use crate::cli::input::webhook::{Webhook, as_policies};
use crate::cli::input::{Input, KindFilter};
use crate::cli::yaml_text;
use crate::cluster::discovery::Discovery;
use crate::cluster::error::Error;
use crate::policy;
use crate::policy::RequestPolicy;
use crate::policy::matching;
use crate::schema::RestMapper;

/// Maximum number of concurrent requests.
pub(super) const CONCURRENCY: usize = 6;

/// The objects to read from a cluster in addition to policies and their bindings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cli) enum ListScope {
    /// No objects in addition to policies and bindings: other objects are not needed, or the caller reads them.
    Policies,
    /// Mutating policies and their bindings, webhook configurations, and CustomResourceDefinitions with rules.
    Admission,
}

/// Reads policies, bindings and other objects of a cluster into `input`, and the APIs that the input needs.
///
/// Reads the policies of `selection`, if there is one, the bindings of all policies, and the objects of `scope`.
///
/// # Errors
/// Returns an error if the cluster cannot be reached, or has none of the named policies.
pub(in crate::cli) async fn read(
    connected: &Connected,
    selection: Option<&Selection>,
    (input, crds): (&mut Input, &Input),
    scope: ListScope,
) -> Result<(ClusterData, Served), CliError> {
    let mut gaps = Vec::new();
    let file_counts = FileCounts::new(input);
    if let Some(selection) = selection {
        for policy in policies(connected, selection, &mut gaps).await?.items {
            add(input, Kind::Policy, policy);
        }
    }
    let n_gaps = gaps.len();
    let other_policies = bindings(connected, selection, input, &mut gaps).await;
    let has_bindings = gaps.len() == n_gaps;
    let mut discovery = Discovery::default();
    let mapper = connected.within(discovery.refresh(&connected.client)).await;
    let mapper = mapper.map_err(|error| connected.explain(&error, Requested::Document))?;
    let mapper = mapper.unwrap_or_default();
    let others = match scope {
        ListScope::Policies => others::Others::default(),
        ListScope::Admission => others::read(connected, selection, input, &mapper, &mut gaps).await,
    };
    let webhooks = input.webhooks.iter().flat_map(as_policies);
    let webhooks: Vec<Webhook> = webhooks.collect();
    let webhooks = webhooks.iter().map(|webhook| &webhook.policy.value);
    let policies = input.all_policies().chain(webhooks);
    undiscovered(policies.clone(), &mapper, &mut gaps);
    let own_crds = input.crds.iter().take(file_counts.crds);
    let crds = own_crds.chain(&crds.crds).map(|crd| &crd.value);
    let mut served = schemas::read(connected, policies, mapper, crds.clone(), &mut gaps).await?;
    let mut mapper = schemas::with_crds(&served.mapper, crds);
    mapper.incomplete.clone_from(&served.mapper.incomplete);
    served.unserved = params::unserved(connected, input, &mapper, &mut gaps).await;
    served.bound = params::bound(connected, input, has_bindings, &mapper, &mut gaps).await;
    let cluster = ClusterData {
        server: Some(connected.server.clone()),
        other_policies,
        file_counts,
        has_bindings,
        other_mutating: others.other_policies,
        has_mutating_bindings: others.is_complete,
        gaps,
    };
    Ok((cluster, served))
}

/// Reads the selected policies. A missing policy becomes a gap.
///
/// # Errors
/// Returns an error if all named policies are missing, or if another error occurs.
pub(in crate::cli) async fn policies(
    connected: &Connected,
    selection: &Selection,
    gaps: &mut Vec<Gap>,
) -> Result<Listed, CliError> {
    if selection.names.is_empty() {
        let listed = objects::list(connected, Kind::Policy, selection.selector.as_deref()).await;
        return listed.map_err(|error| connected.explain(&error, Requested::Policies));
    }
    let requests = selection.names.iter().map(|name| async move {
        let policy = objects::get(connected, Kind::Policy, name).await;
        policy.map_err(|error| connected.explain(&error, Requested::Policy(name)))
    });
    let requests: Vec<_> = requests.collect();
    let responses: Vec<_> = futures::stream::iter(requests)
        .buffered(CONCURRENCY)
        .collect()
        .await;
    let mut policies = Vec::new();
    let mut first = None;
    for (response, name) in responses.into_iter().zip(&selection.names) {
        match response {
            Ok(policy) => policies.push(policy),
            Err(error @ CliError::NotFound(_)) => {
                gaps.push(Gap {
                    message: format!("the cluster has no ValidatingAdmissionPolicy `{name}`"),
                    help: "`kubectl vap status` lists all policies".to_owned(),
                    is_fatal: true,
                });
                first.get_or_insert(error);
            }
            Err(error) => return Err(error),
        }
    }
    match first {
        Some(error) if policies.is_empty() => Err(error),
        // Without a resource version, a watch begins with a list.
        _ => Ok(Listed {
            items: policies,
            resource_version: String::new(),
        }),
    }
}

/// Adds the bindings of the policies of `input`, or all bindings if all policies are selected.
///
/// Returns the names of the cluster's policies to which bindings of the input refer, although the input lacks them.
async fn bindings(
    connected: &Connected,
    selection: Option<&Selection>,
    input: &mut Input,
    gaps: &mut Vec<Gap>,
) -> BTreeSet<String> {
    let mut others = BTreeSet::new();
    match objects::list(connected, Kind::Binding, None).await {
        Ok(listed) => {
            let named = |object: Option<&str>| object.map(str::to_owned);
            let policies = input.policies.iter();
            let policies: BTreeSet<_> = policies.filter_map(|it| named(it.name())).collect();
            let own = input.bindings.iter();
            let own: BTreeSet<_> = own.filter_map(|it| named(it.name())).collect();
            let is_all = selection.is_some_and(Selection::is_all);
            for binding in listed.items {
                let policy = binding.pointer("/spec/policyName").and_then(Value::as_str);
                let is_of_input = policy.is_some_and(|name| policies.contains(name));
                // A binding in a file replaces the cluster's binding of the same name.
                if (is_all || is_of_input) && !own.contains(objects::name(&binding)) {
                    add(input, Kind::Binding, binding);
                }
            }
        }
        Err(error) => gaps.push(Gap {
            message: format!("the bindings of the cluster cannot be read: {}", one_line(&error)),
            help: "this requires the permission `list` on validatingadmissionpolicybindings.admissionregistration.k8s.io; \
                   bindings and their params are not checked"
                .to_owned(),
            is_fatal: true,
        }),
    }
    let policies: BTreeSet<&str> = input.policies.iter().filter_map(|it| it.name()).collect();
    let mut requested = BTreeSet::new();
    for binding in &input.bindings {
        let name = binding.value.spec.policy_name.as_str();
        if name.is_empty() || policies.contains(name) || !requested.insert(name) {
            continue;
        }
        match objects::get(connected, Kind::Policy, name).await {
            Ok(_) => {
                others.insert(name.to_owned());
            }
            Err(Error::Client(kube::Error::Api(status))) if status.code == 404 => {}
            Err(error) => gaps.push(Gap {
                message: format!(
                    "the policy `{name}` of the cluster cannot be read: {}",
                    one_line(&error)
                ),
                help: "a binding refers to this policy".to_owned(),
                is_fatal: true,
            }),
        }
    }
    others
}

/// Adds an object to the input, as the YAML that `kubectl get -o yaml` prints.
pub(in crate::cli) fn add(input: &mut Input, kind: Kind, object: Value) {
    let [_, _, singular] = kind.names();
    add_named(input, singular, object);
}

/// Adds an object of any resource to the input. The file name of the object contains `singular`, the singular name of
/// the resource.
pub(in crate::cli) fn add_named(input: &mut Input, singular: &str, mut object: Value) {
    let name = format!("{singular}/{}", objects::name(&object));
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.remove("managedFields");
    }
    let text = yaml_text::to_string(&object).map_err(|error| error.to_string());
    let file = ReadFile {
        name,
        is_given: true,
        text,
    };
    input.add_live(file, KindFilter::Policies);
}

/// Adds a gap for each group version that policies match, but that cannot be discovered.
fn undiscovered<'a>(
    policies: impl Iterator<Item = &'a RequestPolicy>,
    mapper: &RestMapper,
    gaps: &mut Vec<Gap>,
) {
    let mut touched = BTreeSet::new();
    let mut named = BTreeSet::new();
    for policy in policies {
        let rules = matching::rules(policy);
        let names = |rule: &NamedRuleWithOperations, group: &str| {
            rule.api_groups.iter().flatten().any(|name| name == group)
        };
        for (group_version, reason) in matching::resolve(policy, mapper).incomplete {
            let group = group_version.split('/').next().unwrap_or_default();
            if rules.iter().any(|rule| names(rule, group)) {
                named.insert(group_version.clone());
            }
            touched.insert((group_version, reason));
        }
        if let Some(kind) = policy::declared_param_kind(policy) {
            let of_kind = mapper.incomplete.iter();
            for entry in of_kind.filter(|(of, _)| *of == kind.api_version()) {
                named.insert(entry.0.clone());
                touched.insert(entry.clone());
            }
        }
    }
    for (group_version, reason) in touched {
        let is_fatal = named.contains(&group_version);
        let by = if is_fatal {
            "list them"
        } else {
            "match them by a wildcard"
        };
        gaps.push(Gap {
            message: format!("the resources of {group_version} are unknown: {reason}"),
            help: format!(
                "`kubectl get apiservices` shows the state of the API; its resources are not checked, although policies {by}"
            ),
            is_fatal,
        });
    }
}

pub(in crate::cli) fn one_line(error: &Error) -> String {
    crate::cli::connection::one_line(&error.to_string())
}
