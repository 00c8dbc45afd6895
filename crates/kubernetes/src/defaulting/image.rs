//! Determines whether an image has the tag `latest`.
//!
//! Source: `k8s.io/kubernetes` `pkg/util/parsers/parsers.go` (`ParseImageName`),
//! `github.com/distribution/reference` `normalize.go`, `regexp.go`.

/// The maximum length of an image tag, in characters.
const MAX_TAG: usize = 128;

/// The maximum length of an image name without tag and digest, in characters.
const MAX_NAME: usize = 255;

/// Returns true if the image has the tag `latest`, or has neither a tag nor a digest. Returns false for an invalid
/// name.
pub(super) fn is_latest(image: &str) -> bool {
    let is_id = image.len() == 64
        && image
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase());
    if is_id {
        return false;
    }
    let (rest, digest) = match image.split_once('@') {
        Some((rest, digest)) => (rest, Some(digest)),
        None => (image, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) {
        return false;
    }
    let (name, tag) = match rest.rsplit_once(':') {
        Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
        _ => (rest, None),
    };
    if tag.is_some_and(|tag| !is_tag(tag)) || !is_name(name) {
        return false;
    }
    match (tag, digest) {
        (Some(tag), _) => tag == "latest",
        (None, digest) => digest.is_none(),
    }
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else {
        return false;
    };
    let length = match algorithm {
        "sha256" => 64,
        "sha384" => 96,
        "sha512" => 128,
        _ => return false,
    };
    hex.len() == length
        && hex
            .bytes()
            .all(|byte| byte.is_ascii_hexdigit() && !byte.is_ascii_uppercase())
}

fn is_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    let mut bytes = tag.bytes();
    tag.len() <= MAX_TAG
        && bytes.next().is_some_and(is_word)
        && bytes.all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

fn is_name(name: &str) -> bool {
    let first = name.split_once('/');
    let is_domain_like = |domain: &str| {
        domain.contains(['.', ':']) || domain == "localhost" || domain.to_lowercase() != domain
    };
    let (domain, path) = match first {
        Some((domain, path)) if is_domain_like(domain) => (Some(domain), path),
        _ => (None, name),
    };
    name.len() <= MAX_NAME && domain.is_none_or(is_domain) && path.split('/').all(is_component)
}

fn is_domain(domain: &str) -> bool {
    let (host, port) = match domain.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => (host, Some(port)),
        _ => (domain, None),
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let is_address = host
        .strip_prefix('[')
        .and_then(|host| host.strip_suffix(']'))
        .is_some_and(|host| {
            !host.is_empty()
                && host
                    .bytes()
                    .all(|byte| byte.is_ascii_hexdigit() || byte == b':')
        });
    let is_part = |part: &str| {
        !part.is_empty()
            && !part.starts_with('-')
            && !part.ends_with('-')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    port.is_none_or(is_port) && (is_address || host.split('.').all(is_part))
}

/// Returns true if one component of an image name is valid: lowercase letters and digits, separated by one dot, one or
/// two underscores, or any number of dashes.
fn is_component(component: &str) -> bool {
    let is_word = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = component.as_bytes();
    let is_bounded = bytes.first().is_some_and(is_word) && bytes.last().is_some_and(is_word);
    let mut separators = bytes.split(is_word).filter(|between| !between.is_empty());
    is_bounded
        && separators.all(|between| {
            matches!(between, b"." | b"_" | b"__") || between.iter().all(|byte| *byte == b'-')
        })
}

#[cfg(test)]
mod tests {
    use super::is_latest;

    #[test]
    fn image_with_tag_latest_or_no_tag_is_latest() {
        for image in [
            "a",
            "a:latest",
            "r.example.com:5000/a",
            "library/a",
            "A.b/c",
            "localhost/a",
        ] {
            assert!(is_latest(image), "{image}");
        }
        let digest = format!("a@sha256:{}", "0".repeat(64));
        for image in [
            "",
            "a:1",
            "A",
            "a b",
            "a:",
            &digest,
            "r.example.com:5000/a:1",
            &"0".repeat(64),
        ] {
            assert!(!is_latest(image), "{image}");
        }
    }
}
