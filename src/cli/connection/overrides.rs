//! Applies the connection flags to a kubeconfig: selects the cluster and the user, and overrides their fields.
//!
//! Source: client-go `tools/clientcmd/client_config.go`, `getContext`, `getCluster`, `getAuthInfo`.

use kube::config::{
    AuthInfo, Cluster, Context, Kubeconfig, KubeconfigError, NamedAuthInfo, NamedCluster,
    NamedContext,
};

use super::{Connection, reason};

/// The name that the context, the cluster and the user all have in the result of [`resolved`].
const NAME: &str = "kubectl-vap";

/// Returns a kubeconfig with a single context: the context that `flags` select, or else the current context. The
/// overrides of `flags` are applied to the context.
///
/// # Errors
/// Returns an error if the kubeconfig lacks the selected context, cluster or user.
pub(super) fn resolved(kubeconfig: Kubeconfig, flags: &Connection) -> Result<Kubeconfig, String> {
    let describe = |error: KubeconfigError| reason(&error);
    let current = kubeconfig.current_context.filter(|name| !name.is_empty());
    let mut context = match flags.context.clone().or(current) {
        Some(name) => {
            let mut contexts = kubeconfig.contexts.into_iter();
            let named = contexts.find(|of| of.name == name);
            let named = named.and_then(|of| of.context);
            named.ok_or_else(|| describe(KubeconfigError::LoadContext(name)))?
        }
        None if flags.server.is_some() || flags.cluster.is_some() => Context::default(),
        None => return Err(describe(KubeconfigError::CurrentContextNotSet)),
    };

    let name = flags.cluster.as_ref().unwrap_or(&context.cluster);
    let named = kubeconfig.clusters.into_iter().find(|of| of.name == *name);
    let mut cluster = match named.and_then(|of| of.cluster) {
        Some(cluster) => cluster,
        None if flags.cluster.is_none() && flags.server.is_some() => Cluster::default(),
        None => {
            return Err(describe(KubeconfigError::LoadClusterOfContext(
                name.clone(),
            )));
        }
    };
    change_cluster(&mut cluster, flags);

    let name = flags.user.as_ref().or(context.user.as_ref());
    let mut users = kubeconfig.auth_infos.into_iter();
    let named = users.find(|of| Some(&of.name) == name);
    let mut user = match (named.and_then(|of| of.auth_info), &flags.user) {
        (Some(user), _) => user,
        (None, Some(name)) => return Err(format!("no user `{name}`")),
        (None, None) => AuthInfo::default(),
    };
    change_user(&mut user, flags);
    let has_certificate =
        user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let has_key = user.client_key.is_some() || user.client_key_data.is_some();
    match (has_certificate, has_key) {
        (true, false) => {
            return Err("the client certificate has no key; set --client-key".to_owned());
        }
        (false, true) => {
            return Err("the client key has no certificate; set --client-certificate".to_owned());
        }
        _ => {}
    }
    let server = cluster.server.take();
    cluster.server = server.map(|server| with_scheme(&server, &cluster, &user));

    NAME.clone_into(&mut context.cluster);
    context.user = Some(NAME.to_owned());
    Ok(Kubeconfig {
        clusters: vec![NamedCluster {
            name: NAME.to_owned(),
            cluster: Some(cluster),
            ..NamedCluster::default()
        }],
        auth_infos: vec![NamedAuthInfo {
            name: NAME.to_owned(),
            auth_info: Some(user),
            ..NamedAuthInfo::default()
        }],
        contexts: vec![NamedContext {
            name: NAME.to_owned(),
            context: Some(context),
            ..NamedContext::default()
        }],
        current_context: Some(NAME.to_owned()),
        ..Kubeconfig::default()
    })
}

fn change_cluster(cluster: &mut Cluster, flags: &Connection) {
    // The TLS server name of the kubeconfig does not apply if flags set the server or its TLS server name.
    if flags.server.is_some() || flags.tls_server_name.is_some() {
        cluster.tls_server_name.clone_from(&flags.tls_server_name);
    }
    if let Some(server) = &flags.server {
        cluster.server = Some(server.clone());
    }
    if let Some(file) = &flags.certificate_authority {
        cluster.certificate_authority = Some(file.display().to_string());
        cluster.certificate_authority_data = None;
        cluster.insecure_skip_tls_verify = None;
    }
    match flags.insecure_skip_tls_verify {
        Some(true) => {
            cluster.insecure_skip_tls_verify = Some(true);
            cluster.certificate_authority = None;
            cluster.certificate_authority_data = None;
        }
        Some(false) => cluster.insecure_skip_tls_verify = None,
        None => {}
    }
}

/// Overrides the fields of a user for which flags are set.
pub(super) fn change_user(user: &mut AuthInfo, flags: &Connection) {
    if let Some(token) = &flags.token {
        user.token = Some(token.clone().into());
        user.token_file = None;
        user.username = None;
        user.password = None;
        user.exec = None;
        user.auth_provider = None;
    }
    if let Some(file) = &flags.client_certificate {
        user.client_certificate = Some(file.display().to_string());
        user.client_certificate_data = None;
    }
    if let Some(file) = &flags.client_key {
        user.client_key = Some(file.display().to_string());
        user.client_key_data = None;
    }
    if let Some(name) = &flags.act_as {
        user.impersonate = Some(name.clone());
        user.impersonate_groups = Some(flags.act_as_groups.clone());
        user.impersonate_uid.clone_from(&flags.act_as_uid);
    }
}

/// Adds the scheme to an address without one: `https` if there is a TLS setting, else `http`.
///
/// Source: client-go `rest/url_utils.go`, `defaultServerUrlFor`, `DefaultServerURL`.
fn with_scheme(server: &str, cluster: &Cluster, user: &AuthInfo) -> String {
    let has_tls = cluster.insecure_skip_tls_verify == Some(true)
        || cluster.certificate_authority.is_some()
        || cluster.certificate_authority_data.is_some()
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some();
    match (server.contains("://"), has_tls) {
        (true, _) => server.to_owned(),
        (false, true) => format!("https://{server}"),
        (false, false) => format!("http://{server}"),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        flags: Connection,
    }

    fn flags(line: &str) -> Connection {
        Line::parse_from([NAME].into_iter().chain(line.split_whitespace())).flags
    }

    fn kubeconfig() -> Kubeconfig {
        let cluster = |name: &str| {
            json!({"name": name, "cluster": {
                "server": format!("https://{name}:6443"),
                "certificate-authority-data": "Y2E=",
                "tls-server-name": "inside",
            }})
        };
        let user = |name: &str| {
            json!({"name": name, "user": {
                "client-certificate-data": "Yw==",
                "client-key-data": "aw==",
                "exec": {"command": "login", "apiVersion": "client.authentication.k8s.io/v1"},
            }})
        };
        let context =
            |name: &str| json!({"name": name, "context": {"cluster": name, "user": name}});
        let text = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "one",
            "clusters": [cluster("one"), cluster("two")],
            "users": [user("one"), user("two")],
            "contexts": [context("one"), context("two"), {"name": "gone", "context": {"cluster": "x", "user": "x"}}],
        });
        serde_json::from_value(text).unwrap()
    }

    /// Returns the cluster and the user after applying the flags in a command line.
    #[track_caller]
    fn overridden(kubeconfig: Kubeconfig, line: &str) -> (Value, Value) {
        let resolved = resolved(kubeconfig, &flags(line)).unwrap();
        let cluster = serde_json::to_value(resolved.clusters[0].cluster.clone().unwrap());
        let user = serde_json::to_value(resolved.auth_infos[0].auth_info.clone().unwrap());
        (cluster.unwrap(), user.unwrap())
    }

    #[test]
    fn flags_override_cluster_as_in_kubectl() {
        let same = json!({
            "server": "https://one:6443", "certificate-authority-data": "Y2E=", "tls-server-name": "inside",
        });
        assert_eq!(overridden(kubeconfig(), "").0, same);
        assert_eq!(
            overridden(kubeconfig(), "--context two").0["server"],
            "https://two:6443"
        );
        assert_eq!(
            overridden(kubeconfig(), "--context two --cluster one").0["server"],
            "https://one:6443"
        );
        for (line, expect) in [
            (
                "-s https://x",
                json!({"server": "https://x", "certificate-authority-data": "Y2E="}),
            ),
            (
                "--server x:1 --tls-server-name y",
                json!({
                    "server": "https://x:1", "certificate-authority-data": "Y2E=", "tls-server-name": "y",
                }),
            ),
            (
                "--certificate-authority ca.pem",
                json!({
                    "server": "https://one:6443", "certificate-authority": "ca.pem", "tls-server-name": "inside",
                }),
            ),
            (
                "--insecure-skip-tls-verify",
                json!({
                    "server": "https://one:6443", "insecure-skip-tls-verify": true, "tls-server-name": "inside",
                }),
            ),
            ("--insecure-skip-tls-verify=false", same),
        ] {
            assert_eq!(overridden(kubeconfig(), line).0, expect, "{line}");
        }
    }

    #[test]
    fn flags_override_user_as_in_kubectl() {
        let user = |line: &str| overridden(kubeconfig(), line).1;
        let token = user("--token t");
        assert_eq!(
            token,
            json!({"token": "t", "client-certificate-data": "Yw==", "client-key-data": "aw=="})
        );
        let files = user("--client-certificate c --client-key k");
        assert_eq!(
            (&files["client-certificate"], &files["client-key"]),
            (&json!("c"), &json!("k"))
        );
        assert_eq!(files.get("client-key-data"), None);
        let other = user("--as ann --as-group g --as-group h --as-uid 7");
        assert_eq!(
            (&other["as"], &other["as-groups"], &other["as-uid"]),
            (&json!("ann"), &json!(["g", "h"]), &json!("7"))
        );
    }

    #[test]
    fn server_flag_needs_no_kubeconfig() {
        let (cluster, user) = overridden(Kubeconfig::default(), "--server x:1 --token t");
        assert_eq!(cluster, json!({"server": "http://x:1"}));
        assert_eq!(user, json!({"token": "t"}));
    }

    #[test]
    fn missing_entry_of_kubeconfig_is_an_error() {
        for (line, expect) in [
            ("--context three", "failed to load current context: three"),
            (
                "--cluster three",
                "failed to load the cluster of context: three",
            ),
            ("--context gone", "failed to load the cluster of context: x"),
            ("--user three", "no user `three`"),
        ] {
            let error = resolved(kubeconfig(), &flags(line)).unwrap_err();
            assert_eq!(error, expect, "{line}");
        }
        for (line, expect) in [
            ("-s x --client-key k", "the client key has no certificate"),
            (
                "-s x --client-certificate c",
                "the client certificate has no key",
            ),
        ] {
            let error = resolved(Kubeconfig::default(), &flags(line)).unwrap_err();
            assert!(error.starts_with(expect), "{line}: {error}");
        }
        let error = resolved(Kubeconfig::default(), &flags("--token t")).unwrap_err();
        assert_eq!(error, "failed to determine current context");
    }
}
