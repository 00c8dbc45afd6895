//! Limit on the arenas of the GNU allocator.

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The environment variable that glibc reads at process start (`mallopt(3)`, `M_ARENA_MAX`).
const MAX_ARENAS: &str = "MALLOC_ARENA_MAX";

/// Restarts the program in this process with at most two arenas, unless the environment sets their number.
///
/// By default glibc creates an arena for each thread, up to eight for each processor, and an arena retains much of its
/// freed memory: 90 MiB more under hostile objects (ADR 36). The image uses musl, which has no arenas.
///
/// The environment is the only way to set the number without unsafe code, and it is read before `main`.
///
/// # Errors
///
/// Returns an error if the program cannot be restarted. The process continues in that case.
pub(crate) fn limit() -> io::Result<()> {
    if !cfg!(target_env = "gnu") || env::var_os(MAX_ARENAS).is_some() {
        return Ok(());
    }
    let mut arguments = env::args_os();
    let mut command = Command::new("/proc/self/exe");
    if let Some(name) = arguments.next() {
        command.arg0(name);
    }
    Err(command.args(arguments).env(MAX_ARENAS, "2").exec())
}
