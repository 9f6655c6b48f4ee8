//! A publication of either kind.

use taran::{
    AddError, BufferClaim, Client, ExclusivePublication, OfferError, Pending, Publication,
};

use super::{Publishing, StreamKey};

/// A publication that the driver was asked for.
#[derive(Debug)]
pub(super) enum Adding {
    Shared(Pending<Publication>),
    Exclusive(Pending<ExclusivePublication>),
}

impl Adding {
    pub(super) fn begin(client: &Client, spec: &Publishing) -> Result<Self, AddError> {
        let (channel, stream_id) = (&spec.channel, spec.stream_id);
        if spec.exclusive {
            let adding = client.async_add_exclusive_publication(channel, stream_id);
            adding.map(Self::Exclusive)
        } else {
            let adding = client.async_add_publication(channel, stream_id);
            adding.map(Self::Shared)
        }
    }

    pub(super) fn poll(&mut self) -> Option<Result<Handle, AddError>> {
        match self {
            Self::Shared(pending) => Some(pending.poll()?.map(Handle::Shared)),
            Self::Exclusive(pending) => Some(
                pending
                    .poll()?
                    .map(|added| Handle::Exclusive(Box::new(added))),
            ),
        }
    }
}

/// How a message is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    Whole,
    /// In parts, the first of which ends here.
    Parts(usize),
    Claimed,
    /// Claimed and given up.
    Aborted,
}

/// A publication.
#[derive(Debug)]
pub(super) enum Handle {
    Shared(Publication),
    Exclusive(Box<ExclusivePublication>),
}

/// The same for both kinds.
macro_rules! of_either {
    ($handle:expr, $it:ident => $result:expr) => {
        match $handle {
            Handle::Shared($it) => $result,
            Handle::Exclusive($it) => $result,
        }
    };
}

impl Handle {
    pub(super) fn key(&self) -> StreamKey {
        of_either!(self, it => StreamKey {
            session_id: it.session_id(),
            stream_id: it.stream_id(),
            initial_term_id: it.initial_term_id(),
        })
    }

    pub(super) fn max_payload(&self) -> usize {
        of_either!(self, it => it.max_payload_length())
    }

    pub(super) fn max_message(&self) -> usize {
        of_either!(self, it => it.max_message_length())
    }

    pub(super) fn position(&self) -> i64 {
        of_either!(self, it => it.position())
    }

    pub(super) fn limit(&self) -> i64 {
        of_either!(self, it => it.position_limit())
    }

    pub(super) fn is_connected(&self) -> bool {
        of_either!(self, it => it.is_connected())
    }

    /// Asks for one more destination.
    pub(super) fn add_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
        of_either!(self, it => it.async_add_destination(channel))
    }

    /// Asks for one destination less.
    pub(super) fn remove_destination(&self, channel: &str) -> Result<Pending<()>, AddError> {
        of_either!(self, it => it.async_remove_destination(channel))
    }

    pub(super) fn revoke(self) {
        of_either!(self, it => it.revoke());
    }

    /// Claims room for a message and forgets it; the position after it.
    pub(super) fn hold(&mut self, length: usize) -> Result<i64, OfferError> {
        of_either!(self, it => {
            let claim = it.try_claim(length)?;
            let position = claim.position();
            // Dropped it would be given up in an orderly way.
            std::mem::forget(claim);
            Ok(position)
        })
    }

    /// Offers a message; the position after it.
    pub(super) fn offer(&mut self, content: &[u8], way: Way) -> Result<i64, OfferError> {
        match way {
            Way::Whole => of_either!(self, it => it.offer(content)),
            Way::Parts(split) => {
                let parts = [&content[..split], &[], &content[split..]];
                of_either!(self, it => it.offer_parts(&parts))
            }
            Way::Claimed | Way::Aborted => of_either!(self, it => {
                let claim = it.try_claim(content.len());
                claim.map(|claim| finish(claim, content, way == Way::Aborted))
            }),
        }
    }
}

/// Commits a message in a claim, or gives it up; the position after it.
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
