//! Prints the CRD of `PolicyProbe` for `crds/`.

use std::io::Write;

use anyhow::Result;
use vap_status_controller::probe::crd::crd_yaml;

fn main() -> Result<()> {
    std::io::stdout().write_all(crd_yaml()?.as_bytes())?;
    Ok(())
}
