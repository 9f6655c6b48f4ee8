// SPDX-License-Identifier: Apache-2.0
use super::*;

fn defaults() -> SubscriptionDefaults {
    SubscriptionDefaults {
        reliable: true,
        rejoin: true,
        tether: true,
        group: Group::Infer,
        group_tag: None,
        sparse: true,
        receiver_window: 128 << 10,
        congestion_control: CongestionControl::Static,
        nak_delay_ns: 1_000,
        untethered: Untethered {
            window_limit_timeout_ns: 5,
            linger_timeout_ns: Some(6),
            resting_timeout_ns: 10,
        },
    }
}

fn params(text: &str) -> Result<SubscriptionParams, String> {
    Channel::for_subscription(text)
        .and_then(|channel| SubscriptionParams::new(&channel, &defaults()))
        .map_err(|e| e.text)
}

#[test]
fn subscription_params_are_all_read() {
    let p = params(
        "aeron:udp?endpoint=a:0|reliable=false|rejoin=false|tether=false|group=true|gtag=0x10|sparse=false|\
         rcv-wnd=100|cc=cubic|nak-delay=2ms|session-id=-3|control-mode=response|control=b:1|\
         untethered-window-limit-timeout=7",
    )
    .unwrap();
    assert!(!p.reliable && !p.rejoin && !p.tether && !p.sparse && p.is_response);
    assert_eq!((p.group, p.group_tag), (Group::Yes, Some(16)));
    assert_eq!((p.receiver_window, p.nak_delay_ns), (100, 2_000_000));
    assert_eq!(
        (p.congestion_control, p.session_id),
        (CongestionControl::Cubic, Some(-3))
    );
    assert_eq!(
        (
            p.untethered.window_limit_timeout_ns,
            p.untethered.linger_ns()
        ),
        (7, 6)
    );

    let p = params("aeron:ipc").unwrap();
    assert!(p.reliable && p.rejoin && p.tether && p.sparse && !p.is_response);
    assert_eq!(
        (p.group, p.group_tag, p.session_id),
        (Group::Infer, None, None)
    );
    assert_eq!(
        params("aeron:udp?endpoint=a:1|group=maybe").unwrap().group,
        Group::No
    );
}

#[test]
fn invalid_value_error_names_key_and_value() {
    for (text, part) in [
        (
            "aeron:udp?endpoint=a:1|session-id=tag:2",
            "session-id=tag:2",
        ),
        ("aeron:ipc?session-id=abc", "session-id=abc"),
        ("aeron:udp?endpoint=a:1|gtag=abc", "gtag=abc"),
        ("aeron:udp?endpoint=a:1|rcv-wnd=xyz", "rcv-wnd=xyz"),
        ("aeron:udp?endpoint=a:1|nak-delay=abc", "nak-delay=abc"),
        ("aeron:udp?endpoint=a:1|tether=no", "tether=no"),
        ("aeron:udp?control=a:0", "control=a:0"),
    ] {
        let error = params(text).unwrap_err();
        assert!(error.contains(part), "{error}");
    }
}

#[test]
fn check_compatible_mismatch_is_rejected() {
    let channel = |text| Channel::for_subscription(text).unwrap();
    let (a, b) = (
        channel("aeron:udp?endpoint=a:1|reliable=false"),
        channel("aeron:udp?endpoint=a:1"),
    );
    let params = |c| SubscriptionParams::new(c, &defaults()).unwrap();
    assert!(params(&a).check_compatible(&a, &params(&a), &a).is_ok());
    let error = params(&b)
        .check_compatible(&b, &params(&a), &a)
        .unwrap_err();
    assert_eq!(
        error.text,
        "option conflicts with existing subscription: reliable=true \
         existingChannel=aeron:udp?endpoint=a:1|reliable=false channel=aeron:udp?endpoint=a:1"
    );
}
