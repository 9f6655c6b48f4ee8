//! Joining subscriptions to logs, and telling clients that an image is there or gone.

use taran_core::counters::Counter;
use taran_protocol::response::Response;

use super::counters::{Counters, StreamIdentity};
use super::failure::Failure;
use super::ipc::IpcPublication;
use super::network::Image;
use super::replies::Replies;
use super::subscribers::Subscriber;
use super::subscriptions::Subscription;
use crate::boundary::ImageId;

/// Who sends on an IPC publication.
pub(crate) const IPC_SOURCE: &str = "aeron:ipc";

/// An image as it is announced to one subscriber.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ImageNotice<'a> {
    /// Correlation id of the image, or registration id of the IPC publication.
    pub(crate) image_id: i64,
    pub(crate) session_id: i32,
    pub(crate) stream_id: i32,
    pub(crate) subscription_id: i64,
    pub(crate) position_counter_id: i32,
    pub(crate) log_name: &'a str,
    pub(crate) source: &'a str,
}

impl Replies {
    pub(crate) fn image_available(&mut self, notice: &ImageNotice<'_>) {
        self.send(&Response::AvailableImage {
            image_id: notice.image_id,
            session_id: notice.session_id,
            stream_id: notice.stream_id,
            subscription_id: notice.subscription_id,
            position_counter_id: notice.position_counter_id,
            log_name: notice.log_name,
            source_identity: notice.source,
        });
    }

    pub(crate) fn image_unavailable(&mut self, image_id: i64, subscription: &Subscription) {
        self.send(&Response::UnavailableImage {
            image_id,
            subscription_id: subscription.id,
            stream_id: subscription.stream_id,
            channel: &subscription.text,
        });
    }
}

/// Gives a subscription a position on an IPC publication, not yet attached.
pub(crate) fn ipc_position(
    counters: &mut Counters,
    publication: &IpcPublication,
    subscription: &Subscription,
    now_ns: i64,
) -> Result<Subscriber, Failure> {
    let identity = StreamIdentity {
        registration_id: subscription.id,
        session_id: publication.terms.session_id,
        stream_id: subscription.stream_id,
        channel: &subscription.text,
    };
    let position = counters.subscriber_position(
        &identity,
        subscription.client_id,
        publication.registration_id,
        publication.join_position(),
    )?;
    Ok(subscriber(subscription, position, now_ns))
}

/// Gives a subscription a position on an image, not yet attached.
pub(crate) fn image_position(
    counters: &mut Counters,
    image: ImageId,
    session_id: i32,
    subscription: &Subscription,
    join_position: i64,
    now_ns: i64,
) -> Result<Subscriber, Failure> {
    let identity = StreamIdentity {
        registration_id: subscription.id,
        session_id,
        stream_id: subscription.stream_id,
        channel: &subscription.text,
    };
    let position =
        counters.subscriber_position(&identity, subscription.client_id, image.0, join_position)?;
    Ok(subscriber(subscription, position, now_ns))
}

fn subscriber(subscription: &Subscription, position: Counter, now_ns: i64) -> Subscriber {
    let params = &subscription.params;
    Subscriber::new(
        subscription.id,
        position,
        params.tether,
        params.rejoin,
        now_ns,
    )
}

/// Tells the client of a subscription that an image is there to be read.
pub(crate) fn announce_image(
    replies: &mut Replies,
    image: &Image,
    subscription_id: i64,
    position_counter_id: i32,
) {
    replies.image_available(&ImageNotice {
        image_id: image.id.0,
        session_id: image.session_id,
        stream_id: image.stream_id,
        subscription_id,
        position_counter_id,
        log_name: image.log_name(),
        source: &image.source_identity,
    });
}

/// Attaches a subscriber to an IPC publication, then tells its client.
pub(crate) fn attach_ipc(
    replies: &mut Replies,
    publication: &mut IpcPublication,
    subscriber: Subscriber,
) {
    let subscription_id = subscriber.subscription_id;
    let position_counter_id = subscriber.position.id();
    publication.add_subscriber(subscriber);
    announce_ipc(replies, publication, subscription_id, position_counter_id);
}

/// Tells the client of a subscription that an IPC publication is there to be read.
pub(crate) fn announce_ipc(
    replies: &mut Replies,
    publication: &IpcPublication,
    subscription_id: i64,
    position_counter_id: i32,
) {
    replies.image_available(&ImageNotice {
        image_id: publication.registration_id,
        session_id: publication.terms.session_id,
        stream_id: publication.terms.stream_id,
        subscription_id,
        position_counter_id,
        log_name: publication.log.name(),
        source: IPC_SOURCE,
    });
}
