// SPDX-License-Identifier: Apache-2.0
//! `taran backlog`: how far each part of each stream lags behind (docs/spec/uri-and-configuration.md §5.7), and what limits
//! each publication.

mod history;
pub(crate) mod verdict;

use std::collections::HashMap;
use std::fmt::Write as _;
use std::io::{self, IsTerminal};
use std::process::ExitCode;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use serde::Serialize;
use taran::limit::StreamPositions;
use taran_protocol::counter::type_id;

use crate::attach::{Attached, Target};
use crate::failure::Failure;
use crate::output;
use crate::printable;
use crate::stat::CLEAR_SCREEN;
use crate::streams::model::{self, Stream};
use crate::values;

use history::History;
use verdict::Verdict;

/// Command-line arguments.
#[derive(Args, Debug)]
#[command(after_help = "\
For each stream: the publisher's position, the bytes that the sender has still to send, the receiver's position, and
how far each subscriber lags behind. Only the parts present in this driver are listed. Positions and backlogs are in
bytes. Counters are read one after the other while messages flow, so small values may be inaccurate.

The last line of a publication tells what limits it: a subscriber of this driver, with its client; the flow control of
receivers in other drivers; the congestion window; the sender of the driver; that no receiver is connected; or only its
publisher. A line with the remedy follows, if there is something to do. Rates are those between two samples, and times those
since the command has seen a movement.

  taran backlog                         once, from two samples
  taran backlog -w                      every second, until interrupted
  taran backlog --json | jq '.[] | select(.limited_by.kind == \"subscriber\")'

For a driver that has ended, the last backlog is shown; the exit status is 1, with a message on standard error.

Exit status: 0 shown, 1 no driver, 2 incorrect usage.")]
pub(crate) struct Arguments {
    #[command(flatten)]
    target: Target,

    /// Repeat until interrupted
    #[arg(short = 'w', long)]
    watch: bool,

    /// Interval between two refreshes; a bare number is milliseconds
    #[arg(short = 'u', long, value_name = "TIME", default_value = "1s", value_parser = values::interval, requires = "watch")]
    interval: Duration,

    /// Time between the two samples of a single run; a bare number is milliseconds
    #[arg(long, value_name = "TIME", default_value = "200ms", value_parser = values::millis, conflicts_with = "watch")]
    sample: Duration,

    /// Print one JSON document per refresh, on a line of its own
    #[arg(long)]
    json: bool,
}

/// Backlog of a stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Backlog {
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) channel: String,
    pub(crate) publisher: Option<Publisher>,
    pub(crate) sender: Option<Sender>,
    pub(crate) receiver: Option<Receiver>,
    pub(crate) subscribers: Vec<Subscriber>,
    /// Limit of the publication, if there is one.
    pub(crate) limited_by: Option<Verdict>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Publisher {
    pub(crate) registration_id: i64,
    pub(crate) client_id: i64,
    pub(crate) position: i64,
    /// Bytes that it may still write before back-pressure.
    pub(crate) window: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Sender {
    pub(crate) registration_id: i64,
    pub(crate) position: i64,
    /// Bytes written but not sent.
    pub(crate) backlog: i64,
    /// Bytes that flow control still lets it send.
    pub(crate) window: i64,
    pub(crate) naks_received: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Receiver {
    pub(crate) registration_id: i64,
    pub(crate) position: i64,
    pub(crate) high_water_mark: i64,
    pub(crate) naks_sent: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Subscriber {
    pub(crate) registration_id: i64,
    pub(crate) client_id: i64,
    pub(crate) position: i64,
    /// Bytes available but not consumed.
    pub(crate) backlog: i64,
}

/// Prints the backlog of every stream.
pub(crate) fn run(arguments: &Arguments) -> Result<ExitCode, Failure> {
    let attached = Attached::open(&arguments.target)?;
    let mut samples = Samples::new();
    if !arguments.watch {
        samples.take(&attached);
        // The positions of a driver that has ended do not move.
        if attached.check_alive().is_ok() {
            thread::sleep(arguments.sample);
        }
        show(&samples.take(&attached), arguments.json, false)?;
        attached.check_alive()?;
        return Ok(ExitCode::SUCCESS);
    }
    let clear = !arguments.json && io::stdout().is_terminal();
    loop {
        show(&samples.take(&attached), arguments.json, clear)?;
        attached.check_alive()?;
        thread::sleep(arguments.interval);
    }
}

fn show(backlogs: &[Backlog], json: bool, clear: bool) -> Result<(), Failure> {
    if json {
        return output::json(&backlogs);
    }
    let text = report(backlogs);
    output::text(&if clear {
        format!("{CLEAR_SCREEN}{text}")
    } else {
        text
    })
}

/// Samples of the positions of one driver.
pub(crate) struct Samples {
    history: History<verdict::Observed>,
    start: Instant,
}

impl Samples {
    pub(crate) fn new() -> Self {
        Self {
            history: History::new(),
            start: Instant::now(),
        }
    }

    /// Takes a sample of the driver. Returns the backlog of each stream.
    pub(crate) fn take(&mut self, attached: &Attached) -> Vec<Backlog> {
        let counters = attached.counters();
        let positions = StreamPositions::read(&counters);
        let progress: HashMap<_, _> =
            verdict::observe(&mut self.history, &positions, self.start.elapsed())
                .into_iter()
                .collect();
        let mut backlogs: Vec<Backlog> =
            model::collect(&counters).iter().map(Backlog::of).collect();
        for backlog in &mut backlogs {
            let publication = backlog
                .publisher
                .as_ref()
                .and_then(|publisher| positions.publication(publisher.registration_id));
            backlog.limited_by = publication.map(|publication| {
                Verdict::of(publication, &positions, &attached.directory, |key| {
                    progress.get(&key).copied()
                })
            });
        }
        backlogs
    }
}

impl Backlog {
    fn of(stream: &Stream) -> Self {
        let value = |type_id| stream.first(type_id).map(|counter| counter.value);
        let limit = stream.first(type_id::PUBLISHER_LIMIT);
        let publisher = limit.map(|limit| {
            let position = value(type_id::PUBLISHER_POSITION).unwrap_or(limit.value);
            Publisher {
                registration_id: limit.registration_id,
                client_id: limit.client_id,
                position,
                window: ahead(limit.value, position),
            }
        });
        let sender = stream.first(type_id::SENDER_POSITION).map(|sent| Sender {
            registration_id: sent.registration_id,
            position: sent.value,
            backlog: publisher
                .as_ref()
                .map_or(0, |publisher| ahead(publisher.position, sent.value)),
            window: ahead(
                value(type_id::SENDER_LIMIT).unwrap_or(sent.value),
                sent.value,
            ),
            naks_received: value(type_id::SENDER_NAKS_RECEIVED).unwrap_or(0),
        });
        let receiver = stream
            .first(type_id::RECEIVER_POSITION)
            .map(|received| Receiver {
                registration_id: received.registration_id,
                position: received.value,
                high_water_mark: value(type_id::RECEIVER_HIGH_WATER_MARK).unwrap_or(received.value),
                naks_sent: value(type_id::RECEIVER_NAKS_SENT).unwrap_or(0),
            });
        // Over IPC and for spies, a subscriber can read up to what was published or sent.
        let available = receiver
            .as_ref()
            .map(|receiver| receiver.high_water_mark)
            .or(sender.as_ref().map(|sender| sender.position))
            .or(publisher.as_ref().map(|publisher| publisher.position));
        let subscribers = stream
            .of_type(type_id::SUBSCRIBER_POSITION)
            .map(|subscriber| Subscriber {
                registration_id: subscriber.registration_id,
                client_id: subscriber.client_id,
                position: subscriber.value,
                backlog: available.map_or(0, |available| ahead(available, subscriber.value)),
            })
            .collect();
        Self {
            session_id: stream.session_id,
            stream_id: stream.stream_id,
            channel: stream.channel.clone(),
            publisher,
            sender,
            receiver,
            subscribers,
            limited_by: None,
        }
    }
}

/// Returns the bytes by which `position` is ahead of `of`. Both are written by other processes and may have any value.
fn ahead(position: i64, of: i64) -> i64 {
    position.saturating_sub(of).max(0)
}

fn report(backlogs: &[Backlog]) -> String {
    if backlogs.is_empty() {
        return "no streams\n".to_owned();
    }
    let mut text = String::new();
    for backlog in backlogs {
        // Writing to a string cannot fail, here and below.
        let _ = writeln!(
            text,
            "sessionId={} streamId={} channel={} :",
            backlog.session_id,
            backlog.stream_id,
            printable::one_line(&backlog.channel)
        );
        let lines = backlog.lines();
        for (index, line) in lines.iter().enumerate() {
            let corner = match (index, index + 1 == lines.len()) {
                (0, false) => '┌',
                (_, false) => '├',
                (0, true) => '─',
                (_, true) => '└',
            };
            let _ = writeln!(text, "{corner}─{line}");
        }
        if let Some(verdict) = &backlog.limited_by {
            let _ = writeln!(text, "{verdict}");
            if let Some(remedy) = verdict.remedy() {
                let _ = writeln!(text, "  remedy: {remedy}");
            }
        }
        text.push('\n');
    }
    text
}

impl Backlog {
    fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        if let Some(publisher) = &self.publisher {
            lines.push(format!(
                "publisher {} is at position {} ({} bytes before back-pressure)",
                publisher.registration_id, publisher.position, publisher.window
            ));
            match &self.sender {
                Some(sender) => lines.push(format!(
                    "sender {} has to send {} bytes ({} bytes remaining in the sender window)",
                    sender.registration_id, sender.backlog, sender.window
                )),
                None => lines.push("no sender".to_owned()),
            }
        }
        if let Some(receiver) = &self.receiver {
            lines.push(format!(
                "receiver {} is at position {}",
                receiver.registration_id, receiver.position
            ));
        }
        lines.extend(self.subscribers.iter().map(|subscriber| {
            format!(
                "subscriber {} has {} backlog bytes",
                subscriber.registration_id, subscriber.backlog
            )
        }));
        lines
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::streams::model::tests::reader;

    #[test]
    fn backlog_of_udp_stream_is_computed_from_positions() {
        let channel = "aeron:udp?endpoint=localhost:1";
        let reader = reader(&[
            (1, 5, 7, 1001, channel, "pub-lmt", 1000),
            (12, 5, 7, 1001, channel, "pub-pos (concurrent)", 640),
            (2, 5, 7, 1001, channel, "snd-pos", 512),
            (9, 5, 7, 1001, channel, "snd-lmt", 900),
            (3, 8, 7, 1001, channel, "rcv-hwm", 512),
            (5, 8, 7, 1001, channel, "rcv-pos", 480),
            (4, 9, 7, 1001, channel, "sub-pos", 320),
        ]);
        let backlog = Backlog::of(&model::collect(&reader)[0]);
        assert_eq!(backlog.publisher.as_ref().unwrap().window, 360);
        assert_eq!(backlog.sender.as_ref().unwrap().backlog, 128);
        assert_eq!(backlog.sender.as_ref().unwrap().window, 388);
        assert_eq!(backlog.subscribers[0].backlog, 192);
        assert_eq!(
            report(&[backlog]),
            "sessionId=7 streamId=1001 channel=aeron:udp?endpoint=localhost:1 :\n\
             ┌─publisher 5 is at position 640 (360 bytes before back-pressure)\n\
             ├─sender 5 has to send 128 bytes (388 bytes remaining in the sender window)\n\
             ├─receiver 8 is at position 480\n\
             └─subscriber 9 has 192 backlog bytes\n\n"
        );
    }

    #[test]
    fn backlog_of_ipc_subscriber_is_relative_to_publisher() {
        let reader = reader(&[
            (1, 5, 7, 1, "aeron:ipc", "pub-lmt", 1000),
            (12, 5, 7, 1, "aeron:ipc", "pub-pos (exclusive)", 640),
            (4, 9, 7, 1, "aeron:ipc", "sub-pos", 600),
        ]);
        let backlog = Backlog::of(&model::collect(&reader)[0]);
        assert_eq!(backlog.subscribers[0].backlog, 40);
        assert!(report(&[backlog]).contains("├─no sender\n└─subscriber 9 has 40"));
    }

    #[test]
    fn backlog_of_invalid_positions_saturates() {
        let reader = reader(&[
            (1, 5, 7, 1, "aeron:ipc", "pub-lmt", i64::MAX),
            (12, 5, 7, 1, "aeron:ipc", "pub-pos", i64::MIN),
            (2, 5, 7, 1, "aeron:ipc", "snd-pos", i64::MAX),
            (9, 5, 7, 1, "aeron:ipc", "snd-lmt", i64::MIN),
            (4, 9, 7, 1, "aeron:ipc", "sub-pos", i64::MIN),
        ]);
        let backlog = Backlog::of(&model::collect(&reader)[0]);
        assert_eq!(backlog.publisher.as_ref().unwrap().window, i64::MAX);
        assert_eq!(backlog.subscribers[0].backlog, i64::MAX);
    }
}
