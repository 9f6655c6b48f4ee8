//! No socket: the process has as many descriptors as it may, or a name is taken.

use taran_protocol::error_code::ErrorCode;

use super::{Holdings, Tourist, expect_all_works, expect_nothing_left};
use crate::bench::Bench;

#[test]
fn every_socket_of_every_command_may_be_the_one_that_cannot_be_opened() {
    let mut bench = Bench::new();
    let before = Holdings::of(&bench);
    let mut failures = 0;
    loop {
        bench.wires.fail_after(failures);
        let refusals = Tourist::tour(&mut bench);
        if !bench.wires.has_failed() {
            assert!(refusals.is_empty(), "{refusals:?}");
            break;
        }
        let [refused] = &refusals[..] else {
            panic!("socket {failures}: {refusals:?}");
        };
        assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
        assert!(refused.text.contains("Too many open files"), "{refused:?}");
        bench.wires.fail_after(i64::MAX);
        let when = format!("socket {failures}");
        expect_nothing_left(&mut bench, &before, &when);
        expect_all_works(&mut bench, &before, &when);
        failures += 1;
    }
    assert!(
        failures >= 8,
        "{failures}: endpoints, their control sockets and a source have sockets"
    );
    expect_nothing_left(&mut bench, &before, "the last tour");
}
