//! Points at which a victim stands still to be killed, in the middle of something that others have to live with.

use std::convert::Infallible;
use std::path::Path;
use std::time::Instant;

use taran::{Client, OfferError};
use taran_core::memory::{FileStorage, Region, Storage};
use taran_core::ring::many_to_one::Producer as CommandProducer;
use taran_core::sync::Ordering;
use taran_protocol::cnc::{CNC_FILE_NAME, Cnc};
use taran_protocol::command::Command;
use taran_protocol::log::LogBuffers;

use super::{Death, Order, Trouble};
use crate::bench::PATIENCE;
use crate::message::{HEADER_LENGTH, Producer};

/// Bytes before the payload of a frame.
const FRAME_HEADER: usize = 32;
const BEGIN_FLAG: u8 = 0x80;
/// Bytes behind the records of a ring, and where in them the tail is (docs/spec/shared-memory.md §3.1).
const RING_TRAILER: usize = 768;
const RING_TAIL: usize = 128;

/// Goes there and waits for its end.
pub(super) fn go_to(point: Death, order: &Order, client: &Client) -> Result<Infallible, Trouble> {
    let mut random = order.random();
    let streams = order.shared_streams();
    let stream = &streams[random.usize(..streams.len())];
    match point {
        Death::SharedClaim => {
            let publication = client.add_publication(&stream.channel, stream.id)?;
            let length = random.usize(HEADER_LENGTH..1_300);
            let _claim = await_accepted(|| publication.try_claim(length))?;
            stand_here()
        }
        Death::ExclusiveClaim => {
            let mut publication = client.add_exclusive_publication(&stream.channel, stream.id)?;
            let mut producer = Producer::new(order.producer(0));
            for _ in 0..random.usize(..20) {
                let mut message = vec![0; random.usize(HEADER_LENGTH..3_000)];
                producer.write(&mut message);
                await_accepted(|| publication.offer(&message))?;
                producer.accepted();
            }
            while let Err(error) = publication.try_claim(100).map(std::mem::forget) {
                retry(error)?;
            }
            stand_here()
        }
        Death::HalfMessage | Death::BareRoom => {
            let publication = client.add_publication(&stream.channel, stream.id)?;
            // One whole message first: it is connected, and there is room.
            let mut message = [0; 100];
            Producer::new(order.producer(0)).write(&mut message);
            await_accepted(|| publication.offer(&message))?;
            let log = open_log(&order.directory, publication.original_registration_id());
            if point == Death::BareRoom {
                let length = 64 * random.i64(1..20);
                take_room(&log, length);
            } else {
                half_message(&log);
            }
            stand_here()
        }
        Death::HalfCommand => {
            let ring = open_cnc(&order.directory).to_driver;
            let producer = CommandProducer::open(&ring).map_err(|error| error.to_string())?;
            let mut bytes = Vec::new();
            let type_id = Command::AddPublication {
                client_id: client.client_id(),
                correlation_id: producer.next_correlation_id(),
                stream_id: stream.id,
                channel: &stream.channel,
            }
            .encode(&mut bytes);
            let mut claim = producer
                .try_claim(type_id, bytes.len())
                .map_err(|error| error.to_string())?;
            let written = random.usize(..bytes.len());
            claim[..written].copy_from_slice(&bytes[..written]);
            stand_here()
        }
        Death::BareCommandRoom => {
            take_command_room(&open_cnc(&order.directory).to_driver, 8 * random.i64(1..40));
            stand_here()
        }
        Death::Roaming | Death::Starting => unreachable!("no points"),
    }
}

/// Whoever started this process kills it now. If that one died itself, so does this.
fn stand_here() -> ! {
    println!("HERE");
    let _ = std::io::stdin().read_line(&mut String::new());
    // No destructor runs, so that nothing is finished after all.
    std::process::exit(1)
}

/// Offers until it is accepted.
fn await_accepted<T>(mut offer: impl FnMut() -> Result<T, OfferError>) -> Result<T, Trouble> {
    let deadline = Instant::now() + PATIENCE;
    loop {
        match offer() {
            Ok(accepted) => return Ok(accepted),
            Err(error) => retry(error)?,
        }
        if Instant::now() > deadline {
            return Err("nothing was accepted for too long".to_owned().into());
        }
    }
}

/// Waits a little before an offer is repeated, if that makes sense.
fn retry(error: OfferError) -> Result<(), Trouble> {
    match error {
        OfferError::DriverLost(lost) => Err(Trouble::of_lost(lost)),
        error if error.is_retryable() => {
            std::thread::yield_now();
            Ok(())
        }
        error => Err(error.to_string().into()),
    }
}

fn open_cnc(directory: &Path) -> Cnc {
    Cnc::open(&FileStorage.open(&directory.join(CNC_FILE_NAME)).unwrap()).unwrap()
}

fn open_log(directory: &Path, registration_id: i64) -> LogBuffers {
    let path = directory.join(format!("publications/{registration_id}.logbuffer"));
    LogBuffers::open(&FileStorage.open(&path).unwrap()).unwrap()
}

/// Moves the tail of the active term, as a publisher does first of all. Where that was.
fn take_room(log: &LogBuffers, length: i64) -> Option<(usize, usize)> {
    let partition = log.active_term_count().rem_euclid(3) as usize;
    let tail = log.metadata().tails[partition].fetch_add(length, Ordering::AcqRel);
    let offset = (tail & 0xffff_ffff) as usize;
    // Behind the end, a publisher would turn the log next. This one died before.
    (offset + length as usize <= log.term_length() as usize).then_some((partition, offset))
}

/// Takes room for three frames, finishes the first, begins the second, and leaves the third alone.
fn half_message(log: &LogBuffers) {
    let length = log.mtu() as usize;
    let Some((partition, offset)) = take_room(log, 3 * length as i64) else {
        return;
    };
    let term = log.term(partition);
    let term_id = log.raw_tail(partition).term_id();
    for (number, flags) in [(0, BEGIN_FLAG), (1, 0)] {
        let at = offset + number * length;
        begin_frame(log, term, at, term_id, length, flags);
        if number == 0 {
            term.write(at + FRAME_HEADER, &vec![0xab; length - FRAME_HEADER]);
            term.atomic_i32(at).store(length as i32, Ordering::Release);
        }
    }
}

/// A header whose length says that the frame is not finished.
fn begin_frame(log: &LogBuffers, term: &Region, at: usize, term_id: i32, length: usize, flags: u8) {
    term.atomic_i32(at)
        .store(-(length as i32), Ordering::Release);
    // Version 0, flags, type 1 (data).
    term.write(at + 4, &[0, flags, 1, 0]);
    for (field, value) in [
        (8, at as i32),
        (12, log.session_id()),
        (16, log.stream_id()),
        (20, term_id),
    ] {
        term.write(at + field, &value.to_le_bytes());
    }
}

/// Moves the tail of the ring of commands, where the room fits before the end.
fn take_command_room(ring: &Region, length: i64) {
    let capacity = ring.len() - RING_TRAILER;
    let tail = ring.atomic_i64(capacity + RING_TAIL);
    let moved = tail.fetch_update(Ordering::AcqRel, Ordering::Acquire, |tail| {
        let to_end = capacity as i64 - (tail & (capacity as i64 - 1));
        (length <= to_end).then_some(tail + length)
    });
    // At the end of the ring there is nothing to die of; the victim dies all the same.
    let _ = moved;
}
