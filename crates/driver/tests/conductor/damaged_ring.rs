// SPDX-License-Identifier: Apache-2.0
//! A client that overwrites the positions of the to-driver ring (docs/spec/shared-memory.md §3).

use std::sync::atomic::Ordering;
use std::time::Duration;

use taran_core::ring::TRAILER_LENGTH;
use taran_protocol::counter::SystemCounter;

use crate::fixture::DriverFixture;

const IPC: &str = "aeron:ipc";
/// Offset of the tail in the trailer.
const TAIL: usize = 128;
/// Offset of the head in the trailer.
const HEAD: usize = 384;

fn position(driver: &DriverFixture, field: usize) -> i64 {
    let ring = &driver.cnc.to_driver;
    let field = ring.atomic_i64(ring.len() - TRAILER_LENGTH + field);
    field.load(Ordering::Relaxed)
}

fn set_position(driver: &DriverFixture, field: usize, value: i64) {
    let ring = &driver.cnc.to_driver;
    let field = ring.atomic_i64(ring.len() - TRAILER_LENGTH + field);
    field.store(value, Ordering::Relaxed);
}

fn damage_records(driver: &DriverFixture) -> usize {
    let errors = driver.errors();
    errors
        .iter()
        .filter(|(text, _)| text.contains("a process that writes to this ring is broken"))
        .count()
}

#[test]
fn overwritten_tail_is_recorded_and_repaired_before_clients_time_out() {
    let capacity = DriverFixture::new().commands.capacity() as i64;
    for offset in [
        -64,
        -8,
        3,
        capacity + 8,
        1 << 40,
        i64::MAX / 2 + 1,
        i64::MIN / 2,
    ] {
        let mut driver = DriverFixture::new();
        let client = driver.client();
        driver.add_publication(client, IPC, 10).unwrap();
        let sound = position(&driver, HEAD);
        set_position(&driver, TAIL, sound + offset);
        driver.run_for(Duration::from_millis(900));
        assert_eq!(damage_records(&driver), 0, "{offset}: seen once");
        driver.run_for(Duration::from_millis(2_100));
        assert_eq!(
            damage_records(&driver),
            1,
            "{offset}: {:?}",
            driver.errors()
        );
        assert_eq!(driver.system(SystemCounter::Errors), 1, "{offset}");
        driver.drain();
        driver
            .add_publication(client, IPC, 11)
            .unwrap_or_else(|error| panic!("{offset}: {error:?}"));
        driver.run_for(Duration::from_secs(30));
        assert_eq!(driver.system(SystemCounter::ClientTimeouts), 0, "{offset}");
        assert_eq!(
            damage_records(&driver),
            1,
            "{offset}: {:?}",
            driver.errors()
        );
    }
}

#[test]
fn tail_set_back_to_head_before_unread_command_is_recorded_and_repaired() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_publication(client, IPC, 10).unwrap();
    let head = position(&driver, HEAD);
    driver.commands.write(1, &[0; 40]).unwrap();
    set_position(&driver, TAIL, head);
    driver.run_for(Duration::from_secs(3));
    assert_eq!(damage_records(&driver), 1, "{:?}", driver.errors());
    driver.add_publication(client, IPC, 11).unwrap();
}

#[test]
fn overwritten_head_is_repaired_by_next_heartbeat() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_publication(client, IPC, 10).unwrap();
    let head = position(&driver, HEAD);
    for damaged in [head + 8, head - (1 << 30), head + 3, i64::MAX] {
        set_position(&driver, HEAD, damaged);
        driver.run_for(Duration::from_millis(1100));
        assert_eq!(position(&driver, HEAD), head, "{damaged}");
    }
    driver.add_publication(client, IPC, 11).unwrap();
}
