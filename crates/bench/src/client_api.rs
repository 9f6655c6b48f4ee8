// SPDX-License-Identifier: Apache-2.0
//! Traits for client libraries, so that several libraries can be measured under the same load.

use std::time::{Duration, Instant};

use taran::{ExclusivePublication, Subscription};

use crate::side::{RunError, Side};

/// One side of a benchmark: a client, and the agents that its thread invokes.
pub trait BenchClient {
    /// Type of its exclusive publications.
    type Publication: BenchPublication;
    /// Type of its subscriptions.
    type Subscription: BenchSubscription;

    /// Adds an exclusive publication.
    ///
    /// # Errors
    /// The error of the client.
    fn publication(&mut self, channel: &str, stream_id: i32)
    -> Result<Self::Publication, RunError>;

    /// Adds a subscription.
    ///
    /// # Errors
    /// The error of the client.
    fn subscription(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Self::Subscription, RunError>;

    /// Runs one duty cycle of everything that the thread invokes besides the benchmark.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] once the benchmark has to end.
    fn duty_cycle(&mut self) -> Result<(), RunError>;

    /// Returns true if the driver and the client run in [`Self::duty_cycle`].
    fn is_invoked(&self) -> bool;

    /// Runs duty cycles until `condition` returns true.
    ///
    /// # Errors
    /// [`RunError::TimedOut`] with `what` after `timeout`.
    fn wait(
        &mut self,
        timeout: Duration,
        what: &'static str,
        mut condition: impl FnMut() -> bool,
    ) -> Result<(), RunError> {
        let deadline = Instant::now() + timeout;
        while !condition() {
            if Instant::now() > deadline {
                return Err(RunError::TimedOut(timeout, what));
            }
            self.duty_cycle()?;
            if !self.is_invoked() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

/// An exclusive publication.
pub trait BenchPublication {
    /// Returns true if a subscriber is connected.
    fn is_connected(&self) -> bool;

    /// Returns the most bytes that a message in one frame can carry.
    fn max_payload_length(&self) -> usize;

    /// Claims a frame for `length` bytes, lets `fill` write the payload and commits it. Returns false if the send has
    /// to be tried again, for example because of back-pressure.
    ///
    /// # Errors
    /// Errors that a later attempt cannot succeed after.
    fn send(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) -> Result<bool, RunError>;
}

/// A subscription.
pub trait BenchSubscription {
    /// Returns true if the subscription has an image.
    fn is_connected(&self) -> bool;

    /// Polls at most `limit` fragments; returns their number.
    ///
    /// # Errors
    /// The error of the client.
    fn receive(&mut self, limit: usize, take: impl FnMut(&[u8])) -> Result<usize, RunError>;
}

impl BenchClient for Side {
    type Publication = ExclusivePublication;
    type Subscription = Subscription;

    fn publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication, RunError> {
        self.add_exclusive_publication(channel, stream_id)
    }

    fn subscription(&mut self, channel: &str, stream_id: i32) -> Result<Subscription, RunError> {
        self.add_subscription(channel, stream_id)
    }

    #[inline]
    fn duty_cycle(&mut self) -> Result<(), RunError> {
        Side::duty_cycle(self)
    }

    fn is_invoked(&self) -> bool {
        Side::is_invoked(self)
    }
}

impl BenchPublication for ExclusivePublication {
    fn is_connected(&self) -> bool {
        ExclusivePublication::is_connected(self)
    }

    fn max_payload_length(&self) -> usize {
        ExclusivePublication::max_payload_length(self)
    }

    #[inline]
    fn send(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) -> Result<bool, RunError> {
        match self.try_claim(length) {
            Ok(mut claim) => {
                fill(&mut claim);
                claim.commit();
                Ok(true)
            }
            Err(error) if error.is_retryable() => Ok(false),
            Err(error) => Err(error.into()),
        }
    }
}

impl BenchSubscription for Subscription {
    fn is_connected(&self) -> bool {
        Subscription::is_connected(self)
    }

    #[inline]
    fn receive(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> Result<usize, RunError> {
        Ok(self.poll(|message, _| take(message), limit)?)
    }
}
