//! A driver counts what happened.
//!
//! Input: the streams of a driver after a look, and what has passed the edge of its host, which the network has counted
//! by itself; between turns, so that nothing is counted in one of them only. What is said here of bytes and frames is
//! what the network took from the sockets of the host, was asked to take and did not (rejected), and handed to them.
//!
//! System counters, since the driver's start:
//!
//! * what came in is counted as what it is; of what was damaged on the way anything may be counted, or nothing;
//! * what went out is counted once, but for what is sent to several (destinations, sources) or to whoever asks (answers);
//! * of the bytes sent, what goes out again is counted as that, and what was rejected as short sends.
//!
//! Positions of streams:
//!
//! * a sender's is the end of what it has sent, and its limit at most the end of the furthest window that came in;
//! * where a receiver is, frames that came in have led it.

use taran_core::counters::{Counter, CountersReader};
use taran_protocol::counter::SystemCounter;

use super::streams::{Stream, Streams, Ways};
use super::{Violation, violation};
use crate::network::{FrameKind, HostTraffic, TrafficCounts};

/// What one driver has counted is held against what its host has counts since the driver's start.
#[derive(Debug)]
pub struct CountsCheck {
    /// By id.
    system: Vec<Option<Counter>>,
    start: TrafficCounts,
    looked: TrafficCounts,
    /// The driver loses on purpose what comes in, before it counts it.
    is_lossy: bool,
}

impl CountsCheck {
    /// The counters of a driver that starts now.
    #[must_use]
    pub fn new(reader: &CountersReader, start: TrafficCounts, is_lossy: bool) -> Self {
        let all = SystemCounter::ALL.iter();
        Self {
            system: all.map(|counter| reader.counter(counter.id())).collect(),
            start,
            looked: start,
            is_lossy,
        }
    }

    /// Compares, if anything has passed since the last look.
    ///
    /// # Errors
    /// Something else was counted than happened.
    pub fn look(&mut self, streams: &Streams, edge: &HostTraffic) -> Result<(), Violation> {
        let now = *edge.counts();
        if now == self.looked {
            return Ok(());
        }
        self.looked = now;
        let seen = now.since(&self.start);
        self.sent(&seen, streams.ways())?;
        self.rejected(&seen, streams.ways())?;
        if !self.is_lossy {
            self.received(&seen)?;
        }
        for stream in streams.streams() {
            sender(streams, stream, edge)?;
            receiver(streams, stream, edge)?;
        }
        Ok(())
    }

    fn sent(&self, seen: &TrafficCounts, ways: Ways) -> Result<(), Violation> {
        let tried = |kind| seen.sent.of(kind).datagrams + seen.rejected.of(kind).datagrams;
        if !ways.sources {
            let status = seen.sent.of(FrameKind::Status).datagrams;
            self.hold(
                SystemCounter::StatusMessagesSent,
                status,
                tried(FrameKind::Status),
            )?;
            self.exactly(SystemCounter::NaksSent, tried(FrameKind::Nak))?;
            self.exactly(SystemCounter::ErrorFramesSent, tried(FrameKind::Error))?;
        }
        if !ways.destinations {
            let heartbeats = seen.sent.of(FrameKind::Heartbeat).bytes;
            // What spies have moved a stream over may go out for the first time as something that was lost.
            let first = if ways.spies { 0 } else { seen.first_sent.bytes };
            let (least, most) = (first + heartbeats, seen.first_sent.bytes + heartbeats);
            self.hold(SystemCounter::BytesSent, least, most)?;
            // Nor does what a wrong NAK makes a sender send look like data.
            let is_open = ways.spies || seen.damaged_naks > 0;
            let most = |again| if is_open { u64::MAX } else { again };
            let (bytes, datagrams) = (seen.retransmitted.bytes, seen.retransmitted.datagrams);
            self.hold(SystemCounter::RetransmittedBytes, bytes, most(bytes))?;
            let least = datagrams.min(1);
            self.hold(SystemCounter::RetransmitsSent, least, most(datagrams))?;
            let most = if ways.answers {
                u64::MAX
            } else {
                tried(FrameKind::Heartbeat)
            };
            self.hold(
                SystemCounter::HeartbeatsSent,
                tried(FrameKind::Heartbeat),
                most,
            )?;
        }
        self.exactly(SystemCounter::FreeFails, 0)
    }

    fn rejected(&self, seen: &TrafficCounts, ways: Ways) -> Result<(), Violation> {
        let rejected = FrameKind::ALL.map(|kind| seen.rejected.of(kind).datagrams);
        let rejected = rejected.iter().sum();
        // What is sent to several destinations and finds no room for some of them is short once.
        let least = if ways.destinations { 0 } else { rejected };
        // Nothing is asked of the network for those that nobody knows yet.
        let most = if ways.answers { u64::MAX } else { rejected };
        self.hold(SystemCounter::ShortSends, least, most)
    }

    fn received(&self, seen: &TrafficCounts) -> Result<(), Violation> {
        let damaged = seen.damaged;
        let of = |kind| seen.received.of(kind);
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
            let came = datagrams(kinds);
            self.hold(counter, came, came + damaged.datagrams)?;
        }
        let heartbeats = datagrams(&[FrameKind::Heartbeat]) + damaged.datagrams;
        self.hold(SystemCounter::HeartbeatsReceived, 0, heartbeats)?;
        let streams = [
            FrameKind::Data,
            FrameKind::Heartbeat,
            FrameKind::Setup,
            FrameKind::RoundTripReply,
        ];
        let bytes = streams.iter().map(|kind| of(*kind).bytes).sum::<u64>();
        self.hold(SystemCounter::BytesReceived, bytes, bytes + damaged.bytes)?;
        // A stream that began anew under the session of one that is not forgotten yet fits as little as what was damaged.
        let unfit = datagrams(&[FrameKind::Data, FrameKind::Heartbeat]) + damaged.datagrams;
        for counter in [
            SystemCounter::InvalidPackets,
            SystemCounter::FlowControlOverRuns,
            SystemCounter::FlowControlUnderRuns,
        ] {
            self.hold(counter, 0, unfit)?;
        }
        let of = |counter| self.value(counter);
        let status = of(SystemCounter::StatusMessagesReceived);
        self.hold(SystemCounter::StatusMessagesRejected, 0, status)?;
        let naks = of(SystemCounter::NaksReceived);
        self.hold(SystemCounter::RetransmitOverflow, 0, naks)
    }

    fn value(&self, counter: SystemCounter) -> u64 {
        let handle = self.system[counter.id() as usize].as_ref();
        let value = handle.map(Counter::get).unwrap_or_default();
        u64::try_from(value).unwrap_or(u64::MAX)
    }

    fn exactly(&self, counter: SystemCounter, happened: u64) -> Result<(), Violation> {
        self.hold(counter, happened, happened)
    }

    fn hold(&self, counter: SystemCounter, least: u64, most: u64) -> Result<(), Violation> {
        let value = self.value(counter);
        if (least..=most).contains(&value) {
            return Ok(());
        }
        let name = counter.base_label();
        if least == most {
            violation!("{name}: {value} counted, {most} happened");
        }
        violation!("{name}: {value} counted, between {least} and {most} happened");
    }
}

fn sender(streams: &Streams, stream: &Stream, edge: &HostTraffic) -> Result<(), Violation> {
    let (Some(sender), Some(limit)) = (streams.at(stream.sender), streams.at(stream.sender_limit))
    else {
        return Ok(());
    };
    let Some(told) = told(stream, edge) else {
        return Ok(());
    };
    // Spies may move a stream that nobody receives; destinations that there are none of may take anything.
    if let Some(sent) = told.sent
        && !stream.has_destinations
        && (sender.value < sent || sender.value > sent && !stream.was_consumed)
    {
        violation!("{}: sent up to {sent}", streams.describe(sender));
    }
    // It begins where the stream does, and follows spies.
    let allowed = told.window_end.unwrap_or_default().max(sender.value);
    if limit.value > allowed {
        violation!(
            "{}: no window that came in reaches beyond {allowed}",
            streams.describe(limit)
        );
    }
    Ok(())
}

fn receiver(streams: &Streams, stream: &Stream, edge: &HostTraffic) -> Result<(), Violation> {
    let Some(arrived) = streams.at(stream.high_water) else {
        return Ok(());
    };
    let came = told(stream, edge).and_then(|told| told.received);
    if came.is_none_or(|came| arrived.value > came) {
        violation!("{}: came up to {came:?}", streams.describe(arrived));
    }
    Ok(())
}

/// What the frames of a stream have told, once it has a log.
fn told<'e>(stream: &Stream, edge: &'e HostTraffic) -> Option<&'e crate::network::ObservedStream> {
    let log = &stream.log.as_ref()?.buffers;
    let initial_term_id = log.geometry().initial_term_id();
    edge.stream(
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

    use super::super::streams::tests::{Scene, TERM};
    use super::*;

    /// A driver that has sent and received some of everything, and counted that.
    struct Told {
        scene: Scene,
        edge: HostTraffic,
        check: CountsCheck,
    }

    const FRAME: i64 = 64;
    /// What the logs of the scene say of themselves.
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

    impl Told {
        fn new() -> Self {
            let scene = Scene::new();
            let mut edge = HostTraffic::default();
            // What was before the driver's start does not count.
            edge.on_send(&nak(), true);
            let check = CountsCheck::new(&scene.table.reader(), *edge.counts(), false);
            let mut told = Self { scene, edge, check };
            for (datagram, is_taken) in [
                (setup(), true),
                (data(0), true),
                (data(FRAME), false),
                (data(FRAME), true),
                (data(0), true),
                (heartbeat(2 * FRAME), true),
                (status(1_000), true),
                (nak(), true),
            ] {
                told.edge.on_send(&datagram, is_taken);
            }
            for datagram in [setup(), data(0), heartbeat(FRAME), status(500), nak()] {
                told.edge.on_receive(&datagram, false);
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
                told.count(counter, value);
            }
            told
        }

        fn count(&self, counter: SystemCounter, value: u64) {
            let counter = self.scene.table.counter(counter.id()).unwrap();
            counter.set(value as i64);
        }

        fn look(&mut self) -> Result<(), Violation> {
            self.scene.look();
            // Something passes all the time.
            self.edge.on_send(&[9], true);
            self.check.look(&self.scene.streams, &self.edge)
        }

        fn fails(&mut self, text: &str) {
            let Violation(found) = self.look().unwrap_err();
            assert!(found.contains(text), "{found}");
        }

        /// A publication's sender position and limit, and its log.
        fn publication(&mut self, label: &str) -> (Counter, Counter, LogBuffers) {
            let position = self.scene.labelled(type_id::SENDER_POSITION, 7, label);
            let limit = self.scene.counter(type_id::SENDER_LIMIT, 7);
            let log = self.scene.log(LogKind::Exclusive, 7);
            (position, limit, log)
        }
    }

    #[test]
    fn what_was_counted_otherwise_than_it_happened_is_found() {
        Told::new().look().unwrap();
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
            let mut told = Told::new();
            told.count(counter, value);
            told.fails(counter.base_label());
        }
    }

    #[test]
    fn what_was_damaged_may_be_counted_as_anything_or_nothing() {
        let mut told = Told::new();
        told.edge.on_receive(&[0; 28], true);
        told.look().unwrap();
        told.count(SystemCounter::NaksReceived, 2);
        told.look().unwrap();
        told.count(SystemCounter::NaksReceived, 3);
        told.fails("NAKs");
    }

    #[test]
    fn a_driver_that_loses_what_comes_in_counts_what_is_left() {
        let mut told = Told::new();
        told.check.is_lossy = true;
        told.count(SystemCounter::NaksReceived, 0);
        told.look().unwrap();
    }

    #[test]
    fn what_goes_to_several_is_counted_once() {
        let mut told = Told::new();
        let channel = "snd-channel: aeron:udp?control-mode=manual 0.0.0.0:1";
        told.scene
            .labelled(type_id::SEND_CHANNEL_STATUS, 9, channel);
        told.edge.on_send(&data(0), true);
        told.edge.on_send(&data(2 * FRAME), false);
        told.look().unwrap();
        let mut told = Told::new();
        let channel = "rcv-channel: aeron:udp?control-mode=manual 0.0.0.0:1";
        told.scene
            .labelled(type_id::RECEIVE_CHANNEL_STATUS, 9, channel);
        told.edge.on_send(&nak(), true);
        told.look().unwrap();
    }

    #[test]
    fn a_senders_position_is_the_end_of_what_was_sent_and_its_limit_that_of_a_window() {
        let mut told = Told::new();
        let (position, limit, _log) = told.publication("snd-pos: 7 1 2 aeron:udp?endpoint=a:1");
        position.set(2 * FRAME);
        limit.set(500);
        told.look().unwrap();
        limit.set(501);
        told.fails("no window");
        limit.set(500);
        position.set(3 * FRAME);
        told.fails("sent up to 128");
        position.set(FRAME);
        told.fails("sent up to 128");
    }

    #[test]
    fn spies_and_destinations_may_take_what_is_not_sent() {
        let mut told = Told::new();
        let (position, _limit, _log) = told.publication("snd-pos: 7 1 2 aeron:udp?endpoint=a:1");
        told.scene.subscriber(7, "sub-pos: 8 1 2 aeron-spy");
        position.set(3 * FRAME);
        told.look().unwrap();
        position.set(FRAME);
        told.fails("sent up to 128");
        let mut told = Told::new();
        let (position, _limit, _log) =
            told.publication("snd-pos: 7 1 2 aeron:udp?control-mode=manual");
        position.set(FRAME);
        told.look().unwrap();
    }

    #[test]
    fn a_receiver_is_where_frames_have_led_it() {
        let mut told = Told::new();
        let arrived = told.scene.counter(type_id::RECEIVER_HIGH_WATER_MARK, 7);
        let _log = told.scene.log(LogKind::Image, 7);
        arrived.set(FRAME);
        told.look().unwrap();
        arrived.set(FRAME + 32);
        told.fails("came up to");
    }
}
