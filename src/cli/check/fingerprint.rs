//! Fingerprints of findings: the same when lines move, and when other findings come and go.

use std::collections::HashMap;

use super::finding::{Finding, Owner};

/// Gives each finding its fingerprint; `findings` are sorted by file and place.
///
/// It is made of what is found, where in which object, and of the text that is marked, without lines and indices.
/// Of several that are equal in one file each has its number.
pub(super) fn number(findings: &mut [Finding]) {
    let mut n_equal: HashMap<(String, u64), u64> = HashMap::new();
    for found in findings {
        let base = base(found);
        let n = n_equal
            .entry((found.location.file.clone(), base))
            .or_default();
        let fingerprint = if *n == 0 {
            base
        } else {
            let mut hash = Hash(base);
            hash.add(&n.to_string());
            hash.0
        };
        *n += 1;
        found.fingerprint = format!("{fingerprint:016x}");
    }
}

/// Gives fingerprints to those that have none yet.
pub(super) fn number_others(findings: &mut [Finding]) {
    let others = |found: &Finding| found.fingerprint.is_empty();
    let mut open: Vec<Finding> = findings.iter().filter(|it| others(it)).cloned().collect();
    number(&mut open);
    let mut numbered = open.into_iter();
    for found in findings.iter_mut().filter(|found| others(found)) {
        if let Some(next) = numbered.next() {
            *found = next;
        }
    }
}

fn base(found: &Finding) -> u64 {
    let mut hash = Hash::default();
    hash.add(found.rule.id());
    // Fingerprints are stored: the names of a policy and of a binding count even if there are none.
    let (policy, binding) = match &found.owner {
        Owner::Policy(name) => (name.as_str(), ""),
        Owner::Binding(name) => ("", name.as_str()),
        _ => ("", ""),
    };
    hash.add(policy);
    hash.add(binding);
    if let Owner::Webhook {
        webhook: Some(webhook),
        ..
    } = &found.owner
    {
        hash.add(webhook);
    }
    let field_ref = found.field_ref.as_deref().unwrap_or_default();
    hash.add(&without_numbers(field_ref));
    hash.add(&without_numbers(&found.message));
    let location = &found.location;
    if let (Some(source), Some(place)) = (&location.source, location.place) {
        let marked = source.part_of_line(place.line, place.column - 1, location.length);
        hash.add(marked.trim());
    }
    hash.0
}

/// The text with `0` for each number: lines, indices and counts change with what is around.
pub(super) fn without_numbers(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        if !character.is_ascii_digit() {
            out.push(character);
        } else if !out.ends_with('0') {
            out.push('0');
        }
    }
    out
}

/// A hash that is the same in all versions and on all machines.
///
/// Source: G. Fowler, L. C. Noll, K.-P. Vo, "FNV hash", FNV-1a of 64 bits.
#[derive(Clone, Copy, Debug)]
struct Hash(u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Adds a text, and its end.
    fn add(&mut self, text: &str) {
        for byte in text.bytes().chain([0xff]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::check::finding::{Location, Severity};
    use crate::cli::input::{Place, SourceText};
    use crate::policy::rule::Rule;

    /// The fingerprints of findings about a word: the text before it, and the message.
    fn of(findings: &[(&str, &str)]) -> Vec<String> {
        let mut all: Vec<Finding> = findings
            .iter()
            .map(|(before, message)| {
                let text = format!("{before}word");
                let source = Arc::new(SourceText::new("f".to_owned(), text));
                let place = source.place(before.len());
                let mut location = Location::of_place(&source, place);
                location.length = 4;
                Finding {
                    field_ref: Some(format!("spec.validations[{}]", before.len())),
                    ..Finding::new(Severity::Error, Rule::Syntax, *message, location)
                }
            })
            .collect();
        number(&mut all);
        all.into_iter().map(|found| found.fingerprint).collect()
    }

    #[test]
    fn a_fingerprint_survives_moves_and_tells_findings_apart() {
        let [one, other, again] = &of(&[("a: ", "m 12"), ("a: ", "n"), ("a: ", "m 12")])[..] else {
            panic!()
        };
        assert!(one != other && one != again && other != again);
        assert_eq!(&of(&[("\n\n  b: ", "m 9")])[0], one);
        assert_eq!(
            of(&[("a: ", "m 1"), ("b: ", "m 2")]),
            [one.clone(), again.clone()]
        );
        assert_eq!(one.len(), 16);
    }

    #[test]
    fn a_place_beyond_its_line_is_no_trouble() {
        let source = Arc::new(SourceText::new("f".to_owned(), String::new()));
        let location = Location::of_place(&source, Place { line: 7, column: 9 });
        let mut found = [Finding::new(Severity::Error, Rule::Syntax, "m", location)];
        number(&mut found);
        assert_eq!(found[0].fingerprint.len(), 16);
    }
}
