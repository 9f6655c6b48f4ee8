//! What a look at a publication found.

use crate::rounds::{Guest, Pace, Rounds};

/// Whether something moved, and what came of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Motion {
    /// Nothing did.
    Still,
    /// Its publisher went on.
    Published,
    /// Its publisher may go on.
    Raised,
}

impl Motion {
    /// A limit that was raised, or a publisher that moved; the former is what has become of a look.
    pub(crate) fn of(published: bool, raised: bool) -> Self {
        match (published, raised) {
            (_, true) => Self::Raised,
            (true, false) => Self::Published,
            (false, false) => Self::Still,
        }
    }

    /// As duty cycles count it.
    pub(crate) fn work(self) -> usize {
        usize::from(self == Self::Raised)
    }

    /// Whether it is likely to move again soon.
    pub(crate) fn is_busy(self) -> bool {
        self != Self::Still
    }
}

/// A turn for publications, of which `look` tells what it found: how many limits were raised.
pub(crate) fn turn<T: Guest>(
    rounds: &mut Rounds<T>,
    now_ns: i64,
    pace: Pace,
    look: impl Fn(&mut T) -> Motion,
) -> usize {
    let mut raised = 0;
    rounds.turn(now_ns, pace, |_, publication, _| {
        let motion = look(publication);
        raised += motion.work();
        motion.is_busy()
    });
    raised
}
