//! Words and phrases of messages.

/// Phrases at the end of a sentence that deny the value named before the phrase.
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

/// Words that indicate that a message may deny all values except the one that it names, as in `values other than a are
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

/// Splits a message at white space. Removes punctuation at the start and end of each word, but not within it: `1.5` is
/// one word.
pub(super) fn plain_words(words: &str) -> Vec<&str> {
    let words = words.split_whitespace();
    let words = words.map(|word| {
        word.trim_matches(|c: char| {
            matches!(c, '\'' | '"' | '`' | '.' | ',' | ':' | '!' | '(' | ')')
        })
    });
    words.filter(|word| !word.is_empty()).collect()
}
