// SPDX-License-Identifier: Apache-2.0
//! Configuration of the driver.

mod names;
mod print;
mod settings;
mod validate;

use std::fmt;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::{AgentEvent, AgentEventHandler, AgentStartHook};
use taran_core::clock::saturating_nanos;
use taran_core::memory::Storage;
use taran_net::Network;
use taran_protocol::option::{IdleRole, OptionErrors, OptionId, OptionSet, Source, ThreadingMode};

pub use names::{GossipSettings, NameSettings, TableRow};
pub(crate) use print::print_configuration;
pub use settings::{
    BufferSettings, CubicSettings, DirectorySettings, PublicationSettings, ReceiverSettings,
    Settings, SocketSettings, TimerSettings,
};
pub use validate::{Conflict, validate};
pub(crate) use validate::{shortfalls, validate_limits};

use crate::conductor::{FileWorker, NameResolver, TerminationHook, TerminationValidator};
use crate::congestion::{CongestionControl, CongestionControlSupplier, ImageParams};
use crate::diagnostics::{Diagnostic, DiagnosticSink};
use crate::error::DriverError;
use crate::event_log::EventLog;
use crate::sender::{FlowControl, FlowControlRequest, FlowControlSupplier};

/// Configuration of a driver.
///
/// ```
/// use std::time::Duration;
/// use taran_driver::{DriverContext, ThreadingMode};
///
/// let context = DriverContext::new()
///     .aeron_dir("/dev/shm/aeron-example")
///     .threading_mode(ThreadingMode::Shared)
///     .client_liveness_timeout(Duration::from_secs(5))
///     .option("aeron.term.buffer.length", "1m");
/// assert_eq!(context.options().term_buffer_length(), 1 << 20);
/// ```
///
/// Invalid values are reported when the driver is launched.
pub struct DriverContext {
    options: OptionSet,
    errors: Vec<DriverError>,
    pub(crate) network: Option<Box<dyn Network>>,
    pub(crate) storage: Option<Arc<dyn Storage>>,
    pub(crate) files: Option<Box<dyn FileWorker>>,
    /// Thread for the computations of handshakes.
    #[cfg(feature = "secure")]
    pub(crate) handshakes: Option<crate::secured::JobQueues>,
    pub(crate) resolver: Option<Box<dyn NameResolver>>,
    pub(crate) validator: Option<TerminationValidator>,
    pub(crate) hook: Option<TerminationHook>,
    pub(crate) flow_control: Option<FlowControlSupplier>,
    pub(crate) events: EventLog,
    pub(crate) congestion_control: Option<CongestionControlSupplier>,
    pub(crate) diagnostics: DiagnosticSink,
    pub(crate) agent_events: Option<AgentEventHandler>,
    pub(crate) start_hook: Option<AgentStartHook>,
    #[cfg(feature = "secure")]
    pub(crate) keys: Option<crate::secured::DriverKeys>,
}

impl DriverContext {
    /// Creates a context with the default options; the environment is ignored.
    #[must_use]
    pub fn new() -> Self {
        Self::from_options(OptionSet::driver())
    }

    /// Creates a context with the default options and those of the process's environment.
    ///
    /// # Errors
    /// Fails if a variable has an invalid value.
    pub fn from_environment() -> Result<Self, DriverError> {
        let mut options = OptionSet::driver();
        options
            .apply(&Source::Environment, std::env::vars())
            .map_err(DriverError::Options)?;
        Ok(Self::from_options(options))
    }

    /// Creates a context with the given options.
    #[must_use]
    pub fn from_options(options: OptionSet) -> Self {
        Self {
            options,
            errors: Vec::new(),
            network: None,
            storage: None,
            files: None,
            #[cfg(feature = "secure")]
            handshakes: None,
            resolver: None,
            validator: None,
            hook: None,
            flow_control: None,
            events: EventLog::off(),
            congestion_control: None,
            diagnostics: DiagnosticSink::default(),
            agent_events: None,
            start_hook: None,
            #[cfg(feature = "secure")]
            keys: None,
        }
    }

    /// Returns the current options.
    #[must_use]
    pub fn options(&self) -> &OptionSet {
        &self.options
    }

    /// Sets an option by its property or variable name.
    #[must_use]
    pub fn option(mut self, name: &str, value: impl fmt::Display) -> Self {
        match self
            .options
            .apply(&Source::Code, [(name, value.to_string())])
        {
            Ok(unknown) => self
                .errors
                .extend(unknown.into_iter().map(DriverError::UnknownOption)),
            Err(errors) => self.errors.push(DriverError::Options(errors)),
        }
        self
    }

    fn set(mut self, id: OptionId, value: impl fmt::Display) -> Self {
        if let Err(error) = self.options.set(id, &value.to_string(), &Source::Code) {
            self.errors
                .push(DriverError::Options(OptionErrors::from(error)));
        }
        self
    }

    fn set_duration(self, id: OptionId, value: Duration) -> Self {
        self.set(id, format_args!("{}ns", saturating_nanos(value)))
    }

    /// Sets the directory shared by driver and clients.
    #[must_use]
    pub fn aeron_dir(self, directory: impl AsRef<Path>) -> Self {
        self.set(OptionId::Dir, directory.as_ref().display())
    }

    /// Sets the threading mode: which agents share a thread.
    #[must_use]
    pub fn threading_mode(self, mode: ThreadingMode) -> Self {
        self.set(OptionId::ThreadingMode, mode.as_str())
    }

    /// Deletes the contents of the directory at start, without checking for a live driver.
    #[must_use]
    pub fn delete_dir_on_start(self, delete: bool) -> Self {
        self.set(OptionId::DirDeleteOnStart, delete)
    }

    /// Deletes the directory when the driver closes.
    #[must_use]
    pub fn delete_dir_on_shutdown(self, delete: bool) -> Self {
        self.set(OptionId::DirDeleteOnShutdown, delete)
    }

    /// Sets the time without a keepalive after which a client is removed.
    #[must_use]
    pub fn client_liveness_timeout(self, timeout: Duration) -> Self {
        self.set_duration(OptionId::ClientLivenessTimeout, timeout)
    }

    /// Sets the interval at which the conductor checks timeouts.
    #[must_use]
    pub fn timer_interval(self, interval: Duration) -> Self {
        self.set_duration(OptionId::TimerInterval, interval)
    }

    /// Sets the term length of network publications in bytes.
    #[must_use]
    pub fn term_buffer_length(self, bytes: usize) -> Self {
        self.set(OptionId::TermBufferLength, bytes)
    }

    /// Sets the term length of IPC publications in bytes.
    #[must_use]
    pub fn ipc_term_buffer_length(self, bytes: usize) -> Self {
        self.set(OptionId::IpcTermBufferLength, bytes)
    }

    /// Sets the network; default: the sockets of the operating system.
    #[must_use]
    pub fn network(mut self, network: impl Network + 'static) -> Self {
        self.network = Some(Box::new(network));
        self
    }

    /// Sets the storage of files; default: the file system.
    #[must_use]
    pub fn storage(mut self, storage: Arc<dyn Storage>) -> Self {
        self.storage = Some(storage);
        self
    }

    /// Sets the resolver of host names; default: the operating system.
    #[must_use]
    pub fn resolver(mut self, resolver: impl NameResolver + 'static) -> Self {
        self.resolver = Some(Box::new(resolver));
        self
    }

    /// Sets identity and trusted keys; default: those of `taran.secure.keys.dir`. They are used if `taran.secure.mode` is
    /// not `off`.
    #[cfg(feature = "secure")]
    #[must_use]
    pub fn keys(mut self, keys: crate::secured::DriverKeys) -> Self {
        self.keys = Some(keys);
        self
    }

    /// Sets a supplier of congestion control for images. If it returns `None`, the channel or
    /// `aeron.CongestionControl.supplier` decides.
    #[must_use]
    pub fn congestion_control(
        mut self,
        supplier: impl FnMut(&ImageParams<'_>) -> Option<Box<dyn CongestionControl>> + Send + 'static,
    ) -> Self {
        self.congestion_control = Some(CongestionControlSupplier(Box::new(supplier)));
        self
    }

    /// Sets the decision on clients' requests to terminate the driver; default: `aeron.driver.termination.validator`.
    #[must_use]
    pub fn termination_validator(
        mut self,
        validator: impl FnMut(&Path, &[u8]) -> bool + Send + 'static,
    ) -> Self {
        self.validator = Some(Box::new(validator));
        self
    }

    /// Sets a hook that the conductor calls when it accepted a termination request.
    #[must_use]
    pub fn termination_hook(mut self, hook: impl FnMut() + Send + 'static) -> Self {
        self.hook = Some(Box::new(hook));
        self
    }

    /// Sets a supplier of flow control for network publications. If it returns `None`, the options and the channel
    /// decide. It is called by the conductor and must not block.
    #[must_use]
    pub fn flow_control(
        mut self,
        supplier: impl FnMut(&FlowControlRequest<'_>) -> Option<Box<dyn FlowControl>> + Send + 'static,
    ) -> Self {
        self.flow_control = Some(Box::new(supplier));
        self
    }

    /// Sets a sink for warnings, errors and the printed configuration; default: standard output and standard error. With a
    /// sink the driver prints nothing, except an event log that is directed to standard output. (A panic is printed by
    /// the process's panic hook.)
    ///
    /// The sink is called on the thread where the diagnostic arises, possibly an agent's: it must neither block nor panic.
    /// An error that repeats is passed each time; those of the data path at most once a second for each channel. An error
    /// that the sink itself records ([`MediaDriver::errors`](crate::MediaDriver::errors)) is logged and counted, but not
    /// passed to it.
    ///
    /// ```
    /// use taran_driver::{Diagnostic, DriverContext};
    ///
    /// let context = DriverContext::new().on_diagnostic(|diagnostic| match diagnostic {
    ///     Diagnostic::Warning(warning) => println!("my log: {warning}"),
    ///     Diagnostic::Error(error) => println!("my log: {error}"),
    ///     _ => {}
    /// });
    /// # drop(context);
    /// ```
    #[must_use]
    #[doc(alias = "errorHandler")]
    pub fn on_diagnostic(mut self, sink: impl Fn(&Diagnostic<'_>) + Send + Sync + 'static) -> Self {
        self.diagnostics = DiagnosticSink::new(sink);
        self
    }

    /// Sets a handler that is told when an agent, of the driver or added by
    /// [`MediaDriver::add_agent`](crate::MediaDriver::add_agent), ends by itself, panics or cannot be pinned to its CPU. It
    /// is called on the agent's thread, before the agent is closed, and must not block.
    #[must_use]
    pub fn on_agent_event(mut self, handler: impl Fn(&AgentEvent) + Send + Sync + 'static) -> Self {
        self.agent_events = Some(AgentEventHandler::new(handler));
        self
    }

    /// Sets a hook that each thread of the driver calls before its agents start, with their role name, e.g.
    /// `[sender, receiver]`: to set priorities or a scheduling class. In `INVOKER` mode that is the thread that first
    /// invokes the driver.
    #[must_use]
    #[doc(alias = "agent_on_start_function")]
    pub fn on_agent_start(mut self, hook: impl Fn(&str) + Send + Sync + 'static) -> Self {
        self.start_hook = Some(Arc::new(hook));
        self
    }

    /// Uses `aeron.debug.timeout` for a process under a debugger.
    pub(crate) fn use_debug_timeout(&mut self) {
        self.options.use_debug_timeout();
    }

    /// Returns the settings, or the first error.
    pub(crate) fn build_settings(&mut self) -> Result<Settings, DriverError> {
        if !self.errors.is_empty() {
            return Err(self.errors.remove(0));
        }
        let conflicts = validate(&self.options);
        if !conflicts.is_empty() {
            return Err(DriverError::Conflicts(conflicts));
        }
        for role in [
            IdleRole::Conductor,
            IdleRole::Sender,
            IdleRole::Receiver,
            IdleRole::SharedNetwork,
            IdleRole::Shared,
        ] {
            self.options.idle(role)?;
        }
        Ok(Settings::from_options(&self.options))
    }
}

impl Default for DriverContext {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for DriverContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverContext")
            .field("options", &self.options)
            .field("errors", &self.errors)
            .finish_non_exhaustive()
    }
}
