//! Images on their way: those that were asked for, and those that wait for their log files.
//!
//! A SETUP costs its sender a few bytes, and the file of an image may be large. So an endpoint has few of them made at the
//! same time; more, if they are short: waiting for another thread a thousand times would take longer than making them.
//!
//! Contract: `ask` for an image, `next` gives one that may be begun, `wait` says that its file was asked for, `made` gives
//! it back with its file. The receiver bounds how many it asks for at once.

use std::collections::{BTreeMap, VecDeque};

use super::PendingImage;
use crate::boundary::{CreateImage, EndpointId};

/// So many files of an endpoint may be made at the same time, however long they are …
const FILES: usize = 2;
/// … or as many as have no more bytes than this together.
const BYTES: usize = 16 * 1024 * 1024;

/// All images of the driver that are not there yet.
#[derive(Debug, Default)]
pub(crate) struct ImageQueue {
    asked: VecDeque<CreateImage>,
    pending: Vec<PendingImage>,
    under_way: BTreeMap<EndpointId, UnderWay>,
}

/// The files that are made for an endpoint.
#[derive(Debug, Clone, Copy, Default)]
struct UnderWay {
    files: usize,
    bytes: usize,
}

impl ImageQueue {
    /// The receiver wants one.
    pub(crate) fn ask(&mut self, request: CreateImage) {
        self.asked.push_back(request);
    }

    /// The oldest one whose endpoint has not enough under way; `length` tells how long its file will be.
    pub(crate) fn next(&mut self, length: impl Fn(&CreateImage) -> usize) -> Option<CreateImage> {
        let under_way = &self.under_way;
        let has_room = |wanted: &CreateImage| {
            under_way.get(&wanted.endpoint).is_none_or(|of| {
                of.files < FILES || of.bytes.saturating_add(length(wanted)) <= BYTES
            })
        };
        let index = self.asked.iter().position(has_room)?;
        self.asked.remove(index)
    }

    /// The file of one was asked for.
    pub(crate) fn wait(&mut self, image: PendingImage) {
        let of = self.under_way.entry(image.request.endpoint).or_default();
        of.files += 1;
        of.bytes += image.length;
        self.pending.push(image);
    }

    /// Whether the same image waits for its file already.
    pub(crate) fn awaits(&self, request: &CreateImage) -> bool {
        let session = |of: &CreateImage| (of.endpoint, of.session_id, of.stream_id);
        let mut pending = self.pending.iter();
        pending.any(|image| session(&image.request) == session(request))
    }

    /// The image of a file that was made, or not.
    pub(crate) fn made(&mut self, ticket: u64) -> Option<PendingImage> {
        let mut pending = self.pending.iter();
        let index = pending.position(|image| image.ticket == ticket)?;
        let image = self.pending.swap_remove(index);
        if let Some(of) = self.under_way.get_mut(&image.request.endpoint) {
            of.files -= 1;
            of.bytes -= image.length;
            if of.files == 0 {
                self.under_way.remove(&image.request.endpoint);
            }
        }
        Some(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::boundary::{ImageId, TransportId};

    const SHORT: usize = BYTES / 64;
    const LONG: usize = BYTES;

    fn request(endpoint: i64, session_id: i32) -> CreateImage {
        let nobody = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
        CreateImage {
            endpoint: EndpointId(endpoint),
            transport: TransportId(1),
            session_id,
            stream_id: 10,
            initial_term_id: 0,
            active_term_id: 0,
            term_offset: 0,
            term_length: 65_536,
            mtu: 1_408,
            ttl: 0,
            own_ttl: 0,
            is_group: false,
            wants_response: false,
            source: nobody,
            control: nobody,
        }
    }

    /// Begins all that may be begun, with files as long as `length` says; their sessions, which are their tickets.
    fn begin(queue: &mut ImageQueue, length: impl Fn(&CreateImage) -> usize) -> Vec<i32> {
        let mut begun = Vec::new();
        while let Some(request) = queue.next(&length) {
            begun.push(request.session_id);
            queue.wait(PendingImage {
                ticket: request.session_id as u64,
                id: ImageId(1),
                length: length(&request),
                request,
            });
        }
        begun
    }

    fn asked(endpoint: i64, sessions: std::ops::Range<i32>) -> ImageQueue {
        let mut queue = ImageQueue::default();
        sessions.for_each(|session_id| queue.ask(request(endpoint, session_id)));
        queue
    }

    #[test]
    fn two_long_files_are_made_at_a_time() {
        let mut queue = asked(1, 0..5);
        assert_eq!(begin(&mut queue, |_| LONG), [0, 1]);
        assert_eq!(queue.made(0).unwrap().request.session_id, 0);
        assert_eq!(begin(&mut queue, |_| LONG), [2]);
    }

    #[test]
    fn of_short_ones_as_many_as_are_no_longer_together() {
        let mut queue = asked(1, 0..100);
        assert_eq!(begin(&mut queue, |_| SHORT).len(), 64);
        assert!(queue.made(7).is_some() && queue.made(7).is_none());
        assert_eq!(begin(&mut queue, |_| SHORT), [64]);
    }

    #[test]
    fn a_short_one_waits_behind_long_ones() {
        let mut queue = asked(1, 0..3);
        let length = |request: &CreateImage| [LONG, LONG, SHORT][request.session_id as usize];
        assert_eq!(begin(&mut queue, length), [0, 1]);
        queue.made(0);
        assert_eq!(begin(&mut queue, length), [2]);
    }

    #[test]
    fn endpoints_do_not_wait_for_each_other() {
        let mut queue = asked(1, 0..5);
        queue.ask(request(2, 5));
        assert_eq!(begin(&mut queue, |_| LONG), [0, 1, 5]);
        assert!(queue.awaits(&request(2, 5)) && !queue.awaits(&request(2, 0)));
    }
}
