// SPDX-License-Identifier: Apache-2.0
//! Replay window (docs/spec/transport-security.md §2.10).

/// Number of counters that a window remembers.
pub const WINDOW: u64 = 4_096;
const WORDS: usize = (WINDOW / 64) as usize;

/// Reason why a counter is refused.
#[derive(Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the counter was seen, or is older than the replay window")]
pub struct Replayed;

taran_core::debug_is_display!(Replayed);

/// Sliding window over the last [`WINDOW`] counters of one key behind one transport.
///
/// [`ReplayWindow::check`] comes before the tag is verified and writes nothing; [`ReplayWindow::accept`] comes after it.
#[derive(Clone, Debug)]
pub struct ReplayWindow {
    /// Counters below are refused whatever was seen.
    first: u64,
    /// One more than the highest accepted counter; 0 before the first.
    end: u64,
    /// One bit for each counter of the window, at the counter modulo the window.
    seen: [u64; WORDS],
}

impl ReplayWindow {
    /// Returns a window that refuses all counters below `first`.
    #[must_use]
    pub const fn new(first: u64) -> Self {
        Self {
            first,
            end: 0,
            seen: [0; WORDS],
        }
    }

    /// Returns one more than the highest accepted counter.
    #[must_use]
    pub const fn end(&self) -> u64 {
        self.end
    }

    /// Checks a counter that is not yet authenticated.
    ///
    /// # Errors
    /// The counter was accepted before, or may have been.
    #[inline]
    pub const fn check(&self, counter: u64) -> Result<(), Replayed> {
        if counter < self.first || counter == u64::MAX {
            return Err(Replayed);
        }
        if counter >= self.end {
            return Ok(());
        }
        let (word, bit) = position(counter);
        if self.end - counter > WINDOW || self.seen[word] & bit != 0 {
            return Err(Replayed);
        }
        Ok(())
    }

    /// Marks an authenticated counter.
    ///
    /// # Errors
    /// As [`Self::check`]; nothing is marked then.
    #[inline]
    pub fn accept(&mut self, counter: u64) -> Result<(), Replayed> {
        self.check(counter)?;
        if counter >= self.end {
            self.advance(counter);
        }
        let (word, bit) = position(counter);
        self.seen[word] |= bit;
        Ok(())
    }

    /// Forgets what the counters up to `counter` displace.
    #[inline]
    fn advance(&mut self, counter: u64) {
        if counter - self.end >= WINDOW {
            self.seen.fill(0);
        } else {
            for displaced in self.end..=counter {
                let (word, bit) = position(displaced);
                self.seen[word] &= !bit;
            }
        }
        self.end = counter + 1;
    }
}

#[inline]
const fn position(counter: u64) -> (usize, u64) {
    let index = counter % WINDOW;
    ((index / 64) as usize, 1 << (index % 64))
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn window_starts_at_the_first_counter() {
        let mut window = ReplayWindow::new(10);
        assert_eq!(window.accept(9), Err(Replayed));
        assert_eq!(window.accept(10), Ok(()));
        assert_eq!(window.accept(10), Err(Replayed));
    }

    #[test]
    fn window_at_its_edge_takes_the_oldest_and_refuses_the_one_before() {
        let mut window = ReplayWindow::new(0);
        window.accept(WINDOW).unwrap();
        assert_eq!(window.check(0), Err(Replayed));
        assert_eq!(window.accept(1), Ok(()));
        assert_eq!(window.accept(1), Err(Replayed));
    }

    #[test]
    fn window_refuses_the_last_counter_of_all() {
        let mut window = ReplayWindow::new(0);
        assert_eq!(window.accept(u64::MAX), Err(Replayed));
        assert_eq!(window.accept(u64::MAX - 1), Ok(()));
        assert_eq!(window.accept(u64::MAX - 1), Err(Replayed));
        assert_eq!(window.accept(0), Err(Replayed));
    }

    proptest! {
        /// No counter is accepted twice, and each is accepted that is new and not older than the window.
        #[test]
        fn window_agrees_with_a_set_of_all_counters(
            first in 0..100_u64,
            steps in prop::collection::vec((0..4_u8, 0..10_000_u64), 1..400),
        ) {
            let mut window = ReplayWindow::new(first);
            let (mut seen, mut end, mut base) = (HashSet::new(), 0, 0_u64);
            for (kind, step) in steps {
                let counter = match kind {
                    0 => base + 1,
                    1 => base + step % 200,
                    2 => base + step,
                    _ => base.saturating_sub(step),
                };
                let expected = counter >= first && counter + WINDOW >= end && !seen.contains(&counter);
                prop_assert_eq!(window.check(counter).is_ok(), expected);
                prop_assert_eq!(window.accept(counter).is_ok(), expected);
                if expected {
                    seen.insert(counter);
                    end = end.max(counter + 1);
                }
                base = base.max(counter);
            }
        }
    }
}
