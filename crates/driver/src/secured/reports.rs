// SPDX-License-Identifier: Apache-2.0
//! Texts and events about what transport security does and refuses (docs/spec/transport-security.md §4.5 and §4.6).

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::path::Path;

use taran_protocol::event::EventCode;
use taran_secure::derive::Fingerprint;
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
                unknown_text(&fingerprint.to_string(), *address, channel, file)
            }
            Event::PeerRefused {
                peer,
                fingerprint,
                channel: matched,
                why,
                ..
            } => {
                let values = [
                    FieldValue::Text(peer),
                    FieldValue::Text(refusal_name(*why)),
                    FieldValue::Text(channel),
                ];
                self.log(EventCode::SecurePeerRefused, &values);
                let known = trust.by_fingerprint(fingerprint);
                let subject = Subject {
                    peer,
                    fingerprint: *fingerprint,
                    channel,
                    matched: *matched,
                    file,
                };
                subject.refusal_text(*why, known)
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
        Refusal::Publish(_) => "publish",
        Refusal::Subscribe(_) => "subscribe",
        Refusal::NotNamed => "taran.peers",
        Refusal::OtherChannel => "other channel",
        Refusal::Suite => "suite",
        Refusal::ReceiverId => "receiver id",
        Refusal::Owned => "owned",
        Refusal::Limit => "limit",
    }
}

/// Returns the text about a key that is not trusted.
fn unknown_text(fingerprint: &str, source: SocketAddr, channel: &str, file: &str) -> String {
    let directory = Path::new(file)
        .parent()
        .filter(|path| path.is_absolute())
        .map_or_else(String::new, |path| format!(" --dir {}", path.display()));
    format!(
        "no key with fingerprint {fingerprint} (from {source}, for {channel}) in {file}: if 'taran keys fingerprint' prints \
         the same at that host, add the line that 'taran keys show' prints there: taran keys{directory} trust \
         taran-pub-1:... NAME"
    )
}

/// Peer that is refused, and where.
struct Subject<'a> {
    peer: &'a str,
    fingerprint: Fingerprint,
    channel: &'a str,
    /// Address that patterns are matched against.
    matched: SocketAddr,
    file: &'a str,
}

impl Subject<'_> {
    /// Returns the text about a refusal. `known` is what the trust file says about the peer.
    fn refusal_text(&self, why: Refusal, known: Option<&Peer>) -> String {
        let Self { peer, channel, .. } = self;
        match why {
            Refusal::Publish(stream) => {
                let patterns = known.map(|known| known.publish().to_string());
                self.pattern_text(["publish", "publish="], stream, patterns, known)
            }
            Refusal::Subscribe(stream) => {
                let patterns = known.map(|known| known.subscribe().to_string());
                self.pattern_text(["subscribe to", "subscribe="], stream, patterns, known)
            }
            Refusal::NotNamed => format!(
                "{peer} (fingerprint {}) is trusted, and is not among the taran.peers of {channel}: add {peer} there if it \
                 may be at the other end",
                self.fingerprint
            ),
            Refusal::OtherChannel => format!(
                "{peer} asked {channel} with another channel label: are ports translated on the way? Set the same \
                 taran.label at both ends"
            ),
            Refusal::Suite => format!(
                "{peer} and this driver have no common suite for {channel}: see taran.secure.suites at both ends"
            ),
            Refusal::ReceiverId => {
                format!(
                    "{peer} claims the receiver id of another peer on {channel}, and is refused"
                )
            }
            Refusal::Owned => {
                format!(
                    "{peer} offers a stream of {channel} that belongs to another peer, and is refused"
                )
            }
            Refusal::Limit => format!("{peer} is refused on {channel}: a limit is reached"),
        }
    }

    fn pattern_text(
        &self,
        [verb, field]: [&str; 2],
        stream: Option<i32>,
        patterns: Option<String>,
        known: Option<&Peer>,
    ) -> String {
        let Self {
            peer,
            fingerprint,
            channel,
            matched,
            file,
        } = self;
        let (what, pattern) = match stream {
            Some(stream) => (format!("stream {stream}"), format!("{matched}#{stream}")),
            None => ("any stream".to_owned(), matched.to_string()),
        };
        let patterns = patterns.filter(|patterns| !patterns.is_empty());
        let patterns = patterns.unwrap_or_else(|| "empty".to_owned());
        let line = known.map_or(0, Peer::line);
        format!(
            "{peer} (fingerprint {fingerprint}) may not {verb} {what} on {channel}: its {field} is {patterns} ({file}:{line}). \
             To allow it, add {pattern} to {field} of that line"
        )
    }
}

#[cfg(test)]
mod tests {
    use taran_secure::Secret;
    use taran_secure::identity::{Identity, public_key_text};

    use super::super::messages::P;
    use super::*;

    #[test]
    fn refusal_texts_say_what_is_wrong_and_what_to_do() {
        let identity = Identity::from_private::<P>(Secret::new([1; 32]));
        let key = public_key_text::<P>(identity.public());
        let text = format!("# drivers\n{key} alpha publish=10.0.0.0/8#1\n");
        let trust = TrustStore::parse::<P>(&text).unwrap();
        let known = trust.by_fingerprint(&identity.fingerprint());
        let subject = Subject {
            peer: "alpha",
            fingerprint: identity.fingerprint(),
            channel: "aeron:udp?endpoint=10.0.0.9:40456",
            matched: "10.0.0.9:40456".parse().unwrap(),
            file: "/etc/taran/keys/trusted",
        };
        let fingerprint = identity.fingerprint();
        let publish = subject.refusal_text(Refusal::Publish(Some(7)), known);
        assert_eq!(
            publish,
            format!(
                "alpha (fingerprint {fingerprint}) may not publish stream 7 on aeron:udp?endpoint=10.0.0.9:40456: its \
                 publish= is 10.0.0.0/8#1 (/etc/taran/keys/trusted:2). To allow it, add 10.0.0.9:40456#7 to publish= of \
                 that line"
            )
        );
        let subscribe = subject.refusal_text(Refusal::Subscribe(None), known);
        for words in [
            "may not subscribe to any stream on aeron:udp?",
            "its subscribe= is empty",
            "add 10.0.0.9:40456 to subscribe=",
        ] {
            assert!(subscribe.contains(words), "{subscribe}");
        }
        // What the text says to add is a pattern that allows it.
        let allowed = text.replace("#1\n", "#1,10.0.0.9:40456#7\n");
        let trust = TrustStore::parse::<P>(&allowed).unwrap();
        assert!(trust.peers()[0].may_publish(subject.matched, 7));
        let unknown = unknown_text("1234 5678", subject.matched, subject.channel, subject.file);
        assert!(
            unknown.contains("taran keys --dir /etc/taran/keys trust"),
            "{unknown}"
        );
    }
}
