//! Two texts as a unified diff, and two objects as one of their YAML.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;

use super::yaml_text;

/// The unchanged lines around a change.
const CONTEXT: usize = 3;

/// The most pairs of lines that are compared to find those that stay; of longer texts all that lies between what they
/// begin and end with alike counts as changed.
const MAX_PAIRS: usize = 4_000_000;

/// The unified diff of two objects as YAML, without who manages their fields; empty where they are equal.
#[must_use]
pub(in crate::cli) fn of_objects(names: (&str, &str), old: &Value, new: &Value) -> String {
    of_texts(names, &yaml(old), &yaml(new))
}

/// An object as YAML, without who manages its fields.
fn yaml(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if object.is_null() {
        return String::new();
    }
    yaml_text::to_string(&object).unwrap_or_else(|_| object.to_string())
}

/// The unified diff of two texts; empty where they are equal.
#[must_use]
pub(in crate::cli) fn of_texts(names: (&str, &str), old: &str, new: &str) -> String {
    let (old, new): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
    let changes = changes(&old, &new);
    if changes.is_empty() {
        return String::new();
    }
    let mut out = format!("--- {}\n+++ {}\n", names.0, names.1);
    let mut changes = changes.into_iter().peekable();
    while let Some(first) = changes.next() {
        let mut hunk = vec![first];
        while let Some(next) = changes.next_if(|next| {
            let end = hunk.last().map_or(0, |(of_old, _)| of_old.end);
            next.0.start <= end.saturating_add(2 * CONTEXT)
        }) {
            hunk.push(next);
        }
        write_hunk(&mut out, &old, &new, &hunk);
    }
    out
}

/// A range of old lines, and that of the new ones in their place.
type Change = (Range<usize>, Range<usize>);

fn write_hunk(out: &mut String, old: &[&str], new: &[&str], hunk: &[Change]) {
    let (Some((first_old, first_new)), Some((last_old, last_new))) = (hunk.first(), hunk.last())
    else {
        return;
    };
    let before = first_old.start.min(CONTEXT);
    let start = first_old.start.saturating_sub(before);
    let stop = last_old.end.saturating_add(CONTEXT).min(old.len());
    let new_start = first_new.start.saturating_sub(before);
    let new_stop = last_new
        .end
        .saturating_add(stop.saturating_sub(last_old.end));
    let range = |start: usize, stop: usize| {
        let n = stop.saturating_sub(start);
        // An empty range is told by the line before it.
        format!(
            "{},{n}",
            if n == 0 {
                start
            } else {
                start.saturating_add(1)
            }
        )
    };
    let _ = writeln!(
        out,
        "@@ -{} +{} @@",
        range(start, stop),
        range(new_start, new_stop)
    );
    let mut lines = |sign: char, of: &[&str], range: Range<usize>| {
        for line in of.get(range).unwrap_or_default() {
            let _ = writeln!(out, "{sign}{line}");
        }
    };
    let mut at = start;
    for (of_old, of_new) in hunk {
        lines(' ', old, at..of_old.start);
        lines('-', old, of_old.clone());
        lines('+', new, of_new.clone());
        at = of_old.end;
    }
    lines(' ', old, at..stop);
}

/// The changes between two texts, in order.
fn changes(old: &[&str], new: &[&str]) -> Vec<Change> {
    let begin = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let rest = |of: &[&str]| of.len().saturating_sub(begin);
    let from_end = old.iter().rev().zip(new.iter().rev());
    let end = from_end.take_while(|(a, b)| a == b).count();
    let end = end.min(rest(old)).min(rest(new));
    let stops = (old.len().saturating_sub(end), new.len().saturating_sub(end));
    let middle_old = old.get(begin..stops.0).unwrap_or_default();
    let middle_new = new.get(begin..stops.1).unwrap_or_default();
    let mut changes: Vec<Change> = Vec::new();
    let (mut at_old, mut at_new) = (begin, begin);
    let mut add = |of_old: Range<usize>, of_new: Range<usize>| {
        if !of_old.is_empty() || !of_new.is_empty() {
            changes.push((of_old, of_new));
        }
    };
    for (nth_old, nth_new) in common(middle_old, middle_new) {
        let (nth_old, nth_new) = (begin.saturating_add(nth_old), begin.saturating_add(nth_new));
        add(at_old..nth_old, at_new..nth_new);
        (at_old, at_new) = (nth_old.saturating_add(1), nth_new.saturating_add(1));
    }
    add(at_old..stops.0, at_new..stops.1);
    changes
}

/// The longest series of lines that both texts have, by their places in each.
fn common(old: &[&str], new: &[&str]) -> Vec<(usize, usize)> {
    let width = new.len().saturating_add(1);
    let size = old.len().saturating_add(1).saturating_mul(width);
    if size > MAX_PAIRS {
        return Vec::new();
    }
    // How many lines the texts have in common from a pair of lines on.
    let mut lengths = vec![0_u32; size];
    let at = |i: usize, j: usize| i.saturating_mul(width).saturating_add(j);
    let of = |lengths: &[u32], i: usize, j: usize| lengths.get(at(i, j)).copied().unwrap_or(0);
    for (i, line) in old.iter().enumerate().rev() {
        for (j, other) in new.iter().enumerate().rev() {
            let length = if line == other {
                of(&lengths, i.saturating_add(1), j.saturating_add(1)).saturating_add(1)
            } else {
                let one = of(&lengths, i.saturating_add(1), j);
                one.max(of(&lengths, i, j.saturating_add(1)))
            };
            if let Some(slot) = lengths.get_mut(at(i, j)) {
                *slot = length;
            }
        }
    }
    let mut found = Vec::new();
    let (mut i, mut j) = (0, 0);
    while let (Some(line), Some(other)) = (old.get(i), new.get(j)) {
        if line == other {
            found.push((i, j));
            (i, j) = (i.saturating_add(1), j.saturating_add(1));
        } else if of(&lengths, i.saturating_add(1), j) >= of(&lengths, i, j.saturating_add(1)) {
            i = i.saturating_add(1);
        } else {
            j = j.saturating_add(1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(of_texts(("a", "b"), old, new), expected);
    }

    #[test]
    fn changed_lines_stand_with_those_around_them() {
        check("a\n", "a\n", "");
        check("", "a\n", "--- a\n+++ b\n@@ -0,0 +1,1 @@\n+a\n");
        check("a\n", "", "--- a\n+++ b\n@@ -1,1 +0,0 @@\n-a\n");
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n",
            "1\n2\n3\n4\nx\n6\n7\n8\n",
            "--- a\n+++ b\n@@ -2,7 +2,7 @@\n 2\n 3\n 4\n-5\n+x\n 6\n 7\n 8\n",
        );
        check(
            "1\n2\n3\n4\n5\n6\n7\n8\n9\n",
            "0\n1\n2\n3\n4\n5\n6\n7\n8\n",
            "--- a\n+++ b\n@@ -1,3 +1,4 @@\n+0\n 1\n 2\n 3\n@@ -6,4 +7,3 @@\n 6\n 7\n 8\n-9\n",
        );
        check(
            "a\nb\nc\nd\n",
            "b\nx\nc\n",
            "--- a\n+++ b\n@@ -1,4 +1,3 @@\n-a\n b\n+x\n c\n-d\n",
        );
    }

    #[test]
    fn long_texts_are_bounded() {
        let lines = |numbers: Vec<u32>| {
            numbers
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        };
        let old = lines((0..3_000).collect());
        let new = lines((0..3_000).map(|n| n * 2 + 1).collect());
        let diff = of_texts(("a", "b"), &old, &new);
        assert_eq!(
            diff.lines().filter(|line| line.starts_with('-')).count(),
            3_001
        );
    }
}
