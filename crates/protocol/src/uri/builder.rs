// SPDX-License-Identifier: Apache-2.0
//! Channel builder, which validates values before they are sent to a driver (docs/spec/uri-and-configuration.md §1.13).

use std::time::Duration;

use super::error::UriError;
use super::keywords::ControlMode;
use super::param::{FRAME_ALIGNMENT, Param};
use super::parse::{ChannelUri, Media, SPY_PREFIX};
use super::value::format_duration_ns;

/// Builder of channel URIs.
///
/// ```
/// use taran_protocol::uri::ChannelUriBuilder;
///
/// let uri = ChannelUriBuilder::udp().endpoint("localhost:40123").term_length(64 * 1024).build()?;
/// assert_eq!(uri.as_str(), "aeron:udp?endpoint=localhost:40123|term-length=65536");
/// # Ok::<(), taran_protocol::uri::UriError>(())
/// ```
///
/// [`build`](Self::build) validates the values, in the order of the text.
#[doc(alias = "ChannelUriStringBuilder")]
#[derive(Clone, Debug)]
pub struct ChannelUriBuilder {
    spy: bool,
    media: Media,
    values: [Option<String>; Param::ALL.len()],
    /// Parameters with keys unknown to drivers, in the order in which they were set.
    others: Vec<(String, String)>,
}

macro_rules! setters {
    ($($setter:ident($argument:ident: $type:ty) => $param:ident;)*) => {
        $(
            #[doc = concat!("Sets [`Param::", stringify!($param), "`].")]
            #[must_use]
            pub fn $setter(self, $argument: $type) -> Self {
                self.set(Param::$param, $argument.to_string())
            }
        )*
    };
}

macro_rules! duration_setters {
    ($($setter:ident => $param:ident;)*) => {
        $(
            #[doc = concat!("Sets [`Param::", stringify!($param), "`].")]
            #[must_use]
            pub fn $setter(self, time: Duration) -> Self {
                self.set(Param::$param, duration(time))
            }
        )*
    };
}

/// Formats a duration for a channel.
fn duration(time: Duration) -> String {
    format_duration_ns(i64::try_from(time.as_nanos()).unwrap_or(i64::MAX))
}

impl ChannelUriBuilder {
    /// Returns a builder of a UDP channel.
    #[must_use]
    pub fn udp() -> Self {
        Self::of(Media::Udp)
    }

    /// Returns a builder of an IPC channel.
    #[must_use]
    pub fn ipc() -> Self {
        Self::of(Media::Ipc)
    }

    /// Returns a builder with all parameters of an existing channel.
    #[must_use]
    pub fn from_uri(uri: &ChannelUri) -> Self {
        let mut builder = Self::of(uri.media());
        builder.spy = uri.is_spy();
        for spec in Param::ALL {
            builder.values[spec.param as usize] = uri.get(spec.param).map(str::to_owned);
        }
        for (key, value) in uri.parameters() {
            builder = builder.set_key(key, value);
        }
        builder
    }

    fn of(media: Media) -> Self {
        ChannelUriBuilder {
            spy: false,
            media,
            values: [const { None }; Param::ALL.len()],
            others: Vec::new(),
        }
    }

    /// Makes the channel a spy on a local publication.
    #[must_use]
    pub fn spy(mut self) -> Self {
        self.spy = true;
        self
    }

    /// Sets a parameter to a text.
    #[must_use]
    pub fn set(mut self, param: Param, value: impl Into<String>) -> Self {
        self.values[param as usize] = Some(value.into());
        self
    }

    /// Sets a parameter by its key. The key may be unknown to drivers: applications can define their own.
    #[must_use]
    pub fn set_key(mut self, key: &str, value: impl Into<String>) -> Self {
        if let Some(param) = Param::from_key(key) {
            return self.set(param, value);
        }
        self.others.retain(|(known, _)| known != key);
        self.others.push((key.to_owned(), value.into()));
        self
    }

    /// Removes a parameter.
    #[must_use]
    pub fn clear(mut self, param: Param) -> Self {
        self.values[param as usize] = None;
        self
    }

    setters! {
        endpoint(address: &str) => Endpoint;
        interface(interface: &str) => Interface;
        control(address: &str) => Control;
        alias(alias: &str) => Alias;
        ttl(hops: u8) => Ttl;
        mtu(bytes: usize) => Mtu;
        term_length(bytes: usize) => TermLength;
        session_id(id: i32) => SessionId;
        eos(send: bool) => Eos;
        sparse(sparse: bool) => Sparse;
        spies_simulate_connection(simulate: bool) => SpiesSimulateConnection;
        max_resend(count: usize) => MaxResend;
        publication_window(bytes: usize) => PublicationWindow;
        flow_control(text: &str) => FlowControl;
        send_buffer(bytes: usize) => SendBuffer;
        receive_buffer(bytes: usize) => ReceiveBuffer;
        backend(name: &str) => Backend;
        receiver_window(bytes: usize) => ReceiverWindow;
        reliable(reliable: bool) => Reliable;
        rejoin(rejoin: bool) => Rejoin;
        tether(tether: bool) => Tether;
        group_tag(tag: i64) => GroupTag;
        congestion_control(name: &str) => CongestionControl;
        response_correlation_id(id: i64) => ResponseCorrelationId;
        response_endpoint(address: &str) => ResponseEndpoint;
        stream_id(id: i32) => StreamId;
        media_receive_timestamp(offset: &str) => MediaReceiveTimestamp;
        channel_receive_timestamp(offset: &str) => ChannelReceiveTimestamp;
        channel_send_timestamp(offset: &str) => ChannelSendTimestamp;
    }

    /// Sets [`Param::ControlMode`].
    #[must_use]
    pub fn control_mode(self, mode: ControlMode) -> Self {
        self.set(Param::ControlMode, mode.as_str())
    }

    /// Sets [`Param::Tags`]: the channel tag, and the entity tag of the publication or subscription.
    #[must_use]
    pub fn tags(self, channel: i64, entity: Option<i64>) -> Self {
        let text = match entity {
            Some(entity) => format!("{channel},{entity}"),
            None => channel.to_string(),
        };
        self.set(Param::Tags, text)
    }

    /// Sets [`Param::SessionId`] to the session id of the publication with an entity tag.
    #[must_use]
    pub fn session_id_of_tag(self, tag: i64) -> Self {
        self.set(Param::SessionId, format!("tag:{tag}"))
    }

    /// Sets [`Param::Group`]: whether a subscription is part of a group. If unset, the driver infers it.
    #[must_use]
    pub fn group(self, is_group: bool) -> Self {
        self.set(Param::Group, is_group.to_string())
    }

    /// Sets [`Param::ResponseCorrelationId`] to `prototype`, for a response channel whose publication is added later.
    #[must_use]
    pub fn response_prototype(self) -> Self {
        self.set(Param::ResponseCorrelationId, "prototype")
    }

    /// Sets [`Param::FlowControl`] to `min`: the slowest receiver determines the sender limit. The publication is
    /// connected once it has `group_size` receivers. A receiver that sends no status message for `timeout` is removed.
    #[must_use]
    pub fn min_flow_control(self, group_size: Option<u32>, timeout: Option<Duration>) -> Self {
        let group = group_size.map(|size| format!("g:/{size}"));
        self.flow_control_of("min", group, timeout)
    }

    /// Sets [`Param::FlowControl`] to `tagged`: the slowest receiver with the group tag determines the sender limit.
    /// The other arguments are those of [`min_flow_control`](Self::min_flow_control).
    #[must_use]
    pub fn tagged_flow_control(
        self,
        group_tag: i64,
        group_size: Option<u32>,
        timeout: Option<Duration>,
    ) -> Self {
        let size = group_size.map(|size| format!("/{size}"));
        let group = format!("g:{group_tag}{}", size.unwrap_or_default());
        self.flow_control_of("tagged", Some(group), timeout)
    }

    fn flow_control_of(
        self,
        strategy: &str,
        group: Option<String>,
        timeout: Option<Duration>,
    ) -> Self {
        let timeout = timeout.map(|timeout| format!("t:{}", duration(timeout)));
        let options = [Some(strategy.to_owned()), group, timeout];
        let text = options.into_iter().flatten().collect::<Vec<_>>().join(",");
        self.set(Param::FlowControl, text)
    }

    duration_setters! {
        linger => Linger;
        nak_delay => NakDelay;
        untethered_window_limit_timeout => UntetheredWindowLimitTimeout;
        untethered_linger_timeout => UntetheredLingerTimeout;
        untethered_resting_timeout => UntetheredRestingTimeout;
    }

    /// Sets the start position of the publication: `init-term-id`, `term-id`, `term-offset` and `term-length`.
    ///
    /// [`build`](Self::build) fails if the position is negative, not a multiple of 32, or beyond the last term.
    #[must_use]
    pub fn initial_position(self, position: i64, initial_term_id: i32, term_length: usize) -> Self {
        let length = i64::try_from(term_length)
            .unwrap_or(i64::MAX)
            .max(FRAME_ALIGNMENT);
        let terms = position.div_euclid(length);
        let offset = position.rem_euclid(length);
        let term_id = match i32::try_from(terms) {
            Ok(terms) if terms >= 0 => initial_term_id.wrapping_add(terms).to_string(),
            _ => format!("(position {position} out of range)"),
        };
        self.term_length(term_length)
            .set(Param::InitialTermId, initial_term_id.to_string())
            .set(Param::TermId, term_id)
            .set(Param::TermOffset, offset.to_string())
    }

    /// Validates all values and returns the channel.
    ///
    /// # Errors
    /// Code 11 for an invalid value, 1 for an invalid combination.
    pub fn build(&self) -> Result<ChannelUri, UriError> {
        let mut text = String::new();
        if self.spy {
            text.push_str(SPY_PREFIX);
        }
        text.push_str("aeron:");
        text.push_str(self.media.as_str());
        for spec in Param::ALL {
            let Some(value) = &self.values[spec.param as usize] else {
                continue;
            };
            if value.contains('|') {
                return Err(UriError::rejected(format!(
                    "invalid {}, must be without '|': {}={value}",
                    spec.key, spec.key
                )));
            }
            if !value.is_empty() {
                spec.kind.check(value).map_err(|needed| {
                    UriError::rejected(super::channel::invalid_value(spec.param, value, &needed))
                })?;
            }
            push_parameter(&mut text, spec.key, value);
        }
        for (key, value) in &self.others {
            if key.contains(['|', '=']) || value.contains('|') {
                return Err(UriError::rejected(format!(
                    "invalid {key}, must be without '|' and its key without '=': {key}={value}"
                )));
            }
            push_parameter(&mut text, key, value);
        }
        self.check_combinations()?;
        ChannelUri::parse(&text)
    }

    fn check_combinations(&self) -> Result<(), UriError> {
        let has = |param: Param| self.values[param as usize].is_some();
        let by_mode = matches!(
            self.values[Param::ControlMode as usize].as_deref(),
            Some("manual" | "response")
        );
        if self.media == Media::Udp
            && !(has(Param::Endpoint) || has(Param::Control) || has(Param::Tags) || by_mode)
        {
            return Err(UriError::invalid(
                "URIs for UDP must specify endpoint, control, tags, or control-mode=manual/response",
            ));
        }
        let position = [Param::InitialTermId, Param::TermId, Param::TermOffset];
        match position.iter().filter(|param| has(**param)).count() {
            0 | 3 => Ok(()),
            _ => Err(UriError::rejected(
                "params: init-term-id term-id term-offset must be used as a complete set, or none of them",
            )),
        }
    }
}

fn push_parameter(text: &mut String, key: &str, value: &str) {
    text.push(if text.contains('?') { '|' } else { '?' });
    text.push_str(key);
    text.push('=');
    text.push_str(value);
}

#[cfg(test)]
mod tests;
