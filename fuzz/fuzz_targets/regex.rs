//! Any pattern is translated and matched, and finds what the `regex` crate finds where both take it alike.
#![no_main]

use libfuzzer_sys::fuzz_target;
use vap_status_controller::cel::regex::Program;

/// What the two syntaxes read in unlike ways: escapes, flags and groups, named classes, and the operators
/// that classes of the `regex` crate have.
const READ_OTHERWISE: [&str; 7] = ["\\", "(?", "[:", "&&", "--", "~~", "[["];

fuzz_target!(|input: (&str, &str)| {
    let (pattern, text) = input;
    let Ok(program) = Program::new(pattern) else {
        return;
    };
    let found = program.find_all(text, Some(100));
    assert_eq!(program.is_match(text), !found.is_empty(), "{pattern:?} {text:?}");
    assert_eq!(program.find(text), found.first().copied(), "{pattern:?} {text:?}");
    let on_machine = Program::on_machine(pattern).map(|machine| machine.find_all(text, Some(100)).len());
    assert_eq!(on_machine, Ok(found.len()), "{pattern:?} {text:?}");
    if READ_OTHERWISE.iter().any(|part| pattern.contains(part)) {
        return;
    }
    let Ok(peer) = regex::RegexBuilder::new(pattern).size_limit(1 << 20).build() else {
        return;
    };
    assert_eq!(program.is_match(text), peer.is_match(text), "{pattern:?} {text:?}");
    let first = peer.find(text).map(|found| found.as_str());
    assert_eq!(program.find(text), first, "{pattern:?} {text:?}");
});
