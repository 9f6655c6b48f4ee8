// SPDX-License-Identifier: Apache-2.0
//! The complete API of the Taran client on the official driver and on a Taran driver: the same calls, the same results.

mod counters;
mod destinations;
mod ends;
mod inquiries;
mod replaying;
mod responses;
mod table;

use std::path::Path;
use std::sync::{Arc, Mutex};

use taran::{Client, ClientBuilder, ExclusivePublication, Publication, Subscription};

use crate::drivers::Driver;
use crate::exchange::await_true;
use crate::require_java;

/// Events reported to handlers.
#[derive(Clone, Default)]
struct EventLog(Arc<Mutex<Vec<String>>>);

impl EventLog {
    fn note(&self, text: impl Into<String>) {
        self.0.lock().unwrap().push(text.into());
    }

    fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    fn has(&self, text: &str) -> bool {
        self.all().iter().any(|note| note.contains(text))
    }
}

/// Connects a client whose errors fail the test.
fn connect_with(dir: &Path, configure: impl FnOnce(ClientBuilder) -> ClientBuilder) -> Client {
    configure(Client::builder().aeron_dir(dir))
        .connect()
        .expect("the driver is running")
}

fn send(publication: &Publication, message: &[u8]) {
    await_true("room", || publication.offer(message).is_ok());
}

fn send_exclusive(publication: &mut ExclusivePublication, message: &[u8]) {
    await_true("room", || publication.offer(message).is_ok());
}

/// Waits for a message.
fn receive(subscription: &mut Subscription) -> Vec<u8> {
    let mut received = Vec::new();
    await_true("a message", || {
        let fragments = subscription.poll(|message, _| received = message.to_vec(), 1);
        fragments.expect("the driver lives") == 1
    });
    received
}

macro_rules! on {
    ($driver:expr, $($list:ident: $($test:ident)*;)*) => {
        $($(
            #[test]
            fn $test() {
                require_java!();
                $list::$test(&$driver(stringify!($test), &[]));
            }
        )*)*
    };
}

mod on_official_driver {
    use super::*;

    on! { Driver::official,
        counters: owned_and_static_counters_are_shared invalid_counters_are_rejected;
        destinations: publication_destinations_are_added_and_removed subscription_sources_are_added_and_removed;
        ends: close_and_removal_by_id_succeed revoke_ends_the_stream_at_once
            rejected_image_over_udp_is_reported_to_the_publisher rejected_image_over_ipc_is_reported_to_the_publisher;
        inquiries: port_zero_is_resolved channel_status_is_reported next_available_session_id_is_free
            invalid_channels_are_rejected_with_a_code;
        replaying: appended_blocks_and_padding_replay_a_stream image_position_peek_and_bounded_polls_work;
        responses: response_channel_delivers_responses spy_receives_sent_messages;
    }
}

mod on_taran_driver {
    use super::*;

    on! { Driver::taran,
        counters: owned_and_static_counters_are_shared invalid_counters_are_rejected;
        destinations: publication_destinations_are_added_and_removed subscription_sources_are_added_and_removed;
        ends: close_and_removal_by_id_succeed revoke_ends_the_stream_at_once
            rejected_image_over_udp_is_reported_to_the_publisher rejected_image_over_ipc_is_reported_to_the_publisher;
        inquiries: port_zero_is_resolved channel_status_is_reported next_available_session_id_is_free
            invalid_channels_are_rejected_with_a_code;
        replaying: appended_blocks_and_padding_replay_a_stream image_position_peek_and_bounded_polls_work;
        responses: response_channel_delivers_responses spy_receives_sent_messages;
    }
}
