//! Checks files of the repository:
//!
//! - Several files contain the same facts (alert rules, versions, recipes of `dev`). They must agree.
//! - Alerts must have runbooks, tests and existing metrics.
//! - Permissions in the manifests must be minimal.
//! - `deny.toml` must have no expired deadlines.
//! - Source files must follow conventions.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::path::Path;

use policy::subject::SubjectKind;
use serde_json::Value;
use vap_status_controller::schema::Builtin;
use vap_status_controller::status::condition::ConditionType;
use vap_status_controller::version::KubernetesVersion;

use crate::dashboard::{panels, queries};

pub(crate) fn read(path: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

pub(crate) fn yaml(path: &str) -> Value {
    goyaml::to_json(&read(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn documents(path: &str) -> Vec<Value> {
    let parse = |text: &str| -> Value {
        goyaml::to_json(text).unwrap_or_else(|error| panic!("{path}: {error}"))
    };
    read(path).split("\n---\n").map(parse).collect()
}

/// Returns the strings of a YAML list. Returns an empty list if the value is absent.
fn strings(value: &Value) -> Vec<String> {
    let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
    items
        .iter()
        .filter_map(Value::as_str)
        .map(str::to_owned)
        .collect()
}

#[test]
fn prometheus_rule_equals_tested_alert_rules() {
    let groups = &yaml("config/alerts/rules.yaml")["groups"];
    assert!(groups.is_array());
    assert_eq!(
        groups,
        &yaml("config/alerts/prometheusrule.yaml")["spec"]["groups"],
        "the groups of config/alerts/rules.yaml and prometheusrule.yaml differ"
    );
}

/// Returns all alerts in `config/alerts/rules.yaml`.
pub(crate) fn alerts() -> Vec<Value> {
    let rules = yaml("config/alerts/rules.yaml");
    let groups = rules["groups"].as_array().unwrap();
    let alerts = groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap());
    alerts.cloned().collect()
}

#[test]
fn every_alert_is_tested() {
    let tests = yaml("config/alerts/tests.yaml");
    let list = |value: &Value| value.as_array().cloned().unwrap_or_default();
    let tests = list(&tests["tests"]);
    let of_alerts: Vec<Value> = tests
        .iter()
        .flat_map(|it| list(&it["alert_rule_test"]))
        .collect();
    let of_queries = tests.iter().flat_map(|it| list(&it["promql_expr_test"]));
    let samples: Vec<Value> = of_queries.flat_map(|it| list(&it["exp_samples"])).collect();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        let is_of_alert = |test: &&Value| test["alertname"] == name;
        let expected = || {
            of_alerts
                .iter()
                .filter(is_of_alert)
                .map(|it| list(&it["exp_alerts"]))
        };
        let label = format!("alertname=\"{name}\"");
        let fires = expected().any(|alerts| !alerts.is_empty())
            || samples
                .iter()
                .any(|it| it["labels"].as_str().is_some_and(|it| it.contains(&label)));
        assert!(fires, "no test expects {name} to fire");
        let is_silent = expected().any(|alerts| alerts.is_empty());
        assert!(is_silent, "no test expects {name} to be silent");
        for annotation in ["summary", "description"] {
            assert!(
                alert["annotations"][annotation].is_string(),
                "{name}: no {annotation}"
            );
        }
        assert!(
            alert["labels"]["severity"].is_string(),
            "{name}: no severity"
        );
    }
}

#[test]
fn every_alert_has_runbook_and_row_in_alert_list() {
    let list = read("docs/alerts.md");
    let home = read("release/home");
    let docs = home.lines().find_map(|line| line.strip_prefix("docs="));
    let docs = docs.unwrap();
    let mut names = BTreeSet::new();
    for alert in alerts() {
        let name = alert["alert"].as_str().unwrap();
        let severity = alert["labels"]["severity"].as_str().unwrap();
        assert_eq!(
            alert["annotations"]["runbook_url"].as_str(),
            Some(format!("{docs}/runbooks/{name}.md").as_str()),
        );
        let page = read(&format!("docs/runbooks/{name}.md"));
        assert!(page.starts_with(&format!("# {name}\n\nSeverity: {severity}.\n")));
        let sections: Vec<_> = page
            .lines()
            .filter_map(|line| line.strip_prefix("## "))
            .collect();
        let wanted = [
            "Meaning",
            "Effect on requests",
            "Diagnosis",
            "What to do",
            "Silencing",
        ];
        assert_eq!(sections, wanted, "docs/runbooks/{name}.md");
        let row = format!("| [`{name}`](runbooks/{name}.md) | {severity} | ");
        assert!(list.contains(&row), "docs/alerts.md has no row `{row}`");
        names.insert(format!("{name}.md"));
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/runbooks");
    let pages: BTreeSet<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert_eq!(
        pages, names,
        "the pages in docs/runbooks and the alerts differ"
    );
}

fn metric_names(query: &str) -> BTreeSet<String> {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    query
        .split(|c| !is_name(c))
        .filter(|word| word.starts_with("vap_"))
        .map(str::to_owned)
        .collect()
}

/// Returns the source files that register metrics.
fn metric_sources() -> String {
    let files = ["mod", "policies", "scrape"];
    let files = files.map(|name| read(&format!("src/telemetry/metrics/{name}.rs")));
    files.concat()
}

/// Returns the names under which the metric `name` may be registered: without `vap_`, and with or without its suffix.
fn bases(name: &str) -> impl Iterator<Item = &str> {
    let name = name.strip_prefix("vap_").unwrap();
    let suffixes = ["", "_total", "_bucket", "_info"];
    suffixes
        .into_iter()
        .filter_map(move |suffix| name.strip_suffix(suffix))
}

#[test]
fn metrics_page_lists_registered_metrics() {
    let sources = metric_sources();
    // A call that registers a metric spans several lines. One line contains only the name.
    let registered: BTreeSet<_> = sources
        .lines()
        .filter_map(|line| line.trim().strip_prefix('"')?.strip_suffix("\","))
        .filter(|name| name.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'))
        .collect();
    assert!(registered.len() > 25, "{registered:?}");
    let page = read("docs/metrics.md");
    let listed = metric_names(&page);
    for name in &listed {
        let is_registered = bases(name).any(|base| registered.contains(base));
        assert!(is_registered, "docs/metrics.md: no metric {name}");
    }
    for name in registered {
        let is_listed = listed
            .iter()
            .any(|listed| bases(listed).any(|base| base == name));
        assert!(is_listed, "docs/metrics.md does not list `{name}`");
    }
}

#[test]
fn alerts_and_dashboard_use_existing_metrics() {
    let sources = metric_sources();
    let exists = |name: &str| bases(name).any(|base| sources.contains(&format!("\"{base}\"")));
    let exprs = alerts()
        .into_iter()
        .map(|alert| alert["expr"].as_str().unwrap().to_owned());
    let mut n_names = 0;
    for query in panels().iter().flat_map(queries).chain(exprs) {
        for name in metric_names(&query) {
            assert!(exists(&name), "no metric {name}: {query}");
            n_names += 1;
        }
    }
    assert!(n_names > 50);
}

/// Critical alerts must require a binding, because a policy without a binding affects no requests.
#[test]
fn critical_alerts_require_bound_policies() {
    for alert in alerts() {
        if alert["labels"]["severity"].as_str() == Some("critical") {
            let expr = alert["expr"].as_str().unwrap();
            assert!(expr.contains(
                "and on (cluster, kind, policy) max by (cluster, kind, policy) (vap_policy_info{"
            ));
            assert!(
                expr.contains("actions!~\"|unknown\"") || expr.contains("Deny"),
                "{expr}"
            );
        }
    }
}

/// Without a `mod` declaration, a file is not compiled and its tests never run.
#[test]
fn each_source_file_is_declared_as_module() {
    let mut files = Vec::new();
    rust_files("src", &mut files);
    rust_files("crates", &mut files);
    let declares = |file: &str, name: &str| {
        let source = read(file);
        source
            .lines()
            .any(|line| line.trim_start().ends_with(&format!("mod {name};")))
    };
    let mut n_modules = 0;
    for file in &files {
        let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let (folder, name) = module.rsplit_once('/').unwrap();
        let is_program = folder.ends_with("/bin") || folder.ends_with("/examples");
        if ["lib", "main"].contains(&name) || is_program {
            continue;
        }
        let parents = ["mod.rs", "lib.rs", "main.rs"].map(|parent| format!("{folder}/{parent}"));
        let mut parents = parents.iter().filter(|parent| files.contains(parent));
        assert!(
            parents.any(|parent| declares(parent, name)),
            "no module declares {file}"
        );
        n_modules += 1;
    }
    assert!(n_modules > 500, "{n_modules}");
}

/// Cargo's test discovery is disabled. Tests in a file that belongs to no program would never run.
#[test]
fn test_files_belong_to_a_program() {
    let mut files = Vec::new();
    rust_files("tests", &mut files);
    files.retain(|file| !file.starts_with("tests/support/"));
    assert!(files.len() > 15, "{files:?}");
    for file in files {
        let module = file.trim_end_matches(".rs").trim_end_matches("/mod");
        let path: Vec<_> = module.split('/').collect();
        let (place, entry) = match path[..] {
            [_, folder, "main"] => (
                "Cargo.toml",
                format!("\npath = \"tests/{folder}/main.rs\"\n"),
            ),
            [_, "fast", name] => ("tests/fast/main.rs", format!("\nmod {name};\n")),
            [_, "slow", name] => ("tests/slow/main.rs", format!("\nmod {name};\n")),
            [_, name] => ("Cargo.toml", format!("[[test]]\nname = \"{name}\"\n")),
            _ => continue,
        };
        assert!(read(place).contains(&entry), "{file}");
    }
}

#[test]
fn help_of_dev_lists_all_recipes() {
    let dev = read("dev");
    let listed: BTreeSet<_> = dev
        .lines()
        .filter_map(|line| line.strip_prefix("#? ")?.split(' ').next())
        .collect();
    let written: BTreeSet<_> = dev
        .lines()
        .filter_map(|line| Some(line.strip_prefix("recipe_")?.split_once('(')?.0))
        .filter(|name| *name != "list")
        .collect();
    assert!(listed.contains("ci"));
    assert_eq!(
        listed, written,
        "the list of `dev` and its functions differ"
    );
}

#[test]
fn go_modules_use_same_kubernetes_version() {
    let version = |folder: &str| {
        let go_mod = read(&format!("{folder}/go.mod"));
        let mut words = go_mod.split_whitespace();
        words.find(|word| *word == "k8s.io/kubernetes").unwrap();
        words.next().unwrap().to_owned()
    };
    let staging = |folder: &str| {
        let go_mod = read(&format!("{folder}/go.mod"));
        let lines = go_mod.lines().map(str::trim);
        let line = lines
            .filter(|line| !line.contains("=>"))
            .find_map(|line| line.strip_prefix("k8s.io/apiserver v0"));
        line.unwrap().trim_end_matches(" // indirect").to_owned()
    };
    let built = version("e2e/controlplane/kubernetes");
    assert_eq!(version("e2e/kubernetes"), built);
    // Kubernetes v1.36.3 corresponds to v0.36.3 of its modules.
    assert_eq!(format!("v1{}", staging("parity/oracle")), built);
}

/// The built-in schemas must be those of the releases in `dev`: one release per supported version. The release of the
/// default version must be that of the end-to-end control plane.
#[test]
fn schemas_of_all_supported_versions_are_built_in() {
    let dev = read("dev");
    let list = dev.split_once("readonly KUBERNETES_VERSIONS=(").unwrap().1;
    let listed: Vec<_> = list.split_once(')').unwrap().0.split_whitespace().collect();
    let built_in = KubernetesVersion::supported().map(|version| {
        let builtin = Builtin::load(version).unwrap();
        builtin.kubernetes().to_owned()
    });
    assert_eq!(listed, built_in.collect::<Vec<_>>());
    let go_mod = read("e2e/controlplane/kubernetes/go.mod");
    let default = Builtin::load(KubernetesVersion::DEFAULT).unwrap();
    let release = default.kubernetes();
    let is_built = go_mod.contains(&format!("k8s.io/kubernetes v{release} "));
    assert!(is_built, "{release}");
}

#[test]
fn skips_in_deny_toml_have_future_deadline() {
    let deny = read("deny.toml");
    let n_skips = deny.matches("{ crate = ").count();
    let deadlines: Vec<_> = deny
        .lines()
        .filter_map(|line| line.trim().strip_prefix("# FIX-DEADLINE: "))
        .collect();
    assert_eq!(
        deadlines.len(),
        n_skips,
        "a skip of deny.toml has no FIX-DEADLINE"
    );
    let today = jiff::Timestamp::now()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .date();
    for deadline in deadlines {
        let date: jiff::civil::Date = deadline.parse().unwrap();
        assert!(
            today <= date,
            "a skip in deny.toml had the deadline {date}: remove the skip, or extend the deadline and give the reason"
        );
    }
}

#[test]
fn chart_accepts_each_condition_that_ready_can_require() {
    let schema = yaml("charts/vap-status-controller/values.schema.json");
    let accepted = strings(&schema["properties"]["readyRequires"]["items"]["enum"]);
    let accepted: BTreeSet<&str> = accepted.iter().map(String::as_str).collect();
    let required = ConditionType::ALL.into_iter().map(ConditionType::as_str);
    assert_eq!(accepted, required.filter(|name| *name != "Ready").collect());
}

#[test]
fn version_of_package_is_used_in_images_and_chart_and_extension() {
    let version = env!("CARGO_PKG_VERSION");
    let image = format!("vap-status-controller:{version}");
    let deployment = yaml("config/controller/deployment.yaml");
    let job = yaml("config/clear/job.yaml");
    for workload in [&deployment, &job] {
        let container = &workload["spec"]["template"]["spec"]["containers"][0];
        assert_eq!(container["image"].as_str(), Some(image.as_str()));
    }
    assert!(read("dev").contains(&image), "dev builds another version");
    let chart = yaml("charts/vap-status-controller/Chart.yaml");
    assert_eq!(chart["version"].as_str(), Some(version));
    assert_eq!(chart["appVersion"].as_str(), Some(version));
    for folder in ["clear", "default"] {
        let kustomization = yaml(&format!("config/{folder}/kustomization.yaml"));
        let labels = &kustomization["labels"][0]["pairs"];
        assert_eq!(labels["app.kubernetes.io/version"].as_str(), Some(version));
    }
    for file in ["package.json", "package-lock.json"] {
        let package = yaml(&format!("editors/vscode/{file}"));
        assert_eq!(package["version"].as_str(), Some(version), "{file}");
    }
}

#[test]
fn cluster_roles_write_only_statuses_and_own_objects() {
    let base = yaml("config/rbac/cluster_role.yaml");
    let followed = [
        "customresourcedefinitions",
        "mutatingadmissionpolicies",
        "mutatingwebhookconfigurations",
        "validatingwebhookconfigurations",
    ];
    let of_followed = followed.map(|resource| {
        documents(&format!("config/components/{resource}/cluster_role.yaml"))[0].clone()
    });
    let rules = std::iter::once(&base)
        .chain(&of_followed)
        .map(|role| role["rules"].as_array().unwrap().iter());
    for rule in rules.flatten() {
        for key in ["apiGroups", "resources", "verbs"] {
            assert!(
                !strings(&rule[key]).contains(&"*".to_owned()),
                "a wildcard: {rule:?}"
            );
        }
        let reads_only = strings(&rule["verbs"])
            .iter()
            .all(|verb| ["get", "list", "watch"].contains(&verb.as_str()));
        let resources = strings(&rule["resources"]);
        let are_statuses = resources
            .iter()
            .all(|resource| resource.ends_with("/status"));
        let ours = |resource: &String| {
            let kinds = SubjectKind::ALL.into_iter();
            let mut objects = kinds.filter_map(|kind| kind.row().status_object);
            objects.any(|object| object.plural == resource)
        };
        let are_ours =
            resources.iter().all(ours) && strings(&rule["apiGroups"]) == ["vap-status.dev"];
        assert_eq!(
            !resources.is_empty() && (are_statuses || are_ours),
            !reads_only,
            "{rule:?}"
        );
    }
}

#[test]
fn leases_and_events_are_written_only_in_their_namespace() {
    let rule = |path: &str, index: usize| documents(path)[0]["rules"][index].clone();
    let namespace = |path: &str| documents(path)[0]["metadata"]["namespace"].clone();

    let lease = "config/rbac/lease.yaml";
    assert_eq!(namespace(lease).as_str(), Some("vap-status-system"));
    assert_eq!(strings(&rule(lease, 0)["verbs"]), ["create"]);
    let held = rule(lease, 1);
    assert_eq!(strings(&held["resourceNames"]), ["vap-status-controller"]);
    assert_eq!(strings(&held["verbs"]), ["get", "update"]);
    assert!(rule(lease, 2).is_null());

    // Source: `k8s.io/client-go` `tools/events/event_recorder.go`, `makeEvent`: events about cluster-scoped objects are
    // in the namespace `default`.
    let events = "config/rbac/events.yaml";
    assert_eq!(namespace(events).as_str(), Some("default"));
    assert_eq!(strings(&rule(events, 0)["verbs"]), ["create", "patch"]);
    assert!(rule(events, 1).is_null());
}

/// The pods must meet the restricted pod security standard. The labels of the namespace also enforce this standard.
///
/// Source: Kubernetes documentation, "Pod Security Standards", Restricted.
#[test]
fn pods_meet_restricted_pod_security_standard() {
    for path in ["config/controller/deployment.yaml", "config/clear/job.yaml"] {
        is_restricted(&yaml(path)["spec"]["template"]["spec"]);
    }
    // The pods set no user, so that OpenShift can assign one. `runAsNonRoot` then needs a numeric user in the image.
    assert!(read("Dockerfile").contains("\nUSER 65532:65532\n"));
    let namespace = yaml("config/controller/namespace.yaml");
    let enforced = &namespace["metadata"]["labels"]["pod-security.kubernetes.io/enforce"];
    assert_eq!(enforced.as_str(), Some("restricted"));
}

#[track_caller]
fn is_restricted(pod: &Value) {
    assert_eq!(pod["securityContext"]["runAsNonRoot"].as_bool(), Some(true));
    assert!(pod["securityContext"]["runAsUser"].is_null());
    let seccomp = &pod["securityContext"]["seccompProfile"]["type"];
    assert_eq!(seccomp.as_str(), Some("RuntimeDefault"));
    for container in pod["containers"].as_array().unwrap() {
        let context = &container["securityContext"];
        assert_eq!(context["allowPrivilegeEscalation"].as_bool(), Some(false));
        assert_eq!(context["readOnlyRootFilesystem"].as_bool(), Some(true));
        assert_eq!(strings(&context["capabilities"]["drop"]), ["ALL"]);
        assert!(context["capabilities"]["add"].is_null());
    }
}

/// Adds the files with the extension in a directory. The paths are relative to the root of the repository.
fn add_files(directory: &str, extension: &str, files: &mut Vec<String>) {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for entry in std::fs::read_dir(root.join(directory)).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        let path = format!("{directory}/{name}");
        if entry.file_type().unwrap().is_dir() {
            add_files(&path, extension, files);
        } else if Path::new(&name).extension() == Some(extension.as_ref()) {
            files.push(path);
        }
    }
}

/// Adds the Rust files in a directory. The paths are relative to the root of the repository.
pub(crate) fn rust_files(directory: &str, files: &mut Vec<String>) {
    add_files(directory, "rs", files);
}

/// Returns the files with the extension in the root and in the source directories of the repository, sorted.
pub(crate) fn files_with_extension(extension: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let entries = std::fs::read_dir(root).unwrap().map(Result::unwrap);
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let mut files: Vec<String> = names
        .filter(|name| Path::new(name).extension() == Some(extension.as_ref()))
        .collect();
    for directory in [
        ".github", "charts", "config", "crates", "crds", "docs", "e2e", "editors", "fuzz",
        "parity", "src", "tests",
    ] {
        add_files(directory, extension, &mut files);
    }
    files.retain(|file| !file.contains("/target/") && !file.contains("/node_modules/"));
    files.sort();
    files
}

pub(crate) fn all_rust_files() -> Vec<String> {
    let directories = [
        "src",
        "crates",
        "tests",
        "parity",
        "e2e",
        "benches",
        "fuzz/src",
        "fuzz/fuzz_targets",
    ];
    let mut files = Vec::new();
    for directory in directories {
        rust_files(directory, &mut files);
    }
    files.sort();
    files
}

/// Returns the numbers of the lines on which a doc comment starts with a question word.
fn questions(source: &str) -> Vec<usize> {
    let mut within = false;
    let mut findings = Vec::new();
    for (n, line) in source.lines().enumerate() {
        let line = line.trim_start();
        let text = line
            .strip_prefix("///")
            .or_else(|| line.strip_prefix("//!"));
        let opens = !within && text.is_some();
        within = text.is_some();
        let text = text.unwrap_or_default();
        if opens && (text.starts_with(" What ") || text.starts_with(" Whether ")) {
            findings.push(n + 1);
        }
    }
    findings
}

/// Doc comments must start with a noun or a verb, so that they are readable in the lists of rustdoc.
#[test]
fn doc_comments_open_with_noun_or_verb() {
    let example = "//! What it is.\n\n/// A noun.\n/// Whether it wraps.\nfn a() {}\n    /// Whether it is.\n";
    assert_eq!(questions(example), [1, 6]);
    let files = all_rust_files();
    assert!(files.len() > 300, "{}", files.len());
    let findings: Vec<_> = files
        .iter()
        .flat_map(|file| {
            let lines = questions(&read(file));
            lines.into_iter().map(move |line| format!("{file}:{line}"))
        })
        .collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
}

/// The maximum number of lines of a source file.
const MAX_LINES: usize = 800;

/// Source files that consist of tables. They may be longer.
const TABLES: [&str; 1] = ["crates/regexp/src/unicode_tables.rs"];

#[test]
fn source_files_are_within_length_limit() {
    let mut files = all_rust_files();
    let n_lines = |file: &str| read(file).lines().count();
    for table in TABLES {
        assert!(
            n_lines(table) > MAX_LINES,
            "{table} is within the limit: remove it from TABLES"
        );
    }
    files.retain(|file| !TABLES.contains(&file.as_str()) && n_lines(file) > MAX_LINES);
    assert!(files.is_empty(), "{}", files.join("\n"));
}

/// A module with submodules must be the file `x/mod.rs`. It must not be `x.rs` in addition to a folder `x`.
#[test]
fn modules_of_folders_are_mod_files() {
    let files = all_rust_files();
    let has_folder = |file: &&String| {
        let folder = file.replace(".rs", "/");
        files.iter().any(|other| other.starts_with(&folder))
    };
    let findings: Vec<_> = files.iter().filter(has_folder).collect();
    assert!(findings.is_empty(), "move to x/mod.rs: {findings:?}");
}

/// Only the two version modules compare versions. All other code reads the availability of rows and the fields of
/// `Behavior`.
#[test]
fn only_version_modules_compare_versions() {
    let is_checked = |file: &String| {
        let is_product = file.starts_with("src/") || file.starts_with("crates/");
        is_product && !file.contains("/tests") && !VERSION_MODULES.contains(&file.as_str())
    };
    let mut findings = Vec::new();
    for file in all_rust_files().iter().filter(|file| is_checked(file)) {
        for (n, line) in read(file).lines().enumerate() {
            let code = line.split("//").next().unwrap_or_default();
            if compares_versions(code) {
                findings.push(format!("{file}:{}: {}", n + 1, line.trim()));
            }
        }
    }
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    for module in VERSION_MODULES {
        let text = read(module);
        let compares = text.lines().any(compares_versions);
        assert!(compares, "{module} compares no versions");
    }
}

const VERSION_MODULES: [&str; 2] = [
    "crates/cel/src/version.rs",
    "crates/kubernetes/src/version/mod.rs",
];

fn compares_versions(code: &str) -> bool {
    const FIELDS: [&str; 6] = [
        "minor",
        "platform",
        "platform()",
        "cel_go",
        "cel_go.0",
        "patch",
    ];
    const VALUES: [&str; 4] = ["CelGo::", "KubernetesVersion::", "V1_", "V0_"];
    [" <= ", " >= ", " == ", " != ", " < ", " > "]
        .iter()
        .any(|operator| {
            code.match_indices(operator).any(|(at, _)| {
                let (left, right) = code.split_at(at);
                let left = left.trim_end();
                let right = right.trim_start_matches(operator);
                FIELDS
                    .iter()
                    .any(|field| left.ends_with(&format!(".{field}")))
                    || VALUES.iter().any(|value| right.starts_with(value))
            })
        })
}
