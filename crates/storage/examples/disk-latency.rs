// SPDX-License-Identifier: Apache-2.0
//! Measures durable writes on a disk of the system: latency and throughput by block length and requests in flight.
//!
//! `cargo run --release -p taran-storage --example disk-latency -- [DIRECTORY [SECONDS_PER_ROW]]`
//!
//! A durable write is a write and a sync of the same file. The row `direct` calls the disk on this thread; the other rows go
//! through a [`ThreadedQueue`], so that the first of them shows what the queue costs, and later ones what group commit
//! gains. Latency counts from the submission of the write to the poll of the completion of the sync.

use std::collections::VecDeque;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use taran_storage::{
    AlignedBuf, Disk, DiskQueue, OpenOptions, OsDisk, QueuedFile, Request, SyncKind, ThreadedQueue,
    ThreadedQueueOptions,
};

/// Length of the file in bytes; its blocks are reserved before the measurement.
const FILE_LENGTH: u64 = 256 << 20;
const BLOCK_LENGTHS: [usize; 4] = [512, 4 << 10, 64 << 10, 1 << 20];
const DEPTHS: [usize; 4] = [1, 4, 16, 64];

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let directory = arguments
        .next()
        .map_or_else(std::env::temp_dir, PathBuf::from);
    let seconds: f64 = arguments
        .next()
        .map_or(Ok(1.0), |text| text.parse::<f64>())?;
    let time = Duration::try_from_secs_f64(seconds)?;
    let path = directory.join(format!("taran-disk-latency-{}", std::process::id()));
    let measured = measure(&path, time);
    OsDisk.remove_file(&path)?;
    measured
}

/// Measures all rows in a new file.
fn measure(path: &Path, time: Duration) -> Result<(), Box<dyn Error>> {
    println!("{}: write and sync, {time:?} per row", path.display());
    println!("   block  in flight     per s     MiB/s    p50 us    p99 us    max us");
    let options = OpenOptions::create_new().with_allocate(FILE_LENGTH);
    drop(OsDisk.open(path, options)?);
    for block in BLOCK_LENGTHS {
        Row::direct(path, block, time)?.print("direct");
        for depth in DEPTHS {
            Row::queued(path, block, depth, time)?.print(&depth.to_string());
        }
    }
    Ok(())
}

/// Latencies of the durable writes of one row.
struct Row {
    block: usize,
    latencies: Vec<Duration>,
    elapsed: Duration,
}

impl Row {
    /// Writes and syncs on this thread.
    fn direct(path: &Path, block: usize, time: Duration) -> Result<Self, Box<dyn Error>> {
        let file = OsDisk.open(path, OpenOptions::write())?;
        let buffer = AlignedBuf::new(block);
        let (start, mut latencies, mut offset) = (Instant::now(), Vec::new(), 0);
        while start.elapsed() < time {
            let submitted = Instant::now();
            file.write_at(&buffer, offset)?;
            file.sync(SyncKind::Data)?;
            latencies.push(submitted.elapsed());
            offset = next(offset, block);
        }
        Ok(Self {
            block,
            latencies,
            elapsed: start.elapsed(),
        })
    }

    /// Keeps `depth` durable writes in flight.
    fn queued(
        path: &Path,
        block: usize,
        depth: usize,
        time: Duration,
    ) -> Result<Self, Box<dyn Error>> {
        let disk: Arc<dyn Disk> = Arc::new(OsDisk);
        let mut queue = ThreadedQueue::start(&disk, &ThreadedQueueOptions::default())?;
        let file = queue.attach(disk.open(path, OpenOptions::write())?);
        let mut buffers: Vec<_> = (0..depth).map(|_| AlignedBuf::new(block)).collect();
        let mut in_flight = VecDeque::with_capacity(depth);
        let (start, mut latencies, mut offset) = (Instant::now(), Vec::new(), 0);
        loop {
            let is_over = start.elapsed() >= time;
            // A sync returns later than the buffer of its write.
            while !is_over
                && in_flight.len() < depth
                && let Some(buffer) = buffers.pop()
            {
                in_flight.push_back(Instant::now());
                submit(&mut queue, &file, buffer, offset)?;
                offset = next(offset, block);
            }
            while let Some(completion) = queue.poll(0) {
                completion.result?;
                match completion.buffer {
                    Some(buffer) => buffers.push(buffer),
                    None => latencies.extend(in_flight.pop_front().map(|it: Instant| it.elapsed())),
                }
            }
            if is_over && queue.in_flight() == 0 {
                break;
            }
            std::hint::spin_loop();
        }
        Ok(Self {
            block,
            latencies,
            elapsed: start.elapsed(),
        })
    }

    fn print(mut self, in_flight: &str) {
        self.latencies.sort_unstable();
        let count = self.latencies.len();
        let quantile = |share: f64| {
            let index = (count as f64 * share) as usize;
            let latency = self.latencies.get(index.min(count.saturating_sub(1)));
            latency.map_or(0.0, |it| it.as_secs_f64() * 1e6)
        };
        let rate = count as f64 / self.elapsed.as_secs_f64();
        println!(
            "{:>8} {in_flight:>10} {rate:>9.0} {:>9.1} {:>9.1} {:>9.1} {:>9.1}",
            self.block,
            rate * self.block as f64 / f64::from(1 << 20),
            quantile(0.5),
            quantile(0.99),
            quantile(1.0)
        );
    }
}

/// Submits a write and a sync.
fn submit(
    queue: &mut ThreadedQueue,
    file: &QueuedFile,
    buffer: AlignedBuf,
    offset: u64,
) -> Result<(), Box<dyn Error>> {
    let range = 0..buffer.len();
    let write = Request::Write {
        file: file.clone(),
        offset,
        buffer,
        range,
    };
    queue.submit(0, write)?;
    let sync = Request::Sync {
        file: file.clone(),
        kind: SyncKind::Data,
    };
    queue.submit(0, sync)?;
    Ok(())
}

/// Returns the offset of the next block; the file is overwritten from its start again.
fn next(offset: u64, block: usize) -> u64 {
    (offset + block as u64) % FILE_LENGTH
}
