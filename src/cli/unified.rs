//! Computes unified diffs of two strings, and of two objects as YAML.

use std::fmt::Write as _;
use std::ops::Range;

use serde_json::Value;
use similar::{Algorithm, DiffTag, capture_diff_slices, group_diff_ops};

use super::yaml_text;

/// The number of unchanged lines before and after a change.
const CONTEXT: usize = 3;

/// Returns the unified diff of two objects as YAML, without `managedFields`. The diff of equal objects is empty.
#[must_use]
pub(in crate::cli) fn from_objects(names: (&str, &str), old: &Value, new: &Value) -> String {
    from_texts(names, &yaml(old), &yaml(new))
}

/// Returns an object as YAML, without `managedFields`.
pub(in crate::cli) fn yaml(object: &Value) -> String {
    let mut object = object.clone();
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("managedFields");
    }
    if object.is_null() {
        return String::new();
    }
    yaml_text::to_string(&object).unwrap_or_else(|_| object.to_string())
}

/// Returns the unified diff of two strings. The diff of equal strings is empty.
#[must_use]
pub(in crate::cli) fn from_texts(names: (&str, &str), old: &str, new: &str) -> String {
    if old == new {
        return String::new();
    }
    let lines = |text| str::split_inclusive(text, '\n').collect::<Vec<_>>();
    let (old, new) = (lines(old), lines(new));
    let operations = capture_diff_slices(Algorithm::Myers, &old, &new);
    let mut out = format!("--- {}\n+++ {}\n", names.0, names.1);
    for hunk in group_diff_ops(operations, CONTEXT) {
        let (Some(first), Some(last)) = (hunk.first(), hunk.last()) else {
            continue;
        };
        let old_range = range(first.old_range().start..last.old_range().end);
        let new_range = range(first.new_range().start..last.new_range().end);
        let _ = writeln!(out, "@@ -{old_range} +{new_range} @@");
        for operation in &hunk {
            let (tag, of_old, of_new) = operation.as_tag_tuple();
            if tag == DiffTag::Equal {
                write_lines(&mut out, ' ', old.get(of_old));
            } else {
                write_lines(&mut out, '-', old.get(of_old));
                write_lines(&mut out, '+', new.get(of_new));
            }
        }
    }
    out
}

/// Formats a range of lines for the header of a hunk: the first line, and the number of lines. An empty range shows the
/// number of the line before it.
fn range(lines: Range<usize>) -> String {
    let first = lines.start.saturating_add(usize::from(!lines.is_empty()));
    format!("{first},{}", lines.len())
}

fn write_lines(out: &mut String, sign: char, lines: Option<&[&str]>) {
    for line in lines.unwrap_or_default() {
        let _ = write!(out, "{sign}{line}");
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(old: &str, new: &str, expected: &str) {
        assert_eq!(from_texts(("a", "b"), old, new), expected);
    }

    #[test]
    fn unified_diff_shows_context_of_changed_lines() {
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
    fn unified_diff_marks_missing_newline() {
        check(
            "a\nb c\nd",
            "a\nx y\nz",
            "--- a\n+++ b\n@@ -1,3 +1,3 @@\n a\n-b c\n-d\n\\ No newline at end of file\n+x y\n+z\n\\ No newline at end of file\n",
        );
        check(
            "1\n2\n3\n4\n5\n6 \\\n7\n8\n9\n10\n11\n12\n13\n14\n15\n",
            "1\nx\n3\n4\n5\ny\n8\n9\n10\n11\n12\n13\n14\nz\n",
            "--- a\n+++ b\n@@ -1,10 +1,9 @@\n 1\n-2\n+x\n 3\n 4\n 5\n-6 \\\n-7\n+y\n 8\n 9\n 10\n\
             @@ -12,4 +11,4 @@\n 12\n 13\n 14\n-15\n+z\n",
        );
    }
}
