// SPDX-License-Identifier: Apache-2.0
//! Destinations of a multi-destination subscription (MDS), and rejection of images.

use taran_protocol::command::Command;

use super::Subscription;
use crate::error::CommandError;
use crate::image::ImageView;
use crate::pending::Pending;
use crate::registry::Request;

impl Subscription {
    /// Adds a destination to a subscription whose channel has `control-mode=manual`; waits for the driver.
    ///
    /// # Errors
    /// The driver rejects the command or does not answer; the subscription is closed.
    pub fn add_destination(&self, channel: impl AsRef<str>) -> Result<(), CommandError> {
        self.async_add_destination(channel)?.wait()
    }

    /// Like [`add_destination`](Self::add_destination), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_destination(
        &self,
        channel: impl AsRef<str>,
    ) -> Result<Pending<()>, CommandError> {
        let channel = channel.as_ref();
        let (client_id, registration_id) = (self.client.client_id, self.check_open(channel)?);
        self.client.request(
            |completer| Request::Operation { completer },
            |correlation_id| Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
        )
    }

    /// Removes a destination by the channel that it was added with; waits for the driver.
    ///
    /// # Errors
    /// The driver rejects the command or does not answer; the subscription is closed.
    pub fn remove_destination(&self, channel: impl AsRef<str>) -> Result<(), CommandError> {
        self.async_remove_destination(channel)?.wait()
    }

    /// Like [`remove_destination`](Self::remove_destination), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_remove_destination(
        &self,
        channel: impl AsRef<str>,
    ) -> Result<Pending<()>, CommandError> {
        let channel = channel.as_ref();
        let (client_id, registration_id) = (self.client.client_id, self.check_open(channel)?);
        self.client.request(
            |completer| Request::Operation { completer },
            |correlation_id| Command::RemoveReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            },
        )
    }

    /// Rejects an image: `reason` (at most 1023 bytes) is sent to the publisher, and the stream is not received for the
    /// driver's image liveness timeout. Waits for the driver.
    ///
    /// # Errors
    /// The driver rejects the command or does not answer; the reason is too long.
    pub fn reject_image(&self, image: &ImageView, reason: &str) -> Result<(), CommandError> {
        self.async_reject_image(image, reason)?.wait()
    }

    /// Like [`reject_image`](Self::reject_image), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_reject_image(
        &self,
        image: &ImageView,
        reason: &str,
    ) -> Result<Pending<()>, CommandError> {
        self.client.reject(image, reason)
    }

    pub(crate) fn client(&self) -> &std::sync::Arc<crate::client_core::ClientCore> {
        &self.client
    }

    fn check_open(&self, channel: &str) -> Result<i64, CommandError> {
        crate::client_core::check_channel(channel)?;
        if self.state.is_closed() {
            return Err(self.state.close_reason().into());
        }
        Ok(self.state.registration_id)
    }
}
