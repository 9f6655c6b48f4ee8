// SPDX-License-Identifier: Apache-2.0
use std::time::Duration;

use taran_core::counters::CounterTable;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Region;
use taran_protocol::frame::write_resolution;
use taran_protocol::uri::Address;

use super::*;
use crate::testing::{FakeSocket, MS, at, hex, peer};

const SECOND: i64 = 1_000 * MS;

struct Fixture {
    socket: FakeSocket,
    gossip: Gossip,
    counters: Counters,
    counted: GossipCounters,
    errors: ErrorHandler,
    now_ns: i64,
}

/// Returns a driver named `driver-a` on 127.0.0.1:1, whose peer sends from 10.0.0.7:4040.
fn fixture(bootstrap: &[&str]) -> Fixture {
    let region = || Region::anonymous(1 << 16).unwrap();
    let table = CounterTable::new(
        Region::anonymous(4 << 16).unwrap(),
        region(),
        Duration::from_secs(1),
    );
    let mut counters = Counters::new(table, at(0));
    let socket = FakeSocket::default();
    let counted = GossipCounters {
        invalid_packets: Counter::detached(),
        short_sends: Counter::detached(),
        events: EventLog::off(),
    };
    let errors = ErrorHandler::detached();
    let settings = GossipSettings {
        name: "driver-a".to_owned(),
        interface: Address::parse("127.0.0.1:1").unwrap(),
        bootstrap: bootstrap.iter().map(|text| (*text).to_owned()).collect(),
        neighbor_timeout_ns: 10 * SECOND,
        self_interval_ns: SECOND,
        neighbor_interval_ns: 2 * SECOND,
        bootstrap_interval_ns: 10 * SECOND,
        mtu: 128,
    };
    let gossip = Gossip::new(
        settings,
        Box::new(socket.clone()),
        counted.clone(),
        errors.clone(),
        &mut counters,
        at(0),
    )
    .unwrap();
    Fixture {
        socket,
        gossip,
        counters,
        counted,
        errors,
        now_ns: 0,
    }
}

fn entry(
    is_self: bool,
    address: &str,
    age_ms: i32,
    name: &'static str,
) -> ResolutionEntry<'static> {
    ResolutionEntry {
        is_self,
        address: address.parse().unwrap(),
        age_ms,
        name: name.as_bytes(),
    }
}

impl Fixture {
    fn advance(&mut self, nanos: i64) {
        self.now_ns += nanos;
        self.gossip.do_work(at(self.now_ns));
    }

    fn receive(&mut self, entries: &[ResolutionEntry<'static>]) {
        let mut buffer = [0; 1024];
        let (frame, count) = write_resolution(&mut buffer, entries.iter().copied());
        assert_eq!(count, entries.len());
        self.socket.arrive(frame);
        self.advance(10 * MS);
    }

    fn on_lookup_result(&mut self, index: usize, found: &Resolution) {
        let now = at(self.now_ns);
        self.gossip
            .on_lookup_result(index, found, now, &mut self.counters);
    }

    fn counts(&self) -> [i64; 2] {
        [
            self.gossip.neighbor_count.get(),
            self.gossip.cache_size.get(),
        ]
    }

    fn sent_to(&self) -> Vec<SocketAddr> {
        self.socket.destinations().into_iter().flatten().collect()
    }
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

#[test]
fn gossip_announces_to_resolved_bootstrap_neighbors() {
    let mut fixture = fixture(&["b:8051", "10.0.0.9:8052"]);
    let wanted: Vec<_> = std::iter::from_fn(|| fixture.gossip.next_lookup()).collect();
    assert_eq!(wanted.len(), 2);
    assert!(fixture.gossip.next_lookup().is_none());
    fixture.advance(0);
    assert!(fixture.socket.sent().is_empty(), "no neighbor is known yet");

    let found = Ok(vec![ip("10.0.0.8")]);
    fixture.on_lookup_result(0, &found);
    fixture.advance(10 * MS);
    assert_eq!(fixture.sent_to(), ["10.0.0.8:8051".parse().unwrap()]);
    // The frame of docs/spec/wire.md §9, with this driver's address.
    let expected = hex("20 00 00 00 00 00 07 00  01 80 01 00 00 00 00 00
         7f 00 00 01 08 00 64 72  69 76 65 72 2d 61 00 00");
    assert_eq!(fixture.socket.sent(), [expected]);
    fixture.advance(SECOND - 10 * MS);
    assert!(fixture.socket.sent().is_empty());
    fixture.advance(10 * MS);
    assert_eq!(fixture.socket.sent().len(), 1);
}

#[test]
fn gossip_answers_announcing_driver() {
    let mut fixture = fixture(&[]);
    fixture.advance(0);
    fixture.receive(&[entry(true, "0.0.0.0:4040", 0, "b")]);
    assert_eq!(fixture.counts(), [1, 1]);
    assert_eq!(fixture.gossip.find("b"), Some(vec![peer().ip()]));
    assert_eq!(fixture.gossip.find("driver-a"), Some(vec![ip("127.0.0.1")]));
    assert_eq!(fixture.gossip.find("c"), None);
    fixture.advance(SECOND);
    assert_eq!(fixture.sent_to(), [peer()]);
}

#[test]
fn gossip_indirect_neighbor_expires() {
    let mut fixture = fixture(&[]);
    fixture.receive(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    fixture.receive(&[
        entry(false, "10.0.0.3:8050", 2_000, "c"),
        entry(false, "127.0.0.1:1", 0, "driver-a"),
        entry(false, "0.0.0.0:8050", 0, "nowhere"),
        entry(false, "10.0.0.4:8050", 60_000, "long-gone"),
    ]);
    assert_eq!(fixture.counts(), [2, 2]);
    assert_eq!(fixture.gossip.find("c"), Some(vec![ip("10.0.0.3")]));
    for _ in 0..7 {
        fixture.advance(SECOND);
        fixture.receive(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    }
    assert_eq!(fixture.counts(), [2, 2]);
    fixture.advance(2 * SECOND);
    assert_eq!(
        fixture.counts(),
        [1, 1],
        "c has not been seen for ten seconds"
    );
    fixture.advance(10 * SECOND);
    assert_eq!(fixture.counts(), [0, 0]);
}

#[test]
fn gossip_sends_cache_in_frames_up_to_mtu() {
    let mut fixture = fixture(&[]);
    fixture.receive(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    for (address, name) in [
        ("10.0.0.3:8050", "c with a name of forty-one characters...."),
        ("10.0.0.4:8050", "d with a name of forty-one characters...."),
        ("[fd00::5]:8050", "e"),
    ] {
        fixture.receive(&[entry(false, address, 0, name)]);
    }
    fixture.socket.sent();
    fixture.advance(2 * SECOND);
    let frames = fixture.socket.sent();
    let sent: Vec<(usize, Vec<u8>)> = frames
        .iter()
        .filter_map(|frame| match Frame::parse(frame) {
            Ok(Frame::Resolution(entries)) => Some((frame.len(), entries)),
            _ => None,
        })
        .flat_map(|(length, entries)| {
            entries
                .flatten()
                .filter(|entry| !entry.is_self)
                .map(move |entry| (length, entry.name[..1].to_vec()))
        })
        .collect();
    assert!(sent.iter().all(|(length, _)| *length <= 128), "{sent:?}");
    // Three of the four neighbors are reachable from an IPv4 socket, and each receives all four entries.
    for name in [b"b", b"c", b"d", b"e"] {
        let times = sent.iter().filter(|(_, sent)| sent == name).count();
        assert_eq!(times, 3, "{sent:?}");
    }
}

#[test]
fn gossip_flood_is_bounded_and_expires() {
    let mut fixture = fixture(&[]);
    let names: Vec<String> = (0..2_600).map(|number| format!("{number:04}")).collect();
    let entries = names.iter().enumerate().map(|(number, name)| {
        let port = 10_000 + number as u16;
        ResolutionEntry {
            is_self: true,
            address: SocketAddr::new(ip("10.1.0.1"), port),
            age_ms: 0,
            name: name.as_bytes(),
        }
    });
    let mut buffer = vec![0; 65_504];
    let (frame, count) = write_resolution(&mut buffer, entries);
    assert_eq!(count, names.len());
    fixture.socket.arrive(frame);
    fixture.advance(10 * MS);
    assert_eq!(
        fixture.counts(),
        [1 + 64, 1 + 1024],
        "one driver announces itself, the others are indirect"
    );

    // Number of times each name was sent, and the most datagrams sent in one poll.
    let (mut sent, mut announced, mut max_per_poll) = ([0; 2_600], 0, 0);
    for _ in 0..450 {
        fixture.advance(10 * MS);
        let frames = fixture.socket.sent();
        max_per_poll = max_per_poll.max(frames.len());
        for frame in &frames {
            let Ok(Frame::Resolution(entries)) = Frame::parse(frame) else {
                panic!("{frame:?}");
            };
            for entry in entries.flatten() {
                if entry.is_self {
                    announced += 1;
                } else {
                    let name = std::str::from_utf8(entry.name).unwrap();
                    sent[name.parse::<usize>().unwrap()] += 1;
                }
            }
        }
    }
    assert!(max_per_poll <= 2 * 64, "{max_per_poll}");
    assert_eq!(announced, 5 * 65);
    assert!(sent[..1025].iter().all(|times| *times == 65), "{sent:?}");
    fixture.advance(10 * SECOND);
    assert_eq!(fixture.counts(), [0, 0]);
    fixture.socket.sent();
    fixture.advance(3 * SECOND);
    assert!(fixture.socket.sent().is_empty());
}

#[test]
fn gossip_drops_partly_invalid_frame() {
    let mut fixture = fixture(&[]);
    fixture.advance(0);
    let mut buffer = [0; 256];
    let entries = [
        entry(true, "10.0.0.7:4040", 0, "b"),
        entry(false, "10.0.0.3:8050", 0, "c"),
    ];
    let (frame, _) = write_resolution(&mut buffer, entries);
    let second = 8 + 16;
    for (at, value) in [(second, 7), (second + 12, 200), (4, 9), (6, 1)] {
        let mut frame = frame.to_vec();
        frame[at] = value;
        fixture.socket.arrive(&frame);
    }
    fixture.socket.arrive(&frame[..30]);
    fixture.socket.arrive(&[]);
    fixture.advance(10 * MS);
    fixture.advance(10 * MS);
    assert_eq!(fixture.counts(), [0, 0]);
    assert_eq!(fixture.counted.invalid_packets.get(), 6);
}

#[test]
fn gossip_continues_after_send_failure() {
    let mut fixture = fixture(&[]);
    fixture.receive(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    fixture.socket.sent();
    fixture.socket.set_broken(true);
    fixture.advance(2 * SECOND);
    fixture.socket.set_broken(false);
    fixture.advance(SECOND);
    assert_eq!(fixture.socket.sent().len(), 1);
    fixture.socket.room(Some(4));
    fixture.advance(SECOND);
    assert_eq!(fixture.counted.short_sends.get(), 2);
}

#[test]
fn bootstrap_address_change_is_applied_and_labelled() {
    let mut fixture = fixture(&["b:8051"]);
    let label = |fixture: &Fixture| {
        let id = fixture.gossip.bootstrap[0].counter_id();
        fixture.counters.label(id)
    };
    assert_eq!(label(&fixture), "Bootstrap neighbor: name=b:8051 resolved=");
    fixture.gossip.next_lookup().unwrap().1.unwrap();
    let found = Ok(vec![ip("::1"), ip("10.0.0.7")]);
    fixture.on_lookup_result(0, &found);
    assert_eq!(
        label(&fixture),
        "Bootstrap neighbor: name=b:8051 resolved=10.0.0.7:8051"
    );
    fixture.receive(&[entry(true, "10.0.0.7:8051", 0, "b")]);
    let counter_value = |fixture: &Fixture| {
        fixture
            .counters
            .value(fixture.gossip.bootstrap[0].counter_id())
    };
    assert_eq!(counter_value(&fixture), 1);
    fixture.advance(9 * SECOND);
    fixture.receive(&[entry(true, "10.0.0.7:8051", 0, "b")]);
    fixture.advance(SECOND);
    assert!(fixture.gossip.next_lookup().is_none(), "it is a neighbor");
    fixture.advance(10 * SECOND);
    assert_eq!(counter_value(&fixture), 0);
    assert!(fixture.gossip.next_lookup().is_some());
    let moved = Ok(vec![ip("10.0.0.8")]);
    fixture.on_lookup_result(0, &moved);
    assert_eq!(
        label(&fixture),
        "Bootstrap neighbor: name=b:8051 resolved=10.0.0.8:8051"
    );
}

#[test]
fn bootstrap_failed_lookup_keeps_address() {
    let mut fixture = fixture(&["b:8051"]);
    fixture.gossip.next_lookup().unwrap().1.unwrap();
    fixture.on_lookup_result(0, &Ok(vec![ip("10.0.0.8")]));
    fixture.advance(10 * SECOND);
    fixture.gossip.next_lookup().unwrap().1.unwrap();
    fixture.socket.sent();
    fixture.on_lookup_result(0, &Err("the name server is away".to_owned()));
    assert_eq!(fixture.errors.count(), 1);
    fixture.advance(SECOND);
    assert_eq!(fixture.sent_to(), ["10.0.0.8:8051".parse().unwrap()]);
    let id = fixture.gossip.bootstrap[0].counter_id();
    assert_eq!(
        fixture.counters.label(id),
        "Bootstrap neighbor: name=b:8051 resolved=10.0.0.8:8051"
    );
}

#[test]
fn bootstrap_invalid_text_does_not_block_others() {
    let mut fixture = fixture(&["just:wrong", "b:8051"]);
    let (first, reason) = fixture.gossip.next_lookup().unwrap();
    assert_eq!(first, 0);
    assert!(reason.unwrap_err().contains("a port"));
    let (second, host) = fixture.gossip.next_lookup().unwrap();
    assert_eq!((second, host), (1, Ok(Host::Name("b".to_owned()))));
    fixture.on_lookup_result(0, &Err("it must be host:port".to_owned()));
    fixture.on_lookup_result(1, &Ok(vec![ip("10.0.0.8")]));
    assert_eq!(fixture.errors.count(), 1);
    fixture.advance(10 * MS);
    assert_eq!(fixture.sent_to(), ["10.0.0.8:8051".parse().unwrap()]);
}
