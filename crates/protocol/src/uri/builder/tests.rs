// SPDX-License-Identifier: Apache-2.0
use super::*;
use proptest::prelude::*;

#[test]
fn build_writes_in_order_of_official_builder() {
    let uri = ChannelUriBuilder::udp()
        .linger(std::time::Duration::from_secs(5))
        .session_id(-7)
        .endpoint("localhost:40123")
        .tags(1, Some(2))
        .control_mode(ControlMode::Dynamic)
        .control("localhost:1")
        .build()
        .unwrap();
    assert_eq!(
        uri.as_str(),
        "aeron:udp?tags=1,2|endpoint=localhost:40123|control=localhost:1|control-mode=dynamic|session-id=-7|linger=5s"
    );
    assert_eq!(
        ChannelUriBuilder::ipc().build().unwrap().as_str(),
        "aeron:ipc"
    );
    assert_eq!(
        ChannelUriBuilder::udp()
            .spy()
            .endpoint("a:1")
            .build()
            .unwrap()
            .as_str(),
        "aeron-spy:aeron:udp?endpoint=a:1"
    );
}

#[test]
fn initial_position_sets_term_and_offset() {
    let uri = ChannelUriBuilder::ipc()
        .initial_position(65536 * 3 + 64, i32::MAX, 65536)
        .build()
        .unwrap();
    assert_eq!(
        uri.as_str(),
        "aeron:ipc?term-length=65536|init-term-id=2147483647|term-id=-2147483646|term-offset=64"
    );
    for position in [-32, 33, i64::MAX, i64::MIN] {
        assert!(
            ChannelUriBuilder::ipc()
                .initial_position(position, 0, 65536)
                .build()
                .is_err(),
            "{position}"
        );
    }
}

#[test]
fn build_with_invalid_value_fails() {
    let udp = || ChannelUriBuilder::udp().endpoint("a:1");
    for builder in [
        ChannelUriBuilder::udp(),
        ChannelUriBuilder::ipc().spy(),
        ChannelUriBuilder::udp().endpoint("localhost"),
        udp().mtu(1400),
        udp().term_length(1000),
        udp().max_resend(0),
        udp().alias("a|b"),
        udp().alias(""),
        udp().set(Param::InitialTermId, "1"),
        udp().flow_control("bogus"),
        udp().alias(&"x".repeat(5000)),
    ] {
        assert!(builder.build().is_err(), "{builder:?}");
    }
}

#[test]
fn every_official_parameter_has_setter() {
    let second = std::time::Duration::from_secs(1);
    let uri = ChannelUriBuilder::udp()
        .endpoint("a:1")
        .response_endpoint("b:2")
        .stream_id(7)
        .group(true)
        .nak_delay(second)
        .untethered_window_limit_timeout(second)
        .untethered_linger_timeout(2 * second)
        .untethered_resting_timeout(3 * second)
        .media_receive_timestamp("reserved")
        .channel_receive_timestamp("8")
        .channel_send_timestamp("0")
        .tagged_flow_control(5, Some(2), Some(second))
        .response_prototype()
        .set_key("my-key", "x")
        .build()
        .unwrap();
    assert_eq!(
        uri.as_str(),
        "aeron:udp?endpoint=a:1|fc=tagged,g:5/2,t:1s|group=true|media-rcv-ts-offset=reserved\
         |channel-rcv-ts-offset=8|channel-snd-ts-offset=0|response-endpoint=b:2|response-correlation-id=prototype\
         |nak-delay=1s|untethered-window-limit-timeout=1s|untethered-linger-timeout=2s\
         |untethered-resting-timeout=3s|stream-id=7|my-key=x"
    );
    assert_eq!(
        ChannelUriBuilder::from_uri(&uri)
            .set_key("my-key", "y")
            .clear(Param::FlowControl)
            .build()
            .unwrap()
            .as_str(),
        uri.as_str()
            .replace("my-key=x", "my-key=y")
            .replace("|fc=tagged,g:5/2,t:1s", "")
    );
    for (builder, expected) in [
        (ChannelUriBuilder::udp().min_flow_control(None, None), "min"),
        (
            ChannelUriBuilder::udp().min_flow_control(Some(3), Some(second)),
            "min,g:/3,t:1s",
        ),
        (
            ChannelUriBuilder::udp().tagged_flow_control(-1, None, None),
            "tagged,g:-1",
        ),
    ] {
        let uri = builder.endpoint("224.1.1.1:1").build().unwrap();
        assert_eq!(uri.get(Param::FlowControl), Some(expected));
    }
    assert!(
        ChannelUriBuilder::udp()
            .endpoint("a:1")
            .set_key("k", "a|b")
            .build()
            .is_err()
    );
}

proptest! {
    #[test]
    fn build_then_parse_round_trips(
        endpoint in "[a-z]{1,9}:[1-9][0-9]{0,3}",
        alias in proptest::option::of("[ -{}~]{1,20}"),
        session in proptest::option::of(any::<i32>()),
        term_bits in proptest::option::of(16u32..=30),
        ssc in proptest::option::of(any::<bool>()),
        linger in proptest::option::of(any::<u32>()),
    ) {
        let mut builder = ChannelUriBuilder::udp().endpoint(&endpoint);
        if let Some(alias) = &alias { builder = builder.alias(alias); }
        if let Some(session) = session { builder = builder.session_id(session); }
        if let Some(bits) = term_bits { builder = builder.term_length(1 << bits); }
        if let Some(ssc) = ssc { builder = builder.spies_simulate_connection(ssc); }
        if let Some(nanos) = linger { builder = builder.linger(std::time::Duration::from_nanos(nanos.into())); }
        let uri = builder.build().unwrap();
        prop_assert_eq!(uri.get(Param::Endpoint), Some(endpoint.as_str()));
        prop_assert_eq!(uri.get(Param::Alias), alias.as_deref());
        prop_assert_eq!(&ChannelUriBuilder::from_uri(&uri).build().unwrap(), &uri);
        let again = ChannelUri::parse(uri.as_str()).unwrap();
        prop_assert_eq!(again, uri);
    }
}
