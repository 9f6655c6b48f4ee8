// SPDX-License-Identifier: Apache-2.0
//! Publications to multicast groups: sockets, counters, logs (docs/spec/wire.md §2.3 to §2.8).

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use taran_core::memory::Storage;
use taran_net::SocketSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::type_id;
use taran_protocol::log::LogSpec;

use crate::fixture::{DriverFixture, Ready, error_response};

const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40456|interface=localhost";

fn is_group(driver: &DriverFixture, ready: &Ready) -> bool {
    let file = driver.storage.open(Path::new(&ready.log)).unwrap();
    LogSpec::of(&file).unwrap().is_group
}

#[test]
fn multicast_publication_opens_data_and_control_sockets() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    driver
        .add_publication(client, &format!("{GROUP}|ttl=4"), 10)
        .unwrap();
    let mut opened = driver.network.opened();
    opened.sort_by_key(|spec| spec.bind.port());
    let [data, control] = opened.as_slice() else {
        panic!("{opened:?}");
    };
    assert_eq!(data.bind, "127.0.0.1:0".parse().unwrap());
    assert_eq!(data.connect, Some("224.0.1.1:40456".parse().unwrap()));
    assert!(!data.reuse_address);
    let role = data.multicast.as_ref().unwrap();
    assert_eq!((role.join, role.ttl), (None, Some(4)));
    assert_eq!(role.interface, IpAddr::from(Ipv4Addr::LOCALHOST));
    assert_eq!(role.interface_index, 1);

    assert_eq!(control.bind, "0.0.0.0:40456".parse().unwrap());
    assert_eq!(control.connect, None);
    assert!(control.reuse_address);
    let role = control.multicast.as_ref().unwrap();
    assert_eq!(role.join, Some("224.0.1.2".parse().unwrap()));
}

#[test]
fn ttl_option_applies_without_ttl_of_channel() {
    for (channel, expected) in [(GROUP.to_owned(), 7), (format!("{GROUP}|ttl=0"), 7)] {
        let mut driver = DriverFixture::with(&[("aeron.socket.multicast.ttl", "7")]);
        let client = driver.client();
        driver.add_publication(client, &channel, 10).unwrap();
        for spec in driver.network.opened() {
            assert_eq!(spec.multicast.unwrap().ttl, Some(expected), "{channel}");
        }
    }
}

#[test]
fn ipv6_multicast_address_is_a_group() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let refused = driver
        .add_publication(client, "aeron:udp?endpoint=[ff02::1:2]:40456", 10)
        .unwrap_err();
    assert!(refused.text.contains("Multicast data address must be odd"));
    driver
        .add_publication(client, "aeron:udp?endpoint=[ff02::1:3]:40456", 10)
        .unwrap();
    let opened = driver.network.opened();
    let group: IpAddr = "ff02::1:4".parse().unwrap();
    let joined = |spec: &SocketSpec| spec.multicast.as_ref().unwrap().join;
    assert_eq!(
        opened.iter().filter_map(joined).collect::<Vec<_>>(),
        [group]
    );
    assert!(
        opened
            .iter()
            .all(|spec| spec.multicast.as_ref().unwrap().interface_index == 3)
    );
}

#[test]
fn channel_counters_and_log_describe_the_group() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let ready = driver.add_publication(client, GROUP, 10).unwrap();
    let labels = driver.labels();
    assert_eq!(
        labels[&type_id::SEND_CHANNEL_STATUS],
        format!("snd-channel: {GROUP} 0.0.0.0:40456")
    );
    assert!(labels[&type_id::LOCAL_SOCKET_ADDRESS].ends_with(" 0.0.0.0:40456"));
    assert!(is_group(&driver, &ready));
    // The same group is the same endpoint; another interface would be another.
    let again = driver.add_publication(client, GROUP, 11).unwrap();
    assert_eq!(again.status_counter_id, ready.status_counter_id);
}

#[test]
fn name_may_resolve_to_a_group() {
    let mut driver = DriverFixture::new();
    let client = driver.client();
    let group = Ok(vec!["224.0.1.9".parse().unwrap()]);
    let channel = "aeron:udp?endpoint=group.example:40456|interface=localhost";
    let mut add = |stream_id, channel: &str| {
        let correlation_id = driver.id();
        driver.send(&Command::AddPublication {
            client_id: client,
            correlation_id,
            stream_id,
            channel,
        });
        driver.settle();
        driver.hosts.answer("group.example", &group);
        driver.settle();
        let messages = driver.messages();
        let refused = messages
            .iter()
            .find_map(|it| error_response(it, correlation_id));
        refused.map(|refused| refused.text)
    };
    assert_eq!(add(10, channel), None);
    let refused = add(11, &format!("{channel}|fc=bogus")).unwrap();
    assert!(refused.contains("fc=bogus"), "{refused}");
    let opened = driver.network.opened();
    assert!(opened.iter().all(|spec| spec.multicast.is_some()));
}
