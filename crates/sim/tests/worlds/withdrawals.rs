// SPDX-License-Identifier: Apache-2.0
//! Resources that are requested and released at any time (docs/spec/shared-memory.md §9.4, §9.5, §10.1).

use std::time::Duration;

use taran::{
    Client, CommandError, Counter, ExclusivePublication, Pending, Publication, Subscription,
};
use taran_sim::seeded;

use super::common::{LONG, Pair, STREAM, channel};

/// A request that the driver may or may not have answered.
enum Asked {
    Shared(Pending<Publication>),
    Exclusive(Pending<ExclusivePublication>),
    Subscription(Pending<Subscription>),
    Counter(Pending<Counter>),
}

impl Asked {
    fn ask(client: &Client, kind: usize, ipc: bool) -> Result<Self, CommandError> {
        let stream_id = STREAM + 1;
        let (to, from) = if ipc {
            ("aeron:ipc".to_owned(), "aeron:ipc".to_owned())
        } else {
            (channel(1), channel(0))
        };
        Ok(match kind {
            0 => Self::Shared(client.async_add_publication(to, stream_id)?),
            1 => Self::Exclusive(client.async_add_exclusive_publication(to, stream_id)?),
            2 => Self::Subscription(client.async_add_subscription(from, stream_id)?),
            _ => Self::Counter(client.async_add_counter(1_101, b"", "asked for")?),
        })
    }

    /// Removes the resource by its id, whether it exists or not.
    fn remove(&self, client: &Client) -> Result<Pending<()>, CommandError> {
        match self {
            Self::Shared(asked) => client.async_remove_publication(asked.registration_id()),
            Self::Exclusive(asked) => client.async_remove_publication(asked.registration_id()),
            Self::Subscription(asked) => client.async_remove_subscription(asked.registration_id()),
            Self::Counter(asked) => client.async_remove_counter(asked.registration_id()),
        }
    }

    /// Returns true if the driver has refused it: a channel that is closing is available only a moment later.
    fn is_refused(&mut self) -> bool {
        fn is_refusal<T>(outcome: &Option<Result<T, CommandError>>) -> bool {
            matches!(outcome, Some(Err(CommandError::Registration(_))))
        }
        match self {
            Self::Shared(asked) => is_refusal(&asked.poll()),
            Self::Exclusive(asked) => is_refusal(&asked.poll()),
            Self::Subscription(asked) => is_refusal(&asked.poll()),
            Self::Counter(asked) => is_refusal(&asked.poll()),
        }
    }

    /// Closes the resource by its handle, if it exists.
    fn close(&mut self) -> Option<Pending<()>> {
        match self {
            Self::Shared(asked) => asked.poll()?.ok()?.async_close().ok(),
            Self::Exclusive(asked) => asked.poll()?.ok()?.async_close().ok(),
            Self::Subscription(asked) => asked.poll()?.ok()?.async_close().ok(),
            Self::Counter(asked) => asked.poll()?.ok()?.async_close().ok()?,
        }
    }
}

seeded! {
    /// Publications, subscriptions and counters are requested and closed by their handles, removed by their ids,
    /// withdrawn before they exist, or dropped, while a stream flows: each close is answered, and nothing is left.
    resources_closed_at_any_time_leave_nothing, 40, |seed| {
        let mut pair = Pair::with_random_faults(seed);
        let flow = pair.flow(300);
        let client = pair.world.client(pair.clients[0]).clone();
        let mut asked = Vec::new();
        let mut answers = Vec::new();
        for _ in 0..40 {
            let random = pair.world.random();
            let (kind, ipc, what) = (random.usize(0..4), random.bool(), random.usize(0..4));
            let pause = Duration::from_micros(random.u64(0..3_000));
            asked.push(Asked::ask(&client, kind, ipc).unwrap());
            pair.world.run_for(pause);
            let index = pair.world.random().usize(0..asked.len());
            match what {
                0 => {
                    let mut asked = asked.swap_remove(index);
                    match asked.remove(&client) {
                        Ok(answer) => answers.push(answer),
                        Err(error) => assert!(asked.is_refused(), "{error}"),
                    }
                }
                1 => {
                    let mut asked = asked.swap_remove(index);
                    answers.extend(asked.close());
                }
                2 => drop(asked.swap_remove(index)),
                _ => {}
            }
        }
        drop(asked);
        let commands = client.clone();
        pair.world.run_until("all commands are answered", LONG, |_| {
            !commands.has_active_commands()
        });
        for mut answer in answers {
            match answer.poll() {
                Some(Ok(())) => {}
                // Withdrawn and then refused by the driver, which has nothing to remove.
                Some(Err(CommandError::Registration(refused))) => {
                    assert!(refused.text.starts_with("unknown "), "{refused}");
                }
                other => panic!("{other:?}"),
            }
        }
        pair.await_all(flow);
        drop((client, commands));
        pair.world.close_all();
        pair.world.expect_nothing_left();
        pair.world.expect_no_errors_but(&[
            "found in CLOSING state, please retry",
            "unknown publication",
            "unknown subscription",
        ]);
    }
}
