// SPDX-License-Identifier: Apache-2.0
//! Which refusals of a driver pass by themselves.

use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{Address, ChannelUri, Host, Interface, Param};

use crate::error::CommandError;

/// Returns true if the refusal of a command with this channel does not pass by itself, so that the command is not repeated
/// on the same connection.
///
/// Two kinds of channels can be refused as invalid for a reason that passes:
///
/// * A channel that names other streams, by tag, session id or correlation id: while those do not exist or, by official Java
///   drivers, while another stream has its session id. That passes when the others are added or closed.
/// * A channel with a host name: official Java drivers answer so while the name cannot be resolved.
pub(super) fn is_final(error: &CommandError, channel: Option<&str>) -> bool {
    let is_invalid_channel = matches!(
        error,
        CommandError::Registration(refused) if refused.code == ErrorCode::InvalidChannel
    );
    error.is_permanent() && !(is_invalid_channel && channel.is_some_and(depends_on_others))
}

fn depends_on_others(channel: &str) -> bool {
    ChannelUri::parse(channel)
        .is_ok_and(|channel| names_other_streams(&channel) || has_host_name(&channel))
}

fn names_other_streams(channel: &ChannelUri) -> bool {
    let others = [Param::Tags, Param::SessionId, Param::ResponseCorrelationId];
    others.iter().any(|other| channel.get(*other).is_some())
}

fn has_host_name(channel: &ChannelUri) -> bool {
    let addresses = [Param::Endpoint, Param::Control].into_iter();
    let mut addresses = addresses.filter_map(|param| channel.get(param));
    addresses.any(|it| Address::parse(it).is_ok_and(|address| is_name(&address.host)))
        || channel.get(Param::Interface).is_some_and(|interface| {
            matches!(Interface::parse(interface), Ok(Interface::Network { host, .. }) if is_name(&host))
        })
}

fn is_name(host: &Host) -> bool {
    host.ip().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::RegistrationError;

    fn refused(code: ErrorCode) -> CommandError {
        let text = String::new();
        let correlation_id = 1;
        CommandError::Registration(RegistrationError {
            code,
            text,
            correlation_id,
        })
    }

    #[test]
    fn invalid_channel_is_final_unless_it_names_other_streams_or_hosts() {
        let error = refused(ErrorCode::InvalidChannel);
        for channel in [
            "aeron:udp?endpoint=10.0.0.1:1|control=[::1]:0|interface=10.0.0.0/24",
            "aeron:udp?endpoint=10.0.0.1:1|interface={eth0}",
            "aeron:udp?endpoint=no.port",
            "aeron:ipc",
            "no channel?tags=1",
        ] {
            assert!(is_final(&error, Some(channel)), "{channel}");
        }
        for channel in [
            "aeron:udp?tags=1",
            "aeron:ipc?session-id=7",
            "aeron:udp?control-mode=response|control=10.0.0.1:1|response-correlation-id=9",
            "aeron:udp?endpoint=server:1",
            "aeron-spy:aeron:udp?endpoint=server:1",
            "aeron:udp?control-mode=dynamic|control=server:1",
            "aeron:udp?endpoint=224.0.1.1:1|interface=localhost/8",
        ] {
            assert!(!is_final(&error, Some(channel)), "{channel}");
        }
        assert!(is_final(&error, None));
    }

    #[test]
    fn other_permanent_errors_are_final_for_each_channel() {
        let tagged = Some("aeron:udp?tags=1");
        assert!(is_final(&refused(ErrorCode::NotSupported), tagged));
        assert!(!is_final(&refused(ErrorCode::GenericError), tagged));
        assert!(!is_final(&refused(ErrorCode::UnknownHost), None));
    }
}
