// SPDX-License-Identifier: Apache-2.0
//! Which refusals of a driver pass by themselves.

use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{ChannelUri, Param};

use crate::error::CommandError;

/// Returns true if a command with this channel cannot succeed on the same driver, so that it is not repeated.
///
/// A channel that names other streams, by tag, session id or correlation id, is refused as invalid while those do not exist or,
/// by official Java drivers, while another stream has its session id. That passes when the others are added or closed.
pub(super) fn is_final(error: &CommandError, channel: Option<&str>) -> bool {
    let is_invalid_channel = matches!(
        error,
        CommandError::Registration(refused) if refused.code == ErrorCode::InvalidChannel
    );
    error.is_permanent() && !(is_invalid_channel && channel.is_some_and(names_other_streams))
}

fn names_other_streams(channel: &str) -> bool {
    let others = [Param::Tags, Param::SessionId, Param::ResponseCorrelationId];
    ChannelUri::parse(channel)
        .is_ok_and(|channel| others.iter().any(|other| channel.get(*other).is_some()))
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
    fn invalid_channel_is_final_unless_it_names_other_streams() {
        let error = refused(ErrorCode::InvalidChannel);
        for channel in ["aeron:udp?endpoint=a:1", "aeron:ipc", "no channel?tags=1"] {
            assert!(is_final(&error, Some(channel)), "{channel}");
        }
        for channel in [
            "aeron:udp?tags=1",
            "aeron:ipc?session-id=7",
            "aeron:udp?control-mode=response|control=a:1|response-correlation-id=9",
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
