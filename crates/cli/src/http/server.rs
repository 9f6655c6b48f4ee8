// SPDX-License-Identifier: Apache-2.0
//! The server: accepts connections, reads requests, and sends what a handler replies.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::connection_slots::{ConnectionSlots, Slot};
use super::request::{ParsedHead, Request, parse_head};
use crate::failure::Failure;

/// Time limit for a request with its response, and for each part of an event.
const CONNECTION_TIMEOUT: Duration = Duration::from_secs(5);
/// Bytes of a part of an event.
const EVENT_PART: usize = 16 * 1024;
/// Time after which the kernel closes an event stream whose client acknowledges nothing, as one does that has lost its network.
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(30);
/// Time limit for the client to close the connection after the response.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);
/// Delay after a failed accept, for example because of too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// Bounds of a server.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Simultaneous connections without those of event streams. Those whose request is still being read, or whose client does not
    /// close after the response, can be evicted for new ones.
    pub(crate) connections: usize,
    /// Bytes of a request.
    pub(crate) request_bytes: usize,
}

/// Answer of a handler.
pub(crate) enum Reply {
    Response(Response),
    /// A stream of events, which the function writes. The connection no longer counts among those of [`Limits`]: the handler
    /// bounds the number of streams.
    Events(Response, WriteEvents),
}

/// Writes events until the client disconnects.
type WriteEvents = Box<dyn FnOnce(&mut EventWriter) -> io::Result<()> + Send>;

/// An HTTP response.
#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: &'static str,
    pub(crate) content_type: &'static str,
    pub(crate) body: Cow<'static, str>,
    /// Further header lines, each with its line end.
    pub(crate) headers: String,
}

impl Response {
    pub(crate) fn text(status: &'static str, body: impl Into<Cow<'static, str>>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
            headers: String::new(),
        }
    }
}

/// The open end of an event stream.
pub(crate) struct EventWriter {
    connection: DeadlineStream,
}

impl EventWriter {
    /// Writes a text, each part of it within a time limit of its own: a long one over a slow network takes its time, 3 KB/s at
    /// least. Fails once the client has disconnected or is too slow.
    pub(crate) fn write(&mut self, text: &str) -> io::Result<()> {
        for part in text.as_bytes().chunks(EVENT_PART) {
            self.connection.deadline = Instant::now() + CONNECTION_TIMEOUT;
            self.connection.write_all(part)?;
        }
        Ok(())
    }

    /// Fails if the client has disconnected. Does not wait; what the client has sent is dropped.
    pub(crate) fn check_open(&mut self) -> io::Result<()> {
        let stream = &self.connection.stream;
        stream.set_nonblocking(true)?;
        let read = (&**stream).read(&mut [0; 1024]);
        stream.set_nonblocking(false)?;
        match read {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Err(error) if error.kind() != io::ErrorKind::WouldBlock => Err(error),
            _ => Ok(()),
        }
    }
}

/// Opens the socket of a server.
pub(crate) fn listen(address: &str) -> Result<TcpListener, Failure> {
    let bind = || -> io::Result<TcpListener> {
        let addresses: Vec<_> = address.to_socket_addrs()?.collect();
        TcpListener::bind(addresses.as_slice())
    };
    bind().map_err(|source| Failure::Listen {
        address: address.to_owned(),
        source,
    })
}

/// Serves until the process ends. The handler runs on the thread of each connection.
pub(crate) fn serve<H>(listener: &TcpListener, limits: Limits, handler: H) -> !
where
    H: Fn(&Request) -> Reply + Send + Sync + 'static,
{
    let handler = Arc::new(handler);
    let slots = ConnectionSlots::new(limits.connections);
    let rejections = ConnectionSlots::new(limits.connections);
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(ACCEPT_RETRY_DELAY);
            continue;
        };
        let stream = Arc::new(stream);
        let slot = slots.acquire(&stream);
        let is_rejected = slot.is_none();
        let slot = slot.or_else(|| rejections.acquire(&stream));
        let handler = Arc::clone(&handler);
        let spawned = thread::Builder::new()
            .name("http".to_owned())
            .spawn(move || match slot {
                Some(_slot) if is_rejected => reject(stream),
                Some(slot) => converse(stream, slot, limits, &*handler),
                None => {}
            });
        // If no thread could be started, the connection has been dropped and thereby closed.
        drop(spawned);
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

/// Reads the request of a connection and sends the reply. A client that has disconnected or is too slow gets none.
fn converse(
    stream: Arc<TcpStream>,
    mut slot: Slot,
    limits: Limits,
    handler: &impl Fn(&Request) -> Reply,
) {
    let mut connection = DeadlineStream {
        stream,
        deadline: Instant::now() + CONNECTION_TIMEOUT,
    };
    let Ok(read) = read_request(&mut connection, limits.request_bytes) else {
        return;
    };
    if !slot.begin_response() {
        return;
    }
    let is_head = read.as_ref().is_ok_and(|request| request.is_head);
    let reply = match read {
        Ok(request) if request.is_get || request.is_head => handler(&request),
        Ok(_) => Reply::Response(Response {
            headers: "Allow: GET, HEAD\r\n".to_owned(),
            ..Response::text("405 Method Not Allowed", "only GET and HEAD\n")
        }),
        Err(response) => Reply::Response(response),
    };
    // The client may have gone; there is nothing to do then.
    let _ = match reply {
        Reply::Events(response, write) if !is_head => {
            drop(slot);
            stream_events(connection, &response, write)
        }
        Reply::Response(response) | Reply::Events(response, _) => {
            respond(&mut connection, &response, is_head, slot)
        }
    };
}

fn respond(
    connection: &mut DeadlineStream,
    response: &Response,
    is_head: bool,
    mut slot: Slot,
) -> io::Result<()> {
    send(connection, response, is_head)?;
    slot.end_response(&connection.stream);
    shutdown_gracefully(connection)
}

/// Reads a request. Returns the error response if the request is invalid.
fn read_request(
    connection: &mut DeadlineStream,
    limit: usize,
) -> io::Result<Result<Request, Response>> {
    let mut buffer = vec![0; limit];
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

/// Returns the head of a response, with the length of its body unless that has no end.
fn head(response: &Response, length: Option<usize>) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail, here and below.
    let _ = write!(
        text,
        "HTTP/1.1 {}\r\nContent-Type: {}\r\n",
        response.status, response.content_type
    );
    if let Some(length) = length {
        let _ = write!(text, "Content-Length: {length}\r\n");
    }
    let _ = write!(text, "{}Connection: close\r\n\r\n", response.headers);
    text
}

fn send(connection: &mut DeadlineStream, response: &Response, is_head: bool) -> io::Result<()> {
    let mut text = head(response, Some(response.body.len()));
    if !is_head {
        text.push_str(&response.body);
    }
    connection.write_all(text.as_bytes())
}

/// Sends the head of a stream, then its events until the client disconnects.
fn stream_events(
    mut connection: DeadlineStream,
    response: &Response,
    write: WriteEvents,
) -> io::Result<()> {
    let limit = u32::try_from(ACKNOWLEDGEMENT_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
    rustix::net::sockopt::set_tcp_user_timeout(&connection.stream, limit)?;
    connection.write_all(head(response, None).as_bytes())?;
    write(&mut EventWriter { connection })
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
    let _ =
        send(&mut connection, &response, false).and_then(|()| shutdown_gracefully(&mut connection));
}
