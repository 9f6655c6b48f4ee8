// SPDX-License-Identifier: Apache-2.0
//! Adding and removing subscriptions.

use taran_protocol::command::Command;

use super::Client;
use crate::client_core::check_channel;
use crate::error::CommandError;
use crate::handlers::ImageHandlers;
use crate::pending::Pending;
use crate::registry::Request;
use crate::removal::ResourceKind;
use crate::subscription::Subscription;

impl Client {
    /// Adds a subscription and waits for the driver. New and ended images are reported to the handlers of the builder.
    ///
    /// # Errors
    /// The driver rejects the command, for instance because of the channel; it does not answer; the client is closed.
    pub fn add_subscription(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Subscription, CommandError> {
        self.add_subscription_with(channel, stream_id, ImageHandlers::new())
    }

    /// Adds a subscription with its own image handlers and waits for the driver.
    ///
    /// # Errors
    /// As for [`add_subscription`](Self::add_subscription).
    pub fn add_subscription_with(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: ImageHandlers,
    ) -> Result<Subscription, CommandError> {
        self.async_add_subscription_with(channel, stream_id, handlers)?
            .wait()
    }

    /// Like [`add_subscription`](Self::add_subscription), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_subscription(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<Subscription>, CommandError> {
        self.async_add_subscription_with(channel, stream_id, ImageHandlers::new())
    }

    /// Like [`add_subscription_with`](Self::add_subscription_with), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_subscription_with(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: ImageHandlers,
    ) -> Result<Pending<Subscription>, CommandError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.core().request(
            |completer| Request::Subscription {
                channel: channel.to_owned(),
                stream_id,
                handlers,
                completer,
            },
            |correlation_id| Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    /// Closes the subscription of this client with a registration id. The result is available when the driver has
    /// removed the subscription. A subscription that is still being added is withdrawn: its [`Pending`] fails with
    /// [`CommandError::Withdrawn`]. If the driver then rejects the add command, the removal fails because the driver does
    /// not know the subscription.
    ///
    /// # Errors
    /// [`CommandError::UnknownRegistration`] if this client has no such subscription; the client is closed.
    pub fn async_remove_subscription(
        &self,
        registration_id: i64,
    ) -> Result<Pending<()>, CommandError> {
        self.core()
            .remove(ResourceKind::Subscription, registration_id)
    }
}
