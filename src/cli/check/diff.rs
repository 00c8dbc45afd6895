//! The difference that edits make to a text, as a unified diff.

use std::fmt::Write as _;
use std::ops::Range;

use crate::cli::input::edit::{Edit, applied};

/// The unchanged lines around a change.
const CONTEXT: usize = 3;

/// A change of lines, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Change {
    old: Range<usize>,
    /// How many lines there are in place of them.
    n_new: usize,
}

/// The unified diff of a file of the name `name` with the text `old`; `edits` are sorted and apart from each other.
#[must_use]
pub(super) fn unified(name: &str, old: &str, edits: &[Edit]) -> String {
    let Some(new) = applied(old, edits) else {
        return String::new();
    };
    let old_lines: Vec<&str> = old.split_inclusive('\n').collect();
    let new_lines: Vec<&str> = new.split_inclusive('\n').collect();
    let mut out = format!("--- {name}\n+++ {name}\n");
    // How many lines there are more in the new text, before what comes.
    let (mut n_more, mut n_less) = (0, 0);
    let changes = changes(old, edits);
    let mut changes = changes.iter().peekable();
    while let Some(first) = changes.next() {
        let mut hunk = vec![first];
        let mut end = first.old.end;
        while let Some(next) = changes.next_if(|next| next.old.start <= end + 2 * CONTEXT) {
            end = next.old.end;
            hunk.push(next);
        }
        let start = first.old.start.saturating_sub(CONTEXT);
        let stop = (end + CONTEXT).min(old_lines.len());
        let mut body = String::new();
        let mut at = start;
        let mut n_new = stop - start;
        let new_start = start + n_more - n_less;
        for change in hunk {
            lines(&mut body, ' ', &old_lines, at..change.old.start);
            lines(&mut body, '-', &old_lines, change.old.clone());
            let from = change.old.start + n_more - n_less;
            lines(&mut body, '+', &new_lines, from..from + change.n_new);
            n_more += change.n_new;
            n_less += change.old.len();
            n_new = n_new + change.n_new - change.old.len();
            at = change.old.end;
        }
        lines(&mut body, ' ', &old_lines, at..stop);
        let _ = writeln!(
            out,
            "@@ -{},{} +{},{n_new} @@",
            start + 1,
            stop - start,
            new_start + 1
        );
        out.push_str(&body);
    }
    out
}

fn lines(out: &mut String, sign: char, lines: &[&str], range: Range<usize>) {
    for line in lines.get(range).unwrap_or_default() {
        out.push(sign);
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push_str("\n\\ No newline at end of file\n");
        }
    }
}

/// The lines that edits change, sorted, those that touch each other as one.
fn changes(old: &str, edits: &[Edit]) -> Vec<Change> {
    let n_breaks = |text: &str| text.matches('\n').count();
    let mut changes: Vec<Change> = Vec::new();
    let (mut at, mut line) = (0, 0);
    for edit in edits {
        line += n_breaks(old.get(at..edit.bytes.start).unwrap_or_default());
        let first = line;
        let n_within = n_breaks(old.get(edit.bytes.clone()).unwrap_or_default());
        line += n_within;
        at = edit.bytes.end;
        let n_new = n_breaks(&edit.text) + 1;
        match changes.last_mut() {
            // The line on which the last one ends.
            Some(last) if last.old.end > first => {
                last.n_new += n_new - 1;
                last.old.end = line + 1;
            }
            Some(last) if last.old.end == first => {
                last.n_new += n_new;
                last.old.end = line + 1;
            }
            _ => changes.push(Change {
                old: first..line + 1,
                n_new,
            }),
        }
    }
    changes
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cli::input::SourceText;

    /// Checks the diff of a text in which each of `words` becomes another one.
    #[track_caller]
    fn check(old: &str, words: &[(&str, &str)], wanted: &str) {
        let source = Arc::new(SourceText::new("f".to_owned(), old.to_owned()));
        let edits: Vec<Edit> = words
            .iter()
            .map(|(word, new)| {
                let at = old.find(word).unwrap();
                Edit::of_bytes(&source, at..at + word.len(), *new)
            })
            .collect();
        assert_eq!(unified("f", old, &edits), wanted);
    }

    #[test]
    fn lines_that_change_are_shown_with_those_around() {
        check(
            "a\nb\nc\n",
            &[("b", "x")],
            "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n",
        );
        check(
            "a\nb c\nd",
            &[("b", "x"), ("c", "y"), ("d", "z")],
            "--- f\n+++ f\n@@ -1,3 +1,3 @@\n a\n-b c\n-d\n\\ No newline at end of file\n+x y\n+z\n\\ No newline at end of file\n",
        );
        check(
            "1\n2\n3\n4\n5\n6 \\\n7\n8\n9\n10\n11\n12\n13\n14\n15\n",
            &[("2", "x"), ("6 \\\n7", "y"), ("15", "z")],
            "--- f\n+++ f\n@@ -1,10 +1,9 @@\n 1\n-2\n+x\n 3\n 4\n 5\n-6 \\\n-7\n+y\n 8\n 9\n 10\n\
             @@ -12,4 +11,4 @@\n 12\n 13\n 14\n-15\n+z\n",
        );
    }
}
