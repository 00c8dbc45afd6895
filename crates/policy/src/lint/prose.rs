//! Words and phrases of messages.

/// Ends of sentences that deny the value before them.
pub(super) const DENIALS: [&str; 8] = [
    "is not allowed",
    "are not allowed",
    "is not permitted",
    "are not permitted",
    "is forbidden",
    "are forbidden",
    "is prohibited",
    "are prohibited",
];

/// Words that indicate that a message may deny all values except the named one, as in `values other than a are
/// forbidden`.
pub(super) const OTHERS: [&str; 14] = [
    "but",
    "different",
    "except",
    "instead",
    "no",
    "non",
    "not",
    "only",
    "other",
    "outside",
    "than",
    "unless",
    "without",
    "missing",
];

/// Returns the words of a message, with empty words between adjacent punctuation.
pub(super) fn words_of(message: &str) -> impl Iterator<Item = &str> + Clone {
    message.split(|c: char| !c.is_alphanumeric())
}

/// Returns the words of a message between spaces, such as `1.5`, without punctuation at their ends.
pub(super) fn plain_words(words: &str) -> Vec<&str> {
    let words = words.split_whitespace();
    let words = words.map(|word| {
        word.trim_matches(|c: char| {
            matches!(c, '\'' | '"' | '`' | '.' | ',' | ':' | '!' | '(' | ')')
        })
    });
    words.filter(|word| !word.is_empty()).collect()
}
