//! Status objects, which contain the conditions of kinds that have no suitable status.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use vap_status_controller::policy::subject::{StatusObjectKind, SubjectKind};

use crate::conditions::wait_for;
use crate::control_plane::ControlPlane;
use crate::controller::{await_served, grant_watch, install_statuses};

const GROUP: &str = "vap-status.dev";
const VERSION: &str = "v1alpha1";

const TIMEOUT: Duration = Duration::from_secs(60);

#[expect(
    clippy::expect_used,
    reason = "tests only use kinds with status objects"
)]
fn object_kind(kind: SubjectKind) -> StatusObjectKind {
    let object = kind.row().status_object;
    object.expect("a kind without a status of its own")
}

/// The API of the status objects of one kind.
#[derive(Clone, Debug)]
pub struct Statuses(Api<DynamicObject>);

impl Statuses {
    /// Returns the API of the status objects for subjects of `kind`.
    #[must_use]
    pub fn new(client: &Client, kind: SubjectKind) -> Self {
        let StatusObjectKind { kind, plural } = object_kind(kind);
        let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, plural);
        Self(Api::all_with(client.clone(), &resource))
    }

    /// Allows the controller to watch `kind`, and installs the CRD of the status objects.
    ///
    /// # Errors
    /// Returns an error if kubectl rejects the manifests or the kind is not served.
    pub async fn install(control_plane: &ControlPlane, kind: SubjectKind) -> Result<Self> {
        grant_watch(control_plane, kind.plural())?;
        Self::install_definition(control_plane, kind).await
    }

    /// Installs only the CRD of the status objects.
    ///
    /// # Errors
    /// Returns an error if kubectl rejects the manifest or the kind is not served.
    pub async fn install_definition(
        control_plane: &ControlPlane,
        kind: SubjectKind,
    ) -> Result<Self> {
        let plural = object_kind(kind).plural;
        install_statuses(control_plane, plural)?;
        let client = control_plane.client().await?;
        await_served(&client, &format!("{GROUP}/{VERSION}/{plural}")).await?;
        Ok(Self::new(&client, kind))
    }

    /// Returns the API of the status objects.
    #[must_use]
    pub const fn api(&self) -> &Api<DynamicObject> {
        &self.0
    }

    /// Returns the status object with this name. Returns null if it does not exist.
    ///
    /// # Errors
    /// Returns an error if the object cannot be read.
    pub async fn object(&self, name: &str) -> Result<Value> {
        match self.0.get_opt(name).await? {
            Some(object) => Ok(serde_json::to_value(object)?),
            None => Ok(Value::Null),
        }
    }

    /// Waits for a condition of a status object, like [`wait_for`].
    ///
    /// # Errors
    /// Returns an error like [`wait_for`].
    pub async fn wait(&self, name: &str, type_: &str, wanted: &str) -> Result<String> {
        let status = async || {
            let mut object = self.object(name).await?;
            Ok(object.get_mut("status").map_or(Value::Null, Value::take))
        };
        wait_for(name, type_, wanted, TIMEOUT, status).await
    }

    /// Waits until the status object does not exist.
    ///
    /// # Errors
    /// Returns an error if the object still exists after a minute.
    pub async fn wait_until_deleted(&self, name: &str) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !self.object(name).await?.is_null() {
            ensure!(Instant::now() < deadline, "{name} still has conditions");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// Returns the name and resource version of each status object.
    ///
    /// # Errors
    /// Returns an error if the objects cannot be listed.
    pub async fn versions(&self) -> Result<Vec<(String, String)>> {
        let objects = self.0.list(&ListParams::default()).await?.items;
        let version = |object: DynamicObject| {
            let metadata = object.metadata;
            (
                metadata.name.unwrap_or_default(),
                metadata.resource_version.unwrap_or_default(),
            )
        };
        Ok(objects.into_iter().map(version).collect())
    }
}
