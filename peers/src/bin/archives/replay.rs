// SPDX-License-Identifier: Apache-2.0
//! Replays of a recording whose files are in the page cache.

use std::time::{Duration, Instant};

use taran::Subscription;
use taran_archive_client::ReplayParams;
use taran_bench::report::histogram_of_times;
use taran_bench::side::RunError;
use taran_peers::bench::Found;
use taran_peers::measured::Measured;

use crate::archived::{Archived, context, peer, wait};
use crate::{Load, record, repeat};

const STREAM_ID: i32 = 3_001;
/// Fragments per poll.
const LIMIT: usize = 256;
/// Records one stream over IPC; returns the id of the stopped recording and its length.
fn prepare(archived: &mut Archived, load: &Load) -> Result<(i64, i64), RunError> {
    let recorded = Load {
        channel: "aeron:ipc?term-length=16m".to_owned(),
        remote: false,
        ..load.clone()
    };
    let mut streams = [archived.record(&recorded)?];
    record::send(&mut streams, &recorded)?;
    archived.stop(&streams[0])?;
    let [stream] = streams;
    Ok((stream.recording_id, stream.publication.position()))
}

/// Replays a recording again and again, each time to a new subscription.
pub(crate) fn throughput(load: &Load) -> Found {
    let mut archived = Archived::connect(load)?;
    let (recording_id, end) = prepare(&mut archived, load)?;
    repeat([load.warmup_ms, load.measure_ms], || {
        let begin = Instant::now();
        let params = ReplayParams::new().length(end);
        let (_, mut replayed) = archived
            .archive
            .replay(recording_id, &load.channel, STREAM_ID, &params)
            .map_err(peer)?;
        read_to(&mut replayed, end, load.length)?;
        Ok((end.unsigned_abs(), begin.elapsed()))
    })
}

/// Polls a replay until its image is at `end`.
fn read_to(replayed: &mut Subscription, end: i64, length: usize) -> Result<(), RunError> {
    let mut error = None;
    wait("the end of the replay", || {
        let mut is_damaged = false;
        let polled = replayed.poll(|message, _| is_damaged |= message.len() != length, LIMIT);
        if is_damaged {
            error = Some(peer("a replayed message has another length"));
        }
        if let Err(reason) = polled {
            error = Some(reason.into());
        }
        let position = replayed
            .images()
            .first()
            .map(|image| image.view().position());
        error.is_some() || position == Some(end)
    })?;
    error.map_or(Ok(()), Err)
}

/// Connects a new client session, starts a replay over IPC and waits for its first message, again and again.
pub(crate) fn connect(load: &Load) -> Found {
    let mut archived = Archived::connect(load)?;
    let (recording_id, _) = prepare(&mut archived, load)?;
    let mut histogram = histogram_of_times();
    let begin = Instant::now();
    let warmup = Duration::from_millis(load.warmup_ms);
    let duration = warmup + Duration::from_millis(load.measure_ms);
    while begin.elapsed() < duration || histogram.is_empty() {
        let start = Instant::now();
        let mut archive = context().connect(&archived.client).map_err(peer)?;
        let params = ReplayParams::new();
        let (session, mut replayed) = archive
            .replay(recording_id, &load.channel, STREAM_ID, &params)
            .map_err(peer)?;
        wait("the first message", || {
            replayed.poll(|_, _| {}, 1).is_ok_and(|count| count > 0)
        })?;
        let nanos = start.elapsed().as_nanos();
        if begin.elapsed() >= warmup {
            histogram.saturating_record(u64::try_from(nanos).unwrap_or(u64::MAX));
        }
        drop(replayed);
        archive.stop_replay(session).map_err(peer)?;
        archive.close();
    }
    let rate = histogram.len() as f64;
    Ok(Some(Measured::of(rate).with_round_trips(&histogram)))
}
