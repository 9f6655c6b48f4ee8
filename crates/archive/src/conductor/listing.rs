// SPDX-License-Identifier: Apache-2.0
//! Listings of recordings and recording subscriptions (`docs/spec/archive.md` §2.5).

use taran_archive_client::protocol::{
    ControlResponseCode, ErrorCode, RecordingSubscriptionDescriptor, Request,
};

use super::ConductorCore;
use super::request::{Refusal, Requester};

/// Descriptors sent per duty cycle and session; less if the client's window is full before.
const DESCRIPTORS_PER_CYCLE: usize = 512;
/// Time without room for a descriptor during which the agent does not idle: a client that reads makes room within microseconds,
/// and a listing fills the window many times.
const STAY_AWAKE_NS: i64 = 1_000_000;

/// A listing that is being sent.
#[derive(Clone, Debug)]
pub(super) struct Listing {
    correlation_id: i64,
    left: i32,
    kind: Kind,
    /// Time of the last duty cycle in which a descriptor was sent.
    sent_ns: i64,
}

#[derive(Clone, Debug)]
enum Kind {
    /// Recordings with an id of at least `from`; only those of a stream whose channel contains a fragment, if there is a
    /// filter.
    Recordings {
        from: i64,
        filter: Option<(i32, String)>,
    },
    /// Recording subscriptions by ascending id, after `after`, of which `skip` are left out.
    Subscriptions {
        after: i64,
        skip: i32,
        stream_id: Option<i32>,
        fragment: String,
    },
}

/// Continuation of a listing after a descriptor.
enum Next {
    /// There is another one, perhaps.
    More,
    /// The client does not take it now.
    Blocked,
    /// There are no more.
    End,
}

impl ConductorCore {
    /// Returns an error if a session has a listing.
    pub(super) fn check_no_listing(&self, session_id: i64) -> Result<(), Refusal> {
        let session = self.sessions.get(&session_id);
        if session.is_some_and(|session| session.listing.is_some()) {
            return Err(Refusal::new(
                ErrorCode::ActiveListing,
                "the session has a listing that is not complete: read its responses first",
            ));
        }
        Ok(())
    }

    pub(super) fn start_listing(&mut self, request: &Request<'_>, to: Requester) {
        if let Err(refusal) = self.check_no_listing(to.session_id) {
            self.refuse(to, &refusal);
            return;
        }
        let (left, kind) = match request {
            Request::ListRecordingsRequest(request) => (
                request.record_count,
                Kind::Recordings {
                    from: request.from_recording_id,
                    filter: None,
                },
            ),
            Request::ListRecordingsForUriRequest(request) => (
                request.record_count,
                Kind::Recordings {
                    from: request.from_recording_id,
                    filter: Some((request.stream_id, request.channel.to_owned())),
                },
            ),
            Request::ListRecordingRequest(request) => {
                if let Err(refusal) = self.known(request.recording_id) {
                    // Unavailable is not the same as unknown.
                    if refusal.code == ErrorCode::UnknownRecording {
                        self.end_of_recordings(to, request.recording_id);
                    } else {
                        self.refuse(to, &refusal);
                    }
                    return;
                }
                (
                    1,
                    Kind::Recordings {
                        from: request.recording_id,
                        filter: None,
                    },
                )
            }
            Request::ListRecordingSubscriptionsRequest(request) => {
                let listed = self
                    .subscriptions
                    .values()
                    .filter(|found| found.is_listed());
                let count = i32::try_from(listed.count()).unwrap_or(i32::MAX);
                let index = request.pseudo_index;
                if index < 0 || index >= count {
                    self.end_of_subscriptions(to);
                    return;
                }
                (
                    request.subscription_count,
                    Kind::Subscriptions {
                        after: i64::MIN,
                        skip: index,
                        stream_id: request.apply_stream_id.then_some(request.stream_id),
                        fragment: request.channel.to_owned(),
                    },
                )
            }
            _ => return,
        };
        if left <= 0 {
            match kind {
                Kind::Recordings { from, .. } => self.end_of_recordings(to, from),
                Kind::Subscriptions { .. } => self.end_of_subscriptions(to),
            }
            return;
        }
        if let Some(session) = self.sessions.get_mut(&to.session_id) {
            session.listing = Some(Listing {
                correlation_id: to.correlation_id,
                left,
                kind,
                sent_ns: self.now.nanos,
            });
        }
        self.poll_listing(to.session_id);
    }

    pub(super) fn end_of_recordings(&mut self, to: Requester, id: i64) {
        self.respond_with(to, ControlResponseCode::RecordingUnknown, id, "");
    }

    fn end_of_subscriptions(&mut self, to: Requester) {
        self.respond_with(to, ControlResponseCode::SubscriptionUnknown, 0, "");
    }

    /// Sends descriptors; returns the amount of work, which is not 0 while the client is likely to make room at once.
    pub(super) fn poll_listing(&mut self, session_id: i64) -> usize {
        let taken = self
            .sessions
            .get_mut(&session_id)
            .and_then(|session| session.listing.take());
        let Some(mut listing) = taken else { return 0 };
        let to = Requester {
            session_id,
            correlation_id: listing.correlation_id,
        };
        let mut sent = 0;
        while sent < DESCRIPTORS_PER_CYCLE {
            if listing.left == 0 {
                return sent;
            }
            match self.send_next(to, &mut listing) {
                Next::More => sent += 1,
                Next::Blocked => break,
                Next::End => {
                    match listing.kind {
                        Kind::Recordings { from, .. } => self.end_of_recordings(to, from),
                        Kind::Subscriptions { .. } => self.end_of_subscriptions(to),
                    }
                    return sent + 1;
                }
            }
        }
        if sent > 0 {
            listing.sent_ns = self.now.nanos;
        }
        let is_awake = self.now.nanos.saturating_sub(listing.sent_ns) < STAY_AWAKE_NS;
        if listing.left > 0
            && let Some(session) = self.sessions.get_mut(&session_id)
        {
            session.listing = Some(listing);
        }
        sent.max(usize::from(is_awake))
    }

    fn send_next(&mut self, to: Requester, listing: &mut Listing) -> Next {
        match &mut listing.kind {
            Kind::Recordings { from, filter } => {
                let found = match filter {
                    None => self.catalog.recordings(*from).next(),
                    Some((stream_id, fragment)) => self
                        .catalog
                        .recordings_of(*from, *stream_id, fragment)
                        .next(),
                };
                let Some(found) = found else { return Next::End };
                let next = found.recording_id + 1;
                let message = found.message(to.session_id, to.correlation_id);
                let Some(session) = self.sessions.get_mut(&to.session_id) else {
                    return Next::Blocked;
                };
                if !session.control.send_now(&message, self.now.nanos) {
                    return Next::Blocked;
                }
                *from = next;
            }
            Kind::Subscriptions {
                after,
                skip,
                stream_id,
                fragment,
            } => {
                let listed = self
                    .subscriptions
                    .iter()
                    .filter(|(_, found)| found.is_listed());
                let next = listed
                    .filter(|(id, _)| **id > *after)
                    .min_by_key(|(id, _)| **id);
                let Some((id, found)) = next else {
                    return Next::End;
                };
                let is_skipped = *skip > 0;
                let matches = stream_id.is_none_or(|wanted| wanted == found.stream_id())
                    && found.recorded.subscribed.contains(fragment.as_str());
                if is_skipped || !matches {
                    *skip = (*skip - 1).max(0);
                    *after = *id;
                    return Next::More;
                }
                let message = RecordingSubscriptionDescriptor {
                    control_session_id: to.session_id,
                    correlation_id: to.correlation_id,
                    subscription_id: *id,
                    stream_id: found.stream_id(),
                    stripped_channel: &found.recorded.subscribed,
                };
                let Some(session) = self.sessions.get_mut(&to.session_id) else {
                    return Next::Blocked;
                };
                if !session.control.send_now(&message, self.now.nanos) {
                    return Next::Blocked;
                }
                *after = *id;
            }
        }
        listing.left -= 1;
        Next::More
    }
}
