//! Computes statuses for the policies of a cluster that have no current status from the controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

use super::check::{self, known::Known};
use super::connection::Connected;
use super::error::CliError;
use super::input::Input;
use super::live::objects::Kind;
use super::live::{self, Gap, ListScope};
use crate::status::compute::DesiredStatus;

/// Returns the status that the controller would write for each policy, by name, and the data that could not be read.
///
/// The result omits policies whose check panics.
///
/// # Errors
/// Returns an error if the cluster cannot be reached.
pub(super) async fn compute(
    connected: &Connected,
    policies: impl Iterator<Item = Value>,
) -> Result<(BTreeMap<String, DesiredStatus>, Vec<Gap>), CliError> {
    let mut input = Input::default();
    for policy in policies {
        live::add(&mut input, Kind::Policy, policy);
    }
    let no_crds = Input::default();
    let asked = live::read(connected, None, (&mut input, &no_crds), ListScope::Policies);
    let (asked, served) = asked.await?;
    let apis = Known::with_cluster(None, std::iter::empty(), Arc::new(served))?;
    let mut statuses = BTreeMap::new();
    for policy in &input.policies {
        if let (Some(name), Some(status)) = (policy.name(), check::policy::status(policy, &apis)) {
            statuses.insert(name.to_owned(), status);
        }
    }
    Ok((statuses, asked.gaps))
}
