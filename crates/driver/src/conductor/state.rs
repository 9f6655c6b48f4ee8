// SPDX-License-Identifier: Apache-2.0
//! State of the conductor: all resources of the driver, side by side, and the tools they share.
//!
//! Each field keeps the state of one kind of resource and knows no other field. The handlers in `commands`, `timer` and
//! `events` combine them.

use std::sync::Arc;
use std::task::Waker;

use taran_core::broadcast::Transmitter;
use taran_core::clock::{Now, WallClock};
use taran_core::counters::Counter;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::Storage;
use taran_core::queue;
use taran_core::ring::many_to_one::Producer;
use taran_net::{BufferLimits, Network};
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::response::Response;

use super::clients::Clients;
use super::command_sender::CommandSender;
use super::counters::Counters;
use super::error_detail_budget::ErrorDetailBudget;
use super::failure::Failure;
use super::file_worker::FileWorker;
use super::flow_control::FlowControlFactory;
use super::image_setup::{ImageBudget, ImageQueue};
use super::ipc::IpcPublications;
use super::log_files::{LogFileCounters, LogFileSettings, LogFiles};
use super::names::HostLookups;
use super::network::{
    Endpoints, Images, NetworkPublications, Networking, ReceiveDestinations, SendDestinations,
    Sockets,
};
use super::response_sender::ResponseSender;
use super::session_ids::SessionIds;
use super::subscriptions::Subscriptions;
use super::termination::{Termination, TerminationHook, TerminationValidator};
use super::timer::TimerSweep;
use crate::boundary::{ReceiverCommand, SenderCommand};
use crate::congestion::CongestionControlSupplier;
use crate::context::Settings;
use crate::event_log::EventLog;
use crate::secured::Security;
use crate::sender::FlowControlSupplier;

/// System counters, indexed by id.
#[derive(Debug, Clone)]
pub(crate) struct SystemCounters(pub(crate) Vec<Counter>);

impl SystemCounters {
    pub(crate) fn get(&self, counter: SystemCounter) -> &Counter {
        &self.0[counter.id() as usize]
    }
}

/// State that commands, events and timers operate on.
#[derive(Debug)]
pub(crate) struct ConductorState {
    pub(crate) settings: Arc<Settings>,
    pub(crate) now: Now,
    pub(crate) responses: ResponseSender,
    pub(crate) errors: ErrorHandler,
    pub(crate) system: SystemCounters,
    pub(crate) counters: Counters,
    pub(crate) logs: LogFiles,
    pub(crate) session_ids: SessionIds,
    pub(crate) clients: Clients,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) ipc: IpcPublications,
    pub(crate) networking: Networking,
    pub(crate) names: HostLookups,
    pub(crate) security: Security,
    pub(crate) termination: Termination,
    pub(crate) flow_control: FlowControlFactory,
    /// Generates image ids, from the counter that clients use for their correlation ids.
    pub(crate) correlation_ids: Producer,
    pub(crate) random: fastrand::Rng,
    pub(crate) events: EventLog,
    pub(crate) timer_sweep: TimerSweep,
    error_detail_budget: ErrorDetailBudget,
}

/// Everything that [`ConductorState`] is built from.
pub(crate) struct ConductorStateSpec {
    pub(crate) settings: Arc<Settings>,
    pub(crate) now: Now,
    pub(crate) responses: Transmitter,
    pub(crate) correlation_ids: Producer,
    pub(crate) counters: Counters,
    pub(crate) names: HostLookups,
    pub(crate) security: Security,
    pub(crate) system: SystemCounters,
    pub(crate) errors: ErrorHandler,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) files: Box<dyn FileWorker>,
    pub(crate) network: Box<dyn Network>,
    pub(crate) limits: BufferLimits,
    pub(crate) sender: queue::Sender<SenderCommand>,
    pub(crate) receiver: queue::Sender<ReceiverCommand>,
    /// The wakers of sender and receiver.
    pub(crate) wakers: [Waker; 2],
    pub(crate) validator: TerminationValidator,
    pub(crate) hook: TerminationHook,
    pub(crate) congestion_control: Option<CongestionControlSupplier>,
    pub(crate) flow_control: Option<FlowControlSupplier>,
    pub(crate) wall_clock: Arc<dyn WallClock>,
    pub(crate) seed: u64,
    pub(crate) events: EventLog,
}

impl ConductorState {
    pub(crate) fn new(spec: ConductorStateSpec) -> Self {
        let ConductorStateSpec {
            settings,
            now,
            system,
            errors,
            ..
        } = spec;
        let mut random = fastrand::Rng::with_seed(spec.seed);
        let logs = LogFiles::new(
            spec.storage,
            spec.files,
            LogFileSettings {
                directory: settings.directory.path.clone(),
                check_storage: settings.perform_storage_checks,
                low_storage_warning: settings.low_storage_warning,
            },
            LogFileCounters {
                bytes_mapped: system.get(SystemCounter::BytesCurrentlyMapped).clone(),
                failed_frees: system.get(SystemCounter::FreeFails).clone(),
            },
            errors.clone(),
        );
        let sockets = Sockets::new(spec.network, spec.limits, &settings.sockets);
        let mut security = spec.security;
        security.set_wakers(spec.wakers.clone());
        let [sender_waker, receiver_waker] = spec.wakers;
        let networking = Networking {
            sockets,
            sender: CommandSender::new(
                spec.sender,
                system.get(SystemCounter::SenderProxyFails).clone(),
                sender_waker,
            ),
            receiver: CommandSender::new(
                spec.receiver,
                system.get(SystemCounter::ReceiverProxyFails).clone(),
                receiver_waker,
            ),
            send_endpoints: Endpoints::default(),
            send_destinations: SendDestinations::default(),
            receive_endpoints: Endpoints::default(),
            receive_destinations: ReceiveDestinations::default(),
            publications: NetworkPublications::default(),
            images: Images::default(),
            image_queue: ImageQueue::default(),
            image_budget: ImageBudget::default(),
            response_setups: Vec::new(),
            next_receiver_id: random.i64(..),
            congestion_control: spec.congestion_control,
            wall_clock: spec.wall_clock,
        };
        Self {
            security,
            responses: ResponseSender::new(spec.responses, spec.events.clone()),
            counters: spec.counters,
            names: {
                let mut names = spec.names;
                names.log_to(spec.events.clone());
                names
            },
            logs,
            session_ids: SessionIds::new(
                random.i32(..),
                settings.publication.reserved_session_ids.clone(),
            ),
            clients: Clients::default(),
            subscriptions: Subscriptions::default(),
            ipc: IpcPublications::default(),
            networking,
            termination: Termination::new(
                settings.directory.path.clone(),
                spec.validator,
                spec.hook,
            ),
            flow_control: FlowControlFactory::new(spec.flow_control),
            correlation_ids: spec.correlation_ids,
            random,
            events: spec.events,
            timer_sweep: TimerSweep::default(),
            error_detail_budget: ErrorDetailBudget::new(settings.buffers.error_log, now.nanos),
            settings,
            now,
            errors,
            system,
        }
    }

    /// Starts a duty cycle at `now`.
    pub(crate) fn set_now(&mut self, now: Now) {
        self.now = now;
        self.counters.set_now(now);
    }

    /// Returns the next time at which a duty cycle has an effect besides the timer's, if nothing comes from outside before.
    /// `None` if it is not known.
    pub(crate) fn next_deadline_ns(&self) -> Option<i64> {
        if self.timer_sweep.is_active() || self.logs.has_tasks() {
            return Some(i64::MIN);
        }
        let streams_ns = self
            .ipc
            .next_deadline_ns()?
            .min(self.networking.next_deadline_ns()?);
        let others_ns = self
            .names
            .next_deadline_ns()
            .min(self.security.next_deadline_ns());
        Some(streams_ns.min(others_ns))
    }

    /// Records an error in the distinct error log.
    pub(crate) fn record(&self, code: ErrorCode, text: &str) {
        self.errors
            .on_error(self.now.epoch_millis, code.code(), &code.record(text));
    }

    /// Records an error caused by packets of a peer: `details` while the budget allows it, then only `cause`.
    pub(crate) fn record_remote_error(&mut self, code: ErrorCode, cause: &str, details: &str) {
        if self
            .error_detail_budget
            .consume(details.len(), self.now.nanos)
        {
            self.record(code, details);
        } else {
            self.record(code, &format!("{cause} (details: see earlier records)"));
        }
    }

    /// Records a failed command and sends ON_ERROR to its client.
    pub(crate) fn respond_error(&mut self, correlation_id: i64, failure: &Failure) {
        self.record(failure.code, &failure.text);
        self.responses.send(&Response::Error {
            correlation_id,
            error_code: failure.code.code(),
            message: ResponseSender::error_text(&failure.text).as_bytes(),
        });
    }

    pub(crate) fn respond_success(&mut self, correlation_id: i64) {
        self.responses
            .send(&Response::OperationSuccess { correlation_id });
    }

    /// Registers the client of its first command: allocates its heartbeat counter and announces it.
    pub(crate) fn ensure_client(&mut self, client_id: i64) -> Result<(), Failure> {
        if !self.clients.contains(client_id) {
            let heartbeat = self.counters.heartbeat(client_id)?;
            let counter_id = heartbeat.id();
            self.clients.insert(client_id, heartbeat, self.now.nanos);
            self.responses.send(&Response::CounterReady {
                correlation_id: client_id,
                counter_id,
            });
        }
        Ok(())
    }

    pub(crate) fn count(&self, counter: SystemCounter) {
        self.system.get(counter).increment();
    }

    /// Runs transport security. Returns the amount of work done.
    pub(crate) fn poll_security(&mut self) -> usize {
        let work = self.security.poll(self.now, &mut self.counters);
        while let Some(text) = self.security.next_report() {
            self.record_remote_error(ErrorCode::GenericError, &text, &text);
        }
        work
    }

    /// Returns a session id that no publication of the stream uses.
    pub(crate) fn next_session_id(&mut self, stream_id: i32) -> i32 {
        let Self {
            ipc,
            networking,
            session_ids,
            ..
        } = self;
        session_ids
            .take(|id| ipc.uses_session(stream_id, id) || networking.uses_session(stream_id, id))
    }
}
