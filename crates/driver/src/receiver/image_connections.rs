//! What each transport of an endpoint has brought of one stream (docs/spec/wire.md §2.11).
//!
//! A plain subscription has one transport, and one connection here. With `control-mode=manual` there are as many as
//! there are destinations: the stream may come in on several of them at once, and its sender, or its senders, are
//! answered on all that live. Input: what came in, and transports that come and go; output: where to send, and whether
//! the stream has ended on all of them.

use std::net::SocketAddr;

/// Where there are several transports, one on which nothing came for so long is not spoken to.
const ACTIVITY_TIMEOUT_NS: i64 = 5_000_000_000;

/// Where a frame came from: the slot of the transport, and where its sender is answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct FrameOrigin {
    pub(super) slot: usize,
    pub(super) control: SocketAddr,
    pub(super) now_ns: i64,
}

#[derive(Debug)]
struct ImageConnection {
    control: SocketAddr,
    /// When a frame or a SETUP last came in, or the transport itself was added.
    last_activity_ns: i64,
    /// When a frame last came in.
    last_frame_ns: Option<i64>,
    /// Where the stream ends, once its sender said so.
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

/// The connections of one image, each in the slot of its transport.
#[derive(Debug, Default)]
pub(super) struct ImageConnections {
    slots: Vec<Option<ImageConnection>>,
}

impl ImageConnections {
    /// Makes room for so many transports, so that none is needed later.
    pub(super) fn reserve(&mut self, slots: usize) {
        if self.slots.len() < slots {
            self.slots.resize_with(slots, || None);
        }
    }

    /// A frame came in.
    #[inline]
    pub(super) fn on_frame(&mut self, origin: &FrameOrigin) {
        if let Some(connection) = self.entry(origin) {
            connection.last_activity_ns = origin.now_ns;
            connection.last_frame_ns = Some(origin.now_ns);
        }
    }

    /// A SETUP came in.
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

    /// A transport was added whose sender can be spoken to before anything came in.
    pub(super) fn add(&mut self, slot: usize, control: SocketAddr, now_ns: i64) {
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = Some(ImageConnection::new(control, now_ns));
        }
    }

    /// The transport is gone.
    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = None;
        }
    }

    /// The sender behind a transport is somewhere else now.
    pub(super) fn rebind(&mut self, slot: usize, control: SocketAddr) {
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.control = control;
        }
    }

    /// The stream ends at `position`, as far as one transport knows.
    pub(super) fn on_end_of_stream(&mut self, slot: usize, position: i64) {
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.end_of_stream = Some(position);
        }
    }

    /// Where the stream ends: the furthest that any transport says, once all say so that have brought something within
    /// the timeout. A path that was lost long ago does not keep the stream from ending.
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

    /// How many transports have brought a frame within the timeout.
    pub(super) fn live_count(&self, now_ns: i64, timeout_ns: i64) -> usize {
        let connections = self.slots.iter().flatten();
        connections
            .filter(|connection| connection.is_live(now_ns, timeout_ns))
            .count()
    }

    /// Slot and address of everybody to speak to; `skip_silent` leaves out those that have fallen silent.
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
    fn those_that_fall_silent_are_left_out_where_there_are_others() {
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
            "a SETUP is no frame"
        );
    }

    #[test]
    fn a_stream_has_ended_when_all_live_transports_say_so() {
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
    fn a_path_that_was_lost_or_removed_does_not_hold_up_the_end() {
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
    fn the_address_is_the_first_one_until_told_otherwise() {
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
