// SPDX-License-Identifier: Apache-2.0
//! C interface of the client and of an embedded driver: `include/taran.h` and the libraries `libtaran.so` and `libtaran.a`.
//!
//! The header is generated from this crate by cbindgen, and `tests/header.rs` checks that it is current. Its head states the
//! rules for callers; `docs/bindings.md` is the introduction.
//!
//! This is one of the few crates with `unsafe` code: it turns pointers of its caller into references, and calls functions of its
//! caller. All of it rests on the rules in the head of the header, which each `SAFETY` comment names. What can be checked is
//! checked: null pointers, texts that are not UTF-8, closed handles, and handles that another call uses at the same time.

#![allow(
    clippy::missing_safety_doc,
    reason = "the head of taran.h states the rules for all functions"
)]
#![allow(non_camel_case_types, reason = "the names are those of the header")]

mod call;
mod client;
mod counter;
mod driver;
mod error;
mod options;
mod publication;
mod subscription;

pub use client::{
    taran_client_close, taran_client_connect, taran_client_free, taran_client_id,
    taran_client_is_closed, taran_client_t,
};
pub use counter::{
    taran_client_add_counter, taran_client_for_each_counter, taran_client_read_counter,
    taran_counter_add, taran_counter_close, taran_counter_free, taran_counter_get,
    taran_counter_handler_t, taran_counter_id, taran_counter_info_t, taran_counter_set,
    taran_counter_t,
};
pub use driver::{
    taran_driver_close, taran_driver_directory, taran_driver_free, taran_driver_is_running,
    taran_driver_start, taran_driver_start_embedded, taran_driver_t,
};
pub use error::{
    taran_error_is_retryable, taran_error_name, taran_error_t, taran_last_error, taran_version,
};
pub use options::{
    taran_close_handler_t, taran_error_handler_t, taran_options_free, taran_options_new,
    taran_options_on_close, taran_options_on_error, taran_options_set, taran_options_t,
};
pub use publication::{
    taran_claim_abort, taran_claim_commit, taran_claim_t, taran_client_add_exclusive_publication,
    taran_client_add_publication, taran_publication_close, taran_publication_free,
    taran_publication_is_connected, taran_publication_max_message_length,
    taran_publication_max_payload_length, taran_publication_offer, taran_publication_offer_for,
    taran_publication_position, taran_publication_position_limit, taran_publication_session_id,
    taran_publication_t, taran_publication_try_claim,
};
pub use subscription::{
    taran_action_t, taran_client_add_subscription, taran_controlled_handler_t,
    taran_fragment_handler_t, taran_header_t, taran_image_handler_t, taran_image_handlers_t,
    taran_image_t, taran_subscription_close, taran_subscription_controlled_poll,
    taran_subscription_controlled_poll_messages, taran_subscription_free,
    taran_subscription_image_count, taran_subscription_is_connected, taran_subscription_poll,
    taran_subscription_poll_messages, taran_subscription_t,
};
