//! HTTP server for metrics.
//!
//! Each connection gets one response, then it is closed. Everything is bounded: the number of connections, the bytes of
//! a request, and the total time of a connection, so that slow or hostile clients cannot block others for long.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::connection_slots::{ConnectionSlots, Slot};
use super::exposition::Format;
use super::filter::Filter;
use super::metrics;
use super::request::{ParsedHead, Request, parse_head};
use crate::attach::{self, AttachError, Attached, Target};
use crate::failure::Failure;
use crate::output;

/// Maximum number of simultaneous connections. Those whose request is still being read can be evicted for new ones.
const MAX_CONNECTIONS: usize = 8;
/// Time limit for a whole connection.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// Time limit for the client to close the connection after the response.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Maximum length of a request, in bytes.
const MAX_REQUEST_LENGTH: usize = 8 * 1024;
/// Delay after a failed accept, for example because of too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Serves metrics until interrupted.
pub(super) fn run(address: &str, targets: Vec<Target>, filter: Filter) -> Result<(), Failure> {
    let listener = listen(address).map_err(|source| Failure::Listen {
        address: address.to_owned(),
        source,
    })?;
    let local = listener.local_addr()?;
    output::text(&format!("listening on http://{local}/metrics\n"))?;
    let server = Arc::new(MetricsServer { targets, filter });
    let slots = ConnectionSlots::new(MAX_CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(ACCEPT_RETRY_DELAY);
            continue;
        };
        let stream = Arc::new(stream);
        let slot = slots.acquire(&stream);
        let server = Arc::clone(&server);
        let spawned = thread::Builder::new()
            .name("scrape".to_owned())
            .spawn(move || match slot {
                Some(slot) => server.serve(stream, slot),
                None => reject(stream),
            });
        // If no thread could be started, the connection has been dropped and thereby closed.
        drop(spawned);
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    TcpListener::bind(addresses.as_slice())
}

/// The metrics server: the drivers to read and the counters to include.
struct MetricsServer {
    targets: Vec<Target>,
    filter: Filter,
}

/// An HTTP response.
struct Response {
    status: &'static str,
    content_type: &'static str,
    body: String,
    headers: &'static str,
}

impl Response {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
            headers: "",
        }
    }
}

/// A connection with a deadline for all its reads and writes.
struct DeadlineStream {
    stream: Arc<TcpStream>,
    deadline: Instant,
}

impl DeadlineStream {
    fn remaining(&self) -> io::Result<Option<Duration>> {
        let remaining = self.deadline.saturating_duration_since(Instant::now());
        if remaining.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(remaining))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.remaining()?)?;
        (&*self.stream).read(buffer)
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(self.remaining()?)?;
            match (&*self.stream).write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }
}

impl MetricsServer {
    fn serve(&self, stream: Arc<TcpStream>, mut slot: Slot) {
        let mut connection = DeadlineStream {
            stream,
            deadline: Instant::now() + CONNECTION_TIMEOUT,
        };
        // A client that has disconnected or is too slow gets no response.
        let Ok(read) = read_request(&mut connection) else {
            return;
        };
        if !slot.begin_response() {
            return;
        }
        let is_head = read.as_ref().is_ok_and(|request| request.is_head);
        let response = match read {
            Ok(request) => self.response(&request),
            Err(response) => response,
        };
        let _ = send(&mut connection, &response, is_head);
    }

    fn response(&self, request: &Request) -> Response {
        if !request.is_get && !request.is_head {
            return Response {
                headers: "Allow: GET, HEAD\r\n",
                ..Response::text("405 Method Not Allowed", "only GET and HEAD\n")
            };
        }
        match request.path.as_str() {
            "/metrics" => {
                let format = Format::for_accept(request.accept.as_deref());
                match self.metrics(format) {
                    Ok(text) => Response {
                        content_type: format.content_type(),
                        ..Response::text("200 OK", text)
                    },
                    Err(error) => Response::text("503 Service Unavailable", format!("{error}\n")),
                }
            }
            "/" => Response::text("200 OK", "the metrics are at /metrics\n"),
            _ => Response::text("404 Not Found", "not found; the metrics are at /metrics\n"),
        }
    }

    /// Returns the metrics of all drivers. An error is that of an only driver that cannot be read.
    fn metrics(&self, format: Format) -> Result<String, AttachError> {
        if let [target] = &self.targets[..] {
            let attached = Attached::open(target)?;
            return Ok(metrics::report(&attached, &self.filter, format));
        }
        let drivers = attach::open_all(&self.targets);
        Ok(metrics::report_all(&drivers, &self.filter, format))
    }
}

/// Reads a request. Returns the error response if the request is invalid.
fn read_request(connection: &mut DeadlineStream) -> io::Result<Result<Request, Response>> {
    let mut buffer = [0; MAX_REQUEST_LENGTH];
    let mut length = 0;
    loop {
        if length == buffer.len() {
            return Ok(Err(too_large()));
        }
        match connection.read(&mut buffer[length..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => length += read,
        }
        match parse_head(&buffer[..length]) {
            ParsedHead::Complete(request) => return Ok(Ok(request)),
            ParsedHead::Partial => {}
            ParsedHead::TooLarge => return Ok(Err(too_large())),
            ParsedHead::Malformed(error) => {
                return Ok(Err(Response::text("400 Bad Request", format!("{error}\n"))));
            }
        }
    }
}

fn too_large() -> Response {
    Response::text(
        "431 Request Header Fields Too Large",
        "the request is too long\n",
    )
}

fn send(connection: &mut DeadlineStream, response: &Response, is_head: bool) -> io::Result<()> {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
        response.status,
        response.content_type,
        response.body.len(),
        response.headers
    );
    if !is_head {
        text.push_str(&response.body);
    }
    connection.write_all(text.as_bytes())?;
    shutdown_gracefully(connection)
}

/// Half-closes the connection and reads the remaining input for a short time. Closing a socket with unread input would
/// reset the connection, and the client could lose the response.
fn shutdown_gracefully(connection: &mut DeadlineStream) -> io::Result<()> {
    connection.stream.shutdown(Shutdown::Write)?;
    connection.deadline = connection.deadline.min(Instant::now() + CLOSE_TIMEOUT);
    let mut rest = [0; 1024];
    while connection.read(&mut rest)? > 0 {}
    Ok(())
}

/// Responds that there are too many connections. The request is not read.
fn reject(stream: Arc<TcpStream>) {
    let mut connection = DeadlineStream {
        stream,
        deadline: Instant::now() + CLOSE_TIMEOUT,
    };
    let response = Response::text("503 Service Unavailable", "too many connections\n");
    let _ = send(&mut connection, &response, false);
}
