//! Semantic versions: parsing, comparison and formatting.
//!
//! Source: github.com/blang/semver/v4 `semver.go`; k8s.io/apiserver `pkg/cel/library/semverlib.go`
//! (`normalizeAndParse`).

use std::cmp::Ordering;
use std::fmt;

use cel::go_text::quote;

/// A semantic version such as `1.2.3-rc.1+build`.
#[derive(Clone, Debug)]
pub struct Semver {
    /// The major version.
    pub major: u64,
    /// The minor version.
    pub minor: u64,
    /// The patch version.
    pub patch: u64,
    pre_release: Vec<Identifier>,
    build: Vec<String>,
}

/// A dot-separated identifier in the pre-release part of a version.
///
/// INVARIANT: the variant for numbers comes before the variant for words. Semantic versioning orders identifiers this
/// way.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Identifier {
    Number(u64),
    Word(String),
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => write!(f, "{number}"),
            Self::Word(word) => f.write_str(word),
        }
    }
}

/// The memory of an identifier without its characters, in bytes: the struct and the overhead of an allocation.
pub(super) const IDENTIFIER: usize = size_of::<Identifier>() + 24;

/// A syntax error in a semantic version. Its `Display` is upstream's message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SemverError(String);

fn error<T>(message: impl Into<String>) -> Result<T, SemverError> {
    Err(SemverError(message.into()))
}

impl Semver {
    /// Returns the memory of the identifiers, in bytes.
    pub(super) fn heap_size(&self) -> usize {
        let of_words = self.pre_release.iter().map(|identifier| match identifier {
            Identifier::Number(_) => 0,
            Identifier::Word(word) => word.capacity(),
        });
        let of_build = self.build.iter().map(String::capacity);
        let texts = of_words.chain(of_build).fold(0, usize::saturating_add);
        let n_identifiers = self
            .pre_release
            .capacity()
            .saturating_add(self.build.capacity());
        n_identifiers
            .saturating_mul(IDENTIFIER)
            .saturating_add(texts)
    }

    /// Parses a semantic version.
    ///
    /// # Errors
    ///
    /// Returns an error if the string is not a valid semantic version.
    ///
    /// Source: github.com/blang/semver/v4 `semver.go`, `Parse`.
    pub fn parse(text: &str) -> Result<Self, SemverError> {
        if text.is_empty() {
            return error("Version string empty");
        }
        let mut parts = text.splitn(3, '.');
        let (Some(major), Some(minor), Some(rest)) = (parts.next(), parts.next(), parts.next())
        else {
            return error("No Major.Minor.Patch elements found");
        };
        let major = parse_number("major", "Major", major)?;
        let minor = parse_number("minor", "Minor", minor)?;
        let (rest, build) = split_off(rest, '+');
        let (patch, pre_release) = split_off(rest, '-');
        let patch = parse_number("patch", "Patch", patch)?;
        let pre_release = pre_release
            .map(|text| text.split('.').map(parse_identifier).collect())
            .transpose()?;
        let build = build
            .map(|text| text.split('.').map(parse_build).collect())
            .transpose()?;
        Ok(Self {
            major,
            minor,
            patch,
            pre_release: pre_release.unwrap_or_default(),
            build: build.unwrap_or_default(),
        })
    }

    /// Normalizes and parses a version. A `v` prefix, leading zeros, and missing minor and patch numbers are accepted.
    ///
    /// # Errors
    ///
    /// Returns an error if the normalized input is not a semantic version.
    ///
    /// Source: k8s.io/apiserver `pkg/cel/library/semverlib.go`, `normalizeAndParse`.
    pub fn parse_normalized(text: &str) -> Result<Self, SemverError> {
        let text = text.strip_prefix('v').unwrap_or(text);
        let mut parts: Vec<String> = text.splitn(3, '.').map(without_zeros).collect();
        if parts.len() < 3 {
            if parts.last().is_some_and(|last| last.contains(['+', '-'])) {
                return error("short version cannot contain PreRelease/Build meta data");
            }
            parts.resize(3, "0".to_owned());
        }
        Self::parse(&parts.join("."))
    }

    /// Compares the precedence of two versions, ignoring build metadata.
    ///
    /// Source: github.com/blang/semver/v4 `semver.go`, `Version.Compare`.
    #[must_use]
    pub fn compare(&self, other: &Self) -> Ordering {
        let numbers = |version: &Self| (version.major, version.minor, version.patch);
        numbers(self).cmp(&numbers(other)).then_with(|| {
            match (self.pre_release.is_empty(), other.pre_release.is_empty()) {
                (false, false) => self.pre_release.cmp(&other.pre_release),
                // A pre-release comes before its release.
                (is_release, other_is_release) => is_release.cmp(&other_is_release),
            }
        })
    }
}

impl fmt::Display for Semver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)?;
        for (n, identifier) in self.pre_release.iter().enumerate() {
            write!(f, "{}{identifier}", if n == 0 { '-' } else { '.' })?;
        }
        for (n, build) in self.build.iter().enumerate() {
            write!(f, "{}{build}", if n == 0 { '+' } else { '.' })?;
        }
        Ok(())
    }
}

fn split_off(text: &str, separator: char) -> (&str, Option<&str>) {
    text.split_once(separator)
        .map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Removes leading zeros, but keeps one zero if no digit follows, as in `00`.
fn without_zeros(part: &str) -> String {
    if part.len() < 2 {
        return part.to_owned();
    }
    let significant = part.trim_start_matches('0');
    if significant.starts_with(|c: char| c.is_ascii_digit()) {
        significant.to_owned()
    } else {
        format!("0{significant}")
    }
}

fn is_number(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_word(text: &str) -> bool {
    text.bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

fn has_leading_zeros(text: &str) -> bool {
    text.len() > 1 && text.starts_with('0')
}

/// Source: Go `strconv`, `ParseUint`.
fn parse_uint(text: &str) -> Result<u64, SemverError> {
    text.parse().or_else(|_| {
        let reason = if text.is_empty() {
            "invalid syntax"
        } else {
            "value out of range"
        };
        error(format!(
            "strconv.ParseUint: parsing {}: {reason}",
            quote(text)
        ))
    })
}

fn parse_number(name: &str, capital_name: &str, text: &str) -> Result<u64, SemverError> {
    if !is_number(text) {
        return error(format!(
            "Invalid character(s) found in {name} number {}",
            quote(text)
        ));
    }
    if has_leading_zeros(text) {
        return error(format!(
            "{capital_name} number must not contain leading zeroes {}",
            quote(text)
        ));
    }
    parse_uint(text)
}

/// Source: github.com/blang/semver/v4 `semver.go`, `NewPRVersion`.
fn parse_identifier(text: &str) -> Result<Identifier, SemverError> {
    if text.is_empty() {
        return error("Prerelease is empty");
    }
    if is_number(text) {
        if has_leading_zeros(text) {
            return error(format!(
                "Numeric PreRelease version must not contain leading zeroes {}",
                quote(text)
            ));
        }
        return parse_uint(text).map(Identifier::Number);
    }
    if !is_word(text) {
        return error(format!(
            "Invalid character(s) found in prerelease {}",
            quote(text)
        ));
    }
    Ok(Identifier::Word(text.to_owned()))
}

fn parse_build(text: &str) -> Result<String, SemverError> {
    if text.is_empty() {
        return error("Build meta data is empty");
    }
    if !is_word(text) {
        return error(format!(
            "Invalid character(s) found in build meta data {}",
            quote(text)
        ));
    }
    Ok(text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let result = Semver::parse(text).map_or_else(|e| e.to_string(), |v| v.to_string());
        assert_eq!(result, expected, "{text}");
    }

    #[test]
    fn parsed_version_or_error_agrees_with_upstream() {
        check("1.2.3", "1.2.3");
        check("1.2.3-rc.1.x-y+b.01", "1.2.3-rc.1.x-y+b.01");
        check("18446744073709551615.0.0", "18446744073709551615.0.0");
        check("", "Version string empty");
        check("1.2", "No Major.Minor.Patch elements found");
        check(
            "v1.2.3",
            r#"Invalid character(s) found in major number "v1""#,
        );
        check(
            "1.02.3",
            r#"Minor number must not contain leading zeroes "02""#,
        );
        check(
            "1.2.3.4",
            r#"Invalid character(s) found in patch number "3.4""#,
        );
        check("1..3", r#"strconv.ParseUint: parsing "": invalid syntax"#);
        check(
            "18446744073709551616.0.0",
            r#"strconv.ParseUint: parsing "18446744073709551616": value out of range"#,
        );
        check("1.2.3-", "Prerelease is empty");
        check(
            "1.2.3-01",
            r#"Numeric PreRelease version must not contain leading zeroes "01""#,
        );
        check("1.2.3-é", r#"Invalid character(s) found in prerelease "é""#);
        check("1.2.3+", "Build meta data is empty");
        check(
            "1.2.3+a+b",
            r#"Invalid character(s) found in build meta data "a+b""#,
        );
    }

    #[test]
    fn normalization_accepts_prefix_leading_zeros_and_short_versions() {
        let check = |text, expected: &str| {
            let result = Semver::parse_normalized(text);
            assert_eq!(
                result.map_or_else(|e| e.to_string(), |v| v.to_string()),
                expected,
                "{text}"
            );
        };
        check("v1", "1.0.0");
        check("v01.002", "1.2.0");
        check("01.00.03-rc", "1.0.3-rc");
        check("1.2.00-rc", "1.2.0-rc");
        check("vv1", r#"Invalid character(s) found in major number "0v1""#);
        check(
            "1-rc",
            "short version cannot contain PreRelease/Build meta data",
        );
        check(
            " 1.0.0",
            r#"Invalid character(s) found in major number "0 1""#,
        );
        check("", r#"strconv.ParseUint: parsing "": invalid syntax"#);
    }

    #[test]
    fn comparison_follows_semver_precedence() {
        let versions = [
            "1.0.0-1",
            "1.0.0-2",
            "1.0.0-10",
            "1.0.0-alpha",
            "1.0.0-alpha.1",
            "1.0.0-alpha.beta",
            "1.0.0-beta",
            "1.0.0",
            "1.0.1-0",
            "1.2.0",
            "2.0.0",
        ];
        let parsed = versions.map(|text| Semver::parse(text).unwrap());
        for (n, left) in parsed.iter().enumerate() {
            for (m, right) in parsed.iter().enumerate() {
                assert_eq!(left.compare(right), n.cmp(&m), "{left} {right}");
            }
        }
        let built = Semver::parse("1.0.0+b").unwrap();
        assert!(built.compare(&Semver::parse("1.0.0+a").unwrap()).is_eq());
    }
}
