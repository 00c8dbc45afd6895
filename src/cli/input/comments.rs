//! Finds directive comments in files, `# vap: …`, and the lines to which they apply.

use std::ops::RangeInclusive;
use std::sync::Arc;

use goyaml::About;

use super::object::yaml_documents;
use super::place::{Place, SourceText};

/// The prefix of a directive comment.
const MARK: &str = "vap:";

/// Maximum number of directive comments per file. One more is read, so that the excess can be reported.
pub const MAX_COMMENTS: usize = 1_000;

/// A directive comment.
#[derive(Clone, Debug)]
pub struct Comment {
    /// The file that contains the comment.
    pub source: Arc<SourceText>,
    /// The location of its `#`.
    pub place: Place,
    /// The length in code points.
    pub length: usize,
    /// The content after `vap:`.
    pub words: String,
    /// The lines to which the comment applies, from 1; empty if there are none.
    pub lines: RangeInclusive<usize>,
}

/// Returns the directive comments of a file.
#[must_use]
pub fn comments(source: &Arc<SourceText>) -> Vec<Comment> {
    let mut directives = Vec::new();
    // Fast path: few files have directive comments.
    if !source.text().contains(MARK) {
        return directives;
    }
    // The index in `directives` of the first comment after the previous document. Such comments apply to the whole next
    // document.
    let mut open = 0;
    for bytes in yaml_documents(source) {
        let text = source.text().get(bytes.clone()).unwrap_or_default();
        let (of_document, has_document) = goyaml::comments(text, MARK);
        let line = |at: usize| source.place(bytes.start + at).line;
        let whole = line(0)..=line(text.trim_end().len());
        if has_document {
            for comment in directives.iter_mut().skip(open) {
                let comment: &mut Comment = comment;
                comment.lines = whole.clone();
            }
        }
        for comment in of_document {
            if directives.len() > MAX_COMMENTS {
                return directives;
            }
            let raw = text.get(comment.span.clone()).unwrap_or_default();
            let lines = match &comment.about {
                About::Document if has_document => whole.clone(),
                About::Bytes(part) => line(part.start)..=line(part.end),
                #[expect(clippy::reversed_empty_ranges, reason = "no lines")]
                About::Document | About::Nothing => 1..=0,
            };
            directives.push(Comment {
                source: Arc::clone(source),
                place: source.place(bytes.start + comment.span.start),
                length: raw.chars().count(),
                words: goyaml::after_mark(raw, MARK).unwrap_or_default().to_owned(),
                lines,
            });
        }
        if has_document {
            open = directives.len();
        }
    }
    directives
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, wanted: &[(&str, usize, RangeInclusive<usize>)]) {
        let source = Arc::new(SourceText::new("f".to_owned(), text.to_owned()));
        let directives = comments(&source);
        let directives: Vec<_> = directives
            .iter()
            .map(|it| (it.words.as_str(), it.place.line, it.lines.clone()))
            .collect();
        assert_eq!(directives, wanted, "{text}");
    }

    #[test]
    fn comments_of_each_document_have_line_numbers_in_file() {
        check(
            "# vap: a\na: 1\nb: 2\n---\nc: 1\n# vap: b  \nd:\n  e: 1\n---\nf: 1 #vap:c",
            &[("a", 1, 1..=3), ("b", 6, 7..=8), ("c", 10, 10..=10)],
        );
        check("{\"a\": \"# vap: x\"}", &[]);
        check(
            "a: 1\n---\nb: [\n# vap: x\n---\nc: 1 # vap: y",
            &[("y", 6, 6..=6)],
        );
    }

    #[test]
    fn comments_before_separator_apply_to_next_document() {
        check("# vap: a\n---\na: 1\nb: 2\n", &[("a", 1, 3..=4)]);
        let empty = RangeInclusive::new(1, 0);
        check("a: 1\n# vap: a\n---\nb: 2", &[("a", 2, empty)]);
    }
}
