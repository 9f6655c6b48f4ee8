use std::time::Duration;

use taran_core::counters::CounterTable;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Region;
use taran_protocol::frame::write_resolution;
use taran_protocol::uri::Address;

use super::*;
use crate::testing::{FakeSocket, MS, at, hex, peer};

const SECOND: i64 = 1_000 * MS;

struct Rig {
    socket: FakeSocket,
    gossip: Gossip,
    counters: Counters,
    counted: GossipCounters,
    errors: ErrorHandler,
    now_ns: i64,
}

/// Returns a driver named `driver-a` on 127.0.0.1:1, whose peer sends from 10.0.0.7:4040.
fn rig(bootstrap: &[&str]) -> Rig {
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
    Rig {
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

impl Rig {
    fn turn_after(&mut self, nanos: i64) {
        self.now_ns += nanos;
        self.gossip.do_work(at(self.now_ns));
    }

    fn hears(&mut self, entries: &[ResolutionEntry<'static>]) {
        let mut buffer = [0; 1024];
        let (frame, count) = write_resolution(&mut buffer, entries.iter().copied());
        assert_eq!(count, entries.len());
        self.socket.arrive(frame);
        self.turn_after(10 * MS);
    }

    fn looked_up(&mut self, index: usize, found: &Resolution) {
        let now = at(self.now_ns);
        self.gossip.looked_up(index, found, now, &mut self.counters);
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
fn a_driver_announces_itself_to_those_it_starts_from() {
    let mut rig = rig(&["b:8051", "10.0.0.9:8052"]);
    let wanted: Vec<_> = std::iter::from_fn(|| rig.gossip.next_lookup()).collect();
    assert_eq!(wanted.len(), 2);
    assert!(rig.gossip.next_lookup().is_none());
    rig.turn_after(0);
    assert!(rig.socket.sent().is_empty(), "nobody is known yet");

    let found = Ok(vec![ip("10.0.0.8")]);
    rig.looked_up(0, &found);
    rig.turn_after(10 * MS);
    assert_eq!(rig.sent_to(), ["10.0.0.8:8051".parse().unwrap()]);
    // The frame of docs/spec/wire.md §9, with this driver's address.
    let expected = hex("20 00 00 00 00 00 07 00  01 80 01 00 00 00 00 00
         7f 00 00 01 08 00 64 72  69 76 65 72 2d 61 00 00");
    assert_eq!(rig.socket.sent(), [expected]);
    rig.turn_after(SECOND - 10 * MS);
    assert!(rig.socket.sent().is_empty());
    rig.turn_after(10 * MS);
    assert_eq!(rig.socket.sent().len(), 1);
}

#[test]
fn who_starts_the_talk_is_answered() {
    let mut rig = rig(&[]);
    rig.turn_after(0);
    rig.hears(&[entry(true, "0.0.0.0:4040", 0, "b")]);
    assert_eq!(rig.counts(), [1, 1]);
    assert_eq!(rig.gossip.find("b"), Some(vec![peer().ip()]));
    assert_eq!(rig.gossip.find("driver-a"), Some(vec![ip("127.0.0.1")]));
    assert_eq!(rig.gossip.find("c"), None);
    rig.turn_after(SECOND);
    assert_eq!(rig.sent_to(), [peer()]);
}

#[test]
fn a_driver_that_is_told_of_is_spoken_to_and_forgotten_with_the_others() {
    let mut rig = rig(&[]);
    rig.hears(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    rig.hears(&[
        entry(false, "10.0.0.3:8050", 2_000, "c"),
        entry(false, "127.0.0.1:1", 0, "driver-a"),
        entry(false, "0.0.0.0:8050", 0, "nowhere"),
        entry(false, "10.0.0.4:8050", 60_000, "long-gone"),
    ]);
    assert_eq!(rig.counts(), [2, 2]);
    assert_eq!(rig.gossip.find("c"), Some(vec![ip("10.0.0.3")]));
    for _ in 0..7 {
        rig.turn_after(SECOND);
        rig.hears(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    }
    assert_eq!(rig.counts(), [2, 2]);
    rig.turn_after(2 * SECOND);
    assert_eq!(
        rig.counts(),
        [1, 1],
        "c has not been heard of for ten seconds"
    );
    rig.turn_after(10 * SECOND);
    assert_eq!(rig.counts(), [0, 0]);
}

#[test]
fn what_is_known_is_passed_on_in_frames_of_the_right_length() {
    let mut rig = rig(&[]);
    rig.hears(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    for (address, name) in [
        ("10.0.0.3:8050", "c with a name of forty-one characters...."),
        ("10.0.0.4:8050", "d with a name of forty-one characters...."),
        ("[fd00::5]:8050", "e"),
    ] {
        rig.hears(&[entry(false, address, 0, name)]);
    }
    rig.socket.sent();
    rig.turn_after(2 * SECOND);
    let frames = rig.socket.sent();
    let told: Vec<(usize, Vec<u8>)> = frames
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
    assert!(told.iter().all(|(length, _)| *length <= 128), "{told:?}");
    // Three of the four neighbors are reachable from an IPv4 socket, and each receives all four entries.
    for name in [b"b", b"c", b"d", b"e"] {
        let times = told.iter().filter(|(_, told)| told == name).count();
        assert_eq!(times, 3, "{told:?}");
    }
}

#[test]
fn one_datagram_full_of_strangers_is_spread_over_turns_and_soon_over() {
    let mut rig = rig(&[]);
    let names: Vec<String> = (0..2_600).map(|number| format!("{number:04}")).collect();
    let strangers = names.iter().enumerate().map(|(number, name)| {
        let port = 10_000 + number as u16;
        ResolutionEntry {
            is_self: true,
            address: SocketAddr::new(ip("10.1.0.1"), port),
            age_ms: 0,
            name: name.as_bytes(),
        }
    });
    let mut buffer = vec![0; 65_504];
    let (frame, count) = write_resolution(&mut buffer, strangers);
    assert_eq!(count, names.len());
    rig.socket.arrive(frame);
    rig.turn_after(10 * MS);
    assert_eq!(
        rig.counts(),
        [1 + 64, 1 + 1024],
        "it is one driver that speaks, and much hearsay"
    );

    // Number of times each name was sent, and the most datagrams sent in one poll.
    let (mut told, mut announced, mut most) = ([0; 2_600], 0, 0);
    for _ in 0..450 {
        rig.turn_after(10 * MS);
        let frames = rig.socket.sent();
        most = most.max(frames.len());
        for frame in &frames {
            let Ok(Frame::Resolution(entries)) = Frame::parse(frame) else {
                panic!("{frame:?}");
            };
            for entry in entries.flatten() {
                if entry.is_self {
                    announced += 1;
                } else {
                    let name = std::str::from_utf8(entry.name).unwrap();
                    told[name.parse::<usize>().unwrap()] += 1;
                }
            }
        }
    }
    assert!(most <= 2 * 64, "{most}");
    assert_eq!(announced, 5 * 65);
    assert!(told[..1025].iter().all(|times| *times == 65), "{told:?}");
    rig.turn_after(10 * SECOND);
    assert_eq!(rig.counts(), [0, 0]);
    rig.socket.sent();
    rig.turn_after(3 * SECOND);
    assert!(rig.socket.sent().is_empty());
}

#[test]
fn a_frame_that_is_wrong_in_part_is_dropped_whole() {
    let mut rig = rig(&[]);
    rig.turn_after(0);
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
        rig.socket.arrive(&frame);
    }
    rig.socket.arrive(&frame[..30]);
    rig.socket.arrive(&[]);
    rig.turn_after(10 * MS);
    rig.turn_after(10 * MS);
    assert_eq!(rig.counts(), [0, 0]);
    assert_eq!(rig.counted.invalid_packets.get(), 6);
}

#[test]
fn a_neighbour_that_cannot_be_sent_to_stops_nothing() {
    let mut rig = rig(&[]);
    rig.hears(&[entry(true, "10.0.0.7:4040", 0, "b")]);
    rig.socket.sent();
    rig.socket.set_broken(true);
    rig.turn_after(2 * SECOND);
    rig.socket.set_broken(false);
    rig.turn_after(SECOND);
    assert_eq!(rig.socket.sent().len(), 1);
    rig.socket.room(Some(4));
    rig.turn_after(SECOND);
    assert_eq!(rig.counted.short_sends.get(), 2);
}

#[test]
fn a_start_that_moves_is_found_again_and_shown() {
    let mut rig = rig(&["b:8051"]);
    let label = |rig: &Rig| {
        let id = rig.gossip.bootstrap[0].counter_id();
        rig.counters.label(id)
    };
    assert_eq!(label(&rig), "Bootstrap neighbor: name=b:8051 resolved=");
    rig.gossip.next_lookup().unwrap().1.unwrap();
    let found = Ok(vec![ip("::1"), ip("10.0.0.7")]);
    rig.looked_up(0, &found);
    assert_eq!(
        label(&rig),
        "Bootstrap neighbor: name=b:8051 resolved=10.0.0.7:8051"
    );
    rig.hears(&[entry(true, "10.0.0.7:8051", 0, "b")]);
    let shown = |rig: &Rig| rig.counters.value(rig.gossip.bootstrap[0].counter_id());
    assert_eq!(shown(&rig), 1);
    rig.turn_after(9 * SECOND);
    rig.hears(&[entry(true, "10.0.0.7:8051", 0, "b")]);
    rig.turn_after(SECOND);
    assert!(rig.gossip.next_lookup().is_none(), "it is there");
    rig.turn_after(10 * SECOND);
    assert_eq!(shown(&rig), 0);
    assert!(rig.gossip.next_lookup().is_some());
    let moved = Ok(vec![ip("10.0.0.8")]);
    rig.looked_up(0, &moved);
    assert_eq!(
        label(&rig),
        "Bootstrap neighbor: name=b:8051 resolved=10.0.0.8:8051"
    );
}

#[test]
fn a_start_whose_name_cannot_be_looked_up_is_spoken_to_where_it_was() {
    let mut rig = rig(&["b:8051"]);
    rig.gossip.next_lookup().unwrap().1.unwrap();
    rig.looked_up(0, &Ok(vec![ip("10.0.0.8")]));
    rig.turn_after(10 * SECOND);
    rig.gossip.next_lookup().unwrap().1.unwrap();
    rig.socket.sent();
    rig.looked_up(0, &Err("the name server is away".to_owned()));
    assert_eq!(rig.errors.count(), 1);
    rig.turn_after(SECOND);
    assert_eq!(rig.sent_to(), ["10.0.0.8:8051".parse().unwrap()]);
    let id = rig.gossip.bootstrap[0].counter_id();
    assert_eq!(
        rig.counters.label(id),
        "Bootstrap neighbor: name=b:8051 resolved=10.0.0.8:8051"
    );
}

#[test]
fn a_start_that_is_no_address_keeps_nobody_from_the_others() {
    let mut rig = rig(&["just:wrong", "b:8051"]);
    let (first, reason) = rig.gossip.next_lookup().unwrap();
    assert_eq!(first, 0);
    assert!(reason.unwrap_err().contains("a port"));
    let (second, host) = rig.gossip.next_lookup().unwrap();
    assert_eq!((second, host), (1, Ok(Host::Name("b".to_owned()))));
    rig.looked_up(0, &Err("it must be host:port".to_owned()));
    rig.looked_up(1, &Ok(vec![ip("10.0.0.8")]));
    assert_eq!(rig.errors.count(), 1);
    rig.turn_after(10 * MS);
    assert_eq!(rig.sent_to(), ["10.0.0.8:8051".parse().unwrap()]);
}
