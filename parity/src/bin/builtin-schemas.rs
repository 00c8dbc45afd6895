//! Writes the built-in schemas of the plugin, or checks that they are up to date.

use std::fs;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use clap::Parser;
use parity::builtin;

/// Write the built-in schemas of the plugin.
#[derive(Parser)]
struct Cli {
    /// Directory of OpenAPI v3 documents (*_openapi.json).
    #[arg(long, value_name = "DIR")]
    openapi: PathBuf,
    /// Kubernetes version of the documents, such as `1.36.3`.
    #[arg(long, value_name = "VERSION")]
    kubernetes: String,
    /// Check that the file is up to date, and fail if it is not.
    #[arg(long)]
    check: bool,
    /// The file of the built-in schemas.
    file: PathBuf,
}

fn main() -> Result<()> {
    let cli = Cli::parse();
    let packed = builtin::pack(&cli.openapi, &cli.kubernetes)?;
    if cli.check {
        let file = fs::read(&cli.file).with_context(|| cli.file.display().to_string())?;
        ensure!(
            builtin::unpack(&file)? == builtin::unpack(&packed)?,
            "{} differs from the OpenAPI documents: run `./dev schemas`",
            cli.file.display()
        );
        return Ok(());
    }
    fs::write(&cli.file, packed).with_context(|| cli.file.display().to_string())
}
