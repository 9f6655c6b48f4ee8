// SPDX-License-Identifier: Apache-2.0
//! Parameters of a subscription with defaults (docs/spec/uri-and-configuration.md §1.7, §1.9).

use super::channel::{Channel, value};
use super::error::UriError;
use super::keywords::ControlMode;
use super::param::Param;
use super::tags::SessionIdValue;
use super::untethered::Untethered;
use super::value::{parse_bool, parse_duration_ns, parse_i64, parse_size};

/// Shortest MTU of a stream, in bytes.
const MIN_MTU: usize = 64;

/// Group consideration of a receiver, which determines its NAK delays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// The receiver is part of a group.
    Yes,
    /// The receiver is not part of a group.
    No,
    /// The receiver is part of a group if the endpoint is multicast or the SETUP has the group flag.
    Infer,
}

impl Group {
    /// Parses a tri-state. Any text other than `true` and `infer` means false.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "true" => Group::Yes,
            "infer" => Group::Infer,
            _ => Group::No,
        }
    }
}

/// Congestion control of the images of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// A window of constant length.
    Static,
    /// CUBIC.
    Cubic,
    /// An unknown name, for a strategy of an embedding program; any other driver rejects the subscription.
    Unknown(String),
}

impl CongestionControl {
    /// Parses the value of `cc`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "static" => CongestionControl::Static,
            "cubic" => CongestionControl::Cubic,
            other => CongestionControl::Unknown(other.to_owned()),
        }
    }
}

/// Driver options that apply to parameters not set in the channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionDefaults {
    /// `aeron.reliable.stream`
    pub reliable: bool,
    /// `aeron.rejoin.stream`
    pub rejoin: bool,
    /// `aeron.tether.subscriptions`
    pub tether: bool,
    /// `aeron.receiver.group.consideration`
    pub group: Group,
    /// `aeron.receiver.group.tag`
    pub group_tag: Option<i64>,
    /// `aeron.term.buffer.sparse.file`
    pub sparse: bool,
    /// `aeron.rcv.initial.window.length`, in bytes.
    pub receiver_window: usize,
    /// `aeron.CongestionControl.supplier`
    pub congestion_control: CongestionControl,
    /// `aeron.nak.unicast.delay`, in nanoseconds.
    pub nak_delay_ns: i64,
    /// `aeron.untethered.*.timeout`
    pub untethered: Untethered,
}

/// Parameters of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionParams {
    /// True if lost frames are requested again with NAKs.
    pub reliable: bool,
    /// True if a stream is accepted again after its image became unavailable.
    pub rejoin: bool,
    /// True if a slow subscriber holds back the stream.
    pub tether: bool,
    /// Group consideration.
    pub group: Group,
    /// Group tag sent in status messages.
    pub group_tag: Option<i64>,
    /// True if the log files of images are created sparse.
    pub sparse: bool,
    /// Initial receiver window in bytes; limited to half a term per image.
    pub receiver_window: usize,
    /// Congestion control of images.
    pub congestion_control: CongestionControl,
    /// Delay before the first NAK for a gap, unicast only, in nanoseconds.
    pub nak_delay_ns: i64,
    /// Session id of accepted images; `None` accepts any.
    pub session_id: Option<i32>,
    /// True for a response subscription (`control-mode=response`).
    pub is_response: bool,
    /// Timeouts of untethered subscribers.
    pub untethered: Untethered,
}

impl SubscriptionParams {
    /// Parses the parameters of a subscription.
    ///
    /// # Errors
    /// Code 11 with a text that names the key, the value and the valid values.
    pub fn new(channel: &Channel, defaults: &SubscriptionDefaults) -> Result<Self, UriError> {
        Self::read(channel, defaults).map_err(|e| e.in_channel(channel.uri().as_str()))
    }

    fn read(channel: &Channel, defaults: &SubscriptionDefaults) -> Result<Self, UriError> {
        let uri = channel.uri();
        let boolean = |param, default| Ok(value(uri, param, parse_bool)?.unwrap_or(default));
        Ok(SubscriptionParams {
            reliable: boolean(Param::Reliable, defaults.reliable)?,
            rejoin: boolean(Param::Rejoin, defaults.rejoin)?,
            tether: boolean(Param::Tether, defaults.tether)?,
            group: uri.get(Param::Group).map_or(defaults.group, Group::parse),
            group_tag: value(uri, Param::GroupTag, parse_i64)?.or(defaults.group_tag),
            sparse: boolean(Param::Sparse, defaults.sparse)?,
            receiver_window: match value(uri, Param::ReceiverWindow, parse_size)? {
                Some(window) => usize::try_from(window).unwrap_or(usize::MAX),
                None => defaults.receiver_window,
            },
            congestion_control: uri.get(Param::CongestionControl).map_or_else(
                || defaults.congestion_control.clone(),
                CongestionControl::parse,
            ),
            nak_delay_ns: value(uri, Param::NakDelay, parse_duration_ns)?
                .unwrap_or(defaults.nak_delay_ns),
            session_id: match value(uri, Param::SessionId, SessionIdValue::parse)? {
                None => None,
                Some(SessionIdValue::Id(id)) => Some(id),
                Some(SessionIdValue::Tag(tag)) => {
                    return Err(UriError::rejected(format!(
                        "session-id=tag:{tag} is for publications, a subscription needs a session id"
                    )));
                }
            },
            is_response: channel.control_mode() == Some(ControlMode::Response),
            untethered: Untethered::read(uri, &defaults.untethered)?,
        })
    }

    /// Checks what each image of a UDP channel needs: a congestion control that the driver knows, unless `accepts_names`
    /// says that an embedding program supplies others, and a receiver window for the shortest MTU.
    ///
    /// # Errors
    /// Code 11 with the value and the valid values.
    pub fn check_images(&self, channel: &Channel, accepts_names: bool) -> Result<(), UriError> {
        let rejected =
            |text: String| Err(UriError::rejected(text).in_channel(channel.uri().as_str()));
        if let CongestionControl::Unknown(name) = &self.congestion_control
            && !accepts_names
        {
            return rejected(format!(
                "unknown congestion control, must be static or cubic: cc={name}"
            ));
        }
        if self.receiver_window < MIN_MTU {
            return rejected(format!(
                "rcv-wnd={} is less than the shortest mtu={MIN_MTU}, so that no stream can be received; raise it to at \
                 least the mtu of the publications",
                self.receiver_window
            ));
        }
        Ok(())
    }

    /// Checks that the receiver window does not exceed the receive buffer length: that of the existing endpoint, else
    /// that of the channel, the option or the operating system. Called before the socket is bound.
    ///
    /// # Errors
    /// Code 11 if the window is larger.
    pub fn check_receive_buffer(
        &self,
        receive_buffer: usize,
        channel: &Channel,
    ) -> Result<(), UriError> {
        if self.receiver_window <= receive_buffer {
            return Ok(());
        }
        Err(UriError::rejected(format!(
            "Initial window greater than SO_RCVBUF for channel: rcv-wnd={} so-rcvbuf={receive_buffer}, lower the window or \
             raise so-rcvbuf",
            self.receiver_window
        ))
        .in_channel(channel.uri().as_str()))
    }

    /// Checks that the subscription can share endpoint, stream and session with an existing one.
    ///
    /// # Errors
    /// Code 11 with the parameter that differs and both channels.
    pub fn check_compatible(
        &self,
        channel: &Channel,
        existing: &SubscriptionParams,
        existing_channel: &Channel,
    ) -> Result<(), UriError> {
        for (name, requested, existing) in [
            ("isResponse", self.is_response, existing.is_response),
            ("reliable", self.reliable, existing.reliable),
            ("rejoin", self.rejoin, existing.rejoin),
        ] {
            if requested != existing {
                return Err(UriError::rejected(format!(
                    "option conflicts with existing subscription: {name}={requested} existingChannel={} channel={}",
                    existing_channel.uri(),
                    channel.uri()
                )));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests;
