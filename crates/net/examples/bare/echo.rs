//! Lone datagrams there and back by schedule: what an echo waits for besides everything else.
//!
//! As in the benchmarks of the driver, a round trip begins when its datagram was due.

use std::hint;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::affinity;
use taran_net::{Transmit, Transport};

use crate::{Failure, RUNS, Spread, pair};

/// A message of 288 bytes with its header.
const LENGTH: usize = 320;
/// Bytes that one receiving call has to have room for.
const ROOM: usize = 65_536;
/// From one to the next.
const INTERVAL: Duration = Duration::from_micros(10);
const WARM_UP: usize = 50_000;
const MEASURED: usize = 100_000;
/// For the last ones to come back.
const PATIENCE: Duration = Duration::from_secs(1);
/// Of a hundred round trips so many are at most as long.
const PERCENTILES: [usize; 3] = [50, 90, 99];

/// Measures, and prints.
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

/// Round trips in microseconds, the shortest first.
fn run(cores: [usize; 2]) -> Result<Vec<f64>, Failure> {
    let [near, far] = pair()?;
    let stop = &AtomicBool::new(false);
    thread::scope(|scope| {
        let answering = scope.spawn(move || answer(far, cores[1], stop));
        let trips = scope.spawn(move || ask(near, cores[0])).join();
        stop.store(true, Ordering::Release);
        let trips = trips.map_err(|_| "the near end panicked")?;
        answering.join().map_err(|_| "the far end panicked")??;
        trips
    })
}

fn ask(mut socket: Box<dyn Transport>, core: usize) -> Result<Vec<f64>, Failure> {
    affinity::pin_current_thread(core)?;
    let mut trips = Vec::with_capacity(MEASURED);
    let (mut datagram, mut room) = ([0; LENGTH], vec![0; ROOM]);
    let (mut sent, mut received) = (0, 0);
    let start = Instant::now();
    let due = |number: usize| INTERVAL * number as u32;
    while received < WARM_UP + MEASURED {
        let elapsed = start.elapsed();
        if sent < WARM_UP + MEASURED && elapsed >= due(sent) {
            datagram[..8].copy_from_slice(&(sent as u64).to_le_bytes());
            if socket.send(&[Transmit::connected(&datagram)])? == 0 {
                return Err("the socket has no room".into());
            }
            sent += 1;
        }
        // What waited for long may come back as a train.
        let (head, rest) = room.split_at_mut(LENGTH);
        if let Some(came) = socket.receive_parts(head, rest)? {
            for datagram in room[..came.length].chunks(LENGTH) {
                let number = datagram.first_chunk().copied().map(u64::from_le_bytes);
                if number != Some(received as u64) {
                    return Err(format!("{number:?} came in place of {received}").into());
                }
                if received >= WARM_UP {
                    let took = start.elapsed() - due(received);
                    trips.push(took.as_secs_f64() * 1e6);
                }
                received += 1;
            }
        } else if elapsed > due(WARM_UP + MEASURED) + PATIENCE {
            return Err(format!("{} datagrams were lost", sent - received).into());
        } else {
            hint::spin_loop();
        }
    }
    trips.sort_by(f64::total_cmp);
    Ok(trips)
}

fn answer(mut socket: Box<dyn Transport>, core: usize, stop: &AtomicBool) -> Result<(), Failure> {
    affinity::pin_current_thread(core)?;
    let mut room = vec![0; ROOM];
    while !stop.load(Ordering::Acquire) {
        let (head, rest) = room.split_at_mut(LENGTH);
        if let Some(came) = socket.receive_parts(head, rest)? {
            let datagrams = Transmit::connected(&room[..came.length]);
            socket.send(&[datagrams.segmented(LENGTH)])?;
        } else {
            hint::spin_loop();
        }
    }
    Ok(())
}
