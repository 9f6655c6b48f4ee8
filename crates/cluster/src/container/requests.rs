// SPDX-License-Identifier: Apache-2.0
//! Requests of a container to its consensus module.

use std::collections::VecDeque;

use taran::{OfferError, Publication};

use crate::protocol::{
    CancelTimer, CloseSession, SESSION_HEADER_LENGTH, ScheduleTimer, ServiceAck, ServiceRequest,
    SessionMessageHeader,
};
use crate::state::ServiceMessageError;

/// Attempts of one message, as each may meet the end of a term.
const ATTEMPTS: usize = 3;

/// Requests to the consensus module, in order. A request that finds no room waits, and those after it with it:
/// the container reads no further entry of the log while [`is_flushed`](Self::is_flushed) is false, so that all members send the
/// same requests, and what waits is bounded by what the service asks for in one call.
pub(crate) struct Requests {
    service_id: i32,
    publication: Publication,
    waiting: VecDeque<Vec<u8>>,
    next_ack_id: i64,
    failure: Option<OfferError>,
}

impl Requests {
    pub(super) fn new(service_id: i32, publication: Publication) -> Self {
        Self {
            service_id,
            publication,
            waiting: VecDeque::new(),
            next_ack_id: 0,
            failure: None,
        }
    }

    pub(crate) fn close_session(&mut self, cluster_session_id: i64) {
        self.send(&ServiceRequest::CloseSession(CloseSession {
            cluster_session_id,
        }));
    }

    pub(crate) fn schedule_timer(&mut self, correlation_id: i64, deadline: i64) {
        self.send(&ServiceRequest::ScheduleTimer(ScheduleTimer {
            correlation_id,
            deadline,
        }));
    }

    pub(crate) fn cancel_timer(&mut self, correlation_id: i64) {
        self.send(&ServiceRequest::CancelTimer(CancelTimer { correlation_id }));
    }

    pub(crate) fn offer(&mut self, payload: &[u8]) -> Result<(), ServiceMessageError> {
        let max = self.publication.max_message_length();
        if payload.len() + SESSION_HEADER_LENGTH > max {
            return Err(ServiceMessageError::TooLong {
                service_id: self.service_id,
                length: payload.len(),
                max: max.saturating_sub(SESSION_HEADER_LENGTH),
            });
        }
        let header = SessionMessageHeader {
            leadership_term_id: 0,
            cluster_session_id: i64::from(self.service_id),
            timestamp: 0,
        };
        let mut bytes = [0; SESSION_HEADER_LENGTH];
        // The buffer has the length of the header.
        let _ = header.encode(&mut bytes);
        self.send_parts(&[&bytes, payload]);
        Ok(())
    }

    /// Acknowledges a position. Acknowledgements are numbered from 0.
    pub(super) fn acknowledge(&mut self, log_position: i64, timestamp: i64, relevant_id: i64) {
        let ack_id = self.next_ack_id;
        self.next_ack_id += 1;
        self.send(&ServiceRequest::ServiceAck(ServiceAck {
            log_position,
            timestamp,
            ack_id,
            relevant_id,
            service_id: self.service_id,
        }));
    }

    fn send(&mut self, request: &ServiceRequest) {
        // Longer than each request, none of which has a text.
        let mut bytes = [0; 64];
        let length = request.encode(&mut bytes).unwrap_or(0);
        self.send_parts(&[&bytes[..length]]);
    }

    fn send_parts(&mut self, parts: &[&[u8]]) {
        if !self.waiting.is_empty() || !self.try_send(parts) {
            self.waiting.push_back(parts.concat());
        }
    }

    fn try_send(&mut self, parts: &[&[u8]]) -> bool {
        for _ in 0..ATTEMPTS {
            match self.publication.offer_parts(parts) {
                Ok(_) => return true,
                Err(error) if error.is_retryable() => {}
                Err(error) => {
                    self.failure = Some(error);
                    return false;
                }
            }
        }
        false
    }

    /// Sends what waits. Returns true once nothing does.
    pub(super) fn flush(&mut self) -> Result<bool, OfferError> {
        while let Some(bytes) = self.waiting.pop_front() {
            if !self.try_send(&[&bytes]) {
                self.waiting.push_front(bytes);
                break;
            }
        }
        self.failure.map_or(Ok(self.waiting.is_empty()), Err)
    }

    pub(super) fn is_flushed(&self) -> bool {
        self.waiting.is_empty()
    }
}
