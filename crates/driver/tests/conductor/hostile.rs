// SPDX-License-Identifier: Apache-2.0
//! Clients that send arbitrary commands in any order: the driver neither panics nor hangs, and frees all of their resources.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};

use crate::fixture::DriverFixture;

const CHANNELS: [&str; 12] = [
    "aeron:ipc",
    "aeron:ipc?session-id=5",
    "aeron:ipc?tether=false",
    "aeron:udp?endpoint=localhost:40001",
    "aeron:udp?endpoint=localhost:40001|session-id=7",
    "aeron:udp?endpoint=localhost:40001|reliable=false",
    "aeron:udp?endpoint=localhost:40002|tags=1,2",
    "aeron:udp?tags=1",
    "aeron:udp?endpoint=localhost:0",
    "aeron:udp?endpoint=some.host:40003",
    "aeron:udp?endpoint=224.0.1.1:40004",
    "aeron:nonsense?|=",
];

/// Next operation of one client. The numbers are small so that clients use the same resources.
#[derive(Clone, Debug)]
enum Operation {
    Publish {
        client: usize,
        channel: usize,
        stream: i32,
        exclusive: bool,
    },
    Subscribe {
        client: usize,
        channel: usize,
        stream: i32,
    },
    Remove {
        client: usize,
        what: u8,
        nth: usize,
    },
    Counter {
        client: usize,
        fixed: bool,
    },
    Session {
        stream: i32,
    },
    Reject {
        nth: usize,
    },
    Destination {
        client: usize,
        nth: usize,
        channel: usize,
    },
    Close {
        client: usize,
    },
    Wait {
        millis: u64,
    },
    Overwrite {
        nth: usize,
        value: i64,
    },
    Raw {
        type_id: i32,
        bytes: Vec<u8>,
    },
    Resolve {
        works: bool,
    },
}

fn operations() -> impl Strategy<Value = Vec<Operation>> {
    let client = 0..3usize;
    let channel = 0..CHANNELS.len();
    let stream = 1..3i32;
    let operation = prop_oneof![
        6 => (client.clone(), channel.clone(), stream.clone(), any::<bool>())
            .prop_map(|(client, channel, stream, exclusive)| Operation::Publish { client, channel, stream, exclusive }),
        6 => (client.clone(), channel.clone(), stream.clone())
            .prop_map(|(client, channel, stream)| Operation::Subscribe { client, channel, stream }),
        5 => (client.clone(), 0..4u8, 0..40usize).prop_map(|(client, what, nth)| Operation::Remove { client, what, nth }),
        2 => (client.clone(), any::<bool>()).prop_map(|(client, fixed)| Operation::Counter { client, fixed }),
        1 => stream.prop_map(|stream| Operation::Session { stream }),
        2 => (0..40usize).prop_map(|nth| Operation::Reject { nth }),
        1 => (client.clone(), 0..40usize, channel)
            .prop_map(|(client, nth, channel)| Operation::Destination { client, nth, channel }),
        1 => client.prop_map(|client| Operation::Close { client }),
        5 => (0..3000u64).prop_map(|millis| Operation::Wait { millis }),
        2 => (0..80usize, any::<i64>()).prop_map(|(nth, value)| Operation::Overwrite { nth, value }),
        2 => (0..20i32, vec(any::<u8>(), 0..80)).prop_map(|(type_id, bytes)| Operation::Raw { type_id, bytes }),
        1 => any::<bool>().prop_map(|works| Operation::Resolve { works }),
    ];
    vec(operation, 1..60)
}

fn perform(
    driver: &mut DriverFixture,
    clients: &mut [i64; 3],
    ids: &mut Vec<i64>,
    operation: &Operation,
) {
    let correlation_id = driver.id();
    let nth = |ids: &[i64], nth: usize| ids.get(nth % ids.len().max(1)).copied().unwrap_or(-5);
    match *operation {
        Operation::Publish {
            client,
            channel,
            stream,
            exclusive,
        } => {
            let (client_id, stream_id, channel) = (clients[client], stream, CHANNELS[channel]);
            driver.send(&if exclusive {
                Command::AddExclusivePublication {
                    client_id,
                    correlation_id,
                    stream_id,
                    channel,
                }
            } else {
                Command::AddPublication {
                    client_id,
                    correlation_id,
                    stream_id,
                    channel,
                }
            });
            ids.push(correlation_id);
        }
        Operation::Subscribe {
            client,
            channel,
            stream,
        } => {
            let (client_id, stream_id, channel) = (clients[client], stream, CHANNELS[channel]);
            driver.send(&Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            });
            ids.push(correlation_id);
        }
        Operation::Remove {
            client,
            what,
            nth: index,
        } => {
            let (client_id, registration_id) = (clients[client], nth(ids, index));
            driver.send(&match what {
                0 => Command::RemoveSubscription {
                    client_id,
                    correlation_id,
                    registration_id,
                },
                1 => Command::RemoveCounter {
                    client_id,
                    correlation_id,
                    registration_id,
                },
                revoke => Command::RemovePublication {
                    client_id,
                    correlation_id,
                    registration_id,
                    revoke: revoke == 2,
                },
            });
        }
        Operation::Counter { client, fixed } => {
            let client_id = clients[client];
            driver.send(&if fixed {
                Command::AddStaticCounter {
                    client_id,
                    correlation_id,
                    registration_id: 3,
                    counter_type_id: 1001,
                    key: b"",
                    label: "static",
                }
            } else {
                Command::AddCounter {
                    client_id,
                    correlation_id,
                    counter_type_id: 1002,
                    key: b"k",
                    label: "c",
                }
            });
            ids.push(correlation_id);
        }
        Operation::Session { stream } => {
            driver.send(&Command::NextAvailableSessionId {
                client_id: 0,
                correlation_id,
                stream_id: stream,
            });
        }
        Operation::Reject { nth: index } => {
            let image_id = nth(ids, index);
            driver.send(&Command::RejectImage {
                client_id: -1,
                correlation_id,
                image_id,
                position: 0,
                reason: b"no",
            });
        }
        Operation::Destination {
            client,
            nth: index,
            channel,
        } => {
            let (client_id, registration_id, channel) =
                (clients[client], nth(ids, index), CHANNELS[channel]);
            driver.send(&Command::AddDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            });
            driver.send(&Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            });
        }
        Operation::Close { client } => {
            let client_id = clients[client];
            driver.send(&Command::ClientClose {
                client_id,
                correlation_id: -1,
            });
            driver.kill(client_id);
            clients[client] = driver.client();
        }
        Operation::Wait { millis } => driver.run_for(Duration::from_millis(millis)),
        Operation::Overwrite { nth, value } => {
            // Clients may write positions and heartbeats.
            let mut counters = driver.counters();
            counters.retain(|meta| {
                [type_id::SUBSCRIBER_POSITION, type_id::CLIENT_HEARTBEAT].contains(&meta.type_id)
            });
            if let Some(meta) = counters.get(nth % counters.len().max(1)) {
                driver.set(meta.id, value);
            }
        }
        Operation::Raw { type_id, ref bytes } => {
            // The type ids of the ring are positive.
            let _ = driver.commands.write(type_id.max(1), bytes);
        }
        Operation::Resolve { works } => {
            let answer = if works {
                Ok(vec!["127.0.0.1".parse().unwrap()])
            } else {
                Err("no".to_owned())
            };
            driver.hosts.answer("some.host", &answer);
        }
    }
    driver.duty_cycle();
    driver.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn arbitrary_commands_leave_no_resources_after_client_timeout(operations in operations()) {
        let mut driver = DriverFixture::new();
        let mut clients = [driver.client(), driver.client(), driver.client()];
        let mut ids = Vec::new();
        for operation in &operations {
            perform(&mut driver, &mut clients, &mut ids, operation);
        }
        for client in clients {
            driver.kill(client);
        }
        // Overwritten heartbeats may lie far in the future.
        for meta in driver.counters() {
            if meta.type_id == type_id::CLIENT_HEARTBEAT {
                driver.set(meta.id, 0);
            }
        }
        for _ in 0..14 {
            driver.run_for(Duration::from_secs(5));
            driver.drain();
        }
        let left: Vec<String> = driver
            .counters()
            .iter()
            .filter(|meta| meta.owner_id != -1)
            .map(|meta| meta.label.to_string())
            .collect();
        prop_assert!(left.is_empty(), "{:?}", left);
        prop_assert!(driver.log_files().is_empty(), "{:?}", driver.log_files());
        prop_assert!(driver.network.open_ports().is_empty(), "{:?}", driver.network.open_ports());
        prop_assert_eq!(driver.system(SystemCounter::BytesCurrentlyMapped), 48_238_592 + 1_048_576);
        prop_assert_eq!(driver.commands.size(), 0);
    }
}
