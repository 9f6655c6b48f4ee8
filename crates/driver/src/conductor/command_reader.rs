//! Reads client commands from the ring, keeps those of a client in order, and runs or defers them.

use taran_core::ring::Action;
use taran_core::ring::many_to_one::Consumer;
use taran_protocol::command::{Command, CommandError as DecodeError};
use taran_protocol::counter::SystemCounter;
use taran_protocol::error_code::ErrorCode;

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
#[derive(Debug)]
pub(crate) struct CommandReader {
    ring: Consumer,
    waiting: DeferredCommands,
    watch: BlockedRingDetector,
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
            waiting: DeferredCommands::new(),
            watch: BlockedRingDetector {
                head: 0,
                since_ns: now_ns,
            },
        }
    }

    /// Returns true if the ring holds a command.
    pub(crate) fn has_next(&self) -> bool {
        self.ring.has_next()
    }

    /// Reads and runs commands from the ring. Returns the amount of work done.
    pub(crate) fn take(&mut self, owners: &mut ConductorState) -> usize {
        let Self { ring, waiting, .. } = self;
        let taken = ring.controlled_read(COMMANDS_PER_CYCLE, |type_id, payload| {
            take_one(owners, waiting, type_id, payload)
        });
        taken.unwrap_or_else(|corrupt| {
            // The ring was emptied and continues; the clients of the lost commands time out.
            owners.record(ErrorCode::MalformedCommand, &corrupt.to_string());
            1
        })
    }

    /// Resumes deferred commands whose prerequisites are resolved. Returns the number of commands run.
    pub(crate) fn resume(&mut self, owners: &mut ConductorState) -> usize {
        let Some(mut ready) = self.waiting.poll() else {
            return 0;
        };
        let mut work = 0;
        let mut answers = ready.answers;
        while let Some(stored) = ready.commands.next() {
            if work == COMMANDS_PER_CYCLE || !owners.networking.flush_lines() {
                ready.commands.put_back(stored);
                let names = &mut owners.names;
                self.waiting
                    .wait(ready.client_id, ready.commands, answers, None, names);
                break;
            }
            work += 1;
            let Ok(command) = Command::decode(stored.type_id, &stored.payload) else {
                continue;
            };
            let need = self.foreseen(stored.foreseen, &mut answers);
            let need = need.or_else(|| run(owners, &command, &mut answers));
            if let Some(need) = need {
                ready.commands.put_back(stored);
                let names = &mut owners.names;
                self.waiting
                    .wait(ready.client_id, ready.commands, answers, Some(need), names);
                break;
            }
            // The result of a lookup is valid for one command only.
            answers = ResolvedPrerequisites::default();
        }
        work
    }

    /// Moves a preallocated log file to the prerequisites of its command; returns the prerequisite to wait for if it is
    /// still being created.
    fn foreseen(
        &mut self,
        ticket: Option<u64>,
        answers: &mut ResolvedPrerequisites,
    ) -> Option<Prerequisite> {
        let ticket = ticket.filter(|_| answers.log.is_none())?;
        match self.waiting.foresight.take(ticket) {
            PreallocationStatus::Ready(file) => answers.log = Some(Ok(file)),
            PreallocationStatus::InFlight => return Some(Prerequisite::LogFile(ticket)),
            PreallocationStatus::Unavailable => {}
        }
        None
    }

    /// Handles the result of a host lookup for a command.
    pub(crate) fn on_answer(&mut self, answer: LookupResult) {
        self.waiting.answered(answer);
    }

    /// Handles a created log file, or the failure to create it. Returns it if no command waits for it.
    pub(crate) fn on_file(
        &mut self,
        ticket: u64,
        file: Result<LogFile, Failure>,
    ) -> Option<Result<LogFile, Failure>> {
        self.waiting.log_made(ticket, file)
    }

    /// Discards the deferred commands of a removed client.
    pub(crate) fn forget(&mut self, owners: &mut ConductorState, client_id: i64) {
        forget(&mut self.waiting, owners, client_id);
    }

    pub(crate) fn set_heartbeat_ms(&self, epoch_ms: i64) {
        self.ring.set_heartbeat_ms(epoch_ms);
    }

    /// Unblocks the ring when a client died while it wrote a command (docs/spec/shared-memory.md §3.5).
    pub(crate) fn check_blocked(&mut self, owners: &ConductorState) {
        let now_ns = owners.now.nanos;
        let head = self.ring.head();
        if self.ring.tail() == head || head != self.watch.head {
            self.watch = BlockedRingDetector {
                head,
                since_ns: now_ns,
            };
        } else if now_ns - self.watch.since_ns > owners.settings.timers.client_liveness_ns
            && self.ring.unblock()
        {
            owners.count(SystemCounter::UnblockedCommands);
            self.watch.since_ns = now_ns;
        }
    }
}

/// Handles one record of the ring: runs it, defers it, or leaves it in the ring.
fn take_one(
    owners: &mut ConductorState,
    waiting: &mut DeferredCommands,
    type_id: i32,
    payload: &[u8],
) -> Action {
    if !owners.networking.flush_lines() {
        // The agents' queues are full: the command stays in the ring.
        return Action::Abort;
    }
    owners.events.command(type_id, payload);
    let command = match Command::decode(type_id, payload) {
        Ok(command) => command,
        Err(error) => {
            refuse(owners, &error);
            return Action::Continue;
        }
    };
    let client_id = command.client_id();
    if waiting.is_waiting(client_id) {
        match command {
            // A closing client abandons its deferred commands.
            Command::ClientClose { .. } => forget(waiting, owners, client_id),
            // Keepalives are not deferred.
            Command::ClientKeepalive { .. } => {}
            _ if !waiting.has_room(client_id, payload.len(), share(&command)) => {
                owners.fail(command.correlation_id(), &crowded());
                return Action::Continue;
            }
            _ => {
                let foreseen = owners.foresee(&waiting.foresight, &command);
                if let Some(foreseen) = foreseen {
                    waiting.foresight.expect(foreseen);
                }
                let stored = RawCommand {
                    type_id,
                    payload: payload.to_vec(),
                    foreseen: foreseen.map(|of| of.ticket),
                };
                waiting.push(client_id, stored);
                return Action::Continue;
            }
        }
    }
    let mut answers = ResolvedPrerequisites::default();
    match run(owners, &command, &mut answers) {
        None => {}
        Some(need) if waiting.has_room(client_id, payload.len(), MemoryQuota::Ordinary) => {
            let stored = RawCommand {
                type_id,
                payload: payload.to_vec(),
                foreseen: None,
            };
            let commands = CommandQueue::of(stored);
            waiting.wait(client_id, commands, answers, Some(need), &mut owners.names);
        }
        Some(_) => owners.fail(command.correlation_id(), &crowded()),
    }
    // Committed one by one, so that a panicking handler does not cause earlier commands to run again.
    Action::Commit
}

/// Runs a command. Returns its missing prerequisite if it has to be deferred.
fn run(
    owners: &mut ConductorState,
    command: &Command<'_>,
    answers: &mut ResolvedPrerequisites,
) -> Option<Prerequisite> {
    match owners.execute(command, answers) {
        Ok(()) => {}
        Err(CommandError::Pending(need)) => return Some(need),
        Err(CommandError::Failed(failure)) => owners.fail(command.correlation_id(), &failure),
    }
    if let Some(Ok(unused)) = answers.log.take() {
        owners.logs.retire(unused);
    }
    None
}

fn forget(waiting: &mut DeferredCommands, owners: &mut ConductorState, client_id: i64) {
    for unused in waiting.forget(client_id, &mut owners.names) {
        owners.logs.retire(unused);
    }
}

/// Returns the quota of a command: commands that release resources may use the reserve.
fn share(command: &Command<'_>) -> MemoryQuota {
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
fn crowded() -> Failure {
    Failure::new(
        ErrorCode::ResourceTemporarilyUnavailable,
        "too many commands wait for host names or log files, try again",
    )
}

/// Records and counts an invalid command. No response is sent, since its ids cannot be trusted.
fn refuse(owners: &ConductorState, error: &DecodeError) {
    let code = match error {
        DecodeError::Unknown(_) => ErrorCode::UnknownCommandTypeId,
        DecodeError::Malformed { .. } => ErrorCode::MalformedCommand,
    };
    owners.record(code, &error.to_string());
}
