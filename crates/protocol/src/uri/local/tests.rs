// SPDX-License-Identifier: Apache-2.0
use super::*;
use crate::uri::Channel;

fn channel(text: &str) -> UdpChannel {
    let Channel::Udp(channel) = Channel::for_publication(text).unwrap() else {
        panic!("{text} is no udp channel");
    };
    channel
}

fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

fn interface(name: &str, address: &str, prefix: u8, loopback: bool) -> LocalInterface {
    LocalInterface {
        name: name.into(),
        index: 1,
        address: address.parse().unwrap(),
        prefix,
        up: true,
        multicast: !loopback,
        loopback,
    }
}

#[test]
fn select_local_chooses_matching_interface() {
    let interfaces = [
        interface("lo", "127.0.0.1", 8, true),
        interface("lo", "::1", 128, true),
        interface("eth0", "10.1.2.3", 16, false),
        interface("eth1", "10.2.2.3", 24, false),
    ];
    let local = |text: &str, endpoint: &str| {
        channel(text)
            .select_local(Some(at(endpoint)), &interfaces, |name| {
                (name == "localhost").then(|| "127.0.0.1".parse().unwrap())
            })
            .map_err(|e| e.text)
    };
    let unicast = "10.9.9.9:5";
    let group = "224.0.1.1:5";
    for (text, endpoint, expected) in [
        ("aeron:udp?endpoint=a:5", unicast, "0.0.0.0:0"),
        ("aeron:udp?endpoint=a:5", "[::1]:5", "[::]:0"),
        (
            "aeron:udp?endpoint=a:5|interface=0.0.0.0:7",
            unicast,
            "0.0.0.0:7",
        ),
        (
            "aeron:udp?endpoint=a:5|interface=localhost:24567",
            unicast,
            "127.0.0.1:24567",
        ),
        (
            "aeron:udp?endpoint=a:5|interface=10.1.0.0:8/16",
            unicast,
            "10.1.2.3:8",
        ),
        (
            "aeron:udp?endpoint=a:5|interface=10.0.0.0/8",
            unicast,
            "10.2.2.3:0",
        ),
        (
            "aeron:udp?endpoint=a:5|interface={lo}:9",
            unicast,
            "127.0.0.1:9",
        ),
        (
            "aeron:udp?endpoint=a:5|interface={lo}",
            "[::1]:5",
            "[::1]:0",
        ),
        ("aeron:udp?endpoint=a:5", group, "10.2.2.3:0"),
        (
            "aeron:udp?endpoint=a:5|interface=localhost",
            group,
            "127.0.0.1:0",
        ),
    ] {
        assert_eq!(local(text, endpoint), Ok(at(expected)), "{text}");
    }
    let unknown = local("aeron:udp?endpoint=a:5|interface={nope}:9", unicast).unwrap_err();
    assert!(unknown.contains("unknown interface nope"), "{unknown}");
    assert!(unknown.contains("lo 127.0.0.1/8"), "{unknown}");
    assert!(local("aeron:udp?endpoint=a:5|interface=1.2.3.4", unicast).is_err());
    assert!(
        local("aeron:udp?endpoint=a:5|interface=nosuch", unicast)
            .unwrap_err()
            .contains("unknown host")
    );
    assert!(local("aeron:udp?endpoint=a:5|interface={eth0}", "[::1]:5").is_err());
}

#[test]
fn select_local_with_equal_matches_chooses_first() {
    let interfaces = [
        interface("lo", "127.0.0.1", 8, true),
        interface("eth0", "10.1.2.3", 24, false),
        interface("eth1", "10.2.2.3", 24, false),
    ];
    let local = channel("aeron:udp?endpoint=a:5").select_local(
        Some(at("224.0.1.1:5")),
        &interfaces,
        |_| None,
    );
    assert_eq!(local.map_err(|e| e.text), Ok(at("10.1.2.3:0")));
}

#[test]
fn select_local_skips_down_or_non_multicast_interface() {
    let mut interfaces = [
        interface("lo", "127.0.0.1", 8, true),
        interface("eth0", "10.1.2.3", 16, false),
        interface("eth1", "10.2.2.3", 24, false),
    ];
    let local = |interfaces: &[LocalInterface]| {
        channel("aeron:udp?endpoint=a:5")
            .select_local(Some(at("224.0.1.1:5")), interfaces, |_| None)
            .map_err(|e| e.text)
    };
    interfaces[2].up = false;
    assert_eq!(local(&interfaces), Ok(at("10.1.2.3:0")));
    interfaces[1].multicast = false;
    assert_eq!(local(&interfaces), Ok(at("127.0.0.1:0")));
    interfaces[0].up = false;
    let rejected = local(&interfaces).unwrap_err();
    assert!(rejected.contains("eth0 10.1.2.3/16"), "{rejected}");
}
