// SPDX-License-Identifier: Apache-2.0
//! Timeouts of untethered subscribers, parameters of both publications and subscriptions.

use super::channel::value;
use super::error::UriError;
use super::param::Param;
use super::parse::ChannelUri;
use super::value::parse_duration_ns;

/// Timeouts of untethered subscribers in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untethered {
    /// Time for which a subscriber may stay below the window limit before its image becomes unavailable.
    pub window_limit_timeout_ns: i64,
    /// Time for which its position is then still tracked; `None` means the window limit timeout.
    pub linger_timeout_ns: Option<i64>,
    /// Time for which it then rests before it rejoins.
    pub resting_timeout_ns: i64,
}

impl Untethered {
    /// Returns the effective linger timeout.
    #[must_use]
    pub fn linger_ns(&self) -> i64 {
        self.linger_timeout_ns
            .unwrap_or(self.window_limit_timeout_ns)
    }

    pub(super) fn read(uri: &ChannelUri, defaults: &Untethered) -> Result<Self, UriError> {
        let read = |param| value(uri, param, parse_duration_ns);
        Ok(Untethered {
            window_limit_timeout_ns: read(Param::UntetheredWindowLimitTimeout)?
                .unwrap_or(defaults.window_limit_timeout_ns),
            linger_timeout_ns: read(Param::UntetheredLingerTimeout)?.or(defaults.linger_timeout_ns),
            resting_timeout_ns: read(Param::UntetheredRestingTimeout)?
                .unwrap_or(defaults.resting_timeout_ns),
        })
    }
}
