//! Management of findings: which are reported, at which level, and the causes that suppress the others.

use super::report::{CheckReport, Suppressed, SuppressedBy};
use super::settings::Settings;
use super::{comment, fingerprint, levels};
use crate::cli::input::Input;

/// Gives the findings of a report their levels, and takes those out that are not to be reported.
pub(super) fn manage(report: &mut CheckReport, settings: &Settings, input: &Input) {
    fingerprint::number(&mut report.findings);
    // A comment is used also where a level would do.
    comment::apply(
        &input.comments,
        &mut report.findings,
        &mut report.suppressed,
    );
    fingerprint::number_others(&mut report.findings);
    if let Some(baseline) = &settings.baseline {
        baseline.apply(report, &input.files);
    }
    let mut told = Vec::new();
    for mut found in std::mem::take(&mut report.findings) {
        if levels::apply(&settings.levels, &mut found) {
            told.push(found);
        } else {
            report.suppressed.push(Suppressed {
                by: SuppressedBy::Level,
                reason: None,
                finding: found,
            });
        }
    }
    report.findings = told;
}
