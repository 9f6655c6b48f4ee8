// SPDX-License-Identifier: Apache-2.0
//! Channel of one of the four roles, with values parsed and combinations validated (docs/spec/uri-and-configuration.md
//! §1.5, §1.9, §1.11).
//!
//! Names are not resolved here. [`UdpChannel::roles`](super::resolved) continues after name resolution.

use super::address::{Address, Interface};
use super::error::UriError;
use super::keywords::{ControlMode, TimestampOffset};
use super::param::{Param, Role, parse_ttl};
use super::parse::{ChannelUri, Media};
use super::tags::Tags;
use super::value::{Requirement, parse_bool, parse_size};

/// Validated channel of a publication, a subscription or a destination.
#[doc(alias = "UdpChannel")]
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// IPC over shared memory.
    Ipc(IpcChannel),
    /// UDP.
    Udp(UdpChannel),
    /// Spy on a local UDP publication, read from its log. For subscriptions and their destinations only.
    Spy(UdpChannel),
}

/// IPC channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcChannel {
    /// Parsed URI.
    pub uri: ChannelUri,
    /// Tags by which other channels refer to this one.
    pub tags: Tags,
    /// Control mode. Only [`ControlMode::Response`] has an effect for IPC.
    pub control_mode: Option<ControlMode>,
}

/// UDP channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpChannel {
    /// Parsed URI.
    pub uri: ChannelUri,
    /// Address to send to or to receive on.
    pub endpoint: Option<Address>,
    /// Control address: bound by the sender, contacted by receivers.
    pub control: Option<Address>,
    /// Local interface; `None` means any.
    pub interface: Option<Interface>,
    /// Control mode of destinations; `None` if the channel has a fixed destination.
    pub control_mode: Option<ControlMode>,
    /// Tags by which other channels refer to this one.
    pub tags: Tags,
    /// Time to live of multicast datagrams; `None` selects the driver's option.
    pub ttl: Option<u8>,
    /// `so-sndbuf` in bytes; `None` selects the driver's option.
    pub send_buffer: Option<usize>,
    /// `so-rcvbuf` in bytes; `None` selects the driver's option.
    pub receive_buffer: Option<usize>,
    /// Name of the network backend; `None` selects that of the driver's option `taran.net`.
    pub backend: Option<Box<str>>,
    /// `taran.secure`, or else `ats`; `None` if neither is given.
    pub secure: Option<bool>,
    /// `taran.label`: name of the channel inside a handshake.
    pub label: Option<Box<str>>,
    /// `taran.peers`: names of the peers that may be at the other end; `None` allows all that are trusted.
    pub peers: Option<Vec<Box<str>>>,
    /// `media-rcv-ts-offset`
    pub media_receive_timestamp: Option<TimestampOffset>,
    /// `channel-rcv-ts-offset`
    pub channel_receive_timestamp: Option<TimestampOffset>,
    /// `channel-snd-ts-offset`
    pub channel_send_timestamp: Option<TimestampOffset>,
}

/// Kind of a channel. An endpoint given as a host name is treated as unicast until it is resolved
/// (docs/spec/uri-and-configuration.md §1.5).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// IPC over shared memory.
    Ipc,
    /// One sender and one receiving address.
    Unicast,
    /// Multicast group.
    Multicast,
    /// `control-mode=dynamic`: receivers register at the control address with status messages.
    Dynamic,
    /// `control-mode=manual`: destinations are added by command.
    Manual,
    /// `control-mode=response`: response channel.
    Response,
    /// Only `tags`: refers to the endpoint of another channel.
    ByTag,
}

impl Channel {
    /// Parses the channel of a publication.
    ///
    /// # Errors
    /// Code 1 for a malformed channel, 11 for invalid values (docs/spec/uri-and-configuration.md §1.2, §1.5, §1.9).
    pub fn for_publication(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::Publication)
    }

    /// Parses the channel of a subscription.
    ///
    /// # Errors
    /// As [`Channel::for_publication`].
    pub fn for_subscription(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::Subscription)
    }

    /// Parses a destination of a publication with manual control mode. Returns a [`Channel::Udp`] with an endpoint.
    ///
    /// # Errors
    /// As [`Channel::for_publication`], with the rules for destinations (docs/spec/uri-and-configuration.md §1.11).
    pub fn for_send_destination(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::SendDestination)
    }

    /// Parses a destination of a subscription with manual control mode.
    ///
    /// # Errors
    /// As [`Channel::for_publication`], with the rules for destinations (docs/spec/uri-and-configuration.md §1.11).
    pub fn for_receive_destination(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::ReceiveDestination)
    }

    /// Parses a channel for a role.
    ///
    /// # Errors
    /// As [`Channel::for_publication`].
    pub fn read(text: &str, role: Role) -> Result<Self, UriError> {
        let uri = ChannelUri::parse(text)?;
        let in_channel = |e: UriError| e.in_channel(text);
        if uri.is_spy() {
            match role {
                Role::Publication => {
                    return Err(in_channel(UriError::invalid(
                        "Aeron spies are invalid for publications",
                    )));
                }
                Role::SendDestination => {
                    return Err(in_channel(UriError::invalid(
                        "Aeron spies are invalid as send destinations",
                    )));
                }
                Role::Subscription | Role::ReceiveDestination => {
                    return Ok(Channel::Spy(UdpChannel::new(uri).map_err(in_channel)?));
                }
            }
        }
        match uri.media() {
            Media::Ipc if role == Role::SendDestination => Err(in_channel(UriError::rejected(
                "incorrect URI format for destination: ipc is not a destination, must be an aeron:udp channel",
            ))),
            Media::Ipc => Ok(Channel::Ipc(IpcChannel::new(uri).map_err(in_channel)?)),
            Media::Udp => {
                let channel = UdpChannel::new(uri).map_err(in_channel)?;
                channel.check_role(role).map_err(in_channel)?;
                Ok(Channel::Udp(channel))
            }
        }
    }

    /// Returns the parsed URI.
    #[must_use]
    pub fn uri(&self) -> &ChannelUri {
        match self {
            Channel::Ipc(channel) => &channel.uri,
            Channel::Udp(channel) | Channel::Spy(channel) => &channel.uri,
        }
    }

    /// Returns the UDP channel, or the one that a spy channel refers to.
    #[must_use]
    pub fn udp(&self) -> Option<&UdpChannel> {
        match self {
            Channel::Ipc(_) => None,
            Channel::Udp(channel) | Channel::Spy(channel) => Some(channel),
        }
    }

    /// Returns the tags by which other channels refer to this one.
    #[must_use]
    pub fn tags(&self) -> Tags {
        match self {
            Channel::Ipc(channel) => channel.tags,
            Channel::Udp(channel) | Channel::Spy(channel) => channel.tags,
        }
    }

    /// Returns the control mode.
    #[must_use]
    pub fn control_mode(&self) -> Option<ControlMode> {
        match self {
            Channel::Ipc(channel) => channel.control_mode,
            Channel::Udp(channel) | Channel::Spy(channel) => channel.control_mode,
        }
    }

    /// Returns the kind of the channel, or that of the channel a spy refers to.
    #[must_use]
    pub fn kind(&self) -> ChannelKind {
        self.udp().map_or(ChannelKind::Ipc, UdpChannel::kind)
    }
}

impl IpcChannel {
    fn new(uri: ChannelUri) -> Result<Self, UriError> {
        Ok(IpcChannel {
            tags: read_tags(&uri)?,
            // Network parameters have no effect on IPC, so an unknown control mode is not an error.
            control_mode: uri
                .get(Param::ControlMode)
                .and_then(|text| ControlMode::parse(text).ok()),
            uri,
        })
    }
}

impl UdpChannel {
    fn new(uri: ChannelUri) -> Result<Self, UriError> {
        let endpoint = value(&uri, Param::Endpoint, Address::parse)?;
        let control_mode = match uri.get(Param::ControlMode) {
            None => None,
            Some(text) => Some(ControlMode::parse(text).map_err(|needed| {
                UriError::invalid(invalid_value(Param::ControlMode, text, &needed))
            })?),
        };
        let channel = UdpChannel {
            ttl: read_ttl(&uri, endpoint.as_ref())?,
            control: value(&uri, Param::Control, Address::parse)?,
            interface: value(&uri, Param::Interface, Interface::parse)?,
            control_mode,
            tags: read_tags(&uri)?,
            send_buffer: socket_buffer(&uri, Param::SendBuffer)?,
            receive_buffer: socket_buffer(&uri, Param::ReceiveBuffer)?,
            backend: uri.get(Param::Backend).map(Box::from),
            secure: read_secure(&uri)?,
            label: uri.get(Param::SecureLabel).map(Box::from),
            peers: value(&uri, Param::SecurePeers, parse_peers)?,
            media_receive_timestamp: timestamp(&uri, Param::MediaReceiveTimestamp)?,
            channel_receive_timestamp: timestamp(&uri, Param::ChannelReceiveTimestamp)?,
            channel_send_timestamp: timestamp(&uri, Param::ChannelSendTimestamp)?,
            endpoint,
            uri,
        };
        channel.check_addresses()?;
        channel.check_timestamps()?;
        Ok(channel)
    }

    /// Returns the kind of the channel.
    #[must_use]
    pub fn kind(&self) -> ChannelKind {
        match self.control_mode {
            Some(ControlMode::Manual) => ChannelKind::Manual,
            Some(ControlMode::Dynamic) => ChannelKind::Dynamic,
            Some(ControlMode::Response) => ChannelKind::Response,
            None if self.is_multicast() => ChannelKind::Multicast,
            None if self.endpoint.is_none() && self.control.is_none() => ChannelKind::ByTag,
            None => ChannelKind::Unicast,
        }
    }

    /// Returns true if the endpoint is a literal multicast address.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.endpoint.as_ref().is_some_and(Address::is_multicast)
    }

    /// Returns true if the channel has a control address.
    #[must_use]
    pub fn has_explicit_control(&self) -> bool {
        self.control.is_some()
    }
}

/// Returns the error text `invalid <key>, must be <needed>: <key>=<value>`.
pub(super) fn invalid_value(param: Param, text: &str, needed: &str) -> String {
    let key = param.key();
    format!("invalid {key}, must be {needed}: {key}={text}")
}

/// Parses one parameter. An invalid text is an error with code 11.
pub(super) fn value<T>(
    uri: &ChannelUri,
    param: Param,
    parse: impl FnOnce(&str) -> Result<T, Requirement>,
) -> Result<Option<T>, UriError> {
    match uri.get(param) {
        None => Ok(None),
        Some(text) => parse(text)
            .map(Some)
            .map_err(|needed| UriError::rejected(invalid_value(param, text, &needed))),
    }
}

fn read_tags(uri: &ChannelUri) -> Result<Tags, UriError> {
    let Some(text) = uri.get(Param::Tags) else {
        return Ok(Tags::default());
    };
    Tags::parse(text).map_err(|e| {
        let text = invalid_value(Param::Tags, text, &e.needed);
        match e.code {
            crate::error_code::ErrorCode::InvalidChannel => UriError::invalid(text),
            _ => UriError::rejected(text),
        }
    })
}

/// Reads `taran.secure` and `ats`, which must not contradict each other.
fn read_secure(uri: &ChannelUri) -> Result<Option<bool>, UriError> {
    let secure = value(uri, Param::Secure, parse_bool)?;
    let ats = value(uri, Param::TransportSecurity, parse_bool)?;
    match (secure, ats) {
        (Some(secure), Some(ats)) if secure != ats => Err(UriError::rejected(format!(
            "{}={secure} contradicts {}={ats}: use the same value, or leave one out",
            Param::Secure.key(),
            Param::TransportSecurity.key()
        ))),
        _ => Ok(secure.or(ats)),
    }
}

/// Parses a list of names of peers. An empty name would allow nothing, so it is an error.
fn parse_peers(text: &str) -> Result<Vec<Box<str>>, Requirement> {
    let names = text.split(',').map(str::trim);
    if names.clone().any(str::is_empty) {
        return Err("names of peers, separated by commas".into());
    }
    Ok(names.map(Box::from).collect())
}

/// Parses `ttl`. Only multicast channels use it, so an invalid text of other channels is ignored.
fn read_ttl(uri: &ChannelUri, endpoint: Option<&Address>) -> Result<Option<u8>, UriError> {
    let ttl = value(uri, Param::Ttl, parse_ttl);
    if endpoint.is_some_and(Address::is_multicast) {
        ttl
    } else {
        Ok(ttl.unwrap_or_default())
    }
}

/// Parses a socket buffer length, clamped to the maximum of `i32`. 0 selects the default.
fn socket_buffer(uri: &ChannelUri, param: Param) -> Result<Option<usize>, UriError> {
    let bytes = value(uri, param, parse_size)?;
    Ok(bytes
        .filter(|bytes| *bytes > 0)
        .map(|bytes| usize::try_from(bytes.min(i64::from(i32::MAX))).unwrap_or_default()))
}

fn timestamp(uri: &ChannelUri, param: Param) -> Result<Option<TimestampOffset>, UriError> {
    Ok(value(uri, param, TimestampOffset::parse)?.flatten())
}
