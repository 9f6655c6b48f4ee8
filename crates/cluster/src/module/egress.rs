// SPDX-License-Identifier: Apache-2.0
//! Egress publications of sessions, and what sessions append to the log.

use std::collections::{HashMap, HashSet};

use taran::{Client, Counter, ExclusivePublication, OfferError, Pending, Publication};

use crate::protocol::{EgressMessage, LogMessage, SessionCloseEvent, SessionOpenEvent};
use crate::state::{EgressState, Handle, SessionIo};

/// Attempts of one append, as each may meet the end of a term.
const ATTEMPTS: usize = 3;

/// Type of the counter of a session.
const SESSION_COUNTER: i32 = 241;

/// Egress publications, and the counters that describe their sessions.
#[derive(Default)]
pub(super) struct Egress {
    pub(super) connected: HashMap<Handle, Publication>,
    pending: HashMap<Handle, Pending<Publication>>,
    failed: HashSet<Handle>,
    counters: HashMap<Handle, SessionCounter>,
}

/// Counter of a session: its value is the session id, its reference the publication.
struct SessionCounter {
    session_id: i64,
    pending: Option<Pending<Counter>>,
    counter: Option<Counter>,
    has_reference: bool,
}

impl SessionCounter {
    fn poll(&mut self, publication: Option<&Publication>) {
        if let Some(result) = self.pending.as_mut().and_then(Pending::poll) {
            self.pending = None;
            // A session goes on without its counter.
            self.counter = result.ok();
            if let Some(counter) = &self.counter {
                counter.set(self.session_id);
            }
        }
        if let (Some(counter), Some(publication), false) =
            (&self.counter, publication, self.has_reference)
        {
            self.has_reference = counter.set_reference_id(publication.registration_id());
        }
    }
}

impl Egress {
    /// Takes publications that the driver has added.
    pub(super) fn poll(&mut self) {
        let Self {
            connected,
            pending,
            failed,
            counters,
        } = self;
        pending.retain(|handle, pending| match pending.poll() {
            None => true,
            Some(Ok(publication)) => {
                connected.insert(*handle, publication);
                false
            }
            Some(Err(_)) => {
                failed.insert(*handle);
                false
            }
        });
        for (handle, counter) in counters {
            counter.poll(connected.get(handle));
        }
    }
}

/// Appends a message to the log. Returns the position behind it, or none if there is no room now.
pub(super) fn append(
    publication: &mut ExclusivePublication,
    parts: &[&[u8]],
) -> Result<Option<i64>, OfferError> {
    for _ in 0..ATTEMPTS {
        match publication.offer_parts(parts) {
            Ok(position) => return Ok(Some(position)),
            Err(OfferError::AdminAction) => {}
            Err(error) if error.is_retryable() => return Ok(None),
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Appends a message of the cluster's own.
pub(super) fn append_message(
    publication: &mut ExclusivePublication,
    message: &LogMessage<'_>,
    buffer: &mut Vec<u8>,
) -> Result<Option<i64>, OfferError> {
    let length = encoded(buffer, |bytes| message.encode(bytes).ok());
    append(publication, &[&buffer[..length]])
}

/// Encodes into a buffer that grows as long as the message does not fit.
fn encoded(buffer: &mut Vec<u8>, encode: impl Fn(&mut [u8]) -> Option<usize>) -> usize {
    loop {
        if let Some(length) = encode(buffer) {
            return length;
        }
        let length = buffer.len().max(128) * 2;
        buffer.resize(length, 0);
    }
}

/// Egress and log, as [`Sessions`](crate::state::Sessions) use them.
pub(super) struct Io<'a> {
    pub(super) client: &'a Client,
    pub(super) egress: &'a mut Egress,
    pub(super) publication: Option<&'a mut ExclusivePublication>,
    pub(super) buffer: &'a mut Vec<u8>,
    pub(super) failure: &'a mut Option<OfferError>,
}

impl Io<'_> {
    /// Adds the counter of a session. `source` is the label of its ingress image.
    pub(super) fn add_counter(
        &mut self,
        handle: Handle,
        cluster_id: i32,
        session_id: i64,
        client_info: &str,
        source: &str,
    ) {
        let mut key = [0; 12];
        key[..4].copy_from_slice(&cluster_id.to_le_bytes());
        key[4..].copy_from_slice(&session_id.to_le_bytes());
        let label = format!("cluster-session: {client_info} {source} - clusterId={cluster_id}");
        let added = self.client.async_add_counter(SESSION_COUNTER, &key, &label);
        // A session goes on without its counter.
        if let Ok(pending) = added {
            self.egress.counters.insert(
                handle,
                SessionCounter {
                    session_id,
                    pending: Some(pending),
                    counter: None,
                    has_reference: false,
                },
            );
        }
    }

    fn append(&mut self, message: &LogMessage<'_>) -> Option<i64> {
        let publication = self.publication.as_deref_mut()?;
        append_message(publication, message, self.buffer).unwrap_or_else(|error| {
            *self.failure = Some(error);
            None
        })
    }
}

impl SessionIo for Io<'_> {
    fn connect_egress(&mut self, handle: Handle, channel: &str, stream_id: i32) {
        self.close_egress(handle);
        match self.client.async_add_publication(channel, stream_id) {
            Ok(pending) => {
                self.egress.pending.insert(handle, pending);
            }
            Err(_) => {
                self.egress.failed.insert(handle);
            }
        }
    }

    fn close_egress(&mut self, handle: Handle) {
        self.egress.connected.remove(&handle);
        self.egress.pending.remove(&handle);
        self.egress.failed.remove(&handle);
        self.egress.counters.remove(&handle);
    }

    fn egress(&mut self, handle: Handle) -> EgressState {
        if self.egress.failed.contains(&handle) {
            return EgressState::Failed;
        }
        let publication = self.egress.connected.get(&handle);
        match publication.is_some_and(Publication::is_connected) {
            true => EgressState::Connected,
            false => EgressState::Connecting,
        }
    }

    fn send(&mut self, handle: Handle, message: &EgressMessage<'_>) -> bool {
        let Some(publication) = self.egress.connected.get(&handle) else {
            return false;
        };
        let length = encoded(self.buffer, |bytes| message.encode(bytes).ok());
        let bytes = &self.buffer[..length];
        (0..ATTEMPTS).any(|_| publication.offer(bytes).is_ok())
    }

    fn append_open(&mut self, event: &SessionOpenEvent<'_>) -> Option<i64> {
        self.append(&LogMessage::SessionOpenEvent(*event))
    }

    fn append_close(&mut self, event: &SessionCloseEvent) -> Option<i64> {
        self.append(&LogMessage::SessionCloseEvent(*event))
    }
}
