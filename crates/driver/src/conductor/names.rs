//! Host names in channels: looked up off the conductor, while the command that needs them waits.
//!
//! A command that names a host is first run without an answer; it stops, saying which names it needs, and is stored
//! here with everything its client sends afterwards. Lookups go to a [`NameResolver`] that never blocks; `poll` is asked
//! once each duty cycle, and hands back a client's commands when all names of the first one are answered or overdue. Other
//! clients go on meanwhile, and the commands of one client stay in order.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::Debug;
use std::net::IpAddr;

use taran_core::agent::DutyCycle;

/// Looks up host names without ever making its caller wait.
pub trait NameResolver: Send + Debug {
    /// Begins to look up `host`. Its answer comes out of [`poll`](Self::poll) under the same ticket.
    fn start(&mut self, ticket: u64, host: &str);

    /// An answer that has come in: at least one address, or why there is none.
    fn poll(&mut self) -> Option<(u64, Result<Vec<IpAddr>, String>)>;
}

/// A command as it came from its client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct StoredCommand {
    pub(crate) type_id: i32,
    pub(crate) payload: Vec<u8>,
}

/// What is known of host names while one command runs.
#[derive(Debug, Default)]
pub(crate) struct Answers {
    known: BTreeMap<String, Result<Vec<IpAddr>, String>>,
}

impl Answers {
    /// What the resolver said of `host`, if it was asked.
    pub(crate) fn find(&self, host: &str) -> Option<&Result<Vec<IpAddr>, String>> {
        self.known.get(host)
    }
}

/// Most commands that one client may have waiting. A client beyond it makes the driver stop reading commands.
pub(crate) const WAITING_LIMIT: usize = 256;

#[derive(Debug)]
struct Waiting {
    commands: VecDeque<StoredCommand>,
    answers: Answers,
    /// Ticket and host of what was asked and not answered.
    open: Vec<(u64, String)>,
    asked_ns: i64,
}

/// Commands whose turn has come.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) client_id: i64,
    pub(crate) commands: VecDeque<StoredCommand>,
    pub(crate) answers: Answers,
}

/// Waiting commands and open lookups.
#[derive(Debug)]
pub(crate) struct Names {
    resolver: Box<dyn NameResolver>,
    /// How long lookups take (system counters 32 and 33).
    watch: DutyCycle,
    timeout_ns: i64,
    next_ticket: u64,
    waiting: BTreeMap<i64, Waiting>,
}

impl Names {
    /// `timeout_ns` bounds the time that a command waits.
    pub(crate) fn new(resolver: Box<dyn NameResolver>, timeout_ns: i64, watch: DutyCycle) -> Self {
        Self {
            resolver,
            watch,
            timeout_ns,
            next_ticket: 0,
            waiting: BTreeMap::new(),
        }
    }

    /// Whether commands of this client have to queue behind one that waits.
    pub(crate) fn is_waiting(&self, client_id: i64) -> bool {
        self.waiting.contains_key(&client_id)
    }

    /// Whether another command of this client can be stored.
    pub(crate) fn has_room(&self, client_id: i64) -> bool {
        self.waiting
            .get(&client_id)
            .is_none_or(|waiting| waiting.commands.len() < WAITING_LIMIT)
    }

    /// Stores a command behind the one that waits.
    pub(crate) fn push(&mut self, client_id: i64, command: StoredCommand) {
        if let Some(waiting) = self.waiting.get_mut(&client_id) {
            waiting.commands.push_back(command);
        }
    }

    /// Stores `commands`, of which the first needs `hosts`, and begins the lookups.
    pub(crate) fn wait(
        &mut self,
        client_id: i64,
        commands: VecDeque<StoredCommand>,
        answers: Answers,
        hosts: Vec<String>,
        now_ns: i64,
    ) {
        let mut open = Vec::with_capacity(hosts.len());
        for host in hosts {
            let ticket = self.next_ticket;
            self.next_ticket += 1;
            self.resolver.start(ticket, &host);
            open.push((ticket, host));
        }
        self.waiting.insert(
            client_id,
            Waiting {
                commands,
                answers,
                open,
                asked_ns: now_ns,
            },
        );
    }

    /// Takes in answers, and returns the commands of one client that need wait no longer.
    pub(crate) fn poll(&mut self, now_ns: i64) -> Option<Ready> {
        if self.waiting.is_empty() {
            // Late answers to questions that nobody has any more are still to be taken out.
            while self.resolver.poll().is_some() {}
            return None;
        }
        while let Some((ticket, answer)) = self.resolver.poll() {
            self.answered(ticket, answer, now_ns);
        }
        for waiting in self.waiting.values_mut() {
            if now_ns.saturating_sub(waiting.asked_ns) >= self.timeout_ns
                && !waiting.open.is_empty()
            {
                self.watch.record(self.timeout_ns);
                for (_, host) in waiting.open.drain(..) {
                    let text = format!("no answer within {} ms", self.timeout_ns / 1_000_000);
                    waiting.answers.known.insert(host, Err(text));
                }
            }
        }
        let client_id = *self
            .waiting
            .iter()
            .find(|(_, waiting)| waiting.open.is_empty())?
            .0;
        let waiting = self.waiting.remove(&client_id)?;
        Some(Ready {
            client_id,
            commands: waiting.commands,
            answers: waiting.answers,
        })
    }

    fn answered(&mut self, ticket: u64, answer: Result<Vec<IpAddr>, String>, now_ns: i64) {
        for waiting in self.waiting.values_mut() {
            if let Some(index) = waiting.open.iter().position(|(open, _)| *open == ticket) {
                let (_, host) = waiting.open.swap_remove(index);
                self.watch.record(now_ns.saturating_sub(waiting.asked_ns));
                waiting.answers.known.insert(host, answer);
                return;
            }
        }
    }

    /// The client is gone: what it waited for is of no interest.
    pub(crate) fn forget(&mut self, client_id: i64) {
        self.waiting.remove(&client_id);
    }
}
