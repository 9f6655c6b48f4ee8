// SPDX-License-Identifier: Apache-2.0
//! Entries of the log: those that the leader appends by itself, and the consumption of all.

use super::{ModuleAgent, ModuleError};
use crate::consensus::{LogEvent, Role};
use crate::module::egress::{append, append_message};
use crate::protocol::{
    ClusterAction, ClusterActionRequest, LogMessage, NewLeadershipTermEvent, SESSION_HEADER_LENGTH,
    SessionMessageHeader, TimerEvent,
};
use crate::service::Service;
use taran::OfferError;

/// Timers and messages of services per duty cycle.
const LIMIT: usize = 20;
/// Length of a NewLeadershipTermEvent and of a ClusterActionRequest in the log.
const ACTION_LENGTH: i64 = 96;
/// Attempts to append an action, as each may meet the end of a term.
const ATTEMPTS: usize = 3;

impl<S: Service> ModuleAgent<S> {
    pub(super) fn append_term_event(&mut self) -> Result<(), ModuleError> {
        let Some((term, base)) = self.term_event else {
            return Ok(());
        };
        let event = NewLeadershipTermEvent {
            leadership_term_id: term,
            log_position: base + ACTION_LENGTH,
            timestamp: self.timestamp(),
            term_base_log_position: base,
            leader_member_id: self.config.member_id,
            log_session_id: self.log.session_id().unwrap_or(0),
            time_unit: Some(self.config.time_unit),
            app_version: Some(self.config.app_version),
        };
        let Some(publication) = self.log.publication() else {
            return Ok(());
        };
        let message = LogMessage::NewLeadershipTermEvent(event);
        let appended = append_message(publication, &message, &mut self.buffer);
        if appended.map_err(ModuleError::Log)?.is_some() {
            self.term_event = None;
            self.replicated.own_base = Some(base + ACTION_LENGTH);
        }
        Ok(())
    }

    pub(super) fn fire_timers(&mut self) -> Result<usize, ModuleError> {
        let timestamp = self.timestamp();
        let Some(term) = self.core.term() else {
            return Ok(0);
        };
        let Self {
            replicated,
            log,
            buffer,
            ..
        } = self;
        let mut fired = 0;
        while fired < LIMIT
            && let Some(id) = replicated.timers.due(timestamp)
            && let Some(publication) = log.publication()
        {
            let event = LogMessage::TimerEvent(TimerEvent {
                leadership_term_id: term,
                correlation_id: id,
                timestamp,
            });
            let appended = append_message(publication, &event, buffer);
            let Some(position) = appended.map_err(ModuleError::Log)? else {
                break;
            };
            replicated.timers.fired(id, position);
            fired += 1;
        }
        Ok(fired)
    }

    pub(super) fn append_service_messages(&mut self) -> Result<usize, ModuleError> {
        let timestamp = self.timestamp();
        let Some(term) = self.core.term() else {
            return Ok(0);
        };
        let Self {
            replicated, log, ..
        } = self;
        let mut count = 0;
        for pending in &mut replicated.pending {
            for _ in 0..LIMIT {
                let (Some(message), Some(publication)) = (pending.next(), log.publication()) else {
                    break;
                };
                let header = message_header(term, message.id, timestamp);
                let appended = append(publication, &[&header, &message.payload]);
                let Some(position) = appended.map_err(ModuleError::Log)? else {
                    return Ok(count);
                };
                pending.appended(position);
                count += 1;
            }
        }
        Ok(count)
    }

    /// Appends an action for all members. Returns the position behind it, or none if there is no room now.
    pub(super) fn append_action(
        &mut self,
        action: ClusterAction,
        flags: i32,
    ) -> Result<Option<i64>, ModuleError> {
        let timestamp = self.timestamp();
        let term = self.core.term().unwrap_or(-1);
        let Some(publication) = self.log.publication() else {
            return Ok(None);
        };
        for _ in 0..ATTEMPTS {
            let message = LogMessage::ClusterActionRequest(ClusterActionRequest {
                leadership_term_id: term,
                log_position: publication.position() + ACTION_LENGTH,
                timestamp,
                action,
                flags: Some(flags),
            });
            let Ok(length) = message.encode(&mut self.buffer) else {
                return Ok(None);
            };
            match publication.offer(&self.buffer[..length]) {
                Ok(position) => return Ok(Some(position)),
                // The position is that of the next term now.
                Err(OfferError::AdminAction) => {}
                Err(error) if error.is_retryable() => return Ok(None),
                Err(error) => return Err(ModuleError::Log(error)),
            }
        }
        Ok(None)
    }

    /// Applies entries that are committed.
    pub(super) fn consume(&mut self) -> Result<usize, ModuleError> {
        // Containers acknowledge a snapshot after this member has consumed its entry: they must not begin one beside another.
        let is_held = self.has_containers() && self.snapshot.is_some();
        if self.replicated.snapshot_due.is_some() || is_held {
            return Ok(0);
        }
        let commit = self.core.commit_position();
        // Containers read to this counter, and so never beyond what this member has consumed.
        let shows_consumed = self.has_containers() || self.core.role() != Role::Leader;
        let Self {
            log,
            log_assembler,
            replicated,
            config,
            core,
            now,
            counters,
            ..
        } = self;
        let Some((image, end)) = log.image() else {
            return Ok(0);
        };
        let limit = commit.min(end);
        let handler = |bytes: &[u8], header: &taran::Header<'_>| {
            replicated.on_entry(bytes, header.position())
        };
        let fragments = image.bounded_controlled_poll(
            log_assembler.wrap(handler),
            limit,
            config.log_fragment_limit,
        );
        let position = image.view().position();
        if fragments > 0 || position > replicated.position {
            // Padding counts as consumed.
            replicated.position = replicated.position.max(position);
            if shows_consumed {
                counters.commit.set(position);
            }
            log.on_consumed(position);
            core.on_log(now.nanos, LogEvent::Consumed { position });
        }
        if let Some(error) = self.replicated.failure.take() {
            return Err(error.into());
        }
        Ok(fragments)
    }
}

/// Returns the header of a message in the log.
pub(super) fn message_header(
    term: i64,
    session: i64,
    timestamp: i64,
) -> [u8; SESSION_HEADER_LENGTH] {
    let header = SessionMessageHeader {
        leadership_term_id: term,
        cluster_session_id: session,
        timestamp,
    };
    let mut bytes = [0; SESSION_HEADER_LENGTH];
    // The buffer has the length of the header.
    let _ = header.encode(&mut bytes);
    bytes
}
