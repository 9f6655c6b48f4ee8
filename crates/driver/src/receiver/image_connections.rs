// SPDX-License-Identifier: Apache-2.0
//! Connections of one image, one per transport of its endpoint (docs/spec/wire.md §2.11).
//!
//! A plain subscription has one transport and one connection. A multi-destination subscription (`control-mode=manual`)
//! has one transport per destination: the stream may arrive on several of them, and feedback is sent on all that are
//! active. The input is arriving frames and transports that are added or removed; the output is where to send feedback
//! and whether the stream has ended on all transports.

use std::net::SocketAddr;

/// If an image has several connections, one on which nothing has arrived for this time gets no feedback.
const ACTIVITY_TIMEOUT_NS: i64 = 5_000_000_000;

/// Origin of a frame: the slot of its transport and the address to which feedback is sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameOrigin {
    pub(super) slot: usize,
    pub(super) control: SocketAddr,
    pub(super) now_ns: i64,
}

#[derive(Debug)]
struct ImageConnection {
    control: SocketAddr,
    /// Time of the last frame or SETUP, or at which the transport was added.
    last_activity_ns: i64,
    /// Time of the last frame.
    last_frame_ns: Option<i64>,
    /// End of stream position announced by the sender.
    end_of_stream: Option<i64>,
}

impl ImageConnection {
    fn new(control: SocketAddr, now_ns: i64) -> Self {
        Self {
            control,
            last_activity_ns: now_ns,
            last_frame_ns: None,
            end_of_stream: None,
        }
    }

    fn is_live(&self, now_ns: i64, timeout_ns: i64) -> bool {
        self.last_frame_ns
            .is_some_and(|last_frame_ns| now_ns - last_frame_ns <= timeout_ns)
    }
}

/// Connections of one image, each at the slot index of its transport.
#[derive(Debug, Default)]
pub(super) struct ImageConnections {
    slots: Vec<Option<ImageConnection>>,
}

impl ImageConnections {
    /// Grows the table to `slots` entries, so that it need not grow when a frame arrives.
    pub(super) fn reserve(&mut self, slots: usize) {
        if self.slots.len() < slots {
            self.slots.resize_with(slots, || None);
        }
    }

    /// Handles a frame.
    #[inline]
    pub(super) fn on_frame(&mut self, origin: &FrameOrigin) {
        if let Some(connection) = self.entry(origin) {
            connection.last_activity_ns = origin.now_ns;
            connection.last_frame_ns = Some(origin.now_ns);
        }
    }

    /// Handles a SETUP.
    pub(super) fn on_setup(&mut self, origin: &FrameOrigin) {
        if let Some(connection) = self.entry(origin) {
            connection.last_activity_ns = origin.now_ns;
        }
    }

    #[inline]
    fn entry(&mut self, origin: &FrameOrigin) -> Option<&mut ImageConnection> {
        let slot = self.slots.get_mut(origin.slot)?;
        Some(slot.get_or_insert_with(|| ImageConnection::new(origin.control, origin.now_ns)))
    }

    /// Adds a connection for a transport whose control address is known before anything arrives.
    pub(super) fn add(&mut self, slot: usize, control: SocketAddr, now_ns: i64) {
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = Some(ImageConnection::new(control, now_ns));
        }
    }

    /// Removes the connection of a removed transport.
    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = None;
        }
    }

    /// Changes the control address of a transport.
    pub(super) fn rebind(&mut self, slot: usize, control: SocketAddr) {
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.control = control;
        }
    }

    /// Records the end of stream position announced on one transport.
    pub(super) fn on_end_of_stream(&mut self, slot: usize, position: i64) {
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.end_of_stream = Some(position);
        }
    }

    /// Returns the end of stream position once every transport that has received a frame within `timeout_ns` has
    /// announced one: the maximum of all. A transport that has been silent for longer does not delay the end.
    pub(super) fn end_of_stream(&self, now_ns: i64, timeout_ns: i64) -> Option<i64> {
        let mut end = None;
        for connection in self.slots.iter().flatten() {
            match connection.end_of_stream {
                Some(position) => end = end.max(Some(position)),
                None if connection.is_live(now_ns, timeout_ns) => return None,
                None => {}
            }
        }
        end
    }

    /// Returns the number of transports that have received a frame within the timeout.
    pub(super) fn live_count(&self, now_ns: i64, timeout_ns: i64) -> usize {
        let connections = self.slots.iter().flatten();
        connections
            .filter(|connection| connection.is_live(now_ns, timeout_ns))
            .count()
    }

    /// Returns slot and address of each connection that gets feedback; `skip_silent` omits connections without activity
    /// for `ACTIVITY_TIMEOUT_NS`.
    pub(super) fn targets(
        &self,
        now_ns: i64,
        skip_silent: bool,
    ) -> impl Iterator<Item = (usize, SocketAddr)> {
        let connections = self.slots.iter().enumerate();
        let connections = connections.filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)));
        connections
            .filter(move |(_, connection)| {
                !skip_silent || now_ns - connection.last_activity_ns < ACTIVITY_TIMEOUT_NS
            })
            .map(|(slot, connection)| (slot, connection.control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn origin_of(slot: usize, now_ns: i64) -> FrameOrigin {
        FrameOrigin {
            slot,
            control: address(slot),
            now_ns,
        }
    }

    fn address(slot: usize) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, slot as u8], 4040))
    }

    fn targets(connections: &ImageConnections, now_ns: i64) -> Vec<usize> {
        let targets = connections.targets(now_ns, true);
        targets.map(|(slot, _)| slot).collect()
    }

    #[test]
    fn targets_of_several_transports_skip_silent_ones() {
        let mut connections = ImageConnections::default();
        connections.reserve(3);
        connections.on_frame(&origin_of(0, 0));
        connections.on_setup(&origin_of(2, SECOND_NS));
        connections.on_frame(&origin_of(3, 0));
        assert_eq!(targets(&connections, 4 * SECOND_NS), [0, 2]);
        assert_eq!(targets(&connections, 5 * SECOND_NS), [2]);
        assert_eq!(connections.targets(60 * SECOND_NS, false).count(), 2);
        assert_eq!(
            connections.live_count(4 * SECOND_NS, 10 * SECOND_NS),
            1,
            "a SETUP does not count"
        );
    }

    #[test]
    fn end_of_stream_requires_all_live_transports() {
        let mut connections = ImageConnections::default();
        connections.reserve(3);
        for slot in 0..2 {
            connections.on_frame(&origin_of(slot, 0));
        }
        connections.add(2, address(2), 0);
        connections.on_end_of_stream(0, 4096);
        assert_eq!(connections.end_of_stream(SECOND_NS, 10 * SECOND_NS), None);
        connections.on_end_of_stream(1, 8192);
        assert_eq!(
            connections.end_of_stream(SECOND_NS, 10 * SECOND_NS),
            Some(8192)
        );
    }

    #[test]
    fn end_of_stream_ignores_silent_and_removed_transports() {
        let mut connections = ImageConnections::default();
        connections.reserve(2);
        connections.on_frame(&origin_of(0, 0));
        connections.on_frame(&origin_of(1, 3 * SECOND_NS));
        connections.on_end_of_stream(1, 8192);
        assert_eq!(
            connections.end_of_stream(10 * SECOND_NS, 10 * SECOND_NS),
            None
        );
        assert_eq!(
            connections.end_of_stream(11 * SECOND_NS, 10 * SECOND_NS),
            Some(8192)
        );
        connections.remove(0);
        assert_eq!(
            connections.end_of_stream(4 * SECOND_NS, 10 * SECOND_NS),
            Some(8192)
        );
    }

    #[test]
    fn control_address_is_that_of_first_frame_until_rebind() {
        let mut connections = ImageConnections::default();
        connections.reserve(1);
        connections.on_frame(&origin_of(0, 0));
        let elsewhere = FrameOrigin {
            control: address(9),
            ..origin_of(0, 1)
        };
        connections.on_frame(&elsewhere);
        let to = |connections: &ImageConnections| connections.targets(2, true).next();
        assert_eq!(to(&connections), Some((0, address(0))));
        connections.rebind(0, address(9));
        assert_eq!(to(&connections), Some((0, address(9))));
    }
}
