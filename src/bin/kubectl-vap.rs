//! The kubectl plugin: arguments in, exit status out.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use vap_status_controller::cli::{self, args::Args, terminal::Terminal};

/// A quarter of a check went into the allocator of the C library (ADR 36).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    cli::run(
        &args,
        Terminal::from_stdout(),
        &mut io::stdout(),
        &mut io::stderr(),
    )
    .into()
}
