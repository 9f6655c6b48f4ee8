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

#[test]
fn roles_and_canonical_form_match_specification() {
    let any = at("0.0.0.0:0");
    let form = |text: &str, endpoint: Option<&str>, control: Option<&str>, local: SocketAddr| {
        let channel = channel(text);
        let roles = channel
            .roles(endpoint.map(at), control.map(at), local)
            .unwrap();
        (channel.canonical_form(&roles, false, || 7), roles)
    };
    let (text, roles) = form(
        "aeron:udp?endpoint=localhost:5",
        Some("127.0.0.1:5"),
        None,
        any,
    );
    assert_eq!(text, "UDP-0.0.0.0:0-localhost:5");
    assert_eq!(
        (roles.remote_data, roles.remote_control, roles.local),
        (at("127.0.0.1:5"), at("127.0.0.1:5"), any)
    );

    let (text, roles) = form(
        "aeron:udp?endpoint=224.0.1.255:5",
        Some("224.0.1.255:5"),
        None,
        at("10.0.0.1:0"),
    );
    assert_eq!(text, "UDP-10.0.0.1:0-224.0.1.255:5");
    assert_eq!(roles.remote_control, at("224.0.1.0:5"));

    let (text, roles) = form(
        "aeron:udp?control=localhost:6|control-mode=dynamic",
        None,
        Some("[::1]:6"),
        any,
    );
    assert_eq!(text, "UDP-localhost:6-[::]:0");
    assert_eq!(
        (roles.local, roles.remote_data),
        (at("[::1]:6"), at("[::]:0"))
    );

    let (text, _) = form(
        "aeron:udp?control=a:0|control-mode=dynamic",
        None,
        Some("10.0.0.1:0"),
        any,
    );
    assert_eq!(text, "UDP-a:0-0.0.0.0:0-7");
    let (text, _) = form("aeron:udp?control-mode=manual|tags=3", None, None, any);
    assert_eq!(text, "UDP-0.0.0.0:0-0.0.0.0:0#3");
}

#[test]
fn roles_with_even_multicast_group_is_rejected() {
    assert!(
        channel("aeron:udp?endpoint=group:5")
            .roles(Some(at("224.0.1.2:5")), None, at("0.0.0.0:0"))
            .is_err()
    );
}

#[test]
fn check_tag_match_mismatch_is_rejected() {
    let any = at("0.0.0.0:0");
    let existing = channel("aeron:udp?control-mode=dynamic|control=127.0.0.1:5|tags=200");
    let existing_roles = existing.roles(None, Some(at("127.0.0.1:5")), any).unwrap();
    let check = |text: &str, endpoint: Option<&str>, control: Option<&str>| {
        let new = channel(text);
        let roles = new.roles(endpoint.map(at), control.map(at), any).unwrap();
        new.check_tag_match(&roles, &existing, &existing_roles)
            .is_ok()
    };
    assert!(check("aeron:udp?tags=200", None, None));
    assert!(check(
        "aeron:udp?control-mode=dynamic|control=127.0.0.1:5|tags=200",
        None,
        Some("127.0.0.1:5")
    ));
    assert!(!check(
        "aeron:udp?control-mode=manual|control=127.0.0.1:5|tags=200",
        None,
        Some("127.0.0.1:5")
    ));
    assert!(!check(
        "aeron:udp?control=127.0.0.1:5|endpoint=127.0.0.1:6|tags=200",
        Some("127.0.0.1:6"),
        Some("127.0.0.1:5")
    ));
}
