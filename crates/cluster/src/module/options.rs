// SPDX-License-Identifier: Apache-2.0
//! Values of options, as configurations of members and containers take them.

use taran::{ChannelUri, Media};
use taran_protocol::option::{OptionId, OptionSet, Source};

use super::config::ClusterConfigError;

/// Returns options with the values of properties, of which later ones win.
pub(crate) fn read<N: AsRef<str>, V: AsRef<str>>(
    mut options: OptionSet,
    properties: impl IntoIterator<Item = (N, V)>,
) -> Result<OptionSet, ClusterConfigError> {
    let unknown = options.apply(&Source::Code, properties)?;
    match unknown.into_iter().next() {
        Some(unknown) => Err(ClusterConfigError::Unknown(unknown)),
        None => Ok(options),
    }
}

/// Returns the channel of an option.
pub(crate) fn channel(options: &OptionSet, option: OptionId) -> Result<String, ClusterConfigError> {
    let text = options.text(option);
    match ChannelUri::parse(&text) {
        Ok(_) => Ok(text),
        Err(error) => Err(ClusterConfigError::Invalid {
            name: option.spec().property,
            value: text,
            reason: error.to_string(),
        }),
    }
}

/// Returns the channel between consensus module and containers.
pub(crate) fn control_channel(options: &OptionSet) -> Result<String, ClusterConfigError> {
    let text = channel(options, OptionId::ClusterControlChannel)?;
    match ChannelUri::parse(&text) {
        Ok(uri) if uri.media() == Media::Ipc => Ok(text),
        _ => Err(ClusterConfigError::Invalid {
            name: OptionId::ClusterControlChannel.spec().property,
            value: text,
            reason:
                "containers are on the same machine; needs a channel that starts with aeron:ipc"
                    .to_owned(),
        }),
    }
}

/// Converts a value of an option whose range fits 32 bits.
pub(crate) fn int32(value: i64) -> i32 {
    i32::try_from(value).unwrap_or(i32::MAX)
}

/// Converts a value of an option whose range is positive.
pub(crate) fn count(value: i64) -> usize {
    usize::try_from(value).unwrap_or(0)
}
