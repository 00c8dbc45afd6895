//! The state on which the results of requests depend.

use std::sync::Arc;

use gen_lsp_types::Uri;

use super::checker::Reports;
use super::outbox::Outbox;
use super::positions::Encoding;
use super::workspace::{File, Workspace};
use super::{diagnostics, uri};
use crate::cli::check::Cancellation;
use crate::cli::check::report::CheckReport;

/// The state on which the result of a request depends.
pub(super) struct Context<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) encoding: Encoding,
    pub(super) reports: &'a Reports,
    /// True if the client can insert snippets.
    pub(super) has_snippets: bool,
    pub(super) outbox: &'a Outbox,
}

impl Context<'_> {
    pub(super) fn file(&self, uri: &Uri) -> Option<&Arc<File>> {
        self.workspace.file(&uri::path(&uri.0))
    }

    /// Returns the report about the file. Checks the file unless its last check was of the version `file`.
    pub(super) fn report(&self, file: &File) -> Option<Arc<CheckReport>> {
        let report = self.reports.of(file);
        report.or_else(|| {
            diagnostics::check(self.workspace, file, Cancellation::default()).map(Arc::new)
        })
    }
}
