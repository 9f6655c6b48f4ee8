// SPDX-License-Identifier: Apache-2.0
//! Creation and removal of images.

use std::path::PathBuf;
use std::sync::Arc;

use super::logs::{self, OpenedLog, UnusableLog};
use crate::client_core::ClientCore;
use crate::error::ClientError;
use crate::image::{ImageParams, ImageView};
use crate::subscription::SubscriptionState;
use crate::trace::event;

/// Description of a new image, from a response of the driver or from its counters.
pub(super) struct NewImage<'a> {
    pub(super) image_id: i64,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) subscription_id: i64,
    pub(super) position_counter_id: i32,
    pub(super) log_name: &'a str,
    pub(super) source_identity: &'a str,
}

/// Adds an image to its subscription and calls the available-image handler.
pub(super) fn on_available(client: &Arc<ClientCore>, new_image: &NewImage<'_>) {
    let Some(subscription) = client
        .registry()
        .subscriptions
        .get(&new_image.subscription_id)
        .cloned()
    else {
        return;
    };
    // After overwritten responses the image may have been found in the counters already.
    if subscription.image(new_image.image_id).is_some() {
        return;
    }
    match create(client, new_image) {
        Ok(image) => {
            if subscription.add(image.clone()) {
                event!(
                    debug,
                    "image available",
                    session_id = image.session_id(),
                    stream_id = image.stream_id(),
                    source = image.source_identity(),
                    subscription_id = image.subscription_registration_id(),
                );
                subscription.notify_available(&client.handlers, &image);
            }
        }
        Err(UnusableLog { path, reason }) => client.handlers.report(&ClientError::Image {
            correlation_id: new_image.image_id,
            subscription_id: new_image.subscription_id,
            path,
            reason,
        }),
    }
}

fn create(client: &Arc<ClientCore>, new_image: &NewImage<'_>) -> Result<ImageView, UnusableLog> {
    let unusable = |reason: String| UnusableLog {
        path: PathBuf::from(new_image.log_name),
        reason,
    };
    let OpenedLog { path, log } = logs::open(client, new_image.log_name)?;
    let counter_id = new_image.position_counter_id;
    let counter = client
        .counters()
        .counter(counter_id)
        .ok_or_else(|| unusable(format!("its position counter {counter_id} does not exist")))?;
    let join_position = counter.get();
    if join_position < 0
        || join_position % 32 != 0
        || join_position >= log.geometry().max_position()
    {
        return Err(unusable(format!(
            "its position counter {counter_id} has the value {join_position}, which is not a valid position"
        )));
    }
    Ok(ImageView::new(ImageParams {
        client: Arc::downgrade(client),
        correlation_id: new_image.image_id,
        subscription_id: new_image.subscription_id,
        session_id: new_image.session_id,
        stream_id: new_image.stream_id,
        source_identity: new_image.source_identity.to_owned(),
        counter_id,
        counter,
        join_position,
        log_path: path,
        storage: Arc::clone(&client.settings.storage),
        log,
    }))
}

/// Processes the response that an image has become unavailable.
pub(super) fn on_unavailable(client: &ClientCore, subscription_id: i64, image_id: i64) {
    let Some(subscription) = client
        .registry()
        .subscriptions
        .get(&subscription_id)
        .cloned()
    else {
        return;
    };
    remove(client, &subscription, image_id);
}

/// Removes an image from its subscription and calls the unavailable-image handler.
pub(super) fn remove(client: &ClientCore, subscription: &SubscriptionState, image_id: i64) {
    if let Some(image) = subscription.remove(image_id) {
        event!(
            debug,
            "image unavailable",
            session_id = image.session_id(),
            stream_id = image.stream_id(),
            position = image.position(),
            subscription_id = image.subscription_registration_id(),
        );
        client.resource_linger.add(Arc::clone(image.log()));
        subscription.notify_unavailable(&client.handlers, &image);
    }
}

/// Reports logs in which a poll has found a corrupt frame. Does not allocate while there is none: in invoker mode this
/// runs on the polling thread.
pub(super) fn report_damage(client: &ClientCore) {
    loop {
        let damaged = client
            .registry()
            .subscriptions
            .values()
            .find_map(|subscription| subscription.take_damaged());
        // The handler runs without the lock.
        let Some(image) = damaged else { return };
        client.handlers.report(&ClientError::Image {
            correlation_id: image.correlation_id(),
            subscription_id: image.subscription_registration_id(),
            path: image.log_path().to_path_buf(),
            reason: format!(
                "the frame at position {} has an invalid length; another process has damaged the log",
                image.position()
            ),
        });
    }
}
