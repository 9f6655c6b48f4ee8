//! Positions never go back.
//!
//! Input: the streams of a driver after a look. What they must not pass is in [`flow`](super::flow).

use taran_protocol::counter::type_id;

use super::streams::Streams;
use super::{Violation, violation};

/// A publisher's limit falls to where the stream stands when nobody is left to receive it, a sender's to what the slowest
/// receiver of a group takes.
const MAY_FALL: [i32; 2] = [type_id::PUBLISHER_LIMIT, type_id::SENDER_LIMIT];

/// Compares all positions with those of the look before.
///
/// # Errors
/// One of them went back.
pub fn look(streams: &Streams) -> Result<(), Violation> {
    for position in streams.positions() {
        // A subscriber that is not tethered joins anew after it was left behind: where the slowest of the others is, which
        // it may have been ahead of.
        let joins_anew = position.type_id == type_id::SUBSCRIBER_POSITION && !position.is_tethered;
        let may_fall = MAY_FALL.contains(&position.type_id) || joins_anew;
        if position.value < position.before && !may_fall {
            violation!("{} went back", streams.describe(position));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::streams::tests::Scene;
    use super::*;

    #[test]
    fn a_position_that_goes_back_is_found_and_a_limit_may() {
        let mut scene = Scene::new();
        let position = scene.counter(type_id::RECEIVER_POSITION, 1);
        let limit = scene.counter(type_id::PUBLISHER_LIMIT, 2);
        let mut look = |at: i64, limited: i64| {
            position.set(at);
            limit.set(limited);
            assert!(scene.look());
            super::look(&scene.streams)
        };
        look(64, 64).unwrap();
        look(64, 32).unwrap();
        let Violation(found) = look(32, 32).unwrap_err();
        assert!(found.contains("went back"), "{found}");
    }

    #[test]
    fn a_subscriber_goes_back_only_if_nothing_ties_it() {
        let mut scene = Scene::new();
        let loose = scene.subscriber(1, "aeron:ipc?tether=false");
        let tied = scene.subscriber(1, "aeron:ipc");
        let mut look = |at: i64, tied_at: i64| {
            loose.set(at);
            tied.set(tied_at);
            assert!(scene.look());
            super::look(&scene.streams)
        };
        look(64, 64).unwrap();
        look(32, 64).unwrap();
        look(32, 32).unwrap_err();
    }

    #[test]
    fn an_id_that_was_given_away_again_starts_anew() {
        let mut scene = Scene::new();
        let first = scene.counter(type_id::SENDER_POSITION, 1);
        first.set(1000);
        assert!(scene.look());
        look(&scene.streams).unwrap();
        scene.table.free(first.id(), 0);
        let second = scene.counter(type_id::SENDER_POSITION, 2);
        assert_eq!(first.id(), second.id());
        assert!(scene.look());
        look(&scene.streams).unwrap();
    }
}
