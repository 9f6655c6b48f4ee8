// SPDX-License-Identifier: Apache-2.0
//! Requests that change recordings: purging, detached segments, channels (`docs/spec/archive.md` §2.7).

use taran_archive_client::protocol::ErrorCode;
use taran_protocol::uri::ChannelUri;

use super::deletion::Selection;
use super::request::{Refusal, Requester};
use super::{ConductorCore, Deferred};
use crate::channel::DerivedChannel;
use crate::files::EntryState;

impl ConductorCore {
    pub(super) fn purge_recording(
        &mut self,
        recording_id: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        self.known(recording_id)?;
        self.check_unused(recording_id)?;
        self.check_no_deletion(recording_id)?;
        let changed = self.catalog.set_state(recording_id, EntryState::Deleted);
        let ticket = self.store.submit(changed.map_err(Refusal::logged)?);
        self.delete_files(recording_id, to, Selection::All, ticket, None);
        self.remove_time_index(recording_id);
        Ok(())
    }

    pub(super) fn detach_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        self.check_detach(recording_id, new_start)?;
        let changed = self.catalog.set_start_position(recording_id, new_start);
        self.after(changed.map_err(Refusal::logged)?, Deferred::Ok(to, 0));
        Ok(())
    }

    fn check_detach(&self, recording_id: i64, new_start: i64) -> Result<(), Refusal> {
        let found = self.known(recording_id)?;
        let layout = found.layout().map_err(Refusal::logged)?;
        let invalid = |text: String| Refusal::new(ErrorCode::Generic, text);
        if !layout.is_base(new_start) {
            return Err(invalid(format!(
                "the new start position {new_start} is not the base position of a segment: these are {} and multiples of \
                 {} bytes from there",
                layout.first_base(),
                layout.segment_length()
            )));
        }
        let lowest = layout.next_base(layout.first_base());
        let end = self
            .recorded_position(recording_id)
            .unwrap_or(found.stop_position);
        let highest = layout.base_of(end);
        if new_start < lowest || new_start > highest {
            return Err(invalid(format!(
                "the new start position {new_start} is not from {lowest}, behind the first segment, to {highest}, the base \
                 of the last one"
            )));
        }
        match self.lowest_replay_position(recording_id) {
            Some(position) if layout.base_of(position) < new_start => Err(invalid(format!(
                "a replay of the recording {recording_id} is at position {position}, before the new start {new_start}"
            ))),
            _ => Ok(()),
        }
    }

    pub(super) fn delete_detached_segments(
        &mut self,
        recording_id: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        let first_base = self
            .known(recording_id)?
            .layout()
            .map_err(Refusal::logged)?
            .first_base();
        self.check_no_deletion(recording_id)?;
        self.delete_files(recording_id, to, Selection::Below(first_base), 0, None);
        Ok(())
    }

    pub(super) fn purge_segments(
        &mut self,
        recording_id: i64,
        new_start: i64,
        to: Requester,
    ) -> Result<(), Refusal> {
        self.check_detach(recording_id, new_start)?;
        self.check_no_deletion(recording_id)?;
        let changed = self.catalog.set_start_position(recording_id, new_start);
        let ticket = self.store.submit(changed.map_err(Refusal::logged)?);
        self.delete_files(recording_id, to, Selection::Below(new_start), ticket, None);
        Ok(())
    }

    pub(super) fn update_channel(
        &mut self,
        recording_id: i64,
        channel: &str,
        to: Requester,
    ) -> Result<(), Refusal> {
        self.check_no_listing(to.session_id)?;
        if self.known(recording_id).is_err() {
            self.end_of_recordings(to, recording_id);
            return Ok(());
        }
        let uri = ChannelUri::parse(channel).map_err(Refusal::logged)?;
        let stripped = DerivedChannel::stripped(&uri).text();
        let changed = self.catalog.set_channels(recording_id, &stripped, channel);
        self.after(changed.map_err(Refusal::logged)?, Deferred::Ok(to, 0));
        Ok(())
    }
}
