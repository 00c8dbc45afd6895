//! Keys, certificates, tokens and kubeconfig files of one control plane.
//!
//! Each control plane has its own certificate authority, whose key is discarded immediately. Therefore a client of one
//! control plane cannot connect to another by mistake.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, ensure};
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use serde_json::json;

/// The group with all permissions.
const ADMIN_GROUP: &str = "system:masters";

/// A user with a static token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    name: String,
    groups: Vec<String>,
}

impl User {
    /// Returns a user with these groups. The API server adds the group `system:authenticated`.
    #[must_use]
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(ToString::to_string).collect(),
        }
    }

    /// Returns the user of a service account.
    ///
    /// Source: Kubernetes documentation, "Authenticating", section "Service account tokens".
    #[must_use]
    pub fn service_account(namespace: &str, name: &str) -> Self {
        Self::new(
            &format!("system:serviceaccount:{namespace}:{name}"),
            &[
                "system:serviceaccounts",
                &format!("system:serviceaccounts:{namespace}"),
            ],
        )
    }

    /// Returns the name of the user, for role bindings and for [`crate::ControlPlane::kubeconfig_for`].
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    pub(crate) fn admin() -> Self {
        Self::new("admin", &[ADMIN_GROUP])
    }
}

#[derive(Debug)]
pub(crate) struct Credentials {
    directory: PathBuf,
    tokens: BTreeMap<String, String>,
}

impl Credentials {
    pub(crate) fn create(directory: &Path, users: &[User]) -> Result<Self> {
        let mut credentials = Self {
            directory: directory.join("credentials"),
            tokens: BTreeMap::new(),
        };
        fs::create_dir(&credentials.directory).context("credentials directory")?;
        credentials.write_certificates().context("certificates")?;
        credentials.write_tokens(users).context("tokens")?;
        Ok(credentials)
    }

    pub(crate) fn ca_certificate(&self) -> PathBuf {
        self.directory.join("ca.crt")
    }

    pub(crate) fn serving_certificate(&self) -> PathBuf {
        self.directory.join("serving.crt")
    }

    pub(crate) fn serving_key(&self) -> PathBuf {
        self.directory.join("serving.key")
    }

    pub(crate) fn service_account_private_key(&self) -> PathBuf {
        self.directory.join("service-account.key")
    }

    pub(crate) fn service_account_public_key(&self) -> PathBuf {
        self.directory.join("service-account.pub")
    }

    pub(crate) fn token_file(&self) -> PathBuf {
        self.directory.join("tokens.csv")
    }

    /// Returns the kubeconfig file of a user, who must have been passed to [`Self::create`].
    pub(crate) fn kubeconfig(&self, user: &str) -> Result<PathBuf> {
        // The file name contains a number, because the user name may contain characters that are invalid in a file
        // name.
        let number = self
            .tokens
            .keys()
            .position(|name| name == user)
            .with_context(|| {
                let users: Vec<&str> = self.tokens.keys().map(String::as_str).collect();
                format!(
                    "no user `{user}`: name the user before the start; known are {}",
                    users.join(", ")
                )
            })?;
        Ok(self.directory.join(format!("user-{number}.kubeconfig")))
    }

    /// Writes one kubeconfig file per user for the API server at `url`.
    pub(crate) fn write_kubeconfigs(&self, url: &str) -> Result<()> {
        for (name, token) in &self.tokens {
            // Kubeconfig files are YAML, which includes JSON.
            let config = json!({
                "apiVersion": "v1",
                "kind": "Config",
                "clusters": [{
                    "name": "e2e",
                    "cluster": { "server": url, "certificate-authority": self.ca_certificate() },
                }],
                "users": [{ "name": name, "user": { "token": token } }],
                "contexts": [{ "name": "e2e", "context": { "cluster": "e2e", "user": name } }],
                "current-context": "e2e",
            });
            write(
                &self.kubeconfig(name)?,
                &serde_json::to_string_pretty(&config)?,
            )?;
        }
        Ok(())
    }

    fn write_certificates(&self) -> Result<()> {
        let mut params = CertificateParams::default();
        params
            .distinguished_name
            .push(DnType::CommonName, "control-plane-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![
            KeyUsagePurpose::KeyCertSign,
            KeyUsagePurpose::DigitalSignature,
        ];
        let ca = CertifiedIssuer::self_signed(params, KeyPair::generate()?)?;
        write(&self.ca_certificate(), &ca.pem())?;

        let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
        let mut params = CertificateParams::new(names.map(String::from))?;
        params
            .distinguished_name
            .push(DnType::CommonName, "kube-apiserver");
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        write(
            &self.serving_certificate(),
            &params.signed_by(&key, &ca)?.pem(),
        )?;
        write(&self.serving_key(), &key.serialize_pem())?;

        let key = KeyPair::generate()?;
        write(&self.service_account_private_key(), &key.serialize_pem())?;
        write(&self.service_account_public_key(), &key.public_key_pem())
    }

    /// Writes the token file: CSV with token, name, UID and groups.
    fn write_tokens(&mut self, users: &[User]) -> Result<()> {
        let mut lines = Vec::new();
        for user in [&User::admin()].into_iter().chain(users) {
            let User { name, groups } = user;
            ensure!(
                !name.contains(['"', '\n', '\r'])
                    && !groups
                        .iter()
                        .any(|group| group.contains(['"', '\n', '\r', ','])),
                "user `{name}`: names cannot hold quotes or line breaks, nor groups commas",
            );
            let token = random_token()?;
            lines.push(format!(
                "{token},\"{name}\",\"{name}\",\"{}\"\n",
                groups.join(",")
            ));
            let replaced = self.tokens.insert(name.clone(), token);
            ensure!(replaced.is_none(), "user `{name}` is named twice");
        }
        write(&self.token_file(), &lines.concat())
    }
}

fn write(path: &Path, text: &str) -> Result<()> {
    fs::write(path, text).with_context(|| path.display().to_string())
}

fn random_token() -> Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("/dev/urandom")?;
    Ok(format!("{:032x}", u128::from_ne_bytes(bytes)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn service_account_has_its_groups() {
        let user = User::service_account("vap-status-system", "vap-status-controller");
        assert_eq!(
            user.name(),
            "system:serviceaccount:vap-status-system:vap-status-controller"
        );
        let groups = [
            "system:serviceaccounts",
            "system:serviceaccounts:vap-status-system",
        ];
        assert_eq!(user.groups, groups);
    }

    #[test]
    fn invalid_user_name_of_credentials_is_rejected() {
        let directory = tempfile::tempdir().unwrap();
        let error = Credentials::create(directory.path(), &[User::new("a\"b", &[])]).unwrap_err();
        assert!(
            format!("{error:#}").contains("cannot hold quotes"),
            "{error:#}"
        );
    }

    #[test]
    fn error_for_unknown_user_of_kubeconfig_lists_known_users() {
        let directory = tempfile::tempdir().unwrap();
        let users = [User::new("jane", &["dev"])];
        let credentials = Credentials::create(directory.path(), &users).unwrap();
        let error = credentials.kubeconfig("joe").unwrap_err().to_string();
        assert!(
            error.contains("no user `joe`") && error.contains("admin, jane"),
            "{error}"
        );
    }
}
