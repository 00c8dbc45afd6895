//! Limits the number of memory arenas of the GNU C library's allocator.

use std::env;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::process::Command;

/// The environment variable that glibc reads when a process starts (`mallopt(3)`, `M_ARENA_MAX`).
const MAX_ARENAS: &str = "MALLOC_ARENA_MAX";

/// Restarts the program in this process with at most two arenas, unless the environment variable already sets a number.
///
/// By default, glibc creates an arena for each thread, up to eight per processor, and each arena retains much of its
/// freed memory: 90 MiB more in a test with hostile objects (ADR 36). The container image uses musl, which has no
/// arenas.
///
/// The environment variable is the only way to set the number without unsafe code, and glibc reads it before `main`.
///
/// # Errors
///
/// Returns an error if the program cannot be restarted. The process can then continue with more arenas.
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
