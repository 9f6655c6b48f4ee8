// SPDX-License-Identifier: Apache-2.0
//! Event log for troubleshooting (`aeron.event.log`, docs/spec/uri-and-configuration.md §6).
//!
//! Agents write binary records into a bounded queue; a separate thread formats them and writes the lines. A disabled
//! event costs one bit test. If the queue is full, events are dropped and counted; agents never wait.

mod frame_log;
mod frame_text;
mod record;
mod text;
mod writer;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use taran_core::clock::{Clock, SystemClock, SystemWallClock, WallClock};
use taran_core::memory::Region;
use taran_core::ring::many_to_one::{Consumer, Producer};
use taran_core::ring::{RingError, TRAILER_LENGTH};
use taran_protocol::event::{EventCode, EventSet};

pub(crate) use frame_log::FrameLog;
pub(crate) use writer::{EventWriter, EventWriterSpec};

use record::Record;

/// Producer end of the event log. Clones write to the same log.
#[doc(alias = "EventLogger")]
#[derive(Clone, Debug, Default)]
pub struct EventLog {
    enabled: EventSet,
    queue: Option<Arc<Queue>>,
}

/// Queue of records.
#[derive(Debug)]
struct Queue {
    ring: Producer,
    lost: AtomicU64,
    now_ns: fn() -> i64,
}

/// A value of an event. [`EventSpec`](taran_protocol::event::EventSpec) declares the fields of each event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FieldValue<'a> {
    /// A 32-bit number.
    Int(i32),
    /// A 64-bit number.
    Long(i64),
    /// Address and port; `None` if unknown.
    Address(Option<SocketAddr>),
    /// A text.
    Text(&'a str),
    /// A message of the command protocol: type and bytes.
    Message(i32, &'a [u8]),
    /// A datagram.
    Frame(&'a [u8]),
}

/// Clock of the times in the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EventClock {
    /// The wall clock.
    Wall,
    /// The clock of the driver's timers.
    Monotonic,
}

impl EventClock {
    /// Returns the clock named by `taran.event.log.clock`.
    pub(crate) fn named(name: &str) -> Self {
        match name {
            "monotonic" => Self::Monotonic,
            _ => Self::Wall,
        }
    }

    /// Returns the function that reads the clock, in nanoseconds.
    fn now_ns(self) -> fn() -> i64 {
        match self {
            Self::Wall => || SystemWallClock.epoch_nanos(),
            Self::Monotonic => || SystemClock::new().now().nanos,
        }
    }
}

/// Consumer end of the event log, for the writer thread.
#[derive(Debug)]
pub(crate) struct EventConsumer {
    ring: Consumer,
    queue: Arc<Queue>,
}

impl EventLog {
    /// Creates a log without enabled events.
    #[must_use]
    pub fn off() -> Self {
        Self::default()
    }

    /// Creates a log of these events with a queue of `capacity` bytes, a power of two; and its consumer.
    pub(crate) fn new(
        enabled: EventSet,
        capacity: usize,
        now_ns: fn() -> i64,
    ) -> Result<(Self, EventConsumer), RingError> {
        let region = Region::anonymous(capacity + TRAILER_LENGTH)
            .map_err(|_| RingError::Length { length: capacity })?;
        let queue = Arc::new(Queue {
            ring: Producer::open(&region)?,
            lost: AtomicU64::new(0),
            now_ns,
        });
        let ring = Consumer::open(&region)?;
        let log = Self {
            enabled,
            queue: Some(Arc::clone(&queue)),
        };
        Ok((log, EventConsumer { ring, queue }))
    }

    /// Returns true if the event is enabled. Check it before computing expensive values.
    #[inline]
    #[must_use]
    pub fn is_enabled(&self, event: EventCode) -> bool {
        self.enabled.contains(event)
    }

    /// Returns the enabled events.
    pub(crate) fn enabled(&self) -> EventSet {
        self.enabled
    }

    /// Logs an event if it is enabled, with the values that its declaration names.
    #[inline]
    pub fn log(&self, event: EventCode, values: &[FieldValue<'_>]) {
        if self.is_enabled(event) {
            self.write(event, values);
        }
    }

    /// Logs a command of a client, as it stands in the ring.
    #[inline]
    pub(crate) fn command(&self, type_id: i32, payload: &[u8]) {
        if !self.enabled.is_empty()
            && let Some(event) = EventCode::of_command(type_id)
        {
            self.log(event, &[FieldValue::Message(type_id, payload)]);
        }
    }

    /// Logs a response to clients, as it goes into the broadcast buffer.
    #[inline]
    pub(crate) fn response(&self, type_id: i32, payload: &[u8]) {
        if !self.enabled.is_empty()
            && let Some(event) = EventCode::of_response(type_id)
        {
            self.log(event, &[FieldValue::Message(type_id, payload)]);
        }
    }

    #[cold]
    fn write(&self, event: EventCode, values: &[FieldValue<'_>]) {
        let Some(queue) = &self.queue else { return };
        let record = Record::new((queue.now_ns)(), values);
        let written = queue.ring.write_with(
            i32::from(event.number()),
            record.length(),
            |target: &mut [u8]| record.write(target),
        );
        if written.is_err() {
            queue.lost.fetch_add(1, Ordering::Relaxed);
        }
    }
}

impl EventConsumer {
    /// Passes up to `limit` records to `handler`. Returns their number.
    fn read(&mut self, limit: usize, handler: impl FnMut(i32, &[u8])) -> usize {
        // Only this process writes to the queue; a damaged queue is emptied and used further.
        self.ring.read(limit, handler).unwrap_or(0)
    }

    /// Returns the number of events dropped since the last call.
    fn take_lost(&self) -> u64 {
        self.queue.lost.swap(0, Ordering::Relaxed)
    }

    fn is_empty(&self) -> bool {
        self.ring.size() == 0
    }
}

#[cfg(test)]
mod captured;
#[cfg(test)]
mod tests;
