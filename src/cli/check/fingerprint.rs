//! Fingerprints of findings, which do not change when lines move or when other findings appear or disappear.

use std::collections::HashMap;

use super::finding::{Finding, Owner};

/// Sets the fingerprint of each finding. `findings` must be sorted by file and location.
///
/// A fingerprint is a hash of the rule, the object, the field, the message and the marked source. Each number in the
/// field and in the message is replaced with `0`. If several findings of a file have equal hashes, the hashes of all
/// except the first also include a number.
pub(super) fn number(findings: &mut [Finding]) {
    let mut n_equal: HashMap<(String, u64), u64> = HashMap::new();
    for finding in findings {
        let base = base(finding);
        let n = n_equal
            .entry((finding.location.file.clone(), base))
            .or_default();
        let fingerprint = if *n == 0 {
            base
        } else {
            let mut hash = Hash(base);
            hash.add(&n.to_string());
            hash.0
        };
        *n += 1;
        finding.fingerprint = format!("{fingerprint:016x}");
    }
}

/// Sets the fingerprints of the findings that have none.
pub(super) fn number_others(findings: &mut [Finding]) {
    let is_new = |finding: &Finding| finding.fingerprint.is_empty();
    let mut new: Vec<Finding> = findings.iter().filter(|it| is_new(it)).cloned().collect();
    number(&mut new);
    let mut numbered = new.into_iter();
    for finding in findings.iter_mut().filter(|finding| is_new(finding)) {
        if let Some(next) = numbered.next() {
            *finding = next;
        }
    }
}

fn base(finding: &Finding) -> u64 {
    let mut hash = Hash::default();
    hash.add(finding.rule.id());
    // Baselines store fingerprints, so the hash must not change. For this reason, it includes the names of a policy and
    // a binding even if they are empty.
    let (policy, binding) = match &finding.owner {
        Owner::Policy(name) => (name.as_str(), ""),
        Owner::Binding(name) => ("", name.as_str()),
        _ => ("", ""),
    };
    hash.add(policy);
    hash.add(binding);
    if let Owner::Webhook {
        webhook: Some(webhook),
        ..
    } = &finding.owner
    {
        hash.add(webhook);
    }
    let field_ref = finding.field_ref.as_deref().unwrap_or_default();
    hash.add(&without_numbers(field_ref));
    hash.add(&without_numbers(&finding.message));
    let location = &finding.location;
    if let (Some(source), Some(place)) = (&location.source, location.place) {
        let marked = source.part_of_line(place.line, place.column - 1, location.length);
        hash.add(marked.trim());
    }
    hash.0
}

/// Replaces each number with `0`, because lines, indices and counts depend on the rest of the file.
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

/// A hash function with the same results in all versions of the program and on all platforms.
///
/// Source: G. Fowler, L. C. Noll, K.-P. Vo, "FNV hash", FNV-1a of 64 bits.
#[derive(Clone, Copy, Debug)]
pub(in crate::cli) struct Hash(pub(in crate::cli) u64);

impl Default for Hash {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Hash {
    /// Hashes a string and a terminator.
    pub(in crate::cli) fn add(&mut self, text: &str) {
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

    /// Returns the fingerprints of findings. Each item is the source before the marked word, and the message.
    fn fingerprints(findings: &[(&str, &str)]) -> Vec<String> {
        let mut all: Vec<Finding> = findings
            .iter()
            .map(|(before, message)| {
                let text = format!("{before}word");
                let source = Arc::new(SourceText::new("f".to_owned(), text));
                let place = source.place(before.len());
                let mut location = Location::from_place(&source, place);
                location.length = 4;
                Finding {
                    field_ref: Some(format!("spec.validations[{}]", before.len())),
                    ..Finding::new(Severity::Error, Rule::Syntax, *message, location)
                }
            })
            .collect();
        number(&mut all);
        all.into_iter().map(|finding| finding.fingerprint).collect()
    }

    #[test]
    fn fingerprint_of_moved_finding_is_unchanged() {
        let [one, other, again] =
            &fingerprints(&[("a: ", "m 12"), ("a: ", "n"), ("a: ", "m 12")])[..]
        else {
            panic!()
        };
        assert!(one != other && one != again && other != again);
        assert_eq!(&fingerprints(&[("\n\n  b: ", "m 9")])[0], one);
        assert_eq!(
            fingerprints(&[("a: ", "m 1"), ("b: ", "m 2")]),
            [one.clone(), again.clone()]
        );
        assert_eq!(one.len(), 16);
    }

    #[test]
    fn fingerprint_of_location_beyond_line_is_computed() {
        let source = Arc::new(SourceText::new("f".to_owned(), String::new()));
        let location = Location::from_place(&source, Place { line: 7, column: 9 });
        let mut findings = [Finding::new(Severity::Error, Rule::Syntax, "m", location)];
        number(&mut findings);
        assert_eq!(findings[0].fingerprint.len(), 16);
    }
}
