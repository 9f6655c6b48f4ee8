//! Timeouts of untethered subscribers, which publications and subscriptions both carry.

use super::channel::value;
use super::error::UriError;
use super::param::Param;
use super::parse::ChannelUri;
use super::value::parse_duration_ns;

/// When a subscriber that may be dropped is dropped, and when it may come back. All in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untethered {
    /// How long it may be below the window.
    pub window_limit_timeout_ns: i64,
    /// How long it then lingers; `None` = the window limit timeout in force.
    pub linger_timeout_ns: Option<i64>,
    /// How long it rests before it is active again.
    pub resting_timeout_ns: i64,
}

impl Untethered {
    /// The linger timeout in force.
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
