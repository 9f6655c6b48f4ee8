// SPDX-License-Identifier: Apache-2.0
//! A client that sends one message after the other, and awaits its echo.

use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

use taran::{Client, ClientBuilder};
use taran_cluster_client::{ClusterConnection, ClusterContext, ClusterEvent};
use taran_driver::{DriverContext, MediaDriver, ThreadingMode};

use crate::failure::Failure;

/// Interval of messages, unless their echoes take longer.
const INTERVAL: Duration = Duration::from_millis(10);

/// Time for the first election and for each reconnection. A busy machine may need most of it.
const PATIENCE: Duration = Duration::from_secs(60);

/// An event of the client that the demo shows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Happening {
    /// This member leads now.
    Leader(usize),
    /// The session waits for the successor of this member.
    LeaderLost(usize),
    /// The echo of a message has come.
    Answer { message: u64, round_trip: Duration },
}

/// A message whose echo is awaited.
struct InFlight {
    begin: Instant,
    /// Number of the offer; none if the message has to be offered, the first time or again.
    offer: Option<u64>,
}

/// Contract: the caller calls [`do_work`](Self::do_work) with a time that does not run backwards, then takes what has happened with
/// [`next_happening`](Self::next_happening).
pub(super) struct EchoClient {
    driver: MediaDriver,
    client: Client,
    connection: ClusterConnection,
    epoch: Instant,
    /// Number of the message that is sent now, or next.
    message: u64,
    in_flight: Option<InFlight>,
    due: Instant,
    happenings: VecDeque<Happening>,
}

impl EchoClient {
    /// Starts a driver of its own in `dir`, and begins to connect to the members with these ingress endpoints.
    pub(super) fn start(dir: &Path, ingress: &str) -> Result<Self, Failure> {
        let driver = DriverContext::new()
            .aeron_dir(dir.join("client"))
            .threading_mode(ThreadingMode::Shared)
            .term_buffer_length(64 * 1024)
            .delete_dir_on_shutdown(true);
        let driver = MediaDriver::launch(driver).map_err(failed)?;
        let client = ClientBuilder::with_environment::<&str, &str>([])
            .aeron_dir(driver.aeron_dir())
            .client_name("taran cluster demo")
            .connect()
            .map_err(failed)?;
        let epoch = Instant::now();
        let connection = ClusterContext::new(ingress)
            .egress_channel("aeron:udp?endpoint=127.0.0.1:0")
            .message_timeout(PATIENCE)
            .client_name("demo")
            .connecting(&client, 0)
            .map_err(failed)?;
        Ok(Self {
            driver,
            client,
            connection,
            epoch,
            message: 1,
            in_flight: None,
            due: epoch,
            happenings: VecDeque::new(),
        })
    }

    /// Returns the leader while the session is open.
    pub(super) fn leader(&self) -> Option<usize> {
        let leader = self
            .connection
            .leader()
            .filter(|_| self.connection.is_connected());
        leader.and_then(|leader| usize::try_from(leader).ok())
    }

    /// Receives and sends what is due. Returns the amount of work done.
    pub(super) fn do_work(&mut self, now: Instant) -> Result<usize, Failure> {
        let since = now.saturating_duration_since(self.epoch).as_nanos();
        // A demo ends before 292 years have passed.
        let now_ns = i64::try_from(since).unwrap_or(i64::MAX);
        let text = text(self.message);
        let mut is_answered = false;
        // The echo of a message that was sent twice comes twice.
        let work = self.connection.poll(now_ns, |bytes, _| {
            is_answered |= bytes == text.as_bytes();
        });
        if is_answered && let Some(answered) = self.in_flight.take() {
            self.happenings.push_back(Happening::Answer {
                message: self.message,
                // The poll may have waited for the processor: the clock is read again.
                round_trip: answered.begin.elapsed(),
            });
            self.message += 1;
            self.due = now.max(answered.begin + INTERVAL);
        }
        while let Some(event) = self.connection.next_event() {
            self.on_event(&event);
        }
        if let Some(reason) = self.connection.closed_reason() {
            return Err(Failure::Other(format!("the client's session: {reason}")));
        }
        Ok(work + self.send(now)?)
    }

    /// Removes and returns the oldest happening.
    pub(super) fn next_happening(&mut self) -> Option<Happening> {
        self.happenings.pop_front()
    }

    /// Ends session, client and driver.
    pub(super) fn close(self) -> Result<(), Failure> {
        self.connection.close();
        self.client.close();
        self.driver.close().map_err(failed)
    }

    fn on_event(&mut self, event: &ClusterEvent) {
        let id = |member: i32| usize::try_from(member).unwrap_or_default();
        match *event {
            ClusterEvent::Connected { leader, .. } => {
                self.happenings.push_back(Happening::Leader(id(leader)));
            }
            ClusterEvent::NewLeader {
                leader, maybe_lost, ..
            }
            | ClusterEvent::NewSession {
                leader, maybe_lost, ..
            } => {
                self.happenings.push_back(Happening::Leader(id(leader)));
                // Two echoes of one message are better than none.
                if let Some(message) = &mut self.in_flight
                    && message.offer.is_some_and(|offer| offer <= maybe_lost)
                {
                    message.offer = None;
                }
            }
            ClusterEvent::LeaderLost { leader } => {
                self.happenings.push_back(Happening::LeaderLost(id(leader)));
            }
            _ => {}
        }
    }

    fn send(&mut self, now: Instant) -> Result<usize, Failure> {
        let message = match &mut self.in_flight {
            None if self.connection.is_connected() && now >= self.due => {
                self.in_flight.insert(InFlight {
                    begin: Instant::now(),
                    offer: None,
                })
            }
            Some(message) if message.offer.is_none() => message,
            _ => return Ok(0),
        };
        match self.connection.offer(text(self.message).as_bytes()) {
            Ok(number) => {
                message.offer = Some(number);
                Ok(1)
            }
            Err(error) if error.is_retryable() => Ok(0),
            Err(error) => Err(failed(error)),
        }
    }
}

fn text(message: u64) -> String {
    format!("message {message}")
}

fn failed(error: impl std::fmt::Display) -> Failure {
    Failure::Other(format!("the client: {error}"))
}
