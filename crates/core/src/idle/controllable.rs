// SPDX-License-Identifier: Apache-2.0
//! A strategy that is switched at run time.

use std::hint;
use std::thread;
use std::time::Duration;

use super::IdleStrategy;
use crate::counters::Counter;

const NOOP: i64 = 1;
const SPIN: i64 = 2;
const YIELD: i64 = 3;
const PARK: i64 = 4;

const PARK_TIME: Duration = Duration::from_micros(1);

/// The mode is the value of a counter: 1 nothing, 2 spin, 3 yield, anything else park for 1 us
/// (docs/spec/uri-and-configuration.md §2.11; system counter 22). Every process that can write the counter can switch
/// the mode.
#[derive(Clone, Debug)]
pub struct Controllable {
    mode: Counter,
}

impl Controllable {
    /// Sets the counter to 4 (park), and follows it afterwards.
    pub fn new(mode: Counter) -> Self {
        mode.set(PARK);
        Self { mode }
    }
}

impl IdleStrategy for Controllable {
    fn idle(&mut self, work: usize, park: &mut dyn FnMut(Duration)) {
        if work > 0 {
            return;
        }
        match self.mode.get() {
            NOOP => (),
            SPIN => hint::spin_loop(),
            YIELD => thread::yield_now(),
            _ => park(PARK_TIME),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mode_is_followed() {
        let mode = Counter::detached();
        let mut strategy = Controllable::new(mode.clone());
        assert_eq!(mode.get(), PARK);
        for (value, parks) in [
            (4, true),
            (1, false),
            (2, false),
            (3, false),
            (0, true),
            (-7, true),
        ] {
            mode.set(value);
            let mut parked = false;
            strategy.idle(1, &mut |_| panic!("there was work"));
            strategy.idle(0, &mut |max| parked = max == PARK_TIME);
            assert_eq!(parked, parks, "mode {value}");
        }
    }
}
