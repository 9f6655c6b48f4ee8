// SPDX-License-Identifier: Apache-2.0
//! The line of each second: what came back, and how long the round trips took.

use std::time::{Duration, Instant};

const INTERVAL: Duration = Duration::from_secs(1);

/// Collects answers. [`Self::take_line`] returns a line once per second, if there were any.
#[derive(Debug)]
pub(super) struct Report {
    leader: usize,
    next: Instant,
    last: Option<(u64, Duration)>,
    round_trips: Vec<Duration>,
}

impl Report {
    pub(super) fn new(now: Instant) -> Self {
        Self {
            leader: 0,
            next: now + INTERVAL,
            last: None,
            round_trips: Vec::new(),
        }
    }

    pub(super) fn set_leader(&mut self, member: usize) {
        self.leader = member;
    }

    /// Returns the member that leads, as the client knows it.
    pub(super) fn leader(&self) -> usize {
        self.leader
    }

    pub(super) fn add(&mut self, now: Instant, message: u64, round_trip: Duration) {
        if self.round_trips.is_empty() {
            self.next = now + INTERVAL;
        }
        self.last = Some((message, round_trip));
        self.round_trips.push(round_trip);
    }

    pub(super) fn take_line(&mut self, now: Instant) -> Option<String> {
        if now < self.next {
            return None;
        }
        let (message, round_trip) = self.last.take()?;
        self.round_trips.sort_unstable();
        let (count, leader) = (self.round_trips.len(), self.leader);
        let [median, longest] = [count / 2, count - 1].map(|at| duration(self.round_trips[at]));
        self.round_trips.clear();
        Some(format!(
            "\"message {message}\" came back after {}; {count} answers: median {median}, longest {longest}; \
             member {leader} leads\n",
            duration(round_trip)
        ))
    }
}

/// Returns a time with three digits or more.
pub(super) fn duration(time: Duration) -> String {
    match time.as_nanos() {
        0..1_000_000 => format!("{} us", time.as_micros()),
        1_000_000..100_000_000 => format!("{:.1} ms", time.as_secs_f64() * 1e3),
        _ => format!("{} ms", time.as_millis()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_has_the_last_answer_and_the_round_trips_of_its_second() {
        let start = Instant::now();
        let mut report = Report::new(start);
        report.set_leader(2);
        assert_eq!(report.take_line(start + INTERVAL), None, "no answers");
        for (number, micros) in [90_u64, 2_500, 80, 150_000, 70].into_iter().enumerate() {
            report.add(start, number as u64, Duration::from_micros(micros));
        }
        assert_eq!(report.take_line(start), None);
        let line = report.take_line(start + INTERVAL).unwrap();
        assert_eq!(
            line,
            "\"message 4\" came back after 70 us; 5 answers: median 90 us, longest 150 ms; member 2 leads\n"
        );
        assert_eq!(report.take_line(start + 2 * INTERVAL), None);
    }
}
