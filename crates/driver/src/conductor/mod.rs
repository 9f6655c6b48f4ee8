//! The conductor: opens and closes the roads of messages, and is on none of them.
//!
//! It takes commands of clients from the to-driver ring and events of sender and receiver from a queue, routes each to
//! the owner of the resource concerned, and answers through the to-clients broadcast buffer. Once per timer interval it
//! looks after lives: its own heartbeat, clients, publications, images. Every cycle it moves publisher limits and cleans
//! terms before they are written again.
//!
//! Contract: `do_work(now)` as often as possible. Time comes in as an argument, sockets, files, names and chance through
//! what [`Conductor`] was built from; the conductor reads no clock and waits for nobody.

mod clients;
mod commands;
mod counters;
mod events;
mod failure;
mod features;
mod image_creation;
mod ipc;
mod line;
mod links;
mod log_files;
mod names;
mod network;
mod owners;
mod publication_log;
mod publication_terms;
mod replies;
mod session_ids;
mod stop;
mod subscribers;
mod subscriptions;
mod termination;
mod timer;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use taran_core::agent::{Agent, DutyCycle};
use taran_core::broadcast::Transmitter;
use taran_core::clock::Now;
use taran_core::counters::CounterTable;
use taran_core::error_log::ErrorHandler;
use taran_core::memory::{Region, Storage};
use taran_core::queue;
use taran_core::ring::Action;
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_net::{BufferLimits, Network};
use taran_protocol::command::{Command, CommandError};
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;

pub use names::NameResolver;
pub use termination::{TerminationHook, TerminationValidator};

pub(crate) use owners::SystemCounters;

use names::{Answers, Names, StoredCommand};
use owners::{Owners, OwnersSpec};
use stop::Stop;

use crate::boundary::{ConductorEvent, ReceiverCommand, SenderCommand};
use crate::context::Settings;

/// Most commands taken from the ring in one duty cycle, so that limits are moved in between.
const COMMANDS_PER_CYCLE: usize = 4;
/// Most events of sender and receiver taken in one duty cycle.
const EVENTS_PER_CYCLE: usize = 16;

/// How long a command waits for host names. Clients wait ten seconds for an answer.
const NAME_TIMEOUT_NS: i64 = 5_000_000_000;

/// What a conductor is built from.
pub(crate) struct ConductorSpec {
    pub(crate) settings: Arc<Settings>,
    /// The whole of `cnc.dat`, to be written out at the end.
    pub(crate) cnc: Region,
    pub(crate) commands: Consumer,
    pub(crate) replies: Transmitter,
    pub(crate) correlation_ids: Producer,
    pub(crate) counters: CounterTable,
    pub(crate) system: SystemCounters,
    pub(crate) errors: ErrorHandler,
    pub(crate) storage: Arc<dyn Storage>,
    pub(crate) network: Box<dyn Network>,
    pub(crate) limits: BufferLimits,
    pub(crate) resolver: Box<dyn NameResolver>,
    pub(crate) sender: queue::Sender<SenderCommand>,
    pub(crate) receiver: queue::Sender<ReceiverCommand>,
    pub(crate) events: [queue::Receiver<ConductorEvent>; 2],
    pub(crate) validator: TerminationValidator,
    pub(crate) hook: TerminationHook,
    pub(crate) seed: u64,
    pub(crate) now: Now,
}

/// The agent that routes commands to the owners of the driver's resources.
#[derive(Debug)]
pub struct Conductor {
    cnc: Region,
    commands: Consumer,
    events: [queue::Receiver<ConductorEvent>; 2],
    names: Names,
    owners: Owners,
    cycles: DutyCycle,
    timer: Timer,
    ring_watch: RingWatch,
}

#[derive(Debug)]
struct Timer {
    interval_ns: i64,
    last_ns: i64,
}

/// Notices a command that its writer never finished.
#[derive(Debug)]
struct RingWatch {
    head: i64,
    since_ns: i64,
}

impl Conductor {
    /// A conductor that nobody has spoken to yet.
    pub(crate) fn new(spec: ConductorSpec) -> Self {
        let ConductorSpec { settings, now, .. } = &spec;
        let (settings, now) = (Arc::clone(settings), *now);
        let threshold = Duration::from_nanos(settings.timers.cycle_thresholds_ns[0].unsigned_abs());
        let cycles = DutyCycle::new(
            spec.system
                .get(SystemCounter::ConductorMaxCycleTime)
                .clone(),
            spec.system
                .get(SystemCounter::ConductorCycleTimeThresholdExceeded)
                .clone(),
            threshold,
        );
        let lookup_threshold =
            Duration::from_nanos(settings.timers.name_resolver_threshold_ns.unsigned_abs());
        let lookups = DutyCycle::new(
            spec.system.get(SystemCounter::NameResolverMaxTime).clone(),
            spec.system
                .get(SystemCounter::NameResolverTimeThresholdExceeded)
                .clone(),
            lookup_threshold,
        );
        Self {
            names: Names::new(spec.resolver, NAME_TIMEOUT_NS, lookups),
            timer: Timer {
                interval_ns: settings.timers.interval_ns,
                last_ns: now.nanos,
            },
            ring_watch: RingWatch {
                head: 0,
                since_ns: now.nanos,
            },
            cnc: spec.cnc,
            commands: spec.commands,
            events: spec.events,
            cycles,
            owners: Owners::new(OwnersSpec {
                settings,
                now,
                replies: spec.replies,
                correlation_ids: spec.correlation_ids,
                counters: spec.counters,
                system: spec.system,
                errors: spec.errors,
                storage: spec.storage,
                network: spec.network,
                limits: spec.limits,
                sender: spec.sender,
                receiver: spec.receiver,
                validator: spec.validator,
                hook: spec.hook,
                seed: spec.seed,
            }),
        }
    }

    fn take_commands(&mut self) -> usize {
        let Self {
            commands,
            names,
            owners,
            ..
        } = self;
        if !owners.networking.flush_lines() {
            // The agents are behind: what is in the ring stays there.
            return 0;
        }
        let taken = commands.controlled_read(COMMANDS_PER_CYCLE, |type_id, payload| {
            take_command(owners, names, type_id, payload)
        });
        match taken {
            Ok(work) => work,
            Err(corrupt) => {
                // The ring was emptied and goes on; who wrote what is lost finds out by its own deadline.
                owners.record(ErrorCode::MalformedCommand, &corrupt.to_string());
                1
            }
        }
    }

    /// Goes on with commands whose host names have been looked up.
    fn take_answered(&mut self) -> usize {
        let Some(mut ready) = self.names.poll(self.owners.now.nanos) else {
            return 0;
        };
        let mut answers = ready.answers;
        let mut work = 0;
        while let Some(stored) = ready.commands.pop_front() {
            work += 1;
            let Ok(command) = Command::decode(stored.type_id, &stored.payload) else {
                continue;
            };
            if let Err(hosts) = run(&mut self.owners, &command, &answers) {
                ready.commands.push_front(stored);
                self.names.wait(
                    ready.client_id,
                    ready.commands,
                    answers,
                    hosts,
                    self.owners.now.nanos,
                );
                break;
            }
            // The next command may mean the same name, but at another time.
            answers = Answers::default();
        }
        work
    }

    fn take_events(&mut self) -> usize {
        let mut work = 0;
        for queue in &mut self.events {
            for _ in 0..EVENTS_PER_CYCLE {
                let Some(event) = queue.try_recv() else { break };
                self.owners.on_event(event);
                work += 1;
            }
        }
        work
    }

    fn on_timer(&mut self) -> usize {
        let now = self.owners.now;
        if now.nanos - self.timer.last_ns < self.timer.interval_ns {
            return 0;
        }
        self.timer.last_ns = now.nanos;
        self.commands.set_heartbeat_ms(now.epoch_millis);
        for client_id in self.owners.on_timer() {
            self.names.forget(client_id);
        }
        self.check_ring();
        1
    }

    /// A client that died while it wrote a command must not stop the others (spec/01 §3.5).
    fn check_ring(&mut self) {
        let now_ns = self.owners.now.nanos;
        let head = self.commands.head();
        if self.commands.tail() == head || head != self.ring_watch.head {
            self.ring_watch = RingWatch {
                head,
                since_ns: now_ns,
            };
        } else if now_ns - self.ring_watch.since_ns > self.owners.settings.timers.client_liveness_ns
            && self.commands.unblock()
        {
            self.owners.count(SystemCounter::UnblockedCommands);
            self.ring_watch.since_ns = now_ns;
        }
    }

    /// Leaves the sign of an orderly end: clients see it and stop.
    fn sign_off(&mut self) {
        self.commands.set_heartbeat_ms(-1);
        // Best effort: where the file is not on a disk there is nothing to write.
        let _ = self.cnc.flush();
    }
}

impl Agent for Conductor {
    fn do_work(&mut self, now: Now) -> usize {
        self.cycles.begin_turn(now.nanos);
        self.owners.at(now);
        let mut work = self.on_timer();
        work += self.take_answered();
        work += self.take_commands();
        work += self.take_events();
        work += self.owners.update_limits();
        work + self
            .owners
            .logs
            .free_some(self.owners.settings.timers.resource_free_limit)
    }

    fn role_name(&self) -> &'static str {
        "conductor"
    }

    fn on_close(&mut self) {
        self.sign_off();
    }
}

/// Decides about one record of the ring: run it, or keep it in the ring or behind its client's waiting command.
fn take_command(owners: &mut Owners, names: &mut Names, type_id: i32, payload: &[u8]) -> Action {
    if !owners.networking.flush_lines() {
        return Action::Abort;
    }
    let command = match Command::decode(type_id, payload) {
        Ok(command) => command,
        Err(error) => {
            refuse(owners, &error);
            return Action::Continue;
        }
    };
    let client_id = command.client_id();
    let waits = names.is_waiting(client_id);
    match command {
        // A client that leaves takes what it waits for along.
        Command::ClientClose { .. } if waits => names.forget(client_id),
        // Signs of life do not wait.
        Command::ClientKeepalive { .. } => {}
        _ if waits && !names.has_room(client_id) => return Action::Abort,
        _ if waits => {
            names.push(
                client_id,
                StoredCommand {
                    type_id,
                    payload: payload.to_vec(),
                },
            );
            return Action::Continue;
        }
        _ => {}
    }
    if let Err(hosts) = run(owners, &command, &Answers::default()) {
        let stored = StoredCommand {
            type_id,
            payload: payload.to_vec(),
        };
        names.wait(
            client_id,
            VecDeque::from([stored]),
            Answers::default(),
            hosts,
            owners.now.nanos,
        );
    }
    // One at a time is consumed, so that a failure to come back from a handler would not repeat the ones before.
    Action::Commit
}

/// Runs a command; the hosts it needs if it has to wait.
fn run(owners: &mut Owners, command: &Command<'_>, answers: &Answers) -> Result<(), Vec<String>> {
    match owners.execute(command, answers) {
        Ok(()) => Ok(()),
        Err(Stop::NeedsNames(hosts)) => Err(hosts),
        Err(Stop::Failed(failure)) => {
            owners.fail(command.correlation_id(), &failure);
            Ok(())
        }
    }
}

/// A record that is no command: logged and counted, not answered, since its ids cannot be trusted.
fn refuse(owners: &Owners, error: &CommandError) {
    let code = match error {
        CommandError::Unknown(_) => ErrorCode::UnknownCommandTypeId,
        CommandError::Malformed { .. } => ErrorCode::MalformedCommand,
    };
    owners.record(code, &error.to_string());
}
