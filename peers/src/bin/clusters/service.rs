// SPDX-License-Identifier: Apache-2.0
//! The service of our members.

use std::collections::VecDeque;
use std::sync::Arc;

use taran_cluster::protocol::CloseReason;
use taran_cluster::service::{ClientSession, Cluster, Service, SnapshotWriter};

/// Answers that wait for room; further ones are lost. Lost answers are defects of the loads `echo` and `stall`; `fill` needs only
/// the last answer, and `outage` allows losses.
const WAITING_LIMIT: usize = 1 << 16;
/// Bytes of a page of the state, which is a frame of the snapshot.
const PAGE: usize = 32 << 10;

/// Sends each message back. Its state is the number of messages, and pages that stand for the state of an application: each message
/// changes one of them. A snapshot shares the pages, and those that are changed meanwhile are copied.
#[derive(Debug)]
pub(crate) struct Echo {
    count: u64,
    pages: Vec<Arc<Vec<u8>>>,
    waiting: VecDeque<(i64, Vec<u8>)>,
}

impl Echo {
    /// Creates a service with this many bytes of state.
    pub(crate) fn new(state_bytes: usize) -> Echo {
        Echo {
            count: 0,
            pages: pages(&vec![0x5a; state_bytes]),
            waiting: VecDeque::new(),
        }
    }

    /// Counts a message, and notes its number in a page.
    fn count(&mut self) {
        self.count += 1;
        let pages = self.pages.len().max(1) as u64;
        if let Some(page) = self.pages.get_mut((self.count % pages) as usize)
            && let Some(place) = Arc::make_mut(page).first_chunk_mut()
        {
            *place = self.count.to_le_bytes();
        }
    }

    fn send_waiting(&mut self, cluster: &Cluster<'_>) -> usize {
        let mut sent = 0;
        while let Some((session, message)) = self.waiting.front() {
            match cluster.send(*session, message) {
                Err(error) if error.is_retryable() => break,
                _ => drop(self.waiting.pop_front()),
            }
            sent += 1;
        }
        sent
    }
}

impl Service for Echo {
    fn on_start(&mut self, _: &mut Cluster<'_>, snapshot: Option<&[Vec<u8>]>) {
        if let Some((head, state)) = snapshot.and_then(<[_]>::split_first) {
            if let Some(count) = head.first_chunk() {
                self.count = u64::from_le_bytes(*count);
            }
            self.pages = pages(&state.concat());
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
        self.count();
        let Some(session) = session else {
            return;
        };
        self.send_waiting(cluster);
        if self.waiting.is_empty() {
            match cluster.send(session.id, message) {
                Err(error) if error.is_retryable() => {}
                _ => return,
            }
        }
        if self.waiting.len() < WAITING_LIMIT {
            self.waiting.push_back((session.id, message.to_vec()));
        }
    }

    fn on_take_snapshot(&mut self, _: &mut Cluster<'_>, snapshot: &mut SnapshotWriter) {
        snapshot.write(self.count.to_le_bytes());
        let pages = self.pages.clone().into_iter();
        snapshot.write_later(pages.map(|page| page.to_vec()));
    }

    fn do_background_work(&mut self, cluster: &Cluster<'_>) -> usize {
        self.send_waiting(cluster)
    }
}

/// Divides a state into pages.
fn pages(state: &[u8]) -> Vec<Arc<Vec<u8>>> {
    state
        .chunks(PAGE)
        .map(|page| Arc::new(page.to_vec()))
        .collect()
}
