//! Checks files on a thread, and sends their diagnostics to the client.
//!
//! If a document changes several times during a check, only its newest version is checked next. Files that are not open
//! are checked when no open document waits for a check.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gen_lsp_types::{Diagnostic, PublishDiagnosticsParams};
use serde_json::json;

use super::diagnostics;
use super::outbox::Outbox;
use super::positions::Encoding;
use super::workspace::{File, Workspace};
use crate::cli::check::Cancellation;
use crate::cli::check::report::CheckReport;
use crate::cli::parallel::STACK_BYTES;

/// The last report about each document, with the version that was checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Reports(Arc<Mutex<HashMap<PathBuf, VersionReport>>>);

/// The version of a document, and the report about it.
type VersionReport = (i32, Arc<CheckReport>);

impl Reports {
    /// Returns the report on a file. `None` unless the current version of the file was checked.
    pub(super) fn of(&self, file: &File) -> Option<Arc<CheckReport>> {
        let reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (version, report) = reports.get(&file.path)?;
        (Some(*version) == file.version).then(|| Arc::clone(report))
    }

    fn set(&self, file: &File, report: Option<Arc<CheckReport>>) {
        let mut reports = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        match (report, file.version) {
            (Some(report), Some(version)) => {
                reports.insert(file.path.clone(), (version, report));
            }
            _ => {
                reports.remove(&file.path);
            }
        }
    }
}

/// A file to check, or a file that no longer exists.
#[derive(Debug)]
enum Job {
    Check(Arc<File>, Arc<Workspace>),
    Remove(Arc<File>),
}

impl Job {
    fn file(&self) -> &Arc<File> {
        match self {
            Self::Check(file, _) | Self::Remove(file) => file,
        }
    }

    fn is_open(&self) -> bool {
        self.file().version.is_some()
    }
}

/// The file that is being checked, and the cancellation of its check.
type Running = Arc<Mutex<Option<(Arc<File>, Cancellation)>>>;

/// The queue of the checks.
#[derive(Debug)]
pub(super) struct Checker {
    jobs: Sender<Job>,
    running: Running,
    pub(super) reports: Reports,
}

impl Checker {
    /// Starts the thread.
    pub(super) fn start(outbox: Outbox, encoding: Encoding) -> Self {
        let (sender, receiver) = channel();
        let reports = Reports::default();
        let running = Running::default();
        let mut worker = Worker {
            jobs: receiver,
            outbox,
            encoding,
            reports: reports.clone(),
            running: Arc::clone(&running),
            shown: HashSet::new(),
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // If the thread cannot start, there are no diagnostics.
        let _ = thread.spawn(move || worker.run());
        Self {
            jobs: sender,
            running,
            reports,
        }
    }

    /// Queues the check of a file.
    pub(super) fn check(&self, file: &Arc<File>, workspace: &Arc<Workspace>) {
        let job = Job::Check(Arc::clone(file), Arc::clone(workspace));
        self.send(job);
    }

    /// Removes the diagnostics of a file that no longer exists.
    pub(super) fn remove(&self, file: &Arc<File>) {
        self.send(Job::Remove(Arc::clone(file)));
    }

    /// Queues a job. Cancels the running check if it is for the file of the job, or if it is for a closed file and the
    /// job is for an open document.
    fn send(&self, job: Job) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((file, cancellation)) = &*running
            && (file.path == job.file().path || job.is_open() && file.version.is_none())
        {
            cancellation.cancel();
        }
        let _ = self.jobs.send(job);
    }
}

/// The waiting jobs, at most one for each file.
#[derive(Default)]
struct Pending {
    /// The jobs of open documents, the oldest first.
    open: VecDeque<Job>,
    /// The jobs of other files, by path.
    closed: BTreeMap<PathBuf, Job>,
}

impl Pending {
    fn is_empty(&self) -> bool {
        self.open.is_empty() && self.closed.is_empty()
    }

    /// Adds a job, which replaces an earlier job for the same file.
    fn add(&mut self, job: Job) {
        let path = job.file().path.clone();
        let mut of_open = self.open.iter();
        let older = of_open.position(|other| other.file().path == path);
        if !job.is_open() {
            if let Some(n) = older {
                self.open.remove(n);
            }
            self.closed.insert(path, job);
            return;
        }
        self.closed.remove(&path);
        match older.and_then(|n| self.open.get_mut(n)) {
            Some(older) => *older = job,
            None => self.open.push_back(job),
        }
    }

    /// Removes the next job: that of an open document, if there is one.
    fn next(&mut self) -> Option<Job> {
        let closed = || self.closed.pop_first().map(|(_, job)| job);
        self.open.pop_front().or_else(closed)
    }
}

struct Worker {
    jobs: Receiver<Job>,
    outbox: Outbox,
    encoding: Encoding,
    reports: Reports,
    running: Running,
    /// The files that have diagnostics in the client.
    shown: HashSet<PathBuf>,
}

impl Worker {
    fn set_running(&self, running: Option<(Arc<File>, Cancellation)>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    fn run(&mut self) {
        let mut pending = Pending::default();
        loop {
            if pending.is_empty() {
                let Ok(job) = self.jobs.recv() else { return };
                pending.add(job);
            }
            for job in self.jobs.try_iter() {
                pending.add(job);
            }
            if let Some(job) = pending.next()
                && !self.process(&job)
                && !job.is_open()
            {
                pending.add(job);
            }
        }
    }

    /// Runs a job. Returns false if it was cancelled.
    fn process(&mut self, job: &Job) -> bool {
        match job {
            Job::Check(file, _) if self.is_unrelated(file) => {}
            Job::Check(file, workspace) => {
                let start = Instant::now();
                let cancellation = match file.version {
                    Some(_) => Cancellation::default(),
                    None => Cancellation::immediate(),
                };
                self.set_running(Some((Arc::clone(file), cancellation.clone())));
                let of_check = cancellation.clone();
                let check = AssertUnwindSafe(|| diagnostics::check(workspace, file, of_check));
                let report = catch_unwind(check).ok().flatten().map(Arc::new);
                let all = report
                    .as_deref()
                    .map(|report| diagnostics::diagnostics(report, file, self.encoding));
                self.set_running(None);
                if cancellation.is_cancelled(start) {
                    return false;
                }
                self.reports.set(file, report);
                self.publish(file, all.unwrap_or_default());
            }
            Job::Remove(file) => {
                self.reports.set(file, None);
                self.publish(file, Vec::new());
            }
        }
        true
    }

    /// Returns true for a file that is not open, and has neither objects to check nor diagnostics.
    fn is_unrelated(&self, file: &File) -> bool {
        file.version.is_none() && !self.shown.contains(&file.path) && !file.has_subjects()
    }

    /// Sends the diagnostics of a file. An empty list is sent only if the document is open or the client shows earlier
    /// diagnostics.
    fn publish(&mut self, file: &File, diagnostics: Vec<Diagnostic>) {
        if !diagnostics.is_empty() {
            self.shown.insert(file.path.clone());
        } else if !self.shown.remove(&file.path) && file.version.is_none() {
            return;
        }
        let params = PublishDiagnosticsParams {
            uri: file.uri.clone(),
            version: file.version,
            diagnostics,
        };
        self.outbox
            .notify("textDocument/publishDiagnostics", &json!(params));
    }
}
