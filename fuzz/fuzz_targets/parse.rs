//! Parses arbitrary input to a syntax tree or to errors. Formats the errors in our format and in the API server's
//! format.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cel::syntax::parse;
use vap_status_controller::version::KubernetesVersion;

fuzz_target!(|text: &str| {
    let (ast, found) = parse(text);
    assert_ne!(ast.is_some(), !found.is_empty());
    let _ = found.render(text);
    let in_upstream_words = antlr::findings(text, KubernetesVersion::DEFAULT.behavior().language);
    assert_eq!(found.is_empty(), in_upstream_words.is_empty());
    let _ = in_upstream_words.render(text);
});
