// SPDX-License-Identifier: Apache-2.0
//! Publications, shared and exclusive, and claims.

use std::ffi::{c_char, c_void};
use std::mem::{self, MaybeUninit};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use taran::idle::Yield;
use taran::{BufferClaim, ExclusivePublication, OfferError, Publication};

use crate::call::{
    Single, bytes, check_result, free, give, number, object, status, text, truth, write,
};
use crate::client::{Call, taran_client_t};
use crate::error::{Failure, taran_error_t};

/// A publication. If it is shared, any number of threads may use it at once; an exclusive one is used by one thread at a time.
#[derive(Debug)]
pub struct taran_publication_t {
    kind: Kind,
    /// Claims that are neither committed nor aborted. They refer to the log of the publication.
    open_claims: AtomicUsize,
}

#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "it is on the heap, once per publication"
)]
enum Kind {
    Shared(Publication),
    Exclusive(Single<ExclusivePublication>),
}

/// Space for one message in the log, to be written in place. Filled by taran_publication_try_claim(), and owned by the caller. Not to
/// be copied. Subscribers wait for the claim, so commit it soon.
#[repr(C)]
#[derive(Debug)]
pub struct taran_claim_t {
    /// Memory of the message, to be written; NULL if the claim is not open.
    pub data: *mut u8,
    /// Length of the message in bytes.
    pub length: usize,
    /// Of the library.
    // Memory for an `OpenClaim`. As pointers, because integers lose which memory a pointer may access, also when they are moved; and
    // perhaps without values, because the contents have padding.
    private_: MaybeUninit<[*mut c_void; 8]>,
}

/// Contents of the private part of [`taran_claim_t`].
struct OpenClaim {
    claim: BufferClaim<'static>,
    /// Open claims of the publication.
    count: &'static AtomicUsize,
}

const _: () = {
    assert!(size_of::<OpenClaim>() <= size_of::<[*mut c_void; 8]>());
    assert!(align_of::<OpenClaim>() <= align_of::<*mut c_void>());
};

impl taran_publication_t {
    /// Runs an operation of both kinds of publication.
    fn with<R>(
        &self,
        shared: impl FnOnce(&Publication) -> Result<R, OfferError>,
        exclusive: impl FnOnce(&mut ExclusivePublication) -> Result<R, OfferError>,
    ) -> Result<R, Failure> {
        match &self.kind {
            Kind::Shared(publication) => Ok(shared(publication)?),
            Kind::Exclusive(single) => single.with_if(
                || self.check_no_claim(),
                |publication| Ok(exclusive(publication)?),
            ),
        }
    }

    /// Reads a value of both kinds of publication, unless it is closed by [`taran_publication_close`].
    fn get<R>(
        &self,
        shared: impl FnOnce(&Publication) -> R,
        exclusive: impl FnOnce(&ExclusivePublication) -> R,
    ) -> Result<R, Failure> {
        self.with(
            |publication| Ok(shared(publication)),
            |publication| Ok(exclusive(publication)),
        )
    }

    fn close(&self) -> Result<(), Failure> {
        match &self.kind {
            Kind::Shared(publication) => publication.close(),
            Kind::Exclusive(single) => drop(single.take_if(|| self.check_no_claim())?),
        }
        Ok(())
    }

    /// Counts a claim of this publication as open.
    fn opened(&'static self, claim: BufferClaim<'_>) -> OpenClaim {
        self.open_claims.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the claim refers to the log of `self`, which neither moves nor is freed while `open_claims` is not 0: a shared
        // publication is counted by references, and `with`, `close` and `free` refuse an exclusive one before they make a `&mut`
        // of it.
        let claim = unsafe { mem::transmute::<BufferClaim<'_>, BufferClaim<'static>>(claim) };
        OpenClaim {
            claim,
            count: &self.open_claims,
        }
    }

    fn check_no_claim(&self) -> Result<(), Failure> {
        // Acquire: what the claim wrote happens before; see `taran_claim_t::end`.
        if self.open_claims.load(Ordering::Acquire) == 0 {
            return Ok(());
        }
        Err(Failure::fixed(
            taran_error_t::TARAN_ERROR_IN_USE,
            "the publication has an open claim; commit or abort it first",
        ))
    }
}

impl taran_claim_t {
    fn new(mut open: OpenClaim) -> Self {
        let (data, length) = (open.claim.as_mut_ptr(), open.claim.len());
        let mut private_ = MaybeUninit::<[*mut c_void; 8]>::uninit();
        // SAFETY: the memory is large and aligned enough for the value, as checked above.
        unsafe { private_.as_mut_ptr().cast::<OpenClaim>().write(open) };
        Self {
            data,
            length,
            private_,
        }
    }

    /// Takes the contents out, after which the claim is not open.
    ///
    /// # Safety
    /// The claim was made by [`new`](Self::new), or its `data` is NULL.
    unsafe fn take(&mut self) -> Result<OpenClaim, Failure> {
        if self.data.is_null() {
            return Err(Failure::invalid(
                "the claim is not open: it was committed or aborted before",
            ));
        }
        self.data = std::ptr::null_mut();
        self.length = 0;
        // SAFETY: `new` has written the value, and the pointer to the data says that nothing has taken it.
        Ok(unsafe { self.private_.as_ptr().cast::<OpenClaim>().read() })
    }

    /// Ends the claim: `end` consumes it.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    unsafe fn end<R>(&mut self, end: impl FnOnce(BufferClaim<'static>) -> R) -> Result<R, Failure> {
        // SAFETY: the caller's promise.
        let OpenClaim { claim, count } = unsafe { self.take() }?;
        let ended = end(claim);
        // Release: pairs with `check_no_claim`. From here on another thread may free the publication, so that nothing that refers
        // to it is left but the count.
        count.fetch_sub(1, Ordering::Release);
        Ok(ended)
    }
}

/// Returns the claim of a caller.
///
/// # Safety
/// The pointer is null, or points to a claim that was filled by `taran_publication_try_claim`, or whose `data` is NULL; nothing else
/// uses it while the reference lives.
unsafe fn claim_of<'a>(claim: *mut taran_claim_t) -> Result<&'a mut taran_claim_t, Failure> {
    // SAFETY: the caller's promise.
    unsafe { claim.as_mut() }.ok_or(Failure::invalid("the claim is NULL"))
}

/// Adds a shared publication and waits for the driver. Publications of this client with the same channel and stream id share the
/// stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_add_publication(
    client: *const taran_client_t,
    channel: *const c_char,
    stream_id: i32,
    publication: *mut *mut taran_publication_t,
) -> i32 {
    status(|| {
        check_result(publication)?;
        // SAFETY: the handle and the text follow the rules of the header.
        let (client, channel) = unsafe { (Call::of(client)?, text(channel)?) };
        let added = client.add_publication(channel, stream_id)?;
        let added = taran_publication_t {
            kind: Kind::Shared(added),
            open_claims: AtomicUsize::new(0),
        };
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { give(publication, added) }
    })
}

/// Adds an exclusive publication, a stream with one writer, and waits for the driver.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_client_add_exclusive_publication(
    client: *const taran_client_t,
    channel: *const c_char,
    stream_id: i32,
    publication: *mut *mut taran_publication_t,
) -> i32 {
    status(|| {
        check_result(publication)?;
        // SAFETY: the handle and the text follow the rules of the header.
        let (client, channel) = unsafe { (Call::of(client)?, text(channel)?) };
        let added = client.add_exclusive_publication(channel, stream_id)?;
        let added = taran_publication_t {
            kind: Kind::Exclusive(Single::new(added)),
            open_claims: AtomicUsize::new(0),
        };
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { give(publication, added) }
    })
}

/// Offers a message: copies it into the log. Returns the position after it. NOT_CONNECTED, BACK_PRESSURED and ADMIN_ACTION pass by
/// themselves: offer again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_offer(
    publication: *const taran_publication_t,
    data: *const u8,
    length: usize,
) -> i64 {
    number(|| {
        // SAFETY: the handle and the bytes follow the rules of the header.
        let (publication, message) = unsafe { (object(publication)?, bytes(data, length)?) };
        publication.with(
            |publication| publication.offer(message),
            |publication| publication.offer(message),
        )
    })
}

/// Offers a message again while the error passes by itself, for at most `timeout_ns` nanoseconds; the thread yields between the
/// attempts. Returns the position after the message, or the error of the last attempt.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_offer_for(
    publication: *const taran_publication_t,
    data: *const u8,
    length: usize,
    timeout_ns: u64,
) -> i64 {
    number(|| {
        // SAFETY: the handle and the bytes follow the rules of the header.
        let (publication, message) = unsafe { (object(publication)?, bytes(data, length)?) };
        let now = Instant::now();
        let deadline =
            now.checked_add(Duration::from_nanos(timeout_ns))
                .ok_or(Failure::invalid(
                    "the timeout exceeds the range of the clock",
                ))?;
        publication.with(
            |publication| publication.offer_until(message, deadline, &mut Yield),
            |publication| publication.offer_until(message, deadline, &mut Yield),
        )
    })
}

/// Claims space for a message of at most taran_publication_max_payload_length() bytes, to be written to `claim->data`. Returns the
/// position after it. Each claim has to be committed or aborted, also after the publication was closed; until then an exclusive
/// publication refuses other calls, and the handle is not freed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_try_claim(
    publication: *const taran_publication_t,
    length: usize,
    claim: *mut taran_claim_t,
) -> i64 {
    number(|| {
        check_result(claim)?;
        // SAFETY: the handle follows the rules of the header. It outlives the claim: it is not freed while `open_claims` is not 0.
        let publication: &'static taran_publication_t = unsafe { object(publication) }?;
        let open = publication.with(
            |shared| {
                shared
                    .try_claim(length)
                    .map(|claim| publication.opened(claim))
            },
            |exclusive| {
                exclusive
                    .try_claim(length)
                    .map(|claim| publication.opened(claim))
            },
        )?;
        let position = open.claim.position();
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { write(claim, taran_claim_t::new(open)) }?;
        Ok(position)
    })
}

/// Publishes the message of a claim. Returns the position after it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_claim_commit(claim: *mut taran_claim_t) -> i64 {
    // SAFETY: the pointer follows the rules of the header.
    number(|| unsafe { claim_of(claim)?.end(BufferClaim::commit) })
}

/// Gives a claim up: subscribers skip its space.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_claim_abort(claim: *mut taran_claim_t) -> i32 {
    // SAFETY: the pointer follows the rules of the header.
    status(|| unsafe { claim_of(claim)?.end(BufferClaim::abort) })
}

/// Returns 1 if the publication is open and has a subscriber, 0 if not.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_is_connected(
    publication: *const taran_publication_t,
) -> i32 {
    truth(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(publication) }?.get(
            Publication::is_connected,
            ExclusivePublication::is_connected,
        )
    })
}

/// Returns the position of the next message: the number of bytes before it in the stream, with frame headers and padding.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_position(
    publication: *const taran_publication_t,
) -> i64 {
    number(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(publication) }?.get(Publication::position, ExclusivePublication::position)
    })
}

/// Returns the position at which back-pressure sets in.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_position_limit(
    publication: *const taran_publication_t,
) -> i64 {
    number(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(publication) }?.get(
            Publication::position_limit,
            ExclusivePublication::position_limit,
        )
    })
}

/// Returns the maximum length of a message in bytes; longer ones than a frame are fragmented.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_max_message_length(
    publication: *const taran_publication_t,
) -> i64 {
    number(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(publication) }?.get(
            |publication| publication.max_message_length() as i64,
            |publication| publication.max_message_length() as i64,
        )
    })
}

/// Returns the maximum length of an unfragmented message or a claim in bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_max_payload_length(
    publication: *const taran_publication_t,
) -> i64 {
    number(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe { object(publication) }?.get(
            |publication| publication.max_payload_length() as i64,
            |publication| publication.max_payload_length() as i64,
        )
    })
}

/// Writes the session id of the publication to `session_id`. It may be negative.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_session_id(
    publication: *const taran_publication_t,
    session_id: *mut i32,
) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        let id = unsafe { object(publication) }?
            .get(Publication::session_id, ExclusivePublication::session_id)?;
        // SAFETY: the pointer to the result follows the rules of the header.
        unsafe { write(session_id, id) }
    })
}

/// Closes the publication. Messages that were offered before are still delivered. A second close has no effect.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_close(publication: *const taran_publication_t) -> i32 {
    // SAFETY: the handle follows the rules of the header.
    status(|| unsafe { object(publication) }?.close())
}

/// Closes the publication unless it is closed, and frees its handle. Fails while it has an open claim. NULL is allowed.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn taran_publication_free(publication: *mut taran_publication_t) -> i32 {
    status(|| {
        // SAFETY: the handle follows the rules of the header.
        unsafe {
            free(publication, |publication| {
                publication.check_no_claim()?;
                publication.close()
            })
        }
    })
}

#[cfg(test)]
mod tests {
    use std::sync::OnceLock;

    use taran_core::memory::Region;
    use taran_protocol::log::{LogBuffers, LogKind, LogSpec, SharedAppender};

    use super::*;

    /// Under Miri, this fails if the private part of a claim loses which memory its pointers may access.
    #[test]
    fn claim_that_was_moved_is_written_and_committed_once() {
        static APPENDER: OnceLock<SharedAppender> = OnceLock::new();
        static COUNT: AtomicUsize = AtomicUsize::new(1);
        let appender = APPENDER.get_or_init(|| {
            let spec = LogSpec::new(LogKind::Concurrent, 1, 2, 3, 65_536);
            let region = Region::anonymous(spec.file_length()).unwrap();
            SharedAppender::new(LogBuffers::create(&region, &spec, 0).unwrap())
        });
        let claim = appender.claim(appender.tail().unwrap(), 5).unwrap();
        let claim = taran_claim_t::new(OpenClaim {
            claim,
            count: &COUNT,
        });
        let mut moved = Box::new(claim);
        // SAFETY: the claim is open, and has this length.
        unsafe { moved.data.copy_from(b"hello".as_ptr(), 5) };
        // SAFETY: made by `new`.
        let position = unsafe { moved.end(BufferClaim::commit) }.unwrap();
        assert_eq!(position, 64);
        let term = appender.log().term(0);
        assert_eq!(
            (term.bytes(0, 4), term.bytes(32, 5)),
            (&37_i32.to_le_bytes()[..], &b"hello"[..])
        );
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
        // SAFETY: made by `new`.
        let again = unsafe { moved.end(BufferClaim::commit) };
        assert_eq!(
            again.unwrap_err().code,
            taran_error_t::TARAN_ERROR_INVALID_ARGUMENT
        );
        assert_eq!(COUNT.load(Ordering::Relaxed), 0);
    }
}
