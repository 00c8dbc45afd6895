//! Files that are written whole or not at all.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a file by way of another one beside it, so that a reader sees the old text or the new one. What a link
/// leads to is written, with the permissions that it had.
///
/// # Errors
/// The file is as it was, with the reason.
pub(super) fn atomically(path: &Path, text: &str) -> Result<(), String> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let name = target.file_name().unwrap_or_default().to_string_lossy();
    let beside = target.with_file_name(format!(".{name}.{}.tmp", std::process::id()));
    let write = || -> io::Result<()> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&beside)?;
        file.write_all(text.as_bytes())?;
        if let Ok(metadata) = fs::metadata(&target) {
            file.set_permissions(metadata.permissions())?;
        }
        file.sync_all()?;
        fs::rename(&beside, &target)
    };
    write().map_err(|error| {
        // One that was there before is not ours.
        if error.kind() != io::ErrorKind::AlreadyExists {
            let _ = fs::remove_file(&beside);
        }
        error.to_string()
    })
}
