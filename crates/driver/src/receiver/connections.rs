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
pub(super) struct Arrival {
    pub(super) slot: usize,
    pub(super) control: SocketAddr,
    pub(super) now_ns: i64,
}

#[derive(Debug)]
struct Connection {
    control: SocketAddr,
    /// When a frame or a SETUP last came in, or the transport itself was added.
    active_ns: i64,
    /// When a frame last came in.
    heard_ns: Option<i64>,
    /// Where the stream ends, once its sender said so.
    end_of_stream: Option<i64>,
}

impl Connection {
    fn new(control: SocketAddr, now_ns: i64) -> Self {
        Self {
            control,
            active_ns: now_ns,
            heard_ns: None,
            end_of_stream: None,
        }
    }

    fn is_live(&self, now_ns: i64, timeout_ns: i64) -> bool {
        self.heard_ns
            .is_some_and(|heard_ns| now_ns - heard_ns <= timeout_ns)
    }
}

/// The connections of one image, each in the slot of its transport.
#[derive(Debug, Default)]
pub(super) struct Connections {
    slots: Vec<Option<Connection>>,
}

impl Connections {
    /// Makes room for so many transports, so that none is needed later.
    pub(super) fn reserve(&mut self, slots: usize) {
        if self.slots.len() < slots {
            self.slots.resize_with(slots, || None);
        }
    }

    /// A frame came in.
    #[inline]
    pub(super) fn heard(&mut self, arrival: &Arrival) {
        if let Some(connection) = self.entry(arrival) {
            connection.active_ns = arrival.now_ns;
            connection.heard_ns = Some(arrival.now_ns);
        }
    }

    /// A SETUP came in.
    pub(super) fn active(&mut self, arrival: &Arrival) {
        if let Some(connection) = self.entry(arrival) {
            connection.active_ns = arrival.now_ns;
        }
    }

    #[inline]
    fn entry(&mut self, arrival: &Arrival) -> Option<&mut Connection> {
        let slot = self.slots.get_mut(arrival.slot)?;
        Some(slot.get_or_insert_with(|| Connection::new(arrival.control, arrival.now_ns)))
    }

    /// A transport was added whose sender can be spoken to before anything came in.
    pub(super) fn expect(&mut self, slot: usize, control: SocketAddr, now_ns: i64) {
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = Some(Connection::new(control, now_ns));
        }
    }

    /// The transport is gone.
    pub(super) fn remove(&mut self, slot: usize) {
        if let Some(entry) = self.slots.get_mut(slot) {
            *entry = None;
        }
    }

    /// The sender behind a transport is somewhere else now.
    pub(super) fn readdress(&mut self, slot: usize, control: SocketAddr) {
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.control = control;
        }
    }

    /// The stream ends at `position`, as far as one transport knows.
    pub(super) fn ends(&mut self, slot: usize, position: i64) {
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
    pub(super) fn live(&self, now_ns: i64, timeout_ns: i64) -> usize {
        let connections = self.slots.iter().flatten();
        connections
            .filter(|connection| connection.is_live(now_ns, timeout_ns))
            .count()
    }

    /// Slot and address of everybody to speak to; `among_several` leaves out those that have fallen silent.
    pub(super) fn targets(
        &self,
        now_ns: i64,
        among_several: bool,
    ) -> impl Iterator<Item = (usize, SocketAddr)> {
        let connections = self.slots.iter().enumerate();
        let connections = connections.filter_map(|(slot, entry)| Some((slot, entry.as_ref()?)));
        connections
            .filter(move |(_, connection)| {
                !among_several || now_ns - connection.active_ns < ACTIVITY_TIMEOUT_NS
            })
            .map(|(slot, connection)| (slot, connection.control))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND_NS: i64 = 1_000_000_000;

    fn arrival(slot: usize, now_ns: i64) -> Arrival {
        Arrival {
            slot,
            control: address(slot),
            now_ns,
        }
    }

    fn address(slot: usize) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, slot as u8], 4040))
    }

    fn targets(connections: &Connections, now_ns: i64) -> Vec<usize> {
        let targets = connections.targets(now_ns, true);
        targets.map(|(slot, _)| slot).collect()
    }

    #[test]
    fn those_that_fall_silent_are_left_out_where_there_are_others() {
        let mut connections = Connections::default();
        connections.reserve(3);
        connections.heard(&arrival(0, 0));
        connections.active(&arrival(2, SECOND_NS));
        connections.heard(&arrival(3, 0));
        assert_eq!(targets(&connections, 4 * SECOND_NS), [0, 2]);
        assert_eq!(targets(&connections, 5 * SECOND_NS), [2]);
        assert_eq!(connections.targets(60 * SECOND_NS, false).count(), 2);
        assert_eq!(
            connections.live(4 * SECOND_NS, 10 * SECOND_NS),
            1,
            "a SETUP is no frame"
        );
    }

    #[test]
    fn a_stream_has_ended_when_all_live_transports_say_so() {
        let mut connections = Connections::default();
        connections.reserve(3);
        for slot in 0..2 {
            connections.heard(&arrival(slot, 0));
        }
        connections.expect(2, address(2), 0);
        connections.ends(0, 4096);
        assert_eq!(connections.end_of_stream(SECOND_NS, 10 * SECOND_NS), None);
        connections.ends(1, 8192);
        assert_eq!(
            connections.end_of_stream(SECOND_NS, 10 * SECOND_NS),
            Some(8192)
        );
    }

    #[test]
    fn a_path_that_was_lost_or_removed_does_not_hold_up_the_end() {
        let mut connections = Connections::default();
        connections.reserve(2);
        connections.heard(&arrival(0, 0));
        connections.heard(&arrival(1, 3 * SECOND_NS));
        connections.ends(1, 8192);
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
        let mut connections = Connections::default();
        connections.reserve(1);
        connections.heard(&arrival(0, 0));
        let elsewhere = Arrival {
            control: address(9),
            ..arrival(0, 1)
        };
        connections.heard(&elsewhere);
        let to = |connections: &Connections| connections.targets(2, true).next();
        assert_eq!(to(&connections), Some((0, address(0))));
        connections.readdress(0, address(9));
        assert_eq!(to(&connections), Some((0, address(9))));
    }
}
