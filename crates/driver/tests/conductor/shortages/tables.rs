// SPDX-License-Identifier: Apache-2.0
//! Full buffers: the error log, the command ring and the broadcast buffer.

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;

use crate::fixture::DriverFixture;

/// More distinct errors than the error log can hold.
#[test]
fn full_error_log_keeps_records_and_counts_errors() {
    let mut driver = DriverFixture::with(&[("aeron.error.buffer.length", "4m")]);
    let client = driver.client();
    let refuse = |driver: &mut DriverFixture, number: u32| {
        let channel =
            format!("aeron:udp?endpoint=localhost:40123|no-such-{number:x<400}={number}|mtu=1");
        let rejected = driver.add_publication(client, &channel, 10).unwrap_err();
        assert_ne!(rejected.code, ErrorCode::Unknown);
        assert!(!rejected.text.is_empty());
    };
    let mut number = 0;
    let mut recorded = 0;
    loop {
        refuse(&mut driver, number);
        number += 1;
        if number % 100 == 0 {
            let now = driver.errors().len();
            if now == recorded {
                break;
            }
            recorded = now;
        }
        assert!(number < 20_000, "the error log does not fill");
    }
    let first = driver.errors()[0].clone();
    let before = driver.system(SystemCounter::Errors);
    for number in number..number + 100 {
        refuse(&mut driver, number);
    }
    assert_eq!(
        driver.system(SystemCounter::Errors),
        before + 100,
        "each is counted"
    );
    assert_eq!(driver.errors().len(), recorded);
    assert_eq!(driver.errors()[0], first);
    // Existing records are still counted in the log.
    refuse(&mut driver, 0);
    assert_eq!(driver.errors()[0].1, first.1 + 1);
    driver.add_publication(client, "aeron:ipc", 10).unwrap();
}

/// Clients write more commands than the ring holds while the driver is not running.
#[test]
fn full_command_ring_rejects_writes_and_is_emptied() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let mut bytes = Vec::new();
    let type_id = Command::ClientKeepalive {
        client_id,
        correlation_id: 0,
    }
    .encode(&mut bytes);
    let mut written = 0;
    while driver.commands.write(type_id, &bytes).is_ok() {
        written += 1;
        assert!(written < 1_000_000, "the ring does not fill");
    }
    assert!(written > 1_000);
    while driver.commands.size() > 0 {
        driver.duty_cycle();
    }
    driver.add_publication(client_id, "aeron:ipc", 10).unwrap();
}

/// A client that is lapped by the broadcast buffer detects it and can continue.
#[test]
fn lapped_client_is_notified_and_others_are_unaffected() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let mut slow = taran_core::broadcast::Receiver::open(&driver.cnc.to_clients).unwrap();
    let mut rounds = 0;
    let lost = loop {
        for _ in 0..100 {
            let rejected = driver.add_publication(client, "aeron:ipc?mtu=1", 10);
            rejected.expect_err("a polling client receives all responses");
        }
        rounds += 1;
        assert!(
            rounds < 1_000,
            "the broadcast buffer never lapped the client"
        );
        // It reads rarely.
        if rounds % 100 == 0
            && let Err(error) = slow.receive(|_, _| {})
        {
            break error;
        }
    };
    assert!(!lost.to_string().is_empty());
    while !matches!(slow.receive(|_, _| {}), Ok(false)) {}
    driver.add_publication(client, "aeron:ipc", 11).unwrap();
    assert!(
        slow.receive(|_, _| {}).unwrap(),
        "what comes later is received"
    );
}
