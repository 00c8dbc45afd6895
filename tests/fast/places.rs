//! Tests the location of findings in all YAML styles: it must be exactly the wrong token. Expressions and styles are
//! generated from a seed.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fmt::Write as _;

use vap_status_controller::cli::check::finding::Owner;
use vap_status_controller::cli::input::Place;
use vap_status_controller::policy::rule::Rule;

use crate::manifest;
use crate::random::Random;

const POLICIES: usize = 40;
const VALIDATIONS: usize = 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
    FlowPlain,
    FlowSingle,
    FlowDouble,
}

const STYLES: [Style; 8] = [
    Style::Plain,
    Style::Single,
    Style::Double,
    Style::Literal,
    Style::Folded,
    Style::FlowPlain,
    Style::FlowSingle,
    Style::FlowDouble,
];

/// Generates an expression with one mistake. Returns the words of the expression, the offset of the wrong token in its
/// word, and the token.
fn expression(random: &mut Random) -> (Vec<String>, usize, &'static str) {
    const SOUND: [&str; 6] = [
        "object.metadata.name != 'é漢😀'",
        "object.metadata.name != \"q\"",
        "object.metadata.name.size() > 3",
        "!(object.metadata.name == '\\t\\\\')",
        "object.spec.replicas <= 50",
        "object.metadata.name != '#'",
    ];
    const WRONG: [(&str, &str); 4] = [
        ("object.spec.replicaz > 1", ".replicaz"),
        ("objekt.spec.replicas > 1", "objekt"),
        ("(object.spec.template.speck.nodeName) == 'é'", ".speck"),
        ("'é漢'.size() + object.spec.replikas > 2", ".replikas"),
    ];
    let n_parts = 1 + random.below(5);
    let wrong = random.below(n_parts);
    let (mistake, token) = WRONG[random.below(WRONG.len())];
    let mut words: Vec<String> = Vec::new();
    for n in 0..n_parts {
        if n > 0 {
            words.push(["&&", "||"][random.below(2)].to_owned());
        }
        let part = if n == wrong {
            mistake
        } else {
            SOUND[random.below(SOUND.len())]
        };
        // A plain scalar must not start with a quote. A `!` would start a tag.
        let part = if n == 0 && part.starts_with(['\'', '!']) {
            format!("({part})")
        } else {
            part.to_owned()
        };
        words.extend(part.split(' ').map(str::to_owned));
    }
    let holder = words.iter().position(|word| word.contains(token)).unwrap();
    (words, holder, token)
}

/// Writes the words as a scalar in one style. Returns the byte offset of the wrong token. The boolean is true if the
/// token contains no escapes.
fn write_scalar(
    text: &mut String,
    random: &mut Random,
    style: Style,
    (words, holder, token): &(Vec<String>, usize, &str),
) -> (usize, bool) {
    let is_block = matches!(style, Style::Literal | Style::Folded);
    let mark = match style {
        Style::Single | Style::FlowSingle => "'",
        Style::Double | Style::FlowDouble => "\"",
        _ => "",
    };
    let column = 6 + random.below(4);
    if is_block {
        text.push(if style == Style::Literal { '|' } else { '>' });
        // The indentation indicator is relative to the keys of the object, which are in column 4.
        if random.below(3) == 0 {
            write!(text, "{}", column - 4).unwrap();
        }
        text.push_str(["", "-", "+", " # why"][random.below(4)]);
        text.push_str(["\n", "\n\n", "\n   \n"][random.below(3)]);
        text.extend(std::iter::repeat_n(' ', column));
    }
    text.push_str(mark);
    let (mut at, mut is_plain) = (0, true);
    for (n, word) in words.iter().enumerate() {
        if n > 0 {
            separate(text, random, style, column);
        }
        let begin = word.find(token).filter(|_| n == *holder);
        for (offset, character) in word.char_indices() {
            let is_in_token =
                begin.is_some_and(|begin| (begin..begin + token.len()).contains(&offset));
            if begin == Some(offset) {
                at = text.len();
            }
            match character {
                '\'' if mark == "'" => text.push_str("''"),
                '"' | '\\' if mark == "\"" => {
                    text.push('\\');
                    text.push(character);
                }
                _ if mark == "\"" && random.below(20) == 0 => {
                    is_plain &= !is_in_token;
                    write!(text, "\\U{:08x}", u32::from(character)).unwrap();
                }
                other => text.push(other),
            }
        }
    }
    text.push_str(mark);
    (at, is_plain)
}

/// Writes a space, or white space that the style folds to a space.
fn separate(text: &mut String, random: &mut Random, style: Style, column: usize) {
    let pad = |n: usize| " ".repeat(n);
    let is_folded_here = random.below(4) == 0;
    if !is_folded_here {
        text.push(' ');
        return;
    }
    let anywhere = pad(random.below(9));
    let within = pad(5 + random.below(6));
    match style {
        Style::Plain | Style::FlowPlain => {
            text.push_str([" \n", "\n", "\n\n"][random.below(3)]);
            text.push_str(&within);
        }
        Style::Single | Style::FlowSingle => {
            text.push_str([" \n", "\n", "\n  \n", "\r\n"][random.below(4)]);
            text.push_str(&anywhere);
        }
        Style::Double | Style::FlowDouble => {
            text.push_str([" \\\n", "\n", "\n\n", "\\n", "\\t", " \\\n\n"][random.below(6)]);
            if text.ends_with('\n') {
                text.push_str(&anywhere);
            }
        }
        Style::Literal | Style::Folded => {
            text.push_str(["\n", " \n", "\n\n", "\n \n"][random.below(4)]);
            text.push_str(&pad(column + random.below(2) * random.below(3)));
        }
    }
}

#[test]
fn findings_have_location_of_wrong_token_in_all_styles() {
    let mut random = Random(17);
    let mut text = String::new();
    let mut wanted = Vec::new();
    for policy in 0..POLICIES {
        write!(
            text,
            "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
             metadata: {{name: p{policy}}}\nspec:\n  matchConstraints:\n    resourceRules:\n    \
             - {{apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}}\n  \
             validations:\n"
        )
        .unwrap();
        for n in 0..VALIDATIONS {
            let style = STYLES[random.below(STYLES.len())];
            let expression = expression(&mut random);
            let is_flow = matches!(
                style,
                Style::FlowPlain | Style::FlowSingle | Style::FlowDouble
            );
            text.push_str(if is_flow {
                "  - {expression: "
            } else {
                "  - expression: "
            });
            let (at, is_plain) = write_scalar(&mut text, &mut random, style, &expression);
            text.push_str(if is_flow { ", message: é}\n" } else { "\n" });
            wanted.push((policy, n, style, at, is_plain, expression.2));
        }
        text.push_str("---\n");
    }

    let report = manifest::report(&text, &[]);
    let mut styles = BTreeSet::new();
    for (policy, n, style, at, is_plain, token) in &wanted {
        let name = format!("p{policy}");
        let field_ref = format!("spec.validations[{n}].expression");
        let before = &text[..*at];
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        let exact = Place {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        };
        let written = &text[*at..];
        let line = written.lines().next().unwrap();
        // Skips findings of other rules or policies. Equal findings about one policy are merged, so `also` contains
        // further locations.
        let of_policy = report.findings.iter().filter(|finding| {
            matches!(
                finding.rule,
                Rule::UndefinedField | Rule::UndeclaredReference
            ) && finding.owner == Owner::Policy(name.clone())
        });
        let mut places = Vec::new();
        for finding in of_policy {
            if finding.field_ref.as_ref() == Some(&field_ref) {
                places.push(finding.location.place.unwrap());
                if *is_plain {
                    assert_eq!(finding.location.length, token.chars().count(), "{line:?}");
                }
            }
            let others = finding.also.iter();
            let others = others.filter(|other| other.field_ref.as_ref() == Some(&field_ref));
            places.extend(others.map(|other| Place {
                line: other.line,
                column: other.column,
            }));
        }
        assert_eq!(places, [exact], "{style:?}, {line:?}");
        if *is_plain {
            assert!(written.starts_with(token), "{style:?}, {line:?}");
        }
        styles.insert(*style);
    }
    assert_eq!(wanted.len(), 400);
    assert_eq!(styles.len(), STYLES.len());
}
