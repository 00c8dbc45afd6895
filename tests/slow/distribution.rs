//! Tests how users install and run the plugin: the krew manifest, the GitHub Action, the pre-commit hook, and
//! completion scripts. The scripts run locally, without krew, GitHub and pre-commit.
#![expect(
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "tests fail by panicking"
)]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

const POLICY: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: misspelt}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [apps], apiVersions: [v1], operations: [CREATE], resources: [deployments]}
  validations:
  - expression: object.spec.replica <= 50
";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn yaml(path: &str) -> Value {
    goyaml::to_json(&fs::read_to_string(root().join(path)).unwrap()).unwrap()
}

fn directory(name: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("distribution-{name}"));
    let _ = fs::remove_dir_all(&path);
    fs::create_dir_all(&path).unwrap();
    path
}

/// Returns the environment variable PATH, extended by the directory of the plugin.
fn path() -> String {
    let plugin = Path::new(env!("CARGO_BIN_EXE_kubectl-vap"))
        .parent()
        .unwrap();
    format!("{}:{}", plugin.display(), std::env::var("PATH").unwrap())
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

fn keys(value: &Value) -> BTreeSet<String> {
    let keys = value.as_object().unwrap().keys();
    keys.cloned().collect()
}

/// Asserts that the manifest meets krew's requirements.
///
/// Source: krew `internal/index/validation/validate.go`, `ValidatePlugin`, `validatePlatform`; `pkg/constants`.
fn check_krew(manifest: &Value) {
    assert_eq!(
        manifest["apiVersion"],
        "krew.googlecontainertools.github.com/v1alpha2"
    );
    assert_eq!(manifest["kind"], "Plugin");
    assert_eq!(manifest["metadata"]["name"], "vap");
    let spec = &manifest["spec"];
    let version = spec["version"].as_str().unwrap();
    let numbers = version.strip_prefix('v').unwrap().split('.');
    let numbers: Vec<u32> = numbers.map(|number| number.parse().unwrap()).collect();
    assert_eq!(numbers.len(), 3, "{version}");
    let short = spec["shortDescription"].as_str().unwrap();
    assert!(
        !short.is_empty() && short.len() <= 50 && !short.contains('\n'),
        "{short}"
    );
    assert!(!short.ends_with('.') && !spec["description"].as_str().unwrap().is_empty());
    assert!(spec["homepage"].as_str().unwrap().starts_with("https://"));
    let platforms = spec["platforms"].as_array().unwrap();
    assert!(!platforms.is_empty());
    let mut seen = BTreeSet::new();
    for platform in platforms {
        let fields = ["selector", "uri", "sha256", "bin"].map(str::to_owned);
        assert_eq!(keys(platform), fields.into());
        let labels = &platform["selector"]["matchLabels"];
        let (os, arch) = (
            labels["os"].as_str().unwrap(),
            labels["arch"].as_str().unwrap(),
        );
        assert!(["linux", "darwin", "windows"].contains(&os) && ["amd64", "arm64"].contains(&arch));
        assert!(seen.insert((os, arch)), "{os} {arch} twice");
        let sum = platform["sha256"].as_str().unwrap();
        assert!(
            sum.len() == 64 && sum.chars().all(|c| matches!(c, '0'..='9' | 'a'..='f')),
            "{sum}"
        );
        let uri = platform["uri"].as_str().unwrap();
        assert!(
            uri.starts_with("https://") && uri.ends_with(".tar.gz"),
            "{uri}"
        );
        let bin = platform["bin"].as_str().unwrap();
        let plugin = if os == "windows" {
            "kubectl-vap.exe"
        } else {
            "kubectl-vap"
        };
        assert_eq!(bin, plugin);
    }
}

#[test]
fn krew_manifest_lists_existing_archives() {
    let archives = directory("krew");
    let version = env!("CARGO_PKG_VERSION");
    let krew = || {
        let mut command = Command::new(root().join("dev"));
        command
            .args(["krew", "https://example.com/v1/"])
            .env("VAP_DIST", &archives);
        command.output().unwrap()
    };
    // The script fails if there are no archives.
    assert!(!krew().status.success());
    for (platform, content) in [
        ("linux_amd64", "a"),
        ("windows_amd64", "b"),
        ("darwin_arm64", "c"),
    ] {
        let name = format!("kubectl-vap_v{version}_{platform}.tar.gz");
        fs::write(archives.join(name), content).unwrap();
    }
    let output = krew();
    assert!(output.status.success(), "{output:?}");
    let manifest = goyaml::to_json(str::from_utf8(&output.stdout).unwrap()).unwrap();
    check_krew(&manifest);
    let platforms = manifest["spec"]["platforms"].as_array().unwrap();
    assert_eq!(platforms.len(), 3);
    assert_eq!(
        platforms[0]["uri"],
        format!("https://example.com/v1/kubectl-vap_v{version}_linux_amd64.tar.gz").as_str()
    );
    // The SHA-256 of the archive's content, "a".
    assert_eq!(
        platforms[0]["sha256"],
        "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb"
    );
    // The script warns about platforms without an archive.
    assert!(
        text(&output.stderr).contains("warning: kubectl-vap_v"),
        "{output:?}"
    );
}

#[test]
fn unsupported_platform_error_lists_supported_platforms() {
    let archive = |target: &str| {
        let command = Command::new(root().join("dev"))
            .args(["archive", target])
            .output();
        command.unwrap()
    };
    let unknown = archive("riscv64-unknown-none");
    assert!(
        text(&unknown.stderr).contains("there are no releases for"),
        "{unknown:?}"
    );
    let listed = text(&archive("--list").stdout);
    for platform in [
        "linux amd64",
        "linux arm64",
        "darwin amd64",
        "darwin arm64",
        "windows amd64",
    ] {
        assert!(listed.contains(platform), "{listed}");
    }
}

#[test]
fn action_uses_exactly_its_declared_inputs() {
    let action = yaml("action.yml");
    let text = fs::read_to_string(root().join("action.yml")).unwrap();
    let declared = keys(&action["inputs"]);
    let used = text.split("${{ inputs.").skip(1);
    let used: BTreeSet<String> = used
        .map(|rest| rest.split(' ').next().unwrap().to_owned())
        .collect();
    assert_eq!(declared, used);
    for input in &declared {
        let input = &action["inputs"][input.as_str()];
        assert!(
            input["description"].is_string() && input["default"].is_string(),
            "{input:?}"
        );
    }
    assert_eq!(action["runs"]["using"], "composite");
    for step in action["runs"]["steps"].as_array().unwrap() {
        // Scripts must read inputs from the environment, because interpolated inputs could inject code.
        assert!(!step["run"].as_str().unwrap().contains("${{"), "{step:?}");
        let script = step["run"].as_str().unwrap().trim_matches('"');
        let script = script.strip_prefix("$GITHUB_ACTION_PATH/").unwrap();
        assert!(root().join(script).is_file(), "{script}");
    }
}

/// Runs a script of the GitHub Action with the environment variables `inputs`.
fn step(script: &str, folder: &Path, inputs: &[(&str, &str)]) -> Output {
    let mut command = Command::new(root().join(".github/actions").join(script));
    command.current_dir(folder).env("PATH", path());
    command
        .env("GITHUB_ACTION_PATH", root())
        .env("RUNNER_TEMP", folder.join("temp"));
    command.env("GITHUB_PATH", folder.join("github-path"));
    command.env("GITHUB_OUTPUT", folder.join("github-output"));
    command.envs(inputs.iter().copied());
    command.output().unwrap()
}

#[test]
fn action_ignores_toolchain_of_calling_repository() {
    let folder = directory("action-build");
    // The repository that uses the action may have its own toolchain file.
    fs::write(
        folder.join("rust-toolchain.toml"),
        "[toolchain]\nchannel = \"1.0\"\n",
    )
    .unwrap();
    let programs = folder.join("programs");
    fs::create_dir(&programs).unwrap();
    let cargo = programs.join("cargo");
    let script = "#!/bin/sh\npwd > \"$RUNNER_TEMP/where\"\nwhile [ \"$1\" != --root ]; do shift; done\n\
                  ln -s \"$(command -v kubectl-vap)\" \"$2/bin/kubectl-vap\"\n";
    fs::write(&cargo, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&cargo, mode).unwrap();
    let path_of_step = format!("{}:{}", programs.display(), path());
    let output = step("install.sh", &folder, &[("PATH", &path_of_step)]);
    assert!(output.status.success(), "{output:?}");
    assert!(
        text(&output.stdout).starts_with("kubectl-vap "),
        "{output:?}"
    );
    let place = fs::read_to_string(folder.join("temp/where")).unwrap();
    assert_eq!(place.trim(), root().to_str().unwrap());
    let added = fs::read_to_string(folder.join("github-path")).unwrap();
    assert!(
        Path::new(added.trim()).join("kubectl-vap").exists(),
        "{added}"
    );
}

#[test]
fn check_step_of_action_sets_outputs() {
    let folder = directory("action");
    fs::create_dir(folder.join("with space")).unwrap();
    fs::write(folder.join("with space/policy.yaml"), POLICY).unwrap();
    let paths = ("INPUT_PATHS", "\n  \nwith space\r\n");
    let output = step(
        "check.sh",
        &folder,
        &[
            paths,
            ("INPUT_SARIF_FILE", "vap.sarif"),
            ("INPUT_STRICT", "true"),
        ],
    );
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let out = text(&output.stdout);
    assert!(
        out.contains("::warning file=with space/policy.yaml,line=9,"),
        "{out}"
    );
    let sarif = fs::read_to_string(folder.join("vap.sarif")).unwrap();
    let sarif: serde_json::Value = serde_json::from_str(&sarif).unwrap();
    let result = &sarif["runs"][0]["results"][0];
    assert_eq!(
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"],
        "with%20space/policy.yaml"
    );
    assert_eq!(
        result["partialFingerprints"]["vapFinding/v1"]
            .as_str()
            .unwrap()
            .len(),
        16
    );
    assert_eq!(
        fs::read_to_string(folder.join("github-output")).unwrap(),
        "exit-status=1\n"
    );

    let newer = [
        ("INPUT_PATHS", "with space"),
        ("INPUT_ARGS", "--exit-zero\n"),
        ("INPUT_KUBERNETES_VERSION", "1.33"),
    ];
    assert_eq!(step("check.sh", &folder, &newer).status.code(), Some(0));
    assert_eq!(
        step("check.sh", &folder, &[("INPUT_PATHS", " ")])
            .status
            .code(),
        Some(2)
    );
    let missing = step(
        "check.sh",
        &folder,
        &[("INPUT_PATHS", "nowhere"), ("INPUT_SARIF_FILE", "x.sarif")],
    );
    assert_eq!(missing.status.code(), Some(2), "{missing:?}");
    let strict = step(
        "check.sh",
        &folder,
        &[("INPUT_PATHS", "."), ("INPUT_STRICT", "yes")],
    );
    assert_eq!(strict.status.code(), Some(2));
}

#[test]
fn install_step_of_action_verifies_checksum() {
    let folder = directory("install");
    let plugin = folder.join("kubectl-vap");
    fs::copy(env!("CARGO_BIN_EXE_kubectl-vap"), &plugin).unwrap();
    let tar = Command::new("tar")
        .args(["-czf", "archive.tar.gz", "kubectl-vap"])
        .current_dir(&folder)
        .status();
    assert!(tar.unwrap().success());
    let archive = folder.join("archive.tar.gz");
    let sum = Command::new("sha256sum").arg(&archive).output().unwrap();
    let sum = text(&sum.stdout).split(' ').next().unwrap().to_owned();
    let url = format!("file://{}", archive.display());
    let url = ("INPUT_ARCHIVE_URL", url.as_str());
    let output = step(
        "install.sh",
        &folder,
        &[url, ("INPUT_ARCHIVE_SHA256", &sum)],
    );
    assert!(output.status.success(), "{output:?}");
    let bin = fs::read_to_string(folder.join("github-path")).unwrap();
    assert!(Path::new(bin.trim()).join("kubectl-vap").is_file(), "{bin}");
    let wrong = sum.replace(|c: char| c.is_ascii_digit(), "0");
    let output = step(
        "install.sh",
        &folder,
        &[url, ("INPUT_ARCHIVE_SHA256", &wrong)],
    );
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(text(&output.stdout).starts_with("::error::the SHA-256 of the archive is "));
    assert_eq!(step("install.sh", &folder, &[url]).status.code(), Some(2));
}

#[test]
fn pre_commit_hooks_check_repository() {
    let hooks = yaml(".pre-commit-hooks.yaml");
    let folder = directory("hooks");
    fs::write(folder.join("values.yaml"), "replicas: 3\n").unwrap();
    fs::write(folder.join("template.yaml"), "{{ .Values.x }}\n").unwrap();
    for hook in hooks.as_array().unwrap() {
        let text = |key: &str| hook[key].as_str().unwrap();
        assert!(text("id").starts_with("kubectl-vap-check") && !text("name").is_empty());
        assert!(["rust", "system"].contains(&text("language")));
        assert_eq!(hook["pass_filenames"], false);
        let run = || {
            let args = hook["args"]
                .as_array()
                .unwrap()
                .iter()
                .map(|arg| arg.as_str().unwrap());
            let words = text("entry").split(' ').chain(args).collect::<Vec<_>>();
            let command = Command::new(words[0])
                .args(&words[1..])
                .current_dir(&folder)
                .env("PATH", path())
                .output();
            command.unwrap().status.code()
        };
        // YAML files without manifests are ignored.
        let _ = fs::remove_file(folder.join("policy.yaml"));
        assert_eq!(run(), Some(0));
        fs::write(folder.join("policy.yaml"), POLICY).unwrap();
        assert_eq!(run(), Some(1));
    }
}

#[test]
fn completion_scripts_are_valid_shell() {
    let folder = directory("completion");
    for shell in ["bash", "zsh", "fish", "powershell", "kubectl"] {
        let output = Command::new(env!("CARGO_BIN_EXE_kubectl-vap"))
            .args(["completion", shell])
            .output();
        let output = output.unwrap();
        assert!(
            output.status.success() && !output.stdout.is_empty(),
            "{output:?}"
        );
        let script = folder.join(shell);
        fs::write(&script, &output.stdout).unwrap();
        if ["bash", "kubectl"].contains(&shell) {
            let checked = Command::new("bash")
                .arg("-n")
                .arg(&script)
                .output()
                .unwrap();
            assert!(checked.status.success(), "{checked:?}");
        }
    }
    let script = Command::new("sh")
        .arg(folder.join("kubectl"))
        .args(["status", "--no-h"])
        .env("PATH", path())
        .output();
    assert!(text(&script.unwrap().stdout).starts_with("--no-headers\t"));
    // Bash calls the completion function with three arguments: the program, the current word, and the previous word.
    let words = "source ./bash; COMP_WORDS=(kubectl-vap che); COMP_CWORD=1; _kubectl-vap kubectl-vap che kubectl-vap; \
                 echo \"${COMPREPLY[@]}\"";
    let bash = Command::new("bash")
        .args(["-c", words])
        .current_dir(&folder)
        .output()
        .unwrap();
    assert_eq!(text(&bash.stdout).trim(), "check", "{bash:?}");
}
