//! Signature help in the calls of functions and macros.

use gen_lsp_types::{
    ActiveParameter, Documentation, ParameterInformation, ParameterInformationLabel, SignatureHelp,
    SignatureHelpParams, SignatureInformation,
};

use super::cel::{self, Name};
use super::context::Context;
use super::cursor;
use super::functions::{MACROS, Receiver};
use super::hover;
use super::positions;
use super::typing;
use crate::cel::syntax::lexer;
use crate::cel::syntax::token::{Kind, Token};

/// Returns the signatures of the call that encloses a position.
pub(super) fn signature_help(
    context: &Context<'_>,
    params: &SignatureHelpParams,
) -> Option<SignatureHelp> {
    let at = &params.text_document_position_params;
    let file = context.file(&at.text_document.uri)?;
    let byte = positions::byte(&file.source, at.position, context.encoding);
    let file = cursor::readable(file, byte);
    let item = cursor::item_at(&file, byte)?;
    let expression = cursor::expression_at(&file.source, &item, byte)?;
    let (name, n) = enclosing_call(expression.text, expression.offset(byte))?;
    let text = name.text(expression.text);
    let macros = MACROS
        .iter()
        .filter(|known| known.name == text && (known.receiver == Receiver::None) != name.is_member);
    let mut signatures: Vec<SignatureInformation> = macros
        .map(|known| {
            let params = known.params.iter().map(|param| ParameterInformation {
                label: ParameterInformationLabel::String((*param).to_owned()),
                documentation: None,
            });
            SignatureInformation {
                label: known.signature(),
                documentation: Some(Documentation::String(known.summary.to_owned())),
                parameters: Some(params.collect()),
                active_parameter: None,
            }
        })
        .collect();
    if let Some(site) = typing::sites(context, &item, &expression, &name).first() {
        let of_function = hover::signatures(text, &name, site).into_iter();
        signatures.extend(of_function.map(|signature| {
            let params = signature.params.iter().map(|bytes| {
                let unit = |at| u32::try_from(at).unwrap_or_default();
                ParameterInformation {
                    // Signatures are ASCII, so bytes are units of each encoding.
                    label: ParameterInformationLabel::Tuple((unit(bytes.start), unit(bytes.end))),
                    documentation: None,
                }
            });
            SignatureInformation {
                parameters: Some(params.collect()),
                label: signature.label,
                documentation: None,
                active_parameter: None,
            }
        }));
    }
    let has_params = |signature: &SignatureInformation| {
        let n_params = signature.parameters.as_ref().map_or(0, Vec::len);
        n_params > usize::try_from(n).unwrap_or_default()
    };
    let active = signatures.iter().position(has_params).unwrap_or_default();
    (!signatures.is_empty()).then(|| SignatureHelp {
        active_signature: u32::try_from(active).ok(),
        active_parameter: Some(ActiveParameter::Int(n)),
        signatures,
    })
}

/// Returns the name of the innermost function whose parentheses contain the byte `offset`, and the number of the argument
/// there, from 0.
fn enclosing_call(text: &str, offset: usize) -> Option<(Name, u32)> {
    // The function of each open bracket, and the number of commas after the bracket.
    let mut open: Vec<(Option<Token>, u32)> = Vec::new();
    let mut last: Option<Token> = None;
    for token in lexer::tokens(text).all {
        if token.kind == Kind::End || usize::try_from(token.start).ok()? >= offset {
            break;
        }
        match token.kind {
            Kind::OpenParen => open.push((last.filter(|it| it.kind == Kind::Ident), 0)),
            kind if kind.opens_bracket() => open.push((None, 0)),
            kind if kind.closes_bracket() => {
                open.pop();
            }
            Kind::Comma => {
                if let Some((_, n)) = open.last_mut() {
                    *n += 1;
                }
            }
            _ => {}
        }
        last = Some(token);
    }
    // A bracket without a function name, such as that of a list, belongs to the enclosing call.
    let (function, n) = open
        .iter()
        .rev()
        .find_map(|(token, n)| Some(((*token)?, *n)))?;
    let end = usize::try_from(function.end).ok()?;
    let name = cel::name_at(text, end)?;
    Some((name, n))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(marked: &str, expected: Option<(&str, u32)>) {
        let offset = marked.find('|').unwrap();
        let text = marked.replacen('|', "", 1);
        let call = enclosing_call(&text, offset);
        let call = call.as_ref().map(|(name, n)| (name.text(&text), *n));
        assert_eq!(call, expected, "{marked}");
    }

    #[test]
    fn innermost_open_call_is_found() {
        check("a.f(|", Some(("f", 0)));
        check("a.f(x, |y)", Some(("f", 1)));
        check("f(g(x), [1, |", Some(("f", 1)));
        check("f(g(|x), 1)", Some(("g", 0)));
        check("f(x)|", None);
        check("(a|", None);
    }
}
