// SPDX-License-Identifier: Apache-2.0
//! Channels that a client of an archive derives from those of its context (`docs/spec/archive.md` §1.2, §1.10).

use taran::{ChannelUri, Param, UriError};

/// Parameters that request and response channels get unless they have them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ControlDefaults {
    pub(crate) term_length: u32,
    pub(crate) mtu: u32,
    pub(crate) sparse: bool,
}

/// Returns a request or response channel with the parameters that it lacks.
pub(crate) fn control_channel(
    channel: &str,
    defaults: ControlDefaults,
) -> Result<ChannelUri, UriError> {
    let mut uri = ChannelUri::parse(channel)?;
    for (param, value) in [
        (Param::TermLength, defaults.term_length.to_string()),
        (Param::Mtu, defaults.mtu.to_string()),
        (Param::Sparse, defaults.sparse.to_string()),
    ] {
        if uri.get(param).is_none() {
            uri = uri.with(param.key(), &value)?;
        }
    }
    Ok(uri)
}

/// Returns the channel for a publication that carries one replay request, whose replay goes to the response channel of the
/// subscription with this registration id.
pub(crate) fn replay_request_channel(
    control_channel: &str,
    subscription_registration_id: i64,
    term_length: u32,
) -> Result<ChannelUri, UriError> {
    let mut uri = ChannelUri::parse(control_channel)?;
    for param in [
        Param::SessionId,
        Param::InitialTermId,
        Param::TermId,
        Param::TermOffset,
    ] {
        uri = uri.without(param.key())?;
    }
    uri.with(
        Param::ResponseCorrelationId.key(),
        &subscription_registration_id.to_string(),
    )?
    .with(Param::TermLength.key(), &term_length.to_string())?
    .with(Param::SpiesSimulateConnection.key(), "false")
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULTS: ControlDefaults = ControlDefaults {
        term_length: 65_536,
        mtu: 1408,
        sparse: true,
    };

    #[test]
    fn control_channel_keeps_own_parameters_and_adds_missing_ones() {
        let uri = control_channel("aeron:udp?endpoint=localhost:8010|mtu=4k", DEFAULTS).unwrap();
        assert_eq!(
            uri.as_str(),
            "aeron:udp?endpoint=localhost:8010|mtu=4k|term-length=65536|sparse=true"
        );
        assert!(control_channel("localhost:8010", DEFAULTS).is_err());
    }

    #[test]
    fn replay_request_channel_has_no_session_and_no_position() {
        let control = "aeron:udp?endpoint=localhost:8010|session-id=7|init-term-id=1|term-id=2|term-offset=64|term-length=1m";
        assert_eq!(
            replay_request_channel(control, 99, 65_536)
                .unwrap()
                .as_str(),
            "aeron:udp?endpoint=localhost:8010|term-length=65536|response-correlation-id=99|ssc=false"
        );
    }
}
