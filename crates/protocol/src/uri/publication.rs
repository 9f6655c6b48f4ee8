//! The parameters of a publication, defaults filled in, and how they compare with a live one (docs/spec/uri-and-configuration.md §1.7, §1.9, §1.10).

use super::channel::{Channel, invalid_value, value};
use super::error::UriError;
use super::flow_control::{FlowControlDefaults, FlowControlParams};
use super::keywords::{ControlMode, ResponseCorrelation};
use super::param::{Param, parse_max_resend, parse_mtu, parse_term_length, parse_term_offset};
use super::parse::ChannelUri;
use super::tags::SessionIdValue;
use super::untethered::Untethered;
use super::value::{parse_bool, parse_duration_ns, parse_i32, parse_size};
use super::{ChannelKind, MIN_TERM_LENGTH};

/// What holds where a channel says nothing: the driver's options. Lengths in bytes.
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
    /// `aeron.publication.term.window.length`; 0 = half a term.
    pub window: usize,
    /// `aeron.ipc.publication.term.window.length`; 0 = half a term.
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
    /// `aeron.flow.control.*` and the suppliers.
    pub flow_control: FlowControlDefaults,
}

/// The session id a publication shall have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SessionChoice {
    /// The driver generates one.
    Generated,
    /// This one.
    Id(i32),
    /// Session id, mtu and term length of the publication with this entity tag.
    OfTag(i64),
}

/// What a channel with `session-id=tag:` takes from the publication it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TaggedPublication {
    /// Its session id.
    pub session_id: i32,
    /// Its mtu in bytes.
    pub mtu: usize,
    /// Its term length in bytes.
    pub term_length: usize,
}

impl SessionChoice {
    /// What a channel says about the session id.
    ///
    /// # Errors
    /// Code 11 with a text that names the value and what is allowed.
    pub fn of(channel: &Channel) -> Result<Self, UriError> {
        read_session(channel.uri()).map_err(|e| e.in_channel(channel.uri().as_str()))
    }
}

/// Where a publication starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InitialPosition {
    /// `init-term-id`
    pub initial_term_id: i32,
    /// `term-id`
    pub term_id: i32,
    /// `term-offset`
    pub term_offset: usize,
}

/// The parameters of a publication.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicationParams {
    /// Largest frame in bytes.
    pub mtu: usize,
    /// Whether the channel names the mtu.
    pub mtu_given: bool,
    /// Length of a term in bytes.
    pub term_length: usize,
    /// Whether the channel names the term length.
    pub term_length_given: bool,
    /// How far the publisher may run ahead, in bytes.
    pub window: usize,
    /// Where to start; `None` = at a random initial term.
    pub position: Option<InitialPosition>,
    /// The session id.
    pub session: SessionChoice,
    /// How long a drained publication stays, in nanoseconds.
    pub linger_ns: i64,
    /// Whether closing sends the end of the stream.
    pub eos: bool,
    /// Whether the log's pages are left to be allocated when they are first used.
    pub sparse: bool,
    /// Whether spies alone make it connected.
    pub spies_simulate_connection: bool,
    /// Concurrent retransmits. Unicast always uses one; this is what the channel or the option says.
    pub max_resend: usize,
    /// The flow control. Unicast has no other than its own, whatever `fc` says.
    pub flow_control: FlowControlParams,
    /// Whether this publication answers requests (`control-mode=response`).
    pub is_response: bool,
    /// What it is linked to.
    pub response: ResponseCorrelation,
    /// Timeouts of spies and IPC subscribers that may be dropped.
    pub untethered: Untethered,
}

impl PublicationParams {
    /// Reads the parameters of a publication.
    ///
    /// # Errors
    /// Code 11 with a text that names key, value and what is allowed.
    pub fn new(channel: &Channel, defaults: &PublicationDefaults) -> Result<Self, UriError> {
        Self::read(channel, defaults).map_err(|e| e.in_channel(channel.uri().as_str()))
    }

    /// The channel has many receivers, which may show only when its name has become an address: `fc` counts then.
    ///
    /// # Errors
    /// Code 11 when `fc` is not allowed.
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

    /// Reads the parameters of a publication whose channel says `session-id=tag:`: it takes session id, mtu and term length
    /// of the publication with that tag, and may name no others.
    ///
    /// # Errors
    /// As [`PublicationParams::new`], and code 11 for another mtu or term length.
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
                    "{key}={named} does not match the publication that session-id=tag: names, leave it out or ask for \
                     {key}={needed}"
                ))
                .in_channel(channel.uri().as_str()));
            }
        }
        params.session = SessionChoice::Id(tagged.session_id);
        Ok(params)
    }

    /// Checks that datagrams of the mtu fit into the endpoint's send buffer: that of the existing endpoint, else the
    /// channel's, the option's or the operating system's.
    ///
    /// # Errors
    /// Code 11.
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

    /// Checks that a publication that exists may be shared: what this channel names must be what the live publication has.
    ///
    /// # Errors
    /// Code 11 with existing and requested value.
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
                "existing publication has different '{key}': existing={existing} requested={requested}; ask for {existing}, \
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

/// What a channel is compared with when it would share a publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LivePublication {
    /// Its session id.
    pub session_id: i32,
    /// Its mtu in bytes.
    pub mtu: usize,
    /// Its term length in bytes.
    pub term_length: usize,
    /// Where it started.
    pub position: InitialPosition,
    /// Whether spies alone make it connected; `None` for IPC, which is not compared.
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

/// `fc` means nothing where there is one receiver, and is not even looked at there.
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
