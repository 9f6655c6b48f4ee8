// SPDX-License-Identifier: Apache-2.0
//! The official C client behind the benchmark traits.

use std::ffi::{CStr, CString, c_void};
use std::os::unix::ffi::OsStrExt;
use std::ptr;
use std::rc::Rc;
use std::slice;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rusteron_client::bindings::{
    AERON_PUBLICATION_ADMIN_ACTION, AERON_PUBLICATION_BACK_PRESSURED,
    AERON_PUBLICATION_NOT_CONNECTED, aeron_async_add_exclusive_publication,
    aeron_async_add_exclusive_publication_poll, aeron_async_add_subscription,
    aeron_async_add_subscription_poll, aeron_buffer_claim_commit, aeron_buffer_claim_t,
    aeron_close, aeron_context_close, aeron_context_init, aeron_context_set_dir, aeron_context_t,
    aeron_errmsg, aeron_exclusive_publication_constants, aeron_exclusive_publication_is_connected,
    aeron_exclusive_publication_t, aeron_exclusive_publication_try_claim, aeron_header_t,
    aeron_init, aeron_publication_constants_t, aeron_start, aeron_subscription_is_connected,
    aeron_subscription_poll, aeron_subscription_t, aeron_t,
};
use taran_bench::client_api::{BenchClient, BenchPublication, BenchSubscription};
use taran_bench::client_idle::ClientIdle;
use taran_bench::side::RunError;
use taran_core::affinity;
use taran_peers::bench::{Common, TIMEOUT};

/// Connected client; its conductor has a thread of its own.
pub(crate) struct Client {
    connection: Rc<Connection>,
    idle: ClientIdle,
    stop: Arc<AtomicBool>,
}

/// Context and client, shared by all publications and subscriptions. The last owner closes the client, and with it all of its
/// resources.
struct Connection {
    context: *mut aeron_context_t,
    client: *mut aeron_t,
}

impl Client {
    /// Pins the calling thread and connects to the driver.
    pub(crate) fn connect(common: &Common, stop: Arc<AtomicBool>) -> Result<Client, RunError> {
        if let Some(cpu) = common.cpus.first() {
            affinity::pin_current_thread(*cpu)
                .map_err(|error| RunError::Config(error.to_string()))?;
        }
        let mut connection = Connection {
            context: ptr::null_mut(),
            client: ptr::null_mut(),
        };
        // SAFETY: the calls of the C library are in the order that it requires; it copies the path; context and client live
        // until they are closed by `drop`.
        unsafe {
            done(aeron_context_init(&raw mut connection.context))?;
            if let Some(directory) = &common.aeron_dir {
                let path = text(directory.as_os_str().as_bytes())?;
                done(aeron_context_set_dir(connection.context, path.as_ptr()))?;
            }
            done(aeron_init(&raw mut connection.client, connection.context))?;
            done(aeron_start(connection.client))?;
        }
        Ok(Client {
            connection: Rc::new(connection),
            idle: common.client_idle,
            stop,
        })
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // SAFETY: each is closed once, the client first; the library accepts null and does nothing.
        unsafe {
            if !self.client.is_null() {
                aeron_close(self.client);
            }
            if !self.context.is_null() {
                aeron_context_close(self.context);
            }
        }
    }
}

impl BenchClient for Client {
    type Publication = Publication;
    type Subscription = Subscription;

    fn publication(&mut self, channel: &str, stream_id: i32) -> Result<Publication, RunError> {
        let channel = text(channel.as_bytes())?;
        let mut pending = ptr::null_mut();
        let mut publication = ptr::null_mut();
        // SAFETY: the client is open; the library copies the channel; `pending` is polled until it is done, and not after.
        unsafe {
            done(aeron_async_add_exclusive_publication(
                &raw mut pending,
                self.connection.client,
                channel.as_ptr(),
                stream_id,
            ))?;
            poll_until_added(|| {
                aeron_async_add_exclusive_publication_poll(&raw mut publication, pending)
            })?;
        }
        Publication::new(Rc::clone(&self.connection), publication)
    }

    fn subscription(&mut self, channel: &str, stream_id: i32) -> Result<Subscription, RunError> {
        let channel = text(channel.as_bytes())?;
        let mut pending = ptr::null_mut();
        let mut subscription = ptr::null_mut();
        // SAFETY: as above; no callback is given for images.
        unsafe {
            done(aeron_async_add_subscription(
                &raw mut pending,
                self.connection.client,
                channel.as_ptr(),
                stream_id,
                None,
                ptr::null_mut(),
                None,
                ptr::null_mut(),
            ))?;
            poll_until_added(|| aeron_async_add_subscription_poll(&raw mut subscription, pending))?;
        }
        Ok(Subscription {
            subscription,
            _connection: Rc::clone(&self.connection),
        })
    }

    #[inline]
    fn duty_cycle(&mut self) -> Result<(), RunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        self.idle.idle();
        Ok(())
    }

    fn is_invoked(&self) -> bool {
        false
    }
}

/// Polls until the driver has added the resource.
fn poll_until_added(mut poll: impl FnMut() -> i32) -> Result<(), RunError> {
    let deadline = Instant::now() + TIMEOUT;
    loop {
        let state = poll();
        done(state)?;
        if state > 0 {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(RunError::TimedOut(TIMEOUT, "the response of the driver"));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// An exclusive publication.
pub(crate) struct Publication {
    publication: *mut aeron_exclusive_publication_t,
    max_payload_length: usize,
    _connection: Rc<Connection>,
}

impl Publication {
    fn new(
        connection: Rc<Connection>,
        publication: *mut aeron_exclusive_publication_t,
    ) -> Result<Publication, RunError> {
        let mut constants = zeroed();
        // SAFETY: the publication is open, and the constants are the caller's.
        done(unsafe { aeron_exclusive_publication_constants(publication, &raw mut constants) })?;
        Ok(Publication {
            publication,
            max_payload_length: constants.max_payload_length,
            _connection: connection,
        })
    }
}

fn zeroed() -> aeron_publication_constants_t {
    // SAFETY: a struct of numbers and pointers, for which zeros are values.
    unsafe { std::mem::zeroed() }
}

impl BenchPublication for Publication {
    fn is_connected(&self) -> bool {
        // SAFETY: the publication lives as long as its connection.
        unsafe { aeron_exclusive_publication_is_connected(self.publication) }
    }

    fn max_payload_length(&self) -> usize {
        self.max_payload_length
    }

    #[inline]
    fn send(&mut self, length: usize, fill: impl FnOnce(&mut [u8])) -> Result<bool, RunError> {
        let mut claim = aeron_buffer_claim_t {
            frame_header: ptr::null_mut(),
            data: ptr::null_mut(),
            length: 0,
        };
        // SAFETY: the publication lives; a successful claim is `length` bytes long, and valid until it is committed.
        unsafe {
            let position =
                aeron_exclusive_publication_try_claim(self.publication, length, &raw mut claim);
            if position < 0 {
                return refused(position);
            }
            fill(slice::from_raw_parts_mut(claim.data, length));
            done(aeron_buffer_claim_commit(&raw mut claim))?;
        }
        Ok(true)
    }
}

#[cold]
fn refused(code: i64) -> Result<bool, RunError> {
    let retryable = [
        AERON_PUBLICATION_NOT_CONNECTED,
        AERON_PUBLICATION_BACK_PRESSURED,
        AERON_PUBLICATION_ADMIN_ACTION,
    ];
    if retryable.iter().any(|retry| code == i64::from(*retry)) {
        return Ok(false);
    }
    Err(RunError::Peer(format!("{}: {}", code, last_error())))
}

/// A subscription.
pub(crate) struct Subscription {
    subscription: *mut aeron_subscription_t,
    _connection: Rc<Connection>,
}

impl BenchSubscription for Subscription {
    fn is_connected(&self) -> bool {
        // SAFETY: the subscription lives as long as its connection.
        unsafe { aeron_subscription_is_connected(self.subscription) }
    }

    #[inline]
    fn receive(&mut self, limit: usize, mut take: impl FnMut(&[u8])) -> Result<usize, RunError> {
        // SAFETY: the subscription lives; `handle` receives the closure passed here, which lives until the poll returns.
        let fragments = unsafe {
            aeron_subscription_poll(
                self.subscription,
                Some(handler_of(&take)),
                (&raw mut take).cast::<c_void>(),
                limit,
            )
        };
        done(fragments)?;
        Ok(usize::try_from(fragments).unwrap_or(0))
    }
}

type Handler = unsafe extern "C-unwind" fn(*mut c_void, *const u8, usize, *mut aeron_header_t);

fn handler_of<F: FnMut(&[u8])>(_: &F) -> Handler {
    handle::<F>
}

unsafe extern "C-unwind" fn handle<F: FnMut(&[u8])>(
    take: *mut c_void,
    buffer: *const u8,
    length: usize,
    _: *mut aeron_header_t,
) {
    // SAFETY: `take` is the closure of the poll that calls this, and the fragment is valid during the call.
    unsafe { (*take.cast::<F>())(slice::from_raw_parts(buffer, length)) }
}

fn text(bytes: &[u8]) -> Result<CString, RunError> {
    CString::new(bytes).map_err(|error| RunError::Config(error.to_string()))
}

fn done(code: i32) -> Result<(), RunError> {
    if code >= 0 {
        Ok(())
    } else {
        Err(RunError::Peer(last_error()))
    }
}

fn last_error() -> String {
    // SAFETY: the library returns a zero-terminated text owned by the calling thread.
    let text = unsafe { CStr::from_ptr(aeron_errmsg()) };
    text.to_string_lossy().into_owned()
}
