//! Truncated and garbage datagrams raise counter 14 and nothing else; the streams they pretend to belong to go on.

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

/// They move by themselves, or count every byte that comes in.
const RESTLESS: [SystemCounter; 15] = [
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

/// How many datagrams are under way at once: a few fit every socket buffer.
const BATCH: usize = 16;

/// What must not change.
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
            .filter(|counter| !RESTLESS.contains(counter) && !besides.contains(counter))
            .map(|counter| (counter.base_label(), counters.value(counter.id()).unwrap()))
            .collect();
        let mut others = Vec::new();
        counters.for_each(|meta| {
            let label = meta.label.to_string();
            // A client tells its name when it gets to it.
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

/// Sends them, and waits until each has raised the counter by one.
fn raise(client: &Client, garbage: &[Vec<u8>], send: impl Fn(&[u8])) {
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

/// Random bytes that cannot be taken for a frame of the present version.
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
fn at_the_port_of_a_subscription() {
    let directory = Directory::new("garbage-received");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let endpoint = own_socket_address();
    let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
    let mut subscription = client.add_subscription(&channel, 10).unwrap();
    let publication = client.add_publication(&channel, 10).unwrap();
    wait_until("offered", || publication.offer(b"before").is_ok());
    wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));

    let stranger = UdpSocket::bind((own_address(), 0)).unwrap();
    let stream = stream_of(&publication);
    let garbage = [
        stream.anywhere(),
        stream.data_garbage(),
        stream.setups_before_the_start(),
        noise(),
    ]
    .concat();
    let besides = [SystemCounter::StatusMessagesReceived];
    let before = Snapshot::of(&client, &besides);
    raise(&client, &garbage, |datagram| {
        stranger.send_to(datagram, endpoint).unwrap();
    });
    assert_eq!(Snapshot::of(&client, &besides), before);
    assert_eq!(subscription.image_count(), 1);
    assert_no_errors(&directory);

    // The stream goes on, and nothing of it was touched.
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
fn at_the_socket_of_a_publication() {
    // Connected to its receiver, it hears that one only; else everybody.
    for connect_sockets in ["true", "false"] {
        let directory = Directory::new("garbage-sent");
        let option = format!("aeron.driver.connect={connect_sockets}");
        let driver = Driver::start(directory.path(), &[&option]);
        let client = connect(directory.path());
        // The receiver is this test.
        let receiver = UdpSocket::bind(own_socket_address()).unwrap();
        receiver.set_nonblocking(true).unwrap();
        let endpoint = receiver.local_addr().unwrap();
        let channel = format!("aeron:udp?endpoint={endpoint}|term-length=64k");
        let publication = client.add_publication(&channel, 10).unwrap();
        let stream = stream_of(&publication);
        let sender = wait_for("a SETUP", || {
            received(&receiver, |frame| matches!(frame, Frame::Setup(_)))
        });
        let said = Cell::new(0);
        let say = |message: StatusMessage| {
            receiver.send_to(message.as_bytes(), sender).unwrap();
            said.set(said.get() + 1);
        };
        let mut position = 0;
        let mut offer = |message: &[u8]| {
            wait_until("offered", || {
                say(stream.status(position, 4_096, 0));
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

        let heard = || {
            let counter = SystemCounter::StatusMessagesReceived.id();
            client.counters().value(counter)
        };
        wait_until("all status messages are taken", || {
            heard() == Some(said.get())
        });

        let garbage = [stream.anywhere(), stream.feedback_garbage(), noise()].concat();
        // A NAK counts as one before it is looked at, as with the official drivers.
        let besides = [SystemCounter::NaksReceived];
        let naks = || client.counters().value(SystemCounter::NaksReceived.id());
        let mut expected_naks = naks().unwrap();
        let naks_in_garbage = stream.bad_naks() as i64;
        let before = Snapshot::of(&client, &besides);
        raise(&client, &garbage, |datagram| {
            receiver.send_to(datagram, sender).unwrap();
        });
        expected_naks += naks_in_garbage;
        if connect_sockets == "false" {
            let stranger = UdpSocket::bind((own_address(), 0)).unwrap();
            raise(&client, &garbage, |datagram| {
                stranger.send_to(datagram, sender).unwrap();
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

/// Where the next frame of the kind looked for came from; others are passed over.
fn received(socket: &UdpSocket, is_it: impl Fn(&Frame<'_>) -> bool) -> Option<SocketAddr> {
    let mut buffer = [0; 65_536];
    while let Ok((length, source)) = socket.recv_from(&mut buffer) {
        if let Ok(frame) = Frame::parse(&buffer[..length])
            && is_it(&frame)
        {
            return Some(source);
        }
    }
    None
}
