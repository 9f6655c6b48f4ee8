//! Flow control is never overrun.
//!
//! Input: the streams of a driver after a look; there has to be one after each turn of the driver, so that a limit holds
//! from one look to the next. What was published is read from the logs, not from the driver's counters.
//!
//! * Publishers stop at their limit, and pass it by less than the longest message.
//! * That limit is at most the window ahead of the slowest subscriber (IPC), and of the sender and the slowest spy
//!   (network). Subscribers that are not tethered hold nobody back.
//! * Senders stop at their limit, of padding counts the header, and at the publisher.
//! * Receivers take data up to half a term beyond where the slowest subscriber ever was; padding and heartbeats may lead
//!   to the end of that term.
//! * Subscribers and spies stop at the publisher, those of images where frames have arrived. A spy may pass the sender:
//!   it reads the publisher's log.

use taran_core::sync::Ordering;
use taran_protocol::log::LogBuffers;

use super::streams::{Log, Position, Stream, Streams};
use super::{Violation, violation};

const HEADER: i64 = 32;

/// Holds the positions of each stream against each other.
///
/// # Errors
/// One of them is where it must not be.
pub fn look(streams: &Streams) -> Result<(), Violation> {
    for stream in streams.streams() {
        let all = All { streams, stream };
        if let Some(log) = &stream.log {
            all.publishers(log)?;
            all.publisher_limit(log)?;
            all.sender(log)?;
            all.window(log)?;
        }
        all.consumers()?;
    }
    Ok(())
}

struct All<'a> {
    streams: &'a Streams,
    stream: &'a Stream,
}

impl<'a> All<'a> {
    fn at(&self, index: Option<usize>) -> Option<&'a Position> {
        self.streams.at(index)
    }

    fn name(&self, position: &Position) -> String {
        self.streams.describe(position)
    }

    fn subscribers(&self) -> impl Iterator<Item = &'a Position> {
        let positions = self.streams.positions();
        let consumers = self.stream.consumers.iter();
        consumers.map(|index| &positions[*index])
    }

    /// The slowest of those who hold the stream back.
    fn slowest(&self) -> Option<&'a Position> {
        let tethered = self.subscribers().filter(|consumer| consumer.is_tethered);
        tethered.min_by_key(|consumer| consumer.value)
    }

    fn publishers(&self, log: &Log) -> Result<(), Violation> {
        let Some(limit) = self.at(self.stream.publisher_limit) else {
            return Ok(());
        };
        // The driver moved the limit, or publishers the stream, but not one after the other.
        let allowed = limit.value.max(limit.before);
        if log.published > log.published_before && log.published >= allowed + log.longest {
            violation!(
                "published up to {} (before: {}), a message is at most {} long: beyond {}",
                log.published,
                log.published_before,
                log.longest,
                self.name(limit)
            );
        }
        match self.at(self.stream.publisher) {
            Some(publisher) if publisher.value > log.published => violation!(
                "{} is beyond what was published: {}",
                self.name(publisher),
                log.published
            ),
            _ => Ok(()),
        }
    }

    fn publisher_limit(&self, log: &Log) -> Result<(), Violation> {
        let Some(limit) = self.at(self.stream.publisher_limit) else {
            return Ok(());
        };
        // A stream that ends has its limit where its publisher stands.
        if limit.value <= log.published {
            return Ok(());
        }
        let sender = self.at(self.stream.sender);
        for slow in self.slowest().into_iter().chain(sender) {
            if limit.value > slow.value.max(0) + log.publication_window {
                violation!(
                    "{} is more than {} ahead of {}",
                    self.name(limit),
                    log.publication_window,
                    self.name(slow)
                );
            }
        }
        // Whoever joins starts behind the others, so that there was nobody when it moved.
        if limit.value > limit.before && sender.is_none() && self.stream.consumers.is_empty() {
            violation!("{} was raised for nobody", self.name(limit));
        }
        Ok(())
    }

    fn sender(&self, log: &Log) -> Result<(), Violation> {
        let Some(sender) = self.at(self.stream.sender) else {
            return Ok(());
        };
        if sender.value > log.published {
            violation!(
                "{} is beyond what was published: {}",
                self.name(sender),
                log.published
            );
        }
        let Some(limit) = self.at(self.stream.sender_limit) else {
            return Ok(());
        };
        // What was sent under a limit that has fallen since is sent.
        let allowed = limit.value.max(limit.before);
        if sender.value > sender.before
            && sender.value > allowed
            && charged(&log.buffers, sender.before, sender.value) > allowed
        {
            violation!("{} is beyond {}", self.name(sender), self.name(limit));
        }
        Ok(())
    }

    /// A train that was received in place and did not belong there, be it that it led beyond the window, leaves its bytes
    /// behind, without its first header: where nothing is missing, and behind an empty slot. Nobody looks there.
    fn behind_remains(&self, log: &Log) -> i64 {
        let Some(rebuilt) = self.at(self.stream.receiver) else {
            return 0;
        };
        let offset = (rebuilt.value % i64::from(log.buffers.term_length())) as usize;
        let header = log.buffers.term_at(rebuilt.value).bytes(offset, 4);
        if header.iter().all(|byte| *byte == 0) {
            rebuilt.value + LONGEST_TRAIN
        } else {
            0
        }
    }

    fn window(&self, log: &Log) -> Result<(), Violation> {
        let (Some(arrived), Some(slowest)) = (self.at(self.stream.high_water), self.slowest())
        else {
            return Ok(());
        };
        let term = i64::from(log.buffers.term_length());
        // Whoever joins may be behind what the sender was told.
        let allowed = self.stream.consumed + term / 2;
        if arrived.value <= allowed || arrived.value == arrived.before {
            return Ok(());
        }
        let end = (allowed - 1) / term * term + term;
        let looked_at = self.behind_remains(log).max(allowed);
        if arrived.value > end || has_data(&log.buffers, looked_at, arrived.value) {
            violation!(
                "{} is more than half a term ahead of {}",
                self.name(arrived),
                self.name(slowest)
            );
        }
        Ok(())
    }

    fn consumers(&self) -> Result<(), Violation> {
        let published = self.stream.log.as_ref().map(|log| log.published);
        let (what, end) = match self.at(self.stream.high_water) {
            Some(arrived) => ("arrived", Some(arrived.value)),
            None => (
                "was published",
                published.filter(|_| self.stream.publisher_limit.is_some()),
            ),
        };
        let reader = self.subscribers().chain(self.at(self.stream.receiver));
        for reader in reader {
            if end.is_some_and(|end| reader.value > end) {
                violation!("{} is beyond what {what}: {end:?}", self.name(reader));
            }
        }
        Ok(())
    }
}

/// Where the frames from `from` to `to` end, in one term, when of padding at the end only the header counts.
fn charged(log: &LogBuffers, from: i64, to: i64) -> i64 {
    let term_length = i64::from(log.term_length());
    let mut at = from;
    while at < to {
        let offset = (at % term_length) as usize;
        let length = log.term_at(at).atomic_i32(offset).load(Ordering::Acquire);
        let end = at + ((i64::from(length) + HEADER - 1) & !(HEADER - 1));
        if length < HEADER as i32 || end > to {
            // Not a way that leads there: no padding is known of.
            return to;
        }
        if end == to && is_padding(log, at) {
            return at + HEADER;
        }
        at = end;
    }
    to
}

fn is_padding(log: &LogBuffers, at: i64) -> bool {
    /// Where in a header the type is, and that of padding.
    const TYPE: (usize, [u8; 2]) = (6, [0, 0]);
    let offset = (at % i64::from(log.term_length())) as usize;
    log.term_at(at).bytes(offset + TYPE.0, 2) == TYPE.1
}

/// Bytes of a train at most.
const LONGEST_TRAIN: i64 = 64 * 1024;

/// Whether a frame of data begins from `from` on: such a one says itself where it lies.
fn has_data(log: &LogBuffers, from: i64, to: i64) -> bool {
    let term_length = i64::from(log.term_length());
    let first = (from + HEADER - 1) & !(HEADER - 1);
    (first..to).step_by(HEADER as usize).any(|at| {
        let offset = (at % term_length) as usize;
        let header = log.term_at(at).bytes(offset, HEADER as usize);
        let field = |at: usize| {
            i32::from_le_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]])
        };
        let is_frame = field(0) > HEADER as i32 && field(8) == offset as i32;
        let is_there = field(12) == log.session_id() && field(20) == log.geometry().term_id(at);
        is_frame && is_there && !is_padding(log, at)
    })
}

#[cfg(test)]
mod tests {
    use taran_core::counters::Counter;
    use taran_protocol::counter::type_id;
    use taran_protocol::log::{ExclusiveAppender, LogKind};

    use super::super::streams::tests::{Scene, TERM};
    use super::*;

    const ID: i64 = 7;

    fn looked(scene: &mut Scene) -> Result<(), Violation> {
        if scene.look() {
            return look(&scene.streams);
        }
        Ok(())
    }

    fn fails(scene: &mut Scene, text: &str) {
        let Violation(found) = looked(scene).unwrap_err();
        assert!(found.contains(text), "{found}");
    }

    /// A publication, its limit, and an appender to its log, after a look.
    fn publication(scene: &mut Scene) -> (Counter, ExclusiveAppender) {
        let limit = scene.counter(type_id::PUBLISHER_LIMIT, ID);
        let log = ExclusiveAppender::new(scene.log(LogKind::Exclusive, ID)).unwrap();
        looked(scene).unwrap();
        (limit, log)
    }

    /// Publishes this many frames of 64 bytes.
    fn publish(log: &mut ExclusiveAppender, count: usize) {
        for _ in 0..count {
            log.append(&[1; 32], None).unwrap();
        }
    }

    #[test]
    fn a_publisher_passes_its_limit_by_less_than_a_message() {
        let mut scene = Scene::new();
        let (limit, mut log) = publication(&mut scene);
        let subscriber = scene.subscriber(ID, "");
        limit.set(64);
        looked(&mut scene).unwrap();
        publish(&mut log, 2);
        looked(&mut scene).unwrap();
        limit.set(0);
        looked(&mut scene).unwrap();
        subscriber.set(64);
        publish(&mut log, 130);
        fails(&mut scene, "a message is at most");
    }

    #[test]
    fn a_publishers_counter_is_not_beyond_what_was_published() {
        let mut scene = Scene::new();
        let (limit, mut log) = publication(&mut scene);
        let position = scene.counter(type_id::PUBLISHER_POSITION, ID);
        limit.set(64);
        publish(&mut log, 1);
        position.set(64);
        scene.subscriber(ID, "");
        looked(&mut scene).unwrap();
        position.set(96);
        fails(&mut scene, "beyond what was published");
    }

    #[test]
    fn a_publishers_limit_is_a_window_ahead_of_the_slowest_tethered_subscriber() {
        let mut scene = Scene::new();
        let (limit, mut log) = publication(&mut scene);
        let slow = scene.subscriber(ID, "");
        let loose = scene.subscriber(ID, "aeron:ipc?tether=false");
        publish(&mut log, 2);
        slow.set(64);
        loose.set(32);
        limit.set(TERM / 2 + 64);
        looked(&mut scene).unwrap();
        limit.set(TERM / 2 + 96);
        fails(&mut scene, "ahead of");
    }

    #[test]
    fn a_publishers_limit_is_a_window_ahead_of_the_sender() {
        let mut scene = Scene::new();
        let (limit, mut log) = publication(&mut scene);
        let sender = scene.counter(type_id::SENDER_POSITION, ID);
        publish(&mut log, 2);
        sender.set(64);
        limit.set(TERM / 2 + 64);
        looked(&mut scene).unwrap();
        limit.set(TERM / 2 + 96);
        fails(&mut scene, "ahead of");
    }

    #[test]
    fn a_publishers_limit_is_not_raised_for_nobody() {
        let mut scene = Scene::new();
        let (limit, _) = publication(&mut scene);
        limit.set(32);
        fails(&mut scene, "for nobody");
    }

    #[test]
    fn a_sender_stops_at_its_limit_and_at_the_publisher() {
        let mut scene = Scene::new();
        let (_, mut log) = publication(&mut scene);
        let sender = scene.counter(type_id::SENDER_POSITION, ID);
        let limit = scene.counter(type_id::SENDER_LIMIT, ID);
        publish(&mut log, 4);
        limit.set(128);
        sender.set(128);
        looked(&mut scene).unwrap();
        limit.set(64);
        looked(&mut scene).unwrap();
        looked(&mut scene).unwrap();
        sender.set(192);
        fails(&mut scene, "is beyond counter");
        limit.set(512);
        sender.set(288);
        fails(&mut scene, "beyond what was published");
    }

    #[test]
    fn of_padding_a_sender_counts_the_header_and_of_data_everything() {
        let mut scene = Scene::new();
        let (_, mut log) = publication(&mut scene);
        let sender = scene.counter(type_id::SENDER_POSITION, ID);
        let limit = scene.counter(type_id::SENDER_LIMIT, ID);
        publish(&mut log, 1);
        let end = log.append_padding(1000).unwrap();
        limit.set(96);
        looked(&mut scene).unwrap();
        sender.set(end);
        looked(&mut scene).unwrap();
        limit.set(end + 32);
        publish(&mut log, 1);
        looked(&mut scene).unwrap();
        sender.set(end + 64);
        fails(&mut scene, "is beyond counter");
    }

    #[test]
    fn padding_of_which_the_header_is_beyond_the_limit_is_not_sent() {
        let mut scene = Scene::new();
        let (_, mut log) = publication(&mut scene);
        let sender = scene.counter(type_id::SENDER_POSITION, ID);
        let limit = scene.counter(type_id::SENDER_LIMIT, ID);
        let end = log.append_padding(TERM as usize / 8).unwrap();
        limit.set(16);
        looked(&mut scene).unwrap();
        sender.set(end);
        fails(&mut scene, "is beyond counter");
    }

    /// An image's high water mark and a subscriber.
    fn image(scene: &mut Scene) -> (Counter, Counter, LogBuffers) {
        let arrived = scene.counter(type_id::RECEIVER_HIGH_WATER_MARK, ID);
        let subscriber = scene.subscriber(ID, "");
        let log = scene.log(LogKind::Image, ID);
        looked(scene).unwrap();
        (arrived, subscriber, log)
    }

    /// Puts a frame there as the receiver does.
    fn arrive(log: &LogBuffers, at: i64, kind: u8) {
        let mut header = [0; 64];
        header[0] = 64;
        header[6] = kind;
        header[8..12].copy_from_slice(&((at % TERM) as i32).to_le_bytes());
        header[12..16].copy_from_slice(&log.session_id().to_le_bytes());
        header[20..24].copy_from_slice(&log.geometry().term_id(at).to_le_bytes());
        log.term_at(at).write((at % TERM) as usize, &header);
    }

    #[test]
    fn a_receiver_takes_half_a_term_of_data_and_is_led_to_its_end_by_padding() {
        let mut scene = Scene::new();
        let (arrived, _, log) = image(&mut scene);
        arrive(&log, TERM / 2 - 64, 1);
        arrived.set(TERM / 2);
        looked(&mut scene).unwrap();
        arrive(&log, TERM / 2, 0);
        arrived.set(TERM / 2 + 64);
        looked(&mut scene).unwrap();
        arrive(&log, TERM / 2 + 64, 1);
        arrived.set(TERM / 2 + 128);
        fails(&mut scene, "half a term");
    }

    #[test]
    fn what_a_train_left_behind_an_empty_slot_is_no_data() {
        for is_there in [false, true] {
            let mut scene = Scene::new();
            let (arrived, _, log) = image(&mut scene);
            let rebuilt = scene.counter(type_id::RECEIVER_POSITION, ID);
            arrived.set(TERM / 2 - 64);
            rebuilt.set(TERM / 2 - 64);
            looked(&mut scene).unwrap();
            if is_there {
                arrive(&log, TERM / 2 - 64, 1);
            }
            arrive(&log, TERM / 2 + 64, 1);
            arrived.set(TERM / 2 + 128);
            if is_there {
                fails(&mut scene, "half a term");
            } else {
                looked(&mut scene).unwrap();
            }
        }
    }

    #[test]
    fn what_was_there_three_terms_ago_is_no_data() {
        let mut scene = Scene::new();
        let (arrived, subscriber, log) = image(&mut scene);
        arrive(&log, TERM / 2, 1);
        for position in [1, 2, 3] {
            arrived.set(position * TERM);
            subscriber.set(position * TERM);
            looked(&mut scene).unwrap();
        }
        arrived.set(3 * TERM + TERM / 2 + 64);
        looked(&mut scene).unwrap();
    }

    #[test]
    fn who_joins_behind_what_the_sender_was_told_does_not_hold_the_receiver_to_that() {
        let mut scene = Scene::new();
        let (arrived, subscriber, log) = image(&mut scene);
        arrived.set(128);
        subscriber.set(128);
        looked(&mut scene).unwrap();
        scene.subscriber(ID, "");
        looked(&mut scene).unwrap();
        arrive(&log, TERM / 2 + 64, 1);
        arrived.set(TERM / 2 + 128);
        looked(&mut scene).unwrap();
        arrive(&log, TERM / 2 + 128, 1);
        arrived.set(TERM / 2 + 192);
        fails(&mut scene, "half a term");
    }

    #[test]
    fn who_has_just_joined_does_not_count_before_the_receiver_knows_of_him() {
        let mut scene = Scene::new();
        let (arrived, subscriber, log) = image(&mut scene);
        scene.streams.settle();
        let newcomer = scene.subscriber(ID, "");
        looked(&mut scene).unwrap();
        arrived.set(128);
        subscriber.set(128);
        looked(&mut scene).unwrap();
        arrive(&log, TERM / 2 + 64, 1);
        arrived.set(TERM / 2 + 128);
        looked(&mut scene).unwrap();
        scene.streams.settle();
        subscriber.set(256);
        newcomer.set(64);
        looked(&mut scene).unwrap();
        arrive(&log, TERM / 2 + 128, 1);
        arrived.set(TERM / 2 + 192);
        fails(&mut scene, "half a term");
    }

    #[test]
    fn nothing_leads_a_receiver_into_another_term() {
        let mut scene = Scene::new();
        let (arrived, subscriber, _) = image(&mut scene);
        arrived.set(TERM);
        looked(&mut scene).unwrap();
        arrived.set(TERM + 32);
        fails(&mut scene, "half a term");
        arrived.set(TERM + 64);
        subscriber.set(TERM / 2 + 64);
        looked(&mut scene).unwrap();
    }

    #[test]
    fn nobody_reads_what_is_not_there() {
        let mut scene = Scene::new();
        let (arrived, subscriber, _) = image(&mut scene);
        let rebuilt = scene.counter(type_id::RECEIVER_POSITION, ID);
        arrived.set(64);
        subscriber.set(64);
        rebuilt.set(64);
        looked(&mut scene).unwrap();
        rebuilt.set(96);
        fails(&mut scene, "what arrived");
        arrived.set(96);
        subscriber.set(128);
        fails(&mut scene, "what arrived");
        let mut scene = Scene::new();
        let (_, mut log) = publication(&mut scene);
        let subscriber = scene.subscriber(ID, "");
        publish(&mut log, 1);
        subscriber.set(64);
        looked(&mut scene).unwrap();
        subscriber.set(96);
        fails(&mut scene, "what was published");
    }
}
