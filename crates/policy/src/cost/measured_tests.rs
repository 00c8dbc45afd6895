//! Compares estimates with the costs of evaluations. The expressions are generated from a seed. They read variables
//! whose values are larger than the object.

use std::sync::Arc;

use k8s_openapi::api::admissionregistration::v1::ValidatingAdmissionPolicy;
use serde_json::{Value as Json, json};

use super::*;
use crate::admission::{
    Admission, AdmissionRequest, AuthorizerList, Object, ParamList, ReviewContext,
};
use kubernetes::schema::builtin::Builtin;
use kubernetes::schema::{Gvk, Gvr};
use kubernetes::version::KubernetesVersion;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        let mut x = self.0;
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        self.0 = x;
        usize::try_from((x >> 33) % n as u64).unwrap()
    }

    fn one_of<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.below(of.len())]
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    List,
    Lists,
    Map,
}

const KINDS: [Kind; 4] = [Kind::Text, Kind::List, Kind::Lists, Kind::Map];

/// Returns templates of expressions of the kind. The placeholders `T`, `L`, `N` and `M` stand for a string, a list of
/// strings, a list of such lists, and a map of strings.
fn templates(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Text => &[
            "'some text'",
            "L.join(',')",
            "L.join('')",
            "(T + T)",
            "(T + '-' + T)",
            "T.replace('a', 'bcd')",
            "T.replace('', 'xy')",
            "T.lowerAscii()",
            "(has(object.metadata) ? T : '')",
            "(object.metadata.name == 'z' ? 'a' : T)",
            "optional.of(T).orValue('')",
            "optional.of(T).optMap(t, t + t).orValue(T)",
            "{'a': T, 'b': 'c'}.a",
            "{'a': T}['a']",
            "'%s: %s'.format([T, L])",
            "'%s'.format([M])",
            "(L.size() > 0 ? L[0] : '')",
            "L[?0].orValue('none')",
            "N[?0].orValue(L).join('')",
            "M[?'k1'].orValue('')",
            "T.split(',')[0]",
            "strings.quote(T)",
            "string(dyn(T))",
            "T.find('[a-z]+')",
            "L.map(x, x.upperAscii()).join('; ')",
            "(L.size() > 0 ? L.max() : T)",
        ],
        Kind::List => &[
            "['a', 'bc']",
            "[T, T]",
            "(L + L)",
            "(L + [T])",
            "L.map(x, x + '=')",
            "L.map(x, x.size() > 1, x)",
            "L.filter(x, x != 'z')",
            "L.map(x, x.replace('a', 'bb'))",
            "N.flatten()",
            "T.split('')",
            "T.split(',')",
            "T.split(',', 3)",
            "T.findAll('[a-z]')",
            "L.distinct()",
            "L.sort()",
            "L.slice(0, L.size() / 2)",
            "M.map(k, k)",
            "M.map(k, M[k])",
            "M.transformList(k, v, k + v)",
            "(has(object.data) ? L : L)",
            "(has(object.metadata) ? L : [])",
            "optional.of(L).orValue([])",
            "N[?0].orValue([])",
            "{'a': L, 'b': L}['a']",
            "L.map(x, [x, x]).flatten()",
            "L.transformList(i, x, x + string(i))",
        ],
        Kind::Lists => &[
            "[L, L]",
            "[['a']]",
            "M.map(k, [k, M[k]])",
            "L.map(x, x.split(','))",
            "L.map(x, [x, x, T])",
            "(N + N)",
            "N.map(l, l + l)",
            "N.filter(l, l.size() > 1)",
            "(has(object.metadata) ? N : [])",
        ],
        Kind::Map => &[
            "{'a': T, 'b': T}",
            "M.transformMap(k, v, v + v)",
            "M.transformMap(k, v, v != 'z', k)",
            "M.transformMapEntry(k, v, {k + '-': v + k})",
            "(has(object.metadata) ? M : {})",
            "optional.of(M).orValue({})",
            "[M, M][0]",
        ],
    }
}

const VALIDATIONS: [&str; 22] = [
    "!T.contains('zzzzzzzzzzzz')",
    "T.startsWith('zz')",
    "T.endsWith(T)",
    "T == T",
    "T.matches('^[a-z]+z$')",
    "T.size() > 3",
    "L.all(x, !x.contains('zzzzzzzzzzz'))",
    "L.all(x, x != 'zz')",
    "['a', 'b', 'c'].all(w, L.all(x, !x.startsWith(w)))",
    "L.exists(x, x.matches('zz'))",
    "'zz' in L",
    "L == L",
    "L.isSorted() || true",
    "L.indexOf('zz') == -1",
    "N.all(l, l.all(x, x != 'zz'))",
    "N.all(l, l.size() < 1000 && !l.join('').contains('zz'))",
    "M.all(k, v, !v.contains('zzzzzzzzzzzzzz') && k != 'zz')",
    "M.all(k, !k.contains('zzzzzzzzzzzzzz'))",
    "M.all(k, !M[k].contains('zzzzzzzzzzzzzz'))",
    "L.all(x, !T.contains(x + 'zz'))",
    "sets.intersects(L, L) || true",
    "L.map(x, x.size()).sum() > 3",
];

struct Generator<'a> {
    random: Random,
    roots: &'a [(Kind, &'static str)],
    variables: Vec<(Kind, String)>,
}

impl Generator<'_> {
    fn value(&mut self, kind: Kind, depth: usize) -> String {
        let variables = self.variables.iter().filter(|(of, _)| *of == kind);
        let names: Vec<String> = variables.map(|(_, name)| name.clone()).collect();
        if !names.is_empty() && self.random.below(3) > 0 {
            let n = self.random.below(names.len());
            return format!("variables.{}", names[n]);
        }
        let roots: Vec<_> = self.roots.iter().filter(|(of, _)| *of == kind).collect();
        if !roots.is_empty() && (depth == 0 || self.random.below(3) == 0) {
            return roots[self.random.below(roots.len())].1.to_owned();
        }
        if depth == 0 {
            return templates(kind)[0].replace(['T', 'L', 'N', 'M'], "''");
        }
        let template = self.random.one_of(templates(kind));
        self.filled(template, depth - 1)
    }

    /// Replaces the placeholders of `template` with expressions. A placeholder is a letter without adjacent letters and
    /// digits.
    fn filled(&mut self, template: &str, depth: usize) -> String {
        let chars: Vec<char> = template.chars().collect();
        let is_letter = |n: Option<usize>| {
            let c = n.and_then(|n| chars.get(n));
            c.is_some_and(char::is_ascii_alphanumeric)
        };
        let mut filled = String::new();
        for (n, c) in chars.iter().enumerate() {
            let placeholders = "TLNM".chars().zip(KINDS);
            let mut kinds = placeholders.filter(|(placeholder, _)| placeholder == c);
            let is_alone = !is_letter(n.checked_sub(1)) && !is_letter(Some(n + 1));
            match kinds.next().filter(|_| is_alone) {
                Some((_, kind)) => filled += &self.value(kind, depth),
                None => filled.push(*c),
            }
        }
        filled
    }
}

fn generated(seed: u64, roots: &[(Kind, &'static str)]) -> Json {
    let mut generator = Generator {
        random: Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1),
        roots,
        variables: Vec::new(),
    };
    let mut variables = Vec::new();
    for n in 0..5 {
        let kind = KINDS[generator.random.below(KINDS.len())];
        let template = generator.random.one_of(templates(kind));
        let expression = generator.filled(template, 2);
        let name = format!("v{n}");
        variables.push(json!({"name": name, "expression": expression}));
        generator.variables.push((kind, name));
    }
    let validation = generator.random.one_of(&VALIDATIONS);
    let validation = generator.filled(validation, 1);
    json!({
        "matchConstraints": {"resourceRules": [{
            "apiGroups": ["*"], "apiVersions": ["*"], "operations": ["*"], "resources": ["*"],
        }]},
        "variables": variables,
        "validations": [{"expression": validation}],
    })
}

fn text(n: usize) -> String {
    "abc,de".chars().cycle().take(n).collect()
}

/// Returns config maps of about `n` bytes.
fn config_maps(n: usize) -> Vec<Json> {
    let config_map = |data: Vec<(String, String)>| {
        let data: serde_json::Map<_, _> = data
            .into_iter()
            .map(|(key, value)| (key, json!(value)))
            .collect();
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    };
    let entries = |n_entries: usize, length: usize| {
        let entry = |n: usize| (format!("k{n}"), text(length));
        (0..n_entries).map(entry).collect::<Vec<_>>()
    };
    let n = n - 80;
    let mut mixed = entries(n / 24, 0);
    mixed.push(("long".to_owned(), text(n / 2)));
    vec![
        config_map(entries(n / 11, 0)),
        config_map(entries(1, n - 10)),
        config_map(vec![("k1".to_owned(), ",".repeat(n - 10))]),
        config_map(vec![("k".repeat(n / 2), "a".repeat(n / 2 - 10))]),
        config_map(entries(n / 60, 45)),
        config_map(mixed),
    ]
}

/// Returns pods of about `n` bytes.
fn pods(n: usize) -> Vec<Json> {
    let pod = |containers: Vec<Json>, annotation: String| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": "a", "annotations": {"k1": annotation}},
            "spec": {"containers": containers},
        })
    };
    let container = |n: usize, args: Vec<String>| json!({"name": format!("c{n}"), "args": args});
    let args = |n: usize, length: usize| (0..n).map(|_| text(length)).collect::<Vec<_>>();
    let n = n - 150;
    let several = |n_containers: usize, n_args: usize, length: usize| {
        let one = |n: usize| container(n, args(n_args, length));
        (0..n_containers).map(one).collect::<Vec<_>>()
    };
    vec![
        pod(several(n / 27, 0, 0), String::new()),
        pod(several(1, n / 3 - 10, 0), String::new()),
        pod(several(1, 1, n - 40), String::new()),
        pod(several(n / 100, 3, 20), String::new()),
        pod(several(n / 54, 0, 0), text(n / 2)),
        pod(several(1, n / 8, 0), text(n / 2)),
    ]
}

const CONFIG_MAP: [(Kind, &str); 5] = [
    (Kind::Map, "object.?data.orValue({})"),
    (Kind::Map, "object.data"),
    (Kind::List, "object.data.map(k, object.data[k])"),
    (Kind::Text, "object.metadata.name"),
    (Kind::Text, "object.?data.k1.orValue('none')"),
];

const POD: [(Kind, &str); 6] = [
    (Kind::Map, "object.metadata.?annotations.orValue({})"),
    (Kind::List, "object.spec.containers.map(c, c.name)"),
    (Kind::List, "object.spec.containers[0].?args.orValue([])"),
    (
        Kind::Lists,
        "object.spec.containers.map(c, c.?args.orValue([]))",
    ),
    (Kind::Text, "object.metadata.annotations['k1']"),
    (Kind::Text, "object.spec.containers[0].name"),
];

/// The measured cost of the validations and their variables does not exceed the estimate for objects of the same size.
#[test]
fn measured_cost_does_not_exceed_estimate() {
    let version = KubernetesVersion::DEFAULT;
    let schemas = Builtin::load(version).unwrap();
    let sizes = [2_000, 8_000];
    let seeds = 40;
    let (mut n_bounded, mut n_measured) = (0, 0);
    let mut failures = Vec::new();
    for (kind, resource, roots, objects) in [
        (
            "ConfigMap",
            "configmaps",
            &CONFIG_MAP[..],
            config_maps as fn(usize) -> Vec<Json>,
        ),
        ("Pod", "pods", &POD[..], pods),
    ] {
        let gvk = Gvk::new("", "v1", kind);
        let gvr = Gvr::new("", "v1", resource);
        let requests: Vec<_> = sizes
            .iter()
            .flat_map(|n| objects(*n))
            .map(|object| {
                let n_bytes = i64::try_from(object.to_string().len()).unwrap();
                let request = AdmissionRequest::create(gvr.clone(), Object::new(&object));
                (n_bytes, request)
            })
            .collect();
        for seed in 1..=seeds {
            let spec = generated(seed, roots);
            let policy = json!({"metadata": {"name": "p"}, "spec": spec});
            let policy: ValidatingAdmissionPolicy = serde_json::from_value(policy).unwrap();
            let compiled = CompiledPolicy::new(&policy);
            let costs = PolicyCosts::new(&compiled, &[&gvk], schemas);
            let [stage] = &costs.stages[..] else {
                panic!("{costs:?}")
            };
            let Some(worst) = &stage.worst else {
                continue;
            };
            n_bounded += usize::from(worst.usual_object_cost().is_some());
            let admission = Admission::from_compiled(&compiled);
            let params = ParamList::default();
            let context = ReviewContext::new(&params, &None, Arc::new(AuthorizerList::default()));
            for (n_bytes, request) in &requests {
                let evaluated = admission.evaluate(request, (&gvr, &gvk), None, None, &context);
                let Some(Ok(used)) = evaluated.costs.validations.map(|cost| cost.used) else {
                    continue;
                };
                let (estimate, _) = worst
                    .by_size()
                    .find(|(_, of_bytes)| of_bytes >= n_bytes)
                    .unwrap();
                n_measured += 1;
                if used > estimate || used > worst.estimate.max {
                    failures.push(format!(
                        "{kind} of {n_bytes} bytes, seed {seed}: {used} > {estimate}: {spec:#}"
                    ));
                    break;
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}: {}", failures.len(), failures[0]);
    assert!(
        n_bounded > 50 && n_measured > 600,
        "{n_bounded} {n_measured}"
    );
}
