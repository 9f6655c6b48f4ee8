// SPDX-License-Identifier: Apache-2.0
//! Construction of the three agents of a driver.

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::DutyCycleTracker;
use taran_core::clock::{Now, WallClock};
use taran_core::counters::{Counter, CountersReader};
use taran_core::error_log::{ErrorHandler, ErrorLog};
use taran_core::loss_report::LossReport;
use taran_core::memory::Storage;
use taran_core::queue;
use taran_net::{AgentRole, BufferLimits, LayeredNetwork, Network, NetworkLayer};
use taran_protocol::counter::{SystemCounter, SystemLabels};
use taran_protocol::option::OptionSet;

use super::cnc_file::{AERON_VERSION, Files};
use super::directory;
use super::names::{self, NamesSpec};
use super::security;
use crate::boundary::{ReceiverCounters, SenderCounters};
use crate::conductor::{
    Conductor, ConductorSpec, ConductorStateSpec, Counters, InlineFileWorker, NameResolver,
};
use crate::context::{DriverContext, shortfalls, validate_limits};
use crate::diagnostics::{DiagnosticSink, DriverWarning};
use crate::error::DriverError;
use crate::event_log::{EventLog, FrameLog};
use crate::interceptors::Interceptors;
use crate::receiver::{Receiver, ReceiverSpec};
#[cfg(feature = "secure")]
use crate::secured::{KeyDirectory, SecurityControl};
use crate::sender::{Sender, SenderSpec};

/// Commit text for the system counter labels: the commit of the official release whose behaviour this driver
/// implements, for programs that compare it with their own, followed by the version of this driver.
const BUILD: &str = concat!("9773cba37e taran=", env!("CARGO_PKG_VERSION"));

/// Capacity of a command queue; further commands wait in the conductor.
const COMMAND_QUEUE: usize = 256;
/// Capacity of an event queue; further events wait in their agent or are repeated.
const EVENT_QUEUE: usize = 256;

/// Platform of a driver: everything that it takes from the outside.
#[derive(Debug)]
#[non_exhaustive]
pub struct Environment {
    /// Storage of files.
    pub storage: Arc<dyn Storage>,
    /// Network for datagrams.
    pub network: Box<dyn Network>,
    /// Resolver of host names.
    pub resolver: Box<dyn NameResolver>,
    /// Seed of all random values: session ids, term ids, receiver ids, delays.
    pub seed: u64,
    /// Time at the start.
    pub now: Now,
    /// Wall clock for timestamps in messages.
    pub wall_clock: Arc<dyn WallClock>,
    /// Process id in `cnc.dat`.
    pub pid: i64,
}

impl Environment {
    /// Creates the platform of a driver, with the id of this process. `seed` differs from driver to driver: session ids and
    /// receiver ids come from it.
    pub fn new(
        storage: Arc<dyn Storage>,
        network: Box<dyn Network>,
        resolver: Box<dyn NameResolver>,
        wall_clock: Arc<dyn WallClock>,
        now: Now,
        seed: u64,
    ) -> Self {
        Self {
            storage,
            network,
            resolver,
            seed,
            now,
            wall_clock,
            pid: i64::from(std::process::id()),
        }
    }

    /// Sets the process id in `cnc.dat`.
    #[must_use]
    pub fn with_pid(self, pid: i64) -> Self {
        Self { pid, ..self }
    }
}

/// Agents of a driver, which the caller runs: on threads, or one after the other in virtual time.
///
/// Contract: call `do_work` of each agent as often as possible, in any order, with a time that never goes back; call
/// `on_close` of the conductor last.
#[derive(Debug)]
#[non_exhaustive]
pub struct DriverParts {
    /// Conductor: manages publications, subscriptions and images.
    pub conductor: Conductor,
    /// Sender: from term buffers to the network.
    pub sender: Sender,
    /// Receiver: from the network to term buffers.
    pub receiver: Receiver,
    /// Reader of all counters.
    pub counters: CountersReader,
    /// Log of errors.
    pub errors: ErrorHandler,
    /// Warnings for the operator; none of them prevents the start.
    pub warnings: Vec<DriverWarning>,
    pub(crate) idle_status: Counter,
    /// Handle to the keys of a driver with transport security, and the directory of its keys unless the program set them.
    #[cfg(feature = "secure")]
    pub security: Option<(SecurityControl, Option<KeyDirectory>)>,
}

impl DriverParts {
    /// Creates the directory and files of a driver, and its agents.
    ///
    /// # Errors
    /// Fails for invalid options, if a live driver owns the directory, and if space or permission for its files is
    /// missing.
    pub fn build(
        mut context: DriverContext,
        environment: Environment,
    ) -> Result<Self, DriverError> {
        let settings = context.build_settings()?;
        let Environment {
            storage,
            network,
            resolver,
            seed,
            now,
            wall_clock,
            pid,
        } = environment;
        let interceptors = Interceptors::from_options(context.options())
            .map_err(|conflict| DriverError::Conflicts(vec![conflict]))?;
        let events = context.events.clone();
        let mut network = network;
        let limits = default_limits(network.as_mut(), settings.sockets.backend.as_deref())?;
        let conflicts = validate_limits(context.options(), &limits);
        if !conflicts.is_empty() {
            return Err(DriverError::Conflicts(conflicts));
        }
        let mut warnings = shortfalls(context.options(), &limits);
        let saved = directory::prepare(storage.as_ref(), &settings.directory, now.epoch_millis)?;
        warnings.extend(saved.map(|saved| DriverWarning::PreviousErrors {
            directory: settings.directory.path.clone(),
            distinct: saved.distinct,
            file: saved.file,
        }));
        let files = Files::create(&storage, &settings, now, pid)?;
        let labels = SystemLabels {
            version: &AERON_VERSION.to_string(),
            commit: BUILD,
            driver_name: settings.names.driver_name.as_deref(),
            threading_mode: context.options().threading_mode_name(),
            conductor_threshold_ns: settings.timers.cycle_thresholds_ns[0],
            sender_threshold_ns: settings.timers.cycle_thresholds_ns[1],
            receiver_threshold_ns: settings.timers.cycle_thresholds_ns[2],
            resolver_threshold_ns: settings.timers.name_resolver_threshold_ns,
        };
        let (counters, system) = files.counters(&settings, &labels, now)?;
        let errors = error_handler(
            &context.diagnostics,
            context.options().fallback_logger(),
            ErrorLog::open(files.cnc.error_log.clone()),
            system.get(SystemCounter::Errors).clone(),
        );
        let cycle = |max: SystemCounter, exceeded: SystemCounter, threshold_ns: i64| {
            DutyCycleTracker::new(
                system.get(max).clone(),
                system.get(exceeded).clone(),
                nanos(threshold_ns),
            )
        };
        let [_, sender_threshold_ns, receiver_threshold_ns] = settings.timers.cycle_thresholds_ns;
        let (sender_commands, to_sender) = queue::spsc(COMMAND_QUEUE);
        let (receiver_commands, to_receiver) = queue::spsc(COMMAND_QUEUE);
        let (from_sender, sender_events) = queue::spsc(EVENT_QUEUE);
        let (from_receiver, receiver_events) = queue::spsc(EVENT_QUEUE);
        let reader = counters.reader();
        let mut counters = Counters::new(counters, now);
        let mut secured = security::build(&mut context, &mut counters, seed)?;
        let mut network = layered(network, &events, interceptors, secured.layer);
        let sender_poller = network.poller(AgentRole::Sender)?;
        let receiver_poller = network.poller(AgentRole::Receiver)?;
        let wakers = [sender_poller.waker(), receiver_poller.waker()];
        let mut sender = Sender::new(SenderSpec {
            commands: to_sender,
            poller: sender_poller,
            events: from_sender,
            counters: SenderCounters::new(|counter| system.get(counter).clone()),
            cycle: cycle(
                SystemCounter::SenderMaxCycleTime,
                SystemCounter::SenderCycleTimeThresholdExceeded,
                sender_threshold_ns,
            ),
            errors: errors.clone(),
            status_poll_ratio: settings.sockets.status_poll_ratio,
            status_poll_interval_ns: settings.receiver.status_message_timeout_ns / 2,
            re_resolution_check_interval_ns: settings.timers.re_resolution_check_interval_ns,
        });
        let mut receiver = Receiver::new(ReceiverSpec {
            commands: to_receiver,
            poller: receiver_poller,
            events: from_receiver,
            counters: ReceiverCounters::new(|counter| system.get(counter).clone()),
            cycle: cycle(
                SystemCounter::ReceiverMaxCycleTime,
                SystemCounter::ReceiverCycleTimeThresholdExceeded,
                receiver_threshold_ns,
            ),
            errors: errors.clone(),
            losses: LossReport::open(files.loss_report.clone()),
            re_resolution_check_interval_ns: settings.timers.re_resolution_check_interval_ns,
        });
        if let Some(jumps) = &secured.jumps {
            sender.watch_clock(jumps.watch());
            receiver.watch_clock(jumps.watch());
        }
        let names = names::build(NamesSpec {
            settings: &settings,
            resolver,
            network: network.as_mut(),
            security: &mut secured.security,
            counters: &mut counters,
            system: &system,
            errors: errors.clone(),
            events: events.clone(),
            now,
        })?;
        let idle_status = system.get(SystemCounter::ControllableIdleStrategy).clone();
        let is_allowed = context.options().termination_allowed();
        let log_files = context
            .files
            .take()
            .unwrap_or_else(|| Box::new(InlineFileWorker::new(Arc::clone(&storage))));
        let conductor = Conductor::new(ConductorSpec {
            lock: files.lock,
            cnc: files.region,
            commands: files.commands,
            events: [sender_events, receiver_events],
            state: ConductorStateSpec {
                settings: Arc::new(settings),
                responses: files.replies,
                correlation_ids: files.correlation_ids,
                counters,
                names,
                security: secured.security,
                system,
                errors: errors.clone(),
                storage,
                files: log_files,
                network,
                limits,
                sender: sender_commands,
                receiver: receiver_commands,
                wakers,
                validator: context
                    .validator
                    .take()
                    .unwrap_or_else(|| Box::new(move |_, _| is_allowed)),
                congestion_control: context.congestion_control.take(),
                flow_control: context.flow_control.take(),
                wall_clock,
                hook: context.hook.take().unwrap_or_else(|| Box::new(|| {})),
                seed,
                now,
                events,
            },
        });
        // Everything is ready: from here on clients can connect.
        files.cnc.publish();
        files.startup_guard.disarm();
        Ok(Self {
            conductor,
            sender,
            receiver,
            counters: reader,
            errors,
            warnings,
            idle_status,
            #[cfg(feature = "secure")]
            security: secured.control,
        })
    }

    /// Returns the options as text, for `aeron.print.configuration`.
    #[must_use]
    pub fn describe(options: &OptionSet) -> String {
        crate::context::print_configuration(options)
    }
}

/// Puts the driver's layers on top of a network. This is their order: the event log shows what the driver sends, also if
/// an interceptor drops it, and what is left of what arrives. Transport security is next to the network, so that the other
/// layers see plain frames.
fn layered(
    network: Box<dyn Network>,
    events: &EventLog,
    interceptors: Interceptors,
    secured: Option<Box<dyn NetworkLayer>>,
) -> Box<dyn Network> {
    let mut layers: Vec<Box<dyn NetworkLayer>> = Vec::new();
    if let Some(log) = FrameLog::new(events) {
        layers.push(Box::new(log));
    }
    layers.push(Box::new(interceptors.into_layer()));
    layers.extend(secured);
    Box::new(LayeredNetwork::new(network, layers))
}

/// Returns the buffer limits of the backend that opens the sockets of channels that name none.
fn default_limits(
    network: &mut dyn Network,
    backend: Option<&str>,
) -> Result<BufferLimits, DriverError> {
    match backend {
        None => Ok(network.buffer_limits()?),
        Some(name) => network
            .buffer_limits_of(name)
            .map_err(|source| DriverError::Backend {
                name: name.into(),
                source,
            }),
    }
}

/// Returns an error handler that passes each error to the sink, or without a sink writes to `aeron.fallback.logger` when
/// the error log is full.
fn error_handler(
    diagnostics: &DiagnosticSink,
    logger: &str,
    log: ErrorLog,
    errors: Counter,
) -> ErrorHandler {
    if diagnostics.is_set() {
        let diagnostics = diagnostics.clone();
        return ErrorHandler::observed(log, errors, move |error| diagnostics.error(error));
    }
    match logger {
        "no_op" => ErrorHandler::new(log, errors, |_| ()),
        "stdout" => ErrorHandler::new(log, errors, |unlogged| {
            // A closed standard output is ignored.
            let _ = writeln!(io::stdout(), "{unlogged}");
        }),
        _ => ErrorHandler::or_stderr(log, errors),
    }
}

/// Durations in options are not negative.
fn nanos(nanos: i64) -> Duration {
    Duration::from_nanos(nanos.unsigned_abs())
}
