// SPDX-License-Identifier: Apache-2.0
//! The process of a client with its publishers and subscribers: connecting, closing, killing.

use std::any::Any;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taran::{
    Client, ClientBuilder, ClientError, CloseReason, ConnectError, Connecting, Progress,
    PublicationError,
};
use taran_core::clock::{Now, saturating_nanos};

use super::time_stepper::StallMeter;
use super::{ClientId, HostIndex, World};
use crate::check::Violation;
use crate::process::{AfterKill, CycleContext, HostEnv, Process};
use crate::traffic::{Publisher, Subscriber};

/// Timeout of [`World::connect`].
const CONNECT_TIMEOUT: Duration = Duration::from_secs(12);
/// Longer than the sum of all driver timeouts that follow a close.
const ALL_TIMEOUTS: Duration = Duration::from_secs(40);

/// State of a client.
#[derive(Debug)]
pub enum ClientState {
    /// It waits for its driver.
    Connecting(Box<Connecting>),
    /// It is connected.
    Connected(Client),
    /// It could not connect.
    Failed(ConnectError),
    /// It was closed.
    Closed,
    /// Its process was killed.
    Dead,
}

/// A client, each of whose publishers and subscribers is an agent.
#[derive(Debug)]
pub(super) struct ClientProcess {
    pub(super) state: ClientState,
    pub(super) publishers: Vec<Publisher>,
    pub(super) subscribers: Vec<Subscriber>,
    /// Time of the next connect attempt.
    next_attempt_ns: i64,
    /// Nanoseconds by which the clock of the host is ahead of the world's, on which publishers and subscribers work.
    ahead_ns: i64,
    stalls: StallMeter,
    errors: Arc<Mutex<Vec<ClientError>>>,
    ended: Arc<Mutex<Vec<CloseReason>>>,
    publication_errors: Arc<Mutex<Vec<PublicationError>>>,
    /// Objects whose destructors would send commands. A killed process runs none.
    killed: Vec<Box<dyn Any>>,
}

/// An agent of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClientAgent {
    Conductor,
    Publisher(usize),
    Subscriber(usize),
}

impl ClientAgent {
    /// Publishers have odd numbers.
    fn number(self) -> usize {
        match self {
            Self::Conductor => 0,
            Self::Publisher(index) => 1 + 2 * index,
            Self::Subscriber(index) => 2 + 2 * index,
        }
    }

    fn of(number: usize) -> Self {
        match number {
            0 => Self::Conductor,
            odd if odd % 2 == 1 => Self::Publisher(odd / 2),
            even => Self::Subscriber(even / 2 - 1),
        }
    }
}

impl ClientProcess {
    fn start(env: &HostEnv, number: usize) -> Self {
        let errors: Arc<Mutex<Vec<ClientError>>> = Arc::default();
        let ended: Arc<Mutex<Vec<CloseReason>>> = Arc::default();
        let publication_errors: Arc<Mutex<Vec<PublicationError>>> = Arc::default();
        let (error_sink, end_sink) = (Arc::clone(&errors), Arc::clone(&ended));
        let publication_error_sink = Arc::clone(&publication_errors);
        let nothing: [(&str, &str); 0] = [];
        let context = ClientBuilder::with_environment(nothing)
            .aeron_dir(env.aeron_dir())
            .storage(env.storage())
            .invoker(true)
            .client_name(format!("client {number}"))
            .on_error(move |error| {
                let mut errors = error_sink.lock().unwrap_or_else(PoisonError::into_inner);
                errors.push(ClientError::clone(error));
            })
            .on_publication_error(move |error| {
                let mut publication_errors = publication_error_sink
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                publication_errors.push(error.clone());
            })
            .on_close(move |end| {
                let mut ended = end_sink.lock().unwrap_or_else(PoisonError::into_inner);
                ended.push(end);
            });
        Self {
            state: ClientState::Connecting(Box::new(context.connecting())),
            publishers: Vec::new(),
            subscribers: Vec::new(),
            next_attempt_ns: 0,
            ahead_ns: 0,
            stalls: StallMeter::new(env.now().nanos),
            errors,
            ended,
            publication_errors,
            killed: Vec::new(),
        }
    }

    /// Returns the client while it is connected.
    pub(super) fn connected(&self) -> Option<&Client> {
        connected(&self.state)
    }

    /// Closes the client with its publications and subscriptions.
    fn close(&mut self) {
        let state = std::mem::replace(&mut self.state, ClientState::Closed);
        if let ClientState::Connected(client) = state {
            client.close();
        }
        self.publishers.iter_mut().for_each(Publisher::close);
        self.subscribers.iter_mut().for_each(Subscriber::close);
    }

    /// Runs one duty cycle; returns the amount of work done.
    fn run_conductor(&mut self, now: Now) -> usize {
        self.stalls.on_duty_cycle(now.nanos);
        match &mut self.state {
            ClientState::Connected(client) => client.do_work(now),
            ClientState::Connecting(connecting) if now.nanos >= self.next_attempt_ns => {
                match connecting.poll(now) {
                    Ok(Progress::Connected(client)) => self.state = ClientState::Connected(client),
                    Ok(Progress::Wait(pause)) => {
                        self.next_attempt_ns = now.nanos + pause.as_nanos() as i64;
                    }
                    Err(error) => self.state = ClientState::Failed(error),
                }
                1
            }
            _ => 0,
        }
    }
}

fn connected(state: &ClientState) -> Option<&Client> {
    match state {
        ClientState::Connected(client) => Some(client),
        _ => None,
    }
}

impl Process for ClientProcess {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let (now_ns, client) = (context.world_ns, connected(&self.state));
        self.ahead_ns = context.now.nanos - now_ns;
        match ClientAgent::of(context.agent()) {
            ClientAgent::Conductor => Ok(self.run_conductor(context.now())),
            ClientAgent::Publisher(index) => {
                let publisher = &mut self.publishers[index];
                Ok(publisher.do_work(client, now_ns, context.ledger, context.history))
            }
            ClientAgent::Subscriber(index) => {
                let subscriber = &mut self.subscribers[index];
                subscriber.do_work(client, now_ns, context.ledger, context.history)
            }
        }
    }

    fn agents(&self, agents: &mut Vec<usize>) {
        use ClientState::{Connected, Connecting};
        if matches!(self.state, Connecting(_) | Connected(_)) {
            agents.push(ClientAgent::Conductor.number());
        }
        let publishers = self.publishers.iter().enumerate();
        let live = publishers.filter(|(_, publisher)| !publisher.is_over());
        agents.extend(live.map(|(index, _)| ClientAgent::Publisher(index).number()));
        let subscribers = self.subscribers.iter().enumerate();
        let live = subscribers.filter(|(_, subscriber)| !subscriber.is_over());
        agents.extend(live.map(|(index, _)| ClientAgent::Subscriber(index).number()));
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        let conductor_ns = match &self.state {
            ClientState::Connecting(_) => self.next_attempt_ns,
            ClientState::Connected(client) => client.next_deadline_ns(),
            ClientState::Failed(_) | ClientState::Closed | ClientState::Dead => i64::MAX,
        };
        let publishers = self.publishers.iter().map(Publisher::next_deadline_ns);
        let subscribers = self.subscribers.iter().map(Subscriber::next_deadline_ns);
        let traffic_ns = publishers.chain(subscribers).min().unwrap_or(i64::MAX);
        Some(conductor_ns.min(traffic_ns.saturating_add(self.ahead_ns)))
    }

    fn on_kill(&mut self) -> AfterKill {
        let state = std::mem::replace(&mut self.state, ClientState::Dead);
        self.killed.push(Box::new(state));
        let publishers = self.publishers.iter_mut().map(Publisher::kill);
        self.killed.extend(publishers);
        let subscribers = self.subscribers.iter_mut().map(Subscriber::kill);
        self.killed.extend(subscribers);
        AfterKill::Keep
    }

    fn describe(&self) -> String {
        let mut lines = vec![format!("client {:?}", self.state)];
        for publisher in &self.publishers {
            lines.push(format!(
                "publisher of {:?}: open {}, connected {}, {} offered (done {}), at {} of {}, refusal {:?}, failure {:?}",
                publisher.key(),
                publisher.is_open(),
                publisher.is_connected(),
                publisher.offered(),
                publisher.is_done(),
                publisher.position(),
                publisher.limit(),
                publisher.refusal(),
                publisher.failure(),
            ));
        }
        for subscriber in &self.subscribers {
            lines.push(format!(
                "subscriber: open {}, failure {:?}, error {:?}, ended {:?}",
                subscriber.is_open(),
                subscriber.failure(),
                subscriber.error(),
                subscriber.ended()
            ));
            for image in subscriber.images() {
                lines.push(format!("  {:?} at {}", image.key(), image.position()));
            }
        }
        lines.join("\n    ")
    }
}

impl World {
    /// Starts to connect a client to the driver of its host.
    pub fn begin_connect(&mut self, host: HostIndex) -> ClientId {
        let number = self.clients.len();
        self.record_op("connect", number);
        let process = self.spawn(host, |env| ClientProcess::start(env, number));
        self.clients.push(process);
        ClientId(number)
    }

    /// Connects a client to the driver of its host.
    ///
    /// # Panics
    /// If it does not connect in time.
    pub fn connect(&mut self, host: HostIndex) -> ClientId {
        let id = self.begin_connect(host);
        self.run_until("a client has connected", CONNECT_TIMEOUT, |world| {
            !matches!(world.client_state(id), ClientState::Connecting(_))
        });
        if let ClientState::Failed(error) = self.client_state(id) {
            panic!("client {}: {error}", id.0);
        }
        id
    }

    pub(super) fn client_process(&self, id: ClientId) -> &ClientProcess {
        self.process(self.clients[id.0])
    }

    /// Returns the state of a client.
    #[must_use]
    pub fn client_state(&self, id: ClientId) -> &ClientState {
        &self.client_process(id).state
    }

    /// Returns how a client ended, as passed to its close handler.
    ///
    /// # Panics
    /// If the handler was called more than once.
    #[must_use]
    pub fn client_end(&self, id: ClientId) -> Option<CloseReason> {
        let ended = self.client_process(id).ended.lock();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        assert!(ended.len() <= 1, "client {} ended twice: {ended:?}", id.0);
        ended.first().copied()
    }

    /// Returns the longest gap between two duty cycles of a client so far.
    #[must_use]
    pub fn longest_client_stall(&self, id: ClientId) -> Duration {
        let host = &self.hosts[self.host_of(id).0];
        let now_ns = host.at(self.clock.read()).nanos;
        self.client_process(id).stalls.longest(now_ns)
    }

    /// Returns the errors passed to the error handler of a client.
    #[must_use]
    pub fn client_errors(&self, id: ClientId) -> Vec<ClientError> {
        let errors = self.client_process(id).errors.lock();
        errors.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the errors that receivers reported for the publications of a client.
    #[must_use]
    pub fn publication_errors(&self, id: ClientId) -> Vec<PublicationError> {
        let publication_errors = self.client_process(id).publication_errors.lock();
        publication_errors
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Closes a client with its publications and subscriptions.
    pub fn close_client(&mut self, id: ClientId) {
        self.record_op("close client", id.0);
        let process = self.clients[id.0];
        self.process_mut::<ClientProcess>(process).close();
    }

    /// Ends the process of a client like `kill -9`: it does no more work and closes nothing. Uncommitted claims are
    /// never sent.
    pub fn kill_client(&mut self, id: ClientId) {
        self.record_op("kill client", id.0);
        self.processes.kill(self.clients[id.0]);
    }

    /// Pauses a client's process, like `SIGSTOP`.
    pub fn stall_client(&mut self, id: ClientId, pause: Duration) {
        self.record_op("stall client", id.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        let process = self.clients[id.0];
        self.processes.slot_mut(process).stalled_until_ns = until_ns;
    }

    /// Closes all clients and waits until drivers have detected that and all timeouts have passed.
    pub fn close_all(&mut self) {
        for index in 0..self.clients.len() {
            if self.is_alive(self.clients[index]) {
                self.close_client(ClientId(index));
            }
        }
        self.run_for(ALL_TIMEOUTS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agent_number_identifies_the_agent() {
        let agents = (0..9).map(ClientAgent::of);
        assert!(
            agents
                .enumerate()
                .all(|(number, agent)| agent.number() == number)
        );
        assert_eq!(ClientAgent::of(5), ClientAgent::Publisher(2));
        assert_eq!(ClientAgent::of(4), ClientAgent::Subscriber(1));
    }
}
