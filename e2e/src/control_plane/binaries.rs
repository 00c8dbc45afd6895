//! Finds or builds the binaries of the control plane.
//!
//! `KUBEBUILDER_ASSETS` takes precedence. Otherwise, Go builds the binaries from the modules in `e2e/controlplane/`. A
//! cache outside of the checkout stores the binaries for each version.

use std::env;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, anyhow, bail, ensure};

/// The environment variable that names a directory with etcd, kube-apiserver and kubectl, as `setup-envtest` creates
/// it.
pub const ASSETS_VARIABLE: &str = "KUBEBUILDER_ASSETS";

/// The environment variable with the cache directory for built binaries.
pub const CACHE_VARIABLE: &str = "VAP_CONTROL_PLANE_CACHE";

/// The environment variable with the minor version of Kubernetes. The default is 1.36.
const KUBERNETES_VARIABLE: &str = "VAP_E2E_KUBERNETES";

/// The minor versions of Kubernetes that can be built. The first is the default.
const MODULES: [KubernetesModule; 3] = [
    KubernetesModule {
        minor: "1.36",
        folder: "kubernetes",
        go_mod: include_str!("../../controlplane/kubernetes/go.mod"),
    },
    KubernetesModule {
        minor: "1.37",
        folder: "kubernetes-1.37",
        go_mod: include_str!("../../controlplane/kubernetes-1.37/go.mod"),
    },
    KubernetesModule {
        minor: "1.34",
        folder: "kubernetes-1.34",
        go_mod: include_str!("../../controlplane/kubernetes-1.34/go.mod"),
    },
];

struct KubernetesModule {
    minor: &'static str,
    /// The folder in `e2e/controlplane/`.
    folder: &'static str,
    go_mod: &'static str,
}

impl KubernetesModule {
    /// Returns the module that [`KUBERNETES_VARIABLE`] selects.
    fn selected() -> Result<&'static Self> {
        match variable(KUBERNETES_VARIABLE) {
            Some(minor) => Self::by_minor(&minor.to_string_lossy()),
            None => Ok(&MODULES[0]),
        }
    }

    fn by_minor(minor: &str) -> Result<&'static Self> {
        let module = MODULES.iter().find(|module| module.minor == minor);
        module.with_context(|| {
            let minors: Vec<_> = MODULES.iter().map(|module| module.minor).collect();
            format!(
                "{KUBERNETES_VARIABLE} is {minor}, but must be one of {}",
                minors.join(", ")
            )
        })
    }
}

const ETCD_GO_MOD: &str = include_str!("../../controlplane/etcd/go.mod");

/// The binaries of one control plane.
#[derive(Clone, Debug)]
pub struct Binaries {
    directory: PathBuf,
}

impl Binaries {
    /// Finds the binaries, or builds them with Go. The first build takes about ten minutes.
    ///
    /// Blocks the thread, also while another process builds the binaries.
    ///
    /// # Errors
    /// Returns an error with advice if neither the assets nor Go are available, or if the build fails.
    pub fn find_or_build() -> Result<Self> {
        if let Some(directory) = variable(ASSETS_VARIABLE) {
            return Self::from_assets(directory);
        }
        let cache = cache_directory()?;
        let directory = cache.join(cache_key()?);
        if !directory.is_dir() {
            build_once(&cache, &directory)?;
        }
        Ok(Self { directory })
    }

    fn from_assets(directory: PathBuf) -> Result<Self> {
        // The servers run in a different directory, where a relative path is invalid.
        let directory = std::path::absolute(directory).context("current directory")?;
        for name in ["etcd", "kube-apiserver", "kubectl"] {
            ensure!(
                directory.join(name).is_file(),
                "{ASSETS_VARIABLE} is {}, which has no {name}: set it to a directory with etcd, \
                 kube-apiserver and kubectl, or unset it to build them with Go",
                directory.display()
            );
        }
        Ok(Self { directory })
    }

    /// Returns the directory of the binaries.
    #[must_use]
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn etcd(&self) -> PathBuf {
        self.directory.join("etcd")
    }

    pub(crate) fn api_server(&self) -> PathBuf {
        self.directory.join("kube-apiserver")
    }

    pub(crate) fn kubectl(&self) -> PathBuf {
        self.directory.join("kubectl")
    }

    /// Returns the path of kube-controller-manager, which `setup-envtest` does not install.
    pub(crate) fn kcm(&self) -> Result<PathBuf> {
        let path = self.directory.join("kube-controller-manager");
        ensure!(
            path.is_file(),
            "{} has no kube-controller-manager: put one there, or unset {ASSETS_VARIABLE} to build it with Go",
            self.directory.display()
        );
        Ok(path)
    }
}

/// Returns the path in an environment variable. An empty value counts as unset.
fn variable(name: &str) -> Option<PathBuf> {
    env::var_os(name)
        .filter(|value| !value.is_empty())
        .map(PathBuf::from)
}

fn cache_directory() -> Result<PathBuf> {
    if let Some(directory) = variable(CACHE_VARIABLE) {
        // Go runs in a different directory, where a relative path is invalid.
        return std::path::absolute(directory).context("current directory");
    }
    let base = variable("XDG_CACHE_HOME")
        .filter(|path| path.is_absolute())
        .or_else(|| Some(variable("HOME")?.join(".cache")))
        .ok_or_else(|| anyhow!("no place for the control plane binaries: set {CACHE_VARIABLE}"))?;
    Ok(base.join("vap-status-controller").join("controlplane"))
}

/// Returns a cache key with the versions of Kubernetes and etcd, such as `v1.36.3-v3.6.8`.
fn cache_key() -> Result<String> {
    Ok(format!("{}-{}", kubernetes_version()?, etcd_version()?))
}

/// Returns the version of Kubernetes that is built, such as `v1.36.3`.
///
/// # Errors
/// Returns an error if the environment selects an unknown version.
pub fn kubernetes_version() -> Result<&'static str> {
    required_version(KubernetesModule::selected()?.go_mod, "k8s.io/kubernetes")
}

fn etcd_version() -> Result<&'static str> {
    required_version(ETCD_GO_MOD, "go.etcd.io/etcd/server/v3")
}

/// Returns the version of a module in a `go.mod` file.
fn required_version<'a>(go_mod: &'a str, module: &str) -> Result<&'a str> {
    go_mod
        .lines()
        .find_map(|line| {
            let mut words = line
                .split_whitespace()
                .skip_while(|word| *word == "require");
            (words.next() == Some(module))
                .then(|| words.next())
                .flatten()
        })
        .with_context(|| format!("go.mod does not require {module}"))
}

struct Target {
    binary: &'static str,
    /// True if the package is part of Kubernetes.
    is_kubernetes: bool,
    package: &'static str,
}

impl Target {
    /// Returns the folder in `e2e/controlplane/`.
    fn folder(&self) -> Result<&'static str> {
        if self.is_kubernetes {
            Ok(KubernetesModule::selected()?.folder)
        } else {
            Ok("etcd")
        }
    }
}

const TARGETS: [Target; 4] = [
    Target {
        binary: "etcd",
        is_kubernetes: false,
        package: "go.etcd.io/etcd/server/v3",
    },
    Target {
        binary: "kube-apiserver",
        is_kubernetes: true,
        package: "k8s.io/kubernetes/cmd/kube-apiserver",
    },
    Target {
        binary: "kube-controller-manager",
        is_kubernetes: true,
        package: "k8s.io/kubernetes/cmd/kube-controller-manager",
    },
    Target {
        binary: "kubectl",
        is_kubernetes: true,
        package: "k8s.io/kubernetes/cmd/kubectl",
    },
];

/// Builds the binaries into `directory`. Does nothing if another process has built them.
fn build_once(cache: &Path, directory: &Path) -> Result<()> {
    let modules = Path::new(env!("CARGO_MANIFEST_DIR")).join("controlplane");
    check_go(directory)?;
    fs::create_dir_all(cache).with_context(|| format!("create {}", cache.display()))?;
    let lock_path = with_suffix(directory, "lock");
    let lock = File::create(&lock_path).with_context(|| lock_path.display().to_string())?;
    if lock.try_lock().is_err() {
        print_progress("waiting for another process that builds the control plane");
        lock.lock()
            .with_context(|| lock_path.display().to_string())?;
    }
    if directory.is_dir() {
        return Ok(());
    }

    // This process holds the lock, so an existing partial directory is left over from a build that was killed.
    let partial = with_suffix(directory, "partial");
    if partial.exists() {
        fs::remove_dir_all(&partial).with_context(|| partial.display().to_string())?;
    }
    fs::create_dir(&partial).with_context(|| partial.display().to_string())?;
    print_progress(&format!(
        "building the control plane with Go into {}: about 10 minutes, once",
        directory.display()
    ));
    for target in &TARGETS {
        build(target, &modules, &partial, &lock)?;
    }
    fs::rename(&partial, directory).with_context(|| directory.display().to_string())
}

/// Appends a dot and `suffix` to the name of `directory`. (`with_extension` would replace a part of the version.)
fn with_suffix(directory: &Path, suffix: &str) -> PathBuf {
    let mut path = directory.as_os_str().to_owned();
    path.push(".");
    path.push(suffix);
    PathBuf::from(path)
}

fn check_go(directory: &Path) -> Result<()> {
    let output = Command::new("go")
        .arg("version")
        .stdin(Stdio::null())
        .output();
    match output {
        Ok(output) if output.status.success() => Ok(()),
        Err(error) if error.kind() == ErrorKind::NotFound => bail!(
            "no control plane binaries: install Go (https://go.dev/dl) and they are built once into {}, \
             or set {ASSETS_VARIABLE} to a directory with etcd, kube-apiserver and kubectl",
            directory.display()
        ),
        Ok(output) => bail!(
            "`go version` failed with {}: {}",
            output.status,
            String::from_utf8_lossy(&output.stderr).trim()
        ),
        Err(error) => Err(error).context("go version"),
    }
}

fn build(target: &Target, modules: &Path, partial: &Path, lock: &File) -> Result<()> {
    let begin = Instant::now();
    let folder = target.folder()?;
    let status = Command::new("go")
        .arg("build")
        .args(["-trimpath", "-ldflags", &linker_flags(target)?, "-o"])
        .arg(partial.join(target.binary))
        .arg(target.package)
        .current_dir(modules.join(folder))
        .env("CGO_ENABLED", "0")
        .env("GOWORK", "off")
        .env_remove("GOOS")
        .env_remove("GOARCH")
        // The Go command inherits the open lock file, so it keeps the lock if this process is killed. Until the command
        // ends, no other process uses its output directory.
        .stdin(Stdio::from(lock.try_clone().context("lock file")?))
        .stdout(Stdio::null())
        .status()
        .context("go build")?;
    ensure!(
        status.success(),
        "`go build {}` in e2e/controlplane/{} failed with {status}; see its messages above",
        target.package,
        folder
    );
    print_progress(&format!(
        "built {} in {} s",
        target.binary,
        begin.elapsed().as_secs()
    ));
    Ok(())
}

/// Returns linker flags with the version of Kubernetes, which its sources do not contain.
fn linker_flags(target: &Target) -> Result<String> {
    let mut flags = String::from("-s -w");
    if target.is_kubernetes {
        let version = kubernetes_version()?;
        let mut numbers = version.trim_start_matches('v').split('.');
        let (major, minor) = (numbers.next(), numbers.next());
        let (major, minor) = major
            .zip(minor)
            .with_context(|| format!("version {version}"))?;
        for (variable, value) in [
            ("k8s.io/component-base/version.gitVersion", version),
            ("k8s.io/component-base/version.gitMajor", major),
            ("k8s.io/component-base/version.gitMinor", minor),
            ("k8s.io/client-go/pkg/version.gitVersion", version),
        ] {
            for part in [" -X ", variable, "=", value] {
                flags.push_str(part);
            }
        }
    }
    Ok(flags)
}

/// Prints a progress message to standard error, because tests have no log.
fn print_progress(message: &str) {
    // The error is ignored, because standard error may be closed.
    let _ = writeln!(io::stderr(), "e2e: {message}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cache_key_contains_versions_of_etcd_and_kubernetes() {
        // An environment variable selects the version of Kubernetes.
        let key = cache_key().unwrap();
        assert!(key.ends_with("-v3.6.8"), "{key}");
        for (minor, version) in [
            ("1.36", "v1.36.3"),
            ("1.37", "v1.37.2"),
            ("1.34", "v1.34.4"),
        ] {
            let module = KubernetesModule::by_minor(minor).unwrap();
            let required = required_version(module.go_mod, "k8s.io/kubernetes");
            assert_eq!(required.unwrap(), version);
        }
        assert!(KubernetesModule::by_minor("1.12").is_err());
    }

    #[test]
    fn version_required_in_line_or_block_of_go_mod_is_found() {
        let go_mod =
            "module m\n\nrequire a.b/c v1.2.3\n\nrequire (\n\td.e/f v0.1.0 // indirect\n)\n";
        assert_eq!(required_version(go_mod, "a.b/c").unwrap(), "v1.2.3");
        assert_eq!(required_version(go_mod, "d.e/f").unwrap(), "v0.1.0");
        assert!(required_version(go_mod, "g.h/i").is_err());
    }

    #[test]
    fn missing_binary_is_reported() {
        let directory = tempfile::tempdir().unwrap();
        for name in ["etcd", "kubectl"] {
            File::create(directory.path().join(name)).unwrap();
        }
        let error = Binaries::from_assets(directory.path().to_owned())
            .unwrap_err()
            .to_string();
        assert!(error.contains("which has no kube-apiserver"), "{error}");
        File::create(directory.path().join("kube-apiserver")).unwrap();
        let binaries = Binaries::from_assets(directory.path().to_owned()).unwrap();
        let error = binaries.kcm().unwrap_err().to_string();
        assert!(error.contains("has no kube-controller-manager"), "{error}");
    }
}
