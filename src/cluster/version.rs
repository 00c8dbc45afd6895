//! Reads the version of the API server.

use std::time::Duration;

use kube::Client;
use tokio::time::Instant;

use super::error::Error;
use super::http;
use crate::version::{ClusterVersion, KubernetesVersion, VersionInfo};

pub(crate) const PATH: &str = "/version";

/// How long a reported version is remembered. During an upgrade, several API servers report different versions.
const REMEMBERED: Duration = Duration::from_secs(60);

/// Reads the version that an API server reports.
///
/// # Errors
/// Returns an error if the request fails or the response cannot be parsed.
pub(crate) async fn read(client: &Client) -> Result<VersionInfo, Error> {
    let document = http::get(client, PATH, "application/json", None).await?;
    let body = document.map(|document| document.body).unwrap_or_default();
    serde_json::from_slice(&body).map_err(|error| Error::Decode(error.to_string()))
}

/// The versions that the API servers of a cluster have reported recently.
#[derive(Debug, Default)]
pub(crate) struct ServerVersions(Vec<(KubernetesVersion, Instant)>);

impl ServerVersions {
    /// Records a version that was reported at `now`, and returns the lowest version of the last minute. A policy that
    /// this version accepts is accepted by all API servers.
    pub(crate) fn note(&mut self, version: KubernetesVersion, now: Instant) -> ClusterVersion {
        let Self(seen) = self;
        seen.retain(|(other, at)| *other != version && *at + REMEMBERED > now);
        seen.push((version, now));
        let versions = seen.iter().map(|(version, _)| *version);
        ClusterVersion {
            version: versions.min().unwrap_or(version),
            is_lowest_of_several: seen.len() > 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lowest_version_seen_in_the_last_minute_applies() {
        let (old, new) = (KubernetesVersion::new(35), KubernetesVersion::new(36));
        let start = Instant::now();
        let mut versions = ServerVersions::default();
        let mut note =
            |version, seconds| versions.note(version, start + Duration::from_secs(seconds));
        let only = |version| ClusterVersion {
            version,
            is_lowest_of_several: false,
        };
        let lowest_of_both = ClusterVersion {
            version: old,
            is_lowest_of_several: true,
        };
        assert_eq!(note(old, 0), only(old));
        assert_eq!(note(new, 30), lowest_of_both);
        assert_eq!(note(new, 59), lowest_of_both);
        assert_eq!(note(new, 60), only(new));
        assert_eq!(note(old, 90), lowest_of_both);
    }
}
