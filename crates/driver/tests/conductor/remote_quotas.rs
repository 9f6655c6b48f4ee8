//! Quotas for images, which any remote host can request: a share of space and counters is reserved for clients.

use std::net::SocketAddr;

use taran_core::memory::MemoryStorage;
use taran_protocol::counter::SystemCounter;
use taran_protocol::frame::Setup;
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
        for _ in 0..4 {
            driver.duty_cycle();
        }
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
