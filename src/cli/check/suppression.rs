//! Applies comments, the baseline and levels to the findings of a report.

use super::report::{CheckReport, Suppressed, SuppressedBy};
use super::settings::Settings;
use super::{comment, fingerprint, levels};
use crate::cli::input::Input;

/// Sets the severities of a report's findings, and suppresses those that must not be reported.
pub(super) fn apply(report: &mut CheckReport, settings: &Settings, input: &Input) {
    fingerprint::number(&mut report.findings);
    // Comments come first, so that a comment counts as used even if a level would suppress the finding.
    comment::apply(
        &input.comments,
        &mut report.findings,
        &mut report.suppressed,
    );
    fingerprint::number_others(&mut report.findings);
    if let Some(baseline) = &settings.baseline {
        baseline.apply(report, &input.files);
    }
    let mut reported = Vec::new();
    for mut finding in std::mem::take(&mut report.findings) {
        if levels::apply(&settings.levels, &mut finding) {
            reported.push(finding);
        } else {
            report.suppressed.push(Suppressed {
                by: SuppressedBy::Level,
                reason: None,
                finding,
            });
        }
    }
    report.findings = reported;
}
