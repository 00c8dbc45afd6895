//! Objects that hold the conditions of what has no status of its own.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, ListParams};
use serde_json::Value;
use vap_status_controller::status::object::ObjectKind;

use crate::conditions::wait_for;
use crate::control_plane::ControlPlane;
use crate::controller::{await_served, grant_following, install_statuses};

const GROUP: &str = "vap-status.dev";
const VERSION: &str = "v1alpha1";

/// How long a condition, or its end, is waited for.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The objects of one kind.
#[derive(Clone, Debug)]
pub struct Statuses(Api<DynamicObject>);

impl Statuses {
    /// The objects of `kind`.
    #[must_use]
    pub fn of(client: &Client, kind: ObjectKind) -> Self {
        let gvk = GroupVersionKind::gvk(GROUP, VERSION, kind.kind);
        let resource = ApiResource::from_gvk_with_plural(&gvk, kind.plural);
        Self(Api::all_with(client.clone(), &resource))
    }

    /// Grants the controller to follow what `kind` is about, and installs its definition.
    ///
    /// # Errors
    /// When kubectl refuses the manifests, or the kind is not served.
    pub async fn install(control_plane: &ControlPlane, kind: ObjectKind) -> Result<Self> {
        let resource = kind.plural.strip_suffix("statuses");
        let resource = resource.context("a plural that ends otherwise")?;
        // `…policystatuses` is about `…policies`, all others end with an `s`.
        let resource = match resource.strip_suffix('y') {
            Some(stem) => format!("{stem}ies"),
            None => format!("{resource}s"),
        };
        grant_following(control_plane, &resource)?;
        Self::install_definition(control_plane, kind).await
    }

    /// Installs the definition of `kind` alone.
    ///
    /// # Errors
    /// When kubectl refuses the manifest, or the kind is not served.
    pub async fn install_definition(
        control_plane: &ControlPlane,
        kind: ObjectKind,
    ) -> Result<Self> {
        install_statuses(control_plane, kind.plural)?;
        let client = control_plane.client().await?;
        await_served(&client, &format!("{GROUP}/{VERSION}/{}", kind.plural)).await?;
        Ok(Self::of(&client, kind))
    }

    /// Their API.
    #[must_use]
    pub const fn api(&self) -> &Api<DynamicObject> {
        &self.0
    }

    /// The object of that name; null where there is none.
    ///
    /// # Errors
    /// When it cannot be read.
    pub async fn object(&self, name: &str) -> Result<Value> {
        match self.0.get_opt(name).await? {
            Some(object) => Ok(serde_json::to_value(object)?),
            None => Ok(Value::Null),
        }
    }

    /// [`wait_for`] of the object of that name.
    ///
    /// # Errors
    /// As [`wait_for`].
    pub async fn wait(&self, name: &str, type_: &str, wanted: &str) -> Result<String> {
        let status = async || {
            let mut object = self.object(name).await?;
            Ok(object.get_mut("status").map_or(Value::Null, Value::take))
        };
        wait_for(name, type_, wanted, TIMEOUT, status).await
    }

    /// Waits until there is no object of that name.
    ///
    /// # Errors
    /// When it stays.
    pub async fn wait_until_gone(&self, name: &str) -> Result<()> {
        let deadline = Instant::now() + TIMEOUT;
        while !self.object(name).await?.is_null() {
            ensure!(Instant::now() < deadline, "{name} still has conditions");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        Ok(())
    }

    /// The names of all with their resource versions.
    ///
    /// # Errors
    /// When they cannot be listed.
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
