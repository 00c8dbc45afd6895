//! A child process in the sandbox of a control plane, with a log file.

use std::fs::{File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::sandbox::{Sandbox, end};

/// The number of log lines in an error message.
const TAIL_LINES: usize = 12;

/// The number of bytes of a log that are read for an error message.
const TAIL_BYTES: u64 = 16 * 1024;

/// A process that is killed when dropped, or together with its control plane.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
    log: PathBuf,
    /// The offset of this process's output in the log file. An earlier process may have written to the same file.
    log_start: u64,
}

impl Process {
    /// Starts `command`. Appends its output to `<name>.log` in the sandbox.
    pub(crate) fn spawn(sandbox: &Sandbox, name: &str, mut command: Command) -> Result<Self> {
        let log = sandbox.directory().join(format!("{name}.log"));
        let mut file = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&log)
            .with_context(|| log.display().to_string())?;
        let log_start = file.seek(SeekFrom::End(0)).context("log file")?;
        sandbox.confine(&mut command);
        let child = command
            .stdin(Stdio::null())
            .stdout(file.try_clone().context("log file")?)
            .stderr(file)
            .spawn()
            .with_context(|| format!("start {}", command.get_program().display()))?;
        Ok(Self {
            name: name.to_owned(),
            child,
            log,
            log_start,
        })
    }

    /// Returns the process ID.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Returns the path of the log file.
    #[must_use]
    pub fn log_path(&self) -> &Path {
        &self.log
    }

    /// Returns the log of this process.
    ///
    /// # Errors
    /// Returns an error if the log file cannot be read.
    pub fn log(&self) -> Result<String> {
        self.log_from(self.log_start)
    }

    /// Returns the exit status, if the process has ended.
    ///
    /// # Errors
    /// Returns an error if the exit status cannot be determined.
    pub fn exit_status(&mut self) -> Result<Option<ExitStatus>> {
        self.child
            .try_wait()
            .with_context(|| format!("state of {}", self.name))
    }

    /// Kills the process with SIGKILL, as a crash would end it.
    pub fn kill(&mut self) {
        end(&mut self.child);
    }

    /// Stops the process with SIGTERM, as a kubelet does, and waits until it has ended.
    ///
    /// Blocks the thread for at most `patience`.
    ///
    /// # Errors
    /// Returns an error if the process still runs after `patience`.
    pub fn terminate(&mut self, patience: Duration) -> Result<ExitStatus> {
        let sent = Command::new("sh")
            .args(["-c", "kill -s TERM \"$1\"", "kill", &self.pid().to_string()])
            .stderr(Stdio::null())
            .status()
            .context("start `sh`")?;
        let deadline = Instant::now() + patience;
        loop {
            if let Some(status) = self.exit_status()? {
                return Ok(status);
            }
            ensure!(sent.success(), "cannot send SIGTERM to {}", self.name);
            if Instant::now() > deadline {
                bail!("{} still runs {patience:?} after SIGTERM", self.name);
            }
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Returns an error with the end of the log if the process has ended.
    pub(crate) fn check(&mut self) -> Result<()> {
        match self.exit_status()? {
            None => Ok(()),
            Some(status) => bail!("{} ended with {status}{}", self.name, self.log_tail()),
        }
    }

    pub(crate) fn log_tail(&self) -> String {
        let length = self.log.metadata().map_or(0, |metadata| metadata.len());
        let from = self.log_start.max(length.saturating_sub(TAIL_BYTES));
        let text = match self.log_from(from) {
            Ok(text) => text,
            Err(error) => return format!("; its log cannot be read: {error:#}"),
        };
        let lines: Vec<&str> = text.lines().collect();
        let tail = lines.iter().skip(lines.len().saturating_sub(TAIL_LINES));
        tail.fold(String::from("; the end of its log:"), |message, line| {
            message + "\n  " + line
        })
    }

    fn log_from(&self, start: u64) -> Result<String> {
        let mut file = File::open(&self.log).with_context(|| self.log.display().to_string())?;
        file.seek(SeekFrom::Start(start)).context("log file")?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).context("log file")?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
