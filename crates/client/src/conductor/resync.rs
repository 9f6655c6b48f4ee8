// SPDX-License-Identifier: Apache-2.0
//! Recovery after responses were overwritten before they were read.
//!
//! The broadcast buffer has no flow control: a client that is not scheduled for long enough loses responses. Images can
//! be recovered, because the driver keeps a position counter for each image of each subscription. Responses to commands
//! are lost, so commands in flight fail.

use std::path::PathBuf;
use std::sync::Arc;

use taran_core::counters::CounterMeta;
use taran_protocol::counter::{StreamKey, type_id};

use super::{abandon, image};
use crate::client_core::ClientCore;
use crate::error::{ClientError, CommandError};
use crate::subscription::SubscriptionState;

/// Source identity of an image whose announcement was lost.
const UNKNOWN_SOURCE: &str = "unknown";

pub(super) fn resync(client: &Arc<ClientCore>, count: u64) {
    client
        .handlers
        .report(&ClientError::ResponsesOverwritten { count });
    let in_flight: Vec<i64> = client.registry().in_flight.keys().copied().collect();
    abandon(client, &in_flight, &CommandError::ResponseOverwritten);
    let subscriptions: Vec<_> = client.registry().subscriptions.values().cloned().collect();
    for subscription in subscriptions {
        remove_ended_images(client, &subscription);
        add_new_images(client, &subscription);
    }
}

/// Removes images whose position counter was freed or reused.
fn remove_ended_images(client: &ClientCore, subscription: &SubscriptionState) {
    for view in subscription.images() {
        let meta = client.counters().meta(view.subscriber_position_id());
        let is_current = meta.is_some_and(|meta| {
            is_position_counter_of(&meta, subscription)
                && meta.reference_id == view.correlation_id()
        });
        if !is_current {
            image::remove(client, subscription, view.correlation_id());
        }
    }
}

/// Adds images for position counters that have none.
fn add_new_images(client: &Arc<ClientCore>, subscription: &SubscriptionState) {
    let mut found: Vec<CounterMeta> = Vec::new();
    client.counters().for_each(|meta| {
        // A reference id of 0: the driver is still creating the image and will announce it.
        if is_position_counter_of(meta, subscription) && meta.reference_id != 0 {
            found.push(meta.clone());
        }
    });
    for meta in found {
        let Some(key) = StreamKey::decode(&meta.key) else {
            continue;
        };
        let Some(log) = log_path(client, meta.reference_id) else {
            continue;
        };
        image::on_available(
            client,
            &image::NewImage {
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

fn is_position_counter_of(meta: &CounterMeta, subscription: &SubscriptionState) -> bool {
    meta.type_id == type_id::SUBSCRIBER_POSITION
        && meta.registration_id == subscription.registration_id
}

/// Returns the path of the log of an image. A network image has its own log; IPC and spy images read the log of the
/// publication.
fn log_path(client: &ClientCore, image_id: i64) -> Option<PathBuf> {
    let settings = &client.settings;
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
