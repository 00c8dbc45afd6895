//! Texts for people, held against the files that say what they should be.

use std::fs;

use vap_status_controller::cli::terminal::Terminal;

/// A terminal of a known width, without colours.
pub(crate) const PLAIN: Terminal = Terminal {
    width: Some(100),
    color: false,
};

/// Holds `found` against the text at `path`; with `VAP_UPDATE=1` it becomes that text.
#[track_caller]
pub(crate) fn compare(path: &str, found: &str) {
    if std::env::var_os("VAP_UPDATE").is_some() {
        fs::write(path, found).unwrap();
    }
    let wanted = fs::read_to_string(path).unwrap_or_default();
    assert!(
        wanted == found,
        "{path} differs; this is printed now:\n{found}"
    );
}
