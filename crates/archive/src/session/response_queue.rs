// SPDX-License-Identifier: Apache-2.0
//! Messages to one client, in order, with back-pressure.

use std::collections::VecDeque;

use taran::{ExclusivePublication, OfferError};

/// Attempts to send a message before it is queued.
const ATTEMPTS: usize = 3;
/// Highest number of queued bytes. A client that makes requests and reads no responses must not take all memory.
const MAX_QUEUED_BYTES: usize = 4 << 20;

/// Reason why a message was not sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SendFailure {
    /// Back-pressure: it can be sent later.
    Retry,
    /// The stream has ended, or the message can never be sent.
    Ended,
}

/// A stream to a client.
pub(crate) trait ResponseStream {
    /// Returns true if the client is subscribed.
    fn is_connected(&self) -> bool;

    /// Tries once to send a message.
    fn send(&mut self, message: &[u8]) -> Result<(), SendFailure>;
}

impl ResponseStream for ExclusivePublication {
    fn is_connected(&self) -> bool {
        ExclusivePublication::is_connected(self)
    }

    fn send(&mut self, message: &[u8]) -> Result<(), SendFailure> {
        match self.offer(message) {
            Ok(_) => Ok(()),
            Err(OfferError::BackPressured | OfferError::AdminAction) => Err(SendFailure::Retry),
            Err(_) => Err(SendFailure::Ended),
        }
    }
}

/// The stream to a client, with the messages that it does not take yet.
///
/// Contract: input is [`send`](Self::send) for messages that must arrive, in order, and
/// [`send_unqueued`](Self::send_unqueued) for those that the caller repeats; [`flush`](Self::flush) is called in each duty
/// cycle. Output is whether the stream [has ended](Self::has_ended), and since when it [is
/// blocked](Self::blocked_since_ns).
#[derive(Debug)]
pub(crate) struct ResponseQueue<S> {
    stream: S,
    queue: VecDeque<Vec<u8>>,
    queued_bytes: usize,
    blocked_since_ns: Option<i64>,
    has_ended: bool,
}

impl<S: ResponseStream> ResponseQueue<S> {
    pub(crate) fn new(stream: S) -> Self {
        Self {
            stream,
            queue: VecDeque::new(),
            queued_bytes: 0,
            blocked_since_ns: None,
            has_ended: false,
        }
    }

    pub(crate) fn stream(&self) -> &S {
        &self.stream
    }

    pub(crate) fn into_stream(self) -> S {
        self.stream
    }

    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Returns the time of the first message that could not be sent since the last one that was.
    pub(crate) fn blocked_since_ns(&self) -> Option<i64> {
        self.blocked_since_ns
    }

    /// Returns true if no message waits.
    #[cfg(test)]
    pub(crate) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Sends a message, or queues it behind those that wait.
    pub(crate) fn send(&mut self, message: &[u8], now_ns: i64) {
        if (!self.queue.is_empty() || !self.attempt(message, now_ns, ATTEMPTS)) && !self.has_ended {
            self.queued_bytes += message.len();
            if self.queued_bytes > MAX_QUEUED_BYTES {
                self.has_ended = true;
                return;
            }
            self.queue.push_back(message.to_vec());
        }
    }

    /// Sends a message unless others wait. Returns false if it was not sent.
    pub(crate) fn send_unqueued(&mut self, message: &[u8], now_ns: i64) -> bool {
        self.queue.is_empty() && self.attempt(message, now_ns, 1)
    }

    /// Sends queued messages; returns their number.
    pub(crate) fn flush(&mut self, now_ns: i64) -> usize {
        let mut sent = 0;
        while let Some(message) = self.queue.pop_front() {
            if !self.attempt(&message, now_ns, 1) {
                self.queue.push_front(message);
                break;
            }
            self.queued_bytes -= message.len();
            sent += 1;
        }
        sent
    }

    fn attempt(&mut self, message: &[u8], now_ns: i64, attempts: usize) -> bool {
        if self.has_ended {
            return false;
        }
        for _ in 0..attempts {
            match self.stream.send(message) {
                Ok(()) => {
                    self.blocked_since_ns = None;
                    return true;
                }
                Err(SendFailure::Retry) => {}
                Err(SendFailure::Ended) => {
                    self.has_ended = true;
                    return false;
                }
            }
        }
        self.blocked_since_ns.get_or_insert(now_ns);
        false
    }
}

#[cfg(test)]
pub(crate) mod testing {
    use super::*;

    /// A stream that keeps what it is sent.
    #[derive(Debug, Default)]
    pub(crate) struct TestStream {
        pub(crate) is_connected: bool,
        pub(crate) is_closed: bool,
        /// Number of messages that it still takes; `None` for all.
        pub(crate) room: Option<usize>,
        pub(crate) sent: Vec<Vec<u8>>,
    }

    impl ResponseStream for TestStream {
        fn is_connected(&self) -> bool {
            self.is_connected
        }

        fn send(&mut self, message: &[u8]) -> Result<(), SendFailure> {
            match &mut self.room {
                _ if self.is_closed => return Err(SendFailure::Ended),
                Some(0) => return Err(SendFailure::Retry),
                Some(room) => *room -= 1,
                None => {}
            }
            self.sent.push(message.to_vec());
            Ok(())
        }
    }

    impl<S> ResponseQueue<S> {
        pub(crate) fn stream_mut(&mut self) -> &mut S {
            &mut self.stream
        }
    }
}

#[cfg(test)]
mod tests {
    use super::testing::TestStream;
    use super::*;

    #[test]
    fn response_queue_keeps_the_order_under_back_pressure() {
        let mut queue = ResponseQueue::new(TestStream {
            room: Some(1),
            ..TestStream::default()
        });
        for message in 0..3_u8 {
            queue.send(&[message], 5);
        }
        assert!(!queue.send_unqueued(&[9], 6));
        assert_eq!(queue.blocked_since_ns(), Some(5));
        queue.stream_mut().room = Some(1);
        assert_eq!((queue.flush(7), queue.is_empty()), (1, false));
        assert_eq!(queue.blocked_since_ns(), Some(7));
        queue.stream_mut().room = None;
        assert_eq!((queue.flush(8), queue.is_empty()), (1, true));
        assert!(queue.send_unqueued(&[3], 9));
        assert_eq!(queue.blocked_since_ns(), None);
        assert_eq!(queue.stream().sent, [[0], [1], [2], [3]]);
    }

    #[test]
    fn response_queue_of_a_client_that_reads_nothing_ends_with_bounded_memory() {
        let mut queue = ResponseQueue::new(TestStream {
            room: Some(0),
            ..TestStream::default()
        });
        let message = [0; 1 << 20];
        for _ in 0..4 {
            queue.send(&message, 0);
        }
        assert!(!queue.has_ended());
        queue.send(&message, 0);
        assert!(queue.has_ended());
    }

    #[test]
    fn response_queue_of_a_closed_stream_ends() {
        let mut queue = ResponseQueue::new(TestStream {
            is_closed: true,
            ..TestStream::default()
        });
        queue.send(&[1], 0);
        assert!(queue.has_ended() && queue.is_empty());
    }
}
