// SPDX-License-Identifier: Apache-2.0
//! The recorder: copies images to segment files (`docs/spec/archive.md` §4).

mod ahead;
mod block;
#[cfg(test)]
pub(crate) use block::testing;
mod events;
mod recording;
#[cfg(test)]
mod tests;
mod writer;

use std::time::Duration;

use taran::{Counter, Image};
use taran_core::agent::{Agent, AgentEnd, DutyCycleTracker};
use taran_core::clock::{Clock, Now};
use taran_core::queue::{Receiver, Sender};

pub(crate) use events::RecordingEvents;
pub(crate) use writer::{WriterOptions, WriterStart, segment_path};

use crate::buffers::BufferPool;
use crate::disk_io::DiskIo;
use crate::files::Checksum;
use crate::outgoing::Outgoing;
use crate::slots::Slots;
use recording::Recording;
use writer::TOKEN_BITS;

/// Time for which the end of the archive waits for a disk that completes nothing.
pub(crate) const CLOSE_TIMEOUT: Duration = Duration::from_secs(10);

/// Commands of the conductor.
#[derive(Debug)]
pub(crate) enum RecorderCommand {
    /// Records an image.
    Start(Box<RecordingSpec>),
    /// Stops a recording.
    Stop { recording_id: i64 },
}

/// A recording to run.
#[derive(Debug)]
pub(crate) struct RecordingSpec {
    pub(crate) start: WriterStart,
    pub(crate) image: Image,
    /// The recorded position.
    pub(crate) position: Counter,
    pub(crate) original_channel: String,
}

/// Reason why a recording ended by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RecordingFailure {
    pub(crate) is_full: bool,
    pub(crate) text: String,
}

/// Reports to the conductor.
#[derive(Debug)]
pub(crate) enum RecorderReport {
    /// The disk is full: the publisher is held back.
    Held { recording_id: i64, text: String },
    /// There is space again.
    Resumed { recording_id: i64 },
    /// The recording has ended at a position.
    Stopped {
        recording_id: i64,
        position: i64,
        failure: Option<RecordingFailure>,
    },
    /// The archive ends, and the disk does not complete the last writes of the recording.
    Abandoned { recording_id: i64 },
}

/// Counters of the recorder.
#[derive(Debug)]
pub(crate) struct RecorderCounters {
    pub(crate) max_write_ns: Counter,
    pub(crate) total_write_bytes: Counter,
    pub(crate) total_write_ns: Counter,
}

/// Options of the recorder.
#[derive(Clone, Debug)]
pub(crate) struct RecorderOptions {
    pub(crate) writer: WriterOptions,
    pub(crate) checksum: Option<Checksum>,
    /// Length of a block in bytes.
    pub(crate) block_length: usize,
    /// Highest number of blocks in memory.
    pub(crate) max_blocks: usize,
}

/// The agent that runs all recordings.
///
/// Contract: commands and reports are queues; each command to start has one report `Stopped`, after which the recording
/// has no request in flight and its counter is not written any more; or, at the end of the archive, `Abandoned`.
pub(crate) struct Recorder {
    options: RecorderOptions,
    io: DiskIo,
    commands: Receiver<RecorderCommand>,
    reports: Outgoing<RecorderReport>,
    /// The slot is part of the tokens of requests.
    recordings: Slots<Recording>,
    buffers: BufferPool,
    events: RecordingEvents,
    counters: RecorderCounters,
    cycle: Option<DutyCycleTracker>,
    /// Tells how much time passes at the end, when there are no duty cycles any more.
    clock: Box<dyn Clock>,
    now: Now,
}

impl Recorder {
    pub(crate) fn new(
        options: RecorderOptions,
        io: DiskIo,
        (commands, reports): (Receiver<RecorderCommand>, Sender<RecorderReport>),
        events: RecordingEvents,
        counters: RecorderCounters,
        cycle: Option<DutyCycleTracker>,
        clock: Box<dyn Clock>,
    ) -> Self {
        Self {
            buffers: BufferPool::new(options.block_length, options.max_blocks),
            options,
            io,
            commands,
            reports: Outgoing::new(reports),
            recordings: Slots::new(),
            events,
            counters,
            cycle,
            clock,
            now: Now::default(),
        }
    }

    fn poll_commands(&mut self) -> usize {
        let mut work = 0;
        while let Some(command) = self.commands.try_recv() {
            work += 1;
            match command {
                RecorderCommand::Start(spec) => self.start(*spec),
                RecorderCommand::Stop { recording_id } => {
                    let recordings = self.recordings.iter_mut();
                    for recording in recordings.filter(|recording| recording.id() == recording_id) {
                        recording.stop();
                    }
                }
            }
        }
        work
    }

    fn start(&mut self, spec: RecordingSpec) {
        let (options, io, events) = (&self.options, &mut self.io, &mut self.events);
        self.recordings.add(|slot| {
            let token = (slot as u64) << TOKEN_BITS;
            Recording::start(spec, options, token, io, events)
        });
    }

    fn poll_completions(&mut self) -> usize {
        let mut work = 0;
        while let Some(completion) = self.io.poll(self.now.nanos) {
            work += 1;
            let slot = (completion.token >> TOKEN_BITS) as usize;
            let service_ns = completion.service_ns;
            let Some(recording) = self.recordings.get_mut(slot) else {
                continue;
            };
            let completed = recording.on_completion(completion, self.now.nanos, &mut self.io);
            if let Some(buffer) = completed.buffer {
                self.buffers.give_back(buffer);
            }
            if completed.written > 0 {
                self.counters.max_write_ns.propose_max(service_ns);
                self.counters.total_write_ns.add(service_ns);
                self.counters
                    .total_write_bytes
                    .add(completed.written as i64);
            }
        }
        work
    }

    fn poll_recordings(&mut self) -> usize {
        let mut work = 0;
        for slot in (0..self.recordings.len()).rev() {
            let Some(recording) = self.recordings.get_mut(slot) else {
                continue;
            };
            work += recording.poll(
                self.now.nanos,
                &mut self.io,
                &mut self.buffers,
                &mut self.events,
                &mut self.reports,
            );
            if recording.is_closed() {
                self.recordings.remove(slot);
            }
        }
        work
    }

    fn is_idle(&self) -> bool {
        self.recordings.is_empty() && self.io.is_idle()
    }
}

impl Agent for Recorder {
    fn do_work(&mut self, now: Now) -> Result<usize, AgentEnd> {
        self.now = now;
        if let Some(cycle) = &mut self.cycle {
            cycle.begin_cycle(now.nanos);
        }
        let work = self.poll_commands() + self.poll_completions() + self.poll_recordings();
        self.reports.forward();
        Ok(work)
    }

    fn role_name(&self) -> &str {
        "archive-recorder"
    }

    /// Ends all recordings and waits for their last writes. A recording whose writes a device does not complete for
    /// [`CLOSE_TIMEOUT`] is abandoned: it has no stop position, and is recovered at the next start.
    fn on_close(&mut self) {
        self.poll_commands();
        for recording in self.recordings.iter_mut() {
            recording.stop();
        }
        let (last_now_ns, start_ns) = (self.now.nanos, self.clock.now().nanos);
        let mut last_work_ns = last_now_ns;
        loop {
            let passed_ns = self.clock.now().nanos.saturating_sub(start_ns);
            self.now.nanos = last_now_ns.saturating_add(passed_ns);
            let work = self.poll_completions() + self.poll_recordings();
            self.reports.forward();
            if self.is_idle() {
                return;
            }
            let now_ns = self.now.nanos;
            if work > 0 {
                last_work_ns = now_ns;
            } else if now_ns.saturating_sub(last_work_ns) >= CLOSE_TIMEOUT.as_nanos() as i64 {
                for recording in self.recordings.iter_mut() {
                    let recording_id = recording.id();
                    self.reports
                        .send(RecorderReport::Abandoned { recording_id });
                }
                return;
            } else {
                std::thread::yield_now();
            }
        }
    }
}
