// SPDX-License-Identifier: Apache-2.0
//! A client of a cluster with messages on a schedule, the same for clusters of all implementations.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use clap::Args;
use taran_bench::payload;
use taran_bench::schedule::Schedule;
use taran_bench::side::{RunError, Side, SideSpec, launch_embedded};
use taran_cluster_client::{ClusterConnection, ClusterContext, ClusterEvent};
use taran_core::clock::{Clock, SystemClock};

/// Time limit for the first session and for each successor of a leader; official members need 11 s and more.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Time for the driver to send the end of a session.
const CLOSING: Duration = Duration::from_millis(20);
/// Messages that are sent between two polls.
const BURST: u32 = 16;
/// Channels with room for the messages that are on their way at the highest rates.
const INGRESS: &str = "aeron:udp?term-length=4m";
const EGRESS: &str = "aeron:udp?endpoint=127.0.0.1:0|term-length=4m";

/// Converts an error of the cluster or its client.
pub(crate) fn peer(error: impl fmt::Display) -> RunError {
    RunError::Peer(error.to_string())
}

/// Load of a client.
#[derive(Args, Debug, Clone)]
pub(crate) struct Load {
    /// Ingress endpoints of the members: 0=host:port,1=host:port
    #[arg(long)]
    pub(crate) endpoints: String,
    /// Messages per second
    #[arg(long, default_value_t = 1_000)]
    pub(crate) rate: u64,
    /// Payload bytes of a message
    #[arg(long, default_value_t = 288)]
    pub(crate) length: usize,
    /// Duration of the measurement in milliseconds
    #[arg(long, default_value_t = 1_000)]
    pub(crate) measure_ms: u64,
    /// Duration of the warm-up in milliseconds
    #[arg(long, default_value_t = 500)]
    pub(crate) warmup_ms: u64,
    /// Core of the client and its driver, which then share a thread that never sleeps; without it they sleep when idle
    #[arg(long)]
    pub(crate) cpu: Option<usize>,
}

/// An answer of the cluster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Answer {
    /// When its message was due.
    pub(crate) due_ns: i64,
    /// When it was received.
    pub(crate) received_ns: i64,
}

/// Client with a session.
///
/// Contract: [`schedule`](Self::schedule) sets when messages are due; [`step`](Self::step), called again and again, sends those that
/// are, and passes each answer to its handler.
pub(crate) struct Session {
    // Closed before its driver.
    connection: ClusterConnection,
    side: Side,
    clock: SystemClock,
    length: usize,
    sleeps: bool,
    schedule: Schedule,
    /// Number of the next message of the schedule.
    next: u64,
    /// Messages that the schedule has.
    total: u64,
    /// Number of the next message of the session, which is in the message.
    sequence: u64,
    /// Least number of the next answer.
    expected: u64,
    received: u64,
    /// Answers that are damaged, or not in the order of their messages: a repetition.
    wrong: u64,
    /// Messages without an answer that come before one with an answer.
    lost: u64,
}

impl Session {
    /// Starts a driver and opens a session. It fails in any step once `stop` is set.
    pub(crate) fn open(load: &Load, stop: Arc<AtomicBool>) -> Result<Session, RunError> {
        Session::connect(load, Arc::clone(&stop), &stop)
    }

    /// Starts a driver and opens a session, unless `stop` is set before it is open; the flag has no effect after that.
    pub(crate) fn open_unless(load: &Load, stop: &AtomicBool) -> Result<Session, RunError> {
        Session::connect(load, Arc::default(), stop)
    }

    fn connect(
        load: &Load,
        stop: Arc<AtomicBool>,
        stop_opening: &AtomicBool,
    ) -> Result<Session, RunError> {
        let sleeps = load.cpu.is_none();
        let side = Side::start(&SideSpec {
            aeron_dir: None,
            threading: if sleeps { "SHARED" } else { "INVOKER" }.to_owned(),
            driver_options: Vec::new(),
            launch_driver: launch_embedded,
            cpu: load.cpu,
            idle: taran_bench::client_idle::ClientIdle::Yield,
            stop,
        })?;
        let mut clock = SystemClock::new();
        let start_ns = clock.now().nanos;
        let connection = ClusterContext::new(&load.endpoints)
            .ingress_channel(INGRESS)
            .egress_channel(EGRESS)
            .message_timeout(TIMEOUT)
            .client_name("compare")
            .connecting(side.client(), start_ns)
            .map_err(peer)?;
        let mut session = Session {
            connection,
            side,
            clock,
            length: load.length.max(payload::MIN_LENGTH),
            sleeps,
            schedule: Schedule::new(start_ns, 1, 1),
            next: 0,
            total: 0,
            sequence: 0,
            expected: 0,
            received: 0,
            wrong: 0,
            lost: 0,
        };
        while !session.connection.is_connected() {
            if stop_opening.load(Ordering::Relaxed) {
                return Err(RunError::Interrupted);
            }
            session.step(|_| {})?;
        }
        Ok(session)
    }

    /// Closes the session; the cluster may be full of those that were not.
    pub(crate) fn close(self) -> Result<(), RunError> {
        let Session {
            connection,
            mut side,
            ..
        } = self;
        connection.close();
        // The driver sends the request.
        let begin = Instant::now();
        while begin.elapsed() < CLOSING {
            side.duty_cycle()?;
        }
        Ok(())
    }

    /// Returns the current time.
    pub(crate) fn now_ns(&mut self) -> i64 {
        self.clock.now().nanos
    }

    /// Returns the leader.
    pub(crate) fn leader(&self) -> i32 {
        self.connection.leader().unwrap_or(-1)
    }

    /// Sends `total` messages at `rate` from now on, in place of those of the last schedule that have not been sent.
    pub(crate) fn schedule(&mut self, rate: u64, total: u64) {
        self.schedule = Schedule::new(self.clock.now().nanos, rate, 1);
        (self.next, self.total) = (0, total);
    }

    /// Returns when a message of the schedule is due.
    pub(crate) fn due_ns(&self, index: u64) -> i64 {
        self.schedule.due_ns(index)
    }

    /// Returns the number of messages of the schedule that have been sent.
    pub(crate) fn sent(&self) -> u64 {
        self.next
    }

    /// Returns true if all messages of the schedule have been sent.
    pub(crate) fn is_sent(&self) -> bool {
        self.next == self.total
    }

    /// Returns true if all messages of the schedule have been sent, and the last one has its answer.
    pub(crate) fn is_answered(&self) -> bool {
        self.is_sent() && self.expected == self.sequence
    }

    /// Returns the number of answers.
    pub(crate) fn received(&self) -> u64 {
        self.received
    }

    /// Returns the number of answers that are damaged or repeated.
    pub(crate) fn wrong(&self) -> u64 {
        self.wrong
    }

    /// Returns the number of messages without an answer that come before one with an answer.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Receives and sends what is due.
    #[inline]
    pub(crate) fn step(&mut self, mut on_answer: impl FnMut(Answer)) -> Result<(), RunError> {
        let now_ns = self.clock.now().nanos;
        let Self {
            connection,
            clock,
            length,
            expected,
            received,
            wrong,
            lost,
            ..
        } = self;
        let before = *received;
        connection.poll(now_ns, |message, _| {
            *received += 1;
            match payload::read(message, *length) {
                Ok((due_ns, sequence)) if sequence >= *expected => {
                    *lost += sequence - *expected;
                    *expected = sequence + 1;
                    on_answer(Answer {
                        due_ns,
                        received_ns: clock.now().nanos,
                    });
                }
                _ => *wrong += 1,
            }
        });
        let mut has_work = self.received > before;
        while let Some(event) = self.connection.next_event() {
            if let ClusterEvent::Closed(reason) = event {
                return Err(peer(reason));
            }
        }
        let mut burst = 0;
        while self.next < self.total
            && burst < BURST
            && self.schedule.due_ns(self.next) <= now_ns
            && self.send()?
        {
            burst += 1;
        }
        has_work |= burst > 0;
        self.side.duty_cycle()?;
        if self.sleeps && !has_work {
            std::thread::sleep(Duration::from_micros(100));
        }
        Ok(())
    }

    /// Sends the next message; returns false if there is no room for it, or no leader.
    #[inline]
    fn send(&mut self) -> Result<bool, RunError> {
        let due_ns = self.schedule.due_ns(self.next);
        match self.connection.try_claim(self.length) {
            Ok(mut claim) => {
                payload::write(&mut claim, due_ns, self.sequence);
                claim.commit();
                self.sequence += 1;
                self.next += 1;
                Ok(true)
            }
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(peer(error)),
        }
    }
}
