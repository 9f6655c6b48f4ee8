// SPDX-License-Identifier: Apache-2.0
//! One side of a benchmark: a client, and an embedded driver unless a running one is used.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taran::{Client, ExclusivePublication, Pending, Subscription};
use taran_core::affinity;
use taran_driver::{DriverContext, MediaDriver};

use crate::client_idle::ClientIdle;

/// Driver duty cycles per duty cycle of an invoked client. The client has only a few timers and rarely receives
/// responses.
const DRIVER_CYCLES_PER_CLIENT_CYCLE: u32 = 64;

/// Reason why a benchmark could not run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// An option or the setup is invalid.
    #[error("{0}")]
    Config(String),
    /// The embedded driver did not start.
    #[error("embedded driver: {0}")]
    Driver(#[from] taran_driver::DriverError),
    /// The client could not connect to the driver.
    #[error(transparent)]
    Connect(#[from] taran::ConnectError),
    /// The driver rejected a publication or subscription.
    #[error(transparent)]
    Add(#[from] taran::CommandError),
    /// A send failed permanently.
    #[error("sending: {0}")]
    Offer(#[from] taran::OfferError),
    /// A poll failed permanently.
    #[error("receiving: {0}")]
    Poll(#[from] taran::PollError),
    /// An expected event did not occur in time.
    #[error(
        "timed out after {0:?} waiting for {1}; 'taran errors' on the machines of both sides shows what prevents it"
    )]
    TimedOut(Duration, &'static str),
    /// Another implementation's client or driver failed.
    #[error("{0}")]
    Peer(String),
    /// The stop flag was set.
    #[error("interrupted")]
    Interrupted,
}

/// Configuration of a side.
#[derive(Debug, Clone)]
pub struct SideSpec {
    /// Directory of a running driver; `None` embeds one.
    pub aeron_dir: Option<PathBuf>,
    /// Threading mode of an embedded driver. `INVOKER` runs driver, client and benchmark on the calling thread.
    pub threading: String,
    /// Options of an embedded driver: name and value.
    pub driver_options: Vec<(String, String)>,
    /// Launches an embedded driver.
    pub launch_driver: LaunchDriver,
    /// Core of the calling thread and of the threads that it starts.
    pub cpu: Option<usize>,
    /// Idle strategy of the calling thread; not used with threading mode `INVOKER`, whose duty cycles replace it.
    pub idle: ClientIdle,
    /// Set to end the side early.
    pub stop: Arc<AtomicBool>,
}

/// A driver in this process, closed when dropped. With threading mode `INVOKER` it runs in [`Self::invoke`].
pub trait EmbeddedDriver: fmt::Debug + Send {
    /// Returns its Aeron directory.
    fn aeron_dir(&self) -> &Path;

    /// Runs one duty cycle of all its agents if its threading mode is `INVOKER`.
    ///
    /// # Errors
    /// [`RunError::Peer`] if the driver has failed.
    fn invoke(&mut self) -> Result<(), RunError>;
}

/// Launches an embedded driver with the threading mode and the options of a side.
pub type LaunchDriver = fn(&SideSpec) -> Result<Box<dyn EmbeddedDriver>, RunError>;

impl EmbeddedDriver for MediaDriver {
    fn aeron_dir(&self) -> &Path {
        MediaDriver::aeron_dir(self)
    }

    fn invoke(&mut self) -> Result<(), RunError> {
        MediaDriver::invoke(self);
        Ok(())
    }
}

/// A client and its embedded driver, closed in this order when dropped.
#[derive(Debug)]
pub struct Side {
    client: Client,
    driver: Option<Box<dyn EmbeddedDriver>>,
    is_invoked: bool,
    idle: ClientIdle,
    cycles: u32,
    stop: Arc<AtomicBool>,
}

impl Side {
    /// Pins the calling thread, launches the driver and connects the client.
    ///
    /// # Errors
    /// [`RunError`] if the core, an option, the driver or the connection fails.
    pub fn start(spec: &SideSpec) -> Result<Side, RunError> {
        if let Some(cpu) = spec.cpu {
            affinity::pin_current_thread(cpu)
                .map_err(|error| RunError::Config(error.to_string()))?;
        }
        let driver = match &spec.aeron_dir {
            Some(_) => None,
            None => Some((spec.launch_driver)(spec)?),
        };
        let is_invoked = driver.is_some() && spec.threading == "INVOKER";
        let builder = match (&spec.aeron_dir, &driver) {
            (Some(dir), _) => Client::builder().aeron_dir(dir),
            (None, Some(driver)) => Client::builder().aeron_dir(driver.aeron_dir()),
            (None, None) => Client::builder(),
        };
        let client = builder
            .invoker(is_invoked)
            .on_waiting(|notice| eprintln!("{notice}"))
            .connect()?;
        Ok(Side {
            client,
            driver,
            is_invoked,
            idle: spec.idle,
            cycles: 0,
            stop: Arc::clone(&spec.stop),
        })
    }

    /// Returns the driver's directory.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        self.client.aeron_dir()
    }

    /// Returns the client.
    #[must_use]
    pub fn client(&self) -> &Client {
        &self.client
    }

    /// Returns true if driver and client run in [`Self::duty_cycle`].
    #[must_use]
    pub fn is_invoked(&self) -> bool {
        self.is_invoked
    }

    /// Runs one duty cycle of everything that the calling thread invokes besides the benchmark. If driver and client
    /// have their own threads, it idles as configured instead.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] once the stop flag is set.
    #[inline]
    pub fn duty_cycle(&mut self) -> Result<(), RunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        if !self.is_invoked {
            self.idle.idle();
            return Ok(());
        }
        if let Some(driver) = &mut self.driver {
            driver.invoke()?;
        }
        self.cycles += 1;
        if self.cycles >= DRIVER_CYCLES_PER_CLIENT_CYCLE {
            self.cycles = 0;
            self.client.invoke();
        }
        Ok(())
    }

    /// Adds a subscription while the driver keeps running.
    ///
    /// # Errors
    /// The error of the client.
    pub fn add_subscription(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Subscription, RunError> {
        let pending = self.client.async_add_subscription(channel, stream_id)?;
        self.resolve(pending)
    }

    /// Adds an exclusive publication while the driver keeps running.
    ///
    /// # Errors
    /// The error of the client.
    pub fn add_exclusive_publication(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<ExclusivePublication, RunError> {
        let pending = self
            .client
            .async_add_exclusive_publication(channel, stream_id)?;
        self.resolve(pending)
    }

    /// Adds an exclusive publication for each stream, with many requests outstanding.
    ///
    /// # Errors
    /// The error of the client.
    pub fn add_exclusive_publications(
        &mut self,
        channel: &str,
        stream_ids: &[i32],
    ) -> Result<Vec<ExclusivePublication>, RunError> {
        /// Requests that fit into a driver's command buffer in any case.
        const MAX_OUTSTANDING: usize = 256;
        let mut publications = Vec::with_capacity(stream_ids.len());
        for stream_ids in stream_ids.chunks(MAX_OUTSTANDING) {
            let mut pending = Vec::with_capacity(MAX_OUTSTANDING);
            for stream_id in stream_ids {
                let client = &mut self.client;
                pending.push(client.async_add_exclusive_publication(channel, *stream_id)?);
            }
            for pending in pending {
                publications.push(self.resolve(pending)?);
            }
        }
        Ok(publications)
    }

    /// Waits for a registration. The client reports a timeout if the driver does not respond.
    fn resolve<T>(&mut self, mut pending: Pending<T>) -> Result<T, RunError> {
        loop {
            if let Some(result) = pending.poll() {
                return result.map_err(RunError::from);
            }
            self.duty_cycle()?;
            if self.is_invoked {
                self.client.invoke();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Launches a Taran driver.
///
/// # Errors
/// [`RunError::Driver`] if the driver does not start.
pub fn launch_embedded(spec: &SideSpec) -> Result<Box<dyn EmbeddedDriver>, RunError> {
    let context = spec
        .driver_options
        .iter()
        .fold(DriverContext::new(), |context, (name, value)| {
            context.option(name, value)
        })
        .option("aeron.threading.mode", &spec.threading);
    Ok(Box::new(MediaDriver::launch_embedded(context)?))
}
