//! Memory: the limit in the controller's manifest, and the usage of a process.

#![allow(dead_code, reason = "each test uses only a part of this module")]

use std::fs;

use e2e::controller::repository;
use vap_status_controller::cli::input::values;

/// Returns the container's memory limit in `config/controller/deployment.yaml`, in KiB.
pub(crate) fn memory_limit_kib() -> u64 {
    let path = repository().join("config/controller/deployment.yaml");
    let text = fs::read_to_string(path).unwrap();
    let limits: Vec<u64> = values(&text)
        .into_iter()
        .map(Result::unwrap)
        .filter(|document| document["kind"] == "Deployment")
        .map(|deployment| {
            let container = &deployment["spec"]["template"]["spec"]["containers"][0];
            let limit = container["resources"]["limits"]["memory"].as_str().unwrap();
            limit.strip_suffix("Mi").unwrap().parse::<u64>().unwrap() * 1024
        })
        .collect();
    assert_eq!(limits.len(), 1, "{limits:?}");
    limits[0]
}

/// Returns a field of `/proc/PID/status` in KiB, such as `VmHWM`. Returns `None` if the process has ended.
pub(crate) fn memory_kib(pid: u32, field: &str) -> Option<u64> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let value = status.lines().find_map(|line| line.strip_prefix(field))?;
    value.trim().trim_end_matches(" kB").parse().ok()
}

pub(crate) fn mib(kib: u64) -> String {
    format!("{:.1} MiB", kib as f64 / 1024.0)
}
