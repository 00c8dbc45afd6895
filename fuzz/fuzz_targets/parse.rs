//! Any text is parsed to a tree or to findings, which can be shown.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cel::syntax::parse;

fuzz_target!(|text: &str| {
    let (ast, found) = parse(text);
    assert_ne!(ast.is_some(), !found.is_empty());
    let _ = found.render(text);
});
