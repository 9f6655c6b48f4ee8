// SPDX-License-Identifier: Apache-2.0
//! Truncated and malformed datagrams increment the invalid-packets counter (14) and have no other effect; the streams
//! that they name continue.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::net::{SocketAddr, UdpSocket};

use taran::{Client, Publication};
use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{Frame, IntoBytes, StatusMessage};

use crate::attach::{connect, own_socket_address, wait_for, wait_until};
use crate::garbage::Stream;
use crate::own_address::own_address;
use crate::process::{Directory, Driver, run, taran};

/// Counters that change by themselves, or with every received byte.
const VOLATILE: [SystemCounter; 15] = [
    SystemCounter::BytesSent,
    SystemCounter::BytesReceived,
    SystemCounter::HeartbeatsSent,
    SystemCounter::HeartbeatsReceived,
    SystemCounter::StatusMessagesSent,
    SystemCounter::InvalidPackets,
    SystemCounter::ControllableIdleStrategy,
    SystemCounter::ConductorMaxCycleTime,
    SystemCounter::ConductorCycleTimeThresholdExceeded,
    SystemCounter::SenderMaxCycleTime,
    SystemCounter::SenderCycleTimeThresholdExceeded,
    SystemCounter::ReceiverMaxCycleTime,
    SystemCounter::ReceiverCycleTimeThresholdExceeded,
    SystemCounter::NameResolverMaxTime,
    SystemCounter::NameResolverTimeThresholdExceeded,
];

/// Number of datagrams in flight; small enough for any socket buffer.
const BATCH: usize = 16;

/// State that must not change.
#[derive(Debug, PartialEq, Eq)]
struct Snapshot {
    system: BTreeMap<&'static str, i64>,
    others: Vec<(i32, String)>,
}

impl Snapshot {
    fn of(client: &Client, besides: &[SystemCounter]) -> Snapshot {
        let counters = client.counters();
        let system = SystemCounter::ALL
            .into_iter()
            .filter(|counter| !VOLATILE.contains(counter) && !besides.contains(counter))
            .map(|counter| (counter.base_label(), counters.value(counter.id()).unwrap()))
            .collect();
        let mut others = Vec::new();
        counters.for_each(|meta| {
            let label = meta.label.to_string();
            // The label of a client's heartbeat counter gains the client's name later.
            let (label, _) = label.split_once(" name=").unwrap_or((&label, ""));
            others.push((meta.type_id, label.to_owned()));
        });
        Snapshot { system, others }
    }
}

fn invalid(client: &Client) -> i64 {
    client
        .counters()
        .value(SystemCounter::InvalidPackets.id())
        .unwrap()
}

/// Sends the datagrams, and waits until each has incremented the counter by one.
fn send_invalid(client: &Client, garbage: &[Vec<u8>], send: impl Fn(&[u8])) {
    let mut expected = invalid(client);
    for batch in garbage.chunks(BATCH) {
        batch.iter().for_each(|datagram| send(datagram));
        expected += batch.len() as i64;
        wait_until(&format!("{batch:02x?} are counted"), || {
            invalid(client) >= expected
        });
        assert_eq!(invalid(client), expected, "{batch:02x?}");
    }
}

/// Returns random datagrams whose version is not that of a valid frame.
fn noise() -> Vec<Vec<u8>> {
    let mut random = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = move || {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        random as usize
    };
    (0..1_000)
        .map(|_| {
            let mut datagram: Vec<u8> = (0..next() % 1_500).map(|_| next() as u8).collect();
            if let Some(version) = datagram.get_mut(4) {
                *version |= 1;
            }
            datagram
        })
        .collect()
}

fn stream_of(publication: &Publication) -> Stream {
    Stream {
        session_id: publication.session_id(),
        stream_id: publication.stream_id(),
        initial_term_id: publication.initial_term_id(),
        term_length: publication.term_length() as i32,
    }
}

fn assert_no_errors(directory: &Directory) {
    let errors = run(taran(&["errors"]).env("AERON_DIR", directory.path()));
    errors.assert_code(0).assert_silent();
    assert_eq!(errors.stdout, "\n0 distinct errors observed.\n");
}

#[test]
fn malformed_datagrams_at_a_subscription_are_only_counted() {
    let directory = Directory::new("garbage-received");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let endpoint = own_socket_address();
    let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
    let mut subscription = client.add_subscription(&channel, 10).unwrap();
    let publication = client.add_publication(&channel, 10).unwrap();
    wait_until("offered", || publication.offer(b"before").is_ok());
    wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));

    let attacker = UdpSocket::bind((own_address(), 0)).unwrap();
    let stream = stream_of(&publication);
    let garbage = [
        stream.invalid_anywhere(),
        stream.data_garbage(),
        stream.setups_before_the_start(),
        noise(),
    ]
    .concat();
    let besides = [SystemCounter::StatusMessagesReceived];
    let before = Snapshot::of(&client, &besides);
    send_invalid(&client, &garbage, |datagram| {
        attacker.send_to(datagram, endpoint).unwrap();
    });
    assert_eq!(Snapshot::of(&client, &besides), before);
    assert_eq!(subscription.image_count(), 1);
    assert_no_errors(&directory);

    // The stream continues, and its data is intact.
    for number in 0..100_u32 {
        let message = number.to_le_bytes();
        wait_until("offered", || publication.offer(&message).is_ok());
        wait_until("received", || {
            subscription.poll(|received, _| assert_eq!(received, message), 1) == Ok(1)
        });
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn malformed_datagrams_at_a_publication_are_only_counted() {
    // A connected socket receives only from its peer, an unconnected one from everywhere.
    for connect_sockets in ["true", "false"] {
        let directory = Directory::new("garbage-sent");
        let option = format!("aeron.driver.connect={connect_sockets}");
        let driver = Driver::start(directory.path(), &[&option]);
        let client = connect(directory.path());
        // The test is the receiver.
        let receiver = UdpSocket::bind(own_socket_address()).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let endpoint = receiver.local_addr().unwrap();
        let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
        let publication = client.add_publication(&channel, 10).unwrap();
        let stream = stream_of(&publication);
        let sender = wait_for("a SETUP", || {
            received(&receiver, |frame| matches!(frame, Frame::Setup(_)))
        });
        let sent = Cell::new(0);
        let send_status = |message: StatusMessage| {
            receiver.send_to(message.as_bytes(), sender).unwrap();
            sent.set(sent.get() + 1);
        };
        let mut position = 0;
        let mut offer = |message: &[u8]| {
            wait_until("offered", || {
                send_status(stream.status(position, 4_096, 0));
                publication.offer(message).is_ok()
            });
            wait_for("sent", || {
                received(&receiver, |frame| match frame {
                    Frame::Data(data) => data.body().get(..message.len()) == Some(message),
                    _ => false,
                })
            });
            position += 64;
        };
        offer(b"before");

        let received_count = || {
            let counter = SystemCounter::StatusMessagesReceived.id();
            client.counters().value(counter)
        };
        wait_until("all status messages are processed", || {
            received_count() == Some(sent.get())
        });

        let garbage = [
            stream.invalid_anywhere(),
            stream.feedback_garbage(),
            noise(),
        ]
        .concat();
        // A NAK is counted before it is validated, as in the official drivers.
        let besides = [SystemCounter::NaksReceived];
        let naks = || client.counters().value(SystemCounter::NaksReceived.id());
        let mut expected_naks = naks().unwrap();
        let naks_in_garbage = stream.bad_naks() as i64;
        let before = Snapshot::of(&client, &besides);
        send_invalid(&client, &garbage, |datagram| {
            receiver.send_to(datagram, sender).unwrap();
        });
        expected_naks += naks_in_garbage;
        if connect_sockets == "false" {
            let attacker = UdpSocket::bind((own_address(), 0)).unwrap();
            send_invalid(&client, &garbage, |datagram| {
                attacker.send_to(datagram, sender).unwrap();
            });
            expected_naks += naks_in_garbage;
        }
        assert_eq!(Snapshot::of(&client, &besides), before);
        assert_eq!(naks(), Some(expected_naks));
        assert_no_errors(&directory);
        for number in 0..100_u32 {
            offer(&number.to_le_bytes());
        }
        driver.stop("TERM").assert_code(15).assert_silent();
    }
}

/// Returns the source of the next frame that matches; other frames are discarded.
fn received(socket: &UdpSocket, matches: impl Fn(&Frame<'_>) -> bool) -> Option<SocketAddr> {
    let mut buffer = [0; 65_536];
    while let Ok((length, source)) = socket.recv_from(&mut buffer) {
        if let Ok(frame) = Frame::parse(&buffer[..length])
            && matches(&frame)
        {
            return Some(source);
        }
    }
    None
}
