//! A directory and a process group that are cleaned up even if their owner is killed.
//!
//! Destructors of a killed process do not run. Therefore there are two helper processes:
//!
//! - The *anchor*, a `cat`, is the leader of the process group. Each server joins the group before it starts.
//! - The *janitor*, a shell, waits for the end of its standard input, a pipe from the owner. The kernel closes the pipe
//!   when the owner ends: by `drop`, a panic, Ctrl-C or SIGKILL. The janitor then kills the group and removes the
//!   directory.
//!
//! Both helpers are outside of the owner's process group, so they do not receive Ctrl-C of the terminal. The owner can
//! then shut down cleanly, and the janitor removes what is left.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};

/// The janitor's script. A dying process may still write to the directory, so the script repeats the removal until it
/// succeeds, for at most ten seconds.
const JANITOR: &str = r#"
trap '' HUP INT QUIT TERM
while read -r _; do :; done
tries=100
while [ "$tries" -gt 0 ]; do
    kill -s KILL -- "-$1" 2>/dev/null
    rm -rf -- "$2" 2>/dev/null && break
    tries=$((tries - 1))
    sleep 0.1
done
kill -s KILL -- "-$1" 2>/dev/null
"#;

/// The directory and process group of one control plane.
#[derive(Debug)]
pub(crate) struct Sandbox {
    directory: PathBuf,
    anchor: Child,
    janitor: Child,
    group: i32,
}

impl Sandbox {
    /// Creates the directory, which only its owner can read, and starts the helpers.
    pub(crate) fn new() -> Result<Self> {
        let directory = tempfile::Builder::new()
            .prefix("control-plane-")
            .permissions(Permissions::from_mode(0o700))
            .tempdir()
            .context("temporary directory")?;
        let mut anchor = Command::new("cat")
            .current_dir(directory.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start `cat`")?;
        let group = i32::try_from(anchor.id()).context("process id")?;
        let janitor = Command::new("sh")
            .args(["-c", JANITOR, "janitor", &group.to_string()])
            .arg(directory.path())
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .context("start `sh`");
        let janitor = match janitor {
            Ok(janitor) => janitor,
            Err(error) => {
                end(&mut anchor);
                return Err(error);
            }
        };
        // From now on, the janitor removes the directory.
        Ok(Self {
            directory: directory.keep(),
            anchor,
            janitor,
            group,
        })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// Adds the process of `command` to the group, so that it is killed when the owner ends.
    pub(crate) fn confine(&self, command: &mut Command) {
        command.process_group(self.group);
    }
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        // The janitor must kill the group before the anchor is reaped, since the kernel may then reuse the number of
        // the group.
        drop(self.janitor.stdin.take());
        let _ = self.janitor.wait();
        end(&mut self.anchor);
        // The directory still exists only if the janitor was killed.
        if self.directory.exists() {
            let _ = fs::remove_dir_all(&self.directory);
        }
    }
}

/// Kills and reaps a child process. Killing fails only if the process has already ended.
pub(crate) fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sandbox_directory_is_private_and_removed_with_owner() {
        let sandbox = Sandbox::new().unwrap();
        let directory = sandbox.directory().to_owned();
        assert_eq!(
            directory.metadata().unwrap().permissions().mode() & 0o777,
            0o700
        );
        drop(sandbox);
        assert!(!directory.exists());
    }

    #[test]
    fn sandbox_directory_is_removed_without_janitor() {
        let mut sandbox = Sandbox::new().unwrap();
        end(&mut sandbox.janitor);
        let directory = sandbox.directory().to_owned();
        drop(sandbox);
        assert!(!directory.exists());
    }
}
