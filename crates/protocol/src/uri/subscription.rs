//! The parameters of a subscription, defaults filled in (docs/spec/uri-and-configuration.md §1.7, §1.9).

use super::channel::{Channel, value};
use super::error::UriError;
use super::keywords::ControlMode;
use super::param::Param;
use super::tags::SessionIdValue;
use super::untethered::Untethered;
use super::value::{parse_bool, parse_duration_ns, parse_i64, parse_size};

/// Whether a receiver counts itself to a group, which changes the delays of its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Group {
    /// It does.
    Yes,
    /// It does not.
    No,
    /// It does if the endpoint is multicast or the sender says so.
    Infer,
}

impl Group {
    /// Reads a tri-state: any text that is neither `true` nor `infer` counts as false.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "true" => Group::Yes,
            "infer" => Group::Infer,
            _ => Group::No,
        }
    }
}

/// The congestion control of a subscription's images.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CongestionControl {
    /// A window of constant length.
    Static,
    /// CUBIC.
    Cubic,
    /// A name nobody knows. The subscription is added; its images fail to be created.
    Unknown(String),
}

impl CongestionControl {
    /// Reads the value of `cc`.
    #[must_use]
    pub fn parse(text: &str) -> Self {
        match text {
            "static" => CongestionControl::Static,
            "cubic" => CongestionControl::Cubic,
            other => CongestionControl::Unknown(other.to_owned()),
        }
    }
}

/// What holds where a channel says nothing: the driver's options.
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

/// The parameters of a subscription.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SubscriptionParams {
    /// Whether lost frames are asked for again.
    pub reliable: bool,
    /// Whether images are taken again after they went away.
    pub rejoin: bool,
    /// Whether a slow subscriber holds back the stream.
    pub tether: bool,
    /// Whether the receiver counts itself to a group.
    pub group: Group,
    /// Sent in status messages.
    pub group_tag: Option<i64>,
    /// Whether the pages of images' logs are left to be allocated when they are first used.
    pub sparse: bool,
    /// Initial receiver window in bytes; an image caps it at half its term.
    pub receiver_window: usize,
    /// The congestion control of images.
    pub congestion_control: CongestionControl,
    /// Delay before a lost frame is asked for, unicast only, in nanoseconds.
    pub nak_delay_ns: i64,
    /// Take only images of this session; `None` = of any.
    pub session_id: Option<i32>,
    /// Whether this subscription waits for responses (`control-mode=response`).
    pub is_response: bool,
    /// When a subscriber without tether is dropped.
    pub untethered: Untethered,
}

impl SubscriptionParams {
    /// Reads the parameters of a subscription.
    ///
    /// # Errors
    /// Code 11 with a text that names key, value and what is allowed.
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

    /// Checks that the receiver window fits into the endpoint's receive buffer: that of the existing endpoint, else the
    /// channel's, the option's or the operating system's. To be done before the socket is bound.
    ///
    /// # Errors
    /// Code 11.
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

    /// Checks that this subscription can share endpoint, stream and session with one that exists.
    ///
    /// # Errors
    /// Code 11 with the option that differs and both channels.
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
