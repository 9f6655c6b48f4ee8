// SPDX-License-Identifier: Apache-2.0
//! Errors of connecting and sending.

use taran::{CommandError, OfferError, PollError, UriError};
use taran_protocol::option::OptionErrors;
use taran_sbe::runtime::EncodeError;
use thiserror::Error;

use crate::session::{ClosedReason, EndpointsError};

/// Reason why a client did not connect.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectClusterError {
    /// An option is invalid.
    #[error("{option}={value}: {reason}")]
    Option {
        /// Option.
        option: &'static str,
        /// Its value.
        value: String,
        /// Requirement.
        reason: String,
    },
    /// Values of options are malformed or out of range.
    #[error(transparent)]
    Options(#[from] OptionErrors),
    /// The driver has refused what the client needs.
    #[error(transparent)]
    Command(#[from] CommandError),
    /// A channel is invalid.
    #[error(transparent)]
    Channel(#[from] UriError),
    /// The list of endpoints cannot be read.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// The cluster has refused the session, or no leader has answered in time.
    #[error(transparent)]
    Closed(#[from] ClosedReason),
    /// The egress subscription is closed.
    #[error(transparent)]
    Poll(#[from] PollError),
    /// The request does not fit into a message.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// The operating system has not started the thread of an asynchronous client.
    #[error("a thread cannot be started: {0}")]
    Thread(std::io::Error),
}

/// Reason why a message was not sent to the cluster.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ClusterOfferError {
    /// The session is closed.
    #[error("the session is closed: {0}")]
    Closed(#[from] ClosedReason),
    /// There is no leader now; the client waits for the next one, or opens a new session.
    #[error("the leader of the cluster is lost; offer again once there is a new one")]
    AwaitingLeader,
    /// The publication to the leader refused the message.
    #[error(transparent)]
    Offer(#[from] OfferError),
    /// The message was not accepted before the deadline.
    #[error("the message was not accepted within {} ms: {last}", after.as_millis())]
    Timeout {
        /// Time limit.
        after: std::time::Duration,
        /// Last reason.
        last: Box<ClusterOfferError>,
    },
}

impl ClusterOfferError {
    /// Returns true if the same offer can succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::AwaitingLeader => true,
            Self::Offer(error) => error.is_retryable(),
            Self::Closed(_) | Self::Timeout { .. } => false,
        }
    }
}
