//! Formats lists and counts in messages of conditions, and truncates messages.

use crate::policy::analysis::UncheckedKind;
use crate::schema::Gvk;

/// The maximum length of a condition's message, in bytes.
///
/// The API allows 32,768 bytes, but tables, chat messages and Flux events show much less.
pub(crate) const MAX_BYTES: usize = 1024;

/// The maximum number of names in a formatted list.
const MAX_NAMES: usize = 4;

/// Truncates the text to `max_bytes`, including the ellipsis that marks the truncation.
pub(crate) fn cut(text: &str, max_bytes: usize) -> String {
    const ELLIPSIS: &str = "…";
    if text.len() <= max_bytes {
        return text.to_owned();
    }
    let mut end = max_bytes.saturating_sub(ELLIPSIS.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    let mut truncated = text.get(..end).unwrap_or_default().to_owned();
    truncated.push_str(ELLIPSIS);
    truncated
}

/// Formats a number with a noun: `1 kind`, `2 kinds`.
pub(crate) fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// Formats the first [`MAX_NAMES`] names and the number of omitted names: `a, b, c, d and 3 more`.
pub(crate) fn list<T: AsRef<str>>(names: &[T]) -> String {
    let shown: Vec<&str> = names.iter().take(MAX_NAMES).map(AsRef::as_ref).collect();
    match names.len().saturating_sub(shown.len()) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

/// Groups names by reason: `a, b and 7 more (no schema)`, `c (too large)`. The groups are sorted by the first
/// occurrence of their reason.
fn by_reason(items: impl IntoIterator<Item = (String, String)>) -> Vec<String> {
    let mut groups: Vec<(String, Vec<String>)> = Vec::new();
    for (name, reason) in items {
        match groups.iter_mut().find(|(existing, _)| *existing == reason) {
            Some((_, names)) => names.push(name),
            None => groups.push((reason, vec![name])),
        }
    }
    let groups = groups.into_iter();
    groups
        .map(|(reason, names)| format!("{} ({reason})", list(&names)))
        .collect()
}

/// Formats a kind as `rules.example.com/v1 ReplicaLimit`.
pub(crate) fn kind(gvk: &Gvk) -> String {
    format!("{} {}", gvk.api_version(), gvk.kind)
}

/// Formats kinds that were not type-checked, grouped by reason.
pub(crate) fn unchecked<'a>(kinds: impl IntoIterator<Item = &'a UncheckedKind>) -> Vec<String> {
    let kinds = kinds.into_iter();
    by_reason(kinds.map(|unchecked| (kind(&unchecked.gvk), unchecked.reason.clone())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn message_is_truncated_at_character_boundary() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcdef", 5), "ab…");
        // An `é` has two bytes and the ellipsis has three.
        assert_eq!(cut("ééé", 4), "…");
        assert_eq!(cut("ééé", 5), "é…");
    }

    #[test]
    fn message_list_shows_at_most_four_names() {
        assert_eq!(list::<&str>(&[]), "");
        assert_eq!(list(&["a", "b", "c", "d"]), "a, b, c, d");
        assert_eq!(
            list(&["a", "b", "c", "d", "e", "f"]),
            "a, b, c, d and 2 more"
        );
    }

    #[test]
    fn counts_in_messages_use_plural_except_for_one() {
        assert_eq!(count(0, "kind"), "0 kinds");
        assert_eq!(count(1, "kind"), "1 kind");
        assert_eq!(count(2, "kind"), "2 kinds");
    }

    #[test]
    fn message_groups_names_by_reason() {
        let item = |name: &str, reason: &str| (name.to_owned(), reason.to_owned());
        let items = [item("a", "x"), item("b", "y"), item("c", "x")];
        assert_eq!(by_reason(items), ["a, c (x)", "b (y)"]);
        let many = (0..9).map(|n| item(&format!("k{n}"), "x"));
        assert_eq!(by_reason(many), ["k0, k1, k2, k3 and 5 more (x)"]);
    }
}
