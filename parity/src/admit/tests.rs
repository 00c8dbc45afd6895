//! Compares our decisions for admission cases with upstream's decisions. The golden files contain
//! both.

use std::fs;

use super::*;
use crate::share;

#[track_caller]
fn check(name: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("golden");
    let read = |file: String| fs::read_to_string(folder.join(file)).unwrap();
    let cases = read(format!("{name}.jsonl"));
    let answers = read(format!("{name}.answers.jsonl"));
    assert_eq!(cases.lines().count(), answers.lines().count());
    let schemas = Schemas::load(None, None).unwrap();
    for (n, (case, expected)) in cases.lines().zip(answers.lines()).enumerate() {
        let mut ours = serde_json::to_value(answer(&schemas, n + 1, case)).unwrap();
        let mut expected: Value = serde_json::from_str(expected).unwrap();
        share::cut_syntax_errors(&mut ours);
        share::cut_syntax_errors(&mut expected);
        assert_eq!(ours, expected, "{name}, line {}", n + 1);
    }
}

#[test]
fn generated_admission_cases_have_upstream_results() {
    check("made");
}

#[test]
fn hand_written_admission_cases_have_upstream_results() {
    check("hand");
}

#[test]
fn resource_is_guessed_as_plural_of_kind() {
    let guess = |kind: &str| guess_resource(&Gvk::new("g", "v1", kind)).resource;
    assert_eq!(guess("Deployment"), "deployments");
    assert_eq!(guess("NetworkPolicy"), "networkpolicies");
    assert_eq!(guess("Ingress"), "ingresses");
    assert_eq!(guess("Endpoints"), "endpoints");
    assert_eq!(guess(""), "");
}
