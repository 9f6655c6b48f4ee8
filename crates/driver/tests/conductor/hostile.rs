//! Clients that send anything, in any order (DESIGN §5): no panic, no hang, and when they are gone nothing is left.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;
use taran_protocol::command::Command;
use taran_protocol::counter::{SystemCounter, type_id};

use crate::bench::Bench;

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

/// What one client does next. Small numbers, so that clients meet.
#[derive(Clone, Debug)]
enum Act {
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
    Scribble {
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

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let client = 0..3usize;
    let channel = 0..CHANNELS.len();
    let stream = 1..3i32;
    let act = prop_oneof![
        6 => (client.clone(), channel.clone(), stream.clone(), any::<bool>())
            .prop_map(|(client, channel, stream, exclusive)| Act::Publish { client, channel, stream, exclusive }),
        6 => (client.clone(), channel.clone(), stream.clone())
            .prop_map(|(client, channel, stream)| Act::Subscribe { client, channel, stream }),
        5 => (client.clone(), 0..4u8, 0..40usize).prop_map(|(client, what, nth)| Act::Remove { client, what, nth }),
        2 => (client.clone(), any::<bool>()).prop_map(|(client, fixed)| Act::Counter { client, fixed }),
        1 => stream.prop_map(|stream| Act::Session { stream }),
        2 => (0..40usize).prop_map(|nth| Act::Reject { nth }),
        1 => (client.clone(), 0..40usize, channel)
            .prop_map(|(client, nth, channel)| Act::Destination { client, nth, channel }),
        1 => client.prop_map(|client| Act::Close { client }),
        5 => (0..3000u64).prop_map(|millis| Act::Wait { millis }),
        2 => (0..80usize, any::<i64>()).prop_map(|(nth, value)| Act::Scribble { nth, value }),
        2 => (0..20i32, vec(any::<u8>(), 0..80)).prop_map(|(type_id, bytes)| Act::Raw { type_id, bytes }),
        1 => any::<bool>().prop_map(|works| Act::Resolve { works }),
    ];
    vec(act, 1..60)
}

fn perform(bench: &mut Bench, clients: &mut [i64; 3], ids: &mut Vec<i64>, act: &Act) {
    let correlation_id = bench.id();
    let nth = |ids: &[i64], nth: usize| ids.get(nth % ids.len().max(1)).copied().unwrap_or(-5);
    match *act {
        Act::Publish {
            client,
            channel,
            stream,
            exclusive,
        } => {
            let (client_id, stream_id, channel) = (clients[client], stream, CHANNELS[channel]);
            bench.send(&if exclusive {
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
        Act::Subscribe {
            client,
            channel,
            stream,
        } => {
            let (client_id, stream_id, channel) = (clients[client], stream, CHANNELS[channel]);
            bench.send(&Command::AddSubscription {
                client_id,
                correlation_id,
                stream_id,
                channel,
            });
            ids.push(correlation_id);
        }
        Act::Remove {
            client,
            what,
            nth: index,
        } => {
            let (client_id, registration_id) = (clients[client], nth(ids, index));
            bench.send(&match what {
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
        Act::Counter { client, fixed } => {
            let client_id = clients[client];
            bench.send(&if fixed {
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
        Act::Session { stream } => {
            bench.send(&Command::NextAvailableSessionId {
                client_id: 0,
                correlation_id,
                stream_id: stream,
            });
        }
        Act::Reject { nth: index } => {
            let image_id = nth(ids, index);
            bench.send(&Command::RejectImage {
                client_id: -1,
                correlation_id,
                image_id,
                position: 0,
                reason: b"no",
            });
        }
        Act::Destination {
            client,
            nth: index,
            channel,
        } => {
            let (client_id, registration_id, channel) =
                (clients[client], nth(ids, index), CHANNELS[channel]);
            bench.send(&Command::AddDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            });
            bench.send(&Command::AddReceiveDestination {
                client_id,
                correlation_id,
                registration_id,
                channel,
            });
        }
        Act::Close { client } => {
            let client_id = clients[client];
            bench.send(&Command::ClientClose {
                client_id,
                correlation_id: -1,
            });
            bench.kill(client_id);
            clients[client] = bench.client();
        }
        Act::Wait { millis } => bench.run_for(Duration::from_millis(millis)),
        Act::Scribble { nth, value } => {
            // Positions and heartbeats are the clients' to write.
            let mut counters = bench.counters();
            counters.retain(|meta| {
                [type_id::SUBSCRIBER_POSITION, type_id::CLIENT_HEARTBEAT].contains(&meta.type_id)
            });
            if let Some(meta) = counters.get(nth % counters.len().max(1)) {
                bench.set(meta.id, value);
            }
        }
        Act::Raw { type_id, ref bytes } => {
            // The type ids of the ring are positive.
            let _ = bench.commands.write(type_id.max(1), bytes);
        }
        Act::Resolve { works } => {
            let answer = if works {
                Ok(vec!["127.0.0.1".parse().unwrap()])
            } else {
                Err("no".to_owned())
            };
            bench.hosts.answer("some.host", &answer);
        }
    }
    bench.turn();
    bench.drain();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn whatever_clients_do_nothing_is_left_when_they_are_gone(acts in acts()) {
        let mut bench = Bench::new();
        let mut clients = [bench.client(), bench.client(), bench.client()];
        let mut ids = Vec::new();
        for act in &acts {
            perform(&mut bench, &mut clients, &mut ids, act);
        }
        for client in clients {
            bench.kill(client);
        }
        // Heartbeats that were scribbled over may lie far in the future.
        for meta in bench.counters() {
            if meta.type_id == type_id::CLIENT_HEARTBEAT {
                bench.set(meta.id, 0);
            }
        }
        for _ in 0..14 {
            bench.run_for(Duration::from_secs(5));
            bench.drain();
        }
        let left: Vec<String> = bench
            .counters()
            .iter()
            .filter(|meta| meta.owner_id != -1)
            .map(|meta| meta.label.to_string())
            .collect();
        prop_assert!(left.is_empty(), "{:?}", left);
        prop_assert!(bench.log_files().is_empty(), "{:?}", bench.log_files());
        prop_assert!(bench.wires.open_ports().is_empty(), "{:?}", bench.wires.open_ports());
        prop_assert_eq!(bench.system(SystemCounter::BytesCurrentlyMapped), 48_238_592 + 1_048_576);
        prop_assert_eq!(bench.commands.size(), 0);
    }
}
