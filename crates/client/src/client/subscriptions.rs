//! Adding and removing subscriptions.

use taran_protocol::command::Command;

use super::Client;
use crate::error::AddError;
use crate::handlers::ImageHandlers;
use crate::link::check_channel;
use crate::pending::Pending;
use crate::registry::Wish;
use crate::removal::Kind;
use crate::subscription::Subscription;

impl Client {
    /// Adds a subscription. Images that become available or unavailable are told to the handlers of the context.
    ///
    /// # Errors
    /// The driver refuses, for instance because of the channel; it does not answer; the client has ended.
    pub fn add_subscription(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Subscription, AddError> {
        self.add_subscription_with(channel, stream_id, ImageHandlers::new())
    }

    /// Adds a subscription with handlers of its own.
    ///
    /// # Errors
    /// As [`add_subscription`](Self::add_subscription).
    pub fn add_subscription_with(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: ImageHandlers,
    ) -> Result<Subscription, AddError> {
        self.async_add_subscription_with(channel, stream_id, handlers)?
            .wait()
    }

    /// As [`add_subscription`](Self::add_subscription), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_subscription(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Result<Pending<Subscription>, AddError> {
        self.async_add_subscription_with(channel, stream_id, ImageHandlers::new())
    }

    /// As [`add_subscription_with`](Self::add_subscription_with), without waiting.
    ///
    /// # Errors
    /// The command could not be sent.
    pub fn async_add_subscription_with(
        &self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: ImageHandlers,
    ) -> Result<Pending<Subscription>, AddError> {
        let channel = channel.as_ref();
        check_channel(channel)?;
        let client_id = self.client_id();
        self.link().ask(
            |promise| Wish::Subscription {
                channel: channel.to_owned(),
                stream_id,
                handlers,
                promise,
            },
            |correlation_id| Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            },
        )
    }

    /// Closes the subscription of this client with that registration id, and answers when the driver has given it up.
    /// One that is still being added is withdrawn: its [`Pending`] fails with [`AddError::Withdrawn`]; should the driver
    /// refuse it afterwards, the answer is that it is unknown.
    ///
    /// # Errors
    /// [`AddError::UnknownRegistration`] if this client has no such subscription; the client has ended.
    pub fn async_remove_subscription(&self, registration_id: i64) -> Result<Pending<()>, AddError> {
        self.link().remove(Kind::Subscription, registration_id)
    }
}
