// SPDX-License-Identifier: Apache-2.0
//! Answers to clients, which are sent at once, or wait for room.

use std::collections::VecDeque;

use taran_cluster::service::Cluster;

/// Answers that wait. Further ones are dropped: their clients do not receive.
const LIMIT: usize = 1024;

/// Sends answers in order, without waiting.
///
/// It is no part of the replicated state: only the leader has answers to send. They wait until the next call of
/// [`flush`](Self::flush) or [`send`](Self::send), and are lost with the leader; a client that gets no answer repeats its request.
/// Buffers are used again, so nothing is allocated per answer.
#[derive(Debug, Default)]
pub(crate) struct AnswerQueue {
    waiting: VecDeque<(i64, Vec<u8>)>,
    spare: Vec<Vec<u8>>,
}

impl AnswerQueue {
    /// Sends an answer to a session, behind those that wait.
    pub(crate) fn send(&mut self, cluster: &Cluster<'_>, session: i64, answer: &[u8]) {
        self.flush(cluster);
        let is_sent = self.waiting.is_empty()
            && !matches!(cluster.send(session, answer), Err(error) if error.is_retryable());
        if !is_sent && self.waiting.len() < LIMIT {
            let mut buffer = self.spare.pop().unwrap_or_default();
            buffer.clear();
            buffer.extend_from_slice(answer);
            self.waiting.push_back((session, buffer));
        }
    }

    /// Sends what waits, as far as there is room.
    pub(crate) fn flush(&mut self, cluster: &Cluster<'_>) {
        while let Some((session, answer)) = self.waiting.front() {
            if matches!(cluster.send(*session, answer), Err(error) if error.is_retryable()) {
                return;
            }
            let sent = self.waiting.pop_front();
            self.spare.extend(sent.map(|(_, buffer)| buffer));
        }
    }

    /// Forgets the answers to a session that is closed.
    pub(crate) fn forget(&mut self, session: i64) {
        self.waiting.retain(|(id, _)| *id != session);
    }
}
