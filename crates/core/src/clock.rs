// SPDX-License-Identifier: Apache-2.0
//! Time as a value: agents receive [`Now`] and read no clock.
//!
//! A runner reads its [`Clock`] once per duty cycle. [`SystemClock`] reads the machine's clocks; [`ManualClock`]
//! advances only on request, for tests and the simulator.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NANOS_PER_MILLI: i64 = 1_000_000;

/// One reading of both clocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Now {
    /// Monotonic nanoseconds from an arbitrary origin, which all threads and processes of this
    /// machine share until it boots again.
    pub nanos: i64,
    /// Milliseconds since 1970-01-01 UTC; at most 1 ms behind. Jumps when the wall clock is set.
    pub epoch_millis: i64,
}

/// A source of time.
pub trait Clock: Send {
    /// Returns the current time.
    fn now(&mut self) -> Now;
}

impl<C: Clock + ?Sized> Clock for Box<C> {
    fn now(&mut self) -> Now {
        (**self).now()
    }
}

/// The machine's clocks. The epoch clock is read again only after a millisecond of monotonic time, so that a duty cycle
/// costs one clock reading.
#[derive(Clone, Debug)]
pub struct SystemClock {
    epoch_millis: i64,
    epoch_read_at: i64,
}

impl SystemClock {
    /// A clock that has just read the epoch.
    pub fn new() -> Self {
        Self {
            epoch_millis: epoch_millis(),
            epoch_read_at: monotonic_nanos(),
        }
    }
}

impl SystemClock {
    /// Returns the current [`Now::nanos`] alone.
    pub fn nanos() -> i64 {
        monotonic_nanos()
    }

    /// Returns the time of a reading of [`nanos`](Self::nanos) that was just made.
    pub fn at(&mut self, nanos: i64) -> Now {
        if nanos.wrapping_sub(self.epoch_read_at) >= NANOS_PER_MILLI {
            self.epoch_read_at = nanos;
            self.epoch_millis = epoch_millis();
        }
        Now {
            nanos,
            epoch_millis: self.epoch_millis,
        }
    }
}

impl Default for SystemClock {
    fn default() -> Self {
        Self::new()
    }
}

impl Clock for SystemClock {
    fn now(&mut self) -> Now {
        self.at(Self::nanos())
    }
}

/// The wall clock in nanoseconds, for timestamps in messages: read when a timestamp is written, not once per duty
/// cycle.
pub trait WallClock: Send + Sync + fmt::Debug {
    /// Returns the nanoseconds since 1970-01-01 UTC.
    fn epoch_nanos(&self) -> i64;
}

/// The machine's wall clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemWallClock;

impl WallClock for SystemWallClock {
    fn epoch_nanos(&self) -> i64 {
        let nanos = |since: Duration| saturating_nanos(since);
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or_else(|before| -nanos(before.duration()), nanos)
    }
}

/// A clock that advances only on request. Clones share the time.
#[derive(Clone, Debug, Default)]
pub struct ManualClock {
    time: Arc<ManualTime>,
}

#[derive(Debug, Default)]
struct ManualTime {
    nanos: AtomicI64,
    // Nanoseconds as well, so that many small steps add up to milliseconds.
    epoch_nanos: AtomicI64,
}

impl ManualClock {
    /// A clock that shows `start`.
    pub fn new(start: Now) -> Self {
        let clock = Self::default();
        clock.time.nanos.store(start.nanos, Ordering::Relaxed);
        clock.set_epoch_millis(start.epoch_millis);
        clock
    }

    /// Advances both clocks.
    pub fn advance(&self, by: Duration) {
        let nanos = saturating_nanos(by);
        self.time.epoch_nanos.fetch_add(nanos, Ordering::Relaxed);
        // Release: a thread that sees the new time also sees the earlier writes of the clock's owner. Partner: the
        // acquire in `read`.
        self.time.nanos.fetch_add(nanos, Ordering::Release);
    }

    /// Sets the wall clock alone, as an operator or NTP would: forwards or backwards.
    pub fn set_epoch_millis(&self, epoch_millis: i64) {
        let nanos = epoch_millis.saturating_mul(NANOS_PER_MILLI);
        self.time.epoch_nanos.store(nanos, Ordering::Relaxed);
    }

    /// Returns the current time, through a shared reference.
    pub fn read(&self) -> Now {
        // Acquire: partner of the release in `advance`.
        let nanos = self.time.nanos.load(Ordering::Acquire);
        let epoch_nanos = self.time.epoch_nanos.load(Ordering::Relaxed);
        Now {
            nanos,
            epoch_millis: epoch_nanos.div_euclid(NANOS_PER_MILLI),
        }
    }
}

impl WallClock for ManualClock {
    fn epoch_nanos(&self) -> i64 {
        // Acquire: partner of the release in `advance`.
        let _ = self.time.nanos.load(Ordering::Acquire);
        self.time.epoch_nanos.load(Ordering::Relaxed)
    }
}

impl Clock for ManualClock {
    fn now(&mut self) -> Now {
        self.read()
    }
}

/// Converts a duration to nanoseconds; saturates at `i64::MAX` (292 years).
pub fn saturating_nanos(duration: Duration) -> i64 {
    i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX)
}

/// Returns the wall clock in milliseconds since 1970-01-01 UTC.
fn epoch_millis() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => {
            i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |millis| -millis)
        }
    }
}

#[cfg(unix)]
fn monotonic_nanos() -> i64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    time.tv_sec * 1_000_000_000 + time.tv_nsec
}

#[cfg(not(unix))]
fn monotonic_nanos() -> i64 {
    use std::sync::OnceLock;
    use std::time::Instant;
    static ORIGIN: OnceLock<Instant> = OnceLock::new();
    saturating_nanos(ORIGIN.get_or_init(Instant::now).elapsed())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn system_clock_never_goes_back_and_has_the_date() {
        let mut clock = SystemClock::new();
        let mut last = clock.now();
        for _ in 0..1000 {
            let now = clock.now();
            assert!(now.nanos >= last.nanos);
            last = now;
        }
        // 2024-01-01.
        assert!(last.epoch_millis > 1_704_067_200_000);
    }

    #[test]
    fn system_clocks_share_their_origin() {
        let first = SystemClock::new().now();
        let second = SystemClock::new().now();
        assert!(second.nanos >= first.nanos);
    }

    #[test]
    fn stale_epoch_is_read_again() {
        let mut clock = SystemClock {
            epoch_millis: 5,
            epoch_read_at: monotonic_nanos() - NANOS_PER_MILLI,
        };
        assert!(clock.now().epoch_millis > 5);
    }

    #[test]
    fn fresh_epoch_is_kept() {
        let mut clock = SystemClock {
            epoch_millis: 5,
            epoch_read_at: i64::MAX,
        };
        assert_eq!(clock.now().epoch_millis, 5);
    }

    #[test]
    fn manual_clock_moves_for_all_its_clones() {
        let clock = ManualClock::new(Now {
            nanos: 10,
            epoch_millis: 1000,
        });
        let mut other = clock.clone();
        for _ in 0..4 {
            clock.advance(Duration::from_micros(250));
        }
        assert_eq!(
            other.now(),
            Now {
                nanos: 1_000_010,
                epoch_millis: 1001
            }
        );
    }

    #[test]
    fn manual_wall_clock_can_jump_alone() {
        let clock = ManualClock::new(Now {
            nanos: 7,
            epoch_millis: 1000,
        });
        clock.set_epoch_millis(-3);
        assert_eq!(
            clock.read(),
            Now {
                nanos: 7,
                epoch_millis: -3
            }
        );
    }

    #[test]
    fn long_durations_saturate() {
        assert_eq!(saturating_nanos(Duration::MAX), i64::MAX);
        assert_eq!(saturating_nanos(Duration::from_micros(3)), 3000);
    }
}
