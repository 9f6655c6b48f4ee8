//! Commands that wait: for host names to be looked up, or for a log file to be made.
//!
//! A command that needs either is first run without it; it stops, saying what it needs, and is stored here with
//! everything its client sends afterwards. `poll` is asked once each duty cycle, and hands back a client's commands when
//! the first one has all it waited for. It runs again from its start then. Other clients go on meanwhile, and the commands
//! of one client stay in order.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use super::failure::Failure;
use super::foresight::Foresight;
use super::log_files::LogFile;
use super::names::{Answer, Asker, Found, Names};

/// A command as it came from its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredCommand {
    pub(crate) type_id: i32,
    pub(crate) payload: Vec<u8>,
    /// The log file that is made for it meanwhile.
    pub(crate) foreseen: Option<u64>,
}

impl StoredCommand {
    /// Bytes of memory that it takes while it waits.
    fn cost(&self) -> usize {
        cost(self.payload.len())
    }
}

/// Commands of one client, in order.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    commands: VecDeque<StoredCommand>,
    /// What they cost together.
    bytes: usize,
}

impl Queue {
    pub(crate) fn of(command: StoredCommand) -> Self {
        let mut queue = Self::default();
        queue.put_back(command);
        queue
    }

    pub(crate) fn next(&mut self) -> Option<StoredCommand> {
        let command = self.commands.pop_front()?;
        self.bytes -= command.cost();
        Some(command)
    }

    /// Makes it the next one again.
    pub(crate) fn put_back(&mut self, command: StoredCommand) {
        self.bytes += command.cost();
        self.commands.push_front(command);
    }

    fn push(&mut self, command: StoredCommand) {
        self.bytes += command.cost();
        self.commands.push_back(command);
    }
}

fn cost(payload_length: usize) -> usize {
    size_of::<StoredCommand>() + payload_length
}

/// Which share of the memory for commands that wait one may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Share {
    /// It asks for something: it can be refused, and asked again.
    Ordinary,
    /// It gives something back: refused, what it names would be there until its client goes, so there is room for it
    /// when there is none for others.
    Reserve,
}

/// What a command has waited for and got.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    hosts: BTreeMap<String, Found>,
    /// The log file it asked for; taken out by whoever uses it.
    pub(crate) log: Option<Result<LogFile, Failure>>,
}

impl Answers {
    /// What the resolver said of `host`, if it was asked.
    pub(crate) fn host(&self, host: &str) -> Option<&Found> {
        self.hosts.get(host)
    }
}

/// What a command waits for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Need {
    /// These hosts are to be looked up.
    Names(Vec<String>),
    /// The log file that was asked for under this ticket.
    Log(u64),
}

/// Most bytes of commands that one client may have waiting: two rings of the usual length full, so that a client that
/// adds all it has at its start is never refused. The reserve is as much again.
const BYTES_PER_CLIENT: usize = 2 * 1024 * 1024;
/// Most bytes of commands that all clients may have waiting, reserve not counted.
const BYTES: usize = 16 * BYTES_PER_CLIENT;
/// Most clients that may wait; what is beyond is refused.
const CLIENTS: usize = 1024;

#[derive(Debug)]
struct Waiting {
    commands: Queue,
    answers: Answers,
    /// Tickets of the hosts that were asked about and not answered.
    hosts: Vec<u64>,
    log: Option<u64>,
}

impl Waiting {
    fn is_ready(&self) -> bool {
        self.hosts.is_empty() && self.log.is_none()
    }
}

/// Commands whose turn has come.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) client_id: i64,
    pub(crate) commands: Queue,
    pub(crate) answers: Answers,
}

/// All commands that wait, by client.
#[derive(Debug)]
pub(crate) struct WaitingRoom {
    clients: BTreeMap<i64, Waiting>,
    /// What all commands cost together.
    bytes: usize,
    /// The client whose turn was last.
    last: i64,
    pub(crate) foresight: Foresight,
}

impl WaitingRoom {
    pub(crate) fn new() -> Self {
        Self {
            clients: BTreeMap::new(),
            bytes: 0,
            last: i64::MIN,
            foresight: Foresight::default(),
        }
    }

    /// Whether commands of this client have to queue behind one that waits.
    pub(crate) fn is_waiting(&self, client_id: i64) -> bool {
        self.clients.contains_key(&client_id)
    }

    /// Whether another command of this client, of so many bytes, may wait.
    pub(crate) fn has_room(&self, client_id: i64, payload_length: usize, share: Share) -> bool {
        let waiting = self.clients.get(&client_id);
        if waiting.is_none() && self.clients.len() >= CLIENTS {
            return false;
        }
        let cost = cost(payload_length);
        let times = match share {
            Share::Ordinary => 1,
            Share::Reserve => 2,
        };
        waiting.map_or(0, |waiting| waiting.commands.bytes) + cost <= BYTES_PER_CLIENT * times
            && self.bytes + cost <= BYTES * times
    }

    /// Stores a command behind the one that waits.
    pub(crate) fn push(&mut self, client_id: i64, command: StoredCommand) {
        if let Some(waiting) = self.clients.get_mut(&client_id) {
            self.bytes += command.cost();
            waiting.commands.push(command);
        }
    }

    /// Stores `commands`, of which the first has `answers` and still needs `need`; without a need, only its turn.
    pub(crate) fn wait(
        &mut self,
        client_id: i64,
        commands: Queue,
        answers: Answers,
        need: Option<Need>,
        names: &mut Names,
    ) {
        self.bytes += commands.bytes;
        let mut waiting = Waiting {
            commands,
            answers,
            hosts: Vec::new(),
            log: None,
        };
        match need {
            None => {}
            Some(Need::Log(ticket)) => waiting.log = Some(ticket),
            Some(Need::Names(hosts)) => {
                let tickets = hosts.iter().map(|host| names.ask(Asker::Command, host));
                waiting.hosts.extend(tickets);
            }
        }
        self.clients.insert(client_id, waiting);
    }

    /// A log file was made, or not. Gives it back if nobody waits for it any more, nor is going to.
    pub(crate) fn log_made(
        &mut self,
        ticket: u64,
        file: Result<LogFile, Failure>,
    ) -> Option<Result<LogFile, Failure>> {
        let waiting = self
            .clients
            .values_mut()
            .find(|waiting| waiting.log == Some(ticket));
        match waiting {
            Some(waiting) => {
                waiting.log = None;
                waiting.answers.log = Some(file);
                self.foresight.forget(ticket);
                None
            }
            // A command whose file could not be made foresightedly asks for it again in its turn.
            None => self.foresight.made(ticket, file.ok()).map(Ok),
        }
    }

    /// The commands of one client that need wait no longer.
    pub(crate) fn poll(&mut self) -> Option<Ready> {
        let client_id = self.next_ready()?;
        self.last = client_id;
        let Waiting {
            commands, answers, ..
        } = self.clients.remove(&client_id)?;
        self.bytes -= commands.bytes;
        Some(Ready {
            client_id,
            commands,
            answers,
        })
    }

    /// One after the other, so that a client with many commands does not keep the others from theirs.
    fn next_ready(&self) -> Option<i64> {
        let after = (Bound::Excluded(self.last), Bound::Unbounded);
        self.clients
            .range(after)
            .chain(self.clients.range(..=self.last))
            .find(|(_, waiting)| waiting.is_ready())
            .map(|(&client_id, _)| client_id)
    }

    /// What was found out about a host.
    pub(crate) fn answered(&mut self, answer: Answer) {
        for waiting in self.clients.values_mut() {
            let asked = waiting.hosts.iter().position(|open| *open == answer.ticket);
            if let Some(index) = asked {
                waiting.hosts.swap_remove(index);
                waiting.answers.hosts.insert(answer.host, answer.found);
                return;
            }
        }
    }

    /// The client is gone: what it waited for is of no interest. Log files that were made for it are given back.
    pub(crate) fn forget(&mut self, client_id: i64, names: &mut Names) -> Vec<LogFile> {
        let Some(waiting) = self.clients.remove(&client_id) else {
            return Vec::new();
        };
        self.bytes -= waiting.commands.bytes;
        for ticket in &waiting.hosts {
            names.cancel(*ticket);
        }
        let commands = waiting.commands.commands.iter();
        let foreseen = commands.filter_map(|command| self.foresight.forget(command.foreseen?));
        let foreseen = foreseen.collect::<Vec<LogFile>>().into_iter();
        foreseen
            .chain(waiting.answers.log.and_then(Result::ok))
            .collect()
    }
}
