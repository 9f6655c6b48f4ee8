// SPDX-License-Identifier: Apache-2.0
//! Options of a client.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taran::{ChannelUri, Client, Media, Param};
use taran_protocol::option::{OptionId, OptionSet, Source};

use super::{ClusterClient, ClusterConnection, ConnectClusterError};
use crate::session::{Credentials, parse_endpoints};

/// Longest name of a client, in characters.
pub const MAX_CLIENT_NAME_LENGTH: usize = 100;

/// Credentials that each session of a context uses.
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

/// Options of a client of a cluster (`docs/spec/cluster.md` §11.3).
///
/// ```
/// use std::time::Duration;
/// use taran_cluster_client::ClusterContext;
///
/// let context = ClusterContext::new("0=host-a:20110,1=host-b:20110,2=host-c:20110")
///     .egress_channel("aeron:udp?endpoint=client.example:0")
///     .message_timeout(Duration::from_secs(10))
///     .client_name("pricing");
/// # drop(context);
/// ```
#[derive(Clone)]
pub struct ClusterContext {
    pub(super) endpoints: String,
    pub(super) ingress_channel: String,
    pub(super) ingress_stream_id: i32,
    pub(super) egress_channel: String,
    pub(super) egress_stream_id: i32,
    pub(super) message_timeout: Duration,
    pub(super) new_leader_timeout: Option<Duration>,
    pub(super) reconnect_timeout: Duration,
    pub(super) keep_alive_interval: Duration,
    pub(super) credentials: SharedCredentials,
    pub(super) name: String,
}

impl std::fmt::Debug for ClusterContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // Without the credentials, which are secret.
        f.debug_struct("ClusterContext")
            .field("endpoints", &self.endpoints)
            .field("ingress_channel", &self.ingress_channel)
            .field("egress_channel", &self.egress_channel)
            .field("message_timeout", &self.message_timeout)
            .finish_non_exhaustive()
    }
}

impl ClusterContext {
    /// Returns the options of a client of the members with these ingress endpoints: `0=host:port,1=host:port`. For a cluster over
    /// multicast or IPC the list is empty, and [`ingress_channel`](Self::ingress_channel) is set.
    #[must_use]
    pub fn new(endpoints: impl Into<String>) -> Self {
        Self {
            endpoints: endpoints.into(),
            ingress_channel: "aeron:udp?term-length=64k".to_owned(),
            ingress_stream_id: 101,
            egress_channel: "aeron:udp?endpoint=localhost:0".to_owned(),
            egress_stream_id: 102,
            message_timeout: Duration::from_secs(5),
            new_leader_timeout: None,
            reconnect_timeout: Duration::from_secs(60),
            keep_alive_interval: Duration::from_secs(1),
            credentials: SharedCredentials(Arc::new(Mutex::new(()))),
            name: String::new(),
        }
    }

    /// Returns the options of a client with the values of `aeron.cluster.` options ([`OptionSet::cluster_client`]).
    #[must_use]
    pub fn from_options(options: &OptionSet) -> Self {
        let int32 = |value| i32::try_from(value).unwrap_or(i32::MAX);
        let timeout = options.cluster_message_timeout_ns();
        let context = Self::new(options.cluster_ingress_endpoints().unwrap_or_default())
            .ingress_channel(options.text(OptionId::ClusterIngressChannel))
            .ingress_stream_id(int32(options.cluster_ingress_stream_id()))
            .egress_stream_id(int32(options.cluster_egress_stream_id()))
            .message_timeout(Duration::from_nanos(timeout.unsigned_abs()))
            .client_name(options.cluster_client_name().unwrap_or_default());
        match options.cluster_egress_channel() {
            Some(channel) => context.egress_channel(channel),
            None => context,
        }
    }

    /// Returns the options of a client with the values of environment variables: `AERON_CLUSTER_INGRESS_ENDPOINTS`,
    /// `AERON_CLUSTER_INGRESS_CHANNEL`, `AERON_CLUSTER_INGRESS_STREAM_ID`, `AERON_CLUSTER_EGRESS_CHANNEL`,
    /// `AERON_CLUSTER_EGRESS_STREAM_ID`, `AERON_CLUSTER_MESSAGE_TIMEOUT`, `AERON_CLUSTER_CLIENT_NAME`.
    ///
    /// # Errors
    /// A value is malformed or out of range.
    pub fn from_environment() -> Result<Self, ConnectClusterError> {
        let variables = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let mut options = OptionSet::cluster_client();
        // Unknown names may belong to other programs.
        options.apply(&Source::Environment, variables)?;
        Ok(Self::from_options(&options))
    }

    /// Sets the channel to members, to which the endpoint of each is added. Default: `aeron:udp?term-length=64k`.
    #[must_use]
    pub fn ingress_channel(mut self, channel: impl Into<String>) -> Self {
        self.ingress_channel = channel.into();
        self
    }

    /// Sets the stream id to members. Default: 101.
    #[must_use]
    pub const fn ingress_stream_id(mut self, stream_id: i32) -> Self {
        self.ingress_stream_id = stream_id;
        self
    }

    /// Sets the channel on which the cluster answers. Default: a free port of localhost.
    #[must_use]
    pub fn egress_channel(mut self, channel: impl Into<String>) -> Self {
        self.egress_channel = channel.into();
        self
    }

    /// Sets the stream id on which the cluster answers. Default: 102.
    #[must_use]
    pub const fn egress_stream_id(mut self, stream_id: i32) -> Self {
        self.egress_stream_id = stream_id;
        self
    }

    /// Sets the time limit for the first session, and for the connection to a new leader. Default: 5 s.
    #[must_use]
    pub const fn message_timeout(mut self, timeout: Duration) -> Self {
        self.message_timeout = timeout;
        self
    }

    /// Sets the time without a leader after which the session is given up. Default: twice the leader's heartbeat timeout, and at
    /// least the message timeout.
    #[must_use]
    pub const fn new_leader_timeout(mut self, timeout: Duration) -> Self {
        self.new_leader_timeout = Some(timeout);
        self
    }

    /// Sets for how long a new session is sought when one is lost. Zero closes the client instead, as the official client does.
    /// Default: 60 s.
    #[must_use]
    pub const fn reconnect_timeout(mut self, timeout: Duration) -> Self {
        self.reconnect_timeout = timeout;
        self
    }

    /// Sets the time without a message after which a keep-alive is sent while the client is polled; zero for never. It must be well
    /// below the session timeout of the cluster, 10 s by default. Default: 1 s.
    #[must_use]
    pub const fn keep_alive_interval(mut self, interval: Duration) -> Self {
        self.keep_alive_interval = interval;
        self
    }

    /// Sets what supplies credentials and answers challenges. A `Vec<u8>` supplies itself. Default: none.
    #[must_use]
    pub fn credentials(mut self, credentials: impl Credentials + Send + 'static) -> Self {
        self.credentials = SharedCredentials(Arc::new(Mutex::new(credentials)));
        self
    }

    /// Sets the name of the client, which the cluster shows: at most 100 characters.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// Connects to the cluster, and waits for the session.
    ///
    /// # Errors
    /// An option is invalid, the cluster has refused the session, or no leader has answered within the message timeout.
    pub fn connect(&self, client: &Client) -> Result<ClusterClient, ConnectClusterError> {
        ClusterClient::connect(self, client)
    }

    /// Starts to connect, without waiting: the connection is [`Connecting`](crate::ClusterState::Connecting) and has to be polled.
    /// `now_ns` is any clock that does not run backwards; all later times have to come from it.
    ///
    /// # Errors
    /// An option is invalid, or the driver is lost.
    pub fn connecting(
        &self,
        client: &Client,
        now_ns: i64,
    ) -> Result<ClusterConnection, ConnectClusterError> {
        self.check()?;
        let endpoints = match &*self.endpoints {
            "" => Vec::new(),
            text => parse_endpoints(text)?,
        };
        ClusterConnection::new(self.clone(), client, endpoints, now_ns)
    }

    fn check(&self) -> Result<(), ConnectClusterError> {
        let ingress = ChannelUri::parse(&self.ingress_channel)?;
        let invalid = |option, value: &str, reason: &str| {
            Err(ConnectClusterError::Option {
                option,
                value: value.to_owned(),
                reason: reason.to_owned(),
            })
        };
        let count = self.name.chars().count();
        if count > MAX_CLIENT_NAME_LENGTH {
            let reason = format!(
                "has {count} characters, the limit is {MAX_CLIENT_NAME_LENGTH}: shorten it"
            );
            return invalid("aeron.cluster.client.name", &self.name, &reason);
        }
        if ingress.media() == Media::Ipc && !self.endpoints.is_empty() {
            let reason = "must be empty with the ingress channel aeron:ipc: remove it";
            return invalid("aeron.cluster.ingress.endpoints", &self.endpoints, reason);
        }
        let has_target =
            ingress.get(Param::Endpoint).is_some() || ingress.get(Param::Control).is_some();
        if ingress.media() == Media::Udp && self.endpoints.is_empty() && !has_target {
            let reason = "is empty, and the ingress channel has no endpoint: set either of them";
            return invalid("aeron.cluster.ingress.endpoints", "", reason);
        }
        Ok(())
    }

    pub(super) fn client_info(&self) -> String {
        format!(
            "name={} version={} commit=taran",
            self.name,
            env!("CARGO_PKG_VERSION")
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_a_client_have_the_defaults_of_the_context_and_the_values_that_are_set() {
        let mut options = OptionSet::cluster_client();
        let (unset, new) = (
            ClusterContext::from_options(&options),
            ClusterContext::new(""),
        );
        assert_eq!(format!("{unset:?}"), format!("{new:?}"));
        assert_eq!(
            (unset.ingress_stream_id, unset.egress_stream_id),
            (new.ingress_stream_id, new.egress_stream_id)
        );
        let set = [
            ("aeron.cluster.ingress.endpoints", "0=a:1"),
            ("aeron.cluster.egress.channel", "aeron:udp?endpoint=b:0"),
            ("aeron.cluster.egress.stream.id", "7"),
            ("aeron.cluster.message.timeout", "2s"),
            ("aeron.cluster.client.name", "pricing"),
        ];
        options.apply(&Source::Code, set).unwrap();
        let context = ClusterContext::from_options(&options);
        assert_eq!(context.endpoints, "0=a:1");
        assert_eq!(context.egress_channel, "aeron:udp?endpoint=b:0");
        assert_eq!((context.egress_stream_id, &*context.name), (7, "pricing"));
        assert_eq!(context.message_timeout, Duration::from_secs(2));
    }
}
