//! Properties of whole channels: whatever the text, reading it ends in a value or a refusal.

use proptest::prelude::*;

use super::{Channel, ChannelUriBuilder, Param, PublicationParams, Role, SubscriptionParams};
use crate::option::{OptionSet, Source};

const ROLES: [Role; 4] = [
    Role::Publication,
    Role::Subscription,
    Role::SendDestination,
    Role::ReceiveDestination,
];

/// Values that are right somewhere, and texts that are nearly so.
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
    fn every_channel_is_read_or_refused(text in some_channel()) {
        let options = OptionSet::driver();
        for role in ROLES {
            let Ok(channel) = Channel::read(&text, role) else { continue };
            let _ = channel.features(role);
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
    fn a_channel_means_the_same_when_it_is_built_again(text in some_channel()) {
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
    fn every_option_text_is_taken_or_refused(
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
