// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;

#[test]
fn address_parse_accepts_and_rejects() {
    let address = Address::parse("localhost:40123").unwrap();
    assert_eq!(
        (address.host, address.port),
        (Host::Name("localhost".into()), 40123)
    );
    assert_eq!(
        Address::parse("127.0.0.1:0").unwrap().literal(),
        "127.0.0.1:0".parse().ok()
    );
    assert_eq!(
        Address::parse("[::1]:5").unwrap().literal(),
        "[::1]:5".parse().ok()
    );
    assert_eq!(
        Address::parse("[fe80::1%eth0]:5").unwrap().literal(),
        "[fe80::1]:5".parse().ok()
    );
    assert!(Address::parse("224.0.1.1:5").unwrap().is_multicast());
    assert!(Address::parse("[ff02::1]:5").unwrap().is_multicast());
    for text in [
        "",
        "localhost",
        "localhost:",
        ":5",
        "localhost:99999",
        "localhost:abc",
        "localhost:-1",
        "localhost:+1",
        "::1:41521",
        "[::1]",
        "[::1:5",
        "[localhost]:5",
        "[::1]x:5",
        "local host:5",
        "a:b:5",
        "[]:5",
    ] {
        assert!(Address::parse(text).is_err(), "{text}");
    }
}

#[test]
fn interface_parse_accepts_and_rejects() {
    let network = |host: &str, port, prefix_length| Interface::Network {
        host: host
            .parse()
            .map_or_else(|_| Host::Name(host.into()), Host::Ip),
        port,
        prefix_length,
    };
    for (text, interface) in [
        ("127.0.0.1", network("127.0.0.1", 0, None)),
        ("127.0.0.1:5", network("127.0.0.1", 5, None)),
        ("10.0.0.0/8", network("10.0.0.0", 0, Some(8))),
        ("10.0.0.0:7/8", network("10.0.0.0", 7, Some(8))),
        ("[::1]:5/64", network("::1", 5, Some(64))),
        ("localhost/24", network("localhost", 0, Some(24))),
        ("localhost:24567", network("localhost", 24567, None)),
        (
            "{lo}",
            Interface::Named {
                name: "lo".into(),
                port: 0,
            },
        ),
        (
            "{lo}:41507",
            Interface::Named {
                name: "lo".into(),
                port: 41507,
            },
        ),
    ] {
        assert_eq!(Interface::parse(text), Ok(interface), "{text}");
    }
    for text in [
        "",
        "{lo",
        "{}",
        "{lo}x",
        "{lo}:x",
        "127.0.0.1/33",
        "127.0.0.1/",
        "127.0.0.1/-1",
        "[::1]/129",
        "::1",
        "127.0.0.1/8:5",
        "/8",
    ] {
        assert!(Interface::parse(text).is_err(), "{text}");
    }
}

proptest! {
    #[test]
    fn parse_random_text_never_panics(text in "\\PC{0,30}", tail in "[\\[\\]{}:/%.0-9a-f]{0,30}") {
        let _ = (Address::parse(&text), Interface::parse(&text), Address::parse(&tail), Interface::parse(&tail));
    }
}
