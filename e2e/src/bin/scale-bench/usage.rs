use anyhow::{Context as _, Result};
use e2e::control_plane::ControlPlane;
use e2e::controller::{Controller, processor_seconds};

use crate::Row;

/// The CPU times of the processes, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    api_server: f64,
    etcd: f64,
    controller: f64,
    bench: f64,
}

impl Usage {
    /// Measures the current CPU times. Without a controller, the field `controller` is zero.
    pub(crate) fn measure(
        control_plane: &ControlPlane,
        controller: Option<&Controller>,
    ) -> Result<Self> {
        let api_server = control_plane.api_server().context("no API server")?;
        Ok(Self {
            api_server: processor_seconds(api_server.pid())?,
            etcd: processor_seconds(control_plane.etcd().pid())?,
            controller: controller.map_or(Ok(0.0), Controller::processor_seconds)?,
            bench: processor_seconds(std::process::id())?,
        })
    }

    /// Adds the CPU times since this measurement to the table. Returns their sum.
    pub(crate) fn add_to(
        self,
        row: &mut Row,
        control_plane: &ControlPlane,
        controller: Option<&Controller>,
    ) -> Result<f64> {
        let now = Self::measure(control_plane, controller)?;
        let used = [
            now.api_server - self.api_server,
            now.etcd - self.etcd,
            now.controller - self.controller,
            now.bench - self.bench,
        ];
        let text = used.map(|seconds| format!("{seconds:.1}")).join("/");
        let what = "  processor: API server/etcd/controller/bench";
        row.add(what, format!("{text} s"));
        Ok(used.iter().sum())
    }
}
