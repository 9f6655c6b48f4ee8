// SPDX-License-Identifier: Apache-2.0
//! Strategies without state.

use std::hint;
use std::thread;
use std::time::Duration;

use super::IdleStrategy;

/// Does nothing: busy polling without a pause.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoOp;

impl IdleStrategy for NoOp {
    fn idle(&mut self, _work: usize, _park: &mut dyn FnMut(Duration)) {}
}

/// Executes a spin-loop hint, which leaves more of the core to its sibling thread.
#[derive(Clone, Copy, Debug, Default)]
pub struct Spin;

impl IdleStrategy for Spin {
    fn idle(&mut self, work: usize, _park: &mut dyn FnMut(Duration)) {
        if work == 0 {
            hint::spin_loop();
        }
    }
}

/// Yields the time slice to other threads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Yield;

impl IdleStrategy for Yield {
    fn idle(&mut self, work: usize, _park: &mut dyn FnMut(Duration)) {
        if work == 0 {
            thread::yield_now();
        }
    }
}

/// Parks for a fixed time.
#[derive(Clone, Copy, Debug)]
pub struct Sleep(pub Duration);

impl IdleStrategy for Sleep {
    fn idle(&mut self, work: usize, park: &mut dyn FnMut(Duration)) {
        if work == 0 {
            park(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parks(strategy: &mut dyn IdleStrategy, work: &[usize]) -> Vec<Duration> {
        let mut parks = Vec::new();
        for &work in work {
            strategy.idle(work, &mut |max| parks.push(max));
        }
        parks
    }

    #[test]
    fn only_sleep_parks() {
        assert!(parks(&mut NoOp, &[0, 1, 0]).is_empty());
        assert!(parks(&mut Spin, &[0, 1, 0]).is_empty());
        assert!(parks(&mut Yield, &[0, 1, 0]).is_empty());
    }

    #[test]
    fn sleep_parks_unless_there_was_work() {
        let millisecond = Duration::from_millis(1);
        assert_eq!(
            parks(&mut Sleep(millisecond), &[0, 1, 0]),
            [millisecond, millisecond]
        );
    }
}
