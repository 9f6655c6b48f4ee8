//! Publications to multicast groups: sockets, counters, logs (docs/spec/wire.md §2.3 to §2.8).

use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use taran_core::memory::Storage;
use taran_net::SocketSpec;
use taran_protocol::command::Command;
use taran_protocol::counter::type_id;
use taran_protocol::log::LogSpec;

use crate::bench::{Bench, Ready, refusal};

const GROUP: &str = "aeron:udp?endpoint=224.0.1.1:40456|interface=localhost";

fn is_group(bench: &Bench, ready: &Ready) -> bool {
    let file = bench.storage.open(Path::new(&ready.log)).unwrap();
    LogSpec::of(&file).unwrap().is_group
}

#[test]
fn a_group_takes_a_socket_to_send_and_one_to_hear_receivers() {
    let mut bench = Bench::new();
    let client = bench.client();
    bench
        .add_publication(client, &format!("{GROUP}|ttl=4"), 10)
        .unwrap();
    let mut opened = bench.wires.opened();
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
fn the_hops_of_the_option_hold_where_a_channel_says_none() {
    for (channel, expected) in [(GROUP.to_owned(), 7), (format!("{GROUP}|ttl=0"), 7)] {
        let mut bench = Bench::with(&[("aeron.socket.multicast.ttl", "7")]);
        let client = bench.client();
        bench.add_publication(client, &channel, 10).unwrap();
        for spec in bench.wires.opened() {
            assert_eq!(spec.multicast.unwrap().ttl, Some(expected), "{channel}");
        }
    }
}

#[test]
fn an_address_of_the_next_version_of_ip_makes_a_group_too() {
    let mut bench = Bench::new();
    let client = bench.client();
    let refused = bench
        .add_publication(client, "aeron:udp?endpoint=[ff02::1:2]:40456", 10)
        .unwrap_err();
    assert!(refused.text.contains("Multicast data address must be odd"));
    bench
        .add_publication(client, "aeron:udp?endpoint=[ff02::1:3]:40456", 10)
        .unwrap();
    let opened = bench.wires.opened();
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
fn counters_tell_where_receivers_are_heard_and_the_log_that_there_are_many() {
    let mut bench = Bench::new();
    let client = bench.client();
    let ready = bench.add_publication(client, GROUP, 10).unwrap();
    let labels = bench.labels();
    assert_eq!(
        labels[&type_id::SEND_CHANNEL_STATUS],
        format!("snd-channel: {GROUP} 0.0.0.0:40456")
    );
    assert!(labels[&type_id::LOCAL_SOCKET_ADDRESS].ends_with(" 0.0.0.0:40456"));
    assert!(is_group(&bench, &ready));
    // The same group is the same endpoint; another interface would be another.
    let again = bench.add_publication(client, GROUP, 11).unwrap();
    assert_eq!(again.status_counter_id, ready.status_counter_id);
}

#[test]
fn a_name_may_turn_out_to_be_a_group() {
    let mut bench = Bench::new();
    let client = bench.client();
    let group = Ok(vec!["224.0.1.9".parse().unwrap()]);
    let channel = "aeron:udp?endpoint=group.example:40456|interface=localhost";
    let mut add = |stream_id, channel: &str| {
        let correlation_id = bench.id();
        bench.send(&Command::AddPublication {
            client_id: client,
            correlation_id,
            stream_id,
            channel,
        });
        bench.settle();
        bench.hosts.answer("group.example", &group);
        bench.settle();
        let messages = bench.messages();
        let refused = messages.iter().find_map(|it| refusal(it, correlation_id));
        refused.map(|refused| refused.text)
    };
    assert_eq!(add(10, channel), None);
    let refused = add(11, &format!("{channel}|fc=bogus")).unwrap();
    assert!(refused.contains("fc=bogus"), "{refused}");
    let opened = bench.wires.opened();
    assert!(opened.iter().all(|spec| spec.multicast.is_some()));
}
