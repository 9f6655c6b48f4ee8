// SPDX-License-Identifier: Apache-2.0
//! Properties of whole channels: any text yields a value or an error.

use proptest::prelude::*;

use super::{Channel, ChannelUriBuilder, Param, PublicationParams, Role, SubscriptionParams};
use crate::option::{OptionSet, Source};

const ROLES: [Role; 4] = [
    Role::Publication,
    Role::Subscription,
    Role::SendDestination,
    Role::ReceiveDestination,
];

/// Texts that users of the official C driver search for in its errors.
#[test]
fn errors_contain_official_texts() {
    let defaults = OptionSet::driver();
    let rejection = |text: &str, role: Role| {
        let read = Channel::read(text, role).and_then(|channel| match role {
            Role::Publication => {
                PublicationParams::new(&channel, &defaults.publication_defaults()).map(drop)
            }
            Role::Subscription => {
                SubscriptionParams::new(&channel, &defaults.subscription_defaults()).map(drop)
            }
            Role::SendDestination | Role::ReceiveDestination => Ok(()),
        });
        read.expect_err(text).text
    };
    let publications = [
        (
            "aeron:udp?control-mode=dynamic",
            "explicit control expected with dynamic control mode",
        ),
        (
            "aeron:udp?mtu=1408",
            "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response",
        ),
        (
            "aeron:udp?endpoint=224.0.1.2:5",
            "Multicast data address must be odd",
        ),
        (
            "aeron:udp?control=a:1",
            "'control' parameter requires that either 'endpoint' or 'control-mode' is specified",
        ),
        (
            "aeron:udp?endpoint=a:0",
            "endpoint has port=0 for publication",
        ),
        (
            "aeron:udp?endpoint=a:1|media-rcv-ts-offset=0|channel-rcv-ts-offset=4",
            "media-rcv-ts-offset and channel-rcv-ts-offset overlap",
        ),
        ("aeron-spy:aeron:udp?endpoint=a:1", "spies are invalid"),
        (
            "aeron:ipc?pub-wnd=64",
            "pub-wnd=64 cannot be less than the mtu=",
        ),
        (
            "aeron:ipc?term-length=64k|pub-wnd=64k",
            "pub-wnd=65536 must not exceed half the term-length=65536",
        ),
        (
            "aeron:ipc?term-id=1",
            "params: init-term-id term-id term-offset must be used as a complete set",
        ),
        (
            "aeron:ipc?init-term-id=5|term-id=3|term-offset=0",
            "Param difference greater than 2^31 - 1: init-term-id=5",
        ),
        (
            "aeron:ipc?term-length=64k|init-term-id=1|term-id=1|term-offset=65568",
            "Param term-offset=65568 > term-length=65536",
        ),
        (
            "aeron:udp?endpoint=a:1|control-mode=response",
            "control-mode=response was specified, but no response-correlation-id set",
        ),
        (
            "aeron:udp?endpoint=a:1|response-correlation-id=x",
            "invalid response-correlation-id, must be a number greater than or equal to -1, or 'prototype'",
        ),
    ];
    for (text, words) in publications {
        let error = rejection(text, Role::Publication);
        assert!(error.contains(words), "{words}: {error}");
    }
    let destinations = [
        (
            "aeron-spy:aeron:udp?endpoint=a:1",
            "spies are invalid as send destinations",
        ),
        (
            "aeron:udp?endpoint=a:1|mtu=2048",
            "destinations must not contain the key: mtu",
        ),
        (
            "aeron:udp?endpoint=a:1|taran.net=xdp",
            "destinations of a publication must not contain the key: taran.net",
        ),
        (
            "aeron:udp?endpoint=a:1|control-mode=response",
            "destinations may not specify control-mode=response",
        ),
        (
            "aeron:udp?endpoint=a:0",
            "endpoint has port=0 for send destination",
        ),
        ("aeron:ipc", "incorrect URI format for destination"),
    ];
    for (text, words) in destinations {
        let error = rejection(text, Role::SendDestination);
        assert!(error.contains(words), "{words}: {error}");
    }
    let error = rejection("aeron:udp?control=a:0", Role::Subscription);
    assert!(
        error.contains("control has port=0 for subscription"),
        "{error}"
    );
}

/// Returns values that are valid for some parameter, and texts that are almost valid.
fn some_value() -> impl Strategy<Value = String> {
    prop_oneof![
        "[0-9]{1,20}(k|m|g|kb|ns|us|ms|s)?",
        "-?[0-9]{1,12}",
        "(true|false|infer|manual|dynamic|response|prototype|reserved|static|cubic)",
        "(localhost|224\\.0\\.1\\.[0-9]|\\[::1\\]|\\[ff02::1\\]|\\{lo\\}):[0-9]{1,6}(/[0-9]{1,3})?",
        "(max|min|tagged)(,(t|g|rrwm):[0-9/s]{0,4}){0,3}",
        "[0-9]{1,3},[0-9]{1,3}",
        "tag:[0-9]{1,3}",
        "\\PC{0,12}",
    ]
}

fn some_channel() -> impl Strategy<Value = String> {
    let parameter = (0..Param::ALL.len(), some_value())
        .prop_map(|(index, value)| format!("{}={value}", Param::ALL[index].key));
    (
        "(aeron-spy:)?aeron:(udp|ipc)",
        proptest::collection::vec(parameter, 0..6),
    )
        .prop_map(|(start, parameters)| format!("{start}?{}", parameters.join("|")))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn read_random_channel_never_panics(text in some_channel()) {
        let options = OptionSet::driver();
        for role in ROLES {
            let Ok(channel) = Channel::read(&text, role) else { continue };
            let _ = channel.kind();
            if let Ok(params) = PublicationParams::new(&channel, &options.publication_defaults()) {
                prop_assert!(params.window <= params.term_length / 2);
                prop_assert!(params.mtu > 32 && params.mtu.is_multiple_of(32));
                prop_assert!(params.term_length.is_power_of_two());
            }
            let _ = SubscriptionParams::new(&channel, &options.subscription_defaults());
            if let Some(udp) = channel.udp() {
                let any = "0.0.0.0:0".parse().unwrap();
                let literal = |a: &Option<super::Address>| a.as_ref().and_then(super::Address::literal);
                if let Ok(roles) = udp.roles(literal(&udp.endpoint), literal(&udp.control), any) {
                    prop_assert!(udp.canonical_form(&roles, false, || 1).starts_with("UDP-"));
                }
                let _ = udp.select_local(literal(&udp.endpoint), &[], |_| None);
            }
        }
    }

    #[test]
    fn rebuilt_channel_has_same_meaning(text in some_channel()) {
        let options = OptionSet::driver();
        let Ok(channel) = Channel::for_publication(&text) else { return Ok(()) };
        let Ok(again) = ChannelUriBuilder::from_uri(channel.uri()).build() else { return Ok(()) };
        let rebuilt = Channel::for_publication(again.as_str());
        prop_assert!(rebuilt.is_ok(), "{again}");
        let params = |channel: &Channel| {
            PublicationParams::new(channel, &options.publication_defaults()).map_err(|e| e.code)
        };
        prop_assert_eq!(params(&rebuilt.unwrap()), params(&channel));
    }

    #[test]
    fn apply_random_option_text_never_panics(
        index in 0..crate::option::OptionId::ALL.len(),
        value in some_value(),
        name in "(aeron|taran|AERON)[._][a-zA-Z._]{0,30}",
    ) {
        let mut options = OptionSet::driver();
        let spec = &crate::option::OptionId::ALL[index];
        let _ = options.apply(&Source::CommandLine, [(spec.property, value.as_str()), (name.as_str(), "x")]);
        let _ = options.apply(&Source::Environment, [(spec.variable, value.as_str()), (name.as_str(), "x")]);
        let mut again = OptionSet::driver();
        for explained in options.explain() {
            prop_assert!(again.set(explained.option.id, &explained.value, &Source::Code).is_ok());
            prop_assert_eq!(again.value(explained.option.id), options.value(explained.option.id));
        }
    }
}
