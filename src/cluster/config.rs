//! Reads the configuration of the connection to an API server, from a kubeconfig or from the pod's service account.
//!
//! This module differs from kube as follows:
//!
//! - Files have a size limit.
//! - `NO_PROXY` is matched against the address of the API server. kube matches the address of the proxy.
//! - A kubeconfig's `proxy-url` is used even if `NO_PROXY` matches.
//! - The environment variables `KUBE_RS_DEBUG_*` have no effect.

use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use http::Uri;
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use kube::config::{AuthInfo, Cluster, KubeConfigOptions, Kubeconfig, KubeconfigError};

use super::address::{redacted, take_credentials};

/// The maximum size of a kubeconfig, certificate, key or token file, in bytes.
const MAX_FILE_BYTES: u64 = 4 * 1024 * 1024;

pub(crate) fn read_kubeconfig(path: &Path) -> Result<Kubeconfig, KubeconfigError> {
    let failed = |error| KubeconfigError::ReadConfig(error, path.to_owned());
    let file = fs::metadata(path).map_err(failed)?;
    if file.is_file() || file.is_dir() {
        check_size(path)?;
        return Kubeconfig::read_from(path);
    }
    // Pipes and devices have no size in their metadata, so the size is checked while reading.
    let mut text = String::new();
    let mut limited = File::open(path).map_err(failed)?.take(MAX_FILE_BYTES + 1);
    limited.read_to_string(&mut text).map_err(failed)?;
    if limited.limit() == 0 {
        return Err(failed(too_large()));
    }
    Kubeconfig::from_yaml(&text)
}

/// Reads the kubeconfig at the path in the environment variable `KUBECONFIG`. The default path is `~/.kube/config`.
pub(crate) fn default_kubeconfig() -> Result<Kubeconfig, KubeconfigError> {
    let paths = std::env::var_os("KUBECONFIG").unwrap_or_default();
    let paths = std::env::split_paths(&paths).filter(|path| !path.as_os_str().is_empty());
    let mut paths = paths.peekable();
    if paths.peek().is_none() {
        let home = std::env::home_dir().ok_or(KubeconfigError::FindPath)?;
        return read_kubeconfig(&home.join(".kube").join("config"));
    }
    paths.try_fold(Kubeconfig::default(), |merged, path| {
        merged.merge(read_kubeconfig(&path)?)
    })
}

/// Returns the configuration for the current context of a kubeconfig.
pub(crate) async fn from_kubeconfig(kubeconfig: Kubeconfig) -> Result<Config, KubeconfigError> {
    let (cluster, user) = current(&kubeconfig);
    for path in credential_files(&cluster, &user) {
        check_size(&path)?;
    }
    let options = KubeConfigOptions::default();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &options).await?;
    let is_inline = cluster
        .certificate_authority_data
        .is_some_and(|data| !data.is_empty());
    config.root_cert_file = cluster
        .certificate_authority
        .filter(|path| !is_inline && !path.is_empty())
        .map(PathBuf::from);
    if cluster.proxy_url.is_none_or(|url| url.is_empty()) {
        let variable = |name: &str| std::env::var(name).ok();
        config.proxy_url = proxy_of_environment(&config.cluster_url, variable);
    }
    let credentials = take_credentials(&mut config.cluster_url);
    let auth_info = &mut config.auth_info;
    let has_other = auth_info.username.is_some()
        || auth_info.token.is_some()
        || auth_info.token_file.is_some()
        || auth_info.exec.is_some()
        || auth_info.auth_provider.is_some();
    // Go's HTTP client also uses the credentials in a URL if there are no other credentials.
    if let Some(credentials) = credentials.filter(|_| !has_other) {
        auth_info.username = Some(credentials.user);
        auth_info.password = Some(credentials.password.into());
    }
    Ok(config)
}

/// Returns the configuration from the kubeconfig. Without a usable kubeconfig, uses the pod's service account.
///
/// # Errors
/// Returns a one-line message with both reasons if neither can be used.
pub(crate) async fn infer() -> Result<Config, String> {
    let of_kubeconfig = match default_kubeconfig() {
        Ok(kubeconfig) => from_kubeconfig(kubeconfig).await,
        Err(error) => Err(error),
    };
    of_kubeconfig.or_else(|error| {
        Config::incluster().map_err(|in_cluster| {
            let error = describe(&error);
            redacted(&format!(
                "in-cluster: ({in_cluster}), kubeconfig: ({error})"
            ))
        })
    })
}

/// Formats an error without quoting lines of the kubeconfig, because the lines may contain credentials.
pub(crate) fn describe(error: &KubeconfigError) -> String {
    let text = match error {
        KubeconfigError::Parse(error) => {
            format!(
                "failed to parse kubeconfig YAML: {}",
                error.without_snippet()
            )
        }
        error => error.to_string(),
    };
    redacted(&text)
}

/// Returns the cluster and the user of the current context. An undefined cluster or user is empty.
fn current(kubeconfig: &Kubeconfig) -> (Cluster, AuthInfo) {
    let mut contexts = kubeconfig.contexts.iter();
    let context = contexts
        .find(|context| Some(&context.name) == kubeconfig.current_context.as_ref())
        .and_then(|context| context.context.as_ref());
    let Some(context) = context else {
        return (Cluster::default(), AuthInfo::default());
    };
    let mut clusters = kubeconfig.clusters.iter();
    let cluster = clusters.find(|cluster| cluster.name == context.cluster);
    let mut users = kubeconfig.auth_infos.iter();
    let user = users.find(|user| Some(&user.name) == context.user.as_ref());
    (
        cluster
            .and_then(|it| it.cluster.clone())
            .unwrap_or_default(),
        user.and_then(|it| it.auth_info.clone()).unwrap_or_default(),
    )
}

fn credential_files(cluster: &Cluster, user: &AuthInfo) -> Vec<PathBuf> {
    let files = [
        &cluster.certificate_authority,
        &user.client_certificate,
        &user.client_key,
        &user.token_file,
    ];
    let files = files.into_iter().flatten();
    files
        .filter(|path| !path.is_empty())
        .map(PathBuf::from)
        .collect()
}

/// Checks the size of a file. Accepts a missing file: the code that reads the file reports the error.
fn check_size(path: &Path) -> Result<(), KubeconfigError> {
    match fs::metadata(path) {
        Ok(file) if file.is_file() && file.len() > MAX_FILE_BYTES => {
            Err(KubeconfigError::ReadConfig(too_large(), path.to_owned()))
        }
        _ => Ok(()),
    }
}

fn too_large() -> io::Error {
    io::Error::other(format!(
        "the file is larger than {} MiB",
        MAX_FILE_BYTES >> 20
    ))
}

/// Returns the proxy for requests to `server`, if any. `variable` returns the value of an environment variable.
///
/// Source: Go `golang.org/x/net/http/httpproxy`, `FromEnvironment`, `Config.ProxyFunc`.
fn proxy_of_environment(server: &Uri, variable: impl Fn(&str) -> Option<String>) -> Option<Uri> {
    let first = |names: [&str; 2]| {
        names
            .into_iter()
            .find_map(|name| variable(name).filter(|text| !text.is_empty()))
    };
    let host = server.host()?.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = host
        .parse()
        .is_ok_and(|ip: std::net::IpAddr| ip.is_loopback());
    if host == "localhost" || is_loopback {
        return None;
    }
    let proxy = match server.scheme_str()? {
        "https" => first(["HTTPS_PROXY", "https_proxy"])?,
        // In a CGI program, `HTTP_PROXY` contains the request header `Proxy`, which a client can set.
        "http" if variable("REQUEST_METHOD").is_none() => first(["HTTP_PROXY", "http_proxy"])?,
        _ => return None,
    };
    let exceptions = first(["NO_PROXY", "no_proxy"]).unwrap_or_default();
    let default_port = if server.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    let port = server.port_u16().unwrap_or(default_port).to_string();
    let exceptions = exceptions
        .split(',')
        .filter_map(|entry| match entry.trim().split_once(':') {
            // IPv6 addresses have more than one colon. An entry with one colon is `host:port`.
            Some((host, entry_port)) if !entry_port.contains(':') => {
                (entry_port == port).then_some(host)
            }
            _ => Some(entry.trim()),
        });
    let exceptions: Vec<&str> = exceptions.collect();
    let matcher = Matcher::builder()
        .all(proxy.clone())
        .no(exceptions.join(","));
    matcher.build().intercept(server)?;
    proxy.parse().ok()
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn kubeconfig(cluster: &Value, user: &Value) -> Kubeconfig {
        serde_json::from_value(json!({
            "current-context": "a",
            "clusters": [{"name": "a", "cluster": cluster}],
            "users": [{"name": "a", "user": user}],
            "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        }))
        .unwrap()
    }

    #[tokio::test]
    async fn credentials_of_server_become_basic_authentication() {
        let server = json!({"server": "https://ann:p%40ss@host:6443"});
        let config = from_kubeconfig(kubeconfig(&server, &json!({})))
            .await
            .unwrap();
        assert_eq!(config.cluster_url, "https://host:6443/");
        assert_eq!(config.auth_info.username.as_deref(), Some("ann"));
        let debug = format!("{config:?}");
        assert!(
            !debug.contains("p@ss") && !debug.contains("p%40ss"),
            "{debug}"
        );
        let config = from_kubeconfig(kubeconfig(&server, &json!({"token": "t"})))
            .await
            .unwrap();
        assert_eq!(config.cluster_url, "https://host:6443/");
        assert_eq!(config.auth_info.username, None);
    }

    #[tokio::test]
    async fn credential_file_over_size_limit_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("large");
        // A sparse file occupies no disk space.
        let file = File::create(&path).unwrap();
        file.set_len(MAX_FILE_BYTES + 1).unwrap();
        let path = path.to_str().unwrap();
        let server = json!({"server": "https://host", "certificate-authority": path});
        for (cluster, user) in [
            (server, json!({})),
            (
                json!({"server": "https://host"}),
                json!({"tokenFile": path}),
            ),
            (
                json!({"server": "https://host"}),
                json!({"client-certificate": path}),
            ),
            (
                json!({"server": "https://host"}),
                json!({"client-key": path}),
            ),
        ] {
            let error = from_kubeconfig(kubeconfig(&cluster, &user))
                .await
                .unwrap_err();
            let text = error.to_string();
            assert!(text.ends_with("the file is larger than 4 MiB"), "{text}");
        }
        let error = read_kubeconfig(Path::new(path)).unwrap_err().to_string();
        assert!(error.ends_with("the file is larger than 4 MiB"), "{error}");
    }

    #[cfg(unix)]
    #[test]
    fn kubeconfig_without_end_is_read_up_to_size_limit() {
        let error = read_kubeconfig(Path::new("/dev/zero"))
            .unwrap_err()
            .to_string();
        assert!(error.ends_with("the file is larger than 4 MiB"), "{error}");
        let empty = read_kubeconfig(Path::new("/dev/null")).unwrap();
        assert_eq!(empty.clusters.len(), 0);
    }

    #[test]
    fn parse_error_shows_no_line_of_the_kubeconfig() {
        let text = "users:\n- name: a\n  user:\n    token: s3cr3t\n    exec: [s3cr3t, {]\n";
        let error = Kubeconfig::from_yaml(text).unwrap_err();
        let text = describe(&error);
        assert!(!text.contains("s3cr3t"), "{text}");
    }

    #[track_caller]
    fn check_proxy(server: &str, variables: &[(&str, &str)], expect: Option<&str>) {
        let server: Uri = server.parse().unwrap();
        let variable = |name: &str| {
            let mut variables = variables.iter();
            variables
                .find(|(known, _)| *known == name)
                .map(|(_, value)| (*value).to_owned())
        };
        let proxy = proxy_of_environment(&server, variable);
        let proxy = proxy.map(|proxy| proxy.to_string());
        assert_eq!(proxy.as_deref(), expect, "{server} {variables:?}");
    }

    #[test]
    fn proxy_from_environment_is_chosen_as_in_go() {
        let proxy = ("HTTPS_PROXY", "http://proxy:3128");
        let used = Some("http://proxy:3128/");
        check_proxy("https://api.example.com:6443", &[proxy], used);
        check_proxy("https://api", &[("https_proxy", "http://proxy:3128")], used);
        check_proxy("http://api", &[proxy], None);
        check_proxy("http://api", &[("HTTP_PROXY", "http://proxy:3128")], used);
        check_proxy(
            "http://api",
            &[
                ("HTTP_PROXY", "http://proxy:3128"),
                ("REQUEST_METHOD", "GET"),
            ],
            None,
        );
        for local in [
            "https://localhost:6443",
            "https://127.0.0.1:6443",
            "https://[::1]:6443",
        ] {
            check_proxy(local, &[proxy], None);
        }
        for (exceptions, is_used) in [
            ("", true),
            ("*", false),
            ("example.com", false),
            (".example.com", false),
            ("api.example.com:6443", false),
            ("api.example.com:443", true),
            ("other.com, 10.0.0.0/8", true),
            ("proxy", true),
        ] {
            let variables = [proxy, ("NO_PROXY", exceptions)];
            check_proxy(
                "https://api.example.com:6443",
                &variables,
                used.filter(|_| is_used),
            );
        }
        let variables = [proxy, ("no_proxy", "10.0.0.0/8,2001:db8::/32")];
        check_proxy("https://10.1.2.3:6443", &variables, None);
        check_proxy("https://[2001:db8::1]:6443", &variables, None);
        check_proxy("https://11.1.2.3:6443", &variables, used);
    }
}
