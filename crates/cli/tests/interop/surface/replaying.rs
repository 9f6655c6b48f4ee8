// SPDX-License-Identifier: Apache-2.0
//! Block polls, appended blocks and bounded, controlled and peeking polls.

use taran::{Action, ChannelUriBuilder, Client, ExclusivePublication, Subscription};

use super::{receive, send_exclusive};
use crate::drivers::Driver;
use crate::exchange::{await_true, connect, udp};

const STREAM: i32 = 2_004;

fn stream(client: &Client) -> (ExclusivePublication, Subscription) {
    let channel = "aeron:ipc?term-length=64k";
    let subscription = client.add_subscription(channel, STREAM).unwrap();
    let publication = client.add_exclusive_publication(channel, STREAM).unwrap();
    await_true("connection", || {
        publication.is_connected() && subscription.is_connected()
    });
    (publication, subscription)
}

/// Appends a block of messages or a padding frame.
fn append(copy: &mut ExclusivePublication, block: &[u8]) {
    const FRAME_TYPE: usize = 6;
    match block.get(FRAME_TYPE) {
        None => {}
        Some(0) => await_true("room", || copy.append_padding(block.len() - 32).is_ok()),
        Some(_) => await_true("room", || copy.offer_block(block).is_ok()),
    }
}

pub(super) fn appended_blocks_and_padding_replay_a_stream(driver: &Driver) {
    let client = connect(driver.dir());
    let (mut publication, mut subscription) = stream(&client);
    let endpoint = udp("").split_once("endpoint=").unwrap().1.to_owned();
    // The copy starts at the position of the original, with the same session id.
    let copy_of = ChannelUriBuilder::udp()
        .endpoint(&endpoint)
        .session_id(publication.session_id())
        .initial_position(0, publication.initial_term_id(), 64 * 1024)
        .mtu(publication.max_payload_length() + 32)
        .build()
        .unwrap();
    let mut receiver = client
        .add_subscription(format!("aeron:udp?endpoint={endpoint}"), STREAM)
        .unwrap();
    let mut copy = client
        .add_exclusive_publication(copy_of.as_str(), STREAM)
        .unwrap();
    await_true("connection of the copy", || copy.is_connected());

    publication.append_padding(100).unwrap();
    let mut next = 0;
    for number in 0..3_000_u32 {
        send_exclusive(&mut publication, &number.to_le_bytes());
        if number % 100 != 99 {
            continue;
        }
        while copy.position() < publication.position() {
            let mut block = Vec::new();
            subscription
                .block_poll(|found| block = found.bytes().to_vec(), 16 * 1024)
                .unwrap();
            append(&mut copy, &block);
        }
        await_true("the messages of the copy", || {
            receiver
                .poll(
                    |message, header| {
                        assert_eq!(message, u32::to_le_bytes(next));
                        assert_eq!(header.session_id(), publication.session_id());
                        next += 1;
                    },
                    100,
                )
                .unwrap();
            next == number + 1
        });
    }
    assert_eq!(copy.position(), publication.position());
    assert_eq!(copy.term_id(), publication.term_id());
}

pub(super) fn image_position_peek_and_bounded_polls_work(driver: &Driver) {
    let client = connect(driver.dir());
    let (mut publication, mut subscription) = stream(&client);
    for number in 0..10_u8 {
        send_exclusive(&mut publication, &[number]);
    }
    let id = subscription.image_views()[0].correlation_id();
    assert_eq!(
        subscription
            .image(publication.session_id())
            .unwrap()
            .correlation_id(),
        id
    );
    let image = subscription.image_mut_by_correlation_id(id).unwrap();
    let mut seen = Vec::new();
    let peeked = image.controlled_peek(
        0,
        |message, _| {
            seen.push(message[0]);
            if seen.len() == 3 {
                Action::Break
            } else {
                Action::Continue
            }
        },
        i64::MAX,
    );
    assert_eq!((peeked, image.position()), (Ok(192), 0));
    assert_eq!(seen, [0, 1, 2]);
    assert_eq!(image.bounded_poll(|_, _| (), 128, 10), 2);
    image.set_position(320).unwrap();
    assert!(image.set_position(321).is_err() && image.set_position(0).is_err());
    assert_eq!(
        client.counters().value(image.subscriber_position_id()),
        Some(320)
    );
    assert_eq!(receive(&mut subscription), [5]);
    let mut taken = subscription.take_image_by_correlation_id(id).unwrap();
    let mut again = 0;
    let fragments = taken.controlled_poll(
        |message, _| {
            again += 1;
            match message[0] {
                8 => Action::Abort,
                _ => Action::Commit,
            }
        },
        10,
    );
    assert_eq!((fragments, again), (2, 3));
    drop(taken);
    assert_eq!(receive(&mut subscription), [8]);
}
