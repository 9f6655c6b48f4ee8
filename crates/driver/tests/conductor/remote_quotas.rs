// SPDX-License-Identifier: Apache-2.0
//! Quotas for images, which any remote host can request: a share of space and counters is reserved for clients.

use std::net::SocketAddr;
use std::time::Duration;

use taran_core::memory::MemoryStorage;
use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::{DataHeader, Setup};
use zerocopy::IntoBytes;

use crate::fixture::DriverFixture;
use crate::image_events::available;

const UDP: &str = "aeron:udp?endpoint=localhost:40123";
const PORT: u16 = 40_123;
/// Bytes of `cnc.dat` and the loss report.
const FIXED: u64 = 48_238_592 + 1_048_576;
/// Bytes of a log with the shortest terms.
const LOG: u64 = 200_704;

/// Requests images of this many sessions and returns the number of created images.
fn ask_for_images(driver: &mut DriverFixture, sessions: i32, term_length: i32) -> usize {
    let from: SocketAddr = "127.0.0.1:9".parse().unwrap();
    let mut made = 0;
    for session_id in 0..sessions {
        let setup = Setup {
            header: Setup::header(0),
            term_offset: 0.into(),
            session_id: session_id.into(),
            stream_id: 10.into(),
            initial_term_id: 5.into(),
            active_term_id: 5.into(),
            term_length: term_length.into(),
            mtu: 1_408.into(),
            ttl: 0.into(),
        };
        driver.network.deliver(from, PORT, setup.as_bytes());
        driver.run_for(Duration::from_millis(5));
        // Until then the image is limited by its source.
        let heartbeat = DataHeader::heartbeat(0xC0, session_id, 10, 5, 0);
        driver.network.deliver(from, PORT, heartbeat.as_bytes());
        driver.run_for(Duration::from_millis(5));
        let images = available(&driver.messages());
        made += images
            .iter()
            .filter(|it| it.session_id == session_id)
            .count();
    }
    made
}

#[test]
fn remote_images_leave_an_eighth_of_the_space() {
    let whole = format!("{UDP}|sparse=false");
    for (logs, channel, term_length, expected) in [
        (100, UDP, 64 * 1024, 56),
        (1100, whole.as_str(), 32 << 20, 1),
    ] {
        let capacity = FIXED + logs * LOG;
        let mut driver = DriverFixture::in_storage(MemoryStorage::with_capacity(capacity), &[]);
        let client = driver.client();
        driver.add_subscription(client, channel, 10).unwrap();
        let made = ask_for_images(&mut driver, 80, term_length);
        assert_eq!(made, expected);
        let refused = driver.errors();
        assert!(
            refused.iter().any(|(text, _)| text.contains(&format!(
                "{} bytes are reserved for publications",
                capacity / 8
            ))),
            "{refused:?}"
        );
        let helps = "shorter terms, or aeron.low.file.store.warning.threshold=0";
        assert!(
            refused.iter().any(|(text, _)| text.contains(helps)),
            "{refused:?}"
        );
        for stream_id in 0..20 {
            driver
                .add_publication(client, "aeron:ipc", stream_id)
                .unwrap();
        }
    }
}

#[test]
fn remote_images_without_warning_threshold_use_all_space() {
    let storage = MemoryStorage::with_capacity(FIXED + 10 * LOG);
    let options = [("aeron.low.file.store.warning.threshold", "0")];
    let mut driver = DriverFixture::in_storage(storage, &options);
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    assert_eq!(ask_for_images(&mut driver, 12, 64 * 1024), 10);
}

#[test]
fn remote_images_leave_an_eighth_of_the_counters() {
    let mut driver = DriverFixture::with(&[("aeron.counters.buffer.length", "1m")]);
    let client = driver.client();
    for _ in 0..200 {
        driver.add_subscription(client, UDP, 10).unwrap();
    }
    let made = ask_for_images(&mut driver, 60, 64 * 1024);
    assert!(made > 0);
    let refused = driver.errors();
    assert!(
        refused[0].0.contains("raise aeron.counters.buffer.length"),
        "{refused:?}"
    );
    assert_eq!(refused.len(), 1, "{refused:?}");
    assert!(driver.system(SystemCounter::Errors) > 1);
    let capacity = (1 << 20) / 128;
    let in_use = driver.counters().len();
    assert!(in_use <= capacity * 7 / 8, "{in_use}");
    driver
        .add_publication(client, "aeron:udp?endpoint=localhost:40124", 11)
        .unwrap();
}

/// Delivers a SETUP with terms of `term_length` bytes, of a new session from `source`.
fn deliver_setup(driver: &DriverFixture, source: SocketAddr, session_id: i32, term_length: i32) {
    let setup = Setup {
        header: Setup::header(0),
        term_offset: 0.into(),
        session_id: session_id.into(),
        stream_id: 10.into(),
        initial_term_id: 5.into(),
        active_term_id: 5.into(),
        term_length: term_length.into(),
        mtu: 1_408.into(),
        ttl: 0.into(),
    };
    driver.network.deliver(source, PORT, setup.as_bytes());
}

fn from_host(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 9))
}

/// A file system of 8 GiB, 28 SETUPs with terms of 1 GiB a second for 30 s without any data, and an honest stream every
/// 600 ms, with terms of 16 MiB and the same retransmission of SETUP and heartbeats as a publication. Of the images of the
/// attacker, 280 would be alive at once: more than the lower limit of its address.
#[test]
fn flood_of_setups_refuses_no_honest_stream() {
    for (attackers, limit, is_limited) in [(1, "1g", false), (50, "1g", false), (1, "64m", true)] {
        let storage = MemoryStorage::with_capacity(8 << 30);
        let options = [("taran.pending.images.source.limit", limit)];
        let mut driver = DriverFixture::in_storage(storage.clone(), &options);
        let client = driver.client();
        driver.add_subscription(client, UDP, 10).unwrap();
        let (mut honest, mut made) = (0, 0);
        for tick in 0..840 {
            let attacker = from_host((tick % attackers) as u8 + 100);
            deliver_setup(&driver, attacker, 1_000_000 + tick, 1 << 30);
            if tick % 17 == 0 && honest < 50 {
                deliver_setup(&driver, from_host(1), honest, 16 << 20);
                honest += 1;
            }
            driver.run_for(Duration::from_millis(36));
            let images = available(&driver.messages());
            made += images.iter().filter(|it| it.session_id < 50).count();
            for session_id in 0..honest {
                let heartbeat = DataHeader::heartbeat(0xC0, session_id, 10, 5, 0);
                driver
                    .network
                    .deliver(from_host(1), PORT, heartbeat.as_bytes());
            }
        }
        assert_eq!(
            (honest, made),
            (50, 50),
            "{attackers}: {:?}",
            driver.errors()
        );
        let most = if is_limited { 512 << 20 } else { 2 << 30 };
        assert!(
            storage.reserved() < most,
            "{attackers}: {}",
            storage.reserved()
        );
        let errors = driver.errors();
        let refusals = errors
            .iter()
            .filter(|error| error.0.contains("taran.pending.images.source.limit"));
        assert_eq!(refusals.count() > 0, is_limited, "{errors:?}");
    }
}

#[test]
fn silent_images_of_a_source_are_limited_and_others_are_not() {
    let options = [
        ("taran.pending.images.source.limit", "3m"),
        ("taran.pending.images.stream.limit", "7m"),
    ];
    let mut driver = DriverFixture::with(&options);
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    let ask = |driver: &mut DriverFixture, host, session_id| {
        driver.messages();
        deliver_setup(driver, from_host(host), session_id, 16 << 20);
        driver.run_for(Duration::from_millis(20));
        !available(&driver.messages()).is_empty()
    };
    // An image takes one MiB and its metadata.
    assert!(ask(&mut driver, 1, 1) && ask(&mut driver, 1, 2));
    assert!(!ask(&mut driver, 1, 3));
    let refused = driver.errors();
    for part in [
        "from 10.0.0.1:9",
        "the limit is 3145728, which is what taran.pending.images.source.limit allows: raise that",
        "session-id=3",
    ] {
        assert!(refused[0].0.contains(part), "{part}: {refused:?}");
    }
    assert_eq!(driver.system(SystemCounter::Errors), 1);
    for host in [2, 3] {
        assert!(
            ask(&mut driver, host, 10 * i32::from(host))
                && ask(&mut driver, host, 10 * i32::from(host) + 1)
        );
    }
    assert!(!ask(&mut driver, 4, 6), "the stream's limit");
    assert!(
        driver.errors()[1]
            .0
            .contains("taran.pending.images.stream.limit"),
        "{:?}",
        driver.errors()
    );

    // A heartbeat makes room.
    let heartbeat = DataHeader::heartbeat(0xC0, 1, 10, 5, 0);
    driver
        .network
        .deliver(from_host(1), PORT, heartbeat.as_bytes());
    driver.run_for(Duration::from_millis(20));
    assert!(ask(&mut driver, 1, 3), "{:?}", driver.errors());
    // So does the end of images that stayed silent.
    assert!(!ask(&mut driver, 4, 6));
    driver.run_for(Duration::from_secs(40));
    assert!(ask(&mut driver, 4, 6) && ask(&mut driver, 1, 7));
}

#[test]
fn refusal_names_the_file_system_where_its_share_is_the_limit() {
    let storage = MemoryStorage::with_capacity(128 << 20);
    let mut driver = DriverFixture::in_storage(storage, &[]);
    let client = driver.client();
    driver.add_subscription(client, UDP, 10).unwrap();
    for session_id in 0..20 {
        deliver_setup(&driver, from_host(1), session_id, 4 << 20);
        driver.run_for(Duration::from_millis(20));
    }
    let errors = driver.errors();
    let part = "the limit is 16777216, which is what an eighth of the file system allows: make that larger";
    let refused = errors.iter().find(|error| error.0.contains("no image"));
    let (text, _) = refused.expect("an eighth is less than 20 MiB");
    assert!(text.contains(part) && !text.contains("raise"), "{text}");
}
