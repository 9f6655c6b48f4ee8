//! Random runs of the writer, the model that checks them, and their shrinking.

use std::fmt;

use fastrand::Rng;
use taran_storage::{InlineQueue, Operation};

use crate::disk::{DiskTimes, ProcessDisk, SimDisk, SimDiskOptions};

use super::{Defect, LogWriter};

/// Disk seeds that a shorter scenario is tried with before it counts as passing.
const SHRINK_SEEDS: u64 = 200;

/// An operation of a scenario.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Appends records of about this payload length in bytes.
    Append {
        /// Number of records.
        count: u32,
        /// Longest payload.
        len: usize,
    },
    /// Lets virtual time pass, in nanoseconds.
    Run(i64),
    /// Cuts the power.
    PowerCut,
    /// Kills the process.
    Kill,
    /// Fails the next operation of this kind.
    Fail(Operation),
    /// Leaves no free space.
    FillDisk,
    /// Gives the space back.
    FreeDisk,
}

/// A run as data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// Seed of the disk and of the payloads.
    pub seed: u64,
    /// The defect of the writer.
    pub defect: Option<Defect>,
    /// Length of a sector in bytes.
    pub sector_bytes: usize,
    /// The operations.
    pub steps: Vec<Step>,
}

/// Result of a run without a failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Power cuts.
    pub power_cuts: u64,
    /// Completed recoveries.
    pub recoveries: u64,
    /// Records acknowledged by writers while they ran.
    pub acknowledged: u64,
    /// Records found by the last recovery.
    pub records: u64,
}

/// A violated rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// Index of the step.
    pub step: usize,
    /// The rule and the values.
    pub text: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "step {}: {}", self.step, self.text)
    }
}

impl std::error::Error for Failure {}

impl Scenario {
    /// Generates a scenario.
    pub fn random(seed: u64, defect: Option<Defect>) -> Self {
        let mut rng = Rng::with_seed(seed);
        let count = rng.usize(4..60);
        Self {
            seed,
            defect,
            sector_bytes: if rng.bool() { 512 } else { 4096 },
            steps: (0..count).map(|_| random_step(&mut rng)).collect(),
        }
    }

    /// Runs the scenario. The same scenario gives the same result.
    ///
    /// # Errors
    ///
    /// The violated rule.
    pub fn run(&self) -> Result<Outcome, Failure> {
        let mut run = Run::new(self);
        // The last recovery checks what was acknowledged since the one before.
        let last = [Step::FreeDisk, Step::PowerCut];
        for (index, step) in self.steps.iter().chain(&last).enumerate() {
            run.step(*step)
                .map_err(|text| Failure { step: index, text })?;
        }
        Ok(run.outcome)
    }

    /// Returns a scenario that fails and from which no step can be removed. Returns the scenario itself if it passes.
    #[must_use]
    pub fn shrink(&self) -> Self {
        let mut best = self.clone();
        if best.run().is_ok() {
            return best;
        }
        let mut chunk = best.steps.len().max(1);
        loop {
            let mut start = 0;
            let mut has_shrunk = false;
            while start < best.steps.len() {
                let end = (start + chunk).min(best.steps.len());
                let mut shorter = best.clone();
                shorter.steps.drain(start..end);
                match shorter.failing() {
                    Some(failing) => {
                        best = failing;
                        has_shrunk = true;
                    }
                    None => start = end,
                }
            }
            for index in 0..best.steps.len() {
                while let Some(failing) = best.with_fewer_records(index) {
                    best = failing;
                    has_shrunk = true;
                }
            }
            if chunk == 1 && !has_shrunk {
                return best;
            }
            chunk = (chunk / 2).max(1);
        }
    }

    /// Returns a failing scenario that appends fewer records in one step.
    fn with_fewer_records(&self, index: usize) -> Option<Self> {
        let Step::Append { count, len } = self.steps[index] else {
            return None;
        };
        if count == 1 {
            return None;
        }
        let mut shorter = self.clone();
        let count = count / 2;
        shorter.steps[index] = Step::Append { count, len };
        shorter.failing()
    }

    /// Returns this scenario with a disk seed with which it fails.
    fn failing(&self) -> Option<Self> {
        (0..SHRINK_SEEDS)
            .map(|offset| Self {
                seed: self.seed.wrapping_add(offset),
                ..self.clone()
            })
            .find(|scenario| scenario.run().is_err())
    }
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "seed={} defect={:?} sector={}",
            self.seed, self.defect, self.sector_bytes
        )?;
        for step in &self.steps {
            write!(f, "\n  {step:?}")?;
        }
        if let Err(failure) = self.run() {
            write!(f, "\n  fails at {failure}")?;
        }
        Ok(())
    }
}

fn random_step(rng: &mut Rng) -> Step {
    match rng.u32(0..20) {
        0..=6 => Step::Append {
            count: rng.u32(1..12),
            len: [16, 100, 1024][rng.usize(0..3)],
        },
        7..=12 => Step::Run([50_000, 1_000_000, 10_000_000][rng.usize(0..3)]),
        13..=15 => Step::PowerCut,
        16 => Step::Kill,
        17 => Step::Fail(
            [
                Operation::Write,
                Operation::Sync,
                Operation::SyncDirectory,
                Operation::Read,
            ][rng.usize(0..4)],
        ),
        18 => Step::FillDisk,
        _ => Step::FreeDisk,
    }
}

type Writer = LogWriter<InlineQueue<DiskTimes>>;

/// A record as it was appended: its payload follows from both numbers.
#[derive(Clone, Copy, Debug)]
struct Appended {
    content: u64,
    len: usize,
}

impl Appended {
    fn payload(self) -> Vec<u8> {
        let mut rng = Rng::with_seed(self.content);
        (0..self.len).map(|_| rng.u8(..)).collect()
    }
}

/// A run: disk, process, and the model of what the log must hold.
struct Run {
    disk: SimDisk,
    capacity: u64,
    defect: Option<Defect>,
    rng: Rng,
    now_ns: i64,
    process: Option<(ProcessDisk, Writer)>,
    /// Records by sequence number: those recovered, and those appended since.
    appended: Vec<Appended>,
    acknowledged: u64,
    outcome: Outcome,
}

impl Run {
    fn new(scenario: &Scenario) -> Self {
        let options = SimDiskOptions {
            sector_bytes: scenario.sector_bytes,
            ..SimDiskOptions::default()
        };
        Self {
            disk: SimDisk::new(scenario.seed, options),
            capacity: options.capacity,
            defect: scenario.defect,
            rng: Rng::with_seed(scenario.seed ^ 0x5eed),
            now_ns: 0,
            process: None,
            appended: Vec::new(),
            acknowledged: 0,
            outcome: Outcome::default(),
        }
    }

    fn step(&mut self, step: Step) -> Result<(), String> {
        self.start()?;
        match step {
            Step::Append { count, len } => (0..count).for_each(|_| self.append(len)),
            Step::Run(ns) => self.run_for(ns)?,
            Step::PowerCut => {
                self.disk.power_cut();
                self.process = None;
                self.outcome.power_cuts += 1;
            }
            Step::Kill => self.kill(),
            Step::Fail(operation) => self.disk.fail_next(operation),
            Step::FillDisk => self.disk.set_capacity(self.disk.used()),
            Step::FreeDisk => self.disk.set_capacity(self.capacity),
        }
        self.start()
    }

    fn append(&mut self, longest: usize) {
        let Some((_, writer)) = &mut self.process else {
            return;
        };
        let record = Appended {
            content: self.rng.u64(..),
            len: self.rng.usize(1..=longest),
        };
        if writer.append(record.payload()) {
            self.appended.push(record);
        }
    }

    fn run_for(&mut self, ns: i64) -> Result<(), String> {
        let end_ns = self.now_ns + ns;
        while let Some((_, writer)) = &mut self.process {
            let worked = writer.do_work(self.now_ns);
            let acknowledged = writer.acknowledged();
            let next_ns = writer.next_deadline_ns().max(self.now_ns + 1);
            self.outcome.acknowledged += acknowledged.saturating_sub(self.acknowledged);
            self.acknowledged = acknowledged;
            if acknowledged > self.appended.len() as u64 {
                return Err(format!(
                    "{acknowledged} acknowledged of {}",
                    self.appended.len()
                ));
            }
            if worked.is_err() {
                // The process ends itself; its page cache stays.
                self.kill();
                self.start()?;
            }
            if next_ns > end_ns {
                break;
            }
            self.now_ns = next_ns;
        }
        self.now_ns = end_ns;
        Ok(())
    }

    fn kill(&mut self) {
        if let Some((disk, _)) = self.process.take() {
            disk.revoke_all();
        }
    }

    /// Starts the process if there is none, and checks what it recovered. A start can fail for a reason that lies in the
    /// disk; the next step tries again.
    fn start(&mut self) -> Result<(), String> {
        if self.process.is_some() {
            return Ok(());
        }
        let disk = self.disk.process();
        let started = LogWriter::start(&disk, disk.queue(2, 8), self.defect);
        let Ok((writer, records)) = started else {
            disk.revoke_all();
            return Ok(());
        };
        self.check(&records)?;
        self.appended.truncate(records.len());
        self.acknowledged = records.len() as u64;
        self.outcome.recoveries += 1;
        self.outcome.records = self.acknowledged;
        self.process = Some((disk, writer));
        Ok(())
    }

    fn check(&self, records: &[Vec<u8>]) -> Result<(), String> {
        if (records.len() as u64) < self.acknowledged {
            return Err(format!(
                "{} records recovered, but {} were acknowledged",
                records.len(),
                self.acknowledged
            ));
        }
        for (sequence, record) in records.iter().enumerate() {
            match self.appended.get(sequence) {
                None => return Err(format!("record {sequence} was never appended")),
                Some(appended) if appended.payload() != *record => {
                    return Err(format!(
                        "record {sequence} has bytes that were not appended"
                    ));
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}
