//! One side of a benchmark: a client, and the driver below it where none is running.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use taran::{Client, Context, ExclusivePublication, Pending, Subscription};
use taran_core::affinity;
use taran_driver::{DriverContext, MediaDriver};

/// Turns of the driver between two turns of an invoked client: it has a few timers and rare news.
const TURNS_PER_CLIENT_TURN: u32 = 64;

/// Why a benchmark could not run.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// An option or the set-up is at fault.
    #[error("{0}")]
    Config(String),
    /// The embedded driver did not start.
    #[error("embedded driver: {0}")]
    Driver(#[from] taran_driver::DriverError),
    /// No connection to the driver.
    #[error(transparent)]
    Connect(#[from] taran::ConnectError),
    /// The driver refused a publication or subscription.
    #[error(transparent)]
    Add(#[from] taran::AddError),
    /// A send failed for good.
    #[error("sending: {0}")]
    Offer(#[from] taran::OfferError),
    /// A poll failed for good.
    #[error("receiving: {0}")]
    Poll(#[from] taran::PollError),
    /// Something that had to happen did not.
    #[error("waited {0:?} for {1}, in vain")]
    TimedOut(Duration, &'static str),
    /// Somebody else's client or driver failed.
    #[error("{0}")]
    Peer(String),
    /// Somebody raised the stop flag.
    #[error("interrupted")]
    Interrupted,
}

/// What a side is made of.
#[derive(Debug, Clone)]
pub struct SideSpec {
    /// Directory of a running driver; `None` embeds one.
    pub aeron_dir: Option<PathBuf>,
    /// Threading mode of an embedded driver. `INVOKER` runs driver, client and benchmark on the one calling thread.
    pub threading: String,
    /// Options of an embedded driver, by name.
    pub driver_options: Vec<(String, String)>,
    /// What makes an embedded driver.
    pub embed: Embed,
    /// Core of the calling thread, and of the threads that it starts.
    pub cpu: Option<usize>,
    /// Raised when the side shall end early.
    pub stop: Arc<AtomicBool>,
}

/// A driver that lives in this process until it is dropped. Where it has no threads of its own, it lives in its turns.
pub trait Embedded: fmt::Debug + Send {
    /// Where clients find it.
    fn aeron_dir(&self) -> &Path;

    /// One turn of all its agents, if it was started with the mode `INVOKER`.
    ///
    /// # Errors
    /// [`RunError::Peer`] where it cannot go on.
    fn invoke(&mut self) -> Result<(), RunError>;
}

/// Starts an embedded driver in the threading mode and with the options of a side.
pub type Embed = fn(&SideSpec) -> Result<Box<dyn Embedded>, RunError>;

impl Embedded for MediaDriver {
    fn aeron_dir(&self) -> &Path {
        MediaDriver::aeron_dir(self)
    }

    fn invoke(&mut self) -> Result<(), RunError> {
        MediaDriver::invoke(self);
        Ok(())
    }
}

/// A client, and the driver that it embeds. Closed in that order when dropped.
#[derive(Debug)]
pub struct Side {
    client: Client,
    driver: Option<Box<dyn Embedded>>,
    is_invoked: bool,
    turns: u32,
    stop: Arc<AtomicBool>,
}

impl Side {
    /// Pins the calling thread, starts the driver, connects.
    ///
    /// # Errors
    /// [`RunError`] where the core, an option, the driver or the connection is at fault.
    pub fn start(spec: &SideSpec) -> Result<Side, RunError> {
        if let Some(cpu) = spec.cpu {
            affinity::pin_current_thread(cpu)
                .map_err(|error| RunError::Config(error.to_string()))?;
        }
        let driver = match &spec.aeron_dir {
            Some(_) => None,
            None => Some((spec.embed)(spec)?),
        };
        let is_invoked = driver.is_some() && spec.threading == "INVOKER";
        let context = match (&spec.aeron_dir, &driver) {
            (Some(dir), _) => Context::new().aeron_dir(dir),
            (None, Some(driver)) => Context::new().aeron_dir(driver.aeron_dir()),
            (None, None) => Context::new(),
        };
        let client = context.invoker(is_invoked).connect()?;
        Ok(Side {
            client,
            driver,
            is_invoked,
            turns: 0,
            stop: Arc::clone(&spec.stop),
        })
    }

    /// The driver's directory.
    #[must_use]
    pub fn aeron_dir(&self) -> &Path {
        self.client.aeron_dir()
    }

    /// Whether driver and client run in [`Self::turn`].
    #[must_use]
    pub fn is_invoked(&self) -> bool {
        self.is_invoked
    }

    /// One turn of whatever the calling thread has to run besides the benchmark. Where driver and client have threads of
    /// their own, it offers them the core: they may well have no other.
    ///
    /// # Errors
    /// [`RunError::Interrupted`] once the stop flag is raised.
    #[inline]
    pub fn turn(&mut self) -> Result<(), RunError> {
        if self.stop.load(Ordering::Relaxed) {
            return Err(RunError::Interrupted);
        }
        if !self.is_invoked {
            std::thread::yield_now();
            return Ok(());
        }
        if let Some(driver) = &mut self.driver {
            driver.invoke()?;
        }
        self.turns += 1;
        if self.turns >= TURNS_PER_CLIENT_TURN {
            self.turns = 0;
            self.client.invoke();
        }
        Ok(())
    }

    /// Adds a subscription, while the driver runs on.
    ///
    /// # Errors
    /// As the client says.
    pub fn add_subscription(
        &mut self,
        channel: &str,
        stream_id: i32,
    ) -> Result<Subscription, RunError> {
        let pending = self.client.async_add_subscription(channel, stream_id)?;
        self.resolve(pending)
    }

    /// Adds an exclusive publication, while the driver runs on.
    ///
    /// # Errors
    /// As the client says.
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

    /// Adds an exclusive publication to each of these streams, many at a time.
    ///
    /// # Errors
    /// As the client says.
    pub fn add_exclusive_publications(
        &mut self,
        channel: &str,
        stream_ids: &[i32],
    ) -> Result<Vec<ExclusivePublication>, RunError> {
        /// As many as a driver's command buffer surely takes.
        const AT_ONCE: usize = 256;
        let mut publications = Vec::with_capacity(stream_ids.len());
        for stream_ids in stream_ids.chunks(AT_ONCE) {
            let mut pending = Vec::with_capacity(AT_ONCE);
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

    /// The client gives up by itself when the driver does not answer.
    fn resolve<T>(&mut self, mut pending: Pending<T>) -> Result<T, RunError> {
        loop {
            if let Some(result) = pending.poll() {
                return result.map_err(RunError::from);
            }
            self.turn()?;
            if self.is_invoked {
                self.client.invoke();
            } else {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
    }
}

/// Starts our own driver.
///
/// # Errors
/// [`RunError::Driver`] as the driver says.
pub fn embed(spec: &SideSpec) -> Result<Box<dyn Embedded>, RunError> {
    let context = spec
        .driver_options
        .iter()
        .fold(DriverContext::new(), |context, (name, value)| {
            context.option(name, value)
        })
        .option("aeron.threading.mode", &spec.threading);
    Ok(Box::new(MediaDriver::launch_embedded(context)?))
}
