//! Features of channels that this driver does not have yet: refused by name, never ignored.

use taran_protocol::uri::{Channel, Feature, Role};

use super::failure::Failure;

/// What is built for everybody, beyond publications and subscriptions over IPC and to one receiver.
const BUILT: &[Feature] = &[
    Feature::ByTag,
    Feature::Untethered,
    Feature::ReceiverGroup,
    Feature::Multicast,
    Feature::Spy,
    Feature::Response,
    Feature::Timestamps,
];

/// What is built for those who send, too.
const BUILT_TO_SEND: &[Feature] = &[Feature::ManualControl, Feature::DynamicControl];

/// What is built for those who receive, too.
const BUILT_TO_RECEIVE: &[Feature] = &[
    Feature::ManualControl,
    Feature::DynamicControl,
    Feature::Cubic,
];

fn built(role: Role) -> Vec<Feature> {
    let own = match role {
        Role::Publication | Role::SendDestination => BUILT_TO_SEND,
        Role::Subscription | Role::ReceiveDestination => BUILT_TO_RECEIVE,
    };
    [BUILT, own].concat()
}

/// Refuses a channel that needs what is not built.
pub(crate) fn check_channel(channel: &Channel, role: Role) -> Result<(), Failure> {
    Ok(channel.require(role, &built(role))?)
}
