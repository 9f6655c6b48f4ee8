// SPDX-License-Identifier: Apache-2.0
//! Log files: raw polls, and how long logs stay mapped.

use std::path::Path;
use std::time::Duration;

use taran::{Client, ExclusivePublication, RawPollError, Subscription};

use crate::{await_true, connect, driver};

fn stream(client: &Client) -> (ExclusivePublication, Subscription) {
    let subscription = client.add_subscription("aeron:ipc", 1001).unwrap();
    let publication = client.add_exclusive_publication("aeron:ipc", 1001).unwrap();
    await_true("connection", || {
        publication.is_connected() && subscription.is_connected()
    });
    (publication, subscription)
}

#[test]
fn raw_poll_returns_location_of_frames_in_file() {
    let driver = driver();
    let client = connect(&driver, |builder| builder);
    let (mut publication, mut subscription) = stream(&client);
    // Through all three terms, so that every part of the file is read.
    let mut position = 0;
    for number in 0..4_096_u32 {
        await_true("room", || publication.offer(&number.to_le_bytes()).is_ok());
        if number % 64 != 63 {
            continue;
        }
        while position < publication.position() {
            let handler = |block: &taran::RawBlock<'_>| {
                let mut stored = vec![0; block.length()];
                block
                    .file()
                    .read_exact_at(&mut stored, block.file_offset())
                    .unwrap();
                assert!(stored == block.bytes(), "at {}", block.position());
            };
            position += subscription.raw_poll(handler, 1024).unwrap() as i64;
        }
    }
    assert_eq!(position, publication.position());
    assert!(position > 3 * 65_536);
    let image = subscription.image(publication.session_id()).unwrap();
    assert_eq!(subscription.images()[0].raw_poll(|_| (), 1024), Ok(0));
    assert!(image.log_path().exists());
}

#[test]
fn raw_poll_of_deleted_file_fails_and_consumes_nothing() {
    let driver = driver();
    let client = connect(&driver, |builder| builder);
    let (mut publication, mut subscription) = stream(&client);
    publication.offer(b"there").unwrap();
    let image = subscription.image(publication.session_id()).unwrap();
    std::fs::remove_file(image.log_path()).unwrap();
    let refused = subscription.raw_poll(|_| (), 1024);
    assert!(matches!(refused, Err(RawPollError::File(_))), "{refused:?}");
    assert_eq!(subscription.poll(|_, _| (), 10), Ok(1));
}

/// Returns true while this process maps the file, which may be deleted.
fn is_mapped(log: &Path) -> bool {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    maps.contains(log.to_str().unwrap())
}

#[test]
fn conductor_unmaps_image_log_after_resource_linger() {
    // The driver runs in this process and maps the log too, so the test uses the image of a log that the driver has
    // released.
    let driver = driver();
    let lingering = |time| {
        connect(&driver, |builder| {
            builder
                .resource_linger(time)
                .keepalive_interval(Duration::from_millis(5))
        })
    };
    for (linger, stays) in [(Duration::ZERO, false), (Duration::from_secs(3_600), true)] {
        let client = lingering(linger);
        let publisher = connect(&driver, |builder| builder.resource_linger(Duration::ZERO));
        let subscription = client.add_subscription("aeron:ipc", 7).unwrap();
        let publication = publisher.add_publication("aeron:ipc", 7).unwrap();
        await_true("the image", || subscription.is_connected());
        let log = subscription.image_views()[0].log_path().to_path_buf();
        assert!(is_mapped(&log));
        drop(publication);
        publisher.close();
        drop(publisher);
        await_true("the end of the image", || subscription.has_no_images());
        await_true("deletion of the file", || !log.exists());
        if stays {
            assert!(is_mapped(&log), "still mapped by the client");
        } else {
            await_true("unmapping", || !is_mapped(&log));
        }
        client.close();
        await_true("unmapping", || !is_mapped(&log));
    }
}

#[test]
fn close_linger_delays_end_of_streams() {
    let driver = driver();
    let client = connect(&driver, |builder| {
        builder.close_linger(Duration::from_secs(3_600))
    });
    let other = connect(&driver, |builder| builder);
    let mut subscription = other.add_subscription("aeron:ipc", 9).unwrap();
    let publication = client.add_publication("aeron:ipc", 9).unwrap();
    await_true("connection", || {
        publication.is_connected() && subscription.is_connected()
    });
    let mut claim = publication.try_claim(4).unwrap();
    claim.copy_from_slice(b"late");
    let closer = client.clone();
    // The close linger is longer than this test runs.
    std::thread::spawn(move || closer.close());
    await_true("the close", || {
        client.is_closed() && publication.is_closed()
    });
    claim.commit();
    let mut received = Vec::new();
    await_true("the message", || {
        subscription
            .poll(|message, _| received = message.to_vec(), 1)
            .unwrap();
        received == b"late"
    });
    assert!(subscription.is_connected(), "the driver was not notified");
}
