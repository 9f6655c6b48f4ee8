//! A channel as one of its four users understands it: values read, combinations checked (docs/spec/uri-and-configuration.md §1.5, §1.9, §1.11).
//!
//! Nothing is resolved here. [`UdpChannel::roles`](super::resolved) takes over once names have become addresses.

use super::address::{Address, Interface};
use super::error::UriError;
use super::keywords::{ControlMode, TimestampOffset};
use super::param::{Param, Role, parse_ttl};
use super::parse::{ChannelUri, Media};
use super::tags::Tags;
use super::value::{Requirement, parse_bool, parse_size};

/// A channel, ready to be used by a publication, a subscription or a destination.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Channel {
    /// Shared memory.
    Ipc(IpcChannel),
    /// Datagrams.
    Udp(UdpChannel),
    /// A local publication to datagrams, read without the network. Subscriptions and their sources only.
    Spy(UdpChannel),
}

/// A channel over shared memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IpcChannel {
    /// The text and its parameters.
    pub uri: ChannelUri,
    /// How other channels refer to this one.
    pub tags: Tags,
    /// Only [`ControlMode::Response`] has a meaning here.
    pub control_mode: Option<ControlMode>,
}

/// A channel over datagrams.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UdpChannel {
    /// The text and its parameters.
    pub uri: ChannelUri,
    /// Where to send to, or to receive on.
    pub endpoint: Option<Address>,
    /// Where the sender is bound and reached by receivers.
    pub control: Option<Address>,
    /// The local interface; `None` = any.
    pub interface: Option<Interface>,
    /// Who decides on the destinations; `None` = the channel itself.
    pub control_mode: Option<ControlMode>,
    /// How other channels refer to this one.
    pub tags: Tags,
    /// Hops of multicast datagrams; `None` = the driver's option.
    pub ttl: Option<u8>,
    /// `so-sndbuf` in bytes; `None` = the driver's option.
    pub send_buffer: Option<usize>,
    /// `so-rcvbuf` in bytes; `None` = the driver's option.
    pub receive_buffer: Option<usize>,
    /// `media-rcv-ts-offset`
    pub media_receive_timestamp: Option<TimestampOffset>,
    /// `channel-rcv-ts-offset`
    pub channel_receive_timestamp: Option<TimestampOffset>,
    /// `channel-snd-ts-offset`
    pub channel_send_timestamp: Option<TimestampOffset>,
}

/// The kinds of channels (docs/spec/uri-and-configuration.md §1.5). An endpoint that is a name counts as unicast until it is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ChannelKind {
    /// Shared memory.
    Ipc,
    /// One sender, one address to receive on.
    Unicast,
    /// A group of receivers behind one address.
    Multicast,
    /// `control-mode=dynamic`: receivers announce themselves to the control address.
    Dynamic,
    /// `control-mode=manual`: destinations, or sources, by command.
    Manual,
    /// `control-mode=response`
    Response,
    /// Nothing but `tags`: another channel's endpoint.
    ByTag,
}

impl Channel {
    /// Reads a channel for a publication.
    ///
    /// # Errors
    /// docs/spec/uri-and-configuration.md §1.2, §1.5, §1.9: code 1 for a channel that cannot be understood, 11 for values that are not allowed.
    pub fn for_publication(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::Publication)
    }

    /// Reads a channel for a subscription.
    ///
    /// # Errors
    /// As [`Channel::for_publication`].
    pub fn for_subscription(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::Subscription)
    }

    /// Reads a destination of a publication with manual control. It is always [`Channel::Udp`] with an endpoint.
    ///
    /// # Errors
    /// As [`Channel::for_publication`], and docs/spec/uri-and-configuration.md §1.11.
    pub fn for_send_destination(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::SendDestination)
    }

    /// Reads a source of a subscription with manual control.
    ///
    /// # Errors
    /// As [`Channel::for_publication`], and docs/spec/uri-and-configuration.md §1.11.
    pub fn for_receive_destination(text: &str) -> Result<Self, UriError> {
        Self::read(text, Role::ReceiveDestination)
    }

    /// Reads a channel for one of its users.
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
                "incorrect URI format for destination: ipc is none to send to, must be an aeron:udp channel",
            ))),
            Media::Ipc => Ok(Channel::Ipc(IpcChannel::new(uri).map_err(in_channel)?)),
            Media::Udp => {
                let channel = UdpChannel::new(uri).map_err(in_channel)?;
                channel.check_role(role).map_err(in_channel)?;
                Ok(Channel::Udp(channel))
            }
        }
    }

    /// The text and its parameters.
    #[must_use]
    pub fn uri(&self) -> &ChannelUri {
        match self {
            Channel::Ipc(channel) => &channel.uri,
            Channel::Udp(channel) | Channel::Spy(channel) => &channel.uri,
        }
    }

    /// The channel over datagrams that this is, or that it spies on.
    #[must_use]
    pub fn udp(&self) -> Option<&UdpChannel> {
        match self {
            Channel::Ipc(_) => None,
            Channel::Udp(channel) | Channel::Spy(channel) => Some(channel),
        }
    }

    /// How other channels refer to this one.
    #[must_use]
    pub fn tags(&self) -> Tags {
        match self {
            Channel::Ipc(channel) => channel.tags,
            Channel::Udp(channel) | Channel::Spy(channel) => channel.tags,
        }
    }

    /// Who decides on the destinations.
    #[must_use]
    pub fn control_mode(&self) -> Option<ControlMode> {
        match self {
            Channel::Ipc(channel) => channel.control_mode,
            Channel::Udp(channel) | Channel::Spy(channel) => channel.control_mode,
        }
    }

    /// The kind of channel this is, or spies on.
    #[must_use]
    pub fn kind(&self) -> ChannelKind {
        self.udp().map_or(ChannelKind::Ipc, UdpChannel::kind)
    }
}

impl IpcChannel {
    fn new(uri: ChannelUri) -> Result<Self, UriError> {
        Ok(IpcChannel {
            tags: read_tags(&uri)?,
            // Parameters of the network mean nothing here, so a word nobody knows is no error.
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
            media_receive_timestamp: timestamp(&uri, Param::MediaReceiveTimestamp)?,
            channel_receive_timestamp: timestamp(&uri, Param::ChannelReceiveTimestamp)?,
            channel_send_timestamp: timestamp(&uri, Param::ChannelSendTimestamp)?,
            endpoint,
            uri,
        };
        channel.check_addresses()?;
        channel.check_timestamps()?;
        if value(&channel.uri, Param::TransportSecurity, parse_bool)? == Some(true) {
            return Err(UriError::rejected(
                "ats=true: transport security is not available, must be false or left out",
            ));
        }
        Ok(channel)
    }

    /// The kind of channel.
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

    /// Whether the endpoint is a literal multicast address.
    #[must_use]
    pub fn is_multicast(&self) -> bool {
        self.endpoint.as_ref().is_some_and(Address::is_multicast)
    }

    /// Whether a control address was given.
    #[must_use]
    pub fn has_explicit_control(&self) -> bool {
        self.control.is_some()
    }
}

/// `invalid <key>, must be <needed>: <key>=<value>`
pub(super) fn invalid_value(param: Param, text: &str, needed: &str) -> String {
    let key = param.key();
    format!("invalid {key}, must be {needed}: {key}={text}")
}

/// Reads one parameter; a text that is not allowed is code 11.
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

/// Only multicast looks at the hops, so the text of other channels may be anything.
fn read_ttl(uri: &ChannelUri, endpoint: Option<&Address>) -> Result<Option<u8>, UriError> {
    let ttl = value(uri, Param::Ttl, parse_ttl);
    if endpoint.is_some_and(Address::is_multicast) {
        ttl
    } else {
        Ok(ttl.unwrap_or_default())
    }
}

/// A size that may be larger than what a socket can be asked for; then the most is asked for. 0 is the default.
fn socket_buffer(uri: &ChannelUri, param: Param) -> Result<Option<usize>, UriError> {
    let bytes = value(uri, param, parse_size)?;
    Ok(bytes
        .filter(|bytes| *bytes > 0)
        .map(|bytes| usize::try_from(bytes.min(i64::from(i32::MAX))).unwrap_or_default()))
}

fn timestamp(uri: &ChannelUri, param: Param) -> Result<Option<TimestampOffset>, UriError> {
    Ok(value(uri, param, TimestampOffset::parse)?.flatten())
}
