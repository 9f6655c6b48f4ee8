// SPDX-License-Identifier: Apache-2.0
//! Round trips of single datagrams, sent by schedule.
//!
//! As in the benchmarks of the driver, a round trip is measured from the time at which its datagram was due.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::affinity;
use taran_net::{Transmit, Transport};

use crate::{Failure, RUNS, Spread, pair};

/// A message of 288 bytes with its header.
const LENGTH: usize = 320;
/// Buffer for one receiving call in bytes.
const RECEIVE_BUFFER: usize = 65_536;
/// Time between datagrams.
const INTERVAL: Duration = Duration::from_micros(10);
const WARM_UP: usize = 50_000;
const MEASURED: usize = 100_000;
/// Time limit for the last replies.
const REPLY_TIMEOUT: Duration = Duration::from_secs(1);
/// Reported percentiles.
const PERCENTILES: [usize; 3] = [50, 90, 99];

/// Measures and prints.
pub(crate) fn measure(cores: [usize; 2]) -> Result<(), Failure> {
    let runs: Result<Vec<Vec<f64>>, Failure> = (0..RUNS).map(|_| run(cores)).collect();
    let runs = runs?;
    for percentile in PERCENTILES {
        let of_runs = runs
            .iter()
            .map(|trips| trips[trips.len() * percentile / 100]);
        println!("echo p{percentile}: {} us", Spread::of(of_runs.collect()));
    }
    Ok(())
}

/// Returns the round-trip times in microseconds, in ascending order.
fn run(cores: [usize; 2]) -> Result<Vec<f64>, Failure> {
    let [near, far] = pair()?;
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(move || serve(far, cores[1], stop));
        let trips = scope.spawn(move || send_and_receive(near, cores[0])).join();
        stop.store(true, Ordering::Release);
        let trips = trips.map_err(|_| "the near end panicked")?;
        serving.join().map_err(|_| "the far end panicked")??;
        trips
    })
}

fn send_and_receive(mut socket: Box<dyn Transport>, core: usize) -> Result<Vec<f64>, Failure> {
    affinity::pin_current_thread(core)?;
    let mut trips = Vec::with_capacity(MEASURED);
    let (mut datagram, mut buffer) = ([0; LENGTH], vec![0; RECEIVE_BUFFER]);
    let (mut sent, mut received) = (0, 0);
    let start = Instant::now();
    let due = |number: usize| INTERVAL * number as u32;
    while received < WARM_UP + MEASURED {
        let elapsed = start.elapsed();
        if sent < WARM_UP + MEASURED && elapsed >= due(sent) {
            datagram[..8].copy_from_slice(&(sent as u64).to_le_bytes());
            if socket.send(&[Transmit::connected(&datagram)])? == 0 {
                return Err("the send buffer is full".into());
            }
            sent += 1;
        }
        // Replies that were queued may arrive as one run.
        let (head, rest) = buffer.split_at_mut(LENGTH);
        if let Some(received_run) = socket.receive_parts(head, rest)? {
            for datagram in buffer[..received_run.length].chunks(LENGTH) {
                let number = datagram.first_chunk().copied().map(u64::from_le_bytes);
                if number != Some(received as u64) {
                    return Err(format!("received {number:?} instead of {received}").into());
                }
                if received >= WARM_UP {
                    let took = start.elapsed() - due(received);
                    trips.push(took.as_secs_f64() * 1e6);
                }
                received += 1;
            }
        } else if elapsed > due(WARM_UP + MEASURED) + REPLY_TIMEOUT {
            return Err(format!("{} datagrams were lost", sent - received).into());
        } else {
            hint::spin_loop();
        }
    }
    trips.sort_by(f64::total_cmp);
    Ok(trips)
}

fn serve(mut socket: Box<dyn Transport>, core: usize, stop: &AtomicBool) -> Result<(), Failure> {
    affinity::pin_current_thread(core)?;
    let mut buffer = vec![0; RECEIVE_BUFFER];
    while !stop.load(Ordering::Acquire) {
        let (head, rest) = buffer.split_at_mut(LENGTH);
        if let Some(received_run) = socket.receive_parts(head, rest)? {
            let datagrams = Transmit::connected(&buffer[..received_run.length]);
            socket.send(&[datagrams.segmented(LENGTH)])?;
        } else {
            hint::spin_loop();
        }
    }
    Ok(())
}
