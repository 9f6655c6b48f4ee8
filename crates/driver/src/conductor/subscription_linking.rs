// SPDX-License-Identifier: Apache-2.0
//! Linking of subscriptions to logs, and notification of clients about images.

use taran_protocol::response::Response;

use super::counters::{Counters, StreamIdentity};
use super::failure::Failure;
use super::ipc::IpcPublication;
use super::network::{Image, NetworkPublication};
use super::publication_config::PublicationConfig;
use super::publication_log::PublicationLog;
use super::response_sender::ResponseSender;
use super::subscribers::Subscriber;
use super::subscriptions::Subscription;

/// Source identity of images that are read without the network.
const LOCAL_SOURCE: &str = "aeron:ipc";

/// Descriptor of a readable log, as sent to clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LogDescriptor<'a> {
    /// Correlation id of the image, or registration id of a publication that is read locally.
    image_id: i64,
    session_id: i32,
    stream_id: i32,
    log_name: &'a str,
    source: &'a str,
}

impl<'a> LogDescriptor<'a> {
    fn local(config: &PublicationConfig, log: &'a PublicationLog) -> Self {
        Self {
            image_id: config.registration_id,
            session_id: config.session_id,
            stream_id: config.stream_id,
            log_name: log.name(),
            source: LOCAL_SOURCE,
        }
    }

    pub(crate) fn image_id(&self) -> i64 {
        self.image_id
    }

    /// Returns the descriptor for IPC subscriptions.
    pub(crate) fn ipc(publication: &'a IpcPublication) -> Self {
        Self::local(&publication.config, &publication.log)
    }

    /// Returns the descriptor for spies.
    pub(crate) fn spy(publication: &'a NetworkPublication) -> Self {
        Self::local(&publication.config, &publication.log)
    }

    /// Returns the descriptor for network subscriptions.
    pub(crate) fn image(image: &'a Image) -> Self {
        Self {
            image_id: image.id.0,
            session_id: image.session_id,
            stream_id: image.stream_id,
            log_name: image.log_name(),
            source: &image.source_identity,
        }
    }
}

impl ResponseSender {
    /// Sends ON_AVAILABLE_IMAGE to the client of a subscription.
    pub(crate) fn send_available_image(
        &mut self,
        descriptor: &LogDescriptor<'_>,
        subscription: &Subscription,
        position_counter_id: i32,
    ) {
        self.send(&Response::AvailableImage {
            image_id: descriptor.image_id,
            session_id: descriptor.session_id,
            stream_id: descriptor.stream_id,
            subscription_id: subscription.registration_id,
            position_counter_id,
            log_name: descriptor.log_name,
            source_identity: descriptor.source,
        });
    }

    pub(crate) fn send_unavailable_image(&mut self, image_id: i64, subscription: &Subscription) {
        self.send(&Response::UnavailableImage {
            image_id,
            subscription_id: subscription.registration_id,
            stream_id: subscription.stream_id,
            channel: &subscription.text,
        });
    }
}

/// Creates a subscriber position at `join_position` of the log of `image_id`. The caller attaches it.
pub(crate) fn join(
    counters: &mut Counters,
    image_id: i64,
    session_id: i32,
    join_position: i64,
    subscription: &Subscription,
    now_ns: i64,
) -> Result<Subscriber, Failure> {
    let identity = StreamIdentity {
        registration_id: subscription.registration_id,
        session_id,
        stream_id: subscription.stream_id,
        channel: &subscription.text,
    };
    let position =
        counters.subscriber_position(&identity, subscription.client_id, image_id, join_position)?;
    Ok(Subscriber::new(
        subscription.id,
        position,
        subscription.params.tether,
        subscription.params.rejoin,
        now_ns,
    ))
}
