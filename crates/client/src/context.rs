//! How to connect: directory, time limits, handlers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_core::debugger;
use taran_core::directory::default_directory;
use taran_core::idle::IdleStrategy;
use taran_core::memory::{FileStorage, Storage};
use taran_protocol::option::{OptionSet, Source, parse_properties};

use crate::client::Client;
use crate::connect::{Connecting, DriverView};
use crate::error::{ClientError, ConnectError};
use crate::handlers::{HandlerSet, Handlers, PublicationError};
use crate::image::ImageView;
use crate::life::ClientEnd;
use crate::link::{DriverInvoker, Settings};

/// Sign of life every so often, unless it is set otherwise.
const KEEPALIVE: Duration = Duration::from_millis(500);

/// How to connect to a media driver, and what to be told about.
///
/// Every option has a default. [`Context::new`] takes what the environment sets (`AERON_DIR`, `AERON_DRIVER_TIMEOUT`,
/// `AERON_CLIENT_NAME`, …), [`properties_file`](Self::properties_file) and [`property`](Self::property) take properties
/// (`aeron.dir`, …), and what is set by the methods below counts most, whatever the order of the calls. A bad value is
/// an error of [`connect`](Self::connect).
///
/// Handlers run on the client conductor: its own thread, or the thread that [invokes](Self::invoker) it. They may use
/// the client and close what they like, but they can not wait for the driver: use `async_` calls there. A handler that
/// owns a clone of the [`Client`] keeps it from being closed by drop.
///
/// ```no_run
/// use std::time::Duration;
///
/// # fn main() -> Result<(), taran::ConnectError> {
/// let client = taran::Context::new()
///     .aeron_dir("/dev/shm/my-driver")
///     .driver_timeout(Duration::from_secs(2))
///     .client_name("pricing")
///     .on_error(|error| eprintln!("{error}"))
///     .connect()?;
/// # Ok(())
/// # }
/// ```
pub struct Context {
    options: OptionSet,
    /// Why the options can not be used.
    refused: Vec<String>,
    /// What to tell the error handler once there is one.
    pub(crate) suspicious: Vec<String>,
    aeron_dir: Option<PathBuf>,
    driver_timeout: Option<Duration>,
    keepalive: Duration,
    inter_service_timeout: Option<Duration>,
    idle_sleep: Option<Duration>,
    resource_linger: Option<Duration>,
    close_linger: Option<Duration>,
    pre_touch: Option<bool>,
    client_name: Option<String>,
    pub(crate) invoked: bool,
    pub(crate) cpu: Option<usize>,
    pub(crate) idle: Option<Box<dyn IdleStrategy>>,
    pub(crate) driver_invoker: Option<DriverInvoker>,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) clock: Box<dyn Clock>,
    pub(crate) handlers: HandlerSet,
}

impl std::fmt::Debug for Context {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Context")
            .field("aeron_dir", &self.directory())
            .field("driver_timeout", &self.timeout())
            .field("invoked", &self.invoked)
            .finish_non_exhaustive()
    }
}

impl Default for Context {
    fn default() -> Self {
        Self::new()
    }
}

impl Context {
    /// The defaults, and what the environment sets.
    #[must_use]
    pub fn new() -> Self {
        // Not `vars`, which panics at a variable that is not UTF-8: such a one is not an option.
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        Self::with_environment(environment)
    }

    /// The defaults, and these variables in place of the environment.
    pub fn with_environment<N: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let context = Self {
            options: OptionSet::client(),
            refused: Vec::new(),
            suspicious: Vec::new(),
            aeron_dir: None,
            driver_timeout: None,
            keepalive: KEEPALIVE,
            inter_service_timeout: None,
            idle_sleep: None,
            resource_linger: None,
            close_linger: None,
            pre_touch: None,
            client_name: None,
            invoked: false,
            cpu: None,
            idle: None,
            driver_invoker: None,
            storage: Arc::new(FileStorage),
            clock: Box::new(SystemClock::new()),
            handlers: HandlerSet::default(),
        };
        context.apply(&Source::Environment, variables)
    }

    fn apply<N: AsRef<str>, V: AsRef<str>>(
        mut self,
        source: &Source,
        pairs: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        match self.options.apply(source, pairs) {
            Ok(unknown) => {
                let unknown = unknown.iter().map(ToString::to_string);
                if *source == Source::Environment {
                    // It may be meant for another program: no reason to stop.
                    self.suspicious.extend(unknown);
                } else {
                    self.refused.extend(unknown);
                }
            }
            Err(errors) => self.refused.push(errors.to_string()),
        }
        self
    }

    /// Takes the properties of a file (`aeron.dir=/dev/shm/x`, one per line).
    #[must_use]
    pub fn properties_file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
        match read.and_then(|text| parse_properties(&text).map_err(|error| error.to_string())) {
            Ok(properties) => self.apply(&Source::File(path.to_path_buf()), properties),
            Err(error) => {
                self.refused.push(format!("{}: {error}", path.display()));
                self
            }
        }
    }

    /// Takes one property, as `-Dname=value` on a command line does.
    #[must_use]
    pub fn property(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.apply(&Source::CommandLine, [(name, value)])
    }

    // --- options ---

    /// Directory of the driver. Default: `AERON_DIR`, else `/dev/shm/aeron-<user>`.
    #[must_use]
    pub fn aeron_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.aeron_dir = Some(directory.into());
        self
    }

    /// How long to wait for a driver when connecting, for an answer to a command, and after its last sign of life
    /// before the driver counts as dead. Default: `AERON_DRIVER_TIMEOUT`, else 10 s.
    #[must_use]
    pub fn driver_timeout(mut self, timeout: Duration) -> Self {
        self.driver_timeout = Some(timeout);
        self
    }

    /// How often the client shows a sign of life and looks for one of the driver. Default 500 ms; must be less than the
    /// driver's client liveness timeout.
    #[must_use]
    pub fn keepalive_interval(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// Longest time between two turns of the client conductor; after a longer one the client is lost, because the
    /// driver may have given it up. Default: the driver's client liveness timeout.
    #[must_use]
    pub fn inter_service_timeout(mut self, timeout: Duration) -> Self {
        self.inter_service_timeout = Some(timeout);
        self
    }

    /// Longest sleep of the client conductor's thread when it has nothing to do, and so the time until a new image is
    /// noticed. Default: `AERON_CLIENT_IDLE_SLEEP_DURATION`, else 16 ms. While an answer of the driver is awaited it
    /// sleeps for a fraction of a millisecond only.
    #[must_use]
    pub fn idle_sleep(mut self, longest: Duration) -> Self {
        self.idle_sleep = Some(longest);
        self
    }

    /// How long the log of a publication or image that was closed, or has ended, stays mapped. Then the client conductor
    /// unmaps it, so that it is not done by the thread that drops the last handle, which takes milliseconds for a long
    /// log. 0: it is. A log is never unmapped while there is a handle on it. Default:
    /// `AERON_CLIENT_RESOURCE_LINGER_DURATION`, else 3 s.
    #[must_use]
    pub fn resource_linger(mut self, time: Duration) -> Self {
        self.resource_linger = Some(time);
        self
    }

    /// How long closing the client waits, when everything made through it is closed and all handlers have run, before
    /// the driver is told: other threads have this time to commit what they have claimed before the streams end. At
    /// most the driver's client liveness timeout. Default: `AERON_CLIENT_CLOSE_LINGER_DURATION`, else 0.
    #[must_use]
    pub fn close_linger(mut self, time: Duration) -> Self {
        self.close_linger = Some(time);
        self
    }

    /// Maps all pages of a log when it is opened, so that no message meets a page fault later. Default:
    /// `AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY`, else false.
    #[must_use]
    pub fn pre_touch_mapped_memory(mut self, pre_touch: bool) -> Self {
        self.pre_touch = Some(pre_touch);
        self
    }

    /// Name of the client in tools, at most 100 characters. Default: `AERON_CLIENT_NAME`, else empty.
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Starts no thread: the conductor runs when [`Client::invoke`] is called. Default false.
    #[must_use]
    pub fn invoker(mut self, invoked: bool) -> Self {
        self.invoked = invoked;
        self
    }

    /// Pins the client conductor's thread to a CPU. Default: not pinned.
    #[must_use]
    pub fn conductor_cpu(mut self, cpu: usize) -> Self {
        self.cpu = Some(cpu);
        self
    }

    /// How the client conductor's thread waits when it has nothing to do, in place of sleeping up to
    /// [`idle_sleep`](Self::idle_sleep). While an answer is awaited a park is a fraction of a millisecond.
    #[must_use]
    pub fn idle_strategy(mut self, idle: impl IdleStrategy + 'static) -> Self {
        self.idle = Some(Box::new(idle));
        self
    }

    /// Calls `invoke` while the client waits, to connect or for an answer: for a driver that runs on the threads of the
    /// application. It returns the amount of work done.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use taran_driver::{DriverContext, MediaDriver};
    /// use taran_protocol::option::ThreadingMode;
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let driver = MediaDriver::launch_embedded(
    ///     DriverContext::new().threading_mode(ThreadingMode::Invoker),
    /// )?;
    /// let directory = driver.aeron_dir().to_path_buf();
    /// let driver = Arc::new(Mutex::new(driver));
    /// let invoked = Arc::clone(&driver);
    /// let client = taran::Context::new()
    ///     .aeron_dir(directory)
    ///     .invoker(true)
    ///     .driver_invoker(move || invoked.lock().unwrap().invoke())
    ///     .connect()?;
    /// let publication = client.add_publication("aeron:ipc", 1001)?;
    /// # drop(publication);
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn driver_invoker(mut self, invoke: impl FnMut() -> usize + Send + 'static) -> Self {
        self.driver_invoker = Some(Box::new(invoke));
        self
    }

    /// Where the files of the driver are; by default in the file system. For simulations.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = storage;
        self
    }

    /// The time that [`Client::invoke`] goes by; by default the system's. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = Box::new(clock);
        self
    }

    // --- handlers ---

    /// Calls `handler` when a subscription without handlers of its own has a new image.
    #[must_use]
    pub fn on_available_image(mut self, handler: impl FnMut(&ImageView) + Send + 'static) -> Self {
        self.handlers.available_image = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when an image of a subscription without handlers of its own has ended; not when the
    /// subscription or the client is closed.
    #[must_use]
    pub fn on_unavailable_image(
        mut self,
        handler: impl FnMut(&ImageView) + Send + 'static,
    ) -> Self {
        self.handlers.unavailable_image = Some(Box::new(handler));
        self
    }

    /// Calls `handler` with the counters, the registration id and the id when any client's counter is allocated.
    #[must_use]
    pub fn on_available_counter(
        mut self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Self {
        self.handlers.available_counter = Some(Box::new(handler));
        self
    }

    /// Calls `handler` with the counters, the registration id and the id when any client's counter is about to be
    /// freed.
    #[must_use]
    pub fn on_unavailable_counter(
        mut self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Self {
        self.handlers.unavailable_counter = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when a receiver complains about a publication of this client.
    #[must_use]
    pub fn on_publication_error(
        mut self,
        handler: impl FnMut(&PublicationError) + Send + 'static,
    ) -> Self {
        self.handlers.publication_error = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when something goes wrong that no call reports. Default: a line on stderr.
    #[must_use]
    pub fn on_error(mut self, handler: impl FnMut(&ClientError) + Send + 'static) -> Self {
        self.handlers.error = Some(Box::new(handler));
        self
    }

    /// Calls `handler` once, when the client has ended: closed by its owner, or lost. It is the last callback.
    #[must_use]
    pub fn on_close(mut self, handler: impl FnMut(ClientEnd) + Send + 'static) -> Self {
        self.handlers.close = Some(Box::new(handler));
        self
    }

    // --- connecting ---

    /// Connects; waits up to the driver timeout for a driver to appear.
    ///
    /// # Errors
    /// See [`ConnectError`]; the texts say what to do.
    pub fn connect(self) -> Result<Client, ConnectError> {
        self.connecting().wait()
    }

    /// Begins to connect without waiting: for simulations, where the caller provides the time.
    #[must_use]
    pub fn connecting(self) -> Connecting {
        Connecting::new(self)
    }

    /// Looks at the driver without connecting to it: whether it lives, its counters and errors. Does not wait for one.
    ///
    /// # Errors
    /// There is no file of a driver, or it can not be read.
    pub fn inspect_driver(&self) -> Result<DriverView, ConnectError> {
        DriverView::open(self)
    }

    /// The options as they are in force when the driver's client liveness timeout is known.
    pub(crate) fn settings(&self, client_liveness: Duration) -> Settings {
        Settings {
            directory: self.directory(),
            storage: Arc::clone(&self.storage),
            driver_timeout: self.timeout(),
            client_liveness,
            keepalive: self.keepalive,
            resource_linger: self.resource_linger_time(),
            close_linger: self.close_linger_time().min(client_liveness),
            inter_service: self
                .debug_timeout()
                .or(self.inter_service_timeout)
                .unwrap_or(client_liveness),
            pre_touch: self
                .pre_touch
                .unwrap_or(self.options.pre_touch_mapped_memory()),
            invoked: self.invoked,
            client_name: self.name().to_owned(),
        }
    }

    pub(crate) fn take_handlers(&mut self) -> Handlers {
        Handlers::new(std::mem::take(&mut self.handlers))
    }

    pub(crate) fn take_clock(&mut self) -> Box<dyn Clock> {
        std::mem::replace(&mut self.clock, Box::new(SystemClock::new()))
    }

    /// The directory in force.
    pub(crate) fn directory(&self) -> PathBuf {
        match (&self.aeron_dir, self.options.dir()) {
            (Some(directory), _) => directory.clone(),
            (None, Some(directory)) => PathBuf::from(directory),
            (None, None) => default_directory(),
        }
    }

    /// The driver timeout in force.
    pub(crate) fn timeout(&self) -> Duration {
        let from_options = Duration::from_millis(self.options.driver_timeout_ms().unsigned_abs());
        let patient = self.debug_timeout();
        patient.unwrap_or_else(|| self.driver_timeout.unwrap_or(from_options))
    }

    /// What replaces timeouts while a debugger stops this process and lets it go on (`aeron.debug.timeout`).
    fn debug_timeout(&self) -> Option<Duration> {
        let timeout_ns = self.options.debug_timeout_ns()?;
        debugger::is_attached().then(|| Duration::from_nanos(timeout_ns.unsigned_abs()))
    }

    pub(crate) fn longest_idle_sleep(&self) -> Duration {
        let from_options =
            Duration::from_nanos(self.options.client_idle_sleep_duration_ns().unsigned_abs());
        self.idle_sleep.unwrap_or(from_options)
    }

    fn resource_linger_time(&self) -> Duration {
        let from_options = self.options.client_resource_linger_duration_ns();
        self.resource_linger
            .unwrap_or(Duration::from_nanos(from_options.unsigned_abs()))
    }

    fn close_linger_time(&self) -> Duration {
        let from_options = self.options.client_close_linger_duration_ns();
        self.close_linger
            .unwrap_or(Duration::from_nanos(from_options.unsigned_abs()))
    }

    pub(crate) fn keepalive(&self) -> Duration {
        self.keepalive
    }

    fn name(&self) -> &str {
        self.client_name
            .as_deref()
            .or(self.options.client_name())
            .unwrap_or_default()
    }

    /// Refuses what can not work.
    pub(crate) fn check(&self) -> Result<(), ConnectError> {
        if !self.refused.is_empty() {
            return Err(ConnectError::Option(self.refused.join("\n")));
        }
        let length = self.name().chars().count();
        if length > taran_protocol::counter::CLIENT_NAME_MAX_LENGTH {
            return Err(ConnectError::Option(format!(
                "the client name (aeron.client.name) has {length} characters, at most 100 are possible"
            )));
        }
        if self.keepalive.is_zero() || self.timeout().is_zero() {
            return Err(ConnectError::Option(
                "keepalive interval and driver timeout (aeron.driver.timeout) must be more than 0"
                    .to_owned(),
            ));
        }
        Ok(())
    }
}
