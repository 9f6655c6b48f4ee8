//! A round of a stream between our clients, on whichever drivers: they come, they write and read, they go.

use std::thread;
use std::time::{Duration, Instant};

use taran::Publication;

use crate::ends::{Reader, Reading, Writing};
use crate::message::{LENGTHS, message};
use crate::tally::Tally;
use crate::waiting::{STEP, Trouble, await_all};

/// How long a round writes.
pub(crate) const ROUND: Duration = Duration::from_secs(10);

/// Messages are offered so many at a time.
pub(crate) const BURST: u64 = 2;

/// One round: `stream` is that of the flow.
pub(crate) fn round(
    flow: &'static str,
    stream: i32,
    writing: &Writing,
    reading: &[Reading],
    tally: &Tally,
) -> Result<(), Trouble> {
    let mut readers = Vec::new();
    for one in reading {
        readers.push(one.begin(stream)?);
    }
    let (_client, publication) = writing.begin(stream)?;
    let session_id = publication.session_id();
    await_all("all receive the stream", || {
        Ok(publication.is_connected() && readers.iter().all(|reader| reader.has_image(session_id)))
    })?;
    let (until, mut written) = (Instant::now() + ROUND, 0);
    while Instant::now() < until {
        written += offer(&publication, LENGTHS, written, BURST)?;
        for reader in &mut readers {
            reader.follow()?;
        }
        thread::sleep(STEP);
    }
    await_all("all have all", || {
        for reader in &mut readers {
            reader.follow()?;
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

/// Offers so many messages at most, from `number` on: how many were taken.
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
