//! What a look at a publication found.

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
