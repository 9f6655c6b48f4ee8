// SPDX-License-Identifier: Apache-2.0
//! The limit of a publication, with its progress.

use std::fmt;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use serde::Serialize;
use taran::limit::{LimitedBy, LogState, PublicationPosition, StreamPositions};
use taran_core::memory::Region;
use taran_protocol::log::LogMetadata;

use super::history::{History, Progress};
use crate::printable;
use crate::scale;

/// Length of the metadata at the end of a log, in bytes.
const METADATA_LENGTH: usize = size_of::<LogMetadata>();

/// A position whose progress is observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Observed {
    /// A publication by its registration id.
    Publication(i64),
    /// A subscriber by registration id and session id.
    Subscriber(i64, i32),
}

/// Limit of a publication: what it is, and the progress of its cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Verdict {
    /// See [`LimitedBy::kind`].
    kind: &'static str,
    /// The verdict as text.
    text: String,
    /// Remedy, if something limits the publication.
    remedy: Option<&'static str>,
    /// The limiting subscriber.
    subscriber: Option<Subscriber>,
    /// Time for which the limiting subscriber, or else the publisher, has not moved, as far as it was observed.
    still_ms: Option<u64>,
    /// Bytes per second when it moved last.
    bytes_per_second: Option<f64>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
struct Subscriber {
    registration_id: i64,
    client_id: i64,
    client_name: String,
    backlog: i64,
}

impl Verdict {
    /// Returns the verdict on a publication of the driver in `directory`.
    pub(super) fn of(
        publication: &PublicationPosition,
        positions: &StreamPositions,
        directory: &Path,
        progress: impl Fn(Observed) -> Option<Progress>,
    ) -> Self {
        let log = log_state(directory, publication.registration_id);
        let limited_by = positions.limited_by(publication, log);
        let observed = match &limited_by {
            LimitedBy::Subscriber(subscriber) => {
                Observed::Subscriber(subscriber.registration_id, publication.session_id)
            }
            _ => Observed::Publication(publication.registration_id),
        };
        let progress = progress(observed);
        Self {
            kind: limited_by.kind(),
            text: text(&limited_by, progress),
            remedy: remedy(&limited_by),
            subscriber: match &limited_by {
                LimitedBy::Subscriber(subscriber) => Some(Subscriber {
                    registration_id: subscriber.registration_id,
                    client_id: subscriber.client_id,
                    client_name: subscriber.client_name.clone(),
                    backlog: subscriber.backlog,
                }),
                _ => None,
            },
            still_ms: progress
                .and_then(|progress| progress.still)
                .map(|still| u64::try_from(still.as_millis()).unwrap_or(u64::MAX)),
            bytes_per_second: progress.and_then(|progress| progress.rate),
        }
    }
}

#[cfg(test)]
impl Verdict {
    /// Returns a verdict of a kind, with this text.
    pub(crate) fn of_text(kind: &'static str, text: &str) -> Self {
        Self {
            kind,
            text: text.to_owned(),
            remedy: None,
            subscriber: None,
            still_ms: None,
            bytes_per_second: None,
        }
    }
}

impl Verdict {
    /// Returns the word for programs, see [`LimitedBy::kind`].
    pub(crate) fn kind(&self) -> &'static str {
        self.kind
    }

    /// Returns what to do; `None` if nothing but its publisher limits the publication.
    pub(crate) fn remedy(&self) -> Option<&'static str> {
        self.remedy
    }

    /// Returns the milliseconds for which the limiting subscriber, or else the publisher, has not moved, as far as it was
    /// observed.
    pub(crate) fn still_ms(&self) -> Option<u64> {
        self.still_ms
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&printable::one_line(&self.text))
    }
}

/// Takes the positions of a sample.
pub(super) fn observe(
    history: &mut History<Observed>,
    positions: &StreamPositions,
    now: Duration,
) -> Vec<(Observed, Progress)> {
    let publications = positions.publications().map(|publication| {
        let key = Observed::Publication(publication.registration_id);
        (key, publication.position)
    });
    let subscribers = positions.subscribers().map(|subscriber| {
        let key = Observed::Subscriber(subscriber.registration_id, subscriber.session_id);
        (key, subscriber.position)
    });
    let progress = publications
        .chain(subscribers)
        .map(|(key, position)| (key, history.observe(key, position, now)))
        .collect();
    history.end_sample(now);
    progress
}

fn remedy(limited_by: &LimitedBy) -> Option<&'static str> {
    Some(match limited_by {
        LimitedBy::Subscriber(_) => {
            "look at that process: it does not poll, or too slowly; end it, or let it subscribe with tether=false if it may miss \
             messages"
        }
        LimitedBy::NoReceiver => {
            "start a subscriber of this channel and stream id; if one runs, 'taran errors' on both machines tells why they do not \
             connect"
        }
        LimitedBy::FlowControl { .. } => {
            "a receiver is slow: see its machine; if none may hold back the others, use fc=max"
        }
        LimitedBy::CongestionWindow { .. } => {
            "the path loses data or is long: see 'taran loss' at the receiver; in a network of your own, use cc=static"
        }
        LimitedBy::Sender { .. } => {
            "the sender has too little processor time, or the network refuses datagrams: see 'taran doctor' and 'taran errors'"
        }
        _ => return None,
    })
}

fn text(limited_by: &LimitedBy, progress: Option<Progress>) -> String {
    let mut text = limited_by.to_string();
    let Some(Progress { still, rate }) = progress else {
        return text;
    };
    let (stops, moves) = match limited_by {
        LimitedBy::Subscriber(_) => ("not read for", "reads"),
        LimitedBy::Publisher { .. } => ("idle for", "writes"),
        _ => ("not written for", "writes"),
    };
    if let Some(still) = still {
        text += &format!(", {stops} {}", duration(still));
        if let Some(rate) = rate {
            text += &format!(", was {}", scale::bytes_per_second(rate));
        }
    } else if let Some(rate) = rate {
        text += &format!(", {moves} {}", scale::bytes_per_second(rate));
    }
    text
}

/// `0.2 s`, `4 s`, `75 s`.
fn duration(duration: Duration) -> String {
    match duration.as_secs() {
        0 => format!("{:.1} s", duration.as_secs_f64()),
        seconds => format!("{seconds} s"),
    }
}

/// Reads the metadata of a publication's log, without mapping the log. A log that cannot be read yields nothing.
pub(crate) fn log_state(directory: &Path, registration_id: i64) -> LogState {
    let path = directory
        .join("publications")
        .join(format!("{registration_id}.logbuffer"));
    read_metadata(&path).unwrap_or_default()
}

fn read_metadata(path: &Path) -> Option<LogState> {
    // Checked before the file is opened: opening a pipe can block forever.
    let length = fs::metadata(path).ok().filter(fs::Metadata::is_file)?.len();
    let mut bytes = [0; METADATA_LENGTH];
    let offset = length.checked_sub(bytes.len() as u64)?;
    File::open(path)
        .ok()?
        .read_exact_at(&mut bytes, offset)
        .ok()?;
    let region = Region::anonymous(bytes.len()).ok()?;
    region.write(0, &bytes);
    let metadata = region.overlay::<LogMetadata>(0).ok()?;
    let window = i64::from(metadata.publication_window.load(Ordering::Relaxed));
    Some(LogState {
        is_connected: Some(metadata.is_connected.load(Ordering::Relaxed) == 1),
        window: (window > 0).then_some(window),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_tells_progress_of_the_publisher() {
        let limited_by = LimitedBy::Publisher { window: 10 };
        let progress = |still, rate| Some(Progress { still, rate });
        let still = Some(Duration::from_millis(4_200));
        for (progress, end) in [
            (None, "may write 10 bytes"),
            (progress(None, None), "may write 10 bytes"),
            (progress(None, Some(1_200_000.0)), ", writes 1.2 MB/s"),
            (progress(still, None), ", idle for 4 s"),
            (progress(still, Some(950.0)), ", idle for 4 s, was 950 B/s"),
        ] {
            let text = text(&limited_by, progress);
            assert!(text.ends_with(end), "{text}");
        }
    }

    #[test]
    fn log_state_of_missing_log_is_unknown() {
        let state = log_state(Path::new("/dev/shm/there-is-no-such-directory"), 7);
        assert_eq!(state, LogState::default());
    }
}
