//! Judgements of a cluster's policies by the plugin, where no controller has judged them.

use std::collections::BTreeMap;

use serde_json::Value;

use super::check::{self, known::Known};
use super::connection::Connected;
use super::error::CliError;
use super::input::Input;
use super::live::objects::Kind;
use super::live::{self, Gap, ListScope};
use crate::status::compute::DesiredStatus;

/// The statuses of policies of the cluster as the controller would write them, by name, and what could not be read;
/// a policy whose check broke off has none.
///
/// # Errors
/// If the cluster cannot be asked at all.
pub(super) async fn judge(
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
    let known = Known::with_cluster(std::iter::empty(), served)?;
    let mut judged = BTreeMap::new();
    for policy in &input.policies {
        if let (Some(name), Some(status)) =
            (policy.name(), check::policy::status(&policy.value, &known))
        {
            judged.insert(name.to_owned(), status);
        }
    }
    Ok((judged, asked.gaps))
}
