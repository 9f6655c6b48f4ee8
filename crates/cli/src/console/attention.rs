// SPDX-License-Identifier: Apache-2.0
//! Troubles that need attention now, each with the command that tells more.

use serde::Serialize;

use super::state::StateKind;
use super::view::{Driver, Stream};

/// Time for which an error is recent, in milliseconds.
const RECENT_MS: i64 = 5 * 60 * 1_000;
/// Time without progress from which on a limiting subscriber is stuck, in milliseconds.
const STUCK_MS: u64 = 2_000;
/// Entries that are sent.
const MAX_ENTRIES: usize = 50;

/// An entry of the list.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(super) struct Attention {
    pub(super) severity: Severity,
    /// Word for the cause, the same while the text changes.
    pub(super) cause: &'static str,
    /// Index of the driver.
    pub(super) driver: usize,
    /// Id of the stream, if it is about one.
    pub(super) stream: Option<u64>,
    pub(super) text: String,
    /// Command that tells more.
    pub(super) command: String,
}

/// Weight of an entry, worst first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Severity {
    Critical,
    Warning,
    Notice,
}

/// Returns the entries for all drivers, worst first.
pub(super) fn of(drivers: &[Driver], now_ms: i64) -> Vec<Attention> {
    let mut entries = Vec::new();
    for (index, driver) in drivers.iter().enumerate() {
        of_driver(&mut entries, index, driver, now_ms);
    }
    // Stable: entries of one weight stay in the order of drivers and streams.
    entries.sort_by_key(|entry| entry.severity);
    entries.truncate(MAX_ENTRIES);
    entries
}

fn of_driver(entries: &mut Vec<Attention>, index: usize, driver: &Driver, now_ms: i64) {
    let directory = quoted(&driver.directory);
    let mut add = |severity, cause, stream, text: String, command: &str| {
        entries.push(Attention {
            severity,
            cause,
            driver: index,
            stream,
            text,
            command: format!("taran {command} -d {directory}"),
        });
    };
    match driver.state.kind {
        StateKind::Alive => {}
        StateKind::Starting => {
            let text = driver.state.text.clone();
            return add(Severity::Warning, "starting", None, text, "driver-info");
        }
        _ => {
            let text = driver.state.text.clone();
            add(Severity::Critical, "driver", None, text, "driver-info");
            // Its streams do not move any more: their limits would mislead.
            return;
        }
    }
    for channel in &driver.channels {
        let text = format!("{} is in error: {}", channel.name, channel.channel);
        add(Severity::Critical, "channel", None, text, "errors");
    }
    for stream in &driver.streams {
        if let Some((severity, cause, text)) = of_limit(stream) {
            add(severity, cause, Some(stream.id), text, "backlog");
        }
        let naks = stream.row.naks_per_second.unwrap_or(0.0);
        if naks > 0.0 {
            let name = name(stream);
            let lost = stream.row.lost;
            let text =
                format!("{name}: {naks:.1} NAKs/s, {lost} bytes lost so far, repaired or not");
            add(Severity::Warning, "loss", Some(stream.id), text, "loss");
        }
    }
    if let Some(error) = driver.errors.first()
        && now_ms.saturating_sub(error.last_observation_ms) < RECENT_MS
    {
        add(
            Severity::Warning,
            "errors",
            None,
            error.error.clone(),
            "errors",
        );
    }
    for archive in &driver.archives {
        let id = archive.archive_id;
        if archive.held > 0 {
            let text = format!(
                "archive {id}: a full disk holds back {} recordings",
                archive.held
            );
            add(Severity::Critical, "disk", None, text, "errors");
        }
        if archive.damaged > 0 {
            let text = format!("archive {id}: {} recordings are damaged", archive.damaged);
            add(Severity::Critical, "damage", None, text, "errors");
        }
    }
    for member in driver.members.iter().filter(|member| member.elects) {
        let text = format!(
            "cluster {}: no leader, an election is going on",
            member.cluster_id
        );
        add(
            Severity::Warning,
            "election",
            None,
            text,
            "stat --once --type ^20[0-9]$",
        );
    }
}

/// Returns weight, cause and text of the limit of a publication.
fn of_limit(stream: &Stream) -> Option<(Severity, &'static str, String)> {
    let limit = stream.row.backlog.limited_by.as_ref()?;
    let severity = match limit.kind() {
        "publisher" => return None,
        "no_receiver" => Severity::Notice,
        "subscriber" if limit.still_ms().is_some_and(|still| still >= STUCK_MS) => {
            Severity::Critical
        }
        _ => Severity::Warning,
    };
    let remedy = limit.remedy().map(|remedy| format!("; {remedy}"));
    let text = format!("{}: {limit}{}", name(stream), remedy.unwrap_or_default());
    Some((severity, limit.kind(), text))
}

fn name(stream: &Stream) -> String {
    let backlog = &stream.row.backlog;
    format!("stream {} on {}", backlog.stream_id, backlog.channel)
}

/// Returns a path as a word for a shell.
fn quoted(path: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:@".contains(c);
    if !path.is_empty() && path.chars().all(is_plain) {
        path.to_owned()
    } else {
        format!("'{}'", path.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backlog::Backlog;
    use crate::backlog::verdict::Verdict;
    use crate::console::archives::Archive;
    use crate::console::state::State;
    use crate::console::view::{FailedChannel, Totals};
    use crate::error_log::DistinctError;
    use crate::live::StreamRow;

    fn driver(kind: StateKind) -> Driver {
        Driver {
            directory: "/dev/shm/a b".to_owned(),
            state: State {
                kind,
                text: "it has ended".to_owned(),
                since_ms: 0,
            },
            info: None,
            totals: Totals::default(),
            clients: Vec::new(),
            streams: Vec::new(),
            streams_omitted: 0,
            errors: Vec::new(),
            errors_omitted: 0,
            channels: Vec::new(),
            archives: Vec::new(),
            members: Vec::new(),
        }
    }

    fn stream(id: u64, kind: &'static str, naks: f64) -> Stream {
        Stream {
            id,
            row: StreamRow {
                backlog: Backlog {
                    stream_id: 1001,
                    channel: "aeron:ipc".to_owned(),
                    limited_by: Some(Verdict::of_text(kind, "limited")),
                    ..Backlog::default()
                },
                naks_per_second: Some(naks),
                ..StreamRow::default()
            },
        }
    }

    #[test]
    fn of_driver_without_trouble_is_empty() {
        let mut driver = driver(StateKind::Alive);
        driver.streams.push(stream(1, "publisher", 0.0));
        assert_eq!(of(&[driver], 0), []);
    }

    #[test]
    fn of_ended_driver_is_its_end_only() {
        let mut driver = driver(StateKind::Dead);
        driver.streams.push(stream(1, "subscriber", 5.0));
        let entries = of(&[driver], 0);
        assert_eq!(entries.len(), 1);
        assert_eq!(entries[0].text, "it has ended");
        assert_eq!(entries[0].command, "taran driver-info -d '/dev/shm/a b'");
    }

    #[test]
    fn of_several_troubles_puts_the_worst_first() {
        let mut driver = driver(StateKind::Alive);
        driver.streams.push(stream(1, "no_receiver", 0.0));
        driver.streams.push(stream(2, "flow_control", 1.5));
        driver.channels.push(FailedChannel {
            name: "rcv-channel".to_owned(),
            channel: "aeron:udp".to_owned(),
        });
        driver.archives.push(Archive {
            held: 1,
            ..Archive::default()
        });
        driver.errors.push(DistinctError {
            observations: 1,
            first_observation_ms: 0,
            last_observation_ms: 1,
            error: "an error".to_owned(),
        });
        let causes = |now_ms| -> Vec<_> {
            let entries = of(std::slice::from_ref(&driver), now_ms);
            entries.iter().map(|entry| entry.cause).collect()
        };
        assert_eq!(
            causes(0),
            [
                "channel",
                "disk",
                "flow_control",
                "loss",
                "errors",
                "no_receiver"
            ]
        );
        assert!(!causes(RECENT_MS + 1).contains(&"errors"));
    }
}
