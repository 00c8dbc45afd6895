//! Asserts that our parser and the parser of the `cel` crate on crates.io accept the same expressions.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cel::diagnostic::Code;
use vap_status_controller::cel::syntax::parse;

fuzz_target!(|text: &str| {
    // The other parser has neither our macros nor our limits. It is slow for nested brackets.
    let n_open = text.matches(['(', '[', '{']).count();
    if n_open > 12 || text.len() > 1_000 {
        return;
    }
    let (_, found) = parse(text);
    let is_beyond = |code| {
        matches!(
            code,
            Code::InvalidMacroCall | Code::LimitExceeded | Code::TooComplex
        )
    };
    if found
        .as_slice()
        .iter()
        .any(|finding| is_beyond(finding.kind.code()))
    {
        return;
    }
    let peer = cel_rust::Env::default()
        .with_optional_support(true)
        .parser();
    let accepted = peer.parse_with_source_info(text).is_ok();
    assert_eq!(found.is_empty(), accepted, "{}", found.render(text));
});
