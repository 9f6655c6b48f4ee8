//! Commands that wait: for host names to be looked up, or for a log file to be made.
//!
//! A command that needs either is first run without it; it stops, saying what it needs, and is stored here with
//! everything its client sends afterwards. `poll` is asked once each duty cycle, and hands back a client's commands when
//! the first one has all it waited for, or when names took too long. It runs again from its start then. Other clients go
//! on meanwhile, and the commands of one client stay in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::net::IpAddr;
use std::ops::Bound;

use taran_core::agent::DutyCycle;

use super::failure::Failure;
use super::log_files::LogFile;

/// Looks up host names without ever making its caller wait.
pub trait NameResolver: Send + Debug {
    /// Begins to look up `host`. Its answer comes out of [`poll`](Self::poll) under the same ticket.
    fn start(&mut self, ticket: u64, host: &str);

    /// Nobody waits for this answer any more. It may come all the same.
    fn cancel(&mut self, _ticket: u64) {}

    /// An answer that has come in: at least one address, or why there is none.
    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)>;
}

/// A command as it came from its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredCommand {
    pub(crate) type_id: i32,
    pub(crate) payload: Vec<u8>,
}

impl StoredCommand {
    /// Bytes of memory that it takes while it waits.
    fn cost(&self) -> usize {
        cost(self.payload.len())
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
    hosts: BTreeMap<String, Result<Vec<IpAddr>, String>>,
    /// The log file it asked for; taken out by whoever uses it.
    pub(crate) log: Option<Result<LogFile, Failure>>,
}

impl Answers {
    /// What the resolver said of `host`, if it was asked.
    pub(crate) fn host(&self, host: &str) -> Option<&Result<Vec<IpAddr>, String>> {
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
    commands: VecDeque<StoredCommand>,
    /// What the commands cost together.
    bytes: usize,
    answers: Answers,
    /// Ticket and host of what was asked and not answered.
    hosts: Vec<(u64, String)>,
    log: Option<u64>,
    since_ns: i64,
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
    pub(crate) commands: VecDeque<StoredCommand>,
    pub(crate) answers: Answers,
}

/// All commands that wait, by client.
#[derive(Debug)]
pub(crate) struct WaitingRoom {
    resolver: Box<dyn NameResolver>,
    /// How long lookups take (system counters 32 and 33).
    watch: DutyCycle,
    name_timeout_ns: i64,
    next_ticket: u64,
    clients: BTreeMap<i64, Waiting>,
    /// What all commands cost together.
    bytes: usize,
    /// The client whose turn was last.
    last: i64,
}

impl WaitingRoom {
    /// `name_timeout_ns` bounds the time that a command waits for names.
    pub(crate) fn new(
        resolver: Box<dyn NameResolver>,
        name_timeout_ns: i64,
        watch: DutyCycle,
    ) -> Self {
        Self {
            resolver,
            watch,
            name_timeout_ns,
            next_ticket: 0,
            clients: BTreeMap::new(),
            bytes: 0,
            last: i64::MIN,
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
        waiting.map_or(0, |waiting| waiting.bytes) + cost <= BYTES_PER_CLIENT * times
            && self.bytes + cost <= BYTES * times
    }

    /// Stores a command behind the one that waits.
    pub(crate) fn push(&mut self, client_id: i64, command: StoredCommand) {
        if let Some(waiting) = self.clients.get_mut(&client_id) {
            let cost = command.cost();
            waiting.bytes += cost;
            self.bytes += cost;
            waiting.commands.push_back(command);
        }
    }

    /// Stores `commands`, of which the first has `answers` and still needs `need`; without a need, only its turn.
    pub(crate) fn wait(
        &mut self,
        client_id: i64,
        commands: VecDeque<StoredCommand>,
        answers: Answers,
        need: Option<Need>,
        now_ns: i64,
    ) {
        let bytes = commands.iter().map(StoredCommand::cost).sum();
        let mut waiting = Waiting {
            commands,
            bytes,
            answers,
            hosts: Vec::new(),
            log: None,
            since_ns: now_ns,
        };
        match need {
            None => {}
            Some(Need::Log(ticket)) => waiting.log = Some(ticket),
            Some(Need::Names(hosts)) => {
                for host in hosts {
                    let ticket = self.next_ticket;
                    self.next_ticket += 1;
                    self.resolver.start(ticket, &host);
                    waiting.hosts.push((ticket, host));
                }
            }
        }
        self.bytes += bytes;
        self.clients.insert(client_id, waiting);
    }

    /// A log file was made, or not. Gives it back if nobody waits for it any more.
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
                None
            }
            None => Some(file),
        }
    }

    /// Takes in answers, and returns the commands of one client that need wait no longer.
    pub(crate) fn poll(&mut self, now_ns: i64) -> Option<Ready> {
        // Answers come late too, to questions that nobody has any more.
        while let Some((ticket, answer)) = self.resolver.poll() {
            self.answered(ticket, answer, now_ns);
        }
        self.give_up_overdue(now_ns);
        let client_id = self.next_ready()?;
        self.last = client_id;
        let Waiting {
            commands,
            bytes,
            answers,
            ..
        } = self.clients.remove(&client_id)?;
        self.bytes -= bytes;
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

    fn answered(&mut self, ticket: u64, answer: Result<Vec<IpAddr>, String>, now_ns: i64) {
        for waiting in self.clients.values_mut() {
            let asked = waiting.hosts.iter().position(|(open, _)| *open == ticket);
            if let Some(index) = asked {
                let (_, host) = waiting.hosts.swap_remove(index);
                self.watch.record(now_ns.saturating_sub(waiting.since_ns));
                waiting.answers.hosts.insert(host, answer);
                return;
            }
        }
    }

    fn give_up_overdue(&mut self, now_ns: i64) {
        for waiting in self.clients.values_mut() {
            let waited_ns = now_ns.saturating_sub(waiting.since_ns);
            if waiting.hosts.is_empty() || waited_ns < self.name_timeout_ns {
                continue;
            }
            self.watch.record(waited_ns);
            for (ticket, host) in waiting.hosts.drain(..) {
                self.resolver.cancel(ticket);
                let text = format!("no answer within {} ms", self.name_timeout_ns / 1_000_000);
                waiting.answers.hosts.insert(host, Err(text));
            }
        }
    }

    /// The client is gone: what it waited for is of no interest. A log file that it had got already is given back.
    pub(crate) fn forget(&mut self, client_id: i64) -> Option<LogFile> {
        let waiting = self.clients.remove(&client_id)?;
        self.bytes -= waiting.bytes;
        for (ticket, _) in &waiting.hosts {
            self.resolver.cancel(*ticket);
        }
        waiting.answers.log?.ok()
    }
}
