// SPDX-License-Identifier: Apache-2.0
//! Parameters of a publication with defaults, and their comparison with an existing publication
//! (docs/spec/uri-and-configuration.md §1.7, §1.9, §1.10).

use super::channel::{Channel, invalid_value, value};
use super::error::UriError;
use super::flow_control::{FlowControlDefaults, FlowControlParams};
use super::keywords::{ControlMode, ResponseCorrelation};
use super::param::{
    FRAME_ALIGNMENT, Param, parse_max_resend, parse_mtu, parse_term_length, parse_term_offset,
};
use super::parse::ChannelUri;
use super::tags::SessionIdValue;
use super::untethered::Untethered;
use super::value::{parse_bool, parse_duration_ns, parse_i32, parse_size};
use super::{ChannelKind, MIN_TERM_LENGTH};

/// Driver options that apply to parameters not set in the channel. Lengths are in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PublicationDefaults {
    /// `aeron.term.buffer.length`
    pub term_length: usize,
    /// `aeron.ipc.term.buffer.length`
    pub ipc_term_length: usize,
    /// `aeron.mtu.length`
    pub mtu: usize,
    /// `aeron.ipc.mtu.length`
    pub ipc_mtu: usize,
    /// `aeron.publication.term.window.length`; 0 means half a term.
    pub window: usize,
    /// `aeron.ipc.publication.term.window.length`; 0 means half a term.
    pub ipc_window: usize,
    /// `aeron.publication.linger.timeout`, in nanoseconds.
    pub linger_ns: i64,
    /// `aeron.term.buffer.sparse.file`
    pub sparse: bool,
    /// `aeron.spies.simulate.connection`
    pub spies_simulate_connection: bool,
    /// `aeron.max.resend`
    pub max_resend: usize,
    /// `aeron.untethered.*.timeout`
    pub untethered: Untethered,
    /// `aeron.flow.control.*` and the flow control suppliers.
    pub flow_control: FlowControlDefaults,
}

/// Session id requested for a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// The driver generates one.
    Generated,
    /// A specific session id.
    Id(i32),
    /// Session id, mtu and term length of the publication with this entity tag.
    OfTag(i64),
}

/// Values that a channel with `session-id=tag:` takes from the tagged publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedPublication {
    /// Session id.
    pub session_id: i32,
    /// MTU in bytes.
    pub mtu: usize,
    /// Term length in bytes.
    pub term_length: usize,
}

impl SessionChoice {
    /// Parses the session id of a channel.
    ///
    /// # Errors
    /// Code 11 with a text that names the value and the valid values.
    pub fn of(channel: &Channel) -> Result<Self, UriError> {
        read_session(channel.uri()).map_err(|e| e.in_channel(channel.uri().as_str()))
    }
}

/// Start position of a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialPosition {
    /// `init-term-id`
    pub initial_term_id: i32,
    /// `term-id`
    pub term_id: i32,
    /// `term-offset`
    pub term_offset: usize,
}

/// Parameters of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationParams {
    /// Maximum frame length in bytes.
    pub mtu: usize,
    /// True if the channel sets the MTU.
    pub mtu_given: bool,
    /// Term length in bytes.
    pub term_length: usize,
    /// True if the channel sets the term length.
    pub term_length_given: bool,
    /// Maximum bytes the publisher may be ahead of its consumers.
    pub window: usize,
    /// Start position; `None` means offset 0 of a random initial term.
    pub position: Option<InitialPosition>,
    /// Session id.
    pub session: SessionChoice,
    /// Linger time of a drained publication, in nanoseconds.
    pub linger_ns: i64,
    /// True if closing signals the end of the stream.
    pub eos: bool,
    /// True if the log file is created sparse.
    pub sparse: bool,
    /// True if spies alone make the publication connected.
    pub spies_simulate_connection: bool,
    /// Maximum concurrent retransmits from the channel or the option. Unicast always uses one.
    pub max_resend: usize,
    /// Flow control. Unicast publications ignore `fc`.
    pub flow_control: FlowControlParams,
    /// True for a response publication (`control-mode=response`).
    pub is_response: bool,
    /// Response correlation.
    pub response: ResponseCorrelation,
    /// Timeouts of untethered spies and IPC subscribers.
    pub untethered: Untethered,
}

impl PublicationParams {
    /// Parses the parameters of a publication.
    ///
    /// # Errors
    /// Code 11 with a text that names the key, the value and the valid values.
    pub fn new(channel: &Channel, defaults: &PublicationDefaults) -> Result<Self, UriError> {
        Self::read(channel, defaults).map_err(|e| e.in_channel(channel.uri().as_str()))
    }

    /// Applies `fc` for a channel with multiple receivers that is found to be one only after name resolution.
    ///
    /// # Errors
    /// Code 11 if `fc` is invalid.
    pub fn use_group_flow_control(
        &mut self,
        channel: &Channel,
        defaults: &PublicationDefaults,
    ) -> Result<(), UriError> {
        self.flow_control = read_group_flow_control(channel, defaults)
            .map_err(|e| e.in_channel(channel.uri().as_str()))?;
        Ok(())
    }

    fn read(channel: &Channel, defaults: &PublicationDefaults) -> Result<Self, UriError> {
        let uri = channel.uri();
        let (default_mtu, default_term_length, default_window) = match channel {
            Channel::Ipc(_) => (
                defaults.ipc_mtu,
                defaults.ipc_term_length,
                defaults.ipc_window,
            ),
            Channel::Udp(_) | Channel::Spy(_) => {
                (defaults.mtu, defaults.term_length, defaults.window)
            }
        };
        let mtu = value(uri, Param::Mtu, parse_mtu)?;
        let term_length = value(uri, Param::TermLength, parse_term_length)?;
        let is_response = channel.control_mode() == Some(ControlMode::Response);
        let response = read_response(uri, is_response)?;

        let mut params = PublicationParams {
            mtu: mtu.unwrap_or(default_mtu),
            mtu_given: mtu.is_some(),
            term_length: term_length.unwrap_or(default_term_length),
            term_length_given: term_length.is_some(),
            window: default_window,
            position: None,
            session: read_session(uri)?,
            linger_ns: value(uri, Param::Linger, parse_duration_ns)?.unwrap_or(defaults.linger_ns),
            eos: value(uri, Param::Eos, parse_bool)?.unwrap_or(true),
            sparse: value(uri, Param::Sparse, parse_bool)?.unwrap_or(defaults.sparse),
            spies_simulate_connection: value(uri, Param::SpiesSimulateConnection, parse_bool)?
                .unwrap_or(defaults.spies_simulate_connection),
            max_resend: value(uri, Param::MaxResend, parse_max_resend)?
                .unwrap_or(defaults.max_resend),
            flow_control: read_flow_control(channel, defaults)?,
            is_response,
            response,
            untethered: Untethered::read(uri, &defaults.untethered)?,
        };
        if response == ResponseCorrelation::Prototype {
            params.term_length = MIN_TERM_LENGTH as usize;
        }
        params.window = read_window(uri, &params)?;
        params.position = read_position(uri, params.term_length)?;
        Ok(params)
    }

    /// Parses the parameters of a publication with `session-id=tag:`. It takes session id, MTU and term length from the
    /// tagged publication.
    ///
    /// # Errors
    /// As [`PublicationParams::new`], and code 11 if the channel sets a different MTU or term length.
    pub fn for_tagged(
        channel: &Channel,
        defaults: &PublicationDefaults,
        tagged: &TaggedPublication,
    ) -> Result<Self, UriError> {
        let defaults = PublicationDefaults {
            mtu: tagged.mtu,
            ipc_mtu: tagged.mtu,
            term_length: tagged.term_length,
            ipc_term_length: tagged.term_length,
            ..*defaults
        };
        let mut params = Self::new(channel, &defaults)?;
        for (param, named, needed) in [
            (Param::Mtu, params.mtu, tagged.mtu),
            (Param::TermLength, params.term_length, tagged.term_length),
        ] {
            if named != needed {
                let key = param.key();
                return Err(UriError::rejected(format!(
                    "{key}={named} does not match the publication that session-id=tag: names, leave it out or set \
                     {key}={needed}"
                ))
                .in_channel(channel.uri().as_str()));
            }
        }
        params.session = SessionChoice::Id(tagged.session_id);
        Ok(params)
    }

    /// Checks that the MTU does not exceed the send buffer length: that of the existing endpoint, else that of the
    /// channel, the option or the operating system.
    ///
    /// # Errors
    /// Code 11 if the MTU is larger.
    pub fn check_send_buffer(&self, send_buffer: usize, channel: &Channel) -> Result<(), UriError> {
        if self.mtu <= send_buffer {
            return Ok(());
        }
        Err(UriError::rejected(format!(
            "MTU greater than SO_SNDBUF for channel: mtu={} so-sndbuf={send_buffer}, lower the mtu or raise so-sndbuf",
            self.mtu
        ))
        .in_channel(channel.uri().as_str()))
    }

    /// Checks the MTU against the longest datagram that the channel's transport sends, and against the send buffer.
    /// `expansion` bytes are added to each datagram on the way to the network; `max_datagram` is without them.
    ///
    /// # Errors
    /// Code 11 with the values and the largest MTU.
    pub fn check_datagram(
        &self,
        max_datagram: usize,
        expansion: usize,
        send_buffer: usize,
        channel: &Channel,
    ) -> Result<(), UriError> {
        let max = max_datagram.min(send_buffer.saturating_sub(expansion));
        if self.mtu <= max {
            return Ok(());
        }
        let largest = max - max % FRAME_ALIGNMENT as usize;
        Err(UriError::rejected(format!(
            "MTU greater than the longest datagram for channel: mtu={} longest={max_datagram} expansion={expansion} \
             so-sndbuf={send_buffer}, lower the mtu to {largest}",
            self.mtu
        ))
        .in_channel(channel.uri().as_str()))
    }

    /// Checks that an existing publication can be shared: each parameter that the channel sets must equal that of the
    /// existing publication.
    ///
    /// # Errors
    /// Code 11 with the existing and the requested value.
    pub fn check_shared(&self, live: &LivePublication, channel: &Channel) -> Result<(), UriError> {
        let position = self.position;
        let session = match self.session {
            SessionChoice::Id(id) => Some(i64::from(id)),
            SessionChoice::Generated | SessionChoice::OfTag(_) => None,
        };
        let numbers = [
            (Param::SessionId, session, i64::from(live.session_id)),
            (
                Param::Mtu,
                self.mtu_given.then_some(self.mtu as i64),
                live.mtu as i64,
            ),
            (
                Param::TermLength,
                self.term_length_given.then_some(self.term_length as i64),
                live.term_length as i64,
            ),
            (
                Param::InitialTermId,
                position.map(|p| i64::from(p.initial_term_id)),
                i64::from(live.position.initial_term_id),
            ),
            (
                Param::TermId,
                position.map(|p| i64::from(p.term_id)),
                i64::from(live.position.term_id),
            ),
            (
                Param::TermOffset,
                position.map(|p| p.term_offset as i64),
                live.position.term_offset as i64,
            ),
        ];
        let mismatch = |key: &str, existing: &str, requested: &str| {
            UriError::rejected(format!(
                "existing publication has different '{key}': existing={existing} requested={requested}; request {existing}, \
                 leave it out, or use another stream or an exclusive publication"
            ))
            .in_channel(channel.uri().as_str())
        };
        for (param, requested, existing) in numbers {
            if let Some(requested) = requested
                && requested != existing
            {
                return Err(mismatch(
                    param.key(),
                    &existing.to_string(),
                    &requested.to_string(),
                ));
            }
        }
        match live.spies_simulate_connection {
            Some(existing) if existing != self.spies_simulate_connection => Err(mismatch(
                Param::SpiesSimulateConnection.key(),
                &existing.to_string(),
                &self.spies_simulate_connection.to_string(),
            )),
            _ => Ok(()),
        }
    }
}

/// Values of an existing publication, compared with a channel that would share it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePublication {
    /// Session id.
    pub session_id: i32,
    /// MTU in bytes.
    pub mtu: usize,
    /// Term length in bytes.
    pub term_length: usize,
    /// Start position.
    pub position: InitialPosition,
    /// True if spies alone make the publication connected; `None` for IPC, for which it is not compared.
    pub spies_simulate_connection: Option<bool>,
}

fn read_session(uri: &ChannelUri) -> Result<SessionChoice, UriError> {
    Ok(match value(uri, Param::SessionId, SessionIdValue::parse)? {
        None => SessionChoice::Generated,
        Some(SessionIdValue::Id(id)) => SessionChoice::Id(id),
        Some(SessionIdValue::Tag(tag)) => SessionChoice::OfTag(tag),
    })
}

fn read_response(uri: &ChannelUri, is_response: bool) -> Result<ResponseCorrelation, UriError> {
    let response = value(
        uri,
        Param::ResponseCorrelationId,
        ResponseCorrelation::parse,
    )?
    .unwrap_or_default();
    if is_response && response == ResponseCorrelation::None {
        return Err(UriError::rejected(
            "control-mode=response was specified, but no response-correlation-id set",
        ));
    }
    Ok(response)
}

/// Parses `fc`. It is ignored, and not validated, for channels with a single receiver.
fn read_flow_control(
    channel: &Channel,
    defaults: &PublicationDefaults,
) -> Result<FlowControlParams, UriError> {
    let many = matches!(
        channel.kind(),
        ChannelKind::Multicast | ChannelKind::Dynamic | ChannelKind::Manual
    );
    if !many {
        return Ok(FlowControlParams::unicast(&defaults.flow_control));
    }
    read_group_flow_control(channel, defaults)
}

fn read_group_flow_control(
    channel: &Channel,
    defaults: &PublicationDefaults,
) -> Result<FlowControlParams, UriError> {
    let text = channel.uri().get(Param::FlowControl);
    FlowControlParams::multicast(text, &defaults.flow_control).map_err(|needed| {
        UriError::rejected(invalid_value(
            Param::FlowControl,
            text.unwrap_or_default(),
            &needed,
        ))
    })
}

fn read_window(uri: &ChannelUri, params: &PublicationParams) -> Result<usize, UriError> {
    let half = params.term_length / 2;
    let Some(window) = value(uri, Param::PublicationWindow, parse_size)? else {
        return Ok(match params.window {
            0 => half,
            window => window.min(half),
        });
    };
    if window < params.mtu as i64 {
        return Err(UriError::rejected(format!(
            "pub-wnd={window} cannot be less than the mtu={}",
            params.mtu
        )));
    }
    usize::try_from(window)
        .ok()
        .filter(|window| *window <= half)
        .ok_or_else(|| {
            UriError::rejected(format!(
                "pub-wnd={window} must not exceed half the term-length={}",
                params.term_length
            ))
        })
}

fn read_position(
    uri: &ChannelUri,
    term_length: usize,
) -> Result<Option<InitialPosition>, UriError> {
    let keys = [Param::InitialTermId, Param::TermId, Param::TermOffset];
    match keys.iter().filter(|key| uri.get(**key).is_some()).count() {
        0 => return Ok(None),
        3 => {}
        _ => {
            return Err(UriError::rejected(
                "params: init-term-id term-id term-offset must be used as a complete set, or none of them",
            ));
        }
    }
    let (Some(initial_term_id), Some(term_id), Some(term_offset)) = (
        value(uri, Param::InitialTermId, parse_i32)?,
        value(uri, Param::TermId, parse_i32)?,
        value(uri, Param::TermOffset, parse_term_offset)?,
    ) else {
        return Ok(None);
    };
    if term_id.wrapping_sub(initial_term_id) < 0 {
        return Err(UriError::rejected(format!(
            "Param difference greater than 2^31 - 1: init-term-id={initial_term_id} term-id={term_id}, a stream cannot begin \
             before its first term"
        )));
    }
    if term_offset > term_length {
        return Err(UriError::rejected(format!(
            "Param term-offset={term_offset} > term-length={term_length}"
        )));
    }
    Ok(Some(InitialPosition {
        initial_term_id,
        term_id,
        term_offset,
    }))
}

#[cfg(test)]
mod tests;
