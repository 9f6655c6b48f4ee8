// SPDX-License-Identifier: Apache-2.0
//! The limits of disk and page cache: the same files and blocks as those of an archive, and nothing else.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use taran_bench::side::RunError;
use taran_core::affinity;
use taran_peers::bench::Found;

use crate::archived::peer;
use crate::{Round, repeat};

/// Length of a segment file.
const SEGMENT: u64 = 128 << 20;
/// Length of the memory from which blocks are written: that of a term, as in an archive.
const TERM: usize = 16 << 20;

/// Blocks to write or read.
#[derive(Args, Debug, Clone)]
pub(crate) struct Blocks {
    /// Directory of the files
    #[arg(long)]
    dir: PathBuf,
    /// Length of a block
    #[arg(long, default_value_t = 1 << 20)]
    block: usize,
    /// Bytes of a round
    #[arg(long, default_value_t = 512 << 20)]
    bytes: u64,
    /// Duration of the measurement in milliseconds
    #[arg(long, default_value_t = 1_000)]
    measure_ms: u64,
    /// Duration of the warm-up in milliseconds
    #[arg(long, default_value_t = 500)]
    warmup_ms: u64,
    /// Core of the thread
    #[arg(long)]
    cpu: Option<usize>,
}

impl Blocks {
    fn prepare(&self) -> Result<[u64; 2], RunError> {
        if let Some(cpu) = self.cpu {
            affinity::pin_current_thread(cpu).map_err(peer)?;
        }
        fs::create_dir_all(&self.dir).map_err(peer)?;
        Ok([self.warmup_ms, self.measure_ms])
    }

    /// Writes the files of a round.
    fn write(&self, term: &[u8]) -> Round {
        let begin = Instant::now();
        let mut blocks = term.chunks_exact(self.block).cycle();
        for segment in 0..self.bytes / SEGMENT {
            let file = File::create(self.path(segment)).map_err(peer)?;
            file.set_len(SEGMENT).map_err(peer)?;
            let mut offset = 0;
            while offset + self.block as u64 <= SEGMENT {
                let block = blocks.next().ok_or_else(|| peer("the block is too long"))?;
                file.write_all_at(block, offset).map_err(peer)?;
                offset += self.block as u64;
            }
        }
        Ok((self.bytes, begin.elapsed()))
    }

    fn read(&self, block: &mut [u8]) -> Round {
        let begin = Instant::now();
        for segment in 0..self.bytes / SEGMENT {
            let file = File::open(self.path(segment)).map_err(peer)?;
            let mut offset = 0;
            while offset + block.len() as u64 <= SEGMENT {
                file.read_exact_at(block, offset).map_err(peer)?;
                offset += block.len() as u64;
            }
        }
        Ok((self.bytes, begin.elapsed()))
    }

    fn remove(&self) -> Result<(), RunError> {
        for segment in 0..self.bytes / SEGMENT {
            fs::remove_file(self.path(segment)).map_err(peer)?;
        }
        Ok(())
    }

    fn path(&self, segment: u64) -> PathBuf {
        self.dir.join(format!("{segment}.limit"))
    }
}

/// Writes new files, again and again.
pub(crate) fn write(blocks: &Blocks) -> Found {
    let durations = blocks.prepare()?;
    let term = vec![7; TERM];
    repeat(durations, || {
        let round = blocks.write(&term);
        blocks.remove()?;
        round
    })
}

/// Reads files that are in the page cache, again and again.
pub(crate) fn read(blocks: &Blocks) -> Found {
    let durations = blocks.prepare()?;
    blocks.write(&vec![7; TERM])?;
    let mut block = vec![0; blocks.block];
    let found = repeat(durations, || blocks.read(&mut block));
    blocks.remove()?;
    found
}
