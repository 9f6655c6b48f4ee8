//! Rings and logs of limited length that are full: the error log, the command ring, and what is told to clients.

use taran_protocol::command::Command;
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;

use crate::bench::Bench;

/// More distinct errors than the error log has room for.
#[test]
fn a_full_error_log_keeps_what_it_has_and_errors_are_counted_and_answered() {
    let mut bench = Bench::with(&[("aeron.error.buffer.length", "4m")]);
    let client = bench.client();
    let refuse = |bench: &mut Bench, number: u32| {
        let channel =
            format!("aeron:udp?endpoint=localhost:40123|no-such-{number:x<400}={number}|mtu=1");
        let refused = bench.add_publication(client, &channel, 10).unwrap_err();
        assert_ne!(refused.code, ErrorCode::Unknown);
        assert!(!refused.text.is_empty());
    };
    let mut number = 0;
    let mut recorded = 0;
    loop {
        refuse(&mut bench, number);
        number += 1;
        if number % 100 == 0 {
            let now = bench.errors().len();
            if now == recorded {
                break;
            }
            recorded = now;
        }
        assert!(number < 20_000, "the error log does not fill");
    }
    let first = bench.errors()[0].clone();
    let before = bench.system(SystemCounter::Errors);
    for number in number..number + 100 {
        refuse(&mut bench, number);
    }
    assert_eq!(
        bench.system(SystemCounter::Errors),
        before + 100,
        "each is counted"
    );
    assert_eq!(bench.errors().len(), recorded);
    assert_eq!(bench.errors()[0], first);
    // What is known is still counted in the log.
    refuse(&mut bench, 0);
    assert_eq!(bench.errors()[0].1, first.1 + 1);
    bench.add_publication(client, "aeron:ipc", 10).unwrap();
}

/// Clients write more commands than the ring holds while the driver stands still.
#[test]
fn a_full_command_ring_is_the_clients_to_see_and_is_emptied() {
    let mut bench = Bench::new();
    let client_id = bench.client();
    let mut bytes = Vec::new();
    let type_id = Command::ClientKeepalive {
        client_id,
        correlation_id: 0,
    }
    .encode(&mut bytes);
    let mut written = 0;
    while bench.commands.write(type_id, &bytes).is_ok() {
        written += 1;
        assert!(written < 1_000_000, "the ring does not fill");
    }
    assert!(written > 1_000);
    while bench.commands.size() > 0 {
        bench.turn();
    }
    bench.add_publication(client_id, "aeron:ipc", 10).unwrap();
}

/// A client that does not listen for longer than the buffer of answers reaches: it is told, and can go on.
#[test]
fn a_client_that_is_lapped_learns_it_and_the_others_do_not_notice() {
    let mut bench = Bench::new();
    let client = bench.client();
    let mut slow = taran_core::broadcast::Receiver::open(&bench.cnc.to_clients).unwrap();
    let mut rounds = 0;
    let lost = loop {
        for _ in 0..100 {
            let refused = bench.add_publication(client, "aeron:ipc?mtu=1", 10);
            refused.expect_err("who listens gets all answers");
        }
        rounds += 1;
        assert!(rounds < 1_000, "the buffer of answers has no end");
        // It looks only now and then.
        if rounds % 100 == 0
            && let Err(error) = slow.receive(|_, _| {})
        {
            break error;
        }
    };
    assert!(!lost.to_string().is_empty());
    while !matches!(slow.receive(|_, _| {}), Ok(false)) {}
    bench.add_publication(client, "aeron:ipc", 11).unwrap();
    assert!(
        slow.receive(|_, _| {}).unwrap(),
        "what comes later is received"
    );
}
