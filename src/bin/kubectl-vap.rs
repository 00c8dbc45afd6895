//! The kubectl plugin: parses the arguments, runs the command, and returns its exit status.

use std::io;
use std::process::ExitCode;

use clap::Parser as _;
use vap_status_controller::cli::{self, args::Args, terminal::Terminal};

/// With the allocator of the C library, a check spent a quarter of its time in allocations (ADR 36).
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let args = Args::parse();
    cli::run(
        &args,
        Terminal::from_stdout(args.color),
        &mut io::stdout(),
        &mut io::stderr(),
    )
    .into()
}
