// SPDX-License-Identifier: Apache-2.0
//! Datagram floods at one port do not stop streams on other ports, nor valid ones on the same port.

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

/// Messages that each stream has to deliver during the flood.
const MESSAGES: u32 = 500;

/// Maximum number of datagrams rejected as invalid (one in seven of the flood) between two messages of a stream on
/// other ports. Counting processed datagrams makes the limit independent of the machine's speed.
const LIMIT_ELSEWHERE: i64 = 20_000;

/// The same for the stream at the flooded ports. When the socket buffer is full, the kernel drops messages and the
/// heartbeats (ten per second) that reveal their loss, so several retransmissions may be needed.
const LIMIT_AT_FLOOD: i64 = 200_000;

/// Datagrams sent before the test counts as flooded.
const MIN_FLOOD: u64 = 2_000;

/// Returns the datagrams of one round of the flood. They differ between rounds: session and receiver ids are new, term
/// ids increase.
fn flood_of(session_id: i32, term_id: i32, round: i32) -> [Vec<u8>; 7] {
    let stream_id = 10;
    let other_session = session_id.wrapping_add(round.wrapping_mul(0x9E37_79B1_u32.cast_signed()));
    let far = term_id.wrapping_add(1_000).wrapping_add(round);
    // Every other NAK requests data that was sent.
    let nak_term = if round % 2 == 0 { term_id } else { far };
    let status = StatusMessage {
        header: StatusMessage::header(0),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        consumption_term_id: term_id.into(),
        consumption_term_offset: 0.into(),
        receiver_window: 0.into(),
        receiver_id: (4_711 + i64::from(round)).into(),
    };
    let nak = Nak {
        header: Nak::header(),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        term_id: nak_term.into(),
        term_offset: 0.into(),
        length: 65_536.into(),
    };
    let rttm = Rttm {
        header: Rttm::header(Rttm::REPLY),
        session_id: session_id.into(),
        stream_id: stream_id.into(),
        echo_timestamp: i64::from(round).into(),
        reception_delta: 0.into(),
        receiver_id: i64::from(round).into(),
    };
    let setup = Setup {
        header: Setup::header(0),
        term_offset: 0.into(),
        session_id: other_session.into(),
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
        heartbeat(other_session).as_bytes().to_vec(),
        vec![0xFF; 1_400],
    ]
}

/// Sends messages and checks that they arrive in order. Returns the maximum increase of `invalid` between two messages.
fn exchange(
    publication: &Publication,
    subscription: &mut Subscription,
    limit: i64,
    invalid: impl Fn() -> i64,
) -> i64 {
    let (mut written, mut read) = (0_u32, 0_u32);
    let (mut last, mut max) = (invalid(), 0);
    while read < MESSAGES {
        let before = (read, invalid());
        wait_until("a message, or more of the flood", || {
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
        assert!(since < limit, "message {read} of {written}: {since}");
        max = max.max(since);
        if read > before.0 {
            last = invalid();
        }
    }
    max
}

#[test]
fn flooded_ports_do_not_stop_any_stream() {
    let directory = Directory::new("floods");
    // Unconnected sockets receive from everywhere.
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
    let attacker = {
        let (is_over, sent) = (Arc::clone(&is_over), Arc::clone(&sent));
        let socket = UdpSocket::bind((own_address(), 0)).unwrap();
        thread::spawn(move || {
            for round in 1.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                for datagram in flood_of(session_id, term_id, round) {
                    for port in ports {
                        // Datagrams that the kernel rejects are not counted.
                        if socket.send_to(&datagram, port).is_ok() {
                            sent.fetch_add(1, Ordering::Relaxed);
                        }
                    }
                }
            }
        })
    };
    wait_until("the flood", || sent.load(Ordering::Relaxed) > MIN_FLOOD);
    let invalid = || {
        let value = client.counters().value(SystemCounter::InvalidPackets.id());
        value.unwrap()
    };
    for ((publication, subscription), limit) in [
        (&mut elsewhere, LIMIT_ELSEWHERE),
        (&mut at_flood, LIMIT_AT_FLOOD),
    ] {
        let max = exchange(publication, subscription, limit, invalid);
        println!("at most {max} invalid datagrams from one message to the next");
    }
    is_over.store(true, Ordering::Relaxed);
    attacker.join().unwrap();
    assert!(
        invalid() > 100,
        "{} invalid datagrams: the flood did not reach the driver",
        invalid()
    );
    driver.stop("TERM").assert_code(15).assert_silent();
}
