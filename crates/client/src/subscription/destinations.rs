//! Sources that come and go: destinations, and images that are rejected.

use taran_protocol::command::Command;

use super::Subscription;
use crate::error::AddError;
use crate::image::ImageView;
use crate::pending::Pending;
use crate::registry::Wish;

impl Subscription {
    /// Adds a source to a subscription whose channel says `control-mode=manual`; waits for the driver.
    ///
    /// # Errors
    /// The driver refuses or does not answer.
    pub fn add_destination(&self, channel: &str) -> Result<(), AddError> {
        self.async_add_destination(channel)?.wait()
    }

    /// As [`add_destination`](Self::add_destination), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
        let (client_id, registration_id) = (self.link.client_id, self.check_open(channel)?);
        self.link.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
        )
    }

    /// Removes a source that was added with the same text; waits for the driver.
    ///
    /// # Errors
    /// The driver refuses or does not answer.
    pub fn remove_destination(&self, channel: &str) -> Result<(), AddError> {
        self.async_remove_destination(channel)?.wait()
    }

    /// As [`remove_destination`](Self::remove_destination), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_remove_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
        let (client_id, registration_id) = (self.link.client_id, self.check_open(channel)?);
        self.link.ask(
            |promise| Wish::Operation { promise },
            |correlation_id| Command::RemoveReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
        )
    }

    /// Sends an image away: its publisher is told the reason, and the stream is not received for the driver's image
    /// liveness timeout; waits for the driver.
    ///
    /// # Errors
    /// The driver refuses or does not answer; the reason has more than 1023 bytes.
    pub fn reject_image(&self, image: &ImageView, reason: &str) -> Result<(), AddError> {
        self.async_reject_image(image, reason)?.wait()
    }

    /// As [`reject_image`](Self::reject_image), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_reject_image(
        &self,
        image: &ImageView,
        reason: &str,
    ) -> Result<Pending<()>, AddError> {
        self.link.reject(image, reason)
    }

    fn check_open(&self, channel: &str) -> Result<i64, AddError> {
        crate::link::check_channel(channel)?;
        if self.state.is_closed() {
            return Err(self.link.life.reason().into());
        }
        Ok(self.state.registration_id)
    }
}
