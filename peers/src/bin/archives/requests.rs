// SPDX-License-Identifier: Apache-2.0
//! Requests of the catalog, and what an archive keeps for idle recordings and sessions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_bench::report::histogram_of_times;
use taran_bench::side::RunError;
use taran_peers::bench::{Found, print_ready};
use taran_peers::measured::Measured;

use crate::archived::{Archived, context, peer};
use crate::{Load, files};

/// Lists all recordings again and again.
pub(crate) fn list(load: &Load) -> Found {
    let mut archived = Archived::connect(load)?;
    measure(load, || {
        let mut next = 0;
        for recording in archived.archive.recordings(0) {
            let recording = recording.map_err(peer)?;
            if recording.recording_id != next {
                return Err(peer(format!("recording {next} is missing")));
            }
            next += 1;
        }
        if next == 0 {
            return Err(peer("there are no recordings"));
        }
        Ok(())
    })
}

/// Finds the recording in the middle of the catalog by its channel, again and again.
pub(crate) fn find(load: &Load) -> Found {
    let mut archived = Archived::connect(load)?;
    let last = archived.archive.list_recordings(0, 1).map_err(peer)?;
    if last.is_empty() {
        return Err(peer("there are no recordings"));
    }
    let wanted = i64::try_from(load.bytes).map_err(peer)?;
    let stream_id = files::stream_id(wanted);
    measure(load, || {
        let found = archived
            .archive
            .list_recordings_for_uri(0, 1, &files::fragment(wanted), stream_id)
            .map_err(peer)?;
        match found.first() {
            Some(recording) if recording.recording_id == wanted => Ok(()),
            other => Err(peer(format!("found {other:?} in place of {wanted}"))),
        }
    })
}

fn measure(load: &Load, mut request: impl FnMut() -> Result<(), RunError>) -> Found {
    let mut histogram = histogram_of_times();
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(load.warmup_ms) {
        request()?;
    }
    let begin = Instant::now();
    while begin.elapsed() < Duration::from_millis(load.measure_ms) || histogram.is_empty() {
        let start = Instant::now();
        request()?;
        let nanos = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        histogram.saturating_record(nanos);
    }
    let rate = histogram.len() as f64 / begin.elapsed().as_secs_f64();
    Ok(Some(Measured::of(rate).with_round_trips(&histogram)))
}

/// Holds idle recordings and sessions until `stop` is set, then stops the recordings, which would outlive their client.
pub(crate) fn hold(load: &Load, sessions: u16, stop: &AtomicBool) -> Result<(), RunError> {
    let mut archived = Archived::connect(load)?;
    let mut streams = Vec::new();
    for _ in 0..load.streams {
        streams.push(archived.record(load)?);
    }
    let mut others = Vec::new();
    for _ in 0..sessions {
        others.push(context().connect(&archived.client).map_err(peer)?);
    }
    print_ready();
    while !stop.load(Ordering::Relaxed) {
        archived.archive.poll();
        for other in &mut others {
            other.poll();
        }
        thread::sleep(Duration::from_millis(20));
    }
    streams.iter().try_for_each(|stream| archived.stop(stream))
}
