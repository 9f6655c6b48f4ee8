// SPDX-License-Identifier: Apache-2.0
//! Durable writes, one after the other.

use super::{ModuleAgent, ModuleError};
use crate::consensus::Write;
use crate::service::Service;

impl<S: Service> ModuleAgent<S> {
    /// Completes writes, and starts the next one. Returns the number of completed ones.
    pub(super) fn write(&mut self) -> Result<usize, ModuleError> {
        let now = self.now.nanos;
        let mut work = 0;
        loop {
            self.files.poll(now)?;
            if !self.files.is_flushed() {
                break;
            }
            if let Some(sequence) = self.flushing.take() {
                self.core.on_durable(now, sequence);
                work += 1;
                self.decide()?;
            }
            let Some((sequence, write)) = self.writes.front().copied() else {
                break;
            };
            if !self.start_write(write) {
                break;
            }
            self.writes.pop_front();
            self.flushing = Some(sequence);
        }
        Ok(work)
    }

    /// Returns true once the write is handed to the disk.
    fn start_write(&mut self, write: Write) -> bool {
        let (now_ms, append) = (self.now.epoch_millis, self.log.append_position());
        let timestamp = self.timestamp();
        let recording_id = self.log.params().recording_id;
        match write {
            Write::CandidateTerm(term) => {
                self.files.set_candidate_term(term, now_ms, append);
                true
            }
            Write::Term { term, base } => {
                self.files
                    .change(|log| log.append_term(recording_id, term, base, timestamp));
                true
            }
            Write::Truncate {
                position,
                from_term,
            } => {
                if append > position && !self.truncate(recording_id, position) {
                    return false;
                }
                self.files.change(|log| log.truncate(position, from_term));
                true
            }
        }
    }

    /// Returns true once the recording is truncated.
    fn truncate(&mut self, recording_id: i64, position: i64) -> bool {
        if self.truncation.is_none() {
            drop(self.archive.stop_all_replays(Some(recording_id)));
        }
        let archive = &mut self.archive;
        let call = self
            .truncation
            .get_or_insert_with(|| archive.truncate_recording(recording_id, position));
        let Some(result) = call.poll() else {
            return false;
        };
        self.truncation = None;
        if let Err(error) = result {
            // A replay may still be ending: the request is repeated.
            self.error(&format!(
                "the log cannot be truncated to {position}: {error}"
            ));
            return false;
        }
        self.log.on_truncated(position);
        true
    }
}
