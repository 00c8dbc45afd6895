//! Compares output with golden files.

use std::fs;

use vap_status_controller::cli::terminal::Terminal;

pub(crate) const PLAIN: Terminal = Terminal {
    width: Some(100),
    color: false,
};

/// Compares `found` with the file at `path`. With `VAP_UPDATE=1`, writes the file instead.
#[track_caller]
pub(crate) fn compare(path: &str, found: &str) {
    if std::env::var_os("VAP_UPDATE").is_some() {
        fs::write(path, found).unwrap();
    }
    let wanted = fs::read_to_string(path).unwrap_or_default();
    assert!(
        wanted == found,
        "{path} differs from the actual output:\n{found}"
    );
}
