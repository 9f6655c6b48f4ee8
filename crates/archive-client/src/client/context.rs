// SPDX-License-Identifier: Apache-2.0
//! Options of a client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taran::{ChannelUri, Client};

use super::channels::ControlDefaults;
use super::{ArchiveClient, ArchiveConnecting, ConnectError};
use crate::session::Credentials;

/// Stream id for requests to archives.
const CONTROL_STREAM_ID: i32 = 10;
/// Stream id of the responses.
const RESPONSE_STREAM_ID: i32 = 20;
/// Stream id of recording events.
const EVENTS_STREAM_ID: i32 = 30;
/// Maximum length of the name in characters.
const NAME_LENGTH_MAX: usize = 100;

/// Credentials that each connection of a context uses.
#[derive(Clone)]
pub(crate) struct SharedCredentials(Arc<Mutex<dyn Credentials + Send>>);

impl Credentials for SharedCredentials {
    fn credentials(&mut self) -> Vec<u8> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.credentials()
    }

    fn on_challenge(&mut self, challenge: &[u8]) -> Vec<u8> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        shared.on_challenge(challenge)
    }
}

/// Options of a client of an archive (`docs/spec/archive.md` §8.2).
///
/// Required are the archive's control channel and a channel for responses. Over IPC both are `aeron:ipc`. Over UDP the
/// response channel is one of the client's own addresses, with port 0 for any free port; or
/// `aeron:udp?control-mode=response|control=host:port` with a free port of the archive's host, for clients that the archive
/// has no address of.
///
/// ```
/// use taran_archive_client::ArchiveContext;
///
/// let context = ArchiveContext::new()
///     .control_channel("aeron:udp?endpoint=archive.example:8010")
///     .response_channel("aeron:udp?endpoint=client.example:0")
///     .client_name("pricing");
/// assert_eq!(context.control_stream_id_in_force(), 10);
/// ```
#[derive(Clone)]
pub struct ArchiveContext {
    pub(crate) control_channel: String,
    pub(crate) control_stream_id: i32,
    pub(crate) response_channel: String,
    pub(crate) response_stream_id: i32,
    pub(crate) events_channel: String,
    pub(crate) events_stream_id: i32,
    pub(crate) control: ControlDefaults,
    pub(crate) message_timeout: Duration,
    pub(crate) client_name: String,
    pub(crate) credentials: SharedCredentials,
    option_errors: Vec<String>,
}

impl std::fmt::Debug for ArchiveContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials, which are secret.
        f.debug_struct("ArchiveContext")
            .field("control_channel", &self.control_channel)
            .field("control_stream_id", &self.control_stream_id)
            .field("response_channel", &self.response_channel)
            .field("response_stream_id", &self.response_stream_id)
            .field("message_timeout", &self.message_timeout)
            .finish_non_exhaustive()
    }
}

impl Default for ArchiveContext {
    fn default() -> Self {
        Self::new()
    }
}

impl ArchiveContext {
    /// Properties that [`property`](Self::property) understands.
    pub const PROPERTIES: [&'static str; 12] = [
        "aeron.archive.message.timeout",
        "aeron.archive.message.retry.attempts",
        "aeron.archive.control.channel",
        "aeron.archive.control.stream.id",
        "aeron.archive.control.response.channel",
        "aeron.archive.control.response.stream.id",
        "aeron.archive.control.term.buffer.length",
        "aeron.archive.control.term.buffer.sparse",
        "aeron.archive.control.mtu.length",
        "aeron.archive.recording.events.channel",
        "aeron.archive.recording.events.stream.id",
        "aeron.archive.client.name",
    ];

    /// Creates a context with the defaults, without channels.
    #[must_use]
    pub fn new() -> Self {
        Self {
            control_channel: String::new(),
            control_stream_id: CONTROL_STREAM_ID,
            response_channel: String::new(),
            response_stream_id: RESPONSE_STREAM_ID,
            events_channel: String::new(),
            events_stream_id: EVENTS_STREAM_ID,
            control: ControlDefaults {
                term_length: 64 * 1024,
                mtu: 1408,
                sparse: true,
            },
            message_timeout: Duration::from_secs(10),
            client_name: String::new(),
            credentials: SharedCredentials(Arc::new(Mutex::new(()))),
            option_errors: Vec::new(),
        }
    }

    /// Creates a context with the options set in the environment: the [properties](Self::PROPERTIES) in upper case, with
    /// `_` in place of `.`.
    #[must_use]
    pub fn from_environment() -> Self {
        Self::PROPERTIES.iter().fold(Self::new(), |context, name| {
            let variable = name.to_uppercase().replace('.', "_");
            match std::env::var(variable) {
                Ok(value) => context.property(name, value),
                Err(_) => context,
            }
        })
    }

    /// Sets the option of a property. An unknown name or invalid value is reported when the context is used.
    ///
    /// ```
    /// # use taran_archive_client::ArchiveContext;
    /// let context = ArchiveContext::new().property("aeron.archive.message.timeout", "5s");
    /// assert_eq!(context.message_timeout_in_force(), std::time::Duration::from_secs(5));
    /// ```
    #[must_use]
    pub fn property(mut self, name: &str, value: impl AsRef<str>) -> Self {
        let value = value.as_ref();
        let outcome = self.set(name, value);
        if let Err(reason) = outcome {
            self.option_errors.push(format!("{name}={value}: {reason}"));
        }
        self
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), String> {
        match name {
            "aeron.archive.message.timeout" => {
                let nanos = duration(value)?;
                self.message_timeout = Duration::from_nanos(nanos);
            }
            // A request that cannot be sent waits for room until its timeout, so that attempts are not counted.
            "aeron.archive.message.retry.attempts" => {
                value
                    .parse::<std::num::NonZeroU32>()
                    .map_err(|_| "must be a number from 1".to_owned())?;
            }
            "aeron.archive.control.channel" => value.clone_into(&mut self.control_channel),
            "aeron.archive.control.stream.id" => self.control_stream_id = number(value)?,
            "aeron.archive.control.response.channel" => {
                value.clone_into(&mut self.response_channel);
            }
            "aeron.archive.control.response.stream.id" => self.response_stream_id = number(value)?,
            "aeron.archive.control.term.buffer.length" => self.control.term_length = size(value)?,
            "aeron.archive.control.term.buffer.sparse" => self.control.sparse = value == "true",
            "aeron.archive.control.mtu.length" => self.control.mtu = size(value)?,
            "aeron.archive.recording.events.channel" => value.clone_into(&mut self.events_channel),
            "aeron.archive.recording.events.stream.id" => self.events_stream_id = number(value)?,
            "aeron.archive.client.name" => value.clone_into(&mut self.client_name),
            _ => return Err("is no property of an archive client".to_owned()),
        }
        Ok(())
    }

    /// Sets the channel for requests to the archive. Required.
    #[must_use]
    pub fn control_channel(mut self, channel: impl Into<String>) -> Self {
        self.control_channel = channel.into();
        self
    }

    /// Sets the stream id for requests to the archive. Default: 10.
    #[must_use]
    pub fn control_stream_id(mut self, stream_id: i32) -> Self {
        self.control_stream_id = stream_id;
        self
    }

    /// Sets the channel on which the archive sends responses to this client. Required.
    #[must_use]
    pub fn response_channel(mut self, channel: impl Into<String>) -> Self {
        self.response_channel = channel.into();
        self
    }

    /// Sets the stream id of the responses. Default: 20.
    #[must_use]
    pub fn response_stream_id(mut self, stream_id: i32) -> Self {
        self.response_stream_id = stream_id;
        self
    }

    /// Sets the channel on which the archive publishes recording events. Default: none.
    #[must_use]
    pub fn recording_events_channel(mut self, channel: impl Into<String>) -> Self {
        self.events_channel = channel.into();
        self
    }

    /// Sets the stream id of recording events. Default: 30.
    #[must_use]
    pub fn recording_events_stream_id(mut self, stream_id: i32) -> Self {
        self.events_stream_id = stream_id;
        self
    }

    /// Sets the maximum time to connect, and the maximum time for the answer to a request. Default: 10 s.
    #[must_use]
    pub fn message_timeout(mut self, timeout: Duration) -> Self {
        self.message_timeout = timeout;
        self
    }

    /// Sets the name of the client that the archive's counters show, at most 100 characters. Default: empty.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = name.into();
        self
    }

    /// Sets the credentials for archives that authenticate their clients: bytes, or a [`Credentials`] that can answer a
    /// challenge. Default: none.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Credentials + Send + 'static) -> Self {
        self.credentials = SharedCredentials(Arc::new(Mutex::new(credentials)));
        self
    }

    /// Returns the message timeout.
    #[must_use]
    pub fn message_timeout_in_force(&self) -> Duration {
        self.message_timeout
    }

    /// Returns the channel on which the archive sends responses.
    #[must_use]
    pub fn response_channel_in_force(&self) -> &str {
        &self.response_channel
    }

    /// Returns the stream id for requests to the archive.
    #[must_use]
    pub fn control_stream_id_in_force(&self) -> i32 {
        self.control_stream_id
    }

    /// Checks the options.
    ///
    /// # Errors
    /// [`ConnectError::Option`] with all invalid options.
    pub fn check(&self) -> Result<(), ConnectError> {
        let mut errors = self.option_errors.clone();
        for (property, channel) in [
            ("aeron.archive.control.channel", &self.control_channel),
            (
                "aeron.archive.control.response.channel",
                &self.response_channel,
            ),
        ] {
            if channel.is_empty() {
                errors.push(format!("{property} is required"));
            } else if let Err(error) = ChannelUri::parse(channel) {
                errors.push(format!("{property}: {error}"));
            }
        }
        let length = self.client_name.chars().count();
        if length > NAME_LENGTH_MAX {
            errors.push(format!(
                "aeron.archive.client.name has {length} characters, at most {NAME_LENGTH_MAX} are possible"
            ));
        }
        if self.message_timeout.is_zero() {
            errors.push("aeron.archive.message.timeout must be more than 0".to_owned());
        }
        if errors.is_empty() {
            Ok(())
        } else {
            Err(ConnectError::Option(errors.join("\n")))
        }
    }

    /// Starts to connect to the archive without waiting.
    ///
    /// # Errors
    /// An option is invalid.
    pub fn connecting(
        &self,
        client: &Client,
        now_ns: i64,
    ) -> Result<ArchiveConnecting, ConnectError> {
        ArchiveConnecting::new(self.clone(), client.clone(), now_ns)
    }

    /// Connects to the archive; waits up to the message timeout.
    ///
    /// # Errors
    /// See [`ConnectError`].
    pub fn connect(&self, client: &Client) -> Result<ArchiveClient, ConnectError> {
        ArchiveClient::connect(self, client)
    }

    pub(crate) fn client_info(&self) -> String {
        let name = &self.client_name;
        let version = env!("CARGO_PKG_VERSION");
        format!("name={name} version={version} commit=taran")
    }
}

fn number(text: &str) -> Result<i32, String> {
    text.parse().map_err(|_| "must be a number".to_owned())
}

fn size(text: &str) -> Result<u32, String> {
    let bytes = taran_protocol::uri::value::parse_size(text).map_err(|error| error.to_string())?;
    u32::try_from(bytes).map_err(|_| "must be a size from 0 to 1g".to_owned())
}

fn duration(text: &str) -> Result<u64, String> {
    let nanos =
        taran_protocol::uri::value::parse_duration_ns(text).map_err(|error| error.to_string())?;
    u64::try_from(nanos).map_err(|_| "must be a positive duration".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn check_names_each_invalid_option() {
        let context = ArchiveContext::new()
            .property("aeron.archive.control.stream.id", "ten")
            .property("aeron.archive.kontrol.channel", "x")
            .response_channel("localhost")
            .client_name("n".repeat(101))
            .message_timeout(Duration::ZERO);
        let Err(ConnectError::Option(text)) = context.check() else {
            panic!("accepted");
        };
        for expected in [
            "aeron.archive.control.stream.id=ten: must be a number",
            "aeron.archive.kontrol.channel=x: is no property",
            "aeron.archive.control.channel is required",
            "aeron.archive.control.response.channel: ",
            "101 characters",
            "aeron.archive.message.timeout must",
        ] {
            assert!(text.contains(expected), "{expected:?} is not in {text}");
        }
    }

    #[test]
    fn each_property_is_understood() {
        for name in ArchiveContext::PROPERTIES {
            let value = if name.ends_with("timeout") {
                "5s"
            } else {
                "65536"
            };
            let context = ArchiveContext::new().property(name, value);
            assert_eq!(context.option_errors, Vec::<String>::new(), "{name}");
        }
    }
}
