// SPDX-License-Identifier: Apache-2.0
//! Counters that outlive their client (docs/spec/shared-memory.md §9.4).

use std::time::Duration;

use taran::Counter;
use taran_sim::{ClientId, HostSpec, World, seeded};

use super::common::{LONG, between};

const TYPE: i32 = 1_101;
const REGISTRATION: i64 = 77;

/// Adds the static counter with these ids, or finds it if it exists.
fn ask(world: &mut World, client: ClientId) -> Counter {
    let client = world.client(client).clone();
    let mut asked = client
        .async_add_static_counter(TYPE, b"key", "stays", REGISTRATION)
        .unwrap();
    world.run_until("the counter is there", LONG, |_| {
        !client.has_active_commands()
    });
    asked.poll().unwrap().unwrap()
}

fn value(world: &World, id: i32) -> Option<i64> {
    let counters = world.counters(taran_sim::HostIndex::at(0));
    let meta = counters.find(|meta| meta.type_id == TYPE)?;
    assert_eq!((meta.id, meta.label.as_str()), (id, "stays"));
    counters.value(id)
}

seeded! {
    /// Clients die or close at any time: the counter keeps its id and its value, and other clients find it.
    static_outlives_client, 20, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let first = world.connect(host);
        let id = ask(&mut world, first).id();
        for round in 0..3 {
            let client = world.connect(host);
            let found = ask(&mut world, client);
            assert_eq!((found.id(), found.get()), (id, round));
            found.set(round + 1);
            drop(found);
            // A counter of the client itself does not outlive it.
            let own = world.client(client).async_add_counter(TYPE + 1, b"", "goes").unwrap();
            let pause = between(&mut world, Duration::ZERO, Duration::from_millis(50));
            world.run_for(pause);
            if world.random().bool() {
                world.kill_client(client);
                // A dead process does not release what it requested.
                std::mem::forget(own);
            } else {
                drop(own);
                world.close_client(client);
            }
            let pause = between(&mut world, Duration::from_secs(1), Duration::from_secs(15));
            world.run_for(pause);
            assert_eq!(value(&world, id), Some(round + 1));
        }
        world.close_all();
        assert_eq!(value(&world, id), Some(3));
        let own = world.counters(host).find(|meta| meta.type_id == TYPE + 1);
        assert!(own.is_none(), "a client's own counter has outlived it");
        world.expect_no_errors();
    }
}

seeded! {
    /// Static counters end with their driver: its successor has none, and adds them again on request.
    static_ends_with_driver, 15, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let client = world.connect(host);
        ask(&mut world, client).set(5);
        world.kill_driver(host);
        world.run_for(Duration::from_secs(15));
        world.start_driver(host);
        let client = world.connect(host);
        assert!(world.counters(host).find(|meta| meta.type_id == TYPE).is_none());
        let made = ask(&mut world, client);
        assert_eq!(made.get(), 0);
        world.expect_no_errors();
    }
}
