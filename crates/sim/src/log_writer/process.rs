// SPDX-License-Identifier: Apache-2.0
//! A process that runs a log writer.

use taran_storage::InlineQueue;

use super::journal::Journal;
use super::{Defect, LogWriter};
use crate::check::Violation;
use crate::disk::{DiskTimes, ProcessDisk};
use crate::process::{AfterKill, CycleContext, HostEnv, Process};
use crate::{HostIndex, ProcessId, World};

/// Workers of the disk queue.
const WORKERS: usize = 2;
/// Requests that each worker accepts.
const DEPTH: usize = 8;
/// Pause in nanoseconds after an error of the disk.
const RETRY_NS: i64 = 1_000_000;

/// A process with a [`LogWriter`]. After an error of the disk it recovers, with a new writer.
#[derive(Debug)]
pub struct LogWriterProcess {
    disk: ProcessDisk,
    defect: Option<Defect>,
    state: State,
}

#[derive(Debug)]
enum State {
    /// Recovers at this time.
    Stopped {
        until_ns: i64,
    },
    Running(Box<LogWriter<InlineQueue<DiskTimes>>>),
}

impl LogWriterProcess {
    /// Creates the process. It recovers in its first duty cycle.
    pub fn start(env: &mut HostEnv, defect: Option<Defect>) -> Self {
        Self {
            disk: env.disk(),
            defect,
            state: State::Stopped { until_ns: i64::MIN },
        }
    }

    /// Appends a record. Returns false if the process has not recovered yet.
    pub fn append(&mut self, payload: Vec<u8>) -> bool {
        match &mut self.state {
            State::Running(writer) => writer.append(payload),
            State::Stopped { .. } => false,
        }
    }
}

impl Process for LogWriterProcess {
    fn do_work(&mut self, context: &mut CycleContext<'_>) -> Result<usize, Violation> {
        let now_ns = context.now().nanos;
        let mut work = 0;
        if let State::Stopped { until_ns } = &mut self.state {
            if now_ns < *until_ns {
                return Ok(0);
            }
            let queue = self.disk.queue(WORKERS, DEPTH);
            let Ok((writer, records)) = LogWriter::start(&self.disk, queue, self.defect) else {
                *until_ns = now_ns + RETRY_NS;
                return Ok(0);
            };
            context.shared::<Journal>().on_recovery(records);
            self.state = State::Running(Box::new(writer));
            work = 1;
        }
        if let State::Running(writer) = &mut self.state {
            let worked = writer.do_work(now_ns);
            context
                .shared::<Journal>()
                .on_acknowledged(writer.acknowledged());
            if let Ok(done) = worked {
                work += done;
            } else {
                let until_ns = now_ns + RETRY_NS;
                self.state = State::Stopped { until_ns };
                work += 1;
            }
        }
        Ok(work)
    }

    fn next_deadline_ns(&self) -> Option<i64> {
        Some(match &self.state {
            State::Stopped { until_ns } => *until_ns,
            State::Running(writer) => writer.next_deadline_ns(),
        })
    }

    fn on_kill(&mut self) -> AfterKill {
        AfterKill::Drop
    }

    fn describe(&self) -> String {
        match &self.state {
            State::Stopped { until_ns } => format!("log writer, stopped until {until_ns} ns"),
            State::Running(writer) => {
                format!("log writer, {} records acknowledged", writer.acknowledged())
            }
        }
    }
}

/// Starts the writer of a host, or starts it again after a power cut.
pub(super) fn start(world: &mut World, host: HostIndex, defect: Option<Defect>) {
    let is_here = |id: &ProcessId| world.host_of_process(*id) == host;
    let mut writers = world.processes::<LogWriterProcess>().map(|(id, _)| id);
    let before = writers.find(is_here);
    drop(writers);
    match before {
        Some(id) => restart(world, id),
        None => {
            world.spawn(host, |env| LogWriterProcess::start(env, defect));
        }
    }
}

/// Starts a dead writer again.
pub(super) fn restart(world: &mut World, id: ProcessId) {
    let defect = world.process::<LogWriterProcess>(id).defect;
    world.restart(id, |env| LogWriterProcess::start(env, defect));
}
