//! Checks documents on a thread, and sends their diagnostics to the client.
//!
//! If a document changes during a check, only its newest version is checked next.

use std::collections::{HashMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use gen_lsp_types::{Diagnostic, PublishDiagnosticsParams, Uri};
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
    /// Returns the report about this version of the document.
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

/// A document to check, or a document that was closed.
#[derive(Debug)]
enum Job {
    Check(Arc<File>, Arc<Workspace>),
    Close(Arc<File>),
}

impl Job {
    fn file(&self) -> &Arc<File> {
        match self {
            Self::Check(file, _) | Self::Close(file) => file,
        }
    }
}

/// The document that is being checked, and the cancellation of its check.
type Running = Arc<Mutex<Option<(PathBuf, Cancellation)>>>;

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
        let worker = Worker {
            jobs: receiver,
            outbox,
            encoding,
            reports: reports.clone(),
            running: Arc::clone(&running),
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
        // Without the thread, there are no diagnostics.
        let _ = thread.spawn(move || worker.run());
        Self {
            jobs: sender,
            running,
            reports,
        }
    }

    /// Queues the check of a document.
    pub(super) fn check(&self, file: &Arc<File>, workspace: &Arc<Workspace>) {
        let job = Job::Check(Arc::clone(file), Arc::clone(workspace));
        self.send(job);
    }

    /// Removes the diagnostics of a closed document.
    pub(super) fn close(&self, file: &Arc<File>) {
        self.send(Job::Close(Arc::clone(file)));
    }

    /// Queues a job, and cancels the check of an older version of its document.
    fn send(&self, job: Job) {
        let running = self.running.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((path, cancellation)) = &*running
            && *path == job.file().path
        {
            cancellation.cancel();
        }
        let _ = self.jobs.send(job);
    }
}

struct Worker {
    jobs: Receiver<Job>,
    outbox: Outbox,
    encoding: Encoding,
    reports: Reports,
    running: Running,
}

impl Worker {
    fn set_running(&self, running: Option<(PathBuf, Cancellation)>) {
        *self.running.lock().unwrap_or_else(PoisonError::into_inner) = running;
    }

    fn run(&self) {
        let mut pending: VecDeque<Job> = VecDeque::new();
        loop {
            if pending.is_empty() {
                let Ok(job) = self.jobs.recv() else { return };
                pending.push_back(job);
            }
            for job in self.jobs.try_iter() {
                match pending
                    .iter_mut()
                    .find(|other| other.file().path == job.file().path)
                {
                    Some(older) => *older = job,
                    None => pending.push_back(job),
                }
            }
            if let Some(job) = pending.pop_front() {
                self.process(&job);
            }
        }
    }

    fn process(&self, job: &Job) {
        match job {
            Job::Check(file, workspace) => {
                let (start, cancellation) = (Instant::now(), Cancellation::default());
                self.set_running(Some((file.path.clone(), cancellation.clone())));
                let of_check = cancellation.clone();
                let check = AssertUnwindSafe(|| diagnostics::check(workspace, file, of_check));
                let report = catch_unwind(check).ok().flatten().map(Arc::new);
                let all = report
                    .as_deref()
                    .map(|report| diagnostics::diagnostics(report, file, self.encoding));
                self.set_running(None);
                if cancellation.is_cancelled(start) {
                    return;
                }
                self.reports.set(file, report);
                self.publish(&file.uri, file.version, all.unwrap_or_default());
            }
            Job::Close(file) => {
                self.reports.set(file, None);
                self.publish(&file.uri, None, Vec::new());
            }
        }
    }

    fn publish(&self, uri: &Uri, version: Option<i32>, diagnostics: Vec<Diagnostic>) {
        let params = PublishDiagnosticsParams {
            uri: uri.clone(),
            version,
            diagnostics,
        };
        self.outbox
            .notify("textDocument/publishDiagnostics", &json!(params));
    }
}
