//! Clients: connecting, closing, killing.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use taran::{
    Client, ClientBuilder, ClientError, CloseReason, ConnectError, Connecting, Progress,
    PublicationError,
};
use taran_core::clock::{Now, saturating_nanos};

use super::time_stepper::StallMeter;
use super::{ClientId, HostIndex, World};

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

/// A client of a world.
#[derive(Debug)]
pub(super) struct ClientSlot {
    pub(super) host: HostIndex,
    pub(super) state: ClientState,
    /// Time of the next connect attempt.
    next_attempt_ns: i64,
    /// Until this time neither the client nor its publishers and subscribers run.
    pub(super) stalled_until_ns: i64,
    stalls: StallMeter,
    errors: Arc<Mutex<Vec<ClientError>>>,
    ended: Arc<Mutex<Vec<CloseReason>>>,
    publication_errors: Arc<Mutex<Vec<PublicationError>>>,
}

impl ClientSlot {
    /// Returns the client while it is connected.
    pub(super) fn connected(&self) -> Option<&Client> {
        match &self.state {
            ClientState::Connected(client) => Some(client),
            _ => None,
        }
    }

    /// Returns true if it will do no more work.
    pub(super) fn is_over(&self) -> bool {
        !matches!(
            self.state,
            ClientState::Connecting(_) | ClientState::Connected(_)
        )
    }

    /// Runs one duty cycle; returns the amount of work done.
    pub(super) fn do_work(&mut self, now: Now) -> usize {
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

impl World {
    /// Starts to connect a client to the driver of its host.
    pub fn begin_connect(&mut self, host: HostIndex) -> ClientId {
        let number = self.clients.len();
        self.record_op("connect", number);
        let errors: Arc<Mutex<Vec<ClientError>>> = Arc::default();
        let ended: Arc<Mutex<Vec<CloseReason>>> = Arc::default();
        let publication_errors: Arc<Mutex<Vec<PublicationError>>> = Arc::default();
        let (error_sink, end_sink) = (Arc::clone(&errors), Arc::clone(&ended));
        let publication_error_sink = Arc::clone(&publication_errors);
        let nothing: [(&str, &str); 0] = [];
        let builder = ClientBuilder::with_environment(nothing)
            .aeron_dir(self.directory(host))
            .storage(Arc::new(self.storage(host).clone()))
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
        self.clients.push(ClientSlot {
            host,
            state: ClientState::Connecting(Box::new(builder.connecting())),
            next_attempt_ns: 0,
            stalled_until_ns: 0,
            stalls: StallMeter::new(self.hosts[host.0].at(self.clock.read()).nanos),
            errors,
            ended,
            publication_errors,
        });
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

    /// Returns the state of a client.
    #[must_use]
    pub fn client_state(&self, id: ClientId) -> &ClientState {
        &self.clients[id.0].state
    }

    /// Returns how a client ended, as passed to its close handler.
    ///
    /// # Panics
    /// If the handler was called more than once.
    #[must_use]
    pub fn client_end(&self, id: ClientId) -> Option<CloseReason> {
        let ended = self.clients[id.0].ended.lock();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        assert!(ended.len() <= 1, "client {} ended twice: {ended:?}", id.0);
        ended.first().copied()
    }

    /// Returns the longest gap between two duty cycles of a client so far.
    #[must_use]
    pub fn longest_client_stall(&self, id: ClientId) -> Duration {
        let host = &self.hosts[self.clients[id.0].host.0];
        let now_ns = host.at(self.clock.read()).nanos;
        self.clients[id.0].stalls.longest(now_ns)
    }

    /// Returns the errors passed to the error handler of a client.
    #[must_use]
    pub fn client_errors(&self, id: ClientId) -> Vec<ClientError> {
        let errors = self.clients[id.0].errors.lock();
        errors.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the errors that receivers reported for the publications of a client.
    #[must_use]
    pub fn publication_errors(&self, id: ClientId) -> Vec<PublicationError> {
        let publication_errors = self.clients[id.0].publication_errors.lock();
        publication_errors
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Closes a client with its publications and subscriptions.
    pub fn close_client(&mut self, id: ClientId) {
        self.record_op("close client", id.0);
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

    /// Ends the process of a client like `kill -9`: it does no more work and closes nothing. Uncommitted claims are
    /// never sent.
    pub fn kill_client(&mut self, id: ClientId) {
        self.record_op("kill client", id.0);
        let state = std::mem::replace(&mut self.clients[id.0].state, ClientState::Dead);
        let mut objects: Vec<Box<dyn std::any::Any>> = vec![Box::new(state)];
        for publisher in self.publishers.iter_mut().filter(|it| it.client == id) {
            objects.push(publisher.it.kill());
        }
        for subscriber in self.subscribers.iter_mut().filter(|it| it.client == id) {
            objects.push(subscriber.it.kill());
        }
        self.killed.extend(objects);
    }

    /// Pauses a client's process, like `SIGSTOP`.
    pub fn stall_client(&mut self, id: ClientId, pause: Duration) {
        self.record_op("stall client", id.0);
        let until_ns = self.clock.read().nanos + saturating_nanos(pause);
        self.clients[id.0].stalled_until_ns = until_ns;
    }

    /// Closes all clients and waits until drivers have detected that and all timeouts have passed.
    pub fn close_all(&mut self) {
        for index in 0..self.clients.len() {
            if !matches!(self.clients[index].state, ClientState::Dead) {
                self.close_client(ClientId(index));
            }
        }
        self.run_for(ALL_TIMEOUTS);
    }
}
