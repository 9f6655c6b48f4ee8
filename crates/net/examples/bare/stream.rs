// SPDX-License-Identifier: Apache-2.0
//! Throughput of GSO batches of the largest size that the kernel accepts.
//!
//! Measured twice: with memory of a single batch per side, which stays in the cache, and cycling through 48 MiB, as the
//! log of a stream with terms of 16 MiB does. The sender is never further ahead than the receiver's socket buffer
//! holds: a lost datagram is an error.

use std::hint;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use taran_core::affinity;
use taran_net::{Transmit, Transport};

use crate::{BUFFER, Failure, RUNS, Spread, pair};

const WARM_UP: Duration = Duration::from_millis(200);
const MEASURED: Duration = Duration::from_millis(1_000);
/// Payload bytes of a datagram.
const LENGTH: usize = 1_344;
/// Bytes of a batch: as many datagrams as a message to the kernel holds.
const BATCH: usize = 48 * LENGTH;
/// Buffer for one receiving call in bytes.
const RECEIVE_BUFFER: usize = 65_536;
const LOGS: usize = 48 * 1024 * 1024;
/// Bytes in flight. Less than the socket buffer, because the kernel charges its bookkeeping to it.
const WINDOW: u64 = BUFFER as u64 / 4;

/// Progress shared by the threads.
#[derive(Default)]
struct Progress {
    sent: AtomicU64,
    received: AtomicU64,
    stop_sending: AtomicBool,
    stop_receiving: AtomicBool,
}

/// Measures with memory that stays in the cache, and with memory that does not.
pub(crate) fn compare(cores: [usize; 2]) -> Result<(), Failure> {
    for (what, memory) in [("in the cache", RECEIVE_BUFFER), ("through 48 MiB", LOGS)] {
        let runs: Result<Vec<f64>, Failure> = (0..RUNS).map(|_| run(cores, memory)).collect();
        println!("batches {what}: {} GB/s", Spread::of(runs?));
    }
    Ok(())
}

/// Transfers batches for a fixed time; returns 10^9 bytes per second.
fn run(cores: [usize; 2], memory: usize) -> Result<f64, Failure> {
    let [sender, receiver] = pair()?;
    let progress = &Progress::default();
    thread::scope(|scope| {
        let sending = scope.spawn(move || send(sender, cores[0], memory, progress));
        let receiving = scope.spawn(move || receive(receiver, cores[1], memory, progress));
        thread::sleep(WARM_UP);
        let (began, before) = (Instant::now(), progress.received.load(Ordering::Acquire));
        thread::sleep(MEASURED);
        let (took, after) = (began.elapsed(), progress.received.load(Ordering::Acquire));
        progress.stop_sending.store(true, Ordering::Release);
        let sent = sending.join().map_err(|_| "the sender panicked")?;
        progress.stop_receiving.store(true, Ordering::Release);
        receiving.join().map_err(|_| "the receiver panicked")??;
        sent?;
        let (sent, received) = (&progress.sent, &progress.received);
        let lost = sent.load(Ordering::Acquire) - received.load(Ordering::Acquire);
        if lost > 0 {
            return Err(format!("{lost} bytes were lost: is net.core.rmem_max too small?").into());
        }
        Ok((after - before) as f64 / took.as_secs_f64() / 1e9)
    })
}

fn send(
    mut socket: Box<dyn Transport>,
    core: usize,
    memory: usize,
    progress: &Progress,
) -> Result<(), Failure> {
    affinity::pin_current_thread(core)?;
    let memory = vec![1; memory];
    let mut batches = memory.chunks_exact(BATCH).cycle();
    let mut sent = 0;
    while !progress.stop_sending.load(Ordering::Acquire) {
        if sent - progress.received.load(Ordering::Acquire) >= WINDOW {
            hint::spin_loop();
            continue;
        }
        if let Some(batch) = batches.next() {
            sent += socket.send(&[Transmit::connected(batch).segmented(LENGTH)])? as u64;
            progress.sent.store(sent, Ordering::Release);
        }
    }
    Ok(())
}

fn receive(
    mut socket: Box<dyn Transport>,
    core: usize,
    memory: usize,
    progress: &Progress,
) -> Result<(), Failure> {
    affinity::pin_current_thread(core)?;
    let mut memory = vec![0; memory];
    let (mut at, mut received) = (0, 0);
    loop {
        // Loaded before the receive call, which then finds everything that was sent before the stop.
        let is_stopping = progress.stop_receiving.load(Ordering::Acquire);
        let (head, rest) = memory[at..at + RECEIVE_BUFFER].split_at_mut(LENGTH);
        if let Some(run) = socket.receive_parts(head, rest)? {
            received += run.length as u64;
            progress.received.store(received, Ordering::Release);
            at += run.length;
            if at + RECEIVE_BUFFER > memory.len() {
                at = 0;
            }
        } else if is_stopping {
            return Ok(());
        } else {
            hint::spin_loop();
        }
    }
}
