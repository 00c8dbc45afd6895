//! Parses URLs like Go's `net/url`.
//!
//! Source: Go `net/url/url.go`, `net/url/encoding_table.go`.

use std::fmt;
use std::net::IpAddr;

use crate::library::net::parse_address;
use cel::go_text::{decode, quote, quote_bytes};

/// A syntax error in a URL. Its `Display` is Go's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("parse {url}: {reason}")]
pub struct UrlError {
    url: String,
    reason: String,
}

/// A parsed URL. Unescaped components may be invalid UTF-8.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    scheme: String,
    opaque: String,
    user: Option<User>,
    host: Vec<u8>,
    path: Vec<u8>,
    /// The path as it is encoded in the input, if this differs from the default encoding.
    raw_path: String,
    omit_host: bool,
    force_query: bool,
    query: String,
    fragment: Vec<u8>,
    raw_fragment: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

/// The kind of a URL component. It determines the characters that must be escaped.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    UserPassword,
    QueryComponent,
    Fragment,
}

impl Part {
    /// Source: Go `net/url/encoding_table.go`, `table`.
    fn must_escape(self, byte: u8) -> bool {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            return false;
        }
        let plain: &[u8] = match self {
            Self::Path => b"$&+,/:;=@",
            Self::Host | Self::Zone => b"!\"$&'()*+,:;<=>[]",
            Self::UserPassword => b"$&+,;=",
            Self::QueryComponent => b"",
            Self::Fragment => b"!$&()*+,/:;=?@",
        };
        !plain.contains(&byte)
    }
}

fn bad_escape(bytes: &[u8]) -> String {
    let shown = bytes.get(..3).unwrap_or(bytes);
    format!("invalid URL escape {}", quote_bytes(shown))
}

fn hex_value(byte: Option<&u8>) -> Option<u8> {
    let digit = char::from(*byte?).to_digit(16)?;
    u8::try_from(digit).ok()
}

/// Decodes the percent-encoded bytes in a URL component of the kind `part`.
///
/// Source: Go `net/url/url.go`, `unescape`.
fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, String> {
    let mut plain = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&byte, remaining)) = rest.split_first() {
        if byte != b'%' {
            let is_host = matches!(part, Part::Host | Part::Zone);
            if is_host && byte.is_ascii() && part.must_escape(byte) {
                let shown = quote_bytes(&[byte]);
                return Err(format!("invalid character {shown} in host name"));
            }
            let is_space = byte == b'+' && part == Part::QueryComponent;
            plain.push(if is_space { b' ' } else { byte });
            rest = remaining;
            continue;
        }
        let (Some(high), Some(low)) = (hex_value(remaining.first()), hex_value(remaining.get(1)))
        else {
            return Err(bad_escape(rest));
        };
        let value = high << 4 | low;
        let is_percent = value == b'%';
        let allowed = match part {
            // In a host, percent-encoding is allowed only for non-ASCII bytes and for the `%` before a zone.
            Part::Host => high >= 8 || is_percent,
            Part::Zone => is_percent || value == b' ' || !Part::Host.must_escape(value),
            _ => true,
        };
        if !allowed {
            return Err(bad_escape(rest));
        }
        plain.push(value);
        rest = remaining.get(2..).unwrap_or_default();
    }
    Ok(plain)
}

/// Source: Go `net/url/url.go`, `escape`.
fn escape(bytes: &[u8], part: Part) -> String {
    let mut text = Vec::with_capacity(bytes.len());
    for byte in bytes {
        if part.must_escape(*byte) {
            text.extend(format!("%{byte:02X}").bytes());
        } else {
            text.push(*byte);
        }
    }
    decode(&text)
}

/// Returns true if the string is valid in an encoded component of the kind `part`.
///
/// Source: Go `net/url/url.go`, `validEncoded`.
fn is_escaped(text: &str, part: Part) -> bool {
    text.bytes()
        .all(|byte| b"!$&'()*+,;=:@[]%".contains(&byte) || !part.must_escape(byte))
}

/// Returns `raw` if it is a valid encoding of `plain`. Otherwise encodes `plain`.
fn escaped(raw: &str, plain: &[u8], part: Part) -> String {
    let decodes_to_plain = || unescape(raw.as_bytes(), part).is_ok_and(|decoded| decoded == plain);
    if !raw.is_empty() && is_escaped(raw, part) && decodes_to_plain() {
        return raw.to_owned();
    }
    escape(plain, part)
}

impl Url {
    /// Parses an absolute URL or an absolute path. A fragment is allowed.
    ///
    /// # Errors
    ///
    /// Returns Go's error if the string is neither an absolute URL nor an absolute path.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/library/urls.go`, `stringToUrl`; Go `net/url/url.go`, `Parse`.
    pub fn parse(text: &str) -> Result<Self, UrlError> {
        parse_request_uri(text)?;
        let (before, fragment) = text.split_once('#').unwrap_or((text, ""));
        let mut url = Self::parse_parts(before, false).map_err(|reason| UrlError {
            url: quote(before),
            reason,
        })?;
        url.fragment =
            unescape(fragment.as_bytes(), Part::Fragment).map_err(|reason| UrlError {
                url: quote(text),
                reason,
            })?;
        if escape(&url.fragment, Part::Fragment) != fragment {
            fragment.clone_into(&mut url.raw_fragment);
        }
        Ok(url)
    }

    /// Source: Go `net/url/url.go`, `parse`.
    fn parse_parts(text: &str, via_request: bool) -> Result<Self, String> {
        if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
            return Err("net/url: invalid control character in URL".to_owned());
        }
        if text.is_empty() && via_request {
            return Err("empty url".to_owned());
        }
        let mut url = Self::default();
        if text == "*" {
            url.path = b"*".to_vec();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(text)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = rest
            .split_once('?')
            .map_or((rest, None), |(a, b)| (a, Some(b)));
        url.force_query = query == Some("");
        query.unwrap_or_default().clone_into(&mut url.query);
        if !rest.starts_with('/') {
            if !url.scheme.is_empty() {
                rest.clone_into(&mut url.opaque);
                return Ok(url);
            }
            if via_request {
                return Err("invalid URI for request".to_owned());
            }
            if first_segment(rest).contains(':') {
                return Err("first path segment in URL cannot contain colon".to_owned());
            }
        }
        let has_scheme = !url.scheme.is_empty();
        if (has_scheme || !via_request && !rest.starts_with("///"))
            && let Some(remaining) = rest.strip_prefix("//")
        {
            let path = remaining
                .find('/')
                .and_then(|at| remaining.get(at..))
                .unwrap_or_default();
            let authority = remaining.strip_suffix(path).unwrap_or(remaining);
            url.set_authority(authority)?;
            rest = path;
        } else if has_scheme && rest.starts_with('/') {
            url.omit_host = true;
        }
        url.path = unescape(rest.as_bytes(), Part::Path)?;
        if escape(&url.path, Part::Path) != rest {
            rest.clone_into(&mut url.raw_path);
        }
        Ok(url)
    }

    /// Source: Go `net/url/url.go`, `parseAuthority`.
    fn set_authority(&mut self, authority: &str) -> Result<(), String> {
        let Some((user, host)) = authority.rsplit_once('@') else {
            self.host = parse_host(&self.scheme, authority)?;
            return Ok(());
        };
        self.host = parse_host(&self.scheme, host)?;
        let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(c);
        if !user.chars().all(is_allowed) {
            return Err("net/url: invalid userinfo".to_owned());
        }
        let (name, password) = match user.split_once(':') {
            Some((name, password)) => (name, Some(password)),
            None => (user, None),
        };
        let unescape = |text: &str| unescape(text.as_bytes(), Part::UserPassword);
        self.user = Some(User {
            name: unescape(name)?,
            password: password.map(unescape).transpose()?,
        });
        Ok(())
    }

    /// Returns the scheme, in lower case.
    #[must_use]
    pub fn scheme(&self) -> &str {
        &self.scheme
    }

    /// Returns true if the URL contains user information, as in `http://user@host`.
    #[must_use]
    pub const fn has_user(&self) -> bool {
        self.user.is_some()
    }

    /// Returns true if the URL has a nonempty fragment or a nonempty query.
    #[must_use]
    pub const fn has_fragment_or_query(&self) -> bool {
        !self.fragment.is_empty() || !self.query.is_empty()
    }

    /// Returns the unescaped host, with the port.
    #[must_use]
    pub fn host(&self) -> String {
        decode(&self.host)
    }

    /// Returns the host without the port and without the brackets of an IPv6 address.
    ///
    /// Source: Go `net/url/url.go`, `URL.Hostname`.
    #[must_use]
    pub fn hostname(&self) -> String {
        decode(self.host_and_port().0)
    }

    /// Returns the port. Empty if the URL has none.
    ///
    /// Source: Go `net/url/url.go`, `URL.Port`.
    #[must_use]
    pub fn port(&self) -> String {
        decode(self.host_and_port().1)
    }

    /// Source: Go `net/url/url.go`, `splitHostPort`.
    fn host_and_port(&self) -> (&[u8], &[u8]) {
        let host = self.host.as_slice();
        let colon = host.iter().rposition(|byte| *byte == b':');
        let (host, port) = colon
            .and_then(|at| host.split_at_checked(at))
            .filter(|(_, port)| is_optional_port(port))
            .unwrap_or((host, b""));
        let inner = host
            .strip_prefix(b"[")
            .and_then(|rest| rest.strip_suffix(b"]"));
        (inner.unwrap_or(host), port.get(1..).unwrap_or_default())
    }

    /// Returns the encoded path of the input if it is valid. Otherwise encodes the path.
    ///
    /// Source: Go `net/url/url.go`, `URL.EscapedPath`.
    #[must_use]
    pub fn escaped_path(&self) -> String {
        if self.raw_path.is_empty() && self.path == b"*" {
            return "*".to_owned();
        }
        escaped(&self.raw_path, &self.path, Part::Path)
    }

    pub(super) fn text_len(&self) -> usize {
        let of_user = self.user.as_ref().map_or(0, |user| {
            user.name
                .len()
                .saturating_add(user.password.as_ref().map_or(0, Vec::len))
        });
        let lengths = [
            self.scheme.len(),
            self.opaque.len(),
            self.host.len(),
            self.path.len(),
            self.raw_path.len(),
            self.query.len(),
            self.fragment.len(),
            self.raw_fragment.len(),
        ];
        lengths.into_iter().fold(of_user, usize::saturating_add)
    }

    /// Returns the number of query parameters that [`Self::query`] parses. Returns 0 if there are more than
    /// [`MAX_PARAMETERS`].
    pub(super) fn n_parameters(&self) -> usize {
        match self.query.split('&').count() {
            n if n > MAX_PARAMETERS => 0,
            n => n,
        }
    }

    /// Returns the query parameters, each with its name and all its values. Invalid parameters are skipped.
    ///
    /// Source: Go `net/url/url.go`, `parseQuery`, `urlParamsWithinMax`.
    #[must_use]
    pub fn query(&self) -> Vec<(String, Vec<String>)> {
        let mut parameters: Vec<(String, Vec<String>)> = Vec::new();
        if self.n_parameters() == 0 {
            return parameters;
        }
        let mut places = std::collections::HashMap::new();
        for pair in self.query.split('&') {
            if pair.is_empty() || pair.contains(';') {
                continue;
            }
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            let unescape = |text: &str| unescape(text.as_bytes(), Part::QueryComponent);
            let (Ok(name), Ok(value)) = (unescape(name), unescape(value)) else {
                continue;
            };
            let place = *places.entry(name).or_insert_with_key(|name| {
                parameters.push((decode(name), Vec::new()));
                parameters.len() - 1
            });
            if let Some((_, values)) = parameters.get_mut(place) {
                values.push(decode(&value));
            }
        }
        parameters
    }
}

/// The maximum number of query parameters. A query with more parameters is ignored as a whole.
///
/// Source: Go `net/url/url.go`, `defaultMaxParams`.
const MAX_PARAMETERS: usize = 10_000;

/// Checks that the string is an absolute URL or an absolute path. A fragment is not allowed.
///
/// # Errors
///
/// Returns Go's error if the string is neither an absolute URL nor an absolute path.
///
/// Source: Go `net/url/url.go`, `ParseRequestURI`.
pub fn parse_request_uri(text: &str) -> Result<(), UrlError> {
    Url::parse_parts(text, true)
        .map(drop)
        .map_err(|reason| UrlError {
            url: quote(text),
            reason,
        })
}

fn first_segment(path: &str) -> &str {
    path.split('/').next().unwrap_or_default()
}

/// Source: Go `net/url/url.go`, `getScheme`.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    let is_scheme = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
    let remaining = text.trim_start_matches(is_scheme);
    let scheme = text.strip_suffix(remaining).unwrap_or_default();
    match remaining.strip_prefix(':') {
        Some(_) if scheme.is_empty() => Err("missing protocol scheme".to_owned()),
        Some(rest) if scheme.starts_with(|c: char| c.is_ascii_alphabetic()) => Ok((scheme, rest)),
        _ => Ok(("", text)),
    }
}

fn is_optional_port(text: &[u8]) -> bool {
    match text.split_first() {
        None => true,
        Some((b':', digits)) => digits.iter().all(u8::is_ascii_digit),
        Some(_) => false,
    }
}

/// Source: Go `net/url/url.go`, `parseHost`.
fn parse_host(scheme: &str, host: &str) -> Result<Vec<u8>, String> {
    let check_port = |port: &str| {
        if is_optional_port(port.as_bytes()) {
            Ok(())
        } else {
            Err(format!("invalid port {} after host", quote(port)))
        }
    };
    match host.rsplit_once('[') {
        Some(("", remaining)) => return parse_literal(remaining, check_port),
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    let first = host.find(':');
    let last = host.rfind(':');
    // For schemes other than HTTP and HTTPS, Go accepts a host with several colons, for historical reasons.
    let is_strict = matches!(scheme, "http" | "https");
    if let Some(at) = if is_strict { first } else { last } {
        check_port(host.get(at..).unwrap_or_default())?;
    }
    unescape(host.as_bytes(), Part::Host)
}

/// Parses the part of a host after the opening bracket: an IPv6 address, a closing bracket and an optional port.
fn parse_literal(
    text: &str,
    check_port: impl Fn(&str) -> Result<(), String>,
) -> Result<Vec<u8>, String> {
    let (address, port) = text.rsplit_once(']').ok_or("missing ']' in host")?;
    check_port(port)?;
    let port = unescape(port.as_bytes(), Part::Host)?;
    let zone = address
        .find("%25")
        .and_then(|at| address.get(at..))
        .unwrap_or_default();
    let address = address.strip_suffix(zone).unwrap_or(address);
    let mut plain = unescape(address.as_bytes(), Part::Host)?;
    plain.extend(unescape(zone.as_bytes(), Part::Zone)?);
    match parse_address(&plain) {
        Err(error) => return Err(format!("invalid host: {error}")),
        Ok(address) if matches!(address.ip, IpAddr::V4(_)) => {
            return Err("invalid IP-literal".to_owned());
        }
        Ok(_) => {}
    }
    Ok([b"[", plain.as_slice(), b"]", port.as_slice()].concat())
}

impl fmt::Display for Url {
    /// Source: Go `net/url/url.go`, `URL.String`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut begin = String::new();
        if !self.scheme.is_empty() {
            begin.push_str(&self.scheme);
            begin.push(':');
        }
        if self.opaque.is_empty() {
            self.push_authority(&mut begin);
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with('/') && !self.host.is_empty() {
                begin.push('/');
            }
            if begin.is_empty() && first_segment(&path).contains(':') {
                begin.push_str("./");
            }
            begin.push_str(&path);
        } else {
            begin.push_str(&self.opaque);
        }
        f.write_str(&begin)?;
        if self.force_query || !self.query.is_empty() {
            write!(f, "?{}", self.query)?;
        }
        if !self.fragment.is_empty() {
            let fragment = escaped(&self.raw_fragment, &self.fragment, Part::Fragment);
            write!(f, "#{fragment}")?;
        }
        Ok(())
    }
}

impl Url {
    fn push_authority(&self, text: &mut String) {
        let has_authority = !self.host.is_empty() || self.user.is_some();
        if !has_authority && (self.scheme.is_empty() || self.omit_host) {
            return;
        }
        if has_authority || !self.path.is_empty() {
            text.push_str("//");
        }
        if let Some(user) = &self.user {
            text.push_str(&escape(&user.name, Part::UserPassword));
            if let Some(password) = &user.password {
                text.push(':');
                text.push_str(&escape(password, Part::UserPassword));
            }
            text.push('@');
        }
        text.push_str(&escape(&self.host, Part::Host));
    }
}
