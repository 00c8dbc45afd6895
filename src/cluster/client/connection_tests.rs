//! Tests the client with real TLS and proxy connections.

use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use super::*;
use crate::cluster::error::Error;

struct Authority(CertifiedIssuer<'static, KeyPair>);

impl Authority {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        Self(CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap())
    }

    /// Returns a certificate for 127.0.0.1 and its key, as PEM.
    fn issue(&self) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap();
        let certificate = params.signed_by(&key, &self.0).unwrap();
        (certificate.pem(), key.serialize_pem())
    }

    fn acceptor(&self) -> TlsAcceptor {
        let (certificate, key) = self.issue();
        let mut roots = RootCertStore::empty();
        roots.add(der(&self.0.pem())).unwrap();
        let clients = WebPkiClientVerifier::builder(Arc::new(roots)).allow_unauthenticated();
        let config = ServerConfig::builder()
            .with_client_cert_verifier(clients.build().unwrap())
            .with_single_cert(
                vec![der(&certificate)],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap();
        TlsAcceptor::from(Arc::new(config))
    }
}

fn der(pem: &str) -> CertificateDer<'static> {
    CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()
}

/// An HTTPS server that closes each connection after one request.
struct TlsServer {
    port: u16,
    acceptor: Arc<Mutex<TlsAcceptor>>,
    /// The client certificate of each connection.
    clients: Arc<Mutex<Vec<Option<CertificateDer<'static>>>>>,
    authorizations: Arc<Mutex<Vec<Option<String>>>>,
}

impl TlsServer {
    async fn start(authority: &Authority) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server = Self {
            port: listener.local_addr().unwrap().port(),
            acceptor: Arc::new(Mutex::new(authority.acceptor())),
            clients: Arc::default(),
            authorizations: Arc::default(),
        };
        let acceptor = Arc::clone(&server.acceptor);
        let clients = Arc::clone(&server.clients);
        let authorizations = Arc::clone(&server.authorizations);
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                let accepting = acceptor.lock().unwrap().clone().accept(stream);
                let (clients, seen) = (Arc::clone(&clients), Arc::clone(&authorizations));
                tokio::spawn(async move {
                    let Ok(stream) = accepting.await else {
                        return;
                    };
                    let certificates = stream.get_ref().1.peer_certificates();
                    let first = certificates.and_then(|chain| chain.first().cloned());
                    clients
                        .lock()
                        .unwrap()
                        .push(first.map(CertificateDer::into_owned));
                    serve_one(stream, seen).await;
                });
            }
        });
        server
    }

    fn config(&self, authority: &Path) -> Config {
        let url = format!("https://127.0.0.1:{}", self.port);
        let mut config = Config::new(url.parse().unwrap());
        config.root_cert_file = Some(authority.to_owned());
        config
    }
}

async fn serve_one<S>(stream: S, authorizations: Arc<Mutex<Vec<Option<String>>>>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let service = service_fn(move |request: Request<hyper::body::Incoming>| {
        let value = request.headers().get(header::AUTHORIZATION);
        let value = value.map(|value| value.to_str().unwrap().to_owned());
        authorizations.lock().unwrap().push(value);
        let response = Response::builder().header(header::CONNECTION, "close");
        async move { Ok::<_, Infallible>(response.body("served".to_owned()).unwrap()) }
    });
    let connection = http1::Builder::new().serve_connection(TokioIo::new(stream), service);
    drop(connection.await);
}

async fn request(client: &Client) -> Result<String, Error> {
    let request = Request::get("/version").body(Vec::new()).unwrap();
    let answer = client.request_text(request);
    let limit = Duration::from_secs(30);
    crate::cluster::error::within(limit, answer).await
}

/// Replaces a file atomically, as Kubernetes replaces the files in a volume.
fn replace(path: &Path, content: &str) {
    let new = path.with_extension("new");
    fs::write(&new, content).unwrap();
    fs::rename(&new, path).unwrap();
}

fn file(directory: &TempDir, name: &str, content: &str) -> PathBuf {
    let path = directory.path().join(name);
    fs::write(&path, content).unwrap();
    path
}

#[tokio::test]
async fn replaced_authority_is_trusted_without_restart() {
    let directory = tempfile::tempdir().unwrap();
    let (old, new) = (Authority::new(), Authority::new());
    let path = file(&directory, "ca.crt", &old.0.pem());
    let server = TlsServer::start(&old).await;
    let client = command_client(server.config(&path)).unwrap();
    assert_eq!(request(&client).await.unwrap(), "served");

    *server.acceptor.lock().unwrap() = new.acceptor();
    let error = request(&client).await.unwrap_err();
    assert!(error.is_certificate_error(), "{error}");
    // A truncated certificate file does not change the trusted authority.
    replace(&path, "-----BEGIN CERTIFICATE-----\nMIIB");
    let error = request(&client).await.unwrap_err();
    assert!(error.is_certificate_error(), "{error}");
    replace(&path, &new.0.pem());
    assert_eq!(request(&client).await.unwrap(), "served");
}

#[tokio::test]
async fn replaced_client_certificate_is_presented() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let ca = file(&directory, "ca.crt", &authority.0.pem());
    let (first, key) = authority.issue();
    let certificate = file(&directory, "tls.crt", &first);
    let key = file(&directory, "tls.key", &key);
    let server = TlsServer::start(&authority).await;
    let mut config = server.config(&ca);
    config.auth_info.client_certificate = Some(certificate.display().to_string());
    config.auth_info.client_key = Some(key.display().to_string());
    let client = command_client(config).unwrap();
    request(&client).await.unwrap();

    let (second, second_key) = authority.issue();
    replace(&certificate, &second);
    // While the key file contains the old key, the client continues to use the first certificate.
    request(&client).await.unwrap();
    replace(&key, &second_key);
    request(&client).await.unwrap();
    let clients = server.clients.lock().unwrap().clone();
    let expect = [&first, &first, &second].map(|pem| Some(der(pem)));
    assert_eq!(clients, expect);
}

#[tokio::test]
async fn credentials_in_server_url_are_sent_but_not_shown() {
    let directory = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let ca = file(&directory, "ca.crt", &authority.0.pem());
    let server = TlsServer::start(&authority).await;
    let mut config = server.config(&ca);
    let url = format!("https://ann:p4ssw0rd@127.0.0.1:{}", server.port);
    config.cluster_url = url.parse().unwrap();
    request(&command_client(config).unwrap()).await.unwrap();
    let sent = server.authorizations.lock().unwrap().clone();
    assert_eq!(sent, [Some("Basic YW5uOnA0c3N3MHJk".to_owned())]);

    let mut config = server.config(&ca);
    let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr();
    let url = format!("https://ann:p4ssw0rd@{}", closed.unwrap());
    config.cluster_url = url.parse().unwrap();
    let error = request(&command_client(config).unwrap()).await.unwrap_err();
    assert!(
        !format!("{error} {error:?}").contains("p4ssw0rd"),
        "{error:?}"
    );
}

/// A proxy that forwards every connection to one port. Records the head of each request to the proxy.
struct TestProxy {
    port: u16,
    heads: Arc<Mutex<Vec<String>>>,
}

impl TestProxy {
    async fn http(target: u16, status: &'static str) -> Self {
        Self::start(target, async move |stream, heads| {
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                head.push(char::from(stream.read_u8().await.unwrap()));
            }
            heads.lock().unwrap().push(head);
            let answer = format!("HTTP/1.1 {status}\r\n\r\n");
            stream.write_all(answer.as_bytes()).await.unwrap();
            status.starts_with("200")
        })
        .await
    }

    /// Starts a SOCKS5 proxy that requires a password.
    async fn socks(target: u16) -> Self {
        Self::start(target, async move |stream, heads| {
            let text = async |stream: &mut TcpStream| {
                let n = stream.read_u8().await.unwrap();
                let mut text = vec![0; usize::from(n)];
                stream.read_exact(&mut text).await.unwrap();
                text
            };
            assert_eq!(stream.read_u8().await.unwrap(), 5);
            assert_eq!(text(stream).await, [2]);
            stream.write_all(&[5, 2]).await.unwrap();
            assert_eq!(stream.read_u8().await.unwrap(), 1);
            let (user, password) = (text(stream).await, text(stream).await);
            stream.write_all(&[1, 0]).await.unwrap();
            let mut head = [0; 4];
            stream.read_exact(&mut head).await.unwrap();
            // Address type 3: the client sends the host name, and the proxy resolves it.
            assert_eq!(head, [5, 1, 0, 3]);
            let host = text(stream).await;
            let port = stream.read_u16().await.unwrap();
            let part = |bytes| String::from_utf8(bytes).unwrap();
            let (user, password, host) = (part(user), part(password), part(host));
            heads
                .lock()
                .unwrap()
                .push(format!("{user} {password} {host} {port}"));
            stream
                .write_all(&[5, 0, 0, 1, 0, 0, 0, 0, 0, 0])
                .await
                .unwrap();
            true
        })
        .await
    }

    async fn start<F>(target: u16, handshake: F) -> Self
    where
        F: AsyncFn(&mut TcpStream, &Mutex<Vec<String>>) -> bool + 'static,
    {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = Self {
            port: listener.local_addr().unwrap().port(),
            heads: Arc::default(),
        };
        let heads = Arc::clone(&proxy.heads);
        tokio::task::spawn_local(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                if handshake(&mut stream, &heads).await {
                    let mut server = TcpStream::connect(("127.0.0.1", target)).await.unwrap();
                    tokio::task::spawn_local(async move {
                        drop(tokio::io::copy_bidirectional(&mut stream, &mut server).await);
                    });
                }
            }
        });
        proxy
    }

    fn heads(&self) -> Vec<String> {
        self.heads.lock().unwrap().clone()
    }
}

/// Starts a server with a new certificate authority. The returned configuration trusts the authority.
async fn tls_server(directory: &TempDir) -> (TlsServer, Config) {
    let authority = Authority::new();
    let ca = file(directory, "ca.crt", &authority.0.pem());
    let server = TlsServer::start(&authority).await;
    let config = server.config(&ca);
    (server, config)
}

/// Runs a test that calls `spawn_local`.
async fn locally(test: impl Future<Output = ()>) {
    tokio::task::LocalSet::new().run_until(test).await;
}

#[tokio::test]
async fn https_server_is_reached_through_http_proxy() {
    locally(async {
        let directory = tempfile::tempdir().unwrap();
        let (server, mut config) = tls_server(&directory).await;
        let proxy = TestProxy::http(server.port, "200 Connection established").await;
        let url = format!("http://ann:p%40ss@127.0.0.1:{}", proxy.port);
        config.proxy_url = Some(url.parse().unwrap());
        // The host name does not resolve, so only the proxy can connect to the server.
        config.cluster_url = "https://api.invalid:6443".parse().unwrap();
        config.tls_server_name = Some("127.0.0.1".to_owned());
        let client = command_client(config).unwrap();
        assert_eq!(request(&client).await.unwrap(), "served");
        let heads = proxy.heads();
        assert_eq!(heads.len(), 1);
        let lines: Vec<&str> = heads[0].lines().collect();
        assert_eq!(lines[0], "CONNECT api.invalid:6443 HTTP/1.1");
        assert!(
            lines.contains(&"Proxy-Authorization: Basic YW5uOnBAc3M="),
            "{lines:?}"
        );
        // The proxy's credentials must not be sent to the server.
        assert_eq!(*server.authorizations.lock().unwrap(), [None]);
    })
    .await;
}

#[tokio::test]
async fn http_server_is_reached_through_http_proxy() {
    locally(async {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (stream, _) = listener.accept().await.unwrap();
            serve_one(stream, Arc::default()).await;
        });
        let proxy = TestProxy::http(target, "200 OK").await;
        let mut config = Config::new("http://api.invalid".parse().unwrap());
        config.proxy_url = Some(format!("http://127.0.0.1:{}", proxy.port).parse().unwrap());
        let client = command_client(config).unwrap();
        assert_eq!(request(&client).await.unwrap(), "served");
        assert!(proxy.heads()[0].starts_with("CONNECT api.invalid:80 HTTP/1.1\r\n"));
    })
    .await;
}

#[tokio::test]
async fn server_is_reached_through_socks_proxy() {
    locally(async {
        let directory = tempfile::tempdir().unwrap();
        let (server, mut config) = tls_server(&directory).await;
        let proxy = TestProxy::socks(server.port).await;
        let url = format!("socks5://ann:p%40ss@127.0.0.1:{}", proxy.port);
        config.proxy_url = Some(url.parse().unwrap());
        config.cluster_url = "https://api.invalid".parse().unwrap();
        config.tls_server_name = Some("127.0.0.1".to_owned());
        let client = command_client(config).unwrap();
        assert_eq!(request(&client).await.unwrap(), "served");
        assert_eq!(proxy.heads(), ["ann p@ss api.invalid 443"]);
    })
    .await;
}

#[tokio::test]
async fn proxy_errors_have_proxy_address_without_credentials() {
    locally(async {
        let directory = tempfile::tempdir().unwrap();
        let (server, config) = tls_server(&directory).await;
        let closed = TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr();
        let closed = closed.unwrap().port();
        let refusing = TestProxy::http(server.port, "407 Proxy Authentication Required").await;
        for (scheme, port, reason) in [
            ("http", refusing.port, "proxy authorization required"),
            ("http", closed, "Connection refused"),
            ("https", closed, "Connection refused"),
            ("socks5", closed, "failed to create underlying connection"),
        ] {
            let mut config = config.clone();
            let url = format!("{scheme}://ann:p4ssw0rd@127.0.0.1:{port}");
            config.proxy_url = Some(url.parse().unwrap());
            let error = request(&command_client(config).unwrap()).await.unwrap_err();
            let text = error.to_string();
            let address = format!("proxy {scheme}://127.0.0.1:{port}: ");
            assert!(text.contains(&address) && text.contains(reason), "{text}");
            assert!(
                !format!("{text} {error:?}").contains("p4ssw0rd"),
                "{error:?}"
            );
        }
        let mut config = config.clone();
        config.proxy_url = Some("ftp://ann:p4ssw0rd@proxy".parse().unwrap());
        let error = command_client(config).err().unwrap();
        assert_eq!(
            Error::from(error).to_string(),
            "`proxy-url` has the unsupported scheme `ftp`; use http, https or socks5"
        );
    })
    .await;
}
