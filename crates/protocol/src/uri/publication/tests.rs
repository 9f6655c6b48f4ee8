// SPDX-License-Identifier: Apache-2.0
use super::super::flow_control::FlowControlStrategy;
use super::*;

const DEFAULTS: PublicationDefaults = PublicationDefaults {
    term_length: 16 << 20,
    ipc_term_length: 64 << 20,
    mtu: 1408,
    ipc_mtu: 2048,
    window: 0,
    ipc_window: 1 << 20,
    linger_ns: 5_000_000_000,
    sparse: true,
    spies_simulate_connection: false,
    max_resend: 16,
    untethered: Untethered {
        window_limit_timeout_ns: 5,
        linger_timeout_ns: None,
        resting_timeout_ns: 10,
    },
    flow_control: FlowControlDefaults {
        multicast_strategy: FlowControlStrategy::Max,
        receiver_timeout_ns: 5,
        group_tag: -1,
        group_min_size: 0,
        unicast_window_multiple: 16,
        multicast_window_multiple: 4,
    },
};

fn params(text: &str) -> Result<PublicationParams, String> {
    Channel::for_publication(text)
        .and_then(|channel| PublicationParams::new(&channel, &DEFAULTS))
        .map_err(|e| e.text)
}

#[test]
fn publication_defaults_depend_on_media() {
    let udp = params("aeron:udp?endpoint=a:1").unwrap();
    assert_eq!(
        (udp.mtu, udp.term_length, udp.window),
        (1408, 16 << 20, 8 << 20)
    );
    assert_eq!(udp.flow_control.strategy, FlowControlStrategy::Unicast);
    assert_eq!(udp.untethered.linger_ns(), 5);
    let ipc = params("aeron:ipc").unwrap();
    assert_eq!(
        (ipc.mtu, ipc.term_length, ipc.window),
        (2048, 64 << 20, 1 << 20)
    );
    let small = params("aeron:ipc?term-length=64k").unwrap();
    assert_eq!(small.window, 32 << 10);
}

#[test]
fn publication_params_are_all_read() {
    let p = params(
        "aeron:udp?endpoint=224.0.1.1:5|mtu=2K|term-length=1M|init-term-id=2147483647|term-id=-2147483648|\
         term-offset=64|session-id=-7|linger=1S|eos=false|sparse=false|ssc=true|max-resend=256|pub-wnd=4k|\
         fc=min,t:1s|response-correlation-id=9|untethered-linger-timeout=3us",
    )
    .unwrap();
    assert_eq!((p.mtu, p.term_length, p.window), (2048, 1 << 20, 4096));
    assert_eq!(
        p.position,
        Some(InitialPosition {
            initial_term_id: i32::MAX,
            term_id: i32::MIN,
            term_offset: 64
        })
    );
    assert_eq!(
        (p.session, p.linger_ns, p.eos, p.sparse),
        (SessionChoice::Id(-7), 1_000_000_000, false, false)
    );
    assert_eq!((p.spies_simulate_connection, p.max_resend), (true, 256));
    assert_eq!(p.flow_control.strategy, FlowControlStrategy::Min);
    assert_eq!(p.response, ResponseCorrelation::Id(9));
    assert_eq!(p.untethered.linger_ns(), 3_000);
    assert_eq!(
        params("aeron:ipc?session-id=tag:4").unwrap().session,
        SessionChoice::OfTag(4)
    );
}

#[test]
fn response_prototype_has_minimum_term_length() {
    let p = params(
        "aeron:udp?control-mode=response|control=localhost:5|response-correlation-id=prototype|term-length=1m",
    )
    .unwrap();
    assert!(p.is_response);
    assert_eq!((p.term_length, p.window), (64 << 10, 32 << 10));
}

#[test]
fn invalid_value_error_names_key_and_value() {
    for (text, parts) in [
        ("aeron:ipc?mtu=1400", ["mtu=1400", "multiple of 32"]),
        (
            "aeron:ipc?term-length=100k",
            ["term-length=100k", "power of two"],
        ),
        ("aeron:ipc?pub-wnd=1k", ["pub-wnd=1024", "mtu=2048"]),
        (
            "aeron:ipc?pub-wnd=64m",
            ["pub-wnd=67108864", "term-length=67108864"],
        ),
        ("aeron:ipc?init-term-id=1", ["init-term-id", "term-offset"]),
        (
            "aeron:ipc?init-term-id=5|term-id=3|term-offset=0",
            ["term-id=3", "init-term-id=5"],
        ),
        (
            "aeron:ipc?term-length=64k|init-term-id=1|term-id=1|term-offset=65568",
            ["term-offset=65568", "65536"],
        ),
        ("aeron:ipc?eos=maybe", ["eos=maybe", "true or false"]),
        (
            "aeron:udp?endpoint=a:1|control-mode=response|response-correlation-id=-2",
            [
                "invalid response-correlation-id, must be a number greater than or equal to -1, or 'prototype'",
                "-2",
            ],
        ),
    ] {
        let error = params(text).unwrap_err();
        for part in parts {
            assert!(error.contains(part), "{error}");
        }
        assert!(error.ends_with(text), "{error}");
    }
}

#[test]
fn check_shared_mismatch_is_rejected() {
    let live = LivePublication {
        session_id: 7,
        mtu: 1408,
        term_length: 64 << 10,
        position: InitialPosition {
            initial_term_id: 1,
            term_id: 1,
            term_offset: 0,
        },
        spies_simulate_connection: Some(false),
    };
    let check = |text: &str| {
        let channel = Channel::for_publication(text).unwrap();
        let params = PublicationParams::new(&channel, &DEFAULTS).unwrap();
        params.check_shared(&live, &channel)
    };
    assert_eq!(
        check("aeron:udp?endpoint=a:1|linger=0|pub-wnd=2k|sparse=false"),
        Ok(())
    );
    assert_eq!(
        check("aeron:udp?endpoint=a:1|session-id=7|mtu=1408|term-length=64k"),
        Ok(())
    );
    for (key, value) in [
        ("session-id", "8"),
        ("mtu", "2k"),
        ("term-length", "128k"),
        ("ssc", "true"),
    ] {
        let error = check(&format!("aeron:udp?endpoint=a:1|{key}={value}")).unwrap_err();
        assert!(error.text.contains(key), "{error}");
    }
    assert!(
        check("aeron:udp?endpoint=a:1|term-length=64k|init-term-id=1|term-id=2|term-offset=0")
            .is_err()
    );
}

#[test]
fn check_datagram_subtracts_the_expansion() {
    let channel = Channel::for_publication("aeron:udp?endpoint=a:1").unwrap();
    let params = PublicationParams::new(&channel, &DEFAULTS).unwrap();
    let check = |max_datagram, expansion, send_buffer| {
        params.check_datagram(max_datagram, expansion, send_buffer, &channel)
    };
    assert!(check(1_408, 40, 1_448).is_ok());
    let text = check(1_407, 40, 65_536).unwrap_err().text;
    assert!(
        text.contains("mtu=1408 longest=1407 expansion=40 so-sndbuf=65536, lower the mtu to 1376"),
        "{text}"
    );
    assert!(check(65_507, 40, 1_447).is_err());
}

#[test]
fn check_send_buffer_smaller_than_mtu_is_rejected() {
    let channel = Channel::for_publication("aeron:udp?endpoint=a:1").unwrap();
    let params = PublicationParams::new(&channel, &DEFAULTS).unwrap();
    assert!(params.check_send_buffer(1408, &channel).is_ok());
    assert!(params.check_send_buffer(1407, &channel).is_err());
}
