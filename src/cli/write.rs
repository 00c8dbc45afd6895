//! Replaces files. If a write fails, no content is lost.
//!
//! The new content is written to a temporary file in the same directory, which is then renamed to the target. The mode,
//! owner and extended attributes are kept.
//!
//! If one of these cannot be kept, or if the file has several hard links, the file is overwritten in place. A backup
//! contains the old content until the write has succeeded.

use std::fs::{self, File, Metadata, OpenOptions};
use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

/// The maximum number of attempts to find an unused name for a temporary file.
const MAX_NAMES: usize = 16;

/// Replaces the content of the file at `path`, or creates it. A symbolic link is followed.
///
/// # Errors
/// Returns the reason why the file was not replaced. The file then has its old content, or the message contains the
/// path of a backup.
pub(super) fn atomically(path: &Path, text: &str) -> Result<(), String> {
    let target = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    match fs::metadata(&target) {
        Ok(metadata) => rewrite(&target, &metadata, text),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let (mut file, temporary) = temporary(&target, false).map_err(in_words)?;
            fill(&mut file, text.as_bytes())
                .and_then(|()| fs::rename(&temporary, &target))
                .map_err(|error| abandon(&temporary, &error))?;
            sync_directory(&target);
            Ok(())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn rewrite(target: &Path, metadata: &Metadata, text: &str) -> Result<(), String> {
    if !metadata.is_file() {
        return Err("it is not a regular file".to_owned());
    }
    // Checked separately, because the superuser can open a read-only file for writing.
    if metadata.permissions().readonly() {
        return Err("the file is read-only".to_owned());
    }
    // A rename requires write access only to the directory. Opening the file also checks the mode of the file itself.
    let mut original = OpenOptions::new()
        .read(true)
        .write(true)
        .open(target)
        .map_err(in_words)?;
    if !has_other_names(metadata) {
        let (mut file, temporary) = temporary(target, true).map_err(in_words)?;
        let abandon = |error| abandon(&temporary, &error);
        fill(&mut file, text.as_bytes()).map_err(abandon)?;
        if copy_attributes(&original, metadata, &file).is_ok() {
            file.sync_all()
                .and_then(|()| fs::rename(&temporary, target))
                .map_err(abandon)?;
            sync_directory(target);
            return Ok(());
        }
        let _ = fs::remove_file(&temporary);
    }
    let old = fs::read(target).map_err(in_words)?;
    overwrite(target, &mut original, &old, text.as_bytes())
}

/// Overwrites the open file with new content. A backup in the same directory has the content `old` until the new
/// content is on disk.
fn overwrite(target: &Path, file: &mut File, old: &[u8], text: &[u8]) -> Result<(), String> {
    let (mut copy, backup) = temporary(target, true).map_err(in_words)?;
    fill(&mut copy, old).map_err(|error| abandon(&backup, &error))?;
    sync_directory(target);
    let written = replace_content(file, text);
    if let Err(error) = written {
        if replace_content(file, old).is_err() {
            return Err(format!(
                "{error}; the old content is in {}",
                backup.display()
            ));
        }
        return Err(abandon(&backup, &error));
    }
    let _ = fs::remove_file(&backup);
    Ok(())
}

fn replace_content(file: &mut File, content: &[u8]) -> io::Result<()> {
    use io::Seek as _;

    file.rewind()?;
    file.write_all(content)?;
    file.set_len(u64::try_from(content.len()).unwrap_or(u64::MAX))?;
    file.sync_all()
}

fn fill(file: &mut File, content: &[u8]) -> io::Result<()> {
    file.write_all(content)?;
    file.sync_all()
}

/// Creates a file with a random, unused name in the directory of `target`. With `is_private`, only the owner has access
/// to the file.
fn temporary(target: &Path, is_private: bool) -> io::Result<(File, PathBuf)> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    if is_private {
        use std::os::unix::fs::OpenOptionsExt as _;
        options.mode(0o600);
    }
    #[cfg(not(unix))]
    let _ = is_private;
    let mut n_tries = 0;
    loop {
        let random = RandomState::new().build_hasher().finish();
        // The name does not contain the name of `target`, which may already have the maximum length of the file system.
        let path = target.with_file_name(format!(".kubectl-vap-{random:016x}.tmp"));
        n_tries += 1;
        match options.open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && n_tries < MAX_NAMES => {}
            opened => return opened.map(|file| (file, path)),
        }
    }
}

/// Removes a temporary file after an error, and returns the message of the error.
fn abandon(temporary: &Path, error: &io::Error) -> String {
    let _ = fs::remove_file(temporary);
    error.to_string()
}

#[expect(clippy::needless_pass_by_value, reason = "for `map_err`")]
fn in_words(error: io::Error) -> String {
    error.to_string()
}

/// Makes a rename durable if the file system supports that. The content of the file is complete in either case.
fn sync_directory(target: &Path) {
    #[cfg(unix)]
    if let Some(directory) = target.parent()
        && let Ok(directory) = File::open(directory)
    {
        let _ = directory.sync_all();
    }
    #[cfg(not(unix))]
    let _ = target;
}

/// Returns true if the file has more than one hard link.
fn has_other_names(metadata: &Metadata) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        metadata.nlink() > 1
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        false
    }
}

/// Copies the owner, extended attributes and mode of the file `from` to the file `to`.
///
/// # Errors
/// Returns an error if the owner, an attribute or the mode cannot be read or set.
fn copy_attributes(from: &File, metadata: &Metadata, to: &File) -> io::Result<()> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::{MetadataExt as _, fchown};

        let new = to.metadata()?;
        if (new.uid(), new.gid()) != (metadata.uid(), metadata.gid()) {
            fchown(to, Some(metadata.uid()), Some(metadata.gid()))?;
        }
    }
    #[cfg(any(target_os = "linux", target_os = "macos"))]
    attributes::copy(from, to)?;
    let _ = from;
    // The mode is set last, because a change of the owner clears bits of the mode.
    to.set_permissions(metadata.permissions())
}

/// Extended attributes, which include access control lists and security labels.
#[cfg(any(target_os = "linux", target_os = "macos"))]
mod attributes {
    use std::ffi::{CStr, CString};
    use std::fs::File;
    use std::io;

    use rustix::fs::{XattrFlags, fgetxattr, flistxattr, fsetxattr};
    use rustix::io::Errno;

    /// The maximum size of an attribute's value and of the list of names, in bytes.
    ///
    /// Source: Linux `include/uapi/linux/limits.h`, `XATTR_SIZE_MAX`, `XATTR_LIST_MAX`.
    const MAX_BYTES: usize = 64 * 1024;

    /// Copies the extended attributes of `from` to `to`.
    ///
    /// # Errors
    /// Returns an error if an attribute cannot be read or set.
    pub(super) fn copy(from: &File, to: &File) -> io::Result<()> {
        let mut buffer = vec![0; MAX_BYTES];
        for name in names(from, &mut buffer)? {
            let value = value(from, &name, &mut buffer)?;
            // The system sets some labels on every new file. These need not be copied.
            let same = self::value(to, &name, &mut buffer);
            if same.is_ok_and(|known| known == value) {
                continue;
            }
            fsetxattr(to, &*name, &value, XattrFlags::empty())?;
        }
        Ok(())
    }

    fn names(file: &File, buffer: &mut [u8]) -> io::Result<Vec<CString>> {
        let n = match flistxattr(file, &mut *buffer) {
            Ok(n) => n,
            // The file system has no extended attributes.
            Err(Errno::NOTSUP) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let list = buffer.get(..n).unwrap_or_default();
        let parts = list.split_inclusive(|byte| *byte == 0);
        parts
            .map(|part| {
                let name = CStr::from_bytes_with_nul(part);
                name.map(CStr::to_owned).map_err(io::Error::other)
            })
            .collect()
    }

    fn value(file: &File, name: &CStr, buffer: &mut [u8]) -> io::Result<Vec<u8>> {
        let n = fgetxattr(file, name, &mut *buffer)?;
        Ok(buffer.get(..n).unwrap_or_default().to_vec())
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

    use tempfile::TempDir;

    use super::*;

    const OLD: &str = "old: content that is longer\n";

    fn file(mode: u32) -> (TempDir, PathBuf) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("policy.yaml");
        fs::write(&path, OLD).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        (directory, path)
    }

    fn names(directory: &TempDir) -> Vec<String> {
        let entries = fs::read_dir(directory.path()).unwrap();
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<_> = names.collect();
        names.sort();
        names
    }

    #[test]
    fn replaced_file_keeps_mode_and_link() {
        let (directory, path) = file(0o640);
        let link = directory.path().join("link.yaml");
        symlink("policy.yaml", &link).unwrap();
        atomically(&link, "new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o640);
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(names(&directory), ["link.yaml", "policy.yaml"]);
    }

    #[test]
    fn atomic_write_creates_missing_file() {
        let (directory, _) = file(0o644);
        let path = directory.path().join("baseline.json");
        atomically(&path, "{}\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "{}\n");
        assert_eq!(names(&directory), ["baseline.json", "policy.yaml"]);
    }

    #[test]
    fn read_only_file_is_not_replaced() {
        for mode in [0o444, 0o400, 0o555] {
            let (directory, path) = file(mode);
            let error = atomically(&path, "new\n").unwrap_err();
            assert_eq!(error, "the file is read-only", "{mode:o}");
            assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
            assert_eq!(names(&directory), ["policy.yaml"]);
        }
    }

    #[test]
    fn file_with_hard_links_is_written_in_place() {
        let (directory, path) = file(0o644);
        let other = directory.path().join("other.yaml");
        fs::hard_link(&path, &other).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        atomically(&path, "new\n").unwrap();
        for path in [&path, &other] {
            assert_eq!(fs::read_to_string(path).unwrap(), "new\n");
            assert_eq!(fs::metadata(path).unwrap().ino(), inode);
        }
        assert_eq!(names(&directory), ["other.yaml", "policy.yaml"]);
    }

    #[test]
    fn failed_write_in_place_keeps_backup() {
        let (directory, path) = file(0o644);
        // A read-only file handle simulates a full disk. The backup is then the only copy of the old content.
        let mut read_only = File::open(&path).unwrap();
        let error = overwrite(&path, &mut read_only, OLD.as_bytes(), b"new\n").unwrap_err();
        assert!(error.contains("; the old content is in "), "{error}");
        let backup = names(&directory).remove(0);
        assert!(error.ends_with(&backup), "{error}");
        let backup = fs::read_to_string(directory.path().join(backup));
        assert_eq!(backup.unwrap(), OLD);
        assert_eq!(fs::read_to_string(&path).unwrap(), OLD);
    }

    #[test]
    fn replaced_file_keeps_owner() {
        let (_directory, path) = file(0o664);
        // Only the superuser can change the owner. Other users run the test with their own user and group.
        let is_changed = std::os::unix::fs::chown(&path, Some(12), Some(34)).is_ok();
        let before = fs::metadata(&path).unwrap();
        if is_changed {
            assert_eq!((before.uid(), before.gid()), (12, 34));
        }
        atomically(&path, "new\n").unwrap();
        let after = fs::metadata(&path).unwrap();
        assert_eq!((after.uid(), after.gid()), (before.uid(), before.gid()));
        assert_eq!(after.mode(), before.mode());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn replaced_file_keeps_extended_attributes() {
        use rustix::fs::{XattrFlags, getxattr, setxattr};

        let (directory, path) = file(0o644);
        let set = setxattr(&path, "user.origin", b"team-a", XattrFlags::empty());
        if set == Err(rustix::io::Errno::NOTSUP) {
            return; // The file system has no extended attributes that could be lost.
        }
        set.unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        atomically(&path, "new\n").unwrap();
        let mut value = [0; 16];
        let n = getxattr(&path, "user.origin", &mut value).unwrap();
        assert_eq!(&value[..n], b"team-a");
        assert_ne!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(names(&directory), ["policy.yaml"]);
    }

    #[test]
    fn leftover_temporary_files_do_not_block_writes() {
        let (directory, path) = file(0o644);
        let pid = std::process::id();
        let leftovers = [
            format!(".policy.yaml.{pid}.tmp"),
            ".kubectl-vap-0.tmp".to_owned(),
        ];
        for name in &leftovers {
            fs::write(directory.path().join(name), "left").unwrap();
        }
        for n in 0..20 {
            atomically(&path, &format!("{n}\n")).unwrap();
        }
        assert_eq!(fs::read_to_string(&path).unwrap(), "19\n");
        assert_eq!(names(&directory).len(), 3);
    }

    #[test]
    fn file_with_longest_possible_name_is_replaced() {
        let (directory, _) = file(0o644);
        let path = directory.path().join("n".repeat(255));
        fs::write(&path, OLD).unwrap();
        atomically(&path, "new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
    }
}
