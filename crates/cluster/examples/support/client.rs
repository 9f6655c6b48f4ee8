// SPDX-License-Identifier: Apache-2.0
//! A client that sends one request after the other, from the lines of its input, and awaits the answer to each.

use std::io::{self, BufRead, Write};
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::time::Duration;

use taran::Client;
use taran::idle::{Backoff, IdleStrategy as _};
use taran_cluster_client::protocol::AdminResponseCode;
use taran_cluster_client::{ClusterClient, ClusterContext, ClusterEvent};

use super::Failure;

/// Time for the first election, and for each reconnection.
const PATIENCE: Duration = Duration::from_secs(60);

/// Requests and answers of a service.
pub(crate) trait Dialogue {
    /// Returns the request of a line; none if the line waits for a message that comes anyway.
    fn request(&mut self, line: &str) -> Result<Option<Vec<u8>>, String>;

    /// Prints a message of the service. Returns true if it is the last one that the line awaits.
    fn on_message(&mut self, message: &[u8], output: &mut dyn Write) -> io::Result<bool>;
}

/// Event that the client waits for.
enum Awaited {
    Line,
    /// The answer to a request, with the number of its offer; none if it has to be offered, the first time or again.
    Answer(Vec<u8>, Option<u64>),
    Message,
    /// The end of a snapshot, with the correlation id of its request.
    Snapshot(i64),
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
    let mut awaited = Awaited::Line;
    let mut idle = Backoff::default();
    loop {
        let mut work = 0;
        if matches!(awaited, Awaited::Line) {
            match lines.try_recv() {
                Ok(line) => {
                    awaited = begin(&mut cluster, dialogue, line?.trim(), output)?;
                    work += 1;
                }
                Err(TryRecvError::Empty) => {}
                Err(TryRecvError::Disconnected) => break,
            }
        }
        if let Awaited::Answer(request, offer @ None) = &mut awaited {
            match cluster.offer(request) {
                Ok(number) => *offer = Some(number),
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
        if is_last && matches!(awaited, Awaited::Answer(..) | Awaited::Message) {
            awaited = Awaited::Line;
        }
        while let Some(event) = cluster.next_event() {
            on_event(&event, &mut awaited, output)?;
        }
        idle.idle(work, &mut std::thread::sleep);
    }
    cluster.close();
    Ok(())
}

fn begin(
    cluster: &mut ClusterClient,
    dialogue: &mut dyn Dialogue,
    line: &str,
    output: &mut dyn Write,
) -> Result<Awaited, Failure> {
    if line.is_empty() {
        return Ok(Awaited::Line);
    }
    if line == "snapshot" {
        return Ok(Awaited::Snapshot(cluster.request_snapshot()?));
    }
    match dialogue.request(line) {
        Ok(Some(request)) => Ok(Awaited::Answer(request, None)),
        Ok(None) => Ok(Awaited::Message),
        Err(error) => {
            writeln!(output, "{error}")?;
            Ok(Awaited::Line)
        }
    }
}

fn on_event(
    event: &ClusterEvent,
    awaited: &mut Awaited,
    output: &mut dyn Write,
) -> Result<(), Failure> {
    match event {
        // The request may be lost, or applied without an answer: it is sent again.
        ClusterEvent::NewLeader { maybe_lost, .. }
        | ClusterEvent::NewSession { maybe_lost, .. } => {
            if let Awaited::Answer(_, offer) = awaited
                && offer.is_some_and(|number| number <= *maybe_lost)
            {
                *offer = None;
            }
        }
        ClusterEvent::AdminResponse {
            correlation_id,
            code,
            message,
            ..
        } => {
            if matches!(awaited, Awaited::Snapshot(id) if id == correlation_id) {
                *awaited = Awaited::Line;
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
