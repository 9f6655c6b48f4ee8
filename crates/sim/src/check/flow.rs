// SPDX-License-Identifier: Apache-2.0
//! Flow control limits hold.
//!
//! Input: the streams of a driver after a refresh. A check must follow each duty cycle of the driver, so that a limit
//! holds from one check to the next. Published positions are read from the logs, not from the driver's counters.
//!
//! * Publishers stop at their limit, and exceed it by less than the longest message.
//! * The publisher limit is at most the window ahead of the slowest subscriber (IPC), or of the sender and the slowest
//!   spy (network). Untethered subscribers do not count.
//! * Senders stop at the sender limit, where only the header of padding counts, and at the publisher position.
//! * Receivers accept data up to half a term beyond the furthest position of the slowest subscriber; padding and
//!   heartbeats may extend to the end of that term.
//! * Subscribers and spies stop at the publisher position, subscribers of images where frames have arrived. A spy may
//!   be ahead of the sender because it reads the publisher's log.

use taran_core::sync::Ordering;
use taran_protocol::log::LogBuffers;

use super::streams::{Log, Position, Stream, Streams};
use super::{Violation, violation};

const HEADER: i64 = 32;

/// Checks the positions of each stream against each other.
///
/// # Errors
/// One of them exceeds its bound.
pub fn check(streams: &Streams) -> Result<(), Violation> {
    for stream in streams.streams() {
        let stream_check = StreamCheck { streams, stream };
        if let Some(log) = &stream.log {
            stream_check.check_publishers(log)?;
            stream_check.check_publisher_limit(log)?;
            stream_check.check_sender(log)?;
            stream_check.check_window(log)?;
        }
        stream_check.check_consumers()?;
    }
    Ok(())
}

struct StreamCheck<'a> {
    streams: &'a Streams,
    stream: &'a Stream,
}

impl<'a> StreamCheck<'a> {
    fn at(&self, index: Option<usize>) -> Option<&'a Position> {
        self.streams.at(index)
    }

    fn describe(&self, position: &Position) -> String {
        self.streams.describe(position)
    }

    fn subscribers(&self) -> impl Iterator<Item = &'a Position> {
        let positions = self.streams.positions();
        let consumers = self.stream.consumers.iter();
        consumers.map(|index| &positions[*index])
    }

    /// Returns the slowest tethered subscriber.
    fn slowest(&self) -> Option<&'a Position> {
        let tethered = self.subscribers().filter(|consumer| consumer.is_tethered);
        tethered.min_by_key(|consumer| consumer.value)
    }

    fn check_publishers(&self, log: &Log) -> Result<(), Violation> {
        let Some(limit) = self.at(self.stream.publisher_limit) else {
            return Ok(());
        };
        // The limit or the published position may have changed since the last refresh, in unknown order.
        let allowed = limit.value.max(limit.previous);
        if log.published > log.previous_published && log.published >= allowed + log.longest {
            violation!(
                "published up to {} (before: {}), a message is at most {} long: beyond {}",
                log.published,
                log.previous_published,
                log.longest,
                self.describe(limit)
            );
        }
        match self.at(self.stream.publisher) {
            Some(publisher) if publisher.value > log.published => violation!(
                "{} is beyond what was published: {}",
                self.describe(publisher),
                log.published
            ),
            _ => Ok(()),
        }
    }

    fn check_publisher_limit(&self, log: &Log) -> Result<(), Violation> {
        let Some(limit) = self.at(self.stream.publisher_limit) else {
            return Ok(());
        };
        // An ending stream has its limit at the publisher position.
        if limit.value <= log.published {
            return Ok(());
        }
        let sender = self.at(self.stream.sender);
        for slow in self.slowest().into_iter().chain(sender) {
            if limit.value > slow.value.max(0) + log.publication_window {
                violation!(
                    "{} is more than {} ahead of {}",
                    self.describe(limit),
                    log.publication_window,
                    self.describe(slow)
                );
            }
        }
        // A new subscriber starts behind the others, so without subscribers there was none when the limit moved.
        if limit.value > limit.previous && sender.is_none() && self.stream.consumers.is_empty() {
            violation!("{} was raised without a consumer", self.describe(limit));
        }
        Ok(())
    }

    fn check_sender(&self, log: &Log) -> Result<(), Violation> {
        let Some(sender) = self.at(self.stream.sender) else {
            return Ok(());
        };
        if sender.value > log.published {
            violation!(
                "{} is beyond what was published: {}",
                self.describe(sender),
                log.published
            );
        }
        let Some(limit) = self.at(self.stream.sender_limit) else {
            return Ok(());
        };
        // Data sent under a limit that has fallen since is allowed.
        let allowed = limit.value.max(limit.previous);
        if sender.value > sender.previous
            && sender.value > allowed
            && charged_end(&log.buffers, sender.previous, sender.value) > allowed
        {
            violation!(
                "{} is beyond {}",
                self.describe(sender),
                self.describe(limit)
            );
        }
        Ok(())
    }

    /// Returns the end of stale bytes that a directly received segment run may have left, or 0. A run that did not
    /// belong at its place, for example beyond the window, leaves its bytes without the first header: at the rebuild
    /// position, behind a zero header. Readers do not look there.
    fn stale_run_end(&self, log: &Log) -> i64 {
        let Some(rebuilt) = self.at(self.stream.receiver) else {
            return 0;
        };
        let offset = (rebuilt.value % i64::from(log.buffers.term_length())) as usize;
        let header = log.buffers.term_at(rebuilt.value).bytes(offset, 4);
        if header.iter().all(|byte| *byte == 0) {
            rebuilt.value + MAX_SEGMENT_RUN
        } else {
            0
        }
    }

    fn check_window(&self, log: &Log) -> Result<(), Violation> {
        let (Some(arrived), Some(slowest)) = (self.at(self.stream.high_water), self.slowest())
        else {
            return Ok(());
        };
        let term = i64::from(log.buffers.term_length());
        // A subscriber that joined later may be behind the window that was advertised.
        let allowed = self.stream.consumed + term / 2;
        if arrived.value <= allowed || arrived.value == arrived.previous {
            return Ok(());
        }
        let end = (allowed - 1) / term * term + term;
        let checked_from = self.stale_run_end(log).max(allowed);
        if arrived.value > end || has_data(&log.buffers, checked_from, arrived.value) {
            violation!(
                "{} is more than half a term ahead of {}",
                self.describe(arrived),
                self.describe(slowest)
            );
        }
        Ok(())
    }

    fn check_consumers(&self) -> Result<(), Violation> {
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
                violation!("{} is beyond what {what}: {end:?}", self.describe(reader));
            }
        }
        Ok(())
    }
}

/// Returns where the frames from `from` to `to` end, within one term, when only the header counts of padding at the
/// end.
fn charged_end(log: &LogBuffers, from: i64, to: i64) -> i64 {
    let term_length = i64::from(log.term_length());
    let mut at = from;
    while at < to {
        let offset = (at % term_length) as usize;
        let length = log.term_at(at).atomic_i32(offset).load(Ordering::Acquire);
        let end = at + ((i64::from(length) + HEADER - 1) & !(HEADER - 1));
        if length < HEADER as i32 || end > to {
            // The frames do not lead there: no padding is known.
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
    /// Offset of the type field in a header, and the type of padding.
    const TYPE: (usize, [u8; 2]) = (6, [0, 0]);
    let offset = (at % i64::from(log.term_length())) as usize;
    log.term_at(at).bytes(offset + TYPE.0, 2) == TYPE.1
}

/// Maximum bytes of a segment run.
const MAX_SEGMENT_RUN: i64 = 64 * 1024;

/// Returns true if a data frame begins in the range. A valid frame contains its own offset.
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

    use super::super::streams::tests::{FakeDriver, TERM};
    use super::*;

    const ID: i64 = 7;

    fn check_after_refresh(driver: &mut FakeDriver) -> Result<(), Violation> {
        if driver.refresh() {
            return check(&driver.streams);
        }
        Ok(())
    }

    fn expect_violation(driver: &mut FakeDriver, text: &str) {
        let Violation(found) = check_after_refresh(driver).unwrap_err();
        assert!(found.contains(text), "{found}");
    }

    /// Creates a publication; returns its limit and an appender to its log, after a check.
    fn publication(driver: &mut FakeDriver) -> (Counter, ExclusiveAppender) {
        let limit = driver.counter(type_id::PUBLISHER_LIMIT, ID);
        let log = ExclusiveAppender::new(driver.log(LogKind::Exclusive, ID)).unwrap();
        check_after_refresh(driver).unwrap();
        (limit, log)
    }

    /// Publishes `count` frames of 64 bytes.
    fn publish(log: &mut ExclusiveAppender, count: usize) {
        for _ in 0..count {
            log.append(&[1; 32], None).unwrap();
        }
    }

    #[test]
    fn publisher_beyond_its_limit_by_a_message_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (limit, mut log) = publication(&mut driver);
        let subscriber = driver.subscriber(ID, "");
        limit.set(64);
        check_after_refresh(&mut driver).unwrap();
        publish(&mut log, 2);
        check_after_refresh(&mut driver).unwrap();
        limit.set(0);
        check_after_refresh(&mut driver).unwrap();
        subscriber.set(64);
        publish(&mut log, 130);
        expect_violation(&mut driver, "a message is at most");
    }

    #[test]
    fn publisher_position_beyond_the_log_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (limit, mut log) = publication(&mut driver);
        let position = driver.counter(type_id::PUBLISHER_POSITION, ID);
        limit.set(64);
        publish(&mut log, 1);
        position.set(64);
        driver.subscriber(ID, "");
        check_after_refresh(&mut driver).unwrap();
        position.set(96);
        expect_violation(&mut driver, "beyond what was published");
    }

    #[test]
    fn publisher_limit_too_far_ahead_of_tethered_subscriber_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (limit, mut log) = publication(&mut driver);
        let slow = driver.subscriber(ID, "");
        let untethered = driver.subscriber(ID, "aeron:ipc?tether=false");
        publish(&mut log, 2);
        slow.set(64);
        untethered.set(32);
        limit.set(TERM / 2 + 64);
        check_after_refresh(&mut driver).unwrap();
        limit.set(TERM / 2 + 96);
        expect_violation(&mut driver, "ahead of");
    }

    #[test]
    fn publisher_limit_too_far_ahead_of_sender_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (limit, mut log) = publication(&mut driver);
        let sender = driver.counter(type_id::SENDER_POSITION, ID);
        publish(&mut log, 2);
        sender.set(64);
        limit.set(TERM / 2 + 64);
        check_after_refresh(&mut driver).unwrap();
        limit.set(TERM / 2 + 96);
        expect_violation(&mut driver, "ahead of");
    }

    #[test]
    fn publisher_limit_raised_without_consumer_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (limit, _) = publication(&mut driver);
        limit.set(32);
        expect_violation(&mut driver, "without a consumer");
    }

    #[test]
    fn sender_beyond_limit_or_publisher_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (_, mut log) = publication(&mut driver);
        let sender = driver.counter(type_id::SENDER_POSITION, ID);
        let limit = driver.counter(type_id::SENDER_LIMIT, ID);
        publish(&mut log, 4);
        limit.set(128);
        sender.set(128);
        check_after_refresh(&mut driver).unwrap();
        limit.set(64);
        check_after_refresh(&mut driver).unwrap();
        check_after_refresh(&mut driver).unwrap();
        sender.set(192);
        expect_violation(&mut driver, "is beyond counter");
        limit.set(512);
        sender.set(288);
        expect_violation(&mut driver, "beyond what was published");
    }

    #[test]
    fn sender_limit_counts_only_the_header_of_padding() {
        let mut driver = FakeDriver::new();
        let (_, mut log) = publication(&mut driver);
        let sender = driver.counter(type_id::SENDER_POSITION, ID);
        let limit = driver.counter(type_id::SENDER_LIMIT, ID);
        publish(&mut log, 1);
        let end = log.append_padding(1000).unwrap();
        limit.set(96);
        check_after_refresh(&mut driver).unwrap();
        sender.set(end);
        check_after_refresh(&mut driver).unwrap();
        limit.set(end + 32);
        publish(&mut log, 1);
        check_after_refresh(&mut driver).unwrap();
        sender.set(end + 64);
        expect_violation(&mut driver, "is beyond counter");
    }

    #[test]
    fn padding_header_beyond_sender_limit_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (_, mut log) = publication(&mut driver);
        let sender = driver.counter(type_id::SENDER_POSITION, ID);
        let limit = driver.counter(type_id::SENDER_LIMIT, ID);
        let end = log.append_padding(TERM as usize / 8).unwrap();
        limit.set(16);
        check_after_refresh(&mut driver).unwrap();
        sender.set(end);
        expect_violation(&mut driver, "is beyond counter");
    }

    /// Returns an image's high-water mark, a subscriber position and the log.
    fn image(driver: &mut FakeDriver) -> (Counter, Counter, LogBuffers) {
        let arrived = driver.counter(type_id::RECEIVER_HIGH_WATER_MARK, ID);
        let subscriber = driver.subscriber(ID, "");
        let log = driver.log(LogKind::Image, ID);
        check_after_refresh(driver).unwrap();
        (arrived, subscriber, log)
    }

    /// Writes a frame as the receiver does.
    fn write_frame(log: &LogBuffers, at: i64, kind: u8) {
        let mut header = [0; 64];
        header[0] = 64;
        header[6] = kind;
        header[8..12].copy_from_slice(&((at % TERM) as i32).to_le_bytes());
        header[12..16].copy_from_slice(&log.session_id().to_le_bytes());
        header[20..24].copy_from_slice(&log.geometry().term_id(at).to_le_bytes());
        log.term_at(at).write((at % TERM) as usize, &header);
    }

    #[test]
    fn data_beyond_half_a_term_is_a_violation_and_padding_is_not() {
        let mut driver = FakeDriver::new();
        let (arrived, _, log) = image(&mut driver);
        write_frame(&log, TERM / 2 - 64, 1);
        arrived.set(TERM / 2);
        check_after_refresh(&mut driver).unwrap();
        write_frame(&log, TERM / 2, 0);
        arrived.set(TERM / 2 + 64);
        check_after_refresh(&mut driver).unwrap();
        write_frame(&log, TERM / 2 + 64, 1);
        arrived.set(TERM / 2 + 128);
        expect_violation(&mut driver, "half a term");
    }

    #[test]
    fn stale_segment_run_behind_zero_header_is_ignored() {
        for is_there in [false, true] {
            let mut driver = FakeDriver::new();
            let (arrived, _, log) = image(&mut driver);
            let rebuilt = driver.counter(type_id::RECEIVER_POSITION, ID);
            arrived.set(TERM / 2 - 64);
            rebuilt.set(TERM / 2 - 64);
            check_after_refresh(&mut driver).unwrap();
            if is_there {
                write_frame(&log, TERM / 2 - 64, 1);
            }
            write_frame(&log, TERM / 2 + 64, 1);
            arrived.set(TERM / 2 + 128);
            if is_there {
                expect_violation(&mut driver, "half a term");
            } else {
                check_after_refresh(&mut driver).unwrap();
            }
        }
    }

    #[test]
    fn frames_of_an_earlier_term_rotation_are_ignored() {
        let mut driver = FakeDriver::new();
        let (arrived, subscriber, log) = image(&mut driver);
        write_frame(&log, TERM / 2, 1);
        for position in [1, 2, 3] {
            arrived.set(position * TERM);
            subscriber.set(position * TERM);
            check_after_refresh(&mut driver).unwrap();
        }
        arrived.set(3 * TERM + TERM / 2 + 64);
        check_after_refresh(&mut driver).unwrap();
    }

    #[test]
    fn subscriber_joining_behind_the_advertised_window_is_allowed() {
        let mut driver = FakeDriver::new();
        let (arrived, subscriber, log) = image(&mut driver);
        arrived.set(128);
        subscriber.set(128);
        check_after_refresh(&mut driver).unwrap();
        driver.subscriber(ID, "");
        check_after_refresh(&mut driver).unwrap();
        write_frame(&log, TERM / 2 + 64, 1);
        arrived.set(TERM / 2 + 128);
        check_after_refresh(&mut driver).unwrap();
        write_frame(&log, TERM / 2 + 128, 1);
        arrived.set(TERM / 2 + 192);
        expect_violation(&mut driver, "half a term");
    }

    #[test]
    fn new_subscriber_does_not_count_until_the_receiver_knows_it() {
        let mut driver = FakeDriver::new();
        let (arrived, subscriber, log) = image(&mut driver);
        driver.streams.mark_all_known();
        let newcomer = driver.subscriber(ID, "");
        check_after_refresh(&mut driver).unwrap();
        arrived.set(128);
        subscriber.set(128);
        check_after_refresh(&mut driver).unwrap();
        write_frame(&log, TERM / 2 + 64, 1);
        arrived.set(TERM / 2 + 128);
        check_after_refresh(&mut driver).unwrap();
        driver.streams.mark_all_known();
        subscriber.set(256);
        newcomer.set(64);
        check_after_refresh(&mut driver).unwrap();
        write_frame(&log, TERM / 2 + 128, 1);
        arrived.set(TERM / 2 + 192);
        expect_violation(&mut driver, "half a term");
    }

    #[test]
    fn high_water_mark_beyond_the_term_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (arrived, subscriber, _) = image(&mut driver);
        arrived.set(TERM);
        check_after_refresh(&mut driver).unwrap();
        arrived.set(TERM + 32);
        expect_violation(&mut driver, "half a term");
        arrived.set(TERM + 64);
        subscriber.set(TERM / 2 + 64);
        check_after_refresh(&mut driver).unwrap();
    }

    #[test]
    fn subscriber_beyond_received_or_published_data_is_a_violation() {
        let mut driver = FakeDriver::new();
        let (arrived, subscriber, _) = image(&mut driver);
        let rebuilt = driver.counter(type_id::RECEIVER_POSITION, ID);
        arrived.set(64);
        subscriber.set(64);
        rebuilt.set(64);
        check_after_refresh(&mut driver).unwrap();
        rebuilt.set(96);
        expect_violation(&mut driver, "what arrived");
        arrived.set(96);
        subscriber.set(128);
        expect_violation(&mut driver, "what arrived");
        let mut driver = FakeDriver::new();
        let (_, mut log) = publication(&mut driver);
        let subscriber = driver.subscriber(ID, "");
        publish(&mut log, 1);
        subscriber.set(64);
        check_after_refresh(&mut driver).unwrap();
        subscriber.set(96);
        expect_violation(&mut driver, "what was published");
    }
}
