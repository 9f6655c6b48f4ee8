// SPDX-License-Identifier: Apache-2.0
//! Limits of publications, diagnosed from the counters of their driver.

use std::collections::{BTreeMap, HashMap};
use std::fmt;

use taran_core::counters::{CounterMeta, CountersReader};
use taran_protocol::counter::{HeartbeatKey, StreamKey, type_id};

use crate::Position;

/// A publication with less than this part of its window left counts as limited: between two samples a flow that is limited
/// uses up to about this much.
const WINDOW_PART: i64 = 8;
/// The same for the window of receivers, which announce a new limit after a quarter of their window.
const RECEIVER_WINDOW_PART: i64 = 4;
/// Window of receivers whose positions are not known: the default of drivers, in bytes.
const DEFAULT_RECEIVER_WINDOW: i64 = 128 * 1024;
/// Prefix of the label of the counter with a congestion window.
const CONGESTION_WINDOW: &str = "rcv-cc-cubic-wnd";
/// Prefix of the channels of spies.
const SPY: &str = "aeron-spy:";

/// Cause that limits a publication. Its `Display` is a line for an operator.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LimitedBy {
    /// Nothing but its publisher, which may still write.
    Publisher {
        /// Bytes that may still be written, including frame headers.
        window: i64,
    },
    /// No subscriber or receiver is connected.
    NoReceiver,
    /// A subscriber that is behind, in this driver.
    Subscriber(LimitingSubscriber),
    /// The flow control of receivers in other drivers.
    FlowControl {
        /// Number of receivers that the flow control tracks; `None` if it does not count them.
        receivers: Option<i64>,
    },
    /// The congestion window of the image, in this driver.
    CongestionWindow {
        /// Its length in bytes.
        window: i64,
    },
    /// The sender of the driver, which has not sent what flow control lets it send.
    Sender {
        /// Bytes that are not sent.
        backlog: i64,
    },
}

impl LimitedBy {
    /// Returns a word for programs: `publisher`, `no_receiver`, `subscriber`, `flow_control`, `congestion_window` or
    /// `sender`.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Publisher { .. } => "publisher",
            Self::NoReceiver => "no_receiver",
            Self::Subscriber(_) => "subscriber",
            Self::FlowControl { .. } => "flow_control",
            Self::CongestionWindow { .. } => "congestion_window",
            Self::Sender { .. } => "sender",
        }
    }
}

impl fmt::Display for LimitedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Publisher { window } => {
                write!(
                    f,
                    "not limited: the publisher may write {} bytes",
                    Grouped(*window)
                )
            }
            Self::NoReceiver => f.write_str("no receiver: no subscriber is connected"),
            Self::Subscriber(subscriber) => write!(f, "limited by {subscriber}"),
            Self::FlowControl { receivers } => {
                f.write_str("limited by the flow control of ")?;
                match receivers {
                    Some(receivers) => write!(f, "{receivers} receivers")?,
                    None => f.write_str("its receivers")?,
                }
                f.write_str("; 'taran backlog' on their machines shows their subscribers")
            }
            Self::CongestionWindow { window } => {
                let window = Grouped(*window);
                write!(f, "limited by the congestion window of {window} bytes")
            }
            Self::Sender { backlog } => write!(
                f,
                "limited by the sender of the driver, which has {} bytes to send and may send them",
                Grouped(*backlog)
            ),
        }
    }
}

/// A subscriber that limits a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LimitingSubscriber {
    /// Registration id of the subscription.
    pub registration_id: i64,
    /// Client of the subscription.
    pub client_id: i64,
    /// Name of the client; empty if it has none.
    pub client_name: String,
    /// Position up to which it has read.
    pub position: Position,
    /// Bytes that it could read.
    pub backlog: i64,
}

impl fmt::Display for LimitingSubscriber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "subscriber {} (client {}",
            self.registration_id, self.client_id
        )?;
        if !self.client_name.is_empty() {
            write!(f, " {:?}", self.client_name)?;
        }
        write!(f, "), {} bytes behind", Grouped(self.backlog))
    }
}

/// Positions of all streams of a driver, copied from its counters one after the other. While messages flow, positions of a
/// stream are therefore of slightly different times.
#[derive(Clone, Debug, Default)]
pub struct StreamPositions {
    publications: BTreeMap<i64, PublicationPosition>,
    subscribers: BTreeMap<StreamId, Vec<SubscriberPosition>>,
    images: BTreeMap<StreamId, ImagePosition>,
    client_names: HashMap<i64, String>,
}

/// Session id and stream id.
type StreamId = (i32, i32);

/// Position of a publication and of its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PublicationPosition {
    /// Registration id; the one of the first publication for those that share a stream.
    pub registration_id: i64,
    /// Session id.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Channel, possibly only its beginning.
    pub channel: String,
    /// Position up to which messages were written, as sampled by the driver.
    pub position: Position,
    /// Position limit, at which back-pressure sets in.
    pub limit: Position,
    /// Position of the sender and its limit; `None` for IPC.
    pub sender: Option<(Position, Position)>,
    /// Number of receivers that flow control tracks, if it counts them.
    pub receivers: Option<i64>,
}

/// Position of a subscriber in one stream.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SubscriberPosition {
    /// Registration id of the subscription.
    pub registration_id: i64,
    /// Client of the subscription.
    pub client_id: i64,
    /// Session id of the stream.
    pub session_id: i32,
    /// Stream id.
    pub stream_id: i32,
    /// Position up to which it has read.
    pub position: Position,
    is_spy: bool,
}

#[derive(Clone, Debug, Default)]
struct ImagePosition {
    high_water_mark: Position,
    congestion_window: Option<i64>,
}

/// State of the log of a publication, which its counters do not tell. Exhaustive: callers fill it in from a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LogState {
    /// True if the driver knows a subscriber or receiver; `None` if the log could not be read.
    pub is_connected: Option<bool>,
    /// Bytes that the publisher may be ahead of its consumers.
    pub window: Option<i64>,
}

impl StreamPositions {
    /// Copies the positions.
    #[must_use]
    pub fn read(counters: &CountersReader) -> Self {
        let mut positions = Self::default();
        counters.for_each(|meta| {
            if let Some(value) = counters.value(meta.id) {
                positions.add(meta, value);
            }
        });
        positions
            .publications
            .retain(|_, publication| publication.limit != Position::MIN);
        positions
    }

    /// Returns the publication with a registration id.
    #[must_use]
    pub fn publication(&self, registration_id: i64) -> Option<&PublicationPosition> {
        self.publications.get(&registration_id)
    }

    /// Returns the publications, ordered by registration id.
    pub fn publications(&self) -> impl Iterator<Item = &PublicationPosition> {
        self.publications.values()
    }

    /// Returns the subscribers, ordered by session id and stream id.
    pub fn subscribers(&self) -> impl Iterator<Item = &SubscriberPosition> {
        self.subscribers.values().flatten()
    }

    /// Returns the name of a client; empty if it has none.
    #[must_use]
    pub fn client_name(&self, client_id: i64) -> &str {
        self.client_names.get(&client_id).map_or("", String::as_str)
    }

    /// Returns what limits a publication.
    #[must_use]
    pub fn limited_by(&self, publication: &PublicationPosition, log: LogState) -> LimitedBy {
        // Over IPC, and for spies, subscribers read the publication's own log. One that the driver has ceased to wait for,
        // because it is not tethered, may be further behind than the window.
        let tracked = self.readers(publication).filter(|subscriber| {
            (publication.sender.is_none() || subscriber.is_spy)
                && log.window.is_none_or(|window| {
                    subscriber.position.saturating_add(window) >= publication.limit
                })
        });
        let slowest = tracked.min_by_key(|subscriber| subscriber.position);
        if log.is_connected == Some(false) || (publication.sender.is_none() && slowest.is_none()) {
            return LimitedBy::NoReceiver;
        }
        let sent = publication
            .sender
            .map_or(publication.position, |(sent, _)| sent);
        let consumed = slowest.map_or(sent, |slowest| slowest.position.min(sent));
        let window = log
            .window
            .unwrap_or_else(|| ahead(publication.limit, consumed));
        let left = ahead(publication.limit, publication.position);
        if left > window / WINDOW_PART {
            return LimitedBy::Publisher { window: left };
        }
        match (slowest, publication.sender) {
            (Some(slowest), _) if slowest.position < sent || publication.sender.is_none() => {
                LimitedBy::Subscriber(self.limiting(slowest, sent))
            }
            (_, Some(sender)) => self.sender_limited_by(publication, sender),
            // Excluded above: without a sender there is a subscriber.
            (_, None) => LimitedBy::NoReceiver,
        }
    }

    /// Returns what limits the sender of a publication.
    fn sender_limited_by(
        &self,
        publication: &PublicationPosition,
        (sent, sender_limit): (Position, Position),
    ) -> LimitedBy {
        let backlog = ahead(publication.position, sent);
        let granted = ahead(sender_limit, sent);
        let image = self
            .images
            .get(&(publication.session_id, publication.stream_id));
        let slowest = image.and_then(|_| {
            self.readers(publication)
                .filter(|subscriber| !subscriber.is_spy)
                .min_by_key(|subscriber| subscriber.position)
        });
        let window = slowest.map_or(DEFAULT_RECEIVER_WINDOW, |slowest| {
            ahead(sender_limit, slowest.position)
        });
        if granted >= backlog || granted > window / RECEIVER_WINDOW_PART {
            return LimitedBy::Sender { backlog };
        }
        let unread = |image: &ImagePosition, slowest: &SubscriberPosition| {
            ahead(image.high_water_mark, slowest.position)
        };
        if let (Some(image), Some(slowest)) = (image, slowest)
            && unread(image, slowest) >= (window / 2).max(1)
        {
            return LimitedBy::Subscriber(self.limiting(slowest, image.high_water_mark));
        }
        match image.and_then(|image| image.congestion_window) {
            Some(window) => LimitedBy::CongestionWindow { window },
            None => LimitedBy::FlowControl {
                receivers: publication.receivers,
            },
        }
    }

    /// Returns the subscribers of a publication's stream in its driver.
    fn readers(
        &self,
        publication: &PublicationPosition,
    ) -> impl Iterator<Item = &SubscriberPosition> {
        let stream = (publication.session_id, publication.stream_id);
        self.subscribers.get(&stream).into_iter().flatten()
    }

    fn limiting(&self, subscriber: &SubscriberPosition, available: Position) -> LimitingSubscriber {
        LimitingSubscriber {
            registration_id: subscriber.registration_id,
            client_id: subscriber.client_id,
            client_name: self.client_name(subscriber.client_id).to_owned(),
            position: subscriber.position,
            backlog: ahead(available, subscriber.position),
        }
    }

    fn add(&mut self, meta: &CounterMeta, value: i64) {
        if meta.type_id == type_id::CLIENT_HEARTBEAT {
            if let Some(key) = HeartbeatKey::decode(&meta.key) {
                self.client_names
                    .insert(key.client_id, client_name(meta.label.as_str()).to_owned());
            }
            return;
        }
        let is_of_stream = matches!(
            meta.type_id,
            type_id::PUBLISHER_LIMIT
                | type_id::PUBLISHER_POSITION
                | type_id::SENDER_POSITION
                | type_id::SENDER_LIMIT
                | type_id::FLOW_CONTROL_RECEIVERS
                | type_id::SUBSCRIBER_POSITION
                | type_id::RECEIVER_HIGH_WATER_MARK
                | type_id::PER_IMAGE
        );
        if is_of_stream && let Some(key) = StreamKey::decode(&meta.key) {
            self.add_of_stream(meta, &key, value);
        }
    }

    fn add_of_stream(&mut self, meta: &CounterMeta, key: &StreamKey<'_>, value: i64) {
        let stream = (key.session_id, key.stream_id);
        match meta.type_id {
            type_id::SUBSCRIBER_POSITION => {
                self.subscribers
                    .entry(stream)
                    .or_default()
                    .push(SubscriberPosition {
                        registration_id: key.registration_id,
                        client_id: meta.owner_id,
                        session_id: key.session_id,
                        stream_id: key.stream_id,
                        position: value,
                        is_spy: key.channel.starts_with(SPY),
                    });
            }
            type_id::RECEIVER_HIGH_WATER_MARK => {
                self.images.entry(stream).or_default().high_water_mark = value;
            }
            type_id::PER_IMAGE => {
                if meta.label.as_str().starts_with(CONGESTION_WINDOW) {
                    let image = self.images.entry(stream).or_default();
                    image.congestion_window = Some(value);
                }
            }
            _ => self.publication_of(key).set(meta.type_id, value),
        }
    }

    /// Returns the publication of the key. Until its position limit is found it has none, and [`Self::read`] drops it.
    fn publication_of(&mut self, key: &StreamKey<'_>) -> &mut PublicationPosition {
        self.publications
            .entry(key.registration_id)
            .or_insert_with(|| PublicationPosition {
                registration_id: key.registration_id,
                session_id: key.session_id,
                stream_id: key.stream_id,
                channel: key.channel.to_string(),
                position: 0,
                limit: Position::MIN,
                sender: None,
                receivers: None,
            })
    }
}

impl PublicationPosition {
    /// Sets the value of one of its counters.
    fn set(&mut self, type_id: i32, value: i64) {
        match type_id {
            type_id::PUBLISHER_LIMIT => self.limit = value,
            type_id::PUBLISHER_POSITION => self.position = value,
            type_id::SENDER_POSITION => {
                let limit = self.sender.map_or(value, |(_, limit)| limit);
                self.sender = Some((value, limit));
            }
            type_id::SENDER_LIMIT => {
                let position = self.sender.map_or(value, |(position, _)| position);
                self.sender = Some((position, value));
            }
            type_id::FLOW_CONTROL_RECEIVERS => self.receivers = Some(value),
            _ => {}
        }
    }
}

/// A number of bytes, displayed as `32,768`.
struct Grouped(i64);

impl fmt::Display for Grouped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = self.0.unsigned_abs().to_string();
        if self.0 < 0 {
            f.write_str("-")?;
        }
        for (index, digit) in digits.chars().enumerate() {
            if index > 0 && (digits.len() - index).is_multiple_of(3) {
                f.write_str(",")?;
            }
            write!(f, "{digit}")?;
        }
        Ok(())
    }
}

/// Returns how far `a` is ahead of `b`; 0 if it is behind.
fn ahead(a: Position, b: Position) -> i64 {
    a.saturating_sub(b).max(0)
}

/// Returns the name in the label of a client's heartbeat: `client-heartbeat: id=7 name=risk version=…`.
fn client_name(label: &str) -> &str {
    let Some((_, rest)) = label.split_once(" name=") else {
        return "";
    };
    rest.split_once(" version=").map_or(rest, |(name, _)| name)
}

#[cfg(test)]
mod tests;
