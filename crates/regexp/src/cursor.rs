//! A cursor over a pattern.

/// The unparsed remainder of a pattern.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cursor<'a> {
    rest: &'a str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(rest: &'a str) -> Self {
        Self { rest }
    }

    pub(super) fn rest(self) -> &'a str {
        self.rest
    }

    pub(super) fn is_empty(self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the byte at offset `ahead`. Returns `None` at the end.
    pub(super) fn byte(self, ahead: usize) -> Option<u8> {
        self.rest.as_bytes().get(ahead).copied()
    }

    pub(super) fn next_char(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next();
        self.rest = chars.as_str();
        next
    }

    /// Skips `prefix` and returns true. Returns false if the rest does not start with `prefix`.
    pub(super) fn eat(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    /// Skips `n_bytes` and returns them. They must end at a character boundary.
    pub(super) fn take(&mut self, n_bytes: usize) -> &'a str {
        match self.rest.split_at_checked(n_bytes) {
            Some((taken, rest)) => {
                self.rest = rest;
                taken
            }
            None => std::mem::take(&mut self.rest),
        }
    }

    /// Skips the characters that `accept` matches, and returns them.
    pub(super) fn take_while(&mut self, accept: impl Fn(char) -> bool) -> &'a str {
        let n_bytes = self.rest.find(|c| !accept(c)).unwrap_or(self.rest.len());
        self.take(n_bytes)
    }

    /// Returns the part of the pattern from `start` to this cursor.
    pub(super) fn since(self, start: Self) -> &'a str {
        start
            .rest
            .get(..start.rest.len() - self.rest.len())
            .unwrap_or(start.rest)
    }
}
