//! Reloads TLS certificate files that change while the process runs.
//!
//! Before each new connection, the modification times, sizes and inodes of the files are compared with the previous
//! values. If they differ, the files are read again. Existing connections stay open.
//!
//! If the files cannot be used, the previous certificates stay in use until the files change again. For example, the
//! key file may have been replaced, but not yet the certificate file.

use std::fs;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::SystemTime;

use http::Uri;
use kube::Config;
use tower::{BoxError, Service, ServiceExt as _};

#[derive(Clone, Debug)]
pub(super) struct FileStamps(Vec<PathBuf>);

/// The modification time, size and inode of each file. `None` for a missing file.
type Stamps = Vec<Option<(Option<SystemTime>, u64, u64)>>;

impl FileStamps {
    pub(super) fn from_config(config: &Config) -> Self {
        let user = &config.auth_info;
        let is_set = |data: Option<&str>| data.is_some_and(|data| !data.is_empty());
        let certificate = user.client_certificate.as_deref();
        let certificate = certificate.filter(|_| !is_set(user.client_certificate_data.as_deref()));
        let key = user.client_key.as_deref();
        let files = config.root_cert_file.iter().cloned();
        let of_user = certificate.into_iter().chain(key).map(PathBuf::from);
        Self(files.chain(of_user).collect())
    }

    fn read(&self) -> Stamps {
        let stamp = |path: &PathBuf| {
            let metadata = fs::metadata(path).ok()?;
            Some((metadata.modified().ok(), metadata.len(), inode(&metadata)))
        };
        self.0.iter().map(stamp).collect()
    }
}

fn inode(metadata: &fs::Metadata) -> u64 {
    #[cfg(unix)]
    {
        std::os::unix::fs::MetadataExt::ino(metadata)
    }
    #[cfg(not(unix))]
    {
        let _ = metadata;
        0
    }
}

pub(super) struct ReloadingConnector<C> {
    files: FileStamps,
    build: Arc<dyn Fn() -> Result<C, kube::Error> + Send + Sync>,
    current: Arc<Mutex<(Stamps, C)>>,
}

impl<C> Clone for ReloadingConnector<C> {
    fn clone(&self) -> Self {
        Self {
            files: self.files.clone(),
            build: Arc::clone(&self.build),
            current: Arc::clone(&self.current),
        }
    }
}

impl<C: Clone> ReloadingConnector<C> {
    pub(super) fn new(
        files: FileStamps,
        build: impl Fn() -> Result<C, kube::Error> + Send + Sync + 'static,
    ) -> Result<Self, kube::Error> {
        let stamps = files.read();
        let connector = build()?;
        Ok(Self {
            files,
            build: Arc::new(build),
            current: Arc::new(Mutex::new((stamps, connector))),
        })
    }

    fn current(&self) -> C {
        let stamps = self.files.read();
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if current.0 != stamps {
            current.0 = stamps;
            match (self.build)() {
                Ok(connector) => {
                    tracing::info!("reloaded the changed certificate files");
                    current.1 = connector;
                }
                Err(error) => tracing::warn!(
                    error = super::super::error::describe(&error),
                    "cannot use the changed certificate files; new connections use the previous ones"
                ),
            }
        }
        current.1.clone()
    }
}

impl<C> Service<Uri> for ReloadingConnector<C>
where
    C: Service<Uri> + Clone + Send + 'static,
    C::Future: Send,
    C::Response: 'static,
    C::Error: Into<BoxError>,
{
    type Response = C::Response;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<C::Response, BoxError>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let connector = self.current();
        Box::pin(async move { connector.oneshot(uri).await.map_err(Into::into) })
    }
}
