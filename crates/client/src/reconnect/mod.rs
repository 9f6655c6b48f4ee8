// SPDX-License-Identifier: Apache-2.0
//! A client that connects again when its driver is lost, and adds its resources again.
//!
//! Contract: resources are added once. [`ReconnectingClient::do_work`] is called often, with the current time; it
//! connects, adds the resources that the connected driver does not have yet, and runs the conductor of a client in
//! invoker mode. [`ReconnectingClient::state`] is the state after the last call. A [`Reconnecting`] resource may be
//! moved to another thread; it sees a change when it is asked next.

mod destinations;
mod refusal;
mod resource;

use std::time::Duration;

use taran_core::clock::{Clock, Now, SystemClock, saturating_nanos};

use self::destinations::Resource;
use self::resource::{Add, Restore, Restorer};
use crate::builder::ClientBuilder;
use crate::client::Client;
use crate::connect::{Connecting, Progress};
use crate::counter::Counter;
use crate::error::{CommandError, ConnectError, Lost};
use crate::handlers::ImageHandlers;
use crate::pending::Pending;
use crate::publication::{ExclusivePublication, Publication};
use crate::subscription::Subscription;
use crate::trace::event;

pub use self::resource::Reconnecting;

/// Delay after a failed attempt to connect or to add a resource.
const RETRY_NS: i64 = 1_000_000_000;
/// Default time without a heartbeat of the driver after which the connection is suspect. A driver updates its heartbeat
/// once per second.
const SUSPECT_AFTER: Duration = Duration::from_secs(3);

/// State of a [`ReconnectingClient`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConnectionState {
    /// Not connected; a driver is awaited.
    Reconnecting {
        /// Reason why the last driver was lost; `None` before the first connection.
        lost: Option<Lost>,
        /// Reason why the last attempt to connect failed; `None` if none has failed since.
        failure: Option<ConnectError>,
    },
    /// Connected to a driver. Resources may still be being added.
    Connected,
    /// Connected, but the driver has not updated its heartbeat for some time. Resources remain usable; the state changes
    /// to connected with the next heartbeat, or to reconnecting after the driver timeout.
    Suspect {
        /// Time since the last change of the heartbeat that this client has seen.
        silence: Duration,
    },
}

impl std::fmt::Display for ConnectionState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Connected => f.write_str("connected"),
            Self::Suspect { silence } => {
                write!(
                    f,
                    "suspect: no heartbeat of the media driver for {silence:?}"
                )
            }
            Self::Reconnecting { lost, failure } => {
                f.write_str("waiting for a media driver")?;
                if let Some(lost) = lost {
                    write!(f, "; the last one was lost: {lost}")?;
                }
                if let Some(failure) = failure {
                    write!(f, "; the last attempt failed: {failure}")?;
                }
                Ok(())
            }
        }
    }
}

/// Connects to a driver, and connects again each time that the driver is lost.
///
/// Publications, subscriptions and counters that were added to it are made anew on the next driver. A new publication
/// starts a new stream: what a subscriber had not received when the driver was lost is gone, and only the application
/// knows what has to be sent again; see [`Reconnecting::generation`].
///
/// A resource that a driver cannot add is tried again once per second. If the driver refuses it for a reason that does not
/// pass by itself, such as an invalid channel, [`Reconnecting::get`] returns the error, and the next attempt is on the next
/// connection.
///
/// Destinations that are added to the handle (`Reconnecting::add_destination`) are part of the resource. With the feature
/// `async`, `Reconnecting::into_async` makes a `Stream` or `Sink` that goes on with the resource on the next driver.
///
/// The application makes anew what was done to the resource itself or to the client:
///
/// * Static counters, and handlers that were added to the client: they are added to the next [`client`](Self::client) when
///   the [`state`](Self::state) becomes connected.
/// * Images that were taken from a subscription: they are taken from the new one when [`Reconnecting::generation`]
///   changes.
///
/// ```
/// use taran::{Client, ReconnectingClient};
/// # use taran_driver::{DriverContext, MediaDriver};
///
/// # fn main() -> Result<(), taran::Error> {
/// # let driver = MediaDriver::launch_embedded(DriverContext::new().ipc_term_buffer_length(65_536)).unwrap();
/// # let directory = driver.aeron_dir().to_path_buf();
/// let mut client = ReconnectingClient::new(move || Client::builder().aeron_dir(&directory));
/// let mut publication = client.add_publication("aeron:ipc", 1001);
/// let mut subscription = client.add_subscription("aeron:ipc", 1001);
/// let mut received = 0;
/// while received == 0 {
///     client.invoke()?;
///     // `None` while there is no driver; an error with `lost()` until that is noticed.
///     if let Some(publication) = publication.get()? {
///         let _ = publication.offer(b"hello");
///     }
///     if let Some(subscription) = subscription.get()? {
///         received = subscription.poll(|_, _| (), 10).unwrap_or(0);
///     }
/// }
/// # Ok(())
/// # }
/// ```
pub struct ReconnectingClient {
    builder: Box<dyn FnMut() -> ClientBuilder + Send>,
    suspect_after: Duration,
    link: Link,
    state: ConnectionState,
    resources: Vec<Box<dyn Restore>>,
    clock: SystemClock,
}

#[derive(Debug)]
enum Link {
    /// No attempt is in progress; the next begins at this time.
    Down { next_attempt_ns: i64 },
    /// An attempt is in progress; its next check is at this time.
    Connecting {
        attempt: Box<Connecting>,
        next_check_ns: i64,
    },
    Up {
        client: Client,
        /// The driver's last heartbeat, and the time at which it was first seen.
        heartbeat: (i64, i64),
    },
}

impl std::fmt::Debug for ReconnectingClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ReconnectingClient")
            .field("state", &self.state)
            .field("resources", &self.resources.len())
            .finish_non_exhaustive()
    }
}

impl ReconnectingClient {
    /// Creates a client that is not connected yet. `builder` configures each client that connects.
    pub fn new(builder: impl FnMut() -> ClientBuilder + Send + 'static) -> Self {
        Self {
            builder: Box::new(builder),
            suspect_after: SUSPECT_AFTER,
            link: Link::Down {
                next_attempt_ns: i64::MIN,
            },
            state: ConnectionState::Reconnecting {
                lost: None,
                failure: None,
            },
            resources: Vec::new(),
            clock: SystemClock::new(),
        }
    }

    /// Sets the time without a heartbeat of the driver after which the connection is
    /// [suspect](ConnectionState::Suspect). Default: 3 s.
    #[must_use]
    pub fn suspect_after(mut self, time: Duration) -> Self {
        self.suspect_after = time;
        self
    }

    /// Returns the state after the last duty cycle.
    #[must_use]
    pub fn state(&self) -> &ConnectionState {
        &self.state
    }

    /// Returns the connected client; `None` while there is no driver.
    #[must_use]
    pub fn client(&self) -> Option<&Client> {
        match &self.link {
            Link::Up { client, .. } => Some(client),
            _ => None,
        }
    }

    /// Adds a shared publication to this and every later driver.
    pub fn add_publication(
        &mut self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Reconnecting<Publication> {
        self.add_stream(channel.as_ref(), move |client, channel| {
            client.async_add_publication(channel, stream_id)
        })
    }

    /// Adds an exclusive publication to this and every later driver.
    pub fn add_exclusive_publication(
        &mut self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Reconnecting<ExclusivePublication> {
        self.add_stream(channel.as_ref(), move |client, channel| {
            client.async_add_exclusive_publication(channel, stream_id)
        })
    }

    /// Adds a subscription to this and every later driver.
    pub fn add_subscription(
        &mut self,
        channel: impl AsRef<str>,
        stream_id: i32,
    ) -> Reconnecting<Subscription> {
        self.add_stream(channel.as_ref(), move |client, channel| {
            client.async_add_subscription(channel, stream_id)
        })
    }

    /// Like [`add_subscription`](Self::add_subscription), with handlers for its images; `handlers` is called for each
    /// driver.
    pub fn add_subscription_with(
        &mut self,
        channel: impl AsRef<str>,
        stream_id: i32,
        handlers: impl Fn() -> ImageHandlers + Send + 'static,
    ) -> Reconnecting<Subscription> {
        self.add_stream(channel.as_ref(), move |client, channel| {
            client.async_add_subscription_with(channel, stream_id, handlers())
        })
    }

    /// Allocates a counter on this and every later driver. It starts at 0 on each.
    pub fn add_counter(
        &mut self,
        type_id: i32,
        key: impl AsRef<[u8]>,
        label: impl AsRef<str>,
    ) -> Reconnecting<Counter> {
        let (key, label) = (key.as_ref().to_vec(), label.as_ref().to_owned());
        let add = move |client: &Client| client.async_add_counter(type_id, &key, &label);
        self.add(Box::new(add), None)
    }

    fn add_stream<T: Resource + 'static>(
        &mut self,
        channel: &str,
        add: impl Fn(&Client, &str) -> Result<Pending<T>, CommandError> + Send + 'static,
    ) -> Reconnecting<T> {
        let added = channel.to_owned();
        let add = move |client: &Client| add(client, &added);
        self.add(Box::new(add), Some(channel.to_owned()))
    }

    fn add<T: Resource + 'static>(
        &mut self,
        add: Add<T>,
        channel: Option<String>,
    ) -> Reconnecting<T> {
        let (handle, restorer) = Restorer::new(add, channel);
        self.resources.push(Box::new(restorer));
        handle
    }

    /// Runs one duty cycle with the time of the system clock. Returns the amount of work done.
    ///
    /// # Errors
    /// An attempt to connect failed for a reason that waiting does not remove ([`ConnectError::is_retryable`] is false): an
    /// option of the builder is invalid, the driver's files have another version or are damaged, or this process may not open
    /// them. The [`state`](Self::state) has the same error. The next attempt, with a new builder, begins a second later, for
    /// applications that go on calling.
    pub fn invoke(&mut self) -> Result<usize, ConnectError> {
        let now = self.clock.now();
        self.do_work(now)
    }

    /// Like [`invoke`](Self::invoke), with a time that the caller provides: for simulations.
    ///
    /// # Errors
    /// As [`invoke`](Self::invoke).
    pub fn do_work(&mut self, now: Now) -> Result<usize, ConnectError> {
        self.resources.retain(|resource| !resource.is_dropped());
        let mut work = self.advance_link(now)?;
        if let Link::Up { client, .. } = &self.link {
            for resource in &mut self.resources {
                work += resource.do_work(client, now);
            }
        }
        Ok(work)
    }

    fn advance_link(&mut self, now: Now) -> Result<usize, ConnectError> {
        match &mut self.link {
            Link::Down { next_attempt_ns } if now.nanos < *next_attempt_ns => Ok(0),
            Link::Down { .. } => {
                let attempt = Box::new((self.builder)().connecting());
                self.link = Link::Connecting {
                    attempt,
                    next_check_ns: now.nanos,
                };
                self.advance_link(now)
            }
            Link::Connecting { next_check_ns, .. } if now.nanos < *next_check_ns => Ok(0),
            Link::Connecting {
                attempt,
                next_check_ns,
            } => match attempt.poll(now) {
                Ok(Progress::Wait(pause)) => {
                    *next_check_ns = now.nanos.saturating_add(saturating_nanos(pause));
                    Ok(0)
                }
                Ok(Progress::Connected(client)) => {
                    let heartbeat = (client.core().driver_heartbeat_ms(), now.nanos);
                    self.link = Link::Up { client, heartbeat };
                    self.state = ConnectionState::Connected;
                    Ok(1)
                }
                Err(error) => {
                    event!(info, "connecting failed; trying again", error = error);
                    self.link = Link::Down {
                        next_attempt_ns: now.nanos.saturating_add(RETRY_NS),
                    };
                    if let ConnectionState::Reconnecting { failure, .. } = &mut self.state {
                        *failure = Some(error.clone());
                    }
                    if error.is_retryable() {
                        Ok(1)
                    } else {
                        Err(error)
                    }
                }
            },
            Link::Up { client, heartbeat } => {
                let mut work = 0;
                if client.core().is_invoked() {
                    work += client.do_work(now);
                }
                if let Some(reason) = client.close_reason() {
                    event!(warn, "reconnecting", reason = reason);
                    self.state = ConnectionState::Reconnecting {
                        lost: reason.lost(),
                        failure: None,
                    };
                    self.link = Link::Down {
                        next_attempt_ns: now.nanos,
                    };
                    for resource in &mut self.resources {
                        resource.on_lost();
                    }
                    return Ok(work + 1);
                }
                let current = client.core().driver_heartbeat_ms();
                if current != heartbeat.0 {
                    *heartbeat = (current, now.nanos);
                }
                let silence = now.nanos.saturating_sub(heartbeat.1).max(0);
                let is_suspect = silence >= saturating_nanos(self.suspect_after);
                if is_suspect && self.state == ConnectionState::Connected {
                    event!(
                        warn,
                        "no heartbeat of the media driver",
                        silence_ns = silence
                    );
                }
                self.state = if is_suspect {
                    ConnectionState::Suspect {
                        silence: Duration::from_nanos(silence.unsigned_abs()),
                    }
                } else {
                    ConnectionState::Connected
                };
                Ok(work)
            }
        }
    }
}
