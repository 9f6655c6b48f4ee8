//! Failing sockets: exhausted descriptors.

use taran_protocol::error_code::ErrorCode;

use super::{Holdings, Tourist, expect_all_works, expect_nothing_left};
use crate::fixture::DriverFixture;

#[test]
fn failure_of_any_socket_is_reported_and_undone() {
    let mut driver = DriverFixture::new();
    let before = Holdings::of(&driver);
    let mut failures = 0;
    loop {
        driver.network.fail_after(failures);
        let refusals = Tourist::tour(&mut driver);
        if !driver.network.has_failed() {
            assert!(refusals.is_empty(), "{refusals:?}");
            break;
        }
        let [refused] = &refusals[..] else {
            panic!("socket {failures}: {refusals:?}");
        };
        assert_eq!(refused.code, ErrorCode::GenericError, "{refused:?}");
        assert!(refused.text.contains("Too many open files"), "{refused:?}");
        driver.network.fail_after(i64::MAX);
        let when = format!("socket {failures}");
        expect_nothing_left(&mut driver, &before, &when);
        expect_all_works(&mut driver, &before, &when);
        failures += 1;
    }
    assert!(
        failures >= 8,
        "{failures}: endpoints, their control sockets and a source have sockets"
    );
    expect_nothing_left(&mut driver, &before, "the last tour");
}
