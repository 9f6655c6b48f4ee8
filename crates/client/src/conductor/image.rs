//! Images come and go.

use std::path::PathBuf;
use std::sync::Arc;

use super::logs::{self, Opened, Unusable};
use crate::error::ClientError;
use crate::image::{ImageFacts, ImageView};
use crate::link::Link;
use crate::subscription::SubscriptionState;

/// What the driver, or its counters, say about a new image.
pub(super) struct Announced<'a> {
    pub(super) image_id: i64,
    pub(super) session_id: i32,
    pub(super) stream_id: i32,
    pub(super) subscription_id: i64,
    pub(super) position_counter_id: i32,
    pub(super) log_name: &'a str,
    pub(super) source_identity: &'a str,
}

/// A subscription has a new image.
pub(super) fn available(link: &Arc<Link>, announced: &Announced<'_>) {
    let Some(subscription) = link
        .registry()
        .subscriptions
        .get(&announced.subscription_id)
        .cloned()
    else {
        return;
    };
    // After responses were overwritten an image may have been found in the counters already.
    if subscription.image(announced.image_id).is_some() {
        return;
    }
    match make(link, announced) {
        Ok(image) => {
            if subscription.add(image.clone()) {
                subscription.tell_available(&link.handlers, &image);
            }
        }
        Err(Unusable { path, reason }) => link.handlers.report(&ClientError::Image {
            correlation_id: announced.image_id,
            subscription_id: announced.subscription_id,
            path,
            reason,
        }),
    }
}

fn make(link: &Arc<Link>, announced: &Announced<'_>) -> Result<ImageView, Unusable> {
    let unusable = |reason: String| Unusable {
        path: PathBuf::from(announced.log_name),
        reason,
    };
    let Opened { path, log } = logs::open(link, announced.log_name)?;
    let counter_id = announced.position_counter_id;
    let counter = link
        .counters()
        .counter(counter_id)
        .ok_or_else(|| unusable(format!("there is no position counter {counter_id}")))?;
    let join_position = counter.get();
    if join_position < 0
        || join_position % 32 != 0
        || join_position >= log.geometry().max_position()
    {
        return Err(unusable(format!(
            "its position counter {counter_id} is at {join_position}, which is no position"
        )));
    }
    Ok(ImageView::new(ImageFacts {
        link: Arc::downgrade(link),
        correlation_id: announced.image_id,
        subscription_id: announced.subscription_id,
        session_id: announced.session_id,
        stream_id: announced.stream_id,
        source_identity: announced.source_identity.to_owned(),
        counter_id,
        counter,
        join_position,
        log_path: path,
        log,
    }))
}

/// An image has ended.
pub(super) fn unavailable(link: &Link, subscription_id: i64, image_id: i64) {
    let Some(subscription) = link.registry().subscriptions.get(&subscription_id).cloned() else {
        return;
    };
    end(link, &subscription, image_id);
}

pub(super) fn end(link: &Link, subscription: &SubscriptionState, image_id: i64) {
    if let Some(image) = subscription.remove(image_id) {
        link.lingering.keep(Arc::clone(image.log()));
        subscription.tell_unavailable(&link.handlers, &image);
    }
}

/// Tells of logs in which a poll has met something that can not be. Nothing is allocated while there is none: this runs
/// beside the polls of an invoked client.
pub(super) fn report_damage(link: &Link) {
    loop {
        let damaged = link
            .registry()
            .subscriptions
            .values()
            .find_map(|subscription| subscription.take_damaged());
        // The handler runs without the lock.
        let Some(image) = damaged else { return };
        link.handlers.report(&ClientError::Image {
            correlation_id: image.correlation_id(),
            subscription_id: image.subscription_registration_id(),
            path: PathBuf::new(),
            reason: format!(
                "the frame at position {} has a length that no frame can have; another process has damaged the log",
                image.position()
            ),
        });
    }
}
