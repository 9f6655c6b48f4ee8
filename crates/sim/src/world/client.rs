//! Clients: connecting, closing, dying.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taran::{
    Client, ClientError, CloseReason, ConnectError, Connecting, Context, Progress, PublicationError,
};
use taran_core::clock::{Now, saturating_nanos};

use super::pace::Rest;
use super::{ClientId, HostIndex, World};

/// How long [`World::connect`] waits.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(12);
/// Longer than all timeouts of drivers together that follow on a close.
const ALL_TIMEOUTS: Duration = Duration::from_secs(40);

/// How far a client has come.
#[derive(Debug)]
pub enum ClientState {
    /// It looks for its driver.
    Connecting(Box<Connecting>),
    /// It has found it.
    Connected(Client),
    /// It has not found it.
    Failed(ConnectError),
    /// It was closed.
    Closed,
    /// Its process is dead.
    Dead,
}

/// A client of a world.
#[derive(Debug)]
pub(super) struct ClientSlot {
    pub(super) host: HostIndex,
    pub(super) state: ClientState,
    /// When it looks for its driver again.
    look_ns: i64,
    /// It and what is its take no turn before.
    pub(super) stalled_until_ns: i64,
    rest: Rest,
    errors: Arc<Mutex<Vec<ClientError>>>,
    ended: Arc<Mutex<Vec<CloseReason>>>,
    complaints: Arc<Mutex<Vec<PublicationError>>>,
}

impl ClientSlot {
    /// The client, while it is connected.
    pub(super) fn connected(&self) -> Option<&Client> {
        match &self.state {
            ClientState::Connected(client) => Some(client),
            _ => None,
        }
    }

    /// True when it will never do anything again.
    pub(super) fn is_over(&self) -> bool {
        !matches!(
            self.state,
            ClientState::Connecting(_) | ClientState::Connected(_)
        )
    }

    /// One turn; how much was done.
    pub(super) fn turn(&mut self, now: Now) -> usize {
        self.rest.turned(now.nanos);
        match &mut self.state {
            ClientState::Connected(client) => client.do_work(now),
            ClientState::Connecting(connecting) if now.nanos >= self.look_ns => {
                match connecting.poll(now) {
                    Ok(Progress::Connected(client)) => self.state = ClientState::Connected(client),
                    Ok(Progress::Wait(pause)) => {
                        self.look_ns = now.nanos + pause.as_nanos() as i64;
                    }
                    Err(error) => self.state = ClientState::Failed(error),
                }
                1
            }
            _ => 0,
        }
    }
}

impl World {
    /// Begins to connect a client to the driver of its host.
    pub fn begin_connect(&mut self, host: HostIndex) -> ClientId {
        let number = self.clients.len();
        self.tell("connect", number);
        let errors: Arc<Mutex<Vec<ClientError>>> = Arc::default();
        let ended: Arc<Mutex<Vec<CloseReason>>> = Arc::default();
        let complaints: Arc<Mutex<Vec<PublicationError>>> = Arc::default();
        let (told_errors, told_end) = (Arc::clone(&errors), Arc::clone(&ended));
        let told_complaints = Arc::clone(&complaints);
        let nothing: [(&str, &str); 0] = [];
        let context = Context::with_environment(nothing)
            .aeron_dir(self.directory(host))
            .storage(Arc::new(self.storage(host).clone()))
            .invoker(true)
            .client_name(format!("client {number}"))
            .on_error(move |error| {
                let mut errors = told_errors.lock().unwrap_or_else(PoisonError::into_inner);
                errors.push(ClientError::clone(error));
            })
            .on_publication_error(move |error| {
                let mut complaints = told_complaints
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                complaints.push(error.clone());
            })
            .on_close(move |end| {
                let mut ended = told_end.lock().unwrap_or_else(PoisonError::into_inner);
                ended.push(end);
            });
        self.clients.push(ClientSlot {
            host,
            state: ClientState::Connecting(Box::new(context.connecting())),
            look_ns: 0,
            stalled_until_ns: 0,
            rest: Rest::since(self.hosts[host.0].at(self.clock.read()).nanos),
            errors,
            ended,
            complaints,
        });
        ClientId(number)
    }

    /// Connects a client to the driver of its host.
    ///
    /// # Panics
    /// If it does not find it in time.
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

    /// How far a client has come.
    #[must_use]
    pub fn client_state(&self, id: ClientId) -> &ClientState {
        &self.clients[id.0].state
    }

    /// How a client ended, as its close handler was told.
    ///
    /// # Panics
    /// If it was told more than once.
    #[must_use]
    pub fn client_end(&self, id: ClientId) -> Option<CloseReason> {
        let ended = self.clients[id.0].ended.lock();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        assert!(ended.len() <= 1, "client {} ended twice: {ended:?}", id.0);
        ended.first().copied()
    }

    /// The longest time in which a client had no turn so far.
    #[must_use]
    pub fn client_rested(&self, id: ClientId) -> Duration {
        let host = &self.hosts[self.clients[id.0].host.0];
        let now_ns = host.at(self.clock.read()).nanos;
        self.clients[id.0].rest.longest(now_ns)
    }

    /// What the error handler of a client was told.
    #[must_use]
    pub fn client_errors(&self, id: ClientId) -> Vec<ClientError> {
        let errors = self.clients[id.0].errors.lock();
        errors.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What receivers said against the publications of a client.
    #[must_use]
    pub fn complaints(&self, id: ClientId) -> Vec<PublicationError> {
        let complaints = self.clients[id.0].complaints.lock();
        complaints.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Closes a client, and with it all that was made through it.
    pub fn close_client(&mut self, id: ClientId) {
        self.tell("close client", id.0);
        let state = std::mem::replace(&mut self.clients[id.0].state, ClientState::Closed);
        if let ClientState::Connected(client) = state {
            client.close();
        }
        for publisher in self.publishers.iter_mut().filter(|it| it.client == id) {
            publisher.it.close();
        }
        for subscriber in self.subscribers.iter_mut().filter(|it| it.client == id) {
            subscriber.it.close();
        }
    }

    /// Ends the process of a client as `kill -9` does: from now on it does nothing at all, and closes nothing. What it
    /// has claimed and not committed will never be sent.
    pub fn kill_client(&mut self, id: ClientId) {
        self.tell("kill client", id.0);
        let state = std::mem::replace(&mut self.clients[id.0].state, ClientState::Dead);
        let mut remains: Vec<Box<dyn std::any::Any>> = vec![Box::new(state)];
        for publisher in self.publishers.iter_mut().filter(|it| it.client == id) {
            remains.push(publisher.it.kill());
        }
        for subscriber in self.subscribers.iter_mut().filter(|it| it.client == id) {
            remains.push(subscriber.it.kill());
        }
        self.graveyard.extend(remains);
    }

    /// Stops a client's process for some time, as `SIGSTOP` does.
    pub fn stall_client(&mut self, id: ClientId, pause: Duration) {
        self.tell("stall client", id.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        self.clients[id.0].stalled_until_ns = until_ns;
    }

    /// Closes all clients, and waits until drivers must have noticed and all their timeouts are over.
    pub fn close_all(&mut self) {
        for index in 0..self.clients.len() {
            if !matches!(self.clients[index].state, ClientState::Dead) {
                self.close_client(ClientId(index));
            }
        }
        self.run_for(ALL_TIMEOUTS);
    }
}
