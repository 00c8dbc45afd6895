//! Finds control comments (`# MARK …`), and the part of the document to which each of them applies.
//!
//! Text inside a scalar is never a comment.

use std::ops::Range;

use super::parse::{Content, Nodes};
use super::{BYTE_ORDER_MARK, Style, cursor, parse};

/// A comment that begins with the mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Comment {
    /// The span of the comment, starting at `#`.
    pub span: Range<usize>,
    /// The part of the document to which the comment applies.
    pub about: About,
}

/// The part of a document to which a comment applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum About {
    /// The whole document, because the comment precedes it.
    Document,
    /// The part with this span.
    Bytes(Range<usize>),
    /// No part of the document, because none follows the comment.
    Nothing,
}

/// Returns the comments that begin with `mark` in the first document of a YAML stream.
///
/// The boolean is true if there is a document. For invalid YAML, returns no comments and false.
#[must_use]
pub fn comments(text: &str, mark: &str) -> (Vec<Comment>, bool) {
    let start = if text.starts_with(BYTE_ORDER_MARK) {
        BYTE_ORDER_MARK.len_utf8()
    } else {
        0
    };
    // As in go-yaml, the input ends at the first forbidden character.
    let end = cursor::forbidden(text).map_or(text.len(), |(offset, _)| offset);
    let mut text = text.get(..end).unwrap_or_default().to_owned();
    if !text.ends_with('\n') {
        text.push('\n');
    }
    let Ok((document, spans)) = parse::document_with_comments(&text, start, mark) else {
        return (Vec::new(), false);
    };
    let Some((nodes, root)) = document else {
        let about = |span| Comment {
            span,
            about: About::Document,
        };
        return (spans.into_iter().map(about).collect(), false);
    };
    let parts = Parts::new(&nodes);
    let root = nodes.get(root).map_or(0, |root| root.span.start);
    let about = |span: Range<usize>| Comment {
        about: if span.start < root {
            About::Document
        } else {
            parts.about(&text, &span)
        },
        span,
    };
    (spans.into_iter().map(about).collect(), true)
}

/// The parts of a document to which a comment may apply. Each list is in source order.
struct Parts {
    /// Spans of list items and map entries. Spans with the same start are ordered from largest to smallest.
    named: Vec<Range<usize>>,
    /// Spans of scalars. The boolean is true for block scalars.
    scalars: Vec<(Range<usize>, bool)>,
    /// Starts of keys, and the spans of their values.
    values: Vec<(usize, Range<usize>)>,
}

impl Parts {
    fn new(nodes: &Nodes) -> Self {
        let mut parts = Self {
            named: Vec::new(),
            scalars: Vec::new(),
            values: Vec::new(),
        };
        let span = |id: usize| nodes.get(id).map_or(0..0, |node| node.span.clone());
        for node in nodes {
            match &node.content {
                Content::Scalar { style, .. } => {
                    let is_block = matches!(style, Style::Literal { .. } | Style::Folded { .. });
                    parts.scalars.push((node.span.clone(), is_block));
                }
                Content::List(items) => parts.named.extend(items.iter().map(|item| span(*item))),
                Content::Map(entries) => {
                    for (key, value) in entries {
                        let (key, value) = (span(*key), span(*value));
                        // An omitted value has an empty span, which is located at the next token.
                        let end = if value.is_empty() { key.end } else { value.end };
                        parts.named.push(key.start..end.max(key.end));
                        if !value.is_empty() {
                            parts.values.push((key.start, value));
                        }
                    }
                }
                Content::Alias(_) => {}
            }
        }
        parts
            .named
            .sort_by_key(|part| (part.start, std::cmp::Reverse(part.end)));
        parts.scalars.sort_by_key(|(part, _)| part.start);
        parts.values.sort_by_key(|(key, _)| *key);
        parts
    }

    fn next(&self, offset: usize) -> Option<&Range<usize>> {
        let n = self.named.partition_point(|part| part.start <= offset);
        self.named.get(n)
    }

    fn about(&self, text: &str, comment: &Range<usize>) -> About {
        let before = text.get(..comment.start).unwrap_or_default();
        let line = before.rfind('\n').map_or(0, |offset| offset + 1);
        let before = before.get(line..).unwrap_or_default().trim_end();
        if before.trim_start().is_empty() {
            return match self.next(comment.end) {
                Some(part) => About::Bytes(part.clone()),
                None => About::Nothing,
            };
        }
        let mut about = line..comment.end;
        // If the comment is on the line of a key, before the key's value, it applies to the key and the value.
        let first = self.values.partition_point(|(key, _)| *key < line);
        for (key, value) in self.values.iter().skip(first) {
            if *key > comment.start {
                break;
            }
            if value.start > comment.start {
                about.end = about.end.max(value.end);
            }
        }
        // If a multi-line scalar covers a part of the comment's line, the comment applies to the whole scalar.
        let first = self.scalars.partition_point(|(part, _)| part.end <= line);
        for (part, _) in self.scalars.iter().skip(first) {
            if part.start > comment.start {
                break;
            }
            about.start = about.start.min(part.start);
            about.end = about.end.max(part.end);
        }
        // If the comment follows `-` or the header of an item's block scalar, it applies to the whole item.
        let n = self
            .scalars
            .partition_point(|(part, _)| part.start <= comment.end);
        let is_block = |part: &Range<usize>| {
            let next = self.scalars.get(n);
            next.is_some_and(|(scalar, is_block)| *is_block && scalar.start == part.start)
        };
        if let Some(part) = self.next(comment.end)
            && (before.ends_with('-') || is_block(part))
            && text
                .get(comment.end..part.start)
                .is_some_and(|gap| gap.trim().is_empty())
        {
            about.end = about.end.max(part.end);
        }
        About::Bytes(about)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MARK: &str = "vap:";

    /// Asserts that the comments of `text` apply to the line ranges `expected`. Lines start at 1.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let (actual, _) = comments(text, MARK);
        let line = |offset: usize| text.get(..offset).unwrap().matches('\n').count() + 1;
        let actual: Vec<String> = actual
            .iter()
            .map(|comment| match &comment.about {
                About::Document => "document".to_owned(),
                About::Nothing => "nothing".to_owned(),
                About::Bytes(bytes) => format!("{}-{}", line(bytes.start), line(bytes.end)),
            })
            .collect();
        assert_eq!(actual, expected, "{text}");
    }

    #[test]
    fn comments_on_own_line_apply_to_next_part() {
        check("a: 1\n# vap: x\nb:\n  c: 1\n  d: 2\ne: 3\n", &["3-5"]);
        check("a:\n  # vap: x\n  b: 1\n  c: 2\n", &["3-3"]);
        check(
            "a:\n# vap: x\n- b: 1\n  c: |\n    2\n    3\n- d: 2\n",
            &["3-6"],
        );
        check("a:\n-\n  # vap: x\n  b: 1\n  c: 2\n", &["4-5"]);
        check(
            "a: 0\n# vap: x\n\n# other\n# vap: y\nb: 1\nc: 2",
            &["6-6", "6-6"],
        );
        check("a: [\n  # vap: x\n  {b: 1,\n   c: 2}, d]", &["3-4"]);
        check("a: 0\n# vap: x\nb: &x\n  c: 1\nd: *x\n", &["3-4"]);
        check("a: 1\n# vap: x\n", &["nothing"]);
        check("a:\n  b:\n# vap: x\n  c:\n  d: 1", &["4-4"]);
    }

    #[test]
    fn comments_before_document_apply_to_document() {
        check("# vap: x\na: 1\nb: 2", &["document"]);
        check("#vap:x\n\n- a\n- b", &["document"]);
        check("# vap: x", &["document"]);
        assert!(!comments("# vap: x", MARK).1 && comments("a: 1", MARK).1);
    }

    #[test]
    fn comments_at_end_of_line_apply_to_line_and_its_scalars() {
        check("a: 1\nb: 2 # vap: x\nc: 3", &["2-2"]);
        check("a: |  # vap: x\n  b\n  c\nd: 1", &["1-3"]);
        check("a: >-  # vap: x\n\n  b\n  c\nd: 1", &["1-4"]);
        check("- |  # vap: x\n  b\n  c\n- 1", &["1-3"]);
        check("a:  # vap: x\n  b: 1\n  c: 2\nd: 1", &["1-3"]);
        check("-  # vap: x\n  b: 1\n  c: 2\n- 1", &["1-3"]);
        check("a: b\n  c\n  d # vap: x\ne: 1", &["1-3"]);
        check("a: 'b\n  c'  # vap: x\ne: 1", &["1-2"]);
        check("a: {b: 1, # vap: x\n  c: 2}", &["1-1"]);
        check("a: [b, # vap: x\n  c]", &["1-1"]);
        check("a: 1 # vap: x\r\nb: 2\r\n", &["1-1"]);
    }

    #[test]
    fn comments_within_scalars_are_text() {
        check(
            "a: |\n  # vap: x\n  b\nc: 'x # vap: x'\nd: \"\n  # vap: x\"",
            &[],
        );
        check(
            "a: b# vap: x\nc: object.x // vap: x\n# note of vap: x\n",
            &[],
        );
        check("a: [\n# vap: x", &[]);
    }
}
