// SPDX-License-Identifier: Apache-2.0
//! Requests to a driver other than publications and subscriptions: destinations and rejections.

use taran::{CommandError, Pending};

/// Kind of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestKind {
    /// Add a destination to a publication.
    AddDestination,
    /// Remove a destination from a publication.
    RemoveDestination,
    /// Add a source (destination of a subscription).
    AddSource,
    /// Remove a source.
    RemoveSource,
    /// Reject an image.
    Reject,
}

impl RequestKind {
    /// Returns the name of the request in texts.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::AddDestination => "destination",
            Self::RemoveDestination => "removal of a destination",
            Self::AddSource => "source",
            Self::RemoveSource => "removal of a source",
            Self::Reject => "rejection",
        }
    }
}

/// A request that is pending or failed.
#[derive(Debug)]
pub struct Request {
    /// Kind of request.
    pub kind: RequestKind,
    /// Channel of the destination or source; for a rejection that of the subscription.
    pub channel: String,
    /// Time of the request on the clock of the world.
    pub at_ns: i64,
    /// Error of a failed request.
    pub failure: Option<CommandError>,
    response: Option<Pending<()>>,
}

impl Request {
    /// Returns true while there is no response.
    #[must_use]
    pub fn is_pending(&self) -> bool {
        self.response.is_some()
    }
}

/// The pending and failed requests of one publication or subscription.
#[derive(Debug, Default)]
pub(super) struct Requests {
    all: Vec<Request>,
    now_ns: i64,
    granted: u64,
}

impl Requests {
    /// Adds a request with its pending response.
    pub(super) fn add(&mut self, kind: RequestKind, channel: &str, response: Pending<()>) {
        self.all.push(Request {
            kind,
            channel: channel.to_owned(),
            at_ns: self.now_ns,
            failure: None,
            response: Some(response),
        });
    }

    /// Processes responses and calls `granted` for each successful request.
    pub(super) fn poll_responses(
        &mut self,
        now_ns: i64,
        mut granted: impl FnMut(RequestKind, &str),
    ) {
        self.now_ns = now_ns;
        let count = &mut self.granted;
        self.all.retain_mut(|request| {
            let response = request.response.as_mut().and_then(Pending::poll);
            let Some(response) = response else {
                return true;
            };
            request.response = None;
            match response {
                Ok(()) => {
                    *count += 1;
                    granted(request.kind, &request.channel);
                    false
                }
                Err(error) => {
                    request.failure = Some(error);
                    true
                }
            }
        });
    }

    pub(super) fn has_pending(&self) -> bool {
        self.all.iter().any(Request::is_pending)
    }

    pub(super) fn granted(&self) -> u64 {
        self.granted
    }

    pub(super) fn all(&self) -> &[Request] {
        &self.all
    }

    /// Forgets all requests because their publication or subscription is closed.
    pub(super) fn forget(&mut self) -> Vec<Request> {
        std::mem::take(&mut self.all)
    }
}
