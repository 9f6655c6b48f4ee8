// SPDX-License-Identifier: Apache-2.0
//! A publication of either kind.

use taran::{
    BufferClaim, Client, CommandError, ExclusivePublication, OfferError, Pending, Publication,
};

use super::{PublisherSpec, StreamKey};

/// A publication that was requested from the driver.
#[derive(Debug)]
pub(super) enum PendingPublication {
    Shared(Pending<Publication>),
    Exclusive(Pending<ExclusivePublication>),
}

impl PendingPublication {
    pub(super) fn begin(client: &Client, spec: &PublisherSpec) -> Result<Self, CommandError> {
        let (channel, stream_id) = (&spec.channel, spec.stream_id);
        if spec.exclusive {
            let adding = client.async_add_exclusive_publication(channel, stream_id);
            adding.map(Self::Exclusive)
        } else {
            let adding = client.async_add_publication(channel, stream_id);
            adding.map(Self::Shared)
        }
    }

    pub(super) fn poll(&mut self) -> Option<Result<PublicationHandle, CommandError>> {
        match self {
            Self::Shared(pending) => Some(pending.poll()?.map(PublicationHandle::Shared)),
            Self::Exclusive(pending) => Some(
                pending
                    .poll()?
                    .map(|added| PublicationHandle::Exclusive(Box::new(added))),
            ),
        }
    }
}

/// Method of offering a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OfferMethod {
    Offer,
    /// In parts; the first one ends at this offset.
    OfferParts(usize),
    Claim,
    /// Claimed and aborted.
    ClaimAndAbort,
}

/// A publication.
#[derive(Debug)]
pub(super) enum PublicationHandle {
    Shared(Publication),
    Exclusive(Box<ExclusivePublication>),
}

/// Evaluates the same expression for both kinds.
macro_rules! for_either {
    ($handle:expr, $it:ident => $result:expr) => {
        match $handle {
            PublicationHandle::Shared($it) => $result,
            PublicationHandle::Exclusive($it) => $result,
        }
    };
}

impl PublicationHandle {
    pub(super) fn key(&self) -> StreamKey {
        for_either!(self, it => StreamKey {
            session_id: it.session_id(),
            stream_id: it.stream_id(),
            initial_term_id: it.initial_term_id(),
        })
    }

    pub(super) fn max_payload(&self) -> usize {
        for_either!(self, it => it.max_payload_length())
    }

    pub(super) fn max_message(&self) -> usize {
        for_either!(self, it => it.max_message_length())
    }

    pub(super) fn position(&self) -> i64 {
        for_either!(self, it => it.position())
    }

    pub(super) fn limit(&self) -> i64 {
        for_either!(self, it => it.position_limit())
    }

    pub(super) fn is_connected(&self) -> bool {
        for_either!(self, it => it.is_connected())
    }

    /// Requests one more destination.
    pub(super) fn add_destination(&self, channel: &str) -> Result<Pending<()>, CommandError> {
        for_either!(self, it => it.async_add_destination(channel))
    }

    /// Requests the removal of a destination.
    pub(super) fn remove_destination(&self, channel: &str) -> Result<Pending<()>, CommandError> {
        for_either!(self, it => it.async_remove_destination(channel))
    }

    pub(super) fn revoke(self) {
        for_either!(self, it => it.revoke());
    }

    /// Claims a message and never finishes it; returns the position after it.
    pub(super) fn hold_claim(&mut self, length: usize) -> Result<i64, OfferError> {
        for_either!(self, it => {
            let claim = it.try_claim(length)?;
            let position = claim.position();
            // Dropping the claim would abort it.
            std::mem::forget(claim);
            Ok(position)
        })
    }

    /// Offers a message; returns the position after it.
    pub(super) fn offer(&mut self, content: &[u8], method: OfferMethod) -> Result<i64, OfferError> {
        match method {
            OfferMethod::Offer => for_either!(self, it => it.offer(content)),
            OfferMethod::OfferParts(split) => {
                let parts = [&content[..split], &[], &content[split..]];
                for_either!(self, it => it.offer_parts(&parts))
            }
            OfferMethod::Claim | OfferMethod::ClaimAndAbort => for_either!(self, it => {
                let claim = it.try_claim(content.len());
                claim.map(|claim| finish(claim, content, method == OfferMethod::ClaimAndAbort))
            }),
        }
    }
}

/// Commits or aborts a claimed message; returns the position after it.
fn finish(mut claim: BufferClaim<'_>, content: &[u8], is_aborted: bool) -> i64 {
    claim.copy_from_slice(content);
    let position = claim.position();
    if is_aborted {
        claim.abort();
    } else {
        claim.commit();
    }
    position
}
