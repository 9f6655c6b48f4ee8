//! Metrics over HTTP, for whoever scrapes them.
//!
//! One answer for each connection, then it is closed. Everything has a limit: connections at a time, bytes of a request,
//! and the time from the first byte to the last, so that slow or hostile scrapers keep nobody else waiting for long.

use std::fmt::Write as _;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use super::filter::Filter;
use super::openmetrics;
use super::places::{Place, Places};
use super::request::{Head, Request, head};
use crate::attach::{Attached, Target};
use crate::failure::Failure;
use crate::output;

/// Connections at the same time: those that wait to be answered make room for others, those that are answered do not.
const CONNECTIONS: usize = 8;
/// How long a connection may take for everything.
const PATIENCE: Duration = Duration::from_secs(5);
/// How long the other side may take to close, once it was answered.
const PARTING: Duration = Duration::from_millis(500);
/// Longest request, in bytes.
const REQUEST_LENGTH: usize = 8 * 1024;
/// After an accept that failed, for example because there are too many open files.
const RECOVERY: Duration = Duration::from_millis(100);

/// Answers scrapers until interrupted.
pub(super) fn run(address: &str, target: Target, filter: Filter) -> Result<(), Failure> {
    let listener = listen(address).map_err(|source| Failure::Listen {
        address: address.to_owned(),
        source,
    })?;
    let local = listener.local_addr()?;
    output::text(&format!("listening on http://{local}/metrics\n"))?;
    let served = Arc::new(Served { target, filter });
    let places = Places::new(CONNECTIONS);
    loop {
        let Ok((stream, _)) = listener.accept() else {
            thread::sleep(RECOVERY);
            continue;
        };
        let stream = Arc::new(stream);
        let place = places.take(&stream);
        let served = Arc::clone(&served);
        let spawned = thread::Builder::new()
            .name("scrape".to_owned())
            .spawn(move || match place {
                Some(place) => served.serve(stream, place),
                None => turn_away(stream),
            });
        // Without a thread the connection was dropped, which closes it.
        drop(spawned);
    }
}

fn listen(address: &str) -> io::Result<TcpListener> {
    let addresses: Vec<_> = address.to_socket_addrs()?.collect();
    TcpListener::bind(addresses.as_slice())
}

/// What scrapers get.
struct Served {
    target: Target,
    filter: Filter,
}

/// An answer.
struct Answer {
    status: &'static str,
    content_type: &'static str,
    body: String,
    headers: &'static str,
}

impl Answer {
    fn text(status: &'static str, body: impl Into<String>) -> Self {
        Self {
            status,
            content_type: "text/plain; charset=utf-8",
            body: body.into(),
            headers: "",
        }
    }
}

/// A connection, and when it has to be over.
struct Limited {
    stream: Arc<TcpStream>,
    until: Instant,
}

impl Limited {
    fn left(&self) -> io::Result<Option<Duration>> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        Ok(Some(left))
    }

    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(self.left()?)?;
        (&*self.stream).read(buffer)
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            self.stream.set_write_timeout(self.left()?)?;
            match (&*self.stream).write(bytes)? {
                0 => return Err(io::ErrorKind::WriteZero.into()),
                written => bytes = &bytes[written..],
            }
        }
        Ok(())
    }
}

impl Served {
    fn serve(&self, stream: Arc<TcpStream>, mut place: Place) {
        let mut connection = Limited {
            stream,
            until: Instant::now() + PATIENCE,
        };
        // A scraper that is gone, or too slow, gets nothing more.
        let Ok(read) = read_request(&mut connection) else {
            return;
        };
        if !place.keep() {
            return;
        }
        let is_head = read.as_ref().is_ok_and(|request| request.is_head);
        let answer = match read {
            Ok(request) => self.answer(&request),
            Err(answer) => answer,
        };
        let _ = send(&mut connection, &answer, is_head);
    }

    fn answer(&self, request: &Request) -> Answer {
        if !request.is_get && !request.is_head {
            return Answer {
                headers: "Allow: GET, HEAD\r\n",
                ..Answer::text("405 Method Not Allowed", "only GET and HEAD\n")
            };
        }
        match request.path.as_str() {
            "/metrics" => match Attached::open(&self.target) {
                Ok(attached) => Answer {
                    content_type: openmetrics::CONTENT_TYPE,
                    ..Answer::text("200 OK", openmetrics::report(&attached, &self.filter))
                },
                Err(error) => Answer::text("503 Service Unavailable", format!("{error}\n")),
            },
            "/" => Answer::text("200 OK", "the counters of a driver: /metrics\n"),
            _ => Answer::text("404 Not Found", "there is only /metrics\n"),
        }
    }
}

/// Reads a request, or makes the answer to what is none.
fn read_request(connection: &mut Limited) -> io::Result<Result<Request, Answer>> {
    let mut buffer = [0; REQUEST_LENGTH];
    let mut length = 0;
    loop {
        if length == buffer.len() {
            return Ok(Err(too_large()));
        }
        match connection.read(&mut buffer[length..])? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            read => length += read,
        }
        match head(&buffer[..length]) {
            Head::Whole(request) => return Ok(Ok(request)),
            Head::Begun => {}
            Head::TooLarge => return Ok(Err(too_large())),
            Head::Bad(error) => {
                return Ok(Err(Answer::text("400 Bad Request", format!("{error}\n"))));
            }
        }
    }
}

fn too_large() -> Answer {
    Answer::text(
        "431 Request Header Fields Too Large",
        "the request is too long\n",
    )
}

fn send(connection: &mut Limited, answer: &Answer, is_head: bool) -> io::Result<()> {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write!(
        text,
        "HTTP/1.1 {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len(),
        answer.headers
    );
    if !is_head {
        text.push_str(&answer.body);
    }
    connection.write_all(text.as_bytes())?;
    part(connection)
}

/// Reads what is still on its way, for a short time: a connection that is closed before would be reset, and the answer
/// lost with it.
fn part(connection: &mut Limited) -> io::Result<()> {
    connection.stream.shutdown(Shutdown::Write)?;
    connection.until = connection.until.min(Instant::now() + PARTING);
    let mut rest = [0; 1024];
    while connection.read(&mut rest)? > 0 {}
    Ok(())
}

/// Tells a scraper that there are too many of them. What it asks for is not read.
fn turn_away(stream: Arc<TcpStream>) {
    let mut connection = Limited {
        stream,
        until: Instant::now() + PARTING,
    };
    let answer = Answer::text("503 Service Unavailable", "too many connections\n");
    let _ = send(&mut connection, &answer, false);
}
