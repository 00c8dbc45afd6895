//! Converts `file` URIs to paths, and back.

use std::path::{Path, PathBuf};

use gen_lsp_types::Uri;

use crate::cli::check::annotations;

/// Returns the path of a URI. The path of a URI with another scheme, such as that of an unsaved buffer, is the URI
/// itself.
pub(super) fn path(uri: &str) -> PathBuf {
    let Some(rest) = uri.strip_prefix("file://") else {
        return PathBuf::from(uri);
    };
    // An authority, such as `localhost`, precedes the path.
    let rest = rest.find('/').and_then(|at| rest.get(at..)).unwrap_or(rest);
    let decoded = decode(rest);
    // The path of a Windows drive is written `/c:/…`.
    let has_drive = decoded.as_bytes().get(2) == Some(&b':');
    match decoded.strip_prefix('/') {
        Some(drive) if cfg!(windows) && has_drive => PathBuf::from(drive),
        _ => PathBuf::from(decoded),
    }
}

pub(super) fn from_path(path: &Path) -> Uri {
    let text = path.display().to_string();
    if !path.is_absolute() {
        return Uri(text);
    }
    if cfg!(windows) {
        let text = text.replace('\\', "/");
        return Uri(format!("file:///{}", annotations::uri(&text)));
    }
    Uri(annotations::uri(&text))
}

/// Replaces the percent-encoded bytes of a URI. Invalid sequences remain.
fn decode(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let digits = tail
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match digits {
            Some(byte) => {
                bytes.push(byte);
                rest = tail.get(2..).unwrap_or_default();
            }
            None => {
                bytes.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn uri_round_trips() {
        for (uri, expected) in [
            ("file:///a%20b/%C3%A9.yaml", "/a b/é.yaml"),
            ("file:///p.yaml", "/p.yaml"),
        ] {
            assert_eq!(path(uri), Path::new(expected));
            assert_eq!(from_path(Path::new(expected)).0, uri);
        }
        assert_eq!(
            path("untitled:Untitled-1"),
            Path::new("untitled:Untitled-1")
        );
        assert_eq!(
            from_path(Path::new("untitled:Untitled-1")).0,
            "untitled:Untitled-1"
        );
        assert_eq!(path("file://localhost/x%zz"), Path::new("/x%zz"));
    }
}
