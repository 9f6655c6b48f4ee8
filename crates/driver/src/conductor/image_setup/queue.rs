// SPDX-License-Identifier: Apache-2.0
//! Queue of image requests and of images that wait for their log files.
//!
//! A SETUP costs its sender a few bytes, while the log file of an image may be large. The files created concurrently
//! are therefore limited per endpoint: by number, or by total bytes if they are short, since creating a thousand short
//! files one by one would take longer in waiting than in work.
//!
//! Contract: `add` queues a request, `next` returns one that may start, `wait` records that its file was requested,
//! `on_created` returns it when the file is done. The receiver bounds the number of outstanding requests.

use std::collections::{BTreeMap, VecDeque};

use super::PendingImage;
use crate::boundary::{CreateImage, EndpointId};

/// Maximum number of files created concurrently for an endpoint, whatever their length.
const FILES: usize = 2;
/// Maximum number of bytes of files created concurrently for an endpoint if there are more than `FILES`.
const BYTES: usize = 16 * 1024 * 1024;

/// Images of the driver that are not created yet.
#[derive(Debug, Default)]
pub(crate) struct ImageQueue {
    requests: VecDeque<CreateImage>,
    pending: Vec<PendingImage>,
    in_flight: BTreeMap<EndpointId, InFlight>,
}

/// Files in creation for an endpoint.
#[derive(Debug, Clone, Copy, Default)]
struct InFlight {
    files: usize,
    bytes: usize,
}

impl ImageQueue {
    /// Queues a request of the receiver.
    pub(crate) fn add(&mut self, request: CreateImage) {
        self.requests.push_back(request);
    }

    /// Returns true if there are requests, which may wait for those before them.
    pub(crate) fn has_requests(&self) -> bool {
        !self.requests.is_empty()
    }

    /// Returns the oldest request whose endpoint is below its limits; `length` returns the length of its file.
    pub(crate) fn next(&mut self, length: impl Fn(&CreateImage) -> usize) -> Option<CreateImage> {
        let in_flight = &self.in_flight;
        let has_room = |request: &CreateImage| {
            in_flight.get(&request.endpoint).is_none_or(|of| {
                of.files < FILES || of.bytes.saturating_add(length(request)) <= BYTES
            })
        };
        let index = self.requests.iter().position(has_room)?;
        self.requests.remove(index)
    }

    /// Records that the file of an image was requested.
    pub(crate) fn wait(&mut self, image: PendingImage) {
        let of = self.in_flight.entry(image.request.endpoint).or_default();
        of.files += 1;
        of.bytes += image.length;
        self.pending.push(image);
    }

    /// Returns true if an image for the same session already waits for its file.
    pub(crate) fn awaits(&self, request: &CreateImage) -> bool {
        let session = |of: &CreateImage| (of.endpoint, of.session_id, of.stream_id);
        let mut pending = self.pending.iter();
        pending.any(|image| session(&image.request) == session(request))
    }

    /// Returns true if an image of a session is requested, or waits for its file.
    pub(crate) fn has(&self, endpoint: EndpointId, session_id: i32, stream_id: i32) -> bool {
        let pending = self.pending.iter().map(|image| &image.request);
        let mut requests = self.requests.iter().chain(pending);
        requests.any(|of| {
            (of.endpoint, of.session_id, of.stream_id) == (endpoint, session_id, stream_id)
        })
    }

    /// Removes and returns the image whose file was requested under this ticket.
    pub(crate) fn on_created(&mut self, ticket: u64) -> Option<PendingImage> {
        let mut pending = self.pending.iter();
        let index = pending.position(|image| image.ticket == ticket)?;
        let image = self.pending.swap_remove(index);
        if let Some(of) = self.in_flight.get_mut(&image.request.endpoint) {
            of.files -= 1;
            of.bytes -= image.length;
            if of.files == 0 {
                self.in_flight.remove(&image.request.endpoint);
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
        let unused = std::net::SocketAddr::from(([127, 0, 0, 1], 9));
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
            source: unused,
            control: unused,
        }
    }

    /// Starts all images that may start, with file lengths given by `length`; returns their sessions, equal to their
    /// tickets.
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

    fn queue_with_requests(endpoint: i64, sessions: std::ops::Range<i32>) -> ImageQueue {
        let mut queue = ImageQueue::default();
        sessions.for_each(|session_id| queue.add(request(endpoint, session_id)));
        queue
    }

    #[test]
    fn next_limits_long_files_to_two() {
        let mut queue = queue_with_requests(1, 0..5);
        assert_eq!(begin(&mut queue, |_| LONG), [0, 1]);
        assert_eq!(queue.on_created(0).unwrap().request.session_id, 0);
        assert_eq!(begin(&mut queue, |_| LONG), [2]);
    }

    #[test]
    fn next_limits_short_files_by_bytes() {
        let mut queue = queue_with_requests(1, 0..100);
        assert_eq!(begin(&mut queue, |_| SHORT).len(), 64);
        assert!(queue.on_created(7).is_some() && queue.on_created(7).is_none());
        assert_eq!(begin(&mut queue, |_| SHORT), [64]);
    }

    #[test]
    fn next_short_file_waits_behind_long_ones() {
        let mut queue = queue_with_requests(1, 0..3);
        let length = |request: &CreateImage| [LONG, LONG, SHORT][request.session_id as usize];
        assert_eq!(begin(&mut queue, length), [0, 1]);
        queue.on_created(0);
        assert_eq!(begin(&mut queue, length), [2]);
    }

    #[test]
    fn next_limits_are_per_endpoint() {
        let mut queue = queue_with_requests(1, 0..5);
        queue.add(request(2, 5));
        assert_eq!(begin(&mut queue, |_| LONG), [0, 1, 5]);
        assert!(queue.awaits(&request(2, 5)) && !queue.awaits(&request(2, 0)));
    }
}
