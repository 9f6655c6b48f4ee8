// SPDX-License-Identifier: Apache-2.0
//! The services `echo` and `count`.

use std::collections::VecDeque;

use taran_cluster::protocol::CloseReason;
use taran_cluster::service::{ClientSession, Cluster, Service, SnapshotWriter};

use super::ServiceKind;

/// Messages that wait for room in the egress of their clients. Further ones are dropped: their clients do not receive.
const WAITING_LIMIT: usize = 1024;

/// Sends each message back to its client. Its snapshot is the number of messages.
#[derive(Debug)]
pub(super) struct Echo {
    /// Answers have the number behind the message.
    has_count: bool,
    count: u64,
    answer: Vec<u8>,
    waiting: VecDeque<(i64, Vec<u8>)>,
}

impl Echo {
    /// Returns the service of this kind; none if services run in containers.
    pub(super) fn of_kind(kind: ServiceKind) -> Option<Self> {
        match kind {
            ServiceKind::Echo => Some(Self::new(false)),
            ServiceKind::Count => Some(Self::new(true)),
            ServiceKind::None => None,
        }
    }

    fn new(has_count: bool) -> Self {
        Self {
            has_count,
            count: 0,
            answer: Vec::new(),
            waiting: VecDeque::new(),
        }
    }

    fn send_waiting(&mut self, cluster: &Cluster<'_>) {
        while let Some((session, message)) = self.waiting.front() {
            match cluster.send(*session, message) {
                Err(error) if error.is_retryable() => break,
                _ => drop(self.waiting.pop_front()),
            }
        }
    }
}

impl Service for Echo {
    fn on_start(&mut self, _: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>) {
        let frame = snapshot.and_then(<[_]>::first);
        if let Some(count) = frame.and_then(|frame| frame.first_chunk()) {
            self.count = u64::from_le_bytes(*count);
        }
    }

    fn on_session_close(&mut self, _: &mut Cluster<'_>, session: &ClientSession, _: CloseReason) {
        self.waiting.retain(|(id, _)| *id != session.id);
    }

    fn on_session_message(
        &mut self,
        cluster: &mut Cluster<'_>,
        session: Option<&ClientSession>,
        message: &[u8],
    ) {
        self.count += 1;
        let Some(session) = session else {
            return;
        };
        self.send_waiting(cluster);
        self.answer.clear();
        self.answer.extend_from_slice(message);
        if self.has_count {
            self.answer.extend_from_slice(&self.count.to_le_bytes());
        }
        if self.waiting.is_empty() {
            match cluster.send(session.id, &self.answer) {
                Err(error) if error.is_retryable() => {}
                _ => return,
            }
        }
        if self.waiting.len() < WAITING_LIMIT {
            self.waiting.push_back((session.id, self.answer.clone()));
        }
    }

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, snapshot: &mut SnapshotWriter) {
        snapshot.write(self.count.to_le_bytes());
    }
}
