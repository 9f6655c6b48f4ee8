// SPDX-License-Identifier: Apache-2.0
//! Shared publications: all kinds of offers.
//!
//! Needs a running driver: `cargo run --release -- driver`.

mod limit;

use std::time::{Duration, Instant};

use taran::idle::Yield;
use taran::{Client, ClientBuilder, OfferError};

use self::limit::Limit;

fn main() -> anyhow::Result<()> {
    run(Client::builder())
}

pub(crate) fn run(builder: ClientBuilder) -> anyhow::Result<()> {
    let client = builder.connect()?;
    let mut subscription = client.add_subscription("aeron:ipc", 1001)?;
    // Any number of threads may use a publication; all clones refer to the same one.
    let publication = client.add_publication("aeron:ipc", 1001)?;

    // Repeated up to a deadline while the error is retryable: no receiver yet, back-pressure, term rotation.
    let deadline = Instant::now() + Duration::from_secs(10);
    publication.offer_until(b"a message", deadline, &mut Yield)?;

    // Several slices, concatenated into one message. `retry_until` repeats any kind of offer.
    publication.retry_until(deadline, &mut Yield, |publication| {
        publication.offer_parts(&[b"head ", b"body ", b"tail"])
    })?;

    // With the reserved value in the header of each frame, here a checksum.
    let checksum = |payload: &[u8]| payload.iter().map(|byte| i64::from(*byte)).sum();
    publication.retry_until(deadline, &mut Yield, |publication| {
        publication.offer_with(&[b"checked"], checksum)
    })?;

    // Written in place, without a copy. Dropping a claim aborts it; later messages wait for the claim.
    let claim =
        publication.retry_until(deadline, &mut Yield, |publication| publication.try_claim(5));
    let mut claim = claim?;
    claim.copy_from_slice(b"claim");
    claim.commit();

    // Longer than a frame: the message is fragmented, see the example `subscribing`.
    let long = vec![7; publication.max_payload_length() + 1];
    let position = publication.offer_until(&long, deadline, &mut Yield)?;
    println!(
        "at {position}, {} bytes to go, longest message {}",
        publication.available_window(),
        publication.max_message_length()
    );

    // A message that is too long is rejected with the maximum length.
    let too_long = vec![0; publication.max_message_length() + 1];
    if let Err(OfferError::TooLong { length, max }) = publication.offer(&too_long) {
        println!("{length} bytes are more than {max}");
    }

    let limit = Limit::new();
    let mut fragments = 0;
    while fragments < 6 {
        fragments += subscription.poll(
            |fragment, header| {
                let (length, value) = (fragment.len(), header.reserved_value());
                println!("{length} bytes, reserved value {value}");
            },
            10,
        )?;
        limit.wait_for("all fragments")?;
    }
    Ok(())
}
