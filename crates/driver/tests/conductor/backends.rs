// SPDX-License-Identifier: Apache-2.0
//! Choice of the network backend of a channel, and what the driver tells backends and layers.

use std::time::Duration;

use taran_protocol::command::Command;

use crate::fixture::DriverFixture;
use crate::memory_network::LARGE;

const PLAIN: &str = "aeron:udp?endpoint=localhost:40123";
const NAMED: &str = "aeron:udp?endpoint=localhost:40123|taran.net=large";

#[test]
fn channel_names_the_backend_of_its_sockets() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    for channel in [
        NAMED,
        "aeron:udp?endpoint=224.0.1.1:40124|taran.net=large|interface=localhost",
    ] {
        driver.network.clear_opened();
        let subscription = driver.add_subscription(client, channel, 10).unwrap();
        let publication = driver.add_publication(client, channel, 10).unwrap();
        let opened = driver.network.opened();
        assert!(opened.len() >= 2, "{opened:?}");
        for spec in opened {
            assert_eq!(spec.backend.as_deref(), Some(LARGE));
            let ids = [subscription.0, publication.registration_id];
            assert!(ids.contains(&spec.tag), "{spec:?}");
        }
    }
    driver.network.clear_opened();
    let plain = "aeron:udp?endpoint=localhost:40125";
    driver.add_publication(client, plain, 10).unwrap();
    let opened = driver.network.opened();
    assert_eq!(opened[0].backend.as_deref(), Some("memory"));
}

#[test]
fn channel_without_backend_gets_that_of_the_driver() {
    let mut driver = DriverFixture::with(&[("taran.net", LARGE), ("aeron.socket.so_rcvbuf", "0")]);
    let client = driver.client();
    for (channel, backend, longest) in [
        (PLAIN, LARGE, "1m"),
        (
            "aeron:udp?endpoint=localhost:40124|taran.net=memory",
            "memory",
            "200k",
        ),
    ] {
        driver.network.clear_opened();
        let within = format!("{channel}|rcv-wnd={longest}");
        driver.add_subscription(client, &within, 10).unwrap();
        let opened = driver.network.opened();
        assert_eq!(opened[0].backend.as_deref(), Some(backend), "{channel}");
        let beyond = format!("{channel}|rcv-wnd=2m");
        driver.add_subscription(client, &beyond, 11).unwrap_err();
    }
}

#[test]
fn channel_with_a_backend_that_is_not_there_is_refused() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let channel = "aeron:udp?endpoint=localhost:40123|taran.net=xdp";
    let refused = [
        driver.add_publication(client, channel, 10).map(drop),
        driver.add_subscription(client, channel, 10).map(drop),
    ];
    for refused in refused {
        let text = refused.unwrap_err().text;
        for part in ["backend xdp is not available", "has memory", channel] {
            assert!(text.contains(part), "{text}");
        }
    }
    assert!(driver.network.open_ports().is_empty());
}

#[test]
fn channels_of_one_endpoint_with_different_backends_conflict() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver.add_subscription(client, PLAIN, 10).unwrap();
    let refused = driver.add_subscription(client, NAMED, 11).unwrap_err();
    for part in ["taran.net=large", "value of memory", PLAIN, NAMED] {
        assert!(refused.text.contains(part), "{}", refused.text);
    }
    driver.add_publication(client, NAMED, 10).unwrap();
    driver.add_publication(client, NAMED, 11).unwrap();
    driver.add_publication(client, PLAIN, 12).unwrap();
}

#[test]
fn channel_that_names_the_default_backend_shares_an_endpoint_with_one_that_names_none() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let named = format!("{PLAIN}|taran.net=memory");
    for channel in [PLAIN, &named, PLAIN] {
        driver.add_subscription(client, channel, 10).unwrap();
        driver.add_publication(client, channel, 10).unwrap();
    }
}

#[test]
fn window_is_checked_against_the_buffers_of_the_chosen_backend() {
    let mut driver = DriverFixture::with(&[("aeron.socket.so_rcvbuf", "0")]);
    let client = driver.client();
    for (channel, is_accepted) in [
        (format!("{PLAIN}|rcv-wnd=512k"), false),
        (format!("{NAMED}|rcv-wnd=512k"), true),
        (format!("{NAMED}|rcv-wnd=2m"), false),
    ] {
        let added = driver.add_subscription(client, &channel, 10);
        assert_eq!(added.is_ok(), is_accepted, "{channel}: {added:?}");
        if let Err(refused) = added {
            assert!(refused.text.contains("rcv-wnd="), "{}", refused.text);
        }
    }
}

#[test]
fn destination_without_backend_gets_that_of_its_subscription() {
    let mut driver = DriverFixture::new();
    let client_id = driver.client();
    let manual = "aeron:udp?control-mode=manual|taran.net=large";
    let registration_id = driver.add_subscription(client_id, manual, 10).unwrap().0;
    let correlation_id = driver.id();
    driver.ask(&Command::AddReceiveDestination {
        client_id,
        correlation_id,
        registration_id,
        channel: PLAIN,
    });
    let opened = driver.network.opened();
    assert_eq!(opened.len(), 1);
    assert_eq!(opened[0].backend.as_deref(), Some(LARGE));
    assert_eq!(opened[0].tag, correlation_id);
}

#[test]
fn backend_is_called_at_each_timer_interval() {
    let mut driver = DriverFixture::new();
    let before = driver.network.timer_calls();
    driver.run_for(Duration::from_secs(10));
    let calls = driver.network.timer_calls() - before;
    assert!((9..=11).contains(&calls), "{calls}");
}
