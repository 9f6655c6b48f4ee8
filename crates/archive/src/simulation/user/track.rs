// SPDX-License-Identifier: Apache-2.0
//! A stream that a user publishes.

use taran::{ExclusivePublication, Pending};

use super::super::journal::Journal;
use super::super::ledger::Message;
use super::Media;

/// Messages that one duty cycle offers on a publication.
const OFFERS: usize = 4;

/// A stream with its publication.
pub(super) struct Track {
    pub(super) label: u32,
    pub(super) stream_id: i32,
    pub(super) channel: String,
    pub(super) media: Media,
    pub(super) pending: Option<Pending<ExclusivePublication>>,
    pub(super) publication: Option<ExclusivePublication>,
    pub(super) messages: u64,
    pub(super) longest: usize,
    pub(super) next: Option<(Message, Vec<u8>)>,
    pub(super) count: u64,
}

impl Track {
    pub(super) fn poll(&mut self, random: &mut fastrand::Rng, journal: &mut Journal) -> usize {
        if let Some(pending) = &mut self.pending {
            match pending.poll() {
                None => return 0,
                Some(Ok(publication)) => {
                    let is_networked = self.media != Media::Ipc;
                    journal.on_session(publication.session_id(), self.stream_id, is_networked);
                    self.publication = Some(publication);
                }
                Some(Err(_)) => {}
            }
            self.pending = None;
        }
        let Some(publication) = &mut self.publication else {
            return 0;
        };
        let mut work = 0;
        while self.messages > 0 && work < OFFERS {
            let session_id = publication.session_id();
            let (message, payload) = self.next.get_or_insert_with(|| {
                let length = random.usize(1..=self.longest);
                let key = (u64::from(session_id.cast_unsigned()) << 32 | self.count)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15);
                let message = Message::new(length, key, 1_408);
                (message, message.payload())
            });
            match publication.offer(payload) {
                Ok(end) => {
                    journal
                        .ledger(self.stream_id)
                        .add(end - message.span(), session_id, *message);
                    self.next = None;
                    self.messages -= 1;
                    self.count += 1;
                    work += 1;
                }
                Err(error) if error.is_retryable() => break,
                Err(_) => {
                    self.publication = None;
                    return work;
                }
            }
        }
        work
    }
}
