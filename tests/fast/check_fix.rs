//! Tests `kubectl vap check --fix`: applied and omitted fixes, in all scalar styles of YAML.
#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::fmt::Write as _;
use std::fs;
use std::ops::Range;
use std::path::PathBuf;

use crate::check_management::{directory, json, vap};
use crate::random::Random;
use vap_status_controller::cli::exit::Exit;

/// Returns a policy. Its rule has the fields `rule`, and its validation has the fields `validation`.
fn policy(rule: &str, validation: &str) -> String {
    format!(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\nmetadata: {{name: p}}\n\
         spec:\n  matchConstraints:\n    resourceRules:\n    - {{{rule}}}\n  validations:\n  - {validation}\n"
    )
}

const RULE: &str =
    "apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]";
const SOUND: &str = "expression: object.spec.replicas <= 50";

fn with(root: &std::path::Path, name: &str) -> String {
    fs::read_to_string(root.join(name)).unwrap()
}

/// Asserts that `--fix` changes `wrong` to `right`, and that `right` has no findings except notes.
#[track_caller]
fn check(test: &str, wrong: &str, right: &str) {
    let root = directory(&format!("fix-{test}"), &[("p.yaml", wrong)]);
    let path = root.join("p.yaml");
    let path = path.to_str().unwrap();
    let (diff, err, exit) = vap(&[path, "--diff"]);
    assert_eq!(with(&root, "p.yaml"), wrong, "--diff must not write");
    assert!(
        exit == Exit::Findings && diff.starts_with("--- "),
        "{diff}{err}"
    );
    let (out, err, exit) = vap(&[path, "--fix"]);
    assert_eq!(with(&root, "p.yaml"), right, "{out}{err}");
    assert!(
        err.contains(" applied\n") && exit == Exit::Clean,
        "{out}{err}"
    );
    // Each added line of the diff is a line of the fixed file. Each removed line is a line of the original file.
    let lines = |sign: char| {
        diff.lines()
            .skip(2)
            .filter_map(move |line| line.strip_prefix(sign))
    };
    assert!(
        lines('+').all(|line| right.lines().any(|of| of == line)),
        "{diff}"
    );
    assert!(
        lines('-').all(|line| wrong.lines().any(|of| of == line)),
        "{diff}"
    );
    assert!(vap(&[path, "--diff"]).0.is_empty());
}

#[test]
fn unambiguous_fixes_are_applied() {
    let rule = |from: &str, to: &str| policy(&RULE.replace(from, to), SOUND);
    let sound = policy(RULE, SOUND);
    let with = |expression: &str| policy(RULE, &format!("expression: {expression}"));
    check("operation", &rule("CREATE", "create"), &sound);
    // The fixed policy has a note about an optional field.
    check(
        "operations",
        &rule("CREATE", "create, 'update'"),
        &rule("CREATE", "CREATE, 'UPDATE'"),
    );
    check(
        "operation-quoted",
        &rule("CREATE", "\"Create\""),
        &rule("CREATE", "\"CREATE\""),
    );
    check("group", &rule("[apps]", "[apps/v1]"), &sound);
    check("resource", &rule("deployments", "Deployment"), &sound);
    check(
        "field",
        &policy(RULE, "expresion: object.spec.replicas <= 50"),
        &sound,
    );
    check(
        "field-quoted",
        &policy(RULE, "'Expression': object.spec.replicas <= 50"),
        &policy(RULE, "'expression': object.spec.replicas <= 50"),
    );
    check(
        "kind",
        &sound.replace("ValidatingAdmission", "ValidatingAdmision"),
        &sound,
    );
    check(
        "api-version",
        &sound.replace("admissionregistration.k8s.io/v1", "apps/v1"),
        &sound,
    );
    check(
        "old-version",
        &sound
            .replace("k8s.io/v1", "k8s.io/v1beta1")
            .replace("<= 50", "<= '50'")
            .replace("'50'", "50")
            .replace("CREATE", "create"),
        &sound,
    );
    check(
        "expression",
        &with("object.spec.replica <= 50 && objct.spec.replicas > 1"),
        &with("object.spec.replicas <= 50 && object.spec.replicas > 1"),
    );
    // The fix of a presence test makes the policy stricter.
    check(
        "presence",
        &with("\"!has(object.spec.pausd)\""),
        &with("\"!has(object.spec.paused)\""),
    );
    check(
        "enum",
        &sound.replace("  match", "  failurePolicy: fail # x\n  match"),
        &sound.replace("  match", "  failurePolicy: Fail # x\n  match"),
    );
    let value = |operation: &str| {
        let expression = format!("request.operation != {operation} || object.spec.replicas > 1");
        with(&format!("'{}'", expression.replace('\'', "''")))
    };
    check("value", &value("\"create\""), &value("\"CREATE\""));
    check("value-single", &value("'create'"), &value("'CREATE'"));
    let core = |group: &str| {
        policy(
            &format!(
                "apiGroups: [{group}], apiVersions: [v1], operations: [CREATE], resources: [pods]"
            ),
            "expression: object.metadata.name != 'a'",
        )
    };
    check("core", &core("core"), &core("\"\""));
    check("core-quoted", &core("'core'"), &core("''"));
    check("core-version", &core("v1"), &core("\"\""));
    check(
        "mark",
        &format!("\u{feff}{}", rule("CREATE", "create")),
        &format!("\u{feff}{sound}"),
    );
    let crlf = |text: String| text.replace('\n', "\r\n");
    check(
        "crlf",
        &crlf(rule("CREATE", "create")),
        &crlf(sound.clone()),
    );
    let binding = |name: &str| {
        format!(
            "{sound}---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\nmetadata: {{name: b}}\nspec:\n  policyName: {name}\n  validationActions: [Deny]\n"
        )
    };
    let named = |text: String| text.replace("name: p}", "name: replica-limit}");
    check(
        "policy-name",
        &named(binding("replica-limits")),
        &named(binding("replica-limit")),
    );
}

#[test]
fn ambiguous_fixes_are_not_applied() {
    for (n, text) in [
        // There is no fix if two fields are equally similar to the name, or if no field is similar.
        policy(RULE, "expression: object.spec.zzzz == 1"),
        // There is no fix for a version that the API group does not have.
        policy(&RULE.replace("[apps]", "[apps/v1beta1]"), SOUND),
        // There is no fix for a label that may be absent, because it has no default.
        policy(RULE, "expression: object.metadata.labels.app == 'a'"),
        // There is no fix if it would allow requests that the policy denies.
        policy(
            RULE,
            "expression: request.operation == 'create' || object.spec.replicas > 1",
        ),
        policy(RULE, "expression: has(object.spec.pausd)"),
        policy(
            RULE,
            "expression: has(object.metadata.labels) && 'a' in object.metadata.labels && object.metadata.labels['a'] == true",
        ),
        policy(
            RULE,
            "expression: object.spec.template.spec.containers.all(c, c.imagePullPolicy == 'always')",
        ),
        // There is no fix for an invalid name of a policy, because bindings may refer to the name.
        policy(RULE, SOUND).replace("name: p}", "name: P}"),
    ]
    .iter()
    .enumerate()
    {
        let root = directory(&format!("unfixed-{n}"), &[("p.yaml", text)]);
        let (_, err, exit) = vap(&[root.to_str().unwrap(), "--fix"]);
        let mut lines = err.lines();
        let first = "no finding has a fix that --fix can apply";
        assert_eq!(lines.next(), Some(first), "{text}");
        let is_reason = |line: &str| {
            line.ends_with(": not fixed: the policy may then allow requests that it denies now")
        };
        let is_withheld = (3..7).contains(&n);
        assert_eq!(lines.clone().next().is_some(), is_withheld, "{text}{err}");
        assert!(lines.all(is_reason), "{err}");
        assert_eq!(
            (with(&root, "p.yaml"), exit),
            (text.clone(), Exit::Findings)
        );
    }
}

#[test]
fn expression_that_yaml_reads_as_a_tag_is_quoted_by_fix() {
    let tagged = policy(RULE, "expression: !has(object.spec.paused)");
    let quoted = policy(RULE, "expression: \"!has(object.spec.paused)\"");
    check("tag", &tagged, &quoted);
}

/// A misspelled item is removed if the list already contains the correct item.
#[test]
fn duplicate_items_of_list_are_removed() {
    const BINDING: &str = "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
        metadata: {name: a}\nspec:\n  policyName: p\n  validationActions:";
    let binding = |actions: &str| format!("{}{BINDING}{actions}\n", policy(RULE, SOUND));
    let block = (
        "\n  - Deny\n  - Warn # no\n  - Audit",
        "\n  - Deny\n  - Audit",
    );
    for (before, after) in [
        (" [Audit, Audits]", " [Audit]"),
        (" [Warn, Deny]", " [Deny]"),
        block,
    ] {
        check("items", &binding(before), &binding(after));
    }
}

/// Neither the negation of a name nor the name of a different stage, such as `dev` for `prod`, is a misspelling.
#[test]
fn opposite_and_unrelated_names_are_not_fixed() {
    let sound = policy(RULE, SOUND);
    let binding = |name: &str, policy: &str, actions: &str| {
        format!(
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyBinding\n\
             metadata: {{name: {name}}}\nspec: {{policyName: {policy}, validationActions: [{actions}]}}\n"
        )
    };
    let registry = sound.replace("{name: p}", "{name: image-registry-dev}");
    let bound = |name: &str, policy: &str| format!("{registry}{}", binding(name, policy, "Deny"));
    let with = |field: &str| sound.replace("  validations", &format!("  {field}\n  validations"));
    for (n, text) in [
        bound("a", "image-registry-prod"),
        bound("image-registy-dev", "image-registy-dev"),
        with("invalidations: []"),
        with("unmatchConditions: []"),
        sound.replace(
            "  validations",
            "    includeResourceRules: []\n  validations",
        ),
    ]
    .iter()
    .enumerate()
    {
        let root = directory(&format!("opposite-{n}"), &[("p.yaml", text)]);
        let path = root.join("p.yaml");
        let (diff, err, _) = vap(&[path.to_str().unwrap(), "--diff"]);
        assert!(diff.is_empty(), "{diff}{err}");
    }
    check(
        "misspelled-policy",
        &bound("a", "image-registy-dev"),
        &bound("a", "image-registry-dev"),
    );
    let selector = |operator: &str| {
        sound.replace(
            "  validations",
            &format!(
                "    objectSelector: {{matchExpressions: [{{key: a, operator: {operator}}}]}}\n  validations"
            ),
        )
    };
    check(
        "negated-operator",
        &selector("NotExists"),
        &selector("DoesNotExist"),
    );
}

#[test]
fn fix_that_uncovers_a_finding_is_applied() {
    // The misspelled key hides a finding about its value.
    let hidden = policy(RULE, "expresion: object.spec.zzzz == 1");
    let anchor = policy(&RULE.replace("operations: [CREATE]", "operations: &ops [create]"), SOUND)
        .replace("  validations", "    excludeResourceRules:\n    - {apiGroups: [apps], apiVersions: [v1], operations: *ops, resources: [deployments]}\n  validations");
    let root = directory("fix-left", &[("h.yaml", &hidden), ("a.yaml", &anchor)]);
    let sound = policy(&RULE.replace("CREATE", "create"), SOUND).replace("name: p", "name: s");
    fs::write(root.join("s.yaml"), &sound).unwrap();
    let only = |name: &str| {
        let path = root.join(name);
        vap(&[path.to_str().unwrap(), "--fix"])
    };
    let (out, err, exit) = only("h.yaml");
    assert!(err.contains("h.yaml: 1 fix applied"), "{err}");
    assert!(out.contains("undefined field 'zzzz'"), "{out}");
    assert_eq!(exit, Exit::Findings);
    assert_eq!(
        with(&root, "h.yaml"),
        hidden.replace("expresion", "expression")
    );
    let (_, err, _) = only("a.yaml");
    assert!(
        err.contains("a.yaml: unchanged: a fix would change more than one value"),
        "{err}"
    );
    assert_eq!(with(&root, "a.yaml"), anchor);
    // A file that cannot be fixed does not prevent fixes in other files.
    let (_, err, exit) = vap(&[root.to_str().unwrap(), "--fix"]);
    assert!(err.contains("s.yaml: 1 fix applied"), "{err}");
    assert_eq!(exit, Exit::Findings);
    assert_eq!(with(&root, "s.yaml"), sound.replace("create", "CREATE"));
    assert_eq!(with(&root, "a.yaml"), anchor);
}

#[test]
fn fixes_are_applied_in_rounds() {
    // Each fix makes the next finding visible.
    let text = policy(
        &RULE
            .replace("CREATE", "create")
            .replace("deployments", "deployment"),
        "expresion: object.spec.replica <= 50 and object.spec.paused == false",
    );
    let root = directory("fix-rounds", &[("p.yaml", &text)]);
    let (_, err, exit) = vap(&[root.to_str().unwrap(), "--fix"]);
    assert!(err.contains("p.yaml: 6 fixes applied"), "{err}");
    assert_eq!(exit, Exit::Clean);
    let fixed = policy(
        RULE,
        "expression: object.spec.replicas <= 50 && object.spec.?paused.orValue(false) == false",
    );
    assert_eq!(with(&root, "p.yaml"), fixed);
}

#[test]
fn applied_fixes_are_listed() {
    let text = policy(
        &RULE
            .replace("CREATE", "create")
            .replace("apps]", "'core/v1']")
            .replace("deployments", "pods"),
        "expresion: object.spec.hostPID == true",
    );
    let other = policy(&RULE.replace("deployments", "deployment"), SOUND);
    let files = [("a.yaml", &*text), ("b.yaml", &*other)];
    let root = directory("fix-list", &files);
    let name = root.to_str().unwrap();
    // With both flags, no file is changed.
    let (diff, err, _) = vap(&[name, "--fix", "--diff"]);
    assert!(diff.starts_with("--- "), "{diff}{err}");
    assert_eq!(
        (with(&root, "a.yaml"), with(&root, "b.yaml")),
        (text, other)
    );
    let (_, err, _) = vap(&[name, "--fix"]);
    let lines: Vec<&str> = err.lines().collect();
    let wanted = [
        &*format!("{name}/a.yaml: 4 fixes applied"),
        "  7:21 impossible-group: `'core/v1'` -> `''`",
        "  7:64 invalid-value: `create` -> `CREATE`",
        "  9:5 unknown-field: `expresion` -> `expression`",
        "  9:29 absent-field: `object.spec.hostPID` -> `object.spec.?hostPID.orValue(false)`",
        &*format!("{name}/b.yaml: 1 fix applied"),
        "  7:80 unserved-resource: `deployment` -> `deployments`",
        "5 fixes of 2 files applied in 2 rounds, including 1 fix for findings that other fixes uncovered",
    ];
    assert_eq!(lines, wanted);
}

#[test]
fn suppressed_findings_are_not_fixed() {
    let text = policy(RULE, "expression: object.spec.replica <= 50");
    let root = directory("fix-suppressed", &[("p.yaml", &text)]);
    let (_, err, _) = vap(&[
        root.to_str().unwrap(),
        "--fix",
        "--allow",
        "undefined-field",
    ]);
    assert_eq!(err, "no finding has a fix that --fix can apply\n");
    assert_eq!(with(&root, "p.yaml"), text);
}

#[test]
fn standard_input_cannot_be_fixed_but_json_has_fixes() {
    for flag in ["--fix", "--diff"] {
        let (out, err, exit) = vap(&["-", flag]);
        assert_eq!((out.as_str(), exit), ("", Exit::Failed));
        assert_eq!(
            err,
            "error: fixes cannot be applied to standard input; pass files or directories\n"
        );
    }
    let text = policy(RULE, "expression: object.spec.replica <= 50");
    let root = directory("fix-programs", &[("p.yaml", &text)]);
    let (report, _) = json(&root.join("p.yaml"), &["--diff"]);
    let fix = &report["findings"][0]["fix"];
    assert_eq!(
        (&fix["line"], &fix["column"], &fix["endColumn"]),
        (&9.into(), &29.into(), &36.into())
    );
    assert_eq!(fix["text"], "replicas");
    assert_eq!(report["fixes"][0]["fixed"], 1);
    assert!(
        report["fixes"][0]["diff"]
            .as_str()
            .unwrap()
            .contains("+  - expression: object.spec.replicas")
    );
    assert_eq!(with(&root, "p.yaml"), text);
}

#[cfg(unix)]
#[test]
fn fix_keeps_links_and_permissions() {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    let text = policy(&RULE.replace("CREATE", "create"), SOUND);
    let root = directory("fix-links", &[("real/p.yaml", &text)]);
    let (real, link) = (root.join("real/p.yaml"), root.join("link.yaml"));
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).unwrap();
    symlink(&real, &link).unwrap();
    let (_, err, _) = vap(&[link.to_str().unwrap(), "--fix"]);
    assert!(err.contains("1 fix applied"), "{err}");
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(with(&root, "real/p.yaml"), text.replace("create", "CREATE"));
    assert_eq!(
        fs::metadata(&real).unwrap().permissions().mode() & 0o777,
        0o640
    );
    assert_eq!(fs::read_dir(root.join("real")).unwrap().count(), 1);
}

#[test]
fn explain_flag_shows_explanation_of_rule_once() {
    let text = policy(
        RULE,
        "expression: object.spec.replica <= 50 && object.spec.replika > 1",
    );
    let root = directory("explain", &[("p.yaml", &text)]);
    let (out, _, _) = vap(&[root.to_str().unwrap(), "--explain"]);
    assert_eq!(
        out.matches("\nThe schema does not have the field.\n")
            .count(),
        1,
        "{out}"
    );
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Style {
    Plain,
    Single,
    Double,
    Literal,
    Folded,
}

const STYLES: [Style; 5] = [
    Style::Plain,
    Style::Single,
    Style::Double,
    Style::Literal,
    Style::Folded,
];

/// Mistakes and their fixes: the source before the mistake, the wrong name, and the right name. The expressions have no
/// other mistakes.
const MISTAKES: [(&str, &str, &str); 6] = [
    ("object.spec.", "replicaz", "replicas"),
    ("", "objekt", "object"),
    (
        "request.operation != 'CREATE' || object.spec.",
        "replica",
        "replicas",
    ),
    (
        "object.metadata.name != 'é漢😀' && object.spec.",
        "reepliicas",
        "replicas",
    ),
    ("object.metadata.name != \"q\\\\\" && ", "objct", "object"),
    (
        "!(object.metadata.name in ['a', 'b']) && object.",
        "specc",
        "spec",
    ),
];

/// Returns the part of the expression after the mistake `token`.
fn rest(token: &str) -> &'static str {
    match token {
        "objekt" | "objct" => ".spec.replicas > 1 && object.metadata.name != 'x'",
        "specc" => ".replicas > 1",
        _ => " > 1 && object.metadata.name != 'x'",
    }
}

/// Appends an expression as a scalar in the given style. Returns the byte range of the mistake.
fn write_scalar(
    text: &mut String,
    random: &mut Random,
    style: Style,
    (before, token, behind): (&str, &str, &str),
) -> Range<usize> {
    let column = 6 + random.below(4);
    let indent = " ".repeat(column);
    match style {
        Style::Literal | Style::Folded => {
            text.push(if style == Style::Literal { '|' } else { '>' });
            text.push_str(["", "-", "+", "- # why"][random.below(4)]);
            write!(text, "{}{indent}", ["\n", "\n\n"][random.below(2)]).unwrap();
        }
        Style::Single => text.push('\''),
        Style::Double => text.push('"'),
        // A plain scalar has no opening character.
        Style::Plain => {}
    }
    let mut bytes = 0..0;
    for (part, is_token) in [(before, false), (token, true), (behind, false)] {
        if is_token {
            bytes.start = text.len();
        }
        for (n, character) in part.chars().enumerate() {
            match (style, character) {
                (_, ' ') if random.one_in(4) => match style {
                    Style::Plain | Style::Literal | Style::Folded => {
                        write!(text, "\n{indent}").unwrap();
                    }
                    Style::Single => {
                        write!(text, "{}{indent}", ["\n", " \r\n"][random.below(2)]).unwrap();
                    }
                    Style::Double => {
                        text.push_str(
                            [" \\\n   ", "\n\t ", "\\n", "\\t", "\\x20"][random.below(5)],
                        );
                    }
                },
                (Style::Single, '\'') => text.push_str("''"),
                (Style::Double, '"' | '\\') => {
                    text.push('\\');
                    text.push(character);
                }
                (Style::Double, _) if random.one_in(12) => match u32::from(character) {
                    code @ 0..0x80 if random.one_in(2) => write!(text, "\\x{code:02x}").unwrap(),
                    code @ 0..0x1_0000 if random.one_in(2) => {
                        write!(text, "\\u{code:04X}").unwrap();
                    }
                    code => write!(text, "\\U{code:08x}").unwrap(),
                },
                (Style::Double, other) if is_token && n > 0 && random.one_in(20) => {
                    write!(text, "\\\n    {other}").unwrap();
                }
                (_, other) => text.push(other),
            }
        }
        if is_token {
            bytes.end = text.len();
        }
    }
    match style {
        Style::Single => text.push('\''),
        Style::Double => text.push('"'),
        _ => {}
    }
    bytes
}

/// In all block and flow styles, a fix must replace exactly the bytes of the mistake.
#[test]
fn fixes_change_only_their_scalar_in_each_style() {
    let mut random = Random(23);
    let mut files: Vec<(String, String, String)> = Vec::new();
    let mut n_mends = 0;
    for file in 0..40 {
        let mut text = policy(RULE, SOUND).replace("name: p}", &format!("name: p{file}}}"));
        let mut edits: Vec<(Range<usize>, &str)> = Vec::new();
        for _ in 0..10 {
            let style = STYLES[random.below(STYLES.len())];
            let (before, token, right) = MISTAKES[random.below(MISTAKES.len())];
            let is_flow = random.one_in(3) && matches!(style, Style::Single | Style::Double);
            let starts_badly = style == Style::Plain && before.starts_with('!');
            let before = if starts_badly {
                "object.metadata.name != 'c' && object."
            } else {
                before
            };
            text.push_str(if is_flow {
                "  - {expression: "
            } else {
                "  - expression: "
            });
            let bytes = write_scalar(&mut text, &mut random, style, (before, token, rest(token)));
            edits.push((bytes, right));
            text.push_str(if is_flow { ", message: x} # y\n" } else { "\n" });
        }
        n_mends += edits.len();
        let mut wanted = text.clone();
        for (bytes, right) in edits.into_iter().rev() {
            wanted.replace_range(bytes, right);
        }
        files.push((format!("p{file}.yaml"), text, wanted));
    }
    let given: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text, _)| (name.as_str(), text.as_str()))
        .collect();
    let root: PathBuf = directory("fix-styles", &given);
    let (out, err, exit) = vap(&[root.to_str().unwrap(), "--fix"]);
    assert_eq!(exit, Exit::Clean, "{err}{out}");
    for (name, text, wanted) in &files {
        let findings = with(&root, name);
        assert!(findings == *wanted, "{name}\n{text}\n{findings}\n{err}");
    }
    assert_eq!(n_mends, 400);
}

/// In a JSON file, a fix must replace exactly the bytes of the mistake.
#[test]
fn json_fixes_change_only_their_value() {
    let document = |expression: &str| {
        format!(
            "{{\"apiVersion\": \"admissionregistration.k8s.io/v1\", \"kind\": \"ValidatingAdmissionPolicy\",\n\
             \t\"metadata\": {{\"name\": \"p\"}}, \"spec\": {{\"matchConstraints\": {{\"resourceRules\": [{{\"apiGroups\": [\"apps\"],\n\
             \t\"apiVersions\": [\"v1\"], \"operations\": [\"CREATE\"], \"resources\": [\"deployments\"]}}]}},\n\
             \t\"validations\": [{{\"expression\": \"{expression}\"}}]}}}}"
        )
    };
    let wrong = "object.metadata.name != '\\ud83d\\ude00\\/' \\n&& object.spec.repl\\u0069ca <= 50";
    check(
        "json",
        &document(wrong),
        &document(&wrong.replace("repl\\u0069ca", "replicas")),
    );
}

/// Names of files and policies, and messages, may contain terminal control characters. The output must not contain
/// them.
#[cfg(unix)]
#[test]
fn output_escapes_names_and_messages() {
    let evil = "\u{1b}]0;t\u{7}\u{9b}31m\u{202e}\u{85}\u{2028}\r::error::";
    let name = format!("a{evil}\n.yaml");
    let quoted = serde_json::to_string(&format!("{evil}\n")).unwrap();
    let text = policy(RULE, &format!("expression: {quoted}, extra{quoted}: 1"))
        .replace("extra\"", "\"extra")
        .replace("name: p", &format!("name: {quoted}"))
        .replace("CREATE", "create");
    let root = directory("fix-evil", &[(&name, &text)]);
    let path = root.join(&name);
    let path = path.to_str().unwrap();
    let is_shown =
        |c: char| c == '\n' || !(c.is_control() || ('\u{2028}'..='\u{202e}').contains(&c));
    for args in [
        &["-o", "text"][..],
        &["-o", "json"],
        &["-o", "sarif"],
        &["-o", "github"],
        &["--diff"],
        &["--fix"],
        &["--fix", "-o", "json"],
    ] {
        let (out, err, _) = vap(&[&[path], args].concat());
        assert!(out.len() + err.len() > 40, "{args:?}");
        let wrong = |text: &str| text.chars().find(|c| !is_shown(*c));
        assert_eq!(
            (wrong(&out), wrong(&err)),
            (None, None),
            "{args:?}: {out:?} {err:?}"
        );
    }
}

#[cfg(unix)]
#[test]
fn read_only_file_is_reported_and_kept() {
    use std::os::unix::fs::PermissionsExt as _;

    let wrong = policy(&RULE.replace("CREATE", "create"), SOUND);
    let root = directory("fix-read-only", &[("p.yaml", &wrong)]);
    let path = root.join("p.yaml");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o444)).unwrap();
    let (_, err, exit) = vap(&[path.to_str().unwrap(), "--fix"]);
    assert!(
        err.contains("cannot write the file: the file is read-only"),
        "{err}"
    );
    assert_eq!(exit, Exit::Findings);
    assert_eq!(with(&root, "p.yaml"), wrong);
}

#[test]
fn fix_inserts_missing_question_mark() {
    for (name, wrong, right) in [
        (
            "optional-field",
            "expression: object.spec.template.spec.containers.all(c, c.name.orValue('') != '')",
            "expression: object.spec.template.spec.containers.all(c, c.?name.orValue('') != '')",
        ),
        (
            "optional-index",
            "expression: \"object.spec.template.spec.containers[0].orValue({}) != {}\"",
            "expression: \"object.spec.template.spec.containers[?0].orValue({}) != {}\"",
        ),
        (
            "optional-or",
            "expression: object.spec.replicas.or(optional.of(1)).orValue(3) > 0",
            "expression: object.spec.?replicas.or(optional.of(1)).orValue(3) > 0",
        ),
    ] {
        check(name, &policy(RULE, wrong), &policy(RULE, right));
    }
}

#[test]
fn text_of_an_audit_annotation_is_quoted_by_fix() {
    let annotation = |value: &str| {
        let annotations =
            format!("  auditAnnotations:\n  - key: a\n    valueExpression: {value}\n");
        policy(RULE, SOUND) + &annotations
    };
    check(
        "prose",
        &annotation("\"images and tags are required\""),
        &annotation("\"'images and tags are required'\""),
    );
}

#[test]
fn fix_that_leaves_a_syntax_error_is_not_applied() {
    let text = policy(
        RULE,
        "expression: object.spec.paused and object.spec.replicas ++ 1",
    );
    let root = directory("leaves-error", &[("p.yaml", &text)]);
    let path = root.join("p.yaml");
    let (diff, err, _) = vap(&[path.to_str().unwrap(), "--diff"]);
    assert!(diff.is_empty(), "{diff}{err}");
}

#[test]
fn fix_of_json_patch_keeps_its_lines() {
    let policy = |patch: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/v1\nkind: MutatingAdmissionPolicy\nmetadata: {{name: p}}\n\
             spec:\n  reinvocationPolicy: Never\n  matchConstraints:\n    resourceRules:\n    - {{{RULE}}}\n  \
             mutations:\n  - patchType: JSONPatch\n    jsonPatch:\n      expression: |\n{patch}"
        )
    };
    check(
        "json-patch",
        &policy(
            "        [\n          {\n            \"op\": \"add\",\n            \"path\": \"/spec/paused\",\n\n            \
             \"value\": true\n          },\n          {'op': 'remove', 'path': '/spec/replicas'}\n        ]\n",
        ),
        &policy(
            "        [\n          JSONPatch{\n            op: \"add\",\n            path: \"/spec/paused\",\n\n            \
             value: true\n          },\n          JSONPatch{op: 'remove', path: '/spec/replicas'}\n        ]\n",
        ),
    );
}

#[test]
fn api_version_is_fixed_only_for_a_given_kubernetes_version() {
    let text = |version: &str| {
        format!(
            "apiVersion: admissionregistration.k8s.io/{version}\nkind: MutatingAdmissionPolicy\nmetadata: {{name: p}}\nspec:\n  \
             reinvocationPolicy: Never\n  matchConstraints:\n    resourceRules:\n    - {{{RULE}}}\n  mutations:\n  \
             - patchType: ApplyConfiguration\n    applyConfiguration:\n      expression: \"Object{{spec: Object.spec{{paused: \
             true}}}}\"\n"
        )
    };
    let root = directory("mutating-version", &[("p.yaml", &text("v1beta1"))]);
    let path = root.join("p.yaml");
    let path = path.to_str().unwrap();
    let (out, _, _) = vap(&[path]);
    assert!(out.contains("/v1 if Kubernetes is 1.36"), "{out}");
    let (diff, err, _) = vap(&[path, "--diff"]);
    assert!(diff.is_empty(), "{diff}{err}");
    vap(&[path, "--fix", "--kubernetes-version", "1.36"]);
    assert_eq!(with(&root, "p.yaml"), text("v1"));
}
