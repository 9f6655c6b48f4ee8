// SPDX-License-Identifier: Apache-2.0
//! Driver counters agree with the traffic of the host.
//!
//! Input: the streams of a driver after a refresh, and the traffic of its host as the network has counted it. The check
//! runs between duty cycles, so that both sides count the same events. Bytes and frames below are what the network
//! accepted from the host's sockets, rejected, or delivered to them.
//!
//! System counters, since the driver's start:
//!
//! * Received frames are counted by their type. A damaged frame may count as anything or not at all.
//! * A sent frame is counted once; exceptions are sends to several destinations or sources, and responses.
//! * Of the bytes sent, retransmissions are counted as such, and rejected datagrams as short sends.
//!
//! Stream positions:
//!
//! * The sender position is the end of what was sent; the sender limit is at most the furthest window end received.
//! * The receiver's high-water mark does not exceed what received frames covered.

use taran_core::counters::{Counter, CountersReader};
use taran_protocol::counter::SystemCounter;

use super::streams::{SendModes, Stream, Streams};
use super::{Violation, violation};
use crate::network::{FrameKind, HostTraffic, TrafficCounts};

/// Compares the counters of one driver with the traffic of its host since the driver's start.
#[derive(Debug)]
pub struct CounterCheck {
    /// System counters by id.
    system: Vec<Option<Counter>>,
    start: TrafficCounts,
    checked: TrafficCounts,
    /// The driver drops received frames on purpose (a loss interceptor) before it counts them.
    is_lossy: bool,
}

impl CounterCheck {
    /// Creates the check for a driver that starts now.
    #[must_use]
    pub fn new(reader: &CountersReader, start: TrafficCounts, is_lossy: bool) -> Self {
        let all = SystemCounter::ALL.iter();
        Self {
            system: all.map(|counter| reader.counter(counter.id())).collect(),
            start,
            checked: start,
            is_lossy,
        }
    }

    /// Compares, if there was traffic since the last check.
    ///
    /// # Errors
    /// A counter differs from the traffic.
    pub fn check(&mut self, streams: &Streams, traffic: &HostTraffic) -> Result<(), Violation> {
        let now = *traffic.counts();
        if now == self.checked {
            return Ok(());
        }
        self.checked = now;
        let counts = now.since(&self.start);
        self.check_sent(&counts, streams.modes())?;
        self.check_rejected(&counts, streams.modes())?;
        if !self.is_lossy {
            self.check_received(&counts)?;
        }
        for stream in streams.streams() {
            check_sender(streams, stream, traffic)?;
            check_receiver(streams, stream, traffic)?;
        }
        Ok(())
    }

    fn check_sent(&self, counts: &TrafficCounts, modes: SendModes) -> Result<(), Violation> {
        let attempted = |kind| counts.sent.of(kind).datagrams + counts.rejected.of(kind).datagrams;
        if !modes.sources {
            let status = counts.sent.of(FrameKind::Status).datagrams;
            self.expect_between(
                SystemCounter::StatusMessagesSent,
                status,
                attempted(FrameKind::Status),
            )?;
            self.expect(SystemCounter::NaksSent, attempted(FrameKind::Nak))?;
            self.expect(SystemCounter::ErrorFramesSent, attempted(FrameKind::Error))?;
        }
        if !modes.destinations {
            let heartbeats = counts.sent.of(FrameKind::Heartbeat).bytes;
            // Data that a spy has moved the sender position over may be sent for the first time as a retransmission.
            let first = if modes.spies {
                0
            } else {
                counts.first_sent.bytes
            };
            let (least, most) = (first + heartbeats, counts.first_sent.bytes + heartbeats);
            self.expect_between(SystemCounter::BytesSent, least, most)?;
            // A damaged NAK may cause retransmissions that do not look like data either.
            let is_open = modes.spies || counts.damaged_naks > 0;
            let most = |count| if is_open { u64::MAX } else { count };
            let (bytes, datagrams) = (counts.retransmitted.bytes, counts.retransmitted.datagrams);
            self.expect_between(SystemCounter::RetransmittedBytes, bytes, most(bytes))?;
            let least = datagrams.min(1);
            self.expect_between(SystemCounter::RetransmitsSent, least, most(datagrams))?;
            let most = if modes.responses {
                u64::MAX
            } else {
                attempted(FrameKind::Heartbeat)
            };
            self.expect_between(
                SystemCounter::HeartbeatsSent,
                attempted(FrameKind::Heartbeat),
                most,
            )?;
        }
        self.expect(SystemCounter::FreeFails, 0)
    }

    fn check_rejected(&self, counts: &TrafficCounts, modes: SendModes) -> Result<(), Violation> {
        let rejected = FrameKind::ALL.map(|kind| counts.rejected.of(kind).datagrams);
        let rejected = rejected.iter().sum();
        // A send to several destinations that some of them reject counts as one short send.
        let least = if modes.destinations { 0 } else { rejected };
        // While the receiver of a response publication is unknown, the driver counts short sends without a send.
        let most = if modes.responses { u64::MAX } else { rejected };
        self.expect_between(SystemCounter::ShortSends, least, most)
    }

    fn check_received(&self, counts: &TrafficCounts) -> Result<(), Violation> {
        let damaged = counts.damaged;
        let of = |kind| counts.received.of(kind);
        let datagrams =
            |kinds: &[FrameKind]| kinds.iter().map(|kind| of(*kind).datagrams).sum::<u64>();
        for (counter, kinds) in [
            (
                SystemCounter::StatusMessagesReceived,
                &[FrameKind::Status, FrameKind::SetupRequest][..],
            ),
            (SystemCounter::NaksReceived, &[FrameKind::Nak]),
            (SystemCounter::ErrorFramesReceived, &[FrameKind::Error]),
        ] {
            let received = datagrams(kinds);
            self.expect_between(counter, received, received + damaged.datagrams)?;
        }
        let heartbeats = datagrams(&[FrameKind::Heartbeat]) + damaged.datagrams;
        self.expect_between(SystemCounter::HeartbeatsReceived, 0, heartbeats)?;
        let streams = [
            FrameKind::Data,
            FrameKind::Heartbeat,
            FrameKind::Setup,
            FrameKind::RoundTripReply,
        ];
        let bytes = streams.iter().map(|kind| of(*kind).bytes).sum::<u64>();
        // Frames of other protocols count as received, too.
        let most = bytes + damaged.bytes + of(FrameKind::Other).bytes;
        self.expect_between(SystemCounter::BytesReceived, bytes, most)?;
        // Frames of a new stream under the session of a recent one may be invalid, like damaged frames.
        // So are those of other protocols.
        let kinds = [FrameKind::Data, FrameKind::Heartbeat, FrameKind::Other];
        let unfit = datagrams(&kinds) + damaged.datagrams;
        for counter in [
            SystemCounter::InvalidPackets,
            SystemCounter::FlowControlOverRuns,
            SystemCounter::FlowControlUnderRuns,
        ] {
            self.expect_between(counter, 0, unfit)?;
        }
        let of = |counter| self.value(counter);
        let status = of(SystemCounter::StatusMessagesReceived);
        self.expect_between(SystemCounter::StatusMessagesRejected, 0, status)?;
        let naks = of(SystemCounter::NaksReceived);
        self.expect_between(SystemCounter::RetransmitOverflow, 0, naks)
    }

    fn value(&self, counter: SystemCounter) -> u64 {
        let handle = self.system[counter.id() as usize].as_ref();
        let value = handle.map(Counter::get).unwrap_or_default();
        u64::try_from(value).unwrap_or(u64::MAX)
    }

    fn expect(&self, counter: SystemCounter, expected: u64) -> Result<(), Violation> {
        self.expect_between(counter, expected, expected)
    }

    fn expect_between(
        &self,
        counter: SystemCounter,
        least: u64,
        most: u64,
    ) -> Result<(), Violation> {
        let value = self.value(counter);
        if (least..=most).contains(&value) {
            return Ok(());
        }
        let name = counter.base_label();
        if least == most {
            violation!("{name}: {value} counted, {most} expected");
        }
        violation!("{name}: {value} counted, {least} to {most} expected");
    }
}

fn check_sender(
    streams: &Streams,
    stream: &Stream,
    traffic: &HostTraffic,
) -> Result<(), Violation> {
    let (Some(sender), Some(limit)) = (streams.at(stream.sender), streams.at(stream.sender_limit))
    else {
        return Ok(());
    };
    let Some(observed) = observed_stream(stream, traffic) else {
        return Ok(());
    };
    // A spy may move the position of a stream without receivers; without destinations a publication discards what is
    // sent.
    if let Some(sent) = observed.sent
        && !stream.has_destinations
        && !streams.is_ambiguous(stream)
        && (sender.value < sent || sender.value > sent && !stream.was_consumed)
    {
        violation!("{}: sent up to {sent}", streams.describe(sender));
    }
    // The limit starts at the stream's first position, and follows spies.
    let allowed = observed.window_end.unwrap_or_default().max(sender.value);
    if limit.value > allowed {
        violation!(
            "{}: no window received ends beyond {allowed}",
            streams.describe(limit)
        );
    }
    Ok(())
}

fn check_receiver(
    streams: &Streams,
    stream: &Stream,
    traffic: &HostTraffic,
) -> Result<(), Violation> {
    let Some(arrived) = streams.at(stream.high_water) else {
        return Ok(());
    };
    let received = observed_stream(stream, traffic).and_then(|observed| observed.received);
    if received.is_none_or(|received| arrived.value > received) {
        violation!("{}: received up to {received:?}", streams.describe(arrived));
    }
    Ok(())
}

/// Returns the state of a stream as observed from its frames, if its log exists.
fn observed_stream<'e>(
    stream: &Stream,
    traffic: &'e HostTraffic,
) -> Option<&'e crate::network::ObservedStream> {
    let log = &stream.log.as_ref()?.buffers;
    let initial_term_id = log.geometry().initial_term_id();
    traffic.stream(
        log.session_id(),
        log.stream_id(),
        initial_term_id,
        log.term_length(),
    )
}

#[cfg(test)]
mod tests {
    use taran_protocol::counter::type_id;
    use taran_protocol::frame::{DataHeader, I32, IntoBytes, Nak, Setup, StatusMessage};
    use taran_protocol::log::{LogBuffers, LogKind};

    use super::super::streams::tests::{FakeDriver, TERM};
    use super::*;

    /// A driver that has sent and received one of each frame, with matching counters.
    struct Fixture {
        driver: FakeDriver,
        traffic: HostTraffic,
        check: CounterCheck,
    }

    const FRAME: i64 = 64;
    /// Values in the logs of the fake driver.
    const SESSION: i32 = 1;
    const STREAM: i32 = 2;
    const INITIAL_TERM: i32 = 3;

    fn setup() -> Vec<u8> {
        let setup = Setup {
            header: Setup::header(0),
            term_offset: I32::new(0),
            session_id: SESSION.into(),
            stream_id: STREAM.into(),
            initial_term_id: INITIAL_TERM.into(),
            active_term_id: INITIAL_TERM.into(),
            term_length: I32::new(TERM as i32),
            mtu: I32::new(1_408),
            ttl: I32::new(0),
        };
        setup.as_bytes().to_vec()
    }

    fn data(offset: i64) -> Vec<u8> {
        let mut frame = heartbeat(offset);
        frame[0] = FRAME as u8;
        frame.resize(FRAME as usize, 1);
        frame
    }

    fn heartbeat(offset: i64) -> Vec<u8> {
        let header = DataHeader::heartbeat(0xC0, SESSION, STREAM, INITIAL_TERM, offset as i32);
        header.as_bytes().to_vec()
    }

    fn status(window: i32) -> Vec<u8> {
        let status = StatusMessage {
            header: StatusMessage::header(0),
            session_id: SESSION.into(),
            stream_id: STREAM.into(),
            consumption_term_id: INITIAL_TERM.into(),
            consumption_term_offset: I32::new(0),
            receiver_window: window.into(),
            receiver_id: 1.into(),
        };
        status.as_bytes().to_vec()
    }

    fn nak() -> Vec<u8> {
        let nak = Nak {
            header: Nak::header(),
            session_id: SESSION.into(),
            stream_id: STREAM.into(),
            term_id: INITIAL_TERM.into(),
            term_offset: I32::new(0),
            length: I32::new(64),
        };
        nak.as_bytes().to_vec()
    }

    impl Fixture {
        fn new() -> Self {
            let driver = FakeDriver::new();
            let mut traffic = HostTraffic::default();
            // Traffic from before the driver's start does not count.
            traffic.on_send(&nak(), true);
            let check = CounterCheck::new(&driver.table.reader(), *traffic.counts(), false);
            let mut fixture = Self {
                driver,
                traffic,
                check,
            };
            for (datagram, is_accepted) in [
                (setup(), true),
                (data(0), true),
                (data(FRAME), false),
                (data(FRAME), true),
                (data(0), true),
                (heartbeat(2 * FRAME), true),
                (status(1_000), true),
                (nak(), true),
            ] {
                fixture.traffic.on_send(&datagram, is_accepted);
            }
            for datagram in [setup(), data(0), heartbeat(FRAME), status(500), nak()] {
                fixture.traffic.on_receive(&datagram, false);
            }
            let streams = (40 + FRAME + 32) as u64;
            for (counter, value) in [
                (SystemCounter::BytesSent, 2 * FRAME as u64 + 32),
                (SystemCounter::RetransmittedBytes, FRAME as u64),
                (SystemCounter::RetransmitsSent, 1),
                (SystemCounter::HeartbeatsSent, 1),
                (SystemCounter::StatusMessagesSent, 1),
                (SystemCounter::NaksSent, 1),
                (SystemCounter::ShortSends, 1),
                (SystemCounter::BytesReceived, streams),
                (SystemCounter::HeartbeatsReceived, 1),
                (SystemCounter::StatusMessagesReceived, 1),
                (SystemCounter::NaksReceived, 1),
            ] {
                fixture.count(counter, value);
            }
            fixture
        }

        fn count(&self, counter: SystemCounter, value: u64) {
            let counter = self.driver.table.counter(counter.id()).unwrap();
            counter.set(value as i64);
        }

        fn check(&mut self) -> Result<(), Violation> {
            self.driver.refresh();
            // Adds traffic so that the check compares again.
            self.traffic.on_send(&[9], true);
            self.check.check(&self.driver.streams, &self.traffic)
        }

        fn expect_violation(&mut self, text: &str) {
            let Violation(found) = self.check().unwrap_err();
            assert!(found.contains(text), "{found}");
        }

        /// Returns a publication's sender position, sender limit and log.
        fn publication(&mut self, label: &str) -> (Counter, Counter, LogBuffers) {
            let position = self.driver.labelled(type_id::SENDER_POSITION, 7, label);
            let limit = self.driver.counter(type_id::SENDER_LIMIT, 7);
            let log = self.driver.log(LogKind::Exclusive, 7);
            (position, limit, log)
        }
    }

    #[test]
    fn counter_that_differs_from_the_traffic_is_a_violation() {
        Fixture::new().check().unwrap();
        for (counter, value) in [
            (SystemCounter::BytesSent, 2 * FRAME as u64),
            (SystemCounter::BytesSent, 3 * FRAME as u64 + 32),
            (SystemCounter::RetransmittedBytes, 0),
            (SystemCounter::RetransmitsSent, 0),
            (SystemCounter::RetransmitsSent, 2),
            (SystemCounter::HeartbeatsSent, 0),
            (SystemCounter::HeartbeatsSent, 2),
            (SystemCounter::StatusMessagesSent, 0),
            (SystemCounter::NaksSent, 2),
            (SystemCounter::ErrorFramesSent, 1),
            (SystemCounter::ShortSends, 0),
            (SystemCounter::BytesReceived, 135),
            (SystemCounter::BytesReceived, 137),
            (SystemCounter::HeartbeatsReceived, 2),
            (SystemCounter::StatusMessagesReceived, 0),
            (SystemCounter::StatusMessagesReceived, 2),
            (SystemCounter::NaksReceived, 0),
            (SystemCounter::ErrorFramesReceived, 1),
            (SystemCounter::InvalidPackets, 3),
            (SystemCounter::FlowControlOverRuns, 3),
            (SystemCounter::StatusMessagesRejected, 2),
            (SystemCounter::RetransmitOverflow, 2),
            (SystemCounter::FreeFails, 1),
        ] {
            let mut fixture = Fixture::new();
            fixture.count(counter, value);
            fixture.expect_violation(counter.base_label());
        }
    }

    #[test]
    fn damaged_frames_may_count_as_anything_or_nothing() {
        let mut fixture = Fixture::new();
        fixture.traffic.on_receive(&[0; 28], true);
        fixture.check().unwrap();
        fixture.count(SystemCounter::NaksReceived, 2);
        fixture.check().unwrap();
        fixture.count(SystemCounter::NaksReceived, 3);
        fixture.expect_violation("NAKs");
    }

    #[test]
    fn receive_counters_of_a_lossy_driver_are_not_checked() {
        let mut fixture = Fixture::new();
        fixture.check.is_lossy = true;
        fixture.count(SystemCounter::NaksReceived, 0);
        fixture.check().unwrap();
    }

    #[test]
    fn sends_to_several_destinations_count_once() {
        let mut fixture = Fixture::new();
        let channel = "snd-channel: aeron:udp?control-mode=manual 0.0.0.0:1";
        fixture
            .driver
            .labelled(type_id::SEND_CHANNEL_STATUS, 9, channel);
        fixture.traffic.on_send(&data(0), true);
        fixture.traffic.on_send(&data(2 * FRAME), false);
        fixture.check().unwrap();
        let mut fixture = Fixture::new();
        let channel = "rcv-channel: aeron:udp?control-mode=manual 0.0.0.0:1";
        fixture
            .driver
            .labelled(type_id::RECEIVE_CHANNEL_STATUS, 9, channel);
        fixture.traffic.on_send(&nak(), true);
        fixture.check().unwrap();
    }

    #[test]
    fn sender_position_and_limit_must_match_the_traffic() {
        let mut fixture = Fixture::new();
        let (position, limit, _log) = fixture.publication("snd-pos: 7 1 2 aeron:udp?endpoint=a:1");
        position.set(2 * FRAME);
        limit.set(500);
        fixture.check().unwrap();
        limit.set(501);
        fixture.expect_violation("no window");
        limit.set(500);
        position.set(3 * FRAME);
        fixture.expect_violation("sent up to 128");
        position.set(FRAME);
        fixture.expect_violation("sent up to 128");
    }

    #[test]
    fn spies_and_destinations_relax_the_sender_position() {
        let mut fixture = Fixture::new();
        let (position, _limit, _log) = fixture.publication("snd-pos: 7 1 2 aeron:udp?endpoint=a:1");
        fixture.driver.subscriber(7, "sub-pos: 8 1 2 aeron-spy");
        position.set(3 * FRAME);
        fixture.check().unwrap();
        position.set(FRAME);
        fixture.expect_violation("sent up to 128");
        let mut fixture = Fixture::new();
        let (position, _limit, _log) =
            fixture.publication("snd-pos: 7 1 2 aeron:udp?control-mode=manual");
        position.set(FRAME);
        fixture.check().unwrap();
    }

    #[test]
    fn high_water_mark_beyond_received_frames_is_a_violation() {
        let mut fixture = Fixture::new();
        let arrived = fixture.driver.counter(type_id::RECEIVER_HIGH_WATER_MARK, 7);
        let _log = fixture.driver.log(LogKind::Image, 7);
        arrived.set(FRAME);
        fixture.check().unwrap();
        arrived.set(FRAME + 32);
        fixture.expect_violation("received up to");
    }
}
