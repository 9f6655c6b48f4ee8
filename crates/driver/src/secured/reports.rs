//! Texts and events about what transport security does and refuses (docs/spec/transport-security.md §4.5 and §4.6).

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;

use taran_protocol::event::EventCode;
use taran_secure::frame::Code;
use taran_secure::keeper::{Event, Port, Refusal, Rotation};
use taran_secure::trust::{Peer, TrustStore};

use crate::event_log::{EventLog, FieldValue};

/// Reports in an hour that sources without proof can cause.
const REPORTS_PER_HOUR: u32 = 64;
const HOUR_NS: u64 = 3_600_000_000_000;
const SECOND_NS: u64 = 1_000_000_000;
/// Sources of plain frames that are remembered as reported.
const PLAIN_SOURCES_MAX: usize = 256;

/// Lines for the error log, at a bounded rate, and entries of the event log.
pub(super) struct Reports {
    /// Origin of the keys.
    keys_path: String,
    events: EventLog,
    lines: VecDeque<String>,
    /// Hour, and lines that are left in it.
    left: (u64, u32),
    second: u64,
    plain_sources: BTreeSet<(Port, SocketAddr)>,
}

impl Reports {
    pub(super) fn new(keys_path: String, events: EventLog) -> Self {
        Self {
            keys_path,
            events,
            lines: VecDeque::new(),
            left: (0, REPORTS_PER_HOUR),
            second: 0,
            plain_sources: BTreeSet::new(),
        }
    }

    /// Returns the next line.
    pub(super) fn next(&mut self) -> Option<String> {
        self.lines.pop_front()
    }

    /// Adds a line, if the hour has one left.
    pub(super) fn add(&mut self, now: u64, text: String) {
        let hour = now / HOUR_NS;
        if self.left.0 != hour {
            self.left = (hour, REPORTS_PER_HOUR);
        }
        if self.left.1 > 0 {
            self.left.1 -= 1;
            self.lines.push_back(text);
        }
    }

    /// Logs an event.
    pub(super) fn log(&self, event: EventCode, values: &[FieldValue<'_>]) {
        self.events.log(event, values);
    }

    /// Returns true once a second.
    pub(super) fn is_new_second(&mut self, now: u64) -> bool {
        let second = now / SECOND_NS;
        std::mem::replace(&mut self.second, second) != second
    }

    /// Forgets what was reported about a port.
    pub(super) fn forget(&mut self, port: Port) {
        self.plain_sources.retain(|(of, _)| *of != port);
    }

    /// Reports a source of plain frames, once.
    pub(super) fn on_plain(
        &mut self,
        now: u64,
        (port, channel): (Port, &str),
        source: SocketAddr,
        frame_type: u16,
    ) {
        if self.plain_sources.len() >= PLAIN_SOURCES_MAX
            || !self.plain_sources.insert((port, source))
        {
            return;
        }
        self.log(
            EventCode::SecurePlainRefused,
            &[
                FieldValue::Address(Some(source)),
                FieldValue::Int(frame_type.into()),
                FieldValue::Text(channel),
            ],
        );
        let text = format!(
            "{channel} is secured, and {source} sends plain Aeron frames (type {frame_type:#06x}): it is an \
             official driver, or its taran.secure.mode is off. Nothing of it is taken"
        );
        self.add(now, text);
    }

    /// Logs an event of the keeper, and reports it if an operator has to do something.
    pub(super) fn on_event(&mut self, now: u64, event: &Event, channel: &str, trust: &TrustStore) {
        let file = &self.keys_path;
        let text = match event {
            Event::LinkUp {
                peer,
                address,
                suite,
                ..
            } => {
                let values = [
                    FieldValue::Address(Some(*address)),
                    FieldValue::Text(peer),
                    FieldValue::Text(suite.name()),
                    FieldValue::Text(channel),
                ];
                return self.log(EventCode::SecureLinkUp, &values);
            }
            Event::LinkDown { peer, .. } => {
                let values = [FieldValue::Text(peer), FieldValue::Text(channel)];
                return self.log(EventCode::SecureLinkDown, &values);
            }
            Event::KeyRotated {
                session_id,
                stream_id,
                epoch,
                why,
                ..
            } => {
                let values = [
                    FieldValue::Int(*session_id),
                    FieldValue::Int(*stream_id),
                    FieldValue::Long((*epoch).into()),
                    FieldValue::Text(rotation_name(*why)),
                    FieldValue::Text(channel),
                ];
                return self.log(EventCode::SecureKeyRotated, &values);
            }
            Event::PeerUnknown {
                fingerprint,
                address,
                ..
            } => {
                let text = fingerprint.to_string();
                let values = [FieldValue::Address(Some(*address)), FieldValue::Text(&text)];
                self.log(EventCode::SecurePeerUnknown, &values);
                format!(
                    "no key with fingerprint {fingerprint} (from {address}) in {file}: add it with 'taran keys trust' \
                     after comparing fingerprints"
                )
            }
            Event::PeerRefused { peer, why, .. } => {
                let values = [
                    FieldValue::Text(peer),
                    FieldValue::Text(refusal_name(*why)),
                    FieldValue::Text(channel),
                ];
                self.log(EventCode::SecurePeerRefused, &values);
                let mut peers = trust.peers().iter();
                let line = peers.find(|known| known.name() == peer);
                let line = line.map(Peer::line).unwrap_or_default();
                refusal_text(peer, *why, channel, &format!("{file}:{line}"))
            }
            // A stream that is not known has ended meanwhile.
            Event::RequestRefused {
                peer, text, code, ..
            } if *code != Code::UNKNOWN_STREAM => {
                format!("{peer} refuses a key for {channel}: {text}")
            }
            Event::RequestRefused { .. } => return,
        };
        self.add(now, text);
    }
}

const fn rotation_name(why: Rotation) -> &'static str {
    match why {
        Rotation::Interval => "interval",
        Rotation::Limit => "limit",
        Rotation::Wish => "wish",
        Rotation::Leave => "leave",
        Rotation::Trust => "trust",
        Rotation::Command => "command",
        Rotation::Clock => "clock",
    }
}

const fn refusal_name(why: Refusal) -> &'static str {
    match why {
        Refusal::NotAllowed => "not allowed",
        Refusal::OtherChannel => "other channel",
        Refusal::Suite => "suite",
        Refusal::ReceiverId => "receiver id",
        Refusal::Owned => "owned",
        Refusal::Limit => "limit",
    }
}

fn refusal_text(peer: &str, why: Refusal, channel: &str, line: &str) -> String {
    match why {
        Refusal::NotAllowed => format!(
            "{peer} may not have what it asks of {channel}: publish= or subscribe= of {line}, or taran.peers of the \
             channel, does not allow it"
        ),
        Refusal::OtherChannel => format!(
            "{peer} asked {channel} with another channel label: are ports translated on the way? Set the same \
             taran.label at both ends"
        ),
        Refusal::Suite => format!(
            "{peer} and this driver have no common suite for {channel}: see taran.secure.suites at both ends"
        ),
        Refusal::ReceiverId => {
            format!("{peer} claims the receiver id of another peer on {channel}, and is refused")
        }
        Refusal::Owned => {
            format!(
                "{peer} grants a stream of {channel} that belongs to another peer, and is refused"
            )
        }
        Refusal::Limit => format!("{peer} is refused on {channel}: a limit is reached"),
    }
}
