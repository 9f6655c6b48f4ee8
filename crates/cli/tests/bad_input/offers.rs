// SPDX-License-Identifier: Apache-2.0
//! Messages that are too long, and closed publications.

use taran::{Client, ExclusivePublication, OfferError, Publication};

use crate::attach::{connect, own_socket_address, wait_until};
use crate::process::{Directory, Driver};
use crate::texts::assert_says;

/// An eighth of the term length, and the maximum payload of a datagram with the default MTU.
const LONGEST_MESSAGE: usize = 8_192;
const LONGEST_CLAIM: usize = 1_376;

fn channels() -> [String; 2] {
    [
        "aeron:ipc?term-length=64k".to_owned(),
        format!(
            "aeron:udp?endpoint={}|term-length=64k",
            own_socket_address()
        ),
    ]
}

#[track_caller]
fn assert_too_long<T>(result: Result<T, OfferError>, length: usize, max: usize) {
    match result.map(drop) {
        Ok(()) => panic!("{length} bytes were accepted"),
        Err(error) => {
            assert_eq!(error, OfferError::TooLong { length, max });
            assert!(!error.is_retryable());
            assert_says(
                &error,
                &[
                    &length.to_string(),
                    &max.to_string(),
                    "split",
                    "mtu",
                    "term-length",
                ],
            );
        }
    }
}

fn assert_all_too_long(publication: &Publication, exclusive: &mut ExclusivePublication) {
    let long = vec![7; LONGEST_MESSAGE + 1];
    let parts: [&[u8]; 2] = [&long[..5_000], &long[..5_000]];
    let (length, claim) = (LONGEST_MESSAGE + 1, LONGEST_CLAIM + 1);
    assert_too_long(publication.offer(&long), length, LONGEST_MESSAGE);
    assert_too_long(publication.offer_parts(&parts), 10_000, LONGEST_MESSAGE);
    assert_too_long(
        publication.offer_with(&parts, |_| 0),
        10_000,
        LONGEST_MESSAGE,
    );
    assert_too_long(publication.try_claim(claim), claim, LONGEST_CLAIM);
    assert_too_long(publication.try_claim(usize::MAX), usize::MAX, LONGEST_CLAIM);
    assert_too_long(exclusive.offer(&long), length, LONGEST_MESSAGE);
    assert_too_long(exclusive.offer_parts(&parts), 10_000, LONGEST_MESSAGE);
    assert_too_long(exclusive.offer_with(&parts, |_| 0), 10_000, LONGEST_MESSAGE);
    assert_too_long(exclusive.try_claim(claim), claim, LONGEST_CLAIM);
    assert_too_long(exclusive.try_claim(usize::MAX), usize::MAX, LONGEST_CLAIM);
}

fn publications(client: &Client, channel: &str) -> (Publication, ExclusivePublication) {
    (
        client.add_publication(channel, 10).unwrap(),
        client.add_exclusive_publication(channel, 10).unwrap(),
    )
}

#[test]
fn too_long_message_is_rejected() {
    let directory = Directory::new("long-message");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    for channel in channels() {
        let (publication, mut exclusive) = publications(&client, &channel);
        assert_eq!(
            (
                publication.max_message_length(),
                publication.max_payload_length()
            ),
            (LONGEST_MESSAGE, LONGEST_CLAIM)
        );
        // The error does not depend on the connection: waiting cannot help.
        assert_all_too_long(&publication, &mut exclusive);
        let mut subscription = client.add_subscription(&channel, 10).unwrap();
        wait_until("connected", || {
            publication.is_connected()
                && exclusive.is_connected()
                && subscription.image_count() == 2
        });
        assert_all_too_long(&publication, &mut exclusive);
        // A message of the maximum length is accepted and received; rejected messages left nothing in the stream.
        let longest = vec![8; LONGEST_MESSAGE];
        wait_until("offered", || publication.offer(&longest).is_ok());
        wait_until("offered", || exclusive.offer(&longest).is_ok());
        let mut bytes = 0;
        wait_until("received", || {
            let polled = subscription.poll(
                |fragment, _| {
                    assert!(fragment.iter().all(|byte| *byte == 8));
                    bytes += fragment.len();
                },
                10,
            );
            polled.unwrap();
            bytes == 2 * LONGEST_MESSAGE
        });
        // Back-pressure makes no difference either.
        let full = |error| error == OfferError::BackPressured;
        wait_until("back-pressure", || {
            publication.offer(&longest).is_err_and(full)
        });
        wait_until("back-pressure", || {
            exclusive.offer(&longest).is_err_and(full)
        });
        assert_all_too_long(&publication, &mut exclusive);
    }
    driver.stop("TERM").assert_code(15).assert_silent();
}

#[test]
fn offer_on_closed_publication_fails() {
    let directory = Directory::new("closed");
    let driver = Driver::start(directory.path(), &[]);
    let client = connect(directory.path());
    let channel = "aeron:ipc?term-length=64k";
    let mut subscription = client.add_subscription(channel, 10).unwrap();
    let (publication, mut exclusive) = publications(&client, channel);
    wait_until("connected", || {
        publication.is_connected() && exclusive.is_connected()
    });
    let clone = publication.clone();
    publication.close();
    for closed in [&publication, &clone] {
        assert!(closed.is_closed());
        let error = closed.offer(b"x").unwrap_err();
        assert_eq!(error, OfferError::Closed);
        assert_says(&error, &["closed", "add"]);
        assert_eq!(closed.offer_parts(&[b"x", b"y"]), Err(OfferError::Closed));
        assert_eq!(closed.offer_with(&[b"x"], |_| 0), Err(OfferError::Closed));
        assert_eq!(closed.try_claim(1).err(), Some(OfferError::Closed));
        assert!(!error.is_retryable());
        closed.close();
    }
    // The client remains open, and the publication can be added again.
    let again = client.add_publication(channel, 10).unwrap();
    wait_until("offered", || again.offer(b"again").is_ok());
    wait_until("received", || subscription.poll(|_, _| {}, 1) == Ok(1));

    client.close();
    for error in [
        again.offer(b"x").unwrap_err(),
        again.try_claim(1).unwrap_err(),
        exclusive.offer(b"x").unwrap_err(),
        exclusive.try_claim(1).unwrap_err(),
    ] {
        assert_eq!(error, OfferError::Closed);
    }
    assert!(client.add_publication(channel, 10).is_err());
    assert!(subscription.poll(|_, _| {}, 1).is_err());
    driver.stop("TERM").assert_code(15).assert_silent();
}
