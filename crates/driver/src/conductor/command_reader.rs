// SPDX-License-Identifier: Apache-2.0
//! Reads client commands from the ring, keeps those of a client in order, and runs or defers them.

use taran_core::ring::Action;
use taran_core::ring::many_to_one::Consumer;
use taran_protocol::command::{self, Command, CommandError as DecodeError, Malformed};
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;
use taran_protocol::uri::{ChannelUri, Param};

use super::command_error::CommandError;
use super::deferred_commands::{
    CommandQueue, DeferredCommands, MemoryQuota, Prerequisite, RawCommand, ResolvedPrerequisites,
};
use super::failure::Failure;
use super::log_files::LogFile;
use super::log_preallocator::PreallocationStatus;
use super::names::LookupResult;
use super::state::ConductorState;

/// Maximum number of commands taken per duty cycle from the ring, and likewise from the deferred commands, so that
/// publisher limits are updated in between.
const COMMANDS_PER_CYCLE: usize = 4;

/// The to-driver ring and the commands deferred from it.
#[doc(alias = "ClientCommandAdapter")]
#[derive(Debug)]
pub(crate) struct CommandReader {
    ring: Consumer,
    deferred: DeferredCommands,
    blocked: BlockedRingDetector,
}

/// Detects a command that its writer never completed.
#[derive(Debug)]
struct BlockedRingDetector {
    head: i64,
    since_ns: i64,
}

impl CommandReader {
    pub(crate) fn new(ring: Consumer, now_ns: i64) -> Self {
        Self {
            ring,
            deferred: DeferredCommands::new(),
            blocked: BlockedRingDetector {
                head: 0,
                since_ns: now_ns,
            },
        }
    }

    /// Returns true if the ring holds a command.
    pub(crate) fn has_next(&self) -> bool {
        self.ring.has_next()
    }

    /// Returns true if a command can be taken from the ring, or deferred ones can be run.
    pub(crate) fn is_runnable(&self) -> bool {
        self.ring.has_next() || self.deferred.has_ready()
    }

    /// Reads and runs commands from the ring. Returns the amount of work done.
    pub(crate) fn poll(&mut self, state: &mut ConductorState) -> usize {
        let Self { ring, deferred, .. } = self;
        let taken = ring.controlled_read(COMMANDS_PER_CYCLE, |type_id, payload| {
            on_command(state, deferred, type_id, payload)
        });
        taken.unwrap_or_else(|corrupt| {
            // The ring was emptied and continues; the clients of the lost commands time out.
            state.record(ErrorCode::MalformedCommand, &corrupt.to_string());
            1
        })
    }

    /// Resumes deferred commands whose prerequisites are resolved. Returns the number of commands run.
    pub(crate) fn resume(&mut self, state: &mut ConductorState) -> usize {
        let Some(mut ready) = self.deferred.poll() else {
            return 0;
        };
        let mut work = 0;
        let mut prerequisites = ready.prerequisites;
        while let Some(raw) = ready.commands.next() {
            if work == COMMANDS_PER_CYCLE || !state.networking.flush_commands() {
                ready.commands.put_back(raw);
                let names = &mut state.names;
                self.deferred
                    .defer(ready.client_id, ready.commands, prerequisites, None, names);
                break;
            }
            work += 1;
            let Ok(command) = Command::decode(raw.type_id, &raw.payload) else {
                continue;
            };
            let missing = self.take_preallocated(raw.preallocated, &mut prerequisites);
            let missing = missing.or_else(|| run(state, &command, &mut prerequisites));
            if let Some(missing) = missing {
                ready.commands.put_back(raw);
                let names = &mut state.names;
                self.deferred.defer(
                    ready.client_id,
                    ready.commands,
                    prerequisites,
                    Some(missing),
                    names,
                );
                break;
            }
            // The result of a lookup is valid for one command only.
            prerequisites = ResolvedPrerequisites::default();
        }
        work
    }

    /// Moves a preallocated log file to the prerequisites of its command; returns the prerequisite to wait for if it is
    /// still being created.
    fn take_preallocated(
        &mut self,
        ticket: Option<u64>,
        prerequisites: &mut ResolvedPrerequisites,
    ) -> Option<Prerequisite> {
        let ticket = ticket.filter(|_| prerequisites.log.is_none())?;
        match self.deferred.preallocator.take(ticket) {
            PreallocationStatus::Ready(file) => prerequisites.log = Some(Ok(file)),
            PreallocationStatus::InFlight => return Some(Prerequisite::LogFile(ticket)),
            PreallocationStatus::Unavailable => {}
        }
        None
    }

    /// Handles the result of a host lookup for a command.
    pub(crate) fn on_lookup_result(&mut self, result: LookupResult) {
        self.deferred.on_lookup_result(result);
    }

    /// Handles a created log file, or the failure to create it. Returns it if no command waits for it.
    pub(crate) fn on_file(
        &mut self,
        ticket: u64,
        file: Result<LogFile, Failure>,
    ) -> Option<Result<LogFile, Failure>> {
        self.deferred.on_log_file(ticket, file)
    }

    /// Discards the deferred commands of a removed client.
    pub(crate) fn remove_client(&mut self, state: &mut ConductorState, client_id: i64) {
        remove_client(&mut self.deferred, state, client_id);
    }

    pub(crate) fn set_heartbeat_ms(&self, epoch_ms: i64) {
        self.ring.set_heartbeat_ms(epoch_ms);
    }

    /// Unblocks the ring when a client died while it wrote a command, and repairs it when another process overwrote its
    /// positions (docs/spec/shared-memory.md §3.5).
    pub(crate) fn check_blocked(&mut self, state: &ConductorState) {
        let now_ns = state.now.nanos;
        let head = self.ring.head();
        let is_empty = self.ring.tail() == head && !self.ring.has_next();
        if is_empty || head != self.blocked.head {
            self.blocked = BlockedRingDetector {
                head,
                since_ns: now_ns,
            };
            return;
        }
        let timers = &state.settings.timers;
        let blocked_ns = now_ns - self.blocked.since_ns;
        if blocked_ns > timers.interval_ns
            && let Some(damage) = self.ring.repair()
        {
            // No order of claims and commits leads to such positions, so no client is disturbed. The ring continues
            // empty; the clients of the lost commands time out.
            state.record(ErrorCode::MalformedCommand, &damage.to_string());
        } else if blocked_ns > timers.client_liveness_ns && self.ring.unblock() {
            state.count(SystemCounter::UnblockedCommands);
        } else {
            return;
        }
        self.blocked.since_ns = now_ns;
    }
}

/// Handles one record of the ring: runs it, defers it, or leaves it in the ring.
fn on_command(
    state: &mut ConductorState,
    deferred: &mut DeferredCommands,
    type_id: i32,
    payload: &[u8],
) -> Action {
    if !state.networking.flush_commands() {
        // The agents' queues are full: the command stays in the ring.
        return Action::Abort;
    }
    state.events.command(type_id, payload);
    let command = match Command::decode(type_id, payload) {
        Ok(command) => command,
        Err(error) => {
            on_invalid_command(state, payload, &error);
            return Action::Continue;
        }
    };
    if command.correlation_id() == NO_CORRELATION_ID && needs_response(&command) {
        state.record(ErrorCode::MalformedCommand, &no_correlation_id(type_id));
        return Action::Continue;
    }
    let client_id = command.client_id();
    if deferred.is_deferred(client_id) {
        match command {
            // A closing client abandons its deferred commands.
            Command::ClientClose { .. } => remove_client(deferred, state, client_id),
            // Keepalives are not deferred.
            Command::ClientKeepalive { .. } => {}
            _ if !deferred.has_room(client_id, payload.len(), memory_quota(&command)) => {
                state.respond_error(command.correlation_id(), &too_many_deferred());
                return Action::Continue;
            }
            _ => {
                let preallocation = state.preallocate_log(&deferred.preallocator, &command);
                if let Some(preallocation) = preallocation {
                    deferred.preallocator.add(preallocation);
                }
                let raw = RawCommand {
                    type_id,
                    payload: payload.to_vec(),
                    preallocated: preallocation.map(|of| of.ticket),
                };
                deferred.push(client_id, raw);
                return Action::Continue;
            }
        }
    }
    let mut prerequisites = ResolvedPrerequisites::default();
    match run(state, &command, &mut prerequisites) {
        None => {}
        Some(missing) if deferred.has_room(client_id, payload.len(), MemoryQuota::Ordinary) => {
            let raw = RawCommand {
                type_id,
                payload: payload.to_vec(),
                preallocated: None,
            };
            let commands = CommandQueue::of(raw);
            deferred.defer(
                client_id,
                commands,
                prerequisites,
                Some(missing),
                &mut state.names,
            );
        }
        Some(_) => state.respond_error(command.correlation_id(), &too_many_deferred()),
    }
    // Committed one by one, so that a panicking handler does not cause earlier commands to run again.
    Action::Commit
}

/// Runs a command. Returns its missing prerequisite if it has to be deferred.
fn run(
    state: &mut ConductorState,
    command: &Command<'_>,
    prerequisites: &mut ResolvedPrerequisites,
) -> Option<Prerequisite> {
    match state.execute(command, prerequisites) {
        Ok(()) => report_misspelt_keys(state, command),
        Err(CommandError::Pending(missing)) => return Some(missing),
        Err(CommandError::Failed(failure)) => {
            state.respond_error(command.correlation_id(), &failure);
        }
    }
    if let Some(Ok(unused)) = prerequisites.log.take() {
        state.logs.retire(unused);
    }
    None
}

/// Records the unknown keys of a new channel that resemble a known one. They have no effect, as in the official drivers;
/// others may be meant for the application.
fn report_misspelt_keys(state: &ConductorState, command: &Command<'_>) {
    let (Command::AddPublication { channel, .. }
    | Command::AddExclusivePublication { channel, .. }
    | Command::AddSubscription { channel, .. }
    | Command::AddDestination { channel, .. }
    | Command::AddReceiveDestination { channel, .. }) = command
    else {
        return;
    };
    // The command was executed, so its channel is valid.
    let Ok(uri) = ChannelUri::parse(channel) else {
        return;
    };
    for key in uri.unknown_keys() {
        if let Some(nearest) = Param::nearest_key(key) {
            let text = format!(
                "unknown key {key} has no effect, did you mean {nearest}?: channel={channel}"
            );
            state.record(ErrorCode::InvalidChannel, &text);
        }
    }
}

fn remove_client(deferred: &mut DeferredCommands, state: &mut ConductorState, client_id: i64) {
    for unused in deferred.remove_client(client_id, &mut state.names) {
        state.logs.retire(unused);
    }
}

/// Returns the quota of a command: commands that release resources may use the reserve.
fn memory_quota(command: &Command<'_>) -> MemoryQuota {
    match command {
        Command::RemovePublication { .. }
        | Command::RemoveSubscription { .. }
        | Command::RemoveCounter { .. }
        | Command::RemoveDestination { .. }
        | Command::RemoveDestinationById { .. }
        | Command::RemoveReceiveDestination { .. } => MemoryQuota::Reserve,
        _ => MemoryQuota::Ordinary,
    }
}

/// Returns the failure for a command that exceeds the quota, which bounds the driver's memory per client.
fn too_many_deferred() -> Failure {
    Failure::new(
        ErrorCode::ResourceTemporarilyUnavailable,
        "too many commands are waiting for host names or log files, try again",
    )
}

/// Correlation id that no client uses for a command with a response.
const NO_CORRELATION_ID: i64 = -1;

/// Returns true if the driver responds to a command.
fn needs_response(command: &Command<'_>) -> bool {
    !matches!(
        command,
        Command::ClientKeepalive { .. }
            | Command::ClientClose { .. }
            | Command::TerminateDriver { .. }
    )
}

/// Returns the error for a command whose response would reach every client: clients pass an error with an unknown
/// correlation id to their error handlers.
fn no_correlation_id(type_id: i32) -> String {
    format!(
        "command of type id {type_id:#06x} with correlation id {NO_CORRELATION_ID} was ignored: take the id from the \
         correlation counter of the to-driver buffer"
    )
}

/// Returns the failure for text in an invalid encoding.
fn not_text(field: &str) -> Failure {
    let code = match field {
        "channel" => ErrorCode::InvalidChannel,
        _ => ErrorCode::MalformedCommand,
    };
    Failure::new(
        code,
        format!("the {field} of the command is not UTF-8: encode it as ASCII or UTF-8"),
    )
}

/// Records and counts an invalid command. Text in an invalid encoding is answered. Other invalid commands are not,
/// since their ids cannot be trusted.
fn on_invalid_command(state: &mut ConductorState, payload: &[u8], error: &DecodeError) {
    if let DecodeError::Malformed {
        type_id,
        field,
        reason: Malformed::NotText,
    } = *error
        && let Some((_, correlation_id)) = command::ids(payload)
    {
        if correlation_id == NO_CORRELATION_ID {
            state.record(ErrorCode::MalformedCommand, &no_correlation_id(type_id));
        } else {
            state.respond_error(correlation_id, &not_text(field));
        }
        return;
    }
    let code = match error {
        DecodeError::Unknown(_) => ErrorCode::UnknownCommandTypeId,
        _ => ErrorCode::MalformedCommand,
    };
    state.record(code, &error.to_string());
}
