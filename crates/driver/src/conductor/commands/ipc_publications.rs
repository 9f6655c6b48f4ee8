// SPDX-License-Identifier: Apache-2.0
//! Commands that add IPC publications.

use taran_protocol::counter::StreamCounter;

use super::super::clients::PublicationRef;
use super::super::command_error::CommandError;
use super::super::deferred_commands::ResolvedPrerequisites;
use super::super::failure::Failure;
use super::super::ipc::{IpcPublication, PublisherCounters, Timeouts};
use super::super::log_files::LogFile;
use super::super::state::ConductorState;
use super::publications::{
    NewPublication, PublicationNotice, identity, publisher_position, session_conflict,
};

/// Status counter id for "none": IPC has no channel status.
const NO_STATUS: i32 = -1;

impl ConductorState {
    pub(super) fn add_ipc_publication(
        &mut self,
        new: &NewPublication,
        prerequisites: &mut ResolvedPrerequisites,
    ) -> Result<(), CommandError> {
        self.ensure_client(new.client_id)?;
        if !new.exclusive
            && let Some(existing) = self.ipc.find_shared(new.stream_id, new.params.response)
        {
            new.params
                .check_shared(&existing.config.live(false), &new.channel)
                .map_err(Failure::from)?;
            existing.add_reference();
            let notice = notice(existing);
            self.finish_publication(new, PublicationRef::Ipc(notice.registration_id), notice);
            return Ok(());
        }
        if let Some(session_id) = new.session_id
            && self.ipc.uses_session(new.stream_id, session_id)
        {
            return Err(session_conflict(new, session_id).into());
        }
        let file = self.log_file(new, prerequisites)?;
        let publication = self.create_ipc_publication(new, file)?;
        let notice = notice(&publication);
        self.ipc.insert(publication);
        self.link_ipc_response(new.params.response, notice.session_id);
        self.finish_publication(new, PublicationRef::Ipc(new.correlation_id), notice);
        self.join_subscriptions(PublicationRef::Ipc(new.correlation_id));
        Ok(())
    }

    fn create_ipc_publication(
        &mut self,
        new: &NewPublication,
        file: LogFile,
    ) -> Result<IpcPublication, Failure> {
        let config = self.publication_config(new);
        let start = config.start_position();
        let buffers = self.networking.sockets.log_buffers(None);
        let log = self.create_log(&config, file, start, buffers, false)?;
        let kinds = [
            publisher_position(new.exclusive),
            StreamCounter::PUBLISHER_LIMIT,
        ];
        match self
            .counters
            .stream(kinds, &identity(&config), new.client_id, start)
        {
            Ok([position, limit]) => {
                let timeouts = Timeouts {
                    unblock_ns: self.settings.publication.unblock_timeout_ns,
                    untethered: config.params.untethered,
                };
                let counters = PublisherCounters { position, limit };
                Ok(IpcPublication::new(config, log, counters, timeouts, start))
            }
            Err(failure) => {
                self.logs.retire(log.into_file());
                Err(failure)
            }
        }
    }
}

fn notice(publication: &IpcPublication) -> PublicationNotice {
    PublicationNotice {
        registration_id: publication.registration_id,
        session_id: publication.config.session_id,
        limit_counter_id: publication.counters.limit.id(),
        status_counter_id: NO_STATUS,
        log_name: publication.log.name().to_owned(),
    }
}
