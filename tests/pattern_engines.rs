//! Tests the memory of regular expression engines. Checking a policy must build no engine. The engines of evaluated
//! patterns must stay within a limit.

#![allow(clippy::panic, clippy::unwrap_used, reason = "tests fail by panicking")]

#[path = "support/random.rs"]
mod random;

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use random::Random;
use regexp::{
    EngineBudget, MAX_CACHE_BYTES, MAX_KEPT_BYTES, MAX_OWNER_BYTES, MemoryLimit, Program,
    engine_bytes, n_engines_built,
};
use vap_status_controller::cel::checker;
use vap_status_controller::cel::decls::Variable;
use vap_status_controller::cel::eval::{self, Limits};
use vap_status_controller::cel::syntax;
use vap_status_controller::cel::types::Type;
use vap_status_controller::cel::value::Value;
use vap_status_controller::cli::check::{self, Options};
use vap_status_controller::library::environment::base_env;
use vap_status_controller::library::runtime::KubernetesRuntime;
use vap_status_controller::policy::analysis::Profile;
use vap_status_controller::version::KubernetesVersion;

/// Each test holds this lock, because the counters are shared by the process.
static ALONE: Mutex<()> = Mutex::new(());

fn alone() -> MutexGuard<'static, ()> {
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns a policy with `n_expressions` validations. Each validation calls `matches` `n_terms` times. Each pattern is
/// `pattern` and a number.
fn policy(pattern: &str, n_terms: usize, n_expressions: usize) -> String {
    let mut text = String::from(
        "apiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicy\n\
         metadata: {name: patterns}\nspec:\n  matchConstraints:\n    resourceRules:\n    \
         - {apiGroups: [''], apiVersions: [v1], operations: [CREATE], resources: [configmaps]}\n  \
         validations:\n",
    );
    for n in 0..n_expressions {
        let term = |m: usize| format!(r#""a{}".matches("{pattern}{m}")"#, n * n_terms + m);
        let terms: Vec<String> = (0..n_terms).map(term).collect();
        let _ = writeln!(text, "  - expression: '{}'", terms.join(" || "));
    }
    text
}

/// Runs all analyses of `policy`, and asserts that no engine is built. Returns the peak number of allocated bytes.
#[track_caller]
fn check_builds_no_engine(policy: &str) -> u64 {
    let options = || Options {
        paths: vec![PathBuf::from("-")],
        crds: Vec::new(),
        profile: Profile::Truthful,
        version: None,
        other_versions: Vec::new(),
    };
    // The first check fills the caches of schemas and tables.
    let small = self::policy("a", 1, 1);
    check::run(&options(), &mut small.as_bytes()).unwrap();
    let n_before = n_engines_built();
    let allocated = allocation_counter::measure(|| {
        let report = check::run(&options(), &mut policy.as_bytes()).unwrap();
        assert!(report.findings.iter().all(|finding| !finding.rejected));
    });
    assert_eq!(n_engines_built(), n_before);
    allocated.bytes_max
}

#[test]
fn check_of_a_thousand_repeated_patterns_takes_little_memory() {
    let _alone = alone();
    let n_bytes = check_builds_no_engine(&policy("(?s).{1000}N", 1_000, 1));
    assert!(n_bytes < 64 << 20, "{n_bytes}");
}

#[test]
fn check_of_ten_thousand_repeated_patterns_takes_little_memory() {
    let _alone = alone();
    let n_bytes = check_builds_no_engine(&policy("(?s).{1000}N", 1_000, 10));
    assert!(n_bytes < 256 << 20, "{n_bytes}");
}

#[test]
fn check_of_large_classes_builds_no_engine() {
    let _alone = alone();
    let n_bytes = check_builds_no_engine(&policy(r"\\pL{1000}N", 2_500, 1));
    assert!(n_bytes < 128 << 20, "{n_bytes}");
}

fn plan(text: &str) -> eval::Program {
    let env = base_env(KubernetesVersion::DEFAULT).extend([Variable::new("s", Type::Dyn)]);
    let (ast, found) = syntax::parse(text);
    assert!(found.is_empty(), "{}", found.render(text));
    let (checked, found) = checker::check(&Arc::new(ast.unwrap()), text, &env);
    assert!(found.is_empty(), "{}", found.render(text));
    eval::Program::plan(&checked, &env, &KubernetesRuntime).unwrap()
}

#[test]
fn engine_of_planned_pattern_is_built_once_and_freed() {
    let _alone = alone();
    let before = engine_bytes();
    let program = plan(r"s.matches('^built-once-[a-z]+$')");
    let n_before = n_engines_built();
    assert_eq!(engine_bytes(), before);
    let eval = || {
        let bound = [("s", Value::from("built-once-yes"))];
        let evaluation = program.eval(&bound, Limits::from_cost(1_000_000));
        assert_eq!(evaluation.result.unwrap().as_bool(), Some(true));
    };
    (0..1_000).for_each(|_| eval());
    assert_eq!(n_engines_built(), n_before + 1);
    assert!(engine_bytes().kept > before.kept);
    drop(program);
    assert_eq!(engine_bytes(), before);
}

/// Parts of patterns. Patterns of several parts are often large or slow.
const PARTS: [&str; 24] = [
    "a",
    "x*",
    "(x|xx|xxx)*",
    "(?s).{200}",
    r"\pL{40}",
    r"\PL",
    "[^a]",
    r"(?i:straße)",
    "(?i)k",
    r"\b",
    "(a|b|ab)",
    "(?:a{0,9}b?){0,9}",
    "$",
    "^",
    r"\p{Greek}",
    r"[\pL\pN_]+",
    "(?m:^.*$)",
    "x{3,50}?",
    "(|a)+",
    r"[[:word:]]{1,30}",
    r"\x{10ffff}?",
    "é{0,5}",
    ".*",
    r"(?i:\pL{3})",
];

/// Returns a pattern of random parts that is within Go's limits.
fn hostile_pattern(random: &mut Random) -> String {
    loop {
        let mut pattern = String::new();
        for _ in 0..=random.below(6) {
            let part = PARTS.get(random.below(PARTS.len())).unwrap();
            match random.below(8) {
                0 => {
                    let _ = write!(pattern, "({part}){{{}}}", random.below(60));
                }
                1 => {
                    let _ = write!(pattern, "(?:{part}|{})", random.below(100));
                }
                2 => pattern = format!("(?:{pattern}|{part})*"),
                3 if random.one_in(4) => {
                    pattern = format!("(?:{pattern}){{0,{}}}", random.below(9));
                }
                _ => pattern.push_str(part),
            }
        }
        if regexp::parse(&pattern).is_ok() {
            return pattern;
        }
    }
}

#[test]
fn hostile_patterns_stay_within_all_bounds() {
    let _alone = alone();
    let mut random = Random(20_261);
    let before = engine_bytes().kept;
    let texts = [
        "",
        "a",
        "xxxxxxxxxy",
        "aé straSSE Ω\nk\u{212a}ab_1 ",
        "Ελληνικά and more, x xx xxx",
    ];
    let long = texts.concat().repeat(3);
    let mut owners: Vec<(Arc<EngineBudget>, Vec<Program>)> = Vec::new();
    let mut n_compared = 0;
    for n in 0..600 {
        if n % 40 == 0 {
            owners.push((Arc::default(), Vec::new()));
        }
        let pattern = hostile_pattern(&mut random);
        let (owner, programs) = owners.last_mut().unwrap();
        let program = Program::within(&pattern, owner).unwrap();
        let on_machine = Program::on_machine(&pattern).unwrap();
        for text in texts.iter().copied().chain([long.as_str()]) {
            let findings = program.find_all(text, Some(20), &MemoryLimit);
            let expected = on_machine.find_all(text, Some(20), &MemoryLimit);
            if let (Ok(findings), Ok(expected)) = (&findings, &expected) {
                assert_eq!(findings, expected, "{pattern:?} in {text:?}");
                let is_match = program.is_match(text, &MemoryLimit);
                assert_eq!(
                    is_match,
                    Ok(!findings.is_empty()),
                    "{pattern:?} in {text:?}"
                );
                n_compared += 1;
            }
        }
        programs.push(program);
        assert!(owner.used() <= MAX_OWNER_BYTES, "{}", owner.used());
        let now = engine_bytes();
        assert!(
            now.kept <= MAX_KEPT_BYTES && now.cached <= MAX_CACHE_BYTES,
            "{now:?}"
        );
    }
    assert!(n_compared > 3_000, "{n_compared}");
    let most = engine_bytes().kept;
    assert!(most > MAX_OWNER_BYTES, "the bound was not reached: {most}");
    drop(owners);
    assert_eq!(engine_bytes().kept, before);
}

#[test]
fn evaluated_patterns_have_correct_results_within_memory_limit() {
    let _alone = alone();
    let before = engine_bytes().kept;
    let terms: Vec<String> = (0..300)
        .map(|n| format!("!s.matches('(?s).{{1000}}{n}$')"))
        .collect();
    let program = plan(&terms.join(" && "));
    let allocated = allocation_counter::measure(|| {
        for (end, expected) in [("x", true), ("299", false), ("x", true)] {
            let text = format!("{}{end}", "é".repeat(1_000));
            let bound = [("s", Value::from(text))];
            let evaluation = program.eval(&bound, Limits::from_cost(100_000_000));
            assert_eq!(evaluation.result.unwrap().as_bool(), Some(expected));
        }
    });
    let now = engine_bytes();
    assert!(now.kept - before <= MAX_OWNER_BYTES && now.cached <= MAX_CACHE_BYTES);
    assert!(allocated.bytes_max < 12 << 20, "{}", allocated.bytes_max);
    drop(program);
    assert_eq!(engine_bytes().kept, before);
}

#[test]
fn parser_memory_is_proportional_to_the_pattern() {
    let _alone = alone();
    for part in [
        "a", "()", "a*", "[ab]?", r"\pL", "(?i)k|", "a|b*", "(?:", r"[^\pL]",
    ] {
        let mut pattern = part.repeat(90_000 / part.len());
        if part == "(?:" {
            pattern += &")".repeat(90_000 / part.len());
        }
        let allocated = allocation_counter::measure(|| {
            let _ = regexp::parse(&pattern);
        });
        let most = 200 * 90_000 + (2 << 20);
        assert!(
            allocated.bytes_max < most,
            "{part}: {}",
            allocated.bytes_max
        );
    }
}
