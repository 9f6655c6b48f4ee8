// SPDX-License-Identifier: Apache-2.0
//! Floods of each kind of frame at a secured driver, from one address: the answers are counted, memory is bounded, and a stream
//! over the same ports stays exact.

use std::fs;
use std::net::{SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use taran::{Client, Publication, Subscription};
use taran_core::counters::CountersReader;
use taran_protocol::counter::SecureCounter;
use taran_secure::Secret;
use taran_secure::derive::{KeyId, channel_tag};
use taran_secure::frame::{Announce, Hello, IntoBytes};
use taran_secure::handshake::{Initiation, Offer};
use taran_secure::identity::Identity;
use taran_secure::provider::DefaultProvider;

use crate::own_address::own_address;
use crate::process::{Directory, Driver};
use crate::{Keys, await_condition, count};

type P = DefaultProvider;

const STREAM: i32 = 10;
/// Datagrams of a kind that the driver has to have dealt with, or as good as: its counters moved by so much.
const DATAGRAMS: u64 = 3_000;
/// Datagrams of a kind that are sent however long it takes.
const DATAGRAMS_MIN: u64 = 200;
/// Time after which a flood of one kind ends, once [`DATAGRAMS_MIN`] are sent.
const FLOOD: Duration = Duration::from_millis(400);
/// Growth of the driver's memory that is allowed for all floods together.
const GROWTH_MAX: u64 = 24 << 20;

/// Kind of a flood: its name, the port that it goes to, and its datagrams by number.
struct Flood<'a> {
    name: &'static str,
    port: SocketAddr,
    datagram: Box<dyn Fn(u64) -> Vec<u8> + 'a>,
    /// Returns the limit of all answers in bytes for the time from the first datagram to the last answer. None where the sizes
    /// of its datagrams are the limit.
    answers_max: Option<fn(Duration) -> usize>,
}

/// Answers of the driver.
#[derive(Debug, Default)]
struct Answers {
    count: usize,
    bytes: usize,
    longest: usize,
}

fn raw(kind: u16, length: usize, number: u64) -> Vec<u8> {
    let mut frame = vec![number as u8; length];
    frame[..4].copy_from_slice(&(length as i32).to_le_bytes());
    frame[4..6].copy_from_slice(&[0, 0]);
    frame[6..8].copy_from_slice(&kind.to_le_bytes());
    // Key id or link id: never one that the driver has.
    frame[8..16].copy_from_slice(&number.wrapping_mul(0x9E37_79B9_7F4A_7C15).to_le_bytes());
    frame
}

/// Sends a flood, and takes what comes back. Returns the bytes sent, the answers, and the time that it took.
fn send(flood: &Flood<'_>, attacker: &UdpSocket) -> (usize, Answers, Duration) {
    let (mut datagrams, mut sent, mut answers) = (0, 0, Answers::default());
    let mut buffer = [0; 2_048];
    let mut take = |answers: &mut Answers| {
        while let Ok((length, _)) = attacker.recv_from(&mut buffer) {
            answers.count += 1;
            answers.bytes += length;
            answers.longest = answers.longest.max(length);
        }
    };
    take(&mut Answers::default());
    let begin = Instant::now();
    for number in 0..DATAGRAMS {
        let datagram = (flood.datagram)(number);
        if attacker.send_to(&datagram, flood.port).is_ok() {
            datagrams += 1;
            sent += datagram.len();
        }
        take(&mut answers);
        if datagrams >= DATAGRAMS_MIN && begin.elapsed() > FLOOD {
            break;
        }
    }
    // What is answered late is an answer, too.
    let end = Instant::now() + Duration::from_millis(150);
    while Instant::now() < end {
        take(&mut answers);
        std::thread::yield_now();
    }
    (sent, answers, begin.elapsed())
}

/// Resident memory of a process in bytes.
fn resident(pid: u32) -> u64 {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kib << 10
}

/// Everything that a flood makes the driver count.
fn refused(counters: &CountersReader) -> i64 {
    let all = [
        SecureCounter::UnknownKeys,
        SecureCounter::FailedOpens,
        SecureCounter::OutOfBounds,
        SecureCounter::PlainRefused,
        SecureCounter::HandshakesRefused,
        SecureCounter::CookiesSent,
    ];
    all.map(|which| count(counters, which)).iter().sum()
}

/// Sends numbered messages and receives them in order.
fn exchange(publication: &Publication, subscription: &mut Subscription, next: &mut u64) {
    let end = *next + 100;
    let (mut sent, mut received) = (*next, *next);
    await_condition("the stream", || {
        if sent < end && publication.offer(&sent.to_le_bytes()).is_ok() {
            sent += 1;
        }
        let take = |message: &[u8], _: &taran::Header<'_>| {
            assert_eq!(message, received.to_le_bytes());
            received += 1;
        };
        subscription.poll(take, 64).unwrap();
        received == end
    });
    *next = end;
}

#[test]
fn floods_get_no_more_than_they_send_and_stop_no_stream() {
    let keys = Keys::new("floods", 30);
    // The driver is at both ends of its streams.
    keys.trust(&[&keys]);
    let directory = Directory::new("secured-floods");
    let options = [
        "aeron.driver.connect=false".to_owned(),
        "aeron.threading.mode=SHARED".to_owned(),
        "taran.secure.mode=all".to_owned(),
        format!("taran.secure.keys.dir={}", keys.path.display()),
    ];
    let driver = Driver::start(directory.path(), &options.each_ref().map(String::as_str));
    let client = Client::builder()
        .aeron_dir(directory.path())
        .connect()
        .unwrap();
    let own = own_address();
    let control = SocketAddr::from((own, 40_400));
    let data = SocketAddr::from((own, 40_401));
    let sending = format!("aeron:udp?control={control}|control-mode=dynamic|term-length=64k");
    let receiving = format!("aeron:udp?endpoint={data}|control={control}|term-length=64k");
    let mut subscription = client.add_subscription(&receiving, STREAM).unwrap();
    let publication = client.add_publication(&sending, STREAM).unwrap();
    let mut next = 0;
    exchange(&publication, &mut subscription, &mut next);
    let attacker = UdpSocket::bind((own, 0)).unwrap();
    attacker.set_nonblocking(true).unwrap();
    let trusted = Identity::from_private::<P>(Secret::new([30; 32]));
    let unknown = Identity::from_private::<P>(Secret::new([31; 32]));
    let announce = |fingerprint| {
        move |number: u64| {
            let session = number as i32;
            let hint = Announce::hint(0, fingerprint, number, session, STREAM);
            hint.as_bytes().to_vec()
        }
    };
    let offer = Offer {
        suites: 6,
        channel_tag: channel_tag::<P>("40400"),
        receiver_id: 1,
        incarnation: 1,
    };
    let init = |number: u64| {
        let mut entropy = [1; 32];
        entropy[..8].copy_from_slice(&number.to_le_bytes());
        let (psk, entropy) = (Secret::new([0; 32]), Secret::new(entropy));
        let initiation = Initiation::<P>::new(
            &unknown,
            trusted.public(),
            &psk,
            number + 1,
            &offer,
            entropy,
        );
        initiation.unwrap().init().as_bytes().to_vec()
    };
    let hello = |number: u64| {
        let id = KeyId(number.to_le_bytes());
        Hello::new(id, [number as u8; 16], 0, 0).as_bytes().to_vec()
    };
    let wrong_mac = |number: u64| {
        let mut init = init(number % 16);
        init[152] ^= 1;
        init
    };
    let nothing: Option<fn(Duration) -> usize> = Some(|_| 0);
    let floods = [
        // At most one HELLO in 100 ms, which goes to the control address, not to the attacker.
        Flood {
            name: "SEALED",
            port: data,
            datagram: Box::new(|number| raw(0x5450, 192, number)),
            answers_max: nothing,
        },
        Flood {
            name: "ANNOUNCE of a trusted key",
            port: data,
            datagram: Box::new(announce(trusted.fingerprint())),
            answers_max: nothing,
        },
        Flood {
            name: "ANNOUNCE of an unknown key",
            port: data,
            datagram: Box::new(announce(unknown.fingerprint())),
            answers_max: nothing,
        },
        Flood {
            name: "RESP",
            port: data,
            datagram: Box::new(|number| raw(0x5455, 112, number)),
            answers_max: nothing,
        },
        Flood {
            name: "COOKIE",
            port: data,
            datagram: Box::new(|number| raw(0x5456, 56, number)),
            answers_max: nothing,
        },
        Flood {
            name: "PAIR to a receiver",
            port: data,
            datagram: Box::new(|number| raw(0x5457, 80, number)),
            answers_max: nothing,
        },
        Flood {
            name: "plain frames to a receiver",
            port: data,
            datagram: Box::new(|number| raw(0x0001, 64, number)),
            answers_max: nothing,
        },
        Flood {
            name: "BACK",
            port: control,
            datagram: Box::new(|number| raw(0x5451, 76, number)),
            answers_max: nothing,
        },
        Flood {
            name: "PAIR to a sender",
            port: control,
            datagram: Box::new(|number| raw(0x5457, 80, number)),
            answers_max: nothing,
        },
        Flood {
            name: "INIT with a wrong mac1",
            port: control,
            datagram: Box::new(wrong_mac),
            answers_max: nothing,
        },
        Flood {
            name: "plain frames to a sender",
            port: control,
            datagram: Box::new(|number| raw(0x0003, 36, number)),
            answers_max: nothing,
        },
        // An ANNOUNCE is as long as the HELLO; 64 at once, and 100 in a second.
        Flood {
            name: "HELLO",
            port: control,
            datagram: Box::new(hello),
            answers_max: Some(|time| (64 + time.as_millis() as usize / 10 + 1) * 192),
        },
        // RESP or COOKIE, both shorter than the INIT.
        Flood {
            name: "INIT of an unknown key",
            port: control,
            datagram: Box::new(init),
            answers_max: None,
        },
    ];
    let counters = client.counters();
    let before = resident(driver.pid());
    for flood in &floods {
        let counted = refused(counters);
        let (sent, answers, time) = send(flood, &attacker);
        let name = flood.name;
        println!("{name}: {sent} bytes sent in {time:?}, {answers:?}");
        assert!(answers.longest <= 192, "{name}: {answers:?}");
        assert!(
            answers.bytes <= sent,
            "{name}: {answers:?} for {sent} bytes"
        );
        if let Some(max) = flood.answers_max {
            let max = max(time);
            assert!(
                answers.bytes <= max,
                "{name}: {answers:?}, at most {max} bytes"
            );
        }
        exchange(&publication, &mut subscription, &mut next);
        // These are answered, or answer nothing that was asked: no counter is about them.
        let is_counted = !["HELLO", "ANNOUNCE of a trusted key", "RESP", "COOKIE"].contains(&name);
        if is_counted {
            await_condition(&format!("{name} reaches the driver"), || {
                refused(counters) - counted > 10
            });
        }
    }
    let grown = resident(driver.pid()).saturating_sub(before);
    assert!(grown < GROWTH_MAX, "{grown} bytes more");
    // One at each end, and an old one of the receiver for ten seconds: a forged number of a run is worth one handshake.
    let links = count(counters, SecureCounter::Links);
    assert!((2..=3).contains(&links), "{links} links");
    drop((publication, subscription));
    drop(client);
    driver.stop("TERM").assert_code(15);
}
