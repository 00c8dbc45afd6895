//! Validates email addresses like Go's `net/mail`.
//!
//! Differs: the character set of an encoded word (RFC 2047) is not validated.
//!
//! Source: Go `net/mail/message.go` (`ParseAddress`).

use crate::library::net;

/// Returns true if the string is exactly one address, optionally with a display name, or a group of exactly one
/// address.
pub(super) fn is_address(text: &str) -> bool {
    let mut rest = MailParser(text);
    let n = rest.address(true);
    n == Some(1) && rest.skip_comments().is_some() && rest.0.is_empty()
}

/// A parser. The string is the remaining input. All methods return `None` on a syntax error.
struct MailParser<'t>(&'t str);

impl<'t> MailParser<'t> {
    fn skip_space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, c: char) -> bool {
        let rest = self.0.strip_prefix(c);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    fn take_while(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let rest = self.0.trim_start_matches(is_part);
        let taken = self.0.strip_suffix(rest).unwrap_or_default();
        self.0 = rest;
        taken
    }

    /// Parses an address or a group. Returns the number of addresses.
    fn address(&mut self, allows_group: bool) -> Option<usize> {
        self.skip_space();
        if self.0.is_empty() {
            return None;
        }
        let begin = self.0;
        if self.plain().is_some() {
            self.skip_space();
            if self.take('(') {
                self.comment()?;
            }
            return Some(1);
        }
        self.0 = begin;
        if !self.0.starts_with('<') {
            self.phrase()?;
        }
        self.skip_space();
        if allows_group && self.take(':') {
            return self.group();
        }
        if !self.take('<') {
            return None;
        }
        self.plain()?;
        self.take('>').then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        let mut n: usize = 0;
        self.skip_space();
        if self.take(';') {
            self.skip_comments()?;
            return Some(n);
        }
        loop {
            self.skip_space();
            n = n.saturating_add(self.address(false)?);
            self.skip_comments()?;
            if self.take(';') {
                self.skip_comments()?;
                return Some(n);
            }
            if !self.take(',') {
                return None;
            }
        }
    }

    /// Parses `local@domain`.
    fn plain(&mut self) -> Option<()> {
        self.skip_space();
        if self.0.starts_with('"') {
            if self.quoted()? == 0 {
                return None;
            }
        } else {
            self.dotted()?;
        }
        if !self.take('@') {
            return None;
        }
        self.skip_space();
        if self.take('[') {
            let literal = self.take_while(|c| is_visible(c) && !matches!(c, '[' | ']' | '\\'));
            let is_address =
                net::parse_address(literal.as_bytes()).is_ok_and(|found| !found.has_zone);
            return (self.take(']') && is_address).then_some(());
        }
        self.dotted()
    }

    fn dotted(&mut self) -> Option<()> {
        let atom = self.atom()?;
        let is_right = !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        is_right.then_some(())
    }

    fn atom(&mut self) -> Option<&'t str> {
        let is_part = |c| is_visible(c) && !"()<>[]:;@\\,\"".contains(c);
        let atom = self.take_while(is_part);
        (!atom.is_empty()).then_some(atom)
    }

    /// Parses a quoted string. Returns the number of characters inside the quotes.
    fn quoted(&mut self) -> Option<usize> {
        let mut n: usize = 0;
        let mut is_escaped = false;
        let mut chars = self.0.chars();
        chars.next();
        loop {
            let c = chars.next()?;
            let is_allowed = is_visible(c) || matches!(c, ' ' | '\t');
            match c {
                _ if !is_allowed => return None,
                '"' if !is_escaped => break,
                '\\' if !is_escaped => is_escaped = true,
                _ => {
                    is_escaped = false;
                    n = n.saturating_add(1);
                }
            }
        }
        self.0 = chars.as_str();
        Some(n)
    }

    /// Parses one or more words. A word is an atom or a quoted string.
    fn phrase(&mut self) -> Option<()> {
        let mut n: usize = 0;
        loop {
            if n > 0 {
                self.skip_comments()?;
            }
            self.skip_space();
            if self.0.is_empty() {
                return Some(());
            }
            let begin = self.0;
            let is_word = if self.0.starts_with('"') {
                self.quoted().is_some()
            } else {
                self.atom().is_some()
            };
            if !is_word {
                self.0 = begin;
                return (n > 0).then_some(());
            }
            n = n.saturating_add(1);
        }
    }

    fn skip_comments(&mut self) -> Option<()> {
        self.skip_space();
        while self.take('(') {
            self.comment()?;
            self.skip_space();
        }
        Some(())
    }

    /// Parses a comment after its opening parenthesis. Comments can be nested.
    fn comment(&mut self) -> Option<()> {
        let mut depth: usize = 1;
        let mut chars = self.0.chars();
        while depth > 0 {
            match chars.next()? {
                '\\' if !chars.as_str().is_empty() => {
                    chars.next();
                }
                '(' => depth = depth.saturating_add(1),
                ')' => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        self.0 = chars.as_str();
        Some(())
    }
}

const fn is_visible(c: char) -> bool {
    matches!(c, '!'..='~') || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn mail_address_syntax_agrees_with_go() {
        for text in [
            "a@b",
            " a.b@c.d ",
            "Ann <a@b>",
            "\"A B\"@c",
            "a@[1.2.3.4]",
            "a@b (Ann)",
            "g: a@b;",
            "Ann (x) B <a@b>",
        ] {
            assert!(is_address(text), "{text}");
        }
        for text in [
            "",
            "a",
            "a@",
            "@b",
            ".a@b",
            "a..b@c",
            "a@b c",
            "<a@b",
            "g: a@b, c@d;",
            "g:;",
            "a@[x]",
            "\"\"@b",
            "a@b (",
        ] {
            assert!(!is_address(text), "{text}");
        }
    }
}
