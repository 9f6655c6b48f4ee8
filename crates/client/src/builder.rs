// SPDX-License-Identifier: Apache-2.0
//! Configuration of a client: options and handlers.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use taran_core::clock::{Clock, SystemClock};
use taran_core::counters::CountersReader;
use taran_core::debugger;
use taran_core::directory::default_directory;
use taran_core::idle::IdleStrategy;
use taran_core::memory::{FileStorage, Storage};
use taran_protocol::counter::CLIENT_NAME_MAX_LENGTH;
use taran_protocol::option::{OptionSet, Source, parse_properties};

use crate::client::Client;
use crate::client_core::{DriverInvoker, InvokerClock, Settings};
use crate::client_state::CloseReason;
use crate::connect::{Connecting, DriverView, WaitingForDriver};
use crate::error::{ClientError, ConnectError};
use crate::handlers::{HandlerSet, Handlers, PublicationError};
use crate::image::ImageView;

/// Default keepalive interval.
const DEFAULT_KEEPALIVE: Duration = Duration::from_millis(500);

/// Configuration of a client: how to connect to a media driver, and which handlers to call.
///
/// Every option has a default. [`Client::builder`] reads the environment (`AERON_DIR`, `AERON_DRIVER_TIMEOUT`,
/// `AERON_CLIENT_NAME`, …); [`properties_file`](Self::properties_file) and [`property`](Self::property) read properties
/// (`aeron.dir`, …); the methods below override both. The precedence does not depend on the order of the calls. An
/// invalid value is an error of [`connect`](Self::connect).
///
/// Handlers run on the client conductor: on its own thread, or on the thread that [invokes](Self::invoker) it. They may
/// use the client and close resources, but they cannot wait for the driver; they use the `async_` methods instead. A
/// handler that owns a clone of the [`Client`] keeps the client from being closed by drop.
///
/// ```no_run
/// use std::time::Duration;
///
/// # fn main() -> Result<(), taran::ConnectError> {
/// let client = taran::Client::builder()
///     .aeron_dir("/dev/shm/my-driver")
///     .driver_timeout(Duration::from_secs(2))
///     .client_name("pricing")
///     .on_error(|error| eprintln!("{error}"))
///     .connect()?;
/// # Ok(())
/// # }
/// ```
#[doc(alias = "aeron_context_t")]
pub struct ClientBuilder {
    options: OptionSet,
    /// Errors of the options.
    option_errors: Vec<String>,
    /// Environment variables that look like misspelt options; reported to the error handler after connecting.
    pub(crate) unknown_variables: Vec<String>,
    aeron_dir: Option<PathBuf>,
    driver_timeout: Option<Duration>,
    keepalive: Duration,
    inter_service_timeout: Option<Duration>,
    idle_sleep: Option<Duration>,
    resource_linger: Option<Duration>,
    close_linger: Option<Duration>,
    pre_touch: Option<bool>,
    client_name: Option<String>,
    /// Name of a client without a configured name.
    process_name: String,
    pub(crate) invoked: bool,
    pub(crate) cpu: Option<usize>,
    pub(crate) idle: Option<Box<dyn IdleStrategy>>,
    pub(crate) driver_invoker: Option<DriverInvoker>,
    pub(crate) storage: Arc<dyn Storage>,
    clock: InvokerClock,
    pub(crate) handlers: HandlerSet,
}

impl std::fmt::Debug for ClientBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClientBuilder")
            .field("aeron_dir", &self.directory())
            .field("driver_timeout", &self.timeout())
            .field("invoked", &self.invoked)
            .finish_non_exhaustive()
    }
}

impl ClientBuilder {
    pub(crate) fn from_environment() -> Self {
        // Not `vars`, which panics at a variable that is not UTF-8. Such a variable is not an option.
        let environment = std::env::vars_os().filter_map(|(name, value)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        });
        let mut builder = Self::with_environment(environment);
        builder.process_name = process_name();
        builder
    }

    /// Creates a builder with the defaults and the options set in `variables`, in place of the environment. The client
    /// has no name unless one is set.
    pub fn with_environment<N: AsRef<str>, V: AsRef<str>>(
        variables: impl IntoIterator<Item = (N, V)>,
    ) -> Self {
        let builder = Self {
            options: OptionSet::client(),
            option_errors: Vec::new(),
            unknown_variables: Vec::new(),
            aeron_dir: None,
            driver_timeout: None,
            keepalive: DEFAULT_KEEPALIVE,
            inter_service_timeout: None,
            idle_sleep: None,
            resource_linger: None,
            close_linger: None,
            pre_touch: None,
            client_name: None,
            process_name: String::new(),
            invoked: false,
            cpu: None,
            idle: None,
            driver_invoker: None,
            storage: Arc::new(FileStorage),
            clock: InvokerClock::System(SystemClock::new()),
            handlers: HandlerSet::default(),
        };
        builder.apply(&Source::Environment, variables)
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
                    // The variable may be meant for another program, so it is not an error.
                    self.unknown_variables.extend(unknown);
                } else {
                    self.option_errors.extend(unknown);
                }
            }
            Err(errors) => self.option_errors.push(errors.to_string()),
        }
        self
    }

    /// Reads the properties of a file (`aeron.dir=/dev/shm/x`, one per line).
    #[must_use]
    pub fn properties_file(mut self, path: impl AsRef<Path>) -> Self {
        let path = path.as_ref();
        let read = std::fs::read_to_string(path).map_err(|error| error.to_string());
        match read.and_then(|text| parse_properties(&text).map_err(|error| error.to_string())) {
            Ok(properties) => self.apply(&Source::File(path.to_path_buf()), properties),
            Err(error) => {
                self.option_errors
                    .push(format!("{}: {error}", path.display()));
                self
            }
        }
    }

    /// Sets one property, like `-Dname=value` on a command line.
    #[must_use]
    pub fn property(self, name: impl AsRef<str>, value: impl AsRef<str>) -> Self {
        self.apply(&Source::CommandLine, [(name, value)])
    }

    // --- options ---

    /// Sets the directory of the driver. Default: `AERON_DIR`, else `/dev/shm/aeron-<user>`.
    #[must_use]
    pub fn aeron_dir(mut self, directory: impl Into<PathBuf>) -> Self {
        self.aeron_dir = Some(directory.into());
        self
    }

    /// Sets the driver timeout: the maximum time to wait for a driver when connecting, for the response to a command,
    /// and between two heartbeats of the driver before it is considered dead. Default: `AERON_DRIVER_TIMEOUT`, else 10
    /// s.
    #[must_use]
    pub fn driver_timeout(mut self, timeout: Duration) -> Self {
        self.driver_timeout = Some(timeout);
        self
    }

    /// Sets the interval at which the client updates its heartbeat and checks the driver's. Default: 500 ms. Must be
    /// less than the driver's client liveness timeout.
    #[must_use]
    pub fn keepalive_interval(mut self, interval: Duration) -> Self {
        self.keepalive = interval;
        self
    }

    /// Sets the maximum time between two duty cycles of the client conductor. After a longer pause the client is
    /// [lost](crate::Lost::ServiceInterval), because the driver may have timed it out. Default: the driver's client
    /// liveness timeout.
    #[must_use]
    pub fn inter_service_timeout(mut self, timeout: Duration) -> Self {
        self.inter_service_timeout = Some(timeout);
        self
    }

    /// Sets the maximum sleep of an idle client conductor's thread, which is also the maximum delay until a new image
    /// is noticed. Default: `AERON_CLIENT_IDLE_SLEEP_DURATION`, else 16 ms. While a response of the driver is awaited
    /// the thread sleeps for at most 100 µs.
    #[must_use]
    pub fn idle_sleep(mut self, max: Duration) -> Self {
        self.idle_sleep = Some(max);
        self
    }

    /// Sets how long the log of a closed publication or ended image stays mapped. After that time the client conductor
    /// unmaps it, which takes milliseconds for a long log. With 0, the thread that drops the last handle unmaps it. A
    /// log is never unmapped while a handle refers to it. Default: `AERON_CLIENT_RESOURCE_LINGER_DURATION`, else 3 s.
    #[must_use]
    pub fn resource_linger(mut self, time: Duration) -> Self {
        self.resource_linger = Some(time);
        self
    }

    /// Sets how long [`Client::close`] waits between closing all resources and notifying the driver. During this time
    /// other threads can commit their claims before the streams end. At most the driver's client liveness timeout.
    /// Default: `AERON_CLIENT_CLOSE_LINGER_DURATION`, else 0.
    #[must_use]
    pub fn close_linger(mut self, time: Duration) -> Self {
        self.close_linger = Some(time);
        self
    }

    /// Prefaults all pages of a log when it is mapped, so that offers and polls cause no page faults later. This allocates
    /// the whole log, also where the driver reserves its pages as the stream proceeds. Default:
    /// `AERON_CLIENT_PRE_TOUCH_MAPPED_MEMORY`, else false.
    #[must_use]
    pub fn pre_touch_mapped_memory(mut self, pre_touch: bool) -> Self {
        self.pre_touch = Some(pre_touch);
        self
    }

    /// Sets the name of the client that tools show, at most 100 characters. Default: `AERON_CLIENT_NAME`, else
    /// `program[pid]`; empty after [`with_environment`](Self::with_environment).
    #[must_use]
    pub fn client_name(mut self, name: impl Into<String>) -> Self {
        self.client_name = Some(name.into());
        self
    }

    /// Selects invoker mode: no thread is started, and the conductor runs when [`Client::invoke`] is called. Default:
    /// false.
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

    /// Sets the idle strategy of the client conductor's thread, in place of a back-off up to
    /// [`idle_sleep`](Self::idle_sleep). While a response of the driver is awaited, a park is limited to 100 µs.
    #[must_use]
    pub fn idle_strategy(mut self, idle: impl IdleStrategy + 'static) -> Self {
        self.idle = Some(Box::new(idle));
        self
    }

    /// Calls `invoke` while the client waits for a connection or a response: for a driver in invoker mode, which runs
    /// on the threads of the application. `invoke` returns the amount of work done.
    ///
    /// `invoke` must not block. A driver behind a mutex is invoked with `try_lock`, as below: with `lock`, an agent that
    /// runs on the driver's thread (`AgentPlacement::DriverThread`) would deadlock when it waits, because the duty cycle
    /// that runs the agent holds the mutex. Such an agent must not wait in any case (`add_` methods,
    /// [`Pending::wait`](crate::Pending::wait), `offer_until`): the driver does not run meanwhile, so a call that needs it
    /// fails when its time is up. The agent uses the `async_` methods and `offer`.
    ///
    /// ```
    /// use std::sync::{Arc, Mutex};
    /// use taran_driver::{DriverContext, MediaDriver, ThreadingMode};
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let driver = MediaDriver::launch_embedded(
    ///     DriverContext::new().threading_mode(ThreadingMode::Invoker),
    /// )?;
    /// let directory = driver.aeron_dir().to_path_buf();
    /// let driver = Arc::new(Mutex::new(driver));
    /// let invoked = Arc::clone(&driver);
    /// let client = taran::Client::builder()
    ///     .aeron_dir(directory)
    ///     .invoker(true)
    ///     .driver_invoker(move || invoked.try_lock().map_or(0, |mut driver| driver.invoke()))
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

    /// Sets the storage that holds the driver's files. Default: the file system. For simulations.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = storage;
        self
    }

    /// Sets the clock of [`Client::invoke`], which then takes a lock in each call. Default: the system clock. For tests.
    #[must_use]
    pub fn clock(mut self, clock: impl Clock + 'static) -> Self {
        self.clock = InvokerClock::Custom(Box::new(clock));
        self
    }

    // --- handlers ---

    /// Calls `handler` when a subscription without an [own handler](crate::ImageHandlers) has a new image.
    #[must_use]
    pub fn on_available_image(mut self, handler: impl FnMut(&ImageView) + Send + 'static) -> Self {
        self.handlers.available_image = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when an image of a subscription without an [own handler](crate::ImageHandlers) has become
    /// unavailable; not when the subscription or the client is closed.
    #[must_use]
    pub fn on_unavailable_image(
        mut self,
        handler: impl FnMut(&ImageView) + Send + 'static,
    ) -> Self {
        self.handlers.unavailable_image = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when a counter of any client was allocated. Its arguments are the counters, the registration id
    /// and the counter id.
    #[must_use]
    pub fn on_available_counter(
        mut self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Self {
        self.handlers.available_counter = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when a counter of any client is about to be freed. Its arguments are the counters, the
    /// registration id and the counter id.
    #[must_use]
    pub fn on_unavailable_counter(
        mut self,
        handler: impl FnMut(&CountersReader, i64, i32) + Send + 'static,
    ) -> Self {
        self.handlers.unavailable_counter = Some(Box::new(handler));
        self
    }

    /// Calls `handler` when a receiver has reported an error for a publication of this client, for instance that an
    /// image was rejected.
    #[must_use]
    pub fn on_publication_error(
        mut self,
        handler: impl FnMut(&PublicationError) + Send + 'static,
    ) -> Self {
        self.handlers.publication_error = Some(Box::new(handler));
        self
    }

    /// Calls `handler` for each error that no call returns. Default: prints a line to stderr.
    #[must_use]
    pub fn on_error(mut self, handler: impl FnMut(&ClientError) + Send + 'static) -> Self {
        self.handlers.error = Some(Box::new(handler));
        self
    }

    /// Calls `handler` once when the client is closed or lost. No handler runs after it.
    #[must_use]
    pub fn on_close(mut self, handler: impl FnMut(CloseReason) + Send + 'static) -> Self {
        self.handlers.close = Some(Box::new(handler));
        self
    }

    /// Calls `handler` once if connecting has found no running driver for a second; connecting continues. `Display` of the
    /// notice is a line for the user.
    ///
    /// Default: nothing, unlike [`on_error`](Self::on_error). To wait is not an error, and a program that connects again
    /// and again, as a [`ReconnectingClient`](crate::ReconnectingClient) does, would print a line with each attempt. If no
    /// driver starts in time, the error of `connect` says so.
    ///
    /// ```no_run
    /// # fn main() -> Result<(), taran::Error> {
    /// let client = taran::Client::builder()
    ///     .on_waiting(|notice| eprintln!("{notice}"))
    ///     .connect()?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn on_waiting(mut self, handler: impl FnOnce(&WaitingForDriver) + Send + 'static) -> Self {
        self.handlers.waiting = Some(Box::new(handler));
        self
    }

    // --- connecting ---

    /// Connects to the driver; waits up to the [driver timeout](Self::driver_timeout) for one to start.
    ///
    /// # Errors
    /// See [`ConnectError`]; each error text says what to do.
    pub fn connect(self) -> Result<Client, ConnectError> {
        self.connecting().wait()
    }

    /// Starts to connect without waiting: for simulations, where the caller provides the time.
    #[must_use]
    pub fn connecting(self) -> Connecting {
        Connecting::new(self)
    }

    /// Opens a read-only view of a driver without becoming its client: liveness, counters and errors. Does not wait for
    /// a driver.
    ///
    /// # Errors
    /// There is no `cnc.dat`, or it cannot be read.
    pub fn inspect_driver(&self) -> Result<DriverView, ConnectError> {
        DriverView::open(self)
    }

    /// Returns the options in force, given the driver's client liveness timeout.
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

    pub(crate) fn take_clock(&mut self) -> InvokerClock {
        std::mem::replace(&mut self.clock, InvokerClock::System(SystemClock::new()))
    }

    /// Returns the directory in force.
    pub(crate) fn directory(&self) -> PathBuf {
        match (&self.aeron_dir, self.options.dir()) {
            (Some(directory), _) => directory.clone(),
            (None, Some(directory)) => PathBuf::from(directory),
            (None, None) => default_directory(),
        }
    }

    /// Returns the driver timeout in force.
    pub(crate) fn timeout(&self) -> Duration {
        let from_options = Duration::from_millis(self.options.driver_timeout_ms().unsigned_abs());
        let debug_timeout = self.debug_timeout();
        debug_timeout.unwrap_or_else(|| self.driver_timeout.unwrap_or(from_options))
    }

    /// Returns the timeout that replaces all others while a debugger is attached to this process
    /// (`aeron.debug.timeout`).
    fn debug_timeout(&self) -> Option<Duration> {
        let timeout_ns = self.options.debug_timeout_ns()?;
        debugger::is_attached().then(|| Duration::from_nanos(timeout_ns.unsigned_abs()))
    }

    pub(crate) fn max_idle_sleep(&self) -> Duration {
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
            .unwrap_or(&self.process_name)
    }

    /// Checks the options that do not depend on the driver.
    pub(crate) fn check(&self) -> Result<(), ConnectError> {
        if !self.option_errors.is_empty() {
            return Err(ConnectError::Option(self.option_errors.join("\n")));
        }
        let length = self.name().chars().count();
        if length > CLIENT_NAME_MAX_LENGTH {
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

/// Returns `program[pid]` of this process; a long program name is truncated.
fn process_name() -> String {
    let program = std::env::args_os().next().unwrap_or_default();
    let program = Path::new(&program).file_name().unwrap_or_default();
    let suffix = format!("[{}]", std::process::id());
    let room = CLIENT_NAME_MAX_LENGTH - suffix.len();
    let program: String = program.to_string_lossy().chars().take(room).collect();
    program + &suffix
}
