// SPDX-License-Identifier: Apache-2.0
//! Queries of channels and sessions.

use taran::{ChannelStatus, ChannelUriBuilder, CommandError};

use super::{receive, send};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect, udp};

const STREAM: i32 = 2_003;

pub(super) fn port_zero_is_resolved(driver: &Driver) {
    let client = connect(driver.dir());
    let open = "aeron:udp?endpoint=127.0.0.1:0";
    let mut subscription = client.add_subscription(open, STREAM).unwrap();
    let mut resolved = None;
    await_true("the port", || {
        resolved = subscription.try_resolve_channel_endpoint_port();
        resolved.is_some()
    });
    let resolved = resolved.unwrap();
    let endpoint = subscription.resolved_endpoint().unwrap();
    assert_ne!(endpoint.port(), 0);
    assert_eq!(resolved, format!("aeron:udp?endpoint={endpoint}"));
    assert_eq!(subscription.local_socket_addresses(), [endpoint]);

    let publication = client.add_publication(&resolved, STREAM).unwrap();
    await_true("connection", || publication.is_connected());
    send(&publication, b"there");
    assert_eq!(receive(&mut subscription), b"there");
    let source = publication.local_socket_addresses();
    assert_eq!(source.len(), 1);
    let image = subscription.image(publication.session_id()).unwrap();
    assert_eq!(image.source_identity(), source[0].to_string());
    await_true("one transport", || image.active_transport_count() == 1);
}

pub(super) fn channel_status_is_reported(driver: &Driver) {
    let client = connect(driver.dir());
    let channel = udp("|alias=inquiry");
    let subscription = client.add_subscription(&channel, STREAM).unwrap();
    let publication = client.add_publication(&channel, STREAM).unwrap();
    let ipc = client.add_publication("aeron:ipc", STREAM).unwrap();
    await_true("activity", || {
        subscription.channel_status() == ChannelStatus::Active
            && publication.channel_status() == ChannelStatus::Active
    });
    assert_eq!(ipc.channel_status(), ChannelStatus::NoIndicator);
    assert_eq!(ipc.channel_status_id(), None);
    let counters = client.counters();
    let label = counters
        .label(publication.channel_status_id().unwrap())
        .unwrap();
    assert!(label.as_str().starts_with("snd-channel: "), "{label:?}");
    assert_eq!(publication.channel(), channel);
    assert_eq!(
        counters.value(publication.position_limit_id()),
        Some(publication.position_limit())
    );
    assert!(publication.is_original());
    let shared = client.add_publication(&channel, STREAM).unwrap();
    assert!(!shared.is_original());
    assert_eq!(
        shared.original_registration_id(),
        publication.registration_id()
    );
}

pub(super) fn next_available_session_id_is_free(driver: &Driver) {
    let client = connect(driver.dir());
    let session_id = client.next_available_session_id(STREAM).unwrap();
    let other = client.async_next_available_session_id(STREAM).unwrap();
    assert_ne!(other.wait().unwrap(), session_id);
    let channel = ChannelUriBuilder::ipc()
        .session_id(session_id)
        .build()
        .unwrap();
    let publication = client
        .add_exclusive_publication(channel.as_str(), STREAM)
        .unwrap();
    assert_eq!(publication.session_id(), session_id);
}

pub(super) fn invalid_channels_are_rejected_with_a_code(driver: &Driver) {
    driver.expect_error("unknown media 'tcp'");
    driver.expect_error("a channel must start with aeron:");
    driver.expect_error("the port is missing");
    let client = connect(driver.dir());
    for channel in [
        "aeron:tcp?endpoint=127.0.0.1:1",
        "no channel",
        "aeron:udp?endpoint=127.0.0.1",
    ] {
        let refused = client.add_publication(channel, STREAM);
        let Err(CommandError::Registration(refused)) = refused else {
            panic!("{channel}: {refused:?}");
        };
        assert!(matches!(refused.code.code(), 1 | 11), "{refused}");
        assert!(!client.is_command_active(refused.correlation_id));
        let refused = client.add_subscription(channel, STREAM);
        assert!(matches!(refused, Err(CommandError::Registration(_))));
    }
}
