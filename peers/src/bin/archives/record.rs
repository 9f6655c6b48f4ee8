// SPDX-License-Identifier: Apache-2.0
//! Recordings: throughput, and the time until messages are recorded.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_archive_client::protocol::SourceLocation;
use taran_bench::report::histogram_of_times;
use taran_bench::schedule::Schedule;
use taran_bench::side::RunError;
use taran_core::clock::{Clock, SystemClock};
use taran_peers::bench::{Found, STREAM_ID, print_ready};
use taran_peers::measured::Measured;

use crate::archived::{Archived, Stream, peer, wait};
use crate::{Load, Round, repeat};

/// Messages to one stream before the next one has its turn.
const BURST: u32 = 32;
/// Time limit for the last messages to be recorded.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Records streams at full rate, in rounds; each records new streams and deletes the recordings.
pub(crate) fn throughput(load: &Load) -> Found {
    let mut archived = Archived::connect(load)?;
    repeat([load.warmup_ms, load.measure_ms], || {
        let mut streams = open(&mut archived, load)?;
        let round = send(&mut streams, load);
        for stream in &streams {
            archived.delete(stream)?;
        }
        round
    })
}

fn open(archived: &mut Archived, load: &Load) -> Result<Vec<Stream>, RunError> {
    (0..load.streams).map(|_| archived.record(load)).collect()
}

/// Sends the bytes of a round, in equal parts, and waits until all of them are recorded.
pub(crate) fn send(streams: &mut [Stream], load: &Load) -> Round {
    let share = i64::try_from(load.bytes / streams.len() as u64).map_err(peer)?;
    let begin = Instant::now();
    let mut is_sending = true;
    while is_sending {
        is_sending = false;
        let mut has_sent = false;
        for stream in streams.iter_mut() {
            let mut burst = 0;
            while stream.publication.position() < share
                && burst < BURST
                && stream.send(load.length, 0)?
            {
                burst += 1;
            }
            has_sent |= burst > 0;
            is_sending |= stream.publication.position() < share;
        }
        if !has_sent {
            thread::yield_now();
        }
    }
    wait("the recorded position", || {
        let is_recorded = |stream: &Stream| stream.recorded() >= stream.publication.position();
        streams.iter().all(is_recorded)
    })?;
    let elapsed = begin.elapsed();
    let bytes: i64 = streams
        .iter()
        .map(|stream| stream.publication.position())
        .sum();
    Ok((bytes.unsigned_abs(), elapsed))
}

/// Sends messages at a fixed rate to the streams in turn, and measures the time from when each is due until it is recorded.
pub(crate) fn durability(load: &Load, rate: u64) -> Found {
    let mut archived = Archived::connect(load)?;
    let mut streams = open(&mut archived, load)?;
    // Positions at which messages end, and when they are due.
    let mut waiting = vec![VecDeque::<(i64, i64)>::with_capacity(1 << 16); streams.len()];
    let mut histogram = histogram_of_times();
    let mut clock = SystemClock::new();
    let start_ns = clock.now().nanos;
    let schedule = Schedule::new(start_ns, rate, 1);
    let warmup = Duration::from_millis(load.warmup_ms);
    let skipped = schedule.messages_in(warmup);
    let total = skipped + schedule.messages_in(Duration::from_millis(load.measure_ms));
    let measured_from_ns = schedule.due_ns(skipped);
    let (mut sent, mut last_sent_ns) = (0, start_ns);
    let mut recorded = 0;
    let timeout_ns = TIMEOUT.as_nanos() as i64;
    while recorded < total {
        let now_ns = clock.now().nanos;
        let mut has_work = false;
        while sent < total && schedule.due_ns(sent) <= now_ns {
            let due_ns = schedule.due_ns(sent);
            let index = sent as usize % streams.len();
            if !streams[index].send(load.length, due_ns)? {
                break;
            }
            waiting[index].push_back((streams[index].publication.position(), due_ns));
            (sent, last_sent_ns, has_work) = (sent + 1, now_ns, true);
        }
        for (stream, waiting) in streams.iter().zip(&mut waiting) {
            let position = stream.recorded();
            while let Some((_, due_ns)) = waiting.pop_front_if(|(end, _)| *end <= position) {
                if due_ns >= measured_from_ns {
                    let time_ns = (clock.now().nanos - due_ns).unsigned_abs();
                    histogram.saturating_record(time_ns);
                }
                recorded += 1;
                has_work = true;
            }
        }
        if !has_work {
            if now_ns - last_sent_ns > timeout_ns {
                return Err(RunError::TimedOut(TIMEOUT, "the recorded position"));
            }
            thread::yield_now();
        }
    }
    let seconds = (clock.now().nanos - measured_from_ns) as f64 / 1e9;
    let achieved = (total - skipped) as f64 / seconds;
    Ok(Some(Measured {
        is_held: achieved >= 0.9 * rate as f64,
        ..Measured::of(achieved).with_round_trips(&histogram)
    }))
}

/// Records the channel of the round trips until `stop` is set.
pub(crate) fn beside(load: &Load, stop: &AtomicBool) -> Result<(), RunError> {
    let mut archived = Archived::connect(load)?;
    archived
        .archive
        .start_recording(&load.channel, STREAM_ID, SourceLocation::LOCAL, false)
        .map_err(peer)?;
    print_ready();
    while !stop.load(Ordering::Relaxed) {
        archived.archive.poll();
        thread::sleep(Duration::from_millis(20));
    }
    Ok(())
}
