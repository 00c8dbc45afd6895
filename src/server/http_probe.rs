//! The command `probe` requests a URL until the response is a success. `helm test` and health checks of containers use it,
//! because the image has no other HTTP client.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::str::FromStr;
use std::time::{Duration, Instant};

use http::{StatusCode, Uri, uri::Scheme};

/// The maximum duration of one request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The pause between two requests.
const PAUSE: Duration = Duration::from_millis(500);

/// The maximum size of a response.
const MAX_BYTES: u64 = 1024 * 1024;

/// The URL of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    url: String,
    host: String,
    port: u16,
    path: String,
}

impl Target {
    /// Returns the host without brackets, the port, and the path with the query.
    #[must_use]
    pub fn parts(&self) -> (&str, u16, &str) {
        (&self.host, self.port, &self.path)
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.url)
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(url: &str) -> Result<Self, String> {
        let uri: Uri = url
            .parse()
            .map_err(|error| format!("`{url}` is not a URL: {error}"))?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err("the scheme must be http, as in `http://localhost:8080/readyz`".to_owned());
        }
        let host = uri.host().unwrap_or_default();
        let brackets = host.strip_prefix('[').and_then(|it| it.strip_suffix(']'));
        Ok(Self {
            url: url.to_owned(),
            host: brackets.unwrap_or(host).to_owned(),
            port: uri.port_u16().unwrap_or(80),
            path: uri
                .path_and_query()
                .map_or("/", |it| it.as_str())
                .to_owned(),
        })
    }
}

/// Requests `target` until the status of a response is in the range of 200 to 299. Writes the body of that response to
/// `out`.
///
/// # Errors
/// Returns an error message with the last failure if there is no such response within `timeout`. The last request may
/// take another 5 seconds.
pub fn run(target: &Target, timeout: Duration, out: &mut dyn Write) -> Result<(), String> {
    let deadline = Instant::now() + timeout;
    loop {
        let failure = match get(target, Instant::now() + REQUEST_TIMEOUT) {
            Ok((status, body)) if status.is_success() => {
                return out
                    .write_all(&body)
                    .map_err(|error| format!("cannot print the response: {error}"));
            }
            Ok((status, body)) => {
                format!("{status}: {}", String::from_utf8_lossy(&body).trim_end())
            }
            Err(error) => error,
        };
        if Instant::now() + PAUSE >= deadline {
            return Err(format!("{target}: {failure}"));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Sends one request. Returns the status and the body of the response.
///
/// # Errors
/// Returns an error message if there is no complete response before the deadline.
pub(super) fn get(target: &Target, deadline: Instant) -> Result<(StatusCode, Vec<u8>), String> {
    let mut stream = connect(target, deadline)?;
    let mut exchange = || {
        // HTTP 1.0 has no chunked responses, so the response is simple to parse.
        write!(
            stream,
            "GET {} HTTP/1.0\r\nHost: {}\r\nConnection: close\r\n\r\n",
            target.path, target.host
        )?;
        read(&mut stream, deadline)
    };
    let response = exchange().map_err(|error| match error.kind() {
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => "no complete response".to_owned(),
        _ => error.to_string(),
    })?;
    parse(&response).ok_or_else(|| "the response is not HTTP".to_owned())
}

/// Connects to the first address of the host that accepts a connection.
fn connect(target: &Target, deadline: Instant) -> Result<TcpStream, String> {
    let addresses = (&*target.host, target.port)
        .to_socket_addrs()
        .map_err(|error| format!("cannot resolve {}: {error}", target.host))?;
    let mut failure = format!("{} has no address", target.host);
    for address in addresses {
        match TcpStream::connect_timeout(&address, time_until(deadline)) {
            Ok(stream) => return Ok(stream),
            Err(error) => failure = format!("cannot connect to {address}: {error}"),
        }
    }
    Err(failure)
}

/// Reads until the server closes the connection.
fn read(stream: &mut TcpStream, deadline: Instant) -> io::Result<Vec<u8>> {
    let (mut response, mut n_before) = (Vec::new(), usize::MAX);
    while response.len() != n_before {
        n_before = response.len();
        stream.set_read_timeout(Some(time_until(deadline)))?;
        let mut chunk = [0; 8192];
        let n_read = stream.read(&mut chunk)?;
        response.extend(chunk.iter().take(n_read));
        if response.len() as u64 > MAX_BYTES {
            return Err(io::Error::other("the response is too large"));
        }
        if Instant::now() >= deadline && n_read > 0 {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
    Ok(response)
}

/// Returns the remaining time, at least a millisecond, since a timeout of zero is invalid.
fn time_until(deadline: Instant) -> Duration {
    let remaining = deadline.saturating_duration_since(Instant::now());
    remaining.max(Duration::from_millis(1))
}

fn parse(response: &[u8]) -> Option<(StatusCode, Vec<u8>)> {
    const END: &[u8] = b"\r\n\r\n";
    let at = response.windows(END.len()).position(|it| it == END)?;
    let (head, rest) = response.split_at_checked(at)?;
    let head = std::str::from_utf8(head).ok()?;
    let status = head.strip_prefix("HTTP/1.")?.split(' ').nth(1)?;
    let body = rest.strip_prefix(END)?;
    Some((status.parse().ok()?, body.to_vec()))
}
