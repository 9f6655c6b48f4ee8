// SPDX-License-Identifier: Apache-2.0
//! A connection attempt, over publications and subscriptions (`docs/spec/archive.md` §1.2).

use std::fmt;

use taran::{
    ChannelUri, Client, ExclusivePublication, FragmentAssembler, OfferError, Param, Pending,
    Subscription,
};

use super::channels::control_channel;
use super::connection::{ArchiveConnection, Link};
use super::context::SharedCredentials;
use super::{ArchiveContext, ConnectError};
use crate::protocol::Event;
use crate::session::{Connect, ConnectOptions, ConnectProgress, SessionError};

/// Fragments of the response stream that one poll processes.
const FRAGMENT_LIMIT: usize = 10;
/// Pause before a publication is added again that the driver could not add yet.
const RETRY_INTERVAL_NS: i64 = 10_000_000;

/// An attempt to connect to an archive that does not wait: call [`poll`](Self::poll) until it returns the connection.
///
/// [`ArchiveContext::connecting`] makes one. The attempt fails after the message timeout.
pub struct ArchiveConnecting {
    context: ArchiveContext,
    client: Client,
    deadline_ns: i64,
    step: Step,
}

enum Step {
    SessionId(Pending<i32>),
    Subscription {
        request_channel: ChannelUri,
        pending: Pending<Subscription>,
    },
    Publication {
        subscription: Subscription,
        request_channel: ChannelUri,
        pending: Pending<ExclusivePublication>,
    },
    /// The driver is still closing an earlier connection to the archive.
    PublishAgain {
        subscription: Subscription,
        request_channel: ChannelUri,
        at_ns: i64,
    },
    Connected(Box<(Subscription, ExclusivePublication)>),
    Session(Box<Session>),
    Ended,
}

struct Session {
    subscription: Subscription,
    publication: ExclusivePublication,
    connect: Connect<SharedCredentials>,
    assembler: FragmentAssembler,
    buffer: Vec<u8>,
}

impl Step {
    fn waiting_for(&self) -> &'static str {
        match self {
            Self::SessionId(_) => "a session id from the media driver",
            Self::Subscription { .. } => "the subscription to the response channel",
            Self::Publication { .. } | Self::PublishAgain { .. } => {
                "the publication on the control channel"
            }
            Self::Connected(_) => "a connection to the archive's control channel",
            Self::Session(_) => "the archive's response",
            Self::Ended => "nothing: the attempt has ended",
        }
    }
}

impl fmt::Debug for ArchiveConnecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ArchiveConnecting")
            .field("control_channel", &self.context.control_channel)
            .field("waiting_for", &self.step.waiting_for())
            .finish_non_exhaustive()
    }
}

impl ArchiveConnecting {
    pub(super) fn new(
        context: ArchiveContext,
        client: Client,
        now_ns: i64,
    ) -> Result<Self, ConnectError> {
        context.check()?;
        let timeout_ns = i64::try_from(context.message_timeout.as_nanos()).unwrap_or(i64::MAX);
        let mut request_channel = control_channel(&context.control_channel, context.control)?;
        let response_channel = control_channel(&context.response_channel, context.control)?;
        // One session id for both channels: an archive that a client's stream holds up does not hold up others.
        let step = if response_channel.is_response() {
            request_channel = request_channel.without(Param::ResponseCorrelationId.key())?;
            let pending = client
                .async_add_subscription(response_channel.as_str(), context.response_stream_id)?;
            Step::Subscription {
                request_channel,
                pending,
            }
        } else {
            Step::SessionId(client.async_next_available_session_id(context.control_stream_id)?)
        };
        Ok(Self {
            context,
            client,
            deadline_ns: now_ns.saturating_add(timeout_ns),
            step,
        })
    }

    /// Continues the attempt. Returns the connection once it is established.
    ///
    /// # Errors
    /// The attempt has failed; it must not be polled again.
    pub fn poll(&mut self, now_ns: i64) -> Result<Option<ArchiveConnection>, ConnectError> {
        // At most one step has nothing to wait for.
        for _ in 0..2 {
            match self.advance(now_ns) {
                Ok(Some(connection)) => {
                    self.step = Step::Ended;
                    return Ok(Some(connection));
                }
                Ok(None) => {}
                Err(error) => {
                    self.step = Step::Ended;
                    return Err(error);
                }
            }
        }
        // The session has a deadline of its own, with better words.
        if now_ns >= self.deadline_ns && !matches!(self.step, Step::Session(_)) {
            let waiting_for = self.step.waiting_for();
            self.step = Step::Ended;
            return Err(SessionError::Timeout { waiting_for }.into());
        }
        Ok(None)
    }

    fn advance(&mut self, now_ns: i64) -> Result<Option<ArchiveConnection>, ConnectError> {
        let context = &self.context;
        self.step = match std::mem::replace(&mut self.step, Step::Ended) {
            Step::SessionId(mut pending) => match pending.poll() {
                None => Step::SessionId(pending),
                Some(session_id) => {
                    let session_id = session_id?;
                    let channel = |channel: &str| {
                        control_channel(channel, context.control)?.with_session_id(session_id)
                    };
                    let response_channel = channel(&context.response_channel)?;
                    Step::Subscription {
                        request_channel: channel(&context.control_channel)?,
                        pending: self.client.async_add_subscription(
                            response_channel.as_str(),
                            context.response_stream_id,
                        )?,
                    }
                }
            },
            Step::Subscription {
                mut request_channel,
                mut pending,
            } => match pending.poll() {
                None => Step::Subscription {
                    request_channel,
                    pending,
                },
                Some(subscription) => {
                    let subscription = subscription?;
                    let is_response = ChannelUri::parse(subscription.channel())?.is_response();
                    if is_response {
                        let registration_id = subscription.registration_id().to_string();
                        request_channel = request_channel
                            .with(Param::ResponseCorrelationId.key(), &registration_id)?;
                    }
                    let pending = self.client.async_add_exclusive_publication(
                        request_channel.as_str(),
                        context.control_stream_id,
                    )?;
                    Step::Publication {
                        subscription,
                        request_channel,
                        pending,
                    }
                }
            },
            Step::Publication {
                subscription,
                request_channel,
                mut pending,
            } => match pending.poll() {
                None => Step::Publication {
                    subscription,
                    request_channel,
                    pending,
                },
                Some(Err(error)) if error.is_repeatable() => Step::PublishAgain {
                    subscription,
                    request_channel,
                    at_ns: now_ns.saturating_add(RETRY_INTERVAL_NS),
                },
                Some(publication) => Step::Connected(Box::new((subscription, publication?))),
            },
            Step::PublishAgain {
                subscription,
                request_channel,
                at_ns,
            } => {
                if now_ns < at_ns {
                    Step::PublishAgain {
                        subscription,
                        request_channel,
                        at_ns,
                    }
                } else {
                    let pending = self.client.async_add_exclusive_publication(
                        request_channel.as_str(),
                        context.control_stream_id,
                    )?;
                    Step::Publication {
                        subscription,
                        request_channel,
                        pending,
                    }
                }
            }
            Step::Connected(both) => match both.0.try_resolve_channel_endpoint_port() {
                Some(response_channel) if both.1.is_connected() => {
                    let (subscription, publication) = *both;
                    let options = ConnectOptions {
                        response_channel,
                        response_stream_id: context.response_stream_id,
                        client_info: context.client_info(),
                        deadline_ns: self.deadline_ns,
                    };
                    let correlation_id = self.client.next_correlation_id();
                    let connect =
                        Connect::new(options, context.credentials.clone(), correlation_id);
                    Step::Session(Box::new(Session {
                        connect,
                        assembler: FragmentAssembler::new(),
                        buffer: vec![0; publication.max_message_length()],
                        subscription,
                        publication,
                    }))
                }
                _ => Step::Connected(both),
            },
            Step::Session(mut session) => match session.poll(&self.client, now_ns)? {
                ConnectProgress::Pending => Step::Session(session),
                ConnectProgress::Failed(error) => return Err(error.into()),
                ConnectProgress::Connected(established) => {
                    let link = Link {
                        client: self.client.clone(),
                        publication: session.publication,
                        subscription: session.subscription,
                    };
                    return Ok(Some(ArchiveConnection::new(
                        context.clone(),
                        link,
                        established,
                    )));
                }
            },
            Step::Ended => {
                return Err(SessionError::Timeout {
                    waiting_for: Step::Ended.waiting_for(),
                }
                .into());
            }
        };
        Ok(None)
    }
}

impl Session {
    fn poll(&mut self, client: &Client, now_ns: i64) -> Result<ConnectProgress, ConnectError> {
        let (connect, assembler) = (&mut self.connect, &mut self.assembler);
        let on_message = |message: &[u8], _: &taran::Header<'_>| {
            // What cannot be decoded is no response to the request that is awaited.
            if let Ok(event) = Event::decode(message) {
                connect.on_event(&event, || client.next_correlation_id());
            }
        };
        self.subscription
            .poll(assembler.wrap(on_message), FRAGMENT_LIMIT)?;
        if let Some(request) = self.connect.request() {
            let Ok(length) = request.encode(&mut self.buffer) else {
                let max = self.buffer.len();
                return Err(ConnectError::TooLong { max });
            };
            match self.publication.offer(&self.buffer[..length]) {
                Ok(_) => self.connect.on_sent(),
                Err(error) if error.is_retryable() => {}
                Err(OfferError::TooLong { max, .. }) => return Err(ConnectError::TooLong { max }),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(self.connect.progress(now_ns))
    }
}
