//! Features of channels that this driver does not have yet: refused by name, never ignored.

use taran_protocol::uri::{Channel, Feature, Role};

use super::failure::Failure;
use super::network::ResolvedChannel;

/// What is built, beyond publications and subscriptions over IPC and to one receiver.
const BUILT: &[Feature] = &[Feature::ByTag, Feature::Untethered, Feature::ReceiverGroup];

/// Refuses a channel that needs what is not built.
pub(crate) fn check_channel(channel: &Channel, role: Role) -> Result<(), Failure> {
    Ok(channel.require(role, BUILT)?)
}

/// The same for what shows only when names have become addresses.
pub(crate) fn check_resolved(resolved: &ResolvedChannel) -> Result<(), Failure> {
    if resolved.roles.multicast {
        return Err(Failure::not_built(&format!(
            "{} (channel={})",
            Feature::Multicast,
            resolved.text()
        )));
    }
    Ok(())
}
