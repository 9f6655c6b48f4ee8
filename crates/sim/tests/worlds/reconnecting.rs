// SPDX-License-Identifier: Apache-2.0
//! Clients that connect again when their driver is lost, over drivers that die, stop and restart.

use std::collections::BTreeMap;
use std::time::Duration;

use taran::{
    ClientBuilder, ConnectionState, Counter, Lost, Publication, Reconnecting, ReconnectingClient,
    Subscription,
};
use taran_sim::{
    CycleContext, HostEnv, HostIndex, HostSpec, Process, ProcessId, Violation, World, seeded,
};

use super::common::{LONG, STREAM, between, channel};

/// The channels are valid.
const NOT_REFUSED: &str = "no driver refuses a valid channel";
/// Interval of messages in nanoseconds.
const INTERVAL_NS: i64 = 20_000_000;
/// Type of the counters.
const COUNTER: i32 = 1_234;

/// Messages by session: those that were sent, and the numbers of those received.
#[derive(Default)]
struct Exchange {
    sent: BTreeMap<i32, u64>,
    /// By generation of the subscription, too: each starts anew.
    next: BTreeMap<(u64, i32), u64>,
    received: u64,
}

/// A process that publishes numbers, or receives them, and has a counter.
struct Party {
    /// `None` after its end.
    client: Option<ReconnectingClient>,
    publication: Option<Reconnecting<Publication>>,
    subscription: Option<Reconnecting<Subscription>>,
    counter: Option<Reconnecting<Counter>>,
    next_ns: i64,
    losses: Vec<Lost>,
}

impl Party {
    fn start(env: &mut HostEnv, is_publisher: bool) -> Self {
        let (storage, directory) = (env.storage(), env.aeron_dir().to_path_buf());
        let mut client = ReconnectingClient::new(move || {
            ClientBuilder::with_environment::<&str, &str>([])
                .aeron_dir(&directory)
                .storage(storage.clone())
                .invoker(true)
        });
        let endpoint = channel(1);
        Self {
            publication: is_publisher.then(|| client.add_publication(&endpoint, STREAM)),
            subscription: (!is_publisher).then(|| client.add_subscription(&endpoint, STREAM)),
            counter: Some(client.add_counter(COUNTER, [], "reconnecting")),
            client: Some(client),
            next_ns: i64::MIN,
            losses: Vec::new(),
        }
    }

    /// Drops the resources and the client.
    fn close(&mut self) {
        (self.publication, self.subscription, self.counter) = (None, None, None);
        self.client = None;
    }

    fn is_connected(&self) -> bool {
        let client = self.client.as_ref();
        client.is_some_and(|client| *client.state() == ConnectionState::Connected)
    }

    /// Returns how often the resources were made, and checks that it is the same for both.
    fn generation(&mut self) -> Option<u64> {
        let counter = self.counter.as_mut()?;
        counter.get().expect(NOT_REFUSED)?;
        let other = match (&mut self.publication, &mut self.subscription) {
            (Some(publication), _) => {
                publication.get().expect(NOT_REFUSED)?;
                publication.generation()
            }
            (None, Some(subscription)) => {
                subscription.get().expect(NOT_REFUSED)?;
                subscription.generation()
            }
            (None, None) => return None,
        };
        assert_eq!(counter.generation(), other);
        Some(other)
    }

    fn publish(&mut self, now_ns: i64, exchange: &mut Exchange) -> usize {
        let publication = self.publication.as_mut();
        let Some(publication) = publication.and_then(|it| it.get().expect(NOT_REFUSED)) else {
            return 0;
        };
        let session = publication.session_id();
        let number = exchange.sent.get(&session).copied().unwrap_or_default();
        if now_ns < self.next_ns || publication.offer(&number.to_le_bytes()).is_err() {
            return 0;
        }
        self.next_ns = now_ns + INTERVAL_NS;
        exchange.sent.insert(session, number + 1);
        1
    }

    fn receive(&mut self, exchange: &mut Exchange) -> Result<usize, Violation> {
        let Some(subscription) = &mut self.subscription else {
            return Ok(0);
        };
        let mut received = Vec::new();
        if let Some(current) = subscription.get().expect(NOT_REFUSED) {
            // An error until the client has noticed the loss of its driver.
            let _ = current.poll(
                |message, header| {
                    let number = message
                        .first_chunk()
                        .map(|bytes| u64::from_le_bytes(*bytes));
                    received.push((header.session_id(), number));
                },
                10,
            );
        }
        let generation = subscription.generation();
        for (session, number) in &received {
            let Some(number) = *number else {
                return Err(Violation("a message without a number".to_owned()));
            };
            let sent = exchange.sent.get(session).copied().unwrap_or_default();
            let next = exchange.next.entry((generation, *session));
            let next = next.or_insert(number);
            if number >= sent || number != *next {
                let what = format!("session {session}: {number} after {next}, {sent} sent");
                return Err(Violation(what));
            }
            *next += 1;
            exchange.received += 1;
        }
        Ok(received.len())
    }
}

impl Process for Party {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now = context.now();
        let Some(client) = &mut self.client else {
            return Ok(0);
        };
        let before = client.state().clone();
        let worked = client.do_work(now);
        let mut work = worked.map_err(|error| Violation(error.to_string()))?;
        let state = client.state();
        if let ConnectionState::Reconnecting { lost, .. } = state
            && !matches!(before, ConnectionState::Reconnecting { .. })
        {
            let Some(lost) = lost else {
                return Err(Violation("lost for no reason".to_owned()));
            };
            self.losses.push(*lost);
        }
        let exchange = context.shared::<Exchange>();
        work += self.publish(now.nanos, exchange);
        work += self.receive(exchange)?;
        Ok(work)
    }

    fn describe(&self) -> String {
        format!("{:?}, lost {:?}", self.client, self.losses)
    }
}

fn received(world: &World) -> u64 {
    world
        .shared::<Exchange>()
        .map_or(0, |exchange| exchange.received)
}

/// Waits until both are connected, and messages of now have arrived.
fn await_exchange(world: &mut World, parties: [ProcessId; 2]) {
    world.run_until("both are connected", LONG, |world| {
        parties
            .iter()
            .all(|id| world.process::<Party>(*id).is_connected())
    });
    let before = received(world);
    world.run_until("messages arrive", Duration::from_secs(20), |world| {
        received(world) >= before + 20
    });
}

fn generation(world: &mut World, id: ProcessId) -> Option<u64> {
    world.process_mut::<Party>(id).generation()
}

/// Returns the number of counters of the party in the driver of a host.
fn counters(world: &World, host: HostIndex) -> usize {
    let mut count = 0;
    world.counters(host).for_each(|counter| {
        count += usize::from(counter.type_id == COUNTER);
    });
    count
}

seeded! {
    /// Drivers are killed or stopped, and restart after a while: all resources are made anew, nothing arrives twice or
    /// out of order within a stream, and nothing is left at the end.
    drivers_restart, 30, |seed| {
        let mut world = World::new(seed);
        let hosts = [(); 2].map(|()| world.add_host(HostSpec::new()));
        let parties = [0, 1].map(|number| {
            world.spawn(hosts[number], |env| Party::start(env, number == 0))
        });
        await_exchange(&mut world, parties);
        let mut generations = [1, 1];
        for _ in 0..3 {
            let victim = world.random().usize(0..2);
            let is_killed = world.random().bool();
            if is_killed {
                world.kill_driver(hosts[victim]);
            } else {
                world.stop_driver(hosts[victim]);
            }
            let pause = between(&mut world, Duration::ZERO, Duration::from_secs(20));
            world.run_for(pause);
            // It does not start while the heartbeat of the dead one is new.
            while world.try_start_driver(hosts[victim]).is_err() {
                world.run_for(Duration::from_millis(500));
            }
            world.run_until("the loss is noticed", LONG, |world| {
                let losses = world.process::<Party>(parties[victim]).losses.len();
                losses as u64 == generations[victim]
            });
            match world.process::<Party>(parties[victim]).losses.last() {
                Some(lost) if is_killed && *lost != Lost::DriverShutdown => {}
                Some(Lost::DriverShutdown) if !is_killed => {}
                other => panic!("killed: {is_killed}, lost: {other:?}"),
            }
            generations[victim] += 1;
            await_exchange(&mut world, parties);
            for index in [0, 1] {
                let made = generation(&mut world, parties[index]);
                assert_eq!(made, Some(generations[index]), "party {index}");
                assert_eq!(counters(&world, hosts[index]), 1);
            }
        }
        for party in parties {
            world.process_mut::<Party>(party).close();
        }
        world.close_all();
        world.expect_nothing_left();
    }
}
