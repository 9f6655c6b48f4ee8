// SPDX-License-Identifier: Apache-2.0
//! Output of a hostile driver to a client: events with arbitrary fields, arbitrary records, arbitrary bytes over the
//! broadcast buffer, and false counters.

use std::path::Path;
use std::time::Duration;

use taran::{Client, Counter, ExclusivePublication, Pending, Publication, Storage, Subscription};
use taran_protocol::log::LogKind;
use taran_protocol::response::Response;

use crate::allocation;
use crate::client::{DIRECTORY, Shared};
use crate::script::Script;

/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 48;
/// Memory limit of the client in bytes.
const COST: usize = 4 << 20;

const LOGS: [&str; 5] = ["shared", "exclusive", "image", "short", "none"];

const TIMES: [Duration; 4] = [
    Duration::ZERO,
    Duration::from_millis(10),
    Duration::from_millis(600),
    Duration::from_secs(4),
];

/// Runs the responses of a hostile driver.
pub fn run(bytes: &[u8]) {
    let mut shared = fresh();
    allocation::within(COST, || act(&mut shared, bytes));
}

fn path(name: &str) -> String {
    format!("{DIRECTORY}/{name}.logbuffer")
}

fn fresh() -> Shared {
    let shared = Shared::new();
    shared.log(&path("shared"), LogKind::Concurrent);
    shared.log(&path("exclusive"), LogKind::Exclusive);
    shared.log(&path("image"), LogKind::Image);
    let short = shared
        .storage
        .write_file(Path::new(&path("short")), &[1; 5000]);
    assert!(short.is_ok());
    shared
}

/// A client with one pending request of each kind, and the resources that the requests have returned.
struct Requests {
    client: Client,
    shared: Pending<Publication>,
    exclusive: Pending<ExclusivePublication>,
    subscription: Pending<Subscription>,
    counter: Pending<Counter>,
    resources: Resources,
}

/// Resources that the driver has granted.
#[derive(Default)]
struct Resources {
    shared: Option<Publication>,
    exclusive: Option<ExclusivePublication>,
    subscription: Option<Subscription>,
    counter: Option<Counter>,
}

impl Requests {
    fn new(client: Client) -> Self {
        let has_space = "the ring has space";
        Self {
            shared: client
                .async_add_publication("aeron:ipc", 10)
                .expect(has_space),
            exclusive: client
                .async_add_exclusive_publication("aeron:ipc", 10)
                .expect(has_space),
            subscription: client
                .async_add_subscription("aeron:ipc", 10)
                .expect(has_space),
            counter: client
                .async_add_counter(1001, b"key", "label")
                .expect(has_space),
            client,
            resources: Resources::default(),
        }
    }

    /// Returns the ids of the requested resources.
    fn ids(&self) -> Vec<i64> {
        vec![
            self.shared.registration_id(),
            self.exclusive.registration_id(),
            self.subscription.registration_id(),
            self.counter.registration_id(),
            self.client.client_id(),
            77,
        ]
    }

    fn run_cycle(&mut self, shared: &Shared) {
        self.client.do_work(shared.clock.read());
        let resources = &mut self.resources;
        resources.shared = resources.shared.take().or_else(|| self.shared.poll()?.ok());
        resources.exclusive = resources
            .exclusive
            .take()
            .or_else(|| self.exclusive.poll()?.ok());
        resources.subscription = resources
            .subscription
            .take()
            .or_else(|| self.subscription.poll()?.ok());
        resources.counter = resources
            .counter
            .take()
            .or_else(|| self.counter.poll()?.ok());
    }

    /// Uses the resources.
    fn use_resources(&mut self) {
        if let Some(publication) = &self.resources.shared {
            let _ = publication.offer(b"message");
            let _ = (publication.position(), publication.available_window());
            let _ = (publication.is_connected(), publication.channel_status());
        }
        if let Some(publication) = &mut self.resources.exclusive {
            let _ = publication.offer(&[1; 3000]);
            let _ = publication.available_window();
        }
        if let Some(subscription) = &mut self.resources.subscription {
            let mut parts = 0;
            let polled = subscription.poll(|_, _| parts += 1, 10);
            match polled {
                Ok(polled) => assert!(polled == parts && parts <= 10),
                // Nothing can be polled once the client has ended, or the subscription with it.
                Err(_) => assert!(parts == 0),
            }
            let _ = (
                subscription.channel_status(),
                subscription.local_socket_addresses(),
            );
        }
        if let Some(counter) = &self.resources.counter {
            let before = counter.get();
            counter.set(7);
            // A closed counter keeps its last value, even if its memory is in use again.
            let expected = if counter.is_closed() { before } else { 7 };
            assert_eq!(counter.get(), expected);
        }
    }
}

fn act(shared: &mut Shared, bytes: &[u8]) {
    let mut script = Script::new(bytes);
    let mut requests = Requests::new(shared.connect());
    for _ in 0..STEPS_MAX {
        if script.is_over() {
            break;
        }
        let what = script.u8();
        match what >> 5 {
            0..=3 => respond(shared, &mut script, &requests.ids()),
            4 => {
                let type_id = match script.u8() {
                    known @ 0..0x20 => 0x0F00 + i32::from(known),
                    _ => script.i32(),
                };
                shared.send_raw(type_id, script.chunk());
            }
            5 => scribble(shared, &mut script),
            6 => {
                shared.clock.advance(TIMES[usize::from(what & 3)]);
                if what & 4 == 0 {
                    shared.heartbeat();
                }
            }
            _ => requests.use_resources(),
        }
        if what & 1 == 0 {
            requests.run_cycle(shared);
        }
    }
    requests.run_cycle(shared);
    requests.use_resources();
    requests.run_cycle(shared);
    requests.client.close();
    assert!(requests.client.is_closed());
    requests.use_resources();
}

/// Sends a response whose fields are near valid ones.
fn respond(shared: &mut Shared, script: &mut Script<'_>, ids: &[i64]) {
    let kind = script.u8();
    let id = script.near(ids);
    let other = script.near(ids);
    let counter_id = script.near(&[0, 1, 2, 3, -1, 15, 16]) as i32;
    let status_id = script.near(&[-1, 3, 0, 16]) as i32;
    let choice = script.below(LOGS.len() + 1);
    let arbitrary = String::from_utf8_lossy(if choice == LOGS.len() {
        script.chunk()
    } else {
        b""
    });
    let log_name = LOGS
        .get(choice)
        .map_or_else(|| arbitrary.into_owned(), |name| path(name));
    let log_name = log_name.as_str();
    let (session_id, stream_id) = (7, 10);
    let text = script.take(usize::from(kind >> 4));
    let response = match kind % 13 {
        0 => Response::Error {
            correlation_id: id,
            error_code: counter_id,
            message: text,
        },
        1 | 2 => Response::AvailableImage {
            image_id: other,
            session_id,
            stream_id,
            subscription_id: id,
            position_counter_id: counter_id,
            log_name,
            source_identity: "aeron:ipc",
        },
        3 => Response::PublicationReady {
            correlation_id: id,
            registration_id: other,
            session_id,
            stream_id,
            limit_counter_id: counter_id,
            status_counter_id: status_id,
            log_name,
        },
        4 => Response::ExclusivePublicationReady {
            correlation_id: id,
            registration_id: other,
            session_id,
            stream_id,
            limit_counter_id: counter_id,
            status_counter_id: status_id,
            log_name,
        },
        5 => Response::OperationSuccess { correlation_id: id },
        6 => Response::UnavailableImage {
            image_id: other,
            subscription_id: id,
            stream_id,
            channel: "",
        },
        7 => Response::SubscriptionReady {
            correlation_id: id,
            status_counter_id: status_id,
        },
        8 => Response::CounterReady {
            correlation_id: id,
            counter_id,
        },
        9 => Response::UnavailableCounter {
            registration_id: id,
            counter_id,
        },
        10 => Response::ClientTimeout { client_id: id },
        11 => Response::PublicationError {
            registration_id: id,
            destination_id: other,
            session_id,
            stream_id,
            receiver_id: other,
            group_tag: other,
            source: ([10, 0, 0, 2], 5).into(),
            error_code: counter_id,
            message: text,
        },
        _ => Response::NextAvailableSessionId {
            correlation_id: id,
            session_id: counter_id,
        },
    };
    shared.send(&response);
}

/// Writes arbitrary bytes over shared memory.
fn scribble(shared: &Shared, script: &mut Script<'_>) {
    let area = script.u8();
    let capacity = shared.cnc.to_clients.len() - 128;
    let (region, start) = match area & 7 {
        0..=2 => (
            &shared.cnc.to_clients,
            capacity + usize::from(area >> 5 & 3) * 8,
        ),
        3 | 4 => (&shared.cnc.to_clients, usize::from(script.u16())),
        5 => (&shared.cnc.counters_values, usize::from(script.u16())),
        6 => (&shared.cnc.counters_metadata, usize::from(script.u16())),
        _ => (
            &shared.cnc.to_driver,
            8 * 1024 + usize::from(area >> 5) * 128,
        ),
    };
    let start = (start % region.len()) & !7;
    let length = script.below(17);
    let bytes = script.take(length);
    region.copy_racing_in(start, &bytes[..bytes.len().min(region.len() - start)]);
}
