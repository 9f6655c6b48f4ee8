// SPDX-License-Identifier: Apache-2.0
//! Messages of services that are not in the log yet.

use std::collections::VecDeque;

use thiserror::Error;

/// Append position of a message that is not appended.
const NOT_APPENDED: i64 = i64::MAX;

/// Most bytes of a service's pending messages.
const CAPACITY_LIMIT: usize = i32::MAX as usize;

/// Reason why messages of a service are lost, or were not the same on all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum ServiceMessageError {
    /// The log has a message that this member's service has not sent, or has sent otherwise.
    #[error(
        "the log has message {logged} of service {service_id}, expected {expected}: the service does not send the same messages \
         on all members"
    )]
    NotDeterministic {
        /// Service.
        service_id: i32,
        /// Number of the message in the log.
        logged: i64,
        /// Number expected.
        expected: i64,
    },
    /// More bytes are pending than the store holds.
    #[error(
        "service {service_id} has {bytes} bytes of pending messages: it sends faster than the log takes them"
    )]
    Overflow {
        /// Service.
        service_id: i32,
        /// Bytes that are pending.
        bytes: usize,
    },
    /// A message that does not fit the channel from the container to the consensus module.
    #[error(
        "the message of service {service_id} has {length} bytes, the control channel takes {max}: raise term-length in \
         aeron.cluster.control.channel of consensus module and containers"
    )]
    TooLong {
        /// Service.
        service_id: i32,
        /// Length in bytes.
        length: usize,
        /// Longest message in bytes.
        max: usize,
    },
    /// A snapshot with a tracker that contradicts its messages.
    #[error(
        "the snapshot has {count} pending messages of service {service_id} between {log} and {next}"
    )]
    InvalidSnapshot {
        /// Service.
        service_id: i32,
        /// Number of messages.
        count: usize,
        /// Id of the last message in the log.
        log: i64,
        /// Next id.
        next: i64,
    },
}

/// A message that is not committed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingMessage {
    /// Id: bit 63 is set, bits 56 to 62 are the service, the rest counts the messages of the service from 1.
    pub id: i64,
    /// Payload.
    pub payload: Vec<u8>,
    position: i64,
}

/// Pending messages of one service.
///
/// Services of all members send the same messages, so a message is identified by its number. **Input**:
/// [`enqueue`](Self::enqueue) for each message of the own service; the leader appends [`next`](Self::next) and reports
/// [`appended`](Self::appended) and [`on_committed`](Self::on_committed); other members report
/// [`on_log_message`](Self::on_log_message) for each one in the log. [`roll_back`](Self::roll_back) ends a leadership: what was
/// not committed is appended again by the next leader. So each message is in the committed log exactly once
/// (`docs/spec/cluster.md` §7.6).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingMessages {
    service_id: i32,
    next_id: i64,
    log_id: i64,
    messages: VecDeque<PendingMessage>,
    /// Messages at the front that are appended.
    appended: usize,
    bytes: usize,
}

impl PendingMessages {
    /// Creates the store of a service.
    #[must_use]
    pub fn new(service_id: i32) -> Self {
        let first = i64::MIN | i64::from(service_id & 0x7f) << 56;
        Self {
            service_id,
            next_id: first + 1,
            log_id: first,
            messages: VecDeque::new(),
            appended: 0,
            bytes: 0,
        }
    }

    /// Restores a store from a snapshot.
    ///
    /// # Errors
    /// The ids do not follow each other.
    pub fn restore(
        service_id: i32,
        next_id: i64,
        log_id: i64,
        messages: Vec<(i64, Vec<u8>)>,
    ) -> Result<Self, ServiceMessageError> {
        let count = messages.len();
        let invalid = ServiceMessageError::InvalidSnapshot {
            service_id,
            count,
            log: log_id,
            next: next_id,
        };
        let is_whole = log_id
            .checked_add(count as i64 + 1)
            .is_some_and(|next| next == next_id);
        if !is_whole {
            return Err(invalid);
        }
        let mut restored = Self {
            service_id,
            next_id,
            log_id,
            messages: VecDeque::with_capacity(count),
            appended: 0,
            bytes: 0,
        };
        for (index, (id, payload)) in messages.into_iter().enumerate() {
            if id != log_id + 1 + index as i64 {
                return Err(invalid);
            }
            restored.bytes += payload.len();
            restored.messages.push_back(PendingMessage {
                id,
                payload,
                position: NOT_APPENDED,
            });
        }
        Ok(restored)
    }

    /// Returns the service that an id of a message in the log names.
    #[must_use]
    pub const fn service_of(id: i64) -> i32 {
        ((id >> 56) & 0x7f) as i32
    }

    /// Takes a message of the service. One that is in the log already is dropped: the service repeats what it sent before.
    ///
    /// # Errors
    /// Too many bytes are pending.
    pub fn enqueue(&mut self, payload: &[u8]) -> Result<(), ServiceMessageError> {
        let id = self.next_id;
        if id > self.log_id {
            let bytes = self.bytes + payload.len();
            if bytes > CAPACITY_LIMIT {
                let service_id = self.service_id;
                return Err(ServiceMessageError::Overflow { service_id, bytes });
            }
            self.bytes = bytes;
            self.messages.push_back(PendingMessage {
                id,
                payload: payload.to_vec(),
                position: NOT_APPENDED,
            });
        }
        self.next_id += 1;
        Ok(())
    }

    /// Returns the next message that the leader has to append.
    #[must_use]
    pub fn next(&self) -> Option<&PendingMessage> {
        self.messages.get(self.appended)
    }

    /// Takes the log position behind the message that [`next`](Self::next) returned.
    pub fn appended(&mut self, position: i64) {
        if let Some(message) = self.messages.get_mut(self.appended) {
            message.position = position;
            self.appended += 1;
        }
    }

    /// Takes the commit position of the leader: appended messages below it are done.
    pub fn on_committed(&mut self, position: i64) {
        while self.appended > 0
            && self
                .messages
                .front()
                .is_some_and(|message| message.position <= position)
        {
            self.appended -= 1;
            self.pop();
        }
    }

    fn pop(&mut self) {
        if let Some(message) = self.messages.pop_front() {
            self.log_id = message.id;
            self.bytes -= message.payload.len();
        }
    }

    /// Takes a message from the log, on a member that does not lead.
    ///
    /// # Errors
    /// It is not the one that follows: services differ between members.
    pub fn on_log_message(&mut self, id: i64) -> Result<(), ServiceMessageError> {
        if id <= self.log_id {
            return Ok(());
        }
        let expected = self.log_id + 1;
        if self.messages.is_empty() {
            // The log is ahead of the service, whose message will be dropped.
            self.log_id = id;
        } else {
            self.appended = self.appended.saturating_sub(1);
            self.pop();
        }
        if id == expected {
            return Ok(());
        }
        Err(ServiceMessageError::NotDeterministic {
            service_id: self.service_id,
            logged: id - (i64::MIN | i64::from(self.service_id) << 56),
            expected: expected - (i64::MIN | i64::from(self.service_id) << 56),
        })
    }

    /// Forgets what was appended and not committed, at the end of a leadership.
    pub fn roll_back(&mut self) {
        self.appended = 0;
        for message in &mut self.messages {
            message.position = NOT_APPENDED;
        }
    }

    /// Returns the service.
    #[must_use]
    pub const fn service_id(&self) -> i32 {
        self.service_id
    }

    /// Returns the id of the next message that the service sends.
    #[must_use]
    pub const fn next_id(&self) -> i64 {
        self.next_id
    }

    /// Returns the id of the last message in the committed log.
    #[must_use]
    pub const fn log_id(&self) -> i64 {
        self.log_id
    }

    /// Returns the messages that are not in the committed log.
    pub fn messages(&self) -> impl Iterator<Item = &PendingMessage> {
        self.messages.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids(pending: &PendingMessages) -> Vec<i64> {
        pending
            .messages()
            .map(|message| message.id & 0xff)
            .collect()
    }

    #[test]
    fn first_ids_are_those_of_official_members() {
        assert_eq!(
            PendingMessages::new(0).next_id(),
            -9_223_372_036_854_775_807
        );
        assert_eq!(
            PendingMessages::new(1).next_id(),
            -9_151_314_442_816_847_871
        );
        assert_eq!(PendingMessages::service_of(-9_151_314_442_816_847_871), 1);
    }

    #[test]
    fn message_of_a_lost_leader_is_appended_again() {
        let mut pending = PendingMessages::new(0);
        pending.enqueue(b"a").unwrap();
        pending.enqueue(b"b").unwrap();
        for position in [96, 192] {
            assert!(pending.next().is_some());
            pending.appended(position);
        }
        assert_eq!(pending.next(), None);
        pending.on_committed(96);
        pending.roll_back();
        assert_eq!(
            pending.next().map(|message| message.payload.clone()),
            Some(b"b".to_vec())
        );
        assert_eq!(ids(&pending), [2]);
    }

    #[test]
    fn follower_drops_what_the_log_has_in_either_order() {
        let mut pending = PendingMessages::new(0);
        let first = pending.next_id();
        pending.on_log_message(first).unwrap();
        pending.enqueue(b"a").unwrap();
        assert_eq!(ids(&pending), [] as [i64; 0], "the log came first");
        pending.enqueue(b"b").unwrap();
        pending.enqueue(b"c").unwrap();
        pending.on_log_message(first + 1).unwrap();
        assert_eq!(ids(&pending), [3], "the service came first");
        pending.on_log_message(first + 1).unwrap();
        assert_eq!(ids(&pending), [3], "an entry that was replayed");
    }

    #[test]
    fn gap_in_the_log_is_an_error_that_names_the_service() {
        let mut pending = PendingMessages::new(3);
        let first = pending.next_id();
        let error = pending.on_log_message(first + 1).unwrap_err();
        assert_eq!(
            error,
            ServiceMessageError::NotDeterministic {
                service_id: 3,
                logged: 2,
                expected: 1
            }
        );
    }

    #[test]
    fn store_is_restored_from_its_messages_only_if_they_follow_each_other() {
        let mut pending = PendingMessages::new(2);
        for payload in [b"a", b"b", b"c"] {
            pending.enqueue(payload).unwrap();
        }
        pending.appended(96);
        pending.on_committed(96);
        let messages: Vec<_> = pending
            .messages()
            .map(|message| (message.id, message.payload.clone()))
            .collect();
        let (next, log) = (pending.next_id(), pending.log_id());
        let restored = PendingMessages::restore(2, next, log, messages.clone()).unwrap();
        assert_eq!(restored, pending);
        assert!(PendingMessages::restore(2, next + 1, log, messages.clone()).is_err());
        assert!(PendingMessages::restore(2, i64::MIN, i64::MAX, messages).is_err());
    }
}
