// SPDX-License-Identifier: Apache-2.0
//! Raw polls: blocks are where they are said to be in the stored log.

use taran::{ClientBuilder, Reconnecting, ReconnectingClient, Subscription};
use taran_sim::{
    CycleContext, HostEnv, HostSpec, Process, PublisherSpec, Violation, World, seeded,
};

use super::common::{LONG, STREAM, channel, end};

/// A process that consumes a stream by raw polls, and compares each block with the stored log.
struct RawReader {
    /// `None` after its end.
    client: Option<ReconnectingClient>,
    subscription: Option<Reconnecting<Subscription>>,
    /// Bytes of frames consumed.
    consumed: u64,
}

impl RawReader {
    fn start(env: &mut HostEnv, channel: &str) -> Self {
        let (storage, directory) = (env.storage(), env.aeron_dir().to_path_buf());
        let mut client = ReconnectingClient::new(move || {
            ClientBuilder::with_environment::<&str, &str>([])
                .aeron_dir(&directory)
                .storage(storage.clone())
                .invoker(true)
        });
        Self {
            subscription: Some(client.add_subscription(channel, STREAM)),
            client: Some(client),
            consumed: 0,
        }
    }

    fn poll(&mut self, limit_bytes: usize) -> Result<usize, Violation> {
        let subscription = self.subscription.as_mut();
        let subscription = subscription.and_then(|it| it.get().expect("the channel is valid"));
        let Some(subscription) = subscription else {
            return Ok(0);
        };
        let mut difference = None;
        let polled = subscription.raw_poll(
            |block| {
                let mut stored = vec![0; block.length()];
                let read = block.file().read_exact_at(&mut stored, block.file_offset());
                if read.is_err() || stored != block.bytes() {
                    difference = Some(format!("{read:?} at {}", block.position()));
                }
            },
            limit_bytes,
        );
        match (polled, difference) {
            (Ok(consumed), None) => {
                self.consumed += consumed as u64;
                Ok(consumed)
            }
            (polled, difference) => Err(Violation(format!("{polled:?}, {difference:?}"))),
        }
    }
}

impl Process for RawReader {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now = context.now();
        let Some(client) = &mut self.client else {
            return Ok(0);
        };
        let worked = client.do_work(now);
        let work = worked.map_err(|error| Violation(error.to_string()))?;
        let limit_bytes = context.env().random().usize(1_500..20_000);
        Ok(work + self.poll(limit_bytes)?)
    }

    fn describe(&self) -> String {
        format!("{} bytes consumed", self.consumed)
    }
}

seeded! {
    /// Streams of more than three terms, over IPC and UDP: the stored log has the bytes of each block where it says.
    blocks_are_in_the_stored_log, 20, |seed| {
        let mut world = World::new(seed);
        let host = world.add_host(HostSpec::new());
        let channel = match world.random().bool() {
            true => "aeron:ipc".to_owned(),
            false => channel(0),
        };
        let reader = world.spawn(host, |env| RawReader::start(env, &channel));
        let client = world.connect(host);
        let spec = PublisherSpec::new(&channel, STREAM).messages(1_000);
        let publisher = world.publish(client, spec);
        world.run_until("all is consumed", LONG, |world| {
            let publisher = world.publisher(publisher);
            let consumed = world.process::<RawReader>(reader).consumed;
            publisher.is_done() && consumed as i64 == publisher.position()
        });
        assert!(world.publisher(publisher).position() > 3 * 65_536);
        let process = world.process_mut::<RawReader>(reader);
        (process.subscription, process.client) = (None, None);
        end(world);
    }
}
