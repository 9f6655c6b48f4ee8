// SPDX-License-Identifier: Apache-2.0
//! Kill points: a victim stops in the middle of an operation that affects other clients.

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

use super::{KillPoint, VictimError, VictimSpec};
use crate::fixture::TIMEOUT;
use crate::message::{HEADER_LENGTH, Producer};

/// Length of a frame header.
const FRAME_HEADER: usize = 32;
const BEGIN_FLAG: u8 = 0x80;
/// Length of a ring's trailer, and offset of the tail in it (docs/spec/shared-memory.md §3.1).
const RING_TRAILER: usize = 768;
const RING_TAIL: usize = 128;

/// Reaches the kill point and waits to be killed.
pub(super) fn run_to(
    point: KillPoint,
    spec: &VictimSpec,
    client: &Client,
) -> Result<Infallible, VictimError> {
    let mut random = spec.random();
    let streams = spec.shared_streams();
    let stream = &streams[random.usize(..streams.len())];
    match point {
        KillPoint::SharedClaim => {
            let publication = client.add_publication(&stream.channel, stream.id)?;
            let length = random.usize(HEADER_LENGTH..1_300);
            let _claim = await_accepted(|| publication.try_claim(length))?;
            wait_to_be_killed()
        }
        KillPoint::ExclusiveClaim => {
            let mut publication = client.add_exclusive_publication(&stream.channel, stream.id)?;
            let mut producer = Producer::new(spec.producer(0));
            for _ in 0..random.usize(..20) {
                let mut message = vec![0; random.usize(HEADER_LENGTH..3_000)];
                producer.write(&mut message);
                await_accepted(|| publication.offer(&message))?;
                producer.accepted();
            }
            while let Err(error) = publication.try_claim(100).map(std::mem::forget) {
                retry(error)?;
            }
            wait_to_be_killed()
        }
        KillPoint::PartialMessage | KillPoint::ReservedSpace => {
            let publication = client.add_publication(&stream.channel, stream.id)?;
            // One complete message first, so that the publication is connected and has space.
            let mut message = [0; 100];
            Producer::new(spec.producer(0)).write(&mut message);
            await_accepted(|| publication.offer(&message))?;
            let log = open_log(&spec.directory, publication.original_registration_id());
            if point == KillPoint::ReservedSpace {
                let length = 64 * random.i64(1..20);
                reserve_space(&log, length);
            } else {
                write_partial_message(&log);
            }
            wait_to_be_killed()
        }
        KillPoint::PartialCommand => {
            let ring = open_cnc(&spec.directory).to_driver;
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
            wait_to_be_killed()
        }
        KillPoint::ReservedCommandSpace => {
            reserve_command_space(&open_cnc(&spec.directory).to_driver, 8 * random.i64(1..40));
            wait_to_be_killed()
        }
        KillPoint::RandomOps | KillPoint::Startup => unreachable!("no points"),
    }
}

/// Waits to be killed by the parent. Ends if the parent has died.
fn wait_to_be_killed() -> ! {
    println!("HERE");
    let _ = std::io::stdin().read_line(&mut String::new());
    // Exits without destructors, so that nothing is committed.
    std::process::exit(1)
}

/// Offers until it is accepted.
fn await_accepted<T>(mut offer: impl FnMut() -> Result<T, OfferError>) -> Result<T, VictimError> {
    let deadline = Instant::now() + TIMEOUT;
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

/// Yields before a retry, if the error is retryable.
fn retry(error: OfferError) -> Result<(), VictimError> {
    match error {
        OfferError::DriverLost(lost) => Err(VictimError::of_lost(lost)),
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

/// Advances the tail of the active term, the first step of a publisher. Returns partition and offset.
fn reserve_space(log: &LogBuffers, length: i64) -> Option<(usize, usize)> {
    let partition = log.active_term_count().rem_euclid(3) as usize;
    let tail = log.metadata().tails[partition].fetch_add(length, Ordering::AcqRel);
    let offset = (tail & 0xffff_ffff) as usize;
    // Beyond the end of the term, a publisher would rotate the log next. This one is killed before.
    (offset + length as usize <= log.term_length() as usize).then_some((partition, offset))
}

/// Reserves space for three frames, commits the first, begins the second, and leaves the third untouched.
fn write_partial_message(log: &LogBuffers) {
    let length = log.mtu() as usize;
    let Some((partition, offset)) = reserve_space(log, 3 * length as i64) else {
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

/// Writes a header whose length marks the frame as uncommitted.
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

/// Advances the tail of the command ring if the space fits before its end.
fn reserve_command_space(ring: &Region, length: i64) {
    let capacity = ring.len() - RING_TRAILER;
    let tail = ring.atomic_i64(capacity + RING_TAIL);
    let moved = tail.fetch_update(Ordering::AcqRel, Ordering::Acquire, |tail| {
        let to_end = capacity as i64 - (tail & (capacity as i64 - 1));
        (length <= to_end).then_some(tail + length)
    });
    // At the end of the ring no space is reserved; the victim is killed all the same.
    let _ = moved;
}
