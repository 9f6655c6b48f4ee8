// SPDX-License-Identifier: Apache-2.0
//! Timers (`docs/spec/fix-gateway.md` §3.8) and the schedule.

use super::machine::Resetting;
use super::{DisconnectReason, Event, Now, Output, Role, Session, State};

/// Lateness of a tick from which on it says more about this process than about the peer.
const LATE: i64 = 1_000_000_000;
/// Number of equal ResendRequests without progress.
const MAX_TRIES: u32 = 3;

impl Session {
    /// Returns the monotonic time of the next [`tick`](Self::tick), or nothing if there is none to wait for. `now` is
    /// needed for the schedule.
    #[must_use]
    pub fn next_deadline(&self, now: Now) -> Option<i64> {
        let schedule = self.config.schedule.until_change(now.wall);
        let schedule = schedule.map(|until| now.monotonic.saturating_add(until));
        [
            self.connection_deadline(),
            self.cancel_at,
            schedule,
            self.delayed_until,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Returns the next time at which the connection needs a tick.
    fn connection_deadline(&self) -> Option<i64> {
        let config = &self.config;
        let after = |timeout: i64| Some(self.since.saturating_add(timeout));
        let state = match self.state {
            State::Idle => return None,
            State::Connected | State::LogonSent => after(config.logon_timeout),
            State::Authenticating => after(config.auth_timeout),
            State::LogoutSent | State::LogoutReceived => after(config.logout_timeout),
            State::Active => None,
        };
        let partial = self
            .partial_since
            .map(|since| since.saturating_add(config.frame_timeout));
        let is_beating = self.state == State::Active && self.heartbeat > 0;
        let beat = is_beating.then(|| self.last_sent.saturating_add(self.heartbeat));
        let quiet = is_beating.then(|| {
            if self.is_testing {
                self.dead_at()
            } else {
                self.test_at()
            }
        });
        let gap = self
            .gap
            .map(|gap| gap.at.saturating_add(config.resend_timeout));
        [state, partial, beat, quiet, gap, self.logout_by]
            .into_iter()
            .flatten()
            .min()
    }

    fn test_at(&self) -> i64 {
        self.quiet_for(self.config.test_percent)
    }

    fn dead_at(&self) -> i64 {
        self.quiet_for(self.config.dead_percent)
            .max(self.dead_after)
    }

    fn quiet_for(&self, percent: u32) -> i64 {
        let time = self.heartbeat.saturating_mul(i64::from(percent)) / 100;
        self.last_received.saturating_add(time)
    }

    /// Takes the time.
    pub fn tick<O: Output>(&mut self, now: Now, out: &mut O) {
        let time = now.monotonic;
        if self.cancel_at.is_some_and(|at| time >= at) {
            self.cancel_at = None;
            out.event(Event::CancelOrders);
        }
        self.follow_schedule(now, out);
        let is_late = self
            .connection_deadline()
            .is_some_and(|deadline| time.saturating_sub(deadline) > LATE);
        let age = time.saturating_sub(self.since);
        match self.state {
            State::Idle => return,
            State::Connected | State::LogonSent if age >= self.config.logon_timeout => {
                self.close(DisconnectReason::LogonTimeout, now, out);
                return;
            }
            State::Authenticating if age >= self.config.auth_timeout => {
                self.close(DisconnectReason::NotAuthenticated, now, out);
                return;
            }
            State::LogoutSent if age >= self.config.logout_timeout => {
                self.close(DisconnectReason::LogoutTimeout, now, out);
                return;
            }
            State::LogoutReceived if age >= self.config.logout_timeout => {
                self.close(DisconnectReason::LoggedOut, now, out);
                return;
            }
            _ => {}
        }
        let is_stuck = self
            .partial_since
            .is_some_and(|since| time.saturating_sub(since) >= self.config.frame_timeout);
        if is_stuck {
            let reason = DisconnectReason::FrameTimeout;
            self.log_out_now(b"Incomplete message", None, reason, now, out);
            return;
        }
        if self.state == State::Active {
            self.tick_active(is_late, now, out);
        }
    }

    fn tick_active<O: Output>(&mut self, is_late: bool, now: Now, out: &mut O) {
        let time = now.monotonic;
        if self.logout_by.is_some_and(|by| time >= by) {
            self.logout_by = None;
            self.peer_logged_out(now, out);
            return;
        }
        if self.heartbeat > 0 {
            if self.is_testing && time >= self.dead_at() {
                if !is_late {
                    self.close(DisconnectReason::HeartbeatTimeout, now, out);
                    return;
                }
                // The peer may have answered while this process did not run.
                self.dead_after = time.saturating_add(self.heartbeat);
            }
            if !self.is_testing && time >= self.test_at() {
                if time >= self.dead_at() {
                    self.dead_after = time.saturating_add(self.heartbeat);
                }
                self.test(now, out);
            }
            if time.saturating_sub(self.last_sent) >= self.heartbeat {
                self.send_heartbeat(None, now, out);
            }
        }
        let timeout = self.config.resend_timeout;
        if let Some(gap) = self
            .gap
            .filter(|gap| time.saturating_sub(gap.at) >= timeout)
        {
            if gap.tries >= MAX_TRIES {
                let reason = DisconnectReason::GapNotFilled;
                self.log_out_now(
                    b"Missing messages were not sent again",
                    None,
                    reason,
                    now,
                    out,
                );
            } else {
                self.ask(now, out);
            }
        }
    }

    fn test<O: Output>(&mut self, now: Now, out: &mut O) {
        // The id of a drain stays the one that is awaited.
        if !matches!(self.resetting, Resetting::Draining(_)) {
            self.tests += 1;
        }
        self.send_test(now, out);
    }

    /// Logs out at the end of a period, and resets with a new one.
    pub(super) fn follow_schedule<O: Output>(&mut self, now: Now, out: &mut O) {
        let period = self.config.schedule.period(now.wall);
        let is_other =
            period.is_none() || (period != self.numbers.period && self.numbers.period.is_some());
        if is_other && self.was_active && self.state != State::Idle {
            // Logged on from a period that has ended.
            self.log_out(b"End of session time", None, now, out);
            return;
        }
        if period.is_none() {
            if !matches!(
                self.state,
                State::Idle | State::LogoutSent | State::LogoutReceived
            ) {
                self.close(DisconnectReason::OutOfSchedule, now, out);
            }
            return;
        }
        if period == self.numbers.period {
            return;
        }
        let is_new = self.numbers.period.is_some();
        self.numbers.period = period;
        if is_new && self.config.schedule.resets() {
            self.restart_numbers(out);
        }
    }

    /// Returns true if a peer may connect, or this side should, at this time.
    #[must_use]
    pub fn is_in_schedule(&self, now: Now) -> bool {
        self.config.schedule.period(now.wall).is_some()
    }

    /// Returns the role of the session.
    #[must_use]
    pub const fn role(&self) -> Role {
        self.config.role
    }
}
