// SPDX-License-Identifier: Apache-2.0
//! Log buffers with arbitrary bytes written by another process while a client polls and offers: frames, metadata, positions
//! and limits.

use taran::{Action, Client, ExclusivePublication, Publication, Subscription};
use taran_core::memory::Region;
use taran_protocol::log::LogKind;
use taran_protocol::response::Response;

use crate::allocation;
use crate::client::{DIRECTORY, Shared};
use crate::log::{self, POSITIONS, TERM_LENGTH};
use crate::script::Script;

/// Largest number of steps; longer scripts are cut.
const STEPS_MAX: usize = 64;
/// Memory limit of the client in bytes.
const COST: usize = 4 << 20;
/// Maximum number of parts per vectored offer and poll.
const PARTS_MAX: usize = 10;
const BLOCK_MAX: usize = 4096;
/// Limits of bounded polls.
const LIMIT: i64 = 4096;

/// Ids of position and limit counters.
const POSITION: usize = 0;
const LIMITS: [usize; 2] = [1, 2];

/// A client and the three logs that it uses.
struct Using {
    client: Client,
    subscription: Subscription,
    shared: Publication,
    exclusive: ExclusivePublication,
    /// Logs of the image, the shared and the exclusive publication.
    logs: [Region; 3],
}

/// Runs a hostile process that writes into the logs of a client.
pub fn run(bytes: &[u8]) {
    let mut shared = Shared::new();
    let mut using = Using::new(&mut shared);
    allocation::within(COST, || using.act(&mut shared, bytes));
}

impl Using {
    fn new(shared: &mut Shared) -> Self {
        let path = |name: &str| format!("{DIRECTORY}/{name}.logbuffer");
        let paths = ["image", "shared", "exclusive"].map(path);
        let kinds = [LogKind::Image, LogKind::Concurrent, LogKind::Exclusive];
        let logs = [0, 1, 2].map(|index| {
            let (log, region) = shared.log(&paths[index], kinds[index]);
            log.set_connected(true);
            region
        });
        let client = shared.connect();
        let has_space = "the ring has space";
        let mut subscription = client
            .async_add_subscription("aeron:ipc", 10)
            .expect(has_space);
        let mut publication = client
            .async_add_publication("aeron:ipc", 10)
            .expect(has_space);
        let mut exclusive = client
            .async_add_exclusive_publication("aeron:ipc", 10)
            .expect(has_space);
        let ids = [
            subscription.registration_id(),
            publication.registration_id(),
            exclusive.registration_id(),
        ];
        let [image_log, shared_log, exclusive_log] = &paths;
        let (session_id, stream_id) = (7, 10);
        let counter = |index: usize| shared.counters[index].id();
        let limits = LIMITS.map(counter);
        let position_counter_id = counter(POSITION);
        for response in [
            Response::SubscriptionReady {
                correlation_id: ids[0],
                status_counter_id: -1,
            },
            Response::AvailableImage {
                image_id: 99,
                session_id,
                stream_id,
                subscription_id: ids[0],
                position_counter_id,
                log_name: image_log,
                source_identity: "aeron:ipc",
            },
            Response::PublicationReady {
                correlation_id: ids[1],
                registration_id: ids[1],
                session_id,
                stream_id,
                limit_counter_id: limits[0],
                status_counter_id: -1,
                log_name: shared_log,
            },
            Response::ExclusivePublicationReady {
                correlation_id: ids[2],
                registration_id: ids[2],
                session_id,
                stream_id,
                limit_counter_id: limits[1],
                status_counter_id: -1,
                log_name: exclusive_log,
            },
        ] {
            shared.send(&response);
            client.do_work(shared.clock.read());
        }
        let answered = "the driver has responded";
        Self {
            subscription: subscription.poll().expect(answered).expect(answered),
            shared: publication.poll().expect(answered).expect(answered),
            exclusive: exclusive.poll().expect(answered).expect(answered),
            client,
            logs,
        }
    }

    fn act(&mut self, shared: &mut Shared, bytes: &[u8]) {
        let mut script = Script::new(bytes);
        assert_eq!(self.subscription.image_count(), 1);
        for _ in 0..STEPS_MAX {
            if script.is_over() {
                break;
            }
            let what = script.u8();
            let region = &self.logs[usize::from(what >> 3) % 3];
            match what & 7 {
                0..=2 => log::frame(region, &mut script),
                3 => log::metadata(region, &mut script),
                4 => {
                    let counter = &shared.counters[usize::from(what >> 3) % 3];
                    counter.set(script.near(&POSITIONS));
                }
                5 => self.offer(usize::from(what >> 3), usize::from(script.u8()) * 17),
                _ => self.poll(what >> 3),
            }
        }
        self.poll(0);
        self.offer(0, 5);
        self.client.do_work(shared.clock.read());
        assert_eq!(self.client.close_reason(), None);
    }

    fn poll(&mut self, how: u8) {
        let mut parts = 0;
        match how & 7 {
            0..=2 => {
                let polled = self.subscription.poll(
                    |part, header| {
                        parts += 1;
                        assert_eq!(header.frame_length() as usize, part.len() + 32);
                        assert!(header.term_offset() + header.frame_length() <= TERM_LENGTH);
                    },
                    PARTS_MAX,
                );
                assert!(polled == Ok(parts) && parts <= PARTS_MAX);
            }
            3 => {
                let polled = self.subscription.controlled_poll(
                    |_, _| {
                        parts += 1;
                        match how >> 3 {
                            0 => Action::Abort,
                            1 => Action::Break,
                            2 => Action::Commit,
                            _ => Action::Continue,
                        }
                    },
                    PARTS_MAX,
                );
                assert!(polled.is_ok() && parts <= PARTS_MAX);
            }
            4 => {
                let polled = self.subscription.block_poll(
                    |block| {
                        let (bytes, begin) = (block.bytes().len(), block.term_offset());
                        assert!(begin >= 0 && bytes <= (TERM_LENGTH - begin) as usize);
                        // Padding is a block of its own, of any length.
                        let is_padding = block.bytes()[6..8] == [0, 0];
                        assert!(bytes <= BLOCK_MAX || is_padding, "a block of {bytes} bytes");
                    },
                    BLOCK_MAX,
                );
                assert!(polled.is_ok());
            }
            5 => {
                let polled = self.subscription.bounded_poll(
                    |_, header| {
                        parts += 1;
                        let length = (i64::from(header.frame_length()) + 31) & !31;
                        assert!(header.position() - length < LIMIT);
                    },
                    LIMIT,
                    PARTS_MAX,
                );
                assert!(polled == Ok(parts) && parts <= PARTS_MAX);
            }
            6 => {
                for image in self.subscription.images() {
                    let from = image.position();
                    let peeked = image.controlled_peek(from, |_, _| Action::Continue, i64::MAX);
                    assert!(peeked.is_err() || peeked.is_ok_and(|to| to >= from));
                    assert_eq!(image.position(), from, "a peek consumes nothing");
                }
            }
            _ => {
                for image in self.subscription.images() {
                    let _ = (image.is_end_of_stream(), image.end_of_stream_position());
                    let position = image.position();
                    let _ = image.set_position(position.saturating_add(64));
                }
            }
        }
    }

    fn offer(&mut self, how: usize, length: usize) {
        let message = [7; 255 * 17];
        let message = &message[..length];
        match how & 7 {
            0 | 1 => {
                if let Ok(position) = self.shared.offer(message) {
                    assert!(position > 0 && position % 32 == 0);
                }
            }
            2 => drop(self.shared.try_claim(length)),
            3 | 4 => {
                let before = self.exclusive.position();
                if let Ok(position) = self.exclusive.offer(message) {
                    assert!(position > before);
                }
            }
            5 => drop(self.exclusive.try_claim(length)),
            6 => drop(self.exclusive.append_padding(length)),
            _ => drop(self.exclusive.offer_block(message)),
        }
        let _ = (self.shared.position(), self.shared.available_window());
        let _ = (self.exclusive.position(), self.exclusive.available_window());
        let _ = self.shared.is_connected();
    }
}
