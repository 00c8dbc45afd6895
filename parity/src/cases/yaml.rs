//! Generates YAML streams from a seed: existing streams, random values in all styles, and mutants of both.

use std::fmt::Write as _;

use super::yaml_pieces::{PIECES, SCALARS, WORDS};
use crate::random::Random;

/// The existing YAML streams, from which others are generated.
#[derive(Clone, Debug)]
pub struct Source {
    texts: Vec<String>,
}

/// The line that separates the streams in a file.
const BETWEEN: &str = "=====\n";

/// The maximum number of lines taken from a stream.
const MAX_LINES: u64 = 40;

impl Source {
    /// Collects the streams in `files`. A file is one stream, or several short streams that are separated by lines of
    /// `=====`.
    #[must_use]
    pub fn new(files: &[String]) -> Self {
        let texts = files.iter().flat_map(|file| file.split(BETWEEN));
        Self {
            texts: texts.map(str::to_owned).collect(),
        }
    }

    /// Returns the `n`th stream. The first streams are the existing ones without changes.
    #[must_use]
    pub fn text(&self, seed: u64, n: u64) -> String {
        let as_it_is = usize::try_from(n).ok().and_then(|n| self.texts.get(n));
        if let Some(text) = as_it_is {
            return text.clone();
        }
        let mut random = Random::for_event(seed, "yaml", n);
        let mut text = match random.below(10) {
            0..=3 => self.part(&mut random),
            4 => format!("{}---\n{}", built(&mut random), self.part(&mut random)),
            _ => built(&mut random),
        };
        match random.below(400) {
            0 => text.push_str(&long_key(&mut random)),
            1 => text.push_str(&many_aliases(&mut random)),
            _ => {}
        }
        let n_changes = [0, 0, 1, 1, 1, 2, 3, 5];
        let n_changes = random.choose(&n_changes).copied().unwrap_or(1);
        for _ in 0..n_changes {
            change(&mut text, &mut random);
        }
        text
    }

    fn part(&self, random: &mut Random) -> String {
        let Some(text) = random.choose(&self.texts) else {
            return String::new();
        };
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        let n_lines = u64::try_from(lines.len()).unwrap_or(u64::MAX);
        if n_lines <= MAX_LINES / 2 {
            return text.clone();
        }
        let first = index(random.below(n_lines));
        let count = index(random.below(MAX_LINES) + 1);
        lines.into_iter().skip(first).take(count).collect()
    }
}

/// Generates an entry whose key has about the maximum length of a YAML key.
fn long_key(random: &mut Random) -> String {
    let shapes = [
        "@: a\n",
        "'@': a\n",
        "{@: a}\n",
        "[@]: a\n",
        "? @\n: a\n",
        "{'@' : a}\n",
    ];
    let shape = random.choose(&shapes).unwrap_or(&"@: a\n");
    let key = random.choose(&["k", "é"]).unwrap_or(&"k");
    shape.replace('@', &key.repeat(index(1015 + random.below(15))))
}

/// Generates lists whose items are aliases of other lists. The number of aliases is about the maximum that parsers
/// accept.
fn many_aliases(random: &mut Random) -> String {
    let n_items = index(random.below(120) + 1);
    let n_aliases = index(random.below(120) + 1);
    let shape = random.choose(&["- &m [@]\n- [#]\n", "p: &m {r: [@]}\nq: [#]\ns: {<<: *m}\n"]);
    let items = vec!["x"; n_items].join(", ");
    let aliases = vec!["*m"; n_aliases].join(", ");
    let shape = shape.unwrap_or(&"[@]\n");
    shape.replace('@', &items).replace('#', &aliases)
}

fn index(n: u64) -> usize {
    usize::try_from(n).unwrap_or(usize::MAX)
}

/// Generates a stream with a random value in random styles.
fn built(random: &mut Random) -> String {
    let mut text = String::new();
    match random.below(20) {
        0 => text.push_str("---\n"),
        1 => text.push_str("--- # c\n"),
        2 => text.push_str("# c\n\n"),
        3 => text.push_str("%YAML 1.1\n---\n"),
        4 => text.push('\u{feff}'),
        _ => {}
    }
    node(&mut text, random, 0, 0, false);
    if random.permille(900) && !text.ends_with('\n') {
        text.push('\n');
    }
    match random.below(20) {
        0 => text.push_str("...\n"),
        1 => text.push_str("---\n"),
        2 => text.push_str("# c"),
        3 => text = text.replace('\n', "\r\n"),
        _ => {}
    }
    text
}

/// Writes a node on the current line. Its continuation lines are indented by more than `indent`.
fn node(text: &mut String, random: &mut Random, indent: usize, depth: usize, is_value: bool) {
    if random.permille(60) {
        text.push_str(
            random
                .choose(&["&a ", "!!str ", "!!map ", "! ", "&b !t ", "!!int ", "&c "])
                .unwrap_or(&""),
        );
    }
    let n_items = random.below(4);
    let deeper = indent + index(random.below(3)) + usize::from(depth > 0);
    match random.below(if depth > 4 { 5 } else { 10 }) {
        0..=2 => text.push_str(random.choose(SCALARS).unwrap_or(&"a")),
        3 => block_scalar(text, random, indent),
        4 => quoted(text, random, indent),
        5 | 6 => {
            let deeper = if random.permille(300) { indent } else { deeper };
            begin_lines(text, is_value);
            for _ in 0..=n_items {
                pad(text, deeper);
                text.push_str("- ");
                node(text, random, deeper + 2, depth + 1, false);
                end_line(text, random);
            }
        }
        _ => {
            begin_lines(text, is_value);
            for n in 0..=n_items {
                if n > 0 || is_value {
                    pad(text, deeper);
                }
                let is_odd = random.permille(200);
                match random.below(20) {
                    0 => text.push_str("<<: *a"),
                    1 => text.push_str("<<: {k: v}"),
                    2 => {
                        text.push_str("? ");
                        node(text, random, deeper + 2, depth + 1, false);
                        end_line(text, random);
                        pad(text, deeper);
                        text.push_str(": ");
                        node(text, random, deeper, depth + 1, true);
                    }
                    _ => {
                        if is_odd {
                            text.push_str(random.choose(SCALARS).unwrap_or(&"a"));
                        } else {
                            let _ = write!(text, "k{}", random.below(4));
                        }
                        text.push_str(
                            random
                                .choose(&[": ", ": ", ": ", ":", ":  ", ":\t", " : "])
                                .unwrap_or(&": "),
                        );
                        node(text, random, deeper, depth + 1, true);
                    }
                }
                end_line(text, random);
            }
        }
    }
}

fn pad(text: &mut String, n: usize) {
    if text.ends_with('\n') || text.is_empty() {
        text.extend(std::iter::repeat_n(' ', n));
    }
}

fn begin_lines(text: &mut String, is_value: bool) {
    if is_value {
        text.push('\n');
    }
}

fn end_line(text: &mut String, random: &mut Random) {
    if random.permille(60) {
        text.push_str(" # c");
    }
    if !text.ends_with('\n') {
        text.push('\n');
    }
}

fn block_scalar(text: &mut String, random: &mut Random, indent: usize) {
    text.push_str(
        random
            .choose(&[
                "|", ">", "|-", ">-", "|+", ">+", "|1", ">2", "|2-", ">+1", "| # c",
            ])
            .unwrap_or(&"|"),
    );
    text.push('\n');
    let column = indent + 1 + index(random.below(3));
    for _ in 0..random.below(6) {
        let n = if random.permille(150) {
            column.saturating_sub(1)
        } else {
            column
        };
        pad(text, n + index(random.below(5) / 4));
        text.push_str(random.choose(WORDS).unwrap_or(&"a"));
        text.push('\n');
    }
}

fn quoted(text: &mut String, random: &mut Random, indent: usize) {
    let mark = if random.permille(500) { '\'' } else { '"' };
    text.push(mark);
    for _ in 0..random.below(6) {
        match random.below(8) {
            0 => {
                text.push('\n');
                pad(text, index(random.below(3)) * indent);
            }
            1 if mark == '"' => text.push_str(
                random
                    .choose(&[
                        "\\n", "\\\"", "\\\\", "\\\n", "\\ ", "\\t", "\\u00e9", "\\x41",
                    ])
                    .unwrap_or(&""),
            ),
            1 => text.push_str("''"),
            2 => text.push(' '),
            _ => {
                let word = random.choose(WORDS).unwrap_or(&"a");
                text.push_str(&word.replace([mark, '\\'], ""));
            }
        }
    }
    text.push(mark);
}

fn change(text: &mut String, random: &mut Random) {
    let places: Vec<_> = text
        .char_indices()
        .map(|(at, _)| at)
        .chain([text.len()])
        .collect();
    let any = |random: &mut Random| random.choose(&places).copied().unwrap_or(0);
    let mut lines: Vec<String> = text.split_inclusive('\n').map(str::to_owned).collect();
    let n_lines = u64::try_from(lines.len()).unwrap_or(0);
    let line = index(random.below(n_lines));
    match random.below(12) {
        0..=3 => text.insert_str(any(random), random.choose(PIECES).unwrap_or(&" ")),
        4 => {
            let start = any(random);
            let n = index(random.below(4) + 1);
            let end = places.iter().copied().filter(|at| *at > start).nth(n - 1);
            text.replace_range(start..end.unwrap_or(text.len()), "");
        }
        5 => text.insert_str(any(random), random.choose(SCALARS).unwrap_or(&"a")),
        6 if n_lines > 0 => {
            let copy = lines.get(line).cloned().unwrap_or_default();
            lines.insert(index(random.below(n_lines)), copy);
            *text = lines.concat();
        }
        7 if n_lines > 0 => {
            let other = index(random.below(n_lines));
            lines.swap(line, other);
            *text = lines.concat();
        }
        8 | 9 if n_lines > 0 => {
            if let Some(line) = lines.get_mut(line) {
                match random.below(4) {
                    0 => line.insert(0, ' '),
                    1 => line.insert_str(0, "  "),
                    2 => line.insert(0, '\t'),
                    _ => *line = line.strip_prefix(' ').unwrap_or(line).to_owned(),
                }
            }
            *text = lines.concat();
        }
        10 if n_lines > 0 => {
            if let Some(line) = lines.get_mut(line) {
                *line = match random.below(3) {
                    0 => line.trim_end().to_owned(),
                    1 => line.replace('\n', "\r\n"),
                    _ => line.replace('\n', " # c\n"),
                };
            }
            *text = lines.concat();
        }
        _ => {
            let start = any(random);
            let end = places
                .iter()
                .copied()
                .filter(|at| *at > start)
                .nth(index(random.below(6)));
            let part = text
                .get(start..end.unwrap_or(text.len()))
                .unwrap_or_default()
                .to_owned();
            text.insert_str(any(random), &part);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yaml_streams_of_same_seed_are_equal() {
        let source = Source::new(&["a: 1\n=====\nb: 2\n".to_owned()]);
        assert_eq!(source.text(1, 0), "a: 1\n");
        assert_eq!(source.text(7, 1), "b: 2\n");
        let texts = |seed| (2..50).map(|n| source.text(seed, n)).collect::<Vec<_>>();
        assert_eq!(texts(1), texts(1));
        assert_ne!(texts(1), texts(2));
    }
}
