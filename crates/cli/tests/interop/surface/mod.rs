//! Our client's whole surface, on the official driver and on ours: the same calls, the same outcome.

mod counters;
mod destinations;
mod ends;
mod inquiries;
mod replaying;
mod responses;
mod table;

use std::path::Path;
use std::sync::{Arc, Mutex};

use taran::{Client, Context, ExclusivePublication, Publication, Subscription};

use crate::drivers::Driver;
use crate::exchange::await_true;
use crate::require_java;

/// What handlers were told.
#[derive(Clone, Default)]
struct Notes(Arc<Mutex<Vec<String>>>);

impl Notes {
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

/// A client whose errors are failures of the test.
fn connect_with(dir: &Path, configure: impl FnOnce(Context) -> Context) -> Client {
    configure(Context::new().aeron_dir(dir))
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

mod on_the_official_driver {
    use super::*;

    on! { Driver::official,
        counters: clients_own_counters_and_share_static_ones counters_are_refused_with_a_reason;
        destinations: a_publication_gains_and_loses_destinations a_subscription_gains_and_loses_sources;
        ends: closes_are_answered_and_things_removed_by_id revoking_ends_a_stream_at_once
            a_rejected_image_is_told_to_its_publisher a_rejected_image_over_ipc_is_told_too;
        inquiries: an_open_port_is_resolved channels_say_how_they_are the_driver_names_free_sessions
            wrong_channels_are_refused_with_a_code;
        replaying: blocks_and_padding_replay_a_stream images_are_moved_peeked_and_bounded;
        responses: answers_come_back_on_a_response_channel spies_see_what_is_sent;
    }
}

mod on_our_driver {
    use super::*;

    on! { Driver::taran,
        counters: clients_own_counters_and_share_static_ones counters_are_refused_with_a_reason;
        destinations: a_publication_gains_and_loses_destinations a_subscription_gains_and_loses_sources;
        ends: closes_are_answered_and_things_removed_by_id revoking_ends_a_stream_at_once
            a_rejected_image_is_told_to_its_publisher a_rejected_image_over_ipc_is_told_too;
        inquiries: an_open_port_is_resolved channels_say_how_they_are the_driver_names_free_sessions
            wrong_channels_are_refused_with_a_code;
        replaying: blocks_and_padding_replay_a_stream images_are_moved_peeked_and_bounded;
        responses: answers_come_back_on_a_response_channel spies_see_what_is_sent;
    }
}
