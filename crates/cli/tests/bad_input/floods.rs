//! A flood at one port: streams on other ports, and the honest ones on the same, go on.

use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;

use taran::{Publication, Subscription};
use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, IntoBytes, Nak, Rttm, Setup, StatusMessage};

use crate::attach::{connect, own_socket_address, wait_until};
use crate::own_address::own_address;
use crate::process::{Directory, Driver};

/// Messages that have to get through while the flood lasts, of each stream.
const MESSAGES: u32 = 500;

/// The driver may find so many datagrams invalid, which are one in seven of the flood, from one message to the next of a
/// stream on other ports. However slow the machine is: what it does not handle does not count.
const PATIENCE_ELSEWHERE: i64 = 20_000;

/// The same for the stream at the flooded ports. The system throws away what a full socket does not hold, messages and the
/// heartbeats that tell of their loss ten times a second alike, so that some tries may be needed.
const PATIENCE_AT_FLOOD: i64 = 200_000;

/// A flood of fewer datagrams is none.
const FLOOD: u64 = 2_000;

/// What is sent to a port in one turn; never the same again, so that nothing is known from the turn before. Sessions and
/// receivers are new, terms are further and further away.
fn flood_of(session_id: i32, term_id: i32, turn: i32) -> [Vec<u8>; 7] {
    let stream_id = 10;
    let stranger = session_id.wrapping_add(turn.wrapping_mul(0x9E37_79B1_u32.cast_signed()));
    let far = term_id.wrapping_add(1_000).wrapping_add(turn);
    // Every other time what was sent is asked for, in vain or not.
    let wanted = if turn % 2 == 0 { term_id } else { far };
    let status = StatusMessage {
        header: StatusMessage::header(0),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        consumption_term_id: term_id.into(),
        consumption_term_offset: 0.into(),
        receiver_window: 0.into(),
        receiver_id: (4_711 + i64::from(turn)).into(),
    };
    let nak = Nak {
        header: Nak::header(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        term_id: wanted.into(),
        term_offset: 0.into(),
        length: 65_536.into(),
    };
    let rttm = Rttm {
        header: Rttm::header(Rttm::REPLY),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        echo_timestamp: i64::from(turn).into(),
        reception_delta: 0.into(),
        receiver_id: i64::from(turn).into(),
    };
    let setup = Setup {
        header: Setup::header(0),
        term_offset: 0.into(),
        session_id: stranger.into(),
        stream_id: (stream_id + 1).into(),
        initial_term_id: 1.into(),
        active_term_id: 1.into(),
        term_length: (1 << 30).into(),
        mtu: 1_408.into(),
        ttl: 0.into(),
    };
    let heartbeat = |session_id| DataHeader::heartbeat(0xC0, session_id, stream_id, far, 0);
    [
        status.as_bytes().to_vec(),
        nak.as_bytes().to_vec(),
        rttm.as_bytes().to_vec(),
        setup.as_bytes().to_vec(),
        heartbeat(session_id).as_bytes().to_vec(),
        heartbeat(stranger).as_bytes().to_vec(),
        vec![0xFF; 1_400],
    ]
}

/// Carries messages, each of which has to be the next one. The most datagrams that were `invalid` from one to the next.
fn carry(
    publication: &Publication,
    subscription: &mut Subscription,
    patience: i64,
    invalid: impl Fn() -> i64,
) -> i64 {
    let (mut written, mut read) = (0_u32, 0_u32);
    let (mut last, mut most) = (invalid(), 0);
    while read < MESSAGES {
        let before = (read, invalid());
        wait_until("a message, or more of the flood, is there", || {
            if written < MESSAGES && publication.offer(&written.to_le_bytes()).is_ok() {
                written += 1;
            }
            let taken = subscription.poll(
                |message, _| {
                    assert_eq!(message, read.to_le_bytes());
                    read += 1;
                },
                64,
            );
            taken.unwrap();
            (read, invalid()) != before
        });
        let since = invalid() - last;
        assert!(since < patience, "message {read} of {written}: {since}");
        most = most.max(since);
        if read > before.0 {
            last = invalid();
        }
    }
    most
}

#[test]
fn at_the_ports_of_one_stream_stop_neither_it_nor_others() {
    let directory = Directory::new("floods");
    // Open to everybody.
    let options = ["aeron.driver.connect=false", "aeron.threading.mode=SHARED"];
    let driver = Driver::start(directory.path(), &options);
    let client = connect(directory.path());
    let (flooded, quiet) = (own_socket_address(), own_socket_address());
    let stream = |endpoint| {
        let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
        let subscription = client.add_subscription(&channel, 10).unwrap();
        let publication = client.add_publication(&channel, 10).unwrap();
        wait_until("the stream flows", || {
            publication.is_connected() && subscription.is_connected()
        });
        (publication, subscription)
    };
    let (mut at_flood, mut elsewhere) = (stream(flooded), stream(quiet));
    let sender = at_flood.0.local_socket_addresses()[0];
    let ports = [
        SocketAddr::from(flooded),
        SocketAddr::new(own_address().into(), sender.port()),
    ];
    let (session_id, term_id) = (at_flood.0.session_id(), at_flood.0.initial_term_id());
    let (is_over, sent) = (
        Arc::new(AtomicBool::new(false)),
        Arc::new(AtomicU64::new(0)),
    );
    let stranger = {
        let (is_over, sent) = (Arc::clone(&is_over), Arc::clone(&sent));
        let socket = UdpSocket::bind((own_address(), 0)).unwrap();
        thread::spawn(move || {
            for turn in 1.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                for datagram in flood_of(session_id, term_id, turn) {
                    for port in ports {
                        // What the system does not take is not sent.
                        if socket.send_to(&datagram, port).is_ok() {
                            sent.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            }
        })
    };
    wait_until("the flood is there", || {
        sent.load(Ordering::Relaxed) > FLOOD
    });
    let invalid = || {
        let value = client.counters().value(SystemCounter::InvalidPackets.id());
        value.unwrap()
    };
    for ((publication, subscription), patience) in [
        (&mut elsewhere, PATIENCE_ELSEWHERE),
        (&mut at_flood, PATIENCE_AT_FLOOD),
    ] {
        let most = carry(publication, subscription, patience, invalid);
        println!("at most {most} invalid datagrams from one message to the next");
    }
    is_over.store(true, Ordering::Relaxed);
    stranger.join().unwrap();
    assert!(
        invalid() > 100,
        "{} invalid datagrams: they went elsewhere",
        invalid()
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}
