// SPDX-License-Identifier: Apache-2.0
//! Failing sockets: exhausted descriptors.

use taran_protocol::error_code::ErrorCode;

use super::{ResourceSequence, Resources, assert_nothing_left, assert_sequence_succeeds};
use crate::fixture::DriverFixture;

#[test]
fn failure_of_any_socket_is_reported_and_undone() {
    let mut driver = DriverFixture::new();
    let before = Resources::of(&driver);
    let mut failures = 0;
    loop {
        driver.network.fail_after(failures);
        let rejections = ResourceSequence::run(&mut driver);
        if !driver.network.has_failed() {
            assert!(rejections.is_empty(), "{rejections:?}");
            break;
        }
        let [rejected] = &rejections[..] else {
            panic!("socket {failures}: {rejections:?}");
        };
        assert_eq!(rejected.code, ErrorCode::GenericError, "{rejected:?}");
        assert!(
            rejected.text.contains("Too many open files"),
            "{rejected:?}"
        );
        driver.network.fail_after(i64::MAX);
        let when = format!("socket {failures}");
        assert_nothing_left(&mut driver, &before, &when);
        assert_sequence_succeeds(&mut driver, &before, &when);
        failures += 1;
    }
    assert!(
        failures >= 8,
        "{failures}: endpoints, their control sockets and a source have sockets"
    );
    assert_nothing_left(&mut driver, &before, "the last sequence");
}
