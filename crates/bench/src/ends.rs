//! What a benchmark asks of a client library, so that several can be put under the same load.

use std::time::{Duration, Instant};

use taran::{ExclusivePublication, Subscription};

use crate::side::{RunError, Side};

/// One side of a benchmark: a client, with whatever else its thread has to run.
pub trait Host {
    /// Its exclusive publications.
    type Publication: Outgoing;
    /// Its subscriptions.
    type Subscription: Incoming;

    /// Adds an exclusive publication.
    ///
    /// # Errors
    /// As the client says.
    fn publication(&mut self, channel: &str, stream_id: i32)
    -> Result<Self::Publication, RunError>;

    /// Adds a subscription.
    ///
    /// # Errors
    /// As the client says.
    fn subscription(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Self::Subscription, RunError>;

    /// One turn of what the thread has to run besides the benchmark.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] once the benchmark is to end.
    fn turn(&mut self) -> Result<(), RunError>;

    /// Whether the driver and the client run in [`Self::turn`].
    fn is_invoked(&self) -> bool;

    /// Turns until `condition` holds.
    ///
    /// # Errors
    /// [`RunError::TimedOut`], naming `what`, after `patience`.
    fn wait(
        &mut self,
        patience: Duration,
        what: &'static str,
        mut condition: impl FnMut() -> bool,
    ) -> Result<(), RunError> {
        let deadline = Instant::now() + patience;
        while !condition() {
            if Instant::now() > deadline {
                return Err(RunError::TimedOut(patience, what));
            }
            self.turn()?;
            if !self.is_invoked() {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        Ok(())
    }
}

/// An exclusive publication.
pub trait Outgoing {
    /// Whether somebody receives.
    fn is_connected(&self) -> bool;

    /// Most bytes that a message in one frame carries.
    fn max_payload_length(&self) -> usize;

    /// Claims a frame for `length` bytes, lets `fill` write them and publishes it. `false`: not now, try again.
    ///
    /// # Errors
    /// What will not go away.
    fn send(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) -> Result<bool, RunError>;
}

/// A subscription.
pub trait Incoming {
    /// Whether there is a stream.
    fn is_connected(&self) -> bool;

    /// Takes up to `limit` fragments; gives how many it were.
    ///
    /// # Errors
    /// What will not go away.
    fn receive(&mut self, limit: usize, take: impl FnMut(&[u8])) -> Result<usize, RunError>;
}

impl Host for Side {
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
    fn turn(&mut self) -> Result<(), RunError> {
        Side::turn(self)
    }

    fn is_invoked(&self) -> bool {
        Side::is_invoked(self)
    }
}

impl Outgoing for ExclusivePublication {
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

impl Incoming for Subscription {
    fn is_connected(&self) -> bool {
        Subscription::is_connected(self)
    }

    #[inline]
    fn receive(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> Result<usize, RunError> {
        Ok(self.poll(|message, _| take(message), limit)?)
    }
}
