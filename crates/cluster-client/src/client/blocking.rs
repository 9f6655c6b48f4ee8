// SPDX-License-Identifier: Apache-2.0
//! A client that waits, for threads of its own.

use std::time::{Duration, Instant};

use taran::idle::{Backoff, IdleStrategy};
use taran::{Action, Client, Clock, SystemClock};

use super::{
    ClusterClaim, ClusterConnection, ClusterContext, ClusterOfferError, ConnectClusterError,
    EgressMessageInfo,
};
use crate::session::{ClosedReason, ClusterEvent, ClusterState, MemberId};

/// A session with a cluster, over a [`ClusterConnection`], with the clock of the system.
///
/// It must be polled, also when nothing is awaited: polls send keep-alives, and follow the cluster to a new leader.
#[derive(Debug)]
pub struct ClusterClient {
    connection: ClusterConnection,
    clock: SystemClock,
    session_id: i64,
}

impl ClusterClient {
    pub(super) fn connect(
        context: &ClusterContext,
        client: &Client,
    ) -> Result<Self, ConnectClusterError> {
        let mut clock = SystemClock::new();
        let mut idle = Backoff::default();
        let mut connection = context.connecting(client, clock.now().nanos)?;
        loop {
            let work = client.run_invoked().unwrap_or(0)
                // The application polls what comes after the answer.
                + connection.controlled_poll(clock.now().nanos, |_, _| Action::Abort);
            if let Some(reason) = connection.closed_reason() {
                return Err(reason.clone().into());
            }
            if let (true, Some(session_id)) = (connection.is_connected(), connection.session_id()) {
                return Ok(Self {
                    connection,
                    clock,
                    session_id,
                });
            }
            idle.idle(work, &mut std::thread::sleep);
        }
    }

    /// Returns the id of the session.
    #[must_use]
    pub fn session_id(&self) -> i64 {
        self.connection.session_id().unwrap_or(self.session_id)
    }

    /// Returns the last known leader.
    #[must_use]
    pub fn leader(&self) -> MemberId {
        self.connection.leader().unwrap_or(-1)
    }

    /// Returns the state.
    #[must_use]
    pub fn state(&self) -> ClusterState {
        self.connection.state()
    }

    /// Returns why the session is closed; none while it is not.
    #[must_use]
    pub fn closed_reason(&self) -> Option<&ClosedReason> {
        self.connection.closed_reason()
    }

    /// Returns the connection.
    #[must_use]
    pub const fn connection(&self) -> &ClusterConnection {
        &self.connection
    }

    /// Returns the connection, for a caller that polls it with a clock of its own.
    #[must_use]
    pub fn into_connection(self) -> ClusterConnection {
        self.connection
    }

    /// Removes and returns the oldest event.
    pub fn next_event(&mut self) -> Option<ClusterEvent> {
        self.connection.next_event()
    }

    /// Passes application messages to `handler`, without waiting. Returns the amount of work done.
    ///
    /// # Errors
    /// The session is closed. What was received before was passed to the handler.
    pub fn poll(
        &mut self,
        handler: impl FnMut(&[u8], &EgressMessageInfo),
    ) -> Result<usize, ClosedReason> {
        let now_ns = self.clock.now().nanos;
        let invoked = self.connection.client().run_invoked().unwrap_or(0);
        let work = invoked + self.connection.poll(now_ns, handler);
        match self.connection.closed_reason() {
            Some(reason) if work == 0 => Err(reason.clone()),
            _ => Ok(work),
        }
    }

    /// Like [`poll`](Self::poll), but `handler` controls after each message how the poll goes on.
    ///
    /// # Errors
    /// As for [`poll`](Self::poll).
    pub fn controlled_poll(
        &mut self,
        handler: impl FnMut(&[u8], &EgressMessageInfo) -> Action,
    ) -> Result<usize, ClosedReason> {
        let now_ns = self.clock.now().nanos;
        let invoked = self.connection.client().run_invoked().unwrap_or(0);
        let work = invoked + self.connection.controlled_poll(now_ns, handler);
        match self.connection.closed_reason() {
            Some(reason) if work == 0 => Err(reason.clone()),
            _ => Ok(work),
        }
    }

    /// Sends a message to the cluster, without waiting. Returns its number, from 1.
    ///
    /// # Errors
    /// The session is closed, there is no leader now, or there is no room now.
    pub fn offer(&mut self, message: &[u8]) -> Result<u64, ClusterOfferError> {
        self.connection.offer(message)
    }

    /// Sends a message that consists of parts, like [`offer`](Self::offer).
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn offer_parts(&mut self, parts: &[&[u8]]) -> Result<u64, ClusterOfferError> {
        self.connection.offer_parts(parts)
    }

    /// Claims space for a message, see [`ClusterConnection::try_claim`].
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn try_claim(&mut self, length: usize) -> Result<ClusterClaim<'_>, ClusterOfferError> {
        self.connection.try_claim(length)
    }

    /// Sends a message to the cluster, and waits for room and for a leader, for at most the message timeout. Messages that are
    /// received meanwhile are kept for the next poll.
    ///
    /// # Errors
    /// The session is closed, the message is too long, or the timeout has passed.
    pub fn offer_blocking(&mut self, message: &[u8]) -> Result<u64, ClusterOfferError> {
        let timeout = self.connection.context().message_timeout;
        self.offer_for(message, timeout)
    }

    /// Like [`offer_blocking`](Self::offer_blocking), with a time limit.
    ///
    /// # Errors
    /// As for [`offer_blocking`](Self::offer_blocking).
    pub fn offer_for(
        &mut self,
        message: &[u8],
        timeout: Duration,
    ) -> Result<u64, ClusterOfferError> {
        let begin = Instant::now();
        let mut idle = Backoff::default();
        loop {
            let error = match self.offer(message) {
                Ok(number) => return Ok(number),
                Err(error) if error.is_retryable() => error,
                Err(error) => return Err(error),
            };
            if begin.elapsed() >= timeout {
                return Err(ClusterOfferError::Timeout {
                    after: timeout,
                    last: Box::new(error),
                });
            }
            let now_ns = self.clock.now().nanos;
            let invoked = self.connection.client().run_invoked().unwrap_or(0);
            let polled = self
                .connection
                .controlled_poll(now_ns, |_, _| Action::Abort);
            idle.idle(invoked + polled, &mut std::thread::sleep);
        }
    }

    /// Asks the cluster to take a snapshot, see [`ClusterConnection::request_snapshot`].
    ///
    /// # Errors
    /// As for [`offer`](Self::offer).
    pub fn request_snapshot(&mut self) -> Result<i64, ClusterOfferError> {
        self.connection.request_snapshot()
    }

    /// Closes the session.
    pub fn close(self) {
        self.connection.close();
    }
}
