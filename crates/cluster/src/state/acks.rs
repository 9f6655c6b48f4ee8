// SPDX-License-Identifier: Apache-2.0
//! Acknowledgements of services in containers (`docs/spec/cluster.md` §7.2).

use std::collections::VecDeque;

use thiserror::Error;

use crate::protocol::ServiceAck;

/// Reason why an acknowledgement cannot be one of this consensus module: it must not go on with these containers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum AckError {
    /// The service id is not one of this cluster.
    #[error(
        "a container acknowledges as service {service_id}, but aeron.cluster.service.count is {count}: set \
         aeron.cluster.service.id of the container to 0..{count}, or raise the count on all members"
    )]
    UnknownService {
        /// Service.
        service_id: i32,
        /// Number of services.
        count: usize,
    },
    /// Another number or position than the one that is awaited.
    #[error(
        "ack out of sequence: service {service_id} sent ack {ack_id} at {position}, expected ack {expected_id} at \
         {expected_position:?}"
    )]
    OutOfSequence {
        /// Service.
        service_id: i32,
        /// Number.
        ack_id: i64,
        /// Position.
        position: i64,
        /// Number that is awaited.
        expected_id: i64,
        /// Position that is awaited; none if no acknowledgement is awaited.
        expected_position: Option<i64>,
    },
    /// A second container with the same service id has started.
    #[error(
        "initial ack already received from service: two containers have aeron.cluster.service.id={service_id}"
    )]
    Duplicate {
        /// Service.
        service_id: i32,
    },
}

/// Purpose of a round of acknowledgements.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AckRound {
    /// The services have started.
    Start,
    /// The services have joined a log.
    Join,
    /// The services have taken a snapshot.
    Snapshot,
    /// The services have ended.
    Termination,
}

/// A round that all services have acknowledged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompleteRound {
    /// Purpose.
    pub round: AckRound,
    /// Position.
    pub position: i64,
    /// Statements of the services, by ascending service id: client id of a container, recording of a snapshot, or -1.
    pub relevant_ids: Vec<i64>,
}

/// Rounds of acknowledgements of all services.
///
/// **Input**: [`expect`](Self::expect) before services are asked for something, [`on_ack`](Self::on_ack) for each
/// acknowledgement. **Output**: [`next_complete`](Self::next_complete) returns the rounds, in the order in which they were
/// expected, once all services have acknowledged. Each service numbers its acknowledgements from 0.
#[derive(Clone, Debug)]
pub struct ServiceAcks {
    queues: Vec<VecDeque<ServiceAck>>,
    rounds: VecDeque<(AckRound, i64)>,
    next_id: i64,
}

impl ServiceAcks {
    /// Creates the rounds of `count` services.
    #[must_use]
    pub fn new(count: usize) -> Self {
        Self {
            queues: vec![VecDeque::new(); count],
            rounds: VecDeque::new(),
            next_id: 0,
        }
    }

    /// Begins a round at this position.
    pub fn expect(&mut self, round: AckRound, position: i64) {
        self.rounds.push_back((round, position));
    }

    /// Returns true while a round of this purpose is not complete.
    #[must_use]
    pub fn is_expecting(&self, round: AckRound) -> bool {
        self.rounds.iter().any(|(found, _)| *found == round)
    }

    /// Returns the services that have not acknowledged the current round.
    #[must_use]
    pub fn missing(&self) -> Vec<usize> {
        let queues = self.queues.iter().enumerate();
        queues
            .filter(|(_, queue)| queue.is_empty())
            .map(|(id, _)| id)
            .collect()
    }

    /// Takes an acknowledgement.
    ///
    /// # Errors
    /// It is not the next one of its service, or there is no such service.
    pub fn on_ack(&mut self, ack: ServiceAck) -> Result<(), AckError> {
        let service_id = ack.service_id;
        let count = self.queues.len();
        let queue = usize::try_from(service_id)
            .ok()
            .and_then(|index| self.queues.get_mut(index))
            .ok_or(AckError::UnknownService { service_id, count })?;
        let ahead = queue.len();
        let expected_id = self.next_id + ahead as i64;
        if ack.ack_id == 0 && expected_id > 0 {
            return Err(AckError::Duplicate { service_id });
        }
        let expected_position = self.rounds.get(ahead).map(|(_, position)| *position);
        if ack.ack_id != expected_id || Some(ack.log_position) != expected_position {
            return Err(AckError::OutOfSequence {
                service_id,
                ack_id: ack.ack_id,
                position: ack.log_position,
                expected_id,
                expected_position,
            });
        }
        queue.push_back(ack);
        Ok(())
    }

    /// Returns the next round that is complete.
    pub fn next_complete(&mut self) -> Option<CompleteRound> {
        if self.queues.iter().any(VecDeque::is_empty) {
            return None;
        }
        let (round, position) = self.rounds.pop_front()?;
        self.next_id += 1;
        let acks = self.queues.iter_mut().filter_map(VecDeque::pop_front);
        Some(CompleteRound {
            round,
            position,
            relevant_ids: acks.map(|ack| ack.relevant_id).collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(service_id: i32, ack_id: i64, log_position: i64, relevant_id: i64) -> ServiceAck {
        ServiceAck {
            log_position,
            timestamp: 0,
            ack_id,
            relevant_id,
            service_id,
        }
    }

    #[test]
    fn round_is_complete_when_all_services_have_acknowledged() {
        let mut acks = ServiceAcks::new(2);
        acks.expect(AckRound::Start, 96);
        acks.expect(AckRound::Join, 96);
        acks.on_ack(ack(1, 0, 96, 71)).unwrap();
        acks.on_ack(ack(1, 1, 96, -1)).unwrap();
        assert_eq!(acks.next_complete(), None);
        assert_eq!(acks.missing(), [0]);
        acks.on_ack(ack(0, 0, 96, 70)).unwrap();
        let start = acks.next_complete().unwrap();
        assert_eq!(
            (start.round, start.position, start.relevant_ids),
            (AckRound::Start, 96, vec![70, 71])
        );
        assert!(acks.is_expecting(AckRound::Join));
        assert_eq!(acks.next_complete(), None);
        acks.on_ack(ack(0, 1, 96, -1)).unwrap();
        assert_eq!(acks.next_complete().unwrap().round, AckRound::Join);
        assert!(!acks.is_expecting(AckRound::Join));
        assert_eq!(acks.next_complete(), None);
    }

    #[test]
    fn acknowledgement_that_is_not_awaited_is_an_error_that_says_what_is() {
        let mut acks = ServiceAcks::new(1);
        let error = acks.on_ack(ack(0, 0, 96, 7)).unwrap_err();
        assert!(matches!(error, AckError::OutOfSequence { .. }), "{error}");
        acks.expect(AckRound::Start, 0);
        let error = acks.on_ack(ack(0, 0, 96, 7)).unwrap_err();
        assert!(error.to_string().contains("expected ack 0 at Some(0)"));
        acks.on_ack(ack(0, 0, 0, 7)).unwrap();
        acks.expect(AckRound::Join, 0);
        assert_eq!(
            acks.on_ack(ack(0, 0, 0, 8)),
            Err(AckError::Duplicate { service_id: 0 })
        );
        assert!(acks.on_ack(ack(0, 2, 0, 8)).is_err());
        let error = acks.on_ack(ack(1, 0, 0, 8)).unwrap_err();
        let service_id = 1;
        assert_eq!(
            error,
            AckError::UnknownService {
                service_id,
                count: 1
            }
        );
        assert!(acks.on_ack(ack(-1, 0, 0, 8)).is_err());
    }
}
