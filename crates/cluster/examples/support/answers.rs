// SPDX-License-Identifier: Apache-2.0
//! Answers to clients, which are sent at once, or wait for room.

use std::collections::{BTreeMap, VecDeque};

use taran::OfferError;
use taran_cluster::service::{Cluster, SendError};

/// Answers of one session that wait. Further ones are dropped: their client does not receive.
const LIMIT: usize = 1024;

/// Sender of answers to sessions.
pub(crate) trait Egress {
    fn send(&self, session: i64, answer: &[u8]) -> Result<(), SendError>;
}

impl Egress for Cluster<'_> {
    fn send(&self, session: i64, answer: &[u8]) -> Result<(), SendError> {
        Cluster::send(self, session, answer)
    }
}

/// Sends answers without waiting, those of each session in order.
///
/// A session without room delays no other one. [`flush`](Self::flush), which belongs into `do_background_work`, sends what waits.
/// Answers to a client that is not connected are dropped, and so are those of a session beyond its limit: clients need a time limit
/// for answers. The queue is no part of the replicated state: only the leader has answers to send, and they are lost with it. Only
/// an answer that waits is copied.
#[derive(Debug, Default)]
pub(crate) struct AnswerQueue {
    /// Sessions with answers that wait; no queue is empty.
    waiting: BTreeMap<i64, VecDeque<Vec<u8>>>,
}

/// Outcome of an attempt to send an answer.
enum Attempt {
    /// It is sent, or never can be.
    Done,
    NoRoom,
    /// The session has no client.
    Disconnected,
}

fn attempt(egress: &impl Egress, session: i64, answer: &[u8]) -> Attempt {
    match egress.send(session, answer) {
        Err(
            SendError::UnknownSession { .. }
            | SendError::NotConnected { .. }
            | SendError::Offer(OfferError::NotConnected),
        ) => Attempt::Disconnected,
        Err(error) if error.is_retryable() => Attempt::NoRoom,
        Ok(()) | Err(_) => Attempt::Done,
    }
}

impl AnswerQueue {
    /// Sends an answer to a session, behind those of the session that wait.
    pub(crate) fn send(&mut self, egress: &impl Egress, session: i64, answer: &[u8]) {
        if let Some(queue) = self.waiting.get_mut(&session) {
            if queue.len() < LIMIT {
                queue.push_back(answer.to_vec());
            }
        } else if matches!(attempt(egress, session, answer), Attempt::NoRoom) {
            let queue = VecDeque::from([answer.to_vec()]);
            self.waiting.insert(session, queue);
        }
    }

    /// Sends what waits, as far as each session has room. Returns the number of answers that wait no more.
    pub(crate) fn flush(&mut self, egress: &impl Egress) -> usize {
        let mut done = 0;
        self.waiting.retain(|session, queue| {
            while let Some(answer) = queue.front() {
                match attempt(egress, *session, answer) {
                    Attempt::Done => {
                        queue.pop_front();
                        done += 1;
                    }
                    Attempt::NoRoom => return true,
                    Attempt::Disconnected => {
                        done += queue.len();
                        return false;
                    }
                }
            }
            false
        });
        done
    }

    /// Forgets the answers to a session that is closed.
    pub(crate) fn forget(&mut self, session: i64) {
        self.waiting.remove(&session);
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    /// Refuses the sessions that it names; others get their answers.
    #[derive(Default)]
    struct Clients {
        refused: BTreeMap<i64, SendError>,
        sent: RefCell<Vec<(i64, u8)>>,
    }

    impl Egress for Clients {
        fn send(&self, session: i64, answer: &[u8]) -> Result<(), SendError> {
            if let Some(error) = self.refused.get(&session) {
                return Err(*error);
            }
            self.sent.borrow_mut().push((session, answer[0]));
            Ok(())
        }
    }

    const NO_ROOM: SendError = SendError::Offer(OfferError::BackPressured);

    /// Returns clients of which session 1 has no room, and its queue with these answers.
    fn without_room(answers: &[u8]) -> (Clients, AnswerQueue) {
        let mut clients = Clients::default();
        clients.refused.insert(1, NO_ROOM);
        let mut queue = AnswerQueue::default();
        for answer in answers {
            queue.send(&clients, 1, &[*answer]);
        }
        (clients, queue)
    }

    #[test]
    fn session_without_room_delays_no_other_one_and_gets_its_answers_in_order() {
        let (mut clients, mut queue) = without_room(&[1, 2]);
        queue.send(&clients, 2, &[3]);
        assert_eq!(queue.flush(&clients), 0);
        clients.refused.insert(2, NO_ROOM);
        queue.send(&clients, 2, &[4]);
        clients.refused.remove(&2);
        assert_eq!(queue.flush(&clients), 1);
        assert_eq!(*clients.sent.borrow(), [(2, 3), (2, 4)]);
        clients.refused.clear();
        // There is room again, but answers wait: this one goes behind them.
        queue.send(&clients, 1, &[5]);
        assert_eq!(queue.flush(&clients), 3);
        assert_eq!(clients.sent.borrow()[2..], [(1, 1), (1, 2), (1, 5)]);
        assert_eq!(queue.flush(&clients), 0);
    }

    #[test]
    fn answers_to_a_session_without_a_client_are_dropped() {
        for error in [
            SendError::NotConnected { session_id: 1 },
            SendError::Offer(OfferError::NotConnected),
            SendError::UnknownSession { session_id: 1 },
        ] {
            let (mut clients, mut queue) = without_room(&[1, 2]);
            clients.refused.insert(1, error);
            assert_eq!(queue.flush(&clients), 2, "{error}");
            queue.send(&clients, 1, &[3]);
            clients.refused.clear();
            assert_eq!(queue.flush(&clients), 0, "{error}");
            assert!(clients.sent.borrow().is_empty(), "{error}");
        }
    }

    #[test]
    fn answer_that_can_never_be_sent_does_not_hold_up_the_next_one() {
        let (mut clients, mut queue) = without_room(&[1, 2]);
        let too_long = OfferError::TooLong { length: 9, max: 8 };
        clients.refused.insert(1, SendError::Offer(too_long));
        assert_eq!(queue.flush(&clients), 2);
        clients.refused.clear();
        queue.send(&clients, 1, &[3]);
        assert_eq!(*clients.sent.borrow(), [(1, 3)]);
    }

    #[test]
    fn each_session_has_a_limit_of_its_own_and_none_once_it_is_closed() {
        let (mut clients, mut queue) = without_room(&[7; LIMIT + 5]);
        clients.refused.insert(2, NO_ROOM);
        queue.send(&clients, 2, &[8]);
        clients.refused.clear();
        assert_eq!(queue.flush(&clients), LIMIT + 1);
        let sent = clients.sent.borrow();
        assert_eq!(sent.iter().filter(|(id, _)| *id == 1).count(), LIMIT);
        assert_eq!(sent.last(), Some(&(2, 8)));

        let (mut clients, mut queue) = without_room(&[1, 2]);
        queue.forget(1);
        clients.refused.clear();
        assert_eq!(queue.flush(&clients), 0);
    }
}
