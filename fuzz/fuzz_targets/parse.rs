//! Parses any text to a tree or to errors, which are formatted in our form and in the API server's.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cel::syntax::parse;

fuzz_target!(|text: &str| {
    let (ast, found) = parse(text);
    assert_ne!(ast.is_some(), !found.is_empty());
    let _ = found.render(text);
    let in_upstream_words = antlr::findings(text);
    assert_eq!(found.is_empty(), in_upstream_words.is_empty());
    let _ = in_upstream_words.render(text);
});
