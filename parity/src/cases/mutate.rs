//! Changes expressions in ways that resemble typical mistakes.

use super::choices::Choices;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Space,
    Word,
    Number,
    Text,
    Operator,
}

/// A token of an expression. The texts of all tokens, concatenated, are the expression.
#[derive(Clone, Debug)]
struct Token {
    kind: Kind,
    text: String,
}

const OPERATORS: [&str; 8] = ["&&", "||", "==", "!=", "<=", ">=", ".?", "[?"];

fn tokens(text: &str) -> Vec<Token> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let while_ = |is: &dyn Fn(char) -> bool| rest.find(|c| !is(c)).unwrap_or(rest.len());
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let (kind, length) = match first {
            c if c.is_whitespace() => (Kind::Space, while_(&char::is_whitespace)),
            '0'..='9' => (Kind::Number, while_(&|c| is_word(c) || c == '.')),
            '\'' | '"' => (Kind::Text, quoted(rest, first)),
            c if is_word(c) => (Kind::Word, while_(&is_word)),
            c => {
                let two = OPERATORS
                    .iter()
                    .find(|operator| rest.starts_with(**operator));
                (Kind::Operator, two.map_or(c.len_utf8(), |two| two.len()))
            }
        };
        let (token, behind) = rest.split_at(length.max(1));
        tokens.push(Token {
            kind,
            text: token.to_owned(),
        });
        rest = behind;
    }
    tokens
}

fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return at + c.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

fn text(tokens: &[Token]) -> String {
    tokens.iter().map(|token| token.text.as_str()).collect()
}

pub(crate) fn change(choices: &mut Choices<'_>, expression: &str) -> String {
    let mut tokens = tokens(expression);
    match choices.below(20) {
        0..=3 => misspell(choices, &mut tokens),
        4 => drop_token(choices, &mut tokens),
        5 => repeat_token(choices, &mut tokens),
        6 | 7 => replace(
            choices,
            &mut tokens,
            Kind::Number,
            &["'1'", "1.5", "null", "true", "7u"],
        ),
        8 | 9 => replace(
            choices,
            &mut tokens,
            Kind::Text,
            &["1", "null", "b'a'", "['a']", "''"],
        ),
        10 | 11 => operator(choices, &mut tokens),
        12 => root(choices, &mut tokens),
        13 => drop_step(choices, &mut tokens),
        14 => optional(choices, &mut tokens),
        15 => macro_name(choices, &mut tokens),
        16 => return wrap(choices, expression),
        17 => extra_argument(choices, &mut tokens),
        18 => replace(
            choices,
            &mut tokens,
            Kind::Word,
            &["in", "namespace", "__x__", "ü", "size", "_"],
        ),
        _ => tokens.truncate(1 + choices.below(tokens.len().max(1))),
    }
    text(&tokens)
}

fn indices(tokens: &[Token], fits: impl Fn(&Token) -> bool) -> Vec<usize> {
    let positions = tokens.iter().enumerate().filter(|(_, token)| fits(token));
    positions.map(|(at, _)| at).collect()
}

fn one_of(
    choices: &mut Choices<'_>,
    tokens: &[Token],
    fits: impl Fn(&Token) -> bool,
) -> Option<usize> {
    let positions = indices(tokens, fits);
    (!positions.is_empty()).then(|| positions[choices.below(positions.len())])
}

fn misspell(choices: &mut Choices<'_>, tokens: &mut [Token]) {
    let Some(at) = one_of(choices, tokens, |token| {
        token.kind == Kind::Word && token.text.len() > 2
    }) else {
        return;
    };
    let mut letters: Vec<char> = tokens[at].text.chars().collect();
    let n = choices.below(letters.len() - 1);
    match choices.below(4) {
        0 => letters.swap(n, n + 1),
        1 => drop(letters.remove(n)),
        2 => letters.insert(n, letters[n]),
        _ if letters[0].is_lowercase() => letters[0] = letters[0].to_ascii_uppercase(),
        _ => letters.push('s'),
    }
    tokens[at].text = letters.into_iter().collect();
}

fn drop_token(choices: &mut Choices<'_>, tokens: &mut Vec<Token>) {
    if let Some(at) = one_of(choices, tokens, |token| token.kind != Kind::Space) {
        tokens.remove(at);
    }
}

fn repeat_token(choices: &mut Choices<'_>, tokens: &mut Vec<Token>) {
    if let Some(at) = one_of(choices, tokens, |token| token.kind != Kind::Space) {
        let token = tokens[at].clone();
        tokens.insert(at, token);
    }
}

fn replace(choices: &mut Choices<'_>, tokens: &mut [Token], kind: Kind, by: &[&str]) {
    if let Some(at) = one_of(choices, tokens, |token| token.kind == kind) {
        choices.pick(by).clone_into(&mut tokens[at].text);
    }
}

fn operator(choices: &mut Choices<'_>, tokens: &mut [Token]) {
    let operators = [
        "&&", "||", "==", "!=", "<=", ">=", "<", ">", "+", "-", "*", "/", "%", "in",
    ];
    if let Some(at) = one_of(choices, tokens, |token| {
        operators.contains(&token.text.as_str())
    }) {
        choices.pick(&operators).clone_into(&mut tokens[at].text);
    }
}

const ROOTS: [&str; 7] = [
    "object",
    "oldObject",
    "params",
    "request",
    "namespaceObject",
    "variables",
    "authorizer",
];

fn root(choices: &mut Choices<'_>, tokens: &mut [Token]) {
    if let Some(at) = one_of(choices, tokens, |token| {
        ROOTS.contains(&token.text.as_str())
    }) {
        choices.pick(&ROOTS).clone_into(&mut tokens[at].text);
    }
}

/// Removes a field selection from a path: `object.spec.replicas` becomes `object.replicas`.
fn drop_step(choices: &mut Choices<'_>, tokens: &mut Vec<Token>) {
    let steps: Vec<usize> = indices(tokens, |token| token.text == ".")
        .into_iter()
        .filter(|at| {
            tokens
                .get(at + 1)
                .is_some_and(|next| next.kind == Kind::Word)
        })
        .collect();
    if !steps.is_empty() {
        let at = steps[choices.below(steps.len())];
        tokens.drain(at..at + 2);
    }
}

fn optional(choices: &mut Choices<'_>, tokens: &mut [Token]) {
    let pairs = [(".", ".?"), (".?", "."), ("[", "[?"), ("[?", "[")];
    if let Some(at) = one_of(choices, tokens, |token| {
        pairs.iter().any(|(from, _)| *from == token.text)
    }) && let Some((_, to)) = pairs.iter().find(|(from, _)| *from == tokens[at].text)
    {
        (*to).clone_into(&mut tokens[at].text);
    }
}

fn macro_name(choices: &mut Choices<'_>, tokens: &mut [Token]) {
    let macros = [
        "all",
        "exists",
        "exists_one",
        "existsOne",
        "filter",
        "map",
        "has",
        "size",
        "sortBy",
        "transformList",
        "transformMap",
        "optMap",
        "startsWith",
        "contains",
        "matches",
    ];
    if let Some(at) = one_of(choices, tokens, |token| {
        macros.contains(&token.text.as_str())
    }) {
        choices.pick(&macros).clone_into(&mut tokens[at].text);
    }
}

fn extra_argument(choices: &mut Choices<'_>, tokens: &mut [Token]) {
    if let Some(at) = one_of(choices, tokens, |token| token.text == ")") {
        choices
            .pick(&[", 1)", ", 'a')", ", object)", ")()", ").x"])
            .clone_into(&mut tokens[at].text);
    }
}

fn wrap(choices: &mut Choices<'_>, expression: &str) -> String {
    match choices.below(10) {
        0 => format!("!({expression})"),
        1 => format!("dyn({expression})"),
        2 => format!("string({expression})"),
        3 => format!("size({expression})"),
        4 => format!("has({expression})"),
        5 => format!("[{expression}]"),
        6 => format!("{expression} // {expression}"),
        7 => format!("type({expression})"),
        8 => format!("{}{expression}{}", "(".repeat(40), ")".repeat(40)),
        _ => format!("({expression}) == ({expression})"),
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{Number, Operator, Space, Text, Word};
    use super::*;

    #[test]
    fn concatenated_tokens_equal_the_expression() {
        for expression in [
            "object.spec.?replicas.orValue(1) <= 5u && 'it''s' != \"a\\\"b\" // ü",
            "'open",
            "\u{e9}\u{1f600}[?0]",
            "",
        ] {
            assert_eq!(text(&tokens(expression)), expression);
        }
        let kinds: Vec<Kind> = tokens("a.?b >= 1.5 + 'c\\'d'")
            .iter()
            .map(|token| token.kind)
            .collect();
        assert_eq!(
            kinds,
            [
                Word, Operator, Word, Space, Operator, Space, Number, Space, Operator, Space, Text
            ]
        );
    }

    #[test]
    fn most_seeds_change_the_expression() {
        let expression = "object.spec.replicas <= 5 && object.metadata.name.startsWith('a')";
        let changed =
            (0..200).filter(|n| change(&mut Choices::Seeded(*n), expression) != expression);
        assert!(changed.count() > 150);
    }
}
