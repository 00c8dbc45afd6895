//! Removes credentials from URLs.
//!
//! A URL may contain a user name and a password before its host. They are removed from the configuration before the
//! first request. Error messages, logs and traces therefore cannot contain them.

use http::Uri;
use http::uri::Authority;

#[derive(PartialEq, Eq)]
pub(crate) struct Credentials {
    /// The user name, with percent escapes decoded.
    pub(crate) user: String,
    /// The password, with percent escapes decoded. May be empty.
    pub(crate) password: String,
}

/// Returns `text` without the user names and passwords of its URLs.
pub(crate) fn redacted(text: &str) -> String {
    const SCHEME_END: &str = "://";
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(SCHEME_END) {
        out.push_str(before);
        out.push_str(SCHEME_END);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'' | '`');
        let end = after.find(is_end).unwrap_or(after.len());
        let (authority, after) = after.split_at_checked(end).unwrap_or((after, ""));
        out.push_str(
            authority
                .rsplit_once('@')
                .map_or(authority, |(_, host)| host),
        );
        rest = after;
    }
    out.push_str(rest);
    out
}

/// Removes the user name and password from a URL and returns them. Returns `None` if the URL has none.
pub(crate) fn take_credentials(uri: &mut Uri) -> Option<Credentials> {
    let authority = uri.authority()?.as_str();
    let (credentials, host) = authority.rsplit_once('@')?;
    let (user, password) = credentials.split_once(':').unwrap_or((credentials, ""));
    let credentials = Credentials {
        user: decoded(user),
        password: decoded(password),
    };
    let host: Authority = host.parse().ok()?;
    let mut parts = uri.clone().into_parts();
    parts.authority = Some(host);
    *uri = Uri::from_parts(parts).ok()?;
    Some(credentials)
}

/// Decodes percent escapes. Invalid escapes are left unchanged.
fn decoded(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.as_bytes();
    loop {
        match bytes {
            [] => return String::from_utf8_lossy(&out).into_owned(),
            [b'%', high, low, rest @ ..] if is_hex(*high) && is_hex(*low) => {
                out.push(hex(*high) << 4 | hex(*low));
                bytes = rest;
            }
            [byte, rest @ ..] => {
                out.push(*byte);
                bytes = rest;
            }
        }
    }
}

fn is_hex(byte: u8) -> bool {
    byte.is_ascii_hexdigit()
}

fn hex(digit: u8) -> u8 {
    let value = char::from(digit).to_digit(16).unwrap_or_default();
    u8::try_from(value).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn redacted_url_has_no_credentials() {
        for (text, expect) in [
            ("http://user:p4ssw0rd@host:6443/a", "http://host:6443/a"),
            ("https://token@host", "https://host"),
            ("http://u:p@q@host?x=a@b", "http://host?x=a@b"),
            ("http://host/a@b", "http://host/a@b"),
            ("host:6443", "host:6443"),
            (
                "error for \"http://u:p@a\": tried `socks5://u:p@[::1]:1`, then https://u:p@b",
                "error for \"http://a\": tried `socks5://[::1]:1`, then https://b",
            ),
            ("mail a@b about ://", "mail a@b about ://"),
        ] {
            assert_eq!(redacted(text), expect, "{text}");
        }
    }

    #[test]
    fn credentials_are_removed_from_uri() {
        for (text, expect, credentials) in [
            (
                "http://user:p%40ss%2@h:1/a?b",
                "http://h:1/a?b",
                Some(("user", "p@ss%2")),
            ),
            (
                "https://user@[::1]:6443",
                "https://[::1]:6443/",
                Some(("user", "")),
            ),
            ("https://host:6443/", "https://host:6443/", None),
        ] {
            let mut uri: Uri = text.parse().unwrap();
            let taken = take_credentials(&mut uri);
            let taken = taken
                .as_ref()
                .map(|it| (it.user.as_str(), it.password.as_str()));
            assert_eq!(
                (uri.to_string().as_str(), taken),
                (expect, credentials),
                "{text}"
            );
        }
    }
}
