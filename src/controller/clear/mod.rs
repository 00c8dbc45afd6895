//! The command `clear` removes the status fields that the controller wrote, before the controller is uninstalled.
//!
//! The command applies an empty status with the controller's field manager. The API server then removes the fields that
//! only this field manager owns. These are our conditions. They are also `observedGeneration` and `typeChecking`,
//! unless kube-controller-manager owns these two fields too. Fields of other owners remain. A second run changes
//! nothing.
//!
//! If a controller leads, the command does nothing, since the leader would write the status again.

mod leader;
mod output;

use std::fmt;
use std::io::Write;

use futures::StreamExt;
use futures::stream;
use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use kube::api::{DeleteParams, ListParams, ObjectList, PartialObjectMeta};
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use self::leader::Leader;
use self::output::print_line;
use crate::cluster::address::redacted;
use crate::cluster::client::command_client;
use crate::cluster::config;
use crate::cluster::error::{Error, within};
use crate::controller::reconcile::apply::Written;
use crate::controller::reconcile::clear_status::{TIMEOUT, clear};
use crate::controller::subjects::managed_fields::owns_status;
use crate::policy::subject::{StatusObjectKind, SubjectKind};
use crate::probe::api::PolicyProbe;
use crate::status::object::StatusObject;
use crate::telemetry::metrics::ErrorReason;

const PAGE_SIZE: u32 = 500;

/// The number of concurrent writes.
const CONCURRENCY: usize = 16;

/// The number of objects for each outcome.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Objects that were cleared or deleted.
    pub n_cleared: usize,
    /// Objects that had no fields of this controller.
    pub n_untouched: usize,
    /// Objects that could not be cleared.
    pub n_failed: usize,
}

/// Options of the command.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of the Lease that shows a running controller.
    pub lease_namespace: String,
    /// The name of the Lease.
    pub lease_name: String,
    /// True to clear even if a controller holds the Lease.
    pub is_forced: bool,
}

/// Clears all statuses in the cluster of the kubeconfig or the pod, and prints the outcomes. Returns true if all of
/// them were cleared.
///
/// # Errors
/// Returns an error message with a hint if the cluster cannot be reached.
pub fn run(options: Options, out: &mut dyn Write, err: &mut dyn Write) -> Result<bool, String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| format!("cannot start threads: {error}"))?;
    runtime.block_on(async {
        let config = config::infer().await.map_err(|error| {
            format!("cannot reach the API server: {error}; set KUBECONFIG to a kubeconfig")
        })?;
        let client = command_client(config).map_err(|error| {
            let error = redacted(&error.to_string());
            format!("cannot use the kubeconfig: {error}")
        })?;
        Ok(clear_unless_led(&client, options, out, err).await)
    })
}

/// Clears all statuses unless a controller leads. Returns true if all of them were cleared.
async fn clear_unless_led(
    client: &Client,
    options: Options,
    out: &mut dyn Write,
    err: &mut dyn Write,
) -> bool {
    let leader = Leader::new(client, options.lease_namespace, options.lease_name);
    let before = if options.is_forced {
        None
    } else if let Err(obstacle) = leader.check_no_leader(err).await {
        print_line(err, format_args!("{}", leader.remedy(&obstacle)));
        return false;
    } else {
        Some(leader.holder().await)
    };
    let summary = clear_all(client, out, err).await;
    // A controller that became the leader during the command may have written the statuses again.
    if let (Some(before), Some(holder)) = (before, leader.holder().await)
        && before.as_ref() != Some(&holder)
    {
        let lease = leader.full_name();
        print_line(
            err,
            format_args!(
                "{holder} acquired the Lease {lease} in the meantime and may have written the statuses again: stop \
                 the controller, then clear again"
            ),
        );
        return false;
    }
    summary.n_failed == 0
}

async fn clear_all(client: &Client, out: &mut dyn Write, err: &mut dyn Write) -> Summary {
    let mut summary = Summary::default();
    let policies: Api<ValidatingAdmissionPolicy> = Api::all(client.clone());
    clear_kind(&policies, &mut summary, out, err).await;
    let probes: Api<PolicyProbe> = Api::all(client.clone());
    clear_kind(&probes, &mut summary, out, err).await;
    let kinds = SubjectKind::ALL.iter();
    for kind in kinds.filter_map(|kind| kind.row().status_object.as_ref()) {
        delete_all(client, kind, &mut summary, out, err).await;
    }
    let Summary {
        n_cleared,
        n_untouched,
        n_failed,
    } = summary;
    let failed = match n_failed {
        0 => String::new(),
        n => format!(", {n} could not be cleared"),
    };
    print_line(
        out,
        format_args!("{n_cleared} cleared, {n_untouched} had no fields of the controller{failed}"),
    );
    summary
}

/// Returns one page of the objects of a kind. `None` if the kind is not installed or the request fails. A failed
/// request is printed and counted in `summary`.
async fn page_of<K>(
    api: &Api<K>,
    params: &ListParams,
    resource: &str,
    summary: &mut Summary,
    err: &mut dyn Write,
) -> Option<ObjectList<PartialObjectMeta<K>>>
where
    K: Resource + Clone + DeserializeOwned + fmt::Debug,
{
    match within(TIMEOUT, api.list_metadata(params)).await {
        Ok(page) => Some(page),
        // The kind is not installed.
        Err(error) if error.reason() == ErrorReason::NotFound => None,
        Err(error) => {
            summary.n_failed += 1;
            let hint = permission(&error, "list", resource);
            print_line(err, format_args!("cannot list {resource}: {error}{hint}"));
            None
        }
    }
}

async fn clear_kind<K>(
    api: &Api<K>,
    summary: &mut Summary,
    out: &mut dyn Write,
    err: &mut dyn Write,
) where
    K: Resource<DynamicType = ()> + Clone + DeserializeOwned + fmt::Debug,
{
    let resource = format!("{}.{}", K::plural(&()), K::group(&()));
    let mut params = ListParams::default().limit(PAGE_SIZE);
    loop {
        let Some(page) = page_of(api, &params, &resource, summary, err).await else {
            return;
        };
        let is_ours = |object: &PartialObjectMeta<K>| owns_status(&object.metadata);
        let (ours, others): (Vec<_>, Vec<_>) = page.items.into_iter().partition(is_ours);
        summary.n_untouched += others.len();
        let mut cleared = stream::iter(ours)
            .map(|object| async move {
                let outcome = clear(api, &object.metadata, false).await;
                (object.metadata.name.unwrap_or_default(), outcome)
            })
            .buffered(CONCURRENCY);
        while let Some((name, outcome)) = cleared.next().await {
            match outcome {
                Ok(Written::Applied(_)) => {
                    summary.n_cleared += 1;
                    print_line(out, format_args!("{resource}/{name} cleared"));
                }
                // The object was deleted, or another object with its name was created since.
                Ok(Written::Gone | Written::Conflict) => summary.n_untouched += 1,
                Err(error) => {
                    summary.n_failed += 1;
                    let hint = permission(&error, "patch", &format!("{resource}, status"));
                    print_line(
                        err,
                        format_args!("cannot clear {resource}/{name}: {error}{hint}"),
                    );
                }
            }
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => return,
        }
    }
}

/// Deletes all status objects of one kind. They store the conditions of subjects whose kind has no `status` field.
async fn delete_all(
    client: &Client,
    kind: &StatusObjectKind,
    summary: &mut Summary,
    out: &mut dyn Write,
    err: &mut dyn Write,
) {
    let api: Api<StatusObject> = Api::all_with(client.clone(), kind);
    let resource = format!("{}.{}", kind.plural, StatusObject::group(kind));
    let mut params = ListParams::default().limit(PAGE_SIZE);
    loop {
        let Some(page) = page_of(&api, &params, &resource, summary, err).await else {
            return;
        };
        let api = &api;
        let mut deleted = stream::iter(page.items)
            .map(|object| async move {
                let name = object.metadata.name.unwrap_or_default();
                let delete = DeleteParams::default();
                let outcome = within(TIMEOUT, api.delete(&name, &delete)).await;
                (name, outcome.map(drop))
            })
            .buffered(CONCURRENCY);
        while let Some((name, outcome)) = deleted.next().await {
            match outcome {
                Ok(()) => {
                    summary.n_cleared += 1;
                    print_line(out, format_args!("{resource}/{name} deleted"));
                }
                Err(error) if error.reason() == ErrorReason::NotFound => summary.n_untouched += 1,
                Err(error) => {
                    summary.n_failed += 1;
                    let hint = permission(&error, "delete", &resource);
                    print_line(
                        err,
                        format_args!("cannot delete {resource}/{name}: {error}{hint}"),
                    );
                }
            }
        }
        match page.metadata.continue_ {
            Some(token) if !token.is_empty() => params = params.continue_token(&token),
            _ => return,
        }
    }
}

/// Returns a hint to grant the permission to `verb` `resource` if `error` is Forbidden, or else an empty string.
fn permission(error: &Error, verb: &str, resource: &str) -> String {
    if error.reason() == ErrorReason::Forbidden {
        format!("; grant the permission to {verb} {resource}")
    } else {
        String::new()
    }
}

#[cfg(test)]
mod tests;
