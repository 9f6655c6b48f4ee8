// SPDX-License-Identifier: Apache-2.0
//! Knowledge of the users of a log, and the invariants over it.

use fastrand::Rng;

use crate::World;
use crate::check::{Violation, violation};
use crate::process::Invariant;

/// A record as it was appended: its payload follows from both numbers.
#[derive(Clone, Copy, Debug)]
pub struct Appended {
    content: u64,
    len: usize,
}

impl Appended {
    /// Returns a record of up to this length.
    pub(super) fn random(random: &mut Rng, longest: usize) -> Self {
        Self {
            content: random.u64(..),
            len: random.usize(1..=longest),
        }
    }

    /// Returns the payload.
    #[must_use]
    pub fn payload(self) -> Vec<u8> {
        let mut rng = Rng::with_seed(self.content);
        let mut payload = vec![0; self.len];
        rng.fill(&mut payload);
        payload
    }
}

/// Records that a recovery found, beside those known before it.
#[derive(Debug, Default)]
struct Recovery {
    found: Vec<Vec<u8>>,
    appended: Vec<Appended>,
    acknowledged: u64,
}

/// Records that were appended and acknowledged, and the last recovery.
#[derive(Debug, Default)]
pub struct Journal {
    /// Records by sequence number: those recovered, and those appended since.
    appended: Vec<Appended>,
    /// Number of records acknowledged, from the first one of the log.
    acknowledged: u64,
    /// Records acknowledged by all runs of the writer.
    total_acknowledged: u64,
    last: Recovery,
    recoveries: u64,
}

impl Journal {
    /// Records an append that the writer has accepted.
    pub(super) fn on_append(&mut self, record: Appended) {
        self.appended.push(record);
    }

    /// Records that the writer has acknowledged this number of records of the log.
    pub(super) fn on_acknowledged(&mut self, records: u64) {
        self.total_acknowledged += records.saturating_sub(self.acknowledged);
        self.acknowledged = records;
    }

    /// Records a recovery. Records that were not acknowledged and not found are given up.
    pub(super) fn on_recovery(&mut self, found: Vec<Vec<u8>>) {
        let known = self.appended.len().min(found.len());
        let appended = self.appended[..known].to_vec();
        self.last = Recovery {
            appended: std::mem::replace(&mut self.appended, appended),
            acknowledged: self.acknowledged,
            found,
        };
        self.acknowledged = self.last.found.len() as u64;
        self.recoveries += 1;
    }

    /// Returns the number of recoveries so far.
    #[must_use]
    pub fn recoveries(&self) -> u64 {
        self.recoveries
    }

    /// Returns the number of records that writers have acknowledged so far.
    #[must_use]
    pub fn total_acknowledged(&self) -> u64 {
        self.total_acknowledged
    }

    /// Returns true if every record of the log is acknowledged.
    #[must_use]
    pub fn is_all_acknowledged(&self) -> bool {
        self.acknowledged == self.appended.len() as u64
    }
}

/// Returns the last recovery, if it is a new one.
fn new_recovery<'w>(world: &'w World, checked: &mut u64) -> Option<&'w Recovery> {
    let journal = world.shared::<Journal>()?;
    let is_new = journal.recoveries != *checked;
    *checked = journal.recoveries;
    is_new.then_some(&journal.last)
}

/// A recovery finds each record that was acknowledged before it.
#[derive(Debug, Default)]
pub struct AcknowledgedSurvive {
    /// Recoveries checked.
    checked: u64,
}

impl Invariant for AcknowledgedSurvive {
    fn name(&self) -> &'static str {
        "acknowledged records survive"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        let Some(recovery) = new_recovery(world, &mut self.checked) else {
            return Ok(());
        };
        let (found, acknowledged) = (recovery.found.len(), recovery.acknowledged);
        if (found as u64) < acknowledged {
            violation!("{found} records recovered, but {acknowledged} were acknowledged");
        }
        Ok(())
    }
}

/// Each record that a recovery finds was appended, and not given up by an earlier recovery.
#[derive(Debug, Default)]
pub struct RecoveredWereAppended {
    /// Recoveries checked.
    checked: u64,
}

impl Invariant for RecoveredWereAppended {
    fn name(&self) -> &'static str {
        "recovered records were appended"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        let Some(recovery) = new_recovery(world, &mut self.checked) else {
            return Ok(());
        };
        for (sequence, found) in recovery.found.iter().enumerate() {
            match recovery.appended.get(sequence) {
                None => violation!("record {sequence} was never appended"),
                Some(appended) if appended.payload() != *found => {
                    violation!("record {sequence} has bytes that were not appended");
                }
                Some(_) => {}
            }
        }
        Ok(())
    }
}

/// No more records are acknowledged than were appended.
#[derive(Debug)]
pub struct AcknowledgedWereAppended;

impl Invariant for AcknowledgedWereAppended {
    fn name(&self) -> &'static str {
        "acknowledged records were appended"
    }

    fn check(&mut self, world: &World) -> Result<(), Violation> {
        let Some(journal) = world.shared::<Journal>() else {
            return Ok(());
        };
        let (acknowledged, appended) = (journal.acknowledged, journal.appended.len());
        // What a recovery found without an append is the subject of another invariant.
        if acknowledged > (appended as u64).max(journal.last.found.len() as u64) {
            violation!("{acknowledged} records acknowledged of {appended}");
        }
        Ok(())
    }
}
