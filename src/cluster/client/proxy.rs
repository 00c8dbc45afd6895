//! Connects to the API server through an HTTP, HTTPS or SOCKS5 proxy.

use std::error::Error as StdError;
use std::fmt;

use http::uri::{Authority, Scheme};
use http::{HeaderValue, Uri};
use hyper::rt::{Read, Write};
use hyper_util::client::legacy::connect::proxy::{SocksV5, Tunnel};
use hyper_util::client::proxy::matcher::Matcher;
use kube::Config;
use tower::{BoxError, Service, ServiceExt as _};

use crate::cluster::error::innermost;

/// The default port of a SOCKS proxy.
const SOCKS_PORT: u16 = 1080;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Protocol {
    Http,
    Https,
    Socks,
}

pub(super) struct Proxy {
    pub(super) protocol: Protocol,
    /// The URL of the proxy, without credentials.
    address: Uri,
    basic: Option<HeaderValue>,
    password: Option<(String, String)>,
}

#[derive(Debug)]
pub(super) struct ProxyError {
    /// The address of the proxy, without credentials.
    address: String,
    reason: String,
}

impl fmt::Display for ProxyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "proxy {}: {}", self.address, self.reason)
    }
}

impl StdError for ProxyError {}

impl Proxy {
    /// Creates the proxy at `url`. Adds the default port to `config.cluster_url`, because proxies require an explicit
    /// port.
    pub(super) fn new(url: &Uri, config: &mut Config) -> Result<Self, kube::Error> {
        let protocol = match url.scheme_str() {
            None | Some("http") => Protocol::Http,
            Some("https") => Protocol::Https,
            Some("socks5" | "socks5h") => Protocol::Socks,
            Some(other) => {
                return Err(wrong(&format!(
                    "`proxy-url` has the unsupported scheme `{other}`; use http, https or socks5"
                )));
            }
        };
        let matcher = Matcher::builder().all(url.to_string()).build();
        let proxy = matcher
            .intercept(&config.cluster_url)
            .ok_or_else(|| wrong("`proxy-url` is not a valid proxy URL"))?;
        let password = proxy.raw_auth();
        let password = password.map(|(user, password)| (user.to_owned(), password.to_owned()));
        if config.cluster_url.scheme() == Some(&Scheme::HTTP) {
            config.cluster_url = with_port(&config.cluster_url, 80);
        }
        let address = match protocol {
            Protocol::Socks => with_port(proxy.uri(), SOCKS_PORT),
            Protocol::Http | Protocol::Https => proxy.uri().clone(),
        };
        Ok(Self {
            protocol,
            address,
            basic: proxy.basic_auth().cloned(),
            password,
        })
    }

    /// Returns a connector for connections through an HTTP proxy. `connector` connects to the proxy itself.
    pub(super) fn tunnel<C>(
        &self,
        connector: C,
    ) -> impl Service<Uri, Response = C::Response, Error = ProxyError, Future: Send>
    + Clone
    + Send
    + Sync
    + use<C>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Future: Send + 'static,
        C::Response: Read + Write + Unpin + Send + 'static,
        C::Error: Into<BoxError>,
    {
        let mut tunnel = Tunnel::new(self.address.clone(), connector);
        if let Some(basic) = &self.basic {
            tunnel = tunnel.with_auth(basic.clone());
        }
        let address = self.shown();
        tunnel.map_err(move |error| failure(&address, &error))
    }

    /// Returns a connector for connections through a SOCKS proxy. `connector` connects to the proxy itself.
    pub(super) fn socks<C>(
        &self,
        connector: C,
    ) -> impl Service<Uri, Response = C::Response, Error = ProxyError, Future: Send>
    + Clone
    + Send
    + Sync
    + use<C>
    where
        C: Service<Uri> + Clone + Send + Sync + 'static,
        C::Future: Send + 'static,
        C::Response: Read + Write + Unpin + Send + 'static,
        C::Error: StdError + Send + Sync + 'static,
    {
        // As in Go's HTTP client, the proxy resolves the API server's host name.
        let mut socks = SocksV5::new(self.address.clone(), connector);
        if let Some((user, password)) = &self.password {
            socks = socks.with_auth(user.clone(), password.clone());
        }
        let address = self.shown();
        socks.map_err(move |error| failure(&address, &error))
    }

    fn shown(&self) -> String {
        self.address.to_string().trim_end_matches('/').to_owned()
    }
}

fn failure(address: &str, error: &(dyn StdError + 'static)) -> ProxyError {
    ProxyError {
        address: address.to_owned(),
        reason: innermost(error),
    }
}

fn wrong(text: &str) -> kube::Error {
    kube::Error::Service(text.into())
}

fn with_port(uri: &Uri, default: u16) -> Uri {
    let mut parts = uri.clone().into_parts();
    if let (None, Some(host)) = (uri.port(), uri.host())
        && let Ok(authority) = format!("{host}:{default}").parse::<Authority>()
    {
        parts.authority = Some(authority);
    }
    Uri::from_parts(parts).unwrap_or_else(|_| uri.clone())
}
