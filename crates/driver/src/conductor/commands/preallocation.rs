// SPDX-License-Identifier: Apache-2.0
//! Preallocation of log files for queued commands.

use taran_protocol::command::Command;
use taran_protocol::uri::{Channel, SessionChoice};

use super::super::log_preallocator::{LogPreallocator, Preallocation};
use super::super::state::ConductorState;

impl ConductorState {
    /// Requests the log file of a queued command, if the command is likely to need one.
    pub(in crate::conductor) fn preallocate_log(
        &mut self,
        preallocator: &LogPreallocator,
        command: &Command<'_>,
    ) -> Option<Preallocation> {
        let (Command::AddPublication {
            correlation_id,
            stream_id,
            channel,
            ..
        }
        | Command::AddExclusivePublication {
            correlation_id,
            stream_id,
            channel,
            ..
        }) = *command
        else {
            return None;
        };
        let is_shared = matches!(command, Command::AddPublication { .. })
            && (self.ipc.can_share(stream_id) || self.networking.publications.can_share(stream_id));
        if is_shared || self.check_registration(correlation_id).is_err() {
            return None;
        }
        let channel = Channel::for_publication(channel).ok()?;
        // The tag may refer to another publication when the command runs.
        if let SessionChoice::OfTag(_) = SessionChoice::of(&channel).ok()? {
            return None;
        }
        let params = self.publication_params(&channel).ok()?;
        let request = self.log_request(correlation_id, &params);
        let length = request.dimensions.file_length;
        if !preallocator.has_room(stream_id, length) {
            return None;
        }
        let ticket = self.logs.request(&request, self.now.epoch_millis).ok()?;
        Some(Preallocation {
            ticket,
            stream_id,
            length,
        })
    }
}
