// SPDX-License-Identifier: Apache-2.0
//! Positions never decrease.
//!
//! Input: the streams of a driver after a refresh. The bounds of positions are checked in [`flow`](super::flow).

use taran_protocol::counter::type_id;

use super::streams::Streams;
use super::{Violation, violation};

/// The publisher limit falls to the publisher position when no subscriber is left, the sender limit to the window of
/// the slowest receiver of a group.
const MAY_FALL: [i32; 2] = [type_id::PUBLISHER_LIMIT, type_id::SENDER_LIMIT];

/// Compares all positions with those of the previous refresh.
///
/// # Errors
/// One of them decreased.
pub fn check(streams: &Streams) -> Result<(), Violation> {
    for position in streams.positions() {
        // An untethered subscriber that was left behind rejoins at the position of the slowest other one, which it may
        // have been ahead of.
        let rejoins = position.type_id == type_id::SUBSCRIBER_POSITION && !position.is_tethered;
        let may_fall = MAY_FALL.contains(&position.type_id) || rejoins;
        if position.value < position.previous && !may_fall {
            violation!("{} decreased", streams.describe(position));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::streams::tests::FakeDriver;
    use super::*;

    #[test]
    fn decreasing_position_is_a_violation_and_decreasing_limit_is_not() {
        let mut driver = FakeDriver::new();
        let position = driver.counter(type_id::RECEIVER_POSITION, 1);
        let limit = driver.counter(type_id::PUBLISHER_LIMIT, 2);
        let mut check = |at: i64, limited: i64| {
            position.set(at);
            limit.set(limited);
            assert!(driver.refresh());
            super::check(&driver.streams)
        };
        check(64, 64).unwrap();
        check(64, 32).unwrap();
        let Violation(found) = check(32, 32).unwrap_err();
        assert!(found.contains("decreased"), "{found}");
    }

    #[test]
    fn only_an_untethered_subscriber_position_may_decrease() {
        let mut driver = FakeDriver::new();
        let untethered = driver.subscriber(1, "aeron:ipc?tether=false");
        let tethered = driver.subscriber(1, "aeron:ipc");
        let mut check = |at: i64, tethered_at: i64| {
            untethered.set(at);
            tethered.set(tethered_at);
            assert!(driver.refresh());
            super::check(&driver.streams)
        };
        check(64, 64).unwrap();
        check(32, 64).unwrap();
        check(32, 32).unwrap_err();
    }

    #[test]
    fn reused_counter_id_starts_a_new_position() {
        let mut driver = FakeDriver::new();
        let first = driver.counter(type_id::SENDER_POSITION, 1);
        first.set(1000);
        assert!(driver.refresh());
        check(&driver.streams).unwrap();
        driver.table.free(first.id(), 0);
        let second = driver.counter(type_id::SENDER_POSITION, 2);
        assert_eq!(first.id(), second.id());
        assert!(driver.refresh());
        check(&driver.streams).unwrap();
    }
}
