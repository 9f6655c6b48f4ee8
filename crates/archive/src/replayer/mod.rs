// SPDX-License-Identifier: Apache-2.0
//! The replayer: sends recordings to publications (`docs/spec/archive.md` §5).

mod batch;
mod limit;
mod replay;

use taran::Counter;
use taran_archive_client::protocol::ErrorCode;
use taran_core::agent::{Agent, AgentEnd, DutyCycleTracker};
use taran_core::clock::Now;
use taran_core::queue::{Receiver, Sender};

pub(crate) use batch::Conversion;
pub(crate) use limit::{LimitCounter, ReplayLimit};
pub(crate) use replay::ReplaySpec;

use crate::buffers::BufferPool;
use crate::disk_io::DiskIo;
use crate::outgoing::Outgoing;
use crate::slots::Slots;
use replay::{Replay, UNUSED_RESULT};

/// Commands of the conductor.
#[derive(Debug)]
pub(crate) enum ReplayerCommand {
    /// Starts a replay.
    Start(Box<ReplaySpec>),
    /// Ends a replay.
    Stop { id: i64 },
}

/// Reason why a replay ended before its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ReplayFailure {
    pub(crate) code: ErrorCode,
    pub(crate) text: String,
}

/// Reports to the conductor.
#[derive(Debug)]
pub(crate) enum ReplayReport {
    /// The first frame is there; the replay waits for its subscriber.
    Ready { id: i64 },
    /// The replay has ended.
    Ended {
        id: i64,
        failure: Option<ReplayFailure>,
    },
}

/// Counters of the replayer.
#[derive(Debug)]
pub(crate) struct ReplayerCounters {
    pub(crate) max_read_ns: Counter,
    pub(crate) total_read_bytes: Counter,
    pub(crate) total_read_ns: Counter,
}

/// Options of the replayer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplayerOptions {
    /// Length of a buffer in bytes.
    pub(crate) buffer_length: usize,
    /// Highest number of buffers.
    pub(crate) max_buffers: usize,
    /// Bytes after which a duty cycle ends, so that replays do not starve recordings on the same thread.
    pub(crate) cycle_bytes: usize,
}

/// The agent that runs all replays.
///
/// Contract: commands and reports are queues; each command to start has one report `Ended`.
pub(crate) struct Replayer {
    options: ReplayerOptions,
    io: DiskIo,
    commands: Receiver<ReplayerCommand>,
    reports: Outgoing<ReplayReport>,
    /// The slot is the token of requests.
    replays: Slots<Replay>,
    /// The slot that is served first, so that each has its turn.
    first: usize,
    buffers: BufferPool,
    counters: ReplayerCounters,
    cycle: Option<DutyCycleTracker>,
    now: Now,
}

impl Replayer {
    pub(crate) fn new(
        options: ReplayerOptions,
        io: DiskIo,
        (commands, reports): (Receiver<ReplayerCommand>, Sender<ReplayReport>),
        counters: ReplayerCounters,
        cycle: Option<DutyCycleTracker>,
    ) -> Self {
        Self {
            buffers: BufferPool::new(options.buffer_length, options.max_buffers),
            options,
            io,
            commands,
            reports: Outgoing::new(reports),
            replays: Slots::new(),
            first: 0,
            counters,
            cycle,
            now: Now::default(),
        }
    }

    /// Returns recording, position, and the segment file that is read next, of each replay that has not ended.
    #[cfg(test)]
    pub(crate) fn files(&self) -> impl Iterator<Item = (i64, i64, std::path::PathBuf)> {
        self.replays.iter().filter_map(Replay::file)
    }

    fn poll_commands(&mut self) -> usize {
        let mut work = 0;
        while let Some(command) = self.commands.try_recv() {
            work += 1;
            match command {
                ReplayerCommand::Start(spec) => self.start(*spec),
                ReplayerCommand::Stop { id } => {
                    let replays = self.replays.iter_mut();
                    for replay in replays.filter(|replay| replay.id() == id) {
                        replay.abort();
                    }
                }
            }
        }
        work
    }

    fn start(&mut self, spec: ReplaySpec) {
        self.replays.add(|slot| Replay::new(spec, slot as u64));
    }

    fn poll_completions(&mut self) -> usize {
        let mut work = 0;
        while let Some(completion) = self.io.poll(self.now.nanos) {
            work += 1;
            let slot = usize::try_from(completion.token & !UNUSED_RESULT).unwrap_or(usize::MAX);
            if let Some(replay) = self.replays.get_mut(slot) {
                replay.on_completion(completion, self.now.nanos, &mut self.io, &self.counters);
            }
        }
        work
    }

    fn poll_replays(&mut self) -> usize {
        let count = self.replays.len();
        let mut work = 0;
        for turn in 0..count {
            let slot = (self.first + turn) % count;
            if work < self.options.cycle_bytes {
                work += self.poll_slot(slot);
            } else if let Some(replay) = self.replays.get_mut(slot) {
                replay
                    .take_reports()
                    .for_each(|report| self.reports.send(report));
            }
        }
        self.first = if count == 0 {
            0
        } else {
            (self.first + 1) % count
        };
        work
    }

    fn poll_slot(&mut self, slot: usize) -> usize {
        let Some(replay) = self.replays.get_mut(slot) else {
            return 0;
        };
        let work = replay.poll(
            self.now.nanos,
            &mut self.io,
            &mut self.buffers,
            &self.counters,
        );
        replay.give_back_buffer(&mut self.buffers);
        replay
            .take_reports()
            .for_each(|report| self.reports.send(report));
        if replay.is_closed() {
            replay.close_segment(&mut self.io);
        }
        if replay.is_closed()
            && let Some(replay) = self.replays.remove(slot)
        {
            replay.close();
        }
        work
    }
}

impl Agent for Replayer {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        self.now = now;
        if let Some(cycle) = &mut self.cycle {
            cycle.begin_cycle(now.nanos);
        }
        let work = self.poll_commands() + self.poll_completions() + self.poll_replays();
        self.reports.forward();
        Ok(work)
    }

    fn role_name(&self) -> &str {
        "archive-replayer"
    }

    fn on_close(&mut self) {
        for replay in self.replays.iter_mut() {
            replay.abort();
        }
        self.poll_replays();
        self.reports.forward();
    }
}
