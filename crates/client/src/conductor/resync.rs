//! After responses were overwritten before they were read.
//!
//! The broadcast has no flow control: a client that is not scheduled for long enough loses responses. What they said
//! about images also shows in the counters, as the driver keeps a position counter for each image of each subscription;
//! so images are compared with those. Answers to commands are lost for good.

use std::path::PathBuf;
use std::sync::Arc;

use taran_core::counters::CounterMeta;
use taran_protocol::counter::{StreamKey, type_id};

use super::{abandon, image};
use crate::error::{AddError, ClientError};
use crate::link::Link;
use crate::subscription::SubscriptionState;

/// What is said of the source of an image whose announcement was lost.
const UNKNOWN_SOURCE: &str = "unknown";

pub(super) fn resync(link: &Arc<Link>, count: u64) {
    link.handlers
        .report(&ClientError::ResponsesOverwritten { count });
    let in_flight: Vec<i64> = link.registry().in_flight.keys().copied().collect();
    abandon(link, &in_flight, &AddError::ResponseOverwritten);
    let subscriptions: Vec<_> = link.registry().subscriptions.values().cloned().collect();
    for subscription in subscriptions {
        end_lost_images(link, &subscription);
        find_new_images(link, &subscription);
    }
}

/// Ends images whose position counter is not theirs any more.
fn end_lost_images(link: &Link, subscription: &SubscriptionState) {
    for view in subscription.images() {
        let meta = link.counters().meta(view.subscriber_position_id());
        let is_there = meta.is_some_and(|meta| {
            is_position_of(&meta, subscription) && meta.reference_id == view.correlation_id()
        });
        if !is_there {
            image::end(link, subscription, view.correlation_id());
        }
    }
}

/// Makes images for position counters that no image has.
fn find_new_images(link: &Arc<Link>, subscription: &SubscriptionState) {
    let mut found: Vec<CounterMeta> = Vec::new();
    link.counters().for_each(|meta| {
        // An id of 0: the driver is still at it, and will announce the image.
        if is_position_of(meta, subscription) && meta.reference_id != 0 {
            found.push(meta.clone());
        }
    });
    for meta in found {
        let Some(key) = StreamKey::decode(&meta.key) else {
            continue;
        };
        let Some(log) = log_of(link, meta.reference_id) else {
            continue;
        };
        image::available(
            link,
            &image::Announced {
                image_id: meta.reference_id,
                session_id: key.session_id,
                stream_id: key.stream_id,
                subscription_id: subscription.registration_id,
                position_counter_id: meta.id,
                log_name: &log.to_string_lossy(),
                source_identity: UNKNOWN_SOURCE,
            },
        );
    }
}

fn is_position_of(meta: &CounterMeta, subscription: &SubscriptionState) -> bool {
    meta.type_id == type_id::SUBSCRIBER_POSITION
        && meta.registration_id == subscription.registration_id
}

/// The log of an image: a network image has one of its own, IPC and spies read that of the publication.
fn log_of(link: &Link, image_id: i64) -> Option<PathBuf> {
    let settings = &link.settings;
    ["images", "publications"]
        .into_iter()
        .map(|kind| {
            settings
                .directory
                .join(kind)
                .join(format!("{image_id}.logbuffer"))
        })
        .find(|path| settings.storage.exists(path))
}
