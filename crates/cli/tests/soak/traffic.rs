// SPDX-License-Identifier: Apache-2.0
//! A round of a flow between Taran clients on any drivers: they connect, exchange messages, and close.

use std::thread;
use std::time::{Duration, Instant};

use taran::Publication;

use crate::endpoints::{PublicationSpec, Reader, SubscriptionSpec};
use crate::message::{LENGTHS, message};
use crate::tally::Tally;
use crate::waiting::{POLL_INTERVAL, RoundError, await_all};

/// Time during which a round publishes.
pub(crate) const ROUND: Duration = Duration::from_secs(10);

/// Maximum number of messages per offer loop.
pub(crate) const BURST: u64 = 2;

/// Runs one round on the stream id of the flow.
pub(crate) fn round(
    flow: &'static str,
    stream: i32,
    publication_spec: &PublicationSpec,
    subscription_spec: &[SubscriptionSpec],
    tally: &Tally,
) -> Result<(), RoundError> {
    let mut readers = Vec::new();
    for one in subscription_spec {
        readers.push(one.begin(stream)?);
    }
    let (_client, publication) = publication_spec.begin(stream)?;
    let session_id = publication.session_id();
    await_all("all receive the stream", || {
        Ok(publication.is_connected() && readers.iter().all(|reader| reader.has_image(session_id)))
    })?;
    let (until, mut written) = (Instant::now() + ROUND, 0);
    while Instant::now() < until {
        written += offer(&publication, LENGTHS, written, BURST)?;
        for reader in &mut readers {
            reader.poll()?;
        }
        thread::sleep(POLL_INTERVAL);
    }
    await_all("all have all", || {
        for reader in &mut readers {
            reader.poll()?;
        }
        Ok(readers.iter().all(|reader| reader.has_all(written)))
    })
    .map_err(|why| {
        let have: Vec<u64> = readers.iter().map(Reader::received).collect();
        why.and(&format!("{have:?} of {written}"))
    })?;
    drop(publication);
    for reader in &mut readers {
        reader.end(written)?;
        reader.account(flow, written, tally);
    }
    Ok(())
}

/// Offers at most `most` messages from `number` on; returns how many were accepted.
pub(crate) fn offer(
    publication: &Publication,
    lengths: &[usize],
    number: u64,
    most: u64,
) -> Result<u64, String> {
    for taken in 0..most {
        match publication.offer(&message(lengths, number + taken)) {
            Ok(_) => {}
            Err(error) if error.is_retryable() => return Ok(taken),
            Err(error) => return Err(format!("message {}: {error}", number + taken)),
        }
    }
    Ok(most)
}
