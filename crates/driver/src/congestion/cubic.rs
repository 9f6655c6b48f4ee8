// SPDX-License-Identifier: Apache-2.0
//! CUBIC congestion control: the window shrinks by a fifth on loss and grows back along a cubic curve, fast at first,
//! slowly near the window at which the loss occurred, and then fast again.

use taran_core::counters::Counter;

use super::{CongestionControl, ReceiverProgress, WindowUpdate};

/// Initial window in datagrams.
const INITIAL_WINDOW: i32 = 10;

/// Constant C of CUBIC: steepness of the curve.
const C: f64 = 0.4;

/// Fraction by which a loss reduces the window.
const BETA: f64 = 0.2;

/// Round trips per RTT measurement.
const RTTS_PER_MEASUREMENT: i64 = 4;

const NANOS_PER_SECOND: f64 = 1e9;

/// Parameters of a [`Cubic`].
#[derive(Debug)]
pub(crate) struct CubicSpec {
    /// Maximum datagram length of the sender in bytes: the unit of the window.
    pub(crate) mtu: i32,
    /// Maximum window in bytes.
    pub(crate) max_window: i32,
    /// `aeron.CubicCongestionControl.measureRtt`
    pub(crate) measures_round_trip: bool,
    /// `aeron.CubicCongestionControl.initialRtt`
    pub(crate) initial_round_trip_ns: i64,
    /// `aeron.CubicCongestionControl.tcpMode`: grows at least as fast as TCP.
    pub(crate) is_tcp_friendly: bool,
    /// `rcv-cc-cubic-rtt`
    pub(crate) round_trip_counter: Counter,
    /// `rcv-cc-cubic-wnd`
    pub(crate) window_counter: Counter,
}

/// CUBIC congestion control. All windows are in datagrams.
#[derive(Debug)]
pub(crate) struct Cubic {
    spec: CubicSpec,
    max_window: i32,
    window: i32,
    /// W_max: the window at the last loss; initially the maximum window.
    w_max: i32,
    /// K: seconds from a loss until the window is W_max again.
    k: f64,
    loss_ns: i64,
    updated_ns: i64,
    round_trip_ns: i64,
    measured_ns: i64,
    measurement_interval_ns: i64,
}

impl Cubic {
    pub(crate) fn new(spec: CubicSpec) -> Self {
        let max_window = (spec.max_window / spec.mtu.max(1)).max(1);
        let initial_round_trip_ns = spec.initial_round_trip_ns;
        let window = max_window.min(INITIAL_WINDOW);
        spec.window_counter.set(i64::from(window * spec.mtu));
        Self {
            max_window,
            window,
            w_max: max_window,
            k: cubic_k(max_window),
            loss_ns: 0,
            updated_ns: 0,
            round_trip_ns: initial_round_trip_ns,
            measured_ns: 0,
            measurement_interval_ns: measurement_interval_ns(initial_round_trip_ns),
            spec,
        }
    }

    fn bytes(&self) -> i32 {
        // Not greater than the maximum window.
        self.window * self.spec.mtu
    }

    fn set_window(&mut self, window: i32) {
        if window != self.window {
            self.window = window;
            self.spec.window_counter.set(i64::from(self.bytes()));
        }
    }

    fn reduce(&mut self, now_ns: i64) {
        self.w_max = self.window;
        self.k = cubic_k(self.w_max);
        self.loss_ns = now_ns;
        let reduced = (f64::from(self.window) * (1.0 - BETA)) as i32;
        self.set_window(reduced.max(1));
    }

    fn grow(&mut self, now_ns: i64) {
        let since_loss = now_ns.wrapping_sub(self.loss_ns) as f64 / NANOS_PER_SECOND;
        let offset = since_loss - self.k;
        let distance = (C * offset * offset * offset) as i32;
        let mut window = self.w_max.saturating_add(distance).min(self.max_window);
        if self.spec.is_tcp_friendly && window < self.w_max {
            let round_trip = self.round_trip_ns as f64 / NANOS_PER_SECOND;
            let per_round_trip = 3.0 * BETA / (2.0 - BETA);
            let tcp =
                f64::from(self.w_max) * (1.0 - BETA) + per_round_trip * (since_loss / round_trip);
            window = window.max(tcp as i32).min(self.max_window);
        }
        self.set_window(window.max(1));
        self.updated_ns = now_ns;
    }
}

/// Returns K: seconds until the window grows back to `window` after a loss.
fn cubic_k(window: i32) -> f64 {
    (f64::from(window) * BETA / C).cbrt()
}

fn measurement_interval_ns(round_trip_ns: i64) -> i64 {
    round_trip_ns.saturating_mul(RTTS_PER_MEASUREMENT)
}

impl CongestionControl for Cubic {
    fn initial_window(&self) -> i32 {
        self.bytes()
    }

    fn start(&mut self, now_ns: i64) {
        self.loss_ns = now_ns;
        self.updated_ns = now_ns;
        // The first measurement is due at once.
        self.measured_ns = now_ns.saturating_sub(self.measurement_interval_ns.saturating_add(1));
    }

    fn update_window(&mut self, progress: &ReceiverProgress, now_ns: i64) -> WindowUpdate {
        let mut is_urgent = false;
        if progress.has_loss {
            self.reduce(now_ns);
            is_urgent = true;
        } else if self.window < self.max_window
            && now_ns.saturating_sub(self.updated_ns) > self.spec.initial_round_trip_ns
        {
            self.grow(now_ns);
        } else if self.window == 1 && progress.consumed > progress.last_sent_position {
            // The sender waits until each datagram is consumed.
            is_urgent = true;
        }
        WindowUpdate {
            window: self.bytes(),
            is_urgent,
        }
    }

    fn should_measure_rtt(&mut self, now_ns: i64) -> bool {
        let is_due = self.spec.measures_round_trip
            && now_ns.saturating_sub(self.measured_ns) > self.measurement_interval_ns;
        if is_due {
            self.measured_ns = now_ns;
        }
        is_due
    }

    fn next_deadline_ns(&self) -> i64 {
        let growth_ns = if self.window < self.max_window {
            (self.updated_ns).saturating_add(self.spec.initial_round_trip_ns)
        } else {
            i64::MAX
        };
        let measurement_ns = if self.spec.measures_round_trip {
            (self.measured_ns).saturating_add(self.measurement_interval_ns)
        } else {
            i64::MAX
        };
        growth_ns.min(measurement_ns).saturating_add(1)
    }

    fn on_rtt_measurement(&mut self, round_trip_ns: i64, now_ns: i64) {
        self.measured_ns = now_ns;
        self.round_trip_ns = round_trip_ns;
        self.spec.round_trip_counter.set(round_trip_ns);
        let at_least_ns = self.spec.initial_round_trip_ns;
        self.measurement_interval_ns = measurement_interval_ns(round_trip_ns.max(at_least_ns));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MTU: i32 = 1_408;
    const SECOND: i64 = 1_000_000_000;
    const US: i64 = 1_000;
    const QUIET: ReceiverProgress = ReceiverProgress {
        consumed: 0,
        last_sent_position: 0,
        has_loss: false,
    };
    const LOSS: ReceiverProgress = ReceiverProgress {
        has_loss: true,
        ..QUIET
    };

    fn cubic(max_window: i32, change: impl FnOnce(&mut CubicSpec)) -> Cubic {
        let mut spec = CubicSpec {
            mtu: MTU,
            max_window,
            measures_round_trip: false,
            initial_round_trip_ns: 100 * US,
            is_tcp_friendly: false,
            round_trip_counter: Counter::detached(),
            window_counter: Counter::detached(),
        };
        change(&mut spec);
        let mut cubic = Cubic::new(spec);
        cubic.start(0);
        cubic
    }

    /// Returns the windows in datagrams at these times.
    fn windows(cubic: &mut Cubic, times: &[i64]) -> Vec<i32> {
        let update = times.iter().map(|now| cubic.update_window(&QUIET, *now));
        update.map(|update| update.window / MTU).collect()
    }

    #[test]
    fn initial_window_is_ten_datagrams_or_max_window() {
        assert_eq!(cubic(131_072, |_| ()).initial_window(), 10 * MTU);
        assert_eq!(cubic(3 * MTU + 7, |_| ()).initial_window(), 3 * MTU);
        let full = cubic(131_072, |_| ());
        assert_eq!(full.spec.window_counter.get(), i64::from(10 * MTU));
    }

    #[test]
    fn window_grows_to_maximum() {
        // 93 datagrams; W_max is reached after cbrt(93 * 0.2 / 0.4) = 3.596 s.
        let mut cubic = cubic(131_072, |_| ());
        let seen = windows(
            &mut cubic,
            &[50 * US, SECOND, 3 * SECOND, 4 * SECOND, 9 * SECOND],
        );
        // 93 - trunc(0.4 * 2.596^3) = 93 - 6; 93 - trunc(0.4 * 0.596^3) = 93.
        assert_eq!(seen, [10, 87, 93, 93, 93]);
        assert_eq!(cubic.spec.window_counter.get(), i64::from(93 * MTU));
    }

    #[test]
    fn window_is_updated_once_per_initial_rtt() {
        let mut cubic = cubic(131_072, |_| ());
        assert_eq!(windows(&mut cubic, &[100 * US, 100 * US + 1]), [10, 75]);
    }

    #[test]
    fn loss_reduces_window_by_a_fifth_urgently() {
        let mut cubic = cubic(131_072, |_| ());
        let update = cubic.update_window(&LOSS, 10 * US);
        assert_eq!((update.window, update.is_urgent), (8 * MTU, true));
        let update = cubic.update_window(&LOSS, 20 * US);
        assert_eq!(update.window, 6 * MTU);
        // Counted from the last loss: W_max of 8 is reached after 1.587 s.
        assert_eq!(windows(&mut cubic, &[20 * US + SECOND, 3 * SECOND]), [8, 9]);
        for _ in 0..50 {
            cubic.update_window(&LOSS, 4 * SECOND);
        }
        assert_eq!(cubic.update_window(&LOSS, 4 * SECOND).window, MTU);
    }

    #[test]
    fn window_of_one_datagram_makes_every_consumption_urgent() {
        let mut cubic = cubic(MTU, |_| ());
        assert!(!cubic.update_window(&QUIET, SECOND).is_urgent);
        let consumed = ReceiverProgress {
            consumed: 32,
            ..QUIET
        };
        assert!(cubic.update_window(&consumed, SECOND).is_urgent);
    }

    #[test]
    fn tcp_mode_grows_with_round_trips() {
        let mut plain = cubic(131_072, |_| ());
        let mut tcp = cubic(131_072, |spec| spec.is_tcp_friendly = true);
        for cubic in [&mut plain, &mut tcp] {
            cubic.on_rtt_measurement(10_000 * US, 0);
            cubic.update_window(&LOSS, 0);
        }
        // W_max is 10: 10 * 0.8 + 0.6 / 1.8 * t / 10 ms.
        let times = [30_000 * US, 60_000 * US];
        assert_eq!(windows(&mut plain, &times), [9, 9]);
        assert_eq!(windows(&mut tcp, &times), [9, 10]);
        // A round-trip time of zero does not exceed the maximum window.
        let mut hasty = cubic(131_072, |spec| spec.is_tcp_friendly = true);
        hasty.on_rtt_measurement(0, 0);
        hasty.update_window(&LOSS, 0);
        assert_eq!(windows(&mut hasty, &[200 * US]), [93]);
    }

    #[test]
    fn rtt_is_measured_every_four_round_trips() {
        let mut quiet = cubic(131_072, |_| ());
        assert!(!quiet.should_measure_rtt(SECOND));
        let mut cubic = cubic(131_072, |spec| spec.measures_round_trip = true);
        assert!(cubic.should_measure_rtt(0), "at the start");
        assert!(!cubic.should_measure_rtt(400 * US), "no reply yet");
        assert!(cubic.should_measure_rtt(400 * US + 1), "requested again");
        cubic.on_rtt_measurement(5_000 * US, 1_000 * US);
        assert_eq!(cubic.spec.round_trip_counter.get(), 5_000 * US);
        assert!(!cubic.should_measure_rtt(21_000 * US));
        assert!(cubic.should_measure_rtt(21_000 * US + 1));
        // A short round-trip time does not shorten the interval below four initial ones.
        cubic.on_rtt_measurement(3, 30_000 * US);
        assert!(!cubic.should_measure_rtt(30_400 * US));
    }
}
