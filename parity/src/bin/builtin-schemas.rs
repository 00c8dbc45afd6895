//! Writes the built-in schemas of the plugin, or checks that they are up to date.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use parity::builtin::{self, Documents, Source};
use vap_status_controller::schema::builtin::store::Tables;

/// Write the built-in schemas of the plugin.
#[derive(Parser)]
struct Cli {
    /// A Kubernetes version and the directory of its OpenAPI v3 documents (*_openapi.json), for each version in ascending
    /// order.
    #[arg(long = "openapi", value_name = "VERSION=DIR", required = true)]
    sources: Vec<Source>,
    /// Check that the built-in schemas of this program are up to date, and fail if they are not.
    #[arg(long)]
    check: bool,
    /// The file of the built-in schemas.
    file: PathBuf,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let documents = Documents::read(&cli.sources)?;
    let tables = documents.tables();
    if cli.check {
        let file = fs::read(&cli.file).with_context(|| cli.file.display().to_string())?;
        ensure!(
            Tables::unpack(&file)? == tables,
            "{} differs from the OpenAPI documents: run `./dev schemas`",
            cli.file.display()
        );
        return documents.compare();
    }
    let packed = builtin::pack(&tables)?;
    fs::write(&cli.file, packed).with_context(|| cli.file.display().to_string())
}
