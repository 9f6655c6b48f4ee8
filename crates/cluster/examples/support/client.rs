// SPDX-License-Identifier: Apache-2.0
//! A client that sends one request after the other, from the lines of its input, and awaits the answer to each.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::{Duration, Instant};

use taran::Client;
use taran::idle::{Backoff, IdleStrategy as _};
use taran_cluster_client::protocol::AdminResponseCode;
use taran_cluster_client::{ClusterClient, ClusterContext, ClusterEvent};

use super::Failure;

/// Time for the first election, for each reconnection, and for the answer to a line.
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests and answers of a service.
pub(crate) trait Dialogue {
    /// Returns the request of a line; none if the line waits for a message that comes anyway.
    fn request(&mut self, line: &str) -> Result<Option<Vec<u8>>, String>;

    /// Prints a message of the service. Returns true if it is the last one that the line awaits.
    fn on_message(&mut self, message: &[u8], output: &mut dyn Write) -> io::Result<bool>;
}

/// Event that the client waits for.
#[derive(Debug, PartialEq, Eq)]
enum Awaited {
    Answer(Request),
    Message,
    /// The end of a snapshot, with the correlation id of its request.
    Snapshot(i64),
}

/// A request that has no answer yet.
#[derive(Debug, PartialEq, Eq)]
struct Request {
    bytes: Vec<u8>,
    /// Number of the last offer; none if it has to be offered, the first time or again.
    offer: Option<u64>,
    /// It was offered before, so it may be applied.
    is_offered: bool,
}

/// A line whose answer is awaited.
#[derive(Debug, PartialEq, Eq)]
struct Exchange {
    line: String,
    awaited: Awaited,
    deadline: Instant,
}

impl Exchange {
    /// Returns what is not known of the line if its answer does not come any more.
    fn unknown(&self) -> String {
        let line = &self.line;
        match &self.awaited {
            Awaited::Answer(request) if request.is_offered => {
                format!("it is not known whether '{line}' was applied")
            }
            Awaited::Answer(_) => format!("'{line}' was not sent"),
            Awaited::Message => format!("no message came for '{line}'"),
            Awaited::Snapshot(_) => "it is not known whether a snapshot is taken".to_owned(),
        }
    }
}

/// Runs a session until the input has ended. The line `snapshot` asks the cluster for a snapshot.
pub(crate) fn run(
    client: &Client,
    ingress: &str,
    egress: &str,
    dialogue: &mut dyn Dialogue,
    input: impl BufRead + Send + 'static,
    output: &mut dyn Write,
) -> Result<(), Failure> {
    let mut cluster = ClusterContext::new(ingress)
        .egress_channel(egress)
        .message_timeout(PATIENCE)
        .client_name("example")
        .connect(client)?;
    let lines = lines(input);
    let mut exchange = None;
    let mut idle = Backoff::default();
    loop {
        let mut work = 0;
        if exchange.is_none() {
            match lines.try_recv() {
                Ok(line) => {
                    exchange = begin(&mut cluster, dialogue, line?.trim(), output)?;
                    work += 1;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
        }
        if let Some(request) = exchange.as_mut().and_then(to_offer) {
            match cluster.offer(&request.bytes) {
                Ok(number) => {
                    request.offer = Some(number);
                    request.is_offered = true;
                }
                Err(error) if error.is_retryable() => {}
                Err(error) => return Err(error.into()),
            }
        }
        let mut printed = Ok(());
        let mut is_last = false;
        // The session has to be polled, also while there is no input.
        work += cluster.poll(|message, _| {
            if printed.is_ok() {
                printed = dialogue
                    .on_message(message, output)
                    .map(|last| is_last |= last);
            }
        })?;
        printed?;
        if is_last {
            exchange.take_if(|it| !matches!(it.awaited, Awaited::Snapshot(_)));
        }
        while let Some(event) = cluster.next_event() {
            on_event(&event, &mut exchange, output)?;
        }
        give_up(&mut exchange, Instant::now(), output)?;
        idle.idle(work, &mut std::thread::sleep);
    }
    cluster.close();
    Ok(())
}

/// Returns the request that has to be offered.
fn to_offer(exchange: &mut Exchange) -> Option<&mut Request> {
    match &mut exchange.awaited {
        Awaited::Answer(request) if request.offer.is_none() => Some(request),
        _ => None,
    }
}

fn begin(
    cluster: &mut ClusterClient,
    dialogue: &mut dyn Dialogue,
    line: &str,
    output: &mut dyn Write,
) -> Result<Option<Exchange>, Failure> {
    if line.is_empty() {
        return Ok(None);
    }
    let awaited = if line == "snapshot" {
        Awaited::Snapshot(cluster.request_snapshot()?)
    } else {
        match dialogue.request(line) {
            Ok(Some(bytes)) => Awaited::Answer(Request {
                bytes,
                offer: None,
                is_offered: false,
            }),
            Ok(None) => Awaited::Message,
            Err(error) => {
                writeln!(output, "{error}")?;
                return Ok(None);
            }
        }
    };
    Ok(Some(Exchange {
        line: line.to_owned(),
        awaited,
        deadline: Instant::now() + PATIENCE,
    }))
}

/// Gives a line up whose answer has not come in time.
fn give_up(
    exchange: &mut Option<Exchange>,
    now: Instant,
    output: &mut dyn Write,
) -> io::Result<()> {
    if let Some(late) = exchange.take_if(|it| now >= it.deadline) {
        let (seconds, unknown) = (PATIENCE.as_secs(), late.unknown());
        writeln!(output, "no answer within {seconds} s: {unknown}")?;
    }
    Ok(())
}

fn on_event(
    event: &ClusterEvent,
    exchange: &mut Option<Exchange>,
    output: &mut dyn Write,
) -> io::Result<()> {
    match event {
        // The request may be lost, or applied without an answer. It is sent again: in the same session, the service knows its number.
        ClusterEvent::NewLeader { maybe_lost, .. } => {
            if let Some(Exchange {
                awaited: Awaited::Answer(request),
                ..
            }) = exchange
                && request.offer.is_some_and(|number| number <= *maybe_lost)
            {
                request.offer = None;
            }
        }
        // The service has forgotten the numbers of the old session: a request that is sent again might be applied twice.
        ClusterEvent::NewSession { .. } => {
            let lost = exchange.take_if(|it| match &it.awaited {
                Awaited::Answer(request) => request.is_offered,
                Awaited::Snapshot(_) => true,
                Awaited::Message => false,
            });
            if let Some(lost) = lost {
                writeln!(output, "the session was lost: {}", lost.unknown())?;
            }
        }
        ClusterEvent::AdminResponse {
            correlation_id,
            code,
            message,
            ..
        } => {
            let is_awaited = |it: &mut Exchange| it.awaited == Awaited::Snapshot(*correlation_id);
            if exchange.take_if(is_awaited).is_some() {
                if *code == AdminResponseCode::OK {
                    writeln!(output, "a snapshot is being taken")?;
                } else {
                    writeln!(output, "no snapshot: {message}")?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}

/// Reads lines on a thread of its own, as the session has to be polled meanwhile.
fn lines(input: impl BufRead + Send + 'static) -> Receiver<io::Result<String>> {
    let (sender, lines) = channel();
    std::thread::spawn(move || {
        for line in input.lines() {
            if sender.send(line).is_err() {
                return;
            }
        }
    });
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exchange(awaited: Awaited) -> Option<Exchange> {
        Some(Exchange {
            line: "buy 5".to_owned(),
            awaited,
            deadline: Instant::now() + PATIENCE,
        })
    }

    fn answer(offer: Option<u64>, is_offered: bool) -> Option<Exchange> {
        exchange(Awaited::Answer(Request {
            bytes: b"request".to_vec(),
            offer,
            is_offered,
        }))
    }

    /// Returns what is awaited after the event, and what is printed.
    fn after(event: &ClusterEvent, mut exchange: Option<Exchange>) -> (Option<Awaited>, String) {
        let mut output = Vec::new();
        on_event(event, &mut exchange, &mut output).expect("a vector takes all");
        let output = String::from_utf8(output).expect("it is text");
        (exchange.map(|it| it.awaited), output)
    }

    fn awaited(exchange: Option<Exchange>) -> Option<Awaited> {
        exchange.map(|it| it.awaited)
    }

    const NEW_LEADER: ClusterEvent = ClusterEvent::NewLeader {
        leader: 1,
        term: 2,
        maybe_lost: 4,
    };

    const NEW_SESSION: ClusterEvent = ClusterEvent::NewSession {
        old: 1,
        session_id: 2,
        leader: 1,
        maybe_lost: 4,
    };

    #[test]
    fn request_without_an_answer_is_sent_again_to_a_new_leader() {
        let unchanged = |exchange: fn() -> Option<Exchange>| {
            let expected = (awaited(exchange()), String::new());
            assert_eq!(after(&NEW_LEADER, exchange()), expected);
        };
        let to_offer_again = (awaited(answer(None, true)), String::new());
        assert_eq!(after(&NEW_LEADER, answer(Some(4), true)), to_offer_again);
        unchanged(|| answer(Some(5), true));
        unchanged(|| answer(None, false));
        unchanged(|| exchange(Awaited::Message));
        unchanged(|| exchange(Awaited::Snapshot(3)));
        unchanged(|| None);
    }

    #[test]
    fn request_that_was_sent_in_a_lost_session_is_not_sent_in_the_next_one() {
        let unknown = "the session was lost: it is not known whether 'buy 5' was applied\n";
        let given_up = (None, unknown.to_owned());
        assert_eq!(after(&NEW_SESSION, answer(Some(4), true)), given_up);
        // A new leader came before, but not yet room to send it again.
        assert_eq!(after(&NEW_SESSION, answer(None, true)), given_up);
        let unknown = "the session was lost: it is not known whether a snapshot is taken\n";
        let snapshot = exchange(Awaited::Snapshot(3));
        assert_eq!(after(&NEW_SESSION, snapshot), (None, unknown.to_owned()));
        let not_sent = (awaited(answer(None, false)), String::new());
        assert_eq!(after(&NEW_SESSION, answer(None, false)), not_sent);
        let message = (Some(Awaited::Message), String::new());
        assert_eq!(after(&NEW_SESSION, exchange(Awaited::Message)), message);
        assert_eq!(after(&NEW_SESSION, None), (None, String::new()));
    }

    #[test]
    fn line_without_an_answer_is_given_up_at_its_deadline() {
        for (mut exchange, expected) in [
            (
                answer(Some(4), true),
                "no answer within 60 s: it is not known whether 'buy 5' was applied\n",
            ),
            (
                answer(None, false),
                "no answer within 60 s: 'buy 5' was not sent\n",
            ),
            (
                exchange(Awaited::Message),
                "no answer within 60 s: no message came for 'buy 5'\n",
            ),
        ] {
            let mut output = Vec::new();
            let deadline = exchange.as_ref().expect("it is awaited").deadline;
            let before = deadline.checked_sub(Duration::from_nanos(1));
            let mut at = |now| {
                give_up(&mut exchange, now, &mut output).expect("a vector takes all");
                (exchange.is_none(), output.len())
            };
            assert_eq!(at(before.expect("it is later")), (false, 0));
            assert_eq!(at(deadline), (true, expected.len()));
            assert_eq!(String::from_utf8_lossy(&output), expected);
        }
    }
}
